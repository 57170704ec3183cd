//! Codec 3 of complete tables: blocks of Huffman-coded differences.
//!
//! The compression of Manku, Jain and Das Sarma (*Detecting Near-Duplicates for Web Crawling*, WWW 2007, section 3.2,
//! 'Compression of Fingerprints'). Between consecutive sorted values, the most significant differing bit is nearly
//! always at one of a few positions. So this position is Huffman-coded, and the bits below it follow unencoded. Values
//! are stored in blocks of 1,024 bytes, which can be decoded independently. To find a block, an array with the last key
//! of each block is searched by interpolation or bisection.
//!
//! This codec exists for comparison with the paper: it is used only with `codec=manku`, never with `auto`. The default
//! codecs are [`planes`](super::planes) and [`compact`](super::compact).
//!
//! ```text
//! 0 head    64 bytes: the number of blocks B, 8 bytes; the lengths of the codes of positions 0 to 63, 4 bits
//!           each, the lower half of a byte first; 24 zeros
//! 1 keys    B x 8: the last value of each block
//! 2 firsts  (B + 1) x 4: the first row of each block; the last is R
//! 3 blocks  B x 1,024: bits, the highest bit of a byte first. The first value, 64 bits; for each further
//!           value the code of position p and the p bits below it. All other bits of a block are zero
//! ```
//!
//! A value is added to the current block if it fits. The code has at most 15 bits per symbol and minimizes the number
//! of bits for all differences of the table. It is computed by package-merge (Larmore and Hirschberg, 1990);
//! `code_lengths` describes how ties are broken. It is canonical: shorter codes first, and among codes of equal length,
//! lower positions first. So a list of values has exactly one encoding.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::compact::{ColumnBuffer, counted, follows};
use super::search::{self, Search, array, bounds};
use super::source::{Columns, Source};
use crate::error::{Error, Result};
use crate::format::wire::Fault;
use crate::format::{DOCUMENTS_MAX, align, place};
use twindex_kernel::Simd;

/// Number of this codec in the table of contents.
pub const CODEC: u16 = 3;
/// Length of a block in bytes.
const BLOCK_BYTES: usize = 1024;
const BLOCK_BITS: usize = BLOCK_BYTES * 8;
/// Length of the head in bytes.
const HEAD_BYTES: u64 = 64;
/// The offset of the code lengths in the head. The reserved bytes follow the code lengths.
const HEAD_LENGTHS: usize = 8;
const HEAD_RESERVED: usize = HEAD_LENGTHS + SYMBOLS / 2;
/// Number of bits of a word. [`word`] returns at least the first `WORD_WHOLE` bits from any bit offset on.
const WORD_BITS: u32 = 64;
const WORD_WHOLE: u32 = WORD_BITS - 7;
/// Number of symbols: a symbol is the position of a bit in a value.
const SYMBOLS: usize = 64;
/// Maximum length of a code in bits.
const CODE_MAX: u32 = 15;
/// A code of at most this length is decoded by one table lookup. Fewer than 1 in 1,024 differences have longer codes.
const LOOKUP: u32 = 10;

/// The layout of a section, and its Huffman code. Clones share the code.
#[derive(Clone, Debug)]
pub struct Manku {
    rows: u64,
    blocks: u64,
    keys: u64,
    firsts: u64,
    data: u64,
    /// Length of the section in bytes.
    pub length: u64,
    code: Arc<HuffmanCode>,
}

impl Manku {
    fn of(rows: u64, blocks: u64, code: HuffmanCode) -> Self {
        let keys = HEAD_BYTES;
        let firsts = align(keys + blocks * 8);
        let data = place(firsts + (blocks + 1) * 4, blocks * BLOCK_BYTES as u64);
        let length = data + blocks * BLOCK_BYTES as u64;
        Self { rows, blocks, keys, firsts, data, length, code: Arc::new(code) }
    }

