//! Reads the inputs, determines the order of documents, and stores data about documents between the passes.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use twindex::sys::{Column, MemoryBudget};
use twindex_join::Sorter;
use xxhash_rust::xxh3::xxh3_64;

use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::documents::Documents;
use crate::input::fields::deciding::DecidingNumber;
use crate::input::fields::keep::{Keep, KeepOrder};
use crate::input::parser::Parser;
use crate::input::place::Place;
use crate::passages::find::filter::Recurring;
use crate::passages::find::finder::{FinderScratch, Gram};
use crate::passages::find::hashed::Hashed;
use crate::passages::find::lines::Grams;
use crate::passages::index::build::{Builder, Extract};
use crate::passages::index::folder::PassageIndex;
use crate::passages::options::{CutSettings, Passages, Unit};
use crate::passages::texts::Hashing;
use crate::rule::repeated::{KeyDecision, RepeatedKeys, SeenKeys};
use crate::sketching::chunks::{Job, for_each_chunk, for_each_chunk_counted};
use crate::sketching::documents::{SketchOptions, announce};
use crate::stored::keys::{ByKey, DocumentKeys};
use crate::stored::order::KeepValues;
use crate::work::observer::Observer;

/// The order of documents: `documents` lists them by rank, `ranks` has the rank of each document.
pub(crate) struct Order {
    documents: Column<u32>,
    ranks: Column<u32>,
}

impl Order {
    /// Sorts the documents of `keys` with an external sort in about `memory` bytes. Returns `None` for the input order.
    pub(crate) fn of(
        values: &KeepValues,
        keys: &DocumentKeys,
        folder: &Path,
        budget: &MemoryBudget,
        memory: usize,
    ) -> twindex::Result<Option<Self>> {
        let keep = values.sorted(budget, memory)?;
        if keep.order().single() == Some(&Keep::First) {
            return Ok(None);
        }
        let count = keys.len() as u32;
        let by_key =
            (!keep.order().is_by_place()).then(|| ByKey::of(keys, 0..count, budget, memory)).transpose()?;
        let mut sorter: Sorter<[u64; 4]> = Sorter::new(folder, memory);
        for document in 0..count {
            let choice = keep.choice(document);
            let place = keep.place(document, by_key.as_ref());
            sorter.push([(choice >> 64) as u64, choice as u64, place.into(), document.into()])?;
        }
        let mut ranks = Column::filled(budget, keys.len(), 0)?;
        let mut documents = Column::new(budget);
        sorter.finish()?.for_each(|[.., document]: [u64; 4]| {
            ranks[document as usize] = documents.len() as u32;
            documents.push(document as u32)
        })?;
        Ok(Some(Self { documents, ranks }))
    }

    pub(crate) fn rank(&self, document: u32) -> u32 {
        self.ranks[document as usize]
    }

    pub(crate) fn document(&self, rank: u32) -> u32 {
        self.documents[rank as usize]
    }
}

/// Bytes of memory per byte of a text, for the units, fingerprints and t-grams of the text.
const BYTES_FOR_BYTE: usize = 12;
/// A text that needs at most this number of bytes of memory is accepted even if the memory budget is smaller.
const ALWAYS: usize = 64 << 20;

/// The data about documents that is stored between passes: their keys, and about 30 bytes per document. Data that
/// exceeds the memory budget is in scratch files.
pub(crate) struct PassageCorpus<'h> {
    keys: DocumentKeys,
    values: KeepValues,
    /// The hash of each record's text, with the lowest bit replaced: 1 if the record is used as a document.
    records: Column<u64>,
    /// Number of units in all documents.
    units: u64,
    /// The start of each document's first unit (upper 32 bits) and the end of its last unit (lower 32 bits).
    extents: Column<u64>,
    /// The repeated byte ranges, sorted: a document, and the start (upper 32 bits) and end (lower 32 bits) of the
    /// range.
    covered: Column<[u64; 2]>,
    budget: MemoryBudget,
    /// The index of `--against`. Its documents precede those of the inputs and have the lowest ids.
    history: Option<&'h PassageIndex>,
}

/// Caches the byte ranges of the units of the history document that was requested last.
#[derive(Default)]
pub(crate) struct KnownPlaces {
    document: Option<u32>,
    places: Vec<(u32, u32)>,
}

