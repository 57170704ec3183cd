//! Queries on a snapshot, and their results.

mod leading;
mod search;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::part::IndexPart;
use super::record::Record;
use super::state::State;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::bands;
use crate::format::prefixes::Marks;
use crate::format::table::Probe;
use crate::key::{Key, KeyBuf};
use crate::params::{Near, Params};
use crate::segment::ahead::ReadNext;
use crate::segment::records::Kept;
use crate::segment::{SearchOptions, SearchScratch};
use twindex_sketch::{Code, Containment, Resemblance, Sample, Sketch};

/// A document found by a query. Hits are ordered by distance, then by resemblance with the highest first, then by key.
/// A hit with an unknown distance or resemblance comes after the hits with a known one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hit {
    /// The key of the document.
    pub key: KeyBuf,
    /// Number of bits in which the fingerprints of the query and the document differ; `None` if either has none.
    pub distance: Option<u32>,
    /// The resemblance to the query's document: exact if the index stores sets, otherwise estimated from the stored
    /// signatures. `None` if the index stores neither, or if the query was made without a sketch and without a set.
    pub resemblance: Option<Resemblance>,
    /// The fraction of the query's document that is contained in this document, estimated from the stored samples
    /// ([`sketch::samples`](twindex_sketch::samples)). `None` if the index stores no samples or the query has no sketch.
    pub query_in_hit: Option<Containment>,
    /// The fraction of this document that is contained in the query's document; `None` in the same cases.
    pub hit_in_query: Option<Containment>,
}

impl Hit {
    pub(super) fn at_distance(key: KeyBuf, distance: u32) -> Self {
        Self { key, distance: Some(distance), resemblance: None, query_in_hit: None, hit_in_query: None }
    }
}

/// Compares two hits without their keys: lower distance first, then higher resemblance. Unknown values come last.
fn by_nearness(
    a_distance: Option<u32>,
    a_resemblance: Option<Resemblance>,
    b_distance: Option<u32>,
    b_resemblance: Option<Resemblance>,
) -> Ordering {
    let distance = |distance: Option<u32>| distance.unwrap_or(u32::MAX);
    let resemblance = |resemblance: Option<Resemblance>| resemblance.map_or(-1.0, |r| r.value());
    distance(a_distance)
        .cmp(&distance(b_distance))
        .then_with(|| resemblance(b_resemblance).total_cmp(&resemblance(a_resemblance)))
}

impl PartialEq for Hit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hit {}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        by_nearness(self.distance, self.resemblance, other.distance, other.resemblance)
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// The result of a query.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Answers {
    /// The hits, in the order of [`Hit`].
    pub hits: Vec<Hit>,
    /// Whether there are hits beyond the [`limit`](Query::limit).
    pub has_more: bool,
    /// The number of table buckets that were skipped because of [`visit_limit`](Query::visit_limit); 0 if no limit was
    /// set. The skipped buckets may contain further hits.
    pub unvisited: u64,
    /// Whether a document may be near that the query excluded because of its mark. Known only if there are no hits.
    pub(super) may_omit_marked: bool,
}

impl Answers {
    /// Returns the first `limit` of these hits.
    pub(super) fn of_nearest(mut hits: Vec<Hit>, limit: usize) -> Self {
        let has_more = hits.len() > limit;
        hits.truncate(limit);
        Self { hits, has_more, ..Self::default() }
    }
}

/// A query, created by [`Snapshot::near`](crate::Snapshot::near), [`within`](crate::Snapshot::within) or
/// [`resembling`](crate::Snapshot::resembling). Iterate over it, or call [`run`](Query::run). A query with bad
/// arguments is created without an error, and fails when it is run.
#[derive(Debug)]
#[must_use]
pub struct Query {
    state: Arc<State>,
    within: Option<(Code, u32)>,
    bands: Option<Bands>,
    /// The minimum number of features of `bands` that a document must share.
    sharing: usize,
    /// The number of leading bits of a feature that are compared.
    feature_bits: u32,
    /// Whether every document that shares enough bands is a hit, without a check of its resemblance.
    unverified: bool,
    /// Whether resemblance is estimated even if sets are stored.
    estimated: bool,
    /// The documents that are compared, by their marks as duplicates.
    marks: Marks,
    /// Whether a marked document is a hit if its mark does not count.
    leads: bool,
    /// The value that compared documents must have; `None` if they may have any value.
    value: Option<Vec<u8>>,
    /// The shingle hashes of the query's document; `None` if the index stores no sets.
    set: Option<Vec<u64>>,
    /// The fingerprint to which the distance of each hit is computed; `None` if no distances are computed.
    measured_from: Option<Code>,
    /// The bottom and the modular sample of the query's document; `None` if the index stores no samples.
    samples: Option<[Vec<u64>; 2]>,
    limit: usize,
    visits: Option<u64>,
    probe: Option<Probe>,
    refused: Option<Error>,
    cancel: Cancel,
}

