//! The sketcher: all sketches of a document with one set of parameters.

use std::sync::Arc;

use twindex_kernel::Level;

use crate::error::{Error, Result};
use crate::hash::Fast;
use crate::params::{SimhashWeights, SketchParams, Tokens};
use crate::{Buffers, Fingerprint, IdfTable, MinHasher, Shingler, features, samples, simhash_at, weighted};

/// Makes [`Sketch`]es of texts, all with the same parameters. Cheap to clone, and shared by threads at will.
///
/// ```
/// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams};
/// use twindex_sketch::{Resemblance, Sketcher};
///
/// let sketcher = Sketcher::new(
///     SketchParams::new(Shingling::words(2, 0)).with_simhash(SimhashWeights::Occurrences).with_minhash(20, 6),
/// )?;
/// let a = sketcher.sketch("The quick brown fox jumps over the lazy dog.")?;
/// let b = sketcher.sketch("the quick brown fox jumps over the lazy cat")?;
/// let apart = a.fingerprint().unwrap().distance(b.fingerprint().unwrap());
/// assert!(apart < 32);
/// assert!(Resemblance::of_signatures(a.signature(), b.signature()).value() > 0.5);
/// assert!(sketcher.sketch("...")?.is_empty());
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    params: Arc<SketchParams>,
    digest: u128,
    level: Level,
    shingler: Shingler,
    /// Hashes the names of features.
    names: Fast,
    weights: Option<SimhashWeights>,
    /// There if `weights` say so.
    idf: Option<Arc<IdfTable>>,
    minhash: Option<Minhash>,
    /// Whether sets of texts with tokens are made, where the parameters keep sets.
    makes_sets: bool,
}

#[derive(Clone, Debug)]
struct Minhash {
    hasher: MinHasher,
    rows: usize,
    signature_kept: bool,
}

/// Working memory of a [`Sketcher`], reused from document to document.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    shingles: Vec<u64>,
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    vector: Vec<(u64, i64)>,
    tokens: usize,
}

impl Scratch {
    /// The number of tokens of the document sketched last; of a set or vector of the caller's, the number of features
    /// that count.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The shingle hashes of the document sketched last, as they went into its sketch: occurrences in the order of
    /// the text, or the sorted distinct ones where [`SimhashWeights::Distinct`] asked for those.
    #[must_use]
    pub fn shingles(&self) -> &[u64] {
        &self.shingles
    }
}

impl Sketcher {
    /// A sketcher for these parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] where this build of the crate cannot cut text as they say, and where they weight shingles
    /// by an IDF table, which [`with_idf`](Self::with_idf) takes.
    pub fn new(params: impl Into<SketchParams>) -> Result<Self> {
        let params = params.into();
        if let Some(SimhashWeights::Idf { table }) = params.simhash {
            return Err(Error::Invalid(format!(
                "these parameters (simhash=idf) need the idf table {table:032x}: take the sketcher of the index, \
                 which has it, or Sketcher::with_idf"
            )));
        }
        Self::made(params, None)
    }

    /// A sketcher for parameters that weight shingles by this table.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a table that is not the one that the parameters name, or whose documents were cut in
    /// another way; otherwise as [`new`](Self::new).
    pub fn with_idf(params: impl Into<SketchParams>, table: Arc<IdfTable>) -> Result<Self> {
        let params = params.into();
        table.check(&params)?;
        Self::made(params, Some(table))
    }

    fn made(params: SketchParams, idf: Option<Arc<IdfTable>>) -> Result<Self> {
        Ok(Self {
            digest: params.digest(),
            level: Level::chosen(),
            shingler: Shingler::new(&params.shingling)?,
            names: Fast::new(params.shingling.seed),
            weights: params.simhash,
            idf,
            minhash: params.minhash.map(|minhash| Minhash {
                hasher: MinHasher::of(minhash.family, minhash.minima()),
                rows: usize::from(minhash.rows),
                signature_kept: minhash.signature_bits > 0,
            }),
            makes_sets: params.sets,
            params: Arc::new(params),
        })
    }

