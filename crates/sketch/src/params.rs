//! The parameters of sketches: how text is split into shingles, and which sketches are computed.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use crate::code::CODE_WIDTHS;
use crate::error::{Error, Result};
use crate::fields::{Fields, text_of};
use crate::shingling::named;
use crate::whole::WeightUnit;

pub use crate::shingling::{
    Folding, NormalForm, SHINGLE_WIDTH_MAX, ShingleHash, Shingling, Stemming, StopWords, Tokens,
    UnicodeVersion, Widths, in_range,
};

/// Default number of bits of a simhash fingerprint.
pub const SIMHASH_BITS: u16 = 64;
/// Maximum number of minima in a signature, which is `bands * rows`.
pub const MINIMA_MAX: u32 = 4096;
/// Maximum number of bands.
pub const BANDS_MAX: u16 = 1024;
/// The numbers of bits of each minimum that can be stored. With 0, no signature is stored.
pub const SIGNATURE_BITS: [u8; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Number of bits in a band key. An index keeps at most this number of bits of each feature.
pub const KEY_BITS: u32 = 32;
/// Maximum and default number of bits that an index keeps of each feature.
pub const FEATURE_BITS_MAX: u8 = KEY_BITS as u8;
/// Number of bits in a hash of a bottom-t or 0-mod-m sketch.
pub const HASH_BITS: u32 = 48;
/// Maximum number of hashes in a bottom-t sketch.
pub const BOTTOM_MAX: u16 = 4096;
/// Maximum number of hashes in a 0-mod-m sketch. If a document has more, the least are kept.
pub const MODULAR_MAX: usize = 65_535;

/// The number of votes that a shingle has in the simhash of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimhashWeights {
    /// Every occurrence of a shingle has one vote, so the weight of a shingle is its frequency.
    Occurrences,
    /// Each distinct shingle has one vote.
    Distinct,
    /// Every occurrence votes with the shingle's inverse document frequency, from the table with this digest
    /// ([`IdfTable`](crate::IdfTable)).
    Idf {
        /// The table's digest.
        table: u128,
    },
}

named! {
    /// The family of hash functions that compute minima. The module [`minhash`](crate::minhash) compares the families.
    Family {
        /// One permutation whose range is divided into bins. Each bin gives one minimum; other hash functions fill
        /// empty bins.
        OnePermutationFilled = "one-permutation-filled",
        /// `a x + b` modulo a prime.
        Linear = "linear",
        /// The upper half of `a x + b` modulo 2^64.
        MultiplyShift = "multiply-shift",
        /// A random matrix over GF(2) plus a random vector.
        Matrix = "matrix",
        /// Random darts in the plane of weight and rank ([`darts`](crate::darts)): the only family that accepts
        /// fractional weights.
        Darts = "darts",
    }
}

/// The weights of shingles in minima, samples and sets. Resemblance is measured with these weights.
///
/// The weighted resemblance of two documents is the sum, over all shingles, of the lesser of the two weights, divided by the
/// sum of the greater weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MinhashWeights {
    /// All distinct shingles have the same weight.
    #[default]
    Distinct,
    /// The weight of a shingle is its number of occurrences. A caller that supplies features also supplies their
    /// weights; this requires [`Family::Darts`] or a [unit](MinhashParams::unit). Without a unit, a weight must be at
    /// least 1/16 and less than 2^24.
    Frequencies,
    /// The weight of [`Frequencies`](Self::Frequencies), times the inverse document frequency from the table with this
    /// digest ([`IdfTable`](crate::IdfTable)). Requires [`Family::Darts`] or a [unit](MinhashParams::unit).
    Idf {
        /// The table's digest.
        table: u128,
    },
}

/// The parameters of a `MinHash` signature, of its bands (features), and of the bits stored to estimate resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MinhashParams {
    /// The family of hash functions that compute the minima.
    pub family: Family,
    /// Number of LSH bands, 1 to [`BANDS_MAX`]. Each band is a group of minima with one feature.
    pub bands: u16,
    /// Number of minima in a band.
    pub rows: u16,
    /// Number of bits stored of each minimum to estimate resemblance, one of [`SIGNATURE_BITS`].
    pub signature_bits: u8,
    /// Number of bits an index keeps of each feature, 1 to [`FEATURE_BITS_MAX`]. Sketches always contain all 64.
    pub feature_bits: u8,
    /// The weights of shingles.
    pub weights: MinhashWeights,
    /// The unit to which weights are rounded. A weight of n units becomes n elements ([`whole`](crate::whole)) in
    /// minima of any family, in samples and in sets. With `None`, weights are not rounded.
    pub unit: Option<WeightUnit>,
}

