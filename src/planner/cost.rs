//! Predicts the costs of tables: their bytes, and the work and time of a query.
//!
//! Bytes follow from the layouts of the codecs. The work is computed for uniform fingerprints and queries. A table that
//! is probed by `b` bits within radius `r` takes `sum C(b, i)` probes, `i` from 0 to `r`; each probe scans a bucket of
//! `n / 2^b` entries. The fraction of entries within distance `l` of the query in `j` compared bits is `P(j, l) = sum
//! C(j, i) / 2^j`, `i` from 0 to `l`. If the prefix of a probe differs from that of the query in `i` bits, the other
//! bits may differ in at most `l = k - i` bits, where `k` is the radius of the query. Each entry of a partial table
//! that may be within this distance requires reading a bucket of `n / 2^16` entries of table 1. Memory accesses are
//! counted in cache lines.
//!
//! The time is the sum over all kinds of work of the amount times the price. The [`PRICES`] describe one reference
//! machine and were fitted to measurements by `scripts/experiment fit_costs`. They are constants, because the scheme
//! that they select for a segment is stored and must not depend on the machine. For the same reason, numbers that
//! affect a choice are computed only with `+ - * /`, which give the same bits on all machines.

use std::ops::{Add, AddAssign};

use crate::design::masks::choices;
use crate::design::{Complete, Design, DesignName, POINTER_BITS, Scheme, Table, masks, prefix_bits};
use crate::error::{Error, Result};
use crate::format::checksum::PAGE;
use crate::format::table::planes::WIDE;
use crate::format::table::{Compact, Filter, Plain, Planes};
use crate::format::{DOCUMENTS_MAX, align};

/// A query scans all fingerprints instead of probing an exact design if there are at most this many of them per probe.
pub const ROWS_A_PROBE: u64 = 128;
/// Returns whether a scan of all `rows` fingerprints is less work than `probes` probes. Always `false` for free
/// designs: a scan would also find fingerprints that their tables miss.
#[must_use]
pub fn scans(design: DesignName, rows: u64, probes: u64) -> bool {
    design.is_exact() && rows / ROWS_A_PROBE <= probes
}

/// Number of bytes in a cache line.
const LINE: f64 = 64.0;
/// Cost of each further cache line of a run of consecutive bytes, as a fraction of the cost of the first line. Further
/// lines cost less because of hardware prefetch.
const FOLLOWING: f64 = 0.15;
/// Number of bytes in a page of a file.
const FILE_PAGE: f64 = PAGE as f64;
/// Average number of hits per query that a partial table finds, that need a lookup in table 1, and that the probes of
/// table 1 miss. Holds for the queries to which the [`PRICES`] were fitted: half of these have a hit, at a distance of
/// 0 to 3 bits.
const FOLLOWED_HITS: f64 = 0.32;
/// Average number of hits per query, in the queries to which the [`PRICES`] were fitted.
const HITS: f64 = 0.5;

/// Number of kinds of work.
pub const KINDS: usize = 14;
/// The names of the kinds of work, in the order of the amounts in [`QueryWork`].
pub const KIND_NAMES: [&str; KINDS] = [
    "query",
    "probe",
    "probe compact",
    "probe plain",
    "entry",
    "candidate",
    "candidate compact",
    "follow",
    "follow slowly",
    "block of manku",
    "line of the level 2 cache",
    "line of the level 3 cache",
    "line of memory",
    "line beyond the page tables in caches",
];
const QUERY: usize = 0;
const PROBE: usize = 1;
const PROBE_COMPACT: usize = 2;
const PROBE_PLAIN: usize = 3;
const ENTRY: usize = 4;
const CANDIDATE: usize = 5;
const CANDIDATE_COMPACT: usize = 6;
const FOLLOW: usize = 7;
const FOLLOW_SLOWLY: usize = 8;
const MANKU_BLOCK: usize = 9;
const LINE_NEAR: usize = 10;
const LINE_FAR: usize = 11;
const LINE_MEMORY: usize = 12;
const LINE_UNCACHED_PAGE: usize = 13;

/// The reference machine, to which the [`PRICES`] were fitted.
pub const REFERENCE: &str = "one core at 2.6 GHz of an AMD EPYC 9004 with AVX-512";

/// The time in nanoseconds of one unit of each kind of work.
///
/// To fit the prices again, run `examples/table_costs.rs` for the changed tables on the [`REFERENCE`] machine (1 MiB of
/// level 2 and 32 MiB of level 3 cache, which is shared with other users). Pass the printed lines to `scripts/experiment
/// fit_costs`, which minimizes the relative error. The prices of `plain` and `manku` were fitted on an earlier machine. The
/// last price was fitted to a billion fingerprints in a virtual machine (`scripts/experiment billion`), where the page
/// tables of guest and host both translate each address.
pub const PRICES: [f64; KINDS] =
    [24.5, 19.9, 130.0, 46.0, 0.0623, 5.78, 40.9, 47.3, 7.84, 1630.0, 0.835, 9.1, 23.2, 50.8];
