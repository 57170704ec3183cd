//! The index at one generation.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::query::Query;
use super::state::State;
use crate::error::{Error, Result};
use crate::format::manifest::SegmentEntry;
use crate::key::{Key, KeyBuf};
use crate::params::Params;
use crate::segment::Segment;
use crate::sketch::{Fingerprint, Sketch, pack};

/// A view of the index that never changes. Cheap to clone, `Send + Sync`; it keeps its files open.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: Arc<State>,
}

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its fingerprint; `None` for a document without tokens or an index without simhash.
    pub fingerprint: Option<Fingerprint>,
    /// Its packed signature; empty where none is kept.
    pub signature: Vec<u8>,
}

/// A document of a snapshot, by place.
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

impl Snapshot {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    /// Counts commits: 1 for a new index.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.manifest.generation
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
        self.state.manifest.segments.iter().map(|entry| entry.documents - entry.deleted.len()).sum()
    }

    /// Its segments, oldest first, and for each the ordinals that are no longer live.
    #[must_use]
    pub fn segments(&self) -> impl ExactSizeIterator<Item = (&Segment, &RoaringBitmap)> {
        let entries = self.state.manifest.segments.iter();
        self.state.segments.iter().zip(entries).map(|(segment, entry)| (&**segment, &entry.deleted))
    }

    /// The manifest's entry of each segment, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[SegmentEntry] {
        &self.state.manifest.segments
    }

    /// What is kept of the document with this key: O(segments x log n).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the other kind, [`Error::Corrupt`].
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Record>> {
        let key = key.into();
        key.check(self.params().key)?;
        for (segment, deleted) in self.segments() {
            let Some(ordinal) = segment.find(key)? else { continue };
            if deleted.contains(ordinal) {
                continue;
            }
            let fingerprint = segment.rank(ordinal)?.map(|rank| segment.fingerprint(rank)).transpose()?;
            let signature = segment.signature(ordinal)?.to_vec();
            return Ok(Some(Record { fingerprint: fingerprint.map(Fingerprint), signature }));
        }
        Ok(None)
    }

    /// The documents whose fingerprints differ from this one in at most `within` bits, exactly.
    pub fn within(&self, fingerprint: Fingerprint, within: u32) -> Query {
        Query::new(self.clone()).fingerprint(fingerprint, within)
    }

    /// The documents that share a band with this one and whose resemblance, estimated from the stored signatures,
    /// is at least `threshold`. Where no signatures are kept, all that share a band.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch made with other parameters.
    pub fn resembling(&self, sketch: &Sketch, threshold: f64) -> Result<Query> {
        self.check_sketch(sketch)?;
        let bits = self.params().minhash.map_or(0, |minhash| minhash.signature_bits);
        let mut packed = Vec::new();
        pack(sketch.signature(), bits, &mut packed);
        let query = Query::new(self.clone()).features(sketch.features().to_vec(), packed, threshold);
        Ok(query.measure(sketch.fingerprint()))
    }

    /// The union of what the index keeps: documents [`within`](Self::within) the radius of its parameters, and
    /// documents [`resembling`](Self::resembling) this one at 0.8 or more. A sketch with other parameters is near
    /// nothing: the answer is then an error.
    pub fn near(&self, sketch: &Sketch) -> Query {
        match self.resembling(sketch, 0.8) {
            Ok(query) => match (self.params().simhash, sketch.fingerprint()) {
                (Some(simhash), Some(fingerprint)) => query.fingerprint(fingerprint, simhash.within.into()),
                _ => query,
            },
            Err(error) => Query::new(self.clone()).refused(error),
        }
    }

    fn check_sketch(&self, sketch: &Sketch) -> Result<()> {
        let digest = self.params().digest();
        if sketch.params_digest() == digest {
            return Ok(());
        }
        Err(Error::ParamsMismatch {
            field: "digest".into(),
            index: format!("{digest:032x}"),
            given: format!("{:032x}", sketch.params_digest()),
        })
    }

    /// Hands each live document within `within` bits of `fingerprint` and its distance to `each`, in no particular
    /// order: what [`within`](Self::within) sorts and names.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius over [`WITHIN_MAX`](crate::params::WITHIN_MAX), [`Error::Corrupt`].
    #[inline]
    pub fn for_each_within(
        &self,
        fingerprint: Fingerprint,
        within: u32,
        mut each: impl FnMut(Place<'_>, u32),
    ) -> Result<()> {
        let limit = u32::from(crate::params::WITHIN_MAX);
        if within > limit {
            return Err(Error::Invalid(format!("within {within}: radii up to {limit} are answered")));
        }
        for (segment, deleted) in self.segments() {
            let mut failed = None;
            segment.within(fingerprint.0, within, |near| {
                let listed = segment.postings(near.rank, |ordinal| {
                    if deleted.is_empty() || !deleted.contains(ordinal) {
                        each(Place { segment, ordinal }, near.distance);
                    }
                });
                failed = failed.take().or(listed.err());
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }
}
