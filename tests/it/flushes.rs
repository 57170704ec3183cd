//! Tests that a full memtable is flushed concurrently with commits. During the flush, queries find all committed
//! documents, commits continue, and the logs keep the documents of the memtable, however the writer ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::support::model::ModelVfs;
use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, Bytes, FileStamp, ReadFile, TemporaryFile, Vfs};
use twindex::{
    Admitted, Document, Durability, Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions,
};

/// Number of rows of a full memtable.
const ROWS: u32 = 40;
const AGE: u64 = 1000;
/// The name of the thread that writes segments.
const THREAD: &str = "twindex-merge";

/// A disk on which the thread that writes segments waits at a gate and may get errors.
#[derive(Clone, Debug, Default)]
struct GatedVfs {
    disk: ModelVfs,
    shut: Arc<(Mutex<bool>, Condvar)>,
    fails: Arc<AtomicBool>,
    /// Number of bytes read from logs.
    read: Arc<AtomicU64>,
    sweeps: SweepGate,
}

/// The gate at which the thread that removes files waits.
#[derive(Clone, Debug, Default)]
struct SweepGate {
    shut: Arc<(Mutex<bool>, Condvar)>,
    waiting: Arc<AtomicU64>,
}

impl SweepGate {
    fn shut(&self, shut: bool) {
        *self.shut.0.lock().unwrap() = shut;
        self.shut.1.notify_all();
    }

    fn pass(&self) {
        if std::thread::current().name() == Some(SWEEP) {
            let mut shut = self.shut.0.lock().unwrap();
            while *shut {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                // The wait is limited: a failed test leaves the gate shut, and dropping its writer waits for this thread.
                let (guard, late) = self.shut.1.wait_timeout(shut, Duration::from_secs(20)).unwrap();
                shut = guard;
                *shut &= !late.timed_out();
            }
        }
    }
}

impl GatedVfs {
    fn shut(&self, shut: bool) {
        *self.shut.0.lock().unwrap() = shut;
        self.shut.1.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        if std::thread::current().name() == Some(THREAD) {
            let mut shut = self.shut.0.lock().unwrap();
            while *shut {
                // The wait is limited, as in `SweepGate::pass`.
                let (guard, late) = self.shut.1.wait_timeout(shut, Duration::from_secs(20)).unwrap();
                shut = guard;
                *shut &= !late.timed_out();
            }
            if self.fails.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }
}

impl Vfs for GatedVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        self.pass()?;
        self.disk.create_temporary(dir)
    }
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        self.disk.create_append(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.disk.open(path)?;
        let is_log = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LOG-"));
        Ok(if is_log { Box::new(Counted { file, read: Arc::clone(&self.read) }) } else { file })
    }
    fn stamp(&self, path: &Path) -> io::Result<Option<FileStamp>> {
        self.disk.stamp(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename_dir(from, to)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.sweeps.pass();
        self.disk.unlink(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }
    fn scratch(&self, dir: &Path) -> PathBuf {
        self.disk.scratch(dir)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        self.disk.lock(path)
    }
}

#[derive(Debug)]
struct Counted {
    file: Box<dyn ReadFile>,
    read: Arc<AtomicU64>,
}

impl ReadFile for Counted {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        self.file.stamp()
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(buffer, offset)
    }
    fn map(&self, len: usize) -> io::Result<Bytes> {
        self.file.map(len)
    }
}

/// The fingerprint and the stamp of each key.
type Documents = BTreeMap<u64, (u64, u64)>;

struct GatedIndex {
    gate: GatedVfs,
    index: Index,
    /// The committed documents.
    documents: Documents,
    /// The documents including the uncommitted batch.
    batch: Documents,
    now: u64,
}

impl GatedIndex {
    fn new() -> Self {
        let gate = GatedVfs::default();
        let params = Params::builder().u64_keys().simhash(3).values().expire_after(AGE).build().unwrap();
        let index = Index::create_with(Arc::new(gate.clone()), Path::new("/index"), params).unwrap();
        Self { gate, index, documents: Documents::new(), batch: Documents::new(), now: AGE }
    }

    fn open(&self) -> Index {
        Index::open_with(Arc::new(self.gate.clone()), Path::new("/index")).unwrap()
    }

    fn writer(&self) -> Writer {
        self.index.writer_with(WriterOptions::default().memtable(ROWS, usize::MAX)).unwrap()
    }

    fn put(&mut self, writer: &mut Writer, key: u64, fingerprint: u64) {
        self.now += 1;
        let value = fingerprint.to_le_bytes();
        let document = Document::from(Fingerprint(fingerprint)).with_value(&value).with_stamp(self.now);
        writer.put(key, document).unwrap();
        self.batch.insert(key, (fingerprint, self.now));
    }

