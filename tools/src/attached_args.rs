//! Values and stamps of documents: where they are found, and what a new index does with them.

use std::path::Path;

use anyhow::{anyhow, ensure};
use clap::Args;
use serde_json::value::RawValue;
use twindex::format::attached::VALUE_BYTES_MAX;
use twindex::{Attached, Params, Writer};

use crate::options::Usage;

/// Options of verbs that add documents.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AttachedArgs {
    /// Field of a JSONL object that is kept as the document's value, at most 64 KiB: a string as it is, anything else
    /// as JSON; a document without it has none. A new index keeps values if this is given
    #[arg(long, value_name = "NAME")]
    value_field: Option<String>,
    /// Field of a JSONL object that holds the document's stamp, an integer from 0 on, as a rule seconds since 1970; for
    /// an index in which documents expire
    #[arg(long, value_name = "NAME")]
    stamp_field: Option<String>,
    /// Documents of a new index expire when they are this much older than the newest, by their stamps: a number, or one
    /// with s, m, h, d or w behind it where stamps are seconds
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    expire_after: Option<u64>,
    /// How far a stamp may be ahead of all before; further is an error, as everything would expire by a wrong one
    /// [default: the age at which documents expire]
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    max_jump: Option<u64>,
}

/// A value and a stamp, as far as they were asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnAttached {
    value: Vec<u8>,
    stamp: Option<u64>,
}

impl OwnAttached {
    pub(crate) fn as_attached(&self) -> Attached<'_> {
        Attached { value: &self.value, stamp: self.stamp }
    }
}

/// The fields in which they are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttachedFields {
    value: Option<String>,
    stamp: Option<String>,
}

impl AttachedFields {
    /// False where nothing is looked for.
    pub(crate) fn any(&self) -> bool {
        self.value.is_some() || self.stamp.is_some()
    }

    /// What a line of JSON has of them.
    ///
    /// # Errors
    ///
    /// There is no stamp, or what there is, is none.
    pub(crate) fn of_line(&self, line: &[u8]) -> anyhow::Result<OwnAttached> {
        let object: std::collections::HashMap<&str, &RawValue> = match serde_json::from_slice(line) {
            Ok(object) => object,
            // Names with escapes in them cannot be lent.
            Err(_) => return self.of_any_line(line),
        };
        self.pick(|name| object.get(name).map(|value| value.get()))
    }

    fn of_any_line(&self, line: &[u8]) -> anyhow::Result<OwnAttached> {
        let object: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_slice(line)?;
        self.pick(|name| object.get(name).map(|value| value.get()))
    }

    fn pick<'l>(&self, of: impl Fn(&str) -> Option<&'l str>) -> anyhow::Result<OwnAttached> {
        let mut attached = OwnAttached::default();
        if let Some(json) = self.value.as_deref().and_then(&of).filter(|json| *json != "null") {
            attached.value = match serde_json::from_str::<String>(json) {
                Ok(text) => text.into_bytes(),
                Err(_) => json.as_bytes().to_vec(),
            };
            ensure!(
                attached.value.len() <= VALUE_BYTES_MAX,
                "a value of {} bytes; at most {VALUE_BYTES_MAX} are kept",
                attached.value.len()
            );
        }
        if let Some(name) = &self.stamp {
            let json = of(name).ok_or_else(|| anyhow!("no field {name:?} (use --stamp-field NAME)"))?;
            let digits = json.trim_matches('"');
            let stamp = digits.parse().map_err(|_| {
                let shown: String = json.chars().take(40).collect();
                anyhow!("field {name:?}: expected a stamp, an integer from 0 to {}, found {shown}", u64::MAX)
            })?;
            attached.stamp = Some(stamp);
        }
        Ok(attached)
    }
}

impl AttachedArgs {
    pub(crate) fn fields(&self) -> AttachedFields {
        AttachedFields { value: self.value_field.clone(), stamp: self.stamp_field.clone() }
    }

    /// Refuses fields where there are no documents to have them.
    pub(crate) fn check_documents(&self, documents: bool) -> anyhow::Result<()> {
        if documents || !self.fields().any() {
            return Ok(());
        }
        Err(Usage::new("--value-field and --stamp-field are fields of documents; there are none here").into())
    }

