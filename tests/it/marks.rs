//! Marks of duplicates after their leaders are gone. A mark counts only while a live unmarked document is near: the text of
//! a marked document whose leader was replaced, deleted or expired is still stored, so a copy of it is not new.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use twindex::params::{Near, ParamsBuilder};
use twindex::sketch::{Resemblance, matches, pack};
use twindex::{
    Admitted, Document, Durability, Fingerprint, Hit, Index, Key, KeyBuf, Lookahead, Params, Query, Result,
    Sketch, Snapshot, Writer, WriterOptions,
};

use crate::support::Random;
use crate::support::marks::{Live, duplicated, leaders_near, outcome};
use crate::support::model::ModelVfs;

/// The age at which documents expire.
const AGE: u64 = 60;

/// The method by which documents are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Door {
    Admit,
    /// Admits with a lookup in an earlier snapshot.
    Ahead,
    Inside,
    Counting,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// The distance of fingerprints.
    Distance,
    /// The exact resemblance of sets, or a distance of at most 3 bits if fingerprints are stored.
    Exact,
    /// Sharing a band, and the resemblance that signatures estimate.
    Estimated,
    /// Sharing a band.
    Unverified,
}

const KINDS: [(Measure, Door); 12] = [
    (Measure::Distance, Door::Admit),
    (Measure::Distance, Door::Ahead),
    (Measure::Distance, Door::Inside),
    (Measure::Exact, Door::Admit),
    (Measure::Exact, Door::Ahead),
    (Measure::Exact, Door::Inside),
    (Measure::Exact, Door::Counting),
    (Measure::Estimated, Door::Admit),
    (Measure::Estimated, Door::Ahead),
    (Measure::Unverified, Door::Admit),
    (Measure::Unverified, Door::Ahead),
    (Measure::Unverified, Door::Inside),
];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stored {
    /// The number of the content.
    content: usize,
    is_marked: bool,
    stamp: Option<u64>,
    value: u8,
    priority: Option<u64>,
}

type Documents = BTreeMap<String, Stored>;
/// How near two documents are: the distance, and the bits of the resemblance, highest first.
type Nearness = (u32, Reverse<u64>);

/// An index and the model of it.
struct Round {
    params: Params,
    measure: Measure,
    door: Door,
    drops: bool,
    sketches: Vec<Sketch>,
    fingerprints: Vec<u64>,
    live: Documents,
    now: u64,
    steps: Vec<String>,
    promoted: u32,
    /// The state in which documents are looked up before they are admitted.
    earlier: Option<Snapshot>,
    /// Number of queries for unmarked documents whose hits are orphans.
    led: u32,
}

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?} {:?}\n{}", self.measure, self.door, self.steps.join("\n"));
        }
    }
}

/// Returns what decides which of these documents lead others.
fn marks<'a>(live: &[(&'a String, &Stored)]) -> Vec<Live<'a>> {
    let of = |(key, stored): &(&'a String, &Stored)| Live {
        key: Key::from(key.as_str()),
        is_marked: stored.is_marked,
        priority: stored.priority,
    };
    live.iter().map(of).collect()
}

fn bits(resemblance: f64) -> Reverse<u64> {
    Reverse(resemblance.to_bits()) // of numbers that are not negative, the order is that of their bits
}

