//! Tests salvage: it must create a new index of all documents whose records are intact, report the other documents, and
//! leave the damaged files unchanged. No damage may lead to a changed document.

#![allow(clippy::disallowed_methods, reason = "damages the files of an index from outside")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use twindex::store::salvage::{Salvage, salvage};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Document, Error, Fingerprint, Index, Params, Result, WriterOptions};

use crate::support::attached::{self, documents};
use crate::support::random::Random;

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

/// The values of documents by key. Each value is unique.
type Values = BTreeMap<u64, u64>;

/// An index with a random history of commits by random routes.
struct RandomIndex {
    path: PathBuf,
    /// The documents after each commit.
    commits: Vec<Values>,
}

impl RandomIndex {
    fn new(path: PathBuf, random: &mut Random) -> Self {
        let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
        let index = Index::create(&path, params).unwrap();
        let mut commits = vec![Values::new()];
        let mut next = 0_u64;
        for _ in 0..=random.below(3) {
            let logged = random.below(3) > 0;
            let options = WriterOptions::default().background_merges(false).logged(logged);
            let mut writer = index.writer_with(options).unwrap();
            for _ in 0..=random.below(4) {
                let mut documents = commits.last().unwrap().clone();
                for _ in 0..=random.below(5) {
                    let key = random.below(12) as u64;
                    if random.below(3) == 0 {
                        writer.delete(key).unwrap();
                        documents.remove(&key);
                    } else {
                        next += 1;
                        let value = next.to_le_bytes();
                        writer.put(key, Document::from(Fingerprint(next)).with_value(&value)).unwrap();
                        documents.insert(key, next);
                    }
                }
                writer.commit().unwrap();
                commits.push(documents);
                match random.below(8) {
                    0 => drop(writer.compact().unwrap()),
                    1 | 2 => writer.flush().unwrap(),
                    3 => drop(writer.merge_step().unwrap()),
                    4 => drop(writer.gc().unwrap()),
                    _ => {}
                }
            }
        }
        Self { path, commits }
    }

    fn names(&self, prefix: &str) -> Vec<PathBuf> {
        let names = files(&self.path).into_keys();
        names.filter(|path| path.file_name().unwrap().to_str().unwrap().contains(prefix)).collect()
    }

    /// Removes a random file of this kind, or flips one of its bits. Returns which of both; `None` if there is no file.
    fn damage(&self, kind: &str, random: &mut Random) -> Option<&'static str> {
        let names = self.names(kind);
        // The newest manifest, or any of the other files.
        let chosen = match kind {
            "MANIFEST" => names.last(),
            _ => names.get(random.below(names.len().max(1))),
        };
        let path = chosen?;
        if random.below(4) == 0 {
            std::fs::remove_file(path).unwrap();
            Some("removed")
        } else {
            let mut bytes = std::fs::read(path).unwrap();
            let place = random.below(bytes.len());
            bytes[place] ^= 1 << random.below(8);
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, bytes).unwrap();
            Some("flipped")
        }
    }
}

fn values(path: &Path) -> Values {
    let snapshot = Index::open(path).unwrap().snapshot();
    let keys = snapshot.keys().unwrap().map(Result::unwrap);
    let value = |key: u64| snapshot.get(key).unwrap().unwrap().value.unwrap();
    keys.map(|key| {
        let key = key.as_u64().unwrap();
        (key, u64::from_le_bytes(value(key).try_into().unwrap()))
    })
    .collect()
}

