//! Finds t-grams (runs of `t` words) that many documents share: a filter of fixed size counts their fingerprints, and
//! an external sort then counts the t-grams of frequent fingerprints exactly.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use twindex::extsort::{Record, Sorter};
use twindex::params::Shingling;
use twindex::sys::{RealVfs, Spill, Vfs};
use twindex::{Error, Result};

use crate::passages::boilerplate::format::{
    DIGEST_BYTES, ListHeader, ListTotals, SPAN_BYTES, digest_of, span_to_bytes,
};
use crate::passages::find::filter::block_of;
use crate::passages::find::finder::FinderScratch;
use crate::passages::find::hashed::Hashed;

/// Number of counters in a block. A block fills one cache line.
const BLOCK: usize = 64;

/// A counting filter (Fan, Cao, Almeida and Broder, *Summary cache*, 2000) with one-byte counters, which saturate at
/// `more_than` + 1, at most 255.
///
/// Each fingerprint has two counters, in the same block of 64 bytes. A fingerprint that occurs in more than `more_than`
/// documents is always reported. A rarer fingerprint is reported if both of its counters saturate, either by collisions
/// or because `more_than` is above 254. These false positives cost time but change no result. Several threads may count
/// at the same time, in any order.
#[derive(Debug)]
pub struct SharedGrams {
    counters: Vec<AtomicU8>,
    blocks: u64,
    /// The value at which counters saturate.
    enough: u8,
}

impl SharedGrams {
    /// Creates a filter of up to `memory` bytes, at least one block, for fingerprints that occur in more than `more_than`
    /// documents.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the memory cannot be allocated.
    pub fn new(memory: usize, more_than: u32) -> Result<Self> {
        let blocks = (memory / BLOCK).max(1);
        let mut counters = Vec::new();
        counters.try_reserve_exact(blocks * BLOCK).map_err(|_| {
            Error::Invalid(format!("memory: {memory} bytes for a filter are not available; give less memory"))
        })?;
        counters.resize_with(blocks * BLOCK, AtomicU8::default);
        let enough = u8::try_from(more_than.saturating_add(1)).unwrap_or(u8::MAX);
        Ok(Self { counters, blocks: blocks as u64, enough })
    }

    /// Returns the two distinct counters of a fingerprint.
    #[inline]
    fn of(&self, fingerprint: u64) -> [&AtomicU8; 2] {
        let block = block_of(fingerprint, self.blocks) * BLOCK;
        // The minimum of a window is biased in its high bits only, so the low bits choose the counters in the block.
        let (first, second) = (fingerprint as usize % BLOCK, (fingerprint >> 6) as usize % BLOCK);
        let second = if first == second { (second + 1) % BLOCK } else { second };
        [&self.counters[block + first], &self.counters[block + second]]
    }

    /// Counts a fingerprint: a 64-bit hash, or the minimum of several hashes. Must be called once for each document
    /// that selects the fingerprint.
    #[inline]
    pub fn count(&self, fingerprint: u64) {
        for counter in self.of(fingerprint) {
            let more = |count: u8| (count < self.enough).then(|| count + 1);
            // The update fails only if the counter is saturated; the counter then keeps its value.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Returns whether a fingerprint may occur in more than `more_than` documents. May be a false positive, but never a
    /// false negative.
    #[inline]
    #[must_use]
    pub fn is_shared(&self, fingerprint: u64) -> bool {
        self.of(fingerprint).iter().all(|counter| counter.load(Ordering::Relaxed) >= self.enough)
    }
}

/// A t-gram, and the number of documents in which it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GramCount {
    hash: [u64; 2],
    documents: u32,
}

impl Record for GramCount {
    const HEAD: usize = 20;

    #[inline]
    fn put(&self, bytes: &mut Vec<u8>) {
        for half in self.hash {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        bytes.extend_from_slice(&self.documents.to_le_bytes());
    }

    #[inline]
    fn take(bytes: &[u8], record: &mut Option<Self>) {
        let number = |at: usize, size: usize| {
            let bytes = bytes.get(at..at + size)?;
            Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
        };
        let parts = number(0, 8).zip(number(8, 8)).zip(number(16, 4));
        *record = parts.map(|((a, b), documents)| Self { hash: [a, b], documents: documents as u32 });
    }

    #[inline]
    fn absorb(&mut self, next: &Self) -> bool {
        let same = self.hash == next.hash;
        self.documents = self.documents.saturating_add(if same { next.documents } else { 0 });
        same
    }
}

impl FinderScratch {
    /// First pass: counts each fingerprint that the document selects, once per document.
    pub fn count_shared(&mut self, hashed: &Hashed, shared: &SharedGrams) {
        self.for_each_distinct_selected(hashed, |fingerprint| shared.count(fingerprint));
    }

    /// Second pass: appends to `grams` the hashes of all t-grams whose fingerprint `shared` reports, ascending and
    /// distinct.
    pub fn append_shared(&mut self, hashed: &Hashed, shared: &SharedGrams, grams: &mut Vec<[u64; 2]>) {
        self.append_wanted(hashed, |fingerprint| shared.is_shared(fingerprint), grams);
    }

