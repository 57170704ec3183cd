//! Sketches documents on all cores, and returns the results in input order.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow};
use rayon::prelude::*;
use twindex::params::{Family, MinhashWeights, SIMHASH_BITS, Tokens};
use twindex::sketch::{LeftOut, Scratch, Sketch, Sketcher};
use twindex::sys::MemoryBudget;
use twindex::{Error, Fingerprint, Key};
use twindex_join::{DeltaScratch, SortScratch};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::input::batch::{BATCH_BYTES, Batch, Buffers, Record};
use crate::input::content::{Content, Ending, Form};
use crate::input::counts::Forms;
use crate::input::documents::Documents;
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::fingerprint::Code;
use crate::input::parser::Parser;
use crate::input::place::{Place, bad_at, check_key};
use crate::journal::cache::{CachedChunk, ChunkCache, ChunkMemory, StoredChunks, put_end, put_small};
use crate::rule::repeated::{EarlierKeys, KeyDecision, RepeatedKeys, SeenKeys};
use crate::sketching::chunks::{AHEAD, CHUNK_BYTES, Job, chunk_bytes, for_each_chunk, for_each_handed_chunk};
use crate::sketching::known_texts::{KnownTexts, TextReader};
use crate::work::line_blocks::SharedLines;
use crate::work::observer::Progress;
use crate::work::packed_lines::{LineDictionary, LinePacking, PackedLines};
use crate::work::shard::Shard;

/// Sketches one document at a time, with its own working memory.
pub struct Sketching<'s> {
    sketcher: &'s Sketcher,
    scratch: Scratch,
    set: Vec<u64>,
    vector: Vec<(u64, i64)>,
    sorting: SortScratch,
    delta_scratch: DeltaScratch,
    forms: Forms,
    /// Reads earlier texts; `None` until one is read.
    reader: Option<TextReader>,
    packing: LinePacking,
}

/// The data of a document that its sketch does not contain, and working memory for lookups.
pub struct DocumentScratch<'r> {
    /// The shingles in the order of the text.
    pub shingles: &'r [u64],
    /// Working memory of the thread for delta encoding.
    pub delta_scratch: &'r mut DeltaScratch,
    /// Working memory of the thread for [`distinct`](Self::distinct).
    sorting: &'r mut SortScratch,
    set: &'r mut Vec<u64>,
    /// Receives the words to return with the document. Used only if the options do not request its shingles.
    pub words: &'r mut Vec<u64>,
    /// The value of the `--inside` field; empty if there is no such field.
    pub inside: &'r [u8],
    /// Whether the document is a copy of an earlier one and was therefore not sketched.
    pub is_copy: bool,
}

impl DocumentScratch<'_> {
    /// Returns the distinct shingles in ascending order.
    pub fn distinct(&mut self) -> &[u64] {
        self.set.clear();
        self.sorting.append_distinct(self.shingles, self.set);
        self.set
    }
}

impl<'s> Sketching<'s> {
    /// Creates the working memory for this sketcher.
    #[must_use]
    pub fn new(sketcher: &'s Sketcher) -> Self {
        Self {
            sketcher,
            scratch: Scratch::default(),
            set: Vec::new(),
            vector: Vec::new(),
            sorting: SortScratch::default(),
            delta_scratch: DeltaScratch::default(),
            forms: Forms::default(),
            reader: None,
            packing: LinePacking::default(),
        }
    }

    /// Replaces the content of `sketch` with the sketch of a document.
    ///
    /// # Errors
    ///
    /// The sketcher is for features and the content is a text, or the reverse.
    pub fn sketch(&mut self, content: Content<'_>, sketch: &mut Sketch) -> twindex::Result<()> {
        self.count_forms(content);
        let Self { sketcher, scratch, set, vector, .. } = self;
        match content {
            Content::Text(text) => Ok(sketcher.sketch_into(text, scratch, sketch)?),
            // The text, if any, does not represent the document. Its set is therefore a hash of its bytes, so that it is
            // near only to documents with equal bytes.
            Content::Opaque { identity, .. } => {
                match sketcher.params().shingling.tokens {
                    Tokens::Features => sketcher.sketch_features(&[], scratch, sketch)?,
                    _ => sketcher.sketch_into("", scratch, sketch)?,
                }
                sketcher.replace_set(identity, sketch);
                Ok(())
            }
            // An index of fingerprints of any width has no sketches.
            Content::Fingerprint(_) if sketcher.params().simhash.is_none() => {
                Ok(sketcher.sketch_features(&[], scratch, sketch)?)
            }
            Content::Fingerprint(fingerprint) if sketcher.params().simhash_bits > SIMHASH_BITS => {
                Ok(sketcher.sketch_fingerprint(fingerprint, scratch, sketch)?)
            }
            Content::Fingerprint(fingerprint) => {
                // A longer fingerprint is compared itself; its sketch only shows that there is one.
                let first = Fingerprint(fingerprint.words()[0]);
                Ok(sketcher.sketch_fingerprint(first, scratch, sketch)?)
            }
            Content::Features(features) => features.sketch_into(sketcher, (set, vector), scratch, sketch),
        }
    }