impl Round {
    fn new(seed: u64, random: &mut Random) -> Self {
        let (measure, door) = KINDS[seed as usize % KINDS.len()];
        let near = Near::resembling(0.8).unwrap();
        let with_fingerprints = random.below(2) == 0;
        let builder: ParamsBuilder = Params::builder().words(1).marks().values();
        let builder = match (measure, door) {
            (Measure::Distance, _) => builder.simhash(3),
            (Measure::Exact, Door::Counting) => builder.minhash(3, 2).near(near),
            (Measure::Exact, _) if with_fingerprints => {
                builder.simhash(3).minhash(3, 2).near(near.or_within(3)).sets()
            }
            (Measure::Exact, _) => builder.minhash(3, 2).near(near).sets(),
            (Measure::Estimated, _) => builder.minhash(4, 4).near(near),
            (Measure::Unverified, _) => {
                builder.minhash(3, 3).near(near).signature_bits([0, 8][random.below(2)])
            }
        };
        let builder = if random.below(2) == 0 { builder.priorities() } else { builder };
        let params = if random.below(2) == 0 { builder.expire_after(AGE) } else { builder }.build().unwrap();
        let sketcher = twindex::Sketcher::new(&params).unwrap();
        // Texts of a family differ in up to four of ten words. Those that differ in one word are near, by resemblance.
        let words = random.below(1000);
        let text = |family: usize, others: usize| {
            let word = |word: usize| format!("w{words}f{family}n{word}o{}", others >> word & 1);
            (0..10).map(word).collect::<Vec<String>>().join(" ")
        };
        let texts = (0..2).flat_map(|family| (0..12).map(move |others| text(family, others)));
        let sketches = texts.chain(["?".into()]).map(|text| sketcher.sketch(&text).unwrap()).collect();
        let center = random.next();
        // Neighbours in the list differ in two bits.
        let fingerprints = (0..25)
            .map(|at| center ^ (0..at % 12).fold(u64::from(at > 11) << 40, |bits, at| bits | 3 << (2 * at)));
        Self {
            params,
            measure,
            door,
            drops: random.below(4) == 0,
            sketches,
            fingerprints: fingerprints.collect(),
            live: Documents::new(),
            now: 0,
            steps: Vec::new(),
            promoted: 0,
            earlier: None,
            led: 0,
        }
    }

    fn options(&self) -> WriterOptions {
        WriterOptions::default()
            .durability(Durability::None)
            .estimated(self.measure == Measure::Estimated)
            .unverified(self.measure == Measure::Unverified)
            .drop_duplicates(self.drops)
            .background_merges(false)
            .max_jump(u64::MAX)
    }

    /// Returns how near two documents are; `None` if they are not near.
    fn nearness(&self, a: Stored, b: Stored) -> Option<Nearness> {
        self.nearness_by((self.measure, false), a, b)
    }

    /// Returns whether two documents are near by the parameters of the index.
    fn are_near_in_index(&self, a: Stored, b: Stored) -> bool {
        self.nearness_by((self.measure_of_index(), false), a, b).is_some()
    }

    fn measure_of_index(&self) -> Measure {
        match self.params.minhash {
            Some(minhash) if minhash.signature_bits > 0 && self.measure == Measure::Unverified => {
                Measure::Estimated
            }
            _ => self.measure,
        }
    }

    /// Like [`nearness`](Self::nearness), by a measure. If `is_narrow`, by a relation that includes fewer documents.
    fn nearness_by(&self, (measure, is_narrow): (Measure, bool), a: Stored, b: Stored) -> Option<Nearness> {
        let (threshold, within) = if is_narrow { (0.9, 1) } else { (0.8, 3) };
        if self.door == Door::Inside && a.value != b.value {
            return None;
        }
        if measure == Measure::Distance {
            let distance = (self.fingerprints[a.content] ^ self.fingerprints[b.content]).count_ones();
            return (distance <= within).then_some((distance, Reverse(0)));
        }
        let (a, b) = (&self.sketches[a.content], &self.sketches[b.content]);
        let minhash = self.params.minhash.unwrap();
        let shares_band = a.features().iter().zip(b.features()).any(|(a, b)| a >> 32 == b >> 32);
        let packed = |sketch: &Sketch| {
            let mut packed = Vec::new();
            pack(sketch.signature(), minhash.signature_bits, &mut packed);
            packed
        };
        let estimate = |a: &Sketch, b: &Sketch| {
            let same = matches(&packed(a), &packed(b), minhash.minima(), minhash.signature_bits);
            Resemblance::from_matches(same, minhash.minima(), minhash.signature_bits)
        };
        match measure {
            Measure::Exact if self.door == Door::Counting => {
                let counted = Resemblance::of_sets(&set(a), &set(b));
                (shares_band && counted.at_least(threshold)).then_some((u32::MAX, bits(counted.value())))
            }
            Measure::Exact => {
                let distance = a.fingerprint().zip(b.fingerprint()).map(|(a, b)| a.distance(b));
                let distance = distance.filter(|_| !a.is_empty() && !b.is_empty());
                let counted = Resemblance::of_sets(a.set(), b.set());
                let is_near = counted.at_least(threshold)
                    || !is_narrow && distance.is_some_and(|distance| distance <= within);
                is_near.then_some((distance.unwrap_or(u32::MAX), bits(counted.value())))
            }
            _ if !shares_band => None,
            Measure::Unverified if minhash.signature_bits == 0 => Some((u32::MAX, Reverse(0))),
            _ => {
                let estimate = estimate(a, b);
                let is_near = measure == Measure::Unverified || estimate.at_least(threshold);
                is_near.then_some((u32::MAX, bits(estimate.value())))
            }
        }
    }

