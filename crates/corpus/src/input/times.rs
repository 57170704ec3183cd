//! Times in fields: ISO 8601 text as logs and databases write it, columns of Parquet, and dates of `MongoDB`.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate};

use super::field_number::FieldNumber;

/// The number of the day 1970-01-01, if 0001-01-01 has the number 1.
const EPOCH_DAY: i32 = 719_163;
const SECONDS_PER_DAY: i64 = 24 * 3600;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// A time: seconds since 1970 in UTC, rounded down, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    seconds: i64,
    nanoseconds: u32,
}

impl Time {
    /// Creates the time that is `value` units after the start of 1970. `per_second` is the number of units per second,
    /// a power of ten of at most 10^9.
    pub(super) fn of_units(value: i64, per_second: i64) -> Self {
        let nanoseconds = value.rem_euclid(per_second) * (NANOSECONDS_PER_SECOND / per_second);
        Self { seconds: value.div_euclid(per_second), nanoseconds: nanoseconds.cast_unsigned() as u32 }
    }

    /// Creates the start of a day, which is `days` days after 1970-01-01.
    pub(super) fn of_day(days: i64) -> Self {
        Self { seconds: days.saturating_mul(SECONDS_PER_DAY), nanoseconds: 0 }
    }

    /// Parses a date, `2026-01-31`, or a time, `2026-01-31T12:00:00Z`. The `T` may be a space. Seconds, a fraction and
    /// the offset from UTC may be missing; without an offset, the time is in UTC.
    pub(super) fn parse(text: &str) -> Option<Self> {
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
        // With leap seconds, a minute may have a 61st second.
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let ahead = rest.offset()?;
        time.seconds += i64::from(hour * 3600 + minute * 60 + second) - ahead;
        Some(time)
    }

    /// Returns the number of seconds since 1970, rounded down; `None` if the time is before 1970.
    pub(super) fn stamp(self) -> Option<u64> {
        u64::try_from(self.seconds).ok()
    }

    /// Returns the number of seconds since 1970: exactly if it is an integer, and to less than a microsecond in the
    /// years 1900 to 2100 if it is not.
    pub(super) fn number(self) -> FieldNumber {
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

/// The rest of a text that is parsed.
struct Cursor<'t>(&'t [u8]);

impl Cursor<'_> {
    /// Takes a number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let (own, rest) = self.0.split_at_checked(digits)?;
        let number = own.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })?;
        self.0 = rest;
        Some(number)
    }

    /// Takes one of these characters.
    fn mark(&mut self, marks: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        marks.contains(first).then(|| self.0 = rest)
    }

    /// Takes the digits of a fraction of a second, and returns nanoseconds. Further digits are ignored.
    fn fraction(&mut self) -> Option<u32> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (own, rest) = self.0.split_at(digits);
        self.0 = rest;
        let of = |at: usize| own.get(at).map_or(0, |digit| u32::from(digit - b'0'));
        (digits > 0).then(|| (0..9).fold(0, |number, at| number * 10 + of(at)))
    }

    /// Takes an offset from UTC, up to the end of the text, and returns it in seconds.
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
