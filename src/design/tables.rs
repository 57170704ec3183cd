//! Table designs: the leading bits of each table, and the radius of its probes.
//!
//! All designs except the free designs are exact. The 64 bits of a fingerprint are split into `m` blocks, starting at
//! the most significant bit; the first blocks are the longer ones ([`blocks`]). The leading bits of each table are one
//! or more blocks:
//!
//! - `blocks-M`: `M` tables; the leading bits of table `t` are block `t`. If the sum of all `r_t + 1` exceeds `k`, a
//!   fingerprint at distance at most `k` differs in at most `r_t` bits of some block `t` (the general pigeonhole
//!   principle of Qin et al. 2018; with all `r_t` 0 it is the simplest design of Manku, Jain and Das Sarma, WWW 2007,
//!   section 3.1). So one design answers every `k`: [`Design::radii`] computes the `r_t`.
//! - `choose-M-J`: one table for each choice of `J` leading blocks among the `M` blocks. At most `k` blocks differ, so
//!   at least `M - k` blocks are equal. If `J <= M - k`, some table has only equal blocks as its leading bits and finds
//!   the fingerprint (Manku et al., section 3.1.1).
//! - `nested-A-B`: one table for each pair of an outer and an inner block. The fingerprint is split into `A` outer
//!   blocks, and the bits outside an outer block are split into `B` inner blocks. If fewer than `A` and fewer than `B`
//!   bits differ, some outer block and one of its inner blocks are equal (Manku et al., section 3.1.2, example of 16
//!   tables).
//! - `expansion`: one table, in which a query looks up every value within the radius. The other designs need fewer
//!   probes.
//!
//! A free design finds a fingerprint if the first `P` bits of its key equal those of the query's key in at least one
//! table. The bit orders are arbitrary. [`planner::recall`](crate::planner::recall) computes the probability of a miss:
//!
//! - `prefix-P`: one table, in the fingerprint's own bit order;
//! - `reversed-P`: two tables, the second one with the reversed bit order;
//! - `random-T-P-S`: `T` tables; the bit orders of all but the first are drawn from the seed `S`.
//!
//! The default is `blocks-M`: `auto` and `small` choose only among these designs, `fast` also among `choose-M-J` and
//! `nested-4-4`. The free designs and `expansion` reproduce older systems and are used only if the parameters of the
//! index name them.
//!
//! Table 1 of every design uses the fingerprint's own bit order, so its keys are the fingerprints.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::masks::{self, choices};
use super::order::{BITS, BitOrder};
use crate::error::{Error, Result};
use twindex_kernel::splitmix::SplitMix;

/// The largest radius of a query with any design.
pub const WITHIN_MAX: u8 = 10;
/// The number of bits of a pointer: the first bits of a fingerprint, with which a partial table locates it in table 1.
pub const POINTER_BITS: u32 = 16;
/// The maximum number of tables of a design.
pub const TABLES_MAX: u32 = 64;
/// The maximum number of blocks of a fingerprint.
pub const BLOCKS_MAX: u8 = 16;
/// A probe uses `floor(log2 rows)` bits minus this number, so that a bucket has 8 to 16 rows on average.
const BUCKET_BITS: u32 = 3;

/// The name of a design, which specifies the design completely. `Display` and `FromStr` use the form stored in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DesignName {
    /// The design `blocks-M`. The value is `M`, the number of blocks, 1 to [`BLOCKS_MAX`].
    Blocks(u8),
    /// The design `choose-M-J`.
    Choose {
        /// The number of blocks into which the fingerprint is split, 3 to [`BLOCKS_MAX`].
        blocks: u8,
        /// The number of leading blocks of each table: at least 2, since 1 is [`DesignName::Blocks`], and less than
        /// `blocks`.
        leading: u8,
    },
    /// The design `nested-A-B`.
    Nested {
        /// The number of blocks into which the fingerprint is split, 2 to 8.
        outer: u8,
        /// The number of blocks into which the bits outside an outer block are split, 2 to 8.
        inner: u8,
    },
    /// The design `expansion`.
    Expansion,
    /// The design `prefix-P`. The value is `P`, the number of leading bits, 1 to 64.
    Prefix(u8),
    /// The design `reversed-P`. The value is `P`, the number of leading bits of each table, 1 to 64.
    Reversed(u8),
    /// The design `random-T-P-S`.
    Random {
        /// The number of tables, 1 to [`TABLES_MAX`].
        tables: u8,
        /// The number of leading bits of each table, 1 to 64.
        prefix: u8,
        /// The seed of the bit orders.
        seed: u64,
    },
}

