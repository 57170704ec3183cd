//! Tests upgrades: the new index has the documents of the old files of any version, the old files do not change, and damage
//! is an error that names the damaged file.
//!
//! `tests/golden/index-v1` and `index-v2` contain indexes that the programs of these versions wrote, from the texts of
//! [`page`] and the fingerprints of [`number`]:
//!
//! - `index-v1/pages`, `index-v2/pages`: a batch of 40 pages, then a batch that replaces two pages and adds two;
//! - `index-v1/bands`: 40 pages with bands only, without signatures;
//! - `index-v1/numbers`: 50 fingerprints whose keys are numbers;
//! - `index-v2/weighted`: the batches of `pages`, with characters as tokens and with an IDF table.

#![allow(clippy::disallowed_methods, reason = "damages files from outside")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::tempdir;
use twindex::segment::Segment;
use twindex::store::OnConflict;
use twindex::store::verify::verify;
use twindex::sys::{MemoryVfs, RealVfs, Vfs};
use twindex::{Error, Index, KeyBuf, Params, Result, Upgrade, format_version, upgrade};

use crate::support::attached::{self, documents};
use crate::support::legacy::reseal;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Returns the bytes of a file, or of each file of a directory, by path.
fn bytes_at(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_file() {
        return [(path.to_owned(), std::fs::read(path).unwrap())].into();
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

fn real() -> Arc<dyn Vfs> {
    Arc::new(RealVfs)
}

/// Upgrades `from` to `out`, and checks that the old files are unchanged and that `verify` finds no problem in the new
/// index.
fn upgraded(from: &Path, out: &Path, memory: usize) -> Result<(Upgrade, Index)> {
    let before = bytes_at(from);
    let upgraded = upgrade(&real(), from, out, memory)?;
    assert_eq!(bytes_at(from), before, "{}", from.display());
    let index = Index::open(out)?;
    let problems = verify(&RealVfs, out, |_| ()).problems;
    assert!(problems.is_empty(), "{}: {problems:?}", from.display());
    assert_eq!(index.snapshot().documents(), upgraded.documents, "{}", from.display());
    assert!(format_version(&RealVfs, out)?.is_current);
    Ok((upgraded, index))
}

/// Returns the indexes in a directory of golden files, sorted by path.
fn indexes_of(name: &str) -> Vec<PathBuf> {
    let dirs = std::fs::read_dir(golden(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut dirs: Vec<PathBuf> = dirs.filter(|path| path.is_dir()).collect();
    dirs.sort();
    dirs
}

/// Returns the text of a page of the golden files of versions 1 and 2.
fn page(number: u64) -> String {
    if number % 9 == 8 {
        return "!".repeat(number as usize);
    }
    format!("text number {number} of page {} has words {} and {}", number % 7, number.pow(2), number.pow(3))
}

/// Returns a fingerprint of the golden files of version 1.
fn number(number: u64) -> u64 {
    let mixed = (number - number % 10 / 9 * 9 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Indexes the pages with the current version, in the first `batches` batches of the golden files. The IDF table, if any, is
/// read from the directory `copied`.
fn pages(path: &Path, params: Params, copied: &Path, batches: usize) -> Index {
    let table = std::fs::read_dir(copied)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("IDF-"));
    let table = table.map(|path| twindex::open_idf(path).unwrap());
    let index = Index::create_from(real(), path, params, table.as_ref()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let second = [5, 10, 40, 41].map(|number| (number, page(number + 100)));
    for batch in
        [(0..40).map(|number| (number, page(number))).collect(), second.to_vec()].iter().take(batches)
    {
        let mut writer = index.writer().unwrap();
        writer.set_logged(false);
        for (number, text) in batch {
            writer.put(format!("page {number}").as_str(), &sketcher.sketch(text).unwrap()).unwrap();
        }
        writer.commit().unwrap();
    }
    index
}

#[test]
fn upgrade_copies_all_documents_of_current_indexes() {
    let dir = tempdir().unwrap();
    let mut upgrades = 0;
    for group in [
        "index-v3",
        "index-v3-fields",
        "index-v3-narrow",
        "index-v3-near",
        "index-v3-packed",
        "index-v3-priorities",
    ] {
        for from in indexes_of(group) {
            let old = Index::open(&from).unwrap().snapshot();
            let out = dir.path().join(format!("{group} {upgrades}"));
            let (report, index) = upgraded(&from, &out, 1 << 20).unwrap();
            assert!(report.from.is_current && report.from.absent.is_none(), "{}", from.display());
            let new = index.snapshot();
            assert_eq!(documents(&new), documents(&old), "{}", from.display());
            assert_eq!((new.params(), new.now(), new.payload()), (old.params(), old.now(), old.payload()));
            assert_eq!(new.generation(), old.generation(), "{}", from.display());
            assert_ne!(new.uuid(), old.uuid(), "{}", from.display());
            assert_eq!(new.logged_documents(), 0, "{}", from.display());
            upgrades += 1;
        }
    }
    assert!(upgrades >= 16, "{upgrades}");
}

#[test]
fn segment_file_of_the_current_version_becomes_an_index() {
    let dir = tempdir().unwrap();
    let file = golden("three-records.seg");
    let (report, index) = upgraded(&file, &dir.path().join("three"), 1 << 20).unwrap();
    assert_eq!((report.documents, report.segments, report.from.number), (3, 1, 3));
    let keys: Vec<String> = documents(&index.snapshot()).into_keys().collect();
    assert_eq!(keys, ["rose-1", "rose-2", "tulip"]);
    assert!(std::fs::read(dir.path().join("three/000001.seg")).unwrap() == std::fs::read(&file).unwrap());

    // The highest stamp of a segment with stamps becomes the time. With this time, 1051, document `a` has not expired: its
    // stamp is 1000, and it would expire at 1060.
    let living = golden("index-v3").join("living/000001.seg");
    let (report, index) = upgraded(&living, &dir.path().join("living"), 1 << 20).unwrap();
    let (snapshot, segment) = (index.snapshot(), Segment::open(&RealVfs, &living).unwrap());
    let last = (0..4).map(|ordinal| segment.stamp(ordinal).unwrap()).max().unwrap();
    assert_eq!((snapshot.now(), report.documents), (last, 4));
}

#[test]
fn upgraded_indexes_equal_current_indexes_of_the_same_texts() {
    let dir = tempdir().unwrap();
    for (name, version, batches) in [
        ("index-v1/pages", 1, 2),
        ("index-v1/bands", 1, 1),
        ("index-v2/pages", 2, 2),
        ("index-v2/weighted", 2, 2),
    ] {
        let from = golden(name);
        let out = dir.path().join(name.replace('/', " "));
        let found = format_version(&RealVfs, &from).unwrap();
        assert_eq!((found.number, found.is_current), (version, false));
        let (report, index) = upgraded(&from, &out, 1 << 20).unwrap();
        assert_eq!((report.from, report.documents), (found, if batches == 2 { 42 } else { 40 }));
        assert!(report.from.absent.unwrap().contains("values, stamps, marks, priorities and sets"));
        let snapshot = index.snapshot();
        let again = pages(&out.with_extension("again"), snapshot.params().clone(), &out, batches);
        assert_eq!(documents(&snapshot), documents(&again.snapshot()), "{name}");
        assert_eq!(snapshot.generation(), again.snapshot().generation(), "{name}");
        // Both indexes have the same records, so merging each into one segment gives the same bytes.
        let merged = dir.path().join(format!("{name} merged").replace('/', " "));
        Index::merge(&merged, &[again], OnConflict::Refuse, 1 << 20).unwrap();
        let compacted = out.with_extension("compacted");
        Index::merge(&compacted, &[index], OnConflict::Refuse, 1 << 20).unwrap();
        let [merged, compacted] =
            [merged, compacted].map(|dir| std::fs::read(dir.join("000001.seg")).unwrap());
        assert!(merged == compacted, "{name}");
    }

    let (report, index) =
        upgraded(&golden("index-v1/numbers"), &dir.path().join("numbers"), 1 << 20).unwrap();
    assert_eq!(report.documents, 50);
    for key in 0..50_u64 {
        let record = index.snapshot().get(key).unwrap().unwrap();
        assert_eq!(record.fingerprint.unwrap().0, number(key), "{key}");
    }
}

#[test]
fn segments_of_old_versions_become_indexes() {
    let dir = tempdir().unwrap();
    for (name, absent) in [("version-1.seg", "samples, values"), ("version-2.seg", "values")] {
        let (report, index) = upgraded(&golden(name), &dir.path().join(name), 1 << 20).unwrap();
        assert_eq!((report.documents, report.segments), (3, 1));
        assert!(report.from.absent.unwrap().starts_with(absent), "{name}");
        let (sketcher, snapshot) = (index.sketcher().unwrap(), index.snapshot());
        for (key, text) in [
            ("rose-1", "a rose is a rose"),
            ("rose-2", "A ROSE is a rose."),
            ("tulip", "Ten tulips; nine tulips"),
        ] {
            let (sketch, record) = (sketcher.sketch(text).unwrap(), snapshot.get(key).unwrap().unwrap());
            assert_eq!(record.fingerprint, sketch.fingerprint(), "{name} {key}");
            assert_eq!((record.bottom, record.modular), (sketch.bottom().into(), sketch.modular().into()));
            let hits = snapshot.near(&sketch).run().unwrap().hits;
            assert!(hits.iter().any(|hit| hit.key.to_string() == key), "{name} {key}");
        }
    }
}

/// Without memory, all columns spill to scratch files, and the bands are read once for each stripe of one document.
#[test]
fn upgrade_gives_the_same_segments_with_any_memory() {
    let dir = tempdir().unwrap();
    for (number, name) in
        ["index-v1/pages", "index-v2/pages", "index-v1/numbers", "index-v3/texts", "index-v3-fields/common"]
            .into_iter()
            .enumerate()
    {
        let outs = [0, 1 << 30].map(|memory| dir.path().join(format!("{number} {memory}")));
        for (out, memory) in outs.iter().zip([0, 1 << 30]) {
            upgraded(&golden(name), out, memory).unwrap();
        }
        let [few, many] = outs.map(|out| std::fs::read(out.join("000001.seg")).unwrap());
        assert!(few == many, "{name}");
    }
}

/// Returns an in-memory disk with the old file or index at `/old`.
fn disk_with(files: &BTreeMap<PathBuf, Vec<u8>>, root: &Path) -> Arc<dyn Vfs> {
    let vfs = MemoryVfs::default();
    for (path, bytes) in files {
        let path = match path.strip_prefix(root).unwrap() {
            name if name.as_os_str().is_empty() => PathBuf::from("/old"),
            name => Path::new("/old").join(name),
        };
        let parent = path.parent().unwrap();
        if !vfs.exists(parent).unwrap() {
            vfs.create_dir(parent).unwrap();
        }
        let mut file = vfs.create_temporary(parent).unwrap();
        file.append(bytes).unwrap();
        file.publish(&path, false).unwrap();
    }
    Arc::new(vfs)
}

/// Checks that upgrading these files fails with an error that reports damage, and leaves no files.
fn check_refused(files: &BTreeMap<PathBuf, Vec<u8>>, root: &Path, what: &str) {
    let vfs = disk_with(files, root);
    let error = upgrade(&vfs, Path::new("/old"), Path::new("/new"), 1 << 16).expect_err(what);
    assert!(error.is_corruption(), "{what}: {error}");
    assert!(error.to_string().contains("/old"), "{what}: {error}");
    let left = vfs.list(Path::new("/")).unwrap();
    assert_eq!(left.len(), 1, "{what}: {left:?}");
}

#[test]
fn flipped_and_missing_bytes_of_old_segments_are_reported() {
    for name in ["version-1.seg", "version-2.seg"] {
        let path = golden(name);
        let sound = bytes_at(&path);
        for at in 0..sound[&path].len() {
            let mut damaged = sound.clone();
            damaged.get_mut(&path).unwrap()[at] ^= 1 << (at % 8);
            check_refused(&damaged, &path, &format!("{name}, byte {at}"));
            damaged.clone_from(&sound);
            damaged.get_mut(&path).unwrap().truncate(at);
            check_refused(&damaged, &path, &format!("{name}, {at} bytes"));
        }
    }
}

#[test]
fn flipped_and_missing_bytes_of_old_indexes_are_reported() {
    let root = golden("index-v2/weighted");
    let sound = bytes_at(&root);
    for (path, bytes) in &sound {
        if path.ends_with("MANIFEST-000002") {
            continue; // the manifest of the previous generation, which is not read
        }
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = sound.clone();
            damaged.get_mut(path).unwrap()[at] ^= 1 << (at % 8);
            check_refused(&damaged, &root, &format!("{}, byte {at}", path.display()));
            damaged.get_mut(path).unwrap().truncate(at);
            check_refused(&damaged, &root, &format!("{}, {at} bytes", path.display()));
        }
        let mut damaged = sound.clone();
        damaged.remove(path);
        let vfs = disk_with(&damaged, &root);
        upgrade(&vfs, Path::new("/old"), Path::new("/new"), 1 << 16).expect_err("a file is missing");
    }
}

/// Changes a byte and updates the checksums. The upgrade must either copy the same documents or be refused, at the latest by
/// the salt.
#[test]
fn changed_bytes_with_valid_checksums_change_no_upgraded_document() {
    for name in ["version-1.seg", "version-2.seg"] {
        let path = golden(name);
        let sound = std::fs::read(&path).unwrap();
        let mut again = sound.clone();
        reseal(&mut again, &sound);
        assert!(again == sound, "sealing is what the old version did");
        let upgrade_bytes = |bytes: &[u8]| {
            let vfs = disk_with(&[(path.clone(), bytes.to_vec())].into(), &path);
            upgrade(&vfs, Path::new("/old"), Path::new("/new"), 1 << 16)?;
            Ok::<_, Error>(documents(&Index::open_with(vfs, Path::new("/new"))?.snapshot()))
        };
        let expected = upgrade_bytes(&sound).unwrap();
        let (mut same, mut refused) = (0, 0);
        for at in 8..sound.len() {
            let mut changed = sound.clone();
            changed[at] = changed[at].wrapping_add(1 << (at % 7));
            reseal(&mut changed, &sound);
            match upgrade_bytes(&changed) {
                Ok(found) => {
                    assert_eq!(found, expected, "{name}, byte {at}");
                    same += 1;
                }
                Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => refused += 1,
                Err(Error::Invalid(_)) if at == 10 => refused += 1, // the byte of the role
                Err(error) => panic!("{name}, byte {at}: {error}"),
            }
        }
        println!("{name}: {same} changes have no effect, {refused} are refused");
        assert!(same > 100 && refused > 500, "{same} {refused}");
    }
}

#[test]
fn files_that_cannot_be_upgraded_are_refused_by_name() {
    let dir = tempdir().unwrap();
    let out = dir.path().join("out");
    let refused = |from: &Path, out: &Path| upgrade(&real(), from, out, 1 << 20).unwrap_err();

    let error = refused(&golden("sets.sketches"), &out).to_string();
    assert!(error.contains("sets.sketches") && error.contains("role 6 (Sketches)"), "{error}");
    let missing = dir.path().join("missing");
    assert!(matches!(refused(&missing, &out), Error::NotAnIndex { path, .. } if path == missing));
    assert!(matches!(refused(dir.path(), &out), Error::NotAnIndex { .. }));

    let mut newer = std::fs::read(golden("version-1.seg")).unwrap();
    newer[8] = 4;
    let sound = newer.clone();
    reseal(&mut newer, &sound);
    let path = dir.path().join("newer.seg");
    std::fs::write(&path, &newer).unwrap();
    let error = refused(&path, &out);
    assert!(matches!(&error, Error::Unsupported { found, .. } if found == "4"), "{error}");

    // A segment names its IDF table, but does not contain it.
    let segment = dir.path().join("000001.seg");
    std::fs::copy(golden("index-v2/weighted/000001.seg"), &segment).unwrap();
    let error = refused(&segment, &out).to_string();
    assert!(error.contains("IDF-f1b34cedcfb573516ef2c9b89e04143c"), "{error}");
    let (report, _) = upgraded(&golden("index-v2/weighted/000001.seg"), &out, 1 << 20).unwrap();
    assert_eq!(report.documents, 40);

    assert!(matches!(refused(&golden("version-1.seg"), &out), Error::AlreadyExists { path } if path == out));
    let inside = out.join("inside");
    for inside in [inside, out.join("../x").join("..").join(out.file_name().unwrap()).join("inside")] {
        let error = refused(&out, &inside).to_string();
        assert!(error.contains("inside") && !inside.exists(), "{error}");
    }
}

#[test]
fn format_version_is_read_from_the_header_alone() {
    let version = |name: &str| format_version(&RealVfs, &golden(name));
    for (name, number) in [
        ("version-1.seg", 1),
        ("version-2.seg", 2),
        ("three-records.seg", 3),
        ("index-v1/pages", 1),
        ("index-v2/pages", 2),
        ("index-v3/living", 3),
    ] {
        let found = version(name).unwrap();
        assert_eq!((found.number, found.is_current), (number, number == 3), "{name}");
    }
}

/// Upgrades an index with all kinds of attached data, with deletes and with a log.
#[test]
fn upgrade_copies_values_stamps_marks_priorities_and_sets() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("old");
    let old = attached::index(&path, 700).snapshot();
    let (report, new) = upgraded(&path, &dir.path().join("new"), 1 << 16).unwrap();
    assert_eq!(documents(&new.snapshot()), documents(&old));
    assert_eq!(report.documents, old.documents());
    assert_eq!(new.snapshot().get("key 650").unwrap().unwrap().stamp, Some(650));
    let same: Vec<KeyBuf> = new.snapshot().keys().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(same, old.keys().unwrap().collect::<Result<Vec<_>>>().unwrap());
}
