//! Columns of Parquet files: their logical types, the values of the rows that were decoded last, and the conversion of
//! values to text.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use half::f16;
use num_bigint::BigInt;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::input::fields::number::{FieldValue, Time};
use crate::input::parquet::thrift::Checked;

/// Maximum number of bytes of a decimal number in a column of byte arrays. Any number of 76 digits fits.
const DECIMAL_BYTES_MAX: usize = 32;
/// The number of the day 1970-01-01, counted from 0001-01-01 as day 1.
const EPOCH_DAY: i32 = 719_163;
const SECONDS_PER_DAY: i64 = 24 * 3600;
/// The Julian day number of 1970-01-01.
const JULIAN_DAY: i64 = 2_440_588;

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
    Timestamp {
        unit: TimeUnit,
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
    /// Returns the type of a column, by the same rules as arrow-rs.
    pub(crate) fn of(column: &Type) -> Self {
        let info = column.get_basic_info();
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            return Self::Other("List");
        }
        let (logical, converted) = (info.logical_type_ref(), info.converted_type());
        let Type::PrimitiveType { physical_type, type_length, scale, .. } = column else {
            return match (logical, converted) {
                (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => Self::Other("List"),
                (Some(LogicalType::Map), _) | (None, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => {
                    Self::Other("Map")
                }
                _ => Self::Group,
            };
        };
        let scale = match (logical, converted) {
            (Some(LogicalType::Unknown), _) => return Self::Other("Null"),
            (Some(LogicalType::Decimal(decimal)), _) => Some(decimal.scale),
            (None, ConvertedType::DECIMAL) => Some(*scale),
            _ => None,
        };
        match (physical_type, scale.map(u8::try_from)) {
            (PhysicalType::BOOLEAN, _) => Self::Boolean,
            (PhysicalType::FLOAT, _) => Self::Float32,
            (PhysicalType::DOUBLE, _) => Self::Float64,
            (PhysicalType::INT96, _) => Self::Timestamp { unit: TimeUnit::MICROS, is_utc: false },
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(_))
                if usize::try_from(*type_length).map_or(true, |bytes| bytes > DECIMAL_BYTES_MAX) =>
            {
                Self::Other("Decimal of more than 32 bytes")
            }
            (_, Some(Ok(scale))) => Self::Decimal { scale: scale.into() },
            (_, Some(Err(_))) => Self::Other("Decimal of an impossible scale"),
            (PhysicalType::INT32, None) => Self::of_int32(logical, converted),
            (PhysicalType::INT64, None) => Self::of_int64(logical, converted),
            (PhysicalType::BYTE_ARRAY, None) => match (logical, converted) {
                (Some(LogicalType::String | LogicalType::Json), _)
                | (None, ConvertedType::UTF8 | ConvertedType::JSON) => Self::Text,
                _ => Self::Bytes,
            },
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, None) => match (logical, converted) {
                (Some(LogicalType::Float16), _) if *type_length == 2 => Self::Float16,
                (None, ConvertedType::INTERVAL) => Self::Other("Interval"),
                _ => Self::FixedBytes { is_uuid: logical == Some(&LogicalType::Uuid) },
            },
        }
    }

    fn of_int32(logical: Option<&LogicalType>, converted: ConvertedType) -> Self {
        let (bits, is_signed) = match (logical, converted) {
            (Some(LogicalType::Integer(of)), _) => match of.bit_width {
                bits @ (8 | 16 | 32) => (bits.cast_unsigned().into(), of.is_signed),
                _ => return Self::Other("Int of an impossible width"),
            },
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => return Self::Date,
            (None, ConvertedType::NONE | ConvertedType::INT_32) => (32, true),
            (None, ConvertedType::INT_16) => (16, true),
            (None, ConvertedType::INT_8) => (8, true),
            (None, ConvertedType::UINT_32) => (32, false),
            (None, ConvertedType::UINT_16) => (16, false),
            (None, ConvertedType::UINT_8) => (8, false),
            _ => return Self::Other("Time32"),
        };
        Self::Integer { bits, is_signed }
    }

    fn of_int64(logical: Option<&LogicalType>, converted: ConvertedType) -> Self {
        match (logical, converted) {
            (Some(LogicalType::Integer(of)), _) if of.bit_width == 64 => {
                Self::Integer { bits: 64, is_signed: of.is_signed }
            }
            (Some(LogicalType::Timestamp(of)), _) => {
                Self::Timestamp { unit: of.unit, is_utc: of.is_adjusted_to_u_t_c }
            }
            (None, ConvertedType::NONE | ConvertedType::INT_64) => {
                Self::Integer { bits: 64, is_signed: true }
            }
            (None, ConvertedType::UINT_64) => Self::Integer { bits: 64, is_signed: false },
            (None, ConvertedType::TIMESTAMP_MILLIS) => {
                Self::Timestamp { unit: TimeUnit::MILLIS, is_utc: true }
            }
            (None, ConvertedType::TIMESTAMP_MICROS) => {
                Self::Timestamp { unit: TimeUnit::MICROS, is_utc: true }
            }
            _ => Self::Other("Time64"),
        }
    }

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

