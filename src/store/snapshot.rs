//! The index at one generation.

use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::part::IndexPart;
use super::query::Query;
use super::range::{self, Keys};
use super::record::Record;
use super::state::State;
use crate::error::{Error, Result};
use crate::extsort::Merge;
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::key::{Key, KeyBuf};
use crate::params::{Near, Params};
use crate::segment::keys::LiveKeys;
use crate::segment::{SearchOptions, SearchScratch, Segment};
use twindex_sketch::{Fingerprint, Sketch, pack};

/// A view of the index that never changes. Cheap to clone, `Send + Sync`; it keeps its files open.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: Arc<State>,
}

/// A document of a snapshot, by position.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The segment it is in.
    pub segment: &'a Segment,
    /// Its ordinal there.
    pub ordinal: u32,
}

impl Place<'_> {
    /// Its key.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn key(&self) -> Result<KeyBuf> {
        self.segment.key(self.ordinal)
    }
}

/// The segments of a snapshot.
struct Segments<'a> {
    state: &'a State,
    place: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = (&'a Segment, &'a RoaringBitmap);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = self.place;
        if place == self.state.segment_count() {
            return None;
        }
        self.place += 1;
        Some(self.state.segment_at(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.state.segment_count() - self.place;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Segments<'_> {}

impl Snapshot {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    /// The number of the last commit: 1 for a new index. Commits are numbered in ascending order; some numbers are used
    /// by a writer's file changes between two commits.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.view.commit
    }

    /// The last commit that is known to be durable: this one or an earlier one.
    ///
    /// In the writer's process that is the last commit whose sync has returned. Another process reads it from the
    /// files. For commits in the log, it is the synced offset stated by a later batch, or by the mark that
    /// [`Writer::sync`](super::Writer::sync) and the end of the writer append; so it may lag. For the generation that
    /// `CURRENT` names, it may be early by the time of the directory sync that ends the publication. After a crash of
    /// the machine in that moment the generation before can be current again, as if the commit had never been; the
    /// writer had not acknowledged it.
    #[must_use]
    pub fn durable_commit(&self) -> u64 {
        self.state.durable_commit()
    }

    /// The payload of the last commit with one: [`Writer::commit_with`](super::Writer::commit_with).
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        self.state.view.payload.as_deref()
    }

    /// The highest committed stamp: the event time of this snapshot, by which documents expire. `None` if documents do
    /// not expire, and before the first stamp.
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.state.view.now()
    }

    /// The index's identity, chosen at random when it was created.
    #[must_use]
    pub fn uuid(&self) -> u128 {
        self.state.manifest.uuid
    }

    /// The index's parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.state.manifest.params
    }

    /// Live documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.state.view.documents()
    }

    /// Live documents that are in no segment on disk yet, but in logs.
    #[must_use]
    pub fn logged_documents(&self) -> u64 {
        self.state.view.logged()
    }

    /// Its segments, oldest first, each with the ordinals that are no longer live. Documents that are in no segment on
    /// disk yet are built into one in memory at the first call, which comes last.
    #[must_use]
    pub fn segments(&self) -> impl ExactSizeIterator<Item = (&Segment, &RoaringBitmap)> {
        Segments { state: &self.state, place: 0 }
    }

    /// As [`Segment::check_map`], for all segments: for callers that query [`segments`](Self::segments) directly, as
    /// the joins do, in a program that has installed a guard. The snapshot checks its own answers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check_maps(&self) -> Result<()> {
        self.state.view.segments.iter().try_for_each(|segment| segment.check_map())
    }

    /// All parts that can be queried, without building anything first.
    pub(super) fn parts(&self) -> impl Iterator<Item = IndexPart<'_>> {
        self.state.parts()
    }

    pub(super) fn shared_state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The manifest's entry of each segment on disk, oldest first. Deletes that are still in logs are not included.
    #[must_use]
    pub fn entries(&self) -> &[SegmentEntry] {
        &self.state.manifest.segments
    }

    /// The manifest: the files of the index. Commits to a log are not in it.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.state.manifest
    }

    /// The stored record of the document with this key: O(segments x log n).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the other kind, [`Error::Corrupt`].
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Record>> {
        Record::find(&self.state, key.into())
    }

    /// The keys of live documents in a range, ascending.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
    /// let mut writer = index.writer()?;
    /// for key in ["a/1", "a/2", "b/1", "c/1"] {
    ///     writer.put(key, Fingerprint(1))?;
    /// }
    /// writer.commit()?;
    /// let snapshot = index.snapshot();
    /// let keys = |keys: twindex::Keys| keys.map(|key| Ok(key?.to_string())).collect::<twindex::Result<Vec<_>>>();
    /// assert_eq!(keys(snapshot.range("a/2".."c")?)?, ["a/2", "b/1"]);
    /// assert_eq!(keys(snapshot.prefix("a/")?)?, ["a/1", "a/2"]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for bounds of the other kind of keys, [`Error::Corrupt`].
    pub fn range<'k, K: Into<Key<'k>> + Clone>(&self, range: impl RangeBounds<K>) -> Result<Keys> {
        let bound = |bound: Bound<&K>| bound.map(|key| key.clone().into().to_buf());
        let (from, to) = (bound(range.start_bound()), bound(range.end_bound()));
        Keys::new(Arc::clone(&self.state), &from, &to)
    }

    /// The keys of live documents that begin with `prefix`, ascending.
    ///
    /// # Errors
    /// [`Error::Invalid`] where keys are numbers, [`Error::Corrupt`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Keys> {
        let (from, to) = range::of_prefix(prefix.as_ref());
        Keys::new(Arc::clone(&self.state), &from, &to)
    }

    /// The keys of all live documents, ascending: [`range`](Self::range) without bounds.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().u64_keys().simhash(3).build()?)?;
    /// let mut writer = index.writer()?;
    /// for key in [7_u64, 3, 5] {
    ///     writer.put(key, Fingerprint(key))?;
    /// }
    /// writer.commit()?;
    /// let keys = index.snapshot().keys()?.collect::<twindex::Result<Vec<_>>>()?;
    /// assert_eq!(keys.iter().map(|key| key.as_u64()).collect::<Vec<_>>(), [Some(3), Some(5), Some(7)]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn keys(&self) -> Result<Keys> {
        Keys::new(Arc::clone(&self.state), &Bound::Unbounded, &Bound::Unbounded)
    }

    /// True if there is a live document with this key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains<'k>(&self, key: impl Into<Key<'k>>) -> Result<bool> {
        let key = key.into();
        key.check(self.params().key)?;
        for part in self.parts() {
            let found = part.find(key)?;
            part.check_map()?;
            if found.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Documents that share this feature's stored bits in this band, from 0: candidates for resemblance, unverified, in
    /// no particular order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that this index does not keep, [`Error::Corrupt`].
    pub fn same_feature(&self, band: usize, feature: u64) -> Result<Vec<KeyBuf>> {
        let bands = self.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
        if band >= bands {
            return Err(Error::Invalid(format!("band {band}: this index keeps {bands}, counted from 0")));
        }
        let mut keys = Vec::new();
        for part in self.parts() {
            let mut ordinals = Vec::new();
            part.same_feature(band, feature, |ordinal| ordinals.push(ordinal))?;
            for ordinal in ordinals.into_iter().filter(|&ordinal| part.is_live(ordinal)) {
                keys.push(part.key(ordinal)?);
            }
            part.check_map()?;
        }
        Ok(keys)
    }

    /// Hands the keys of all live documents to `each`, ascending.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or what `each` returns.
    pub fn for_each_key(&self, mut each: impl FnMut(Key<'_>) -> Result<()>) -> Result<()> {
        let segments: Vec<_> = self.segments().collect();
        let sources = segments.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
        // No key is live in two segments.
        let mut merge = Merge::new(sources, Ord::cmp);
        while let Some((of, (key, _))) = merge.next()? {
            segments[of].0.check_map()?;
            each(key.as_key())?;
        }
        segments.iter().try_for_each(|(segment, _)| segment.check_map())
    }

    /// The documents whose fingerprints differ from this one in at most `within` bits; none is missed.
    ///
    /// # Errors
    /// When the query is run: [`Error::Invalid`] for a radius over [`WITHIN_MAX`](crate::design::WITHIN_MAX) or an index
    /// without fingerprints.
    pub fn within(&self, fingerprint: Fingerprint, within: u32) -> Query {
        Query::new(Arc::clone(&self.state)).fingerprint(fingerprint, within)
    }

    /// The documents whose resemblance to this one is at least `threshold`.
    ///
    /// If the index stores [sets](crate::params::ParamsBuilder::sets), resemblance is counted and no document is
    /// missed. Then a threshold below that of the index is refused, and documents without tokens are near copies of
    /// themselves.
    ///
    /// Otherwise these are the documents that share a band with this one and whose resemblance, estimated from the
    /// stored signatures, is at least `threshold`. Without signatures nothing is known of it, and the answer is an
    /// error unless the threshold is 0 or the query accepts all that share a band ([`Query::unverified`]).
    ///
    /// Of the documents that resemble this one by J, the share that has a band in common is
    /// [`Banding::recall`](crate::planner::Banding::recall) of J: choose bands for the lowest threshold of your
    /// queries.
    ///
    /// A sketch that was made with other parameters is accepted if both agree in everything that bands depend on
    /// ([`Params::check_same_bands`]); then hits have a resemblance, and no distance or containment.
    ///
    /// # Errors
    /// When the query is run: [`Error::ParamsMismatch`] for a sketch whose bands were made with other parameters,
    /// [`Error::Invalid`] for an index without `MinHash` or a threshold outside 0 to 1.
    pub fn resembling(&self, sketch: &Sketch, threshold: f64) -> Query {
        self.by_bands(sketch, threshold).unwrap_or_else(|error| self.refused(error))
    }

    fn refused(&self, error: Error) -> Query {
        Query::new(Arc::clone(&self.state)).refused(error)
    }

    fn by_bands(&self, sketch: &Sketch, threshold: f64) -> Result<Query> {
        let is_same = sketch.params_digest() == self.state.sketch_digest || self.check_sketch(sketch).is_ok();
        if !is_same {
            sketch.check_same_bands(&self.params().sketch())?;
        }
        let Some(minhash) = self.params().minhash else {
            return Err(Error::Invalid("this index keeps no MinHash: resemblance is not answered".into()));
        };
        if !(0.0..=1.0).contains(&threshold) {
            return Err(Error::Invalid(format!("resemblance {threshold}: 0 to 1 are answered")));
        }
        let mut packed = Vec::new();
        pack(sketch.signature(), minhash.signature_bits, &mut packed);
        let query = Query::new(Arc::clone(&self.state)).features(sketch.features().to_vec(), packed, threshold);
        Ok(if is_same { query.measure(sketch.fingerprint()).samples(sketch.bottom(), sketch.modular()).set(sketch) } else { query })
    }

    /// The documents whose set of shingle hashes resembles this one by `threshold` or more, counted; none is missed.
    /// `set` has the distinct hashes of a document, ascending, as the [shingler](twindex_sketch::Shingler) of the index
    /// makes them. Hits have a resemblance, and no distance or containment.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(1).minhash(20, 6).sets().build()?;
    /// let index = Index::create(dir.path().join("x"), params)?;
    /// let sketch = index.sketcher()?.sketch("one two three four five")?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", &sketch)?;
    /// writer.commit()?;
    /// let hits = index.snapshot().resembling_set(&sketch.set()[1..], 0.8).run()?.hits;
    /// assert_eq!(hits[0].resemblance.unwrap().to_string(), "4/5");
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the query is run: [`Error::Invalid`] for an index without [sets](crate::params::ParamsBuilder::sets), hashes
    /// that do not ascend, or a threshold that is not above 0 and at most 1, or below that of the index.
    pub fn resembling_set(&self, set: &[u64], threshold: f64) -> Query {
        self.by_set(set, threshold).unwrap_or_else(|error| self.refused(error))
    }

    fn by_set(&self, set: &[u64], threshold: f64) -> Result<Query> {
        if !self.params().sets {
            return Err(Error::Invalid("this index keeps no sets: resemblance to a set is not answered".into()));
        }
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::Invalid(format!("resemblance {threshold} to a set: above 0 and up to 1 are answered")));
        }
        if !set.is_sorted_by(|a, b| a < b) {
            return Err(Error::Invalid("a set of shingle hashes has to be ascending, each hash once".into()));
        }
        Ok(Query::new(Arc::clone(&self.state)).features(Vec::new(), Vec::new(), threshold).hashes(set))
    }

    /// The documents that are near by the index's parameters ([`Params::near`]). The default is documents
    /// [`within`](Self::within) the radius of the tables, and documents [`resembling`](Self::resembling) this one at
    /// 0.8 or more, if the index stores fingerprints and minima, respectively. An empty sketch is near nothing; a
    /// sketch of other parameters makes the answer an error.
    pub fn near(&self, sketch: &Sketch) -> Query {
        self.near_by(sketch, self.params().near())
    }

    /// As [`near`](Self::near), by another resemblance or distance than the index's own. If the index cannot decide by
    /// it, the answer is an error.
    pub fn near_by(&self, sketch: &Sketch, near: Near) -> Query {
        let checked = self.check_sketch(sketch).and_then(|()| near.check_kept(self.params()));
        let by_bands = checked.and_then(|()| match near.threshold {
            Some(threshold) => self.by_bands(sketch, threshold.value()),
            None => {
                Ok(Query::new(Arc::clone(&self.state)).samples(sketch.bottom(), sketch.modular()))
            }
        });
        let query = match by_bands {
            Ok(query) => query,
            Err(error) => return self.refused(error),
        };
        match (near.within, sketch.fingerprint()) {
            (Some(within), Some(fingerprint)) => query.fingerprint(fingerprint, within.into()),
            _ => query,
        }
    }

    fn check_sketch(&self, sketch: &Sketch) -> Result<()> {
        self.params().check_sketch(self.state.sketch_digest, sketch)
    }

    /// Refuses a query about fingerprints that this index cannot answer.
    pub fn check_within(&self, within: u32) -> Result<()> {
        self.state.check_within(within)
    }

    /// Hands each live document within `within` bits of each of these fingerprints to `each`: the number of the
    /// fingerprint in the slice, the document, the distance; in no particular order. The queries wait for memory
    /// together, so once the index is larger than the caches this is about twice as fast as
    /// [`for_each_within`](Self::for_each_within).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let params = twindex::Params::builder().u64_keys().simhash(3).build()?;
    /// # let snapshot = twindex::Index::create(dir.path().join("x"), params)?.snapshot();
    /// use twindex::Fingerprint;
    ///
    /// let queries: Vec<Fingerprint> = (0..1000).map(Fingerprint).collect();
    /// let mut pairs = 0;
    /// snapshot.for_each_within_any(&queries, 3, |_query, _document, _distance| {
    ///     pairs += 1;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`for_each_within`](Self::for_each_within), or what `each` returns.
    pub fn for_each_within_any(
        &self,
        fingerprints: &[Fingerprint],
        within: u32,
        mut each: impl FnMut(usize, Place<'_>, u32) -> Result<()>,
    ) -> Result<()> {
        self.for_each_answer(fingerprints, SearchOptions::within(within), |query, place, distance| {
            each(query, place, distance)?;
            Ok(ControlFlow::Continue(()))
        })
        .map(drop)
    }

    /// As [`for_each_within_any`](Self::for_each_within_any), with all options: how tables are probed, and how many
    /// rows a query may visit in each segment. A break ends the query of this match, within this segment. Returns the
    /// number of skipped buckets.
    ///
    /// # Errors
    /// As [`Segment::search`].
    pub fn for_each_answer(
        &self,
        fingerprints: &[Fingerprint],
        ask: SearchOptions,
        mut each: impl FnMut(usize, Place<'_>, u32) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        self.check_within(ask.within)?;
        let mut left_out = 0;
        let queries: Vec<u64> = fingerprints.iter().map(|fingerprint| fingerprint.0).collect();
        let mut scratch = SearchScratch::default();
        for (segment, deleted) in self.segments() {
            segment.search_documents(&queries, ask, &mut scratch, |query, ordinal, distance| {
                if deleted.is_empty() || !deleted.contains(ordinal) {
                    return each(query, Place { segment, ordinal }, distance);
                }
                Ok(ControlFlow::Continue(()))
            })?;
            segment.check_map()?;
            left_out += scratch.left_out();
        }
        Ok(left_out)
    }

    /// Hands each live document within `within` bits of `fingerprint` and its distance to `each`, in no particular
    /// order: the same documents as [`within`](Self::within), without sorting and keys.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius over [`WITHIN_MAX`](crate::design::WITHIN_MAX) or an index without
    /// fingerprints, [`Error::Corrupt`].
    #[inline]
    pub fn for_each_within(
        &self,
        fingerprint: Fingerprint,
        within: u32,
        mut each: impl FnMut(Place<'_>, u32),
    ) -> Result<()> {
        self.check_within(within)?;
        for (segment, deleted) in self.segments() {
            segment.documents_within(fingerprint.0, within, |ordinal, distance| {
                if deleted.is_empty() || !deleted.contains(ordinal) {
                    each(Place { segment, ordinal }, distance);
                }
            })?;
            segment.check_map()?;
        }
        Ok(())
    }
}
