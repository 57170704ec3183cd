//! Stores the data of the documents of a run: keys, positions in the inputs, lines and groups of equal texts. Also
//! lists the documents that were removed as duplicates of a document in an index.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use rayon::prelude::*;
use twindex::KeyBuf;
use twindex::sys::{Column, MemoryBudget};

use crate::input::content::Form;
use crate::input::documents::Documents;
use crate::input::fields::fingerprint::Code;
use crate::input::fields::keep::KeepOrder;
use crate::input::kept::annotate::Annotation;
use crate::input::kept::writer::KeptBlock;
use crate::input::parser::Parser;
use crate::input::place::{Place, bad_at, check_key};
use crate::input::text::lossy::ABSENT;
use crate::rule::repeated::{SeenKeys, without_numbers};
use crate::rule::score::{Score, ScoreKind};
use crate::sketching::documents::Sketched;
use crate::stored::codes::GroupCodes;
use crate::stored::drawn::{DrawnDropped, DroppedSample};
use crate::stored::groups::{Grouped, NewDocument, NewSet};
use crate::stored::keys::{ByKey, DocumentKeys, DocumentPlaces, KnownKeys, arrange};
use crate::stored::lines::{LineReader, LineStore};
use crate::stored::order::KeepValues;
use crate::work::tsv;

/// Why a new document was removed: the key of the near document in an index, and the distance or resemblance.
pub(crate) struct Dropped {
    pub(crate) other: KeyBuf,
    pub(crate) near: Score,
}

impl Dropped {
    /// Takes the place of `first` if that is `None` or has a greater key.
    pub(crate) fn replace_greater(self, first: &mut Option<Self>) {
        if first.as_ref().is_none_or(|first| self.other < first.other) {
            *first = Some(self);
        }
    }

    /// Writes table columns: the key of the near document in the index, and the score.
    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        tsv::write_key(out, &self.other)?;
        out.write_all(b"\t")?;
        // A distance is written alike for each kind.
        self.near.write(ScoreKind::Resemblance, out)
    }
}

/// All documents that were removed as duplicates of a document in an index.
pub(crate) struct DroppedDocuments {
    keys: DocumentKeys,
    known: Option<KnownKeys>,
    places: DocumentPlaces,
    /// For each document, the table columns after its key.
    columns: DocumentKeys,
    budget: MemoryBudget,
}

impl DroppedDocuments {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let (keys, columns) = (DocumentKeys::new(budget), DocumentKeys::new(budget));
        Self { keys, known: None, places: DocumentPlaces::new(budget), columns, budget: budget.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn place_of(&self, key: &[u8]) -> Option<Place> {
        let found = self.known.as_ref().and_then(|known| known.find(&self.keys, key));
        found.map(|number| self.places.get(number))
    }

    pub(crate) fn place(&self, number: u32) -> Place {
        self.places.get(number)
    }

    pub(crate) fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }

    /// Returns, for removed document `number`, the key of the near document in the index, and the score as text.
    pub(crate) fn near(&self, number: u32) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
        let mut columns = self.columns.get(number).split(|&byte| byte == b'\t');
        let key = tsv::unescape(columns.next().unwrap_or_default())?.into_owned();
        Ok((key, columns.next().unwrap_or_default().to_vec()))
    }

    /// Adds a removed document, whose key must be new.
    pub(crate) fn push(&mut self, key: &[u8], place: &Place, dropped: &Dropped) -> anyhow::Result<()> {
        let number = u32::try_from(self.len()).context("more than 2^32 documents")?;
        let known = match &mut self.known {
            Some(known) => known,
            none => none.insert(KnownKeys::new(&self.budget)?),
        };
        known.insert(key, number)?;
        self.keys.push(key)?;
        self.places.push(place)?;
        let mut columns = Vec::new();
        dropped.write(&mut columns)?;
        Ok(self.columns.push(&columns)?)
    }

    /// Returns the indices of the documents in ascending order of their keys. Uses about `memory` bytes.
    pub(crate) fn sorted(&self, memory: usize) -> twindex::Result<Column<u32>> {
        self.keys.sorted(0..self.len() as u32, &self.budget, memory)
    }

    /// Writes the table line of a document.
    pub(crate) fn write(&self, number: u32, out: &mut impl Write) -> std::io::Result<()> {
        tsv::write_field(out, self.keys.get(number))?;
        out.write_all(b"\t")?;
        out.write_all(self.columns.get(number))?;
        out.write_all(b"\n")
    }
}

