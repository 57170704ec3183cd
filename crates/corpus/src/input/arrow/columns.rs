//! Columns of Arrow IPC files: their types, and their values in the batch that was decoded last.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Fields, SchemaRef, TimeUnit};

use crate::input::arrow::ipc::IpcFile;
use crate::input::columns::column::{ColumnType, ColumnValues, Value};
use crate::input::columns::file::Stamp;
use crate::input::columns::rows::{Chosen, ColumnPlaces, RowBatches, Rows, choose};
use crate::input::columns::table::Column;
use crate::input::fields::record;
use crate::input::place::Problem;

const MILLISECONDS_PER_DAY: i64 = 24 * 3600 * 1000;

/// The schema and format of a file. Kept rows of files with equal schema and format are written to one file.
#[derive(Clone, Debug)]
pub(crate) struct ArrowColumns {
    pub(crate) schema: SchemaRef,
    pub(crate) is_of_file_format: bool,
    /// A hash of the dictionaries of the file format, in which a file has one dictionary per column.
    pub(crate) dictionary_hash: u64,
    /// Maximum length of a record in bytes, with which the file is opened again.
    pub(crate) record_bytes_max: usize,
    /// The paths of the columns that contain the text, as indices of fields. Their values are joined in this order.
    pub(crate) text: Vec<Vec<usize>>,
}

impl PartialEq for ArrowColumns {
    /// Ignores the metadata of the schema. The output has that of the first input.
    fn eq(&self, other: &Self) -> bool {
        self.schema.fields() == other.schema.fields()
            && self.is_of_file_format == other.is_of_file_format
            && self.dictionary_hash == other.dictionary_hash
    }
}

/// The rows of an Arrow IPC file.
pub(crate) type ArrowRows = Rows<Batches>;

/// Decodes the rows of a file in batches.
pub(crate) struct Batches {
    file: IpcFile,
    /// The top-level columns to decode, in ascending order.
    projection: Vec<usize>,
    columns: Vec<ArrowColumn>,
}

impl RowBatches for Batches {
    type Column = ArrowColumn;
    const FORMAT: &'static str = "Arrow";

    fn next(&mut self) -> Result<Option<usize>, String> {
        let Some(batch) = self.file.next(Some(&self.projection))? else { return Ok(None) };
        for column in &mut self.columns {
            column.arrays.clear();
            let (first, rest) = column.path.split_first().ok_or("a column without a path")?;
            let mut array = batch.column(self.projection.partition_point(|other| other < first));
            column.arrays.push(Arc::clone(array));
            for &field in rest {
                array = array.as_struct_opt().ok_or("a column of another type")?.column(field);
                column.arrays.push(Arc::clone(array));
            }
        }
        Ok(Some(batch.num_rows()))
    }

    fn columns(&self) -> &[ArrowColumn] {
        &self.columns
    }

    fn bytes_before(&self, _: u64) -> u64 {
        self.file.position()
    }
}

/// A column, and its values in the current batch.
pub(crate) struct ArrowColumn {
    of_type: ColumnType,
    /// The indices of the fields from the top-level column to this one.
    path: Vec<usize>,
    /// The arrays of the columns on the path. All but the last are structs.
    arrays: Vec<ArrayRef>,
}

impl ColumnValues for ArrowColumn {
    fn of_type(&self) -> ColumnType {
        self.of_type
    }

    fn value(&self, at: usize) -> Option<Value<'_>> {
        let (last, structs) = self.arrays.split_last()?;
        if structs.iter().any(|array| array.is_null(at)) { None } else { value(last, at) }
    }
}

/// Returns the value in row `at`; `None` for null and for columns whose type is [`ColumnType::Other`].
pub(crate) fn value(array: &dyn Array, at: usize) -> Option<Value<'_>> {
    macro_rules! integer {
        ($of_type:ty) => {
            Value::Integer(array.as_primitive::<$of_type>().value(at).into())
        };
    }
    if array.is_null(at) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(at)),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => Value::Integer(array.as_primitive::<UInt64Type>().value(at).cast_signed()),
        DataType::Float16 => Value::Float(array.as_primitive::<Float16Type>().value(at).to_f32()),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(at)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(at)),
        DataType::Decimal32(..) => integer!(Decimal32Type),
        DataType::Decimal64(..) => integer!(Decimal64Type),
        DataType::Decimal128(..) => Value::Wide(array.as_primitive::<Decimal128Type>().value(at).into()),
        DataType::Decimal256(..) => Value::Wide(array.as_primitive::<Decimal256Type>().value(at)),
        DataType::Date32 => integer!(Date32Type),
        DataType::Date64 => {
            Value::Integer(array.as_primitive::<Date64Type>().value(at).div_euclid(MILLISECONDS_PER_DAY))
        }
        DataType::Timestamp(TimeUnit::Second, _) => integer!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => integer!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => integer!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => integer!(TimestampNanosecondType),
        DataType::Utf8 => Value::Bytes(array.as_string::<i32>().value(at).as_bytes()),
        DataType::LargeUtf8 => Value::Bytes(array.as_string::<i64>().value(at).as_bytes()),
        DataType::Utf8View => Value::Bytes(array.as_string_view().value(at).as_bytes()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(at)),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(at)),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(at)),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(at)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let Value::Integer(key) = value(dictionary.keys(), at)? else { return None };
            value(dictionary.values(), usize::try_from(key).ok()?)?
        }
        _ => return None,
    })
}