#[derive(Debug)]
struct Bands {
    features: Vec<u64>,
    signature: Vec<u8>,
    threshold: f64,
}

/// What a search did not return.
#[derive(Default)]
pub(super) struct Omitted {
    /// The number of skipped buckets.
    pub(super) buckets: u64,
    /// Whether the search is to find out if marked documents can be near: it excludes them, and has no hit yet.
    pub(super) asks_for_marked: bool,
    /// Whether a near document may have been excluded because of its mark, if the search is to find out.
    pub(super) may_be_marked: bool,
}

/// A found document whose key has not been read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundDocument {
    pub(super) ordinal: u32,
    distance: Option<u32>,
    resemblance: Option<Resemblance>,
}

impl FoundDocument {
    /// Compares two documents as hits of one query are compared, but without their keys.
    pub(super) fn by_nearness(&self, other: &Self) -> Ordering {
        by_nearness(self.distance, self.resemblance, other.distance, other.resemblance)
    }
}

impl Query {
    pub(super) fn new(state: Arc<State>) -> Self {
        let feature_bits = bands::bits_of(&state.manifest.params);
        Self {
            state,
            within: None,
            bands: None,
            sharing: 1,
            feature_bits,
            unverified: false,
            estimated: false,
            marks: Marks::Any,
            leads: false,
            value: None,
            set: None,
            measured_from: None,
            samples: None,
            limit: usize::MAX,
            visits: None,
            probe: None,
            refused: None,
            cancel: Cancel::default(),
        }
    }

    /// Like [`Snapshot::near`](crate::Snapshot::near), for a document in its stored form. `kept` is `None` for a
    /// document without tokens, which has no sketch. `set` contains the document's shingle hashes, or the words of its
    /// fingerprint in an index that stores codes.
    pub(super) fn near(state: Arc<State>, kept: Option<Kept<'_>>, set: &[u64], near: Near) -> Self {
        let has_fingerprint = kept.is_some() && state.manifest.params.simhash.is_some();
        let code = if state.manifest.params.codes.is_some() { Code::of_words(set) } else { None };
        let kept = kept.unwrap_or_default();
        let mut query = Self::new(state).samples(kept.bottom, kept.modular).hashes(set);
        if let Some(threshold) = near.threshold {
            query = query.features(kept.features.to_vec(), kept.signature.to_vec(), threshold.value());
        }
        let code = code.or(has_fingerprint.then_some(kept.fingerprint.into()));
        match (near.within, code) {
            (Some(within), Some(code)) => query.fingerprint(code, within.into()),
            _ => query.measure(code),
        }
    }

    fn params(&self) -> &Params {
        &self.state.manifest.params
    }

    pub(super) fn fingerprint(mut self, code: Code, within: u32) -> Self {
        self.within = Some((code, within));
        self.measure(Some(code))
    }

    pub(super) fn features(mut self, features: Vec<u64>, signature: Vec<u8>, threshold: f64) -> Self {
        self.bands = Some(Bands { features, signature, threshold });
        self
    }

    pub(super) fn measure(mut self, from: Option<Code>) -> Self {
        self.measured_from = from;
        self
    }

    pub(super) fn samples(mut self, bottom: &[u64], modular: &[u64]) -> Self {
        let kept = self.params().bottom > 0 || self.params().modulus > 0;
        self.samples = kept.then(|| [bottom.to_vec(), modular.to_vec()]);
        self
    }

    /// Uses the set of this sketch to compute exact resemblance, if the index stores sets.
    pub(super) fn set(self, sketch: &Sketch) -> Self {
        if sketch.has_set() { self.hashes(sketch.set()) } else { self }
    }

    pub(super) fn hashes(mut self, set: &[u64]) -> Self {
        self.set = self.params().sets.then(|| set.to_vec());
        self
    }

