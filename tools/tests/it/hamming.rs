//! Searches a million fingerprints with a hundred thousand queries. The answers must equal the answers of mih-rs 0.3.1 and
//! of a plain table lookup, which other programs computed on the same data. Their counts and checksums are listed here with
//! the generator of the data.

use crate::support::{Bench, Random, raw};

const FINGERPRINTS: usize = 1_000_000;
const QUERIES: usize = 100_000;

/// Returns a random number below `n`, the upper half of a product, as the original data generator does.
fn below(random: &mut Random, n: u64) -> u64 {
    ((u128::from(random.next()) * u128::from(n)) >> 64) as u64
}

fn flip(random: &mut Random, value: u64, bits: u32) -> u64 {
    let mut mask = 0_u64;
    while mask.count_ones() < bits {
        mask |= 1 << below(random, 64);
    }
    value ^ mask
}

/// Returns fingerprints. Each is random or, with a probability of `near` percent, an earlier fingerprint with 0 to 6
/// flipped bits.
fn fingerprints(near: u64) -> Vec<u64> {
    let mut random = Random(0x1000 + FINGERPRINTS as u64);
    let mut values: Vec<u64> = Vec::with_capacity(FINGERPRINTS);
    for i in 0..FINGERPRINTS {
        // Draws no random number that is not needed, to keep the sequence of the original generator.
        let value = if near > 0 && i > 0 && below(&mut random, 100) < near {
            let other = values[below(&mut random, i as u64) as usize];
            let bits = below(&mut random, 7) as u32;
            flip(&mut random, other, bits)
        } else {
            random.next()
        };
        values.push(value);
    }
    values
}

/// Returns queries: every other one is random, the rest are fingerprints with 0 to 3 flipped bits.
fn queries(fingerprints: &[u64]) -> Vec<u64> {
    let mut random = Random((1_u64 + 0xAB_CDEF).wrapping_mul(0x777_7777));
    let query = |i| {
        if i % 2 == 0 {
            return random.next();
        }
        let stored = fingerprints[below(&mut random, fingerprints.len() as u64) as usize];
        let bits = below(&mut random, 4) as u32;
        flip(&mut random, stored, bits)
    };
    (0..QUERIES).map(query).collect()
}

fn check(near: u64, tables: &[&str], hits: u64, checksum: &str) {
    let bench = Bench::new();
    let fingerprints = fingerprints(near);
    bench.write("queries.u64", raw(&queries(&fingerprints)));
    bench.write("all.u64", raw(&fingerprints));
    for (number, tables) in tables.iter().enumerate() {
        let report = bench.json(&format!("build {number}.twx --fingerprints all.u64 {tables}"));
        assert_eq!(report["documents"], FINGERPRINTS);
        let report =
            bench.json(&format!("query {number}.twx --fingerprints queries.u64 --near within:3 --count"));
        assert_eq!((&report["hits"], &report["checksum"]), (&hits.into(), &checksum.into()), "{tables}");
        assert_eq!(report["queries"], QUERIES);
    }
}

#[test]
fn answers_for_a_million_uniform_fingerprints_equal_other_programs() {
    let tables = ["", "--design small", "--design fast", "--design choose-5-2 --codec planes+2"];
    check(0, &tables, 50_000, "5e2716617bdb9fb2");
}

#[test]
fn answers_for_a_million_clustered_fingerprints_equal_other_programs() {
    let tables = ["", "--design blocks-2 --codec compact", "--design blocks-4 --codec manku --near within:3"];
    check(30, &tables, 63_716, "0eb51591434c8357");
}
