//! Writes the kept documents, and copies of the input documents with the decision about each as added fields.

use std::path::Path;

use crate::input::kept::annotate::{Annotation, AnnotationOptions, DocumentNote};
use crate::input::kept::names::{ANNOTATED, KEPT};
use crate::input::kept::writer::{KeptBlock, KeptWriter};
use crate::input::open::reader::Compression;
use crate::rule::clusters::Clusters;
use crate::stored::corpus::Corpus;
use crate::stored::keys::ByKey;
use crate::work::file::WrittenFile;

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
    let (mut documents, mut reading) = (documents, corpus.reading());
    // Reads the next block while the current one is written.
    let (mut block, mut next) = (KeptBlock::default(), KeptBlock::default());
    let mut fill =
        |block: &mut KeptBlock| corpus.fill(block, (&mut documents, last), &mut reading, annotation);
    fill(&mut block)?;
    while !block.is_empty() {
        let write = || kept.write(&block);
        let (written, filled) = rayon::join(write, || fill(&mut next));
        written.and(filled)?;
        std::mem::swap(&mut block, &mut next);
    }
    kept.finish()
}

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
