//! Columns of files that store values column by column: their types, and the conversion of values to text.

use std::fmt;

use arrow_buffer::i256;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use half::f16;
use num_bigint::BigInt;

use crate::input::fields::number::{FieldValue, Time};

/// The number of the day 1970-01-01, counted from 0001-01-01 as day 1.
const EPOCH_DAY: i32 = 719_163;

/// The logical type of a column. Several logical types share a physical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// UTF-8 strings.
    Text,
    /// Byte arrays of any length, which need not be UTF-8.
    Bytes,
    Boolean,
    Integer {
        bits: u32,
        is_signed: bool,
    },
    Float16,
    Float32,
    Float64,
    /// Decimal numbers with `scale` digits after the decimal point.
    Decimal {
        scale: usize,
    },
    /// Days since 1970-01-01.
    Date,
    /// Units since 1970-01-01T00:00:00, and the number of units per second.
    Timestamp {
        per_second: i64,
        is_utc: bool,
    },
    /// Byte arrays that all have the same length.
    FixedBytes {
        is_uuid: bool,
    },
    /// A struct: a group of columns, each with one value per row.
    Group,
    /// A type that is not supported. Its name is for error messages.
    Other(&'static str),
}

impl fmt::Display for ColumnType {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Text => "Utf8",
            Self::Bytes => "Binary",
            Self::Boolean => "Boolean",
            Self::Integer { bits, is_signed } => {
                return write!(to, "{}{bits}", if *is_signed { "Int" } else { "UInt" });
            }
            Self::Float16 => "Float16",
            Self::Float32 => "Float32",
            Self::Float64 => "Float64",
            Self::Decimal { .. } => "Decimal",
            Self::Date => "Date32",
            Self::Timestamp { .. } => "Timestamp",
            Self::FixedBytes { .. } => "FixedSizeBinary",
            Self::Group => "Struct",
            Self::Other(name) => name,
        })
    }
}
impl ColumnType {
    pub(crate) fn is_group(self) -> bool {
        self == Self::Group
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Integer { .. })
    }

    /// Returns whether texts can be read from columns of this type.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }

    /// Returns whether the type is a text type or an integer type.
    pub(crate) fn is_text_or_number(self) -> bool {
        self.is_text() || self.is_integer()
    }

    /// Returns whether fingerprints can be read from columns of this type.
    pub(crate) fn is_fingerprint(self) -> bool {
        self.is_text_or_number() || self.is_fixed_bytes()
    }

    pub(crate) fn is_fixed_bytes(self) -> bool {
        matches!(self, Self::FixedBytes { .. })
    }

    pub(crate) fn is_bytes(self) -> bool {
        self == Self::Bytes
    }

    /// Returns whether keys can be read from columns of this type.
    pub(crate) fn is_key(self) -> bool {
        self.is_text_or_number()
            || matches!(
                self,
                Self::Float32
                    | Self::Float64
                    | Self::Decimal { .. }
                    | Self::FixedBytes { .. }
                    | Self::Timestamp { .. }
                    | Self::Date
            )
    }

    fn is_time(self) -> bool {
        matches!(self, Self::Timestamp { .. } | Self::Date)
    }

    /// Returns whether stamps can be read from columns of this type.
    pub(crate) fn is_stamp(self) -> bool {
        self.is_text_or_number() || self.is_time()
    }

    /// Returns whether numbers or times can be read from columns of this type.
    pub(crate) fn is_number(self) -> bool {
        self.is_stamp()
            || matches!(self, Self::Float16 | Self::Float32 | Self::Float64 | Self::Decimal { .. })
    }

    /// Returns whether the values for `--inside` can be read from columns of this type.
    pub(crate) fn is_value(self) -> bool {
        self.is_stamp() || self == Self::Boolean
    }
}

/// A value of a row.
#[derive(Clone, Copy)]
pub(crate) enum Value<'v> {
    Boolean(bool),
    Integer(i64),
    /// An integer that may have more than 64 bits.
    Wide(i256),
    Float(f32),
    Double(f64),
    Bytes(&'v [u8]),
}

