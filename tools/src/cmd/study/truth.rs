//! `twindex study --truth`: computes the precision and recall of found pairs, given the known pairs.

mod known;
mod plot;
mod row;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use twindex::Index;
use twindex_corpus::settings::THRESHOLD;
use twindex_join::{JoinResources, pairs_within};

use self::known::{KeyNumbers, KnownPairs, PairMeasure, ScoreScale};
use self::row::RecallRow;
use super::args::{StudyArgs, TruthArgs};
use crate::cmd::query::write_key;
use crate::options::Usage;
use crate::report;

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct EvalReport {
    rows: Vec<RecallRow>,
}

impl StudyArgs {
    /// Compares the pairs in `input` with those of the table `path`.
    pub(super) fn found(&self, path: &Path, input: &Path) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let args = &self.truth;
        let mut keys = KeyNumbers::default();
        let truth = KnownPairs::read(path, &mut keys)?;
        if truth.scale == ScoreScale::Distance {
            bail!("{}: known pairs have resemblances, not distances", path.display());
        }
        let relevant = self.rule.resemblance();
        if truth.scale == ScoreScale::None && relevant.is_some() {
            return Err(Usage::new("--near goes with known pairs whose resemblance is known").into());
        }
        if let Some(path) = args.svg.as_ref().filter(|path| path.exists()) {
            // Checks this first, because the following work may take long.
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(exists).with_context(|| cannot_draw(path));
        }
        let found = args.found(input, self.work.memory, &mut keys)?;
        let rows: Vec<RecallRow> = match found.scale {
            ScoreScale::Distance if args.thresholds.is_empty() => {
                let radii = 0..=args.within.unwrap_or(10);
                radii.map(|k| row_of_radius(&truth, &found, k, relevant)).collect()
            }
            ScoreScale::Distance => return Err(Usage::new("--thresholds goes with resemblances").into()),
            _ if args.within.is_some() => return Err(Usage::new("--within goes with distances").into()),
            _ => {
                let thresholds = args.thresholds();
                thresholds.iter().map(|&j| row_of_threshold(&truth, &found, j, relevant)).collect()
            }
        };
        if let Some(path) = &args.svg {
            draw(path, &rows)?;
        }
        if self.output.json {
            report::print_json(&EvalReport { rows })?;
        } else {
            report::print_lines(&table(&rows))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl TruthArgs {
    fn thresholds(&self) -> Vec<f64> {
        if self.thresholds.is_empty() {
            (10..=19).map(|twentieth| f64::from(twentieth) * 5.0 / 100.0).collect()
        } else {
            let mut thresholds = self.thresholds.clone();
            thresholds.sort_by(f64::total_cmp);
            thresholds.dedup();
            thresholds
        }
    }

    fn found(&self, input: &Path, memory: usize, keys: &mut KeyNumbers) -> anyhow::Result<KnownPairs> {
        if !input.is_dir() {
            return KnownPairs::read(input, keys);
        }
        let pairs = input.join("pairs.tsv");
        if pairs.exists() {
            return KnownPairs::read(&pairs, keys);
        }
        let index = Index::open(input)?;
        let snapshot = index.snapshot();
        if snapshot.params().simhash.is_none() {
            bail!("{}: this index keeps no simhash fingerprints; name a table of pairs", input.display());
        }
        let mut found = KnownPairs::new(ScoreScale::Distance);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: scratch.path(), memory, threads };
        pairs_within(&snapshot, None, self.within.unwrap_or(10), resources, |a, b, distance| {
            first.clear();
            second.clear();
            // Writes the keys as text, as in a table of pairs, because an index may have integer keys.
            for (name, place) in [(&mut first, a), (&mut second, b)] {
                write_key(name, &place.key()?).map_err(|error| twindex::Error::Invalid(error.to_string()))?;
            }
            found.push(keys.number(&first), keys.number(&second), PairMeasure::Distance(distance));
            Ok::<_, twindex::Error>(())
        })?;
        found.finish();
        Ok(found)
    }
}

fn row_of_radius(truth: &KnownPairs, found: &KnownPairs, k: u32, relevant: Option<f64>) -> RecallRow {
    let relevant = relevant.unwrap_or(THRESHOLD);
    let is_known = |measured: PairMeasure| measured.resembles(relevant);
    let (found, right, known) = truth.compare(found, is_known, |measured| measured.is_within(k));
    RecallRow { k: Some(k), ..RecallRow::of(found, right, known) }
}

fn row_of_threshold(
    truth: &KnownPairs,
    found: &KnownPairs,
    threshold: f64,
    relevant: Option<f64>,
) -> RecallRow {
    let relevant = relevant.unwrap_or(threshold);
    let is_known = |measured: PairMeasure| measured.resembles(relevant);
    let (found, right, known) = truth.compare(found, is_known, |measured| measured.resembles(threshold));
    RecallRow { threshold: Some(threshold), ..RecallRow::of(found, right, known) }
}

/// Formats the rows as lines of a table.
fn table(rows: &[RecallRow]) -> Vec<String> {
    let by_radius = rows.iter().any(|row| row.k.is_some());
    let first = if by_radius { "k" } else { "threshold" };
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.5}"));
    let mut lines = vec![format!("{first}\tprecision\trecall\tf1\tfound\tright\ttrue")];
    lines.extend(rows.iter().map(|row| {
        let RecallRow { precision, recall, f1, found, right, known, .. } = row;
        let at = row.k.map_or_else(|| format!("{:.2}", row.at()), |k| k.to_string());
        format!("{at}\t{}\t{}\t{}\t{found}\t{right}\t{known}", share(*precision), share(*recall), share(*f1))
    }));
    lines
}

fn draw(path: &Path, rows: &[RecallRow]) -> anyhow::Result<()> {
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(plot::svg(rows).as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| cannot_draw(path))
}

fn cannot_draw(path: &Path) -> String {
    format!("{}: cannot write the figure", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_recall_are_none_if_their_denominator_is_zero() {
        let row = RecallRow::of(0, 0, 5);
        assert_eq!((row.precision, row.recall, row.f1), (None, Some(0.0), Some(0.0)));
        let row = RecallRow::of(4, 3, 6);
        assert_eq!((row.precision, row.recall, row.f1), (Some(0.75), Some(0.5), Some(0.6)));
        assert_eq!(RecallRow::of(0, 0, 0).f1, None);
    }
}
