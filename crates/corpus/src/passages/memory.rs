//! Finds repeated passages in texts in memory: in one call, or in separate steps for jobs in which a framework such as
//! Spark moves the rows.

use std::path::Path;

use rayon::prelude::*;
use twindex::Error;
use twindex::sys::MemoryBudget;
use twindex_join::SharedProgress;

use crate::dedup_texts::TextAttributes;
use crate::error::InvalidOptions;
use crate::passages::find::filter::Recurring;
use crate::passages::find::finder::{FinderScratch, Gram};
use crate::passages::find::hashed::{Exact, Hashed};
use crate::passages::find::lines::{Grams, Line};
use crate::passages::options::{CutSettings, Passages};
use crate::passages::texts::Hashing;
use crate::settings::rule::{Keep, KeepOrder};
use crate::settings::text::TextOptions;

/// Number of texts per batch.
const TOGETHER: usize = 4096;

/// Finds the passages that texts in memory share with earlier texts. Uses the definition of [`Passages`], without
/// files.
///
/// ```
/// use twindex_corpus::PassagesOfTexts;
///
/// let texts = ["x all rights are reserved y", "All rights are reserved!"];
/// let lines = PassagesOfTexts { min_words: 4, ..PassagesOfTexts::default() }.run(&texts)?;
/// assert_eq!((lines[0].document, lines[0].start, lines[0].end), (1, 0, 23));
/// assert_eq!((lines[0].first_document, lines[0].first_start, lines[0].words), (0, 2, 4));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PassagesOfTexts {
    /// The smallest number of words in a passage, 1 to 65,535. Default: 50.
    pub min_words: usize,
    /// Whether passages are compared by tokens, the default, or by bytes.
    pub exact: Exact,
    /// Whether a passage may repeat an earlier passage of the same text.
    pub within: bool,
    /// The order of texts. Of equal passages, the one in the first text of this order is kept. Default:
    /// [`Keep::First`]. Other orders compare [attributes](Self::run_with_attributes) of texts, as in
    /// [`DedupTexts`](crate::dedup_texts::DedupTexts).
    pub keep: KeepOrder,
    /// Options for splitting texts into words.
    pub text: TextOptions,
    /// Memory budget in bytes. Data that exceeds it is written to scratch files.
    pub memory: usize,
}

impl Default for PassagesOfTexts {
    fn default() -> Self {
        let memory = crate::settings::resources::MEMORY;
        let (exact, keep, text) = (Exact::Tokens, KeepOrder::default(), TextOptions::default());
        Self { min_words: 50, exact, within: false, keep, text, memory }
    }
}

impl PassagesOfTexts {
    /// Finds the repeated passages in the current rayon thread pool, and returns them in the order of the texts. The
    /// documents in a [`Line`] are indices into `texts`, and its starts and ends are byte offsets in their texts.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions), I/O errors of scratch files in the system's temporary folder,
    /// or a text of 4 GiB or more.
    pub fn run(&self, texts: &[&str]) -> anyhow::Result<Vec<Line>> {
        self.run_watched(texts, TextAttributes::default(), &SharedProgress::default())
    }

    /// Runs the job as [`run`](Self::run) does, with the attributes that [`keep`](Self::keep) compares.
    ///
    /// ```
    /// use twindex_corpus::{TextAttributes, FieldNumber, Keep, PassagesOfTexts};
    ///
    /// let texts = ["x all rights are reserved y", "All rights are reserved!"];
    /// let numbers = [1, 2].map(|number| FieldNumber::integer(number).expect("of few bits"));
    /// let job = PassagesOfTexts { min_words: 4, keep: Keep::Max("score".into()).into(), ..PassagesOfTexts::default() };
    /// let lines = job.run_with_attributes(&texts, TextAttributes { numbers: &[&numbers], ..TextAttributes::default() })?;
    /// assert_eq!((lines[0].document, lines[0].first_document), (0, 1));
    /// # Ok::<(), anyhow::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run). [`InvalidOptions`](crate::error::InvalidOptions) if numbers or keys do not
    /// have one entry per text, or if `beside` has a history or `inside` values.
    pub fn run_with_attributes(
        &self,
        texts: &[&str],
        beside: TextAttributes<'_>,
    ) -> anyhow::Result<Vec<Line>> {
        self.run_watched(texts, beside, &SharedProgress::default())
    }

