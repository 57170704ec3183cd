//! The last pass: writes documents without their repeated passages, or with the positions of repeated passages, and
//! collects texts for examples.

use std::path::Path;

use anyhow::{Context, anyhow};
use xxhash_rust::xxh3::xxh3_64;

use crate::input::batch::Record;
use crate::input::content::{Content, Ending, Form};
use crate::input::documents::Documents;
use crate::input::kept::annotate::{Annotation, AnnotationOptions, DocumentNote};
use crate::input::kept::files::{KEPT, MARKED};
use crate::input::kept::rewritten;
use crate::input::kept::writer::{KeptBlock, KeptWriter};
use crate::input::parser::Parser;
use crate::input::place::Place;
use crate::input::text::cuts::{Cuts, without};
use crate::passages::examples::Examples;
use crate::passages::options::{CutSettings, Passages};
use crate::passages::read::{PassageCorpus, again, check, text_of};
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::work::observer::Observer;

/// The data of a record that the last pass collects.
struct LastReading {
    hash: u64,
    key: Vec<u8>,
    is_own_key: bool,
    text: String,
    form: Form,
    ending: Ending,
    /// The bytes of the document in the input; empty if no documents are written.
    line: Vec<u8>,
    place: Place,
}

/// The names of the files that were written.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) kept: Vec<String>,
    pub(crate) marked: Vec<String>,
}

/// The files of one kind of output, and the block of documents that is written next.
struct Output<'n> {
    files: KeptWriter<'n>,
    block: KeptBlock,
}

impl<'n> Output<'n> {
    fn new(files: KeptWriter<'n>) -> Self {
        Self { files, block: KeptBlock::default() }
    }

