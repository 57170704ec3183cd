//! Tests that an index gives the same results in every access mode, and that a failed read is an error that names the
//! file. With `Access::Read` this includes failing disks, and files that are truncated while open, which would end the
//! process with SIGBUS if they were mapped.

#![allow(clippy::disallowed_methods, reason = "damages the files of an index directly")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use crate::support::memory::MemoryVfs;
use crate::support::{Compared, Random, SegmentQueries, bytes_of, compare, place, samples};
use tempfile::TempDir;
use twindex::format::checksum::PAGE;
use twindex::format::contents::Kind;
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment};
use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, MemoryFile, ReadFile, TemporaryFile, Vfs};
use twindex::sys::{Access, Bytes, RealVfs};
use twindex::{Error, Fingerprint, Index, Key, Params, Result, WriterOptions};

const ALL: [Access; 4] = [Access::Map, Access::PlainMap, Access::Read, Access::Load];

/// Creates an index of texts in four segments, with replaced and deleted documents.
fn texts() -> (TempDir, PathBuf, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().words(2).simhash(3).minhash(12, 3).bottom(8).build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut random = Random(3);
    let mut all: Vec<String> = Vec::new();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for batch in 0..4 {
        for i in 0..150 {
            let mut words: Vec<String> = match all.get(random.below(all.len().max(1))) {
                Some(text) if i % 3 == 0 => text.split(' ').map(Into::into).collect(),
                _ => (0..40).map(|_| format!("w{}", random.below(900))).collect(),
            };
            let place = random.below(40);
            words[place] = format!("w{}", random.below(900));
            let text = words.join(" ");
            let key = format!("{}", batch * 120 + i); // the last key of each batch is the first of the next
            writer.put(key.as_str(), &sketcher.sketch(&text).unwrap()).unwrap();
            all.push(text);
        }
        writer.delete(format!("{}", batch * 7).as_str()).unwrap();
        writer.commit().unwrap();
    }
    (dir, path, all)
}

fn answers(index: &Index, texts: &[String]) -> Vec<String> {
    let (snapshot, sketcher) = (index.snapshot(), index.sketcher().unwrap());
    let mut all = vec![format!("{} {}", snapshot.documents(), snapshot.generation())];
    for text in texts {
        let sketch = sketcher.sketch(text).unwrap();
        let fingerprint = sketch.fingerprint().unwrap();
        all.push(format!("{:?}", snapshot.near(&sketch).run().unwrap()));
        all.push(format!("{:?}", snapshot.within(fingerprint, 6).run().unwrap()));
    }
    for key in 0..600 {
        all.push(format!("{:?}", snapshot.get(format!("{key}").as_str()).unwrap()));
    }
    all
}

#[test]
fn every_access_mode_gives_the_same_answers() {
    let (_dir, path, texts) = texts();
    let index = Index::open(&path).unwrap();
    assert_eq!((index.access(), index.snapshot().segments().len()), (Access::Map, 4));
    let expected = answers(&index, &texts);
    assert!(expected.iter().any(|answer| answer.matches("Hit {").count() > 3), "no answers to compare");
    for access in ALL {
        let index = Index::options().access(access).open(&path).unwrap();
        assert_eq!(index.access(), access);
        assert_eq!(answers(&index, &texts), expected, "{access:?}");
        for (segment, _) in index.snapshot().segments() {
            let problems = segment.verify(|_| ());
            assert!(problems.is_empty(), "{access:?}: {problems:?}");
        }
    }
}

#[test]
fn every_access_mode_reads_every_kind_of_segment() {
    for sample in samples() {
        let files = MemoryVfs::default();
        files.set(place(), sample.bytes.clone());
        let sound = Segment::from_bytes(sample.bytes, place()).unwrap();
        let questions = SegmentQueries::of(&sound, &[0, 3, 10]);
        let expected = questions.ask(&sound);
        for access in ALL {
            let segment = Segment::open_with(&files, place(), access).unwrap();
            assert_eq!(segment.length(), sound.length());
            let found = questions.ask(&segment);
            assert_eq!(compare(&found, &expected), Compared::Same, "{}, {access:?}", sample.name);
            assert!(segment.verify(|_| ()).is_empty(), "{}, {access:?}", sample.name);
        }
    }
}

