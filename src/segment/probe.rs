//! Finds the fingerprints within a radius of a query, with a pipeline of probes.
//!
//! A probe looks up one prefix in one table. In each table, a query has one probe for each prefix that differs from the
//! query's own prefix in at most the table's radius. Up to [`WINDOW`] probes, of one or several queries, pass each
//! stage together, so that their memory accesses overlap. Each stage prefetches the data that the next stage reads:
//!
//! 1. Read the directory entry of each probe, which contains the range of rows of its bucket.
//! 2. Compare 16 bits of each row of the bucket (from the plane or the pointer) with the query, and drop distant rows.
//! 3. Compare further bits of the remaining rows: the whole key in a complete table, the filter in a partial table.
//! 4. An entry of a partial table has a pointer to a bucket of table 1. Look up the buckets of the remaining entries.
//!    Entries with equal pointers are adjacent, so each probe looks up a bucket only once.
//! 5. In these buckets, find the fingerprints that are near the query and have the prefix of the probe.
//!
//! A fingerprint that several tables find is reported only for the first of them.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};

use super::file::SectionReader;
use super::filter::{FilteredBucket, Survivors, filter_buckets};
use super::hot::NestedSearch;
use super::open::{Fingerprints, Segment};
use super::search_options::{FingerprintMatch, SearchOptions};
use super::tables::{OpenHot, OpenTable, OpenTables, PlanStep, RadiusPlan, RawLayout};
use crate::design::masks::{Masks, masks};
use crate::error::{Error, Result};
use crate::format::checksum::PAGE;
use crate::format::contents::Section;
use crate::format::hot::HOT_ROWS;
use crate::format::postings;
use crate::format::table::planes::WIDE;
use crate::format::table::{self, Layout, Source};
use crate::format::wire::Fault;
use twindex_kernel::{Kernel, Level, Simd};

/// Number of queries that pass the stages together.
const TOGETHER: usize = 16;
/// Maximum number of probes that pass the stages together: the probes of `TOGETHER` queries in 4 tables.
const WINDOW: usize = 4 * TOGETHER;
/// Maximum number of probes that pass the stages together while their pages must be read from the disk: it serves many
/// reads at once in the time of one.
const WINDOW_COLD: usize = 16 * WINDOW;
/// The data of a bucket's rows is announced before the rows are compared if it has at most this number of bytes.
const SPECULATED: u64 = 16 * PAGE;
/// After this number of buckets have been scanned, the directory entries of as many next probes are read.
const GRAIN: usize = 16;

/// From this number of queries on, queries are sorted by prefix before each table is probed. Consecutive queries then
/// read the same bucket or the same pages. For fewer queries, sorting costs more than it saves.
const MANY: usize = 1 << 10;
/// Maximum number of queries that are sorted together. Larger batches are slower: one batch of a million queries takes
/// longer than four batches of a quarter million each.
const ORDERED_MAX: usize = 1 << 18;
/// Tables of at most this number of bytes fit into the CPU caches; then sorting the queries does not pay. It is 0 in
/// tests, so that sorted queries are tested with small tables, too.
const CACHED: u64 = if cfg!(test) { 0 } else { 8 << 20 };

/// Maximum number of rows for which the keys and the postings (2 or 3 cache lines each) of a bucket are prefetched.
const SHORT: u64 = 32;

/// Scratch memory of a search. Reuse it in the next search to save allocations.
#[derive(Debug, Default)]
pub struct SearchScratch {
    /// The probes whose buckets are searched now (stages 2 to 5).
    probes: Vec<ActiveProbe>,
    /// The next probes, whose directory entries are read meanwhile (stage 1).
    ahead: Vec<ActiveProbe>,
    survivors: Vec<Survivors>,
    candidates: Vec<RowCandidate>,
    followed: Vec<Followed>,
    hits: Vec<ProbeHit>,
    /// Indices of the current queries, sorted by their prefix in the current table. Empty if the queries are not sorted.
    order: Vec<u32>,
    counts: Vec<u32>,
    done: Vec<bool>,
    /// The number of queries for which the caller returned `Break`, so that their search has ended.
    stopped: usize,
    left_out: u64,
}

thread_local! {
    /// The scratch memory of the last single query on this thread, which the next one reuses.
    static KEPT: Cell<Option<Box<SearchScratch>>> = const { Cell::new(None) };
}

impl SearchScratch {
    /// Runs `body` with the scratch memory of this thread, so that single queries allocate nothing.
    #[inline]
    pub(crate) fn lend<T>(body: impl FnOnce(&mut Self) -> T) -> T {
        // There is no kept memory for nested queries, for the first query after a panic, and while the thread is
        // destroyed: these allocate their own.
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        let mut scratch = kept.unwrap_or_default();
        let answer = body(&mut scratch);
        if scratch.is_small() {
            let _ = KEPT.try_with(|kept| kept.set(Some(scratch)));
        }
        answer
    }

    /// Returns true if the scratch memory is small enough to be kept for later queries.
    fn is_small(&self) -> bool {
        const MOST: usize = 1024;
        let Self { survivors, candidates, followed, hits, order, counts, .. } = self;
        survivors.capacity() <= MOST
            && order.capacity() <= MOST
            && counts.capacity() <= MOST
            && candidates.capacity() <= MOST
            && followed.capacity() <= MOST
            && hits.capacity() <= MOST
    }

