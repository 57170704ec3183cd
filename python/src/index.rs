//! An index as Python sees it: reader and writer in one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::builder::{Float64Builder, Int32Builder};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::PyRecordBatch;
use rayon::prelude::*;
use twindex::params::{KeyKind, Near as Nearness};
use twindex::sys::RealVfs;
use twindex::{Admitted, Decision, Fingerprint, KeyBuf, Snapshot, Writer};

use crate::columns::{Column, Keys, batch, key_object, one_key};
use crate::error::{Failure, Result};
use crate::pairs::{self, Near};
use crate::params::Params;
use crate::process::check_process;
use crate::sketch::{CHUNK, Sketch, one_sketch, sketch_rows, sketched};
use crate::stream::Batches;

/// Chunks of texts for each thread that are sketched while those before them go to the writer.
const CHUNKS: usize = 4;
/// Documents of `put_many` in one batch from which on they become a segment with the commit. The log and its table in
/// memory cost as much for each, and the segment that the table becomes comes on top; but segments of smaller batches
/// would have to be merged more often than that costs.
const MANY: usize = 1 << 16;
/// What is said of two things that were named.
const ONE: &str = "name within or resembling, not both";

#[pyclass(frozen, get_all, eq, module = "twindex")]
#[derive(PartialEq)]
pub(crate) struct Hit {
    key: KeyObject,
    distance: Option<u32>,
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
}

impl From<twindex::Hit> for Hit {
    fn from(hit: twindex::Hit) -> Self {
        let resemblance = hit.resemblance.map(|resemblance| resemblance.value());
        Self { key: KeyObject(hit.key), distance: hit.distance, resemblance }
    }
}

#[pyclass(frozen, module = "twindex")]
pub(crate) struct Index {
    inner: twindex::Index,
    params: twindex::Params,
    sketcher: OnceLock<twindex::Sketcher>,
    writer: Mutex<Option<Writing>>,
}

/// The writer, and what it was given.
struct Writing {
    writer: Writer,
    /// Documents of `put_many` since the last commit.
    many: usize,
    /// Working memory, kept from call to call.
    sketches: [Vec<twindex::Sketch>; 2],
}

impl Index {
    fn of(inner: twindex::Index) -> Self {
        let params = inner.params();
        Self { inner, params, sketcher: OnceLock::new(), writer: Mutex::new(None) }
    }

    fn sketcher(&self) -> Result<&twindex::Sketcher> {
        if let Some(sketcher) = self.sketcher.get() {
            return Ok(sketcher);
        }
        let made = self.inner.sketcher()?;
        Ok(self.sketcher.get_or_init(|| made))
    }

