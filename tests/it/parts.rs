//! Tests searches by parts of codes against a comparison of all documents.
#![allow(clippy::disallowed_methods, reason = "reads the files of an index from outside")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use twindex::format::attached::Attached;
use twindex::format::fields::{self, Fields};
use twindex::segment::{Records, Segment};
use twindex::store::verify::verify;
use twindex::{Code, Document, Index, Key, Params, RealVfs, Writer, WriterOptions};
use twindex_kernel::splitmix::SplitMix;

use crate::support::{bytes_with_parts, place};

/// How the bits of codes are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Uniform,
    /// A third are equal, and another third are near them.
    Repeated,
    /// A bit is that before it in seven cases of eight.
    Correlated,
}

fn code(random: &mut SplitMix, bits: usize, kind: Kind) -> Code {
    let mut words: Vec<u64> = (0..bits / 64).map(|_| random.next()).collect();
    let which = random.next() % 3;
    if kind == Kind::Repeated && which < 2 {
        words.fill(0x0123_4567_89AB_CDEF);
        for _ in 0..which * (random.next() % 9) {
            let bit = random.next() as usize % bits;
            words[bit / 64] ^= 1 << (bit % 64);
        }
    }
    if kind == Kind::Correlated {
        let mut last = random.next() & 1;
        for word in &mut words {
            *word = (0..64).fold(0, |word, _| {
                last ^= u64::from(random.next().is_multiple_of(8));
                word << 1 | last
            });
        }
    }
    Code::of_words(&words).unwrap()
}

fn flipped(random: &mut SplitMix, code: Code, count: usize) -> Code {
    let mut words = code.words().to_vec();
    for _ in 0..count {
        let bit = random.next() as usize % code.bits();
        words[bit / 64] ^= 1 << (bit % 64);
    }
    Code::of_words(&words).unwrap()
}

/// Returns a segment of these codes. With priorities, the fields of the documents have several lengths.
fn segment(codes: &[Code], parts: usize, priorities: bool) -> Segment {
    let bits = codes[0].bits() as u16;
    let params = Params::builder().u64_keys().codes(bits, bits / 8);
    let params = if priorities { params.priorities() } else { params }.build().unwrap();
    let (mut records, mut encoded) = (Records::new(&params), Vec::new());
    for (number, code) in (0..).zip(codes) {
        let priority = (priorities && number % 3 == 0).then_some(number);
        fields::encode(&params, false, code.words(), priority, &mut encoded);
        let attached = Attached { fields: Fields::of(&encoded), ..Attached::default() };
        records.push_with(Key::U64(number), None, attached).unwrap();
    }
    Segment::from_bytes(bytes_with_parts(&records, parts), place()).unwrap()
}

#[test]
fn search_by_parts_finds_what_a_comparison_of_all_finds() {
    let cuts = [(64, 2), (64, 5), (128, 4), (128, 9), (192, 11), (256, 8), (256, 11), (384, 17), (512, 23)];
    let (mut by_parts, mut by_scan) = (0, 0);
    for (seed, (bits, parts)) in (0..).zip(cuts) {
        for kind in [Kind::Uniform, Kind::Repeated, Kind::Correlated] {
            let mut random = SplitMix(seed);
            let codes: Vec<Code> = (0..3000).map(|_| code(&mut random, bits, kind)).collect();
            let segment = segment(&codes, parts, seed % 2 == 0);
            assert_eq!(segment.part_count(), parts);
            assert!(segment.verify(|_| ()).is_empty());
            let queries: Vec<Code> = (0..16)
                .map(|query| match query % 4 {
                    0 => code(&mut random, bits, kind),
                    near => flipped(&mut random, codes[query * 100], [0, 0, bits / 32, bits / 12][near]),
                })
                .collect();
            for within in [0, 1, 2, 3, 5, bits / 16, bits / 12, bits / 8, bits / 4, bits / 2, bits] {
                let within = within as u32;
                let mut expected: Vec<(usize, u32, u32)> = Vec::new();
                for (query, of) in queries.iter().enumerate() {
                    let near = (0..).zip(&codes).map(|(ordinal, code)| (query, ordinal, code.distance(of)));
                    expected.extend(near.filter(|&(.., distance)| distance <= within));
                }
                for together in [1, queries.len()] {
                    let mut found = Vec::new();
                    for (first, some) in (0..).step_by(together).zip(queries.chunks(together)) {
                        let hit = |query: usize, ordinal, distance| {
                            found.push((first + query, ordinal, distance));
                            Ok(ControlFlow::Continue(()))
                        };
                        segment.search_codes(some, within, hit).unwrap();
                    }
                    let of_query = |query| found.iter().filter(move |hit| hit.0 == query);
                    assert!((0..queries.len()).all(|query| of_query(query).is_sorted()));
                    found.sort_unstable();
                    assert_eq!(found, expected, "{bits} {parts} {kind:?} {within} {together}");
                    *if segment.uses_parts(together, within) { &mut by_parts } else { &mut by_scan } += 1;
                }
                // A query that ends early.
                let mut first = None;
                let hit = |_, ordinal, distance| {
                    assert_eq!(first.replace((0, ordinal, distance)), None);
                    Ok(ControlFlow::Break(()))
                };
                segment.search_codes(&queries[..1], within, hit).unwrap();
                assert_eq!(first, expected.first().copied().filter(|hit| hit.0 == 0));
            }
        }
    }
    assert!(by_parts > 100 && by_scan > 100, "{by_parts} {by_scan}");
}