/// Size of the level 2 cache in the cost model, in bytes.
const NEAR_BYTES: f64 = 2_097_152.0;
/// Size of the level 3 cache in the cost model, in bytes.
const FAR_BYTES: f64 = 33_554_432.0;
/// In the cost model, the page tables of at most this number of bytes of tables stay in the caches. A page of 4 KiB has
/// a page table entry of 8 bytes, so 4 GiB of tables have page tables of 8 MiB, a quarter of the level 3 cache.
const TRANSLATED_BYTES: f64 = 4_294_967_296.0;

/// The speed of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// The time of work on data in the caches, divided by that on the [`REFERENCE`] machine.
    pub compute: f64,
    /// The time in nanoseconds to read a random cache line of memory, while others are being read.
    pub line_nanos: f64,
}

impl Default for Speed {
    /// Returns the speed of the [`REFERENCE`] machine.
    fn default() -> Self {
        Self { compute: 1.0, line_nanos: PRICES[LINE_MEMORY] }
    }
}

/// The work of a query: the mean amount of each kind of work, in the order of [`KIND_NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryWork(pub [f64; KINDS]);

impl QueryWork {
    /// Returns the time of the query in nanoseconds on the [`REFERENCE`] machine.
    #[must_use]
    pub fn nanos(&self) -> f64 {
        self.0.iter().zip(PRICES).fold(0.0, |sum, (count, price)| sum + count * price)
    }

    /// Returns the time of the query in nanoseconds on a machine of this speed.
    #[must_use]
    pub fn nanos_at(&self, speed: Speed) -> f64 {
        let priced = self.0.iter().zip(PRICES).map(|(count, price)| count * price);
        let times = (0..).zip(priced).map(|(kind, nanos)| {
            nanos * if kind < LINE_MEMORY { speed.compute } else { speed.line_nanos / PRICES[LINE_MEMORY] }
        });
        times.sum()
    }

    /// Adds the cost of reading `lines` cache lines that are spread evenly over `bytes` bytes of data. Each cache
    /// serves the fraction of these lines that equals the fraction of the data that fits into the cache.
    fn read(&mut self, lines: f64, bytes: f64) {
        let share = |cache: f64| if bytes <= cache { 1.0 } else { cache / bytes };
        self.0[LINE_NEAR] += lines * share(NEAR_BYTES);
        self.0[LINE_FAR] += lines * (share(FAR_BYTES) - share(NEAR_BYTES));
        self.0[LINE_MEMORY] += lines * (1.0 - share(FAR_BYTES));
    }
}

impl AddAssign for QueryWork {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }
}

impl Add for QueryWork {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// The costs of a segment's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of bytes of each table's section. Exact, except for the codec `manku`: its length depends on the values,
    /// so this is the expected length.
    pub sections: Vec<u64>,
    /// Number of bytes of all sections, including padding for alignment and page checksums.
    pub bytes: u64,
    /// The number of bits by which each table is probed.
    pub probe_bits: Vec<u32>,
    /// Number of probes that a query makes.
    pub probes: u64,
    /// Whether a query scans all fingerprints, because a scan is less work than the probes.
    pub scan: bool,
    /// Number of entries that a query reads in the probed tables, and in table 1 for the entries of partial tables.
    pub entries: f64,
    /// Number of fingerprints that are compared with the query in all bits.
    pub candidates: f64,
    /// Number of file pages that a query reads, excluding pages of directories.
    pub pages: f64,
    /// Number of file pages of directories that a query reads.
    pub directory_pages: f64,
    /// Number of bytes of the directories.
    pub directory_bytes: u64,
    /// The work of a query.
    pub work: QueryWork,
}

impl Cost {
    /// Returns the time of a query in nanoseconds if the tables are in memory. Applies to a batch of 100,000 queries.
    /// Half of them have a hit, on one thread of the reference machine. Single queries take about twice as long.
    #[must_use]
    pub fn nanos(&self) -> f64 {
        self.work.nanos()
    }

    /// Returns the number of pages that a query reads from the medium if `memory` bytes of the tables are in memory.
    /// Assumes that directories are cached first, because they have the most reads per byte.
    #[must_use]
    pub fn cold_pages(&self, memory: u64) -> f64 {
        let (memory, directories) = (memory as f64, self.directory_bytes as f64);
        let columns = self.bytes as f64 - directories;
        let missing = |bytes: f64, memory: f64| {
            if memory >= bytes { 0.0 } else { 1.0 - memory / bytes }
        };
        let left = if memory > directories { memory - directories } else { 0.0 };
        self.directory_pages * missing(directories, memory) + self.pages * missing(columns, left)
    }
}

/// The medium from which tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Everything is in memory.
    Memory,
    /// A solid-state disk: 100 us per read, 16 reads in parallel.
    Ssd,
    /// A hard disk: 8 ms per read, one read at a time.
    Disk,
}

impl Medium {
    /// Returns the time in nanoseconds that each page read adds to a query in a batch.
    #[must_use]
    pub fn nanos_a_page(self) -> f64 {
        match self {
            Self::Memory => 0.0,
            Self::Ssd => 100_000.0 / 16.0,
            Self::Disk => 8_000_000.0,
        }
    }
}

/// Returns `2^bits`, exactly.
fn power(bits: u32) -> f64 {
    if bits > 64 { power(64) * power(bits - 64) } else { (1_u128 << bits) as f64 }
}

