//! Writes the files of a results folder.

use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::Context;

use twindex::sys::DurableFile;

/// Writes a file and syncs it.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<DurableFile>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let whole = || {
        let mut out = BufWriter::with_capacity(1 << 20, DurableFile::create_new(path)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    };
    // The folder is a temporary one that the user does not know, so the error names the file without its folder.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    whole().with_context(|| format!("{name}: cannot write"))
}
