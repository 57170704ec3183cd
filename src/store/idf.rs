//! Reads and writes files of IDF tables, in the directory of an index and elsewhere.

use std::path::Path;
use std::sync::Arc;

use super::names;
use super::state::read_whole;
use crate::error::{Error, Result, corrupt, refused};
use crate::format::idf::IDF_BYTES_MAX;
use crate::format::wire::Fault;
use crate::idf::{from_bytes, to_bytes};
use crate::params::Params;
use crate::sys::{RealVfs, Vfs};
use twindex_sketch::IdfTable;

/// Reads and checks a file that `twindex idf` or [`save_idf`] wrote.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged file or a file that is not an IDF table, [`Error::Unsupported`] for a table of a
/// newer version, [`Error::Io`].
pub fn open_idf(path: impl AsRef<Path>) -> Result<IdfTable> {
    read(&RealVfs, path.as_ref())
}

/// Writes a table to a file, atomically and durably. After a failure, the file has either its old contents or the whole
/// table.
///
/// ```
/// use twindex::{IdfBuilder, Params, open_idf, save_idf};
///
/// let params = Params::builder().words(1).simhash(3).build()?;
/// let mut counting = IdfBuilder::new(&params.shingling);
/// counting.add(&[7, 11])?; // the shingles of a document
/// let table = counting.min_df(1).finish()?;
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("words.idf");
/// save_idf(&path, &table, false)?;
/// assert_eq!(open_idf(&path)?.digest(), table.digest());
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`], also if the file exists and `replace` is false.
pub fn save_idf(path: impl AsRef<Path>, table: &IdfTable, replace: bool) -> Result<()> {
    write(&RealVfs, path.as_ref(), table, replace)
}

/// Reads and checks a table from a file.
///
/// # Errors
/// [`Error::Corrupt`] for a damaged file or a file that is not an IDF table, [`Error::Unsupported`] for a table of a
/// newer version, [`Error::Io`].
pub fn read(vfs: &dyn Vfs, path: &Path) -> Result<IdfTable> {
    from_bytes(&read_whole(vfs, path, IDF_BYTES_MAX)?).map_err(|refusal| refused(path, "idf", refusal))
}

/// Writes a table under a temporary name in the same directory, then renames the file. After a failure, the file has
/// either its old contents or the whole table.
///
/// # Errors
/// [`Error::Io`], also if the file exists and `replace` is false.
pub fn write(vfs: &dyn Vfs, path: &Path, table: &IdfTable, replace: bool) -> Result<()> {
    let dir = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    publish(vfs, dir, path, table, replace)?;
    vfs.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))
}

/// Like [`write`], but does not sync the directory `dir`. The caller must sync it to make the new name durable.
pub(super) fn publish(vfs: &dyn Vfs, dir: &Path, path: &Path, table: &IdfTable, replace: bool) -> Result<()> {
    let mut file = vfs.create_temporary(dir).map_err(|e| Error::io("create a temporary file in", dir, e))?;
    file.append(&to_bytes(table)).map_err(|e| Error::io("write", path, e))?;
    // guard: an IDF table is synced before it has its name
    file.sync().map_err(|e| Error::io("sync", path, e))?;
    file.publish(path, replace).map_err(|e| Error::io("publish", path, e))
}

/// Returns the digest of the IDF table that the parameters name; `None` if they name no table.
pub(super) fn named_by(params: &Params) -> Option<u128> {
    // Cannot fail: parameters that name two tables are rejected when they are read.
    params.sketch().idf_table().ok().flatten()
}

/// Returns the IDF table of the index in `dir`; `None` if its parameters name no table.
pub(super) fn of_index(vfs: &dyn Vfs, dir: &Path, params: &Params) -> Result<Option<Arc<IdfTable>>> {
    let Some(digest) = named_by(params) else { return Ok(None) };
    let path = names::idf(dir, digest);
    let table = read(vfs, &path).map_err(|error| match error {
        Error::Io { path, source, .. } if source.kind() == std::io::ErrorKind::NotFound => Error::Corrupt {
            path,
            section: "idf",
            offset: 0,
            expected: "the idf table that the parameters name".into(),
            found: "no such file; restore it from a copy of the index, or of the table".into(),
        },
        other => other,
    })?;
    let differs = |expected, found| Err(corrupt(&path, "idf", 0, Fault::new(0, expected, found)));
    if table.digest() != digest {
        return differs(
            format!("digest {digest:032x} as in the parameters"),
            format!("{:032x}", table.digest()),
        );
    }
    if table.check_shingling(&params.shingling).is_err() {
        return differs(
            format!("as in the index: {}", params.shingling.encode()),
            table.shingling().encode(),
        );
    }
    Ok(Some(Arc::new(table)))
}