/// Returns the fraction of random values of `bits` bits that are within `radius` of a query; 0 for a negative radius.
fn share(bits: u32, radius: i64) -> f64 {
    let Ok(radius) = u32::try_from(radius) else { return 0.0 };
    if radius >= bits { 1.0 } else { masks::count(bits, radius) as f64 / power(bits) }
}

/// Returns `e^-x` for nonnegative x, accurate to about 12 digits and with the same bits on every machine. Halves the
/// argument `HALVINGS` times, sums a series, and squares the sum once for each halving.
fn exp_minus(x: f64) -> f64 {
    const HALVINGS: u32 = 10;
    if x > 64.0 {
        return 0.0;
    }
    let small = -x / power(HALVINGS);
    let series = (1..=12_u32).rev().fold(1.0, |sum, i| 1.0 + small / f64::from(i) * sum);
    (0..HALVINGS).fold(series, |value, _| value * value)
}

/// Returns the average number of cache lines or pages, of `size` bytes each, that a run of `bytes` bytes overlaps if
/// the run starts at a random offset.
fn spanned(bytes: f64, size: f64) -> f64 {
    if bytes > 1.0 { 1.0 + (bytes - 1.0) / size } else { bytes }
}

/// Returns the cost of reading a run of `bytes` bytes, in units of the cost of its first cache line.
fn run(bytes: f64) -> f64 {
    let lines = spanned(bytes, LINE);
    if lines > 1.0 { 1.0 + (lines - 1.0) * FOLLOWING } else { lines }
}

