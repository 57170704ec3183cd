//! Collects what the page about a run shows. Reads a few texts again, one pair at a time.

use std::fmt::Write;

use twindex::Params;
use twindex::params::{Shingling, Stemming, StopWords, Tokens};

use crate::results::missed::{BELOW, Missed};
use crate::results::page::commands::{quoted, why};
use crate::results::page::differing::{Named, shortened, texts_side_by_side};
use crate::results::page::run::{RunPage, ShownGroup, ShownMissed, ShownPair};
use crate::results::sources::Sources;
use crate::results::survey::{DrawnPair, LINE_MAX, Survey};
use crate::rule::clusters::Clusters;
use crate::rule::score::{Score, ScoreKind};
use crate::settings::declared::{AnySettings, spelled};
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::value::Kind;
use crate::stored::corpus::Corpus;
use crate::stored::lines::LineReader;

/// Number of clusters that are shown.
const GROUPS: usize = 10;
/// Number of clusters of short texts that are shown, and the number of tokens from which a text is not short.
const SHORT: (usize, u64) = (5, 10);
/// Maximum number of characters shown of the start of a text.
const START: usize = 200;
/// The role of a removed document.
const REMOVED: &str = "removed";
/// Settings that change no result, or only where it is written.
const NO_RESULT: [&str; 6] = ["out", "force", "resume", "index", "memory", "threads"];

/// Returns what the page shows. `input` are the numbers of documents and of bytes of text that were read.
pub(crate) fn collect(
    job: &Dedup,
    params: &Params,
    corpus: &Corpus,
    clusters: &Clusters,
    survey: Survey,
    input: (u64, u64),
) -> anyhow::Result<RunPage> {
    let below = match job.near() {
        Near::Resemblance(threshold) => Some((threshold, Missed::of(corpus, clusters, threshold)?)),
        _ => None,
    };
    let mut reading = Reading {
        job,
        corpus,
        kind: survey.scores.kind(),
        removed: corpus.reading(),
        kept: corpus.reading(),
    };
    let headings = match job.near() {
        Near::Within(_) => ["As many bits as may differ", "Fewer bits", "The same fingerprint"],
        _ => ["Just above the threshold", "In the middle", "The same words, in other bytes"],
    };
    let mut pairs = Vec::new();
    for (heading, drawn) in headings.into_iter().zip([&survey.edge, &survey.middle, &survey.same]) {
        pairs.push((
            heading,
            drawn.iter().map(|pair| reading.pair(pair, REMOVED)).collect::<anyhow::Result<_>>()?,
        ));
    }
    let missed = below.map(|(threshold, missed)| reading.missed(threshold, &missed)).transpose()?;
    let tokens = |kept: u32| corpus.grouped.group(kept).tokens;
    let has_tokens = !job.brings_fingerprints();
    let large = clusters.largest(GROUPS, |kept| !has_tokens || tokens(kept) >= SHORT.1);
    let short = clusters.largest(SHORT.0, |kept| has_tokens && tokens(kept) < SHORT.1);
    let mut groups = |of: Vec<u32>| -> anyhow::Result<Vec<ShownGroup>> {
        of.into_iter().map(|kept| reading.group(clusters, kept)).collect()
    };
    let (groups, short_groups) = (groups(large)?, groups(short)?);
    let changed: Vec<_> = job
        .settings()
        .into_iter()
        .flat_map(AnySettings::changed)
        .filter(|(name, ..)| !NO_RESULT.contains(name))
        .collect();
    Ok(RunPage {
        command: command(&changed),
        near: near_in_words(job),
        ignored: ignored(&params.shingling),
        dropped_by_tokens: params.shingling.tokens.dropped().map(|dropped| {
            format!("With --tokens {}, no difference is made by {dropped}", params.shingling.tokens)
        }),
        noun: if job.brings_fingerprints() { "fingerprints" } else { "documents" },
        documents: input.0,
        kept: clusters.count,
        unique: clusters.of_one(),
        text_bytes: if has_tokens { input.1 } else { 0 },
        removed_text_bytes: survey.text_bytes,
        dropped: (!job.scope.against.is_empty())
            .then(|| corpus.dropped.len() as u64 + clusters.dropped(&corpus.grouped)),
        kinds: survey.kinds,
        nearest: survey.nearest,
        threshold: job.near().threshold(),
        scores: survey.scores,
        pairs,
        hosts: None,
        missed,
        commands_below: commands_below(job),
        groups,
        short_groups,
        sizes: clusters.by_size(),
        sources: Sources::of(job, corpus, clusters),
        settings: changed.into_iter().map(|(name, _, values)| (name, values)).collect(),
    })
}

/// Reads the texts of documents again.
struct Reading<'r> {
    job: &'r Dedup,
    corpus: &'r Corpus,
    kind: ScoreKind,
    removed: LineReader<'r>,
    kept: LineReader<'r>,
}

