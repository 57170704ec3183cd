//! Tests of publish, refresh and gc under many thread schedules. `.ci/run races` builds the library's unit tests so
//! that shuttle runs their threads one at a time, and chooses the next thread at each lock, flag and disk operation.
//! `src/store` includes this file as the module `interleavings`, because only unit tests of the library may use shuttle:
//! it is not a dependency of the library.
//!
//! The tests run the code of the store on a disk in memory. Another process is simulated by another [`Index`] on the same
//! disk. The tests do not cover memory that is shared without locks. The store has none; `scripts/sanitize` tests the
//! modules that have (`segment::pages`, `sys::guard`).

#[path = "../model.rs"]
mod model;
#[path = "../random.rs"]
mod random;
mod turns;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

use self::turns::Turns;
use twindex::{Error, Fingerprint, Index, Params, Snapshot, Writer, WriterOptions};

const DIR: &str = "/index";
/// Number of schedules of each kind that a test runs, unless `TWINDEX_SCHEDULES` sets another number.
const SCHEDULES: usize = 200;
/// Number of random preemptions in a schedule of the PCT scheduler.
const OVERTAKEN: usize = 3;
/// Number of commits of a writer.
const COMMITS: u64 = 3;
/// Number of documents that a large batch adds and removes again. Memtables of three rows cannot hold them.
const PASSING: u64 = 7;

/// Runs a test under many schedules: uniformly random ones, and priority-based ones (PCT), which find bugs that need few but
/// rare preemptions.
fn explore(test: fn()) {
    let schedules = std::env::var("TWINDEX_SCHEDULES").ok();
    let schedules =
        schedules.map_or(SCHEDULES, |times| times.parse().expect("TWINDEX_SCHEDULES is a number"));
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(OVERTAKEN, schedules), config).run(test);
}

fn create(turns: &Turns) -> Index {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    Index::create_with(Arc::new(turns.clone()), Path::new(DIR), params).unwrap()
}

fn open(turns: &Turns) -> Index {
    Index::open_with(Arc::new(turns.clone()), Path::new(DIR)).unwrap()
}

fn writer(index: &Index) -> Result<Writer, Error> {
    index.writer_with(WriterOptions::default().background_merges(false))
}

/// Makes changes so that after the n-th commit the keys are 0, n and n - 1, and key 0 has the fingerprint n.
fn put(writer: &mut Writer, n: u64) {
    writer.put(0, Fingerprint(n)).unwrap();
    writer.put(n, Fingerprint(n)).unwrap();
    if n > 2 {
        writer.delete(n - 2).unwrap();
    }
}

/// Adds a batch with the same result as [`put`], but larger than the memtables of [`small_memtables`]. So threads write
/// parts of the batch to segments before it is committed.
fn put_much(writer: &mut Writer, n: u64) {
    let passing = || 10 * COMMITS..10 * COMMITS + PASSING;
    writer.put(n, Fingerprint(n + 1)).unwrap();
    for key in passing() {
        writer.put(key, Fingerprint(n)).unwrap();
    }
    put(writer, n);
    for key in passing() {
        writer.delete(key).unwrap();
    }
}

/// Returns a writer whose memtables are full after three rows, so that threads write segments, merge them and remove
/// files.
fn small_memtables(index: &Index) -> Writer {
    index.writer_with(WriterOptions::default().memtable(3, usize::MAX)).unwrap()
}

/// Returns the number of the commit in a snapshot. Checks that the snapshot contains exactly the documents of this commit.
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

