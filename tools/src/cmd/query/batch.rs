//! Answers many raw fingerprints at once, by a join or a scan, against an index or a file of fingerprints.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::Context;
use twindex::store::snapshot::Place;
use twindex::{Fingerprint, KeyBuf, Snapshot};
use twindex_corpus::tsv;
use twindex_join::{
    BatchStrategy, JoinResources, RawValues, Sorter, answers_within, choose, choose_raw, finish_all,
    merge_sorted, raw_answers_within, sorted_answers_within,
};

use super::{CANNOT_WRITE, QueryArgs, QueryTotals, StrategyArg, keeps_samples, key_number, write_key};
use crate::in_order::in_order;
use crate::raw_column::RawColumn;
use crate::report::{Stopwatch, mix};
use crate::stage::StageFile;

/// Number of fingerprints read at a time from the searched file: 64 MB, as in Manku, Jain and Das Sarma 2007, section 4.
const PIECE: usize = 8 << 20;
/// Number of bytes of memory that a query needs while it is answered.
const QUERY_BYTES: usize = 64;
/// Probes answer queries together only if the index has at most this number of documents per query or hits need not be
/// sorted by key. Sorting by key may read all keys.
const KEYS_A_QUERY: u64 = 8;
/// Minimum number of queries in a batch, unless there are fewer queries.
const LEAST: usize = 1 << 12;

/// Counts hits and limits their number for each query. The hits of a query are consecutive.
struct Limited {
    limit: usize,
    query: Option<u64>,
    hits: usize,
    /// Number of queries with hits beyond the limit.
    queries: u64,
}

impl Limited {
    fn new(limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(usize::MAX), query: None, hits: 0, queries: 0 }
    }

    fn admits(&mut self, query: u64) -> bool {
        if self.query.replace(query) != Some(query) {
            self.hits = 0;
        }
        self.hits += 1;
        self.queries += u64::from(self.hits.checked_sub(1) == Some(self.limit));
        self.hits <= self.limit
    }
}

/// Totals over the answers of one thread.
#[derive(Default)]
struct ThreadTotals {
    hits: u64,
    checksum: u64,
}

impl ThreadTotals {
    fn add(&mut self, query: u64, key: &KeyBuf) {
        self.hits += 1;
        self.checksum = self.checksum.wrapping_add(mix(query, key_number(key)));
    }

    fn add_to(&self, totals: &mut QueryTotals) {
        totals.hits += self.hits;
        totals.checksum = totals.checksum.wrapping_add(self.checksum);
    }
}

impl QueryArgs {
    /// Returns the strategy for answering `queries` queries together; `None` to answer each query separately by probes.
    pub(super) fn way(
        &self,
        snapshot: &Snapshot,
        queries: u64,
        within: u32,
    ) -> anyhow::Result<Option<BatchStrategy>> {
        let way = match self.by {
            StrategyArg::Merge => BatchStrategy::Merge,
            StrategyArg::Scan => BatchStrategy::Scan,
            _ if self.first || self.visits.is_some() || self.probe.is_some() => return Ok(None),
            StrategyArg::Probes => BatchStrategy::Probes,
            StrategyArg::Auto => choose(snapshot, queries.min(self.together() as u64), within)?,
        };
        // To sort the hits of several segments by key, the key of each hit must be read.
        let orders = (self.prints() || self.limit.is_some()) && snapshot.segments().nth(1).is_some();
        let is_worth_it = !orders || queries.saturating_mul(KEYS_A_QUERY) >= snapshot.documents();
        Ok(Some(way).filter(|&way| way != BatchStrategy::Probes || is_worth_it))
    }

    /// Returns how many queries are answered together within the memory budget.
    fn together(&self) -> usize {
        (self.work.memory / QUERY_BYTES).max(LEAST)
    }

