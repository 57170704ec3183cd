//! Tests writing operations on failing disks: for every n, the disk fails at its n-th operation. Acknowledged commits
//! must be intact, other commits complete or absent; no temporary files may remain, and a repetition of the operation
//! must succeed.
//!
//! The modules `store`, `living` and `merge` test commits, flushes and compaction in the same way; this module tests all
//! other operations.

#![allow(clippy::disallowed_methods, reason = "looks at the files of an index from outside")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::faults::{Faults, FaultyVfs, ways};
use tempfile::TempDir;
use twindex::IdfBuilder;
use twindex::params::Shingling;
use twindex::sketch::{Buffers, Sketcher};
use twindex::store::OnConflict;
use twindex::store::salvage::salvage;
use twindex::store::verify::verify;
use twindex::sys::vfs::TEMPORARY_PREFIX;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Document, Error, Fingerprint, Index, Key, Params, Result, Writer, WriterOptions};

/// The stored document of each key.
type Documents = BTreeMap<u64, String>;

/// EDQUOT, EMFILE, EFBIG, EINTR, EAGAIN, EROFS. The engine treats them like EIO and ENOSPC, and does not retry after any
/// of them.
const ERRORS: [i32; 6] = [122, 24, 27, 4, 11, 30];

fn documents(index: &Index) -> Documents {
    let (mut all, snapshot) = (Documents::new(), index.snapshot());
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?;
            all.insert(key.to_buf().as_u64().unwrap(), format!("{record:?}"));
            Ok(())
        })
        .unwrap();
    all
}

fn opened(path: &Path) -> Documents {
    documents(&Index::open(path).unwrap())
}

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

fn check_sound(path: &Path, case: &str) {
    let problems = verify(&RealVfs, path, |_| ()).problems;
    assert!(problems.is_empty(), "{case}: {problems:?}");
}

/// Runs `act` in a directory filled by `prepare`, on disks that fail at each operation in each way. Calls `check` with
/// the directory, the result of `act`, whether operations after the failure succeeded, and a description of the case.
/// Returns the number of operations that were made to fail.
fn at_every_operation<T: std::fmt::Debug>(
    prepare: impl Fn(&Path),
    act: impl Fn(Arc<dyn Vfs>, &Path) -> Result<T>,
    mut check: impl FnMut(&Path, Result<T>, bool, &str),
) -> usize {
    let mut points = 0;
    let prepared = tempfile::tempdir().unwrap();
    prepare(prepared.path());
    for way in 0..=ways().count() {
        for fails_at in 1.. {
            let dir = copied(prepared.path());
            let usual = ways().nth(way).unwrap_or_default();
            let errno = (way == ways().count()).then(|| ERRORS[fails_at % ERRORS.len()]);
            let faults = Arc::new(Faults { fails_at, errno, ..usual });
            let done = act(Arc::new(FaultyVfs(Arc::clone(&faults))), dir.path());
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                check(dir.path(), Ok(done.unwrap()), true, "without a failure");
                break; // `act` performs fewer operations than this number
            };
            points += 1;
            let case = format!("{failed}, way {way}: {:?}", done.as_ref().err());
            check(dir.path(), done, !faults.for_ever, &case);
        }
    }
    points
}

/// Copies a directory with its subdirectories.
fn copied(from: &Path) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let index = entry.unwrap().path();
        let to = dir.path().join(index.file_name().unwrap());
        std::fs::create_dir(&to).unwrap();
        for (path, bytes) in files(&index) {
            std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

const AGE: u64 = 6;

fn expiring() -> Params {
    Params::builder().u64_keys().simhash(3).values().expire_after(AGE).build().unwrap()
}

fn put(writer: &mut Writer, key: u64, fingerprint: u64, stamp: u64) -> Result<()> {
    let value = [fingerprint as u8; 3];
    writer.put(key, Document::from(Fingerprint(fingerprint)).with_value(&value).with_stamp(stamp))
}

/// Makes commits that add, delete and expire documents, from time 20 on; calls `acknowledged` after each commit.
fn stream(vfs: Arc<dyn Vfs>, path: &Path, acknowledged: &dyn Fn(&Index)) -> Result<()> {
    let index = Index::open_with(vfs, path)?;
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false))?;
    for now in 20..24 {
        for i in 0..2 {
            put(&mut writer, now % 5 * 2 + i, now * 10 + i, now - i)?;
        }
        writer.delete(now % 7)?;
        writer.commit()?;
        acknowledged(&index);
        if now % 2 == 1 {
            writer.flush()?;
        }
    }
    while writer.merge_step()? {}
    writer.gc()?;
    writer.delete(4)?;
    writer.compact()?;
    acknowledged(&index);
    // Leaves a log that ends with a mark, and reads it.
    drop(writer);
    let mut writer = index.writer()?;
    writer.commit_with(b"begins a log")?;
    drop(writer);
    index.refresh()?;
    Ok(())
}

