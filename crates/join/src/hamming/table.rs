//! Describes a table of a join: the bits by which it distributes fingerprints.

/// How the parities (numbers of one bits modulo 2) of the two fingerprints of a pair in the last table are related.
///
/// A pair that is reported by the last of k + 1 tables differs in each of the k earlier groups, and in at most k bits,
/// so it differs in exactly k bits. Its parities are therefore different if k is odd, and equal if k is even. So only
/// half of the pairs in a bucket are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parity {
    Different,
    Same,
}

/// Describes a table of a join, which distributes fingerprints by the first bits of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinTable {
    /// Number of bits of a fingerprint before the block.
    pub(super) start: u32,
    /// Number of bits of the block that select a bucket.
    pub(super) bits: u32,
    /// Number of these bits that the first distribution uses.
    pub(super) part_bits: u32,
    /// The relation between the parities of the pairs that this table reports; `None` if that does not pay.
    pub(super) parity: Option<Parity>,
}

impl JoinTable {
    pub(super) fn mask(self) -> u64 {
        !u64::MAX.unbounded_shr(self.bits) >> self.start
    }

    /// Returns the number of bits by which fingerprints are rotated left in rows. After rotation, the bits that select the
    /// part are the last bits, and the bits that select the bucket the first.
    pub(super) fn turn(self) -> u32 {
        self.start + self.part_bits
    }

    /// Returns a function that maps a rotated fingerprint to its part.
    #[inline(always)]
    pub(super) fn part(self) -> impl Fn(u64) -> usize {
        let mask = low_bits(self.part_bits);
        move |turned| (turned & mask) as usize
    }
}

/// Returns a mask of the lowest `bits` bits.
pub(super) const fn low_bits(bits: u32) -> u64 {
    !u64::MAX.unbounded_shl(bits)
}