/// The data of a record that the first pass collects.
struct FirstReading {
    key: Vec<u8>,
    place: Place,
    hash: u64,
    extent: u64,
    text_bytes: u64,
    units: u64,
    /// Number of words, and the numbers that determine the order of documents.
    tokens: u64,
    numbers: Vec<DecidingNumber>,
}

/// The t-grams of the records in a chunk.
#[derive(Default)]
struct PassageGrams {
    /// The t-grams, each with its source if the source is in the history.
    grams: Vec<(Gram, Option<(u32, u32)>)>,
    /// The hash of each text, and the end of the text's t-grams in `grams`.
    records: Vec<(u64, usize)>,
    /// The data of each record for an index; empty if no index is written.
    extracts: Vec<Extract>,
}

impl<'h> PassageCorpus<'h> {
    pub(crate) fn new(
        folder: &Path,
        memory: usize,
        keep: &KeepOrder,
        history: Option<&'h PassageIndex>,
    ) -> Self {
        let budget = MemoryBudget::new(folder, memory);
        Self {
            history,
            keys: DocumentKeys::new(&budget),
            values: KeepValues::new(keep, &budget),
            records: Column::new(&budget),
            units: 0,
            extents: Column::new(&budget),
            covered: Column::new(&budget),
            budget,
        }
    }

    /// Returns the number of documents in the history.
    pub(crate) fn before(&self) -> u32 {
        self.history.map_or(0, PassageIndex::documents)
    }

