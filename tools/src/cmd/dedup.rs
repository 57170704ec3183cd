//! `twindex dedup`: the main job. Documents in; pairs, clusters, the documents to keep and the index out.
//!
//! 1. *read*: each document is hashed and, if its text is new, shingled and sketched, on all cores. Texts that were
//!    seen before, byte for byte, join the group of the first; the hash is confirmed by comparing the texts.
//! 2. *index*: all documents go into an index, `OUT/index`.
//! 3. *candidates*: groups that share a band of minima.
//! 4. *verify*: the resemblance of each candidate pair, counted shingle by shingle.
//! 5. *cluster*: connected components of the verified pairs, and one document of each to keep.
//! 6. *write*.
//!
//! All output is made in a temporary folder beside OUT, which gets its name at the end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;
use twindex::bands::Banding;
use twindex::join::{Candidates, Forest, ShingleSets, candidates, pairs_within};
use twindex::sys::Spill;
use twindex::{Index, Key, Params, Resemblance, Sketcher, Snapshot};

use crate::input::{Counts, Documents, InputOptions, Place, text_of_line};
use crate::options::{Common, InputArgs, Usage, parse_resemblance};
use crate::progress::Progress;
use crate::report::{self, Stopwatch, count, counted};
use crate::sketching::{Sketched, for_each_sketched};
use crate::tsv;

/// Options of `dedup`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --threshold 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/pairs.tsv     a, b, resemblance, intersection, union: every pair found, a < b bytewise, sorted\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input\n\
    OUT/index         the index, for `query`, `stats`, `verify` (not with --method exact)")]
pub(crate) struct Dedup {
    #[command(flatten)]
    input: InputArgs,
    /// Folder to make for the results
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Replace OUT if an earlier run made it
    #[arg(long)]
    force: bool,
    /// Resemblance from which on documents are near-duplicates, above 0 up to 1 [default: 0.8]
    #[arg(long, value_name = "J", value_parser = parse_resemblance)]
    threshold: Option<f64>,
    /// What makes documents near: MinHash candidates confirmed exactly, simhash distance, or equal texts only
    #[arg(long, value_enum, default_value = "minhash")]
    method: Method,
    /// Hamming radius for --method simhash, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Words in a shingle, 1 to 16
    #[arg(long, value_name = "W", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=16))]
    words: u8,
    /// Which document of a cluster to keep: the first of the input, the one with the longest text (of equal ones
    /// the first), or the one with the smallest key
    #[arg(long, value_enum, default_value = "first")]
    keep: Keep,
    /// Buckets and groups of identical documents larger than this are not paired all with all, but with their
    /// first member and their neighbours
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
    max_bucket: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Minhash,
    Simhash,
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keep {
    First,
    Longest,
    SmallestKey,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    input: Counts,
    identical: u64,
    candidates: u64,
    pairs: u64,
    clusters: u64,
    largest_cluster: u64,
    removed: u64,
    kept: u64,
    chained: u64,
    capped_buckets: u64,
    starred_groups: u64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
    stages: Vec<Stage>,
}

/// CPU seconds of a stage.
#[derive(Serialize)]
struct Stage {
    name: &'static str,
    cpu_seconds: f64,
    seconds: f64,
}

/// A group of documents with the same text.
struct Group {
    /// Its documents, in the order of the input.
    members: Vec<u32>,
    /// Bytes of the text.
    text_bytes: u64,
    /// Distinct shingles; none for a text without words.
    shingles: u64,
    /// The group of another text with the same hash, if that ever happens.
    same_hash: Option<u32>,
}

/// All that is remembered of the documents.
struct Corpus {
    keys: Vec<Arc<[u8]>>,
    places: Vec<Place>,
    group_of: Vec<u32>,
    /// Where each document's line for `kept.jsonl` stands in `lines`.
    line_at: Vec<(u64, u32)>,
    lines: Spill,
    by_key: HashMap<Arc<[u8]>, u32>,
    by_content: HashMap<u128, u32>,
    groups: Vec<Group>,
    /// A set for each group, with its number.
    sets: ShingleSets,
    options: InputOptions,
}

/// How near two groups are.
#[derive(Clone, Copy, Debug)]
enum Score {
    Resemblance { intersection: usize, union: usize },
    Distance(u32),
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // Two empty texts that are equal have nothing to divide.
            Self::Resemblance { union: 0, .. } => write!(f, "1.000000\t0\t0"),
            Self::Resemblance { intersection, union } => {
                write!(f, "{:.6}\t{intersection}\t{union}", intersection as f64 / union as f64)
            }
            Self::Distance(distance) => distance.fmt(f),
        }
    }
}

