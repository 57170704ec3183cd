//! `twindex study --method`: compares the near pairs that one method finds, band by band, with exact resemblance.
//!
//! The tables follow Wu, *Near deduplication* (the study of WET files): they count, by score, the pairs that share a
//! block of their fingerprints, or a band of their minima. In addition to that study, this verb computes the precision
//! and recall of each score. For recall, it finds all pairs above the threshold by exact counts of shingles.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use serde::Serialize;
use twindex::{Index, Snapshot};
use twindex_corpus::settings::THRESHOLD;
use twindex_corpus::tsv;
use twindex_join::bands::scores::Scores;
use twindex_join::{JoinResources, Sorter, band_scores, block_scores};
use xxhash_rust::xxh3::xxh3_128;

use super::args::StudyArgs;
use super::method::StudyMethod;
use crate::cmd::build::BuildArgs;
use crate::cmd::pairs::pairs_of;
use crate::interrupt::RemovedOnSignal;
use crate::options::Usage;
use crate::pair_file::PairFiles;
use crate::report::{self, Stopwatch, counted};
use crate::stage::ResultKind;

const STUDIED: ResultKind =
    ResultKind { noun: "a table of scored pairs", suffix: "scored", magic: b"a\tb\tscore\tnear\n" };
/// In buckets with more than this number of distinct members, only adjacent members are compared.
const MAX_BUCKET: usize = 10_000;

/// Parser for the command line of `build`, which this verb runs as a step.
#[derive(Parser)]
struct BuildLine {
    #[command(flatten)]
    build: BuildArgs,
}

/// Statistics of the pairs with one score.
#[derive(Debug, Serialize)]
struct ScoreCounts {
    score: usize,
    /// Number of pairs with this score that share a band.
    pairs: u64,
    /// Number of these pairs whose exact resemblance reaches the threshold.
    near: u64,
    /// `near` divided by `pairs`; `None` if `pairs` is 0.
    precision: Option<f64>,
    /// Fraction of all near pairs that have at least this score; `None` if there are no near pairs.
    recall: Option<f64>,
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct StudyReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    documents: u64,
    threshold: f64,
    /// Lowest score of the table. For each block or band, `bands` has the number of pairs for each score, starting at
    /// this score.
    lowest_score: usize,
    bands: Vec<Vec<u64>>,
    capped_buckets: u64,
    scores: Vec<ScoreCounts>,
    /// Number of pairs in the collection whose exact resemblance reaches the threshold.
    near_pairs: u64,
    /// Wall-clock seconds for building the method's index, counting scores and finding pairs.
    method_seconds: f64,
    exact_seconds: f64,
    index_bytes: u64,
    result_bytes: u64,
    peak_rss_bytes: u64,
}

impl StudyArgs {
    /// Returns the smallest exact resemblance of a near pair.
    fn threshold(&self) -> f64 {
        self.rule.resemblance().unwrap_or(THRESHOLD)
    }

