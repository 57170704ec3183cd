//! Which fingerprints are within a Hamming radius of this one?
//!
//! Table by table, as `tables.rs` lays down:
//!
//! 1. Table 1: for each prefix within its radius, scan the bucket's middle plane (blocks 2 and 3), and complete the
//!    distance from the other planes for what is left.
//! 2. Each further table: for each prefix within its radius, scan the bucket's pointers (block 1 of each entry).
//!    An entry that can still be within the radius points to a bucket of table 1; scan that as in step 1, keeping
//!    only fingerprints of the bucket the probe came from. Entries with the same pointer stand together, so each
//!    bucket of table 1 is scanned at most once a probe.
//! 3. A fingerprint that several tables find is reported by the first whose radius it is in.

use std::ops::Range;

use zerocopy::little_endian::{U16, U32};

use super::build::filter_value;
use super::open::{Fingerprints, Segment};
use crate::error::{Error, Result};
use crate::format::contents::Section;
use crate::format::postings::{self, Posting};
use crate::format::ranks;
use crate::format::table::Directory;
use crate::format::wire::{self, Fault};
use crate::kernel;
use crate::params::WITHIN_MAX;
use crate::tables::{BLOCK_BITS, TABLES, block, masks, radii};

/// Bytes that come into the caches together.
const CACHE_LINE: u64 = 64;
/// Lines of a bucket brought near ahead; the processor's own prefetching follows a longer scan.
const LINES_AHEAD: u64 = 4;

/// Refuses a radius that the tables do not answer.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_radius(within: u32) -> Result<()> {
    if within <= WITHIN_MAX.into() {
        return Ok(());
    }
    Err(Error::Invalid(format!("within {within}: radii up to {WITHIN_MAX} are answered")))
}

/// A fingerprint within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its place in table 1.
    pub rank: u32,
    /// Itself.
    pub fingerprint: u64,
    /// The bits in which it differs from the query.
    pub distance: u32,
}

impl Segment {
    /// Hands each distinct fingerprint within `within` bits of `query` to `hit`, once, in no particular order.
    /// Exact for every radius up to [`WITHIN_MAX`]; nothing where no fingerprints are
    /// kept.
    ///
    /// Cost: [`probes`](crate::tables::probes) look-ups, each followed by a scan of n / 65,536 entries.
    ///
    /// # Errors
    /// [`Error::Corrupt`], what was handed out before it stands; [`Error::Invalid`] for a larger radius.
    pub fn within(&self, query: u64, within: u32, mut hit: impl FnMut(Near)) -> Result<()> {
        check_radius(within)?;
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        kernel::vectorized(
            #[inline(always)]
            || Probe::new(self, fingerprints, query, within).run(&mut hit),
        )
    }

    /// Brings what [`within`](Self::within) will read first for these queries into the caches, stage by stage for
    /// all of them, so that they wait for memory together and not one after the other: the directories' entries,
    /// then the buckets these name. For prefixes equal to the query's only; the others of a larger radius are many.
    ///
    /// A hint that costs a few nanoseconds a query and checks nothing; about 16 queries at a time do best.
    pub fn prefetch(&self, queries: impl Iterator<Item = u64> + Clone) {
        let Some(fingerprints) = &self.fingerprints else { return };
        let bytes = self.file();
        let shift = BLOCK_BITS - fingerprints.complete.directory.bits;
        let entry = |section: &Section, query: u64, table: usize| {
            let prefix = (u32::from(block(query, table)) >> shift) as u16;
            (section.offset + fingerprints.complete.directory.range(prefix).start) as usize
        };
        let sections = [
            &fingerprints.table,
            &fingerprints.filters[0],
            &fingerprints.filters[1],
            &fingerprints.filters[2],
        ];
        for query in queries.clone() {
            for (table, section) in sections.iter().enumerate() {
                kernel::prefetch(bytes, entry(section, query, table));
            }
        }
        for query in queries {
            for (table, section) in sections.iter().enumerate() {
                let at = entry(section, query, table);
                // Not checked: a wrong row brings a wrong line near, and `within` looks for itself.
                let Some(Ok(rows)) = bytes.get(at..at + 8).map(wire::column::<U32>) else { continue };
                let rows = u64::from(rows[0].get())..u64::from(rows[1].get());
                let plane = if table == 0 {
                    fingerprints.complete.middle(&rows)
                } else {
                    fingerprints.filter.pointer(&rows)
                };
                let lines = plane.end.saturating_sub(plane.start).min(LINES_AHEAD * CACHE_LINE);
                for line in (0..lines).step_by(CACHE_LINE as usize) {
                    kernel::prefetch(bytes, (section.offset + plane.start + line) as usize);
                }
            }
        }
    }