    fn move_time(&mut self, stamp: Option<u64>) {
        self.now = self.now.max(stamp.unwrap_or(0));
        let now = self.now;
        self.live.retain(|_, stored| stored.stamp.is_none_or(|stamp| now - stamp < AGE));
    }

    fn is_expired(&self, stamp: Option<u64>) -> bool {
        stamp.is_some_and(|stamp| self.now - stamp >= AGE)
    }

    /// Applies `admit` to the model. Returns the outcome, and the near document with its nearness.
    fn admit(&mut self, key: &str, new: Stored) -> (&'static str, Option<(String, Nearness)>) {
        self.move_time(new.stamp);
        if self.is_expired(new.stamp) {
            return ("expired", None);
        }
        let live: Vec<(&String, &Stored)> = self.live.iter().collect();
        let marks = marks(&live);
        let near = duplicated(
            &marks,
            Key::from(key),
            |at| self.nearness(new, *live[at].1),
            |a, b| self.nearness(*live[a].1, *live[b].1).is_some(),
        );
        let near = near.map(|at| (live[at].0.clone(), self.nearness(new, *live[at].1).unwrap()));
        let is_known = self.live.contains_key(key);
        if let Some((leader, _)) = &near {
            let is_marked = &mut self.live.get_mut(leader).unwrap().is_marked;
            self.promoted += u32::from(*is_marked);
            *is_marked = false;
        }
        if near.is_none() || is_known || !self.drops {
            self.live.insert(key.to_owned(), Stored { is_marked: near.is_some(), ..new });
        }
        let outcome = match (is_known, &near) {
            (false, None) => "new",
            (false, Some(_)) => "duplicate",
            (true, None) => "updated",
            (true, Some(_)) => "known",
        };
        (outcome, near)
    }

    fn document<'a>(&'a self, stored: Stored, value: &'a [u8]) -> Document<'a> {
        let document = match self.measure {
            Measure::Distance => Document::from(Fingerprint(self.fingerprints[stored.content])),
            _ => Document::from(&self.sketches[stored.content]),
        };
        let document = document.with_value(value).with_stamp(stored.stamp).with_priority(stored.priority);
        if stored.is_marked { document.as_duplicate() } else { document }
    }

    fn admit_to(&self, writer: &mut Writer, key: &str, new: Stored) -> Result<Admitted> {
        let value = [new.value];
        let document = self.document(new, &value);
        match self.door {
            Door::Admit => writer.admit(key, document),
            Door::Ahead => {
                // Sometimes of another document, which is to be ignored.
                let content = if new.content % 5 == 4 { new.content - 1 } else { new.content };
                let of = self.document(Stored { content, ..new }, &value);
                let ahead =
                    self.earlier.as_ref().map(|earlier| Lookahead::new(earlier, of, writer.options()));
                writer.admit_ahead(key, document, &ahead.transpose()?.unwrap_or_default())
            }
            Door::Inside => writer.admit_inside(key, document),
            Door::Counting => {
                let live = &self.live;
                writer.admit_counting(key, document, &set(&self.sketches[new.content]), |key, out| {
                    *out = set(&self.sketches[live[&key.to_string()].content]);
                    Ok(())
                })
            }
        }
    }

