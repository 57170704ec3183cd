//! Parameters.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use twindex::params::{Near, SimhashWeights, Threshold};

use crate::error::{Failure, Result};

#[pyclass(frozen, eq, hash, module = "twindex", from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Params {
    pub(crate) inner: twindex::Params,
}

#[pymethods]
impl Params {
    #[new]
    #[pyo3(signature = (*, words=5, simhash=Some(3), minhash=Some((20, 6)), seed=0, keys="bytes",
        weights="occurrences", signature_bits=8, feature_bits=32, bottom=0, modulus=0,
        threshold=None, near_within=None, sets=false, marks=false, priorities=false, **fields))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn new(
        words: u8,
        simhash: Option<u8>,
        minhash: Option<(u16, u16)>,
        seed: u64,
        keys: &str,
        weights: &str,
        signature_bits: u8,
        feature_bits: u8,
        bottom: u16,
        modulus: u32,
        threshold: Option<f64>,
        near_within: Option<u8>,
        sets: bool,
        marks: bool,
        priorities: bool,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut builder = twindex::Params::builder().words(words).seed(seed).bottom(bottom).modulus(modulus);
        builder = match keys {
            "bytes" => builder,
            "u64" => builder.u64_keys(),
            other => {
                return Err(Failure::invalid(format!("keys: expected bytes or u64, found {other}")).into());
            }
        };
        let weights = match weights {
            "occurrences" => SimhashWeights::Occurrences,
            "distinct" => SimhashWeights::Distinct,
            other => {
                let why = format!("weights: expected occurrences or distinct, found {other}");
                return Err(Failure::invalid(why).into());
            }
        };
        if let Some(within) = simhash {
            builder = builder.simhash_weighted(within, weights);
        }
        if let Some((bands, rows)) = minhash {
            builder = builder.minhash(bands, rows).signature_bits(signature_bits).feature_bits(feature_bits);
        }
        builder = if marks { builder.marks() } else { builder };
        builder = if priorities { builder.priorities() } else { builder };
        builder = if sets { builder.sets() } else { builder };
        let mut inner = builder.clone().build().map_err(Failure::from)?;
        let near = match threshold {
            Some(threshold) => Near::resembling(threshold).map_err(Failure::from)?,
            None => inner.near(),
        };
        let near = near_within.map_or(near, |within| near.or_within(within));
        if threshold.is_some() || near_within.is_some() {
            inner = builder.near(near).build().map_err(Failure::from)?;
        }
        let Some(fields) = fields else { return Ok(Self { inner }) };
        // All else is named as in files.
        let mut lines = inner.fields();
        for (name, value) in fields {
            let name = name.extract::<String>()?.replace('_', "-");
            let Some(line) = lines.iter_mut().find(|(known, _)| *known == name) else {
                let known: Vec<_> =
                    inner.fields().into_iter().map(|(name, _)| name.replace('-', "_")).collect();
                let why = format!("no parameter {name}; there are words, simhash, {}", known.join(", "));
                return Err(PyTypeError::new_err(why));
            };
            line.1 = value.str()?.extract()?;
        }
        let text = lines.iter().fold(String::new(), |text, (name, value)| text + name + "=" + value + "\n");
        Ok(Self { inner: twindex::Params::decode(&text).map_err(Failure::from)? })
    }

    #[classmethod]
    fn parse(_class: &Bound<'_, PyType>, text: &str) -> Result<Self> {
        Ok(Self { inner: twindex::Params::decode(text)? })
    }

    #[getter]
    fn text(&self) -> String {
        self.inner.encode()
    }

    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, value) in self.inner.fields() {
            all.set_item(name, value)?;
        }
        Ok(all)
    }

    /// The kind of keys.
    #[getter]
    fn keys(&self) -> String {
        self.inner.key.to_string()
    }

    /// The resemblance and the distance from which documents are near.
    #[getter]
    fn near(&self) -> (Option<f64>, Option<u8>) {
        let near = self.inner.near();
        (near.threshold.map(Threshold::value), near.within)
    }

    /// Refuses others, by name.
    fn check(&self, given: &Self) -> Result<()> {
        let (mine, theirs) = (self.inner.fields(), given.inner.fields());
        let value = |fields: &[(&'static str, String)], name| {
            fields.iter().find(|field| field.0 == name).map_or("absent".to_string(), |field| field.1.clone())
        };
        for (name, _) in mine.iter().chain(&theirs) {
            let (index, given) = (value(&mine, *name), value(&theirs, *name));
            if index != given {
                let field = (*name).to_string();
                return Err(twindex::Error::ParamsMismatch { field, index, given }.into());
            }
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let fields: Vec<_> =
            self.inner.fields().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("<twindex.Params {}>", fields.join(" "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>().getattr("parse")?, PyTuple::new(py, [self.text()])?))
    }
}
