//! Sketchers, and the sketches that they compute from texts.

use std::mem::MaybeUninit;

use crate::border::{self, Slot, given, show_empty};
use crate::error::{Code, Error};

/// Computes sketches of texts. Any number of threads may use it at the same time. Must be freed with
/// `twindex_sketcher_free`.
#[derive(Debug)]
pub struct Sketcher {
    inner: twindex::Sketcher,
}

impl Sketcher {
    pub(crate) fn new(inner: twindex::Sketcher) -> Self {
        Self { inner }
    }
}

/// The sketch of a text: the fingerprint, minima and hashes that the parameters specify. Must be freed with
/// `twindex_sketch_free`.
#[derive(Debug)]
pub struct Sketch {
    pub(crate) inner: twindex::Sketch,
}

/// Computes the sketch of a text in UTF-8. Invalid UTF-8 is replaced by U+FFFD. The caller must free the sketch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_sketcher_sketch(
    sketcher: Option<&Sketcher>,
    text: *const u8,
    text_len: usize,
    sketch: Option<&mut MaybeUninit<*mut Sketch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(sketch, "sketch")?;
        let sketcher = given(sketcher, "sketcher")?;
        // SAFETY: the caller passes `text_len` bytes, or null and 0.
        let text = unsafe { border::bytes(text, text_len, "text") }?;
        let text = String::from_utf8_lossy(text);
        let sketch = sketcher.inner.sketch(&text).map_err(twindex::Error::from)?;
        slot.give(Sketch { inner: sketch });
        Ok(())
    })
}

/// Frees a sketcher. `sketcher` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketcher_free(sketcher: Option<Box<Sketcher>>) {
    border::free(sketcher);
}

/// Returns whether the text had no tokens. Such a sketch is near no document. Returns true if `sketch` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_is_empty(sketch: Option<&Sketch>) -> bool {
    border::ask(true, || sketch.is_none_or(|sketch| sketch.inner.is_empty()))
}

/// Sets `fingerprint`, which may be null, to the simhash fingerprint. Returns false if the sketch has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_fingerprint(
    sketch: Option<&Sketch>,
    fingerprint: Option<&mut MaybeUninit<u64>>,
) -> bool {
    border::ask(false, || {
        let found = sketch.and_then(|sketch| sketch.inner.fingerprint());
        if let Some(fingerprint) = fingerprint {
            fingerprint.write(found.map_or(0, |found| found.0));
        }
        found.is_some()
    })
}

/// Returns the distinct shingle hashes in ascending order, if the index stores sets, and sets `len` to their number. They
/// are valid until the sketch is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_set(
    sketch: Option<&Sketch>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    let Some(sketch) = sketch else { return show_empty(len).cast() };
    let set = sketch.inner.set();
    if let Some(len) = len {
        len.write(set.len());
    }
    set.as_ptr()
}

/// Frees a sketch. `sketch` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_free(sketch: Option<Box<Sketch>>) {
    border::free(sketch);
}
