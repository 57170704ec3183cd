//! Tests that after a crash an index contains exactly the last acknowledged commit or the commit in progress. Also tests
//! that each sync is necessary: if it is omitted, some crash violates this guarantee.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::model::{Disk, ModelVfs, Variant, thoroughness};
use twindex::IdfBuilder;
use twindex::params::{KeyKind, ParamsBuilder, Shingling};
use twindex::sketch::Buffers;
use twindex::store::OnConflict;
use twindex::store::salvage::salvage;
use twindex::sys::Vfs;
use twindex::{
    Code, Document, Durability, Error, Fingerprint, Index, Key, KeyBuf, Params, Result, Sketcher, Snapshot,
    Writer, WriterOptions,
};

pub(crate) type Documents = BTreeMap<u64, u64>;

pub(crate) fn place() -> &'static Path {
    Path::new("/index")
}

/// Returns the number in a key: the key itself if it is numeric, otherwise the part after the folder.
fn number_of(key: &KeyBuf) -> u64 {
    key.as_u64().unwrap_or_else(|| key.as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap())
}

/// Returns the fingerprint that the documents of these tests store for a number: each of its words is the number.
fn stored(index: &Index, number: u64) -> Code {
    let bits = index.params().codes.map_or(64, |codes| codes.bits);
    Code::of_words(&vec![number; usize::from(bits) / 64]).unwrap()
}

/// Returns the documents of a snapshot.
fn documents(snapshot: &Snapshot) -> Result<Documents> {
    let (mut found, mut words) = (Documents::new(), Vec::new());
    for (segment, deleted) in snapshot.segments() {
        for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
            let key = number_of(&segment.key(ordinal)?);
            match segment.rank(ordinal)? {
                Some(rank) => words = vec![segment.fingerprint(rank)?],
                None => segment.code_words(ordinal..ordinal + 1, &mut words)?,
            }
            assert!(words.iter().all(|word| *word == words[0]), "{key}: {words:x?}");
            assert_eq!(found.insert(key, words[0]), None, "{key} is live twice");
        }
    }
    Ok(found)
}

/// The states that a crash may leave, by the number of guarantees recorded so far. A state is `None` if no index exists.
/// The first entry applies before the first guarantee.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Vec<Vec<Option<Documents>>>);

impl History {
    /// Records the guarantee that any later crash leaves one of these states.
    pub(crate) fn promise(&mut self, vfs: &ModelVfs, allowed: &[Option<&Documents>]) {
        self.0.push(allowed.iter().map(|documents| documents.cloned()).collect());
        vfs.promise(self.0.len() as u64 - 1);
    }

    /// Records that these documents are durable. A crash before this point may already leave this state as well.
    pub(crate) fn committed(&mut self, vfs: &ModelVfs, documents: &Documents) {
        if let Some(before) = self.0.last_mut() {
            before.push(Some(documents.clone()));
        }
        self.promise(vfs, &[Some(documents)]);
    }
}

/// A sequence of operations on a disk, which also records their guarantees.
pub(crate) type Work<'a> = &'a dyn Fn(&ModelVfs, &mut History);

fn created(vfs: &ModelVfs) -> Index {
    Index::create_with(Arc::new(vfs.clone()), place(), of_simhash().build().unwrap()).unwrap()
}

fn of_simhash() -> ParamsBuilder {
    Params::builder().u64_keys().simhash(3)
}

fn of_codes() -> ParamsBuilder {
    Params::builder().u64_keys().codes(256, 31)
}

/// Creates an index, makes three commits, and compacts. One batch is written as several segments that replace each
/// other's keys.
fn commits(vfs: &ModelVfs, history: &mut History) {
    history.promise(vfs, &[None]);
    let index = created(vfs);
    let mut documents = Documents::new();
    history.committed(vfs, &documents);
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for batch in 0..3_u64 {
        if batch == 2 {
            writer.set_options(writer.options().memory(40)).unwrap();
        }
        for i in 0..4 {
            let (key, fingerprint) = (batch + i, batch * 1000 + i);
            writer.put(key, Fingerprint(fingerprint)).unwrap();
            documents.insert(key, fingerprint);
        }
        writer.delete(batch).unwrap();
        documents.remove(&batch);
        writer.commit().unwrap();
        history.committed(vfs, &documents);
    }
    writer.compact().unwrap();
    history.committed(vfs, &documents);
}

