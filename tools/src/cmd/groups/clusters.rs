//! `twindex groups --as clusters`: finds the connected components of pairs, and the document to keep in each.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail, ensure};
use serde::Serialize;
use twindex::params::{Shingling, Tokens};
use twindex::sketch::{Cutter, Units};
use twindex::sys::MemoryBudget;
use twindex::{Index, Key};
use twindex_corpus::input::{Content, DecidingNumber, Documents, InputOptions, Record};
use twindex_corpus::page::{LargestGroups, PairSample};
use twindex_corpus::sketching::{Job, for_each_chunk};
use twindex_corpus::tsv;
use twindex_corpus::{Keep, KeepValues};
use twindex_join::{Sorted, Sorter, SpanningForest, Stars};

use super::ranks::{NumberSpill, RankNumbers, place};
use super::{GroupsArgs, split};
use crate::cmd::pairs::pairs_of;
use crate::options::Usage;
use crate::pair_file::{KeyText, PairFiles, PairLine};
use crate::progress::Progress;
use crate::report::{self, Costs, Stages, Stopwatch, counted};
use crate::stage::ResultKind;

/// The header line of the table.
const HEAD: &str = "key\tcluster\tkept\tscore";
const CLUSTERS: ResultKind =
    ResultKind { noun: "a table of clusters", suffix: "clusters", magic: b"key\tcluster\tkept\tscore\n" };
/// What the score column contains for the kept document (`ITSELF`), and for an unknown score (`NONE`).
const ITSELF: &[u8] = b"=";
const NONE: &[u8] = b"-";
/// Maximum number of bytes of a score.
const SCORE_BYTES: usize = 8;

/// The statistics that `--json` prints.
#[derive(Default, Serialize)]
struct ClustersReport {
    /// The path of the table. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// Number of pairs read, including the edges of spanning forests.
    pairs: u64,
    /// Number of documents in the table.
    documents: u64,
    /// Number of clusters in the table.
    clusters: u64,
    /// Number of documents in the table that are not kept.
    removed: u64,
    largest: u64,
    /// Number of documents that form no pair with the kept document of their cluster; `None` without scores.
    chained: Option<u64>,
    /// Number of clusters with a document that `chained` counts; `None` without scores.
    chained_clusters: Option<u64>,
    /// Number of components that were split. Absent without --max-cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_components: Option<u64>,
    /// Whether the keys did not fit in memory and were written to scratch files.
    spilled: bool,
    #[serde(flatten)]
    costs: Costs,
    /// CPU seconds of each stage.
    stages: Stages,
}

