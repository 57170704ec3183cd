//! Tests `admit` against a simple model of the live documents and the current time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use twindex::params::{Near, ParamsBuilder};
use twindex::sketch::Resemblance;
use twindex::{
    Admitted, Document, Durability, Fingerprint, Hit, Index, Key, Params, Query, Sketch, Writer,
    WriterOptions,
};

use crate::support::Random;
use crate::support::marks::{Live, duplicated, leaders_near, outcome};
use crate::support::model::ModelVfs;

/// The age at which documents expire.
const AGE: u64 = 60;
const RADIUS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
struct KeptDocument {
    fingerprint: u64,
    stamp: u64,
    is_marked: bool,
}

/// The documents that are live at the current time, including those of the uncommitted batch.
#[derive(Clone, Debug, Default)]
struct Model {
    now: u64,
    alive: BTreeMap<u64, KeptDocument>,
}

impl Model {
    fn move_time(&mut self, stamp: u64) {
        self.now = self.now.max(stamp);
        let now = self.now;
        self.alive.retain(|_, kept| now - kept.stamp < AGE);
    }

    /// Applies `admit` to the model. Returns the name of the outcome, and the key and the distance of the near document.
    fn admit(
        &mut self,
        key: u64,
        fingerprint: u64,
        stamp: u64,
        drops: bool,
    ) -> (&'static str, Option<(u64, u32)>) {
        self.move_time(stamp);
        if self.now - stamp >= AGE {
            return ("expired", None);
        }
        let alive: Vec<(u64, KeptDocument)> = self.alive.iter().map(|(&key, &kept)| (key, kept)).collect();
        let live = alive.iter().map(|&(key, kept)| Live {
            key: Key::U64(key),
            is_marked: kept.is_marked,
            priority: None,
        });
        let distance = |a: u64, b: u64| Some((a ^ b).count_ones()).filter(|&distance| distance <= RADIUS);
        let near = duplicated(
            &live.collect::<Vec<_>>(),
            Key::U64(key),
            |at| distance(alive[at].1.fingerprint, fingerprint),
            |a, b| distance(alive[a].1.fingerprint, alive[b].1.fingerprint).is_some(),
        );
        let near = near.map(|at| (alive[at].0, (alive[at].1.fingerprint ^ fingerprint).count_ones()));
        if let Some((leader, _)) = near {
            self.alive.get_mut(&leader).unwrap().is_marked = false;
        }
        let is_known = self.alive.contains_key(&key);
        if near.is_none() || is_known || !drops {
            self.alive.insert(key, KeptDocument { fingerprint, stamp, is_marked: near.is_some() });
        }
        let outcome = match (is_known, near) {
            (false, None) => "new",
            (false, Some(_)) => "duplicate",
            (true, None) => "updated",
            (true, Some(_)) => "known",
        };
        (outcome, near)
    }
}

fn compared(admitted: &Admitted) -> (&'static str, Option<(u64, u32)>) {
    let (name, hit) = outcome(admitted);
    (name, hit.map(|hit| (hit.key.as_u64().unwrap(), hit.distance.unwrap())))
}

fn check(index: &Index, model: &Model) {
    let snapshot = index.snapshot();
    let mut found = BTreeMap::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?.unwrap();
            let key = key.to_buf().as_u64().unwrap();
            let fingerprint = record.fingerprint.unwrap().0;
            let kept =
                KeptDocument { fingerprint, stamp: record.stamp.unwrap(), is_marked: record.is_duplicate };
            found.insert(key, kept);
            Ok(())
        })
        .unwrap();
    assert_eq!(found, model.alive);
    assert!(snapshot.now().unwrap_or(0) == model.now || model.now == 0);
}