/// Creates an index with two segments and a log.
fn living(path: &Path) {
    let index = Index::create(path, expiring()).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for now in 14..20 {
        for i in 0..2 {
            put(&mut writer, now % 5 * 2 + i, now * 10 + i, now - i).unwrap();
        }
        writer.commit().unwrap();
        if now == 15 || now == 17 {
            writer.flush().unwrap();
        }
    }
}

#[test]
fn failing_disk_loses_no_acknowledged_commit_with_deletes_and_expiry() {
    // The distinct states after each commit, in order.
    let states = RefCell::new(Vec::new());
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        living(&path);
        states.borrow_mut().push(opened(&path));
        stream(Arc::new(RealVfs), &path, &|index| states.borrow_mut().push(documents(index))).unwrap();
    }
    let states = states.into_inner();
    assert_eq!(states.len(), 6);
    let acknowledged = RefCell::new(0);
    let mut later = 0;
    let points = at_every_operation(
        |dir| living(&dir.join("index")),
        |vfs, dir| {
            *acknowledged.borrow_mut() = 0;
            stream(vfs, &dir.join("index"), &|_| *acknowledged.borrow_mut() += 1)
        },
        |dir, done, _, case| {
            let path = dir.join("index");
            let at = *acknowledged.borrow();
            let found = opened(&path);
            let place = states.iter().rposition(|state| *state == found);
            assert!(place.is_some_and(|place| place == at || place == at + 1), "{case}: {place:?} of {at}");
            later += usize::from(place != Some(at));
            match done {
                Ok(()) => assert_eq!(at, 5, "{case}"),
                // A failed disk operation must not be reported as damage, and neither must a mark that could not be
                // written.
                Err(error) => assert!(!error.is_corruption(), "{case}: {error}"),
            }
            check_sound(&path, case);
            // The next writer removes garbage and continues.
            let index = Index::open(&path).unwrap();
            index.compact().unwrap();
            assert_eq!(documents(&index), found, "{case}");
            check_sound(&path, case);
            let left = names(&path);
            assert!(!left.iter().any(|name| name.starts_with(TEMPORARY_PREFIX)), "{case}: {left:?}");
            let of = |end: &str| left.iter().filter(|name| name.ends_with(end)).count();
            assert_eq!(of(".seg"), 1, "{case}: {left:?}");
        },
    );
    println!("{points} fault points; a commit without acknowledgement was kept after {later}");
    assert!(points > 400 && later > 0, "{points} {later}");
}

