//! The stored record of a document.

use super::known_leaders::DocRef;
use super::part::IndexPart;
use super::state::State;
use crate::error::Result;
use crate::key::Key;
use twindex_sketch::{Code, Fingerprint};

/// The stored record of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The fingerprint; `None` for a document without tokens or an index without simhash.
    pub fingerprint: Option<Fingerprint>,
    /// The fingerprint in an index of [codes](crate::params::ParamsBuilder::codes); otherwise `None`.
    pub code: Option<Code>,
    /// The packed signature; empty if the index stores none.
    pub signature: Vec<u8>,
    /// The bottom sample: the smallest shingle hashes, for [`Sample::bottom`](twindex_sketch::Sample::bottom). Empty if
    /// the index stores none.
    pub bottom: Vec<u64>,
    /// The modular sample: the shingle hashes divisible by the modulus, for
    /// [`Sample::modular`](twindex_sketch::Sample::modular). Empty if the index stores none.
    pub modular: Vec<u64>,
    /// The caller's value, which may be empty; `None` if the index stores no values.
    pub value: Option<Vec<u8>>,
    /// The stamp; `None` if documents do not expire.
    pub stamp: Option<u64>,
    /// The distinct shingle hashes, ascending; empty if the index stores none.
    pub set: Vec<u64>,
    /// Whether the document is marked as a duplicate.
    pub is_duplicate: bool,
    /// The priority; `None` if the index stores no priorities or the document has none.
    pub priority: Option<u64>,
}

impl Record {
    /// Returns the record of the live document with this key; `None` if there is none.
    pub(super) fn find(state: &State, key: Key<'_>) -> Result<Option<Self>> {
        key.check(state.manifest.params.key)?;
        for part in state.parts() {
            let found = part.find(key)?;
            part.check_map()?;
            if let Some(ordinal) = found {
                return Self::read(state, &part, ordinal).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the record of a document. Its part must exist.
    pub(super) fn of(state: &State, document: DocRef) -> Result<Self> {
        let part = state.parts().nth(document.part as usize);
        let part = part.unwrap_or_else(|| unreachable!("the caller has found the document in this part"));
        Self::read(state, &part, document.ordinal)
    }

    fn read(state: &State, part: &IndexPart<'_>, ordinal: u32) -> Result<Self> {
        let (code, params) = (part.code(ordinal)?, &state.manifest.params);
        let fingerprint = code.filter(|_| params.codes.is_none()).map(|code| Fingerprint(code.words()[0]));
        let code = code.filter(|_| params.codes.is_some());
        let signature = part.signature(ordinal, <[u8]>::to_vec)?;
        let mut samples = [Vec::new(), Vec::new()];
        part.samples(ordinal, &mut samples)?;
        let [bottom, modular] = samples;
        let value = params.values.then(|| part.value(ordinal)).transpose()?;
        let stamp = part.stamp(ordinal)?;
        let mut set = Vec::new();
        part.set(ordinal, &mut set)?;
        let (is_duplicate, priority) = (part.is_marked(ordinal)?, part.priority(ordinal)?);
        part.check_map()?;
        Ok(Self { fingerprint, code, signature, bottom, modular, value, stamp, set, is_duplicate, priority })
    }
}