    /// Runs the job as [`run_with_attributes`](Self::run_with_attributes) does. Another thread can read `watched` for
    /// progress and use it to cancel the run. The stages are `counting` and `finding`; both count texts.
    ///
    /// # Errors
    ///
    /// The errors of [`run_with_attributes`](Self::run_with_attributes) and of [`SharedProgress::check`].
    pub fn run_watched(
        &self,
        texts: &[&str],
        beside: TextAttributes<'_>,
        watched: &SharedProgress,
    ) -> anyhow::Result<Vec<Line>> {
        let how = self.how()?;
        beside.check(&self.keep, texts.len())?;
        if beside.history > 0 || beside.inside.is_some() {
            let why = "passages of texts have no history, and no values beside them to compare inside";
            return Err(InvalidOptions::new(why).into());
        }
        if let Some(long) = texts.iter().map(|text| text.len()).find(|&bytes| u32::try_from(bytes).is_err()) {
            return Err(
                Error::Limit { what: "bytes of a text", limit: u32::MAX.into(), found: long as u64 }.into()
            );
        }
        if u32::try_from(texts.len()).is_err() {
            let found = texts.len() as u64;
            return Err(Error::Limit { what: "texts", limit: u32::MAX.into(), found }.into());
        }
        let scratch = tempfile::tempdir()
            .map_err(|error| Error::io("create a scratch folder in", &std::env::temp_dir(), error))?;
        let bytes = texts.iter().map(|text| text.len() as u64).sum();
        let recurring = Recurring::new(self.job().filter_bytes(Some(bytes)))?;
        let state = || State::new(&how);
        watched.begin("counting", texts.len() as u64);
        let count = |state: &mut State<'_>, text: &&str| {
            watched.advance(1)?;
            state.hashing.hash(text, &mut state.hashed);
            state.work.count(&state.hashed, &recurring, self.within);
            Ok::<u32, Error>(state.hashed.words_of_all())
        };
        let words = texts.par_iter().map_init(state, count).collect::<Result<Vec<u32>, Error>>()?;
        let order = self.order(&words, beside, scratch.path())?;
        let rank_of = |document: usize| order.as_ref().map_or(document as u32, |order| order.ranks[document]);
        watched.begin("finding", texts.len() as u64);
        let mut grams = Grams::of_words(scratch.path(), self.memory / 4, how.shape.width());
        for (number, some) in texts.chunks(TOGETHER).enumerate() {
            let found: Vec<Vec<Gram>> = some
                .par_iter()
                .map_init(state, |state, text| {
                    let mut found = Vec::new();
                    watched.advance(1)?;
                    state.hashing.hash(text, &mut state.hashed);
                    state.work.for_each_recurring(&state.hashed, &recurring, |gram| found.push(gram));
                    Ok(found)
                })
                .collect::<Result<_, Error>>()?;
            for (document, found) in (number * TOGETHER..).zip(found) {
                found.iter().try_for_each(|gram| grams.push(rank_of(document), gram))?;
            }
        }
        let mut lines = Vec::new();
        let document = |rank: u32| order.as_ref().map_or(rank, |order| order.documents[rank as usize]);
        grams.finish_by_rank(self.within, document)?.for_each_line(|line| {
            lines.push(line);
            watched.check()
        })?;
        Ok(lines)
    }
}

/// The order of texts: `documents` lists the texts by rank, `ranks` has the rank of each text.
struct Order {
    documents: Vec<u32>,
    ranks: Vec<u32>,
}

impl PassagesOfTexts {
    /// Returns a job with the same options, but without inputs and outputs.
    fn job(&self) -> Passages {
        let mut job = Passages::new(Vec::<std::path::PathBuf>::new(), "");
        job.min_words = Some(self.min_words);
        job.exact = self.exact;
        job.text = self.text.clone();
        job.memory = self.memory;
        job
    }

    /// Returns the rules by which texts are split into units and hashed.
    pub(crate) fn how(&self) -> anyhow::Result<CutSettings> {
        self.job().how()
    }

    /// Sorts texts, given their word counts, by [`keep`](Self::keep). Returns `None` for the input order.
    fn order(
        &self,
        words: &[u32],
        beside: TextAttributes<'_>,
        folder: &Path,
    ) -> anyhow::Result<Option<Order>> {
        if self.keep.single() == Some(&Keep::First) {
            return Ok(None);
        }
        let budget = MemoryBudget::new(folder, self.memory / 4);
        let by_key = beside.sorted_keys(&budget, self.memory / 4)?;
        let values = beside.values(&self.keep, &budget, |at| words[at as usize].into(), words.len())?;
        let keep = values.sorted(&budget, self.memory / 4)?;
        let choice =
            |&document: &u32| (keep.choice(document), keep.place(document, by_key.as_ref()), document);
        let mut documents: Vec<u32> = (0..words.len() as u32).collect();
        documents.sort_by_cached_key(choice);
        let mut ranks = vec![0; documents.len()];
        for (rank, &document) in (0..).zip(&documents) {
            ranks[document as usize] = rank;
        }
        Ok(Some(Order { documents, ranks }))
    }
}

