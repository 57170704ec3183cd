//! Encodes and decodes parameters as text: lines `name=value` in a fixed order, with one spelling for each value. The
//! crate `twindex` encodes the parameters of an index with the same functions.

use crate::error::{Error, Result};
pub use crate::fields::{Fields, text_of};
use crate::params::{
    FEATURE_BITS_MAX, Family, Folding, MinhashParams, MinhashWeights, NormalForm, ShingleHash, Shingling,
    SimhashWeights, Stemming, StopWords, Tokens,
};
use crate::whole::WeightUnit;

impl Shingling {
    /// Encodes the shingling as the lines `tokens` to `seed` of the encoded parameters.
    #[must_use]
    pub fn encode(&self) -> String {
        text_of(&self.fields())
    }

    /// Decodes the output of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Error::Invalid`] names the invalid line.
    pub fn decode(text: &str) -> Result<Self> {
        let shingling = Lines::new(text).shingling()?;
        shingling.check()?;
        canonical(&shingling.encode(), text)?;
        Ok(shingling)
    }

    /// Returns the lines of [`encode`](Self::encode) as names and values, in the same order.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let Self {
            tokens,
            unicode,
            normal_form,
            folding,
            boilerplate,
            stop_words,
            stemming,
            widths,
            hash,
            seed,
        } = self;
        let mut fields = vec![
            ("tokens", format!("{tokens}/{unicode}")),
            (
                "normal-form",
                match normal_form {
                    NormalForm::None => "none".to_string(),
                    NormalForm::Nfkc(unicode) => format!("nfkc/{unicode}"),
                },
            ),
        ];
        if !folding.is_empty() {
            fields.push(("fold", folding.to_string()));
        }
        fields.extend(boilerplate.map(|list| ("boilerplate", format!("{list:032x}"))));
        fields.extend([
            ("stop-words", stop_words.to_string()),
            ("stemming", stemming.to_string()),
            ("width", widths.to_string()),
            ("shingle-hash", hash.to_string()),
            ("seed", seed.to_string()),
        ]);
        fields
    }
}

/// Checks that a text is in canonical form, that is, equal to `expected`.
///
/// # Errors
/// [`Error::Invalid`] if the two texts differ.
pub fn canonical(expected: &str, text: &str) -> Result<()> {
    if expected == text { Ok(()) } else { Err(Error::Invalid("parameters: not in canonical form".into())) }
}

/// A parser of `name=value` lines in a fixed order.
pub struct Lines<'a> {
    rest: std::str::Lines<'a>,
}

