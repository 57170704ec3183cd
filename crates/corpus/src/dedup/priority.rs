//! Which documents come before others: what stays is decided in this order.

use twindex::sys::Column;
use twindex_join::Sorter;
use xxhash_rust::xxh3::xxh3_64;

use super::groups::Grouped;
use super::keys::{ByKey, Keys};
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
    pub firsts: Column<u32>,
    /// All groups, the first one first; none if that is their own order.
    pub order: Option<Column<u32>>,
}

/// The place of a document in the order.
type Rank = (u64, u64, u64);

impl Priority {
    /// The order of all documents. `keys` are asked for their keys, and for the places of these, where that counts; texts
    /// have their own places for keys. The first `history` documents come before all others, in their own order.
    /// By containment, larger documents come before smaller ones. Takes about `memory` bytes.
    pub(super) fn of(
        grouped: &Grouped,
        (keep, near): (Keep, NearBy),
        keys: Option<(&Keys, &ByKey)>,
        history: u32,
        memory: usize,
    ) -> twindex::Result<Self> {
        let mut firsts = Column::of(&grouped.room, grouped.groups.iter().map(|group| group.first))?;
        if keep == Keep::First && near == NearBy::Resemblance {
            return Ok(Self { firsts, order: None });
        }
        let rank = |document: u32| rank(grouped, (keep, near), keys, history, document);
        let of_groups = &mut firsts[..];
        for (document, &group) in (0..).zip(&grouped.group_of[..]) {
            let first = &mut of_groups[group as usize];
            if document != *first && rank(document) < rank(*first) {
                *first = document;
            }
        }
        let mut sorter: Sorter<Rank> = Sorter::new(grouped.room.dir(), memory);
        firsts.iter().try_for_each(|&document| sorter.push(rank(document)))?;
        let mut order = Column::new(&grouped.room);
        sorter.finish()?.for_each(|rank| order.push(grouped.group_of[rank.2 as u32 as usize]))?;
        Ok(Self { firsts, order: Some(order) })
    }
}

/// Whether the order of keys is part of the order.
pub(super) fn is_by_key(keep: Keep) -> bool {
    matches!(keep, Keep::SmallestKey | Keep::KeyHash)
}

/// Where a document comes: its group is in front of what decides, its number behind it.
fn rank(
    grouped: &Grouped,
    (keep, near): (Keep, NearBy),
    keys: Option<(&Keys, &ByKey)>,
    history: u32,
    document: u32,
) -> Rank {
    let group = grouped.group(document);
    let is_new = u64::from(document >= history);
    let by_size = match near {
        NearBy::Resemblance => 0,
        NearBy::Containment => u64::from(u32::MAX - group.shingles),
    };
    let place = || keys.map_or(0, |(_, by_key)| u64::from(by_key.place(document)));
    let (by_choice, by_key) = match keep {
        _ if is_new == 0 => (0, 0),
        Keep::First => (0, 0),
        Keep::Longest => (u64::MAX - group.text_bytes, 0),
        Keep::SmallestKey => (place(), 0),
        Keep::KeyHash => (keys.map_or(0, |(keys, _)| xxh3_64(keys.get(document))), place()),
    };
    (is_new << 32 | by_size, by_choice, by_key << 32 | u64::from(document))
}
