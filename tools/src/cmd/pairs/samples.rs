//! Finds pairs of documents by the samples in the index, with [`twindex_join::samples`].

use std::iter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use twindex::{Index, Params, Resemblance, Snapshot};
use twindex_join::{Common, FormedPairs, SampledBy, ShingleSets, merge_elements};

use super::args::{PairsArgs, SearchReport};
use super::report::{CommonShingle, SampleReport};
use super::resembling::{self, DocumentSets, LiveIndexes, PairCounter};

use crate::options::VerifyChoice;
use crate::report::{Stages, Stopwatch};

/// Number of candidate pairs that are counted together.
const BATCH: usize = 1 << 14;
/// Returns the kind of samples that an index with these parameters stores: bottom samples if it stores both kinds.
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
            // If samples contain all shingles, the estimate is exact. It is still reported as an estimate, with an
            // error of 0.
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

/// Finds pairs by samples: by estimates, or with `--verify exact` by exact counts.
pub(super) fn find(
    args: &PairsArgs,
    threshold: f64,
    (index, snapshot): (&Index, &Snapshot),
    right: Option<(&Path, &Index, &Snapshot)>,
    watch: Stopwatch,
) -> anyhow::Result<ExitCode> {
    let path = args.index()?;
    let by = sampled_by(path, snapshot.params())?;
    let is_counted = args.verify == Some(VerifyChoice::Exact) || !args.texts.is_empty();
    if let Some((other, _, theirs)) = right {
        check_comparable((path, snapshot.params(), by), (other, theirs.params()))?;
    }
    let mut sides = iter::once((path, snapshot)).chain(right.map(|(path, _, of)| (path, of)));
    if let Some((path, _)) = sides.find(|(_, of)| is_counted && args.texts.is_empty() && !of.params().sets) {
        bail!(
            "{}: no sets are kept, by which a resemblance of {threshold} is counted; name the texts with --texts INPUT, \
             or leave out --verify for estimates",
            path.display()
        );
    }
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let (folder, memory) = (scratch.path(), args.work.memory);
    let sides = LiveIndexes::new(args, (index, snapshot), right)?;
    let mut stages = Stages::default();

    let step = Stopwatch::start();
    let samples = sides.samples(by, folder, memory / 4)?;
    stages.add("read", step);

    let step = Stopwatch::start();
    let merged = merge_elements(&samples, (folder, memory / 2))?;
    stages.add("shingle_merge", step);

    let step = Stopwatch::start();
    let largest_bucket = merged.largest;
    let formed = merged.form_pairs(args.max_bucket() as usize, (folder, memory / 4))?;
    stages.add("pair_formation", step);

    let step = Stopwatch::start();
    let search = SampleSearch { args, sides: &sides, samples, by, formed, threshold, folder };
    let out = if args.prints() {
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
        Some(args.lines_of(snapshot.params(), &pairs, columns)?)
    } else {
        None
    };
    let (mut candidates, mut verifying) = (0, None);
    let pairs = resembling::write(args, &sides, out, |push| {
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
    let search = SearchReport { candidates: Some(candidates), capped_buckets: None, samples: Some(report) };
    args.report(pairs, None, search, watch)
}
