//! Tests what an index guarantees to its users: creation, visibility of commits, exclusive writing, and which files
//! remain. The guarantees also hold on a failing disk: the tests make each operation fail in turn, and the index must
//! then have the last commit, or the new one if `CURRENT` was already replaced.
//!
//! Some other engines that we examined created an empty database if the file that points to their data was missing,
//! trusted a second sync after a failed one, or did not remove files from an already full disk.

#![allow(clippy::disallowed_methods, reason = "reads and damages the files of an index directly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::faults::{Faults, FaultyVfs, ways};
use crate::support::itself::itself;
#[cfg(target_os = "linux")]
use crate::support::skip::{Missing, skip};
use tempfile::TempDir;
use twindex::format::sketches::Row;
use twindex::params::{Shingling, Tokens, UnicodeVersion, Widths};
use twindex::sys::vfs::TEMPORARY_PREFIX;
use twindex::{
    Admitted, Document, Error, Fingerprint, IdfBuilder, Index, Params, Result, Sketcher, Snapshot, Writer,
    WriterOptions,
};

fn raw() -> Params {
    Params::builder().u64_keys().simhash(3).build().unwrap()
}

fn texts() -> Params {
    Params::builder().words(1).simhash(3).minhash(4, 2).build().unwrap()
}

fn created(params: Params) -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params).unwrap();
    (dir, path, index)
}

fn put(writer: &mut Writer, key: u64, fingerprint: u64) {
    writer.put(key, Fingerprint(fingerprint)).unwrap();
}

#[test]
fn sketch_made_for_another_table_radius_is_accepted_and_found() {
    let params =
        |within| Params::builder().u64_keys().words(2).simhash(within).minhash(6, 14).build().unwrap();
    let (_dir, _, index) = created(params(4));
    let sketch = |words| {
        let other = Params::builder().words(words).simhash(3).minhash(6, 14).build().unwrap();
        Sketcher::new(&other).unwrap().sketch("a rose is a rose is a rose").unwrap()
    };
    let mut writer = index.writer().unwrap();
    writer.put(1, &sketch(2)).unwrap();
    assert!(matches!(writer.admit(2, &sketch(2)).unwrap(), Admitted::Duplicate(_)));
    // Sketches with other parameters are still refused; the error names the first parameter that differs.
    let error = writer.put(3, &sketch(3)).unwrap_err();
    assert!(matches!(&error, Error::ParamsMismatch { field, .. } if field == "width"), "{error}");
    writer.commit().unwrap();
    assert!(index.snapshot().near(&sketch(2)).any().unwrap().unwrap().distance == Some(0));
    // A row has the parameters of its file. All of them must equal the parameters of the index.
    let error = writer.put(4, Document::from_row(&params(3), None)).unwrap_err();
    assert!(matches!(&error, Error::ParamsMismatch { field, .. } if field == "within"), "{error}");
}

#[test]
fn row_of_a_sketch_file_is_admitted_like_its_sketch() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().words(2).simhash(3).minhash(20, 6).bottom(8).build().unwrap();
    let index = Index::create(dir.path().join("x"), params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let stored = sketcher.sketch("the quick brown fox jumps over the lazy dog and is gone").unwrap();
    writer.put("stored", &stored).unwrap();
    writer.commit().unwrap();
    let sketch = sketcher.sketch("the quick brown fox jumps over the lazy dog and is away").unwrap();
    let mut packed = Vec::new();
    twindex::sketch::pack(sketch.signature(), params.minhash.unwrap().signature_bits, &mut packed);
    let row = Row {
        fingerprint: sketch.fingerprint().unwrap().0,
        features: sketch.features(),
        signature: &packed,
        bottom: sketch.bottom(),
        modular: sketch.modular(),
    };
    writer.set_options(writer.options().drop_duplicates(true)).unwrap();
    // Duplicates are not dropped on the basis of an estimate unless the caller allows it.
    let refused = writer.admit("row", Document::from_row(&params, Some(row))).unwrap_err();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("WriterOptions::estimated")), "{refused}");
    writer.set_options(writer.options().estimated(true)).unwrap();
    let by_row = writer.admit("row", Document::from_row(&params, Some(row))).unwrap();
    let by_sketch = writer.admit("sketch", &sketch).unwrap();
    let near = index.snapshot().near(&sketch).limit(1).run().unwrap().hits.pop().unwrap();
    for (how, admitted) in [("row", by_row), ("sketch", by_sketch)] {
        let Admitted::Duplicate(hit) = admitted else { panic!("{how}: {admitted:?}") };
        assert_eq!(format!("{hit:?}"), format!("{near:?}"), "{how}");
        assert!(hit.resemblance.is_some() && hit.hit_in_query.is_some(), "{hit:?}");
    }
    assert_eq!(writer.admit("empty", Document::from_row(&params, None)).unwrap(), Admitted::New);
    // A row with a wrong number of features is refused before the lookup.
    let short = Row { features: &row.features[1..], ..row };
    let refused = writer.admit("short", Document::from_row(&params, Some(short))).unwrap_err();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("19 and")), "{refused}");
    writer.commit().unwrap();
    assert_eq!(index.snapshot().documents(), 2);
}

#[test]
fn index_with_unusable_tokens_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    // Words with an unsupported Unicode version, and sentences with the Unicode version of words.
    let mut sentences = Shingling::words(1, 0);
    sentences.tokens = Tokens::Sentences;
    let params = Params::builder().shingling(sentences).simhash(3).build().unwrap();
    let refused = Index::create(&path, params).unwrap_err();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("sentences/14.0.0")), "{refused:?}");
    let mut params = texts();
    params.shingling.unicode = UnicodeVersion(15, 0, 0);
    let refused = Index::create(&path, params).unwrap_err();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("words/15.0.0")), "{refused:?}");
    assert!(!path.exists());
}

