//! Shingles to a signature of t minima, of which two documents share a fraction that estimates their
//! resemblance.
//!
//! Broder, *On the resemblance and containment of documents*, 1997, and Broder, Charikar, Frieze and
//! Mitzenmacher, *Min-wise independent permutations*, 1998: under a random order, the least elements of two
//! sets are the same with a probability equal to the sets' resemblance. Each of the t minima is taken under
//! an order of its own.
//!
//! The family is *one-permutation-filled*: one-permutation hashing (Li, Owen and Zhang, 2012), with bins that
//! stay empty filled by minima of their own. For a shingle hash x and t bins,
//!
//! ```text
//! bin(x)     = ((x >> 32) * t) >> 32
//! value(x)   = x & 0x7fffffff
//! signature[j] = min { value(x)   : x in the set, bin(x) = j }    if there is such an x
//!              = min { fill(x, j) : x in the set }                otherwise
//!
//! fill(x, j): on 32-bit words, wrapping,
//!   y = (low(x) ^ key[j]) * 0x85ebca6b;   y ^= y >> 15
//!   y = (y ^ high(x)) * 0xc2b2ae35;       y ^= y >> 16
//!   0x80000000 | y >> 1                   with key[j] = the low 32 bits of mix(0xa4093822299f31d0 + j);
//!                                    mix is that of `shingle`
//! ```
//!
//! **Why this is unbiased.** Component j is the minimum under one order of *all* shingles: first those of bin
//! j, by value, then all others, by `fill(x, j)`. The top bit keeps the two kinds apart. The order does not
//! depend on the set, so two sets agree in component j exactly if the least element of their union is in
//! both, with probability J. Borrowing from neighbouring bins (rotation, "densification") makes components
//! depend on one another instead, which multiplies the variance for short documents, and features of
//! neighbouring minima fail to be rare.
//!
//! Departure: 31-bit values stand for elements, so different elements may tie, with a chance of about n /
//! 2^31 for n shingles in a bin. Shingle hashes are already mixed and seeded, so bins and values are plain
//! bits of them.
//!
//! **Packing.** The low bits of minima suffice for estimates (Li and König, *b-bit minwise hashing*, 2010).
//!
//! One pass over the shingles, and one more for every 64 bins that stayed empty: n shingles leave about
//! t * exp(-n / t) bins empty. Repeated shingles change nothing.

use super::shingle::mix;

/// Values of filled bins; those of hit bins are below.
const FILLED: u32 = 1 << 31;

/// No value of a hit bin.
const EMPTY: u32 = u32::MAX;

/// Where the keys of [`fill`] start: the third 64 bits of the fraction of pi.
const KEYS: u64 = 0xa409_3822_299f_31d0;

/// Multipliers of [`fill`], from the 32-bit finalizer of Appleby's `MurmurHash3`.
const FILL: [u32; 2] = [0x85eb_ca6b, 0xc2b2_ae35];

/// How many empty bins are filled in one pass over the shingles; a multiple of 8.
const LANES: usize = 64;

/// Makes signatures of a fixed number of minima.
///
/// ```
/// use twindex::sketch::MinHasher;
///
/// let hasher = MinHasher::new(84);
/// let mut signature = Vec::new();
/// hasher.signature(&[0x0123_4567_89ab_cdef], &mut signature);
/// assert_eq!(signature.len(), 84);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinHasher {
    keys: Vec<u32>,
}

impl MinHasher {
    /// For signatures of `minima` minima; 1 to [`MINIMA_MAX`](crate::params::MINIMA_MAX) can be stored.
    #[must_use]
    pub fn new(minima: usize) -> Self {
        Self { keys: (0..minima as u64).map(|bin| mix(KEYS.wrapping_add(bin)) as u32).collect() }
    }

    /// The number of minima in a signature.
    #[must_use]
    pub fn minima(&self) -> usize {
        self.keys.len()
    }

    /// Replaces `signature` by the minima of a set of well-mixed 64-bit hashes, such as shingle hashes; no
    /// hashes, no minima. Order and repetitions do not matter.
    pub fn signature(&self, hashes: &[u64], signature: &mut Vec<u32>) {
        signature.clear();
        if hashes.is_empty() {
            return;
        }
        signature.resize(self.keys.len(), EMPTY);
        let bins = self.keys.len() as u64;
        for &hash in hashes {
            if let Some(minimum) = signature.get_mut((((hash >> 32) * bins) >> 32) as usize) {
                *minimum = (*minimum).min(hash as u32 & !FILLED);
            }
        }
        let mut empty = EmptyBins::default();
        for bin in 0..signature.len() {
            if signature[bin] == EMPTY {
                empty.push(bin, self.keys[bin]);
                if empty.count == LANES {
                    empty.fill(hashes, signature);
                }
            }
        }
        empty.fill(hashes, signature);
    }
}

