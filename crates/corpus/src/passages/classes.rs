//! Groups equal passages into classes, and writes classes.tsv.
//!
//! All spans with the same source and the same number of words have the same words, and equal spans have the same source: a
//! class is a source, a number of words, and the places that repeat it.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use twindex::extsort::Sorter;
use twindex::sys::{Column, DurableFile, MemoryBudget};

use crate::passages::find::lines::Line;
use crate::passages::out::CLASSES;
use crate::passages::read::{KnownPlaces, PassageCorpus};
use crate::work::tsv;

/// Collects the spans of a run, sorted externally.
pub(crate) struct Classes {
    /// The source, the number of words and the start of the source, and the place of each span.
    spans: Sorter<[u64; 4]>,
    /// The runs of words that a span or its source covers: the document and the first word, and the word after the last.
    covered: Sorter<[u64; 4]>,
    budget: MemoryBudget,
    /// Number of documents in the history. Their words are not counted.
    before: u32,
}

/// Counts of the classes of a run.
#[derive(Debug, Default)]
pub(crate) struct ClassTotals {
    pub(crate) classes: u64,
    /// Number of words of the inputs that occur more than once: in spans and in their sources.
    pub(crate) words: u64,
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

impl Classes {
    /// Creates an empty collection. Each of two sorters uses up to `memory` bytes, then scratch files in `folder`.
    pub(crate) fn new(folder: &Path, memory: usize, before: u32) -> Self {
        let [spans, covered] =
            [0, 1].map(|_| Sorter::new(folder, memory).on_threads(rayon::current_num_threads()));
        Self { spans, covered, budget: MemoryBudget::new(folder, memory), before }
    }

    /// Adds a span.
    pub(crate) fn push(&mut self, line: &Line) -> twindex::Result<()> {
        let Line { document, start, first_document, first_position, first_start, words, .. } = *line;
        self.spans.push([
            pair(first_document, first_position),
            pair(words, first_start),
            pair(document, start),
            0,
        ])?;
        for (document, position) in [(document, line.position), (first_document, first_position)] {
            if let Some(own) = document.checked_sub(self.before) {
                let end = position.saturating_add(line.units);
                self.covered.push([pair(own, position), end.into(), 0, 0])?;
            }
        }
        Ok(())
    }

    /// Writes classes.tsv to `folder`: the classes that repeat most words first, each with its source and the other places in
    /// input order.
    pub(crate) fn write(
        self,
        corpus: &PassageCorpus<'_>,
        folder: &Path,
        memory: usize,
    ) -> anyhow::Result<ClassTotals> {
        let mut totals = ClassTotals { words: covered_words(self.covered)?, ..ClassTotals::default() };
        let spans = self.spans.finish()?;
        // The number of spans of each class, in the order of `spans`.
        let mut sizes: Column<u32> = Column::new(&self.budget);
        let mut last = None;
        spans.for_each(|[source, words, ..]: [u64; 4]| -> twindex::Result<()> {
            if last.replace((source, words)) != Some((source, words)) {
                sizes.push(0)?;
            }
            if let Some(size) = sizes.last_mut() {
                *size = size.saturating_add(1);
            }
            Ok(())
        })?;
        totals.classes = sizes.len() as u64;
        let ordered: Sorter<[u64; 4]> = Sorter::new(folder, memory);
        let mut ordered = ordered.on_threads(rayon::current_num_threads());
        let (mut last, mut class) = (None, 0);
        spans.for_each(|[source, words, place, _]: [u64; 4]| {
            if last.replace((source, words)).is_some_and(|last| last != (source, words)) {
                class += 1;
            }
            let repeated = u64::from(halves(words).0) * u64::from(sizes[class]);
            ordered.push([!repeated, source, words, place])
        })?;
        drop(spans);
        let file = DurableFile::create_new(&folder.join(CLASSES)).context("classes.tsv: cannot write")?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(b"class\twords\tkey\tstart\n")?;
        let (mut last, mut class, mut known) = (None, 0, KnownPlaces::default());
        ordered.finish()?.for_each(|[_, source, words, place]: [u64; 4]| -> anyhow::Result<()> {
            let (words, first_start) = halves(words);
            let mut write = |class: u32, key: &[u8], start: u32| -> std::io::Result<()> {
                tsv::write_number(&mut out, class)?;
                out.write_all(b"\t")?;
                tsv::write_number(&mut out, words)?;
                out.write_all(b"\t")?;
                tsv::write_field(&mut out, key)?;
                out.write_all(b"\t")?;
                tsv::write_number(&mut out, start)?;
                out.write_all(b"\n")
            };
            if last.replace((source, words)) != Some((source, words)) {
                class += 1;
                let (first_document, first_position) = halves(source);
                let (key, start) =
                    corpus.source((first_document, first_position), first_start, &mut known)?;
                write(class, key, start).context("classes.tsv: cannot write")?;
            }
            let (document, start) = halves(place);
            let key = corpus.key(document.saturating_sub(self.before));
            write(class, key, start).context("classes.tsv: cannot write")
        })?;
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error);
        file.and_then(DurableFile::finish).context("classes.tsv: cannot write")?;
        Ok(totals)
    }
}

/// Returns the number of words that at least one of the runs covers.
fn covered_words(runs: Sorter<[u64; 4]>) -> twindex::Result<u64> {
    let (mut words, mut document, mut covered) = (0, None, 0);
    runs.finish()?.for_each(|[place, end, ..]: [u64; 4]| -> twindex::Result<()> {
        let (own, start) = halves(place);
        if document.replace(own) != Some(own) {
            covered = 0;
        }
        words += end.saturating_sub(covered.max(start.into()));
        covered = covered.max(end);
        Ok(())
    })?;
    Ok(words)
}
