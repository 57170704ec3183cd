//! The filter of a search: which entries of a bucket may be near, by 16 of their bits.
//!
//! Nearly all time of a search is spent here and in waiting for buckets. So this is a loop that does nothing else, over
//! several buckets of a table, and leaves what it finds to others.

use zerocopy::little_endian::U16;

use super::file::SectionReader;
use super::tables::RawLayout;
use crate::error::Result;
use twindex_kernel::{Kernel, Level, Simd};

/// Entries that one mask answers for.
const LANES: usize = 64;

/// A bucket, and what its entries are compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FilteredBucket {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The query's bits in the plane that is checked.
    pub(super) scanned: u16,
    /// In how many bits they may differ.
    pub(super) left: u32,
}

impl FilteredBucket {
    #[inline(always)]
    pub(super) fn rows(&self) -> std::ops::Range<u64> {
        self.start.into()..self.end.into()
    }
}

/// Entries that may be near, at least one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survivors {
    /// The number of the bucket.
    pub(super) bucket: u32,
    /// The row of bit 0.
    pub(super) base: u32,
    /// Bit i is for row `base + i`.
    pub(super) near: u64,
}

/// Filters buckets, each by the front of its table, and returns how many of `survivors` have been written, by bucket and row
/// ascending.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt).
pub(super) fn filter_buckets<'f>(
    level: Level,
    at: &SectionReader<'_>,
    buckets: impl Iterator<Item = (FilteredBucket, &'f RawLayout)>,
    survivors: &mut Vec<Survivors>,
) -> Result<usize> {
    level.dispatch(FilterKernel { at, buckets, survivors })
}

struct FilterKernel<'a, 'b, I> {
    at: &'b SectionReader<'a>,
    buckets: I,
    survivors: &'b mut Vec<Survivors>,
}

impl<'f, I: Iterator<Item = (FilteredBucket, &'f RawLayout)>> Kernel for FilterKernel<'_, '_, I> {
    type Output = Result<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<usize> {
        let Self { at, buckets, survivors } = self;
        let mut count = 0;
        for (number, (bucket, front)) in (0..).zip(buckets) {
            let FilteredBucket { start, end, scanned, left } = bucket;
            let mut lanes: &[U16] = front.lanes(at, start..end)?;
            let mut base = start;
            while !lanes.is_empty() {
                if count == survivors.len() {
                    survivors.resize(count * 2 + LANES, Survivors::default());
                }
                // Written always and kept if it is of use: whether it is cannot be predicted.
                let near = simd.near16(lanes, scanned, left);
                survivors[count] = Survivors { bucket: number, base, near };
                count += usize::from(near != 0);
                // Nothing is left after fewer than `LANES`: `near16` has taken them all.
                lanes = lanes.get(LANES..).unwrap_or_default();
                base += LANES as u32;
            }
        }
        Ok(count)
    }
}
