//! A near document, and what became of one that was admitted.

use pyo3::prelude::*;

use crate::columns::{key_object, one_key};
use crate::error::{Failure, Result};

/// A near document.
#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(Clone, PartialEq)]
pub(crate) struct Hit {
    /// Its key.
    key: KeyObject,
    /// The bits in which the fingerprints differ; None where that was not asked for.
    distance: Option<u32>,
    /// How much both resemble each other; None where that was not asked for.
    resemblance: Option<f64>,
}

/// A key, as an object of Python's when it is asked for.
#[derive(Clone, PartialEq)]
struct KeyObject(twindex::KeyBuf);

impl<'py> IntoPyObject<'py> for KeyObject {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        key_object(py, &self.0)
    }
}

impl<'py> IntoPyObject<'py> for &KeyObject {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        key_object(py, &self.0)
    }
}

/// A hit as `pickle` keeps it.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyAny>, Option<u32>, Option<f64>));

#[pymethods]
impl Hit {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = key_object(py, &self.key.0)?.repr()?;
        let show = |value: Option<String>| value.unwrap_or_else(|| "None".into());
        Ok(format!(
            "Hit(key={key}, distance={}, resemblance={})",
            show(self.distance.map(|distance| distance.to_string())),
            show(self.resemblance.map(|resemblance| format!("{resemblance:.6}")))
        ))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py>> {
        let key = key_object(py, &self.key.0)?;
        Ok((py.get_type::<Self>().getattr("_of")?, (key, self.distance, self.resemblance)))
    }

    /// What `__reduce__` gave.
    #[staticmethod]
    fn _of(key: &Bound<'_, PyAny>, distance: Option<u32>, resemblance: Option<f64>) -> Result<Self> {
        let kind = if key.extract::<u64>().is_ok() {
            twindex::params::KeyKind::U64
        } else {
            twindex::params::KeyKind::Bytes
        };
        Ok(Self { key: KeyObject(one_key(key, kind)?), distance, resemblance })
    }
}

impl From<twindex::Hit> for Hit {
    fn from(hit: twindex::Hit) -> Self {
        let resemblance = hit.resemblance.map(|resemblance| resemblance.value());
        Self { key: KeyObject(hit.key), distance: hit.distance, resemblance }
    }
}

/// What became of a document that was admitted.
#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(Clone, PartialEq)]
pub(crate) struct Admitted {
    /// "new": nothing is near it, and it was added. "updated": its key was there, and nothing else is near; it was replaced.
    /// "known": its key was there, and another document is near; it was replaced. "duplicate": another document is near; it
    /// was added unless duplicates are dropped. "expired": it is too old by its stamp, and nothing was added.
    outcome: &'static str,
    /// The nearest other document, of one that is "known" or a "duplicate"; None of others.
    near: Option<Hit>,
}

/// All outcomes.
const OUTCOMES: [&str; 5] = ["new", "updated", "known", "duplicate", "expired"];

/// What was admitted as `pickle` keeps it.
type PickledAdmitted<'py> = (Bound<'py, PyAny>, (&'static str, Option<Hit>));

#[pymethods]
impl Admitted {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("outcome", "near")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let near = self.near.as_ref().map(|near| near.__repr__(py)).transpose()?;
        Ok(format!("Admitted(outcome='{}', near={})", self.outcome, near.as_deref().unwrap_or("None")))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<PickledAdmitted<'py>> {
        Ok((py.get_type::<Self>().getattr("_of")?, (self.outcome, self.near.clone())))
    }

    /// What `__reduce__` gave.
    #[staticmethod]
    fn _of(outcome: &str, near: Option<PyRef<'_, Hit>>) -> Result<Self> {
        let known = OUTCOMES.iter().find(|known| **known == outcome).ok_or_else(|| {
            let expected = OUTCOMES.join(", ");
            Failure::invalid(format!("outcome: expected {expected}, found {outcome}"))
        })?;
        Ok(Self { outcome: known, near: near.map(|near| near.clone()) })
    }
}

impl TryFrom<twindex::Admitted> for Admitted {
    type Error = Failure;

    fn try_from(admitted: twindex::Admitted) -> Result<Self> {
        let (outcome, near) = match admitted {
            twindex::Admitted::New => ("new", None),
            twindex::Admitted::Updated => ("updated", None),
            twindex::Admitted::Known { near } => ("known", Some(near)),
            twindex::Admitted::Duplicate(near) => ("duplicate", Some(near)),
            twindex::Admitted::Expired => ("expired", None),
            other => return Err(Failure::invalid(format!("expected a known outcome, found {other:?}"))),
        };
        Ok(Self { outcome, near: near.map(Hit::from) })
    }
}