    pub(crate) fn history(&self) -> Option<&'h PassageIndex> {
        self.history
    }

    /// Returns the key of a document that was read from the inputs.
    pub(crate) fn key(&self, document: u32) -> &[u8] {
        self.keys.get(document)
    }

    /// Returns the number of units in all documents that were read.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    /// Returns the order of the documents that were read; `None` if it is the input order.
    pub(crate) fn order(&self, folder: &Path, memory: usize) -> twindex::Result<Option<Order>> {
        Order::of(&self.values, &self.keys, folder, &self.budget, memory)
    }

    /// Returns the key of the document that contains a source, and the start of the source in its text: `own_start`, if the
    /// document is one of the inputs.
    pub(crate) fn source(
        &self,
        (document, position): (u32, u32),
        own_start: u32,
        known: &mut KnownPlaces,
    ) -> anyhow::Result<(&[u8], u32)> {
        match (document.checked_sub(self.before()), self.history) {
            (Some(own), _) => Ok((self.key(own), own_start)),
            (None, Some(history)) => {
                if known.document != Some(document) {
                    *known = KnownPlaces { document: Some(document), places: history.places(document)? };
                }
                let place = known.places.get(position as usize).context("a unit that is not there")?;
                Ok((history.key(document)?, place.0))
            }
            (None, None) => bail!("document {document} is not there"),
        }
    }

    /// Returns the start of the first unit of a document and the end of its last unit.
    pub(crate) fn extent(&self, document: u32) -> (u32, u32) {
        let extent = self.extents[document as usize];
        ((extent >> 32) as u32, extent as u32)
    }

    /// Records a byte range of a document as repeated.
    pub(crate) fn cover(&mut self, document: u32, place: Range<u32>) -> twindex::Result<()> {
        self.covered.push([document.into(), u64::from(place.start) << 32 | u64::from(place.end)])
    }

    fn documents(&self) -> usize {
        self.keys.len()
    }

    /// The first pass: reads the keys and counts selected fingerprints.
    pub(crate) fn count(
        &mut self,
        passages: &Passages,
        how: &CutSettings,
        documents: &mut Documents,
        recurring: &Recurring,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        let progress = observer.begin("counting", documents.total_bytes());
        let repeated = passages.repeated_keys;
        let mut seen = SeenKeys::new(repeated, &self.budget)?;
        if repeated == RepeatedKeys::Last {
            announce(documents, &mut seen, &SketchOptions::default(), &*progress)?;
        }
        let memory = passages.memory;
        let job = Job {
            state: || (Hashing::new(how), Hashed::default(), FinderScratch::new(how.shape, how.hasher)),
            begin: Vec::new,
            work: |state: &mut (Hashing<'_>, Hashed, FinderScratch),
                   made: &mut Vec<FirstReading>,
                   parser: &Parser,
                   record: Record<'_>| {
                let (hashing, hashed, work) = state;
                let text = text_of(&record);
                let numbers = check(&record, text, parser, memory)?;
                hashing.hash(text, hashed);
                work.count(hashed, recurring, passages.within);
                let extent = if hashed.is_empty() { 0..0 } else { hashed.place(0, hashed.len()) };
                made.push(FirstReading {
                    tokens: hashed.words_of_all().into(),
                    units: hashed.len() as u64,
                    numbers,
                    key: record.key.to_vec(),
                    place: record.place(),
                    hash: xxh3_64(text.as_bytes()),
                    extent: u64::from(extent.start) << 32 | u64::from(extent.end),
                    text_bytes: record.content.bytes() as u64,
                });
                Ok(())
            },
        };
        for_each_chunk_counted(documents, &*progress, &job, |made, documents| {
            for mut first in made {
                let is_taken = self.take(&mut first, repeated, &mut seen, documents)?;
                self.records.push(first.hash & !1 | u64::from(is_taken))?;
            }
            Ok(())
        })
    }

    /// Decides by its key whether a record is used as a document. If so, stores its data. Returns whether it is used.
    fn take(
        &mut self,
        first: &mut FirstReading,
        repeated: RepeatedKeys,
        seen: &mut SeenKeys,
        documents: &mut Documents,
    ) -> anyhow::Result<bool> {
        let length = first.key.len();
        match seen.next(&mut first.key)? {
            KeyDecision::Taken => {}
            KeyDecision::Numbered => {
                if let Err(reason) = crate::input::place::check_key(&first.key) {
                    documents.refuse(crate::input::place::bad_at(&first.place, &reason), first.text_bytes)?;
                    return Ok(false);
                }
                documents.repeated(&first.place, &first.key[..length], Some(&first.key), 0);
            }
            KeyDecision::PassedOver => {
                documents.repeated(&first.place, &first.key, None, first.text_bytes);
                return Ok(false);
            }
            KeyDecision::Refused => {
                let key = String::from_utf8_lossy(&first.key);
                return Err(anyhow!(
                    "{}: the key `{}` came before; --repeated-keys number, first or last takes it all the same",
                    first.place,
                    key.escape_debug()
                ));
            }
        }
        debug_assert!(repeated != RepeatedKeys::Any, "keys name the documents of spans");
        u32::try_from(self.documents()).context("more than 2^32 documents")?;
        self.keys.push(&first.key)?;
        self.values.push(first.tokens, &first.key, &first.numbers)?;
        self.extents.push(first.extent)?;
        self.units += first.units;
        Ok(true)
    }

    /// The second pass: collects the t-grams that may occur more than once.
    pub(crate) fn collect(
        &self,
        passages: &Passages,
        how: &CutSettings,
        documents: &Documents,
        (recurring, order): (&Recurring, Option<&Order>),
        folder: &Path,
        observer: &dyn Observer,
    ) -> anyhow::Result<(Grams, Option<Builder>)> {
        let mut documents = again(documents, passages)?;
        let progress = observer.begin("collecting", documents.total_bytes());
        let memory = passages.memory / 4;
        let mut grams = match how.unit {
            Unit::Words => Grams::of_words(folder, memory, how.shape.width()),
            _ => Grams::of_units(folder, memory),
        };
        let memory = passages.memory / 8;
        let mut builder = match &passages.index {
            Some(_) => Some(Builder::new(folder, memory, how.shape, how.seed)?),
            None => None,
        };
        let job = Job {
            state: || (Hashing::new(how), Hashed::default(), FinderScratch::new(how.shape, how.hasher)),
            begin: PassageGrams::default,
            work: |state: &mut (Hashing<'_>, Hashed, FinderScratch),
                   made: &mut PassageGrams,
                   parser: &Parser,
                   record: Record<'_>| {
                let (hashing, hashed, work) = state;
                let text = text_of(&record);
                check(&record, text, parser, passages.memory)?;
                hashing.hash(text, hashed);
                match self.history {
                    None => {
                        work.for_each_recurring(hashed, recurring, |gram| made.grams.push((gram, None)));
                    }
                    Some(history) => {
                        let wanted = |fingerprint| recurring.recurs(fingerprint);
                        let push = |gram, source| made.grams.push((gram, source));
                        history.for_each_sourced(hashed, work, wanted, push)?;
                    }
                }
                if passages.index.is_some() {
                    made.extracts.push(Extract::of(hashed, work));
                }
                made.records.push((xxh3_64(text.as_bytes()), made.grams.len()));
                Ok(())
            },
        };
        let before = self.before();
        let in_all = u64::from(before) + self.documents() as u64;
        ensure!(u32::try_from(in_all).is_ok(), "more than 2^32 documents with the index");
        let (mut record, mut document) = (0, 0);
        for_each_chunk(&mut documents, &*progress, &job, |made| {
            let mut start = 0;
            for (number, &(hash, end)) in made.records.iter().enumerate() {
                if self.is_taken(record, hash)? {
                    let whole = before + document;
                    let rank = order.map_or(whole, |order| before + order.rank(document));
                    made.grams[start..end].iter().try_for_each(|(gram, source)| match *source {
                        Some(source) => grams.push_sourced(whole, gram, source),
                        None => grams.push(rank, gram),
                    })?;
                    if let (Some(builder), Some(extract)) = (&mut builder, made.extracts.get(number)) {
                        builder.push(self.key(document), extract)?;
                    }
                    document += 1;
                }
                record += 1;
                start = end;
            }
            Ok(())
        })?;
        self.check_all_there(record)?;
        Ok((grams, builder))
    }

    /// Returns the repeated byte ranges of a document in ascending order, without overlaps.
    pub(crate) fn cuts_of(&self, document: u32) -> Vec<Range<usize>> {
        let first = self.covered.partition_point(|&[other, _]| other < u64::from(document));
        let own = self.covered[first..].iter().take_while(|&&[other, _]| other == u64::from(document));
        own.map(|&[_, place]| (place >> 32) as usize..place as u32 as usize).collect()
    }

    /// Returns whether the first pass accepted record number `record` as a document. `hash` is the hash of the record's
    /// text in this pass.
    ///
    /// # Errors
    ///
    /// The hash differs from the hash in the first pass.
    pub(crate) fn is_taken(&self, record: usize, hash: u64) -> anyhow::Result<bool> {
        match self.records.get(record) {
            Some(&known) if known >> 1 == hash >> 1 => Ok(known & 1 == 1),
            _ => bail!(
                "record {}: changed since it was read; run again when nothing writes to the inputs",
                record + 1
            ),
        }
    }

    pub(crate) fn check_all_there(&self, records: usize) -> anyhow::Result<()> {
        let expected = self.records.len();
        if records == expected {
            return Ok(());
        }
        bail!(
            "the inputs have {records} records, and had {expected} before; run again when nothing writes to them"
        )
    }
}

