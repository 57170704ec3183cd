//! `twindex urls`: learns rules for URLs from near pages, and prints the normal forms of URLs.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, Parser};
use serde::Serialize;
use twindex::Index;
use twindex_corpus::settings::{Near, Rule};
use twindex_corpus::urls::{self, Learned, Rules};

use super::clusters::ClustersArgs;
use crate::differs::NearOfUrls;
use crate::interrupt::RemovedOnSignal;
use crate::options::{Output, ResourceArgs, Usage, VerifyChoice};
use crate::progress::Watching;
use crate::report::{self, Costs, Stopwatch, count, counted};
use crate::settings_args::Options;
use crate::stage::{ResultKind, StageArgs};

const RULES: ResultKind =
    ResultKind { noun: "a table of rules", suffix: "rules", magic: b"host\ttemplate\tparts\t" };
/// Maximum length in bytes of a line on standard input. A longer line is an error.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Options of `urls`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup crawl.wet.gz -o deduped\n  \
    twindex urls deduped -o rules.tsv\n  \
    twindex urls pages.twx --near 0.9 -o rules.tsv\n  \
    twindex urls --apply rules.tsv < urls.txt > normal.txt\n\n\
    The keys of the documents are URLs; with `dedup --url-field` they are those of the field. rules.tsv has a line for \
    each rule: host, template, parts (the values of each *), example, pages (URLs that it matches), forms (their normal \
    forms), near_forms (those of several URLs, all near), duplicate_rate (the share of pages with another page as their leader) \
    and confidence (the lower end of the 95 % interval of the share of near forms). In a template * is a part that does \
    not change the page, {} any run of letters and digits, {_} any segment, {...} any further ones.\n\n\
    A rule is given only if no two pages that are not near get the same normal form by the rules. The normal form of a URL \
    has * in the place of a part of the path, and no parameters that a rule leaves out: it is a name of the page, and may \
    be no address that answers.")]
pub(crate) struct UrlsArgs {
    /// The folder that `dedup` made, an index whose keys are URLs, or a table written by `clusters --all`
    #[arg(value_name = "OUT|INDEX", required_unless_present = "apply", conflicts_with = "apply")]
    input: Option<PathBuf>,
    /// Print the normal form of each URL on standard input according to these rules, one line for each input line; lines
    /// that are not URLs are printed unchanged
    #[arg(long, value_name = "RULES")]
    apply: Option<PathBuf>,
    #[command(flatten)]
    rule: Options<Rule, NearOfUrls>,
    /// Minimum number of normal forms, each of several near URLs, that support a rule with {} or an alias; 2 or more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..))]
    min_forms: u16,
    /// Minimum number of URLs of one page that support a rule for this page alone; 2 or more
    #[arg(long = "min-urls", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..))]
    min_of_a_page: u16,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// Parser for the command line of `clusters`, which this verb runs as a step.
#[derive(Parser)]
struct ClustersLine {
    #[command(flatten)]
    clusters: ClustersArgs,
}

/// Fields of `--json`.
#[derive(Serialize)]
struct UrlsReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    rules: usize,
    aliases: usize,
    #[serde(flatten)]
    learned: Learned,
    #[serde(flatten)]
    costs: Costs,
}

/// A line of `--apply --json`.
#[derive(Serialize)]
struct Normalised<'u> {
    /// The URL as read, with invalid UTF-8 replaced.
    url: &'u str,
    normal: &'u str,
}

/// The totals of `--apply --json`.
#[derive(Serialize)]
struct AppliedFigures {
    urls: u64,
    /// Number of URLs that differ from their normal form.
    changed: u64,
}

