//! `twindex dedup`: finds and removes near-duplicate documents. [`twindex_corpus::Dedup`] does the work and declares the
//! options; this file prints the summary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use twindex_corpus::page::quoted;
use twindex_corpus::{
    Dedup as Job, Fingerprints, HistoryCost, HistoryKind, Near, Reading, RemovedKinds, Report, Resources,
    Results, Rule, Scope, TextOptions,
};

use crate::interrupt::on_signal;
use crate::options::{Output, use_threads};
use crate::progress::Watching;
use crate::report::{self, count, counted};
use crate::settings_args::Options;

/// Options of `dedup`.
#[derive(Args)]
#[command(
    override_usage = "twindex dedup [OPTIONS] --out <OUT> [INPUT]...",
    after_long_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --near 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    twindex dedup today.jsonl --against yesterday -o today\n  \
    twindex dedup large.jsonl -o deduped --resume   # the same again after a kill\n  \
    twindex dedup images.parquet --fingerprint-field phash --near within:4 -o deduped\n  \
    twindex dedup --job deduped/run.json -o again   # the same run again\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/report.html   what was found, as one page without other files\n\
    OUT/pairs.tsv     document, kept, resemblance, intersection, union: each document that goes, with the one that is\n\
                      kept for it; sorted; if --keep is repeated, also decided: the rule that preferred it\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input and in its form: kept.csv, .tsv, .parquet, .wet,\n\
                      .warc of such inputs, one for each header or set of columns; with --compress, kept.jsonl.zst\n\
    OUT/annotated.*   with --also annotated: all documents, in the same forms, with what was decided about each\n\
    OUT/against.tsv   key, other, resemblance, ...: with --against, the documents that were dropped for it\n    \
    OUT/contained.tsv key, in, containment, ...: with --against and --near containment, the earlier documents that stand\n    \
                      in a later one that stays\n    \
    OUT/hosts.tsv     where keys, or the fields of --url-field, are URLs: pages of each host, and those near another page,\n    \
                      one of the host, one of another; OUT/mirrors.tsv has each two hosts with near pages, and shares\n    \
    OUT/boilerplate   with --without-boilerplate: the list of spans that did not count, for --against OUT, `stream`, `query`\n\
    OUT/revisits.warc with --also revisits: what of a web archive was the same as a kept page\n    \
    OUT/run.json      the settings, by which `twindex why OUT KEY` reads the documents again, and --job runs them again\n    \
    OUT/index         with --index kept: the index of the kept ones, for `query`, `stream`, `stats`, and --against OUT\n\n\
    A run that is killed leaves its folder, `.twindex-run-XXXX` beside OUT, which the next run there removes; with\n\
    --resume it leaves `.OUT.twindex-resume`, by which the same command continues."
)]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    results: Options<Results>,
    #[command(flatten)]
    reading: Options<Reading>,
    #[command(flatten)]
    fingerprints: Options<Fingerprints>,
    #[command(flatten)]
    rule: Options<Rule>,
    #[command(flatten)]
    scope: Options<Scope>,
    #[command(flatten)]
    text: Options<TextOptions>,
    #[command(flatten)]
    resources: Options<Resources>,
    /// Take the settings from FILE; options given here replace them
    ///
    /// FILE is run.json of an earlier run, or what --print-job printed.
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,
    /// Print the settings as a file for --job, and end
    #[arg(long)]
    print_job: bool,
    #[command(flatten)]
    output: Output,
}

impl DedupArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let job = self.job()?;
        if self.print_job {
            report::print_lines(&[job.to_json()])?;
            return Ok(ExitCode::SUCCESS);
        }
        use_threads(job.resources.threads)?;
        if !self.output.quiet {
            on_signal(left(&job));
        }
        let report = job.run_watched(&Watching { quiet: self.output.quiet })?;
        report::print(&self.output, &report, || summary(&job, &report))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the job: the settings of the file of `--job`, overridden by the given options.
    fn job(&self) -> anyhow::Result<Job> {
        let mut job = self.job.as_deref().map_or_else(|| Ok(Job::default()), Job::of_file)?;
        self.results.apply(&mut job.results);
        self.reading.apply(&mut job.reading);
        self.rule.apply(&mut job.rule);
        self.scope.apply(&mut job.scope);
        self.text.apply(&mut job.text);
        self.fingerprints.apply(&mut job.fingerprints);
        self.resources.apply(&mut job.resources);
        Ok(job)
    }
}

