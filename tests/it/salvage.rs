//! Tests salvage: it must create a new index of all documents whose records are intact, report the other documents, and
//! leave the damaged files unchanged. No damage may lead to a changed document.

#![allow(clippy::disallowed_methods, reason = "damages the files of an index from outside")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use twindex::store::salvage::{Salvage, salvage};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Document, Error, Fingerprint, Index, Params, Result};

use crate::support::attached::{self, documents};

type Documents = BTreeMap<String, String>;

/// Creates an index with two segments and a log. Its documents have all fields; some are deleted or replaced.
fn index() -> (TempDir, PathBuf, Documents) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let found = documents(&attached::index(&path, 5000).snapshot());
    assert_eq!(found.len(), 698);
    (dir, path, found)
}

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

fn run(path: &Path, out: &Path) -> Result<(Salvage, Documents)> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    let before = files(path);
    let report = salvage(&vfs, path, out)?;
    assert_eq!(files(path), before, "nothing is changed where the damage is");
    let found = documents(&Index::open(out).unwrap().snapshot());
    assert_eq!(report.documents, found.len() as u64);
    let problems = twindex::store::verify::verify(&RealVfs, out, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");
    Ok((report, found))
}

#[test]
fn salvage_of_an_undamaged_index_changes_no_document() {
    let (dir, path, all) = index();
    let (report, found) = run(&path, &dir.path().join("out")).unwrap();
    assert!(report.is_whole() && report.lost() == 0, "{report:?}");
    assert_eq!(found, all);
    assert!(matches!(run(&path, &dir.path().join("out")), Err(Error::AlreadyExists { .. })));
}

#[test]
fn salvage_alters_no_document_and_reports_every_loss() {
    let (dir, path, all) = index();
    let segment = path.join("000001.seg");
    let sound = std::fs::read(&segment).unwrap();
    let (mut some, mut step, mut pages_that_matter) = (0, 0, 0);
    while step * 4096 < sound.len() {
        let mut damaged = sound.clone();
        let end = sound.len().min(step * 4096 + 4096);
        damaged[step * 4096..end].iter_mut().for_each(|byte| *byte ^= 0x5A);
        std::fs::remove_file(&segment).unwrap();
        std::fs::write(&segment, &damaged).unwrap();
        let out = dir.path().join(format!("out {step}"));
        let (report, found) = run(&path, &out).unwrap();
        // Salvage rebuilds padding and all tables except the first, so damage to these loses nothing.
        assert!(report.lost() > 0 && !report.is_whole() || found == all, "page {step}: {report:?}");
        pages_that_matter += usize::from(report.lost() > 0);
        for (key, record) in &found {
            assert_eq!(all.get(key), Some(record), "page {step}, {key}");
        }
        assert_eq!(found.len() as u64 + report.lost(), all.len() as u64, "page {step}: all others are there");
        let lost = report.files.iter().flat_map(|file| &file.lost_keys);
        for key in lost {
            assert!(all.contains_key(&key.to_string()) && !found.contains_key(&key.to_string()), "{key}");
        }
        some += usize::from(report.files[0].saved > 0);
        step += 1;
    }
    assert!(pages_that_matter > 5, "{pages_that_matter} of {step}");
    assert!(some >= 2, "pages of {step} after whose loss some of the segment is saved: {some}");
}

#[test]
fn salvage_works_without_current_a_manifest_or_a_segment() {
    let (dir, path, all) = index();
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let (report, found) = run(&path, &dir.path().join("no current")).unwrap();
    assert_eq!((report.problems.len(), report.lost()), (1, 0));
    assert_eq!(found, all, "the newest manifest is gone by, and says so");

    std::fs::remove_file(path.join("000002.seg")).unwrap();
    let (report, found) = run(&path, &dir.path().join("no segment")).unwrap();
    assert!(report.lost() > 100 && found.iter().all(|(key, record)| all.get(key) == Some(record)));
    assert_eq!(found.len() as u64 + report.lost(), all.len() as u64);

    for entry in files(&path).keys() {
        if entry.file_name().unwrap().to_str().unwrap().starts_with("MANIFEST") {
            std::fs::remove_file(entry).unwrap();
        }
    }
    let (report, found) = run(&path, &dir.path().join("no manifest")).unwrap();
    assert_eq!(report.generation, None);
    assert!(found.len() >= 299, "{}", found.len());

    std::fs::remove_file(path.join("000001.seg")).unwrap();
    let nothing = run(&path, &dir.path().join("nothing")).unwrap_err();
    assert!(matches!(nothing, Error::NotAnIndex { .. }), "{nothing}");
    assert!(!dir.path().join("nothing").exists());
}

#[test]
fn log_batches_before_the_damage_are_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, Params::builder().u64_keys().simhash(3).build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    for key in 0..20_u64 {
        writer.put(key, twindex::Fingerprint(key)).unwrap();
        writer.commit().unwrap();
    }
    drop((writer, index));
    let log = path.join("LOG-000001");
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    assert!(matches!(Index::open(&path), Err(Error::Corrupt { .. })));
    let (report, found) = run(&path, &dir.path().join("out")).unwrap();
    assert!((8..12).contains(&found.len()), "{}", found.len());
    assert!(!report.is_whole() && report.files.iter().any(|file| !file.problems.is_empty()));
}

#[test]
fn salvage_keeps_the_time_set_by_a_deleted_document() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().u64_keys().simhash(3).expire_after(60).build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let mut writer = index.writer().unwrap();
    writer.put(1, Document::from(Fingerprint(1)).with_stamp(1060)).unwrap();
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete(1).unwrap();
    writer.commit().unwrap();
    writer.put(2, Document::from(Fingerprint(2)).with_stamp(1000)).unwrap();
    writer.commit().unwrap();
    drop(writer);
    assert_eq!((index.snapshot().documents(), index.snapshot().now()), (0, Some(1060)));
    let (report, found) = run(&path, &dir.path().join("out")).unwrap();
    assert!(found.is_empty() && report.documents == 0, "{found:?}");
    let saved = Index::open(dir.path().join("out")).unwrap().snapshot();
    assert_eq!(saved.now(), Some(1060));
}
