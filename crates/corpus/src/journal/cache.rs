//! Caches the results of chunks of documents on disk. A resumed run parses keys, positions and lines again, but reads
//! sketches and sets, which are expensive to compute, from the cache of the stopped run. The *words* of a document are
//! the 64-bit elements of its set.

use std::ops::Range;
use std::sync::Arc;

use anyhow::bail;

/// Reads the stored results of chunks in input order, on any thread.
pub(crate) trait StoredChunks: Sync {
    /// Returns the stored results of the next chunk; `None` after the last one.
    fn next(&self) -> anyhow::Result<Option<CachedChunk>>;
}

/// Stores the results of chunks in input order.
pub(crate) trait Chunks {
    /// Encodes the words of the document that was processed last, and appends them to `out`. `words` is `None` if the
    /// document was not added, or has the same text as an earlier document.
    fn put_words(&self, words: Option<&[u64]>, out: &mut Vec<u8>) -> anyhow::Result<()>;

    /// Stores the results of a chunk, after all of its documents were processed. `digest` is the digest of its records.
    fn keep(&self, digest: u64, bytes: &[u8]) -> anyhow::Result<()>;
}

/// A cache of the results of chunks. `L` is the lookup result of a document.
pub(crate) struct ChunkCache<'r, L> {
    pub(crate) stored: &'r dyn StoredChunks,
    pub(crate) chunks: &'r dyn Chunks,
    /// Number of MinHash minima of each document that are stored in full length.
    pub(crate) minima: usize,
    /// Whether only these minima are stored. Later steps then need no other minima and no features.
    pub(crate) is_short: bool,
    /// Appends an encoded lookup result.
    pub(crate) put: fn(&L, &mut Vec<u8>),
    /// Decodes a lookup result; `None` if the bytes were not written by `put`.
    pub(crate) take: fn(&mut ByteReader<'_>) -> Option<L>,
    /// Decodes the output of [`Chunks::put_words`]: appends the words, and completes the lookup result of the document.
    pub(crate) take_words: &'r TakeWords<L>,
}

/// Reads the words of a document. Returns `None` if the bytes were not written by [`Chunks::put_words`].
pub(crate) type TakeWords<L> =
    dyn Fn(&mut ByteReader<'_>, &mut L, &mut Vec<u64>) -> anyhow::Result<Option<()>> + Sync;

/// The stored results of a chunk.
pub(crate) struct CachedChunk {
    /// The path of the part file that contains these results, for messages.
    pub(crate) at: Arc<str>,
    /// The digest of the records of the chunk.
    pub(crate) digest: u64,
    pub(crate) bytes: Vec<u8>,
    /// Returns whether the bytes match the stored hash.
    pub(crate) is_whole: fn(&Self) -> bool,
    /// The stored hash of the bytes and of the number of the chunk.
    pub(crate) hash: u64,
    pub(crate) number: u64,
}

impl CachedChunk {
    /// Returns an error if the results are damaged, or belong to records with another digest.
    pub(crate) fn check(&self, digest: u64) -> anyhow::Result<()> {
        if !(self.is_whole)(self) {
            bail!("{}", damaged(&self.at));
        }
        if self.digest != digest {
            bail!("the input changed since the stopped run read it (see {}); {BEGIN_ANEW}", self.at);
        }
        Ok(())
    }
}

/// The advice in errors of runs that cannot be resumed.
pub(crate) const BEGIN_ANEW: &str = "to start over, give --force instead of --resume";

/// Returns the message for a damaged file of a stopped run.
pub(crate) fn damaged(file: &str) -> String {
    format!("{file}: damaged, so that the stopped run cannot be continued; {BEGIN_ANEW}")
}

/// Reads bytes from the start of a slice.
pub(crate) struct ByteReader<'b>(pub(crate) &'b [u8]);