#[test]
fn files_with_newer_tokens_are_refused_by_old_readers() {
    let features = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        u32::from_le_bytes(bytes[12..16].try_into().unwrap())
    };
    for (tokens, invisible, feature) in [
        (Tokens::Words, false, 0),
        (Tokens::WordsSymbols, false, 64),
        (Tokens::Raw, false, 64),
        (Tokens::Words, true, 64),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let mut shingling = Shingling::words(2, 0).with_tokens(tokens).unwrap();
        shingling.folding.invisible = invisible;
        let table = IdfBuilder::new(&shingling).finish().unwrap();
        let params =
            Params::builder().shingling(shingling).simhash_weighted(3, table.weights()).build().unwrap();
        let index = Index::create_with_idf(&path, params.clone(), &table).unwrap();
        let sketcher = index.sketcher().unwrap();
        let mut writer = index.writer().unwrap();
        writer.put("a", &sketcher.sketch("a != b").unwrap()).unwrap();
        writer.commit().unwrap();
        writer.flush().unwrap();
        writer.put("b", &sketcher.sketch("a == b").unwrap()).unwrap();
        writer.commit().unwrap();
        let mut seen = [0; 4];
        for entry in std::fs::read_dir(&path).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            let Some(kind) =
                ["MANIFEST-", "LOG-", "IDF-", "0"].iter().position(|kind| name.starts_with(kind))
            else {
                continue;
            };
            seen[kind] += 1;
            assert_eq!(features(&file) & 64, feature, "{tokens}: {name}");
        }
        assert!(seen.iter().all(|&files| files > 0), "{seen:?}");
        drop(writer);
        assert_eq!(Index::open(&path).unwrap().params(), params);
        // Parameters with tokens of another kind are incompatible.
        let other = Params::builder().words(2).simhash_weighted(3, table.weights()).build().unwrap();
        assert_eq!(params.check_same_sketch(&other).is_ok(), feature == 0);
        assert_eq!(other.check_same_sketch(&params).is_ok(), feature == 0);
    }
}

#[test]
fn create_accepts_an_empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create(dir.path(), raw()).unwrap();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 10);
    writer.commit().unwrap();
    assert_eq!(contents(&Index::open(dir.path()).unwrap().snapshot()), map([(1, 10)]));
    assert!(matches!(Index::create(dir.path(), raw()), Err(Error::AlreadyExists { .. })));
}

#[test]
fn killed_creation_in_an_empty_directory_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("LOCK"), "1\n").unwrap();
    std::fs::write(dir.path().join(format!("{TEMPORARY_PREFIX}x")), "x").unwrap();
    Index::create(dir.path(), raw()).unwrap();
    assert_eq!(names(dir.path()), ["CURRENT", "LOCK", "MANIFEST-000001"]);
}

#[test]
fn only_one_of_many_concurrent_creates_succeeds() {
    for round in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        if round % 2 == 1 {
            std::fs::create_dir(&path).unwrap();
        }
        let start = std::sync::Barrier::new(8);
        let created: Vec<bool> = std::thread::scope(|scope| {
            let open_or_create = || {
                start.wait();
                match Index::create(&path, raw()) {
                    Ok(_) => true,
                    Err(Error::AlreadyExists { .. }) => {
                        Index::open(&path).unwrap();
                        false
                    }
                    Err(other) => panic!("{other:?}"),
                }
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open_or_create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(created.iter().filter(|&&created| created).count(), 1, "round {round}");
        assert!(names(dir.path()).iter().all(|name| name == "index"), "no files are left over");
    }
}

/// Returns all documents of a snapshot. Reads them by every kind of query, and panics if the results differ.
fn contents(snapshot: &Snapshot) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for (segment, deleted) in snapshot.segments() {
        assert_eq!(segment.verify(|_| ()).len(), 0);
        for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
            let key: u64 = segment.key(ordinal).unwrap().to_string().parse().unwrap();
            let fingerprint = segment.fingerprint(segment.rank(ordinal).unwrap().unwrap()).unwrap();
            assert_eq!(found.insert(key, fingerprint), None, "{key} is live twice");
            let record = snapshot.get(key).unwrap().unwrap();
            assert_eq!(record.fingerprint, Some(Fingerprint(fingerprint)));
        }
    }
    for (key, fingerprint) in &found {
        let hits = snapshot.within(Fingerprint(*fingerprint), 0).run().unwrap().hits;
        assert!(hits.iter().any(|hit| hit.key.to_string() == key.to_string()), "{key} is near itself");
    }
    assert_eq!(snapshot.documents(), found.len() as u64);
    found
}

fn map<const N: usize>(documents: [(u64, u64); N]) -> BTreeMap<u64, u64> {
    documents.into()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn is_segment(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "seg")
}

#[test]
fn open_never_creates_an_index() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("absent"), dir.path().to_owned()] {
        assert!(matches!(Index::open(&path), Err(Error::NotAnIndex { .. })), "{path:?}");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn create_refuses_any_existing_file_or_nonempty_directory() {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 10);
    writer.commit().unwrap();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    std::fs::create_dir(dir.path().join("full")).unwrap();
    std::fs::write(dir.path().join("full/file"), "x").unwrap();
    for there in [path.clone(), dir.path().join("file"), dir.path().join("full")] {
        let refused = Index::create(&there, raw()).unwrap_err();
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{there:?}: {refused:?}");
    }
    #[cfg(unix)]
    {
        let dangling = dir.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(matches!(Index::create(&dangling, raw()), Err(Error::AlreadyExists { .. })));
    }
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 10)]));
    assert!(names(dir.path()).iter().all(|name| !name.starts_with(TEMPORARY_PREFIX)));
}

