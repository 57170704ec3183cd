//! A counting filter of fixed size that finds the fingerprints that occur in more than a given number of documents.

use std::sync::atomic::{AtomicU8, Ordering};

use twindex::{Error, Result};

use crate::passages::find::filter::block_of;

/// Number of counters in a block. A block fills one cache line.
const BLOCK: usize = 64;

/// A counting filter (Fan, Cao, Almeida and Broder, *Summary cache*, 2000) with one-byte counters, which saturate at
/// `more_than` + 1, at most 255.
///
/// Each fingerprint has two counters, in the same block of 64 bytes. A fingerprint that occurs in more than `more_than`
/// documents is always reported. Another fingerprint is reported if both of its counters saturate, because other
/// fingerprints share them or because `more_than` is above 254. Such false positives cost time but change no result.
/// Several threads may count at the same time, in any order.
#[derive(Debug)]
pub struct SharedGrams {
    counters: Vec<AtomicU8>,
    blocks: u64,
    /// The value at which counters saturate.
    enough: u8,
}

impl SharedGrams {
    /// Creates a filter of up to `memory` bytes, at least one block, for fingerprints that occur in more than `more_than`
    /// documents.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the memory cannot be allocated.
    pub fn new(memory: usize, more_than: u32) -> Result<Self> {
        let blocks = (memory / BLOCK).max(1);
        let mut counters = Vec::new();
        counters.try_reserve_exact(blocks * BLOCK).map_err(|_| {
            Error::Invalid(format!("memory: {memory} bytes for a filter are not available; give less memory"))
        })?;
        counters.resize_with(blocks * BLOCK, AtomicU8::default);
        let enough = u8::try_from(more_than.saturating_add(1)).unwrap_or(u8::MAX);
        Ok(Self { counters, blocks: blocks as u64, enough })
    }

    /// Returns the two counters of a fingerprint.
    #[inline]
    fn of(&self, fingerprint: u64) -> [&AtomicU8; 2] {
        let block = block_of(fingerprint, self.blocks) * BLOCK;
        // Uses the low bits, because they are random even if the fingerprint is the minimum of several.
        let (first, second) = (fingerprint as usize % BLOCK, (fingerprint >> 6) as usize % BLOCK);
        let second = if first == second { (second + 1) % BLOCK } else { second };
        [&self.counters[block + first], &self.counters[block + second]]
    }

    /// Counts a fingerprint, which is the minimum of several random 64-bit fingerprints. Must be called once for each
    /// document that selects it.
    #[inline]
    pub fn count(&self, fingerprint: u64) {
        for counter in self.of(fingerprint) {
            let more = |count: u8| (count < self.enough).then(|| count + 1);
            // The update fails if the counter is saturated, which is correct.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Returns whether a fingerprint may occur in more than `more_than` documents. May be a false positive, but never a
    /// false negative.
    #[inline]
    #[must_use]
    pub fn is_shared(&self, fingerprint: u64) -> bool {
        self.of(fingerprint).iter().all(|counter| counter.load(Ordering::Relaxed) >= self.enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_finds_all_frequent_grams_and_few_others() {
        for more_than in [1, 4, 200, 300, u32::MAX] {
            let (common, rare) = (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);
            let filter = SharedGrams::new(1 << 12, more_than).unwrap();
            let times = more_than.min(400);
            std::thread::scope(|scope| {
                for part in [times / 2, times - times / 2] {
                    let filter = &filter;
                    scope.spawn(move || (0..part).for_each(|_| filter.count(common)));
                }
            });
            filter.count(rare);
            // Counters saturate at 255, so for thresholds above 254, saturated fingerprints are reported.
            assert_eq!(filter.is_shared(common), more_than >= 255, "{more_than}");
            filter.count(common);
            assert!(filter.is_shared(common), "{more_than}");
            assert!(!filter.is_shared(rare), "{more_than}");
        }
        let min = SharedGrams::new(0, 1).unwrap();
        (0..64).for_each(|fingerprint| (0..2).for_each(|_| min.count(fingerprint << 58 | fingerprint)));
        assert!((0..64).all(|fingerprint| min.is_shared(fingerprint << 58 | fingerprint)));
    }
}
