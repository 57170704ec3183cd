//! Tests that every operation keeps the priority of a document, and that an index without priorities refuses them.

use std::collections::BTreeMap;

use twindex::{Document, Error, Fingerprint, Index, OnConflict, Params, Snapshot, WriterOptions};

fn params() -> Params {
    Params::builder().simhash(3).marks().priorities().values().build().unwrap()
}

fn priorities(snapshot: &Snapshot) -> BTreeMap<String, Option<u64>> {
    let mut found = BTreeMap::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key).unwrap().unwrap();
            found.insert(key.to_buf().to_string(), record.priority);
            Ok(())
        })
        .unwrap();
    found
}

#[test]
fn priority_is_kept_by_flush_merge_shards_and_copies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params()).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut expected = BTreeMap::new();
    let mut put = |writer: &mut twindex::Writer, from: u64, to: u64| {
        for i in from..to {
            let priority = [None, Some(0), Some(i), Some(u64::MAX)][i as usize % 4];
            let key = format!("key {}", i % 50);
            let document = Document::from(Fingerprint(i * 0x9E37_79B9)).with_priority(priority);
            match i % 3 {
                // A duplicate that is stored with a mark keeps its priority.
                0 if !expected.contains_key(&key) => drop(writer.admit(key.as_str(), document).unwrap()),
                _ => writer.put(key.as_str(), document).unwrap(),
            }
            expected.insert(key, priority);
        }
        writer.commit().unwrap();
    };
    put(&mut writer, 0, 30);
    writer.flush().unwrap();
    put(&mut writer, 30, 60);
    writer.flush().unwrap();
    put(&mut writer, 60, 70);
    drop(writer);
    assert_eq!(priorities(&index.snapshot()), expected, "segments and a log");
    assert_eq!(priorities(&Index::open(&path).unwrap().snapshot()), expected, "opened again");
    let copy = dir.path().join("copy");
    index.copy_to(&copy).unwrap();
    assert_eq!(priorities(&Index::open(&copy).unwrap().snapshot()), expected, "a copy");
    let merged = dir.path().join("merged");
    Index::merge(&merged, &[Index::open(&copy).unwrap()], OnConflict::Refuse, 1 << 20).unwrap();
    assert_eq!(priorities(&Index::open(&merged).unwrap().snapshot()), expected, "shards");
    index.compact().unwrap();
    assert_eq!(priorities(&index.snapshot()), expected, "compacted");
    assert_eq!(expected.values().filter(|priority| priority.is_some()).count(), 37);
    assert!(twindex::verify(&twindex::RealVfs, &path, |_| {}).problems.is_empty());
}

#[test]
fn index_without_priorities_refuses_them_and_marked_duplicates_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    let plain =
        Index::create(dir.path().join("plain"), Params::builder().simhash(3).build().unwrap()).unwrap();
    let mut writer = plain.writer().unwrap();
    match writer.put("a", Document::from(Fingerprint(1)).with_priority(7)) {
        Err(Error::Invalid(why)) => assert!(why.contains("keeps no priorities"), "{why}"),
        other => panic!("{other:?}"),
    }
    let index = Index::create(dir.path().join("kept"), params()).unwrap();
    let mut writer = index.writer().unwrap();
    writer.put("a", Document::from(Fingerprint(1))).unwrap();
    writer.admit("b", Document::from(Fingerprint(3)).with_priority(7)).unwrap();
    writer.commit().unwrap();
    let record = index.snapshot().get("b").unwrap().unwrap();
    assert_eq!((record.priority, record.is_duplicate), (Some(7), true));
    assert_eq!(index.snapshot().get("a").unwrap().unwrap().priority, None);
}
