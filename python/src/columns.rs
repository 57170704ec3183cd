//! Columns in and out: lists of Python, and Arrow's arrays by the C data interface.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString};
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::input::AnyArray;
use twindex::params::KeyKind;
use twindex::{Key, KeyBuf};

use crate::error::{Failure, Result};

/// A value of Python's.
enum Value {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    Number(u64),
    None,
}

/// Texts, keys or bytes, one after the other; nothing of them is copied.
pub(crate) struct Column {
    name: &'static str,
    source: Source,
    len: usize,
}

enum Source {
    Values(Vec<Value>),
    /// Arrays, and how many rows there are up to the end of each.
    Arrays(Vec<(usize, ArrayRef)>),
}

impl Column {
    /// Takes an Arrow array, a stream of such, or any sequence of str, bytes or int. `name` is what errors call it.
    pub(crate) fn of(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        if values.hasattr("__arrow_c_array__")? || values.hasattr("__arrow_c_stream__")? {
            return Self::of_arrow(name, values);
        }
        if values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>() {
            let why =
                format!("{name}: expected a list or an Arrow array, found a single value; put it in a list");
            return Err(PyTypeError::new_err(why).into());
        }
        let mut all = Vec::with_capacity(values.len().unwrap_or(0));
        for (at, value) in values.try_iter()?.enumerate() {
            let value = value?;
            all.push(if let Ok(text) = value.extract::<PyBackedStr>() {
                Value::Text(text)
            } else if let Ok(bytes) = value.extract::<PyBackedBytes>() {
                Value::Bytes(bytes)
            } else if value.is_none() {
                Value::None
            } else if let Ok(number) = value.extract::<u64>() {
                Value::Number(number)
            } else if value.is_instance_of::<PyString>() {
                let why = "expected text that UTF-8 can write, found a lone surrogate; encode it as bytes yourself, for \
                           example by .encode(errors=\"replace\")";
                return Err(Failure::Record(at, twindex::Error::Invalid(format!("{name}: {why}"))));
            } else {
                let kind = value.get_type().name()?;
                let why = format!(
                    "{name}[{at}]: expected str, bytes or an int of 0 to 2^64 - 1, found {kind} {value}"
                );
                return Err(PyTypeError::new_err(why).into());
            });
        }
        Ok(Self { name, len: all.len(), source: Source::Values(all) })
    }

