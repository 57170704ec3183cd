//! The Python class of an index, which reads and writes.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::PyRecordBatch;
use rayon::prelude::*;
use twindex::params::{CodeParams, Near as Nearness};
use twindex::sys::RealVfs;
use twindex::{Code, Decision, KeyBuf, Snapshot, Writer};
use twindex_corpus::stream::{self, AdmitOptions};
use twindex_join::SharedProgress;

use crate::args;
use crate::columns::{Column, key_object, one_code, one_key};
use crate::error::{Failure, Result};
use crate::hit::{Admitted, Hit};
use crate::lookup::{NearOptions, ONE};
use crate::pairs::{self, PairCondition};
use crate::params::Params;
use crate::process::{on_all_cores, writer_options};
use crate::sketch::{Sketch, Sketcher, one_sketch};
use crate::stream::Batches;
use crate::watch::watched;
use crate::writing::{PendingWriter, State, own_lock, warn_lost};

/// A directory that maps keys of documents to fingerprints and features. One process at a time may write, and any number
/// may read. A `with` block commits the documents put in it when it ends, and discards them if it raises an exception.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct Index {
    inner: twindex::Index,
    params: twindex::Params,
    sketcher: OnceLock<twindex::Sketcher>,
    /// The same sketcher as an object, which sketches refer to.
    made_by: PyOnceLock<Py<Sketcher>>,
    writing: Mutex<State>,
}

impl Index {
    fn of(inner: twindex::Index) -> Self {
        let params = inner.params();
        Self {
            inner,
            params,
            sketcher: OnceLock::new(),
            made_by: PyOnceLock::new(),
            writing: Mutex::new(State::Idle),
        }
    }

    fn sketcher(&self) -> Result<&twindex::Sketcher> {
        if let Some(sketcher) = self.sketcher.get() {
            return Ok(sketcher);
        }
        let made = Params { inner: self.params.clone(), idf: self.inner.idf()? }.sketcher()?;
        Ok(self.sketcher.get_or_init(|| made))
    }

    /// Runs `work` with the writer, which is opened on first use. The caller must not hold the interpreter's lock.
    fn write<T>(&self, work: impl FnOnce(&mut PendingWriter) -> Result<T>) -> Result<T> {
        work(self.state().writing(&self.inner)?)
    }