    /// Returns whether documents have weights. A weight that is out of range makes sketching fail.
    fn has_weights(&self) -> bool {
        let minhash = self.sketcher.params().minhash;
        minhash.is_some_and(|minhash| {
            minhash.weights != MinhashWeights::Distinct
                && (minhash.unit.is_some() || minhash.family == Family::Darts)
        })
    }

    /// Returns the number of ignored boilerplate words in the document sketched last.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.scratch.left_out()
    }

    /// Returns the number of tokens in the document sketched last, or of its features.
    pub(crate) fn tokens(&self) -> u64 {
        self.scratch.tokens() as u64
    }

    /// Counts the Unicode normalization forms of the accented letters in a text.
    fn count_forms(&mut self, content: Content<'_>) {
        if let Content::Text(text) | Content::Opaque { text, .. } = content {
            self.forms.count(text, &self.sketcher.params().shingling);
        }
    }

    /// Appends the distinct shingles of the document sketched last, in ascending order.
    pub(crate) fn shingles(&mut self, shingles: &mut Vec<u64>) {
        self.sorting.append_distinct(self.scratch.elements(), shingles);
    }

    /// Returns the data of the document sketched last that its sketch does not contain.
    pub(crate) fn rest<'r>(&'r mut self, words: &'r mut Vec<u64>, inside: &'r [u8]) -> DocumentScratch<'r> {
        let Self { scratch, delta_scratch, sorting, set, .. } = self;
        let shingles = scratch.elements();
        DocumentScratch { shingles, delta_scratch, sorting, set, words, inside, is_copy: false }
    }
}

/// Selects the documents to process, and the data to return for each in addition to its sketch.
#[derive(Clone, Debug, Default)]
pub struct SketchOptions {
    /// Whether to return the distinct shingles in ascending order.
    pub shingles: bool,
    /// Whether to return the line of the document and the hash of its content.
    pub whole: bool,
    /// Memory limit in bytes. A text that needs more memory is a bad record.
    pub memory: Option<usize>,
    /// Only documents of this shard are processed. Others are skipped after they are parsed.
    pub shard: Option<Shard>,
    /// The treatment of documents with the same key.
    pub repeated_keys: RepeatedKeys,
    /// The memory budget for data about keys; unlimited if `None`.
    pub budget: Option<MemoryBudget>,
    /// The lines that cannot be read again from their files. New ones are packed for them.
    pub lines: Option<SharedLines>,
    /// The texts that were read before, and whether copies of them are not sketched.
    pub known: Option<(Arc<KnownTexts>, bool)>,
    /// The keys of the documents in the histories of the run. A document with one of these keys counts as a repetition.
    pub earlier: Option<Arc<EarlierKeys>>,
    /// The number of inputs that are read at the same time, if documents may be passed on in the order in which they
    /// arrive, and numbers be added to repeated keys later; 0 or 1 for the order of the inputs.
    pub together: usize,
    /// Whether fingerprints of more than 64 bits are taken, all of the same number of bits. Otherwise, each is a bad
    /// record.
    pub wide: bool,
    /// The number of bits of fingerprints, if it is known; otherwise, that of the first one.
    pub bits: Option<usize>,
}

impl SketchOptions {
    /// Returns whether a document whose text is equal to an earlier one is not sketched.
    fn passes_over_copies(&self) -> bool {
        self.known.as_ref().is_some_and(|(_, pass_over)| *pass_over)
    }
}