/// A column of a file, and the values of the rows that were decoded last.
pub(crate) trait ColumnValues {
    fn of_type(&self) -> ColumnType;

    /// Returns the value in row `at` of the decoded rows; `None` for null.
    fn value(&self, at: usize) -> Option<Value<'_>>;

    /// Returns the bytes of a text; `None` for null and for columns of other types.
    fn bytes(&self, at: usize) -> Option<&[u8]> {
        match self.value(at)? {
            Value::Bytes(bytes) if self.of_type().is_text() => Some(bytes),
            _ => None,
        }
    }

    /// Returns an integer as decimal text; `None` for null and for columns of other types.
    fn digits(&self, at: usize) -> Option<String> {
        match (self.of_type(), self.value(at)?) {
            (ColumnType::Integer { bits, is_signed: true }, Value::Integer(value)) => {
                Some((value << (64 - bits) >> (64 - bits)).to_string())
            }
            (ColumnType::Integer { bits, is_signed: false }, Value::Integer(value)) => {
                Some((value.cast_unsigned() & (u64::MAX >> (64 - bits))).to_string())
            }
            _ => None,
        }
    }

    /// Returns the bytes of a text, or an integer as decimal text; `None` for null and for columns of other types.
    fn number_or_bytes(&self, at: usize) -> Option<Vec<u8>> {
        self.digits(at).map(String::into_bytes).or_else(|| self.bytes(at).map(<[u8]>::to_vec))
    }

    /// Returns the value in a row as a key or as a part of a key. Numbers are written in decimal, times in ISO 8601
    /// format, byte arrays of fixed length in hexadecimal, and UUIDs with hyphens. Returns `None` for null, for times
    /// in years that the calendar does not support, and for columns of other types.
    fn key(&self, at: usize) -> Option<Vec<u8>> {
        let written = match (self.of_type(), self.value(at)?) {
            (ColumnType::Date, Value::Integer(days)) => format!("{:?}", date(days)?),
            (ColumnType::Timestamp { per_second, is_utc }, Value::Integer(value)) => {
                format!("{:?}{}", time(value, per_second)?, if is_utc { "Z" } else { "" })
            }
            (ColumnType::FixedBytes { is_uuid }, Value::Bytes(bytes)) => {
                hex(bytes, if is_uuid { &[4, 6, 8, 10] } else { &[] })
            }
            (_, Value::Float(value)) => value.to_string(),
            (_, Value::Double(value)) => value.to_string(),
            (ColumnType::Decimal { scale }, value) => decimal(value, scale)?,
            _ => return self.number_or_bytes(at),
        };
        Some(written.into_bytes())
    }

    /// Returns a number or a time; `None` for null and for columns of other types.
    fn field_value(&self, at: usize) -> Option<FieldValue<'_>> {
        Some(match (self.of_type(), self.value(at)?) {
            (ColumnType::Timestamp { per_second, .. }, Value::Integer(value)) => {
                FieldValue::Time(Time::of_units(value, per_second))
            }
            (ColumnType::Date, Value::Integer(days)) => FieldValue::Time(Time::of_day(days)),
            _ => match self.number(at) {
                Some(number) => FieldValue::Text(number.into()),
                None => FieldValue::of_bytes(self.bytes(at)?),
            },
        })
    }

    /// Returns a number as decimal text; `None` for null and for columns of other types.
    fn number(&self, at: usize) -> Option<String> {
        match (self.of_type(), self.value(at)?) {
            (ColumnType::Float16, Value::Bytes(&[low, high])) => {
                Some(f16::from_le_bytes([low, high]).to_f64().to_string())
            }
            (_, Value::Float(value)) => Some(f64::from(value).to_string()),
            (_, Value::Double(value)) => Some(value.to_string()),
            (ColumnType::Decimal { scale }, value) => decimal(value, scale),
            _ => self.digits(at),
        }
    }

    /// Returns the bytes of a text, or an integer, a boolean or a time as text; `None` for null and for columns of
    /// other types.
    fn value_bytes(&self, at: usize) -> Option<Vec<u8>> {
        match self.value(at)? {
            Value::Boolean(value) => Some(value.to_string().into_bytes()),
            _ if self.of_type().is_time() => self.key(at),
            _ => self.number_or_bytes(at),
        }
    }
}

