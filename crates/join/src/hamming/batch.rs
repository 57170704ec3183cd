//! Answers many Hamming queries at once: by probes, by a join, or by comparing all queries with all fingerprints.
//!
//! - *Probes* search the tables of the index, many queries at a time in the order of each table
//!   ([`Segment::search`](twindex::segment::Segment::search)). The cost per query does not depend on the number of queries.
//! - *Merge* joins queries and fingerprints ([`hamming`]). Each fingerprint is read and distributed to buckets once,
//!   regardless of the number of queries; an additional query costs little more than its own distribution.
//! - *Scan* compares each query with each fingerprint, in blocks that fit in the cache, without buckets.
//!
//! [`choose`] estimates the cost of each strategy from counts and [`PRICES`], and returns the cheapest. All strategies
//! give the same answers, except that probes may miss answers if the tables have a free design.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hamming::pairs::{Fingerprints, Order};
use crate::hamming::{self, FingerprintValues, JoinResources, Piece, TablePool};
use crate::work::runs::{Sorter, finish_all, merge};
use twindex::design::Scheme;
use twindex::error::{Error, Result};
use twindex::planner::cost::cost;
use twindex::segment::near::check_radius;
use twindex::segment::{SearchOptions, Segment};
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex_kernel::{Level, PairBuffer, near_lanes};
use twindex_sketch::Fingerprint;

/// A strategy for answering queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchStrategy {
    /// Probes the tables of the index.
    Probes,
    /// Joins queries and fingerprints, with tables built for this join.
    Merge,
    /// Compares each query with each fingerprint.
    Scan,
}

impl fmt::Display for BatchStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Probes => "probes",
            Self::Merge => "merge",
            Self::Scan => "scan",
        })
    }
}

/// Costs of elementary operations, in nanoseconds of one core.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Cost of reading a fingerprint of an index.
    pub read: f64,
    /// Cost of distributing a fingerprint or a query to a bucket of one table and scanning this bucket.
    pub distribute: f64,
    /// Cost of comparing a query with a fingerprint.
    pub compare: f64,
}

/// Estimated for one core of an AMD EPYC 9004 with AVX-512. `query --by` confirmed that these prices lead to the
/// cheapest strategy at 1 and 10 million fingerprints and 100 to a million queries: `benches/RESULTS.md`, "Many against
/// many".
pub const PRICES: Prices = Prices { read: 3.0, distribute: 9.0, compare: 0.065 };

/// Returns the estimated time of a strategy for `queries` queries and `rows` fingerprints, in nanoseconds of one core.
/// `read` is the cost of reading a fingerprint in the same unit.
fn nanos(strategy: BatchStrategy, rows: f64, read: f64, queries: f64, within: u32) -> f64 {
    let tables = f64::from(within + 1);
    match strategy {
        BatchStrategy::Probes => f64::INFINITY,
        BatchStrategy::Scan => rows * read + rows * queries * PRICES.compare,
        BatchStrategy::Merge => {
            let block = f64::from(64 / (within + 1));
            // The number of buckets: one for each value of a block, but not more than there are fingerprints or queries.
            let buckets = block.exp2().min(rows.max(queries)).max(1.0);
            let comparisons = rows * queries / buckets;
            rows * read + tables * ((rows + queries) * PRICES.distribute + comparisons * PRICES.compare)
        }
    }
}

/// Returns the strategy with the lowest estimated cost for `queries` queries to a snapshot. Always returns probes if a
/// table has a free design, with which probes may miss answers, or if a table does not support the radius.
///
/// # Errors
/// Same as [`Snapshot::for_each_answer`].
pub fn choose(snapshot: &Snapshot, queries: u64, within: u32) -> Result<BatchStrategy> {
    snapshot.check_within(within)?;
    let (mut rows, mut probes) = (0, 0.0);
    for (segment, _) in snapshot.segments() {
        let answers = |scheme: Scheme| scheme.design.is_exact() && within <= scheme.design.within_max();
        if segment.scheme().is_some_and(|scheme| !answers(scheme)) {
            return Ok(BatchStrategy::Probes);
        }
        rows += segment.distinct_fingerprints();
        probes += probe_nanos(segment, within)? * queries as f64;
    }
    Ok([(BatchStrategy::Probes, probes)]
        .into_iter()
        .chain(
            [BatchStrategy::Merge, BatchStrategy::Scan].map(|strategy| {
                (strategy, nanos(strategy, rows as f64, PRICES.read, queries as f64, within))
            }),
        )
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(BatchStrategy::Probes, |(strategy, _)| strategy))
}