/// A table of a design: its bit order, and the minimum and maximum number of bits of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The order of a fingerprint's bits in a key of this table.
    pub order: BitOrder,
    /// The number of leading bits of the key, which is the maximum number of bits of a probe.
    pub lead: u32,
    /// The minimum number of bits of a probe. It is 0 if a shorter prefix finds the same fingerprints (`blocks-M`,
    /// `choose-M-J` and `nested-A-B`), otherwise `lead`.
    min: u32,
}

impl Table {
    /// Returns the number of bits of a probe in a table of `rows` entries: `floor(log2 rows) - 3`, but at most the
    /// number of leading bits. A bucket then contains 8 to 16 random entries. A shorter prefix only enlarges buckets,
    /// so designs of blocks remain exact. Probes of `expansion` always use all 64 bits, and probes of free designs the
    /// number of bits in the name of the design.
    #[must_use]
    pub fn probe_bits(&self, rows: u64) -> u32 {
        prefix_bits(rows, self.lead).max(self.min)
    }
}

/// Returns `floor(log2 rows) - 3`, clamped to the range 0 to `max`; 0 if there are no rows.
#[must_use]
pub fn prefix_bits(rows: u64, max: u32) -> u32 {
    rows.checked_ilog2().unwrap_or(0).saturating_sub(BUCKET_BITS).min(max)
}

/// A table design: its name and its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// The name of the design.
    pub name: DesignName,
    /// The tables of the design, 1 to [`TABLES_MAX`].
    pub tables: Vec<Table>,
}

impl DesignName {
    /// Returns the number of tables.
    #[must_use]
    pub fn tables(self) -> u32 {
        match self {
            Self::Blocks(blocks) => blocks.into(),
            Self::Choose { blocks, leading } => choices(blocks.into(), leading.into()) as u32,
            Self::Nested { outer, inner } => u32::from(outer) * u32::from(inner),
            Self::Expansion | Self::Prefix(_) => 1,
            Self::Reversed(_) => 2,
            Self::Random { tables, .. } => tables.into(),
        }
    }

    /// Returns whether probes find every fingerprint within the radius; `false` for free designs.
    #[must_use]
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Prefix(_) | Self::Reversed(_) | Self::Random { .. })
    }

    /// Returns the largest radius that a query may have with this design, at most [`WITHIN_MAX`].
    #[must_use]
    pub fn within_max(self) -> u32 {
        let max = match self {
            Self::Choose { blocks, leading } => u32::from(blocks - leading),
            Self::Nested { outer, inner } => u32::from(outer.min(inner)) - 1,
            _ => WITHIN_MAX.into(),
        };
        max.min(WITHIN_MAX.into())
    }

    /// Returns an error for a radius above [`within_max`](Self::within_max).
    ///
    /// # Errors
    /// [`Error::Invalid`], naming the design and the radius.
    pub fn check_within(self, within: u32) -> Result<()> {
        let max = self.within_max();
        if within <= max {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "within {within}: the tables of this index, {self}, answer radii up to {max}"
        )))
    }

    fn check(self) -> Result<Self> {
        let fits = match self {
            Self::Blocks(blocks) => (1..=BLOCKS_MAX).contains(&blocks),
            Self::Choose { blocks, leading } => {
                (2..=BLOCKS_MAX).contains(&blocks)
                    && (2..blocks).contains(&leading)
                    && choices(blocks.into(), leading.into()) <= u64::from(TABLES_MAX)
            }
            Self::Nested { outer, inner } => (2..=8).contains(&outer) && (2..=8).contains(&inner),
            Self::Expansion => true,
            Self::Prefix(prefix) | Self::Reversed(prefix) => (1..=64).contains(&prefix),
            Self::Random { tables, prefix, .. } => {
                (1..=TABLES_MAX).contains(&tables.into()) && (1..=64).contains(&prefix)
            }
        };
        if fits {
            return Ok(self);
        }
        Err(Error::Invalid(format!(
            "table design {self}: at most {TABLES_MAX} tables and {BLOCKS_MAX} blocks, 2 to all but one of them \
             lead; 2 to 8 nested blocks; prefixes of 1 to 64 bits"
        )))
    }
}