/// A sketched document. Its memory is reused for other documents.
pub struct Sketched {
    /// The key of the document.
    pub key: Vec<u8>,
    /// Whether the line of the document contains `key` itself: false if `key` was created, or if a number was added to
    /// it.
    pub is_own_key: bool,
    /// Whether a document of a history has the same key.
    is_earlier_key: bool,
    /// Whether the text does not represent the whole document, so that it is near only to documents with equal bytes.
    pub is_opaque: bool,
    /// The group of an earlier document with the same text, if it was found. The document may not be sketched then.
    pub(crate) copy_of: Option<u32>,
    /// The position of the document: its file, and the line or offset in it.
    pub place: Place,
    /// The place of its input among the inputs that are read at the same time.
    pub(crate) part: u32,
    /// The sketch of the document.
    pub sketch: Sketch,
    /// The fingerprint, if the document is one, or its simhash of more than 64 bits.
    pub code: Option<Code>,
    /// The line of the document and the hash of its content, if requested.
    pub whole: WholeDocument,
    /// The values of the fields that options name in addition to key and text.
    pub attached: OwnAttached,
    /// Length in bytes of the text, or of the names of all features.
    pub text_bytes: u64,
    /// Number of tokens in the text, or of features.
    pub tokens: u64,
    /// The number of words that were ignored as boilerplate, and whether all words were.
    pub left_out: LeftOut,
}

/// Converts the error of an index that rejected a document. An error caused by the document, such as a key or value
/// that is too long, becomes a bad record. Other errors, such as a full index, remain errors.
#[must_use]
pub fn refused(place: &Place, what: &str, error: twindex::Error) -> anyhow::Error {
    match error {
        Error::Invalid(_) | Error::Limit { what: "bytes of a key" | "bytes of a value", .. } => {
            bad_at(place, &format!("{what}: {error}"))
        }
        error => anyhow::Error::new(error).context(format!("{place}: {what}")),
    }
}

/// A document as it is in its file, and the hash of its content.
pub struct WholeDocument {
    /// The xxh3-128 hash of its [`identity`](Parser::identity).
    pub hash: u128,
    /// The format of `line`.
    pub form: Form,
    /// The bytes that represent the document in a file of this form, without a line end.
    pub line: DocumentLine,
    /// The line ending that followed the document in its file.
    pub ending: Ending,
}

impl WholeDocument {
    /// Takes the line of a record.
    fn take(&mut self, record: &Record<'_>, parser: &Parser) -> anyhow::Result<()> {
        let line = record.line(parser)?;
        self.line = match record.origin() {
            Some((file, offset)) => {
                // Reuses the path of the previous document: cloning it changes a reference count that all threads
                // share.
                let file = match std::mem::take(&mut self.line) {
                    DocumentLine::In { file: known, .. } if Arc::ptr_eq(file, &known) => known,
                    _ => Arc::clone(file),
                };
                DocumentLine::In { file, offset, length: line.len(), hash: line_hash(&line) }
            }
            None => DocumentLine::Held(line.into_owned()),
        };
        (self.form, self.ending) = (record.form(), record.ending());
        Ok(())
    }

    /// Frees the memory of the line, which may be long.
    fn free_line(&mut self) {
        if !matches!(self.line, DocumentLine::In { .. }) {
            self.line = DocumentLine::default();
        }
    }
}

impl Default for WholeDocument {
    fn default() -> Self {
        Self { hash: 0, form: Form::Json, line: DocumentLine::default(), ending: Ending::default() }
    }
}

/// The line of a document, or its position.
pub enum DocumentLine {
    /// The bytes of the line.
    Held(Vec<u8>),
    /// The position of the line among lines that the thread that parsed them has compressed.
    Packed {
        /// The lines of the chunk.
        lines: Arc<PackedLines>,
        /// Offset of the line in these lines, in bytes.
        at: usize,
        /// Length of the line in bytes.
        length: usize,
    },
    /// The position of the line in a file that can be read again.
    In {
        /// The file.
        file: Arc<Path>,
        /// Offset of the line in the file, in bytes.
        offset: u64,
        /// Length of the line in bytes.
        length: usize,
        /// The [`line_hash`] of the line, to detect that the file has changed.
        hash: u64,
    },
}

impl Default for DocumentLine {
    fn default() -> Self {
        Self::Held(Vec::new())
    }
}

/// Returns the hash of a line. It is compared when the line is read again, to detect changes.
#[must_use]
pub fn line_hash(line: &[u8]) -> u64 {
    xxh3_64(line)
}

/// The result of processing a chunk.
struct Chunked<L> {
    /// The documents of the chunk, one for each element of `found`. Further elements are from an earlier chunk; their
    /// memory is reused.
    all: Vec<Sketched>,
    /// The lookup result of each document.
    found: Vec<L>,
    /// The shingles, or the words, of all documents, concatenated, and the end offset of each document.
    shingles: Vec<u64>,
    ends: Vec<usize>,
    forms: Forms,
    /// The data of the chunk that is stored for a resumed run, or was read from the cache.
    memory: ChunkMemory,
}

