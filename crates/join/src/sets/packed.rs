//! Packs sets of 64-bit hashes for scratch files, in about 58 bits for each element of a set of 300.
//!
//! The elements of a set ascend, so their high bytes do not descend and are stored in unary (Elias, *Efficient storage
//! and retrieval by content and address of static files*, Journal of the ACM 21(2), 1974): bit `high + i` is set for
//! element `i`. The lower 56 bits follow. Eight elements take seven words: the first seven elements take one word each,
//! and the seven bytes of the eighth element are the high bytes of these words.

/// Number of low bits of an element, which are stored unchanged.
const LOW: u32 = 56;
const LOW_MASK: u64 = (1 << LOW) - 1;
/// Number of elements in a group. A group takes one word less than this number.
const TOGETHER: usize = 8;

/// Returns the number of words of the high bytes of `size` elements.
fn high_words(size: usize) -> usize {
    (size + (1 << (u64::BITS - LOW))).div_ceil(u64::BITS as usize)
}

/// Returns the number of words of a packed set of `size` elements, or `None` if packing does not make the set smaller.
pub(crate) fn packed_words(size: usize) -> Option<usize> {
    let words = high_words(size) + size - size / TOGETHER;
    (words < size).then_some(words)
}

/// Replaces the contents of `words` by the packed elements of `set`, which must ascend.
pub(crate) fn pack(set: &[u64], words: &mut Vec<u64>) {
    words.clear();
    words.resize(high_words(set.len()), 0);
    for (at, &element) in set.iter().enumerate() {
        let place = (element >> LOW) as usize + at;
        words[place / 64] |= 1 << (place % 64);
    }
    let (groups, rest) = set.as_chunks::<TOGETHER>();
    for group in groups {
        let &[ref others @ .., last] = group;
        words.extend((0..).zip(others).map(|(at, other)| (other & LOW_MASK) | (last >> (8 * at)) << LOW));
    }
    words.extend(rest.iter().map(|&element| element & LOW_MASK));
}

/// Appends the `size` elements of a packed set to `set`. Returns false if `words` is not a packed set of this size.
pub(crate) fn unpack(words: &[u64], size: usize, set: &mut Vec<u64>) -> bool {
    let Some((high, low)) = words.split_at_checked(high_words(size)) else { return false };
    let start = set.len();
    set.reserve(size);
    let (groups, rest) = low.as_chunks::<{ TOGETHER - 1 }>();
    let (groups, rest) = match groups.len().checked_sub(size / TOGETHER) {
        // The words of seven remaining elements look like a whole group of eight.
        Some(1) if rest.is_empty() => {
            (&groups[..groups.len() - 1], groups.last().map_or(&[][..], |last| last))
        }
        _ => (groups, rest),
    };
    for group in groups {
        set.extend(group.iter().map(|word| word & LOW_MASK));
        set.push((0..).zip(group).fold(0, |last, (at, word)| last | (word >> LOW) << (8 * at)));
    }
    set.extend(rest.iter().map(|word| word & LOW_MASK));
    let elements = &mut set[start..];
    let mut next = elements.iter_mut().enumerate();
    for (word, &bits) in high.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            let place = 64 * word + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let Some((at, element)) = next.next() else { return false };
            *element |= (place.wrapping_sub(at) as u64) << LOW;
        }
    }
    next.next().is_none() && elements.len() == size
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn unpacked_sets_are_equal_for_all_sizes_and_extreme_elements() {
        let mut random = SplitMix(8);
        let (mut words, mut unpacked) = (Vec::new(), Vec::new());
        for size in 0..400 {
            for shift in [0, 3, 8, 30] {
                let mut set: Vec<u64> = (0..size).map(|_| random.next() >> shift).collect();
                if size > 2 {
                    (set[0], set[1]) = (0, if shift == 3 { u64::MAX } else { 1 });
                }
                set.sort_unstable();
                pack(&set, &mut words);
                unpacked.clear();
                unpacked.push(7);
                assert!(unpack(&words, size, &mut unpacked), "{size}");
                assert_eq!((unpacked[0], &unpacked[1..]), (7, &set[..]), "{size} {shift}");
                assert!(packed_words(size).is_none_or(|packed| packed == words.len() && packed < size));
                assert_eq!(packed_words(size).is_none(), words.len() >= size);
            }
        }
        assert_eq!(packed_words(300), Some(272));
    }

    #[test]
    fn words_of_no_set_of_this_size_are_refused() {
        let set: Vec<u64> = (0..100).map(|i| i << 57).collect();
        let mut words = Vec::new();
        pack(&set, &mut words);
        let refused = |words: &[u64], size| !unpack(words, size, &mut Vec::new());
        assert!(!refused(&words, 100) && refused(&words[1..], 100) && refused(&words, 99));
        assert!(refused(&words, 101) && refused(&words, 500) && refused(&[], 100));
        words[0] |= 1 << 63;
        words[1] |= 1 << 63;
        assert!(refused(&words, 100));
    }
}
