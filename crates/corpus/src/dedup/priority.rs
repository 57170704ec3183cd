//! Which documents come before others: what stays is decided in this order.

use std::cmp::Ordering;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::groups::Grouped;
use super::rules::NearBy;
use crate::input::FieldNumber;

/// Which of near documents stays: the order in which documents are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first of the input.
    First,
    /// The one with the most tokens, as its text is cut; of equal ones the first.
    Longest,
    /// The one with the smallest key, bytewise.
    SmallestKey,
    /// The one whose key has the smallest xxh3-64; of equal ones the smallest key. The order of the input has no part
    /// in it, nor what keys mean.
    KeyHash,
    /// The one with the largest number in a field; of equal ones the smallest key.
    Max,
    /// The one with the smallest number in a field; of equal ones the smallest key.
    Min,
}

impl Keep {
    /// Whether documents have numbers by which they come before others.
    #[must_use]
    pub fn by_number(self) -> bool {
        matches!(self, Self::Max | Self::Min)
    }
}

/// The order of documents, and of groups of them by their first ones.
pub(super) struct Priority {
    /// The first document of each group.
    pub firsts: Vec<u32>,
    /// All groups, the first one first; none if that is their own order.
    pub order: Option<Vec<u32>>,
}

/// What the order of documents depends on.
#[derive(Clone, Copy)]
pub(super) struct OrderedBy<'o> {
    pub keep: Keep,
    /// By containment, larger documents come before smaller ones.
    pub near: NearBy,
    /// The keys of all documents; their places, if they have none.
    pub keys: Option<&'o [Arc<[u8]>]>,
    /// The numbers of the documents that are no history, where [`Keep::by_number`] says so.
    pub numbers: &'o [FieldNumber],
    /// So many of the first documents come before all others, in their own order.
    pub history: u32,
}

impl Priority {
    /// The order of all documents.
    pub(super) fn of(grouped: &Grouped, by: OrderedBy<'_>) -> Self {
        let compare = |a: u32, b: u32| by.compare(grouped, a, b);
        let firsts: Vec<u32> = grouped
            .groups
            .iter()
            .map(|group| {
                let first = group.members.iter().copied().min_by(|&a, &b| compare(a, b));
                first.unwrap_or(u32::MAX) // each group has some
            })
            .collect();
        let is_given = by.keep != Keep::First || by.near == NearBy::Containment;
        let order = is_given.then(|| {
            let mut order: Vec<u32> = (0..firsts.len() as u32).collect();
            order.sort_unstable_by(|&a, &b| compare(firsts[a as usize], firsts[b as usize]));
            order
        });
        Self { firsts, order }
    }
}

impl OrderedBy<'_> {
    /// Which of two documents comes first.
    fn compare(self, grouped: &Grouped, a: u32, b: u32) -> Ordering {
        let Self { keep, near, history, .. } = self;
        let by_history = (a >= history).cmp(&(b >= history));
        let keep = if a < history { Keep::First } else { keep };
        let by_size = match near {
            NearBy::Resemblance => Ordering::Equal,
            NearBy::Containment => grouped.group(b).shingles.cmp(&grouped.group(a).shingles),
        };
        by_history.then(by_size).then_with(|| self.compare_chosen(grouped, keep, a, b)).then(a.cmp(&b))
    }

    fn compare_chosen(self, grouped: &Grouped, keep: Keep, a: u32, b: u32) -> Ordering {
        let key = |document: u32| self.keys.map(|keys| &*keys[document as usize]);
        let by_key = || key(a).cmp(&key(b));
        let hash = |document: u32| key(document).map(xxh3_64);
        let number = |document: u32| self.numbers[(document - self.history) as usize];
        match keep {
            Keep::First => Ordering::Equal,
            Keep::Longest => grouped.group(b).tokens.cmp(&grouped.group(a).tokens),
            Keep::SmallestKey => by_key(),
            Keep::KeyHash => hash(a).cmp(&hash(b)).then_with(by_key),
            Keep::Max => number(b).cmp(&number(a)).then_with(by_key),
            Keep::Min => number(a).cmp(&number(b)).then_with(by_key),
        }
    }
}