/// The documents of a run.
pub(crate) struct Corpus {
    /// Number of documents of the history. These documents precede all others, are always kept, and are not written.
    pub(crate) history: u32,
    /// Number of groups with documents of the history. These groups precede all others.
    pub(crate) history_groups: u32,
    pub(crate) keys: DocumentKeys,
    places: DocumentPlaces,
    /// For each document, whether its key differs from the key in its line, for example by an added number.
    other_keys: OtherKeys,
    /// For each document after the history, the numbers that `--keep` compares.
    pub(crate) values: KeepValues,
    /// For each document, the length of its text in bytes.
    text_bytes: Column<u32>,
    /// The URL of each document, empty if it has none; `None` if the job names no field with URLs.
    urls: Option<DocumentKeys>,
    /// The groups of documents with equal texts.
    pub(crate) grouped: Grouped,
    /// The line of each document, as it is written to a file of kept documents.
    pub(crate) lines: LineStore,
    /// The first document of each run of documents of one part of the inputs, and the part, in the order of addition.
    runs: Vec<(u32, u32)>,
    /// Documents that were taken for copies because their hashes are equal, each after the first document of its group,
    /// until [`end`](Self::end) compares them; `None` if they are compared when they are added.
    unproven: Option<Column<[u32; 2]>>,
    /// Finds a document after the history by its key; `None` if no more keys are looked up.
    by_key: Option<KnownKeys>,
    /// For each text without words after the history, its first document and its hash; `None` if no index lists them.
    pub(crate) wordless: Option<(Column<u32>, Column<u128>)>,
    /// The fingerprint of each group; `None` unless documents are fingerprints that may have more than 64 bits.
    pub(crate) codes: Option<GroupCodes>,
    /// Documents that were removed because they are near a document of an index.
    pub(crate) dropped: DroppedDocuments,
    /// Sum of the lengths of the texts of the documents in `dropped`, in bytes.
    pub(crate) dropped_text_bytes: u64,
    /// Parses stored lines again when their texts are needed.
    pub(crate) parser: Parser,
    /// For each history whose texts are read, its first document and the parser of its lines.
    history_parsers: Vec<(u32, Parser)>,
    /// Some of the documents in `dropped`; `None` if there is no history.
    sample: Option<DroppedSample>,
    /// The lines of the documents in `dropped`; `None` if they are not written.
    dropped_lines: Option<DroppedLines>,
}

/// The lines of the documents in [`DroppedDocuments`], and their positions in the input order.
struct DroppedLines {
    lines: LineStore,
    other_keys: OtherKeys,
    /// For each removed document, the number of stored documents that precede it in the input.
    before: Column<u32>,
}

impl Corpus {
    /// Creates an empty corpus. Up to `memory` bytes of document data and up to `memory` bytes of sets are held in
    /// memory, the rest in scratch files in `folder`. `sets` overrides the path of the scratch file of the sets.
    pub(crate) fn new(
        (folder, sets): (&Path, Option<&Path>),
        memory: usize,
        (parser, keep): (Parser, &KeepOrder),
    ) -> anyhow::Result<Self> {
        let budget = &MemoryBudget::new(folder, memory);
        let mut grouped = Grouped::new(budget, memory)?;
        if let Some(path) = sets {
            grouped.sets = grouped.sets.with_file(path);
        }
        Ok(Self {
            history: 0,
            history_groups: 0,
            keys: DocumentKeys::new(budget),
            places: DocumentPlaces::new(budget),
            other_keys: OtherKeys::new(budget),
            values: KeepValues::new(keep, budget),
            text_bytes: Column::new(budget),
            urls: parser.reads_urls().then(|| DocumentKeys::new(budget)),
            grouped,
            lines: LineStore::new(folder, budget)?,
            runs: Vec::new(),
            unproven: None,
            by_key: Some(KnownKeys::new(budget)?),
            wordless: None,
            codes: None,
            dropped: DroppedDocuments::new(budget),
            dropped_text_bytes: 0,
            parser,
            history_parsers: Vec::new(),
            sample: None,
            dropped_lines: None,
        })
    }

