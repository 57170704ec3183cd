//! The search for fingerprints within a radius: probes in stages.
//!
//! A query is some probes, one for each prefix within its radius in each table. Up to [`WINDOW`] probes, of several
//! queries where these are asked together, go through the stages side by side, so that they wait for memory together
//! and not one after the other. What a stage reads, the one before has hinted at:
//!
//! 1. the directory's entry of each probe: which rows are in its bucket;
//! 2. the bucket: the rows whose first bits in a plane, or whose pointer, are near the query's;
//! 3. the rest of these rows: whole keys of complete tables, filters of partial ones;
//! 4. for each entry of a partial table that is left, the bucket of table 1 that its pointer names. Entries with the
//!    same pointer stand together, so each such bucket is looked at once a probe;
//! 5. in these buckets, what is near the query and comes from the bucket the probe went to.
//!
//! A fingerprint that several tables find is reported by the first whose radius it is in.

use std::ops::{ControlFlow, Range};

use super::hot::{NestedSearch, OpenHot};
use super::near::{Ask, Near};
use super::open::{Fingerprints, Segment};
use super::tables::{At, OpenTable, Plan, Tables};
use crate::error::{Error, Result};
use crate::format::hot::HOT_ROWS;
use crate::format::postings;
use crate::format::table::planes::WIDE;
use crate::format::table::{Layout, Planes, Source};
use crate::format::wire::Fault;
use crate::kernel::{Kernel, Level, Simd};
use crate::tables::masks::{Masks, masks};

/// Elements that the filter looks at in one step.
const LANES: usize = 64;
/// Queries whose probes go through the stages together.
const TOGETHER: usize = 16;
/// Probes that do: those of as many queries in 4 tables.
const WINDOW: usize = 4 * TOGETHER;

/// Room for what is between the stages of a search, kept from one to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Those at hand.
    probes: Window,
    /// Those that come next.
    ahead: Window,
    candidates: Vec<Candidate>,
    followed: Vec<Followed>,
    hits: Vec<Hit>,
    done: Vec<bool>,
    left_out: u64,
}

impl Scratch {
    /// Buckets that the last search left out, because its queries had visited as many rows as they may.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// A probe on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// The query's key in the table; in a partial one its entry.
    key: u64,
    prefix: u64,
    start: u32,
    end: u32,
    query: u32,
    step: u32,
    /// Bits that what is behind the prefix may differ in.
    left: u32,
}

/// Probes that go through the stages together, table by table.
#[derive(Debug, Default)]
struct Window {
    probes: Vec<Probe>,
    runs: Vec<Run>,
}

/// Probes of one table that stand together, up to this one.
#[derive(Clone, Copy, Debug)]
struct Run {
    step: u32,
    end: u32,
}

/// A row that may be near.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    probe: u32,
    row: u32,
    /// In a partial table, the entry's pointer.
    pointer: u16,
}

/// A bucket of table 1 that an entry of a partial table named.
#[derive(Clone, Copy, Debug)]
struct Followed {
    probe: u32,
    bucket: u32,
    start: u32,
    end: u32,
}

/// A fingerprint that is near: found by a probe, in a row of its table; of table 1 if that is partial.
#[derive(Clone, Copy, Debug)]
struct Hit {
    probe: u32,
    row: u32,
    fingerprint: u64,
}

/// One search of some queries in one segment.
pub(super) struct Search<'a, 'b> {
    pub(super) segment: &'a Segment,
    pub(super) at: At<'a>,
    pub(super) fingerprints: &'a Fingerprints,
    pub(super) plan: &'a Plan,
    pub(super) ask: Ask,
    pub(super) queries: &'b [u64],
    pub(super) scratch: &'b mut Scratch,
    /// Told the number of the query; a break ends that query.
    pub(super) hit: &'b mut dyn FnMut(usize, Near) -> Result<ControlFlow<()>>,
}

/// Rows of the table at hand that one query has looked at: a directory that lies must cost no more than the table.
#[derive(Default)]
struct Guard {
    of: (u32, u32),
    rows: u64,
}

