//! Collects what the page about a run shows. Reads a few texts again, one pair at a time.

use std::fmt::Write;
use std::path::Path;

use twindex::Params;
use twindex::params::{Shingling, Stemming, StopWords, Tokens};

use crate::input::counts::Counts;
use crate::results::missed::{BELOW, Missed};
use crate::results::page::commands::{quoted, why as why_command};
use crate::results::page::differing::{Named, texts_side_by_side, unread_side_by_side};
use crate::results::page::run::{
    RunPage, ShownGroup, ShownMissed, ShownPair, beginning, distance_in_words, headings,
};
use crate::results::sources::Sources;
use crate::results::survey::{DrawnPair, Survey};
use crate::rule::against::EarlierResults;
use crate::rule::clusters::Clusters;
use crate::rule::score::{Score, ScoreKind};
use crate::settings::declared::{AnySettings, spelled};
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::rule::Weights;
use crate::settings::value::Kind;
use crate::stored::corpus::Corpus;
use crate::stored::drawn::LINE_MAX;
use crate::stored::lines::LineReader;
use crate::work::numbers::counted;

/// Number of clusters that are shown.
const GROUPS: usize = 10;
/// Number of clusters of short texts that are shown, and the number of tokens from which a text is not short.
const SHORT: (usize, u64) = (5, 10);
/// The role of a removed document.
const REMOVED: &str = "removed";
/// Settings that change no result, or only where it is written.
const NO_RESULT: [&str; 6] = ["out", "force", "resume", "index", "memory", "threads"];