    /// Opens a section of `rows` rows and `length` bytes. Reads and checks the head.
    ///
    /// # Errors
    /// The errors of the source, and [`Error::Corrupt`] for an invalid head: a number of blocks that does not match the
    /// length or exceeds the number of rows, or code lengths that do not form a code.
    pub fn open<'a>(source: impl Source<'a>, rows: u64, length: u64) -> Result<Self> {
        let fault = |at: usize, expected: String, found: String| {
            Err(source.corrupt(Fault::new(at as u64, expected, found)))
        };
        if rows > DOCUMENTS_MAX {
            return fault(0, format!("at most {DOCUMENTS_MAX} rows"), rows.to_string());
        }
        if length < HEAD_BYTES {
            return fault(0, format!("a head of {HEAD_BYTES} bytes"), format!("{length} bytes"));
        }
        let head: [u8; HEAD_BYTES as usize] = array(source, 0)?;
        let blocks = u64::from_le_bytes(array(source, 0)?);
        if blocks > rows || (blocks == 0) != (rows == 0) {
            return fault(0, format!("from 1 to {rows} blocks, 0 for no rows"), blocks.to_string());
        }
        let lengths = std::array::from_fn(|symbol| head[HEAD_LENGTHS + symbol / 2] >> (symbol % 2 * 4) & 0xF);
        if let Some(at) = (HEAD_RESERVED..head.len()).find(|&at| head[at] != 0) {
            return fault(at, "zero".into(), format!("{:#04x}", head[at]));
        }
        let Some(code) = HuffmanCode::of(lengths) else {
            return fault(HEAD_LENGTHS, "the lengths of a code".into(), format!("{lengths:?}"));
        };
        let layout = Self::of(rows, blocks, code);
        if length != layout.length {
            let expected = format!("{} bytes for {blocks} blocks", layout.length);
            return fault(0, expected, format!("{length} bytes"));
        }
        Ok(layout)
    }

    /// Returns the rows whose first `bits` bits are `prefix`. Searches the array of last keys, and decodes one or two
    /// blocks.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source.
    #[inline(always)]
    pub fn rows<'a>(
        &self,
        source: impl Source<'a>,
        prefix: u64,
        bits: u32,
        search: Search,
    ) -> Result<Range<u64>> {
        let Some(bounds) = bounds(prefix, bits) else { return Ok(0..0) };
        let first = self.block_of_value(source, 0, *bounds.start(), search)?;
        if first == self.blocks {
            return Ok(self.rows..self.rows);
        }
        let mut values = self.values(source, first)?;
        let start = values.seek(source, *bounds.start())?.ok_or_else(|| self.falls_short(source, first))?;
        let Some(past_end) = bounds.end().checked_add(1) else {
            return self.ordered(source, start..self.rows);
        };
        if let Some(end) = values.seek(source, past_end)? {
            return self.ordered(source, start..end);
        }
        let last = self.block_of_value(source, first + 1, past_end, search)?;
        if last == self.blocks {
            return self.ordered(source, start..self.rows);
        }
        let mut values = self.values(source, last)?;
        let end = values.seek(source, past_end)?.ok_or_else(|| self.falls_short(source, last))?;
        self.ordered(source, start..end)
    }

    /// Calls `each` with the row and the value of each row in `rows` whose value is within `radius` of `query`, in
    /// ascending order, until `each` returns `Break`. Decodes the blocks of these rows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source. Values passed to `each` before
    /// an error are correct.
    #[inline(always)]
    pub fn scan<'a, S: Simd>(
        &self,
        _: S,
        source: impl Source<'a>,
        rows: Range<u64>,
        query: u64,
        radius: u32,
        mut each: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.ordered(source, rows.clone())?;
        if rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut block = self.block_of_row(source, rows.start)?;
        let mut row = rows.start;
        loop {
            let mut values = self.values(source, block)?;
            if values.rows.start > row || values.rows.end <= row {
                return Err(self.misplaced(source, block, &values.rows));
            }
            while let Some((at, value)) = values.next(source)? {
                if at >= rows.end {
                    return Ok(ControlFlow::Continue(()));
                }
                if (value ^ query).count_ones() <= radius && at >= row && each(at, value).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            // Blocks of a corrupt table may overlap. `row` still increases with each block, so the scan ends.
            row = values.rows.end;
            block += 1;
            if row >= rows.end {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// Returns the value of a row. Searches the first rows of the blocks, and decodes one block.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged or the row does not exist, and the errors of the source.
    #[inline]
    pub fn value<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        self.ordered(source, row..row.saturating_add(1))?;
        let block = self.block_of_row(source, row)?;
        let mut values = self.values(source, block)?;
        while let Some((at, value)) = values.next(source)? {
            if at == row {
                return Ok(value);
            }
        }
        Err(self.misplaced(source, block, &values.rows))
    }

    /// Returns the row of a value; `None` if the table does not contain it.
    ///
    /// # Errors
    /// Same as [`rows`](Self::rows).
    #[inline]
    pub fn find<'a>(&self, source: impl Source<'a>, value: u64) -> Result<Option<u64>> {
        let block = self.block_of_value(source, 0, value, Search::Interpolation)?;
        if block == self.blocks {
            return Ok(None);
        }
        let mut values = self.values(source, block)?;
        let row = values.seek(source, value)?.ok_or_else(|| self.falls_short(source, block))?;
        Ok((values.last == value).then_some(row))
    }

    /// Calls `each` with every row and its value, in ascending order. Checks that the arrays of last keys and of first
    /// rows match the blocks, that values ascend strictly, that blocks are full and end in zeros, and that the code is
    /// optimal as documented.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, and the errors of the source and of `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let fault =
            |at: u64, expected: String, found: String| Err(source.corrupt(Fault::new(at, expected, found)));
        let (mut row, mut last, mut counts) = (0, None, [0; SYMBOLS]);
        let mut bits_left = 0;
        for block in 0..self.blocks {
            let mut values = self.values(source, block)?;
            if values.rows.start != row {
                return fault(self.firsts + block * 4, format!("row {row}"), values.rows.start.to_string());
            }
            while let Some((at, value)) = values.next(source)? {
                if let Some(last) = last {
                    if last >= value {
                        return fault(
                            values.at,
                            format!("a value over {last:016x}"),
                            format!("{value:016x}"),
                        );
                    }
                    let position = most_significant(last ^ value);
                    counts[position] += 1;
                    if at == values.rows.start
                        && self.code.bits(position).is_some_and(|bits| bits <= bits_left)
                    {
                        return fault(
                            values.at,
                            "a value that does not fit into the block before".into(),
                            value.to_string(),
                        );
                    }
                }
                last = Some(value);
                each(at, value)?;
            }
            bits_left = BLOCK_BITS - values.bit;
            if !values.ends_in_zeros() {
                return fault(
                    values.at,
                    format!("zeros after bit {} of the block", values.bit),
                    "others".into(),
                );
            }
            // `last` is always `Some`, because `values` returns an error for a block without rows.
            let (at, key) = (self.keys + block * 8, last.unwrap_or(0));
            let found = u64::from_le_bytes(array(source, at)?);
            if found != key {
                return fault(
                    at,
                    format!("the last value of its block, {key:016x}"),
                    format!("{found:016x}"),
                );
            }
            row = values.rows.end;
        }
        let end = u64::from(u32::from_le_bytes(array(source, self.firsts + self.blocks * 4)?));
        if row != self.rows || end != self.rows {
            return fault(
                self.firsts + self.blocks * 4,
                format!("row {}", self.rows),
                format!("{row} and {end}"),
            );
        }
        let expected = code_lengths(&counts);
        if expected != self.code.lengths {
            return fault(HEAD_LENGTHS as u64, format!("{expected:?}"), format!("{:?}", self.code.lengths));
        }
        Ok(())
    }

    /// Prefetches the key at which the interpolation in [`rows`](Self::rows) starts.
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        if let Some(bounds) = bounds(prefix, bits) {
            let block = (u128::from(*bounds.start()) * u128::from(self.blocks)) >> 64;
            source.hint(self.keys + block as u64 * 8);
        }
    }

    /// Prefetches what [`scan`](Self::scan) reads first: the first row of the block that probably contains the rows.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        let block =
            u128::from(rows.start.min(self.rows)) * u128::from(self.blocks) / u128::from(self.rows.max(1));
        source.hint(self.firsts + block as u64 * 4);
    }

    /// Encodes the values as a section. Iterates over the values twice: the first pass computes the code. Needs a few
    /// KiB of memory.
    ///
    /// # Errors
    /// The errors of `values` and `columns`; [`Error::Invalid`] if values do not ascend strictly, if their number is
    /// not `rows`, or if the second pass returns other values; [`Error::Limit`] for more than [`DOCUMENTS_MAX`] rows.
    pub fn encode<I: Iterator<Item = Result<u64>>>(
        rows: u64,
        values: impl Fn() -> I,
        columns: &mut impl Columns,
    ) -> Result<()> {
        if rows > DOCUMENTS_MAX {
            return Err(Error::Limit { what: "rows of a table", limit: DOCUMENTS_MAX, found: rows });
        }
        let (mut counts, mut last, mut row) = ([0; SYMBOLS], None, 0);
        for value in values() {
            let value = value?;
            follows(last, value, row, rows)?;
            if let Some(last) = last {
                counts[most_significant(last ^ value)] += 1;
            }
            (last, row) = (Some(value), row + 1);
        }
        let lengths = code_lengths(&counts);
        let mut encoder = MankuEncoder {
            codes: codes(&lengths),
            lengths,
            columns,
            parts: std::array::from_fn(ColumnBuffer::new),
            block: Vec::with_capacity(BLOCK_BYTES),
            bits: 0,
            waiting: 0,
            blocks: 0,
            row: 0,
            last: None,
        };
        for value in values() {
            let value = value?;
            follows(encoder.last, value, encoder.row, rows)?;
            encoder.push(value)?;
        }
        if encoder.row != rows {
            return Err(counted(encoder.row, rows));
        }
        encoder.finish()
    }

    /// Returns the first block, starting at `from`, whose last value is at least `value`.
    #[inline(always)]
    fn block_of_value<'a>(
        &self,
        source: impl Source<'a>,
        from: u64,
        value: u64,
        search: Search,
    ) -> Result<u64> {
        let key = |block: u64| array(source, self.keys + block * 8).map(u64::from_le_bytes);
        match search {
            Search::Binary => search::bisect(from..self.blocks, value, key),
            Search::Interpolation if from == 0 => {
                search::interpolate(0..self.blocks, 0..=u64::MAX, value, key)
            }
            Search::Interpolation => {
                let min = key(from - 1)?;
                search::interpolate(from..self.blocks, min..=u64::MAX, value, key)
            }
        }
    }

    /// Returns the block that contains a row, by interpolation in the first rows of the blocks.
    #[inline]
    fn block_of_row<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        // The first entry above `row` belongs to the block after the one that contains the row.
        let next = search::interpolate(1..self.blocks, 0..=self.rows, row + 1, |block| {
            array(source, self.firsts + block * 4).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
        })?;
        Ok(next.max(1) - 1)
    }

    /// Returns an iterator over the values of a block.
    #[inline(always)]
    fn values<'a>(&self, source: impl Source<'a>, block: u64) -> Result<BlockValues<'a, '_>> {
        let pair = if block < self.blocks { array(source, self.firsts + block * 4)? } else { [0; 8] };
        let pair = u64::from_le_bytes(pair);
        let rows = pair & u64::from(u32::MAX)..pair >> 32;
        if rows.is_empty() || rows.end > self.rows {
            return Err(self.misplaced(source, block, &rows));
        }
        let at = self.data + block * BLOCK_BYTES as u64;
        let bytes = source.read(at..at + BLOCK_BYTES as u64)?;
        Ok(BlockValues { bytes, at, code: &self.code, row: rows.start, rows, bit: 0, last: 0 })
    }

    #[inline(always)]
    fn ordered<'a>(&self, source: impl Source<'a>, rows: Range<u64>) -> Result<Range<u64>> {
        if rows.start <= rows.end && rows.end <= self.rows {
            return Ok(rows);
        }
        let expected = format!("ascending rows up to {}", self.rows);
        Err(source.corrupt(Fault::new(self.firsts, expected, format!("{}..{}", rows.start, rows.end))))
    }

    #[cold]
    fn misplaced<'a>(&self, source: impl Source<'a>, block: u64, rows: &Range<u64>) -> Error {
        let expected = format!("the rows of block {block}, up to {}", self.rows);
        let found = format!("{}..{}", rows.start, rows.end);
        source.corrupt(Fault::new(self.firsts + block * 4, expected, found))
    }

    /// Returns the error for a block whose values are all below its entry in the array of last keys.
    #[cold]
    fn falls_short<'a>(&self, source: impl Source<'a>, block: u64) -> Error {
        let at = self.keys + block * 8;
        source.corrupt(Fault::new(at, format!("the last value of block {block}"), "a larger one"))
    }
}

