//! Decides which documents are kept. With containment, also finds the documents of a history that a kept document
//! contains.

use anyhow::Context;
use twindex::Snapshot;
use twindex::sketch::Nearness;
use twindex_join::{JoinResources, cover_sets};

use crate::results::index::Indexed;
use crate::rule::clusters::Clusters;
use crate::rule::near::{JoinLimits, KeepRules, NearGroups};
use crate::rule::priority::{OrderedBy, Priority};
use crate::rule::score::Score;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::stored::codes::GroupCodes;
use crate::stored::corpus::Corpus;
use crate::stored::groups::Grouped;
use crate::stored::keys::ByKey;
use crate::work::watch::{Stages, Stopwatch};

pub(crate) struct Decision {
    pub(crate) near: NearGroups,
    pub(crate) clusters: Clusters,
    /// With containment, the history documents that a kept document of this run contains. Each entry is the history
    /// document, the kept document and the score.
    pub(crate) contained: Option<Vec<(u32, u32, Score)>>,
    /// The documents in ascending order of their keys, if the decision needed this order.
    pub(crate) by_key: Option<ByKey>,
}

/// Decides which documents are kept: a document is removed if and only if an earlier kept document is near it.
pub(crate) fn decide(
    job: &Dedup,
    indexed: Option<&Indexed<'_>>,
    corpus: &Corpus,
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<Decision> {
    let keep = corpus.values.sorted(&corpus.grouped.budget, limits.memory / 2)?;
    let by_key = (!keep.order().is_by_place()).then(|| corpus.by_key(limits.memory / 2)).transpose()?;
    let history_keys = (corpus.history > 0).then(|| corpus.history_by_key(limits.memory / 2)).transpose()?;
    let by = OrderedBy {
        keep: &keep,
        near: job.near(),
        by_key: by_key.as_ref(),
        history: corpus.history,
        history_keys: history_keys.as_ref(),
    };
    let priority = Priority::of(&corpus.grouped, by, limits.memory / 2)?;
    let rules = &rules(job, &priority, corpus);
    let (mut near, clusters) = clusters(job, indexed, corpus, rules, limits, stages)?;
    let contained = contained(job, corpus, &mut near, &clusters, rules, limits, stages)?;
    Ok(Decision { near, clusters, contained, by_key })
}

/// Returns the rules by which the kept groups are chosen. `priority` determines the order of the groups.
fn rules<'p>(job: &Dedup, priority: &'p Priority, corpus: &Corpus) -> KeepRules<'p> {
    KeepRules {
        order: priority.order.as_deref(),
        firsts: &priority.firsts[..],
        fixed: corpus.history_groups,
        near: job.near(),
        most_comparisons: job.rule.max_work,
    }
}