#[test]
fn gc_fails_if_the_directory_cannot_be_listed() {
    let prepared = tempfile::tempdir().unwrap();
    living(&prepared.path().join("index"));
    let mut seen = 0;
    for fails_at in 1.. {
        let dir = copied(prepared.path());
        let faults = Arc::new(Faults { fails_at, ..Faults::default() });
        let vfs = Arc::new(FaultyVfs(Arc::clone(&faults)));
        let writer = Index::open_with(vfs, &dir.path().join("index")).and_then(|index| index.writer());
        let Ok(mut writer) = writer else { continue };
        let before = faults.count.load(Ordering::Relaxed);
        let removed = writer.gc();
        let Some(failed) = faults.failed.lock().unwrap().clone() else { break };
        if fails_at > before && failed.ends_with(": list") {
            assert!(removed.is_err(), "{failed}: {removed:?}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[cfg(unix)]
#[test]
fn create_reports_why_the_directory_cannot_be_listed() {
    let dir = tempfile::tempdir().unwrap();
    // `create` first checks whether the path exists, then lists the directory.
    let refused = |errno| {
        let faults = Arc::new(Faults { fails_at: 2, errno: Some(errno), ..Faults::default() });
        let refused = Index::create_with(Arc::new(FaultyVfs(Arc::clone(&faults))), dir.path(), expiring());
        assert_eq!(faults.failed.lock().unwrap().as_deref(), Some("2: list"));
        refused.unwrap_err()
    };
    // EACCES, EIO, EMFILE.
    for errno in [13, 5, 24] {
        match refused(errno) {
            Error::Io { op, path, source } => {
                assert_eq!((op, path.as_path(), source.raw_os_error()), ("list", dir.path(), Some(errno)));
            }
            other => panic!("{errno}: {other:?}"),
        }
    }
    // ENOTDIR is returned for a file, ENOENT for a symbolic link without a target.
    for errno in [20, 2] {
        let refused = refused(errno);
        assert!(matches!(refused, Error::AlreadyExists { .. }), "{errno}: {refused:?}");
    }
}

#[test]
fn copy_on_a_failing_disk_is_complete_or_absent() {
    let mut whole = 0;
    let points = at_every_operation(
        |dir| living(&dir.join("index")),
        |vfs, dir| Index::open_with(vfs, &dir.join("index"))?.copy_to(dir.join("copy")),
        |dir, done, went_on, case| {
            let (path, copy) = (dir.join("index"), dir.join("copy"));
            let expected = opened(&path);
            assert_eq!(expected.len(), 10);
            if copy.exists() {
                assert_eq!(opened(&copy), expected, "{case}");
                check_sound(&copy, case);
                whole += 1;
            } else {
                assert!(done.is_err(), "{case}");
                Index::open(&path).unwrap().copy_to(&copy).unwrap();
                assert_eq!(opened(&copy), expected, "{case}: again");
            }
            if went_on {
                assert_eq!(names(dir), ["copy", "index"], "{case}: no files are left over");
            }
        },
    );
    println!("{points} fault points; the copy was there after {whole}");
    assert!(points > 100 && whole > 5, "{points} {whole}");
}

#[test]
fn shard_merge_on_a_failing_disk_is_complete_or_absent() {
    let shards = |dir: &Path| {
        living(&dir.join("one"));
        let index = Index::create(dir.join("two"), expiring()).unwrap();
        let mut writer = index.writer().unwrap();
        for key in 100..103 {
            put(&mut writer, key, key, 18).unwrap();
        }
        writer.commit().unwrap();
    };
    let mut whole = 0;
    let points = at_every_operation(
        shards,
        |vfs, dir| {
            let one = Index::open_with(Arc::clone(&vfs), &dir.join("one"))?;
            let two = Index::open_with(vfs, &dir.join("two"))?;
            Index::merge(dir.join("all"), &[one, two], OnConflict::Refuse, 1 << 20)
        },
        |dir, done, went_on, case| {
            let mut expected = opened(&dir.join("one"));
            expected.extend(opened(&dir.join("two")));
            assert_eq!(expected.len(), 13);
            let all = dir.join("all");
            if all.exists() {
                assert_eq!(opened(&all), expected, "{case}");
                check_sound(&all, case);
                whole += 1;
            } else {
                assert!(done.is_err(), "{case}");
            }
            if went_on {
                let names = names(dir);
                assert!(names.len() == 2 + usize::from(all.exists()), "{case}: {names:?}");
            }
        },
    );
    println!("{points} fault points; the merged index was there after {whole}");
    assert!(points > 100 && whole > 5, "{points} {whole}");
}

#[test]
fn salvage_on_failing_disk_reports_losses_and_alters_no_document() {
    let (mut whole, mut partly) = (0, 0);
    let points = at_every_operation(
        |dir| living(&dir.join("index")),
        |vfs, dir| salvage(&vfs, &dir.join("index"), &dir.join("out")),
        |dir, done, went_on, case| {
            let (path, out) = (dir.join("index"), dir.join("out"));
            let all = opened(&path);
            if out.exists() {
                let found = opened(&out);
                check_sound(&out, case);
                if let Ok(report) = &done {
                    assert_eq!(report.documents, found.len() as u64, "{case}");
                    assert!(!report.is_whole() || found == all, "{case}: {report:?}");
                    partly += usize::from(!report.is_whole());
                }
                // If the manifest could not be read, salvage may restore documents that it marks as deleted or replaced.
                let certain =
                    done.as_ref().map_or(true, |report| report.generation.is_some() && report.is_whole());
                if certain {
                    assert!(found.iter().all(|(key, record)| all.get(key) == Some(record)), "{case}");
                }
                whole += usize::from(found == all);
            } else {
                assert!(done.is_err(), "{case}");
            }
            if went_on && done.is_err() && !out.exists() {
                assert_eq!(names(dir), ["index"], "{case}: no files are left over");
            }
        },
    );
    println!("{points} fault points; all was saved after {whole}, and reported to be less after {partly}");
    assert!(points > 100 && whole > 5 && partly > 5, "{points} {whole} {partly}");
}

#[test]
fn creation_with_idf_table_is_atomic_on_a_failing_disk() {
    let table = {
        let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
        let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
        for text in ["one two", "two three", "three four five"] {
            let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
            plain.shingler().distinct(text, &mut buffers, &mut shingles);
            builder.add(&shingles).unwrap();
        }
        builder.finish().unwrap()
    };
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).build().unwrap();
    let mut whole = 0;
    let points = at_every_operation(
        |_| (),
        |vfs, dir| Index::create_from(vfs, &dir.join("index"), params.clone(), Some(&table)).map(drop),
        |dir, done, went_on, case| {
            let path = dir.join("index");
            if path.exists() {
                check_sound(&path, case);
                let index = Index::open(&path).unwrap();
                assert_eq!(index.idf().unwrap().unwrap().digest(), table.digest(), "{case}");
                whole += 1;
            } else {
                assert!(done.is_err(), "{case}");
            }
            if went_on {
                assert!(names(dir).len() == usize::from(path.exists()), "{case}: {:?}", names(dir));
            }
        },
    );
    println!("{points} fault points; the index was there after {whole}");
    assert!(points > 50 && whole > 3, "{points} {whole}");
}

/// The batch exceeds the memory limit, so it is written as several segments, which are then merged into one.
#[test]
fn merged_batch_is_atomic_on_a_failing_disk() {
    let params = Params::builder().minhash(2, 1).build().unwrap();
    let texts: Vec<String> = (0..12).map(|i| format!("text {i} of these {}", i * i)).collect();
    let keys = |path: &Path| {
        let snapshot = Index::open(path).unwrap().snapshot();
        let mut keys = Vec::new();
        let each = |key: Key<'_>| {
            keys.push(key.to_buf().to_string());
            Ok(())
        };
        snapshot.for_each_key(each).unwrap();
        (keys, snapshot.segments().len())
    };
    let mut new = 0;
    let points = at_every_operation(
        |dir| {
            let index = Index::create(dir.join("index"), params.clone()).unwrap();
            let sketcher = index.sketcher().unwrap();
            let mut writer = index.writer().unwrap();
            writer.put("old", &sketcher.sketch("an old text").unwrap()).unwrap();
            writer.commit().unwrap();
        },
        |vfs, dir| {
            let index = Index::open_with(vfs, &dir.join("index"))?;
            let sketcher = index.sketcher()?;
            let mut writer = index.writer_with(WriterOptions::default().one_segment(true).memory(500))?;
            for text in &texts {
                writer.put(text.as_str(), &sketcher.sketch(text)?)?;
            }
            writer.commit()
        },
        |dir, done, _, case| {
            let path = dir.join("index");
            let (found, segments) = keys(&path);
            let is_new = found.len() == 13;
            assert!(is_new || found == ["old"], "{case}: {found:?}");
            assert!(is_new || done.is_err(), "{case}");
            assert!(segments <= 2, "{case}: {segments} segments");
            new += usize::from(is_new);
            check_sound(&path, case);
            let index = Index::open(&path).unwrap();
            index.gc().unwrap();
            let left = names(&path);
            let of = |end: &str| left.iter().filter(|name| name.ends_with(end)).count();
            assert_eq!(of(".seg"), index.snapshot().entries().len(), "{case}: {left:?}");
        },
    );
    println!("{points} fault points; the batch was there after {new}");
    assert!(points > 200 && new > 3, "{points} {new}");
}
