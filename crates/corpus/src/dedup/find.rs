//! From what was read to the results: the index and the page about it on one side, pairs, clusters and files on the
//! other. Neither needs much of the other, and parts of each are the work of one thread, so that they are made at the
//! same time.

use std::path::Path;

use twindex::{Index, Snapshot, Writer};
use twindex_join::{Agreement, Effort};

use super::against::Against;
use super::clusters::{Clusters, Measure};
use super::corpus::Corpus;
use super::near::{Join, Limits, Near, Signatures, Verify};
use super::priority::Priority;
use super::rules::{Clustering, Rules};
use super::score::Score;
use super::{Dedup, ListedPairs, Method, out};
use crate::observer::Observer;
use crate::page::{self, Figures, Look};
use crate::watch::{Lap, Stages, Stopwatch};

/// What was found and written.
pub(super) struct Done {
    pub(super) near: Near,
    pub(super) clusters: Clusters,
    /// Lines of pairs.tsv.
    pub(super) pairs: u64,
    /// The names of the files of documents that are kept.
    pub(super) kept_files: Vec<String>,
    clustering: Lap,
    /// CPU seconds.
    writing: f64,
}

/// What was made beside that.
struct Aside {
    /// For the page, if there is to be one.
    figures: Option<Figures>,
    /// CPU seconds for them.
    looking: f64,
    /// Of the thread that made all of it.
    lap: Lap,
}

impl Dedup {
    /// Commits the index, finds pairs and clusters, and writes everything.
    pub(super) fn index_and_find(
        &self,
        index: Option<&Index>,
        writer: Option<Writer>,
        corpus: &Corpus,
        against: Option<&Against>,
        limits: &Limits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<Done> {
        let priority = Priority::of(&corpus.grouped, self.keep, Some(&corpus.keys));
        let rules = &self.rules(&priority);
        // What the index, or the page, holds meanwhile is half of the memory.
        let half = Limits { memory: limits.memory / 2, ..*limits };
        let is_by_sets = self.method == Method::Minhash && self.join() != Join::Bands;
        let (indexing, aside, done) = if is_by_sets {
            let index_and_look = || {
                let watch = Stopwatch::of_thread();
                let (snapshot, indexing) = commit(index, writer)?;
                anyhow::Ok((indexing, self.look(snapshot.as_ref(), &half, watch)))
            };
            let find = || {
                let watch = Stopwatch::start();
                let near = Near::by_sets(&corpus.grouped, self.join(), rules, &half)?;
                let finding = watch.lap();
                anyhow::Ok((finding, self.cluster_and_write(corpus, near, rules, None, against, &half)?))
            };
            let (indexed, found) = rayon::join(index_and_look, find);
            let ((indexing, aside), (finding, mut done)) = (indexed?, found?);
            done.near.scale_seconds(finding.beside(&aside.lap));
            (indexing, aside, done)
        } else {
            let (snapshot, indexing) = commit(index, writer)?;
            let near = self.near(corpus, snapshot.as_ref(), rules, limits, stages)?;
            let (aside, done) = rayon::join(
                || self.look(snapshot.as_ref(), &half, Stopwatch::of_thread()),
                || self.cluster_and_write(corpus, near, rules, snapshot.as_ref(), against, &half),
            );
            (indexing, aside, done?)
        };
        let watch = Stopwatch::start();
        if let Some(figures) = aside.figures
            && let Err(error) = self.write_page(figures, corpus, &done.clusters, limits.folder)
        {
            note_no_page(&error, limits.observer);
        }
        stages.insert("index", indexing);
        if self.method != Method::Exact {
            stages.insert("candidates", done.near.seconds.0);
            stages.insert("verify", done.near.seconds.1);
        }
        stages.insert("cluster", done.clustering.beside(&aside.lap));
        stages.insert("report", aside.looking + watch.cpu_seconds());
        stages.insert("write", done.writing);
        Ok(done)
    }

    /// Looks at the index for the page about it, if there is one. `watch` tells what all of it took, with what was done
    /// before.
    fn look(&self, snapshot: Option<&Snapshot>, limits: &Limits<'_>, watch: Stopwatch) -> Aside {
        let looking = Stopwatch::of_thread();
        let look = Look { threshold: self.threshold(), max_bucket: limits.max_bucket };
        // The index is where it is made, not yet where it will be.
        let path = limits.folder.join(out::INDEX);
        // The other half works on pairs meanwhile.
        let threads = (rayon::current_num_threads() / 2).max(1);
        let effort = Effort { dir: limits.folder, memory: limits.memory, threads };
        // What was found counts more than a page about it.
        let figures = snapshot.and_then(|snapshot| {
            page::look(snapshot, &path, look, effort, page::Clusters::Added)
                .map_err(|error| note_no_page(&error, limits.observer))
                .ok()
        });
        Aside { figures, looking: looking.cpu_seconds(), lap: watch.lap() }
    }

    /// Makes clusters of pairs, and writes tables and documents: at the same time, as neither needs the other, and the
    /// tables are the work of one thread.
    fn cluster_and_write(
        &self,
        corpus: &Corpus,
        mut near: Near,
        rules: &Rules<'_>,
        snapshot: Option<&Snapshot>,
        against: Option<&Against>,
        limits: &Limits<'_>,
    ) -> anyhow::Result<Done> {
        let watch = Stopwatch::start();
        let clusters = self.clusters(corpus, &mut near, rules, snapshot)?;
        let clustering = watch.lap();
        let kept = || {
            let watch = Stopwatch::of_thread();
            let kept = out::write_kept(corpus, &clusters, limits.folder, limits.memory);
            (kept, watch.cpu_seconds())
        };
        let tables = || {
            let watch = Stopwatch::of_thread();
            let pairs = write_tables(corpus, &near, &clusters, against, limits);
            (pairs, watch.cpu_seconds())
        };
        let ((kept, keeping), (pairs, tabling)) = rayon::join(kept, tables);
        let (kept_files, pairs) = (kept?, pairs?);
        Ok(Done { near, clusters, pairs, kept_files, clustering, writing: keeping + tabling })
    }

    /// Writes the page, with the clusters that were found.
    fn write_page(
        &self,
        figures: Figures,
        corpus: &Corpus,
        clusters: &Clusters,
        folder: &Path,
    ) -> anyhow::Result<()> {
        let near = match (self.method, self.verify()) {
            (Method::Simhash, _) => format!("fingerprints within {} bits", self.within.unwrap_or(3)),
            (_, Verify::Exact) => format!("a resemblance of {} or more, counted", self.threshold()),
            (_, Verify::Signature) => format!("an estimated resemblance of {} or more", self.threshold()),
            (_, Verify::None) => "a band in common".to_owned(),
        };
        let figures = figures.named(&self.out).with_clusters(clusters.for_a_page(corpus, near)?);
        page::write(&folder.join(out::REPORT), &figures)
    }

    /// The pairs of texts that are near.
    fn near(
        &self,
        corpus: &Corpus,
        snapshot: Option<&Snapshot>,
        rules: &Rules<'_>,
        limits: &Limits<'_>,
        stages: &mut Stages,
    ) -> anyhow::Result<Near> {
        Ok(match (snapshot, self.method) {
            (Some(snapshot), Method::Simhash) => {
                Near::by_fingerprints(corpus, snapshot, self.within.unwrap_or(3).into(), rules, limits)?
            }
            (Some(_), Method::Shingles) => {
                Near::by_sketches(&corpus.grouped, self.verify(), rules, limits, stages)?
            }
            (Some(snapshot), Method::Minhash) => {
                let agreement = match snapshot.params().minhash {
                    Some(minhash) => self.sharing.agreement(minhash, corpus.keys.len() as u64)?,
                    None => Agreement::in_one(snapshot.params()),
                };
                Near::by_bands(corpus, snapshot, agreement, self.verify(), rules, limits)?
            }
            (None, _) | (_, Method::Exact) => Near::none(&corpus.grouped, rules, limits)?,
        })
    }

    /// The clusters, and of each group how near it is to the one that is kept.
    fn clusters(
        &self,
        corpus: &Corpus,
        near: &mut Near,
        rules: &Rules<'_>,
        snapshot: Option<&Snapshot>,
    ) -> anyhow::Result<Clusters> {
        // Of leaders nothing is left to measure.
        let is_measured = rules.clustering == Clustering::Components;
        let signatures = match (snapshot, self.method, self.verify()) {
            (Some(snapshot), Method::Minhash, Verify::Signature) if is_measured => {
                Some(Signatures::of(corpus, snapshot)?)
            }
            _ => None,
        };
        let within = u32::from(self.within.unwrap_or(3));
        let distance = |a: u32, b: u32| {
            let of = |group: u32| corpus.grouped.groups[group as usize].fingerprint;
            let distance = of(a).zip(of(b)).map(|(a, b)| (a.0 ^ b.0).count_ones());
            distance.filter(|&distance| distance <= within).map(Score::Distance)
        };
        let measure: &Measure<'_> = &|a, b| {
            Ok(match (self.method, self.verify(), &signatures) {
                (Method::Simhash, ..) => distance(a, b),
                (Method::Shingles, Verify::Signature, _) => corpus.grouped.sampled(a, b)?,
                (_, _, Some(signatures)) => Some(signatures.estimate(a, b)?),
                (_, Verify::Exact, _) => Some(Score::counted(corpus.grouped.sets.resemblance(a, b)?)),
                _ => None,
            })
        };
        Ok(Clusters::of(&corpus.grouped, near, rules, measure)?)
    }

