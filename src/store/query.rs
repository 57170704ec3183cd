//! A question to a snapshot, and its answers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use roaring::RoaringBitmap;

use super::snapshot::Snapshot;
use crate::error::{Error, Result};
use crate::key::KeyBuf;
use crate::params::{MinhashParams, Params};
use crate::segment::Segment;
use crate::sketch::{Containment, Fingerprint, Resemblance, Sample, Sketch, matches};

/// A near document. Ordered by distance (unknown last), then resemblance (highest first, unknown last), then key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hit {
    /// Its key.
    pub key: KeyBuf,
    /// Bits in which the fingerprints differ, where both have one.
    pub distance: Option<u32>,
    /// An estimate from the stored signatures, where they are kept and a sketch was asked about.
    pub resemblance: Option<Resemblance>,
    /// How much of the document that was asked about is contained in this one, from the stored samples
    /// ([`sketch::samples`](crate::sketch::samples)), where they are kept and a sketch was asked about.
    pub query_in_hit: Option<Containment>,
    /// How much of this document is contained in the one that was asked about.
    pub hit_in_query: Option<Containment>,
}

/// Nearer first: by distance, unknown last, then by resemblance, highest first, unknown last.
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

/// What a query found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Answers {
    /// In the order of [`Hit`].
    pub hits: Vec<Hit>,
    /// How many more there are beyond the limit.
    pub left_out: u64,
}

/// A question, made by [`Snapshot::near`], [`within`](Snapshot::within) or [`resembling`](Snapshot::resembling).
/// Iterate it, or [`run`](Query::run) it.
#[derive(Debug)]
#[must_use]
pub struct Query {
    snapshot: Snapshot,
    within: Option<(Fingerprint, u32)>,
    bands: Option<Bands>,
    /// Distances of hits are measured from here.
    measured_from: Option<Fingerprint>,
    /// The samples of the document that is asked about, bottom and modular, where they are kept.
    samples: Option<[Vec<u64>; 2]>,
    limit: usize,
    refused: Option<Error>,
}

#[derive(Debug)]
struct Bands {
    features: Vec<u64>,
    signature: Vec<u8>,
    threshold: f64,
}

/// A document found, before it has a name.
struct Found {
    ordinal: u32,
    distance: Option<u32>,
    resemblance: Option<Resemblance>,
}