#[test]
fn create_in_a_missing_directory_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let error = Index::create(dir.path().join("a/b"), raw()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn last_put_of_a_key_wins_in_batches_and_across_commits() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 2, 20);
    put(&mut writer, 1, 10);
    put(&mut writer, 2, 21);
    assert_eq!(index.snapshot().documents(), 0, "nothing is visible before the commit");
    assert_eq!(writer.commit().unwrap(), 2);
    assert_eq!(contents(&index.snapshot()), map([(1, 10), (2, 21)]));
    put(&mut writer, 2, 22);
    put(&mut writer, 3, 30);
    assert_eq!(writer.commit().unwrap(), 3);
    assert_eq!(contents(&index.snapshot()), map([(1, 10), (2, 22), (3, 30)]));
    assert!(index.snapshot().within(Fingerprint(20), 0).run().unwrap().hits.is_empty());
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), contents(&index.snapshot()));
}

#[test]
fn deleted_key_is_absent_until_put_again() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    for key in 0..4 {
        put(&mut writer, key, 100 + key);
    }
    writer.commit().unwrap();
    writer.delete(1).unwrap();
    writer.delete(1).unwrap();
    writer.delete(77).unwrap();
    put(&mut writer, 2, 5);
    writer.delete(2).unwrap(); // the delete follows the put
    writer.delete(3).unwrap();
    put(&mut writer, 3, 6); // the put follows the delete
    writer.commit().unwrap();
    assert_eq!(contents(&index.snapshot()), map([(0, 100), (3, 6)]));
    assert_eq!(index.snapshot().get(1).unwrap(), None);
    put(&mut writer, 1, 9);
    writer.commit().unwrap();
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(0, 100), (1, 9), (3, 6)]));
}

#[test]
fn commit_removes_a_segment_without_live_documents() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    put(&mut writer, 1, 2);
    writer.commit().unwrap();
    assert_eq!(index.snapshot().segments().len(), 1);
    assert!(!names(&path).contains(&"000001.seg".to_owned()), "{:?}", names(&path));
    writer.delete(1).unwrap();
    writer.commit().unwrap();
    assert_eq!((index.snapshot().segments().len(), index.snapshot().documents()), (0, 0));
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([]));
}

#[test]
fn snapshot_is_unchanged_after_its_files_are_removed() {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    put(&mut writer, 2, 2);
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    for round in 0..20 {
        put(&mut writer, 1, 50 + round);
        put(&mut writer, 2, 90 + round);
        writer.commit().unwrap();
    }
    assert!(!names(&path).contains(&"000001.seg".to_owned()));
    assert_eq!(contents(&snapshot), map([(1, 1), (2, 2)]));
    assert_eq!((snapshot.generation(), index.snapshot().generation()), (2, 22));
    drop((writer, index));
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(contents(&snapshot), map([(1, 1), (2, 2)]));
    drop(dir);
}

#[test]
fn second_handle_sees_commits_after_a_refresh() {
    let (_dir, path, index) = created(raw());
    let other = Index::open(&path).unwrap();
    assert!(!other.refresh().unwrap());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    assert_eq!(contents(&other.snapshot()), map([]));
    assert!(other.refresh().unwrap());
    assert_eq!(contents(&other.snapshot()), map([(1, 1)]));
    assert!(!other.refresh().unwrap());
    // A new writer continues after all commits of other processes, even those that this handle has not refreshed to.
    put(&mut writer, 2, 2);
    writer.commit().unwrap();
    drop(writer);
    let mut writer = other.writer().unwrap();
    put(&mut writer, 3, 3);
    writer.commit().unwrap();
    assert_eq!(contents(&other.snapshot()), map([(1, 1), (2, 2), (3, 3)]));
}

#[test]
fn refresh_refuses_another_index_at_the_same_path() {
    let (_dir, path, index) = created(raw());
    std::fs::remove_dir_all(&path).unwrap();
    Index::create(&path, raw()).unwrap();
    assert!(matches!(index.refresh(), Err(Error::NotAnIndex { .. })));
    assert!(matches!(index.writer(), Err(Error::NotAnIndex { .. })));
}

#[test]
fn only_one_writer_exists_and_dropping_it_releases_the_lock() {
    let (_dir, path, index) = created(raw());
    let writer = index.writer().unwrap();
    let error = index.writer().unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(matches!(Index::open(&path).unwrap().writer(), Err(Error::Locked { .. })));
    drop(writer);
    drop(index.writer().unwrap());
    Index::open(&path).unwrap().writer().unwrap();
}

/// The environment variable with the path of the index, set for the child process of
/// [`lock_excludes_other_processes_and_is_released_by_process_death`].
const CHILD: &str = "TWINDEX_TEST_CHILD";

