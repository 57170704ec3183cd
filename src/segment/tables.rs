//! The permutation tables of an open segment.

use std::ops::Range;
use std::sync::OnceLock;

use zerocopy::FromBytes;
use zerocopy::little_endian::U16;

use super::file::{SectionReader, SegmentFile};
use super::pages::Stretch;
use super::sorted::sort_tail_in_order;
use crate::design::{
    BitField, BitOrder, Codecs, Design, POINTER_BITS, Scheme, Table, WITHIN_MAX, prefix_bits,
};
use crate::error::{Error, Result};
use crate::format::contents::Section;
use crate::format::hot::{self, Hot, HotBucket};
use crate::format::table::planes::WIDE;
use crate::format::table::{Codec, Filter, Layout};
use crate::format::wire::Fault;

use crate::planner::cost::scans;
use twindex_kernel::CACHE_LINE;

/// The offsets of the data that the first stages of a search read in a `planes` or partial table: the directory, and a
/// plane of 16-bit values. They are relative to the file, not to the section, which saves instructions in each probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawLayout {
    /// The index of the table's section in the table of contents, from 0.
    entry: u32,
    directory: usize,
    plane: usize,
}

impl RawLayout {
    /// Returns the raw layout of a table; `None` if the codec has no plane of 16-bit values, or if the prefixes of
    /// probes and of the directory differ in length.
    fn of(entry: usize, layout: &Layout, section: &Section, bits: u32) -> Option<Self> {
        let (directory, plane) = match layout {
            Layout::Planes(planes) => (planes.directory, planes.scanned()),
            Layout::Filter(filter) => (filter.directory, filter.scanned()),
            _ => return None,
        };
        let (start, plane) = (section.offset as usize, (section.offset + plane) as usize);
        (directory.bits == bits).then_some(Self { entry: entry as u32, directory: start, plane })
    }

    fn section<'a>(&self, at: &SectionReader<'a>) -> &'a Section {
        &at.file.sections()[self.entry as usize]
    }

    /// Returns the row range of the bucket of `prefix`, in a table with `max` rows. Prefetches the first data that a
    /// scan of the bucket will read.
    #[inline(always)]
    pub(super) fn rows(&self, at: &SectionReader<'_>, prefix: u64, max: u64) -> Result<Range<u32>> {
        let entry = self.directory.wrapping_sub(at.base).wrapping_add(prefix as usize * 4);
        let both = at.sound.get(entry..).and_then(<[u8]>::first_chunk::<8>);
        let both = both.map_or(1, |both| u64::from_le_bytes(*both));
        let (start, end) = (both as u32, (both >> 32) as u32);
        // If the page of the entry has not been checked, `both` is 1, so `start` is 1 and `end` is 0: this branch is
        // taken.
        if start > end || u64::from(end) > max {
            return self.checked_rows(at, prefix, max);
        }
        self.hint_rows(at, start, end);
        Ok(start..end)
    }

    /// Prefetches the values of these rows in the plane, up to [`LINES_AHEAD`] cache lines.
    #[inline(always)]
    fn hint_rows(&self, at: &SectionReader<'_>, start: u32, end: u32) {
        let (mut line, end) = (self.plane + start as usize * 2, self.plane + end as usize * 2);
        let stop = end.min(line + LINES_AHEAD * CACHE_LINE);
        while line < stop {
            twindex_kernel::prefetch(at.whole, line);
            // Continue at the start of the next cache line.
            line = (line | (CACHE_LINE - 1)) + 1;
        }
    }

    #[inline(never)]
    fn checked_rows(&self, at: &SectionReader<'_>, prefix: u64, max: u64) -> Result<Range<u32>> {
        let section = self.section(at);
        let entry = self.directory + prefix as usize * 4;
        let bytes = at.checked(&(entry..entry + 8), section)?;
        let both = <[u8; 8]>::try_from(bytes).map_or(1, u64::from_le_bytes);
        let (start, end) = (both as u32, (both >> 32) as u32);
        if start > end || u64::from(end) > max {
            let (expected, found) = (format!("ascending rows up to {max}"), format!("{start} and {end}"));
            return Err(at.file.corrupt_at(section, Fault::new(prefix * 4, expected, found)));
        }
        if start < end {
            at.announce_file(&(self.plane + start as usize * 2..self.plane + end as usize * 2));
            self.hint_rows(at, start, end);
        }
        Ok(start..end)
    }

    /// Returns the values of these rows in the plane.
    #[inline(always)]
    pub(super) fn lanes<'a>(&self, at: &SectionReader<'a>, rows: Range<u32>) -> Result<&'a [U16]> {
        let range = self.plane + rows.start as usize * 2..self.plane + rows.end as usize * 2;
        match at.sound(&range) {
            Some(bytes) => match <[U16]>::ref_from_bytes(bytes) {
                Ok(lanes) => Ok(lanes),
                Err(_) => Err(self.odd_lanes(at, &range)),
            },
            None => self.checked_lanes(at, &range),
        }
    }

    #[inline(never)]
    fn checked_lanes<'a>(&self, at: &SectionReader<'a>, range: &Range<usize>) -> Result<&'a [U16]> {
        let bytes = at.checked(range, self.section(at))?;
        <[U16]>::ref_from_bytes(bytes).map_err(|_| self.odd_lanes(at, range))
    }

    /// Creates the error for a range that is not a whole number of 2-byte values.
    #[cold]
    fn odd_lanes(&self, at: &SectionReader<'_>, range: &Range<usize>) -> Error {
        let section = self.section(at);
        let offset = (range.start as u64).saturating_sub(section.offset);
        let fault = Fault::new(offset, "values of 2 bytes each", format!("{} bytes", range.len()));
        at.file.corrupt_at(section, fault)
    }

    /// Returns the value of a row in the plane.
    #[inline(always)]
    pub(super) fn lane(&self, at: &SectionReader<'_>, row: u32) -> Result<u16> {
        match self.lanes(at, row..row + 1)? {
            [lane] => Ok(lane.get()),
            lanes => {
                let start = self.plane + row as usize * 2;
                Err(self.odd_lanes(at, &(start..start + size_of_val(lanes))))
            }
        }
    }
}

