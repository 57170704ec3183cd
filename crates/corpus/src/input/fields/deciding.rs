//! The fields that affect which documents are kept. Some have numbers, times or values that determine the order of
//! documents (`--keep max:FIELD`). Another has a value that two documents must share to be compared (`--inside`).

use anyhow::{anyhow, ensure};

use crate::input::fields::keep::Keep;
use crate::input::fields::number::{FieldNumber, FieldValue, MissingField, NUMBER_TYPE, TIME};
use crate::urls::parts::Parts;

/// Maximum number of characters of an invalid field that a message shows.
const CHARACTERS_SHOWN: usize = 40;
/// Maximum length of a value of an `--inside` field in bytes.
const INSIDE_BYTES_MAX: usize = 64 << 10;
/// The names of the fields that affect which documents are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecidingFields {
    /// The rules that determine the order of documents. Some compare fields, or columns.
    pub keep: Vec<Keep>,
    /// The name of the field, or column, with the value that two documents must share to be compared.
    pub inside: Option<String>,
    /// Whether the number of the single rule is stored in an index as the priority of the document.
    pub is_priority: bool,
    /// The name of the field, or column, with the URL; if `None`, the key is used as the URL.
    pub url: Option<String>,
    /// The part of the URL that two documents must share to be compared. Used instead of `inside`.
    pub inside_url: Option<UrlPart>,
    /// Whether the documents belong to a history. They precede all other documents, so they need no numbers.
    pub is_history: bool,
}

/// The values of a document that affect which documents are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecidingValues {
    /// The number that each rule in [`DecidingFields::keep`] compares; 0 for rules that compare no field and no URL.
    /// Empty if no rule does, and for documents of a history.
    pub numbers: Vec<DecidingNumber>,
    /// The value that two documents must share to be compared. Empty if and only if no value is requested.
    pub inside: Vec<u8>,
    /// The URL; empty if no field is named, or if the document has no URL.
    pub url: Vec<u8>,
}

/// The number of a document that a rule compares: a number or time in a field, the place of a value in a list, or a
/// property of the URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecidingNumber {
    /// The number. A time is converted to seconds since 1970.
    pub number: FieldNumber,
    /// Whether the number is a time.
    pub is_time: bool,
}

/// The part of the URL that two documents must share to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlPart {
    /// The host, and the port if it is not the default port of the scheme.
    Host,
    /// The registrable domain of the host.
    Domain,
}

/// Parses the argument of `--inside`: `host` and `domain` are parts of the URL, `field:NAME` is a field with any name,
/// and any other text is the name of a field.
#[must_use]
pub fn inside_of(named: Option<&str>) -> (Option<String>, Option<UrlPart>) {
    match named {
        Some("host") => (None, Some(UrlPart::Host)),
        Some("domain") => (None, Some(UrlPart::Domain)),
        Some(field) => (Some(field.strip_prefix("field:").unwrap_or(field).to_owned()), None),
        None => (None, None),
    }
}

impl DecidingFields {
    /// Returns whether any field is requested.
    pub(crate) fn any(&self) -> bool {
        self.reads_numbers() || self.inside.is_some() || self.url.is_some() || self.inside_url.is_some()
    }

    /// Returns whether a rule compares a field or a URL.
    pub(crate) fn reads_numbers(&self) -> bool {
        self.keep.iter().any(|rule| rule.field().is_some() || rule.is_of_url())
    }

    /// Returns the rules whose numbers are read: none of documents of a history.
    pub(crate) fn read(&self) -> &[Keep] {
        if self.is_history { &[] } else { &self.keep }
    }

