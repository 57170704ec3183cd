//! The value of a field that may be a number or a time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde_json::value::RawValue;

use super::field_number::FieldNumber;
use super::times::Time;

/// An example of a time in messages.
pub(super) const TIME: &str = "a time such as 2026-01-31 or 2026-01-31T12:00:00Z";

/// A number or a time as found in a field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldValue<'v> {
    /// A number or a time as text.
    Text(Cow<'v, str>),
    /// A time as text, which is no time if it is only a number.
    TimeText(Cow<'v, str>),
    Time(Time),
}

impl<'v> FieldValue<'v> {
    /// Returns the value of a cell of a table, of a header field or of a folder name.
    pub(super) fn of_bytes(bytes: &'v [u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes))
    }

    /// Returns the value of a JSON number, of a string, or of a number or date of `MongoDB`'s extended JSON,
    /// `{"$numberLong": "9"}`; `None` for other values.
    pub(super) fn of_json(json: &'v str) -> Option<Self> {
        if let Some(text) = scalar(json) {
            return Some(Self::Text(text));
        }
        let (name, value) = only_member(json)?;
        if name != "$date" {
            return scalar(value).filter(|_| NUMBER_TYPES.contains(&&*name)).map(Self::Text);
        }
        if value.starts_with('"') {
            return scalar(value).map(Self::TimeText);
        }
        // A number of milliseconds, which may be an object itself: `{"$date": {"$numberLong": "9"}}`.
        let inner = only_member(value).filter(|(name, _)| NUMBER_TYPES.contains(&&**name));
        let milliseconds = scalar(inner.map_or(value, |(_, value)| value))?.parse().ok()?;
        Some(Self::Time(Time::of_units(milliseconds, 1_000)))
    }

    /// Returns the number of seconds since 1970, or the integer, if it can be a stamp.
    pub(super) fn stamp(&self) -> Option<u64> {
        match self {
            Self::Text(text) => text.trim().parse().ok().or_else(|| Time::parse(text)?.stamp()),
            Self::TimeText(text) => Time::parse(text)?.stamp(),
            Self::Time(time) => time.stamp(),
        }
    }

    /// Returns the number, or the number of seconds of the time since 1970, and whether it is a time.
    ///
    /// # Errors
    ///
    /// It is neither; the error is the description of the expected format.
    pub(super) fn number(&self) -> Result<(FieldNumber, bool), String> {
        match self {
            Self::Text(text) => match Time::parse(text) {
                Some(time) => Ok((time.number(), true)),
                None => FieldNumber::parse(text.trim()).map(|number| (number, false)),
            },
            Self::TimeText(text) => {
                Time::parse(text).map(|time| (time.number(), true)).ok_or_else(|| TIME.to_owned())
            }
            Self::Time(time) => Ok((time.number(), true)),
        }
    }
}

/// The types of numbers in `MongoDB`'s extended JSON.
const NUMBER_TYPES: [&str; 4] = ["$numberInt", "$numberLong", "$numberDouble", "$numberDecimal"];

/// Returns the text of a JSON string or number; `None` for other values.
fn scalar(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok().map(|text: String| text.into()),
        b'-' | b'0'..=b'9' => Some(json.into()),
        _ => None,
    }
}

/// Returns the name and the value of the member of an object with a single member.
fn only_member(json: &str) -> Option<(String, &str)> {
    if !json.starts_with('{') {
        return None;
    }
    let members: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let mut members = members.into_iter();
    let (name, value) = members.next()?;
    members.next().is_none().then(|| (name, value.get()))
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::TimeText(text) => f.write_str(text),
            Self::Time(time) => time.fmt(f),
        }
    }
}

/// The error that a field is missing that every document needs.
#[derive(Debug)]
pub(super) struct MissingField(pub(super) String);

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MissingField {}