/// Rows that a query may still visit.
struct Budget {
    query: u32,
    left: u64,
    left_out: u64,
}

impl Budget {
    fn new(visits: u64) -> Self {
        Self { query: 0, left: visits, left_out: 0 }
    }

    /// Begins a query, if it is another; returns what was left out before.
    fn begin(&mut self, query: u32, visits: Option<u64>) -> u64 {
        if self.query == query {
            return 0;
        }
        std::mem::replace(self, Self { query, ..Self::new(visits.unwrap_or(u64::MAX)) }).left_out
    }

    /// Empties a bucket that is too much. A hot one costs what a bucket costs that is just not hot.
    fn admit_rows(&mut self, rows: &mut Range<u64>) {
        let cost = (rows.end - rows.start).min(HOT_ROWS);
        if let Some(left) = self.left.checked_sub(cost) {
            self.left = left;
        } else {
            self.left_out += 1;
            rows.end = rows.start;
        }
    }

    fn admit(&mut self, probe: &mut Probe) {
        let mut rows = u64::from(probe.start)..u64::from(probe.end);
        self.admit_rows(&mut rows);
        probe.end = rows.end as u32;
    }
}

impl Guard {
    /// Counts the rows of a probe, and says whether there are too many.
    #[inline(always)]
    fn exceeds(&mut self, probe: &Probe, most: u64) -> bool {
        if self.of != (probe.query, probe.step) {
            *self = Self { of: (probe.query, probe.step), rows: 0 };
        }
        self.rows += u64::from(probe.end - probe.start);
        self.rows > most
    }
}

/// What stage 1 needs.
#[derive(Clone, Copy)]
struct LookUp<'a> {
    segment: &'a Segment,
    at: At<'a>,
    tables: &'a Tables,
    plan: &'a Plan,
    ask: Ask,
}

impl LookUp<'_> {
    /// Finds the rows of a probe, and hints at them.
    #[inline(always)]
    fn one(self, guard: &mut Guard, probe: &mut Probe) -> Result<()> {
        let table = &self.tables.all[self.plan.steps[probe.step as usize].0 as usize];
        let most = self.tables.rows;
        let rows = match &table.front {
            Some(front) => front.rows(self.at, probe.prefix, most, &table.section)?,
            None => self.otherwise(table, probe)?,
        };
        (probe.start, probe.end) = (rows.start, rows.end);
        // Where a partial table's directory has fewer bits than a probe, several probes look at one bucket.
        if guard.exceeds(probe, most) && (table.front.is_some() || !matches!(table.layout, Layout::Filter(_)))
        {
            return Err(overlap(self.segment, table, most));
        }
        Ok(())
    }

    #[inline(never)]
    fn otherwise(self, table: &OpenTable, probe: &Probe) -> Result<Range<u32>> {
        let source = self.at.section(&table.section);
        let way = self.ask.probe.unwrap_or_else(|| table.layout.probe());
        let rows = table.layout.rows(source, probe.prefix, table.bits, way)?;
        table.layout.hint_rows(source, &rows);
        Ok(rows.start as u32..rows.end as u32)
    }
}

/// A scan of rows of a table by any codec, compiled once for all who need it.
struct Scan<'a, 'b> {
    layout: &'a Layout,
    source: At<'a>,
    rows: Range<u64>,
    key: u64,
    radius: u32,
    each: &'b mut dyn FnMut(u64, u64) -> ControlFlow<()>,
}

impl Kernel for Scan<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<()> {
        let Self { layout, source, rows, key, radius, each } = self;
        layout.scan(simd, source, rows, key, radius, each).map(drop)
    }
}

impl Scan<'_, '_> {
    #[inline(never)]
    fn go(self) -> Result<()> {
        Level::chosen().dispatch(self)
    }
}

