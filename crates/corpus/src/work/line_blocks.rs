//! Stores lines in compressed blocks of a scratch file. Lines of pipes and of compressed inputs are stored this way,
//! because they cannot be read again from the input. A few lines are first read in random order; then most lines are
//! read once, in order.
//!
//! Blocks are small and independently compressed, so that reading a single line is cheap.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rayon::prelude::*;
use twindex::sys::{Column, MemoryBudget, Spill};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use zstd::zstd_safe::{DCtx, get_error_name};

use crate::work::packed_lines::{BLOCK, Dictionary, LineDictionary, PackedLines};

/// Number of blocks that are compressed together, in parallel.
const TOGETHER: usize = 16;
/// Stores lines. A line is identified by the offset of its first byte in the concatenation of all lines, in the order
/// of addition.
struct LineBlocks {
    scratch: Spill,
    /// The end of each compressed block.
    ends: Column<BlockEnd>,
    waiting: WaitingLines,
    /// Empty until the first blocks are compressed.
    dictionary: LineDictionary,
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

/// Lines that are not compressed yet.
#[derive(Default)]
struct WaitingLines {
    lines: Vec<u8>,
    /// The end of each complete block.
    complete: Vec<usize>,
}

impl WaitingLines {
    /// Compresses the lines on all threads. The first lines of a job become its dictionary.
    fn pack(&mut self, dictionary: &LineDictionary) -> io::Result<PackedLines> {
        let Self { lines, complete } = self;
        if complete.last() != Some(&lines.len()) {
            complete.push(lines.len());
        }
        if dictionary.0.get().is_none() {
            let _ = dictionary.0.set(Dictionary::of(lines)?); // one thread adds lines
        }
        let starts = [0].into_iter().chain(complete.iter().copied());
        let blocks: Vec<&[u8]> = starts.zip(&*complete).map(|(start, &end)| &lines[start..end]).collect();
        let compressed = |compressor: &mut Option<_>, block: &&[u8]| {
            let mut packed = Vec::new();
            dictionary.pack(compressor, block, &mut packed).map(|()| packed)
        };
        let packed: io::Result<Vec<Vec<u8>>> = blocks.par_iter().map_init(|| None, compressed).collect();
        let mut all = PackedLines { bytes: Vec::new(), ends: Vec::new() };
        for (packed, &end) in packed?.iter().zip(&*complete) {
            all.bytes.extend_from_slice(packed);
            all.ends.push([end, all.bytes.len()]);
        }
        lines.clear();
        lines.shrink_to(2 * TOGETHER * BLOCK);
        complete.clear();
        Ok(all)
    }
}

fn missing() -> io::Error {
    io::Error::other("a line that is not in its scratch file")
}

/// A line that is in the lines of a [`ReadBlock`] from `start` on, after its block is decompressed.
struct FetchedLine {
    start: usize,
    /// The number of the block, and its size in bytes, if it is not decompressed yet.
    packed: Option<(usize, usize)>,
}

/// The decompressor, and a cache of the last block that it decompressed. A value must be used with one store only.
/// Takes about 200 KiB, or more if lines are longer than a block.
#[derive(Default)]
pub(crate) struct ReadBlock {
    number: Option<usize>,
    lines: Vec<u8>,
    packed: Vec<u8>,
    dictionary: Option<LineDictionary>,
    decompressor: Option<DCtx<'static>>,
}

impl ReadBlock {
    /// Frees the buffers if lines longer than a block have enlarged them.
    pub(crate) fn shrink(&mut self) {
        if self.lines.capacity() + self.packed.capacity() > 4 * BLOCK {
            (self.number, self.lines, self.packed) = (None, Vec::new(), Vec::new());
        }
    }

    fn decompress(&mut self, number: usize, bytes: usize) -> io::Result<()> {
        if self.packed.len() == bytes {
            std::mem::swap(&mut self.packed, &mut self.lines);
            self.number = Some(number);
            return Ok(());
        }
        let no_dictionary = || io::Error::other("a block of a scratch file without its dictionary");
        let Self { lines, packed, dictionary, decompressor, .. } = self;
        let dictionary = dictionary.as_ref().and_then(|dictionary| dictionary.0.get());
        let dictionary = dictionary.ok_or_else(no_dictionary)?.decoder.as_ddict();
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
        self.number = Some(number);
        Ok(())
    }
}

/// Lines that one thread adds, and all threads read and pack.
#[derive(Clone)]
pub struct SharedLines(Arc<RwLock<LineBlocks>>);

impl std::fmt::Debug for SharedLines {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SharedLines")
    }
}

impl SharedLines {
    /// Creates an empty store. `dictionary` is that of another store whose packed lines may be added, or a new one.
    pub(crate) fn new(folder: &Path, budget: &MemoryBudget, dictionary: LineDictionary) -> io::Result<Self> {
        Ok(Self(Arc::new(RwLock::new(LineBlocks::new(folder, budget, dictionary)?))))
    }

