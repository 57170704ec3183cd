//! Computes the recall of tables: the probability that a query finds a fingerprint at a given distance.
//!
//! The model: a fingerprint differs from the query in `d` bits, and all choices of `d` bits are equally likely. A table
//! with radius `r` finds the fingerprint if at most `r` of the differing bits are among the bits by which it is probed.
//! Three methods compute the probability:
//!
//! - If no two tables share a bit, as in block designs: the number of choices of `d` bits that no table finds is the
//!   coefficient of `x^d` in a product. Each table contributes a factor, the sum of `C(b, i) x^i` over all `i` above
//!   its radius, where `b` is the number of probed bits. The `f` bits that no table uses contribute the factor `(1 +
//!   x)^f`.
//! - If there are at most [`UNIONS_MAX`] tables, all of radius 0, as in free designs: inclusion and exclusion. If a
//!   subset of the tables is probed by `u` bits in total, `C(64 - u, d)` of the `C(64, d)` choices contain none of
//!   these bits.
//! - Otherwise: a sample of [`SAMPLES`] random choices from a fixed seed, with a standard error.
//!
//! The first two methods compute with integers until the final division. The model is an approximation: in simhashes of
//! real texts, some bits differ more often than others, because features have different weights.

use crate::design::Design;
use crate::design::masks::choices;
use crate::design::order::BITS;
use crate::error::Result;
use twindex_kernel::splitmix::SplitMix;

/// Maximum number of tables for inclusion and exclusion, which enumerates all subsets of the tables.
pub const UNIONS_MAX: usize = 16;
/// Number of random choices if the probability is not computed exactly.
pub const SAMPLES: u32 = 1 << 16;
const SEED: u64 = 0x7477_696E_6465_7821;

/// The probability that a query finds a fingerprint, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recall {
    /// The probability, 0 to 1.
    pub probability: f64,
    /// The standard error of the probability; 0 if it was computed exactly.
    pub standard_error: f64,
}

impl Recall {
    fn exactly(found: u128, of: u128) -> Self {
        Self { probability: found as f64 / of as f64, standard_error: 0.0 }
    }
}

/// The bits by which a table is probed, as a mask, and the radius of its probes.
#[derive(Clone, Copy, Debug)]
struct TableProbe {
    bits: u64,
    radius: u32,
}

impl TableProbe {
    fn matches(self, difference: u64) -> bool {
        (self.bits & difference).count_ones() <= self.radius
    }
}

/// Returns the probability that a query with radius `within` finds a fingerprint at `distance` (0 to 64; larger values
/// are treated as 64) in tables of `rows` entries. For exact designs, the probability is 1 for distances up to
/// `within`. Fingerprints at a larger distance are not hits: for these, it is the fraction that become false
/// candidates.
///
/// Takes up to 2^16 steps for each table.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for a radius above the maximum of the design.
///
/// ```
/// use twindex::design::Design;
/// use twindex::planner::recall::recall;
/// // A difference of three bits avoids the 24 leading bits with probability (40 * 39 * 38) / (64 * 63 * 62).
/// let prefix = Design::new("prefix-24".parse()?)?;
/// assert_eq!(recall(&prefix, 3, 1_000_000, 3)?.probability, 9880.0 / 41_664.0);
/// # Ok::<(), twindex::Error>(())
/// ```
pub fn recall(design: &Design, within: u32, rows: u64, distance: u32) -> Result<Recall> {
    let distance = distance.min(BITS);
    let probed: Vec<TableProbe> = design
        .tables
        .iter()
        .zip(design.radii(within)?)
        .filter_map(|(table, radius)| {
            let places = u64::MAX.checked_shl(BITS - table.probe_bits(rows)).unwrap_or(0);
            Some(TableProbe { bits: table.order.invert(places), radius: radius? })
        })
        .collect();
    let all = u128::from(choices(BITS.into(), distance.into()));
    let shared =
        probed.iter().fold((0, 0), |(seen, shared), table| (seen | table.bits, shared | seen & table.bits)).1;
    Ok(if shared == 0 {
        Recall::exactly(all - missed_by_apart(&probed, distance), all)
    } else if probed.len() <= UNIONS_MAX && probed.iter().all(|table| table.radius == 0) {
        Recall::exactly(found_by_any(&probed, distance), all)
    } else {
        drawn(&probed, distance)
    })
}

/// Returns the number of choices of `distance` bits that no table finds. The tables must not share bits.
fn missed_by_apart(probed: &[TableProbe], distance: u32) -> u128 {
    let free = BITS - probed.iter().map(|table| table.bits.count_ones()).sum::<u32>();
    let distance = distance as usize;
    let times = |product: &[u128], bits: u32, from: u32| -> Vec<u128> {
        let mut next = vec![0; distance + 1];
        for ones in from..=bits.min(distance as u32) {
            let ways = u128::from(choices(bits.into(), ones.into()));
            for (place, count) in product.iter().enumerate().take(distance + 1 - ones as usize) {
                next[place + ones as usize] += ways * count;
            }
        }
        next
    };
    let none: Vec<u128> = std::iter::once(1).chain(std::iter::repeat_n(0, distance)).collect();
    let missed =
        probed.iter().fold(none, |product, table| times(&product, table.bits.count_ones(), table.radius + 1));
    times(&missed, free, 0)[distance]
}