    fn delete(&mut self, writer: &mut Writer, key: u64) {
        writer.delete(key).unwrap();
        self.batch.remove(&key);
    }

    fn commit(&mut self, writer: &mut Writer) {
        writer.commit().unwrap();
        let now = self.now;
        self.batch.retain(|_, (_, stamp)| now - *stamp < AGE);
        self.documents.clone_from(&self.batch);
    }

    /// Puts new documents, and commits after every tenth.
    fn fill(&mut self, writer: &mut Writer, keys: std::ops::Range<u64>) {
        for key in keys {
            self.put(writer, key, spread(key));
            if key % 10 == 9 {
                self.commit(writer);
            }
        }
    }

    fn check(&self, snapshot: &Snapshot) {
        check(snapshot, &self.documents);
    }
}

/// Maps keys to fingerprints that are far from each other.
fn spread(key: u64) -> u64 {
    (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn check(snapshot: &Snapshot, documents: &Documents) {
    assert_eq!(snapshot.documents(), documents.len() as u64);
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        })
        .unwrap();
    assert!(keys.iter().eq(documents.keys()), "{keys:?}");
    for key in 0..keys.last().map_or(0, |last| last + 3) {
        let record = snapshot.get(key).unwrap();
        let found = record.map(|record| (record.fingerprint.unwrap().0, record.stamp.unwrap()));
        assert_eq!(found, documents.get(&key).copied(), "key {key}");
    }
    for &(fingerprint, _) in documents.values() {
        let hits = snapshot.within(Fingerprint(fingerprint ^ 1), 3).run().unwrap().hits;
        let found: Vec<u64> = hits.iter().map(|hit| hit.key.as_u64().unwrap()).collect();
        let same = documents.iter().filter(|(_, other)| (other.0 ^ fingerprint ^ 1).count_ones() <= 3);
        let mut expected: Vec<(u32, u64)> =
            same.map(|(key, other)| ((other.0 ^ fingerprint ^ 1).count_ones(), *key)).collect();
        expected.sort_unstable();
        assert!(found.iter().eq(expected.iter().map(|(_, key)| key)), "{found:?}");
    }
    let mut in_segments: Vec<u64> = Vec::new();
    for (segment, deleted) in snapshot.segments() {
        let live = (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal));
        in_segments.extend(live.map(|ordinal| segment.key(ordinal).unwrap().as_u64().unwrap()));
    }
    in_segments.sort_unstable();
    assert!(in_segments.iter().eq(documents.keys()));
}

#[test]
fn commits_and_queries_continue_while_a_full_memtable_is_flushed() {
    let mut tried = GatedIndex::new();
    let other = tried.open();
    let mut writer = tried.writer();
    tried.gate.shut(true);
    tried.fill(&mut writer, 0..40);
    // Documents that are only in the frozen memtable are found.
    assert_eq!((tried.index.snapshot().entries().len(), tried.index.snapshot().logged_documents()), (0, 40));
    tried.check(&tried.index.snapshot());
    let held = (tried.index.snapshot(), tried.documents.clone());
    // Documents of the frozen memtable can be replaced and deleted.
    tried.put(&mut writer, 7, spread(1007));
    tried.delete(&mut writer, 3);
    tried.delete(&mut writer, 3);
    let near = Document::from(Fingerprint(spread(20) ^ 2)).with_stamp(tried.now);
    match writer.admit(400, near).unwrap() {
        Admitted::Duplicate(hit) => assert_eq!((hit.key.as_u64(), hit.distance), (Some(20), Some(1))),
        found => panic!("{found:?}"),
    }
    tried.batch.insert(400, (spread(20) ^ 2, tried.now));
    assert_eq!(
        writer.admit(5, Document::from(Fingerprint(5)).with_stamp(tried.now)).unwrap(),
        Admitted::Updated
    );
    tried.batch.insert(5, (5, tried.now));
    check(&tried.index.snapshot(), &held.1);
    tried.commit(&mut writer);
    tried.check(&tried.index.snapshot());
    tried.fill(&mut writer, 40..60);
    tried.check(&tried.index.snapshot());
    assert_eq!(tried.index.snapshot().entries().len(), 0);
    // Both a process that opens the index now and a reader that refreshes must read two logs.
    tried.check(&tried.open().snapshot());
    other.refresh().unwrap();
    tried.check(&other.snapshot());
    let logs = tried.index.snapshot().manifest().logged.as_ref().unwrap().logs.len();
    assert_eq!(logs, 2);
    // A copy made during the flush is a complete index.
    tried.index.copy_to("/copy").unwrap();
    let copy = Index::open_with(Arc::new(tried.gate.clone()), Path::new("/copy")).unwrap();
    tried.check(&copy.snapshot());

    tried.gate.shut(false);
    writer.wait_for_merge().unwrap();
    let snapshot = tried.index.snapshot();
    assert_eq!((snapshot.entries().len(), snapshot.manifest().logged.as_ref().unwrap().logs.len()), (1, 1));
    assert_eq!(snapshot.entries()[0].deleted.len(), 3, "what came meanwhile hides 3, 5 and 7");
    tried.check(&snapshot);
    tried.check(&tried.open().snapshot());
    other.refresh().unwrap();
    tried.check(&other.snapshot());
    tried.fill(&mut writer, 60..70);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
    check(&held.0, &held.1);
}

