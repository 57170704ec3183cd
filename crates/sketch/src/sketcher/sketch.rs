//! The sketch of a document.

use std::sync::Arc;

use crate::Fingerprint;
use crate::error::{Error, Result};
use crate::params::SketchParams;

/// The sketch of one document's text: its fingerprint, signature and features, as far as the parameters ask
/// for them.
///
/// A document without tokens has an empty sketch: no fingerprint, no minima, no features, so that no such
/// document is near another by accident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    pub(super) params: Option<Arc<SketchParams>>,
    pub(super) digest: u128,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) signature: Vec<u32>,
    pub(super) features: Vec<u64>,
    pub(super) bottom: Vec<u64>,
    pub(super) modular: Vec<u64>,
    pub(super) set: Vec<u64>,
}

impl Sketch {
    /// True if the document had no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprint.is_none() && self.features.is_empty()
    }

    /// The simhash fingerprint; `None` if the parameters keep none or the sketch is empty.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// All minima, whole, [packed](crate::pack) only where they are stored: t of them, or none if the parameters keep no
    /// signature or the sketch is empty.
    #[must_use]
    pub fn signature(&self) -> &[u32] {
        &self.signature
    }

    /// One feature a band, or none if the parameters keep no bands or the sketch is empty.
    #[must_use]
    pub fn features(&self) -> &[u64] {
        &self.features
    }

    /// The least hashes of the document by [`samples`](crate::samples), ascending: `bottom` of them, all if the document
    /// has fewer; none if the parameters keep none or the sketch is empty. [`Sample::bottom`](crate::Sample::bottom)
    /// compares them.
    #[must_use]
    pub fn bottom(&self) -> &[u64] {
        &self.bottom
    }

    /// The hashes of the document by [`samples`](crate::samples) that `modulus` divides, ascending; none if the parameters
    /// keep none. [`Sample::modular`](crate::Sample::modular) compares them.
    #[must_use]
    pub fn modular(&self) -> &[u64] {
        &self.modular
    }

    /// The distinct shingle hashes of the document, ascending, where the parameters keep [sets](SketchParams::sets), by
    /// which [`Nearness`](crate::Nearness) compares exactly. A text without tokens has the hash of its bytes in their
    /// place, so that it equals copies of itself and nothing else; no features have no hashes.
    #[must_use]
    pub fn set(&self) -> &[u64] {
        &self.set
    }

    /// Whether the parameters it was made with keep sets.
    #[must_use]
    pub fn has_set(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.sets)
    }

    /// The digest of the parameters it was made with, [`SketchParams::digest`].
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }

    /// Refuses a sketch that cannot be compared with sketches made with these parameters. Sketches of equal
    /// [`params_digest`](Self::params_digest) always can.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs, [`Error::Invalid`] an empty sketch that no
    /// sketcher has made.
    pub fn check_comparable(&self, params: &SketchParams) -> Result<()> {
        params.check_same(self.made_with()?)
    }

    /// Refuses a sketch whose bands, and minima where both keep them, cannot be compared with those of sketches made with
    /// these parameters.
    ///
    /// # Errors
    /// As [`check_comparable`](Self::check_comparable).
    pub fn check_same_bands(&self, params: &SketchParams) -> Result<()> {
        let mine = self.made_with()?;
        params.check_same_bands(mine)?;
        let bits = |params: &SketchParams| params.minhash.map_or(0, |minhash| minhash.signature_bits);
        if bits(params) > 0 && bits(mine) == 0 {
            return params.check_same(mine); // which names the bits
        }
        Ok(())
    }

    fn made_with(&self) -> Result<&SketchParams> {
        let made_with = self.params.as_deref();
        made_with.ok_or_else(|| Error::Invalid("an empty sketch that no sketcher has made".into()))
    }
}
