//! Decides which sets are kept if all candidate pairs are known and there are few of them.

use super::covering::{BLOCK_SETS, Covering, LookupOutcome, PIECE_SETS, SetComparer};
use crate::work::runs::Sorted;
use twindex::error::Result;
use twindex::sys::threads::on_threads;
use twindex_sketch::Nearness;

/// The pairs of a block, as ranks: for each later set in order, the ranks of the earlier sets, ascending.
#[derive(Default)]
struct PairList {
    later: Vec<u32>,
    /// For each later set, the end of its part of `earlier`.
    ends: Vec<usize>,
    earlier: Vec<u32>,
}

impl PairList {
    fn push(&mut self, later: u32, earlier: u32) {
        if self.later.last() != Some(&later) {
            self.later.push(later);
            self.ends.push(self.earlier.len());
        }
        self.earlier.push(earlier);
        if let Some(end) = self.ends.last_mut() {
            *end = self.earlier.len();
        }
    }

    fn earlier(&self, number: usize) -> &[u32] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.earlier[start..self.ends[number]]
    }

    fn clear(&mut self) {
        self.later.clear();
        self.ends.clear();
        self.earlier.clear();
    }
}

/// Decides which sets are kept. `pairs` holds the rank of the later set in the upper 32 bits and the rank of the
/// earlier set in the lower 32 bits.
pub(super) fn cover(
    covering: &mut Covering<'_>,
    near: Nearness,
    pairs: &Sorted<u64>,
    threads: usize,
) -> Result<()> {
    let sets = covering.sets;
    let mut states: Vec<SetComparer<'_>> =
        (0..threads.max(1)).map(|_| SetComparer::new(sets, near)).collect();
    covering.passes = 1;
    let mut block = PairList::default();
    pairs.for_each(|pair| {
        let (later, earlier) = ((pair >> 32) as u32, pair as u32);
        if block.later.len() >= BLOCK_SETS && block.later.last() != Some(&later) {
            decide(covering, &block, &mut states)?;
            block.clear();
        }
        block.push(later, earlier);
        Ok::<_, twindex::Error>(())
    })?;
    decide(covering, &block, &mut states)
}

/// Decides which sets of a block are kept. All sets before the block must be decided.
fn decide(covering: &mut Covering<'_>, block: &PairList, states: &mut [SetComparer<'_>]) -> Result<()> {
    let Some(&first) = block.later.first() else { return Ok(()) };
    let pieces: Vec<_> = (0..block.later.len())
        .step_by(PIECE_SETS)
        .map(|at| at..(at + PIECE_SETS).min(block.later.len()))
        .collect();
    let before = &*covering;
    covering.reach(first as usize)?;
    let looked = on_threads(states, &pieces, |counting, piece| {
        before.check()?;
        piece
            .clone()
            .map(|number| {
                let earlier = block.earlier(number);
                let earlier = &earlier[..earlier.partition_point(|&rank| rank < first)];
                look(before, counting, block.later[number], earlier)
            })
            .collect::<Result<Vec<LookupOutcome>>>()
    })?;
    for (number, looked) in looked.into_iter().flatten().enumerate() {
        let set = covering.at(block.later[number]);
        if !covering.take(set, looked)? {
            let earlier = block.earlier(number);
            let earlier = &earlier[earlier.partition_point(|&rank| rank < first)..];
            let looked = look(covering, &mut states[0], block.later[number], earlier)?;
            covering.take(set, looked)?;
        }
    }
    Ok(())
}

/// Compares a set with the sets of `earlier` that are kept, until one is near.
fn look(
    covering: &Covering<'_>,
    counting: &mut SetComparer<'_>,
    rank: u32,
    earlier: &[u32],
) -> Result<LookupOutcome> {
    let (set, mut looked) = (covering.at(rank), LookupOutcome::default());
    if covering.is_fixed(rank) {
        return Ok(looked);
    }
    for &rank in earlier {
        let other = covering.at(rank);
        if covering.is_kept(other) {
            looked.comparisons += 1;
            looked.counted += 1;
            if let Some(shared) = counting.shared(set, other)? {
                looked.by = Some((other, shared));
                break;
            }
        }
    }
    Ok(looked)
}
