//! Inverse document frequencies: how much the occurrence of a shingle says of a document, by how few documents of a
//! collection have it.
//!
//! Spärck Jones, *A statistical interpretation of term specificity and its application in retrieval*, 1972. A simhash
//! whose shingles vote with these weights (weight of a shingle in a document = its occurrences x its inverse document
//! frequency) is decided by what is particular to a document, not by what every document has.
//!
//! **Weight.** A shingle that is in d of N documents has, in fixed point of 8 fractional bits, the weight
//! 256 (1 + log2((N + 1) / (d + 1))), rounded down, by integers alone, so that it is the same on every machine:
//!
//! ```text
//! a = N + 1;   b = d + 1                             0 <= d <= N < 2^32
//! e = the greatest with b * 2^e <= a
//! x = a * 2^63 / (b * 2^e), rounded down             2^63 <= x < 2^64
//! f = 0;  eight times:  y = x * x / 2^63, rounded down
//!                       if y >= 2^64:  f = 2 f + 1;  x = y / 2, rounded down
//!                       otherwise:     f = 2 f;      x = y
//! weight = 256 + 256 e + f                           256 to 8448
//! ```
//!
//! The logarithm comes bit by bit from squarings of a mantissa that is rounded down to 63 fractional bits; the steps
//! above, not the real logarithm, are the definition. The ones added to N and d keep shingles that no document has
//! apart from a division by zero.
//!
//! **Absent shingles.** A table need not have an entry for each shingle: rare ones are left out, as they are most of
//! all shingles and have nearly the same weight. A shingle without an entry is taken to have the least frequency
//! that was left out, or 0 if none was.
//!
//! **Look-up.** Beside the columns of the file the table has slots of 64 bits in the order of the hashes: the low 48
//! bits of a hash and its weight, and a directory over the upper bits, of about as many prefixes as entries, at least
//! 2^16, so that a prefix and 48 bits are all of a hash. A look-up reads two numbers of the directory and, without a
//! branch, the first four slots of the prefix; the few prefixes with more are searched by halves.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::{Path, PathBuf};

use zerocopy::little_endian::{U32, U64};

use crate::error::{Error, Result};
use crate::format::header::Refusal;
use crate::format::idf::{self, IDF_DOCUMENTS_MAX, IDF_ENTRIES_MAX};
use crate::params::{Params, Shingling, SimhashWeights};
use crate::sys::Spill;
use twindex_kernel::weighted::ITEMS_MAX;

use super::simhash::Fingerprint;
use super::weighted::{Votes, weighted};

/// The weight of a shingle that `frequency` of `documents` documents have: 256 (1 + log2((documents + 1) /
/// (frequency + 1))), rounded down by the steps that the [module](self) defines. A frequency above `documents` counts
/// as `documents`, which has the least weight, 256.
///
/// ```
/// use twindex::sketch::idf::weight;
///
/// assert_eq!(weight(1023, 1023), 256);
/// assert_eq!(weight(1023, 511), 512);
/// assert_eq!(weight(1023, 0), 256 * 11);
/// ```
#[must_use]
pub fn weight(documents: u32, frequency: u32) -> u16 {
    let (a, b) = (u128::from(documents) + 1, u128::from(frequency.min(documents)) + 1);
    // The greatest e with b * 2^e <= a is the difference of the logarithms, or one less.
    let mut exponent = a.ilog2() - b.ilog2();
    if b << exponent > a {
        exponent -= 1;
    }
    let mut mantissa = (a << 63) / (b << exponent);
    let mut fraction = 0;
    for _ in 0..8 {
        let square = (mantissa * mantissa) >> 63;
        let over = square >> 64; // 1 where the square of the mantissa is 2 or more
        fraction = fraction << 1 | over as u16;
        mantissa = square >> over;
    }
    256 + 256 * exponent as u16 + fraction
}

