//! Writes copies of the input documents with the decision about each as added fields.

use std::path::Path;

use super::clusters::Clusters;
use super::corpus::Corpus;
use super::keys::ByKey;
use super::out::write_documents;
use crate::hashed_file::WrittenFile;
use crate::input::{ANNOTATED, Annotation, AnnotationOptions, Compression, DocumentNote, KEPT};

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
pub(super) fn write_annotated(
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
pub(super) fn write_kept(
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
