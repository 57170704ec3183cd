//! Writes three kinds of document files: the kept documents, all documents annotated with the decision, and WARC
//! revisit records of removed pages.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use twindex::sys::threads::in_order;

use crate::input::archives::revisit::revisit;
use crate::input::content::Form;
use crate::input::kept::annotate::{Annotation, AnnotationOptions, DocumentNote};
use crate::input::kept::files::{ANNOTATED, KEPT};
use crate::input::kept::writer::{KeptBlock, KeptWriter};
use crate::input::open::reader::Compression;
use crate::results::layout::REVISITS;
use crate::rule::clusters::Clusters;
use crate::stored::corpus::Corpus;
use crate::stored::keys::ByKey;
use crate::stored::lines::LineReader;
use crate::work::file::{WrittenFile, write_file};

/// Writes documents in input order, and returns the files. If `last`, no line is read afterwards, so the disk
/// space of the lines is freed during the pass.
pub(crate) fn write_documents(
    corpus: &Corpus,
    (documents, last): (impl Iterator<Item = u32> + Send, bool),
    (folder, compression): (&Path, Option<Compression>),
    stem: &'static str,
    annotation: Option<Annotation<'_>>,
) -> anyhow::Result<Vec<WrittenFile>> {
    let kept = KeptWriter::new(folder, corpus.parser.headers().clone(), stem, annotation);
    let mut kept = kept.compressed(compression);
    let mut documents = documents;
    // The documents of a block. Their number does not affect the files.
    let blocks = std::iter::from_fn(|| {
        let (mut block, mut bytes) = (Vec::new(), 0);
        while bytes < KeptBlock::BYTES
            && block.len() < DOCUMENTS
            && let Some(document) = documents.next()
        {
            bytes += corpus.line_length(document);
            block.push(document);
        }
        (!block.is_empty()).then_some(block)
    });
    let fill = |reading: &mut LineReader<'_>, documents: Vec<u32>| {
        let mut block = KeptBlock::default();
        corpus.fill(&mut block, &documents, reading, annotation)?;
        anyhow::Ok((block, documents))
    };
    let write = |(block, documents): (KeptBlock, Vec<u32>)| -> anyhow::Result<_> {
        kept.write(&block)?;
        if let Some(&document) = documents.last().filter(|_| last) {
            corpus.lines.release_before(document as usize);
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut reading: Vec<_> = (0..rayon::current_num_threads()).map(|_| corpus.reading()).collect();
    let _ = in_order(&mut reading, blocks, 1, fill, write)?;
    kept.finish()
}

/// Maximum number of documents of a block.
const DOCUMENTS: usize = 1 << 12;

/// Returns the values of the added fields of a document.
fn note(corpus: &Corpus, clusters: &Clusters, numbers: Option<&[u32]>, document: u32) -> DocumentNote {
    if let Some(dropped) = corpus.dropped_at(document) {
        let near = corpus.dropped.near(dropped);
        let (near_key, score) = near.map_or((None, Vec::new()), |(key, score)| (Some(key), score));
        return DocumentNote { cluster: None, is_kept: false, score, near_key, spans: Vec::new() };
    }
    let grouped = &corpus.grouped;
    let group = grouped.group_of[document as usize];
    let kept = clusters.kept_of_group[group as usize];
    let is_kept = clusters.is_kept(grouped, document);
    let number = numbers.map_or(0, |numbers| numbers[kept as usize]);
    let mut score = Vec::new();
    // Writing to memory does not fail.
    let _ = clusters.score(grouped, group).write_short(&mut score);
    DocumentNote {
        cluster: (kept >= corpus.history).then(|| (number, clusters.size(kept))),
        is_kept,
        score,
        near_key: (!is_kept).then(|| corpus.keys.get(kept).to_vec()),
        spans: Vec::new(),
    }
}

/// Writes all documents, except documents of the history, with the added fields. Returns the files.
pub(crate) fn write_annotated(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    (noted, compression): (&AnnotationOptions, Option<Compression>),
    folder: &Path,
) -> anyhow::Result<Vec<WrittenFile>> {
    let numbers = clusters.numbers(corpus, by_key)?;
    let of = |document| note(corpus, clusters, Some(&numbers[..]), document);
    let annotation = Some(Annotation { noted, of: &of });
    write_documents(corpus, (corpus.all_documents(), false), (folder, compression), ANNOTATED, annotation)
}

/// Writes the kept documents in input order, with the sizes of their clusters if requested. If `last`, no line is read
/// afterwards, so the disk space of the lines is freed during the pass. Returns the files.
pub(crate) fn write_kept(
    corpus: &Corpus,
    clusters: &Clusters,
    (size, last): (Option<&AnnotationOptions>, bool),
    to: (&Path, Option<Compression>),
) -> anyhow::Result<Vec<WrittenFile>> {
    let documents = corpus.documents().filter(|&document| clusters.is_kept(&corpus.grouped, document));
    let of = |document| note(corpus, clusters, None, document);
    let annotation = size.map(|noted| Annotation { noted, of: &of });
    write_documents(corpus, (documents, last), to, KEPT, annotation)
}

/// Counts of revisit records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Revisits {
    /// Number of records in revisits.warc.
    pub records: u64,
    /// Number of removed documents without a record, because their payload does not equal that of the kept document, or
    /// because they are not complete responses of a WARC file.
    pub left_out: u64,
}

/// Writes the revisit records of removed documents, in input order.
pub(crate) fn write_revisits(
    corpus: &Corpus,
    clusters: &Clusters,
    folder: &Path,
) -> anyhow::Result<Revisits> {
    let mut found = Revisits { records: 0, left_out: corpus.dropped.len() as u64 };
    let mut failure = None;
    let is_page = |document| corpus.form(document) == Form::Archive { texts: false };
    let of = |document: u32| -> anyhow::Result<Option<Vec<u8>>> {
        let kept = clusters.kept_of_group[corpus.grouped.group_of[document as usize] as usize];
        // A revisit record cannot refer to a document of the history, whose record is not in the inputs of this run.
        if kept < corpus.history || !is_page(document) || !is_page(kept) {
            return Ok(None);
        }
        Ok(revisit(&corpus.line(document)?, &corpus.line(kept)?))
    };
    let written = write_file(&folder.join(REVISITS), |out| {
        for document in corpus.documents().filter(|&document| !clusters.is_kept(&corpus.grouped, document)) {
            match of(document) {
                Ok(Some(record)) => {
                    out.write_all(&record)?;
                    found.records += 1;
                }
                Ok(None) => found.left_out += 1,
                Err(error) => {
                    failure = Some(error);
                    return Err(io::Error::other("a record cannot be read again"));
                }
            }
        }
        Ok(())
    });
    written.map_err(|error| failure.unwrap_or(error))?;
    Ok(found)
}
