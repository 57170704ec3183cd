//! Writes the results. The index is written in parallel with the tables and documents: neither depends on the other, and
//! parts of both are single-threaded.

use twindex::Params;

use crate::input::counts::Counts;
use crate::input::kept::files::{SUFFIX_OF_KEYS, is_name_of_kept};
use crate::results::about_run;
use crate::results::documents::{Revisits, write_kept, write_revisits};
use crate::results::index::{Indexed, make_of_kept};
use crate::results::layout;
use crate::results::page::report::write_whole;
use crate::results::survey::{RemovedKinds, Survey};
use crate::results::tables::{write_contained, write_hosts, write_tables};
use crate::results::written::Digests;
use crate::rule::against::EarlierResults;
use crate::rule::clusters::Clusters;
use crate::rule::decide::Decision;
use crate::rule::near::JoinLimits;
use crate::settings::job::Dedup;
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
    /// The kinds of removed documents, and the length of their texts in bytes.
    pub(crate) removed: (RemovedKinds, u64),
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
    (params, input): (&Params, &Counts),
    indexed: Option<&Indexed<'_>>,
    corpus: &Corpus,
    (decision, past): (&mut Decision, &EarlierResults),
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<WrittenResults> {
    let by_key = decision.by_key.take();
    let Decision { near, clusters, contained, .. } = &*decision;
    // The page shows texts, whose lines are freed while the kept documents are written.
    let watch = Stopwatch::start();
    let survey = Survey::of(corpus, clusters, (near.kind, job.near()))?;
    let removed = (survey.kinds, survey.text_bytes);
    let mut page = about_run::collect((job, params), (corpus, past), clusters, survey, input)?;
    stages.add("report", watch);
    // The index uses the other half of the memory budget at the same time.
    let half = JoinLimits { memory: limits.memory / 2, ..*limits };
    let wanted = |number: u32| match (clusters.is_kept(&corpus.grouped, number), job.results.index) {
        _ if number < corpus.history => IndexMembership::Not,
        (true, _) => IndexMembership::Kept,
        (false, IndexOf::All) => IndexMembership::AsDuplicate,
        (false, IndexOf::Kept | IndexOf::None) => IndexMembership::Not,
    };
    let written = indexed.filter(|_| job.writes_index());
    let indexing = || -> anyhow::Result<f64> {
        let watch = Stopwatch::of_thread();
        if let Some(indexed) = written {
            make_of_kept(indexed, job.scope.inside.as_deref(), (corpus, clusters), &half, wanted)?;
        } else {
            // After the decision, only the index reads the sets. Without an index, their disk space is freed.
            corpus.grouped.sets.release_before(corpus.grouped.sets.len() as u32);
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
            let pairs = write_tables(corpus, by_key, found, (&past.indexes, has_history), &half);
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
    page.hosts.clone_from(&hosts);
    write_whole(&limits.folder.join(layout::REPORT), &page.html())?;
    stages.add_seconds("index", indexing);
    stages.add_seconds("report", watch.cpu_seconds());
    stages.insert("write", keeping + tabling);
    let contained = contained.as_ref().map(|found| found.len() as u64);
    Ok(WrittenResults { contained, hosts, revisits, pairs, removed, kept_files, annotated_files, digests })
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

/// Name of the sealed journal file with the names of the kept documents' files; see [`DECIDED`].
const KEPT: &str = "kept";
