//! Compresses lines in small blocks, on any thread. The first lines of a job are the zstd dictionary of all blocks, so
//! strings common to most lines are not stored in each block.

use std::fmt::{Debug, Formatter};
use std::io;
use std::sync::{Arc, OnceLock};

use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CCtx, compress_bound, get_error_name};

/// Size in bytes, before compression, at which a block is complete. Reading a line decompresses its whole block.
pub(crate) const BLOCK: usize = 64 << 10;
/// Compression level of zstd. Level -1 is a third faster, but takes a third more disk space.
const LEVEL: i32 = 1;
/// Maximum size of the dictionary in bytes. A dictionary of twice the size compresses worse: the hash table of level 1
/// is too small for it.
pub(crate) const DICTIONARY: usize = 128 << 10;

/// The zstd dictionary: the first lines, prepared for compression and decompression. It stays in memory, so other
/// blocks can be read after the disk space of the first lines was freed. It takes 362 KiB: two copies of the lines, a
/// hash table of 80 KiB, and 27 KiB of decoding tables.
pub(crate) struct Dictionary {
    encoder: EncoderDictionary<'static>,
    pub(crate) decoder: DecoderDictionary<'static>,
}

impl Dictionary {
    /// Returns the dictionary of these lines, the first of all.
    pub(crate) fn of(lines: &[u8]) -> io::Result<Self> {
        // The newline prevents the lines from starting with the magic number that makes zstd parse them as a trained
        // dictionary.
        let content = [b"\n", &lines[..DICTIONARY.min(lines.len())]].concat();
        let encoder = EncoderDictionary::try_copy(&content, LEVEL)?;
        Ok(Self { encoder, decoder: DecoderDictionary::try_copy(&content)? })
    }
}

/// The dictionary of the lines of a job, once its first lines are known.
#[derive(Clone, Default)]
pub(crate) struct LineDictionary(pub(crate) Arc<OnceLock<Dictionary>>);

impl LineDictionary {
    /// Appends the compressed block to `packed`, or the block itself if compression does not make it smaller.
    pub(crate) fn pack(
        &self,
        compressor: &mut Option<CCtx<'static>>,
        block: &[u8],
        packed: &mut Vec<u8>,
    ) -> io::Result<()> {
        let dictionary = self.0.get().ok_or_else(|| io::Error::other("lines without their dictionary"))?;
        let compressor = compressor.get_or_insert_with(CCtx::create);
        let mut compressed = vec![0; compress_bound(block.len())];
        let count = compressor
            .compress_using_cdict(&mut compressed[..], block, dictionary.encoder.as_cdict())
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        packed.extend_from_slice(if count < block.len() { &compressed[..count] } else { block });
        Ok(())
    }
}

impl Debug for LineDictionary {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.write_str("LineDictionary")
    }
}

/// The lines of a chunk, compressed.
pub struct PackedLines {
    /// The compressed blocks, concatenated.
    pub(crate) bytes: Vec<u8>,
    /// The end of each block, as an offset in the lines and in `bytes`.
    pub(crate) ends: Vec<[usize; 2]>,
}

/// Working memory of a thread that packs lines.
#[derive(Default)]
pub(crate) struct LinePacking {
    compressor: Option<CCtx<'static>>,
    /// The lines of the block that is being made.
    block: Vec<u8>,
}

impl LinePacking {
    /// Packs lines. Returns them with the offset of each line; `None` if there is no dictionary yet.
    pub(crate) fn pack<'l>(
        &mut self,
        dictionary: &LineDictionary,
        lines: impl Iterator<Item = &'l [u8]>,
    ) -> io::Result<Option<(PackedLines, Vec<usize>)>> {
        if dictionary.0.get().is_none() {
            return Ok(None);
        }
        let mut packed = PackedLines { bytes: Vec::new(), ends: Vec::new() };
        let (mut offsets, mut before) = (Vec::new(), 0);
        self.block.clear();
        let mut lines = lines.peekable();
        while let Some(line) = lines.next() {
            offsets.push(before + self.block.len());
            self.block.extend_from_slice(line);
            if self.block.len() >= BLOCK || lines.peek().is_none() {
                dictionary.pack(&mut self.compressor, &self.block, &mut packed.bytes)?;
                before += self.block.len();
                packed.ends.push([before, packed.bytes.len()]);
                self.block.clear();
            }
        }
        self.block.shrink_to(2 * BLOCK); // a line may be long
        Ok(Some((packed, offsets)))
    }
}
