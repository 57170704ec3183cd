//! Tests an index that stores sets: resemblance is exact, queries miss no near document, and `admit` decides about a
//! stream of documents as the definition requires.

use std::collections::BTreeMap;

use twindex::params::Near;
use twindex::sketch::{Nearness, Resemblance};
use twindex::{Admitted, Document, Durability, Error, Hit, Index, Params, Sketch, Sketcher, WriterOptions};

use crate::support::Random;

fn params(threshold: f64) -> Params {
    let near = Near::resembling(threshold).unwrap();
    Params::builder().words(1).minhash(4, 3).near(near).sets().marks().build().unwrap()
}

/// Returns a random text of one of several families, or a text without words. A text has most words of its family, and
/// some other words.
fn text(random: &mut Random) -> String {
    if random.below(12) == 0 {
        return ["?", "!", "? ", ""][random.below(4)].into();
    }
    let (family, size) = (random.below(6), 4 + random.below(30));
    let mut words: Vec<String> = Vec::new();
    for word in 0..size {
        match random.below(14) {
            0 => {}
            1 => words.push(format!("other{}", random.below(40))),
            _ => words.push(format!("word{}of{family}", word * 7 % 31)),
        }
    }
    words.join(" ")
}

/// The model: the set of each document, and the keys of the kept documents.
struct Definition {
    near: Nearness,
    sets: BTreeMap<String, Vec<u64>>,
    kept: Vec<String>,
}

impl Definition {
    fn resemblance(&self, a: &str, b: &str) -> f64 {
        let (a, b) = (&self.sets[a], &self.sets[b]);
        let both = a.iter().filter(|hash| b.contains(hash)).count();
        if a.is_empty() && b.is_empty() { 0.0 } else { both as f64 / (a.len() + b.len() - both) as f64 }
    }

    /// Returns the nearest kept document, and of equally near ones the one with the smallest key. `None` if no document
    /// is near; the new document is then kept.
    fn admit(&mut self, key: &str, set: &[u64]) -> Option<(String, f64)> {
        self.sets.insert(key.into(), set.to_vec());
        let near = |other: &&String| self.near.shared(set, &self.sets[*other]).is_some();
        let scored = self.kept.iter().filter(near).map(|other| (other.clone(), self.resemblance(key, other)));
        let nearest = scored.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        if nearest.is_none() {
            self.kept.push(key.into());
        }
        nearest
    }
}

fn shown(hit: &Hit) -> (String, f64) {
    let Some(Resemblance::Exact { intersection, union }) = hit.resemblance else {
        panic!("{hit:?} is no count")
    };
    (hit.key.to_string(), intersection as f64 / union as f64)
}

#[test]
fn admitted_documents_equal_the_definition_across_flushes_and_merges() {
    let mut duplicates = 0;
    for (seed, threshold) in [(1, 0.8), (2, 0.5), (3, 0.9), (4, 1.0), (5, 0.65), (6, 0.8)] {
        for drops in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            let sketcher = Sketcher::new(&params(threshold)).unwrap();
            let mut index = Index::create(&path, params(threshold)).unwrap();
            let mut random = Random(seed);
            let mut definition = Definition {
                near: Nearness::Resemblance(threshold),
                sets: BTreeMap::new(),
                kept: Vec::new(),
            };
            for round in 0..8 {
                // Alternates between segments only and the log with a memtable.
                let mut writer = index
                    .writer_with(
                        WriterOptions::default()
                            .durability(Durability::None)
                            .drop_duplicates(drops)
                            .logged(round % 3 != 2),
                    )
                    .unwrap();
                for number in 0..50 {
                    let key = format!("{:03}-{round}", random.below(1000) * 8 % 1000 + number % 8);
                    if definition.sets.contains_key(&key) {
                        continue;
                    }
                    let sketch = sketcher.sketch(&text(&mut random)).unwrap();
                    let expected = definition.admit(&key, sketch.set());
                    let found = match writer.admit(key.as_str(), &sketch).unwrap() {
                        Admitted::New => None,
                        Admitted::Duplicate(hit) => Some(shown(&hit)),
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(found, expected, "seed {seed}, drops {drops}, {key}");
                    duplicates += usize::from(expected.is_some());
                }
                writer.commit().unwrap();
                if round % 4 == 3 {
                    writer.compact().unwrap();
                }
                drop(writer);
                index = Index::open(&path).unwrap();
            }
            all_are_found(&index, &sketcher, &definition, drops, &mut random);
            let problems = twindex::verify(&twindex::RealVfs, &path, |_| ()).problems;
            assert!(problems.is_empty(), "{problems:?}");
        }
    }
    assert!(duplicates > 500, "{duplicates} duplicates");
}

