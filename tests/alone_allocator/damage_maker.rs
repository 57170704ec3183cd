//! Makes damaged copies of indexes for `damage_experiment` and `damage_doors`. The number of a case determines its damage.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "damages files without the index's knowledge")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::support::random::Random;
use twindex::params::Shingling;
use twindex::sketch::Buffers;
use twindex::{Document, IdfBuilder, Index, Params, Sketcher, Writer, WriterOptions};

const PAGE: usize = 4096;

/// The content of each file of an index by name, without the lock file.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The names of the kinds of damage.
pub(crate) const KINDS: [&str; 11] = [
    "cut",
    "bits flipped",
    "range zeroed",
    "range copied within",
    "bytes appended",
    "file deleted",
    "piece of another file",
    "piece of another index",
    "pieces swapped",
    "file of another index",
    "random bytes",
];

/// Returns the kind of damage, an index in [`KINDS`], of a case. Case `i` damages index `i % indexes`.
pub(crate) fn kind_of(case: u64, indexes: usize) -> usize {
    (case / indexes as u64) as usize % KINDS.len()
}

/// Reads the files of an index.
pub(crate) fn read(path: &Path) -> Files {
    let files = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("LOCK"));
    files.map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap())).collect()
}

/// Writes the files of an index to a new directory.
pub(crate) fn write(path: &Path, files: &Files) {
    std::fs::create_dir_all(path).unwrap();
    for (name, bytes) in files {
        std::fs::write(path.join(name), bytes).unwrap();
    }
}

/// Returns a text of the indexes that [`made`] creates.
pub(crate) fn text(i: u64, salt: u64) -> String {
    format!("page {} of {} by {}", i % 23, i % 7, (i + salt) % 41)
}

/// Creates an index with an IDF table, fingerprints, bands, signatures, samples, values, stamps, sets, marks, and segments
/// with deletes. If `with_log`, it also has a log. Calls `committed` after each commit. Returns the files of the index.
/// Indexes with another `salt` have other documents.
pub(crate) fn made(salt: u64, with_log: bool, mut committed: impl FnMut(&Index)) -> Files {
    let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
    for i in 0..40 {
        let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
        plain.shingler().distinct(&text(i, salt), &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    let table = builder.finish().unwrap();
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).minhash(3, 2).bottom(2);
    let params = params.values().expire_after(150).sets().marks().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("i");
    let index = Index::create_with_idf(&path, params, &table).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut add = |writer: &mut Writer, range: Range<u64>| {
        for i in range {
            let value = vec![i as u8; i as usize % 9];
            let text = if i % 17 == 3 { String::new() } else { text(i, salt) };
            let sketch = sketcher.sketch(&text).unwrap();
            let document = Document::from(&sketch).with_value(&value).with_stamp(i);
            let document = if i % 9 == 4 { document.as_duplicate() } else { document };
            writer.put(format!("key {}", i % 140).as_str(), document).unwrap();
            if i % 13 == 5 {
                writer.delete(format!("key {}", (i * 7) % 140).as_str()).unwrap();
            }
        }
        writer.commit_with(format!("up to {salt}").as_bytes()).unwrap();
        committed(&index);
    };
    add(&mut writer, 0..90);
    writer.flush().unwrap();
    add(&mut writer, 90..160);
    writer.flush().unwrap();
    if with_log {
        add(&mut writer, 160..180);
        add(&mut writer, 180..190);
        add(&mut writer, 190..200);
    }
    writer.gc().unwrap();
    drop(writer);
    read(&path)
}

/// Returns the files of an index after damage of one kind. Some kinds copy parts of `foreign`, an index of the same kind
/// with other documents.
pub(crate) fn damaged(case: u64, kind: usize, sound: &Files, foreign: &Files) -> Files {
    let mut random = Random(case * 0x9E37_79B9 + 1);
    let mut files = sound.clone();
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let name = &names[random.below(names.len())];
    let other = &names[random.below(names.len())];
    // A file of the same kind in the other index, if it has one. Numbers in file names are ignored.
    let ending = |path: &Path| {
        let name = path.to_str().unwrap();
        name.chars().filter(|c| c.is_ascii_uppercase() || *c == 's').collect::<String>()
    };
    let same = foreign.iter().find(|(path, _)| ending(path) == ending(name)).map(|(_, bytes)| bytes);
    let foreign = same.or_else(|| foreign.values().next()).expect("an index has files").clone();
    let another = files[other].clone();
    let bytes = files.get_mut(name).unwrap();
    let length = bytes.len();
    let range = |random: &mut Random, length: usize| {
        let start = random.below(length);
        let max = 1 << (1 + random.below(12));
        start..(start + 1 + random.below(max)).min(length)
    };
    match kind {
        0 => bytes.truncate(random.below(length)),
        1 => {
            for _ in 0..=random.below(4) {
                bytes[random.below(length)] ^= 1 << random.below(8);
            }
        }
        2 => {
            let range = range(&mut random, length);
            bytes[range].fill(0);
        }
        3 => {
            let from = range(&mut random, length);
            let to = random.below(length - from.len() + 1);
            bytes.copy_within(from, to);
        }
        4 => {
            for _ in 0..=random.below(300) {
                bytes.push(if case.is_multiple_of(4) { 0 } else { random.next() as u8 });
            }
        }
        5 => {
            files.remove(name);
        }
        6 | 7 => {
            let from = if kind == 6 { another } else { foreign };
            // Copies either a whole page to the same offset, or a smaller piece from any offset to any other.
            let size = PAGE >> random.below(7);
            let to = random.below(length.div_ceil(size)) * size;
            let start = if size == PAGE { to } else { random.below(from.len().div_ceil(size)) * size };
            let size = size.min(length - to).min(from.len().saturating_sub(start));
            if size > 0 {
                bytes[to..to + size].copy_from_slice(&from[start..start + size]);
            }
        }
        8 => {
            let size = PAGE >> random.below(7);
            let pieces = length / size;
            if pieces > 1 {
                let (one, two) = (random.below(pieces) * size, random.below(pieces) * size);
                for i in 0..size {
                    bytes.swap(one + i, two + i);
                }
            } else {
                let half = length / 2;
                let (one, two) = bytes.split_at_mut(half);
                one.swap_with_slice(&mut two[..half]);
            }
        }
        9 => *bytes = foreign,
        _ => {
            for byte in range(&mut random, length) {
                bytes[byte] = random.next() as u8;
            }
        }
    }
    files
}
