//! Stores lines in compressed blocks of a scratch file. Lines of pipes and of compressed inputs are stored this way,
//! because they cannot be read again from the input. A few lines are first read in random order; then most lines are
//! read once, in order.
//!
//! Blocks are small and independently compressed, so that reading a single line is cheap. The first lines serve as zstd
//! dictionary of all blocks, so strings common to most lines are not stored in each block.

use std::io;
use std::path::Path;

use rayon::prelude::*;
use twindex::sys::{Column, MemoryBudget, Spill};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zstd::bulk::Compressor;
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{DCtx, get_error_name};

/// Size in bytes, before compression, at which a block is complete. Reading a line decompresses its whole block.
const BLOCK: usize = 64 << 10;
/// Number of blocks that are compressed together, in parallel.
const TOGETHER: usize = 16;
/// Compression level of zstd. Level -1 is a third faster, but takes a third more disk space.
const LEVEL: i32 = 1;
/// Maximum size of the dictionary in bytes. A dictionary of twice the size compresses worse: the hash table of level 1
/// is too small for it.
const DICTIONARY: usize = 128 << 10;

/// Stores lines. A line is identified by the offset of its first byte in the concatenation of all lines, in the order
/// of addition.
pub(crate) struct LineBlocks {
    scratch: Spill,
    /// The end of each compressed block.
    ends: Column<BlockEnd>,
    /// The lines that are not compressed yet.
    waiting: Vec<u8>,
    /// The end of each complete block in `waiting`.
    complete: Vec<usize>,
    /// `None` until the first blocks are compressed.
    dictionary: Option<Dictionary>,
}

/// The zstd dictionary: the first lines, prepared for compression and decompression. It stays in memory, so other
/// blocks can be read after the disk space of the first lines was freed. It takes 362 KiB: two copies of the lines, a
/// hash table of 80 KiB, and 27 KiB of decoding tables.
struct Dictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
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

/// The decompressor, and a cache of the last block that it decompressed. A value must be used with one store only.
/// Takes about 200 KiB, or more if lines are longer than a block.
#[derive(Default)]
pub(crate) struct ReadBlock {
    number: Option<usize>,
    lines: Vec<u8>,
    packed: Vec<u8>,
    decompressor: Option<DCtx<'static>>,
}

impl ReadBlock {
    /// Frees the buffers if lines longer than a block have enlarged them.
    pub(crate) fn shrink(&mut self) {
        if self.lines.capacity() + self.packed.capacity() > 4 * BLOCK {
            (self.number, self.lines, self.packed) = (None, Vec::new(), Vec::new());
        }
    }
}

impl Dictionary {
    fn of(lines: &[u8]) -> io::Result<Self> {
        // The newline prevents the lines from starting with the magic number that makes zstd parse them as a trained
        // dictionary.
        let content = [b"\n", lines].concat();
        let encoder = EncoderDictionary::try_copy(&content, LEVEL)?;
        Ok(Self { encoder, decoder: DecoderDictionary::try_copy(&content)? })
    }
}

impl LineBlocks {
    /// Creates an empty store with a scratch file in `folder`. The store takes about 2.4 MiB of memory, or more if
    /// lines are longer than a block, and 16 bytes of `budget` for each block. During compression, each thread takes
    /// another 330 KiB.
    pub(crate) fn new(folder: &Path, budget: &MemoryBudget) -> io::Result<Self> {
        Ok(Self {
            scratch: Spill::create(folder)?,
            ends: Column::new(budget),
            waiting: Vec::new(),
            complete: Vec::new(),
            dictionary: None,
        })
    }

    /// Returns the end of the last compressed block.
    fn end(&self) -> BlockEnd {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Adds a line, and returns its offset.
    pub(crate) fn append(&mut self, line: &[u8]) -> anyhow::Result<u64> {
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
        let dictionary = match &mut self.dictionary {
            Some(dictionary) => &*dictionary,
            none => &*none.insert(Dictionary::of(&self.waiting[..DICTIONARY.min(self.waiting.len())])?),
        };
        let compressor = || Compressor::with_prepared_dictionary(&dictionary.encoder);
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

    /// Returns `length` bytes from `offset` on, which must belong to one line.
    pub(crate) fn read<'a>(
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
        let no_dictionary = || io::Error::other("a block of a scratch file without its dictionary");
        let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?.decoder.as_ddict();
        let ReadBlock { lines, packed, decompressor, .. } = block;
        lines.clear();
        lines.reserve_exact(bytes);
        // Reuses the decompressor, because creating one and its first use of the dictionary take time.
        let decompressor = decompressor.get_or_insert_with(DCtx::create);
        let found = decompressor
            .decompress_using_ddict(lines, packed, dictionary)
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        if found != bytes {
            return Err(io::Error::other(format!("a block of a scratch file has {found} of {bytes} bytes")));
        }
        Ok(())
    }

    /// Frees the disk space of the blocks before the block that contains `offset`, in steps of 16 MiB, if the file system
    /// supports it. These blocks must not be read afterwards.
    pub(crate) fn release_before(&self, offset: u64) {
        let number = self.ends.partition_point(|end| end.line_bytes <= offset);
        if let Some(before) = number.checked_sub(1) {
            self.scratch.release(self.ends[before].file);
        }
    }
}

#[cfg(test)]
mod tests {
    use twindex_kernel::splitmix::SplitMix;

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