    /// Returns the number of buckets that the last search skipped because they exceeded the limit of rows per query.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// A probe on its way through the stages.
#[derive(Clone, Copy, Debug, Default)]
struct ActiveProbe {
    prefix: u64,
    /// The bucket to search. Its field `left` is the number of bits that may still differ among the bits that have not
    /// been compared yet.
    bucket: FilteredBucket,
    query: u32,
    /// The index of the probe's step in the plan.
    step: u16,
}

/// A row whose 16 bits that a bucket scan compares are near those of the query.
#[derive(Clone, Copy, Debug)]
struct RowCandidate {
    probe: u32,
    row: u32,
    /// These 16 bits of the row. In a partial table, they are the pointer of the row.
    scanned: u16,
}

/// A bucket of table 1 to which the pointer of an entry in a partial table refers.
#[derive(Clone, Copy, Debug)]
struct Followed {
    probe: u32,
    pointer: u32,
    bucket: FilteredBucket,
}

/// A fingerprint near the query. `row` is its row in the probed table, or in table 1 if the probed table is partial.
#[derive(Clone, Copy, Debug)]
struct ProbeHit {
    probe: u32,
    row: u32,
    fingerprint: u64,
}

/// A search for one or more queries in the tables of one segment.
pub(super) struct TableSearch<'a, 'b> {
    pub(super) segment: &'a Segment,
    pub(super) at: SectionReader<'a>,
    pub(super) fingerprints: &'a Fingerprints,
    pub(super) plan: &'a RadiusPlan,
    pub(super) ask: SearchOptions,
    pub(super) queries: &'b [u64],
    /// Whether many pages had to be announced for the current probes, so that they are probably not in memory.
    pub(super) is_cold: bool,
    pub(super) scratch: &'b mut SearchScratch,
    /// Called with the index of a query and a match. A break ends the search for that query.
    pub(super) hit: &'b mut dyn FnMut(usize, FingerprintMatch) -> Result<ControlFlow<()>>,
}

/// Counts the rows that one query has checked in the current table. The buckets of a damaged directory may overlap;
/// this limit ends the search when it takes longer than scanning the whole table.
#[derive(Default)]
struct Guard {
    of: (u32, u16),
    rows: u64,
}

/// The number of rows that the current query may still check, and the number of buckets that it has skipped.
struct VisitBudget {
    query: u32,
    left: u64,
    left_out: u64,
}

impl VisitBudget {
    fn new(visits: u64) -> Self {
        Self { query: 0, left: visits, left_out: 0 }
    }

    /// Starts a new budget if `query` is a new query. Returns the number of buckets that the last query skipped.
    fn begin(&mut self, query: u32, visits: Option<u64>) -> u64 {
        if self.query == query {
            return 0;
        }
        std::mem::replace(self, Self { query, ..Self::new(visits.unwrap_or(u64::MAX)) }).left_out
    }

    /// Subtracts the number of `rows` from the budget; if the budget is too small, makes `rows` empty instead. More
    /// than [`HOT_ROWS`] rows count as `HOT_ROWS` rows, because a hot bucket is searched with its nested tables.
    fn admit_rows(&mut self, rows: &mut Range<u64>) {
        let cost = (rows.end - rows.start).min(HOT_ROWS);
        if let Some(left) = self.left.checked_sub(cost) {
            self.left = left;
        } else {
            self.left_out += 1;
            rows.end = rows.start;
        }
    }

    fn admit(&mut self, probe: &mut ActiveProbe) {
        let mut rows = probe.bucket.rows();
        self.admit_rows(&mut rows);
        probe.bucket.end = rows.end as u32;
    }
}

impl Guard {
    /// Adds the rows of a probe. Returns true if its query has now checked more than `max` rows of the table.
    #[inline(always)]
    fn exceeds(&mut self, probe: &ActiveProbe, max: u64) -> bool {
        if self.of != (probe.query, probe.step) {
            *self = Self { of: (probe.query, probe.step), rows: 0 };
        }
        self.rows += u64::from(probe.bucket.end - probe.bucket.start);
        self.rows > max
    }
}

/// Scans rows of a table with any codec. All callers share one compiled instance of this large function.
struct TableScan<'a, 'b> {
    layout: &'a Layout,
    source: SectionReader<'a>,
    rows: Range<u64>,
    key: u64,
    radius: u32,
    each: &'b mut dyn FnMut(u64, u64) -> ControlFlow<()>,
}

impl Kernel for TableScan<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self { layout, source, rows, key, radius, each } = self;
        layout.scan(simd, source, rows, key, radius, each).map(drop)
    }
}

impl TableScan<'_, '_> {
    #[inline(never)]
    fn go(self) -> Result<()> {
        Level::chosen().dispatch(self)
    }
}

/// Stage 3, compiled for each SIMD level: compares the bits of the candidates that stage 2 left uncompared.
struct CompleteRows<'s, 'a, 'b>(&'s mut TableSearch<'a, 'b>);

impl Kernel for CompleteRows<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        self.0.complete()
    }
}

/// The last step of stage 2, compiled for each SIMD level: queues the rows that passed the filter for the next stage.
struct PassSurvivors<'s, 'a, 'b> {
    search: &'s mut TableSearch<'a, 'b>,
    first: u32,
    count: usize,
}

impl Kernel for PassSurvivors<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        self.search.pass_survivors(self.first, self.count)
    }
}

/// Stage 4, compiled for each SIMD level: looks up the buckets of table 1 to which the pointers of the entries refer.
struct LookUpFollowed<'s, 'a, 'b> {
    search: &'s mut TableSearch<'a, 'b>,
    front: Option<RawLayout>,
    budget: &'s mut Option<VisitBudget>,
}

impl Kernel for LookUpFollowed<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        self.search.look_up_followed(self.front, self.budget)
    }
}

/// The last step of stage 5, compiled for each SIMD level: in the buckets of table 1, compares the rows that passed the
/// filter.
struct FinishComplete<'s, 'a, 'b> {
    search: &'s mut TableSearch<'a, 'b>,
    front: RawLayout,
    count: usize,
}

impl Kernel for FinishComplete<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        self.search.complete_followed(self.front, self.count)
    }
}

/// Drops duplicate hits before they are reported. Compiled for each SIMD level.
struct DropDuplicates<'s, 'a, 'b>(&'s mut TableSearch<'a, 'b>);

impl Kernel for DropDuplicates<'_, '_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Result<()> {
        self.0.drop_duplicates()
    }
}

/// Calls `each` with each row of a bucket that may be near the query, and with the 16 compared bits of the row.
struct FilterOne<'a, 'b> {
    layout: &'a Layout,
    source: SectionReader<'a>,
    bucket: FilteredBucket,
    compared: u64,
    each: &'b mut dyn FnMut(u64, u16),
}

impl Kernel for FilterOne<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self { layout, source, bucket, compared, each } = self;
        let (rows, left) = (bucket.rows(), bucket.left);
        match layout {
            Layout::Planes(planes) => planes.candidates(simd, source, &rows, compared, left, each),
            Layout::Filter(filter) => filter.candidates(simd, source, &rows, bucket.scanned, left, each),
            _ => Ok(()),
        }
    }
}

impl FilterOne<'_, '_> {
    #[inline(never)]
    fn go(self) -> Result<()> {
        Level::chosen().dispatch(self)
    }
}