    /// How it is decided what stays, of groups in this order.
    fn rules<'p>(&self, priority: &'p Priority) -> Rules<'p> {
        Rules {
            clustering: self.clusters,
            order: priority.order.as_deref(),
            firsts: &priority.firsts,
            threshold: self.threshold(),
            max_cluster: self.max_cluster.unwrap_or(u32::MAX),
            all_pairs: self.pairs == ListedPairs::All,
            most_comparisons: self.max_work,
        }
    }
}

/// Commits what is in the index. Returns how it is then, and the CPU seconds that it took.
fn commit(index: Option<&Index>, writer: Option<Writer>) -> anyhow::Result<(Option<Snapshot>, f64)> {
    let watch = Stopwatch::of_thread();
    writer.map(|mut writer| writer.commit()).transpose()?;
    Ok((index.map(Index::snapshot), watch.cpu_seconds()))
}

fn note_no_page(error: &anyhow::Error, observer: &dyn Observer) {
    observer.missing(&format!("no report.html: {error:#}"));
}

/// Writes the tables of results, and returns the number of pairs.
fn write_tables(
    corpus: &Corpus,
    near: &Near,
    clusters: &Clusters,
    against: Option<&Against>,
    limits: &Limits<'_>,
) -> anyhow::Result<u64> {
    let by_key = corpus.documents_by_key();
    let listed = out::Listed { near, clusters };
    let pairs = out::write_pairs(corpus, &by_key, listed, limits, &limits.folder.join("pairs.tsv"))?;
    out::write_clusters(corpus, &by_key, clusters, &limits.folder.join("clusters.tsv"))?;
    if let Some(against) = against {
        out::write_dropped(corpus, against, &limits.folder.join("against.tsv"))?;
    }
    Ok(pairs)
}
