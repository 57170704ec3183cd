//! The Python class of tables of inverse document frequencies.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use twindex::IdfBuilder;
use twindex::params::Shingling;
use twindex::sketch::{Buffers, Shingler};
use twindex::store::idf;
use twindex::sys::RealVfs;
use twindex_corpus::settings::Door;
use twindex_join::SharedProgress;

use crate::args;
use crate::columns::Column;
use crate::error::{Failure, Result};
use crate::fields::LazyTable;
use crate::rows::{RowWork, sketch_row, takes_features};
use crate::settings::CallSettings;
use crate::watch::watched;

/// Number of texts that are counted between two checks for an interrupt.
const CHUNK: usize = 256;

/// The number of documents of a collection that contain each shingle. Shingles are weighted by it: rare shingles weigh
/// more.
///
/// A table is created by `of`, or by the command `twindex idf`, and does not change. `Params`, `Index.create` and
/// `dedup` accept it as `idf`.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct IdfTable {
    pub(crate) inner: Arc<twindex::IdfTable>,
}

#[pymethods]
impl IdfTable {
    /// Reads a table from a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> Result<Self> {
        py.detach(|| Ok(Self { inner: Arc::new(idf::read(&RealVfs, &path)?) }))
    }

    /// Creates a table by counting texts. Omits shingles that are in fewer than `min_df` texts, and all but the
    /// `max_entries` most frequent of the others. An omitted shingle has the weight of the rarest shingle that was
    /// omitted. progress: as for dedup. All other keywords say how texts are split into shingles, as for dedup: words,
    /// tokens, normal_form, fold, stop_words, stemming, shingle_hash, seed.
    #[staticmethod]
    #[pyo3(signature = (texts, *, text_field=None, min_df=2, max_entries=1_000_000, progress=None, **settings))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn of(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        text_field: Option<&str>,
        #[pyo3(from_py_with = args::min_df)] min_df: u32,
        #[pyo3(from_py_with = args::max_entries)] max_entries: usize,
        progress: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let shingling = CallSettings::of(Door::PythonIdf, settings)?.shingling(None)?;
        let texts = LazyTable::new("texts", texts)?;
        let texts = texts.texts(("text_field", text_field), takes_features(&shingling))?;
        watched(py, progress, |watched| {
            watched.begin("counting", texts.len() as u64);
            if takes_features(&shingling) {
                let counting = IdfBuilder::new(&shingling).min_df(min_df).entries_max(max_entries);
                return Self::of_features(&texts, counting, &shingling, watched);
            }
            let shingler = Shingler::new(&shingling)?;
            let mut counting = IdfBuilder::new(&shingling).min_df(min_df).entries_max(max_entries);
            let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
            for row in 0..texts.len() {
                if row % CHUNK == 0 {
                    watched.advance(CHUNK.min(texts.len() - row) as u64)?;
                }
                let text = std::str::from_utf8(texts.text(row)?)
                    .map_err(|error| texts.refused(row, &format!("not UTF-8: {error}")))?;
                shingler.distinct(text, &mut buffers, &mut shingles);
                counting.add(&shingles)?;
            }
            Ok(Self { inner: Arc::new(counting.finish()?) })
        })
    }

    /// Writes the table to a file, which appears only when it is complete. An existing file is an error, unless
    /// `replace` is true.
    #[pyo3(signature = (path, replace=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, replace: bool) -> Result<()> {
        py.detach(|| Ok(idf::write(&RealVfs, &path, &self.inner, replace)?))
    }

    /// Identifies the table: two tables with the same digest give the same weights.
    #[getter]
    fn digest(&self) -> String {
        format!("{:032x}", self.inner.digest())
    }

    /// The number of counted texts, without texts that have no shingles.
    #[getter]
    fn documents(&self) -> u32 {
        self.inner.documents()
    }

    /// Returns the weight of a shingle, given as a text that consists of it, or of a feature, given by its name: 1 +
    /// log2((documents + 1) / (frequency + 1)), rounded down to a multiple of 1/256.
    fn weight(&self, shingle: &str) -> Result<f64> {
        if takes_features(self.inner.shingling()) {
            let feature = feature_sketcher(self.inner.shingling())?.feature(shingle.as_bytes());
            return Ok(f64::from(self.inner.weight(feature)) / 256.0);
        }
        let shingler = Shingler::new(self.inner.shingling())?;
        let mut shingles = Vec::new();
        shingler.distinct(shingle, &mut Buffers::default(), &mut shingles);
        let [shingle] = shingles[..] else {
            let found = shingles.len();
            return Err(Failure::invalid(format!(
                "shingle: expected a text of one shingle, found {found} shingles"
            )));
        };
        Ok(f64::from(self.inner.weight(shingle)) / 256.0)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    #[allow(clippy::unused_self, reason = "Python calls it on the object")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner.digest() == other.inner.digest()
    }

    fn __hash__(&self) -> u64 {
        self.inner.digest() as u64
    }

    fn __repr__(&self) -> String {
        let (documents, entries) = (self.inner.documents(), self.inner.len());
        format!("<twindex.IdfTable {documents} documents, {entries} shingles>")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let bytes = PyBytes::new(py, &twindex::idf::to_bytes(&self.inner));
        Ok((py.get_type::<Self>().getattr("_of_bytes")?, PyTuple::new(py, [bytes])?))
    }

    /// Restores a pickled table from the arguments of `__reduce__`.
    #[staticmethod]
    fn _of_bytes(bytes: &[u8]) -> Result<Self> {
        let table = twindex::idf::from_bytes(bytes)
            .map_err(|_| Failure::invalid("idf: expected the bytes of an IdfTable, found others"))?;
        Ok(Self { inner: Arc::new(table) })
    }
}

impl IdfTable {
    /// Creates a table by counting features.
    fn of_features(
        documents: &Column,
        mut counting: IdfBuilder,
        shingling: &Shingling,
        watched: &SharedProgress,
    ) -> Result<Self> {
        let sketcher = feature_sketcher(shingling)?;
        let (mut work, mut sketch, mut distinct) =
            (RowWork::default(), twindex::Sketch::default(), Vec::new());
        for row in 0..documents.len() {
            if row % CHUNK == 0 {
                watched.advance(CHUNK.min(documents.len() - row) as u64)?;
            }
            sketch_row(&sketcher, documents, row, &mut work, &mut sketch)?;
            distinct.clear();
            distinct.extend_from_slice(work.scratch.elements());
            distinct.sort_unstable();
            distinct.dedup();
            counting.add(&distinct)?;
        }
        Ok(Self { inner: Arc::new(counting.finish()?) })
    }
}

/// Returns a sketcher that is used only to hash features.
fn feature_sketcher(shingling: &Shingling) -> Result<twindex::Sketcher> {
    Ok(twindex::Sketcher::new(&twindex::Params::builder().shingling(shingling.clone()).simhash(0).build()?)?)
}
