//! Publish, refresh and gc with threads in any order: `scripts/races` builds the library's own tests so that shuttle
//! runs their threads one at a time, and chooses the next thread at each lock, flag and disk operation.
//!
//! The tests run the code of the store over a disk in memory. Another process is simulated by another [`Index`] on the
//! same disk. They do not cover memory shared without locks: the store has none, and the parts that have
//! (`segment::pages`, `sys::guard`) are tested by `scripts/sanitize`.

#[path = "../../tests/support/model.rs"]
mod model;
#[path = "../../tests/support/random.rs"]
mod random;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::AtomicBool as Point;
use shuttle::{Config, Runner, thread};

use self::model::ModelVfs;
use twindex_sketch::Fingerprint;
use crate::error::Error;
use crate::params::Params;
use crate::store::{Index, Snapshot, Writer};
use crate::sys::Bytes;
use crate::sys::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile, Vfs};

const DIR: &str = "/index";
/// Schedules of each kind that a test runs, unless `TWINDEX_SCHEDULES` sets another number.
const SCHEDULES: usize = 200;
/// For schedules by priorities: the number of random preemptions.
const OVERTAKEN: usize = 3;
/// Commits of a writer.
const COMMITS: u64 = 3;

/// Runs a test under many schedules: uniformly random, and by priorities, which finds bugs that need few but rare
/// preemptions.
fn explore(test: fn()) {
    let schedules = std::env::var("TWINDEX_SCHEDULES").ok();
    let schedules =
        schedules.map_or(SCHEDULES, |times| times.parse().expect("TWINDEX_SCHEDULES is a number"));
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(OVERTAKEN, schedules), config).run(test);
}

/// A disk on which every operation is a point where another thread may run. A log grows while readers have it open, and
/// an append becomes visible in two halves.
#[derive(Clone, Debug)]
struct Turns {
    disk: ModelVfs,
    point: Arc<Point>,
}

impl Turns {
    fn new() -> Self {
        Self { disk: ModelVfs::default(), point: Arc::new(Point::new(false)) }
    }

    fn turn(&self) -> &ModelVfs {
        self.point.load(Ordering::SeqCst);
        &self.disk
    }
}

