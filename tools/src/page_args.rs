//! The `--html` option of verbs that also write a page about the pairs or the groups that they found.

use std::path::{Path, PathBuf};

use clap::Args;
use twindex_corpus::page;

/// Options that change no result, or only where it is written, and whether each takes a value.
const NO_RESULT: [(&str, bool); 13] = [
    ("--html", true),
    ("--out", true),
    ("-o", true),
    ("--into", true),
    ("--memory", true),
    ("--threads", true),
    ("--force", false),
    ("--json", false),
    ("--quiet", false),
    ("-q", false),
    ("--verbose", false),
    ("-v", false),
    ("-vv", false),
];

/// The `--html` option.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Also write a page of HTML to this file: what was found, and a few pairs and groups, drawn by the hashes of their
    /// keys. With --texts INPUT, it shows their texts side by side, and reads only these again
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl PageArgs {
    /// Returns an error if the page cannot be written. `others` are all files and folders that the run reads or writes.
    pub(crate) fn check<P: AsRef<Path>>(&self, others: impl IntoIterator<Item = P>) -> anyhow::Result<()> {
        self.html.as_ref().map_or(Ok(()), |html| page::check(html, others))
    }
}

/// Returns the command line of this process without options that change no result.
pub(crate) fn command() -> String {
    let mut words = std::env::args_os().skip(1);
    let mut command = "twindex".to_owned();
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        let name = word.split_once('=').map_or(&*word, |(name, _)| name);
        match NO_RESULT.iter().find(|(option, _)| *option == name) {
            Some((_, true)) if name == word => drop(words.next()),
            Some(_) => {}
            None => command = command + " " + &page::quoted(&word),
        }
    }
    command
}
