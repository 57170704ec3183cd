//! Finds the documents of one part that match a query.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::{Bands, FoundDocument, Omitted, Query};
use crate::error::Result;
use crate::format::bands;
use crate::format::prefixes::Marks;
use crate::format::prefixes::fewest_missing;
use crate::params::MinhashParams;
use crate::segment::ahead::ReadNext;
use crate::segment::buckets::{KeyList, merge_lists};
use crate::segment::held::Bucket;
use crate::segment::{SearchScratch, Segment};
use crate::store::part::IndexPart;
use twindex_sketch::{Nearness, Resemblance, intersection_from, matches};

/// Maximum number of documents of a list that are announced.
const LISTED: usize = 16;
/// The keys of this number of listed documents are announced before the documents are compared.
const KEYS: usize = 64;
/// Number of compared documents after which a query checks whether it was cancelled.
const CHECKED: u32 = 64;

/// A filter of documents, by ordinal.
type Filter<'a> = dyn FnMut(u32) -> Result<bool> + 'a;

impl Query {
    /// Returns the matching documents of one part, each once.
    pub(in crate::store) fn find_in(&self, part: &IndexPart<'_>) -> Result<Vec<FoundDocument>> {
        self.find_among(part, &mut |_| Ok(true))
    }

    /// Like [`find_in`](Self::find_in), but returns only documents for which `is_wanted` returns true.
    pub(in crate::store) fn find_among(
        &self,
        part: &IndexPart<'_>,
        is_wanted: &mut Filter<'_>,
    ) -> Result<Vec<FoundDocument>> {
        self.find(part, (usize::MAX, None), &mut Omitted::default(), is_wanted)
    }

    /// Like [`find_in`](Self::find_in), but may omit a document that is farther than `bound.1`, or if `bound.0` documents of
    /// the part precede it in the order of hits. So the number of equal documents that are read does not depend on the
    /// number of those that are stored.
    pub(in crate::store) fn find_nearest_in(
        &self,
        part: &IndexPart<'_>,
        bound: (usize, Option<u32>),
        omitted: &mut Omitted,
    ) -> Result<Vec<FoundDocument>> {
        self.find(part, bound, omitted, &mut |_| Ok(true))
    }

