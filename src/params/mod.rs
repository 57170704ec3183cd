//! Every choice that changes bytes.
//!
//! Parameters are fixed when an index is created and are in its manifest and in every segment, as lines
//! `name=value` in a fixed order ([`Params::encode`]). There is one encoding of each set of parameters, so its
//! [`digest`](Params::digest) identifies them, and a mismatch can name the line that differs.
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

mod lines;
mod near;
mod preset;

pub use crate::key::KeyKind;
pub use near::{Near, Threshold};
pub use preset::{FeatureScheme, Preset};
use twindex_sketch::Sketch;
pub use twindex_sketch::params::{
    BANDS_MAX, BOTTOM_MAX, FEATURE_BITS_MAX, Family, Folding, HASH_BITS, KEY_BITS, MINIMA_MAX, MODULAR_MAX,
    MinhashParams, MinhashWeights, NormalForm, SHINGLE_WIDTH_MAX, SIGNATURE_BITS, ShingleHash, Shingling,
    SimhashWeights, SketchParams, Stemming, StopWords, Tokens, UnicodeVersion, Widths,
};
use twindex_sketch::params::{check_same_fields, in_range};
pub use twindex_sketch::whole::WeightUnit;

/// The 64-bit simhash fingerprint and its permutation tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SimhashParams {
    /// The Hamming radius the tables are tuned for, 0 to [`WITHIN_MAX`]; other radii are answered too, exactly.
    pub within: u8,
    /// The votes of a shingle.
    pub weights: SimhashWeights,
    /// Which permutation tables there are.
    pub design: DesignChoice,
    /// How they are coded.
    pub codec: CodecChoice,
    /// The Hamming radius in which documents are near, at first that of the tables; `None` where distance makes none
    /// near.
    pub near: Option<u8>,
}

/// What an index keeps and how it is made from text. Made by [`Params::builder`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each says of one thing whether it is kept")]
pub struct Params {
    /// The kind of its keys.
    pub key: KeyKind,
    /// Text to shingles.
    pub shingling: Shingling,
    /// Kept if `Some`: fingerprints and permutation tables.
    pub simhash: Option<SimhashParams>,
    /// Kept if `Some`: band tables and signatures.
    pub minhash: Option<MinhashParams>,
    /// How many of the least hashes of a document are kept (a bottom-t sketch); 0 keeps none.
    pub bottom: u16,
    /// Hashes that are 0 modulo this are kept; 0 keeps none.
    pub modulus: u32,
    /// Whether the distinct shingle hashes of each document are kept, so that resemblance is counted, and not estimated.
    pub sets: bool,
    /// Whether documents can be marked as duplicates.
    pub marks: bool,
    /// Whether a document can have a number of the caller's, by which it comes before others of its group.
    pub priorities: bool,
    /// Whether a value of at most 64 KiB is kept with each document.
    pub values: bool,
    /// How much later than a document the newest one has to be for the first to expire, in the unit of stamps, from 1
    /// on; `None` where nothing expires, and no stamps are kept.
    pub expire_after: Option<u64>,
    /// The resemblance from which documents are near, as far as minima are kept; `None` where resemblance makes none
    /// near.
    pub threshold: Option<Threshold>,
}

