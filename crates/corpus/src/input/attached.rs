//! The value and the stamp of a document: the fields from which they are read, and the format of stamps.
//!
//! They are fields of a JSON object, columns of a table, or header fields of an archive record. A text file has none.

use anyhow::{anyhow, ensure};
use serde_json::value::RawValue;
use twindex::format::attached::VALUE_BYTES_MAX;
use twindex::{Document, Sketch};

use super::deciding::{DecidingValues, DecidingFields};

/// Maximum number of characters of an invalid stamp that a message shows.
const CHARACTERS_SHOWN: usize = 40;
/// Description of valid stamps in messages. An example follows it.
const STAMP: &str = "a stamp, an integer from 0 to 18446744073709551615, or a time since 1970 as";

/// The data of a document that options name: its value, its stamp, and the fields that affect which documents are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAttached {
    pub(super) value: Vec<u8>,
    pub(super) stamp: Option<u64>,
    pub(super) deciding: DecidingValues,
}

impl OwnAttached {
    /// Returns the values that affect which documents are kept.
    #[must_use]
    pub fn deciding(&self) -> &DecidingValues {
        &self.deciding
    }

    /// Returns a document with this sketch, the value and the stamp.
    pub fn with<'a>(&'a self, sketch: &'a Sketch) -> Document<'a> {
        Document::from(sketch).with_value(&self.value).with_stamp(self.stamp)
    }
}

/// The fields from which values, stamps, and the values that affect decisions are read.
#[derive(Clone, Debug, Default)]
pub struct AttachedFields {
    /// The name of the field, or column, with a document's value; `None` to read no values.
    pub value: Option<String>,
    /// The name of the field, or column, with a document's stamp; `None` to read no stamps.
    pub stamp: Option<String>,
    /// The fields that affect which documents are kept. [`Dedup`](crate::Dedup) sets them.
    pub deciding: DecidingFields,
}

impl AttachedFields {
    /// Returns whether any field is requested.
    #[must_use]
    pub fn any(&self) -> bool {
        self.value.is_some() || self.stamp.is_some() || self.deciding.any()
    }

    /// Returns the names of the options that request fields.
    pub(super) fn options(&self) -> Vec<&'static str> {
        let asked = [("--value-field", self.value.is_some()), ("--stamp-field", self.stamp.is_some())];
        let own = asked.into_iter().filter(|(_, asked)| *asked).map(|(option, _)| option);
        own.chain(self.deciding.options()).collect()
    }

    /// Returns the requested values of a JSON line.
    ///
    /// # Errors
    ///
    /// The stamp is missing or invalid.
    pub(super) fn of_json(&self, line: &[u8]) -> anyhow::Result<OwnAttached> {
        let object: std::collections::HashMap<&str, &RawValue> = match serde_json::from_slice(line) {
            Ok(object) => object,
            // Names with escapes cannot be borrowed, so the slower method is needed.
            Err(_) => return self.of_any_json(line),
        };
        self.pick_json(|name| object.get(name).map(|value| value.get()))
    }

    fn of_any_json(&self, line: &[u8]) -> anyhow::Result<OwnAttached> {
        let object: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_slice(line)?;
        self.pick_json(|name| object.get(name).map(|value| value.get()))
    }

    fn pick_json<'l>(&self, of: impl Fn(&str) -> Option<&'l str>) -> anyhow::Result<OwnAttached> {
        let value = self.value.as_deref().and_then(&of).filter(|json| *json != "null");
        let value = value.map(|json| {
            serde_json::from_str::<String>(json).map_or_else(|_| json.as_bytes().to_vec(), String::into_bytes)
        });
        let stamp = self.stamp.as_deref().and_then(&of);
        let own = self.take(value, stamp.map(|json| json.trim_matches('"').as_bytes()))?;
        Ok(OwnAttached { deciding: self.deciding.of_json(of)?, ..own })
    }

    /// Checks the value and the stamp read from the fields, and parses the stamp.
    ///
    /// # Errors
    ///
    /// The stamp is missing or invalid, or the value is too long.
    pub(super) fn take(&self, value: Option<Vec<u8>>, stamp: Option<&[u8]>) -> anyhow::Result<OwnAttached> {
        self.take_with(value, stamp, of_text, STAMP)
    }

    /// Like [`take`](Self::take), for the header of an archive record. `WARC-Date` may be shortened, down to the year.
    /// Only a complete time is accepted as a stamp, because a year alone would be taken for a number of seconds.
    pub(super) fn take_of_head(
        &self,
        value: Option<Vec<u8>>,
        stamp: Option<&[u8]>,
    ) -> anyhow::Result<OwnAttached> {
        let is_date = self.stamp.as_ref().is_some_and(|name| name.eq_ignore_ascii_case("WARC-Date"));
        if is_date {
            self.take_with(value, stamp, |text| of_time(text.trim()), "a time to the second as")
        } else {
            self.take_with(value, stamp, of_text, STAMP)
        }
    }

    fn take_with(
        &self,
        value: Option<Vec<u8>>,
        stamp: Option<&[u8]>,
        read: impl Fn(&str) -> Option<u64>,
        wanted: &str,
    ) -> anyhow::Result<OwnAttached> {
        let value = value.unwrap_or_default();
        let bytes = value.len();
        ensure!(bytes <= VALUE_BYTES_MAX, "a value of {bytes} bytes; at most {VALUE_BYTES_MAX} are kept");
        let Some(name) = &self.stamp else { return Ok(OwnAttached { value, ..OwnAttached::default() }) };
        let found = stamp.ok_or_else(|| anyhow!("no field {name:?} (use --stamp-field NAME)"))?;
        let stamp = std::str::from_utf8(found).ok().and_then(read).ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(found).chars().take(CHARACTERS_SHOWN).collect();
            anyhow!("field {name:?}: expected {wanted} 2026-01-31T12:00:00Z, found {shown:?}")
        })?;
        Ok(OwnAttached { value, stamp: Some(stamp), ..OwnAttached::default() })
    }
}

