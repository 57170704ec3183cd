//! Reads columns from Python sequences and from Arrow arrays (C data interface), and builds columns of results.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::input::AnyArray;
use twindex::params::KeyKind;
use twindex::{Code, Key, KeyBuf};
use twindex_corpus::Features;

use crate::arrays::{FieldArrays, descend, has_own_rows, is_arrow, is_missing, is_nested};
use crate::error::{Failure, Result};

/// A Python value of a column.
enum Value {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    Number(i128),
    /// The canonical bytes of features.
    Features(Vec<u8>),
    None,
}

/// A column of texts, keys or bytes. Its data is not copied.
pub(crate) struct Column {
    name: &'static str,
    source: ColumnSource,
    len: usize,
}

enum ColumnSource {
    Values(Vec<Value>),
    /// The rows of a matrix of bytes, one after the other.
    Matrix {
        bytes: PyBackedBytes,
        width: usize,
    },
    Arrays(Vec<ColumnPiece>),
}

/// An array of a column.
struct ColumnPiece {
    /// Number of rows of the column up to the end of this array.
    end: usize,
    array: ArrayRef,
    /// The index into `array` for each row, `None` for a null. Only dictionaries, and fields of structs with nulls,
    /// have these indexes.
    keys: Option<Vec<Option<u32>>>,
}

impl Column {
    /// Creates a column from an Arrow array, a stream of Arrow arrays, a table with one column or one column of text,
    /// or any sequence of str, bytes or int. `name` is used in errors.
    pub(crate) fn of(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        Self::of_opened(name, &opened(name, values)?)
    }

    /// Creates a column of fingerprints from a matrix of bytes, such as a numpy array of uint8, or like [`of`](Self::of).
    pub(crate) fn of_codes(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        let Some((view, [len, width])) = byte_view(name, values)? else { return Self::of(name, values) };
        let bytes = view.call_method0("tobytes")?.extract::<PyBackedBytes>().map_err(PyErr::from)?;
        Ok(Self { name, len, source: ColumnSource::Matrix { bytes, width } })
    }

