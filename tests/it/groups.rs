//! Tests that groups depend only on the live documents. After any sequence of puts, replacements, deletes, expiries,
//! flushes, merges, compactions, reopenings, kills and shard merges, each document must have the leader that brute force
//! computes from the definition over all live documents.
//!
//! The indexes are on an in-memory disk, where a sync costs nothing and a kill leaves one of the states that a crash may
//! leave. Histories run on all cores. By default, they have a few thousand operations and at most 70 live documents.
//! `TWINDEX_GROUP_OPERATIONS=1000000` sets the number of operations and allows 2,000 live documents;
//! `TWINDEX_GROUP_CHECKPOINTS` then sets the number of checkpoints (default 1,000). `.ci/run groups` runs this
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use twindex::params::Near;
use twindex::sketch::{Nearness, Resemblance, matches, pack};
use twindex::sys::vfs::Vfs;
use twindex::{
    Decision, Document, Error, Fingerprint, GROUP_QUESTIONS, GroupRule, Index, Key, OnConflict, Params,
    Resources, Sketch, Snapshot, Writer, WriterOptions,
};

use crate::support::Random;
use crate::support::model::{Disk, ModelVfs, Variant};

/// Number of different contents that a document can have.
const CONTENTS: usize = 160;
/// Number of kinds of indexes: near by distance, by sets, by estimated resemblance, and by estimate or distance.
const KINDS: usize = 4;

/// A document of the model: the index of its content, its priority, its stamp, and its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LiveDocument {
    content: usize,
    priority: Option<u64>,
    stamp: u64,
    number: u64,
}

/// Live documents by key number.
type Documents = BTreeMap<u32, LiveDocument>;
/// The leader of each document; both are key numbers.
type Leaders = BTreeMap<u32, u32>;

/// Returns the key with this number. The order of keys is the order of numbers.
fn name(key: u32) -> String {
    format!("key {key:05}")
}

fn key_number(name: &str) -> u32 {
    name["key ".len()..].parse().unwrap()
}

/// The parameters of an index, the possible contents of documents, and which contents are near each other.
struct Corpus {
    params: Params,
    sketches: Vec<Sketch>,
    fingerprints: Vec<Fingerprint>,
    near: Vec<Vec<bool>>,
}

fn text(random: &mut Random) -> String {
    if random.below(20) == 0 {
        return ["?", "!", ""][random.below(3)].into();
    }
    let family = random.below(5);
    let start = random.below(12);
    // Texts of a family are windows over one sequence of words: neighbouring windows are near each other, distant ones
    // are not.
    let mut words: Vec<String> = (start..start + 20).map(|word| format!("w{word}of{family}")).collect();
    for _ in 0..random.below(3) {
        let place = random.below(words.len());
        words[place] = format!("x{}", random.below(9));
    }
    words.join(" ")
}

