//! The documents of near fingerprints.

use crate::sets::equal::for_each_pair;
use twindex::segment::Segment;
use twindex::store::snapshot::Place;

/// The live documents of one segment that have the same fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct Documents<'a> {
    /// The position of the segment in the snapshot.
    pub number: usize,
    /// The segment.
    pub segment: &'a Segment,
    /// The ordinals of the live documents, ascending.
    pub ordinals: &'a [u32],
}

/// The documents of two fingerprints within the radius, or of a single fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct NearFingerprints<'a> {
    /// The documents of the first fingerprint; in a join of two indexes, documents of the left index.
    pub left: Documents<'a>,
    /// The documents of the second fingerprint; in a join of two indexes, documents of the right index.
    pub right: Documents<'a>,
    /// The number of bits in which the two fingerprints differ.
    pub distance: u32,
    /// Whether `left` and `right` are the same documents of a single fingerprint. Each of them then forms a pair with
    /// every other.
    pub inside: bool,
}

impl NearFingerprints<'_> {
    /// Returns the number of pairs that these documents form.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        let (left, right) = (self.left.ordinals.len() as u64, self.right.ordinals.len() as u64);
        if self.inside { left * left.saturating_sub(1) / 2 } else { left * right }
    }

    /// Passes each pair of documents to `each`.
    ///
    /// # Errors
    /// The error of `each`.
    #[inline]
    pub fn for_each<E>(
        &self,
        mut each: impl FnMut(Place<'_>, Place<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (left, right) = (self.left.segment, self.right.segment);
        for_each_pair(self.left.ordinals, self.right.ordinals, self.inside, |a, b| {
            each(Place { segment: left, ordinal: a }, Place { segment: right, ordinal: b })
        })
    }
}