    /// Hands each document within `within` bits of `query` to `hit`, with its distance, in no particular order.
    ///
    /// # Errors
    /// As [`within`](Self::within); also where lists of documents overlap, before that costs more than the segment
    /// has documents.
    #[inline]
    pub fn documents_within(&self, query: u64, within: u32, mut hit: impl FnMut(u32, u32)) -> Result<()> {
        let mut failed = None;
        let mut handed = 0;
        self.within(query, within, |near| {
            if failed.is_some() {
                return;
            }
            let listed = self.postings(near.rank, |ordinal| {
                handed += 1;
                hit(ordinal, near.distance);
            });
            failed = listed.err();
            if handed > self.documents() {
                failed = Some(self.lists_overlap(near.rank));
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    #[cold]
    fn lists_overlap(&self, rank: u32) -> Error {
        let Some(fingerprints) = &self.fingerprints else { return Self::keeps_no_fingerprints() };
        let expected = format!("each of {} documents in one list", self.documents());
        let fault = Fault::new(postings::range(rank.into()).start, expected, "lists that overlap");
        self.corrupt_at(&fingerprints.postings, fault)
    }

    #[cold]
    fn keeps_no_fingerprints() -> Error {
        Error::Invalid("this segment keeps no fingerprints".into())
    }

    /// The fingerprint of a rank.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for a rank that no fingerprint has; [`Error::Invalid`] where none are kept.
    pub fn fingerprint(&self, rank: u32) -> Result<u64> {
        let Some(fingerprints) = &self.fingerprints else { return Err(Self::keeps_no_fingerprints()) };
        let row = u64::from(rank)..u64::from(rank) + 1;
        let (complete, table) = (&fingerprints.complete, &fingerprints.table);
        let first = if complete.has_first() {
            self.column::<U16>(table, complete.first(&row))?[0].get()
        } else {
            self.prefix_of_rank(fingerprints, row.start)?
        };
        let middle = self.column::<U32>(table, complete.middle(&row))?[0].get();
        let last = self.column::<U16>(table, complete.last(&row))?[0].get();
        Ok(u64::from(first) << 48 | u64::from(middle) << 16 | u64::from(last))
    }

    /// The prefix whose bucket of table 1 a rank lies in: binary search in the directory.
    fn prefix_of_rank(&self, fingerprints: &Fingerprints, rank: u64) -> Result<u16> {
        let directory = fingerprints.complete.directory;
        let (mut low, mut high) = (0_u32, 1 << directory.bits);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let rows = self.bucket(&fingerprints.table, directory, middle as u16)?;
            if rows.start <= rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low as u16)
    }

    /// The rows of a bucket.
    #[inline(always)]
    pub(super) fn bucket(&self, section: &Section, directory: Directory, prefix: u16) -> Result<Range<u64>> {
        let bytes = self.read(section, directory.range(prefix))?;
        directory.decode(bytes, prefix).map_err(|e| self.corrupt_at(section, e))
    }

    /// The rows of a bucket in a scan of them all, which begins at row `end`, where the one before ended. A
    /// directory that lies could otherwise name every row in every bucket, and make a scan take its square.
    pub(super) fn next_bucket(
        &self,
        section: &Section,
        directory: Directory,
        prefix: u16,
        end: u64,
    ) -> Result<Range<u64>> {
        let rows = self.bucket(section, directory, prefix)?;
        let last = u32::from(prefix) + 1 == 1 << directory.bits;
        let expected = match (rows.start == end, last && rows.end != directory.rows) {
            (false, _) => format!("a bucket from row {end}"),
            (true, true) => format!("a last bucket up to row {}", directory.rows),
            (true, false) => return Ok(rows),
        };
        let lie =
            Fault::new(directory.range(prefix).start, expected, format!("{}..{}", rows.start, rows.end));
        Err(self.corrupt_at(section, lie))
    }

    /// The fingerprint's rank of a document; `None` for one without a sketch, and where no fingerprints are kept.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn rank(&self, ordinal: u32) -> Result<Option<u32>> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(None) };
        let ordinal = u64::from(ordinal);
        let bytes = self.read(&fingerprints.ranks, ranks::range(ordinal))?;
        ranks::decode(bytes, ordinal, fingerprints.distinct)
            .map_err(|e| self.corrupt_at(&fingerprints.ranks, e))
    }

    /// Hands the ordinals of the documents that have the fingerprint of `rank` to `each`, ascending.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn postings(&self, rank: u32, mut each: impl FnMut(u32)) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let (section, rank, documents) = (&fingerprints.postings, u64::from(rank), self.documents());
        let bytes = self.read(section, postings::range(rank))?;
        match postings::decode(bytes, rank, documents).map_err(|e| self.corrupt_at(section, e))? {
            Posting::One(ordinal) => each(ordinal),
            Posting::List(place) => {
                let head = self.read(section, postings::list_head(section.rows, place))?;
                let range = postings::list_range(head, section.rows, place, documents)
                    .map_err(|e| self.corrupt_at(section, e))?;
                let bytes = self.read(section, range.clone())?;
                postings::ordinals(bytes, range.start, documents, each)
                    .map_err(|e| self.corrupt_at(section, e))?;
            }
        }
        Ok(())
    }
}

/// One query against one segment.
struct Probe<'a> {
    segment: &'a Segment,
    fingerprints: &'a Fingerprints,
    query: u64,
    within: u32,
    radii: [Option<u32>; TABLES],
    /// Bits of a block behind the directory's prefix.
    shift: u32,
}

