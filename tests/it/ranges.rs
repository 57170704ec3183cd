//! Tests ranges of keys over segments and memtables, and the queries and deletes of a writer in the middle of a batch.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use twindex::{Document, Error, Fingerprint, Index, Keys, MemoryVfs, Params, Writer, WriterOptions};

use crate::support::Random;

type Documents = BTreeMap<Vec<u8>, u64>;

fn params() -> Params {
    Params::builder().simhash(3).values().build().unwrap()
}

fn created(params: Params) -> (MemoryVfs, Index) {
    let vfs = MemoryVfs::default();
    let index = Index::create_with(Arc::new(vfs.clone()), Path::new("/index"), params).unwrap();
    (vfs, index)
}

fn taken(keys: Keys) -> Vec<Vec<u8>> {
    keys.map(|key| key.unwrap().as_bytes().unwrap().to_vec()).collect()
}

/// Returns a key with the common prefix. Some keys contain 0xFF bytes, which have no successor.
fn key(number: u64) -> Vec<u8> {
    let mut key = b"site/".to_vec();
    key.extend((0..=number % 4).map(|place| [0, 7, 254, 255][(number >> (2 * place)) as usize % 4]));
    key.extend_from_slice(format!("{}", number % 97).as_bytes());
    key
}

fn put(writer: &mut Writer, documents: &mut Documents, number: u64) {
    let key = key(number);
    let value = number.to_le_bytes();
    writer.put(&key, Document::from(Fingerprint(number << 20)).with_value(&value)).unwrap();
    documents.insert(key, number << 20);
}

/// Creates an index whose documents are in segments that replace each other's keys, in a frozen memtable, and in the
/// current one.
fn filled() -> (MemoryVfs, Index, Writer, Documents) {
    let (vfs, index) = created(params());
    let mut writer = index.writer().unwrap();
    let mut documents = Documents::new();
    for step in 0..4 {
        for number in 0..3000_u64 {
            if number % 4 >= step {
                put(&mut writer, &mut documents, number * 31 + step * 7);
            } else if number % 5 == 0 {
                writer.delete(&key(number * 31)).unwrap();
                documents.remove(&key(number * 31));
            }
        }
        writer.commit().unwrap();
        if step < 2 {
            writer.flush().unwrap();
        }
    }
    (vfs, index, writer, documents)
}