/// Returns a fingerprint of a random family; members of a family differ in a few bits.
fn fingerprint(random: &mut Random) -> Fingerprint {
    let family = (random.below(4) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bits = 1 + random.below(5);
    Fingerprint((0..bits).fold(family, |value, _| value ^ 1 << (random.below(12) * 5)))
}

impl Corpus {
    /// Creates a corpus. Documents expire at `age` if this kind of index has expiry.
    fn new(kind: usize, age: u64, random: &mut Random) -> Self {
        let builder = || Params::builder().words(1).priorities().values();
        let strict = |threshold| Near::resembling(threshold).unwrap();
        let params = match kind {
            0 => builder().simhash(3).expire_after(age),
            1 => builder().minhash(4, 3).near(strict(0.7)).sets().marks(),
            2 => builder().minhash(8, 2).near(strict(0.7)),
            _ => builder().simhash(3).minhash(6, 2).near(strict(0.8).or_within(3)).expire_after(age),
        };
        let params = params.build().unwrap();
        let sketcher = twindex::Sketcher::new(&params).unwrap();
        let sketches: Vec<Sketch> = (0..CONTENTS).map(|_| sketcher.sketch(&text(random)).unwrap()).collect();
        let fingerprints: Vec<Fingerprint> = (0..CONTENTS).map(|_| fingerprint(random)).collect();
        let of_pair = |a: usize, b: usize| is_near(kind, &params, &sketches, &fingerprints, a, b);
        let near = (0..CONTENTS).map(|a| (0..CONTENTS).map(|b| of_pair(a, b)).collect()).collect();
        Self { params, sketches, fingerprints, near }
    }

    fn document<'a>(&'a self, live: &LiveDocument, value: &'a [u8]) -> Document<'a> {
        let content = match self.params.minhash {
            None => Document::from(self.fingerprints[live.content]),
            Some(_) => Document::from(&self.sketches[live.content]),
        };
        let stamp = self.params.expire_after.map(|_| live.stamp);
        content.with_priority(live.priority).with_stamp(stamp).with_value(value)
    }

    fn put(&self, writer: &mut Writer, key: u32, live: &LiveDocument) {
        writer.put(name(key).as_str(), self.document(live, &live.number.to_le_bytes())).unwrap();
    }

    /// Removes the expired documents, and returns their number.
    fn expire(&self, documents: &mut Documents, now: u64) -> u64 {
        let before = documents.len();
        if let Some(age) = self.params.expire_after {
            documents.retain(|_, live| now - live.stamp < age);
        }
        (before - documents.len()) as u64
    }

    /// Computes the leader of each document by the definition: the first earlier leader near the document, or the
    /// document itself.
    fn leaders(&self, documents: &Documents) -> Leaders {
        let mut order: Vec<(u64, u64, u32)> = documents
            .iter()
            .map(|(&key, live)| {
                (live.priority.unwrap_or(u64::MAX), Key::from(name(key).as_str()).priority_hash(), key)
            })
            .collect();
        order.sort_unstable();
        let (mut leaders, mut found): (Vec<(u32, usize)>, Leaders) = (Vec::new(), Leaders::new());
        for (_, _, key) in order {
            let content = documents[&key].content;
            let near = &self.near[content];
            let leader = leaders.iter().find(|&&(_, other)| near[other]).map_or(key, |&(leader, _)| leader);
            if leader == key {
                leaders.push((key, content));
            }
            found.insert(key, leader);
        }
        found
    }
}

fn is_near(
    kind: usize,
    params: &Params,
    sketches: &[Sketch],
    fingerprints: &[Fingerprint],
    a: usize,
    b: usize,
) -> bool {
    if kind == 0 {
        return fingerprints[a].distance(fingerprints[b]) <= 3;
    }
    let (a, b) = (&sketches[a], &sketches[b]);
    let threshold = params.near().threshold.unwrap().value();
    if kind == 1 {
        return Nearness::Resemblance(threshold).shared(a.set(), b.set()).is_some();
    }
    if let (3, Some(a), Some(b)) = (kind, a.fingerprint(), b.fingerprint())
        && a.distance(b) <= 3
    {
        return true;
    }
    let minhash = params.minhash.unwrap();
    let packed = |sketch: &Sketch| {
        let mut out = Vec::new();
        pack(sketch.signature(), minhash.signature_bits, &mut out);
        out
    };
    let same = matches(&packed(a), &packed(b), minhash.minima(), minhash.signature_bits);
    !a.is_empty()
        && !b.is_empty()
        && a.features().iter().zip(b.features()).any(|(a, b)| a >> 32 == b >> 32)
        && Resemblance::from_matches(same, minhash.minima(), minhash.signature_bits).at_least(threshold)
}

/// Returns the listing of groups, computed by brute force.
fn listing(leaders: &Leaders) -> String {
    let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
    for &leader in leaders.values() {
        *sizes.entry(leader).or_default() += 1;
    }
    let mut text = String::new();
    for (&key, &leader) in leaders {
        writeln!(text, "{}\t{}\t{}", name(key), name(leader), sizes[&leader]).unwrap();
    }
    text
}

fn listed(snapshot: &Snapshot, threads: usize, scratch: &Path) -> String {
    let resources = Resources { dir: scratch, memory: 1 << 20, threads, cancel: None };
    let groups = snapshot.groups(&resources).unwrap();
    let mut text = String::new();
    groups
        .for_each(1, |key, leader, size| {
            writeln!(text, "{}\t{}\t{size}", key.to_buf(), leader.to_buf()).unwrap();
            Ok(())
        })
        .unwrap();
    assert_eq!(groups.count(), groups.sizes().values().sum::<u64>());
    text
}

fn leader(snapshot: &Snapshot, key: u32, questions: u64) -> Decision<twindex::Leader> {
    snapshot.leader(name(key).as_str(), questions).unwrap().unwrap()
}

/// The number of operations and checks of a history, by name.
type Counts = BTreeMap<&'static str, u64>;

/// A history: an index on its own disk, and a model of its documents.
struct History<'w> {
    label: String,
    world: &'w Corpus,
    random: Random,
    /// Number of different keys that the history uses.
    keys: usize,
    scratch: &'w Path,
    /// The content of the disk when the journal of `vfs` begins.
    start: Disk,
    vfs: ModelVfs,
    path: PathBuf,
    index: Index,
    writer: Option<Writer>,
    committed: Documents,
    now: u64,
    /// The live documents, including the uncommitted batch.
    pending: Documents,
    newest: u64,
    /// Number of documents put so far.
    number: u64,
    /// The snapshot and the leaders at the last checkpoint.
    before: Option<(Snapshot, Leaders)>,
    counts: Counts,
}

