//! Maps elements to the slots and to the parts of tables.

/// Hashes an element to a number below 2^`bits`.
#[inline(always)]
pub(super) fn spread(element: u64, bits: u32) -> usize {
    // Multiplies by an odd constant, because some callers pass elements that are not hashes.
    (element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
}

/// Returns the part of an element, a number below 2^`part_bits`; 0 if `part_bits` is 0.
#[inline(always)]
pub(super) fn part_of(element: u64, part_bits: u32) -> usize {
    element.wrapping_mul(0x9E37_79B9_7F4A_7C15).unbounded_shr(u64::BITS - part_bits) as usize
}