impl Query {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            within: None,
            bands: None,
            measured_from: None,
            samples: None,
            limit: usize::MAX,
            refused: None,
        }
    }

    pub(super) fn fingerprint(mut self, fingerprint: Fingerprint, within: u32) -> Self {
        self.within = Some((fingerprint, within));
        self.measure(Some(fingerprint))
    }

    pub(super) fn features(mut self, features: Vec<u64>, signature: Vec<u8>, threshold: f64) -> Self {
        self.bands = Some(Bands { features, signature, threshold });
        self
    }

    pub(super) fn measure(mut self, from: Option<Fingerprint>) -> Self {
        self.measured_from = from;
        self
    }

    pub(super) fn samples(mut self, of: &Sketch) -> Self {
        let params = self.snapshot.params();
        let kept = params.bottom > 0 || params.modulus > 0;
        self.samples = kept.then(|| [of.bottom().to_vec(), of.modular().to_vec()]);
        self
    }

    pub(super) fn refused(mut self, error: Error) -> Self {
        self.refused = Some(error);
        self
    }

    /// Return at most this many hits, the nearest; [`Answers::left_out`] counts the others.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// All hits up to the limit, sorted.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch of other parameters, [`Error::Invalid`] for a radius that is not
    /// answered, [`Error::Corrupt`]: an answer that may be incomplete is an error, never a shorter answer.
    pub fn run(mut self) -> Result<Answers> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if let Some((_, within)) = self.within {
            self.snapshot.check_within(within)?;
        }
        let mut nearest: BinaryHeap<Hit> = BinaryHeap::new();
        let mut left_out = 0;
        let mut stored = [Vec::new(), Vec::new()];
        for (segment, deleted) in self.snapshot.segments() {
            for found in self.find_in(segment, deleted)? {
                // Keys cost more than distances: one that cannot be among the nearest is not read.
                let farther = |worst: &Hit| {
                    by_nearness(worst.distance, worst.resemblance, found.distance, found.resemblance).is_lt()
                };
                if nearest.len() == self.limit && nearest.peek().is_none_or(farther) {
                    left_out += 1;
                    continue;
                }
                let key = segment.key(found.ordinal)?;
                let [query_in_hit, hit_in_query] = self.contained(segment, found.ordinal, &mut stored)?;
                let Found { distance, resemblance, .. } = found;
                nearest.push(Hit { key, distance, resemblance, query_in_hit, hit_in_query });
                if nearest.len() > self.limit {
                    nearest.pop(); // the farthest
                    left_out += 1;
                }
            }
        }
        Ok(Answers { hits: nearest.into_sorted_vec(), left_out })
    }

    /// The documents of one segment, each once.
    fn find_in(&self, segment: &Segment, deleted: &RoaringBitmap) -> Result<Vec<Found>> {
        let mut found: Vec<Found> = Vec::new();
        if let Some((fingerprint, within)) = self.within {
            segment.documents_within(fingerprint.0, within, |ordinal, distance| {
                if !deleted.contains(ordinal) {
                    found.push(Found { ordinal, distance: Some(distance), resemblance: None });
                }
            })?;
        }
        let (Some(bands), Some(minhash)) = (&self.bands, self.snapshot.params().minhash) else {
            return Ok(found);
        };
        for hit in &mut found {
            hit.resemblance = estimate(segment, hit.ordinal, &bands.signature, minhash)?;
        }
        found.sort_unstable_by_key(|hit| hit.ordinal);
        let mut candidates: Vec<u32> = Vec::new();
        for (band, &feature) in bands.features.iter().enumerate() {
            segment.same_feature(band, feature, |ordinal| candidates.push(ordinal))?;
        }
        candidates.sort_unstable();
        candidates.dedup();
        let known = found.len();
        for ordinal in candidates {
            if deleted.contains(ordinal)
                || found[..known].binary_search_by_key(&ordinal, |hit| hit.ordinal).is_ok()
            {
                continue;
            }
            let resemblance = estimate(segment, ordinal, &bands.signature, minhash)?;
            if resemblance.as_ref().is_none_or(|resemblance| resemblance.at_least(bands.threshold)) {
                let distance = self.distance(segment, ordinal)?;
                found.push(Found { ordinal, distance, resemblance });
            }
        }
        Ok(found)
    }

    /// How much of the document that is asked about is in a stored one, and how much of that is in it.
    fn contained(
        &self,
        segment: &Segment,
        ordinal: u32,
        stored: &mut [Vec<u64>; 2],
    ) -> Result<[Option<Containment>; 2]> {
        let Some(samples) = &self.samples else { return Ok([None; 2]) };
        segment.bottom(ordinal, &mut stored[0])?;
        segment.modular(ordinal, &mut stored[1])?;
        let params = self.snapshot.params();
        let (mine, theirs) = (samples_of(params, samples), samples_of(params, stored));
        Ok([better(&mine, &theirs), better(&theirs, &mine)])
    }

    fn distance(&self, segment: &Segment, ordinal: u32) -> Result<Option<u32>> {
        let Some(from) = self.measured_from else { return Ok(None) };
        let Some(rank) = segment.rank(ordinal)? else { return Ok(None) };
        Ok(Some(from.distance(Fingerprint(segment.fingerprint(rank)?))))
    }
}

/// The samples that an index with these parameters keeps.
fn samples_of<'a>(params: &Params, [bottom, modular]: &'a [Vec<u64>; 2]) -> [Option<Sample<'a>>; 2] {
    [
        (params.bottom > 0).then(|| Sample::bottom(bottom, params.bottom.into())),
        (params.modulus > 0).then(|| Sample::modular(modular, params.modulus)),
    ]
}

/// The containment of `a` in `b` by the kind of sample that looks at more of `a`. What is chosen does not depend on
/// what they have in common, so that the choice brings no bias.
fn better(a: &[Option<Sample<'_>>; 2], b: &[Option<Sample<'_>>; 2]) -> Option<Containment> {
    let known = a.iter().zip(b).filter_map(|(a, b)| a.as_ref()?.containment(b.as_ref()?));
    known.max_by_key(|known| (known.is_exact(), known.sampled))
}

fn estimate(
    segment: &Segment,
    ordinal: u32,
    signature: &[u8],
    minhash: MinhashParams,
) -> Result<Option<Resemblance>> {
    if minhash.signature_bits == 0 || signature.is_empty() {
        return Ok(None);
    }
    let stored = segment.signature(ordinal)?;
    let same = matches(signature, stored, minhash.minima(), minhash.signature_bits);
    Ok(Some(Resemblance::from_matches(same, minhash.minima(), minhash.signature_bits)))
}

impl IntoIterator for Query {
    type Item = Result<Hit>;
    type IntoIter = std::vec::IntoIter<Result<Hit>>;

    /// Runs the query; a failure comes as the only item.
    fn into_iter(self) -> Self::IntoIter {
        match self.run() {
            Ok(answers) => answers.hits.into_iter().map(Ok).collect::<Vec<_>>().into_iter(),
            Err(error) => vec![Err(error)].into_iter(),
        }
    }
}
