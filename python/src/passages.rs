//! `passages`: finds passages that texts in memory share with earlier texts, by the definition of the library.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, UInt64Builder};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatch;
use twindex_corpus::settings::Door;
use twindex_corpus::{Exact, PassageSteps, PassagesOfTexts, SharedProgress, TextAttributes};

use crate::args;
use crate::columns::{Column, batch};
use crate::dedup::{TextOrder, choice, keep_of, keys_of};
use crate::error::{Failure, Result};
use crate::fields::LazyTable;
use crate::settings::CallSettings;
use crate::watch::watched;

/// The names of the criteria for equal passages.
const EXACT: [(&str, Exact); 2] = [("tokens", Exact::Tokens), ("bytes", Exact::Bytes)];

/// Interval in bytes at which character counts are cached.
const STEP: usize = 1 << 12;

/// Converts byte offsets in texts to character offsets, as Python uses.
struct Characters<'t> {
    texts: &'t [&'t str],
    /// For each text in use, the number of characters that begin before each multiple of [`STEP`] bytes.
    before: HashMap<usize, Vec<usize>>,
}

impl Characters<'_> {
    /// Returns the number of characters of a text before the byte offset `at`, which must be a character boundary.
    fn before(&mut self, text: usize, at: usize) -> usize {
        let bytes = self.texts[text].as_bytes();
        let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        let before = self.before.entry(text).or_insert_with(|| {
            let mut sum = 0;
            let step = |step: &[u8]| {
                let before = sum;
                sum += count(step);
                before
            };
            bytes.chunks(STEP).map(step).collect()
        });
        let step = (at / STEP).min(before.len().saturating_sub(1));
        before.get(step).copied().unwrap_or(0) + count(&bytes[step * STEP..at])
    }
}

/// A passage: its text, its start and end in this text, the source text, its start in the source text, and its words.
type Passage = (u32, usize, usize, u32, usize, u32);

/// Returns runs of at least `min_words` words, 1 to 65,535, that occur in an earlier text or, with `within`, earlier in
/// the same text.
///
/// A position is repeated if the run of `min_words` words at this position occurs earlier; its source is the first
/// occurrence. A passage is a run of repeated positions that goes on while the words after its source are the same. Each
/// passage is a tuple `(text, start, end, first_text, first_start, words)` of positions in `texts` and of characters in
/// them, so that `texts[text][start:end]` is the passage. Passages are returned in the order of the texts.
///
/// exact: "bytes" also compares the bytes between the words.
/// keep: the order in which texts are considered; the passages of the first text are kept; as for dedup.
/// text_field, id_field, progress: as for dedup.
///
/// All other keywords are settings of the command, as for dedup.
///
#[doc = include_str!("passages_settings.txt")]
#[pyfunction]
#[pyo3(signature = (texts, min_words=50, *, within=false, exact="tokens", keep=None, text_field=None, id_field=None,
    progress=None, **settings))]
#[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
pub(crate) fn passages(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::min_words)] min_words: usize,
    within: bool,
    exact: &str,
    keep: Option<&Bound<'_, PyAny>>,
    text_field: Option<&str>,
    id_field: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
    settings: Option<&Bound<'_, PyDict>>,
) -> Result<Vec<Passage>> {
    let CallSettings { text, resources, .. } = CallSettings::of(Door::PythonPassages, settings)?;
    let exact = choice("exact", exact, &EXACT)?;
    let table = LazyTable::new("texts", texts)?;
    let keys = id_field.map(|field| keys_of(Door::PythonPassages, &table, field)).transpose()?;
    let (keep, by) = keep_of(keep, &table, keys)?;
    let texts = table.texts(("text_field", text_field), false)?;
    let job = PassagesOfTexts { min_words, exact, within, keep, text, memory: resources.memory };
    watched(py, progress, |watched| work(&texts, &by, &job, watched))
}

fn work(
    texts: &Column,
    by: &TextOrder,
    job: &PassagesOfTexts,
    watched: &SharedProgress,
) -> Result<Vec<Passage>> {
    let keys = by.keys(0..by.keys.as_ref().map_or(0, Column::len))?;
    let keys: Option<Vec<&[u8]>> = keys.as_ref().map(|keys| keys.iter().map(|key| &**key).collect());
    let numbers: Vec<_> = by.numbers.iter().map(Vec::as_slice).collect();
    let beside = TextAttributes { numbers: &numbers, keys: keys.as_deref(), ..TextAttributes::default() };
    let texts: Vec<&[u8]> = (0..texts.len()).map(|row| texts.text(row)).collect::<Result<_>>()?;
    // A text that is not valid UTF-8 has no words, so it has no passages.
    let texts: Vec<&str> = texts.iter().map(|text| std::str::from_utf8(text).unwrap_or_default()).collect();
    let lines = job.run_watched(&texts, beside, watched)?;
    let mut counted = Characters { texts: &texts, before: HashMap::new() };
    let mut characters = |text: u32, at: u32| counted.before(text as usize, at as usize);
    Ok(lines
        .iter()
        .map(|line| {
            let (start, end) = (characters(line.document, line.start), characters(line.document, line.end));
            let first = characters(line.first_document, line.first_start);
            (line.document, start, end, line.first_document, first, line.words)
        })
        .collect())
}