/// Records operations on the files of a [`WatchedVfs`], and holds the faults to inject.
#[derive(Debug, Default)]
struct Watch {
    maps: AtomicUsize,
    reads: AtomicUsize,
    /// Reads of this byte range of segments fail.
    unreadable: Mutex<Option<std::ops::Range<u64>>>,
    /// Reads of segments return another value for the byte at this offset.
    flipped: Mutex<Option<u64>>,
    /// An action to run once, before the file with this name is opened.
    before: Mutex<Option<(String, Action)>>,
}

struct Action(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a deed")
    }
}

#[derive(Clone, Debug, Default)]
struct WatchedVfs(Arc<Watch>);

impl Vfs for WatchedVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.create_dir(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealVfs.exists(path)
    }
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        RealVfs.create_temporary(dir)
    }
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        RealVfs.create_append(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let deed = self.0.before.lock().unwrap().take_if(|(name, _)| path.ends_with(name));
        if let Some((_, deed)) = deed {
            (deed.0)();
        }
        let file = RealVfs.open(path)?;
        if path.extension().is_none_or(|extension| extension != "seg") {
            return Ok(file);
        }
        Ok(Box::new(WatchedFile { file, watch: Arc::clone(&self.0) }))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.sync_dir(path)
    }
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealVfs.rename_dir(from, to)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.remove_dir(path)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealVfs.unlink(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        RealVfs.list(dir)
    }
    fn lock(&self, path: &Path) -> std::result::Result<Box<dyn HeldLock>, LockFailure> {
        RealVfs.lock(path)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Box<dyn ReadFile>,
    watch: Arc<Watch>,
}

impl ReadFile for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.watch.reads.fetch_add(1, Ordering::Relaxed);
        let end = offset + buffer.len() as u64;
        if let Some(bad) = &*self.watch.unreadable.lock().unwrap()
            && bad.start < end
            && offset < bad.end
        {
            return Err(io::Error::from_raw_os_error(5)); // EIO
        }
        self.file.read_exact_at(buffer, offset)?;
        if let Some(at) = *self.watch.flipped.lock().unwrap()
            && (offset..end).contains(&at)
        {
            buffer[(at - offset) as usize] ^= 4;
        }
        Ok(())
    }
    fn map(&self, len: usize) -> io::Result<Bytes> {
        self.watch.maps.fetch_add(1, Ordering::Relaxed);
        self.file.map(len)
    }
}

#[test]
fn segments_opened_later_use_the_same_access_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let other = Index::create(&path, params).unwrap();
    for (access, maps) in [(Access::Read, 0), (Access::Map, 3)] {
        let watch = WatchedVfs::default();
        let index = Index::options().access(access).open_with(Arc::new(watch.clone()), &path).unwrap();
        let before = index.snapshot().segments().len();
        let mut writer = other.writer_with(WriterOptions::default().logged(false)).unwrap();
        writer.put(1, Fingerprint(10)).unwrap();
        writer.commit().unwrap();
        drop(writer);
        assert!(index.refresh().unwrap());
        // The access mode also applies to segments that a writer flushes in the middle of a batch.
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        writer.put(2, Fingerprint(11)).unwrap();
        writer.commit().unwrap();
        drop(writer);
        assert_eq!(index.snapshot().segments().len(), 2);
        assert_eq!(index.snapshot().within(Fingerprint(10), 3).run().unwrap().hits.len(), 2);
        assert_eq!(watch.0.maps.load(Ordering::Relaxed), maps + if maps > 0 { before - 1 } else { 0 });
        other.refresh().unwrap();
    }
}

/// After `CURRENT` was read and before the files that it names are opened, a writer publishes two generations and removes
/// the files that these do not need.
#[test]
fn open_retries_with_next_generation_if_a_file_was_removed() {
    fn replace_all(path: &Path) {
        let index = Index::open(path).unwrap();
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for _ in 0..2 {
            let generation = index.snapshot().generation();
            writer.put(1, Fingerprint(generation)).unwrap();
            writer.commit().unwrap();
        }
        writer.gc().unwrap();
    }
    for of_segment in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        drop(Index::create(&path, Params::builder().u64_keys().simhash(3).build().unwrap()).unwrap());
        replace_all(&path);
        let watch = WatchedVfs::default();
        let set = || {
            let snapshot = Index::open(&path).unwrap().snapshot();
            let name = if of_segment {
                format!("{:06}.seg", snapshot.entries()[0].number)
            } else {
                format!("MANIFEST-{:06}", snapshot.generation())
            };
            let (path, gone) = (path.clone(), path.join(&name));
            let deed = Action(Box::new(move || {
                replace_all(&path);
                assert!(!gone.exists());
            }));
            *watch.0.before.lock().unwrap() = Some((name, deed));
            snapshot.generation()
        };
        let before = set();
        let index = Index::options().open_with(Arc::new(watch.clone()), &path).unwrap();
        assert_eq!((index.snapshot().generation(), index.snapshot().documents()), (before + 2, 1));
        assert!(watch.0.before.lock().unwrap().is_none(), "it was done");
        set();
        let found = twindex::store::verify::verify(&watch, &path, |_| ());
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert!(watch.0.before.lock().unwrap().is_none(), "it was done");
    }
}