fn min(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// A table with the numbers that the cost model needs.
struct PricedTable {
    complete: Option<Complete>,
    /// Number of bytes of the table's section.
    length: u64,
    /// Number of bytes of the table's directory.
    directory: u64,
    /// The maximum length in bits of a prefix whose bucket the directory finds in constant time.
    directory_bits: u32,
    probe_bits: u32,
    /// For a partial table, the number of bits of an entry after the pointer.
    filter_bits: u32,
    /// The number of pointer bits among the bits by which the table is probed. `overlapping` is the mask of these bits;
    /// bit 0 of the fingerprint is the highest bit of the mask.
    overlap: u32,
    overlapping: u64,
    /// Whether the pointer and the leading bits of the table have no bit in common.
    apart: bool,
    /// Number of bytes per entry in the scanned column.
    column: f64,
    /// Number of bytes per entry in the other columns, which are read only for entries that pass the scan.
    rest: f64,
}

/// Returns the costs of the tables of a scheme in a segment of `rows` distinct fingerprints, at most [`DOCUMENTS_MAX`],
/// for queries of radius `within`.
///
/// # Errors
/// [`Error::Invalid`] for a radius above the maximum of the design, for invalid parameters of a design, and for more
/// than [`DOCUMENTS_MAX`] rows.
pub fn cost(scheme: Scheme, within: u32, rows: u64) -> Result<Cost> {
    let design = Design::new(scheme.design)?;
    of_design(&design, scheme, within, rows)
}

/// Same as [`cost`], for a design that the caller has already constructed.
pub(super) fn of_design(design: &Design, scheme: Scheme, within: u32, rows: u64) -> Result<Cost> {
    if rows > DOCUMENTS_MAX {
        return Err(Error::Invalid(format!(
            "{rows} fingerprints: a segment holds up to {DOCUMENTS_MAX}; divide them among several"
        )));
    }
    let radii = design.radii(within)?;
    let tables: Vec<PricedTable> =
        (0..design.tables.len()).map(|place| priced(design, place, scheme, rows)).collect();
    let sections: Vec<u64> = tables.iter().map(|table| table.length).collect();
    let stored: u64 = sections.iter().map(|&length| align(length)).sum();
    let mut cost = Cost {
        bytes: stored + (stored * 4).div_ceil(PAGE),
        probe_bits: tables.iter().map(|table| table.probe_bits).collect(),
        probes: design.probes(within, rows)?,
        scan: false,
        entries: 0.0,
        candidates: 0.0,
        pages: 0.0,
        directory_pages: 0.0,
        directory_bytes: tables.iter().map(|table| table.directory).sum(),
        work: QueryWork::default(),
        sections,
    };
    cost.work.0[QUERY] = 1.0;
    cost.work.read(HITS, rows as f64 * 4.0);
    cost.scan = scans(design.name, rows, cost.probes);
    if cost.scan {
        cost.scan_all(&tables[0], within, rows as f64);
        return Ok(cost);
    }
    let own = radii.first().copied().flatten();
    for (place, (table, radius)) in tables.iter().zip(radii).enumerate() {
        let Some(radius) = radius else { continue };
        cost.probe(table, radius, within, rows as f64);
        if place > 0 && table.complete.is_none() {
            cost.follow(&tables[0], own, table, radius, within, rows);
        }
    }
    cost.candidates += HITS;
    if tables.len() > 1 && tables[1].complete.is_none() {
        cost.add_first_table_lookups(&tables[0], FOLLOWED_HITS, within, rows);
    }
    let bytes = cost.bytes as f64;
    if bytes > TRANSLATED_BYTES {
        cost.work.0[LINE_UNCACHED_PAGE] = cost.work.0[LINE_MEMORY] * (1.0 - TRANSLATED_BYTES / bytes);
    }
    Ok(cost)
}

fn priced(design: &Design, place: usize, scheme: Scheme, rows: u64) -> PricedTable {
    let table = &design.tables[place];
    let probe_bits = table.probe_bits(rows);
    let common = PricedTable {
        complete: None,
        length: 0,
        directory: 0,
        directory_bits: 0,
        probe_bits,
        filter_bits: 0,
        overlap: 0,
        overlapping: 0,
        apart: true,
        column: 2.0,
        rest: 0.0,
    };
    match scheme.codecs.partial {
        Some(width) if place > 0 => {
            let filter = Filter::of(rows, table.lead, width);
            let bits = table.order.bits();
            let of_pointer = |bits: &[u32]| bits.iter().filter(|&&bit| bit < POINTER_BITS).count() as u32;
            let within = probe_bits.min(filter.directory.bits);
            PricedTable {
                length: filter.length,
                directory: filter.directory.length(),
                directory_bits: filter.directory.bits,
                filter_bits: 8 * u32::from(width) - POINTER_BITS,
                overlap: of_pointer(&bits[..within as usize]),
                overlapping: bits[..within as usize]
                    .iter()
                    .filter(|&&bit| bit < POINTER_BITS)
                    .fold(0, |all, bit| all | 1 << (63 - bit)),
                apart: of_pointer(&bits[..table.lead as usize]) == 0,
                rest: f64::from(width) - 2.0,
                ..common
            }
        }
        _ => {
            let complete = scheme.codecs.first;
            let (length, directory, directory_bits, column) = match complete {
                Complete::Planes => {
                    let planes = Planes::of(rows, table.lead);
                    (planes.length, planes.directory.length(), planes.directory.bits, 2.0)
                }
                Complete::Compact => {
                    let compact = Compact::of(rows);
                    // The directory has 4 bytes for each prefix of `floor(log2 rows) - 6` bits.
                    let length = compact.length;
                    (length, 4 << prefix_bits(rows, 64).saturating_sub(3), 64, 2.0)
                }
                Complete::Plain => {
                    let plain = Plain::of(rows);
                    let directory = plain.length.saturating_sub(rows * 8);
                    (plain.length, directory, prefix_bits(rows, 64), 8.0)
                }
                Complete::Manku => {
                    let (blocks, length) = manku(rows);
                    (length, blocks * 12, 64, 8.0)
                }
            };
            let rest = if column < 4.0 { 4.0 } else { 0.0 };
            PricedTable {
                complete: Some(complete),
                length,
                directory,
                directory_bits,
                column,
                rest,
                ..common
            }
        }
    }
}

impl Cost {
    fn scan_all(&mut self, first: &PricedTable, within: u32, rows: f64) {
        self.entries = rows;
        self.candidates = rows * share(16, within.into()) + HITS;
        let bytes = rows * first.column;
        let mut work = QueryWork::default();
        work.0[ENTRY] = rows;
        work.0[FOLLOW_SLOWLY] = 1.0;
        if first.complete == Some(Complete::Manku) {
            work.0[MANKU_BLOCK] = first.length as f64 / 1036.0;
        }
        if first.complete == Some(Complete::Compact) {
            work.0[CANDIDATE_COMPACT] = self.candidates;
        } else {
            work.0[CANDIDATE] = self.candidates;
        }
        work.read(bytes / LINE, bytes);
        self.work += work;
        self.pages = spanned(bytes, FILE_PAGE);
    }

    /// Adds the cost of the probes of a table: reads of the directory and of the buckets, and of the entries that pass
    /// the scan.
    fn probe(&mut self, table: &PricedTable, radius: u32, within: u32, rows: f64) {
        let probes = masks::count(table.probe_bits, radius) as f64;
        // A probe of a partial table reads a whole bucket of the directory. In other tables, a search narrows the
        // bucket down to the rows of a longer prefix.
        let bits = if table.complete.is_none() {
            table.probe_bits.min(table.directory_bits)
        } else {
            table.probe_bits
        };
        let bucket = rows / power(bits);
        // The number of entries that pass the scan, that is, are within the radius in the bits of the scanned column.
        let mut candidates = 0.0;
        for ones in 0..=radius.min(table.probe_bits) {
            let probes = choices(table.probe_bits.into(), ones.into()) as f64;
            candidates += probes * bucket * table.first_share(ones, within);
        }
        self.entries += probes * bucket;
        if table.complete.is_some() {
            self.candidates += candidates;
        }
        let mut work = QueryWork::default();
        let bytes = bucket * table.column;
        work.read(probes * run(bytes), self.bytes as f64);
        work.read(probes * spanned(8.0, LINE), self.directory_bytes as f64);
        let narrowed = table.probe_bits > table.directory_bits && table.complete.is_some();
        if narrowed {
            // Each probe makes two binary searches in a bucket of the directory.
            #[allow(clippy::cast_sign_loss, reason = "a quotient of counts")]
            let steps = 1 + ((rows / power(table.directory_bits)) as u64).checked_ilog2().unwrap_or(0);
            work.read(probes * 2.0 * f64::from(steps), self.bytes as f64);
        }
        let candidate = match table.complete {
            None | Some(Complete::Planes) => {
                work.0[PROBE] = probes;
                work.0[ENTRY] = probes * bucket;
                CANDIDATE
            }
            Some(Complete::Compact) => {
                work.0[PROBE_COMPACT] = probes;
                work.0[ENTRY] = probes * bucket;
                work.read(probes, self.bytes as f64);
                CANDIDATE_COMPACT
            }
            Some(Complete::Plain) => {
                work.0[PROBE_PLAIN] = probes;
                work.0[ENTRY] = probes * bucket * 4.0;
                CANDIDATE
            }
            Some(Complete::Manku) => {
                // The values of a block are decoded in sequence, from the first value of the block.
                let blocks = spanned(bytes, 8.0 * rows / (table.length as f64 / 1036.0)).max(1.0);
                work.0[MANKU_BLOCK] = probes * blocks;
                work.read(probes * 20.0, self.bytes as f64);
                CANDIDATE
            }
        };
        let hits = if table.complete.is_some() { HITS * probes / self.probes as f64 } else { 0.0 };
        work.0[candidate] += candidates + hits;
        // Entries that pass the scan in the same bucket share cache lines and pages of the next column.
        let after = |size: f64| {
            let column = bucket * table.rest;
            if column == 0.0 { 0.0 } else { min(candidates, probes * spanned(column, size)) + hits }
        };
        work.read(after(LINE), self.bytes as f64);
        self.work += work;
        self.pages += probes * spanned(bytes, FILE_PAGE) + after(FILE_PAGE);
        self.directory_pages += probes;
    }

    /// Adds the cost of the lookups in table 1 for entries of a partial table. `own` is the radius of the probes of
    /// table 1; `None` if table 1 is not probed. Pointers to fingerprints that the probes of table 1 find are not
    /// looked up.
    fn follow(
        &mut self,
        first: &PricedTable,
        own: Option<u32>,
        table: &PricedTable,
        radius: u32,
        within: u32,
        rows: u64,
    ) {
        let bucket = rows as f64 / power(table.probe_bits.min(table.directory_bits));
        let pointers = masks::count(POINTER_BITS - table.overlap, within) as f64;
        // A pointer shows whether the probes of table 1 find its fingerprint only if it contains all bits by which
        // table 1 is probed.
        let known = first.probe_bits <= prefix_bits(rows, POINTER_BITS);
        let both = table.overlap_with(first.probe_bits);
        let own = own.filter(|_| known).map(|radius| FirstTableProbe {
            radius,
            both,
            alone: first.probe_bits - both,
        });
        let mut followed = 0.0;
        for ones in 0..=radius.min(table.probe_bits) {
            let probes = choices(table.probe_bits.into(), ones.into()) as f64;
            let near = bucket * table.pointer_share(ones, within, table.filter_bits, own);
            // Entries with equal pointers need only one lookup.
            followed += probes * min(near, pointers);
        }
        self.add_first_table_lookups(first, followed, within, rows);
    }

    /// Adds the cost of reading the buckets of table 1 to which `followed` pointers refer.
    fn add_first_table_lookups(&mut self, first: &PricedTable, followed: f64, within: u32, rows: u64) {
        let bucket = rows as f64 / power(prefix_bits(rows, POINTER_BITS));
        let bytes = bucket * first.column;
        let candidates = followed * bucket * share(16, within.into());
        let mut work = QueryWork::default();
        match first.complete {
            Some(Complete::Planes) if first.directory_bits >= POINTER_BITS => {
                // Ignore candidates, which are rare: the differing bits of the pointer use up most of the radius.
                work.0[FOLLOW] = followed;
                work.0[ENTRY] = followed * bucket;
            }
            Some(Complete::Manku) => {
                work.0[MANKU_BLOCK] =
                    followed * spanned(bytes, 8.0 * rows as f64 / (first.length as f64 / 1036.0)).max(1.0);
            }
            Some(Complete::Plain) => {
                work.0[FOLLOW_SLOWLY] = followed;
                work.0[ENTRY] = followed * bucket * 4.0;
            }
            Some(Complete::Compact) => {
                work.0[FOLLOW_SLOWLY] = followed;
                work.0[ENTRY] = followed * bucket;
                work.0[CANDIDATE_COMPACT] = candidates;
                work.read(candidates * 2.0, self.bytes as f64);
            }
            _ => {
                work.0[FOLLOW_SLOWLY] = followed;
                work.0[ENTRY] = followed * bucket;
                work.0[CANDIDATE] = candidates;
            }
        }
        work.read(followed * run(bytes), self.bytes as f64);
        work.read(followed, self.directory_bytes as f64);
        self.work += work;
        self.entries += followed * bucket;
        self.candidates += candidates;
        self.pages += followed * spanned(bytes, FILE_PAGE);
        self.directory_pages += followed;
    }
}

impl PricedTable {
    /// Returns how many of the first `bits` bits of a fingerprint are among the bits by which this table is probed.
    /// `bits` is at most the length of a pointer.
    fn overlap_with(&self, bits: u32) -> u32 {
        self.overlapping.checked_shr(64 - bits).unwrap_or(0).count_ones()
    }

    /// Returns the fraction of the entries of a bucket that pass the scan. The prefix of the bucket differs from that
    /// of the query in `ones` bits.
    fn first_share(&self, ones: u32, within: u32) -> f64 {
        let (ones_left, all) = (i64::from(within) - i64::from(ones), i64::from(within));
        let wide = |left: i64| left >= i64::from(WIDE);
        match self.complete {
            None => self.pointer_share(ones, within, 0, None),
            Some(Complete::Planes) => {
                let from = self.probe_bits.max(16);
                let to = if wide(ones_left) { 64 } else { 32 };
                share(to - from.min(to), ones_left)
            }
            Some(Complete::Compact) => share(if wide(all) { 32 } else { 16 }, all),
            Some(Complete::Plain | Complete::Manku) => share(64 - self.probe_bits, ones_left),
        }
    }

    /// Returns the fraction of the entries of a partial table's bucket that are within the radius in the pointer and in
    /// the `filter` bits after it. The prefix of the bucket differs from that of the query in `ones` bits. Excludes the
    /// fingerprints that the probes `own` of table 1 find.
    fn pointer_share(&self, ones: u32, within: u32, filter: u32, own: Option<FirstTableProbe>) -> f64 {
        let free = POINTER_BITS - self.overlap;
        let (all, both) = (u64::from(self.probe_bits), u64::from(self.overlap));
        let mut sum = 0.0;
        // `inside` is the number of differing prefix bits that are also pointer bits. They always reduce the radius
        // that remains for the other bits. The `ones - inside` other differing bits of the prefix reduce it only in
        // tables in which no pointer bit is a leading bit.
        for inside in 0..=ones.min(self.overlap) {
            let ways =
                choices(both, inside.into()) as f64 * choices(all - both, (ones - inside).into()) as f64;
            let left = i64::from(within) - i64::from(if self.apart { ones } else { inside });
            for differing in 0..=free {
                let rest = left - i64::from(differing);
                if rest < 0 {
                    break;
                }
                let pointers = choices(free.into(), differing.into()) as f64 / power(free);
                let strange = 1.0 - own.map_or(0.0, |own| own.finds(self.overlap, inside, differing));
                sum += ways * pointers * share(filter, rest) * strange;
            }
        }
        sum / choices(all, ones.into()) as f64
    }
}

/// The probes of table 1, whose results need no lookup from a partial table.
#[derive(Clone, Copy)]
struct FirstTableProbe {
    radius: u32,
    /// The number of bits by which both table 1 and the partial table are probed.
    both: u32,
    /// The number of bits by which only table 1 is probed.
    alone: u32,
}

impl FirstTableProbe {
    /// Returns the probability that the probes of table 1 find the fingerprint of an entry of a partial table. The
    /// entry differs from the query in `inside` of the `overlap` pointer bits by which the partial table is probed, and
    /// in `outside` of the `16 - overlap` other pointer bits.
    fn finds(self, overlap: u32, inside: u32, outside: u32) -> f64 {
        let of = |total: u32, chosen: u32| choices(total.into(), chosen.into()) as f64;
        let free = POINTER_BITS - overlap;
        let mut ways = 0.0;
        for a in 0..=inside.min(self.radius) {
            for b in 0..=outside.min(self.radius - a) {
                ways += of(self.both, a)
                    * of(overlap - self.both, inside - a)
                    * of(self.alone, b)
                    * of(free - self.alone, outside - b);
            }
        }
        ways / (of(overlap, inside) * of(free, outside))
    }
}

/// Returns the expected number of blocks and of bytes of a `manku` table of uniform values. Consider the trie of all
/// values: neighbours in sorted order first differ in bit `d` if a node of depth `d` with two children separates them.
/// There are `2^d (1 - q1)^2` such nodes, where `q1` is the probability that a child is empty. The Huffman code follows
/// from these counts. A difference is stored as its code and the bits after bit `d`.
fn manku(rows: u64) -> (u64, u64) {
    const BLOCK: f64 = 8192.0;
    let n = rows as f64;
    if rows < 2 {
        return (rows, 128 + rows * 1036);
    }
    let mut counts: Vec<f64> = Vec::new();
    let mut below = 0.0;
    for depth in 0..64_u32 {
        let empty = exp_minus(n / power(depth + 1));
        let count = power(depth) * (1.0 - empty) * (1.0 - empty);
        below += count * f64::from(63 - depth);
        counts.push(count);
    }
    let total: f64 = counts.iter().sum();
    counts.retain(|&count| count >= 0.5);
    let mut code = 0.0;
    while counts.len() > 1 {
        counts.sort_by(|a, b| b.total_cmp(a));
        let pair = counts.pop().unwrap_or(0.0) + counts.pop().unwrap_or(0.0);
        code += pair;
        counts.push(pair);
    }
    let bits = (code + below) / total;
    // On average, the unused bits at the end of a block are half the length of a difference.
    let a_block = 1.0 + (BLOCK - 64.0 - bits / 2.0) / bits;
    #[allow(clippy::cast_sign_loss, reason = "a quotient of a count and a positive number")]
    let blocks = (n / a_block) as u64 + 1;
    (blocks, 64 + align(blocks * 8) + align((blocks + 1) * 4) + blocks * 1024)
}

/// The costs of the method in the paper (Manku, Jain and Das Sarma, WWW 2007, section 3). Its tables have 8 bytes for
/// each fingerprint. A probe finds the fingerprints that agree with the query in all leading bits of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// The name of the table design.
    pub design: DesignName,
    /// Number of tables.
    pub tables: u32,
    /// Total size of all tables in bytes.
    pub bytes: f64,
    /// Number of probes of a query.
    pub probes: u64,
    /// One entry for each distinct number of leading bits, ascending: the number of leading bits, the number of tables
    /// that have it, and the expected number of fingerprints that a probe of one of these tables finds by chance.
    pub prefixes: Vec<(u32, u32, f64)>,
}

