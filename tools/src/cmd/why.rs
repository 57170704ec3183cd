//! `twindex why`: explains why a document was removed or kept. [`twindex_corpus::Why`] finds the explanation; this file
//! has the options and prints it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use twindex_corpus::input::Documents;
use twindex_corpus::page;
use twindex_corpus::{DocumentStatus, Explanation, Hunk, Reason, Why as WhyQuery, WordDiff, WordOrigin, tsv};

use crate::options::{InputArgs, Output};
use crate::progress::Watching;
use crate::report::{self, count, counted};

/// Options of `why`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex why deduped page-17\n  \
    twindex why deduped page-17 --all --json\n  \
    twindex why deduped page-17 --html page.html\n  \
    twindex why deduped page-17 pages.jsonl\n\n\
    Finds the document in OUT/clusters.tsv and OUT/pairs.tsv, or OUT/against.tsv, reads its text and that of the kept one\n\
    again, counts again, and says whether the numbers are those of the table. Words that stand in the kept document only\n\
    are shown as [-so-], words that stand in the other one only as {+so+}. Control characters are shown as \\u{1b}.\n\n\
    Ends with 1 if the numbers are not those of the table: an input changed since, or OUT did. A text that is gone is\n    \
    reported. A KEY that OUT does not have is an error.")]
pub(crate) struct WhyArgs {
    /// The folder that `dedup` made
    out: PathBuf,
    /// Key of the document
    key: String,
    /// KEY is escaped as in the tables of OUT: \t, \n, \r, \\, \xNN
    #[arg(long)]
    escaped: bool,
    /// Show all differences in full length and all keys, not only the first ones
    #[arg(long)]
    all: bool,
    /// Number of words to show before and after a difference
    #[arg(long, value_name = "N", default_value_t = 5)]
    context: u16,
    /// Write a page of HTML with the two texts side by side to this file, instead of text
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// INPUT and its options are needed only if OUT/run.json does not name the inputs, or if they have been moved
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: Output,
}