/// The values of some rows, by physical type. They omit null values.
#[derive(Debug)]
enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    FixedBytes(Vec<FixedLenByteArray>),
}

/// A value of a row.
#[derive(Clone, Copy)]
enum Value<'v> {
    Boolean(bool),
    Integer(i64),
    Float(f32),
    Double(f64),
    Bytes(&'v [u8]),
}

impl Values {
    fn get(&self, at: usize) -> Option<Value<'_>> {
        Some(match self {
            Self::Boolean(values) => Value::Boolean(*values.get(at)?),
            Self::Int32(values) => Value::Integer((*values.get(at)?).into()),
            Self::Int64(values) => Value::Integer(*values.get(at)?),
            // Converts to microseconds, because 64 bits of nanoseconds cannot represent times before 1677 or after
            // 2262.
            Self::Int96(values) => Value::Integer(micros(values.get(at)?)?),
            Self::Float(values) => Value::Float(*values.get(at)?),
            Self::Double(values) => Value::Double(*values.get(at)?),
            Self::Bytes(values) => Value::Bytes(values.get(at)?.data()),
            Self::FixedBytes(values) => Value::Bytes(values.get(at)?.data()),
        })
    }
}

/// A column of a file, and the values of the rows that were decoded last.
pub(crate) struct DecodedColumn {
    of_type: ColumnType,
    /// The index of the column among the leaf columns of the file.
    stored: usize,
    /// The definition level of non-null values; 0 if the column cannot have null values.
    defined: i16,
    /// The reader, positioned after the last decoded row of the current row group; `None` before the first row group.
    reader: Option<ColumnReader>,
    /// The non-null values. Byte arrays share the memory of the page or the dictionary, so that a long text that many
    /// rows have is stored once.
    values: Values,
    /// For each row, the index of its value, `None` for null; empty if the column cannot have null values.
    value_of: Vec<Option<usize>>,
}

impl DecodedColumn {
    /// Creates a column without rows. `stored` is the index of the column among the leaf columns of the file.
    pub(crate) fn new(stored: usize, column: &ColumnDescriptor) -> Self {
        Self {
            of_type: ColumnType::of(column.self_type()),
            stored,
            defined: column.max_def_level(),
            reader: None,
            values: Values::Boolean(Vec::new()),
            value_of: Vec::new(),
        }
    }