#[test]
fn admit_agrees_with_the_model_in_batches_and_single_commits() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    // `TWINDEX_CASES` overrides the number of seeds.
    let seeds = std::env::var("TWINDEX_CASES").map_or(8_u64, |cases| cases.parse().expect("a number"));
    for seed in 0..seeds {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut below = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let params = Params::builder()
            .u64_keys()
            .simhash(3)
            .marks()
            .expire_after(AGE)
            .near(Near::within(RADIUS as u16));
        let mut index = Index::create(&path, params.build().unwrap()).unwrap();
        let drops = seed % 2 == 0;
        let open = |index: &Index| -> Writer {
            index.writer_with(WriterOptions::default().drop_duplicates(drops).max_jump(u64::MAX)).unwrap()
        };
        let mut writer = open(&index);
        let mut model = Model::default();
        let mut committed = model.clone();
        let mut time = 1000;
        for step in 0..150 {
            time += below(if seed % 3 == 0 { 3 } else { 12 });
            let stamp = time - below(80).saturating_sub(55).min(time) * 4;
            let (key, center) = (below(25), below(9));
            let fingerprint = center.wrapping_mul(0x0FED_CBA9_8765_4321) ^ 1 << below(64) ^ 1 << below(64);
            let document = Document::from(Fingerprint(fingerprint)).with_stamp(stamp);
            let admitted = writer.admit(key, document).unwrap();
            let expected = model.admit(key, fingerprint, stamp, drops);
            assert_eq!(compared(&admitted), expected, "{seed} {step}: {key} at {stamp}, {time}");
            *counts.entry(expected.0).or_default() += 1;
            // Changes of the batch are not visible before the commit.
            if step % 10 == 5 {
                check(&index, &committed);
            }
            match below(12) {
                0..=3 => _ = writer.commit().unwrap(),
                4 => {
                    writer.commit().unwrap();
                    writer.flush().unwrap();
                }
                5 => {
                    writer.commit().unwrap();
                    writer.compact().unwrap();
                }
                6 => {
                    // Dropping the writer discards uncommitted documents and the time that their stamps set.
                    drop(writer);
                    index = Index::open(&path).unwrap();
                    writer = open(&index);
                    model = committed.clone();
                }
                _ => continue,
            }
            check(&index, &model);
            check(&Index::open(&path).unwrap(), &model);
            committed = model.clone();
        }
    }
    for outcome in ["new", "duplicate", "updated", "known", "expired"] {
        assert!(counts.get(outcome).is_some_and(|&count| count > 12), "{counts:?}");
    }
}

#[test]
fn copy_of_an_expired_document_is_admitted_as_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let params = Params::builder().u64_keys().simhash(3).expire_after(60).build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().drop_duplicates(true)).unwrap();
    let at = |stamp: u64| Document::from(Fingerprint(7)).with_stamp(stamp);
    assert_eq!(writer.admit(1, at(1001)).unwrap(), Admitted::New);
    assert_eq!(writer.admit(3, at(1061)).unwrap(), Admitted::New, "the first one is too old by now");
    assert!(
        matches!(writer.admit(2, at(1061)).unwrap(), Admitted::Duplicate(hit) if hit.key.as_u64() == Some(3))
    );
    writer.commit().unwrap();
    let keys = |index: &Index| -> Vec<u64> {
        let mut keys = Vec::new();
        let snapshot = index.snapshot();
        let push = |key: twindex::Key<'_>| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        };
        snapshot.for_each_key(push).unwrap();
        keys
    };
    assert_eq!(keys(&index), [3]);
    assert!(matches!(writer.admit(4, at(1100)).unwrap(), Admitted::Duplicate(_)));
    writer.commit().unwrap();
    drop(writer);
    let index = Index::open(&path).unwrap();
    assert_eq!((keys(&index), index.snapshot().now()), (vec![3], Some(1100)));
    let mut writer = index.writer().unwrap();
    assert_eq!(writer.admit(5, at(1040)).unwrap(), Admitted::Expired);
    assert_eq!(writer.admit(3, at(1040)).unwrap(), Admitted::Expired, "the newer version stays");
    writer.commit().unwrap();
    assert_eq!(index.snapshot().get(3).unwrap().unwrap().stamp, Some(1061));
}

/// A stored document: the number of its text, and its mark and stamp.
#[derive(Clone, Copy, Debug)]
struct Copied {
    text: usize,
    is_marked: bool,
    stamp: u64,
}

/// The near relation of an index, the parameters with this relation, and whether a scan knows all hits.
type Kind = (Near, fn(Near) -> ParamsBuilder, bool);

/// Documents with equal and near-equal texts.
struct Copies {
    params: Params,
    near: Near,
    sketches: Vec<Sketch>,
    alive: BTreeMap<String, Copied>,
    now: u64,
}

impl Copies {
    fn kinds() -> [Kind; 6] {
        let resembling = Near::resembling(0.8).unwrap();
        [
            (Near::within(3), |near| Params::builder().simhash(3).near(near), true),
            (resembling, |near| Params::builder().simhash(3).minhash(4, 3).near(near).sets(), true),
            (
                resembling.or_within(3),
                |near| Params::builder().simhash(3).minhash(4, 3).near(near).sets(),
                true,
            ),
            (resembling, |near| Params::builder().minhash(4, 3).near(near).sets().bottom(8), true),
            (resembling, |near| Params::builder().simhash(3).minhash(4, 3).near(near).bottom(8), false),
            (resembling, |near| Params::builder().minhash(4, 3).near(near), false),
        ]
    }