/// In how many documents of a collection each shingle is, and what it weighs for that.
///
/// Made by an [`IdfBuilder`]; never changed. Its [`digest`](Self::digest) stands in the parameters of an index
/// ([`SimhashWeights::Idf`]), so that fingerprints made by different tables are never compared; the table itself
/// stands in the index, see [`Index::create_with_idf`](crate::Index::create_with_idf).
///
/// Takes 24 to 28 bytes of memory an entry, and 256 KiB.
///
/// ```
/// use std::sync::Arc;
/// use twindex::Params;
/// use twindex::params::Shingling;
/// use twindex::sketch::{Buffers, IdfBuilder, Shingler, Sketcher};
///
/// let collection = ["the rose", "the tulip", "the tulip and the rose"];
/// let shingling = Shingling::words(1, 0);
/// let (shingler, mut counts) = (Shingler::new(&shingling)?, IdfBuilder::new(&shingling));
/// let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
/// for text in collection {
///     shingler.distinct(text, &mut buffers, &mut shingles);
///     counts.add(&shingles)?;
/// }
/// let table = Arc::new(counts.min_df(1).finish()?);
/// let params = Params::builder().shingling(shingling).simhash_weighted(3, table.weights()).build()?;
/// let sketcher = Sketcher::with_idf(&params, table)?;
/// // A tulip, in two documents of three, outweighs the article that all have.
/// let tulip = sketcher.sketch("the tulip")?;
/// assert_eq!(tulip.fingerprint(), sketcher.sketch("tulip")?.fingerprint());
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IdfTable {
    /// The file.
    bytes: Vec<u8>,
    digest: u128,
    documents: u32,
    absent: u32,
    shingling: Shingling,
    entries: usize,
    absent_weight: u16,
    /// For each prefix where its slots begin, and the number of slots.
    directory: Vec<u32>,
    /// Bits of a hash behind its prefix.
    shift: u32,
    /// Low 48 bits of a hash above 16 of its weight; [`AT_ONCE`] more at the end, which are none.
    slots: Vec<u64>,
}

/// Slots that a look-up reads whether they are of its prefix or not.
const AT_ONCE: usize = 4;
/// Fewest bits of a prefix: 48 more are in a slot.
const PREFIX_MIN: u32 = 16;

impl IdfTable {
    /// Reads the bytes of a file. [`store::idf`](crate::store::idf) opens files, and names them where this fails.
    ///
    /// # Errors
    /// A [`Refusal`] for bytes that [`to_bytes`](Self::to_bytes) of this version has not given.
    pub fn decode(bytes: Vec<u8>) -> std::result::Result<Self, Refusal> {
        let idf = idf::decode(&bytes)?;
        let entries = idf.hashes.len();
        let bits = if entries == 0 { 0 } else { entries.ilog2() + 1 }.max(PREFIX_MIN);
        let shift = 64 - bits;
        let mut directory = vec![0_u32; (1 << bits) + 1];
        let mut slots = Vec::with_capacity(entries + AT_ONCE);
        let (mut last, mut last_weight) = (0, weight(idf.documents, 0));
        for (hash, frequency) in idf.hashes.iter().zip(idf.frequencies) {
            let (hash, frequency) = (hash.get(), frequency.get());
            if frequency != last {
                (last, last_weight) = (frequency, weight(idf.documents, frequency));
            }
            directory[(hash >> shift) as usize + 1] += 1;
            slots.push(hash << 16 | u64::from(last_weight));
        }
        slots.resize(entries + AT_ONCE, 0);
        let mut before = 0;
        for count in &mut directory {
            before += *count; // at most the entries, which are fewer than 2^32
            *count = before;
        }
        let idf::Idf { digest, documents, absent, shingling, .. } = idf;
        let absent_weight = weight(documents, absent);
        Ok(Self {
            bytes,
            digest,
            documents,
            absent,
            shingling,
            entries,
            absent_weight,
            directory,
            shift,
            slots,
        })
    }

    /// The bytes of a file, as `format-spec.md` defines it.
    #[must_use]
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Identifies the table: two of the same digest give the same weights.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// What parameters say that use this table.
    #[must_use]
    pub fn weights(&self) -> SimhashWeights {
        SimhashWeights::Idf { table: self.digest }
    }

    /// Documents that were counted, those without shingles left out.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The frequency that a shingle without an entry is taken to have.
    #[must_use]
    pub fn absent(&self) -> u32 {
        self.absent
    }

    /// How the documents were cut; parameters that use the table must say the same.
    #[must_use]
    pub fn shingling(&self) -> &Shingling {
        &self.shingling
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// True for a table without entries, in which all shingles weigh the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The shingles and their frequencies, ascending by hash.
    ///
    /// Reads and checks the table's bytes once more, in linear time.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        // The bytes were decoded before, so they are again.
        let columns = idf::decode(&self.bytes).ok().map(|idf| (idf.hashes, idf.frequencies));
        let (hashes, frequencies) = columns.unwrap_or_default();
        hashes.iter().map(|hash| hash.get()).zip(frequencies.iter().map(|frequency| frequency.get()))
    }

    /// What an occurrence of this shingle weighs: [`weight`] of its frequency.
    #[must_use]
    #[inline]
    pub fn weight(&self, shingle: u64) -> u16 {
        let prefix = (shingle >> self.shift) as usize;
        let (start, end) = (self.directory[prefix] as usize, self.directory[prefix + 1] as usize);
        if end - start > AT_ONCE {
            return self.search(shingle, start, end);
        }
        // Slots behind the end may be of another prefix and have the same 48 bits; those are masked.
        let mut found = 0;
        for (place, slot) in (start..).zip(&self.slots[start..start + AT_ONCE]) {
            let same = (slot ^ shingle << 16) >> 16 == 0 && place < end;
            found |= if same { *slot as u16 } else { 0 }; // no weight is 0
        }
        if found == 0 { self.absent_weight } else { found }
    }

