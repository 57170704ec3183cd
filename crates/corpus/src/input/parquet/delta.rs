//! The current files of a Delta table. Files of rows that were deleted or changed stay in its folder; the log in
//! `_delta_log` names those that are part of the table.
//!
//! A commit is a file of JSON lines, each with an action. A checkpoint is a Parquet file with the actions that were in
//! force after a commit. See the protocol of Delta Lake, version 1.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use parquet::column::reader::ColumnReader;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::input::columns::file::guarded;
use crate::input::open::folder::{LOG_OF_DELTA, Listing};
use crate::input::parquet::columns::metadata_of;
use crate::input::parquet::decoded::column_reader;
use crate::input::parquet::thrift::Checked;
use crate::input::partition::unescaped;

/// Maximum length in bytes of a value in a checkpoint.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Number of rows of a checkpoint that are decoded at a time.
const ROWS_AT_ONCE: usize = 256;

/// Removes the files of Delta tables that are not current from a listing of `root`. Returns the number of removed files,
/// and the first of them.
///
/// # Errors
///
/// The log of a table cannot be read, or it names a file that is missing or is only partly current.
pub(crate) fn keep_current(root: &Path, listing: &mut Listing) -> anyhow::Result<(u64, Option<PathBuf>)> {
    let (mut removed, mut first) = (0, None);
    for table in std::mem::take(&mut listing.delta_tables) {
        let current =
            current_files(&table).with_context(|| table.join(LOG_OF_DELTA).display().to_string())?;
        let Some(current) = current else { continue };
        if let Some(missing) = current.iter().find(|file| !table.join(file).exists()) {
            let table = table.display();
            bail!("{table}: its log names {}, which is not there; copy the table again", missing.display());
        }
        let bytes = &mut listing.bytes;
        listing.files.retain(|file| {
            let path = root.join(&file.below);
            let Ok(below) = path.strip_prefix(&table) else { return true };
            let is_current = below.starts_with(LOG_OF_DELTA) || current.contains(below);
            if !is_current {
                removed += 1;
                *bytes -= file.bytes;
                first.get_or_insert(path);
            }
            is_current
        });
    }
    Ok((removed, first))
}

/// A line of a commit.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    add: Option<FileAction>,
    remove: Option<FileAction>,
    protocol: Option<IgnoredAny>,
    meta_data: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileAction {
    /// The path relative to the folder of the table, or a URL; both with `%XX` for some bytes.
    path: String,
    deletion_vector: Option<IgnoredAny>,
}

