//! Writes spans.tsv, and records the repeated byte ranges of each document.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use twindex::sys::DurableFile;

use crate::passages::classes::Classes;
use crate::passages::examples::Examples;
use crate::passages::find::lines::{Line, Repeats};
use crate::passages::out::SPANS;
use crate::passages::read::{KnownPlaces, PassageCorpus};
use crate::work::tsv;

/// Totals of the written spans.
#[derive(Debug, Default)]
pub(crate) struct SpanTotals {
    pub(crate) lines: u64,
    /// Number of lines whose source is in the history.
    pub(crate) of_history: u64,
    /// Number of spans without a line, because their source is not in the history.
    pub(crate) others: u64,
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    pub(crate) whole: u64,
}

/// The union of overlapping or adjacent spans of a document. The next line of the document may extend the union.
#[derive(Clone, Copy)]
struct CoveredSpan {
    document: u32,
    start: u32,
    end: u32,
    /// Number of bytes in the earlier unions of the document.
    bytes: u32,
    /// The start of the first union of the document.
    first: u32,
    /// Whether this is the first union of the document.
    is_one: bool,
}

/// Writes the lines to spans.tsv, sorted by document, and records the repeated byte ranges in `corpus`. With
/// `only_history`, lines whose source is not in the history are only counted.
pub(crate) fn write(
    repeats: &Repeats,
    corpus: &mut PassageCorpus<'_>,
    examples: &mut Examples,
    classes: &mut Classes,
    folder: &Path,
    only_history: bool,
) -> anyhow::Result<SpanTotals> {
    let file = DurableFile::create_new(&folder.join(SPANS)).context("spans.tsv: cannot write")?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut written = SpanTotals::default();
    let mut covered: Option<CoveredSpan> = None;
    let (mut known, before) = (KnownPlaces::default(), corpus.before());
    out.write_all(b"key\tstart\tend\tfirst_key\tfirst_start\twords\n")?;
    let history = corpus.history();
    let is_same = |place: (u32, u32), first: (u32, u32)| match history {
        Some(history) if place.0 < before => {
            Ok(Some(first.0 < before && history.is_same_gram(place, first)?))
        }
        // A span of the inputs may go over a passage of the history, unless only the latter are listed.
        _ => Ok((only_history && first.0 < before).then_some(false)),
    };
    repeats.for_each_line_after(is_same, |line| -> anyhow::Result<()> {
        let is_of_history = line.first_document < before;
        if only_history && !is_of_history {
            written.others += 1;
            return Ok(());
        }
        written.lines += 1;
        written.of_history += u64::from(is_of_history);
        // Does not saturate: documents of the history repeat nothing, so `line.document` is an input document.
        let document = line.document.saturating_sub(before);
        classes.push(&line)?;
        let source = (line.first_document, line.first_position);
        let (first_key, first_start) = corpus.source(source, line.first_start, &mut known)?;
        let key = corpus.key(document);
        write_line(&mut out, &line, key, (first_key, first_start)).context("spans.tsv: cannot write")?;
        let first = line.first_document.checked_sub(before);
        examples.offer(&line, document, key, (first, first_key, first_start));
        let new = CoveredSpan {
            document,
            start: line.start,
            end: line.end,
            bytes: 0,
            first: line.start,
            is_one: true,
        };
        covered = Some(match covered {
            Some(before) if before.document == document => {
                if line.start <= before.end {
                    CoveredSpan { end: before.end.max(line.end), ..before }
                } else {
                    corpus.cover(before.document, before.start..before.end)?;
                    let bytes = before.bytes + (before.end - before.start);
                    CoveredSpan { bytes, first: before.first, is_one: false, ..new }
                }
            }
            before => {
                end(before, corpus, &mut written)?;
                new
            }
        });
        Ok(())
    })?;
    end(covered, corpus, &mut written)?;
    examples.end_offers();
    let file = out.into_inner().map_err(io::IntoInnerError::into_error);
    file.and_then(DurableFile::finish).context("spans.tsv: cannot write")?;
    Ok(written)
}

/// Records the last union of a document, and adds the document to the totals.
fn end(
    covered: Option<CoveredSpan>,
    corpus: &mut PassageCorpus<'_>,
    written: &mut SpanTotals,
) -> anyhow::Result<()> {
    let Some(last) = covered else { return Ok(()) };
    corpus.cover(last.document, last.start..last.end)?;
    written.documents += 1;
    written.bytes += u64::from(last.bytes + (last.end - last.start));
    let (first, end) = corpus.extent(last.document);
    written.whole += u64::from(last.is_one && last.first <= first && last.end >= end);
    Ok(())
}

fn write_line(
    out: &mut impl Write,
    line: &Line,
    key: &[u8],
    (first_key, first_start): (&[u8], u32),
) -> io::Result<()> {
    tsv::write_field(out, key)?;
    for number in [line.start, line.end] {
        out.write_all(b"\t")?;
        tsv::write_number(out, number)?;
    }
    out.write_all(b"\t")?;
    tsv::write_field(out, first_key)?;
    for number in [first_start, line.words] {
        out.write_all(b"\t")?;
        tsv::write_number(out, number)?;
    }
    out.write_all(b"\n")
}
