//! `twindex get`: prints the data of documents in an index.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use twindex::Index;
use twindex_corpus::tsv;

use crate::key_args::KeyArgs;
use crate::options::Output;
use crate::report;

/// Options of `get`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex get pages.twx https://example.org/a\n\n\
    Prints a line for each key that is there: key, fingerprint (hexadecimal; - where there is none), bytes of signature, \
    sampled hashes, \
    value (- for none), age (by the newest stamp in the index; - where documents do not expire). A key that is not there \
    is an error, after the others; exit code 1. With --json an object a line for each key, and a last one with the figures.")]
pub(crate) struct GetArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    output: Output,
}

/// Fields of `--json`, of each key.
#[derive(Serialize)]
struct Document {
    key: String,
    found: bool,
    fingerprint: Option<String>,
    signature: Option<String>,
    bottom: Vec<u64>,
    modular: Vec<u64>,
    /// The value, with invalid UTF-8 replaced. In that case `value_hex` has the original bytes.
    value: Option<String>,
    value_hex: Option<String>,
    stamp: Option<u64>,
    priority: Option<u64>,
    age: Option<u64>,
    #[serde(skip)]
    value_bytes: Vec<u8>,
}

/// The totals of `--json`.
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
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
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
                if !self.output.json {
                    eprintln!("twindex: {}: no document `{shown}`", self.index.display());
                }
            }
            let record = record.as_ref();
            let value = record.map(|r| r.value.clone()).unwrap_or_default();
            let stamp = record.and_then(|r| r.stamp);
            all.push(Document {
                key: shown,
                found,
                fingerprint: record.and_then(|r| r.fingerprint).map(|f| format!("{:016x}", f.0)),
                signature: record.filter(|r| !r.signature.is_empty()).map(|r| hex(&r.signature)),
                bottom: record.map_or_else(Vec::new, |r| r.bottom.clone()),
                modular: record.map_or_else(Vec::new, |r| r.modular.clone()),
                value: (!value.is_empty()).then(|| String::from_utf8_lossy(&value).into_owned()),
                value_hex: std::str::from_utf8(&value).is_err().then(|| hex(&value)),
                stamp,
                priority: record.and_then(|r| r.priority),
                age: stamp.zip(snapshot.now()).map(|(stamp, now)| now.saturating_sub(stamp)),
                value_bytes: value,
            });
        }
        if self.output.json {
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
                    let value = match &one.value_bytes[..] {
                        b"" => "-".into(),
                        value => String::from_utf8_lossy(&tsv::escape(value)).into_owned(),
                    };
                    let age = one.age.map_or("-".to_owned(), |age| age.to_string());
                    format!(
                        "{}\t{fingerprint}\t{signature}\t{}\t{value}\t{age}",
                        one.key,
                        one.bottom.len() + one.modular.len()
                    )
                })
                .collect();
            report::print_lines(&lines)?;
        }
        Ok(if absent == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