    #[cold]
    fn search(&self, shingle: u64, start: usize, end: usize) -> u16 {
        // Of one prefix, slots ascend as hashes do, by their low 48 bits.
        let slots = &self.slots[start..end];
        match slots.binary_search_by_key(&(shingle << 16 >> 16), |slot| slot >> 16) {
            Ok(place) => slots[place] as u16,
            Err(_) => self.absent_weight,
        }
    }

    /// The fingerprint of a document with these shingles, each occurrence a vote of its [`weight`](Self::weight):
    /// [`weighted`] by term frequency times inverse document frequency.
    ///
    /// Linear time, no allocation; the order of the shingles does not matter.
    #[must_use]
    pub fn simhash(&self, shingles: &[u64]) -> Fingerprint {
        let mut votes = Votes::default();
        let mut weights = [0; ITEMS_MAX];
        for some in shingles.chunks(ITEMS_MAX) {
            let weights = &mut weights[..some.len()];
            for (weight, &shingle) in weights.iter_mut().zip(some) {
                *weight = self.weight(shingle);
            }
            votes.add(some, weights);
        }
        votes.fingerprint()
    }

    /// The fingerprint of a vector whose weights are multiplied by those of the table.
    pub(super) fn vector(&self, features: &[(u64, i64)]) -> Fingerprint {
        // Weights of the table are below 2^14.
        if features.iter().all(|(_, value)| value.unsigned_abs() < 1 << 49) {
            return weighted(
                features.iter().map(|&(hash, value)| (hash, value * i64::from(self.weight(hash)))),
            );
        }
        let mut votes = Votes::default();
        for &(hash, value) in features {
            let hash_of_vote = if value < 0 { !hash } else { hash };
            votes.add_one(hash_of_vote, u128::from(value.unsigned_abs()) * u128::from(self.weight(hash)));
        }
        votes.fingerprint()
    }

