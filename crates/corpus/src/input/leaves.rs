//! The columns of a Parquet file that have keys and texts, including nested columns, and the conversion of keys to
//! text.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Fields, TimeUnit};
use parquet::basic::LogicalType;
use parquet::schema::types::SchemaDescriptor;

use super::fields::{FieldPath, Selection};

/// A test whether a column type is accepted.
pub(super) type TypeTest = fn(&DataType) -> bool;

/// A column, or a field nested in a column.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The index of the top-level column.
    pub(super) root: usize,
    /// The indices of the nested fields on the path to the leaf.
    below: Vec<usize>,
    /// The index among the leaf columns of the file.
    pub(super) stored: Option<usize>,
    /// Whether the value is a UUID of 16 bytes, which the Arrow type does not show.
    is_uuid: bool,
}

impl Leaf {
    /// Returns the array of the leaf's values; `None` if a parent of the leaf is null in this row.
    pub(super) fn of<'b>(&self, batch: &'b RecordBatch, at: usize) -> Option<&'b dyn Array> {
        let mut column = batch.column(self.root).as_ref();
        for &below in &self.below {
            if column.is_null(at) {
                return None;
            }
            column = column.as_struct_opt()?.column(below).as_ref();
        }
        Some(column)
    }

    /// Returns the value in a row as a key or as a part of a key: numbers as decimal digits, times in ISO 8601 format,
    /// UUIDs with hyphens. `None` for null.
    pub(super) fn key(&self, batch: &RecordBatch, at: usize) -> Option<Vec<u8>> {
        let column = self.of(batch, at)?;
        if column.is_null(at) {
            return None;
        }
        let written = match column.data_type() {
            DataType::Float32 => column.as_primitive::<Float32Type>().value(at).to_string(),
            DataType::Float64 => column.as_primitive::<Float64Type>().value(at).to_string(),
            DataType::Decimal32(..) => column.as_primitive::<Decimal32Type>().value_as_string(at),
            DataType::Decimal64(..) => column.as_primitive::<Decimal64Type>().value_as_string(at),
            DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value_as_string(at),
            DataType::Decimal256(..) => column.as_primitive::<Decimal256Type>().value_as_string(at),
            DataType::Date32 => format!("{:?}", column.as_primitive::<Date32Type>().value_as_date(at)?),
            DataType::Timestamp(unit, zone) => {
                let zone = if zone.is_some() { "Z" } else { "" };
                format!("{}{zone}", time(column, *unit, at)?)
            }
            DataType::FixedSizeBinary(_) => {
                hex(column.as_fixed_size_binary().value(at), if self.is_uuid { &[4, 6, 8, 10] } else { &[] })
            }
            _ => return number_or_bytes(column, at),
        };
        Some(written.into_bytes())
    }
}

/// Returns the bytes of a string; `None` for null.
pub(super) fn bytes(column: &dyn Array, at: usize) -> Option<&[u8]> {
    if column.is_null(at) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(at).as_bytes(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(at).as_bytes(),
        DataType::Utf8View => column.as_string_view().value(at).as_bytes(),
        DataType::Binary => column.as_binary::<i32>().value(at),
        DataType::LargeBinary => column.as_binary::<i64>().value(at),
        DataType::BinaryView => column.as_binary_view().value(at),
        _ => return None,
    })
}

/// Returns an integer as decimal digits; `None` for null.
pub(super) fn digits(column: &dyn Array, at: usize) -> Option<String> {
    if column.is_null(at) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Int8 => column.as_primitive::<Int8Type>().value(at).to_string(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(at).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(at).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at).to_string(),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(at).to_string(),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(at).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(at).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(at).to_string(),
        _ => return None,
    })
}

/// Returns the value in a column of texts or integers, integers as decimal digits; `None` for null.
pub(super) fn number_or_bytes(column: &dyn Array, at: usize) -> Option<Vec<u8>> {
    digits(column, at).map(String::into_bytes).or_else(|| bytes(column, at).map(<[u8]>::to_vec))
}