impl<L> Chunked<L> {
    /// Begins to load what is read about each document.
    fn prefetch(&self, keys: &SeenKeys, wanted: &SketchOptions) {
        let all = &self.all[..self.found.len()];
        keys.prefetch(all.iter().map(|one| one.key.as_slice()));
        if let Some((known, _)) = &wanted.known {
            known.prefetch(all.iter().map(|one| one.whole.hash));
        }
    }

    fn clear_words(&mut self) {
        self.ends.clear();
        self.shingles.clear();
        self.shingles.shrink_to(KEPT_SHINGLES);
    }

    /// Packs the lines of the chunk that cannot be read again.
    fn pack(&mut self, packing: &mut LinePacking, dictionary: Option<&LineDictionary>) -> anyhow::Result<()> {
        let Some(dictionary) = dictionary else { return Ok(()) };
        let all = &mut self.all[..self.found.len()];
        let lines = all.iter().filter_map(|one| match &one.whole.line {
            DocumentLine::Held(line) => Some(line.as_slice()),
            DocumentLine::Packed { .. } | DocumentLine::In { .. } => None,
        });
        let Some((lines, offsets)) = packing.pack(dictionary, lines).context("cannot compress lines")? else {
            return Ok(());
        };
        let (lines, mut offsets) = (Arc::new(lines), offsets.into_iter());
        for one in all {
            if let DocumentLine::Held(line) = &one.whole.line
                && let Some(at) = offsets.next()
            {
                one.whole.line = DocumentLine::Packed { lines: Arc::clone(&lines), at, length: line.len() };
            }
        }
        Ok(())
    }
}

impl<L> Default for Chunked<L> {
    fn default() -> Self {
        let (shingles, ends, forms) = (Vec::new(), Vec::new(), Forms::default());
        Self { all: Vec::new(), found: Vec::new(), shingles, ends, forms, memory: ChunkMemory::None }
    }
}

/// Maximum number of shingles for which a chunk keeps memory when it is reused.
const KEPT_SHINGLES: usize = 1 << 20;

/// Reads and sketches all documents, and passes each to `each` in input order. A document for which `each` returns
/// [`refused`] is a bad record. If a chunk has several bad records, the one that is reported first need not be the
/// first in input order: records that the parser rejects are counted before documents that `each` rejects.
///
/// # Errors
///
/// The errors of [`for_each_chunk`].
pub fn for_each_sketched(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &dyn Progress,
    mut each: impl FnMut(&Sketched) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for_each_shingled(documents, sketcher, wanted, progress, |one, _| each(one))
}

