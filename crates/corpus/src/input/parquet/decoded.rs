//! Columns of Parquet files: their types, and the decoding of their values.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::input::columns::column::{ColumnType, ColumnValues, Value};
use crate::input::parquet::thrift::Checked;

/// Maximum number of bytes of a decimal number in a column of byte arrays. Any number of 76 digits fits.
const DECIMAL_BYTES_MAX: usize = 32;
const SECONDS_PER_DAY: i64 = 24 * 3600;
/// The Julian day number of 1970-01-01.
const JULIAN_DAY: i64 = 2_440_588;
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
            (PhysicalType::INT96, _) => Self::Timestamp { per_second: 1_000_000, is_utc: false },
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
                let per_second = match of.unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                };
                Self::Timestamp { per_second, is_utc: of.is_adjusted_to_u_t_c }
            }
            (None, ConvertedType::NONE | ConvertedType::INT_64) => {
                Self::Integer { bits: 64, is_signed: true }
            }
            (None, ConvertedType::UINT_64) => Self::Integer { bits: 64, is_signed: false },
            (None, ConvertedType::TIMESTAMP_MILLIS) => Self::Timestamp { per_second: 1_000, is_utc: true },
            (None, ConvertedType::TIMESTAMP_MICROS) => {
                Self::Timestamp { per_second: 1_000_000, is_utc: true }
            }
            _ => Self::Other("Time64"),
        }
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
    /// Whether values of the current row group are coded by the prefixes they share. Such a value is decoded to memory of
    /// its own, and its size is not in the footer.
    is_prefix_coded: bool,
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
            is_prefix_coded: false,
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
        self.is_prefix_coded = is_prefix_coded(group, self.stored);
        Ok(())
    }

    pub(crate) fn is_prefix_coded(&self) -> bool {
        self.is_prefix_coded
    }

    /// Returns the size in bytes of the values that were decoded last, if they do not share the memory of a page.
    pub(crate) fn own_bytes(&self) -> usize {
        match &self.values {
            Values::Bytes(values) if self.is_prefix_coded => values.iter().map(ByteArray::len).sum(),
            Values::FixedBytes(values) if self.is_prefix_coded => {
                values.iter().map(|value| value.len()).sum()
            }
            _ => 0,
        }
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
}

impl ColumnValues for DecodedColumn {
    fn of_type(&self) -> ColumnType {
        self.of_type
    }

    fn value(&self, at: usize) -> Option<Value<'_>> {
        let at = if self.defined == 0 { at } else { (*self.value_of.get(at)?)? };
        self.values.get(at)
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

/// Returns whether a column in a row group has values that are coded by the prefixes they share.
pub(crate) fn is_prefix_coded(group: &RowGroupMetaData, column: usize) -> bool {
    group.column(column).encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_96_bits_are_microseconds_and_impossible_ones_give_none() {
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