#[test]
fn documents_expire_in_a_frozen_memtable_and_in_its_segment() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.gate.shut(true);
    tried.fill(&mut writer, 0..40);
    // After the next commit, half of the documents have expired.
    tried.now += AGE - 20;
    writer.set_options(writer.options().max_jump(2 * AGE)).unwrap();
    tried.put(&mut writer, 100, spread(100));
    tried.commit(&mut writer);
    assert_eq!(tried.documents.len(), 20);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
    tried.gate.shut(false);
    writer.wait_for_merge().unwrap();
    assert_eq!(tried.index.snapshot().entries()[0].deleted.len(), 21);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
}

#[test]
fn commit_waits_only_if_a_second_full_memtable_is_unflushed() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.gate.shut(true);
    tried.fill(&mut writer, 0..70);
    assert_eq!(tried.index.snapshot().entries().len(), 0);
    let opened = {
        let gate = tried.gate.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            let opened = Instant::now(); // read before the gate opens, because this thread may be delayed after that
            gate.shut(false);
            opened
        })
    };
    tried.fill(&mut writer, 70..130);
    let ended = Instant::now();
    assert!(ended > opened.join().unwrap(), "the third memtable did not wait for the first");
    tried.check(&tried.index.snapshot());
    writer.wait_for_merge().unwrap();
    tried.check(&tried.index.snapshot());
    assert!(tried.index.snapshot().entries().len() >= 2);
}

#[test]
fn batch_larger_than_memtables_continues_while_a_thread_flushes_it() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.fill(&mut writer, 0..30); // in the log and the memtable
    tried.delete(&mut writer, 4);
    tried.commit(&mut writer);
    tried.gate.shut(true);
    let before = tried.documents.clone();
    // Twice the capacity of a memtable. The flush thread still waits at the gate, and `put` does not wait for it.
    for key in 100..155 {
        tried.put(&mut writer, key, spread(key));
    }
    tried.put(&mut writer, 101, spread(7101));
    tried.delete(&mut writer, 102);
    tried.delete(&mut writer, 3);
    assert!(!tried.gate.exists(Path::new("/index/000001.seg")).unwrap());
    check(&tried.index.snapshot(), &before);
    let stamped =
        |tried: &GatedIndex, fingerprint| Document::from(Fingerprint(fingerprint)).with_stamp(tried.now);
    // Queries of the writer see all documents of the batch: in the memtable, in the frozen memtable and in segments.
    for (key, there) in [(3, false), (5, true), (100, true), (102, false), (154, true)] {
        assert_eq!(writer.contains(key).unwrap(), there, "{key}");
    }
    match writer.admit(900, stamped(&tried, spread(120) ^ 1)).unwrap() {
        Admitted::Duplicate(hit) => assert_eq!(hit.key.as_u64(), Some(120)),
        found => panic!("{found:?}"),
    }
    tried.batch.insert(900, (spread(120) ^ 1, tried.now));
    tried.gate.shut(false);
    for key in 200..400 {
        tried.put(&mut writer, key, spread(key));
    }
    check(&tried.index.snapshot(), &before);
    tried.commit(&mut writer);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
    assert!(tried.index.snapshot().entries().len() >= 2);
    tried.fill(&mut writer, 400..420);
    tried.check(&tried.open().snapshot());
}