/// Returns the strategy with the lowest estimated cost for `queries` queries to `rows` fingerprints outside an index.
#[must_use]
pub fn choose_raw(rows: u64, queries: u64, within: u32) -> BatchStrategy {
    let [merge, scan] = [BatchStrategy::Merge, BatchStrategy::Scan]
        .map(|strategy| nanos(strategy, rows as f64, 0.0, queries as f64, within));
    if merge < scan { BatchStrategy::Merge } else { BatchStrategy::Scan }
}

fn probe_nanos(segment: &Segment, within: u32) -> Result<f64> {
    let rows = segment.distinct_fingerprints();
    match segment.scheme() {
        Some(scheme) if rows > 0 => Ok(cost(scheme, within, rows)?.nanos()),
        _ => Ok(0.0),
    }
}

/// For each query, passes each live document within `within` bits to `take`, with the number of the query, the position
/// of the segment and the distance. The order is unspecified. Each thread has its own state, created by `begin`; the
/// states are returned.
///
/// The answers are complete, except with probes of tables of a free design, which may miss answers. Uses the memory of
/// `resources.memory` in addition to the mapped index.
///
/// # Errors
/// Same as [`Snapshot::for_each_answer`] and [`near_fingerprints_within`](crate::near_fingerprints_within), or the error of
/// `take`.
pub fn answers_within<S: Send>(
    snapshot: &Snapshot,
    queries: &[Fingerprint],
    within: u32,
    strategy: BatchStrategy,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, usize, usize, Place<'_>, u32) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    snapshot.check_within(within)?;
    if strategy == BatchStrategy::Probes {
        return by_probes(snapshot, queries, within, resources, begin, take);
    }
    let values: Vec<u64> = queries.iter().map(|question| question.0).collect();
    let mut resources = resources;
    let fingerprints = Fingerprints::new(snapshot, &mut resources)?;
    let read = |piece: Piece, each: &mut dyn FnMut(u32, &[u64]) -> Result<()>| fingerprints.read(piece, each);
    let states = raw_answers_within(
        &fingerprints.values(&read),
        &values,
        within,
        strategy,
        resources,
        || (begin(), Vec::new()),
        |(state, ordinals), question, number, distance| {
            let of = fingerprints.documents(number, ordinals)?;
            let documents = fingerprints.of(of, ordinals);
            for &ordinal in documents.ordinals {
                let place = Place { segment: documents.segment, ordinal };
                take(state, question as usize, of, place, distance)?;
            }
            Ok(())
        },
    )?;
    snapshot.check_maps()?;
    Ok(states.into_iter().map(|(state, _)| state).collect())
}

fn by_probes<S: Send>(
    snapshot: &Snapshot,
    queries: &[Fingerprint],
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, usize, usize, Place<'_>, u32) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let segments: Vec<&Segment> = snapshot.segments().map(|(segment, _)| segment).collect();
    let size = queries.len().div_ceil(resources.threads.max(1)).max(1);
    let mut states: Vec<(S, usize, &[Fingerprint])> =
        queries.chunks(size).enumerate().map(|(part, queries)| (begin(), part * size, queries)).collect();
    if states.is_empty() {
        return Ok(vec![begin()]);
    }
    hamming::on_threads(&mut states, |(state, first, queries)| {
        snapshot
            .for_each_answer(queries, SearchOptions::within(within), |question, place, distance| {
                let of =
                    segments.iter().position(|&segment| std::ptr::eq(segment, place.segment)).unwrap_or(0);
                take(state, *first + question, of, place, distance)?;
                Ok(std::ops::ControlFlow::Continue(()))
            })
            .map(drop)
    })?;
    Ok(states.into_iter().map(|(state, ..)| state).collect())
}

