//! Splits components with too many documents into clusters in which one document is near all others.

use twindex_join::{Sorter, Stars};

use super::ranks::{NumberSpill, RankNumbers, place};

/// A set of ranks, one bit each.
struct RankSet(Vec<u64>);

impl RankSet {
    fn new(ranks: u32) -> Self {
        Self(vec![0; ranks.div_ceil(64) as usize])
    }

    fn add(&mut self, rank: u32) {
        self.0[rank as usize / 64] |= 1 << (rank % 64);
    }

    fn has(&self, rank: u32) -> bool {
        self.0[rank as usize / 64] >> (rank % 64) & 1 == 1
    }
}

/// The clusters that remain after large components were split.
pub(super) struct SplitClusters {
    /// For each document, the first document of its cluster.
    pub(super) roots: RankNumbers,
    /// Number of components that were split.
    pub(super) components: u64,
}

/// Splits components of more than `max` documents. Processes their documents in the order of keys: a document that is
/// in no cluster yet begins a cluster, and adds the free documents that it is paired with, up to `max` documents. So
/// every document of a new cluster is paired with its first document. `for_each_pair` must pass the ranks of all pairs,
/// in any order. Returns `None` if no component is too large.
///
/// Memory: two bits for each rank, and the memory of `destination`; scratch files beyond that.
pub(super) fn split(
    stars: &Stars,
    max: u32,
    destination: NumberSpill<'_>,
    for_each_pair: impl FnOnce(&mut dyn FnMut(u32, u32) -> anyhow::Result<()>) -> anyhow::Result<()>,
) -> anyhow::Result<Option<SplitClusters>> {
    let mut large = RankSet::new(stars.keys());
    let (mut components, mut current, mut size) = (0, None, 0_u32);
    stars.for_each_rank(|root, _| {
        size = if current.replace(root) == Some(root) { size.saturating_add(1) } else { 2 };
        if size > max && !large.has(root) {
            large.add(root);
            components += 1;
        }
        anyhow::Ok(())
    })?;
    if components == 0 {
        return Ok(None);
    }
    // Adds the members of large components. A member is never a root, so its bit adds no other component.
    stars.for_each_rank(|root, rank| {
        if large.has(root) {
            large.add(rank);
        }
        anyhow::Ok(())
    })?;
    let mut pairs: Sorter<u64> = Sorter::new(destination.folder, destination.memory);
    for_each_pair(&mut |a, b| {
        if a != b && large.has(a) && large.has(b) {
            pairs.push(place(a.min(b), a.max(b)))?;
        }
        Ok(())
    })?;
    let pairs = pairs.finish()?;
    let roots = RankNumbers::of(stars.keys(), destination, |roots| {
        stars.for_each_rank(
            |root, rank| {
                if large.has(root) { Ok(()) } else { roots.push(place(rank, root)) }
            },
        )?;
        let mut taken = RankSet::new(stars.keys());
        let (mut first, mut size) = (None, 0);
        // Pairs are sorted by their first document. So a document begins a cluster only after all earlier documents
        // could add it to theirs.
        pairs.for_each(|pair| {
            let (a, b) = ((pair >> 32) as u32, pair as u32);
            if first.replace(a) != Some(a) {
                size = 1;
            }
            if taken.has(a) || taken.has(b) || size == max {
                return Ok(());
            }
            taken.add(b);
            size += 1;
            roots.push(place(b, a))
        })
    })?;
    Ok(Some(SplitClusters { roots, components }))
}
