//! `twindex dedup`: the main job. Documents in; pairs, clusters, the documents to keep and the index out.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. Texts that were
//!    seen before, byte for byte, join the group of the first; the hash is confirmed by comparing the texts.
//! 2. *index*: all documents go into an index, `OUT/index`.
//! 3. *candidates*: groups whose sketches do not differ too much, or that share one of the rarest shingles of each, so
//!    that none is missed, or a band of minima; or elements of their sketches, by `AltaVista`'s stages
//!    ([`twindex_join::elements`]): shingle merge, pair formation and pair merge.
//! 4. *verify*: the resemblance of each candidate pair, counted shingle by shingle, or estimated.
//! 5. *cluster*: connected components of the verified pairs, and one document of each to keep.
//! 6. *write*.
//!
//! All output is made in a temporary folder beside OUT, which gets its name at the end.

mod against;
mod choices;
mod clusters;
mod corpus;
mod find;
mod lines;
mod near;
mod out;
mod score;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use twindex::params::BOTTOM_MAX;
use twindex::params::Preset;
use twindex::sketch::IdfTable;
use twindex::sys::RealVfs;
use twindex::{Index, Params, Sketch, Sketcher, Writer};

use self::against::{Against, Question};
use self::clusters::Keep;
use self::corpus::{Anchors, Corpus, NewSet};
use self::find::Done;
use self::near::{Join, Limits, Verify};
use self::out::Out;
use self::summary::{Report, common_shingles};
use super::idf;
use crate::feature_args::FeatureArgs;
use crate::input::Documents;
use crate::interrupt::HalfDone;
use crate::options::{InputArgs, Output, Work};
use crate::param_args::{parse_minima, parse_preset, parse_signature_bits, parse_threshold};
use crate::progress::Progress;
use crate::report::{self, Stages, Stopwatch};
use crate::sketching::{Rest, Wanted, for_each_looked_up};
use crate::text_args::TextArgs;

/// Options of `dedup`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --threshold 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    twindex dedup today.jsonl --against yesterday/index -o today\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/report.html   what was found, as a page that stands alone\n\
    OUT/pairs.tsv     a, b, resemblance, intersection, union: every pair found, a < b bytewise, sorted\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input and in its form: kept.csv, .tsv, .parquet, .wet,\n\
                      .warc of such inputs, one for each header or set of columns\n\
    OUT/against.tsv   key, other, resemblance, standard_error: with --against, the documents that were dropped for it\n    \
    OUT/index         the index, for `query`, `stats`, `verify` (not with --method exact)\n\n\
    A run that is killed leaves its folder, `.twindex-dedup-XXXX` beside OUT, which may be deleted.")]
pub(crate) struct Dedup {
    #[command(flatten)]
    input: InputArgs,
    /// Folder to make for the results
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Replace OUT if an earlier run made it
    #[arg(long)]
    force: bool,
    /// Resemblance from which on documents are near-duplicates, 0.05 to 1 [default: 0.8]
    #[arg(long, value_name = "J", value_parser = parse_threshold)]
    threshold: Option<f64>,
    /// What makes documents near: MinHash candidates confirmed exactly, shingles that sketches have in common, simhash
    /// distance, or equal texts only
    #[arg(long, value_enum, default_value = "minhash")]
    method: Method,
    /// Hamming radius for --method simhash, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Drop the documents that are near one of this index, by the signatures or fingerprints in it, before the others
    /// are compared; it must have been made with the same options
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// The sketch of --method shingles: the hashes of a document that M divides, one in M; the paper took 25
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "bottom")]
    modulus: Option<u32>,
    /// The sketch of --method shingles: the T least hashes of a document, 1 to 4096 [default: 128]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=i64::from(BOTTOM_MAX)))]
    bottom: Option<u16>,
    /// Bands by the name of a scheme, as in `twindex build`, instead of those that find 99.5 % of the pairs at the
    /// threshold
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    preset: Option<Preset>,
    /// Minima that bands for the threshold are made of, 120 to 1024 [default: 120; 512 with --verify signature, as more
    /// of them make estimates better]
    #[arg(long, value_name = "N", value_parser = parse_minima(), conflicts_with = "preset")]
    minima: Option<u16>,
    /// How candidates are found; bands miss some pairs near the threshold [default: auto, or bands where the
    /// verification is not exact]
    #[arg(long, value_enum, value_name = "HOW")]
    join: Option<Join>,
    #[command(flatten)]
    features: FeatureArgs,
    /// How candidates are verified [default: exact, or signature with --method shingles]
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<Verify>,
    /// Bits kept of each minimum in the index: 1, 2, 4, 8, 16 or 32, or 0 for none [default: 8]
    #[arg(long, value_name = "BITS", value_parser = parse_signature_bits)]
    signature_bits: Option<u8>,
    #[command(flatten)]
    text: TextArgs,
    /// Weight the shingles of --method simhash by this table, from `twindex idf`; text is cut as for the table
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Which document of a cluster to keep: the first of the input, the one with the longest text (of equal ones
    /// the first), or the one with the smallest key
    #[arg(long, value_enum, default_value = "first")]
    keep: Keep,
    /// Components of near documents with more than this are cut into clusters whose members are all near one of them;
    /// chains cannot then join what has nothing in common [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    max_cluster: Option<u32>,
    /// Buckets, texts that share a shingle, and groups of identical documents of more than this are not paired all with
    /// all, but as stars, with their first member and the one before; fewer where that would not bound the work, and
    /// the summary says so
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
    max_bucket: u32,
    #[command(flatten)]
    resources: Work,
    #[command(flatten)]
    output: Output,
}

