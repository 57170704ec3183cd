//! Estimates the resemblance of groups from their signatures in an index.

use twindex::sketch::matches;
use twindex::sys::Column;
use twindex::{Key, Resemblance, Snapshot};

use super::corpus::Corpus;
use super::score::{Estimate, Score, ScoreKind};

/// The position of each group's signature in the index.
pub(super) struct Signatures<'s> {
    snapshot: &'s Snapshot,
    /// The segment of one document of each group, and the ordinal of the document in the segment.
    places: Column<[u32; 2]>,
    minima: u32,
    bits: u8,
}

impl<'s> Signatures<'s> {
    pub(super) fn of(corpus: &Corpus, snapshot: &'s Snapshot) -> twindex::Result<Self> {
        let (minima, bits) = snapshot
            .params()
            .minhash
            .map_or((0, 0), |minhash| (minhash.minima() as u32, minhash.signature_bits));
        let grouped = &corpus.grouped;
        let mut places = Column::filled(&grouped.budget, grouped.groups.len(), [u32::MAX, 0])?;
        for (number, (segment, deleted)) in snapshot.segments().enumerate() {
            segment.for_each_key(|ordinal, key: Key<'_>| {
                if let Some(group) = corpus.group_at(key).filter(|_| !deleted.contains(ordinal)) {
                    places[group as usize] = [number as u32, ordinal];
                }
            })?;
        }
        Ok(Self { snapshot, places, minima, bits })
    }

    pub(super) fn kind(&self) -> ScoreKind {
        ScoreKind::Estimate { minima: self.minima, bits: self.bits }
    }

    /// Returns the estimated resemblance of two groups.
    pub(super) fn estimate(&self, a: u32, b: u32) -> twindex::Result<Score> {
        let (left, right) = (self.signature(a)?, self.signature(b)?);
        let matches = matches(left, right, self.minima as usize, self.bits) as u32;
        Ok(Score::Estimate(Estimate { matches, minima: self.minima, bits: self.bits }))
    }

    fn signature(&self, group: u32) -> twindex::Result<&[u8]> {
        let [segment, ordinal] = self.places[group as usize];
        // Every document is in the index. If one is missing, the empty signature has no equal minima.
        let segment = self.snapshot.segments().nth(segment as usize);
        segment.map_or(Ok(&[]), |(segment, _)| segment.signature(ordinal))
    }

    /// Returns the pairs whose estimated resemblance reaches the threshold.
    pub(super) fn estimated(
        &self,
        pairs: &[(u32, u32)],
        threshold: f64,
    ) -> twindex::Result<Vec<(u32, u32, Score)>> {
        let mut found = Vec::new();
        for &(a, b) in pairs {
            let score = self.estimate(a, b)?;
            if score.resemblance().is_some_and(|resemblance: Resemblance| resemblance.at_least(threshold)) {
                found.push((a, b, score));
            }
        }
        Ok(found)
    }
}
