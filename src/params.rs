//! Every choice that changes bytes.
//!
//! Parameters are fixed when an index is created and stand in its manifest and in every segment, as lines
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

use std::fmt;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, Result};

/// The radius up to which the block designs answer (design decision 8).
pub const WITHIN_MAX: u8 = 10;
/// The widest shingle, in tokens.
pub const SHINGLE_WIDTH_MAX: u8 = 16;
/// The most minima a signature may have: `bands * rows`.
pub const MINIMA_MAX: u32 = 4096;
/// The most bands.
pub const BANDS_MAX: u16 = 1024;
/// The widths a stored minimum may have, in bits; 0 keeps no signature.
pub const SIGNATURE_BITS: [u8; 7] = [0, 1, 2, 4, 8, 16, 32];

/// What a document is called: fixed for the whole index at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// A `u64`, in numeric order; at most 8 bytes on disk.
    U64,
    /// 1 to 65,535 bytes, in bytewise order.
    Bytes,
}

/// How text becomes a set of shingles (Broder 1997: w-shingling).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shingling {
    /// Tokens in a shingle: 1 to [`SHINGLE_WIDTH_MAX`].
    pub width: u8,
    /// Chooses the hash functions of tokens, shingles and minima.
    pub seed: u64,
}

impl Shingling {
    /// Shingles of `width` words, hashed by the family that `seed` chooses.
    #[must_use]
    pub fn words(width: u8, seed: u64) -> Self {
        Self { width, seed }
    }
}

/// How often a shingle of a document counts in its simhash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimhashWeights {
    /// Every occurrence votes: weight = term frequency.
    Occurrences,
    /// Each distinct shingle votes once.
    Distinct,
}

/// The 64-bit simhash fingerprint and its permutation tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SimhashParams {
    /// The Hamming radius the tables are tuned for, 0 to [`WITHIN_MAX`]; other radii are answered too, exactly.
    pub within: u8,
    /// The votes of a shingle.
    pub weights: SimhashWeights,
}

/// The `MinHash` signature, its bands (features) and the column kept to estimate resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MinhashParams {
    /// Groups of minima, each one LSH band and one feature: 1 to [`BANDS_MAX`].
    pub bands: u16,
    /// Minima in a band.
    pub rows: u16,
    /// Bits kept of each minimum to estimate resemblance, one of [`SIGNATURE_BITS`].
    pub signature_bits: u8,
}

impl MinhashParams {
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
}

/// What an index keeps and how it is made from text. Made by [`Params::builder`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Params {
    /// The kind of its keys.
    pub key: KeyKind,
    /// Text to shingles.
    pub shingling: Shingling,
    /// Kept if `Some`: fingerprints and permutation tables.
    pub simhash: Option<SimhashParams>,
    /// Kept if `Some`: band tables and signatures.
    pub minhash: Option<MinhashParams>,
}

impl Params {
    /// Starts from byte keys, 5-word shingles, and nothing kept; add [`simhash`](ParamsBuilder::simhash),
    /// [`minhash`](ParamsBuilder::minhash) or both.
    pub fn builder() -> ParamsBuilder {
        ParamsBuilder {
            params: Params {
                key: KeyKind::Bytes,
                shingling: Shingling { width: 5, seed: 0 },
                simhash: None,
                minhash: None,
            },
            signature_bits: None,
        }
    }