impl fmt::Display for DesignName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks(blocks) => write!(f, "blocks-{blocks}"),
            Self::Choose { blocks, leading } => write!(f, "choose-{blocks}-{leading}"),
            Self::Nested { outer, inner } => write!(f, "nested-{outer}-{inner}"),
            Self::Expansion => write!(f, "expansion"),
            Self::Prefix(prefix) => write!(f, "prefix-{prefix}"),
            Self::Reversed(prefix) => write!(f, "reversed-{prefix}"),
            Self::Random { tables, prefix, seed } => write!(f, "random-{tables}-{prefix}-{seed}"),
        }
    }
}

impl FromStr for DesignName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::Invalid(format!(
                "table design `{}`: expected blocks-M, choose-M-J, nested-A-B, expansion, prefix-P, reversed-P or \
                 random-T-P-SEED",
                text.escape_debug()
            ))
        };
        let mut parts = text.split('-');
        let kind = parts.next().unwrap_or("");
        let numbers: Vec<u64> =
            parts.map(|part| part.parse().map_err(|_| unknown())).collect::<Result<_>>()?;
        // Numbers above 255 saturate at 255, which is out of range for every parameter.
        let byte = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
        let name = match (kind, &numbers[..]) {
            ("blocks", &[blocks]) => Self::Blocks(byte(blocks)),
            ("choose", &[blocks, leading]) => Self::Choose { blocks: byte(blocks), leading: byte(leading) },
            ("nested", &[outer, inner]) => Self::Nested { outer: byte(outer), inner: byte(inner) },
            ("expansion", []) => Self::Expansion,
            ("prefix", &[prefix]) => Self::Prefix(byte(prefix)),
            ("reversed", &[prefix]) => Self::Reversed(byte(prefix)),
            ("random", &[tables, prefix, seed]) => {
                Self::Random { tables: byte(tables), prefix: byte(prefix), seed }
            }
            _ => return Err(unknown()),
        };
        // Each name has one spelling, without leading zeros or signs.
        if name.to_string() == text { name.check() } else { Err(unknown()) }
    }
}

impl Design {
    /// Creates the design with this name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for numbers out of range.
    pub fn new(name: DesignName) -> Result<Self> {
        Ok(Self::of_width(name.check()?, BITS))
    }

    /// Creates the design for fingerprints of `width` bits. Tests use a small width to try all bit differences.
    fn of_width(name: DesignName, width: u32) -> Self {
        let led_by = |ranges: &[Range<u32>]| Table {
            order: BitOrder::leading(ranges),
            lead: ranges.iter().map(|range| range.end - range.start).sum(),
            min: 0,
        };
        let by_prefix =
            |order: BitOrder, prefix: u8| Table { order, lead: prefix.into(), min: prefix.into() };
        let tables = match name {
            DesignName::Blocks(m) => {
                blocks(0..width, m.into()).into_iter().map(|block| led_by(&[block])).collect()
            }
            DesignName::Choose { blocks: m, leading } => {
                let blocks = blocks(0..width, m.into());
                subsets(m.into(), leading.into())
                    .into_iter()
                    .map(|chosen| {
                        led_by(&chosen.into_iter().map(|block| blocks[block].clone()).collect::<Vec<_>>())
                    })
                    .collect()
            }
            DesignName::Nested { outer, inner } => {
                let mut tables = Vec::new();
                for first in blocks(0..width, outer.into()) {
                    // The bits outside the outer block are not contiguous, so split the list of their positions into
                    // blocks.
                    let rest: Vec<u32> = (0..width).filter(|bit| !first.contains(bit)).collect();
                    for second in blocks(0..rest.len() as u32, inner.into()) {
                        let bits: Vec<Range<u32>> =
                            second.map(|place| rest[place as usize]).map(|bit| bit..bit + 1).collect();
                        tables.push(led_by(&[&[first.clone()][..], &bits].concat()));
                    }
                }
                tables
            }
            DesignName::Expansion => vec![Table { order: BitOrder::leading(&[]), lead: width, min: width }],
            DesignName::Prefix(prefix) => vec![by_prefix(BitOrder::leading(&[]), prefix)],
            DesignName::Reversed(prefix) => {
                let reversed: Vec<u32> = (0..BITS).rev().collect();
                vec![by_prefix(BitOrder::leading(&[]), prefix), by_prefix(BitOrder::new(&reversed), prefix)]
            }
            DesignName::Random { tables, prefix, seed } => {
                let mut random = SplitMix(seed);
                let own = std::iter::once(BitOrder::leading(&[]));
                let drawn = (1..tables).map(|_| shuffled(&mut random));
                own.chain(drawn).map(|order| by_prefix(order, prefix)).collect()
            }
        };
        debug_assert_eq!(tables.first().map(|table: &Table| &table.order), Some(&BitOrder::leading(&[])));
        Self { name, tables }
    }