    /// Runs `work`, which puts or deletes one document, and counts the change.
    fn change<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.write(|writing| {
            let done = work(writing.plain())?;
            writing.uncommitted += 1;
            Ok(done)
        })
    }

    /// Runs `work` with the open writer, or with a temporary one.
    fn maintain<T>(&self, work: impl FnOnce(&mut Writer) -> twindex::Result<T>) -> Result<T> {
        match &mut *self.state() {
            State::Writing(writing) => Ok(work(&mut writing.writer)?),
            State::Idle | State::Closed => {
                let mut writer = self.inner.writer_with(writer_options()).map_err(own_lock)?;
                Ok(work(&mut writer)?)
            }
        }
    }

    fn committed(&self, payload: Option<&[u8]>) -> Result<u64> {
        self.write(|writing| writing.commit(payload))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the writer. Returns the number of uncommitted changes.
    fn release(&self) -> u64 {
        match std::mem::replace(&mut *self.state(), State::Closed) {
            State::Writing(writing) => writing.uncommitted,
            State::Idle | State::Closed => 0,
        }
    }

    /// Returns the given sketch, or the sketch of the given text.
    fn sketch_of(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> Result<twindex::Sketch> {
        match document.cast::<Sketch>() {
            Ok(sketch) => Ok(sketch.get().inner.clone()),
            Err(_) => one_sketch(py, self.sketcher()?, document),
        }
    }

    /// Returns the given fingerprint if the index keeps codes; otherwise the sketch, or the sketch of the given text.
    fn content_of(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> Result<Content> {
        Ok(match self.params.given_codes() {
            Some(CodeParams { bits, .. }) => Content::Code(one_code(document, bits)?),
            None => Content::Sketch(self.sketch_of(py, document)?),
        })
    }

    /// Returns a snapshot of one segment, or of the whole index.
    fn snapshot(&self, segment: Option<usize>) -> Result<Snapshot> {
        let snapshot = self.inner.snapshot();
        match segment {
            None => Ok(snapshot),
            Some(place) => Ok(snapshot.of_segment(place)?),
        }
    }

    /// Creates a column of documents.
    fn column_of(&self, name: &'static str, values: &Bound<'_, PyAny>) -> Result<Column> {
        let are_given = self.params.given_codes().is_some();
        if are_given { Column::of_codes(name, values) } else { Column::of(name, values) }
    }

    fn find_pairs(
        &self,
        py: Python<'_>,
        (within, resembling, estimated): PairCriteria,
        (left, right): (Option<usize>, Option<usize>),
        memory: usize,
        warns: bool,
    ) -> Result<Batches> {
        if let (None, Some(right)) = (left, right) {
            return Err(Failure::invalid(format!(
                "right: expected none without left, found {right}; name both"
            )));
        }
        let near = PairCondition::of(&self.params, within, resembling, estimated)?;
        py.detach(|| {
            let one = self.snapshot(left)?;
            let other =
                right.filter(|_| right != left).map(|place| self.snapshot(Some(place))).transpose()?;
            Batches::start(warns, move |out| pairs::find(&one, other.as_ref(), near, memory, out))
        })
    }
}

/// A document that was passed.
enum Content {
    Sketch(twindex::Sketch),
    Code(Code),
}

impl Content {
    fn document(&self) -> twindex::Document<'_> {
        match self {
            Self::Sketch(sketch) => sketch.into(),
            Self::Code(code) => (*code).into(),
        }
    }
}

/// The pairs to find: a radius or a resemblance, and whether estimates are allowed.
type PairCriteria = (Option<u32>, Option<f64>, bool);

/// A key, the key of its group's leader, and the number of documents in the group.
type GroupObjects<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, u32);