impl Raw {
    /// Returns the costs of a design for `documents` fingerprints and queries of radius `within`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a radius above the maximum of the design, and for invalid parameters of a design.
    pub fn of(name: DesignName, within: u32, documents: f64) -> Result<Self> {
        let design = Design::new(name)?;
        let radii = design.radii(within)?;
        let mut leads: Vec<u32> = design.tables.iter().map(|table| table.lead).collect();
        leads.sort_unstable();
        let mut prefixes: Vec<(u32, u32, f64)> = Vec::new();
        for lead in leads {
            match prefixes.last_mut() {
                Some(last) if last.0 == lead => last.1 += 1,
                _ => prefixes.push((lead, 1, documents / power(lead))),
            }
        }
        let of_table = |(table, radius): (&Table, Option<u32>)| {
            radius.map_or(0, |radius| masks::count(table.lead, radius))
        };
        Ok(Self {
            design: name,
            tables: name.tables(),
            bytes: 8.0 * f64::from(name.tables()) * documents,
            probes: design.tables.iter().zip(radii).map(of_table).fold(0, u64::saturating_add),
            prefixes,
        })
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "what is known exactly is compared exactly")]
mod tests {
    use super::*;
    use crate::design::Codecs;
    use twindex_kernel::splitmix::SplitMix;