/// Returns the date that is `days` days after 1970-01-01; `None` if the calendar does not support its year.
fn date(days: i64) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(i32::try_from(days).ok()?.checked_add(EPOCH_DAY)?)
}

/// Returns the time `value` units after the start of 1970; `None` if the calendar does not support its year.
/// `per_second` is the number of units per second.
fn time(value: i64, per_second: i64) -> Option<NaiveDateTime> {
    let nanoseconds = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let time = DateTime::from_timestamp(value.div_euclid(per_second), u32::try_from(nanoseconds).ok()?)?;
    Some(time.naive_utc())
}

/// Returns a decimal number as text with `scale` digits after the decimal point. The value is an integer, or bytes that
/// are a big-endian integer in two's complement; `None` for other values.
fn decimal(value: Value<'_>, scale: usize) -> Option<String> {
    let digits = match value {
        Value::Integer(value) => value.to_string(),
        Value::Wide(value) => value.to_string(),
        Value::Bytes(bytes) => BigInt::from_signed_bytes_be(bytes).to_string(),
        _ => return None,
    };
    if scale == 0 {
        return Some(digits);
    }
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &digits[..]), |digits| ("-", digits));
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, rest) = padded.split_at(padded.len() - scale);
    Some(format!("{sign}{whole}.{rest}"))
}

/// Returns bytes as hexadecimal digits, with a hyphen before each byte whose index is in `hyphens`.
fn hex(bytes: &[u8], hyphens: &[usize]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len() + hyphens.len());
    for (number, byte) in bytes.iter().enumerate() {
        if hyphens.contains(&number) {
            digits.push('-');
        }
        for half in [byte >> 4, byte & 15] {
            digits.extend(char::from_digit(half.into(), 16));
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_columns_are_written_as_hexadecimal_and_uuids_with_hyphens() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
        assert_eq!(hex(&bytes, &[4, 6, 8, 10]), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(hex(&[0, 255], &[]), "00ff");
    }

    #[test]
    fn decimal_numbers_have_as_many_decimals_as_the_scale() {
        let of = |value, scale| decimal(Value::Integer(value), scale).unwrap();
        assert_eq!([of(0, 0), of(-7, 0), of(12345, 2), of(-12345, 2)], ["0", "-7", "123.45", "-123.45"]);
        assert_eq!([of(45, 2), of(-4, 2), of(0, 3), of(100, 2)], ["0.45", "-0.04", "0.000", "1.00"]);
        let wide = |bytes: &[u8], scale| decimal(Value::Bytes(bytes), scale).unwrap();
        assert_eq!(wide(&[0xff; 17], 1), "-0.1");
        // 2^255 - 1
        let mut most = [0xff; 32];
        most[0] = 0x7f;
        let digits = "57896044618658097711785492504343953926634992332820282019728792003956564819967";
        assert_eq!(wide(&most, 0), digits);
        assert_eq!(wide(&[], 0), "0");
    }

    #[test]
    fn times_before_1970_are_written_and_unsupported_years_give_none() {
        let of = |value, per_second| time(value, per_second).map(|time| format!("{time:?}"));
        assert_eq!(of(-1, 1_000).unwrap(), "1969-12-31T23:59:59.999");
        assert_eq!(of(1_000_000_001, 1_000_000_000).unwrap(), "1970-01-01T00:00:01.000000001");
        assert_eq!(of(i64::MAX, 1_000), None);
        assert_eq!(format!("{:?}", date(-1).unwrap()), "1969-12-31");
        assert_eq!(date(i64::from(i32::MAX)), None);
    }
}
