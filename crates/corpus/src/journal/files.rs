//! The files in the folder of a journal: their names, writing a file durably, and errors for missing files.

use std::fs;
use std::io::{self};
use std::path::Path;

use anyhow::{Context, ensure};
use twindex::sys::{RealVfs, Vfs};

use crate::journal::cache::BEGIN_ANEW;

/// Suffix of the temporary name that a file has while it is written.
pub(crate) const UNFINISHED: &str = ".tmp";
pub(crate) const LOCK: &str = "LOCK";
pub(crate) const MANIFEST: &str = "manifest";
pub(crate) const INPUTS: &str = "inputs";
/// Name of the results folder inside the journal.
pub(crate) const RESULTS: &str = "results";
/// Name of the sealed file that is written just before the results folder is renamed to OUT.
pub(crate) const PUBLISHED: &str = "published";
/// Name prefixes of the part files of the history and of the input documents.
const READINGS: [&str; 2] = ["history", "reading"];
/// Name of the scratch file of sets.
pub(crate) const SETS: &str = "sets";
/// Names of the sealed files, which `folder.rs` writes.
const SEALED: [&str; 4] = ["decided", "index", "kept", PUBLISHED];

/// Returns whether a journal may contain a file of this name.
fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let is_part = || READINGS.iter().any(|reading| number(reading, name).is_some());
    [LOCK, MANIFEST, INPUTS, SETS, RESULTS].contains(&name) || SEALED.contains(&name) || is_part()
}

/// Returns an error if the folder contains files that do not belong to a journal.
pub(crate) fn check_ours(folder: &Path) -> anyhow::Result<()> {
    for name in names(folder)? {
        ensure!(
            name.to_str().is_some_and(is_ours),
            "{}: `{}` in it is not of a run that was stopped; move it away",
            folder.display(),
            name.display()
        );
    }
    Ok(())
}

pub(crate) fn names(folder: &Path) -> anyhow::Result<Vec<std::ffi::OsString>> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>();
    list().with_context(|| format!("{}: cannot be listed", folder.display()))
}

pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("{}: cannot be removed", folder.display()))
}

pub(crate) fn remove_any(path: &Path) -> anyhow::Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| format!("{}: cannot be removed", path.display()))
}

/// Syncs a file in the folder, renames it to its final name, and syncs the folder.
pub(crate) fn name_file(folder: &Path, file: &fs::File, name: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    let named = || {
        file.sync_all()?;
        fs::rename(folder.join(format!("{name}{UNFINISHED}")), &path)?;
        RealVfs.sync_dir(folder)
    };
    named().with_context(|| format!("{}: cannot make it durable", path.display()))
}

/// Creates a file in the folder under its temporary name.
pub(crate) fn unnamed_file(folder: &Path, name: &str) -> anyhow::Result<fs::File> {
    let path = folder.join(format!("{name}{UNFINISHED}"));
    fs::File::create(&path).with_context(|| format!("{}: cannot create", path.display()))
}

/// Returns an error for a run that cannot be continued, with the advice to start over.
pub(crate) fn refuse(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what}; {BEGIN_ANEW}")
}

/// Returns the error for a missing journal file.
pub(crate) fn missing(folder: &Path, name: &str) -> anyhow::Error {
    is_missing(&folder.join(name))
}

/// Returns the error for a missing journal file at `path`.
pub(crate) fn is_missing(path: &Path) -> anyhow::Error {
    refuse(&format!("{}: is missing, though later files are there", path.display()))
}

pub(crate) fn name(reading: &str, number: u64) -> String {
    format!("{reading}-{number:06}")
}

/// Returns the number in the name of a part file of `reading`; `None` for names of other files.
pub(crate) fn number(reading: &str, file: &str) -> Option<u64> {
    let number = file.strip_prefix(reading)?.strip_prefix('-')?.parse().ok()?;
    (number > 0 && name(reading, number) == file).then_some(number)
}

/// Returns the number of the last part; 0 if there is none.
///
/// # Errors
///
/// A part before the last one is missing.
pub(crate) fn last(folder: &Path, reading: &str) -> anyhow::Result<u64> {
    let names = names(folder)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|file| number(reading, file.to_str()?)).collect();
    numbers.sort_unstable();
    for (expected, &found) in (1..).zip(&numbers) {
        if found != expected {
            return Err(missing(folder, &name(reading, expected)));
        }
    }
    Ok(numbers.len() as u64)
}