    pub(super) fn bands(&self, method: StudyMethod) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        self.stage.check(STUDIED, &self.input.inputs)?;
        if self.input.inputs.is_empty() {
            return Err(Usage::new("nothing to study: name INPUT files or folders").into());
        }
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let half_done = RemovedOnSignal::new(scratch.path());
        let watch = Stopwatch::start();
        let index = self.index(scratch.path(), "studied", &method.options())?;
        let snapshot = index.snapshot();
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: scratch.path(), memory: self.work.memory, threads };
        let scores = match method {
            StudyMethod::Simhash => block_scores(&snapshot, MAX_BUCKET, resources)?,
            StudyMethod::Minhash => band_scores(&snapshot, MAX_BUCKET, resources)?.scores,
        };
        let found = self.pairs(scratch.path(), "studied", &method.pairs())?;
        let method_seconds = watch.seconds();

        let watch = Stopwatch::start();
        // The exact resemblance is computed from sets, independently of bands.
        self.index(scratch.path(), "exact", "--method minhash --sets kept")?;
        let exact = self.pairs(scratch.path(), "exact", &format!("--near {}", self.threshold()))?;
        let exact_seconds = watch.seconds();

        let (by_score, near_pairs) = self.judge(method, &snapshot, &found, &exact, scratch.path())?;
        let (file, result_bytes) = self.write(method, &snapshot, &found, &exact, scratch.path())?;
        drop(half_done);
        let (lowest, highest) = method.scores();
        let report = StudyReport {
            file,
            documents: snapshot.documents(),
            threshold: self.threshold(),
            lowest_score: lowest,
            bands: scores.pairs.iter().map(|pairs| pairs[lowest..=highest].to_vec()).collect(),
            capped_buckets: scores.capped_buckets,
            scores: by_score,
            near_pairs,
            method_seconds,
            exact_seconds,
            index_bytes: twindex_corpus::page::Space::of(&snapshot, index.path()).on_disk,
            result_bytes,
            peak_rss_bytes: report::peak_rss_bytes(),
        };
        self.print_report(method, &report, &scores)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Creates an index of the documents with these `build` options.
    fn index(&self, scratch: &Path, name: &str, options: &str) -> anyhow::Result<Index> {
        let path = scratch.join(name);
        let mut line = vec!["build".into(), path.clone().into_os_string()];
        // Repeated keys are numbered, so that the index contains every document.
        let words = self.words.unwrap_or(3).to_string();
        line.extend(["--repeated-keys", "number", "--words", &words].map(Into::into));
        line.extend(options.split(' ').map(Into::into));
        let mut build = BuildLine::try_parse_from(line)?.build;
        (build.input, build.work) = (self.input.clone(), self.work.clone());
        (build.output.json, build.output.quiet) = (false, true);
        build.run()?;
        Ok(Index::open(&path)?)
    }

    /// Writes a file of the pairs of an index, found with these `pairs` options.
    fn pairs(&self, scratch: &Path, name: &str, options: &str) -> anyhow::Result<PathBuf> {
        let out = scratch.join(format!("{name}.pairs"));
        let options = options.split(' ').map(str::to_owned);
        pairs_of(&scratch.join(name), &out, options, &self.work, &self.output)?;
        Ok(out)
    }

    /// Counts, by score, the found pairs and the near pairs among them. Also counts all near pairs in the collection.
    fn judge(
        &self,
        method: StudyMethod,
        snapshot: &Snapshot,
        found: &Path,
        exact: &Path,
        scratch: &Path,
    ) -> anyhow::Result<(Vec<ScoreCounts>, u64)> {
        let (lowest, highest) = method.scores();
        let mut sorter: Sorter<[u64; 4]> = Sorter::new(scratch, self.work.memory / 2);
        let push = |sorter: &mut Sorter<[u64; 4]>, pair: u128, is_found: bool, score: usize| {
            sorter.push([(pair >> 64) as u64, pair as u64, u64::from(is_found), score as u64])
        };
        PairFiles::open(&[exact.to_owned()])?
            .for_each(|pair| Ok(push(&mut sorter, name_of(pair.a, pair.b), false, 0)?))?;
        PairFiles::open(&[found.to_owned()])?.for_each(|pair| {
            if let Some(score) = method.score(snapshot, pair.a, pair.b, pair.score.unwrap_or_default())? {
                push(&mut sorter, name_of(pair.a, pair.b), true, score)?;
            }
            Ok(())
        })?;
        let mut counts = vec![(0_u64, 0_u64); highest + 1];
        let (mut near_pairs, mut last) = (0_u64, None);
        sorter.finish()?.for_each(|[high, low, is_found, score]| -> anyhow::Result<()> {
            if is_found == 0 {
                near_pairs += 1;
                last = Some((high, low));
            } else {
                let (pairs, near) = &mut counts[score as usize];
                *pairs += 1;
                *near += u64::from(last == Some((high, low)));
            }
            Ok(())
        })?;
        let mut so_far = 0;
        let mut scores: Vec<ScoreCounts> = (lowest..=highest)
            .rev()
            .map(|score| {
                let (pairs, near) = counts[score];
                so_far += near;
                let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
                ScoreCounts {
                    score,
                    pairs,
                    near,
                    precision: share(near, pairs),
                    recall: share(so_far, near_pairs),
                }
            })
            .collect();
        scores.reverse();
        Ok((scores, near_pairs))
    }

    /// Writes the pairs with their scores, if requested. Returns the path and the size of the file in bytes.
    fn write(
        &self,
        method: StudyMethod,
        snapshot: &Snapshot,
        found: &Path,
        exact: &Path,
        scratch: &Path,
    ) -> anyhow::Result<(Option<PathBuf>, u64)> {
        if !self.stage.is_file() {
            return Ok((None, 0));
        }
        // Sorts both lists of pairs by hash to find the near pairs, then sorts these by their position in the file.
        let mut by_name: Sorter<[u64; 4]> = Sorter::new(scratch, self.work.memory / 4);
        let push = |sorter: &mut Sorter<[u64; 4]>, pair: u128, place: u64| {
            sorter.push([(pair >> 64) as u64, pair as u64, place, 0])
        };
        PairFiles::open(&[exact.to_owned()])?
            .for_each(|pair| Ok(push(&mut by_name, name_of(pair.a, pair.b), 0)?))?;
        let mut place = 0;
        PairFiles::open(&[found.to_owned()])?.for_each(|pair| {
            place += 1;
            Ok(push(&mut by_name, name_of(pair.a, pair.b), place)?)
        })?;
        let (mut near, mut last) = (Sorter::<u64>::new(scratch, self.work.memory / 4), None);
        by_name.finish()?.for_each(|[high, low, place, _]| -> anyhow::Result<()> {
            if place == 0 {
                last = Some((high, low));
            } else if last == Some((high, low)) {
                near.push(place)?;
            }
            Ok(())
        })?;
        // A bit set of the positions of near pairs.
        let mut is_near = vec![0_u64; place as usize / 64 + 1];
        near.finish()?.for_each(|place| -> anyhow::Result<()> {
            is_near[place as usize / 64] |= 1 << (place % 64);
            Ok(())
        })?;
        let mut out = self.stage.create(STUDIED)?;
        out.write_all(STUDIED.magic).context(CANNOT_WRITE)?;
        let mut place = 0;
        PairFiles::open(&[found.to_owned()])?.for_each(|pair| {
            place += 1;
            let Some(score) = method.score(snapshot, pair.a, pair.b, pair.score.unwrap_or_default())? else {
                return Ok(());
            };
            let near = is_near[place / 64] >> (place % 64) & 1;
            let mut line = || -> std::io::Result<()> {
                tsv::write_field(&mut out, pair.a)?;
                out.write_all(b"\t")?;
                tsv::write_field(&mut out, pair.b)?;
                writeln!(out, "\t{score}\t{near}")
            };
            line().context(CANNOT_WRITE)
        })?;
        let written = out.finish()?;
        Ok((written.path, written.bytes))
    }

    fn print_report(&self, method: StudyMethod, report: &StudyReport, scores: &Scores) -> anyhow::Result<()> {
        if self.output.json {
            return report::print_json(report);
        }
        let method = method.name();
        let mut lines = vec![format!(
            "{}, {method}: {:.2} s, index {}; exact resemblance of {} or more: {}, {:.2} s",
            counted(report.documents, "document"),
            report.method_seconds,
            report::bytes(report.index_bytes),
            report.threshold,
            counted(report.near_pairs, "pair"),
            report.exact_seconds
        )];
        if let Some(file) = &report.file {
            lines.push(format!("{}: {}", file.display(), report::bytes(report.result_bytes)));
        }
        for (band, pairs) in report.bands.iter().enumerate() {
            let all: u64 = pairs.iter().sum();
            lines.push(format!("band {band}"));
            for (place, number) in pairs.iter().enumerate() {
                let portion = *number as f64 / all.max(1) as f64;
                lines.push(format!(
                    "score {} portion: {portion:.6} number: {number}",
                    report.lowest_score + place
                ));
            }
        }
        lines.push(
            "of each score: pairs that share a band, near ones, precision, and recall from this score up"
                .into(),
        );
        lines.push("score\tpairs\tnear\tprecision\trecall".into());
        let shown = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.6}"));
        for ScoreCounts { score, pairs, near, precision, recall } in &report.scores {
            lines.push(format!("{score}\t{pairs}\t{near}\t{}\t{}", shown(*precision), shown(*recall)));
        }
        if scores.capped_buckets > 0 {
            lines.push(format!(
                "note: {} of more than {MAX_BUCKET} different members: only neighbours were compared in the tables of bands",
                counted(scores.capped_buckets, "bucket")
            ));
        }
        report::print_lines(&lines)
    }
}

const CANNOT_WRITE: &str = "cannot write the pairs";

/// Returns a hash of the keys of a pair.
fn name_of(a: &[u8], b: &[u8]) -> u128 {
    let mut bytes = Vec::with_capacity(8 + a.len() + b.len());
    bytes.extend_from_slice(&(a.len() as u64).to_le_bytes());
    bytes.extend_from_slice(a);
    bytes.extend_from_slice(b);
    xxh3_128(&bytes)
}