    /// Excludes documents that were put [as duplicates](crate::Document::as_duplicate), as
    /// [`Writer::admit`](crate::Writer::admit) does: a mark counts only while a live unmarked document is near, by the
    /// parameters of the index. If no unmarked document is a hit, the hits are marked documents that lead, as
    /// for `admit`.
    /// No effect if the index stores no [marks](crate::params::ParamsBuilder::marks).
    ///
    /// ```
    /// use twindex::{Document, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().minhash(20, 6).sets().marks().build()?;
    /// let index = Index::create(dir.path().join("x"), params)?;
    /// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", &sketch)?;
    /// writer.put("b", Document::from(&sketch).as_duplicate())?;
    /// writer.commit()?;
    /// let keys = |answers: twindex::Answers| answers.hits.iter().map(|hit| hit.key.to_string()).collect::<String>();
    /// assert_eq!(keys(index.snapshot().near(&sketch).run()?), "ab");
    /// assert_eq!(keys(index.snapshot().near(&sketch).unmarked().run()?), "a");
    /// writer.delete("a")?;
    /// writer.commit()?;
    /// assert_eq!(keys(index.snapshot().near(&sketch).unmarked().run()?), "b"); // the leader of `b` is gone
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn unmarked(self) -> Self {
        let query = self.marks(Marks::Unmarked);
        Self { leads: query.marks == Marks::Unmarked, ..query }
    }

    /// Compares only the documents that `marks` includes. No effect if the index stores no marks.
    pub(super) fn marks(mut self, marks: Marks) -> Self {
        self.marks = if self.params().marks { marks } else { Marks::Any };
        self
    }

