//! Opens the IDF tables that options name.

use std::path::Path;

use anyhow::{Context, anyhow};
use twindex::Error;
use twindex::sketch::IdfTable;
use twindex::store::idf;
use twindex::sys::RealVfs;

use crate::contents;
use crate::text::TextOptions;

/// Opens the table of an option `--idf`, whatever documents it was made from.
pub fn open(path: &Path) -> anyhow::Result<IdfTable> {
    idf::read(&RealVfs, path).map_err(|error| match error {
        // Corrupt at the magic, which all our files share, or at the role byte.
        Error::Corrupt { section: "idf", offset: 0 | 10, .. } => {
            anyhow!("{}: not an idf table; `twindex idf` makes one", path.display())
        }
        other => other.into(),
    })
}

/// Opens the table of an option `--idf`, for documents that are features or texts, cut with the options in `text`.
pub fn open_for(path: &Path, text: &TextOptions, features: bool) -> anyhow::Result<IdfTable> {
    text.check_features(features)?;
    let table = open(path)?;
    contents::check(path, table.shingling(), features)?;
    let given = text.shingling_like(table.shingling())?;
    table.check_shingling(&given).with_context(|| path.display().to_string())?;
    Ok(table)
}
