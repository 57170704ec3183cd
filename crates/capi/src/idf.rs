//! Inverse document frequencies: tables, and counters that build them from texts.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use twindex::sketch::{Buffers, Shingler};
use twindex::{IdfBuilder, IdfTable};

use crate::border::{self, Result, Slot, given, lock};
use crate::error::{Code, Error};
use crate::params::Params;

/// How many documents of a collection have each shingle, by which shingles are weighted. Free it with `twindex_idf_free`.
#[derive(Debug)]
pub struct Idf {
    pub(crate) table: Arc<IdfTable>,
    /// The digest of the table in hexadecimal.
    digest: CString,
}

impl Idf {
    fn new(table: IdfTable) -> Self {
        let digest = CString::new(format!("{:032x}", table.digest())).unwrap_or_default();
        Self { table: Arc::new(table), digest }
    }
}

/// Counts texts for a table. Free it with `twindex_idf_counter_free`.
#[derive(Debug)]
pub struct IdfCounter {
    /// `None` after the table was built.
    counting: Mutex<Option<Counting>>,
}

#[derive(Debug)]
struct Counting {
    shingler: Shingler,
    builder: IdfBuilder,
    buffers: Buffers,
    shingles: Vec<u64>,
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

/// A counter of texts that are cut into shingles as these parameters say. Shingles of fewer than `min_df` texts are left out
/// of the table, and of the others all but the `entries_max` most frequent ones; such a shingle has the weight of the rarest
/// one that was left out. The command has 2 and 1,000,000. Free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_counter_new(
    params: Option<&Params>,
    min_df: u32,
    entries_max: usize,
    counter: Option<&mut MaybeUninit<*mut IdfCounter>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(counter, "counter")?;
        let shingling = given(params, "params")?.shingling()?;
        let shingler = Shingler::new(&shingling).map_err(twindex::Error::from)?;
        let builder = IdfBuilder::new(&shingling).min_df(min_df).entries_max(entries_max);
        let counting = Counting { shingler, builder, buffers: Buffers::default(), shingles: Vec::new() };
        slot.give(IdfCounter { counting: Mutex::new(Some(counting)) });
        Ok(())
    })
}

/// Counts a text in UTF-8; bytes that are not UTF-8 are replaced by U+FFFD. Counts beyond 64 MB are moved to scratch files.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_idf_counter_add(
    counter: Option<&IdfCounter>,
    text: *const u8,
    text_len: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let mut counting = lock(&given(counter, "counter")?.counting)?;
        let Counting { shingler, builder, buffers, shingles } = counting.as_mut().ok_or_else(is_made)?;
        // SAFETY: the caller passes `text_len` bytes, or null and 0.
        let text = unsafe { border::bytes(text, text_len, "text") }?;
        shingler.distinct(&String::from_utf8_lossy(text), buffers, shingles);
        builder.add(shingles)?;
        Ok(())
    })
}

/// Makes the table. The counter takes no more texts, and is still to be freed. Free the table.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_counter_finish(
    counter: Option<&IdfCounter>,
    idf: Option<&mut MaybeUninit<*mut Idf>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(idf, "idf")?;
        let counting = lock(&given(counter, "counter")?.counting)?.take().ok_or_else(is_made)?;
        slot.give(Idf::new(counting.builder.finish()?));
        Ok(())
    })
}

fn is_made() -> Error {
    Error::invalid("the table of this counter is made: take a new counter")
}

/// Frees a counter; null is allowed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_counter_free(counter: Option<Box<IdfCounter>>) {
    border::free(counter);
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
