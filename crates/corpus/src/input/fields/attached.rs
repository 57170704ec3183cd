//! The value and the stamp of a document, which an index stores, and the fields from which they are read.
//!
//! Both are in fields of a JSON object, columns of a table, or header fields of an archive record. Text files have no
//! such fields.

use std::borrow::Cow;

use anyhow::{anyhow, ensure};
use serde_json::value::RawValue;
use twindex::Document;
use twindex::format::attached::VALUE_BYTES_MAX;

use crate::input::fields::deciding::{DecidingFields, DecidingValues};
use crate::input::fields::names::FieldPath;
use crate::input::fields::number::{FieldValue, MissingField, TIME};
use crate::input::jsonl::nested;

/// Maximum number of characters of an invalid stamp that a message shows.
const CHARACTERS_SHOWN: usize = 40;

/// The requested data of a document, except key and text: its value, its stamp, and the values that affect which
/// documents are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAttached {
    pub(crate) value: Vec<u8>,
    pub(crate) stamp: Option<u64>,
    pub(crate) deciding: DecidingValues,
    /// The optional fields that the record has.
    pub(crate) has: HasField,
}

/// The optional fields that a record has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HasField {
    pub(crate) value: bool,
    pub(crate) url: bool,
}

impl OwnAttached {
    /// Returns the values that affect which documents are kept.
    #[must_use]
    pub fn deciding(&self) -> &DecidingValues {
        &self.deciding
    }

    /// Returns a document for an index: this sketch or fingerprint, with the value and the stamp.
    pub fn with<'a>(&'a self, content: impl Into<Document<'a>>) -> Document<'a> {
        content.into().with_value(&self.value).with_stamp(self.stamp)
    }
}

/// Names the fields of the value, of the stamp, and of the values that affect which documents are kept.
#[derive(Clone, Debug, Default)]
pub struct AttachedFields {
    /// The name of the field, or column, with a document's value; `None` to read no values.
    pub value: Option<String>,
    /// The name of the field, or column, with a document's stamp; `None` to read no stamps.
    pub stamp: Option<String>,
    /// The fields that affect which documents are kept. [`Dedup`](crate::settings::job::Dedup) sets them.
    pub deciding: DecidingFields,
}

impl AttachedFields {
    /// Returns whether any field is requested.
    #[must_use]
    pub fn any(&self) -> bool {
        self.value.is_some() || self.stamp.is_some() || self.deciding.any()
    }