    /// Works with the writer, which is taken when it is first needed. Not to be called with the interpreter's lock.
    fn write<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.write_many(|writing| work(&mut writing.writer))
    }

    fn write_many<T>(&self, work: impl FnOnce(&mut Writing) -> Result<T>) -> Result<T> {
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writing = match guard.as_mut() {
            Some(writing) => writing,
            None => {
                guard.insert(Writing { writer: self.inner.writer()?, many: 0, sketches: Default::default() })
            }
        };
        work(writing)
    }

    fn committed(&self, payload: Option<&[u8]>) -> Result<u64> {
        self.write_many(|writing| {
            writing.many = 0;
            match payload {
                None => Ok(writing.writer.commit()?),
                Some(payload) => Ok(writing.writer.commit_with(payload)?),
            }
        })
    }

    fn release(&self) {
        drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// A sketch as it is, or that of a text.
    fn sketch_of(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> Result<twindex::Sketch> {
        match document.cast::<Sketch>() {
            Ok(sketch) => Ok(sketch.get().inner.clone()),
            Err(_) => one_sketch(py, self.sketcher()?, document),
        }
    }

    /// One segment of the snapshot, or all.
    fn snapshot(&self, segment: Option<usize>) -> Result<Snapshot> {
        let snapshot = self.inner.snapshot();
        match segment {
            None => Ok(snapshot),
            Some(place) => Ok(snapshot.of_segment(place)?),
        }
    }

    fn find_pairs(
        &self,
        py: Python<'_>,
        (within, resembling, estimated): Asked,
        (left, right): (Option<usize>, Option<usize>),
        memory: usize,
        warns: bool,
    ) -> Result<Batches> {
        if let (None, Some(right)) = (left, right) {
            return Err(Failure::invalid(format!(
                "right: expected none without left, found {right}; name both"
            )));
        }
        check_process()?;
        let near = Near::of(&self.params, within, resembling, estimated)?;
        py.detach(|| {
            let one = self.snapshot(left)?;
            let other =
                right.filter(|_| right != left).map(|place| self.snapshot(Some(place))).transpose()?;
            Batches::start(warns, move |out| pairs::find(&one, other.as_ref(), near, memory, out))
        })
    }
}

/// What pairs are asked for: a radius or a resemblance, and whether that may be estimated.
type Asked = (Option<u32>, Option<f64>, bool);

impl Writing {
    /// Sketches texts and puts them, the next ones while those before them are put.
    fn put_all(
        &mut self,
        sketcher: &twindex::Sketcher,
        kind: KeyKind,
        keys: &Column,
        texts: &Column,
    ) -> Result<()> {
        let Self { writer, many, sketches } = self;
        *many = many.saturating_add(keys.len());
        writer.set_logged(*many < MANY);
        let put = put_in_turn(writer, sketcher, kind, keys, texts, sketches);
        // What was collected becomes a segment all the same, and merges go on as for an index that lives.
        writer.set_logged(true);
        put
    }
}

fn put_in_turn(
    writer: &mut Writer,
    sketcher: &twindex::Sketcher,
    kind: KeyKind,
    keys: &Column,
    texts: &Column,
    [sketches, next]: &mut [Vec<twindex::Sketch>; 2],
) -> Result<()> {
    let together = CHUNKS * CHUNK * rayon::current_num_threads();
    let sketch = |start: usize, into: &mut Vec<twindex::Sketch>| -> Result<usize> {
        let count = together.min(keys.len().saturating_sub(start));
        if into.len() < count {
            into.resize_with(count, twindex::Sketch::default);
        }
        sketch_rows(sketcher, texts, start, &mut into[..count])?;
        Ok(count)
    };
    let mut start = 0;
    let mut count = sketch(start, sketches)?;
    while count > 0 {
        let (put, sketched) = rayon::join(
            || {
                (start..).zip(&sketches[..count]).try_for_each(|(row, sketch)| {
                    writer.put(keys.key(row, kind)?, sketch).map_err(|error| Failure::Record(row, error))
                })
            },
            || sketch(start + count, next),
        );
        put?;
        start += count;
        count = sketched?;
        std::mem::swap(sketches, next);
    }
    Ok(())
}

/// A key, that of its leader, and how many documents the group has.
type GroupObjects<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, u32);