/// Creates an index, and commits to the logs of two writers, with and without syncs, flushes and merges.
fn logged(params: fn() -> ParamsBuilder) -> impl Fn(&ModelVfs, &mut History) {
    move |vfs, history| {
        history.promise(vfs, &[None]);
        let params = params().build().unwrap();
        let index = Index::create_with(Arc::new(vfs.clone()), place(), params).unwrap();
        let mut documents = Documents::new();
        history.committed(vfs, &documents);
        for session in 0..3_u64 {
            let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
            for batch in 0..4_u64 {
                for i in 0..3 {
                    let (key, fingerprint) = (session * 2 + batch + i, session * 10_000 + batch * 100 + i);
                    writer.put(key, stored(&index, fingerprint)).unwrap();
                    documents.insert(key, fingerprint);
                }
                writer.delete(session + batch).unwrap();
                documents.remove(&(session + batch));
                writer.commit().unwrap();
                history.committed(vfs, &documents);
            }
            if session == 1 {
                writer.flush().unwrap();
                history.promise(vfs, &[Some(&documents)]);
            }
        }
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        for batch in 0..4 {
            writer.put(100 + batch, stored(&index, batch)).unwrap();
            documents.insert(100 + batch, batch);
            writer.commit().unwrap();
            history.committed(vfs, &documents);
            writer.flush().unwrap();
            history.promise(vfs, &[Some(&documents)]);
        }
        while writer.merge_step().unwrap() {}
        history.promise(vfs, &[Some(&documents)]);
        writer.gc().unwrap();
        writer.compact().unwrap();
        history.promise(vfs, &[Some(&documents)]);
    }
}

/// Makes commits with weak durability and syncs them; then another writer continues after further unsynced commits.
fn unsynced(vfs: &ModelVfs, history: &mut History) {
    history.promise(vfs, &[None]);
    let index = created(vfs);
    let mut documents = Documents::new();
    history.committed(vfs, &documents);
    for durability in [Durability::Batch, Durability::None] {
        for ends in ["sync", "drop", "flush"] {
            let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
            let start = history.0.len() as u64;
            for batch in 0..4 {
                let (key, fingerprint) = (start + batch, start * 100 + batch);
                writer.put(key, Fingerprint(fingerprint)).unwrap();
                writer.delete(start + batch - 1).unwrap();
                documents.insert(key, fingerprint);
                documents.remove(&(start + batch - 1));
                writer
                    .set_options(writer.options().durability(if batch == 0 {
                        Durability::Sync
                    } else {
                        durability
                    }))
                    .unwrap();
                writer.commit().unwrap();
                if batch == 0 {
                    history.committed(vfs, &documents);
                } else if let Some(allowed) = history.0.last_mut() {
                    allowed.push(Some(documents.clone()));
                }
            }
            match ends {
                "sync" => writer.sync().unwrap(),
                "flush" => writer.flush().unwrap(),
                _ => continue,
            }
            history.promise(vfs, &[Some(&documents)]);
        }
    }
    // The previous writer left unsynced commits, and the first action of this writer is a merge.
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut next = |writer: &mut Writer, key: u64| {
        writer.put(key, Fingerprint(key)).unwrap();
        documents.insert(key, key);
        writer.commit().unwrap();
        documents.clone()
    };
    for key in 1000..1004 {
        let now = next(&mut writer, key);
        history.committed(vfs, &now);
        writer.flush().unwrap();
    }
    let now = next(&mut writer, 1004);
    history.committed(vfs, &now);
    writer.set_options(writer.options().durability(Durability::Batch)).unwrap();
    let now = next(&mut writer, 1005);
    history.0.last_mut().unwrap().push(Some(now.clone()));
    drop(writer);
    let mut writer = index.writer().unwrap();
    assert!(writer.merge_step().unwrap());
    history.promise(vfs, &[Some(&now)]);
    let now = next(&mut writer, 1006);
    history.committed(vfs, &now);
    writer.flush().unwrap();
    writer.gc().unwrap();
    history.promise(vfs, &[Some(&now)]);
}

