//! Finds near documents by distance, resemblance, or containment, and returns them as objects or as columns.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder};
use pyo3_arrow::PyRecordBatch;
use rayon::prelude::*;
use twindex::params::KeyKind;
use twindex::{Code, Resemblance, Snapshot};
use twindex_join::{ContainmentHit, ContainmentQueries, SharedProgress};

use crate::args;
use crate::columns::{Column, Keys, batch};
use crate::error::{Failure, Result};
use crate::hit::Hit;
use crate::sketch::sketched;

/// The error message if both `within` and `resembling` are given.
pub(crate) const ONE: &str = "name within or resembling, not both";

/// Maximum number of bytes of texts in one batch of containment queries.
const QUERIES_MEMORY: usize = 1 << 29;

/// Maximum number of fingerprints that are searched for at a time. Each time, a thread reads all fingerprints of the index.
const CODES_TOGETHER: usize = 1 << 10;

/// The options of a lookup that define near documents. Without `within`, `resembling` and `containment`, the parameters
/// of the index define them.
#[derive(Clone, Copy)]
pub(crate) struct NearOptions {
    pub(crate) within: Option<u32>,
    pub(crate) resembling: Option<f64>,
    pub(crate) unverified: bool,
    pub(crate) estimated: bool,
    pub(crate) containment: Option<f64>,
    /// Finds a cover of each text.
    pub(crate) gather: bool,
    /// Maximum number of hits of each query.
    pub(crate) limit: Option<usize>,
}

impl NearOptions {
    /// Returns an error for a share that is out of range, and for options that cannot be combined with containment.
    pub(crate) fn check(self) -> Result<Self> {
        args::share("resembling", self.resembling)?;
        args::share("containment", self.containment)?;
        let others = [
            ("within", self.within.is_some()),
            ("resembling", self.resembling.is_some()),
            ("unverified", self.unverified),
            ("estimated", self.estimated),
        ];
        if let (Some(_), Some((name, _))) = (self.containment, others.iter().find(|(_, given)| *given)) {
            return Err(Failure::invalid(format!(
                "{name} does not go with containment, which is counted on the sets of all documents; leave it out"
            )));
        }
        if self.gather && self.containment.is_none() {
            return Err(Failure::invalid("gather goes with containment"));
        }
        Ok(self)
    }

    /// Finds the documents near a sketch.
    pub(crate) fn one(
        &self,
        snapshot: &Snapshot,
        sketch: &twindex::Sketch,
        watched: &SharedProgress,
    ) -> Result<Vec<Hit>> {
        let Some(share) = self.containment else {
            return Ok(self.hits(snapshot, sketch)?.into_iter().map(Hit::from).collect());
        };
        sketch.check_comparable(&snapshot.params().sketch())?;
        let found = self.contained(snapshot, &[sketch.set()], share, watched)?;
        Ok(found.into_iter().flatten().map(|hit| Hit::contained(hit, self.gather)).collect())
    }

    /// Finds the documents near each text.
    pub(crate) fn many(
        &self,
        snapshot: &Snapshot,
        sketcher: &twindex::Sketcher,
        texts: &Column,
        watched: &SharedProgress,
    ) -> Result<Vec<Vec<Hit>>> {
        if let Some(share) = self.containment {
            let found = self.contained_many(snapshot, sketcher, texts, share, watched)?;
            let hit = |hit| Hit::contained(hit, self.gather);
            return Ok(found.into_iter().map(|hits| hits.into_iter().map(hit).collect()).collect());
        }
        sketched(sketcher, texts, 0..texts.len(), watched, |_, sketch| {
            Ok(self.hits(snapshot, sketch)?.into_iter().map(Hit::from).collect())
        })
    }

    /// Finds the documents near each text. Returns a row for each hit: the key of the text, the key of the document, and
    /// the scores.
    pub(crate) fn columns(
        &self,
        snapshot: &Snapshot,
        sketcher: &twindex::Sketcher,
        (keys, texts): (&Column, &Column),
        watched: &SharedProgress,
    ) -> Result<PyRecordBatch> {
        let mut columns = HitColumns::new(snapshot.params().key);
        if let Some(share) = self.containment {
            let found = self.contained_many(snapshot, sketcher, texts, share, watched)?;
            for (row, hits) in found.iter().enumerate() {
                for hit in hits {
                    columns.push_contained(keys, row, hit)?;
                }
            }
            return columns.finish(true, self.gather);
        }
        let found =
            sketched(sketcher, texts, 0..texts.len(), watched, |_, sketch| self.hits(snapshot, sketch))?;
        for (row, hits) in found.iter().enumerate() {
            for hit in hits {
                columns.push(keys, row, hit)?;
            }
        }
        columns.finish(false, false)
    }