/// Decides which documents are kept.
fn clusters(
    job: &Dedup,
    indexed: Option<&Indexed<'_>>,
    corpus: &Corpus,
    rules: &KeepRules<'_>,
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<(NearGroups, Clusters)> {
    let watch = Stopwatch::start();
    let scratch = tempfile::tempdir_in(limits.folder)
        .with_context(|| format!("{}: cannot create a folder in it", limits.folder.display()))?;
    let saved = load(&corpus.grouped, limits)?;
    let codes = corpus.codes.as_ref().filter(|codes| codes.are_long() || !job.searches_index());
    let searched = indexed.filter(|_| job.searches_index() && codes.is_none() && saved.is_none());
    let path = scratch.path().join("all");
    let whole = searched.map(|indexed| indexed.make_of_all(&path, limits.memory, corpus)).transpose()?;
    if whole.is_some() {
        stages.add("index", watch);
    }
    let is_saved = saved.is_some();
    let mut near = match saved {
        Some(near) => near,
        None => near_groups(corpus, (whole.as_ref(), codes), rules, limits)?,
    };
    if let Some(journal) = limits.journal.filter(|_| !is_saved) {
        journal.seal(DECIDED, |out| near.save(out))?;
    }
    if job.near() != Near::Equal {
        stages.insert("candidates", near.seconds.0);
        stages.insert("verify", near.seconds.1);
    }
    let watch = Stopwatch::start();
    let clusters = Clusters::of(&corpus.grouped, &mut near, rules, corpus.history)?;
    stages.add("cluster", watch);
    Ok((near, clusters))
}

/// Decides which groups are kept. The search by distance uses `snapshot`, an index of all documents, or `codes`.
fn near_groups(
    corpus: &Corpus,
    (snapshot, codes): (Option<&Snapshot>, Option<&GroupCodes>),
    rules: &KeepRules<'_>,
    limits: &JoinLimits<'_>,
) -> anyhow::Result<NearGroups> {
    let by_sets = |near| NearGroups::by_sets(&corpus.grouped, near, rules, limits);
    Ok(match (rules.near, snapshot) {
        (Near::Resemblance(threshold), _) => by_sets(Nearness::Resemblance(threshold))?,
        (Near::Containment(threshold), _) => by_sets(Nearness::Containment(threshold))?,
        (Near::Within(within), _) => match (codes, snapshot) {
            (Some(codes), _) => NearGroups::by_codes(&corpus.grouped, codes, within.into(), rules, limits)?,
            (None, Some(snapshot)) => {
                NearGroups::by_fingerprints(corpus, snapshot, within.into(), rules, limits)?
            }
            (None, None) => NearGroups::none(&corpus.grouped)?,
        },
        (Near::Equal, _) => NearGroups::none(&corpus.grouped)?,
    })
}

/// Name of the journal file with the decision. A resumed run reads it instead of deciding again.
const DECIDED: &str = "decided";

/// Loads the decision of the stopped run from the journal; `None` if that run had not decided yet.
fn load(grouped: &Grouped, limits: &JoinLimits<'_>) -> anyhow::Result<Option<NearGroups>> {
    let Some(mut content) = limits.journal.map(|journal| journal.sealed(DECIDED)).transpose()?.flatten()
    else {
        return Ok(None);
    };
    NearGroups::load(&mut content, grouped)
        .context("what stays, as a run that was stopped has found it out")
        .map(Some)
}

/// With containment, finds the history documents that a kept document of this run contains.
fn contained(
    job: &Dedup,
    corpus: &Corpus,
    near: &mut NearGroups,
    clusters: &Clusters,
    rules: &KeepRules<'_>,
    limits: &JoinLimits<'_>,
    stages: &mut Stages,
) -> anyhow::Result<Option<Vec<(u32, u32, Score)>>> {
    if !matches!(job.near(), Near::Containment(_)) || job.scope.against.is_empty() {
        return Ok(None);
    }
    let watch = Stopwatch::start();
    let contained = Contained::of(&corpus.grouped, clusters, rules, limits)?;
    near.candidates += contained.comparisons;
    near.counted = near.counted.map(|counted| counted + contained.counted);
    stages.add("contained", watch);
    Ok(Some(contained.by_key(corpus)))
}

/// The history documents that a kept document of this run contains, and the number of comparisons.
#[derive(Default)]
pub(crate) struct Contained {
    /// For each contained group of the history, ascending: the group, the first kept document that contains it, and the
    /// score.
    pub(crate) found: Vec<(u32, u32, Score)>,
    pub(crate) comparisons: u64,
    pub(crate) counted: u64,
}

impl Contained {
    /// Finds the kept documents of this run that contain documents of the history.
    pub(crate) fn of(
        grouped: &Grouped,
        clusters: &Clusters,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let groups = 0..grouped.groups.len() as u32;
        let in_order: Vec<u32> = rules.order.map_or_else(|| groups.collect(), <[u32]>::to_vec);
        let stays = |group: u32| {
            group >= rules.fixed && grouped.group_of[clusters.kept_of_group[group as usize] as usize] == group
        };
        // The kept groups come first and are fixed, so each group of the history is compared only with kept groups.
        let (stay, rest): (Vec<u32>, Vec<u32>) = in_order.into_iter().partition(|&group| stays(group));
        let (history, gone): (Vec<u32>, Vec<u32>) = rest.into_iter().partition(|&group| group < rules.fixed);
        if stay.is_empty() || history.is_empty() {
            return Ok(Self::default());
        }
        let fixed = stay.len() as u32;
        let order = [stay, history, gone].concat();
        let priority = twindex_join::Priority {
            order: Some(&order),
            fixed,
            max: rules.most_comparisons,
            watched: limits.watched,
        };
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
        let covered = cover_sets(
            &grouped.sets,
            Nearness::Containment(rules.near.threshold().unwrap_or(1.0)),
            priority,
            resources,
        )?;
        let found = (0..rules.fixed).filter_map(|group| {
            let by = covered.by[group as usize];
            let shared = covered.shared[group as usize];
            let union = grouped.sets.size(group) as u32;
            let score = Score::Resemblance { intersection: shared, union };
            (by >= rules.fixed).then(|| (group, rules.firsts[by as usize], score))
        });
        Ok(Self { found: found.collect(), comparisons: covered.comparisons, counted: covered.counted })
    }

    /// Returns the contained documents in ascending order of their keys, each with the document that contains it and
    /// the score.
    pub(crate) fn by_key(&self, corpus: &Corpus) -> Vec<(u32, u32, Score)> {
        let mut all = Vec::new();
        for document in 0..corpus.history {
            let group = corpus.grouped.group_of[document as usize];
            if let Ok(place) = self.found.binary_search_by_key(&group, |found| found.0) {
                let (_, inside, score) = self.found[place];
                all.push((document, inside, score));
            }
        }
        all.sort_unstable_by(|a, b| {
            let key = |document: u32| corpus.keys.get(document);
            key(a.0).cmp(key(b.0)).then(a.0.cmp(&b.0))
        });
        all
    }
}
