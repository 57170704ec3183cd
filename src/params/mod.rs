//! The parameters of an index: all settings that change the bytes of its files.
//!
//! Parameters are fixed when an index is created. They are stored in its manifest and in every segment, as lines
//! `name=value` in a fixed order ([`Params::encode`]). Equal parameters have equal encodings, so the
//! [`digest`](Params::digest) of the encoding identifies them, and an error can name the line that differs.
//!
//! ```
//! use twindex::Params;
//!
//! let params = Params::builder().words(5).simhash(3).minhash(20, 6).build()?;
//! assert_eq!(params, Params::decode(&params.encode())?);
//! # Ok::<(), twindex::Error>(())
//! ```

use xxhash_rust::xxh3::xxh3_128;

use crate::design::{CodecChoice, Design, DesignChoice, WITHIN_MAX};
use crate::error::{Error, Result};

mod difference;
mod lines;
mod near;
mod preset;

pub use crate::key::KeyKind;
pub use difference::ParamDifference;
pub use near::{Near, Threshold};
pub use preset::{FeatureScheme, Preset};
pub use twindex_sketch::params::{
    BANDS_MAX, BOTTOM_MAX, FEATURE_BITS_MAX, Family, Folding, HASH_BITS, KEY_BITS, MINIMA_MAX, MODULAR_MAX,
    MinhashParams, MinhashWeights, NormalForm, SHINGLE_WIDTH_MAX, SIGNATURE_BITS, SIMHASH_BITS, ShingleHash,
    Shingling, SimhashWeights, SketchParams, Stemming, StopWords, Tokens, UnicodeVersion, Widths,
};
use twindex_sketch::params::{check_same_fields, in_range};
pub use twindex_sketch::whole::WeightUnit;
use twindex_sketch::{CODE_WIDTHS, Sketch};

/// Parameters of the 64-bit simhash fingerprint and its permutation tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SimhashParams {
    /// The Hamming radius for which the tables are tuned, 0 to [`WITHIN_MAX`]. Queries may use other radii: an exact
    /// design finds all fingerprints within any radius up to its maximum, at most [`WITHIN_MAX`].
    pub within: u8,
    /// The weight of a shingle in the fingerprint.
    pub weights: SimhashWeights,
    /// The design of the permutation tables.
    pub design: DesignChoice,
    /// The codecs of the permutation tables.
    pub codec: CodecChoice,
    /// The Hamming distance up to which documents are near. If `None`, the distance does not decide whether documents
    /// are near; see [`ParamsBuilder::near`] for the default.
    pub near: Option<u16>,
}

/// Parameters of fingerprints without tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CodeParams {
    /// Number of bits of a fingerprint: 64, 128, 192, 256, 384 or 512.
    pub bits: u16,
    /// The Hamming distance up to which documents are near, 0 to `bits`.
    pub near: u16,
    /// The weight of a shingle in a fingerprint that is the simhash of a text; `None` if the caller computes fingerprints.
    pub votes: Option<SimhashWeights>,
}

impl CodeParams {
    /// Returns whether a stored fingerprint with these words is that of a document without tokens, which is near no other.
    #[must_use]
    pub fn is_of_no_tokens(&self, words: &[u64]) -> bool {
        self.votes.is_some() && words.iter().all(|&word| word == 0)
    }
}

/// The parameters of an index: which data it stores, and how the data is computed from text. Built by
/// [`Params::builder`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each says of one thing whether it is kept")]
pub struct Params {
    /// The kind of the index's keys.
    pub key: KeyKind,
    /// The rules for splitting a text into shingles.
    pub shingling: Shingling,
    /// Parameters of fingerprints and permutation tables; `None` if the index stores none.
    pub simhash: Option<SimhashParams>,
    /// Parameters of minima and bands; `None` if the index stores none.
    pub minhash: Option<MinhashParams>,
    /// The number of smallest hashes stored for each document (a bottom-t sketch); 0 stores none.
    pub bottom: u16,
    /// A shingle hash is stored as a sample if it is divisible by this number; 0 stores no such samples.
    pub modulus: u32,
    /// Whether the distinct shingle hashes of each document are stored, so that resemblance is computed exactly instead
    /// of estimated.
    pub sets: bool,
    /// Whether the shingle hashes outside of prefixes are indexed too, so that containment is found without reading the
    /// sets of all documents.
    pub suffixes: bool,
    /// Parameters of fingerprints of any width, which are stored instead of sketches; `None` if the index stores sketches.
    pub codes: Option<CodeParams>,
    /// Whether documents can be marked as duplicates.
    pub marks: bool,
    /// Whether documents can have a priority, a number that orders the documents of a group.
    pub priorities: bool,
    /// Whether a value of at most 64 KiB is stored with each document.
    pub values: bool,
    /// The age at which a document expires, at least 1, in the unit of stamps. The age of a document is the newest
    /// stamp in the index minus the document's stamp. If `None`, documents do not expire and no stamps are stored.
    pub expire_after: Option<u64>,
    /// The resemblance at or above which documents are near, used if minima are stored. If `None`, the resemblance does
    /// not decide whether documents are near.
    pub threshold: Option<Threshold>,
}

