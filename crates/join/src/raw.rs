//! Pairs of fingerprints that are in no index.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::equal::for_each_pair;
use super::hamming::{self, Distinct, FingerprintValues, JoinResources, TablePool};
use twindex::error::Result;

pub use super::hamming::FingerprintValues as RawValues;

/// Fingerprints whose positions a thread looks at before it asks for more.
const STRETCH: usize = 1 << 17;

/// Positions of two fingerprints that are near, or of one fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    /// The positions of one fingerprint, ascending; in a join across two files, those in the left one.
    pub left: &'a [u32],
    /// The positions of the other fingerprint.
    pub right: &'a [u32],
    /// The bits in which the fingerprints differ.
    pub distance: u32,
    /// Both sides are the same positions: each is a pair with each other one.
    pub inside: bool,
    /// The sides are of two files.
    pub across: bool,
}

impl Positions<'_> {
    /// Hands each pair to `each`: of a join inside a file the smaller position first.
    ///
    /// # Errors
    /// What `each` returns.
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

/// As [`near_fingerprints_within`](super::near_fingerprints_within), for fingerprints that are in no index: those at positions 0 and on
/// of
/// `left`, and with `right`, one of each.
///
/// Fingerprints are sorted first, so that those that are equal are one. Memory beside tables: 16 bytes a fingerprint,
/// and 8 more where they are held.
///
/// # Errors
/// [`Error::Invalid`](twindex::Error::Invalid) for a radius that is not answered or more than `u32::MAX` fingerprints, or
/// what reading them or `take` returns.
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