impl Drop for History<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("history {}, after {:?}", self.label, self.counts);
        }
    }
}

impl<'w> History<'w> {
    fn new(label: String, world: &'w Corpus, random: Random, keys: usize, scratch: &'w Path) -> Self {
        let (start, path) = (Disk::default(), PathBuf::from("/index"));
        let vfs = ModelVfs::of(start.clone());
        let index = Index::create_with(Arc::new(vfs.clone()), &path, world.params.clone()).unwrap();
        let mut history = Self {
            label,
            world,
            random,
            keys,
            scratch,
            start,
            vfs,
            path,
            index,
            writer: None,
            committed: Documents::new(),
            now: 0,
            pending: Documents::new(),
            newest: 0,
            number: 0,
            before: None,
            counts: Counts::new(),
        };
        history.begin_writer();
        history
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Opens a writer without background threads, so that a history is deterministic.
    fn begin_writer(&mut self) {
        let options = WriterOptions::default().background_merges(false);
        self.writer = Some(self.index.writer_with(options).unwrap());
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().unwrap()
    }

    fn open(&self) -> Index {
        Index::open_with(Arc::new(self.vfs.clone()), &self.path).unwrap()
    }

    fn draw_key(&mut self) -> u32 {
        self.random.below(self.keys) as u32
    }

    fn draw_document(&mut self) -> LiveDocument {
        let random = &mut self.random;
        let priority = [None, Some(random.next() % 4), Some(random.next())][random.below(3)];
        let stamp = self.newest + random.below(3) as u64;
        self.number += 1;
        LiveDocument { content: random.below(CONTENTS), priority, stamp, number: self.number }
    }

    fn step(&mut self) {
        match self.random.below(1000) {
            0..600 => {
                let (key, live) = (self.draw_key(), self.draw_document());
                let world = self.world;
                world.put(self.writer(), key, &live);
                self.newest = live.stamp;
                let replaced = self.pending.insert(key, live).is_some();
                self.count(if replaced { "replace" } else { "put" });
            }
            600..800 => {
                let key = self.draw_key();
                self.writer().delete(name(key).as_str()).unwrap();
                let was_live = self.pending.remove(&key).is_some();
                self.count(if was_live { "delete" } else { "delete of no document" });
            }
            800..930 => self.commit(),
            930..950 => {
                self.commit();
                self.flush();
            }
            950..960 => {
                self.commit();
                self.merge();
            }
            960..966 => {
                self.commit();
                self.compact();
            }
            966..980 => self.reopen(),
            980..986 => self.kill(),
            986..991 => self.admit(),
            _ => self.check_batch(),
        }
    }

    /// Adds a document with `admit`, and checks the leader and the group size that `admit` returns.
    fn admit(&mut self) {
        let (key, live) = (self.draw_key(), self.draw_document());
        let (world, value) = (self.world, live.number.to_le_bytes());
        let document = world.document(&live, &value);
        let (_, found) = self.writer().admit_grouped(name(key).as_str(), document, u64::MAX).unwrap();
        let found = found.unwrap().decided().unwrap();
        self.newest = live.stamp;
        // From here on, the batch no longer contains the documents that expired by this stamp.
        self.expire_pending();
        self.pending.insert(key, live);
        let leaders = world.leaders(&self.pending);
        let members = leaders.values().filter(|&&leader| leader == leaders[&key]).count();
        assert_eq!((found.leader.to_string(), found.size), (name(leaders[&key]), members as u64), "{key}");
        self.count("admit");
    }

    fn expire_pending(&mut self) {
        let expired = self.world.expire(&mut self.pending, self.newest);
        *self.counts.entry("expire").or_default() += expired;
    }

    fn commit(&mut self) {
        self.writer().commit().unwrap();
        self.now = self.newest;
        self.expire_pending();
        self.committed = self.pending.clone();
        self.count("commit");
    }

    fn flush(&mut self) {
        self.writer().flush().unwrap();
        self.count("flush");
    }

    fn merge(&mut self) {
        if self.writer().merge_step().unwrap() {
            self.count("merge of segments");
        }
    }

    fn compact(&mut self) {
        self.writer = None;
        self.index.compact().unwrap();
        self.begin_writer();
        self.count("compact");
    }

    /// Drops the writer and its batch, and opens the index again.
    fn reopen(&mut self) {
        self.writer = None;
        self.index = self.open();
        self.begin_writer();
        (self.pending, self.newest) = (self.committed.clone(), self.now);
        self.count("reopen");
    }

    /// Simulates a crash during or after an operation: the disk is replaced by one of the states that the crash may
    /// leave.
    fn kill(&mut self) {
        let before = (self.committed.clone(), self.now);
        let first = self.vfs.events();
        let is_commit = match self.random.below(5) {
            0 | 1 => {
                self.commit();
                true
            }
            other => {
                // Drops the batch, and performs an operation that changes no document.
                self.writer = None;
                self.begin_writer();
                match other {
                    2 => self.flush(),
                    3 => self.merge(),
                    _ => self.compact(),
                }
                false
            }
        };
        let events = self.vfs.events();
        let point = first + self.random.below(events - first + 1);
        let variant = [Variant::Ordered, Variant::Weak][self.random.below(2)];
        self.start = self.vfs.crash(&self.start, point, variant, &mut self.random);
        // The killed process can no longer change this disk.
        (self.writer, self.vfs) = (None, ModelVfs::of(self.start.clone()));
        self.index = self.open();
        let survivors = self.survivors();
        let is_timed = self.world.params.expire_after.is_some();
        let is_before = is_timed && self.index.snapshot().now().unwrap_or(0) != self.now;
        if is_before || survivors != self.stored(&self.committed) {
            assert!(
                is_commit && point < events,
                "{variant:?}: a commit is lost, at event {point} of {events}"
            );
            (self.committed, self.now) = before;
            self.count("commit lost in a kill");
        }
        let expected = self.stored(&self.committed);
        assert!(survivors == expected, "{variant:?}: other documents, at event {point} of {events}");
        (self.pending, self.newest) = (self.committed.clone(), self.now);
        self.begin_writer();
        self.count("kill");
    }

    /// Returns the stored data of the documents except their contents.
    fn stored(&self, documents: &Documents) -> BTreeMap<u32, Stored> {
        let is_timed = self.world.params.expire_after.is_some();
        let of = |live: &LiveDocument| Stored {
            number: live.number,
            priority: live.priority,
            stamp: is_timed.then_some(live.stamp),
        };
        documents.iter().map(|(&key, live)| (key, of(live))).collect()
    }

    /// Returns the same data as [`Self::stored`], read from the index.
    fn survivors(&self) -> BTreeMap<u32, Stored> {
        let snapshot = self.index.snapshot();
        let mut found = BTreeMap::new();
        snapshot
            .for_each_key(|key| {
                let record = snapshot.get(key)?.unwrap();
                let number = u64::from_le_bytes(record.value.unwrap().try_into().unwrap());
                let stored = Stored { number, priority: record.priority, stamp: record.stamp };
                found.insert(key_number(&key.to_buf().to_string()), stored);
                Ok(())
            })
            .unwrap();
        found
    }

    /// Checks that the writer sees its uncommitted batch, without the documents that a stamp of the batch expires.
    fn check_batch(&mut self) {
        self.expire_pending();
        let leaders = self.world.leaders(&self.pending);
        if leaders.is_empty() {
            return;
        }
        for _ in 0..3 {
            let (&key, &expected) = leaders.iter().nth(self.random.below(leaders.len())).unwrap();
            let key = name(key);
            let writer = self.writer();
            let found = writer.leader(key.as_str(), u64::MAX).unwrap().unwrap().decided().unwrap();
            assert_eq!(found.key.to_string(), name(expected), "{key}, with the batch");
            let size = writer.group_size(key.as_str(), u64::MAX).unwrap().unwrap().decided().unwrap();
            let members = leaders.values().filter(|&&leader| leader == expected).count();
            assert_eq!(size as usize, members, "{key}, with the batch");
        }
        self.count("check of a batch");
    }

    /// Commits, and checks leaders, groups and changed leaders.
    fn check(&mut self) {
        self.commit();
        let snapshot = self.index.snapshot();
        let leaders = self.world.leaders(&self.committed);
        let threads = 1 + self.random.below(3);
        assert!(listed(&snapshot, threads, self.scratch) == listing(&leaders), "the listing");
        for (&key, &expected) in &leaders {
            let found = leader(&snapshot, key, u64::MAX).decided().unwrap();
            assert_eq!(found.key.to_string(), name(expected), "{key}");
        }
        for _ in 0..leaders.len().min(3) {
            let (&key, &expected) = leaders.iter().nth(self.random.below(leaders.len())).unwrap();
            self.check_group(&snapshot, &leaders, key, expected);
        }
        if let Some((earlier, before)) = &self.before {
            let keys: BTreeSet<u32> = before.keys().chain(leaders.keys()).copied().collect();
            let of = |leaders: &Leaders, key| leaders.get(&key).map(|&leader| name(leader));
            let expected: Vec<_> = keys
                .into_iter()
                .filter(|key| before.get(key) != leaders.get(key))
                .map(|key| (name(key), of(before, key), of(&leaders, key)))
                .collect();
            let shown = |key: &Option<twindex::KeyBuf>| key.as_ref().map(ToString::to_string);
            let changes = snapshot.changed_leaders(earlier).unwrap();
            let found: Vec<_> = changes
                .iter()
                .map(|change| (change.key.to_string(), shown(&change.before), shown(&change.after)))
                .collect();
            assert_eq!(found, expected, "whose leader changed");
            *self.counts.entry("changed leader").or_default() += found.len() as u64;
            self.count("check of changes");
        }
        self.before = Some((snapshot, leaders));
        self.count("checkpoint");
    }

    /// Checks the group of a document. A query limit must have the same effect with all results cached and with none.
    fn check_group(&self, snapshot: &Snapshot, leaders: &Leaders, key: u32, expected: u32) {
        let group = snapshot.group(name(key).as_str(), u64::MAX).unwrap().unwrap().decided().unwrap();
        let members =
            leaders.iter().filter(|&(_, &leader)| leader == expected).map(|(&member, _)| name(member));
        assert!(group.members.iter().map(ToString::to_string).eq(members), "{key}");
        assert_eq!(group.leader.to_string(), name(expected));
        let questions = leader(snapshot, key, u64::MAX).decided().unwrap().questions;
        let fresh = self.open().snapshot();
        assert_eq!(leader(&fresh, key, questions - 1), Decision::Undecided, "{key}");
        assert_eq!(leader(snapshot, key, questions - 1), Decision::Undecided, "{key}");
        let fresh = self.open().snapshot();
        assert_eq!(leader(&fresh, key, questions), leader(snapshot, key, questions));
    }

    /// Merges the index with a shard of other documents, and continues with the merged index. Some documents of the shard
    /// have keys of the index.
    fn merge_shards(&mut self) {
        self.commit();
        let policy = [OnConflict::Refuse, OnConflict::First, OnConflict::Last][self.random.below(3)];
        self.number += 1;
        let [path, merged] = ["shard", "index"].map(|what| PathBuf::from(format!("/{what}-{}", self.number)));
        let world = self.world;
        let shard = Index::create_with(Arc::new(self.vfs.clone()), &path, world.params.clone()).unwrap();
        let mut writer = shard.writer().unwrap();
        let mut others = Documents::new();
        for _ in 0..=self.keys / 20 {
            let (key, live) = (self.draw_key(), self.draw_document());
            if policy != OnConflict::Refuse || !self.committed.contains_key(&key) {
                world.put(&mut writer, key, &live);
                self.newest = live.stamp;
                others.insert(key, live);
            }
        }
        writer.commit().unwrap();
        drop(writer);
        self.writer = None;
        // The merged index has the latest time of its shards.
        self.now = self.newest;
        let expired = world.expire(&mut self.committed, self.now);
        *self.counts.entry("expire").or_default() += expired;
        for (key, live) in others {
            if policy != OnConflict::First || !self.committed.contains_key(&key) {
                self.committed.insert(key, live);
            }
        }
        let found = Index::merge(&merged, &[self.open(), shard], policy, 1 << 20).unwrap();
        assert_eq!(found.documents, self.committed.len() as u64, "{policy:?}");
        for old in [&path, &self.path] {
            for name in self.vfs.list(old).unwrap() {
                self.vfs.unlink(&old.join(name)).unwrap();
            }
            self.vfs.remove_dir(old).unwrap();
        }
        self.path = merged;
        self.index = self.open();
        self.begin_writer();
        self.pending = self.committed.clone();
        self.before = None;
        self.count("merge of shards");
    }

    /// Puts the same documents in one batch into another index, and into three shards that are merged. Both must have the
    /// same groups.
    fn check_other_histories(&mut self) {
        let expected = listed(&self.index.snapshot(), 2, self.scratch);
        let vfs = ModelVfs::default();
        let create = |name: &str| {
            let params = self.world.params.clone();
            Index::create_with(Arc::new(vfs.clone()), Path::new(name), params).unwrap()
        };
        let mut shards = Vec::new();
        for shard in 0..3 {
            let index = create(&format!("/{shard}"));
            let mut writer = index.writer().unwrap();
            for (&key, live) in self.committed.iter().rev() {
                if Key::from(name(key).as_str()).priority_hash() % 3 == shard {
                    self.world.put(&mut writer, key, live);
                }
            }
            writer.commit().unwrap();
            drop(writer);
            shards.push(index);
        }
        let merged = Path::new("/merged");
        Index::merge(merged, &shards, OnConflict::Refuse, 1 << 20).unwrap();
        let merged = Index::open_with(Arc::new(vfs.clone()), merged).unwrap();
        assert!(listed(&merged.snapshot(), 1, self.scratch) == expected, "merged shards");
        let once = create("/once");
        let mut writer = once.writer().unwrap();
        for (&key, live) in &self.committed {
            self.world.put(&mut writer, key, live);
        }
        writer.commit().unwrap();
        assert!(listed(&once.snapshot(), 1, self.scratch) == expected, "one batch");
        self.count("check of other histories");
    }
}

/// The stored data of a document except its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    number: u64,
    priority: Option<u64>,
    stamp: Option<u64>,
}