    fn scheme(text: &str) -> Scheme {
        let (design, codecs) = text.split_once(' ').unwrap();
        Scheme { design: design.parse().unwrap(), codecs: codecs.parse().unwrap() }
    }

    fn uniform(count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix(seed);
        std::iter::repeat_with(|| random.next()).take(count).collect()
    }

    #[test]
    fn lines_cost_more_only_in_tables_beyond_the_cached_page_tables() {
        let work = |rows| {
            let cost = cost(scheme("blocks-2 planes+3"), 3, rows).unwrap();
            (cost.bytes as f64, cost.work.0[LINE_MEMORY], cost.work.0[LINE_UNCACHED_PAGE])
        };
        let (bytes, _, beyond) = work(400_000_000);
        assert!(bytes < TRANSLATED_BYTES && beyond == 0.0, "{bytes} {beyond}");
        let (bytes, lines, beyond) = work(1_000_000_000);
        assert!((beyond / lines - (1.0 - TRANSLATED_BYTES / bytes)).abs() < 1e-9, "{beyond} of {lines}");
    }

    #[test]
    fn fractions_within_a_radius_match_values_from_the_literature() {
        for (bits, expected) in [(16, 0.0106), (24, 1.4e-4), (32, 1.3e-6)] {
            assert!((share(bits, 3) / expected - 1.0).abs() < 0.03, "{bits}: {}", share(bits, 3));
        }
        assert_eq!((share(16, -1), share(3, 3), share(0, 0), share(16, 0)), (0.0, 1.0, 1.0, 1.0 / 65_536.0));
        for x in [0.0, 1e-9, 0.3, 1.0, 7.5, 60.0] {
            assert!((exp_minus(x) / (-x).exp() - 1.0).abs() < 1e-11, "e^-{x}");
        }
        assert_eq!(exp_minus(1e300), 0.0);
    }

