//! Finds all near pairs of codes, fingerprints of 64 to 512 bits, at any radius.
//!
//! All pairs are compared, block by block (module `tiles`), unless buckets of parts of the codes need fewer comparisons
//! (module `parts`). Both are exact, and the pairs are the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::inside::NearPair;
use super::parts::PartsPlan;
use super::tiles::{CodeWorker, add};
use super::{JoinResources, on_threads};
use twindex::error::{Error, Result};
use twindex_kernel::{BLOCK, Level, Sides, TileScan, TileScratch};

pub use super::tiles::{CODE_WIDTH_MAX, Codes};

/// Passes all pairs of codes that differ in at most `within` bits to `take`, in batches: pairs inside `left`, the smaller
/// number first, or with `right`, pairs of a code of `left` and a code of `right`. Passes each pair once. Creates a state
/// for each thread with `begin`, and returns the states. The order of pairs and of states is unspecified.
///
/// A comparison of all pairs needs no memory besides the codes. Buckets take as much memory as the codes and 8 bytes per
/// code; they are used if `resources.memory` suffices.
///
/// # Errors
/// [`Error::Invalid`] if the two sides have different widths, or the errors of `take`.
pub fn near_codes_within<S: Send>(
    left: Codes<'_>,
    right: Option<Codes<'_>>,
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &[NearPair]) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    if left.is_empty() || right.is_some_and(Codes::is_empty) {
        return Ok(vec![begin()]);
    }
    if let Some(right) = right.filter(|right| right.bits() != left.bits()) {
        let (expected, found) = (left.bits(), right.bits());
        return Err(Error::Invalid(format!(
            "fingerprints of {expected} bits cannot be compared with {found} bits"
        )));
    }
    let worker = |_| CodeWorker { scratch: TileScratch::default(), pairs: Vec::new(), state: begin() };
    let mut workers: Vec<CodeWorker<S>> = (0..resources.threads.max(1)).map(worker).collect();
    match PartsPlan::cheapest(left, right, within, resources.memory) {
        Some(plan) => plan.join(left, right, &mut workers, &take)?,
        None => scan(left, right, within, &mut workers, &take)?,
    }
    workers
        .into_iter()
        .map(|CodeWorker { pairs, mut state, .. }| take(&mut state, &pairs).map(|()| state))
        .collect()
}

/// Compares all pairs.
fn scan<S: Send>(
    left: Codes<'_>,
    right: Option<Codes<'_>>,
    within: u32,
    workers: &mut [CodeWorker<S>],
    take: &(impl Fn(&mut S, &[NearPair]) -> Result<()> + Sync),
) -> Result<()> {
    let other = right.unwrap_or(left);
    let inside = right.is_none();
    let sides = Sides { columns: left.half_words(), rows: other.half_words(), inside, within };
    let blocks = other.len().div_ceil(BLOCK);
    let (all, next) = (left.len().div_ceil(BLOCK) * blocks, AtomicUsize::new(0));
    let level = Level::chosen();
    on_threads(workers, |CodeWorker { scratch, pairs, state }| {
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= all {
                return Ok(());
            }
            let range = |block: usize, of: Codes<'_>| block * BLOCK..of.len().min((block + 1) * BLOCK);
            let (columns, rows) = (range(block / blocks, left), range(block % blocks, other));
            if inside && rows.end <= columns.start {
                continue;
            }
            let emit = |a, b, distance| add(pairs, NearPair { a, b, distance }, state, take);
            level.dispatch(TileScan { sides, columns, rows: &[rows], scratch, emit })?;
        }
    })
}
