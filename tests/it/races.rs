//! Tests readers that open, copy and verify an index while a writer changes it: each must find a complete commit or
//! report an error.

#![allow(clippy::disallowed_methods, reason = "copies the files of an index from outside")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::faults::{Faults, FaultyVfs};
use tempfile::TempDir;
use twindex::store::verify::verify;
use twindex::sys::RealVfs;
use twindex::{Durability, Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions};

/// Number of live documents after every commit.
const WINDOW: u64 = 40;

fn created() -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, Params::builder().u64_keys().simhash(3).build().unwrap()).unwrap();
    (dir, path, index)
}

/// Puts the document with this number, and deletes the document `WINDOW` numbers before it.
fn add(writer: &mut Writer, number: u64) {
    writer.put(number, Fingerprint(number * number)).unwrap();
    if let Some(old) = number.checked_sub(WINDOW) {
        writer.delete(old).unwrap();
    }
}

/// Like [`add`], then commits with the number as payload.
fn step(writer: &mut Writer, number: u64) {
    add(writer, number);
    writer.commit_with(&number.to_le_bytes()).unwrap();
}

/// Checks that the snapshot has exactly the documents of one commit; returns the number of that commit.
fn check(snapshot: &Snapshot) -> u64 {
    let Some(payload) = snapshot.payload() else {
        assert_eq!(snapshot.documents(), 0);
        return 0;
    };
    let number = u64::from_le_bytes(payload.try_into().unwrap());
    let expected: Vec<u64> = ((number + 1).saturating_sub(WINDOW)..=number).collect();
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            let key = key.to_buf().as_u64().unwrap();
            assert_eq!(snapshot.get(key)?.unwrap().fingerprint, Some(Fingerprint(key * key)));
            keys.push(key);
            Ok(())
        })
        .unwrap();
    assert_eq!(keys, expected, "of commit {number}");
    number
}

/// Stops the writer when dropped, so that the other threads end even if a test fails.
struct StopSignal<'a>(&'a AtomicBool);

impl Drop for StopSignal<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `work` with the path of an index while a writer commits, flushes, merges and removes files.
fn concurrent_with_a_writer<T: Send>(work: impl FnOnce(&Path, &AtomicU64) -> T + Send) -> T {
    beside(WriterOptions::default(), flushing_step, work)
}

/// Makes a commit, and sometimes also flushes or removes files; returns the number of the commit.
fn flushing_step(writer: &mut Writer, number: u64) -> u64 {
    step(writer, number);
    if number.is_multiple_of(7) {
        writer.flush().unwrap();
    }
    if number.is_multiple_of(50) {
        writer.gc().unwrap();
    }
    number
}

/// Commits one document, or enough documents to flush several memtables before the commit returns.
fn large_step(writer: &mut Writer, number: u64) -> u64 {
    let last = if number % 60 < 20 { number + WINDOW } else { number };
    for number in number..last {
        add(writer, number);
    }
    step(writer, last);
    last
}

/// Calls `work` while a writer repeats `one` with increasing numbers: one more than the number that the previous call
/// returned.
fn beside<T: Send>(
    options: WriterOptions,
    one: impl Fn(&mut Writer, u64) -> u64 + Sync,
    work: impl FnOnce(&Path, &AtomicU64) -> T + Send,
) -> T {
    let (_dir, path, index) = created();
    let (over, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut writer = index.writer_with(options.durability(Durability::Batch)).unwrap();
    step(&mut writer, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1;
            while !over.load(Ordering::Relaxed) {
                let last = one(&mut writer, number);
                committed.store(last, Ordering::Release);
                number = last + 1;
            }
        });
        let _over = StopSignal(&over);
        work(&path, &committed)
    })
}

#[test]
fn concurrent_open_always_finds_a_complete_commit() {
    let seen = concurrent_with_a_writer(|path, committed| {
        let (mut seen, mut rounds, start) = (BTreeSet::new(), 0, Instant::now());
        // On a busy machine, the writer thread runs rarely, so the loop also waits for a number of commits.
        while (rounds < 400 || seen.len() <= 10) && start.elapsed() < Duration::from_secs(60) {
            rounds += 1;
            let before = committed.load(Ordering::Acquire);
            let found = check(&Index::open(path).unwrap().snapshot());
            assert!(found >= before, "{found} is older than {before}, which was committed before");
            seen.insert(found);
        }
        seen.len()
    });
    println!("{seen} commits seen");
    assert!(seen > 5, "{seen}");
}