/// Maximum number of cache lines of a plane that are prefetched. In longer scans the hardware prefetcher takes over.
const LINES_AHEAD: usize = 12;

/// An open permutation table.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) section: Section,
    pub(super) codec: Codec,
    pub(super) layout: Layout,
    pub(super) order: BitOrder,
    /// The bit order of the entries of a partial table; `None` for a complete table.
    pub(super) entry_order: Option<BitOrder>,
    /// Whether none of the pointer bits of an entry are among the leading bits of the table.
    pub(super) pointer_apart: bool,
    /// The number of bits in the prefix of a probe.
    pub(super) bits: u32,
    /// The positions of the prefix bits in a fingerprint.
    lead: BitField,
    /// The bits that a bucket scan compares first: bits 17 to 32 of a key, or the pointer of an entry.
    scanned: BitField,
    pub(super) front: Option<RawLayout>,
    pub(super) hot: Option<OpenHot>,
}

impl OpenTable {
    /// Opens a table of this design. `entry` is the index of its section in the table of contents. Reads only the start of
    /// the section.
    pub(super) fn open(
        file: &SegmentFile,
        design: &Design,
        entry: usize,
        codec: Codec,
        hot: Option<Section>,
    ) -> Result<Self> {
        let section = file.sections()[entry];
        let place = usize::from(section.index) - 1;
        let table = &design.tables[place];
        let layout = Layout::open(
            codec,
            SectionReader::new(file, &section),
            section.rows,
            table.lead,
            section.length,
        )?;
        let leads = &table.order.bits()[..table.lead as usize];
        let bits = table.probe_bits(section.rows);
        let entry_order = matches!(codec, Codec::Partial(_)).then(|| design.entry_order(place));
        Ok(Self {
            section,
            codec,
            lead: table.order.field(0..bits),
            scanned: match &entry_order {
                Some(order) => order.field(0..POINTER_BITS),
                None => table.order.field(16..32),
            },
            order: table.order.clone(),
            entry_order,
            pointer_apart: !(0..POINTER_BITS).any(|bit| leads.contains(&bit)),
            bits,
            front: RawLayout::of(entry, &layout, &section, bits),
            hot: hot.map(|hot| OpenHot::open(file, hot, section.rows, bits)).transpose()?,
            layout,
        })
    }

