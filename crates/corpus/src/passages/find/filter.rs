//! A counting filter of fixed size that finds the fingerprints that occur more than once.

use std::sync::atomic::{AtomicU64, Ordering};

use twindex::{Error, Result};
use zerocopy::FromZeros;

/// Number of 64-bit words in a block. A block fills one cache line.
const BLOCK: usize = 8;
/// Number of 2-bit counters in a 64-bit word.
const COUNTERS: u64 = 32;

/// A counting filter (Fan, Cao, Almeida and Broder, *Summary cache*, 2000) with 2-bit counters that saturate at two.
///
/// Each fingerprint has two counters, in the same block of 64 bytes. Several threads may count at the same time; the
/// result does not depend on their order. A fingerprint that was counted at least twice is always reported. A
/// fingerprint that was counted once is reported falsely if other fingerprints increased both of its counters, too.
/// False positives cost time but change no result. With `n` fingerprints and `m` counters, their probability is about
/// (1 - exp(-2 n / m))^2.
#[derive(Debug)]
pub struct Recurring {
    /// Two bits per counter c: bit 2 c is set if the counter is at least one, bit 2 c + 1 if it is at least two.
    words: Box<[AtomicU64]>,
    blocks: u64,
}

/// Returns the block of a fingerprint. Selected fingerprints are minima of windows, so their upper bits are mostly
/// zero. Multiplying by an odd number spreads the lower bits over all blocks.
#[inline]
pub(crate) fn block_of(fingerprint: u64, blocks: u64) -> usize {
    let spread = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(spread) * u128::from(blocks)) >> 64) as usize
}

impl Recurring {
    /// Creates a filter of up to `memory` bytes, at least one block.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the memory cannot be allocated.
    pub fn new(memory: usize) -> Result<Self> {
        let blocks = (memory / (8 * BLOCK)).max(1);
        // The operating system zeroes a page when a thread first counts there.
        let words = <[AtomicU64]>::new_box_zeroed_with_elems(blocks * BLOCK).map_err(|_| {
            Error::Invalid(format!("memory: {memory} bytes for a filter are not available; give less memory"))
        })?;
        Ok(Self { words, blocks: blocks as u64 })
    }

    /// Returns the size of the filter in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// Returns the two counters of a fingerprint, each as the index of its word and the mask of its lower bit.
    #[inline]
    fn counters(&self, fingerprint: u64) -> [(usize, u64); 2] {
        let block = block_of(fingerprint, self.blocks) * BLOCK;
        // The minimum of a window is biased in its high bits only, so the low bits choose the counters in the block.
        let counter = |bits: u64| {
            let at = bits % (BLOCK as u64 * COUNTERS);
            (block + (at / COUNTERS) as usize, 1 << (2 * (at % COUNTERS)))
        };
        let (first, second) = (counter(fingerprint), counter(fingerprint >> 8));
        [first, if first == second { counter((fingerprint >> 8) ^ 1) } else { second }]
    }

    /// Counts a fingerprint: a 64-bit hash, or the minimum of several hashes.
    #[inline]
    pub fn count(&self, fingerprint: u64) {
        for (word, once) in self.counters(fingerprint) {
            if self.words[word].fetch_or(once, Ordering::Relaxed) & once != 0 {
                self.words[word].fetch_or(once << 1, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether a fingerprint may have been counted at least twice. May be a false positive, but never a false
    /// negative.
    #[inline]
    #[must_use]
    pub fn recurs(&self, fingerprint: u64) -> bool {
        self.counters(fingerprint)
            .iter()
            .all(|&(word, once)| self.words[word].load(Ordering::Relaxed) & (once << 1) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
    }

    #[test]
    fn filter_finds_all_repeated_fingerprints_and_few_others() {
        let mut state = 1;
        let all: Vec<u64> = std::iter::repeat_with(|| random(&mut state)).take(20_000).collect();
        let one = Recurring::new(1 << 16).unwrap();
        all.iter().chain(&all[..5_000]).for_each(|&fingerprint| one.count(fingerprint));
        assert!(all[..5_000].iter().all(|&fingerprint| one.recurs(fingerprint)));
        let others = all[5_000..].iter().filter(|&&fingerprint| one.recurs(fingerprint)).count();
        let load = 2.0 * 25_000.0 / (4.0 * one.bytes() as f64);
        let expected = 15_000.0 * (1.0 - (-load).exp()).powi(2);
        assert!((others as f64) < 1.5 * expected + 30.0, "{others} instead of {expected}");
        assert!(!one.recurs(random(&mut state)) || !one.recurs(random(&mut state)));

        let together = Recurring::new(1 << 16).unwrap();
        std::thread::scope(|scope| {
            for part in [&all[..], &all[..2_500], &all[2_500..5_000]] {
                let together = &together;
                scope.spawn(move || part.iter().for_each(|&fingerprint| together.count(fingerprint)));
            }
        });
        let bits = |filter: &Recurring| -> Vec<u64> {
            filter.words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
        };
        assert_eq!(bits(&together), bits(&one));
    }

    /// Fingerprints that are minima of windows have mostly zeros as upper bits, but must be spread over all blocks.
    #[test]
    fn window_minima_use_all_blocks_with_few_false_positives() {
        let mut state = 7;
        let mut smallest = || (0..26).map(|_| random(&mut state)).min().unwrap();
        let all: Vec<u64> = std::iter::repeat_with(&mut smallest).take(20_000).collect();
        let filter = Recurring::new(1 << 16).unwrap();
        for &fingerprint in &all {
            filter.count(fingerprint);
        }
        let others = all.iter().filter(|&&fingerprint| filter.recurs(fingerprint)).count();
        let load = 2.0 * 20_000.0 / (4.0 * filter.bytes() as f64);
        let expected = 20_000.0 * (1.0 - (-load).exp()).powi(2);
        assert!((others as f64) < 1.5 * expected + 30.0, "{others} instead of {expected}");
    }

    #[test]
    fn smallest_filter_is_one_block_without_false_negatives() {
        let filter = Recurring::new(0).unwrap();
        assert_eq!(filter.bytes(), 64);
        for fingerprint in [0, 1, u64::MAX, 1 << 32] {
            filter.count(fingerprint);
            filter.count(fingerprint);
            assert!(filter.recurs(fingerprint));
        }
    }
}