/// Empty bins that are filled in one pass.
struct EmptyBins {
    bins: [usize; LANES],
    keys: [u32; LANES],
    count: usize,
}

impl Default for EmptyBins {
    fn default() -> Self {
        Self { bins: [0; LANES], keys: [0; LANES], count: 0 }
    }
}

impl EmptyBins {
    fn push(&mut self, bin: usize, key: u32) {
        self.bins[self.count] = bin;
        self.keys[self.count] = key;
        self.count += 1;
    }

    /// Fills them and forgets them.
    ///
    /// The hashes are the outer loop and the bins the inner one, without branches and in whole vectors: of
    /// short documents, which leave many bins empty, there are few hashes.
    fn fill(&mut self, hashes: &[u64], signature: &mut [u32]) {
        if self.count == 0 {
            return;
        }
        let lanes = self.count.next_multiple_of(8);
        let mut minima = [i32::MAX; LANES];
        let (minima, keys) = (&mut minima[..lanes], &self.keys[..lanes]);
        for &hash in hashes {
            for (minimum, &key) in minima.iter_mut().zip(keys) {
                *minimum = (*minimum).min(fill(hash, key));
            }
        }
        for (&bin, &minimum) in self.bins[..self.count].iter().zip(minima.iter()) {
            signature[bin] = FILLED | minimum.cast_unsigned();
        }
        self.count = 0;
    }
}

/// The value of a hash in a bin it does not fall in, but for the top bit. Signed, but never negative: only
/// signed numbers can be compared by every vector unit.
#[inline]
fn fill(hash: u64, key: u32) -> i32 {
    let mut y = (hash as u32 ^ key).wrapping_mul(FILL[0]);
    y ^= y >> 15;
    y = (y ^ (hash >> 32) as u32).wrapping_mul(FILL[1]);
    y ^= y >> 16;
    (y >> 1).cast_signed()
}

