//! Searches hot buckets, which have far more rows than an average bucket. Each hot bucket has nested tables, with which
//! searching a million rows costs little more than searching a normal bucket.

use super::file::SectionReader;
use super::tables::{OpenTable, OpenTables};
use crate::design::Design;
use crate::design::masks::masks;
use crate::design::tables::{Table, spread};
use crate::error::Result;
use crate::format::contents::Section;
use crate::format::hot::{self, Hot, HotBucket, NESTED};
use crate::format::table::{Columns, Layout, Source};
use crate::format::wire::Fault;
use twindex_kernel::{Kernel, Level, Simd};

/// A search of one hot bucket for one query.
pub(super) struct NestedSearch<'a, 'b> {
    pub(super) at: SectionReader<'a>,
    pub(super) tables: &'a OpenTables,
    pub(super) table: &'a OpenTable,
    pub(super) section: &'a Section,
    pub(super) hot: &'a Hot,
    pub(super) bucket: &'a HotBucket,
    /// The key of the query in this table.
    pub(super) key: u64,
    pub(super) within: u32,
    /// Called with the rank and the fingerprint of each match.
    pub(super) each: &'b mut dyn FnMut(u32, u64),
}

impl Kernel for NestedSearch<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self { at, tables, table, section, hot, bucket, key, within, each } = self;
        let source = at.section(section);
        let first = &tables.all[0];
        let spent = (table.prefix(key) ^ bucket.prefix).count_ones();
        let Some(left) = within.checked_sub(spent) else { return Ok(()) };
        let mut radii = [None; NESTED];
        spread(left, &mut radii);
        let query = table.order.invert(key);
        let top = (query >> 48) as u16;
        let lead = |j: usize| hot.rest.lead(j, bucket.rows);
        let leads = |j: usize, nested: u64| nested.checked_shr(64 - lead(j)).unwrap_or(0);
        for j in 0..NESTED {
            let Some(radius) = radii[j] else { continue };
            let nested = hot.rest.nested(j, key);
            let filter = hot::filter(nested, lead(j));
            for mask in masks(lead(j), radius) {
                let prefix = leads(j, nested) ^ mask;
                let rows = bucket.nested_rows(source, j, prefix)?;
                let filters = bucket.filters(source, j, &rows)?;
                let left = left.saturating_sub(mask.count_ones());
                for (base, lanes) in (rows.start..).step_by(64).zip(filters.chunks(64)) {
                    let mut near = simd.near16(lanes, filter, left);
                    while near != 0 {
                        let row = base + u64::from(near.trailing_zeros());
                        near &= near - 1;
                        let rank = bucket.rank(source, j, row, tables.rows)?;
                        // Bits 1 to 16 of a key may be expensive to decode. If so, the other bits are compared first,
                        // which excludes most keys.
                        if let Layout::Planes(planes) = &first.layout
                            && !planes.has_first()
                        {
                            let below = planes.key(at.section(&first.section), rank.into(), top)?;
                            if (below ^ query).count_ones() > within {
                                continue;
                            }
                        }
                        let fingerprint = first.layout.value(at.section(&first.section), rank.into())?;
                        let found = table.order.apply(fingerprint);
                        let difference = found ^ key;
                        if table.prefix(found) != bucket.prefix
                            || leads(j, hot.rest.nested(j, found)) != prefix
                        {
                            let expected = format!("a fingerprint of bucket {:x}", bucket.prefix);
                            return Err(source.corrupt(Fault::new(
                                0,
                                expected,
                                format!("{fingerprint:016x}"),
                            )));
                        }
                        // Skips a match that an earlier nested table has reported already.
                        let found_before = (0..j).any(|earlier| {
                            let differs = leads(earlier, hot.rest.nested(earlier, difference));
                            radii[earlier].is_some_and(|radius| differs.count_ones() <= radius)
                        });
                        if difference.count_ones() <= within && !found_before {
                            each(rank, fingerprint);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl NestedSearch<'_, '_> {
    #[inline(never)]
    pub(super) fn go(self) -> Result<()> {
        Level::chosen().dispatch(self)
    }
}

/// The hot buckets of a table: the prefix of each bucket, and the (key, rank) pairs of the fingerprints in it.
pub(super) type HotMembers = Vec<(u64, Vec<(u64, u32)>)>;

/// Returns the hot buckets of a table. `fingerprints` must return them in the order of their ranks, and is called
/// twice. Takes 4 bytes of memory per bucket of the table, and 16 bytes per fingerprint in a hot bucket.
pub(super) fn hot_buckets<I: Iterator<Item = Result<u64>>>(
    table: &Table,
    rows: u64,
    fingerprints: impl Fn() -> Result<I>,
) -> Result<HotMembers> {
    let bits = table.probe_bits(rows);
    // With more prefix bits than any directory has, few fingerprints share a prefix, so no bucket is hot.
    if rows <= hot::HOT_ROWS || bits > crate::design::prefix_bits(rows, 64) {
        return Ok(HotMembers::new());
    }
    let prefix = |key: u64| key.checked_shr(64 - bits).unwrap_or(0);
    let mut counts = vec![0_u32; 1 << bits];
    for fingerprint in fingerprints()? {
        counts[prefix(table.order.apply(fingerprint?)) as usize] += 1;
    }
    let mut buckets: HotMembers = (0..)
        .zip(&counts)
        .filter(|&(_, &count)| hot::is_hot(count.into(), rows, bits))
        .map(|(prefix, _)| (prefix, Vec::new()))
        .collect();
    drop(counts);
    if buckets.is_empty() {
        return Ok(buckets);
    }
    for (rank, fingerprint) in (0..).zip(fingerprints()?) {
        let key = table.order.apply(fingerprint?);
        if let Ok(place) = buckets.binary_search_by_key(&prefix(key), |bucket| bucket.0) {
            buckets[place].1.push((key, rank));
        }
    }
    Ok(buckets)
}

/// Encodes the hot buckets of table `place` (from 0), and returns the number of their entries; `None` if the table has no
/// hot bucket.
pub(super) fn encode_hot<I: Iterator<Item = Result<u64>>>(
    design: &Design,
    place: usize,
    rows: u64,
    fingerprints: impl Fn() -> Result<I>,
    columns: &mut impl Columns,
) -> Result<Option<u64>> {
    let table = &design.tables[place];
    let buckets = hot_buckets(table, rows, fingerprints)?;
    if buckets.is_empty() {
        return Ok(None);
    }
    Hot::encode(&buckets, table.probe_bits(rows), columns)?;
    Ok(Some(buckets.iter().map(|bucket| bucket.1.len() as u64).sum()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::format::table::Probe;
    use crate::params::Params;
    use crate::segment::records::{Kept, Records};
    use crate::segment::{SearchOptions, SearchScratch, Segment, build};
    use crate::sys::RealVfs;
    use crate::{Key, segment};

    /// Builds a segment of `count` fingerprints. 7 of 8 fingerprints have the same bits under the mask `hot`.
    fn skewed(design: &str, codec: &str, hot: u64, count: u64) -> (tempfile::TempDir, Segment, Vec<u64>) {
        let mix = |i: u64| {
            let z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ z >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z ^ z >> 32
        };
        let fingerprints: Vec<u64> = (0..count)
            .map(|i| if i % 8 == 0 { mix(i) } else { mix(i) & !hot | 0xABCD_ABCD_ABCD_ABCD & hot })
            .collect();
        let (design, codec) = (design.parse().unwrap(), codec.parse().unwrap());
        let params = Params::builder().u64_keys().simhash(3).tables(design, codec).build().unwrap();
        let mut records = Records::new(&params);
        for (key, &fingerprint) in (0..).zip(&fingerprints) {
            records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.seg");
        build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
        let segment = Segment::open(&RealVfs, Path::new(&path)).unwrap();
        (dir, segment, fingerprints)
    }

    fn compare(segment: &segment::Segment, fingerprints: &[u64], query: u64, within: u32) -> usize {
        let mut found = Vec::new();
        segment.documents_within(query, within, |ordinal, distance| found.push((ordinal, distance))).unwrap();
        found.sort_unstable();
        let near = (0..).zip(fingerprints.iter().map(|f| (f ^ query).count_ones()));
        let expected: Vec<(u32, u32)> = near.filter(|&(_, distance)| distance <= within).collect();
        assert_eq!(found, expected, "{query:016x} within {within}");
        expected.len()
    }

    #[test]
    fn search_of_hot_buckets_agrees_with_brute_force() {
        for (design, codec, hot) in [
            ("blocks-4", "planes+2", 0xFFFF_u64 << 48),
            ("blocks-4", "planes+3", 0xFFFF << 32),
            ("blocks-4", "compact+2", 0xFFFF << 16),
            ("blocks-4", "plain", 0xFFFF),
            ("blocks-4", "planes+2", 0xFFFF_FFFF),
            ("blocks-2", "compact+3", 0xFFFF_FFFF << 32),
            ("blocks-5", "planes+4", 0xFFFF << 40),
            ("choose-5-2", "manku", 0xFFFF_FFFF << 32),
        ] {
            let (_dir, segment, fingerprints) = skewed(design, codec, hot, 24_000);
            let tables = &segment.fingerprints.as_ref().unwrap().tables.all;
            assert!(tables.iter().any(|table| table.hot.is_some()), "{design} has no hot bucket");
            assert_eq!(segment.verify(|_| ()).len(), 0, "{design} {codec}");
            let mut hits = 0;
            for i in 0..20_usize {
                let bits = i % 7;
                let flipped = (0..bits).fold(0, |mask: u64, bit| mask | 1 << ((i * 11 + bit * 17) % 64));
                let query = fingerprints[i * 997] ^ flipped;
                for within in [0, 1, 2, 3] {
                    hits += compare(&segment, &fingerprints, query, within);
                }
                if design.starts_with("blocks") {
                    hits += compare(&segment, &fingerprints, query, 4 + (i % 7) as u32);
                }
            }
            assert!(hits > 20, "{design} {codec}: {hits}");
        }
    }

    #[test]
    fn visit_limit_skips_buckets_and_counts_them() {
        let (_dir, segment, fingerprints) = skewed("blocks-4", "planes+2", 0, 24_000);
        let query = fingerprints[5];
        let ask = |visits, queries: &[u64]| {
            let mut scratch = SearchScratch::default();
            let mut found = Vec::new();
            let ask = SearchOptions { visits, probe: Some(Probe::Directory), ..SearchOptions::within(3) };
            segment
                .search(queries, ask, &mut scratch, |number, near| {
                    found.push((number, near.fingerprint));
                    Ok(std::ops::ControlFlow::Continue(()))
                })
                .unwrap();
            found.sort_unstable();
            (found, scratch.left_out())
        };
        let (all, left_out) = ask(None, &[query]);
        assert_eq!((ask(Some(1 << 20), &[query]), left_out), ((all.clone(), 0), 0));
        assert_eq!(ask(Some(0), &[query]), (Vec::new(), 4));
        let (some, left_out) = ask(Some(20), &[query]);
        assert!(left_out > 0 && some.iter().all(|hit| all.contains(hit)));
        // The skipped buckets do not depend on the other queries of the same batch.
        let together = ask(Some(20), &[query ^ 1, query, query ^ 2]);
        let mine: Vec<(usize, u64)> =
            together.0.iter().filter(|hit| hit.0 == 1).map(|&(_, found)| (0, found)).collect();
        assert_eq!(mine, some);
    }
}