    /// Returns the radius of the probes of each table: the maximum number of differing bits in the probed prefix, or
    /// `None` if the table is not probed. With these radii, an exact design finds every fingerprint at a distance up to
    /// `within`.
    ///
    /// The radii of `blocks-M` differ by at most 1, with larger radii first. They sum to `within - M + 1`; a table that
    /// is not probed counts as -1. If `within` is below the maximum of a `choose-M-J` or `nested-A-B` design, only the
    /// tables of the first blocks are probed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius above [`DesignName::within_max`].
    pub fn radii(&self, within: u32) -> Result<Vec<Option<u32>>> {
        self.name.check_within(within)?;
        let exactly = |wanted: bool| wanted.then_some(0);
        Ok(match self.name {
            DesignName::Blocks(m) => {
                let mut radii = vec![None; m.into()];
                spread(within, &mut radii);
                radii
            }
            DesignName::Choose { blocks, leading } => subsets(blocks.into(), leading.into())
                .iter()
                .map(|chosen| {
                    exactly(chosen.iter().all(|&block| block < usize::from(leading) + within as usize))
                })
                .collect(),
            DesignName::Nested { outer, inner } => (0..u32::from(outer) * u32::from(inner))
                .map(|table| {
                    exactly(table / u32::from(inner) <= within && table % u32::from(inner) <= within)
                })
                .collect(),
            DesignName::Expansion => vec![Some(within)],
            DesignName::Prefix(_) | DesignName::Reversed(_) | DesignName::Random { .. } => {
                vec![Some(0); self.tables.len()]
            }
        })
    }

    /// Returns the bit order of the entries of the partial table with index `table`. The first 16 bits locate the
    /// fingerprint in table 1. The other bits follow in ascending order, except the leading bits of this table: these
    /// come last and are not stored.
    ///
    /// # Panics
    /// If `table` is not less than the number of tables.
    #[must_use]
    pub fn entry_order(&self, table: usize) -> BitOrder {
        let table = &self.tables[table];
        let leads = &table.order.bits()[..table.lead as usize];
        let pointer: Vec<u32> = (0..POINTER_BITS).collect();
        let (known, filter): (Vec<u32>, Vec<u32>) = (POINTER_BITS..BITS).partition(|bit| leads.contains(bit));
        BitOrder::new(&[pointer, filter, known].concat())
    }

    /// Returns the number of probes of a query with radius `within` in tables of `rows` entries each.
    ///
    /// # Errors
    /// Same as [`radii`](Self::radii).
    pub fn probes(&self, within: u32, rows: u64) -> Result<u64> {
        let radii = self.radii(within)?;
        let of_table = |(table, radius): (&Table, Option<u32>)| {
            radius.map_or(0, |radius| masks::count(table.probe_bits(rows), radius))
        };
        Ok(self.tables.iter().zip(radii).map(of_table).fold(0, u64::saturating_add))
    }
}

