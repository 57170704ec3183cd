//! Tests an index with priorities: `tests/golden/index-v3-priorities` has an index of format 3 with the feature
//! `priorities`, and a list of its groups. The index must open and have these groups, and indexing its documents again
//! must reproduce it byte for byte. Both Python readers must find its priorities.
//!
//! This test wrote the files with `TWINDEX_WRITE_GOLDEN=1`, which creates missing files and never replaces one.

#![allow(clippy::disallowed_methods, reason = "reads and writes a golden file, and starts another program")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use twindex::format::header::{
    FEATURE_FIELDS, FEATURE_GROWN, FEATURE_LOG, FEATURE_NEAR, FEATURE_PACKED, FEATURE_PRIORITIES,
};
use twindex::params::Near;
use twindex::sys::RealVfs;
use twindex::{Document, Index, Params, Resources, Snapshot, Writer};

use crate::support::skip::{Missing, skip};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/index-v3-priorities")
}

fn put(writer: &mut Writer, index: &Index, number: u64, priority: Option<u64>) {
    let mut words: Vec<String> = (0..9).map(|word| format!("w{word}of{}", number / 6)).collect();
    words.push(format!("x{number}"));
    let sketch = index.sketcher().unwrap().sketch(&words.join(" ")).unwrap();
    writer.put(format!("page {number}").as_str(), Document::from(&sketch).with_priority(priority)).unwrap();
}

/// Creates an index with a segment and a log. One document of the segment is deleted and one is replaced.
fn build(path: &Path) {
    let builder = Params::builder().words(1).minhash(4, 2).signature_bits(1).sets().marks().priorities();
    let params = builder.near(Near::resembling(0.7).unwrap()).build().unwrap();
    let index = Index::create(path, params).unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..20 {
        put(&mut writer, &index, number, [Some(7), None, Some(u64::MAX - number)][number as usize % 3]);
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete("page 3").unwrap();
    put(&mut writer, &index, 8, Some(1));
    for number in 20..24 {
        put(&mut writer, &index, number, (number % 2 == 0).then_some(3));
    }
    writer.commit().unwrap();
}

/// Lists the leader, the group size and the priority of each document.
fn listed(snapshot: &Snapshot) -> String {
    let dir = tempfile::tempdir().unwrap();
    let groups = snapshot.groups(&Resources::in_dir(dir.path())).unwrap();
    let mut text = "key\tleader\tsize\tpriority\n".to_owned();
    groups
        .for_each(1, |key, leader, size| {
            let single = snapshot.membership(key, u64::MAX)?.unwrap().decided().unwrap();
            assert_eq!((single.leader.as_key(), single.size), (leader, u64::from(size)), "{key:?}");
            let priority = snapshot.get(key)?.unwrap().priority;
            let priority = priority.map_or("-".into(), |priority| priority.to_string());
            writeln!(text, "{}\t{}\t{size}\t{priority}", key.to_buf(), leader.to_buf()).unwrap();
            Ok(())
        })
        .unwrap();
    text
}

fn script(name: &str, path: &Path) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second").join(name);
    let Ok(output) = Command::new("python3").arg(&script).arg(path).output() else {
        skip(Missing::Program("python3"));
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[test]
fn format_3_index_with_priorities_has_the_recorded_groups() {
    let committed = golden().join("groups");
    if std::env::var_os("TWINDEX_WRITE_GOLDEN").is_some_and(|value| value == "1") && !committed.exists() {
        std::fs::create_dir_all(golden()).unwrap();
        build(&committed);
        std::fs::remove_file(committed.join("LOCK")).ok();
        let listing = listed(&Index::open(&committed).unwrap().snapshot());
        std::fs::write(golden().join("groups.tsv"), listing).unwrap();
    }
    let features = |name: &str| {
        u32::from_le_bytes(std::fs::read(committed.join(name)).unwrap()[12..16].try_into().unwrap())
    };
    let of_fields = FEATURE_NEAR | FEATURE_FIELDS | FEATURE_PRIORITIES;
    assert_eq!(features("000001.seg"), FEATURE_PACKED | of_fields);
    assert_eq!(features("LOG-000002"), of_fields);
    assert_eq!(features("MANIFEST-000004"), FEATURE_LOG | FEATURE_GROWN | of_fields);
    let snapshot = Index::open(&committed).unwrap().snapshot();
    assert!(snapshot.params().encode().contains("\npriorities=kept\n"), "{}", snapshot.params().encode());
    assert_eq!((snapshot.documents(), snapshot.logged_documents()), (23, 5));
    let listing = std::fs::read_to_string(golden().join("groups.tsv")).unwrap();
    assert_eq!(listed(&snapshot), listing);
    let problems = twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");

    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("index");
    build(&built);
    let [ours, theirs] = [&built, &committed].map(|index| std::fs::read(index.join("000001.seg")).unwrap());
    assert!(ours == theirs, "another segment");
    assert_eq!(listed(&Index::open(&built).unwrap().snapshot()), listing);
}

#[test]
fn both_python_readers_find_the_priorities_of_an_index() {
    let committed = golden().join("groups");
    let Some(theirs) = script("read_index.py", &committed) else { return };
    let listing = std::fs::read_to_string(golden().join("groups.tsv")).unwrap();
    let mut found = 0;
    for line in listing.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let head = format!("key {}, ", hex(columns[0]));
        let theirs = theirs.lines().find(|line| line.starts_with(&head)).expect(&head);
        assert!(theirs.contains(&format!(", priority {}, ", columns[3])), "{line}: {theirs}");
        found += 1;
    }
    assert_eq!((found, theirs.lines().filter(|line| line.starts_with("key ")).count()), (23, 23));
    let Some(theirs) = script("read_segment.py", &committed.join("000001.seg")) else { return };
    // A third of the twenty documents have no priority; the others have the priorities that `build` sets.
    assert_eq!(theirs.lines().filter(|line| line.starts_with("priority ")).count(), 13);
    assert_eq!(
        theirs.lines().filter(|line| line.starts_with("priority ") && line.ends_with(": 7")).count(),
        7
    );
}
