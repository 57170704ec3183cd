//! Groups depend only on the live documents: after any sequence of puts, replacements, expiries and deletes, each
//! document's leader is that of a batch over all live documents, computed by brute force from the definition.
//!
//! `TWINDEX_GROUP_OPERATIONS=1000000` sets the number of operations, with at most 2,000 live documents at once, and
//! 1,000 checkpoints, or `TWINDEX_GROUP_CHECKPOINTS`; the default is a few hundred. `TWINDEX_GROUP_ALL=1` queries the
//! leader of every live document at each checkpoint, instead of some two hundred. `scripts/groups-model` runs all of
//! this.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use twindex::params::Near;
use twindex::sketch::{Nearness, Resemblance, matches, pack};
use twindex::{
    Decision, Document, Error, Fingerprint, GROUP_QUESTIONS, GroupRule, Index, Key, OnConflict, Params,
    Resources, Sketch, Snapshot, Writer,
};

use crate::support::Random;

/// Contents that documents have.
const CONTENTS: usize = 160;
/// The age at which a document expires, if documents do.
const AGE: u64 = 300;

/// A document of the model: its content, its priority and its stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Live {
    content: usize,
    priority: Option<u64>,
    stamp: u64,
}

type Documents = BTreeMap<String, Live>;

/// Parameters, the contents of documents, and the near relation between them.
struct World {
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
    // Windows over one row of words: a chain of near texts, whose ends are not near.
    let mut words: Vec<String> = (start..start + 20).map(|word| format!("w{word}of{family}")).collect();
    for _ in 0..random.below(3) {
        let place = random.below(words.len());
        words[place] = format!("x{}", random.below(9));
    }
    words.join(" ")
}

