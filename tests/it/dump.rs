//! Tests that `examples/dump.rs` shows every byte of every file of an index, on golden files and on one of each optional
//! section.

#![allow(clippy::disallowed_methods, reason = "reads files of an index from outside")]

use std::fs;
use std::path::{Path, PathBuf};

use twindex::{Index, Params};

#[path = "../../examples/dump.rs"]
mod example;

fn dumped(path: &Path, rows: u64) -> String {
    let mut out = Vec::new();
    example::dump(path, rows, &mut out).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(out).unwrap()
}

/// Returns the files of an index of the current version below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn dump_shows_every_byte_of_every_golden_file_in_order() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut kinds = std::collections::BTreeSet::new();
    for path in files(&golden) {
        let relative = path.strip_prefix(&golden).unwrap().to_string_lossy().into_owned();
        let name = path.file_name().unwrap().to_string_lossy();
        let kind =
            ["CURRENT", "MANIFEST-", "LOG-", "IDF-", ".seg"].into_iter().find(|kind| name.contains(kind));
        let Some(kind) =
            kind.filter(|_| ["index-v3", "format-1.0"].iter().any(|of| relative.starts_with(of)))
        else {
            continue;
        };
        kinds.insert(kind);
        let out = dumped(&path, 16);
        let offsets: Vec<u64> = out.lines().filter_map(|line| line.get(..10)?.trim().parse().ok()).collect();
        assert_eq!(offsets[0], 0, "{relative}");
        assert!(offsets.is_sorted_by(|a, b| a < b), "{relative}: {offsets:?}");
        let length = fs::metadata(&path).unwrap().len();
        assert!(offsets.iter().all(|at| *at < length), "{relative}");
        if ["CURRENT", "MANIFEST-", ".seg"].contains(&kind) {
            assert_eq!(offsets.last(), Some(&(length - 4)), "{relative}: up to the last checksum");
        }
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
}

#[test]
fn dump_names_sections_and_refuses_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let params = Params::builder().simhash(3).bottom(8).modulus(4).build().unwrap();
    let index = Index::create(folder.path().join("i.twx"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for key in ["one", "two"] {
        writer.put(key, &sketcher.sketch("some words that make up a text").unwrap()).unwrap();
    }
    writer.compact().unwrap();
    drop(writer);
    let mut paths = files(index.path()).into_iter();
    let segment = paths.find(|path| path.extension().is_some_and(|of| of == "seg")).unwrap();
    let all = dumped(&segment, 16);
    for part in
        ["role: segment", "ordinal 1: two", "2 documents", "-- modular: codec 1", "-- bottom: codec 1"]
    {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!dumped(&segment, 1).contains("ordinal 1:"));
    let other = folder.path().join("other");
    fs::write(&other, "a text").unwrap();
    for (path, why) in [(other.as_path(), "not a file of an index"), (index.path(), "not a file;")] {
        let error = example::dump(path, 16, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
