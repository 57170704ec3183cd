//! The main job: documents in; pairs, clusters, the documents to keep and the index out.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. Texts that were
//!    seen before, byte for byte, join the group of the first; the hash is confirmed by comparing the texts.
//! 2. *index*: all documents go into an index, `OUT/index`.
//! 3. *candidates*: groups whose sketches do not differ too much, or that share one of the rarest shingles of each, so
//!    that none is missed, or a band of minima; or elements of their sketches, by `AltaVista`'s stages
//!    ([`twindex_join::altavista`]): shingle merge, pair formation and pair merge.
//! 4. *verify*: the resemblance of each candidate pair, counted shingle by shingle, or estimated.
//! 5. *cluster*: connected components of the verified pairs, and one document of each to keep.
//! 6. *write*.
//!
//! All output is made in a temporary folder beside OUT, which gets its name at the end. [`DedupTexts`] does the same with
//! texts in memory, and writes nothing.

mod against;
mod choices;
mod clusters;
mod corpus;
mod find;
mod groups;
mod lines;
mod near;
mod out;
mod report;
mod score;
mod texts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use twindex::params::Preset;
use twindex::sketch::IdfTable;
use twindex::sys::RealVfs;
use twindex::{Index, Params, Sketch, Sketcher, Writer};

use self::against::{Against, Question};
use self::corpus::Corpus;
use self::find::Done;
use self::groups::{Anchors, NewSet};
use self::near::Limits;
use self::out::Out;
use self::report::common_shingles;
use crate::idf;
use crate::input::{Documents, InputOptions};
use crate::observer::Observer;
use crate::sharing::Sharing;
use crate::sketching::{Rest, Wanted, for_each_looked_up};
use crate::text::TextOptions;
use crate::watch::{self, Stages, Stopwatch};

pub use self::clusters::Keep;
pub use self::near::{Join, Verify};
pub use self::report::{CommonShingle, Report};
pub use self::texts::{DedupTexts, Found};

/// Bytes that work may take unless it is said.
pub const MEMORY: usize = 1 << 30;
/// Less would make a file of every few documents.
pub const MEMORY_MIN: usize = 1 << 16;
/// The least threshold: below it no bands of the minima there are find the share of pairs that the documentation promises.
pub const THRESHOLD_MIN: f64 = 0.05;
/// Members of a bucket from which on not all are paired with all, unless it is said.
pub const MAX_BUCKET: u32 = 10_000;

/// A job: what is read, what makes documents near, and what is written. [`new`](Self::new) has the defaults, and every
/// field can be set.
///
/// ```
/// # fn main() -> twindex_corpus::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let (pages, out) = (dir.path().join("pages.jsonl"), dir.path().join("deduped"));
/// # let text = "the quick brown fox jumps over the lazy dog and sleeps in the sun until the evening";
/// # let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
/// # std::fs::write(&pages, [line("a", text), line("b", text), line("c", "another text")].concat())?;
/// use twindex_corpus::Dedup;
///
/// let mut dedup = Dedup::new([pages], &out);
/// dedup.threshold = Some(0.9);
/// let report = dedup.run()?;
/// assert_eq!((report.kept, report.removed), (2, 1));
/// let kept = std::fs::read_to_string(out.join("kept.jsonl"))?;
/// assert_eq!(kept.lines().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Dedup {
    /// Files and folders of documents; `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// How they are read.
    pub input: InputOptions,
    /// The folder to make for the results.
    pub out: PathBuf,
    /// Replace `out` if an earlier run made it.
    pub force: bool,
    /// What makes documents near.
    pub method: Method,
    /// Resemblance from which on documents are near, 0.05 to 1; 0.8 by default.
    pub threshold: Option<f64>,
    /// Hamming radius of [`Method::Simhash`], 0 to 10; 3 by default.
    pub within: Option<u8>,
    /// An index: documents that are near one of it are dropped before the others are compared.
    pub against: Option<PathBuf>,
    /// The sketch of [`Method::Shingles`]: the hashes of a document that this number divides.
    pub modulus: Option<u32>,
    /// The sketch of [`Method::Shingles`]: so many least hashes of a document, 1 to 4096; 128 by default.
    pub bottom: Option<u16>,
    /// Bands by the name of a scheme; by default those that find 99.5 % of the pairs at the threshold.
    pub preset: Option<Preset>,
    /// Minima that bands for the threshold are made of, 120 to 1024; 120 by default, 512 where signatures verify.
    pub minima: Option<u16>,
    /// How candidates are found; [`Join::Auto`] by default, [`Join::Bands`] where the verification is not exact.
    pub join: Option<Join>,
    /// In how many bands candidates agree, with [`Join::Bands`].
    pub sharing: Sharing,
    /// How candidates are verified; [`Verify::Exact`] by default, [`Verify::Signature`] with [`Method::Shingles`].
    pub verify: Option<Verify>,
    /// Bits kept of each minimum in the index: 1, 2, 4, 8, 16 or 32, or 0 for none; 8 by default.
    pub signature_bits: Option<u8>,
    /// How texts are cut into shingles.
    pub text: TextOptions,
    /// An IDF table that weights the shingles of [`Method::Simhash`].
    pub idf: Option<PathBuf>,
    /// Which document of a cluster stays.
    pub keep: Keep,
    /// Components of more documents are cut into clusters whose members are all near one of them; 2 or more. No limit by
    /// default.
    pub max_cluster: Option<u32>,
    /// Buckets, texts that share a shingle, and groups of identical documents of more than this, 2 or more, are paired as
    /// stars: with their first member and the one before.
    pub max_bucket: u32,
    /// Bytes for work that can go to disk instead, [`MEMORY_MIN`] or more.
    pub memory: usize,
}

