//! The choices that decide what a sketch is: how text is cut, and what is computed from it.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, Result};
use crate::fields::{Fields, text_of};
use crate::shingling::named;
use crate::whole::WeightUnit;

pub use crate::shingling::{
    Folding, NormalForm, SHINGLE_WIDTH_MAX, ShingleHash, Shingling, Stemming, StopWords, Tokens,
    UnicodeVersion, Widths, in_range,
};

/// The most minima a signature may have: `bands * rows`.
pub const MINIMA_MAX: u32 = 4096;
/// The most bands.
pub const BANDS_MAX: u16 = 1024;
/// The widths a stored minimum may have, in bits; 0 keeps no signature.
pub const SIGNATURE_BITS: [u8; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Bits of a band key: the most bits of a feature that are kept, and how many are kept by default.
pub const KEY_BITS: u32 = 32;
/// The most bits of each feature that an index may keep, and how many it keeps by default.
pub const FEATURE_BITS_MAX: u8 = KEY_BITS as u8;
/// Bits of a hash in a bottom-t or 0-mod-m sketch.
pub const HASH_BITS: u32 = 48;
/// The most hashes a bottom-t sketch may have.
pub const BOTTOM_MAX: u16 = 4096;
/// The most hashes a 0-mod-m sketch may have; of a document with more, the least are kept.
pub const MODULAR_MAX: usize = 65_535;

/// How often a shingle of a document counts in its simhash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimhashWeights {
    /// Every occurrence votes: weight = term frequency.
    Occurrences,
    /// Each distinct shingle votes once.
    Distinct,
    /// Every occurrence votes with the shingle's inverse document frequency, from the table with this digest
    /// ([`IdfTable`](crate::IdfTable)).
    Idf {
        /// The table's digest.
        table: u128,
    },
}

named! {
    /// The family of orders under which minima are taken; [`sketch::minhash`](crate::minhash) defines them.
    Family {
        /// One order for each bin of a single permutation; empty bins are filled by minima of their own.
        OnePermutationFilled = "one-permutation-filled",
        /// `a x + b` modulo a prime.
        Linear = "linear",
        /// The upper half of `a x + b` modulo 2^64.
        MultiplyShift = "multiply-shift",
        /// A random matrix over GF(2), and a random vector.
        Matrix = "matrix",
        /// Darts of a random process on the plane of weight and rank ([`sketch::darts`](crate::darts)): the only family for
        /// weights that are no whole numbers of occurrences.
        Darts = "darts",
    }
}

/// The weight of a shingle of a document in minima, samples and sets, by which resemblance is measured.
///
/// The weighted resemblance of two documents is the sum of the lesser weights of each shingle by the sum of the greater
/// ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MinhashWeights {
    /// Each distinct shingle weighs the same.
    #[default]
    Distinct,
    /// A shingle weighs as much as it occurs; a feature of the caller's as much as its weight, 1/16 to 2^24, which needs
    /// [`Family::Darts`], or a [unit](MinhashParams::unit).
    Frequencies,
    /// As [`Frequencies`](Self::Frequencies), times the inverse document frequency from the table with this digest
    /// ([`IdfTable`](crate::IdfTable)); needs [`Family::Darts`], or a [unit](MinhashParams::unit).
    Idf {
        /// The table's digest.
        table: u128,
    },
}

/// The `MinHash` signature, its bands (features) and the column kept to estimate resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MinhashParams {
    /// The orders whose minima are kept.
    pub family: Family,
    /// Groups of minima, each one LSH band and one feature: 1 to [`BANDS_MAX`].
    pub bands: u16,
    /// Minima in a band.
    pub rows: u16,
    /// Bits kept of each minimum to estimate resemblance, one of [`SIGNATURE_BITS`].
    pub signature_bits: u8,
    /// Bits kept of each feature, 1 to [`FEATURE_BITS_MAX`]. Sketches have all 64 all the same.
    pub feature_bits: u8,
    /// The weights of shingles.
    pub weights: MinhashWeights,
    /// The unit in which weights are whole: each is rounded to a whole number of units, and each unit counts as an
    /// element ([`whole`](crate::whole)), by any family, in samples and in sets. `None` leaves weights as they are.
    pub unit: Option<WeightUnit>,
}

impl MinhashParams {
    /// `bands` bands of `rows` minima each, by [`Family::OnePermutationFilled`], with 8 bits kept of each minimum and all
    /// bits of each feature.
    #[must_use]
    pub fn new(bands: u16, rows: u16) -> Self {
        let family = Family::OnePermutationFilled;
        let weights = MinhashWeights::Distinct;
        Self { family, bands, rows, signature_bits: 8, feature_bits: FEATURE_BITS_MAX, weights, unit: None }
    }

    /// Checks the ranges of all choices.
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

    /// The number of minima, `bands * rows`.
    #[must_use]
    pub fn minima(&self) -> usize {
        usize::from(self.bands) * usize::from(self.rows)
    }

    /// Bytes a document's stored signature takes: its minima, [`signature_bits`](Self::signature_bits) each,
    /// rounded up to a byte.
    #[must_use]
    pub fn signature_bytes(&self) -> usize {
        (self.minima() * usize::from(self.signature_bits)).div_ceil(8)
    }

