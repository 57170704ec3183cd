//! Tests the operations of a web indexer with simulated crashes, failing disks and killed processes. The indexer opens or
//! creates the index, admits pages with the writer's own threshold, drops duplicates, and removes folders. Pages expire.
//! Threads write segments concurrently.

use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::crashes::{Documents, History, check_concurrent, place};
use crate::support::faults::{Faults, FaultyVfs, ways};
use crate::support::itself::itself;
use crate::support::model::ModelVfs;
use crate::support::random::Random;
use twindex::params::Near;
use twindex::store::verify::verify;
use twindex::sys::{RealVfs, Vfs};
use twindex::{
    Admitted, Document, Error, Fingerprint, Index, MemoryVfs, Metrics, Params, Result, Snapshot, Writer,
    WriterOptions,
};

/// The age at which pages expire.
const AGE: u64 = 2;
/// The time of the first commit.
const START: u64 = 12;

fn params() -> Params {
    Params::builder().simhash(3).expire_after(AGE).build().unwrap()
}

/// Returns the fingerprint of a page. Different pages have fingerprints that are not near each other.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the key of a page. Pages are distributed over three folders.
fn key(number: u64) -> String {
    format!("{}/{number:06}", number % 3)
}

/// Returns the pages of the batch at time `now`: their numbers and fingerprints, and whether they are kept. One page is
/// near another only by the threshold of the index and is kept; one is near by the threshold of the writer and is
/// dropped.
fn batch_of(now: u64) -> impl Iterator<Item = (u64, u64, bool)> {
    let first = now * 20;
    // Every fourth batch, including the first, is larger than the memtables.
    let news = if now.is_multiple_of(4) { 9 } else { 2 };
    let pages = (first..first + news).map(|number| (number, spread(number), true));
    pages.chain([(first + 15, spread(first) ^ 3, true), (first + 16, spread(first) ^ 1 << 40, false)])
}

/// Returns the folder whose pages the batch at time `now` removes; `None` if it removes no folder.
fn removed_by(now: u64) -> Option<u64> {
    (now % 5 == 4).then_some(now % 3)
}

/// Returns the documents after the commit at time `now`.
fn documents_at(now: u64) -> Documents {
    let mut documents = Documents::new();
    for time in (now + 1).saturating_sub(AGE).max(START)..=now {
        documents.extend(batch_of(time).filter(|page| page.2).map(|(number, print, _)| (number, print)));
        if let Some(folder) = removed_by(time) {
            documents.retain(|number, _| number % 3 != folder);
        }
    }
    documents
}

fn indexer(index: &Index) -> Result<Writer> {
    index.writer_with(
        WriterOptions::default().memtable(4, 1 << 20).drop_duplicates(true).near(Near::within(1)),
    )
}

/// Admits the pages of time `now`, possibly removes a folder, and commits.
fn commit(writer: &mut Writer, now: u64) -> Result<()> {
    for (number, fingerprint, stays) in batch_of(now) {
        let page = Document::from(Fingerprint(fingerprint)).with_stamp(now);
        match writer.admit(&key(number), page)? {
            Admitted::New => assert!(stays, "{number}"),
            Admitted::Duplicate(_) => assert!(!stays, "{number}"),
            other => panic!("{number}: {other:?}"),
        }
    }
    if let Some(folder) = removed_by(now) {
        assert!(writer.delete_prefix(format!("{folder}/"))? > 0);
    }
    writer.commit_with(&now.to_le_bytes())?;
    Ok(())
}

/// Returns the time of the last commit, and the documents of the snapshot.
fn found(snapshot: &Snapshot) -> (Option<u64>, Documents) {
    let now = snapshot.payload().map(|payload| u64::from_le_bytes(payload.try_into().unwrap()));
    let keys = snapshot.keys().unwrap().map(|key| {
        let key = key.unwrap();
        let number = key.as_str().unwrap()[2..].parse().unwrap();
        (number, snapshot.get(&key).unwrap().unwrap().fingerprint.unwrap().0)
    });
    (now, keys.collect())
}

/// Checks that an index has the documents after one of the commits; returns the time of that commit.
fn check(index: &Index, case: &str) -> Option<u64> {
    let (now, documents) = found(&index.snapshot());
    assert_eq!(documents, now.map(documents_at).unwrap_or_default(), "{case}: after {now:?}");
    now
}

#[test]
fn commits_of_pages_survive_crashes_and_need_every_sync() {
    let work = |vfs: &ModelVfs, history: &mut History| {
        history.promise(vfs, &[None]);
        let open = || Index::open_or_create_with(Arc::new(vfs.clone()), place(), params()).unwrap();
        drop(open());
        history.committed(vfs, &Documents::new());
        let index = open();
        let mut writer = indexer(&index).unwrap();
        for now in START..START + 3 {
            commit(&mut writer, now).unwrap();
            assert_eq!(index.metrics().documents, documents_at(now).len() as u64);
            history.committed(vfs, &documents_at(now));
        }
    };
    check_concurrent("pages", &work, 500);
}

/// Runs the commits of an indexer and drops its writer. Returns the time of the last acknowledged commit, the result of
/// the run, and the metrics.
fn indexed(vfs: Arc<dyn Vfs>) -> (Option<u64>, Result<()>, Metrics) {
    let mut acknowledged = None;
    let index = match Index::open_or_create_with(vfs, place(), params()) {
        Ok(index) => index,
        Err(error) => return (None, Err(error), Metrics::default()),
    };
    let done = commit_five(&index, &mut acknowledged);
    (acknowledged, done, index.metrics())
}

