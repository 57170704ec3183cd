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

use std::path::Path;

use zerocopy::IntoBytes;

use super::attached::{write_stamps, write_values};
use super::entries::write_entries;
use super::hot::write_hot;
use super::output::{Finished, SegmentOutput};
use super::partial::encode_partial;
use super::records::{KeyColumn, Records, RowKind, SampleColumn};
use super::sets::{SetVisitor, write_sets};
use super::sorted::{self, RadixSorter};
use super::spilled::{ChunkedValues, SliceSource, SpillBudget, SpillColumn, SpilledParts, pair};
use super::tables::{sort_values, value_of};
use crate::design::{Complete, Design, Scheme};
use crate::error::{Error, Result};
use crate::format::attached::Stamps;
use crate::format::contents::Kind;
use crate::format::keys::{self, Frame};
use crate::format::table::{Codec, Planes, planes};
use crate::format::{attached, design, fields, postings, ranks, samples, signatures};
use crate::params::{Params, SimhashParams};
use crate::sys::vfs::{TemporaryFile, Vfs};

/// Number of values that are encoded before their bytes are written.
const CHUNK: usize = 8192;

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
    let order = records.order();
    let documents = order.len() as u64;
    let mut scratch = Vec::new();
    let salt = order.iter().fold(records.params.digest(), |sum, &row| {
        sum.wrapping_add(records.record_hash(row as usize, &mut scratch))
    });
    let budget = SpillBudget::unlimited();
    let mut out = begin(vfs, dir, salt, &records.params)?;
    write_keys(&mut out, records, &order)?;
    let mut distinct = 0;
    if let Some(simhash) = records.params.simhash {
        let pairs = ChunkedValues::from(fingerprint_pairs(records, &order));
        distinct = write_fingerprints(&mut out, simhash, documents, budget, pairs)?;
    }
    if let Some(minhash) = records.params.minhash {
        for band in 0..minhash.bands {
            let entries = band_entries(records, &order, band);
            let shape = (documents, entries.len() as u64, minhash.feature_bits.into());
            write_band(&mut out, band, shape, budget, &mut ChunkedValues::of(&entries))?;
        }
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
    write_attached(&mut out, records, &order)?;
    Ok(BuiltSegment::of(out.finish(documents, distinct)?, salt, documents))
}

fn write_attached(out: &mut SegmentOutput, records: &Records, order: &[u32]) -> Result<()> {
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
        sorted::sort(&mut pairs, &mut Vec::new());
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
        write_values(
            out,
            (Kind::Fields, fields::CODEC),
            &mut |each| order.iter().try_for_each(|&row| each(fields(row).len() as u64)),
            |out| order.iter().try_for_each(|&row| out.put(fields(row))),
        )?;
        let mut sets = |each: &mut SetVisitor<'_>| {
            (0..).zip(order).try_for_each(|(ordinal, &row)| each(ordinal, records.fields(row as usize)))
        };
        write_sets(out, &records.params, order.len() as u64, SpillBudget::unlimited(), &mut sets)?;
    }
    Ok(())
}

/// Creates the file and writes the parameters, which are its first section.
pub(super) fn begin(vfs: &dyn Vfs, dir: &Path, salt: u128, params: &Params) -> Result<SegmentOutput> {
    let mut out = SegmentOutput::create(vfs, dir, salt, params)?;
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
            let section = keys::encode_front(sorted);
            out.section(Kind::Keys, 0, keys::CODEC_FRONT, rows, |out| out.put(&section))
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
fn fingerprint_pairs(records: &Records, order: &[u32]) -> Vec<u128> {
    let mut pairs: Vec<u128> = (0..)
        .zip(order)
        .filter(|&(_, &row)| records.kinds[row as usize] == RowKind::Sketched)
        .map(|(ordinal, &row)| pair(records.fingerprints[row as usize], ordinal))
        .collect();
    sorted::sort(&mut pairs, &mut Vec::new());
    pairs
}

/// The rank of each document, either in memory or in a sorter.
enum RankColumn<'r> {
    /// Ranks by ordinal.
    InMemory(Vec<u32>),
    /// Pairs of ordinal and rank: an item has the ordinal in the high 32 bits and the rank in the low 32 bits.
    RadixSorted(Box<RadixSorter<'r, u64>>),
}

/// Ranks, postings and distinct fingerprints, derived from ascending pairs (fingerprint, ordinal).
struct DistinctFingerprints<'r> {
    fingerprints: SpillColumn<'r, u64>,
    posting: SpillColumn<'r, u32>,
    lists: SpillColumn<'r, u32>,
    ranks: RankColumn<'r>,
}

