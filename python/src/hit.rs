//! A near document, and what became of one that was admitted.

use pyo3::prelude::*;
use twindex::params::KeyKind;
use twindex_corpus::admitting::{Admission, NearDocument, Outcome};
use twindex_join::ContainmentHit;

use crate::columns::{key_object, one_key};
use crate::error::{Failure, Result};

/// A near document.
#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "the names of the attributes in Python")]
pub(crate) struct Hit {
    /// Its key.
    key: KeyObject,
    /// The bits in which the fingerprints differ; None where that was not asked for.
    distance: Option<u32>,
    /// How much both resemble each other; None where that was not asked for.
    resemblance: Option<f64>,
    /// How much of the document that was asked about is contained in this one: counted where that was asked for, otherwise
    /// estimated from the index's samples; None without both.
    query_in_hit: Option<f64>,
    /// How much of this document is contained in the one that was asked about; likewise.
    hit_in_query: Option<f64>,
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
type Pickled<'py> =
    (Bound<'py, PyAny>, (Bound<'py, PyAny>, Option<u32>, Option<f64>, Option<f64>, Option<f64>));

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
        let fields = (key, self.distance, self.resemblance, self.query_in_hit, self.hit_in_query);
        Ok((py.get_type::<Self>().getattr("_of")?, fields))
    }

    /// What `__reduce__` gave.
    #[staticmethod]
    fn _of(
        key: &Bound<'_, PyAny>,
        distance: Option<u32>,
        resemblance: Option<f64>,
        query_in_hit: Option<f64>,
        hit_in_query: Option<f64>,
    ) -> Result<Self> {
        Ok(Self { key: KeyObject(any_key(key)?), distance, resemblance, query_in_hit, hit_in_query })
    }
}

impl From<twindex::Hit> for Hit {
    fn from(hit: twindex::Hit) -> Self {
        Self {
            key: KeyObject(hit.key),
            distance: hit.distance,
            resemblance: hit.resemblance.map(|resemblance| resemblance.value()),
            query_in_hit: hit.query_in_hit.map(|share| share.value()),
            hit_in_query: hit.hit_in_query.map(|share| share.value()),
        }
    }
}

impl From<ContainmentHit> for Hit {
    fn from(hit: ContainmentHit) -> Self {
        let shared = f64::from(hit.shared);
        let union = hit.of_text + hit.of_document - hit.shared;
        Self {
            key: KeyObject(hit.key),
            distance: None,
            resemblance: Some(shared / f64::from(union)),
            query_in_hit: Some(shared / f64::from(hit.of_text)),
            hit_in_query: Some(shared / f64::from(hit.of_document)),
        }
    }
}

impl Hit {
    /// A document that another one is near; `by_containment` if the share is how much of that it contains.
    fn of_near(near: NearDocument, by_containment: bool) -> Self {
        let NearDocument { key, distance, share } = near;
        let (resemblance, query_in_hit) = if by_containment { (None, share) } else { (share, None) };
        Self { key: KeyObject(key), distance, resemblance, query_in_hit, hit_in_query: None }
    }
}

/// A key of the kind that the object is.
fn any_key(key: &Bound<'_, PyAny>) -> Result<twindex::KeyBuf> {
    let is_number = key.extract::<u64>().is_ok();
    one_key(key, if is_number { KeyKind::U64 } else { KeyKind::Bytes })
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
    /// Where containment was asked for, earlier documents that this one contains, and how much of each.
    contained: Vec<(KeyObject, f64)>,
}

/// All outcomes.
const OUTCOMES: [&str; 5] = ["new", "updated", "known", "duplicate", "expired"];

/// The pickled form of an admission.
type PickledAdmitted<'py> = (Bound<'py, PyAny>, (&'static str, Option<Hit>, Vec<(KeyObject, f64)>));

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
        let fields = (self.outcome, self.near.clone(), self.contained.clone());
        Ok((py.get_type::<Self>().getattr("_of")?, fields))
    }

    /// What `__reduce__` gave.
    #[staticmethod]
    fn _of(
        outcome: &str,
        near: Option<PyRef<'_, Hit>>,
        contained: Vec<(Bound<'_, PyAny>, f64)>,
    ) -> Result<Self> {
        let known = OUTCOMES.iter().find(|known| **known == outcome).ok_or_else(|| {
            let expected = OUTCOMES.join(", ");
            Failure::invalid(format!("outcome: expected {expected}, found {outcome}"))
        })?;
        let contained = contained.iter().map(|(key, share)| Ok((KeyObject(any_key(key)?), *share)));
        let contained = contained.collect::<Result<_>>()?;
        Ok(Self { outcome: known, near: near.map(|near| near.clone()), contained })
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
        Ok(Self { outcome, near: near.map(Hit::from), contained: Vec::new() })
    }
}

impl Admitted {
    /// What became of a document that was compared inside a value, or `by_containment`.
    pub(crate) fn of(admission: Admission, by_containment: bool) -> Self {
        let Admission { outcome, near, contained } = admission;
        let outcome = match (outcome, &near) {
            (Outcome::New, _) => "new",
            (Outcome::Duplicate, _) => "duplicate",
            (Outcome::Known, Some(_)) => "known",
            (Outcome::Known, None) => "updated",
        };
        let contained = contained.into_iter().map(|(key, share)| (KeyObject(key), share)).collect();
        Self { outcome, near: near.map(|near| Hit::of_near(near, by_containment)), contained }
    }
}