fn commit_five(index: &Index, acknowledged: &mut Option<u64>) -> Result<()> {
    let mut writer = indexer(index)?;
    for now in START..START + 5 {
        commit(&mut writer, now)?;
        *acknowledged = Some(now);
    }
    writer.wait_for_merge()?;
    writer.take_merge_failure().map_or(Ok(()), Err)
}

#[test]
fn failing_disk_loses_no_acknowledged_pages_during_background_flushes() {
    // Each operation in turn fails if `TWINDEX_CASES` is set, otherwise every third one.
    let every = if std::env::var_os("TWINDEX_CASES").is_some() { 1 } else { 3 };
    let (mut points, mut later, mut counted) = (0, 0, 0);
    for (way, _) in ways().enumerate() {
        for fails_at in (1 + way..).step_by(every) {
            let disk: Arc<dyn Vfs> = Arc::new(MemoryVfs::default());
            let usual = ways().nth(way).unwrap_or_default();
            let faults = Arc::new(Faults { fails_at, over: Some(Arc::clone(&disk)), ..usual });
            let (acknowledged, done, metrics) = indexed(Arc::new(FaultyVfs(Arc::clone(&faults))));
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                assert_eq!((acknowledged, done.is_ok()), (Some(START + 4), true));
                break; // a run performs fewer operations than this number
            };
            points += 1;
            let case = format!("{failed}, way {way}: {:?}", done.as_ref().err());
            let failed_to_end = done.is_err();
            assert!(!done.is_err_and(|error| error.is_corruption()), "{case}");
            let failures = metrics.commits.failures + metrics.flushes.failures + metrics.merges.failures;
            counted += usize::from(failures > 0);
            match Index::open_with(Arc::clone(&disk), place()) {
                Ok(index) => {
                    let now = check(&index, &case);
                    let next = acknowledged.map_or(START, |now| now + 1);
                    assert!(
                        now == acknowledged || now == Some(next),
                        "{case}: {now:?} after {acknowledged:?}"
                    );
                    later += usize::from(now != acknowledged);
                    let problems = verify(&*disk, place(), |_| ()).problems;
                    assert!(problems.is_empty(), "{case}: {problems:?}");
                }
                Err(Error::NotAnIndex { .. }) => assert!(acknowledged.is_none() && failed_to_end, "{case}"),
                Err(error) => panic!("{case}: {error}"),
            }
            // The next indexer continues with the index.
            let index = Index::open_or_create_with(Arc::clone(&disk), place(), params()).unwrap();
            let next = found(&index.snapshot()).0.map_or(START, |now| now + 1);
            commit(&mut indexer(&index).unwrap(), next).unwrap();
            assert_eq!(check(&index, &case), Some(next), "{case}");
        }
    }
    println!(
        "{points} fault points, {counted} in the metrics, {later} left a commit that was not acknowledged"
    );
    assert!(points > 150 && counted > 30 && later > 0, "{points} {counted} {later}");
}

/// The environment variable with the path of the index, set for the child process of the test below.
const CHILD: &str = "TWINDEX_TEST_PAGES";

#[test]
fn killed_indexer_leaves_the_last_commit_or_the_current_one() {
    if let Some(path) = std::env::var_os(CHILD) {
        let index = Index::open_or_create(path, params()).unwrap();
        let mut writer = indexer(&index).unwrap();
        for now in found(&index.snapshot()).0.map_or(START, |now| now + 1).. {
            commit(&mut writer, now).unwrap();
            writeln!(std::io::stdout(), "acknowledged {now}").unwrap();
        }
    }
    // `TWINDEX_CASES` overrides the number of kills.
    let kills = std::env::var("TWINDEX_CASES").map_or(8, |cases| cases.parse().expect("a number"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pages");
    let name = "pages::killed_indexer_leaves_the_last_commit_or_the_current_one";
    let (mut random, mut last) = (Random(kills), None);
    for kill in 0..kills {
        let mut child = itself()
            .args(["--exact", "--nocapture", name])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::result::Result::ok);
        let time = |line: &str| line.split("acknowledged ").nth(1).and_then(|time| time.parse::<u64>().ok());
        // Some children are killed before their first commit, most of them after it.
        if kill % 4 > 0 {
            last = lines.find_map(|line| time(&line)).or(last);
        }
        std::thread::sleep(Duration::from_micros(random.below(40_000) as u64));
        child.kill().unwrap();
        last = lines.filter_map(|line| time(&line)).last().or(last);
        assert!(!child.wait().unwrap().success(), "it ended by itself");
        let case = format!("kill {kill}");
        match Index::open(&path) {
            Ok(index) => {
                let now = check(&index, &case);
                let next = last.map_or(START, |now| now + 1);
                assert!(now == last || now == Some(next), "{case}: {now:?} after {last:?}");
                last = now;
                let problems = verify(&RealVfs, &path, |_| ()).problems;
                assert!(problems.is_empty(), "{case}: {problems:?}");
            }
            Err(Error::NotAnIndex { .. }) => assert_eq!(last, None, "{case}"),
            Err(error) => panic!("{case}: {error}"),
        }
    }
    println!("{kills} kills; the last commit is of {last:?}");
    assert!(last.is_some_and(|last| last > START + kills / 4), "{last:?}");
}