#[test]
fn concurrent_verify_reports_no_false_damage() {
    let moved = concurrent_with_a_writer(|path, committed| {
        let (mut rounds, start) = (0, Instant::now());
        while rounds < 150
            || committed.load(Ordering::Acquire) <= 10 && start.elapsed() < Duration::from_secs(60)
        {
            rounds += 1;
            let found = verify(&RealVfs, path, |_| ());
            assert!(found.problems.is_empty(), "{:?}", found.problems);
        }
        committed.load(Ordering::Acquire)
    });
    assert!(moved > 5, "the writer made {moved} commits meanwhile");
}

/// Number of rows of a memtable in the test below.
const ROWS: u32 = 12;

#[test]
fn concurrent_readers_find_complete_commits_during_background_flushes() {
    let small = WriterOptions::default().memtable(ROWS, usize::MAX);
    let (segments, moved) = beside(small, large_step, |path, committed| {
        let follower = Index::open(path).unwrap();
        let (mut rounds, mut max, start) = (0, 0, Instant::now());
        // On a busy machine, the writer thread runs rarely, so the loop also waits for a number of commits.
        while (rounds < 60 || committed.load(Ordering::Acquire) < 200)
            && start.elapsed() < Duration::from_secs(60)
        {
            rounds += 1;
            let before = committed.load(Ordering::Acquire);
            follower.refresh().unwrap();
            let opened = Index::open(path).unwrap();
            for index in [&follower, &opened] {
                let found = check(&index.snapshot());
                assert!(found >= before, "{found} is older than {before}, which was committed before");
            }
            max = max.max(opened.snapshot().entries().len());
            if rounds % 10 == 0 {
                let found = verify(&RealVfs, path, |_| ());
                assert!(found.problems.is_empty(), "{:?}", found.problems);
            }
        }
        (max, committed.load(Ordering::Acquire))
    });
    println!("{segments} segments at most; the writer was at {moved}");
    assert!(segments >= 2 && moved >= 200, "{segments} {moved}");
}