/// Commits to the log while full memtables are flushed and segments are merged concurrently.
fn beside(vfs: &ModelVfs, history: &mut History) {
    history.promise(vfs, &[None]);
    let index = created(vfs);
    let mut documents = Documents::new();
    history.committed(vfs, &documents);
    for session in 0..1_u64 {
        let mut writer = index.writer_with(WriterOptions::default().memtable(5, 1 << 20)).unwrap();
        for batch in 0..7_u64 {
            for i in 0..2 {
                let (key, fingerprint) = (session * 6 + batch * 2 + i, session * 10_000 + batch * 100 + i);
                writer.put(key, Fingerprint(fingerprint)).unwrap();
                documents.insert(key, fingerprint);
            }
            let gone = session * 6 + (batch * 5) % 12;
            writer.delete(gone).unwrap();
            documents.remove(&gone);
            let durability = if batch % 4 == 1 { Durability::Batch } else { Durability::Sync };
            writer.set_options(writer.options().durability(durability)).unwrap();
            writer.commit().unwrap();
            if durability == Durability::Sync {
                history.committed(vfs, &documents);
            } else if let Some(allowed) = history.0.last_mut() {
                allowed.push(Some(documents.clone()));
            }
            if batch % 3 == 2 {
                writer.wait_for_merge().unwrap();
            }
        }
    }
}

/// Commits two small batches and then one that is larger than the memtables, so that threads write segments of it before
/// it ends. The second small batch was committed without a sync; the large commit makes it durable.
fn large(vfs: &ModelVfs, history: &mut History) {
    history.promise(vfs, &[None]);
    let index = created(vfs);
    let mut documents = Documents::new();
    history.committed(vfs, &documents);
    let mut writer = index.writer_with(WriterOptions::default().memtable(4, 1 << 20)).unwrap();
    for (batch, size) in [(0, 1_u64), (1, 1), (2, 12)] {
        writer
            .set_options(writer.options().durability(if batch == 1 {
                Durability::Batch
            } else {
                Durability::Sync
            }))
            .unwrap();
        for i in 0..size {
            let (key, fingerprint) = (batch * 2 + i, batch * 100 + i);
            writer.put(key, Fingerprint(fingerprint)).unwrap();
            documents.insert(key, fingerprint);
        }
        if batch == 2 {
            writer.delete(1 + batch * 2).unwrap();
            documents.remove(&(1 + batch * 2));
        }
        writer.commit().unwrap();
        if batch == 1 {
            history.0.last_mut().unwrap().push(Some(documents.clone()));
        } else {
            history.committed(vfs, &documents);
        }
    }
}

/// Makes commits by which documents expire: documents in the log, in segments, in a merge and in a compaction, and all
/// documents of a segment. An expired document may reappear only if the commit by which it expired is lost.
fn expiring(vfs: &ModelVfs, history: &mut History) {
    const AGE: u64 = 5;
    history.promise(vfs, &[None]);
    let params = Params::builder().u64_keys().simhash(3).values().expire_after(AGE).build().unwrap();
    let index = Index::create_with(Arc::new(vfs.clone()), place(), params).unwrap();
    let (mut documents, mut stamps) = (Documents::new(), BTreeMap::new());
    history.committed(vfs, &documents);
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for now in 10..24_u64 {
        for i in 0..2 {
            let (key, fingerprint, stamp) = (now * 3 % 16 + i, now * 100 + i, now - i * 2);
            let value = [now as u8; 3];
            let document = Document::from(Fingerprint(fingerprint)).with_value(&value[..i as usize]);
            writer.put(key, document.with_stamp(stamp)).unwrap();
            documents.insert(key, fingerprint);
            stamps.insert(key, stamp);
        }
        documents.retain(|key, _| now - stamps[key] < AGE);
        writer.commit().unwrap();
        history.committed(vfs, &documents);
        if now % 3 == 0 {
            writer.flush().unwrap();
            history.promise(vfs, &[Some(&documents)]);
        }
        if now == 18 {
            drop(writer);
            writer = index.writer().unwrap();
            writer.set_options(writer.options().background_merges(false)).unwrap();
        }
    }
    while writer.merge_step().unwrap() {}
    history.promise(vfs, &[Some(&documents)]);
    writer.gc().unwrap();
    writer.compact().unwrap();
    history.promise(vfs, &[Some(&documents)]);
}

