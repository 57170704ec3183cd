//! Builds a segment file from records.
//!
//! The file is canonical: equal records and parameters give equal bytes, whatever order they were added in.
//!
//! 1. Sort the records by key; the ordinal of a record is the rank of its key. Of repeated keys, only the last record is
//!    kept.
//! 2. Compute the salt: the sum of the parameters' digest and the records' hashes.
//! 3. Sort (fingerprint, ordinal). This yields table 1, the ranks and the postings.
//! 4. For each other table, distribute the rows of table 1 by the leading bits of their keys in that table. Rows with
//!    equal leading bits remain nearly sorted, because table 1 is read in order.
//! 5. For each band, sort (band key, ordinal).
//!
//! Takes O(n log n) time and about 60 bytes of memory for each record, in addition to the records. [`rows`](super::rows)
//! builds a segment from more records than fit in memory, and [`merge`](super::merge) builds one from segments. All three
//! share the functions of this module.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::IntoBytes;

use super::attached::{write_stamps, write_values};
use super::entries::{EncodedEntries, encode_entries};
use super::hot::encode_hot;
use super::output::{Finished, SegmentOutput};
use super::partial::{encode_partial, encode_partial_on_threads};
use super::records::{KeyColumn, Records, RowKind, SampleColumn};
use super::sets::{SETS, SetVisitor, encode_sets};
use super::sorted::{RadixSorter, sort_on_threads};
use super::spilled::{ChunkedValues, SliceSource, SpillBudget, SpillColumn, SpilledParts, pair};
use super::tables::{sort_values, value_of};
use crate::design::{Complete, Design, Scheme};
use crate::error::{Error, Result};
use crate::format::attached::Stamps;
use crate::format::bands::{Band, CODEC_PACKED};
use crate::format::code_parts::Cut;
use crate::format::contents::Kind;
use crate::format::keys::{self, Frame};
use crate::format::table::{Codec, Planes, planes};
use crate::format::{attached, design, fields, hot, postings, ranks, samples, signatures};
use crate::params::{CodeParams, MinhashParams, Params, SimhashParams};
use crate::planner::codes::choose as choose_cut;
use crate::sys::threads::{both, in_order, on_threads, share_out};
use crate::sys::vfs::{TemporaryFile, Vfs};

/// Number of values that are encoded before their bytes are written.
const CHUNK: usize = 8192;

/// Number of pairs that one thread processes at a time.
const PIECE: usize = 1 << 16;

/// A segment file that is complete and synced to disk, but has no name yet.
#[derive(Debug)]
pub struct BuiltSegment {
    file: Box<dyn TemporaryFile>,
    /// The length of the file in bytes.
    pub length: u64,
    /// The digest of the file; see [`Segment::digest`](super::Segment::digest).
    pub digest: u128,
    /// The salt in the header.
    pub salt: u128,
    /// The number of documents in the segment.
    pub documents: u64,
}

impl BuiltSegment {
    pub(super) fn of(finished: Finished, salt: u128, documents: u64) -> Self {
        Self { file: finished.file, length: finished.length, digest: finished.digest, salt, documents }
    }

    /// Gives the file the name `path`. Fails if a file with that name exists.
    ///
    /// # Errors
    /// Errors of the operating system. The name becomes durable only when the directory is synced.
    pub fn publish(self, path: &Path) -> Result<()> {
        self.file.publish(path, false).map_err(|e| Error::io("publish", path, e))
    }
}

/// Writes `records` as a segment to a temporary file in `dir`, and syncs the file.
///
/// # Errors
/// Errors of the operating system, naming the directory.
pub fn build(records: &Records, vfs: &dyn Vfs, dir: &Path) -> Result<BuiltSegment> {
    build_on_threads(records, vfs, dir, 1, 0)
}

/// Writes a segment as [`build`] does, on up to `threads` threads. Sections are built at the same time only if they take
/// at most `memory` bytes together.
///
/// # Errors
/// Same as [`build`].
pub fn build_on_threads(
    records: &Records,
    vfs: &dyn Vfs,
    dir: &Path,
    threads: usize,
    memory: usize,
) -> Result<BuiltSegment> {
    build_with(records, vfs, dir, SpillBudget::unlimited(memory).on_threads(threads), choose_cut)
}