/// Returns the position of the highest set bit of a nonzero number.
#[inline(always)]
fn most_significant(differs: u64) -> usize {
    63_u32.saturating_sub(differs.leading_zeros()) as usize
}

/// Returns the code lengths that minimize the total number of bits for symbols with these counts. A length is at most
/// [`CODE_MAX`]; it is 0 for a symbol that does not occur, and 1 if only one symbol occurs.
///
/// Package-merge: the symbols are sorted by count, then by number. They are the initial list. The following is done
/// [`CODE_MAX`] - 1 times: consecutive items of the list are paired (an odd last item is dropped), and the pairs, which
/// have the sum of both weights, are merged with the symbols by weight. Symbols precede pairs of equal weight. In the
/// end, the length of a symbol's code is the number of times that it occurs in the first 2 n - 2 items of the list,
/// where n is the number of symbols that occur.
fn code_lengths(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut symbols: Vec<(u64, usize)> =
        (0..SYMBOLS).filter(|&symbol| counts[symbol] > 0).map(|symbol| (counts[symbol], symbol)).collect();
    symbols.sort_unstable();
    let mut lengths = [0; SYMBOLS];
    if let [(_, symbol)] = symbols[..] {
        lengths[symbol] = 1;
        return lengths;
    }
    let alone = |&(weight, symbol): &(u64, usize)| {
        let mut inside = [0_u8; SYMBOLS];
        inside[symbol] = 1;
        (weight, inside)
    };
    let mut list: Vec<(u64, [u8; SYMBOLS])> = symbols.iter().map(alone).collect();
    for _ in 1..CODE_MAX {
        let pairs = list.chunks_exact(2).map(|pair| {
            let inside = std::array::from_fn(|symbol| pair[0].1[symbol] + pair[1].1[symbol]);
            (pair[0].0 + pair[1].0, inside)
        });
        let mut merged: Vec<_> = symbols.iter().map(alone).chain(pairs).collect();
        // The sort is stable, so symbols remain before pairs of equal weight.
        merged.sort_by_key(|item| item.0);
        list = merged;
    }
    for (_, inside) in list.iter().take((symbols.len() * 2).saturating_sub(2)) {
        for (length, times) in lengths.iter_mut().zip(inside) {
            *length += times;
        }
    }
    lengths
}