/// Copies an index with a log by hard links, or merges it with another shard. The new index must be complete or absent.
fn copied(merged: bool) -> impl Fn(&ModelVfs, &mut History) {
    move |vfs, history| {
        let shared = || Arc::new(vfs.clone());
        let fill = |index: &Index, from: u64| {
            let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
            for key in from..from + 4 {
                writer.put(key, Fingerprint(key)).unwrap();
                writer.commit().unwrap();
                if key == from + 1 {
                    writer.flush().unwrap();
                }
            }
        };
        let params = Params::builder().u64_keys().simhash(3).build().unwrap();
        let one = Index::create_with(shared(), Path::new("/one"), params.clone()).unwrap();
        fill(&one, 0);
        let of_one: Documents = (0..4).map(|key| (key, key)).collect();
        if merged {
            let two = Index::create_with(shared(), Path::new("/two"), params).unwrap();
            fill(&two, 10);
            let all: Documents = (0..4).chain(10..14).map(|key| (key, key)).collect();
            history.promise(vfs, &[None, Some(&all)]);
            Index::merge(place(), &[one, two], OnConflict::Refuse, 1 << 20).unwrap();
            history.promise(vfs, &[Some(&all)]);
        } else {
            history.promise(vfs, &[None, Some(&of_one)]);
            one.copy_to(place()).unwrap();
            history.promise(vfs, &[Some(&of_one)]);
        }
    }
}

/// Creates an index with a segment, deletes and a log at `/one`. Returns its documents.
fn with_log(vfs: &ModelVfs) -> Documents {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let one = Index::create_with(Arc::new(vfs.clone()), Path::new("/one"), params).unwrap();
    let mut writer = one.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut documents = Documents::new();
    for key in 0..8 {
        writer.put(key, Fingerprint(key * 7)).unwrap();
        documents.insert(key, key * 7);
        if key % 3 == 2 {
            writer.delete(key - 1).unwrap();
            documents.remove(&(key - 1));
            writer.commit().unwrap();
        }
        if key == 5 {
            writer.flush().unwrap();
        }
    }
    writer.commit().unwrap();
    documents
}

/// Salvages an undamaged index with a log. The new index must be complete or absent.
fn salvaged(vfs: &ModelVfs, history: &mut History) {
    let documents = with_log(vfs);
    history.promise(vfs, &[None, Some(&documents)]);
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let report = salvage(&shared, Path::new("/one"), place()).unwrap();
    assert!(report.is_whole(), "{report:?}");
    history.promise(vfs, &[Some(&documents)]);
}

/// Returns a disk with a durable index of two segments, and its documents.
fn prepared() -> (Disk, Documents) {
    let vfs = ModelVfs::default();
    let mut writer = created(&vfs).writer_with(WriterOptions::default().logged(false)).unwrap();
    let mut documents = Documents::new();
    for batch in 0..2 {
        for key in 3 * batch..3 * batch + 3 {
            writer.put(key, Fingerprint(key)).unwrap();
            documents.insert(key, key);
        }
        writer.commit().unwrap();
    }
    drop(writer);
    (vfs.disk(), documents)
}

/// Replaces the first document of each segment and deletes the second; if `all`, replaces all documents.
fn change(vfs: &ModelVfs, documents: &mut Documents, value: u64, all: bool) -> Result<()> {
    let index = Index::open_with(Arc::new(vfs.clone()), place())?;
    let mut writer = index.writer_with(WriterOptions::default().logged(false))?;
    for key in 0..6 {
        if all || key % 3 == 0 {
            documents.insert(key, value + key);
            writer.put(key, Fingerprint(value + key))?;
        } else if key % 3 == 1 {
            documents.remove(&key);
            writer.delete(key)?;
        }
    }
    writer.commit()?;
    Ok(())
}