    /// Returns the compressed blocks of `lines`.
    fn compressed(blocks: &LineBlocks) -> Vec<u8> {
        let mut all = vec![0; blocks.end().file as usize];
        blocks.scratch.read_exact_at(&mut all, 0).unwrap();
        all
    }

    /// Returns 120 KiB of incompressible lines.
    fn incompressible_lines() -> Vec<Vec<u8>> {
        let mut random = SplitMix(1);
        (0..30).map(|_| (0..4 << 10).map(|_| random.next() as u8).collect()).collect()
    }

    #[test]
    fn lines_of_the_first_blocks_take_little_space_in_later_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let lines = incompressible_lines();
        let offsets: Vec<u64> =
            lines.iter().cycle().take(3000).map(|line| blocks.append(line).unwrap()).collect();
        // The 16 lines of a block are incompressible and different, so only the dictionary makes the block smaller.
        let written = blocks.end().line_bytes;
        assert!(blocks.scratch.len() < written / 50, "{} of {written}", blocks.scratch.len());
        let mut block = ReadBlock::default();
        for at in (0..3000).rev() {
            let expected = &lines[at % lines.len()];
            assert!(blocks.read(&mut block, offsets[at], expected.len()).unwrap() == expected, "{at}");
        }
    }

    #[test]
    fn all_blocks_are_compressed_with_the_dictionary_of_the_first_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let lines: Vec<u8> = (0..2_000)
            .flat_map(|number| {
                let line = line(number);
                blocks.append(&line).unwrap();
                line
            })
            .collect();
        let dictionary = [b"\n", &lines[..DICTIONARY]].concat();
        let mut decompressor = zstd::bulk::Decompressor::with_dictionary(&dictionary).unwrap();
        let (all, mut before, mut smaller) = (compressed(&blocks), BlockEnd::default(), 0);
        for &end in &blocks.ends[..] {
            let expected = &lines[before.line_bytes as usize..end.line_bytes as usize];
            let packed = &all[before.file as usize..end.file as usize];
            if packed.len() < expected.len() {
                assert!(decompressor.decompress(packed, expected.len()).unwrap() == expected);
                smaller += 1;
            }
            before = end;
        }
        assert!(smaller > 2 * TOGETHER, "{smaller}");
    }

    #[test]
    fn compressed_blocks_do_not_depend_on_the_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
            pool.install(|| {
                for number in 0..3_000 {
                    blocks.append(&line(number)).unwrap();
                }
            });
            compressed(&blocks)
        };
        let one = of(1);
        assert!(one.len() > 1 << 20);
        assert!((2..5).all(|threads| of(threads) == one));
    }

    #[test]
    fn lines_that_start_like_a_trained_dictionary_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let magic = 0xEC30_A437_u32.to_le_bytes();
        let lines: Vec<Vec<u8>> = (0..2_000).map(|number| [&magic[..], &line(number)].concat()).collect();
        let offsets: Vec<u64> = lines.iter().map(|line| blocks.append(line).unwrap()).collect();
        assert!(blocks.dictionary.is_some());
        let mut block = ReadBlock::default();
        for (line, offset) in lines.iter().zip(offsets) {
            assert!(blocks.read(&mut block, offset, line.len()).unwrap() == line, "{offset}");
        }
    }

    #[test]
    fn buffers_of_a_long_line_are_freed() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let lengths = [3, 10 * BLOCK, 3].into_iter().chain([BLOCK; 2 * TOGETHER]);
        let offsets: Vec<u64> = lengths.map(|length| blocks.append(&vec![b'x'; length]).unwrap()).collect();
        let mut block = ReadBlock::default();
        for (at, is_kept) in [(1, false), (5, true)] {
            assert_eq!(blocks.read(&mut block, offsets[at], 3).unwrap(), b"xxx");
            block.shrink();
            assert_eq!((block.number.is_some(), block.lines.capacity() > 0), (is_kept, is_kept));
        }
    }

    #[test]
    fn blocks_before_a_released_line_are_refused_and_later_blocks_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut blocks = LineBlocks::new(folder.path(), &MemoryBudget::unlimited()).unwrap();
        let count = 20_000;
        let offsets: Vec<u64> = (0..count).map(|number| blocks.append(&line(number)).unwrap()).collect();
        let mut block = ReadBlock::default();
        blocks.read(&mut block, offsets[1], 1).unwrap();
        blocks.release_before(offsets[15_000]);
        // The dictionary still contains the first lines, but reading them fails as for all released lines.
        let mut block = ReadBlock::default();
        assert!(blocks.dictionary.is_some() && blocks.read(&mut block, offsets[1], 1).is_err());
        for at in 15_000..count {
            let expected = line(at);
            assert!(
                blocks.read(&mut block, offsets[at as usize], expected.len()).unwrap() == expected,
                "{at}"
            );
        }
    }
}