impl Kernel for Search<'_, '_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) -> Result<()> {
        self.scratch.left_out = 0;
        self.scratch.done.clear();
        self.scratch.done.resize(self.queries.len(), false);
        let Scratch { ahead, candidates, followed, hits, .. } = &mut *self.scratch;
        // For one query few are enough, and memory that was had before is not asked for again.
        let room = WINDOW.min(4 * self.queries.len());
        ahead.probes.reserve(room);
        candidates.reserve(room);
        followed.reserve(room);
        hits.reserve(room);
        if self.plan.scan {
            return self.scan_all();
        }
        let (mut guard, mut next) = (Guard::default(), Next::default());
        let mut budget = self.ask.visits.map(Budget::new);
        self.fill(&mut next);
        for place in 0..self.scratch.ahead.probes.len() {
            self.look_up(&mut guard, place)?;
        }
        while !self.scratch.ahead.probes.is_empty() {
            let Scratch { probes, ahead, .. } = &mut *self.scratch;
            std::mem::swap(probes, ahead);
            self.fill(&mut next);
            if let Some(budget) = &mut budget {
                // One probe at a time, so that what is left out does not depend on what is asked together.
                self.scratch.left_out += budget.begin(self.scratch.probes.probes[0].query, self.ask.visits);
            }
            self.scan(simd, &mut guard, &mut budget)?;
            if !self.scratch.candidates.is_empty() {
                self.complete()?;
            }
            if !self.scratch.followed.is_empty() {
                self.follow(simd, &mut budget)?;
            }
            if !self.scratch.hits.is_empty() {
                self.report()?;
            }
        }
        self.scratch.left_out += budget.map_or(0, |budget| budget.left_out);
        Ok(())
    }
}

/// Where the probes of a search have come to: table by table for some queries, then for the next.
#[derive(Default)]
struct Next {
    /// The first of the queries at hand.
    first: usize,
    step: usize,
    query: usize,
    masks: Option<Masks>,
}

impl OpenTable {
    /// What a probe may still spend behind its prefix, that differs from the query's in `mask`.
    #[inline(always)]
    fn left(&self, within: u32, mask: u64) -> u32 {
        let counted_again = match &self.layout {
            // The planes behind the first count bits 17 and on.
            Layout::Planes(_) if self.bits > 16 => mask & ((1 << (self.bits - 16)) - 1),
            Layout::Filter(_) if !self.pointer_apart => mask,
            Layout::Planes(_) | Layout::Filter(_) => 0,
            // Whole keys are compared.
            _ => mask,
        };
        within.saturating_sub((mask ^ counted_again).count_ones())
    }
}

