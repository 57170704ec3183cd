//! The permutation tables of an open segment.

use std::ops::Range;
use std::sync::OnceLock;

use zerocopy::FromBytes;
use zerocopy::little_endian::U16;

use super::hot::OpenHot;
use super::open::Segment;
use super::pages::Known;
use super::sorted::sort_tail_in_order;
use crate::error::{Error, Result};
use crate::format::contents::Section;
use crate::format::table::filter::POINTER_BITS;
use crate::format::table::{Codec, Layout, Source};
use crate::format::wire::Fault;
use crate::kernel;
use crate::params::WITHIN_MAX;
use crate::tables::cost::scans;
use crate::tables::design::Table;
use crate::tables::{BitOrder, Codecs, Design, Scheme, prefix_bits};

/// A section of a segment as a codec sees it.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    segment: &'a Segment,
    section: &'a Section,
    /// [`Segment::whole`].
    whole: &'a [u8],
    known: Known<'a>,
}

impl<'a> At<'a> {
    pub(super) fn new(segment: &'a Segment, section: &'a Section) -> Self {
        Self { segment, section, whole: segment.whole(), known: segment.known() }
    }

    /// As this one, for another section.
    #[inline(always)]
    pub(super) fn section(self, section: &'a Section) -> Self {
        Self { section, ..self }
    }

    /// The bytes at `range` of the file, which is one of this section.
    #[inline(always)]
    fn bytes(self, range: Range<usize>, section: &Section) -> Result<&'a [u8]> {
        if let Some(bytes) = self.whole.get(range.clone())
            && self.known.have(&range)
        {
            return Ok(bytes);
        }
        let (start, end) = (range.start as u64 - section.offset, range.end as u64 - section.offset);
        self.segment.read(section, start..end)
    }

    #[inline(always)]
    fn announce_file(self, range: &Range<usize>) {
        if !self.known.have(range) {
            self.segment.will_need(range.start as u64..range.end as u64);
        }
    }

    /// Hints at what the first stage reads of a table.
    #[inline(always)]
    pub(super) fn hint_bucket(self, table: &'a OpenTable, prefix: u64) {
        if let Some(front) = &table.front {
            let entry = front.directory + prefix as usize * 4;
            kernel::prefetch(self.whole, entry);
            self.announce_file(&(entry..entry + 8));
        } else {
            table.layout.hint_directory(self.section(&table.section), prefix, table.bits);
        }
    }
}

impl<'a> Source<'a> for At<'a> {
    #[inline(always)]
    fn read(self, range: Range<u64>) -> Result<&'a [u8]> {
        let (offset, length) = (self.section.offset as usize, self.section.length);
        if range.start > range.end || range.end > length {
            return self.segment.read(self.section, range);
        }
        self.bytes(offset + range.start as usize..offset + range.end as usize, self.section)
    }

    #[cold]
    fn corrupt(self, fault: Fault) -> Error {
        self.segment.corrupt_at(self.section, fault)
    }

    #[inline(always)]
    fn hint(self, at: u64) {
        kernel::prefetch(self.whole, (self.section.offset + at) as usize);
    }

    #[inline(always)]
    fn announce(self, range: Range<u64>) {
        let offset = self.section.offset as usize;
        self.announce_file(&(offset + range.start as usize..offset + range.end as usize));
    }
}

/// What the first stages of a search read of a table by `planes` or a partial one: its directory, and a plane of 16
/// bits. Places are offsets in the file, so that a probe costs few instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    directory: usize,
    plane: usize,
}

impl Front {
    /// Of a table that is probed by as many bits as its directory has; otherwise none.
    fn of(layout: &Layout, section: &Section, bits: u32) -> Option<Self> {
        let (directory, plane) = match layout {
            Layout::Planes(planes) => (planes.directory, planes.scanned()),
            Layout::Filter(filter) => (filter.directory, filter.scanned()),
            _ => return None,
        };
        let (start, plane) = (section.offset as usize, (section.offset + plane) as usize);
        (directory.bits == bits).then_some(Self { directory: start, plane })
    }

    /// The rows of a bucket; what is read first of them is on its way.
    #[inline(always)]
    pub(super) fn rows(&self, at: At<'_>, prefix: u64, most: u64, section: &Section) -> Result<Range<u32>> {
        let entry = self.directory + prefix as usize * 4;
        let bytes = at.bytes(entry..entry + 8, section)?;
        let both = <[u8; 8]>::try_from(bytes).map_or(1, u64::from_le_bytes);
        let (start, end) = (both as u32, (both >> 32) as u32);
        if start > end || u64::from(end) > most {
            let expected = format!("ascending rows up to {most}");
            let lie = Fault::new(prefix * 4, expected, format!("{start} and {end}"));
            return Err(at.section(section).corrupt(lie));
        }
        let plane = self.plane + start as usize * 2..self.plane + end as usize * 2;
        if !plane.is_empty() {
            at.announce_file(&plane);
            let last = plane.end - 1;
            let mut line = plane.start;
            for _ in 0..LINES_AHEAD {
                kernel::prefetch(at.whole, line.min(last));
                line += CACHE_LINE;
                if line > last | (CACHE_LINE - 1) {
                    break;
                }
            }
        }
        Ok(start..end)
    }

    /// The plane of these rows.
    #[inline(always)]
    pub(super) fn lanes<'a>(&self, at: At<'a>, rows: Range<u32>, section: &Section) -> Result<&'a [U16]> {
        let bytes =
            at.bytes(self.plane + rows.start as usize * 2..self.plane + rows.end as usize * 2, section)?;
        Ok(<[U16]>::ref_from_bytes(bytes).unwrap_or_default())
    }
}

