//! The rules that determine which documents are removed.

/// The rule that determines which documents are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// A document is removed if and only if an earlier, kept document is near it. So every removed document is near a kept
    /// one, and no two kept documents are near each other.
    Leaders,
    /// All documents of each connected component of near pairs are removed, except one. A document may be connected to
    /// the kept one only by a chain of near pairs, and may have nothing in common with it.
    Components,
}

/// The similarity measure of two documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearMeasure {
    /// Resemblance: the number of common shingles divided by the number of distinct shingles in the two documents
    /// together.
    #[default]
    Resemblance,
    /// Containment: the number of common shingles divided by the number of shingles in the smaller document. Larger
    /// documents come before smaller ones.
    Containment,
}

/// The rules and parameters by which kept groups are chosen.
#[derive(Clone, Copy)]
pub(super) struct KeepRules<'a> {
    pub clustering: Clustering,
    /// The groups in the order in which they are processed; `None` for ascending order of their indices.
    pub order: Option<&'a [u32]>,
    /// The document of each group that comes first in the order.
    pub firsts: &'a [u32],
    /// The number of groups of the history. They precede all others and are always kept.
    pub fixed: u32,
    pub near: NearMeasure,
    /// The threshold: the smallest resemblance, or containment, of near documents.
    pub threshold: f64,
    /// Maximum number of documents in a component. Larger components are split.
    pub max_cluster: u32,
    /// Whether all near pairs are requested.
    pub all_pairs: bool,
    /// Maximum number of comparisons with kept groups; `None` for no limit.
    pub most_comparisons: Option<u64>,
}