#[test]
fn abandoned_large_batch_changes_no_committed_document() {
    for fails in [false, true] {
        let mut tried = GatedIndex::new();
        let mut writer = tried.writer();
        writer.set_options(writer.options().durability(Durability::None)).unwrap();
        tried.fill(&mut writer, 0..30);
        tried.gate.shut(true);
        for key in 100..155 {
            tried.put(&mut writer, key, spread(key));
        }
        tried.delete(&mut writer, 7);
        tried.gate.fails.store(fails, Ordering::Relaxed);
        tried.gate.shut(false);
        if fails {
            let error = writer.commit().unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{error:?}");
        }
        drop(writer);
        tried.check(&tried.index.snapshot());
        tried.check(&tried.open().snapshot());
        let segments = tried.gate.list(Path::new("/index")).unwrap();
        assert!(!segments.iter().any(|name| name.to_string_lossy().ends_with(".seg")), "{segments:?}");
        tried.gate.fails.store(false, Ordering::Relaxed);
        tried.batch.clone_from(&tried.documents);
        let mut writer = tried.writer();
        tried.fill(&mut writer, 500..550);
        tried.check(&tried.open().snapshot());
    }
}

#[test]
fn commits_stall_for_the_configured_time_at_the_configured_limit() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    writer.set_options(writer.options().stalls(Duration::ZERO, 4)).unwrap();
    tried.gate.shut(true);
    // Adds the rows of one frozen memtable and three more memtables.
    tried.fill(&mut writer, 0..190);
    assert_eq!(tried.index.metrics().stalls.count, 0);
    writer.set_options(writer.options().stalls(Duration::from_millis(3), 5)).unwrap();
    tried.fill(&mut writer, 190..210);
    let stalls = tried.index.metrics().stalls;
    assert!(stalls.count == 2 && stalls.seconds >= 0.006, "{stalls:?}");
    tried.gate.shut(false);
    writer.wait_for_merge().unwrap();
    tried.check(&tried.index.snapshot());
}

/// The name of the thread that removes files larger than a megabyte.
const SWEEP: &str = "twindex-sweep";

#[test]
fn large_files_are_removed_in_background_unless_names_are_reused() {
    let mut tried = GatedIndex::new();
    let value = vec![7; 1 << 16];
    let mut writer = tried.writer();
    let fill = |tried: &mut GatedIndex, writer: &mut Writer, key: u64| {
        tried.now += 1;
        let document = Document::from(Fingerprint(spread(key))).with_value(&value).with_stamp(tried.now);
        writer.put(key, document).unwrap();
        tried.batch.insert(key, (spread(key), tried.now));
        tried.commit(writer);
    };
    (0..40).for_each(|key| fill(&mut tried, &mut writer, key));
    writer.flush().unwrap();
    // The log is larger than two megabytes, so a thread removes it, and commits continue meanwhile.
    tried.gate.sweeps.shut(true);
    // A leftover file has the name of a log that the writer will create later.
    let logs = tried.index.snapshot().manifest().logged.as_ref().unwrap().next_log;
    let left = PathBuf::from(format!("/index/LOG-{:06}", logs + 1));
    tried.gate.disk.create_append(&left).unwrap().append(&vec![1; 2 << 20]).unwrap();
    (40..80).for_each(|key| fill(&mut tried, &mut writer, key));
    writer.flush().unwrap();
    (80..120).for_each(|key| fill(&mut tried, &mut writer, key));
    writer.flush().unwrap();
    let start = Instant::now();
    while tried.gate.sweeps.waiting.load(Ordering::Relaxed) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing was removed by a thread");
        std::thread::sleep(Duration::from_millis(1));
    }
    tried.check(&tried.open().snapshot());
    fill(&mut tried, &mut writer, 200);
    tried.gate.sweeps.shut(false);
    fill(&mut tried, &mut writer, 201);
    drop(writer);
    tried.check(&tried.open().snapshot());
    let left = tried.gate.disk.list(Path::new("/index")).unwrap();
    drop(tried.index.writer().unwrap());
    let now = tried.gate.disk.list(Path::new("/index")).unwrap();
    assert!(now.len() <= left.len() && now.len() < 12, "{left:?}, then {now:?}");
}

#[test]
fn next_writer_flushes_the_frozen_memtable_of_a_dropped_writer() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.gate.shut(true);
    tried.fill(&mut writer, 0..55);
    tried.put(&mut writer, 900, 1);
    tried.delete(&mut writer, 11);
    tried.gate.fails.store(true, Ordering::Relaxed); // the flush fails, as if the process had stopped during it
    tried.gate.shut(false);
    drop(writer);
    tried.batch.clone_from(&tried.documents);
    tried.gate.fails.store(false, Ordering::Relaxed);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
    let mut writer = tried.writer();
    tried.delete(&mut writer, 12);
    tried.fill(&mut writer, 60..70);
    tried.check(&tried.index.snapshot());
    writer.wait_for_merge().unwrap();
    assert_eq!(tried.index.snapshot().entries().len(), 1);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
}

