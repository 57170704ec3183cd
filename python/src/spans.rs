//! Provides the steps that find spans shared by many texts to jobs that distribute rows themselves, as on Spark. The
//! library defines spans.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, UInt64Builder};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyRecordBatch;
use twindex::params::Shingling;
use twindex_corpus::SpanWords;

use crate::args;
use crate::columns::{Column, batch};
use crate::error::{Failure, Result};

fn span_words(shingling: &str, boilerplate_words: u32) -> Result<SpanWords> {
    Ok(SpanWords::new(&Shingling::decode(shingling)?, boilerplate_words)?)
}

/// Returns a text; an empty one if it is not valid UTF-8, because such a text has no words.
fn text_of(texts: &Column, row: usize) -> Result<&str> {
    Ok(std::str::from_utf8(texts.text(row)?).unwrap_or_default())
}

fn row_number(row: usize) -> Result<i32> {
    i32::try_from(row).map_err(|_| Failure::invalid("texts: more than 2^31"))
}

/// Step 1: selects fingerprints of each text. Returns a row for each distinct one: `row`, the position of the text, and
/// `fingerprint`.
#[pyfunction]
pub(crate) fn span_fingerprints(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    shingling: &str,
    #[pyo3(from_py_with = args::boilerplate_words)] boilerplate_words: u32,
) -> Result<PyRecordBatch> {
    let (texts, words) = (Column::of("texts", texts)?, span_words(shingling, boilerplate_words)?);
    py.detach(|| {
        let (mut rows, mut fingerprints) = (Int32Builder::new(), UInt64Builder::new());
        let mut counting = words.counting();
        for row in 0..texts.len() {
            let number = row_number(row)?;
            counting.for_each_fingerprint(text_of(&texts, row)?, |fingerprint| {
                rows.append_value(number);
                fingerprints.append_value(fingerprint);
            })?;
        }
        batch(vec![("row", Arc::new(rows.finish())), ("fingerprint", Arc::new(fingerprints.finish()))])
    })
}

/// Step 2: finds the distinct runs of words of each text whose fingerprint is listed for the text, as 8 little-endian
/// bytes each. Returns a row for each run: `row`, the position of the text, and the hash of the run as `high` and `low`.
#[pyfunction]
pub(crate) fn span_runs(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    wanted: &Bound<'_, PyAny>,
    shingling: &str,
    #[pyo3(from_py_with = args::boilerplate_words)] boilerplate_words: u32,
) -> Result<PyRecordBatch> {
    let (texts, wanted) = (Column::of("texts", texts)?, Column::of("wanted", wanted)?);
    texts.check_len(&wanted)?;
    let words = span_words(shingling, boilerplate_words)?;
    py.detach(|| {
        let mut rows = Int32Builder::new();
        let mut hashes = [UInt64Builder::new(), UInt64Builder::new()];
        let (mut counting, mut runs) = (words.counting(), Vec::new());
        for row in 0..texts.len() {
            let bytes = wanted.text(row)?;
            let known: HashSet<u64> = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
            runs.clear();
            let is_known = |fingerprint: u64| known.contains(&fingerprint);
            counting.append_runs(text_of(&texts, row)?, is_known, &mut runs)?;
            rows.append_value_n(row_number(row)?, runs.len());
            for run in &runs {
                for (column, &half) in hashes.iter_mut().zip(run) {
                    column.append_value(half);
                }
            }
        }
        let [high, low] = hashes.map(|mut column| Arc::new(column.finish()));
        batch(vec![("row", Arc::new(rows.finish())), ("high", high), ("low", low)])
    })
}

/// Encodes a list of spans. Each span is given as `high` and `low`, 8 little-endian bytes each.
#[pyfunction]
pub(crate) fn span_list<'py>(
    py: Python<'py>,
    spans: &[u8],
    shingling: &str,
    #[pyo3(from_py_with = args::boilerplate_words)] boilerplate_words: u32,
    #[pyo3(from_py_with = args::without_boilerplate)] without_boilerplate: u32,
    documents: u64,
) -> Result<Bound<'py, PyBytes>> {
    let words = span_words(shingling, boilerplate_words)?;
    let (halves, _) = spans.as_chunks::<8>();
    let halves: Vec<u64> = halves.iter().copied().map(u64::from_le_bytes).collect();
    let (spans, _) = halves.as_chunks::<2>();
    let list = py.detach(|| words.list_of(spans.iter().copied(), without_boilerplate, documents))?;
    Ok(PyBytes::new(py, &list))
}