/// The position in the sequence of probes. All queries of a group are probed in one table, then in the next.
#[derive(Default)]
struct ProbeCursor {
    /// Whether the queries have been sorted for the current step.
    ordered: bool,
    /// The index of the first query of the current group.
    first: usize,
    step: usize,
    query: usize,
    masks: Option<Masks>,
}

impl OpenTable {
    /// Returns the rows in the bucket of `prefix`, for a table without a raw layout. Prefetches the first data that a
    /// scan of these rows will read.
    #[inline(never)]
    fn rows(&self, at: SectionReader<'_>, prefix: u64, way: Option<table::Probe>) -> Result<Range<u32>> {
        let source = at.section(&self.section);
        let way = way.unwrap_or_else(|| self.layout.probe());
        let rows = self.layout.rows(source, prefix, self.bits, way)?;
        self.layout.hint_rows(source, &rows);
        Ok(rows.start as u32..rows.end as u32)
    }

    /// Returns the number of bits that may still differ among the bits of a row that are compared later. `mask` has the
    /// bits in which the prefix of the probe differs from that of the query.
    #[inline(always)]
    fn left(&self, within: u32, mask: u64) -> u32 {
        let counted_again = match &self.layout {
            // The scanned plane starts at bit 17, so it contains the prefix bits from bit 17 on once more.
            Layout::Planes(_) if self.bits > 16 => mask & ((1 << (self.bits - 16)) - 1),
            Layout::Filter(_) if !self.pointer_apart => mask,
            Layout::Planes(_) | Layout::Filter(_) => 0,
            // The other codecs compare whole keys.
            _ => mask,
        };
        within.saturating_sub((mask ^ counted_again).count_ones())
    }
}

