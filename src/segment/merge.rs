//! Merges segments. The output is byte for byte the segment that [`build`](super::build::build) writes for the live records
//! of the inputs.
//!
//! 1. Merge the keys. The ordinal of a record is the rank of its key. So the new ordinals of the records of an input
//!    ascend with their old ordinals.
//! 2. Compute the salt, which is a sum of hashes: add the salts of the inputs, and subtract the hashes of dropped records.
//! 3. Replace the ordinals in each input's table 1 by new ones. Each input yields an ascending run of (fingerprint,
//!    ordinal), which is read lazily if the input's map of ordinals is in memory. Merging the runs yields distinct
//!    fingerprints, ranks and postings.
//! 4. Build all other tables from table 1, as for a new segment. Partial tables are built by distribution (`partial`),
//!    in two passes over their values. Merging the tables of the inputs would take as many passes. It would also
//!    require directories and entries of equal width, but the widths depend on the number of rows.
//! 5. Map and merge each band. Copy signatures and samples in the order of keys.
//!
//! Uses the memory budget plus a thousandth of the size of the files. Maps of ordinals and runs that exceed the budget
//! spill to scratch files. If the map of an input exceeds its share of the budget, the input is read several times:
//! once for each range ("stripe") of ordinals.
//!
//! All input is checked: keys and fingerprints ascend, ranks agree with postings, and each band lists each document
//! with a sketch once. The salts of the inputs are not recomputed; only [`verify`](Segment::verify) does this. If the
//! salt of an input is wrong, the salt of the output is wrong, too.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use roaring::RoaringBitmap;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use super::attached::{write_stamps, write_values};
use super::build::{
    BuiltSegment, DistinctFingerprints, begin, encode_tables, put_all, write_bands, write_numbers,
    write_parts,
};
use super::file::SectionReader;
use super::open::{self, Keys, Segment};
use super::output::SegmentOutput;
use super::records::{RecordSketch, record_hash};
use super::scan::PostingsInOrder;
use super::sets::{SETS, SetVisitor, encode_sets};
use super::sorted::{RadixSorter, RunMerge, SortedRun};
use super::spilled::{ChunkedValues, SliceSource, SpillBudget, SpillColumn, SpilledParts, pair};
use crate::design::Scheme;
use crate::error::{Error, Result};
use crate::extsort;
use crate::format::attached::Stamps;
use crate::format::code_parts::Cut;
use crate::format::contents::{Kind, Section};
use crate::format::keys::{self, Frame, FrontEncoder, GROUP};
use crate::format::ranks::{self, NO_RANK};
use crate::format::table::planes::Walk;
use crate::format::table::{Columns, Layout, Planes};
use crate::format::wire::{self, Fault};
use crate::format::{DOCUMENTS_MAX, attached, fields, postings, samples, signatures};
use crate::key::KeyBuf;
use crate::params::{KeyKind, Params};
use crate::planner::codes::choose as choose_cut;
use crate::sys::threads::both;
use crate::sys::vfs::Vfs;
use twindex_kernel::prefetch;

/// A segment to merge, and the ordinals of its documents that are no longer live.
#[derive(Clone, Copy, Debug)]
pub struct MergeInput<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// Ordinals of the documents that are no longer live.
    pub deleted: &'a RoaringBitmap,
}

/// Ranks and new ordinals are prefetched for the document that is this many documents ahead.
const AHEAD: usize = 24;
/// The new ordinal of a dropped document.
const LEFT_OUT: u32 = u32::MAX;
/// Maximum number of keys read at once.
const KEYS: u64 = 1 << 10;
/// Average number of fingerprints in a range that one thread merges.
const PIECE: u64 = 1 << 16;
/// Number of bytes that are collected before they are written.
const COPIED: usize = 1 << 16;

