//! Spans that many documents share, and that do not count: lists of them, made, found and used.

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
use twindex_passages::boilerplate::{Builder, SharedGrams};
use twindex_passages::{Boilerplate, Exact, Hashed, Hasher, Shape, WIDTH_MAX, FinderScratch};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::InvalidOptions;
use crate::input::{Content, Documents, Parser, Record};
use crate::observer::Observer;
use crate::repeated::{KeyDecision, RepeatedKeys};
use crate::sketching::{Job, SketchOptions, check_memory, for_each_chunk, seen_keys};

/// The name of a list in a folder of results, and in the folder of an index.
pub const BOILERPLATE: &str = "boilerplate";
/// Words of a span, unless it is said: twice a usual shingle, so that a shared span has complete shingles.
pub const BOILERPLATE_WORDS: u32 = 10;

/// Opens a list.
///
/// # Errors
///
/// The errors of [`Boilerplate::open`], with advice.
pub fn open(path: &Path) -> anyhow::Result<Arc<Boilerplate>> {
    let list = Boilerplate::open(path).with_context(|| {
        format!("{}: expected a list of spans, as `dedup --without-boilerplate` makes it", path.display())
    })?;
    Ok(Arc::new(list))
}

/// The list in a folder of results.
pub(crate) fn of_results(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(BOILERPLATE)).filter(|path| path.is_file())
}

/// The list in the folder of an index, or beside it, as results have it.
pub(crate) fn of_index(folder: &Path) -> Option<PathBuf> {
    of_results(folder).or_else(|| of_results(&folder.join("..")))
}

/// The sketcher of an index at this path: where it leaves spans out of texts, with their list, which is `given`, or found.
///
/// # Errors
///
/// The list is needed and neither given nor found, is another one, or is given to an index that counts all words; those of
/// [`Index::sketcher`].
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

/// The sketcher of parameters that name this list, and this table if they name one.
///
/// # Errors
///
/// Those of [`Sketcher::with_boilerplate`] and [`Sketcher::with_idf`].
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

/// Writes a copy of a list, durably.
///
/// # Errors
///
/// The system's.
pub fn copy(list: &Boilerplate, folder: &Path) -> anyhow::Result<()> {
    let write = || {
        let mut file = DurableFile::create_new(&folder.join(BOILERPLATE))?;
        file.write_all(list.bytes())?;
        file.finish()
    };
    write().with_context(|| format!("{BOILERPLATE}: cannot write"))
}

/// The spans to find: their length, and how many documents must share them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanCriteria {
    /// Words of a span.
    pub(crate) words: u32,
    /// More documents than this have it.
    pub(crate) more_than: u32,
    pub(crate) repeated_keys: RepeatedKeys,
    pub(crate) memory: usize,
}

/// Totals of one reading, to detect inputs that changed before the second one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReadingTotals {
    records: u64,
    /// The sum of hashes of texts.
    texts: u64,
}

impl ReadingTotals {
    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.texts = self.texts.wrapping_add(more.texts);
    }
}

/// The words of spans: how texts are cut into them, and how many a span has.
#[derive(Clone, Debug)]
pub struct SpanWords {
    shingling: Shingling,
    cutter: Cutter,
    shape: Shape,
    hasher: Hasher,
    words: u32,
}

impl SpanWords {
    /// Of texts that are cut into shingles like this.
    ///
    /// # Errors
    ///
    /// A number of words that is not 1 to 65,535; a shingling that this build does not know.
    pub fn new(shingling: &Shingling, words: u32) -> anyhow::Result<Self> {
        if !(1..=WIDTH_MAX).contains(&(words as usize)) {
            let why = format!("boilerplate_words: expected 1 to {WIDTH_MAX}, found {words}");
            return Err(InvalidOptions::new(why).into());
        }
        let shingling = words_of(shingling)?;
        let (cutter, hasher) = (Cutter::new(&shingling)?, Hasher::new(shingling.seed));
        Ok(Self { shingling, cutter, shape: Shape::words(words as usize), hasher, words })
    }

    /// Working memory of a thread, which counts one text after the other.
    #[must_use]
    pub fn counting(&self) -> SpanCounting<'_> {
        SpanCounting {
            of: self,
            placed: PlacedUnits::default(),
            hashed: Hashed::default(),
            work: FinderScratch::new(self.shape, self.hasher),
        }
    }

    /// The bytes of the list of these spans, which were counted elsewhere: more than `more_than` of `documents` documents have
    /// each of them.
    ///
    /// # Errors
    ///
    /// Scratch files that cannot be written.
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