/// Kills the process after `after` events of a commit. Another process continues with its files, whether they were synced
/// or not.
fn killed(after: usize, compacting: bool) -> impl Fn(&ModelVfs, &mut History) {
    move |vfs, history| {
        let (_, before) = prepared();
        let mut first = before.clone();
        vfs.kill_at(Some(vfs.events() + after));
        let done = if compacting {
            Index::open_with(Arc::new(vfs.clone()), place()).and_then(|index| index.compact()).map(drop)
        } else {
            change(vfs, &mut first, 100, true)
        };
        // An acknowledged commit must survive; an unacknowledged one may survive.
        let durable = if done.is_ok() { vec![Some(&first)] } else { vec![Some(&before), Some(&first)] };
        history.0.push(vec![Some(before.clone()), Some(first.clone())]);
        vfs.kill_at(None);
        history.promise(vfs, &durable);
        let index = Index::open_with(Arc::new(vfs.clone()), place()).unwrap();
        let mut second = documents(&index.snapshot()).unwrap();
        assert!(durable.contains(&Some(&second)), "the next process finds {second:?}");
        // Removes the files of the previous generation, which may be the only durable generation.
        index.gc().unwrap();
        change(vfs, &mut second, 200, false).unwrap();
        history.committed(vfs, &second);
    }
}

/// Returns the documents found after a crash (`None` without an index), or an error if this state is not allowed.
fn judged(disk: Disk, promised: u64, history: &History) -> std::result::Result<Option<Documents>, String> {
    let vfs = ModelVfs::of(disk);
    let found = match Index::open_with(Arc::new(vfs), place()) {
        // The index must be readable, including its IDF table if it has one.
        Ok(index) => match documents(&index.snapshot()).and_then(|found| index.idf().map(|_| found)) {
            Ok(found) => Some(found),
            Err(error) => return Err(format!("damaged: {error}")),
        },
        Err(Error::NotAnIndex { .. }) => None,
        Err(error) => return Err(format!("does not open: {error}")),
    };
    let allowed = &history.0[promised as usize];
    if allowed.contains(&found) { Ok(found) } else { Err(format!("{found:?} and not one of {allowed:?}")) }
}

const VARIANTS: [Variant; 2] = [Variant::Ordered, Variant::Weak];

/// Number of further crashes to simulate after a crash, and the interval of states that are continued: every
/// `one_in`-th.
#[derive(Clone, Copy)]
struct RepeatedCrashes {
    crashes: u32,
    one_in: usize,
}

const NEVER: RepeatedCrashes = RepeatedCrashes { crashes: 0, one_in: 1 };

/// Tests all crashes of `work`, which begins on the disk `start`; returns the number of distinct states.
fn check(what: &str, work: Work<'_>, start: &Disk) -> usize {
    check_again(what, work, start, NEVER)
}

/// Like [`check`], but in some of the states another process continues and crashes, too.
fn check_again(what: &str, work: Work<'_>, start: &Disk, again: RepeatedCrashes) -> usize {
    let vfs = ModelVfs::of(start.clone());
    let mut history = History::default();
    work(&vfs, &mut history);
    let (mut states, mut number) = (0, 0_usize);
    for variant in VARIANTS {
        let mut of_next = 0;
        states += vfs.crashes(start, variant, |promised, point, disk| {
            let next = (again.crashes > 0 && number.is_multiple_of((again.one_in / thoroughness()).max(1)))
                .then(|| disk.clone());
            number += 1;
            let found = match judged(disk, promised, &history) {
                Ok(found) => found,
                Err(wrong) => panic!("{what}, {variant:?}, after event {point}: {wrong}"),
            };
            if let (Some(disk), Some(found)) = (next, found) {
                let what = format!("{what}, {variant:?}, after event {point}, then");
                let again = RepeatedCrashes { crashes: again.crashes - 1, one_in: 101 };
                of_next += check_again(&what, &recovering(found), &disk, again);
            }
            true
        });
        states += of_next;
    }
    states
}

