//! Counts texts, to build a table of document frequencies.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use twindex::IdfBuilder;
use twindex::sketch::{Buffers, Shingler};

use crate::border::{self, Slot, given, lock};
use crate::error::{Code, Error};
use crate::idf::Idf;
use crate::params::Params;

/// Counts texts, to build a table. Must be freed with `twindex_idf_counter_free`.
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

/// Creates a counter for texts that are split into shingles as `params` specifies. The table will omit shingles that
/// occur in fewer than `min_df` texts. Of the other shingles, it will contain at most `entries_max`, the most frequent
/// ones. A shingle without an entry is weighted as if it had the lowest frequency that was omitted. The command-line
/// tool uses 2 and 1,000,000. The caller must free the counter.
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

/// Counts a text in UTF-8. Invalid UTF-8 is replaced by U+FFFD. Beyond 64 MB, counts are moved to scratch files.
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

/// Sets the memory for counts in bytes, and the directory of scratch files; if it is null, that of temporary files.
/// Call it before the first text.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_idf_counter_memory(
    counter: Option<&IdfCounter>,
    bytes: usize,
    scratch_dir: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let mut counting = lock(&given(counter, "counter")?.counting)?;
        let dir = if scratch_dir.is_null() {
            None
        } else {
            // SAFETY: the caller passes a string.
            Some(unsafe { border::path(scratch_dir) }?)
        };
        let mut taken = counting.take().ok_or_else(is_made)?;
        taken.builder = taken.builder.memory(bytes);
        if let Some(dir) = dir {
            taken.builder = taken.builder.scratch_dir(&dir);
        }
        *counting = Some(taken);
        Ok(())
    })
}

/// Builds the table. The counter then accepts no more texts. The caller must free both the table and the counter.
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

/// Frees a counter. `counter` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_idf_counter_free(counter: Option<Box<IdfCounter>>) {
    border::free(counter);
}