impl<'a> TableSearch<'a, '_> {
    pub(super) fn run(mut self) -> Result<()> {
        self.scratch.left_out = 0;
        self.scratch.stopped = 0;
        self.scratch.done.clear();
        self.scratch.done.resize(self.queries.len(), false);
        if self.plan.scan {
            return self.scan_all();
        }
        // A single query has few probes and reserves less memory. Memory that an earlier search reserved is reused.
        let capacity = WINDOW.min(4 * self.queries.len());
        let SearchScratch { ahead, candidates, followed, hits, .. } = &mut *self.scratch;
        ahead.reserve(capacity);
        candidates.reserve(capacity);
        followed.reserve(capacity);
        hits.reserve(capacity);
        let (level, mut guard, mut next) = (Level::chosen(), Guard::default(), ProbeCursor::default());
        let mut budget = self.ask.visits.map(VisitBudget::new);
        self.tables().settle(&mut self.at);
        // The probes of a single query pass together. Those of many queries do so only while pages must be read.
        let is_single = self.queries.len() == 1;
        let mut window = if is_single || self.at.is_cold() { WINDOW_COLD } else { WINDOW };
        let mut announced = self.at.file.announced();
        self.fill(&mut next, window);
        self.look_up(&mut guard, 0..usize::MAX)?;
        while !self.scratch.ahead.is_empty() {
            let SearchScratch { probes, ahead, .. } = &mut *self.scratch;
            std::mem::swap(probes, ahead);
            self.tables().settle(&mut self.at);
            let before = std::mem::replace(&mut announced, self.at.file.announced());
            self.is_cold = (announced - before) * 4 >= self.scratch.probes.len() as u64;
            window = if is_single || self.is_cold { WINDOW_COLD } else { WINDOW };
            self.fill(&mut next, window);
            if let Some(budget) = &mut budget {
                // With a budget, probes run one at a time, so that the other queries of the batch do not affect which
                // buckets are skipped.
                self.scratch.left_out += budget.begin(self.scratch.probes[0].query, self.ask.visits);
            }
            self.scan(level, &mut guard, &mut budget)?;
            if !self.scratch.candidates.is_empty() {
                level.dispatch(CompleteRows(&mut self))?;
            }
            if !self.scratch.followed.is_empty() {
                self.follow(level, &mut budget)?;
            }
            if !self.scratch.hits.is_empty() {
                level.dispatch(DropDuplicates(&mut self))?;
                self.report()?;
            }
        }
        self.scratch.left_out += budget.map_or(0, |budget| budget.left_out);
        Ok(())
    }

    #[inline(always)]
    fn tables(&self) -> &'a OpenTables {
        &self.fingerprints.tables
    }

    #[inline(always)]
    fn table(&self, step: u16) -> &'a OpenTable {
        &self.tables().all[self.plan.steps[usize::from(step)].table as usize]
    }

    /// Searches without probes: scans all fingerprints of table 1.
    fn scan_all(&mut self) -> Result<()> {
        let tables = self.tables();
        let first = &tables.all[0];
        let (source, radius) = (self.at.section(&first.section), self.ask.within);
        if self.ask.visits.is_some_and(|visits| visits < tables.rows) {
            self.scratch.left_out = self.queries.len() as u64;
            return Ok(());
        }
        for (number, &key) in self.queries.iter().enumerate() {
            let hits = &mut self.scratch.hits;
            hits.clear();
            let mut each = |row: u64, fingerprint| {
                hits.push(ProbeHit { probe: 0, row: row as u32, fingerprint });
                ControlFlow::Continue(())
            };
            TableScan { layout: &first.layout, source, rows: 0..tables.rows, key, radius, each: &mut each }
                .go()?;
            for hit in hits.drain(..) {
                if (self.hit)(number, near(hit, key))?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns whether to sort the queries by prefix before each table is probed.
    #[inline]
    fn in_order(&self) -> bool {
        if self.queries.len() < MANY || self.ask.visits.is_some() {
            return false;
        }
        // Sorting helps only the first probe of each query in a table, so queries with several probes gain less.
        let several = self.plan.steps.iter().any(|step| step.radius > 0);
        self.tables().bytes() > CACHED * if several { 4 } else { 1 }
    }

    /// Replaces `ahead` by the next probes, at most `window` of them.
    #[inline(never)]
    fn fill(&mut self, next: &mut ProbeCursor, window: usize) {
        let (at, tables, plan, within) = (self.at, self.tables(), self.plan, self.ask.within);
        let in_order = self.in_order();
        let SearchScratch { ahead: probes, done, stopped, order, counts, .. } = &mut *self.scratch;
        probes.clear();
        let (together, window) = match self.ask.visits {
            Some(_) => (1, 1),
            None if in_order => (ORDERED_MAX, window),
            None => (TOGETHER, window),
        };
        while next.first < self.queries.len() {
            let last = self.queries.len().min(next.first + together);
            let Some(&PlanStep { table, radius, .. }) = plan.steps.get(next.step) else {
                *next = ProbeCursor { first: last, query: last, ..ProbeCursor::default() };
                continue;
            };
            let table = &tables.all[table as usize];
            let step = next.step as u16;
            if in_order && !next.ordered {
                next.ordered = true;
                order_queries(&self.queries[next.first..last], table, order, counts);
            }
            let order = &order[..if in_order { last - next.first } else { 0 }];
            let first = next.first;
            let number =
                |place: usize| order.get(place - first).map_or(place, |&query| first + query as usize);
            while next.query < last {
                if probes.len() == window {
                    return;
                }
                if radius == 0 {
                    let these = next.query..last.min(next.query + window - probes.len());
                    next.query = these.end;
                    for place in these {
                        let query = number(place);
                        if *stopped > 0 && done[query] {
                            continue;
                        }
                        let value = self.queries[query];
                        let (prefix, scanned) = (table.prefix_of(value), table.scanned_of(value));
                        table.hint_bucket(&at, prefix);
                        let bucket = FilteredBucket { start: 0, end: 0, scanned, left: within };
                        probes.push(ActiveProbe { prefix, bucket, query: query as u32, step });
                    }
                    continue;
                }
                let query = number(next.query);
                let value = self.queries[query];
                let mask = next.masks.get_or_insert_with(|| masks(table.bits, radius)).next();
                let Some(mask) = mask.filter(|_| !done[query]) else {
                    (next.query, next.masks) = (next.query + 1, None);
                    continue;
                };
                let (prefix, scanned) = (table.prefix_of(value) ^ mask, table.scanned_of(value));
                table.hint_bucket(&at, prefix);
                let (query, left) = (query as u32, table.left(within, mask));
                let bucket = FilteredBucket { start: 0, end: 0, scanned, left };
                probes.push(ActiveProbe { prefix, bucket, query, step });
            }
            (next.step, next.query, next.ordered) = (next.step + 1, next.first, false);
        }
    }

    /// Runs stage 1 for the probes of `ahead` at the indices `places`. Ignores indices past the last probe.
    #[inline(never)]
    fn look_up(&mut self, guard: &mut Guard, places: Range<usize>) -> Result<()> {
        let Self { at, plan, scratch, ask, segment, .. } = self;
        let (tables, probes) = (&self.fingerprints.tables, &mut scratch.ahead);
        let max = tables.rows;
        let end = places.end.min(probes.len());
        let single = self.queries.len() == 1;
        for probe in &mut probes[places.start.min(end)..end] {
            let step = &plan.steps[usize::from(probe.step)];
            let rows = match &step.front {
                Some(front) => front.rows(at, probe.prefix, max)?,
                None => tables.all[step.table as usize].rows(*at, probe.prefix, ask.probe)?,
            };
            (probe.bucket.start, probe.bucket.end) = (rows.start, rows.end);
            if single && step.table == 0 {
                let first = &tables.all[0];
                let postings = at.section(&self.fingerprints.postings);
                hint_answers(&first.layout, at.section(&first.section), postings, &probe.bucket);
            }
            // The buckets of a query in a table are disjoint, so together they have at most as many rows as the table.
            // There is one exception: if the directory of a partial table has fewer bits than a prefix, several probes
            // read the same bucket.
            // guard: buckets of a probe have no more rows than the table
            if step.radius > 0 && guard.exceeds(probe, max) {
                let table = &tables.all[step.table as usize];
                if step.front.is_some() || !matches!(table.layout, Layout::Filter(_)) {
                    return Err(overlap(segment, &table.section, max));
                }
            }
        }
        Ok(())
    }

    /// Stage 2: scans the buckets of the current probes. Between these scans, runs stage 1 for the next probes.
    fn scan(&mut self, level: Level, guard: &mut Guard, budget: &mut Option<VisitBudget>) -> Result<()> {
        self.scratch.candidates.clear();
        self.scratch.followed.clear();
        self.scratch.hits.clear();
        if let Some(budget) = budget {
            self.scratch.probes.iter_mut().for_each(|probe| budget.admit(probe));
        }
        if self.tables().any_hot {
            self.scan_hot()?;
        }
        // Prefetches some of the next buckets between the scans, so that memory accesses are always in flight.
        for from in (0..self.scratch.probes.len()).step_by(GRAIN) {
            let some = from..self.scratch.probes.len().min(from + GRAIN);
            self.look_up(guard, some.clone())?;
            if self.plan.is_filtered {
                self.filter(level, some)?;
            } else {
                self.scan_by_step(level, some)?;
            }
        }
        self.look_up(guard, self.scratch.probes.len()..usize::MAX)
    }

    /// Runs stage 2 for a plan that filters only some of its buckets.
    #[inline(never)]
    fn scan_by_step(&mut self, level: Level, some: Range<usize>) -> Result<()> {
        let mut start = some.start;
        while start < some.end {
            let step = self.scratch.probes[start].step;
            let run = self.scratch.probes[start..some.end].iter().take_while(|probe| probe.step == step);
            let numbers = start..start + run.count();
            start = numbers.end;
            if self.plan.steps[usize::from(step)].filter.is_some() {
                self.filter(level, numbers)?;
            } else {
                self.scan_unfiltered(self.table(step), numbers)?;
            }
        }
        Ok(())
    }

    /// Runs stage 2 for buckets that are filtered.
    #[inline(always)]
    fn filter(&mut self, level: Level, numbers: Range<usize>) -> Result<()> {
        let SearchScratch { probes, survivors, .. } = &mut *self.scratch;
        let first = numbers.start as u32;
        let steps = &self.plan.steps[..];
        let buckets = probes[numbers]
            .iter()
            .map_while(|probe| Some((probe.bucket, steps[usize::from(probe.step)].filter.as_ref()?)));
        let count = filter_buckets(level, &self.at, buckets, survivors)?;
        level.dispatch(PassSurvivors { search: self, first, count })
    }

    /// Searches the hot buckets with their nested tables. Empties their row ranges, so that the scan skips them.
    #[inline(never)]
    fn scan_hot(&mut self) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let SearchScratch { probes, hits, .. } = &mut *self.scratch;
        for (number, probe) in (0..).zip(probes) {
            let table = &tables.all[self.plan.steps[usize::from(probe.step)].table as usize];
            let rows = probe.bucket.end - probe.bucket.start;
            let Some(open) = &table.hot else { continue };
            let Some(bucket) = open.bucket(probe.prefix, rows) else { continue };
            probe.bucket.start = probe.bucket.end;
            let key = table.order.apply(self.queries[probe.query as usize]);
            let each = &mut |row, fingerprint| hits.push(ProbeHit { probe: number, row, fingerprint });
            let (section, hot) = (&open.section, &open.hot);
            NestedSearch { at, tables, table, section, hot, bucket, key, within, each }.go()?;
        }
        Ok(())
    }

    /// Queues the rows that passed the filter for their next stage. `first` is the index of the first filtered probe.
    #[inline(always)]
    fn pass_survivors(&mut self, first: u32, count: usize) -> Result<()> {
        let (at, tables, plan) = (&self.at, &self.fingerprints.tables, self.plan);
        let SearchScratch { probes, survivors, candidates, followed, .. } = &mut *self.scratch;
        let is_cold = self.is_cold;
        let mut onward =
            FilteredQueues { at: *at, fingerprints: self.fingerprints, plan, is_cold, candidates, followed };
        for &Survivors { bucket, base, mut near } in &survivors[..count] {
            let number = first + bucket;
            let probe = &probes[number as usize];
            let PlanStep { table, filter: Some(filter), .. } = &plan.steps[usize::from(probe.step)] else {
                continue;
            };
            let table = &tables.all[*table as usize];
            while near != 0 {
                let row = base + near.trailing_zeros();
                near &= near - 1;
                let scanned = filter.lane(at, row)?;
                onward.pass(table, probe.bucket.scanned, RowCandidate { probe: number, row, scanned });
            }
        }
        Ok(())
    }

    /// Runs stage 2 for buckets of one table that are not filtered, one after the other.
    #[inline(never)]
    fn scan_unfiltered(&mut self, table: &'a OpenTable, numbers: Range<usize>) -> Result<()> {
        let (at, within) = (self.at, self.ask.within);
        let (fingerprints, plan, is_cold) = (self.fingerprints, self.plan, self.is_cold);
        let source = at.section(&table.section);
        for number in numbers {
            let ActiveProbe { prefix, bucket, query, .. } = self.scratch.probes[number];
            let (number, rows) = (number as u32, bucket.rows());
            if rows.is_empty() {
                continue;
            }
            if matches!(table.layout, Layout::Planes(_) | Layout::Filter(_)) {
                let SearchScratch { candidates, followed, .. } = &mut *self.scratch;
                let mut onward = FilteredQueues { at, fingerprints, plan, is_cold, candidates, followed };
                let compared = table.compared_of(self.queries[query as usize]);
                let each = &mut |row: u64, scanned| {
                    onward.pass(
                        table,
                        bucket.scanned,
                        RowCandidate { probe: number, row: row as u32, scanned },
                    );
                };
                FilterOne { layout: &table.layout, source, bucket, compared, each }.go()?;
                continue;
            }
            let hits = &mut self.scratch.hits;
            let mut each = |row: u64, key| {
                if table.prefix(key) == prefix {
                    let fingerprint = table.order.invert(key);
                    hits.push(ProbeHit { probe: number, row: row as u32, fingerprint });
                }
                ControlFlow::Continue(())
            };
            let key = table.order.apply(self.queries[query as usize]);
            let layout = &table.layout;
            TableScan { layout, source, rows, key, radius: within, each: &mut each }.go()?;
        }
        Ok(())
    }

    /// Runs stage 3: compares the bits of the candidates that stage 2 left uncompared. A near row of a complete table
    /// is a hit. For a near row of a partial table, queues the bucket of table 1 to which its pointer refers.
    #[inline(always)]
    fn complete(&mut self) -> Result<()> {
        let (at, tables) = (self.at, self.tables());
        let own = at.section(&tables.all[0].section);
        let SearchScratch { probes, candidates, followed, hits, .. } = &mut *self.scratch;
        for candidate in &*candidates {
            let probe = &probes[candidate.probe as usize];
            let table = &tables.all[self.plan.steps[usize::from(probe.step)].table as usize];
            let source = at.section(&table.section);
            let compared = table.compared_of(self.queries[probe.query as usize]);
            match &table.layout {
                Layout::Planes(planes) => {
                    let top = (probe.prefix.checked_shl(64 - table.bits).unwrap_or(0) >> 48) as u16;
                    let key = planes.complete(source, candidate.row.into(), top, candidate.scanned)?;
                    let near = (key ^ compared).count_ones() <= self.ask.within;
                    if near && table.prefix(key) == probe.prefix {
                        let fingerprint = table.order.invert(key);
                        hits.push(ProbeHit { probe: candidate.probe, row: candidate.row, fingerprint });
                    }
                }
                Layout::Filter(filter) => {
                    let spent = (candidate.scanned ^ probe.bucket.scanned).count_ones();
                    let distance = filter.distance(source, candidate.row.into(), compared)?;
                    if spent + distance <= probe.bucket.left {
                        follow_pointer(followed, tables, own, candidate.probe, candidate.scanned);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs stages 4 and 5: follows pointers into table 1 and searches their buckets.
    fn follow(&mut self, level: Level, budget: &mut Option<VisitBudget>) -> Result<()> {
        let first = &self.tables().all[0];
        // If a pointer has as many bits as a prefix of table 1, it is such a prefix, so the raw layout finds its
        // bucket.
        let whole = self.ask.probe.is_none() && first.bits == self.tables().pointer_bits;
        let front = first.front.filter(|_| whole);
        level.dispatch(LookUpFollowed { search: self, front, budget })?;
        // A pointer with fewer bits than a prefix of table 1 refers to several buckets. A pointer with more bits refers
        // to a part of a bucket; such a part is scanned.
        if let Some(open) = &first.hot
            && first.bits >= self.tables().pointer_bits
        {
            self.follow_hot(open)?;
        }
        let Some(front) = front.filter(|_| self.ask.within < WIDE) else { return self.follow_generic() };
        let SearchScratch { followed, survivors, .. } = &mut *self.scratch;
        let buckets = followed.iter().map(|one| (one.bucket, &front));
        let count = filter_buckets(level, &self.at, buckets, survivors)?;
        level.dispatch(FinishComplete { search: self, front, count })
    }

    /// Runs stage 4: looks up the row ranges of the buckets to which the pointers refer.
    #[inline(always)]
    fn look_up_followed(&mut self, front: Option<RawLayout>, budget: &mut Option<VisitBudget>) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let first = &tables.all[0];
        let (section, max) = (&first.section, tables.rows);
        let way = self.ask.probe.unwrap_or_else(|| first.layout.probe());
        let SearchScratch { probes, followed, .. } = &mut *self.scratch;
        let mut seen = (u32::MAX, 0);
        for one in followed.iter_mut() {
            let query = self.queries[probes[one.probe as usize].query as usize];
            let own = query.checked_shr(64 - tables.pointer_bits).unwrap_or(0) as u32;
            let spent = (own ^ one.pointer).count_ones();
            // Only the pointer has been compared so far, and its distance is within the radius, so nothing saturates.
            one.bucket.left = within.saturating_sub(spent);
            one.bucket.scanned = first.scanned_of(query);
            let mut rows = if let Some(front) = front {
                let rows = front.rows(&at, one.pointer.into(), max)?;
                rows.start.into()..rows.end.into()
            } else {
                let source = at.section(section);
                let rows = first.layout.rows(source, one.pointer.into(), tables.pointer_bits, way)?;
                first.layout.hint_rows(source, &rows);
                rows
            };
            if let Some(budget) = &mut *budget {
                budget.admit_rows(&mut rows);
            }
            if seen.0 != one.probe {
                seen = (one.probe, 0);
            }
            seen.1 += rows.end - rows.start;
            // guard: buckets of a probe have no more rows than the table
            if seen.1 > max {
                // If buckets overlap, the time of a probe would be quadratic in the size of the file.
                return Err(overlap(self.segment, section, max));
            }
            (one.bucket.start, one.bucket.end) = (rows.start as u32, rows.end as u32);
            let postings = at.section(&self.fingerprints.postings);
            if self.queries.len() == 1 {
                hint_answers(&first.layout, at.section(section), postings, &one.bucket);
            }
            if at.is_cold() {
                announce_answers(&first.layout, at.section(section), postings, &one.bucket);
            }
        }
        Ok(())
    }

    /// Runs stage 5: in the followed buckets, compares the rows that passed the filter with the query.
    #[inline(always)]
    fn complete_followed(&mut self, front: RawLayout, count: usize) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let first = &tables.all[0];
        let Layout::Planes(planes) = &first.layout else { return Ok(()) };
        let SearchScratch { probes, survivors, followed, hits, .. } = &mut *self.scratch;
        for &Survivors { bucket, base, mut near } in &survivors[..count] {
            let Followed { probe: number, pointer, .. } = followed[bucket as usize];
            let probe = &probes[number as usize];
            let query = self.queries[probe.query as usize];
            while near != 0 {
                let row = base + near.trailing_zeros();
                near &= near - 1;
                let second = front.lane(&at, row)?;
                // A layout without a plane for bits 1 to 16 takes these bits from the prefix of the bucket, which is
                // the pointer.
                let source = at.section(&first.section);
                let fingerprint = planes.complete(source, row.into(), pointer as u16, second)?;
                if (fingerprint ^ query).count_ones() <= within
                    && tables.all[self.plan.steps[usize::from(probe.step)].table as usize]
                        .prefix_of(fingerprint)
                        == probe.prefix
                {
                    hits.push(ProbeHit { probe: number, row, fingerprint });
                }
            }
        }
        Ok(())
    }

    /// Searches the hot buckets to which pointers refer, and makes their row ranges empty, so that the scan skips them.
    #[inline(never)]
    fn follow_hot(&mut self, open: &'a OpenHot) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let table = &tables.all[0];
        let source = at.section(&table.section);
        for place in 0..self.scratch.followed.len() {
            let Followed { probe: number, pointer, bucket } = self.scratch.followed[place];
            if u64::from(bucket.end - bucket.start) <= HOT_ROWS {
                continue;
            }
            self.scratch.followed[place].bucket.end = bucket.start;
            let probe = self.scratch.probes[number as usize];
            let query = self.queries[probe.query as usize];
            let (prober, hits) = (self.table(probe.step), &mut self.scratch.hits);
            let mut each = |row: u32, fingerprint: u64| {
                if prober.prefix_of(fingerprint) == probe.prefix {
                    hits.push(ProbeHit { probe: number, row, fingerprint });
                }
            };
            // If a prefix of table 1 has more bits than a pointer, the pointer refers to several buckets.
            let parts = table.bits - tables.pointer_bits;
            for prefix in u64::from(pointer) << parts..u64::from(pointer + 1) << parts {
                if (prefix ^ table.prefix(query)).count_ones() > within {
                    continue;
                }
                let rows = table.layout.rows(source, prefix, table.bits, table.layout.probe())?;
                if let Some(bucket) = open.bucket(prefix, (rows.end - rows.start) as u32) {
                    let (section, hot, each) = (&open.section, &open.hot, &mut each);
                    NestedSearch { at, tables, table, section, hot, bucket, key: query, within, each }
                        .go()?;
                } else if !rows.is_empty() {
                    let each = &mut |row, fingerprint| {
                        each(row as u32, fingerprint);
                        ControlFlow::Continue(())
                    };
                    TableScan { layout: &table.layout, source, rows, key: query, radius: within, each }
                        .go()?;
                }
            }
        }
        Ok(())
    }

    /// Runs stage 5 for buckets without a raw layout, or for a large radius: scans the followed buckets one after the
    /// other.
    #[inline(never)]
    fn follow_generic(&mut self) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let first = &tables.all[0];
        let source = at.section(&first.section);
        for place in 0..self.scratch.followed.len() {
            let Followed { probe: number, pointer, bucket } = self.scratch.followed[place];
            let probe = self.scratch.probes[number as usize];
            let (query, rows, prober) =
                (self.queries[probe.query as usize], bucket.rows(), self.table(probe.step));
            if rows.is_empty() {
                continue;
            }
            // The pointer has the first bits of all rows in its bucket, so the rows are decoded without the directory.
            if let Layout::Planes(planes) = &first.layout
                && !planes.has_first()
            {
                let candidates = &mut self.scratch.candidates;
                candidates.clear();
                let each = &mut |row: u64, scanned| {
                    planes.hint_row(source, row);
                    candidates.push(RowCandidate { probe: number, row: row as u32, scanned });
                };
                FilterOne { layout: &first.layout, source, bucket, compared: query, each }.go()?;
                for place in 0..self.scratch.candidates.len() {
                    let RowCandidate { row, scanned, .. } = self.scratch.candidates[place];
                    let fingerprint = planes.complete(source, row.into(), pointer as u16, scanned)?;
                    if (fingerprint ^ query).count_ones() <= within
                        && prober.prefix_of(fingerprint) == probe.prefix
                    {
                        self.scratch.hits.push(ProbeHit { probe: number, row, fingerprint });
                    }
                }
                continue;
            }
            let hits = &mut self.scratch.hits;
            let mut each = |row: u64, fingerprint: u64| {
                if prober.prefix_of(fingerprint) == probe.prefix {
                    hits.push(ProbeHit { probe: number, row: row as u32, fingerprint });
                }
                ControlFlow::Continue(())
            };
            TableScan { layout: &first.layout, source, rows, key: query, radius: within, each: &mut each }
                .go()?;
        }
        Ok(())
    }

    /// Drops hits that an earlier table also finds. Replaces the row of each remaining hit by the rank in table 1.
    #[inline(always)]
    fn drop_duplicates(&mut self) -> Result<()> {
        let tables = self.tables();
        let first = &tables.all[0];
        let mut kept = 0;
        for place in 0..self.scratch.hits.len() {
            let mut hit = self.scratch.hits[place];
            let ActiveProbe { query, step, .. } = self.scratch.probes[hit.probe as usize];
            let difference = hit.fingerprint ^ self.queries[query as usize];
            let found_before = self.plan.steps[..usize::from(step)].iter().any(|before| {
                tables.all[before.table as usize].prefix_of(difference).count_ones() <= before.radius
            });
            if found_before {
                continue;
            }
            let table = self.table(step);
            if self.plan.steps[usize::from(step)].table != 0 && !matches!(table.layout, Layout::Filter(_)) {
                let Some(rank) = first.layout.find(self.at.section(&first.section), hit.fingerprint)? else {
                    return Err(missing_in_first(self.segment, table, hit.fingerprint));
                };
                hit.row = rank as u32;
            }
            let postings = self.at.section(&self.fingerprints.postings);
            let entry = postings::range(hit.row.into());
            postings.hint(entry.start);
            postings.announce_always(entry);
            self.scratch.hits[kept] = hit;
            kept += 1;
        }
        self.scratch.hits.truncate(kept);
        // The order of the matches of a query must not depend on how many probes passed the stages together, which depends on
        // what is in memory.
        let hits = &mut self.scratch.hits;
        if !hits.is_sorted_by_key(|hit| hit.probe) {
            hits.sort_by_key(|hit| hit.probe);
        }
        Ok(())
    }

    /// Calls `hit` for each remaining hit.
    fn report(&mut self) -> Result<()> {
        for place in 0..self.scratch.hits.len() {
            let hit = self.scratch.hits[place];
            let query = self.scratch.probes[hit.probe as usize].query as usize;
            if self.scratch.done[query] {
                continue;
            }
            if (self.hit)(query, near(hit, self.queries[query]))?.is_break() {
                self.scratch.done[query] = true;
                self.scratch.stopped += 1;
            }
        }
        Ok(())
    }
}

/// Sorts queries by the leading bits of their prefixes in this table, so that adjacent queries usually share a bucket.
#[inline(never)]
fn order_queries(queries: &[u64], table: &OpenTable, order: &mut Vec<u32>, counts: &mut Vec<u32>) {
    // Uses about four times as many counters as queries, so that queries with the same counter usually share a bucket.
    let bits = table.bits.min((queries.len() as u64).checked_ilog2().unwrap_or(0) + 2);
    let place = |query: u64| (table.prefix_of(query) >> (table.bits - bits)) as usize;
    counts.clear();
    counts.resize(1 << bits, 0);
    for &query in queries {
        counts[place(query)] += 1;
    }
    let mut sum = 0;
    for count in &mut *counts {
        sum += std::mem::replace(count, sum);
    }
    order.clear();
    order.resize(queries.len(), 0);
    for (number, &query) in (0..).zip(queries) {
        let next = &mut counts[place(query)];
        order[*next as usize] = number;
        *next += 1;
    }
}

/// Prefetches the data that is read when the rows of a bucket of table 1 are reported as matches, unless the bucket is
/// long. Used for a single query, which has no other work to do while it waits for memory.
#[inline(always)]
fn hint_answers(
    layout: &Layout,
    first: SectionReader<'_>,
    postings: SectionReader<'_>,
    bucket: &FilteredBucket,
) {
    let rows = bucket.rows();
    if rows.is_empty() || rows.end - rows.start > SHORT {
        return;
    }
    if let Layout::Planes(planes) = layout {
        planes.hint_rests(first, &rows);
    }
    postings.hint(postings::range(rows.start).start);
    postings.hint(postings::range(rows.end - 1).start);
}

/// Announces the data that is read when the rows of a bucket of table 1 are compared and reported, unless it is long.
#[cold]
#[inline(never)]
fn announce_answers(
    layout: &Layout,
    first: SectionReader<'_>,
    postings: SectionReader<'_>,
    bucket: &FilteredBucket,
) {
    let rows = bucket.rows();
    let entries = postings::range(rows.start).start..postings::range(rows.end).start;
    if rows.is_empty() || entries.end - entries.start > SPECULATED {
        return;
    }
    layout.announce_rests(first, &rows);
    postings.announce(entries);
}

/// The two queues for rows that have passed the filter: `candidates` for stage 3, `followed` for stage 4.
struct FilteredQueues<'a, 'b> {
    at: SectionReader<'a>,
    fingerprints: &'a Fingerprints,
    plan: &'a RadiusPlan,
    is_cold: bool,
    candidates: &'b mut Vec<RowCandidate>,
    followed: &'b mut Vec<Followed>,
}

impl<'a> FilteredQueues<'a, '_> {
    /// Adds a row to the queue of the next stage. `query` has the bits of the query with which the row was compared.
    #[inline(always)]
    fn pass(&mut self, table: &'a OpenTable, query: u16, candidate: RowCandidate) {
        let RowCandidate { probe, row, scanned } = candidate;
        let tables = &self.fingerprints.tables;
        if let Layout::Filter(filter) = &table.layout {
            if is_covered_by_first(tables, self.plan, scanned, query) {
                return;
            }
            if filter.width == 2 {
                follow_pointer(self.followed, tables, self.at, probe, scanned);
                return;
            }
        }
        table.layout.hint_row(self.at.section(&table.section), row.into());
        self.candidates.push(candidate);
        if self.is_cold {
            self.announce_next(table, candidate);
        }
    }

    /// Announces what is read next if all bits of a candidate are near: an entry of the directory of table 1, or the
    /// documents of a row of table 1.
    #[cold]
    #[inline(never)]
    fn announce_next(&self, table: &'a OpenTable, candidate: RowCandidate) {
        let Fingerprints { tables, postings, .. } = self.fingerprints;
        let first = &tables.all[0];
        if matches!(table.layout, Layout::Filter(_)) {
            let pointer = u64::from(candidate.scanned) >> (16 - tables.pointer_bits);
            first.layout.hint_directory(self.at.section(&first.section), pointer, tables.pointer_bits);
        } else if std::ptr::eq(table, first) {
            self.at.section(postings).announce(postings::range(candidate.row.into()));
        }
    }
}

/// Returns true if a probe of table 1 itself also searches the bucket of this pointer. Returns false if the pointer has
/// too few bits to decide this.
#[inline(always)]
fn is_covered_by_first(tables: &OpenTables, plan: &RadiusPlan, pointer: u16, query: u16) -> bool {
    let bits = tables.all[0].bits;
    bits <= tables.pointer_bits
        && u32::from((pointer ^ query) >> (16 - bits)).count_ones() <= plan.steps[0].radius
}

/// Queues the bucket of table 1 to which a pointer refers, unless the last bucket in the queue is the same.
#[inline(always)]
fn follow_pointer(
    followed: &mut Vec<Followed>,
    tables: &OpenTables,
    at: SectionReader<'_>,
    probe: u32,
    pointer: u16,
) {
    let pointer = u32::from(pointer) >> (16 - tables.pointer_bits);
    if followed.last().is_none_or(|last| (last.probe, last.pointer) != (probe, pointer)) {
        let first = &tables.all[0];
        first.layout.hint_directory(at.section(&first.section), pointer.into(), tables.pointer_bits);
        followed.push(Followed { probe, pointer, bucket: FilteredBucket::default() });
    }
}

fn near(hit: ProbeHit, query: u64) -> FingerprintMatch {
    let ProbeHit { row, fingerprint, .. } = hit;
    FingerprintMatch { rank: row, fingerprint, distance: (fingerprint ^ query).count_ones() }
}

#[cold]
fn overlap(segment: &Segment, section: &Section, rows: u64) -> Error {
    let expected = format!("buckets of {rows} rows in all");
    segment.corrupt_at(section, Fault::new(0, expected, "buckets that overlap"))
}

#[cold]
fn missing_in_first(segment: &Segment, table: &OpenTable, fingerprint: u64) -> Error {
    segment
        .corrupt_at(&table.section, Fault::new(0, "fingerprints of table 1", format!("{fingerprint:016x}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::records::Kept;
    use crate::segment::{Records, build};
    use crate::sys::RealVfs;
    use crate::{Key, Params};
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn batch_search_finds_the_same_matches_as_single_queries() {
        let mut random = SplitMix(9);
        // A third of the fingerprints share one 16-bit block, so that some buckets are hot.
        let fingerprints: Vec<u64> = (0..20_000)
            .map(|i| if i % 3 == 0 { random.next() & !(0xFFFF << 32) | 7 << 32 } else { random.next() })
            .collect();
        let queries: Vec<u64> = (0..3 * MANY + 5)
            .map(|i| {
                let stored = fingerprints[random.below(fingerprints.len() as u64) as usize];
                let near = (0..i % 5).fold(stored, |value, _| value ^ 1 << random.below(64));
                if i % 3 == 0 { random.next() } else { near }
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        for (design, codec) in [
            ("blocks-4", "planes+2"),
            ("blocks-4", "planes+3"),
            ("blocks-2", "compact+4"),
            ("blocks-3", "planes"),
            ("choose-5-2", "planes+2"),
            ("prefix-9", "manku"),
        ] {
            let tables = (design.parse().unwrap(), codec.parse().unwrap());
            let params = Params::builder().u64_keys().simhash(3).tables(tables.0, tables.1).build().unwrap();
            let mut records = Records::new(&params);
            for (key, &fingerprint) in (0..).zip(&fingerprints) {
                records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
            }
            let path = dir.path().join(format!("{design}-{codec}.seg"));
            build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
            let segment = Segment::open(&RealVfs, &path).unwrap();
            for within in [0, 3] {
                let mut alone = Vec::new();
                for (number, &query) in queries.iter().enumerate() {
                    segment
                        .within(query, within, |near| alone.push((number, near.rank, near.distance)))
                        .unwrap();
                }
                alone.sort_unstable();
                let (mut together, mut firsts) = (Vec::new(), vec![0; queries.len()]);
                let mut scratch = SearchScratch::default();
                let ask = SearchOptions::within(within);
                segment
                    .search(&queries, ask, &mut scratch, |query, near| {
                        together.push((query, near.rank, near.distance));
                        Ok(ControlFlow::Continue(()))
                    })
                    .unwrap();
                assert_eq!(scratch.order.len(), queries.len(), "{design} {codec}: not ordered");
                together.sort_unstable();
                assert!(alone.len() > queries.len() / 20 && together == alone, "{design} {codec} {within}");
                segment
                    .search(&queries, ask, &mut scratch, |query, _| {
                        firsts[query] += 1;
                        Ok(ControlFlow::Break(()))
                    })
                    .unwrap();
                alone.dedup_by_key(|answer| answer.0);
                assert_eq!(firsts.iter().sum::<usize>(), alone.len(), "{design} {codec} {within}");
                assert!(firsts.iter().all(|&count| count < 2) && alone.iter().all(|a| firsts[a.0] == 1));
            }
        }
    }
}
