//! Defines the rows of a table of a join.
//!
//! A row holds a fingerprint and its number, in 12 bytes. If the fingerprints are in memory in ascending order, their
//! numbers are their ranks, and 8 bytes suffice: all fingerprints of a part agree in the bits that select the part, so
//! a row stores the low bits of the rank in place of these bits. The other bits of the rank follow from the
//! fingerprint: [`PrefixStarts`] gives the range of ranks of all fingerprints with the same prefix, and usually only
//! one rank of this range has these low bits. If the range has more ranks than the low bits have values, a binary
//! search finds the rank. Short rows save a third of a table's memory traffic, which is most of the cost of a join.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::table::{JoinTable, low_bits};
use twindex::error::Result;
use twindex::sys::zeroed::Zeroed;

/// A fingerprint and its number, stored together so that each part is written as one sequential stream.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C, packed(4))]
pub(super) struct Row {
    /// The fingerprint. In the rows of a table, it is rotated.
    pub(super) value: u64,
    pub(super) number: u32,
}

/// A rotated fingerprint, with the low bits of its rank in place of the bits that select its part.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C, packed(4))]
pub(super) struct ShortRow(u64);

/// A row of a table.
pub(super) trait TableRow: Copy + FromBytes + Immutable + IntoBytes + KnownLayout {
    /// Creates the row of a rotated fingerprint. `leads` is the mask of the bits that select the part.
    fn of(turned: u64, number: u32, leads: u64) -> Self;

    /// Returns the rotated fingerprint. In a short row, the bits that select the part have other values.
    fn turned(self) -> u64;
}

impl TableRow for Row {
    #[inline(always)]
    fn of(turned: u64, number: u32, _: u64) -> Self {
        Self { value: turned, number }
    }

    #[inline(always)]
    fn turned(self) -> u64 {
        self.value
    }
}

impl TableRow for ShortRow {
    #[inline(always)]
    fn of(turned: u64, number: u32, leads: u64) -> Self {
        Self(turned & !leads | u64::from(number) & leads)
    }

    #[inline(always)]
    fn turned(self) -> u64 {
        self.0
    }
}

/// The short rows of one part.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortRows<'a> {
    pub(super) rows: &'a [ShortRow],
    turn: u32,
    /// The bits that select the part, at their position in rotated fingerprints.
    part: u64,
    /// The mask of these bits.
    pub(super) leads: u64,
    starts: &'a PrefixStarts<'a>,
}

impl<'a> ShortRows<'a> {
    pub(super) fn new(
        rows: &'a [ShortRow],
        table: JoinTable,
        part: usize,
        starts: &'a PrefixStarts<'a>,
    ) -> Self {
        Self { rows, turn: table.turn(), part: part as u64, leads: table.leads(), starts }
    }

    /// Returns the fingerprint in its original bit order, and its number.
    #[inline(always)]
    pub(super) fn row(&self, at: usize) -> Row {
        let ShortRow(turned) = self.rows[at];
        let value = (turned & !self.leads | self.part).rotate_right(self.turn);
        Row { value, number: self.starts.rank(value, turned as u32, self.leads as u32) }
    }
}

/// The first rank of each prefix, for ascending fingerprints.
#[derive(Debug)]
pub(super) struct PrefixStarts<'a> {
    values: &'a [u64],
    bits: u32,
    /// For each prefix, the rank of the first fingerprint with this or a larger prefix; at the end, the number of
    /// fingerprints.
    ranks: Vec<u32>,
}

/// Records at which rank the fingerprints with each prefix end.
pub(super) struct PrefixEnds {
    bits: u32,
    /// For each prefix, the rank after its last fingerprint; 0 if no fingerprint has the prefix.
    ends: Vec<u32>,
}

impl PrefixEnds {
    pub(super) fn new(bits: u32) -> Self {
        Self { bits, ends: vec![0; 1 << bits] }
    }

    /// Records ascending fingerprints. `first` is the rank of the first of them.
    #[inline(always)]
    pub(super) fn note(&mut self, first: u32, values: &[u64]) {
        let (down, last) = (u64::BITS - self.bits, self.ends.len() - 1);
        let ends = &mut self.ends[..];
        // Stores the end. Incrementing a count instead would have to wait for the previous store.
        for (end, value) in (first + 1..).zip(values) {
            ends[value.unbounded_shr(down) as usize & last] = end;
        }
    }
}

/// Short rows are used only if at most one in this number of fingerprints shares its prefix with many
/// others, so that its rank takes a binary search. If more do, full rows are faster.
const CROWDED: u64 = 4;