#[test]
fn lock_excludes_other_processes_and_is_released_by_process_death() {
    if let Some(path) = std::env::var_os(CHILD) {
        let index = Index::open(path).unwrap();
        match index.writer() {
            Err(Error::Locked { .. }) => println!("child: locked"),
            Ok(mut writer) => {
                // The segment exists when `put` returns.
                writer.set_options(writer.options().memory(1).background_merges(false)).unwrap();
                put(&mut writer, 9, 9);
                println!("child: writing");
                std::process::abort(); // no destructor runs
            }
            Err(other) => panic!("{other:?}"),
        }
        return;
    }
    let (_dir, path, index) = created(raw());
    let child = || {
        let output = itself()
            .args(["--exact", "--nocapture"])
            .arg("store::lock_excludes_other_processes_and_is_released_by_process_death")
            .env(CHILD, &path)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let writer = index.writer().unwrap();
    let said = child();
    assert!(said.contains("child: locked"), "{said}");
    drop(writer);
    let said = child();
    assert!(said.contains("child: writing"), "{said}");
    assert!(names(&path).contains(&"000001.seg".to_owned()), "the child left a segment");
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([]));
    let mut writer = index.writer().unwrap();
    assert!(!names(&path).contains(&"000001.seg".to_owned()), "the next writer sweeps it");
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1)]));
}

#[test]
fn writer_with_a_removed_lock_file_cannot_commit() {
    let (_dir, path, index) = created(raw());
    let mut first = index.writer().unwrap();
    put(&mut first, 1, 1);
    std::fs::remove_file(path.join("LOCK")).unwrap();
    let mut second = index.writer().unwrap();
    assert!(matches!(first.commit(), Err(Error::Locked { .. })));
    assert!(matches!(first.commit(), Err(Error::Poisoned { .. })));
    put(&mut second, 2, 2);
    second.commit().unwrap();
    drop(first);
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(2, 2)]));
}

#[test]
fn dropped_batch_leaves_no_files() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    let before = names(&path);
    writer.set_options(writer.options().memory(64)).unwrap();
    for key in 0..100 {
        put(&mut writer, key, key);
    }
    writer.delete(1).unwrap();
    assert!(names(&path).len() > before.len() + 5, "flushed to several segments");
    drop(writer);
    assert_eq!(names(&path), before);
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1)]));
    assert_eq!(contents(&index.snapshot()), map([(1, 1)]));
}

#[test]
fn batch_larger_than_memory_becomes_several_segments_and_one_commit() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().memory(400)).unwrap();
    let mut expected = BTreeMap::new();
    for i in 0..300_u64 {
        let key = i * 7 % 90; // each key occurs three or four times, mostly in different segments
        if i % 11 == 5 {
            writer.delete(key).unwrap();
            expected.remove(&key);
        } else {
            put(&mut writer, key, i);
            expected.insert(key, i);
        }
        assert_eq!(index.snapshot().documents(), 0);
    }
    assert_eq!(writer.commit().unwrap(), 2);
    assert!(index.snapshot().segments().len() > 1);
    assert_eq!(contents(&index.snapshot()), expected);
    drop(writer);
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), expected);
}

/// Returns texts with keys 1 to 4: a document, the first half of it, a document that overlaps with it, and an unrelated
/// one.
fn contained() -> Vec<(u64, String)> {
    let words = |range: std::ops::Range<u32>| range.map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    vec![(1, words(0..400)), (2, words(0..200)), (3, words(100..900)), (4, words(2000..2400))]
}

#[test]
fn hits_report_containment_in_both_directions() {
    let builder = || Params::builder().u64_keys().words(1).minhash(64, 1).signature_bits(0);
    for (params, exact) in [
        (builder().bottom(1000).build().unwrap(), true),
        (builder().bottom(100).build().unwrap(), false),
        (builder().modulus(1).build().unwrap(), true),
        (builder().modulus(3).build().unwrap(), false),
        (builder().bottom(50).modulus(2).simhash(3).build().unwrap(), false),
    ] {
        let (_dir, path, index) = created(params.clone());
        let sketcher = index.sketcher().unwrap();
        let mut writer = index.writer().unwrap();
        // The batch is written as several segments, and each key is put twice; the last put is valid.
        writer.set_options(writer.options().memory(1)).unwrap();
        for (key, text) in contained().iter().rev() {
            writer.put(*key, &sketcher.sketch("soon replaced").unwrap()).unwrap();
            writer.put(*key, &sketcher.sketch(text).unwrap()).unwrap();
        }
        writer.put(9, &sketcher.sketch("").unwrap()).unwrap();
        writer.commit().unwrap();
        drop(writer);
        let index = Index::open(path).unwrap();
        let snapshot = index.snapshot();
        assert!(snapshot.segments().len() > 3);
        for (segment, _) in snapshot.segments() {
            assert!(segment.verify(|_| ()).is_empty());
        }
        for (key, text) in contained() {
            let (record, sketch) = (snapshot.get(key).unwrap().unwrap(), sketcher.sketch(&text).unwrap());
            assert_eq!((&record.bottom[..], &record.modular[..]), (sketch.bottom(), sketch.modular()));
        }
        let empty = snapshot.get(9).unwrap().unwrap();
        assert!(empty.bottom.is_empty() && empty.modular.is_empty());

        let query = sketcher.sketch(&contained()[0].1).unwrap();
        let hits = snapshot.resembling(&query, 0.0).run().unwrap().hits;
        let found: BTreeMap<String, _> =
            hits.iter().map(|hit| (hit.key.to_string(), (hit.query_in_hit, hit.hit_in_query))).collect();
        for (key, query_in_hit, hit_in_query) in [("1", 1.0, 1.0), ("2", 0.5, 1.0), ("3", 0.75, 0.375)] {
            let (in_hit, in_query) = found[key];
            for (known, truth) in [(in_hit.unwrap(), query_in_hit), (in_query.unwrap(), hit_in_query)] {
                assert_eq!(known.is_exact(), exact, "{key}: {params:?}");
                let allowed = if exact { 1e-12 } else { 4.0 * known.standard_error() };
                assert!((known.value() - truth).abs() <= allowed, "{key}: {known}, {truth}; {params:?}");
            }
        }
        assert!(!found.contains_key("4") && !found.contains_key("9"));
        // A query with only a fingerprint has no containment.
        if let Some(fingerprint) = query.fingerprint() {
            let hits = snapshot.within(fingerprint, 0).run().unwrap().hits;
            assert!(hits.iter().all(|hit| hit.query_in_hit.is_none() && hit.hit_in_query.is_none()));
            let near = snapshot.near(&query).unverified().run().unwrap().hits;
            assert!(near[0].query_in_hit.is_some());
        }
    }
}