/// Like [`for_each_sketched`], but also passes the shingles of each document, if requested.
///
/// # Errors
///
/// The errors of [`for_each_chunk`].
pub fn for_each_shingled(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &dyn Progress,
    mut each: impl FnMut(&Sketched, &[u64]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let look = |_: &Sketch, _: DocumentScratch<'_>| Ok(());
    for_each_looked_up(documents, sketcher, wanted, progress, look, |one, (), shingles| each(one, shingles))
}

/// Like [`for_each_shingled`], but also calls `look` for each document, on all threads. `each` receives the result of
/// `look` and the words that `look` appended.
///
/// # Errors
///
/// The errors of [`for_each_chunk`] and of `look`.
pub fn for_each_looked_up<L: Send>(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &dyn Progress,
    look: impl Fn(&Sketch, DocumentScratch<'_>) -> anyhow::Result<L> + Sync,
    each: impl FnMut(&Sketched, L, &[u64]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut each = each;
    let each = |one: &Sketched, found, words: &[u64]| each(one, found, words).map(|()| true);
    let look = (look, |_: &[Sketched], _: &mut [L]| Ok(()));
    for_each_remembered(documents, sketcher, wanted, progress, None, look, each).map(drop)
}

/// Like [`for_each_looked_up`], with a cache. Lookup results and words are read from the cache if it contains them.
/// Otherwise they are computed and stored in it. `look_together` may change the results of the documents of a chunk, also
/// those from the cache; its changes are not stored. `each` returns whether a resumed run needs the words of the document.
/// Returns the keys of the documents.
///
/// # Errors
///
/// The errors of [`for_each_looked_up`], and an error if cached results are damaged or belong to other documents.
pub(crate) fn for_each_remembered<L: Send>(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &dyn Progress,
    remembered: Option<&ChunkCache<'_, L>>,
    (look, look_together): (
        impl Fn(&Sketch, DocumentScratch<'_>) -> anyhow::Result<L> + Sync,
        impl Fn(&[Sketched], &mut [L]) -> anyhow::Result<()> + Sync,
    ),
    mut each: impl FnMut(&Sketched, L, &[u64]) -> anyhow::Result<bool>,
) -> anyhow::Result<SeenKeys> {
    let (mut keys, mut width) = (seen_keys(documents, wanted, progress)?, wanted.bits);
    let idle: Mutex<Vec<Chunked<L>>> = Mutex::new(Vec::new());
    let (stored, chunks, how) = match remembered {
        None => (None, None, None),
        Some(&ChunkCache { stored, chunks, minima, is_short, put, take, take_words }) => {
            (Some(stored), Some(chunks), Some(((minima, is_short), put, take, take_words)))
        }
    };
    let job = Job {
        state: || Sketching::new(sketcher),
        begin: |recalled: Option<CachedChunk>, batch: &Batch| {
            let mut chunked = idle.lock().ok().and_then(|mut idle| idle.pop()).unwrap_or_default();
            if how.is_some() {
                chunked.memory = ChunkMemory::of(recalled, batch.digest())?;
            }
            Ok(chunked)
        },
        work: |sketching: &mut Sketching<'_>,
               chunked: &mut Chunked<L>,
               parser: &Parser,
               record: Record<'_>| {
            if wanted.shard.is_some_and(|shard| !shard.has(Key::Bytes(record.key))) {
                return Ok(());
            }
            let Chunked { all, found, shingles, ends, forms, memory } = chunked;
            if all.len() == found.len() {
                all.push(Sketched::at(record.place()));
            }
            let one = &mut all[found.len()];
            sketch_into(one, sketching, parser, &record, wanted, memory)?;
            forms.add(std::mem::take(&mut sketching.forms));
            let recalled = match how {
                None => None,
                Some(((minima, _), _, take, _)) => memory.recall(|bytes| {
                    bytes.0 = one.restore(sketcher, minima, bytes.0)?;
                    take(bytes)
                })?,
            };
            if let (Some((_, _, _, take_words)), Some(mut recalled)) = (how, recalled) {
                memory.recall_words(|bytes| take_words(bytes, &mut recalled, shingles))?;
                found.push(recalled);
                ends.push(shingles.len());
                return Ok(());
            }
            let is_copy = one.copy_of.is_some() && wanted.passes_over_copies();
            if wanted.shingles && !is_copy {
                sketching.shingles(shingles);
            }
            let rest = sketching.rest(shingles, &one.attached.deciding().inside);
            let looked = look(&one.sketch, DocumentScratch { is_copy, ..rest })?;
            if let (Some(((minima, is_short), put, ..)), Some(kept)) = (how, memory.kept()) {
                if is_short {
                    one.sketch.shorten(minima);
                }
                one.sketch.store(minima, kept);
                put(&looked, kept);
            }
            found.push(looked);
            ends.push(shingles.len());
            Ok(())
        },
    };
    let hand = || stored.map_or(Ok(None), StoredChunks::next);
    let read = (documents, chunk_bytes(sketcher), wanted.together.max(1));
    let dictionary = wanted.lines.as_ref().map(SharedLines::dictionary);
    let end = |sketching: &mut Sketching<'_>, chunked: &mut Chunked<L>| {
        look_together(&chunked.all[..chunked.found.len()], &mut chunked.found)?;
        chunked.pack(&mut sketching.packing, dictionary.as_ref())
    };
    for_each_handed_chunk(read, progress, (&job, end), hand, |mut chunked, documents, part| {
        let mut memory = std::mem::take(&mut chunked.memory);
        memory.check_end()?;
        let (results, mut start) = (memory.kept().map_or(0, |bytes| bytes.len()), 0);
        documents.account_forms(std::mem::take(&mut chunked.forms));
        chunked.prefetch(&keys, wanted);
        for ((one, found), &end) in chunked.all.iter_mut().zip(chunked.found.drain(..)).zip(&chunked.ends) {
            one.part = part;
            documents.count_attached(&one.attached);
            let words = &chunked.shingles[start..end];
            let taken = look_up_key(&mut keys, wanted, one, documents)?
                .then(|| check_width(&mut width, one, wanted).and_then(|()| each(one, found, words)));
            let refused = |error| documents.refuse(error, one.text_bytes).map(|()| false);
            let are_needed = taken.map_or(Ok(false), |taken| taken.or_else(refused))?;
            if let (Some(kept), Some(chunks)) = (memory.kept(), chunks) {
                chunks.put_words(are_needed.then_some(words), kept)?;
            }
            one.whole.free_line();
            start = end;
        }
        if let (ChunkMemory::Kept { digest, mut bytes }, Some(chunks)) = (memory, chunks) {
            put_end(results, &mut bytes);
            chunks.keep(digest, &bytes)?;
        }
        chunked.clear_words();
        if let Ok(mut idle) = idle.lock() {
            idle.push(chunked);
        }
        Ok(())
    })?;
    Ok(keys)
}

/// Decides by its key whether a document is processed. May append a number to a repeated key to make it unique.
fn look_up_key(
    keys: &mut SeenKeys,
    wanted: &SketchOptions,
    one: &mut Sketched,
    documents: &mut Documents,
) -> anyhow::Result<bool> {
    let length = one.key.len();
    match keys.next_after(&mut one.key, one.is_earlier_key, wanted.earlier.as_deref())? {
        KeyDecision::Taken => Ok(true),
        KeyDecision::Numbered => {
            if let Err(reason) = check_key(&one.key) {
                documents.refuse(bad_at(&one.place, &reason), one.text_bytes)?;
                return Ok(false);
            }
            one.is_own_key = false;
            documents.repeated(&one.place, &one.key[..length], Some(&one.key), 0);
            Ok(true)
        }
        KeyDecision::Refused => {
            let key = String::from_utf8_lossy(&one.key);
            Err(anyhow!(
                "{}: the key `{}` came before; --repeated-keys number, first or last takes it all the same",
                one.place,
                key.escape_debug()
            ))
        }
        KeyDecision::PassedOver => {
            documents.repeated(&one.place, &one.key, None, one.text_bytes);
            Ok(false)
        }
    }
}

/// Creates the set of seen keys. For [`RepeatedKeys::Last`], reads the keys of all documents.
pub(crate) fn seen_keys(
    documents: &Documents,
    wanted: &SketchOptions,
    progress: &dyn Progress,
) -> anyhow::Result<SeenKeys> {
    // Keys that are line numbers are unique within a run, but a history may have them, too.
    let is_unique = documents.are_keyed_by_line() && wanted.earlier.is_none();
    let repeated = if is_unique { RepeatedKeys::Any } else { wanted.repeated_keys };
    let budget = wanted.budget.clone().unwrap_or_else(MemoryBudget::unlimited);
    if wanted.together > 1 && repeated == RepeatedKeys::Number {
        return Ok(SeenKeys::late(&budget)?);
    }
    let mut keys = SeenKeys::new(repeated, &budget)?;
    if repeated == RepeatedKeys::Last {
        announce(documents, &mut keys, wanted, progress)?;
    }
    Ok(keys)
}

/// Reads the keys of all documents and announces them to `keys`, which then recognizes the last document with a key.
pub(crate) fn announce(
    documents: &Documents,
    keys: &mut SeenKeys,
    wanted: &SketchOptions,
    progress: &dyn Progress,
) -> anyhow::Result<()> {
    let mut first = documents.again()?;
    let job = Job {
        state: || (),
        begin: Vec::new,
        work: |(): &mut (), all: &mut Vec<Vec<u8>>, parser: &Parser, record: Record<'_>| {
            record.attached(parser)?; // fails as in the second pass, so both passes reject the same records
            if wanted.shard.is_none_or(|shard| shard.has(Key::Bytes(record.key))) {
                all.push(record.key.to_vec());
            }
            Ok(())
        },
    };
    for_each_chunk(&mut first, progress, &job, |all| all.iter().try_for_each(|key| keys.announce(key)))
}

impl Sketched {
    /// Decodes the sketch at the beginning of `bytes`, and returns the bytes after it; `None` if there is none.
    fn restore<'b>(&mut self, sketcher: &Sketcher, minima: usize, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let rest = sketcher.restore(minima, bytes, &mut self.sketch).ok()?;
        self.take_code();
        Some(rest)
    }

    /// Takes a simhash of more than 64 bits from the sketch.
    fn take_code(&mut self) {
        let long = self.sketch.code().filter(|code| code.bits() > usize::from(SIMHASH_BITS));
        self.code = self.code.or(long);
    }

    fn at(place: Place) -> Self {
        Self {
            key: Vec::new(),
            is_own_key: true,
            is_earlier_key: false,
            is_opaque: false,
            copy_of: None,
            place,
            part: 0,
            sketch: Sketch::default(),
            code: None,
            whole: WholeDocument::default(),
            attached: OwnAttached::default(),
            text_bytes: 0,
            tokens: 0,
            left_out: LeftOut::default(),
        }
    }
}