impl Params {
    /// Starts from byte keys, 5-word shingles, and nothing kept; add [`simhash`](ParamsBuilder::simhash),
    /// [`minhash`](ParamsBuilder::minhash) or both.
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
                marks: false,
                priorities: false,
                values: false,
                expire_after: None,
                threshold: Some(Threshold::USUAL),
            },
            width: None,
            family: None,
            minhash_weights: None,
            weight_unit: None,
            signature_bits: None,
            feature_bits: None,
            tables: None,
            near: None,
        }
    }

    /// Which documents are near where a question does not say.
    #[must_use]
    pub fn near(&self) -> Near {
        Near {
            threshold: self.threshold.filter(|_| self.minhash.is_some()),
            within: self.simhash.and_then(|simhash| simhash.near),
        }
    }

    /// Identifies the parameters: xxh3-128 of [`encode`](Self::encode).
    #[must_use]
    pub fn digest(&self) -> u128 {
        xxh3_128(self.encode().as_bytes())
    }

    /// Refuses parameters that would change sketches, naming the first that differs; the kind of key, what tables there
    /// are, what is kept beside sketches, and which documents are near, may differ.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_sketch(&self, given: &Params) -> Result<()> {
        self.check_same(given, &[])
    }

    /// Refuses parameters that would change the minima and bands of a sketch, naming the first that differs. Fingerprints
    /// and samples may be others, or not be kept, and minima may be kept in another number of bits.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_bands(&self, given: &Params) -> Result<()> {
        self.check_same(given, &["simhash", "idf", "within", "signature-bits", "bottom", "modulus"])
    }

    /// Refuses parameters that would change the shingle hashes of a text, naming the first that differs.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_shingles(&self, given: &Params) -> Result<()> {
        let of_sketch =
            ["simhash", "idf", "within", "minhash", "bands", "rows", "signature-bits", "bottom", "modulus"];
        self.check_same(given, &of_sketch)
    }

    /// Refuses parameters that would change fingerprints, naming the first that differs. Minima and samples may be
    /// others, or not be kept, and the radius may be another.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_fingerprints(&self, given: &Params) -> Result<()> {
        let of_minhash =
            ["minhash", "bands", "rows", "signature-bits", "minhash-weights", "minhash-idf", "minhash-unit"];
        self.check_same(given, &[&of_minhash[..], &["within", "bottom", "modulus"]].concat())
    }

    /// Refuses parameters by which other documents are near.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
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

    /// Refuses parameters of which any differs but these and those that change no sketch.
    fn check_same(&self, given: &Params, but: &[&str]) -> Result<()> {
        const BESIDE: [&str; 11] = [
            "key",
            "tables",
            "codec",
            "feature-bits",
            "sets",
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

    /// Refuses a sketch that cannot be compared with those of an index with these parameters; `digest` is that of
    /// [`sketch`](Self::sketch), which is known beforehand, so that the usual case compares two numbers.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_sketch(&self, digest: u128, sketch: &Sketch) -> Result<()> {
        if sketch.params_digest() == digest {
            return Ok(());
        }
        Ok(sketch.check_comparable(&self.sketch())?)
    }

    /// The part of the parameters that decides sketches.
    #[must_use]
    pub fn sketch(&self) -> SketchParams {
        let mut params = SketchParams::new(self.shingling.clone());
        params.simhash = self.simhash.map(|simhash| simhash.weights);
        params.minhash = self.minhash;
        params.bottom = self.bottom;
        params.modulus = self.modulus;
        params.sets = self.sets;
        params
    }

    /// Checks the ranges of all choices, for parameters that were changed after [`ParamsBuilder::build`].
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        self.sketch().check()?;
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
        if self.simhash.is_some() || self.minhash.is_some() {
            self.near().check_kept(self)?;
        }
        if self.sets && self.near().threshold.is_none() {
            return Err(Error::Invalid(
                "parameters: sets where no resemblance makes documents near; they need minhash and a threshold".into(),
            ));
        }
        Ok(())
    }
}

impl From<&Params> for SketchParams {
    fn from(params: &Params) -> Self {
        params.sketch()
    }
}

/// Collects choices; [`build`](ParamsBuilder::build) checks them together.
#[derive(Clone, Debug)]
#[must_use]
pub struct ParamsBuilder {
    params: Params,
    width: Option<u8>,
    family: Option<Family>,
    minhash_weights: Option<MinhashWeights>,
    weight_unit: Option<WeightUnit>,
    signature_bits: Option<u8>,
    feature_bits: Option<u8>,
    tables: Option<(DesignChoice, CodecChoice)>,
    near: Option<Near>,
}

impl ParamsBuilder {
    /// Keys are `u64` instead of bytes.
    pub fn u64_keys(mut self) -> Self {
        self.params.key = KeyKind::U64;
        self
    }

    /// Shingles of `width` words, or of whatever else [`shingling`](Self::shingling) makes a token.
    pub fn words(mut self, width: u8) -> Self {
        self.width = Some(width);
        self
    }