impl Reading<'_> {
    /// Returns pairs of kept documents that are a little less near than `threshold`.
    fn missed(&mut self, threshold: f64, missed: &Missed) -> anyhow::Result<ShownMissed> {
        let pairs = missed.drawn.iter().map(|pair| self.pair(pair, "kept, too"));
        let pairs = pairs.collect::<anyhow::Result<_>>()?;
        let range = format!("{:.2} to {threshold}", threshold - BELOW);
        Ok(ShownMissed { range, sample: missed.sample, found: missed.found, pairs })
    }

    /// Returns a document, whose role is `role`, beside a kept document.
    fn pair(&mut self, pair: &DrawnPair, role: &str) -> anyhow::Result<ShownPair> {
        let corpus = self.corpus;
        let texts = (corpus.text(pair.kept, &mut self.kept)?, corpus.text(pair.removed, &mut self.removed)?);
        let keys = [pair.kept, pair.removed].map(|document| corpus.keys.shown(document));
        let of = [Named { role: "kept", key: &keys[0] }, Named { role, key: &keys[1] }];
        Ok(ShownPair {
            score: score_in_words(self.kind.unpack(pair.score), self.kind),
            sides: texts_side_by_side(of, &texts.0, &texts.1),
            why: why(&self.job.results.out, corpus.keys.get(pair.removed)).filter(|_| role == REMOVED),
        })
    }

    /// Returns the cluster of a kept document.
    fn group(&mut self, clusters: &Clusters, kept: u32) -> anyhow::Result<ShownGroup> {
        let corpus = self.corpus;
        let start = if corpus.line_length(kept) <= LINE_MAX {
            let text = corpus.text(kept, &mut self.kept)?;
            shortened(&text.split_whitespace().take(START).collect::<Vec<_>>().join(" "), START)
        } else {
            String::new()
        };
        Ok(ShownGroup {
            documents: clusters.size(kept).into(),
            text_bytes: corpus.text_bytes(kept),
            key: corpus.keys.shown(kept),
            start,
        })
    }
}

fn score_in_words(score: Score, kind: ScoreKind) -> String {
    match (score, kind) {
        (Score::Distance(1), _) => "1 bit differs".to_owned(),
        (Score::Distance(distance), _) => format!("{distance} bits differ"),
        (Score::Resemblance { intersection, union }, ScoreKind::Containment) => format!(
            "containment {:.3}: {intersection} of the {union} shingles of the removed one are in the kept one",
            f64::from(intersection) / f64::from(union.max(1))
        ),
        (Score::Resemblance { intersection, union }, _) => format!(
            "resemblance {:.3}: {intersection} of {union} shingles are in both",
            f64::from(intersection) / f64::from(union.max(1))
        ),
    }
}

/// Returns when two documents are near, in words.
fn near_in_words(job: &Dedup) -> String {
    let near = match job.near() {
        Near::Within(within) => format!("fingerprints that differ in {within} bits or fewer"),
        Near::Containment(share) => {
            format!(
                "documents that a larger one contains to a share of {share} or more, counted exactly in shingles"
            )
        }
        Near::Resemblance(threshold) => {
            format!("documents with a resemblance of {threshold} or more, counted exactly in shingles")
        }
        Near::Equal => "documents with equal texts".to_owned(),
    };
    match &job.scope.inside {
        Some(field) => format!("{near}, and the same value of {field}"),
        None => near,
    }
}

/// Returns the differences that documents with the same tokens may have, in words.
pub(crate) fn ignored(shingling: &Shingling) -> &'static str {
    let ignores_words = shingling.stop_words != StopWords::default() || shingling.stemming != Stemming::None;
    if shingling.normalises() || shingling.boilerplate.is_some() || ignores_words {
        return "what is not compared";
    }
    match shingling.tokens {
        Tokens::WordsSymbols => "case or white space",
        Tokens::Raw => "white space",
        Tokens::Features => "the order of features",
        _ => "case or symbols",
    }
}

/// Returns the command of the run.
fn command(changed: &[(&'static str, Kind, Vec<String>)]) -> String {
    let mut command = "twindex dedup".to_owned();
    let inputs = changed.iter().filter(|(name, ..)| *name == "inputs").flat_map(|(.., values)| values);
    for input in inputs {
        command.push(' ');
        command.push_str(&quoted(input));
    }
    for (name, kind, values) in changed.iter().filter(|(name, ..)| *name != "inputs") {
        if *kind == Kind::Flag {
            command.push(' ');
            command.push_str(&spelled(name));
        }
        for value in values.iter().filter(|_| *kind != Kind::Flag) {
            let _ = write!(command, " {} {}", spelled(name), quoted(value)); // memory does not fail
        }
    }
    command
}

/// Returns the commands that list kept documents with a score a little below the threshold; `None` if there is no
/// threshold.
fn commands_below(job: &Dedup) -> Option<[String; 2]> {
    let lower = match job.near() {
        Near::Resemblance(threshold) => format!("{:.2}", (threshold - BELOW).max(threshold / 2.0)),
        Near::Within(within) => Near::Within((within + 2).min(10)).to_string(),
        Near::Containment(_) | Near::Equal => return None,
    };
    let out = job.results.out.to_string_lossy();
    let [run, indexed, index] =
        ["/run.json", "-indexed", "-indexed/index"].map(|end| quoted(&format!("{out}{end}")));
    Some([
        format!("twindex dedup --job {run} --index kept -o {indexed}"),
        format!("twindex pairs {index} --near {lower}"),
    ])
}