impl<'a> PrefixStarts<'a> {
    /// Combines the records of all pieces of `values`. Returns `None` if the low `rank_bits` bits determine too few
    /// ranks, or if ranks of equal fingerprints would have to be found by a search.
    pub(super) fn of(
        values: &'a [u64],
        mut pieces: impl Iterator<Item = PrefixEnds>,
        rank_bits: u32,
    ) -> Option<Self> {
        let PrefixEnds { bits, ends: mut ranks } = pieces.next()?;
        for piece in pieces {
            ranks.iter_mut().zip(piece.ends).for_each(|(end, other)| *end = other.max(*end));
        }
        let (mut start, mut crowded) = (0, 0);
        for end in &mut ranks {
            let next = start.max(*end);
            let alike = u64::from(next - start);
            if alike > 1 << rank_bits {
                crowded += alike;
                let mut pairs = values.get(start as usize..next as usize)?.windows(2);
                // A search cannot distinguish the ranks of equal fingerprints.
                if pairs.any(|pair| pair[0] == pair[1]) {
                    return None;
                }
            }
            *end = std::mem::replace(&mut start, next);
        }
        ranks.push(start);
        (crowded * CROWDED <= u64::from(start)).then_some(Self { values, bits, ranks })
    }

    /// Returns the rank of a fingerprint. `low` contains the low bits of the rank, and `bits` is their mask.
    #[inline(always)]
    fn rank(&self, value: u64, low: u32, bits: u32) -> u32 {
        let prefix = value.unbounded_shr(u64::BITS - self.bits) as usize;
        let (start, end) = (self.ranks[prefix], self.ranks[prefix + 1]);
        let first = start.wrapping_add(low.wrapping_sub(start) & bits);
        // `bits` is a mask of the low bits, so `bits + 1` is the number of their values.
        if end - start <= bits + 1 { first } else { self.rank_among(value, start, end) }
    }

    /// Returns the rank of a fingerprint, by binary search in a range of ranks.
    #[cold]
    fn rank_among(&self, value: u64, start: u32, end: u32) -> u32 {
        let all = self.values.get(start as usize..end as usize).unwrap_or_default();
        start + all.partition_point(|&other| other < value) as u32
    }
}

/// Rows grouped by part.
#[derive(Debug, Default)]
pub(super) struct RowParts {
    words: Zeroed<u32>,
    /// Number of 32-bit words in a row. All rows have the same type.
    words_a_row: usize,
    /// The end of each part, in rows.
    pub(super) ends: Vec<u32>,
}

/// Reinterprets 32-bit words as rows.
pub(super) fn of_words<R: TableRow>(words: &[u32]) -> &[R] {
    <[R]>::ref_from_bytes(words.as_bytes()).unwrap_or_default()
}

impl RowParts {
    /// Allocates memory for `rows` rows, whose contents are unspecified.
    pub(super) fn allocate<R: TableRow>(&mut self, rows: usize) -> Result<(&mut [R], &mut [u32])> {
        self.words_a_row = size_of::<R>() / size_of::<u32>();
        let words = rows.saturating_mul(self.words_a_row);
        if self.words.len() < words {
            // Releases the old memory first, because its contents are no longer needed.
            self.words = Zeroed::default();
            self.words = Zeroed::new(words)?;
        }
        let rows = <[R]>::mut_from_bytes(self.words[..words].as_mut_bytes()).unwrap_or_default();
        Ok((rows, &mut self.ends))
    }

    fn part(&self, part: usize) -> &[u32] {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.words[start * self.words_a_row..self.ends[part] as usize * self.words_a_row]
    }

    pub(super) fn bytes(&self, part: usize) -> &[u8] {
        self.part(part).as_bytes()
    }

    /// Returns the rows of a part from all pieces. The rows of several pieces are concatenated in `buffer`.
    pub(super) fn gathered<'r>(pieces: &[&'r Self], part: usize, buffer: &'r mut Vec<u32>) -> &'r [u32] {
        if let [parts] = pieces {
            return parts.part(part);
        }
        buffer.clear();
        for parts in pieces {
            buffer.extend_from_slice(parts.part(part));
        }
        buffer
    }
}

impl JoinTable {
    /// Returns the mask of the bits that select a part in rotated fingerprints.
    pub(super) fn leads(self) -> u64 {
        low_bits(self.part_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FingerprintValues, HammingJoin, JoinResources, NearPair, TablePool, join, tables};
    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    fn flipped(value: u64, random: &mut SplitMix) -> u64 {
        (0..random.next() % 6).fold(value, |value, _| value ^ 1 << (random.next() % 64))
    }

    /// Returns distinct ascending fingerprints: random ones, ones within a small distance of each other, and `alike`
    /// ones with the same prefix.
    fn ascending(seed: u64, count: usize, alike: usize) -> Vec<u64> {
        let mut random = SplitMix(seed);
        let mut values: Vec<u64> = Vec::new();
        for at in 0..count {
            let earlier = values.get(random.next() as usize % (3 * at + 1)).copied();
            values.push(match earlier {
                Some(value) => flipped(value, &mut random),
                None => random.next(),
            });
        }
        let beginning = random.next() & !0 << 40;
        values.extend((0..alike).map(|_| beginning | random.next() >> 24));
        values.sort_unstable();
        values.dedup();
        values
    }

    fn starts(values: &[u64], bits: u32, rank_bits: u32) -> Option<PrefixStarts<'_>> {
        let third = values.len() / 3;
        let pieces = [0..third, third..third, third..2 * third, 2 * third..values.len()].map(|range| {
            let mut ends = PrefixEnds::new(bits);
            ends.note(range.start as u32, &values[range]);
            ends
        });
        PrefixStarts::of(values, pieces.into_iter(), rank_bits)
    }

