//! Python classes of near documents, and of the results of admitting documents.

use pyo3::prelude::*;
use twindex::params::KeyKind;
use twindex_corpus::stream::{Admission, NearDocument, Outcome};
use twindex_join::ContainmentHit;

use crate::columns::{key_object, one_key};
use crate::error::{Failure, Result};

/// A near document found by a query.
#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "the names of the attributes in Python")]
pub(crate) struct Hit {
    /// The key of the document.
    key: KeyObject,
    /// The number of bits in which the fingerprints differ; None if distance was not requested.
    distance: Option<u32>,
    /// The resemblance of both documents; None if it was not requested.
    resemblance: Option<f64>,
    /// The share of the query document that this one contains: counted exactly if requested, otherwise estimated from
    /// the index's samples; None if neither is possible.
    query_in_hit: Option<f64>,
    /// The share of this document that the query document contains; computed as `query_in_hit`.
    hit_in_query: Option<f64>,
    /// The share of the query document that this one adds to a cover; None without `gather`.
    unique_in_query: Option<f64>,
}

/// A key that is converted to a Python object when it is accessed.
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

/// The pickled form of a hit.
type Pickled<'py> =
    (Bound<'py, PyAny>, (Bound<'py, PyAny>, Option<u32>, Option<f64>, Option<f64>, Option<f64>, Option<f64>));

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
        let Self { distance, resemblance, query_in_hit, hit_in_query, unique_in_query, .. } = *self;
        let fields = (key, distance, resemblance, query_in_hit, hit_in_query, unique_in_query);
        Ok((py.get_type::<Self>().getattr("_of")?, fields))
    }

    /// Restores a pickled hit from the arguments of `__reduce__`.
    #[staticmethod]
    fn _of(
        key: &Bound<'_, PyAny>,
        distance: Option<u32>,
        resemblance: Option<f64>,
        query_in_hit: Option<f64>,
        hit_in_query: Option<f64>,
        unique_in_query: Option<f64>,
    ) -> Result<Self> {
        let key = KeyObject(any_key(key)?);
        Ok(Self { key, distance, resemblance, query_in_hit, hit_in_query, unique_in_query })
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
            unique_in_query: None,
        }
    }
}

impl Hit {
    /// Creates a hit of a containment query. `gather`: of a cover.
    pub(crate) fn contained(hit: ContainmentHit, gather: bool) -> Self {
        Self {
            distance: None,
            resemblance: Some(hit.resemblance().value()),
            query_in_hit: Some(hit.query_in_hit().value()),
            hit_in_query: Some(hit.hit_in_query().value()),
            unique_in_query: gather.then(|| hit.unique_in_query().value()),
            key: KeyObject(hit.key),
        }
    }

    /// Creates a hit for a near document. If `by_containment` is true, the score is the share of the query that the hit
    /// contains.
    fn of_near(near: NearDocument, by_containment: bool) -> Self {
        let NearDocument { key, distance, share } = near;
        let (resemblance, query_in_hit) = if by_containment { (None, share) } else { (share, None) };
        Self {
            key: KeyObject(key),
            distance,
            resemblance,
            query_in_hit,
            hit_in_query: None,
            unique_in_query: None,
        }
    }
}

/// Extracts a key: a 64-bit number from an int, otherwise bytes.
fn any_key(key: &Bound<'_, PyAny>) -> Result<twindex::KeyBuf> {
    let is_number = key.extract::<u64>().is_ok();
    one_key(key, if is_number { KeyKind::U64 } else { KeyKind::Bytes })
}

/// The result of `admit`, which compares a document with the index and adds it.
#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(Clone, PartialEq)]
pub(crate) struct Admitted {
    /// "new": no document is near it, and it was added. "updated": its key existed, and no other document is near; the
    /// old document was replaced. "known": its key existed, and another document is near; the old document was replaced.
    /// "duplicate": another document is near; it was added unless duplicates are dropped. "expired": its stamp is too
    /// old, and nothing was added.
    outcome: &'static str,
    /// The nearest other document if the outcome is "known" or "duplicate"; None otherwise.
    near: Option<Hit>,
    /// If containment was requested, the keys of earlier documents that this one contains, each with the share that is
    /// contained.
    contained: Vec<(KeyObject, f64)>,
}

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

    /// Restores a pickled result from the arguments of `__reduce__`.
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
    /// Converts the result of an admission with `inside` or, if `by_containment` is true, with `containment`.
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