/// The number of histories and operations that the test runs.
#[derive(Clone, Copy)]
struct Plan {
    operations: usize,
    keys: usize,
    checkpoints: usize,
    /// Number of histories for each kind of index.
    histories: usize,
}

impl Plan {
    fn of_environment() -> Self {
        let number = |name: &str| {
            let given = std::env::var(name).ok();
            given.map(|given| given.parse::<usize>().unwrap_or_else(|_| panic!("{name} is a number")))
        };
        let Some(operations) = number("TWINDEX_GROUP_OPERATIONS") else {
            return Self { operations: 4000, keys: 70, checkpoints: 80, histories: 1 };
        };
        let checkpoints = number("TWINDEX_GROUP_CHECKPOINTS").unwrap_or(1000);
        Self { operations, keys: 2000, checkpoints, histories: (operations / 100_000).clamp(1, 10) }
    }

    /// Runs a history on an index of this kind; returns the numbers of its operations and checks.
    fn history(self, kind: usize, seed: usize, scratch: &Path) -> Counts {
        let operations = self.operations / KINDS / self.histories;
        let spacing = (self.operations / self.checkpoints).clamp(1, operations);
        let mut random = Random((seed * KINDS + kind) as u64 + 1);
        let world = Corpus::new(kind, self.keys as u64, &mut random);
        let label = format!("{seed} of kind {kind}");
        let mut history = History::new(label, &world, random, self.keys, scratch);
        for operation in 1..=operations {
            history.step();
            if operation % spacing == 0 {
                history.check();
                match operation / spacing % 4 {
                    0 => history.merge_shards(),
                    1 => history.check_other_histories(),
                    _ => {}
                }
            }
        }
        history.check();
        history.check_other_histories();
        let (_, leaders) = history.before.as_ref().unwrap();
        let led = leaders.iter().filter(|(key, leader)| key != leader).count();
        assert!(led > 10 && led < leaders.len() - 5, "{led} of {} are led", leaders.len());
        std::mem::take(&mut history.counts)
    }
}