/// Merges segments, which are given from the oldest to the newest. If a key is live in several inputs, the record of
/// the newest of these is kept. The output may have no documents.
///
/// Takes O(n log n) time in the worst case, and O(n) for random fingerprints. Uses the memory budget plus a thousandth of
/// the size of the files.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`]; [`Error::Invalid`] if the segments have different parameters or there are none;
/// [`Error::Limit`] for more than 2^30 documents.
pub fn merge(
    inputs: &[MergeInput<'_>],
    vfs: &dyn Vfs,
    dir: &Path,
    budget: SpillBudget<'_>,
) -> Result<BuiltSegment> {
    let params = common_params(inputs)?;
    let (merged, keys) = MergedInputs::new(inputs, budget)?;
    let salt = merged.salt(params)?;
    let mut out = merged.begin(keys, vfs, dir, salt, params)?;
    let mut distinct = 0;
    if let Some(simhash) = params.simhash {
        distinct = merged.distinct()?.write(&mut out, simhash, merged.documents)?;
    }
    merged.finish(out, salt, distinct, params)
}

impl MergedInputs<'_, '_> {
    /// Creates the output file, and writes the parameters and the keys.
    fn begin(
        &self,
        mut keys: MergedKeys<'_>,
        vfs: &dyn Vfs,
        dir: &Path,
        salt: u128,
        params: &Params,
    ) -> Result<SegmentOutput> {
        let mut out = begin(vfs, dir, salt, (params, self.cut(params).is_some()), self.budget)?;
        keys.write(&mut out, self.documents)?;
        Ok(out)
    }

    fn cut(&self, params: &Params) -> Option<Cut> {
        params.codes.and_then(|codes| choose_cut(codes, self.documents))
    }

    /// Writes the sections after those of fingerprints, and finishes the file. `distinct` is the number of distinct
    /// fingerprints.
    fn finish(
        self,
        mut out: SegmentOutput,
        salt: u128,
        distinct: u64,
        params: &Params,
    ) -> Result<BuiltSegment> {
        let (merged, documents, budget) = (&self, self.documents, self.budget);
        if let Some(minhash) = params.minhash {
            write_bands(&mut out, minhash, documents, budget, |band, _| merged.band(band.into()))?;
            if minhash.signature_bytes() > 0 {
                out.section(Kind::Signatures, 0, signatures::CODEC, documents, |out| merged.signatures(out))?;
            }
        }
        for (of, kind) in [Kind::Bottom, Kind::Modular].into_iter().enumerate() {
            merged.samples(&mut out, of, kind)?;
        }
        merged.attached(&mut out, params)?;
        if let Some((cut, codes)) = merged.cut(params).zip(params.codes) {
            write_parts(&mut out, cut, documents, budget, |each| {
                merged.for_each_origin(|input, ordinal| {
                    let code = input.segment.fields(ordinal)?.code(codes);
                    each(code.map_err(|fault| input.segment.wrong_fields(ordinal, fault))?)
                })
            })?;
        }
        Ok(BuiltSegment::of(out.finish(documents, distinct)?, salt, documents))
    }
}

/// Prepares a [`merge`] of the tables alone, for benchmarks. The returned function merges the tables and returns the
/// total number of their entries, but writes nothing. If `documents` is true, it also reads, checks and merges postings
/// and ranks. If `documents` is false, no input may have deleted documents.
/// # Errors
/// Same as [`merge`].
#[doc(hidden)]
pub fn merge_tables(
    inputs: &[MergeInput<'_>],
    budget: SpillBudget<'_>,
    documents: bool,
) -> Result<impl FnOnce() -> Result<u64>> {
    let params = common_params(inputs)?.clone();
    let (merged, _) = MergedInputs::new(inputs, budget)?;
    Ok(move || {
        let Some(simhash) = params.simhash else { return Ok(0) };
        let mut fingerprints = SpillColumn::new(budget, budget.share(8));
        let mut last = None;
        if documents {
            let handed = merged.none_handed();
            let mut pairs = merged.fingerprints(&handed)?;
            while let Some(slice) = pairs.next_slice()? {
                for &item in slice {
                    let fingerprint = (item >> 32) as u64;
                    if last.replace(fingerprint) != Some(fingerprint) {
                        fingerprints.push(fingerprint)?;
                    }
                }
            }
        } else {
            let mut keys = RunMerge::new(merged.keys_of_first()?);
            while let Some(slice) = keys.next_slice()? {
                // Whether the slice has repeated values, which happens rarely.
                let again = slice.iter().zip(&slice[1..]).filter(|(key, next)| key == next).count() > 0;
                let start = usize::from(last == slice.first().copied());
                last = slice.last().copied();
                if again {
                    slice[start..].chunk_by(PartialEq::eq).try_for_each(|same| fingerprints.push(same[0]))?;
                } else {
                    fingerprints.extend(&slice[start..])?;
                }
            }
        }
        let rows = fingerprints.len();
        let scheme = Scheme::choose(simhash.design, simhash.codec, simhash.within, rows);
        let mut entries = 0;
        encode_tables(scheme, &fingerprints, budget, |_, _, _| {
            entries += rows;
            Ok(())
        })?;
        Ok(entries)
    })
}

fn common_params<'a>(inputs: &[MergeInput<'a>]) -> Result<&'a Params> {
    let Some(first) = inputs.first() else {
        return Err(Error::Invalid("no segments to merge".into()));
    };
    match inputs.iter().find(|input| input.segment.params() != first.segment.params()) {
        None => Ok(first.segment.params()),
        Some(other) => Err(Error::Invalid(format!(
            "{} and {} are of different parameters, and cannot be merged",
            first.segment.path().display(),
            other.segment.path().display()
        ))),
    }
}

/// The inputs, and the new ordinals of their documents.
struct MergedInputs<'a, 'r> {
    inputs: Vec<MergeSource<'a, 'r>>,
    budget: SpillBudget<'r>,
    documents: u64,
    /// For each output document, the index of its input. Empty if no section needs it.
    origins: SpillColumn<'r, u32>,
}

struct MergeSource<'a, 'r> {
    segment: &'a Segment,
    deleted: &'a RoaringBitmap,
    /// The new ordinal of each document of this input; [`LEFT_OUT`] for a dropped document.
    map: SpillColumn<'r, u32>,
    left_out: RoaringBitmap,
}

impl MergeSource<'_, '_> {
    /// Assigns the new ordinal `ordinal` to the next live document of this input. `None` drops the document.
    fn number(&mut self, ordinal: Option<u32>) -> Result<()> {
        self.skip_deleted()?;
        if ordinal.is_none() {
            self.left_out.insert(self.map.len() as u32);
        }
        self.map.push(ordinal.unwrap_or(LEFT_OUT))
    }

    fn skip_deleted(&mut self) -> Result<()> {
        while !self.deleted.is_empty()
            && self.map.len() < self.segment.documents()
            && self.deleted.contains(self.map.len() as u32)
        {
            self.left_out.insert(self.map.len() as u32);
            self.map.push(LEFT_OUT)?;
        }
        Ok(())
    }

    /// Returns the ranks of all documents.
    fn ranks(&self, fingerprints: &open::Fingerprints) -> Result<&[U32]> {
        let all = ranks::range(0).start..ranks::range(self.segment.documents()).start;
        let bytes = self.segment.read(&fingerprints.ranks, all)?;
        wire::column(bytes).map_err(|fault| self.segment.corrupt_at(&fingerprints.ranks, fault))
    }

    fn wrong(&self, section: &Section, at: u64, expected: impl Into<String>, found: impl ToString) -> Error {
        self.segment.corrupt_at(section, Fault::new(at, expected, found))
    }
}