    fn blocks(&self) -> RwLockReadGuard<'_, LineBlocks> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn blocks_mut(&self) -> RwLockWriteGuard<'_, LineBlocks> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, and returns its offset.
    pub(crate) fn append(&self, line: &[u8]) -> anyhow::Result<u64> {
        let (offset, is_enough) = self.blocks_mut().append(line);
        if is_enough {
            self.compress()?;
        }
        Ok(offset)
    }

    /// Adds packed lines, and returns the offset of the first.
    pub(crate) fn add(&self, lines: &PackedLines) -> anyhow::Result<u64> {
        if !self.blocks().waiting.lines.is_empty() {
            self.compress()?;
        }
        self.blocks_mut().add(lines)
    }

    /// Compresses the waiting lines. No lock is held meanwhile, because this thread may process documents, which reads
    /// lines. These lines are not found until they are compressed.
    fn compress(&self) -> anyhow::Result<()> {
        let (mut waiting, dictionary) = {
            let mut blocks = self.blocks_mut();
            (std::mem::take(&mut blocks.waiting), blocks.dictionary.clone())
        };
        let packed = waiting.pack(&dictionary)?;
        let mut blocks = self.blocks_mut();
        blocks.waiting = waiting; // its memory is used again
        blocks.add(&packed).map(drop)
    }

    /// Returns the dictionary with which lines are packed for [`add`](Self::add).
    pub(crate) fn dictionary(&self) -> LineDictionary {
        self.blocks().dictionary.clone()
    }

    /// Returns `length` bytes from `offset` on, which must belong to one line.
    pub(crate) fn read<'b>(
        &self,
        block: &'b mut ReadBlock,
        offset: u64,
        length: usize,
    ) -> io::Result<&'b [u8]> {
        // Others wait while the block is read, but not while it is decompressed.
        let FetchedLine { start, packed } = self.blocks().fetch(block, offset, length)?;
        if let Some((number, bytes)) = packed {
            block.decompress(number, bytes)?;
        }
        block.lines.get(start..).and_then(|rest| rest.get(..length)).ok_or_else(missing)
    }

    /// Frees the disk space of the blocks before the block that contains `offset`; see [`LineBlocks::release_before`].
    pub(crate) fn release_before(&self, offset: u64) {
        self.blocks().release_before(offset);
    }
}

impl LineBlocks {
    /// Creates an empty store with a scratch file in `folder`. The store takes about 2.4 MiB of memory, or more if
    /// lines are longer than a block, and 16 bytes of `budget` for each block. During compression, each thread takes
    /// another 330 KiB.
    fn new(folder: &Path, budget: &MemoryBudget, dictionary: LineDictionary) -> io::Result<Self> {
        Ok(Self {
            scratch: Spill::create(folder)?,
            ends: Column::new(budget),
            waiting: WaitingLines::default(),
            dictionary,
        })
    }

    /// Returns the end of the last compressed block.
    fn end(&self) -> BlockEnd {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Adds a line. Returns its offset, and whether enough lines wait to be compressed.
    fn append(&mut self, line: &[u8]) -> (u64, bool) {
        let before = self.end().line_bytes;
        let WaitingLines { lines, complete } = &mut self.waiting;
        let offset = before + lines.len() as u64;
        lines.extend_from_slice(line);
        if lines.len() - complete.last().copied().unwrap_or(0) >= BLOCK {
            complete.push(lines.len());
        }
        (offset, complete.len() == TOGETHER)
    }

    /// Adds packed lines, and returns the offset of the first.
    fn add(&mut self, lines: &PackedLines) -> anyhow::Result<u64> {
        let BlockEnd { line_bytes, file } = self.end();
        self.scratch.append(&lines.bytes)?;
        for &[end, packed] in &lines.ends {
            self.ends.push(BlockEnd { line_bytes: line_bytes + end as u64, file: file + packed as u64 })?;
        }
        Ok(line_bytes)
    }

    /// Reads what [`ReadBlock`] needs to return `length` bytes from `offset` on.
    fn fetch(&self, block: &mut ReadBlock, offset: u64, length: usize) -> io::Result<FetchedLine> {
        if let Some(start) = offset.checked_sub(self.end().line_bytes) {
            let waiting = self.waiting.lines.get(start as usize..).and_then(|rest| rest.get(..length));
            block.number = None;
            block.lines.clear();
            block.lines.extend_from_slice(waiting.ok_or_else(missing)?);
            return Ok(FetchedLine { start: 0, packed: None });
        }
        let number = self.ends.partition_point(|end| end.line_bytes <= offset);
        let before = number.checked_sub(1).map_or(BlockEnd::default(), |before| self.ends[before]);
        let start = (offset - before.line_bytes) as usize;
        if block.number == Some(number) {
            return Ok(FetchedLine { start, packed: None });
        }
        block.number = None;
        let end = self.ends[number];
        block.packed.resize((end.file - before.file) as usize, 0);
        self.scratch.read_exact_at(&mut block.packed, before.file)?;
        block.dictionary.get_or_insert_with(|| self.dictionary.clone());
        Ok(FetchedLine { start, packed: Some((number, (end.line_bytes - before.line_bytes) as usize)) })
    }

    /// Frees the disk space of the blocks before the block that contains `offset`, in steps of 16 MiB, if the file system
    /// supports it. These blocks must not be read afterwards.
    fn release_before(&self, offset: u64) {
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
    use crate::work::packed_lines::{DICTIONARY, LinePacking};

    fn shared(folder: &Path) -> SharedLines {
        SharedLines::new(folder, &MemoryBudget::unlimited(), LineDictionary::default()).unwrap()
    }

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
        let blocks = shared(folder.path());
        let count = 5_000;
        let mut offsets = Vec::new();
        for number in 0..count {
            offsets.push(blocks.append(&line(number)).unwrap());
        }
        let written: u64 = (0..count).map(|number| line(number).len() as u64).sum();
        assert!(
            blocks.blocks().scratch.len() < written * 3 / 4,
            "{} of {written}",
            blocks.blocks().scratch.len()
        );
        let mut block = ReadBlock::default();
        for at in (0..count).chain((0..count).map(|at| at * 3571 % count)) {
            let expected = line(at);
            let read = blocks.read(&mut block, offsets[at as usize], expected.len()).unwrap();
            assert!(read == expected, "{at}");
        }
        assert!(blocks.read(&mut block, offsets[count as usize - 1], 100_000).is_err());
    }

    #[test]
    fn lines_that_other_threads_packed_are_read_back_among_others() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = shared(folder.path());
        let (mut packing, mut offsets, mut packed) = (LinePacking::default(), Vec::new(), 0);
        for chunk in 0..60_u64 {
            let lines: Vec<Vec<u8>> = (100 * chunk..100 * (chunk + 1)).map(line).collect();
            let all = lines.iter().map(Vec::as_slice);
            // The first lines are waiting when the first packed ones are added.
            match packing.pack(&blocks.dictionary(), all).unwrap().filter(|_| chunk % 3 != 0) {
                None => offsets.extend(lines.iter().map(|line| blocks.append(line).unwrap())),
                Some((lines, places)) => {
                    let start = blocks.add(&lines).unwrap();
                    offsets.extend(places.iter().map(|&place| start + place as u64));
                    packed += 1;
                }
            }
        }
        assert!((20..45).contains(&packed), "{packed}");
        let mut block = ReadBlock::default();
        for (number, &offset) in (0..).zip(&offsets) {
            let expected = line(number);
            assert!(blocks.read(&mut block, offset, expected.len()).unwrap() == expected, "{number}");
        }
    }