/// Two keys and a score, as Python objects.
type PairObjects<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl Index {
    /// Opens an existing index. Never creates one.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> Result<Self> {
        py.detach(|| Ok(Self::of(twindex::Index::open(path)?)))
    }

    /// Creates an index. Never overwrites an existing one. The options are those of Params.
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
        let Params { inner, idf } = params.clone();
        let made = py.detach(|| match idf {
            Some(table) => twindex::Index::create_with_idf(path, inner, &table),
            None => twindex::Index::create(path, inner),
        });
        Ok(made.map(Self::of).map_err(Failure::from)?)
    }

    /// Creates an index from segments made by ShardBuilders. No key may be in two segments.
    #[staticmethod]
    fn adopt(py: Python<'_>, path: PathBuf, params: &Params, segments: Vec<PathBuf>) -> Result<Self> {
        let Params { inner, idf } = params.clone();
        py.detach(|| {
            match idf {
                Some(table) => twindex::Index::adopt_with_idf(&path, inner, &segments, &table)?,
                None => twindex::Index::adopt(&path, inner, &segments)?,
            };
            Ok(Self::of(twindex::Index::open(path)?))
        })
    }

    /// The directory of the index.
    #[getter]
    fn path(&self) -> PathBuf {
        self.inner.path().to_owned()
    }

    /// The parameters given at creation.
    #[getter]
    fn params(&self) -> Params {
        Params::of(self.params.clone())
    }

    /// The number of the last commit.
    #[getter]
    fn generation(&self) -> u64 {
        self.inner.snapshot().generation()
    }

    /// A random identifier that was chosen when the index was created.
    #[getter]
    fn uuid(&self) -> String {
        format!("{:032x}", self.inner.snapshot().uuid())
    }

    /// The number of documents in each segment, and last, if there are any, the number of documents in the log.
    #[getter]
    fn segments(&self, py: Python<'_>) -> Vec<u64> {
        py.detach(|| {
            let snapshot = self.inner.snapshot();
            snapshot.segments().map(|(segment, deleted)| segment.documents() - deleted.len()).collect()
        })
    }

    /// The number of committed documents that are not in a segment yet.
    #[getter]
    fn logged(&self) -> u64 {
        self.inner.snapshot().logged_documents()
    }

    fn __len__(&self) -> usize {
        self.inner.snapshot().documents() as usize
    }

    /// Always true, even for an index without documents.
    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        let key = one_key(key, self.params.key)?;
        py.detach(|| Ok(self.inner.snapshot().contains(key.as_key())?))
    }

    /// Returns the sketch of one text, computed with the index's parameters.
    fn sketch(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> Result<Sketch> {
        let made_by = self.made_by.get_or_try_init(py, || -> Result<_> {
            let params = Params { inner: self.params.clone(), idf: self.inner.idf()? };
            Ok(Py::new(py, Sketcher { params, inner: self.sketcher()?.clone() })?)
        })?;
        Sketch::of(made_by.bind(py).clone(), text)
    }

    /// Adds a document, or replaces the document with the same key. priority: the document with the smallest priority
    /// leads its group. In an index with codes, a document is a fingerprint: bytes, or a vector of uint8.
    #[pyo3(signature = (key, document, priority=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::optional::priority)] priority: Option<u64>,
    ) -> Result<()> {
        let (key, content) = (one_key(key, self.params.key)?, self.content_of(py, document)?);
        let document = || content.document().with_priority(priority);
        py.detach(|| self.change(|writer| Ok(writer.put(key.as_key(), document())?)))
    }

    /// Returns the key of the leader of this document's group, among all committed documents. The leader is the first
    /// near document, ordered by priority and hash of the key, that is itself a leader. None if more than `questions`
    /// queries for near documents would be needed, or if there is no document with this key.
    #[pyo3(signature = (key, questions=None))]
    fn leader<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = args::optional::questions)] questions: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = one_key(key, self.params.key)?;
        let ask = || self.inner.snapshot().leader(key.as_key(), questions.unwrap_or(u64::MAX));
        let found = py.detach(ask).map_err(Failure::from)?;
        found.and_then(Decision::decided).map(|leader| key_object(py, &leader.key)).transpose()
    }

    /// Returns the keys of all documents that have the same leader, in order; None as for `leader`.
    #[pyo3(signature = (key, questions=None))]
    fn group<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = args::optional::questions)] questions: Option<u64>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let key = one_key(key, self.params.key)?;
        let ask = || self.inner.snapshot().group(key.as_key(), questions.unwrap_or(u64::MAX));
        let found = py.detach(ask).map_err(Failure::from)?;
        let Some(group) = found.and_then(Decision::decided) else { return Ok(None) };
        group.members.iter().map(|member| key_object(py, member)).collect::<PyResult<_>>().map(Some)
    }

    /// Returns the key, leader and group size of each document, ordered by key. Only groups of at least min_size
    /// documents are listed.
    #[pyo3(signature = (min_size=1, memory=1_073_741_824))]
    fn groups<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::min_size)] min_size: u32,
        #[pyo3(from_py_with = args::memory)] memory: usize,
    ) -> PyResult<Vec<GroupObjects<'py>>> {
        let mut rows = Vec::new();
        py.detach(|| {
            let (dir, threads) = (self.inner.path(), rayon::current_num_threads());
            let resources = twindex::Resources { memory, threads, ..twindex::Resources::in_dir(dir) };
            twindex_join::living_groups(&self.inner.snapshot(), &resources)?.for_each(
                min_size,
                |key, leader, size| {
                    rows.push((key.to_buf(), leader.to_buf(), size));
                    Ok(())
                },
            )
        })
        .map_err(Failure::from)?;
        let object = |(key, leader, size): &(KeyBuf, KeyBuf, u32)| {
            Ok((key_object(py, key)?, key_object(py, leader)?, *size))
        };
        rows.iter().map(object).collect()
    }

    /// Adds many documents, sketched on all cores, and returns their number. progress: as for dedup. Ctrl-C ends the
    /// call; the documents put until then are not committed. In an index with codes, texts are fingerprints: bytes, a
    /// binary column, or a matrix of uint8 with a row for each, as `numpy.packbits` makes it.
    #[pyo3(signature = (keys, texts, progress=None))]
    fn put_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<usize> {
        let (keys, documents) = (Column::of("keys", keys)?, self.column_of("texts", texts)?);
        keys.check_len(&documents)?;
        let kind = self.params.key;
        let given = self.params.given_codes();
        let sketcher = if given.is_none() { Some(self.sketcher()?) } else { None };
        watched(py, progress, |watched| {
            self.write(|writing| {
                writing.put_all(keys.len(), watched, |writing| match (given, sketcher) {
                    (Some(CodeParams { bits, .. }), _) => {
                        writing.put_codes(bits, kind, (&keys, &documents), watched)
                    }
                    (None, Some(sketcher)) => {
                        writing.put_in_turn(sketcher, kind, (&keys, &documents), watched)
                    }
                    (None, None) => Ok(()),
                })
            })
        })?;
        Ok(keys.len())
    }

    /// Deletes a document. Has no effect if there is no document with this key.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<()> {
        let key = one_key(key, self.params.key)?;
        py.detach(|| self.change(|writer| Ok(writer.delete(key.as_key())?)))
    }

    /// Looks up a document and adds it, as one step. Documents are near by `within` or `resembling` if given, otherwise
    /// by the near relation in the index's parameters. If the index keeps sets, resemblance is counted exactly unless
    /// `estimated` is true; otherwise it is estimated from signatures. An index without both raises `InvalidError`,
    /// unless `unverified` is true, which treats all documents that share a band as near. A duplicate is also added,
    /// with a mark if the index keeps marks, unless `drop_duplicates` is true.
    ///
    /// containment: the document is a duplicate if at least this share of it is contained in a document that is at least
    ///     as large; `contained` of the result lists earlier documents that this one contains. This needs the sets of
    ///     all documents, which are read at the first call into `memory` bytes: about 5 KB for a text of 300 words. If
    ///     documents are put in other ways in between, the index is read again.
    /// inside: a value, such as the source. The document is compared only with documents of the same value, which the
    ///     index keeps (`Params(values="kept")`). Both options need an index with sets.
    #[pyo3(signature = (key, document, drop_duplicates=false, within=None, resembling=None, unverified=false,
        estimated=false, containment=None, inside=None, memory=1_073_741_824))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn admit(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        document: &Bound<'_, PyAny>,
        drop_duplicates: bool,
        #[pyo3(from_py_with = args::optional::within)] within: Option<u16>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
        containment: Option<f64>,
        inside: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = args::memory)] memory: usize,
    ) -> Result<Admitted> {
        args::share("containment", containment)?;
        let inside = inside.map(value_of).transpose()?;
        if containment.is_some() || inside.is_some() {
            let others = [
                ("within", within.is_some()),
                ("unverified", unverified),
                ("estimated", estimated),
                ("resembling", resembling.is_some() && containment.is_some()),
            ];
            if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
                return Err(Failure::invalid(format!(
                    "{name} does not go with containment and inside, which count with sets of shingles; leave it out"
                )));
            }
        }
        let near = match (within, resembling) {
            (Some(_), Some(_)) => return Err(Failure::invalid(ONE)),
            (Some(within), None) => Nearness::within(within),
            (None, Some(threshold)) => {
                args::share("resembling", resembling)?;
                Nearness::resembling(threshold)?
            }
            (None, None) => {
                let mut near = self.params.near();
                if inside.is_some() {
                    near.within = None; // `inside` does not use the radius of the index
                }
                near
            }
        };
        let key = one_key(key, self.params.key)?;
        if containment.is_some() || inside.is_some() {
            let sketch = self.sketch_of(py, document)?;
            let options = AdmitOptions { containment, inside: inside.is_some(), drop_duplicates, memory };
            let admission = py.detach(|| {
                self.write(|writing| {
                    writing.writer.set_options(
                        writing.writer.options().near(near).unverified(false).estimated(false),
                    )?;
                    let one = stream::Admitted {
                        key: key.as_key(),
                        document: twindex::Document::from(&sketch),
                        set: sketch.set(),
                        value: inside.as_deref().unwrap_or_default(),
                    };
                    writing.admit(&self.inner, options, one)
                })
            })?;
            return Ok(Admitted::of(admission, containment.is_some()));
        }
        let content = self.content_of(py, document)?;
        let admitted = py.detach(|| {
            self.change(|writer| {
                writer.set_options(
                    writer
                        .options()
                        .drop_duplicates(drop_duplicates)
                        .near(near)
                        .unverified(unverified)
                        .estimated(estimated),
                )?;
                Ok(writer.admit(key.as_key(), content.document())?)
            })
        })?;
        Admitted::try_from(admitted)
    }

    /// Makes all changes durable, and returns the number of the commit. payload: up to 64 KiB of data to store with the
    /// commit.
    #[pyo3(signature = (payload=None))]
    fn commit(&self, py: Python<'_>, payload: Option<&[u8]>) -> Result<u64> {
        py.detach(|| self.committed(payload))
    }

    /// The payload of the last commit that has a payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.snapshot().payload().map(|payload| PyBytes::new(py, payload))
    }

    /// Releases the lock for other writers. No more documents can be put. Uncommitted changes are lost, with a warning
    /// unless `discard` is true. Committed documents can still be read.
    #[pyo3(signature = (discard=false))]
    fn close(&self, py: Python<'_>, discard: bool) -> PyResult<()> {
        let lost = py.detach(|| self.release());
        if lost > 0 && !discard { warn_lost(py, self.inner.path(), lost) } else { Ok(()) }
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
            let has_writer = matches!(&*self.state(), State::Writing(_));
            if has_writer && !failed {
                self.committed(None)?;
            }
            self.release();
            Ok(false)
        })
    }

    /// Makes the commits of other processes visible. Returns True if there were any.
    fn refresh(&self, py: Python<'_>) -> Result<bool> {
        py.detach(|| Ok(self.inner.refresh()?))
    }

    /// Returns the stored data of a document: fingerprint (bytes if the index has codes), signature, value, stamp and
    /// priority; None if the key does not exist.
    fn get<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let key = one_key(key, self.params.key)?;
        let record = py.detach(|| self.inner.snapshot().get(key.as_key())).map_err(Failure::from)?;
        let Some(record) = record else {
            return Ok(None);
        };
        let found = PyDict::new(py);
        match record.code {
            Some(code) => found.set_item("fingerprint", PyBytes::new(py, &code.to_bytes()))?,
            None => found.set_item("fingerprint", record.fingerprint.map(|fingerprint| fingerprint.0))?,
        }
        found.set_item("signature", PyBytes::new(py, &record.signature))?;
        found.set_item("value", record.value.map(|value| PyBytes::new(py, &value)))?;
        found.set_item("stamp", record.stamp)?;
        found.set_item("priority", record.priority)?;
        Ok(Some(found))
    }

    /// Returns all keys in order.
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

    /// Returns the documents near this one, nearest first: `within` a Hamming radius, found exactly; `resembling` it by
    /// at least this value; or, without both, near by the index's parameters. If the index keeps sets, resemblance from
    /// its threshold on is counted exactly unless `estimated` is true. Otherwise it is estimated from signatures, for
    /// documents that share a band; an index without both raises `InvalidError`, unless `unverified` is true, which
    /// treats all documents that share a band as near.
    ///
    /// containment: returns instead the documents that contain at least this share of the document and are at least as
    ///     large, and the documents that are contained in it by at least this share, counted exactly. This needs an index with
    ///     sets. If it has no suffixes, it reads the sets of all documents, so query many documents at once.
    /// gather: returns the greedy cover instead: the document that shares the most shingles with this one, then the one that
    ///     shares the most of the others, until none adds this share of the document.
    #[pyo3(signature = (document, limit=None, within=None, resembling=None, unverified=false, estimated=false,
        containment=None, gather=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn near(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::optional::limit)] limit: Option<usize>,
        #[pyo3(from_py_with = within32)] within: Option<u32>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
        containment: Option<f64>,
        gather: bool,
    ) -> Result<Vec<Hit>> {
        let near =
            NearOptions { within, resembling, unverified, estimated, containment, gather, limit }.check()?;
        let sketch = match self.content_of(py, document)? {
            Content::Code(code) => return py.detach(|| near.of_code(&self.inner.snapshot(), code)),
            Content::Sketch(sketch) => sketch,
        };
        let find = |watched: &SharedProgress| near.one(&self.inner.snapshot(), &sketch, watched);
        // A search by containment takes long, because it reads the sets of all documents. So Ctrl-C must be able to end
        // it.
        if containment.is_some() {
            watched(py, None, find)
        } else {
            py.detach(|| find(&SharedProgress::default()))
        }
    }

    /// Returns the near documents of many texts, as `near`, on all cores.
    #[pyo3(signature = (texts, limit=None, within=None, resembling=None, unverified=false, estimated=false,
        containment=None, gather=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn near_many(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::optional::limit)] limit: Option<usize>,
        #[pyo3(from_py_with = within32)] within: Option<u32>,
        resembling: Option<f64>,
        unverified: bool,
        estimated: bool,
        containment: Option<f64>,
        gather: bool,
    ) -> Result<Vec<Vec<Hit>>> {
        let texts = self.column_of("texts", texts)?;
        let near =
            NearOptions { within, resembling, unverified, estimated, containment, gather, limit }.check()?;
        let snapshot = self.inner.snapshot();
        if let Some(CodeParams { bits, .. }) = self.params.given_codes() {
            let found = watched(py, None, |watched| near.of_codes(&snapshot, bits, &texts, watched))?;
            return Ok(found.into_iter().map(|hits| hits.into_iter().map(Hit::from).collect()).collect());
        }
        let sketcher = self.sketcher()?;
        watched(py, None, |watched| near.many(&snapshot, sketcher, &texts, watched))
    }

    /// Returns the near documents of many texts, as `near`, as columns: query, key, distance, resemblance. With
    /// `containment` there are also the columns intersection, union, query_in_hit and hit_in_query: the numbers of shingles
    /// in both and in either, and the share of the text that the document contains, and of the document that the text
    /// contains; with `gather`, unique and unique_in_query: what the document adds to the cover. segment: searches only
    /// this segment. All answers are held in memory, so limit the number of texts or the number of hits.
    #[pyo3(signature = (keys, texts, within=None, resembling=None, limit=None, segment=None,
        unverified=false, estimated=false, containment=None, gather=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn query(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = within32)] within: Option<u32>,
        resembling: Option<f64>,
        #[pyo3(from_py_with = args::optional::limit)] limit: Option<usize>,
        #[pyo3(from_py_with = args::optional::segment)] segment: Option<usize>,
        unverified: bool,
        estimated: bool,
        containment: Option<f64>,
        gather: bool,
    ) -> Result<PyRecordBatch> {
        let (keys, texts) = (Column::of("keys", keys)?, self.column_of("texts", texts)?);
        keys.check_len(&texts)?;
        let near =
            NearOptions { within, resembling, unverified, estimated, containment, gather, limit }.check()?;
        let snapshot = self.snapshot(segment)?;
        if let Some(CodeParams { bits, .. }) = self.params.given_codes() {
            let find =
                |watched: &SharedProgress| near.columns_of_codes(&snapshot, bits, (&keys, &texts), watched);
            return watched(py, None, find);
        }
        let sketcher = self.sketcher()?;
        watched(py, None, |watched| near.columns(&snapshot, sketcher, (&keys, &texts), watched))
    }

    /// Returns the documents that share features (bands) with this one, with the number of shared features, most first.
    /// They are not verified.
    fn same_features<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, usize)>> {
        let sketch = self.sketch_of(py, document)?;
        let count = || -> Result<_> {
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
        };
        let shared = py.detach(|| on_all_cores(count))?;
        shared.iter().map(|(key, count)| Ok((key_object(py, key)?, *count))).collect()
    }

    /// Returns the near pairs, as `pairs`, unsorted in batches with the columns a, b, and distance or resemblance. left,
    /// right: finds pairs within the segment `left`, or across both segments. The join uses about `memory` bytes.
    /// Batches are produced during the join, and only a few are in memory: each has at most 65,536 pairs and about 64 MB
    /// in each key column.
    #[pyo3(signature = (within=None, resembling=None, left=None, right=None, memory=1_073_741_824, estimated=false))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn pairs_batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = within32)] within: Option<u32>,
        resembling: Option<f64>,
        #[pyo3(from_py_with = args::optional::left)] left: Option<usize>,
        #[pyo3(from_py_with = args::optional::right)] right: Option<usize>,
        #[pyo3(from_py_with = args::memory)] memory: usize,
        estimated: bool,
    ) -> Result<Batches> {
        self.find_pairs(py, (within, resembling, estimated), (left, right), memory, true)
    }

    /// The same as `pairs_batches` without a warning, for workers, whose warnings are not shown.
    fn _pairs_of_parts(
        &self,
        py: Python<'_>,
        near: PairCriteria,
        parts: (usize, usize),
        memory: usize,
    ) -> Result<Batches> {
        self.find_pairs(py, near, (Some(parts.0), Some(parts.1)), memory, false)
    }

    /// Returns the near pairs as a sorted list of (a, b, score), where a < b and the score is the distance or
    /// resemblance. Within a radius, all pairs are found. Resemblance is counted with the sets of the index, and no pair
    /// is missed. If `estimated` is true, which is required for an index without sets, resemblance is estimated from the
    /// signatures of documents that share a band. For buckets of more than 10,000 documents, and shingles that are among
    /// the rarest of more than 10,000 documents, only enough pairs to connect these documents are returned, with a
    /// warning.
    #[pyo3(signature = (within=None, resembling=None, estimated=false))]
    fn pairs<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = within32)] within: Option<u32>,
        resembling: Option<f64>,
        estimated: bool,
    ) -> PyResult<Vec<PairObjects<'py>>> {
        let near = PairCondition::of(&self.params, within, resembling, estimated)?;
        let list = |watched: &SharedProgress| pairs::list(&self.inner.snapshot(), near, watched);
        let (mut pairs, capped) = watched(py, None, list)?;
        capped.warn(py)?;
        pairs.sort_unstable_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
        pairs
            .iter()
            .map(|(a, b, score)| {
                let score = match near {
                    PairCondition::Within(_) => score.0.into_pyobject(py)?.into_any(),
                    PairCondition::Counted(_) | PairCondition::Estimated(_) => {
                        score.1.into_pyobject(py)?.into_any()
                    }
                };
                Ok((key_object(py, a)?, key_object(py, b)?, score))
            })
            .collect()
    }

    /// Removes files that the index does not need. Returns the number of bytes freed.
    fn gc(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| self.maintain(Writer::gc))
    }

    /// Merges all segments into one.
    fn compact(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| self.maintain(Writer::compact))
    }

    /// Checks every byte of the index. Returns the problems found; empty if the index is undamaged.
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

impl Drop for Index {
    /// Warns about documents that are lost because they were not committed.
    fn drop(&mut self) {
        let lost = self.release();
        if lost > 0 {
            // `try_attach` returns `None` if the interpreter is shutting down.
            let _ = Python::try_attach(|py| {
                if let Err(error) = warn_lost(py, self.inner.path(), lost) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}

/// Extracts the value of a document: bytes or a text.
fn value_of(value: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    if let Ok(text) = value.extract::<&str>() {
        return Ok(text.as_bytes().to_vec());
    }
    let bytes = value.extract::<&[u8]>();
    bytes.map(<[u8]>::to_vec).map_err(|_| Failure::invalid("inside: expected a str or bytes"))
}

fn within32(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    Ok(args::optional::within(value)?.map(u32::from))
}
