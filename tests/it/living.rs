//! Tests an index on a real file system while it is written to: logged batches, concurrent reader processes, torn and
//! damaged logs, failing disks, background merges, copies and shards.

#![allow(
    clippy::disallowed_methods,
    reason = "looks at the files of an index from outside, and damages them"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::faults::{Faults, FaultyVfs, ways};
use crate::support::random::Random;
use tempfile::TempDir;
use twindex::store::OnConflict;
use twindex::{
    Admitted, Document, Durability, Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions,
};

type Documents = BTreeMap<u64, u64>;

fn raw() -> Params {
    Params::builder().u64_keys().simhash(3).build().unwrap()
}

fn created(params: Params) -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params).unwrap();
    (dir, path, index)
}

fn put(writer: &mut Writer, key: u64, value: u64) {
    writer.put(key, Fingerprint(value)).unwrap();
}

fn documents(snapshot: &Snapshot) -> Documents {
    let mut all = Documents::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?.unwrap();
            all.insert(key.to_buf().as_u64().unwrap(), record.fingerprint.unwrap().0);
            Ok(())
        })
        .unwrap();
    assert_eq!(all.len() as u64, snapshot.documents());
    all
}

fn log_of(path: &Path) -> PathBuf {
    let mut logs: Vec<PathBuf> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("LOG-"))
        .collect();
    logs.sort();
    logs.pop().unwrap()
}

#[test]
fn refresh_shows_commits_of_other_processes_but_no_torn_commit() {
    let (_dir, path, index) = created(raw());
    let reader = Index::open(&path).unwrap();
    let mut writer = index.writer().unwrap();
    let mut expected = Documents::new();
    for commit in 0..20 {
        put(&mut writer, commit % 7, commit);
        expected.insert(commit % 7, commit);
        writer.commit().unwrap();
        let before = reader.snapshot();
        let old = documents(&before);
        assert!(reader.refresh().unwrap());
        assert_eq!(documents(&reader.snapshot()), expected);
        assert_eq!(documents(&before), old, "a snapshot does not change");
        assert!(!reader.refresh().unwrap());
    }
    assert_eq!(reader.snapshot().logged_documents(), 7);
    drop(writer);
    // Appends the beginning of a record, as if it were being written.
    let log = log_of(&path);
    let whole = std::fs::read(&log).unwrap();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 100, 100);
    writer.commit().unwrap();
    reader.refresh().unwrap();
    let newest = log_of(&path);
    assert_ne!(newest, log, "each writer has a log of its own");
    assert_eq!(std::fs::read(&log).unwrap(), whole, "and never touches that of another");
    let sound = std::fs::read(&newest).unwrap();
    for extra in [1, 8, 24, 40] {
        let mut torn = sound.clone();
        torn.extend(std::iter::repeat_n(1, extra));
        std::fs::write(&newest, &torn).unwrap();
        assert!(!reader.refresh().unwrap(), "{extra}");
        assert_eq!(documents(&Index::open(&path).unwrap().snapshot())[&100], 100);
    }
}

/// Creates an index whose log has four commits and was closed by its writer; returns the documents after each commit.
fn logged() -> (TempDir, PathBuf, Vec<Documents>) {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    let mut all = vec![Documents::new()];
    for commit in 0..4 {
        let mut now = all.last().unwrap().clone();
        put(&mut writer, commit, commit * 3);
        now.insert(commit, commit * 3);
        if commit > 0 {
            writer.delete(commit - 1).unwrap();
            now.remove(&(commit - 1));
        }
        writer.commit().unwrap();
        all.push(now);
    }
    (dir, path, all)
}