impl<'a> Search<'a, '_> {
    #[inline(always)]
    fn tables(&self) -> &'a Tables {
        &self.fingerprints.tables
    }

    #[inline(always)]
    fn table(&self, step: u32) -> &'a OpenTable {
        &self.tables().all[self.plan.steps[step as usize].0 as usize]
    }

    /// All fingerprints, one after the other.
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
                hits.push(Hit { probe: 0, row: row as u32, fingerprint });
                ControlFlow::Continue(())
            };
            Scan { layout: &first.layout, source, rows: 0..tables.rows, key, radius, each: &mut each }
                .go()?;
            for hit in hits.drain(..) {
                if (self.hit)(number, near(hit, key))?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes the next probes, as many as there is room for.
    #[inline(always)]
    fn fill(&mut self, next: &mut Next) {
        let (at, tables, plan, within) = (self.at, self.tables(), self.plan, self.ask.within);
        let Scratch { ahead: Window { probes, runs }, done, .. } = &mut *self.scratch;
        probes.clear();
        runs.clear();
        let (together, window) = if self.ask.visits.is_some() { (1, 1) } else { (TOGETHER, WINDOW) };
        while next.first < self.queries.len() {
            let last = self.queries.len().min(next.first + together);
            let Some(&(table, radius)) = plan.steps.get(next.step) else {
                *next = Next { first: last, query: last, ..Next::default() };
                continue;
            };
            let table = &tables.all[table as usize];
            let step = next.step as u32;
            while next.query < last {
                if probes.len() == window {
                    runs.push(Run { step, end: probes.len() as u32 });
                    return;
                }
                if radius == 0 {
                    let these = next.query..last.min(next.query + window - probes.len());
                    next.query = these.end;
                    let queries = (these.start as u32..).zip(&self.queries[these.clone()]);
                    for ((query, &value), _) in queries.zip(&done[these]).filter(|(_, done)| !**done) {
                        let (prefix, key) = table.prefix_and_key(value);
                        at.hint_bucket(table, prefix);
                        probes.push(Probe { key, prefix, query, step, left: within, ..Probe::default() });
                    }
                    continue;
                }
                let (own, key) = table.prefix_and_key(self.queries[next.query]);
                let mask = next.masks.get_or_insert_with(|| masks(table.bits, radius)).next();
                let Some(mask) = mask.filter(|_| !done[next.query]) else {
                    (next.query, next.masks) = (next.query + 1, None);
                    continue;
                };
                let (prefix, left) = (own ^ mask, table.left(within, mask));
                at.hint_bucket(table, prefix);
                probes.push(Probe { key, prefix, query: next.query as u32, step, left, ..Probe::default() });
            }
            runs.push(Run { step, end: probes.len() as u32 });
            (next.step, next.query) = (next.step + 1, next.first);
        }
    }

    /// Stage 1, for a probe that comes next.
    #[inline(always)]
    fn look_up(&mut self, guard: &mut Guard, place: usize) -> Result<()> {
        let look_up = LookUp {
            segment: self.segment,
            at: self.at,
            tables: self.tables(),
            plan: self.plan,
            ask: self.ask,
        };
        look_up.one(guard, &mut self.scratch.ahead.probes[place])
    }

    /// Stage 2.
    #[allow(clippy::too_many_lines, reason = "one loop for each kind of table, and what they share before")]
    #[inline(always)]
    fn scan<S: Simd>(&mut self, simd: S, guard: &mut Guard, budget: &mut Option<Budget>) -> Result<()> {
        let (at, tables, within) = (self.at, self.tables(), self.ask.within);
        let first = &tables.all[0];
        let own = at.section(&first.section);
        // Table 1 finds by itself what its own probes find, which an entry's pointer tells where it has enough bits.
        let (mine, shift) = (self.plan.steps[0].1, 16_u32.saturating_sub(first.bits));
        let tells = first.bits <= tables.pointer_bits;
        let look_up = LookUp { segment: self.segment, at, tables, plan: self.plan, ask: self.ask };
        let Scratch { probes: Window { probes, runs }, ahead, candidates, followed, hits, .. } =
            &mut *self.scratch;
        // Between two buckets, one that comes next is asked for, so that memory has something to do all the time.
        let mut ahead = ahead.probes.iter_mut();
        candidates.clear();
        followed.clear();
        hits.clear();
        let mut start = 0;
        for run in &*runs {
            let table = &tables.all[self.plan.steps[run.step as usize].0 as usize];
            let source = at.section(&table.section);
            let numbers = start as u32..run.end;
            start = run.end as usize;
            if let Some(budget) = &mut *budget {
                for number in numbers.clone() {
                    budget.admit(&mut probes[number as usize]);
                }
            }
            if let Some(open) = &table.hot {
                for number in numbers.clone() {
                    let probe = &mut probes[number as usize];
                    let Some(bucket) = open.bucket(probe.prefix, probe.end - probe.start) else { continue };
                    // Done here, and nothing for what follows.
                    probe.start = probe.end;
                    let key = table.order.apply(self.queries[probe.query as usize]);
                    let each = &mut |row, fingerprint| hits.push(Hit { probe: number, row, fingerprint });
                    let (section, hot) = (&open.section, &open.hot);
                    NestedSearch { at, tables, table, section, hot, bucket, key, within, each }.go()?;
                }
            }
            let searched = numbers.clone().zip(&probes[numbers.start as usize..numbers.end as usize]);
            match &table.layout {
                Layout::Planes(planes) => {
                    for (number, probe) in searched {
                        if let Some(next) = ahead.next() {
                            look_up.one(guard, next)?;
                        }
                        let mut found = |row: u32| {
                            planes.hint_row(source, row.into());
                            candidates.push(Candidate { probe: number, row, pointer: 0 });
                        };
                        if let Some(front) = table.front
                            && probe.left < WIDE
                        {
                            let lanes = front.lanes(at, probe.start..probe.end, &table.section)?;
                            let own = (probe.key >> 32) as u16;
                            for (base, lanes) in (probe.start..).step_by(LANES).zip(lanes.chunks(LANES)) {
                                let near = simd.near16(lanes, own, probe.left);
                                if near != 0 {
                                    each_bit(near, |place| found(base + place));
                                }
                            }
                        } else {
                            let rows = u64::from(probe.start)..u64::from(probe.end);
                            let near = |row| found(row as u32);
                            planes.candidates(simd, source, &rows, probe.key, probe.left, near)?;
                        }
                    }
                }
                Layout::Filter(filter) => {
                    for (number, probe) in searched {
                        if let Some(next) = ahead.next() {
                            look_up.one(guard, next)?;
                        }
                        let entry = (probe.key >> 48) as u16;
                        let mut found = |row: u32, pointer: u16| {
                            if tells && u32::from((pointer ^ entry) >> shift).count_ones() <= mine {
                                return;
                            }
                            if filter.width > 2 {
                                filter.hint_row(source, row.into());
                                candidates.push(Candidate { probe: number, row, pointer });
                            } else {
                                follow_pointer(followed, tables, own, number, pointer);
                            }
                        };
                        if let Some(front) = table.front {
                            let lanes = front.lanes(at, probe.start..probe.end, &table.section)?;
                            for (base, lanes) in (probe.start..).step_by(LANES).zip(lanes.chunks(LANES)) {
                                let near = simd.near16(lanes, entry, probe.left);
                                if near != 0 {
                                    each_bit(near, |place| found(base + place, lanes[place as usize].get()));
                                }
                            }
                        } else {
                            let rows = u64::from(probe.start)..u64::from(probe.end);
                            filter.candidates(
                                simd,
                                source,
                                &rows,
                                probe.key,
                                probe.left,
                                |row, pointer| {
                                    found(row as u32, pointer);
                                },
                            )?;
                        }
                    }
                }
                layout => {
                    for (number, probe) in searched {
                        let rows = u64::from(probe.start)..u64::from(probe.end);
                        let mut each = |row: u64, key| {
                            if table.prefix(key) == probe.prefix {
                                let fingerprint = table.order.invert(key);
                                hits.push(Hit { probe: number, row: row as u32, fingerprint });
                            }
                            ControlFlow::Continue(())
                        };
                        if !rows.is_empty() {
                            let (key, radius) = (probe.key, within);
                            Scan { layout, source, rows, key, radius, each: &mut each }.go()?;
                        }
                    }
                }
            }
        }
        ahead.try_for_each(|next| look_up.one(guard, next))
    }

    /// Stage 3.
    #[inline(always)]
    fn complete(&mut self) -> Result<()> {
        let (at, tables) = (self.at, self.tables());
        let own = at.section(&tables.all[0].section);
        let Scratch { probes: Window { probes, .. }, candidates, followed, hits, .. } = &mut *self.scratch;
        for candidate in &*candidates {
            let probe = &probes[candidate.probe as usize];
            let table = &tables.all[self.plan.steps[probe.step as usize].0 as usize];
            let source = at.section(&table.section);
            match &table.layout {
                Layout::Planes(planes) => {
                    let top = (probe.prefix.checked_shl(64 - table.bits).unwrap_or(0) >> 48) as u16;
                    let key = planes.complete(source, candidate.row.into(), top)?;
                    let near = (key ^ probe.key).count_ones() <= self.ask.within;
                    if near && table.prefix(key) == probe.prefix {
                        let fingerprint = table.order.invert(key);
                        hits.push(Hit { probe: candidate.probe, row: candidate.row, fingerprint });
                    }
                }
                Layout::Filter(filter) => {
                    let spent = (candidate.pointer ^ (probe.key >> 48) as u16).count_ones();
                    let distance = filter.distance(source, candidate.row.into(), probe.key)?;
                    if spent + distance <= probe.left {
                        follow_pointer(followed, tables, own, candidate.probe, candidate.pointer);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Stages 4 and 5.
    #[inline(always)]
    fn follow<S: Simd>(&mut self, simd: S, budget: &mut Option<Budget>) -> Result<()> {
        let (at, tables) = (self.at, self.tables());
        let first = &tables.all[0];
        let source = at.section(&first.section);
        let Scratch { probes: Window { probes, .. }, followed, hits, .. } = &mut *self.scratch;
        let way = self.ask.probe.unwrap_or_else(|| first.layout.probe());
        let mut seen = (u32::MAX, 0);
        for one in followed.iter_mut() {
            let mut rows = first.layout.rows(source, one.bucket.into(), tables.pointer_bits, way)?;
            if let Some(budget) = &mut *budget {
                budget.admit_rows(&mut rows);
            }
            if seen.0 != one.probe {
                seen = (one.probe, 0);
            }
            seen.1 += rows.end - rows.start;
            if seen.1 > tables.rows {
                // Buckets that overlap would make a probe take time in the square of the file's size.
                return Err(overlap(self.segment, first, tables.rows));
            }
            first.layout.hint_rows(source, &rows);
            (one.start, one.end) = (rows.start as u32, rows.end as u32);
        }
        for one in &*followed {
            let probe = &probes[one.probe as usize];
            let table = &tables.all[self.plan.steps[probe.step as usize].0 as usize];
            let rows = u64::from(one.start)..u64::from(one.end);
            let (query, within) = (self.queries[probe.query as usize], self.ask.within);
            let mut each = |row: u64, fingerprint: u64| {
                if table.prefix(table.order.apply(fingerprint)) == probe.prefix {
                    hits.push(Hit { probe: one.probe, row: row as u32, fingerprint });
                }
                ControlFlow::Continue(())
            };
            // A pointer of more bits than table 1 is probed by names a part of a bucket, which is gone through.
            if let Some(open) = &first.hot
                && rows.end - rows.start > HOT_ROWS
                && first.bits >= tables.pointer_bits
            {
                self::follow_hot(at, tables, open, one.bucket, query, within, &mut each)?;
                continue;
            }
            match &first.layout {
                // All rows have the pointer as their first bits, so the directory need not be asked for them.
                Layout::Planes(planes) if !planes.has_first() => {
                    scan_below(simd, planes, source, &rows, one.bucket as u16, query, within, &mut each)?;
                }
                layout => {
                    Scan { layout, source, rows, key: query, radius: within, each: &mut each }.go()?;
                }
            }
        }
        Ok(())
    }

    /// Hands out what was found, each by the first table that finds it, with its rank in table 1.
    #[inline(always)]
    fn report(&mut self) -> Result<()> {
        let tables = self.tables();
        let first = &tables.all[0];
        let mut kept = 0;
        for place in 0..self.scratch.hits.len() {
            let mut hit = self.scratch.hits[place];
            let Probe { query, step, .. } = self.scratch.probes.probes[hit.probe as usize];
            let difference = hit.fingerprint ^ self.queries[query as usize];
            let found_before = self.plan.steps[..step as usize].iter().any(|&(table, radius)| {
                let table = &tables.all[table as usize];
                table.prefix(table.order.apply(difference)).count_ones() <= radius
            });
            if found_before {
                continue;
            }
            let table = self.table(step);
            if self.plan.steps[step as usize].0 != 0 && !matches!(table.layout, Layout::Filter(_)) {
                let Some(rank) = first.layout.find(self.at.section(&first.section), hit.fingerprint)? else {
                    return Err(stranger(self.segment, table, hit.fingerprint));
                };
                hit.row = rank as u32;
            }
            let postings = &self.fingerprints.postings;
            self.at.section(postings).hint(postings::range(hit.row.into()).start);
            self.scratch.hits[kept] = hit;
            kept += 1;
        }
        for place in 0..kept {
            let hit = self.scratch.hits[place];
            let query = self.scratch.probes.probes[hit.probe as usize].query as usize;
            if self.scratch.done[query] {
                continue;
            }
            self.scratch.done[query] = (self.hit)(query, near(hit, self.queries[query]))?.is_break();
        }
        Ok(())
    }
}

/// What is near in the bucket of table 1 that a pointer names, where that or a part of it is hot.
#[inline(never)]
fn follow_hot(
    at: At<'_>,
    tables: &Tables,
    open: &OpenHot,
    pointer: u32,
    query: u64,
    within: u32,
    each: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<()> {
    let table = &tables.all[0];
    let source = at.section(&table.section);
    // Table 1 may be probed by more bits than a pointer has: then it names several buckets.
    let parts = table.bits - tables.pointer_bits;
    for prefix in u64::from(pointer) << parts..u64::from(pointer + 1) << parts {
        if (prefix ^ table.prefix(query)).count_ones() > within {
            continue;
        }
        let rows = table.layout.rows(source, prefix, table.bits, table.layout.probe())?;
        if let Some(bucket) = open.bucket(prefix, (rows.end - rows.start) as u32) {
            let each = &mut |rank: u32, fingerprint| {
                let _ = each(rank.into(), fingerprint);
            };
            let (section, hot) = (&open.section, &open.hot);
            NestedSearch { at, tables, table, section, hot, bucket, key: query, within, each }.go()?;
        } else if !rows.is_empty() {
            Scan { layout: &table.layout, source, rows, key: query, radius: within, each }.go()?;
        }
    }
    Ok(())
}

/// Hands the place of each bit that is set to `each`. Out of line: most masks are zero.
#[inline(never)]
fn each_bit(mut mask: u64, mut each: impl FnMut(u32)) {
    while mask != 0 {
        each(mask.trailing_zeros());
        mask &= mask - 1;
    }
}

/// Notes the bucket of table 1 that a pointer names, unless the entry before has named it, too.
#[inline(always)]
fn follow_pointer(followed: &mut Vec<Followed>, tables: &Tables, first: At<'_>, probe: u32, pointer: u16) {
    let bucket = u32::from(pointer) >> (16 - tables.pointer_bits);
    if followed.last().is_none_or(|last| (last.probe, last.bucket) != (probe, bucket)) {
        tables.all[0].layout.hint_directory(first, bucket.into(), tables.pointer_bits);
        followed.push(Followed { probe, bucket, start: 0, end: 0 });
    }
}

/// The rows of a bucket of table 1 whose keys begin with `top` and are within the radius.
#[allow(clippy::too_many_arguments, reason = "a part of one stage, cut out for its length")]
#[inline(always)]
fn scan_below<S: Simd>(
    simd: S,
    planes: &Planes,
    source: At<'_>,
    rows: &Range<u64>,
    top: u16,
    query: u64,
    within: u32,
    each: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<()> {
    let Some(left) = within.checked_sub(((query >> 48) as u16 ^ top).count_ones()) else { return Ok(()) };
    let mut failed = None;
    planes.candidates(simd, source, rows, query, left, |row| match planes.complete(source, row, top) {
        Ok(key) if (key ^ query).count_ones() <= within => {
            let _ = each(row, key);
        }
        Ok(_) => {}
        Err(error) => failed = Some(error),
    })?;
    failed.map_or(Ok(()), Err)
}

fn near(hit: Hit, query: u64) -> Near {
    let Hit { row, fingerprint, .. } = hit;
    Near { rank: row, fingerprint, distance: (fingerprint ^ query).count_ones() }
}

#[cold]
fn overlap(segment: &Segment, table: &OpenTable, rows: u64) -> Error {
    let expected = format!("buckets of {rows} rows in all");
    segment.corrupt_at(&table.section, Fault::new(0, expected, "buckets that overlap"))
}

#[cold]
fn stranger(segment: &Segment, table: &OpenTable, fingerprint: u64) -> Error {
    segment
        .corrupt_at(&table.section, Fault::new(0, "fingerprints of table 1", format!("{fingerprint:016x}")))
}