    fn new((near, params, is_exact): Kind, seed: usize) -> Self {
        let params = params(near).words(1);
        let params = if seed.is_multiple_of(3) { params.expire_after(AGE) } else { params };
        let params = if seed % 4 == 1 && is_exact { params.marks() } else { params }.build().unwrap();
        let sketcher = twindex::Sketcher::new(&params).unwrap();
        // Two families of texts that differ in one word, a text of its own, and texts without words.
        let words = |family: usize, other: usize| {
            let word = |word: usize| {
                if word == other { "another".into() } else { format!("word{word}of{family}") }
            };
            (0..20).map(word).collect::<Vec<String>>().join(" ")
        };
        let texts = [words(0, 99), words(0, 3), words(0, 7), words(1, 99), words(1, 5), words(2, 99)];
        let texts = texts.into_iter().chain(["?", "!", ""].map(String::from));
        let sketches = texts.map(|text| sketcher.sketch(&text).unwrap()).collect();
        Self { params, near, sketches, alive: BTreeMap::new(), now: 1000 }
    }

    fn move_time(&mut self, stamp: u64) {
        self.now = self.now.max(stamp);
        if self.params.expire_after.is_some() {
            self.alive.retain(|_, copied| self.now - copied.stamp < AGE);
        }
    }

    /// Returns the key, the distance and the resemblance of each document near a text, nearest first.
    fn scan(&self, text: usize, unmarked: bool) -> Vec<(String, Option<u32>, Option<f64>)> {
        let mut near = Vec::new();
        for (key, copied) in &self.alive {
            if !(unmarked && copied.is_marked)
                && let Some((distance, resemblance)) = self.near(text, copied.text)
            {
                near.push((key.clone(), distance, resemblance));
            }
        }
        near.sort_by(|a, b| {
            let distance = |distance: Option<u32>| distance.unwrap_or(u32::MAX);
            (distance(a.1).cmp(&distance(b.1)))
                .then(b.2.unwrap_or(-1.0).total_cmp(&a.2.unwrap_or(-1.0)))
                .then(a.0.cmp(&b.0))
        });
        near
    }

    /// Returns the distance and the resemblance of two texts; `None` if they are not near.
    fn near(&self, text: usize, other: usize) -> Option<(Option<u32>, Option<f64>)> {
        self.near_by(self.near, text, other)
    }

    fn near_by(&self, near: Near, text: usize, other: usize) -> Option<(Option<u32>, Option<f64>)> {
        let (mine, other) = (&self.sketches[text], &self.sketches[other]);
        let distance = mine.fingerprint().zip(other.fingerprint()).map(|(a, b)| a.distance(b));
        let distance = distance.filter(|_| !mine.is_empty() && !other.is_empty());
        let by_set = near.threshold.map(|_| Resemblance::of_sets(mine.set(), other.set()));
        let is_close = near.within.zip(distance).is_some_and(|(within, distance)| distance <= within.into());
        let resembles = by_set.is_some_and(|known| known.at_least(near.threshold.unwrap().value()));
        (is_close || resembles).then(|| (distance, by_set.map(|known| known.value())))
    }

    fn texts(&self) -> Vec<(&String, usize)> {
        self.alive.iter().map(|(key, copied)| (key, copied.text)).collect()
    }

    fn live(&self) -> Vec<Live<'_>> {
        let live = self.alive.iter().map(|(key, copied)| Live {
            key: Key::from(key.as_str()),
            is_marked: copied.is_marked,
            priority: None,
        });
        live.collect()
    }

    /// Returns how near two texts are, the nearest first; `None` if they are not near.
    fn rank(&self, text: usize, other: usize) -> Option<(u32, std::cmp::Reverse<u64>)> {
        let (distance, resemblance) = self.near(text, other)?;
        let resemblance = resemblance.map_or(0, f64::to_bits);
        Some((distance.unwrap_or(u32::MAX), std::cmp::Reverse(resemblance)))
    }

    /// Returns the documents near a text whose marks do not count, like [`scan`](Self::scan).
    fn scan_leaders(&self, text: usize) -> Vec<(String, Option<u32>, Option<f64>)> {
        let alive = self.texts();
        let of_index = self.params.near();
        let leads = |a: usize, b: usize| self.near_by(of_index, alive[a].1, alive[b].1).is_some();
        let near = leaders_near(&self.live(), None, |at| self.rank(text, alive[at].1), leads);
        let shown = |at: usize| {
            let (distance, resemblance) = self.near(text, alive[at].1).unwrap();
            (alive[at].0.clone(), distance, resemblance)
        };
        near.into_iter().map(shown).collect()
    }

    /// Returns the orphan that a new document duplicates, and removes its mark.
    fn duplicated_orphan(&mut self, key: &str, text: usize) -> Option<(String, Option<u32>, Option<f64>)> {
        let alive = self.texts();
        let leads = |a: usize, b: usize| self.near(alive[a].1, alive[b].1).is_some();
        let at = duplicated(&self.live(), Key::from(key), |at| self.rank(text, alive[at].1), leads)?;
        let (leader, of_leader) = (alive[at].0.clone(), alive[at].1);
        let (distance, resemblance) = self.near(text, of_leader)?;
        self.alive.get_mut(&leader)?.is_marked = false;
        Some((leader, distance, resemblance))
    }
}