impl MinhashParams {
    /// Returns parameters for `bands` bands of `rows` minima each, with [`Family::OnePermutationFilled`], 8 bits stored of
    /// each minimum, and all bits kept of each feature.
    #[must_use]
    pub fn new(bands: u16, rows: u16) -> Self {
        let family = Family::OnePermutationFilled;
        let weights = MinhashWeights::Distinct;
        Self { family, bands, rows, signature_bits: 8, feature_bits: FEATURE_BITS_MAX, weights, unit: None }
    }

    /// Checks that all parameters are in range.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        in_range("bands", self.bands.into(), 1, BANDS_MAX.into())?;
        in_range("rows", self.rows.into(), 1, MINIMA_MAX.into())?;
        in_range("bands x rows", self.minima() as u64, 1, MINIMA_MAX.into())?;
        if !SIGNATURE_BITS.contains(&self.signature_bits) {
            return Err(Error::Invalid(format!(
                "parameters: signature-bits is {}, allowed are {SIGNATURE_BITS:?}",
                self.signature_bits
            )));
        }
        in_range("feature-bits", self.feature_bits.into(), 1, FEATURE_BITS_MAX.into())?;
        if self.unit.is_some() && self.weights == MinhashWeights::Distinct {
            return Err(Error::Invalid(
                "parameters: minhash-unit without minhash-weights, to which it belongs".into(),
            ));
        }
        if matches!(self.weights, MinhashWeights::Idf { .. })
            && self.family != Family::Darts
            && self.unit.is_none()
        {
            return Err(Error::Invalid(format!(
                "parameters: minhash-weights=idf needs minhash=darts, whose weights may be fractions, or minhash-unit, in \
                 which they are whole; found minhash={}",
                self.family
            )));
        }
        Ok(())
    }

    /// Returns the number of minima, `bands * rows`.
    #[must_use]
    pub fn minima(&self) -> usize {
        usize::from(self.bands) * usize::from(self.rows)
    }

    /// Returns the size in bytes of the stored signature of a document: [`signature_bits`](Self::signature_bits) for each
    /// minimum, rounded up to whole bytes.
    #[must_use]
    pub fn signature_bytes(&self) -> usize {
        (self.minima() * usize::from(self.signature_bits)).div_ceil(8)
    }

    /// Checks that `bits`, the number of feature bits to compare, is at least 1 and at most the number of bits kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not.
    pub fn check_feature_bits(&self, bits: u32) -> Result<()> {
        let kept = u32::from(self.feature_bits);
        if (1..=kept).contains(&bits) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{bits} bits of a feature: the index keeps {kept} of each; ask for 1 to {kept}"
        )))
    }
}

/// The parameters of a [`Sketcher`](crate::Sketcher): those parameters of an index that determine its sketches.
///
/// ```
/// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams};
///
/// let params = SketchParams::new(Shingling::words(5, 0)).with_simhash(SimhashWeights::Occurrences).with_minhash(20, 6);
/// params.check()?;
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SketchParams {
    /// The rules for splitting a text into shingles.
    pub shingling: Shingling,
    /// The votes of shingles in the fingerprint. With `None`, no fingerprint is computed.
    pub simhash: Option<SimhashWeights>,
    /// Number of bits of the fingerprint, one of [`CODE_WIDTHS`]. More than 64 give a
    /// [`Code`](crate::Code), without other sketches.
    pub simhash_bits: u16,
    /// The minima and bands. With `None`, none are computed.
    pub minhash: Option<MinhashParams>,
    /// The number t of hashes in the bottom-t sketch, 0 to [`BOTTOM_MAX`]. With 0, no bottom-t sketch is computed.
    pub bottom: u16,
    /// The number m of the 0-mod-m sketch, which keeps the hashes divisible by m. With 0, no such sketch is computed.
    pub modulus: u32,
    /// Whether the set of all distinct shingle hashes of a document is kept, for exact comparisons.
    pub sets: bool,
}

impl SketchParams {
    /// Returns parameters that split text by `shingling`, without any sketch. The other methods add sketches.
    #[must_use]
    pub fn new(shingling: Shingling) -> Self {
        let simhash_bits = SIMHASH_BITS;
        Self { shingling, simhash: None, simhash_bits, minhash: None, bottom: 0, modulus: 0, sets: false }
    }

