//! Tests handles that stay open while the files of their index are replaced: by a restored copy of the same index, or by
//! another index. The UUID of a restored copy is the same, and so may be all numbers and lengths.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "replaces the files of an index from outside")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::random::Random;
use twindex::{
    Document, Durability, Error, Fingerprint, GROUP_QUESTIONS, Index, Params, Result, Snapshot, Writer,
    WriterOptions,
};

type Documents = BTreeMap<String, Vec<u8>>;

fn params() -> Params {
    Params::builder().simhash(3).values().build().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn replace(live: &Path, with: &Path) {
    if live.exists() {
        fs::remove_dir_all(live).unwrap();
    }
    copy(with, live);
}

fn put(writer: &mut Writer, key: &str, value: &str) -> Result<()> {
    let fingerprint = Fingerprint(value.bytes().map(u64::from).sum());
    writer.put(key, Document::from(fingerprint).with_value(value.as_bytes()))
}

/// Commits a document for each key.
fn commit_each(writer: &mut Writer, keys: &[&str], value: &str) {
    for key in keys {
        put(writer, key, value).unwrap();
        writer.commit().unwrap();
    }
}

fn documents(snapshot: &Snapshot) -> Result<Documents> {
    let mut found = Documents::new();
    for key in snapshot.keys()? {
        let key = key?;
        found.insert(key.to_string(), snapshot.get(&key)?.unwrap().value.unwrap());
    }
    Ok(found)
}

fn on_disk(path: &Path) -> Documents {
    documents(&Index::open(path).unwrap().snapshot()).unwrap()
}

/// Returns whether the error says that another index, another history or another lock has taken the place of the index.
fn is_named(error: &Error) -> bool {
    matches!(error, Error::NotAnIndex { .. } | Error::Locked { .. })
}

/// Copies `backup` to `to`, and commits a document for each key by one writer. A killed writer leaves no mark of its end.
fn write_history(backup: &Path, to: &Path, keys: &[&str], value: &str, killed: bool) {
    let work = to.with_extension("work");
    copy(backup, &work);
    let mut writer = Index::open(&work).unwrap().writer().unwrap();
    commit_each(&mut writer, keys, value);
    if !killed {
        drop(writer);
    }
    copy(&work, to);
}

/// Overwrites the files of `live` by those of `with`, as `cp` does, and removes the others.
fn overwrite(live: &Path, with: &Path) {
    copy(with, live);
    for entry in fs::read_dir(live).unwrap() {
        let entry = entry.unwrap();
        if !with.join(entry.file_name()).exists() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Tests a handle that has read the history of `old`, after `replace` has put the history of `new` in its place.
fn check_replaced(
    (old, new): (&[&str], &[&str]),
    value: &str,
    killed: bool,
    replace_by: impl Fn(&Path, &Path),
) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (live, backup) = (path("live"), path("backup"));
    commit_each(&mut Index::create(&backup, params()).unwrap().writer().unwrap(), &["o0", "o1"], "v");
    write_history(&backup, &path("old"), old, "v", killed);
    write_history(&backup, &path("new"), new, value, killed);
    for writes in [false, true] {
        replace(&live, &path("old"));
        let held = Index::open(&live).unwrap();
        let before = held.snapshot();
        replace_by(&live, &path("new"));
        let mut truth = on_disk(&live);
        if writes {
            let mut writer = held.writer().unwrap();
            commit_each(&mut writer, &["W"], "v");
            writer.compact().unwrap();
            truth.insert("W".into(), b"v".to_vec());
        } else {
            assert!(held.refresh().unwrap());
        }
        assert_eq!(documents(&held.snapshot()).unwrap(), truth, "{old:?} to {new:?}, {writes}");
        assert!(!held.refresh().unwrap());
        assert_eq!(on_disk(&live), truth);
        assert_eq!(documents(&before).unwrap(), on_disk(&path("old")), "a snapshot does not change");
        assert!(held.verify().problems.is_empty());
    }
}

#[test]
fn restored_copy_with_other_commits_of_equal_length_is_read_from_its_start() {
    for replace_by in [replace, overwrite] {
        check_replaced((&["A0", "A1"], &["B0", "B1", "C0"]), "v", false, replace_by);
        check_replaced((&["A0", "A1"], &["B0", "B1", "C0"]), "v", true, replace_by);
    }
}

#[test]
fn restored_copy_whose_last_record_is_equal_is_read_from_its_start() {
    check_replaced((&["A0", "X"], &["B0", "X"]), "v", false, replace);
    check_replaced((&["A0", "X"], &["B0", "X", "C0"]), "v", true, replace);
}

/// The time of the change, on which detection depends, is that of a later second.
#[test]
fn log_overwritten_by_one_of_equal_length_and_last_record_is_read_from_its_start() {
    check_replaced((&["A0", "X"], &["B0", "X"]), "v", false, |live, with| {
        overwrite(live, with);
        let log = fs::File::options().append(true).open(live.join("LOG-000002")).unwrap();
        log.set_modified(std::time::SystemTime::now() + Duration::from_secs(1)).unwrap();
    });
}

#[test]
fn restored_copy_with_commits_of_other_lengths_is_not_damage() {
    for replace_by in [replace, overwrite] {
        check_replaced((&["A0", "A1"], &["B0", "B1", "C0"]), "a longer value", false, replace_by);
        check_replaced((&["A0", "A1"], &["B0"]), "", true, replace_by);
    }
}

#[test]
fn restored_copy_without_further_commits_takes_handles_back() {
    for replace_by in [replace, overwrite] {
        check_replaced((&["A0", "A1", "A2"], &["A0"]), "v", false, replace_by);
        check_replaced((&["A0", "A1", "A2"], &[]), "v", true, replace_by);
    }
}

#[test]
fn restored_copy_takes_back_the_time_that_only_a_manifest_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let params = Params::builder().simhash(3).expire_after(100).build().unwrap();
    let index = Index::create(path("backup"), params).unwrap();
    index.writer().unwrap().commit_with(b"a log without documents").unwrap();
    for (name, stamps) in [("old", &[5000][..]), ("new", &[1000, 1001])] {
        copy(&path("backup"), &path(name));
        let index = Index::open(path(name)).unwrap();
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for &stamp in stamps {
            let key = format!("k{stamp}");
            writer.put(key.as_str(), Document::from(Fingerprint(stamp)).with_stamp(stamp)).unwrap();
            writer.commit().unwrap();
        }
    }
    replace(&path("live"), &path("old"));
    let held = Index::open(path("live")).unwrap();
    replace(&path("live"), &path("new"));
    assert!(held.refresh().unwrap());
    assert_eq!((held.snapshot().documents(), held.snapshot().now()), (2, Some(1001)));
}

#[test]
fn atomic_switch_to_another_index_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (name, counts) in [("longer", [3, 9]), ("shorter", [9, 3]), ("equal", [5, 5])] {
        let path = |of: &str| dir.path().join(format!("{name}-{of}"));
        for (of, count) in ["v1", "v2"].iter().zip(counts) {
            let keys: Vec<String> = (0..count).map(|n| format!("{of}{n}")).collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            commit_each(&mut Index::create(path(of), params()).unwrap().writer().unwrap(), &keys, "v");
        }
        symlink(path("v1"), path("current")).unwrap();
        let reader = Index::open(path("current")).unwrap();
        symlink(path("v2"), path("new")).unwrap();
        fs::rename(path("new"), path("current")).unwrap();
        let moved = Index::open(path("v1")).unwrap();
        let mut writer = moved.writer().unwrap();
        put(&mut writer, "lost", "v").unwrap();
        fs::rename(path("v1"), path("old")).unwrap();
        fs::rename(path("v2"), path("v1")).unwrap();
        let refused = [moved_error(&reader, &path("v1"), &path("current")), writer.commit().unwrap_err()];
        for error in refused {
            assert!(matches!(error, Error::NotAnIndex { .. }), "{error}");
            assert!(error.to_string().contains("another index has taken its place"), "{error}");
        }
        drop(writer);
        assert!(matches!(moved.refresh(), Err(Error::NotAnIndex { .. })));
        assert_eq!(on_disk(&path("v1")).len(), counts[1]);
    }
}