enum MergedKeys<'r> {
    Numbers { keys: SpillColumn<'r, u64>, span: Option<(u64, u64)> },
    Bytes(SpilledParts<'r>),
}

impl MergedKeys<'_> {
    fn write(&mut self, out: &mut SegmentOutput, documents: u64) -> Result<()> {
        match self {
            Self::Numbers { keys, span } => {
                let frame = span.map_or(Frame { base: 0, width: 0 }, |(first, last)| {
                    Frame::spanning(first, last, documents)
                });
                write_numbers(out, frame, documents, &mut keys.values())
            }
            Self::Bytes(parts) => {
                out.section(Kind::Keys, 0, keys::CODEC_FRONT, documents, |out| parts.write(out, false))
            }
        }
    }
}

impl<'a, 'r> MergedInputs<'a, 'r> {
    /// Merges the keys of the inputs, and assigns new ordinals to their documents.
    fn new(inputs: &[MergeInput<'a>], budget: SpillBudget<'r>) -> Result<(Self, MergedKeys<'r>)> {
        let share = budget.share(8 * inputs.len().max(1));
        let source = |input: &MergeInput<'a>| MergeSource {
            segment: input.segment,
            deleted: input.deleted,
            map: SpillColumn::new(budget, share),
            left_out: RoaringBitmap::new(),
        };
        let mut merged = Self {
            inputs: inputs.iter().map(source).collect(),
            budget,
            documents: 0,
            origins: SpillColumn::new(budget, budget.share(16)),
        };
        let keys = match inputs.first().map(|input| input.segment.params().key) {
            Some(KeyKind::Bytes) => merged.merge_bytes()?,
            _ => merged.merge_numbers()?,
        };
        for input in &mut merged.inputs {
            input.skip_deleted()?;
            if input.map.len() != input.segment.documents() {
                let section = &input.segment.sections()[0];
                let expected = format!("{} keys", input.segment.documents());
                return Err(input.wrong(section, 0, expected, input.map.len()));
            }
        }
        Ok((merged, keys))
    }

    /// Assigns the next ordinal of the output to the next document of input `input`.
    fn number(&mut self, input: usize) -> Result<()> {
        if self.documents >= DOCUMENTS_MAX {
            let found = self.documents + 1;
            return Err(Error::Limit { what: "documents of a segment", limit: DOCUMENTS_MAX, found });
        }
        self.inputs[input].number(Some(self.documents as u32))?;
        self.documents += 1;
        let segment = self.inputs[input].segment;
        let attached = segment.values.is_some() || segment.stamps.is_some() || segment.fields.is_some();
        if segment.signatures.is_some() || segment.samples != [None; 2] || attached {
            self.origins.push(input as u32)?;
        }
        Ok(())
    }

