//! Decides which documents are kept.

use anyhow::Context;
use twindex::Snapshot;
use twindex::sketch::Nearness;

use crate::rule::near::{JoinLimits, KeepRules, NearGroups};
use crate::settings::near::Near;
use crate::stored::corpus::Corpus;
use crate::stored::groups::Grouped;

/// Decides which groups are kept, by the rule. `snapshot` is an index of all documents, for distances.
pub(crate) fn near_groups(
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

/// Name of the sealed journal file with the decision, from which a resumed run continues.
pub(crate) const DECIDED: &str = "decided";

/// Loads the decision of the stopped run from the journal; `None` if there is none.
pub(crate) fn load(grouped: &Grouped, limits: &JoinLimits<'_>) -> anyhow::Result<Option<NearGroups>> {
    let Some(mut content) = limits.journal.map(|journal| journal.sealed(DECIDED)).transpose()?.flatten()
    else {
        return Ok(None);
    };
    NearGroups::load(&mut content, grouped)
        .context("what stays, as a run that was stopped has found it out")
        .map(Some)
}