/// Returns the error of a refresh through a link that names the second index.
fn moved_error(reader: &Index, target: &Path, link: &Path) -> Error {
    fs::remove_file(link).unwrap();
    symlink(target, link).unwrap();
    reader.refresh().unwrap_err()
}

/// Replaces the files of `live` by those of `with` under the same names, as rsync does. Keeps the lock file.
fn replace_files(live: &Path, with: &Path, delete: bool) {
    for entry in fs::read_dir(with).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "LOCK" && fs::read(live.join(&name)).ok() != fs::read(with.join(&name)).ok() {
            fs::copy(with.join(&name), live.join(".part")).unwrap();
            fs::rename(live.join(".part"), live.join(&name)).unwrap();
        }
    }
    for entry in fs::read_dir(live).unwrap() {
        let entry = entry.unwrap();
        if delete && entry.file_name() != "LOCK" && !with.join(entry.file_name()).exists() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Replaces the files under a writer, whose lock file stays. The writer must commit nothing, and remove nothing.
fn check_refused(held: &Index, mut writer: Writer, with: &Path, delete: bool) {
    put(&mut writer, "more", "v").unwrap();
    replace_files(held.path(), with, delete);
    let error = writer.commit().unwrap_err();
    assert!(error.to_string().contains("another history of this index"), "{error}");
    assert!(matches!(writer.commit(), Err(Error::Poisoned { .. })));
    drop(writer);
    assert_eq!(on_disk(held.path()), on_disk(with));
    assert!(held.refresh().unwrap());
    assert_eq!(documents(&held.snapshot()).unwrap(), on_disk(with));
}

#[test]
fn writer_whose_current_was_replaced_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (live, backup) = (dir.path().join("live"), dir.path().join("backup"));
    let held = Index::create(&live, params()).unwrap();
    commit_each(&mut held.writer().unwrap(), &["a"], "v");
    copy(&live, &backup);
    for delete in [false, true] {
        let mut writer = held.writer().unwrap();
        commit_each(&mut writer, &["lost"], "v");
        check_refused(&held, writer, &backup, delete);
    }
}

