//! `twindex get`: prints documents of an index, or lists its keys.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use twindex::params::KeyKind;
use twindex::{Code, Index, Key, Snapshot};
use twindex_corpus::tsv;

use crate::json_lines::JsonColumns;
use crate::key_args::KeyArgs;
use crate::report;
use crate::terminal;

/// Options of `get`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex get pages.twx https://example.org/a\n  twindex get pages.twx | head\n\n\
    With keys, prints a line for each document: key, fingerprint (hexadecimal; - where there is none), bytes of \
    signature, sampled hashes, value (- if the index keeps none), age (by the newest stamp in the index; - where documents do not \
    expire). A key that is not there is an error, after the others; exit code 1.\n\n\
    Without keys, lists the keys of the index, one a line, ascending. A tab, newline, carriage return or backslash in a \
    key is written \\t, \\n, \\r, \\\\, and a byte that is not UTF-8 \\xNN: as `delete` and `get` take it with \
    --escaped.",
    mut_arg("keys", |keys| keys.required(false)),
    mut_arg("escaped", |escaped| escaped.requires("keys"))
)]
pub(crate) struct GetArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print only the number of keys in the index
    #[arg(long, conflicts_with = "keys")]
    count: bool,
    /// Print a JSON object for each document or key, and one with their number as the last line
    #[arg(long)]
    json: bool,
}

/// The JSON object that `--json` prints for each key.
#[derive(Serialize)]
struct Document {
    key: String,
    found: bool,
    fingerprint: Option<String>,
    signature: Option<String>,
    bottom: Vec<u64>,
    modular: Vec<u64>,
    /// The value as text. If it is not valid UTF-8, invalid bytes are replaced, and `value_hex` has the original bytes.
    value: Option<String>,
    value_hex: Option<String>,
    stamp: Option<u64>,
    priority: Option<u64>,
    age: Option<u64>,
    #[serde(skip)]
    value_bytes: Option<Vec<u8>>,
}

/// The totals that `--json` prints last.
#[derive(Serialize)]
struct GetReport {
    /// Number of keys with a document.
    documents: u64,
    /// Number of keys without a document.
    absent: u64,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl GetArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let snapshot = Index::open(&self.index)?.snapshot();
        if self.keys.is_empty() { self.list(&snapshot) } else { self.print(&snapshot) }
    }

    /// Prints the documents with the given keys.
    fn print(&self, snapshot: &Snapshot) -> anyhow::Result<ExitCode> {
        let (mut all, mut absent) = (Vec::new(), 0_u64);
        for key in self.keys.keys(&self.index, snapshot.params())? {
            let record = snapshot.get(&key)?;
            let shown = match key.as_bytes() {
                Some(bytes) => String::from_utf8_lossy(&tsv::escape(bytes)).into_owned(),
                None => key.to_string(),
            };
            let found = record.is_some();
            if !found {
                absent += 1;
                if !self.json {
                    terminal::warn(&format!("{}: no document `{shown}`", self.index.display()));
                }
            }
            let record = record.as_ref();
            let value = record.and_then(|r| r.value.clone());
            let stamp = record.and_then(|r| r.stamp);
            all.push(Document {
                key: shown,
                found,
                fingerprint: record
                    .and_then(|r| r.code.or(r.fingerprint.map(Code::from)))
                    .map(|code| code.to_string()),
                signature: record.filter(|r| !r.signature.is_empty()).map(|r| hex(&r.signature)),
                bottom: record.map_or_else(Vec::new, |r| r.bottom.clone()),
                modular: record.map_or_else(Vec::new, |r| r.modular.clone()),
                value: value.as_ref().map(|value| String::from_utf8_lossy(value).into_owned()),
                value_hex: value
                    .as_ref()
                    .filter(|value| std::str::from_utf8(value).is_err())
                    .map(|value| hex(value)),
                stamp,
                priority: record.and_then(|r| r.priority),
                age: stamp.zip(snapshot.now()).map(|(stamp, now)| now.saturating_sub(stamp)),
                value_bytes: value,
            });
        }
        if self.json {
            // Documents are printed one at a time, because each of them may be large.
            all.iter().try_for_each(report::print_json)?;
            report::print_json(&GetReport { documents: all.len() as u64 - absent, absent })?;
        } else {
            let lines: Vec<String> = all
                .iter()
                .filter(|one| one.found)
                .map(|one| {
                    let fingerprint = one.fingerprint.as_deref().unwrap_or("-");
                    let signature = one.signature.as_ref().map_or(0, |hex| hex.len() / 2);
                    let value = one.value_bytes.as_ref().map_or_else(
                        || "-".into(),
                        |value| String::from_utf8_lossy(&tsv::escape(value)).into_owned(),
                    );
                    let age = one.age.map_or("-".to_owned(), |age| age.to_string());
                    format!(
                        "{}\t{fingerprint}\t{signature}\t{}\t{value}\t{age}",
                        one.key,
                        one.bottom.len() + one.modular.len()
                    )
                })
                .collect();
            let mut out =
                terminal::stdout_of_table("key\tfingerprint\tsignature_bytes\tsamples\tvalue\tage")?;
            let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
            written.context("cannot write to standard output")?;
        }
        Ok(if absent == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Lists the keys of the index.
    fn list(&self, snapshot: &Snapshot) -> anyhow::Result<ExitCode> {
        let mut out = BufWriter::new(terminal::stdout());
        let (mut failed, mut count) = (None, 0_u64);
        let columns = JsonColumns::of("key", snapshot.params().key == KeyKind::U64);
        let (mut line, mut made) = (Vec::new(), Vec::new());
        let listed = snapshot.for_each_key(|key| {
            count += 1;
            if !self.count && failed.is_none() {
                let written = if self.json {
                    line.clear();
                    made.clear();
                    let written = match key {
                        Key::U64(key) => write!(line, "{key}"),
                        Key::Bytes(key) => tsv::write_field(&mut line, key),
                    };
                    written.and_then(|()| columns.push(&line, &mut made)).and_then(|()| out.write_all(&made))
                } else {
                    match key {
                        Key::U64(key) => writeln!(out, "{key}"),
                        Key::Bytes(key) => tsv::write_field(&mut out, key).and_then(|()| writeln!(out)),
                    }
                };
                if let Err(error) = written {
                    failed = Some(error);
                    // Ends the listing, because a write failed, for example because the reader closed the pipe.
                    return Err(twindex::Error::Invalid("standard output is closed".into()));
                }
            }
            Ok(())
        });
        let printed = failed.map_or(Ok(()), Err);
        printed.context("cannot write to standard output")?;
        listed?;
        if self.json {
            writeln!(out, "{{\"keys\":{count}}}").context("cannot write to standard output")?;
        } else if self.count {
            writeln!(out, "{count}").context("cannot write to standard output")?;
        }
        out.flush().context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}