    /// Checks all documents of the index.
    fn check(&self, index: &Index) {
        let snapshot = index.snapshot();
        let keys: Vec<String> = snapshot.keys().unwrap().map(|key| key.unwrap().to_string()).collect();
        assert_eq!(keys, self.live.keys().cloned().collect::<Vec<String>>());
        assert!(self.params.expire_after.is_none() || snapshot.now().is_none_or(|now| now == self.now));
        for (key, stored) in &self.live {
            let record = snapshot.get(key.as_str()).unwrap().unwrap();
            let found = (record.is_duplicate, record.stamp, record.value.unwrap(), record.priority);
            let expected = (stored.is_marked, stored.stamp, vec![stored.value], stored.priority);
            assert_eq!(found, expected, "{key}");
            if self.measure == Measure::Distance {
                assert_eq!(record.fingerprint, Some(Fingerprint(self.fingerprints[stored.content])), "{key}");
            } else {
                let sketch = &self.sketches[stored.content];
                let mut signature = Vec::new();
                pack(sketch.signature(), self.params.minhash.unwrap().signature_bits, &mut signature);
                assert_eq!(
                    (record.set, record.fingerprint),
                    (sketch.set().to_vec(), sketch.fingerprint()),
                    "{key}"
                );
                assert!(sketch.is_empty() || record.signature == signature, "{key}");
            }
        }
    }
}

impl Round {
    /// Checks that queries for unmarked documents count marks as [`Writer::admit`] does.
    fn check_unmarked(&mut self, index: &Index) {
        let snapshot = index.snapshot();
        let live: Vec<(&String, &Stored)> = self.live.iter().collect();
        let marks = marks(&live);
        let measures = [(self.measure, false), (self.measure_of_index(), true)];
        for (content, (measure, is_narrow)) in
            (0..self.sketches.len()).flat_map(|content| measures.map(|by| (content, by)))
        {
            if is_narrow && measure == Measure::Unverified {
                continue; // no threshold is compared
            }
            let value = u8::from(self.door == Door::Inside && content % 2 == 1);
            let new = Stored { content, is_marked: false, stamp: None, value, priority: None };
            let nearness = |at: usize| self.nearness_by((measure, is_narrow), new, *live[at].1);
            let expected =
                leaders_near(&marks, None, nearness, |a, b| self.are_near_in_index(*live[a].1, *live[b].1));
            let expected: Vec<(String, Nearness)> =
                expected.into_iter().map(|at| (live[at].0.clone(), nearness(at).unwrap())).collect();
            let query = || {
                let sketch = &self.sketches[content];
                let query = match (measure, is_narrow) {
                    (Measure::Distance, _) => {
                        let within = if is_narrow { 1 } else { 3 };
                        snapshot.within(Fingerprint(self.fingerprints[content]), within)
                    }
                    (_, true) => snapshot.resembling(sketch, 0.9),
                    (_, false) => snapshot.near(sketch),
                };
                let query = match measure {
                    Measure::Estimated => query.estimated(),
                    Measure::Unverified => query.unverified(),
                    _ => query,
                };
                query.inside((self.door == Door::Inside).then_some(&[value][..])).unmarked()
            };
            let run = |query: Query| {
                if self.door != Door::Counting {
                    return query.run().unwrap();
                }
                let set_of = |key: &KeyBuf, out: &mut Vec<u64>| {
                    *out = set(&self.sketches[self.live[&key.to_string()].content]);
                    Ok(())
                };
                query.run_counting(&set(&self.sketches[content]), set_of).unwrap()
            };
            let answers = run(query());
            let case = format!("{content} {measure:?} {is_narrow}");
            assert_eq!(answers.hits.iter().map(shown).collect::<Vec<_>>(), expected, "{case}");
            let first = run(query().limit(1));
            assert_eq!(first.hits.iter().map(shown).collect::<Vec<_>>(), expected[..expected.len().min(1)]);
            assert_eq!(first.has_more, expected.len() > 1);
            if self.door != Door::Counting {
                assert_eq!(query().count().unwrap(), expected.len() as u64);
                let any = query().any().unwrap().map(|hit| hit.key.to_string());
                assert!(any.map_or(expected.is_empty(), |any| expected.iter().any(|(key, _)| *key == any)));
            }
            self.led += u32::from(expected.first().is_some_and(|(key, _)| self.live[key].is_marked));
        }
    }