    /// Compares only documents with this [value](crate::params::ParamsBuilder::values); with `None`, all documents.
    pub fn inside<'v>(mut self, value: impl Into<Option<&'v [u8]>>) -> Self {
        self.value = value.into().map(<[u8]>::to_vec);
        self
    }

    pub(super) fn refused(mut self, error: Error) -> Self {
        self.refused = Some(error);
        self
    }

    /// For queries by resemblance: returns only documents that share at least `bands` bands; the default is 1. By Broder's
    /// rule for 6 features of 14 minima, two documents are *fungible* if at least r of their features agree; pass 2 for r =
    /// 2. [`FeatureScheme::fungible`](crate::params::FeatureScheme::fungible) computes the fraction of documents with
    /// resemblance J that are fungible.
    ///
    /// ```
    /// use twindex::params::Preset;
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let preset = Preset::BRODER_84;
    /// let index = Index::create(dir.path().join("x"), Params::builder().preset(preset).build()?)?;
    /// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", &sketch)?;
    /// writer.commit()?;
    /// let fungible = index.snapshot().resembling(&sketch, 0.0).sharing(preset.scheme.threshold.into());
    /// assert_eq!(fungible.run()?.hits.len(), 1);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn sharing(mut self, bands: usize) -> Self {
        self.sharing = bands.max(1);
        self
    }

    /// For queries by resemblance: returns all documents that share a band, without a check of their resemblance. If
    /// signatures are stored, hits have a resemblance. An index with neither signatures nor sets cannot check the
    /// resemblance of documents, so queries with thresholds above 0 need this option.
    ///
    /// ```
    /// use twindex::{Error, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().minhash(20, 6).signature_bits(0).build()?;
    /// let snapshot = Index::create(dir.path().join("x"), params)?.snapshot();
    /// let sketch = twindex::Sketcher::new(snapshot.params())?.sketch("a rose is a rose is a rose")?;
    /// assert!(matches!(snapshot.near(&sketch).run(), Err(Error::Invalid(_))));
    /// assert!(snapshot.near(&sketch).unverified().run()?.hits.is_empty());
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn unverified(mut self) -> Self {
        self.unverified = true;
        self
    }

    /// Estimates resemblance from the signatures of documents that share a band, even if the index stores
    /// [sets](crate::params::ParamsBuilder::sets) and could compute it exactly. An index without sets always estimates.
    pub fn estimated(mut self) -> Self {
        self.estimated = true;
        self
    }

    /// Compares only the first `bits` bits of each feature. The minimum is 1; the maximum and default is the number of
    /// bits that the index stores ([`feature_bits`](crate::params::MinhashParams::feature_bits)). 8 bits, with at least 3
    /// of 8 equal features ([`sharing`](Self::sharing)), are Broder's rule for small collections;
    /// [`Preset::common_bytes`](crate::params::Preset::common_bytes) computes the sizes for which the rule is suitable.
    /// An 8-bit feature matches one document in 256 by chance, and the query reads all of these documents.
    pub fn feature_bits(mut self, bits: u32) -> Self {
        if let Some(Err(why)) = self.params().minhash.map(|kept| kept.check_feature_bits(bits)) {
            self.refused.get_or_insert(why.into());
        }
        self.feature_bits = bits;
        self
    }

    /// Returns only the `limit` nearest hits. [`Answers::has_more`] says whether there are others.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Limits the number of rows that the query checks in the fingerprint tables of each segment, to bound the cost of the
    /// query. Buckets that would exceed the limit are skipped, and [`Answers::unvisited`] is their number. A bucket of more
    /// than 4,096 rows counts as 4,096 rows. The limit has no effect if a scan of all fingerprints is less work than probing
    /// the tables. The same query on the same snapshot always visits the same buckets.
    pub fn visit_limit(mut self, rows: u64) -> Self {
        self.visits = Some(rows);
        self
    }

    /// Ends the query with [`Error::Cancelled`] after `cancel` was requested. Checked before each segment, and each time 64
    /// documents were compared. The search in the fingerprint tables of a segment is not interrupted; a
    /// [`visit_limit`](Self::visit_limit) bounds it.
    pub fn until(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Probes the fingerprint tables with this strategy instead of the fastest one. The codecs of the tables must
    /// support it. The hits do not depend on the strategy.
    pub fn probe(mut self, probe: Probe) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Returns the number of matching live documents; ignores the limit. For queries by distance alone this is the
    /// cheapest method, because no keys are read.
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    pub fn count(mut self) -> Result<u64> {
        if self.leads {
            return Ok(self.limit(usize::MAX).run()?.hits.len() as u64);
        }
        self.check()?;
        let mut count = 0;
        for part in self.state.parts() {
            count += self.find_in(&part)?.len() as u64;
            part.check_map()?;
        }
        Ok(count)
    }

    /// Returns the first hit that the search finds, or `None`. It need not be the nearest: use this to check whether
    /// there is a hit, because the search stops at the first one. For the nearest hit use [`limit(1)`](Self::limit).
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", Fingerprint(0b1111))?;
    /// writer.commit()?;
    /// assert!(index.snapshot().within(Fingerprint(0b1110), 3).any()?.is_some());
    /// assert!(index.snapshot().within(Fingerprint(1 << 40), 3).any()?.is_none());
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    pub fn any(mut self) -> Result<Option<Hit>> {
        self.check()?;
        let mut stored = [Vec::new(), Vec::new()];
        for part in self.state.parts() {
            self.cancel.check()?;
            let mut found = None;
            if let Some((code, _)) = self.within.as_ref().filter(|_| self.marks == Marks::Any) {
                SearchScratch::lend(|scratch| {
                    part.search(code, self.ask(), scratch, |ordinal, distance| {
                        found = Some(FoundDocument { ordinal, distance: Some(distance), resemblance: None });
                        ControlFlow::Break(())
                    })
                })?;
            }
            if found.is_none() && (self.bands.is_some() || self.marks != Marks::Any) {
                found = self.find_in(&part)?.into_iter().next();
            }
            if let Some(found) = found {
                let hit = self.hit(&part, &found, &mut stored)?;
                part.check_map()?;
                return Ok(Some(hit));
            }
            part.check_map()?;
        }
        if self.leads { Ok(self.orphans(1, None)?.hits.pop()) } else { Ok(None) }
    }

    /// Returns an error if the query cannot be answered.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        self.cancel.check()?;
        if self.value.as_ref().is_some_and(|value| !value.is_empty()) && !self.params().values {
            let why = "this index keeps no values to compare inside of; that is chosen when it is created";
            return Err(Error::Invalid(why.into()));
        }
        let threshold = self.bands.as_ref().map_or(0.0, |bands| bands.threshold);
        if self.params().sets
            && threshold > 0.0
            && self.exact_set().is_none()
            && !self.unverified
            && !self.estimated
        {
            return Err(Error::Invalid(
                "this index counts resemblance, and what is asked about has no set of shingle hashes; take the sketcher of \
                 the index, or ask for an estimate"
                    .into(),
            ));
        }
        if let (Some(_), Some(min)) = (self.exact_set(), self.params().near().threshold)
            && self.is_by_prefixes()
            && threshold < min.value()
        {
            return Err(Error::Invalid(format!(
                "this index finds all documents that resemble by {min} or more, and you asked for {threshold}; ask for \
                 {min} or more, or for an estimate"
            )));
        }
        let is_known = self.unverified
            || self.exact_set().is_some()
            || self.params().minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        if threshold > 0.0 && !is_known {
            return Err(Error::Invalid(format!(
                "this index keeps no signatures: of what shares a band it is not known what resembles by {threshold} or \
                 more; ask by distance, count on the texts, or say that sharing a band is enough"
            )));
        }
        self.within.as_ref().map_or(Ok(()), |(code, within)| self.state.check_radius_of(code, *within))
    }

    /// Returns the query's set if resemblance is computed exactly; `None` if it is estimated or unknown.
    fn exact_set(&self) -> Option<&[u64]> {
        self.set.as_deref().filter(|_| !self.unverified && !self.estimated)
    }

    /// Returns whether candidates are found by the prefixes of sets instead of by bands.
    fn is_by_prefixes(&self) -> bool {
        let threshold = self.bands.as_ref().map_or(0.0, |bands| bands.threshold);
        let all_bits = self.feature_bits == bands::bits_of(self.params());
        self.exact_set().is_some() && threshold > 0.0 && self.sharing == 1 && all_bits
    }

    fn ask(&self) -> SearchOptions {
        SearchOptions {
            within: self.within.as_ref().map_or(0, |&(_, within)| within),
            probe: self.probe,
            visits: self.visits,
        }
    }

    /// Converts a found document into a hit: reads its key and computes containment.
    fn hit(&self, part: &IndexPart<'_>, found: &FoundDocument, stored: &mut [Vec<u64>; 2]) -> Result<Hit> {
        let key = part.key(found.ordinal)?;
        let [query_in_hit, hit_in_query] = self.contained(part, found.ordinal, stored)?;
        let &FoundDocument { distance, resemblance, .. } = found;
        Ok(Hit { key, distance, resemblance, query_in_hit, hit_in_query })
    }

    /// Like [`run`](Self::run), for an index without sets: the caller supplies the sets of documents. `mine` contains the
    /// distinct shingle hashes of the query's document, ascending. `set_of` replaces the contents of its last argument with
    /// the hashes of the document that has the given key. The exact resemblance of each document that shares a band is
    /// computed from these sets. So every hit is near, and [`Banding::recall`](crate::Banding::recall) is the fraction of
    /// near documents that are found.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().words(1).minhash(60, 2).build()?)?;
    /// let (sketcher, text) = (index.sketcher()?, "one two three four five six seven eight nine ten");
    /// let mut writer = index.writer()?;
    /// writer.put("page", &sketcher.sketch(text)?)?;
    /// writer.commit()?;
    /// let set = |text: &str| {
    ///     let mut hashes = Vec::new();
    ///     sketcher.shingler().distinct(text, &mut twindex::sketch::Buffers::default(), &mut hashes);
    ///     hashes
    /// };
    /// let asked = "one two three four five six seven eight nine zero"; // 9 of 11
    /// let answers = index.snapshot().near(&sketcher.sketch(asked)?).run_counting(&set(asked), |_key, out| {
    ///     *out = set(text); // from wherever the texts are
    ///     Ok(())
    /// })?;
    /// assert_eq!(answers.hits[0].resemblance.unwrap().to_string(), "9/11");
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`run`](Self::run), or the error that `set_of` returns.
    pub fn run_counting(
        mut self,
        mine: &[u64],
        mut set_of: impl FnMut(&KeyBuf, &mut Vec<u64>) -> Result<()>,
    ) -> Result<Answers> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if self.bands.is_none() {
            return Err(Error::Invalid(
                "sets count resemblance, and this query is about distance alone".into(),
            ));
        }
        // Runs the query without a check of resemblance: the exact resemblance of each hit is computed below.
        let limit = std::mem::replace(&mut self.limit, usize::MAX);
        self.unverified = true;
        let mut answers = self.answers()?;
        let mut other = Vec::new();
        let mut near = Vec::new();
        for mut hit in std::mem::take(&mut answers.hits) {
            set_of(&hit.key, &mut other)?;
            hit.resemblance = self.counted_resemblance(mine, &other, hit.distance);
            near.extend(hit.resemblance.is_some().then_some(hit));
        }
        if near.is_empty() && self.leads && answers.may_omit_marked {
            return self.orphans(limit, Some((mine, &mut set_of)));
        }
        near.sort_unstable();
        answers.has_more = near.len() > limit;
        near.truncate(limit);
        Ok(Answers { hits: near, ..answers })
    }

    /// Returns the exact resemblance of the query's document and a document with the set `other`, if the document is near.
    fn counted_resemblance(&self, mine: &[u64], other: &[u64], distance: Option<u32>) -> Option<Resemblance> {
        let resemblance = Resemblance::of_sets(mine, other);
        let resembles = self.bands.as_ref().is_some_and(|bands| resemblance.at_least(bands.threshold));
        let is_within =
            self.within.as_ref().zip(distance).is_some_and(|((_, within), distance)| distance <= *within);
        (resembles || is_within).then_some(resemblance)
    }

    /// Returns a found document with its exact resemblance, computed from sets that the caller supplies; `None` if the
    /// document is not near.
    pub(super) fn counted(&self, found: FoundDocument, mine: &[u64], other: &[u64]) -> Option<FoundDocument> {
        let resemblance = self.counted_resemblance(mine, other, found.distance);
        resemblance.is_some().then_some(FoundDocument { resemblance, ..found })
    }

    /// Runs the query and returns its hits, sorted, up to the limit.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch with other parameters, [`Error::Invalid`] for a radius that the index
    /// does not support, [`Error::Cancelled`], [`Error::Corrupt`]. A result is never incomplete without an error.
    pub fn run(mut self) -> Result<Answers> {
        let answers = self.answers()?;
        let has_hits = answers.has_more || !answers.hits.is_empty();
        if has_hits || !self.leads || !answers.may_omit_marked {
            return Ok(answers);
        }
        let orphans = self.orphans(self.limit, None)?;
        Ok(Answers { unvisited: orphans.unvisited.max(answers.unvisited), ..orphans })
    }

    /// Returns whether the document is one of those that are compared, by its mark.
    fn has_right_mark(&self, part: &IndexPart<'_>, ordinal: u32) -> Result<bool> {
        Ok(self.marks == Marks::Any || self.marks.includes(part.is_marked(ordinal)?))
    }

    /// Like [`run`](Self::run), but keeps the query.
    pub(super) fn answers(&mut self) -> Result<Answers> {
        self.answers_with(|_, _| None)
    }

    /// Like [`answers`](Self::answers). `known` returns what is known to be found in a part.
    pub(super) fn answers_with(
        &mut self,
        known: impl Fn(&IndexPart<'_>, &mut Omitted) -> Option<Vec<FoundDocument>>,
    ) -> Result<Answers> {
        self.check()?;
        let mut nearest: BinaryHeap<Hit> = BinaryHeap::new();
        let mut omitted = Omitted::default();
        let mut stored = [Vec::new(), Vec::new()];
        let enough = self.limit.saturating_add(1); // one more shows whether there are hits beyond the limit
        for part in self.state.parts() {
            omitted.asks_for_marked = self.marks == Marks::Unmarked && nearest.is_empty();
            let farthest =
                nearest.peek().filter(|_| nearest.len() == enough).and_then(|worst| worst.distance);
            let found = match known(&part, &mut omitted) {
                Some(found) => found,
                None => self.find_nearest_in(&part, (enough, farthest), &mut omitted)?,
            };
            part.announce_documents(
                ReadNext { keys: usize::MAX, ..ReadNext::default() },
                found.iter().map(|found| found.ordinal),
            );
            for found in found {
                // Skips documents that cannot be among the nearest: reading a key costs more than computing a distance.
                let farther = |worst: &Hit| {
                    by_nearness(worst.distance, worst.resemblance, found.distance, found.resemblance).is_lt()
                };
                if nearest.len() == enough && nearest.peek().is_none_or(farther) {
                    continue;
                }
                nearest.push(self.hit(&part, &found, &mut stored)?);
                if nearest.len() > enough {
                    nearest.pop(); // the farthest
                }
            }
            part.check_map()?;
        }
        let Omitted { buckets: unvisited, may_be_marked: may_omit_marked, .. } = omitted;
        let nearest = Answers::of_nearest(nearest.into_sorted_vec(), self.limit);
        Ok(Answers { unvisited, may_omit_marked, ..nearest })
    }

    /// Returns the hit for the live document with this key, if the document exists and equals the query's document, so
    /// that no hit is nearer.
    pub(super) fn hit_if_equal(&mut self, key: Key<'_>) -> Result<Option<Hit>> {
        self.check()?;
        Ok(self.hit_of(key)?.filter(|hit| self.is_equal(hit.distance, hit.resemblance)))
    }

    /// Returns the hit for the live document with this key; `None` if there is none, or if its mark excludes it. The
    /// document need not be near.
    pub(super) fn hit_of(&self, key: Key<'_>) -> Result<Option<Hit>> {
        for part in self.state.parts() {
            let found = part.find(key)?;
            part.check_map()?;
            let Some(ordinal) = found else { continue };
            let resemblance = self.resemblance(&part, ordinal, &mut Vec::new())?;
            let found = FoundDocument { ordinal, distance: self.distance(&part, ordinal)?, resemblance };
            let is_hit = self.has_right_mark(&part, ordinal)?;
            let hit = is_hit.then(|| self.hit(&part, &found, &mut Default::default())).transpose()?;
            part.check_map()?;
            return Ok(hit);
        }
        Ok(None)
    }

    /// Returns whether no document can be nearer than one with this distance and resemblance.
    pub(super) fn is_equal(&self, distance: Option<u32>, resemblance: Option<Resemblance>) -> bool {
        distance == self.measured_from.as_ref().map(|_| 0)
            && (self.bands.is_none() || resemblance.is_some_and(|known| known.value() >= 1.0))
    }

    /// Returns two containments: of the query's document in the stored document, and of the stored document in the query's.
    fn contained(
        &self,
        part: &IndexPart<'_>,
        ordinal: u32,
        stored: &mut [Vec<u64>; 2],
    ) -> Result<[Option<Containment>; 2]> {
        let Some(samples) = &self.samples else { return Ok([None; 2]) };
        part.samples(ordinal, stored)?;
        let params = self.params();
        let (mine, theirs) = (samples_of(params, samples), samples_of(params, stored));
        Ok([better(&mine, &theirs), better(&theirs, &mine)])
    }
}