#[test]
fn flipped_bit_in_closed_log_is_an_error_or_harmless() {
    let (_dir, path, all) = logged();
    let log = log_of(&path);
    let sound = std::fs::read(&log).unwrap();
    let (mut refused, mut same) = (0, 0);
    for bit in 0..sound.len() * 8 {
        let mut damaged = sound.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&log, &damaged).unwrap();
        match Index::open(&path) {
            Err(Error::Corrupt { path, .. }) => {
                assert_eq!(path, log);
                refused += 1;
            }
            Err(other) => panic!("bit {bit}: {other:?}"),
            Ok(index) => {
                assert_eq!(Some(&documents(&index.snapshot())), all.last(), "bit {bit}");
                same += 1;
            }
        }
    }
    println!("{refused} refused, {same} without a consequence");
    assert_eq!(same, 32 * 8, "those of the mark at the end");
}

#[test]
fn truncated_log_is_an_error_or_opens_at_earlier_commit() {
    let (_dir, path, all) = logged();
    let log = log_of(&path);
    let sound = std::fs::read(&log).unwrap();
    // The manifest that names the log contains the deletes of the log's first batch, and records that this batch exists.
    let payload = u32::from_le_bytes(sound[92..96].try_into().unwrap()) as usize;
    let named = 88 + (24 + payload).next_multiple_of(8);
    for length in 0..sound.len() {
        std::fs::write(&log, &sound[..length]).unwrap();
        match Index::open(&path) {
            Err(Error::Corrupt { .. }) => assert!(length < named, "{length} of {named}"),
            Err(other) => panic!("{length}: {other:?}"),
            Ok(index) => {
                assert!(length >= named, "{length} of {named}");
                let found = documents(&index.snapshot());
                assert!(all.contains(&found), "{length}: {found:?}");
                // Closes the index before the next truncation of its log.
                drop(index);
            }
        }
    }
    // A later record states that this record was synced, so zeros in its place are damage rather than a torn end.
    let mut zeroed = sound.clone();
    zeroed[100..160].fill(0);
    std::fs::write(&log, &zeroed).unwrap();
    let error = Index::open(&path).unwrap_err();
    assert!(error.to_string().contains("as the file was synced up to"), "{error}");
}

#[test]
fn flush_does_not_change_how_a_document_is_found() {
    let params = Params::builder().words(2).simhash(3).minhash(8, 2).bottom(4).build().unwrap();
    let (_dir, _path, index) = created(params);
    let sketcher = index.sketcher().unwrap();
    let mut random = Random(5);
    let words = ["rose", "is", "a", "thorn", "the", "garden", "of", "north"];
    let mut texts: Vec<String> = Vec::new();
    for i in 0..200 {
        let mut text: Vec<&str> = match texts.get(i / 2) {
            Some(text) if i % 2 == 1 => text.split(' ').collect(),
            _ => (0..30).map(|_| words[random.below(8)]).collect(),
        };
        let at = random.below(text.len());
        text[at] = words[random.below(8)];
        let text = text.join(" ");
        texts.push(text);
    }
    let mut writer = index.writer().unwrap();
    let mut outcomes = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let sketch = sketcher.sketch(text).unwrap();
        let key = format!("{i:03}");
        let expected = {
            // The documents committed so far; the batch is still empty.
            index.snapshot().near(&sketch).limit(1).run().unwrap().hits.pop()
        };
        let admitted = writer.admit(key.as_str(), &sketch).unwrap();
        assert_eq!(admitted, expected.map_or(Admitted::New, Admitted::Duplicate), "{i}");
        outcomes.push(admitted);
        writer.commit().unwrap();
        if i == 120 {
            writer.flush().unwrap();
        }
    }
    assert!(outcomes.iter().any(|one| matches!(one, Admitted::Duplicate(_))));
    writer.put("empty", &sketcher.sketch("").unwrap()).unwrap();
    writer.commit().unwrap();
    let before = index.snapshot();
    let answers = |snapshot: &Snapshot| -> Vec<String> {
        let asked = texts.iter().map(|text| sketcher.sketch(text).unwrap());
        let mut all: Vec<String> =
            asked.map(|sketch| format!("{:?}", snapshot.near(&sketch).run().unwrap().hits)).collect();
        all.extend(texts.iter().enumerate().map(|(i, text)| {
            let sketch = sketcher.sketch(text).unwrap();
            let mut keys = snapshot.same_feature(i % 8, sketch.features()[i % 8]).unwrap();
            keys.sort();
            format!("{keys:?} {:?}", snapshot.get(format!("{i:03}").as_str()).unwrap())
        }));
        all
    };
    let expected = answers(&before);
    assert!(before.logged_documents() > 70);
    writer.compact().unwrap();
    assert_eq!(index.snapshot().logged_documents(), 0);
    assert_eq!(answers(&index.snapshot()), expected);
    assert_eq!(answers(&before), expected);
}