#[test]
fn records_with_invalid_samples_are_refused() {
    use twindex::segment::Records;
    use twindex::segment::records::Kept;
    let params = Params::builder().u64_keys().simhash(3).bottom(3).modulus(10).build().unwrap();
    let push = |params: &Params, bottom: &[u64], modular: &[u64]| {
        Records::new(params).push(7.into(), Some(Kept { bottom, modular, ..Kept::default() }))
    };
    push(&params, &[1, 2, 3], &[10, 30]).unwrap();
    push(&params, &[0], &[]).unwrap();
    for (bottom, modular) in [
        (&[][..], &[][..]),
        (&[1, 2, 3, 4], &[]),
        (&[2, 1], &[]),
        (&[1, 1], &[]),
        (&[1 << 48], &[]),
        (&[1], &[15]),
        (&[1], &[20, 10]),
    ] {
        let refused = push(&params, bottom, modular).unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{bottom:?}, {modular:?}: {refused:?}");
    }
    assert!(push(&raw(), &[1], &[]).is_err(), "samples for an index that keeps none");
    let index = created(params);
    let refused = index.2.writer().unwrap().put(1, Fingerprint(1)).unwrap_err();
    assert!(refused.to_string().contains("samples"), "{refused}");
}

#[test]
fn answers_do_not_depend_on_the_number_of_segments() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for key in 0..120 {
        put(&mut writer, key, key << 3);
        writer.commit().unwrap();
    }
    let snapshot = Index::open(&path).unwrap().snapshot();
    assert_eq!(snapshot.segments().len(), 120);
    assert_eq!(contents(&snapshot), (0..120).map(|key| (key, key << 3)).collect());
    let hits = snapshot.within(Fingerprint(0), 1).run().unwrap();
    assert_eq!(hits.hits.len(), 8, "0, 1, 2, 4, 8, 16, 32 and 64");
    let limited = snapshot.within(Fingerprint(0), 1).limit(3).run().unwrap();
    assert_eq!((limited.hits.len(), limited.has_more), (3, true));
    assert_eq!(limited.hits, hits.hits[..3]);
}

