//! Finds pairs of documents by the samples in the index: the pipeline of [`twindex_join::samples`].

use std::iter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use twindex::{Index, Params, Resemblance, Snapshot};
use twindex_join::{Common, FormedPairs, SampledBy, ShingleSets, merge_elements};

use super::resembling::{DocumentSets, LiveIndexes, PairCounter};
use super::{PairsArgs, SearchReport};
use crate::options::VerifyChoice;
use crate::report::{Stages, Stopwatch, count, counted};

/// Number of candidate pairs that are counted together.
const BATCH: usize = 1 << 14;
/// Number of the most common shingles that are named in a remark.
const NAMED: usize = 3;

/// Statistics of the search by samples: fields of `--json`.
#[derive(Serialize)]
pub(super) struct SampleReport {
    /// Number of documents without a sampled hash, which are in no pair.
    without_elements: u64,
    /// Number of shingles that more than `bucket_cap` documents have. Not all pairs of these documents were compared.
    capped_shingles: u64,
    /// The cap: `--max-bucket`, or less if there would be too many pairs.
    bucket_cap: u64,
    /// Number of documents that have the most common shingle.
    largest_bucket: u64,
    /// The capped shingles that most documents have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    common_shingles: Vec<CommonShingle>,
    /// CPU seconds of each stage. `pair_merge` includes writing the pairs, `verify` is the counting of --verify exact.
    stages: Stages,
    #[serde(skip)]
    by: SampledBy,
}

/// A shingle that more documents have than the cap on pairing.
#[derive(Serialize)]
struct CommonShingle {
    /// The sampled hash of the shingle, in hexadecimal.
    hash: String,
    /// Number of documents that have the shingle.
    documents: u64,
    /// Key of the first document that has the shingle.
    first: String,
}

impl SampleReport {
    /// Returns warnings for the user.
    pub(super) fn remarks(&self, max_bucket: u32) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.capped_shingles > 0 {
            let lowered = if self.bucket_cap < u64::from(max_bucket) {
                format!(", lowered to {} to bound the work", count(self.bucket_cap))
            } else {
                String::new()
            };
            remarks.push(format!(
                "{} of more documents than --max-bucket {}{lowered} (the largest: {}): these were paired as stars, with \
                 the first and the one before; there may be more pairs",
                counted(self.capped_shingles, "shingle"),
                count(max_bucket.into()),
                count(self.largest_bucket),
            ));
        }
        let named: Vec<String> = self
            .common_shingles
            .iter()
            .take(NAMED)
            .map(|CommonShingle { hash, documents, first }| {
                format!(
                    "{hash} in {} documents, the first of them {}",
                    count(*documents),
                    first.escape_debug()
                )
            })
            .collect();
        if !named.is_empty() {
            remarks.push(format!("the most common shingles, by their hashes: {}", named.join("; ")));
        }
        if self.without_elements > 0 {
            let (what, advice) = match self.by {
                SampledBy::Modulus(modulus) => (
                    format!("a shingle hash that {modulus} divides"),
                    "; an index made with --bottom samples short documents, too",
                ),
                SampledBy::Bottom(_) => ("words or features".to_owned(), ""),
            };
            remarks.push(format!(
                "{} without {what}: in no pair, not even with copies of the same text{advice}",
                counted(self.without_elements, "document")
            ));
        }
        remarks
    }
}

/// Returns the kind of samples that an index with these parameters stores: bottom samples if it stores both.
fn sampled_by(path: &Path, params: &Params) -> anyhow::Result<SampledBy> {
    match (params.bottom, params.modulus) {
        (0, 0) => bail!(
            "{}: this index stores no samples of shingle hashes; make another index with --bottom 128, or --modulus 25",
            path.display()
        ),
        (0, modulus) => Ok(SampledBy::Modulus(modulus)),
        (t, _) => Ok(SampledBy::Bottom(t)),
    }
}

/// Returns an error if the samples of two indexes cannot be compared.
fn check_comparable(
    (left, mine, by): (&Path, &Params, SampledBy),
    (right, theirs): (&Path, &Params),
) -> anyhow::Result<()> {
    let cannot = || format!("{}: cannot be compared with {}", right.display(), left.display());
    mine.check_same_shingles(theirs).with_context(cannot)?;
    let found = sampled_by(right, theirs)?;
    let shown = |by| match by {
        SampledBy::Bottom(t) => format!("--bottom {t}"),
        SampledBy::Modulus(modulus) => format!("--modulus {modulus}"),
    };
    ensure!(
        found == by,
        "{}: samples: expected {}, found {}; make both with the same options",
        cannot(),
        shown(by),
        shown(found)
    );
    Ok(())
}

/// A search for pairs by samples.
struct SampleSearch<'a> {
    args: &'a PairsArgs,
    sides: &'a LiveIndexes<'a>,
    samples: ShingleSets,
    by: SampledBy,
    formed: FormedPairs,
    threshold: f64,
    folder: &'a Path,
}

