//! Reads the numbers that determine the order of texts, from Python sequences and Arrow arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use pyo3_arrow::input::AnyArray;
use twindex::Error;
use twindex_corpus::FieldNumber;

use crate::arrays::{FieldArrays, is_arrow};
use crate::error::{Failure, Result};

/// Reads numbers or times from an Arrow array, a stream of Arrow arrays, or any sequence. `name` is used in errors.
pub(crate) fn field_numbers(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Vec<FieldNumber>> {
    if is_arrow(values)? {
        let chunks = values.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?;
        let arrays: FieldArrays = chunks.chunks().iter().map(|array| (Arc::clone(array), None)).collect();
        return numbers_of_arrays(name, &arrays);
    }
    let mut all = Vec::with_capacity(values.len().unwrap_or(0));
    for (at, value) in values.try_iter()?.enumerate() {
        let value = value?;
        all.push(number(&value).ok_or_else(|| wrong(name, at, &value.to_string()))?);
    }
    Ok(all)
}

/// Extracts an int, exactly, a float, or a time, which may be a text; `None` for anything else, for NaN and for infinity.
fn number(value: &Bound<'_, PyAny>) -> Option<FieldNumber> {
    if value.is_instance_of::<PyBool>() {
        return None;
    }
    if let Ok(integer) = value.extract::<i128>() {
        return FieldNumber::integer(integer);
    }
    if let Ok(float) = value.extract() {
        return FieldNumber::float(float);
    }
    let is_time = value.is_instance_of::<PyString>() || value.hasattr("isoformat").unwrap_or(false);
    is_time.then(|| FieldNumber::of_time(&value.str().ok()?.to_cow().ok()?)).flatten()
}

/// Reads numbers from the arrays of a field. `name` is used in errors.
pub(crate) fn numbers_of_arrays(name: &'static str, arrays: &FieldArrays) -> Result<Vec<FieldNumber>> {
    let mut all = Vec::new();
    for (array, nulls) in arrays {
        let read = reader(array.data_type()).ok_or_else(|| {
            let found = array.data_type();
            PyTypeError::new_err(format!(
                "{name}: expected integers, times or floats, found {found}; cast the column"
            ))
        })?;
        for at in 0..array.len() {
            let is_null = array.is_null(at) || nulls.as_ref().is_some_and(|nulls| nulls[at]);
            let number = if is_null { None } else { read(array, at) };
            all.push(number.ok_or_else(|| wrong(name, all.len(), if is_null { "none" } else { "neither" }))?);
        }
    }
    Ok(all)
}

/// Returns a function that reads a number or time from a column of this type; `None` if the type has neither.
fn reader(of_type: &DataType) -> Option<fn(&ArrayRef, usize) -> Option<FieldNumber>> {
    macro_rules! integers {
        ($type:ty) => {
            |array, at| FieldNumber::integer(array.as_primitive::<$type>().value(at).into())
        };
    }
    macro_rules! times {
        ($type:ty, $per_second:expr, $times:expr) => {
            |array, at| {
                let units = i64::from(array.as_primitive::<$type>().value(at)).checked_mul($times)?;
                Some(FieldNumber::time(units, $per_second))
            }
        };
    }
    Some(match of_type {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Float32 => {
            |array, at| FieldNumber::float(array.as_primitive::<Float32Type>().value(at).into())
        }
        DataType::Float64 => |array, at| FieldNumber::float(array.as_primitive::<Float64Type>().value(at)),
        DataType::Utf8 => |array, at| FieldNumber::of_time(array.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => |array, at| FieldNumber::of_time(array.as_string::<i64>().value(at)),
        DataType::Utf8View => |array, at| FieldNumber::of_time(array.as_string_view().value(at)),
        DataType::Date32 => times!(Date32Type, 1, SECONDS_PER_DAY),
        DataType::Timestamp(TimeUnit::Second, _) => times!(TimestampSecondType, 1, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => times!(TimestampMillisecondType, 1_000, 1),
        DataType::Timestamp(TimeUnit::Microsecond, _) => times!(TimestampMicrosecondType, 1_000_000, 1),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => times!(TimestampNanosecondType, 1_000_000_000, 1),
        _ => return None,
    })
}

const SECONDS_PER_DAY: i64 = 24 * 3600;

fn wrong(name: &str, at: usize, found: &str) -> Failure {
    let shown: String = found.chars().take(40).collect();
    let why = format!("{name}: expected an int of at most 116 bits, a time or a finite float, found {shown}");
    Failure::Record(at, Error::Invalid(why))
}
