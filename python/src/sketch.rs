//! Python classes of sketches, and of sketchers of texts.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, UInt64Builder};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyTuple};
use pyo3_arrow::PyRecordBatch;
use rayon::prelude::*;
use twindex::Resemblance;
use twindex::sketch::pack;
use twindex_join::SharedProgress;

use crate::args;
use crate::columns::{Column, Keys, batch};
use crate::error::{Failure, Result};
use crate::params::Params;
use crate::rows::{RowWork, sketch_row};
use crate::shard::Shards;
use crate::watch::watched;

/// Number of texts that a thread sketches at a time.
pub(crate) const CHUNK: usize = 256;

/// The sketch of one text: its fingerprint, minima and features.
#[pyclass(frozen, module = "twindex", from_py_object)]
#[derive(Clone)]
pub(crate) struct Sketch {
    pub(crate) inner: twindex::Sketch,
    /// The sketcher that made it, which a pickled sketch needs. Sketches of one call share it, so that pickle writes it
    /// once.
    made_by: Arc<Py<Sketcher>>,
}

#[pymethods]
impl Sketch {
    /// True for a text without words.
    #[getter]
    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    /// The simhash; None if the parameters keep none, or the text has no words.
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(code) = self.inner.code() else { return Ok(None) };
        let bytes = PyBytes::new(py, &code.to_bytes());
        py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "big")).map(Some)
    }

    /// The minima of the shingle hashes, `rows` for each band; empty if the parameters keep none.
    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.signature())
    }

    /// A hash of the minima of each band; empty if the parameters keep no bands.
    #[getter]
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.features())
    }

    /// Returns the resemblance (Jaccard) of the two documents, estimated from the minima.
    fn resemblance(&self, other: &Self) -> Result<f64> {
        self.check(other)?;
        self.check_text(other, "resemblance")?;
        let (mine, theirs) = (self.inner.signature(), other.inner.signature());
        if mine.is_empty() || theirs.is_empty() {
            return Err(Failure::invalid(
                "a sketch without minima has no resemblance; see Params(minhash=...)",
            ));
        }
        Ok(Resemblance::of_signatures(mine, theirs).value())
    }

    /// Returns the number of bits in which the fingerprints differ.
    fn distance(&self, other: &Self) -> Result<u32> {
        self.check(other)?;
        self.check_text(other, "distance")?;
        match (self.inner.code(), other.inner.code()) {
            (Some(mine), Some(theirs)) => Ok(mine.distance(&theirs)),
            _ => {
                Err(Failure::invalid("a sketch without fingerprint has no distance; see Params(simhash=...)"))
            }
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, SketchState<'py>)> {
        let mut bytes = Vec::new();
        self.inner.store(usize::MAX, &mut bytes);
        let state = (self.made_by.bind(py).clone(), PyBytes::new(py, &bytes));
        Ok((py.get_type::<Self>().getattr("_of")?, state))
    }

    /// Restores a pickled sketch from the arguments of `__reduce__`.
    #[staticmethod]
    fn _of(made_by: Py<Sketcher>, bytes: &[u8]) -> Result<Self> {
        let mut inner = twindex::Sketch::default();
        made_by.get().inner.restore(usize::MAX, bytes, &mut inner)?;
        Ok(Self { inner, made_by: Arc::new(made_by) })
    }

    fn __repr__(&self) -> String {
        let fingerprint = self.inner.code().map_or_else(|| "none".into(), |code| code.to_string());
        format!("<twindex.Sketch fingerprint={fingerprint} minima={}>", self.inner.signature().len())
    }
}

/// The arguments from which a pickled sketch is restored.
type SketchState<'py> = (Bound<'py, Sketcher>, Bound<'py, PyBytes>);

impl Sketch {
    /// Computes the sketch of one text.
    pub(crate) fn of(made_by: Bound<'_, Sketcher>, text: &Bound<'_, PyAny>) -> Result<Self> {
        let inner = one_sketch(text.py(), &made_by.get().inner, text)?;
        Ok(Self { inner, made_by: Arc::new(made_by.unbind()) })
    }

