//! Tests that after any sequence of operations an index gives the same results as a `BTreeMap` and brute force. The
//! operations are random: changes, flushes, merges, compactions, reopenings, dropped and rolled back batches, held
//! snapshots, and a reader that only refreshes. They run both with and without values and stamps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::model::ModelVfs;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use twindex::{Admitted, Durability, Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions};

/// The age at which a document expires.
const AGE: u64 = 10;

/// A document of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Document {
    fingerprint: u64,
    value: u8,
    stamp: u64,
}

type Documents = BTreeMap<u64, Document>;

/// A document to add: its fingerprint, its value, and the offset of its stamp from the highest stamp, plus 16.
#[derive(Clone, Copy, Debug)]
struct NewDocument(u64, u8, u64);

impl NewDocument {
    fn at(self, newest: Option<u64>) -> Document {
        let stamp = newest.map_or(1000, |newest| (newest + self.2).saturating_sub(16));
        Document { fingerprint: self.0, value: self.1, stamp }
    }
}

fn expired(document: &Document, now: Option<u64>) -> bool {
    now.is_some_and(|now| now.saturating_sub(document.stamp) >= AGE)
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, NewDocument),
    Delete(u64),
    Admit(u64, NewDocument),
    Jump(u64, NewDocument),
    Commit,
    CommitWith(u8),
    Promise(Durability),
    Sync,
    Memory(bool),
    Logged(bool),
    Flush,
    Merge,
    Compact,
    Gc,
    Rollback,
    NewWriter,
    Reopen,
    Snapshot,
    Near(u64, u32),
}

/// Generates fingerprints that are near each other or equal.
fn fingerprint() -> impl Strategy<Value = u64> {
    (0..3_u64, 0..64_u32, 0..64_u32, any::<bool>()).prop_map(|(center, a, b, near)| {
        let center = center.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if near { center ^ 1 << a ^ 1 << b } else { center }
    })
}

fn given() -> impl Strategy<Value = NewDocument> {
    // Most stamps differ from the highest one by at most 1. Some are late, and some of these have expired.
    let ahead = prop_oneof![6 => 15..18_u64, 2 => 6..16_u64, 1 => 0..27_u64];
    (fingerprint(), any::<u8>(), ahead)
        .prop_map(|(fingerprint, value, ahead)| NewDocument(fingerprint, value, ahead))
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..24_u64;
    let durability = prop_oneof![Just(Durability::None), Just(Durability::Batch), Just(Durability::Sync)];
    prop_oneof![
        10 => (key(), given()).prop_map(|(key, given)| Step::Put(key, given)),
        5 => key().prop_map(Step::Delete),
        6 => (key(), given()).prop_map(|(key, given)| Step::Admit(key, given)),
        1 => (key(), given()).prop_map(|(key, given)| Step::Jump(key, given)),
        6 => Just(Step::Commit),
        1 => any::<u8>().prop_map(Step::CommitWith),
        1 => durability.prop_map(Step::Promise),
        1 => Just(Step::Sync),
        1 => any::<bool>().prop_map(Step::Memory),
        1 => any::<bool>().prop_map(Step::Logged),
        2 => Just(Step::Flush),
        2 => Just(Step::Merge),
        1 => Just(Step::Compact),
        1 => Just(Step::Gc),
        2 => Just(Step::Rollback),
        1 => Just(Step::NewWriter),
        2 => Just(Step::Reopen),
        2 => Just(Step::Snapshot),
        5 => (fingerprint(), 0..11_u32).prop_map(|(value, within)| Step::Near(value, within)),
    ]
}

/// Checks that the snapshot has the expected time, and exactly the keys and records of the model.
fn check(snapshot: &Snapshot, expected: &Documents, now: Option<u64>) {
    assert_eq!(snapshot.now(), now);
    let kept = snapshot.params().values;
    assert_eq!(snapshot.documents(), expected.len() as u64);
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        })
        .unwrap();
    assert_eq!(keys, expected.keys().copied().collect::<Vec<_>>());
    let keys = (0..24).map(|at| at * 7 % 24);
    for (key, record) in keys.clone().zip(snapshot.get_many(keys).unwrap()) {
        assert_eq!(snapshot.get(key).unwrap(), record, "key {key}");
        assert_eq!(
            record.as_ref().map(|record| record.fingerprint.unwrap().0),
            expected.get(&key).map(|document| document.fingerprint),
            "key {key}"
        );
        if let (Some(record), Some(document), true) = (record, expected.get(&key), kept) {
            assert_eq!(
                (record.value, record.stamp),
                (Some(value(document)), Some(document.stamp)),
                "key {key}"
            );
        }
    }
}

