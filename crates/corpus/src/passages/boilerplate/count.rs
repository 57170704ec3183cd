//! Builds and opens boilerplate lists: runs of words that many documents share and that comparisons ignore.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use rayon::prelude::*;
use twindex::params::{Shingling, Tokens};
use twindex::sketch::cut::PlacedUnits;
use twindex::sketch::{Cutter, IdfTable, LeavesOut};
use twindex::sys::{DurableFile, MemoryBudget};
use twindex::{Error, Index, Params, Sketcher};
use twindex_join::SharedProgress;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::InvalidOptions;
use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::documents::Documents;
use crate::input::parser::Parser;
use crate::passages::boilerplate::build::{Builder, SharedGrams};
use crate::passages::boilerplate::list::Boilerplate;
use crate::passages::find::finder::{FinderScratch, Shape, WIDTH_MAX};
use crate::passages::find::hashed::{Exact, Hashed, Hasher};
use crate::rule::repeated::{KeyDecision, RepeatedKeys};
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::sketching::documents::{SketchOptions, check_memory, seen_keys};
use crate::work::observer::Observer;

/// File name of a boilerplate list, in a results folder or an index folder.
pub const BOILERPLATE: &str = "boilerplate";
/// Default length of a span in words: twice the default shingle length, so that a shared span contains whole shingles.
pub const BOILERPLATE_WORDS: u32 = 10;

/// Opens a boilerplate list.
///
/// # Errors
///
/// The errors of [`Boilerplate::open`]; the message says how to create a list.
pub fn open(path: &Path) -> anyhow::Result<Arc<Boilerplate>> {
    let list = Boilerplate::open(path).with_context(|| {
        format!("{}: expected a list of spans, as `dedup --without-boilerplate` makes it", path.display())
    })?;
    Ok(Arc::new(list))
}

/// Returns the path of the boilerplate list in a results folder, if there is one.
pub(crate) fn of_results(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(BOILERPLATE)).filter(|path| path.is_file())
}

/// Returns the path of the boilerplate list of an index: in its folder or, in results of `dedup`, in the parent folder.
pub(crate) fn of_index(folder: &Path) -> Option<PathBuf> {
    of_results(folder).or_else(|| of_results(&folder.join("..")))
}

/// Returns the sketcher of an index. If the index was built without boilerplate, the sketcher removes it from texts,
/// too, by the list at `given` or else the list that is stored with the index.
///
/// # Errors
///
/// Fails if the index needs a list and none is found, or the list is not the one with which the index was built. Fails
/// if `given` is set for an index that needs no list. Also returns the errors of [`Index::sketcher`].
pub fn sketcher(index: &Index, given: Option<&Path>) -> anyhow::Result<Sketcher> {
    let params = index.params();
    let shown = index.path().display();
    let Some(digest) = params.shingling.boilerplate else {
        if let Some(given) = given {
            return Err(InvalidOptions::new(format!(
                "--boilerplate {}: the index {shown} was made of all words; leave it out",
                given.display()
            ))
            .into());
        }
        return Ok(index.sketcher()?);
    };
    let Some(path) = given.map(Path::to_owned).or_else(|| of_index(index.path())) else {
        return Err(InvalidOptions::new(format!(
            "{shown}: made without the spans of a list ({digest:032x}), which is not in its folder, nor beside it: name it \
             with --boilerplate FILE; `dedup` writes it as OUT/{BOILERPLATE}"
        ))
        .into());
    };
    let list = open(&path)?;
    sketcher_with(&params, index.idf()?, list)
        .with_context(|| format!("{}: not the list of {shown}", path.display()))
}

/// Creates a sketcher from `params` and the boilerplate list and IDF table whose digests `params` contain.
///
/// # Errors
///
/// The errors of [`Sketcher::with_boilerplate`] and [`Sketcher::with_idf`].
pub fn sketcher_with(
    params: &Params,
    table: Option<Arc<IdfTable>>,
    list: Arc<Boilerplate>,
) -> twindex::Result<Sketcher> {
    Ok(match table {
        None => Sketcher::with_boilerplate(params, list)?,
        Some(table) => Sketcher::with_idf_and_boilerplate(params, table, list)?,
    })
}

/// Writes a copy of a list to `folder` and syncs it.
///
/// # Errors
///
/// I/O errors.
pub fn copy(list: &Boilerplate, folder: &Path) -> anyhow::Result<()> {
    let write = || {
        let mut file = DurableFile::create_new(&folder.join(BOILERPLATE))?;
        file.write_all(list.bytes())?;
        file.finish()
    };
    write().with_context(|| format!("{BOILERPLATE}: cannot write"))
}