    /// The lines `name=value` that stand in files: ASCII, fixed order, one encoding for each value.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.fields() {
            writeln!(text, "{name}={value}").expect("writing to a String does not fail");
        }
        text
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the line, for an unknown name or value, a missing line or any text that `encode`
    /// would not have written.
    pub fn decode(text: &str) -> Result<Self> {
        let mut lines = Lines { rest: text.lines() };
        let key = match lines.value("key")? {
            "u64" => KeyKind::U64,
            "bytes" => KeyKind::Bytes,
            other => return Err(unknown("key", other)),
        };
        match lines.value("tokens")? {
            "words" => {}
            other => return Err(unknown("tokens", other)),
        }
        let width = lines.number("width")?;
        let seed = lines.number("seed")?;
        let simhash = match lines.value("simhash")? {
            "none" => None,
            value => {
                let weights = match value {
                    "occurrences" => SimhashWeights::Occurrences,
                    "distinct" => SimhashWeights::Distinct,
                    other => return Err(unknown("simhash", other)),
                };
                let within = lines.number("within")?;
                match lines.value("tables")? {
                    "blocks-4" => {}
                    other => return Err(unknown("tables", other)),
                }
                Some(SimhashParams { within, weights })
            }
        };
        let minhash = match lines.value("minhash")? {
            "none" => None,
            "one-permutation-filled" => Some(MinhashParams {
                bands: lines.number("bands")?,
                rows: lines.number("rows")?,
                signature_bits: lines.number("signature-bits")?,
            }),
            other => return Err(unknown("minhash", other)),
        };
        let params = Self { key, shingling: Shingling { width, seed }, simhash, minhash };
        params.check()?;
        if params.encode() != text {
            return Err(Error::Invalid("parameters: not in canonical form".into()));
        }
        Ok(params)
    }

    /// Identifies the parameters: xxh3-128 of [`encode`](Self::encode).
    #[must_use]
    pub fn digest(&self) -> u128 {
        xxh3_128(self.encode().as_bytes())
    }

    /// Refuses parameters that would change answers, naming the first that differs; the kind of key may differ.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`].
    pub fn check_same_sketch(&self, given: &Params) -> Result<()> {
        let (mine, theirs) = (self.fields(), given.fields());
        for (name, index) in &mine {
            let other = theirs.iter().find(|(n, _)| n == name).map_or("absent", |(_, v)| v.as_str());
            if *name != "key" && index != other {
                return Err(Error::ParamsMismatch {
                    field: (*name).to_string(),
                    index: index.clone(),
                    given: other.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The names and values of [`encode`](Self::encode), in its order.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("key", self.key.to_string()),
            ("tokens", "words".to_string()),
            ("width", self.shingling.width.to_string()),
            ("seed", self.shingling.seed.to_string()),
        ];
        match self.simhash {
            None => fields.push(("simhash", "none".to_string())),
            Some(simhash) => {
                let weights = match simhash.weights {
                    SimhashWeights::Occurrences => "occurrences",
                    SimhashWeights::Distinct => "distinct",
                };
                fields.push(("simhash", weights.to_string()));
                fields.push(("within", simhash.within.to_string()));
                fields.push(("tables", "blocks-4".to_string()));
            }
        }
        match self.minhash {
            None => fields.push(("minhash", "none".to_string())),
            Some(minhash) => {
                fields.push(("minhash", "one-permutation-filled".to_string()));
                fields.push(("bands", minhash.bands.to_string()));
                fields.push(("rows", minhash.rows.to_string()));
                fields.push(("signature-bits", minhash.signature_bits.to_string()));
            }
        }
        fields
    }

    /// Checks the ranges of all choices, for parameters that were changed after [`ParamsBuilder::build`].
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        let in_range = |name: &str, value: u64, lo: u64, hi: u64| {
            if (lo..=hi).contains(&value) {
                Ok(())
            } else {
                Err(Error::Invalid(format!("parameters: {name} is {value}, allowed are {lo} to {hi}")))
            }
        };
        in_range("width", self.shingling.width.into(), 1, SHINGLE_WIDTH_MAX.into())?;
        if let Some(simhash) = self.simhash {
            in_range("within", simhash.within.into(), 0, WITHIN_MAX.into())?;
        }
        if let Some(minhash) = self.minhash {
            in_range("bands", minhash.bands.into(), 1, BANDS_MAX.into())?;
            in_range("rows", minhash.rows.into(), 1, MINIMA_MAX.into())?;
            in_range("bands x rows", minhash.minima() as u64, 1, MINIMA_MAX.into())?;
            if !SIGNATURE_BITS.contains(&minhash.signature_bits) {
                return Err(Error::Invalid(format!(
                    "parameters: signature-bits is {}, allowed are {SIGNATURE_BITS:?}",
                    minhash.signature_bits
                )));
            }
        }
        if self.simhash.is_none() && self.minhash.is_none() {
            return Err(Error::Invalid("parameters: keep simhash, minhash or both".into()));
        }
        Ok(())
    }
}

/// Reads `name=value` lines in order.
struct Lines<'a> {
    rest: std::str::Lines<'a>,
}

