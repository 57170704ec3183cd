//! Names the files of a results folder, and reads the rows of its tables.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::input::kept::files::{is_name_of_annotated, is_name_of_kept, is_name_of_keys};
use crate::passages::boilerplate::count::BOILERPLATE;
use crate::urls::hosts::{HOSTS, MIRRORS};
use crate::urls::learned::URLS;
use crate::work::tsv;

/// The files that `dedup` always writes. A folder without them was not written by `dedup`.
pub(crate) const PROOF: [&str; 2] = ["pairs.tsv", "clusters.tsv"];
/// The tables of removed documents, with their keys in the first column: `pairs.tsv` if the near document is of the
/// same run, `against.tsv` if it is in a history.
pub(crate) const TABLES_OF_REMOVED: [&str; 2] = ["pairs.tsv", "against.tsv"];
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
/// The column of `pairs.tsv` with the rule that decided which document is kept, if `--keep` has several rules.
pub(crate) const DECIDED: &str = "decided";
/// The table of documents of a history that later documents contain.
pub(crate) const CONTAINED: &str = "contained.tsv";
/// The revisit records of removed pages.
pub(crate) const REVISITS: &str = "revisits.warc";
/// The HTML report about the results.
pub(crate) const REPORT: &str = "report.html";
/// The settings of the run; see [`RunFile`](crate::results::run_file::RunFile).
pub(crate) const RUN: &str = "run.json";
pub(crate) const INDEX: &str = "index";

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
pub(crate) fn is_ours(name: &str) -> bool {
    FILES.contains(&name) || is_name_of_kept(name) || is_name_of_annotated(name) || is_name_of_keys(name)
}

/// A callback that receives the number of a line and its fields.
pub(crate) type RowVisitor<'e> = dyn FnMut(u64, &[&[u8]]) -> anyhow::Result<ControlFlow<()>> + 'e;

/// A row of a table. Its fields are escaped.
pub(crate) struct Row {
    pub(crate) line: u64,
    pub(crate) fields: Vec<Vec<u8>>,
}

impl Row {
    pub(crate) fn of(line: u64, fields: &[&[u8]]) -> Self {
        Self { line, fields: fields.iter().map(|field| field.to_vec()).collect() }
    }
}

/// Returns the column names of a table, and the first rows for which `is_wanted` returns true, at most `max`.
pub(crate) fn find_rows(
    path: &Path,
    max: usize,
    is_wanted: &dyn Fn(&[&[u8]]) -> bool,
) -> anyhow::Result<(Vec<String>, Vec<Row>)> {
    let mut rows = Vec::new();
    let header = for_each_row(path, None, &mut |line, fields| {
        if is_wanted(fields) {
            rows.push(Row::of(line, fields));
        }
        Ok(if rows.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok((header, rows))
}

/// Passes each row of a table with its line number to `each`, and returns the column names. They must start with the
/// names in `head`, if given.
pub(crate) fn for_each_row(
    path: &Path,
    head: Option<&str>,
    each: &mut RowVisitor<'_>,
) -> anyhow::Result<Vec<String>> {
    let cannot = || format!("{}: cannot be read", path.display());
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path).with_context(cannot)?);
    let (mut line, mut names) = (Vec::new(), Vec::<String>::new());
    for number in 1_u64.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).with_context(cannot)? == 0 {
            break;
        }
        ensure!(line.pop() == Some(b'\n'), "{}:{number}: the line is cut short", path.display());
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
        if number == 1 {
            names = fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            ensure!(
                head.is_none_or(|head| names.iter().zip(head.split('\t')).all(|(name, head)| name == head))
                    && names.len() > 2,
                "{}:1: not the columns that `dedup` writes, but `{}`",
                path.display(),
                names.join(", ").escape_debug()
            );
            continue;
        }
        ensure!(
            fields.len() == names.len(),
            "{}:{number}: expected {} columns, found {}",
            path.display(),
            names.len(),
            fields.len()
        );
        if each(number, &fields)?.is_break() {
            break;
        }
    }
    ensure!(!names.is_empty(), "{}: is empty, and should have a header", path.display());
    Ok(names)
}

pub(crate) fn unescaped(path: &Path, row: &Row, field: usize) -> anyhow::Result<Vec<u8>> {
    let key = tsv::unescape(&row.fields[field]);
    Ok(key.with_context(|| format!("{}:{}", path.display(), row.line))?.into_owned())
}
