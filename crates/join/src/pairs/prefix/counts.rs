//! Counts in how many prefixes each element occurs, in tables of a fixed size in which elements may collide.

use super::order::{HeadScratch, Ordered};
use super::spread::{part_of, spread};
use crate::bands::candidates::{PAIRS, PAIRS_LEAST};
use twindex::error::Result;
use twindex::sys::threads::{on_each, on_threads};

/// Number of candidates per set above which the cap is lowered, unless there are fewer than `CANDIDATES_MIN` candidates
/// in total. A candidate is counted once for each shared element.
pub const CANDIDATES_PER_SET: u64 = 4_000;
/// Total number of candidates below which the cap is not lowered; see [`CANDIDATES_PER_SET`].
const CANDIDATES_MIN: u64 = 1_000_000_000;
/// Number of pieces per thread that are processed before any of their results are collected.
pub(super) const PIECES: usize = 8;
/// Minimum memory in bytes for the index of a block, and for the filter.
pub(super) const LEAST: usize = 1 << 16;

/// A filter that recognises the elements that are in the prefixes of more than one set. It has false positives.
pub(super) struct SharedFilter {
    /// Two bits per element, four elements per byte: 0 if no prefix contains the element, 1 for one prefix, 3 for more.
    seen: Vec<u8>,
    bits: u32,
}

impl SharedFilter {
    #[inline(always)]
    pub(super) fn has(&self, element: u64) -> bool {
        let at = spread(element, self.bits);
        self.seen[at >> 2] >> (2 * (at & 3)) & 2 != 0
    }
}

/// Upper bounds of the number of prefixes that contain each element.
pub(super) struct ElementCounts {
    counts: Vec<u32>,
    bits: u32,
    /// Maximum number of prefixes that contain an element that is not capped.
    pub(super) cap: u64,
    pub(super) largest: u32,
}

/// The slices of both tables for the elements of one part; see [`part_of`].
struct CountPart<'t> {
    seen: &'t mut [u8],
    bits: u32,
    counts: &'t mut [u32],
    count_bits: u32,
}

/// Splits each table into 2^`part_bits` parts.
fn parts<'t>(
    shared: &'t mut SharedFilter,
    element_counts: &'t mut ElementCounts,
    part_bits: u32,
) -> Vec<CountPart<'t>> {
    let (bits, count_bits) = (shared.bits, element_counts.bits);
    let seen = shared.seen.chunks_exact_mut(1 << (bits - 2 - part_bits));
    let counts = element_counts.counts.chunks_exact_mut(1 << (count_bits - part_bits));
    seen.zip(counts).map(|(seen, counts)| CountPart { seen, bits, counts, count_bits }).collect()
}

impl CountPart<'_> {
    fn count(&mut self, elements: &[u64]) {
        for &element in elements {
            let at = spread(element, self.bits);
            let (byte, shift) = (&mut self.seen[at >> 2 & (self.seen.len() - 1)], 2 * (at & 3));
            // The first set with the element sets the lower bit of the cell, a second set the upper bit.
            *byte |= (*byte >> shift << 1 & 2 | 1) << shift;
            let at = spread(element, self.count_bits) & (self.counts.len() - 1);
            self.counts[at] = self.counts[at].saturating_add(1);
        }
    }
}

/// The elements that a thread found, by part of the tables. Aligned to prevent false sharing.
#[repr(align(128))]
struct Finder<'r> {
    head_scratch: &'r mut HeadScratch,
    elements: Vec<Vec<u64>>,
}

impl ElementCounts {
    #[inline(always)]
    fn count(&self, element: u64) -> u64 {
        self.counts[spread(element, self.bits)].into()
    }

    #[inline(always)]
    pub(super) fn has(&self, element: u64) -> bool {
        self.count(element) > self.cap
    }

    /// Returns whether any element may be capped.
    pub(super) fn any(&self) -> bool {
        u64::from(self.largest) > self.cap
    }

