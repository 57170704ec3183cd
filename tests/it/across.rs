//! Tests that an index has the same bytes on every machine, and that machines can read each other's files.
//!
//! By default, the test writes an index twice on one machine and compares the files. `TWINDEX_ACROSS` names a directory
//! shared by several machines: the first machine writes its index there, and the others compare their index with it and
//! read it (`scripts/platforms`).

#![allow(clippy::disallowed_methods, reason = "copies the files of an index from outside")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use twindex::params::{Near, Shingling};
use twindex::sketch::Buffers;
use twindex::{Document, IdfBuilder, Index, KeyBuf, Params, Record, Sketcher, WriterOptions};

type Files = BTreeMap<String, Vec<u8>>;
/// The documents of an index, and the documents near some of them.
type Answers = (Vec<(KeyBuf, Record)>, Vec<String>);

fn text(number: u64) -> String {
    format!("page {} of {} by {}, naïve 世界 №{}", number % 23, number % 7, number % 41, number % 5)
}

/// Creates an index without documents that stores weighted fingerprints, bands, samples, sets, values, stamps, marks and
/// priorities.
fn empty(path: &Path) {
    let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
    let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
    for number in 0..40 {
        plain.shingler().distinct(&text(number), &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    let table = builder.finish().unwrap();
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).minhash(3, 2).bottom(2);
    let params = params.values().expire_after(150).sets().suffixes().marks().priorities();
    let params = params.near(Near::resembling(0.9).unwrap()).build().unwrap();
    Index::create_with_idf(path, params, &table).unwrap();
}

/// Writes segments with deletes, merges some of them, and writes a log that ends with a mark.
fn write(path: &Path) {
    let index = Index::open(path).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for number in 0..200_u64 {
        let value = vec![number as u8; number as usize % 9];
        let sketch = sketcher.sketch(&text(number)).unwrap();
        let document = Document::from(&sketch).with_value(&value).with_stamp(number);
        let document = document.with_priority((number % 3 > 0).then_some(number * 0x0123_4567_89AB));
        writer.admit(format!("key {}", number % 140).as_str(), document).unwrap();
        if number % 13 == 5 {
            writer.delete(format!("key {}", (number * 7) % 140).as_str()).unwrap();
        }
        if number % 10 == 9 {
            writer.commit_with(&number.to_le_bytes()).unwrap();
        }
        match number {
            39 | 79 | 119 | 159 | 179 => writer.flush().unwrap(),
            169 => assert!(writer.merge_step().unwrap()),
            _ => {}
        }
    }
}

fn files(path: &Path) -> Files {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| !path.ends_with("LOCK")); // contains a process number
    files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().into(), std::fs::read(&path).unwrap()))
        .collect()
}

fn put_there(path: &Path, files: &Files) {
    std::fs::create_dir_all(path).unwrap();
    for (name, bytes) in files {
        std::fs::write(path.join(name), bytes).unwrap();
    }
}

fn answers(path: &Path) -> Answers {
    let index = Index::open(path).unwrap();
    assert!(index.verify().problems.is_empty());
    let (snapshot, sketcher) = (index.snapshot(), index.sketcher().unwrap());
    let keys = snapshot.keys().unwrap().map(Result::unwrap);
    let documents = keys.map(|key| (key.clone(), snapshot.get(&key).unwrap().unwrap())).collect();
    let near = (0..200).step_by(7).map(|number| {
        let sketch = sketcher.sketch(&text(number)).unwrap();
        format!(
            "{:?} {:?}",
            snapshot.near(&sketch).run(),
            snapshot.within(sketch.fingerprint().unwrap(), 3).run()
        )
    });
    let near = near.collect();
    (documents, near)
}

#[test]
fn index_from_another_machine_has_the_same_bytes_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let shared = std::env::var_os("TWINDEX_ACROSS").map_or_else(|| dir.path().join("across"), PathBuf::from);
    std::fs::create_dir_all(&shared).unwrap();
    let (start, written) = (shared.join("empty"), shared.join("written"));
    if !written.exists() {
        // Only the first machine creates the index: its UUID is random, and everything else depends only on the input.
        empty(&start);
        put_there(&written, &files(&start));
        write(&written);
    }
    let here = dir.path().join("here");
    put_there(&here, &files(&start));
    write(&here);
    let (mine, theirs) = (files(&here), files(&written));
    assert!(mine.keys().eq(theirs.keys()), "{:?}, not {:?}", mine.keys(), theirs.keys());
    for (name, bytes) in &mine {
        assert!(*bytes == theirs[name], "{name} has other bytes");
    }
    let of_segments = mine.keys().filter(|name| name.contains(".seg")).count();
    assert!(of_segments > 1 && mine.keys().any(|name| name.starts_with("LOG-")), "{:?}", mine.keys());
    let (mine, theirs) = (answers(&here), answers(&written));
    assert!(mine.0.len() > 80 && mine.1.iter().any(|near| near.contains("key")), "{}", mine.0.len());
    assert_eq!(mine, theirs);
    println!(
        "{} files of {} bytes are the same",
        files(&here).len(),
        files(&here).values().map(Vec::len).sum::<usize>()
    );
}
