//! How many sets each element begins, in tables of a fixed size in which elements may fall together.

use super::super::candidates::{PAIRS, PAIRS_LEAST};
use super::super::threads::{on_each, on_threads};
use super::order::{HeadScratch, Ordered};
use super::{CANDIDATES_MIN, CANDIDATES_PER_SET, LEAST, PIECES, part_of, spread};
use twindex::error::Result;

/// A filter of the elements in the prefixes of more than one set; some others pass, too.
pub(super) struct SharedFilter {
    /// Two bits for an element, four elements to a byte: 0, 1 for one set, 3 for more.
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

/// Upper bounds of the number of prefixes that elements are in.
pub(super) struct ElementCounts {
    counts: Vec<u32>,
    bits: u32,
    /// Elements of more sets are capped.
    pub(super) cap: u64,
    pub(super) largest: u32,
}

/// The part of both tables whose elements have the same first bits.
struct CountPart<'t> {
    seen: &'t mut [u8],
    bits: u32,
    counts: &'t mut [u32],
    count_bits: u32,
}

/// Cuts the tables into 2^`part_bits` parts.
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
            // One bit for once, one for more.
            *byte |= (*byte >> shift << 1 & 2 | 1) << shift;
            let at = spread(element, self.count_bits) & (self.counts.len() - 1);
            self.counts[at] = self.counts[at].saturating_add(1);
        }
    }
}

/// The elements that a thread has to count, by part. No two threads share a cache line.
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

    /// True if any element may be capped.
    pub(super) fn any(&self) -> bool {
        u64::from(self.largest) > self.cap
    }

    /// Finds the cap up to which elements do not lead to too many candidates, nor to too many pairs.
    ///
    /// A set that shares an element with c - 1 others is in at least c - 1 pairs, and in more only by other elements: pairs
    /// are estimated by each set's most frequent element up to the cap.
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
                        // The smallest cap that allows it.
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

/// Counts the elements of all prefixes, and which of them are shared, in tables of at most `memory` bytes.
pub(super) fn counted(
    ordered: Ordered<'_>,
    max_bucket: u64,
    memory: usize,
    head_scratches: &mut [HeadScratch],
) -> Result<(SharedFilter, ElementCounts)> {
    // Four to eight places for an element of a prefix.
    #[allow(clippy::cast_sign_loss, reason = "thresholds are at most 1")]
    let all = (ordered.sets.elements() as f64 * (1.0 - ordered.threshold)) as u64 + ordered.sets.len() as u64;
    let bits = (8 * all).clamp(4, 4 * memory.max(LEAST) as u64).ilog2();
    let mut shared = SharedFilter { seen: vec![0; 1 << (bits - 2)], bits };
    // The size does not depend on the memory, so that results do not either.
    let element_count_bits = (all / 4).clamp(1 << 10, 1 << 22).ilog2();
    let mut element_counts = ElementCounts {
        counts: vec![0; 1 << element_count_bits],
        bits: element_count_bits,
        cap: max_bucket,
        largest: 0,
    };
    // In the order in which they are in their scratch file.
    let list: Vec<u32> = (0..ordered.sets.len() as u32).filter(|&set| ordered.sets.size(set) > 0).collect();
    let pieces: Vec<_> = ordered.pieces(&list, 0).collect();
    // Threads first find elements, and then each counts those of its parts: no two write to one place.
    let part_bits = head_scratches.len().next_power_of_two().ilog2().min(bits - 2).min(element_count_bits);
    let mut parts = parts(&mut shared, &mut element_counts, part_bits);
    // Memory that is read before it is written to costs a fault for the page of zeros that is mapped there, and another one
    // that all other threads must hear of.
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
