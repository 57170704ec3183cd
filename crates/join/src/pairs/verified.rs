//! Finds and verifies resembling pairs in one call: pairs of sets exactly, pairs of documents of an index by their
//! signatures.
//!
//! Candidates arrive in batches, and each batch is verified on several threads. The resulting pairs do not depend on the
//! batches or the number of threads.

use std::path::Path;

use crate::bands::candidates::{Candidates, PAIRS, PAIRS_LEAST, candidates, candidates_across};
use crate::hamming::JoinResources;
use crate::pairs::bitmaps::{BitmapLimits, bitmap_candidates};
use crate::pairs::prefix::{Prefixes, prefix_candidates};
use crate::sets::families::Families;
use crate::sets::shingle_sets::ShingleSets;
use crate::work::runs::{Sorted, Sorter};
use twindex::error::{Error, Result};
use twindex::segment::Segment;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::threads::on_threads;
use twindex_sketch::{Resemblance, matches};

/// Maximum number of rows of sketches compared, per element of all sets. With AVX2, more rows take longer than a prefix join.
const ROWS: u64 = 32;
/// Minimum number of items per thread.
const WORTH_A_THREAD: usize = 512;

/// Splits `items` into parts and processes them on `threads` threads. Returns the results in the order of `items`.
fn on_parts<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&[T]) -> Result<Vec<R>> + Sync,
) -> Result<Vec<R>> {
    let parts: Vec<&[T]> = items.chunks(items.len().div_ceil(threads.max(1)).max(WORTH_A_THREAD)).collect();
    let made = on_threads(&mut vec![(); threads.max(1)], &parts, |(), part| work(part))?;
    Ok(made.into_iter().flatten().collect())
}

/// Passes candidate pairs of sets to `each`, as [`prefix_candidates`] does: all pairs whose resemblance is at least
/// `threshold`, and some others. Compares [all sketches](bitmap_candidates) if this is possible and faster; otherwise uses
/// prefixes. The choice depends only on the sets, the threshold and `max_bucket`, because it changes which pairs are missing
/// if elements are [capped](Prefixes::capped).
///
/// # Errors
/// [`Error::Io`] from a scratch file, or the error of `each`.
pub fn set_candidates<E: From<Error>>(
    sets: &ShingleSets,
    threshold: f64,
    max_bucket: usize,
    memory: usize,
    threads: usize,
    mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
) -> std::result::Result<Prefixes, E> {
    let pairs = (PAIRS * sets.len() as u64).max(PAIRS_LEAST);
    let limits = BitmapLimits { rows: ROWS, pairs, partners: max_bucket };
    match bitmap_candidates(sets, threshold, limits, memory, threads, &mut each)? {
        Some(found) => Ok(found),
        None => prefix_candidates(sets, threshold, max_bucket, memory, threads, each),
    }
}

/// Finds all pairs of sets whose resemblance is at least `threshold`, which must be above 0, and passes them with their
/// exact resemblance to `each`. A pair may be missing only if all prefix elements that it shares are
/// [capped](Prefixes::capped). The order of pairs is unspecified; if elements are capped, a pair may be passed twice.
///
/// ```
/// use twindex_join::{JoinResources, ShingleSets, resembling_sets};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let mut sets = ShingleSets::new(dir.path(), 1 << 20);
/// for set in [&[1, 2, 3, 4, 5][..], &[2, 3, 4, 5], &[6, 7]] {
///     sets.push(set)?;
/// }
/// let mut found = Vec::new();
/// resembling_sets(&sets, 0.8, 10_000, JoinResources::in_dir(dir.path()), |a, b, resemblance| {
///     found.push((a.min(b), a.max(b), resemblance.value()));
///     Ok::<_, twindex::Error>(())
/// })?;
/// assert_eq!(found, [(0, 1, 0.8)]);
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// # Errors
/// Same as [`prefix_candidates`], or the error of `each`.
pub fn resembling_sets<E: From<Error>>(
    sets: &ShingleSets,
    threshold: f64,
    max_bucket: usize,
    resources: JoinResources<'_>,
    mut each: impl FnMut(u32, u32, Resemblance) -> std::result::Result<(), E>,
) -> std::result::Result<Prefixes, E> {
    let mut families = Families::new(sets, resources.memory / 2)?;
    set_candidates(sets, threshold, max_bucket, resources.memory / 2, resources.threads, |batch| {
        let batch = &on_parts(batch, resources.threads, |batch| Ok(families.plausible(batch, threshold)))?;
        let wanted = families.plan(batch);
        for piece in families.pieces(&wanted) {
            let differences = on_parts(piece, resources.threads, |wanted| {
                wanted.iter().map(|&(set, leader)| families.difference(set, leader)).collect()
            })?;
            for difference in differences {
                families.add(difference);
            }
        }
        let found = on_parts(batch, resources.threads, |pairs| {
            let mut found = Vec::new();
            families.for_each_resembling(pairs, threshold, |a, b, resemblance| {
                found.push((a, b, resemblance));
            })?;
            Ok(found)
        })?;
        found.into_iter().try_for_each(|(a, b, resemblance)| each(a, b, resemblance))
    })
}

