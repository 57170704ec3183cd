//! The filter of a search. It selects the rows of a bucket whose first 16 compared bits are near those of the query.
//!
//! A search spends nearly all its time in this loop and in waiting for memory. So one call filters many buckets and
//! does nothing else. The callers process the selected rows.

use zerocopy::little_endian::U16;

use super::file::SectionReader;
use super::tables::RawLayout;
use crate::error::Result;
use twindex_kernel::{Kernel, Level, Simd};

/// Number of rows that one mask covers.
const LANES: usize = 64;

/// A bucket, and the bits of the query that its rows are compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FilteredBucket {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The 16 bits of the query with which the 16-bit values of the rows are compared.
    pub(super) scanned: u16,
    /// The maximum number of bits in which the value of a row may differ from `scanned` if the row is selected.
    pub(super) left: u32,
}

impl FilteredBucket {
    #[inline(always)]
    pub(super) fn rows(&self) -> std::ops::Range<u64> {
        self.start.into()..self.end.into()
    }
}

/// 64 consecutive rows of a bucket, or fewer at its end. At least one of them may be near.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survivors {
    /// The position of the bucket in the buckets passed to [`filter_buckets`].
    pub(super) bucket: u32,
    /// The row of bit 0 of `near`.
    pub(super) base: u32,
    /// Bit i is set if row `base + i` may be near.
    pub(super) near: u64,
}

/// Filters the rows of buckets. Each bucket comes with the raw layout of its table. Writes the results to the first
/// elements of `survivors`, in the order of buckets and rows, and returns the number of results.
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
                // Writes the result in any case, but counts it only if a row may be near: a branch would be
                // mispredicted too often.
                let near = simd.near16(lanes, scanned, left);
                survivors[count] = Survivors { bucket: number, base, near };
                count += usize::from(near != 0);
                // If fewer than `LANES` rows remained, `near16` has compared all of them, and the slice becomes empty.
                lanes = lanes.get(LANES..).unwrap_or_default();
                base += LANES as u32;
            }
        }
        Ok(count)
    }
}