impl<'a> Lines<'a> {
    fn value(&mut self, name: &'static str) -> Result<&'a str> {
        let line = self.rest.next().unwrap_or("");
        line.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).ok_or_else(|| {
            Error::Invalid(format!(
                "parameters: expected a line `{name}=...`, found `{}`",
                line.escape_debug()
            ))
        })
    }

    fn number<T: std::str::FromStr>(&mut self, name: &'static str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|_| unknown(name, value))
    }
}

fn unknown(name: &str, value: &str) -> Error {
    Error::Invalid(format!("parameters: {name} has the unknown value `{}`", value.escape_debug()))
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U64 => "u64",
            Self::Bytes => "bytes",
        })
    }
}

/// Collects choices; [`build`](ParamsBuilder::build) checks them together.
#[derive(Clone, Debug)]
#[must_use]
pub struct ParamsBuilder {
    params: Params,
    signature_bits: Option<u8>,
}

impl ParamsBuilder {
    /// Keys are `u64` instead of bytes.
    pub fn u64_keys(mut self) -> Self {
        self.params.key = KeyKind::U64;
        self
    }

    /// Shingles of `width` words.
    pub fn words(mut self, width: u8) -> Self {
        self.params.shingling.width = width;
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
        self.params.simhash = Some(SimhashParams { within, weights });
        self
    }

    /// Keep `bands` bands of `rows` minima each, and 8 bits of every minimum for estimates.
    pub fn minhash(mut self, bands: u16, rows: u16) -> Self {
        self.params.minhash = Some(MinhashParams { bands, rows, signature_bits: 8 });
        self
    }

    /// Bits kept of each minimum, one of [`SIGNATURE_BITS`], instead of 8; goes with [`minhash`](Self::minhash).
    pub fn signature_bits(mut self, bits: u8) -> Self {
        self.signature_bits = Some(bits);
        self
    }

    /// Checks the ranges of all choices.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the parameter and its range.
    pub fn build(mut self) -> Result<Params> {
        match (&mut self.params.minhash, self.signature_bits) {
            (Some(minhash), Some(bits)) => minhash.signature_bits = bits,
            (None, Some(_)) => {
                return Err(Error::Invalid("parameters: signature-bits without minhash".into()));
            }
            (_, None) => {}
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
        let text = "key=bytes\ntokens=words\nwidth=5\nseed=0\nsimhash=occurrences\nwithin=3\ntables=blocks-4\n\
                    minhash=one-permutation-filled\nbands=20\nrows=6\nsignature-bits=8\n";
        assert_eq!(both().encode(), text);
        assert_eq!(Params::decode(text).unwrap(), both());
    }

    #[test]
    fn any_other_spelling_is_refused_by_name() {
        let text = both().encode();
        for (from, to, named) in [
            ("width=5", "width=05", "canonical"),
            ("width=5", "width=+5", "canonical"),
            ("width=5", "width=17", "width"),
            ("seed=0", "seed=-1", "seed"),
            ("bands=20", "bands=2000", "bands"),
            ("within=3", "within=11", "within"),
            ("signature-bits=8", "signature-bits=7", "signature-bits"),
            ("tokens=words", "tokens=letters", "tokens"),
            ("tables=blocks-4\n", "", "tables"),
            ("rows=6\n", "rows=6\r\n", "canonical"),
            ("key=bytes\n", "key=bytes\n\n", "tokens"),
            ("signature-bits=8\n", "signature-bits=8", "canonical"),
            ("signature-bits=8\n", "signature-bits=8\nx=1\n", "canonical"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from} does not occur");
            let error = Params::decode(&changed).unwrap_err().to_string();
            assert!(error.contains(named), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn bits_of_a_signature_need_a_signature() {
        assert!(Params::builder().simhash(3).signature_bits(8).build().is_err());
        let params = Params::builder().signature_bits(2).minhash(20, 6).build().unwrap();
        assert_eq!(params.minhash.unwrap().signature_bits, 2);
    }

    #[test]
    fn a_mismatch_names_the_field_and_both_values() {
        let other = Params::builder().words(4).simhash(3).minhash(20, 6).build().unwrap();
        let error = both().check_same_sketch(&other).unwrap_err().to_string();
        assert!(error.contains("width is 5 in the index and 4 here"), "{error}");
    }
}