/// Like [`answers_within`], with answers sorted by query, distance and key. Answers that exceed half of
/// `resources.memory` are written to unnamed files in `resources.dir`.
///
/// # Errors
/// Same as [`answers_within`], [`Error::Io`] from a scratch file, or the error of `each`.
pub fn sorted_answers_within<'s, E: From<Error>>(
    snapshot: &'s Snapshot,
    queries: &[Fingerprint],
    within: u32,
    strategy: BatchStrategy,
    resources: JoinResources<'_>,
    mut each: impl FnMut(usize, Place<'s>, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let order = Order::of(snapshot)?;
    let mut resources = resources;
    resources.memory /= 2;
    let begin = || Sorter::<u128>::new(resources.dir, resources.memory / resources.threads.max(1));
    let take = |sorter: &mut Sorter<u128>, question: usize, of: usize, place: Place<'_>, distance: u32| {
        let at = order.place(of, place.ordinal);
        sorter.push(
            (question as u128) << 64
                | u128::from(distance) << 56
                | u128::from(at) << 16
                | (of as u128 & 0xffff),
        )
    };
    let states = answers_within(snapshot, queries, within, strategy, resources, begin, take)?;
    let sorted = finish_all(states)?;
    let segments: Vec<&Segment> = snapshot.segments().map(|(segment, _)| segment).collect();
    merge(&sorted, |answer| {
        let of = answer as usize & 0xffff;
        let place = Place { segment: segments[of], ordinal: order.ordinal(of, (answer >> 16) as u32) };
        each((answer >> 64) as usize, place, (answer >> 56) as u32 & 0xff)
    })
}

/// Like [`answers_within`], for fingerprints outside an index. `take` receives the number of the query, the number of
/// the fingerprint and the distance. There are no tables to probe, so every strategy but a scan is a merge.
///
/// # Errors
/// [`Error::Invalid`] for an unsupported radius, or the errors of reading fingerprints and of `take`.
pub fn raw_answers_within<S: Send>(
    fingerprints: &FingerprintValues<'_>,
    queries: &[u64],
    within: u32,
    strategy: BatchStrategy,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, u32, u32, u32) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    check_radius(within)?;
    hamming::check_count(queries.len() as u64)?;
    hamming::check_count(fingerprints.len() as u64)?;
    if strategy != BatchStrategy::Scan {
        let sides = [FingerprintValues::Held(queries), *fingerprints];
        return hamming::join(&sides, within, resources, &TablePool::default(), begin, |state, pairs| {
            pairs.iter().try_for_each(|pair| take(state, pair.a, pair.b, pair.distance))
        });
    }
    let lanes: Vec<u32> = queries.iter().map(|&question| question as u32).collect();
    let mut states: Vec<S> = (0..resources.threads.max(1)).map(|_| begin()).collect();
    let scan = |state: &mut S, first: u32, values: &[u64]| {
        let (mut near, mut found) = (Vec::with_capacity(BLOCK), PairBuffer::default());
        for (block, first) in values.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
            near.clear();
            near.extend(block.iter().map(|&value| value as u32));
            for (some, at) in lanes.chunks(BLOCK).zip((0_u32..).step_by(BLOCK)) {
                found.clear();
                near_lanes(Level::chosen(), some.into(), Some(near[..].into()), within, &mut found);
                for &[question, value] in found.pairs() {
                    let question = at + question;
                    let difference = queries[question as usize] ^ block[value as usize];
                    if difference.count_ones() <= within {
                        take(state, question, first + value, difference.count_ones())?;
                    }
                }
            }
        }
        Ok(())
    };
    if let Some(held) = fingerprints.held() {
        let next = AtomicUsize::new(0);
        hamming::on_threads(&mut states, |state| {
            loop {
                let start = next.fetch_add(STRETCH, Ordering::Relaxed);
                if start >= held.len() {
                    return Ok(());
                }
                scan(state, start as u32, &held[start..held.len().min(start + STRETCH)])?;
            }
        })?;
        return Ok(states);
    }
    let of = states.len();
    let mut numbered: Vec<(usize, S)> = states.into_iter().enumerate().collect();
    hamming::on_threads(&mut numbered, |(number, state)| {
        let piece = Piece { number: *number, of };
        fingerprints.for_each_slice_of(piece, |first, values| scan(state, first, values))
    })?;
    Ok(numbered.into_iter().map(|(_, state)| state).collect())
}

/// Number of lanes in a block of a scan. Two blocks and their results fit in the cache.
const BLOCK: usize = 1 << 10;
/// Number of fingerprints that a thread claims at a time.
const STRETCH: usize = 1 << 14;