    fn merge_numbers(&mut self) -> Result<MergedKeys<'r>> {
        let run = |(number, input): (usize, &MergeSource<'a, 'r>)| NumberKeys {
            segment: input.segment,
            deleted: input.deleted,
            input: number as u32,
            next: 0,
            last: None,
        };
        let mut merge = RunMerge::new(self.inputs.iter().enumerate().map(run).collect());
        let mut keys = SpillColumn::new(self.budget, self.budget.share(8));
        let mut span = None;
        // Among equal keys, the one of the newest input comes last, and only that one is kept.
        let mut waiting: Option<(u64, usize)> = None;
        let mut put = |merged: &mut Self, key: u64, input: usize| {
            span = Some((span.map_or(key, |(first, _)| first), key));
            merged.number(input)?;
            keys.push(key)
        };
        while let Some(slice) = merge.next_slice()? {
            for &item in slice {
                let (key, input) = ((item >> 32) as u64, item as u32 as usize);
                if let Some((before, older)) = waiting.replace((key, input)) {
                    if before == key {
                        self.inputs[older].number(None)?;
                    } else {
                        put(self, before, older)?;
                    }
                }
            }
        }
        if let Some((key, input)) = waiting {
            put(self, key, input)?;
        }
        Ok(MergedKeys::Numbers { keys, span })
    }

    fn merge_bytes(&mut self) -> Result<MergedKeys<'r>> {
        let mut parts = SpilledParts::new(self.budget, self.budget.share(8));
        let (mut encoder, mut data) = (FrontEncoder::default(), Vec::new());
        let runs = self.inputs.iter().map(|input| ByteKeys::new(input.segment, input.deleted));
        let mut merge = extsort::Merge::new(runs.collect::<Vec<_>>(), Ord::cmp);
        // Among equal keys, the one of the newest input comes last. So a key is written only once the next is known.
        let (mut waiting, mut waiting_input): (Vec<u8>, Option<usize>) = (Vec::new(), None);
        loop {
            let next = merge.next()?;
            if let Some(input) = waiting_input {
                if next.is_some_and(|(_, key)| *key == waiting) {
                    self.inputs[input].number(None)?;
                } else {
                    self.number(input)?;
                    data.clear();
                    if let Some(offset) = encoder.push(&waiting, &mut data) {
                        parts.put(0, &offset.to_le_bytes())?;
                    }
                    parts.put(1, &data)?;
                }
            }
            let Some((input, key)) = next else { break };
            waiting.clone_from(key);
            waiting_input = Some(input);
        }
        parts.put(0, &encoder.length().to_le_bytes())?;
        Ok(MergedKeys::Bytes(parts))
    }

    /// Divides the ordinals of each input into stripes. Calls `each` with the input, the stripe, and the new ordinals
    /// of the stripe's documents.
    fn for_each_stripe(
        &self,
        mut each: impl FnMut(&MergeSource<'a, 'r>, Range<u64>, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let max = (self.budget.share(8) as u64 / 4).max(KEYS);
        for input in &self.inputs {
            let documents = input.segment.documents();
            let mut start = 0;
            while start < documents {
                let stripe = start..documents.min(start.saturating_add(max));
                start = stripe.end;
                let map = input.map.get(stripe.clone())?;
                each(input, stripe, &map)?;
            }
        }
        Ok(())
    }

    fn stripes(&self) -> Result<usize> {
        let mut count = 0;
        self.for_each_stripe(|_, _, _| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns the distinct fingerprints and their postings. If every input can be read lazily, reads ranges of fingerprints
    /// on all threads.
    fn distinct(&self) -> Result<DistinctFingerprints<'r>> {
        let handed = self.none_handed();
        let planes =
            |input: &MergeSource<'a, 'r>| match &input.segment.fingerprints.as_ref()?.tables.all[0].layout {
                Layout::Planes(planes) => Some(planes.directory),
                _ => None,
            };
        let directories: Vec<_> = self.inputs.iter().filter_map(planes).collect();
        let bits = directories.iter().map(|directory| directory.bits).min().unwrap_or(0);
        let rows = directories.iter().map(|directory| directory.rows).sum::<u64>();
        let threads = self.budget.threads() as u64;
        let count = if threads > 1 { threads.max(rows / PIECE).min(1 << bits) } else { 1 };
        let pieces: Vec<Range<u64>> =
            (0..count).map(|piece| (piece << bits) / count..((piece + 1) << bits) / count).collect();
        let runs = |piece: &Range<u64>| -> Result<Option<Vec<_>>> {
            self.inputs
                .iter()
                .zip(&handed)
                .map(|(input, handed)| self.listed(input, handed, bits, piece))
                .collect()
        };
        let Some(all) = runs(&(0..1 << bits))? else {
            return DistinctFingerprints::of(self.budget, RunMerge::new(self.stored_runs()?));
        };
        let distinct = if count == 1 {
            DistinctFingerprints::of(self.budget, RunMerge::new(all))?
        } else {
            let merged = |piece: &Range<u64>| Ok(RunMerge::new(runs(piece)?.unwrap_or_default()));
            DistinctFingerprints::of_pieces(self.budget, &pieces, merged)?
        };
        self.check_handed(&handed)?;
        Ok(distinct)
    }

    /// Returns the fingerprints with their new ordinals, in ascending order. Reads them lazily if every input permits
    /// it (see [`listed`](Self::listed)); otherwise first stores them as runs.
    fn fingerprints<'m>(&'m self, handed: &'m [AtomicU64]) -> Result<RunMerge<Fingerprints<'m, 'r>, u128>> {
        let listed = |(input, handed)| self.listed(input, handed, 0, &(0..1));
        let runs: Option<Vec<_>> = self.inputs.iter().zip(handed).map(listed).collect::<Result<_>>()?;
        Ok(RunMerge::new(runs.map_or_else(|| self.stored_runs(), Ok)?))
    }

    /// Returns a counter for each input: of its documents that lazy runs have returned.
    fn none_handed(&self) -> Vec<AtomicU64> {
        self.inputs.iter().map(|_| AtomicU64::new(0)).collect()
    }

    /// Returns an error if lazy runs have not returned all documents that have a rank. Each listed document is in the list
    /// of its own rank. So if there are as many listed documents as documents with a rank, each of the latter is in its
    /// list.
    fn check_handed(&self, handed: &[AtomicU64]) -> Result<()> {
        for (input, handed) in self.inputs.iter().zip(handed) {
            let Some(fingerprints) = &input.segment.fingerprints else { continue };
            let handed = handed.load(Ordering::Relaxed);
            let ranked =
                input.ranks(fingerprints)?.iter().filter(|rank| rank.get() != NO_RANK).count() as u64;
            if ranked != handed {
                let expected = format!("the {ranked} documents that have a rank");
                return Err(input.wrong(&fingerprints.postings, 0, expected, handed));
            }
        }
        Ok(())
    }

    /// Returns a run that reads the buckets `piece` of an input lazily, if table 1 has `2^bits` buckets; `None` if table 1
    /// is not in planes, the map of ordinals is not in memory, or the posting lists exceed the budget.
    fn listed<'m>(
        &'m self,
        input: &'m MergeSource<'a, 'r>,
        handed: &'m AtomicU64,
        bits: u32,
        piece: &Range<u64>,
    ) -> Result<Option<Fingerprints<'m, 'r>>> {
        let Some(fingerprints) = &input.segment.fingerprints else {
            return Ok(Some(Fingerprints::Stored(ChunkedValues::of(&[]))));
        };
        let first = &fingerprints.tables.all[0];
        let Layout::Planes(planes) = &first.layout else { return Ok(None) };
        // A run returns all documents of a posting list at once, so the budget must have space for all lists. If it is
        // too small, the caller falls back to stored runs.
        let section = &fingerprints.postings;
        let lists = section.length.saturating_sub(postings::range(section.rows).start);
        let budget = self.budget.share(8 * self.inputs.len()) as u64;
        if lists.saturating_mul(size_of::<u128>() as u64 / 4) > budget {
            return Ok(None);
        }
        let Ok(Cow::Borrowed(map)) = input.map.get(0..input.map.len()) else { return Ok(None) };
        let source = input.segment.at(&first.section);
        let walk_from = |bucket: u64| planes.walk_from(source, bucket << (planes.directory.bits - bits));
        let walk = walk_from(piece.start)?;
        Ok(Some(Fingerprints::ListedRun(Box::new(ListedRun {
            input,
            planes,
            end: walk_from(piece.end)?.row(),
            rank: walk.row() as u32,
            walk,
            keys: Vec::new(),
            at: 0,
            postings: input.segment.postings_in_order(),
            ranks: input.ranks(fingerprints)?,
            map,
            handed: 0,
            all_handed: handed,
        }))))
    }

    /// Returns runs that read the keys of table 1 lazily, one run for each input. Returns an error if an input drops
    /// documents, or if its table 1 is not in planes.
    fn keys_of_first(&self) -> Result<Vec<KeysOfFirst<'_>>> {
        let keys = |input: &MergeSource<'a, 'r>| {
            let first = &input.segment.fingerprints.as_ref()?.tables.all[0];
            let Layout::Planes(planes) = first.layout else { return None };
            input.left_out.is_empty().then_some(KeysOfFirst {
                source: input.segment.at(&first.section),
                planes,
                walk: Walk::default(),
            })
        };
        let all: Option<Vec<_>> = self.inputs.iter().map(keys).collect();
        all.ok_or_else(|| Error::Invalid("merge_tables: planes, and no document left out".into()))
    }

    /// Stores the items of [`fingerprints`](Self::fingerprints) in runs, and returns the runs. Works for any input and
    /// any memory budget.
    fn stored_runs(&self) -> Result<Vec<Fingerprints<'_, 'r>>> {
        let share = self.budget.share(4 * self.stripes()?.max(1));
        let mut runs = Vec::new();
        self.for_each_stripe(|input, stripe, map| {
            let Some(fingerprints) = &input.segment.fingerprints else { return Ok(()) };
            let mut run = SpillColumn::new(self.budget, share);
            // For each document of the stripe, the rank of the posting list that has it; `NO_RANK` if none has.
            let mut listed_by = vec![NO_RANK; (stripe.end - stripe.start) as usize];
            let mut listed = 0_u64;
            let mut postings = input.segment.postings_in_order();
            input.segment.for_each_fingerprint(|rank, fingerprint| {
                postings.of(rank, |ordinal| {
                    let place = u64::from(ordinal).wrapping_sub(stripe.start) as usize;
                    let Some((listed_by, &new)) = listed_by.get_mut(place).zip(map.get(place)) else {
                        return Ok(());
                    };
                    if std::mem::replace(listed_by, rank) != NO_RANK {
                        // Checked for each document, because overlapping lists could make the run quadratically long.
                        return Err(input.wrong(&fingerprints.postings, 0, "each document once", ordinal));
                    }
                    listed += 1;
                    if new == LEFT_OUT { Ok(()) } else { run.push(pair(fingerprint, new)) }
                })
            })?;
            let mut ranked = 0;
            input.segment.for_each_rank(stripe.clone(), |ordinal, rank| {
                let by = listed_by[(u64::from(ordinal) - stripe.start) as usize];
                if rank.unwrap_or(NO_RANK) != by {
                    let (at, expected) =
                        (ranks::range(ordinal.into()).start, format!("rank {by} as in the postings"));
                    return Err(input.wrong(&fingerprints.ranks, at, expected, "another"));
                }
                ranked += u64::from(rank.is_some());
                Ok(())
            })?;
            // Each document that has a rank must be in exactly one list.
            if ranked != listed {
                let expected = format!("the {ranked} documents that have a rank");
                return Err(input.wrong(&fingerprints.postings, 0, expected, listed));
            }
            runs.push(Fingerprints::Stored(run.into_values()));
            Ok(())
        })?;
        Ok(runs)
    }

    /// Returns the number of entries of a band, and the entries in ascending order. An entry has the band key in the
    /// high 32 bits and the new ordinal in the low 32 bits.
    fn band(&self, band: usize) -> Result<(u64, RunMerge<ChunkedValues<'r, u64>, u64>)> {
        let share = self.budget.share(4 * self.stripes()?.max(1));
        let mut runs = Vec::new();
        let mut rows = 0;
        self.for_each_stripe(|input, stripe, map| {
            let (section, _) = input.segment.band(band)?;
            let mut run = SpillColumn::new(self.budget, share);
            let mut seen = RoaringBitmap::new();
            let mut last = None;
            input.segment.for_each_band_entry(band, |key, ordinal| {
                if last >= Some((key, ordinal)) {
                    let expected = format!("an entry after {last:x?}");
                    return Err(input.wrong(section, 0, expected, format!("{key:x}, {ordinal}")));
                }
                last = Some((key, ordinal));
                if !stripe.contains(&u64::from(ordinal)) {
                    return Ok(());
                }
                if !seen.insert(ordinal) {
                    return Err(input.wrong(section, 0, "each document once", ordinal));
                }
                let new = map[(u64::from(ordinal) - stripe.start) as usize];
                if new != LEFT_OUT {
                    run.push(u64::from(key) << 32 | u64::from(new))?;
                }
                Ok(())
            })?;
            rows += run.len();
            runs.push(run.into_values());
            Ok(())
        })?;
        Ok((rows, RunMerge::new(runs)))
    }

    /// Calls `each` with the input and the old ordinal of each output document, in the order of the new ordinals.
    fn for_each_origin(&self, mut each: impl FnMut(&MergeSource<'a, 'r>, u32) -> Result<()>) -> Result<()> {
        let mut next = vec![0_u32; self.inputs.len()];
        for origin in self.origins.values() {
            self.origin(&mut next, origin?, &mut each)?;
        }
        Ok(())
    }

    /// Calls `each` with the next document of input `origin`. `next` has the next ordinal of each input.
    fn origin<T>(
        &self,
        next: &mut [u32],
        origin: u32,
        each: impl FnOnce(&MergeSource<'a, 'r>, u32) -> Result<T>,
    ) -> Result<T> {
        let (input, ordinal) = (&self.inputs[origin as usize], &mut next[origin as usize]);
        while !input.left_out.is_empty() && input.left_out.contains(*ordinal) {
            *ordinal += 1;
        }
        *ordinal += 1;
        each(input, *ordinal - 1)
    }

    /// Returns, for each piece of output documents, the next ordinal of each input.
    fn piece_starts(&self) -> Result<Vec<Vec<u32>>> {
        let (mut starts, mut next) = (Vec::new(), vec![0_u32; self.inputs.len()]);
        for (number, origin) in self.origins.values().enumerate() {
            if number % SETS == 0 {
                starts.push(next.clone());
            }
            self.origin(&mut next, origin?, |_, _| Ok(()))?;
        }
        Ok(starts)
    }

    fn signatures(&self, out: &mut SegmentOutput) -> Result<()> {
        self.for_each_origin(|input, ordinal| out.put(input.segment.signature(ordinal)?))
    }

    /// Copies the bottom samples (if `of` is 0) or the modular samples (if it is 1), if the inputs store them.
    fn samples(&self, out: &mut SegmentOutput, of: usize, kind: Kind) -> Result<()> {
        if self.inputs.iter().any(|input| input.segment.samples[of].is_none()) {
            return Ok(());
        }
        let mut values = Vec::new();
        let mut bytes_of = |input: &MergeSource<'a, '_>, ordinal: u32| {
            values.clear();
            input.segment.sample(input.segment.samples[of].as_ref(), ordinal, &mut values)
        };
        let mut rows = 0;
        self.for_each_origin(|input, ordinal| {
            rows += bytes_of(input, ordinal)?.len() as u64 / samples::VALUE_BYTES;
            Ok(())
        })?;
        let offset_bytes = samples::offset_bytes(rows) as usize;
        out.section(kind, 0, samples::CODEC, rows, |out| {
            let (mut next, mut bytes) = (0_u64, Vec::new());
            self.for_each_origin(|input, ordinal| {
                bytes.extend_from_slice(&next.to_le_bytes()[..offset_bytes]);
                next += bytes_of(input, ordinal)?.len() as u64 / samples::VALUE_BYTES;
                if bytes.len() >= COPIED {
                    out.put(&bytes)?;
                    bytes.clear();
                }
                Ok(())
            })?;
            out.put(&bytes)?;
            put_all(out, &[next], |end, bytes| bytes.extend_from_slice(&end.to_le_bytes()[..offset_bytes]))?;
            self.for_each_origin(|input, ordinal| out.put(bytes_of(input, ordinal)?))
        })
    }

    /// Copies values, stamps and fields, if they are stored. Sorts the documents by stamp, and computes the sections of
    /// common tags and prefixes from the fields.
    fn attached(&self, out: &mut SegmentOutput, params: &Params) -> Result<()> {
        if params.values {
            write_values(
                out,
                (Kind::Values, attached::CODEC),
                &mut |each| {
                    self.for_each_origin(|input, ordinal| each(input.segment.value(ordinal)?.len() as u64))
                },
                |out| self.for_each_origin(|input, ordinal| out.put(input.segment.value(ordinal)?)),
            )?;
        }
        if params.expire_after.is_some() {
            let stamp = |input: &MergeSource<'a, '_>, ordinal: u32| input.segment.kept_stamp(ordinal);
            let mut pairs = RadixSorter::new(self.budget, self.budget.share(4), 64);
            let (mut span, mut next): (Option<(u64, u64)>, u32) = (None, 0);
            self.for_each_origin(|input, ordinal| {
                let stamp = stamp(input, ordinal)?;
                span = Some(span.map_or((stamp, stamp), |(min, max)| (stamp.min(min), stamp.max(max))));
                pairs.push(pair(stamp, next))?;
                next += 1;
                Ok(())
            })?;
            let (min, max) = span.unwrap_or((0, 0));
            write_stamps(
                out,
                Stamps::spanning(min, max, self.documents),
                self.documents,
                &mut |each| self.for_each_origin(|input, ordinal| each(stamp(input, ordinal)?)),
                &mut pairs.finish()?.into_values(),
            )?;
        }
        if fields::are_kept(params) {
            let starts = if params.sets { self.piece_starts()? } else { Vec::new() };
            let sets = |piece: usize, each: &mut SetVisitor<'_>| {
                let (first, mut next) = ((piece * SETS) as u64, starts[piece].clone());
                let origins = self.origins.get(first..self.documents.min(first + SETS as u64))?;
                (first as u32..).zip(&*origins).try_for_each(|(number, &origin)| {
                    self.origin(&mut next, origin, |input, ordinal| {
                        let fields = input.segment.fields(ordinal)?;
                        fields.check(params).map_err(|fault| input.segment.wrong_fields(ordinal, fault))?;
                        each(number, fields)
                    })
                })
            };
            let write = || {
                write_values(
                    out,
                    (Kind::Fields, fields::CODEC),
                    &mut |each| {
                        self.for_each_origin(|input, ordinal| {
                            each(input.segment.fields(ordinal)?.bytes().len() as u64)
                        })
                    },
                    |out| {
                        self.for_each_origin(|input, ordinal| out.put(input.segment.fields(ordinal)?.bytes()))
                    },
                )
            };
            let encode = || encode_sets(params, self.documents, self.budget, &sets);
            let (written, encoded) = both(self.budget.threads(), write, encode);
            written?;
            encoded?.map_or(Ok(()), |encoded| encoded.write(out))?;
        }
        Ok(())
    }

    /// Returns the salt of the output: the sum of the parameters' digest and the hashes of all live records. Computes
    /// it from the salts of the inputs.
    fn salt(&self, params: &Params) -> Result<u128> {
        let mut salt = params.digest();
        for input in &self.inputs {
            let segment = input.segment;
            salt = salt.wrapping_add(segment.salt()).wrapping_sub(params.digest());
            let fingerprint =
                |ordinal| segment.rank(ordinal)?.map(|rank| segment.fingerprint(rank)).transpose();
            salt = salt.wrapping_sub(self.sum_left_out(input, &fingerprint)?);
        }
        Ok(salt)
    }

    /// Returns the sum, modulo 2^128, of the record hashes of the documents of this input that are not in the output.
    fn sum_left_out(&self, input: &MergeSource<'_, '_>, fingerprint: &FingerprintOf<'_>) -> Result<u128> {
        let width = 4 * input.segment.band_count() + 16;
        let max = (self.budget.share(8) / width).max(KEYS as usize);
        let (mut sum, mut rest) = (0_u128, input.left_out.iter().peekable());
        while rest.peek().is_some() {
            let some: Vec<u32> = rest.by_ref().take(max).collect();
            sum = sum.wrapping_add(sum_of(input.segment, &some, fingerprint)?);
        }
        Ok(sum)
    }
}