/// Checks that every query returns all stored documents near it, marked or not, with their exact resemblance.
fn all_are_found(
    index: &Index,
    sketcher: &Sketcher,
    definition: &Definition,
    drops: bool,
    random: &mut Random,
) {
    let snapshot = index.snapshot();
    for _ in 0..40 {
        let sketch = sketcher.sketch(&text(random)).unwrap();
        let stored: Vec<&String> =
            definition.sets.keys().filter(|key| !drops || definition.kept.contains(key)).collect();
        let mut expected: Vec<(String, usize)> = stored
            .iter()
            .filter_map(|key| {
                Some(((*key).clone(), definition.near.shared(sketch.set(), &definition.sets[*key])?))
            })
            .collect();
        expected.sort_unstable();
        let mut found: Vec<(String, usize)> = Vec::new();
        for hit in snapshot.near(&sketch).run().unwrap().hits {
            let Some(Resemblance::Exact { intersection, .. }) = hit.resemblance else { panic!("{hit:?}") };
            found.push((hit.key.to_string(), intersection));
        }
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn marked_duplicates_do_not_affect_later_decisions() {
    let dir = tempfile::tempdir().unwrap();
    let params = params(0.8);
    let index = Index::create(dir.path().join("x"), params.clone()).unwrap();
    let sketcher = Sketcher::new(&params).unwrap();
    let of = |words: std::ops::Range<u32>| {
        let words: Vec<String> = words.map(|word| format!("w{word}")).collect();
        sketcher.sketch(&words.join(" ")).unwrap()
    };
    // b is near a (18 of 22 shared); c is near b, but not near a (16 of 24 shared).
    let (a, b, c) = (of(0..20), of(2..22), of(4..24));
    let mut writer = index.writer().unwrap();
    assert_eq!(writer.admit("a", &a).unwrap(), Admitted::New);
    assert!(matches!(writer.admit("b", &b).unwrap(), Admitted::Duplicate(_)));
    assert_eq!(writer.admit("c", &c).unwrap(), Admitted::New);
    writer.commit().unwrap();
    assert_eq!(
        index.snapshot().near(&c).run().unwrap().hits.len(),
        2,
        "what is asked for is found, marked or not"
    );
}

#[test]
fn low_thresholds_and_documents_without_a_set_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let params = params(0.8);
    let index = Index::create(dir.path().join("x"), params.clone()).unwrap();
    let sketch = Sketcher::new(&params).unwrap().sketch("a b c d e f").unwrap();
    let snapshot = index.snapshot();
    assert!(matches!(snapshot.resembling(&sketch, 0.7).run(), Err(Error::Invalid(_))));
    assert!(snapshot.resembling(&sketch, 0.7).estimated().run().is_ok());
    assert!(snapshot.resembling(&sketch, 0.9).run().is_ok());
    let mut writer = index.writer().unwrap();
    let empty = Document::from_row(&params, None);
    assert!(matches!(writer.put("a", empty), Err(Error::Invalid(_))));
    assert!(matches!(writer.put("a", empty.with_set(&[2, 1])), Err(Error::Invalid(_))));
    writer.put("a", empty.with_set(&[1, 2])).unwrap();
    let plain = Params::builder().words(1).minhash(4, 3).build().unwrap();
    let without: Sketch = Sketcher::new(&plain).unwrap().sketch("a b c").unwrap();
    assert!(matches!(writer.put("b", &without), Err(Error::Invalid(_))));
    assert!(matches!(snapshot.near(&without).run(), Err(Error::Invalid(_))));
    assert!(snapshot.near(&without).estimated().run().is_ok());
    let other = Index::create(dir.path().join("y"), plain).unwrap();
    other.writer().unwrap().put("a", &sketch).unwrap();
    assert!(matches!(
        other.writer().unwrap().put("a", Document::from(&sketch).as_duplicate()),
        Err(Error::Invalid(_))
    ));
    assert!(Params::builder().simhash(3).sets().build().is_err());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "compares the files of an index")]