/// Writes a segment of few codes as [`build`] does, but with this number of parts, for tests and measurements.
///
/// # Errors
/// Same as [`build`]; [`Error::Invalid`] if codes of this width cannot have this number of parts.
#[doc(hidden)]
pub fn build_with_parts(records: &Records, vfs: &dyn Vfs, dir: &Path, parts: usize) -> Result<BuiltSegment> {
    if records.params.codes.and_then(|codes| Cut::new(codes.bits, parts)).is_none() {
        return Err(Error::Invalid(format!("{parts} parts of these codes")));
    }
    let choose = |codes: CodeParams, _| Cut::new(codes.bits, parts);
    build_with(records, vfs, dir, SpillBudget::unlimited(0), choose)
}

fn build_with(
    records: &Records,
    vfs: &dyn Vfs,
    dir: &Path,
    budget: SpillBudget<'_>,
    choose: impl FnOnce(CodeParams, u64) -> Option<Cut>,
) -> Result<BuiltSegment> {
    let order = records.order();
    let documents = order.len() as u64;
    let cut = records.params.codes.and_then(|codes| choose(codes, documents));
    let rows: Vec<&[u32]> = order.chunks(CHUNK).collect();
    let hashes = on_threads(&mut vec![Vec::new(); budget.threads()], &rows, |scratch, rows| {
        let hash = |&row: &u32| records.record_hash(row as usize, scratch);
        Ok(rows.iter().map(hash).fold(0, u128::wrapping_add))
    })?;
    let salt = hashes.into_iter().fold(records.params.digest(), u128::wrapping_add);
    let mut out = begin(vfs, dir, salt, (&records.params, cut.is_some()), budget)?;
    write_keys(&mut out, records, &order)?;
    let mut distinct = 0;
    if let Some(simhash) = records.params.simhash {
        let pairs = fingerprint_pairs(records, &order, budget.threads());
        let fingerprints = distinct_of(budget, &pairs)?;
        drop(pairs); // its memory is for the tables
        distinct = fingerprints.write(&mut out, simhash, documents)?;
    }
    if let Some(minhash) = records.params.minhash {
        write_bands(&mut out, minhash, documents, budget, |band, threads| {
            let entries = band_entries(records, &order, band, threads);
            Ok((entries.len() as u64, ChunkedValues::from(entries)))
        })?;
        let width = minhash.signature_bytes();
        if width > 0 {
            out.section(Kind::Signatures, 0, signatures::CODEC, documents, |out| {
                for &row in &order {
                    out.put(&records.signatures[row as usize * width..(row as usize + 1) * width])?;
                }
                Ok(())
            })?;
        }
    }
    for (kind, column) in [Kind::Bottom, Kind::Modular].into_iter().zip(&records.samples) {
        if let Some(column) = column {
            write_samples(&mut out, kind, column, &order)?;
        }
    }
    write_attached(&mut out, records, &order, budget)?;
    if let Some((cut, codes)) = cut.zip(records.params.codes) {
        write_parts(&mut out, cut, documents, budget, |each| {
            order
                .iter()
                .try_for_each(|&row| each(records.fields(row as usize).code(codes).map_err(fields::unread)?))
        })?;
    }
    Ok(BuiltSegment::of(out.finish(documents, distinct)?, salt, documents))
}

fn write_attached(
    out: &mut SegmentOutput,
    records: &Records,
    order: &[u32],
    budget: SpillBudget<'_>,
) -> Result<()> {
    if let Some(column) = &records.values {
        let value = |row: u32| column.get(row as usize);
        write_values(
            out,
            (Kind::Values, attached::CODEC),
            &mut |each| order.iter().try_for_each(|&row| each(value(row).len() as u64)),
            |out| order.iter().try_for_each(|&row| out.put(value(row))),
        )?;
    }
    if let Some(column) = &records.stamps {
        let mut pairs: Vec<u128> =
            (0..).zip(order).map(|(ordinal, &row)| pair(column[row as usize], ordinal)).collect();
        sort_on_threads(budget.threads(), &mut pairs, &mut Vec::new());
        let end = |pair: Option<&u128>| pair.map_or(0, |&pair| (pair >> 32) as u64);
        let documents = order.len() as u64;
        let layout = Stamps::spanning(end(pairs.first()), end(pairs.last()), documents);
        write_stamps(
            out,
            layout,
            documents,
            &mut |each| order.iter().try_for_each(|&row| each(column[row as usize])),
            &mut ChunkedValues::from(pairs),
        )?;
    }
    if let Some(column) = &records.fields {
        let fields = |row: u32| column.get(row as usize);
        let sets = |piece: usize, each: &mut SetVisitor<'_>| {
            let start = piece * SETS;
            let rows = &order[start..order.len().min(start + SETS)];
            (start as u32..)
                .zip(rows)
                .try_for_each(|(ordinal, &row)| each(ordinal, records.fields(row as usize)))
        };
        let write = || {
            write_values(
                out,
                (Kind::Fields, fields::CODEC),
                &mut |each| order.iter().try_for_each(|&row| each(fields(row).len() as u64)),
                |out| order.iter().try_for_each(|&row| out.put(fields(row))),
            )
        };
        let encode = || encode_sets(&records.params, order.len() as u64, budget, &sets);
        let (written, encoded) = both(budget.threads(), write, encode);
        written?;
        encoded?.map_or(Ok(()), |encoded| encoded.write(out))?;
    }
    Ok(())
}