/// Returns the message for a run that a signal ends: what it leaves, and how to continue.
fn left(job: &Job) -> String {
    let out = job.results.out.display();
    if job.results.resume {
        return format!(
            "stopped; the same command continues from the journal beside {out}, and --force starts again"
        );
    }
    format!(
        "stopped; nothing of this run is left, and {out} is as it was. With --resume, a run continues after a stop"
    )
}

/// Formats the summary as lines of text: the result, its reasons, what is unusual, and what to do next.
fn summary(job: &Job, report: &Report) -> Vec<String> {
    let mut lines = vec![result(job, report)];
    lines.extend(kinds(job, report));
    lines.extend(report.boilerplate.as_ref().map(without_spans));
    if let Some(contained) = report.contained {
        lines.push(format!(
            "  contained  {:>11}  earlier documents that stand in a later one that stays (contained.tsv)",
            count(contained)
        ));
    }
    if let (Some(values), Some(field)) = (report.inside_values, &job.scope.inside) {
        let values_are = if values == 1 { "value" } else { "values" };
        lines.push(format!(
            "  inside     {:>11}  {values_are} of {field}: documents were compared inside each",
            count(values)
        ));
    }
    lines.push(format!(
        "  clusters   {:>11}  of two documents or more; the largest has {}",
        count(report.clusters),
        count(report.largest_cluster)
    ));
    lines.extend(report.revisits_written.map(|revisits| {
        format!(
            "  revisits   {:>11}  records for payloads that are those of a kept page (revisits.warc); {} more that go have none",
            count(revisits.records),
            count(revisits.left_out)
        )
    }));
    lines.extend(report.hosts.as_ref().map(of_hosts));
    let remarks = remarks(job, report);
    lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
    let index = if job.writes_index() { ", index" } else { "" };
    let against = match (job.scope.against.is_empty(), report.contained) {
        (true, _) => "",
        (false, None) => ", against.tsv",
        (false, Some(_)) => ", against.tsv, contained.tsv",
    };
    let kept: Vec<&str> =
        report.kept_files.iter().chain(&report.annotated_files).map(String::as_str).collect();
    let kept = kept.join(", ");
    let out = job.results.out.display();
    lines.push(format!("{out}: pairs.tsv, clusters.tsv, {kept}{against}, report.html{index}"));
    let in_out = |name: &str| quoted(&job.results.out.join(name).to_string_lossy());
    lines.push(format!("open {}", in_out("report.html")));
    lines.extend(
        (report.removed > 0).then(|| format!("twindex why {} KEY", in_out("").trim_end_matches('/'))),
    );
    lines
}

/// Formats the result in one line.
fn result(job: &Job, report: &Report) -> String {
    let input = &report.input;
    let share = report.removed as f64 * 100.0 / input.documents.max(1) as f64;
    let (noun, texts) = if job.brings_fingerprints() {
        ("fingerprint", String::new())
    } else {
        ("document", format!(", {} of text", report::bytes_of(report.removed_text_bytes, input.text_bytes)))
    };
    format!(
        "{} of {} removed ({share:.1} %){texts}; {} kept, in {:.1} s",
        count(report.removed),
        counted(input.documents, noun),
        count(report.kept),
        report.seconds
    )
}