    /// Prefetches the directory entry of a prefix, which the first stage of a search reads.
    #[inline(always)]
    pub(super) fn hint_bucket<'a>(&'a self, at: &SectionReader<'a>, prefix: u64) {
        if let Some(front) = &self.front {
            twindex_kernel::prefetch(at.whole, front.directory + prefix as usize * 4);
            if at.is_cold() {
                let entry = front.directory + prefix as usize * 4;
                at.announce_file(&(entry..entry + 8));
            }
        } else {
            self.layout.hint_directory(at.section(&self.section), prefix, self.bits);
        }
    }

    /// Returns the prefix of a fingerprint in this table. Applied to the XOR of two fingerprints, it returns the bits
    /// in which their prefixes differ.
    #[inline(always)]
    pub(super) fn prefix_of(&self, fingerprint: u64) -> u64 {
        self.lead.of(fingerprint)
    }

    /// Returns the bits of a query that a bucket scan compares first.
    #[inline(always)]
    pub(super) fn scanned_of(&self, fingerprint: u64) -> u16 {
        self.scanned.of(fingerprint) as u16
    }

    /// Returns the value with which whole rows are compared: the key of the query or, in a partial table, its entry.
    #[inline(always)]
    pub(super) fn compared_of(&self, fingerprint: u64) -> u64 {
        self.entry_order.as_ref().unwrap_or(&self.order).apply(fingerprint)
    }

    /// Returns the prefix of a key, which is its leading bits.
    #[inline(always)]
    pub(super) fn prefix(&self, key: u64) -> u64 {
        key.checked_shr(64 - self.bits).unwrap_or(0)
    }
}

/// The hot buckets of an open table.
#[derive(Debug)]
pub(super) struct OpenHot {
    pub(super) section: Section,
    pub(super) hot: Hot,
}

impl OpenHot {
    /// Opens the hot section of a table whose prefixes have `bits` bits.
    fn open(file: &SegmentFile, section: Section, rows: u64, bits: u32) -> Result<Self> {
        let hot = Hot::open(SectionReader::new(file, &section), section.rows, section.length, rows, bits)?;
        Ok(Self { section, hot })
    }

    /// Returns the hot bucket of a prefix; `None` if the bucket is not hot. `rows` is the number of rows in the bucket.
    #[inline(always)]
    pub(super) fn bucket(&self, prefix: u64, rows: u32) -> Option<&HotBucket> {
        if u64::from(rows) <= hot::HOT_ROWS { None } else { self.hot.bucket(prefix) }
    }
}

/// The open tables of a design.
#[derive(Debug)]
pub(super) struct OpenTables {
    pub(super) design: Design,
    pub(super) all: Vec<OpenTable>,
    /// The number of distinct fingerprints.
    pub(super) rows: u64,
    /// The number of leading bits of a pointer that form a prefix of table 1.
    pub(super) pointer_bits: u32,
    /// Whether any table has hot buckets.
    pub(super) any_hot: bool,
    /// The byte range of the tables in the file. `stretch` has the pages of this range.
    extent: Range<u64>,
    stretch: Stretch,
    plans: [OnceLock<RadiusPlan>; WITHIN_MAX as usize + 1],
}

/// A step of a plan: the probes of one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanStep {
    pub(super) table: u32,
    /// The maximum number of bits in which a probed prefix differs from the prefix of the query.
    pub(super) radius: u32,
    /// The raw layout of the table; `None` if it has none.
    pub(super) front: Option<RawLayout>,
    /// The raw layout whose plane is used to filter the rows of a bucket; `None` if buckets are not filtered.
    pub(super) filter: Option<RawLayout>,
}

/// The plan for all searches with one radius.
#[derive(Clone, Debug)]
pub(super) struct RadiusPlan {
    /// The tables to probe, ordered by table number.
    pub(super) steps: Vec<PlanStep>,
    /// Whether the buckets of all steps are filtered.
    pub(super) is_filtered: bool,
    /// Whether scanning all fingerprints is less work than probing the tables.
    pub(super) scan: bool,
}

impl OpenTables {
    pub(super) fn new(design: Design, all: Vec<OpenTable>, rows: u64) -> Self {
        let pointer_bits = crate::design::prefix_bits(rows, POINTER_BITS);
        let starts = all.iter().map(|table| table.section.offset);
        let ends = all.iter().map(|table| table.section.offset + table.section.length);
        let extent = starts.min().unwrap_or(0)..ends.max().unwrap_or(0);
        let stretch = Stretch::new(&extent);
        let any_hot = all.iter().any(|table| table.hot.is_some());
        Self { design, all, rows, pointer_bits, any_hot, extent, stretch, plans: Default::default() }
    }