impl Vfs for Turns {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.turn().create_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.turn().exists(path)
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        self.turn().create_temporary(dir)
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = self.turn().create_append(path)?;
        Ok(Box::new(ByHalves { turns: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.turn().open(path)?;
        Ok(Box::new(GrowingFile { turns: self.clone(), path: path.to_owned(), file }))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.turn().sync_dir(dir)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.turn().rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.turn().remove_dir(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.turn().unlink(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.turn().list(dir)
    }

    fn scratch(&self, dir: &Path) -> PathBuf {
        self.disk.scratch(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        self.turn().lock(path)
    }
}

#[derive(Debug)]
struct ByHalves {
    turns: Turns,
    file: Box<dyn AppendFile>,
}

impl AppendFile for ByHalves {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.turns.turn();
        self.file.append(first)?;
        self.turns.turn();
        self.file.append(second)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.cut(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.turns.turn();
        self.file.sync()
    }
}

/// A file as it was when it was opened; a log as it is now, while its name exists, which no other file gets.
#[derive(Debug)]
struct GrowingFile {
    turns: Turns,
    path: PathBuf,
    file: Box<dyn ReadFile>,
}

impl GrowingFile {
    fn now(&self) -> Option<Box<dyn ReadFile>> {
        self.turns.turn();
        let name = self.path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("LOG-")) {
            self.turns.disk.open(&self.path).ok()
        } else {
            None
        }
    }
}

impl ReadFile for GrowingFile {
    fn len(&self) -> io::Result<u64> {
        self.now().map_or_else(|| self.file.len(), |file| file.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.now();
        file.as_ref().unwrap_or(&self.file).read_exact_at(buffer, offset)
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        self.turns.turn();
        self.file.map(len)
    }
}

fn create(turns: &Turns) -> Index {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    Index::create_with(Arc::new(turns.clone()), Path::new(DIR), params).unwrap()
}

fn open(turns: &Turns) -> Index {
    Index::open_with(Arc::new(turns.clone()), Path::new(DIR)).unwrap()
}

fn writer(index: &Index) -> Result<Writer, Error> {
    let mut writer = index.writer()?;
    writer.set_background_merges(false);
    Ok(writer)
}

/// After the n-th commit the keys are 0, n and n - 1, and 0 has the fingerprint n.
fn put(writer: &mut Writer, n: u64) {
    writer.put(0, Fingerprint(n)).unwrap();
    writer.put(n, Fingerprint(n)).unwrap();
    if n > 2 {
        writer.delete(n - 2).unwrap();
    }
}

/// The commit that a snapshot shows: exactly one, and completely.
fn commit_of(snapshot: &Snapshot) -> u64 {
    let get = |key: u64| snapshot.get(key).unwrap().map(|record| record.fingerprint.unwrap().0);
    let n = get(0).unwrap_or(0);
    for key in 1..=3 * COMMITS {
        let expected = (key == n || key + 1 == n).then_some(key);
        assert_eq!(get(key), expected, "key {key} after commit {n}");
    }
    assert_eq!(snapshot.documents(), [0, 2, 3][n.min(2) as usize]);
    n
}

/// Commits, and then everything that moves documents between files, and removes files.
fn write(index: &Index, acknowledged: &AtomicUsize) {
    let mut writer = writer(index).unwrap();
    for n in 1..=COMMITS {
        put(&mut writer, n);
        writer.commit().unwrap();
        acknowledged.store(n as usize, Ordering::SeqCst);
        if n == 2 {
            writer.flush().unwrap();
        }
    }
    // Documents that are not committed must not be visible.
    writer.put(3 * COMMITS, Fingerprint(1)).unwrap();
    drop(writer);
    index.compact().unwrap();
    index.gc().unwrap();
}

/// A thread that checks several times, by `look`, that it sees a whole commit no older than those acknowledged before.
fn watch(
    acknowledged: &Arc<AtomicUsize>,
    times: usize,
    mut look: impl FnMut() -> Snapshot + Send + 'static,
) -> thread::JoinHandle<()> {
    let acknowledged = Arc::clone(acknowledged);
    thread::spawn(move || {
        let mut last = 0;
        for _ in 0..times {
            let least = acknowledged.load(Ordering::SeqCst) as u64;
            let found = commit_of(&look());
            assert!(found >= last.max(least), "commit {found} after {last}, {least} acknowledged");
            last = found;
        }
    })
}

/// Runs the writer's thread beside the watching threads.
fn beside(index: &Index, acknowledged: &Arc<AtomicUsize>, watchers: Vec<thread::JoinHandle<()>>) {
    let (index, acknowledged) = (index.clone(), Arc::clone(acknowledged));
    let writer = thread::spawn(move || write(&index, &acknowledged));
    for thread in watchers.into_iter().chain([writer]) {
        thread.join().unwrap();
    }
}

#[test]
fn snapshots_in_the_writers_process_are_whole_commits_in_order_and_include_acknowledged_ones() {
    explore(|| {
        let index = create(&Turns::new());
        let acknowledged = Arc::default();
        let watchers = (0..2).map(|_| {
            let index = index.clone();
            watch(&acknowledged, 4, move || index.snapshot())
        });
        let watchers = watchers.collect();
        beside(&index, &acknowledged, watchers);
        assert_eq!(commit_of(&index.snapshot()), COMMITS);
    });
}

#[test]
fn two_threads_of_another_process_refresh_to_whole_commits_in_order_while_files_are_replaced() {
    explore(|| {
        let turns = Turns::new();
        let (index, other) = (create(&turns), open(&turns));
        let acknowledged = Arc::default();
        let watchers = (0..2).map(|_| {
            let other = other.clone();
            watch(&acknowledged, 4, move || {
                other.refresh().unwrap();
                other.snapshot()
            })
        });
        let watchers = watchers.collect();
        beside(&index, &acknowledged, watchers);
        other.refresh().unwrap();
        assert_eq!(commit_of(&other.snapshot()), COMMITS);
    });
}

#[test]
fn open_concurrent_with_commits_and_gc_finds_a_whole_commit() {
    explore(|| {
        let turns = Turns::new();
        let index = create(&turns);
        let acknowledged = Arc::default();
        let watchers = (0..2).map(|_| {
            let turns = turns.clone();
            watch(&acknowledged, 3, move || open(&turns).snapshot())
        });
        let watchers = watchers.collect();
        beside(&index, &acknowledged, watchers);
    });
}

#[test]
fn successive_writers_of_two_processes_lose_nothing_while_others_refresh() {
    explore(|| {
        let turns = Turns::new();
        let (here, there) = (create(&turns), open(&turns));
        let writers = [here.clone(), here.clone(), there.clone()].map(|index| {
            thread::spawn(move || {
                let mut writer = loop {
                    match writer(&index) {
                        Ok(writer) => break writer,
                        Err(Error::Locked { .. }) => thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                };
                // The holder of the lock has read all earlier commits.
                let n = commit_of(&index.snapshot()) + 1;
                put(&mut writer, n);
                writer.commit().unwrap();
                writer.put(3 * COMMITS, Fingerprint(1)).unwrap();
            })
        });
        let acknowledged = Arc::default();
        let watchers = [&here, &there].map(|index| {
            let index = index.clone();
            watch(&acknowledged, 4, move || {
                index.refresh().unwrap();
                index.snapshot()
            })
        });
        for thread in writers.into_iter().chain(watchers) {
            thread.join().unwrap();
        }
        assert_eq!(commit_of(&open(&turns).snapshot()), 3);
        for index in [here, there] {
            index.refresh().unwrap();
            assert_eq!(commit_of(&index.snapshot()), 3);
        }
    });
}

#[test]
fn flushes_and_merges_concurrent_with_commits_keep_whole_commits_in_order_in_two_processes() {
    explore(|| {
        let turns = Turns::new();
        let (index, other) = (create(&turns), open(&turns));
        let acknowledged: Arc<AtomicUsize> = Arc::default();
        let here = {
            let index = index.clone();
            watch(&acknowledged, 4, move || index.snapshot())
        };
        let there = {
            let other = other.clone();
            watch(&acknowledged, 4, move || {
                other.refresh().unwrap();
                other.snapshot()
            })
        };
        let opening = {
            let turns = turns.clone();
            watch(&acknowledged, 2, move || open(&turns).snapshot())
        };
        let writer = {
            let (index, acknowledged) = (index.clone(), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let mut writer = index.writer().unwrap();
                writer.set_memtable(2, usize::MAX);
                for n in 1..=2 * COMMITS {
                    put(&mut writer, n);
                    writer.commit().unwrap();
                    acknowledged.store(n as usize, Ordering::SeqCst);
                }
                // Documents that are not committed must not be visible, and no reader waits for the segment in
                // progress.
                writer.put(3 * COMMITS, Fingerprint(1)).unwrap();
            })
        };
        for thread in [here, there, opening, writer] {
            thread.join().unwrap();
        }
        assert_eq!(commit_of(&index.snapshot()), 2 * COMMITS);
        let mut writer = index.writer().unwrap();
        put(&mut writer, 2 * COMMITS + 1);
        writer.commit().unwrap();
        writer.wait_for_merge().unwrap();
        drop(writer);
        assert_eq!(commit_of(&index.snapshot()), 2 * COMMITS + 1);
        assert_eq!(commit_of(&open(&turns).snapshot()), 2 * COMMITS + 1);
    });
}