/// Creates the file and writes the parameters, which are its first section. `has_parts` states whether parts of the codes
/// will follow.
pub(super) fn begin(
    vfs: &dyn Vfs,
    dir: &Path,
    salt: u128,
    (params, has_parts): (&Params, bool),
    budget: SpillBudget<'_>,
) -> Result<SegmentOutput> {
    let of = (params, has_parts);
    let mut out = SegmentOutput::create(vfs, dir, salt, of, budget.threads(), budget.cancel())?;
    let params = params.encode();
    out.section(Kind::Params, 0, 1, params.len() as u64, |out| out.put(params.as_bytes()))?;
    Ok(out)
}

fn write_samples(out: &mut SegmentOutput, kind: Kind, column: &SampleColumn, order: &[u32]) -> Result<()> {
    let count = |row: u32| column.get(row as usize).len() as u64 / samples::VALUE_BYTES;
    let rows = order.iter().map(|&row| count(row)).sum();
    let offset_bytes = samples::offset_bytes(rows);
    out.section(kind, 0, samples::CODEC, rows, |out| {
        let mut next = 0;
        let put_offset = |offset: u64, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&offset.to_le_bytes()[..offset_bytes as usize]);
        };
        put_all(out, order, |row, bytes| {
            put_offset(next, bytes);
            next += count(row);
        })?;
        put_all(out, &[rows], put_offset)?;
        order.iter().try_for_each(|&row| out.put(column.get(row as usize)))
    })
}

fn write_keys(out: &mut SegmentOutput, records: &Records, order: &[u32]) -> Result<()> {
    let rows = order.len() as u64;
    match &records.keys {
        KeyColumn::U64(column) => {
            let sorted: Vec<u64> = order.iter().map(|&row| column[row as usize]).collect();
            write_numbers(out, Frame::of(&sorted), rows, &mut ChunkedValues::of(&sorted))
        }
        KeyColumn::Bytes { .. } => {
            let sorted = order.iter().map(|&row| match records.keys.get(row as usize) {
                crate::key::Key::Bytes(key) => key,
                crate::key::Key::U64(_) => unreachable!("a column of bytes holds bytes"),
            });
            out.section(Kind::Keys, 0, keys::CODEC_FRONT, rows, |out| {
                keys::write_front(sorted, |bytes| out.put(bytes))
            })
        }
    }
}

/// Writes ascending numeric keys. If the numbers are consecutive, stores only the first one and does not read `sorted`.
pub(super) fn write_numbers(
    out: &mut SegmentOutput,
    frame: Frame,
    rows: u64,
    sorted: &mut impl SliceSource<u64>,
) -> Result<()> {
    out.section(Kind::Keys, 0, keys::CODEC_FRAME, rows, |out| {
        out.put(frame.head().as_bytes())?;
        if frame.width == 0 {
            return Ok(());
        }
        while let Some(chunk) = sorted.next_slice()? {
            put_all(out, chunk, |key, bytes| {
                bytes.extend_from_slice(&(key - frame.base).to_le_bytes()[..frame.width as usize]);
            })?;
        }
        Ok(())
    })
}

