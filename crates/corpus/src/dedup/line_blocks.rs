//! Stores lines in compressed blocks of a scratch file. Lines of pipes and of compressed inputs are stored this way, because
//! they cannot be read again from the input. Most of them are read once more, in order; a few are also read before, at
//! random.

use std::io;
use std::path::Path;

use rayon::prelude::*;
use twindex::sys::{Column, MemoryBudget, Spill};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zstd::bulk::{Compressor, Decompressor};

/// Size in bytes, before compression, at which a block is complete. Reading a line decompresses its whole block.
const BLOCK: usize = 64 << 10;
/// Number of blocks that are compressed together, in parallel.
const TOGETHER: usize = 16;
/// Compression level of zstd. Level -1 is a third faster, but takes a third more disk space.
const LEVEL: i32 = 1;

/// Lines in the order of addition. A line is identified by the offset of its first byte in the concatenation of all lines.
pub(super) struct LineBlocks {
    scratch: Spill,
    /// The end of each compressed block.
    ends: Column<BlockEnd>,
    /// The lines that are not compressed yet.
    waiting: Vec<u8>,
    /// The end of each complete block in `waiting`.
    complete: Vec<usize>,
}

/// The end of a block, as an offset in two sequences of bytes.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct BlockEnd {
    /// The offset in the concatenation of all lines.
    line_bytes: u64,
    /// The offset in the scratch file.
    file: u64,
}

/// The last decompressed block. It is used again if the next line is in the same block.
#[derive(Default)]
pub(super) struct ReadBlock {
    number: Option<usize>,
    lines: Vec<u8>,
    packed: Vec<u8>,
}

impl LineBlocks {
    /// Creates an empty store with a scratch file in `folder`. The store takes about 2 MiB of memory, or more if lines are
    /// longer than a block, and 16 bytes of `budget` for each block.
    pub(super) fn new(folder: &Path, budget: &MemoryBudget) -> io::Result<Self> {
        Ok(Self {
            scratch: Spill::create(folder)?,
            ends: Column::new(budget),
            waiting: Vec::new(),
            complete: Vec::new(),
        })
    }

    /// Returns the end of the last compressed block.
    fn end(&self) -> BlockEnd {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Adds a line, and returns its offset.
    pub(super) fn append(&mut self, line: &[u8]) -> anyhow::Result<u64> {
        let offset = self.end().line_bytes + self.waiting.len() as u64;
        self.waiting.extend_from_slice(line);
        if self.waiting.len() - self.complete.last().copied().unwrap_or(0) >= BLOCK {
            self.complete.push(self.waiting.len());
            if self.complete.len() == TOGETHER {
                self.compress()?;
            }
        }
        Ok(offset)
    }

    /// Compresses and writes all complete blocks. A block that compression does not make smaller is stored uncompressed.
    fn compress(&mut self) -> anyhow::Result<()> {
        let starts = [0].into_iter().chain(self.complete.iter().copied());
        let blocks: Vec<&[u8]> =
            starts.zip(&self.complete).map(|(start, &end)| &self.waiting[start..end]).collect();
        let compressor = || Compressor::new(LEVEL);
        let compressed = |compressor: &mut io::Result<Compressor<'_>>, block: &&[u8]| {
            let compressor = compressor.as_mut().map_err(|error| io::Error::other(error.to_string()))?;
            compressor.compress(block)
        };
        let packed: io::Result<Vec<Vec<u8>>> = blocks.par_iter().map_init(compressor, compressed).collect();
        let mut end = self.end();
        for (block, packed) in blocks.into_iter().zip(packed?) {
            let bytes = if packed.len() < block.len() { &packed } else { block };
            self.scratch.append(bytes)?;
            end.line_bytes += block.len() as u64;
            end.file += bytes.len() as u64;
            self.ends.push(end)?;
        }
        self.waiting.clear();
        self.waiting.shrink_to(2 * TOGETHER * BLOCK);
        self.complete.clear();
        Ok(())
    }

