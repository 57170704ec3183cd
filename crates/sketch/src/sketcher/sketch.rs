//! The sketch of a document.

use std::sync::Arc;

use crate::Fingerprint;
use crate::error::{Error, Result};
use crate::params::SketchParams;

/// The sketch of one document's text: its fingerprint, signature, features and hashes, as far as the parameters
/// include them.
///
/// A document without tokens has an empty sketch: no fingerprint, no minima, no features. Two empty sketches are
/// therefore never near each other.
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

    /// All t minima with all their bits; they are [packed](crate::pack) only when they are stored. Empty if the
    /// parameters keep no signature or the sketch is empty.
    #[must_use]
    pub fn signature(&self) -> &[u32] {
        &self.signature
    }

    /// The features, one for each band. Empty if the parameters keep no bands or the sketch is empty.
    #[must_use]
    pub fn features(&self) -> &[u64] {
        &self.features
    }

    /// The `bottom` least hashes of the document by [`samples`](crate::samples), ascending; all hashes if the document
    /// has fewer. Empty if the parameters keep none or the sketch is empty. [`Sample::bottom`](crate::Sample::bottom)
    /// compares them.
    #[must_use]
    pub fn bottom(&self) -> &[u64] {
        &self.bottom
    }

    /// The hashes of the document by [`samples`](crate::samples) that are divisible by `modulus`, ascending. Empty if the
    /// parameters keep none. [`Sample::modular`](crate::Sample::modular) compares them.
    #[must_use]
    pub fn modular(&self) -> &[u64] {
        &self.modular
    }

    /// The distinct shingle hashes of the document, ascending, if the parameters keep [sets](SketchParams::sets);
    /// [`Nearness`](crate::Nearness) compares them exactly. The set of a text without tokens is the hash of its bytes, so
    /// that the text equals its copies and nothing else. The set of a document given as no features is empty.
    #[must_use]
    pub fn set(&self) -> &[u64] {
        &self.set
    }

    /// Whether the parameters of the sketch keep sets.
    #[must_use]
    pub fn has_set(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.sets)
    }

    /// The digest of the parameters of the sketch, [`SketchParams::digest`].
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }

    /// Refuses a sketch that cannot be compared with sketches made with `params`. Sketches of equal
    /// [`params_digest`](Self::params_digest) are always comparable.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs; [`Error::Invalid`] if the sketch was not made by
    /// a sketcher.
    pub fn check_comparable(&self, params: &SketchParams) -> Result<()> {
        params.check_same(self.made_with()?)
    }

    /// Refuses a sketch whose bands cannot be compared with the bands of sketches made with `params`, or whose parameters
    /// keep no minima although `params` do.
    ///
    /// # Errors
    /// As [`check_comparable`](Self::check_comparable).
    pub fn check_same_bands(&self, params: &SketchParams) -> Result<()> {
        let mine = self.made_with()?;
        params.check_same_bands(mine)?;
        let bits = |params: &SketchParams| params.minhash.map_or(0, |minhash| minhash.signature_bits);
        if bits(params) > 0 && bits(mine) == 0 {
            return params.check_same(mine); // this error names `signature-bits`
        }
        Ok(())
    }

    fn made_with(&self) -> Result<&SketchParams> {
        let made_with = self.params.as_deref();
        made_with.ok_or_else(|| Error::Invalid("an empty sketch that no sketcher has made".into()))
    }
}
