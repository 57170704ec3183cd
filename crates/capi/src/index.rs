//! An index in a directory.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::border::{self, Result, Slot, given};
use crate::error::{Code, Error};
use crate::idf::Idf;
use crate::params::Params;
use crate::sketch::Sketcher;
use crate::snapshot::Snapshot;
use crate::verify::Findings;
use crate::writer::Writer;

/// An open index. Snapshots, sketchers and writers that were created from it remain valid after `twindex_index_free`.
#[derive(Debug)]
pub struct Index {
    pub(crate) inner: twindex::Index,
    /// The directory, for C.
    path: CString,
}

impl Index {
    fn new(inner: twindex::Index) -> Self {
        let path = CString::new(inner.path().as_os_str().as_encoded_bytes()).unwrap_or_default();
        Self { inner, path }
    }
}

/// Stores the index that `open` returns in `*index`.
pub(crate) fn open_by(
    index: Option<&mut MaybeUninit<*mut Index>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    open: impl FnOnce() -> Result<twindex::Index>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(index, "index")?;
        slot.give(Index::new(open()?));
        Ok(())
    })
}

/// Creates an empty index in a new directory and opens it. Returns `TWINDEX_CODE_ALREADY_EXISTS` if `path` exists and
/// is not an empty directory.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_create(
    path: *const c_char,
    params: Option<&Params>,
    index: Option<&mut MaybeUninit<*mut Index>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    open_by(index, error, || {
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        let (params, table) = given(params, "params")?.build_with_table()?;
        Ok(match table {
            Some(table) => twindex::Index::create_with_idf(path, params, &table)?,
            None => twindex::Index::create(path, params)?,
        })
    })
}

/// Opens an existing index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_open(
    path: *const c_char,
    index: Option<&mut MaybeUninit<*mut Index>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    open_by(index, error, || {
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        Ok(twindex::Index::open(path)?)
    })
}

/// Opens the index at `path`, or creates it. Returns `TWINDEX_CODE_PARAMS_MISMATCH` if it exists with other parameters.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_open_or_create(
    path: *const c_char,
    params: Option<&Params>,
    index: Option<&mut MaybeUninit<*mut Index>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    open_by(index, error, || {
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        let (params, table) = given(params, "params")?.build_with_table()?;
        Ok(match table {
            Some(table) => twindex::Index::open_or_create_with_idf(path, params, &table)?,
            None => twindex::Index::open_or_create(path, params)?,
        })
    })
}

/// Returns the complete parameters of the index, with their table of document frequencies if they use one. The caller
/// must free them.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_params(
    index: Option<&Index>,
    params: Option<&mut MaybeUninit<*mut Params>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(params, "params")?;
        let index = &given(index, "index")?.inner;
        slot.give(Params::complete(index.params(), index.idf()?));
        Ok(())
    })
}

/// Creates a sketcher with the parameters of the index. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_sketcher(
    index: Option<&Index>,
    sketcher: Option<&mut MaybeUninit<*mut Sketcher>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(sketcher, "sketcher")?;
        slot.give(Sketcher::new(given(index, "index")?.inner.sketcher()?));
        Ok(())
    })
}

/// Returns a snapshot of the current state of the index, which later commits do not change. It keeps its files open
/// until it is freed. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_snapshot(
    index: Option<&Index>,
    snapshot: Option<&mut MaybeUninit<*mut Snapshot>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(snapshot, "snapshot")?;
        slot.give(Snapshot::new(given(index, "index")?.inner.snapshot()));
        Ok(())
    })
}

/// Locks the index and creates its writer. Returns `TWINDEX_CODE_LOCKED` if any process has a writer of this index. The
/// caller must free the writer.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_writer(
    index: Option<&Index>,
    writer: Option<&mut MaybeUninit<*mut Writer>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(writer, "writer")?;
        let index = given(index, "index")?;
        slot.give(Writer::new(index.inner.writer()?, index.inner.clone()));
        Ok(())
    })
}

/// Returns the absolute path of the index; an empty string if `index` is null. The string is valid until the index is
/// freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_path(index: Option<&Index>) -> *const c_char {
    index.map_or(c"", |index| &index.path).as_ptr()
}

/// Sets `idf` to the table of document frequencies that weights shingles, or to null if the index uses none. The caller
/// must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_idf(
    index: Option<&Index>,
    idf: Option<&mut MaybeUninit<*mut Idf>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(idf, "idf")?;
        if let Some(table) = given(index, "index")?.inner.idf()? {
            slot.give(Idf::of(table));
        }
        Ok(())
    })
}

/// Reads the commits of other processes. Sets `changed`, which may be null, to whether there were any.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_refresh(
    index: Option<&Index>,
    changed: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let has_changed = given(index, "index")?.inner.refresh();
        if let Some(changed) = changed {
            changed.write(matches!(has_changed, Ok(true)));
        }
        has_changed?;
        Ok(())
    })
}

/// Waits until the last commit is another one than `since`, and reads it, as `twindex_index_refresh` does. The commit
/// can be one of this process or of another. Sets `changed`, which may be null, to false if the time passed without
/// one.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_wait(
    index: Option<&Index>,
    since: u64,
    milliseconds: u64,
    changed: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let has_changed = given(index, "index")?.inner.wait(since, Duration::from_millis(milliseconds));
        if let Some(changed) = changed {
            changed.write(matches!(has_changed, Ok(true)));
        }
        has_changed?;
        Ok(())
    })
}

/// Verifies all files of the index completely. `TWINDEX_CODE_OK` means only that the verification was completed;
/// `twindex_findings_problems` returns the number of problems found. The caller must free the findings.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_verify(
    index: Option<&Index>,
    findings: Option<&mut MaybeUninit<*mut Findings>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(findings, "findings")?;
        slot.give(Findings::new(&given(index, "index")?.inner.verify()));
        Ok(())
    })
}

/// Merges all segments into one. The index must have no writer.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_compact(
    index: Option<&Index>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        given(index, "index")?.inner.compact()?;
        Ok(())
    })
}

/// Removes files that the index no longer needs, and sets `bytes`, which may be null, to their total size. The index
/// must have no writer.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_gc(
    index: Option<&Index>,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let removed = given(index, "index")?.inner.gc()?;
        if let Some(bytes) = bytes {
            bytes.write(removed);
        }
        Ok(())
    })
}

/// Closes an index. `index` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_free(index: Option<Box<Index>>) {
    border::free(index);
}

/// Installs a signal handler for SIGBUS in this process. If a page of a file that is mapped afterwards cannot be read,
/// the call then returns an error instead of ending the process. Only on Linux; returns `TWINDEX_CODE_UNSUPPORTED`
/// elsewhere.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_guard_install(error: Option<&mut MaybeUninit<*mut Error>>) -> Code {
    border::call(error, || {
        #[cfg(target_os = "linux")]
        return twindex::guard::install()
            .map_err(|why| Error::new(Code::Io, format!("cannot install a guard: {why}")));
        #[cfg(not(target_os = "linux"))]
        Err(Error::new(Code::Unsupported, "guards of maps are only available on Linux"))
    })
}
