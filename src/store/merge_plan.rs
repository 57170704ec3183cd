//! The merge policy: decides which segments are merged, and when. The decision depends only on the sizes of the segments.
//!
//! The policy is size-tiered with lazy leveling (Dayan and Idreos, *Dostoevsky*, SIGMOD 2018). Each tier contains
//! segments that are larger by a constant factor. When a tier has this factor of segments, they are merged into one
//! segment of the next tier. The largest segment is a tier of its own: it is merged only when the others together have
//! at least half as many live documents. So each record is rewritten once per tier, there are few tiers, and a query
//! searches few segments.

/// The size of a segment in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of live documents.
    pub live: u64,
    /// Number of documents, live or not.
    pub documents: u64,
}

/// When a tier has this number of segments, they are merged.
const FACTOR: usize = 4;
/// The maximum number of segments after all due merges.
pub const SEGMENTS_MAX: usize = 8;
/// All segments are merged when there are at least [`FACTOR`] besides the largest, and these together have at least
/// 1/`SHARE` as many live documents as the largest.
const SHARE: u64 = 2;
/// A segment is rewritten on its own if fewer than 1/`DEAD` of its documents are live.
const DEAD: u64 = 2;
/// Base size of tiers: tier 0 has the segments of at most `(FACTOR - 1) * LEAST` live documents.
const LEAST: u64 = 1 << 12;

/// Returns the tier of a segment with n live documents: floor(log(ceil(n / [`LEAST`])) / log([`FACTOR`])).
fn tier(size: &Size) -> u32 {
    (size.live.max(1).div_ceil(LEAST)).ilog(FACTOR as u64)
}

/// Returns the positions of the segments to merge now; empty if no merge is due. `busy` has the positions of the segments
/// that are being merged already. At most one merge runs at a time.
#[must_use]
pub fn choose(sizes: &[Size], busy: &[usize]) -> Vec<usize> {
    let mut free: Vec<usize> = (0..sizes.len()).filter(|place| !busy.contains(place)).collect();
    free.sort_by_key(|&place| (sizes[place].live, place));
    let Some((&largest, others)) = free.split_last() else { return Vec::new() };
    let of_others: u64 = others.iter().map(|&place| sizes[place].live).sum();
    // Merges all free segments, because the others together are at least half as large as the largest.
    if others.len() >= FACTOR && of_others >= sizes[largest].live / SHARE {
        return sorted(free);
    }
    // Begins with the lowest tier, because its merged segment may fill the next tier.
    let mut start = 0;
    while start < free.len() {
        let of = tier(&sizes[free[start]]);
        let end = start + free[start..].iter().take_while(|&&place| tier(&sizes[place]) == of).count();
        if end - start >= FACTOR {
            return sorted(free[start..end].to_vec());
        }
        start = end;
    }
    if sizes.len() > SEGMENTS_MAX && free.len() >= 2 {
        return sorted(free[..free.len().min(FACTOR)].to_vec());
    }
    let dead = free.iter().find(|&&place| {
        let Size { live, documents } = sizes[place];
        documents > LEAST && live < documents / DEAD
    });
    dead.map_or(Vec::new(), |&place| vec![place])
}

fn sorted(mut places: Vec<usize>) -> Vec<usize> {
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(live: u64) -> Size {
        Size { live, documents: live }
    }

    #[test]
    fn merge_policy_bounds_segment_count_and_write_amplification() {
        for flush in [1000_u64, 200_000] {
            let (mut sizes, mut written, mut max) = (Vec::new(), 0, 0);
            let flushes = 400;
            for _ in 0..flushes {
                sizes.push(whole(flush));
                written += flush;
                loop {
                    let chosen = choose(&sizes, &[]);
                    if chosen.is_empty() {
                        break;
                    }
                    let merged: u64 = chosen.iter().map(|&place| sizes[place].live).sum();
                    written += merged;
                    let mut place = 0;
                    sizes.retain(|_| {
                        place += 1;
                        !chosen.contains(&(place - 1))
                    });
                    sizes.push(whole(merged));
                }
                max = max.max(sizes.len());
            }
            let amplification = written as f64 / (flush * flushes) as f64;
            println!(
                "flushes of {flush}: at most {max} segments, each record written {amplification:.1} times"
            );
            assert!(max <= SEGMENTS_MAX && amplification < 7.0, "{max} {amplification}");
        }
    }

    #[test]
    fn segment_with_few_live_documents_is_merged_alone() {
        let sizes = [whole(1_000_000), Size { live: 10_000, documents: 30_000 }];
        assert_eq!(choose(&sizes, &[]), [1]);
        assert_eq!(choose(&[whole(1_000_000), whole(30_000)], &[]), [0_usize; 0]);
        assert_eq!(choose(&[], &[]), [0_usize; 0]);
    }

    #[test]
    fn segments_of_a_running_merge_are_not_chosen_again() {
        let sizes = [whole(5_000); 6];
        let chosen = choose(&sizes, &[0, 1, 2, 3]);
        assert!(chosen.is_empty(), "{chosen:?}");
    }
}