/// Memory for shingling, in bytes per byte of the text; measured with words as tokens.
const BYTES_FOR_BYTE: usize = 8;
/// Memory in bytes per byte of a text if boilerplate is removed or counted.
const BYTES_FOR_BYTE_OF_SPANS: usize = 24;
/// Memory in bytes per shingle, and memory in bytes that is added for each byte of the text.
const BYTES_FOR_SHINGLE: (usize, usize) = (32, 2);
/// Texts that need at most this number of bytes of memory are accepted with any memory budget.
const ALWAYS: usize = 64 << 20;

/// Returns the maximum number of elements in the set of a document for this memory budget; [`check_memory`] rejects
/// more.
pub(crate) fn elements_max(memory: usize) -> u64 {
    (memory.max(ALWAYS) / BYTES_FOR_SHINGLE.0) as u64
}

/// Returns an error if a text needs too much memory. Called twice: with 0 shingles before the text is split into
/// tokens, which needs the least memory, and again when the number of shingles is known.
pub(crate) fn check_memory(
    record: &Record<'_>,
    shingles: usize,
    memory: Option<usize>,
    has_spans: bool,
) -> anyhow::Result<()> {
    let Some(memory) = memory else { return Ok(()) };
    let bytes = record.content.bytes();
    let (for_shingle, beside) = BYTES_FOR_SHINGLE;
    let for_byte = if has_spans { BYTES_FOR_BYTE_OF_SPANS } else { BYTES_FOR_BYTE };
    let taken = (for_byte * bytes).max(for_shingle * shingles + beside * bytes);
    if taken <= memory.max(ALWAYS) {
        return Ok(());
    }
    let wanted = taken.div_ceil(1 << 20);
    Err(record.bad(&format!(
        "a text of {bytes} bytes, which takes about {wanted} MiB until it is compared: give --memory {wanted}M or more"
    )))
}