    #[test]
    fn predicted_work_matches_a_simulated_search() {
        let (rows, queries) = (uniform(20_000, 1), uniform(400, 2));
        let n = rows.len() as u64;
        for (text, within) in [
            ("blocks-4 planes+2", 3),
            ("blocks-2 compact+2", 3),
            ("blocks-5 planes+2", 4),
            ("blocks-4 planes+3", 5),
            ("choose-5-2 planes+2", 3),
            ("nested-4-4 planes+2", 3),
            ("choose-5-2 planes", 2),
            ("reversed-7 planes+2", 3),
        ] {
            let scheme = scheme(text);
            let design = Design::new(scheme.design).unwrap();
            let expected = cost(scheme, within, n).unwrap();
            assert!(!expected.scan, "{text}");
            let (mut entries, mut followed) = (0_u64, 0_u64);
            let radii = design.radii(within).unwrap();
            let first = design.tables[0].probe_bits(n);
            let pointed = prefix_bits(n, POINTER_BITS);
            for (place, radius) in radii.iter().enumerate() {
                let &Some(radius) = radius else { continue };
                let (table, entry) = (&design.tables[place], design.entry_order(place));
                let partial = scheme.codecs.partial.filter(|_| place > 0);
                let bits = table.probe_bits(n);
                let bits = if partial.is_some() { bits.min(prefix_bits(n, table.lead)) } else { bits };
                let apart = table.order.bits()[..table.lead as usize].iter().all(|&bit| bit >= POINTER_BITS);
                for query in &queries {
                    let mut buckets = std::collections::HashSet::new();
                    for row in &rows {
                        let mask = table.order.apply(row ^ query) >> (64 - bits);
                        let ones = mask.count_ones();
                        if ones > radius {
                            continue;
                        }
                        entries += 1;
                        let Some(width) = partial else { continue };
                        let left = if apart { within - ones } else { within };
                        let differs = entry.apply(row ^ query) >> (64 - 8 * u32::from(width));
                        let found = (row ^ query).checked_shr(64 - first).unwrap_or(0).count_ones()
                            <= radii[0].unwrap();
                        if differs.count_ones() <= left && !(found && first <= pointed) {
                            buckets.insert((mask, row >> (64 - pointed)));
                        }
                    }
                    followed += buckets.len() as u64;
                }
            }
            let per_query = |count: u64| count as f64 / queries.len() as f64;
            let followed_more = if expected.work.0[FOLLOW_SLOWLY] > 0.0 { FOLLOWED_HITS } else { 0.0 };
            let predicted = expected.work.0[FOLLOW_SLOWLY] - followed_more;
            let after = expected.work.0[FOLLOW_SLOWLY] * n as f64 / power(prefix_bits(n, POINTER_BITS));
            let own = expected.entries - after;
            assert!((own / per_query(entries) - 1.0).abs() < 0.03, "{text}: {own} {}", per_query(entries));
            // A query follows few pointers, hundreds or thousands in total, so the tolerance includes the sampling
            // error.
            let chance = 4.0 * (followed as f64).sqrt() / queries.len() as f64 + 1e-2;
            assert!(
                (predicted - per_query(followed)).abs() < chance + 0.03 * predicted,
                "{text}: {predicted} {}",
                per_query(followed)
            );
        }
    }

