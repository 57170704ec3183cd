//! Which documents come before others: what stays is decided in this order.

use std::cmp::Ordering;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::groups::Grouped;
use super::rules::NearBy;

/// Which of near documents stays: the order in which documents are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first of the input.
    First,
    /// The one with the longest text; of equal ones the first.
    Longest,
    /// The one with the smallest key, bytewise.
    SmallestKey,
    /// The one whose key has the smallest xxh3-64; of equal ones the smallest key. The order of the input has no part
    /// in it, nor what keys mean.
    KeyHash,
}

/// The order of documents, and of groups of them by their first ones.
pub(super) struct Priority {
    /// The first document of each group.
    pub firsts: Vec<u32>,
    /// All groups, the first one first; none if that is their own order.
    pub order: Option<Vec<u32>>,
}

impl Priority {
    /// The order of all documents, which have these keys, or their places for keys.
    /// The first `history` documents come before all others, in their own order.
    /// By containment, larger documents come before smaller ones.
    pub(super) fn of(
        grouped: &Grouped,
        (keep, near): (Keep, NearBy),
        keys: Option<&[Arc<[u8]>]>,
        history: u32,
    ) -> Self {
        let compare = |a: u32, b: u32| {
            let by_history = (a >= history).cmp(&(b >= history));
            let keep = if a < history { Keep::First } else { keep };
            let by_size = match near {
                NearBy::Resemblance => Ordering::Equal,
                NearBy::Containment => grouped.group(b).shingles.cmp(&grouped.group(a).shingles),
            };
            by_history.then(by_size).then_with(|| compare(grouped, keep, keys, a, b))
        };
        let firsts: Vec<u32> = grouped
            .groups
            .iter()
            .map(|group| {
                let first = group.members.iter().copied().min_by(|&a, &b| compare(a, b));
                first.unwrap_or(u32::MAX) // each group has some
            })
            .collect();
        let is_given = keep != Keep::First || near == NearBy::Containment;
        let order = is_given.then(|| {
            let mut order: Vec<u32> = (0..firsts.len() as u32).collect();
            order.sort_unstable_by(|&a, &b| compare(firsts[a as usize], firsts[b as usize]));
            order
        });
        Self { firsts, order }
    }
}

/// Which of two documents comes first.
fn compare(grouped: &Grouped, keep: Keep, keys: Option<&[Arc<[u8]>]>, a: u32, b: u32) -> Ordering {
    let key = |document: u32| keys.map(|keys| &*keys[document as usize]);
    let hash = |document: u32| key(document).map(xxh3_64);
    let by_choice = match keep {
        Keep::First => Ordering::Equal,
        Keep::Longest => grouped.group(b).text_bytes.cmp(&grouped.group(a).text_bytes),
        Keep::SmallestKey => key(a).cmp(&key(b)),
        Keep::KeyHash => hash(a).cmp(&hash(b)).then_with(|| key(a).cmp(&key(b))),
    };
    by_choice.then(a.cmp(&b))
}
