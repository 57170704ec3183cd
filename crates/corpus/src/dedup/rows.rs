//! Reads rows of the tables in a results folder.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::tsv;

/// A callback that receives the number of a line and its fields.
pub(super) type RowVisitor<'e> = dyn FnMut(u64, &[&[u8]]) -> anyhow::Result<ControlFlow<()>> + 'e;

/// A row of a table. Its fields are escaped.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) fields: Vec<Vec<u8>>,
}

impl Row {
    pub(super) fn of(line: u64, fields: &[&[u8]]) -> Self {
        Self { line, fields: fields.iter().map(|field| field.to_vec()).collect() }
    }
}

/// Returns the column names of a table, and the first rows for which `is_wanted` returns true, at most `max`.
pub(super) fn find_rows(
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

/// Passes each row of a table with its line number to `each`, and returns the column names. The first of these must be
/// those in `head`, if given.
pub(super) fn for_each_row(
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

/// Returns the unescaped key in a field of a row.
pub(super) fn unescaped(path: &Path, row: &Row, field: usize) -> anyhow::Result<Vec<u8>> {
    let key = tsv::unescape(&row.fields[field]);
    Ok(key.with_context(|| format!("{}:{}", path.display(), row.line))?.into_owned())
}