/// Sets the radii of the blocks so that every difference of at most `within` bits is found. They must be `None`
/// initially. Afterwards they differ by at most 1, with larger radii first, and sum to `within` minus the number of
/// blocks plus 1, where `None` counts as -1.
pub fn spread(within: u32, radii: &mut [Option<u32>]) {
    for step in 0..=within as usize {
        let radius = &mut radii[step % radii.len()];
        *radius = Some(radius.map_or(0, |radius| radius + 1));
    }
}

/// Splits the range `bits` into `count` consecutive blocks. If the division leaves a remainder, the first blocks are
/// one bit longer.
#[must_use]
pub fn blocks(bits: Range<u32>, count: u32) -> Vec<Range<u32>> {
    let (length, longer) = ((bits.end - bits.start) / count, (bits.end - bits.start) % count);
    let start = |block: u32| bits.start + block * length + block.min(longer);
    (0..count).map(|block| start(block)..start(block + 1)).collect()
}

/// Returns all subsets of size `chosen` of the numbers below `of`: each ascending, in lexicographic order.
fn subsets(of: usize, chosen: usize) -> Vec<Vec<usize>> {
    if chosen == 0 {
        return vec![Vec::new()];
    }
    let starting_with = |first: usize| {
        let rest = subsets(of - first - 1, chosen - 1).into_iter();
        rest.map(move |rest| std::iter::once(first).chain(rest.into_iter().map(|i| first + 1 + i)).collect())
    };
    (0..=of.saturating_sub(chosen)).flat_map(starting_with).collect()
}

