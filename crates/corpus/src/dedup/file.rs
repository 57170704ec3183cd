//! Writes the files of a results folder.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;

use twindex::sys::DurableFile;

use crate::hashed_file::{FileDigest, HashedFile};

/// Writes a file and syncs it.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<DurableFile>) -> io::Result<()>,
) -> anyhow::Result<()> {
    write_any(path, (DurableFile::create_new, DurableFile::finish), write)
}

/// Writes a file, syncs it, and returns its digest.
pub(super) fn write_hashed_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<HashedFile>) -> io::Result<()>,
) -> anyhow::Result<FileDigest> {
    Ok(write_any(path, (HashedFile::create_new, HashedFile::finish), write)?.digest())
}

fn write_any<F: Write, R>(
    path: &Path,
    (create, finish): (impl FnOnce(&Path) -> io::Result<F>, impl FnOnce(F) -> io::Result<R>),
    write: impl FnOnce(&mut BufWriter<F>) -> io::Result<()>,
) -> anyhow::Result<R> {
    let whole = || {
        let mut out = BufWriter::with_capacity(1 << 20, create(path)?);
        write(&mut out)?;
        finish(out.into_inner().map_err(io::IntoInnerError::into_error)?)
    };
    // The folder is a temporary one that the user does not know, so the error names the file without its folder.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    whole().with_context(|| format!("{name}: cannot write"))
}