impl Params {
    /// Creates a builder with byte keys, 5-word shingles, and neither fingerprints nor minima. Add
    /// [`simhash`](ParamsBuilder::simhash), [`minhash`](ParamsBuilder::minhash) or both.
    pub fn builder() -> ParamsBuilder {
        ParamsBuilder {
            params: Params {
                key: KeyKind::Bytes,
                shingling: Shingling::words(5, 0),
                simhash: None,
                minhash: None,
                bottom: 0,
                modulus: 0,
                sets: false,
                suffixes: false,
                codes: None,
                marks: false,
                priorities: false,
                values: false,
                expire_after: None,
                threshold: Some(Threshold::USUAL),
            },
            width: None,
            simhash_bits: None,
            family: None,
            minhash_weights: None,
            weight_unit: None,
            signature_bits: None,
            feature_bits: None,
            tables: None,
            near: None,
        }
    }

    /// Returns the near relation that queries use by default.
    #[must_use]
    pub fn near(&self) -> Near {
        Near {
            threshold: self.threshold.filter(|_| self.minhash.is_some()),
            within: self.codes.map(|codes| codes.near).or(self.simhash.and_then(|simhash| simhash.near)),
        }
    }

    /// Returns the parameters of the fingerprints if the caller computes them, so that no document is sketched.
    #[must_use]
    pub fn given_codes(&self) -> Option<CodeParams> {
        self.codes.filter(|codes| codes.votes.is_none())
    }

    /// Returns a digest that identifies the parameters: the xxh3-128 of [`encode`](Self::encode).
    #[must_use]
    pub fn digest(&self) -> u128 {
        xxh3_128(self.encode().as_bytes())
    }

