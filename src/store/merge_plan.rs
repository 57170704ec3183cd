//! Which segments are merged when. A pure function of their sizes.
//!
//! Size-tiered with lazy leveling (Dayan and Idreos, *Dostoevsky*, SIGMOD 2018). Segments are in tiers whose sizes grow
//! by a factor. When a tier has as many segments as the factor, they are merged into one of the next tier. The largest
//! segment is a tier of its own; the others are merged into it only when together they have a certain share of its
//! size. So a record is rewritten once a tier, with few tiers, and a query searches few segments.

/// The sizes of a segment, as the plan sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Live documents in it.
    pub live: u64,
    /// Documents in it.
    pub documents: u64,
}

/// Segments of a tier that trigger a merge.
const FACTOR: usize = 4;
/// The most segments that are left.
pub const SEGMENTS_MAX: usize = 8;
/// All are merged into the largest when the others together have one in n of its documents.
const SHARE: u64 = 2;
/// A segment in which only one in n documents is live is merged for that reason alone.
const DEAD: u64 = 2;
/// Segments below this size, that of a memtable, are in the same tier.
const LEAST: u64 = 1 << 12;

/// The tier of a segment: 0 up to [`LEAST`] documents, then one more for each [`FACTOR`].
fn tier(size: &Size) -> u32 {
    (size.live.max(1).div_ceil(LEAST)).ilog(FACTOR as u64)
}

/// The segments, by position, to merge now; empty if all may stay. At most one merge is in progress, and uses the
/// positions `busy`.
#[must_use]
pub fn choose(sizes: &[Size], busy: &[usize]) -> Vec<usize> {
    let mut free: Vec<usize> = (0..sizes.len()).filter(|place| !busy.contains(place)).collect();
    free.sort_by_key(|&place| (sizes[place].live, place));
    let Some((&largest, others)) = free.split_last() else { return Vec::new() };
    let of_others: u64 = others.iter().map(|&place| sizes[place].live).sum();
    // The small segments are more than half of the index: merge everything.
    if others.len() >= FACTOR && of_others >= sizes[largest].live / SHARE {
        return sorted(free);
    }
    // From the lowest tier: its output may fill the next.
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
    fn segments_stay_few_and_records_are_written_a_few_times() {
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