    /// All choices of how text is cut and hashed; [`words`](Self::words) and [`seed`](Self::seed) change one each.
    pub fn shingling(mut self, shingling: Shingling) -> Self {
        self.params.shingling = shingling;
        self.width = None;
        self
    }

    /// Another family of hash functions.
    pub fn seed(mut self, seed: u64) -> Self {
        self.params.shingling.seed = seed;
        self
    }

    /// Keep 64-bit fingerprints, with tables tuned for Hamming radius `within`.
    pub fn simhash(self, within: u8) -> Self {
        self.simhash_weighted(within, SimhashWeights::Occurrences)
    }

    /// As [`simhash`](Self::simhash), with the votes of a shingle chosen.
    pub fn simhash_weighted(mut self, within: u8, weights: SimhashWeights) -> Self {
        let (design, codec) = Default::default();
        self.params.simhash = Some(SimhashParams { within, weights, design, codec, near: Some(within) });
        self
    }

    /// Which permutation tables there are and how they are coded, instead of what is best for each segment's size;
    /// goes with [`simhash`](Self::simhash).
    pub fn tables(mut self, design: DesignChoice, codec: CodecChoice) -> Self {
        self.tables = Some((design, codec));
        self
    }

    /// Which documents are near where a question does not say: for [`Snapshot::near`](crate::Snapshot::near) and
    /// [`Writer::admit`](crate::Writer::admit). At first those within the radius of [`simhash`](Self::simhash), and those
    /// that resemble each other by 0.8 or more, as far as fingerprints and minima are kept. Bands are not changed:
    /// [`Banding::for_threshold`](crate::Banding::for_threshold) says which find what resembles by so much.
    pub fn near(mut self, near: Near) -> Self {
        self.near = Some(near);
        self
    }

    /// Keep `bands` bands of `rows` minima each, and 8 bits of every minimum for estimates.
    pub fn minhash(mut self, bands: u16, rows: u16) -> Self {
        self.params.minhash = Some(MinhashParams::new(bands, rows));
        self
    }

    /// Keep the bands of a preset: [`minhash`](Self::minhash) with its groups and their size, and as many bits of each
    /// feature as it compares, if these are fewer than [`FEATURE_BITS_MAX`]. In how many features documents must agree,
    /// the preset's threshold, is no part of the parameters.
    pub fn preset(self, preset: Preset) -> Self {
        let mut of_preset = self.minhash(preset.scheme.groups, preset.scheme.group_size);
        if let Some(minhash) = &mut of_preset.params.minhash {
            minhash.feature_bits = preset.scheme.feature_bits.min(FEATURE_BITS_MAX);
        }
        of_preset
    }

    /// The orders under which minima are taken, instead of [`Family::OnePermutationFilled`]; goes with
    /// [`minhash`](Self::minhash).
    pub fn family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// What a shingle weighs where resemblance is measured, by minima, samples or [`sets`](Self::sets), instead of each
    /// distinct one the same; goes with [`minhash`](Self::minhash). With [`MinhashWeights::Frequencies`] and any family,
    /// the occurrences of texts are counted, exactly where sets are kept. [`Family::Darts`] takes vectors of weights, and
    /// the inverse document frequencies of a table; with a [unit](Self::weight_unit) all families do.
    ///
    /// ```
    /// use twindex::params::MinhashWeights;
    /// use twindex::sketch::{Resemblance, Sketcher};
    /// let params = twindex::Params::builder().words(1).minhash(40, 6).minhash_weights(MinhashWeights::Frequencies).build()?;
    /// let sketcher = Sketcher::new(&params)?;
    /// let (a, b) = (sketcher.sketch("to be or not to be")?, sketcher.sketch("to be is to do be do")?);
    /// // `to` and `be` twice in both, of 4 + `or`, `not`, `is`, and `do` twice.
    /// let estimate = Resemblance::of_signatures(a.signature(), b.signature());
    /// assert!((estimate.value() - 4.0 / 9.0).abs() < 4.0 * estimate.standard_error());
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn minhash_weights(mut self, weights: MinhashWeights) -> Self {
        self.minhash_weights = Some(weights);
        self
    }

