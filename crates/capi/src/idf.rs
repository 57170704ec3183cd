//! Tables of inverse document frequencies.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;

use twindex::IdfTable;

use crate::border::{self, Result, Slot, given};
use crate::error::{Code, Error};

/// How many documents of a collection have each shingle, by which shingles are weighted. Free it with `twindex_idf_free`.
#[derive(Debug)]
pub struct Idf {
    pub(crate) table: Arc<IdfTable>,
    /// The digest of the table in hexadecimal.
    digest: CString,
}

impl Idf {
    pub(crate) fn new(table: IdfTable) -> Self {
        let digest = CString::new(format!("{:032x}", table.digest())).unwrap_or_default();
        Self { table: Arc::new(table), digest }
    }
}

/// Reads the table at this path, a file that `twindex idf` or `twindex_idf_save` made. Free it.
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

/// Writes the table to a file, durably, as a whole or not at all. A file that exists is an error unless `replace` is true.
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

/// Texts that were counted, those without shingles left out; 0 for null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_documents(idf: Option<&Idf>) -> u32 {
    idf.map_or(0, |idf| idf.table.documents())
}

/// Shingles that the table has; 0 for null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_len(idf: Option<&Idf>) -> usize {
    idf.map_or(0, |idf| idf.table.len())
}

/// Identifies the table, as parameters name it: 32 hexadecimal digits. It lives as long as the table. An empty string for
/// null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_digest(idf: Option<&Idf>) -> *const c_char {
    idf.map_or(c"", |idf| &idf.digest).as_ptr()
}

/// Frees a table; null is allowed. Parameters, sketchers and indexes that were made with it stay.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_free(idf: Option<Box<Idf>>) {
    border::free(idf);
}

/// Returns the table of a handle, shared.
pub(crate) fn table(idf: Option<&Idf>) -> Result<Arc<IdfTable>> {
    Ok(Arc::clone(&given(idf, "idf")?.table))
}
