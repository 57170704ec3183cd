//! Writes the results. The index is written in parallel with the tables and documents: neither depends on the other, and
//! parts of both are single-threaded.

use std::path::Path;

use crate::input::kept::files::{SUFFIX_OF_KEYS, is_name_of_kept};
use crate::results::documents::{Revisits, write_kept, write_revisits};
use crate::results::index::{Indexed, make_of_kept};
use crate::results::layout;
use crate::results::page::run::{RunFigures, ScoreCounts};
use crate::results::tables::{write_contained, write_hosts, write_tables};
use crate::results::written::Digests;
use crate::rule::against::ComparedIndex;
use crate::rule::clusters::{Clusters, for_each_removed};
use crate::rule::decide::Decision;
use crate::rule::near::JoinLimits;
use crate::rule::score::ScoreKind;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::results::{Also, IndexOf};
use crate::stored::corpus::Corpus;
use crate::stored::sketches::IndexMembership;
use crate::urls::hosts::Hosts;
use crate::work::file::WrittenFile;
use crate::work::watch::{Stages, Stopwatch};

/// Counts and names of the written files.
pub(crate) struct WrittenResults {
    /// Number of lines in contained.tsv; `None` if it was not written.
    pub(crate) contained: Option<u64>,
    /// Counts of duplicates by host; `None` if documents have no URLs.
    pub(crate) hosts: Option<Hosts>,
    /// Counts of revisit records; `None` if they were not requested.
    pub(crate) revisits: Option<Revisits>,
    /// Number of lines in pairs.tsv.
    pub(crate) pairs: u64,
    /// Names of the files of kept documents.
    pub(crate) kept_files: Vec<String>,
    /// Names of the files of annotated documents.
    pub(crate) annotated_files: Vec<String>,
    /// The digests, by file name, of the files that a later run reads as its history. Files that a stopped run wrote
    /// are absent.
    pub(crate) digests: Digests,
}

