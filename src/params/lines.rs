//! The text form of parameters in files: lines `name=value` in a fixed order. Each value can be written in only one
//! way.

use twindex_sketch::lines::{Lines, canonical, text_of, unknown};
use twindex_sketch::params::{minhash_fields, sets_field, simhash_fields};

use super::{CodeParams, KeyKind, Params, SimhashParams, Threshold};
use crate::error::Result;

impl Params {
    /// Encodes the parameters as lines `name=value` in UTF-8, as stored in files. Equal parameters have equal
    /// encodings.
    #[must_use]
    pub fn encode(&self) -> String {
        text_of(&self.fields())
    }

    /// Decodes a text written by [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) naming the line, for an unknown name or value, a missing line, or any
    /// other text that `encode` would not have written.
    pub fn decode(text: &str) -> Result<Self> {
        let mut lines = Lines::new(text);
        let key = match lines.value("key")? {
            "u64" => KeyKind::U64,
            "bytes" => KeyKind::Bytes,
            other => return Err(unknown("key", other).into()),
        };
        let mut params = Self {
            key,
            shingling: lines.shingling()?,
            simhash: simhash(&mut lines)?,
            minhash: lines.minhash()?,
            bottom: lines.number("bottom")?,
            modulus: lines.number("modulus")?,
            sets: lines.optional("sets", |value| (value == "kept").then_some(()))?.is_some(),
            suffixes: lines.optional("suffixes", |value| (value == "kept").then_some(()))?.is_some(),
            codes: codes(&mut lines)?,
            marks: lines.optional("marks", |value| (value == "kept").then_some(()))?.is_some(),
            priorities: lines.optional("priorities", |value| (value == "kept").then_some(()))?.is_some(),
            values: lines.optional("values", |value| (value == "kept").then_some(()))?.is_some(),
            expire_after: lines.optional("expire-after", |value| value.parse().ok())?,
            threshold: Some(Threshold::USUAL),
        };
        if let Some(threshold) = lines.optional("threshold", |value| or_none(value).ok())? {
            params.threshold = threshold;
        }
        if let Some(simhash) = &mut params.simhash
            && let Some(near) = lines.optional("near-within", |value| or_none(value).ok())?
        {
            simhash.near = near;
        }
        if let Some(codes) = &mut params.codes {
            codes.near = lines.number("near-within")?;
        }
        params.check()?;
        canonical(&params.encode(), text)?;
        Ok(params)
    }

    /// Returns the names and values that [`encode`](Self::encode) writes, in the same order.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("key", self.key.to_string())];
        fields.extend(self.shingling.fields());
        fields.extend(simhash_fields(self.simhash.map(|simhash| simhash.weights)));
        if let Some(simhash) = self.simhash {
            fields.push(("within", simhash.within.to_string()));
            fields.push(("tables", simhash.design.to_string()));
            fields.push(("codec", simhash.codec.to_string()));
        }
        fields.extend(minhash_fields(self.minhash));
        fields.push(("bottom", self.bottom.to_string()));
        fields.push(("modulus", self.modulus.to_string()));
        fields.extend(sets_field(self.sets));
        if self.suffixes {
            fields.push(("suffixes", "kept".to_string()));
        }
        if let Some(codes) = self.codes {
            fields.push(("codes", codes.bits.to_string()));
            if codes.votes.is_some() {
                let [simhash, idf] = CODE_VOTES;
                let names = [simhash, idf].into_iter();
                fields.extend(names.zip(simhash_fields(codes.votes)).map(|(name, (_, value))| (name, value)));
            }
        }
        if self.marks {
            fields.push(("marks", "kept".to_string()));
        }
        if self.priorities {
            fields.push(("priorities", "kept".to_string()));
        }
        if self.values {
            fields.push(("values", "kept".to_string()));
        }
        if let Some(age) = self.expire_after {
            fields.push(("expire-after", age.to_string()));
        }
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_string());
        if self.threshold != Some(Threshold::USUAL) {
            fields.push(("threshold", or_none(self.threshold.map(|threshold| threshold.to_string()))));
        }
        if let Some(simhash) = self.simhash.filter(|simhash| simhash.near != Some(simhash.within.into())) {
            fields.push(("near-within", or_none(simhash.near.map(|near| near.to_string()))));
        }
        if let Some(codes) = self.codes {
            fields.push(("near-within", codes.near.to_string()));
        }
        fields
    }
}

/// The names of the lines `simhash` and `idf` for the fingerprints of an index of codes.
const CODE_VOTES: [&str; 2] = ["codes-simhash", "codes-idf"];

/// Reads the lines about fingerprints without tables. Returns `None` if there are none.
fn codes(lines: &mut Lines<'_>) -> Result<Option<CodeParams>> {
    let Some(bits) = lines.optional("codes", |bits| bits.parse().ok())? else { return Ok(None) };
    let [simhash, idf] = CODE_VOTES;
    let votes = if lines.has(simhash) { lines.simhash_weights_named(simhash, idf)? } else { None };
    Ok(Some(CodeParams { bits, near: 0, votes }))
}

/// Parses `none` as `None`, and any other text as a value.
fn or_none<T: std::str::FromStr>(value: &str) -> std::result::Result<Option<T>, T::Err> {
    if value == "none" { Ok(None) } else { value.parse().map(Some) }
}

/// Reads the lines about fingerprints and their tables. Returns `None` if the index stores no fingerprints.
fn simhash(lines: &mut Lines<'_>) -> Result<Option<SimhashParams>> {
    let Some(weights) = lines.simhash_weights()? else { return Ok(None) };
    let within = lines.number("within")?;
    let design = lines.choice("tables", |value| value.parse().ok())?;
    let codec = lines.choice("codec", |value| value.parse().ok())?;
    Ok(Some(SimhashParams { within, weights, design, codec, near: Some(within.into()) }))
}