/// Elements of a sketch of `--method shingles`, unless said.
const BOTTOM: u16 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Minhash,
    /// Sketches are joined: pairs of documents for each shingle that several sketches have, counted
    Shingles,
    Simhash,
    Exact,
}

impl Dedup {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.resources.apply()?;
        self.check()?;
        let out = Out::resolve(&self.out)?;
        out.check_inputs(&self.input.inputs)?;
        out.check(self.force)?;
        let features = self.input.reads_features();
        let table = self.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()?;
        let table = table.map(Arc::new);
        let params = self.params(table.as_deref())?;
        let documents = Documents::open(&self.input.inputs, &self.input.options())?;
        self.note_recall(&params)?;
        let made = out.make_parents()?;
        let folder = out::temporary_folder(out.parent())?;
        let half_done = HalfDone::new(folder.path());

        let report = self.work(params, documents, table.as_ref(), folder.path())?;
        drop(half_done);
        crate::lost::check()?;
        out.put_in_place(folder, self.force)?;
        made.sync()?;
        if self.output.json {
            report::print_json(&report)?;
        } else if !self.output.quiet {
            report::print_lines(&self.summary(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn work(
        &self,
        params: Params,
        mut documents: Documents,
        table: Option<&Arc<IdfTable>>,
        folder: &Path,
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
            writer.set_memory(self.resources.memory / 2);
            writer.set_logged(false); // one commit, and what it makes is looked at as a segment
        }
        let mut corpus = self.corpus(folder, &documents)?;
        let (empty, exact) =
            self.read(&mut documents, &sketcher, against.as_ref(), writer.as_mut(), &mut corpus)?;
        let (read, exact) = (watch.cpu_seconds(), exact.as_secs_f64());
        stages.insert("sketch", (read - exact).max(0.0));
        stages.insert("exact", exact.min(read));
        stages.add("read", watch);

        let limits = Limits { folder, memory: self.resources.memory / 2, max_bucket };
        let Done { near, clusters, pairs, kept_files, .. } =
            self.index_and_find(index.as_ref(), writer, &corpus, against.as_ref(), &limits, &mut stages)?;

        let input = documents.counts().clone();
        let report = Report {
            empty,
            identical: corpus.keys.len() as u64 - corpus.groups.len() as u64,
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
            without_elements: corpus.sketches.is_some().then(|| corpus.without_elements()),
            bucket_cap: near.capped.cap,
            largest_bucket: near.capped.largest,
            starred_groups: corpus.groups.iter().filter(|group| group.is_starred(max_bucket)).count() as u64,
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
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
    ) -> anyhow::Result<(u64, Duration)> {
        let progress = Progress::bytes(documents.total_bytes(), "reading", self.output.quiet);
        let (mut empty, mut finding_copies) = (0, Duration::ZERO);
        let counted = self.method == Method::Exact || self.verify() == Verify::Exact;
        let shingles = self.method != Method::Simhash && counted;
        // Sets that are held know what is distinct; of others it is counted.
        let wanted = Wanted { shingles: shingles && !self.holds_sets(), whole: true, ..Wanted::default() };
        let leaders = self.holds_sets().then(|| corpus.sets.leaders());
        let look = |sketch: &Sketch, rest: Rest<'_>| {
            let near = against.map(|against| against.nearest(sketch)).transpose()?.flatten();
            // What is dropped is compared with nothing more.
            let told = leaders.as_ref().filter(|_| near.is_none()).map(|leaders| {
                leaders.tell(rest.shingles, Anchors::of(sketch).as_slice(), rest.telling, rest.words)
            });
            Ok((near, told))
        };
        for_each_looked_up(documents, sketcher, &wanted, &progress, look, |one, (near, told), words| {
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
        progress.finish();
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
        let (parser, memory) = (documents.parser().clone(), self.resources.memory / 4);
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