    /// The same sketcher, whose sketches have [sets](Sketch::set) of texts without tokens alone: for whoever has the shingle
    /// hashes of the others anyway.
    #[must_use]
    pub fn with_sets_of_wordless_only(mut self) -> Self {
        self.makes_sets = false;
        self
    }

    /// The same sketcher with the instructions of `level`, for tests and measurements: its sketches are the same.
    /// Weighted votes and the shingle hashes `rabin` and `rabin-karp` stay with the level of the process,
    /// [`Level::chosen`].
    #[must_use]
    pub fn at(mut self, level: Level) -> Self {
        self.level = level;
        self.shingler = self.shingler.at(level);
        self.minhash = self.minhash.map(|minhash| Minhash { hasher: minhash.hasher.at(level), ..minhash });
        self
    }

    /// The sketch of one document.
    ///
    /// Time is linear in the text, plus t steps for each shingle of documents of fewer than about t shingles,
    /// for t minima. Memory is 8 bytes a token, and twice the longest token. For many documents, see
    /// [`sketch_into`](Self::sketch_into).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for features that callers bring ([`Tokens::Features`]), not for
    /// texts.
    pub fn sketch(&self, text: &str) -> Result<Sketch> {
        let mut sketch = Sketch::default();
        self.sketch_into(text, &mut Scratch::default(), &mut sketch)?;
        Ok(sketch)
    }