    /// Answers all raw fingerprints together. Returns CPU seconds and wall-clock seconds.
    pub(super) fn raw_together(
        &self,
        snapshot: &Snapshot,
        mut queries: RawColumn,
        within: u32,
        way: BatchStrategy,
        out: &mut StageFile,
    ) -> anyhow::Result<(QueryTotals, f64, f64)> {
        let mut totals = QueryTotals { by: Some(way), ..QueryTotals::default() };
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let resources = self.resources(scratch.path());
        let tail: &[u8] = if keeps_samples(snapshot) { b"\t-\t-\t-\n" } else { b"\t-\n" };
        let (mut cpu_seconds, mut seconds) = (0.0, 0.0);
        loop {
            let wave: Vec<Fingerprint> =
                queries.wave(self.together())?.into_iter().map(Fingerprint).collect();
            if wave.is_empty() {
                break;
            }
            let watch = Stopwatch::start();
            let start = totals.queries;
            totals.queries += wave.len() as u64;
            if self.prints() || self.limit.is_some() {
                let mut limited = Limited::new(self.limit);
                let make = |&(query, place, distance): &(u64, Place<'_>, u32),
                            part: &mut ThreadTotals,
                            text: &mut _| {
                    let key = place.key()?;
                    self.add_hit(query, &key, (distance, tail), part, text)
                };
                let write = |part: ThreadTotals, text: &[u8]| {
                    part.add_to(&mut totals);
                    out.write_all(text).context(CANNOT_WRITE)
                };
                in_order(make, write, |push| {
                    sorted_answers_within(
                        snapshot,
                        &wave,
                        within,
                        way,
                        resources,
                        |query, place, distance| {
                            let number = start + query as u64;
                            if !limited.admits(number) {
                                return Ok(());
                            }
                            push((number, place, distance))
                        },
                    )
                })?;
                totals.limited += limited.queries;
            } else {
                let parts = answers_within(
                    snapshot,
                    &wave,
                    within,
                    way,
                    resources,
                    ThreadTotals::default,
                    |part, query, _, place, _| {
                        let key = place.key()?;
                        if self.shard.has(&key) {
                            part.add(start + query as u64, &key);
                        }
                        Ok(())
                    },
                )?;
                for part in &parts {
                    part.add_to(&mut totals);
                }
            }
            cpu_seconds += watch.cpu_seconds();
            seconds += watch.seconds();
        }
        Ok((totals, cpu_seconds, seconds))
    }

    fn resources<'a>(&self, dir: &'a Path) -> JoinResources<'a> {
        JoinResources { dir, memory: self.work.memory, threads: rayon::current_num_threads() }
    }

    /// Appends the line of a hit, unless the hit belongs to another shard.
    fn add_hit(
        &self,
        query: u64,
        key: &KeyBuf,
        (distance, tail): (u32, &[u8]),
        part: &mut ThreadTotals,
        text: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        if !self.shard.has(key) {
            return Ok(());
        }
        part.add(query, key);
        if self.prints() {
            tsv::write_number(text, query)?;
            text.push(b'\t');
            write_key(text, key)?;
            text.push(b'\t');
            tsv::write_number(text, distance)?;
            text.extend_from_slice(tail);
        }
        Ok(())
    }

    /// Answers the queries of `--fingerprints` from the file of raw fingerprints at `path`.
    pub(super) fn against(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let within = self.within().unwrap_or_default();
        let mut totals = QueryTotals::default();
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let mut resources = self.resources(scratch.path());
        resources.memory /= 2;
        let Some(asked) = &self.fingerprints else { return Ok(ExitCode::SUCCESS) };
        let mut queries = RawColumn::open(asked)?;
        let mut out = self.hits(None, false, true)?;
        let (mut cpu_seconds, mut seconds) = (0.0, 0.0);
        loop {
            let wave = queries.wave(self.together())?;
            if wave.is_empty() {
                break;
            }
            let start = totals.queries;
            totals.queries += wave.len() as u64;
            let ordered = self.prints() || self.limit.is_some();
            let begin =
                || Sorter::<(u64, u64, u8)>::new(scratch.path(), resources.memory / resources.threads);
            // Puts query and distance first, so that sorting gives the hits of each query by distance, then by key.
            let pack = |query: u32, distance: u32| u64::from(query) << 8 | u64::from(distance);
            let mut sorters: Vec<Sorter<(u64, u64, u8)>> = Vec::new();
            let (mut pieces, mut first) = (RawColumn::open(path)?, 0_u64);
            loop {
                let piece = pieces.wave(PIECE.min((self.work.memory / 32).max(LEAST)))?;
                if piece.is_empty() {
                    break;
                }
                let watch = Stopwatch::start();
                let way = match self.by {
                    StrategyArg::Merge => BatchStrategy::Merge,
                    StrategyArg::Scan => BatchStrategy::Scan,
                    StrategyArg::Auto | StrategyArg::Probes => {
                        choose_raw(piece.len() as u64, wave.len() as u64, within)
                    }
                };
                totals.by = totals.by.or(Some(way));
                let values = RawValues::Held(&piece);
                if ordered {
                    // Threads reuse the sorters of earlier pieces, so that one set of sorters holds all hits.
                    let begun = Mutex::new(std::mem::take(&mut sorters));
                    let next = || begun.lock().ok().and_then(|mut begun| begun.pop()).unwrap_or_else(begin);
                    let take = |sorter: &mut Sorter<_>, query: u32, at: u32, distance: u32| {
                        sorter.push((pack(query, distance), first + u64::from(at), 0))
                    };
                    sorters = raw_answers_within(&values, &wave, within, way, resources, next, take)?;
                    sorters.extend(begun.into_inner().unwrap_or_default());
                } else {
                    let take = |part: &mut ThreadTotals, query: u32, at: u32, _| {
                        let key = KeyBuf::U64(first + u64::from(at));
                        if self.shard.has(&key) {
                            part.add(start + u64::from(query), &key);
                        }
                        Ok(())
                    };
                    let parts = raw_answers_within(
                        &values,
                        &wave,
                        within,
                        way,
                        resources,
                        ThreadTotals::default,
                        take,
                    )?;
                    for part in &parts {
                        part.add_to(&mut totals);
                    }
                }
                first += piece.len() as u64;
                cpu_seconds += watch.cpu_seconds();
                seconds += watch.seconds();
            }
            let watch = Stopwatch::start();
            let sorted = finish_all(sorters)?;
            let mut limited = Limited::new(self.limit);
            let make = |&(query, key, distance): &(u64, u64, u32), part: &mut ThreadTotals, text: &mut _| {
                self.add_hit(query, &KeyBuf::U64(key), (distance, b"\t-\n"), part, text)
            };
            let write = |part: ThreadTotals, text: &[u8]| {
                part.add_to(&mut totals);
                out.write_all(text).context(CANNOT_WRITE)
            };
            in_order(make, write, |push| {
                merge_sorted(&sorted, |(packed, key, _)| {
                    let number = start + (packed >> 8);
                    if !limited.admits(number) {
                        return Ok(());
                    }
                    push((number, key, (packed & 0xff) as u32))
                })
            })?;
            totals.limited += limited.queries;
            cpu_seconds += watch.cpu_seconds();
            seconds += watch.seconds();
        }
        self.report(&totals, (cpu_seconds, seconds), None, out.finish()?)
    }
}
