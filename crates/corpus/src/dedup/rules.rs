//! The rules that determine which documents are removed.

use crate::settings::Near;

/// The rules and parameters by which kept groups are chosen.
#[derive(Clone, Copy)]
pub(super) struct KeepRules<'a> {
    /// The groups in the order in which they are processed; `None` for ascending order of their indices.
    pub order: Option<&'a [u32]>,
    /// The document of each group that comes first in the order.
    pub firsts: &'a [u32],
    /// The number of groups of the history. They precede all others and are always kept.
    pub fixed: u32,
    pub near: Near,
    /// Maximum number of comparisons with kept groups; `None` for no limit.
    pub most_comparisons: Option<u64>,
}
