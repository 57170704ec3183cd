//! Opens the IDF tables that options refer to.

use std::path::Path;

use anyhow::{Context, anyhow};
use twindex::Error;
use twindex::sketch::IdfTable;
use twindex::store::idf;
use twindex::sys::RealVfs;

use crate::settings::text::TextOptions;
use crate::sketching::contents;

/// Opens the IDF table of the option `--idf`. Accepts a table with any shingling.
pub fn open(path: &Path) -> anyhow::Result<IdfTable> {
    idf::read(&RealVfs, path).map_err(|error| match error {
        // Not an IDF table: the file differs at the magic number (offset 0), which all twindex files share, or at the
        // byte of the file kind (offset 10).
        Error::Corrupt { section: "idf", offset: 0 | 10, .. } => {
            anyhow!("{}: not an idf table; `twindex idf` makes one", path.display())
        }
        other => other.into(),
    })
}

/// Opens the IDF table of the option `--idf`. The table must be for the same kind of documents: features, or texts with
/// the shingling of `text`.
pub fn open_for(path: &Path, text: &TextOptions, features: bool) -> anyhow::Result<IdfTable> {
    text.check_features(features)?;
    let table = open(path)?;
    contents::check(path, table.shingling(), features)?;
    let given = text.shingling_like(table.shingling())?;
    table.check_shingling(&given).with_context(|| path.display().to_string())?;
    Ok(table)
}