/// Working memory of a thread.
struct State<'h> {
    hashing: Hashing<'h>,
    hashed: Hashed,
    work: FinderScratch,
}

impl<'h> State<'h> {
    fn new(how: &'h CutSettings) -> Self {
        let work = FinderScratch::new(how.shape, how.hasher);
        Self { hashing: Hashing::new(how), hashed: Hashed::default(), work }
    }
}

/// Runs the steps of [`PassagesOfTexts`] for one text at a time. The caller combines the results of all texts. A
/// *t-gram* is a run of `min_words` words. A fingerprint recurs if it is [selected](Self::for_each_selected) at least
/// twice. Every t-gram that occurs twice is among the t-grams [with recurring fingerprints](Self::for_each_gram), and
/// t-grams with the same hash are equal. From these t-grams the caller forms the passages: the first occurrence of a
/// t-gram is the source of the others, and consecutive positions with consecutive sources form a passage.
///
/// ```
/// use std::collections::HashSet;
/// use twindex_corpus::{PassageSteps, PassagesOfTexts};
///
/// let mut steps = PassageSteps::new(&PassagesOfTexts { min_words: 4, ..PassagesOfTexts::default() })?;
/// let fingerprints = |text: &str, steps: &mut PassageSteps| -> anyhow::Result<HashSet<u64>> {
///     let mut all = HashSet::new();
///     steps.for_each_selected(text, |fingerprint| { all.insert(fingerprint); })?;
///     Ok(all)
/// };
/// let texts = ["x all rights are reserved y", "All rights are reserved!"];
/// let [a, b] = [fingerprints(texts[0], &mut steps)?, fingerprints(texts[1], &mut steps)?];
/// let recurring: HashSet<u64> = a.intersection(&b).copied().collect();
/// let mut grams = Vec::new();
/// for text in texts {
///     steps.for_each_gram(text, |fingerprint| recurring.contains(&fingerprint), |gram| grams.push(gram))?;
/// }
/// let equal = |a: &&twindex_corpus::PassageGram| grams.iter().filter(|b| a.hash == b.hash).count() == 2;
/// assert_eq!(grams.iter().filter(equal).map(|gram| gram.position).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct PassageSteps {
    how: CutSettings,
    hashed: Hashed,
    work: FinderScratch,
}

impl PassageSteps {
    /// Creates the steps of a job. Ignores the job's `within`, `keep` and `memory`.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions).
    pub fn new(job: &PassagesOfTexts) -> anyhow::Result<Self> {
        let how = job.how()?;
        let work = FinderScratch::new(how.shape, how.hasher);
        Ok(Self { how, hashed: Hashed::default(), work })
    }

    fn hash(&mut self, text: &str) -> twindex::Result<()> {
        if u32::try_from(text.len()).is_err() {
            let found = text.len() as u64;
            return Err(Error::Limit { what: "bytes of a text", limit: u32::MAX.into(), found });
        }
        Hashing::new(&self.how).hash(text, &mut self.hashed);
        Ok(())
    }

    /// Passes the fingerprint of each selected position in a text to `each`. Returns the number of words in the text.
    ///
    /// # Errors
    ///
    /// The text has 4 GiB or more.
    pub fn for_each_selected(&mut self, text: &str, mut each: impl FnMut(u64)) -> twindex::Result<u32> {
        self.hash(text)?;
        self.work.for_each_selected(&self.hashed, |_, fingerprint| each(fingerprint));
        Ok(self.hashed.words_of_all())
    }

    /// Passes to `each` the t-grams of a text whose selected fingerprint `is_wanted` accepts. Returns the number of
    /// words in the text.
    ///
    /// # Errors
    ///
    /// The text has 4 GiB or more.
    pub fn for_each_gram(
        &mut self,
        text: &str,
        is_wanted: impl FnMut(u64) -> bool,
        each: impl FnMut(Gram),
    ) -> twindex::Result<u32> {
        self.hash(text)?;
        self.work.for_each_gram(&self.hashed, is_wanted, each);
        Ok(self.hashed.words_of_all())
    }
}