    fn write_full(&mut self) -> anyhow::Result<()> {
        if self.block.is_full() {
            self.files.write(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Vec<String>> {
        self.files.write(&self.block)?;
        Ok(self.files.finish()?.into_iter().map(|file| file.name).collect())
    }
}

/// Returns the repeated byte ranges of a document as JSON.
fn spans_of(corpus: &PassageCorpus<'_>, document: u32) -> Vec<u8> {
    let spans: Vec<String> =
        corpus.cuts_of(document).iter().map(|span| format!("[{},{}]", span.start, span.end)).collect();
    format!("[{}]", spans.join(",")).into_bytes()
}

/// Runs the last pass: writes documents in their input format, and cuts the excerpts of examples from their texts.
pub(crate) fn write_documents(
    corpus: &PassageCorpus<'_>,
    passages: &Passages,
    how: &CutSettings,
    documents: &Documents,
    examples: &mut Examples,
    (folder, observer): (&Path, &dyn Observer),
) -> anyhow::Result<Files> {
    let mut documents = again(documents, passages)?;
    let progress = observer.begin("writing", documents.total_bytes());
    let parser = documents.parser().clone();
    let cuts_of = |document| corpus.cuts_of(document);
    let note_of = |document| DocumentNote { spans: spans_of(corpus, document), ..DocumentNote::default() };
    let noted = passages.marked();
    let mut kept = passages.cut.then(|| {
        let kept = KeptWriter::new(folder, parser.headers().clone(), KEPT, None);
        let kept = kept.compressed(passages.compression);
        Output::new(kept.without(Cuts { of: &cuts_of }))
    });
    let mut marked = noted.as_ref().map(|noted| {
        let annotation = Annotation { noted, of: &note_of };
        let marked = KeptWriter::new(folder, parser.headers().clone(), MARKED, Some(annotation));
        Output::new(marked.compressed(passages.compression))
    });
    let is_written = kept.is_some() || marked.is_some();
    let job = Job {
        state: || (),
        begin: Vec::new,
        work: |(): &mut (), made: &mut Vec<LastReading>, parser: &Parser, record: Record<'_>| {
            let text = text_of(&record);
            check(&record, text, parser, passages.memory)?;
            let line = if is_written { record.line(parser)?.into_owned() } else { Vec::new() };
            made.push(LastReading {
                hash: xxh3_64(text.as_bytes()),
                key: record.key.to_vec(),
                is_own_key: record.is_own,
                text: match record.content {
                    Content::Opaque { text, .. } => text.to_owned(),
                    _ => text.to_owned(),
                },
                form: record.form(),
                ending: record.ending(),
                line,
                place: record.place(),
            });
            Ok(())
        },
    };
    let (mut record, mut document) = (0, 0_u32);
    for_each_chunk(&mut documents, &*progress, &job, |made| {
        for last in made {
            if corpus.is_taken(record, last.hash)? {
                examples.see(document, &last.text, how);
                if let Some(kept) = &mut kept {
                    keep(corpus, &last, document, &parser, &mut kept.block)
                        .with_context(|| last.place.to_string())?;
                    kept.write_full()?;
                }
                if let (Some(marked), Some(noted)) = (&mut marked, &noted) {
                    mark(corpus, &last, document, (&parser, noted), &mut marked.block)
                        .with_context(|| last.place.to_string())?;
                    marked.write_full()?;
                }
                document += 1;
            }
            record += 1;
        }
        Ok(())
    })?;
    corpus.check_all_there(record)?;
    let finish = |output: Option<Output<'_>>| output.map_or(Ok(Vec::new()), Output::finish);
    Ok(Files { kept: finish(kept)?, marked: finish(marked)? })
}

/// Adds a document without its repeated passages to a block.
fn keep(
    corpus: &PassageCorpus<'_>,
    last: &LastReading,
    document: u32,
    parser: &Parser,
    block: &mut KeptBlock,
) -> anyhow::Result<()> {
    let (key, cuts) = (corpus.key(document), corpus.cuts_of(document));
    if !rewritten::is_verbatim_in_line(last.form, &last.line, &last.text) {
        // `last.line` of an HTML page is its markup, but `cuts` are ranges of its visible text.
        let line = rewritten::object(key, &without(&last.text, &cuts), parser)?;
        block.push(document, Form::Json, &line, Ending::default(), None);
        return Ok(());
    }
    let key = other_key(last, key);
    // `KeptWriter` removes the ranges from Parquet and Arrow rows when it copies the rows.
    if cuts.is_empty() || matches!(last.form, Form::Columns(_)) {
        block.push(document, last.form, &last.line, last.ending, key);
    } else {
        let line = rewritten::line_without(last.form, &last.line, &last.text, &cuts, parser)?;
        block.push(document, last.form, &line, last.ending, key);
    }
    Ok(())
}

/// Adds a document with the positions of its repeated passages to a block.
fn mark(
    corpus: &PassageCorpus<'_>,
    last: &LastReading,
    document: u32,
    (parser, noted): (&Parser, &AnnotationOptions),
    block: &mut KeptBlock,
) -> anyhow::Result<()> {
    let (key, note) =
        (corpus.key(document), DocumentNote { spans: spans_of(corpus, document), ..DocumentNote::default() });
    let marked = |form, line: &[u8]| parser.annotated(noted, form, line, &note).map_err(|why| anyhow!(why));
    if rewritten::is_verbatim_in_line(last.form, &last.line, &last.text) {
        let line = marked(last.form, &last.line)?;
        block.push(document, last.form, &line, last.ending, other_key(last, key));
    } else {
        // For an HTML page, the positions refer to its visible text.
        let line = marked(Form::Json, &rewritten::object(key, &last.text, parser)?)?;
        block.push(document, Form::Json, &line, Ending::default(), None);
    }
    Ok(())
}

/// Returns `key` if it must be added to the written document; `None` if the document already contains it.
fn other_key<'k>(last: &LastReading, key: &'k [u8]) -> Option<&'k [u8]> {
    let is_own = last.is_own_key && last.key == key;
    (!is_own).then_some(key)
}