    /// Adds a simhash fingerprint in which shingles vote with these weights.
    #[must_use]
    pub fn with_simhash(self, weights: SimhashWeights) -> Self {
        Self { simhash: Some(weights), ..self }
    }

    /// Sets the number of bits of the simhash fingerprint.
    #[must_use]
    pub fn with_simhash_bits(self, bits: u16) -> Self {
        Self { simhash_bits: bits, ..self }
    }

    /// Adds `bands` bands of `rows` minima each, with [`Family::OnePermutationFilled`].
    #[must_use]
    pub fn with_minhash(self, bands: u16, rows: u16) -> Self {
        Self { minhash: Some(MinhashParams::new(bands, rows)), ..self }
    }

    /// Checks that all parameters are in range and can be combined.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        self.shingling.check()?;
        if let Some(minhash) = self.minhash {
            minhash.check()?;
        }
        in_range("bottom", self.bottom.into(), 0, BOTTOM_MAX.into())?;
        self.check_simhash_bits()?;
        self.check_weights()?;
        if self.simhash.is_none() && self.minhash.is_none() {
            return Err(Error::Invalid("parameters: keep simhash, minhash or both".into()));
        }
        Ok(())
    }

    /// Checks that the number of bits of a simhash is a width, and that a long simhash is the only sketch.
    pub(crate) fn check_simhash_bits(&self) -> Result<()> {
        let bits = self.simhash_bits;
        let beside = [
            ("minhash", self.minhash.is_some()),
            ("bottom", self.bottom > 0),
            ("modulus", self.modulus > 0),
            ("sets", self.sets),
        ];
        match beside.into_iter().find(|(_, is_kept)| *is_kept) {
            _ if bits == SIMHASH_BITS => Ok(()),
            _ if !CODE_WIDTHS.contains(&bits.into()) => Err(Error::Invalid(format!(
                "parameters: simhash-bits is {bits}, allowed are {CODE_WIDTHS:?}"
            ))),
            _ if self.simhash.is_none() => {
                Err(Error::Invalid("parameters: simhash-bits without simhash, to which it belongs".into()))
            }
            Some((name, _)) => Err(Error::Invalid(format!(
                "parameters: {name} with a simhash of {bits} bits, which is kept alone; take simhash-bits=64, or leave \
                 {name} out"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that sets and samples have no fractional weights, and that at most one IDF table is used.
    fn check_weights(&self) -> Result<()> {
        if !matches!(self.minhash_weights(), MinhashWeights::Idf { .. }) {
            return Ok(());
        }
        let has_fractions = self.minhash.is_some_and(|minhash| minhash.unit.is_none());
        if has_fractions && (self.sets || self.bottom > 0 || self.modulus > 0) {
            return Err(Error::Invalid(
                "parameters: sets, bottom and modulus hold whole elements, and minhash-weights=idf gives fractions: leave \
                 them out, or give a minhash-unit, in which weights are whole"
                    .into(),
            ));
        }
        self.idf_table().map(drop)
    }

    /// Returns the weights of shingles in minima, samples and sets.
    #[must_use]
    pub fn minhash_weights(&self) -> MinhashWeights {
        self.minhash.map_or(MinhashWeights::Distinct, |minhash| minhash.weights)
    }

    /// Returns the digest of the IDF table that weights fingerprints, minima or both. `None` if there is no such table.
    ///
    /// # Errors
    /// [`Error::Invalid`] if fingerprints and minima use different tables.
    pub fn idf_table(&self) -> Result<Option<u128>> {
        let of_fingerprints = match self.simhash {
            Some(SimhashWeights::Idf { table }) => Some(table),
            _ => None,
        };
        let of_minima = match self.minhash_weights() {
            MinhashWeights::Idf { table } => Some(table),
            _ => None,
        };
        match (of_fingerprints, of_minima) {
            (Some(one), Some(other)) if one != other => Err(Error::Invalid(format!(
                "parameters: idf is {one:032x}, and minhash-idf is {other:032x}: one table for both is needed"
            ))),
            (one, other) => Ok(one.or(other)),
        }
    }

    /// Returns the names and values of the parameters, in the order of `format-spec.md`.
    #[must_use]
    pub fn fields(&self) -> Fields {
        let mut fields = self.shingling.fields();
        fields.extend(simhash_fields(self.simhash));
        // 64 bits have no line, so that digests made before this line was introduced stay valid.
        if self.simhash_bits != SIMHASH_BITS {
            fields.push(("simhash-bits", self.simhash_bits.to_string()));
        }
        fields.extend(minhash_fields(self.minhash));
        fields.push(("bottom", self.bottom.to_string()));
        fields.push(("modulus", self.modulus.to_string()));
        fields.extend(sets_field(self.sets));
        fields
    }

    /// Returns the digest that identifies the parameters: xxh3-128 of their lines `name=value`.
    #[must_use]
    pub fn digest(&self) -> u128 {
        xxh3_128(text_of(&self.fields()).as_bytes())
    }

    /// Checks that `given` produces the same sketches as these parameters. Ignores the number of feature bits that an
    /// index keeps, and [`sets`](Self::sets).
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same(&self, given: &Self) -> Result<()> {
        check_same_fields(&self.fields(), &given.fields(), &["feature-bits", "sets"])
    }

    /// Checks that `given` produces the same minima and bands as these parameters. Ignores the parameters of
    /// fingerprints, samples and [`sets`](Self::sets), and the numbers of stored bits.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_same_bands(&self, given: &Self) -> Result<()> {
        let free =
            ["feature-bits", "simhash", "idf", "simhash-bits", "signature-bits", "bottom", "modulus", "sets"];
        check_same_fields(&self.fields(), &given.fields(), &free)
    }
}

impl From<&SketchParams> for SketchParams {
    fn from(params: &SketchParams) -> Self {
        params.clone()
    }
}

/// Returns the fields of a simhash: its weights, and the digest of their IDF table.
#[must_use]
pub fn simhash_fields(weights: Option<SimhashWeights>) -> Fields {
    let of = |name: &str| vec![("simhash", name.to_string())];
    match weights {
        None => of("none"),
        Some(SimhashWeights::Occurrences) => of("occurrences"),
        Some(SimhashWeights::Distinct) => of("distinct"),
        Some(SimhashWeights::Idf { table }) => {
            vec![("simhash", "idf".to_string()), ("idf", format!("{table:032x}"))]
        }
    }
}

/// Returns the fields of the `MinHash` parameters, or the field `minhash=none` if there are none.
#[must_use]
pub fn minhash_fields(minhash: Option<MinhashParams>) -> Fields {
    let Some(minhash) = minhash else { return vec![("minhash", "none".to_string())] };
    let mut fields = vec![
        ("minhash", minhash.family.to_string()),
        ("bands", minhash.bands.to_string()),
        ("rows", minhash.rows.to_string()),
        ("signature-bits", minhash.signature_bits.to_string()),
    ];
    // Default values have no line, so that digests made before these lines were introduced stay valid.
    if minhash.feature_bits != FEATURE_BITS_MAX {
        fields.push(("feature-bits", minhash.feature_bits.to_string()));
    }
    match minhash.weights {
        MinhashWeights::Distinct => {}
        MinhashWeights::Frequencies => fields.push(("minhash-weights", "frequencies".to_string())),
        MinhashWeights::Idf { table } => {
            fields.push(("minhash-weights", "idf".to_string()));
            fields.push(("minhash-idf", format!("{table:032x}")));
        }
    }
    fields.extend(minhash.unit.map(|unit| ("minhash-unit", unit.units().to_string())));
    fields
}

/// Returns the parameter field `sets` if `kept` is true, otherwise `None`, so that digests made before this field was
/// introduced stay valid.
#[must_use]
pub fn sets_field(kept: bool) -> Option<(&'static str, String)> {
    kept.then(|| ("sets", "kept".to_string()))
}

/// Checks that two lists of fields are equal, except for the fields named in `free`.
///
/// # Errors
/// [`Error::ParamsMismatch`] names the first field that differs.
pub fn check_same_fields(
    index: &[(&'static str, String)],
    given: &[(&'static str, String)],
    free: &[&str],
) -> Result<()> {
    let of = |fields: &[(&'static str, String)], name: &str| {
        fields
            .iter()
            .find(|(n, _)| *n == name)
            .map_or_else(|| "absent".to_string(), |(_, value)| value.clone())
    };
    // A field may be missing in one of the two lists.
    for (name, _) in index.iter().chain(given) {
        let (mine, other) = (of(index, name), of(given, name));
        if !free.contains(name) && mine != other {
            return Err(Error::ParamsMismatch { field: (*name).to_string(), index: mine, given: other });
        }
    }
    Ok(())
}
