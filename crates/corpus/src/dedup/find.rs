//! Decides which documents are kept, then writes the results. The index and the HTML report about it are written in
//! parallel with the tables and documents: neither depends on the other, and parts of both are single-threaded.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use twindex::sketch::{IdfTable, Nearness};
use twindex::sys::UncachedVfs;
use twindex::{Index, Params, Snapshot, WriterOptions};
use twindex_join::{JoinResources, SetReader};

use super::against::ComparedIndex;
use super::annotated::{write_annotated, write_kept};
use super::clusters::Clusters;
use super::contained::Contained;
use super::corpus::Corpus;
use super::groups::Grouped;
use super::hosts::Hosts;
use super::inside::take_outside;
use super::keys::ByKey;
use super::near::{JoinLimits, NearGroups};
use super::priority::{OrderedBy, Priority};
use super::revisits::{Revisits, write_revisits};
use super::rules::KeepRules;
use super::score::Score;
use super::sketches::{IndexMembership, Sketched};
use super::written::Digests;
use super::{Dedup, KeepOrder, layout, out};
use crate::compared;
use crate::hashed_file::WrittenFile;
use crate::input::{AnnotationOptions, Compression, SUFFIX_OF_KEYS, is_name_of_kept};
use crate::observer::Observer;
use crate::page::{self, Figures, VerifyOptions};
use crate::settings::{Also, IndexOf, Near};
use crate::urls::URLS;
use crate::watch::{Stages, Stopwatch};

/// The result of the search, and counts and names of the written files.
pub(super) struct SearchOutcome {
    pub(super) near: NearGroups,
    pub(super) clusters: Clusters,
    /// Number of lines in contained.tsv; `None` if it was not written.
    pub(super) contained: Option<u64>,
    /// Counts of duplicates by host; `None` if documents have no URLs.
    pub(super) hosts: Option<Hosts>,
    /// Counts of revisit records; `None` if they were not requested.
    pub(super) revisits: Option<Revisits>,
    /// Number of lines in pairs.tsv.
    pub(super) pairs: u64,
    /// Names of the files of kept documents.
    pub(super) kept_files: Vec<String>,
    /// Names of the files of annotated documents.
    pub(super) annotated_files: Vec<String>,
    /// The digests of the files that a history is read from, by name, as far as this process wrote them.
    pub(super) digests: Digests,
}

/// Figures about the index for the HTML report, and the CPU time of writing the index and computing the figures.
struct SideResults {
    /// Figures for the HTML report; `None` if no report is written.
    figures: Option<Figures>,
    /// CPU seconds for writing the index, and for computing the figures.
    indexing: f64,
    looking: f64,
}

/// The sketches, parameters and options for building an index.
pub(super) struct Indexed<'i> {
    pub(super) params: &'i Params,
    pub(super) table: Option<&'i Arc<IdfTable>>,
    /// The sketches of all documents after the history, in input order.
    pub(super) sketches: &'i Sketched,
}