impl GroupsArgs {
    pub(super) fn clusters(&self) -> anyhow::Result<ExitCode> {
        let watch = Stopwatch::start();
        self.check()?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let (folder, memory) = (scratch.path(), self.work.memory);
        let mut stages = Stages::default();

        let (mut files, index) = match self.index() {
            None => {
                self.check_files()?;
                self.work.apply_threads()?;
                (PairFiles::open(&self.inputs)?, None)
            }
            Some(index) if self.inputs.len() == 1 => {
                let made = folder.join("index.pairs");
                let find = Stopwatch::start();
                let near = self.rule.near.map(|near| format!("--near={near}"));
                let verify = self.verify.map(|verify| format!("--verify={}", verify.name()));
                pairs_of(index, &made, near.into_iter().chain(verify), &self.work, &self.output)?;
                stages.add("pairs", find);
                (PairFiles::open(&[made])?, Some(Index::open(index)?))
            }
            Some(index) => {
                let why = format!("{}: is an index; name it alone, or files of pairs", index.display());
                return Err(Usage::new(why).into());
            }
        };
        let mut scores = PairFiles::open(&self.scores)?;
        files.check_same(&scores)?;
        self.check_has_pairs(&files)?;
        let tokens = self.tokens(&files)?;

        let step = Stopwatch::start();
        let mut forest = SpanningForest::new(folder, memory / 2);
        let pairs = files.for_each(|pair| Ok(forest.join(pair.a, pair.b)?))?;
        if let Some(index) = index.as_ref().filter(|_| self.min_size == Some(1)) {
            index.snapshot().for_each_key(|key| match key {
                Key::Bytes(key) => forest.join(key, key),
                Key::U64(key) => forest.join(&key.to_be_bytes(), &key.to_be_bytes()),
            })?;
        }
        let stars = forest.finish()?;
        stages.add("forest", step);

        let step = Stopwatch::start();
        let destination = NumberSpill { folder, memory: memory / 8 };
        let whole = RankNumbers::roots(&stars, destination)?;
        let cut = match self.max_cluster {
            Some(max) => split::split(&stars, max, destination, |each| {
                for files in [&mut files, &mut scores] {
                    for_each_ranked(files, &stars, |pair| !pair.is_edge, |_, a, b| each(a, b))?;
                }
                Ok(())
            })?,
            None => None,
        };
        let cut_components = self.max_cluster.map(|_| cut.as_ref().map_or(0, |cut| cut.components));
        let roots = cut.as_ref().map_or(&whole, |cut| &cut.roots);
        let kept = self.kept(&stars, roots, (tokens.as_ref(), files.keys()), destination)?;
        stages.add("representatives", step);

        let step = Stopwatch::start();
        let mut members: Sorter<u128> = Sorter::new(folder, memory / 8);
        for rank in 0..stars.keys() {
            // `u64::MAX`, for an unknown score, sorts after every score.
            members.push(member(roots.get(rank)?, rank, u64::MAX))?;
        }
        let mut has_scores = false;
        for files in [&mut files, &mut scores] {
            has_scores |= take_scores(files, &stars, [&whole, roots, &kept], &mut members)?;
        }
        let members = members.finish()?;
        stages.add("scores", step);

        let step = Stopwatch::start();
        let mut report = self.write(&stars, &members, &kept, files.keys(), has_scores)?;
        stages.add("write", step);
        (report.pairs, report.spilled, report.stages) = (pairs, stars.is_on_disk(), stages);
        report.cut_components = cut_components;
        report.costs = Costs::since(watch);
        self.print_report(&report)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns an error if options contradict each other.
    fn check(&self) -> anyhow::Result<()> {
        let reads = self.inputs.iter().chain(&self.scores).chain(&self.texts);
        self.stage.check(CLUSTERS, reads.clone())?;
        self.page.check(reads.map(PathBuf::as_path).chain(self.stage.named()))?;
        let keep = self.keep();
        let why = match () {
            () if !self.is_by_key() && self.texts.is_empty() => {
                format!(
                    "--keep {keep} goes by the documents, which are not in an index or a file of pairs: name them with \
                     --texts INPUT"
                )
            }
            () if self.is_by_key() && !self.texts.is_empty() && self.page.html.is_none() => {
                format!("--texts goes with other --keep than {keep}, or with --html")
            }
            () => return Documents::check_options(&self.texts, &self.documents()?),
        };
        Err(Usage::new(why).into())
    }

    /// Returns an error if --max-cluster is given, but an input is a forest and there are no pairs in --scores.
    fn check_has_pairs(&self, files: &PairFiles) -> anyhow::Result<()> {
        let needs = self.max_cluster.is_some() && self.scores.is_empty();
        let Some(forest) = files.forest().filter(|_| needs) else { return Ok(()) };
        let forest = forest.display();
        let why = format!(
            "--max-cluster needs all pairs, which {forest}, a forest, does not have; name them with --scores"
        );
        Err(Usage::new(why).into())
    }

    /// Returns an error if options for an index are given but the input is not an index.
    fn check_files(&self) -> anyhow::Result<()> {
        let given = [
            ("near", self.rule.near.is_some()),
            ("min-size 1", self.min_size == Some(1)),
            ("verify", self.verify.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            // These options need an index. If the single input is not a file, opening it as an index returns the error.
            Some(_) if self.inputs.len() == 1 && !self.inputs[0].is_file() => {
                Index::open(&self.inputs[0]).map(drop).map_err(anyhow::Error::from)
            }
            Some((option, _)) => {
                let input = self.inputs[0].display();
                let why = format!("--{option} goes with an index, and {input} is none; leave it out");
                Err(Usage::new(why).into())
            }
            None => Ok(()),
        }
    }

    /// Returns whether the rule compares keys alone.
    fn is_by_key(&self) -> bool {
        matches!(self.keep().single(), Some(Keep::SmallestKey | Keep::KeyHash))
    }

    /// Returns the options for reading the documents of `--texts`.
    fn documents(&self) -> anyhow::Result<InputOptions> {
        let mut options = self.reading.options()?;
        options.attached.deciding.keep = self.keep().rules().to_vec();
        Ok(options)
    }

    /// Returns the rank of the kept document of each cluster, indexed by the rank of the cluster's root.
    fn kept(
        &self,
        stars: &Stars,
        roots: &RankNumbers,
        (tokens, keys): (Option<&Cutter>, KeyText),
        destination: NumberSpill<'_>,
    ) -> anyhow::Result<RankNumbers> {
        match self.keep().single() {
            Some(Keep::KeyHash) => return kept_by_hash(stars, roots, keys, destination),
            Some(Keep::SmallestKey) => {
                return RankNumbers::of(stars.keys(), destination, |sorter| {
                    (0..stars.keys()).try_for_each(|rank| sorter.push(place(rank, rank)))
                });
            }
            _ => {}
        }
        // Entries are sorted by rank, then by position in the input. Of a repeated key, the last document is used, as
        // in an index.
        let mut all: Sorter<u64> = Sorter::new(destination.folder, destination.memory / 2);
        let mut missing = vec![u64::MAX; stars.keys().div_ceil(64) as usize];
        let mut number = 0_u32;
        let budget = MemoryBudget::new(destination.folder, destination.memory / 2);
        let mut values = KeepValues::new(&self.keep(), &budget);
        self.for_each_document(tokens, |key, length, numbers| {
            values.push(length as u64, key, numbers)?;
            if let Some(rank) = stars.rank(key)? {
                all.push(u64::from(rank) << 32 | u64::from(number))?;
                missing[rank as usize / 64] &= !(1 << (rank % 64));
            }
            number = number.checked_add(1).context("more than 4,294,967,295 documents")?;
            Ok(())
        })?;
        let mut key = Vec::new();
        if let Some(rank) =
            (0..stars.keys()).find(|rank| missing[*rank as usize / 64] >> (rank % 64) & 1 == 1)
        {
            stars.key(rank, &mut key)?;
            bail!(
                "--texts: expected every document of the clusters, found none with the key `{}`; name all inputs",
                String::from_utf8_lossy(&tsv::escape(&key))
            );
        }
        // Entries are sorted by root, the rank by `--keep`, position in the input if no rule compares keys, and rank. The
        // first entry of each root is the document to keep.
        let values = values.ranks(number as usize, &budget, destination.memory / 2)?;
        let by_place = self.keep().is_by_place();
        let mut best: Sorter<u128> = Sorter::new(destination.folder, destination.memory / 2);
        let mut push = |[rank, number]: [u32; 2]| -> anyhow::Result<()> {
            let place = if by_place { number } else { 0 };
            let sorted = [roots.get(rank)?, values[number as usize], place, rank];
            Ok(best.push(sorted.iter().fold(0, |all, &part| all << 32 | u128::from(part)))?)
        };
        let mut held: Option<[u32; 2]> = None;
        all.finish()?.for_each(|one| -> anyhow::Result<()> {
            let next = [(one >> 32) as u32, one as u32];
            match held.replace(next) {
                Some(before) if before[0] != next[0] => push(before),
                _ => Ok(()),
            }
        })?;
        held.map_or(Ok(()), &mut push)?;
        firsts(stars, &best.finish()?, destination)
    }

    /// Returns the tokenizer for `--keep longest`; `None` for other rules.
    fn tokens(&self, files: &PairFiles) -> anyhow::Result<Option<Cutter>> {
        if !self.keep().has(&Keep::Longest) {
            return Ok(None);
        }
        let shingling = files.fields().shingling()?.unwrap_or_else(|| Shingling::words(1, 0));
        let why = if shingling.tokens == Tokens::Features {
            "the documents have features instead of texts, whose tokens it would count"
        } else if shingling.boilerplate.is_some() {
            "the texts were compared without boilerplate, which their numbers of tokens would include"
        } else {
            return Ok(Some(Cutter::new(&shingling)?));
        };
        Err(Usage::new(format!("--keep longest: {why}; use another rule")).into())
    }

    /// Passes the key of each document of `--texts`, the number of its tokens, and the numbers that `--keep` compares, to
    /// `each`, in the order of the inputs. The number of tokens is 0 if there is no cutter.
    fn for_each_document(
        &self,
        tokens: Option<&Cutter>,
        mut each: impl FnMut(&[u8], usize, &[DecidingNumber]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut documents = Documents::open(&self.texts, &self.documents()?)?;
        let progress = Progress::bytes(documents.total_bytes(), "reading", self.output.quiet);
        let job = Job {
            state: Units::default,
            begin: Vec::new,
            work: |units: &mut Units, all: &mut Vec<_>, parser: &_, record: Record<'_>| {
                let length = match (tokens, record.content) {
                    (Some(tokens), Content::Text(text) | Content::Opaque { text, .. }) => {
                        tokens.cut(text, units);
                        units.len()
                    }
                    _ => 0,
                };
                let numbers = record.attached(parser)?.deciding().numbers.clone();
                all.push((record.key.to_vec(), length, numbers));
                Ok(())
            },
        };
        for_each_chunk(&mut documents, &progress, &job, |all| {
            all.iter().try_for_each(|(key, length, numbers)| each(key, *length, numbers))
        })
    }

    /// Writes the table of clusters.
    fn write(
        &self,
        stars: &Stars,
        members: &Sorted<u128>,
        kept: &RankNumbers,
        keys: KeyText,
        has_scores: bool,
    ) -> anyhow::Result<ClustersReport> {
        let mut out = self.stage.create_table(CLUSTERS, HEAD, (true, false), &self.output)?;
        let mut report = ClustersReport::default();
        let (mut groups, mut drawn) = (LargestGroups::default(), PairSample::default());
        let has_page = self.page.html.is_some();
        let (mut key, mut kept_key) = (Vec::new(), Vec::new());
        let (mut cluster, mut last) = (None, None);
        let (mut size, mut chained, mut chained_here, mut chained_clusters) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut kept_rank = 0;
        writeln!(out, "{HEAD}").context(CANNOT_WRITE)?;
        let mut line = |rank: u32, number: u64, kept_rank: u32, kept_key: &[u8], score: &[u8]| {
            stars.key(rank, &mut key)?;
            if has_page && rank != kept_rank {
                let members = [kept_key, &key[..]].map(|key| keys.owned(key));
                let [kept, member] = &members;
                drawn.add_member([kept, member], Some(&*String::from_utf8_lossy(score)));
            }
            let mut write = || -> io::Result<()> {
                keys.write(&mut out, &key)?;
                write!(out, "\t{number}\t")?;
                keys.write(&mut out, kept_key)?;
                out.write_all(b"\t")?;
                out.write_all(if rank == kept_rank { ITSELF } else { score })?;
                out.write_all(b"\n")
            };
            write().context(CANNOT_WRITE)
        };
        let min_size = self.min_size.unwrap_or(2).into();
        let add_group = |groups: &mut LargestGroups, kept: &[u8], size: u64| {
            if has_page && size >= min_size && size > 0 {
                groups.add(&keys.owned(kept), size);
            }
        };
        // The members of a cluster that may be too small to be listed, with their scores.
        let mut held: Vec<(u32, Option<[u8; SCORE_BYTES]>)> = Vec::new();
        members.for_each(|one| -> anyhow::Result<()> {
            let (root, rank) = ((one >> 96) as u32, (one >> 64) as u32);
            if last.replace(rank) == Some(rank) {
                return Ok(()); // only the first entry of a rank may have a score
            }
            if cluster.replace(root) != Some(root) {
                (chained, chained_clusters) =
                    (chained + chained_here, chained_clusters + u64::from(chained_here > 0));
                add_group(&mut groups, &kept_key, size);
                (size, chained_here) = (0, 0);
                held.clear();
                kept_rank = kept.get(root)?;
                stars.key(kept_rank, &mut kept_key)?;
            }
            size += 1;
            held.push((rank, Some(one as u64).filter(|score| *score != u64::MAX).map(u64::to_be_bytes)));
            if size < min_size {
                return Ok(());
            }
            report.clusters += u64::from(size == min_size);
            report.documents += held.len() as u64;
            report.largest = report.largest.max(size);
            for (rank, score) in held.drain(..) {
                let shown = score.as_ref().map_or(NONE, score_text);
                line(rank, report.clusters, kept_rank, &kept_key, shown)?;
                chained_here += u64::from(rank != kept_rank && score.is_none());
            }
            Ok(())
        })?;
        (chained, chained_clusters) =
            (chained + chained_here, chained_clusters + u64::from(chained_here > 0));
        add_group(&mut groups, &kept_key, size);
        report.removed = report.documents - report.clusters;
        if has_scores {
            (report.chained, report.chained_clusters) = (Some(chained), Some(chained_clusters));
        }
        report.file = out.finish()?.path;
        let title = format!(
            "{} in {}, {} to remove",
            counted(report.documents, "document"),
            counted(report.clusters, "cluster"),
            report::count(report.removed)
        );
        self.write_page(title, ["kept", "removed"], (groups, drawn))?;
        Ok(report)
    }

    fn print_report(&self, report: &ClustersReport) -> anyhow::Result<()> {
        if self.is_a_step {
            return Ok(());
        }
        if self.output.json {
            return report::print_json(report);
        }
        if let Some(file) = &report.file {
            let shown = file.display();
            match () {
                () if self.stage.is_by_content() => report::print_lines(&[shown.to_string()])?,
                () if self.output.quiet => {}
                () => report::print_lines(&[format!(
                    "{shown}: {}, {}, {} to remove, the largest of {}",
                    counted(report.documents, "document"),
                    counted(report.clusters, "cluster"),
                    report::count(report.removed),
                    counted(report.largest, "document")
                )])?,
            }
        }
        if let (Some(cut @ 1..), Some(max), false) =
            (report.cut_components, self.max_cluster, self.output.quiet)
        {
            report::note(&format!(
                "{} of more than {} split into clusters (--max-cluster)",
                counted(cut, "component"),
                counted(max.into(), "document")
            ));
        }
        match report.chained {
            Some(chained) if chained > 0 && !self.output.quiet => report::note(&format!(
                "{} of {} chained: near the one that is kept only by way of others (score -)",
                counted(chained, "document"),
                counted(report.chained_clusters.unwrap_or_default(), "cluster")
            )),
            _ => {}
        }
        Ok(())
    }
}

const CANNOT_WRITE: &str = "cannot write the results";

/// Returns the document to keep of each cluster: the one whose key has the smallest hash. Ranks are indexed by the rank
/// of the cluster's root.
fn kept_by_hash(
    stars: &Stars,
    roots: &RankNumbers,
    keys: KeyText,
    destination: NumberSpill<'_>,
) -> anyhow::Result<RankNumbers> {
    // Entries are sorted by root, then by hash and rank. The first entry of each root is the document to keep.
    let mut best: Sorter<u128> = Sorter::new(destination.folder, destination.memory / 2);
    let mut key = Vec::new();
    for rank in 0..stars.keys() {
        stars.key(rank, &mut key)?;
        let hash = keys.hash(&key);
        best.push(u128::from(roots.get(rank)?) << 96 | u128::from(hash) << 32 | u128::from(rank))?;
    }
    firsts(stars, &best.finish()?, destination)
}

/// Returns the rank in the first entry of each root in `best`, indexed by the rank of the root.
fn firsts(stars: &Stars, best: &Sorted<u128>, destination: NumberSpill<'_>) -> anyhow::Result<RankNumbers> {
    RankNumbers::of(stars.keys(), destination, |sorter| {
        let mut last = None;
        best.for_each(|one| {
            let (root, rank) = ((one >> 96) as u32, one as u32);
            if last.replace(root) == Some(root) { Ok(()) } else { sorter.push(place(root, rank)) }
        })
    })
}

/// Packs a cluster member into one sortable number. `score` is `u64::MAX` if the score is unknown.
fn member(root: u32, rank: u32, score: u64) -> u128 {
    u128::from(root) << 96 | u128::from(rank) << 64 | u128::from(score)
}

/// Returns the text of a score: its bytes without the trailing zeros.
fn score_text(bytes: &[u8; SCORE_BYTES]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(SCORE_BYTES);
    &bytes[..end]
}

/// Passes each line that `is_wanted` accepts to `each`, with the ranks of its documents.
fn for_each_ranked(
    files: &mut PairFiles,
    stars: &Stars,
    is_wanted: impl Fn(&PairLine<'_>) -> bool,
    mut each: impl FnMut(&PairLine<'_>, u32, u32) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // Consecutive pairs often have the same first document, so its rank is looked up once.
    let (mut last, mut last_rank) = (Vec::new(), None);
    files.for_each(|pair| {
        if !is_wanted(&pair) {
            return Ok(());
        }
        if last_rank.is_none() || last != pair.a {
            last.clear();
            last.extend_from_slice(pair.a);
            last_rank = stars.rank(pair.a)?;
        }
        let (Some(a), Some(b)) = (last_rank, stars.rank(pair.b)?) else {
            bail!("expected pairs of the forest, found a document that is not in it; make the forest of all pairs");
        };
        each(&pair, a, b)
    })?;
    Ok(())
}

/// Adds the scores of pairs that include a kept document to `members`. `whole` has the roots of components, `roots` the
/// roots of clusters, and `kept` the kept documents. Returns whether any pair had a score.
fn take_scores(
    files: &mut PairFiles,
    stars: &Stars,
    [whole, roots, kept]: [&RankNumbers; 3],
    members: &mut Sorter<u128>,
) -> anyhow::Result<bool> {
    let mut has_scores = false;
    let has_score = |pair: &PairLine<'_>| pair.score.is_some();
    for_each_ranked(files, stars, has_score, |pair, a, b| {
        let Some(score) = pair.score else { return Ok(()) };
        has_scores = true;
        ensure!(
            whole.get(a)? == whole.get(b)?,
            "expected pairs of the forest, found one across two of its clusters; make the forest of all pairs"
        );
        let root = roots.get(a)?;
        if root != roots.get(b)? {
            return Ok(());
        }
        let kept = kept.get(root)?;
        if a != b && (a == kept || b == kept) {
            let mut bytes = [0; SCORE_BYTES];
            let held = bytes.get_mut(..score.len()).filter(|_| !score.is_empty());
            let found =
                || anyhow!("expected a score of 1 to {SCORE_BYTES} bytes, found `{}`", score.escape_ascii());
            held.ok_or_else(found)?.copy_from_slice(score);
            members.push(member(root, if a == kept { b } else { a }, u64::from_be_bytes(bytes)))?;
        }
        Ok(())
    })?;
    Ok(has_scores)
}