/// Writes all results: the kept documents, the tables, the index if one is wanted, and the page about the run.
pub(crate) fn write_results(
    job: &Dedup,
    indexed: Option<&Indexed<'_>>,
    corpus: &Corpus,
    (decision, against): (&mut Decision, &[ComparedIndex]),
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<WrittenResults> {
    let by_key = decision.by_key.take();
    let Decision { near, clusters, contained, .. } = &*decision;
    // The index uses the other half of the memory budget at the same time.
    let half = JoinLimits { memory: limits.memory / 2, ..*limits };
    let wanted = |number: u32| match (clusters.is_kept(&corpus.grouped, number), job.results.index) {
        _ if number < corpus.history => IndexMembership::Not,
        (true, _) => IndexMembership::Kept,
        (false, IndexOf::All) => IndexMembership::AsDuplicate,
        (false, IndexOf::Kept | IndexOf::None) => IndexMembership::Not,
    };
    let written = indexed.filter(|_| job.writes_index());
    if written.is_none() {
        // After the decision, only the index reads the sets. Without an index, their disk space is freed.
        corpus.grouped.sets.release_before(corpus.grouped.sets.len() as u32);
    }
    let indexing = || -> anyhow::Result<f64> {
        let watch = Stopwatch::of_thread();
        if let Some(indexed) = written {
            make_of_kept(indexed, job.scope.inside.as_deref(), (corpus, clusters), &half, wanted)?;
        }
        Ok(watch.cpu_seconds())
    };
    let kept_and_tables = || {
        let kept = || {
            let watch = Stopwatch::of_thread();
            (keep_documents(job, corpus, clusters, &half), watch.cpu_seconds())
        };
        let tables = || {
            let watch = Stopwatch::of_thread();
            let has_history = !job.scope.against.is_empty();
            let noted = job.annotated();
            let found = (near, clusters, noted.as_ref().map(|noted| (noted, job.results.compress)));
            let pairs = write_tables(corpus, by_key, found, (against, has_history), &half);
            let pairs = pairs.and_then(|pairs| {
                let path = half.folder.join(layout::CONTAINED);
                contained.as_ref().map_or(Ok(()), |found| write_contained(corpus, found, &path))?;
                let revisits =
                    job.results.adds(Also::Revisits).then(|| write_revisits(corpus, clusters, half.folder));
                Ok((pairs, write_hosts(corpus, clusters, &half)?, revisits.transpose()?))
            });
            (pairs, watch.cpu_seconds())
        };
        rayon::join(kept, tables)
    };
    let (indexing, ((kept, keeping), (pairs, tabling))) = rayon::join(indexing, kept_and_tables);
    let (indexing, (kept_files, mut digests), ((pairs, annotated_files, of_tables), hosts, revisits)) =
        (indexing?, kept?, pairs?);
    digests.extend(of_tables);
    let watch = Stopwatch::start();
    write_page(job, near.kind, corpus, clusters, hosts.as_ref(), limits.folder)?;
    stages.add_seconds("index", indexing);
    stages.insert("report", watch.cpu_seconds());
    stages.insert("write", keeping + tabling);
    let contained = contained.as_ref().map(|found| found.len() as u64);
    Ok(WrittenResults { contained, hosts, revisits, pairs, kept_files, annotated_files, digests })
}

/// Writes the kept documents, unless the stopped run already did. Returns the names of the files, and the digests of
/// the files that were written.
fn keep_documents(
    job: &Dedup,
    corpus: &Corpus,
    clusters: &Clusters,
    limits: &JoinLimits<'_>,
) -> anyhow::Result<(Vec<String>, Digests)> {
    // Only annotated files and revisit records read lines after this pass.
    let last = !job.results.adds(Also::Annotated) && !job.results.adds(Also::Revisits);
    if let Some(journal) = limits.journal
        && let Some(mut names) = journal.files(KEPT)?
    {
        names.retain(|name| is_name_of_kept(name));
        return Ok((names, Digests::new()));
    }
    let files =
        write_kept(corpus, clusters, (job.sized().as_ref(), last), (limits.folder, job.results.compress))?;
    let (mut names, mut digests) = (Vec::new(), Digests::new());
    for WrittenFile { name, digest, keys } in files {
        digests.extend(keys.map(|keys| (format!("{name}{SUFFIX_OF_KEYS}"), keys)));
        digests.insert(name.clone(), digest);
        names.push(name);
    }
    if let Some(journal) = limits.journal {
        journal.seal_files(KEPT, &digests.keys().cloned().collect::<Vec<_>>())?;
    }
    Ok((names, digests))
}

/// Writes the page about the run.
fn write_page(
    job: &Dedup,
    kind: ScoreKind,
    corpus: &Corpus,
    clusters: &Clusters,
    hosts: Option<&Hosts>,
    folder: &Path,
) -> anyhow::Result<()> {
    let near = match job.near() {
        Near::Within(within) => format!("fingerprints that differ in {within} bits or fewer"),
        Near::Containment(share) => format!("{share} or more of a document in a larger one, counted"),
        Near::Resemblance(threshold) => format!("a resemblance of {threshold} or more, counted"),
        Near::Equal => "equal texts".to_owned(),
    };
    let near = match &job.scope.inside {
        Some(field) => format!("{near}, inside a value of {field}"),
        None => near,
    };
    let mut scores = ScoreCounts::new(kind);
    for_each_removed(&corpus.grouped, clusters, corpus.history, &mut |_, _, score| {
        scores.add(score);
        Ok(())
    })?;
    let page = RunFigures {
        out: &job.results.out,
        documents: (corpus.documents().len() + corpus.dropped.len()) as u64,
        kept: clusters.count,
        dropped: (!job.scope.against.is_empty())
            .then(|| corpus.dropped.len() as u64 + clusters.dropped(&corpus.grouped)),
        clusters: clusters.for_a_page(corpus, near)?,
        scores,
        hosts,
    };
    page.write(&folder.join(layout::REPORT))
}

/// Name of the sealed journal file with the names of the kept documents' files; see [`DECIDED`].
const KEPT: &str = "kept";