#[test]
fn leaders_after_any_history_equal_brute_force_over_live_documents() {
    let plan = Plan::of_environment();
    let scratch = tempfile::tempdir().unwrap();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Counts::new()));
    let run = || {
        loop {
            let history = next.fetch_add(1, Ordering::Relaxed);
            if history >= KINDS * plan.histories {
                return;
            }
            let counts = plan.history(history % KINDS, history / KINDS, scratch.path());
            let mut all = all.lock().unwrap();
            for (what, count) in counts {
                *all.entry(what).or_default() += count;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(run);
        }
    });
    let all = all.into_inner().unwrap();
    println!("{} histories, {} operations", KINDS * plan.histories, plan.operations);
    for (what, count) in &all {
        println!("{count:10} {what}");
    }
    for what in [
        "put",
        "replace",
        "delete",
        "admit",
        "expire",
        "commit",
        "flush",
        "merge of segments",
        "compact",
        "reopen",
        "kill",
        "commit lost in a kill",
        "merge of shards",
        "check of a batch",
        "check of changes",
        "changed leader",
        "check of other histories",
        "checkpoint",
    ] {
        assert!(all.contains_key(what) && all[what] > 0, "{what}: none");
    }
}

fn of_fingerprints(dir: &Path, documents: impl IntoIterator<Item = (u64, u64, u64)>) -> Index {
    let params = Params::builder().u64_keys().simhash(3).priorities().build().unwrap();
    let index = Index::create(dir, params).unwrap();
    let mut writer = index.writer().unwrap();
    for (key, fingerprint, priority) in documents {
        writer.put(key, Document::from(Fingerprint(fingerprint)).with_priority(priority)).unwrap();
    }
    writer.commit().unwrap();
    drop(writer);
    index
}