    /// Returns the radius of a search for fingerprints. Without `within`, it is that of the index.
    fn radius(&self, snapshot: &Snapshot) -> Result<u32> {
        let others = [
            ("resembling", self.resembling.is_some()),
            ("containment", self.containment.is_some()),
            ("unverified", self.unverified),
            ("estimated", self.estimated),
        ];
        if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
            return Err(Failure::invalid(format!(
                "{name}: this index keeps fingerprints, which are near by distance alone; leave it out"
            )));
        }
        Ok(self.within.unwrap_or_else(|| snapshot.params().near().within.unwrap_or_default().into()))
    }

    /// Finds the documents near a fingerprint.
    pub(crate) fn of_code(&self, snapshot: &Snapshot, code: Code) -> Result<Vec<Hit>> {
        let query = snapshot.within(code, self.radius(snapshot)?);
        let answers = query.limit(self.limit.unwrap_or(usize::MAX)).run()?;
        Ok(answers.hits.into_iter().map(Hit::from).collect())
    }

    /// Finds the documents near each fingerprint of a column.
    pub(crate) fn of_codes(
        &self,
        snapshot: &Snapshot,
        bits: u16,
        codes: &Column,
        watched: &SharedProgress,
    ) -> Result<Vec<Vec<twindex::Hit>>> {
        let (within, limit) = (self.radius(snapshot)?, self.limit.unwrap_or(usize::MAX));
        watched.begin("searching", codes.len() as u64);
        // In order, so that the first wrong row is reported, whatever the number of threads.
        let codes = (0..codes.len()).map(|row| codes.code(row, bits)).collect::<Result<Vec<Code>>>()?;
        let together = codes.len().div_ceil(rayon::current_num_threads()).clamp(1, CODES_TOGETHER);
        let chunk = |codes: &[Code]| -> Result<Vec<Vec<twindex::Hit>>> {
            watched.advance(codes.len() as u64)?;
            let answers = snapshot.codes_within(codes, within, limit)?;
            Ok(answers.into_iter().map(|answers| answers.hits).collect())
        };
        let found = codes.par_chunks(together).map(chunk).collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns a row for each hit of the fingerprints in `keys` and `codes`, as [`columns`](Self::columns).
    pub(crate) fn columns_of_codes(
        &self,
        snapshot: &Snapshot,
        bits: u16,
        (keys, codes): (&Column, &Column),
        watched: &SharedProgress,
    ) -> Result<PyRecordBatch> {
        let mut columns = HitColumns::new(snapshot.params().key);
        for (row, hits) in self.of_codes(snapshot, bits, codes, watched)?.iter().enumerate() {
            hits.iter().try_for_each(|hit| columns.push(keys, row, hit))?;
        }
        columns.finish(false, false)
    }

    /// Finds the documents near a sketch by distance or resemblance.
    fn hits(&self, snapshot: &Snapshot, sketch: &twindex::Sketch) -> Result<Vec<twindex::Hit>> {
        let query = match (self.within, self.resembling) {
            (Some(_), Some(_)) => return Err(Failure::invalid(ONE)),
            (Some(within), None) => match sketch.code() {
                Some(code) => snapshot.within(code, within),
                None if snapshot.params().sketch().simhash.is_none() => {
                    return Err(Failure::invalid("this index keeps no fingerprints: ask by resembling"));
                }
                None => return Ok(Vec::new()),
            },
            (None, Some(threshold)) => snapshot.resembling(sketch, threshold),
            (None, None) => snapshot.near(sketch),
        };
        let query = if self.unverified { query.unverified() } else { query };
        let query = if self.estimated { query.estimated() } else { query };
        Ok(query.limit(self.limit.unwrap_or(usize::MAX)).run()?.hits)
    }

    /// Finds the documents that contain at least a share of each text, or are contained in it by at least that share.
    fn contained_many(
        &self,
        snapshot: &Snapshot,
        sketcher: &twindex::Sketcher,
        texts: &Column,
        share: f64,
        watched: &SharedProgress,
    ) -> Result<Vec<Vec<ContainmentHit>>> {
        let set_of = |_, sketch: &twindex::Sketch| Ok(sketch.set().to_vec());
        let sets = sketched(sketcher, texts, 0..texts.len(), watched, set_of)?;
        self.contained(snapshot, &sets, share, watched)
    }

    /// Finds the documents that contain at least a share of each set, or are contained in it by at least that share.
    fn contained<S: AsRef<[u64]>>(
        &self,
        snapshot: &Snapshot,
        sets: &[S],
        share: f64,
        watched: &SharedProgress,
    ) -> Result<Vec<Vec<ContainmentHit>>> {
        let queries = ContainmentQueries::new(snapshot.params(), share, QUERIES_MEMORY)?;
        let mut queries = if self.gather { queries.gather() } else { queries };
        let (limit, threads) = (self.limit.unwrap_or(usize::MAX), rayon::current_num_threads());
        let (mut all, mut next) = (Vec::with_capacity(sets.len()), 0);
        while next < sets.len() {
            while next < sets.len() && queries.push(sets[next].as_ref())?.is_some() {
                next += 1;
            }
            queries.for_each_answer(
                snapshot,
                threads,
                limit,
                |_| true,
                watched,
                |found| {
                    all.push(found.hits);
                    twindex::Result::Ok(())
                },
            )?;
            queries.clear();
        }
        Ok(all)
    }
}

