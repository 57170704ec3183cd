//! An immutable view of the index at one commit.

use std::collections::BinaryHeap;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::part::IndexPart;
use super::query::{Answers, Hit, Query};
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
use twindex_sketch::{Code, Fingerprint, Sketch, pack};

/// An immutable view of the index. Cheap to clone, `Send + Sync`. A snapshot keeps its files open.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: Arc<State>,
}

/// A document of a snapshot, identified by its segment and its ordinal.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The segment that contains the document.
    pub segment: &'a Segment,
    /// The ordinal of the document in the segment.
    pub ordinal: u32,
}

impl Place<'_> {
    /// Returns the key of the document.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn key(&self) -> Result<KeyBuf> {
        self.segment.key(self.ordinal)
    }
}

/// Iterator over the segments of a snapshot.
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

    /// Returns the number of the last commit; 1 for a new index. Commit numbers increase, but not always by one: a
    /// flush or a merge between two commits also takes a number.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.view.commit
    }

    /// Returns the number of the last commit that is known to be durable; at most [`generation`](Self::generation).
    ///
    /// In the writer's process, this is the last commit whose sync has returned. Another process derives the number from the
    /// files, and the result is approximate:
    ///
    /// - Commits in the log: the process reads the synced offset that a later batch, [`Writer::sync`](super::Writer::sync)
    ///   or the end of the writer recorded. The number can be too low.
    /// - A generation is treated as durable as soon as `CURRENT` names it, shortly before the directory sync that completes
    ///   the publication has returned. If the machine crashes in between, the previous generation can become current again,
    ///   as if the commit had not happened. The writer had not acknowledged that commit.
    #[must_use]
    pub fn durable_commit(&self) -> u64 {
        self.state.durable_commit()
    }

    /// Returns the payload of the last commit that has a payload; see [`Writer::commit_with`](super::Writer::commit_with).
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        self.state.view.payload.as_deref()
    }

    /// Returns the highest committed stamp, which is the event time of this snapshot: documents expire relative to it.
    /// `None` if documents do not expire, and before the first stamp.
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.state.view.now()
    }

    /// Returns the UUID of the index, chosen at random when it was created.
    #[must_use]
    pub fn uuid(&self) -> u128 {
        self.state.manifest.uuid
    }

    /// Returns the parameters of the index.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.state.manifest.params
    }

    /// Returns the number of live documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.state.view.documents()
    }

    /// Returns the number of live documents that are only in logs, not yet in a segment on disk.
    #[must_use]
    pub fn logged_documents(&self) -> u64 {
        self.state.view.logged()
    }

    /// Returns the segments, oldest first, each with the ordinals of its documents that are no longer live. If some
    /// documents are not in a segment on disk yet, the last segment contains them; it is built in memory at the first call.
    #[must_use]
    pub fn segments(&self) -> impl ExactSizeIterator<Item = (&Segment, &RoaringBitmap)> {
        Segments { state: &self.state, place: 0 }
    }

    /// Calls [`Segment::check_map`] for all segments. If the program has installed a guard against read errors of mapped
    /// files, callers that query [`segments`](Self::segments) directly must call this before they use the results. The
    /// methods of the snapshot do this themselves.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check_maps(&self) -> Result<()> {
        self.state.view.segments.iter().try_for_each(|segment| segment.check_map())
    }

    /// Returns the segments and memtables of the snapshot, without building a segment from the memtables.
    pub(super) fn parts(&self) -> impl Iterator<Item = IndexPart<'_>> {
        self.state.parts()
    }

    pub(super) fn shared_state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the manifest entries of the segments on disk, oldest first. The entries do not include deletes that are only
    /// in logs.
    #[must_use]
    pub fn entries(&self) -> &[SegmentEntry] {
        &self.state.manifest.segments
    }

    /// Returns the manifest, which lists the files of the index. Commits that are only in a log are not part of it.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.state.manifest
    }

    /// Returns the stored record of the document with this key; `None` if there is none. Takes O(segments x log n).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the wrong kind (number or bytes), [`Error::Corrupt`].
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Record>> {
        Record::find(&self.state, key.into())
    }

    /// Returns the records of several documents, in the order of `keys`; `None` for a key without a document. Looks the keys
    /// up in ascending order, so that keys of the same page are read together.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", Fingerprint(1))?;
    /// writer.put("b", Fingerprint(2))?;
    /// writer.commit()?;
    /// let records = index.snapshot().get_many(["b", "none", "a"])?;
    /// let found = records.into_iter().map(|record| record?.fingerprint).collect::<Vec<_>>();
    /// assert_eq!(found, [Some(Fingerprint(2)), None, Some(Fingerprint(1))]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    pub fn get_many<'k, K: Into<Key<'k>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Record>>> {
        let keys: Vec<Key<'k>> = keys.into_iter().map(Into::into).collect();
        let mut ascending: Vec<usize> = (0..keys.len()).collect();
        ascending.sort_unstable_by_key(|&at| keys[at]);
        let mut records = vec![None; keys.len()];
        for at in ascending {
            records[at] = self.get(keys[at])?;
        }
        Ok(records)
    }

    /// Returns the keys of live documents in a range, ascending.
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
    /// [`Error::Invalid`] for bounds of the wrong kind (numbers or bytes), [`Error::Corrupt`].
    pub fn range<'k, K: Into<Key<'k>> + Clone>(&self, range: impl RangeBounds<K>) -> Result<Keys> {
        let bound = |bound: Bound<&K>| bound.map(|key| key.clone().into().to_buf());
        let (from, to) = (bound(range.start_bound()), bound(range.end_bound()));
        Keys::new(Arc::clone(&self.state), &from, &to)
    }

    /// Returns the keys of live documents that begin with `prefix`, ascending.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the keys of the index are numbers, [`Error::Corrupt`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Keys> {
        let (from, to) = range::of_prefix(prefix.as_ref());
        Keys::new(Arc::clone(&self.state), &from, &to)
    }

    /// Returns the keys of all live documents, ascending: [`range`](Self::range) without bounds.
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

    /// Returns whether there is a live document with this key.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
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

    /// Returns the keys of live documents whose feature in this band (counted from 0) has the same stored bits as `feature`.
    /// They are unverified candidates for resemblance, in no particular order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that this index does not store, [`Error::Corrupt`].
    pub fn same_feature(&self, band: usize, feature: u64) -> Result<Vec<KeyBuf>> {
        let bands = self.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
        if band >= bands {
            return Err(Error::Invalid(format!("band {band}: this index keeps {bands}, counted from 0")));
        }
        let mut keys = Vec::new();
        for part in self.parts() {
            let mut found = Vec::new();
            part.same_feature(band, feature, |ordinal| found.push(ordinal))?;
            for ordinal in found {
                part.for_each_equal(ordinal, usize::MAX, |ordinal| {
                    keys.push(part.key(ordinal)?);
                    Ok(())
                })?;
            }
            part.check_map()?;
        }
        Ok(keys)
    }

    /// Calls `each` with the keys of all live documents, ascending.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_key(&self, mut each: impl FnMut(Key<'_>) -> Result<()>) -> Result<()> {
        let segments: Vec<_> = self.segments().collect();
        let sources = segments.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
        // Each key is live in at most one segment, so no key is passed twice.
        let mut merge = Merge::new(sources, Ord::cmp);
        while let Some((of, (key, _))) = merge.next()? {
            segments[of].0.check_map()?;
            each(key.as_key())?;
        }
        segments.iter().try_for_each(|(segment, _)| segment.check_map())
    }

    /// Finds the documents whose fingerprints differ from `fingerprint` in at most `within` bits. It finds all of them,
    /// except with a free table design, which can miss some.
    ///
    /// # Errors
    /// When the query is run: [`Error::Invalid`] for a fingerprint of another width, for a radius that the table design does
    /// not support (none supports more than [`WITHIN_MAX`](crate::design::WITHIN_MAX)), or for an index without
    /// fingerprints. An index of [codes](crate::params::ParamsBuilder::codes) supports any radius.
    pub fn within(&self, fingerprint: impl Into<Code>, within: u32) -> Query {
        Query::new(Arc::clone(&self.state)).fingerprint(fingerprint.into(), within)
    }

    /// Finds the documents whose resemblance to the document of this sketch is at least `threshold`.
    ///
    /// If the index stores [sets](crate::params::ParamsBuilder::sets) and `threshold` is above 0, resemblance is computed
    /// exactly and no document is missed. In this case a threshold below the threshold of the index is refused, and a
    /// document without tokens is near documents with the same bytes.
    ///
    /// Otherwise the hits are the documents that share a band with the sketch and whose resemblance, estimated from the
    /// stored signatures, is at least `threshold`. Without signatures there is no estimate, and the query fails unless
    /// the threshold is 0 or the query accepts all documents that share a band ([`Query::unverified`]).
    ///
    /// [`Banding::recall`](crate::planner::Banding::recall) of J is the fraction of the documents with resemblance J
    /// that share a band with the sketch. Choose the bands of an index for the lowest threshold of its queries.
    ///
    /// A sketch made with other parameters is accepted if all parameters that determine the bands agree
    /// ([`Params::check_same_bands`]). In this case hits have a resemblance, but no distance and no containment. If the
    /// index stores sets, the query must also be [estimated](Query::estimated).
    ///
    /// # Errors
    /// When the query is run: [`Error::ParamsMismatch`] for a sketch whose bands were computed with other parameters,
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
        let query =
            Query::new(Arc::clone(&self.state)).features(sketch.features().to_vec(), packed, threshold);
        Ok(if is_same {
            query.measure(sketch.code()).samples(sketch.bottom(), sketch.modular()).set(sketch)
        } else {
            query
        })
    }

    /// Finds the documents whose set of shingle hashes has an exact resemblance of at least `threshold` to `set`;
    /// misses none. `set` contains the distinct shingle hashes of a document, ascending, as computed by the
    /// [shingler](twindex_sketch::Shingler) of the index. Hits have a resemblance, but no distance and no containment.
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
    /// When the query is run: [`Error::Invalid`] for an index without [sets](crate::params::ParamsBuilder::sets), for hashes
    /// that do not ascend, and for a threshold that is 0 or less, more than 1, or less than the threshold of the index.
    pub fn resembling_set(&self, set: &[u64], threshold: f64) -> Query {
        self.by_set(set, threshold).unwrap_or_else(|error| self.refused(error))
    }

    fn by_set(&self, set: &[u64], threshold: f64) -> Result<Query> {
        if !self.params().sets {
            return Err(Error::Invalid(
                "this index keeps no sets: resemblance to a set is not answered".into(),
            ));
        }
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::Invalid(format!(
                "resemblance {threshold} to a set: above 0 and up to 1 are answered"
            )));
        }
        if !set.is_sorted_by(|a, b| a < b) {
            return Err(Error::Invalid("a set of shingle hashes has to be ascending, each hash once".into()));
        }
        Ok(Query::new(Arc::clone(&self.state)).features(Vec::new(), Vec::new(), threshold).hashes(set))
    }

    /// Finds the documents that are near according to the parameters of the index ([`Params::near`]). By default these
    /// are the documents [`resembling`](Self::resembling) the sketch at 0.8 or more. If the index stores no minima,
    /// they are the documents [`within`](Self::within) the radius of the tables. An empty sketch is near no document,
    /// except documents with the same bytes if the index stores sets. A sketch made with other parameters makes the
    /// query fail.
    pub fn near(&self, sketch: &Sketch) -> Query {
        self.near_by(sketch, self.params().near())
    }

    /// Like [`near`](Self::near), but `near` determines the resemblance and the distance, not the parameters of the
    /// index. If the index does not store the data that `near` requires, the query fails.
    ///
    /// Indexes whose [sketch parameters](Params::sketch) agree can be queried by one rule, although their own rules differ.
    /// Hits are ordered, so that those of several indexes can be sorted together:
    ///
    /// ```
    /// use twindex::params::Near;
    /// use twindex::{Hit, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let mut indexes = Vec::new();
    /// # for (name, within) in [("archive", 4), ("today", 3)] {
    /// #     let params = Params::builder().words(2).simhash(within).build()?;
    /// #     let index = Index::create(dir.path().join(name), params)?;
    /// #     let mut writer = index.writer()?;
    /// #     writer.put(name, &index.sketcher()?.sketch("a rose is a rose is a rose")?)?;
    /// #     writer.commit()?;
    /// #     indexes.push(index);
    /// # }
    /// let sketch = indexes[0].sketcher()?.sketch("A rose is a rose is a rose!")?;
    /// let mut hits: Vec<(Hit, usize)> = Vec::new();
    /// for (number, index) in indexes.iter().enumerate() {
    ///     let answers = index.snapshot().near_by(&sketch, Near::within(2)).limit(10).run()?;
    ///     hits.extend(answers.hits.into_iter().map(|hit| (hit, number)));
    /// }
    /// hits.sort_unstable();
    /// hits.truncate(10); // the 10 nearest of all indexes
    /// let keys: Vec<String> = hits.iter().map(|(hit, number)| format!("{} of {number}", hit.key)).collect();
    /// assert_eq!(keys, ["archive of 0", "today of 1"]);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn near_by(&self, sketch: &Sketch, near: Near) -> Query {
        let checked = self.check_sketch(sketch).and_then(|()| self.params().check_near(near));
        let by_bands = checked.and_then(|()| match near.threshold {
            Some(threshold) => self.by_bands(sketch, threshold.value()),
            None => Ok(Query::new(Arc::clone(&self.state)).samples(sketch.bottom(), sketch.modular())),
        });
        let query = match by_bands {
            Ok(query) => query,
            Err(error) => return self.refused(error),
        };
        match (near.within, sketch.code()) {
            (Some(within), Some(code)) => query.fingerprint(code, within.into()),
            _ => query,
        }
    }

    fn check_sketch(&self, sketch: &Sketch) -> Result<()> {
        self.params().check_sketch(self.state.sketch_digest, sketch)
    }

    /// Returns an error if the index has no simhash fingerprints, or for a radius over
    /// [`WITHIN_MAX`](crate::design::WITHIN_MAX). If the table design supports only smaller radii, the query fails
    /// when it is run.
    pub fn check_within(&self, within: u32) -> Result<()> {
        self.state.check_within(within)
    }

    /// Calls `each` for each live document within `within` bits of one of these fingerprints, in no particular order.
    /// The arguments are the position of the fingerprint in `fingerprints`, the document, and the distance. The memory
    /// accesses of the searches overlap, so for an index larger than the caches this is about twice as fast as
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
    /// Same as [`for_each_within`](Self::for_each_within), or the error that `each` returns.
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

    /// Returns the answers of [`within`](Self::within) for each of these fingerprints, each with at most `limit` hits, for
    /// an index of [codes](crate::params::ParamsBuilder::codes). The stored fingerprints are read once for all.
    ///
    /// # Errors
    /// Same as [`within`](Self::within) when it is run.
    pub fn codes_within(&self, codes: &[Code], within: u32, limit: usize) -> Result<Vec<Answers>> {
        codes.iter().try_for_each(|code| self.state.check_radius_of(code, within))?;
        let mut nearest: Vec<BinaryHeap<Hit>> = codes.iter().map(|_| BinaryHeap::new()).collect();
        let enough = limit.saturating_add(1); // one more shows whether there are hits beyond the limit
        for part in self.parts() {
            part.search_codes(codes, within, |query, ordinal, distance| {
                let hits = &mut nearest[query];
                let worst = hits.peek().filter(|_| hits.len() == enough).and_then(|worst| worst.distance);
                if worst.is_none_or(|worst| distance <= worst) {
                    hits.push(Hit::at_distance(part.key(ordinal)?, distance));
                    if hits.len() > enough {
                        hits.pop(); // the farthest
                    }
                }
                Ok(())
            })?;
            part.check_map()?;
        }
        let answers = nearest.into_iter().map(|hits| Answers::of_nearest(hits.into_sorted_vec(), limit));
        Ok(answers.collect())
    }

    /// Like [`for_each_within_any`](Self::for_each_within_any), with all search options: the radius, the strategy for
    /// probing tables, and the limit on the rows that a query checks in each segment. If `each` returns `Break`, the search
    /// for that fingerprint ends in the current segment. Returns the number of skipped buckets.
    ///
    /// # Errors
    /// Same as [`Segment::search`].
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

    /// Calls `each` for each live document within `within` bits of `fingerprint`, with its distance, in no particular
    /// order. Finds the same documents as [`within`](Self::within), but neither sorts them nor reads their keys.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius that the table design does not support (none supports more than
    /// [`WITHIN_MAX`](crate::design::WITHIN_MAX)), or for an index without fingerprints; [`Error::Corrupt`].
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