/// Returns the canonical codes with these lengths, in counting order: shorter codes first, and among codes of equal
/// length, lower symbols first.
fn codes(lengths: &[u8; SYMBOLS]) -> [u16; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut next = 0_u32;
    for length in 1..=CODE_MAX {
        next <<= 1;
        for symbol in (0..SYMBOLS).filter(|&symbol| u32::from(lengths[symbol]) == length) {
            codes[symbol] = next as u16;
            next += 1;
        }
    }
    codes
}

/// A Huffman code with its decoding tables.
#[derive(Debug)]
struct HuffmanCode {
    lengths: [u8; SYMBOLS],
    /// Decodes codes by the next [`LOOKUP`] bits. The low byte of an entry is the symbol and the high byte the length
    /// of its code; the entry is 0 if the code is longer than [`LOOKUP`] bits.
    short: [u16; 1 << LOOKUP],
    /// For each code length: the first code (`first`), the number of codes (`count`), and the index in `symbols` of the
    /// symbol of the first code (`start`).
    first: [u32; CODE_MAX as usize + 1],
    count: [u32; CODE_MAX as usize + 1],
    start: [u32; CODE_MAX as usize + 1],
    symbols: [u8; SYMBOLS],
}

impl HuffmanCode {
    /// Creates the code with these lengths, each at most [`CODE_MAX`]. Returns `None` unless they form a complete code,
    /// a code of one symbol, or the empty code.
    fn of(lengths: [u8; SYMBOLS]) -> Option<Self> {
        let used = lengths.iter().filter(|&&length| length > 0).count();
        let space: u32 = lengths
            .iter()
            .filter(|&&length| length > 0)
            .map(|&length| 1 << (CODE_MAX - u32::from(length)))
            .sum();
        let whole = 1 << CODE_MAX;
        if !(used == 0 || used == 1 && space == whole / 2 || space == whole) {
            return None;
        }
        let codes = codes(&lengths);
        let mut code = Self {
            lengths,
            short: [0; 1 << LOOKUP],
            first: [0; CODE_MAX as usize + 1],
            count: [0; CODE_MAX as usize + 1],
            start: [0; CODE_MAX as usize + 1],
            symbols: [0; SYMBOLS],
        };
        let mut place = 0;
        for length in 1..=CODE_MAX {
            let of_length = (0..SYMBOLS).filter(|&symbol| u32::from(lengths[symbol]) == length);
            code.start[length as usize] = place;
            for symbol in of_length {
                if code.count[length as usize] == 0 {
                    code.first[length as usize] = codes[symbol].into();
                }
                code.count[length as usize] += 1;
                code.symbols[place as usize] = symbol as u8;
                place += 1;
                if let Some(below) = LOOKUP.checked_sub(length) {
                    let from = usize::from(codes[symbol]) << below;
                    code.short[from..from + (1 << below)].fill(symbol as u16 | (length as u16) << 8);
                }
            }
        }
        Some(code)
    }