impl<'a> Lines<'a> {
    /// Creates a parser for the lines of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.lines() }
    }

    /// Returns the value of the next line, whose name must be `name`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the line found in its place.
    pub fn value(&mut self, name: &'static str) -> Result<&'a str> {
        let line = self.rest.next().unwrap_or("");
        line.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).ok_or_else(|| {
            Error::Invalid(format!(
                "parameters: expected a line `{name}=...`, found `{}`",
                line.escape_debug()
            ))
        })
    }

    /// Returns the value of the next line if its name is `name`. Otherwise returns `None` and does not consume the line.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the line if its value is invalid.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        named: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        if self.has(name) { self.choice(name, named).map(Some) } else { Ok(None) }
    }

    /// Returns whether the name of the next line is `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let line = self.rest.clone().next().unwrap_or("");
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
    }

    /// Returns the number on the next line, whose name must be `name`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the line if it has another name or is not a number.
    pub fn number<T: std::str::FromStr>(&mut self, name: &'static str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|_| unknown(name, value))
    }

    /// Returns the value of the next line, whose name must be `name`, converted by `named`. `named` returns `None` for an
    /// unknown value.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the line if it has another name or an unknown value.
    pub fn choice<T>(&mut self, name: &'static str, named: impl Fn(&str) -> Option<T>) -> Result<T> {
        let value = self.value(name)?;
        named(value).ok_or_else(|| unknown(name, value))
    }

    /// Parses the lines `tokens` to `seed`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first invalid line.
    pub fn shingling(&mut self) -> Result<Shingling> {
        let (tokens, unicode) = self.choice("tokens", |value| {
            let (name, version) = value.split_once('/')?;
            Some((Tokens::named(name)?, version.parse().ok()?))
        })?;
        let normal_form = self.choice("normal-form", |value| match value.split_once('/') {
            None if value == "none" => Some(NormalForm::None),
            Some(("nfkc", version)) => Some(NormalForm::Nfkc(version.parse().ok()?)),
            _ => None,
        })?;
        Ok(Shingling {
            tokens,
            unicode,
            normal_form,
            folding: self.optional("fold", Folding::decode)?.unwrap_or_default(),
            boilerplate: self.optional("boilerplate", digest)?,
            stop_words: StopWords::decode(self.value("stop-words")?)?,
            stemming: self.choice("stemming", Stemming::named)?,
            widths: self.value("width")?.parse()?,
            hash: self.choice("shingle-hash", ShingleHash::named)?,
            seed: self.number("seed")?,
        })
    }

    /// Parses the lines `simhash` and `idf`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first invalid line.
    pub fn simhash_weights(&mut self) -> Result<Option<SimhashWeights>> {
        self.simhash_weights_named("simhash", "idf")
    }

    /// Like [`simhash_weights`](Self::simhash_weights), for lines of these names.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first invalid line.
    pub fn simhash_weights_named(
        &mut self,
        simhash: &'static str,
        idf: &'static str,
    ) -> Result<Option<SimhashWeights>> {
        Ok(Some(match self.value(simhash)? {
            "none" => return Ok(None),
            "occurrences" => SimhashWeights::Occurrences,
            "distinct" => SimhashWeights::Distinct,
            "idf" => SimhashWeights::Idf { table: self.choice(idf, digest)? },
            other => return Err(unknown(simhash, other)),
        }))
    }

    /// Parses the lines `minhash` to `minhash-unit`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first invalid line.
    pub fn minhash(&mut self) -> Result<Option<MinhashParams>> {
        let family = self.choice("minhash", |value| match value {
            "none" => Some(None),
            name => Family::named(name).map(Some),
        })?;
        let Some(family) = family else { return Ok(None) };
        Ok(Some(MinhashParams {
            family,
            bands: self.number("bands")?,
            rows: self.number("rows")?,
            signature_bits: self.number("signature-bits")?,
            feature_bits: self
                .optional("feature-bits", |value| value.parse().ok())?
                .unwrap_or(FEATURE_BITS_MAX),
            weights: self.minhash_weights()?,
            unit: self.optional("minhash-unit", |value| WeightUnit::new(value.parse().ok()?).ok())?,
        }))
    }

    /// Parses the lines `minhash-weights` and `minhash-idf`.
    fn minhash_weights(&mut self) -> Result<MinhashWeights> {
        let weights = self.optional("minhash-weights", |value| match value {
            "frequencies" => Some(false),
            "idf" => Some(true),
            _ => None,
        })?;
        Ok(match weights {
            None => MinhashWeights::Distinct,
            Some(false) => MinhashWeights::Frequencies,
            Some(true) => MinhashWeights::Idf { table: self.choice("minhash-idf", digest)? },
        })
    }
}

/// Parses the digest of an IDF table or of a list of spans: 32 hexadecimal digits. `None` if it is invalid.
fn digest(value: &str) -> Option<u128> {
    (value.len() == 32).then(|| u128::from_str_radix(value, 16).ok()).flatten()
}

/// Returns the error for a parameter `name` with an unknown value.
#[must_use]
pub fn unknown(name: &str, value: &str) -> Error {
    Error::Invalid(format!("parameters: {name} has the unknown value `{}`", value.escape_debug()))
}
