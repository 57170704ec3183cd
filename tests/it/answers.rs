//! Tests that queries return exactly the results of a scan of all documents. The exact designs are compared with brute
//! force for every radius, on uniform, clustered and adversarial fingerprints, at sizes on both sides of each change of
//! layout. Free designs guarantee less; they must return exactly the documents of their definition.
//!
//! There are too many combinations of designs, codecs, probe strategies, query modes and sizes to test all of them in
//! every run. By default, the tests run a subset in which every two values of any two options occur together; with
//! `TWINDEX_ANSWERS=all`, they run all combinations. They use the best vector instructions of the machine, or the ones
//! that `TWINDEX_KERNEL` selects.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use twindex::design::DesignName;
use twindex::format::table::Probe;
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Error, Key};

use crate::support::memory::MemoryVfs;
use crate::support::near::{
    self, CODECS, DESIGNS, FARTHEST, NearOrdinals, clustered, expected, hot, repeated, scan, uniform,
};
use crate::support::random::Random;

/// The probe strategies to test; `None` is the default strategy of the codec.
const PROBES: [Option<Probe>; 4] =
    [None, Some(Probe::Directory), Some(Probe::Interpolation), Some(Probe::Binary)];

/// The number of queries that are run together, and whether each runs to its end.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// One query at a time; matches are looked up in the posting lists of their fingerprints.
    Alone,
    /// Batches of this number of queries.
    Together(usize),
    /// Batches of sixteen queries; every other query stops at its first match.
    Ending,
}

const WAYS: [Mode; 5] =
    [Mode::Alone, Mode::Together(2), Mode::Together(16), Mode::Together(100), Mode::Ending];

const SIZES: [usize; 10] = [0, 1, 3, 15, 16, 17, 100, 1000, 5000, 40_000];

fn all_is_asked_for() -> bool {
    std::env::var_os("TWINDEX_ANSWERS").is_some_and(|value| value == "all")
}

/// A set of fingerprints, queries, and for each query all documents near it.
struct Set {
    name: String,
    fingerprints: Vec<u64>,
    queries: Vec<u64>,
    near: Vec<NearOrdinals>,
}

impl Set {
    fn new(name: &str, fingerprints: Vec<u64>, queries: usize) -> Self {
        let queries = near::queries(&fingerprints, queries);
        let near = queries.iter().map(|&query| scan(&fingerprints, query)).collect();
        Self { name: format!("{} {name}", fingerprints.len()), fingerprints, queries, near }
    }

    fn in_memory(&self, design: &str, codecs: &str) -> Segment {
        near::segment_of(&MemoryVfs::default(), Path::new("000001.seg"), &self.fingerprints, design, codecs)
    }

    fn expected(&self, design: &str, query: usize, within: u32) -> NearOrdinals {
        expected(design, &self.fingerprints, self.queries[query], &self.near[query], within)
    }
}

/// Returns whether all tables support this probe strategy.
fn has_probe(segment: &Segment, probe: Option<Probe>) -> bool {
    let codecs = segment.scheme().unwrap().codecs.to_string();
    match probe {
        None => true,
        Some(Probe::Directory) => !codecs.starts_with("manku"),
        Some(_) => codecs == "manku" || codecs == "plain",
    }
}