    fn of_arrow(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        let chunks = values.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?;
        let mut arrays = Vec::new();
        let mut len = 0;
        for array in chunks.chunks() {
            let taken = matches!(
                array.data_type(),
                DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::Int32
                    | DataType::Int64
                    | DataType::UInt32
                    | DataType::UInt64
                    | DataType::Null
            );
            if !taken {
                let found = array.data_type();
                let why =
                    format!("{name}: expected strings, binary or integers, found {found}; cast the column");
                return Err(PyTypeError::new_err(why).into());
            }
            len += array.len();
            arrays.push((len, Arc::clone(array)));
        }
        Ok(Self { name, source: Source::Arrays(arrays), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The array that has this row, and where in it; none for null.
    fn place<'a>(&self, arrays: &'a [(usize, ArrayRef)], row: usize) -> Option<(&'a ArrayRef, usize)> {
        debug_assert!(row < self.len);
        let at = arrays.partition_point(|&(end, _)| end <= row);
        let start = if at == 0 { 0 } else { arrays[at - 1].0 };
        let array = &arrays[at].1;
        // An array of the type of nulls alone marks none of them.
        (*array.data_type() != DataType::Null && !array.is_null(row - start)).then_some((array, row - start))
    }

    /// The bytes of a text, or of a key of bytes; none for null.
    ///
    /// # Errors
    /// A number.
    pub(crate) fn bytes(&self, row: usize) -> Result<Option<&[u8]>> {
        match &self.source {
            Source::Values(values) => match &values[row] {
                Value::Text(text) => Ok(Some(text.as_bytes())),
                Value::Bytes(bytes) => Ok(Some(bytes)),
                Value::None => Ok(None),
                Value::Number(_) => Err(self.refused(row, "expected str or bytes, found an int")),
            },
            Source::Arrays(arrays) => {
                let Some((array, row_there)) = self.place(arrays, row) else { return Ok(None) };
                match array.data_type() {
                    DataType::Utf8 => Ok(Some(array.as_string::<i32>().value(row_there).as_bytes())),
                    DataType::LargeUtf8 => Ok(Some(array.as_string::<i64>().value(row_there).as_bytes())),
                    DataType::Utf8View => Ok(Some(array.as_string_view().value(row_there).as_bytes())),
                    DataType::Binary => Ok(Some(array.as_binary::<i32>().value(row_there))),
                    DataType::LargeBinary => Ok(Some(array.as_binary::<i64>().value(row_there))),
                    DataType::BinaryView => Ok(Some(array.as_binary_view().value(row_there))),
                    _ => Err(self.refused(row, "expected strings or binary, found integers")),
                }
            }
        }
    }

    /// The bytes of a text, which must be there.
    pub(crate) fn text(&self, row: usize) -> Result<&[u8]> {
        let missing =
            "expected a text, found none; fill it in, \"\" for an empty one, or leave the record out";
        self.bytes(row)?.ok_or_else(|| self.refused(row, missing))
    }

    /// A number; none for null.
    pub(crate) fn number(&self, row: usize) -> Result<Option<u64>> {
        let negative = |number: i64| {
            u64::try_from(number)
                .map(Some)
                .map_err(|_| self.refused(row, &format!("expected 0 or more, found {number}")))
        };
        match &self.source {
            Source::Values(values) => match &values[row] {
                Value::Number(number) => Ok(Some(*number)),
                Value::None => Ok(None),
                _ => Err(self.refused(row, "expected an int")),
            },
            Source::Arrays(arrays) => {
                let Some((array, row_there)) = self.place(arrays, row) else { return Ok(None) };
                match array.data_type() {
                    DataType::UInt64 => Ok(Some(array.as_primitive::<UInt64Type>().value(row_there))),
                    DataType::UInt32 => Ok(Some(array.as_primitive::<UInt32Type>().value(row_there).into())),
                    DataType::Int64 => negative(array.as_primitive::<Int64Type>().value(row_there)),
                    DataType::Int32 => negative(array.as_primitive::<Int32Type>().value(row_there).into()),
                    _ => Err(self.refused(row, "expected integers")),
                }
            }
        }
    }

    /// A key of an index of this kind.
    pub(crate) fn key(&self, row: usize, kind: KeyKind) -> Result<Key<'_>> {
        let key = match kind {
            KeyKind::Bytes => self.bytes(row)?.map(Key::Bytes),
            KeyKind::U64 => self.number(row)?.map(Key::U64),
        };
        let key = key.ok_or_else(|| self.refused(row, "expected a key, found none"))?;
        key.check(kind).map_err(|error| Failure::Record(row, error))?;
        Ok(key)
    }

    fn refused(&self, row: usize, why: &str) -> Failure {
        Failure::Record(row, twindex::Error::Invalid(format!("{}: {why}", self.name)))
    }

    /// Refuses two columns of different lengths.
    pub(crate) fn check_len(&self, other: &Self) -> Result<()> {
        if self.len == other.len {
            return Ok(());
        }
        let (mine, theirs) = (self.len, other.len);
        Err(Failure::invalid(format!(
            "{} has {mine} values and {} has {theirs}; give one of each for a record",
            self.name, other.name
        )))
    }
}

/// A key that one call names.
pub(crate) fn one_key(key: &Bound<'_, PyAny>, kind: KeyKind) -> Result<KeyBuf> {
    let list = pyo3::types::PyList::new(key.py(), [key])?;
    let column = match Column::of("key", &list) {
        Err(Failure::Record(_, error)) => return Err(error.into()),
        column => column?,
    };
    match column.key(0, kind) {
        Ok(key) => Ok(key.to_buf()),
        Err(Failure::Record(_, error)) => Err(error.into()),
        Err(other) => Err(other),
    }
}

/// A key as Python sees it: int, str, or bytes where it is no UTF-8.
pub(crate) fn key_object<'py>(py: Python<'py>, key: &KeyBuf) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (key, key.as_str()) {
        (KeyBuf::U64(key), _) => key.into_pyobject(py)?.into_any(),
        (_, Some(text)) => text.into_pyobject(py)?.into_any(),
        (KeyBuf::Bytes(bytes), None) => PyBytes::new(py, bytes).into_any(),
    })
}

/// A column of keys that is being made.
pub(crate) enum Keys {
    /// With 64-bit offsets: a column of more than 2 GiB would be a panic otherwise.
    Bytes(LargeBinaryBuilder),
    Numbers(UInt64Builder),
}

impl Keys {
    pub(crate) fn new(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Bytes => Self::Bytes(LargeBinaryBuilder::new()),
            KeyKind::U64 => Self::Numbers(UInt64Builder::new()),
        }
    }

    /// Bytes of those that were pushed.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Bytes(keys) => keys.values_slice().len(),
            Self::Numbers(keys) => size_of_val(keys.values_slice()),
        }
    }

    pub(crate) fn push(&mut self, key: Key<'_>) {
        match (self, key) {
            (Self::Bytes(keys), Key::Bytes(key)) => keys.append_value(key),
            (Self::Numbers(keys), Key::U64(key)) => keys.append_value(key),
            (Self::Bytes(keys), Key::U64(_)) => keys.append_null(),
            (Self::Numbers(keys), Key::Bytes(_)) => keys.append_null(),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bytes(keys) => Arc::new(keys.finish()),
            Self::Numbers(keys) => Arc::new(keys.finish()),
        }
    }
}

/// Columns as a batch that any library of Arrow's takes.
pub(crate) fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<PyRecordBatch> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), column.is_nullable()))
        .collect();
    let arrays = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| Failure::invalid(error.to_string()))?;
    Ok(PyRecordBatch::new(batch))
}