/// Returns a random bit order, drawn by the Fisher-Yates shuffle.
fn shuffled(random: &mut SplitMix) -> BitOrder {
    let mut bits: Vec<u32> = (0..BITS).collect();
    for last in (1..BITS as usize).rev() {
        bits.swap(last, random.below(last as u64 + 1) as usize);
    }
    BitOrder::new(&bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: [DesignName; 13] = [
        DesignName::Blocks(1),
        DesignName::Blocks(2),
        DesignName::Blocks(3),
        DesignName::Blocks(4),
        DesignName::Blocks(5),
        DesignName::Blocks(7),
        DesignName::Choose { blocks: 4, leading: 2 },
        DesignName::Choose { blocks: 5, leading: 2 },
        DesignName::Choose { blocks: 6, leading: 3 },
        DesignName::Choose { blocks: 7, leading: 2 },
        DesignName::Nested { outer: 4, inner: 4 },
        DesignName::Nested { outer: 2, inner: 3 },
        DesignName::Expansion,
    ];

    #[test]
    fn every_difference_within_radius_is_found_by_some_table() {
        // With fingerprints of 14 bits, all differences can be tried. The proof does not depend on the width.
        const WIDTH: u32 = 14;
        for name in EXACT {
            let design = Design::of_width(name, WIDTH);
            for within in 0..=name.within_max() {
                let radii = design.radii(within).unwrap();
                for difference in (0_u64..1 << WIDTH).filter(|d| d.count_ones() <= within) {
                    let key = |table: &Table| table.order.apply(difference << (BITS - WIDTH));
                    // Probes with any shorter prefix of the leading bits must also find the fingerprint.
                    for shorter in 0..WIDTH {
                        let found = design.tables.iter().zip(&radii).any(|(table, radius)| {
                            let bits = table.lead.saturating_sub(shorter).max(table.min);
                            let prefix = key(table).checked_shr(BITS - bits).unwrap_or(0);
                            radius.is_some_and(|radius| prefix.count_ones() <= radius)
                        });
                        assert!(found, "{name} within {within}: {difference:014b} is found by no table");
                    }
                }
            }
        }
    }

    #[test]
    fn design_uses_fewer_tables_for_smaller_radii() {
        let tables = |name, within| {
            let radii = Design::new(name).unwrap().radii(within).unwrap();
            radii.iter().flatten().count()
        };
        let twenty = DesignName::Choose { blocks: 6, leading: 3 };
        assert_eq!([0, 1, 2, 3].map(|k| tables(twenty, k)), [1, 4, 10, 20]);
        assert_eq!([0, 1, 2, 3].map(|k| tables(DesignName::Nested { outer: 4, inner: 4 }, k)), [1, 4, 9, 16]);
        assert_eq!([0, 1, 2, 3, 10].map(|k| tables(DesignName::Blocks(4), k)), [1, 2, 3, 4, 4]);
    }

    #[test]
    fn exact_designs_use_documented_number_of_probes() {
        let rows = 1 << 30;
        let probes = |name, within| Design::new(name).unwrap().probes(within, rows).unwrap();
        for (within, expected) in [(2, 3), (3, 4), (4, 20), (7, 68), (10, 428)] {
            assert_eq!(probes(DesignName::Blocks(4), within), expected, "within {within}");
        }
        assert_eq!(probes(DesignName::Choose { blocks: 5, leading: 2 }, 3), 10);
        assert_eq!(probes(DesignName::Choose { blocks: 6, leading: 3 }, 3), 20);
        assert_eq!(probes(DesignName::Nested { outer: 4, inner: 4 }, 3), 16);
        // The query and the values at distances 3 (41,664 values), 2 and 1.
        assert_eq!(probes(DesignName::Expansion, 3), 41_664 + 2016 + 64 + 1);
        assert_eq!(probes(DesignName::Blocks(2), 3), 2 * 28);
    }

    #[test]
    fn numbers_of_leading_bits_match_the_papers() {
        let leads = |name: &str| {
            let design = Design::new(name.parse().unwrap()).unwrap();
            let mut leads: Vec<u32> = design.tables.iter().map(|table| table.lead).collect();
            let tables = leads.len();
            leads.sort_unstable();
            leads.dedup();
            (tables, leads)
        };
        assert_eq!(leads("choose-6-3"), (20, vec![31, 32, 33]));
        assert_eq!(leads("choose-5-2"), (10, vec![25, 26]));
        assert_eq!(leads("nested-4-4"), (16, vec![28]));
        assert_eq!(leads("blocks-4"), (4, vec![16]));
        assert_eq!(leads("blocks-3"), (3, vec![21, 22]));
        assert_eq!(
            blocks(0..64, 5).iter().map(|b| b.end - b.start).collect::<Vec<_>>(),
            [13, 13, 13, 13, 12]
        );
        assert_eq!(
            blocks(0..64, 6).iter().map(|b| b.end - b.start).collect::<Vec<_>>(),
            [11, 11, 11, 11, 10, 10]
        );
    }

    #[test]
    fn names_round_trip_and_have_one_spelling() {
        for name in EXACT {
            assert_eq!(name.to_string().parse::<DesignName>().unwrap(), name);
        }
        let free = DesignName::Random { tables: 8, prefix: 20, seed: u64::MAX };
        for name in [free, DesignName::Prefix(24), DesignName::Reversed(31)] {
            assert_eq!(name.to_string().parse::<DesignName>().unwrap(), name);
            assert!(!name.is_exact());
        }
        for bad in [
            "",
            "blocks",
            "blocks-0",
            "blocks-17",
            "blocks-04",
            "blocks-+4",
            "blocks-4-4",
            "choose-5-1",
            "choose-5-5",
            "choose-12-6",
            "choose-300-2",
            "nested-1-4",
            "nested-9-9",
            "expansion-1",
            "prefix-0",
            "prefix-65",
            "random-65-10-1",
            "random-0-10-1",
            "random-4-10",
            "random-4-10--1",
            "Blocks-4",
            "blocks-4 ",
        ] {
            assert!(bad.parse::<DesignName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn radius_above_design_maximum_is_refused_with_design_name() {
        let error = Design::new("choose-5-2".parse().unwrap()).unwrap().radii(4).unwrap_err().to_string();
        assert!(error.contains("choose-5-2") && error.contains("up to 3"), "{error}");
        assert!(Design::new(DesignName::Blocks(4)).unwrap().radii(11).is_err());
    }

    #[test]
    fn prefix_bits_grow_with_number_of_rows() {
        for (entries, bits) in [(0, 0), (3, 0), (15, 0), (16, 1), (1000, 6), (1 << 19, 16), (u64::MAX, 16)] {
            assert_eq!(prefix_bits(entries, 16), bits, "{entries}");
        }
        assert_eq!(prefix_bits(10_000_000, 32), 20);
    }
}