impl<'a> Probe<'a> {
    #[inline(always)]
    fn new(segment: &'a Segment, fingerprints: &'a Fingerprints, query: u64, within: u32) -> Self {
        let shift = BLOCK_BITS - fingerprints.complete.directory.bits;
        Self { segment, fingerprints, query, within, radii: radii(within), shift }
    }

    #[inline(always)]
    fn run(&self, hit: &mut impl FnMut(Near)) -> Result<()> {
        for table in 0..TABLES {
            let Some(radius) = self.radii[table] else { continue };
            let prefix = self.prefix(block(self.query, table));
            if radius == 0 {
                self.probe(table, prefix, 0, hit)?;
                continue;
            }
            for mask in masks(BLOCK_BITS - self.shift, radius) {
                self.probe(table, prefix ^ mask, mask.count_ones(), hit)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn probe(&self, table: usize, prefix: u16, distance: u32, hit: &mut impl FnMut(Near)) -> Result<()> {
        if table == 0 {
            return self.scan_complete(prefix, 0, prefix, hit).map(drop);
        }
        let section = &self.fingerprints.filters[table - 1];
        let layout = &self.fingerprints.filter;
        let rows = self.segment.bucket(section, layout.directory, prefix)?;
        let pointers: &[U16] = self.segment.column(section, layout.pointer(&rows))?;
        let query = block(self.query, 0);
        // A prefix further away than the radius allows leaves nothing to spend; that happens only to short ones.
        let Some(left) = self.within.checked_sub(distance) else { return Ok(()) };
        let (mut from, mut scanned, mut rows_scanned) = (0, None, 0);
        while let Some(place) = kernel::find(pointers, from, query.into(), left) {
            from = place + 1;
            let pointer = pointers[place].get();
            let bucket = self.prefix(pointer);
            if scanned == Some(bucket) || self.in_radius(0, u64::from(pointer ^ query) << 48) {
                continue;
            }
            if layout.width > 2 {
                let at = rows.start + place as u64;
                let bytes = self.segment.read(section, layout.filter(&(at..at + 1)))?;
                let stored = wire::short(bytes);
                let differs = (stored ^ filter_value(self.query, table, layout.width)).count_ones();
                if (pointer ^ query).count_ones() + differs > left {
                    continue;
                }
            }
            scanned = Some(bucket);
            rows_scanned += self.scan_complete(bucket, table, prefix, hit)?;
            if rows_scanned > self.fingerprints.distinct {
                // Buckets that overlap would make a probe take time in the square of the file's size.
                return Err(self.overlap(bucket));
            }
        }
        Ok(())
    }

    /// Reports what is near in the bucket `bucket` of table 1, as far as table `table` with prefix `prefix` is the
    /// first to find it. Returns the rows of the bucket.
    #[inline(always)]
    fn scan_complete(
        &self,
        bucket: u16,
        table: usize,
        prefix: u16,
        hit: &mut impl FnMut(Near),
    ) -> Result<u64> {
        let (section, layout) = (&self.fingerprints.table, &self.fingerprints.complete);
        let rows = self.segment.bucket(section, layout.directory, bucket)?;
        let spent = if layout.has_first() { 0 } else { (bucket ^ block(self.query, 0)).count_ones() };
        let Some(left) = self.within.checked_sub(spent) else { return Ok(0) };
        let middles: &[U32] = self.segment.column(section, layout.middle(&rows))?;
        let mut from = 0;
        while let Some(place) = kernel::find(middles, from, (self.query >> 16) as u32, left) {
            from = place + 1;
            let at = rows.start + place as u64..rows.start + place as u64 + 1;
            let first = if layout.has_first() {
                self.segment.column::<U16>(section, layout.first(&at))?[0].get()
            } else {
                bucket
            };
            let last = self.segment.column::<U16>(section, layout.last(&at))?[0].get();
            let fingerprint =
                u64::from(first) << 48 | u64::from(middles[place].get()) << 16 | u64::from(last);
            let difference = fingerprint ^ self.query;
            let distance = difference.count_ones();
            if distance <= self.within
                && self.prefix(block(fingerprint, table)) == prefix
                && !(0..table).any(|earlier| self.in_radius(earlier, difference))
            {
                hit(Near { rank: at.start as u32, fingerprint, distance });
            }
        }
        Ok(rows.end - rows.start)
    }

    #[cold]
    fn overlap(&self, bucket: u16) -> Error {
        let layout = &self.fingerprints.complete;
        let expected = format!("buckets of {} rows in all", self.fingerprints.distinct);
        let fault = Fault::new(layout.directory.range(bucket).start, expected, "buckets that overlap");
        self.segment.corrupt_at(&self.fingerprints.table, fault)
    }

    /// True where table `table` finds a fingerprint that differs from the query in these bits.
    #[inline(always)]
    fn in_radius(&self, table: usize, difference: u64) -> bool {
        self.radii[table]
            .is_some_and(|radius| u32::from(self.prefix(block(difference, table))).count_ones() <= radius)
    }

    /// A block's bits that the directory leads with.
    #[inline(always)]
    fn prefix(&self, block: u16) -> u16 {
        (u32::from(block) >> self.shift) as u16
    }
}
