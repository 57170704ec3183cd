//! Encodes and decodes the lookup results and sets that the journal stores for each document.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use twindex::KeyBuf;
use twindex_join::{DeltaHeader, LastSet, StoredSet, StoredSets};

use crate::journal::cache::{
    ByteReader, CachedChunk, ChunkCache, Chunks, StoredChunks, TakeWords, damaged, put_numbers, put_small,
};
use crate::journal::files::is_missing;
use crate::journal::folder::Journal;
use crate::journal::parts::ChunkParts;
use crate::rule::score::{Score, ScoreKind};
use crate::stored::corpus::{Corpus, Dropped};
use crate::stored::groups::{ANCHORS, SetHeader};

/// The lookup results of a document: a near document of a history, if any, and the header of its delta-encoded set.
pub(crate) type LookupResult = (Option<Dropped>, Option<SetHeader>);

/// The form in which a part of the journal stores the words of a document, in one byte.
#[derive(Clone, Copy)]
enum WordsKind {
    /// No words: an earlier document has the same text, or the document was not added.
    None = 0,
    /// The header and the words of the set.
    Held = 1,
    /// The position of the set in the scratch file, and its hash.
    Stored = 2,
    /// Only the number of words, in a run that stores no sets.
    Counted = 3,
}

/// Stores the results of chunks in parts of the journal.
pub(crate) struct JournaledChunks<'c, 'j> {
    parts: Mutex<ChunkParts<'j>>,
    corpus: &'c RefCell<&'c mut Corpus>,
    /// Whether sets of documents are stored, and not only the sizes of the sets.
    holds_sets: bool,
    /// Number of bytes that were added to the scratch file of the sets since the last chunk was stored.
    set_bytes: Cell<u64>,
}

impl<'c, 'j> JournaledChunks<'c, 'j> {
    /// Opens the results of `reading`, whose documents are added to `corpus`.
    pub(crate) fn open(
        journal: &'j Journal<'j>,
        reading: &'static str,
        corpus: &'c RefCell<&'c mut Corpus>,
        holds_sets: bool,
    ) -> anyhow::Result<Self> {
        let parts = Mutex::new(ChunkParts::open(journal, reading)?);
        Ok(Self { parts, corpus, holds_sets, set_bytes: Cell::new(0) })
    }

    /// Returns a cache of lookup results in these parts. `take_words` decodes the words. With `is_short`, only the
    /// first [`ANCHORS`] minima of each sketch are stored, because later steps need no others.
    pub(crate) fn cache<'r>(
        &'r self,
        take_words: &'r TakeWords<LookupResult>,
        is_short: bool,
    ) -> ChunkCache<'r, LookupResult> {
        ChunkCache { stored: &self.parts, chunks: self, minima: ANCHORS, is_short, put, take, take_words }
    }

    /// Stores the last part, after the last chunk.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        self.parts
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .finish(|| self.corpus.borrow_mut().grouped.sets.flush())
    }
}

