//! `twindex keys`: prints the keys of an index in ascending order.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use twindex::params::KeyKind;
use twindex::{Index, Key};

use twindex_corpus::tsv;

use crate::json_lines::JsonColumns;

/// Options of `keys`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex keys pages.twx | head\n\n\
    One key a line, ascending. A tab, newline, carriage return or backslash in a key is written \\t, \\n, \\r, \\\\, and a \
    byte that is not UTF-8 \\xNN: as `delete` and `get` take it with --escaped.")]
pub(crate) struct KeysArgs {
    /// Directory of the index
    index: PathBuf,
    /// Print only the number of keys
    #[arg(long)]
    count: bool,
    /// Print a JSON object for each key, and one with the number of keys as the last line
    #[arg(long)]
    json: bool,
}

impl KeysArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let snapshot = Index::open(&self.index)?.snapshot();
        let mut out = BufWriter::new(io::stdout().lock());
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
                    // The reader has closed the pipe. This error ends the listing.
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