    /// Returns the field that each rule compares; `None` for rules that compare none. Empty if no field is read.
    pub(crate) fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.read().iter().map(Keep::field)
    }

    /// Returns whether a rule compares the canonical links of pages.
    pub(crate) fn reads_links(&self) -> bool {
        self.read().contains(&Keep::Canonical)
    }

    /// Returns which rules found a number in their field, and which found a time: bit `i` is rule `i`.
    pub(crate) fn kinds(&self, found: &DecidingValues) -> [u32; 2] {
        let mut kinds = [0; 2];
        for (at, (name, value)) in self.names().zip(&found.numbers).enumerate() {
            kinds[usize::from(value.is_time)] |= u32::from(name.is_some()) << at;
        }
        kinds
    }

    /// Returns the name of the option that requests the numbers.
    pub(crate) fn number_option(&self) -> &'static str {
        if self.is_priority { "--priority-field" } else { "--keep" }
    }

    /// Returns the purpose of a number, for the error message if the number is missing.
    fn purpose(&self) -> &'static str {
        if self.is_priority { PRIORITY } else { NUMBER }
    }

    /// Returns the names of the options that request fields.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let inside = self.inside.is_some() || self.inside_url.is_some();
        let asked = [
            (self.number_option(), self.reads_numbers()),
            ("--inside", inside),
            ("--url-field", self.url.is_some()),
        ];
        asked.into_iter().filter(|(_, asked)| *asked).map(|(option, _)| option).collect()
    }

    /// Returns the values of a document. `numbers` returns the JSON of the field of each rule, and `others` has the JSON
    /// of the `--inside` value and of the URL.
    ///
    /// # Errors
    ///
    /// A field is missing or invalid; the message names it.
    pub(crate) fn of_json(
        &self,
        numbers: &[Option<&str>],
        others: [Option<&str>; 2],
    ) -> anyhow::Result<DecidingValues> {
        let [inside, url] = others.map(given);
        let number = |at: usize, name: &str, rule: &Keep| {
            let json =
                numbers.get(at).copied().and_then(given).ok_or_else(|| missing(name, self.purpose()))?;
            if let Keep::Rank(..) = rule {
                let value = plain_value(json)?.ok_or_else(|| wrong(name, VALUE_TYPE, json))?;
                return Ok(DecidingNumber { number: rule.place(value.as_bytes()), is_time: false });
            }
            let read =
                FieldValue::of_json(json).map_or_else(|| Err(NUMBER_TYPE.to_owned()), |value| value.number());
            let (number, is_time) = read.map_err(|expected| wrong(name, &number_or_time(&expected), json))?;
            Ok(DecidingNumber { number, is_time })
        };
        let mut found = DecidingValues { numbers: self.numbers(number)?, ..DecidingValues::default() };
        if let Some(name) = &self.inside {
            let json = inside.ok_or_else(|| missing(name, INSIDE))?;
            found.inside = plain_value(json)?.ok_or_else(|| wrong(name, VALUE_TYPE, json))?.into_bytes();
            check_inside(name, &found.inside)?;
        }
        if let (Some(name), Some(json)) = (&self.url, url) {
            let is_string = json.starts_with('"');
            ensure!(is_string, wrong(name, "a string with a URL", json));
            found.url = serde_json::from_str::<String>(json)?.into_bytes();
            check_url(name, &found.url)?;
        }
        Ok(found)
    }

    /// Returns the number of each rule, by `number` for a rule with a field; see [`DecidingValues::numbers`].
    fn numbers(
        &self,
        number: impl Fn(usize, &str, &Keep) -> anyhow::Result<DecidingNumber>,
    ) -> anyhow::Result<Vec<DecidingNumber>> {
        if !self.reads_numbers() {
            return Ok(Vec::new());
        }
        let of = |(at, rule): (usize, &Keep)| {
            rule.field().map_or(Ok(DecidingNumber::default()), |name| number(at, name, rule))
        };
        self.read().iter().enumerate().map(of).collect()
    }

    /// Sets the values that are derived from the URL: `found.inside` if compared documents must share a part of it, and
    /// the numbers of rules that compare URLs. The URL is `found.url` if a URL field is named, and `key` otherwise.
    /// `link` is the canonical link of the page.
    ///
    /// # Errors
    ///
    /// The URL is invalid.
    pub(crate) fn take_url(
        &self,
        key: &[u8],
        link: Option<&str>,
        found: &mut DecidingValues,
    ) -> anyhow::Result<()> {
        let of_url = self.read().iter().find(|rule| rule.is_of_url());
        let purpose = match (self.inside_url, of_url) {
            (Some(_), _) => "--inside host or domain".to_owned(),
            (None, Some(rule)) => format!("{} {rule}", self.number_option()),
            (None, None) => return Ok(()),
        };
        let url = if self.url.is_some() { &found.url[..] } else { key };
        let parts = std::str::from_utf8(url).ok().and_then(Parts::parse);
        let parts = parts.ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(url).chars().take(CHARACTERS_SHOWN).collect();
            let what = if self.url.is_some() { "--url-field" } else { "the key" };
            anyhow!("{what}: expected a URL, http://host/..., for {purpose}, found {shown:?}")
        })?;
        for (rule, value) in self.read().iter().zip(&mut found.numbers) {
            if rule.is_of_url() {
                value.number = number_of_url(rule, url.trim_ascii(), &parts, link);
            }
        }
        found.inside = match self.inside_url {
            None => return Ok(()),
            Some(UrlPart::Host) => parts.authority().into_owned(),
            Some(UrlPart::Domain) => twindex_domain::domain(&parts.host).to_owned(),
        }
        .into_bytes();
        Ok(())
    }

    /// Returns the values of a table row or a record header, whose fields are text.
    ///
    /// # Errors
    ///
    /// The errors of [`of_json`](Self::of_json).
    pub(crate) fn of_text(
        &self,
        numbers: &[Option<FieldValue<'_>>],
        inside: Option<&[u8]>,
        url: Option<&[u8]>,
    ) -> anyhow::Result<DecidingValues> {
        let number = |at: usize, name: &str, rule: &Keep| {
            let value = numbers.get(at).and_then(Option::as_ref);
            let value =
                value.filter(|value| !matches!(value, FieldValue::Text(text) if text.trim().is_empty()));
            let value = value.ok_or_else(|| missing(name, self.purpose()))?;
            if let Keep::Rank(..) = rule {
                return Ok(DecidingNumber {
                    number: rule.place(value.to_string().as_bytes()),
                    is_time: false,
                });
            }
            let (number, is_time) = value.number().map_err(|expected| {
                wrong(name, &number_or_time(&expected), &format!("{:?}", value.to_string().trim()))
            })?;
            Ok(DecidingNumber { number, is_time })
        };
        let mut found = DecidingValues { numbers: self.numbers(number)?, ..DecidingValues::default() };
        if let Some(name) = &self.inside {
            found.inside = inside.unwrap_or_default().to_vec();
            check_inside(name, &found.inside)?;
        }
        if let (Some(name), Some(url)) = (&self.url, url) {
            found.url = url.to_vec();
            check_url(name, &found.url)?;
        }
        Ok(found)
    }
}