    #[test]
    fn short_rows_decode_to_fingerprint_and_rank() {
        for (count, alike, bits, rank_bits) in
            [(5000, 0, 10, 5), (5000, 400, 10, 5), (5000, 100, 20, 0), (5, 0, 0, 3), (1, 0, 4, 0)]
        {
            let values = ascending(1, count, alike);
            let starts = starts(&values, bits, rank_bits).unwrap();
            for (start, part_bits) in [(16, rank_bits), (32, rank_bits + 2), (48, 10), (61, 3.max(rank_bits))]
            {
                let table = JoinTable { start, bits: part_bits, part_bits, parity: None };
                for (rank, &value) in (0..).zip(&values) {
                    let turned = value.rotate_left(table.turn());
                    let rows = [ShortRow::of(turned, rank, table.leads())];
                    let short = ShortRows::new(&rows, table, table.part()(turned), &starts);
                    let Row { value: found, number } = short.row(0);
                    assert_eq!((found, number), (value, rank), "{count} {alike} {bits} {rank_bits}, {start}");
                }
            }
        }
        // All 5,000 fingerprints have the same prefix, so 5 low bits do not determine a rank, but 13 bits do.
        let values: Vec<u64> = (0..5000).collect();
        assert!(starts(&values, 10, 5).is_none());
        assert!(starts(&values, 10, 13).is_some());
    }

    fn pairs(sides: &[FingerprintValues<'_>], within: u32, threads: usize, memory: usize) -> Vec<NearPair> {
        let dir = std::env::temp_dir();
        let resources = JoinResources { dir: &dir, memory, threads };
        let take = |found: &mut Vec<NearPair>, pairs: &[NearPair]| {
            found.extend_from_slice(pairs);
            Ok(())
        };
        let mut found =
            join(sides, within, resources, &TablePool::default(), Vec::new, take).unwrap().concat();
        found.sort_unstable();
        found
    }

    #[test]
    fn join_with_short_rows_finds_the_pairs_of_full_rows() {
        let all = [3, 1, 2, 5];
        // With 1,200,000 fingerprints, wide blocks select a bucket by more bits than an entry stores for a position.
        for (count, alike, radii) in
            [(9000, 0, &all[..]), (40_000, 300, &all), (150_000, 2000, &all), (1_200_000, 0, &all[2..3])]
        {
            let values = ascending(2, count, alike);
            let mut random = SplitMix(3);
            let mut other: Vec<u64> =
                values.iter().step_by(2).map(|&value| flipped(value, &mut random)).collect();
            other.sort_unstable();
            other.dedup();
            for &within in radii {
                let sorted = [FingerprintValues::Sorted(&values)];
                let made = HammingJoin::new(&sorted, tables(values.len(), within), 2).unwrap();
                assert!(made.starts[0].is_some(), "rows are short");
                let expected = pairs(&[FingerprintValues::Held(&values)], within, 1, 1 << 30);
                assert!(expected.len() > count / 50, "{} pairs", expected.len());
                for (threads, memory) in [(1, 1 << 30), (3, 1 << 30), (1, 100_000), (2, 300_000)] {
                    assert!(
                        pairs(&sorted, within, threads, memory) == expected,
                        "{count} {within} {threads}"
                    );
                }
            }
            for &within in radii {
                let whole = pairs(
                    &[FingerprintValues::Held(&values), FingerprintValues::Held(&other)],
                    within,
                    1,
                    1 << 30,
                );
                assert!(whole.len() > count / 20, "{} pairs", whole.len());
                for sides in [
                    [FingerprintValues::Sorted(&values), FingerprintValues::Sorted(&other)],
                    [FingerprintValues::Held(&values), FingerprintValues::Sorted(&other)],
                    [FingerprintValues::Sorted(&values), FingerprintValues::Held(&other)],
                ] {
                    assert!(pairs(&sides, within, 2, 1 << 30) == whole, "{count} {within} {sides:?}");
                }
            }
        }
        // Rows must be full if ranks cannot be recovered: if nearly all fingerprints have the same prefix, or if many are
        // equal.
        let mut many_equal = ascending(4, 20_000, 0);
        many_equal.extend([7; 300]);
        many_equal.sort_unstable();
        for (values, is_short) in [
            ((0..20_000).map(|value| value << 7).collect(), false),
            (many_equal, false),
            ((0..20_000).flat_map(|value| [value * (u64::MAX / 20_000); 2]).collect(), true),
        ] {
            let sorted = [FingerprintValues::Sorted(&values)];
            assert_eq!(
                HammingJoin::new(&sorted, tables(values.len(), 3), 1).unwrap().starts[0].is_some(),
                is_short
            );
            assert!(
                pairs(&sorted, 3, 1, 1 << 30) == pairs(&[FingerprintValues::Held(&values)], 3, 1, 1 << 30)
            );
        }
    }
}
