//! Finds the documents of one part that match a query.

use std::ops::ControlFlow;

use super::{Bands, FoundDocument, Query};
use crate::error::Result;
use crate::format::bands;
use crate::format::prefixes::fewest_missing;
use crate::params::MinhashParams;
use crate::segment::buckets::merge_lists;
use crate::segment::held::Bucket;
use crate::segment::{SearchScratch, Segment};
use crate::store::part::IndexPart;
use twindex_sketch::{Fingerprint, Nearness, Resemblance, intersection_from, matches};

/// A filter of documents, by ordinal.
type Filter<'a> = dyn FnMut(u32) -> Result<bool> + 'a;

impl Query {
    /// Returns the matching documents of one part, each once. Adds the number of skipped buckets to `unvisited`.
    pub(in crate::store) fn find_in(
        &self,
        part: &IndexPart<'_>,
        unvisited: &mut u64,
    ) -> Result<Vec<FoundDocument>> {
        self.find(part, usize::MAX, unvisited, &mut |_| Ok(true))
    }

    /// Like [`find_in`](Self::find_in), but returns only documents for which `is_wanted` returns true.
    pub(in crate::store) fn find_among(
        &self,
        part: &IndexPart<'_>,
        unvisited: &mut u64,
        is_wanted: &mut Filter<'_>,
    ) -> Result<Vec<FoundDocument>> {
        self.find(part, usize::MAX, unvisited, is_wanted)
    }

    /// Like [`find_in`](Self::find_in), but may omit a document if `enough` documents of the part precede it in the order
    /// of hits. So the number of equal documents that are read does not depend on the number of those that are stored.
    pub(super) fn find_nearest_in(
        &self,
        part: &IndexPart<'_>,
        enough: usize,
        unvisited: &mut u64,
    ) -> Result<Vec<FoundDocument>> {
        self.find(part, enough, unvisited, &mut |_| Ok(true))
    }