/// The values that `--inside` and [`Keep::Rank`] compare.
const VALUE_TYPE: &str = "a string, an integer or a boolean";
/// The purpose of the number field. The message that the field is missing ends with it.
const NUMBER: &str = "for --keep";
/// The purpose of the priority field. The message that the field is missing ends with it.
const PRIORITY: &str = "for --priority-field";
/// The purpose of the `--inside` field. The message that the field is missing ends with it.
const INSIDE: &str = "for --inside";

/// Returns the expected format of the number field, for a message. Where a number is expected, a time is valid, too.
fn number_or_time(expected: &str) -> String {
    if expected == NUMBER_TYPE { format!("{NUMBER_TYPE} or {TIME}") } else { expected.to_owned() }
}

/// Returns the JSON without surrounding white space; `None` if it is null.
fn given(json: Option<&str>) -> Option<&str> {
    json.map(str::trim).filter(|json| *json != "null")
}

/// Returns the text of a JSON string, integer or boolean, or of a number or date in `MongoDB`'s extended JSON; `None` for
/// other JSON.
fn plain_value(json: &str) -> anyhow::Result<Option<String>> {
    if json.starts_with('"') {
        return Ok(Some(serde_json::from_str(json)?));
    }
    if json.starts_with('{') {
        return Ok(FieldValue::of_json(json).map(|value| value.to_string()));
    }
    let is_integer = json.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Ok((is_integer || ["true", "false"].contains(&json)).then(|| json.to_owned()))
}

/// Returns the number that a rule compares of a URL. `link` is the canonical link of the page.
fn number_of_url(rule: &Keep, url: &[u8], parts: &Parts<'_>, link: Option<&str>) -> FieldNumber {
    let number = match rule {
        Keep::Https => usize::from(parts.scheme != "https"),
        Keep::Canonical => match link.map(|link| parts.is_named_by(link)) {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        },
        _ => url.len(),
    };
    FieldNumber::integer(number as i128).unwrap_or_default()
}

fn missing(name: &str, purpose: &str) -> anyhow::Error {
    MissingField(format!("no field {name:?} {purpose}: give each document one")).into()
}