/// A function that returns the fingerprint of the document with an ordinal; `None` if the document has none.
type FingerprintOf<'a> = dyn Fn(u32) -> Result<Option<u64>> + 'a;

/// Returns the sum of the record hashes of the documents with these ascending ordinals.
fn sum_of(segment: &Segment, ordinals: &[u32], fingerprint: &FingerprintOf<'_>) -> Result<u128> {
    let bands = segment.band_count();
    let mut band_keys = vec![0; ordinals.len() * bands];
    let mut sketched = vec![false; ordinals.len()];
    for band in 0..bands {
        segment.for_each_band_entry(band, |key, ordinal| {
            if let Ok(row) = ordinals.binary_search(&ordinal) {
                band_keys[row * bands + band] = key;
                sketched[row] = true;
            }
            Ok(())
        })?;
    }
    let (mut sum, mut scratch) = (0_u128, Vec::new());
    for (row, &ordinal) in ordinals.iter().enumerate() {
        let fingerprint = fingerprint(ordinal)?;
        let sketch = if fingerprint.is_some() || sketched[row] {
            Some(RecordSketch {
                fingerprint,
                bands: &band_keys[row * bands..(row + 1) * bands],
                signature: segment.signature(ordinal)?,
                samples: segment.sample_bytes(ordinal)?,
            })
        } else {
            None
        };
        let key = segment.key(ordinal)?;
        let attached = segment.attached(ordinal)?;
        sum = sum.wrapping_add(record_hash(KeyBuf::as_key(&key), sketch, attached, &mut scratch));
    }
    Ok(sum)
}