/// Criteria for the spans of a list, and limits for the job that counts the spans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanCriteria {
    /// Length of a span in words.
    pub(crate) words: u32,
    /// Spans that occur in more than this number of documents are listed.
    pub(crate) more_than: u32,
    pub(crate) repeated_keys: RepeatedKeys,
    pub(crate) memory: usize,
}

/// Totals of one pass over the inputs, compared between passes to detect inputs that changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReadingTotals {
    records: u64,
    /// Sum of the hashes of all texts.
    texts: u64,
}

impl ReadingTotals {
    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.texts = self.texts.wrapping_add(more.texts);
    }
}

/// The definition of a span: the tokenizer that splits texts into words, and the number of words in a span.
#[derive(Clone, Debug)]
pub struct SpanWords {
    shingling: Shingling,
    cutter: Cutter,
    shape: Shape,
    hasher: Hasher,
    words: u32,
}

impl SpanWords {
    /// Creates the definition of spans of `words` words, with the tokenizer of `shingling`.
    ///
    /// # Errors
    ///
    /// `words` is not between 1 and 65,535, or this build does not support the tokenizer.
    pub fn new(shingling: &Shingling, words: u32) -> anyhow::Result<Self> {
        if !(1..=WIDTH_MAX).contains(&(words as usize)) {
            let why = format!("boilerplate_words: expected 1 to {WIDTH_MAX}, found {words}");
            return Err(InvalidOptions::new(why).into());
        }
        let shingling = words_of(shingling)?;
        let (cutter, hasher) = (Cutter::new(&shingling)?, Hasher::new(shingling.seed));
        Ok(Self { shingling, cutter, shape: Shape::words(words as usize), hasher, words })
    }

    /// Returns the working memory of one thread, which processes one text at a time.
    #[must_use]
    pub fn counting(&self) -> SpanCounting<'_> {
        SpanCounting {
            of: self,
            placed: PlacedUnits::default(),
            hashed: Hashed::default(),
            work: FinderScratch::new(self.shape, self.hasher),
        }
    }

    /// Encodes `spans` as a boilerplate list. The caller has counted that each span occurs in more than `more_than` of
    /// all `documents` documents.
    ///
    /// # Errors
    ///
    /// I/O errors of scratch files.
    pub fn list_of(
        &self,
        spans: impl IntoIterator<Item = [u64; 2]>,
        more_than: u32,
        documents: u64,
    ) -> anyhow::Result<Vec<u8>> {
        let scratch = tempfile::tempdir().context("cannot make a scratch folder")?;
        let mut builder = Builder::new(scratch.path(), LIST_MEMORY);
        for span in spans {
            builder.push_counted(span, more_than.saturating_add(1))?;
        }
        builder.of_documents(documents);
        let path = scratch.path().join(BOILERPLATE);
        builder.finish(&path, (self.words, more_than), &self.shingling)?;
        std::fs::read(&path).with_context(|| format!("{}: cannot read", path.display()))
    }
}

/// Memory budget in bytes in which [`SpanWords::list_of`] sorts spans.
const LIST_MEMORY: usize = 64 << 20;

/// Finds spans in two steps, one text at a time, for jobs in which a framework such as Spark moves the rows. After the
/// first step the caller counts in how many texts each fingerprint was selected. The second step returns the runs of
/// words with frequent fingerprints, and the caller counts the texts that contain each run.
///
/// ```
/// use twindex::params::Shingling;
/// use twindex_corpus::{Boilerplate, SpanWords};
///
/// let texts = ["home about us a rose", "home about us the sun", "home about us: rain"];
/// let words = SpanWords::new(&Shingling::words(5, 0), 3)?;
/// let (mut counting, mut grams) = (words.counting(), Vec::new());
/// for text in texts {
///     counting.for_each_fingerprint(text, |fingerprint| assert!(fingerprint > 0))?; // counted by the caller
///     counting.append_runs(text, |_| true, &mut grams)?;
/// }
/// grams.sort_unstable();
/// let shared = grams.chunk_by(|a, b| a == b).filter(|same| same.len() > 2).map(|same| same[0]);
/// let list = Boilerplate::from_bytes(words.list_of(shared, 2, 3)?)?;
/// assert_eq!((list.len(), list.counted().documents), (1, 3));
/// # anyhow::Ok(())
/// ```
#[derive(Debug)]
pub struct SpanCounting<'w> {
    of: &'w SpanWords,
    placed: PlacedUnits,
    hashed: Hashed,
    work: FinderScratch,
}