    /// The same as [`of`](Self::of) for a container that is [opened](opened).
    pub(crate) fn of_opened(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        // A Hugging Face dataset must be read by columns, because its Arrow interface does not apply a selection of
        // rows.
        if is_arrow(values)? && !has_own_rows(values) {
            return Self::of_arrow(name, values);
        }
        if let Some(one) = only_column(values)? {
            return Self::of_opened(name, &values.get_item(one)?);
        }
        if values.is_instance_of::<PyDict>()
            || values.hasattr("columns")?
            || values.hasattr("column_names")?
        {
            let found = values.get_type().name()?;
            let why =
                format!("{name}: expected a column, found a table ({found}); name one by text_field=\"...\"");
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
            } else if let Some(number) = integer(&value) {
                Value::Number(number)
            } else if value.is_instance_of::<PyDict>()
                || value.is_instance_of::<PyList>()
                || value.is_instance_of::<PyTuple>()
            {
                Value::Features(features_of(name, at, &value)?)
            } else if is_missing(&value)? {
                Value::None
            } else if value.is_instance_of::<PyString>() {
                let why = "expected text that UTF-8 can write, found a lone surrogate; encode it as bytes yourself, for \
                           example by .encode(errors=\"replace\")";
                return Err(Failure::Record(at, twindex::Error::Invalid(format!("{name}: {why}"))));
            } else {
                let kind = value.get_type().name()?;
                let why = format!(
                    "{name}[{at}]: expected str, bytes or an int of at most 64 bits, found {kind} {value}"
                );
                return Err(PyTypeError::new_err(why).into());
            });
        }
        Ok(Self { name, len: all.len(), source: ColumnSource::Values(all) })
    }

    fn of_arrow(name: &'static str, values: &Bound<'_, PyAny>) -> Result<Self> {
        let chunks = values.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?;
        // Sets and vectors of features are converted to Python lists and pairs.
        if is_nested(chunks.data_type()) {
            for list in ["to_pylist", "to_list"] {
                if values.hasattr(list)? {
                    return Self::of_opened(name, &values.call_method0(list)?);
                }
            }
        }
        let arrays = chunks.chunks().iter().map(|array| only_text(name, array));
        Self::of_arrays(name, arrays.collect::<Result<_>>()?)
    }

    /// Creates a column from the arrays of a field.
    pub(crate) fn of_arrays(name: &'static str, arrays: FieldArrays) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut len = 0;
        for (array, nulls) in arrays {
            let (array, keys) = match (dictionary(&array)?, nulls) {
                (None, None) => (array, None),
                (None, Some(nulls)) => {
                    let place = |(row, is_null): (usize, &bool)| (!is_null).then_some(row as u32);
                    (array, Some(nulls.iter().enumerate().map(place).collect()))
                }
                (Some((values, keys)), None) => (values, Some(keys)),
                (Some((values, keys)), Some(nulls)) => {
                    let keys = keys.into_iter().zip(nulls).map(|(key, is_null)| key.filter(|_| !is_null));
                    (values, Some(keys.collect()))
                }
            };
            let taken = matches!(
                array.data_type(),
                DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
                    | DataType::Int8
                    | DataType::Int16
                    | DataType::Int32
                    | DataType::Int64
                    | DataType::UInt8
                    | DataType::UInt16
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
            len += keys.as_ref().map_or(array.len(), Vec::len);
            pieces.push(ColumnPiece { end: len, array, keys });
        }
        Ok(Self { name, source: ColumnSource::Arrays(pieces), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the array that contains this row, and the position of the row in the array; `None` for a null.
    fn place<'a>(&self, arrays: &'a [ColumnPiece], row: usize) -> Option<(&'a ArrayRef, usize)> {
        debug_assert!(row < self.len);
        let at = arrays.partition_point(|piece| piece.end <= row);
        let start = if at == 0 { 0 } else { arrays[at - 1].end };
        let ColumnPiece { array, keys, .. } = &arrays[at];
        let place =
            keys.as_ref().map_or(Some(row - start), |keys| keys[row - start].map(|key| key as usize))?;
        // An array of the null type does not mark its values as null.
        (*array.data_type() != DataType::Null && !array.is_null(place)).then_some((array, place))
    }

    /// Returns the integer in a row; `None` for a null and for a value of another type.
    pub(crate) fn integer(&self, row: usize) -> Option<i128> {
        match &self.source {
            ColumnSource::Values(values) => match values[row] {
                Value::Number(number) => Some(number),
                _ => None,
            },
            ColumnSource::Matrix { .. } => None,
            ColumnSource::Arrays(arrays) => {
                let (array, row) = self.place(arrays, row)?;
                macro_rules! of {
                    ($type:ty) => {
                        Some(array.as_primitive::<$type>().value(row).into())
                    };
                }
                match array.data_type() {
                    DataType::Int8 => of!(Int8Type),
                    DataType::Int16 => of!(Int16Type),
                    DataType::Int32 => of!(Int32Type),
                    DataType::Int64 => of!(Int64Type),
                    DataType::UInt8 => of!(UInt8Type),
                    DataType::UInt16 => of!(UInt16Type),
                    DataType::UInt32 => of!(UInt32Type),
                    DataType::UInt64 => of!(UInt64Type),
                    _ => None,
                }
            }
        }
    }

    /// Returns the value of a row as bytes, with a number as decimal digits; `None` for a null.
    pub(crate) fn shown(&self, row: usize) -> Result<Option<Cow<'_, [u8]>>> {
        match self.integer(row) {
            Some(number) => Ok(Some(number.to_string().into_bytes().into())),
            None => Ok(self.bytes(row)?.map(Cow::Borrowed)),
        }
    }

    /// Returns the bytes of a text or of a bytes key; `None` for a null.
    ///
    /// # Errors
    /// The value of the row is a number.
    pub(crate) fn bytes(&self, row: usize) -> Result<Option<&[u8]>> {
        match &self.source {
            ColumnSource::Values(values) => match &values[row] {
                Value::Text(text) => Ok(Some(text.as_bytes())),
                Value::Bytes(bytes) => Ok(Some(bytes)),
                Value::None => Ok(None),
                Value::Number(_) => Err(self.wrong_type(row, "expected str or bytes, found an int")),
                Value::Features(_) => Err(self.wrong_type(
                    row,
                    "expected str or bytes, found features, which are taken with tokens=\"features\" alone",
                )),
            },
            ColumnSource::Matrix { bytes, width } => Ok(Some(&bytes[row * width..][..*width])),
            ColumnSource::Arrays(arrays) => {
                let Some((array, row_there)) = self.place(arrays, row) else { return Ok(None) };
                match array.data_type() {
                    DataType::Utf8 => Ok(Some(array.as_string::<i32>().value(row_there).as_bytes())),
                    DataType::LargeUtf8 => Ok(Some(array.as_string::<i64>().value(row_there).as_bytes())),
                    DataType::Utf8View => Ok(Some(array.as_string_view().value(row_there).as_bytes())),
                    DataType::Binary => Ok(Some(array.as_binary::<i32>().value(row_there))),
                    DataType::LargeBinary => Ok(Some(array.as_binary::<i64>().value(row_there))),
                    DataType::BinaryView => Ok(Some(array.as_binary_view().value(row_there))),
                    DataType::FixedSizeBinary(_) => Ok(Some(array.as_fixed_size_binary().value(row_there))),
                    _ => {
                        Err(self
                            .wrong_type(row, "expected a string or bytes, found an integer; cast the column"))
                    }
                }
            }
        }
    }

    /// Returns whether the value in a row is a set or vector of features.
    pub(crate) fn is_features(&self, row: usize) -> bool {
        matches!(&self.source, ColumnSource::Values(values) if matches!(values[row], Value::Features(_)))
    }

    /// Returns the bytes of a text, which must not be null.
    pub(crate) fn text(&self, row: usize) -> Result<&[u8]> {
        self.needed(row, false)
    }

    /// Returns the bytes of a text or, if documents are features, their canonical bytes; `None` for a null.
    ///
    /// # Errors
    /// The value is a number, or features are given where a text is expected, or the reverse.
    pub(crate) fn document(&self, row: usize, is_features: bool) -> Result<Option<&[u8]>> {
        const EXPECTED: &str = "expected features, a dict of weights, a list of names, or one of pairs of a name and its weight, \
                                found";
        match &self.source {
            _ if !is_features => self.bytes(row),
            ColumnSource::Values(values) => match &values[row] {
                Value::Features(canonical) => Ok(Some(canonical)),
                Value::None => Ok(None),
                Value::Text(_) | Value::Bytes(_) => Err(self.wrong_type(row, &format!("{EXPECTED} a text"))),
                Value::Number(_) => Err(self.wrong_type(row, &format!("{EXPECTED} an int"))),
            },
            ColumnSource::Matrix { .. } => Err(self.wrong_type(row, &format!("{EXPECTED} a matrix"))),
            ColumnSource::Arrays(arrays) => match self.place(arrays, row) {
                None => Ok(None),
                Some((array, _)) => {
                    Err(self.wrong_type(row, &format!("{EXPECTED} an Arrow column of {}", array.data_type())))
                }
            },
        }
    }

    /// The same as [`document`](Self::document), but a null is an error.
    pub(crate) fn needed(&self, row: usize, is_features: bool) -> Result<&[u8]> {
        let missing = if is_features {
            "expected features, found none; fill them in, or leave the record out"
        } else {
            "expected a text, found none; fill it in, or leave the record out"
        };
        self.document(row, is_features)?.ok_or_else(|| self.refused(row, missing))
    }

    /// Returns a number; `None` for a null.
    pub(crate) fn number(&self, row: usize) -> Result<Option<u64>> {
        let Some(number) = self.integer(row) else {
            let is_null = match &self.source {
                ColumnSource::Values(values) => matches!(values[row], Value::None),
                ColumnSource::Matrix { .. } => false,
                ColumnSource::Arrays(arrays) => self.place(arrays, row).is_none(),
            };
            return if is_null { Ok(None) } else { Err(self.wrong_type(row, "expected an int")) };
        };
        let found = || self.refused(row, &format!("expected 0 or more, found {number}"));
        u64::try_from(number).map(Some).map_err(|_| found())
    }

    /// Returns the fingerprint in a row, which must have this number of bits.
    pub(crate) fn code(&self, row: usize, bits: u16) -> Result<Code> {
        let is_text = match &self.source {
            ColumnSource::Values(values) => matches!(values[row], Value::Text(_)),
            ColumnSource::Matrix { .. } => false,
            ColumnSource::Arrays(arrays) => {
                self.place(arrays, row).is_some_and(|(array, _)| is_string(array.data_type()))
            }
        };
        if is_text {
            let why = "expected bytes, found a text; bytes.fromhex reads hexadecimal digits";
            return Err(self.wrong_type(row, why));
        }
        let bytes = self.bytes(row)?;
        bytes.and_then(Code::of_bytes).filter(|code| code.bits() == usize::from(bits)).ok_or_else(|| {
            let found = bytes.map_or("none".into(), |bytes| format!("{} bytes", bytes.len()));
            let why = format!("expected a fingerprint of {bits} bits, {} bytes, found {found}", bits / 8);
            self.refused(row, &why)
        })
    }

    /// Returns the key in a row, for an index with keys of this kind.
    pub(crate) fn key(&self, row: usize, kind: KeyKind) -> Result<Key<'_>> {
        let key = match kind {
            KeyKind::Bytes => self.bytes(row)?.map(Key::Bytes),
            KeyKind::U64 => self.number(row)?.map(Key::U64),
        };
        let key = key.ok_or_else(|| self.refused(row, "expected a key, found none"))?;
        key.check(kind).map_err(|error| Failure::Record(row, error))?;
        Ok(key)
    }

    /// Returns an error about a row. The error names this column.
    pub(crate) fn refused(&self, row: usize, why: &str) -> Failure {
        Failure::Record(row, twindex::Error::Invalid(format!("{}: {why}", self.name)))
    }

    /// Returns an error for a value of a wrong type. It is a `TypeError`, and names this column and the row.
    fn wrong_type(&self, row: usize, why: &str) -> Failure {
        PyTypeError::new_err(format!("{}[{row}]: {why}", self.name)).into()
    }

    /// Returns an error if the columns have different lengths.
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

/// Returns an int of at most 64 bits, signed or unsigned; `None` for anything else.
fn integer(value: &Bound<'_, PyAny>) -> Option<i128> {
    let number = value.extract::<i128>().ok()?;
    (i64::MIN.into()..=u64::MAX.into()).contains(&number).then_some(number)
}

/// Calls a function of `twindex/_containers.py`.
pub(crate) fn in_containers<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("twindex._containers")?.call_method1(function, arguments)
}