/// Returns the type of a column by its Arrow type. Parquet files that arrow-rs writes from such a column have the same.
fn type_of(of: &DataType) -> ColumnType {
    let integer = |bits, is_signed| ColumnType::Integer { bits, is_signed };
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ColumnType::Bytes,
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 => integer(8, true),
        DataType::Int16 => integer(16, true),
        DataType::Int32 => integer(32, true),
        DataType::Int64 => integer(64, true),
        DataType::UInt8 => integer(8, false),
        DataType::UInt16 => integer(16, false),
        DataType::UInt32 => integer(32, false),
        DataType::UInt64 => integer(64, false),
        DataType::Float16 => ColumnType::Float16,
        DataType::Float32 => ColumnType::Float32,
        DataType::Float64 => ColumnType::Float64,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => usize::try_from(*scale)
            .map_or(ColumnType::Other("Decimal of an impossible scale"), |scale| ColumnType::Decimal {
                scale,
            }),
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(unit, zone) => {
            let per_second = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            ColumnType::Timestamp { per_second, is_utc: zone.is_some() }
        }
        DataType::FixedSizeBinary(_) => ColumnType::FixedBytes { is_uuid: false },
        DataType::Struct(_) => ColumnType::Group,
        DataType::Dictionary(_, values) => match type_of(values) {
            ColumnType::Group | ColumnType::Other(_) => ColumnType::Other("Dictionary"),
            of_type => of_type,
        },
        DataType::Null => ColumnType::Other("Null"),
        DataType::Map(..) => ColumnType::Other("Map"),
        DataType::Time32(_) => ColumnType::Other("Time32"),
        DataType::Time64(_) => ColumnType::Other("Time64"),
        DataType::Duration(_) => ColumnType::Other("Duration"),
        DataType::Interval(_) => ColumnType::Other("Interval"),
        DataType::Union(..) => ColumnType::Other("Union"),
        DataType::RunEndEncoded(..) => ColumnType::Other("RunEndEncoded"),
        _ => ColumnType::Other("List"),
    }
}

/// Returns the columns of a schema, and adds its leaf columns to `leaves`. `above` is the path of the struct that the
/// fields are in.
fn columns_of(fields: &Fields, above: &[usize], leaves: &mut Vec<ArrowColumn>) -> Vec<Column> {
    let column = |(number, field): (usize, &Arc<Field>)| {
        let path = [above, &[number]].concat();
        let is_uuid = field.extension_type_name() == Some("arrow.uuid");
        let of_type = match type_of(field.data_type()) {
            ColumnType::FixedBytes { .. } => ColumnType::FixedBytes { is_uuid },
            of_type => of_type,
        };
        let (leaf, mut inner) = (leaves.len(), Vec::new());
        if let DataType::Struct(fields) = field.data_type() {
            inner = columns_of(fields, &path, leaves);
        } else {
            leaves.push(ArrowColumn { of_type, path, arrays: Vec::new() });
        }
        Column { name: field.name().clone(), of_type, inner, leaf }
    };
    fields.iter().enumerate().map(column).collect()
}

/// Opens a file and finds the requested columns. Returns its columns and its stamp, with which kept rows are copied
/// later.
///
/// # Errors
///
/// The file is not an Arrow IPC file, or a requested column is missing or has an unsupported type.
pub(crate) fn open(
    path: &Path,
    fields: &record::Fields,
    row_bytes_max: usize,
    consumed: &Arc<AtomicU64>,
) -> Result<(ArrowRows, ArrowColumns, Stamp), Problem> {
    Rows::open(path, fields, row_bytes_max, consumed, |file, _| begin(file, fields, row_bytes_max))
}

fn begin(
    file: fs::File,
    fields: &record::Fields,
    record_bytes_max: usize,
) -> Result<(Batches, ColumnPlaces, ArrowColumns), String> {
    let file = IpcFile::open(file, record_bytes_max)?;
    let mut all = Vec::new();
    let Chosen { leaves, places, text } = choose(&columns_of(file.schema.fields(), &[], &mut all), fields)?;
    let columns = ArrowColumns {
        schema: Arc::clone(&file.schema),
        is_of_file_format: file.is_of_file_format(),
        dictionary_hash: file.dictionary_hash,
        record_bytes_max,
        text: text.iter().map(|&leaf| all[leaf].path.clone()).collect(),
    };
    let is_chosen = |(leaf, column)| leaves.binary_search(&leaf).is_ok().then_some(column);
    let chosen: Vec<ArrowColumn> = all.into_iter().enumerate().filter_map(is_chosen).collect();
    let mut projection: Vec<usize> = chosen.iter().map(|column| column.path[0]).collect();
    projection.dedup();
    Ok((Batches { file, projection, columns: chosen }, places, columns))
}