    /// Returns an error if sketches made with `given` would differ from sketches made with these parameters. The kind
    /// of keys, the tables, stored data other than sketches, and the near relation may differ.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_sketch(&self, given: &Params) -> Result<()> {
        self.check_same(given, &[])
    }

    /// Returns an error if minima or bands made with `given` would differ from those of these parameters. Fingerprints
    /// and samples may differ or be absent, and the number of bits stored of each minimum may differ.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_bands(&self, given: &Params) -> Result<()> {
        self.check_same(given, &["simhash", "idf", "within", "signature-bits", "bottom", "modulus"])
    }

    /// Returns an error if minima, bands or signatures made with `given` would differ from those of these parameters.
    /// Fingerprints and samples may differ or be absent.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_signatures(&self, given: &Params) -> Result<()> {
        self.check_same(given, &["simhash", "idf", "within", "bottom", "modulus"])
    }

    /// Returns an error if the shingle hashes of a text could differ between `given` and these parameters.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_shingles(&self, given: &Params) -> Result<()> {
        let of_sketch =
            ["simhash", "idf", "within", "minhash", "bands", "rows", "signature-bits", "bottom", "modulus"];
        let of_codes = ["codes", "codes-simhash", "codes-idf"];
        self.check_same(given, &[&of_sketch[..], &of_codes].concat())
    }

    /// Returns an error if fingerprints made with `given` would differ from those of these parameters. Minima and
    /// samples may differ or be absent, and the radius may differ.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_fingerprints(&self, given: &Params) -> Result<()> {
        let of_minhash =
            ["minhash", "bands", "rows", "signature-bits", "minhash-weights", "minhash-idf", "minhash-unit"];
        self.check_same(given, &[&of_minhash[..], &["within", "bottom", "modulus"]].concat())
    }

    /// Returns an error if the near relation of `given` differs.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] with both near relations.
    pub fn check_same_near(&self, given: &Params) -> Result<()> {
        let (mine, theirs) = (self.near(), given.near());
        if mine == theirs {
            return Ok(());
        }
        Err(Error::ParamsMismatch {
            field: "near".into(),
            index: mine.to_string(),
            given: theirs.to_string(),
        })
    }

    /// Returns an error if a field of `given` differs. Ignores the fields in `but`, and those in `BESIDE`, which do not
    /// affect sketches.
    fn check_same(&self, given: &Params, but: &[&str]) -> Result<()> {
        const BESIDE: [&str; 12] = [
            "key",
            "tables",
            "codec",
            "feature-bits",
            "sets",
            "suffixes",
            "marks",
            "priorities",
            "values",
            "expire-after",
            "threshold",
            "near-within",
        ];
        check_same_fields(&self.fields(), &given.fields(), &[&BESIDE[..], but].concat())?;
        Ok(())
    }

    /// Returns an error for a sketch that cannot be compared with the sketches of an index with these parameters.
    /// `digest` is the digest of [`sketch`](Self::sketch), computed in advance. If it equals the sketch's digest, as
    /// usual, nothing else is compared.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs; [`Error::Invalid`] if the index stores codes that the
    /// caller computes.
    pub fn check_sketch(&self, digest: u128, sketch: &Sketch) -> Result<()> {
        if let Some(CodeParams { bits, .. }) = self.given_codes() {
            return Err(Error::Invalid(format!(
                "this index keeps fingerprints of {bits} bits, and no sketches of texts: give a Code"
            )));
        }
        if sketch.params_digest() == digest {
            return Ok(());
        }
        Ok(sketch.check_comparable(&self.sketch())?)
    }

    /// Returns the parameters that determine sketches.
    #[must_use]
    pub fn sketch(&self) -> SketchParams {
        let mut params = SketchParams::new(self.shingling.clone());
        params.simhash = self.simhash.map(|simhash| simhash.weights);
        if let Some(CodeParams { bits, votes: Some(weights), .. }) = self.codes {
            (params.simhash, params.simhash_bits) = (Some(weights), bits);
        }
        params.minhash = self.minhash;
        params.bottom = self.bottom;
        params.modulus = self.modulus;
        params.sets = self.sets;
        params
    }

    /// Checks the range of each parameter, and whether the parameters fit together. Call it if parameters were modified
    /// after [`ParamsBuilder::build`].
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter, and its range or the parameter that it requires.
    pub fn check(&self) -> Result<()> {
        match self.codes {
            Some(codes) => self.check_codes(codes)?,
            None => self.sketch().check()?,
        }
        if let Some(simhash) = self.simhash {
            in_range("within", simhash.within.into(), 0, WITHIN_MAX.into())?;
            if let DesignChoice::Named(name) = simhash.design {
                Design::new(name)?;
                name.check_within(simhash.within.into())?;
            }
        }
        in_range("expire-after", self.expire_after.unwrap_or(1), 1, u64::MAX)?;
        if self.minhash.is_none() && self.threshold != Some(Threshold::USUAL) {
            return Err(Error::Invalid("parameters: threshold without minhash, to which it belongs".into()));
        }
        if self.simhash.is_some() || self.minhash.is_some() || self.codes.is_some() {
            self.check_near(self.near())?;
        }
        if self.sets && self.near().threshold.is_none() {
            return Err(Error::Invalid(
                "parameters: sets without a resemblance from which documents are near; they need minhash and a threshold".into(),
            ));
        }
        if self.suffixes && !self.sets {
            return Err(Error::Invalid("parameters: suffixes without sets, to which they belong".into()));
        }
        Ok(())
    }

    /// Returns an error for a number of bits that no fingerprint has, or for sketches besides the fingerprints.
    fn check_codes(&self, codes: CodeParams) -> Result<()> {
        self.shingling.check()?;
        if !CODE_WIDTHS.contains(&codes.bits.into()) {
            let found = codes.bits;
            return Err(Error::Invalid(format!("parameters: codes is {found}, allowed are {CODE_WIDTHS:?}")));
        }
        let others = Self { codes: None, ..self.clone() };
        match codes.votes {
            _ if self.simhash.is_some() => {}
            Some(_) if codes.bits == SIMHASH_BITS => {
                return Err(Error::Invalid(
                    "parameters: codes-simhash of 64 bits; a simhash of 64 bits has tables: keep simhash alone".into(),
                ));
            }
            Some(_) => return Ok(self.sketch().check()?),
            None if others.sketch() == SketchParams::new(self.shingling.clone()) => return Ok(()),
            None => {}
        }
        Err(Error::Invalid(
            "parameters: codes, which the caller computes, with sketches of texts; keep one of them".into(),
        ))
    }

    /// Returns an error for a near relation that an index with these parameters cannot evaluate.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `near` is empty or out of range, or if the index does not store the minima or fingerprints
    /// that `near` compares.
    pub(crate) fn check_near(&self, near: Near) -> Result<()> {
        let within_max = self.codes.map_or(WITHIN_MAX.into(), |codes| codes.bits);
        in_range("near-within", near.within.unwrap_or(0).into(), 0, within_max.into())?;
        let why = match (near.threshold, near.within) {
            (None, None) => "near: name a resemblance or a distance",
            (Some(_), _) if self.minhash.is_none() => {
                "this index keeps no MinHash: resemblance is not answered"
            }
            (_, Some(_)) if self.simhash.is_none() && self.codes.is_none() => {
                "this index keeps no fingerprints: distance is not answered"
            }
            _ => return Ok(()),
        };
        Err(Error::Invalid(why.into()))
    }
}

impl From<&Params> for SketchParams {
    fn from(params: &Params) -> Self {
        params.sketch()
    }
}

/// A builder of [`Params`]. [`build`](ParamsBuilder::build) checks all parameters together.
#[derive(Clone, Debug)]
#[must_use]
pub struct ParamsBuilder {
    params: Params,
    width: Option<u8>,
    simhash_bits: Option<u16>,
    family: Option<Family>,
    minhash_weights: Option<MinhashWeights>,
    weight_unit: Option<WeightUnit>,
    signature_bits: Option<u8>,
    feature_bits: Option<u8>,
    tables: Option<(DesignChoice, CodecChoice)>,
    near: Option<Near>,
}

impl ParamsBuilder {
    /// Uses `u64` keys instead of byte keys.
    pub fn u64_keys(mut self) -> Self {
        self.params.key = KeyKind::U64;
        self
    }

    /// Sets the width of shingles, in words, or in tokens of the kind that [`shingling`](Self::shingling) selects.
    pub fn words(mut self, width: u8) -> Self {
        self.width = Some(width);
        self
    }

    /// Sets all parameters of tokens, shingles and their hashes. [`words`](Self::words) sets only the width,
    /// [`seed`](Self::seed) only the seed.
    pub fn shingling(mut self, shingling: Shingling) -> Self {
        self.params.shingling = shingling;
        self.width = None;
        self
    }