/// Returns a segment of raw fingerprints, and the fingerprints.
fn raw(count: usize) -> (Vec<u8>, Vec<u64>) {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let mut records = Records::new(&params);
    let mut random = Random(count as u64);
    let mut fingerprints: Vec<u64> = (0..count).map(|_| random.next()).collect();
    for (key, &fingerprint) in (0..).zip(&fingerprints) {
        let kept = Kept { fingerprint, ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    fingerprints.sort_unstable();
    (bytes_of(&records), fingerprints)
}

fn on_disk(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000001.seg");
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// Reads all fingerprints one by one.
fn column(segment: &Segment) -> Vec<Result<u64>> {
    (0..segment.distinct_fingerprints() as u32).map(|rank| segment.fingerprint(rank)).collect()
}

#[test]
fn damaged_page_is_reported_on_first_use_in_every_mode() {
    let (sound, fingerprints) = raw(4000);
    let files = MemoryVfs::default();
    let mut random = Random(8);
    let mut refused = 0;
    for _ in 0..300 {
        let (at, bit) = (random.below(sound.len()), random.below(8));
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << bit;
        files.set(place(), damaged);
        for access in ALL {
            let segment = match Segment::open_with(&files, place(), access) {
                Ok(segment) => segment,
                Err(error) => {
                    assert!(!matches!(error, Error::Io { .. }), "{error}");
                    refused += 1;
                    continue;
                }
            };
            for (found, expected) in column(&segment).into_iter().zip(&fingerprints) {
                match found {
                    Ok(found) => assert_eq!(found, *expected),
                    Err(Error::Corrupt { path, offset, .. }) => {
                        assert_eq!((&*path, offset), (place(), at as u64 / PAGE * PAGE));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(segment.verify(|_| ()).len(), 1, "{access:?}, byte {at}");
        }
    }
    assert!((1..400).contains(&refused), "{refused} of 1200 are found by opening");
}

#[test]
fn truncated_file_is_an_error_but_cached_pages_remain_valid() {
    let (sound, fingerprints) = raw(60_000);
    let (_dir, path) = on_disk(&sound);
    let segment = Segment::open_with(&RealVfs, &path, Access::Read).unwrap();
    let early = (100..200).map(|rank| segment.fingerprint(rank).unwrap());
    assert!(early.eq(fingerprints[100..200].iter().copied()));
    let table = *segment.sections().iter().find(|section| section.kind == Kind::Table).unwrap();
    for length in [(table.offset + table.length / 2) as usize, PAGE as usize + 1, 0] {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        let found = column(&segment);
        let mut failed = 0;
        for (found, expected) in found.into_iter().zip(&fingerprints) {
            match found {
                Ok(found) => assert_eq!(found, *expected),
                Err(Error::Corrupt { path: named, found, .. }) => {
                    failed += 1;
                    assert_eq!(named, path);
                    assert!(found.contains("cut short"), "{found}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!((1..60_000).contains(&failed), "{failed} cut to {length}");
        assert_eq!(segment.fingerprint(150).unwrap(), fingerprints[150]);
        assert!(!segment.verify(|_| ()).is_empty());
    }
}

#[test]
fn read_error_names_the_file_and_the_next_query_retries() {
    let (sound, fingerprints) = raw(4000);
    let (_dir, path) = on_disk(&sound);
    let watch = WatchedVfs::default();
    let segment = Segment::open_with(&watch, &path, Access::Read).unwrap();
    let table = *segment.sections().iter().find(|section| section.kind == Kind::Table).unwrap();
    *watch.0.unreadable.lock().unwrap() = Some(table.offset..table.end());
    for _ in 0..2 {
        for within in [0, 3] {
            let error = segment.within(fingerprints[7], within, |_| ()).unwrap_err();
            let Error::Io { op: "read", path: named, source } = &error else { panic!("{error}") };
            assert_eq!((named, source.raw_os_error()), (&path, Some(5)));
        }
        assert!(column(&segment).iter().all(Result::is_err));
        let problems = segment.verify(|_| ());
        assert!(problems.len() as u64 >= table.length / PAGE, "{problems:?}");
        assert!(problems.iter().all(|problem| matches!(problem, Error::Io { .. })), "{problems:?}");
    }
    // The disk works again, and the next query reads the page.
    *watch.0.unreadable.lock().unwrap() = None;
    let found: Vec<u64> = column(&segment).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, fingerprints);
    assert!(segment.verify(|_| ()).is_empty());
    // Pages that were read before are not read again.
    *watch.0.unreadable.lock().unwrap() = Some(0..u64::MAX);
    let reads = watch.0.reads.load(Ordering::Relaxed);
    assert!(column(&segment).iter().all(Result::is_ok));
    assert_eq!(watch.0.reads.load(Ordering::Relaxed), reads);
}

#[test]
fn damaged_pages_are_not_cached_and_verify_rereads_the_disk() {
    let (sound, fingerprints) = raw(4000);
    let (_dir, path) = on_disk(&sound);
    let watch = WatchedVfs::default();
    let segment = Segment::open_with(&watch, &path, Access::Read).unwrap();
    let table = *segment.sections().iter().find(|section| section.kind == Kind::Table).unwrap();
    let at = table.offset + table.length / 2;
    *watch.0.flipped.lock().unwrap() = Some(at);
    let failed = column(&segment).into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!((1..4000).contains(&failed.len()), "{} answers fail", failed.len());
    assert!(failed.iter().all(Error::is_corruption));
    *watch.0.flipped.lock().unwrap() = None;
    let found: Vec<u64> = column(&segment).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, fingerprints);
    // Queries use the cached pages that were verified before; `verify` reads the disk.
    *watch.0.flipped.lock().unwrap() = Some(at);
    assert!(column(&segment).iter().all(Result::is_ok));
    assert!(
        matches!(&segment.verify(|_| ())[..], [Error::Corrupt { offset, .. }] if *offset == at / PAGE * PAGE)
    );
}

#[test]
fn concurrent_queries_agree_in_every_access_mode() {
    let (sound, fingerprints) = raw(50_000);
    let (_dir, path) = on_disk(&sound);
    for access in ALL {
        for round in 0..4 {
            let segment = Segment::open_with(&RealVfs, &path, access).unwrap();
            let start = Barrier::new(16);
            std::thread::scope(|scope| {
                for thread in 0..16 {
                    let (segment, start, fingerprints) = (&segment, &start, &fingerprints);
                    scope.spawn(move || {
                        let mut random = Random(round * 100 + thread / 4);
                        start.wait();
                        for _ in 0..300 {
                            let rank = random.below(fingerprints.len());
                            let query = fingerprints[rank];
                            assert_eq!(segment.fingerprint(rank as u32).unwrap(), query);
                            let mut found = false;
                            segment
                                .within(query ^ 1 << 40, 3, |near| found |= near.fingerprint == query)
                                .unwrap();
                            assert!(found, "{query:016x}");
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn in_memory_file_is_readable_in_every_access_mode() {
    let (sound, fingerprints) = raw(1000);
    let file = MemoryFile(sound.clone());
    assert_eq!(file.len().unwrap(), sound.len() as u64);
    let files = MemoryVfs::default();
    files.set(place(), sound);
    for access in ALL {
        let segment = Segment::open_with(&files, place(), access).unwrap();
        let found: Vec<u64> = column(&segment).into_iter().map(Result::unwrap).collect();
        assert_eq!(found, fingerprints, "{access:?}");
    }
}

/// Returns the kernel's flags for this process's map of the file; `None` if the file is not mapped.
#[cfg(target_os = "linux")]
fn map_flags(path: &Path) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (_, ours) = maps.split_once(path.to_str().unwrap())?;
    let flags = ours.lines().find_map(|line| line.strip_prefix("VmFlags:"));
    Some(flags.unwrap_or_default().to_owned())
}

#[test]
#[cfg(target_os = "linux")]
fn only_access_map_sets_madv_random_and_read_and_load_do_not_map_the_file() {
    let (sound, _) = raw(3000);
    for (access, random) in [
        (Access::Map, Some(true)),
        (Access::PlainMap, Some(false)),
        (Access::Read, None),
        (Access::Load, None),
    ] {
        let (_dir, path) = on_disk(&sound);
        let segment = Segment::open_with(&RealVfs, &path, access).unwrap();
        assert!(segment.fingerprint(5).is_ok());
        let flags = map_flags(&path);
        let found = flags.as_ref().map(|flags| flags.split_whitespace().any(|flag| flag == "rr"));
        assert_eq!(found, random, "{access:?}: {flags:?}");
    }
}

#[cfg(target_os = "linux")]
mod guarded {
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::process::Command;

    use twindex::{Error, Fingerprint, Index, Params, Snapshot, WriterOptions, sys};

    use crate::support::skip::{Missing, skip};

    const CHILD: &str = "TWINDEX_TEST_CHILD";
    const DOCUMENTS: u64 = 40_000;

    fn made(path: &Path) {
        let index = Index::create(path, Params::builder().u64_keys().simhash(3).build().unwrap()).unwrap();
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for segment in 0..2 {
            for i in 0..DOCUMENTS {
                let number = segment * DOCUMENTS + i;
                writer.put(number, Fingerprint(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))).unwrap();
            }
            writer.commit().unwrap();
        }
    }

    fn segment(path: &Path, number: u64) -> std::path::PathBuf {
        path.join(format!("{number:06}.seg"))
    }

    fn cut(path: &Path) {
        // Published files are read-only, so the test makes them writable first.
        let mut permissions = path.metadata().unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
        std::fs::set_permissions(path, permissions).unwrap();
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4096).unwrap();
    }

    /// Queries these keys; returns the number of successful and of failed queries. Panics if a result is wrong.
    fn ask(snapshot: &Snapshot, keys: impl Iterator<Item = u64>) -> (usize, usize) {
        let (mut right, mut refused) = (0, 0);
        for key in keys {
            let fingerprint = Fingerprint(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            match snapshot.get(key) {
                Ok(found) => {
                    assert_eq!(found.map(|found| found.fingerprint), Some(Some(fingerprint)), "{key}");
                    right += 1;
                }
                Err(Error::Io { .. } | Error::Corrupt { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
            match snapshot.within(fingerprint, 0).run() {
                Ok(found) => {
                    assert_eq!(found.hits.len(), 1, "{key}");
                    right += 1;
                }
                Err(Error::Io { .. } | Error::Corrupt { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        (right, refused)
    }

    /// Runs the child process, which ends with SIGBUS unless it has installed a guard.
    fn child(path: &Path, guard: bool) {
        if guard {
            sys::guard::install().unwrap();
            sys::guard::install().unwrap();
        }
        let index = Index::open(path).unwrap();
        let snapshot = index.snapshot();
        // Some pages were read and verified before the file is truncated, others were not.
        assert_eq!(ask(&snapshot, (0..DOCUMENTS).step_by(40)).1, 0);
        assert!(!sys::guard::anything_lost());
        cut(&segment(path, 1));
        let (_, refused) = ask(&snapshot, (0..DOCUMENTS).step_by(7));
        assert!(refused > 100, "{refused}");
        assert!(snapshot.check_maps().is_err() && sys::guard::anything_lost());
        assert!(snapshot.for_each_key(|_| Ok(())).is_err());
        assert!(index.compact().is_err(), "nothing is made of pages of zeros");
        // The failure affects no other index, and the index works again when it is opened after the file was restored.
        let other = path.with_file_name("other");
        made(&other);
        assert_eq!(ask(&Index::open(&other).unwrap().snapshot(), (0..2 * DOCUMENTS).step_by(99)).1, 0);
        std::fs::copy(segment(&other, 1), segment(path, 1)).unwrap();
        assert_eq!(ask(&Index::open(path).unwrap().snapshot(), (0..2 * DOCUMENTS).step_by(99)).1, 0);
        println!("child: {refused} refused");
    }

    #[test]
    fn truncated_map_is_an_error_with_sigbus_guard() {
        if let Some(path) = std::env::var_os(CHILD) {
            return child(Path::new(&path), std::env::var_os("TWINDEX_TEST_GUARD").is_some());
        }
        let name = "files_access::guarded::truncated_map_is_an_error_with_sigbus_guard";
        for guard in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            made(&path);
            ends_well_if_guarded(name, &path, guard);
        }
    }

    /// Runs the named test of this program as a child process. With a guard the child must succeed; without one SIGBUS
    /// must kill it.
    fn ends_well_if_guarded(name: &str, path: &Path, guard: bool) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", name]).env(CHILD, path);
        if guard {
            child.env("TWINDEX_TEST_GUARD", "1");
        }
        let output = child.output().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = if guard { None } else { Some(7) }; // SIGBUS
        assert_eq!(signal, expected, "guard {guard}: {:?} {said}", output.status);
        assert_eq!(output.status.success(), guard, "{said}");
    }

    /// A small tmpfs; unmounted when dropped.
    struct Memory(std::path::PathBuf);

    impl Memory {
        fn mount(path: &Path) -> Option<Self> {
            std::fs::create_dir(path).unwrap();
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(path);
            let mounted = mount.output().is_ok_and(|output| output.status.success());
            mounted.then(|| Self(path.to_owned()))
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).output();
        }
    }

    /// Pages of a sparse file in a tmpfs get memory only when they are read through a map. If no memory is left, the read
    /// fails although the file has its full length. Only a copy that preserves holes produces such a segment. Here the
    /// first pages are intact, and the rest of the file is a hole.
    #[test]
    fn hole_in_full_tmpfs_is_an_error_with_sigbus_guard() {
        let name = "files_access::guarded::hole_in_full_tmpfs_is_an_error_with_sigbus_guard";
        if let Some(path) = std::env::var_os(CHILD) {
            if std::env::var_os("TWINDEX_TEST_GUARD").is_some() {
                sys::guard::install().unwrap();
            }
            let path = Path::new(&path);
            let index = Index::open(path).unwrap();
            let snapshot = index.snapshot();
            assert!(!sys::guard::anything_lost());
            let (_, refused) = ask(&snapshot, (0..DOCUMENTS).step_by(7));
            assert!(refused > 100, "{refused}");
            assert!(snapshot.check_maps().is_err() && sys::guard::anything_lost());
            let error = snapshot.for_each_key(|_| Ok(())).unwrap_err();
            assert!(matches!(error, Error::Io { op: "read", .. }), "{error:?}");
            // Without maps, the hole is read as zeros, which is reported as damage.
            let read = Index::options().access(sys::Access::Read).open(path).unwrap();
            let errors = (0..DOCUMENTS).filter_map(|key| read.snapshot().get(key).err());
            assert!(errors.map(|error| assert!(error.is_corruption(), "{error:?}")).count() > 1000);
            return println!("child: {refused} refused");
        }
        for guard in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let Some(disk) = Memory::mount(&dir.path().join("disk")) else {
                return skip(Missing::Elsewhere("mounting a small file system needs root"));
            };
            let path = disk.0.join("index");
            made(&path);
            // Puts the hole in the longest section of the first segment, a table, after the part that is read by opening.
            let file = segment(&path, 1);
            let bytes = std::fs::read(&file).unwrap();
            let longest = {
                let snapshot = Index::open(&path).unwrap().snapshot();
                let sections = snapshot.segments().next().unwrap().0.sections();
                *sections.iter().max_by_key(|section| section.length).unwrap()
            };
            let pages = (longest.offset + longest.length / 2) / 4096 + 1..longest.end() / 4096 - 1;
            let hole = pages.start as usize * 4096..pages.end as usize * 4096;
            assert!(hole.len() > 20 * 4096, "{hole:?}");
            std::fs::remove_file(&file).unwrap();
            let out = std::fs::File::create(&file).unwrap();
            out.write_all_at(&bytes[..hole.start], 0).unwrap();
            out.write_all_at(&bytes[hole.end..], hole.end as u64).unwrap();
            // Uses all remaining memory of the tmpfs.
            let filler = std::fs::File::create(disk.0.join("filler")).unwrap();
            let filled =
                (0..1 << 32).take_while(|i| filler.write_all_at(&[1; 4096], i * 4096).is_ok()).count();
            assert!(filled < 1024, "{filled} pages of at most 1,024");
            ends_well_if_guarded(name, &path, guard);
        }
    }
}