/// All that stands in OUT.
const OUTPUTS: [&str; 4] = ["pairs.tsv", "clusters.tsv", "kept.jsonl", "index"];

/// A folder that goes when it is dropped, on the file system of the results.
fn temporary_folder(parent: &Path) -> anyhow::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".twindex-dedup-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(parent).with_context(|| format!("{}: cannot create a folder in it", parent.display()))
}

/// A verified pair of groups, the smaller number first.
type Pair = (u32, u32, Score);

impl Dedup {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.common.apply()?;
        if self.input.inputs.is_empty() {
            return Err(Usage(
                "nothing to deduplicate: name INPUT files or folders, or - for standard input",
            )
            .into());
        }
        if self.within.is_some() && self.method != Method::Simhash {
            return Err(Usage("--within goes with --method simhash").into());
        }
        if self.threshold.is_some() && self.method != Method::Minhash {
            return Err(Usage("--threshold goes with --method minhash").into());
        }
        self.check_out()?;
        let documents = Documents::open(&self.input.inputs, &self.input.options())?;
        let parent = match self.out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).with_context(|| format!("{}: cannot create", parent.display()))?;
        let folder = temporary_folder(parent)?;

        let report = self.work(documents, folder.path())?;
        self.put_in_place(folder, parent)?;
        if self.common.json {
            report::print_json(&report)?;
        } else if !self.common.quiet {
            report::print_lines(&self.summary(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses to overwrite, before any work is done.
    fn check_out(&self) -> anyhow::Result<()> {
        let out = self.out.display();
        if self.out.symlink_metadata().is_err() {
            return Ok(());
        }
        ensure!(self.force, "{out}: already exists; choose another folder, or --force to replace it");
        let refuse = |why: &str| {
            bail!("{out}: {why}, so --force does not replace it; choose another folder");
        };
        let Ok(entries) = fs::read_dir(&self.out) else { return refuse("not made by `twindex dedup`") };
        let names: Vec<_> =
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
        if let Some(other) = names.iter().find(|name| OUTPUTS.iter().all(|ours| *name != ours)) {
            return refuse(&format!("`{}` in it was not made by `twindex dedup`", other.display()));
        }
        Ok(())
    }

    /// Gives the results their name. Earlier ones step aside first and come back if that fails.
    fn put_in_place(&self, folder: tempfile::TempDir, parent: &Path) -> anyhow::Result<()> {
        let out = self.out.display();
        self.check_out()?; // something may have come there meanwhile
        let aside = temporary_folder(parent)?;
        let earlier = aside.path().join("earlier");
        let was_there = self.out.symlink_metadata().is_ok();
        if was_there {
            fs::rename(&self.out, &earlier)
                .with_context(|| format!("{out}: cannot move the earlier results aside"))?;
        }
        if let Err(error) = fs::rename(folder.path(), &self.out) {
            if was_there && fs::rename(&earlier, &self.out).is_err() {
                let kept = aside.keep().join("earlier");
                bail!("{out}: cannot be replaced: {error}; the earlier results are at {}", kept.display());
            }
            return Err(error).with_context(|| format!("{out}: cannot give the results their name"));
        }
        let _ = folder.keep(); // it is no longer at its temporary name
        Ok(())
    }

    fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(0.8)
    }

    /// The parameters of `OUT/index`.
    fn params(&self) -> twindex::Result<Params> {
        let builder = Params::builder().words(self.words);
        match self.method {
            Method::Minhash | Method::Exact => {
                let banding = Banding::for_threshold(self.threshold());
                builder.minhash(banding.bands, banding.rows).build()
            }
            Method::Simhash => builder.simhash(self.within.unwrap_or(3)).build(),
        }
    }

    fn work(&self, mut documents: Documents, folder: &Path) -> anyhow::Result<Report> {
        let whole = Stopwatch::start();
        let mut stages = Vec::new();
        let mut stage = |name, watch: Stopwatch| {
            stages.push(Stage { name, cpu_seconds: watch.cpu_seconds(), seconds: watch.seconds() });
        };

        let watch = Stopwatch::start();
        let params = self.params()?;
        let sketcher = Sketcher::new(&params);
        let index = match self.method {
            Method::Exact => None,
            Method::Minhash | Method::Simhash => Some(Index::create(folder.join("index"), params)?),
        };
        let mut writer = index.as_ref().map(Index::writer).transpose()?;
        if let Some(writer) = &mut writer {
            writer.set_memory(self.common.memory / 2);
        }
        let mut corpus = Corpus::new(folder, self.common.memory / 4, self.input.options())?;
        let progress = Progress::bytes(documents.total_bytes(), "reading", self.common.quiet);
        for_each_sketched(&mut documents, &sketcher, self.method == Method::Minhash, &progress, |one| {
            if let Some(writer) = &mut writer {
                let put = writer.put(one.document.key.as_slice(), &one.sketch);
                put.with_context(|| format!("{}: cannot index the document", one.document.place))?;
            }
            corpus.add(one)
        })?;
        progress.finish();
        stage("read", watch);

        let watch = Stopwatch::start();
        if let Some(mut writer) = writer {
            writer.commit()?;
        }
        stage("index", watch);

        let (mut found, mut pairs) = (Candidates::default(), Vec::new());
        if let Some(index) = &index {
            let snapshot = index.snapshot();
            if self.method == Method::Minhash {
                let watch = Stopwatch::start();
                found = candidates(&snapshot, self.max_bucket as usize, |place| {
                    corpus.group_at(place.key().ok()?.as_key())
                })?;
                stage("candidates", watch);
                let watch = Stopwatch::start();
                pairs = self.verify(&corpus, &found.pairs)?;
                stage("verify", watch);
            } else {
                let watch = Stopwatch::start();
                pairs = near_groups(&corpus, &snapshot, self.within.unwrap_or(3).into())?;
                stage("verify", watch);
            }
        }

        let watch = Stopwatch::start();
        let clusters = self.cluster(&corpus, &pairs)?;
        stage("cluster", watch);

        let watch = Stopwatch::start();
        let by_key = corpus.documents_by_key();
        let pair_count = self.write_pairs(&corpus, &by_key, &pairs, &folder.join("pairs.tsv"))?;
        clusters.write(&corpus, &by_key, &folder.join("clusters.tsv"))?;
        write_kept(&corpus, &clusters, &folder.join("kept.jsonl"))?;
        stage("write", watch);

        let input = documents.counts().clone();
        Ok(Report {
            identical: input.documents - corpus.groups.len() as u64,
            candidates: found.pairs.len() as u64,
            pairs: pair_count,
            clusters: clusters.sizes.iter().filter(|&&size| size > 1).count() as u64,
            largest_cluster: u64::from(clusters.sizes.iter().copied().max().unwrap_or(0)),
            removed: input.documents - clusters.sizes.len() as u64,
            kept: clusters.sizes.len() as u64,
            chained: clusters.chained,
            capped_buckets: found.capped_buckets,
            starred_groups: corpus.groups.iter().filter(|group| self.is_starred(group)).count() as u64,
            input,
            cpu_seconds: whole.cpu_seconds(),
            seconds: whole.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
            stages,
        })
    }

    fn is_starred(&self, group: &Group) -> bool {
        group.members.len() > self.max_bucket as usize
    }

    fn verify(&self, corpus: &Corpus, candidates: &[(u32, u32)]) -> anyhow::Result<Vec<Pair>> {
        let threshold = self.threshold();
        let verified: Vec<Option<Pair>> = candidates
            .par_iter()
            .map(|&(a, b)| {
                let resemblance = corpus.sets.resemblance_from(a, b, threshold)?;
                Ok(resemblance.map(|resemblance| (a, b, score_of(resemblance))))
            })
            .collect::<twindex::Result<_>>()?;
        Ok(verified.into_iter().flatten().collect())
    }

    /// Connected components, and the document to keep of each.
    fn cluster(&self, corpus: &Corpus, pairs: &[Pair]) -> anyhow::Result<Clusters> {
        let mut forest = Forest::new(corpus.groups.len() as u32);
        let mut distances: HashMap<(u32, u32), u32> = HashMap::new();
        for &(a, b, score) in pairs {
            forest.join(a, b);
            if let Score::Distance(distance) = score {
                distances.insert((a, b), distance);
            }
        }
        let mut kept: HashMap<u32, u32> = HashMap::new();
        for document in 0..corpus.keys.len() as u32 {
            let root = forest.root(corpus.group_of[document as usize]);
            match kept.entry(root) {
                Entry::Vacant(vacant) => {
                    vacant.insert(document);
                }
                Entry::Occupied(mut occupied) => {
                    let other = *occupied.get();
                    let better = match self.keep {
                        Keep::First => false, // documents come in the order of the input
                        Keep::Longest => corpus.group(document).text_bytes > corpus.group(other).text_bytes,
                        Keep::SmallestKey => corpus.keys[document as usize] < corpus.keys[other as usize],
                    };
                    if better {
                        occupied.insert(document);
                    }
                }
            }
        }
        let kept_of_group: Vec<u32> =
            (0..corpus.groups.len() as u32).map(|group| kept[&forest.root(group)]).collect();
        let scores: Vec<Option<Score>> = (0..corpus.groups.len() as u32)
            .into_par_iter()
            .map(|group| {
                let other = corpus.group_of[kept_of_group[group as usize] as usize];
                Ok(match self.method {
                    Method::Minhash if group != other => {
                        Some(score_of(corpus.sets.resemblance(group, other)?))
                    }
                    Method::Simhash if group != other => {
                        distances.get(&(group.min(other), group.max(other))).copied().map(Score::Distance)
                    }
                    Method::Simhash => Some(Score::Distance(0)),
                    Method::Minhash | Method::Exact => Some(corpus.itself(group)),
                })
            })
            .collect::<twindex::Result<_>>()?;
        Ok(Clusters::new(corpus, kept_of_group, scores, self.threshold()))
    }

    /// Writes every pair of documents, sorted; returns how many.
    fn write_pairs(
        &self,
        corpus: &Corpus,
        by_key: &[u32],
        pairs: &[Pair],
        path: &Path,
    ) -> anyhow::Result<u64> {
        let mut neighbours: Vec<Vec<(u32, Score)>> = vec![Vec::new(); corpus.groups.len()];
        for &(a, b, score) in pairs {
            neighbours[a as usize].push((b, score));
            neighbours[b as usize].push((a, score));
        }
        // A large group stands in pairs with its first document only.
        let representatives = |group: u32| {
            let group = &corpus.groups[group as usize];
            if self.is_starred(group) { &group.members[..1] } else { &group.members[..] }
        };
        let columns =
            if self.method == Method::Simhash { "distance" } else { "resemblance\tintersection\tunion" };
        let mut written = 0;
        write_file(path, |out| {
            writeln!(out, "a\tb\t{columns}")?;
            let mut partners: Vec<(u32, Score)> = Vec::new();
            for &document in by_key {
                let key = &corpus.keys[document as usize];
                let number = corpus.group_of[document as usize];
                let group = &corpus.groups[number as usize];
                let itself =
                    if self.method == Method::Simhash { Score::Distance(0) } else { corpus.itself(number) };
                partners.clear();
                let starred = self.is_starred(group);
                let identical = if starred && document != group.members[0] {
                    &group.members[..1]
                } else {
                    &group.members[..]
                };
                partners.extend(identical.iter().map(|&other| (other, itself)));
                if !starred || document == group.members[0] {
                    for &(other, score) in &neighbours[number as usize] {
                        partners.extend(representatives(other).iter().map(|&other| (other, score)));
                    }
                }
                // Each pair is written by its smaller key.
                partners.retain(|&(other, _)| corpus.keys[other as usize] > *key);
                partners.sort_unstable_by(|a, b| corpus.keys[a.0 as usize].cmp(&corpus.keys[b.0 as usize]));
                for &(other, score) in &partners {
                    tsv::write_field(out, key)?;
                    out.write_all(b"\t")?;
                    tsv::write_field(out, &corpus.keys[other as usize])?;
                    writeln!(out, "\t{score}")?;
                }
                written += partners.len() as u64;
            }
            Ok(())
        })?;
        Ok(written)
    }

    fn summary(&self, report: &Report) -> Vec<String> {
        let input = &report.input;
        let share = report.removed as f64 * 100.0 / input.documents.max(1) as f64;
        let mut lines = vec![
            format!(
                "{}, {} of text, in {:.1} s",
                counted(input.documents, "document"),
                report::bytes(input.text_bytes),
                report.seconds
            ),
            format!(
                "  identical  {:>11}  copies of another document, byte for byte",
                count(report.identical)
            ),
        ];
        lines.push(match self.method {
            Method::Minhash => format!(
                "  near       {:>11}  pairs with a resemblance of {} or more, counted exactly, copies included",
                count(report.pairs),
                self.threshold()
            ),
            Method::Simhash => format!(
                "  near       {:>11}  pairs whose fingerprints differ in {} bits or fewer",
                count(report.pairs),
                self.within.unwrap_or(3)
            ),
            Method::Exact => format!("  pairs      {:>11}  of identical documents", count(report.pairs)),
        });
        lines.push(format!(
            "  clusters   {:>11}  of two documents or more; the largest has {}",
            count(report.clusters),
            count(report.largest_cluster)
        ));
        lines.push(format!(
            "  removed    {:>11}  documents, {share:.1} %; {} kept",
            count(report.removed),
            count(report.kept)
        ));
        let mut remarks = Vec::new();
        if report.chained > 0 {
            remarks.push(format!(
                "{} joined a cluster through others and {} less near to the kept one than asked for (see the score in \
                 clusters.tsv)",
                counted(report.chained, "document"),
                if report.chained == 1 { "is" } else { "are" }
            ));
        }
        if report.capped_buckets > 0 || report.starred_groups > 0 {
            remarks.push(format!(
                "{} and {} over --max-bucket {}: paired with their first member and neighbours only",
                counted(report.capped_buckets, "bucket"),
                counted(report.starred_groups, "group"),
                self.max_bucket
            ));
        }
        remarks.extend(input.remarks());
        lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
        let index = if self.method == Method::Exact { "" } else { ", index" };
        lines.push(format!("{}: pairs.tsv, clusters.tsv, kept.jsonl{index}", self.out.display()));
        lines
    }
}

fn score_of(resemblance: Resemblance) -> Score {
    match resemblance {
        Resemblance::Exact { intersection, union } => Score::Resemblance { intersection, union },
        Resemblance::Estimate { .. } => unreachable!("sets are counted, not estimated"),
    }
}

impl Corpus {
    fn new(folder: &Path, memory: usize, options: InputOptions) -> anyhow::Result<Self> {
        let lines = Spill::create(folder)
            .with_context(|| format!("{}: cannot create a scratch file", folder.display()))?;
        Ok(Self {
            keys: Vec::new(),
            places: Vec::new(),
            group_of: Vec::new(),
            line_at: Vec::new(),
            lines,
            by_key: HashMap::new(),
            by_content: HashMap::new(),
            groups: Vec::new(),
            sets: ShingleSets::new(folder, memory),
            options,
        })
    }

    fn add(&mut self, one: Sketched) -> anyhow::Result<()> {
        let document = u32::try_from(self.keys.len()).map_err(|_| anyhow!("more than 2^32 documents"))?;
        let key: Arc<[u8]> = one.document.key.into();
        match self.by_key.entry(Arc::clone(&key)) {
            Entry::Occupied(occupied) => bail!(
                "{}: the key `{}` stands already at {}; give each document a key of its own",
                one.document.place,
                String::from_utf8_lossy(&key).escape_debug(),
                self.places[*occupied.get() as usize]
            ),
            Entry::Vacant(vacant) => {
                vacant.insert(document);
            }
        }
        let group = self.group_for(one.content, &one.document.text, &one.shingles)?;
        self.groups[group as usize].members.push(document);
        let length = u32::try_from(one.document.line.len())
            .map_err(|_| anyhow!("{}: too long", one.document.place))?;
        let offset = self.lines.append(&one.document.line).context("cannot write a scratch file")?;
        self.line_at.push((offset, length));
        self.keys.push(key);
        self.places.push(one.document.place);
        self.group_of.push(group);
        Ok(())
    }

    /// The group of a text, a new one if the text is new.
    fn group_for(&mut self, content: u128, text: &str, shingles: &[u64]) -> anyhow::Result<u32> {
        let new = self.groups.len() as u32;
        match self.by_content.entry(content) {
            Entry::Vacant(vacant) => {
                vacant.insert(new);
            }
            Entry::Occupied(occupied) => {
                // Equal hashes are almost certainly equal texts; make it certain.
                let mut group = *occupied.get();
                loop {
                    let first = self.groups[group as usize].members[0];
                    if text_of_line(&self.line(first)?, &self.options)? == text {
                        return Ok(group);
                    }
                    match self.groups[group as usize].same_hash {
                        Some(next) => group = next,
                        None => break,
                    }
                }
                self.groups[group as usize].same_hash = Some(new);
            }
        }
        let set = self.sets.push(shingles)?;
        debug_assert_eq!(set, new);
        self.groups.push(Group {
            members: Vec::new(),
            text_bytes: text.len() as u64,
            shingles: shingles.len() as u64,
            same_hash: None,
        });
        Ok(new)
    }

    fn line(&self, document: u32) -> anyhow::Result<Vec<u8>> {
        let (offset, length) = self.line_at[document as usize];
        let mut line = vec![0; length as usize];
        self.lines.read_exact_at(&mut line, offset).context("cannot read a scratch file")?;
        Ok(line)
    }

    fn group(&self, document: u32) -> &Group {
        &self.groups[self.group_of[document as usize] as usize]
    }

    /// The group of the document with this key.
    fn group_at(&self, key: Key<'_>) -> Option<u32> {
        let Key::Bytes(key) = key else { return None };
        self.by_key.get(key).map(|&document| self.group_of[document as usize])
    }

    /// The score of a text with itself.
    fn itself(&self, group: u32) -> Score {
        let shingles = self.groups[group as usize].shingles as usize;
        Score::Resemblance { intersection: shingles, union: shingles }
    }

    fn documents_by_key(&self) -> Vec<u32> {
        let mut documents: Vec<u32> = (0..self.keys.len() as u32).collect();
        documents.sort_unstable_by(|&a, &b| self.keys[a as usize].cmp(&self.keys[b as usize]));
        documents
    }
}

/// Pairs of groups whose fingerprints are near.
fn near_groups(corpus: &Corpus, snapshot: &Snapshot, within: u32) -> anyhow::Result<Vec<Pair>> {
    let mut pairs: Vec<(u32, u32, u32)> = Vec::new();
    pairs_within(snapshot, within, |a, b, distance| {
        let group = |place: twindex::store::snapshot::Place<'_>| Ok(corpus.group_at(place.key()?.as_key()));
        if let (Some(a), Some(b)) = (group(a)?, group(b)?)
            && a != b
        {
            pairs.push((a.min(b), a.max(b), distance));
        }
        Ok(())
    })?;
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs.into_iter().map(|(a, b, distance)| (a, b, Score::Distance(distance))).collect())
}

