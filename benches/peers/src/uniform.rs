//! Helpers that the search programs share: generated fingerprints and queries, segments and indexes that contain them,
//! and removal of a file from the page cache.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use twindex::design::{CodecChoice, DesignChoice};
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build};
use twindex::sys::RealVfs;
use twindex::{Fingerprint, Index, Key, Params};

use crate::measure::Random;

/// The radius of searches and joins in bits.
pub const WITHIN: u32 = 3;

/// Returns `count` random fingerprints and `queries` queries. Half of the queries are fingerprints with up to three bits
/// flipped.
pub fn uniform(count: usize, queries: usize) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random(1);
    let fingerprints: Vec<u64> = (0..count).map(|_| random.next()).collect();
    let queries = near(&fingerprints, queries, &mut random);
    (fingerprints, queries)
}

/// Returns `queries` queries. Half of them are stored fingerprints with up to three bits flipped, and half are random.
pub fn near(fingerprints: &[u64], queries: usize, random: &mut Random) -> Vec<u64> {
    let one = |i| {
        if i % 2 == 0 {
            return random.next();
        }
        let stored = fingerprints[random.below(fingerprints.len())];
        random.flip(stored, WITHIN as usize)
    };
    (0..queries).map(one).collect()
}

/// Returns `count` fingerprints. Three in ten are copies of earlier ones with up to six bits flipped.
pub fn clustered(count: usize) -> Vec<u64> {
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
    fingerprints
}

/// Creates an index of one segment. The keys are the positions of the fingerprints.
pub fn index(path: &Path, fingerprints: &[u64]) -> Result<Index> {
    let index = Index::create(path, Params::builder().u64_keys().simhash(WITHIN as u8).build()?)?;
    let mut writer = index.writer()?;
    for (key, &fingerprint) in (0_u64..).zip(fingerprints) {
        writer.put(key, Fingerprint(fingerprint))?;
    }
    writer.commit()?;
    drop(writer);
    index.compact()?;
    Ok(index)
}

/// Builds a segment at `path`, and opens it.
pub fn segment(path: &Path, fingerprints: &[u64], design: DesignChoice) -> Result<Segment> {
    let params =
        Params::builder().u64_keys().simhash(WITHIN as u8).tables(design, CodecChoice::Auto).build()?;
    let mut records = Records::new(&params);
    for (key, &fingerprint) in (0..).zip(fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() }))?;
    }
    let dir = path.parent().context("a file in a folder")?;
    build::build(&records, &RealVfs, dir)?.publish(path)?;
    Ok(Segment::open(&RealVfs, path)?)
}

/// Removes a file from the page cache, except for mapped pages.
pub fn forget(path: &Path) -> Result<()> {
    #[allow(clippy::disallowed_methods, reason = "drops a file of the library from the page cache")]
    let file = fs::File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}