    /// Returns the names of the options that request fields.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let asked = [("--value-field", self.value.is_some()), ("--stamp-field", self.stamp.is_some())];
        let own = asked.into_iter().filter(|(_, asked)| *asked).map(|(option, _)| option);
        own.chain(self.deciding.options()).collect()
    }

    /// Returns the values of the requested fields of a JSON line.
    ///
    /// # Errors
    ///
    /// A field is missing or invalid.
    pub(crate) fn of_json(&self, line: &str) -> anyhow::Result<OwnAttached> {
        let AttachedFields { value, stamp, deciding } = self;
        let names = [value, stamp, &deciding.inside, &deciding.url].map(Option::as_deref);
        let names: Vec<_> =
            names.into_iter().chain(deciding.names()).map(|name| name.map(FieldPath::of)).collect();
        let found = nested::select_single(line, &names)
            .map_err(|error| anyhow!(nested::select_error(line, &error)))?;
        let found: Vec<_> = found.into_iter().map(|value| value.map(RawValue::get)).collect();
        let [value, stamp, inside, url, ref numbers @ ..] = found[..] else {
            return Ok(OwnAttached::default());
        };
        let is_null = |json: &&str| *json == "null";
        let has = HasField { value: value.is_some(), url: url.is_some() };
        let value = value.filter(|json| !is_null(json)).map(|json| {
            serde_json::from_str::<String>(json).map_or_else(|_| json.as_bytes().to_vec(), String::into_bytes)
        });
        let stamp = stamp.filter(|json| !is_null(json));
        let read = stamp.and_then(FieldValue::of_json);
        let stamp = read.or_else(|| stamp.map(|json| FieldValue::TimeText(json.into())));
        let own = self.take(value, stamp)?;
        Ok(OwnAttached { deciding: deciding.of_json(numbers, [inside, url])?, has, ..own })
    }

    /// Checks the length of the value, and parses the stamp.
    ///
    /// # Errors
    ///
    /// The stamp is missing or invalid, or the value is too long.
    pub(crate) fn take(
        &self,
        value: Option<Vec<u8>>,
        stamp: Option<FieldValue<'_>>,
    ) -> anyhow::Result<OwnAttached> {
        let has = HasField { value: value.is_some(), url: false };
        let value = value.unwrap_or_default();
        let bytes = value.len();
        ensure!(bytes <= VALUE_BYTES_MAX, "a value of {bytes} bytes; at most {VALUE_BYTES_MAX} are kept");
        let Some(name) = &self.stamp else { return Ok(OwnAttached { value, has, ..OwnAttached::default() }) };
        let found =
            stamp.ok_or_else(|| MissingField(format!("no field {name:?} (use --stamp-field NAME)")))?;
        let stamp = found.stamp().ok_or_else(|| {
            let shown: String = found.to_string().chars().take(CHARACTERS_SHOWN).collect();
            let integer = match found {
                FieldValue::Text(_) => "an integer from 0 to 18446744073709551615, or ",
                FieldValue::TimeText(_) | FieldValue::Time(_) => "",
            };
            anyhow!("field {name:?}: expected a stamp, {integer}{TIME}, from 1970 on, found {shown:?}")
        })?;
        Ok(OwnAttached { value, stamp: Some(stamp), has, ..OwnAttached::default() })
    }

    /// Returns the requested values of a record header. `field` returns the value of the header field with a name.
    /// `is_time` returns whether that field contains a time, and `time` formats the time. A time may be only a year, so
    /// times are never parsed as numbers.
    ///
    /// # Errors
    ///
    /// The errors of [`of_json`](Self::of_json).
    pub(crate) fn of_header<'h>(
        &self,
        field: impl Fn(&str) -> Option<&'h [u8]>,
        is_time: impl Fn(&str) -> bool,
        time: impl Fn(&'h [u8]) -> Cow<'h, str>,
    ) -> anyhow::Result<OwnAttached> {
        let find = |name: Option<&str>| {
            let path = FieldPath::of(name?);
            path.flat_names().find_map(|name| Some((field(name)?, is_time(name))))
        };
        let bytes = |name: &Option<String>| find(name.as_deref()).map(|(bytes, _)| bytes);
        let number = |name: Option<&str>| {
            find(name).map(|(bytes, is_time)| {
                if is_time { FieldValue::TimeText(time(bytes)) } else { FieldValue::of_bytes(bytes) }
            })
        };
        let AttachedFields { value, stamp, deciding } = self;
        let own = self.take(bytes(value).map(<[u8]>::to_vec), number(stamp.as_deref()))?;
        let url = bytes(&deciding.url);
        let has = HasField { url: url.is_some(), ..own.has };
        let numbers: Vec<_> = deciding.names().map(number).collect();
        let deciding = deciding.of_text(&numbers, bytes(&deciding.inside), url)?;
        Ok(OwnAttached { deciding, has, ..own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_stamps_are_read_from_fields_paths_and_pointers() {
        let of = |value: &str, stamp: &str, line: &str| {
            let fields =
                AttachedFields { value: Some(value.into()), stamp: Some(stamp.into()), ..Default::default() };
            fields.of_json(line).map(|found| (found.value, found.stamp.unwrap()))
        };
        for (line, value, stamp) in [
            (r#"{"v":"a\nb","t":7}"#, "a\nb", 7),
            (r#"{"t":"8","v":{"x": [1, 2]}}"#, r#"{"x": [1, 2]}"#, 8),
            (r#"{"t":18446744073709551615,"v":1.50}"#, "1.50", u64::MAX),
            (r#"{"t":"1970-01-02T00:00:01Z","v":null}"#, "", 86_401),
            (r#"{"t":"1970-01-02"}"#, "", 86_400),
            (r#"{"\u0074":9,"text":"x"}"#, "", 9),
            (r#"{"t":{"$numberLong":"10"}}"#, "", 10),
            (r#"{"t":{"$date":"1970-01-02T00:00:00Z"}}"#, "", 86_400),
            (r#"{"t":{"$date":{"$numberLong":"11999"}}}"#, "", 11),
            (r#"{"t":{"$date":12000}}"#, "", 12),
        ] {
            assert_eq!(of("v", "t", line).unwrap(), (value.as_bytes().to_vec(), stamp), "{line}");
        }
        let line = r#"{"m":{"v":"inside","t":[5,"1970-01-01 00:00:06"]},"m.v":"plain"}"#;
        assert_eq!(of("m.v", "m.t.0", line).unwrap(), (b"plain".to_vec(), 5));
        assert_eq!(of("/m/v", "/m/t/1", line).unwrap(), (b"inside".to_vec(), 6));
        for (line, said) in [
            (r#"{"v":"a"}"#, "no field \"t\""),
            (r#"{"t":-1}"#, "found \"-1\""),
            (r#"{"t":1.5}"#, "found \"1.5\""),
            (r#"{"t":"1969-12-31"}"#, "found \"1969-12-31\""),
            (r#"{"t":{"$date":"1970"}}"#, "expected a stamp, a time such as"),
            (r#"{"t":{"$numberLong":"1","x":2}}"#, "found \"{"),
            (r#"{"t":true}"#, "found \"true\""),
            (r#"{"t":null}"#, "no field \"t\""),
            (r#"{"t":1,"t":2}"#, "the field \"t\" is repeated in the object"),
        ] {
            let found = of("v", "t", line).unwrap_err().to_string();
            assert!(found.contains(said), "{line}: {found}");
        }
    }

    #[test]
    fn shortened_date_of_a_record_is_no_number() {
        let of = |name: &str, stamp: &'static str| {
            let fields = AttachedFields { stamp: Some(name.into()), ..Default::default() };
            let is_time = |name: &str| name.eq_ignore_ascii_case("WARC-Date");
            let field = |name: &str| (!name.starts_with('/')).then_some(stamp.as_bytes());
            let found = fields.of_header(field, is_time, String::from_utf8_lossy);
            found.map(|found| found.stamp.unwrap())
        };
        for name in ["WARC-Date", "warc-date", "/WARC-Date"] {
            assert_eq!(of(name, "2016-12-09T14:22:31Z").unwrap(), 1_481_293_351);
            assert_eq!(of(name, "2016-12-09").unwrap(), 1_481_241_600);
            for short in ["2016", "2016-05"] {
                let said = of(name, short).unwrap_err().to_string();
                assert!(said.contains("expected a stamp, a time") && said.contains(short), "{said}");
            }
        }
        assert_eq!(of("X-Stamp", "2016").unwrap(), 2016);
    }
}