/// Returns element `i` of a sequence of fingerprints in which each is near the next one and few others: a Gray code of
/// two-bit blocks.
fn chain(i: u64) -> u64 {
    let gray = i ^ (i >> 1);
    (0..32).fold(0, |value, bit| if gray >> bit & 1 == 1 { value | 3 << (2 * bit) } else { value })
}

#[test]
fn leader_of_a_long_chain_is_undecided_with_too_few_queries() {
    let dir = tempfile::tempdir().unwrap();
    let length = 3000;
    // The leader of each document depends on the leader of the previous one.
    let index = of_fingerprints(&dir.path().join("x"), (0..length).map(|i| (i, chain(i), i)));
    let snapshot = index.snapshot();
    let last = length - 1;
    let leader = snapshot.leader(last, u64::MAX).unwrap().unwrap().decided().unwrap();
    let fresh = Index::open(dir.path().join("x")).unwrap().snapshot();
    assert!(leader.questions > 500, "{}", leader.questions);
    for max in [0, 1, 500, leader.questions - 1] {
        assert_eq!(snapshot.leader(last, max).unwrap(), Some(Decision::Undecided), "{max}");
        assert_eq!(fresh.leader(last, max).unwrap(), Some(Decision::Undecided), "{max}, nothing known");
    }
    let decided = Some(Decision::Decided(leader.clone()));
    assert_eq!(fresh.leader(last, leader.questions).unwrap(), decided);
    let scratch = tempfile::tempdir().unwrap();
    let listing = snapshot.groups(&Resources::in_dir(scratch.path())).unwrap();
    assert_eq!(listing.leader(last).unwrap().map(|(key, _)| key), Some(leader.key));
}

