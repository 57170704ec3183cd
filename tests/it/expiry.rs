//! Tests of values and event time. Documents expire by their stamps, not by a clock: the current time is the highest
//! committed stamp. Queries must never return expired documents, whether these are in the log, in segments or in merged
//! segments; older snapshots must not change.

#![allow(clippy::disallowed_methods, reason = "looks at the files of an index from outside")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twindex::segment::{SearchOptions, SearchScratch, Segment};
use twindex::store::OnConflict;
use twindex::sys::RealVfs;
use twindex::{Admitted, Document, Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions};

const AGE: u64 = 10;

fn params() -> Params {
    Params::builder().u64_keys().simhash(3).values().expire_after(AGE).build().unwrap()
}

fn created() -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params()).unwrap();
    (dir, path, index)
}

fn stamped(fingerprint: u64, stamp: u64) -> Document<'static> {
    Document::from(Fingerprint(fingerprint)).with_stamp(stamp)
}

fn put(writer: &mut Writer, key: u64, stamp: u64) {
    writer.put(key, stamped(key, stamp)).unwrap();
}

/// Returns the keys of a snapshot; checks that all queries for keys agree.
fn keys(snapshot: &Snapshot) -> Vec<u64> {
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        })
        .unwrap();
    assert_eq!(keys.len() as u64, snapshot.documents());
    for key in 0..64 {
        let there = keys.contains(&key);
        assert_eq!(snapshot.contains(key).unwrap(), there, "{key}");
        assert_eq!(snapshot.get(key).unwrap().is_some(), there, "{key}");
        let is_it = |hit: &twindex::Hit| hit.key.as_u64() == Some(key);
        let near = snapshot.within(Fingerprint(key), 0);
        assert_eq!(near.run().unwrap().hits.iter().any(is_it), there, "{key}");
        assert_eq!(snapshot.within(Fingerprint(key), 0).any().unwrap().is_some(), there, "{key}");
        assert_eq!(snapshot.within(Fingerprint(key), 0).count().unwrap(), u64::from(there), "{key}");
    }
    let (mut found, all) = (Vec::new(), [Fingerprint(0)]);
    snapshot
        .for_each_within_any(&all, 6, |_, place, _| {
            found.push(place.key()?.as_u64().unwrap());
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    let near: Vec<u64> = keys.iter().copied().filter(|key| key.count_ones() <= 6).collect();
    assert_eq!(found, near);
    keys
}

#[test]
fn document_expires_exactly_at_its_age_wherever_it_is_stored() {
    for flushed in [false, true] {
        for logged in [false, true] {
            let (_dir, path, index) = created();
            let mut writer = index.writer_with(WriterOptions::default().logged(logged)).unwrap();
            let commit = |writer: &mut Writer, key, stamp| {
                put(writer, key, stamp);
                writer.commit().unwrap();
                if flushed {
                    writer.flush().unwrap();
                }
            };
            commit(&mut writer, 1, 100);
            commit(&mut writer, 2, 100 + AGE - 1);
            let before = index.snapshot();
            assert_eq!((keys(&before), before.now()), (vec![1, 2], Some(109)));
            commit(&mut writer, 3, 100 + AGE);
            assert_eq!(keys(&index.snapshot()), [2, 3]);
            assert_eq!(keys(&before), [1, 2], "a snapshot has the time that it was taken at");
            assert_eq!(keys(&Index::open(&path).unwrap().snapshot()), [2, 3]);
            writer.compact().unwrap();
            assert_eq!(keys(&index.snapshot()), [2, 3]);
            assert_eq!(index.snapshot().entries()[0].documents, 2, "what has expired takes no place");
            drop(writer);
            let reopened = Index::open(&path).unwrap();
            assert_eq!((keys(&reopened.snapshot()), reopened.snapshot().now()), (vec![2, 3], Some(110)));
        }
    }
}

#[test]
fn late_and_future_stamps_expire_no_document_early() {
    let (_dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1000);
    writer.commit().unwrap();
    // Late documents have stamps below the current time. Only their age at the current time decides whether they have
    // expired.
    put(&mut writer, 2, 995);
    put(&mut writer, 3, 990);
    writer.commit().unwrap();
    assert_eq!((keys(&index.snapshot()), index.snapshot().now()), (vec![1, 2], Some(1000)));
    // A stamp more than AGE ahead of the highest one is refused with an error that states both, and nothing changes.
    let refused = writer.put(4, stamped(4, 1000 + AGE + 1)).unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(why) if why.contains("1011") && why.contains("1000")),
        "{refused}"
    );
    let refused = writer.admit(4, stamped(4, u64::MAX)).unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    writer.commit().unwrap();
    assert_eq!((keys(&index.snapshot()), index.snapshot().now()), (vec![1, 2], Some(1000)));
    put(&mut writer, 4, 1000 + AGE);
    writer.commit().unwrap();
    assert_eq!(keys(&index.snapshot()), [4], "as far as allowed is allowed");
    // If such a stamp is correct, the caller can raise the limit.
    writer.set_options(writer.options().max_jump(u64::MAX)).unwrap();
    put(&mut writer, 5, 1 << 40);
    writer.commit().unwrap();
    drop(writer);
    assert_eq!(keys(&Index::open(&path).unwrap().snapshot()), [5]);
    // The time never decreases, even if the document with the highest stamp is deleted and the index compacted.
    let mut writer = index.writer().unwrap();
    writer.delete(5).unwrap();
    writer.commit().unwrap();
    writer.compact().unwrap();
    drop(writer);
    let index = Index::open(&path).unwrap();
    assert_eq!((index.snapshot().documents(), index.snapshot().now()), (0, Some(1 << 40)));
    let mut writer = index.writer().unwrap();
    put(&mut writer, 6, 7);
    writer.commit().unwrap();
    assert_eq!(keys(&index.snapshot()), [0_u64; 0], "too old when it came");
}