/// Creates the bottom and the modular sample from their elements; `None` for a kind that these parameters do not store.
fn samples_of<'a>(params: &Params, [bottom, modular]: &'a [Vec<u64>; 2]) -> [Option<Sample<'a>>; 2] {
    [
        (params.bottom > 0).then(|| Sample::bottom(bottom, params.bottom.into())),
        (params.modulus > 0).then(|| Sample::modular(modular, params.modulus)),
    ]
}

/// Returns the containment of `a` in `b`, computed from the kind of sample (bottom or modular) that has more elements
/// of `a`. The choice of the kind does not depend on the shared elements, so it adds no bias.
fn better(a: &[Option<Sample<'_>>; 2], b: &[Option<Sample<'_>>; 2]) -> Option<Containment> {
    let known = a.iter().zip(b).filter_map(|(a, b)| a.as_ref()?.containment(b.as_ref()?));
    known.max_by_key(|known| (known.is_exact(), known.sampled))
}

impl Query {
    /// Like [`run`](Self::run), but also returns the stored record of each hit, including its value and stamp.
    ///
    /// # Errors
    /// Same as [`run`](Self::run).
    pub fn run_with_records(self) -> Result<Vec<(Hit, Record)>> {
        let state = Arc::clone(&self.state);
        let with_record = |hit: Hit| {
            let record = Record::find(&state, hit.key.as_key())?;
            // Every hit has a record, because the state of the query never changes.
            Ok(record.map(|record| (hit, record)))
        };
        self.run()?.hits.into_iter().map(with_record).filter_map(Result::transpose).collect()
    }
}

impl IntoIterator for Query {
    type Item = Result<Hit>;
    type IntoIter = std::vec::IntoIter<Result<Hit>>;

    /// Runs the query. If the query fails, the error is the only item.
    fn into_iter(self) -> Self::IntoIter {
        match self.run() {
            Ok(answers) => answers.hits.into_iter().map(Ok).collect::<Vec<_>>().into_iter(),
            // guard: a failed query gives its error and no hits
            // without it: Err(_) => Vec::new().into_iter(),
            Err(error) => vec![Err(error)].into_iter(),
        }
    }
}