    /// Rounds these weights to whole units. Each unit counts as an element, so that any family, samples and
    /// [`sets`](Self::sets) take inverse document frequencies, and the weights of vectors; goes with
    /// [`minhash_weights`](Self::minhash_weights). [`sketch::whole`](twindex_sketch::whole) says how much the rounding may
    /// change. A document costs an element for each unit.
    pub fn weight_unit(mut self, unit: WeightUnit) -> Self {
        self.weight_unit = Some(unit);
        self
    }

    /// Keep the `t` least hashes of each document ([`sketch::samples`](twindex_sketch::samples)), 0 (none, as at
    /// first) to [`BOTTOM_MAX`]: 6 bytes each. They tell resemblance, and containment of documents of like length.
    pub fn bottom(mut self, t: u16) -> Self {
        self.params.bottom = t;
        self
    }

    /// Keep all hashes of each document that `modulus` divides ([`sketch::samples`](twindex_sketch::samples)); 0, as
    /// at first, keeps none. They tell containment, of a short document in a long one too; 6 bytes for each `modulus`
    /// shingles of a document, so their size is proportional to its length.
    pub fn modulus(mut self, modulus: u32) -> Self {
        self.params.modulus = modulus;
        self
    }

    /// Keep the distinct shingle hashes of each document, about 7.3 bytes each, and what finds documents by them, some 4
    /// bytes for each that a document near it must have one of (a fifth of them at a threshold of 0.8). Then resemblance
    /// is counted in [`Snapshot::near`](crate::Snapshot::near), [`Snapshot::resembling`](crate::Snapshot::resembling) and
    /// [`Writer::admit`](crate::Writer::admit), from the threshold of the index on, and nothing is missed. Goes with
    /// [`minhash`](Self::minhash).
    pub fn sets(mut self) -> Self {
        self.params.sets = true;
        self
    }

    /// Let documents be marked as duplicates: [`Writer::admit`](crate::Writer::admit) keeps what is a duplicate with a
    /// mark, and compares with what has none alone.
    pub fn marks(mut self) -> Self {
        self.params.marks = true;
        self
    }

    /// Let documents have a priority: a number of the caller's, such as a quality or a time, by which
    /// [`Snapshot::leader`](crate::Snapshot::leader) chooses the document that stands for a group. The smallest number
    /// comes first, and a document without one comes last, as if it had `u64::MAX`. Of equal numbers, and without this
    /// choice, the smallest hash of a key comes first.
    pub fn priorities(mut self) -> Self {
        self.params.priorities = true;
        self
    }

    /// Keep a value with each document: up to 64 KiB of the caller's, which come back with
    /// [`Snapshot::get`](crate::Snapshot::get).
    pub fn values(mut self) -> Self {
        self.params.values = true;
        self
    }

    /// Documents expire by event time: each has a stamp, the highest stamp that was committed is now, and a document is
    /// gone once `now - stamp >= age`. Stamps count any unit of time, as a rule seconds since 1970; no clock is asked.
    pub fn expire_after(mut self, age: u64) -> Self {
        self.params.expire_after = Some(age);
        self
    }

    /// Bits kept of each minimum, one of [`SIGNATURE_BITS`], instead of 8; goes with [`minhash`](Self::minhash).
    pub fn signature_bits(mut self, bits: u8) -> Self {
        self.signature_bits = Some(bits);
        self
    }

    /// Bits kept of each feature, 1 to [`FEATURE_BITS_MAX`], which is as many as are kept otherwise; goes with
    /// [`minhash`](Self::minhash). With fewer bits features of unrelated documents agree more often, `2^-bits` of the
    /// time, and more of them must agree to say anything: 8 bits are Broder's features of one byte, of which 3 of 8 do
    /// for a small collection ([`Preset::SMALL_8`]). What is found by one feature alone, as by
    /// [`Snapshot::near`](crate::Snapshot::near) and [`Writer::admit`](crate::Writer::admit), is found all the same, among
    /// more strangers that are checked: with 8 of 8 bits 3 % of all documents.
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