impl StoredChunks for Mutex<ChunkParts<'_>> {
    fn next(&self) -> anyhow::Result<Option<CachedChunk>> {
        self.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

impl Chunks for JournaledChunks<'_, '_> {
    fn put_words(&self, words: Option<&[u64]>, out: &mut Vec<u8>) -> anyhow::Result<()> {
        let Some(words) = words else {
            out.push(WordsKind::None as u8);
            return Ok(());
        };
        if !self.holds_sets {
            out.push(WordsKind::Counted as u8);
            put_small(words.len() as u64, out);
            return Ok(());
        }
        match self.corpus.borrow().grouped.sets.last().context("a set of more than 2^32 words")? {
            LastSet::InMemory(header, words) => {
                out.push(WordsKind::Held as u8);
                for number in header.numbers() {
                    put_small(number, out);
                }
                put_small(words.len() as u64, out);
                put_numbers(words, out);
            }
            LastSet::InFile(set) => {
                out.push(WordsKind::Stored as u8);
                put_numbers(&set.numbers(), out);
                self.set_bytes.update(|bytes| bytes + set.bytes());
            }
        }
        Ok(())
    }

    fn keep(&self, digest: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let set_bytes = self.set_bytes.take();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.keep(digest, bytes, set_bytes, || self.corpus.borrow_mut().grouped.sets.flush())
    }
}

/// Returns a function that reads the words of a document from a part of the journal or from the scratch file of the
/// sets. If a part stores only the number of words, a number above `most` is an error.
pub(crate) fn words_taker(journal: &Journal<'_>, most: u64) -> anyhow::Result<Box<TakeWords<LookupResult>>> {
    let path = journal.sets();
    let stored = path.exists().then(|| StoredSets::open(&path)).transpose()?;
    Ok(Box::new(move |bytes, (_, header), words| {
        let Some(taken) = take_words(bytes, most, words) else { return Ok(None) };
        *header = taken;
        let Some(SetHeader::Stored(set)) = *header else { return Ok(Some(())) };
        let Some(stored) = &stored else { return Err(is_missing(&path)) };
        ensure!(stored.read(set, words)?, damaged(&path.display().to_string()));
        Ok(Some(()))
    }))
}

/// Decodes the words of a document, unless the words are in the scratch file. If only their number is stored, which is
/// at most `most`, appends that number of zeros. Returns the header of a stored set, `Some(None)` if no set is stored,
/// and `None` if the bytes are damaged.
#[allow(clippy::option_option, reason = "the inner one is the result")]
fn take_words(bytes: &mut ByteReader<'_>, most: u64, words: &mut Vec<u64>) -> Option<Option<SetHeader>> {
    match bytes.byte()? {
        kind if kind == WordsKind::None as u8 => {}
        kind if kind == WordsKind::Held as u8 => {
            let header = DeltaHeader::from_numbers([bytes.small()?, bytes.small()?, bytes.small()?])?;
            let count = usize::try_from(bytes.small()?).ok()?;
            let taken = bytes.take(count.checked_mul(size_of::<u64>())?)?;
            words.extend(taken.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
            return Some(Some(SetHeader::New(header.into())));
        }
        kind if kind == WordsKind::Stored as u8 => {
            let numbers = [bytes.u64()?, bytes.u64()?, bytes.u64()?, bytes.u64()?];
            return Some(Some(SetHeader::Stored(StoredSet::from_numbers(numbers))));
        }
        kind if kind == WordsKind::Counted as u8 => {
            let count = bytes.small().filter(|&count| count <= most)?;
            words.resize(words.len() + count as usize, 0);
        }
        _ => return None,
    }
    Some(None)
}

/// Encodes the lookup result of a document, except the header of its set, and appends it to `out`.
fn put((near, _): &LookupResult, out: &mut Vec<u8>) {
    out.push(u8::from(near.is_some()));
    if let Some(Dropped { other, near }) = near {
        match other {
            KeyBuf::U64(key) => {
                out.push(0);
                put_numbers(&[*key], out);
            }
            KeyBuf::Bytes(key) => {
                out.push(1);
                put_numbers(&[key.len() as u64], out);
                out.extend_from_slice(key);
            }
        }
        out.push(matches!(near, Score::Distance(_)).into());
        put_numbers(&[near.pack()], out);
    }
}

/// Decodes a lookup result that [`put`] encoded.
fn take(bytes: &mut ByteReader<'_>) -> Option<LookupResult> {
    let near = if bytes.byte()? == 0 {
        None
    } else {
        let other = if bytes.byte()? == 0 {
            KeyBuf::U64(bytes.u64()?)
        } else {
            let length = usize::try_from(bytes.u64()?).ok()?;
            KeyBuf::Bytes(bytes.take(length)?.into())
        };
        let kind = if bytes.byte()? == 0 { ScoreKind::Resemblance } else { ScoreKind::Distance };
        let near = kind.unpack(bytes.u64()?);
        Some(Dropped { other, near })
    };
    Some((near, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_result_round_trips_and_truncated_bytes_are_refused() {
        let key = || KeyBuf::Bytes(b"a key"[..].into());
        let nears = [Score::Resemblance { intersection: 3, union: 4 }, Score::Distance(2)];
        let mut all: Vec<LookupResult> = vec![(None, None)];
        let others = [key(), KeyBuf::U64(9)].into_iter().cycle();
        all.extend(nears.into_iter().zip(others).map(|(near, other)| (Some(Dropped { other, near }), None)));
        for looked in &all {
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            put(looked, &mut bytes);
            let mut rest = ByteReader(&bytes);
            put(&take(&mut rest).unwrap(), &mut again);
            assert!(rest.0.is_empty());
            assert_eq!(bytes, again);
            assert!((0..bytes.len()).all(|end| take(&mut ByteReader(&bytes[..end])).is_none()));
        }
    }

    #[test]
    fn words_round_trip_and_truncated_bytes_are_refused() {
        let set = StoredSet::from_numbers([1 << 33, 5 << 32 | 3, 800, u64::MAX]);
        let held: Vec<u8> =
            [&[1, 7, 2, 200, 1, 2][..], &9_u64.to_le_bytes(), &u64::MAX.to_le_bytes()].concat();
        let mut stored = vec![2];
        put_numbers(&set.numbers(), &mut stored);
        for (bytes, count) in [(vec![0], 0), (held, 2), (stored, 0), (vec![3, 0x90, 1], 144)] {
            let (mut reader, mut words) = (ByteReader(&bytes), vec![4]);
            let header = take_words(&mut reader, 144, &mut words).unwrap();
            assert!(reader.0.is_empty() && words.len() == 1 + count);
            match (bytes[0], header) {
                (1, header) => {
                    let held = DeltaHeader::from_numbers([7, 2, 200]).unwrap();
                    assert_eq!(header, Some(SetHeader::New(held.into())));
                }
                (2, header) => assert!(header.is_some_and(|header| header == SetHeader::Stored(set))),
                (_, header) => assert!(header.is_none(), "{bytes:?}"),
            }
            for end in 0..bytes.len() {
                assert!(take_words(&mut ByteReader(&bytes[..end]), 144, &mut Vec::new()).is_none());
            }
        }
        for wrong in [&[4, 0, 0][..], &[3, 0x91, 1]] {
            assert!(take_words(&mut ByteReader(wrong), 144, &mut Vec::new()).is_none());
        }
    }
}