/// Returns the live documents of a snapshot as segment and ordinal, in the order in which joins number them.
fn live(snapshot: &Snapshot) -> Vec<(u32, u32)> {
    let documents = (0..).zip(snapshot.segments()).flat_map(|(segment, (of, deleted))| {
        let live = (0..of.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal));
        live.map(move |ordinal| (segment, ordinal))
    });
    documents.collect()
}

/// Returns a function that assigns consecutive numbers, beginning with `start`.
fn counter(start: usize) -> impl FnMut(Place<'_>) -> Result<Option<u32>> {
    let mut next = start as u32;
    move |_| {
        next += 1;
        Ok(Some(next - 1))
    }
}

/// Finds all pairs of live documents whose shingle sets have a resemblance of at least `threshold`, which must be above 0.
/// Passes each pair once to `each`, with its exact resemblance. With `right`, passes pairs of a document of `left` and a
/// document of `right`, in this order. Pairs are ordered by segment and ordinal. A pair may be missing only if all prefix
/// elements that it shares are [capped](Prefixes::capped).
///
/// # Errors
/// [`Error::ParamsMismatch`] if the two snapshots cannot be compared, [`Error::Invalid`] for an index without sets or a
/// threshold that is not above 0; [`Error::Corrupt`], [`Error::Io`] from a scratch file, or the error of `each`.
pub fn counted_documents<E: From<Error>>(
    left: &Snapshot,
    right: Option<&Snapshot>,
    threshold: f64,
    max_bucket: usize,
    resources: JoinResources<'_>,
    mut each: impl FnMut(Place<'_>, Place<'_>, Resemblance) -> std::result::Result<(), E>,
) -> std::result::Result<Prefixes, E> {
    if threshold <= 0.0 {
        return Err(
            Error::Invalid(format!("resemblance {threshold}: above 0 and up to 1 are counted")).into()
        );
    }
    let mut sets = ShingleSets::new(resources.dir, resources.memory / 4);
    let mut documents = Vec::new();
    let mut first_right = None;
    for snapshot in [Some(left), right].into_iter().flatten() {
        if !snapshot.params().sets {
            let why = "this index keeps no sets: resemblance is not counted";
            return Err(Error::Invalid(why.into()).into());
        }
        left.params().check_same_shingles(snapshot.params())?;
        let segments: Vec<&Segment> = snapshot.segments().map(|(segment, _)| segment).collect();
        let mut set = Vec::new();
        for (segment, ordinal) in live(snapshot) {
            let place = Place { segment: segments[segment as usize], ordinal };
            place.segment.set(ordinal, &mut set)?;
            sets.push(&set)?;
            documents.push(place);
        }
        first_right = first_right.or(right.map(|_| documents.len() as u32));
    }
    let rest = JoinResources { memory: resources.memory / 4 * 3, ..resources };
    let (pairs, found) = sorted_pairs_of_sets(&sets, first_right, threshold, max_bucket, rest)?;
    pairs.for_each(|pair| {
        let (a, b) = (documents[(pair >> 96) as usize], documents[(pair >> 64) as u32 as usize]);
        let (intersection, union) = ((pair >> 32) as u32 as usize, pair as u32 as usize);
        each(a, b, Resemblance::Exact { intersection, union })
    })?;
    left.check_maps()?;
    right.map_or(Ok(()), Snapshot::check_maps)?;
    Ok(found)
}