/// What makes documents near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `MinHash`: candidates by resemblance, verified.
    Minhash,
    /// Sketches are joined: pairs of documents for each shingle that several sketches have, counted.
    Shingles,
    /// Hamming distance of fingerprints.
    Simhash,
    /// Nothing but equal texts.
    Exact,
}

/// Elements of a sketch of [`Method::Shingles`], unless said.
const BOTTOM: u16 = 128;

impl Dedup {
    /// The job with its defaults: near is a resemblance of 0.8 or more, counted exactly, and the first document of each
    /// cluster stays.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, out: impl Into<PathBuf>) -> Self {
        Self {
            inputs: inputs.into_iter().map(Into::into).collect(),
            input: InputOptions::default(),
            out: out.into(),
            force: false,
            method: Method::Minhash,
            threshold: None,
            within: None,
            against: None,
            modulus: None,
            bottom: None,
            preset: None,
            minima: None,
            join: None,
            sharing: Sharing::default(),
            verify: None,
            signature_bits: None,
            text: TextOptions::default(),
            idf: None,
            keep: Keep::First,
            max_cluster: None,
            max_bucket: MAX_BUCKET,
            memory: MEMORY,
        }
    }

    /// Does it, on the threads of the pool of rayon that it is called in. The results have their place when it returns;
    /// if it fails, nothing of them is left, and an earlier `out` is as it was.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::InvalidOptions); inputs that cannot be read, with file, line and what is wrong; the
    /// system's; those of `twindex`.
    pub fn run(&self) -> anyhow::Result<Report> {
        self.run_watched(&())
    }

    /// As [`run`](Self::run), with somebody who watches.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_watched(&self, observer: &dyn Observer) -> anyhow::Result<Report> {
        self.check()?;
        let out = Out::resolve(&self.out)?;
        out.check_inputs(&self.inputs)?;
        out.check(self.force)?;
        let features = self.input.features;
        let table = self.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()?;
        let table = table.map(Arc::new);
        let params = self.params(table.as_deref())?;
        let documents = self.open(&params)?;
        self.note_recall(&params, observer)?;
        let made = out.make_parents()?;
        let folder = out::temporary_folder(out.parent())?;
        let half_done = observer.half_done(folder.path());

        let report = self.work(params, documents, table.as_ref(), folder.path(), observer)?;
        drop(half_done);
        crate::lost::check()?;
        out.put_in_place(folder, self.force)?;
        made.sync()?;
        Ok(report)
    }

    fn work(
        &self,
        params: Params,
        mut documents: Documents,
        table: Option<&Arc<IdfTable>>,
        folder: &Path,
        observer: &dyn Observer,
    ) -> anyhow::Result<Report> {
        let whole = Stopwatch::start();
        let max_bucket = self.max_bucket as usize;
        let mut stages = Stages::default();

        let watch = Stopwatch::start();
        let against = self.against(&params)?;
        let sketcher = match table {
            None => Sketcher::new(&params)?,
            Some(table) => Sketcher::with_idf(&params, Arc::clone(table))?,
        };
        let index = self.index(folder, params, table)?;
        let mut writer = index.as_ref().map(Index::writer).transpose()?;
        if let Some(writer) = &mut writer {
            writer.set_memory(self.memory / 2);
            writer.set_logged(false); // one commit, and what it makes is looked at as a segment
        }
        let mut corpus = self.corpus(folder, &documents)?;
        let (empty, exact) =
            self.read(&mut documents, &sketcher, against.as_ref(), writer.as_mut(), &mut corpus, observer)?;
        let (read, exact) = (watch.cpu_seconds(), exact.as_secs_f64());
        stages.insert("sketch", (read - exact).max(0.0));
        stages.insert("exact", exact.min(read));
        stages.add("read", watch);

        let limits = Limits { folder, observer, memory: self.memory / 2, max_bucket };
        let Done { near, clusters, pairs, kept_files, .. } =
            self.index_and_find(index.as_ref(), writer, &corpus, against.as_ref(), &limits, &mut stages)?;

        let input = documents.counts().clone();
        let report = Report {
            empty,
            identical: corpus.keys.len() as u64 - corpus.grouped.groups.len() as u64,
            dropped: against.is_some().then_some(corpus.dropped.len() as u64),
            candidates: near.candidates,
            pairs,
            clusters: clusters.sizes.iter().filter(|&&size| size > 1).count() as u64,
            largest_cluster: u64::from(clusters.sizes.iter().copied().max().unwrap_or(0)),
            removed: input.documents - clusters.sizes.len() as u64,
            kept: clusters.sizes.len() as u64,
            kept_files,
            chained: clusters.chained,
            cluster_sizes: clusters.distribution(),
            lowest_resemblance: clusters.lowest.map(|(_, _, resemblance)| resemblance),
            lowest_pair: clusters.lowest_keys(&corpus),
            cut_components: clusters.cut,
            capped_buckets: near.capped.buckets,
            capped_shingles: near.capped.shingles,
            common_shingles: common_shingles(&near, &corpus),
            without_elements: corpus.grouped.sketches.is_some().then(|| corpus.grouped.without_elements()),
            bucket_cap: near.capped.cap,
            largest_bucket: near.capped.largest,
            starred_groups: corpus.grouped.groups.iter().filter(|group| group.is_starred(max_bucket)).count()
                as u64,
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: watch::peak_rss_bytes(),
            stages,
        };
        // The process ends soon, and its memory with it. To free some pieces for each document, one by one, was 4 % of the
        // time of short texts, by `perf`, and the work of one thread.
        std::mem::forget(corpus);
        Ok(report)
    }

    /// Reads all documents into the index and the corpus. Returns how many have no words, and the time that it took to
    /// find copies.
    fn read(
        &self,
        documents: &mut Documents,
        sketcher: &Sketcher,
        against: Option<&Against>,
        mut writer: Option<&mut Writer>,
        corpus: &mut Corpus,
        observer: &dyn Observer,
    ) -> anyhow::Result<(u64, Duration)> {
        let progress = observer.begin("reading", documents.total_bytes());
        let (mut empty, mut finding_copies) = (0, Duration::ZERO);
        let counted = self.method == Method::Exact || self.verify() == Verify::Exact;
        let shingles = self.method != Method::Simhash && counted;
        // Sets that are held know what is distinct; of others it is counted.
        let wanted = Wanted { shingles: shingles && !self.holds_sets(), whole: true, ..Wanted::default() };
        let leaders = self.holds_sets().then(|| corpus.grouped.sets.leaders());
        let look = |sketch: &Sketch, rest: Rest<'_>| {
            let near = against.map(|against| against.nearest(sketch)).transpose()?.flatten();
            // What is dropped is compared with nothing more.
            let told = leaders.as_ref().filter(|_| near.is_none()).map(|leaders| {
                leaders.tell(rest.shingles, Anchors::of(sketch).as_slice(), rest.telling, rest.words)
            });
            Ok((near, told))
        };
        for_each_looked_up(documents, sketcher, &wanted, &*progress, look, |one, (near, told), words| {
            empty += u64::from(one.sketch.is_empty());
            if let Some(near) = near {
                return corpus.drop_near(one, near);
            }
            if let Some(writer) = &mut writer {
                let put = writer.put(one.key.as_slice(), &one.sketch);
                put.with_context(|| format!("{}: cannot index the document", one.place))?;
            }
            // A clock of the processor is a call of the system, and would be the slower part.
            let start = Instant::now();
            let set = told.map_or(NewSet::Counted(words.len() as u64), |told| NewSet::Told(told, words));
            let added = corpus.add(one, set);
            finding_copies += start.elapsed();
            added
        })?;
        Ok((empty, finding_copies))
    }

    /// The index that is made; none where texts are only compared for being equal.
    fn index(
        &self,
        folder: &Path,
        params: Params,
        table: Option<&Arc<IdfTable>>,
    ) -> anyhow::Result<Option<Index>> {
        if self.method == Method::Exact {
            return Ok(None);
        }
        let path = folder.join(out::INDEX);
        Ok(Some(Index::create_from(Arc::new(RealVfs), &path, params, table.map(|table| &**table))?))
    }

    /// What will be remembered of the documents.
    fn corpus(&self, folder: &Path, documents: &Documents) -> anyhow::Result<Corpus> {
        let (parser, memory) = (documents.parser().clone(), self.memory / 4);
        Corpus::new(folder, memory, parser, self.sampled_by())
    }

    /// Whether sets of shingles are ever compared.
    fn holds_sets(&self) -> bool {
        self.resembles() && self.verify() == Verify::Exact
    }

    /// What documents are compared with first.
    fn against(&self, params: &Params) -> anyhow::Result<Option<Against>> {
        let Some(path) = &self.against else { return Ok(None) };
        let question = match self.method {
            Method::Simhash => Question::Within(self.within.unwrap_or(3).into()),
            Method::Minhash | Method::Shingles | Method::Exact => Question::Resembling(self.threshold()),
        };
        Ok(Some(Against::open(path, question, params)?))
    }
}
