//! Finds all near pairs of codes, fingerprints of 64 to 512 bits, at any radius.
//!
//! All pairs are compared, block by block (module `tiles`), unless buckets of parts of the codes need fewer comparisons
//! (module `parts`). Both are exact, and the pairs are the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::documents::{Documents, NearFingerprints};
use super::inside::NearPair;
use super::parts::PartsPlan;
use super::tiles::{CodeWorker, add};
use super::{JoinResources, check_count, on_threads};
use twindex::error::{Error, Result};
use twindex::params::CodeParams;
use twindex::segment::Segment;
use twindex::store::Snapshot;
use twindex::sys::{Column, MemoryBudget};
use twindex_kernel::{BLOCK, Level, Sides, TileScan, TileScratch};

pub use super::tiles::{CODE_WIDTH_MAX, Codes};

/// Number of fingerprints that are read from an index at a time.
const READ_TOGETHER: usize = 1 << 12;

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

/// The distinct fingerprints of each segment of an index that stores codes, numbered by segment, then by their words.
struct StoredCodes<'a> {
    segments: Vec<&'a Segment>,
    /// The number of the first fingerprint of each segment.
    firsts: Vec<u32>,
    words: Column<u64>,
    width: usize,
    /// The ordinals of the live documents of each fingerprint, ascending.
    ordinals: Column<u32>,
    /// The position in `ordinals` of the first document of each fingerprint, followed by the number of documents.
    starts: Column<u32>,
}

impl<'a> StoredCodes<'a> {
    fn of(snapshot: &'a Snapshot, codes: CodeParams, budget: &MemoryBudget) -> Result<Self> {
        check_count(snapshot.documents())?;
        let width = usize::from(codes.bits / 64);
        let (mut segments, mut firsts) = (Vec::new(), Vec::new());
        let (mut words, mut buffer) = (Column::new(budget), Vec::new());
        let (mut ordinals, mut starts) = (Column::new(budget), Column::new(budget));
        for (segment, deleted) in snapshot.segments() {
            firsts.push(starts.len() as u32);
            segments.push(segment);
            let (documents, mut all) = (segment.documents() as u32, Column::new(budget));
            for start in (0..documents).step_by(READ_TOGETHER) {
                segment.code_words(start..documents.min(start + READ_TOGETHER as u32), &mut buffer)?;
                all.extend(&buffer)?;
            }
            segment.check_map()?;
            let code = |ordinal: u32| &all[ordinal as usize * width..][..width];
            let has_code = |ordinal: u32| !codes.is_of_no_tokens(code(ordinal));
            let live = (0..documents).filter(|&ordinal| !deleted.contains(ordinal) && has_code(ordinal));
            let mut order = Column::of(budget, live)?;
            order.sort_unstable_by(|&a, &b| code(a).cmp(code(b)).then(a.cmp(&b)));
            for (at, &ordinal) in order.iter().enumerate() {
                if at == 0 || code(order[at - 1]) != code(ordinal) {
                    starts.push((ordinals.len() + at) as u32)?;
                    words.extend(code(ordinal))?;
                }
            }
            ordinals.extend(&order)?;
        }
        starts.push(ordinals.len() as u32)?;
        Ok(Self { segments, firsts, words, width, ordinals, starts })
    }

    fn codes(&self) -> Result<Codes<'_>> {
        Codes::new(&self.words, self.width)
    }

    /// Returns the documents of fingerprint `number`.
    fn documents(&self, number: u32) -> Documents<'_> {
        let segment = self.firsts.partition_point(|&first| first <= number) - 1;
        let [start, end] = [0, 1].map(|next| self.starts[number as usize + next] as usize);
        Documents { number: segment, segment: self.segments[segment], ordinals: &self.ordinals[start..end] }
    }
}

/// Implements [`near_fingerprints_within`](super::pairs::near_fingerprints_within) for indexes of these codes. Half of
/// `resources.memory` holds the fingerprints; data beyond that is written to unnamed files in `resources.dir`.
pub(super) fn near_stored_codes_within<S: Send>(
    left: &Snapshot,
    right: Option<&Snapshot>,
    codes: CodeParams,
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &NearFingerprints<'_>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    if within > codes.bits.into() {
        let bits = codes.bits;
        return Err(Error::Invalid(format!(
            "fingerprints of {bits} bits are at most {bits} bits apart, and you asked for {within}"
        )));
    }
    let budget = MemoryBudget::new(resources.dir, resources.memory / 2);
    let resources = JoinResources { memory: resources.memory / 2, ..resources };
    let left = StoredCodes::of(left, codes, &budget)?;
    let right = right.map(|right| StoredCodes::of(right, codes, &budget)).transpose()?;
    let other = right.as_ref().unwrap_or(&left);
    let others = right.as_ref().map(StoredCodes::codes).transpose()?;
    let mut states =
        near_codes_within(left.codes()?, others, within, resources, begin, |state, pairs: &[NearPair]| {
            pairs.iter().try_for_each(|pair| {
                let (left, right) = (left.documents(pair.a), other.documents(pair.b));
                take(state, &NearFingerprints { left, right, distance: pair.distance, inside: false })
            })
        })?;
    if let (None, Some(state)) = (&right, states.first_mut()) {
        for number in 0..left.codes()?.len() as u32 {
            let all = left.documents(number);
            if all.ordinals.len() > 1 {
                take(state, &NearFingerprints { left: all, right: all, distance: 0, inside: true })?;
            }
        }
    }
    Ok(states)
}
