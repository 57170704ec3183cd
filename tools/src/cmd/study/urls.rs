//! `twindex study --urls`: learns rules for URLs from near pages, and prints the normal forms of URLs.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use twindex::Index;
use twindex_corpus::settings::Near;
use twindex_corpus::urls::{self, Learned, Rules};

use super::args::StudyArgs;
use crate::cmd::groups::clusters_of;
use crate::interrupt::RemovedOnSignal;
use crate::options::Usage;
use crate::progress::Watching;
use crate::report::{self, Costs, Stopwatch, count, counted};
use crate::stage::ResultKind;
use crate::terminal;

const RULES: ResultKind =
    ResultKind { noun: "a table of rules", suffix: "rules", magic: b"host\ttemplate\tparts\t" };
/// Maximum length in bytes of a line on standard input. A longer line is an error.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The statistics that `--json` prints.
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

/// The totals that `--apply --json` prints last.
#[derive(Serialize)]
struct AppliedFigures {
    urls: u64,
    /// Number of URLs that differ from their normal form.
    changed: u64,
}

impl StudyArgs {
    pub(super) fn learn_rules(&self, input: &Path) -> anyhow::Result<ExitCode> {
        let watch = Stopwatch::start();
        self.stage.check(RULES, [input])?;
        let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
        let half_done = RemovedOnSignal::new(scratch.path());
        let is_index = input.join("CURRENT").is_file();
        let table = if is_index {
            let table = scratch.path().join("clusters.tsv");
            let near = match self.near() {
                None => by_resemblance(input)?,
                near => near,
            };
            clusters_of(input, &table, near, None, &self.work, &self.output)?;
            table
        } else {
            self.work.apply_threads()?;
            if self.near().is_some() {
                let why = format!("--near goes with an index, and {} is none; leave it out", input.display());
                return Err(Usage::new(why).into());
            }
            input.to_owned()
        };
        let options =
            urls::Options { min_forms: self.urls.min_forms.into(), min_urls: self.urls.min_urls.into() };
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

    pub(super) fn apply_rules(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let shown = path.display();
        let table = std::fs::read(path).with_context(|| format!("{shown}: cannot be read"))?;
        let rules = Rules::read(&table).with_context(|| shown.to_string())?;
        let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
        let mut out = BufWriter::with_capacity(1 << 20, terminal::stdout());
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

/// Returns the default resemblance if the index has bands. Otherwise returns `None`, which selects the radius of the
/// index.
fn by_resemblance(index: &Path) -> anyhow::Result<Option<Near>> {
    let has_bands = Index::open(index)?.snapshot().params().minhash.is_some();
    Ok(has_bands.then(Near::default))
}