#[test]
fn salvage_of_randomly_damaged_indexes_agrees_with_a_model() {
    let rounds = std::env::var("TWINDEX_SALVAGES").map_or(100, |count| count.parse().unwrap());
    let mut doubtful_rounds = 0;
    for seed in 0..rounds {
        let random = &mut Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let index = RandomIndex::new(dir.path().join("index"), random);
        let kinds = ["MANIFEST", "MANIFEST", "CURRENT", "LOG", ".seg"];
        let (mut damaged, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..=random.below(2) {
            let kind = kinds[random.below(kinds.len())];
            if let Some(how) = index.damage(kind, random) {
                damaged.insert(kind);
                if how == "removed" {
                    removed.insert(kind);
                }
            }
        }
        if random.below(10) == 0 {
            index.names("MANIFEST").iter().for_each(|path| std::fs::remove_file(path).unwrap());
            damaged.insert("MANIFEST");
            removed.insert("MANIFEST");
        }
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
        let out = dir.path().join("out");
        let report = match salvage(&vfs, &index.path, &out) {
            Ok(report) => report,
            Err(Error::NotAnIndex { .. }) if damaged.contains("MANIFEST") => continue,
            Err(error) => panic!("round {seed}: {error}"),
        };
        let found = values(&out);
        let current = index.commits.last().unwrap();
        let shown = || format!("round {seed}, {damaged:?}: {found:?} of {current:?}, {report:?}");
        // A log that was cut after its synced part cannot be distinguished from a log after a crash.
        let torn = damaged.contains("LOG") && report.files.iter().all(|file| file.problems.is_empty());
        if torn && index.commits.contains(&found) {
            continue;
        }
        if report.is_whole() {
            assert_eq!(found, *current, "{}", shown());
        }
        let doubtful: BTreeSet<u64> = report.doubtful_keys.iter().map(|key| key.as_u64().unwrap()).collect();
        assert_eq!(doubtful.len() as u64, report.doubtful, "{}", shown());
        doubtful_rounds += u64::from(report.doubtful > 0);
        // Nothing says that a file was there if what named it is gone, too.
        let is_hidden = damaged.contains("CURRENT") && removed.contains("MANIFEST")
            || (damaged.contains("MANIFEST") || damaged.contains("CURRENT")) && removed.contains("LOG");
        for (key, value) in &found {
            assert!(index.commits.iter().any(|commit| commit.get(key) == Some(value)), "{}", shown());
            assert!(current.get(key) == Some(value) || doubtful.contains(key) || is_hidden, "{}", shown());
        }
        if !damaged.contains("LOG") && !damaged.contains(".seg") && !is_hidden {
            for (key, value) in current {
                assert!(found.get(key) == Some(value) || doubtful.contains(key), "{}", shown());
            }
        }
    }
    assert!(doubtful_rounds < rounds / 2, "{doubtful_rounds} of {rounds}");
}

/// Commits documents, and changes made by another writer. Flips a bit of the newest manifest, and salvages.
fn salvage_without_newest_manifest(change: impl FnOnce(&Index)) -> (Salvage, Values) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for key in 0..60_u64 {
        writer.put(key, Document::from(Fingerprint(key)).with_value(&key.to_le_bytes())).unwrap();
    }
    writer.commit().unwrap();
    drop(writer);
    change(&index);
    let newest = format!("MANIFEST-{:06}", index.snapshot().manifest().generation);
    let mut bytes = std::fs::read(path.join(&newest)).unwrap();
    bytes[100] ^= 1;
    std::fs::write(path.join(newest), bytes).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    let report = salvage(&vfs, &path, &dir.path().join("out")).unwrap();
    assert!(!report.is_whole());
    (report, values(&dir.path().join("out")))
}

#[test]
fn segments_that_only_a_damaged_manifest_names_are_salvaged() {
    let all: Values = (0..60).map(|key| (key, key)).collect();
    let (report, found) = salvage_without_newest_manifest(|_| ());
    assert_eq!((found, report.lost(), report.doubtful), (all.clone(), 0, 0));
    let (report, found) = salvage_without_newest_manifest(|index| {
        let mut writer = index.writer().unwrap();
        writer.delete(7).unwrap();
        writer.commit().unwrap();
        writer.compact().unwrap();
    });
    let mut kept = all;
    kept.remove(&7);
    assert_eq!((found, report.lost()), (kept, 0));
}

#[test]
fn deletions_and_replacements_in_a_log_hold_without_the_manifest_that_names_it() {
    let (report, found) = salvage_without_newest_manifest(|index| {
        let mut writer = index.writer().unwrap();
        writer.delete(7).unwrap();
        writer.delete(8).unwrap();
        writer.put(1, Document::from(Fingerprint(1)).with_value(&1000_u64.to_le_bytes())).unwrap();
        writer.commit().unwrap();
    });
    assert_eq!((found.len(), found.get(&7), found.get(&1)), (58, None, Some(&1000)));
    assert_eq!((report.lost(), report.doubtful, report.known_until), (0, 0, None));
}

#[test]
fn documents_that_a_lost_manifest_may_have_deleted_are_listed() {
    let (report, found) = salvage_without_newest_manifest(|index| {
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        writer.delete(7).unwrap();
        writer.commit().unwrap();
    });
    assert_eq!((found.len(), report.known_until, report.doubtful), (60, Some(2), 60));
    assert!(report.doubtful_keys.iter().any(|key| key.as_u64() == Some(7)));
}
