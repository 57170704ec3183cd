//! Codes in memory: fingerprints of 64 to 512 bits, and the threads that compare blocks of them.

use zerocopy::{FromBytes, IntoBytes};

use super::check_count;
use super::inside::{NearPair, TOGETHER};
use twindex::error::{Error, Result};
use twindex_kernel::{HalfWords, TileScratch};

/// Maximum number of 64-bit words of a code.
pub const CODE_WIDTH_MAX: usize = 8;
/// Fingerprints of equal width, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    words: &'a [u64],
    width: usize,
}

impl<'a> Codes<'a> {
    /// Returns the codes whose 64-bit words are `words`, `width` words each, one code after the other.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `width` is not 1 to [`CODE_WIDTH_MAX`], if there is a part of a code, or if there are more
    /// than `u32::MAX` codes.
    pub fn new(words: &'a [u64], width: usize) -> Result<Self> {
        if !(1..=CODE_WIDTH_MAX).contains(&width) || !words.len().is_multiple_of(width) {
            return Err(Error::Invalid(format!("{} words are no codes of {width} words", words.len())));
        }
        check_count((words.len() / width) as u64)?;
        Ok(Self { words, width })
    }

    /// Returns the number of codes.
    #[must_use]
    pub fn len(self) -> usize {
        self.words.len() / self.width
    }

    /// Returns whether there are no codes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }

    /// Returns the number of bits of a code.
    #[must_use]
    pub fn bits(self) -> u32 {
        u64::BITS * self.width as u32
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    /// Returns the words of code `number`.
    #[inline(always)]
    pub(super) fn get(self, number: usize) -> &'a [u64] {
        &self.words[number * self.width..][..self.width]
    }

    pub(super) fn half_words(self) -> HalfWords<'a> {
        let words = <[u32]>::ref_from_bytes(self.words.as_bytes()).unwrap_or_default();
        HalfWords { words, width: 2 * self.width }
    }
}

/// The state of one thread of a join.
pub(super) struct CodeWorker<S> {
    pub(super) scratch: TileScratch,
    pub(super) pairs: Vec<NearPair>,
    pub(super) state: S,
}

/// Adds a pair, and passes all pairs to `take` if there are many.
#[inline(always)]
pub(super) fn add<S>(
    pairs: &mut Vec<NearPair>,
    pair: NearPair,
    state: &mut S,
    take: &impl Fn(&mut S, &[NearPair]) -> Result<()>,
) -> Result<()> {
    pairs.push(pair);
    if pairs.len() < TOGETHER {
        return Ok(());
    }
    take(state, pairs)?;
    pairs.clear();
    Ok(())
}