/// Returns the pairs (fingerprint, ordinal) of all documents with a sketch, in ascending order.
fn fingerprint_pairs(records: &Records, order: &[u32], threads: usize) -> Vec<u128> {
    let is_sketched = |&row: &u32| records.kinds[row as usize] == RowKind::Sketched;
    let pair_of = |(ordinal, &row): (u32, &u32)| pair(records.fingerprints[row as usize], ordinal);
    let mut pairs: Vec<u128>;
    if threads > 1 && order.iter().all(is_sketched) {
        pairs = vec![0; order.len()];
        let pieces = (0..).step_by(PIECE).zip(order.chunks(PIECE).zip(pairs.chunks_mut(PIECE)));
        share_out(threads, pieces, |(first, (rows, pairs)): (u32, (&[u32], &mut [u128]))| {
            (first..).zip(rows).zip(pairs).for_each(|(row, to)| *to = pair_of(row));
        });
    } else {
        pairs = (0..).zip(order).filter(|&(_, row)| is_sketched(row)).map(pair_of).collect();
    }
    sort_on_threads(threads, &mut pairs, &mut Vec::new());
    pairs
}

/// Distinct fingerprints and their postings, derived from ascending pairs (fingerprint, ordinal).
pub(super) struct DistinctFingerprints<'r> {
    budget: SpillBudget<'r>,
    fingerprints: SpillColumn<'r, u64>,
    posting: SpillColumn<'r, u32>,
    lists: SpillColumn<'r, u32>,
}

impl<'r> DistinctFingerprints<'r> {
    fn new(budget: SpillBudget<'r>) -> Self {
        Self {
            budget,
            fingerprints: SpillColumn::new(budget, budget.share(8)),
            posting: SpillColumn::new(budget, budget.share(16)),
            lists: SpillColumn::new(budget, budget.share(32)),
        }
    }

    /// Reads all pairs, on one thread.
    pub(super) fn of(budget: SpillBudget<'r>, mut pairs: impl SliceSource<u128>) -> Result<Self> {
        let mut distinct = Self::new(budget);
        // The documents of the current fingerprint after the first one. Usually there are none or few, but sometimes
        // millions.
        let mut more = SpillColumn::new(budget, budget.share(32));
        let mut last: Option<(u64, u32)> = None;
        while let Some(chunk) = pairs.next_slice()? {
            for &item in chunk {
                let (fingerprint, ordinal) = ((item >> 32) as u64, item as u32);
                match last {
                    Some((same, _)) if same == fingerprint => more.push(ordinal)?,
                    _ => {
                        if let Some((_, first)) = last.replace((fingerprint, ordinal)) {
                            distinct.end_group(first, &mut more)?;
                        }
                        distinct.fingerprints.push(fingerprint)?;
                    }
                }
            }
        }
        if let Some((_, first)) = last {
            distinct.end_group(first, &mut more)?;
        }
        Ok(distinct)
    }

