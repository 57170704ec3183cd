//! Names of the files in a results folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::hosts::{HOSTS, MIRRORS};
use crate::boilerplate::BOILERPLATE;
use crate::input::{is_name_of_annotated, is_name_of_kept, is_name_of_keys};
use crate::urls::URLS;

/// The files that `dedup` always writes. A folder without them was not written by `dedup`.
pub(super) const PROOF: [&str; 2] = ["pairs.tsv", "clusters.tsv"];
/// The tables whose first column has the keys of the removed documents: of those near a document of the same run, and of
/// those near a document of a history.
pub(super) const TABLES_OF_REMOVED: [&str; 2] = ["pairs.tsv", "against.tsv"];
/// The files of a results folder, except the files of documents.
const FILES: [&str; 11] = [
    "pairs.tsv",
    "clusters.tsv",
    "against.tsv",
    HOSTS,
    MIRRORS,
    URLS,
    CONTAINED,
    REPORT,
    RUN,
    REVISITS,
    BOILERPLATE,
];
/// The table of documents of a history that later documents contain.
pub(super) const CONTAINED: &str = "contained.tsv";
/// The revisit records of removed pages.
pub(super) const REVISITS: &str = "revisits.warc";
/// The HTML report about the results.
pub(super) const REPORT: &str = "report.html";
/// The inputs and options of the run.
pub(super) const RUN: &str = "run.json";
/// The index folder.
pub(super) const INDEX: &str = "index";

/// Returns the files of kept documents in a results folder, in order; `None` if `dedup` did not write the folder.
pub(crate) fn kept_files(folder: &Path) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let is_file = |name: &str| folder.join(name).is_file();
    if !PROOF.iter().all(|proof| is_file(proof)) {
        folder.metadata().with_context(|| format!("{}: cannot be opened", folder.display()))?;
        return Ok(None);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))? {
        let name = entry.with_context(|| format!("{}: cannot be listed", folder.display()))?.file_name();
        names.extend(name.to_str().filter(|name| is_name_of_kept(name)).map(str::to_owned));
    }
    // Sorts by length first, so that `kept-10` follows `kept-9`.
    names.sort_by_key(|name| (name.split('.').next().map_or(0, str::len), name.clone()));
    Ok(Some(names.into_iter().map(|name| folder.join(name)).collect()))
}

/// Returns whether `dedup` writes files with this name to a results folder.
pub(super) fn is_ours(name: &str) -> bool {
    FILES.contains(&name) || is_name_of_kept(name) || is_name_of_annotated(name) || is_name_of_keys(name)
}