impl Indexed<'_> {
    /// Builds an index of all documents that is used to find near documents. It has no sets and no marks.
    fn make_of_all(&self, path: &Path, memory: usize, corpus: &Corpus) -> anyhow::Result<Snapshot> {
        let mut params = self.params.clone();
        (params.sets, params.marks, params.values) = (false, false, false);
        Indexed { params: &params, ..*self }.make(path, memory, corpus, (|_| IndexMembership::Kept, false))
    }

    /// Builds an index of the documents that `wanted` selects. With `last`, no other index is built in this run, and
    /// the disk space of sketches and sets is freed while they are read.
    fn make(
        &self,
        path: &Path,
        memory: usize,
        corpus: &Corpus,
        (wanted, last): (impl Fn(u32) -> IndexMembership, bool),
    ) -> anyhow::Result<Snapshot> {
        let table = self.table.map(|table| &**table);
        // Little of the index is read again during the run, so its writes bypass the page cache.
        let index = Index::create_from(Arc::new(UncachedVfs), path, self.params.clone(), table)?;
        // A single commit writes segments, so no log is needed.
        let mut writer = index.writer_with(WriterOptions::default().memory(memory).logged(false))?;
        let grouped = &corpus.grouped;
        let group = |number: u32| grouped.group_of[(corpus.history + number) as usize];
        let numbers = 0..corpus.documents().len() as u32;
        // Several documents may share a set. It can be freed early only if documents are in the order of their groups.
        let frees_sets =
            last && numbers.filter(|&number| wanted(number) != IndexMembership::Not).map(group).is_sorted();
        if frees_sets && !self.params.sets {
            grouped.sets.release_before(grouped.sets.len() as u32);
        }
        let mut reader = SetReader::new(&grouped.sets);
        let value = |number: u32| grouped.value_of(group(number));
        let key = |number: u32| corpus.keys.get(corpus.history + number);
        self.sketches.put(&mut writer, self.params, last, (&wanted, key, value), |number, out| {
            let group = group(number);
            if frees_sets {
                grouped.sets.release_before(group);
            }
            let set = if frees_sets { reader.next_set(group)? } else { reader.set(group)? };
            out.extend_from_slice(set);
            // The set in the index must be the set of the text alone, since queries compute it from a text.
            if take_outside(out, grouped.value_of(group)) {
                out.sort_unstable();
            }
            Ok(())
        })?;
        writer.commit()?;
        Ok(index.snapshot())
    }
}