    /// What a new index keeps beside sketches.
    pub(crate) fn apply(&self, params: &mut Params) -> anyhow::Result<()> {
        params.values = self.value_field.is_some();
        params.expire_after = self.expire_after;
        if self.stamp_field.is_some() != self.expire_after.is_some() {
            return Err(Usage::new("--stamp-field and --expire-after go together in a new index").into());
        }
        self.check_jump(params)
    }

    fn check_jump(&self, params: &Params) -> anyhow::Result<()> {
        if self.max_jump.is_some() && params.expire_after.is_none() {
            return Err(Usage::new("--max-jump is for an index in which documents expire").into());
        }
        Ok(())
    }

    /// Refuses options that contradict an index that is there.
    pub(crate) fn check(&self, path: &Path, params: &Params, documents: bool) -> anyhow::Result<()> {
        let path = path.display();
        if let Some(age) = self.expire_after {
            let kept = params.expire_after.map_or("none".to_owned(), |kept| kept.to_string());
            ensure!(
                params.expire_after == Some(age),
                "{path}: expire-after is {kept} in this index, --expire-after {age} was given; leave it out, or make \
                 another index"
            );
        }
        ensure!(
            self.value_field.is_none() || params.values,
            "{path}: no values are kept in this index; leave --value-field out, or make another index with it"
        );
        ensure!(
            self.stamp_field.is_none() || params.expire_after.is_some(),
            "{path}: nothing expires in this index; leave --stamp-field out, or make another index with --expire-after"
        );
        ensure!(
            !documents || params.expire_after.is_none() || self.stamp_field.is_some(),
            "{path}: documents of this index expire by their stamps; say with --stamp-field where those are"
        );
        self.check_jump(params)
    }

    pub(crate) fn configure(&self, writer: &mut Writer) {
        if let Some(jump) = self.max_jump {
            writer.set_max_jump(jump);
        }
    }
}

fn parse_age(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1_u64,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Err("expected a number, or one with s, m, h, d or w, for example 30d".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number, for example 30d".to_string())?;
    match number.checked_mul(unit) {
        Some(0) => Err("at least 1".into()),
        Some(age) => Ok(age),
        None => Err("too large".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_with_their_units() {
        for (text, age) in
            [("1", 1), ("90s", 90), ("5m", 300), ("2h", 7200), ("30d", 2_592_000), ("1w", 604_800)]
        {
            assert_eq!(parse_age(text), Ok(age), "{text}");
        }
        for bad in ["", "0", "0d", "d", "1y", "-1", "1.5h", "99999999999999999w"] {
            assert!(parse_age(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_and_stamps_are_taken_from_lines_as_they_stand() {
        let fields = AttachedFields { value: Some("v".into()), stamp: Some("t".into()) };
        let of =
            |line: &str| fields.of_line(line.as_bytes()).map(|found| (found.value, found.stamp.unwrap()));
        for (line, value, stamp) in [
            (r#"{"v":"a\nb","t":7}"#, "a\nb", 7),
            (r#"{"t":"8","v":{"x": [1, 2]}}"#, r#"{"x": [1, 2]}"#, 8),
            (r#"{"t":18446744073709551615,"v":1.50}"#, "1.50", u64::MAX),
            (r#"{"t":0,"v":null}"#, "", 0),
            (r#"{"\u0074":9,"text":"x"}"#, "", 9),
        ] {
            assert_eq!(of(line).unwrap(), (value.as_bytes().to_vec(), stamp), "{line}");
        }
        for (line, said) in [
            (r#"{"v":"a"}"#, "no field \"t\""),
            (r#"{"t":-1}"#, "found -1"),
            (r#"{"t":1.5}"#, "found 1.5"),
            (r#"{"t":"2020-01-01"}"#, "found \"2020-01-01\""),
            (r#"{"t":null}"#, "found null"),
        ] {
            assert!(of(line).unwrap_err().to_string().contains(said), "{line}");
        }
    }
}
