//! Tests a million random fingerprints with planted neighbours at every distance from 0 to 12 of known queries. Each design
//! must find all neighbours within its radius and no others. For some queries, the results must also equal the results of a
//! scan.
//!
//! By default, only some of the queries run for each radius, which takes seconds; with `TWINDEX_ANSWERS=all`, all of them
//! run. Only one segment is in memory at a time, so that the test needs at most 200 MB.

use std::ops::ControlFlow;

use twindex::design::DesignName;
use twindex::segment::{SearchOptions, SearchScratch, Segment};
use twindex::sys::RealVfs;

use crate::support::near::{self, FARTHEST, NearOrdinals, expected, flip, scan};
use crate::support::random::Random;

/// Number of fingerprints.
const FINGERPRINTS: usize = 1_000_000;
const QUERIES: usize = 2000;
const PLANTED: u32 = 12;
/// Number of queries whose results are also compared with the results of a scan.
const SCANNED: usize = 50;

struct Set {
    fingerprints: Vec<u64>,
    queries: Vec<u64>,
    /// For each query, the ordinals of its planted neighbours, indexed by distance.
    planted: Vec<[u32; PLANTED as usize + 1]>,
    /// For each of the first queries, all documents near it.
    near: Vec<NearOrdinals>,
}

impl Set {
    fn new() -> Self {
        let mut random = Random(FINGERPRINTS as u64);
        let mut fingerprints: Vec<u64> = (0..FINGERPRINTS).map(|_| random.next()).collect();
        // Each fingerprint is replaced at most once, so that no planted neighbour overwrites another.
        let mut places: Vec<u32> = (0..FINGERPRINTS as u32).collect();
        let mut next = 0;
        let (mut queries, mut planted) = (Vec::new(), Vec::new());
        for _ in 0..QUERIES {
            let query = random.next();
            planted.push(std::array::from_fn(|distance| {
                let other = next + random.below(FINGERPRINTS - next);
                places.swap(next, other);
                next += 1;
                fingerprints[places[next - 1] as usize] = flip(&mut random, query, distance as u32);
                places[next - 1]
            }));
            queries.push(query);
        }
        let near = queries[..SCANNED].iter().map(|&query| scan(&fingerprints, query)).collect();
        Self { fingerprints, queries, planted, near }
    }

    /// Runs these queries in batches of 16, and checks the results.
    fn check(&self, segment: &Segment, within: u32, queries: std::ops::Range<usize>) {
        let design = segment.scheme().unwrap().design.to_string();
        let case = format!("{} within {within}", segment.scheme().unwrap());
        let mut scratch = SearchScratch::default();
        for first in queries.clone().step_by(16) {
            let batch = first..queries.end.min(first + 16);
            let mut found = vec![NearOrdinals::new(); batch.len()];
            let each = |query: usize, ordinal, distance| {
                found[query].push((ordinal, distance));
                Ok(ControlFlow::Continue(()))
            };
            segment
                .search_documents(
                    &self.queries[batch.clone()],
                    SearchOptions::within(within),
                    &mut scratch,
                    each,
                )
                .unwrap();
            for (number, mut found) in batch.zip(found) {
                found.sort_unstable();
                let query = self.queries[number];
                // Each match must have the correct distance, and no document may be found twice.
                for pair in found.windows(2) {
                    assert!(pair[0].0 < pair[1].0, "{query:016x}, {case}: {pair:?}");
                }
                for &(ordinal, distance) in &found {
                    let actual = (self.fingerprints[ordinal as usize] ^ query).count_ones();
                    assert!(distance == actual && actual <= within, "{query:016x}, {case}: {ordinal}");
                }
                for (distance, &ordinal) in (0..).zip(&self.planted[number]) {
                    let is_found = found.binary_search(&(ordinal, distance)).is_ok();
                    assert_eq!(is_found, distance <= within, "{query:016x}, {case}: planted at {distance}");
                }
                if let Some(near) = self.near.get(number) {
                    assert_eq!(found, expected(&design, &self.fingerprints, query, near, within), "{case}");
                }
            }
        }
    }
}

#[test]
fn planted_neighbours_are_found_exactly_within_the_radius() {
    let all = std::env::var_os("TWINDEX_ANSWERS").is_some_and(|value| value == "all");
    let schemes: &[(&str, &str)] = &[
        ("blocks-4", "planes+2"),
        ("blocks-4", "planes+3"),
        ("blocks-2", "planes"),
        ("blocks-2", "compact"),
        ("blocks-3", "planes+3"),
        ("choose-5-2", "planes+2"),
        ("choose-6-3", "planes+3"),
        ("choose-6-3", "plain"),
    ];
    let set = Set::new();
    for (design, codecs) in schemes {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("000001.seg");
        let segment = near::segment_of(&RealVfs, &path, &set.fingerprints, design, codecs);
        let probes = twindex::design::Design::new(design.parse().unwrap()).unwrap();
        for within in 0..=design.parse::<DesignName>().unwrap().within_max().min(FARTHEST) {
            // A query with 400 probes takes as long as a hundred queries with four, so fewer queries run. Each radius
            // starts with a different query.
            let cost = probes.probes(within, FINGERPRINTS as u64).unwrap();
            let count = if all { QUERIES } else { (200_000 / cost as usize).clamp(2 * SCANNED, QUERIES) };
            set.check(&segment, within, 0..SCANNED.min(count));
            let first = within as usize * 131 % (QUERIES - count + 1);
            set.check(&segment, within, first..first + count);
        }
        let too_far = design.parse::<DesignName>().unwrap().within_max() + 1;
        assert!(segment.within(0, too_far, |_| ()).is_err(), "{design} within {too_far}");
    }
}