    /// Lowers the cap until it allows neither too many candidates nor too many pairs.
    ///
    /// A set that shares an element with c - 1 other sets forms at least c - 1 pairs. Only other elements can add
    /// pairs. So the number of pairs of a set is estimated from its most frequent element that is not capped.
    fn limit(
        &mut self,
        ordered: Ordered<'_>,
        list: &[u32],
        head_scratches: &mut [HeadScratch],
    ) -> Result<()> {
        self.largest = self.counts.iter().copied().max().unwrap_or(0);
        let (largest, sets) = (u64::from(self.largest), ordered.sets.len() as u64);
        let caps: Vec<u64> = std::iter::successors(Some(self.cap.min(largest)), |&cap| {
            (cap > 2).then(|| cap - (cap / 4).max(1))
        })
        .collect();
        let allowed = (PAIRS * sets).max(PAIRS_LEAST);
        let mut pairs = vec![0_u64; caps.len()];
        if sets.saturating_mul(caps[0]) / 2 > allowed {
            let pieces: Vec<_> = ordered.pieces(list, 0).collect();
            let of_pieces = on_threads(head_scratches, &pieces, |head_scratch, piece| {
                let mut pairs = vec![0_u64; caps.len()];
                let mut max = vec![0; caps.len()];
                for &set in &list[piece.clone()] {
                    max.fill(0);
                    for &element in ordered.head(set, head_scratch)?.0 {
                        let count = self.count(element);
                        // Finds the smallest cap at which the element is not capped.
                        if let Some(within) = caps.partition_point(|&cap| cap >= count).checked_sub(1) {
                            max[within] = count.max(max[within]);
                        }
                    }
                    let mut below = 0;
                    for (pairs, &max) in pairs.iter_mut().zip(&max).rev() {
                        below = max.max(below);
                        *pairs += below;
                    }
                }
                Ok(pairs)
            })?;
            for of_piece in of_pieces {
                pairs.iter_mut().zip(of_piece).for_each(|(pairs, more)| *pairs += more);
            }
        }
        let candidates = |cap: u64| {
            let below = self.counts.iter().map(|&count| u64::from(count)).filter(|&count| count <= cap);
            below.map(|count| count * count / 2).fold(0, u64::saturating_add)
        };
        let is_bounded = |&(&cap, &pairs): &(&u64, &u64)| {
            pairs / 2 <= allowed && candidates(cap) <= (CANDIDATES_PER_SET * sets).max(CANDIDATES_MIN)
        };
        let cap = caps.iter().zip(&pairs).find(is_bounded).map_or(2, |(&cap, _)| cap);
        if cap < largest {
            self.cap = cap;
        }
        Ok(())
    }
}

/// Counts the elements of all prefixes, and finds the elements that several prefixes share. The filter takes at most
/// `memory` bytes.
pub(super) fn counted(
    ordered: Ordered<'_>,
    max_bucket: u64,
    memory: usize,
    head_scratches: &mut [HeadScratch],
) -> Result<(SharedFilter, ElementCounts)> {
    // Four to eight cells for each prefix element.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are at most 1")]
    let all = (ordered.sets.elements() as f64 * (1.0 - ordered.threshold)) as u64 + ordered.sets.len() as u64;
    let bits = (8 * all).clamp(4, 4 * memory.max(LEAST) as u64).ilog2();
    let mut shared = SharedFilter { seen: vec![0; 1 << (bits - 2)], bits };
    // The size of this table affects the results, so it must not depend on the memory.
    let element_count_bits = (all / 4).clamp(1 << 10, 1 << 22).ilog2();
    let mut element_counts = ElementCounts {
        counts: vec![0; 1 << element_count_bits],
        bits: element_count_bits,
        cap: max_bucket,
        largest: 0,
    };
    // Reads the sets in the order of their numbers, which is also their order in the scratch file.
    let list: Vec<u32> = (0..ordered.sets.len() as u32).filter(|&set| ordered.sets.size(set) > 0).collect();
    let pieces: Vec<_> = ordered.pieces(&list, 0).collect();
    // All threads first collect elements. Then each thread counts the elements of its own parts, so no two threads
    // write to the same cell.
    let part_bits = head_scratches.len().next_power_of_two().ilog2().min(bits - 2).min(element_count_bits);
    let mut parts = parts(&mut shared, &mut element_counts, part_bits);
    // Writes each page before it is read. A read would map the shared zero page, and a later write would cause a second
    // page fault with a TLB shootdown on all other threads.
    on_each(&mut parts, |_, part| {
        part.seen.fill(0);
        part.counts.fill(0);
    });
    let mut finders: Vec<_> = head_scratches
        .iter_mut()
        .map(|head_scratch| Finder { head_scratch, elements: vec![Vec::new(); parts.len()] })
        .collect();
    for some in pieces.chunks(2 * PIECES * finders.len()) {
        on_threads(&mut finders, some, |finder, piece| {
            for &set in &list[piece.clone()] {
                let (head, _) = ordered.head(set, finder.head_scratch)?;
                for &element in head {
                    finder.elements[part_of(element, part_bits)].push(element);
                }
            }
            Ok(())
        })?;
        let found = &finders;
        on_each(&mut parts, |number, part| {
            for finder in found {
                part.count(&finder.elements[number]);
            }
        });
        finders.iter_mut().flat_map(|finder| &mut finder.elements).for_each(Vec::clear);
    }
    drop(finders);
    drop(parts);
    element_counts.limit(ordered, &list, head_scratches)?;
    Ok((shared, element_counts))
}