    /// Returns `length` bytes, beginning at `offset`. All of them must belong to the same line.
    pub(super) fn read<'a>(
        &'a self,
        block: &'a mut ReadBlock,
        offset: u64,
        length: usize,
    ) -> io::Result<&'a [u8]> {
        let missing = || io::Error::other("a line that is not in its scratch file");
        let (start, lines) = if let Some(start) = offset.checked_sub(self.end().line_bytes) {
            (start, &self.waiting)
        } else {
            let number = self.ends.partition_point(|end| end.line_bytes <= offset);
            let before = number.checked_sub(1).map_or(BlockEnd::default(), |before| self.ends[before]);
            if block.number != Some(number) {
                block.number = None;
                self.decompress(block, before, self.ends[number])?;
                block.number = Some(number);
            }
            (offset - before.line_bytes, &block.lines)
        };
        let start = start as usize;
        lines.get(start..).and_then(|rest| rest.get(..length)).ok_or_else(missing)
    }

    fn decompress(&self, block: &mut ReadBlock, before: BlockEnd, end: BlockEnd) -> io::Result<()> {
        let bytes = (end.line_bytes - before.line_bytes) as usize;
        block.packed.resize((end.file - before.file) as usize, 0);
        self.scratch.read_exact_at(&mut block.packed, before.file)?;
        if block.packed.len() == bytes {
            std::mem::swap(&mut block.packed, &mut block.lines);
            return Ok(());
        }
        block.lines.clear();
        block.lines.reserve_exact(bytes);
        let found = Decompressor::new()?.decompress_to_buffer(&block.packed, &mut block.lines)?;
        if found != bytes {
            return Err(io::Error::other(format!("a block of a scratch file has {found} of {bytes} bytes")));
        }
        Ok(())
    }

    /// Frees the disk space of the blocks before the block that contains `offset`, in steps of 16 MiB, if the file system
    /// supports it. These blocks must not be read afterwards.
    pub(super) fn release_before(&self, offset: u64) {
        let number = self.ends.partition_point(|end| end.line_bytes <= offset);
        if let Some(before) = number.checked_sub(1) {
            self.scratch.release(self.ends[before].file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a line that depends on `number`: most lines are short, some are longer than a block, some are incompressible.
    fn line(number: u64) -> Vec<u8> {
        let length = if number % 97 == 5 { 3 * BLOCK } else { (number * 7919 % 3000) as usize };
        let mut state = number + 1;
        let next = |_| {
            state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            if number.is_multiple_of(5) { state as u8 } else { b'a' + (state % 4) as u8 }
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn lines_are_read_back_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let count = 5_000;
        let mut offsets = Vec::new();
        for number in 0..count {
            offsets.push(blocks.append(&line(number)).unwrap());
        }
        let written: u64 = (0..count).map(|number| line(number).len() as u64).sum();
        assert!(blocks.scratch.len() < written * 3 / 4, "{} of {written}", blocks.scratch.len());
        let mut block = ReadBlock::default();
        for at in (0..count).chain((0..count).map(|at| at * 3571 % count)) {
            let expected = line(at);
            let read = blocks.read(&mut block, offsets[at as usize], expected.len()).unwrap();
            assert!(read == expected, "{at}");
        }
        assert!(blocks.read(&mut block, offsets[count as usize - 1], 100_000).is_err());
    }

    #[test]
    fn blocks_before_a_released_line_are_refused_and_later_blocks_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let count = 40_000;
        let offsets: Vec<u64> = (0..count).map(|number| blocks.append(&line(5 * number)).unwrap()).collect();
        let mut block = ReadBlock::default();
        blocks.release_before(offsets[30_000]);
        assert!(blocks.read(&mut block, offsets[1], 1).is_err());
        for at in 30_000..count {
            let expected = line(5 * at);
            assert!(
                blocks.read(&mut block, offsets[at as usize], expected.len()).unwrap() == expected,
                "{at}"
            );
        }
    }
}
