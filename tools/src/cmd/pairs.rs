//! `twindex pairs`: finds all near pairs in an index, or across two indexes.

mod args;
mod brought;
mod codes;
mod near;
mod raw;
mod report;
mod resembling;
mod samples;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use twindex::design::WITHIN_MAX;
use twindex::params::Threshold;
use twindex::{Index, Snapshot};

pub(crate) use args::PairsArgs;
use args::SearchReport;

use crate::options::{Output, ResourceArgs, Usage, VerifyChoice};
use crate::report::Stopwatch;

/// Parser for the command line of this verb, which other verbs run as a step.
#[derive(Parser)]
struct PairsLine {
    #[command(flatten)]
    pairs: PairsArgs,
}

/// Writes the pairs of an index, found with these options, to the file `out`.
pub(super) fn pairs_of(
    index: &Path,
    out: &Path,
    options: impl IntoIterator<Item = String>,
    work: &ResourceArgs,
    output: &Output,
) -> anyhow::Result<()> {
    let mut line = vec!["pairs".into(), index.as_os_str().to_owned()];
    line.extend(["--out".into(), out.as_os_str().to_owned()]);
    line.extend(options.into_iter().map(Into::into));
    let mut pairs = PairsLine::try_parse_from(line)?.pairs;
    (pairs.work, pairs.output, pairs.is_a_step) = (work.clone(), output.clone(), true);
    pairs.run().map(drop)
}

impl PairsArgs {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        self.check()?;
        self.resembling = self.near.resemblance();
        self.shown = [self.texts.clone(), self.with_texts.clone()];
        if let Some(path) = &self.fingerprints {
            return if self.fingerprint.are_read() {
                brought::find(&self, path)
            } else {
                raw::find(&self, path)
            };
        }
        let index = Index::open(self.index()?)?;
        let snapshot = index.snapshot();
        let other =
            self.with.as_ref().map(|path| Index::open(path).map(|index| (path, index))).transpose()?;
        let other = other.as_ref().map(|(path, index)| (path.as_path(), index, index.snapshot()));
        let watch = Stopwatch::start();
        let has_sets = snapshot.params().sets && other.as_ref().is_none_or(|(.., other)| other.params().sets);
        if self.page.html.is_some() && (has_sets || self.verify == Some(VerifyChoice::Signature)) {
            // Only the page needs the texts.
            (self.texts, self.with_texts) = (Vec::new(), Vec::new());
        }
        let near = snapshot.params().near();
        if self.samples || (self.within().is_none() && near.within.is_none()) {
            self.resembling = self.resembling.or(near.threshold.map(Threshold::value));
        }
        if self.samples && self.resembling.is_none() {
            bail!(
                "{}: documents of this index are near by distance; give a resemblance for --samples with --near J",
                self.index()?.display()
            );
        }
        if let Some(threshold) = self.resembling {
            let right = other.as_ref().map(|(path, index, snapshot)| (*path, *index, snapshot));
            return if self.samples {
                samples::find(&self, threshold, (&index, &snapshot), right, watch)
            } else {
                find_resembling(&self, threshold, (&index, &snapshot), right, watch)
            };
        }
        if self.max_bucket.is_some() {
            return Err(Usage::new(
                "--max-bucket goes with --near J or --samples: all pairs within a distance are found",
            )
            .into());
        }
        let Some(kept) = near.within.or(snapshot.params().simhash.map(|simhash| simhash.within.into()))
        else {
            bail!(
                "{}: this index keeps no simhash fingerprints; --near J finds pairs by its bands",
                self.index()?.display()
            );
        };
        let within = self.within().unwrap_or(kept.into());
        if within > WITHIN_MAX.into() && snapshot.params().codes.is_none() {
            let why = "--near within:K: an index finds 0 to 10; --fingerprints FILE takes any distance";
            return Err(Usage::new(why).into());
        }
        if let Some((path, _, other)) = &other {
            let (mine, theirs) = (snapshot.params(), other.params());
            self.explain(mine.check_same_fingerprints(theirs), mine, (path, theirs))?;
        }
        let right = other.as_ref().map(|(.., snapshot)| snapshot);
        let found = near::find(&self, &snapshot, right, within);
        let found = match &other {
            Some((path, ..)) => found.with_context(|| format!("--with {}", path.display()))?,
            None => found?,
        };
        self.report(found, Some(within), SearchReport::default(), watch)
    }
}

/// Finds pairs by resemblance.
fn find_resembling(
    args: &PairsArgs,
    threshold: f64,
    (index, snapshot): (&Index, &Snapshot),
    right: Option<(&Path, &Index, &Snapshot)>,
    watch: Stopwatch,
) -> anyhow::Result<ExitCode> {
    let Some(minhash) = snapshot.params().minhash else {
        bail!("{}: this index keeps no MinHash, so --near J cannot be answered", args.index()?.display());
    };
    let mut sides = std::iter::once((args.index()?, snapshot)).chain(right.map(|(path, _, of)| (path, of)));
    let without_sets = sides.find(|(_, of)| !of.params().sets).map(|(path, _)| path);
    let verify = match args.verify {
        _ if !args.texts.is_empty() => VerifyChoice::Exact,
        Some(VerifyChoice::Signature) if minhash.signature_bits == 0 => bail!(
            "{}: this index keeps no signatures; --texts INPUT counts on the texts",
            args.index()?.display()
        ),
        Some(VerifyChoice::Signature) => VerifyChoice::Signature,
        _ => match without_sets {
            None => VerifyChoice::Exact,
            Some(path) => bail!(
                "{}: no sets are kept, by which a resemblance of {threshold} is counted; name the texts with --texts \
                 INPUT, or take estimates with --verify signature",
                path.display()
            ),
        },
    };
    if let Some((path, _, other)) = right {
        args.check_comparable(verify, snapshot.params(), (path, other.params()))?;
    }
    let of_right = right.and_then(|(_, _, snapshot)| snapshot.params().minhash);
    let mut kept = minhash;
    // Compares only feature bits that both indexes store.
    kept.feature_bits = of_right.map_or(u8::MAX, |right| right.feature_bits).min(minhash.feature_bits);
    let agreement = args.features.options().agreement(kept, snapshot.documents())?;
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let sides = resembling::LiveIndexes::new(args, (index, snapshot), right)?;
    let found = resembling::find(args, &sides, (threshold, verify), agreement, scratch.path())?;
    let out = if args.prints() { Some(args.lines(snapshot.params(), verify)?) } else { None };
    let pairs = resembling::write(args, &sides, out, |push| {
        found.for_each(|a, b, resemblance| push((a, b, resemblance)))
    })?;
    let search = SearchReport {
        candidates: Some(found.candidates),
        capped_buckets: Some(found.capped_buckets),
        samples: None,
    };
    args.report(pairs, None, search, watch)
}