impl SpanCounting<'_> {
    /// Splits a text into words and hashes them.
    fn hash(&mut self, text: &str) -> twindex::Result<()> {
        if u32::try_from(text.len()).is_err() {
            let found = text.len() as u64;
            return Err(Error::Limit { what: "bytes of a text", limit: u32::MAX.into(), found });
        }
        let Self { of: SpanWords { cutter, hasher, .. }, placed, hashed, .. } = self;
        hashed.clear(Exact::Tokens);
        cutter.for_each_placed(text, placed, |place, word| hashed.push_token(hasher, text, place, word));
        Ok(())
    }

    /// First step: passes the distinct selected fingerprints of a text to `each`. If `n` texts contain a span, at least
    /// `n` texts select the fingerprint of the span.
    ///
    /// # Errors
    ///
    /// The text has 4 GiB or more.
    pub fn for_each_fingerprint(&mut self, text: &str, each: impl FnMut(u64)) -> twindex::Result<()> {
        self.hash(text)?;
        self.work.for_each_distinct_selected(&self.hashed, each);
        Ok(())
    }

    /// Second step: appends the distinct hashes of the runs of words in a text whose fingerprints `is_wanted` accepts.
    ///
    /// # Errors
    ///
    /// The text has 4 GiB or more.
    pub fn append_runs(
        &mut self,
        text: &str,
        is_wanted: impl FnMut(u64) -> bool,
        runs: &mut Vec<[u64; 2]>,
    ) -> twindex::Result<()> {
        self.hash(text)?;
        self.work.append_wanted(&self.hashed, is_wanted, runs);
        Ok(())
    }

    /// Splits the text of a record into words and hashes them; returns the totals of the record.
    fn take(&mut self, parser: &Parser, record: &Record<'_>, memory: usize) -> anyhow::Result<ReadingTotals> {
        record.attached(parser)?; // fails for the same records as in `dedup`
        check_memory(record, 0, Some(memory), true)?;
        // Treats a record without a decoded text as an empty text.
        let text = if let Content::Text(text) = record.content { text } else { "" };
        self.hash(text).map_err(|error| record.bad(&error))?;
        Ok(ReadingTotals { records: 1, texts: xxh3_64(text.as_bytes()) })
    }
}

/// The hashes of the runs of words in the records of a chunk.
#[derive(Default)]
struct ChunkGrams {
    seen: ReadingTotals,
    grams: Vec<[u64; 2]>,
    /// The key of each record, and the end of the record's runs in `grams`.
    records: Vec<(Vec<u8>, usize)>,
}

/// Returns the tokenizer for spans. If `shingling` splits texts into words, spans consist of the same words, but stop
/// words are kept and words are not stemmed.
fn words_of(shingling: &Shingling) -> anyhow::Result<Shingling> {
    let mut words = Shingling::words(1, shingling.seed);
    if matches!(shingling.tokens, Tokens::UnicodeWords | Tokens::WordsSymbols) {
        words = words.with_tokens(shingling.tokens)?;
    }
    (words.normal_form, words.folding) = (shingling.normal_form, shingling.folding);
    Ok(words)
}

/// Reads all documents twice and writes the list of the spans that `asked` specifies to `folder`. Scratch files are in
/// `folder`, too.
///
/// # Errors
///
/// I/O errors. It is also an error if inputs can be read only once, cannot be read, or change between the two passes.
pub(crate) fn count(
    documents: &Documents,
    shingling: &Shingling,
    asked: SpanCriteria,
    folder: &Path,
    observer: &dyn Observer,
) -> anyhow::Result<Arc<Boilerplate>> {
    let SpanCriteria { words, more_than, repeated_keys, memory } = asked;
    let Some(total) = documents.total_bytes() else {
        return Err(InvalidOptions::new(
            "--without-boilerplate reads its inputs three times, and standard input or a pipe can be read only once; \
             write it to a file, or name a list with --boilerplate",
        )
        .into());
    };
    let spans = SpanWords::new(shingling, words)?;
    let state = || spans.counting();
    let shared = filter(total, more_than, memory)?;

    let mut reading = documents.again()?;
    let progress = observer.begin("counting spans", reading.total_bytes());
    let job = Job {
        state,
        begin: ReadingTotals::default,
        work: |working: &mut SpanCounting<'_>,
               seen: &mut ReadingTotals,
               parser: &Parser,
               record: Record<'_>| {
            seen.add(working.take(parser, &record, memory)?);
            working.work.count_shared(&working.hashed, &shared);
            Ok(())
        },
    };
    let mut first = ReadingTotals::default();
    for_each_chunk(&mut reading, &*progress, &job, |seen| {
        first.add(seen);
        Ok(())
    })?;
    drop(progress);

    let mut reading = documents.again()?;
    let progress = observer.begin("collecting spans", reading.total_bytes());
    let repeated_keys = match repeated_keys {
        RepeatedKeys::Error => RepeatedKeys::Any, // `dedup` reports the first repeated key when it reads the inputs
        other => other,
    };
    let budget = Some(MemoryBudget::new(folder, memory / 8));
    let mut keys = seen_keys(
        &reading,
        &SketchOptions { repeated_keys, budget, ..SketchOptions::default() },
        &*progress,
    )?;
    let mut builder = Builder::new(folder, memory / 2);
    let job = Job {
        state,
        begin: ChunkGrams::default,
        work: |working: &mut SpanCounting<'_>, made: &mut ChunkGrams, parser: &Parser, record: Record<'_>| {
            made.seen.add(working.take(parser, &record, memory)?);
            working.work.append_shared(&working.hashed, &shared, &mut made.grams);
            made.records.push((record.key.to_vec(), made.grams.len()));
            Ok(())
        },
    };
    let mut second = ReadingTotals::default();
    for_each_chunk(&mut reading, &*progress, &job, |made| {
        second.add(made.seen);
        let mut start = 0;
        for (mut key, end) in made.records {
            if matches!(keys.next(&mut key)?, KeyDecision::Taken | KeyDecision::Numbered) {
                builder.push(&made.grams[start..end])?;
            }
            start = end;
        }
        Ok(())
    })?;
    drop(progress);
    if first != second {
        bail!("the inputs changed while they were read; run again when nothing writes to them");
    }
    drop(shared);
    let path = folder.join(BOILERPLATE);
    builder.finish(&path, (words, more_than), &spans.shingling)?;
    open(&path)
}

