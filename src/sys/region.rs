//! Memory that grows large: mapped by itself, in huge pages where the system has them.
//!
//! Memory that is touched for the first time costs a page fault for each 4 KiB, 1 to 2 us of the kernel's time; a set
//! of shingles costs less to make. With pages of 2 MiB it is a tenth of that.

use std::io;

use zerocopy::FromBytes;

/// Words, zeroed, at a fixed place. Pages that were never written to take no memory.
#[derive(Debug)]
pub struct Region {
    map: memmap2::MmapMut,
}

impl Region {
    /// Room for `words` words, at least one.
    ///
    /// # Errors
    /// The operating system's, if it has no such memory.
    pub fn new(words: usize) -> io::Result<Self> {
        let bytes = words.max(1).checked_mul(size_of::<u64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = memmap2::MmapMut::map_anon(bytes)?;
        // A hint: refused where there are no huge pages.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map })
    }

    /// All words.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[u64] {
        // Maps begin with a page, and are whole words.
        <[u64]>::ref_from_bytes(&self.map).unwrap_or_default()
    }

    /// All words, to be written.
    #[must_use]
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        <[u64]>::mut_from_bytes(&mut self.map).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_and_keep_what_is_written() {
        let mut region = Region::new(1 << 19).unwrap();
        assert!(region.words().iter().all(|&word| word == 0) && region.words().len() == 1 << 19);
        region.words_mut()[1 << 18] = 7;
        assert_eq!(region.words()[(1 << 18) - 1..=1 << 18], [0, 7]);
        assert_eq!(Region::new(0).unwrap().words(), [0]);
        assert!(Region::new(usize::MAX).is_err());
    }
}
