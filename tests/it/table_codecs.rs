//! Tests that every codec of complete tables must pass.
//!
//! Codecs are tested on uniform, clustered and adversarial sets of values. The tests compare the results with plain
//! loops over the values, and check that damaged bytes are handled.

use std::ops::{ControlFlow, Range};

use proptest::prelude::*;
use twindex::Result;
use twindex::format::table::search::Search;
use twindex::format::table::{Compact, Manku, Plain, Probe};
use twindex_kernel::splitmix::SplitMix;
use twindex_kernel::{Kernel, Level, Simd};

use crate::support::fuzzing::codecs::{Parts, Section};

/// The common interface of all codecs.
trait Codec: Sized {
    const NAME: &'static str;
    fn open(source: Section<'_>, rows: u64, length: u64) -> Result<Self>;
    fn rows(&self, source: Section<'_>, prefix: u64, bits: u32) -> Result<Range<u64>>;
    fn scan<S: Simd>(
        &self,
        simd: S,
        source: Section<'_>,
        rows: Range<u64>,
        query: u64,
        radius: u32,
        each: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>>;
    fn value(&self, source: Section<'_>, row: u64) -> Result<u64>;
    fn find(&self, source: Section<'_>, value: u64) -> Result<Option<u64>>;
    fn for_each(&self, source: Section<'_>, each: impl FnMut(u64, u64) -> Result<()>) -> Result<()>;
    fn hint(&self, source: Section<'_>, prefix: u64, bits: u32, rows: &Range<u64>);
    fn encode(rows: u64, values: &[u64], parts: &mut Parts) -> Result<()>;
}

/// Returns the section that encodes these values.
fn section<C: Codec>(values: &[u64]) -> Vec<u8> {
    let mut parts = Parts::default();
    C::encode(values.len() as u64, values, &mut parts).unwrap();
    parts.joined().into_iter().map(Option::unwrap_or_default).collect()
}

/// Returns whether `bytes` is the section that encodes these values, ignoring the gaps between its parts.
fn is_section_of<C: Codec>(bytes: &[u8], values: &[u64]) -> bool {
    let mut parts = Parts::default();
    C::encode(values.len() as u64, values, &mut parts).unwrap();
    let expected = parts.joined();
    expected.len() == bytes.len()
        && expected
            .into_iter()
            .zip(bytes)
            .all(|(expected, &byte)| expected.is_none_or(|expected| expected == byte))
}

/// Returns pseudo-random values, the same in every run.
fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix(seed.wrapping_mul(0xA076_1D64_78BD_642F));
    std::iter::repeat_with(move || random.next())
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns `rows` uniform values, ascending.
fn uniform(rows: usize, seed: u64) -> Vec<u64> {
    sorted(random(seed).take(rows).collect())
}

/// Returns the sets of values for the tests, with their names.
fn sets() -> Vec<(String, Vec<u64>)> {
    let mut sets: Vec<(String, Vec<u64>)> = [0, 1, 2, 3, 63, 64, 65, 1000, 20_000]
        .map(|rows| (format!("uniform {rows}"), uniform(rows, rows as u64)))
        .into();
    let middles: Vec<u64> = random(7).take(20).collect();
    let clustered = random(8).zip(random(9)).take(5000);
    let clustered = clustered
        .map(|(at, flips)| middles[at as usize % 20] ^ (1 << (flips % 64)) ^ (1 << (flips >> 8 & 63)));
    sets.push(("clustered".into(), sorted(clustered.collect())));
    sets.push(("consecutive from 0".into(), (0..5000).collect()));
    sets.push(("consecutive up to the last".into(), (u64::MAX - 4999..=u64::MAX).collect()));
    sets.push(("the two ends".into(), vec![0, u64::MAX]));
    sets.push(("one value, zero".into(), vec![0]));
    sets.push(("one value, the last".into(), vec![u64::MAX]));
    let mut ends = uniform(700, 10);
    ends.extend((0..100).chain(u64::MAX - 99..=u64::MAX));
    sets.push(("uniform with runs at both ends".into(), sorted(ends)));
    let bucket = random(11).take(9000).map(|value| 0xABCD << 48 | value >> 16);
    sets.push(("one bucket".into(), sorted(bucket.collect())));
    let skewed = random(12).zip(random(13)).take(20_000);
    let skewed = skewed.map(|(value, hot)| if hot % 2 == 0 { value >> 24 | 0x5A_5A5A << 40 } else { value });
    sets.push(("half in one bucket".into(), sorted(skewed.collect())));
    sets.push(("powers of two".into(), (0..64).map(|bit| 1 << bit).collect()));
    sets
}

/// Returns values of a set, values within 3 bits of a value of the set, and other values.
fn queries(values: &[u64], seed: u64) -> Vec<u64> {
    let mut queries = vec![0, 1, u64::MAX, 1 << 63];
    queries.extend(random(seed).take(8));
    for (pick, flips) in random(seed + 1).zip(random(seed + 2)).take(if values.is_empty() { 0 } else { 12 }) {
        let value = values[(pick % values.len() as u64) as usize];
        queries.push(value);
        queries.push(value ^ (1 << (flips % 64)) ^ (1 << (flips >> 8 & 63)) ^ (1 << (flips >> 16 & 63)));
    }
    queries
}

/// Returns the values of all rows of the section.
fn decode<C: Codec>(codec: &C, bytes: &[u8]) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    codec.for_each(Section(bytes), |row, value| {
        assert_eq!(row, values.len() as u64);
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// Checks that values are found by row, by value and in a pass over all rows, and that encoding them again gives the
/// same bytes.
fn values_are_found_by_row_by_value_and_by_for_each<C: Codec>(values: &[u64], name: &str) {
    let bytes = section::<C>(values);
    let codec = C::open(Section(&bytes), values.len() as u64, bytes.len() as u64).unwrap();
    let found = decode(&codec, &bytes).unwrap();
    assert_eq!(found, values, "{} {name}", C::NAME);
    assert_eq!(section::<C>(&found), bytes, "{} {name}: encoding is canonical", C::NAME);
    let step = (values.len() / 3000).max(1);
    for (row, &value) in values.iter().enumerate().step_by(step) {
        assert_eq!(codec.value(Section(&bytes), row as u64).unwrap(), value, "{} {name} row {row}", C::NAME);
        assert_eq!(
            codec.find(Section(&bytes), value).unwrap(),
            Some(row as u64),
            "{} {name} {value:x}",
            C::NAME
        );
    }
    for query in queries(values, 20) {
        let expected = values.binary_search(&query).ok().map(|row| row as u64);
        assert_eq!(codec.find(Section(&bytes), query).unwrap(), expected, "{} {name} {query:x}", C::NAME);
    }
    assert!(codec.value(Section(&bytes), values.len() as u64).is_err());
    assert!(codec.value(Section(&bytes), u64::MAX).is_err());
    for length in [bytes.len() - 1, bytes.len() + 1, bytes.len() + 64, 0] {
        assert!(C::open(Section(&bytes), values.len() as u64, length as u64).is_err(), "{} {name}", C::NAME);
    }
}

/// Checks that the rows of a prefix are the rows between two partition points of the values.
fn rows_of_a_prefix_lie_between_partition_points<C: Codec>(values: &[u64], name: &str) {
    let bytes = section::<C>(values);
    let codec = C::open(Section(&bytes), values.len() as u64, bytes.len() as u64).unwrap();
    for query in queries(values, 30) {
        for bits in 0..=64 {
            let prefix = query.checked_shr(64 - bits).unwrap_or(0);
            let of = |value: u64| value.checked_shr(64 - bits).unwrap_or(0);
            let start = values.partition_point(|&value| of(value) < prefix) as u64;
            let end = values.partition_point(|&value| of(value) <= prefix) as u64;
            let found = codec.rows(Section(&bytes), prefix, bits).unwrap();
            if start == end {
                assert!(found.is_empty(), "{} {name}: {prefix:x} of {bits} bits: {found:?}", C::NAME);
            } else {
                assert_eq!(found, start..end, "{} {name}: {prefix:x} of {bits} bits", C::NAME);
            }
            codec.hint(Section(&bytes), prefix, bits, &found);
        }
    }
    assert!(codec.rows(Section(&bytes), 2, 1).unwrap().is_empty(), "no value has such a prefix");
    assert!(codec.rows(Section(&bytes), 0, 65).unwrap().is_empty());
    codec.hint(Section(&bytes), u64::MAX, 65, &(u64::MAX - 1..u64::MAX));
}

/// A kernel that runs a scan and stops it after `limit` matches.
struct Scan<'a, C> {
    codec: &'a C,
    bytes: &'a [u8],
    rows: Range<u64>,
    query: u64,
    radius: u32,
    limit: usize,
}

impl<C: Codec> Kernel for Scan<'_, C> {
    type Output = Result<Vec<(u64, u64)>>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut found = Vec::new();
        let flow = self.codec.scan(
            simd,
            Section(self.bytes),
            self.rows,
            self.query,
            self.radius,
            |row, value| {
                found.push((row, value));
                if found.len() == self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )?;
        assert_eq!(flow.is_break(), found.len() == self.limit);
        Ok(found)
    }
}

/// Checks at every SIMD level that scans find the same values as a plain loop.
fn scans_find_the_same_values_as_a_plain_loop<C: Codec>(values: &[u64], name: &str) {
    let bytes = section::<C>(values);
    let codec = C::open(Section(&bytes), values.len() as u64, bytes.len() as u64).unwrap();
    let all = values.len() as u64;
    let ranges = [0..all, all / 3..all - all / 4, all / 2..(all / 2 + 70).min(all), all / 2..all / 2];
    let levels = Level::tested();
    for (number, query) in queries(values, 40).into_iter().enumerate() {
        for radius in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 64] {
            if !(number + radius as usize).is_multiple_of(3) {
                continue;
            }
            for rows in &ranges {
                let near = |&row: &u64| (values[row as usize] ^ query).count_ones() <= radius;
                let expected: Vec<(u64, u64)> =
                    rows.clone().filter(near).map(|row| (row, values[row as usize])).collect();
                for level in &levels {
                    for limit in [usize::MAX, 1] {
                        let scan =
                            Scan { codec: &codec, bytes: &bytes, rows: rows.clone(), query, radius, limit };
                        let found = level.dispatch(scan).unwrap();
                        let expected = &expected[..expected.len().min(limit)];
                        assert_eq!(found, expected, "{} {name} {query:x} {radius} {rows:?} {level}", C::NAME);
                    }
                }
            }
        }
    }
    for rows in [0..all + 1, u64::MAX - 1..u64::MAX] {
        let scan = Scan { codec: &codec, bytes: &bytes, rows, query: 0, radius: 3, limit: usize::MAX };
        assert!(Level::Scalar.dispatch(scan).is_err());
    }
}

/// Checks that values that do not ascend, or whose number differs from the number of rows, are refused.
fn unsorted_or_miscounted_values_are_refused<C: Codec>() {
    for (rows, values) in
        [(2, &[5, 5][..]), (2, &[6, 5]), (3, &[1, 2]), (1, &[1, 2]), (0, &[1]), (1 << 40, &[])]
    {
        assert!(C::encode(rows, values, &mut Parts::default()).is_err(), "{} {rows} {values:?}", C::NAME);
    }
}

/// Checks that every call on damaged bytes returns an error or rows within the table. A pass over all rows must return
/// an error unless the bytes are the section that encodes the decoded values.
fn check_calls_on_damaged_bytes<C: Codec>(bytes: &[u8], rows: u64, query: u64) {
    let Ok(codec) = C::open(Section(bytes), rows, bytes.len() as u64) else { return };
    for bits in [0, 1, 5, 9, 13, 20, 33, 64] {
        let prefix = query.checked_shr(64 - bits).unwrap_or(0);
        let Ok(found) = codec.rows(Section(bytes), prefix, bits) else { continue };
        assert!(found.start <= found.end && found.end <= rows, "{} {found:?}", C::NAME);
        codec.hint(Section(bytes), prefix, bits, &found);
        for radius in [2, 7] {
            let scan = Scan { codec: &codec, bytes, rows: found.clone(), query, radius, limit: usize::MAX };
            let Ok(hits) = Level::chosen().dispatch(scan) else { continue };
            assert!(
                hits.iter().all(|(row, value)| found.contains(row) && (value ^ query).count_ones() <= radius)
            );
        }
    }
    for row in [0, rows / 2, rows.saturating_sub(1), query % rows.max(1)] {
        let _ = codec.value(Section(bytes), row);
    }
    if let Ok(Some(row)) = codec.find(Section(bytes), query) {
        assert!(row < rows);
    }
    if let Ok(values) = decode(&codec, bytes) {
        assert_eq!(values.len() as u64, rows, "{}", C::NAME);
        assert!(is_section_of::<C>(bytes, &values), "{}: undetected damage", C::NAME);
    }
}

/// Generates values of many distributions, for property tests.
fn any_values() -> impl Strategy<Value = Vec<u64>> {
    (proptest::collection::vec(any::<u64>(), 0..400), 0_u32..64, any::<u64>(), 0_u32..4).prop_map(
        |(values, shift, base, share)| {
            let narrowed = |value: u64| {
                if value & 3 < share.into() { base ^ value >> shift } else { value }
            };
            sorted(values.into_iter().map(narrowed).collect())
        },
    )
}

/// Defines the tests of a codec in a module. `$rows` returns the rows of a prefix, `$encode` writes a section.
macro_rules! codec {
    ($module:ident, $codec:ident, $rows:expr, $encode:expr) => {
        mod $module {
            use super::*;

            struct Tested($codec);

            impl Codec for Tested {
                const NAME: &'static str = stringify!($module);

                fn open(source: Section<'_>, rows: u64, length: u64) -> Result<Self> {
                    $codec::open(source, rows, length).map(Self)
                }

                fn rows(&self, source: Section<'_>, prefix: u64, bits: u32) -> Result<Range<u64>> {
                    $rows(&self.0, source, prefix, bits)
                }

                #[inline(always)]
                fn scan<S: Simd>(
                    &self,
                    simd: S,
                    source: Section<'_>,
                    rows: Range<u64>,
                    query: u64,
                    radius: u32,
                    each: impl FnMut(u64, u64) -> ControlFlow<()>,
                ) -> Result<ControlFlow<()>> {
                    self.0.scan(simd, source, rows, query, radius, each)
                }

                fn value(&self, source: Section<'_>, row: u64) -> Result<u64> {
                    self.0.value(source, row)
                }

                fn find(&self, source: Section<'_>, value: u64) -> Result<Option<u64>> {
                    self.0.find(source, value)
                }

                fn for_each(&self, source: Section<'_>, each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
                    self.0.for_each(source, each)
                }

                fn hint(&self, source: Section<'_>, prefix: u64, bits: u32, rows: &Range<u64>) {
                    self.0.hint_directory(source, prefix, bits);
                    self.0.hint_rows(source, rows);
                }

                fn encode(rows: u64, values: &[u64], parts: &mut Parts) -> Result<()> {
                    $encode(rows, values, parts)
                }
            }

            #[test]
            fn values_are_found_by_row_by_value_and_by_for_each() {
                for (name, values) in sets() {
                    super::values_are_found_by_row_by_value_and_by_for_each::<Tested>(&values, &name);
                }
                super::values_are_found_by_row_by_value_and_by_for_each::<Tested>(
                    &uniform(100_000, 100),
                    "uniform 100,000",
                );
            }

            #[test]
            fn rows_of_a_prefix_lie_between_partition_points() {
                for (name, values) in sets() {
                    super::rows_of_a_prefix_lie_between_partition_points::<Tested>(&values, &name);
                }
                let many = uniform(100_000, 101);
                super::rows_of_a_prefix_lie_between_partition_points::<Tested>(&many, "uniform 100,000");
            }

            #[test]
            fn scans_find_the_same_values_as_a_plain_loop() {
                for (name, values) in sets() {
                    super::scans_find_the_same_values_as_a_plain_loop::<Tested>(&values, &name);
                }
            }

            #[test]
            fn unsorted_or_miscounted_values_are_refused() {
                super::unsorted_or_miscounted_values_are_refused::<Tested>();
            }

            #[test]
            fn every_flipped_bit_gives_an_error_or_valid_rows() {
                for values in [uniform(3, 1), uniform(200, 2), (0..150).collect()] {
                    let bytes = section::<Tested>(&values);
                    for bit in 0..bytes.len() * 8 {
                        let mut damaged = bytes.clone();
                        damaged[bit / 8] ^= 1 << (bit % 8);
                        check_calls_on_damaged_bytes::<Tested>(&damaged, values.len() as u64, values[1]);
                    }
                }
            }

            #[test]
            fn damaged_hot_bucket_gives_an_error_or_valid_rows() {
                let (_, values) =
                    sets().into_iter().find(|(name, _)| name == "half in one bucket").unwrap();
                let bytes = section::<Tested>(&values);
                for (place, with) in random(50).zip(random(51)).take(100) {
                    let mut damaged = bytes.clone();
                    for place in [place, place >> 20, place >> 40] {
                        damaged[(place % bytes.len() as u64) as usize] = with as u8;
                    }
                    let query = values[(with % values.len() as u64) as usize];
                    check_calls_on_damaged_bytes::<Tested>(&damaged, values.len() as u64, query);
                }
            }

            proptest::proptest! {
                #[test]
                fn arbitrary_values_round_trip(values in any_values()) {
                    super::values_are_found_by_row_by_value_and_by_for_each::<Tested>(&values, "any");
                }

                #[test]
                fn damaged_bytes_give_an_error_or_valid_rows(
                    values in any_values(), query: u64, noise: u64, count in 1_usize..40,
                ) {
                    let mut bytes = section::<Tested>(&values);
                    for (place, with) in random(noise).zip(random(noise ^ 1)).take(count) {
                        let place = (place % bytes.len() as u64) as usize;
                        bytes[place] = match with % 3 { 0 => 0, 1 => 0xFF, _ => (with >> 8) as u8 };
                    }
                    let query = values.get(query as usize % values.len().max(1)).map_or(query, |value| value ^ 1);
                    check_calls_on_damaged_bytes::<Tested>(&bytes, values.len() as u64, query);
                }

                #[test]
                fn random_bytes_give_an_error_or_valid_rows(rows in 0_usize..300, noise: u64, query: u64) {
                    let length = section::<Tested>(&uniform(rows, 1)).len();
                    let bytes: Vec<u8> =
                        random(noise).flat_map(u64::to_le_bytes).take(length).collect();
                    check_calls_on_damaged_bytes::<Tested>(&bytes, rows as u64, query);
                }
            }
        }
    };
}

codec!(compact, Compact, Compact::rows, encode_compact);
codec!(
    manku_by_interpolation,
    Manku,
    |codec: &Manku, source, prefix, bits| codec.rows(source, prefix, bits, Search::Interpolation),
    encode_manku
);
codec!(
    manku_by_binary_search,
    Manku,
    |codec: &Manku, source, prefix, bits| codec.rows(source, prefix, bits, Search::Binary),
    encode_manku
);
codec!(
    plain_by_directory,
    Plain,
    |codec: &Plain, source, prefix, bits| codec.rows(source, prefix, bits, Probe::Directory),
    encode_plain
);
codec!(
    plain_by_interpolation,
    Plain,
    |codec: &Plain, source, prefix, bits| codec.rows(source, prefix, bits, Probe::Interpolation),
    encode_plain
);
codec!(
    plain_by_binary_search,
    Plain,
    |codec: &Plain, source, prefix, bits| codec.rows(source, prefix, bits, Probe::Binary),
    encode_plain
);

fn encode_compact(rows: u64, values: &[u64], parts: &mut Parts) -> Result<()> {
    Compact::of(rows).encode(values.iter().map(|&value| Ok(value)), parts)
}

fn encode_manku(rows: u64, values: &[u64], parts: &mut Parts) -> Result<()> {
    Manku::encode(rows, || values.iter().map(|&value| Ok(value)), parts)
}

fn encode_plain(rows: u64, values: &[u64], parts: &mut Parts) -> Result<()> {
    Plain::of(rows).encode(values.iter().map(|&value| Ok(value)), parts)
}