    /// Also stores the lines of documents in [`DroppedDocuments`], so that annotated files can include them.
    pub(crate) fn with_lines_of_dropped(mut self, folder: &Path) -> anyhow::Result<Self> {
        let budget = &self.grouped.budget;
        self.dropped_lines = Some(DroppedLines {
            lines: LineStore::new(folder, budget)?,
            other_keys: OtherKeys::new(budget),
            before: Column::new(budget),
        });
        Ok(self)
    }

    /// Also draws some of the documents in [`DroppedDocuments`], whose lines it stores in `folder`.
    pub(crate) fn with_sample_of_dropped(mut self, folder: &Path) -> anyhow::Result<Self> {
        self.sample = Some(DroppedSample::new(folder, &self.grouped.budget, &self.lines)?);
        Ok(self)
    }

    /// Compares texts with equal hashes after all documents were added, on all threads. If two differ, the documents must
    /// be added again to another corpus.
    pub(crate) fn compared_at_the_end(mut self) -> Self {
        self.unproven = Some(Column::new(&self.grouped.budget));
        self
    }

    /// Disables lookups by key, for callers whose keys are distinct and who look up none.
    pub(crate) fn without_lookup_by_key(mut self) -> Self {
        self.by_key = None;
        self
    }

    /// Begins the next history; `parser` parses its lines.
    pub(crate) fn begin_history(&mut self, parser: Parser) {
        self.history_parsers.push((self.history, parser));
    }

    /// Adds a document of a history. All documents of the history must be added before the others. Their keys may
    /// repeat. Returns whether the text of the document is new.
    pub(crate) fn add_history(&mut self, one: &Sketched, set: NewSet<'_>) -> anyhow::Result<bool> {
        let is_new = self.push(one, set, true)?;
        self.history = self.keys.len() as u32;
        self.history_groups = self.grouped.groups.len() as u32;
        Ok(is_new)
    }

    /// Adds a document. Returns whether its text is new.
    pub(crate) fn add(&mut self, one: &Sketched, set: NewSet<'_>) -> anyhow::Result<bool> {
        let document = u32::try_from(self.keys.len()).map_err(|_| anyhow!("more than 2^32 documents"))?;
        let key = one.key.as_slice();
        self.check_is_new(one)?;
        if let Some(known) = &mut self.by_key {
            known.insert(key, document)?;
        }
        let is_new = self.push(one, set, false)?;
        if let Some((firsts, hashes)) = &mut self.wordless
            && is_new
            && one.sketch.is_empty()
        {
            firsts.push(document)?;
            hashes.push(one.whole.hash)?;
        }
        let tokens = self.grouped.group(document).tokens; // a copy may not be sketched
        self.values.push(tokens, &one.key, &one.attached.deciding().numbers)?;
        Ok(is_new)
    }

    /// Returns an error if a document after the history already has this key.
    fn check_is_new(&self, one: &Sketched) -> anyhow::Result<()> {
        let key = one.key.as_slice();
        let first = self.document_at(key).map(|document| self.places.get(document));
        match first.or_else(|| self.dropped.place_of(key)) {
            None => Ok(()),
            Some(first) => Err(repeated(one, &first)),
        }
    }