    /// Appends to `grams` the hashes of all t-grams whose selected fingerprint `is_wanted` accepts, ascending and
    /// distinct.
    pub fn append_wanted(
        &mut self,
        hashed: &Hashed,
        is_wanted: impl FnMut(u64) -> bool,
        grams: &mut Vec<[u64; 2]>,
    ) {
        let start = grams.len();
        self.for_each_gram(hashed, is_wanted, |gram| grams.push(gram.hash));
        let own = &mut grams[start..];
        own.sort_unstable();
        let mut kept = usize::from(!own.is_empty());
        for at in 1..own.len() {
            if own[at] != own[kept - 1] {
                own[kept] = own[at];
                kept += 1;
            }
        }
        grams.truncate(start + kept);
    }
}

/// Collects the t-grams of documents, and writes the list of frequent t-grams.
#[derive(Debug)]
pub struct Builder {
    folder: PathBuf,
    sorter: Sorter<GramCount>,
    documents: u64,
}

impl Builder {
    /// Creates an empty builder. It sorts in up to `memory` bytes, then in scratch files in `folder`.
    #[must_use]
    pub fn new(folder: &Path, memory: usize) -> Self {
        Self { folder: folder.to_owned(), sorter: Sorter::new(folder, memory), documents: 0 }
    }

    /// Adds a document, given by the hashes of its t-grams, which must be distinct.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file.
    pub fn push(&mut self, grams: &[[u64; 2]]) -> Result<()> {
        self.documents += 1;
        grams.iter().try_for_each(|&hash| self.sorter.push(GramCount { hash, documents: 1 }))
    }

    /// Adds a t-gram that the caller has counted in `documents` documents. Use [`of_documents`](Self::of_documents) to
    /// set the total number of documents.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file.
    pub fn push_counted(&mut self, hash: [u64; 2], documents: u32) -> Result<()> {
        self.sorter.push(GramCount { hash, documents })
    }

    /// Sets the total number of documents, which [`push_counted`](Self::push_counted) does not count.
    pub fn of_documents(&mut self, documents: u64) {
        self.documents = documents;
    }

    /// Writes the list of all t-grams of `words` words that occur in more than `more_than` documents to `path`. The file
    /// must not exist. `shingling` specifies how texts are split into words.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn finish(self, path: &Path, (words, more_than): (u32, u32), shingling: &Shingling) -> Result<()> {
        let Self { folder, sorter, documents } = self;
        let failed = |op: &'static str| {
            let folder = &folder;
            move |error| Error::io(op, folder, error)
        };
        let sorted = sorter.finish()?;
        let mut spans = Spill::create(&folder).map_err(failed("create a scratch file in"))?;
        sorted.for_each(|GramCount { hash, documents }| {
            if documents > more_than {
                spans.append(&span_to_bytes(hash)).map_err(failed("write a scratch file in"))?;
            }
            Ok::<_, Error>(())
        })?;
        drop(sorted);
        let settings = shingling.encode();
        let header = ListHeader {
            counted: ListTotals { words, more_than, documents },
            seed: shingling.seed,
            spans: spans.len() / SPAN_BYTES as u64,
            settings_bytes: settings.len() as u64,
        };
        let head = header.to_bytes();
        let mut some = vec![0; 1 << 18];
        let mut each_piece = |each: &mut dyn FnMut(&[u8]) -> Result<()>| {
            let mut at = 0;
            while at < spans.len() {
                let length = (some.len() as u64).min(spans.len() - at) as usize;
                let read = spans.read_exact_at(&mut some[..length], at);
                read.map_err(failed("read a scratch file in"))?;
                each(&some[..length])?;
                at += length as u64;
            }
            Ok::<(), Error>(())
        };
        let mut read = Ok::<(), Error>(());
        let digest = digest_of(|add| {
            add(&head);
            add(settings.as_bytes());
            read = each_piece(&mut |piece| {
                add(piece);
                Ok(())
            });
        });
        read?;
        let dir = path.parent().unwrap_or(Path::new("."));
        let mut file =
            RealVfs.create_temporary(dir).map_err(|error| Error::io("create a file in", dir, error))?;
        let mut append = |bytes: &[u8]| file.append(bytes).map_err(|error| Error::io("write", path, error));
        append(&head)?;
        const { assert!(DIGEST_BYTES == 16) }
        append(&digest.to_le_bytes())?;
        append(settings.as_bytes())?;
        each_piece(&mut append)?;
        file.sync().map_err(|error| Error::io("sync", path, error))?;
        file.publish(path, false).map_err(|error| Error::io("give its name to", path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_finds_all_frequent_grams_and_few_others() {
        for more_than in [1, 4, 200, 300, u32::MAX] {
            let (common, rare) = (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);
            let filter = SharedGrams::new(1 << 12, more_than).unwrap();
            let times = more_than.min(400);
            std::thread::scope(|scope| {
                for part in [times / 2, times - times / 2] {
                    let filter = &filter;
                    scope.spawn(move || (0..part).for_each(|_| filter.count(common)));
                }
            });
            filter.count(rare);
            // Counters saturate at 255, so for thresholds above 254, saturated fingerprints are reported.
            assert_eq!(filter.is_shared(common), more_than >= 255, "{more_than}");
            filter.count(common);
            assert!(filter.is_shared(common), "{more_than}");
            assert!(!filter.is_shared(rare), "{more_than}");
        }
        let min = SharedGrams::new(0, 1).unwrap();
        (0..64).for_each(|fingerprint| (0..2).for_each(|_| min.count(fingerprint << 58 | fingerprint)));
        assert!((0..64).all(|fingerprint| min.is_shared(fingerprint << 58 | fingerprint)));
    }
}