    /// As [`sketch`](Self::sketch), for bytes that should be UTF-8.
    ///
    /// ```
    /// # use twindex_sketch::{SketchParams, Sketcher, params::{Shingling, SimhashWeights}};
    /// # let params = SketchParams::new(Shingling::words(5, 0)).with_simhash(SimhashWeights::Occurrences);
    /// # let sketcher = Sketcher::new(params)?;
    /// let error = sketcher.sketch_bytes(b"Grammatik f\xfcr").unwrap_err();
    /// assert_eq!(error.to_string(), "not UTF-8: byte 0xfc at offset 11");
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] with the offset of the first byte that is not UTF-8; otherwise as [`sketch`](Self::sketch).
    pub fn sketch_bytes(&self, text: &[u8]) -> Result<Sketch> {
        match std::str::from_utf8(text) {
            Ok(text) => self.sketch(text),
            Err(error) => {
                let offset = error.valid_up_to();
                Err(Error::Invalid(format!("not UTF-8: byte {:#04x} at offset {offset}", text[offset])))
            }
        }
    }

    /// As [`sketch`](Self::sketch), replacing what `sketch` holds: no memory is allocated once `scratch` and
    /// `sketch` have grown to the longest document.
    ///
    /// # Errors
    /// As [`sketch`](Self::sketch).
    pub fn sketch_into(&self, text: &str, scratch: &mut Scratch, sketch: &mut Sketch) -> Result<()> {
        if self.params.shingling.tokens == Tokens::Features {
            return Err(Error::Invalid(
                "these parameters (tokens=features) are for sets of features, not for texts".into(),
            ));
        }
        if self.weights == Some(SimhashWeights::Distinct) {
            self.shingler.distinct(text, &mut scratch.buffers, &mut scratch.shingles);
        } else {
            // Minima do not mind repetitions.
            self.shingler.occurrences(text, &mut scratch.buffers, &mut scratch.shingles);
        }
        scratch.tokens = scratch.buffers.tokens();
        self.finish_unweighted(scratch, sketch);
        if self.params.sets && scratch.shingles.is_empty() {
            sketch.set.push(self.names.single(text.as_bytes()));
        }
        Ok(())
    }

    /// Replaces the [set](Sketch::set) of a sketch by that of a document which only copies of its bytes are near: one
    /// whose text could not be read in full, say, and of which the rest must not decide. Changes nothing where no sets
    /// are kept.
    ///
    /// ```
    /// # use twindex_sketch::{SketchParams, Sketcher, params::Shingling};
    /// # let mut params = SketchParams::new(Shingling::words(1, 0));
    /// params.sets = true;
    /// let sketcher = Sketcher::new(params)?;
    /// let (mut one, mut other) = (sketcher.sketch("caf? au lait")?, sketcher.sketch("caf? au lait")?);
    /// sketcher.replace_set(b"caf\xe9 au lait", &mut one);
    /// sketcher.replace_set(b"caf\xe8 au lait", &mut other);
    /// assert_ne!(one.set(), other.set());
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    pub fn replace_set(&self, bytes: &[u8], sketch: &mut Sketch) {
        if self.params.sets {
            sketch.set.clear();
            sketch.set.push(self.names.single(bytes));
        }
    }

    /// The hash by which a set or vector of the caller's names one of its elements: that of the shingle whose only
    /// token has these bytes, with the parameters' seed.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, SketchParams, Tokens};
    /// use twindex_sketch::{Scratch, Sketch, Sketcher};
    ///
    /// let features = Shingling::words(1, 0).with_tokens(Tokens::Features)?;
    /// let sketcher = Sketcher::new(SketchParams::new(features).with_minhash(6, 14))?;
    /// let set: Vec<u64> = ["add", "load", "store"].map(|name| sketcher.feature(name.as_bytes())).into();
    /// let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    /// sketcher.sketch_features(&set, &mut scratch, &mut sketch)?;
    /// assert_eq!(sketch.features().len(), 6);
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    #[must_use]
    pub fn feature(&self, name: &[u8]) -> u64 {
        self.names.single(name)
    }

    /// As [`feature`](Self::feature), for an element that is a number: the hash of its eight bytes, the low ones
    /// first.
    #[must_use]
    pub fn feature_number(&self, number: u64) -> u64 {
        self.names.single(&number.to_le_bytes())
    }

    /// The sketch of a set of the caller's, replacing what `sketch` holds: of an image, a sound, a program, or
    /// whatever else was reduced to features. A feature is a well-mixed 64-bit hash, as [`feature`](Self::feature)
    /// makes one.
    ///
    /// A feature that is given several times votes in the simhash as often, unless the parameters say
    /// [`SimhashWeights::Distinct`]. No features give an empty sketch. The order does not matter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for texts: only those with [`Tokens::Features`] are for features, so
    /// that the two never meet in one index by accident.
    pub fn sketch_features(
        &self,
        features: &[u64],
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        self.check_features()?;
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(features);
        if self.weights == Some(SimhashWeights::Distinct) {
            scratch.shingles.sort_unstable();
            scratch.shingles.dedup();
        }
        scratch.tokens = scratch.shingles.len();
        self.finish_unweighted(scratch, sketch);
        Ok(())
    }

    /// The sketch of a weighted vector of the caller's, replacing what `sketch` holds: pairs of a feature, as in
    /// [`sketch_features`](Self::sketch_features), and its weight.
    ///
    /// - The simhash is that of the vector, [`weighted`] (times the features' inverse document frequencies, if the
    ///   parameters say [`SimhashWeights::Idf`]): a weight of any sign votes with its value, in fixed point
    ///   of the caller's choice, as only ratios matter. Weights of a feature that is given several times add up.
    /// - Minima, and other sketches of sets, are those of the set of features whose weights add up to more than 0.
    /// - The sketch is empty if the weights of each feature add up to 0, and, where the parameters keep sketches of
    ///   sets, if none of these sums is above 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for texts, see [`sketch_features`](Self::sketch_features), or say
    /// that each distinct feature votes once ([`SimhashWeights::Distinct`]), which leaves weights no meaning.
    pub fn sketch_weighted(
        &self,
        features: &[(u64, i64)],
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        self.check_features()?;
        if self.weights == Some(SimhashWeights::Distinct) {
            return Err(Error::Invalid(
                "these parameters (simhash=distinct) let each feature vote once; weights need simhash=occurrences \
                 or simhash=idf"
                    .into(),
            ));
        }
        let Scratch { shingles, vector, .. } = scratch;
        vector.clear();
        vector.extend_from_slice(features);
        vector.sort_unstable_by_key(|&(feature, _)| feature);
        shingles.clear();
        let mut is_zero = true;
        for same in vector.chunk_by(|(a, _), (b, _)| a == b) {
            let weight: i128 = same.iter().map(|&(_, weight)| i128::from(weight)).sum();
            is_zero &= weight == 0;
            if weight > 0 {
                shingles.push(same[0].0);
            }
        }
        let sets_kept = self.params.minhash.is_some() || self.params.bottom > 0 || self.params.modulus > 0;
        let counts = if sets_kept { !shingles.is_empty() } else { !is_zero };
        let votes = || {
            self.idf.as_ref().map_or_else(|| weighted(features.iter().copied()), |idf| idf.vector(features))
        };
        let fingerprint = self.weights.filter(|_| counts).map(|_| votes());
        scratch.tokens = scratch.shingles.len();
        self.finish(scratch, sketch, fingerprint);
        Ok(())
    }

    /// The sketch of a fingerprint that the caller brought, made by no text, replacing what `sketch` holds.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams, Tokens};
    /// use twindex_sketch::{Fingerprint, Scratch, Sketch, Sketcher};
    ///
    /// let features = Shingling::words(1, 0).with_tokens(Tokens::Features)?;
    /// let mut params = SketchParams::new(features);
    /// params.simhash = Some(SimhashWeights::Occurrences);
    /// let sketcher = Sketcher::new(params)?;
    /// let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    /// sketcher.sketch_fingerprint(Fingerprint(7), &mut scratch, &mut sketch)?;
    /// assert_eq!(sketch.fingerprint(), Some(Fingerprint(7)));
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters keep no simhash, or anything that a fingerprint does not say: minima, samples or
    /// sets.
    pub fn sketch_fingerprint(
        &self,
        fingerprint: Fingerprint,
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        let keeps_sets = self.params.minhash.is_some()
            || self.params.bottom > 0
            || self.params.modulus > 0
            || self.params.sets;
        if self.weights.is_none() || keeps_sets {
            return Err(Error::Invalid(
                "these parameters keep more than a simhash, and a fingerprint is nothing else".into(),
            ));
        }
        scratch.shingles.clear();
        scratch.tokens = 1;
        self.finish(scratch, sketch, Some(fingerprint));
        Ok(())
    }

    fn check_features(&self) -> Result<()> {
        if self.params.shingling.tokens == Tokens::Features {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "these parameters (tokens={}) are for texts; sets and vectors of features need tokens=features",
            self.params.shingling.tokens
        )))
    }

    /// From the shingles in `scratch`, a vote for each occurrence, to the sketch.
    fn finish_unweighted(&self, scratch: &mut Scratch, sketch: &mut Sketch) {
        let shingles = &scratch.shingles;
        let votes = || {
            self.idf.as_ref().map_or_else(|| simhash_at(self.level, shingles), |idf| idf.simhash(shingles))
        };
        let fingerprint = self.weights.filter(|_| !shingles.is_empty()).map(|_| votes());
        self.finish(scratch, sketch, fingerprint);
    }

    /// From the shingles in `scratch` and their fingerprint to the sketch.
    fn finish(&self, scratch: &mut Scratch, sketch: &mut Sketch, fingerprint: Option<Fingerprint>) {
        let Scratch { bytes, shingles, hashes, .. } = scratch;
        if sketch.digest != self.digest {
            sketch.params = Some(Arc::clone(&self.params));
            sketch.digest = self.digest;
        }
        sketch.fingerprint = fingerprint;
        sketch.signature.clear();
        sketch.features.clear();
        sketch.bottom.clear();
        sketch.modular.clear();
        sketch.set.clear();
        if shingles.is_empty() {
            return;
        }
        if let Some(minhash) = &self.minhash {
            minhash.hasher.signature(shingles, &mut sketch.signature);
            features(&sketch.signature, minhash.rows, bytes, &mut sketch.features);
            if !minhash.signature_kept {
                sketch.signature.clear();
            }
        }
        if self.params.bottom > 0 {
            samples::bottom(shingles, self.params.bottom.into(), hashes, &mut sketch.bottom);
        }
        if self.params.modulus > 0 {
            samples::modular(shingles, self.params.modulus, &mut sketch.modular);
        }
        if self.makes_sets {
            sketch.set.extend_from_slice(shingles);
            sketch.set.sort_unstable();
            sketch.set.dedup();
        }
    }

    /// The first half of sketching alone, for exact comparisons.
    #[must_use]
    pub fn shingler(&self) -> &Shingler {
        &self.shingler
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &SketchParams {
        &self.params
    }

    /// The digest of the parameters, [`SketchParams::digest`]; it stands in every sketch.
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }
}