fn segments_with_everything_do_not_depend_on_threads_or_memory() {
    let near = Near::resembling(0.8).unwrap();
    let params = Params::builder().words(1).simhash(3).minhash(4, 3).bottom(2).values().expire_after(1 << 40);
    let params = params.near(near).sets().suffixes().marks().priorities().build().unwrap();
    let sketcher = Sketcher::new(&params).unwrap();
    let mut random = Random(5);
    let sketches: Vec<Sketch> = (0..500).map(|_| sketcher.sketch(&text(&mut random)).unwrap()).collect();
    let mut first = None;
    for (threads, memory) in [(1, 1 << 30), (2, 1 << 30), (3, 1 << 22), (16, 1 << 30)] {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::create(dir.path().join("x"), params.clone()).unwrap();
        let options = WriterOptions::default().one_segment(true).threads(threads).memory(memory);
        let mut writer = index.writer_with(options).unwrap();
        let mut segments = Vec::new();
        for number in 0..60_000_u64 {
            let sketch = &sketches[(number.wrapping_mul(number) % 499) as usize];
            let value = number.to_le_bytes();
            let document = Document::from(sketch).with_value(&value[..(number % 8) as usize]);
            writer.put(format!("key {}", number % 50_000).as_str(), document.with_stamp(number)).unwrap();
            if number == 30_000 {
                writer.commit().unwrap();
            }
        }
        writer.commit().unwrap();
        for _ in 0..2 {
            let of = |(segment, _): (&twindex::segment::Segment, _)| std::fs::read(segment.path()).unwrap();
            segments.extend(index.snapshot().segments().map(of));
            writer.compact().unwrap();
        }
        assert_eq!(segments.len(), 3, "two segments, and then one");
        assert!(
            first.get_or_insert_with(|| segments.clone()) == &segments,
            "{threads} threads, {memory} bytes"
        );
    }
}

/// Returns random sets: parts of others, sets with frequent elements, and some with thousands of elements.
fn nested(random: &mut Random, count: usize) -> Vec<Vec<u64>> {
    let mut sets: Vec<Vec<u64>> = Vec::new();
    for number in 0..count {
        let size = if number % 50 == 0 { 6_000 } else { random.below(60) };
        let below = [30, 900, usize::MAX >> 1][random.below(3)];
        let mut set: Vec<u64> = (0..size).map(|_| (random.below(below) as u64) << 33).collect();
        if number > 0 && random.below(3) > 0 {
            let other = &sets[random.below(number)];
            set.truncate(random.below(9));
            set.extend(&other[random.below(other.len() + 1) / 2..]);
        }
        set.sort_unstable();
        set.dedup();
        sets.push(set);
    }
    sets
}

#[test]
fn containment_candidates_include_every_containing_and_contained_set() {
    let (mut wanted, mut found) = (0, 0);
    for threshold in [0.8, 0.95] {
        let mut random = Random(11);
        let all = nested(&mut random, 500);
        let near = Near::resembling(threshold).unwrap();
        let builder = Params::builder().u64_keys().minhash(1, 1).near(near).sets().suffixes().marks();
        let params = builder.build().unwrap();
        let empty = Sketcher::new(&params).unwrap().sketch("").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let index = Index::create(dir.path().join("x"), params).unwrap();
        let mut writer = index.writer().unwrap();
        for (key, set) in (0_u64..).zip(&all[..300]) {
            let document = Document::from(&empty).with_set(set);
            writer.put(key, if key % 3 == 0 { document.as_duplicate() } else { document }).unwrap();
        }
        writer.commit().unwrap();
        let snapshot = index.snapshot();
        for (segment, _) in snapshot.segments() {
            let sets: Vec<Vec<u64>> = (0..segment.documents() as u32)
                .map(|ordinal| {
                    let mut set = Vec::new();
                    segment.set(ordinal, &mut set).unwrap();
                    set
                })
                .collect();
            for share in [0.05, 0.5, 0.8, 0.9, 1.0] {
                let near = Nearness::Containment(share);
                for text in &all {
                    let mut candidates: BTreeMap<u32, usize> = BTreeMap::new();
                    let take = |ordinal, at_most| {
                        assert!(candidates.insert(ordinal, at_most).is_none(), "twice");
                        Ok(())
                    };
                    segment.containment_candidates(text, near, take).unwrap();
                    found += candidates.len();
                    for (ordinal, set) in (0..).zip(&sets) {
                        if let Some(shared) = near.shared(text, set).or_else(|| near.shared(set, text)) {
                            wanted += 1;
                            assert!(candidates.get(&ordinal) >= Some(&shared), "{share}: {ordinal}");
                        }
                    }
                }
            }
        }
    }
    assert!(wanted > 20_000 && found < 20 * wanted, "a test of something: {wanted} {found}");
}
