//! Helpers that read columns and table fields from Arrow arrays and Python objects.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

/// A field of a table: its arrays, and for each row of an array whether an enclosing struct is null.
pub(crate) type FieldArrays = Vec<(ArrayRef, Option<Vec<bool>>)>;

/// Returns whether values of a type are lists or maps.
pub(crate) fn is_nested(of_type: &DataType) -> bool {
    matches!(
        of_type,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..)
    )
}

/// Returns the array at a path of field indexes in a struct array, and for each row whether an enclosing struct is
/// null.
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

/// Returns whether a table is a Hugging Face dataset. Its columns apply a selection of rows, but its Arrow interface
/// does not.
pub(crate) fn has_own_rows(values: &Bound<'_, PyAny>) -> bool {
    values.hasattr("_indices").unwrap_or(false)
}

/// Returns whether a value has an Arrow interface.
pub(crate) fn is_arrow(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(values.hasattr("__arrow_c_array__")? || values.hasattr("__arrow_c_stream__")?)
}