/// Formats the numbers of removed documents by the difference to the documents that are kept for them.
fn kinds(job: &Job, report: &Report) -> Vec<String> {
    let RemovedKinds { identical, same_words, near, .. } = report.removed_kinds;
    let mut lines = Vec::new();
    if let Some(dropped) = report.dropped {
        let against: Vec<String> =
            report.histories.iter().map(|history| history.path.display().to_string()).collect();
        lines.push(format!(
            "  dropped    {:>11}  near one of {}, before the others were compared",
            count(dropped),
            against.join(", ")
        ));
    }
    let equal = match (job.brings_fingerprints(), job.near() == Near::Equal && job.text.normalises()) {
        (true, _) => "with the fingerprint of the kept one",
        (false, true) => "equal to the kept one after normalisation",
        (false, false) => "identical to the kept one, byte for byte",
    };
    lines.push(format!("  identical  {:>11}  {equal}", count(identical)));
    lines.extend((same_words > 0).then(|| same_words_line(report)));
    let measure = match job.near() {
        Near::Resemblance(threshold) => format!("with a resemblance of {threshold} or more, counted exactly"),
        Near::Containment(threshold) => format!("with a containment of {threshold} or more, counted exactly"),
        Near::Within(within) => format!("with fingerprints that differ in {within} bits or fewer"),
        Near::Equal => return lines,
    };
    lines.push(format!("  near       {:>11}  {measure}", count(near)));
    lines
}

/// Formats the number of removed documents with the words of the kept ones, and how to compare more than words.
fn same_words_line(report: &Report) -> String {
    let RemovedKinds { same_words, same_words_read, same_words_in_code, .. } = report.removed_kinds;
    let in_code = match (same_words_in_code, same_words_read == same_words) {
        (0, _) => String::new(),
        (code, true) => format!(", {} in a line of code", count(code)),
        (code, false) => {
            format!(", {} of {} read again in a line of code", count(code), count(same_words_read))
        }
    };
    let advice =
        if report.ignored == "case or symbols" { "; --tokens words-symbols compares symbols" } else { "" };
    format!("  symbols    {:>11}  that differ only in {}{in_code}{advice}", count(same_words), report.ignored)
}

/// Formats the statistics of the ignored boilerplate spans.
fn without_spans(found: &twindex_corpus::LeftOutReport) -> String {
    format!(
        "  left out   {:>11}  words, in {}: {} of {} words that more than {} share; {} no other words",
        count(found.words_left_out),
        counted(found.documents, "document"),
        counted(found.spans, "span"),
        count(found.words.into()),
        counted(found.more_than.into(), "document"),
        match found.documents_without_words {
            0 => "none has".to_owned(),
            1 => "1 has".to_owned(),
            some => format!("{} have", count(some)),
        }
    )
}

/// Formats the number of duplicates for each host.
fn of_hosts(hosts: &twindex_corpus::Hosts) -> String {
    format!(
        "  hosts      {:>11}  of {} domains; {} duplicates of a page of the same host, {} of the same domain, {} of another",
        count(hosts.hosts),
        count(hosts.domains),
        count(hosts.duplicates_within_hosts),
        count(hosts.duplicates_within_domains),
        count(hosts.duplicates_across_domains)
    )
}

/// Returns warnings and hints for the user, to be printed after the summary.
fn remarks(job: &Job, report: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    if job.near() != Near::Equal {
        remarks.extend(report::empty_remark(report.empty, &report.input));
    }
    let is_by_index = report.histories.iter().any(|history| history.kind == HistoryKind::Index);
    // Advice only if reading the history again costs more than reading the new documents.
    let cost = report.history_cost.as_ref();
    let cost = cost.filter(|cost| !is_by_index && cost.documents > report.input.documents);
    remarks.extend(cost.map(of_history));
    remarks.extend(report.input.remarks());
    remarks
}

/// Formats the cost of a history that was read as texts, and of the other way.
fn of_history(cost: &HistoryCost) -> String {
    let documents = count(cost.documents);
    match cost.other_bytes {
        Some(bytes) => format!(
            "the {documents} earlier texts were read again; with --index kept, the earlier run would have stored an index \
             of about {} (an estimate) that is queried instead",
            report::bytes(bytes)
        ),
        None => format!("the {documents} earlier texts were read again: {}", cost.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_run_names_the_way_to_continue_it() {
        let mut job = Job::new(["in.jsonl"], "out");
        assert!(left(&job).contains("nothing of this run is left, and out is as it was"));
        job.results.resume = true;
        assert!(left(&job).contains("the same command continues from the journal beside out"));
    }
}