#[test]
fn failing_operation_leaves_a_logged_commit_complete_or_absent() {
    let (mut points, mut new) = (0, 0);
    for way in 0..ways().count() {
        for fails_at in 1.. {
            let (_dir, path, all) = logged();
            let before = all.last().unwrap().clone();
            let mut states = vec![before.clone()];
            let faults = Arc::new(Faults { fails_at, ..ways().nth(way).unwrap() });
            let done = (|| {
                let index = Index::open_with(Arc::new(FaultyVfs(Arc::clone(&faults))), &path)?;
                let mut writer = index.writer_with(WriterOptions::default().background_merges(false))?;
                for commit in 10..13 {
                    writer.put(commit, Fingerprint(commit))?;
                    let mut next = states.last().unwrap().clone();
                    next.insert(commit, commit);
                    states.push(next);
                    writer.commit()?;
                }
                writer.flush()?;
                writer.commit_with(b"end")
            })();
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                done.unwrap();
                break;
            };
            points += 1;
            let case = format!("{failed}, way {way}: {done:?}");
            let index = Index::open(&path).unwrap();
            let found = documents(&index.snapshot());
            let place = states.iter().position(|state| *state == found);
            assert!(place.is_some_and(|place| place + 2 >= states.len()), "{case}: {found:?}");
            new += usize::from(place == Some(states.len() - 1));
            // The next writer continues after these commits.
            let mut writer = index.writer().unwrap();
            put(&mut writer, 99, 99);
            writer.commit().unwrap();
            drop(writer);
            let mut expected = found;
            expected.insert(99, 99);
            assert_eq!(documents(&Index::open(&path).unwrap().snapshot()), expected, "{case}");
        }
    }
    println!("{points} fault points; the newest state was kept after {new}");
    assert!(points > 100 && new > 0, "{points} {new}");
}

#[test]
fn background_merges_limit_the_number_of_segments() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().memory(1 << 14)).unwrap();
    let (mut random, mut expected, mut max) = (Random(3), Documents::new(), 0);
    for _ in 0..400 {
        for _ in 0..60 {
            let key = random.below(4000) as u64;
            if random.below(4) == 0 {
                writer.delete(key).unwrap();
                expected.remove(&key);
            } else {
                let value = random.next();
                put(&mut writer, key, value);
                expected.insert(key, value);
            }
        }
        writer.commit().unwrap();
        max = max.max(index.snapshot().entries().len());
        let key = random.below(4000) as u64;
        let found = index.snapshot().get(key).unwrap().map(|record| record.fingerprint.unwrap().0);
        assert_eq!(found, expected.get(&key).copied());
    }
    writer.wait_for_merge().unwrap();
    while writer.merge_step().unwrap() {}
    assert!(index.snapshot().entries().len() <= 8, "{}", index.snapshot().entries().len());
    assert_eq!(documents(&index.snapshot()), expected);
    drop(writer);
    assert_eq!(documents(&Index::open(&path).unwrap().snapshot()), expected);
    let findings = twindex::store::verify::verify(&twindex::sys::RealVfs, &path, |_| ());
    assert!(findings.problems.is_empty(), "{findings:?}");
    println!("at most {max} segments");
}

