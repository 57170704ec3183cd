//! `passages`: what texts in memory share with those before them. What a passage is, is the library's definition.

use std::collections::HashMap;

use pyo3::prelude::*;
use twindex_corpus::{Exact, PassagesOfTexts, Watched};

use crate::args;
use crate::columns::Column;
use crate::error::{Failure, Result};
use crate::watch::watched;

/// Bytes after which the characters before them are noted.
const STEP: usize = 1 << 12;

/// Counts characters of texts, as Python does.
struct Characters<'t> {
    texts: &'t [&'t str],
    /// Of texts that were asked for, how many characters begin before each multiple of [`STEP`].
    before: HashMap<usize, Vec<usize>>,
}

impl Characters<'_> {
    /// The characters of a text before a byte, at which one begins or the text ends.
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

/// A passage: the text, where it begins and ends in it, the text of the source, where it begins there, and its words.
type Passage = (u32, usize, usize, u32, usize, u32);

/// Runs of `min_words` words or more, 1 to 65,535, that stand in an earlier text, or, with `within`, earlier in the same.
///
/// A position is repeated if the run of `min_words` words from it on came before, and its source is the first occurrence.
/// A passage is a run of repeated positions whose sources advance together. Each is a tuple `(text, start, end,
/// first_text, first_start, words)`: places in `texts`, and characters in them, so that `texts[text][start:end]` is the
/// passage. They come in the order of the texts. `exact="bytes"` compares all that is between the words, too.
/// `memory` is what the work takes beside texts and passages, in bytes; what is more goes to scratch files. `text_field` and
/// `progress` are as for dedup.
#[pyfunction]
#[pyo3(signature = (texts, min_words=50, *, within=false, exact="tokens", memory=1_073_741_824,
    text_field=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
pub(crate) fn passages(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::min_words)] min_words: usize,
    within: bool,
    exact: &str,
    #[pyo3(from_py_with = args::memory)] memory: usize,
    text_field: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Vec<Passage>> {
    let exact = match exact {
        "tokens" => Exact::Tokens,
        "bytes" => Exact::Bytes,
        other => return Err(Failure::invalid(format!("exact: expected tokens or bytes, found {other}"))),
    };
    let texts = Column::of_field("texts", texts, text_field)?;
    let job = PassagesOfTexts { min_words, exact, within, memory, ..PassagesOfTexts::default() };
    watched(py, progress, |watched| work(&texts, &job, watched))
}

fn work(texts: &Column, job: &PassagesOfTexts, watched: &Watched) -> Result<Vec<Passage>> {
    let texts: Vec<&[u8]> = (0..texts.len()).map(|row| texts.text(row)).collect::<Result<_>>()?;
    // A text that is not UTF-8 has no passages, as it has no words.
    let texts: Vec<&str> = texts.iter().map(|text| std::str::from_utf8(text).unwrap_or_default()).collect();
    let lines = job.run_watched(&texts, watched)?;
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