#[test]
fn uncommitted_batch_does_not_advance_the_time() {
    let (_dir, _, index) = created();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 100);
    writer.commit().unwrap();
    put(&mut writer, 2, 100 + AGE);
    // Queries of the writer treat the batch as committed; readers do not see it.
    assert!(!writer.contains(1).unwrap());
    let admitted = writer.admit(3, stamped(1, 105)).unwrap();
    assert!(matches!(&admitted, Admitted::Duplicate(hit) if hit.key.as_u64() == Some(2)), "{admitted:?}");
    assert_eq!((keys(&index.snapshot()), index.snapshot().now()), (vec![1], Some(100)));
    drop(writer);
    assert_eq!((keys(&index.snapshot()), index.snapshot().now()), (vec![1], Some(100)));
    let mut writer = index.writer().unwrap();
    put(&mut writer, 4, 100 + AGE - 1);
    writer.commit().unwrap();
    assert_eq!(keys(&index.snapshot()), [1, 4]);
}

/// A key is put, expires, is put with an expired stamp, is deleted twice and is put again, each time in another segment.
#[test]
fn merges_do_not_restore_deleted_or_expired_documents() {
    for flush in [false, true] {
        let (_dir, path, index) = created();
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        let mut step = |what: &dyn Fn(&mut Writer), expected: &[u64]| {
            what(&mut writer);
            writer.commit().unwrap();
            if flush {
                writer.flush().unwrap();
            }
            assert_eq!(keys(&index.snapshot()), expected);
            while writer.merge_step().unwrap() {}
            assert_eq!(keys(&index.snapshot()), expected);
            assert_eq!(keys(&Index::open(&path).unwrap().snapshot()), expected);
        };
        step(&|w| w.delete(1_u64).unwrap(), &[]);
        step(&|w| put(w, 1, 100), &[1]);
        step(&|w| put(w, 2, 105), &[1, 2]);
        step(&|w| put(w, 1, 90), &[2]); // this put has expired already, but it replaces the older document
        step(&|w| put(w, 1, 106), &[1, 2]);
        step(&|w| w.delete(1_u64).unwrap(), &[2]);
        step(&|w| w.delete(1_u64).unwrap(), &[2]);
        step(&|w| put(w, 3, 115), &[3]);
        step(&|w| put(w, 1, 110), &[1, 3]);
        drop(writer);
        index.compact().unwrap();
        assert_eq!(keys(&index.snapshot()), [1, 3]);
    }
}