impl SampleSearch<'_> {
    /// Passes each pair whose common sampled hashes `is_wanted` accepts to `each`, in ascending order. With a second
    /// index, passes only pairs across the two. Returns the number of candidate pairs.
    fn candidates(
        &self,
        is_wanted: impl Fn(&Common) -> bool,
        mut each: impl FnMut(u32, u32, Common) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let boundary = self.sides.boundary();
        self.formed.common(&self.samples, self.by, is_wanted, |a, b, common| {
            let is_inside = boundary.is_some_and(|first_right| (a < first_right) == (b < first_right));
            if is_inside { Ok(()) } else { each(a, b, common) }
        })
    }

    /// Passes each pair whose estimated resemblance reaches the threshold to `push`. Returns the number of candidate
    /// pairs.
    fn estimated(
        &self,
        push: &mut dyn FnMut((u32, u32, Resemblance)) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let is_near = |common: &Common| common.resemblance().at_least(self.threshold);
        self.candidates(is_near, |a, b, common| {
            // Samples that hold all shingles give an exact resemblance, which is an estimate without an error here.
            let known = common.resemblance();
            push((
                a,
                b,
                Resemblance::Estimate { value: known.value(), standard_error: known.standard_error() },
            ))
        })
    }

    /// Passes each pair whose exact resemblance reaches the threshold to `push`. Returns the number of candidate pairs,
    /// and the CPU seconds of counting.
    fn counted(
        &self,
        push: &mut dyn FnMut((u32, u32, Resemblance)) -> anyhow::Result<()>,
    ) -> anyhow::Result<(u64, f64)> {
        let may_be_near = |common: &Common| common.may_reach(self.threshold);
        let sets = DocumentSets::of(self.args, self.sides, self.folder, |needed| {
            let need = |a, b, _| {
                needed.extend([a, b]);
                Ok(())
            };
            self.candidates(may_be_near, need).map(drop)
        })?;
        let mut counter = PairCounter::new(&sets, self.threshold, self.args.work.memory / 8)?;
        let mut seconds = 0.0;
        let mut count = |batch: &mut Vec<(u32, u32)>| {
            let watch = Stopwatch::start();
            let found = counter.count(batch)?;
            seconds += watch.cpu_seconds();
            batch.clear();
            found.into_iter().try_for_each(&mut *push)
        };
        let mut batch = Vec::with_capacity(BATCH);
        let candidates = self.candidates(may_be_near, |a, b, _| {
            batch.push((a, b));
            if batch.len() < BATCH { Ok(()) } else { count(&mut batch) }
        })?;
        count(&mut batch)?;
        Ok((candidates, seconds))
    }

    fn without_elements(&self) -> u64 {
        (0..self.samples.len() as u32).filter(|&document| self.samples.size(document) == 0).count() as u64
    }

    fn common_shingles(&self) -> anyhow::Result<Vec<CommonShingle>> {
        let shown = |&(documents, hash, first): &(u64, u64, u32)| {
            let first = self.sides.key(first)?.to_string();
            Ok(CommonShingle { hash: format!("{hash:012x}"), documents, first })
        };
        self.formed.most_common.iter().map(shown).collect()
    }
}

impl PairsArgs {
    /// Finds pairs by samples: by estimates, or with `--verify exact` by exact counts.
    pub(super) fn samples(
        &self,
        threshold: f64,
        (index, snapshot): (&Index, &Snapshot),
        right: Option<(&Path, &Index, &Snapshot)>,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let path = self.index()?;
        let by = sampled_by(path, snapshot.params())?;
        let is_counted = self.verify == Some(VerifyChoice::Exact) || !self.texts.is_empty();
        if let Some((other, _, theirs)) = right {
            check_comparable((path, snapshot.params(), by), (other, theirs.params()))?;
        }
        let mut sides = iter::once((path, snapshot)).chain(right.map(|(path, _, of)| (path, of)));
        if let Some((path, _)) =
            sides.find(|(_, of)| is_counted && self.texts.is_empty() && !of.params().sets)
        {
            bail!(
                "{}: no sets are kept, by which a resemblance of {threshold} is counted; name the texts with --texts INPUT, \
                 or leave out --verify for estimates",
                path.display()
            );
        }
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let (folder, memory) = (scratch.path(), self.work.memory);
        let sides = LiveIndexes::new(self, (index, snapshot), right)?;
        let mut stages = Stages::default();

        let step = Stopwatch::start();
        let samples = sides.samples(by, folder, memory / 4)?;
        stages.add("read", step);

        let step = Stopwatch::start();
        let merged = merge_elements(&samples, (folder, memory / 2))?;
        stages.add("shingle_merge", step);

        let step = Stopwatch::start();
        let largest_bucket = merged.largest;
        let formed = merged.form_pairs(self.max_bucket() as usize, (folder, memory / 4))?;
        stages.add("pair_formation", step);

        let step = Stopwatch::start();
        let search = SampleSearch { args: self, sides: &sides, samples, by, formed, threshold, folder };
        let out = if self.prints() {
            let (verified, columns) = if is_counted {
                ("counted", "a\tb\tresemblance\tintersection\tunion")
            } else {
                ("estimated", "a\tb\tresemblance\terror")
            };
            let kind = match by {
                SampledBy::Bottom(_) => "bottom",
                SampledBy::Modulus(_) => "modulus",
            };
            let pairs = format!("resembling {threshold}, sampled by {kind}, {verified}");
            Some(self.lines_of(snapshot.params(), &pairs, columns)?)
        } else {
            None
        };
        let (mut candidates, mut verifying) = (0, None);
        let (totals, written) = self.write_resembling(&sides, out, |push| {
            if is_counted {
                let (found, seconds) = search.counted(push)?;
                (candidates, verifying) = (found, Some(seconds));
            } else {
                candidates = search.estimated(push)?;
            }
            Ok(())
        })?;
        stages.insert("pair_merge", step.cpu_seconds() - verifying.unwrap_or_default());
        if let Some(seconds) = verifying {
            stages.insert("verify", seconds);
        }

        let report = SampleReport {
            without_elements: search.without_elements(),
            capped_shingles: search.formed.capped,
            bucket_cap: search.formed.cap,
            largest_bucket,
            common_shingles: search.common_shingles()?,
            stages,
            by,
        };
        let search =
            SearchReport { candidates: Some(candidates), capped_buckets: None, samples: Some(report) };
        self.report(totals, search, written, watch)
    }
}