#[test]
fn wrong_key_kind_is_refused_and_the_batch_continues() {
    let (_dir, _path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    assert!(matches!(writer.put("seven", Fingerprint(1)), Err(Error::Invalid(_))));
    assert!(matches!(writer.delete("seven"), Err(Error::Invalid(_))));
    assert!(matches!(index.snapshot().get("seven"), Err(Error::Invalid(_))));
    put(&mut writer, 7, 7);
    writer.commit().unwrap();
    assert_eq!(contents(&index.snapshot()), map([(7, 7)]));

    let (_dir, _path, index) = created(texts());
    let sketch = index.sketcher().unwrap().sketch("a b c").unwrap();
    let mut writer = index.writer().unwrap();
    assert!(matches!(writer.put(7, &sketch), Err(Error::Invalid(_))));
    assert!(matches!(writer.put("", &sketch), Err(Error::Invalid(_))));
    assert!(matches!(writer.put("x".repeat(65_536).as_str(), &sketch), Err(Error::Limit { .. })));
    assert!(matches!(writer.put("x", Fingerprint(1)), Err(Error::Invalid(_))));
    writer.put("x".repeat(65_535).as_str(), &sketch).unwrap();
    writer.commit().unwrap();
    assert_eq!(index.snapshot().documents(), 1);
}

#[test]
fn sketches_of_other_parameters_and_invalid_radii_are_refused() {
    let (_dir, _path, index) = created(texts());
    let other = Params::builder().words(2).simhash(3).minhash(4, 2).build().unwrap();
    let sketch = twindex::Sketcher::new(&other).unwrap().sketch("a b c").unwrap();
    let mut writer = index.writer().unwrap();
    assert!(matches!(writer.put("a", &sketch), Err(Error::ParamsMismatch { .. })));
    let snapshot = index.snapshot();
    assert!(matches!(snapshot.near(&sketch).run(), Err(Error::ParamsMismatch { .. })));
    assert!(matches!(snapshot.resembling(&sketch, 0.5).run(), Err(Error::ParamsMismatch { .. })));
    writer.put("a", &index.sketcher().unwrap().sketch("a b c").unwrap()).unwrap();
    writer.commit().unwrap();
    assert!(matches!(index.snapshot().within(Fingerprint(0), 11).run(), Err(Error::Invalid(_))));
}

#[test]
fn empty_text_is_stored_but_matches_no_query() {
    let (_dir, path, index) = created(texts());
    let (empty, other) =
        (index.sketcher().unwrap().sketch(" -- ").unwrap(), index.sketcher().unwrap().sketch("").unwrap());
    let mut writer = index.writer().unwrap();
    writer.put("empty", &empty).unwrap();
    writer.put("also", &other).unwrap();
    writer.put("full", &index.sketcher().unwrap().sketch("one two three").unwrap()).unwrap();
    writer.commit().unwrap();
    let snapshot = Index::open(&path).unwrap().snapshot();
    assert_eq!(snapshot.documents(), 3);
    assert!(snapshot.get("empty").unwrap().unwrap().fingerprint.is_none());
    assert!(snapshot.near(&empty).run().unwrap().hits.is_empty());
    assert!(snapshot.within(Fingerprint(0), 10).run().unwrap().hits.is_empty());
}

#[test]
fn commit_without_changes_writes_nothing() {
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    assert_eq!(writer.commit().unwrap(), 1);
    put(&mut writer, 1, 1);
    assert_eq!(writer.commit().unwrap(), 2);
    let modified = || -> Vec<_> {
        let files = names(&path).into_iter();
        files.map(|name| (std::fs::metadata(path.join(&name)).unwrap().modified().unwrap(), name)).collect()
    };
    let before = modified();
    assert_eq!(writer.commit().unwrap(), 2);
    writer.delete(99).unwrap();
    assert_eq!(writer.commit().unwrap(), 2);
    assert_eq!(modified(), before);
}

#[test]
fn same_commits_give_the_same_segment_bytes() {
    let files = || {
        let (dir, path, index) = created(raw());
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for batch in 0..3 {
            for key in 0..50 {
                put(&mut writer, key + batch * 20, key * key);
            }
            writer.commit().unwrap();
        }
        let segments = names(&path).into_iter().filter(|name| is_segment(name));
        let files: Vec<_> = segments.map(|name| std::fs::read(path.join(&name)).unwrap()).collect();
        drop(dir);
        files
    };
    let first = files();
    assert_eq!(first.len(), 3);
    assert_eq!(first, files());
}

#[test]
fn old_manifests_are_removed_and_unknown_files_are_kept() {
    let (_dir, path, index) = created(raw());
    let others = [
        ".DS_Store",
        "._000001.seg",
        "notes.txt",
        "7.seg",
        "MANIFEST-1",
        "MANIFEST-000001.bak",
        "000009.seg.part",
    ];
    for name in others {
        std::fs::write(path.join(name), "not ours").unwrap();
    }
    let leftovers =
        ["MANIFEST-000077", "MANIFEST-18446744073709551615", "000099.seg", &format!("{TEMPORARY_PREFIX}x")];
    for name in leftovers {
        std::fs::write(path.join(name), "of a writer that crashed").unwrap();
    }
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([]));
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for key in 0..5 {
        put(&mut writer, key, key);
        writer.commit().unwrap();
    }
    let names = names(&path);
    for name in others {
        assert_eq!(std::fs::read(path.join(name)).unwrap(), b"not ours", "{name}");
    }
    for name in leftovers {
        assert!(!names.iter().any(|found| found == name), "{name}");
    }
    let manifests: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| name.starts_with("MANIFEST-00000")).collect();
    assert_eq!(manifests, ["MANIFEST-000001.bak", "MANIFEST-000005", "MANIFEST-000006"]);
    assert_eq!(Index::open(&path).unwrap().snapshot().documents(), 5);
}

#[cfg(unix)]
#[test]
fn non_regular_index_file_is_an_error() {
    use std::os::unix::fs::symlink;
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    drop(writer);
    for name in ["000001.seg", "MANIFEST-000002", "CURRENT"] {
        let (file, aside) = (path.join(name), path.join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        let refused = |what: &str| {
            let error = Index::open(&path).unwrap_err();
            assert!(
                matches!(error, Error::Io { .. } | Error::Corrupt { .. }),
                "{what} for {name}: {error:?}"
            );
            assert!(error.to_string().contains(name), "{what} for {name}: {error}");
        };
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        refused("a FIFO");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        refused("a directory");
        std::fs::remove_dir(&file).unwrap();
        symlink(&file, &file).unwrap();
        refused("a loop of links");
        std::fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        refused("a device");
        std::fs::remove_file(&file).unwrap();
        let sparse = std::fs::File::create(&file).unwrap();
        if sparse.set_len(1 << 42).is_ok() {
            refused("a hole of 4 TiB");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::rename(&aside, &file).unwrap();
    }
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1)]));
}

#[cfg(unix)]
#[test]
fn read_only_index_can_be_opened_and_queried() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    drop((writer, index));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o555)).unwrap();
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1)]));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    // Some users, such as root, can write despite the permissions, so the test also uses a file system that refuses every
    // change.
    let faults = Faults::default();
    faults.read_only.store(true, Ordering::Relaxed);
    let index = Index::open_with(Arc::new(FaultyVfs(Arc::new(faults))), &path).unwrap();
    assert!(!index.refresh().unwrap());
    assert_eq!(contents(&index.snapshot()), map([(1, 1)]));
    assert!(matches!(index.writer(), Err(Error::Io { .. })));
}