    #[test]
    fn raw_costs_match_the_numbers_of_the_paper() {
        let raw = |name: &str| Raw::of(name.parse().unwrap(), 3, power(34)).unwrap();
        let twenty = raw("choose-6-3");
        assert_eq!((twenty.tables, twenty.probes), (20, 20));
        assert_eq!(twenty.prefixes, [(31, 4, 8.0), (32, 12, 4.0), (33, 4, 2.0)]);
        assert_eq!(Raw::of(twenty.design, 3, 8e9).unwrap().bytes, 1.28e12);
        assert_eq!(raw("nested-4-4").prefixes, [(28, 16, 64.0)]);
        assert_eq!(raw("expansion").probes, 43_745);
        assert_eq!(raw("blocks-4").prefixes, [(16, 4, 262_144.0)]);
    }

    #[test]
    fn tables_larger_than_memory_need_page_reads() {
        let cost = cost(scheme("blocks-4 planes+3"), 3, 50_000_000).unwrap();
        assert_eq!(cost.cold_pages(cost.bytes), 0.0);
        // If only the directories are in memory, the pages of buckets are read from the medium.
        assert!((cost.cold_pages(cost.directory_bytes) - cost.pages).abs() < 1e-9);
        let (half, none) = (cost.cold_pages(cost.bytes / 2), cost.cold_pages(0));
        assert!(half > 0.4 * cost.pages && half < 0.6 * cost.pages, "{half} of {}", cost.pages);
        // If nothing is in memory, a query reads the pages (of 4 kB) of four buckets of 1.5 kB each, of lookups in
        // table 1, and of directories.
        assert!(none > 12.0 && none < 18.0, "{none}");
    }

    #[test]
    fn cost_refuses_too_many_rows_and_too_large_radius() {
        let error = cost(scheme("blocks-4 planes+3"), 3, DOCUMENTS_MAX + 1).unwrap_err().to_string();
        assert!(error.contains("1073741825") && error.contains("several"), "{error}");
        let error = cost(scheme("choose-5-2 planes"), 4, 1000).unwrap_err().to_string();
        assert!(error.contains("choose-5-2"), "{error}");
    }

    #[test]
    fn every_scheme_has_a_finite_cost_at_every_size() {
        for first in Complete::ALL {
            for partial in [None, Some(2), Some(3), Some(4)] {
                let names = [
                    "blocks-1",
                    "blocks-16",
                    "choose-6-3",
                    "nested-8-8",
                    "expansion",
                    "prefix-64",
                    "random-64-1-1",
                ];
                for name in names {
                    let scheme = Scheme { design: name.parse().unwrap(), codecs: Codecs { first, partial } };
                    for rows in [0, 1, 2, 15, 16, 4096, 1 << 19, DOCUMENTS_MAX] {
                        for within in 0..=scheme.design.within_max() {
                            let cost = cost(scheme, within, rows).unwrap();
                            let numbers =
                                [cost.nanos(), cost.entries, cost.candidates, cost.cold_pages(1 << 20)];
                            let fine = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
                            assert!(fine, "{scheme} within {within} of {rows}: {cost:?}");
                        }
                    }
                }
            }
        }
    }
}
