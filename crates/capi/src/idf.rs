//! Tables of document frequencies, by which shingles are weighted.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;

use twindex::IdfTable;

use crate::border::{self, Result, Slot, given};
use crate::error::{Code, Error};

/// A table of document frequencies, by which shingles are weighted: for each shingle, the number of documents that
/// contain it. Must be freed with `twindex_idf_free`.
#[derive(Debug)]
pub struct Idf {
    pub(crate) table: Arc<IdfTable>,
    /// The digest of the table in hexadecimal.
    digest: CString,
}

impl Idf {
    pub(crate) fn of(table: Arc<IdfTable>) -> Self {
        let digest = CString::new(format!("{:032x}", table.digest())).unwrap_or_default();
        Self { table, digest }
    }

    pub(crate) fn new(table: IdfTable) -> Self {
        Self::of(Arc::new(table))
    }
}

/// Opens a table file that `twindex idf` or `twindex_idf_save` wrote. The caller must free the table.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_idf_open(
    path: *const c_char,
    idf: Option<&mut MaybeUninit<*mut Idf>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(idf, "idf")?;
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        slot.give(Idf::new(twindex::open_idf(path)?));
        Ok(())
    })
}

/// Writes the table to a file, durably and atomically. If the file exists, returns an error unless `replace` is true.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_idf_save(
    idf: Option<&Idf>,
    path: *const c_char,
    replace: bool,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let idf = given(idf, "idf")?;
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        twindex::save_idf(path, &idf.table, replace)?;
        Ok(())
    })
}

/// Returns the number of texts that were counted, without texts that have no shingles; 0 if `idf` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_documents(idf: Option<&Idf>) -> u32 {
    idf.map_or(0, |idf| idf.table.documents())
}

/// Returns the number of shingles in the table; 0 if `idf` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_len(idf: Option<&Idf>) -> usize {
    idf.map_or(0, |idf| idf.table.len())
}

/// Returns the digest that identifies the table in parameters: 32 hexadecimal digits. Returns an empty string if `idf`
/// is null. The string is valid until the table is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_digest(idf: Option<&Idf>) -> *const c_char {
    idf.map_or(c"", |idf| &idf.digest).as_ptr()
}

/// Frees a table. `idf` may be null. Parameters, sketchers and indexes that use the table remain valid.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_free(idf: Option<Box<Idf>>) {
    border::free(idf);
}

/// Returns a shared reference to the table of a handle.
pub(crate) fn table(idf: Option<&Idf>) -> Result<Arc<IdfTable>> {
    Ok(Arc::clone(&given(idf, "idf")?.table))
}