#[test]
fn ranges_over_segments_and_memtables_equal_ranges_of_a_map() {
    let (_vfs, index, _writer, documents) = filled();
    let snapshot = index.snapshot();
    assert!(snapshot.entries().len() >= 2 && snapshot.logged_documents() > 0);
    let bounds = |number: u64| {
        let key = key(number * 13);
        [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded]
    };
    for number in 0..60 {
        for from in bounds(number) {
            for to in bounds(number * 7 % 61) {
                let is_empty = match (&from, &to) {
                    (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
                    (
                        Bound::Included(from) | Bound::Excluded(from),
                        Bound::Included(to) | Bound::Excluded(to),
                    ) => {
                        from >= to // `BTreeMap::range` panics for such bounds
                    }
                };
                let expected: Vec<Vec<u8>> = if is_empty {
                    let key = |bound: &Bound<Vec<u8>>| match bound {
                        Bound::Included(key) => Some(key.clone()),
                        _ => None,
                    };
                    let same = key(&from).filter(|from| Some(from) == key(&to).as_ref());
                    same.into_iter().filter(|key| documents.contains_key(key)).collect()
                } else {
                    documents.range((from.clone(), to.clone())).map(|(key, _)| key.clone()).collect()
                };
                let range = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                assert_eq!(taken(snapshot.range::<&[u8]>(range).unwrap()), expected);
            }
        }
    }
    for number in 0..200 {
        let key = key(number);
        for length in 0..=key.len() {
            let prefix = &key[..length];
            let expected: Vec<&Vec<u8>> = documents.keys().filter(|key| key.starts_with(prefix)).collect();
            assert!(taken(snapshot.prefix(prefix).unwrap()).iter().eq(expected), "{prefix:?}");
        }
    }
    assert!(taken(snapshot.prefix([255, 255]).unwrap()).is_empty());
}

#[test]
fn records_from_both_ends_equal_those_of_a_map() {
    let (_vfs, index) = created(params());
    let mut writer = index.writer_with(WriterOptions::default().memtable(15_000, 16 << 20)).unwrap();
    let mut documents = Documents::new();
    let mut random = Random(5);
    for step in 0..5 {
        for _ in 0..800 - 60 * step {
            let number = random.next() % 2000;
            if number.is_multiple_of(7) {
                writer.delete(&key(number)).unwrap();
                documents.remove(&key(number));
            } else {
                put(&mut writer, &mut documents, number);
            }
        }
        writer.commit().unwrap();
        if step == 2 {
            writer.flush().unwrap();
        }
    }
    // A thread is still writing the rows of the first commit to a segment when the second one returns.
    for numbers in [2000..17_000, 0..50] {
        numbers.for_each(|number| put(&mut writer, &mut documents, number * 3));
        writer.commit().unwrap();
    }
    let snapshot = index.snapshot();
    assert!(!snapshot.entries().is_empty() && snapshot.logged_documents() > 0);
    for round in 0..60_u64 {
        let from = key(random.next() % 2000);
        let to = if round.is_multiple_of(3) { vec![255] } else { [&from[..], &[254]].concat() };
        let mut expected = documents.range(from.clone()..to.clone());
        let mut keys = snapshot.range(&from[..]..&to[..]).unwrap();
        let mut records = snapshot.range(&from[..]..&to[..]).unwrap().records();
        // Takes runs of keys from either end until all are returned, and twice after that.
        let mut left = 3;
        while left > 0 {
            let is_first = round > 1 && random.next().is_multiple_of(2) || round == 1;
            for _ in 0..=random.next() % 40 {
                let (expected, key, record) = if is_first {
                    (expected.next(), keys.next(), records.next())
                } else {
                    (expected.next_back(), keys.next_back(), records.next_back())
                };
                let key = key.map(Result::unwrap);
                assert_eq!(key.as_ref().and_then(|key| key.as_bytes()), expected.map(|(key, _)| &key[..]));
                let record = record.map(Result::unwrap);
                assert_eq!(record.as_ref().map(|(key, _)| key), key.as_ref());
                if let (Some((key, record)), Some((_, &fingerprint))) = (record, expected) {
                    assert_eq!(record.fingerprint, Some(Fingerprint(fingerprint)));
                    assert_eq!(record.value, Some((fingerprint >> 20).to_le_bytes().to_vec()));
                    assert_eq!(snapshot.get(&key).unwrap(), Some(record));
                }
                left -= i32::from(key.is_none());
            }
        }
    }
    let backwards = snapshot.keys().unwrap().rev().map(|key| key.unwrap().as_bytes().unwrap().to_vec());
    assert!(backwards.eq(documents.keys().rev().cloned()));
}

#[test]
fn numeric_keys_have_ranges_but_refuse_byte_bounds() {
    let (_vfs, index) = created(Params::builder().u64_keys().simhash(3).build().unwrap());
    let mut writer = index.writer().unwrap();
    for key in 0..9000_u64 {
        writer.put(key * 2, Fingerprint(key)).unwrap();
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    let keys = |keys: Keys| keys.map(|key| key.unwrap().as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(keys(snapshot.range(3_u64..10).unwrap()), [4, 6, 8]);
    assert_eq!(keys(snapshot.range(4_u64..=10).unwrap()), [4, 6, 8, 10]);
    assert_eq!(keys(snapshot.range(17_995_u64..).unwrap()), [17_996, 17_998]);
    assert_eq!(keys(snapshot.range::<u64>(..).unwrap()).len(), 9000);
    let backwards = (Bound::Included(10_u64), Bound::Excluded(3_u64));
    assert_eq!(keys(snapshot.range::<u64>(backwards).unwrap()), [0_u64; 0]);
    for refused in [snapshot.range("a"..).map(drop), snapshot.prefix("a").map(drop)] {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    assert!(matches!(writer.delete_prefix("a"), Err(Error::Invalid(_))));
}

#[test]
fn delete_prefix_removes_from_segments_memtables_and_the_batch() {
    let (vfs, index, mut writer, mut documents) = filled();
    let count = |documents: &Documents, prefix: &[u8]| {
        documents.keys().filter(|key| key.starts_with(prefix)).count() as u64
    };
    // Keys of the uncommitted batch are removed, too.
    for number in 100_000..100_040 {
        put(&mut writer, &mut documents, number);
    }
    for prefix in [&b"site/\xff"[..], b"site/\x07\xfe", b"other"] {
        assert_eq!(writer.delete_prefix(prefix).unwrap(), count(&documents, prefix), "{prefix:?}");
        documents.retain(|key, _| !key.starts_with(prefix));
        assert_eq!(writer.delete_prefix(prefix).unwrap(), 0);
    }
    assert_ne!(index.snapshot().documents(), documents.len() as u64, "it is not committed");
    put(&mut writer, &mut documents, 0b1111_1111); // has the prefix of the removed keys
    writer.commit().unwrap();
    for snapshot in
        [index.snapshot(), Index::open_with(Arc::new(vfs), Path::new("/index")).unwrap().snapshot()]
    {
        assert_eq!(snapshot.documents(), documents.len() as u64);
        assert!(taken(snapshot.prefix("").unwrap()).iter().eq(documents.keys()));
    }
    writer.compact().unwrap();
    assert!(taken(index.snapshot().prefix("").unwrap()).iter().eq(documents.keys()));
    assert_eq!(writer.delete_prefix("").unwrap(), documents.len() as u64);
    writer.commit().unwrap();
    assert_eq!(index.snapshot().documents(), 0);
}

#[test]
fn writer_queries_include_the_uncommitted_batch() {
    for logged in [true, false] {
        let (_vfs, index) = created(params());
        let mut writer = index.writer_with(WriterOptions::default().logged(logged)).unwrap();
        let document = |fingerprint| Document::from(Fingerprint(fingerprint)).with_value(b"v");
        writer.put("a", document(0)).unwrap();
        writer.put("b", document(0b1000)).unwrap();
        writer.commit().unwrap();
        writer.put("c", document(0b11)).unwrap();
        writer.put("b", document(u64::MAX)).unwrap();
        writer.delete("none").unwrap();
        let found = writer.near(Fingerprint(0b1), 10).unwrap();
        let found: Vec<_> = found.iter().map(|hit| (hit.key.to_string(), hit.distance.unwrap())).collect();
        assert_eq!(found, [("a".to_owned(), 1), ("c".to_owned(), 1)]);
        assert_eq!(writer.near(Fingerprint(0b1), 1).unwrap().len(), 1);
        let record = writer.get("b").unwrap().unwrap();
        assert_eq!((record.fingerprint, record.value), (Some(Fingerprint(u64::MAX)), Some(b"v".to_vec())));
        assert_eq!(writer.get("d").unwrap(), None);
        let snapshot = index.snapshot();
        assert_eq!(snapshot.get("b").unwrap().unwrap().fingerprint, Some(Fingerprint(0b1000)));
        assert!(matches!(writer.get(7), Err(Error::Invalid(_))));
        writer.commit().unwrap();
        let hits = index.snapshot().within(Fingerprint(0b1), 1).run_with_records().unwrap();
        let hits: Vec<_> = hits
            .iter()
            .map(|(hit, record)| (hit.key.to_string(), record.value.as_deref().unwrap()))
            .collect();
        assert_eq!(hits, [("a".to_owned(), &b"v"[..]), ("c".to_owned(), b"v")]);
        assert_eq!(index.snapshot().get("c").unwrap().unwrap().fingerprint, Some(Fingerprint(0b11)));
    }
}

#[test]
fn open_or_create_opens_existing_index_or_names_differing_parameter() {
    let (vfs, index) = created(params());
    let mut writer = index.writer().unwrap();
    writer.put("a", Fingerprint(1)).unwrap();
    writer.commit().unwrap();
    let open =
        |params, path: &str| Index::open_or_create_with(Arc::new(vfs.clone()), Path::new(path), params);
    assert_eq!(open(params(), "/index").unwrap().snapshot().documents(), 1);
    assert_eq!(open(params(), "/new").unwrap().snapshot().documents(), 0);
    let other = Params::builder().simhash(3).build().unwrap();
    match open(other, "/index").unwrap_err() {
        Error::ParamsMismatch { field, .. } => assert_eq!(field, "values"),
        error => panic!("{error:?}"),
    }
    let other = Params::builder().simhash(4).values().build().unwrap();
    match open(other, "/index").unwrap_err() {
        Error::ParamsMismatch { field, index, given } => {
            assert_eq!((&field[..], &index[..], &given[..]), ("within", "3", "4"));
        }
        error => panic!("{error:?}"),
    }
}

#[test]
fn metrics_count_operations() {
    let (_vfs, index) = created(params());
    assert_eq!(index.metrics().write_amplification(), None);
    let mut writer = index.writer_with(WriterOptions::default().memtable(50, 1 << 20)).unwrap();
    let mut documents = Documents::new();
    for number in 0..400 {
        put(&mut writer, &mut documents, number);
        if number % 10 == 9 {
            writer.commit().unwrap();
        }
    }
    put(&mut writer, &mut documents, 400);
    writer.commit().unwrap();
    writer.wait_for_merge().unwrap();
    let metrics = index.metrics();
    let snapshot = index.snapshot();
    assert_eq!((metrics.documents, metrics.commit), (documents.len() as u64, snapshot.generation()));
    assert_eq!(metrics.segments, snapshot.entries().len() as u64);
    assert_eq!(metrics.logged_documents, snapshot.logged_documents());
    assert_eq!((metrics.commits.count, metrics.commits.failures), (41, 0));
    assert!(metrics.flushes.count >= 2 && metrics.flushes.bytes > 0 && metrics.flushes.seconds > 0.0);
    assert!(metrics.write_amplification().unwrap() > 1.0, "{metrics:?}");
    let segments: u64 = snapshot.entries().iter().map(|entry| entry.length).sum();
    assert!(metrics.disk_bytes >= segments && metrics.memtable_bytes > 0, "{metrics:?}");
    let before = metrics.verified_bytes;
    drop(snapshot.within(Fingerprint(7), 3).run().unwrap());
    let (pages, after) = (segments + 4096 * metrics.segments, index.metrics().verified_bytes);
    assert!(before <= after && after <= pages, "{before} {after} {pages}");
    assert_eq!(index.metrics().cached_bytes, 0, "queries by distance cache nothing");
    let memtable = snapshot.segments().last().unwrap().0.length();
    assert!(snapshot.logged_documents() > 0 && index.metrics().cached_bytes == memtable);
    let first = snapshot.keys().unwrap().next().unwrap().unwrap();
    snapshot.leader(&first, 1000).unwrap();
    let with_leader = index.metrics().cached_bytes;
    assert!(with_leader > memtable);
    for (segment, _) in snapshot.segments() {
        segment.hold_priorities().unwrap();
    }
    let rows: u64 = snapshot.segments().map(|(segment, _)| segment.documents()).sum();
    assert!(index.metrics().cached_bytes >= with_leader.max(memtable + 16 * rows), "{rows}");
    let findings = index.verify();
    assert!(findings.problems.is_empty() && findings.bytes > 0, "{findings:?}");
}
