//! The near documents that a query found.

use std::mem::MaybeUninit;

use crate::border::{self, show_empty, show_key};

/// Near documents, the nearest first. Free it with `twindex_hits_free`.
#[derive(Debug)]
pub struct Hits {
    hits: Vec<twindex::Hit>,
    left_out: u64,
}

impl Hits {
    pub(crate) fn new(hits: Vec<twindex::Hit>, left_out: u64) -> Self {
        Self { hits, left_out }
    }
}

fn hit(hits: Option<&Hits>, at: usize) -> Option<&twindex::Hit> {
    hits.and_then(|hits| hits.hits.get(at))
}

/// The number of hits; 0 for null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_len(hits: Option<&Hits>) -> usize {
    hits.map_or(0, |hits| hits.hits.len())
}

/// The number of hits beyond the limit.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_left_out(hits: Option<&Hits>) -> u64 {
    hits.map_or(0, |hits| hits.left_out)
}

/// The key of hit number `at`, from 0, and its length; null beyond the last. A key that is a number is shown as 8 bytes in
/// the machine's order. It lives as long as the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_key(
    hits: Option<&Hits>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match hit(hits, at) {
        Some(hit) => show_key(&hit.key, len),
        None => show_empty(len),
    }
}

/// Bits in which the fingerprints differ; -1 where that is not known.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_distance(hits: Option<&Hits>, at: usize) -> i32 {
    hit(hits, at).and_then(|hit| hit.distance).and_then(|bits| i32::try_from(bits).ok()).unwrap_or(-1)
}

/// The resemblance, 0 to 1: counted in an index with sets, otherwise estimated; -1 where it is not known.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_resemblance(hits: Option<&Hits>, at: usize) -> f64 {
    border::ask(-1.0, || hit(hits, at).and_then(|hit| hit.resemblance).map_or(-1.0, |found| found.value()))
}

/// Frees hits; null is allowed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_free(hits: Option<Box<Hits>>) {
    border::free(hits);
}