/// A fingerprint of a family: a few of its bits differ.
fn fingerprint(random: &mut Random) -> Fingerprint {
    let family = (random.below(4) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bits = 1 + random.below(5);
    Fingerprint((0..bits).fold(family, |value, _| value ^ 1 << (random.below(12) * 5)))
}

impl World {
    fn new(kind: usize, random: &mut Random) -> Self {
        let builder = || Params::builder().words(1).priorities();
        let strict = |threshold| Near::resembling(threshold).unwrap();
        let params = match kind {
            0 => builder().simhash(3).expire_after(AGE),
            1 => builder().minhash(4, 3).near(strict(0.7)).sets().marks(),
            2 => builder().minhash(8, 2).near(strict(0.7)),
            _ => builder().simhash(3).minhash(6, 2).near(strict(0.8).or_within(3)).expire_after(AGE),
        };
        let params = params.build().unwrap();
        let sketcher = twindex::Sketcher::new(&params).unwrap();
        let sketches: Vec<Sketch> = (0..CONTENTS).map(|_| sketcher.sketch(&text(random)).unwrap()).collect();
        let fingerprints: Vec<Fingerprint> = (0..CONTENTS).map(|_| fingerprint(random)).collect();
        let of_pair = |a: usize, b: usize| is_near(kind, &params, &sketches, &fingerprints, a, b);
        let near = (0..CONTENTS).map(|a| (0..CONTENTS).map(|b| of_pair(a, b)).collect()).collect();
        Self { params, sketches, fingerprints, near }
    }

    fn document(&self, live: &Live) -> Document<'_> {
        let content = match self.params.minhash {
            None => Document::from(self.fingerprints[live.content]),
            Some(_) => Document::from(&self.sketches[live.content]),
        };
        let stamp = self.params.expire_after.map(|_| live.stamp);
        content.with_priority(live.priority).with_stamp(stamp)
    }

    /// The leader of each document by the definition, from all pairs.
    fn leaders(&self, documents: &Documents) -> BTreeMap<String, String> {
        let mut order: Vec<(u64, u64, &String)> = documents
            .iter()
            .map(|(key, live)| (live.priority.unwrap_or(u64::MAX), Key::from(key).priority_hash(), key))
            .collect();
        order.sort_unstable();
        let (mut leaders, mut found): (Vec<&String>, BTreeMap<String, String>) =
            (Vec::new(), BTreeMap::new());
        for (_, _, key) in order {
            let near = |leader: &&&String| self.near[documents[key].content][documents[**leader].content];
            let leader = leaders.iter().find(near).map_or(key, |leader| *leader);
            if leader == key {
                leaders.push(key);
            }
            found.insert(key.clone(), leader.clone());
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

/// The listing of a batch by brute force.
fn listing(leaders: &BTreeMap<String, String>) -> String {
    let mut sizes: BTreeMap<&String, u32> = BTreeMap::new();
    for leader in leaders.values() {
        *sizes.entry(leader).or_default() += 1;
    }
    let mut text = String::new();
    for (key, leader) in leaders {
        writeln!(text, "{key}\t{leader}\t{}", sizes[leader]).unwrap();
    }
    text
}

fn listed(snapshot: &Snapshot, threads: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources { dir: dir.path(), memory: 1 << 20, threads };
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

fn leader(snapshot: &Snapshot, key: &str, questions: u64) -> Decision<twindex::Leader> {
    snapshot.leader(key, questions).unwrap().unwrap()
}

/// One history: an index, and the documents that must be live in it.
struct History<'w> {
    world: &'w World,
    dir: tempfile::TempDir,
    index: Index,
    writer: Option<Writer>,
    committed: Documents,
    now: u64,
    /// Including the batch.
    pending: Documents,
    newest: u64,
    /// The listing at the last checkpoint, and its snapshot.
    before: Option<(Snapshot, BTreeMap<String, String>)>,
}

impl<'w> History<'w> {
    fn new(world: &'w World) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::create(dir.path().join("index"), world.params.clone()).unwrap();
        let writer = Some(index.writer().unwrap());
        let (committed, pending) = Default::default();
        Self { world, dir, index, writer, committed, now: 0, pending, newest: 0, before: None }
    }

    fn step(&mut self, random: &mut Random, keys: usize) {
        let key = format!("key {}", random.below(keys));
        let writer = self.writer.as_mut().unwrap();
        match random.below(100) {
            0..60 => {
                let priority = [None, Some(random.next() % 4), Some(random.next())][random.below(3)];
                let stamp = self.newest + random.below(3) as u64;
                let live = Live { content: random.below(CONTENTS), priority, stamp };
                writer.put(key.as_str(), self.world.document(&live)).unwrap();
                self.newest = stamp;
                self.pending.insert(key, live);
            }
            60..80 => {
                writer.delete(key.as_str()).unwrap();
                self.pending.remove(&key);
            }
            80..92 => self.commit(),
            92..94 => {
                self.commit();
                self.writer.as_mut().unwrap().flush().unwrap();
            }
            94 => {
                self.commit();
                self.writer = None;
                self.index.compact().unwrap();
                self.writer = Some(self.index.writer().unwrap());
            }
            95..97 => {
                // The batch is lost.
                self.writer = None;
                self.index = Index::open(self.dir.path().join("index")).unwrap();
                self.writer = Some(self.index.writer().unwrap());
                (self.pending, self.newest) = (self.committed.clone(), self.now);
            }
            _ => self.check_batch(random),
        }
    }

    fn commit(&mut self) {
        self.writer.as_mut().unwrap().commit().unwrap();
        self.now = self.newest;
        if self.world.params.expire_after.is_some() {
            let now = self.now;
            self.pending.retain(|_, live| now - live.stamp < AGE);
        }
        self.committed = self.pending.clone();
    }

    /// The writer sees its own batch.
    fn check_batch(&mut self, random: &mut Random) {
        if self.pending.is_empty() || self.world.params.expire_after.is_some() {
            return;
        }
        let leaders = self.world.leaders(&self.pending);
        let writer = self.writer.as_mut().unwrap();
        for _ in 0..3 {
            let (key, expected) = leaders.iter().nth(random.below(leaders.len())).unwrap();
            let found = writer.leader(key, u64::MAX).unwrap().unwrap().decided().unwrap();
            assert_eq!(found.key.to_string(), *expected, "{key}, with the batch");
            let size = writer.group_size(key, u64::MAX).unwrap().unwrap().decided().unwrap();
            assert_eq!(size as usize, leaders.values().filter(|leader| *leader == expected).count());
        }
    }

    fn check(&mut self, random: &mut Random) {
        self.commit();
        let snapshot = self.index.snapshot();
        let leaders = self.world.leaders(&self.committed);
        assert_eq!(listed(&snapshot, 1 + random.below(3)), listing(&leaders), "the listing");
        // All of them, or every n-th of many.
        let all = std::env::var_os("TWINDEX_GROUP_ALL").is_some();
        let spacing = if all { 1 } else { leaders.len() / 200 + 1 };
        for (key, expected) in leaders.iter().skip(random.below(spacing)).step_by(spacing) {
            assert_eq!(
                leader(&snapshot, key, u64::MAX).decided().unwrap().key.to_string(),
                *expected,
                "{key}"
            );
        }
        for _ in 0..leaders.len().min(5) {
            let (key, expected) = leaders.iter().nth(random.below(leaders.len())).unwrap();
            let members: Vec<&String> =
                leaders.iter().filter(|(_, leader)| *leader == expected).map(|(member, _)| member).collect();
            let group = snapshot.group(key, u64::MAX).unwrap().unwrap().decided().unwrap();
            assert!(group.members.iter().map(ToString::to_string).eq(members.into_iter().cloned()), "{key}");
            assert_eq!(group.leader.to_string(), *expected);
            // The limit decides the same with all answers remembered, and with none.
            let questions = leader(&snapshot, key, u64::MAX).decided().unwrap().questions;
            let fresh = Index::open(self.dir.path().join("index")).unwrap().snapshot();
            assert_eq!(leader(&fresh, key, questions - 1), Decision::Undecided, "{key}");
            assert_eq!(leader(&snapshot, key, questions - 1), Decision::Undecided, "{key}");
            let fresh = Index::open(self.dir.path().join("index")).unwrap().snapshot();
            assert_eq!(leader(&fresh, key, questions), leader(&snapshot, key, questions));
        }
        if let Some((earlier, before)) = &self.before {
            let keys: BTreeSet<&String> = before.keys().chain(leaders.keys()).collect();
            let expected: Vec<_> = keys
                .into_iter()
                .filter(|key| before.get(*key) != leaders.get(*key))
                .map(|key| (key.clone(), before.get(key).cloned(), leaders.get(key).cloned()))
                .collect();
            let shown = |key: &Option<twindex::KeyBuf>| key.as_ref().map(ToString::to_string);
            let changes = snapshot.changed_leaders(earlier).unwrap();
            let found: Vec<_> = changes
                .iter()
                .map(|change| (change.key.to_string(), shown(&change.before), shown(&change.after)))
                .collect();
            assert_eq!(found, expected, "whose leader changed");
        }
        self.before = Some((snapshot, leaders));
    }

    /// The same documents by other histories: one batch of another index, and three shards that are merged.
    fn check_other_histories(&self) {
        let expected = listed(&self.index.snapshot(), 2);
        let dir = tempfile::tempdir().unwrap();
        let mut shards = Vec::new();
        for shard in 0..3 {
            let index =
                Index::create(dir.path().join(format!("{shard}")), self.world.params.clone()).unwrap();
            let mut writer = index.writer().unwrap();
            for (key, live) in self.committed.iter().rev() {
                if Key::from(key).priority_hash() % 3 == shard {
                    writer.put(key.as_str(), self.world.document(live)).unwrap();
                }
            }
            writer.commit().unwrap();
            drop(writer);
            shards.push(index);
        }
        let merged = dir.path().join("merged");
        Index::merge(&merged, &shards, OnConflict::Refuse, 1 << 20).unwrap();
        assert_eq!(listed(&Index::open(&merged).unwrap().snapshot(), 1), expected, "merged shards");
        let once = Index::create(dir.path().join("once"), self.world.params.clone()).unwrap();
        let mut writer = once.writer().unwrap();
        for (key, live) in &self.committed {
            writer.put(key.as_str(), self.world.document(live)).unwrap();
        }
        writer.commit().unwrap();
        assert_eq!(listed(&once.snapshot(), 1), expected, "one batch");
    }
}

#[test]
fn leaders_after_any_history_are_those_of_a_batch_over_the_live_documents() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<usize>().ok());
    let operations = number("TWINDEX_GROUP_OPERATIONS");
    let (operations, keys, checkpoints, histories) = operations.map_or((600, 70, 24, 1), |operations| {
        (operations, 2000, number("TWINDEX_GROUP_CHECKPOINTS").unwrap_or(1000), 5)
    });
    let a_history: usize = operations / 4 / histories;
    for kind in 0..4 {
        for seed in 0..histories {
            let mut random = Random(seed as u64 * 4 + kind as u64 + 1);
            let world = World::new(kind, &mut random);
            let mut history = History::new(&world);
            let spacing = (a_history * histories * 4 / checkpoints).max(1);
            for operation in 1..=a_history {
                history.step(&mut random, keys);
                if operation % spacing == 0 {
                    history.check(&mut random);
                }
            }
            history.check(&mut random);
            history.check_other_histories();
            let (_, leaders) = history.before.as_ref().unwrap();
            let led = leaders.iter().filter(|(key, leader)| key != leader).count();
            assert!(led > 10 && led < leaders.len() - 5, "{kind}: {led} of {} are led", leaders.len());
        }
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

/// The i-th of a row of fingerprints, each near the next one and few others: a Gray code of blocks of two bits.
fn chain(i: u64) -> u64 {
    let gray = i ^ (i >> 1);
    (0..32).fold(0, |value, bit| if gray >> bit & 1 == 1 { value | 3 << (2 * bit) } else { value })
}

#[test]
fn chain_in_a_hostile_order_is_decided_or_not_by_its_number_of_queries() {
    let dir = tempfile::tempdir().unwrap();
    let length = 3000;
    // Each document waits for the one before it.
    let index = of_fingerprints(&dir.path().join("x"), (0..length).map(|i| (i, chain(i), i)));
    let snapshot = index.snapshot();
    let last = length - 1;
    let leader = snapshot.leader(last, u64::MAX).unwrap().unwrap().decided().unwrap();
    let fresh = Index::open(dir.path().join("x")).unwrap().snapshot();
    assert!(leader.questions > 500, "{}", leader.questions);
    for most in [0, 1, 500, leader.questions - 1] {
        assert_eq!(snapshot.leader(last, most).unwrap(), Some(Decision::Undecided), "{most}");
        assert_eq!(fresh.leader(last, most).unwrap(), Some(Decision::Undecided), "{most}, nothing known");
    }
    let decided = Some(Decision::Decided(leader.clone()));
    assert_eq!(fresh.leader(last, leader.questions).unwrap(), decided);
    let scratch = tempfile::tempdir().unwrap();
    let listing = snapshot.groups(&Resources::in_dir(scratch.path())).unwrap();
    assert_eq!(listing.leader(last).unwrap().map(|(key, _)| key), Some(leader.key));
}

#[test]
fn hostile_priorities_cost_no_more_than_the_limit_and_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    // A chain of families: each link has ten documents near each other, which wait for the whole link before.
    let (links, family) = (60, 10);
    let own = |place: u64| if place == 0 { 0 } else { 1 << (40 + 2 * place) };
    let member = |i: u64| chain(i / family) ^ own(i % family);
    let path = dir.path().join("x");
    let index = of_fingerprints(&path, (0..links * family).map(|i| (i, member(i), i)));
    let all = index.snapshot();
    let scratch = tempfile::tempdir().unwrap();
    let listing = all.groups(&Resources::in_dir(scratch.path())).unwrap();
    let bound = 100;
    let (mut undecided, mut most) = (0, 0);
    for key in 0..links * family {
        let unbounded = all.leader(key, u64::MAX).unwrap().unwrap().decided().unwrap();
        assert_eq!(listing.leader(key).unwrap().unwrap().0, unbounded.key, "{key}");
        most = most.max(unbounded.questions);
        // The first snapshot remembers everything, the second nothing.
        let fresh = (key % 10 == 3).then(|| Index::open(&path).unwrap().snapshot());
        for snapshot in [Some(&all), fresh.as_ref()].into_iter().flatten() {
            let found = snapshot.leader(key, bound).unwrap().unwrap();
            assert_eq!(found == Decision::Undecided, unbounded.questions > bound, "{key}: {found:?}");
            let size = snapshot.group_size(key, bound).unwrap().unwrap();
            assert!(found != Decision::Undecided || size == Decision::Undecided, "{key}: {size:?}");
        }
        undecided += u64::from(unbounded.questions > bound);
    }
    assert!(undecided > 100 && undecided < links * family - 100 && most > 500, "{undecided}, {most}");
}

#[test]
fn documents_of_long_buckets_have_the_leaders_of_the_definition() {
    for kind in 0..4 {
        let mut random = Random(kind as u64 + 100);
        let world = World::new(kind, &mut random);
        let mut history = History::new(&world);
        for number in 0..900 {
            let priority = [None, Some(random.next() % 4), Some(random.next())][random.below(3)];
            let live = Live { content: random.below(CONTENTS), priority, stamp: 0 };
            let key = format!("key {number}");
            history.writer.as_mut().unwrap().put(key.as_str(), world.document(&live)).unwrap();
            history.pending.insert(key, live);
        }
        history.commit();
        history.writer.as_mut().unwrap().flush().unwrap();
        for _ in 0..200 {
            let key = format!("key {}", random.below(900));
            history.writer.as_mut().unwrap().delete(key.as_str()).unwrap();
            history.pending.remove(&key);
        }
        history.commit();
        let snapshot = history.index.snapshot();
        for (key, expected) in world.leaders(&history.committed) {
            let found = leader(&snapshot, &key, u64::MAX).decided().unwrap();
            assert_eq!(found.key.to_string(), expected, "{kind}: {key}");
        }
    }
}

#[test]
fn equal_documents_need_one_query() {
    let dir = tempfile::tempdir().unwrap();
    // First comes a leader, then 500 copies near it, and last a document near the copies and not near the leader.
    let copies = (1..=500).map(|i| (i, 0b111, i));
    let index = of_fingerprints(&dir.path().join("x"), copies.chain([(0, 0, 0), (501, 0b11_1111, 501)]));
    let snapshot = index.snapshot();
    let leader = snapshot.leader(501_u64, GROUP_QUESTIONS).unwrap().unwrap().decided().unwrap();
    assert_eq!((leader.key.as_u64(), leader.questions), (Some(501), 3));
    assert_eq!(snapshot.group_size(7_u64, GROUP_QUESTIONS).unwrap(), Some(Decision::Decided(501)));
    // The same in a segment, whose first documents are deleted.
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
fn document_with_more_neighbours_than_it_keeps_checks_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    // Leaders of four bits, too far from 0, and all words that are near one of them and near 0.
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
    // One for the document; for each word, one for itself and one for its leader.
    assert_eq!((found.key.as_u64(), found.questions), (Some(last), 1 + 2 * words.len() as u64));
}

#[test]
fn index_that_cannot_compare_stored_documents_is_refused() {
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