#[test]
fn documents_deleted_during_a_merge_stay_deleted() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut expected = Documents::new();
    for part in 0..6 {
        for key in part * 10..part * 10 + 10 {
            put(&mut writer, key, key * 77);
            expected.insert(key, key * 77);
        }
        writer.commit().unwrap();
        writer.flush().unwrap();
    }
    // The merge is so slow that the next commits finish before it.
    writer.set_options(writer.options().merge_rate(Some(4000)).background_merges(true)).unwrap();
    put(&mut writer, 1000, 5);
    expected.insert(1000, 5);
    writer.commit().unwrap();
    for key in 0..10 {
        writer.delete(key).unwrap();
        expected.remove(&key);
    }
    put(&mut writer, 10, 6); // a document of the second segment
    expected.insert(10, 6);
    writer.commit().unwrap();
    writer.flush().unwrap();
    assert_eq!(documents(&index.snapshot()), expected);
    let before = index.snapshot().entries().len();
    writer.wait_for_merge().unwrap();
    assert!(index.snapshot().entries().len() < before, "nothing was merged");
    assert_eq!(documents(&index.snapshot()), expected);
    drop(writer);
    assert_eq!(documents(&Index::open(&path).unwrap().snapshot()), expected);
}

#[test]
fn index_opens_after_many_writers_without_documents() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    (0..100).for_each(|key| put(&mut writer, key, key));
    writer.commit().unwrap();
    writer.flush().unwrap();
    drop(writer);
    // Each writer has its own log with deletes and a payload. A manifest cannot name this many logs.
    for round in 0..80_u64 {
        let mut writer = index.writer().unwrap();
        writer.commit_with(&round.to_le_bytes()).unwrap();
        writer.delete(round).unwrap();
        writer.commit().unwrap();
        drop(writer);
        let opened = Index::open(&path).unwrap().snapshot();
        assert_eq!(opened.payload(), Some(&round.to_le_bytes()[..]));
        assert_eq!(opened.documents(), 99 - round);
    }
}

#[test]
fn previous_generation_opens_only_on_request_if_newest_is_damaged() {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    let logged = writer.commit().unwrap();
    put(&mut writer, 2, 2);
    writer.commit().unwrap();
    writer.flush().unwrap();
    let newest = index.snapshot().manifest().generation;
    drop((writer, index));
    let manifest = path.join(format!("MANIFEST-{newest:06}"));
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[70] ^= 1;
    std::fs::remove_file(&manifest).unwrap();
    std::fs::write(&manifest, &bytes).unwrap();
    assert!(Index::open(&path).unwrap_err().is_corruption());
    let before = Index::options().at_generation(logged).open(&path).unwrap();
    assert_eq!(documents(&before.snapshot()), Documents::from([(1, 1), (2, 2)]), "its log is still there");
    assert!(!before.refresh().unwrap());
    assert!(matches!(before.writer(), Err(Error::Invalid(_))));
    let copy = dir.path().join("copy");
    before.copy_to(&copy).unwrap();
    let copy = Index::open(&copy).unwrap();
    put(&mut copy.writer().unwrap(), 3, 3);
    assert_eq!(documents(&copy.snapshot()), Documents::from([(1, 1), (2, 2)]));
    let absent = Index::options().at_generation(77).open(&path).unwrap_err();
    assert!(absent.to_string().contains("MANIFEST-000077"), "{absent}");
}

