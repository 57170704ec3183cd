//! The order of a fingerprint's bits in the keys of a table.

use std::ops::Range;

/// The number of bits of a fingerprint.
pub const BITS: u32 = 64;

/// A permutation of the 64 bits of a fingerprint. The permuted fingerprint is its *key* in a table; the first bits of
/// the key are the leading bits of the table. A permutation preserves Hamming distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitOrder {
    /// Left rotations of the fingerprint, each with a mask of the bits that it moves to their positions in the key.
    moves: Vec<(u32, u64)>,
}

impl BitOrder {
    /// Creates the order in which bit `i` of the key is bit `bits[i]` of the fingerprint. Bit 0 is the highest bit.
    ///
    /// # Panics
    /// If `bits` does not contain each of the 64 bits once.
    #[must_use]
    pub fn new(bits: &[u32]) -> Self {
        assert_eq!(bits.len(), BITS as usize, "an order names all bits");
        let mut masks = [0_u64; BITS as usize];
        let mut named = 0_u64;
        for (place, &bit) in (0..BITS).zip(bits) {
            named |= 1 << (BITS - 1 - bit);
            masks[((bit + BITS - place) % BITS) as usize] |= 1 << (BITS - 1 - place);
        }
        assert_eq!(named, u64::MAX, "an order names each bit once");
        Self { moves: (0..).zip(masks).filter(|&(_, mask)| mask != 0).collect() }
    }

    /// Creates the order that begins with the bits of these ranges, in the given order. All other bits follow in
    /// ascending order.
    ///
    /// # Panics
    /// If a bit is in two ranges or out of range (0 to 63).
    #[must_use]
    pub fn leading(ranges: &[Range<u32>]) -> Self {
        let mut bits: Vec<u32> = ranges.iter().cloned().flatten().collect();
        bits.extend((0..BITS).filter(|bit| !ranges.iter().any(|range| range.contains(bit))));
        Self::new(&bits)
    }

    /// Returns the key of a fingerprint.
    #[inline(always)]
    #[must_use]
    pub fn apply(&self, fingerprint: u64) -> u64 {
        self.moves.iter().fold(0, |key, &(rotation, mask)| key | fingerprint.rotate_left(rotation) & mask)
    }

    /// Returns the fingerprint of a key.
    #[inline(always)]
    #[must_use]
    pub fn invert(&self, key: u64) -> u64 {
        self.moves.iter().fold(0, |print, &(rotation, mask)| print | (key & mask).rotate_right(rotation))
    }

    /// Returns the field that consists of the key bits at `places`. [`BitField::of`] extracts it from a fingerprint.
    ///
    /// # Panics
    /// If the range of positions is descending or ends beyond 64.
    #[must_use]
    pub fn field(&self, places: Range<u32>) -> BitField {
        assert!(places.start <= places.end && places.end <= BITS, "positions in a key");
        let below = |place: u32| u64::MAX.checked_shr(place).unwrap_or(0);
        let wanted = below(places.start) & !below(places.end);
        let mut moves = self.moves.iter().filter(|(_, mask)| mask & wanted != 0).map(|&(rotation, mask)| {
            ((rotation + places.end) % BITS, (mask & wanted).rotate_left(places.end))
        });
        BitField { first: moves.next().unwrap_or((0, 0)), rest: moves.collect() }
    }

    /// Returns, for each bit of the key, its position in the fingerprint, as passed to [`new`](Self::new).
    #[must_use]
    pub fn bits(&self) -> Vec<u32> {
        (0..BITS).map(|place| self.invert(1 << (BITS - 1 - place)).leading_zeros()).collect()
    }
}

/// Consecutive bits of a key, extracted from the fingerprint without computing the whole key. The extraction takes one
/// or two instructions if the bits are also adjacent in the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitField {
    /// The first rotation and its mask, as in [`BitOrder`]. `rest` contains the others.
    first: (u32, u64),
    rest: Box<[(u32, u64)]>,
}

impl BitField {
    /// Extracts the field from a fingerprint.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, fingerprint: u64) -> u64 {
        let (rotation, mask) = self.first;
        let first = fingerprint.rotate_left(rotation) & mask;
        self.rest
            .iter()
            .fold(first, |field, &(rotation, mask)| field | fingerprint.rotate_left(rotation) & mask)
    }

    /// Extracts the field from each fingerprint as [`of`](Self::of) does, shifts it left by `shift`, and ORs it into
    /// the number at the same index of `numbers`. Each rotation is applied to all fingerprints before the next
    /// rotation, so that the compiler can use vector instructions.
    pub fn add_to(&self, fingerprints: &[u64], shift: u32, numbers: &mut [u64]) {
        for &(rotation, mask) in std::iter::once(&self.first).chain(&self.rest) {
            let (rotation, mask) = ((rotation + shift) % BITS, mask << shift);
            for (number, fingerprint) in numbers.iter_mut().zip(fingerprints) {
                *number |= fingerprint.rotate_left(rotation) & mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_order_permutes_bits_and_can_be_inverted() {
        let reversed: Vec<u32> = (0..BITS).rev().collect();
        let scattered: Vec<u32> = (0..BITS).map(|place| place * 37 % BITS).collect();
        for bits in [(0..BITS).collect(), reversed, scattered] {
            let order = BitOrder::new(&bits);
            assert_eq!(order.bits(), bits);
            for value in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
                let expected = bits.iter().fold(0, |key, &bit| key << 1 | value >> (BITS - 1 - bit) & 1);
                assert_eq!(order.apply(value), expected);
                assert_eq!(order.invert(expected), value);
            }
        }
    }

    #[test]
    fn bit_field_extracts_a_range_of_key_bits() {
        let scattered: Vec<u32> = (0..BITS).map(|place| place * 37 % BITS).collect();
        let orders =
            [BitOrder::new(&scattered), BitOrder::leading(&[16..32, 48..64]), BitOrder::leading(&[])];
        for order in orders {
            for (start, end) in [(0, 0), (0, 1), (0, 16), (3, 40), (16, 32), (63, 64), (64, 64), (0, 64)] {
                let field = order.field(start..end);
                for value in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
                    let key = u128::from(order.apply(value));
                    let expected = key >> (BITS - end) & ((1 << (end - start)) - 1);
                    assert_eq!(u128::from(field.of(value)), expected, "{start}..{end}");
                    for shift in [0, 1, 7].into_iter().filter(|shift| end - start + shift <= BITS) {
                        let mut numbers = [5 << 60 & !(u64::MAX >> (BITS - 1 - shift)), 0];
                        let before = numbers;
                        field.add_to(&[0, value], shift, &mut numbers);
                        assert_eq!(
                            numbers,
                            [before[0], (expected as u64) << shift],
                            "{start}..{end}, {shift}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn order_of_two_blocks_needs_at_most_four_rotations() {
        let order = BitOrder::leading(&[16..32, 48..64]);
        assert_eq!(order.apply(0x1111_2222_3333_4444), 0x2222_4444_1111_3333);
        assert!(order.moves.len() <= 4);
    }
}
