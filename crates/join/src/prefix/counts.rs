//! Counts the sets that have each element in their prefix, in tables of a fixed size in which elements may collide.

use super::super::candidates::{PAIRS, PAIRS_LEAST};
use super::super::threads::{on_each, on_threads};
use super::order::{HeadScratch, Ordered};
use super::{CANDIDATES_MIN, CANDIDATES_PER_SET, LEAST, PIECES, part_of, spread};
use twindex::error::Result;

/// A filter of the elements in the prefixes of more than one set; false positives are possible.
pub(super) struct SharedFilter {
    /// Two bits per element, four elements per byte: 0 for no set, 1 for one set, 3 for more.
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
    /// Elements in the prefixes of more sets are capped.
    pub(super) cap: u64,
    pub(super) largest: u32,
}

/// The part of both tables for elements with the same first bits.
struct CountPart<'t> {
    seen: &'t mut [u8],
    bits: u32,
    counts: &'t mut [u32],
    count_bits: u32,
}

/// Splits the tables into 2^`part_bits` parts.
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
            // The lower bit records the first set, the upper bit a second one.
            *byte |= (*byte >> shift << 1 & 2 | 1) << shift;
            let at = spread(element, self.count_bits) & (self.counts.len() - 1);
            self.counts[at] = self.counts[at].saturating_add(1);
        }
    }
}

/// The elements that a thread has to count, by part. Aligned so that threads share no cache line.
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

    /// Whether any element may be capped.
    pub(super) fn any(&self) -> bool {
        u64::from(self.largest) > self.cap
    }

    /// Finds the cap at which elements lead neither to too many candidates nor to too many pairs.
    ///
    /// A set that shares an element with c - 1 others is in at least c - 1 pairs, and in more only through other elements.
    /// So pairs are estimated by each set's most frequent element up to the cap.
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
                        // The smallest cap that does not cap the element.
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

/// Counts the elements of all prefixes, and finds the shared ones, in tables of at most `memory` bytes.
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
    // The size does not depend on the memory, so results do not either.
    let element_count_bits = (all / 4).clamp(1 << 10, 1 << 22).ilog2();
    let mut element_counts = ElementCounts {
        counts: vec![0; 1 << element_count_bits],
        bits: element_count_bits,
        cap: max_bucket,
        largest: 0,
    };
    // Sets in the order of their scratch file.
    let list: Vec<u32> = (0..ordered.sets.len() as u32).filter(|&set| ordered.sets.size(set) > 0).collect();
    let pieces: Vec<_> = ordered.pieces(&list, 0).collect();
    // Threads first find elements, then each counts the elements of its own parts, so no two threads write to the same cell.
    let part_bits = head_scratches.len().next_power_of_two().ilog2().min(bits - 2).min(element_count_bits);
    let mut parts = parts(&mut shared, &mut element_counts, part_bits);
    // Writes the memory first: reading it before the first write would cost a page fault for the shared zero page, and
    // another one with a TLB shootdown on all other threads.
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