/// Bytes in which the spans of a list are sorted that were counted elsewhere.
const LIST_MEMORY: usize = 64 << 20;

/// Counts the spans of texts, one after the other: the two steps of [`SpanWords`], for jobs that move rows by themselves, as
/// Spark does. The caller counts in how many texts each fingerprint is, and of the common ones each run of words.
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
    /// Cuts and hashes a text.
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

    /// Passes the fingerprints that a text selects to `each`, each once: the first step. A run of words that many texts share
    /// has a fingerprint that as many select.
    ///
    /// # Errors
    ///
    /// A text of 4 GiB or more.
    pub fn for_each_fingerprint(&mut self, text: &str, each: impl FnMut(u64)) -> twindex::Result<()> {
        self.hash(text)?;
        self.work.for_each_distinct_selected(&self.hashed, each);
        Ok(())
    }

    /// Appends the hashes of the runs of words of a text whose fingerprint is wanted, each once: the second step.
    ///
    /// # Errors
    ///
    /// As there.
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

    /// Cuts and hashes the text of a record; says what was seen.
    fn take(&mut self, parser: &Parser, record: &Record<'_>, memory: usize) -> anyhow::Result<ReadingTotals> {
        record.attached(parser)?; // as then, so that the same records are bad
        check_memory(record, 0, Some(memory), true)?;
        // A text that lost bytes does not count.
        let text = if let Content::Text(text) = record.content { text } else { "" };
        self.hash(text).map_err(|error| record.bad(&error))?;
        Ok(ReadingTotals { records: 1, texts: xxh3_64(text.as_bytes()) })
    }
}

/// The t-grams of the records of a chunk.
#[derive(Default)]
struct ChunkGrams {
    seen: ReadingTotals,
    grams: Vec<[u64; 2]>,
    /// The key of each, and where its t-grams end.
    records: Vec<(Vec<u8>, usize)>,
}

/// How texts are cut into the words of spans: as for shingles, where these are runs of words; without stop words and stems,
/// as spans are what is written.
fn words_of(shingling: &Shingling) -> anyhow::Result<Shingling> {
    let mut words = Shingling::words(1, shingling.seed);
    if matches!(shingling.tokens, Tokens::UnicodeWords | Tokens::WordsSymbols) {
        words = words.with_tokens(shingling.tokens)?;
    }
    (words.normal_form, words.folding) = (shingling.normal_form, shingling.folding);
    Ok(words)
}

/// Reads documents twice, and makes the list of the spans that many of them share in `folder`, where scratch files
/// go, too.
///
/// # Errors
///
/// Inputs that can be read only once, cannot be read, or change meanwhile; the system's.
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
        work: |working: &mut SpanCounting<'_>, seen: &mut ReadingTotals, parser: &Parser, record: Record<'_>| {
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
        RepeatedKeys::Error => RepeatedKeys::Any, // the job that takes the documents says where the first one is
        other => other,
    };
    let budget = Some(MemoryBudget::new(folder, memory / 8));
    let mut keys = seen_keys(&reading, &SketchOptions { repeated_keys, budget, ..SketchOptions::default() }, &*progress)?;
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

/// A filter for texts of this size: a text selects fewer fingerprints than half of its bytes, each with two counters;
/// compressed inputs have more text.
fn filter(bytes: u64, more_than: u32, memory: usize) -> twindex::Result<SharedGrams> {
    let max = memory / 4;
    let wanted = usize::try_from(bytes).unwrap_or(max);
    SharedGrams::new(wanted.clamp(1 << 16, max.max(1 << 16)), more_than)
}

/// Texts that a thread counts at a time, and whose runs of words are held.
const TOGETHER: usize = 256;

/// A text; one that is not UTF-8 has no words.
fn text_of<'t>(text: &&'t [u8]) -> &'t str {
    std::str::from_utf8(text).unwrap_or_default()
}

/// As [`count`], of texts in memory.
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

/// Refuses a list that is not one of such spans.
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

/// The digest of a list.
pub fn digest(list: &Boilerplate) -> u128 {
    LeavesOut::digest(list)
}