/// The clusters, numbered from 1 in the order of their smallest keys.
struct Clusters {
    kept_of_group: Vec<u32>,
    scores: Vec<Option<Score>>,
    /// Documents of each cluster.
    sizes: Vec<u32>,
    /// Documents that are less near to the kept one than the threshold.
    chained: u64,
}

impl Clusters {
    fn new(corpus: &Corpus, kept_of_group: Vec<u32>, scores: Vec<Option<Score>>, threshold: f64) -> Self {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        let mut chained = 0;
        for (group, &kept) in corpus.groups.iter().zip(&kept_of_group) {
            *sizes.entry(kept).or_default() += group.members.len() as u32;
        }
        for (group, score) in corpus.groups.iter().zip(&scores) {
            let near = match *score {
                Some(Score::Resemblance { intersection, union }) => {
                    intersection == union || Resemblance::Exact { intersection, union }.at_least(threshold)
                }
                Some(Score::Distance(_)) => true,
                None => false,
            };
            chained += if near { 0 } else { group.members.len() as u64 };
        }
        Self { kept_of_group, scores, sizes: sizes.into_values().collect(), chained }
    }

    fn write(&self, corpus: &Corpus, by_key: &[u32], path: &Path) -> anyhow::Result<()> {
        write_file(path, |out| {
            writeln!(out, "key\tcluster\tkept\tscore")?;
            let mut numbers: HashMap<u32, usize> = HashMap::new();
            for &document in by_key {
                let group = corpus.group_of[document as usize] as usize;
                let kept = self.kept_of_group[group];
                let next = numbers.len() + 1;
                let number = *numbers.entry(kept).or_insert(next);
                tsv::write_field(out, &corpus.keys[document as usize])?;
                write!(out, "\t{number}\t")?;
                tsv::write_field(out, &corpus.keys[kept as usize])?;
                match self.scores[group] {
                    Some(Score::Resemblance { union: 0, .. }) => writeln!(out, "\t1.000000")?,
                    Some(Score::Resemblance { intersection, union }) => {
                        writeln!(out, "\t{:.6}", intersection as f64 / union as f64)?;
                    }
                    Some(Score::Distance(distance)) => writeln!(out, "\t{distance}")?,
                    None => writeln!(out, "\t-")?, // farther than the radius, and so not measured
                }
            }
            Ok(())
        })
    }
}

fn write_kept(corpus: &Corpus, clusters: &Clusters, path: &Path) -> anyhow::Result<()> {
    write_file(path, |out| {
        for document in 0..corpus.keys.len() as u32 {
            if clusters.kept_of_group[corpus.group_of[document as usize] as usize] == document {
                out.write_all(&corpus.line(document).map_err(io::Error::other)?)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    })
}

/// Writes a file and makes it durable.
fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let whole = || {
        let mut out = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    // The file has a temporary folder's name in its path, which tells the user nothing.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    whole().with_context(|| format!("{name}: cannot write"))
}
