//! The rules by which documents are removed.

/// The rule by which documents are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// A document is removed if and only if an earlier, kept document is near it. So every removed document is near a kept
    /// one, and no two kept documents are near each other.
    Leaders,
    /// All but one document of each connected component of near documents are removed. A document joined only by a chain is
    /// removed too, and may have nothing in common with the kept one.
    Components,
}

/// The similarity measure of two documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearMeasure {
    /// Resemblance: the number of common shingles divided by the number of shingles in either document.
    #[default]
    Resemblance,
    /// Containment: the number of common shingles divided by the number in the smaller document. Larger documents come
    /// before smaller ones.
    Containment,
}

/// The rules and parameters of the decision.
#[derive(Clone, Copy)]
pub(super) struct KeepRules<'a> {
    pub clustering: Clustering,
    /// The groups in the order in which they are decided on; `None` for the order of their numbers.
    pub order: Option<&'a [u32]>,
    /// For each group, its first document in the order.
    pub firsts: &'a [u32],
    /// The number of groups, from the first on, that are always kept.
    pub fixed: u32,
    pub near: NearMeasure,
    /// Smallest resemblance, or containment, of near documents.
    pub threshold: f64,
    /// Maximal number of documents in a component; larger ones are split.
    pub max_cluster: u32,
    /// Whether all near pairs are requested.
    pub all_pairs: bool,
    /// Maximal number of comparisons with kept groups.
    pub most_comparisons: Option<u64>,
}
