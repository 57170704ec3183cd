//! Whatever is done to an index, in any order, it answers as a map and a scan of it do: random operations, flushes,
//! merges, compactions, reopenings, writers that end in the middle of a batch, snapshots that are held, and a reader
//! that only refreshes, against a `BTreeMap` and brute force.

mod support {
    #![allow(dead_code, unreachable_pub, reason = "a part of what other tests share")]
    pub mod model;
    pub mod random;
}

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::model::ModelVfs;
use twindex::{Admitted, Durability, Error, Fingerprint, Index, Params, Snapshot, Writer};

type Documents = BTreeMap<u64, u64>;

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u64),
    Delete(u64),
    Admit(u64, u64),
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
    NewWriter,
    Reopen,
    Snapshot,
    Near(u64, u32),
}

/// Numbers that lie near each other, and repeat.
fn fingerprint() -> impl Strategy<Value = u64> {
    (0..3_u64, 0..64_u32, 0..64_u32, any::<bool>()).prop_map(|(center, a, b, near)| {
        let center = center.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if near { center ^ 1 << a ^ 1 << b } else { center }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..24_u64;
    let durability = prop_oneof![Just(Durability::None), Just(Durability::Batch), Just(Durability::Sync)];
    prop_oneof![
        10 => (key(), fingerprint()).prop_map(|(key, value)| Step::Put(key, value)),
        5 => key().prop_map(Step::Delete),
        6 => (key(), fingerprint()).prop_map(|(key, value)| Step::Admit(key, value)),
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
        1 => Just(Step::NewWriter),
        2 => Just(Step::Reopen),
        2 => Just(Step::Snapshot),
        5 => (fingerprint(), 0..11_u32).prop_map(|(value, within)| Step::Near(value, within)),
    ]
}

/// All that a snapshot says, by several ways to ask it.
fn check(snapshot: &Snapshot, expected: &Documents) {
    assert_eq!(snapshot.documents(), expected.len() as u64);
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        })
        .unwrap();
    assert_eq!(keys, expected.keys().copied().collect::<Vec<_>>());
    for key in 0..24 {
        let record = snapshot.get(key).unwrap();
        assert_eq!(
            record.map(|record| record.fingerprint.unwrap().0),
            expected.get(&key).copied(),
            "key {key}"
        );
    }
}

fn near(documents: &Documents, value: u64, within: u32) -> Vec<(u32, u64)> {
    let mut near: Vec<(u32, u64)> = documents
        .iter()
        .map(|(&key, &other)| ((value ^ other).count_ones(), key))
        .filter(|&(distance, _)| distance <= within)
        .collect();
    near.sort_unstable();
    near
}

fn found(snapshot: &Snapshot, value: u64, within: u32) -> Vec<(u32, u64)> {
    let hits = snapshot.within(Fingerprint(value), within).run().unwrap().hits;
    hits.iter().map(|hit| (hit.distance.unwrap(), hit.key.as_u64().unwrap())).collect()
}

fn writer(index: &Index) -> Writer {
    let mut writer = index.writer().unwrap();
    writer.set_background_merges(false); // threads would make a case another one each time
    writer
}

fn run(steps: &[Step]) {
    let vfs = ModelVfs::default();
    let path = Path::new("/index");
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let mut index = Index::create_with(Arc::new(vfs.clone()), path, params).unwrap();
    let reader = Index::open_with(Arc::new(vfs.clone()), path).unwrap();
    let mut w = Some(writer(&index));
    let (mut committed, mut now) = (Documents::new(), Documents::new());
    let (mut payload, mut held): (Option<Vec<u8>>, Vec<(Snapshot, Documents)>) = (None, Vec::new());
    let mut unwritten = false; // commits of which a reader need not know yet
    let mut durability = Durability::Sync;
    for step in steps {
        let one = w.as_mut().unwrap();
        match *step {
            Step::Put(key, value) => {
                one.put_fingerprint(key, Fingerprint(value)).unwrap();
                now.insert(key, value);
            }
            Step::Delete(key) => {
                one.delete(key).unwrap();
                now.remove(&key);
            }
            Step::Admit(key, value) => {
                let expected = match near(&now, value, 3).first() {
                    _ if now.contains_key(&key) => None,
                    Some(&(distance, of)) => Some(Some((distance, of))),
                    None => Some(None),
                };
                let admitted = one.admit_fingerprint(key, Fingerprint(value)).unwrap();
                let found = match admitted {
                    Admitted::New => Some(None),
                    Admitted::Duplicate(hit) => {
                        Some(Some((hit.distance.unwrap(), hit.key.as_u64().unwrap())))
                    }
                    _ => None,
                };
                assert_eq!(found, expected, "admit {key} {value:x}");
                now.insert(key, value);
            }
            Step::Commit => {
                one.commit().unwrap();
                committed.clone_from(&now);
                unwritten = durability == Durability::None;
            }
            Step::CommitWith(byte) => {
                one.commit_with(&[byte; 3]).unwrap();
                payload = Some(vec![byte; 3]);
                committed.clone_from(&now);
                unwritten = durability == Durability::None;
            }
            Step::Promise(of) => {
                one.set_durability(of);
                durability = of;
            }
            Step::Sync => {
                match one.sync() {
                    Ok(()) => unwritten = false,
                    // What the writer before has left can be synced between batches only.
                    Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error}"),
                }
            }
            Step::Memory(small) => one.set_memory(if small { 400 } else { 1 << 20 }),
            Step::Logged(logged) => one.set_logged(logged),
            Step::Flush if now == committed => drop(one.flush()),
            Step::Merge if now == committed => drop(one.merge_step()),
            Step::Gc if now == committed => drop(one.gc()),
            Step::Flush | Step::Merge | Step::Gc => {}
            Step::Compact => {
                one.compact().unwrap();
                committed.clone_from(&now);
                unwritten = false;
            }
            Step::NewWriter | Step::Reopen => {
                drop(w.take());
                now.clone_from(&committed);
                if matches!(step, Step::Reopen) {
                    index = Index::open_with(Arc::new(vfs.clone()), path).unwrap();
                }
                w = Some(writer(&index));
                (durability, unwritten) = (Durability::Sync, false);
            }
            Step::Snapshot => held.push((index.snapshot(), committed.clone())),
            Step::Near(value, within) => {
                assert_eq!(found(&index.snapshot(), value, within), near(&committed, value, within));
            }
        }
        check(&index.snapshot(), &committed);
        assert_eq!(index.snapshot().payload(), payload.as_deref());
        if !unwritten {
            reader.refresh().unwrap();
            check(&reader.snapshot(), &committed);
            assert_eq!(reader.snapshot().generation(), index.snapshot().generation());
        }
    }
    for (snapshot, documents) in &held {
        check(snapshot, documents);
        assert_eq!(found(snapshot, 0, 3), near(documents, 0, 3));
    }
    w.unwrap().compact().map(drop).unwrap();
    let snapshot = Index::open_with(Arc::new(vfs), path).unwrap().snapshot();
    check(&snapshot, &now);
    assert!(snapshot.entries().len() <= 1);
}

#[test]
fn an_index_answers_as_a_map_and_a_scan_whatever_is_done_to_it() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let steps = proptest::collection::vec(step(), 1..60);
    runner
        .run(&steps, |steps| {
            run(&steps);
            Ok(())
        })
        .unwrap();
}