    /// Opens the column in a row group; [`decode`](Self::decode) then starts with the first row of the group.
    ///
    /// # Errors
    ///
    /// The footer has invalid positions of the column's pages.
    pub(crate) fn begin(&mut self, file: &Arc<Checked>, group: &RowGroupMetaData) -> Result<(), String> {
        self.reader = Some(column_reader(file, group, self.stored).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Decodes the next `rows` rows of the row group, which replace the rows that were decoded last.
    ///
    /// # Errors
    ///
    /// The column is damaged, the row group has too few rows, or a value is invalid for the type of the column.
    pub(crate) fn decode(&mut self, rows: usize) -> Result<(), String> {
        let mut levels = Vec::new();
        let (read, values) = self.read(rows, &mut levels)?;
        // guard: a column of Parquet has all rows of its row group
        if read < rows {
            return Err("a column has fewer rows than its row group".to_owned());
        }
        self.values = values;
        self.value_of.clear();
        let mut before = 0;
        self.value_of.extend(levels.iter().map(|&level| {
            let is_value = level == self.defined;
            before += usize::from(is_value);
            is_value.then(|| before - 1)
        }));
        self.check_values()
    }

    /// Checks that the column has no rows left in the row group.
    ///
    /// # Errors
    ///
    /// The column has more rows, or its next page is damaged.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let (more, _) = self.read(1, &mut Vec::new())?;
        // guard: a column of Parquet has no more rows than its row group
        if more > 0 {
            return Err("a column has more rows than its row group".to_owned());
        }
        Ok(())
    }

    /// Reads at most `rows` rows. Returns the number of rows read, and their values. If the column can have null
    /// values, appends the definition level of each row to `levels`.
    fn read(&mut self, rows: usize, levels: &mut Vec<i16>) -> Result<(usize, Values), String> {
        match self.reader.as_mut().ok_or("a column without pages")? {
            ColumnReader::BoolColumnReader(from) => read(from, rows, levels, Values::Boolean),
            ColumnReader::Int32ColumnReader(from) => read(from, rows, levels, Values::Int32),
            ColumnReader::Int64ColumnReader(from) => read(from, rows, levels, Values::Int64),
            ColumnReader::Int96ColumnReader(from) => read(from, rows, levels, Values::Int96),
            ColumnReader::FloatColumnReader(from) => read(from, rows, levels, Values::Float),
            ColumnReader::DoubleColumnReader(from) => read(from, rows, levels, Values::Double),
            ColumnReader::ByteArrayColumnReader(from) => read(from, rows, levels, Values::Bytes),
            ColumnReader::FixedLenByteArrayColumnReader(from) => read(from, rows, levels, Values::FixedBytes),
        }
    }

    /// Returns an error if a value is invalid for the type of the column.
    fn check_values(&self) -> Result<(), String> {
        let Values::Bytes(values) = &self.values else { return Ok(()) };
        let is_text = self.of_type == ColumnType::Text;
        // guard: strings of Parquet are UTF-8
        if is_text && values.iter().any(|value| simdutf8::basic::from_utf8(value.data()).is_err()) {
            return Err("a string that is not UTF-8".to_owned());
        }
        let is_decimal = matches!(self.of_type, ColumnType::Decimal { .. });
        // guard: decimal numbers of Parquet have a maximum length
        if is_decimal && values.iter().any(|value| value.len() > DECIMAL_BYTES_MAX) {
            return Err(format!("a decimal number of more than {DECIMAL_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Returns the value in row `at`; `None` for null.
    fn value(&self, at: usize) -> Option<Value<'_>> {
        let at = if self.defined == 0 { at } else { (*self.value_of.get(at)?)? };
        self.values.get(at)
    }

    /// Returns the bytes of a text; `None` for null and for columns of other types.
    pub(crate) fn bytes(&self, at: usize) -> Option<&[u8]> {
        match self.value(at)? {
            Value::Bytes(bytes) if self.of_type.is_text() => Some(bytes),
            _ => None,
        }
    }

    /// Returns an integer as decimal text; `None` for null and for columns of other types.
    pub(crate) fn digits(&self, at: usize) -> Option<String> {
        match (self.of_type, self.value(at)?) {
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
    pub(crate) fn number_or_bytes(&self, at: usize) -> Option<Vec<u8>> {
        self.digits(at).map(String::into_bytes).or_else(|| self.bytes(at).map(<[u8]>::to_vec))
    }

    /// Returns the value in a row as a key or as a part of a key. Numbers are written in decimal, times in ISO 8601
    /// format, byte arrays of fixed length in hexadecimal, and UUIDs with hyphens. Returns `None` for null, for times
    /// in years that the calendar does not support, and for columns of other types.
    pub(crate) fn key(&self, at: usize) -> Option<Vec<u8>> {
        let written = match (self.of_type, self.value(at)?) {
            (ColumnType::Date, Value::Integer(days)) => format!("{:?}", date(days)?),
            (ColumnType::Timestamp { unit, is_utc }, Value::Integer(value)) => {
                format!("{:?}{}", time(value, unit)?, if is_utc { "Z" } else { "" })
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
    pub(crate) fn field_value(&self, at: usize) -> Option<FieldValue<'_>> {
        Some(match (self.of_type, self.value(at)?) {
            (ColumnType::Timestamp { unit, .. }, Value::Integer(value)) => {
                FieldValue::Time(Time::of_units(value, per_second(unit)))
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
        match (self.of_type, self.value(at)?) {
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
    pub(crate) fn value_bytes(&self, at: usize) -> Option<Vec<u8>> {
        match self.value(at)? {
            Value::Boolean(value) => Some(value.to_string().into_bytes()),
            _ if self.of_type.is_time() => self.key(at),
            _ => self.number_or_bytes(at),
        }
    }
}

/// Converts a 96-bit timestamp to microseconds since 1970; `None` if the result does not fit into 64 bits.
fn micros(time: &Int96) -> Option<i64> {
    let &[low, high, day] = time.data() else { return None };
    let nanoseconds = i64::try_from(u64::from(high) << 32 | u64::from(low)).ok()?;
    let days = i64::from(day) - JULIAN_DAY;
    days.checked_mul(SECONDS_PER_DAY * 1_000_000)?.checked_add(nanoseconds / 1_000)
}

/// Does the work of [`DecodedColumn::read`] for one physical type. `values_of` creates [`Values`] from a vector.
fn read<T: DataType>(
    from: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
    values_of: fn(Vec<T::T>) -> Values,
) -> Result<(usize, Values), String> {
    let mut values = Vec::new();
    let read = from.read_records(rows, Some(levels), None, &mut values);
    let (rows, ..) = read.map_err(|error| error.to_string())?;
    Ok((rows, values_of(values)))
}

/// Returns a reader for a column in a row group. `column` is the index of the column among the leaf columns.
///
/// # Errors
///
/// The footer has invalid positions of the column's pages.
pub(crate) fn column_reader(
    file: &Arc<Checked>,
    group: &RowGroupMetaData,
    column: usize,
) -> Result<ColumnReader, ParquetError> {
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    let chunk = group.column(column);
    let pages = SerializedPageReader::new(Arc::clone(file), chunk, rows, None)?;
    Ok(get_column_reader(chunk.column_descr_ptr(), Box::new(pages)))
}

/// Returns the date that is `days` days after 1970-01-01; `None` if the calendar does not support its year.
fn date(days: i64) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(i32::try_from(days).ok()?.checked_add(EPOCH_DAY)?)
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    }
}

/// Returns the time `value` units after the start of 1970; `None` if the calendar does not support its year.
fn time(value: i64, unit: TimeUnit) -> Option<NaiveDateTime> {
    let per_second = per_second(unit);
    let nanoseconds = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let time = DateTime::from_timestamp(value.div_euclid(per_second), u32::try_from(nanoseconds).ok()?)?;
    Some(time.naive_utc())
}

/// Returns a decimal number as text with `scale` digits after the decimal point. The value is an integer, or bytes that
/// are a big-endian integer in two's complement; `None` for other values.
fn decimal(value: Value<'_>, scale: usize) -> Option<String> {
    let digits = match value {
        Value::Integer(value) => value.to_string(),
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
        let of = |value, unit| time(value, unit).map(|time| format!("{time:?}"));
        assert_eq!(of(-1, TimeUnit::MILLIS).unwrap(), "1969-12-31T23:59:59.999");
        assert_eq!(of(1_000_000_001, TimeUnit::NANOS).unwrap(), "1970-01-01T00:00:01.000000001");
        assert_eq!(of(i64::MAX, TimeUnit::MILLIS), None);
        assert_eq!(format!("{:?}", date(-1).unwrap()), "1969-12-31");
        assert_eq!(date(i64::from(i32::MAX)), None);
        let micros = |nanoseconds: u64, day| {
            let mut time = Int96::new();
            time.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day);
            micros(&time)
        };
        assert_eq!(micros(0, 2_440_588), Some(0));
        assert_eq!(micros(86_399_999_999_999, 2_440_587), Some(-1));
        assert_eq!(micros(0, u32::MAX), None);
    }
}
