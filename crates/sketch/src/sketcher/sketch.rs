//! The sketch of a document.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::params::SketchParams;
use crate::{Code, Fingerprint};

/// The sketch of one document: its fingerprint, signature, features and sampled hashes, or those of them that the
/// parameters include.
///
/// A document without tokens has an empty sketch: no fingerprint, no minima and no features. Two such documents are near
/// each other only if their bytes are equal and the parameters keep [sets](Self::set).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    pub(super) params: Option<Arc<SketchParams>>,
    pub(super) digest: u128,
    pub(super) code: Option<Code>,
    pub(super) signature: Vec<u32>,
    pub(super) features: Vec<u64>,
    pub(super) bottom: Vec<u64>,
    pub(super) modular: Vec<u64>,
    pub(super) set: Vec<u64>,
}

impl Sketch {
    /// Returns true if the sketch has no fingerprint, no minima and no features. So it is for a document without
    /// tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.code.is_none() && self.signature.is_empty() && self.features.is_empty()
    }

    /// Removes the features, and all but the first `minima` minima, so that the [stored](Self::store) sketch is small. The
    /// sketch can then neither be indexed nor compared with others.
    pub fn shorten(&mut self, minima: usize) {
        self.features.clear();
        self.signature.truncate(minima);
    }

    /// Returns the simhash fingerprint of 64 bits; `None` if the parameters have fingerprints of more bits or none, or if
    /// the sketch is empty.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        let code = self.code.filter(|code| code.bits() == 64)?;
        code.words().first().map(|&word| Fingerprint(word))
    }

    /// Returns the simhash fingerprint of [any number of bits](SketchParams::simhash_bits); `None` if the parameters exclude
    /// fingerprints or if the sketch is empty.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.code
    }

    /// Returns all t minima with all their bits; they are [packed](crate::pack) only when they are stored. The slice is
    /// empty if the parameters exclude minima or if the sketch is empty.
    #[must_use]
    pub fn signature(&self) -> &[u32] {
        &self.signature
    }

    /// Returns the features, one for each band; none if the parameters exclude bands or if the sketch is empty.
    #[must_use]
    pub fn features(&self) -> &[u64] {
        &self.features
    }

    /// Returns the `bottom` least hashes of the document, ascending, as computed by [`samples`](crate::samples); all
    /// hashes if the document has fewer. The slice is empty if `bottom` is 0 or if the sketch is empty.
    /// [`Sample::bottom`](crate::Sample::bottom) compares such hashes.
    #[must_use]
    pub fn bottom(&self) -> &[u64] {
        &self.bottom
    }

    /// Returns the hashes of the document that are divisible by `modulus`, ascending, as computed by
    /// [`samples`](crate::samples). The slice is empty if `modulus` is 0 or if the sketch is empty.
    /// [`Sample::modular`](crate::Sample::modular) compares such hashes.
    #[must_use]
    pub fn modular(&self) -> &[u64] {
        &self.modular
    }

    /// Returns the distinct shingle hashes of the document, ascending, if the parameters keep
    /// [sets](SketchParams::sets). [`Nearness`](crate::Nearness) compares them exactly. The set of a text without
    /// tokens is the hash of its bytes, so only exact copies have the same set. A document without features has an
    /// empty set.
    #[must_use]
    pub fn set(&self) -> &[u64] {
        &self.set
    }

    /// Returns true if the parameters of the sketch keep sets.
    #[must_use]
    pub fn has_set(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.sets)
    }

    /// Returns the digest of the parameters of the sketch, [`SketchParams::digest`].
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }

    /// Checks that the sketch can be compared with sketches made with `params`. Sketches with equal
    /// [`params_digest`](Self::params_digest) are always comparable.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs. [`Error::Invalid`] if the sketch was not made by a
    /// sketcher.
    pub fn check_comparable(&self, params: &SketchParams) -> Result<()> {
        params.check_same(self.made_with()?)
    }

    /// Checks that the bands of the sketch can be compared with the bands of sketches made with `params`, and that the
    /// sketch has minima if `params` keep minima.
    ///
    /// # Errors
    /// The errors of [`check_comparable`](Self::check_comparable).
    pub fn check_same_bands(&self, params: &SketchParams) -> Result<()> {
        let mine = self.made_with()?;
        params.check_same_bands(mine)?;
        let bits = |params: &SketchParams| params.minhash.map_or(0, |minhash| minhash.signature_bits);
        if bits(params) > 0 && bits(mine) == 0 {
            return params.check_same(mine); // returns the error that names `signature-bits`
        }
        Ok(())
    }

    fn made_with(&self) -> Result<&SketchParams> {
        let made_with = self.params.as_deref();
        made_with.ok_or_else(|| Error::Invalid("an empty sketch that no sketcher has made".into()))
    }
}