    fn push(&mut self, one: &Sketched, set: NewSet<'_>, is_history: bool) -> anyhow::Result<bool> {
        let document = self.keys.len() as u32;
        if self.runs.last().is_none_or(|&(_, part)| part != one.part) {
            self.runs.push((document, one.part));
        }
        self.keys.push(&one.key)?;
        self.places.push(&one.place)?;
        // The line of a text has at most 2^32 bytes.
        self.text_bytes.push(u32::try_from(one.text_bytes).unwrap_or(u32::MAX))?;
        if let Some(urls) = &mut self.urls {
            urls.push(&one.attached.deciding().url)?;
        }
        self.other_keys.push(!one.is_own_key)?;
        let whole = &one.whole;
        self.lines
            .push(whole.form, whole.ending, &whole.line)
            .with_context(|| format!("{}: cannot be kept", one.place))?;
        let inside = &one.attached.deciding().inside;
        // The parser of the other documents does not read the lines of a history.
        let is_read_again = !is_history && !one.sketch.is_empty() && whole.form != Form::Html;
        let (hash, tokens, sketch, copy_of) = (whole.hash, one.tokens, &one.sketch, one.copy_of);
        // Texts with equal hashes are parsed again from their stored lines and compared.
        let Self { keys, grouped, lines, places, parser, history, history_parsers, unproven, .. } = self;
        let line = is_read_again.then(|| lines.text_line(document as usize));
        let new = NewDocument { hash, tokens, inside, copy_of, line, sketch, set };
        let parser =
            |document: u32| parser_of(parser, history_parsers, is_history || document < *history, document);
        let identity = |document: u32| -> anyhow::Result<_> {
            let line = found(|| places.get(document), lines.get(document as usize))?;
            identity_of(parser(document), (lines.form(document as usize), &line), keys.get(document))
        };
        let groups = grouped.groups.len();
        grouped.add(new, |first| -> anyhow::Result<bool> {
            match unproven {
                Some(unproven) => Ok(unproven.push([first, document]).map(|()| true)?),
                None => Ok(identity(first)? == identity(document)?),
            }
        })?;
        let is_new = grouped.groups.len() > groups;
        if let (true, Some(codes), Some(code)) = (is_new, &mut self.codes, one.code) {
            codes.push(groups as u32, code)?;
        }
        Ok(is_new)
    }

    /// Returns the fingerprint of a group of documents; `None` if they have none.
    pub(crate) fn code_of(&self, group: u32) -> Option<Code> {
        self.codes.as_ref()?.of_group(group)
    }

    /// Records a document that is removed as a duplicate of a document in an index.
    pub(crate) fn drop_near(&mut self, one: &Sketched, dropped: &Dropped) -> anyhow::Result<()> {
        self.check_is_new(one)?;
        let others = self.keys.len();
        if let Some(DroppedLines { lines, other_keys, before }) = &mut self.dropped_lines {
            ensure!(others + self.dropped.len() < u32::MAX as usize, "more than 2^32 documents");
            let whole = &one.whole;
            lines
                .push(whole.form, whole.ending, &whole.line)
                .with_context(|| format!("{}: cannot be kept", one.place))?;
            other_keys.push(!one.is_own_key)?;
            before.push(others as u32)?;
        }
        if let Some(sample) = &mut self.sample {
            let (whole, document) = (&one.whole, (self.dropped.len() as u32, &one.key[..]));
            sample
                .add(document, (&dropped.other, dropped.near), (whole.form, whole.ending, &whole.line))
                .with_context(|| format!("{}: cannot be kept", one.place))?;
        }
        self.dropped_text_bytes += one.text_bytes;
        self.dropped.push(&one.key, &one.place, dropped)
    }

    /// Returns all documents after the history in input order. Includes the documents in `dropped` if their lines are
    /// stored; these have numbers after all other documents, see [`dropped_at`](Self::dropped_at).
    pub(crate) fn all_documents(&self) -> impl Iterator<Item = u32> + Send {
        let before = self.dropped_lines.as_ref().map_or(&[][..], |dropped| &dropped.before[..]);
        let all = self.keys.len() as u32;
        let (mut next, mut dropped) = (self.history, 0);
        std::iter::from_fn(move || {
            if before.get(dropped).is_some_and(|&before| before <= next) {
                dropped += 1;
                return Some(all + dropped as u32 - 1);
            }
            next += 1;
            (next <= all).then(|| next - 1)
        })
    }