#[test]
fn writer_whose_logs_were_replaced_under_an_equal_manifest_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    commit_each(&mut Index::create(path("backup"), params()).unwrap().writer().unwrap(), &["o"], "v");
    write_history(&path("backup"), &path("old"), &["A"], "v", true);
    write_history(&path("backup"), &path("new"), &["B"], "v", true);
    assert_eq!(
        fs::read(path("old").join("CURRENT")).unwrap(),
        fs::read(path("new").join("CURRENT")).unwrap()
    );
    // The log of an earlier writer.
    copy(&path("old"), &path("live"));
    let held = Index::open(path("live")).unwrap();
    check_refused(&held, held.writer().unwrap(), &path("new"), true);
    // The log of this writer.
    copy(&path("backup"), &path("own"));
    let held = Index::open(path("own")).unwrap();
    let mut writer = held.writer().unwrap();
    commit_each(&mut writer, &["A"], "v");
    check_refused(&held, writer, &path("new"), true);
}

/// A directory with an index, and the documents of its last commit.
#[derive(Clone)]
struct Place {
    path: PathBuf,
    uuid: u128,
    documents: Documents,
}

/// A handle that stays open. Its writer, if it has one, has the documents that the writer has committed.
struct Held {
    index: Index,
    uuid: u128,
    writer: Option<(Writer, Documents)>,
    /// Whether the files of the index were replaced since the writer was opened.
    replaced: bool,
    snapshots: Vec<(Snapshot, Documents)>,
}

struct World {
    root: tempfile::TempDir,
    random: Random,
    live: Place,
    /// Whether the path of the index is a symbolic link.
    linked: bool,
    backups: Vec<Place>,
    held: Vec<Held>,
    copies: usize,
    steps: Vec<String>,
}

fn options(random: &mut Random) -> WriterOptions {
    let durability = if random.below(4) == 0 { Durability::Sync } else { Durability::Batch };
    WriterOptions::default().background_merges(false).durability(durability).logged(random.below(6) > 0)
}

