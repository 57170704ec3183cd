//! Records to a segment file.
//!
//! The file is canonical: the same records and parameters give the same bytes, whatever the order they came in.
//!
//! 1. Order the records by key; an ordinal is a record's rank. Of a repeated key the last record counts.
//! 2. Sum the records' hashes to the salt.
//! 3. Sort (fingerprint, ordinal): table 1, the ranks and the postings follow.
//! 4. Each further table: distribute table 1 over the table's buckets. As table 1 is read in order, a bucket's
//!    entries come out sorted by block 1 already.
//! 5. Each band: sort (band key, ordinal).
//!
//! Time O(n log n), memory about 40 bytes a record beside the records.

use std::path::Path;

use zerocopy::IntoBytes;

use super::output::SegmentOutput;
use super::records::{KeyColumn, Records, RowKind, SampleColumn};
use crate::error::{Error, Result};
use crate::format::bands::{Band, BandEntry};
use crate::format::contents::Kind;
use crate::format::keys::{self, Frame};
use crate::format::table::{self, Complete, Directory, Filter};
use crate::format::{postings, ranks, samples, signatures};
use crate::sys::vfs::{TemporaryFile, Vfs};
use crate::tables::{BLOCK_BITS, TABLES, block, filter_bytes};

/// Values written at a time.
const CHUNK: usize = 8192;

/// A segment written and synced, but without a name.
#[derive(Debug)]
pub struct Built {
    file: Box<dyn TemporaryFile>,
    /// Of the file.
    pub length: u64,
    /// Of the file; see [`Segment::digest`](super::Segment::digest).
    pub digest: u128,
    /// In its header.
    pub salt: u128,
    /// In it.
    pub documents: u64,
}

impl Built {
    /// Gives the segment its name; a file that is there is an error.
    ///
    /// # Errors
    /// The operating system's. The name is durable once the directory is synced.
    pub fn publish(self, path: &Path) -> Result<()> {
        self.file.publish(path, false).map_err(|e| Error::io("publish", path, e))
    }
}