    fn find(
        &self,
        part: &IndexPart<'_>,
        (enough, farthest): (usize, Option<u32>),
        omitted: &mut Omitted,
        is_wanted: &mut Filter<'_>,
    ) -> Result<Vec<FoundDocument>> {
        // Of the equal documents that a memtable finds first, none may have the right value.
        let enough = if self.value.is_some() { usize::MAX } else { enough };
        let mut found = PartSearch {
            query: self,
            part,
            enough,
            is_wanted,
            omitted,
            hits: Vec::new(),
            compared: Vec::new(),
            equal: 0,
            farthest,
            distances: BinaryHeap::new(),
            set: Vec::new(),
            unchecked: 0,
        };
        self.cancel.check()?;
        if let Some((code, _)) = &self.within {
            let mut near = part.fingerprints_within(code, self.ask(), &mut found.omitted.buckets)?;
            near.sort_unstable();
            for same in near.chunk_by(|a, b| a.0 == b.0) {
                for &(distance, place) in same {
                    found.add_fingerprint(distance, place)?;
                }
                if found.hits.len() >= enough {
                    return Ok(found.hits); // the others are farther, or are equal and have larger keys
                }
            }
        }
        let Some(bands) = &self.bands else { return Ok(found.hits) };
        let mut known = std::mem::take(&mut found.compared);
        known.sort_unstable();
        // Only the documents of a segment are found in the order of their keys.
        let in_order = matches!(part, IndexPart::Segment { .. });
        let keys = self.candidates(part, bands, &mut |ordinal, missing| {
            if known.binary_search(&ordinal).is_err() {
                found.add_candidate(ordinal, bands, missing)?;
            }
            Ok(if in_order && found.has_enough() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        if found.omitted.asks_for_marked
            && found.hits.is_empty()
            && let Some(set) = self.exact_set().filter(|_| self.is_by_prefixes())
        {
            // The lists of prefixes that were read contain only unmarked documents.
            found.omitted.may_be_marked |= part.may_have_marked(set, &keys)?;
        }
        Ok(found.hits)
    }

    /// Calls `each` with each bucket of a segment that can contain near documents. The second argument is true if all
    /// documents of the bucket are near.
    pub(in crate::store) fn for_each_bucket(
        &self,
        segment: &Segment,
        mut each: impl FnMut(Bucket, bool) -> Result<()>,
    ) -> Result<()> {
        if let Some((code, _)) = &self.within {
            let mut ranks = Vec::new();
            SearchScratch::lend(|scratch| {
                segment.search(&[code.words()[0]], self.ask(), scratch, |_, near| {
                    ranks.push(near.rank);
                    Ok(ControlFlow::Continue(()))
                })
            })?;
            segment.check_lists(&ranks)?;
            ranks.into_iter().try_for_each(|rank| each(Bucket::Fingerprint(rank), true))?;
        }
        let Some(bands) = &self.bands else { return Ok(()) };
        if let Some(set) = self.exact_set().filter(|_| self.is_by_prefixes()) {
            let keys = segment.prefix_keys(set, Nearness::Resemblance(bands.threshold), self.marks)?;
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
        if let Some((code, _)) = &self.within {
            SearchScratch::lend(|scratch| {
                part.search(code, self.ask(), scratch, |ordinal, _| {
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
        .map(drop)
    }

    /// Returns whether a candidate is near by resemblance. `scratch` is a reusable buffer.
    pub(in crate::store) fn resembles(
        &self,
        part: &IndexPart<'_>,
        ordinal: u32,
        scratch: &mut Vec<u64>,
    ) -> Result<bool> {
        let (Some(bands), Some(minhash)) = (&self.bands, self.params().minhash) else { return Ok(false) };
        if let Some(set) = self.exact_set() {
            return Ok(count_from(part, ordinal, (set, bands.threshold), 0, scratch)?.is_some());
        }
        let resemblance = estimate(part, ordinal, &bands.signature, minhash)?;
        Ok(self.unverified || resemblance.is_none_or(|known| known.at_least(bands.threshold)))
    }

    /// Calls `each` with each document that can be near, once, in ascending order, until it returns `Break`. Includes
    /// documents that are no longer live; of equal rows of a memtable, only the first. The second argument is a lower
    /// bound on the number of hashes of the query's set that are missing from the document's set. Returns the positions and
    /// keys that were looked up in the prefixes of a segment, if candidates are found by these.
    fn candidates(
        &self,
        part: &IndexPart<'_>,
        bands: &Bands,
        each: &mut dyn FnMut(u32, usize) -> Result<ControlFlow<()>>,
    ) -> Result<Vec<(u32, u32)>> {
        let has_all_bits = self.feature_bits == bands::bits_of(self.params());
        let mut ordinals: Vec<u32> = Vec::new();
        let by_set = self.exact_set().filter(|_| self.is_by_prefixes());
        match (part, by_set) {
            (IndexPart::Segment { segment, .. }, Some(set)) => {
                let near = Nearness::Resemblance(bands.threshold);
                let keys = segment.prefix_keys(set, near, self.marks)?;
                // If marked and unmarked documents are searched, all positions are 0.
                let has_places = keys.last().is_some_and(|&(place, _)| place != 0);
                let lists = segment.prefix_lists(&keys)?;
                self.announce_listed(part, &lists);
                merge_lists(lists, |ordinal, of| {
                    let of = if has_places { of } else { &of[..1] };
                    each(ordinal, fewest_missing(of.iter().map(|&list| keys[list as usize].0)))
                })?;
                return Ok(keys);
            }
            (IndexPart::Segment { segment, .. }, None) if has_all_bits => {
                part.hint_features(&bands.features, self.feature_bits);
                let lists = segment.feature_lists(&bands.features)?;
                self.announce_listed(part, &lists);
                merge_lists(lists, |ordinal, of| {
                    if of.len() >= self.sharing { each(ordinal, 0) } else { Ok(ControlFlow::Continue(())) }
                })?;
                return Ok(Vec::new());
            }
            (IndexPart::Memory(memory), Some(set)) => {
                memory.sharing_prefix(set, self.marks, |row| ordinals.push(row));
            }
            (_, None) => {
                part.hint_features(&bands.features, self.feature_bits);
                for (band, &feature) in bands.features.iter().enumerate() {
                    part.same_feature_bits(band, feature, self.feature_bits, |ordinal| {
                        ordinals.push(ordinal);
                    })?;
                }
            }
        }
        ordinals.sort_unstable();
        self.announce_compared(part, ordinals.iter().copied());
        // If documents were found by bands, the list has a document once for each band that it shares with the query.
        let sharing = if by_set.is_some() { 1 } else { self.sharing };
        for same in ordinals.chunk_by(|a, b| a == b).filter(|same| same.len() >= sharing) {
            if each(same[0], 0)?.is_break() {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Announces the data by which the documents of these lists are compared: the first ones of each list, as most lists
    /// are short.
    fn announce_listed(&self, part: &IndexPart<'_>, lists: &[KeyList<'_>]) {
        self.announce_compared(part, lists.iter().flat_map(|list| list.ordinals().take(LISTED)));
    }

    /// Announces the data by which documents are compared, and the keys of the first ones, as most listed documents are near.
    fn announce_compared(&self, part: &IndexPart<'_>, ordinals: impl Iterator<Item = u32> + Clone) {
        let is_exact = self.exact_set().is_some();
        let fields = is_exact || self.marks != Marks::Any;
        let fingerprints = self.measured_from.is_some();
        part.announce_documents(
            ReadNext { keys: KEYS, signatures: !is_exact, fields, fingerprints },
            ordinals,
        );
    }

    /// Returns the resemblance of a document; `None` if it is not known, or if distance alone decides.
    pub(super) fn resemblance(
        &self,
        part: &IndexPart<'_>,
        ordinal: u32,
        other: &mut Vec<u64>,
    ) -> Result<Option<Resemblance>> {
        let (Some(bands), Some(minhash)) = (&self.bands, self.params().minhash) else { return Ok(None) };
        count_comparison();
        match self.exact_set() {
            Some(set) => count(part, ordinal, set, other).map(Some),
            None => estimate(part, ordinal, &bands.signature, minhash),
        }
    }

    pub(super) fn distance(&self, part: &IndexPart<'_>, ordinal: u32) -> Result<Option<u32>> {
        let Some(from) = &self.measured_from else { return Ok(None) };
        Ok(part.code(ordinal)?.map(|code| from.distance(&code)))
    }
}

/// The search of one part, and its hits so far.
struct PartSearch<'a, 'p, 'f> {
    query: &'a Query,
    part: &'a IndexPart<'p>,
    /// Of equally near documents, only this number of documents with the smallest keys is needed.
    enough: usize,
    is_wanted: &'a mut Filter<'f>,
    omitted: &'a mut Omitted,
    hits: Vec<FoundDocument>,
    /// The documents whose content is near.
    compared: Vec<u32>,
    /// The number of hits that are as near as possible.
    equal: usize,
    /// Documents that are farther than this need not be found.
    farthest: Option<u32>,
    /// The `enough` smallest distances of the hits.
    distances: BinaryHeap<u32>,
    /// A buffer for the set of a document.
    set: Vec<u64>,
    /// Number of documents until the next check whether the query was cancelled.
    unchecked: u32,
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
            let is_enough =
                self.has_enough() || self.query.bands.is_none() && self.hits.len() - before >= self.enough;
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
        if self.is_excluded(ordinal)? || self.is_too_far(ordinal)? {
            return Ok(());
        }
        count_comparison();
        let resemblance = match query.exact_set() {
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
        if self.unchecked == 0 {
            self.query.cancel.check()?;
            self.unchecked = CHECKED;
        }
        self.unchecked -= 1;
        let is_alone = matches!(self.part, IndexPart::Segment { .. });
        if self.part.is_deleted(ordinal) || is_alone && !self.is_wanted(ordinal)? {
            return Ok(true);
        }
        let is_excluded = !self.query.has_right_mark(self.part, ordinal)?;
        self.omitted.may_be_marked |= is_excluded;
        Ok(is_excluded)
    }

    fn is_wanted(&mut self, ordinal: u32) -> Result<bool> {
        Ok((self.is_wanted)(ordinal)?
            && match &self.query.value {
                Some(value) => self.part.value(ordinal)? == *value,
                None => true,
            })
    }

    /// Returns whether a document is farther than all hits that are needed. This is faster to decide than resemblance.
    fn is_too_far(&self, ordinal: u32) -> Result<bool> {
        let of_hits = self.distances.peek().filter(|_| self.distances.len() >= self.enough);
        let Some(farthest) = self.farthest.into_iter().chain(of_hits.copied()).min() else {
            return Ok(false);
        };
        Ok(self.query.distance(self.part, ordinal)?.is_none_or(|distance| distance > farthest))
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
        let part = self.part;
        part.for_each_equal(near, self.enough, |ordinal| {
            if is_alone || self.is_wanted(ordinal)? {
                self.equal += usize::from(is_equal);
                self.hits.push(FoundDocument { ordinal, distance, resemblance });
                count_comparison();
                if let Some(distance) = distance.filter(|_| self.enough < usize::MAX) {
                    self.distances.push(distance);
                    if self.distances.len() > self.enough {
                        self.distances.pop();
                    }
                }
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

#[cfg(test)]
thread_local! {
    /// The number of documents that queries of this thread compared or found.
    static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn count_comparison() {
    #[cfg(test)]
    COMPARED.with(|compared| compared.set(compared.get() + 1));
}

#[cfg(test)]
#[cfg(not(twindex_shuttle))]
mod tests {
    use super::COMPARED;
    use crate::params::{Near, ParamsBuilder};
    use crate::{Index, Params, Sketch, Writer, WriterOptions};

    /// Returns the number of documents that are compared or found by `step`.
    fn compared<T>(step: impl FnOnce() -> T) -> u64 {
        let before = COMPARED.get();
        step();
        COMPARED.get() - before
    }

    /// Returns a text of 40 words. Texts with different numbers differ in the first word.
    fn text(first: usize) -> String {
        (0..40)
            .map(|word| format!("word{}", if word == 0 { 1000 + first } else { word }))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn kinds() -> [(ParamsBuilder, bool); 4] {
        let builder = || Params::builder().words(3);
        let near = Near::resembling(0.8).unwrap();
        [
            (builder().simhash(3).minhash(20, 2).near(near).sets(), false),
            (builder().minhash(20, 2).near(near).sets(), false),
            (builder().simhash(3).minhash(20, 2).near(near.or_within(3)), true),
            (builder().simhash(3), false),
        ]
    }

    /// Creates an index, and calls `step` with its writer and the sketches of the texts.
    fn with_writer(
        kind: (ParamsBuilder, bool),
        texts: &[String],
        step: impl FnOnce(&Index, &mut Writer, &[Sketch]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::create(dir.path().join("x"), kind.0.build().unwrap()).unwrap();
        let sketcher = index.sketcher().unwrap();
        let sketches: Vec<Sketch> = texts.iter().map(|text| sketcher.sketch(text).unwrap()).collect();
        let mut writer = index.writer_with(WriterOptions::default().estimated(kind.1)).unwrap();
        step(&index, &mut writer, &sketches);
    }

    #[test]
    fn work_for_an_equal_document_does_not_depend_on_the_number_of_equal_documents() {
        for number in 0..kinds().len() {
            let mut counts = Vec::new();
            for documents in [100_u64, 600] {
                with_writer(kinds()[number].clone(), &[text(0)], |index, writer, sketches| {
                    let mut of_limits = Vec::new();
                    let mut key = 0;
                    let mut admit = |writer: &mut Writer, count: u64| {
                        compared(|| {
                            for _ in 0..count {
                                // Keys that descend, so that each document becomes the one that lookups find.
                                key += 1;
                                writer.admit(format!("{:05}", 99_999 - key).as_str(), &sketches[0]).unwrap();
                            }
                            writer.commit().unwrap();
                        })
                    };
                    let of_admits = admit(writer, documents);
                    assert!(of_admits <= 5 * documents, "{of_admits}");
                    let mut near = || {
                        for limit in [1, 5] {
                            let snapshot = index.snapshot();
                            of_limits.push(compared(|| {
                                let query = snapshot.near(&sketches[0]).limit(limit);
                                assert_eq!(query.run().unwrap().hits.len(), limit);
                            }));
                        }
                    };
                    near();
                    writer.flush().unwrap();
                    near();
                    assert!(admit(writer, documents) <= 5 * documents);
                    near();
                    counts.push(of_limits);
                });
            }
            assert_eq!(counts[0], counts[1], "kind {number}");
        }
    }

    #[test]
    fn equal_document_among_many_near_ones_is_looked_up_once() {
        let texts: Vec<String> = (0..200).map(text).collect();
        for kind in &kinds()[..2] {
            with_writer(kind.clone(), &texts, |_, writer, sketches| {
                for (key, sketch) in (100..).zip(sketches) {
                    writer.put(format!("{key}").as_str(), sketch).unwrap();
                }
                let first = compared(|| writer.admit("a", &sketches[7]).unwrap());
                assert!(first > 1, "{first}");
                let later = compared(|| {
                    (0..100)
                        .for_each(|key| _ = writer.admit(format!("b{key}").as_str(), &sketches[7]).unwrap());
                });
                assert_eq!(later, 100);
            });
        }
    }
}