/// Changes a few documents, and commits them. Returns the documents after the commit.
fn commit_some(random: &mut Random, writer: &mut Writer, before: &Documents) -> Result<Documents> {
    let mut after = before.clone();
    for _ in 0..=random.below(2) {
        let key = ["a", "b", "c", "d"][random.below(4)];
        if random.below(4) == 0 {
            writer.delete(key)?;
            after.remove(key);
        } else {
            let value = ["", "v", "w"][random.below(3)];
            put(writer, key, value)?;
            after.insert(key.into(), value.into());
        }
    }
    match random.below(12) {
        0 => drop(writer.compact()?),
        1 => {
            writer.commit()?;
            writer.flush()?;
        }
        2 => {
            writer.commit()?;
            writer.gc()?;
        }
        _ => drop(writer.commit()?),
    }
    Ok(after)
}

impl World {
    fn new(seed: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let linked = random.below(2) == 0;
        let mut backups = Vec::new();
        for name in ["first", "second"] {
            let path = root.path().join(name);
            let index = Index::create(&path, params()).unwrap();
            let mut writer = index.writer_with(options(&mut random)).unwrap();
            let documents = commit_some(&mut random, &mut writer, &Documents::new()).unwrap();
            backups.push(Place { path, uuid: index.snapshot().uuid(), documents });
        }
        let live = Place { path: root.path().join("live"), ..backups[0].clone() };
        if linked {
            copy(&backups[0].path, &root.path().join("linked"));
            symlink(root.path().join("linked"), &live.path).unwrap();
        } else {
            copy(&backups[0].path, &live.path);
        }
        Self { root, random, live, linked, backups, held: Vec::new(), copies: 0, steps: Vec::new() }
    }

    fn fresh_path(&mut self) -> PathBuf {
        self.copies += 1;
        self.root.path().join(format!("copy{}", self.copies))
    }

    fn step(&mut self) {
        let chosen = self.random.below(20);
        let name = match chosen {
            0..5 => self.write(),
            5..8 => self.write_held(),
            8 => self.back_up(),
            9..12 => self.replace(),
            12 => self.hold(),
            _ => self.refresh(),
        };
        self.steps.push(name);
        let fresh = Index::open(&self.live.path).unwrap().snapshot();
        assert_eq!((fresh.uuid(), documents(&fresh).unwrap()), (self.live.uuid, self.live.documents.clone()));
    }

    fn write(&mut self) -> String {
        let index = Index::open(&self.live.path).unwrap();
        match index.writer_with(options(&mut self.random)) {
            Ok(mut writer) => {
                for _ in 0..=self.random.below(3) {
                    self.live.documents =
                        commit_some(&mut self.random, &mut writer, &self.live.documents).unwrap();
                }
                format!("write: {:?}", self.live.documents)
            }
            Err(error) => {
                assert!(matches!(error, Error::Locked { .. }), "{error}");
                "write: locked".into()
            }
        }
    }

    fn hold(&mut self) -> String {
        if self.held.len() == 3 {
            let chosen = self.random.below(3);
            let held = self.held.swap_remove(chosen);
            for (snapshot, before) in &held.snapshots {
                assert_eq!(documents(snapshot).unwrap(), *before, "a snapshot does not change");
            }
        }
        let (index, uuid) = (Index::open(&self.live.path).unwrap(), self.live.uuid);
        self.held.push(Held { index, uuid, writer: None, replaced: false, snapshots: Vec::new() });
        "hold".into()
    }

    fn write_held(&mut self) -> String {
        if self.held.is_empty() {
            return self.hold();
        }
        let chosen = self.random.below(self.held.len());
        let held = &mut self.held[chosen];
        let Some((writer, before)) = &mut held.writer else {
            return match held.index.writer_with(options(&mut self.random)) {
                Ok(writer) => {
                    assert_eq!(held.uuid, self.live.uuid);
                    held.writer = Some((writer, self.live.documents.clone()));
                    held.replaced = false;
                    format!("writer of {chosen}")
                }
                Err(error) => {
                    let is_other = held.uuid != self.live.uuid;
                    assert!(
                        matches!(error, Error::NotAnIndex { .. }) && is_other
                            || matches!(error, Error::Locked { .. }),
                        "{error}"
                    );
                    format!("writer of {chosen}: {error}")
                }
            };
        };
        if self.random.below(5) == 0 {
            put(writer, "not committed", "v").unwrap();
            held.writer = None;
            return format!("writer of {chosen} dropped");
        }
        match commit_some(&mut self.random, writer, before) {
            Ok(after) => {
                assert_eq!(*before, self.live.documents, "the commit continues what is on disk");
                *before = after.clone();
                self.live.documents = after;
                format!("commit of {chosen}: {:?}", self.live.documents)
            }
            Err(error) => {
                assert!(held.replaced && is_named(&error), "{error}");
                held.writer = None;
                format!("commit of {chosen}: {error}")
            }
        }
    }