    /// Reads pairs on all threads. `pairs` returns the pairs of a piece. The pieces are in order, and no fingerprint is in
    /// two of them. What each thread finds in a piece must fit in memory.
    pub(super) fn of_pieces<P: Sync, S: SliceSource<u128>>(
        budget: SpillBudget<'r>,
        pieces: &[P],
        pairs: impl Fn(&P) -> Result<S> + Sync,
    ) -> Result<Self> {
        let mut distinct = Self::new(budget);
        let find =
            |(): &mut (), piece: &P| DistinctFingerprints::of(SpillBudget::unlimited(0), pairs(piece)?);
        let append = |found: DistinctFingerprints<'_>| {
            let before = distinct.lists.len() as u32;
            let mut posting = found.posting.get(0..found.posting.len())?;
            if before > 0 && found.lists.len() > 0 {
                let is_list = |entry: &&mut u32| **entry & postings::LIST != 0;
                posting.to_mut().iter_mut().filter(is_list).for_each(|entry| *entry += before);
            }
            distinct.posting.extend(&posting)?;
            distinct.fingerprints.extend(&found.fingerprints.get(0..found.fingerprints.len())?)?;
            distinct.lists.extend(&found.lists.get(0..found.lists.len())?)?;
            Ok(ControlFlow::Continue(()))
        };
        let _ = in_order(&mut vec![(); budget.threads()], pieces, 2, find, append)?;
        Ok(distinct)
    }

    #[inline]
    fn end_group(&mut self, first: u32, more: &mut SpillColumn<'r, u32>) -> Result<()> {
        if more.len() == 0 {
            return self.posting.push(first);
        }
        self.posting.push(postings::LIST | self.lists.len() as u32)?;
        self.lists.push(more.len() as u32 + 1)?;
        self.lists.push(first)?;
        more.values().try_for_each(|ordinal| self.lists.push(ordinal?))?;
        more.clear();
        Ok(())
    }

    /// Calls `each` with the ordinal and the rank of each document, in the order of ranks.
    fn for_each_rank(&self, mut each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        let (mut posting, mut lists) = (self.posting.values(), self.lists.values());
        let mut rank = 0;
        while let Some(chunk) = posting.next_slice()? {
            for &entry in chunk {
                if entry & postings::LIST == 0 {
                    each(entry, rank)?;
                } else {
                    let count = lists.next().transpose()?.unwrap_or(0);
                    lists.by_ref().take(count as usize).try_for_each(|ordinal| each(ordinal?, rank))?;
                }
                rank += 1;
            }
        }
        Ok(())
    }

    /// Writes the rank of each document.
    fn write_ranks(&self, out: &mut SegmentOutput, documents: u64) -> Result<()> {
        let budget = self.budget;
        let put_u32 = |value: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&value.to_le_bytes());
        let section = (Kind::Ranks, ranks::CODEC);
        if documents.saturating_mul(4) <= budget.share(8) as u64 {
            let mut ranks: Vec<AtomicU32> = Vec::new();
            ranks.resize_with(documents as usize, || AtomicU32::new(ranks::NO_RANK));
            match self.lists.get(0..self.lists.len())? {
                Cow::Borrowed(lists) if budget.threads() > 1 => {
                    let pieces: Vec<u64> = (0..self.posting.len()).step_by(PIECE).collect();
                    on_threads(&mut vec![(); budget.threads()], &pieces, |(), &first| {
                        let posting =
                            self.posting.get(first..self.posting.len().min(first + PIECE as u64))?;
                        for (rank, &entry) in (first as u32..).zip(&*posting) {
                            let listed = if entry & postings::LIST == 0 {
                                &[entry][..]
                            } else {
                                let at = (entry & !postings::LIST) as usize;
                                &lists[at + 1..][..lists[at] as usize]
                            };
                            for &ordinal in listed {
                                ranks[ordinal as usize].store(rank, Ordering::Relaxed);
                            }
                        }
                        Ok(())
                    })?;
                }
                _ => self.for_each_rank(|ordinal, rank| {
                    *ranks[ordinal as usize].get_mut() = rank;
                    Ok(())
                })?,
            }
            let ranks: Vec<u32> = ranks.into_iter().map(AtomicU32::into_inner).collect();
            return out.section(section.0, 0, section.1, documents, |out| put_all(out, &ranks, put_u32));
        }
        let bits = 64 - documents.leading_zeros() + 32;
        let mut sorter = RadixSorter::new(budget, budget.share(8), bits);
        self.for_each_rank(|ordinal, rank| sorter.push(u64::from(ordinal) << 32 | u64::from(rank)))?;
        let sorted = sorter.finish()?;
        out.section(section.0, 0, section.1, documents, |out| {
            let (mut values, mut next) = (sorted.values(), 0);
            let mut filled = Vec::new();
            while let Some(chunk) = values.next_slice()? {
                for part in chunk.chunks(CHUNK) {
                    filled.clear();
                    for &item in part {
                        let ordinal = item >> 32;
                        put_rankless(out, ordinal - next, &mut filled)?;
                        filled.push(item as u32);
                        next = ordinal + 1;
                    }
                    put_all(out, &filled, put_u32)?;
                }
            }
            filled.clear();
            put_rankless(out, documents - next, &mut filled)?;
            put_all(out, &filled, put_u32)
        })
    }

    /// Writes ranks, tables and postings. All ordinals are below `documents`. Returns the number of distinct fingerprints.
    pub(super) fn write(
        self,
        out: &mut SegmentOutput,
        simhash: SimhashParams,
        documents: u64,
    ) -> Result<u64> {
        self.write_ranks(out, documents)?;
        let rows = self.fingerprints.len();
        write_tables(out, simhash, &self.fingerprints, self.budget)?;
        out.section(Kind::Postings, 0, postings::CODEC, rows, |out| {
            for column in [&self.posting, &self.lists] {
                let mut values = column.values();
                while let Some(chunk) = values.next_slice()? {
                    put_all(out, chunk, |value: u32, bytes| bytes.extend_from_slice(&value.to_le_bytes()))?;
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Returns the distinct fingerprints of sorted pairs in memory.
pub(super) fn distinct_of<'r>(budget: SpillBudget<'r>, pairs: &[u128]) -> Result<DistinctFingerprints<'r>> {
    if budget.threads() == 1 {
        return DistinctFingerprints::of(budget, ChunkedValues::of(pairs));
    }
    let (mut pieces, mut rest) = (Vec::new(), pairs);
    let max = PIECE.min(pairs.len().div_ceil(budget.threads()));
    while !rest.is_empty() {
        let last = rest[rest.len().min(max) - 1] >> 32;
        let (piece, later) = rest.split_at(rest.partition_point(|pair| pair >> 32 <= last));
        pieces.push(piece);
        rest = later;
    }
    DistinctFingerprints::of_pieces(budget, &pieces, |piece| Ok(ChunkedValues::of(piece)))
}

/// Appends `count` times the rank `NO_RANK` to `waiting`, for documents without a fingerprint. Writes `waiting`
/// whenever it has `CHUNK` ranks, because `count` may be millions.
fn put_rankless(out: &mut SegmentOutput, mut count: u64, waiting: &mut Vec<u32>) -> Result<()> {
    while count > 0 {
        let now = count.min(CHUNK as u64);
        waiting.resize(waiting.len() + now as usize, ranks::NO_RANK);
        count -= now;
        if waiting.len() >= CHUNK {
            put_all(out, waiting, |rank: u32, bytes| bytes.extend_from_slice(&rank.to_le_bytes()))?;
            waiting.clear();
        }
    }
    Ok(())
}

/// Chooses a table design for these ascending, distinct fingerprints, and writes the tables of this design.
fn write_tables(
    out: &mut SegmentOutput,
    simhash: SimhashParams,
    fingerprints: &SpillColumn<'_, u64>,
    budget: SpillBudget<'_>,
) -> Result<()> {
    let rows = fingerprints.len();
    let scheme = Scheme::choose(simhash.design, simhash.codec, simhash.within, rows);
    let name = scheme.design.to_string();
    out.section(Kind::Design, 0, design::CODEC, name.len() as u64, |out| out.put(name.as_bytes()))?;
    let tables = Design::new(scheme.design)?;
    let places: Vec<usize> = (0..tables.tables.len()).collect();
    let hot = |(): &mut (), &place: &usize| {
        let mut parts = SpilledParts::new(budget, budget.share(8));
        let entries = encode_hot(&tables, place, rows, || Ok(fingerprints.values()), &mut parts)?;
        Ok((place, entries, parts))
    };
    let write = |(place, entries, parts): (usize, Option<u64>, SpilledParts<'_>)| {
        if let Some(entries) = entries {
            let write = |out: &mut SegmentOutput| parts.write(out, true);
            out.section(Kind::Hot, place as u16 + 1, hot::CODEC, entries, write)?;
        }
        Ok::<_, Error>(ControlFlow::Continue(()))
    };
    let _ = in_order(&mut vec![(); budget.threads().min(places.len())], &places, 1, hot, write)?;
    encode_tables(scheme, fingerprints, budget, |place, codec, parts| {
        // Sections are ordered by kind, so complete tables come before partial ones.
        out.section(codec.kind(), place as u16 + 1, codec.number(), rows, |out| parts.write(out, true))
    })
}

/// Encodes table 1, whose keys are the fingerprints in ascending order.
fn encode_first<'v>(
    codec: Codec,
    lead: u32,
    rows: u64,
    keys: impl Fn() -> ChunkedValues<'v, u64>,
    parts: &mut SpilledParts<'_>,
) -> Result<()> {
    if codec != Codec::Complete(Complete::Planes) {
        return codec.encode(rows, lead, keys, parts);
    }
    let (mut encoder, mut keys) = (planes::Encoder::new(&Planes::of(rows, lead)), keys());
    while let Some(some) = keys.next_slice()? {
        encoder.put(some, parts)?;
    }
    encoder.finish(parts)
}

/// Number of bytes for each row that building tables takes: the fingerprint, the value, its copy and its encoding.
const TABLE_BYTES: u64 = 32;
/// The same for partial tables: the fingerprint, the row between the two distributions, and its encoding.
const PARTIAL_BYTES: u64 = 20;

/// Encodes several tables at the same time, and each of them on several threads. Calls `each` as [`encode_tables`] does.
fn encode_tables_on_threads(
    scheme: Scheme,
    design: &Design,
    fingerprints: &[u64],
    (budget, at_once): (SpillBudget<'_>, usize),
    mut each: impl FnMut(usize, Codec, &SpilledParts<'_>) -> Result<()> + Send,
) -> Result<()> {
    let rows = fingerprints.len() as u64;
    let places: Vec<usize> = (0..design.tables.len()).collect();
    let threads = budget.threads().div_ceil(at_once);
    let encode = |(): &mut (), &place: &usize| {
        let (table, codec) = (&design.tables[place], Codec::in_scheme(scheme, place));
        let mut parts = SpilledParts::new(budget, budget.share(8));
        if let Codec::Partial(width) = codec {
            encode_partial_on_threads(design, place, width, fingerprints, threads, &mut parts)?;
        } else if place == 0 {
            encode_first(codec, table.lead, rows, || ChunkedValues::of(fingerprints), &mut parts)?;
        } else {
            let value = value_of(design, place, codec, rows);
            let mut values: Vec<u64> = fingerprints.iter().map(|&fingerprint| value(fingerprint)).collect();
            sort_on_threads(threads, &mut values, &mut Vec::new());
            codec.encode(rows, table.lead, || ChunkedValues::of(&values), &mut parts)?;
        }
        Ok((place, codec, parts))
    };
    let write = |(place, codec, parts): (usize, Codec, SpilledParts<'_>)| {
        each(place, codec, &parts).map(ControlFlow::Continue)
    };
    in_order(&mut vec![(); at_once], &places, 1, encode, write).map(drop)
}

/// Encodes the tables of a scheme one after the other. Calls `each` with the encoded parts of each table.
pub(super) fn encode_tables(
    scheme: Scheme,
    fingerprints: &SpillColumn<'_, u64>,
    budget: SpillBudget<'_>,
    mut each: impl FnMut(usize, Codec, &SpilledParts<'_>) -> Result<()> + Send,
) -> Result<()> {
    let rows = fingerprints.len();
    let design = Design::new(scheme.design)?;
    let bytes = if scheme.codecs.partial.is_some() { PARTIAL_BYTES } else { TABLE_BYTES };
    let at_once = budget.sections_at_once(bytes * rows).min(design.tables.len());
    if budget.threads() > 1 && at_once > 0 {
        return encode_tables_on_threads(
            scheme,
            &design,
            &fingerprints.get(0..rows)?,
            (budget, at_once),
            each,
        );
    }
    let in_memory = rows.saturating_mul(16) <= budget.share(2) as u64;
    let (mut values, mut scratch): (Vec<u64>, Vec<u64>) = Default::default();
    // Each table uses this buffer, one table after the other.
    let mut parts = SpilledParts::new(budget, budget.share(8));
    let mut place = 0;
    while let Some(table) = design.tables.get(place) {
        let codec = Codec::in_scheme(scheme, place);
        if let Codec::Partial(width) = codec {
            // All following tables are partial, too.
            let places = place..design.tables.len();
            let each_of = |place, parts: &mut SpilledParts<'_>| {
                each(place, codec, parts)?;
                parts.clear();
                Ok(())
            };
            if encode_partial(&design, places, width, fingerprints, budget.share(2), &mut parts, each_of)? {
                break;
            }
        }
        if place == 0 {
            encode_first(codec, table.lead, rows, || fingerprints.values(), &mut parts)?;
        } else if in_memory {
            let value = value_of(&design, place, codec, rows);
            values.clear();
            let mut chunks = fingerprints.values();
            while let Some(chunk) = chunks.next_slice()? {
                values.extend(chunk.iter().map(|&fingerprint| value(fingerprint)));
            }
            sort_values(table, codec, &mut values, &mut scratch);
            codec.encode(rows, table.lead, || ChunkedValues::of(&values), &mut parts)?;
        } else {
            let value = value_of(&design, place, codec, rows);
            let mut sorter = RadixSorter::new(budget, budget.share(2), 64);
            for fingerprint in fingerprints.values() {
                sorter.push(value(fingerprint?))?;
            }
            let sorted = sorter.finish()?;
            codec.encode(rows, table.lead, || sorted.values(), &mut parts)?;
        }
        each(place, codec, &parts)?;
        parts.clear();
        place += 1;
    }
    Ok(())
}

/// Returns the entries of a band in ascending order. An entry has the band key in the high 32 bits and the ordinal in
/// the low 32 bits.
fn band_entries(records: &Records, order: &[u32], band: u16, threads: usize) -> Vec<u64> {
    let (bands, _) = records.widths();
    let mut entries: Vec<u64> = (0_u64..)
        .zip(order)
        .filter(|&(_, &row)| records.kinds[row as usize] == RowKind::Sketched)
        .map(|(ordinal, &row)| {
            let key = records.bands[row as usize * bands + usize::from(band)];
            u64::from(key) << 32 | ordinal
        })
        .collect();
    sort_on_threads(threads, &mut entries, &mut Vec::new());
    entries
}

/// Number of bytes for each document that building a band takes: its entries, their copy and their encoding.
const BAND_BYTES: u64 = 24;

/// Writes all bands. Builds several at the same time, and writes them in order. `entries` is called with a band, from 0,
/// and a number of threads. It returns the number of entries of the band, and the entries in ascending order. An entry
/// has the band key in the high 32 bits and the ordinal in the low 32 bits.
pub(super) fn write_bands<E: SliceSource<u64>>(
    out: &mut SegmentOutput,
    minhash: MinhashParams,
    documents: u64,
    budget: SpillBudget<'_>,
    entries: impl Fn(u16, usize) -> Result<(u64, E)> + Sync,
) -> Result<()> {
    let bands: Vec<u16> = (0..minhash.bands).collect();
    let at_once = budget.sections_at_once(BAND_BYTES * documents).clamp(1, bands.len().max(1));
    let threads = budget.threads() / at_once;
    let encode = |(): &mut (), &band: &u16| {
        let (rows, mut entries) = entries(band, threads)?;
        let layout = Band::of(rows, documents, minhash.feature_bits.into(), CODEC_PACKED);
        Ok((band, encode_entries(layout, budget, &mut entries)?))
    };
    let write = |(band, encoded): (u16, EncodedEntries<'_>)| {
        encoded.write(out, Kind::Band, band + 1).map(ControlFlow::Continue)
    };
    in_order(&mut vec![(); at_once], &bands, 1, encode, write).map(drop)
}

/// Writes the parts of the codes. Builds several at the same time, and writes them in order. `codes` calls its argument
/// with the bytes of each code, in the order of ordinals.
pub(super) fn write_parts(
    out: &mut SegmentOutput,
    cut: Cut,
    documents: u64,
    budget: SpillBudget<'_>,
    codes: impl Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + Sync,
) -> Result<()> {
    let at_once = budget.sections_at_once(BAND_BYTES * documents).clamp(1, cut.parts as usize);
    let encode = |(): &mut (), part: u32| {
        let bits = cut.bits_of(part);
        let mut sorter = RadixSorter::new(budget, budget.share(4 * at_once), 64);
        let (mut words, mut ordinal) = (Vec::new(), 0);
        codes(&mut |code| {
            words.clear();
            words.extend(code.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)));
            let entry: u64 = u64::from(bits.key(&words)) << 32 | ordinal;
            ordinal += 1;
            sorter.push(entry)
        })?;
        let mut sorted = sorter.finish()?.into_values();
        Ok((part, encode_entries(cut.layout(part, documents), budget, &mut sorted)?))
    };
    let write = |(part, encoded): (u32, EncodedEntries<'_>)| {
        encoded.write(out, Kind::Part, part as u16 + 1).map(ControlFlow::Continue)
    };
    in_order(&mut vec![(); at_once], 0..cut.parts, 1, encode, write).map(drop)
}

/// Encodes `values` and writes the encoded bytes chunk by chunk.
pub(super) fn put_all<T: Copy>(
    out: &mut SegmentOutput,
    values: &[T],
    mut encode: impl FnMut(T, &mut Vec<u8>),
) -> Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK * size_of::<T>());
    for chunk in values.chunks(CHUNK) {
        bytes.clear();
        for &value in chunk {
            encode(value, &mut bytes);
        }
        out.put(&bytes)?;
    }
    Ok(())
}