impl<'r> DistinctFingerprints<'r> {
    /// Computes ranks, postings and distinct fingerprints from `pairs`, whose ordinals must be below `documents`.
    fn of(documents: u64, budget: SpillBudget<'r>, mut pairs: impl SliceSource<u128>) -> Result<Self> {
        let in_memory = documents.saturating_mul(4) <= budget.share(8) as u64;
        let mut distinct = Self {
            fingerprints: SpillColumn::new(budget, budget.share(8)),
            posting: SpillColumn::new(budget, budget.share(16)),
            lists: SpillColumn::new(budget, budget.share(32)),
            ranks: if in_memory {
                RankColumn::InMemory(vec![ranks::NO_RANK; documents as usize])
            } else {
                let bits = 64 - documents.leading_zeros() + 32;
                RankColumn::RadixSorted(Box::new(RadixSorter::new(budget, budget.share(8), bits)))
            },
        };
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
                let rank = distinct.fingerprints.len() as u32 - 1;
                match &mut distinct.ranks {
                    RankColumn::InMemory(ranks) => ranks[ordinal as usize] = rank,
                    RankColumn::RadixSorted(sorter) => {
                        sorter.push(u64::from(ordinal) << 32 | u64::from(rank))?;
                    }
                }
            }
        }
        if let Some((_, first)) = last {
            distinct.end_group(first, &mut more)?;
        }
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
}

/// Writes ranks, tables and postings from ascending pairs of fingerprint and ordinal. All ordinals are below `documents`.
/// Returns the number of distinct fingerprints.
pub(super) fn write_fingerprints(
    out: &mut SegmentOutput,
    simhash: SimhashParams,
    documents: u64,
    budget: SpillBudget<'_>,
    pairs: impl SliceSource<u128>,
) -> Result<u64> {
    // `of` consumes the pairs, so the memory of the pairs is free when the tables are built.
    let DistinctFingerprints { fingerprints, posting, lists, ranks } =
        DistinctFingerprints::of(documents, budget, pairs)?;
    let put_u32 = |value: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&value.to_le_bytes());
    out.section(Kind::Ranks, 0, ranks::CODEC, documents, |out| match ranks {
        RankColumn::InMemory(ranks) => put_all(out, &ranks, put_u32),
        RankColumn::RadixSorted(sorter) => {
            let sorted = sorter.finish()?;
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
        }
    })?;
    let rows = fingerprints.len();
    write_tables(out, simhash, &fingerprints, budget)?;
    out.section(Kind::Postings, 0, postings::CODEC, rows, |out| {
        for column in [&posting, &lists] {
            let mut values = column.values();
            while let Some(chunk) = values.next_slice()? {
                put_all(out, chunk, put_u32)?;
            }
        }
        Ok(())
    })?;
    Ok(rows)
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
    for place in 0..tables.tables.len() {
        let parts = SpilledParts::new(budget, budget.share(8));
        write_hot(
            out,
            &tables,
            place,
            rows,
            || Ok(fingerprints.values()),
            parts,
            |out, parts| parts.write(out, true),
        )?;
    }
    encode_tables(scheme, fingerprints, budget, |place, codec, parts| {
        // Sections are ordered by kind, so complete tables come before partial ones.
        out.section(codec.kind(), place as u16 + 1, codec.number(), rows, |out| parts.write(out, true))
    })
}

/// Encodes the tables of a scheme one after the other. Calls `each` with the encoded parts of each table.
pub(super) fn encode_tables(
    scheme: Scheme,
    fingerprints: &SpillColumn<'_, u64>,
    budget: SpillBudget<'_>,
    mut each: impl FnMut(usize, Codec, &SpilledParts<'_>) -> Result<()>,
) -> Result<()> {
    let rows = fingerprints.len();
    let design = Design::new(scheme.design)?;
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
            // The keys of table 1 are the fingerprints themselves, already sorted.
            if codec == Codec::Complete(Complete::Planes) {
                let mut encoder = planes::Encoder::new(&Planes::of(rows, table.lead));
                let mut keys = fingerprints.values();
                while let Some(some) = keys.next_slice()? {
                    encoder.put(some, &mut parts)?;
                }
                encoder.finish(&mut parts)?;
            } else {
                codec.encode(rows, table.lead, || fingerprints.values(), &mut parts)?;
            }
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
fn band_entries(records: &Records, order: &[u32], band: u16) -> Vec<u64> {
    let (bands, _) = records.widths();
    let mut entries: Vec<u64> = (0_u64..)
        .zip(order)
        .filter(|&(_, &row)| records.kinds[row as usize] == RowKind::Sketched)
        .map(|(ordinal, &row)| {
            let key = records.bands[row as usize * bands + usize::from(band)];
            u64::from(key) << 32 | ordinal
        })
        .collect();
    sorted::sort(&mut entries, &mut Vec::new());
    entries
}

/// Writes a band, numbered from 0. `entries` yields `rows` ascending entries, with the band key (of `key_bits` bits) in
/// the high 32 bits and the ordinal in the low 32 bits.
pub(super) fn write_band(
    out: &mut SegmentOutput,
    band: u16,
    (documents, rows, key_bits): (u64, u64, u32),
    budget: SpillBudget<'_>,
    entries: &mut impl SliceSource<u64>,
) -> Result<()> {
    write_entries(out, (Kind::Band, band + 1), (documents, rows, key_bits), budget, entries)
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