    /// Returns the plan for searches with radius `within`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius that the design does not support.
    #[inline]
    pub(super) fn plan(&self, within: u32) -> Result<&RadiusPlan> {
        let Some(known) = self.plans.get(within as usize) else {
            return Err(self.design.name.check_within(within).err().unwrap_or_else(|| unanswered(within)));
        };
        if let Some(plan) = known.get() {
            return Ok(plan);
        }
        let radii = self.design.radii(within)?;
        let steps = (0..).zip(radii).zip(&self.all);
        let steps = steps.filter_map(|((table, radius), open)| {
            let narrow = within < WIDE || matches!(open.layout, Layout::Filter(_));
            Some(PlanStep {
                table,
                radius: radius?,
                front: open.front,
                filter: open.front.filter(|_| narrow),
            })
        });
        let steps: Vec<PlanStep> = steps.collect();
        let is_filtered = steps.iter().all(|step| step.filter.is_some());
        let scan = scans(self.design.name, self.rows, self.design.probes(within, self.rows)?);
        Ok(known.get_or_init(|| RadiusPlan { steps, is_filtered, scan }))
    }

    /// If all pages of the tables have been checked, reads through `at` skip their checks from now on.
    #[inline(always)]
    pub(super) fn settle(&self, at: &mut SectionReader<'_>) {
        at.settle(&self.extent, &self.stretch);
    }

    /// Returns the number of bytes between the start of the first table and the end of the last.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.extent.end - self.extent.start
    }

    /// Returns the design and the codecs of its tables.
    pub(super) fn scheme(&self) -> Scheme {
        let first = match self.all[0].codec {
            Codec::Complete(first) => first,
            Codec::Partial(_) => unreachable!("table 1 was opened as complete"),
        };
        let partial = self.all.get(1).and_then(|table| match table.codec {
            Codec::Complete(_) => None,
            Codec::Partial(width) => Some(width),
        });
        Scheme { design: self.design.name, codecs: Codecs { first, partial } }
    }
}

/// Creates the error for an unsupported radius.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn unanswered(within: u32) -> Error {
    Error::Invalid(format!("within {within}: radii up to {WITHIN_MAX} are answered"))
}

/// Returns the function that maps a fingerprint to its value in table `place` (from 0), by which the table is sorted.
/// `rows` is the number of fingerprints.
pub(super) fn value_of(design: &Design, place: usize, codec: Codec, rows: u64) -> impl Fn(u64) -> u64 {
    let table = &design.tables[place];
    let key_order = table.order.clone();
    let entries = match codec {
        Codec::Complete(_) => None,
        Codec::Partial(width) => {
            let filter = Filter::of(rows, table.lead, width);
            let prefix = key_order.field(0..filter.directory.bits);
            Some((filter, prefix, design.entry_order(place).field(0..8 * u32::from(width))))
        }
    };
    move |fingerprint| match &entries {
        None => key_order.apply(fingerprint),
        Some((filter, prefix, entry)) => filter.value(prefix.of(fingerprint), entry.of(fingerprint)),
    }
}

/// Sorts the values that [`value_of`] computed for ascending fingerprints.
pub(super) fn sort_values(table: &Table, codec: Codec, values: &mut [u64], scratch: &mut Vec<u64>) {
    // Except for their leading bits, the values are mostly in the order of the fingerprints.
    let lead = match codec {
        Codec::Complete(_) => table.lead,
        Codec::Partial(_) => prefix_bits(values.len() as u64, table.lead),
    };
    sort_tail_in_order(values, scratch, lead);
}

/// Replaces `values` by the sorted values of `fingerprints`, which must ascend, in table `place` (from 0).
pub(super) fn sorted_values(
    design: &Design,
    place: usize,
    codec: Codec,
    fingerprints: &[u64],
    values: &mut Vec<u64>,
) {
    let value = value_of(design, place, codec, fingerprints.len() as u64);
    values.clear();
    values.extend(fingerprints.iter().map(|&fingerprint| value(fingerprint)));
    sort_values(&design.tables[place], codec, values, &mut Vec::new());
}
