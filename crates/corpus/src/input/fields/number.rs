//! Numbers and times in fields. Numbers are compared exactly. Times are ISO 8601 text, as logs and databases write it,
//! times in Parquet columns, or dates of `MongoDB`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate};
use serde_json::value::RawValue;

/// Base-2 logarithm of the magnitude from which on integers are refused.
const INTEGER_BITS: u32 = 116;
/// The type of the number field in messages.
pub(crate) const NUMBER_TYPE: &str = "a number";

/// A finite number in a field. Integers and floats are compared by their exact values: 2^53 + 1 is greater than 2^53,
/// and 1 equals 1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldNumber(
    /// The high 64 bits are the greatest float not above the number, mapped to an integer so that the order is
    /// preserved. The low 64 bits are the difference between the number and this float.
    u128,
);

impl FieldNumber {
    /// Converts an integer; `None` if its magnitude is 2^116 or more.
    #[must_use]
    pub fn integer(number: i128) -> Option<Self> {
        if number.unsigned_abs() >> INTEGER_BITS != 0 {
            return None;
        }
        let nearest = number as f64;
        let below = if nearest as i128 > number { nearest.next_down() } else { nearest };
        Some(Self(ordered(below) << 64 | (number - below as i128).unsigned_abs()))
    }

    /// Converts a float; `None` if it is infinite or not a number. -0 becomes 0.
    #[must_use]
    pub fn float(number: f64) -> Option<Self> {
        number.is_finite().then(|| Self(ordered(number + 0.0) << 64))
    }

    /// Parses a time such as `2026-01-31T12:00:00Z`, as seconds since 1970; `None` for other texts.
    #[must_use]
    pub fn of_time(text: &str) -> Option<Self> {
        Time::parse(text).map(Time::number)
    }

    /// Converts a time: this many units after the start of 1970, with `per_second` units in a second.
    #[must_use]
    pub fn time(units: i64, per_second: i64) -> Self {
        Time::of_units(units, per_second).number()
    }

    /// Parses a number. Integers are parsed exactly, other numbers to the nearest float.
    ///
    /// # Errors
    ///
    /// The text is not a number, or the number is too large. The error describes the expected format.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let integer = text.parse().ok().and_then(Self::integer);
            return integer
                .ok_or_else(|| format!("an integer between -2^{INTEGER_BITS} and 2^{INTEGER_BITS}"));
        }
        // Excludes the texts for infinity and not-a-number.
        let is_of_digits = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        match text.parse().ok().filter(|_| is_of_digits).map(Self::float) {
            Some(Some(number)) => Ok(number),
            Some(None) => Err("a number that a float of 64 bits can be".to_owned()),
            None => Err(NUMBER_TYPE.to_owned()),
        }
    }

    /// Returns the priority of a document with this number; the smallest priority comes first. It is the greatest float
    /// not above the number, mapped to 64 bits so that the order is preserved. Integers of 2^53 or more that map to the
    /// same float have the same priority.
    #[must_use]
    pub fn priority(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the greatest float not above the number.
    fn float_below(self) -> f64 {
        let high = (self.0 >> 64) as u64;
        f64::from_bits(if high >> 63 == 1 { high ^ 1 << 63 } else { !high })
    }

    /// Returns a whole number from 0 to 2^53, which this number must be.
    pub(crate) fn small(self) -> u64 {
        u64::try_from(self.float_below() as i64).unwrap_or(0)
    }

    /// Returns the number as an integer. These integers have the same order as the numbers.
    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    /// Encodes the number as bytes, which [`from_bytes`](Self::from_bytes) decodes.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }
}

/// Maps a float to its bits, changed so that the integers have the same order as the floats.
fn ordered(number: f64) -> u128 {
    let bits = number.to_bits();
    (if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }).into()
}

impl fmt::Display for FieldNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (float, missing) = (self.float_below(), self.0 as u64);
        let is_integer = float.fract().abs() == 0.0 && float.abs() <= (1_u128 << INTEGER_BITS) as f64;
        if is_integer { write!(f, "{}", float as i128 + i128::from(missing)) } else { write!(f, "{float}") }
    }
}

/// The number of the day 1970-01-01, if 0001-01-01 has the number 1.
const EPOCH_DAY: i32 = 719_163;
const SECONDS_PER_DAY: i64 = 24 * 3600;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// A time: seconds since 1970 in UTC, rounded down, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    seconds: i64,
    nanoseconds: u32,
}

