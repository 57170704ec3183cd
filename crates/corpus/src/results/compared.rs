//! The `--inside` field of an index: only documents with equal values of this field were compared. The file `inside` in
//! the index folder has its name, so that later runs must use the same field.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use twindex::sys::DurableFile;

use crate::error::InvalidOptions;

/// The name of the file that records the field.
pub(crate) const INSIDE: &str = "inside";
/// Maximum length of the file in bytes.
const BYTES_MAX: u64 = 64 << 10;

/// Records the field in the folder of a new index, and syncs the file.
///
/// # Errors
///
/// I/O errors.
pub fn record(index: &Path, field: &str) -> anyhow::Result<()> {
    let write = || {
        let mut file = DurableFile::create_new(&index.join(INSIDE))?;
        file.write_all(field.as_bytes())?;
        file.write_all(b"\n")?;
        file.finish()
    };
    write().with_context(|| format!("{INSIDE}: cannot write"))
}

/// Returns the field that is recorded in the folder of an index; `None` if none is.
///
/// # Errors
///
/// I/O errors; the file is not one line of UTF-8.
pub(crate) fn recorded(index: &Path) -> anyhow::Result<Option<String>> {
    let path = index.join(INSIDE);
    let file = match fs::File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("{}: cannot be read", path.display()))?,
    };
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.with_context(|| format!("{}: cannot be read", path.display()))?;
    match text.strip_suffix('\n') {
        Some(field) if !field.is_empty() && !field.contains('\n') => Ok(Some(field.to_owned())),
        _ => bail!("{}: expected the name of a field, and a line feed", path.display()),
    }
}

/// Compares the `--inside` field `made` of an index with the field `own` of this run. Returns the message for the user
/// if they differ. A field of `None` means that all documents are compared.
pub(crate) fn difference(made: Option<&str>, own: Option<&str>) -> Option<String> {
    Some(match (made, own) {
        (made, own) if made == own => return None,
        (Some(made), None) => format!(
            "its documents were compared inside of {made}, and this run compares all documents; give --inside {made}"
        ),
        (Some(made), Some(own)) => format!(
            "its documents were compared inside of {made}, and this run compares inside of {own}; give --inside {made}"
        ),
        (None, own) => format!(
            "its documents were all compared, and this run compares inside of {}; leave out --inside",
            own.unwrap_or_default()
        ),
    })
}

/// Returns an error if the index records another field than `own`.
///
/// # Errors
///
/// The errors of reading the record, and [`InvalidOptions`], which names both fields.
pub fn check(index: &Path, own: Option<&str>) -> anyhow::Result<()> {
    let made = recorded(index)?;
    match made.as_deref().and_then(|made| difference(Some(made), own)) {
        Some(why) => Err(InvalidOptions::new(format!("{}: {why}", index.display())).into()),
        None => Ok(()),
    }
}