fn wrong(name: &str, expected: &str, found: &str) -> anyhow::Error {
    let shown: String = found.chars().take(CHARACTERS_SHOWN).collect();
    let dots = if shown.len() < found.len() { " ..." } else { "" };
    anyhow!("field {name:?}: expected {expected}, found {shown}{dots}")
}

/// Returns an error if a value is empty or too long to be stored. All documents without a value would share the empty
/// value.
fn check_inside(name: &str, value: &[u8]) -> anyhow::Result<()> {
    ensure!(!value.is_empty(), "field {name:?} {INSIDE} is empty: give each document a value");
    let bytes = value.len();
    ensure!(
        bytes <= INSIDE_BYTES_MAX,
        "field {name:?} {INSIDE}: a value of {bytes} bytes; expected at most {INSIDE_BYTES_MAX}"
    );
    Ok(())
}

/// Returns an error if a URL is too long to be stored.
fn check_url(name: &str, url: &[u8]) -> anyhow::Result<()> {
    let bytes = url.len();
    ensure!(
        bytes <= INSIDE_BYTES_MAX,
        "field {name:?}: a URL of {bytes} bytes; expected at most {INSIDE_BYTES_MAX}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_value() {
        let ascending = [
            "-1e300",
            "-83076749736557242056487941267521535",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-1e-300",
            "0",
            "0.5",
            "1",
            "9007199254740992",
            "9007199254740993",
            "9007199254740994",
            "18446744073709551615",
            "18446744073709551616",
            "83076749736557242056487941267521535",
            "1e300",
        ];
        let numbers: Vec<FieldNumber> =
            ascending.iter().map(|text| FieldNumber::parse(text).unwrap()).collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
        for (text, number) in ascending.iter().zip(&numbers) {
            if !text.contains('e') {
                assert_eq!(number.to_string(), *text);
            }
            assert_eq!(FieldNumber::from_bytes(number.to_bytes()), *number);
        }
        for (one, other) in [("1", "1.0"), ("-0", "0"), ("-0.0", "0"), ("1e3", "1000"), ("+7", "7")] {
            assert_eq!(FieldNumber::parse(one), FieldNumber::parse(other), "{one} {other}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        for text in ["", "-", "+", "nan", "NaN", "inf", "-Infinity", "1e999", "1,5", "0x10", "1 2", "ü", "e"]
        {
            assert!(FieldNumber::parse(text).is_err(), "{text}");
        }
        assert!(FieldNumber::parse("83076749736557242056487941267521536").unwrap_err().contains("2^116"));
        assert_eq!((FieldNumber::float(f64::NAN), FieldNumber::float(f64::INFINITY)), (None, None));
        assert_eq!((FieldNumber::integer(i128::MIN), FieldNumber::integer(1 << 116)), (None, None));
    }

    #[test]
    fn missing_and_wrong_fields_are_reported_with_the_value_found() {
        let fields = DecidingFields {
            keep: vec![Keep::Max("score".into())],
            inside: Some("lang".into()),
            ..Default::default()
        };
        let of = |score: Option<&'static str>, lang: Option<&'static str>| {
            fields.of_json(&[score], [lang, None]).map_err(|error| error.to_string())
        };
        let inside = |lang| of(Some("1"), Some(lang)).map(|found| found.inside);
        assert_eq!(inside(r#""a\u0062""#), Ok(b"ab".to_vec()));
        assert_eq!((inside("7"), inside("true")), (Ok(b"7".to_vec()), Ok(b"true".to_vec())));
        for (score, lang, part) in [
            (None, Some("1"), "no field \"score\" for --keep"),
            (Some("null"), Some("1"), "no field \"score\""),
            (Some("\"x\""), Some("1"), "field \"score\": expected a number or a time such as"),
            (Some("\"03/01/2026\""), Some("1"), "found \"03/01/2026\""),
            (Some("[1]"), Some("1"), "found [1]"),
            (Some("{\"a\":1}"), Some("1"), "found {\"a\":1}"),
            (Some("1"), None, "no field \"lang\" for --inside"),
            (Some("1"), Some("\"\""), "field \"lang\" for --inside is empty"),
            (Some("1"), Some("1.5"), "expected a string, an integer or a boolean, found 1.5"),
            (Some("1"), Some("{}"), "found {}"),
        ] {
            let said = of(score, lang).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
        let of_text = |score: &'static str, lang: &str| {
            fields.of_text(&[Some(FieldValue::Text(score.into()))], Some(lang.as_bytes()), None)
        };
        assert_eq!(of_text(" 2.5 ", "de").unwrap().numbers[0].number, FieldNumber::parse("2.5").unwrap());
        for (score, lang, part) in
            [("", "de", "no field \"score\""), ("NaN", "de", "found \"NaN\""), ("1", "", "is empty")]
        {
            let said = of_text(score, lang).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn numbers_strings_times_and_extended_json_have_the_same_order_everywhere() {
        let fields = DecidingFields { keep: vec![Keep::Max("n".into())], ..Default::default() };
        let of_json = |json: &'static str| fields.of_json(&[Some(json)], [None; 2]).unwrap();
        let of_text =
            |text: &'static str| fields.of_text(&[Some(FieldValue::Text(text.into()))], None, None).unwrap();
        for (json, text) in [
            ("9", "9"),
            ("\"9\"", "9"),
            ("{\"$numberLong\":\"9\"}", "9"),
            ("{\"$numberDouble\": \"9.5\"}", "9.5"),
            ("\"2026-01-03\"", "2026-01-03T00:00:00Z"),
            ("\"2026-01-03 01:00:00+01:00\"", "2026-01-03"),
            ("{\"$date\":\"2026-01-03T00:00:00Z\"}", "2026-01-03"),
            ("{\"$date\":{\"$numberLong\":\"1767398400000\"}}", "2026-01-03"),
        ] {
            assert_eq!(of_json(json), of_text(text), "{json}");
            assert_eq!(of_json(json).numbers[0].is_time, text.contains('-'), "{json}");
        }
        assert!(of_text("2026-01-03").numbers[0].number < of_text("2026-01-03 00:00:00.5").numbers[0].number);
        let inside = DecidingFields { inside: Some("n".into()), ..Default::default() };
        let of = |json| inside.of_json(&[], [Some(json), None]).map(|found| found.inside);
        assert_eq!(of("{\"$numberLong\":\"9\"}").unwrap(), b"9");
        assert_eq!(of("{\"$date\":\"2026-01-03\"}").unwrap(), b"2026-01-03");
        assert_eq!(of("{\"$date\":0}").unwrap(), b"1970-01-01T00:00:00Z");
        assert!(of("{\"x\":0}").is_err());
    }

    #[test]
    fn documents_are_compared_within_hosts_or_domains_of_their_urls() {
        let of = |named: &str, url: Option<&str>, key: &str| {
            let (inside, inside_url) = inside_of(Some(named));
            assert!(inside.is_none());
            let fields = DecidingFields { inside_url, url: url.map(|_| "u".into()), ..Default::default() };
            let mut found = fields.of_json(&[], [None, url])?;
            fields.take_url(key.as_bytes(), None, &mut found)?;
            anyhow::Ok(String::from_utf8(found.inside)?)
        };
        let key = "http://www.Shop.example.co.uk:8080/a";
        assert_eq!(of("host", None, key).unwrap(), "www.shop.example.co.uk:8080");
        assert_eq!(of("domain", None, key).unwrap(), "example.co.uk");
        assert_eq!(of("host", Some("\"https://a.b/\""), "7").unwrap(), "a.b");
        for (url, key, part) in [
            (
                None,
                "page 7",
                "the key: expected a URL, http://host/..., for --inside host or domain, found \"page 7\"",
            ),
            (Some("7"), "7", "field \"u\": expected a string with a URL, found 7"),
            (Some("\"x\""), "http://a.b/", "--url-field: expected a URL"),
            (Some("null"), "http://a.b/", "--url-field: expected a URL"),
        ] {
            let said = of("domain", url, key).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(inside_of(Some("field:host")), (Some("host".into()), None));
        assert_eq!(inside_of(Some("lang")), (Some("lang".into()), None));
    }

    #[test]
    fn documents_of_a_history_need_no_number() {
        let fields =
            DecidingFields { keep: vec![Keep::Max("score".into())], is_history: true, ..Default::default() };
        assert_eq!(fields.of_json(&[], [None; 2]).unwrap(), DecidingValues::default());
    }
}
