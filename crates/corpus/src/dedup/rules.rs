//! By which rule documents go.

/// The rule by which documents are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// One that a kept document before it is near, and no other: nothing goes that is not near a kept one, and no two kept
    /// ones are near each other.
    Leaders,
    /// All but one of each connected component of near documents: what is joined by a chain goes, too, and may have nothing
    /// in common with what is kept for it.
    Components,
}

/// The measure of two documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearMeasure {
    /// Their resemblance: the shingles that both have, of those that either has.
    #[default]
    Resemblance,
    /// How much of a document is in a larger one: the shingles that both have, of the smaller one's. Larger documents
    /// come before smaller ones.
    Containment,
}

/// How it is decided what stays.
#[derive(Clone, Copy)]
pub(super) struct KeepRules<'a> {
    pub clustering: Clustering,
    /// The groups in the order in which they are decided on; their own if there is none.
    pub order: Option<&'a [u32]>,
    /// The document of each group that comes before its others.
    pub firsts: &'a [u32],
    /// The number of first groups that are always kept.
    pub fixed: u32,
    pub near: NearMeasure,
    /// Resemblance, or containment, from which on documents are near.
    pub threshold: f64,
    /// Larger components are cut.
    pub max_cluster: u32,
    /// All near pairs are wanted.
    pub all_pairs: bool,
    /// Comparisons with kept groups at most.
    pub most_comparisons: Option<u64>,
}
