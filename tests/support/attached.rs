//! An index whose documents have everything that an index can store with a document.

use std::collections::BTreeMap;
use std::path::Path;

use twindex::{Document, Index, Params, Snapshot, WriterOptions};

/// Creates an index of documents with values, stamps, marks, priorities, samples and sets, some of them without words. It
/// has two segments and a log; some documents are deleted or replaced. Documents expire if they are `expire_after` older
/// than the last one.
pub fn index(path: &Path, expire_after: u64) -> Index {
    let params =
        Params::builder().words(1).simhash(3).minhash(3, 2).bottom(2).values().expire_after(expire_after);
    let index = Index::create(path, params.sets().marks().priorities().build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for i in 0..900_u64 {
        let text =
            if i % 11 == 3 { String::new() } else { format!("text number {} of those, {}", i % 97, i % 13) };
        let value = format!("value {i}");
        let sketch = sketcher.sketch(&text).unwrap();
        let document = Document::from(&sketch).with_value(value.as_bytes()).with_stamp(i);
        let document = if i % 7 == 2 { document.as_duplicate() } else { document };
        let document = document.with_priority((i % 5 > 0).then_some(i << 40));
        writer.put(format!("key {}", i % 700).as_str(), document).unwrap();
        if i % 300 == 299 {
            writer.delete(format!("key {}", i % 500).as_str()).unwrap();
            writer.commit().unwrap();
            if i < 700 {
                writer.flush().unwrap();
            }
        }
    }
    drop(writer);
    let snapshot = index.snapshot();
    assert_eq!(snapshot.entries().len(), 2);
    assert!(snapshot.logged_documents() > 100, "{}", snapshot.logged_documents());
    index
}

/// Returns what is stored of each document, by key.
pub fn documents(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?;
            all.insert(key.to_buf().to_string(), format!("{record:?}"));
            Ok(())
        })
        .unwrap();
    all
}