#[test]
fn another_process_sees_the_time_of_each_commit() {
    let (_dir, path, index) = created();
    let reader = Index::open(&path).unwrap();
    let mut writer = index.writer().unwrap();
    for now in 0..40_u64 {
        put(&mut writer, now, now);
        writer.commit().unwrap();
        if now % 7 == 3 {
            writer.flush().unwrap();
        }
        reader.refresh().unwrap();
        let expected: Vec<u64> = (now.saturating_sub(AGE - 1)..=now).collect();
        assert_eq!((keys(&reader.snapshot()), reader.snapshot().now()), (expected, Some(now)));
    }
    assert!(index.snapshot().entries().len() <= 4, "a segment of nothing but the expired is left out");
}

#[test]
fn values_are_read_from_log_memtable_and_merged_segments() {
    let (_dir, path, index) = created();
    let values: Vec<Vec<u8>> = vec![vec![], b"v".to_vec(), vec![7; 65_536], "ü\0\n".into(), vec![0xFF; 300]];
    let mut writer = index.writer().unwrap();
    let put = |writer: &mut Writer, key: u64, value: &[u8]| {
        writer.put(key, stamped(key, 5).with_value(value)).unwrap();
    };
    let check = |index: &Index, from: u64| {
        for (key, value) in (from..).zip(&values) {
            let record = index.snapshot().get(key).unwrap().unwrap();
            assert_eq!((record.value.as_ref(), record.stamp), (Some(value), Some(5)), "{key}");
        }
    };
    for (key, value) in (0..).zip(&values) {
        put(&mut writer, key, value);
    }
    writer.commit().unwrap();
    check(&index, 0);
    check(&Index::open(&path).unwrap(), 0);
    writer.flush().unwrap();
    check(&index, 0);
    for (key, value) in (10..).zip(&values) {
        put(&mut writer, key, value);
    }
    // Replacing a document replaces its value.
    put(&mut writer, 1, b"new");
    put(&mut writer, 1, &values[1]);
    writer.commit().unwrap();
    writer.compact().unwrap();
    for from in [0, 10] {
        check(&index, from);
        check(&Index::open(&path).unwrap(), from);
    }
    let long = vec![0; 65_537];
    let refused = writer.put(1, stamped(1, 5).with_value(&long)).unwrap_err();
    assert!(matches!(refused, Error::Limit { limit: 65_536, found: 65_537, .. }), "{refused}");
    assert!(matches!(writer.put(1, Fingerprint(1)), Err(Error::Invalid(_))), "without a stamp");
    writer.commit().unwrap();
    check(&index, 0);
    assert_eq!(index.snapshot().documents(), 10);
}

#[test]
fn index_without_values_or_stamps_refuses_both_and_keeps_its_format() {
    let plain = Params::builder().u64_keys().simhash(3).build().unwrap();
    assert!(!plain.encode().contains("values") && !plain.encode().contains("expire"));
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create(dir.path().join("x"), plain).unwrap();
    let mut writer = index.writer().unwrap();
    for document in [Document::from(Fingerprint(1)).with_value(b"v"), stamped(1, 1)] {
        let refused = writer.put(1, document).unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    }
    writer.put(1, Fingerprint(1)).unwrap();
    writer.commit().unwrap();
    let record = index.snapshot().get(1).unwrap().unwrap();
    assert_eq!((record.value, record.stamp, index.snapshot().now()), (None, None, None));
}

fn only_segment(path: &Path) -> Vec<u8> {
    let mut segments: Vec<PathBuf> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "seg"))
        .collect();
    assert_eq!(segments.len(), 1, "{segments:?}");
    std::fs::read(segments.pop().unwrap()).unwrap()
}

