//! Sorts documents into the order in which they are processed. Of several near documents, the first is kept.

use twindex::Key;
use twindex::sys::Column;
use twindex_join::Sorter;

use crate::settings::near::Near;
use crate::settings::rule::Keep;
use crate::stored::groups::Grouped;
use crate::stored::keys::{ByKey, DocumentKeys};

/// The order of [`Keep`], without the name of the field that [`Keep::Max`] and [`Keep::Min`] compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepOrder {
    /// The first document of the input.
    First,
    /// The document with the most tokens; of equally long documents, the first.
    Longest,
    /// The document with the smallest key in byte order.
    SmallestKey,
    /// The document whose key has the smallest xxh3-64 hash; of equal hashes, the smallest key. Does not depend on the
    /// input order or on the meaning of keys.
    KeyHash,
    /// The document with the largest number in a field; of equal numbers, the smallest key.
    Max,
    /// The document with the smallest number in a field; of equal numbers, the smallest key.
    Min,
}

impl From<&Keep> for KeepOrder {
    fn from(keep: &Keep) -> Self {
        match keep {
            Keep::First => Self::First,
            Keep::Longest => Self::Longest,
            Keep::SmallestKey => Self::SmallestKey,
            Keep::KeyHash => Self::KeyHash,
            Keep::Max(_) => Self::Max,
            Keep::Min(_) => Self::Min,
        }
    }
}

impl KeepOrder {
    /// Returns the number by which documents are sorted in ascending order. Documents with equal numbers are sorted by
    /// [place](Self::place), then in input order. `number` is used only by [`Max`](Self::Max) and [`Min`](Self::Min).
    pub(crate) fn choice(
        self,
        tokens: impl FnOnce() -> u64,
        number: impl FnOnce() -> u128,
        document: u32,
        keys: Option<(&DocumentKeys, &ByKey)>,
    ) -> u128 {
        match self {
            Self::First | Self::SmallestKey => 0,
            Self::Longest => u128::from(u64::MAX - tokens()),
            Self::KeyHash => {
                keys.map_or(0, |(keys, _)| u128::from(Key::Bytes(keys.get(document)).priority_hash()))
            }
            Self::Max => !number(),
            Self::Min => number(),
        }
    }

    /// Returns the rank of the document's key if the order breaks ties by key; otherwise 0.
    pub(crate) fn place(self, document: u32, keys: Option<(&DocumentKeys, &ByKey)>) -> u32 {
        keys.filter(|_| self.by_key()).map_or(0, |(_, by_key)| by_key.place(document))
    }

    /// Returns whether the order depends on keys.
    pub(crate) fn by_key(self) -> bool {
        match self {
            Self::First | Self::Longest => false,
            Self::SmallestKey | Self::KeyHash | Self::Max | Self::Min => true,
        }
    }
}

/// The order of the groups of equal texts. A group has the place of its first document.
pub(crate) struct Priority {
    /// For each group, its first document in the order.
    pub firsts: Column<u32>,
    /// The indices of all groups in this order; `None` if the indices ascend.
    pub order: Option<Column<u32>>,
}

/// The data that determine the order of documents.
#[derive(Clone, Copy)]
pub(crate) struct OrderedBy<'o> {
    pub keep: KeepOrder,
    /// The similarity measure. With containment, larger documents come before smaller ones.
    pub near: Near,
    /// The keys of all documents and their order, if [`KeepOrder::by_key`] is true. `None` for texts without keys,
    /// which are in input order.
    pub keys: Option<(&'o DocumentKeys, &'o ByKey)>,
    /// The number of each document after the history, as bits, for [`KeepOrder::Max`] and [`KeepOrder::Min`].
    pub numbers: &'o [u128],
    /// Number of history documents. They precede all others, in the order of their keys.
    pub history: u32,
    /// The key order of the history; `None` without a history.
    pub history_keys: Option<&'o ByKey>,
}

/// The sort key of a document: history flag and size, two halves of the number that `keep` compares, and rank of the
/// document's key with its number.
type Rank = [u64; 4];

impl Priority {
    /// Sorts all documents. Uses about `memory` bytes.
    pub(crate) fn of(grouped: &Grouped, by: OrderedBy<'_>, memory: usize) -> twindex::Result<Self> {
        let mut firsts = Column::of(&grouped.budget, grouped.groups.iter().map(|group| group.first))?;
        if by.keep == KeepOrder::First && !matches!(by.near, Near::Containment(_)) && by.history == 0 {
            return Ok(Self { firsts, order: None });
        }
        let of_groups = &mut firsts[..];
        for (document, &group) in (0..).zip(&grouped.group_of[..]) {
            let first = &mut of_groups[group as usize];
            if document != *first && by.rank(grouped, document) < by.rank(grouped, *first) {
                *first = document;
            }
        }
        let mut sorter: Sorter<Rank> = Sorter::new(grouped.budget.dir(), memory);
        firsts.iter().try_for_each(|&document| sorter.push(by.rank(grouped, document)))?;
        let mut order = Column::new(&grouped.budget);
        sorter.finish()?.for_each(|[.., last]| order.push(grouped.group_of[last as u32 as usize]))?;
        Ok(Self { firsts, order: Some(order) })
    }
}

impl OrderedBy<'_> {
    fn rank(self, grouped: &Grouped, document: u32) -> Rank {
        let is_history = document < self.history;
        let by_size = match self.near {
            Near::Containment(_) => u32::MAX - grouped.group(document).shingles,
            _ => 0,
        };
        let (by_choice, by_key) = if is_history {
            (0, self.history_keys.map_or(0, |by_key| by_key.place(document)))
        } else {
            let tokens = || grouped.group(document).tokens;
            let number = || self.numbers[(document - self.history) as usize];
            (self.keep.choice(tokens, number, document, self.keys), self.keep.place(document, self.keys))
        };
        [
            u64::from(!is_history) << 32 | u64::from(by_size),
            (by_choice >> 64) as u64,
            by_choice as u64,
            u64::from(by_key) << 32 | u64::from(document),
        ]
    }
}
