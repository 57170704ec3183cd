//! Predicts the work of a search for codes, and decides between a comparison of all and [parts](crate::format::code_parts).
//!
//! The bytes of a segment depend on this choice, so it depends on nothing but the parameters and the number of documents,
//! and on no other processor.

use crate::format::bands::KEY_BITS;
use crate::format::code_parts::{Cut, binomial, power};
use crate::params::CodeParams;
use twindex_kernel::prefix_words;

/// A segment of fewer documents has no parts: a scan compares them in about a millisecond.
pub const DOCUMENTS_MIN: u64 = 1 << 16;
/// Parts are written if their predicted work is at most a scan's work divided by this number, for queries that arrive
/// [`TOGETHER`].
const WORTH: f64 = 2.0;
const TOGETHER: usize = 64;
/// Minimum number of bits of a key in the parts that are written.
const KEY_BITS_MIN: usize = 8;

/// The unit of work: a comparison of 32 bits in a scan, with AVX-512. These costs are fitted to measurements of 10^5, 10^6
/// and 3 * 10^7 random codes of 256 bits.
const UNIT_NANOSECONDS: f64 = 0.05;
/// Reading the bounds of a bucket and its first entry.
const PROBE: f64 = 1000.0;
/// Decoding another entry of a bucket.
const ENTRY: f64 = 60.0;
/// Reading and comparing a code.
const CANDIDATE: f64 = 1000.0;
/// Copying a code to the block that a scan compares with all queries.
const COPY: f64 = 250.0;

/// How a segment of codes is written and searched.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CodePlan {
    /// The number of parts; `None` if the segment has none, so that each query compares all codes.
    pub parts: Option<u32>,
    /// The average number of bytes that the parts take for each code.
    pub bytes: f64,
    /// Whether the queries are answered by parts.
    pub by_parts: bool,
    /// The predicted time of a query on one core with AVX-512, in microseconds, if bits are random and all is in memory.
    pub microseconds: f64,
    /// The predicted time of a query that compares all codes.
    pub scan_microseconds: f64,
}

impl CodePlan {
    /// Predicts how a segment of this number of documents is searched by `queries` queries together, for the codes within
    /// `within` bits of each.
    #[must_use]
    pub fn of(codes: CodeParams, documents: u64, within: u32, queries: usize) -> Self {
        let cut = choose(codes, documents);
        let by_scan = scan_work(codes.bits, documents, within, queries);
        let by_parts = cut.map(|cut| work(cut, documents, within)).filter(|work| *work < by_scan);
        let lengths =
            cut.map_or(0, |cut| (0..cut.parts).map(|part| cut.layout(part, documents).length).sum());
        Self {
            parts: cut.map(|cut| cut.parts),
            bytes: lengths as f64 / documents.max(1) as f64,
            by_parts: by_parts.is_some(),
            microseconds: by_parts.unwrap_or(by_scan) * UNIT_NANOSECONDS / 1000.0,
            scan_microseconds: by_scan * UNIT_NANOSECONDS / 1000.0,
        }
    }
}

/// Returns the cut with which a segment of this number of documents is written; `None` if it is written without parts.
#[must_use]
pub fn choose(codes: CodeParams, documents: u64) -> Option<Cut> {
    if documents < DOCUMENTS_MIN {
        return None;
    }
    let within = codes.near.into();
    let cuts = (1..=usize::from(codes.bits) / KEY_BITS_MIN).filter_map(|parts| Cut::new(codes.bits, parts));
    let best = cuts.map(|cut| (work(cut, documents, within), cut)).min_by(|(a, _), (b, _)| a.total_cmp(b));
    let scan = scan_work(codes.bits, documents, within, TOGETHER);
    best.filter(|(work, _)| work * WORTH <= scan).map(|(_, cut)| cut)
}

/// Predicts the work of a query by parts among random codes.
#[must_use]
pub fn work(cut: Cut, documents: u64, within: u32) -> f64 {
    let of_part = |(part, level): (u32, u32)| {
        let (key, directory) = (cut.key_bits(part), cut.layout(part, documents).directory.bits);
        let probes = ball(directory, level);
        let entries = probes * documents as f64 / power(directory);
        let candidates = ball(key, level) * documents as f64 / power(key);
        PROBE * probes + ENTRY * entries + CANDIDATE * candidates
    };
    (0..).zip(cut.levels(within)).map(of_part).sum()
}

/// Predicts the work of a query by a scan that compares all codes with this number of queries.
#[must_use]
pub fn scan_work(bits: u16, documents: u64, within: u32, queries: usize) -> f64 {
    let words = prefix_words(usize::from(bits) / KEY_BITS as usize, within) as f64;
    documents as f64 * (words + COPY / queries.max(1) as f64)
}

/// Returns the work of reading this number of entries and codes.
#[must_use]
pub fn work_of(entries: u64, candidates: u64) -> f64 {
    ENTRY * entries as f64 + CANDIDATE * candidates as f64
}

/// Returns the number of keys of `bits` bits that differ from one of them in fewer than `levels` bits.
fn ball(bits: u32, levels: u32) -> f64 {
    (0..levels).map(|ones| binomial(bits, ones)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_where_they_save_most_of_a_scan() {
        let plan = |near, documents, within| {
            CodePlan::of(CodeParams { bits: 256, near, votes: None }, documents, within, 64)
        };
        assert_eq!(plan(15, DOCUMENTS_MIN - 1, 15).parts, None);
        assert_eq!(plan(128, 1 << 30, 128).parts, None);
        assert_eq!(
            [10_000_000, 30_000_000, 100_000_000].map(|n| plan(31, n, 31).parts),
            [Some(11), Some(11), Some(9)]
        );
        // The measurements to which the costs are fitted.
        let large = plan(31, 30_000_000, 31);
        assert!(large.by_parts && (40.0..42.0).contains(&large.bytes), "{large:?}");
        assert!((400.0..800.0).contains(&large.microseconds), "{large:?}");
        // A query of a larger radius compares all.
        assert!(!plan(31, 30_000_000, 64).by_parts);
    }
}