    /// Checks that each document is found by all its features.
    fn check_features(&self, index: &Index) {
        let Some(minhash) = self.params.minhash else { return };
        for (key, stored) in &self.live {
            let sketch = &self.sketches[stored.content];
            if !sketch.is_empty() {
                let query =
                    index.snapshot().resembling(sketch, 0.0).unverified().sharing(minhash.bands.into());
                let hits = query.run().unwrap().hits;
                assert!(hits.iter().any(|hit| hit.key.to_string() == *key), "{key}");
            }
        }
    }
}

/// Returns the set of a text as a caller supplies it that stores no sets in the index.
fn set(sketch: &Sketch) -> Vec<u64> {
    let mut set: Vec<u64> = sketch.signature().iter().map(|&minimum| minimum.into()).collect();
    set.sort_unstable();
    set.dedup();
    set
}

fn shown(hit: &Hit) -> (String, Nearness) {
    let resemblance = hit.resemblance.map_or(Reverse(0), |resemblance| bits(resemblance.value()));
    (hit.key.to_string(), (hit.distance.unwrap_or(u32::MAX), resemblance))
}

fn compared(admitted: &Admitted) -> (&'static str, Option<(String, Nearness)>) {
    let (name, hit) = outcome(admitted);
    (name, hit.map(shown))
}

/// Runs one history of an index. Returns the number of documents that lost their marks, and of queries whose hits are
/// orphans.
fn run(seed: u64) -> [u32; 2] {
    let mut random = Random(seed);
    let mut round = Round::new(seed, &mut random);
    let vfs = Arc::new(ModelVfs::default());
    let path = Path::new("/index");
    let mut index = Index::create_with(Arc::clone(&vfs) as _, path, round.params.clone()).unwrap();
    let mut writer = index.writer_with(round.options()).unwrap();
    let mut committed = (round.live.clone(), round.now);
    let contents = [6, 25][random.below(2)];
    for _ in 0..40 {
        let key = format!("k{}", random.below(9));
        let stamp = round.now.max(1000) + random.below(9) as u64
            - [0, 0, 0, random.below(70)][random.below(4)] as u64;
        let new = Stored {
            content: random.below(contents),
            is_marked: false,
            stamp: round.params.expire_after.map(|_| stamp),
            value: if round.door == Door::Inside { random.below(2) as u8 } else { 0 },
            priority: Some(random.below(4) as u64).filter(|number| round.params.priorities && *number > 0),
        };
        match random.below(24) {
            0..=11 => {
                round.steps.push(format!("admit {key} {new:?}, of {:?}", round.live));
                let admitted = round.admit_to(&mut writer, &key, new).unwrap();
                assert_eq!(compared(&admitted), round.admit(&key, new));
            }
            12 | 13 => {
                let new = Stored { is_marked: random.below(2) == 0, ..new };
                round.steps.push(format!("put {key} {new:?}"));
                writer.put(key.as_str(), round.document(new, &[new.value])).unwrap();
                round.live.insert(key, new);
                round.move_time(new.stamp);
            }
            14..=16 => {
                // Mostly a leader, so that documents lose theirs.
                let leader = round.live.iter().find(|(_, stored)| !stored.is_marked);
                let key = leader.map(|(key, _)| key.clone()).filter(|_| random.below(3) > 0).unwrap_or(key);
                round.steps.push(format!("delete {key}"));
                writer.delete(key.as_str()).unwrap();
                round.live.remove(&key);
            }
            17 => {
                round.steps.push("discard".into());
                drop(writer);
                (round.live, round.now) = committed.clone();
                index = Index::open_with(Arc::clone(&vfs) as _, path).unwrap();
                writer = index.writer_with(round.options()).unwrap();
            }
            _ => {
                writer.commit().unwrap();
                let step = ["", "", "flush", "merge", "compact", "segment"][random.below(6)];
                match step {
                    "flush" => writer.flush().unwrap(),
                    "merge" => _ = writer.merge_step().unwrap(),
                    "compact" => _ = writer.compact().unwrap(),
                    "segment" => writer.set_options(round.options().logged(random.below(2) == 0)).unwrap(),
                    _ => {}
                }
                round.steps.push(format!("commit {step}"));
                committed = (round.live.clone(), round.now);
                round.check(&index);
                if random.below(2) == 0 {
                    round.earlier = Some(index.snapshot());
                }
                round.check_unmarked(&index);
            }
        }
    }
    writer.commit().unwrap();
    drop(writer);
    let index = Index::open_with(vfs, path).unwrap();
    round.check(&index);
    round.check_features(&index);
    assert!(index.verify().problems.is_empty());
    [round.promoted, round.led]
}