    /// Returns the first symbol in these [`CODE_MAX`] bits and the length of its code; `None` if the bits begin with no
    /// code.
    #[inline(always)]
    fn decode(&self, bits: u32) -> Option<(u32, u32)> {
        let entry = self.short[(bits >> (CODE_MAX - LOOKUP)) as usize & ((1 << LOOKUP) - 1)];
        if entry != 0 {
            Some((u32::from(entry & 0xFF), u32::from(entry >> 8)))
        } else {
            self.decode_long(bits)
        }
    }

    #[inline]
    fn decode_long(&self, bits: u32) -> Option<(u32, u32)> {
        (LOOKUP + 1..=CODE_MAX).find_map(|length| {
            let of = length as usize;
            let number = (bits >> (CODE_MAX - length)).checked_sub(self.first[of])?;
            (number < self.count[of])
                .then(|| (u32::from(self.symbols[(self.start[of] + number) as usize]), length))
        })
    }

    /// Returns the number of bits that encode a value whose highest differing bit is at `position`; `None` if this
    /// position has no code.
    fn bits(&self, position: usize) -> Option<usize> {
        Some(usize::from(self.lengths[position]) + position).filter(|_| self.lengths[position] > 0)
    }
}

/// Iterates over the values of one block.
struct BlockValues<'a, 'c> {
    bytes: &'a [u8],
    /// The offset of the block in the section.
    at: u64,
    code: &'c HuffmanCode,
    /// The rows of the block. `row` is the next row to be decoded.
    rows: Range<u64>,
    row: u64,
    /// The position in the block of the next bit to decode.
    bit: usize,
    last: u64,
}