/// What takes fingerprints of more than 64 bits.
pub(crate) const LONG_FINGERPRINTS: &str = "this index keeps 64 bits; `build` makes another of longer ones";

/// Returns an error if a fingerprint has another number of bits than the first one, `width`. The document is then a bad
/// record, unless the first one need not be that of the input.
fn check_width(width: &mut Option<usize>, one: &Sketched, wanted: &SketchOptions) -> anyhow::Result<()> {
    let Some(code) = one.code else { return Ok(()) };
    let (expected, found) = (*width.get_or_insert(code.bits()), code.bits());
    if expected == found {
        return Ok(());
    }
    let like = if wanted.bits.is_some() { "all" } else { "the first one" };
    let why = format!("expected a fingerprint of {expected} bits like {like}, found {found} bits, {code}");
    let why = format!("{why} (--fingerprint-field FORM:FIELD says how fingerprints are written)");
    let bad = bad_at(&one.place, &why);
    Err(if wanted.together > 1 { anyhow!("{bad}") } else { bad })
}

/// Sketches a document, and replaces the content of `one` with the requested data.
fn sketch_into(
    one: &mut Sketched,
    sketching: &mut Sketching<'_>,
    parser: &Parser,
    record: &Record<'_>,
    wanted: &SketchOptions,
    memory: &mut ChunkMemory,
) -> anyhow::Result<()> {
    // Fields are read before sketching: a record without a required field is a bad record, and is not sketched.
    one.attached = record.attached(parser)?;
    one.code = match record.content {
        Content::Fingerprint(code) => Some(code),
        _ => None,
    };
    if let Some(code) = one.code.filter(|code| code.bits() > 64 && !wanted.wide) {
        return Err(record.bad(&format!("a fingerprint of {} bits: {LONG_FINGERPRINTS}", code.bits())));
    }
    let has_spans = sketching.sketcher.params().shingling.boilerplate.is_some();
    check_memory(record, 0, wanted.memory, has_spans)?;
    record.write_place(&mut one.place);
    one.is_opaque = record.content.is_opaque();
    if wanted.whole {
        one.whole.take(record, parser)?;
        let identity = parser.identity(record.content);
        one.whole.hash = xxh3_128(&identity);
        one.copy_of = None;
        if let Some((known, _)) = &wanted.known
            && one.attached.deciding().inside.is_empty()
        {
            let reader =
                sketching.reader.get_or_insert_with(|| TextReader::new(parser, wanted.lines.as_ref()));
            one.copy_of = known.find(one.whole.hash, &identity, reader);
        }
    }
    let sizes =
        memory.recall(|bytes| Some([bytes.small()?, bytes.small()?, bytes.small()?, bytes.small()?]))?;
    let [shingles, tokens, left_out, is_all] = if let Some(sizes) = sizes {
        sketching.count_forms(record.content);
        sizes
    } else if one.copy_of.is_some() && wanted.passes_over_copies() {
        sketching.count_forms(record.content);
        [0; 4]
    } else {
        let made = sketching.sketch(record.content, &mut one.sketch);
        if let Err(Error::Invalid(why)) = &made
            && sketching.has_weights()
        {
            return Err(record.bad(why)); // a weight is out of range
        }
        made.with_context(|| format!("{}: cannot sketch the document", record.place()))?;
        one.take_code();
        let (scratch, left_out) = (&sketching.scratch, sketching.left_out());
        let sizes = [
            scratch.elements().len() as u64,
            scratch.tokens() as u64,
            left_out.words,
            left_out.is_all.into(),
        ];
        // The sizes are stored even if the document is rejected below, so that a resumed run rejects it, too.
        if let Some(kept) = memory.kept() {
            for size in sizes {
                put_small(size, kept);
            }
        }
        sizes
    };
    check_memory(record, shingles as usize, wanted.memory, has_spans)?;
    one.key.clear();
    one.key.extend_from_slice(record.key);
    one.is_own_key = record.is_own;
    one.is_earlier_key = match &wanted.earlier {
        None => false,
        Some(earlier) => earlier.find(record.key)?.is_some(),
    };
    one.text_bytes = record.content.bytes() as u64;
    one.tokens = tokens;
    one.left_out = LeftOut { words: left_out, is_all: is_all > 0 };
    Ok(())
}