/// Appends the low `bits` bits of every minimum: the first minimum in the lowest bits of the first byte and
/// so on, padded with zeros to a byte.
/// [`MinhashParams::signature_bytes`](crate::params::MinhashParams::signature_bytes) tells the length. `bits`
/// is one of [`SIGNATURE_BITS`](crate::params::SIGNATURE_BITS); 0 appends nothing.
///
/// ```
/// let mut packed = Vec::new();
/// twindex::sketch::pack(&[0x12, 0x34, 0x56], 4, &mut packed);
/// assert_eq!(packed, [0x42, 0x06]);
/// ```
pub fn pack(signature: &[u32], bits: u8, packed: &mut Vec<u8>) {
    let bits = u32::from(bits.min(32));
    let kept = (1_u64 << bits) - 1;
    let (mut waiting, mut filled) = (0_u64, 0);
    packed.reserve((signature.len() * bits as usize).div_ceil(8));
    for &minimum in signature {
        waiting |= (u64::from(minimum) & kept) << filled;
        filled += bits;
        while filled >= 8 {
            packed.push(waiting as u8);
            waiting >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        packed.push(waiting as u8);
    }
}

/// The number of equal values among `minima` that were [`pack`]ed at `bits` bits each.
///
/// Slices that are not of the length `pack` makes, and widths it does not have, share nothing: this never
/// panics.
#[must_use]
pub fn matches(a: &[u8], b: &[u8], minima: usize, bits: u8) -> usize {
    let bytes = minima.saturating_mul(usize::from(bits)).div_ceil(8);
    if a.len() != bytes || b.len() != bytes {
        return 0;
    }
    // Padding is zero on both sides and never differs; if it does, these are no packed minima.
    let differing = match bits {
        1 | 2 | 4 => a.iter().zip(b).map(|(a, b)| groups_set(a ^ b, bits)).sum(),
        8 => a.iter().zip(b).filter(|(a, b)| a != b).count(),
        16 | 32 => {
            let size = usize::from(bits / 8);
            a.chunks_exact(size).zip(b.chunks_exact(size)).filter(|(a, b)| a != b).count()
        }
        _ => return 0,
    };
    minima.saturating_sub(differing)
}

/// How many of the groups of 1, 2 or 4 bits of a byte are not zero.
fn groups_set(byte: u8, bits: u8) -> usize {
    let (mut folded, lowest) = match bits {
        1 => (byte, 0xff),
        2 => (byte, 0x55),
        _ => (byte | byte >> 2, 0x11),
    };
    if bits > 1 {
        folded |= folded >> 1;
    }
    (folded & lowest).count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(n: u64, salt: u64) -> Vec<u64> {
        (0..n).map(|i| mix(mix(salt) ^ i)).collect()
    }

    fn signature(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let mut signature = vec![1];
        MinHasher::new(minima).signature(hashes, &mut signature);
        signature
    }

    /// The module's definition: each component as the least of one order of all hashes.
    fn naive(minima: usize, hashes: &[u64]) -> Vec<u32> {
        let keys: Vec<u32> = (0..minima as u64).map(|j| mix(KEYS + j) as u32).collect();
        let rank = |x: u64, j: usize| {
            let bin = (u128::from(x >> 32) * minima as u128) >> 32;
            if bin == j as u128 { x as u32 & 0x7fff_ffff } else { FILLED | fill(x, keys[j]).cast_unsigned() }
        };
        (0..minima).filter_map(|j| hashes.iter().map(|&x| rank(x, j)).min()).collect()
    }

    #[test]
    fn a_signature_is_the_least_of_one_order_for_each_component() {
        for minima in [1, 2, 3, 7, 84, 120, 128, 200] {
            for n in [0, 1, 2, 5, 20, 100, 1000] {
                let set = hashes(n, 1);
                assert_eq!(signature(minima, &set), naive(minima, &set), "{n} hashes, {minima} minima");
            }
        }
    }

    #[test]
    fn order_and_repetitions_do_not_matter() {
        let set = hashes(30, 2);
        let mut shuffled: Vec<u64> = set.iter().rev().chain(&set).copied().collect();
        shuffled.rotate_left(7);
        assert_eq!(signature(84, &shuffled), signature(84, &set));
    }

    #[test]
    fn filled_minima_are_never_minima_of_bins_that_were_hit() {
        let one = signature(84, &hashes(1, 3));
        assert_eq!(one.iter().filter(|&&minimum| minimum & FILLED == 0).count(), 1);
        assert_eq!(signature(1, &[u64::MAX]), [0x7fff_ffff]);
    }

    #[test]
    fn the_signature_of_a_union_is_the_least_of_the_two() {
        // What a true minimum has and a densified bin has not; hit bins shadow filled ones by the top bit.
        let (a, b) = (hashes(20, 4), hashes(35, 5));
        let union: Vec<u64> = a.iter().chain(&b).copied().collect();
        let least: Vec<u32> =
            signature(84, &a).into_iter().zip(signature(84, &b)).map(|(a, b)| a.min(b)).collect();
        assert_eq!(signature(84, &union), least);
    }

    #[test]
    fn packing_keeps_the_low_bits_in_little_endian_bit_order() {
        let minima = [0x8765_4321, 0x0000_00ff, 0xffff_ffff];
        let packed = |bits| {
            let mut packed = vec![0xaa];
            pack(&minima, bits, &mut packed);
            packed.split_off(1)
        };
        assert_eq!(packed(0), []);
        assert_eq!(packed(1), [0b111]);
        assert_eq!(packed(2), [0b11_11_01]);
        assert_eq!(packed(4), [0xf1, 0x0f]);
        assert_eq!(packed(8), [0x21, 0xff, 0xff]);
        assert_eq!(packed(16), [0x21, 0x43, 0xff, 0x00, 0xff, 0xff]);
        assert_eq!(packed(32), [0x21, 0x43, 0x65, 0x87, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn matches_counts_equal_low_bits() {
        let a: Vec<u32> = hashes(101, 6).iter().map(|&hash| hash as u32).collect();
        let b: Vec<u32> =
            hashes(101, 7).iter().zip(&a).map(|(&h, &a)| if h % 3 == 0 { a } else { h as u32 }).collect();
        for bits in [1_u8, 2, 4, 8, 16, 32] {
            let (mut packed_a, mut packed_b) = (Vec::new(), Vec::new());
            pack(&a, bits, &mut packed_a);
            pack(&b, bits, &mut packed_b);
            assert_eq!(packed_a.len(), (101 * usize::from(bits)).div_ceil(8));
            let kept = |minimum: u32| u64::from(minimum) % (1 << bits);
            let equal = a.iter().zip(&b).filter(|&(&a, &b)| kept(a) == kept(b)).count();
            assert_eq!(matches(&packed_a, &packed_b, 101, bits), equal, "{bits} bits");
            assert_eq!(matches(&packed_a, &packed_a, 101, bits), 101);
        }
    }

    #[test]
    fn bytes_that_are_no_packed_minima_match_nothing() {
        assert_eq!(matches(&[1, 2], &[1, 2], 3, 8), 0);
        assert_eq!(matches(&[1], &[1, 2], 2, 8), 0);
        assert_eq!(matches(&[1, 2, 3], &[1, 2, 3], 8, 3), 0);
        assert_eq!(matches(&[], &[], 5, 0), 0);
        assert_eq!(matches(&[0xff], &[0], 1, 1), 0);
        assert_eq!(matches(&[], &[], usize::MAX, 8), 0);
    }
}