/// The fingerprints of one input with the new ordinals of their documents, in ascending order.
enum Fingerprints<'m, 'r> {
    Stored(ChunkedValues<'m, u128>),
    ListedRun(Box<ListedRun<'m, 'r>>),
}

impl SortedRun<u128> for Fingerprints<'_, '_> {
    #[inline]
    fn fill(&mut self, items: &mut Vec<u128>, max: usize) -> Result<()> {
        match self {
            Self::Stored(values) => values.fill(items, max),
            Self::ListedRun(listed) => listed.fill(items, max),
        }
    }
}

/// A run that is read lazily: the fingerprints come from table 1, the documents from the postings. Checks that postings
/// and ranks agree.
struct ListedRun<'m, 'r> {
    input: &'m MergeSource<'m, 'r>,
    planes: &'m Planes,
    walk: Walk,
    /// The end of the rows to read.
    end: u64,
    /// The current chunk of keys; `at` is the index of the next one.
    keys: Vec<u64>,
    at: usize,
    rank: u32,
    postings: PostingsInOrder<'m>,
    /// The ranks of all documents.
    ranks: &'m [U32],
    map: &'m [u32],
    /// Number of documents that this run has returned or dropped; added to `all_handed` at its end.
    handed: u64,
    all_handed: &'m AtomicU64,
}

impl ListedRun<'_, '_> {
    /// Appends the documents of the next fingerprint, which has one document or a list of documents.
    #[inline(never)]
    fn list(
        &mut self,
        fingerprints: &open::Fingerprints,
        ranks: &[U32],
        items: &mut Vec<u128>,
    ) -> Result<()> {
        let (key, rank, map, handed) = (self.keys[self.at], self.rank, self.map, &mut self.handed);
        self.postings.of(rank, |ordinal| {
            let place = ordinal as usize;
            let by = ranks.get(place).map(|rank| rank.get());
            let Some(&new) = map.get(place).filter(|_| by == Some(rank)) else {
                let expected = format!("rank {rank} as in the postings");
                let at = ranks::range(ordinal.into()).start;
                return Err(self.input.wrong(&fingerprints.ranks, at, expected, "another"));
            };
            *handed += 1;
            if new != LEFT_OUT {
                items.push(pair(key, new));
            }
            Ok(())
        })?;
        self.at += 1;
        self.rank += 1;
        Ok(())
    }
}

impl SortedRun<u128> for ListedRun<'_, '_> {
    fn fill(&mut self, items: &mut Vec<u128>, max: usize) -> Result<()> {
        let Some(fingerprints) = &self.input.segment.fingerprints else { return Ok(()) };
        let ranks = self.ranks;
        let before = items.len();
        while items.len() == before {
            if self.at == self.keys.len() {
                self.keys.clear();
                self.at = 0;
                let source = self.input.segment.at(&fingerprints.tables.all[0].section);
                let rest = self.end.saturating_sub(self.walk.row());
                if rest > 0 {
                    self.planes.walk(source, &mut self.walk, KEYS.min(rest) as usize, &mut self.keys)?;
                }
                if self.keys.is_empty() {
                    self.all_handed.fetch_add(std::mem::take(&mut self.handed), Ordering::Relaxed);
                    return Ok(());
                }
            }
            // Handles fingerprints with one document each, up to the first posting list or damaged entry.
            let keys = &self.keys[self.at..self.keys.len().min(self.at + max)];
            let entries = self.postings.entries(self.rank, keys.len())?;
            let (rank_bytes, map_bytes) = (ranks.as_bytes(), self.map.as_bytes());
            let mut done = 0;
            for ((&key, entry), rank) in keys.iter().zip(entries).zip(self.rank..) {
                if let Some(ahead) = entries.get(done + AHEAD) {
                    prefetch(rank_bytes, (ahead.get() as usize).saturating_mul(4));
                    prefetch(map_bytes, (ahead.get() as usize).saturating_mul(4));
                }
                let place = entry.get() as usize;
                let Some((by, &new)) = ranks.get(place).zip(self.map.get(place)) else { break };
                if by.get() != rank {
                    break;
                }
                done += 1;
                if new != LEFT_OUT {
                    items.push(pair(key, new));
                }
            }
            self.at += done;
            self.rank += done as u32;
            self.handed += done as u64;
            if done < keys.len().min(entries.len()) {
                self.list(fingerprints, ranks, items)?;
            }
        }
        Ok(())
    }
}

/// The keys of an input's table 1, in ascending order.
struct KeysOfFirst<'a> {
    source: SectionReader<'a>,
    planes: Planes,
    walk: Walk,
}

