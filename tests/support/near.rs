//! Sets of fingerprints, segments of them with any tables, and the expected answers: found by brute force for exact designs,
//! and computed from the definition for free designs.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::path::Path;

use twindex::design::DesignName;
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build};
use twindex::sys::Vfs;
use twindex::{Key, Params};

use super::random::Random;

/// Every kind of design. `expansion` probes all values within the radius, but at most as many as there are fingerprints.
pub const DESIGNS: [&str; 16] = [
    "blocks-1",
    "blocks-2",
    "blocks-3",
    "blocks-4",
    "blocks-5",
    "blocks-6",
    "blocks-7",
    "blocks-8",
    "choose-4-2",
    "choose-5-2",
    "choose-6-3",
    "nested-4-4",
    "expansion",
    "prefix-12",
    "reversed-20",
    "random-4-10-7",
];

/// Every codec of complete and partial tables.
pub const CODECS: [&str; 11] = [
    "planes",
    "compact",
    "manku",
    "plain",
    "planes+2",
    "planes+3",
    "planes+4",
    "compact+2",
    "compact+3",
    "manku+2",
    "plain+2",
];

/// The largest radius of a query.
pub const FARTHEST: u32 = 10;

/// Ordinals of documents and their distances from a query.
pub type NearOrdinals = Vec<(u32, u32)>;

/// Returns `value` with exactly `bits` bits flipped.
pub fn flip(random: &mut Random, value: u64, bits: u32) -> u64 {
    let mut mask = 0_u64;
    while mask.count_ones() < bits {
        mask |= 1 << random.below(64);
    }
    value ^ mask
}

pub fn uniform(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64);
    (0..n).map(|_| random.next()).collect()
}

/// Returns `n` fingerprints. Six in ten differ from an earlier one in at most 12 bits.
pub fn clustered(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64 + 1);
    let mut values: Vec<u64> = Vec::with_capacity(n);
    for _ in 0..n {
        let value = if values.is_empty() || random.below(10) < 4 {
            random.next()
        } else {
            let (at, bits) = (random.below(values.len()), random.below(13) as u32);
            flip(&mut random, values[at], bits)
        };
        values.push(value);
    }
    values
}

/// Returns `n` fingerprints, many of them repeated, that fall into few buckets of every table.
pub fn repeated(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64 + 2);
    let few = [0, u64::MAX, 0x0000_FFFF_0000_FFFF, 0x0001_0001_0001_0001];
    (0..n).map(|_| few[random.below(4)] ^ (u64::from(random.below(3) == 0) << random.below(64))).collect()
}

/// Returns distinct fingerprints, most of them in one bucket of some table. Half have the same first bits, a quarter the
/// same last bits, an eighth the same middle bits, and some are at both ends of the range.
pub fn hot(n: usize) -> Vec<u64> {
    let mut random = Random(n as u64 + 3);
    let value = |i: usize, random: &mut Random| match i % 16 {
        0..8 => random.next() >> 16 | 0xBEEF << 48,
        8..12 => random.next() << 20 | 0xF_00D5,
        12..14 => random.next() & !0x0000_FFFF_FFFF_0000 | 0x0000_5555_AAAA_0000,
        14 => [0, u64::MAX][i / 16 % 2] ^ 1_u64.rotate_left(i as u32 / 32) ^ (i as u64 / 2048) << 30,
        _ => random.next(),
    };
    (0..n).map(|i| value(i, &mut random)).collect()
}

/// Returns queries, some of them near stored fingerprints.
pub fn queries(fingerprints: &[u64], count: usize) -> Vec<u64> {
    let mut random = Random(7);
    let query = |round: usize| match (round % 4, fingerprints.len()) {
        (0, _) | (_, 0) => [0, u64::MAX, random.next(), random.next()][round / 4 % 4],
        (_, n) => {
            let (at, bits) = (random.below(n), random.below(12) as u32);
            flip(&mut random, fingerprints[at], bits)
        }
    };
    (0..count).map(query).collect()
}

/// Returns the parameters of an index with these tables and a radius that the design supports.
pub fn params(design: &str, codecs: &str) -> Params {
    let name: DesignName = design.parse().unwrap();
    let builder = Params::builder().u64_keys().simhash(name.within_max().min(3) as u8);
    builder.tables(design.parse().unwrap(), codecs.parse().unwrap()).build().unwrap()
}

/// Builds and opens a segment of these fingerprints. The ordinal of a document is the index of its fingerprint.
pub fn segment_of(vfs: &dyn Vfs, path: &Path, fingerprints: &[u64], design: &str, codecs: &str) -> Segment {
    let mut records = Records::new(&params(design, codecs));
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        let kept = Kept { fingerprint, ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    build::build(&records, vfs, path.parent().unwrap()).unwrap().publish(path).unwrap();
    let segment = Segment::open(vfs, path).unwrap();
    assert_eq!(segment.scheme().unwrap().design.to_string(), design);
    segment
}

/// Compares all fingerprints with the query; returns all documents within [`FARTHEST`].
pub fn scan(fingerprints: &[u64], query: u64) -> NearOrdinals {
    let distances = fingerprints.iter().map(|&fingerprint| (fingerprint ^ query).count_ones());
    (0..).zip(distances).filter(|&(_, distance)| distance <= FARTHEST).collect()
}

/// Returns, for a free design, the order of the bits in each table, most significant first, and the length of the prefix
/// in bits. `None` for an exact design.
pub fn free_orders(design: &str) -> Option<(Vec<Vec<u32>>, usize)> {
    let own: Vec<u32> = (0..64).collect();
    match design.parse().unwrap() {
        DesignName::Prefix(prefix) => Some((vec![own], prefix.into())),
        DesignName::Reversed(prefix) => {
            let reversed = own.iter().rev().copied().collect();
            Some((vec![own, reversed], prefix.into()))
        }
        DesignName::Random { tables, prefix, seed } => {
            let mut random = Random(seed);
            let mut drawn = || {
                let mut bits = own.clone();
                for last in (1..64).rev() {
                    bits.swap(last, ((u128::from(random.next()) * (last as u128 + 1)) >> 64) as usize);
                }
                bits
            };
            let others: Vec<Vec<u32>> = (1..tables).map(|_| drawn()).collect();
            Some(([vec![own.clone()], others].concat(), prefix.into()))
        }
        _ => None,
    }
}

/// Returns the matches within a radius that the design must find; `all` are the matches of [`scan`].
pub fn expected(
    design: &str,
    fingerprints: &[u64],
    query: u64,
    all: &NearOrdinals,
    within: u32,
) -> NearOrdinals {
    let mut near: NearOrdinals = all.iter().copied().filter(|&(_, distance)| distance <= within).collect();
    if let Some((orders, prefix)) = free_orders(design) {
        let agree = |difference: u64| {
            let bit = |bit: &u32| difference >> (63 - bit) & 1;
            orders.iter().any(|order| order[..prefix].iter().all(|place| bit(place) == 0))
        };
        near.retain(|&(ordinal, _)| agree(fingerprints[ordinal as usize] ^ query));
    }
    near
}