#[test]
fn leaders_beyond_the_query_limit_are_reported_as_undecided() {
    let dir = tempfile::tempdir().unwrap();
    // A chain of families of ten documents that are near each other. The leaders of a family depend on all documents of
    // the previous family.
    let (links, family) = (60, 10);
    let own = |place: u64| if place == 0 { 0 } else { 1 << (40 + 2 * place) };
    let member = |i: u64| chain(i / family) ^ own(i % family);
    let path = dir.path().join("x");
    let index = of_fingerprints(&path, (0..links * family).map(|i| (i, member(i), i)));
    let all = index.snapshot();
    let scratch = tempfile::tempdir().unwrap();
    let listing = all.groups(&Resources::in_dir(scratch.path())).unwrap();
    let bound = 100;
    let (mut undecided, mut max) = (0, 0);
    for key in 0..links * family {
        let unbounded = all.leader(key, u64::MAX).unwrap().unwrap().decided().unwrap();
        assert_eq!(listing.leader(key).unwrap().unwrap().0, unbounded.key, "{key}");
        max = max.max(unbounded.questions);
        // `all` has cached all results; a new snapshot has cached none.
        let fresh = (key % 10 == 3).then(|| Index::open(&path).unwrap().snapshot());
        for snapshot in [Some(&all), fresh.as_ref()].into_iter().flatten() {
            let found = snapshot.leader(key, bound).unwrap().unwrap();
            assert_eq!(found == Decision::Undecided, unbounded.questions > bound, "{key}: {found:?}");
            let size = snapshot.group_size(key, bound).unwrap().unwrap();
            assert!(found != Decision::Undecided || size == Decision::Undecided, "{key}: {size:?}");
        }
        undecided += u64::from(unbounded.questions > bound);
    }
    assert!(undecided > 100 && undecided < links * family - 100 && max > 500, "{undecided}, {max}");
}

#[test]
fn documents_in_long_buckets_have_the_defined_leaders() {
    let scratch = tempfile::tempdir().unwrap();
    for kind in 0..KINDS {
        let mut random = Random(kind as u64 + 100);
        let world = Corpus::new(kind, 1000, &mut random);
        let mut history = History::new(format!("kind {kind}"), &world, random, 900, scratch.path());
        for key in 0..900 {
            let live = LiveDocument { stamp: 0, ..history.draw_document() };
            world.put(history.writer(), key, &live);
            history.pending.insert(key, live);
        }
        history.commit();
        history.flush();
        for _ in 0..200 {
            let key = history.draw_key();
            history.writer().delete(name(key).as_str()).unwrap();
            history.pending.remove(&key);
        }
        history.commit();
        let snapshot = history.index.snapshot();
        for (key, expected) in world.leaders(&history.committed) {
            let found = leader(&snapshot, key, u64::MAX).decided().unwrap();
            assert_eq!(found.key.to_string(), name(expected), "{kind}: {key}");
        }
    }
}