impl Dedup {
    /// Decides which documents are kept, and writes all results.
    pub(super) fn find(
        &self,
        indexed: Option<&Indexed<'_>>,
        corpus: &Corpus,
        against: &[ComparedIndex],
        limits: &JoinLimits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<SearchOutcome> {
        let keep = KeepOrder::from(&self.rule.keep);
        let by_key = keep.by_key().then(|| corpus.by_key(limits.memory / 2)).transpose()?;
        let history_keys =
            (corpus.history > 0).then(|| corpus.history_by_key(limits.memory / 2)).transpose()?;
        let by = OrderedBy {
            keep,
            near: self.near(),
            keys: by_key.as_ref().map(|by_key| (&corpus.keys, by_key)),
            numbers: &corpus.numbers,
            history: corpus.history,
            history_keys: history_keys.as_ref(),
        };
        let priority = Priority::of(&corpus.grouped, by, limits.memory / 2)?;
        let rules = &self.rules(&priority, corpus);
        let (mut near, clusters, whole) = self.decide(indexed, corpus, rules, limits, stages)?;
        let contained = self.contained(corpus, &mut near, &clusters, rules, limits, stages)?;

        // The index or the figures use the other half of the memory budget at the same time.
        let half = JoinLimits { memory: limits.memory / 2, ..*limits };
        let history = corpus.history;
        let wanted =
            |number: u32| match (clusters.is_kept(&corpus.grouped, history + number), self.results.index) {
                (true, _) => IndexMembership::Kept,
                (false, IndexOf::All) => IndexMembership::AsDuplicate,
                (false, IndexOf::Kept | IndexOf::None) => IndexMembership::Not,
            };
        let written = indexed.filter(|_| self.writes_index());
        if written.is_none() {
            // Only an index needs the sets after the decision.
            corpus.grouped.sets.release_before(corpus.grouped.sets.len() as u32);
        }
        let aside = || {
            let watch = Stopwatch::of_thread();
            let snapshot = match (whole, written) {
                (Some(whole), _) => Some(whole),
                (None, Some(indexed)) => {
                    Some(make_of_kept(indexed, self.scope.inside.as_deref(), corpus, &half, wanted)?)
                }
                (None, None) => None,
            };
            let indexing = watch.cpu_seconds();
            anyhow::Ok(SideResults { indexing, ..self.look(snapshot.as_ref(), &half) })
        };
        let kept_and_tables = || {
            let kept = || {
                let watch = Stopwatch::of_thread();
                (self.keep_documents(corpus, &clusters, &half), watch.cpu_seconds())
            };
            let tables = || {
                let watch = Stopwatch::of_thread();
                let has_history = !self.scope.against.is_empty();
                let noted = self.annotated();
                let found = (&near, &clusters, noted.as_ref().map(|noted| (noted, self.results.compress)));
                let pairs = write_tables(corpus, by_key, found, (against, has_history), &half);
                let pairs = pairs.and_then(|pairs| {
                    let path = half.folder.join(layout::CONTAINED);
                    contained.as_ref().map_or(Ok(()), |found| out::write_contained(corpus, found, &path))?;
                    let revisits = self
                        .results
                        .adds(Also::Revisits)
                        .then(|| write_revisits(corpus, &clusters, half.folder));
                    Ok((pairs, out::write_hosts(corpus, &clusters, &half)?, revisits.transpose()?))
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
                self.write_page(figures.with_hosts(hosts.clone()), corpus, &clusters, limits.folder)
        {
            note_no_page(&error, limits.observer);
        }
        stages.add_seconds("index", aside.indexing);
        stages.insert("report", aside.looking + watch.cpu_seconds());
        stages.insert("write", keeping + tabling);
        let contained = contained.map(|found| found.len() as u64);
        Ok(SearchOutcome {
            near,
            clusters,
            contained,
            hosts,
            revisits,
            pairs,
            kept_files,
            annotated_files,
            digests,
        })
    }

    /// Writes the kept documents, unless the stopped run already did. Returns the names of the files, and the digests of
    /// the files that were written.
    fn keep_documents(
        &self,
        corpus: &Corpus,
        clusters: &Clusters,
        limits: &JoinLimits<'_>,
    ) -> anyhow::Result<(Vec<String>, Digests)> {
        // After this pass no line is read, unless `annotated` files or revisit records are written, too.
        let last = !self.results.adds(Also::Annotated) && !self.results.adds(Also::Revisits);
        if let Some(journal) = limits.journal
            && let Some(mut names) = journal.files(KEPT)?
        {
            names.retain(|name| is_name_of_kept(name));
            return Ok((names, Digests::new()));
        }
        let files = write_kept(
            corpus,
            clusters,
            (self.sized().as_ref(), last),
            (limits.folder, self.results.compress),
        )?;
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

    /// With containment, finds the documents of the history that later, kept documents contain.
    fn contained(
        &self,
        corpus: &Corpus,
        near: &mut NearGroups,
        clusters: &Clusters,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<Option<Vec<(u32, u32, Score)>>> {
        if !matches!(self.near(), Near::Containment(_)) || self.scope.against.is_empty() {
            return Ok(None);
        }
        let watch = Stopwatch::start();
        let contained = Contained::of(&corpus.grouped, clusters, rules, limits)?;
        near.candidates += contained.comparisons;
        near.counted = near.counted.map(|counted| counted + contained.counted);
        stages.add("contained", watch);
        Ok(Some(contained.by_key(corpus)))
    }

    /// Decides which documents are kept. If the search needs an index of all documents, and such an index is also
    /// requested as a result, returns it too.
    fn decide(
        &self,
        indexed: Option<&Indexed<'_>>,
        corpus: &Corpus,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<(NearGroups, Clusters, Option<Snapshot>)> {
        let watch = Stopwatch::start();
        let scratch = tempfile::tempdir_in(limits.folder)
            .with_context(|| format!("{}: cannot create a folder in it", limits.folder.display()))?;
        let is_result =
            self.results.index == IndexOf::All && indexed.is_some_and(|indexed| !indexed.params.marks);
        let saved = load(&corpus.grouped, limits)?;
        let whole = match indexed.filter(|_| self.searches_index() && (saved.is_none() || is_result)) {
            None => None,
            // Duplicates are marked in the index after the decision.
            Some(indexed) if is_result => {
                Some(indexed.make_of_all(&limits.folder.join(layout::INDEX), limits.memory, corpus)?)
            }
            Some(indexed) => Some(indexed.make_of_all(&scratch.path().join("all"), limits.memory, corpus)?),
        };
        if whole.is_some() {
            stages.add("index", watch);
        }
        let is_saved = saved.is_some();
        let mut near = match saved {
            Some(near) => near,
            None => near_groups(corpus, whole.as_ref(), rules, limits)?,
        };
        if let Some(journal) = limits.journal.filter(|_| !is_saved) {
            journal.seal(DECIDED, |out| near.save(out))?;
        }
        if self.near() != Near::Equal {
            stages.insert("candidates", near.seconds.0);
            stages.insert("verify", near.seconds.1);
        }
        let watch = Stopwatch::start();
        let clusters = Clusters::of(&corpus.grouped, &mut near, rules, corpus.history)?;
        stages.add("cluster", watch);
        Ok((near, clusters, whole.filter(|_| is_result)))
    }

    /// Computes the figures about the index for the HTML report, if there is an index.
    fn look(&self, snapshot: Option<&Snapshot>, limits: &JoinLimits<'_>) -> SideResults {
        let looking = Stopwatch::of_thread();
        let look = VerifyOptions { threshold: self.threshold(), max_bucket: PAGE_BUCKET };
        // The index is still in the temporary folder.
        let path = limits.folder.join(layout::INDEX);
        // The other threads write the tables at the same time.
        let threads = (rayon::current_num_threads() / 2).max(1);
        let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
        // If the report fails, the other results are kept.
        let figures = snapshot.and_then(|snapshot| {
            page::look(snapshot, &path, look, resources, page::ClusterSource::Added)
                .map_err(|error| note_no_page(&error, limits.observer))
                .ok()
        });
        SideResults { figures, indexing: 0.0, looking: looking.cpu_seconds() }
    }

    /// Writes the HTML report with the clusters.
    fn write_page(
        &self,
        figures: Figures,
        corpus: &Corpus,
        clusters: &Clusters,
        folder: &Path,
    ) -> anyhow::Result<()> {
        let near = match self.near() {
            Near::Within(within) => format!("fingerprints within {within} bits"),
            Near::Containment(share) => format!("{share} or more of a document in a larger one, counted"),
            near => format!("a resemblance of {near} or more, counted"),
        };
        let near = match &self.scope.inside {
            Some(field) => format!("{near}, inside a value of {field}"),
            None => near,
        };
        let figures = figures.named(&self.results.out).with_clusters(clusters.for_a_page(corpus, near)?);
        page::write(&folder.join(layout::REPORT), &figures)
    }

    /// Returns the rules that decide which groups are kept; `priority` gives the order of the groups.
    fn rules<'p>(&self, priority: &'p Priority, corpus: &Corpus) -> KeepRules<'p> {
        KeepRules {
            order: priority.order.as_deref(),
            firsts: &priority.firsts[..],
            fixed: corpus.history_groups,
            near: self.near(),
            most_comparisons: self.rule.max_work,
        }
    }
}

/// Decides which groups are kept, by the rule. `snapshot` is an index of all documents, for distances.
fn near_groups(
    corpus: &Corpus,
    snapshot: Option<&Snapshot>,
    rules: &KeepRules<'_>,
    limits: &JoinLimits<'_>,
) -> anyhow::Result<NearGroups> {
    let by_sets = |near| NearGroups::by_sets(&corpus.grouped, near, rules, limits);
    Ok(match (rules.near, snapshot) {
        (Near::Resemblance(threshold), _) => by_sets(Nearness::Resemblance(threshold))?,
        (Near::Containment(threshold), _) => by_sets(Nearness::Containment(threshold))?,
        (Near::Within(within), Some(snapshot)) => {
            NearGroups::by_fingerprints(corpus, snapshot, within.into(), rules, limits)?
        }
        (Near::Within(_), None) | (Near::Equal, _) => NearGroups::none(&corpus.grouped)?,
    })
}

/// Size of a bucket above which the page does not compare all of its documents with each other.
const PAGE_BUCKET: usize = 10_000;

/// Name of the sealed journal file with the decision, from which a resumed run continues.
const DECIDED: &str = "decided";
/// Name of the sealed journal file with the names of the kept documents' files; see [`DECIDED`].
const KEPT: &str = "kept";

/// Loads the decision of the stopped run from the journal; `None` if there is none.
fn load(grouped: &Grouped, limits: &JoinLimits<'_>) -> anyhow::Result<Option<NearGroups>> {
    let Some(mut content) = limits.journal.map(|journal| journal.sealed(DECIDED)).transpose()?.flatten()
    else {
        return Ok(None);
    };
    NearGroups::load(&mut content, grouped)
        .context("what stays, as a run that was stopped has found it out")
        .map(Some)
}

/// Builds the index of the wanted documents, which were compared inside of a field, unless the stopped run already did.
fn make_of_kept(
    indexed: &Indexed<'_>,
    inside: Option<&str>,
    corpus: &Corpus,
    limits: &JoinLimits<'_>,
    wanted: impl Fn(u32) -> IndexMembership,
) -> anyhow::Result<Snapshot> {
    let path = limits.folder.join(layout::INDEX);
    let make = |wanted| -> anyhow::Result<Snapshot> {
        let snapshot = indexed.make(&path, limits.memory, corpus, (wanted, true))?;
        if let Some(field) = inside.filter(|_| indexed.params.values) {
            compared::record(&path, field)?;
        }
        Ok(snapshot)
    };
    let Some(journal) = limits.journal else { return make(wanted) };
    if journal.files(layout::INDEX)?.is_some() {
        return Ok(Index::open(&path)?.snapshot());
    }
    let snapshot = make(wanted)?;
    journal.seal_folder(layout::INDEX, layout::INDEX)?;
    Ok(snapshot)
}

fn note_no_page(error: &anyhow::Error, observer: &dyn Observer) {
    observer.missing(&format!("no report.html: {error:#}"));
}

/// Writes the tables of results and, if requested, the annotated documents. Returns the number of pairs, the names of
/// the files of annotated documents, and the digests of the tables of removed documents.
fn write_tables(
    corpus: &Corpus,
    by_key: Option<ByKey>,
    (near, clusters, noted): (&NearGroups, &Clusters, Option<(&AnnotationOptions, Option<Compression>)>),
    (against, has_history): (&[ComparedIndex], bool),
    limits: &JoinLimits<'_>,
) -> anyhow::Result<(u64, Vec<String>, Digests)> {
    let by_key = match by_key {
        Some(by_key) => by_key,
        None => corpus.by_key(limits.memory)?,
    };
    let listed = (near.kind, clusters);
    let named = |name: &str| (name.to_owned(), limits.folder.join(name));
    let mut digests = Digests::new();
    let (name, path) = named("pairs.tsv");
    let (pairs, digest) = out::write_pairs(corpus, &by_key, listed, limits, &path)?;
    digests.insert(name, digest);
    out::write_clusters(corpus, &by_key, clusters, &limits.folder.join("clusters.tsv"))?;
    if corpus.has_urls() {
        out::write_urls(corpus, &by_key, &limits.folder.join(URLS))?;
    }
    let (name, path) = named("against.tsv");
    if let Some(against) = against.first() {
        digests.insert(name, out::write_dropped(corpus, against, limits.memory, &path)?);
    } else if has_history {
        let digest = out::write_covered_by_history(corpus, &by_key, clusters, near.kind, &path)?;
        digests.insert(name, digest);
    }
    let annotated =
        noted.map(|noted| write_annotated(corpus, &by_key, clusters, noted, limits.folder)).transpose()?;
    let annotated = annotated.into_iter().flatten().map(|file| file.name).collect();
    Ok((pairs, annotated, digests))
}