impl WhyArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let key = if self.escaped {
            let key = tsv::unescape(self.key.as_bytes());
            key.with_context(|| format!("the key `{}`", self.key.escape_debug()))?.into_owned()
        } else {
            self.key.clone().into_bytes()
        };
        let mut question = WhyQuery::new(&self.out, key);
        question.inputs.clone_from(&self.input.inputs);
        let is_given = self.input.first_given().is_some();
        question.input = is_given.then(|| self.input.options()).transpose()?;
        if let (Some(options), false) = (&question.input, question.inputs.is_empty()) {
            Documents::check_options(&question.inputs, options)?;
        }
        question.context = self.context.into();
        if self.all {
            (question.hunks, question.members) = (None, usize::MAX);
        }
        if let Some(html) = &self.html {
            page::check(html, std::iter::once(&self.out).chain(&self.input.inputs))?;
        }
        let explanation = question.explain(&Watching { quiet: self.output.quiet })?;
        if let Some(html) = &self.html {
            write_page(html, &explanation)?;
            if !self.output.quiet {
                report::print_lines(&[format!("{}: the page about {}", html.display(), explanation.key)])?;
            }
        } else if self.output.json {
            report::print_json(&explanation)?;
        } else {
            let lines: Vec<String> = lines(&explanation).iter().map(|line| harmless(line)).collect();
            report::print_lines(&lines)?;
        }
        // Reports a failure in the exit code if the scores in OUT differ from the recomputed scores.
        Ok(if explanation.agrees == Some(false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Writes the explanation as a page.
fn write_page(path: &Path, explanation: &Explanation) -> anyhow::Result<()> {
    let without_words = Explanation { differences: None, ..explanation.clone() };
    let mut sentences = lines(&without_words);
    let title = sentences.remove(0);
    let kept = explanation.kept.as_deref().unwrap_or_default();
    let differences = explanation.differences.as_ref().filter(|differences| differences.hunks_in_all > 0);
    let differences = differences.map(|differences| (differences, [kept, &explanation.key]));
    page::write_decision(path, &title, &sentences, differences)
}

/// Replaces control characters, and characters that change the direction of text, by their code points, so that the line
/// cannot manipulate a terminal.
fn harmless(line: &str) -> String {
    let is_harmful = |character: char| {
        character.is_control()
            || matches!(character,
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    line.chars().fold(String::with_capacity(line.len()), |mut shown, character| {
        if is_harmful(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
        shown
    })
}

/// Formats the explanation as lines of text.
fn lines(explanation: &Explanation) -> Vec<String> {
    let Explanation { key, kept, listed, .. } = explanation;
    let kept = kept.as_deref().unwrap_or_default();
    let place = format!("{}:{}", listed.file.display(), listed.line);
    let mut lines = Vec::new();
    match explanation.fate {
        DocumentStatus::Kept => {
            lines.push(format!("{key} stays ({place})"));
            lines.push(match explanation.removed_for_it.unwrap_or(0) {
                0 => "  removed    no document goes for it".to_owned(),
                1 => "  removed    1 document goes for it:".to_owned(),
                many => format!("  removed    {} documents go for it:", count(many)),
            });
            lines.extend(explanation.others.iter().map(|other| format!("    {other}")));
            let rest = explanation.removed_for_it.unwrap_or(0) - explanation.others.len() as u64;
            if rest > 0 {
                lines.push(format!("    and {} more (--all shows them)", count(rest)));
            }
        }
        DocumentStatus::Removed => lines.push(format!("{key} goes for {kept}, which is kept")),
        DocumentStatus::Dropped => {
            lines.push(format!("{key} goes for {kept}, which an earlier run kept (--against)"));
        }
    }
    if let Some(reason) = &explanation.reason {
        lines.push(format!("  reason     {} ({place})", reason_in_words(reason, explanation)));
    }
    if explanation.fate != DocumentStatus::Kept && !explanation.others.is_empty() {
        lines.push(format!("  pairs      {} is near {}", key, explanation.others.join(", ")));
    }
    if let Some(agrees) = explanation.agrees {
        let numbers = |columns: &[(String, String)]| {
            let columns: Vec<String> =
                columns.iter().map(|(name, value)| format!("{name} {value}")).collect();
            columns.join(", ")
        };
        let again = explanation.recomputed.as_deref().map(numbers).unwrap_or_default();
        lines.push(if agrees {
            format!("  again      {again}: as in the table")
        } else {
            format!("  again      {again}: NOT as in the table, which has {}", numbers(&listed.columns))
        });
    }
    for field in &explanation.fields {
        let of_kept = field.kept.as_deref().map_or_else(String::new, |value| format!(", {value} in {kept}"));
        lines
            .push(format!("  field      {} ({}): {} in {key}{of_kept}", field.name, field.option, field.key));
    }
    if let Some(sets) = explanation.sets {
        lines.push(format!(
            "  shingles   {} in {key}, {} in {kept}, {} in both; {} in {key} only, {} in {kept} only",
            count(sets.key as u64),
            count(sets.kept as u64),
            count(sets.both as u64),
            count((sets.key - sets.both) as u64),
            count((sets.kept - sets.both) as u64),
        ));
    }
    for (what, place) in [(key.as_str(), &explanation.place), (kept, &explanation.place_of_kept)] {
        if let Some(place) = place {
            lines.push(format!("  text       {place} ({what})"));
        }
    }
    lines.extend(explanation.notes.iter().map(|note| format!("  note       {note}")));
    if let Some(differences) = &explanation.differences {
        add_differences(&mut lines, differences, key, kept);
    }
    lines
}

fn reason_in_words(reason: &Reason, explanation: &Explanation) -> String {
    let at_least = |threshold: &Option<f64>| match threshold {
        Some(threshold) => format!("at least {threshold}"),
        None => "the threshold is not recorded".to_owned(),
    };
    match reason {
        Reason::Identical { normalised: false } => "the texts are identical, byte for byte".to_owned(),
        Reason::Identical { normalised: true } => {
            "the texts are equal after --normal-form and --fold".to_owned()
        }
        Reason::Counted { intersection, union, threshold } => {
            let listed = &explanation.listed.columns;
            let value = listed.first().map_or("", |(_, value)| value.as_str());
            format!(
                "resemblance {} / {} = {value}, {}: shingles of both by shingles of either, counted",
                count(*intersection),
                count(*union),
                at_least(threshold)
            )
        }
        Reason::Contained { intersection, shingles, threshold } => {
            let listed = &explanation.listed.columns;
            let value = listed.first().map_or("", |(_, value)| value.as_str());
            format!(
                "containment {} / {} = {value}, {}: shingles of both by its own, counted",
                count(*intersection),
                count(*shingles),
                at_least(threshold)
            )
        }
        Reason::Distance { bits, within } => format!(
            "the fingerprints differ in {}{}",
            counted(*bits, "bit"),
            within.map_or_else(String::new, |within| format!(", at most {within}"))
        ),
    }
}

fn add_differences(lines: &mut Vec<String>, differences: &WordDiff, key: &str, kept: &str) {
    let WordDiff { only_in_kept, only_in_key, is_least, hunks, hunks_in_all } = differences;
    if *hunks_in_all == 0 {
        return;
    }
    lines.push(format!(
        "  words      {} in {kept} only, [-so-]; {} in {key} only, {{+so+}}",
        count(*only_in_kept as u64),
        count(*only_in_key as u64)
    ));
    if !is_least {
        lines.push(
            "  note       the texts differ in many words: there may be fewer differences than these"
                .to_owned(),
        );
    }
    for hunk in hunks {
        lines.push(String::new());
        lines.push(format!("  @@ word {} of {kept}, word {} of {key}", hunk.word_of_kept, hunk.word_of_key));
        lines.push(format!("  {}", in_one_line(hunk)));
    }
    let rest = hunks_in_all - hunks.len();
    if rest > 0 {
        lines.push(String::new());
        let more = if rest == 1 { "1 more place differs" } else { "more places differ" };
        let number = if rest == 1 { String::new() } else { format!("{} ", count(rest as u64)) };
        lines.push(format!("  {number}{more} (--all shows all)"));
    }
}

/// Formats the words of a hunk in one line, with marks for removed and added words.
fn in_one_line(hunk: &Hunk) -> String {
    let runs = hunk.runs.iter().map(|run| {
        let omitted = match run.omitted {
            0 => String::new(),
            omitted => format!(" ... {} more", counted(omitted as u64, "word")),
        };
        match run.stands {
            WordOrigin::InBoth => run.text.clone(),
            WordOrigin::InKept => format!("[-{}{omitted}-]", run.text),
            WordOrigin::InKey => format!("{{+{}{omitted}+}}", run.text),
        }
    });
    runs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_shown_as_code_points() {
        assert_eq!(harmless("a\u{1b}[31mb\u{202e}c\tü"), "a\\u{1b}[31mb\\u{202e}c\\u{9}ü");
    }
}