/// Opens a container of any library. `name` is the name of the argument, for errors.
pub(crate) fn opened<'py>(name: &str, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // A list of values needs no import.
    if let Ok(list) = values.cast_exact::<PyList>()
        && let Ok(first) = list.get_item(0)
        && (first.is_instance_of::<PyString>() || first.is_instance_of::<PyBytes>())
    {
        return Ok(values.clone());
    }
    in_containers(values.py(), "opened", (name, values))
}

/// Returns the canonical bytes of the features in a Python value, which is first converted to JSON.
fn features_of(name: &str, at: usize, value: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let refused = |why: String| Failure::Record(at, twindex::Error::Invalid(format!("{name}: {why}")));
    let options = PyDict::new(value.py());
    options.set_item("allow_nan", false)?;
    let json = value.py().import("json")?.call_method("dumps", (value,), Some(&options));
    let json = json.and_then(|json| json.extract::<String>());
    let json = json.map_err(|error| refused(format!("features that JSON cannot write: {error}")))?;
    let features = Features::from_json(&json).map_err(|why| refused(format!("a value that {why}")))?;
    Ok(features.canonical())
}

/// Returns the name of a table's only column; `None` if there are several columns or no column names.
fn only_column(values: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Some(names) = values.getattr_opt("column_names")? else { return Ok(None) };
    let names = names.extract::<Vec<String>>().unwrap_or_default();
    Ok(<[String; 1]>::try_from(names).ok().map(|[name]| name))
}