/// Runs all queries of the set on `segment`, and compares the results with a scan of all documents.
fn check(set: &Set, segment: &Segment, scratch: &mut SearchScratch, ask: SearchOptions, mode: Mode) {
    let design = segment.scheme().unwrap().design.to_string();
    let case = format!("{}, {}, {mode:?}, {ask:?}", set.name, segment.scheme().unwrap());
    let wanted = |query: usize| set.expected(&design, query, ask.within);
    if let Mode::Alone = mode {
        for (number, &query) in set.queries.iter().enumerate() {
            let (mut found, mut near) = (NearOrdinals::new(), Vec::new());
            let each = |asked, hit| {
                assert_eq!(asked, 0, "{case}");
                near.push(hit);
                Ok(ControlFlow::Continue(()))
            };
            segment.search(&[query], ask, scratch, each).unwrap();
            for hit in near {
                assert_eq!(segment.fingerprint(hit.rank).unwrap(), hit.fingerprint, "{case}");
                assert_eq!((hit.fingerprint ^ query).count_ones(), hit.distance, "{case}");
                segment.postings(hit.rank, |ordinal| found.push((ordinal, hit.distance))).unwrap();
            }
            found.sort_unstable();
            assert_eq!(found, wanted(number), "{query:016x}, {case}");
        }
        return;
    }
    let (together, ending) = match mode {
        Mode::Together(together) => (together, false),
        _ => (16, true),
    };
    // The last batch is incomplete, or repeats queries of the same batch.
    let numbers: Vec<usize> = (0..=set.queries.len().max(together)).map(|i| i % set.queries.len()).collect();
    for batch in numbers.chunks(together) {
        let queries: Vec<u64> = batch.iter().map(|&number| set.queries[number]).collect();
        let mut found = vec![NearOrdinals::new(); batch.len()];
        if ending {
            let mut ended = vec![false; batch.len()];
            let each = |query: usize, hit: twindex::segment::near::FingerprintMatch| {
                assert!(!ended[query], "an answer after the end, {case}");
                segment.postings(hit.rank, |ordinal| found[query].push((ordinal, hit.distance)))?;
                ended[query] = query.is_multiple_of(2);
                Ok(if ended[query] { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            segment.search(&queries, ask, scratch, each).unwrap();
        } else {
            let each = |query: usize, ordinal, distance| {
                found[query].push((ordinal, distance));
                Ok(ControlFlow::Continue(()))
            };
            segment.search_documents(&queries, ask, scratch, each).unwrap();
        }
        for (place, (&number, mut found)) in batch.iter().zip(found).enumerate() {
            let mut wanted = wanted(number);
            found.sort_unstable();
            if ending && place % 2 == 0 {
                assert_eq!(found.is_empty(), wanted.is_empty(), "{:016x}, {case}", queries[place]);
                if let Some(&(first, _)) = found.first() {
                    let one = set.fingerprints[first as usize];
                    wanted.retain(|&(ordinal, _)| set.fingerprints[ordinal as usize] == one);
                }
            }
            assert_eq!(found, wanted, "{:016x}, {case}", queries[place]);
        }
    }
}

/// Tests all radii. A radius that the design does not support must be refused with the name of the design, and a probe
/// strategy that the codec does not support with the name of the strategy.
fn check_all_radii(
    set: &Set,
    segment: &Segment,
    scratch: &mut SearchScratch,
    probe: Option<Probe>,
    mode: Mode,
) {
    let design = segment.scheme().unwrap().design;
    for within in 0..=FARTHEST + 1 {
        let ask = SearchOptions { probe, ..SearchOptions::within(within) };
        let answered = within <= design.within_max();
        if answered && has_probe(segment, probe) {
            check(set, segment, scratch, ask, mode);
            continue;
        }
        let never = |_, _| -> twindex::Result<ControlFlow<()>> { panic!("an answer to {ask:?}") };
        let error = segment.search(&[0, 1], ask, scratch, never).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        let reason = match within {
            _ if answered => format!("{:?}", probe.unwrap()),
            0..=FARTHEST => design.to_string(),
            _ => FARTHEST.to_string(),
        };
        assert!(error.to_string().contains(&reason), "{error} names no {reason}");
    }
}

/// Indices into the lists of sizes, designs, codecs, probe strategies and query modes.
type Case = [usize; 5];

/// Returns cases such that every two values of any two options occur together, or all cases.
fn cases(first: usize) -> BTreeSet<Case> {
    let counts = [SIZES.len(), DESIGNS.len(), CODECS.len(), PROBES.len(), WAYS.len()];
    let total: usize = counts.iter().product();
    let mut seen = HashSet::new();
    let mut chosen = BTreeSet::new();
    for number in 0..total {
        // The step is prime, so all cases are visited, and consecutive cases differ in every option.
        let mut rest = (first + number * 100_003) % total;
        let case: Case = counts.map(|count| {
            let value = rest % count;
            rest /= count;
            value
        });
        let pairs = (0..5).flat_map(|a| (0..a).map(move |b| (a, b, case[a], case[b])));
        let new = pairs.filter(|&pair| seen.insert(pair)).count();
        if new > 0 || all_is_asked_for() {
            chosen.insert(case);
        }
    }
    chosen
}

fn check_cases(name: &str, first: usize, fingerprints: fn(usize) -> Vec<u64>) {
    let mut sets: BTreeMap<usize, Set> = BTreeMap::new();
    let mut built: Option<([usize; 3], Segment)> = None;
    let mut scratch = SearchScratch::default();
    let cases = cases(first);
    println!("{name}: {} cases", cases.len());
    for [size, design, codec, probe, mode] in cases {
        let set = sets.entry(size).or_insert_with(|| Set::new(name, fingerprints(SIZES[size]), 20));
        let (tables, build) = ([size, design, codec], || set.in_memory(DESIGNS[design], CODECS[codec]));
        if built.as_ref().is_none_or(|(of, _)| *of != tables) {
            let segment = build();
            assert_eq!(segment.verify(|_| ()).len(), 0, "{} {}", set.name, segment.scheme().unwrap());
            built = Some((tables, segment));
        }
        let segment = &built.as_ref().unwrap().1;
        check_all_radii(set, segment, &mut scratch, PROBES[probe], WAYS[mode]);
    }
    let hits: usize = sets.values().flat_map(|set| &set.near).map(Vec::len).sum();
    assert!(hits > 100, "{hits} answers to compare");
}

#[test]
fn test_cases_cover_every_pair_of_option_values() {
    let chosen = cases(0);
    let counts = [SIZES.len(), DESIGNS.len(), CODECS.len(), PROBES.len(), WAYS.len()];
    for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let combinations: BTreeSet<_> = chosen.iter().map(|case| (case[a], case[b])).collect();
        assert_eq!(combinations.len(), counts[a] * counts[b]);
    }
}

#[test]
fn answers_on_uniform_fingerprints_equal_brute_force() {
    check_cases("uniform", 0, uniform);
}

#[test]
fn answers_on_clustered_fingerprints_equal_brute_force() {
    check_cases("clustered", 11, clustered);
}

#[test]
fn answers_on_repeated_fingerprints_equal_brute_force() {
    check_cases("repeated", 222, repeated);
}

#[test]
fn answers_on_hot_buckets_equal_brute_force() {
    check_cases("hot", 3333, hot);
}

/// From 2^19 fingerprints on, the prefix of a table covers all 16 bits of one of four blocks, so there is no plane for that
/// block. From 2^20 on, longer blocks have more than 16 bits, the width of the pointer in an entry.
const LARGE: [(usize, &[(&str, &str)]); 3] = [
    ((1 << 19) - 1, &[("blocks-4", "planes"), ("blocks-4", "planes+3"), ("choose-5-2", "compact")]),
    (
        1 << 19,
        &[
            ("blocks-4", "planes"),
            ("blocks-4", "planes+2"),
            ("blocks-3", "compact+2"),
            ("reversed-20", "plain"),
        ],
    ),
    (
        (1 << 20) + 5,
        &[
            ("blocks-2", "planes"),
            ("blocks-3", "planes"),
            ("blocks-3", "planes+4"),
            ("blocks-4", "planes+3"),
            ("choose-5-2", "planes+4"),
            ("nested-4-4", "plain+2"),
            ("blocks-3", "manku"),
            ("random-4-10-7", "planes+2"),
        ],
    ),
];

#[test]
fn answers_around_layout_changes_of_large_tables_equal_brute_force() {
    for (n, schemes) in LARGE {
        // All fingerprints are distinct, so that each has its own row in the table; some are near each other.
        let mut random = Random(n as u64);
        let mut values: Vec<u64> = Vec::with_capacity(n + n / 8);
        while values.len() < n + n / 8 {
            let value = match values.get(random.below(values.len().max(1))) {
                Some(&near) if random.below(4) == 0 => flip_some(&mut random, near),
                _ => random.next(),
            };
            values.push(value);
        }
        values.sort_unstable();
        values.dedup();
        for last in (n..values.len()).rev() {
            values.swap_remove(random.below(last));
        }
        let set = Set::new("large", values, 24);
        let dir = tempfile::tempdir().unwrap();
        for (number, &(design, codecs)) in schemes.iter().enumerate() {
            let path = dir.path().join(format!("{number:06}.seg"));
            let segment = near::segment_of(&RealVfs, &path, &set.fingerprints, design, codecs);
            assert_eq!(segment.distinct_fingerprints(), n as u64);
            let mut scratch = SearchScratch::default();
            for mode in [Mode::Alone, Mode::Together(16), Mode::Ending] {
                check_all_radii(&set, &segment, &mut scratch, None, mode);
            }
        }
    }
}

fn flip_some(random: &mut Random, value: u64) -> u64 {
    let bits = random.below(13) as u32;
    near::flip(random, value, bits)
}

/// Generates fingerprints as cluster centres and points around them, a form that proptest can shrink.
fn sets() -> impl Strategy<Value = Vec<u64>> {
    let crowd = (any::<u64>(), 0_u32..65, 0_usize..600, any::<u64>());
    prop::collection::vec(crowd, 0..8).prop_map(|crowds| {
        let around = |(centre, fixed, count, seed): (u64, u32, usize, u64)| {
            let mut random = Random(seed);
            let free = u64::MAX.checked_shr(fixed).unwrap_or(0).rotate_left(seed as u32 % 64);
            (0..count).map(move |_| centre ^ random.next() & free)
        };
        crowds.into_iter().flat_map(around).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_on_generated_fingerprints_equal_brute_force(
        fingerprints in sets(),
        design in prop::sample::select(&DESIGNS[..]),
        codecs in prop::sample::select(&CODECS[..]),
        within in 0..=FARTHEST,
        asked in any::<u64>(),
        near in any::<prop::sample::Index>(),
        differing in 0_u32..12,
    ) {
        let mut queries = vec![asked];
        if !fingerprints.is_empty() {
            queries.push(near::flip(&mut Random(asked), *near.get(&fingerprints), differing));
        }
        let near = queries.iter().map(|&query| scan(&fingerprints, query)).collect();
        let set = Set { name: "any".into(), fingerprints, queries, near };
        let segment = set.in_memory(design, codecs);
        if within <= design.parse::<DesignName>().unwrap().within_max() {
            let mut scratch = SearchScratch::default();
            for mode in [Mode::Alone, Mode::Together(16), Mode::Ending] {
                check(&set, &segment, &mut scratch, SearchOptions::within(within), mode);
            }
        }
    }
}

#[test]
fn order_of_input_does_not_change_the_segment() {
    let fingerprints = clustered(500);
    let forward: Vec<usize> = (0..500).collect();
    let mut shuffled = forward.clone();
    let mut random = Random(1);
    for i in (1..500).rev() {
        shuffled.swap(i, random.below(i + 1));
    }
    for (number, design) in DESIGNS.iter().enumerate() {
        let params = near::params(design, CODECS[number % CODECS.len()]);
        let file = |order: &[usize]| {
            let (files, path) = (MemoryVfs::default(), Path::new("a.seg"));
            let mut records = Records::new(&params);
            for &i in order {
                let kept = Kept { fingerprint: fingerprints[i], ..Kept::default() };
                records.push(Key::U64(3 * i as u64), Some(kept)).unwrap();
            }
            build::build(&records, &files, Path::new("")).unwrap().publish(path).unwrap();
            files.get(path)
        };
        assert!(file(&forward) == file(&shuffled), "{design}");
    }
}
