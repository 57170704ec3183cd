//! Compares searches for all pairs of fingerprints within 3 bits: with this crate, on plain fingerprints and on an index,
//! and with all-pairs-hamming, configured with two chunks of 32 bits, its fastest setting.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin join -- FINGERPRINTS [ROUNDS]`
//!
//! Three in ten fingerprints are copies of earlier ones with up to six bits flipped. In each round, every contestant
//! finds all pairs; all must agree on the number of pairs and on a checksum of them. The index is a segment in a mapped
//! file with checksums, and its pairs are resolved to documents. Times are CPU times of the thread. Ratios are medians of
//! the ratios within a round, because the speed of a shared machine changes between rounds.

use std::hint::black_box;

use anyhow::{Result, ensure};
use measure::{Random, count_and_rounds, cpu_seconds, median};
use twindex::{Fingerprint, Index, Params};
use twindex_join::{
    JoinResources, NearFingerprints, Positions, RawValues, near_fingerprints_within,
    raw_near_fingerprints_within,
};

#[path = "../measure.rs"]
mod measure;

const WITHIN: u32 = 3;

/// The number of pairs, and a checksum of them that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PairBuffer {
    pairs: u64,
    sum: u64,
}

impl PairBuffer {
    fn add(&mut self, a: u64, b: u64) {
        self.pairs += 1;
        self.sum = self.sum.wrapping_add(Random(a.min(b) << 32 | a.max(b)).next());
    }
}

/// Returns the result of the only thread.
fn one(states: Vec<PairBuffer>) -> PairBuffer {
    states.into_iter().next().unwrap_or_default()
}

fn main() -> Result<()> {
    let (count, rounds) = count_and_rounds()?;
    let mut random = Random(1);
    let mut fingerprints: Vec<u64> = Vec::with_capacity(count);
    while fingerprints.len() < count {
        let copied = !fingerprints.is_empty() && random.below(10) < 3;
        let next = if copied {
            let earlier = fingerprints[random.below(fingerprints.len())];
            random.flip(earlier, 6)
        } else {
            random.next()
        };
        fingerprints.push(next);
    }

    let dir = tempfile::tempdir()?;
    let index = Index::create(dir.path().join("join.twx"), Params::builder().u64_keys().simhash(3).build()?)?;
    let mut writer = index.writer()?;
    for (key, &fingerprint) in (0_u64..).zip(&fingerprints) {
        writer.put(key, Fingerprint(fingerprint))?;
    }
    writer.commit()?;
    drop(writer);
    index.compact()?;
    let snapshot = index.snapshot();
    let resources = JoinResources { dir: dir.path(), memory: 8 << 30, threads: 1 };

    let names = ["twindex, fingerprints", "twindex, index", "all-pairs-hamming"];
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut found = None;
    for _ in 0..rounds {
        for (contestant, seconds) in seconds.iter_mut().enumerate() {
            let start = cpu_seconds();
            let now = match contestant {
                0 => one(raw_near_fingerprints_within(
                    RawValues::Held(black_box(&fingerprints)),
                    None,
                    WITHIN,
                    resources,
                    PairBuffer::default,
                    |found: &mut PairBuffer, positions: &Positions<'_>| {
                        positions.for_each(|a, b| {
                            found.add(a.into(), b.into());
                            Ok(())
                        })
                    },
                )?),
                // Keys are numbers from 0 in the order of ordinals, so they equal the positions of fingerprints.
                1 => one(near_fingerprints_within(
                    &snapshot,
                    None,
                    WITHIN,
                    resources,
                    PairBuffer::default,
                    |found: &mut PairBuffer, meeting: &NearFingerprints<'_>| {
                        meeting.for_each(|a, b| {
                            found.add(a.ordinal.into(), b.ordinal.into());
                            Ok(())
                        })
                    },
                )?),
                _ => {
                    let mut joiner = all_pairs_hamming::ChunkedJoiner::<u32>::new(2);
                    for &value in black_box(&fingerprints) {
                        let chunks = [value as u32, (value >> 32) as u32];
                        joiner.add(chunks).map_err(|error| anyhow::anyhow!("all-pairs-hamming: {error}"))?;
                    }
                    let mut found = PairBuffer::default();
                    for (a, b, _) in joiner.similar_pairs(f64::from(WITHIN) / 64.0) {
                        found.add(a as u64, b as u64);
                    }
                    found
                }
            };
            seconds.push(cpu_seconds() - start);
            let expected = *found.get_or_insert(now);
            ensure!(now == expected, "{} found {now:?}, another one {expected:?}", names[contestant]);
        }
    }

    let pairs = found.unwrap_or_default().pairs;
    println!("{count} fingerprints, {pairs} pairs within {WITHIN}, one thread, medians of {rounds} rounds");
    for (contestant, name) in names.iter().enumerate() {
        print!("{name:<24} {:>8.3} CPU seconds", median(seconds[contestant].clone()).0);
        if contestant < 2 {
            let ratios = seconds[2].iter().zip(&seconds[contestant]).map(|(peer, own)| peer / own).collect();
            let (ratio, least, most) = median(ratios);
            print!("  {ratio:>5.1} x {} ({least:.1}..{most:.1})", names[2]);
        }
        println!();
    }
    Ok(())
}