/// Returns the only column or the only text column of a table. An array that is not a table is returned unchanged.
fn only_text(name: &str, array: &ArrayRef) -> Result<(ArrayRef, Option<Vec<bool>>)> {
    let DataType::Struct(fields) = array.data_type() else { return Ok((Arc::clone(array), None)) };
    let is_text = |of_type: &DataType| match of_type {
        DataType::Dictionary(_, values) => is_string(values),
        of_type => is_string(of_type),
    };
    let texts: Vec<usize> = (0..fields.len()).filter(|&at| is_text(fields[at].data_type())).collect();
    let at = match (fields.len(), &texts[..]) {
        (1, _) => 0,
        (_, &[one]) => one,
        _ => {
            let names = fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
            let why = format!("{name}: which of the columns {names}? name it by text_field=\"...\"");
            return Err(Failure::invalid(why));
        }
    };
    Ok(descend(array, &[at]))
}

fn is_string(of_type: &DataType) -> bool {
    matches!(of_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The values of a dictionary array, and the index of each row's value.
type DictionaryValues = (ArrayRef, Vec<Option<u32>>);

fn dictionary(array: &ArrayRef) -> Result<Option<DictionaryValues>> {
    let Some(found) = array.as_any_dictionary_opt() else { return Ok(None) };
    let values = Arc::clone(found.values());
    if values.is_empty() {
        return Ok(Some((values, vec![None; array.len()])));
    }
    let place = |(row, key): (usize, usize)| {
        if array.is_null(row) {
            return Ok(None);
        }
        u32::try_from(key).map(Some).map_err(|_| Failure::invalid("a dictionary of more than 2^32 values"))
    };
    let keys = found.normalized_keys().into_iter().enumerate().map(place).collect::<Result<_>>()?;
    Ok(Some((values, keys)))
}

/// Views an object as a matrix of bytes, with its numbers of rows and columns; `None` for an object without a buffer of
/// two dimensions. A matrix of other numbers is an error.
fn byte_view<'py>(
    name: &str,
    values: &Bound<'py, PyAny>,
) -> Result<Option<(Bound<'py, PyMemoryView>, [usize; 2])>> {
    let Ok(view) = PyMemoryView::from(values) else { return Ok(None) };
    let Ok(shape) = view.getattr("shape")?.extract::<[usize; 2]>() else { return Ok(None) };
    let format = view.getattr("format")?.extract::<String>()?;
    if format != "B" {
        let why = format!(
            "{name}: expected a matrix of uint8, found the format {format}; numpy.packbits packs bits into bytes"
        );
        return Err(PyTypeError::new_err(why).into());
    }
    Ok(Some((view, shape)))
}

/// Extracts the fingerprint that a call was given as an argument: bytes, or a vector of uint8.
pub(crate) fn one_code(code: &Bound<'_, PyAny>, bits: u16) -> Result<Code> {
    let is_row = |view: &Bound<'_, PyMemoryView>| -> PyResult<bool> {
        Ok(view.getattr("ndim")?.extract::<usize>()? == 1 && view.getattr("format")?.eq("B")?)
    };
    let bytes = match PyMemoryView::from(code) {
        Ok(view) if is_row(&view)? => view.call_method0("tobytes")?,
        _ => code.clone(),
    };
    alone(Column::of("code", PyList::new(code.py(), [bytes])?.as_any()), |column| column.code(0, bits))
}

