//! Computes all groups from the near pairs that a join found. The result is the same as that of a sweep, but takes no
//! queries.

use super::answer::Resources;
use super::listing::Groups;
use super::order::{NONE, PriorityOrder};
use crate::error::{Error, Result};
use crate::extsort::sorter::merge;
use crate::extsort::{Sorted, Sorter};
use crate::store::snapshot::Snapshot;
use crate::sys::column::{Column, MemoryBudget};

/// All near pairs of the live documents of a snapshot. Documents are numbered from 0 in the order of segments
/// ([`Snapshot::segments`]) and ordinals. A pair has the number of one document in its upper 32 bits, and the number of the
/// other in its lower 32 bits.
#[derive(Debug, Default)]
pub struct NearPairs {
    /// Pairs of documents that are near each other. Of two documents that form a pair in `same`, only the one in the
    /// upper half of the pair occurs in `near`.
    pub near: Vec<Sorted<u64>>,
    /// Pairs of documents that are near each other and near the same other documents. The document in the lower half of
    /// a pair occurs in no other pair.
    pub same: Vec<Sorted<u64>>,
}

fn halves(pair: u64) -> [u32; 2] {
    [(pair >> 32) as u32, pair as u32]
}

/// Computes the groups of a snapshot from its near pairs: the same groups as [`Snapshot::groups`]. Takes O(n + p log p) time
/// for n documents and p pairs. Memory besides the pairs is bounded by `resources`; further data, 20 bytes per document and
/// 8 per pair, is stored in scratch files.
///
/// # Errors
/// Same as [`Snapshot::groups`]; [`Error::Invalid`] for a number that is not the number of a document.
pub fn from_pairs(snapshot: &Snapshot, resources: &Resources<'_>, pairs: &NearPairs) -> Result<Groups> {
    let budget = MemoryBudget::new(resources.dir, resources.memory / 2);
    let mut groups = Groups::undecided(snapshot, &budget)?;
    let documents = groups.numbers.documents();
    // The position of each document in the order of priority; `NONE` for documents that occur in no pair.
    let mut places = Column::filled(&budget, documents as usize, NONE)?;
    let mut mark = |pair| {
        halves(pair).into_iter().try_for_each(|number| {
            let Some(place) = places.get_mut(number as usize) else {
                return Err(Error::Invalid(format!("a pair has document {number} of {documents}")));
            };
            *place = 0;
            Ok(())
        })
    };
    merge(&pairs.near, &mut mark)?;
    merge(&pairs.same, &mut mark)?;
    let order =
        PriorityOrder::of(&groups.numbers, resources, None, |number| places[number as usize] != NONE)?;
    let mut by_place: Column<u32> = Column::new(&budget);
    order.for_each(&groups.numbers, |turn| {
        places[turn.number as usize] = by_place.len() as u32;
        by_place.push(turn.number)
    })?;
    drop(order);
    let firsts = firsts(pairs, &places, &budget)?;
    let first =
        |number: u32| firsts.get(number as usize).copied().filter(|&first| first != NONE).unwrap_or(number);
    // Of several documents that are near the same documents, only the first can be a leader, so it replaces the others.
    let mut sorter: Sorter<u64> = Sorter::new(resources.dir, resources.memory / 4);
    merge(&pairs.near, |pair| {
        let [a, b] = halves(pair).map(|number| u64::from(places[first(number) as usize]));
        sorter.push(a.min(b) << 32 | a.max(b))
    })?;
    drop(places);
    // The pairs are sorted so that the pairs of a document with earlier documents come before those with later ones.
    sorter.finish()?.for_each(|pair| {
        let [before, after] = halves(pair).map(|place| by_place[place as usize]);
        if groups.take_turn(before) == before {
            groups.belong(after, before);
        }
        Ok::<(), Error>(())
    })?;
    merge(&pairs.same, |pair| {
        let leader = groups.take_turn(first(halves(pair)[0]));
        for number in halves(pair) {
            groups.belong(number, leader);
        }
        Ok::<(), Error>(())
    })?;
    // The remaining documents are near no document, so each of them is its own leader.
    let numbers = groups.numbers.clone();
    for (start, segment, deleted) in numbers.segments() {
        for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
            groups.take_turn(start + ordinal);
        }
    }
    groups.count_members();
    Ok(groups)
}

/// Returns, for each document in `same`, the first document by priority that is near the same documents; `NONE` for
/// documents that are not in `same`. The result is empty if `same` is empty.
fn firsts(pairs: &NearPairs, places: &[u32], budget: &MemoryBudget) -> Result<Column<u32>> {
    let mut firsts = Column::new(budget);
    merge(&pairs.same, |pair| {
        if firsts.is_empty() {
            firsts.resize(places.len(), NONE)?;
        }
        let [of, _] = halves(pair).map(|number| number as usize);
        for number in halves(pair) {
            if firsts[of] == NONE || places[number as usize] < places[firsts[of] as usize] {
                firsts[of] = number;
            }
        }
        Ok::<(), Error>(())
    })?;
    merge(&pairs.same, |pair| {
        let [of, other] = halves(pair).map(|number| number as usize);
        firsts[other] = firsts[of];
        Ok::<(), Error>(())
    })?;
    Ok(firsts)
}