impl<'b> ByteReader<'b> {
    /// Returns a number that [`put_small`] wrote.
    pub(crate) fn small(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = u64::from(self.byte()?);
            number |= (byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Returns the next `count` bytes; `None` if fewer remain.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }
}

/// The state of a chunk's results in the cache.
#[derive(Default)]
pub(crate) enum ChunkMemory {
    /// The results are computed and not stored.
    #[default]
    None,
    /// The results are computed and stored. `digest` is the digest of the records.
    Kept { digest: u64, bytes: Vec<u8> },
    /// The results are read from the cache: first the results of all documents, then the words of all documents.
    /// `taken` has the byte range of each of these two sections that is still unread.
    Recalled { recalled: Box<CachedChunk>, taken: [Range<usize>; 2] },
}

/// Size in bytes of the last field of a cached chunk: the offset at which the words begin.
const LAST: usize = size_of::<u64>();

impl ChunkMemory {
    /// Returns the state of a chunk whose records have this digest; `recalled` are its stored results, if any.
    ///
    /// # Errors
    ///
    /// The stored results are damaged, or belong to other records.
    pub(crate) fn of(recalled: Option<CachedChunk>, digest: u64) -> anyhow::Result<Self> {
        let Some(recalled) = recalled else { return Ok(Self::Kept { digest, bytes: Vec::new() }) };
        recalled.check(digest)?;
        let split = || {
            let (rest, last) = recalled.bytes.split_last_chunk::<LAST>()?;
            let results = usize::try_from(u64::from_le_bytes(*last)).ok()?;
            (results <= rest.len()).then_some([0..results, results..rest.len()])
        };
        let Some(taken) = split() else { bail!("{}", damaged(&recalled.at)) };
        Ok(Self::Recalled { recalled: Box::new(recalled), taken })
    }

    /// Decodes a value of the stored results with `take`; `None` if no results are stored and they must be computed.
    pub(crate) fn recall<T>(
        &mut self,
        take: impl FnOnce(&mut ByteReader<'_>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        self.recall_from(0, |bytes| Ok(take(bytes)))
    }

    /// Decodes stored words with `take`; `None` if no results are stored and the words must be computed.
    pub(crate) fn recall_words<T>(
        &mut self,
        take: impl FnOnce(&mut ByteReader<'_>) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        self.recall_from(1, take)
    }

    fn recall_from<T>(
        &mut self,
        section: usize,
        take: impl FnOnce(&mut ByteReader<'_>) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        let Self::Recalled { recalled, taken } = self else { return Ok(None) };
        let taken = &mut taken[section];
        let mut bytes = ByteReader(&recalled.bytes[taken.clone()]);
        let Some(found) = take(&mut bytes)? else { bail!("{}", damaged(&recalled.at)) };
        taken.start = taken.end - bytes.0.len();
        Ok(Some(found))
    }

    /// Returns the buffer for new results; `None` if results are not stored, or are read from the cache.
    pub(crate) fn kept(&mut self) -> Option<&mut Vec<u8>> {
        if let Self::Kept { bytes, .. } = self { Some(bytes) } else { None }
    }

    /// Returns an error if some of the stored results were not read.
    pub(crate) fn check_end(&self) -> anyhow::Result<()> {
        match self {
            Self::Recalled { recalled, taken } if !taken.iter().all(Range::is_empty) => {
                bail!("{}", damaged(&recalled.at))
            }
            _ => Ok(()),
        }
    }
}

/// Appends each number as 8 bytes, little-endian.
pub(crate) fn put_numbers(numbers: &[u64], out: &mut Vec<u8>) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Appends a number as a LEB128 varint: 7 bits in each byte, the lowest bits first.
pub(crate) fn put_small(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the last field of a cached chunk: the offset `results` at which the words begin.
pub(crate) fn put_end(results: usize, out: &mut Vec<u8>) {
    put_numbers(&[results as u64], out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_round_trip() {
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put_small(number, &mut bytes);
        }
        assert_eq!(bytes[..4], [0, 1, 127, 128]);
        let mut reader = ByteReader(&bytes);
        assert_eq!(numbers.map(|_| reader.small().unwrap()), numbers);
        assert!(reader.0.is_empty() && reader.small().is_none());
        assert!(ByteReader(&[0xFF; 20]).small().is_none());
    }
}