/// Copies like `cp -r`: lists the names of the files, then copies one file after another.
#[test]
fn concurrent_file_copy_is_a_complete_commit_or_an_error() {
    let (whole, refused, moved) = concurrent_with_a_writer(|path, committed| {
        let (mut whole, mut refused, mut round, start) = (0, 0, 0, Instant::now());
        // On a busy machine, the writer thread runs rarely, so the loop also waits for a number of commits.
        while round < 200
            || committed.load(Ordering::Acquire) <= 10 && start.elapsed() < Duration::from_secs(60)
        {
            round += 1;
            let copy = path.with_file_name("copy");
            std::fs::create_dir(&copy).unwrap();
            let mut names: Vec<_> =
                std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            if round % 2 == 1 {
                names.reverse();
            }
            for name in names {
                let _ = std::fs::copy(path.join(&name), copy.join(&name)); // the file may have been removed
            }
            match Index::open(&copy) {
                Ok(index) => {
                    check(&index.snapshot());
                    whole += 1;
                }
                Err(Error::Corrupt { .. } | Error::NotAnIndex { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
            std::fs::remove_dir_all(&copy).unwrap();
        }
        (whole, refused, committed.load(Ordering::Acquire))
    });
    println!("{whole} copies are whole commits, {refused} were refused; the writer made {moved} commits");
    assert!(moved > 5, "the writer made {moved} commits meanwhile");
    assert!(whole > 0, "{whole} {refused}");
}

#[test]
fn thousand_concurrent_readers_give_the_same_answers() {
    let (_dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    for number in 0..100 {
        step(&mut writer, number);
        if number % 30 == 0 {
            writer.flush().unwrap();
        }
    }
    let readers: Vec<Index> = (0..1000).map(|_| Index::open(&path).unwrap()).collect();
    for number in 100..120 {
        step(&mut writer, number);
    }
    writer.compact().unwrap();
    for (place, reader) in readers.iter().enumerate() {
        assert_eq!(check(&reader.snapshot()), 99);
        if place % 10 == 0 {
            assert!(reader.refresh().unwrap());
            assert_eq!(check(&reader.snapshot()), 119);
        }
    }
}

/// A file name that a manifest has contained always refers to the same bytes, after any drops, merges and removals.
#[test]
fn published_name_is_never_reused_for_another_file() {
    let (_dir, path, index) = created();
    let (mut known, mut number) = (BTreeMap::new(), 0);
    let mut highest = 0;
    for session in 0..12 {
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        for _ in 0..5 {
            step(&mut writer, number);
            number += 1;
            writer.flush().unwrap();
            for entry in index.snapshot().entries() {
                let digest = *known.entry(entry.number).or_insert_with(|| {
                    assert!(entry.number > highest, "{} after {highest}", entry.number);
                    entry.digest
                });
                assert_eq!(digest, entry.digest, "segment {}", entry.number);
                highest = highest.max(entry.number);
            }
        }
        match session % 4 {
            0 => {
                // Dropping the batch removes its segments.
                writer.set_options(writer.options().logged(false).memory(1)).unwrap();
                writer.put(1_000_000_u64, Fingerprint(1)).unwrap();
            }
            1 => while writer.merge_step().unwrap() {},
            2 => {
                writer.compact().unwrap();
            }
            _ => {
                writer.gc().unwrap();
            }
        }
        drop(writer);
        assert!(Index::open(&path).unwrap().snapshot().documents() > 0);
    }
    assert!(known.len() > 50, "{}", known.len());
}

#[test]
fn merge_without_disk_space_is_refused_and_not_retried() {
    let (_dir, path, index) = created();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for number in 0..60 {
        step(&mut writer, number);
        if number % 10 == 9 {
            writer.flush().unwrap();
        }
    }
    drop((writer, index));
    let faults = Arc::new(Faults { space: Some(100), ..Faults::default() });
    let index = Index::open_with(Arc::new(FaultyVfs(Arc::clone(&faults))), &path).unwrap();
    let segments = index.snapshot().entries().len();
    assert!(segments >= 4, "{segments}");
    let refused = |done: Result<(), Error>| match done {
        Err(Error::NoSpace { needed, free, .. }) => assert!(free == 100 && needed > 100, "{needed}"),
        other => panic!("{other:?}"),
    };
    let mut writer = index.writer().unwrap();
    refused(writer.compact().map(drop));
    refused(writer.merge_step().map(drop));
    assert_eq!(check(&index.snapshot()), 59, "and the writer goes on");
    // In the background, the merge is attempted once and its failure is reported, while commits continue.
    let asked = || faults.space_queries.load(Ordering::Relaxed);
    let before = asked();
    for number in 60..70 {
        step(&mut writer, number);
    }
    assert_eq!(asked(), before + 1);
    refused(writer.take_merge_failure().map_or(Ok(()), Err));
    step(&mut writer, 70);
    assert_eq!(asked(), before + 2, "taking the failure lets it begin again");
    assert_eq!(check(&index.snapshot()), 70);
}

/// A query that returned items after an error would make an incomplete result look complete.
#[test]
fn failed_query_yields_only_its_error_each_time() {
    let (_dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    for number in 0..20_000_u64 {
        // Keys are multiples of 3, because consecutive keys are encoded in no bytes.
        writer.put(number * 3, Fingerprint(number * number)).unwrap();
    }
    writer.commit().unwrap();
    writer.compact().unwrap();
    drop((writer, index));
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let segment = files.find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    // Damages the last bytes of each page of keys except the first. The parts that are read when opening remain intact.
    bytes.iter_mut().skip(2 * 4096 - 9).step_by(4096).take(5).for_each(|byte| *byte ^= 1);
    std::fs::remove_file(&segment).unwrap();
    std::fs::write(&segment, bytes).unwrap();
    let snapshot = Index::open(&path).unwrap().snapshot();
    let mut walks = Vec::new();
    for _ in 0..3 {
        let mut items = snapshot.within(Fingerprint(9_990 * 9_990), 0).into_iter();
        assert!(matches!(items.next(), Some(Err(Error::Corrupt { .. }))));
        assert!(items.next().is_none());
        assert!(snapshot.get(3 * 9_990).is_err());
        let mut seen = 0;
        let walked = snapshot.for_each_key(|_| {
            seen += 1;
            Ok(())
        });
        assert!(walked.is_err());
        walks.push(seen);
    }
    assert!(walks.iter().all(|&seen| seen == walks[0] && seen < 20_000), "{walks:?}");
}