/// Applies random operations, compacts, and compares the segment with the segment of a new index that contains the live
/// documents.
#[test]
fn compacted_segment_equals_a_fresh_build_of_the_live_documents() {
    let params = Params::builder().words(1).simhash(3).minhash(2, 2).bottom(2).values().expire_after(50);
    let params = params.build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let index = Index::create(&old, params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let text = |i: u64| if i % 9 == 4 { String::new() } else { format!("text {} of {}", i % 11, i % 7) };
    let mut writer = index.writer().unwrap();
    let mut live = std::collections::BTreeMap::new();
    let mut newest = 0;
    for i in 0..400_u64 {
        let (key, stamp) = (format!("key {}", i * 17 % 120), i + i * 31 % 23);
        let value = vec![i as u8; i as usize % 40];
        let sketch = sketcher.sketch(&text(i)).unwrap();
        writer.put(key.as_str(), Document::from(&sketch).with_value(&value).with_stamp(stamp)).unwrap();
        newest = newest.max(stamp);
        live.insert(key, (i, stamp, value));
        if i % 13 == 5 {
            let gone = format!("key {}", i % 120);
            writer.delete(gone.as_str()).unwrap();
            live.remove(&gone);
        }
        if i % 10 == 9 {
            writer.commit().unwrap();
            live.retain(|_, (_, stamp, _)| newest - *stamp < 50);
        }
        if i % 90 == 89 {
            writer.flush().unwrap();
        }
    }
    writer.compact().unwrap();
    drop(writer);
    let fresh = Index::create(&new, params).unwrap();
    let mut writer =
        fresh.writer_with(WriterOptions::default().one_segment(true).max_jump(u64::MAX)).unwrap();
    for (key, (i, stamp, value)) in live.iter().rev() {
        let sketch = sketcher.sketch(&text(*i)).unwrap();
        writer.put(key.as_str(), Document::from(&sketch).with_value(value).with_stamp(*stamp)).unwrap();
    }
    writer.commit().unwrap();
    assert!(live.len() > 30, "{}", live.len());
    assert_eq!(index.snapshot().documents(), live.len() as u64);
    assert_eq!(only_segment(&old), only_segment(&new));
    let problems = twindex::store::verify::verify(&RealVfs, &old, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn merged_shards_have_the_latest_time_of_any_shard() {
    let dir = tempfile::tempdir().unwrap();
    let shard = |name: &str, documents: &[(u64, u64)]| {
        let index = Index::create(dir.path().join(name), params()).unwrap();
        let mut writer = index.writer().unwrap();
        for &(key, stamp) in documents {
            put(&mut writer, key, stamp);
        }
        writer.commit().unwrap();
        drop(writer);
        index
    };
    let shards = [shard("a", &[(1, 100), (2, 105), (3, 101)]), shard("b", &[(4, 111), (3, 111)])];
    let out = dir.path().join("out");
    let merged = Index::merge(&out, &shards, OnConflict::Refuse, 1 << 20).unwrap();
    let joined = Index::open(&out).unwrap();
    // Document 3 of the first shard has expired at the time of the second shard; otherwise it would be a conflict.
    let _ = merged;
    assert_eq!((keys(&joined.snapshot()), joined.snapshot().now()), (vec![2, 3, 4], Some(111)));
    let mut writer = joined.writer().unwrap();
    put(&mut writer, 5, 115);
    writer.commit().unwrap();
    assert_eq!(keys(&joined.snapshot()), [3, 4, 5]);
    drop(writer);
    let copy = dir.path().join("copy");
    joined.copy_to(&copy).unwrap();
    let copy = Index::open(&copy).unwrap();
    assert_eq!((keys(&copy.snapshot()), copy.snapshot().now()), (vec![3, 4, 5], Some(115)));
}

/// Flips each bit of the values and the stamps of a segment.
#[test]
fn verify_finds_every_flipped_bit_of_values_and_stamps() {
    let (_dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    for key in 0..9 {
        writer.put(key, stamped(key, 100 + key * 3 % 5).with_value(&[9; 3])).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    drop(writer);
    let sound = only_segment(&path);
    let name = Path::new("x.seg");
    let segment = Segment::from_bytes(sound.clone(), name).unwrap();
    assert!(segment.verify(|_| ()).is_empty());
    let mut seen = 0;
    for section in
        segment.sections().iter().filter(|section| ["values", "stamps"].contains(&section.kind.name()))
    {
        for bit in section.offset * 8..section.end() * 8 {
            let mut damaged = sound.clone();
            damaged[bit as usize / 8] ^= 1 << (bit % 8);
            let found = Segment::from_bytes(damaged, name).map(|segment| segment.verify(|_| ()).len());
            assert!(!matches!(found, Ok(0)), "bit {bit} of {}", section.kind.name());
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen}");
    // Queries of the undamaged segment still succeed.
    let mut scratch = SearchScratch::default();
    segment
        .search(&[3], SearchOptions::within(0), &mut scratch, |_, _| Ok(std::ops::ControlFlow::Continue(())))
        .unwrap();
}
