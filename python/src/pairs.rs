//! Finds pairs of near documents in an index, or across two of its segments.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, Int32Builder};
use twindex::params::Threshold;
use twindex::store::snapshot::Place;
use twindex::{KeyBuf, Snapshot};
use twindex_join::{JoinResources, SharedProgress, counted_documents, pairs_within, resembling_documents};

use crate::columns::{Keys, batch};
use crate::error::{Failure, Result};
use crate::stream::{BYTES, BatchSender, CappedCounts, ROWS};

/// If a bucket has more members than this, not all of its pairs are compared, as in the command.
const MAX_BUCKET: usize = 10_000;

/// The condition under which documents are near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PairCondition {
    Within(u32),
    /// Smallest exact resemblance, computed from the sets of the index.
    Counted(f64),
    /// Smallest resemblance, estimated from signatures, for documents that share a band.
    Estimated(f64),
}

impl PairCondition {
    /// Returns the caller's condition. Without one, uses the radius of the index, or its threshold if it has no radius.
    /// Resemblance is estimated only if `estimated` is true.
    pub(crate) fn of(
        params: &twindex::Params,
        within: Option<u32>,
        resembling: Option<f64>,
        estimated: bool,
    ) -> Result<Self> {
        let near = params.near();
        let by_resemblance = |threshold: f64| match (estimated, params.sets) {
            _ if params.codes.is_some() => Err(Failure::invalid(
                "resembling: this index keeps fingerprints, which are near by distance alone; leave it out",
            )),
            (true, _) => Ok(Self::Estimated(threshold)),
            (false, true) => Ok(Self::Counted(threshold)),
            (false, false) => Err(Failure::invalid(
                "this index keeps no sets to count resemblance by: ask for estimates with estimated=True, or make the \
                 index with sets=True",
            )),
        };
        match (within, resembling, near.within) {
            (Some(_), Some(_), _) => Err(Failure::invalid("name within or resembling, not both")),
            (Some(within), None, _) => Ok(Self::Within(within)),
            (None, Some(threshold), _) if !(0.0..=1.0).contains(&threshold) => {
                Err(Failure::invalid(format!("resembling: expected 0 to 1, found {threshold}")))
            }
            (None, Some(threshold), _) => by_resemblance(threshold),
            (None, None, Some(within)) => Ok(Self::Within(within.into())),
            (None, None, None) => by_resemblance(near.threshold.unwrap_or(Threshold::USUAL).value()),
        }
    }
}

/// Columns of pairs, which are sent as a batch when they are large enough.
struct PairColumns<'o> {
    keys: [Keys; 2],
    distances: Int32Builder,
    resemblances: Float64Builder,
    near: PairCondition,
    rows: usize,
    out: &'o BatchSender,
}

impl PairColumns<'_> {
    fn push(&mut self, a: &KeyBuf, b: &KeyBuf, score: (u32, f64)) -> Result<()> {
        self.keys[0].push(a.as_key());
        self.keys[1].push(b.as_key());
        match self.near {
            PairCondition::Within(_) => self.distances.append_value(score.0.cast_signed()),
            PairCondition::Counted(_) | PairCondition::Estimated(_) => {
                self.resemblances.append_value(score.1);
            }
        }
        self.rows += 1;
        let bytes = self.keys.iter().map(Keys::bytes).max().unwrap_or_default();
        if self.rows == ROWS || bytes >= BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let score: (&str, ArrayRef) = match self.near {
            PairCondition::Within(_) => ("distance", Arc::new(self.distances.finish())),
            PairCondition::Counted(_) | PairCondition::Estimated(_) => {
                ("resemblance", Arc::new(self.resemblances.finish()))
            }
        };
        let [a, b] = &mut self.keys;
        self.out.push(batch(vec![("a", a.finish()), ("b", b.finish()), score])?)
    }
}

/// Passes each near pair in `left`, or across `left` and `right`, to `take`, with the smaller key first and the distance
/// or the resemblance.
fn for_each(
    left: &Snapshot,
    right: Option<&Snapshot>,
    near: PairCondition,
    memory: usize,
    watched: &SharedProgress,
    mut take: impl FnMut(&KeyBuf, &KeyBuf, (u32, f64)) -> Result<()>,
) -> Result<CappedCounts> {
    let scratch = tempfile::tempdir()
        .map_err(|error| Failure::io("create a scratch folder in", &std::env::temp_dir(), error))?;
    let resources = JoinResources { dir: scratch.path(), memory, threads: rayon::current_num_threads() };
    let mut take = |a: Place<'_>, b: Place<'_>, score: (u32, f64)| -> Result<()> {
        watched.check()?;
        let (a, b) = (a.key()?, b.key()?);
        if a <= b { take(&a, &b, score) } else { take(&b, &a, score) }
    };
    let capped = match near {
        PairCondition::Within(within) => {
            pairs_within(left, right, within, resources, |a, b, distance| take(a, b, (distance, 0.0)))?;
            CappedCounts::default()
        }
        PairCondition::Counted(threshold) => {
            let found =
                counted_documents(left, right, threshold, MAX_BUCKET, resources, |a, b, resemblance| {
                    take(a, b, (0, resemblance.value()))
                })?;
            CappedCounts { buckets: found.capped, cap: found.cap }
        }
        PairCondition::Estimated(threshold) => {
            let resources = JoinResources { memory: memory / 4, ..resources };
            let found =
                resembling_documents(left, right, threshold, MAX_BUCKET, resources, |a, b, resemblance| {
                    take(a, b, (0, resemblance.value()))
                })?;
            CappedCounts { buckets: found.capped_buckets, cap: found.cap }
        }
    };
    // Reports read errors of mapped files, from which keys were read after the join.
    left.check_maps()?;
    right.map_or(Ok(()), Snapshot::check_maps)?;
    Ok(capped)
}

/// Sends all pairs in batches of columns.
pub(crate) fn find(
    left: &Snapshot,
    right: Option<&Snapshot>,
    near: PairCondition,
    memory: usize,
    out: &BatchSender,
) -> Result<CappedCounts> {
    let kind = left.params().key;
    let mut found = PairColumns {
        keys: [Keys::new(kind), Keys::new(kind)],
        distances: Int32Builder::new(),
        resemblances: Float64Builder::new(),
        near,
        rows: 0,
        out,
    };
    let capped = for_each(left, right, near, memory, &SharedProgress::default(), |a, b, score| {
        found.push(a, b, score)
    })?;
    found.flush()?;
    Ok(capped)
}

/// Two keys, and the distance or the resemblance.
pub(crate) type Pair = (KeyBuf, KeyBuf, (u32, f64));

/// Returns all pairs of an index as a list.
pub(crate) fn list(
    snapshot: &Snapshot,
    near: PairCondition,
    watched: &SharedProgress,
) -> Result<(Vec<Pair>, CappedCounts)> {
    let mut pairs = Vec::new();
    let capped = for_each(snapshot, None, near, 1 << 30, watched, |a, b, score| {
        pairs.push((a.clone(), b.clone(), score));
        Ok(())
    })?;
    Ok((pairs, capped))
}