#[test]
fn query_can_run_inside_another_query() {
    let (_dir, _, index) = created(raw());
    let mut writer = index.writer().unwrap();
    for key in 0..5000 {
        put(&mut writer, key, key << 40 | key);
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    let answer = |fingerprint: u64| {
        let mut found = Vec::new();
        snapshot
            .for_each_within(Fingerprint(fingerprint), 3, |place, distance| {
                found.push((place.ordinal, distance));
            })
            .unwrap();
        found.sort_unstable();
        found
    };
    let expected: Vec<_> = (0..5000).map(|key| answer(key << 40 | key)).collect();
    let mut asked = 0;
    snapshot
        .for_each_within(Fingerprint(7), 3, |place, _| {
            asked += 1;
            let key = u64::from(place.ordinal);
            assert_eq!(answer(key << 40 | key), expected[key as usize]);
        })
        .unwrap();
    assert!(asked > 1 && expected.iter().all(|found| !found.is_empty()));
}

// Tests with a failing disk.

/// Creates an index with two committed segments, whose documents a batch can replace and delete.
fn before() -> (TempDir, PathBuf, BTreeMap<u64, u64>) {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    put(&mut writer, 1, 1);
    put(&mut writer, 2, 2);
    writer.commit().unwrap();
    put(&mut writer, 3, 3);
    writer.commit().unwrap();
    drop(writer);
    (dir, path, map([(1, 1), (2, 2), (3, 3)]))
}

/// Opens the index, acquires the writer, and commits a batch that is flushed several times.
fn batch(vfs: FaultyVfs, path: &Path, writer_out: &mut Option<(Index, Writer)>) -> Result<()> {
    let index = Index::open_with(Arc::new(vfs), path)?;
    let writer = index.writer()?;
    let (_, writer) = writer_out.insert((index, writer));
    // A failed background merge does not fail the commit; `pages` tests background threads.
    writer.set_options(writer.options().background_merges(false).memory(40)).unwrap();
    writer.put(3, Fingerprint(33))?;
    for key in 10..15 {
        writer.put(key, Fingerprint(key))?;
    }
    writer.delete(2)?;
    writer.put(10, Fingerprint(99))?;
    writer.commit()?;
    Ok(())
}

#[test]
fn failing_operation_leaves_the_last_commit_or_the_new_one() {
    let after = map([(1, 1), (3, 33), (10, 99), (11, 11), (12, 12), (13, 13), (14, 14)]);
    let (mut points, mut kinds, mut new) = (0, BTreeMap::new(), 0);
    for way in 0..ways().count() {
        for fails_at in 1.. {
            let (_dir, path, before) = before();
            let faults = Arc::new(Faults { fails_at, ..ways().nth(way).unwrap() });
            let mut writer = None;
            let done = batch(FaultyVfs(Arc::clone(&faults)), &path, &mut writer);
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                done.unwrap();
                assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), after);
                break; // a batch performs fewer operations than this number
            };
            points += 1;
            let kind = failed.split(' ').nth(1).unwrap().to_owned();
            *kinds.entry(kind).or_insert(0) += 1;
            let case = format!("{failed}, way {way}: {done:?}");

            let found = contents(&Index::open(&path).unwrap().snapshot());
            if done.is_ok() {
                assert_eq!(found, after, "{case}"); // only the removal of garbage failed
                let promises = ["append", "sync", "sync_dir", "publish"];
                assert!(!promises.iter().any(|kind| failed.ends_with(kind)), "{case}");
            } else if faults.current_replaced.load(Ordering::Relaxed) {
                assert_eq!(found, after, "{case}");
                new += 1;
            } else {
                assert_eq!(found, before, "{case}");
            }
            if let Some((index, mut writer)) = writer
                && done.is_err()
            {
                assert!(matches!(writer.commit(), Err(Error::Poisoned { .. })), "{case}");
                let put = writer.put(1, Fingerprint(0));
                assert!(matches!(put, Err(Error::Poisoned { .. })), "{case}");
                assert!(matches!(writer.delete(1), Err(Error::Poisoned { .. })), "{case}");
                assert!(matches!(writer.rollback(), Err(Error::Poisoned { .. })), "{case}");
                assert_eq!(contents(&index.snapshot()), before, "{case}: readers go on");
            }
            assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), found, "{case}: after the drop");

            // The next writer removes garbage, and the same batch succeeds.
            let mut writer = None;
            batch(FaultyVfs(Arc::new(Faults::default())), &path, &mut writer).unwrap();
            drop(writer);
            let index = Index::open(&path).unwrap();
            assert_eq!(contents(&index.snapshot()), after, "{case}: again");
            let ours: Vec<String> = names(&path);
            let segments = ours.iter().filter(|name| is_segment(name)).count();
            assert!(!ours.iter().any(|name| name.starts_with(TEMPORARY_PREFIX)), "{case}: {ours:?}");
            assert_eq!(segments, index.snapshot().segments().len(), "{case}: {ours:?}");
            assert_eq!(ours.len(), segments + 4, "CURRENT, LOCK, two manifests: {case}: {ours:?}");
        }
    }
    println!("{points} fault points: {kinds:?}; the new state was kept after {new}");
    assert!(points > 200 && new > 0, "{points} {new}");
    for kind in
        ["create_temporary", "append", "sync", "publish", "sync_dir", "unlink", "open", "map", "read", "list"]
    {
        assert!(kinds.contains_key(kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn failing_create_leaves_nothing_or_a_complete_index() {
    let mut points = 0;
    for way in 0..ways().count() {
        for fails_at in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            let faults = Arc::new(Faults { fails_at, ..ways().nth(way).unwrap() });
            let done = Index::create_with(Arc::new(FaultyVfs(Arc::clone(&faults))), &path, raw());
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                done.unwrap();
                break;
            };
            points += 1;
            let case = format!("{failed}, way {way}: {done:?}");
            if path.exists() {
                assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([]), "{case}");
                assert!(names(&path).contains(&"CURRENT".to_owned()), "{case}");
            } else {
                assert!(done.is_err(), "{case}");
                Index::create(&path, raw()).unwrap();
            }
            // The temporary directory may remain only if its removal failed as well.
            if !faults.for_ever {
                assert_eq!(names(dir.path()), ["index"], "{case}");
            }
        }
    }
    println!("{points} fault points");
    assert!(points > 40, "{points}");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_keeps_the_last_commit_and_later_commits_succeed() {
    struct UnmountedOnDrop(PathBuf);
    impl Drop for UnmountedOnDrop {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).output();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(dir.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mount {
        return skip(Missing::Elsewhere("mounting a small file system needs root"));
    }
    let mounted = UnmountedOnDrop(dir.path().to_owned());
    let path = mounted.0.join("index");
    let index = Index::create(&path, raw()).unwrap();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1, 1);
    writer.commit().unwrap();
    let before = names(&path);
    let mut failures = 0;
    for round in 0..3 {
        // Writes far more than the disk can hold, as one segment or as several.
        writer.set_options(writer.options().memory(if round == 1 { 1 << 16 } else { usize::MAX })).unwrap();
        let put_all = (2..40_000).try_for_each(|key| writer.put(key, Fingerprint(key * key)));
        let error = put_all.and_then(|()| writer.commit().map(drop)).unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(28)), "{error:?}");
        assert!(matches!(writer.commit(), Err(Error::Poisoned { .. })));
        failures += 1;
        drop(writer);
        assert_eq!(names(&path), before, "round {round}");
        assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1)]));
        writer = index.writer().unwrap();
    }
    put(&mut writer, 2, 2);
    writer.commit().unwrap();
    drop(writer);
    assert_eq!(contents(&Index::open(&path).unwrap().snapshot()), map([(1, 1), (2, 2)]));
    println!("{failures} batches found the disk full");
    drop(index);
}

