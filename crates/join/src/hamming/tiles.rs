//! Compares blocks of codes with each other: fingerprints of 64 to 512 bits.
//!
//! A comparison begins with a prefix of both codes that few far pairs survive if bits are random; the survivors are
//! compared in all bits. If many far pairs survive, the prefix grows.

use std::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use super::check_count;
use super::inside::{NearPair, TOGETHER};
use twindex::error::{Error, Result};
use twindex_kernel::{COLUMNS, CodeColumns, CodeRows, Kernel, PairBuffer, Simd, near_codes};

/// Maximum number of 64-bit words of a code.
pub const CODE_WIDTH_MAX: usize = 8;
/// Number of codes in a block. The rows and columns of two blocks fit in the second-level cache.
pub(super) const BLOCK: usize = 1 << 11;
/// A prefix grows if more than one of this number of comparisons survives it in vain.
const WASTED: usize = 32;
/// Number of comparisons in vain after which a prefix may grow.
const WASTED_LEAST: usize = 1 << 10;

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

/// Codes as rows of 32-bit words.
#[derive(Clone, Copy)]
pub(super) struct HalfWords<'a> {
    pub(super) words: &'a [u32],
    pub(super) width: usize,
}

impl<'a> HalfWords<'a> {
    #[inline(always)]
    fn rows(self, range: Range<usize>) -> CodeRows<'a> {
        let words = &self.words[range.start * self.width..range.end * self.width];
        CodeRows { words, width: self.width, first: range.start as u32 }
    }

    #[inline(always)]
    fn distance(self, at: u32, other: Self, there: u32) -> u32 {
        let [one, two] =
            [(self, at), (other, there)].map(|(side, at)| side.rows(at as usize..at as usize + 1).words);
        one.iter().zip(two).map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// The codes of both sides of a join, at the positions that a [`TileScan`] compares.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) columns: HalfWords<'a>,
    pub(super) rows: HalfWords<'a>,
    /// Whether both sides are the same codes. A pair then has the smaller position among the columns.
    pub(super) inside: bool,
    pub(super) within: u32,
}

/// Working memory of a thread of a join.
#[derive(Default)]
pub(super) struct TileScratch {
    columns: Box<CodeColumns>,
    found: PairBuffer,
    /// Number of words in the prefix.
    prefix: usize,
    compared: usize,
    wasted: usize,
}

impl TileScratch {
    /// Begins with the shortest prefix that a few in ten thousand pairs of random codes survive.
    fn begin(&mut self, width: usize, within: u32) {
        let rejects = |words: &usize| {
            let (mean, deviation) = (16.0 * *words as f64, (8.0 * *words as f64).sqrt());
            mean - 3.3 * deviation >= f64::from(within)
        };
        (self.prefix, self.compared, self.wasted) = ((1..width).find(rejects).unwrap_or(width), 0, 0);
    }

    fn count(&mut self, compared: usize, wasted: usize, width: usize) {
        self.compared += compared;
        self.wasted += wasted;
        if self.wasted > WASTED_LEAST && self.wasted > self.compared / WASTED {
            (self.prefix, self.compared, self.wasted) = (width.min(2 * self.prefix), 0, 0);
        }
    }
}

/// Compares ranges of rows with a range of columns. Passes the position of the column, the position of the row and the
/// distance of each near pair to `emit`.
pub(super) struct TileScan<'t, 'a, F> {
    pub(super) sides: Sides<'a>,
    pub(super) columns: Range<usize>,
    pub(super) rows: &'t [Range<usize>],
    pub(super) scratch: &'t mut TileScratch,
    pub(super) emit: F,
}

impl<F: FnMut(u32, u32, u32) -> Result<()>> Kernel for TileScan<'_, '_, F> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self {
            sides: Sides { columns: left, rows: right, inside, within },
            columns,
            rows,
            scratch,
            mut emit,
        } = self;
        scratch.begin(left.width, within);
        for start in columns.clone().step_by(COLUMNS) {
            let end = columns.end.min(start + COLUMNS);
            scratch.columns.fill(left.rows(start..end));
            for rows in rows {
                let first = if inside { rows.start.max(start + 1) } else { rows.start };
                for at in (first..rows.end).step_by(BLOCK) {
                    let some = at..rows.end.min(at + BLOCK);
                    let compared = some.len() * (end - start);
                    scratch.found.clear();
                    let by = (scratch.prefix, within);
                    near_codes(simd, right.rows(some), &scratch.columns, by, &mut scratch.found);
                    let mut wasted = 0;
                    for &[row, column] in scratch.found.pairs() {
                        let distance = left.distance(column, right, row);
                        if distance > within {
                            wasted += 1;
                        } else if !inside || column < row {
                            emit(column, row, distance)?;
                        }
                    }
                    scratch.count(compared, wasted, left.width);
                }
            }
        }
        Ok(())
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