#[test]
fn copies_are_independent_and_merged_shards_equal_a_single_index() {
    let (dir, _path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    for key in 0..300 {
        put(&mut writer, key, key * key);
    }
    writer.commit_with(b"three hundred").unwrap();
    writer.flush().unwrap();
    writer.delete(7).unwrap();
    put(&mut writer, 8, 1);
    writer.commit().unwrap();
    let copied = dir.path().join("copied");
    index.copy_to(&copied).unwrap();
    assert!(matches!(index.copy_to(&copied), Err(Error::AlreadyExists { .. })));
    let expected = documents(&index.snapshot());
    put(&mut writer, 9, 1);
    writer.compact().unwrap();
    let copy = Index::open(&copied).unwrap();
    assert_eq!(documents(&copy.snapshot()), expected);
    assert_eq!(copy.snapshot().payload(), Some(&b"three hundred"[..]));
    assert_ne!(copy.snapshot().uuid(), index.snapshot().uuid(), "files of one are none of the other's");
    assert!(twindex::store::verify::verify(&twindex::sys::RealVfs, &copied, |_| ()).problems.is_empty());

    let shard = |name: &str, keys: std::ops::Range<u64>, plus: u64| {
        let index = Index::create(dir.path().join(name), raw()).unwrap();
        let mut writer = index.writer().unwrap();
        keys.for_each(|key| put(&mut writer, key, key * 3 + plus));
        writer.commit().unwrap();
        drop(writer);
        index
    };
    let shards = [shard("a", 0..100, 0), shard("b", 90..200, 0), shard("c", 300..310, 0)];
    let joined = dir.path().join("joined");
    let merged = Index::merge(&joined, &shards, OnConflict::Refuse, 1 << 20).unwrap();
    assert_eq!((merged.documents, merged.repeated, merged.conflicts), (210, 10, 0));
    let built = Index::create(dir.path().join("built"), raw()).unwrap();
    let mut writer = built.writer().unwrap();
    (0..200).chain(300..310).for_each(|key| put(&mut writer, key, key * 3));
    writer.compact().unwrap();
    let joined = Index::open(&joined).unwrap();
    let salts =
        |index: &Index| index.snapshot().entries().iter().map(|e| (e.digest, e.salt)).collect::<Vec<_>>();
    assert_eq!(salts(&joined), salts(&built));
    let other = [shards[0].clone(), shard("d", 99..101, 5)];
    let refused = Index::merge(dir.path().join("no"), &other, OnConflict::Refuse, 1 << 20).unwrap_err();
    assert!(refused.to_string().contains("`99`"), "{refused}");
    assert!(!dir.path().join("no").exists());
    for (policy, value) in [(OnConflict::First, 99 * 3), (OnConflict::Last, 99 * 3 + 5)] {
        let path = dir.path().join(format!("{policy:?}"));
        let merged = Index::merge(&path, &other, policy, 1 << 20).unwrap();
        assert_eq!((merged.documents, merged.conflicts), (101, 1));
        assert_eq!(documents(&Index::open(&path).unwrap().snapshot())[&99], value);
    }
}

#[test]
fn one_sync_makes_many_commits_and_their_payloads_durable() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().durability(Durability::None)).unwrap();
    for key in 0..100_u64 {
        put(&mut writer, key, key);
        writer.commit_with(&key.to_le_bytes()).unwrap();
    }
    assert_eq!(index.snapshot().documents(), 100, "this process sees all of them");
    writer.sync().unwrap();
    let other = Index::open(&path).unwrap();
    assert_eq!(other.snapshot().documents(), 100);
    assert_eq!(other.snapshot().payload(), Some(&99_u64.to_le_bytes()[..]));
    let refused = writer.commit_with(&vec![0; (1 << 16) + 1]).unwrap_err();
    assert!(matches!(refused, Error::Limit { .. }), "{refused:?}");
    put(&mut writer, 1000, 1);
    drop(writer);
    let mut writer = index.writer().unwrap();
    assert!(!writer.contains(1000).unwrap(), "what was not committed is gone");
    writer.flush().unwrap();
    assert_eq!(Index::open(&path).unwrap().snapshot().payload(), Some(&99_u64.to_le_bytes()[..]));
}