/// Returns the number of choices of `distance` bits that at least one table finds. All radii must be 0.
fn found_by_any(probed: &[TableProbe], distance: u32) -> u128 {
    // Entry `u` is a signed count of the nonempty subsets of the tables that are probed by `u` bits in total: subsets
    // of odd size minus subsets of even size.
    let mut signed = [0_i64; BITS as usize + 1];
    let mut unions: Vec<(u64, i64)> = vec![(0, -1)];
    for table in probed {
        for place in 0..unions.len() {
            let (bits, sign) = unions[place];
            unions.push((bits | table.bits, -sign));
            signed[(bits | table.bits).count_ones() as usize] -= sign;
        }
    }
    let ways = |union: u32| i128::from(choices((BITS - union).into(), distance.into()));
    let found: i128 = (0..).zip(signed).map(|(union, count)| i128::from(count) * ways(union)).sum();
    found.unsigned_abs()
}

fn drawn(probed: &[TableProbe], distance: u32) -> Recall {
    let mut random = SplitMix(SEED);
    let mut found = 0_u32;
    for _ in 0..SAMPLES {
        // Draw distinct bits by Floyd's method.
        let mut difference = 0_u64;
        for last in BITS - distance..BITS {
            let bit = 1 << random.below(u64::from(last) + 1);
            difference |= if difference & bit == 0 { bit } else { 1 << last };
        }
        found += u32::from(probed.iter().any(|table| table.matches(difference)));
    }
    let probability = f64::from(found) / f64::from(SAMPLES);
    Recall { probability, standard_error: (probability * (1.0 - probability) / f64::from(SAMPLES)).sqrt() }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "what is known exactly is compared exactly")]
mod tests {
    use super::*;
    use crate::design::DesignName;

    fn probed(design: &Design, within: u32, rows: u64) -> Vec<(u64, u32)> {
        let radii = design.radii(within).unwrap();
        let of = design.tables.iter().zip(radii).filter_map(|(table, radius)| {
            let bits = &table.order.bits()[..table.probe_bits(rows) as usize];
            Some((bits.iter().map(|bit| 1 << (63 - bit)).sum(), radius?))
        });
        of.collect()
    }

    #[test]
    fn recall_equals_enumeration_of_all_differences() {
        let names = [
            "prefix-10",
            "reversed-20",
            "random-3-12-7",
            "blocks-2",
            "blocks-4",
            "choose-4-2",
            "random-8-12-7",
        ];
        for name in names {
            let design = Design::new(name.parse().unwrap()).unwrap();
            let (within, rows) = (2, 50_000);
            let tables = probed(&design, within, rows);
            for distance in 0..=4 {
                let (mut found, mut all) = (0_u32, 0_u32);
                for difference in crate::design::masks(64, distance).filter(|d| d.count_ones() == distance) {
                    all += 1;
                    found += u32::from(tables.iter().any(|&(bits, r)| (bits & difference).count_ones() <= r));
                }
                let expected = Recall { probability: f64::from(found) / f64::from(all), standard_error: 0.0 };
                assert_eq!(
                    recall(&design, within, rows, distance).unwrap(),
                    expected,
                    "{name} at {distance}"
                );
            }
        }
    }

    #[test]
    fn drawn_recall_agrees_with_exact_recall() {
        let design = Design::new("random-8-12-7".parse().unwrap()).unwrap();
        let tables: Vec<TableProbe> =
            probed(&design, 3, 1).into_iter().map(|(bits, radius)| TableProbe { bits, radius }).collect();
        for distance in [1, 3, 6, 12, 40] {
            let (drawn, exact) = (drawn(&tables, distance), recall(&design, 3, 1, distance).unwrap());
            let max = 4.0 * drawn.standard_error + 1e-4;
            assert!((drawn.probability - exact.probability).abs() < max, "{distance}: {drawn:?} {exact:?}");
        }
    }

    #[test]
    fn exact_designs_have_recall_one_within_their_radius() {
        for name in
            ["blocks-1", "blocks-4", "blocks-7", "choose-5-2", "choose-6-3", "nested-4-4", "expansion"]
        {
            let name: DesignName = name.parse().unwrap();
            let design = Design::new(name).unwrap();
            for within in 0..=name.within_max() {
                for (rows, distance) in [(1000, within), (1 << 30, within), (1 << 30, within / 2)] {
                    let found = recall(&design, within, rows, distance).unwrap().probability;
                    assert_eq!(found, 1.0, "{name} within {within}");
                }
            }
        }
        let twenty = Design::new("choose-6-3".parse().unwrap()).unwrap();
        let beyond = recall(&twenty, 3, 1 << 30, 8).unwrap();
        assert!(beyond.probability < 0.9 && beyond.standard_error > 0.0, "{beyond:?}");
    }

    #[test]
    fn recall_is_one_at_distance_0_and_zero_at_64() {
        let design = Design::new("random-64-9-1".parse().unwrap()).unwrap();
        assert_eq!(recall(&design, 3, 9, 0).unwrap().probability, 1.0);
        assert_eq!(recall(&design, 3, 9, 64).unwrap().probability, 0.0);
        assert_eq!(recall(&design, 3, 9, 99).unwrap().probability, 0.0);
        assert!(recall(&design, 11, 9, 1).is_err());
    }
}