    /// Refuses to compare more bits of a feature than are kept, or none.
    ///
    /// # Errors
    /// [`Error::Invalid`].
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

/// The parameters of a [`Sketcher`](crate::Sketcher): the part of an index's parameters that decides sketches.
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
    /// Text to shingles.
    pub shingling: Shingling,
    /// The votes of a shingle, if there is to be a fingerprint.
    pub simhash: Option<SimhashWeights>,
    /// Minima and bands, if there are to be any.
    pub minhash: Option<MinhashParams>,
    /// The number of least hashes kept (a bottom-t sketch), 0 to [`BOTTOM_MAX`]; 0 keeps none.
    pub bottom: u16,
    /// Hashes that are 0 modulo this are kept; 0 keeps none.
    pub modulus: u32,
    /// Whether all distinct shingle hashes of a document are kept, by which it is compared exactly.
    pub sets: bool,
}

impl SketchParams {
    /// Text is cut by `shingling`; nothing is computed yet.
    #[must_use]
    pub fn new(shingling: Shingling) -> Self {
        Self { shingling, simhash: None, minhash: None, bottom: 0, modulus: 0, sets: false }
    }

    /// Computes a fingerprint from these votes.
    #[must_use]
    pub fn with_simhash(self, weights: SimhashWeights) -> Self {
        Self { simhash: Some(weights), ..self }
    }

    /// Computes `bands` bands of `rows` minima each, by [`Family::OnePermutationFilled`].
    #[must_use]
    pub fn with_minhash(self, bands: u16, rows: u16) -> Self {
        Self { minhash: Some(MinhashParams::new(bands, rows)), ..self }
    }

    /// Checks the ranges of all choices.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        self.shingling.check()?;
        if let Some(minhash) = self.minhash {
            minhash.check()?;
        }
        in_range("bottom", self.bottom.into(), 0, BOTTOM_MAX.into())?;
        self.check_weights()?;
        if self.simhash.is_none() && self.minhash.is_none() {
            return Err(Error::Invalid("parameters: keep simhash, minhash or both".into()));
        }
        Ok(())
    }

    /// Refuses what cannot be weighted as the minima are, or by two tables.
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

    /// The weights of shingles where resemblance is measured.
    #[must_use]
    pub fn minhash_weights(&self) -> MinhashWeights {
        self.minhash.map_or(MinhashWeights::Distinct, |minhash| minhash.weights)
    }

    /// The digest of the IDF table by which fingerprints, minima or both are weighted; `None` where none is.
    ///
    /// # Errors
    /// [`Error::Invalid`] where two tables are named.
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

    /// The names and values of the parameters, in the order of `format-spec.md`.
    #[must_use]
    pub fn fields(&self) -> Fields {
        let mut fields = self.shingling.fields();
        fields.extend(simhash_fields(self.simhash));
        fields.extend(minhash_fields(self.minhash));
        fields.push(("bottom", self.bottom.to_string()));
        fields.push(("modulus", self.modulus.to_string()));
        fields.extend(sets_field(self.sets));
        fields
    }

    /// Identifies the parameters: xxh3-128 of their lines `name=value`.
    #[must_use]
    pub fn digest(&self) -> u128 {
        xxh3_128(text_of(&self.fields()).as_bytes())
    }

    /// Refuses parameters that would change sketches, naming the first that differs. The number of feature bits that
    /// an index keeps may differ, and whether there are sets.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same(&self, given: &Self) -> Result<()> {
        check_same_fields(&self.fields(), &given.fields(), &["feature-bits", "sets"])
    }

    /// Refuses parameters that would change minima and bands, naming the first that differs. Fingerprints and samples
    /// may differ, and so may the number of bits kept of each minimum.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_bands(&self, given: &Self) -> Result<()> {
        let free = ["feature-bits", "simhash", "idf", "signature-bits", "bottom", "modulus", "sets"];
        check_same_fields(&self.fields(), &given.fields(), &free)
    }
}

impl From<&SketchParams> for SketchParams {
    fn from(params: &SketchParams) -> Self {
        params.clone()
    }
}

/// The lines of a simhash: its weights, and the table that they come from.
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

/// The lines of a `MinHash`.
#[must_use]
pub fn minhash_fields(minhash: Option<MinhashParams>) -> Fields {
    let Some(minhash) = minhash else { return vec![("minhash", "none".to_string())] };
    let mut fields = vec![
        ("minhash", minhash.family.to_string()),
        ("bands", minhash.bands.to_string()),
        ("rows", minhash.rows.to_string()),
        ("signature-bits", minhash.signature_bits.to_string()),
    ];
    // Defaults have no line, so that the digests of parameters from before these lines existed still hold.
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

/// The line of sets, where they are kept. That they are not has no line, so that the digests of parameters from before
/// this line existed still hold.
#[must_use]
pub fn sets_field(kept: bool) -> Option<(&'static str, String)> {
    kept.then(|| ("sets", "kept".to_string()))
}

/// Refuses fields that differ, naming the first one; those named in `free` may differ.
///
/// # Errors
/// [`Error::ParamsMismatch`].
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
    // Some lines are in one of the two only.
    for (name, _) in index.iter().chain(given) {
        let (mine, other) = (of(index, name), of(given, name));
        if !free.contains(name) && mine != other {
            return Err(Error::ParamsMismatch { field: (*name).to_string(), index: mine, given: other });
        }
    }
    Ok(())
}