#[test]
fn equal_documents_cost_one_query_in_a_leader_search() {
    let dir = tempfile::tempdir().unwrap();
    // A leader, then 500 equal documents near it, and last a document that is near these but not near the leader.
    let copies = (1..=500).map(|i| (i, 0b111, i));
    let index = of_fingerprints(&dir.path().join("x"), copies.chain([(0, 0, 0), (501, 0b11_1111, 501)]));
    let snapshot = index.snapshot();
    let leader = snapshot.leader(501_u64, GROUP_QUESTIONS).unwrap().unwrap().decided().unwrap();
    assert_eq!((leader.key.as_u64(), leader.questions), (Some(501), 3));
    assert_eq!(snapshot.group_size(7_u64, GROUP_QUESTIONS).unwrap(), Some(Decision::Decided(501)));
    // The leader is the same after a flush to a segment, and after the first documents are deleted.
    let mut writer = index.writer().unwrap();
    writer.flush().unwrap();
    let found = index.snapshot().leader(501_u64, GROUP_QUESTIONS).unwrap().unwrap().decided().unwrap();
    assert_eq!((found.key.as_u64(), found.questions), (Some(501), 3));
    for gone in 0..10 {
        writer.delete(gone).unwrap();
    }
    writer.commit().unwrap();
    for led in [12_u64, 501] {
        let found = index.snapshot().leader(led, GROUP_QUESTIONS).unwrap().unwrap().decided().unwrap();
        assert_eq!((found.key.as_u64(), found.questions), (Some(10), 2), "{led}");
    }
}

#[test]
fn leader_search_checks_neighbours_beyond_the_cache_limit() {
    let dir = tempfile::tempdir().unwrap();
    // The leaders have four set bits and are not near 0. The words are all fingerprints near 0 and near a leader.
    let leaders: Vec<u64> = (0..16).map(|i| 0xF << (4 * i)).collect();
    let mut words = BTreeSet::new();
    for leader in &leaders {
        for bit in 0..64 {
            for part in (1_u64..16).map(|part| part << leader.trailing_zeros()) {
                for word in [part, part | 1 << bit] {
                    if word.count_ones() <= 3 && (word ^ leader).count_ones() <= 3 {
                        words.insert(word);
                    }
                }
            }
        }
    }
    let words: Vec<u64> = words.into_iter().collect();
    assert!(words.len() > 3000, "{}", words.len());
    let of = |words: &[u64], from: u64, priority: u64| -> Vec<(u64, u64, u64)> {
        (from..).zip(words).map(|(key, &word)| (key, word, priority)).collect()
    };
    let last = 1_000_000;
    let documents = [of(&leaders, 0, 0), of(&words, 100, 1), vec![(last, 0, 2)]].concat();
    let snapshot = of_fingerprints(&dir.path().join("x"), documents).snapshot();
    let found = snapshot.leader(last, u64::MAX).unwrap().unwrap().decided().unwrap();
    // One query for the document, and two for each word: one for the word and one for its leader.
    assert_eq!((found.key.as_u64(), found.questions), (Some(last), 1 + 2 * words.len() as u64));
}

#[test]
fn leader_is_refused_if_stored_documents_cannot_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, params: twindex::params::ParamsBuilder| {
        let index = Index::create(dir.path().join(name), params.build().unwrap()).unwrap();
        match index.snapshot().leader("a", 1) {
            Err(Error::Invalid(why)) => why,
            other => panic!("{name}: {other:?}"),
        }
    };
    let builder = || Params::builder().words(1);
    let why = refused("no signatures", builder().minhash(4, 2).signature_bits(0));
    assert!(why.contains("neither sets nor signatures"), "{why}");
    let free = twindex::DesignChoice::Named("prefix-24".parse().unwrap());
    let why = refused("free tables", builder().simhash(3).tables(free, twindex::CodecChoice::default()));
    assert!(why.contains("can miss some"), "{why}");
    let params = builder().minhash(4, 2).build().unwrap();
    let index = Index::create(dir.path().join("estimated"), params).unwrap();
    assert_eq!(index.snapshot().group_rule().unwrap(), GroupRule::Estimated);
    assert_eq!(index.snapshot().leader("a", 1).unwrap(), None, "no such document");
    assert!(index.snapshot().leader(7_u64, 1).is_err(), "a key of the other kind");
}
