//! Columns of results: Arrow arrays that behave like Python sequences, and convert to numpy arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, StructArray, UInt32Array};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};
use pyo3_arrow::PyArray;

use crate::error::{Failure, Result};

/// Maximum number of values that `repr` shows.
const SHOWN: usize = 20;

/// A column of a result, with one value for each text or for each pair. It supports the operations of a sequence: len(),
/// [], slices, for and ==. numpy.asarray and Arrow libraries accept it as an array.
#[pyclass(frozen, sequence, module = "twindex")]
pub(crate) struct Values {
    array: ArrayRef,
}

/// A part of a pickled column: its type, its concatenated values, and a bit mask of the values that are not null.
type Pickled<'py> = (String, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

impl Values {
    pub(crate) fn numbers(numbers: Vec<u32>) -> Self {
        Self { array: Arc::new(UInt32Array::from(numbers)) }
    }

    pub(crate) fn some_numbers(numbers: Vec<Option<u32>>) -> Self {
        Self { array: Arc::new(UInt32Array::from(numbers)) }
    }

    pub(crate) fn scores(scores: Vec<Option<f64>>) -> Self {
        Self { array: Arc::new(Float64Array::from(scores)) }
    }

    pub(crate) fn flags(flags: Vec<bool>) -> Self {
        Self { array: Arc::new(BooleanArray::from(flags)) }
    }

    /// Creates columns for pairs: two positions and a score.
    pub(crate) fn pairs(names: [&str; 3], pairs: &[(u32, u32, f64)]) -> Self {
        let field = |name: &str, of_type| Arc::new(Field::new(name, of_type, false));
        let [a, b, score] = names;
        let firsts: ArrayRef = Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.0)));
        let seconds: ArrayRef = Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.1)));
        let scores: ArrayRef = Arc::new(Float64Array::from_iter_values(pairs.iter().map(|pair| pair.2)));
        let array = StructArray::from(vec![
            (field(a, DataType::UInt32), firsts),
            (field(b, DataType::UInt32), seconds),
            (field(score, DataType::Float64), scores),
        ]);
        Self { array: Arc::new(array) }
    }

    pub(crate) fn array(&self) -> &ArrayRef {
        &self.array
    }

    fn value<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        value(py, &self.array, at)
    }

    fn list<'py>(
        &self,
        py: Python<'py>,
        places: impl Iterator<Item = usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let values: Vec<_> = places.map(|at| self.value(py, at)).collect::<PyResult<_>>()?;
        PyList::new(py, values)
    }
}

fn value<'py>(py: Python<'py>, array: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(at).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(at).into_pyobject(py)?.into_any(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(at).into_pyobject(py)?.into_any(),
        _ => {
            let parts = array.as_struct().columns().iter().map(|part| value(py, part, at));
            PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
    })
}