    /// Sets the seed of the hash functions.
    pub fn seed(mut self, seed: u64) -> Self {
        self.params.shingling.seed = seed;
        self
    }

    /// Stores 64-bit fingerprints and permutation tables tuned for the Hamming radius `within`. If minima are stored
    /// too, the distance decides which documents are near only if [`near`](Self::near) specifies a distance.
    pub fn simhash(self, within: u8) -> Self {
        self.simhash_weighted(within, SimhashWeights::Occurrences)
    }

    /// Same as [`simhash`](Self::simhash), with the given weights of shingles.
    pub fn simhash_weighted(mut self, within: u8, weights: SimhashWeights) -> Self {
        let (design, codec) = Default::default();
        self.params.simhash =
            Some(SimhashParams { within, weights, design, codec, near: Some(within.into()) });
        self
    }

    /// Stores fingerprints of `bits` bits (64, 128, 192, 256, 384 or 512) that the caller computes, such as perceptual
    /// hashes of images, instead of sketches: a [`Code`](crate::Code) for each document. Documents are near if their
    /// fingerprints differ in at most `near` bits. Queries compare all fingerprints, at any radius up to `bits`. A large
    /// segment also has an index of their parts, if it saves most of this work at the radius `near`.
    ///
    /// ```
    /// use twindex::{Code, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().codes(256, 31).build()?)?;
    /// let [a, b] = [[0; 32], [1; 32]].map(|bytes| Code::of_bytes(&bytes).unwrap());
    /// let mut writer = index.writer()?;
    /// writer.put("a.png", a)?;
    /// writer.commit()?;
    /// assert_eq!(index.snapshot().within(b, 31).run()?.hits.len(), 0);
    /// assert_eq!(index.snapshot().within(b, 32).run()?.hits[0].distance, Some(32));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn codes(mut self, bits: u16, near: u16) -> Self {
        self.params.codes = Some(CodeParams { bits, near, votes: None });
        self
    }

    /// Stores fingerprints of `bits` bits (128, 192, 256, 384 or 512; 64 by default), which the index compares without
    /// tables, like [`codes`](Self::codes). Requires [`simhash`](Self::simhash), whose radius may be up to 255; that of
    /// [`near`](Self::near) may be up to `bits`. `MinHash`, samples and sets are refused.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(2).simhash(60).simhash_bits(256).build()?;
    /// let index = Index::create(dir.path().join("x"), params)?;
    /// let sketcher = index.sketcher()?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", &sketcher.sketch("one two three four five six seven eight nine ten eleven twelve")?)?;
    /// writer.commit()?;
    /// let asked = sketcher.sketch("one two three four five six seven eight nine ten eleven thirteen")?;
    /// assert_eq!(index.snapshot().near(&asked).run()?.hits.len(), 1);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn simhash_bits(mut self, bits: u16) -> Self {
        self.simhash_bits = Some(bits);
        self
    }

    /// Sets the design of the permutation tables and their codecs. By default they are chosen for each segment by its
    /// size. Requires [`simhash`](Self::simhash).
    pub fn tables(mut self, design: DesignChoice, codec: CodecChoice) -> Self {
        self.tables = Some((design, codec));
        self
    }

    /// Sets the near relation that [`Snapshot::near`](crate::Snapshot::near) and
    /// [`Writer::admit`](crate::Writer::admit) use by default. Without this call, the relation is a resemblance of at
    /// least [`Threshold::USUAL`] if minima are stored, otherwise the distance given to [`simhash`](Self::simhash). If
    /// both are stored, the distance is not used, because texts that repeat one word often, and otherwise have nothing
    /// in common, have the same fingerprint. The near relation does not change the bands:
    /// [`Banding::for_threshold`](crate::Banding::for_threshold) computes bands for a threshold.
    pub fn near(mut self, near: Near) -> Self {
        self.near = Some(near);
        self
    }

    /// Stores `bands` bands of `rows` minima each, and 8 bits of each minimum for estimates of resemblance.
    pub fn minhash(mut self, bands: u16, rows: u16) -> Self {
        self.params.minhash = Some(MinhashParams::new(bands, rows));
        self
    }

    /// Stores the bands of a preset: same as [`minhash`](Self::minhash) with the preset's number of groups and group
    /// size. If the preset compares fewer than [`FEATURE_BITS_MAX`] bits of a feature, only these bits are stored. The
    /// preset's threshold, the number of features that must agree, is not stored.
    pub fn preset(self, preset: Preset) -> Self {
        let mut of_preset = self.minhash(preset.scheme.groups, preset.scheme.group_size);
        if let Some(minhash) = &mut of_preset.params.minhash {
            minhash.feature_bits = preset.scheme.feature_bits.min(FEATURE_BITS_MAX);
        }
        of_preset
    }

    /// Sets the family of permutations from which minima are computed (default [`Family::OnePermutationFilled`]).
    /// Requires [`minhash`](Self::minhash).
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// Sets the weights of shingles in resemblance, for minima, samples and [`sets`](Self::sets). By default each
    /// distinct shingle has weight 1. Requires [`minhash`](Self::minhash). With [`MinhashWeights::Frequencies`], the
    /// weight of a shingle is its number of occurrences in the text; any family supports it, and the resemblance is
    /// exact if sets are stored. Vectors of weights and the inverse document frequencies of a table require
    /// [`Family::Darts`], or a [unit](Self::weight_unit) with any family.
    ///
    /// ```
    /// use twindex::params::MinhashWeights;
    /// use twindex::sketch::{Resemblance, Sketcher};
    /// let params = twindex::Params::builder().words(1).minhash(40, 6).minhash_weights(MinhashWeights::Frequencies).build()?;
    /// let sketcher = Sketcher::new(&params)?;
    /// let (a, b) = (sketcher.sketch("to be or not to be")?, sketcher.sketch("to be is to do be do")?);
    /// // Both contain `to` and `be` twice. The union also has `or`, `not`, `is`, and `do` twice.
    /// let estimate = Resemblance::of_signatures(a.signature(), b.signature());
    /// assert!((estimate.value() - 4.0 / 9.0).abs() < 4.0 * estimate.standard_error());
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn minhash_weights(mut self, weights: MinhashWeights) -> Self {
        self.minhash_weights = Some(weights);
        self
    }

    /// Rounds the weight of each shingle to a multiple of `unit`, and replaces the shingle by one set element per unit.
    /// This makes any family, samples and [`sets`](Self::sets) support inverse document frequencies and vectors of
    /// weights. Requires [`minhash_weights`](Self::minhash_weights). [`sketch::whole`](twindex_sketch::whole) states
    /// the rounding error. Time and space grow with the number of units in a document.
    pub fn weight_unit(mut self, unit: WeightUnit) -> Self {
        self.weight_unit = Some(unit);
        self
    }

    /// Stores the `t` smallest hashes of each document ([`sketch::samples`](twindex_sketch::samples)), 6 bytes each;
    /// `t` is at most [`BOTTOM_MAX`], and 0, the default, stores none. Resemblance is estimated from these samples, and
    /// also containment if the documents have similar lengths.
    pub fn bottom(mut self, t: u16) -> Self {
        self.params.bottom = t;
        self
    }

    /// Stores the hashes of each document that are divisible by `modulus`
    /// ([`sketch::samples`](twindex_sketch::samples)), on average one of `modulus` hashes, 6 bytes each; 0, the
    /// default, stores none. Containment is estimated from these samples, even that of a short document in a long one.
    pub fn modulus(mut self, modulus: u32) -> Self {
        self.params.modulus = modulus;
        self
    }

    /// Stores the distinct shingle hashes of each document, about 7.3 bytes each. Also indexes the hashes in the
    /// document's prefix (a fifth of the hashes at a threshold of 0.8), about 4 bytes each. With sets,
    /// [`Snapshot::near`](crate::Snapshot::near), [`Snapshot::resembling`](crate::Snapshot::resembling) and
    /// [`Writer::admit`](crate::Writer::admit) compute exact resemblance, and find every document whose resemblance is
    /// at least the threshold of the index. Requires [`minhash`](Self::minhash), and a near relation with a threshold.
    pub fn sets(mut self) -> Self {
        self.params.sets = true;
        self
    }

    /// Also indexes the shingle hashes outside of the prefixes of [`sets`](Self::sets), about 4.5 bytes each. A query for
    /// containment then reads only sets that share a rare hash with its text, instead of all sets. Requires `sets`.
    pub fn suffixes(mut self) -> Self {
        self.params.suffixes = true;
        self
    }

    /// Allows documents to be marked as duplicates: [`Writer::admit`](crate::Writer::admit) stores duplicates with a
    /// mark, and compares documents only with unmarked ones. A mark counts only while a live unmarked document is near.
    pub fn marks(mut self) -> Self {
        self.params.marks = true;
        self
    }

    /// Allows documents to have a priority: a number chosen by the caller, such as a quality or a time.
    /// [`Snapshot::leader`](crate::Snapshot::leader) returns the document of a group with the smallest number. A
    /// document without a priority is treated as if its priority were `u64::MAX`. Documents of equal priority are
    /// ordered by the hash of their keys, smallest first. Without this option, all documents are ordered by this hash.
    pub fn priorities(mut self) -> Self {
        self.params.priorities = true;
        self
    }

    /// Stores a value of at most 64 KiB with each document, chosen by the caller and returned by
    /// [`Snapshot::get`](crate::Snapshot::get).
    pub fn values(mut self) -> Self {
        self.params.values = true;
        self
    }

    /// Lets documents expire by event time. Each document has a stamp. The highest committed stamp is the current time
    /// `now`; no clock is read. A document has expired if `now - stamp >= age`. Stamps may have any unit, usually
    /// seconds since 1970.
    pub fn expire_after(mut self, age: u64) -> Self {
        self.params.expire_after = Some(age);
        self
    }

    /// Sets the number of bits stored of each minimum, one of [`SIGNATURE_BITS`] (default 8); requires
    /// [`minhash`](Self::minhash).
    pub fn signature_bits(mut self, bits: u8) -> Self {
        self.signature_bits = Some(bits);
        self
    }

    /// Sets the number of bits stored of each feature, 1 to [`FEATURE_BITS_MAX`] (the default); requires
    /// [`minhash`](Self::minhash). With fewer bits, features of unrelated documents agree more often, with probability
    /// `2^-bits`, so a match is significant only if more features agree. Features of 8 bits are Broder's one-byte
    /// features; in a small collection 3 of 8 must agree ([`Preset::SMALL_8`]). Queries that need one common feature,
    /// such as [`Snapshot::near`](crate::Snapshot::near) and [`Writer::admit`](crate::Writer::admit), find at least the
    /// same documents with fewer bits, but verify more false candidates. With 8 features of 8 bits, 3 % of all
    /// documents are false candidates.
    ///
    /// ```
    /// use twindex::Params;
    /// let bytes = Params::builder().minhash(8, 12).feature_bits(8).build()?;
    /// assert_eq!(bytes, Params::builder().preset(twindex::params::Preset::SMALL_8).build()?);
    /// assert!(bytes.encode().contains("\nfeature-bits=8\n"));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn feature_bits(mut self, bits: u8) -> Self {
        self.feature_bits = Some(bits);
        self
    }

    /// Builds the parameters after checking the range of each parameter and the combination of parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter, and its range or the parameter that it requires.
    pub fn build(mut self) -> Result<Params> {
        if let Some(width) = self.width {
            self.params.shingling.widths = Widths::one(width)?;
        }
        self.take_simhash_bits()?;
        let needs_minhash =
            |name: &str| Error::Invalid(format!("parameters: {name} without minhash, to which it belongs"));
        match (&mut self.params.simhash, self.tables) {
            (_, None) => {}
            (Some(simhash), Some((design, codec))) => (simhash.design, simhash.codec) = (design, codec),
            (None, Some(_)) => {
                return Err(Error::Invalid(
                    "parameters: tables without simhash, to which they belong".into(),
                ));
            }
        }
        match &mut self.params.minhash {
            Some(minhash) => {
                minhash.signature_bits = self.signature_bits.unwrap_or(minhash.signature_bits);
                minhash.feature_bits = self.feature_bits.unwrap_or(minhash.feature_bits);
                minhash.family = self.family.unwrap_or(minhash.family);
                minhash.weights = self.minhash_weights.unwrap_or(minhash.weights);
                minhash.unit = self.weight_unit.or(minhash.unit);
            }
            None if self.feature_bits.is_some() => return Err(needs_minhash("feature-bits")),
            None if self.signature_bits.is_some() => return Err(needs_minhash("signature-bits")),
            None if self.family.is_some() => return Err(needs_minhash("family")),
            None if self.minhash_weights.is_some() => return Err(needs_minhash("minhash-weights")),
            None if self.weight_unit.is_some() => return Err(needs_minhash("minhash-unit")),
            None => {}
        }
        let near = match (self.near, self.params.minhash) {
            (Some(near), _) => {
                self.params.check_near(near)?;
                near
            }
            (None, Some(_)) => Near { threshold: Some(Threshold::USUAL), within: None },
            (None, None) => {
                let of_simhash = self.params.simhash.map(|simhash| simhash.within.into());
                Near { threshold: None, within: self.params.codes.map(|codes| codes.near).or(of_simhash) }
            }
        };
        if let Some(simhash) = &mut self.params.simhash {
            simhash.near = near.within;
        }
        if let (Some(codes), Some(within)) = (&mut self.params.codes, near.within) {
            codes.near = within;
        }
        if self.params.minhash.is_some() {
            self.params.threshold = near.threshold;
        }
        self.params.check()?;
        Ok(self.params)
    }

    /// Turns a simhash of more than 64 bits into fingerprints without tables.
    fn take_simhash_bits(&mut self) -> Result<()> {
        let Some(bits) = self.simhash_bits.filter(|&bits| bits != SIMHASH_BITS) else { return Ok(()) };
        let refused = |why: String| Err(Error::Invalid(format!("parameters: {why}")));
        if self.tables.is_some() {
            return refused(format!("tables with a simhash of {bits} bits, which has none; leave them out"));
        }
        if self.params.codes.is_some() {
            return refused("simhash-bits with codes, which the caller computes; keep one of them".into());
        }
        let Some(SimhashParams { within, weights, .. }) = self.params.simhash.take() else {
            return refused("simhash-bits without simhash, to which it belongs".into());
        };
        self.params.codes = Some(CodeParams { bits, near: within.into(), votes: Some(weights) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Params {
        Params::builder().words(5).simhash(3).minhash(20, 6).build().unwrap()
    }

    /// The near relation with both a threshold and a distance, each at its default, so files need no line for it.
    fn either() -> Params {
        let near = Near::resembling(0.8).unwrap().or_within(3);
        Params::builder().words(5).simhash(3).minhash(20, 6).near(near).build().unwrap()
    }

    #[test]
    fn encoding_equals_the_golden_text() {
        let text = "key=bytes\ntokens=words/14.0.0\nnormal-form=none\nstop-words=\nstemming=none\nwidth=5\n\
                    shingle-hash=fast\nseed=0\nsimhash=occurrences\nwithin=3\ntables=auto\ncodec=auto\n\
                    minhash=one-permutation-filled\nbands=20\nrows=6\nsignature-bits=8\nbottom=0\nmodulus=0\n";
        assert_eq!(either().encode(), text);
        assert_eq!(Params::decode(text).unwrap(), either());
        assert_eq!(both().encode(), text.to_owned() + "near-within=none\n");
    }

    #[test]
    fn parameters_without_near_lines_are_read_as_either_condition() {
        let stored = either().encode();
        assert!(!stored.contains("threshold=") && !stored.contains("near-within="), "{stored}");
        let read = Params::decode(&stored).unwrap();
        assert_eq!(read.near(), Near::resembling(0.8).unwrap().or_within(3));
        assert!(read.check_same_near(&both()).is_err());
        read.check_same_sketch(&both()).unwrap();
    }

    #[test]
    fn non_canonical_encodings_are_refused_with_field_name() {
        let text = either().encode();
        for (from, to, named) in [
            ("width=5", "width=05", "canonical"),
            ("width=5", "width=+5", "width"),
            ("width=5", "width=17", "width"),
            ("seed=0", "seed=-1", "seed"),
            ("bands=20", "bands=2000", "bands"),
            ("within=3", "within=11", "within"),
            ("signature-bits=8", "signature-bits=7", "signature-bits"),
            ("signature-bits=8\n", "signature-bits=8\nfeature-bits=32\n", "canonical"),
            ("signature-bits=8\n", "signature-bits=8\nfeature-bits=33\n", "feature-bits is 33"),
            ("signature-bits=8\n", "signature-bits=8\nfeature-bits=0\n", "feature-bits is 0"),
            ("signature-bits=8\n", "signature-bits=8\nfeature-bits=08\n", "canonical"),
            ("signature-bits=8\n", "feature-bits=8\nsignature-bits=8\n", "signature-bits"),
            ("tokens=words/14.0.0", "tokens=letters/14.0.0", "tokens"),
            ("tokens=words/14.0.0", "tokens=words", "tokens"),
            ("tokens=words/14.0.0", "tokens=words/14.0", "tokens"),
            ("tokens=words/14.0.0", "tokens=words/014.0.0", "tokens"),
            (
                "tokens=words/14.0.0",
                "tokens=words/99.0.0",
                "tokens is words/99.0.0, and there is words/14.0.0",
            ),
            ("tokens=words/14.0.0", "tokens=characters/15.0.0", "characters/15.0.0"),
            ("tokens=words/14.0.0", "tokens=word-characters/14.0.1", "word-characters/14.0.1"),
            ("normal-form=none", "normal-form=nfd", "normal-form"),
            ("normal-form=none\n", "normal-form=none\nfold=\n", "fold"),
            ("normal-form=none\n", "normal-form=none\nfold=none\n", "fold has the unknown value `none`"),
            ("normal-form=none\n", "normal-form=none\nfold=marks\n", "fold"),
            ("normal-form=none\n", "normal-form=none\nfold=marks/18.0.0+invisible\n", "canonical"),
            ("normal-form=none\n", "normal-form=none\nfold=invisible+invisible\n", "canonical"),
            ("normal-form=none\n", "fold=invisible\nnormal-form=none\n", "normal-form"),
            ("stop-words=\n", "stop-words=the a\n", "canonical"),
            ("stop-words=\n", "stop-words=a  the\n", "stop-words"),
            ("stemming=none", "stemming=klingon", "stemming"),
            ("shingle-hash=fast", "shingle-hash=md5", "shingle-hash"),
            ("width=5", "width=2+1", "canonical"),
            ("width=5", "width=", "width"),
            ("simhash=occurrences", "simhash=idf\nidf=0", "idf"),
            ("tables=auto\n", "", "tables"),
            ("tables=auto", "tables=blocks-04", "tables"),
            ("tables=auto", "tables=choose-4-2", "choose-4-2"),
            ("codec=auto", "codec=planes+5", "codec"),
            ("rows=6\n", "rows=6\r\n", "canonical"),
            ("key=bytes\n", "key=bytes\n\n", "tokens"),
            ("modulus=0\n", "modulus=0", "canonical"),
            ("modulus=0\n", "modulus=0\nx=1\n", "canonical"),
            ("modulus=0\n", "modulus=0\nthreshold=0.8\n", "canonical"),
            ("modulus=0\n", "modulus=0\nthreshold=0.90\n", "canonical"),
            ("modulus=0\n", "modulus=0\nthreshold=0\n", "threshold"),
            ("modulus=0\n", "modulus=0\nthreshold=1.5\n", "threshold"),
            ("modulus=0\n", "modulus=0\nthreshold=nan\n", "threshold"),
            ("modulus=0\n", "modulus=0\nnear-within=3\n", "canonical"),
            ("modulus=0\n", "modulus=0\nnear-within=11\n", "near-within is 11"),
            ("modulus=0\n", "modulus=0\nnear-within=2\nthreshold=0.9\n", "canonical"),
            ("modulus=0\n", "modulus=0\nthreshold=none\nnear-within=none\n", "near: name"),
            ("bottom=0", "bottom=4097", "bottom"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from} does not occur");
            let error = Params::decode(&changed).unwrap_err().to_string();
            assert!(error.contains(named), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn empty_list_of_widths_is_refused() {
        let error = Widths::union(&[]).unwrap_err().to_string();
        assert!(error.contains("no width"), "{error}");
    }

    #[test]
    fn with_tokens_sets_unicode_version_of_the_tokens() {
        for &tokens in Tokens::ALL {
            match (Shingling::words(1, 0).with_tokens(tokens), tokens.unicode()) {
                (Ok(shingling), unicode) => {
                    assert_eq!((shingling.tokens, Some(shingling.unicode)), (tokens, unicode));
                }
                (Err(error), None) => assert!(error.to_string().contains("languages"), "{error}"),
                (Err(error), Some(_)) => panic!("{tokens}: {error}"),
            }
        }
    }

    #[test]
    fn signature_bits_and_feature_bits_require_minhash() {
        assert!(Params::builder().simhash(3).signature_bits(8).build().is_err());
        assert!(Params::builder().simhash(3).feature_bits(8).build().is_err());
        let params = Params::builder().signature_bits(2).minhash(20, 6).build().unwrap();
        assert_eq!(params.minhash.unwrap().signature_bits, 2);
    }

    #[test]
    fn folding_is_encoded_as_optional_line_and_must_match() {
        let folding = |change: fn(&mut Folding)| {
            let mut shingling = Shingling::words(5, 0);
            change(&mut shingling.folding);
            Params::builder().shingling(shingling).simhash(3).minhash(20, 6).build().unwrap()
        };
        let version = UnicodeVersion(18, 0, 0);
        for (params, line) in [
            (folding(|folding| folding.invisible = true), "\nfold=invisible\n"),
            (folding(|folding| folding.marks = Some(UnicodeVersion(18, 0, 0))), "\nfold=marks/18.0.0\n"),
            (
                folding(|folding| {
                    folding.invisible = true;
                    folding.marks = Some(UnicodeVersion(18, 0, 0));
                }),
                "\nfold=invisible+marks/18.0.0\n",
            ),
        ] {
            let text = params.encode();
            assert!(text.contains(line), "{text}");
            assert_eq!(Params::decode(&text).unwrap(), params);
            // The `fold` line may be absent from the index's parameters or from the given ones.
            for (index, given) in [(&params, &both()), (&both(), &params)] {
                let error = index.check_same_sketch(given).unwrap_err().to_string();
                assert!(error.contains("fold is ") && error.contains("absent"), "{error}");
                assert!(
                    index.check_same_bands(given).is_err() && index.check_same_fingerprints(given).is_err()
                );
            }
        }
        assert_eq!(Folding::marks_here().unwrap_or(version), version);
    }

    #[test]
    fn near_relation_is_encoded_without_changing_sketches() {
        let builder = || Params::builder().words(5).simhash(3).minhash(20, 6);
        let of = |near: Near| builder().near(near).build().unwrap();
        assert_eq!(of(Near::resembling(0.8).unwrap()), both());
        for (near, lines) in [
            (Near::resembling(0.95).unwrap().or_within(3), "threshold=0.95\n"),
            (Near::resembling(1.0 / 3.0).unwrap().or_within(3), "threshold=0.3333333333333333\n"),
            (Near::resembling(1.0).unwrap().or_within(0), "threshold=1\nnear-within=0\n"),
            (Near::resembling(0.8).unwrap(), "near-within=none\n"),
            (Near::within(10), "threshold=none\nnear-within=10\n"),
        ] {
            let params = of(near);
            assert_eq!(params.encode(), either().encode() + lines);
            assert_eq!((Params::decode(&params.encode()).unwrap(), params.near()), (params.clone(), near));
            assert_ne!(params.digest(), either().digest());
            either().check_same_sketch(&params).unwrap();
            params.check_same_sketch(&either()).unwrap();
            assert_eq!(params.sketch().digest(), either().sketch().digest());
        }
    }

    #[test]
    fn near_relation_requires_minhash_or_fingerprints() {
        let (fingerprints, minima) = (Params::builder().simhash(3), Params::builder().minhash(20, 6));
        assert_eq!(fingerprints.clone().build().unwrap().near(), Near::within(3));
        assert_eq!(minima.clone().build().unwrap().near(), Near::resembling(0.8).unwrap());
        assert_eq!(both().near(), Near::resembling(0.8).unwrap());
        let with_sets =
            Params::builder().simhash(5).preset(Preset::BRODER_84).sets().marks().build().unwrap();
        assert_eq!((with_sets.near(), with_sets.simhash.unwrap().within), (both().near(), 5));
        assert!(fingerprints.clone().near(Near::resembling(0.9).unwrap()).build().is_err());
        assert!(minima.near(Near::within(3)).build().is_err());
        assert!(fingerprints.clone().near(Near::within(11)).build().is_err());
        let text = fingerprints.build().unwrap().encode();
        assert!(Params::decode(&(text + "threshold=0.9\n")).is_err());
        for resemblance in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            assert!(Near::resembling(resemblance).is_err(), "{resemblance}");
        }
    }

    #[test]
    fn mismatch_names_the_field_and_both_values() {
        let other = Params::builder().words(4).simhash(3).minhash(20, 6).build().unwrap();
        let error = both().check_same_sketch(&other).unwrap_err().to_string();
        assert!(error.contains("width is 5 in the index and 4 here"), "{error}");
    }
}