/// Two keys and a score, as Python sees them.
type PairObjects<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl Index {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> Result<Self> {
        py.detach(|| Ok(Self::of(twindex::Index::open(path)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (path, params=None, **options))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        params: Option<&Params>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let made;
        let params = match (params, options.filter(|options| !options.is_empty())) {
            (Some(params), None) => params,
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("give params, or their options by name, not both").into());
            }
            (None, options) => {
                made = py.get_type::<Params>().call((), options)?.cast_into::<Params>()?;
                made.get()
            }
        };
        let params = params.inner.clone();
        Ok(py.detach(|| twindex::Index::create(path, params)).map(Self::of).map_err(Failure::from)?)
    }

    #[staticmethod]
    fn adopt(py: Python<'_>, path: PathBuf, params: &Params, segments: Vec<PathBuf>) -> Result<Self> {
        let params = params.inner.clone();
        py.detach(|| {
            twindex::Index::adopt(&path, params, &segments)?;
            Ok(Self::of(twindex::Index::open(path)?))
        })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path().to_owned()
    }

    #[getter]
    fn params(&self) -> Params {
        Params { inner: self.params.clone() }
    }

    #[getter]
    fn generation(&self) -> u64 {
        self.inner.snapshot().generation()
    }

    /// Chosen at random when it was made.
    #[getter]
    fn uuid(&self) -> String {
        format!("{:032x}", self.inner.snapshot().uuid())
    }

    /// Documents of each segment; those of the log come last, where there are some.
    #[getter]
    fn segments(&self, py: Python<'_>) -> Vec<u64> {
        py.detach(|| {
            let snapshot = self.inner.snapshot();
            snapshot.segments().map(|(segment, deleted)| segment.documents() - deleted.len()).collect()
        })
    }

    /// Documents that are in the log alone.
    #[getter]
    fn logged(&self) -> u64 {
        self.inner.snapshot().logged_documents()
    }

    fn __len__(&self) -> usize {
        self.inner.snapshot().documents() as usize
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        let key = one_key(key, self.params.key)?;
        py.detach(|| Ok(self.inner.snapshot().contains(key.as_key())?))
    }

    fn sketch(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> Result<Sketch> {
        Ok(Sketch { inner: one_sketch(py, self.sketcher()?, text)? })
    }

    #[pyo3(signature = (key, document, priority=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
        priority: Option<u64>,
    ) -> Result<()> {
        let (key, sketch) = (one_key(key, self.params.key)?, self.sketch_of(py, document)?);
        let document = || twindex::Document::from(&sketch).with_priority(priority);
        py.detach(|| self.write(|writer| Ok(writer.put(key.as_key(), document())?)))
    }

    /// The key of the document that leads this one's group; `None` where `questions` are too few, and where there is no
    /// document of this key.
    #[pyo3(signature = (key, questions=None))]
    fn leader<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        questions: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = one_key(key, self.params.key)?;
        let ask = || self.inner.snapshot().leader(key.as_key(), questions.unwrap_or(u64::MAX));
        let found = py.detach(ask).map_err(Failure::from)?;
        found.and_then(Decision::decided).map(|leader| key_object(py, &leader.key)).transpose()
    }

    /// The keys of the group of this document, ascending; `None` as for `leader`.
    #[pyo3(signature = (key, questions=None))]
    fn group<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        questions: Option<u64>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let key = one_key(key, self.params.key)?;
        let ask = || self.inner.snapshot().group(key.as_key(), questions.unwrap_or(u64::MAX));
        let found = py.detach(ask).map_err(Failure::from)?;
        let Some(group) = found.and_then(Decision::decided) else { return Ok(None) };
        group.members.iter().map(|member| key_object(py, member)).collect::<PyResult<_>>().map(Some)
    }

    /// Key, leader and size of the group of each document, by key.
    #[pyo3(signature = (min_size=1, memory=1 << 30))]
    fn groups<'py>(&self, py: Python<'py>, min_size: u32, memory: usize) -> PyResult<Vec<GroupObjects<'py>>> {
        let mut rows = Vec::new();
        py.detach(|| {
            let (dir, threads) = (self.inner.path(), rayon::current_num_threads());
            let resources = twindex::Resources { memory, threads, ..twindex::Resources::in_dir(dir) };
            self.inner.snapshot().groups(&resources)?.for_each(min_size, |key, leader, size| {
                rows.push((key.to_buf(), leader.to_buf(), size));
                Ok(())
            })
        })
        .map_err(Failure::from)?;
        let object = |(key, leader, size): &(KeyBuf, KeyBuf, u32)| {
            Ok((key_object(py, key)?, key_object(py, leader)?, *size))
        };
        rows.iter().map(object).collect()
    }

    /// Returns how many there were.
    fn put_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, texts: &Bound<'_, PyAny>) -> Result<usize> {
        let (keys, texts) = (Column::of("keys", keys)?, Column::of("texts", texts)?);
        keys.check_len(&texts)?;
        let (sketcher, kind) = (self.sketcher()?, self.params.key);
        py.detach(|| self.write_many(|writing| writing.put_all(sketcher, kind, &keys, &texts)))?;
        Ok(keys.len())
    }

    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<()> {
        let key = one_key(key, self.params.key)?;
        py.detach(|| self.write(|writer| Ok(writer.delete(key.as_key())?)))
    }

    /// What it was: "new", "known", "expired", or the hit that it is a duplicate of.
    #[pyo3(signature = (key, document, drop_duplicates=false, within=None, resembling=None, unverified=false,
        estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn admit<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        document: &Bound<'py, PyAny>,
        drop_duplicates: bool,
        within: Option<u8>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let near = match (within, resembling) {
            (Some(_), Some(_)) => return Err(Failure::invalid(ONE).into()),
            (Some(within), None) => Nearness::within(within),
            (None, Some(threshold)) => Nearness::resembling(threshold).map_err(Failure::from)?,
            (None, None) => self.params.near(),
        };
        let (key, sketch) = (one_key(key, self.params.key)?, self.sketch_of(py, document)?);
        let admitted = py.detach(|| {
            self.write(|writer| {
                writer.set_drop_duplicates(drop_duplicates);
                writer.set_near(near)?;
                writer.set_unverified(unverified);
                writer.set_estimated(estimated);
                Ok(writer.admit(key.as_key(), &sketch)?)
            })
        })?;
        match admitted {
            Admitted::Duplicate(hit) => Ok(Bound::new(py, Hit::from(hit))?.into_any()),
            Admitted::New => Ok("new".into_pyobject(py)?.into_any()),
            Admitted::Expired => Ok("expired".into_pyobject(py)?.into_any()),
            _ => Ok("known".into_pyobject(py)?.into_any()),
        }
    }

    /// Returns the commit's number.
    #[pyo3(signature = (payload=None))]
    fn commit(&self, py: Python<'_>, payload: Option<&[u8]>) -> Result<u64> {
        py.detach(|| self.committed(payload))
    }

    /// What the last commit that had a payload was given.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.snapshot().payload().map(|payload| PyBytes::new(py, payload))
    }

    /// Lets the writer go; what was not committed is gone.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.release());
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let failed = !kind.is_none();
        py.detach(|| {
            let has_writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            if has_writer && !failed {
                self.committed(None)?;
            }
            self.release();
            Ok(false)
        })
    }

    fn refresh(&self, py: Python<'_>) -> Result<bool> {
        py.detach(|| Ok(self.inner.refresh()?))
    }

    fn get<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let key = one_key(key, self.params.key)?;
        let record = py.detach(|| self.inner.snapshot().get(key.as_key())).map_err(Failure::from)?;
        let Some(record) = record else {
            return Ok(None);
        };
        let found = PyDict::new(py);
        found.set_item("fingerprint", record.fingerprint.map(|fingerprint| fingerprint.0))?;
        found.set_item("signature", PyBytes::new(py, &record.signature))?;
        found.set_item("value", PyBytes::new(py, &record.value))?;
        found.set_item("stamp", record.stamp)?;
        found.set_item("priority", record.priority)?;
        Ok(Some(found))
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut keys = Vec::new();
        py.detach(|| {
            self.inner.snapshot().for_each_key(|key| {
                keys.push(key.to_buf());
                Ok(())
            })
        })
        .map_err(Failure::from)?;
        keys.iter().map(|key| key_object(py, key)).collect()
    }

    #[pyo3(signature = (document, limit=None, within=None, resembling=None, unverified=false, estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn near(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        limit: Option<usize>,
        within: Option<u32>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
    ) -> Result<Vec<Hit>> {
        let sketch = self.sketch_of(py, document)?;
        py.detach(|| {
            let hits =
                hits(&self.inner.snapshot(), &sketch, (within, resembling, unverified, estimated), limit)?;
            Ok(hits.into_iter().map(Hit::from).collect())
        })
    }

    #[pyo3(signature = (texts, limit=None, within=None, resembling=None, unverified=false, estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn near_many(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        limit: Option<usize>,
        within: Option<u32>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
    ) -> Result<Vec<Vec<Hit>>> {
        let texts = Column::of("texts", texts)?;
        let (sketcher, snapshot) = (self.sketcher()?, self.inner.snapshot());
        py.detach(|| {
            sketched(sketcher, &texts, 0..texts.len(), |_, sketch| {
                let hits = hits(&snapshot, sketch, (within, resembling, unverified, estimated), limit)?;
                Ok(hits.into_iter().map(Hit::from).collect())
            })
        })
    }

    /// Answers in columns: query, key, distance, resemblance.
    #[pyo3(signature = (keys, texts, within=None, resembling=None, limit=None, segment=None,
        unverified=false, estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn query(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
        within: Option<u32>,
        resembling: Option<f64>,
        limit: Option<usize>,
        segment: Option<usize>,
        unverified: bool,
        estimated: bool,
    ) -> Result<PyRecordBatch> {
        let (keys, texts) = (Column::of("keys", keys)?, Column::of("texts", texts)?);
        keys.check_len(&texts)?;
        let (sketcher, snapshot) = (self.sketcher()?, self.snapshot(segment)?);
        py.detach(|| {
            let found = sketched(sketcher, &texts, 0..texts.len(), |_, sketch| {
                hits(&snapshot, sketch, (within, resembling, unverified, estimated), limit)
            })?;
            let (mut queries, mut near) = (Keys::new(self.params.key), Keys::new(self.params.key));
            let (mut distances, mut resemblances) = (Int32Builder::new(), Float64Builder::new());
            for (row, hits) in found.into_iter().enumerate() {
                for hit in hits {
                    queries.push(keys.key(row, self.params.key)?);
                    near.push(hit.key.as_key());
                    distances.append_option(hit.distance.map(u32::cast_signed));
                    resemblances.append_option(hit.resemblance.map(|resemblance| resemblance.value()));
                }
            }
            batch(vec![
                ("query", queries.finish()),
                ("key", near.finish()),
                ("distance", Arc::new(distances.finish())),
                ("resemblance", Arc::new(resemblances.finish())),
            ])
        })
    }

    /// Keys of documents that share at least one feature, with how many they share.
    fn same_features<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, usize)>> {
        let sketch = self.sketch_of(py, document)?;
        let shared = py.detach(|| -> Result<_> {
            check_process()?;
            sketch.check_comparable(&self.params.sketch())?;
            let snapshot = self.inner.snapshot();
            let found: Vec<Vec<twindex::KeyBuf>> = sketch
                .features()
                .par_iter()
                .enumerate()
                .map(|(band, &feature)| snapshot.same_feature(band, feature))
                .collect::<twindex::Result<_>>()?;
            let mut counts = std::collections::BTreeMap::new();
            for key in found.into_iter().flatten() {
                *counts.entry(key).or_insert(0_usize) += 1;
            }
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by(|x, y| y.1.cmp(&x.1).then_with(|| x.0.cmp(&y.0)));
            Ok(counts)
        })?;
        shared.iter().map(|(key, count)| Ok((key_object(py, key)?, *count))).collect()
    }

    /// Pairs in columns: a, b, distance or resemblance.
    #[pyo3(signature = (within=None, resembling=None, left=None, right=None, memory=1 << 30, estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn pairs_batches(
        &self,
        py: Python<'_>,
        within: Option<u32>,
        resembling: Option<f64>,
        left: Option<usize>,
        right: Option<usize>,
        memory: usize,
        estimated: bool,
    ) -> Result<Batches> {
        self.find_pairs(py, (within, resembling, estimated), (left, right), memory, true)
    }

    /// The same without a warning: for workers, whose warnings nobody reads.
    fn _pairs_of_parts(
        &self,
        py: Python<'_>,
        near: Asked,
        parts: (usize, usize),
        memory: usize,
    ) -> Result<Batches> {
        self.find_pairs(py, near, (Some(parts.0), Some(parts.1)), memory, false)
    }

    /// Pairs one by one: a, b, distance or resemblance.
    #[pyo3(signature = (within=None, resembling=None, estimated=false))]
    fn pairs<'py>(
        &self,
        py: Python<'py>,
        within: Option<u32>,
        resembling: Option<f64>,
        estimated: bool,
    ) -> PyResult<Vec<PairObjects<'py>>> {
        let near = Near::of(&self.params, within, resembling, estimated)?;
        let (mut pairs, capped) = py.detach(|| pairs::list(&self.inner.snapshot(), near))?;
        capped.warn(py)?;
        pairs.sort_unstable_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
        pairs
            .iter()
            .map(|(a, b, score)| {
                let score = match near {
                    Near::Within(_) => score.0.into_pyobject(py)?.into_any(),
                    Near::Counted(_) | Near::Estimated(_) => score.1.into_pyobject(py)?.into_any(),
                };
                Ok((key_object(py, a)?, key_object(py, b)?, score))
            })
            .collect()
    }

    /// Bytes that were freed.
    fn gc(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| self.write(|writer| Ok(writer.gc()?)))
    }

    fn compact(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| self.write(|writer| Ok(writer.compact()?)))
    }

    /// Problems, as text; none for a sound index.
    fn verify(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            let findings = twindex::store::verify::verify(&RealVfs, self.inner.path(), |_| {});
            findings.problems.iter().map(ToString::to_string).collect()
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<twindex.Index {} of {} documents>",
            self.inner.path().display(),
            self.inner.snapshot().documents()
        )
    }
}

/// Documents near a sketch: by what the caller asks for, or by all that the index keeps.
fn hits(
    snapshot: &Snapshot,
    sketch: &twindex::Sketch,
    (within, resembling, unverified, estimated): (Option<u32>, Option<f64>, bool, bool),
    limit: Option<usize>,
) -> Result<Vec<twindex::Hit>> {
    let query = match (within, resembling) {
        (Some(_), Some(_)) => return Err(Failure::invalid(ONE)),
        (Some(within), None) => match sketch.fingerprint() {
            Some(Fingerprint(fingerprint)) => snapshot.within(Fingerprint(fingerprint), within),
            None if snapshot.params().simhash.is_none() => {
                return Err(Failure::invalid("this index keeps no fingerprints: ask by resembling"));
            }
            None => return Ok(Vec::new()),
        },
        (None, Some(threshold)) => snapshot.resembling(sketch, threshold),
        (None, None) => snapshot.near(sketch),
    };
    let query = if unverified { query.unverified() } else { query };
    let query = if estimated { query.estimated() } else { query };
    Ok(query.limit(limit.unwrap_or(usize::MAX)).run()?.hits)
}