/// Like [`commit_of`], but uses queries that release the lock of the memtable between two rows.
fn commit_near(snapshot: &Snapshot) -> u64 {
    let near = |fingerprint: u64| {
        let hits = snapshot.within(Fingerprint(fingerprint), 0).run().unwrap().hits;
        hits.iter().map(|hit| hit.key.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let n = snapshot.get(0_u64).unwrap().map_or(0, |record| record.fingerprint.unwrap().0);
    for fingerprint in 1..=2 * COMMITS + 1 {
        let mut expected = Vec::new();
        expected.extend((fingerprint == n).then_some(0));
        expected.extend((fingerprint == n || fingerprint + 1 == n).then_some(fingerprint));
        assert_eq!(near(fingerprint), expected, "near {fingerprint} after commit {n}");
    }
    n
}

/// Makes [`COMMITS`] commits, and then runs all operations that move documents between files or remove files.
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

/// Starts a thread that calls `look` `times` times. Checks each time that the snapshot is a complete commit, and at least as
/// new as the commits acknowledged before the call.
fn watch(
    acknowledged: &Arc<AtomicUsize>,
    times: usize,
    look: impl FnMut() -> Snapshot + Send + 'static,
) -> thread::JoinHandle<()> {
    watch_by(acknowledged, times, commit_of, look)
}

/// Like [`watch`], but calls `commit` to get the number of the commit in a snapshot.
fn watch_by(
    acknowledged: &Arc<AtomicUsize>,
    times: usize,
    commit: fn(&Snapshot) -> u64,
    mut look: impl FnMut() -> Snapshot + Send + 'static,
) -> thread::JoinHandle<()> {
    let acknowledged = Arc::clone(acknowledged);
    thread::spawn(move || {
        let mut last = 0;
        for _ in 0..times {
            let min = acknowledged.load(Ordering::SeqCst) as u64;
            let found = commit(&look());
            assert!(found >= last.max(min), "commit {found} after {last}, {min} acknowledged");
            last = found;
        }
    })
}

/// Starts a thread for each way to watch an index: by the writer's handle, by the handle of another process (`times`
/// rounds), and by handles that the thread opens itself.
fn watch_everywhere(
    acknowledged: &Arc<AtomicUsize>,
    times: usize,
    index: &Index,
    other: &Index,
    turns: &Turns,
) -> [thread::JoinHandle<()>; 3] {
    let (index, other, turns) = (index.clone(), other.clone(), turns.clone());
    [
        watch(acknowledged, 4, move || index.snapshot()),
        watch(acknowledged, times, move || {
            other.refresh().unwrap();
            other.snapshot()
        }),
        watch(acknowledged, 2, move || open(&turns).snapshot()),
    ]
}

/// Runs the writer's thread concurrently with the watching threads, and waits for all of them.
fn beside(index: &Index, acknowledged: &Arc<AtomicUsize>, watchers: Vec<thread::JoinHandle<()>>) {
    let (index, acknowledged) = (index.clone(), Arc::clone(acknowledged));
    let writer = thread::spawn(move || write(&index, &acknowledged));
    for thread in watchers.into_iter().chain([writer]) {
        thread.join().unwrap();
    }
}

#[test]
fn snapshots_during_writes_are_whole_commits_in_order() {
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
fn concurrent_refreshes_in_another_process_see_whole_commits_in_order() {
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
fn open_during_commits_and_gc_finds_a_whole_commit() {
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
fn successive_writers_of_two_processes_lose_no_commit() {
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
fn readers_see_whole_commits_in_order_during_flushes_and_merges() {
    explore(|| {
        let turns = Turns::new();
        let (index, other) = (create(&turns), open(&turns));
        let acknowledged: Arc<AtomicUsize> = Arc::default();
        let watchers = watch_everywhere(&acknowledged, 4, &index, &other, &turns);
        let writer = {
            let (index, acknowledged) = (index.clone(), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let mut writer = small_memtables(&index);
                for n in 1..=2 * COMMITS {
                    put(&mut writer, n);
                    writer.commit().unwrap();
                    acknowledged.store(n as usize, Ordering::SeqCst);
                }
                // Uncommitted documents must not be visible, and readers must not wait for the segment that is being
                // written.
                writer.put(3 * COMMITS, Fingerprint(1)).unwrap();
            })
        };
        for thread in watchers.into_iter().chain([writer]) {
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

#[test]
fn large_batches_written_by_background_threads_are_atomic_for_readers() {
    explore(|| {
        let turns = Turns::new();
        let (index, other) = (create(&turns), open(&turns));
        let acknowledged: Arc<AtomicUsize> = Arc::default();
        let watchers = watch_everywhere(&acknowledged, 3, &index, &other, &turns);
        let writer = {
            let (index, acknowledged) = (index.clone(), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let mut writer = small_memtables(&index);
                for n in 1..=COMMITS {
                    // A small batch between two large ones. Its rows, which are in the log, are also written to the next
                    // segment.
                    if n % 2 == 1 {
                        put_much(&mut writer, n)
                    } else {
                        put(&mut writer, n)
                    }
                    writer.commit().unwrap();
                    acknowledged.store(n as usize, Ordering::SeqCst);
                }
                // A large batch that is not committed. Its segments must be removed.
                put_much(&mut writer, COMMITS + 1);
            })
        };
        for thread in watchers.into_iter().chain([writer]) {
            thread.join().unwrap();
        }
        assert_eq!(commit_of(&index.snapshot()), COMMITS);
        assert_eq!(commit_of(&open(&turns).snapshot()), COMMITS);
        let mut writer = small_memtables(&index);
        put_much(&mut writer, COMMITS + 1);
        writer.commit().unwrap();
        writer.gc().unwrap();
        drop(writer);
        other.refresh().unwrap();
        for index in [index, other, open(&turns)] {
            assert_eq!(commit_of(&index.snapshot()), COMMITS + 1);
        }
    });
}

#[test]
fn queries_that_release_the_lock_see_one_commit_during_flushes() {
    explore(|| {
        let index = create(&Turns::new());
        let acknowledged: Arc<AtomicUsize> = Arc::default();
        let watchers: Vec<_> = (0..2)
            .map(|_| {
                let index = index.clone();
                watch_by(&acknowledged, 3, commit_near, move || index.snapshot())
            })
            .collect();
        let writer = {
            let (index, acknowledged) = (index.clone(), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let mut writer = small_memtables(&index);
                for n in 1..=2 * COMMITS {
                    if n == COMMITS {
                        put_much(&mut writer, n)
                    } else {
                        put(&mut writer, n)
                    }
                    writer.commit().unwrap();
                    acknowledged.store(n as usize, Ordering::SeqCst);
                }
            })
        };
        for thread in watchers.into_iter().chain([writer]) {
            thread.join().unwrap();
        }
        assert_eq!(commit_near(&index.snapshot()), 2 * COMMITS);
    });
}