/// Step 1: selects fingerprints of each text. Returns a row for each one, only once per text unless `within`: `row`, the
/// position of the text, and `fingerprint`.
#[pyfunction]
pub(crate) fn passage_fingerprints(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::min_words)] min_words: usize,
    exact: &str,
    settings: &Bound<'_, PyDict>,
    within: bool,
) -> Result<PyRecordBatch> {
    let texts = Column::of("texts", texts)?;
    let mut steps = steps(min_words, exact, settings)?;
    py.detach(|| {
        let (mut rows, mut fingerprints) = (Int32Builder::new(), UInt64Builder::new());
        let mut own = Vec::new();
        for row in 0..texts.len() {
            own.clear();
            steps.for_each_selected(text_of(&texts, row)?, |fingerprint| own.push(fingerprint))?;
            if !within {
                own.sort_unstable();
                own.dedup();
            }
            rows.append_value_n(row_number(row)?, own.len());
            fingerprints.append_slice(&own);
        }
        batch(vec![("row", Arc::new(rows.finish())), ("fingerprint", Arc::new(fingerprints.finish()))])
    })
}

/// Step 2: finds the t-grams of each text, its runs of `min_words` words, whose fingerprint is listed for the text, as
/// 8 little-endian bytes each. Returns a row for each t-gram: `row`, the position of the text, its number of `words`,
/// the hash of the t-gram as `high` and `low`, its `position`, and `start` and `end` in bytes of the text.
#[pyfunction]
pub(crate) fn passage_grams(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    wanted: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::min_words)] min_words: usize,
    exact: &str,
    settings: &Bound<'_, PyDict>,
) -> Result<PyRecordBatch> {
    let (texts, wanted) = (Column::of("texts", texts)?, Column::of("wanted", wanted)?);
    texts.check_len(&wanted)?;
    let mut steps = steps(min_words, exact, settings)?;
    py.detach(|| {
        let mut numbers: [Int32Builder; 5] = std::array::from_fn(|_| Int32Builder::new());
        let mut hashes = [UInt64Builder::new(), UInt64Builder::new()];
        let mut grams = Vec::new();
        for row in 0..texts.len() {
            let bytes = wanted.text(row)?;
            let known: HashSet<u64> = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
            let text = text_of(&texts, row)?;
            grams.clear();
            let is_known = |fingerprint: u64| known.contains(&fingerprint);
            let words = steps.for_each_gram(text, is_known, |gram| grams.push(gram))?;
            let too_long = |_| Failure::invalid("texts: a text of 2 GiB or more");
            let words = i32::try_from(words).map_err(too_long)?;
            for gram in &grams {
                let [position, start, end] = [gram.position, gram.start, gram.end].map(i32::try_from);
                let places = [Ok(row_number(row)?), Ok(words), position, start, end];
                for (column, place) in numbers.iter_mut().zip(places) {
                    column.append_value(place.map_err(too_long)?);
                }
                for (column, half) in hashes.iter_mut().zip(gram.hash) {
                    column.append_value(half);
                }
            }
        }
        let [rows, words, positions, starts, ends] = numbers.map(|mut column| Arc::new(column.finish()));
        let [high, low] = hashes.map(|mut column| Arc::new(column.finish()));
        batch(vec![
            ("row", rows),
            ("words", words),
            ("high", high),
            ("low", low),
            ("position", positions),
            ("start", starts),
            ("end", ends),
        ])
    })
}

fn steps(min_words: usize, exact: &str, settings: &Bound<'_, PyDict>) -> Result<PassageSteps> {
    let exact = choice("exact", exact, &EXACT)?;
    let CallSettings { text, .. } = CallSettings::of(Door::SparkPassages, Some(settings))?;
    Ok(PassageSteps::new(&PassagesOfTexts { min_words, exact, text, ..PassagesOfTexts::default() })?)
}

/// Returns a text; an empty one if it is not valid UTF-8, because such a text has no words.
fn text_of(texts: &Column, row: usize) -> Result<&str> {
    Ok(std::str::from_utf8(texts.text(row)?).unwrap_or_default())
}

fn row_number(row: usize) -> Result<i32> {
    i32::try_from(row).map_err(|_| Failure::invalid("texts: more than 2^31"))
}