#[test]
fn failed_flush_is_reported_after_the_commit_and_loses_nothing() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.gate.fails.store(true, Ordering::Relaxed);
    tried.fill(&mut writer, 0..39);
    let error = loop {
        let key = tried.documents.len() as u64 + 1000;
        tried.put(&mut writer, key, spread(key));
        let done = writer.commit();
        tried.documents.clone_from(&tried.batch);
        match done {
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::AfterCommit { .. }), "{error:?}");
    assert!(matches!(
        writer.put(1, Document::from(Fingerprint(1)).with_stamp(1)),
        Err(Error::Poisoned { .. })
    ));
    drop(writer);
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
    tried.gate.fails.store(false, Ordering::Relaxed);
    let mut writer = tried.writer();
    tried.fill(&mut writer, 2000..2050);
    writer.wait_for_merge().unwrap();
    tried.check(&tried.index.snapshot());
    tried.check(&tried.open().snapshot());
}

#[test]
fn commit_keeps_a_segment_that_the_flush_thread_finished() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.fill(&mut writer, 0..40);
    let start = Instant::now();
    while !tried.gate.exists(Path::new("/index/000001.seg")).unwrap() {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", tried.gate.list(Path::new("/index")));
        std::thread::sleep(Duration::from_millis(1));
    }
    tried.fill(&mut writer, 40..50); // creates a log, publishes a generation that names it, and removes garbage
    writer.wait_for_merge().unwrap();
    assert_eq!(tried.index.snapshot().entries().len(), 1);
    tried.check(&tried.open().snapshot());
}

#[test]
fn dropped_writer_flushes_its_frozen_memtable() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.writer();
    tried.fill(&mut writer, 0..50);
    drop(writer);
    let snapshot = tried.open().snapshot();
    assert_eq!((snapshot.entries().len(), snapshot.logged_documents()), (1, 10));
    tried.check(&snapshot);
    tried.check(&tried.index.snapshot());
}

#[test]
fn refresh_does_not_read_log_records_again() {
    let mut tried = GatedIndex::new();
    let other = tried.open();
    let mut writer = tried.writer();
    tried.fill(&mut writer, 0..30);
    other.refresh().unwrap();
    tried.gate.shut(true);
    tried.fill(&mut writer, 30..40); // fills the first log
    let before = tried.gate.read.load(Ordering::Relaxed);
    tried.fill(&mut writer, 40..50); // written to the second log, in a new generation
    let generation = tried.index.snapshot().manifest().generation;
    other.refresh().unwrap();
    assert_eq!(other.snapshot().manifest().generation, generation);
    tried.check(&other.snapshot());
    let read = tried.gate.read.load(Ordering::Relaxed) - before;
    // The reader reads only the heads and the new twenty documents, not all fifty.
    assert!(read < 1800, "{read} bytes of logs were read");
    tried.gate.shut(false);
    writer.wait_for_merge().unwrap();
    other.refresh().unwrap();
    tried.check(&other.snapshot());
}

#[test]
fn documents_deleted_during_a_flush_are_deleted_in_its_segment() {
    let mut tried = GatedIndex::new();
    let mut writer = tried.index.writer_with(WriterOptions::default().memtable(5000, usize::MAX)).unwrap();
    tried.now += AGE;
    let value = |key: u64| spread(key).to_le_bytes();
    tried.gate.shut(true);
    for key in 0..5000 {
        let document = Document::from(Fingerprint(spread(key))).with_value(&[]).with_stamp(tried.now);
        writer.put(key, document).unwrap();
        tried.batch.insert(key, (spread(key), tried.now));
    }
    tried.commit(&mut writer);
    for key in (0..5000).filter(|key| key % 3 > 0) {
        tried.delete(&mut writer, key);
    }
    tried.commit(&mut writer);
    tried.gate.shut(false);
    let start = Instant::now();
    while tried.index.snapshot().entries().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60));
        let key = 10_000 + tried.documents.len() as u64;
        let value = value(key);
        let document = Document::from(Fingerprint(spread(key))).with_value(&value).with_stamp(tried.now);
        writer.put(key, document).unwrap();
        tried.batch.insert(key, (spread(key), tried.now));
        tried.commit(&mut writer);
    }
    let snapshot = tried.index.snapshot();
    assert_eq!(snapshot.entries()[0].deleted.len(), 3333);
    assert_eq!(snapshot.documents(), tried.documents.len() as u64);
    for key in 0..5000 {
        assert_eq!(snapshot.get(key).unwrap().is_some(), key % 3 == 0, "{key}");
    }
}