/// Parses a stamp: an integer, or a time in RFC 3339 format, which is converted to seconds since 1970.
fn of_text(text: &str) -> Option<u64> {
    let text = text.trim();
    text.parse().ok().or_else(|| of_time(text))
}

fn of_time(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?.iter();
        digits.copied().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let has = |at: usize, marks: &[u8]| bytes.get(at).is_some_and(|byte| marks.contains(byte));
    if !(has(4, b"-") && has(7, b"-") && has(10, b"Tt ") && has(13, b":") && has(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let lengths = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month).ok()?.checked_sub(1)?;
    // With leap seconds, a minute may have a 61st second.
    if day < 1 || day > *lengths.get(before)? || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut zone = text.get(19..)?;
    if let Some(fraction) = zone.strip_prefix('.') {
        zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if zone.len() == fraction.len() {
            return None;
        }
    }
    let at = text.len() - zone.len();
    let ahead = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    // Number of leap days from 1970 to the start of the year.
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let days =
        (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + lengths[..before].iter().sum::<i64>() + day - 1;
    u64::try_from(((days * 24 + hour) * 60 + minute - ahead) * 60 + second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_stamps_are_copied_verbatim_from_lines() {
        let fields = AttachedFields { value: Some("v".into()), stamp: Some("t".into()), ..Default::default() };
        let of =
            |line: &str| fields.of_json(line.as_bytes()).map(|found| (found.value, found.stamp.unwrap()));
        for (line, value, stamp) in [
            (r#"{"v":"a\nb","t":7}"#, "a\nb", 7),
            (r#"{"t":"8","v":{"x": [1, 2]}}"#, r#"{"x": [1, 2]}"#, 8),
            (r#"{"t":18446744073709551615,"v":1.50}"#, "1.50", u64::MAX),
            (r#"{"t":"1970-01-02T00:00:01Z","v":null}"#, "", 86_401),
            (r#"{"\u0074":9,"text":"x"}"#, "", 9),
        ] {
            assert_eq!(of(line).unwrap(), (value.as_bytes().to_vec(), stamp), "{line}");
        }
        for (line, said) in [
            (r#"{"v":"a"}"#, "no field \"t\""),
            (r#"{"t":-1}"#, "found \"-1\""),
            (r#"{"t":1.5}"#, "found \"1.5\""),
            (r#"{"t":"2020-01-01"}"#, "found \"2020-01-01\""),
            (r#"{"t":null}"#, "found \"null\""),
        ] {
            assert!(of(line).unwrap_err().to_string().contains(said), "{line}");
        }
    }

    #[test]
    fn record_date_is_a_stamp_only_if_it_is_complete() {
        let of = |name: &str, stamp: &str| {
            let fields = AttachedFields { stamp: Some(name.into()), ..Default::default() };
            fields.take_of_head(None, Some(stamp.as_bytes())).map(|found| found.stamp.unwrap())
        };
        for name in ["WARC-Date", "warc-date"] {
            assert_eq!(of(name, "2016-12-09T14:22:31Z").unwrap(), 1_481_293_351);
            for short in ["2016", "2016-05", "2016-05-01", "2016-05-01T12:00Z"] {
                let said = of(name, short).unwrap_err().to_string();
                assert!(said.contains("a time to the second") && said.contains(short), "{said}");
            }
        }
        assert_eq!(of("X-Stamp", "2016").unwrap(), 2016);
    }

    /// The expected numbers are the output of `date -u -d TIME +%s`.
    #[test]
    fn times_are_seconds_since_1970() {
        for (time, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2016-12-09T14:22:31Z", 1_481_293_351),
            ("2100-03-01 00:00:00z", 4_107_542_400),
            ("2026-11-22T18:30:00.250+02:00", 1_795_365_000),
            ("2026-11-22t18:30:00-09:30", 1_795_406_400),
            ("1970-01-01T00:30:00+00:30", 0),
            (" 17 ", 17),
        ] {
            assert_eq!(of_text(time), Some(seconds), "{time}");
        }
        for bad in [
            "",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "2026-01-01T00:00:0üZ",
            "+2026-1-01T00:00:00Z",
        ] {
            assert_eq!(of_text(bad), None, "{bad}");
        }
    }
}