impl UrlsArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match (&self.apply, &self.input) {
            (Some(_), _) if self.rule.near.is_some() => {
                Err(Usage::new("--near is for learning rules from an index, not for --apply; leave it out")
                    .into())
            }
            (Some(rules), _) => self.apply_to_stdin(rules),
            (None, Some(input)) => self.learn(input),
            (None, None) => Err(Usage::new("name a folder of results, or an index").into()),
        }
    }

    fn learn(&self, input: &Path) -> anyhow::Result<ExitCode> {
        let watch = Stopwatch::start();
        self.stage.check(RULES, [input])?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let half_done = RemovedOnSignal::new(scratch.path());
        let is_index = input.join("CURRENT").is_file();
        let table = if is_index {
            let table = scratch.path().join("clusters.tsv");
            let near = match self.rule.near {
                None => by_resemblance(input)?,
                near => near,
            };
            clusters_of(input, &table, near, None, &self.work, &self.output)?;
            table
        } else {
            self.work.apply_threads()?;
            if self.rule.near.is_some() {
                let why = format!("--near goes with an index, and {} is none; leave it out", input.display());
                return Err(Usage::new(why).into());
            }
            input.to_owned()
        };
        let options = urls::Options { min_forms: self.min_forms.into(), min_urls: self.min_of_a_page.into() };
        let observer = Watching { quiet: self.output.quiet };
        let learned = urls::learn(&table, options, scratch.path(), self.work.memory, &observer)?;
        ensure!(
            learned.pages > 0,
            "{}: no key is a URL, http://host/..., of {}; `dedup --url-field FIELD` takes URLs from a field",
            input.display(),
            counted(learned.other_keys, "document")
        );
        drop(half_done);
        let mut out = self.stage.create_table(RULES, urls::COLUMNS, (true, false), &self.output)?;
        write!(out, "{}", learned.rules).context("cannot write the rules")?;
        let written = out.finish()?;
        let rules = learned.rules.rules();
        let (number, aliases) = (rules.len(), rules.iter().filter(|rule| rule.alias().is_some()).count());
        if self.output.json {
            report::print_json(&UrlsReport {
                file: written.path,
                rules: number,
                aliases,
                learned,
                costs: Costs::since(watch),
            })?;
        } else {
            let holds = format!(
                "{}, {} of them aliases, from {} of {}",
                counted(number as u64, "rule"),
                count(aliases as u64),
                counted(learned.pages, "page"),
                counted(learned.hosts, "host")
            );
            written.print_summary(&holds, &self.output)?;
            if learned.other_keys > 0 && !self.output.quiet {
                report::note(&format!(
                    "{} without a URL for a key: not learned from",
                    counted(learned.other_keys, "document")
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn apply_to_stdin(&self, path: &Path) -> anyhow::Result<ExitCode> {
        if self.stage.is_file() {
            let why = "--apply prints URLs on standard output; leave out --out and --into";
            return Err(Usage::new(why).into());
        }
        let shown = path.display();
        let table = std::fs::read(path).with_context(|| format!("{shown}: cannot be read"))?;
        let rules = Rules::read(&table).with_context(|| shown.to_string())?;
        let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
        let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        let (mut line, mut number) = (Vec::new(), 0_u64);
        let mut applied = AppliedFigures { urls: 0, changed: 0 };
        loop {
            line.clear();
            number += 1;
            let read = input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
            if read.context("cannot read standard input")? == 0 {
                break;
            }
            if line.len() as u64 > LINE_BYTES_MAX {
                bail!(
                    "line {number} of standard input has more than {LINE_BYTES_MAX} bytes; expected a URL a line"
                );
            }
            let end = if line.ends_with(b"\n") { line.len() - 1 } else { line.len() };
            let (url, end) = line.split_at(end);
            let normal = match std::str::from_utf8(url) {
                Ok(url) => rules.normalise(url).into_bytes(),
                Err(_) => url.to_vec(),
            };
            applied.urls += 1;
            applied.changed += u64::from(normal != url);
            let written = if self.output.json {
                let [url, normal] = [url, &normal].map(String::from_utf8_lossy);
                serde_json::to_writer(&mut out, &Normalised { url: &url, normal: &normal })?;
                out.write_all(b"\n")
            } else {
                out.write_all(&normal).and_then(|()| out.write_all(end))
            };
            written.context("cannot write to standard output")?;
        }
        if self.output.json {
            serde_json::to_writer(&mut out, &applied)?;
            out.write_all(b"\n").context("cannot write to standard output")?;
        }
        out.flush().context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns what is near by default in an index; `None` if it has no bands, for its own radius.
fn by_resemblance(index: &Path) -> anyhow::Result<Option<Near>> {
    let has_bands = Index::open(index)?.snapshot().params().minhash.is_some();
    Ok(has_bands.then(Near::default))
}

/// Runs `clusters` on all documents of an index, and writes its table to `out`.
pub(super) fn clusters_of(
    index: &Path,
    out: &Path,
    near: Option<Near>,
    verify: Option<VerifyChoice>,
    work: &ResourceArgs,
    output: &Output,
) -> anyhow::Result<()> {
    let mut line = vec!["clusters".into(), index.as_os_str().to_owned(), "--all".into()];
    line.extend(["--out".into(), out.as_os_str().to_owned()]);
    line.extend(near.map(|near| format!("--near={near}").into()));
    let mut clusters = ClustersLine::try_parse_from(line)?.clusters;
    clusters.verify = verify;
    (clusters.work, clusters.output, clusters.is_a_step) = (work.clone(), output.clone(), true);
    clusters.run().map(drop)
}
