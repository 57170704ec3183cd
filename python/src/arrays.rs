//! Arrow arrays and objects of Python, as columns and fields of tables read them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

/// A field of a table: arrays, each with the rows in which a struct around the field is null.
pub(crate) type FieldArrays = Vec<(ArrayRef, Option<Vec<bool>>)>;

/// Returns whether values of a type are lists or maps.
pub(crate) fn is_nested(of_type: &DataType) -> bool {
    matches!(
        of_type,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..)
    )
}

/// Returns the array at these places in a struct array, and the rows in which a struct around it is null.
pub(crate) fn descend(array: &ArrayRef, places: &[usize]) -> (ArrayRef, Option<Vec<bool>>) {
    let (mut array, mut nulls) = (array, None::<Vec<bool>>);
    for &place in places {
        let of = array.as_struct();
        if of.null_count() > 0 {
            let nulls = nulls.get_or_insert_with(|| vec![false; of.len()]);
            (0..of.len()).for_each(|row| nulls[row] |= of.is_null(row));
        }
        array = of.column(place);
    }
    (Arc::clone(array), nulls)
}

/// Returns whether a Python value means a missing value: `None`, NaN, and the missing values of pandas.
pub(crate) fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(true);
    }
    match value.cast::<PyFloat>() {
        Ok(number) => Ok(number.value().is_nan()),
        Err(_) => Ok(matches!(value.get_type().name()?.to_str(), Ok("NAType" | "NaTType"))),
    }
}

/// Returns whether the Arrow interface of a table may give other rows than its columns. Hugging Face datasets can select
/// rows.
pub(crate) fn has_own_rows(values: &Bound<'_, PyAny>) -> bool {
    values.hasattr("_indices").unwrap_or(false)
}

/// Returns whether a value has an Arrow interface.
pub(crate) fn is_arrow(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(values.hasattr("__arrow_c_array__")? || values.hasattr("__arrow_c_stream__")?)
}