impl Time {
    /// Creates the time that is `value` units after the start of 1970. `per_second` is the number of units per second,
    /// a power of ten of at most 10^9.
    pub(crate) fn of_units(value: i64, per_second: i64) -> Self {
        let nanoseconds = value.rem_euclid(per_second) * (NANOSECONDS_PER_SECOND / per_second);
        Self { seconds: value.div_euclid(per_second), nanoseconds: nanoseconds.cast_unsigned() as u32 }
    }

    /// Creates the start of a day, which is `days` days after 1970-01-01.
    pub(crate) fn of_day(days: i64) -> Self {
        Self { seconds: days.saturating_mul(SECONDS_PER_DAY), nanoseconds: 0 }
    }

    /// Parses a date, `2026-01-31`, or a time, `2026-01-31T12:00:00Z`. The `T` may be a space. Seconds, a fraction of a
    /// second and the offset from UTC are optional; without an offset, the time is in UTC.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = Cursor(text.trim().as_bytes());
        let year = rest.number(4)?;
        rest.mark(b"-")?;
        let month = rest.number(2)?;
        rest.mark(b"-")?;
        let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, rest.number(2)?)?;
        let mut time = Self::of_day((day.num_days_from_ce() - EPOCH_DAY).into());
        if rest.0.is_empty() {
            return Some(time);
        }
        rest.mark(b"Tt ")?;
        let hour = rest.number(2)?;
        rest.mark(b":")?;
        let (minute, mut second) = (rest.number(2)?, 0);
        if rest.mark(b":").is_some() {
            second = rest.number(2)?;
            if rest.mark(b".,").is_some() {
                time.nanoseconds = rest.fraction()?;
            }
        }
        // A minute with a leap second has a second 60.
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let ahead = rest.offset()?;
        time.seconds += i64::from(hour * 3600 + minute * 60 + second) - ahead;
        Some(time)
    }

    /// Returns the number of seconds since 1970, rounded down; `None` if the time is before 1970.
    pub(crate) fn stamp(self) -> Option<u64> {
        u64::try_from(self.seconds).ok()
    }

    /// Returns the number of seconds since 1970. Whole seconds are exact. Fractions are accurate to less than a
    /// microsecond in the years 1900 to 2100.
    pub(crate) fn number(self) -> FieldNumber {
        let number = match self.nanoseconds {
            0 => FieldNumber::integer(self.seconds.into()),
            part => FieldNumber::float(self.seconds as f64 + f64::from(part) / NANOSECONDS_PER_SECOND as f64),
        };
        number.unwrap_or_default()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_timestamp(self.seconds, self.nanoseconds) {
            Some(time) => write!(f, "{:?}Z", time.naive_utc()),
            None => write!(f, "{} seconds since 1970", self.seconds),
        }
    }
}

/// The part of a text that is not yet parsed.
struct Cursor<'t>(&'t [u8]);

impl Cursor<'_> {
    /// Consumes a number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let (own, rest) = self.0.split_at_checked(digits)?;
        let number = own.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })?;
        self.0 = rest;
        Some(number)
    }

    /// Consumes the next byte if it is one of `marks`.
    fn mark(&mut self, marks: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        marks.contains(first).then(|| self.0 = rest)
    }

    /// Consumes the digits of a fraction of a second. Returns nanoseconds, and ignores digits after the ninth.
    fn fraction(&mut self) -> Option<u32> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (own, rest) = self.0.split_at(digits);
        self.0 = rest;
        let of = |at: usize| own.get(at).map_or(0, |digit| u32::from(digit - b'0'));
        (digits > 0).then(|| (0..9).fold(0, |number, at| number * 10 + of(at)))
    }

    /// Consumes an offset from UTC, which must be the rest of the text. Returns the offset in seconds.
    fn offset(&mut self) -> Option<i64> {
        // PostgreSQL, Ruby and BigQuery write a space before the offset.
        let is_apart = self.mark(b" ").is_some();
        let sign = match self.0 {
            [] if !is_apart => return Some(0),
            b"Z" | b"z" | b"UTC" => return Some(0),
            [b'-', ..] => -1,
            [b'+', ..] => 1,
            _ => return None,
        };
        self.mark(b"+-")?;
        let (hours, mut minutes) = (self.number(2)?, 0);
        let is_separated = self.mark(b":").is_some();
        if is_separated || !self.0.is_empty() {
            minutes = self.number(2)?;
        }
        let is_valid = hours <= 23 && minutes <= 59 && self.0.is_empty();
        is_valid.then(|| sign * i64::from(hours * 3600 + minutes * 60))
    }
}

