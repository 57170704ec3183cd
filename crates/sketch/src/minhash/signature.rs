//! Packs the low bits of minima (Li and König, *b-bit minwise hashing*, 2010), and compares packed signatures.

use twindex_kernel::{Kernel, Level, Simd};

/// Appends the low `bits` bits of every minimum to `packed`, beginning with the lowest bits of the first byte, and pads the
/// last byte with zeros. [`MinhashParams::signature_bytes`](crate::params::MinhashParams::signature_bytes) returns the
/// number of bytes. `bits` is one of [`SIGNATURE_BITS`](crate::params::SIGNATURE_BITS); 0 appends nothing.
///
/// ```
/// let mut packed = Vec::new();
/// twindex_sketch::pack(&[0x12, 0x34, 0x56], 4, &mut packed);
/// assert_eq!(packed, [0x42, 0x06]);
/// ```
pub fn pack(signature: &[u32], bits: u8, packed: &mut Vec<u8>) {
    let bits = u32::from(bits.min(32));
    let kept = (1_u64 << bits) - 1;
    let (mut waiting, mut filled) = (0_u64, 0);
    packed.reserve((signature.len() * bits as usize).div_ceil(8));
    if bits == 8 {
        // A fast path for the default number of bits. The compiler can vectorize this loop.
        packed.extend(signature.iter().map(|&minimum| minimum as u8));
        return;
    }
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

/// Returns the number of equal values among `minima` values that were [`pack`]ed with `bits` bits each.
///
/// Never panics: returns 0 for slices of the wrong length and for values of `bits` that [`pack`] does not support.
#[must_use]
pub fn matches(a: &[u8], b: &[u8], minima: usize, bits: u8) -> usize {
    struct Matches<'a>(&'a [u8], &'a [u8], usize, u8);
    impl Kernel for Matches<'_> {
        type Output = usize;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> usize {
            matches_by(simd, self.0, self.1, self.2, self.3)
        }
    }
    Level::chosen().dispatch(Matches(a, b, minima, bits))
}

/// Like [`matches()`], for calls from inside a kernel.
#[inline(always)]
pub fn matches_by<S: Simd>(simd: S, a: &[u8], b: &[u8], minima: usize, bits: u8) -> usize {
    let bytes = minima.saturating_mul(usize::from(bits)).div_ceil(8);
    if a.len() != bytes || b.len() != bytes {
        return 0;
    }
    // Padding bits count as equal, because [`pack`] sets them to 0.
    let differing = match bits {
        1 | 2 | 4 => a.iter().zip(b).map(|(a, b)| groups_set(a ^ b, bits)).sum(),
        8 => bytes - simd.equal_bytes(a, b),
        16 | 32 => {
            let size = usize::from(bits / 8);
            a.chunks_exact(size).zip(b.chunks_exact(size)).filter(|(a, b)| a != b).count()
        }
        _ => return 0,
    };
    minima.saturating_sub(differing)
}

/// Returns the number of groups of 1, 2 or 4 bits of a byte that are not zero.
#[inline(always)]
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
    use super::super::super::hash::mix;
    use super::*;

    fn hashes(n: u64, salt: u64) -> Vec<u64> {
        (0..n).map(|i| mix(mix(salt) ^ i)).collect()
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
    fn invalid_packed_minima_have_no_matches() {
        assert_eq!(matches(&[1, 2], &[1, 2], 3, 8), 0);
        assert_eq!(matches(&[1], &[1, 2], 2, 8), 0);
        assert_eq!(matches(&[1, 2, 3], &[1, 2, 3], 8, 3), 0);
        assert_eq!(matches(&[], &[], 5, 0), 0);
        assert_eq!(matches(&[0xff], &[0], 1, 1), 0);
        assert_eq!(matches(&[], &[], usize::MAX, 8), 0);
    }
}