    fn back_up(&mut self) -> String {
        if self.backups.len() == 5 {
            let chosen = 1 + self.random.below(4);
            self.backups.swap_remove(chosen);
        }
        let path = self.fresh_path();
        copy(&self.live.path, &path);
        self.backups.push(Place { path, ..self.live.clone() });
        "back up".into()
    }

    /// Replaces the index by a copy of a backup.
    fn replace(&mut self) -> String {
        let chosen = self.random.below(self.backups.len());
        let (from, path) = (self.backups[chosen].clone(), self.live.path.clone());
        let how = self.random.below(4);
        match how {
            0 | 1 if self.linked => {
                let (to, link) = (self.fresh_path(), self.fresh_path());
                copy(&from.path, &to);
                symlink(to, &link).unwrap();
                fs::rename(link, &path).unwrap();
            }
            0 => replace(&path, &from.path),
            1 => {
                let (to, old) = (self.fresh_path(), self.fresh_path());
                copy(&from.path, &to);
                fs::rename(&path, old).unwrap();
                fs::rename(to, &path).unwrap();
            }
            _ => replace_files(&path, &from.path, how == 2),
        }
        self.live = Place { path, ..from };
        self.held.iter_mut().for_each(|held| held.replaced = true);
        format!("replace by {chosen}, way {how}: {:?}", self.live.documents)
    }

    fn refresh(&mut self) -> String {
        if self.held.is_empty() {
            return self.hold();
        }
        let chosen = self.random.below(self.held.len());
        let held = &mut self.held[chosen];
        if held.writer.is_some() {
            assert!(!held.index.refresh().unwrap());
            return "refresh beside a writer".into();
        }
        let before = documents(&held.index.snapshot()).unwrap();
        match held.index.refresh() {
            Ok(is_new) => {
                assert_eq!(held.uuid, self.live.uuid);
                let snapshot = held.index.snapshot();
                assert_eq!(documents(&snapshot).unwrap(), self.live.documents);
                assert!(is_new || before == self.live.documents);
                let fresh = Index::open(&self.live.path).unwrap().snapshot();
                assert_eq!(snapshot.generation(), fresh.generation());
                for key in self.live.documents.keys() {
                    let leader =
                        |of: &Snapshot| of.leader(key.as_str(), GROUP_QUESTIONS).unwrap().unwrap().decided();
                    assert_eq!(leader(&snapshot).unwrap().key, leader(&fresh).unwrap().key);
                }
                held.snapshots.push((snapshot, self.live.documents.clone()));
            }
            Err(error) => {
                assert!(matches!(error, Error::NotAnIndex { .. }) && held.uuid != self.live.uuid, "{error}");
                assert_eq!(documents(&held.index.snapshot()).unwrap(), before);
            }
        }
        format!("refresh {chosen}")
    }
}

/// Prints the steps of a round if it fails.
struct Round {
    seed: u64,
    world: World,
}

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("round {}, linked: {}\n{}", self.seed, self.world.linked, self.world.steps.join("\n"));
        }
    }
}

#[test]
fn held_handles_agree_with_a_model_while_indexes_are_copied_restored_and_switched() {
    let rounds = std::env::var("TWINDEX_HISTORIES").map_or(150, |count| count.parse().unwrap());
    let first = std::env::var("TWINDEX_HISTORIES_FROM").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + rounds {
        let mut round = Round { seed, world: World::new(seed) };
        for _ in 0..16 {
            round.world.step();
        }
        for index in round.world.held.drain(..) {
            drop(index.writer);
        }
        assert!(Index::open(&round.world.live.path).unwrap().verify().problems.is_empty());
    }
}