    /// Refuses parameters that name another table, or none, or cut text in another way.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self, params: &Params) -> Result<()> {
        match params.simhash.map(|simhash| simhash.weights) {
            Some(SimhashWeights::Idf { table }) if table == self.digest => {
                self.check_shingling(&params.shingling)
            }
            Some(SimhashWeights::Idf { table }) => Err(Error::Invalid(format!(
                "the parameters name the idf table {table:032x}, and this is {:032x}",
                self.digest
            ))),
            _ => Err(Error::Invalid(
                "an idf table for parameters that have no use for it (simhash=idf has)".into(),
            )),
        }
    }

    /// Refuses to be used with documents that are cut in another way, naming the first line that differs.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_shingling(&self, shingling: &Shingling) -> Result<()> {
        for ((name, mine), (_, given)) in self.shingling.fields().into_iter().zip(shingling.fields()) {
            if mine != given {
                return Err(Error::Invalid(format!(
                    "the idf table was made with {name}={mine}, and cannot be used with {name}={given}; make \
                     another table, or cut text as this one says"
                )));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for IdfTable {
    /// Its digest and counts, not its entries.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdfTable")
            .field("digest", &format_args!("{:032x}", self.digest))
            .field("documents", &self.documents)
            .field("entries", &self.entries)
            .field("absent", &self.absent)
            .finish_non_exhaustive()
    }
}

/// Counts in how many documents each shingle is, and makes an [`IdfTable`] of that.
///
/// The table depends on the documents alone: not on their order, nor on [`memory`](Self::memory).
///
/// Counting sorts: shingles are collected up to the memory given, sorted and counted; what is counted and still too
/// large is a *run* that goes to a scratch file, and runs are merged at the end, 64 at once. Time O(n log n) for n
/// distinct shingles of all documents together, each counted in each of its documents; beside the memory given, 32
/// bytes for each entry of the table, and scratch space of at most 12 bytes for each of the n.
#[derive(Debug)]
pub struct IdfBuilder {
    shingling: Shingling,
    min_df: u32,
    entries_max: usize,
    memory: usize,
    scratch_dir: PathBuf,
    documents: u64,
    /// Shingles not counted yet: each once for each document that has it.
    fresh: Vec<u64>,
    /// Shingles and frequencies, ascending.
    counted: Vec<(u64, u32)>,
    /// Runs by level: one of level n + 1 is merged from [`FAN_IN`] of level n.
    levels: Vec<Runs>,
    distinct: Vec<u64>,
    /// Whether a scratch file failed, and with it some of what was counted was lost.
    failed: bool,
}

/// Runs that are merged at once.
const FAN_IN: usize = 64;
/// Bytes of an entry of a run.
const RUN_ENTRY: usize = 12;
/// The least memory.
const MEMORY_MIN: usize = 1 << 12;

/// Sorted runs, one behind the other in a scratch file.
#[derive(Debug)]
struct Runs {
    spill: Spill,
    /// Where each begins and ends.
    places: Vec<(u64, u64)>,
}

/// Takes the entries of a run, ascending.
type Write<'a> = dyn FnMut(u64, u32) -> io::Result<()> + 'a;

impl IdfBuilder {
    /// Counts documents that are cut in this way. Without further words, shingles of one document alone are left
    /// out, the million of the most frequent ones kept, and 256 MiB used.
    #[must_use]
    pub fn new(shingling: &Shingling) -> Self {
        Self {
            shingling: shingling.clone(),
            min_df: 2,
            entries_max: 1_000_000,
            memory: 256 << 20,
            scratch_dir: std::env::temp_dir(),
            documents: 0,
            fresh: Vec::new(),
            counted: Vec::new(),
            levels: Vec::new(),
            distinct: Vec::new(),
            failed: false,
        }
    }

    /// Leaves out shingles that fewer documents have; 2 at first.
    #[must_use]
    pub fn min_df(mut self, min_df: u32) -> Self {
        self.min_df = min_df;
        self
    }

    /// Keeps so many entries at most, 2^27 being the limit of the format: those of the greatest frequencies, and of
    /// equal ones the least hashes. 1,000,000 at first.
    #[must_use]
    pub fn entries_max(mut self, entries: usize) -> Self {
        self.entries_max = entries.min(IDF_ENTRIES_MAX as usize);
        self
    }

    /// Bytes of memory to count in, at least 4 KiB; 256 MiB at first. More is slower to fill and sooner done.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(MEMORY_MIN);
        self
    }

    /// Where to make scratch files, which have no name and go with the process; the system's folder for temporary
    /// files at first.
    #[must_use]
    pub fn scratch_dir(mut self, dir: &Path) -> Self {
        dir.clone_into(&mut self.scratch_dir);
        self
    }

    /// Counts a document by its shingles, in any order, repetitions being one; those that
    /// [`Shingler::distinct`](super::Shingler::distinct) gives, ascending, are taken without sorting. A document
    /// without shingles is not counted.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than 2^32 - 1 documents, [`Error::Io`] for the scratch file. After
    /// an error of the scratch file counts are lost, and all further calls give [`Error::Invalid`].
    pub fn add(&mut self, shingles: &[u64]) -> Result<()> {
        self.check_whole()?;
        if shingles.is_empty() {
            return Ok(());
        }
        if self.documents == IDF_DOCUMENTS_MAX {
            let (limit, found) = (IDF_DOCUMENTS_MAX, IDF_DOCUMENTS_MAX + 1);
            return Err(Error::Limit { what: "documents of an idf table", limit, found });
        }
        self.documents += 1;
        let mut distinct = std::mem::take(&mut self.distinct);
        let ascending = shingles.is_sorted_by(|a, b| a < b);
        if !ascending {
            distinct.clear();
            distinct.extend_from_slice(shingles);
            distinct.sort_unstable();
            distinct.dedup();
        }
        let mut rest = if ascending { shingles } else { &distinct };
        // An eighth of the memory is for what is not counted yet, so that its entries, of twice the size, take a
        // quarter; another is for what was counted before, and a half for both together.
        let mut taken = Ok(());
        while !rest.is_empty() && taken.is_ok() {
            let room = (self.memory / 8 / size_of::<u64>()).saturating_sub(self.fresh.len()).max(1);
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.fresh.extend_from_slice(now);
            rest = later;
            if now.len() == room {
                taken = self.count();
            }
        }
        self.distinct = distinct;
        taken
    }

    fn check_whole(&self) -> Result<()> {
        if self.failed {
            let dir = self.scratch_dir.display();
            return Err(Error::Invalid(format!(
                "the counts of an idf table were lost with a scratch file in {dir}; count the documents again"
            )));
        }
        Ok(())
    }

    /// Counts what is fresh, and makes a run of all if it takes too much memory.
    fn count(&mut self) -> Result<()> {
        let counted = self.try_count();
        self.failed |= counted.is_err();
        counted
    }

    fn try_count(&mut self) -> Result<()> {
        self.fresh.sort_unstable();
        let equal = self.fresh.chunk_by(|a, b| a == b);
        let mut new = equal.map(|equal| (equal[0], equal.len() as u32)).peekable(); // no more than documents
        let mut old = self.counted.iter().copied().peekable();
        let mut merged = Vec::with_capacity(self.counted.len() + self.fresh.len());
        while let (Some(&(a, count)), Some(&(b, more))) = (old.peek(), new.peek()) {
            merged.push(match a.cmp(&b) {
                Ordering::Less => (a, count),
                Ordering::Greater => (b, more),
                Ordering::Equal => (a, count + more),
            });
            if a <= b {
                old.next();
            }
            if b <= a {
                new.next();
            }
        }
        merged.extend(old);
        merged.extend(new);
        self.counted = merged;
        self.fresh.clear();
        if self.counted.len() * size_of::<(u64, u32)>() > self.memory / 4 {
            let counted = std::mem::take(&mut self.counted);
            self.spill(0, &|write| counted.iter().try_for_each(|&(hash, count)| write(hash, count)))?;
        }
        Ok(())
    }

    /// Writes a run of a level, and merges the level into the next if it is full.
    fn spill(&mut self, level: usize, run: &dyn Fn(&mut Write<'_>) -> io::Result<()>) -> Result<()> {
        let dir = self.scratch_dir.clone();
        let failed = |error| Error::io("use a scratch file in", &dir, error);
        if self.levels.len() == level {
            self.levels.push(Runs { spill: Spill::create(&dir).map_err(failed)?, places: Vec::new() });
        }
        let Runs { spill, places } = &mut self.levels[level];
        let start = spill.len();
        run(&mut |hash, count| {
            let mut entry = [0; RUN_ENTRY];
            entry[..8].copy_from_slice(&hash.to_le_bytes());
            entry[8..].copy_from_slice(&count.to_le_bytes());
            spill.append(&entry).map(drop)
        })
        .map_err(failed)?;
        places.push((start, spill.len()));
        if places.len() == FAN_IN {
            let full = Runs { spill: Spill::create(&dir).map_err(failed)?, places: Vec::new() };
            let full = std::mem::replace(&mut self.levels[level], full);
            let memory = self.memory;
            self.spill(level + 1, &|write| merge(std::slice::from_ref(&full), &[], memory, write))?;
        }
        Ok(())
    }

    /// The table of the documents counted.
    ///
    /// # Errors
    /// [`Error::Io`] for the scratch file, [`Error::Invalid`] where it failed before.
    pub fn finish(mut self) -> Result<IdfTable> {
        self.check_whole()?;
        self.count()?;
        self.fresh = Vec::new();
        let mut kept = Kept { entries: Vec::new(), most: self.entries_max, dropped: None };
        let min_df = self.min_df;
        merge(&self.levels, &self.counted, self.memory, &mut |hash, frequency| {
            if frequency < min_df {
                kept.drop(frequency);
            } else {
                kept.push(hash, frequency);
            }
            Ok(())
        })
        .map_err(|error| Error::io("use a scratch file in", &self.scratch_dir, error))?;
        kept.prune();
        let absent = kept.dropped.unwrap_or(0);
        let mut entries = kept.entries;
        entries.sort_unstable_by_key(|entry| entry.0);
        let hashes: Vec<U64> = entries.iter().map(|entry| U64::new(entry.0)).collect();
        let frequencies: Vec<U32> = entries.iter().map(|entry| U32::new(entry.1)).collect();
        drop(entries);
        let bytes = idf::encode(self.documents as u32, absent, &self.shingling, &hashes, &frequencies);
        // The bytes are as sound as the machine is.
        IdfTable::decode(bytes)
            .map_err(|refusal| Error::Invalid(format!("the idf table just made: {refusal:?}")))
    }
}

/// The entries of the greatest frequencies so far.
struct Kept {
    entries: Vec<(u64, u32)>,
    most: usize,
    /// The least frequency that was left out.
    dropped: Option<u32>,
}

impl Kept {
    fn drop(&mut self, frequency: u32) {
        self.dropped = Some(self.dropped.map_or(frequency, |least| least.min(frequency)));
    }

    fn push(&mut self, hash: u64, frequency: u32) {
        self.entries.push((hash, frequency));
        if self.entries.len() >= 2 * self.most + 1024 {
            self.prune();
        }
    }

    /// Leaves the `most` that come first. What is left out now would be left out at the end, too.
    fn prune(&mut self) {
        if self.entries.len() <= self.most {
            return;
        }
        self.entries.select_nth_unstable_by_key(self.most, |&(hash, frequency)| (Reverse(frequency), hash));
        for (_, frequency) in self.entries.split_off(self.most) {
            self.drop(frequency);
        }
    }
}

/// Hands out the sum of all runs and of `counted`, ascending.
fn merge(levels: &[Runs], counted: &[(u64, u32)], memory: usize, write: &mut Write<'_>) -> io::Result<()> {
    let runs: usize = levels.iter().map(|level| level.places.len()).sum();
    let buffer = (memory / 4 / RUN_ENTRY / runs.max(1)).clamp(16, 1 << 14) * RUN_ENTRY;
    let places = levels.iter().flat_map(|level| level.places.iter().map(|place| (&level.spill, *place)));
    let mut readers: Vec<RunReader<'_>> = places
        .map(|(spill, (at, end))| RunReader { spill, at, end, buffer: Vec::new(), used: 0, size: buffer })
        .collect();
    let mut counted = counted.iter().copied();
    let mut next = |source: usize| -> io::Result<Option<(u64, u32)>> {
        readers.get_mut(source).map_or_else(|| Ok(counted.next()), RunReader::next)
    };
    // The least of what is next in each source; the last source is `counted`.
    let mut heap = BinaryHeap::new();
    for source in 0..=runs {
        if let Some((hash, count)) = next(source)? {
            heap.push(Reverse((hash, source, count)));
        }
    }
    let mut sum: Option<(u64, u32)> = None;
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((hash, source, count)) = *least;
        match next(source)? {
            Some((hash, count)) => *least = Reverse((hash, source, count)),
            None => drop(PeekMut::pop(least)),
        }
        sum = match sum {
            // No sum is above the number of documents, which fits.
            Some((same, before)) if same == hash => Some((hash, before + count)),
            Some((other, total)) => {
                write(other, total)?;
                Some((hash, count))
            }
            None => Some((hash, count)),
        };
    }
    sum.map_or(Ok(()), |(hash, total)| write(hash, total))
}