/// Returns the paths of the current files, relative to the folder of the table. `None` if the log has nothing that the
/// log of a table has, so that the folder is no table.
fn current_files(table: &Path) -> anyhow::Result<Option<HashSet<PathBuf>>> {
    let log = table.join(LOG_OF_DELTA);
    let (mut commits, mut checkpoint, mut newest) = (BTreeMap::new(), None, 0);
    for entry in fs::read_dir(&log)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((version, suffix)) = name.split_once('.') else { continue };
        let Ok(version) = version.parse::<u64>() else { continue };
        match suffix {
            "json" => drop(commits.insert(version, path)),
            "checkpoint.parquet" if checkpoint.as_ref().is_none_or(|(last, _)| *last < version) => {
                checkpoint = Some((version, path));
            }
            _ if suffix.starts_with("checkpoint.") => newest = version.max(newest),
            _ => {}
        }
    }
    // Whether some rows of a current file are deleted, by its path.
    let mut current: HashMap<String, bool> = HashMap::new();
    let mut next = 0;
    let (mut is_table, mut foreign) = (false, None);
    if let Some((version, path)) = checkpoint {
        let found = guarded(|| of_checkpoint(&path)).map_err(|why| anyhow!("{}: {why}", path.display()))?;
        (is_table, current) = (found.is_some(), found.unwrap_or_default());
        foreign = Some(path).filter(|_| !is_table);
        // Without this checkpoint, all commits say whether this is a table.
        next = if is_table { version.saturating_add(1) } else { 0 };
    }
    let gap = |next: u64| {
        format!(
            "it has no commit {next}, nor a checkpoint of one file after it; without these it is not known which files are \
             current: write the table again, or name its files"
        )
    };
    for (version, path) in commits.range(next..) {
        ensure!(*version == next, gap(next));
        next = next.saturating_add(1);
        let file = BufReader::new(fs::File::open(path)?);
        for action in serde_json::Deserializer::from_reader(file).into_iter::<Action>() {
            let Action { add, remove, protocol, meta_data } =
                action.with_context(|| path.display().to_string())?;
            is_table |= add.is_some() || remove.is_some() || protocol.is_some() || meta_data.is_some();
            if let Some(remove) = remove {
                current.remove(&remove.path);
            }
            if let Some(add) = add {
                current.insert(add.path, add.deletion_vector.is_some());
            }
        }
    }
    ensure!(next > 0, "it has no commit");
    ensure!(next > newest, gap(next));
    if !is_table {
        return Ok(None);
    }
    if let Some(path) = foreign {
        bail!("{}: a checkpoint without a column add.path", path.display());
    }
    let relative = |(path, has_deleted): (String, bool)| {
        ensure!(
            !has_deleted,
            "{path} has rows that a deletion vector deletes, which twindex does not read; write the file again, as `REORG TABLE \
             ... APPLY (PURGE)` does"
        );
        let bytes = unescaped(path.as_bytes());
        let decoded =
            String::from_utf8(bytes).ok().filter(|path| !path.starts_with('/') && !path.contains("://"));
        decoded
            .map(PathBuf::from)
            .with_context(|| format!("{path} is outside of the table; name the files instead"))
    };
    current.into_iter().map(relative).collect::<anyhow::Result<_>>().map(Some)
}

/// Returns the paths of the files that a checkpoint adds, and whether some rows of the file are deleted; `None` if the
/// file has no column for them.
fn of_checkpoint(path: &Path) -> Result<Option<HashMap<String, bool>>, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let metadata = metadata_of(&file)?;
    let leaves = metadata.file_metadata().schema_descr().columns();
    let leaf = |name: &str| leaves.iter().position(|column| column.path().string() == name);
    let Some(paths) = leaf("add.path") else { return Ok(None) };
    let deleted = leaf("add.deletionVector.storageType");
    let file = Arc::new(Checked::new(file, VALUE_BYTES_MAX).map_err(|error| error.to_string())?);
    let mut all = HashMap::new();
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows()).map_err(|_| "a row group of fewer than no rows")?;
        let read = |leaf: usize| -> Result<Vec<Option<String>>, String> {
            let reader = column_reader(&file, group, leaf).map_err(|error| error.to_string())?;
            let ColumnReader::ByteArrayColumnReader(mut reader) = reader else {
                return Err("a column of paths that has no strings".to_owned());
            };
            let (mut of_rows, mut levels, mut values) = (Vec::new(), Vec::new(), Vec::new());
            while of_rows.len() < rows {
                levels.clear();
                values.clear();
                let read = reader.read_records(ROWS_AT_ONCE, Some(&mut levels), None, &mut values);
                if read.map_err(|error| error.to_string())?.0 == 0 {
                    return Err("a column has fewer rows than its row group".to_owned());
                }
                let most = leaves[leaf].max_def_level();
                let mut values = values.iter();
                of_rows.extend(levels.iter().map(|&level| {
                    let value = if level == most { values.next() } else { None };
                    value.map(|value| String::from_utf8_lossy(value.data()).into_owned())
                }));
            }
            Ok(of_rows)
        };
        let deleted = deleted.map(read).transpose()?.unwrap_or_default();
        for (row, path) in read(paths)?.into_iter().enumerate() {
            let has_deleted = deleted.get(row).is_some_and(Option::is_some);
            all.extend(path.map(|path| (path, has_deleted)));
        }
    }
    Ok(Some(all))
}