fn put_all(writer: &mut Writer, codes: &BTreeMap<u64, Code>) {
    for (&key, &code) in codes {
        writer.put(key, Document::from(code)).unwrap();
    }
    writer.commit().unwrap();
}

fn segment_file(index: &Index) -> Vec<u8> {
    let snapshot = index.snapshot();
    assert_eq!(snapshot.segments().len(), 1);
    let (segment, deleted) = snapshot.segments().next().unwrap();
    assert!(segment.part_count() > 0 && deleted.is_empty());
    std::fs::read(segment.path()).unwrap()
}

#[test]
fn segment_of_many_codes_has_parts_after_each_flush_and_merge() {
    let mut random = SplitMix(7);
    let params = Params::builder().u64_keys().codes(64, 3).build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str| Index::create(dir.path().join(name), params.clone()).unwrap();
    let options = || WriterOptions::default().background_merges(false);
    let index = create("merged");
    let mut writer = index.writer_with(options().logged(false)).unwrap();
    let mut codes: BTreeMap<u64, Code> =
        (0..70_000).map(|key| (key * 3, code(&mut random, 64, Kind::Uniform))).collect();
    put_all(&mut writer, &codes);
    // Some documents are replaced by near ones, some deleted, and some added.
    let keys: Vec<u64> = codes.keys().copied().step_by(50).collect();
    let mut changed = BTreeMap::new();
    for (place, key) in keys.into_iter().enumerate() {
        if place % 4 == 0 {
            writer.delete(key).unwrap();
            codes.remove(&key);
        } else {
            changed.insert(key + place as u64 % 2, flipped(&mut random, codes[&key], place % 4));
        }
    }
    put_all(&mut writer, &changed);
    codes.extend(changed);
    let check = |index: &Index| {
        let queries: Vec<Code> = codes.values().copied().step_by(3001).collect();
        let snapshot = index.snapshot();
        for within in [0, 3, 5, 12] {
            let found = snapshot.codes_within(&queries, within, usize::MAX).unwrap();
            for (query, answers) in queries.iter().zip(found) {
                let all = codes.iter().map(|(&key, code)| (code.distance(query), key));
                let mut expected: Vec<_> = all.filter(|&(distance, _)| distance <= within).collect();
                expected.sort_unstable();
                let keys = |hit: &twindex::Hit| (hit.distance.unwrap(), hit.key.as_u64().unwrap());
                assert_eq!(answers.hits.iter().map(keys).collect::<Vec<_>>(), expected);
                let one = snapshot.within(*query, within).run().unwrap();
                assert_eq!(one.hits.iter().map(keys).collect::<Vec<_>>(), expected);
            }
        }
    };
    let (large, _) = index.snapshot().segments().next().map(|(s, d)| (s.part_count(), d.len())).unwrap();
    assert!(large > 0);
    check(&index);
    writer.compact().unwrap();
    drop(writer);
    check(&index);
    assert!(verify(&RealVfs, &dir.path().join("merged"), |_| ()).problems.is_empty());
    let merged = segment_file(&index);
    // The same documents in one commit give the same bytes, whatever the threads and the memory.
    let once = create("once");
    put_all(&mut once.writer_with(options().logged(false).threads(3)).unwrap(), &codes);
    assert!(segment_file(&once) == merged, "another segment");
    let small = create("small");
    let mut writer = small.writer_with(options().memory(8 << 20)).unwrap();
    put_all(&mut writer, &codes);
    writer.compact().unwrap();
    assert!(segment_file(&small) == merged, "another segment");
}