/// Receives documents one at a time, each with the result of a lookup.
pub trait DocumentSink<L> {
    /// Receives a sketched document.
    fn take(&mut self, one: &Sketched, found: L) -> anyhow::Result<()>;

    /// Called when all available documents were passed, and reading more may block.
    fn wait(&mut self) -> anyhow::Result<()>;
}

/// Like [`for_each_looked_up`], but for pipes: `taking` receives all documents that have arrived before more input is
/// awaited. The options of the documents must have `streaming` set. Reading pauses while `taking` receives documents.
///
/// # Errors
///
/// The errors of [`for_each_chunk`].
pub fn for_each_looked_up_streaming<L: Send>(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &dyn Progress,
    look: impl Fn(&Sketch) -> L + Sync,
    taking: &mut impl DocumentSink<L>,
) -> anyhow::Result<()> {
    let parser = documents.parser().clone();
    let mut keys = seen_keys(documents, wanted, progress)?;
    let mut batch = Batch::default();
    let state = || (Buffers::default(), Sketching::new(sketcher));
    // A chunk size below CHUNK_BYTES means that sketches may be large, so the number of chunks in memory is limited.
    let bytes = chunk_bytes(sketcher);
    let together = if bytes < CHUNK_BYTES { AHEAD * rayon::current_num_threads() } else { usize::MAX };
    loop {
        taking.wait()?;
        documents.next_batch(&mut batch, BATCH_BYTES);
        if batch.is_over() {
            return documents.check_counts();
        }
        progress.set(documents.bytes_read());
        for some in batch.chunks(bytes).chunks(together) {
            let made = some.par_iter().map_init(state, |(buffers, sketching), chunk| -> anyhow::Result<_> {
                let mut all = Vec::new();
                let seen = chunk.read(&parser, buffers, |record| {
                    let mut one = Sketched::at(record.place());
                    sketch_into(&mut one, sketching, &parser, &record, wanted, &mut ChunkMemory::None)?;
                    let found = look(&one.sketch);
                    all.push((one, found));
                    Ok(())
                })?;
                Ok((seen, all, std::mem::take(&mut sketching.forms)))
            });
            let made: Vec<_> = made.collect();
            for made in made {
                let (seen, all, forms) = made?;
                documents.account(seen)?;
                documents.account_forms(forms);
                for (mut one, found) in all {
                    let text_bytes = one.text_bytes;
                    documents.count_attached(&one.attached);
                    if look_up_key(&mut keys, wanted, &mut one, documents)?
                        && let Err(error) = taking.take(&one, found)
                    {
                        documents.refuse(error, text_bytes)?;
                    }
                }
            }
        }
        if let Some(failure) = batch.take_failure() {
            return Err(failure);
        }
    }
}
