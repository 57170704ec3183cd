//! Finds near pairs of fingerprints that are not in an index.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hamming::{self, Distinct, FingerprintValues, JoinResources, TablePool};
use crate::sets::equal::for_each_pair;
use twindex::error::Result;

pub use crate::hamming::FingerprintValues as RawValues;

/// Number of fingerprints that a thread claims at a time.
const STRETCH: usize = 1 << 17;

/// The positions in the input of two near fingerprints, or of a repeated fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    /// The positions of the first fingerprint, ascending. Across two inputs, they are positions in the left input.
    pub left: &'a [u32],
    /// The positions of the second fingerprint, ascending.
    pub right: &'a [u32],
    /// The number of bits in which the two fingerprints differ.
    pub distance: u32,
    /// Whether `left` and `right` are the same positions of a single fingerprint. Each of them then forms a pair with
    /// every other.
    pub inside: bool,
    /// Whether the two sides are from different inputs.
    pub across: bool,
}

impl Positions<'_> {
    /// Passes each pair of positions to `each`. In a join of one input, the smaller position comes first.
    ///
    /// # Errors
    /// The error of `each`.
    #[inline]
    pub fn for_each<E>(
        &self,
        mut each: impl FnMut(u32, u32) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for_each_pair(self.left, self.right, self.inside, |a, b| {
            if self.across { each(a, b) } else { each(a.min(b), a.max(b)) }
        })
    }
}

/// Like [`near_fingerprints_within`](crate::near_fingerprints_within), for fingerprints outside an index. Positions are
/// counted from 0 in each input. With `right`, each pair has a fingerprint of `left` and a fingerprint of `right`.
///
/// Sorts the fingerprints first, so that equal ones are compared once. In addition to the tables, this takes 16 bytes
/// of memory per fingerprint, and 8 more if the fingerprints are held in memory.
///
/// # Errors
/// [`Error::Invalid`](twindex::Error::Invalid) for an unsupported radius or more than `u32::MAX` fingerprints, or the errors
/// of reading them and of `take`.
pub fn raw_near_fingerprints_within<S: Send>(
    left: FingerprintValues<'_>,
    right: Option<FingerprintValues<'_>>,
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &Positions<'_>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let spare = TablePool::default();
    let left = Distinct::of(left, resources, &spare)?;
    let right = right.map(|right| Distinct::of(right, resources, &spare)).transpose()?;
    let other = right.as_ref().unwrap_or(&left);
    let mut sides = vec![FingerprintValues::Sorted(&left.values)];
    sides.extend(right.as_ref().map(|right| FingerprintValues::Sorted(&right.values)));
    let across = right.is_some();
    let mut states = hamming::join(&sides, within, resources, &spare, &begin, |state, pairs| {
        pairs.iter().try_for_each(|pair| {
            let (left, right) = (left.at(pair.a), other.at(pair.b));
            take(state, &Positions { left, right, distance: pair.distance, inside: false, across })
        })
    })?;
    if !across {
        let (count, next) = (left.values.len(), AtomicUsize::new(0));
        hamming::on_threads(&mut states, |state| {
            loop {
                let start = next.fetch_add(STRETCH, Ordering::Relaxed);
                if start >= count {
                    return Ok(());
                }
                for place in start..count.min(start + STRETCH) {
                    let all = left.at(place as u32);
                    if all.len() > 1 {
                        take(state, &Positions { left: all, right: all, distance: 0, inside: true, across })?;
                    }
                }
            }
        })?;
    }
    Ok(states)
}