    /// Returns the index of a document in `dropped`; `None` for a document that is not in `dropped`.
    pub(crate) fn dropped_at(&self, document: u32) -> Option<u32> {
        document.checked_sub(self.keys.len() as u32)
    }

    /// Returns the URL of a document: the value of the URL field or, if no field has URLs, its key.
    pub(crate) fn url(&self, document: u32) -> &[u8] {
        self.urls.as_ref().unwrap_or(&self.keys).get(document)
    }

    pub(crate) fn has_urls(&self) -> bool {
        self.urls.is_some()
    }

    /// Adds the lines of these documents to a block.
    pub(crate) fn fill(
        &self,
        block: &mut KeptBlock,
        documents: &[u32],
        reading: &mut LineReader<'_>,
        annotation: Option<Annotation<'_>>,
    ) -> anyhow::Result<()> {
        let mut held;
        for &document in documents {
            let place = || match self.dropped_at(document) {
                Some(dropped) => self.dropped.place(dropped),
                None => self.places.get(document),
            };
            let removed = self.dropped_at(document).zip(self.dropped_lines.as_ref());
            let (line, key, form, ending) = if let Some((dropped, removed)) = removed {
                let DroppedLines { lines, other_keys, .. } = removed;
                let number = dropped as usize;
                held = found(place, lines.get(number))?;
                let key = other_keys.has(dropped).then(|| self.dropped.key(dropped));
                (&held[..], key, lines.form(number), lines.ending(number))
            } else {
                let line = found(place, reading.get(document as usize))?;
                let key = self.other_keys.has(document).then(|| self.keys.get(document));
                (line, key, self.form(document), self.lines.ending(document as usize))
            };
            let annotated = annotation.map(|annotation| {
                self.parser.annotated(annotation.noted, form, line, &(annotation.of)(document))
            });
            let annotated = annotated.transpose();
            let annotated = annotated.map_err(|why| anyhow!("{}: {why}", place()))?;
            block.push(document, form, annotated.as_deref().unwrap_or(line), ending, key);
        }
        Ok(())
    }

    /// Returns the length of the stored line of a document in bytes.
    pub(crate) fn line_length(&self, document: u32) -> usize {
        let removed = self.dropped_at(document).zip(self.dropped_lines.as_ref());
        match removed {
            Some((dropped, removed)) => removed.lines.length(dropped as usize),
            None => self.lines.length(document as usize),
        }
    }

    pub(crate) fn line(&self, document: u32) -> anyhow::Result<Vec<u8>> {
        found(|| self.places.get(document), self.lines.get(document as usize))
    }

    /// Returns the text of a document that `reading` reads again; of a document of features, their names.
    pub(crate) fn text(&self, document: u32, reading: &mut LineReader<'_>) -> anyhow::Result<String> {
        let line = found(|| self.places.get(document), reading.get(document as usize))?;
        let parser = parser_of(&self.parser, &self.history_parsers, document < self.history, document);
        parser.text_of_line(self.form(document), line)
    }

    /// Returns some of the documents in `dropped`, in input order.
    pub(crate) fn drawn_dropped(&self) -> Vec<&DrawnDropped> {
        self.sample.as_ref().map_or_else(Vec::new, DroppedSample::drawn)
    }

    /// Returns the text of a document that [`drawn_dropped`](Self::drawn_dropped) returned.
    pub(crate) fn text_of_dropped(&self, one: &DrawnDropped) -> anyhow::Result<String> {
        let sample = self.sample.as_ref().context("no document was drawn")?;
        let (form, line) = found(|| self.dropped.place(one.number), sample.line(one))?;
        self.parser.text_of_line(form, &line)
    }

    /// Returns the length of the text of a document in bytes.
    pub(crate) fn text_bytes(&self, document: u32) -> u64 {
        self.text_bytes[document as usize].into()
    }