#[pymethods]
impl Values {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.array.len();
        if let Ok(slice) = at.cast::<PySlice>() {
            let cut = slice.indices(len.cast_signed())?;
            let place = |step: usize| (cut.start + step.cast_signed() * cut.step).cast_unsigned();
            return Ok(self.list(py, (0..cut.slicelength).map(place))?.into_any());
        }
        let given: isize = at.extract()?;
        let place = if given < 0 { given + len.cast_signed() } else { given };
        match usize::try_from(place) {
            Ok(place) if place < len => self.value(py, place),
            _ => Err(PyIndexError::new_err(format!("expected a place below {len}, found {given}"))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tolist(py)?.call_method0("__iter__")
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(other) = other.cast::<Self>() {
            let other = &other.get().array;
            return Ok(self.array.data_type() == other.data_type() && self.array.to_data() == other.to_data());
        }
        if !(other.is_instance_of::<PyList>() || other.is_instance_of::<PyTuple>()) {
            return Ok(false);
        }
        self.tolist(py)?.eq(PyList::new(py, other.try_iter()?.collect::<PyResult<Vec<_>>>()?)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let len = self.array.len();
        let shown = self.list(py, 0..len.min(SHOWN))?.repr()?.to_string();
        if len <= SHOWN {
            return Ok(shown);
        }
        Ok(format!("{}, ...] ({len} values)", shown.trim_end_matches(']')))
    }

    /// Returns a list of all values.
    pub(crate) fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.list(py, 0..self.array.len())
    }

    /// Returns a numpy array of all values. Missing values become NaN, which converts integers to floats. Pairs have
    /// three types, so they cannot be converted; use an Arrow library for them.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The numpy array is always a copy.
        if copy == Some(false) {
            return Err(
                Failure::invalid("copy: expected None or True, found False: values are copied").into()
            );
        }
        let array: ArrayRef = match self.array.data_type() {
            DataType::Struct(_) => {
                let why = "pairs have no numpy array: take them as Arrow, or as a list by tolist()";
                return Err(PyTypeError::new_err(why));
            }
            DataType::UInt32 if self.array.null_count() > 0 => {
                let numbers = self.array.as_primitive::<UInt32Type>().iter();
                Arc::new(Float64Array::from_iter_values(numbers.map(|n| n.map_or(f64::NAN, f64::from))))
            }
            DataType::Float64 if self.array.null_count() > 0 => {
                let numbers = self.array.as_primitive::<Float64Type>().iter();
                Arc::new(Float64Array::from_iter_values(numbers.map(|n| n.unwrap_or(f64::NAN))))
            }
            _ => Arc::clone(&self.array),
        };
        let made = PyArray::from_array_ref(array).into_pyobject(py)?.call_method0("__array__")?;
        match dtype {
            Some(dtype) => made.call_method1("astype", (dtype,)),
            None => Ok(made),
        }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = PyArray::from_array_ref(Arc::clone(&self.array)).into_pyobject(py)?;
        array.call_method1("__arrow_c_array__", (requested_schema,))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyArray::from_array_ref(Arc::clone(&self.array)).into_pyobject(py)?.call_method0("__arrow_c_schema__")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let parts: Vec<Pickled<'py>> = match self.array.data_type() {
            DataType::Struct(fields) => {
                let columns = self.array.as_struct().columns();
                fields.iter().zip(columns).map(|(field, part)| pickled(py, field.name(), part)).collect()
            }
            _ => vec![pickled(py, "", &self.array)],
        };
        Ok((py.get_type::<Self>().getattr("_of")?, PyTuple::new(py, parts)?))
    }

    /// Restores a pickled column from the arguments of `__reduce__`.
    #[staticmethod]
    #[pyo3(signature = (*parts))]
    fn _of(parts: &Bound<'_, PyTuple>) -> Result<Self> {
        let mut columns = Vec::new();
        for part in parts.iter() {
            let (name, bytes, valid) = part.extract::<(String, Vec<u8>, Option<Vec<u8>>)>()?;
            let (kind, name) = name.split_at(1.min(name.len()));
            let is_there = |at: usize| valid.as_ref().is_none_or(|valid| valid.get(at) == Some(&1));
            let array: ArrayRef = match kind {
                "b" => Arc::new(bytes.iter().map(|&byte| Some(byte == 1)).collect::<BooleanArray>()),
                "u" => {
                    let all = bytes.as_chunks::<4>().0.iter().enumerate();
                    Arc::new(
                        all.map(|(at, bytes)| is_there(at).then(|| u32::from_le_bytes(*bytes)))
                            .collect::<UInt32Array>(),
                    )
                }
                "f" => {
                    let all = bytes.as_chunks::<8>().0.iter().enumerate();
                    Arc::new(
                        all.map(|(at, bytes)| is_there(at).then(|| f64::from_le_bytes(*bytes)))
                            .collect::<Float64Array>(),
                    )
                }
                other => {
                    return Err(Failure::invalid(format!(
                        "a pickled column: expected b, u or f, found {other}"
                    )));
                }
            };
            columns.push((name.to_owned(), array));
        }
        match <[_; 1]>::try_from(columns) {
            Ok([(name, array)]) if name.is_empty() => Ok(Self { array }),
            Ok(_) => Err(Failure::invalid("a pickled column: expected one without a name")),
            Err(columns) => {
                let lens = columns.iter().map(|(_, array)| array.len());
                if columns.is_empty() || lens.clone().min() != lens.max() {
                    return Err(Failure::invalid("a pickled column: its parts are not of one length"));
                }
                let field = |name: &String, array: &ArrayRef| {
                    Arc::new(Field::new(name, array.data_type().clone(), array.is_nullable()))
                };
                let parts = columns.iter().map(|(name, array)| (field(name, array), Arc::clone(array)));
                Ok(Self { array: Arc::new(StructArray::from(parts.collect::<Vec<_>>())) })
            }
        }
    }
}

fn pickled<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> Pickled<'py> {
    let (kind, bytes): (&str, Vec<u8>) = match array.data_type() {
        DataType::Boolean => {
            ("b", array.as_boolean().iter().map(|flag| u8::from(flag == Some(true))).collect())
        }
        DataType::UInt32 => {
            let values = array.as_primitive::<UInt32Type>().values();
            ("u", values.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
        _ => {
            let values = array.as_primitive::<Float64Type>().values();
            ("f", values.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
    };
    let valid: Option<Vec<u8>> =
        (array.null_count() > 0).then(|| (0..array.len()).map(|at| u8::from(array.is_valid(at))).collect());
    (format!("{kind}{name}"), PyBytes::new(py, &bytes), valid.map(|valid| PyBytes::new(py, &valid)))
}