fn near(documents: &Documents, value: u64, within: u32) -> Vec<(u32, u64)> {
    let mut near: Vec<(u32, u64)> = documents
        .iter()
        .map(|(&key, other)| ((value ^ other.fingerprint).count_ones(), key))
        .filter(|&(distance, _)| distance <= within)
        .collect();
    near.sort_unstable();
    near
}

fn found(snapshot: &Snapshot, value: u64, within: u32) -> Vec<(u32, u64)> {
    let hits = snapshot.within(Fingerprint(value), within).run().unwrap().hits;
    hits.iter().map(|hit| (hit.distance.unwrap(), hit.key.as_u64().unwrap())).collect()
}

/// Opens a writer. If `beside`, threads flush and merge segments concurrently; otherwise a case is deterministic.
fn writer(index: &Index, beside: bool) -> Writer {
    let mut writer = index.writer_with(WriterOptions::default().background_merges(beside)).unwrap();
    if beside {
        writer.set_options(writer.options().memtable(6, 1 << 20)).unwrap();
    }
    writer
}

/// Returns the value that the index stores for a document, if it stores values.
fn value(document: &Document) -> Vec<u8> {
    vec![document.value; usize::from(document.value % 4)]
}

#[allow(clippy::too_many_lines, reason = "a step after the other")]
fn run(steps: &[Step], keeps: bool, beside: bool) {
    let vfs = ModelVfs::default();
    let path = Path::new("/index");
    let params = Params::builder().u64_keys().simhash(3);
    let params = if keeps { params.values().expire_after(AGE) } else { params }.build().unwrap();
    // The highest committed stamp, and the highest stamp including the uncommitted batch.
    let (mut time, mut newest): (Option<u64>, Option<u64>) = (None, None);
    let mut index = Index::create_with(Arc::new(vfs.clone()), path, params).unwrap();
    let reader = Index::open_with(Arc::new(vfs.clone()), path).unwrap();
    let mut w = Some(writer(&index, beside));
    let (mut committed, mut now) = (Documents::new(), Documents::new());
    let (mut payload, mut held): (Option<Vec<u8>>, Vec<_>) = (None, Vec::new());
    let mut unwritten = false; // whether there are commits that the reader may not see yet
    let mut durability = Durability::Sync;
    for step in steps {
        let one = w.as_mut().unwrap();
        match *step {
            Step::Jump(key, given) => {
                let document = given.at(newest);
                let fingerprint = Fingerprint(document.fingerprint);
                if let Some(newest) = newest.filter(|_| keeps) {
                    let refused =
                        one.put(key, twindex::Document::from(fingerprint).with_stamp(newest + AGE + 1));
                    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
                }
            }
            Step::Put(key, given) => {
                let document = given.at(newest);
                let fingerprint = Fingerprint(document.fingerprint);
                if keeps {
                    let value = value(&document);
                    let stamped =
                        twindex::Document::from(fingerprint).with_value(&value).with_stamp(document.stamp);
                    one.put(key, stamped).unwrap();
                    newest = newest.max(Some(document.stamp));
                } else {
                    one.put(key, fingerprint).unwrap();
                }
                now.insert(key, document);
            }
            Step::Delete(key) => {
                one.delete(key).unwrap();
                now.remove(&key);
            }
            Step::Admit(key, given) => {
                let document = given.at(newest);
                let value = document.fingerprint;
                if keeps {
                    newest = newest.max(Some(document.stamp));
                    now.retain(|_, document| !expired(document, newest));
                }
                let is_late = keeps && expired(&document, newest);
                let others = near(&now, value, 3);
                let expected = match others.iter().find(|(_, of)| *of != key) {
                    _ if is_late => ("expired", None),
                    other if now.contains_key(&key) => ("known", other.copied()),
                    other => ("new", other.copied()),
                };
                let admitted = if keeps {
                    let bytes = self::value(&document);
                    let stamped = twindex::Document::from(Fingerprint(value)).with_value(&bytes);
                    one.admit(key, stamped.with_stamp(document.stamp))
                } else {
                    one.admit(key, Fingerprint(value))
                };
                let admitted = admitted.unwrap();
                let of = |hit: &twindex::Hit| Some((hit.distance.unwrap(), hit.key.as_u64().unwrap()));
                let found = match &admitted {
                    Admitted::New => ("new", None),
                    Admitted::Duplicate(hit) => ("new", of(hit)),
                    Admitted::Updated => ("known", None),
                    Admitted::Known { near } => ("known", of(near)),
                    Admitted::Expired => ("expired", None),
                    other => panic!("{other:?}"),
                };
                assert_eq!(found, expected, "admit {key} {value:x}");
                if !is_late {
                    now.insert(key, document);
                }
            }
            Step::Commit => {
                one.commit().unwrap();
                time = newest;
                now.retain(|_, document| !keeps || !expired(document, time));
                committed.clone_from(&now);
                unwritten = durability == Durability::None;
            }
            Step::CommitWith(byte) => {
                one.commit_with(&[byte; 3]).unwrap();
                payload = Some(vec![byte; 3]);
                time = newest;
                now.retain(|_, document| !keeps || !expired(document, time));
                committed.clone_from(&now);
                unwritten = durability == Durability::None;
            }
            Step::Promise(of) => {
                one.set_options(one.options().durability(of)).unwrap();
                durability = of;
            }
            Step::Sync => {
                match one.sync() {
                    Ok(()) => unwritten = false,
                    // Unsynced commits of the previous writer can be synced only while the batch is empty.
                    Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error}"),
                }
            }
            Step::Memory(small) => {
                one.set_options(one.options().memory(if small { 400 } else { 1 << 20 })).unwrap();
            }
            Step::Logged(logged) => one.set_options(one.options().logged(logged)).unwrap(),
            Step::Flush if now == committed => drop(one.flush()),
            Step::Merge if now == committed => drop(one.merge_step()),
            Step::Gc if now == committed => drop(one.gc()),
            Step::Flush | Step::Merge | Step::Gc => {}
            Step::Compact => {
                one.compact().unwrap();
                time = newest;
                now.retain(|_, document| !keeps || !expired(document, time));
                committed.clone_from(&now);
                unwritten = false;
            }
            Step::Rollback => {
                one.rollback().unwrap();
                now.clone_from(&committed);
                newest = time;
            }
            Step::NewWriter | Step::Reopen => {
                drop(w.take());
                now.clone_from(&committed);
                newest = time;
                if matches!(step, Step::Reopen) {
                    index = Index::open_with(Arc::new(vfs.clone()), path).unwrap();
                }
                w = Some(writer(&index, beside));
                (durability, unwritten) = (Durability::Sync, false);
            }
            Step::Snapshot => held.push((index.snapshot(), committed.clone(), time)),
            Step::Near(value, within) => {
                assert_eq!(found(&index.snapshot(), value, within), near(&committed, value, within));
            }
        }
        // Expired documents are removed only now, because a document that has already expired when it is put still
        // replaces an older one.
        now.retain(|_, document| !keeps || !expired(document, time));
        check(&index.snapshot(), &committed, time);
        assert_eq!(index.snapshot().payload(), payload.as_deref());
        if !unwritten {
            reader.refresh().unwrap();
            check(&reader.snapshot(), &committed, time);
            assert_eq!(reader.snapshot().generation(), index.snapshot().generation());
        }
    }
    for (snapshot, documents, then) in &held {
        check(snapshot, documents, *then);
        assert_eq!(found(snapshot, 0, 3), near(documents, 0, 3));
    }
    w.unwrap().compact().map(drop).unwrap();
    now.retain(|_, document| !keeps || !expired(document, newest));
    let snapshot = Index::open_with(Arc::new(vfs), path).unwrap().snapshot();
    check(&snapshot, &now, newest);
    assert!(snapshot.entries().len() <= 1);
}

#[test]
fn index_agrees_with_map_and_scan_after_any_operations() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 1..60);
    runner
        .run(&steps, |steps| {
            run(&steps, false, false);
            Ok(())
        })
        .unwrap();
}

#[test]
fn index_with_background_flushes_agrees_with_map_and_scan() {
    let config = Config { cases: 1500, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 1..80);
    runner
        .run(&(steps, any::<bool>()), |(steps, keeps)| {
            run(&steps, keeps, true);
            Ok(())
        })
        .unwrap();
}

#[test]
fn index_with_expiry_agrees_with_map_and_scan() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 1..60);
    runner
        .run(&steps, |steps| {
            run(&steps, true, false);
            Ok(())
        })
        .unwrap();
}

#[test]
fn document_deleted_in_its_own_batch_still_advances_the_time() {
    run(&[Step::Logged(false), Step::Put(13, NewDocument(0, 0, 15)), Step::Delete(13)], true, false);
    run(
        &[Step::Logged(false), Step::Put(13, NewDocument(0, 0, 15)), Step::Delete(13), Step::Commit],
        true,
        false,
    );
}
