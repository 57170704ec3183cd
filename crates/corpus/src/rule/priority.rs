//! Sorts documents into the order in which they are processed. Of several near documents, the first is kept.

use twindex::sys::Column;
use twindex_join::Sorter;

use crate::input::fields::keep::Keep;
use crate::settings::near::Near;
use crate::stored::groups::Grouped;
use crate::stored::keys::ByKey;
use crate::stored::order::SortedValues;

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
    /// The numbers of the documents after the history.
    pub keep: &'o SortedValues<'o>,
    /// The similarity measure. With containment, larger documents come before smaller ones.
    pub near: Near,
    /// The key order of all documents, if documents that the rules do not distinguish are in this order. `None` for texts without keys, which are in
    /// input order.
    pub by_key: Option<&'o ByKey>,
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
        if by.keep.order().single() == Some(&Keep::First)
            && !matches!(by.near, Near::Containment(_))
            && by.history == 0
        {
            let in_order = || Column::of(&grouped.budget, grouped.in_order());
            let order = (!firsts.is_sorted()).then(in_order).transpose()?;
            return Ok(Self { firsts, order });
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
            (self.keep.choice(document - self.history), self.keep.place(document, self.by_key))
        };
        [
            u64::from(!is_history) << 32 | u64::from(by_size),
            (by_choice >> 64) as u64,
            by_choice as u64,
            u64::from(by_key) << 32 | u64::from(document),
        ]
    }
}