/// Columns with a row for each hit. Only containment fills the columns after `resemblances`.
struct HitColumns {
    kind: KeyKind,
    queries: Keys,
    keys: Keys,
    distances: Int32Builder,
    resemblances: Float64Builder,
    intersections: Int64Builder,
    unions: Int64Builder,
    query_in_hit: Float64Builder,
    hit_in_query: Float64Builder,
    unique: Int64Builder,
    unique_in_query: Float64Builder,
}

impl HitColumns {
    fn new(kind: KeyKind) -> Self {
        Self {
            kind,
            queries: Keys::new(kind),
            keys: Keys::new(kind),
            distances: Int32Builder::new(),
            resemblances: Float64Builder::new(),
            intersections: Int64Builder::new(),
            unions: Int64Builder::new(),
            query_in_hit: Float64Builder::new(),
            hit_in_query: Float64Builder::new(),
            unique: Int64Builder::new(),
            unique_in_query: Float64Builder::new(),
        }
    }

    /// Adds a hit of the query in row `row`.
    fn push(&mut self, queries: &Column, row: usize, hit: &twindex::Hit) -> Result<()> {
        self.queries.push(queries.key(row, self.kind)?);
        self.keys.push(hit.key.as_key());
        self.distances.append_option(hit.distance.map(u32::cast_signed));
        self.resemblances.append_option(hit.resemblance.map(|resemblance| resemblance.value()));
        Ok(())
    }

    /// Adds a hit by containment of the query in row `row`.
    fn push_contained(&mut self, queries: &Column, row: usize, hit: &ContainmentHit) -> Result<()> {
        self.queries.push(queries.key(row, self.kind)?);
        self.keys.push(hit.key.as_key());
        self.distances.append_null();
        let resemblance = hit.resemblance();
        self.resemblances.append_value(resemblance.value());
        if let Resemblance::Exact { intersection, union } = resemblance {
            self.intersections.append_value((intersection as u64).cast_signed());
            self.unions.append_value((union as u64).cast_signed());
        }
        self.query_in_hit.append_value(hit.query_in_hit().value());
        self.hit_in_query.append_value(hit.hit_in_query().value());
        self.unique.append_value(hit.unique.into());
        self.unique_in_query.append_value(hit.unique_in_query().value());
        Ok(())
    }

    fn finish(mut self, by_containment: bool, gather: bool) -> Result<PyRecordBatch> {
        let mut columns = vec![
            ("query", self.queries.finish()),
            ("key", self.keys.finish()),
            ("distance", Arc::new(self.distances.finish()) as _),
            ("resemblance", Arc::new(self.resemblances.finish()) as _),
        ];
        if by_containment {
            columns.push(("intersection", Arc::new(self.intersections.finish()) as _));
            columns.push(("union", Arc::new(self.unions.finish()) as _));
            columns.push(("query_in_hit", Arc::new(self.query_in_hit.finish()) as _));
            columns.push(("hit_in_query", Arc::new(self.hit_in_query.finish()) as _));
        }
        if gather {
            columns.push(("unique", Arc::new(self.unique.finish()) as _));
            columns.push(("unique_in_query", Arc::new(self.unique_in_query.finish()) as _));
        }
        batch(columns)
    }
}