impl BlockValues<'_, '_> {
    /// Returns the next row and its value; `None` after the last row of the block.
    #[inline(always)]
    fn next<'s>(&mut self, source: impl Source<'s>) -> Result<Option<(u64, u64)>> {
        if self.row == self.rows.end {
            return Ok(None);
        }
        let Some(value) = self.decode() else { return Err(self.broken(source)) };
        self.last = value;
        let row = self.row;
        self.row += 1;
        Ok(Some((row, value)))
    }

    #[inline(always)]
    fn decode(&mut self) -> Option<u64> {
        if self.bit == 0 {
            self.bit = 64;
            return Some(word(self.bytes, 0));
        }
        let next = word(self.bytes, self.bit);
        let (position, length) = self.code.decode((next >> (WORD_BITS - CODE_MAX)) as u32)?;
        let below = if length + position <= WORD_WHOLE {
            ((next << length) >> 1) >> (WORD_BITS - 1 - position)
        } else {
            self.long(length, position)
        };
        self.bit += (length + position) as usize;
        // The previous value is smaller, so its bit at `position` must be 0, unless the block is corrupt.
        if self.bit > BLOCK_BITS || self.last >> position & 1 == 1 {
            return None;
        }
        let one = 1 << position;
        Some(self.last & !(one - 1) | one | below)
    }

    /// Returns the `position` bits after a code of `length` bits. For a code whose bits do not all fit into one
    /// [`word`].
    #[cold]
    fn long(&self, length: u32, position: u32) -> u64 {
        let at = self.bit + length as usize;
        let bits = word(self.bytes, at) | word(self.bytes, at + WORD_WHOLE as usize) >> WORD_WHOLE;
        (bits >> 1) >> (WORD_BITS - 1 - position)
    }

    /// Returns the row of the first value that is at least `target`, starting at the most recently decoded value;
    /// `None` if all further values of the block are below `target`.
    #[inline(always)]
    fn seek<'s>(&mut self, source: impl Source<'s>, target: u64) -> Result<Option<u64>> {
        if self.row > self.rows.start && self.last >= target {
            return Ok(Some(self.row - 1));
        }
        while let Some((row, value)) = self.next(source)? {
            if value >= target {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn ends_in_zeros(&self) -> bool {
        let (byte, bit) = (self.bit / 8, self.bit % 8);
        let rest = self.bytes.get(byte..).unwrap_or_default();
        rest.first().is_none_or(|first| first << bit == 0) && rest.iter().skip(1).all(|&byte| byte == 0)
    }

    #[cold]
    fn broken<'s>(&self, source: impl Source<'s>) -> Error {
        let expected = format!("a code and bits that give row {}", self.row);
        source.corrupt(Fault::new(self.at, expected, format!("others, up to bit {}", self.bit)))
    }
}

/// Returns the bits starting at `bit`, in the highest bits of a word: at least [`WORD_WHOLE`] bits, then zeros. Bits
/// past the end of the block are read as zero; [`BlockValues::next`] detects such reads.
#[inline(always)]
fn word(bytes: &[u8], bit: usize) -> u64 {
    let at = bit / 8;
    let bits = match bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) => u64::from_be_bytes(bytes),
        None => ending(bytes.get(at..).unwrap_or_default()),
    };
    bits << (bit % 8)
}

#[cold]
fn ending(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

struct MankuEncoder<'c, C> {
    lengths: [u8; SYMBOLS],
    codes: [u16; SYMBOLS],
    columns: &'c mut C,
    parts: [ColumnBuffer; 4],
    /// The complete bytes of the current block. `bits` is the number of bits of the block so far. `waiting` contains
    /// the bits that do not fill a byte yet.
    block: Vec<u8>,
    bits: usize,
    waiting: u64,
    blocks: u64,
    row: u64,
    last: Option<u64>,
}

