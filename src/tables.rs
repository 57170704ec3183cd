//! The table design: which bits lead in which permutation table, and how far around them each table is probed.
//!
//! A fingerprint is cut in [`TABLES`] blocks of [`BLOCK_BITS`] bits; table `t` is sorted with block `t` in front.
//! Two fingerprints at distance at most `k` must be close in some block: if table `t` is probed for every prefix
//! within radius `r_t` of the query's, and `sum(r_t + 1) > k`, then nothing within `k` is missed, because a
//! fingerprint outside every radius differs in at least `r_t + 1` bits of each block (the general pigeonhole
//! principle of Qin et al. 2018; with all radii 0 it is the four-table design of Manku, Jain and Das Sarma, WWW
//! 2007, section 3.1.1, for `k = 3`). So one design answers every radius exactly: [`radii`] gives the `r_t`.
//!
//! A small segment leads with fewer than 16 bits ([`prefix_bits`]): a shorter prefix only widens a bucket, so the
//! argument holds unchanged.

/// Permutation tables of the design `blocks-4`.
pub const TABLES: usize = 4;
/// Bits in a block.
pub const BLOCK_BITS: u32 = 16;
/// Mean entries of a bucket of a small segment, as a power of two.
const BUCKET_BITS: u32 = 3;

/// The value of block `table` (0 to 3, from the most significant bits down).
#[inline]
#[must_use]
pub fn block(fingerprint: u64, table: usize) -> u16 {
    (fingerprint >> (48 - 16 * table as u32)) as u16
}

/// How many bits of its block a table of `entries` entries leads with: `floor(log2 entries) - 3`, from 0 to 16,
/// so that a bucket holds about 8 to 16 entries until all 16 bits are used.
#[must_use]
pub fn prefix_bits(entries: u64) -> u32 {
    entries.checked_ilog2().unwrap_or(0).saturating_sub(BUCKET_BITS).min(BLOCK_BITS)
}

/// The radius with which each table is probed to find everything within `within`; `None` is no probe at all.
///
/// Radii sum to `within - TABLES + 1` where a missing probe counts -1, and differ by at most 1, the larger ones
/// first.
#[must_use]
pub fn radii(within: u32) -> [Option<u32>; TABLES] {
    let mut radii = [None; TABLES];
    for step in 0..=within as usize {
        let radius = &mut radii[step % TABLES];
        *radius = Some(radius.map_or(0, |r| r + 1));
    }
    radii
}

/// The probes a query within `within` costs when tables lead with all 16 bits.
#[must_use]
pub fn probes(within: u32) -> u64 {
    radii(within).iter().flatten().map(|&radius| masks(BLOCK_BITS, radius).count() as u64).sum()
}

/// All values of `bits` bits with at most `radius` ones, fewest ones first, then ascending.
pub fn masks(bits: u32, radius: u32) -> impl Iterator<Item = u16> {
    let end = 1_u32 << bits;
    (0..=radius.min(bits)).flat_map(move |ones| {
        let first = (1_u32 << ones) - 1;
        std::iter::successors(Some(first), move |&mask| {
            // The next larger value with as many ones (Gosper): move the lowest run's top bit up.
            let low = mask & mask.wrapping_neg();
            let next = mask.checked_add(low).filter(|_| mask != 0)?;
            Some(next | (((mask ^ next) / low) >> 2))
        })
        .take_while(move |&mask| mask < end)
        .map(|mask| mask as u16)
    })
}

/// Bytes of a filtered table's entry for a segment of `entries` distinct fingerprints: 2, 3 or 4.
///
/// Two bytes let 1.06 % of random entries through to the complete table, three 0.014 %; the width is chosen so
/// that a query follows fewer than about one random entry, and depends on the count alone.
#[must_use]
pub fn filter_bytes(entries: u64) -> u32 {
    match entries {
        0..=0x20_0000 => 2,
        0x20_0001..=0x300_0000 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_are_those_of_the_design_document() {
        assert_eq!(radii(0), [Some(0), None, None, None]);
        assert_eq!(radii(2), [Some(0), Some(0), Some(0), None]);
        assert_eq!(radii(3), [Some(0); 4]);
        assert_eq!(radii(4), [Some(1), Some(0), Some(0), Some(0)]);
        assert_eq!(radii(7), [Some(1); 4]);
        assert_eq!(radii(10), [Some(2), Some(2), Some(2), Some(1)]);
        for (within, expected) in [(2, 3), (3, 4), (4, 20), (7, 68), (10, 428)] {
            assert_eq!(probes(within), expected, "probes within {within}");
        }
    }

    #[test]
    fn every_difference_within_k_is_inside_some_radius() {
        // Blocks of 3 bits instead of 16: the argument does not depend on the width, and 12 bits can be tried all.
        for within in 0..=10 {
            let radii = radii(within);
            for difference in 0_u32..1 << 12 {
                if difference.count_ones() > within {
                    continue;
                }
                let found = (0..TABLES)
                    .any(|t| radii[t].is_some_and(|r| (difference >> (3 * t) & 7).count_ones() <= r));
                assert!(found, "{difference:012b} within {within} is in no radius of {radii:?}");
            }
        }
    }

    #[test]
    fn masks_are_all_values_with_few_ones_once_each() {
        for bits in 0..=10 {
            for radius in 0..=4 {
                let mut expected: Vec<u16> =
                    (0..1_u32 << bits).map(|v| v as u16).filter(|v| v.count_ones() <= radius).collect();
                expected.sort_by_key(|v| (v.count_ones(), *v));
                assert_eq!(masks(bits, radius).collect::<Vec<_>>(), expected, "{bits} bits, radius {radius}");
            }
        }
        assert_eq!(masks(16, 2).count(), 137);
    }

    #[test]
    fn the_prefix_grows_with_the_table() {
        for (entries, bits) in [(0, 0), (3, 0), (15, 0), (16, 1), (1000, 6), (1 << 19, 16), (u64::MAX, 16)] {
            assert_eq!(prefix_bits(entries), bits, "{entries}");
        }
    }
}