    /// Returns the input file of a document; `None` if the whole file is the document.
    pub(crate) fn file_of_record(&self, document: u32) -> Option<&Arc<Path>> {
        self.places.file_of_record(document)
    }

    /// Returns a reader of lines that is fast if lines are read mostly in order.
    pub(crate) fn reading(&self) -> LineReader<'_> {
        self.lines.reading()
    }

    /// Returns whether any document is an HTML page. The stored line of a page is its markup, not the compared text.
    pub(crate) fn has_pages(&self) -> bool {
        self.documents().any(|document| matches!(self.form(document), Form::Html))
    }

    /// Returns the form of a document's stored line, such as JSON or HTML.
    pub(crate) fn form(&self, document: u32) -> Form {
        self.lines.form(document as usize)
    }

    /// Returns the documents after the history, in input order.
    pub(crate) fn documents(&self) -> Range<u32> {
        self.history..self.keys.len() as u32
    }

    /// Returns the document after the history that has this key.
    fn document_at(&self, key: &[u8]) -> Option<u32> {
        self.by_key.as_ref().and_then(|known| known.find(&self.keys, key))
    }

    /// Returns the name of the rule that decides which of two documents comes first. With containment, `by_size`, the
    /// larger one does.
    pub(crate) fn decided(&self, by_size: bool, a: u32, b: u32) -> String {
        let shingles = |document| self.grouped.group(document).shingles;
        if by_size && shingles(a) != shingles(b) {
            return SIZE.to_owned();
        }
        self.values.decided(a - self.history, b - self.history).to_string()
    }

    /// Frees the lookup structures after all documents were added, and numbers the documents in input order if those of
    /// several inputs were added in turn.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.by_key = None;
        self.grouped.end()?;
        self.prove_copies()?;
        let runs = std::mem::take(&mut self.runs);
        if runs.is_sorted_by_key(|&(_, part)| part) {
            return Ok(());
        }
        let ends = runs[1..].iter().map(|&(first, _)| first).chain([self.keys.len() as u32]);
        let mut runs: Vec<(u32, Range<u32>)> =
            runs.iter().zip(ends).map(|(&(first, part), end)| (part, first..end)).collect();
        runs.sort_by_key(|&(part, _)| part);
        let runs: Vec<Range<u32>> = runs.into_iter().map(|(_, run)| run).collect();
        self.keys.arrange(&runs)?;
        self.places.arrange(&runs)?;
        self.other_keys.arrange(&runs)?;
        self.values.arrange(&runs)?;
        arrange(&mut self.text_bytes, &runs)?;
        self.urls.as_mut().map_or(Ok(()), |urls| urls.arrange(&runs))?;
        self.lines.arrange(&runs)?;
        Ok(self.grouped.arrange(&runs)?)
    }

    /// Compares the texts that were taken for copies.
    fn prove_copies(&mut self) -> anyhow::Result<()> {
        let Some(unproven) = self.unproven.take() else { return Ok(()) };
        let readers = || [self.reading(), self.reading()];
        unproven.par_chunks(COMPARED).try_for_each_init(readers, |readers, pairs| {
            pairs.iter().try_for_each(|&pair| {
                let identities: Vec<Vec<u8>> = pair
                    .into_iter()
                    .zip(&mut *readers)
                    .map(|(document, reading)| {
                        let line = found(|| self.places.get(document), reading.get(document as usize))?;
                        identity_of(&self.parser, (self.form(document), line), self.keys.get(document))
                    })
                    .collect::<anyhow::Result<_>>()?;
                ensure!(identities[0] == identities[1], "two texts have the same hash");
                Ok(())
            })
        })
    }

    /// Adds numbers to the keys that were repeated, after [`end`](Self::end), and counts them.
    pub(crate) fn number_repeated(
        &mut self,
        keys: SeenKeys,
        documents: &mut Documents,
    ) -> anyhow::Result<()> {
        let Some(mut numbers) = keys.late_numbers(&self.grouped.budget)? else { return Ok(()) };
        let (before, others) = (self.keys.take(), self.other_keys.take());
        let mut key = Vec::new();
        for document in 0..before.len() as u32 {
            let own = before.get(document);
            key.clear();
            key.extend_from_slice(own);
            let is_numbered = numbers.next(&mut key)?;
            self.keys.push(&key)?;
            self.other_keys.push(is_numbered || others.has(document))?;
            if is_numbered {
                let place = self.places.get(document);
                check_key(&key).map_err(|reason| bad_at(&place, &reason))?;
                documents.repeated(&place, own, Some(&key), 0);
            }
        }
        Ok(())
    }

    /// Returns the documents after the history in ascending order of their keys. Uses about `memory` bytes.
    pub(crate) fn by_key(&self, memory: usize) -> twindex::Result<ByKey> {
        ByKey::of(&self.keys, self.documents(), &self.grouped.budget, memory)
    }

    /// Returns the documents of the history in ascending order of their keys. Uses about `memory` bytes.
    pub(crate) fn history_by_key(&self, memory: usize) -> twindex::Result<ByKey> {
        ByKey::of(&self.keys, 0..self.history, &self.grouped.budget, memory)
    }
}