/// Reads a run from its start.
struct RunReader<'a> {
    spill: &'a Spill,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    size: usize,
}

impl RunReader<'_> {
    fn next(&mut self) -> io::Result<Option<(u64, u32)>> {
        if self.used == self.buffer.len() {
            let length = (self.end - self.at).min(self.size as u64);
            if length == 0 {
                return Ok(None);
            }
            self.buffer.resize(length as usize, 0);
            self.spill.read_exact_at(&mut self.buffer, self.at)?;
            (self.at, self.used) = (self.at + length, 0);
        }
        let entry = &self.buffer[self.used..self.used + RUN_ENTRY];
        self.used += RUN_ENTRY;
        let hash = u64::from_le_bytes(std::array::from_fn(|i| entry[i]));
        Ok(Some((hash, u32::from_le_bytes(std::array::from_fn(|i| entry[8 + i])))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::hash::mix;
    use super::super::{Scratch, Sketch, Sketcher};
    use super::*;
    use crate::params::Tokens;

    #[test]
    fn weights_are_the_logarithm_rounded_down() {
        let real = |n: u32, df: u32| 256.0 * (1.0 + ((f64::from(n) + 1.0) / (f64::from(df) + 1.0)).log2());
        for n in (0..300).chain([999, 1000, 65_535, 1 << 20, 12_345_678, u32::MAX - 1, u32::MAX]) {
            let some =
                [0, 1, 2, 3, 5, 7, 100, 1 << 10, 1 << 31, u32::MAX].into_iter().chain([n / 3, n / 2, n]);
            for df in some.filter(|&df| df <= n) {
                let (exact, found) = (real(n, df), f64::from(weight(n, df)));
                // Where the logarithm is a whole number but for the error of floats, either may be right.
                let close = (exact - exact.round()).abs() < 1e-9 && (found - exact).abs() < 1.0 + 1e-9;
                assert!(
                    (found - exact.floor()).abs() < 0.5 || close,
                    "N = {n}, df = {df}: {found} for {exact}"
                );
            }
        }
        for e in 0..32 {
            assert_eq!(weight(u32::MAX, ((1_u64 << e) - 1) as u32), 256 * (33 - e), "2^32 / 2^{e} exactly");
        }
        assert_eq!((weight(0, 0), weight(5, 9), weight(u32::MAX, u32::MAX)), (256, 256, 256));
    }

    #[test]
    fn a_rarer_shingle_never_weighs_less() {
        for n in [1, 2, 10, 1000, 70_000] {
            let weights: Vec<u16> = (0..=n).map(|df| weight(n, df)).collect();
            assert!(weights.is_sorted_by(|a, b| a >= b), "N = {n}");
        }
    }

    type Counts = BTreeMap<u64, u32>;

    /// The definition: what is kept, and the frequency of what is not.
    fn naive(documents: &[Vec<u64>], min_df: u32, most: usize) -> (Vec<(u64, u32)>, u32) {
        let mut counts = Counts::new();
        for document in documents {
            for &shingle in &std::collections::BTreeSet::from_iter(document) {
                *counts.entry(*shingle).or_default() += 1;
            }
        }
        let mut ranked: Vec<(u64, u32)> = counts.into_iter().collect();
        ranked.sort_by_key(|&(hash, df)| (Reverse(df), hash));
        let keep = ranked.iter().take(most).filter(|entry| entry.1 >= min_df).count();
        let dropped = ranked.split_off(keep).into_iter().map(|entry| entry.1).min().unwrap_or(0);
        ranked.sort_unstable();
        (ranked, dropped)
    }

    fn table(documents: &[Vec<u64>], change: impl FnOnce(IdfBuilder) -> IdfBuilder) -> IdfTable {
        let mut builder = change(IdfBuilder::new(&Shingling::words(1, 0)));
        for document in documents {
            builder.add(document).unwrap();
        }
        builder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn a_table_has_the_frequencies_whatever_the_order_and_the_memory(
            documents in proptest::collection::vec(proptest::collection::vec(0_u64..40, 0..30), 0..30),
            min_df in 0_u32..4, most in 0_usize..50, turn in 0_usize..30,
        ) {
            let documents: Vec<Vec<u64>> =
                documents.into_iter().map(|d| d.into_iter().map(|i| mix(i * i % 97)).collect()).collect();
            let found = table(&documents, |b| b.min_df(min_df).entries_max(most));
            let (entries, dropped) = naive(&documents, min_df, most);
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), entries.clone());
            prop_assert_eq!(found.absent(), dropped);
            prop_assert_eq!(found.documents() as usize, documents.iter().filter(|d| !d.is_empty()).count());
            for i in 0..97 {
                let df = entries.iter().find(|entry| entry.0 == mix(i)).map_or(dropped, |entry| entry.1);
                prop_assert_eq!(found.weight(mix(i)), weight(found.documents(), df));
            }
            let mut turned = documents;
            let turn = turn % turned.len().max(1);
            turned.rotate_left(turn);
            for document in &mut turned {
                document.sort_unstable();
                document.dedup();
            }
            let again = table(&turned, |b| b.min_df(min_df).entries_max(most).memory(0));
            prop_assert_eq!(again.to_bytes(), found.to_bytes());
        }
    }

    /// 64 runs are merged into one, and those again: with 4 KiB a run has 64 entries at least.
    #[test]
    fn runs_of_several_levels_make_the_same_table() {
        let documents: Vec<Vec<u64>> =
            (0..900).map(|i| (0..=i % 700).map(|j| mix((i * 31 + j * j * 7) % 90_000)).collect()).collect();
        let in_memory = table(&documents, |b| b.entries_max(20_000));
        assert!(in_memory.len() > 10_000);
        let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).entries_max(20_000).memory(0);
        for document in documents.iter().rev() {
            builder.add(document).unwrap();
        }
        assert!(builder.levels.len() >= 2, "{} levels", builder.levels.len());
        assert!(builder.fresh.capacity() * 8 + builder.counted.capacity() * 16 <= MEMORY_MIN);
        assert_eq!(builder.finish().unwrap(), in_memory);
        assert_eq!(in_memory.iter().collect::<Vec<_>>(), naive(&documents, 2, 20_000).0);
    }

    #[test]
    fn a_scratch_folder_that_is_not_there_is_an_error() {
        let mut builder =
            IdfBuilder::new(&Shingling::words(1, 0)).memory(0).scratch_dir(Path::new("no/such/folder"));
        let many: Vec<u64> = (0..10_000).map(mix).collect();
        let error = builder.add(&many).unwrap_err().to_string();
        assert!(error.contains("no/such/folder"), "{error}");
    }

    /// All hashes of one prefix, of none, of neighbours with the same low bits.
    #[test]
    fn look_ups_find_hashes_that_crowd() {
        for crowd in [1_u64, 4, 5, 6, 100, 3000] {
            let all: Vec<u64> = (0..crowd)
                .flat_map(|i| [i, i << 48, (7 << 48) | (i * 3), u64::MAX - i, mix(i), (8 << 48) | (i * 3)])
                .collect();
            // Two documents more have half of them, so that there are two weights.
            let half: Vec<u64> = all.iter().copied().step_by(2).collect();
            let found = table(&[all.clone(), half.clone(), half.clone()], |b| b.min_df(1));
            let df = |hash: u64| u32::from(all.contains(&hash)) + 2 * u32::from(half.contains(&hash));
            let near = all.iter().flat_map(|&h| [h, h ^ 1, h ^ 1 << 48, h ^ 1 << 63, h.wrapping_add(1)]);
            for hash in near {
                assert_eq!(found.weight(hash), weight(3, df(hash)), "{hash:016x} among {crowd}");
            }
        }
    }

    fn with_table(table: &Arc<IdfTable>) -> Result<Sketcher> {
        let builder = Params::builder().shingling(table.shingling().clone());
        let params = builder.simhash_weighted(3, table.weights()).minhash(6, 14).build().unwrap();
        Sketcher::with_idf(&params, Arc::clone(table))
    }

    #[test]
    fn a_fingerprint_is_that_of_occurrences_times_the_tables_weights() {
        let documents: Vec<Vec<u64>> = (1..50).map(|i| (0..i).map(mix).collect()).collect();
        let table = table(&documents, |b| b);
        for n in [0_u64, 1, 2, 255, 256, 257, 1000] {
            let shingles: Vec<u64> = (0..n).map(|i| mix(i * i % 61)).collect();
            let weights = shingles.iter().map(|&s| (s, i64::from(table.weight(s))));
            assert_eq!(table.simhash(&shingles), weighted(weights), "{n} shingles");
            let vector: Vec<(u64, i64)> = (0..n).map(|i| (mix(i), i.cast_signed() - 40)).collect();
            let product = |scale: i64| vector.iter().map(move |&(h, v)| (h, v * scale));
            let expected = weighted(product(1).map(|(h, v)| (h, v * i64::from(table.weight(h)))));
            assert_eq!(table.vector(&vector), expected);
            assert_eq!(table.vector(&product(1 << 45).collect::<Vec<_>>()), expected, "only ratios matter");
        }
        assert_eq!(table.vector(&[(1, i64::MIN), (2, i64::MAX)]).0, !1);
    }

    #[test]
    fn a_sketcher_with_a_table_weights_texts_and_features_by_it() {
        let mut shingling = Shingling::words(1, 0);
        let plain = Sketcher::new(&Params::builder().words(1).minhash(6, 14).build().unwrap()).unwrap();
        let documents: Vec<Vec<u64>> = ["the rose", "the tulip", "the lily"]
            .map(|text| text.split(' ').map(|word| plain.feature(word.as_bytes())).collect())
            .into();
        let of_words = Arc::new(table(&documents, |b| b.min_df(1)));
        let sketch = with_table(&of_words).unwrap().sketch("the rose the").unwrap();
        let [the, rose] = ["the", "rose"].map(|word| plain.feature(word.as_bytes()));
        assert_eq!((of_words.weight(the), of_words.weight(rose)), (256, 512));
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 512), (rose, 512)])));
        assert_eq!(sketch.signature(), plain.sketch("the rose").unwrap().signature());

        shingling = shingling.with_tokens(Tokens::Features).unwrap();
        let mut builder = IdfBuilder::new(&shingling).min_df(1);
        for document in &documents {
            builder.add(document).unwrap();
        }
        let sketcher = with_table(&Arc::new(builder.finish().unwrap())).unwrap();
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        sketcher.sketch_features(&[the, rose, rose], &mut scratch, &mut sketch).unwrap();
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 1), (rose, 4)])));
        sketcher.sketch_weighted(&[(the, 9), (rose, 4)], &mut scratch, &mut sketch).unwrap();
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 9), (rose, 8)])));
    }

    #[test]
    fn a_builder_that_lost_its_scratch_file_makes_no_table() {
        let gone = tempfile::tempdir().unwrap().path().join("gone");
        let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).memory(0).scratch_dir(&gone);
        let failed = (0..10_000).find_map(|i| builder.add(&[mix(i)]).err()).unwrap();
        assert!(matches!(failed, Error::Io { .. }), "{failed:?}");
        let again = builder.add(&[1]).unwrap_err();
        assert!(matches!(&again, Error::Invalid(why) if why.contains("were lost")), "{again:?}");
        assert!(matches!(builder.finish(), Err(Error::Invalid(_))));
    }

    #[test]
    fn parameters_that_name_another_table_or_cut_otherwise_are_refused() {
        let table = Arc::new(table(&[vec![1, 2], vec![2, 3]], |b| b));
        let builder = || Params::builder().words(1);
        let refused =
            |params: Params| Sketcher::with_idf(&params, Arc::clone(&table)).unwrap_err().to_string();
        let other = SimhashWeights::Idf { table: 5 };
        let named = builder().simhash_weighted(3, table.weights());
        for (params, part) in [
            (builder().simhash(3).build().unwrap(), "simhash=idf"),
            (builder().simhash_weighted(3, other).build().unwrap(), "00000005, and this is"),
            (named.clone().words(2).build().unwrap(), "width=1, and cannot be used with width=2"),
            (named.clone().seed(4).build().unwrap(), "seed=0, and cannot be used with seed=4"),
        ] {
            let error = refused(params);
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = Sketcher::new(&named.build().unwrap()).unwrap_err().to_string();
        assert!(error.contains("simhash=idf") && error.contains("with_idf"), "{error}");
    }
}
