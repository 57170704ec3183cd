//! Finds all pairs of fingerprints within 3 bits, with twindex or all-pairs-hamming.

use std::path::Path;

use anyhow::{Result, anyhow};
use twindex::Snapshot;
use twindex_join::{
    JoinResources, NearFingerprints, Positions, RawValues, near_fingerprints_within,
    raw_near_fingerprints_within,
};

use crate::measure::Answers;
use crate::uniform::WITHIN;

fn resources(dir: &Path, threads: usize) -> JoinResources<'_> {
    JoinResources { dir, memory: 8 << 30, threads }
}

/// Finds all pairs with twindex, from plain fingerprints.
pub fn of_fingerprints(fingerprints: &[u64], dir: &Path, threads: usize) -> Result<Answers> {
    Ok(Answers::total(raw_near_fingerprints_within(
        RawValues::Held(fingerprints),
        None,
        WITHIN,
        resources(dir, threads),
        Answers::default,
        |found: &mut Answers, positions: &Positions<'_>| {
            positions.for_each(|a, b| {
                found.add(a.into(), b.into());
                Ok(())
            })
        },
    )?))
}

/// Finds all pairs with twindex, from an index. Ordinals equal the positions of the fingerprints, because the keys are
/// numbers from 0 in the same order.
pub fn of_index(snapshot: &Snapshot, dir: &Path, threads: usize) -> Result<Answers> {
    Ok(Answers::total(near_fingerprints_within(
        snapshot,
        None,
        WITHIN,
        resources(dir, threads),
        Answers::default,
        |found: &mut Answers, meeting: &NearFingerprints<'_>| {
            meeting.for_each(|a, b| {
                found.add(a.ordinal.into(), b.ordinal.into());
                Ok(())
            })
        },
    )?))
}

/// Finds all pairs with all-pairs-hamming, with two chunks of 32 bits, its fastest setting. It uses one thread.
pub fn of_all_pairs_hamming(fingerprints: &[u64]) -> Result<Answers> {
    let mut joiner = all_pairs_hamming::ChunkedJoiner::<u32>::new(2);
    for &value in fingerprints {
        let chunks = [value as u32, (value >> 32) as u32];
        joiner.add(chunks).map_err(|error| anyhow!("all-pairs-hamming: {error}"))?;
    }
    let mut found = Answers::default();
    for (a, b, _) in joiner.similar_pairs(f64::from(WITHIN) / 64.0) {
        found.add(a as u64, b as u64);
    }
    Ok(found)
}