/// Returns all pairs of sets that [`resembling_sets`] finds for this `threshold`, which must be above 0. With
/// `first_right`, returns only pairs of a set before `first_right` and a set from `first_right` on. Each pair is returned
/// once, in ascending order, as four values of 32 bits: the smaller number, the larger number, the sizes of the
/// intersection and of the union.
///
/// # Errors
/// [`Error::Io`] from a scratch file.
pub fn sorted_pairs_of_sets(
    sets: &ShingleSets,
    first_right: Option<u32>,
    threshold: f64,
    max_bucket: usize,
    resources: JoinResources<'_>,
) -> Result<(Sorted<u128>, Prefixes)> {
    // If elements are capped, a pair may be found twice; the sorter removes duplicates.
    let mut sorter: Sorter<u128> = Sorter::new(resources.dir, resources.memory / 3);
    let rest = JoinResources { memory: resources.memory / 3 * 2, ..resources };
    let found = resembling_sets(sets, threshold, max_bucket, rest, |a, b, resemblance| {
        let (a, b) = (a.min(b), a.max(b));
        let Resemblance::Exact { intersection, union } = resemblance else { return Ok(()) };
        if first_right.is_some_and(|first| a >= first || b < first) {
            return Ok(());
        }
        let score = (intersection as u128) << 32 | union as u128;
        sorter.push(u128::from(a) << 96 | u128::from(b) << 64 | score)
    })?;
    Ok((sorter.finish()?, found))
}

/// Finds all pairs of live documents that share a band and whose estimated resemblance, from the stored signatures, is at
/// least `threshold`, and passes them to `each`. With `right`, passes pairs of a document of `left` and a document of
/// `right`, in this order; within one index, either document may come first. The order of pairs is unspecified. Returns the
/// candidate pairs and their statistics.
///
/// # Errors
/// [`Error::ParamsMismatch`] if the two snapshots cannot be compared, [`Error::Invalid`] for an index without signatures;
/// [`Error::Corrupt`], [`Error::Io`] from a scratch file, or the error of `each`.
pub fn resembling_documents<E: From<Error>>(
    left: &Snapshot,
    right: Option<&Snapshot>,
    threshold: f64,
    max_bucket: usize,
    resources: JoinResources<'_>,
    mut each: impl FnMut(Place<'_>, Place<'_>, Resemblance) -> std::result::Result<(), E>,
) -> std::result::Result<Candidates, E> {
    let Some(minhash) = left.params().minhash.filter(|minhash| minhash.signature_bits > 0) else {
        let why = "this index keeps no signatures: resemblance is not estimated";
        return Err(Error::Invalid(why.into()).into());
    };
    let budget: (&Path, usize) = (resources.dir, resources.memory);
    let (mine, theirs) = (live(left), right.map(live).unwrap_or_default());
    let first_right = mine.len() as u32;
    let found = match right {
        None => candidates(left, max_bucket, budget, counter(0))?,
        Some(right) => {
            left.params().check_same_signatures(right.params())?;
            let second = counter(mine.len());
            candidates_across((left, right), first_right, max_bucket, budget, counter(0), second)?
        }
    };
    let segments: [Vec<&Segment>; 2] = [left, right.unwrap_or(left)]
        .map(|snapshot| snapshot.segments().map(|(segment, _)| segment).collect());
    let place = |number: u32| {
        let is_right = number >= first_right;
        let (segment, ordinal) =
            if is_right { theirs[(number - first_right) as usize] } else { mine[number as usize] };
        Place { segment: segments[usize::from(is_right)][segment as usize], ordinal }
    };
    let (minima, bits) = (minhash.minima(), minhash.signature_bits);
    found.for_each_batch(|batch| {
        let near = on_parts(batch, resources.threads, |pairs| {
            let mut near = Vec::new();
            for &(a, b) in pairs {
                let (left, right) = (place(a), place(b));
                let same = matches(
                    left.segment.signature(left.ordinal)?,
                    right.segment.signature(right.ordinal)?,
                    minima,
                    bits,
                );
                let resemblance = Resemblance::from_matches(same, minima, bits);
                if resemblance.at_least(threshold) {
                    near.push((a, b, resemblance));
                }
            }
            Ok(near)
        })?;
        near.into_iter().try_for_each(|(a, b, resemblance)| each(place(a), place(b), resemblance))
    })?;
    left.check_maps()?;
    right.map_or(Ok(()), Snapshot::check_maps)?;
    Ok(found)
}