/// Reads the only row of a column. Errors do not name the row.
fn alone<T>(column: Result<Column>, read: impl FnOnce(&Column) -> Result<T>) -> Result<T> {
    match column.and_then(|column| read(&column)) {
        Err(Failure::Record(_, error)) => Err(error.into()),
        read => read,
    }
}

/// Extracts the key that a call was given as an argument.
pub(crate) fn one_key(key: &Bound<'_, PyAny>, kind: KeyKind) -> Result<KeyBuf> {
    let column = Column::of("key", PyList::new(key.py(), [key])?.as_any());
    alone(column, |column| Ok(column.key(0, kind)?.to_buf()))
}

/// Converts a key to a Python object: int, str, or bytes if it is not valid UTF-8.
pub(crate) fn key_object<'py>(py: Python<'py>, key: &KeyBuf) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (key, key.as_str()) {
        (KeyBuf::U64(key), _) => key.into_pyobject(py)?.into_any(),
        (_, Some(text)) => text.into_pyobject(py)?.into_any(),
        (KeyBuf::Bytes(bytes), None) => PyBytes::new(py, bytes).into_any(),
    })
}

/// A column of keys that is being built.
pub(crate) enum Keys {
    /// Uses 64-bit offsets, because 32-bit offsets panic for a column of more than 2 GiB.
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

    /// Returns the number of key bytes added so far.
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

/// Creates a record batch that any Arrow library accepts.
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
