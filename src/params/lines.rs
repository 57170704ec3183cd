//! Parameters as the text that stands in files: lines `name=value` in a fixed order, one spelling for each value.

use std::fmt::Write as _;

use super::{
    FEATURE_BITS_MAX, Family, KeyKind, MinhashParams, NormalForm, Params, ShingleHash, Shingling,
    SimhashParams, SimhashWeights, Stemming, StopWords, Tokens,
};
use crate::error::{Error, Result};

impl Params {
    /// The lines `name=value` that stand in files: UTF-8, fixed order, one encoding for each value.
    #[must_use]
    pub fn encode(&self) -> String {
        text_of(&self.fields())
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
        let params = Self {
            key,
            shingling: lines.shingling()?,
            simhash: lines.simhash()?,
            minhash: lines.minhash()?,
            bottom: lines.number("bottom")?,
            modulus: lines.number("modulus")?,
            values: lines.optional("values", |value| (value == "kept").then_some(()))?.is_some(),
            expire_after: lines.optional("expire-after", |value| value.parse().ok())?,
        };
        params.check()?;
        canonical(&params.encode(), text)?;
        Ok(params)
    }

    /// The names and values of [`encode`](Self::encode), in its order.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("key", self.key.to_string())];
        fields.extend(self.shingling.fields());
        match self.simhash {
            None => fields.push(("simhash", "none".to_string())),
            Some(simhash) => {
                match simhash.weights {
                    SimhashWeights::Occurrences => fields.push(("simhash", "occurrences".to_string())),
                    SimhashWeights::Distinct => fields.push(("simhash", "distinct".to_string())),
                    SimhashWeights::Idf { table } => {
                        fields.push(("simhash", "idf".to_string()));
                        fields.push(("idf", format!("{table:032x}")));
                    }
                }
                fields.push(("within", simhash.within.to_string()));
                fields.push(("tables", simhash.design.to_string()));
                fields.push(("codec", simhash.codec.to_string()));
            }
        }
        match self.minhash {
            None => fields.push(("minhash", "none".to_string())),
            Some(minhash) => {
                fields.push(("minhash", minhash.family.to_string()));
                fields.push(("bands", minhash.bands.to_string()));
                fields.push(("rows", minhash.rows.to_string()));
                fields.push(("signature-bits", minhash.signature_bits.to_string()));
                // Lines of what is as it was before there were any are not there, so that what never had them has the
                // digest it always had.
                if minhash.feature_bits != FEATURE_BITS_MAX {
                    fields.push(("feature-bits", minhash.feature_bits.to_string()));
                }
            }
        }
        fields.push(("bottom", self.bottom.to_string()));
        fields.push(("modulus", self.modulus.to_string()));
        if self.values {
            fields.push(("values", "kept".to_string()));
        }
        if let Some(age) = self.expire_after {
            fields.push(("expire-after", age.to_string()));
        }
        fields
    }
}

impl Shingling {
    /// Its part of [`Params::encode`]: the lines `tokens` to `seed`.
    #[must_use]
    pub fn encode(&self) -> String {
        text_of(&self.fields())
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// As [`Params::decode`].
    pub fn decode(text: &str) -> Result<Self> {
        let shingling = Lines { rest: text.lines() }.shingling()?;
        shingling.check()?;
        canonical(&shingling.encode(), text)?;
        Ok(shingling)
    }

    /// The names and values of [`encode`](Self::encode), in its order.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let Self { tokens, unicode, normal_form, stop_words, stemming, widths, hash, seed } = self;
        vec![
            ("tokens", format!("{tokens}/{unicode}")),
            (
                "normal-form",
                match normal_form {
                    NormalForm::None => "none".to_string(),
                    NormalForm::Nfkc(unicode) => format!("nfkc/{unicode}"),
                },
            ),
            ("stop-words", stop_words.to_string()),
            ("stemming", stemming.to_string()),
            ("width", widths.to_string()),
            ("shingle-hash", hash.to_string()),
            ("seed", seed.to_string()),
        ]
    }
}

/// A line for each field.
fn text_of(fields: &[(&'static str, String)]) -> String {
    fields.iter().fold(String::new(), |mut text, (name, value)| {
        writeln!(text, "{name}={value}").expect("writing to a String does not fail");
        text
    })
}

/// Refuses a text that is not the one spelling of what it says.
fn canonical(expected: &str, text: &str) -> Result<()> {
    if expected == text { Ok(()) } else { Err(Error::Invalid("parameters: not in canonical form".into())) }
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

    /// The value of the next line, if that is of this name.
    fn optional<T>(&mut self, name: &'static str, named: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let line = self.rest.clone().next().unwrap_or("");
        if line.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')) {
            self.choice(name, named).map(Some)
        } else {
            Ok(None)
        }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &'static str) -> Result<T> {
        let value = self.value(name)?;
        value.parse().map_err(|_| unknown(name, value))
    }

    fn choice<T>(&mut self, name: &'static str, named: impl Fn(&str) -> Option<T>) -> Result<T> {
        let value = self.value(name)?;
        named(value).ok_or_else(|| unknown(name, value))
    }

    fn shingling(&mut self) -> Result<Shingling> {
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
            stop_words: StopWords::decode(self.value("stop-words")?)?,
            stemming: self.choice("stemming", Stemming::named)?,
            widths: self.value("width")?.parse()?,
            hash: self.choice("shingle-hash", ShingleHash::named)?,
            seed: self.number("seed")?,
        })
    }

    fn simhash(&mut self) -> Result<Option<SimhashParams>> {
        let weights = match self.value("simhash")? {
            "none" => return Ok(None),
            "occurrences" => SimhashWeights::Occurrences,
            "distinct" => SimhashWeights::Distinct,
            "idf" => SimhashWeights::Idf {
                table: self.choice("idf", |value| {
                    (value.len() == 32).then(|| u128::from_str_radix(value, 16).ok()).flatten()
                })?,
            },
            other => return Err(unknown("simhash", other)),
        };
        let within = self.number("within")?;
        let design = self.choice("tables", |value| value.parse().ok())?;
        let codec = self.choice("codec", |value| value.parse().ok())?;
        Ok(Some(SimhashParams { within, weights, design, codec }))
    }

    fn minhash(&mut self) -> Result<Option<MinhashParams>> {
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
        }))
    }
}

fn unknown(name: &str, value: &str) -> Error {
    Error::Invalid(format!("parameters: {name} has the unknown value `{}`", value.escape_debug()))
}