/// An example of a time in messages.
pub(crate) const TIME: &str = "a time such as 2026-01-31 or 2026-01-31T12:00:00Z";

/// A number or a time, as a field of a record contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue<'v> {
    /// A number or a time as text.
    Text(Cow<'v, str>),
    /// A time as text. A text that is only a number is invalid.
    TimeText(Cow<'v, str>),
    Time(Time),
}

impl<'v> FieldValue<'v> {
    /// Creates the value of a table cell, a header field or a folder name.
    pub(crate) fn of_bytes(bytes: &'v [u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes))
    }

    /// Creates the value of a JSON number or string, or of a number or date in `MongoDB`'s extended JSON, such as
    /// `{"$numberLong": "9"}`. Returns `None` for other JSON.
    pub(crate) fn of_json(json: &'v str) -> Option<Self> {
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
        // A number of milliseconds. It may be an object in turn: `{"$date": {"$numberLong": "9"}}`.
        let inner = only_member(value).filter(|(name, _)| NUMBER_TYPES.contains(&&**name));
        let milliseconds = scalar(inner.map_or(value, |(_, value)| value))?.parse().ok()?;
        Some(Self::Time(Time::of_units(milliseconds, 1_000)))
    }

    /// Returns the stamp: an integer, or a time in seconds since 1970; `None` if the value cannot be a stamp.
    pub(crate) fn stamp(&self) -> Option<u64> {
        match self {
            Self::Text(text) => text.trim().parse().ok().or_else(|| Time::parse(text)?.stamp()),
            Self::TimeText(text) => Time::parse(text)?.stamp(),
            Self::Time(time) => time.stamp(),
        }
    }

    /// Returns a number, or a time as seconds since 1970, and whether the value is a time.
    ///
    /// # Errors
    ///
    /// The value is neither a number nor a time. The error describes the expected format.
    pub(crate) fn number(&self) -> Result<(FieldNumber, bool), String> {
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

/// Returns the name and the value of the only member of an object; `None` if the JSON is not such an object.
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

/// The error for a record that lacks a required field.
#[derive(Debug)]
pub(crate) struct MissingField(pub(crate) String);

impl fmt::Display for MissingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MissingField {}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("2026-01-03", 1_767_398_400),
            (" 2026-01-03 00:00:00 ", 1_767_398_400),
            ("2026-01-03T00:00", 1_767_398_400),
            ("2026-01-03 00:00:00,5", 1_767_398_400),
            ("2026-01-03 01:00:00 +0100", 1_767_398_400),
            ("2026-01-03 01:00:00+01", 1_767_398_400),
            ("2026-01-03 00:00:00 UTC", 1_767_398_400),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(Time::parse(time).map(|time| time.seconds), Some(seconds), "{time}");
        }
    }

    #[test]
    fn texts_that_are_not_times_are_refused() {
        for bad in [
            "",
            "17",
            "2026-02-29T00:00:00Z",
            "1900-02-29",
            "2026-13-01T00:00:00Z",
            "2026-00-01",
            "2026-01-00",
            "2026-01",
            "2026-01-01T",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+01:",
            "2026-01-01T00:00:00+01000",
            "2026-01-01T00:00:0üZ",
            "2026-01-01T00:00:00Zx",
            "2026-01-01x",
            "+2026-1-01T00:00:00Z",
        ] {
            assert_eq!(Time::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_are_ordered_as_numbers_and_to_the_microsecond() {
        let ascending = [
            "1969-12-31T23:59:59.999999Z",
            "1970-01-01",
            "2026-01-03T00:00:00Z",
            "2026-01-03T00:00:00.000001Z",
            "2026-01-03T00:00:00.000002Z",
            "2026-01-03T00:00:01Z",
            "9999-12-31",
        ];
        let times: Vec<Time> = ascending.iter().map(|text| Time::parse(text).unwrap()).collect();
        assert!(
            times.windows(2).all(|two| two[0] < two[1] && two[0].number() < two[1].number()),
            "{times:?}"
        );
        assert_eq!(Time::of_units(-1, 1_000), Time::parse("1969-12-31T23:59:59.999Z").unwrap());
        assert_eq!(
            Time::of_units(1_000_000_001, 1_000_000_000).to_string(),
            "1970-01-01T00:00:01.000000001Z"
        );
        assert_eq!((Time::of_day(-1).stamp(), Time::of_day(1).stamp()), (None, Some(86_400)));
    }
}
