//! The checksum of each page, looked at when the page is first touched.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::little_endian::U32;

use crate::format::checksum::{PAGE, checksum};
use crate::format::wire::Fault;

/// The expected checksums, and which pages have been found to match.
#[derive(Debug)]
pub(super) struct Pages {
    salt: u128,
    expected: Vec<u32>,
    /// A bit for each page. Two threads may both check a page; setting the bit twice does no harm, and as a set
    /// bit publishes nothing but itself (the file does not change), relaxed ordering is enough.
    sound: Box<[AtomicU64]>,
    /// End of the pages in the file.
    end: u64,
}

impl Pages {
    /// Pages of the first `end` bytes, whose checksums are `expected`.
    pub(super) fn new(salt: u128, expected: &[U32], end: u64) -> Self {
        let expected: Vec<u32> = expected.iter().map(|sum| sum.get()).collect();
        let sound = (0..expected.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { salt, expected, sound, end }
    }

    /// Pages in all.
    pub(super) fn count(&self) -> u64 {
        self.expected.len() as u64
    }

    /// Makes sure that the pages of `range`, an extent of `file`, are what was written.
    #[inline(always)]
    pub(super) fn touch(&self, file: &[u8], range: &Range<u64>) -> Result<(), Fault> {
        if range.start >= range.end {
            return Ok(());
        }
        let (first, last) = (range.start / PAGE, (range.end - 1) / PAGE);
        for page in first..=last {
            let bit = 1 << (page % 64);
            let known = self
                .sound
                .get((page / 64) as usize)
                .is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0);
            if !known {
                self.check(file, page)?;
            }
        }
        Ok(())
    }

    /// Compares a page with its checksum.
    #[cold]
    #[inline(never)]
    pub(super) fn check(&self, file: &[u8], page: u64) -> Result<(), Fault> {
        let start = page * PAGE;
        let bytes = file
            .get(start as usize..self.end.min(start + PAGE) as usize)
            .ok_or_else(|| Fault::new(start, "a page", "the end of the file"))?;
        let expected = *self.expected.get(page as usize).ok_or_else(|| {
            Fault::new(start, format!("{} pages", self.expected.len()), format!("page {page}"))
        })?;
        let found = checksum(self.salt, start, bytes);
        if found != expected {
            return Err(Fault::new(start, format!("page checksum {expected:08x}"), format!("{found:08x}")));
        }
        self.sound[(page / 64) as usize].fetch_or(1 << (page % 64), Ordering::Relaxed);
        Ok(())
    }
}