#[test]
fn duplicates_of_marked_documents_agree_with_the_definition_in_every_history() {
    let rounds = std::env::var("TWINDEX_HISTORIES").map_or(400, |count| count.parse().unwrap());
    let first = std::env::var("TWINDEX_HISTORIES_FROM").map_or(0, |seed| seed.parse().unwrap());
    let (mut promoted, mut led) = ([0; KINDS.len()], [0; KINDS.len()]);
    for seed in first..first + rounds {
        let kind = seed as usize % KINDS.len();
        let found = run(seed);
        (promoted[kind], led[kind]) = (promoted[kind] + found[0], led[kind] + found[1]);
    }
    let min = rounds as u32 / 50;
    assert!(promoted.iter().all(|&count| count >= min), "documents that lost their marks: {promoted:?}");
    assert!(led.iter().all(|&count| count >= min), "queries whose hits are orphans: {led:?}");
}

/// Creates an index in which `b` is a marked copy of `a`, and returns its writer.
fn copied(expire_after: Option<u64>) -> (tempfile::TempDir, Index, Writer) {
    let dir = tempfile::tempdir().unwrap();
    let builder = Params::builder().simhash(3).marks();
    let builder = if let Some(age) = expire_after { builder.expire_after(age) } else { builder };
    let index = Index::create(dir.path().join("x"), builder.build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    let stamp = |stamp: u64| expire_after.map(|_| stamp);
    let document = |at: u64| Document::from(Fingerprint(7)).with_stamp(stamp(at));
    assert_eq!(writer.admit("a", document(100)).unwrap(), Admitted::New);
    assert!(matches!(writer.admit("b", document(150)).unwrap(), Admitted::Duplicate(_)));
    writer.commit().unwrap();
    (dir, index, writer)
}

/// Checks that `c` is a duplicate of `b`, which has lost its mark, and that `d` then is one, too.
fn check_duplicate_of_b(index: &Index, writer: &mut Writer, stamp: Option<u64>) {
    for key in ["c", "d"] {
        let admitted = writer.admit(key, Document::from(Fingerprint(7)).with_stamp(stamp)).unwrap();
        assert!(matches!(&admitted, Admitted::Duplicate(hit) if hit.key.to_string() == "b"), "{admitted:?}");
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    let is_marked = ["b", "c", "d"].map(|key| snapshot.get(key).unwrap().unwrap().is_duplicate);
    assert_eq!(is_marked, [false, true, true]);
}

#[test]
fn copy_of_a_marked_document_is_a_duplicate_after_its_leader_was_replaced() {
    let (_dir, index, mut writer) = copied(None);
    assert_eq!(writer.admit("a", Fingerprint(!0)).unwrap(), Admitted::Updated);
    check_duplicate_of_b(&index, &mut writer, None);
}

#[test]
fn copy_of_a_marked_document_is_a_duplicate_after_its_leader_was_deleted() {
    let (_dir, index, mut writer) = copied(None);
    writer.delete("a").unwrap();
    check_duplicate_of_b(&index, &mut writer, None);
}

#[test]
fn copy_of_a_marked_document_is_a_duplicate_after_its_leader_expired() {
    let (_dir, index, mut writer) = copied(Some(60));
    check_duplicate_of_b(&index, &mut writer, Some(170));
    assert!(!index.snapshot().contains("a").unwrap());
    assert_eq!(index.snapshot().get("b").unwrap().unwrap().stamp, Some(150));
}

#[test]
fn dropped_duplicate_of_an_orphan_removes_its_mark() {
    let (_dir, index, mut writer) = copied(None);
    writer.delete("a").unwrap();
    writer.set_options(writer.options().drop_duplicates(true)).unwrap();
    assert!(matches!(writer.admit("c", Fingerprint(7)).unwrap(), Admitted::Duplicate(_)));
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    assert_eq!((snapshot.documents(), snapshot.get("b").unwrap().unwrap().is_duplicate), (1, false));
}