    /// Checks the ranges of all choices.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn build(mut self) -> Result<Params> {
        if let Some(width) = self.width {
            self.params.shingling.widths = Widths::one(width)?;
        }
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
        if let Some(near) = self.near {
            near.check_kept(&self.params)?;
            if let Some(simhash) = &mut self.params.simhash {
                simhash.near = near.within;
            }
            if self.params.minhash.is_some() {
                self.params.threshold = near.threshold;
            }
        }
        self.params.check()?;
        Ok(self.params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Params {
        Params::builder().words(5).simhash(3).minhash(20, 6).build().unwrap()
    }

    #[test]
    fn the_encoding_is_canonical_and_golden() {
        let text = "key=bytes\ntokens=words/14.0.0\nnormal-form=none\nstop-words=\nstemming=none\nwidth=5\n\
                    shingle-hash=fast\nseed=0\nsimhash=occurrences\nwithin=3\ntables=auto\ncodec=auto\n\
                    minhash=one-permutation-filled\nbands=20\nrows=6\nsignature-bits=8\nbottom=0\nmodulus=0\n";
        assert_eq!(both().encode(), text);
        assert_eq!(Params::decode(text).unwrap(), both());
    }

    #[test]
    fn any_other_spelling_is_refused_by_name() {
        let text = both().encode();
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
    fn a_union_of_no_widths_is_refused_as_such() {
        let error = Widths::union(&[]).unwrap_err().to_string();
        assert!(error.contains("no width"), "{error}");
    }

    #[test]
    fn tokens_of_another_kind_bring_their_version_along() {
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
    fn bits_of_a_signature_need_a_signature() {
        assert!(Params::builder().simhash(3).signature_bits(8).build().is_err());
        assert!(Params::builder().simhash(3).feature_bits(8).build().is_err());
        let params = Params::builder().signature_bits(2).minhash(20, 6).build().unwrap();
        assert_eq!(params.minhash.unwrap().signature_bits, 2);
    }

    #[test]
    fn folding_is_a_line_of_its_own_where_there_is_some_and_must_be_the_same() {
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
            // Whichever of the two has the line.
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
    fn what_is_near_is_stored_where_it_is_not_the_usual_and_changes_no_sketch() {
        let builder = || Params::builder().words(5).simhash(3).minhash(20, 6);
        let of = |near: Near| builder().near(near).build().unwrap();
        let usual = Near::resembling(0.8).unwrap().or_within(3);
        assert_eq!((of(usual), both().near()), (both(), usual));
        for (near, lines) in [
            (Near::resembling(0.95).unwrap().or_within(3), "threshold=0.95\n"),
            (Near::resembling(1.0 / 3.0).unwrap().or_within(3), "threshold=0.3333333333333333\n"),
            (Near::resembling(1.0).unwrap().or_within(0), "threshold=1\nnear-within=0\n"),
            (Near::resembling(0.8).unwrap(), "near-within=none\n"),
            (Near::within(10), "threshold=none\nnear-within=10\n"),
        ] {
            let params = of(near);
            assert_eq!(params.encode(), both().encode() + lines);
            assert_eq!((Params::decode(&params.encode()).unwrap(), params.near()), (params.clone(), near));
            assert_ne!(params.digest(), both().digest());
            both().check_same_sketch(&params).unwrap();
            params.check_same_sketch(&both()).unwrap();
            assert_eq!(params.sketch().digest(), both().sketch().digest());
        }
    }

    #[test]
    fn what_is_near_is_told_by_what_is_kept() {
        let (fingerprints, minima) = (Params::builder().simhash(3), Params::builder().minhash(20, 6));
        assert_eq!(fingerprints.clone().build().unwrap().near(), Near::within(3));
        assert_eq!(minima.clone().build().unwrap().near(), Near::resembling(0.8).unwrap());
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
    fn a_mismatch_names_the_field_and_both_values() {
        let other = Params::builder().words(4).simhash(3).minhash(20, 6).build().unwrap();
        let error = both().check_same_sketch(&other).unwrap_err().to_string();
        assert!(error.contains("width is 5 in the index and 4 here"), "{error}");
    }
}