impl SortedRun<u64> for KeysOfFirst<'_> {
    fn fill(&mut self, items: &mut Vec<u64>, max: usize) -> Result<()> {
        self.planes.walk(self.source, &mut self.walk, max, items)
    }
}

/// The live numeric keys of a segment, in ascending order. An item has the key in the high bits and the index of the
/// input in the low 32 bits.
struct NumberKeys<'a> {
    segment: &'a Segment,
    deleted: &'a RoaringBitmap,
    input: u32,
    next: u64,
    last: Option<u64>,
}

impl SortedRun<u128> for NumberKeys<'_> {
    fn fill(&mut self, items: &mut Vec<u128>, max: usize) -> Result<()> {
        let Keys::Frame(section, frame) = &self.segment.keys else { return Ok(()) };
        let before = items.len();
        while items.len() == before && self.next < section.rows {
            let end = section.rows.min(self.next + KEYS.min(max as u64));
            let range = frame.range(self.next).start..frame.range(end - 1).end;
            let bytes = self.segment.read(section, range)?;
            for ordinal in self.next..end {
                let at = ((ordinal - self.next) * frame.width) as usize;
                let key = frame
                    .decode(ordinal, &bytes[at..at + frame.width as usize])
                    .map_err(|fault| self.segment.corrupt_at(section, fault))?;
                if self.last >= Some(key) {
                    let fault = Fault::new(frame.range(ordinal).start, "keys in ascending order", key);
                    return Err(self.segment.corrupt_at(section, fault));
                }
                self.last = Some(key);
                if self.deleted.is_empty() || !self.deleted.contains(ordinal as u32) {
                    items.push(pair(key, self.input));
                }
            }
            self.next = end;
        }
        Ok(())
    }
}