/// Writes `records` to a temporary file in `dir` and syncs it.
///
/// # Errors
/// The operating system's, naming the directory.
pub fn build(records: &Records, vfs: &dyn Vfs, dir: &Path) -> Result<Built> {
    let order = records.order();
    let documents = order.len() as u64;
    let params = records.params.encode();
    let params_digest = records.params.digest();
    let mut scratch = Vec::new();
    let salt = order
        .iter()
        .fold(params_digest, |sum, &row| sum.wrapping_add(records.record_hash(row as usize, &mut scratch)));
    let mut out = SegmentOutput::create(vfs, dir, salt, params_digest)?;
    out.section(Kind::Params, 0, 1, params.len() as u64, |out| out.put(params.as_bytes()))?;
    write_keys(&mut out, records, &order)?;
    let mut distinct = 0;
    if records.params.simhash.is_some() {
        distinct = write_fingerprints(&mut out, records, &order)?;
    }
    if let Some(minhash) = records.params.minhash {
        for band in 0..minhash.bands {
            write_band(&mut out, records, &order, band)?;
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
    let finished = out.finish(documents, distinct)?;
    Ok(Built { file: finished.file, length: finished.length, digest: finished.digest, salt, documents })
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
            let frame = Frame::of(&sorted);
            out.section(Kind::Keys, 0, keys::CODEC_FRAME, rows, |out| {
                out.put(frame.head().as_bytes())?;
                if frame.width == 0 {
                    return Ok(());
                }
                put_all(out, &sorted, |key, bytes| {
                    bytes.extend_from_slice(&(key - frame.base).to_le_bytes()[..frame.width as usize]);
                })
            })
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

/// Writes ranks, tables and postings; returns the number of distinct fingerprints.
fn write_fingerprints(out: &mut SegmentOutput, records: &Records, order: &[u32]) -> Result<u64> {
    let mut pairs: Vec<(u64, u32)> = (0..)
        .zip(order)
        .filter(|&(_, &row)| records.kinds[row as usize] == RowKind::Sketched)
        .map(|(ordinal, &row)| (records.fingerprints[row as usize], ordinal))
        .collect();
    pairs.sort_unstable();

    let mut fingerprints: Vec<u64> = Vec::with_capacity(pairs.len());
    let mut rank_of = vec![ranks::NO_RANK; order.len()];
    let mut posting: Vec<u32> = Vec::with_capacity(pairs.len());
    let mut lists: Vec<u32> = Vec::new();
    for group in pairs.chunk_by(|a, b| a.0 == b.0) {
        let rank = fingerprints.len() as u32;
        fingerprints.push(group[0].0);
        for &(_, ordinal) in group {
            rank_of[ordinal as usize] = rank;
        }
        if let [(_, ordinal)] = group {
            posting.push(*ordinal);
        } else {
            posting.push(postings::LIST | lists.len() as u32);
            lists.push(group.len() as u32);
            lists.extend(group.iter().map(|&(_, ordinal)| ordinal));
        }
    }
    drop(pairs);

    let put_u32 = |value: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&value.to_le_bytes());
    out.section(Kind::Ranks, 0, ranks::CODEC, rank_of.len() as u64, |out| put_all(out, &rank_of, put_u32))?;
    drop(rank_of);
    let rows = fingerprints.len() as u64;
    write_complete(out, &fingerprints)?;
    for table in 1..TABLES {
        write_filter(out, &fingerprints, table, records.filter_width.unwrap_or(filter_bytes(rows)))?;
    }
    out.section(Kind::Postings, 0, postings::CODEC, rows, |out| {
        put_all(out, &posting, put_u32)?;
        put_all(out, &lists, put_u32)
    })?;
    Ok(rows)
}

fn write_complete(out: &mut SegmentOutput, fingerprints: &[u64]) -> Result<()> {
    let rows = fingerprints.len() as u64;
    let layout = Complete::of(rows);
    out.section(Kind::Table, 1, table::CODEC_COMPLETE, rows, |out| {
        let starts = bucket_starts(layout.directory, fingerprints.iter().map(|&f| block(f, 0)));
        put_all(out, &starts, |start, bytes| bytes.extend_from_slice(&start.to_le_bytes()))?;
        if layout.has_first() {
            out.align()?;
            put_all(out, fingerprints, |f, bytes| bytes.extend_from_slice(&block(f, 0).to_le_bytes()))?;
        }
        out.align()?;
        put_all(out, fingerprints, |f, bytes| bytes.extend_from_slice(&((f >> 16) as u32).to_le_bytes()))?;
        out.align()?;
        put_all(out, fingerprints, |f, bytes| bytes.extend_from_slice(&block(f, 3).to_le_bytes()))
    })
}

fn write_filter(out: &mut SegmentOutput, fingerprints: &[u64], table: usize, width: u32) -> Result<()> {
    let rows = fingerprints.len() as u64;
    let layout = Filter::of(rows, width);
    let shift = BLOCK_BITS - layout.directory.bits;
    let starts = bucket_starts(layout.directory, fingerprints.iter().map(|&f| block(f, table)));
    let mut next = starts.clone();
    let mut pointers = vec![0_u16; fingerprints.len()];
    let mut filters = vec![0_u16; if layout.width > 2 { fingerprints.len() } else { 0 }];
    for &fingerprint in fingerprints {
        let place = &mut next[(u32::from(block(fingerprint, table)) >> shift) as usize];
        pointers[*place as usize] = block(fingerprint, 0);
        if layout.width > 2 {
            filters[*place as usize] = filter_value(fingerprint, table, layout.width);
        }
        *place += 1;
    }
    drop(next);
    if layout.width > 2 {
        // Within a bucket, entries with the same block 1 came in the order of the whole fingerprint; the filter's
        // bits may be elsewhere in it.
        for bucket in starts.windows(2) {
            let rows = bucket[0] as usize..bucket[1] as usize;
            let mut start = rows.start;
            for run in pointers[rows].chunk_by(|a, b| a == b) {
                filters[start..start + run.len()].sort_unstable();
                start += run.len();
            }
        }
    }
    out.section(Kind::FilterTable, table as u16 + 1, table::filter_codec(width), rows, |out| {
        put_all(out, &starts, |start, bytes| bytes.extend_from_slice(&start.to_le_bytes()))?;
        out.align()?;
        put_all(out, &pointers, |pointer, bytes| bytes.extend_from_slice(&pointer.to_le_bytes()))?;
        if layout.width > 2 {
            out.align()?;
            let width = layout.width as usize - 2;
            put_all(out, &filters, |filter, bytes| bytes.extend_from_slice(&filter.to_le_bytes()[..width]))?;
        }
        Ok(())
    })
}

/// The table whose block a filter table's further bytes come from: the next of 2, 3, 4 in the cycle (0-based).
#[inline(always)]
fn filter_block(table: usize) -> usize {
    table % (TABLES - 1) + 1
}

/// The further bytes of a filter table's entry: the first one, or both, of the next block.
#[inline(always)]
pub(super) fn filter_value(fingerprint: u64, table: usize, width: u32) -> u16 {
    block(fingerprint, filter_block(table)) >> (8 * (4 - width))
}

/// For each prefix of the directory the number of blocks below it, and the number of all.
pub(super) fn bucket_starts(directory: Directory, blocks: impl Iterator<Item = u16>) -> Vec<u32> {
    let shift = BLOCK_BITS - directory.bits;
    let mut starts = vec![0_u32; (1 << directory.bits) + 1];
    for block in blocks {
        starts[(u32::from(block) >> shift) as usize + 1] += 1;
    }
    for prefix in 1..starts.len() {
        starts[prefix] += starts[prefix - 1];
    }
    starts
}

fn write_band(out: &mut SegmentOutput, records: &Records, order: &[u32], band: u16) -> Result<()> {
    let (bands, _) = records.widths();
    let mut entries: Vec<u64> = (0_u64..)
        .zip(order)
        .filter(|&(_, &row)| records.kinds[row as usize] == RowKind::Sketched)
        .map(|(ordinal, &row)| {
            let key = records.bands[row as usize * bands + usize::from(band)];
            u64::from(key) << 32 | ordinal
        })
        .collect();
    entries.sort_unstable();
    let rows = entries.len() as u64;
    let layout = Band::of(rows, order.len() as u64);
    out.section(Kind::Band, band + 1, crate::format::bands::CODEC, rows, |out| {
        // A directory over at most 16 bits sees of a band key what it sees of a block.
        let starts = bucket_starts(layout.directory, entries.iter().map(|entry| (entry >> 48) as u16));
        put_all(out, &starts, |start, bytes| bytes.extend_from_slice(&start.to_le_bytes()))?;
        out.align()?;
        put_all(out, &entries, |entry, bytes| {
            let entry = BandEntry { tag: layout.tag((entry >> 32) as u32), ordinal: entry as u32 };
            bytes.extend_from_slice(&layout.encode(entry)[..layout.entry_bytes as usize]);
        })
    })
}

/// Writes values through a small buffer.
fn put_all<T: Copy>(
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