    fn find(
        &self,
        part: &IndexPart<'_>,
        enough: usize,
        unvisited: &mut u64,
        is_wanted: &mut Filter<'_>,
    ) -> Result<Vec<FoundDocument>> {
        let mut found = PartSearch {
            query: self,
            part,
            enough,
            is_wanted,
            hits: Vec::new(),
            compared: Vec::new(),
            equal: 0,
            set: Vec::new(),
        };
        if let Some((fingerprint, _)) = self.within {
            let mut near = part.fingerprints_within(fingerprint.0, self.ask(), unvisited)?;
            near.sort_unstable();
            for same in near.chunk_by(|a, b| a.0 == b.0) {
                for &(distance, place) in same {
                    found.add_fingerprint(distance, place)?;
                }
                if found.has_enough() || self.bands.is_none() && found.hits.len() >= enough {
                    return Ok(found.hits); // the others are farther, or are equal and have larger keys
                }
            }
        }
        let Some(bands) = &self.bands else { return Ok(found.hits) };
        let mut known = std::mem::take(&mut found.compared);
        known.sort_unstable();
        // Only the documents of a segment are found in the order of their keys.
        let in_order = matches!(part, IndexPart::Segment { .. });
        self.candidates(part, bands, &mut |ordinal, missing| {
            if known.binary_search(&ordinal).is_err() {
                found.add_candidate(ordinal, bands, missing)?;
            }
            Ok(if in_order && found.has_enough() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found.hits)
    }

    /// Calls `each` with each bucket of a segment that can contain near documents. The second argument is true if all
    /// documents of the bucket are near.
    pub(in crate::store) fn for_each_bucket(
        &self,
        segment: &Segment,
        mut each: impl FnMut(Bucket, bool) -> Result<()>,
    ) -> Result<()> {
        if let Some((fingerprint, _)) = self.within {
            let mut ranks = Vec::new();
            SearchScratch::lend(|scratch| {
                segment.search(&[fingerprint.0], self.ask(), scratch, |_, near| {
                    ranks.push(near.rank);
                    Ok(ControlFlow::Continue(()))
                })
            })?;
            segment.check_lists(&ranks)?;
            ranks.into_iter().try_for_each(|rank| each(Bucket::Fingerprint(rank), true))?;
        }
        let Some(bands) = &self.bands else { return Ok(()) };
        if let Some(set) = self.counted().filter(|_| self.is_by_prefixes()) {
            let keys = segment.prefix_keys(set, Nearness::Resemblance(bands.threshold), !self.unmarked)?;
            return keys.into_iter().try_for_each(|(_, key)| each(Bucket::Prefix(key), false));
        }
        segment.hint_features(&bands.features, self.feature_bits);
        let bits = bands::bits_of(self.params());
        let keys = bands.features.iter().map(|&feature| bands::key(feature, bits));
        keys.enumerate().try_for_each(|(band, key)| each(Bucket::Band(band, key), false))
    }

    /// Calls `each` with each live document of a part that can be near. The second argument is true if the document is known
    /// to be near. A document may be passed several times.
    pub(in crate::store) fn for_each_candidate(
        &self,
        part: &IndexPart<'_>,
        mut each: impl FnMut(u32, bool),
    ) -> Result<()> {
        if let Some((fingerprint, _)) = self.within {
            SearchScratch::lend(|scratch| {
                part.search(fingerprint.0, self.ask(), scratch, |ordinal, _| {
                    each(ordinal, true);
                    ControlFlow::Continue(())
                })
            })?;
        }
        let Some(bands) = &self.bands else { return Ok(()) };
        self.candidates(part, bands, &mut |ordinal, _| {
            part.for_each_equal(ordinal, usize::MAX, |ordinal| {
                each(ordinal, false);
                Ok(())
            })?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Returns whether a candidate is near by resemblance. `scratch` is a reusable buffer.
    pub(in crate::store) fn resembles(
        &self,
        part: &IndexPart<'_>,
        ordinal: u32,
        scratch: &mut Vec<u64>,
    ) -> Result<bool> {
        let (Some(bands), Some(minhash)) = (&self.bands, self.params().minhash) else { return Ok(false) };
        if let Some(set) = self.counted() {
            return Ok(count_from(part, ordinal, (set, bands.threshold), 0, scratch)?.is_some());
        }
        let resemblance = estimate(part, ordinal, &bands.signature, minhash)?;
        Ok(self.unverified || resemblance.is_none_or(|known| known.at_least(bands.threshold)))
    }

    /// Calls `each` with each document that can be near, once, in ascending order, until it returns `Break`. Includes
    /// documents that are no longer live; of equal rows of a memtable, only the first. The second argument is a lower bound on the number of hashes of the query's set
    /// that are missing from the document's set.
    fn candidates(
        &self,
        part: &IndexPart<'_>,
        bands: &Bands,
        each: &mut dyn FnMut(u32, usize) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let has_all_bits = self.feature_bits == bands::bits_of(self.params());
        let mut ordinals: Vec<u32> = Vec::new();
        let by_set = self.counted().filter(|_| self.is_by_prefixes());
        match (part, by_set) {
            (IndexPart::Segment { segment, .. }, Some(set)) => {
                let near = Nearness::Resemblance(bands.threshold);
                let (places, lists): (Vec<u32>, _) =
                    segment.prefix_lists(set, near, !self.unmarked)?.into_iter().unzip();
                // If marked documents are searched, too, all positions are 0.
                let has_places = places.last() != Some(&0);
                return merge_lists(lists, |ordinal, of| {
                    let of = if has_places { of } else { &of[..1] };
                    each(ordinal, fewest_missing(of.iter().map(|&list| places[list as usize])))
                });
            }
            (IndexPart::Segment { segment, .. }, None) if has_all_bits => {
                part.hint_features(&bands.features, self.feature_bits);
                return merge_lists(segment.feature_lists(&bands.features)?, |ordinal, of| {
                    if of.len() >= self.sharing { each(ordinal, 0) } else { Ok(ControlFlow::Continue(())) }
                });
            }
            (IndexPart::Memory(memory), Some(set)) => {
                memory.sharing_prefix(set, !self.unmarked, |row| ordinals.push(row));
            }
            (_, None) => {
                part.hint_features(&bands.features, self.feature_bits);
                for (band, &feature) in bands.features.iter().enumerate() {
                    part.same_feature_bits(band, feature, self.feature_bits, |ordinal| ordinals.push(ordinal))?;
                }
            }
        }
        ordinals.sort_unstable();
        // If documents were found by bands, the list has a document once for each band that it shares with the query.
        let sharing = if by_set.is_some() { 1 } else { self.sharing };
        for same in ordinals.chunk_by(|a, b| a == b).filter(|same| same.len() >= sharing) {
            if each(same[0], 0)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the resemblance of a document; `None` if it is not known, or if distance alone decides.
    pub(super) fn resemblance(
        &self,
        part: &IndexPart<'_>,
        ordinal: u32,
        other: &mut Vec<u64>,
    ) -> Result<Option<Resemblance>> {
        let (Some(bands), Some(minhash)) = (&self.bands, self.params().minhash) else { return Ok(None) };
        match self.counted() {
            Some(set) => count(part, ordinal, set, other).map(Some),
            None => estimate(part, ordinal, &bands.signature, minhash),
        }
    }

    pub(super) fn distance(&self, part: &IndexPart<'_>, ordinal: u32) -> Result<Option<u32>> {
        let Some(from) = self.measured_from else { return Ok(None) };
        Ok(part.fingerprint(ordinal)?.map(|fingerprint| from.distance(Fingerprint(fingerprint))))
    }
}

/// The search of one part, and its hits so far.
struct PartSearch<'a, 'p, 'f> {
    query: &'a Query,
    part: &'a IndexPart<'p>,
    /// Of equally near documents, only this number of documents with the smallest keys is needed.
    enough: usize,
    is_wanted: &'a mut Filter<'f>,
    hits: Vec<FoundDocument>,
    /// The documents whose content is near.
    compared: Vec<u32>,
    /// The number of hits that are as near as possible.
    equal: usize,
    /// A buffer for the set of a document.
    set: Vec<u64>,
}

impl PartSearch<'_, '_, '_> {
    /// Returns whether there are enough hits to which no document can be nearer.
    fn has_enough(&self) -> bool {
        self.equal >= self.enough
    }

    /// Adds the documents that have a fingerprint, which is known to be near.
    fn add_fingerprint(&mut self, distance: u32, place: u32) -> Result<()> {
        let before = self.hits.len();
        self.part.with_fingerprint(place, |ordinal| {
            self.add_near(ordinal, Some(distance))?;
            // By distance alone, all documents with this fingerprint are equally near.
            let is_enough = self.has_enough()
                || self.query.bands.is_none() && self.hits.len() - before >= self.enough;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    fn add_near(&mut self, ordinal: u32, distance: Option<u32>) -> Result<()> {
        if self.is_excluded(ordinal)? {
            return Ok(());
        }
        let resemblance = self.query.resemblance(self.part, ordinal, &mut self.set)?;
        self.add_equal(ordinal, distance, resemblance)
    }

    /// Adds a document if it is near by resemblance. `missing` is a lower bound on the number of hashes of the query's set
    /// that it lacks.
    fn add_candidate(&mut self, ordinal: u32, bands: &Bands, missing: usize) -> Result<()> {
        let (query, part) = (self.query, self.part);
        let Some(minhash) = query.params().minhash else { return Ok(()) };
        if self.is_excluded(ordinal)? {
            return Ok(());
        }
        let resemblance = match query.counted() {
            Some(set) => {
                let counted = count_from(part, ordinal, (set, bands.threshold), missing, &mut self.set)?;
                if counted.is_none() {
                    return Ok(());
                }
                counted
            }
            None => estimate(part, ordinal, &bands.signature, minhash)?,
        };
        if query.unverified || resemblance.is_none_or(|known| known.at_least(bands.threshold)) {
            let distance = query.distance(part, ordinal)?;
            self.add_equal(ordinal, distance, resemblance)?;
        }
        Ok(())
    }

    /// Returns whether a document, and all documents that equal it, need not be compared.
    fn is_excluded(&mut self, ordinal: u32) -> Result<bool> {
        let is_alone = matches!(self.part, IndexPart::Segment { .. });
        Ok(self.part.is_deleted(ordinal)
            || is_alone && !(self.is_wanted)(ordinal)?
            || self.query.unmarked && self.part.is_marked(ordinal)?)
    }

    /// Adds the live documents that equal a near document.
    fn add_equal(
        &mut self,
        near: u32,
        distance: Option<u32>,
        resemblance: Option<Resemblance>,
    ) -> Result<()> {
        self.compared.push(near);
        let is_equal = self.query.is_equal(distance, resemblance);
        let is_alone = matches!(self.part, IndexPart::Segment { .. });
        self.part.for_each_equal(near, self.enough, |ordinal| {
            if is_alone || (self.is_wanted)(ordinal)? {
                self.equal += usize::from(is_equal);
                self.hits.push(FoundDocument { ordinal, distance, resemblance });
            }
            Ok(())
        })
    }
}

/// Returns the exact resemblance of `set` and the set of a document. Reads the document's set into `other`.
fn count(part: &IndexPart<'_>, ordinal: u32, set: &[u64], other: &mut Vec<u64>) -> Result<Resemblance> {
    part.set(ordinal, other)?;
    let intersection = intersection_from(set, other, 0).unwrap_or(0);
    Ok(Resemblance::Exact { intersection, union: set.len() + other.len() - intersection })
}

/// Like [`count`], but returns `None` if the resemblance is below the threshold. `missing` is a lower bound on the
/// number of elements of `set` that the document lacks. Sizes alone exclude most documents. The comparison of the
/// others ends as soon as too few elements remain to reach the threshold.
fn count_from(
    part: &IndexPart<'_>,
    ordinal: u32,
    (set, threshold): (&[u64], f64),
    missing: usize,
    other: &mut Vec<u64>,
) -> Result<Option<Resemblance>> {
    if threshold == 0.0 {
        return count(part, ordinal, set, other).map(Some);
    }
    let size = part.set_size(ordinal)?;
    let min = Nearness::Resemblance(threshold).least_shared(set.len(), size);
    let Some(min) = min.filter(|min| min + missing <= set.len()) else {
        return Ok(None);
    };
    let shared = part.shared_from(ordinal, set, min, other)?;
    Ok(shared.map(|shared| Resemblance::Exact { intersection: shared, union: set.len() + size - shared }))
}

fn estimate(
    part: &IndexPart<'_>,
    ordinal: u32,
    signature: &[u8],
    minhash: MinhashParams,
) -> Result<Option<Resemblance>> {
    if minhash.signature_bits == 0 || signature.is_empty() {
        return Ok(None);
    }
    let (minima, bits) = (minhash.minima(), minhash.signature_bits);
    let same = part.signature(ordinal, |stored| matches(signature, stored, minima, bits))?;
    Ok(Some(Resemblance::from_matches(same, minhash.minima(), minhash.signature_bits)))
}