/// Bytes that come into the caches together.
const CACHE_LINE: usize = 64;
/// Lines of a plane brought near ahead; the processor's own prefetching follows a longer scan.
const LINES_AHEAD: usize = 12;

/// A table.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) section: Section,
    pub(super) codec: Codec,
    pub(super) layout: Layout,
    pub(super) order: BitOrder,
    /// The order of the bits of its entries, if it is partial.
    pub(super) entry_order: Option<BitOrder>,
    /// True if no bit of an entry's pointer is among those that lead the table.
    pub(super) pointer_apart: bool,
    /// By how many bits it is probed.
    pub(super) bits: u32,
    pub(super) front: Option<Front>,
    pub(super) hot: Option<OpenHot>,
}

impl OpenTable {
    /// A table of this design, opened as far as its section's head.
    pub(super) fn open(
        segment: &Segment,
        design: &Design,
        section: Section,
        codec: Codec,
        hot: Option<Section>,
    ) -> Result<Self> {
        let place = usize::from(section.index) - 1;
        let table = &design.tables[place];
        let layout =
            Layout::open(codec, At::new(segment, &section), section.rows, table.lead, section.length)?;
        let leads = &table.order.bits()[..table.lead as usize];
        let bits = table.probe_bits(section.rows);
        Ok(Self {
            section,
            codec,
            order: table.order.clone(),
            entry_order: matches!(codec, Codec::Partial(_)).then(|| design.entry_order(place)),
            pointer_apart: !(0..POINTER_BITS).any(|bit| leads.contains(&bit)),
            bits,
            front: Front::of(&layout, &section, bits),
            hot: hot.map(|hot| OpenHot::open(segment, hot, section.rows, bits)).transpose()?,
            layout,
        })
    }

    /// The prefix by which a query is probed, and what its probes compare: its key, or its entry in a partial table.
    #[inline(always)]
    pub(super) fn prefix_and_key(&self, query: u64) -> (u64, u64) {
        let whole = self.order.apply(query);
        let key = self.entry_order.as_ref().map_or(whole, |order| order.apply(query));
        (self.prefix(whole), key)
    }

    /// The first bits of a key, by which it is probed.
    #[inline(always)]
    pub(super) fn prefix(&self, key: u64) -> u64 {
        key.checked_shr(64 - self.bits).unwrap_or(0)
    }
}

/// The tables of a design.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) design: Design,
    pub(super) all: Vec<OpenTable>,
    /// Distinct fingerprints.
    pub(super) rows: u64,
    /// By how many bits of a partial entry's pointer table 1 is probed.
    pub(super) pointer_bits: u32,
    plans: [OnceLock<Plan>; WITHIN_MAX as usize + 1],
}

/// How a radius is searched.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The tables that are probed, and within which radius of their first bits.
    pub(super) steps: Vec<(u32, u32)>,
    /// True where looking at every fingerprint is less work than probing.
    pub(super) scan: bool,
}

impl Tables {
    pub(super) fn new(design: Design, all: Vec<OpenTable>, rows: u64) -> Self {
        let pointer_bits = crate::tables::prefix_bits(rows, POINTER_BITS);
        Self { design, all, rows, pointer_bits, plans: Default::default() }
    }

    /// The plan for a radius.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius that the design does not answer.
    #[inline]
    pub(super) fn plan(&self, within: u32) -> Result<&Plan> {
        let Some(known) = self.plans.get(within as usize) else {
            return Err(self.design.name.check_within(within).err().unwrap_or_else(|| unanswered(within)));
        };
        if let Some(plan) = known.get() {
            return Ok(plan);
        }
        let radii = self.design.radii(within)?;
        let steps: Vec<(u32, u32)> =
            (0..).zip(radii).filter_map(|(table, radius)| Some((table, radius?))).collect();
        let scan = scans(self.design.name, self.rows, self.design.probes(within, self.rows)?);
        Ok(known.get_or_init(|| Plan { steps, scan }))
    }

    /// What the tables are.
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

/// Refuses a radius that no tables answer.
///
/// # Errors
/// [`Error::Invalid`].
pub(super) fn unanswered(within: u32) -> Error {
    Error::Invalid(format!("within {within}: radii up to {WITHIN_MAX} are answered"))
}

/// What a table, numbered from 0, of `rows` fingerprints is sorted by, of a fingerprint.
pub(super) fn value_of(design: &Design, place: usize, codec: Codec, rows: u64) -> impl Fn(u64) -> u64 {
    let table = &design.tables[place];
    let sorted_by = codec.sorted_by(rows, table.lead);
    let key_order = table.order.clone();
    // Whole tables do not ask for entries, which take a time to make.
    let entry_order = matches!(codec, Codec::Partial(_)).then(|| design.entry_order(place));
    move |fingerprint| {
        let entry = entry_order.as_ref().map_or(0, |order| order.apply(fingerprint));
        sorted_by(key_order.apply(fingerprint), entry)
    }
}

/// Sorts what [`value_of`] made of ascending fingerprints.
pub(super) fn sort_values(table: &Table, codec: Codec, values: &mut [u64], scratch: &mut Vec<u64>) {
    // Behind the bits of the directory, keys and entries mostly stand as in the fingerprint.
    let lead = match codec {
        Codec::Complete(_) => table.lead,
        Codec::Partial(_) => prefix_bits(values.len() as u64, table.lead),
    };
    sort_tail_in_order(values, scratch, lead);
}

/// What a table, numbered from 0, is sorted by, for each of these ascending fingerprints, ascending.
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