impl<C: Columns> MankuEncoder<'_, C> {
    fn push(&mut self, value: u64) -> Result<()> {
        if let Some(last) = self.last {
            let position = most_significant(last ^ value);
            let length = usize::from(self.lengths[position]);
            if length == 0 {
                return Err(Error::Invalid("values of a table were others when asked for again".into()));
            }
            if self.bits + length + position <= BLOCK_BITS {
                self.bits(self.codes[position].into(), length);
                self.bits(value & ((1 << position) - 1), position);
                (self.row, self.last) = (self.row + 1, Some(value));
                return Ok(());
            }
            self.end_block(last)?;
        }
        self.parts[2].put(self.columns, &(self.row as u32).to_le_bytes())?;
        self.bits(value, 64);
        (self.row, self.last) = (self.row + 1, Some(value));
        Ok(())
    }

    /// Appends the lowest `count` bits of `bits`. All other bits must be 0.
    fn bits(&mut self, bits: u64, count: usize) {
        let left = self.bits % 8;
        let mut all = u128::from(self.waiting) << count | u128::from(bits);
        let mut total = left + count;
        self.bits += count;
        while total >= 8 {
            total -= 8;
            self.block.push((all >> total) as u8);
            all &= (1 << total) - 1;
        }
        self.waiting = all as u64;
    }

    fn end_block(&mut self, key: u64) -> Result<()> {
        if !self.bits.is_multiple_of(8) {
            self.block.push((self.waiting << (8 - self.bits % 8)) as u8);
        }
        self.block.resize(BLOCK_BYTES, 0);
        self.parts[3].put(self.columns, &self.block)?;
        self.parts[1].put(self.columns, &key.to_le_bytes())?;
        self.block.clear();
        (self.bits, self.waiting) = (0, 0);
        self.blocks += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if let Some(last) = self.last {
            self.end_block(last)?;
        }
        self.parts[2].put(self.columns, &(self.row as u32).to_le_bytes())?;
        let mut head = [0; HEAD_BYTES as usize];
        head[..HEAD_LENGTHS].copy_from_slice(&self.blocks.to_le_bytes());
        for (symbol, length) in self.lengths.iter().enumerate() {
            head[HEAD_LENGTHS + symbol / 2] |= length << (symbol % 2 * 4);
        }
        self.parts[0].put(self.columns, &head)?;
        for part in &mut self.parts {
            part.flush(self.columns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Memory, Parts, random, uniform};
    use super::*;

    fn section(values: &[u64]) -> Vec<u8> {
        let mut parts = Parts::default();
        let rows = values.len() as u64;
        Manku::encode(rows, || values.iter().map(|&value| Ok(value)), &mut parts).unwrap();
        parts.section()
    }

    #[test]
    fn three_values_encode_to_the_bytes_of_the_specification() {
        let values = [0x0123_4567_89AB_CDEF_u64, 0x0123_4567_89AB_CDF5, 0x0123_4567_89AB_CDF6];
        // EF and F5 first differ in bit 4, F5 and F6 in bit 1. Each position occurs once, so each code has 1 bit: `0`
        // for position 1, `1` for position 4. The values are encoded as 1 0101 and 0 0.
        let mut expected = vec![0; 192 + 1024];
        expected[0] = 1;
        (expected[8], expected[10]) = (0x10, 0x01);
        expected[64..72].copy_from_slice(&values[2].to_le_bytes());
        expected[132] = 3;
        expected[192..200].copy_from_slice(&values[0].to_be_bytes());
        expected[200] = 0b1010_1000;
        assert_eq!(section(&values), expected);
    }

    #[test]
    fn difference_position_with_bit_already_set_is_refused() {
        let mut section = section(&[0xEF, 0xF5, 0xF6]);
        let codec = Manku::open(Memory(&section), 3, section.len() as u64).unwrap();
        assert_eq!(codec.value(Memory(&section), 1).unwrap(), 0xF5);
        // Replace the code of the second value by the code of bit 1, which is already set in 0xEF.
        assert_eq!(section[200], 0b1010_1000);
        section[200] = 0;
        for row in [1, 2] {
            assert!(codec.value(Memory(&section), row).unwrap_err().is_corruption());
        }
        assert_eq!(codec.value(Memory(&section), 0).unwrap(), 0xEF);
    }

    #[test]
    fn block_with_key_above_its_values_is_refused() {
        let mut section = section(&[0xEF, 0xF5, 0xF6]);
        let codec = Manku::open(Memory(&section), 3, section.len() as u64).unwrap();
        assert_eq!(codec.find(Memory(&section), 0xFA).unwrap(), None);
        section[64] = 0xFB;
        assert_eq!(codec.find(Memory(&section), 0xF6).unwrap(), Some(2));
        let error = codec.find(Memory(&section), 0xFA).unwrap_err();
        assert!(matches!(error, Error::Corrupt { offset: 64, .. }), "{error:?}");
        for search in [Search::Binary, Search::Interpolation] {
            assert_eq!(codec.rows(Memory(&section), 0xF5, 64, search).unwrap(), 1..2);
            assert!(codec.rows(Memory(&section), 0xFA, 64, search).unwrap_err().is_corruption());
        }
    }

    #[test]
    fn block_longer_than_its_declared_length_is_refused() {
        let values = uniform(1000, 62);
        let mut section = section(&values);
        let codec = Manku::open(Memory(&section), 1000, section.len() as u64).unwrap();
        // Make the first block claim the rows of the second.
        let firsts = codec.firsts as usize;
        let second = u32::from_le_bytes(array(Memory(&section), codec.firsts + 4).unwrap());
        section.copy_within(firsts + 8..firsts + 12, firsts + 4);
        assert!(codec.value(Memory(&section), u64::from(second) - 1).is_ok());
        assert!(codec.value(Memory(&section), u64::from(second) + 5).unwrap_err().is_corruption());
    }

    #[test]
    fn block_ends_only_if_the_next_value_does_not_fit() {
        // Consecutive numbers have short codes; their mean length is the mean of a geometric distribution.
        let bytes = section(&(0..100_000).collect::<Vec<u64>>());
        let codec = Manku::open(Memory(&bytes), 100_000, bytes.len() as u64).unwrap();
        assert!(codec.blocks < 100_000 * 3 / 8192 + 2, "{} blocks", codec.blocks);
        for values in [uniform(10_000, 60), (0..20_000).collect()] {
            let bytes = section(&values);
            let codec = Manku::open(Memory(&bytes), values.len() as u64, bytes.len() as u64).unwrap();
            for block in 0..codec.blocks - 1 {
                let mut read = codec.values(Memory(&bytes), block).unwrap();
                while read.next(Memory(&bytes)).unwrap().is_some() {}
                let position = most_significant(values[read.row as usize] ^ read.last);
                assert!(read.bit + codec.code.bits(position).unwrap() > BLOCK_BITS, "block {block}");
            }
        }
    }

    /// Returns the minimum total number of bits for symbols with these counts and codes of at most `limit` bits.
    /// Computed independently, by dynamic programming over the sorted symbols.
    fn least_bits(counts: &[u64], limit: u32) -> u64 {
        let mut sorted: Vec<u64> = counts.iter().copied().filter(|&count| count > 0).collect();
        sorted.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        // State: the number of symbols that have a code, and the number of free nodes at this depth. Value: the minimum
        // cost so far. Codes become longer along the sorted symbols.
        let mut best = std::collections::HashMap::from([((0_usize, 1_u64), 0_u64)]);
        let mut min = u64::MAX;
        for depth in 0..=limit {
            let mut next = std::collections::HashMap::new();
            for (&(placed, free), &cost) in &best {
                for leaves in 0..=free.min((sorted.len() - placed) as u64) {
                    let taken: u64 = sorted[placed..placed + leaves as usize].iter().sum();
                    let (placed, cost) = (placed + leaves as usize, cost + taken * u64::from(depth));
                    if placed == sorted.len() {
                        min = min.min(cost);
                    } else {
                        let free = ((free - leaves) * 2).min(sorted.len() as u64);
                        let known = next.entry((placed, free)).or_insert(u64::MAX);
                        *known = cost.min(*known);
                    }
                }
            }
            best = next;
        }
        min
    }

    #[test]
    fn code_lengths_are_optimal_with_at_most_15_bits() {
        let skewed: Vec<u64> = (0..24).map(|symbol| 1 << symbol).collect();
        let fibonacci: Vec<u64> = std::iter::successors(Some((1, 1)), |&(a, b)| Some((b, a + b)))
            .map(|(a, _)| a)
            .take(30)
            .collect();
        let random: Vec<Vec<u64>> = (0..20)
            .map(|seed| {
                random(seed).take(2 + seed as usize).map(|value| (value % 1000) >> (value >> 60)).collect()
            })
            .collect();
        for counts in [skewed, fibonacci, vec![1; 64], vec![3, 3], vec![0, 0, 9, 1]].into_iter().chain(random)
        {
            let mut all = [0; SYMBOLS];
            all[..counts.len()].copy_from_slice(&counts);
            let lengths = code_lengths(&all);
            let used = all.iter().filter(|&&count| count > 0).count();
            if used < 2 {
                continue;
            }
            let bits: u64 = all.iter().zip(lengths).map(|(count, length)| count * u64::from(length)).sum();
            assert_eq!(bits, least_bits(&all, CODE_MAX), "{counts:?}: {lengths:?}");
            assert!(lengths.iter().all(|&length| u32::from(length) <= CODE_MAX));
            let code = HuffmanCode::of(lengths).expect("a complete code");
            for (symbol, &bits) in
                codes(&lengths).iter().enumerate().filter(|&(symbol, _)| lengths[symbol] > 0)
            {
                let length = u32::from(lengths[symbol]);
                for rest in [0, (1 << (CODE_MAX - length)) - 1] {
                    let next = u32::from(bits) << (CODE_MAX - length) | rest;
                    assert_eq!(code.decode(next), Some((symbol as u32, length)), "{counts:?}");
                }
            }
        }
    }

    #[test]
    fn code_length_ties_are_broken_by_the_documented_rule() {
        // The weights 1 1 2 2 have two optimal codes, with the lengths 2 2 2 2 and 3 3 2 1.
        let mut counts = [0; SYMBOLS];
        (counts[5], counts[9], counts[20], counts[40]) = (2, 1, 1, 2);
        let lengths = code_lengths(&counts);
        assert_eq!((lengths[5], lengths[9], lengths[20], lengths[40]), (2, 2, 2, 2));
        // Among three symbols of equal weight, the first two get the longer codes.
        let mut counts = [0; SYMBOLS];
        (counts[3], counts[7], counts[8]) = (4, 4, 4);
        let lengths = code_lengths(&counts);
        assert_eq!((lengths[3], lengths[7], lengths[8]), (2, 2, 1));
    }

    #[test]
    fn invalid_code_lengths_are_refused() {
        let of = |some: &[u8]| {
            let mut lengths = [0; SYMBOLS];
            lengths[..some.len()].copy_from_slice(some);
            HuffmanCode::of(lengths).is_some()
        };
        for good in [&[][..], &[1], &[0, 0, 1], &[1, 1], &[1, 2, 2], &[2, 2, 2, 2]] {
            assert!(of(good), "{good:?}");
        }
        for bad in [&[2][..], &[1, 1, 1], &[1, 2], &[15], &[1, 1, 15], &[2, 2, 2]] {
            assert!(!of(bad), "{bad:?}");
        }
    }

    #[test]
    fn damaged_manku_heads_are_refused() {
        let section = section(&uniform(1000, 61));
        let open = |section: &[u8], rows: u64| Manku::open(Memory(section), rows, section.len() as u64);
        assert!(open(&section, 1000).is_ok());
        for rows in [0, 1, DOCUMENTS_MAX + 1, u64::MAX] {
            assert!(open(&section, rows).is_err(), "{rows} rows");
        }
        for (at, with) in [(0, 1), (7, 0x80), (8, 0xFF), (40, 1), (63, 1)] {
            let mut damaged = section.clone();
            damaged[at] ^= with;
            assert!(open(&damaged, 1000).is_err(), "byte {at}");
        }
        assert!(Manku::open(Memory(&[]), 0, 0).is_err());
    }
}