/// Checks that a query returns the first `limit` of all hits, and whether there are more.
fn check_limits(all: &[Hit], limited: impl Fn(usize) -> (Vec<Hit>, bool), case: &str) {
    for limit in [0, 1, 2, 5, 30] {
        let expected = &all[..limit.min(all.len())];
        let (hits, has_more) = limited(limit);
        assert_eq!(format!("{hits:?}"), format!("{expected:?}"), "{case}, limit {limit}");
        assert_eq!(has_more, limit < all.len(), "{case}, limit {limit}");
    }
}

fn shown(hits: &[Hit]) -> Vec<(String, Option<u32>, Option<f64>)> {
    let parts = |hit: &Hit| (hit.key.to_string(), hit.distance, hit.resemblance.map(|known| known.value()));
    hits.iter().map(parts).collect()
}

#[test]
#[allow(clippy::too_many_lines, reason = "an operation after the other")]
fn nearest_of_many_equal_documents_agree_with_a_scan_after_any_operations() {
    let mut duplicates = 0;
    let seeds = std::env::var("TWINDEX_CASES").map_or(36_usize, |cases| cases.parse().expect("a number"));
    for seed in 0..seeds {
        let kind = Copies::kinds()[seed % 6];
        let mut random = Random(seed as u64);
        let mut copies = Copies::new(kind, seed / 6);
        let mut committed = copies.alive.clone();
        let mut committed_now = copies.now;
        let vfs = Arc::new(ModelVfs::default());
        let index = Index::create_with(vfs, Path::new("/index"), copies.params.clone()).unwrap();
        let options = WriterOptions::default()
            .durability(Durability::None)
            .estimated(!copies.params.sets)
            .drop_duplicates(seed % 5 == 4)
            .background_merges(seed % 2 == 0)
            .memtable([40, 1 << 17][seed % 2], 1 << 26)
            .max_jump(u64::MAX);
        let mut writer = index.writer_with(options).unwrap();
        let mut is_estimated = !kind.2;
        let keys = [12, 60, 900][random.below(3)];
        // Some memtables have many equal rows.
        for number in 0..[0, 150][seed % 2] {
            let (key, text) = (format!("{:03}", number * 7 % keys), number % 2);
            let stamp = copies.params.expire_after.map(|_| copies.now);
            writer.put(key.as_str(), Document::from(&copies.sketches[text]).with_stamp(stamp)).unwrap();
            copies.alive.insert(key, Copied { text, is_marked: false, stamp: copies.now });
        }
        for step in 0..300 {
            let case = format!("seed {seed}, step {step}");
            // Most texts equal one of the first two.
            let text =
                if random.below(3) > 0 { random.below(2) } else { random.below(copies.sketches.len()) };
            let key = format!("{:03}", random.below(keys));
            let stamp =
                copies.now + random.below(3) as u64 - random.below(2) as u64 * (random.below(40) as u64);
            let is_stamped = copies.params.expire_after.is_some();
            let sketch = copies.sketches[text].clone();
            let document = Document::from(&sketch).with_stamp(is_stamped.then_some(stamp));
            match random.below(20) {
                0..=8 => {
                    let all = writer.near(document, usize::MAX).unwrap();
                    copies.move_time(stamp);
                    let is_other = |(other, _, _): &(String, Option<u32>, Option<f64>)| {
                        *other != key && copies.alive.contains_key(other)
                    };
                    let mut expected = shown(&all).into_iter().find(is_other);
                    if !is_estimated {
                        let scanned = copies.scan(text, true).into_iter().find(is_other);
                        assert_eq!(scanned, expected, "{case}");
                    }
                    let is_known = copies.alive.contains_key(&key);
                    let is_orphans = expected.is_none() && copies.params.marks;
                    if is_orphans {
                        expected = copies.duplicated_orphan(&key, text);
                    }
                    let (found, was_known) = match writer.admit(key.as_str(), document).unwrap() {
                        Admitted::New => (None, false),
                        Admitted::Updated => (None, true),
                        Admitted::Duplicate(hit) => (Some(hit), false),
                        Admitted::Known { near } => (Some(near), true),
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(was_known, is_known, "{case}");
                    if !is_orphans {
                        let of_all =
                            found.as_ref().and_then(|found| all.iter().find(|hit| hit.key == found.key));
                        assert_eq!(format!("{found:?}"), format!("{:?}", of_all.cloned()), "{case}");
                    }
                    assert_eq!(
                        found.map(|hit| shown(&[hit]).remove(0)),
                        expected,
                        "{case}: {key}, text {text}"
                    );
                    duplicates += usize::from(expected.is_some());
                    if is_known || expected.is_none() || seed % 5 != 4 {
                        let is_marked = expected.is_some() && copies.params.marks;
                        copies.alive.insert(key, Copied { text, is_marked, stamp });
                    }
                }
                9..=11 => {
                    let is_marked = copies.params.marks && random.below(2) == 0;
                    let document = if is_marked { document.as_duplicate() } else { document };
                    writer.put(key.as_str(), document).unwrap();
                    copies.alive.insert(key, Copied { text, is_marked, stamp });
                    copies.move_time(stamp);
                }
                12 => {
                    // Deletes the document that a lookup would find, or another one.
                    let first = writer.near(document, 1).unwrap().into_iter().next();
                    let key = first.map_or(key, |hit| hit.key.to_string());
                    writer.delete(key.as_str()).unwrap();
                    copies.alive.remove(&key);
                }
                13 if random.below(4) == 0 => {
                    let prefix = &key[..2];
                    writer.delete_prefix(prefix).unwrap();
                    copies.alive.retain(|key, _| !key.starts_with(prefix));
                }
                14 if kind.2 => {
                    // Another rule, for which other documents are equal, and the rule of the index again.
                    // Estimates of marked documents are not known here.
                    is_estimated =
                        copies.params.sets && !is_estimated && random.below(2) == 0 && !copies.params.marks;
                    let is_other = copies.params.sets && copies.near == kind.0;
                    copies.near = if is_other { Near::resembling(1.0).unwrap() } else { kind.0 };
                    writer.set_options(writer.options().near(copies.near).estimated(is_estimated)).unwrap();
                }
                15 => writer.set_options(writer.options().logged(random.below(3) > 0)).unwrap(),
                16 if random.below(5) == 0 => {
                    drop(writer);
                    (copies.alive, copies.now) = (committed.clone(), committed_now);
                    (copies.near, is_estimated) = (kind.0, !kind.2);
                    writer = index.writer_with(options).unwrap();
                }
                17..=19 => {
                    writer.commit().unwrap();
                    match random.below(8) {
                        0 => writer.flush().unwrap(),
                        1 => _ = writer.merge_step().unwrap(),
                        2 => _ = writer.compact().unwrap(),
                        _ => {}
                    }
                    copies.move_time(0);
                    (committed, committed_now) = (copies.alive.clone(), copies.now);
                    let snapshot = index.snapshot();
                    let run = |query: Query| {
                        let answers = query.run().unwrap();
                        (answers.hits, answers.has_more)
                    };
                    for unmarked in [false, true] {
                        let query = || {
                            let query = snapshot.near_by(&sketch, copies.near);
                            let query = if copies.params.sets { query } else { query.estimated() };
                            if unmarked { query.unmarked() } else { query }
                        };
                        let (all, _) = run(query());
                        if kind.2 {
                            let expected =
                                if unmarked { copies.scan_leaders(text) } else { copies.scan(text, false) };
                            assert_eq!(shown(&all), expected, "{case}");
                        }
                        check_limits(&all, |limit| run(query().limit(limit)), &case);
                    }
                }
                _ => {
                    let all = writer.near(document, usize::MAX).unwrap();
                    if !is_estimated {
                        assert_eq!(shown(&all), copies.scan(text, true), "{case}");
                    }
                    for limit in [1, 2, 5] {
                        let limited = writer.near(document, limit).unwrap();
                        assert_eq!(
                            format!("{limited:?}"),
                            format!("{:?}", &all[..limit.min(all.len())]),
                            "{case}"
                        );
                    }
                }
            }
        }
    }
    assert!(duplicates > 50 * seeds, "{duplicates}");
}