    /// Returns the compressed blocks of `lines`.
    fn compressed(blocks: &SharedLines) -> Vec<u8> {
        let mut all = vec![0; blocks.blocks().end().file as usize];
        blocks.blocks().scratch.read_exact_at(&mut all, 0).unwrap();
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
        let blocks = shared(folder.path());
        let lines = incompressible_lines();
        let offsets: Vec<u64> =
            lines.iter().cycle().take(3000).map(|line| blocks.append(line).unwrap()).collect();
        // The 16 lines of a block are incompressible and different, so only the dictionary makes the block smaller.
        let written = blocks.blocks().end().line_bytes;
        assert!(
            blocks.blocks().scratch.len() < written / 50,
            "{} of {written}",
            blocks.blocks().scratch.len()
        );
        let mut block = ReadBlock::default();
        for at in (0..3000).rev() {
            let expected = &lines[at % lines.len()];
            assert!(blocks.read(&mut block, offsets[at], expected.len()).unwrap() == expected, "{at}");
        }
    }

    #[test]
    fn all_blocks_are_compressed_with_the_dictionary_of_the_first_lines() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = shared(folder.path());
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
        for &end in &blocks.blocks().ends[..] {
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
            let blocks = shared(folder.path());
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
        let blocks = shared(folder.path());
        let magic = 0xEC30_A437_u32.to_le_bytes();
        let lines: Vec<Vec<u8>> = (0..2_000).map(|number| [&magic[..], &line(number)].concat()).collect();
        let offsets: Vec<u64> = lines.iter().map(|line| blocks.append(line).unwrap()).collect();
        assert!(blocks.dictionary().0.get().is_some());
        let mut block = ReadBlock::default();
        for (line, offset) in lines.iter().zip(offsets) {
            assert!(blocks.read(&mut block, offset, line.len()).unwrap() == line, "{offset}");
        }
    }

    #[test]
    fn buffers_of_a_long_line_are_freed() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = shared(folder.path());
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
        let blocks = shared(folder.path());
        let count = 20_000;
        let offsets: Vec<u64> = (0..count).map(|number| blocks.append(&line(number)).unwrap()).collect();
        let mut block = ReadBlock::default();
        blocks.read(&mut block, offsets[1], 1).unwrap();
        blocks.release_before(offsets[15_000]);
        // The dictionary still contains the first lines, but reading them fails as for all released lines.
        let mut block = ReadBlock::default();
        assert!(blocks.dictionary().0.get().is_some() && blocks.read(&mut block, offsets[1], 1).is_err());
        for at in 15_000..count {
            let expected = line(at);
            assert!(
                blocks.read(&mut block, offsets[at as usize], expected.len()).unwrap() == expected,
                "{at}"
            );
        }
    }
}
