//! Writes the results. One thread writes the index and computes the figures of the HTML report, while others write the
//! tables and documents. Neither task depends on the other, and parts of both are single-threaded.

use std::path::Path;

use twindex::Snapshot;
use twindex_join::JoinResources;

use crate::input::kept::files::{SUFFIX_OF_KEYS, is_name_of_kept};
use crate::results::documents::{Revisits, write_kept, write_revisits};
use crate::results::index::{Indexed, make_of_kept};
use crate::results::layout;
use crate::results::page::figures::{Figures, VerifyOptions};
use crate::results::page::report::{ClusterSource, look, write};
use crate::results::tables::{write_contained, write_hosts, write_tables};
use crate::results::written::Digests;
use crate::rule::against::ComparedIndex;
use crate::rule::clusters::Clusters;
use crate::rule::decide::Decision;
use crate::rule::near::JoinLimits;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::results::{Also, IndexOf};
use crate::stored::corpus::Corpus;
use crate::stored::sketches::IndexMembership;
use crate::urls::hosts::Hosts;
use crate::work::file::WrittenFile;
use crate::work::observer::Observer;
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

/// The result of writing the index and computing its figures.
struct SideResults {
    /// Figures for the HTML report; `None` if no report is written.
    figures: Option<Figures>,
    /// CPU seconds for writing the index (`indexing`), and for computing the figures (`looking`).
    indexing: f64,
    looking: f64,
}

/// Writes all results: the kept documents, the tables, the index and the HTML report.
pub(crate) fn write_results(
    job: &Dedup,
    indexed: Option<&Indexed<'_>>,
    corpus: &Corpus,
    (decision, against): (&mut Decision, &[ComparedIndex]),
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<WrittenResults> {
    let (by_key, whole) = (decision.by_key.take(), decision.whole.take());
    let Decision { near, clusters, contained, .. } = &*decision;
    // Two tasks run at the same time, and each gets half of the memory budget.
    let half = JoinLimits { memory: limits.memory / 2, ..*limits };
    let history = corpus.history;
    let wanted = |number: u32| match (clusters.is_kept(&corpus.grouped, history + number), job.results.index)
    {
        (true, _) => IndexMembership::Kept,
        (false, IndexOf::All) => IndexMembership::AsDuplicate,
        (false, IndexOf::Kept | IndexOf::None) => IndexMembership::Not,
    };
    let written = indexed.filter(|_| job.writes_index());
    if written.is_none() {
        // After the decision, only the index reads the sets. Without an index, their disk space is freed.
        corpus.grouped.sets.release_before(corpus.grouped.sets.len() as u32);
    }
    let aside = || {
        let watch = Stopwatch::of_thread();
        let snapshot = match (whole, written) {
            (Some(whole), _) => Some(whole),
            (None, Some(indexed)) => {
                Some(make_of_kept(indexed, job.scope.inside.as_deref(), corpus, &half, wanted)?)
            }
            (None, None) => None,
        };
        let indexing = watch.cpu_seconds();
        anyhow::Ok(SideResults { indexing, ..look_at(job, snapshot.as_ref(), &half) })
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
    let (aside, ((kept, keeping), (pairs, tabling))) = rayon::join(aside, kept_and_tables);
    let (aside, (kept_files, mut digests), ((pairs, annotated_files, of_tables), hosts, revisits)) =
        (aside?, kept?, pairs?);
    digests.extend(of_tables);
    let watch = Stopwatch::start();
    if let Some(figures) = aside.figures
        && let Err(error) =
            write_page(job, figures.with_hosts(hosts.clone()), corpus, clusters, limits.folder)
    {
        note_no_page(&error, limits.observer);
    }
    stages.add_seconds("index", aside.indexing);
    stages.insert("report", aside.looking + watch.cpu_seconds());
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

/// Computes the figures about the index for the HTML report, if there is an index.
fn look_at(job: &Dedup, snapshot: Option<&Snapshot>, limits: &JoinLimits<'_>) -> SideResults {
    let looking = Stopwatch::of_thread();
    let options = VerifyOptions { threshold: job.threshold(), max_bucket: PAGE_BUCKET };
    // The index is still in the temporary folder.
    let path = limits.folder.join(layout::INDEX);
    // The other threads write the tables at the same time.
    let threads = (rayon::current_num_threads() / 2).max(1);
    let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
    // If the report fails, the other results are kept.
    let figures = snapshot.and_then(|snapshot| {
        look(snapshot, &path, options, resources, ClusterSource::Added)
            .map_err(|error| note_no_page(&error, limits.observer))
            .ok()
    });
    SideResults { figures, indexing: 0.0, looking: looking.cpu_seconds() }
}

/// Adds the clusters to the figures, and writes the HTML report.
fn write_page(
    job: &Dedup,
    figures: Figures,
    corpus: &Corpus,
    clusters: &Clusters,
    folder: &Path,
) -> anyhow::Result<()> {
    let near = match job.near() {
        Near::Within(within) => format!("fingerprints within {within} bits"),
        Near::Containment(share) => format!("{share} or more of a document in a larger one, counted"),
        near => format!("a resemblance of {near} or more, counted"),
    };
    let near = match &job.scope.inside {
        Some(field) => format!("{near}, inside a value of {field}"),
        None => near,
    };
    let figures = figures.named(&job.results.out).with_clusters(clusters.for_a_page(corpus, near)?);
    write(&folder.join(layout::REPORT), &figures)
}

/// For the HTML report, all documents of a bucket are compared with each other only up to this bucket size.
const PAGE_BUCKET: usize = 10_000;
/// Name of the sealed journal file with the names of the kept documents' files; see [`DECIDED`].
const KEPT: &str = "kept";

fn note_no_page(error: &anyhow::Error, observer: &dyn Observer) {
    observer.missing(&format!("no report.html: {error:#}"));
}
