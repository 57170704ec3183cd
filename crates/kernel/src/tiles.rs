//! Compares blocks of codes with each other: fingerprints of 64 to 512 bits.
//!
//! A comparison begins with a prefix of both codes that few far pairs survive if bits are random; the survivors are
//! compared in all bits. If many far pairs survive, the prefix grows.

use std::ops::Range;

use super::codes::{COLUMNS, CodeColumns, CodeRows, near_codes};
use super::pairs::PairBuffer;
use super::{Kernel, Simd};

/// Number of codes in a block. The rows and columns of two blocks fit in the second-level cache.
pub const BLOCK: usize = 1 << 11;
/// A prefix grows if more than one of this number of comparisons survives it in vain.
const WASTED: usize = 32;
/// Number of comparisons in vain after which a prefix may grow.
const WASTED_LEAST: usize = 1 << 10;

/// Returns the number of words, at most `width`, with which a comparison begins: the shortest prefix that a few in ten
/// thousand pairs of random codes survive.
#[must_use]
pub fn prefix_words(width: usize, within: u32) -> usize {
    let rejects = |words: &usize| {
        let (mean, deviation) = (16.0 * *words as f64, (8.0 * *words as f64).sqrt());
        mean - 3.3 * deviation >= f64::from(within)
    };
    (1..width).find(rejects).unwrap_or(width)
}

/// Codes as rows of 32-bit words.
#[derive(Clone, Copy, Debug)]
pub struct HalfWords<'a> {
    /// The words of all codes, one code after the other.
    pub words: &'a [u32],
    /// Number of words of a code.
    pub width: usize,
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

/// The codes of both sides of a comparison, at the positions that a [`TileScan`] compares.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The codes that are compared in groups of columns.
    pub columns: HalfWords<'a>,
    /// The codes with which each group is compared.
    pub rows: HalfWords<'a>,
    /// Whether both sides are the same codes. A pair then has the smaller position among the columns.
    pub inside: bool,
    /// The maximum distance of near codes.
    pub within: u32,
}

/// Working memory of a thread.
#[derive(Debug, Default)]
pub struct TileScratch {
    columns: Box<CodeColumns>,
    found: PairBuffer,
    /// Number of words in the prefix.
    prefix: usize,
    compared: usize,
    wasted: usize,
}

impl TileScratch {
    fn begin(&mut self, width: usize, within: u32) {
        (self.prefix, self.compared, self.wasted) = (prefix_words(width, within), 0, 0);
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
#[derive(Debug)]
pub struct TileScan<'t, 'a, F> {
    /// The codes.
    pub sides: Sides<'a>,
    /// The positions of the columns.
    pub columns: Range<usize>,
    /// The positions of the rows.
    pub rows: &'t [Range<usize>],
    /// Buffers.
    pub scratch: &'t mut TileScratch,
    /// The function that takes near pairs.
    pub emit: F,
}

impl<E, F: FnMut(u32, u32, u32) -> Result<(), E>> Kernel for TileScan<'_, '_, F> {
    type Output = Result<(), E>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<(), E> {
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