/// Returns what the page shows.
pub(crate) fn collect(
    (job, params): (&Dedup, &Params),
    (corpus, past): (&Corpus, &EarlierResults),
    clusters: &Clusters,
    survey: Survey,
    input: &Counts,
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
    let headings = headings(job.near(), "The same words, in other bytes");
    let mut pairs = Vec::new();
    for (heading, drawn) in headings.into_iter().zip([&survey.edge, &survey.middle, &survey.same]) {
        pairs.push((
            heading,
            drawn.iter().map(|pair| reading.pair(pair, REMOVED)).collect::<anyhow::Result<_>>()?,
        ));
    }
    pairs.push((
        "Near a document of an earlier run",
        reading.against(past, &survey.against, input.text_bytes)?,
    ));
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
        command: command(&changed, &job.results.out),
        rule: rule_in_words(job, &params.shingling),
        ignored: ignored(&params.shingling),
        dropped_by_tokens: params
            .shingling
            .tokens
            .dropped()
            .map(|dropped| format!("--tokens {} does not compare {dropped}.", params.shingling.tokens)),
        noun: if job.brings_fingerprints() { "fingerprints" } else { "documents" },
        documents: input.documents,
        skipped_bad: input.skipped_bad,
        kept: clusters.count,
        unique: clusters.of_one(),
        text_bytes: if has_tokens { input.text_bytes } else { 0 },
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
        let pairs = missed.drawn.iter().map(|pair| self.pair(pair, "also kept"));
        let pairs = pairs.collect::<anyhow::Result<_>>()?;
        let range = format!("{:.2} to {threshold}", threshold - BELOW);
        Ok(ShownMissed { range, sample: missed.sample, found: missed.found, pairs })
    }

    /// Returns documents that were removed because of a history, each beside the document of the history. `drawn` are
    /// those whose history was read. Otherwise, the texts of the history are read again, unless they are longer than the
    /// `read` bytes of this run.
    fn against(
        &mut self,
        past: &EarlierResults,
        drawn: &[DrawnPair],
        read: u64,
    ) -> anyhow::Result<Vec<ShownPair>> {
        let corpus = self.corpus;
        let mut pairs =
            drawn.iter().map(|pair| self.pair(pair, REMOVED)).collect::<anyhow::Result<Vec<_>>>()?;
        let drawn = corpus.drawn_dropped();
        let others = drawn.iter().map(|one| Ok(corpus.dropped.near(one.number)?.0));
        let others = others.collect::<anyhow::Result<Vec<_>>>()?;
        if others.is_empty() {
            return Ok(pairs);
        }
        // The run is complete without these texts.
        let (texts, why) = match past.kept_texts(self.job, &others, read) {
            Ok(texts) => (texts, "it was not found".to_owned()),
            Err(error) => (vec![None; others.len()], format!("{error:#}")),
        };
        for ((one, other), kept) in drawn.into_iter().zip(others).zip(texts) {
            let (key, text) = (corpus.dropped.key(one.number), corpus.text_of_dropped(one)?);
            let shown = [&other[..], key].map(String::from_utf8_lossy);
            let of = [Named { role: "kept", key: &shown[0] }, Named { role: REMOVED, key: &shown[1] }];
            pairs.push(ShownPair {
                score: self.score(one.score),
                sides: match &kept {
                    Some(kept) => texts_side_by_side(of, kept, &text),
                    None => unread_side_by_side(&of, &why, [None, Some(&text)]),
                },
                why: why_command(&self.job.results.out, key),
            });
        }
        Ok(pairs)
    }

    /// Returns a document, whose role is `role`, beside a kept document.
    fn pair(&mut self, pair: &DrawnPair, role: &str) -> anyhow::Result<ShownPair> {
        let corpus = self.corpus;
        let texts = (corpus.text(pair.kept, &mut self.kept)?, corpus.text(pair.removed, &mut self.removed)?);
        let keys = [pair.kept, pair.removed].map(|document| corpus.keys.shown(document));
        let of = [Named { role: "kept", key: &keys[0] }, Named { role, key: &keys[1] }];
        Ok(ShownPair {
            score: self.score(pair.score),
            sides: texts_side_by_side(of, &texts.0, &texts.1),
            why: why_command(&self.job.results.out, corpus.keys.get(pair.removed))
                .filter(|_| role == REMOVED),
        })
    }

    /// Returns a packed score in words.
    fn score(&self, packed: u64) -> String {
        let score = self.kind.unpack(packed);
        let value = score.resemblance().map_or(1.0, |resemblance| resemblance.value());
        let units = match self.job.rule.weights {
            Weights::Distinct => "shingles",
            Weights::Frequencies | Weights::Idf => "units of weight",
        };
        match (score, self.kind) {
            (Score::Distance(distance), _) => distance_in_words(distance),
            (Score::Resemblance { intersection, union }, ScoreKind::Containment) => format!(
                "containment {value:.3}: {intersection} of the {union} {units} of the removed one are in the kept one"
            ),
            (Score::Resemblance { intersection, union }, _) => {
                format!("resemblance {value:.3}: {intersection} of {union} {units} are in both")
            }
        }
    }

    /// Returns the cluster of a kept document.
    fn group(&mut self, clusters: &Clusters, kept: u32) -> anyhow::Result<ShownGroup> {
        let corpus = self.corpus;
        let start = if corpus.line_length(kept) <= LINE_MAX {
            beginning(&corpus.text(kept, &mut self.kept)?)
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

/// Returns when a document is removed, in sentences.
fn rule_in_words(job: &Dedup, shingling: &Shingling) -> String {
    let shingle = || {
        let token = match shingling.tokens {
            Tokens::Words | Tokens::UnicodeWords => "word",
            Tokens::WordsSymbols => "word or symbol",
            Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => "character",
            Tokens::Sentences => "sentence",
            _ => return " A shingle is a feature.".to_owned(),
        };
        let widths: Vec<String> = shingling.widths.iter().map(|width| counted(width as u64, token)).collect();
        let weighted = match job.rule.weights {
            Weights::Distinct => "",
            Weights::Frequencies | Weights::Idf => ", and counts with its weight",
        };
        format!(" A shingle is a run of {}{weighted}.", widths.join(" or "))
    };
    let mut rule = match job.near() {
        Near::Within(within) => {
            format!(
                "A document is removed if its fingerprint differs from a kept one in {within} bits or fewer."
            )
        }
        Near::Containment(share) => format!(
            "A document is removed if a kept document that is not smaller has the share {share} of its shingles or more.{}",
            shingle()
        ),
        Near::Resemblance(threshold) => format!(
            "A document is removed if its resemblance to a kept document is {threshold} or more: the number of shingles in \
             both, divided by the number of shingles in either.{}",
            shingle()
        ),
        Near::Equal => "A document is removed if its text equals that of a kept document.".to_owned(),
    };
    if !matches!(job.near(), Near::Containment(_)) {
        let _ = write!(rule, " Of near documents, the first by --keep {} is kept.", job.rule.keep); // memory does not fail
    }
    if let Some(field) = &job.scope.inside {
        let _ = write!(rule, " Only documents with the same value of {field} are compared.");
    }
    rule
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
fn command(changed: &[(&'static str, Kind, Vec<String>)], out: &Path) -> String {
    let mut command = "twindex dedup".to_owned();
    let inputs = changed.iter().filter(|(name, ..)| *name == "inputs").flat_map(|(.., values)| values);
    for input in inputs {
        command.push(' ');
        command.push_str(&quoted(input));
    }
    let _ = write!(command, " -o {}", quoted(&out.to_string_lossy()));
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
        Near::Within(within) if job.searches_index() => Near::Within((within + 2).min(10)).to_string(),
        Near::Within(_) | Near::Containment(_) | Near::Equal => return None,
    };
    let out = job.results.out.to_string_lossy();
    let [run, indexed, index] =
        ["/run.json", "-indexed", "-indexed/index"].map(|end| quoted(&format!("{out}{end}")));
    Some([
        format!("twindex dedup --job {run} --index kept -o {indexed}"),
        format!("twindex pairs {index} --near {lower}"),
    ])
}