/// The live byte-string keys of a segment, in ascending order.
struct ByteKeys<'a> {
    segment: &'a Segment,
    deleted: &'a RoaringBitmap,
    /// The concatenated keys of a group, and the end of each key in them.
    group: Vec<u8>,
    ends: Vec<usize>,
    at: usize,
    /// The index of the group to read next.
    next: u64,
    last: Vec<u8>,
}

impl<'a> ByteKeys<'a> {
    fn new(segment: &'a Segment, deleted: &'a RoaringBitmap) -> Self {
        let (group, ends, last) = Default::default();
        Self { segment, deleted, group, ends, at: 0, next: 0, last }
    }
}

impl extsort::Source for ByteKeys<'_> {
    type Item = Vec<u8>;

    fn advance(&mut self, head: &mut Option<Vec<u8>>) -> Result<()> {
        let Keys::Front(section) = &self.segment.keys else {
            *head = None;
            return Ok(());
        };
        loop {
            while self.at < self.ends.len() {
                let ordinal = (self.next - 1) * GROUP + self.at as u64;
                let start = if self.at == 0 { 0 } else { self.ends[self.at - 1] };
                let found = &self.group[start..self.ends[self.at]];
                self.at += 1;
                if self.last.as_slice() >= found {
                    let at = keys::group_offsets(self.next - 1).start;
                    let fault = Fault::new(at, "keys in ascending order", String::from_utf8_lossy(found));
                    return Err(self.segment.corrupt_at(section, fault));
                }
                self.last.clear();
                self.last.extend_from_slice(found);
                if !self.deleted.contains(ordinal as u32) {
                    let key = head.get_or_insert_default();
                    key.clear();
                    key.extend_from_slice(found);
                    return Ok(());
                }
            }
            if self.next == keys::groups(section.rows) {
                *head = None;
                return Ok(());
            }
            let corrupt = |fault| self.segment.corrupt_at(section, fault);
            let offsets = self.segment.read(section, keys::group_offsets(self.next))?;
            let range =
                keys::group_range(offsets, self.next, section.length, section.rows).map_err(corrupt)?;
            let start = range.start;
            let bytes = self.segment.read(section, range)?;
            let (group, ends) = (&mut self.group, &mut self.ends);
            group.clear();
            ends.clear();
            keys::decode_group(bytes, self.next * GROUP, section.rows, |_, key| {
                group.extend_from_slice(key);
                ends.push(group.len());
                true
            })
            .map_err(|mut fault| {
                fault.offset += start;
                corrupt(fault)
            })?;
            self.at = 0;
            self.next += 1;
        }
    }
}
