//! The stored record of one document, by its key.

use super::state::State;
use crate::error::Result;
use crate::key::Key;
use twindex_sketch::Fingerprint;

/// The stored record of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its fingerprint; `None` for a document without tokens or an index without simhash.
    pub fingerprint: Option<Fingerprint>,
    /// Its packed signature; empty if the index stores none.
    pub signature: Vec<u8>,
    /// Its least hashes, for [`Sample::bottom`](twindex_sketch::Sample::bottom); empty if the index stores none.
    pub bottom: Vec<u64>,
    /// Its hashes that the modulus divides, for [`Sample::modular`](twindex_sketch::Sample::modular); empty if the
    /// index stores none.
    pub modular: Vec<u64>,
    /// The caller's value; empty if it has none.
    pub value: Vec<u8>,
    /// Its stamp, where documents expire.
    pub stamp: Option<u64>,
    /// Its distinct shingle hashes, ascending; empty if the index stores none.
    pub set: Vec<u64>,
    /// Whether it has the mark of a duplicate.
    pub is_duplicate: bool,
    /// Its priority, if the index stores them and it has one.
    pub priority: Option<u64>,
}

impl Record {
    /// The record of the live document with this key.
    pub(super) fn find(state: &State, key: Key<'_>) -> Result<Option<Self>> {
        key.check(state.manifest.params.key)?;
        for part in state.parts() {
            let found = part.find(key)?;
            part.check_map()?;
            let Some(ordinal) = found else { continue };
            let fingerprint = part.fingerprint(ordinal)?.map(Fingerprint);
            let signature = part.signature(ordinal, <[u8]>::to_vec)?;
            let mut samples = [Vec::new(), Vec::new()];
            part.samples(ordinal, &mut samples)?;
            let [bottom, modular] = samples;
            let (value, stamp) = (part.value(ordinal)?, part.stamp(ordinal)?);
            let mut set = Vec::new();
            part.set(ordinal, &mut set)?;
            let (is_duplicate, priority) = (part.is_marked(ordinal)?, part.priority(ordinal)?);
            part.check_map()?;
            return Ok(Some(Self { fingerprint, signature, bottom, modular, value, stamp, set, is_duplicate, priority }));
        }
        Ok(None)
    }
}