#[test]
fn failed_batch_leaves_no_segment() {
    let mut failures = 0;
    for fails_at in 1.. {
        let (_dir, path, _) = before();
        let faults = Arc::new(Faults { fails_at, full: true, ..Faults::default() });
        let done = (|| {
            let index = Index::open_with(Arc::new(FaultyVfs(Arc::clone(&faults))), &path)?;
            let mut writer = index.writer_with(WriterOptions::default().logged(false).memory(1))?;
            for fingerprint in 100..104 {
                writer.put(7, Fingerprint(fingerprint))?; // each put becomes a segment; only the last has a live document
            }
            writer.commit()
        })();
        let Some(failed) = faults.failed.lock().unwrap().clone() else { break };
        let index = Index::open(&path).unwrap();
        // The rename of CURRENT may have succeeded although it was reported as failed. Then no file that it names may be
        // removed.
        let pointed = failed.contains("publish CURRENT") || faults.current_replaced.load(Ordering::Relaxed);
        if done.is_err() && !failed.contains("unlink") && !pointed {
            failures += 1;
            let segments = names(&path).iter().filter(|name| is_segment(name)).count();
            assert_eq!(segments, index.snapshot().segments().len(), "{failed}: {:?}", names(&path));
        }
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn unsupported_queries_are_refused_even_if_the_index_is_empty() {
    let (_dir, _path, index) = created(raw());
    let snapshot = index.snapshot();
    assert!(matches!(snapshot.within(Fingerprint(0), 99).run(), Err(Error::Invalid(_))));
    let sketch = index.sketcher().unwrap().sketch("a b c").unwrap();
    assert!(matches!(snapshot.resembling(&sketch, 0.5).run(), Err(Error::Invalid(_))), "no MinHash is kept");
    assert!(snapshot.near(&sketch).run().unwrap().hits.is_empty(), "near asks what is kept");

    let minhash = Params::builder().minhash(4, 2).build().unwrap();
    let (_dir, _path, index) = created(minhash);
    let snapshot = index.snapshot();
    let sketch = index.sketcher().unwrap().sketch("a b c").unwrap();
    assert!(matches!(snapshot.within(Fingerprint(0), 3).run(), Err(Error::Invalid(_))), "no simhash is kept");
    for threshold in [f64::NAN, -0.1, 1.1] {
        assert!(
            matches!(snapshot.resembling(&sketch, threshold).run(), Err(Error::Invalid(_))),
            "{threshold}"
        );
    }
}

#[test]
fn error_names_the_first_parameter_in_which_a_sketch_differs() {
    let (_dir, _path, index) = created(texts());
    let mut params = index.params();
    params.shingling.widths = Widths::one(4).unwrap();
    let sketch = twindex::Sketcher::new(&params).unwrap().sketch("a b c").unwrap();
    let error = index.writer().unwrap().put("a", &sketch).unwrap_err().to_string();
    assert!(error.contains("width is"), "{error}");
}

#[test]
fn create_refuses_parameters_out_of_range() {
    let dir = tempfile::tempdir().unwrap();
    let mut params = raw();
    params.simhash.as_mut().unwrap().within = 200;
    let path = dir.path().join("index");
    assert!(matches!(Index::create(&path, params), Err(Error::Invalid(_))));
    assert!(!path.exists());
}

#[test]
fn query_limit_keeps_the_nearest_and_counts_the_others() {
    let (_dir, _path, index) = created(raw());
    let mut writer = index.writer().unwrap();
    for key in 0..200 {
        // The fingerprints have distances 0 to 3, in a different order than the keys.
        put(&mut writer, key, (1 << (key * 7 % 4)) - 1);
        if key % 60 == 59 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    let all = index.snapshot().within(Fingerprint(0), 3).run().unwrap();
    assert_eq!((all.hits.len(), all.has_more), (200, false));
    assert!(all.hits.is_sorted());
    for limit in [0, 1, 49, 50, 51, 199, 200, 201] {
        let some = index.snapshot().within(Fingerprint(0), 3).limit(limit).run().unwrap();
        assert_eq!(some.hits, all.hits[..limit.min(200)], "limit {limit}");
        assert_eq!(some.has_more, limit < 200, "limit {limit}");
    }
}