/// Number of pairs of texts that a thread compares at once.
const COMPARED: usize = 256;

/// The name of the rule of containment: the larger document comes first.
pub(crate) const SIZE: &str = "size";

/// A bit for each document: whether its key differs from the key in its line.
struct OtherKeys {
    bits: Column<u64>,
    documents: u32,
}

impl OtherKeys {
    fn new(budget: &MemoryBudget) -> Self {
        Self { bits: Column::new(budget), documents: 0 }
    }

    fn push(&mut self, is_other: bool) -> twindex::Result<()> {
        let (word, bit) = (self.documents / 64, self.documents % 64);
        if bit == 0 {
            self.bits.push(0)?;
        }
        self.bits[word as usize] |= u64::from(is_other) << bit;
        self.documents += 1;
        Ok(())
    }

    /// Moves all documents to a new list.
    fn take(&mut self) -> Self {
        Self { bits: self.bits.take(), documents: std::mem::take(&mut self.documents) }
    }

    fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        let before = self.take();
        runs.iter().cloned().flatten().try_for_each(|document| self.push(before.has(document)))
    }

    fn has(&self, document: u32) -> bool {
        self.bits[document as usize / 64] >> (document % 64) & 1 == 1
    }
}

/// Returns the bytes by which the document of a line is compared for equality.
fn identity_of(parser: &Parser, (form, line): (Form, &[u8]), key: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut identity = parser.identity_of_line(form, line)?;
    if identity == ABSENT {
        identity.extend_from_slice(without_numbers(key));
    }
    Ok(identity)
}

/// Returns the parser of the lines of a document.
fn parser_of<'p>(
    parser: &'p Parser,
    history_parsers: &'p [(u32, Parser)],
    is_history: bool,
    document: u32,
) -> &'p Parser {
    let of = history_parsers.iter().rev().find(|(first, _)| *first <= document);
    of.filter(|_| is_history).map_or(parser, |(_, parser)| parser)
}

/// Unwraps a line that was read. The error for a missing line or an I/O error names the position of the document.
fn found<L>(place: impl Fn() -> Place, line: io::Result<Option<L>>) -> anyhow::Result<L> {
    match line {
        Ok(Some(line)) => Ok(line),
        Ok(None) => {
            bail!("{}: changed since it was read; run again when nothing writes to the input", place())
        }
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read again", place())),
    }
}

/// Returns the error for a document whose key the document at `first` already has.
fn repeated(one: &Sketched, first: &Place) -> anyhow::Error {
    let (key, again) = (one.key.as_slice(), &one.place);
    let advice = if first.is_below_a_folder(key) && again.is_below_a_folder(key) {
        "keys are paths below the folder that is named; name the folder above them instead"
    } else {
        "give each document a key of its own"
    };
    let key = String::from_utf8_lossy(key);
    anyhow!("{again}: the key `{}` is already at {first}; {advice}", key.escape_debug())
}