/// Returns the operations of a process that continues after a crash with these documents: it removes garbage, begins a new
/// log, and flushes all logs to a segment.
fn recovering(found: Documents) -> impl Fn(&ModelVfs, &mut History) {
    move |vfs, history| {
        let mut documents = found.clone();
        history.promise(vfs, &[Some(&documents)]);
        let index = Index::open_with(Arc::new(vfs.clone()), place()).unwrap();
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        let key = 5000 + documents.len() as u64;
        // The stamp equals the current time, so nothing expires.
        let stamp = index.params().expire_after.map(|_| index.snapshot().now().unwrap_or(1));
        let name = format!("0/{key:06}");
        let key_of = if index.params().key == KeyKind::U64 { Key::U64(key) } else { Key::from(&name) };
        writer.put(key_of, Document::from(stored(&index, key)).with_stamp(stamp)).unwrap();
        documents.insert(key, key);
        writer.commit().unwrap();
        history.committed(vfs, &documents);
        writer.flush().unwrap();
        history.promise(vfs, &[Some(&documents)]);
    }
}

/// Returns whether omitting the sync with this number makes some crash violate a guarantee.
fn is_missed(work: Work<'_>, start: &Disk, number: usize) -> bool {
    let vfs = ModelVfs::of(start.clone()).without_sync(number);
    let mut history = History::default();
    work(&vfs, &mut history);
    VARIANTS.into_iter().any(|variant| {
        let mut missed = false;
        vfs.crashes(start, variant, |promised, _, disk| {
            missed = judged(disk, promised, &history).is_err();
            !missed
        });
        missed
    })
}

fn syncs(work: Work<'_>, start: &Disk) -> usize {
    let vfs = ModelVfs::of(start.clone());
    work(&vfs, &mut History::default());
    vfs.syncs()
}

#[test]
fn commits_and_compaction_survive_every_crash() {
    let again = RepeatedCrashes { crashes: 2, one_in: 53 };
    let states = check_again("commits", &commits, &Disk::default(), again);
    println!("{states} distinct states");
    assert!(states > 1000, "{states}");
}

#[test]
fn every_sync_of_commits_and_compaction_is_necessary() {
    let count = syncs(&commits, &Disk::default());
    for number in 1..=count {
        assert!(is_missed(&commits, &Disk::default(), number), "sync {number} of {count}");
    }
    println!("{count} syncs");
}