/// Creates a filter with one counter for each of the `bytes` bytes of text, but at most a quarter of `memory`. Fewer
/// than `bytes / 2` fingerprints are selected, so each has at least two counters if the memory suffices.
fn filter(bytes: u64, more_than: u32, memory: usize) -> twindex::Result<SharedGrams> {
    let max = memory / 4;
    let wanted = usize::try_from(bytes).unwrap_or(max);
    SharedGrams::new(wanted.clamp(1 << 16, max.max(1 << 16)), more_than)
}

/// Number of texts that a thread processes at a time. All their runs of words are held in memory.
const TOGETHER: usize = 256;

/// Returns `text` as a string, or the empty string if it is not UTF-8.
fn text_of<'t>(text: &&'t [u8]) -> &'t str {
    std::str::from_utf8(text).unwrap_or_default()
}

/// Builds the list as [`count`] does, from texts in memory.
pub(crate) fn count_texts(
    texts: &[&[u8]],
    spans: &SpanWords,
    more_than: u32,
    memory: usize,
    (folder, watched): (&Path, &SharedProgress),
) -> anyhow::Result<Arc<Boilerplate>> {
    let bytes = texts.iter().map(|text| text.len() as u64).sum();
    let shared = filter(bytes, more_than, memory)?;
    watched.begin("counting spans", texts.len() as u64);
    texts.par_chunks(TOGETHER).try_for_each_init(
        || spans.counting(),
        |counting, texts| {
            watched.advance(texts.len() as u64)?;
            texts.iter().try_for_each(|text| {
                counting.for_each_fingerprint(text_of(text), |fingerprint| shared.count(fingerprint))
            })?;
            anyhow::Ok(())
        },
    )?;
    watched.begin("collecting spans", texts.len() as u64);
    let mut builder = Builder::new(folder, memory / 2);
    for some in texts.chunks(TOGETHER * rayon::current_num_threads()) {
        watched.advance(some.len() as u64)?;
        let made = some.par_iter().map_init(
            || spans.counting(),
            |counting, text| {
                let mut runs = Vec::new();
                let is_shared = |fingerprint| shared.is_shared(fingerprint);
                counting.append_runs(text_of(text), is_shared, &mut runs).map(|()| runs)
            },
        );
        let made: Vec<Vec<[u64; 2]>> = made.collect::<twindex::Result<_>>()?;
        made.iter().try_for_each(|runs| builder.push(runs))?;
    }
    drop(shared);
    let path = folder.join(BOILERPLATE);
    builder.finish(&path, (spans.words, more_than), &spans.shingling)?;
    open(&path)
}

/// Returns an error if the list was built with a span length other than `words`, or with a threshold other than
/// `more_than`. `None` accepts any value.
pub(crate) fn check(
    list: &Boilerplate,
    words: Option<u32>,
    more_than: Option<u32>,
) -> Result<(), InvalidOptions> {
    let made = list.counted();
    for (option, given, made) in
        [("without-boilerplate", more_than, made.more_than), ("boilerplate-words", words, made.words)]
    {
        if let Some(given) = given.filter(|&given| given != made) {
            return Err(InvalidOptions::new(format!(
                "--{option} {given}: the list of spans {} was made with {made}; give the same, or leave it out",
                list.path().display()
            )));
        }
    }
    Ok(())
}

/// Returns the digest of a list. An index stores it in its parameters to identify the list.
pub fn digest(list: &Boilerplate) -> u128 {
    LeavesOut::digest(list)
}