/// Opens the same inputs again, for the next pass.
pub(crate) fn again(documents: &Documents, passages: &Passages) -> anyhow::Result<Documents> {
    documents.open_second(&passages.inputs, &passages.input_options())
}

/// Returns the text of a record for comparison; the empty text if the record has no text to compare.
pub(crate) fn text_of<'r>(record: &Record<'r>) -> &'r str {
    match record.content {
        Content::Text(text) => text,
        Content::Opaque { .. } | Content::Features(_) | Content::Fingerprint(_) => "",
    }
}

/// Checks a record, with the same result in every pass, and returns the numbers that determine its place in the order
/// of documents. Fails if a number is missing, or if the text needs too much memory.
pub(crate) fn check(
    record: &Record<'_>,
    text: &str,
    parser: &Parser,
    memory: usize,
) -> anyhow::Result<Vec<DecidingNumber>> {
    let taken = text.len().saturating_mul(BYTES_FOR_BYTE);
    if taken > memory.max(ALWAYS) || u32::try_from(text.len()).is_err() {
        let wanted = taken.div_ceil(1 << 20);
        return Err(record.bad(&format!(
            "a text of {} bytes, which takes about {wanted} MiB to be compared: give --memory {wanted}M or more, and no text \
             of 4 GiB",
            text.len()
        )));
    }
    if !parser.fields.attached.deciding.reads_numbers() {
        return Ok(Vec::new());
    }
    Ok(record.attached(parser)?.deciding.numbers)
}