/// One sync makes many commits durable, and readers see that they are durable. A second sync writes nothing.
#[test]
fn all_processes_see_that_synced_commits_are_durable() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    put(&mut writer, 0, 0);
    let first = writer.commit().unwrap();
    writer.set_options(writer.options().durability(Durability::Batch)).unwrap();
    let reader = Index::open(&path).unwrap();
    for key in 1..4 {
        put(&mut writer, key, key);
        writer.commit().unwrap();
    }
    let last = index.snapshot().generation();
    assert!(reader.refresh().unwrap());
    let durable = |index: &Index| (index.snapshot().generation(), index.snapshot().durable_commit());
    assert_eq!((durable(&index), durable(&reader)), ((last, first), (last, first)));
    let held = reader.snapshot();

    put(&mut writer, 9, 9); // belongs to the next batch, which `sync` does not commit
    writer.sync().unwrap();
    assert!(!reader.refresh().unwrap(), "no other commit is there");
    assert_eq!((durable(&index), durable(&reader)), ((last, last), (last, last)));
    assert_eq!(durable(&Index::open(&path).unwrap()), (last, last));
    assert_eq!((held.durable_commit(), index.snapshot().documents()), (first, 4));
    let length = log_of(&path).metadata().unwrap().len();
    writer.sync().unwrap();
    assert_eq!(log_of(&path).metadata().unwrap().len(), length, "all is said");

    assert!(writer.commit().unwrap() > last);
    drop(writer);
    assert!(reader.refresh().unwrap());
    assert_eq!(documents(&reader.snapshot()), Documents::from([(0, 0), (1, 1), (2, 2), (3, 3), (9, 9)]));
}

/// Each put adds a row and removes one, so the number of rows never reaches a multiple at which the writer would check
/// the size of the memtable.
#[test]
fn memtable_is_bounded_in_a_batch_of_expired_documents() {
    let params = Params::builder().u64_keys().simhash(3).expire_after(10).build().unwrap();
    let (_dir, path, index) = created(params);
    let mut writer = index
        .writer_with(WriterOptions::default().background_merges(false).memtable(1 << 14, usize::MAX))
        .unwrap();
    let add = |writer: &mut Writer, key: u64, stamp: u64| {
        writer.put(key, Document::from(Fingerprint(key)).with_stamp(stamp)).unwrap();
    };
    add(&mut writer, 0, 1000);
    writer.commit().unwrap();
    let segments = || {
        let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "seg")).count()
    };
    for key in 1..(1 << 14) + 2048 {
        add(&mut writer, key, 5);
    }
    assert_eq!(segments(), 1, "the full memtable became a segment in the middle of the batch");
    writer.commit().unwrap();
    assert_eq!(index.snapshot().documents(), 1);
}

/// A log of only payloads has no rows, so the writer must check its length separately.
#[test]
fn log_of_only_payloads_is_replaced_at_its_size_limit() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().durability(Durability::Batch)).unwrap();
    let mut longest = 0;
    for commit in 0..4200_u32 {
        let mut payload = vec![0; 1 << 16];
        payload[..4].copy_from_slice(&commit.to_le_bytes());
        writer.commit_with(&payload).unwrap();
        if commit % 50 == 0 {
            let logs = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
            let logs = logs.filter(|entry| entry.file_name().to_str().unwrap().starts_with("LOG-"));
            longest = longest.max(logs.map(|entry| entry.metadata().unwrap().len()).sum());
        }
    }
    assert!((200 << 20..260 << 20).contains(&longest), "{longest}");
    drop(writer);
    let snapshot = Index::open(&path).unwrap().snapshot();
    assert_eq!(snapshot.payload().unwrap()[..4], 4199_u32.to_le_bytes());
    let bytes: u64 =
        std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 20 << 20, "{bytes}");
}

#[test]
fn only_a_long_open_reports_its_progress() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    for _ in 0..8 * 16 {
        writer.commit_with(&vec![7; 1 << 16]).unwrap();
    }
    drop(writer);
    Index::options().progress(|_, _| panic!("eight megabytes are read in no time")).open(&path).unwrap();
    let slow = Faults { read_takes: Duration::from_millis(200), ..Faults::default() };
    let mut last = (0, 0);
    let progress = |read, all| {
        assert!(last.0 <= read && read <= all, "{last:?}, then {read} of {all}");
        last = (read, all);
    };
    Index::options().progress(progress).open_with(Arc::new(FaultyVfs(Arc::new(slow))), &path).unwrap();
    let length = log_of(&path).metadata().unwrap().len();
    assert!(last.1 == length && last.0 > length / 2, "{last:?} of {length}");
}