/// What is kept of one document's text: its fingerprint, signature and features, as far as the parameters ask
/// for them.
///
/// A document without tokens has an empty sketch: no fingerprint, no minima, no features, so that no such
/// document is near another by accident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    params: Option<Arc<SketchParams>>,
    digest: u128,
    fingerprint: Option<Fingerprint>,
    signature: Vec<u32>,
    features: Vec<u64>,
    bottom: Vec<u64>,
    modular: Vec<u64>,
    set: Vec<u64>,
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

    /// The least hashes of the document by [`samples`], ascending: `bottom` of them, all if the document has fewer;
    /// none if the parameters keep none or the sketch is empty. [`Sample::bottom`](crate::Sample::bottom) compares them.
    #[must_use]
    pub fn bottom(&self) -> &[u64] {
        &self.bottom
    }

    /// The hashes of the document by [`samples`] that `modulus` divides, ascending; none if the parameters keep none.
    /// [`Sample::modular`](crate::Sample::modular) compares them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::params::{MinhashParams, Shingling};

    fn both() -> SketchParams {
        SketchParams::new(Shingling::words(3, 0))
            .with_simhash(SimhashWeights::Occurrences)
            .with_minhash(6, 14)
    }

    #[test]
    fn a_sketch_has_what_the_parameters_ask_for() {
        let text = "one two three four five";
        let sketch = Sketcher::new(both()).unwrap().sketch(text).unwrap();
        assert!(sketch.fingerprint().is_some());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (84, 6));
        assert_eq!(sketch.params_digest(), both().digest());

        let simhash_only =
            SketchParams::new(Shingling::words(3, 0)).with_simhash(SimhashWeights::Occurrences);
        let sketch = Sketcher::new(&simhash_only).unwrap().sketch(text).unwrap();
        assert!(sketch.fingerprint().is_some() && !sketch.is_empty());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 0));

        let features_only = SketchParams {
            minhash: Some(MinhashParams { signature_bits: 0, ..MinhashParams::new(6, 14) }),
            ..SketchParams::new(Shingling::words(3, 0))
        };
        let sketch = Sketcher::new(&features_only).unwrap().sketch(text).unwrap();
        assert!(sketch.fingerprint().is_none() && !sketch.is_empty());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 6));
    }

    #[test]
    fn a_document_without_tokens_has_no_sketch() {
        for text in ["", "--- ***", "😀"] {
            let sketch = Sketcher::new(both()).unwrap().sketch(text).unwrap();
            assert!(sketch.is_empty() && sketch.signature().is_empty(), "{text:?}");
            assert_eq!(sketch.params_digest(), both().digest());
        }
    }

    #[test]
    fn bytes_are_sketched_as_the_text_they_are_and_refused_with_the_offset_of_the_first_that_is_none() {
        let sketcher = Sketcher::new(both()).unwrap();
        let text = "Grammatik für die Küche";
        assert_eq!(sketcher.sketch_bytes(text.as_bytes()).unwrap(), sketcher.sketch(text).unwrap());
        for (bytes, said) in [
            (&b"ab\xff"[..], "byte 0xff at offset 2"),
            (b"\xe4\xb8", "byte 0xe4 at offset 0"), // a character that breaks off
            (b"a\xc0\x80", "byte 0xc0 at offset 1"), // a longer spelling of zero
            (b"\xed\xa0\x80", "byte 0xed at offset 0"), // a surrogate
        ] {
            let error = sketcher.sketch_bytes(bytes).unwrap_err().to_string();
            assert_eq!(error, format!("not UTF-8: {said}"));
        }
    }

    #[test]
    fn nothing_of_the_last_document_stays_behind() {
        let sketcher = Sketcher::new(both()).unwrap();
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        for text in ["a b c d e f g h", "", "a", "Ä ö ü ß x y", "a b c d e f g h"] {
            sketcher.sketch_into(text, &mut scratch, &mut sketch).unwrap();
            assert_eq!(sketch, sketcher.sketch(text).unwrap(), "{text:?}");
        }
    }

    #[test]
    fn weights_matter_to_the_fingerprint_only() {
        let distinct = SketchParams::new(Shingling::words(1, 0))
            .with_simhash(SimhashWeights::Distinct)
            .with_minhash(6, 14);
        let occurrences = SketchParams::new(Shingling::words(1, 0))
            .with_simhash(SimhashWeights::Occurrences)
            .with_minhash(6, 14);
        let (text, once) = ("x y z x x x y x", "z y x");
        let of = |params: &SketchParams, text| Sketcher::new(params).unwrap().sketch(text).unwrap();
        assert_eq!(of(&distinct, text), of(&distinct, once));
        assert_ne!(of(&occurrences, text).fingerprint(), of(&occurrences, once).fingerprint());
        assert_eq!(of(&occurrences, text).signature(), of(&distinct, text).signature());
        // Four of the eight votes are x's and three are y's and z's together: x decides where they are
        // divided.
        assert_eq!(of(&occurrences, "x x x y z").fingerprint(), of(&occurrences, "x").fingerprint());
    }

    fn for_features(change: impl FnOnce(SketchParams) -> SketchParams) -> Sketcher {
        let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
        let builder = change(SketchParams::new(shingling));
        Sketcher::new(builder).unwrap()
    }

    fn of_features(sketcher: &Sketcher, features: &[u64]) -> Sketch {
        // What the last document left behind must not matter.
        let mut sketch = of_weighted(sketcher, &[(5, 5)]).unwrap_or_default();
        sketcher.sketch_features(features, &mut Scratch::default(), &mut sketch).unwrap();
        sketch
    }

    fn of_weighted(sketcher: &Sketcher, features: &[(u64, i64)]) -> Result<Sketch> {
        let mut sketch = Sketch::default();
        sketcher.sketch_weighted(features, &mut Scratch::default(), &mut sketch)?;
        Ok(sketch)
    }

    #[test]
    fn a_name_is_hashed_as_the_shingle_of_one_token() {
        let sketcher = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences));
        let words = Sketcher::new(
            SketchParams::new(Shingling::words(1, 7)).with_simhash(SimhashWeights::Occurrences),
        )
        .unwrap();
        for name in ["rose", "a", "antidisestablishmentarianism"] {
            let mut shingles = Vec::new();
            words.shingler().occurrences(name, &mut Buffers::default(), &mut shingles);
            assert_eq!(shingles, [sketcher.feature(name.as_bytes())], "{name}");
        }
        assert_eq!(sketcher.feature_number(0x6162), sketcher.feature(b"ba\0\0\0\0\0\0"));
        assert_ne!(sketcher.feature(b""), sketcher.feature(b"\0"));
    }

    #[test]
    fn a_set_of_features_has_the_sketch_of_a_text_with_these_shingles() {
        let features =
            for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14));
        let words = SketchParams::new(Shingling::words(1, 7))
            .with_simhash(SimhashWeights::Occurrences)
            .with_minhash(6, 14);
        let of_text = Sketcher::new(&words).unwrap().sketch("a rose is a rose").unwrap();
        let hashes: Vec<u64> =
            ["a", "rose", "is", "a", "rose"].map(|w| features.feature(w.as_bytes())).into();
        let of_set = of_features(&features, &hashes);
        assert_eq!(of_set.fingerprint(), of_text.fingerprint());
        assert_eq!(of_set.signature(), of_text.signature());
        assert_eq!(of_set.features(), of_text.features());
        let vector = [(hashes[0], 2), (hashes[1], 2), (hashes[2], 1)];
        assert_eq!(of_weighted(&features, &vector).unwrap(), of_set);
        assert!(of_features(&features, &[]).is_empty());

        let distinct = for_features(|builder| builder.with_simhash(SimhashWeights::Distinct));
        assert_eq!(of_features(&distinct, &hashes), of_features(&distinct, &hashes[..3]));
        assert!(of_weighted(&distinct, &vector).unwrap_err().to_string().contains("simhash=distinct"));
    }

    #[test]
    fn features_without_weight_are_in_no_set_and_negative_ones_vote_against() {
        let sketcher =
            for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14));
        let sketch = of_weighted(&sketcher, &[(1, 3), (2, 0), (4, -2)]).unwrap();
        assert_eq!(sketch.fingerprint(), Some(weighted([(1, 3), (4, -2)])));
        assert_eq!(sketch.signature(), of_features(&sketcher, &[1]).signature());
        for nothing in [&[][..], &[(1, 0)], &[(1, -1)]] {
            assert!(of_weighted(&sketcher, nothing).unwrap().is_empty(), "{nothing:?}");
        }
        let simhash_only = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences));
        assert_eq!(of_weighted(&simhash_only, &[(1, -1)]).unwrap().fingerprint(), Some(Fingerprint(!1)));
        assert!(of_weighted(&simhash_only, &[(1, 0)]).unwrap().is_empty());
    }

    #[test]
    fn texts_and_features_do_not_meet() {
        let texts = Sketcher::new(both()).unwrap();
        let error = texts.sketch_features(&[1], &mut Scratch::default(), &mut Sketch::default()).unwrap_err();
        assert!(error.to_string().contains("tokens=words"), "{error}");
        assert!(of_weighted(&texts, &[(1, 1)]).is_err());
        let error = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences))
            .sketch("a text")
            .unwrap_err();
        assert!(error.to_string().contains("tokens=features"), "{error}");
    }

    #[test]
    fn weights_of_a_feature_add_up_before_anything_is_made_of_them() {
        let mut shingling = Shingling::words(1, 0);
        shingling.tokens = Tokens::Features;
        let with_sets = SketchParams::new(shingling.clone())
            .with_simhash(SimhashWeights::Occurrences)
            .with_minhash(6, 14);
        let without = SketchParams::new(shingling).with_simhash(SimhashWeights::Occurrences);
        let of = |params: &SketchParams, features: &[(u64, i64)]| {
            let mut sketch = Sketch::default();
            let sketcher = Sketcher::new(params).unwrap();
            sketcher.sketch_weighted(features, &mut Scratch::default(), &mut sketch).unwrap();
            sketch
        };
        let (a, b) = (mix(1), mix(2));
        for params in [&with_sets, &without] {
            assert!(of(params, &[(a, 3), (b, 1), (a, -3), (b, -1)]).is_empty());
            assert!(
                of(params, &[(a, i64::MIN), (a, i64::MIN), (a, i64::MAX), (a, i64::MAX), (a, 2)]).is_empty()
            );
            assert_eq!(of(params, &[(b, 2), (a, 3), (b, 2)]), of(params, &[(a, 3), (b, 4)]));
        }
        assert_eq!(
            of(&with_sets, &[(a, 3), (a, -5), (b, 1)]).signature(),
            of(&with_sets, &[(b, 1)]).signature()
        );
        assert!(of(&with_sets, &[(a, -1)]).is_empty() && !of(&without, &[(a, -1)]).is_empty());
    }

    #[test]
    fn sketchers_can_be_shared_by_threads() {
        fn shared<T: Clone + Send + Sync>() {}
        shared::<Sketcher>();
        shared::<Sketch>();
    }
}