    fn check(&self, other: &Self) -> Result<()> {
        if self.inner.params_digest() != other.inner.params_digest() {
            return Err(Failure::invalid("the two sketches were made with other parameters"));
        }
        Ok(())
    }

    /// Returns an error if one of the texts has no words.
    fn check_text(&self, other: &Self, what: &str) -> Result<()> {
        for (sketch, which) in [(self, "first"), (other, "second")] {
            if sketch.inner.is_empty() {
                let why =
                    format!("the {which} of both texts has no words, and so no {what}; ask is_empty before");
                return Err(Failure::invalid(why));
            }
        }
        Ok(())
    }
}

/// Computes sketches of texts. May be shared by threads.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct Sketcher {
    pub(crate) params: Params,
    pub(crate) inner: twindex::Sketcher,
}

/// Sketches the texts of rows on all cores, and calls `each` on the thread that made a sketch. Returns the results in
/// the order of the rows.
pub(crate) fn sketched<T: Send>(
    sketcher: &twindex::Sketcher,
    texts: &Column,
    rows: std::ops::Range<usize>,
    watched: &SharedProgress,
    each: impl Fn(usize, &twindex::Sketch) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    watched.begin("sketching", rows.len() as u64);
    let rows: Vec<usize> = rows.collect();
    let chunks: Vec<Vec<T>> = rows
        .par_chunks(CHUNK)
        .map(|rows| {
            let (mut work, mut sketch) = (RowWork::default(), twindex::Sketch::default());
            watched.advance(rows.len() as u64)?;
            rows.iter()
                .map(|&row| {
                    watched.check()?;
                    sketch_row(sketcher, texts, row, &mut work, &mut sketch)?;
                    each(row, &sketch)
                })
                .collect()
        })
        .collect::<Result<_>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Sketches the texts from row `start` on, one for each element of `sketches`, on all cores.
pub(crate) fn sketch_rows(
    sketcher: &twindex::Sketcher,
    texts: &Column,
    start: usize,
    sketches: &mut [twindex::Sketch],
    watched: &SharedProgress,
) -> Result<()> {
    sketches.par_chunks_mut(CHUNK).enumerate().try_for_each_init(RowWork::default, |work, (at, some)| {
        watched.check()?;
        (start + at * CHUNK..)
            .zip(some)
            .try_for_each(|(row, sketch)| sketch_row(sketcher, texts, row, work, sketch))
    })
}

#[pymethods]
impl Sketcher {
    #[new]
    fn new(params: &Params) -> Result<Self> {
        Ok(Self { params: params.clone(), inner: params.sketcher()? })
    }

    /// The parameters given at creation.
    #[getter]
    fn params(&self) -> Params {
        self.params.clone()
    }

    /// Returns the sketch of one text.
    fn sketch(this: Bound<'_, Self>, text: &Bound<'_, PyAny>) -> Result<Sketch> {
        Sketch::of(this, text)
    }

    /// Returns the sketches of many texts, computed on all cores.
    fn sketch_many(this: Bound<'_, Self>, texts: &Bound<'_, PyAny>) -> Result<Vec<Sketch>> {
        let (texts, sketcher) = (Column::of("texts", texts)?, &this.get().inner);
        let sketches = watched(this.py(), None, |watched| {
            let mut sketches = vec![twindex::Sketch::default(); texts.len()];
            sketch_rows(sketcher, &texts, 0, &mut sketches, watched)?;
            Ok(sketches)
        })?;
        let made_by = Arc::new(this.unbind());
        Ok(sketches.into_iter().map(|inner| Sketch { inner, made_by: Arc::clone(&made_by) }).collect())
    }

    /// Returns the columns that a ShardBuilder needs: key, shard (from 0, by a hash of the key), fingerprint, features,
    /// signature, bottom, modular, set. Sets are null if the parameters keep none.
    #[pyo3(signature = (keys, texts, shards=1))]
    fn rows(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::shards)] shards: u32,
    ) -> Result<PyRecordBatch> {
        let (keys, texts) = (Column::of("keys", keys)?, Column::of("texts", texts)?);
        keys.check_len(&texts)?;
        watched(py, None, |watched| rows(&self.params.inner, &self.inner, &keys, &texts, shards, watched))
    }

    fn __repr__(&self) -> String {
        format!("<twindex.Sketcher of {}>", self.params().__repr__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (Params,)) {
        (py.get_type::<Self>().into_any(), (self.params(),))
    }
}