#[test]
fn logged_commits_survive_every_crash() {
    let (logged, of_codes) = (logged(of_simhash), logged(of_codes));
    for (name, work) in
        [("logged", &logged as Work<'_>), ("logged codes", &of_codes), ("unsynced", &unsynced)]
    {
        let again = RepeatedCrashes { crashes: 2, one_in: if name == "logged" { 401 } else { 2003 } };
        let states = check_again(name, work, &Disk::default(), again);
        println!("{name}: {states} distinct states");
        assert!(states > 500, "{name}: {states}");
    }
}

#[test]
fn every_sync_of_logged_commits_is_necessary() {
    let (logged, of_codes) = (logged(of_simhash), logged(of_codes));
    for (name, work) in
        [("logged", &logged as Work<'_>), ("logged codes", &of_codes), ("unsynced", &unsynced)]
    {
        let count = syncs(work, &Disk::default());
        let kept: Vec<usize> =
            (1..=count).filter(|&number| !is_missed(work, &Disk::default(), number)).collect();
        println!("{name}: {count} syncs, not missed: {kept:?}");
        assert_eq!(kept, [0_usize; 0], "{name}");
    }
}

/// Number of runs in which a sync is omitted before the test reports it as unnecessary. Threads run in a different order
/// each time, and in some orders a later sync makes the same bytes durable. On a busy machine, four consecutive runs had
/// such orders.
const RUNS: usize = 16;

/// Tests all crashes of `work`, whose threads run in a different order each time, and that each of its syncs is
/// necessary. Each sync is omitted in several runs.
pub(crate) fn check_concurrent(name: &str, work: Work<'_>, min: usize) {
    let states = check_again(name, work, &Disk::default(), RepeatedCrashes { crashes: 1, one_in: 211 });
    assert!(states > min, "{states}");
    let count = (0..3).map(|_| syncs(work, &Disk::default())).min().unwrap_or(0);
    let kept: Vec<usize> =
        (1..=count).filter(|&number| (0..RUNS).all(|_| !is_missed(work, &Disk::default(), number))).collect();
    println!("{name}: {states} distinct states, {count} syncs, not missed: {kept:?}");
    assert_eq!(kept, [0_usize; 0], "{name}");
}

#[test]
fn commits_during_flushes_survive_crashes_and_need_every_sync() {
    check_concurrent("beside", &beside, 500);
}

#[test]
fn batches_larger_than_memtables_survive_crashes_and_need_every_sync() {
    check_concurrent("large", &large, 200);
}

#[test]
fn commits_that_expire_documents_survive_crashes_and_need_every_sync() {
    let again = RepeatedCrashes { crashes: 2, one_in: 101 };
    let states = check_again("expiring", &expiring, &Disk::default(), again);
    println!("expiring: {states} distinct states");
    assert!(states > 500, "{states}");
    let count = syncs(&expiring, &Disk::default());
    let kept: Vec<usize> =
        (1..=count).filter(|&number| !is_missed(&expiring, &Disk::default(), number)).collect();
    println!("expiring: {count} syncs, not missed: {kept:?}");
    assert_eq!(kept, [0_usize; 0]);
}

/// Does not check the syncs that create the source indexes; the tests above do.
#[test]
fn copy_shard_merge_and_salvage_are_atomic_under_crashes() {
    let (snapshot, merge) = (copied(false), copied(true));
    check_atomic(&[("snapshot", &snapshot as Work<'_>), ("merge of shards", &merge), ("salvage", &salvaged)]);
}

/// Checks for each work that the new index is complete or absent after any crash, and that each of the last five syncs is
/// necessary.
fn check_atomic(all: &[(&str, Work<'_>)]) {
    for &(name, work) in all {
        let states = check_again(name, work, &Disk::default(), RepeatedCrashes { crashes: 1, one_in: 101 });
        let count = syncs(work, &Disk::default());
        let missed: Vec<usize> =
            (1..=count).filter(|&number| is_missed(work, &Disk::default(), number)).collect();
        println!("{name}: {states} distinct states, {count} syncs, missed: {missed:?}");
        assert!(states > 20, "{name}: {states}");
        // The last syncs belong to the new index: to its files, its directory and the parent directory.
        let kept: Vec<usize> = (count - 4..=count).filter(|number| !missed.contains(number)).collect();
        assert_eq!(kept, [0_usize; 0], "{name}: of {count}");
    }
}

/// Creates an index with an IDF table.
fn with_idf(vfs: &ModelVfs, history: &mut History) {
    history.promise(vfs, &[None]);
    let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
    let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
    plain.shingler().distinct("one two three", &mut buffers, &mut shingles);
    builder.add(&shingles).unwrap();
    let table = builder.finish().unwrap();
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).build().unwrap();
    Index::create_from(Arc::new(vfs.clone()), place(), params, Some(&table)).unwrap();
    history.committed(vfs, &Documents::new());
}

#[test]
fn creation_with_idf_table_is_atomic_and_needs_every_sync() {
    let states = check("with an IDF table", &with_idf, &Disk::default());
    let count = syncs(&with_idf, &Disk::default());
    println!("with an IDF table: {states} distinct states, {count} syncs");
    assert!(states > 30 && count == 5, "{states} {count}");
    for number in 1..=count {
        assert!(is_missed(&with_idf, &Disk::default(), number), "sync {number} of {count}");
    }
}

#[test]
fn commits_survive_a_kill_followed_by_a_crash() {
    let (start, _) = prepared();
    for compacting in [false, true] {
        let (mut states, mut missed, mut points) = (0, 0, 0);
        for after in 0.. {
            let work = killed(after, compacting);
            states += check(&format!("killed after {after}"), &work, &start);
            points += 1;
            let vfs = ModelVfs::of(start.clone());
            vfs.kill_at(Some(after));
            let done = if compacting {
                Index::open_with(Arc::new(vfs.clone()), place()).and_then(|index| index.compact()).map(drop)
            } else {
                change(&vfs, &mut Documents::new(), 100, true)
            };
            // The first sync after the process is killed comes before garbage is removed.
            missed += usize::from(is_missed(&work, &start, vfs.syncs() + 1));
            if done.is_ok() && vfs.events() < after {
                break;
            }
        }
        println!("{points} kills, {states} states; the first sync after it was missed in {missed} of them");
        assert!(points > 15 && missed > 0, "{points} {missed}");
    }
}