/// Returns a time without its time zone; `None` if the calendar does not support its year.
fn time(column: &dyn Array, unit: TimeUnit, at: usize) -> Option<String> {
    let time = match unit {
        TimeUnit::Second => column.as_primitive::<TimestampSecondType>().value_as_datetime(at),
        TimeUnit::Millisecond => column.as_primitive::<TimestampMillisecondType>().value_as_datetime(at),
        TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().value_as_datetime(at),
        TimeUnit::Nanosecond => column.as_primitive::<TimestampNanosecondType>().value_as_datetime(at),
    };
    time.map(|time| format!("{time:?}"))
}

/// Returns bytes as hexadecimal digits, with hyphens before the bytes at these positions.
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

/// Returns whether texts can be read from columns of this type.
pub(super) fn is_text(of_type: &DataType) -> bool {
    matches!(
        of_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// Returns whether the type is a text or an integer type.
pub(super) fn is_text_or_number(of_type: &DataType) -> bool {
    is_text(of_type) || of_type.is_integer()
}

/// Returns whether keys can be read from columns of this type.
pub(super) fn is_key(of_type: &DataType) -> bool {
    is_text_or_number(of_type)
        || matches!(
            of_type,
            DataType::Float32
                | DataType::Float64
                | DataType::Decimal32(..)
                | DataType::Decimal64(..)
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::FixedSizeBinary(_)
                | DataType::Timestamp(..)
                | DataType::Date32
        )
}

/// The columns of a Parquet file.
#[derive(Clone, Copy)]
pub(super) struct Table<'t> {
    pub(super) columns: &'t Fields,
    /// The leaf columns.
    pub(super) stored: &'t SchemaDescriptor,
}

impl Table<'_> {
    /// Returns whether a top-level column has this name.
    pub(super) fn has(self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name() == name)
    }

    /// Returns the columns that a name selects. It may be a plain name, a path, or a list of them.
    ///
    /// # Errors
    ///
    /// A column does not exist, or has another type.
    pub(super) fn select(
        self,
        name: &str,
        selection: Option<&Selection>,
        fits: TypeTest,
        expected: &str,
    ) -> Result<Vec<Leaf>, String> {
        let plain = FieldPath { name: name.to_owned(), path: vec![name.to_owned()] };
        let parts = match selection {
            Some(selection) if !self.has(name) => &selection.parts[..],
            _ => std::slice::from_ref(&plain),
        };
        parts.iter().map(|part| self.find(part, fits, expected)).collect()
    }

    fn find(self, part: &FieldPath, fits: TypeTest, expected: &str) -> Result<Leaf, String> {
        let missing = || {
            format!(
                "no column {:?} among {}; see --id-field and --text-field",
                part.name,
                super::listed(self.columns.iter().map(|field| field.name().as_str()))
            )
        };
        let root_of = |name: &str| self.columns.iter().position(|field| field.name() == name);
        let (root, path) = match root_of(&part.name) {
            Some(root) => (root, &[][..]),
            None => (root_of(&part.path[0]).ok_or_else(missing)?, &part.path[1..]),
        };
        let (mut field, mut below) = (&self.columns[root], Vec::new());
        let mut full = vec![field.name().as_str()];
        for name in path {
            let DataType::Struct(fields) = field.data_type() else { return Err(missing()) };
            let at = fields.iter().position(|field| field.name() == name).ok_or_else(missing)?;
            below.push(at);
            field = &fields[at];
            full.push(name);
        }
        let of_type = field.data_type();
        if !fits(of_type) {
            return Err(format!("the column {:?} holds {of_type}, where {expected} are expected", part.name));
        }
        let columns = self.stored.columns();
        let stored = columns.iter().position(|column| {
            let path = column.path().parts().iter().map(String::as_str);
            path.eq(full.iter().copied())
        });
        let is_uuid = stored.is_some_and(|at| columns[at].logical_type_ref() == Some(&LogicalType::Uuid));
        Ok(Leaf { root, below, stored, is_uuid })
    }
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
}