/// Sketches one text or set of features, given as a Python object.
pub(crate) fn one_sketch(
    py: Python<'_>,
    sketcher: &twindex::Sketcher,
    text: &Bound<'_, PyAny>,
) -> Result<twindex::Sketch> {
    let list = pyo3::types::PyList::new(py, [text])?;
    let column = match Column::of("text", &list) {
        Err(Failure::Record(_, error)) => return Err(error.into()),
        column => column?,
    };
    py.detach(|| {
        let mut sketch = twindex::Sketch::default();
        match sketch_row(sketcher, &column, 0, &mut RowWork::default(), &mut sketch) {
            Err(Failure::Record(_, error)) => Err(error.into()),
            made => made.map(|()| sketch),
        }
    })
}

/// The encoded parts of a sketch, for one row.
struct SketchParts {
    fingerprint: Option<u64>,
    /// Features, packed signature, and samples; `None` for an empty sketch.
    columns: Option<[Vec<u8>; 4]>,
    /// The set; `None` if sets are not kept. An empty sketch has a set, too.
    set: Option<Vec<u8>>,
}

fn little_endian(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn rows(
    params: &twindex::Params,
    sketcher: &twindex::Sketcher,
    keys: &Column,
    texts: &Column,
    shards: u32,
    watched: &SharedProgress,
) -> Result<PyRecordBatch> {
    if params.codes.is_some() {
        return Err(Failure::invalid("rows hold simhashes of 64 bits: leave out simhash_bits"));
    }
    let bits = params.minhash.map_or(0, |minhash| minhash.signature_bits);
    let made = sketched(sketcher, texts, 0..texts.len(), watched, |_, sketch| {
        let mut packed = Vec::new();
        pack(sketch.signature(), bits, &mut packed);
        let columns = (!sketch.is_empty()).then(|| {
            [
                little_endian(sketch.features()),
                packed,
                little_endian(sketch.bottom()),
                little_endian(sketch.modular()),
            ]
        });
        let set = params.sets.then(|| little_endian(sketch.set()));
        Ok(SketchParts { fingerprint: sketch.fingerprint().map(|fingerprint| fingerprint.0), columns, set })
    })?;
    let shards = Shards::new(shards)?;
    let mut key_column = Keys::new(params.key);
    let mut shard_column = arrow_array::builder::Int32Builder::new();
    let mut fingerprints = UInt64Builder::new();
    let mut columns: [LargeBinaryBuilder; 4] = Default::default();
    let mut sets = LargeBinaryBuilder::new();
    for (row, SketchParts { fingerprint, columns: parts, set }) in made.into_iter().enumerate() {
        let key = keys.key(row, params.key)?;
        key_column.push(key);
        shard_column.append_value(shards.of(key));
        fingerprints.append_option(fingerprint);
        for (at, column) in columns.iter_mut().enumerate() {
            column.append_option(parts.as_ref().map(|parts| &parts[at]));
        }
        sets.append_option(set);
    }
    let [mut features, mut signature, mut bottom, mut modular] = columns;
    batch(vec![
        ("key", key_column.finish()),
        ("shard", Arc::new(shard_column.finish())),
        ("fingerprint", Arc::new(fingerprints.finish())),
        ("features", Arc::new(features.finish())),
        ("signature", Arc::new(signature.finish())),
        ("bottom", Arc::new(bottom.finish())),
        ("modular", Arc::new(modular.finish())),
        ("set", Arc::new(sets.finish())),
    ])
}
