//! Sketchers, and the sketches that they compute from texts.

use std::mem::MaybeUninit;

use crate::border::{self, Result, Slot, given, show_numbers};
use crate::error::{Code, Error};
use crate::packed::Packed;
use crate::parallel::in_parallel;

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

/// The sketches of many texts. Must be freed with `twindex_sketches_free`.
#[derive(Debug)]
pub struct Sketches {
    pub(crate) all: Vec<Result<twindex::Sketch>>,
}

/// The minimum number of texts for each thread. A text of a hundred words takes about 10 us.
const TEXTS_PER_THREAD: usize = 32;

/// Computes the sketches of texts, in parallel.
pub(crate) fn sketch_all(sketcher: &twindex::Sketcher, texts: Packed<'_>, threads: usize) -> Sketches {
    let sketch = |at| {
        let text = String::from_utf8_lossy(texts.get(at));
        Ok(sketcher.sketch(&text).map_err(twindex::Error::from)?)
    };
    Sketches { all: in_parallel(texts.len(), threads, TEXTS_PER_THREAD, sketch) }
}

/// Computes the sketches of `count` texts in UTF-8, in parallel on `threads` threads; 0 for all cores. The bytes of all
/// texts are stored one after the other, and `text_offsets` has `count + 1` numbers: the start of each text, and the
/// end of the last. A text that cannot be sketched is an error of the call that uses its sketch. The caller must free
/// the sketches.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_sketcher_sketch_many(
    sketcher: Option<&Sketcher>,
    texts: *const u8,
    text_offsets: *const u64,
    count: usize,
    threads: usize,
    sketches: Option<&mut MaybeUninit<*mut Sketches>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(sketches, "sketches")?;
        let sketcher = given(sketcher, "sketcher")?;
        // SAFETY: the caller passes `count + 1` offsets, or null, and as many bytes as the last of them says.
        let texts = unsafe { Packed::read(texts, text_offsets, count, "texts") }?;
        slot.give(sketch_all(&sketcher.inner, texts, threads));
        Ok(())
    })
}

/// Returns the number of sketches; 0 if `sketches` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketches_len(sketches: Option<&Sketches>) -> usize {
    sketches.map_or(0, |sketches| sketches.all.len())
}

/// Returns a copy of sketch `at`, counted from 0, or the error of its text. The caller must free the sketch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketches_get(
    sketches: Option<&Sketches>,
    at: usize,
    sketch: Option<&mut MaybeUninit<*mut Sketch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(sketch, "sketch")?;
        let all = &given(sketches, "sketches")?.all;
        let found = all
            .get(at)
            .ok_or_else(|| Error::invalid(format!("sketch {at}: there are {}, counted from 0", all.len())))?;
        slot.give(Sketch { inner: found.clone()? });
        Ok(())
    })
}

/// Frees sketches. `sketches` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketches_free(sketches: Option<Box<Sketches>>) {
    border::free(sketches);
}

/// Frees a sketcher. `sketcher` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketcher_free(sketcher: Option<Box<Sketcher>>) {
    border::free(sketcher);
}

/// Returns whether the text had no tokens; true if `sketch` is null. If the index stores sets, such a text is near
/// documents with the same bytes; otherwise it is near no document.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_is_empty(sketch: Option<&Sketch>) -> bool {
    border::ask(true, || sketch.is_none_or(|sketch| sketch.inner.is_empty()))
}

/// Sets `fingerprint`, which may be null, to the simhash fingerprint of 64 bits. Returns false if the sketch has none.
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

/// Returns the distinct shingle hashes in ascending order, if the index stores sets, and sets `len` to their number.
/// They are valid until the sketch is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_set(
    sketch: Option<&Sketch>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    show_numbers(sketch.map(|sketch| sketch.inner.set()), len)
}

/// Returns all minima, and sets `len` to their number: 0 if the parameters exclude minima. They are valid until the
/// sketch is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_signature(
    sketch: Option<&Sketch>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u32 {
    show_numbers(sketch.map(|sketch| sketch.inner.signature()), len)
}

/// Returns the features, one for each band, and sets `len` to their number: 0 if the parameters exclude bands. They are
/// valid until the sketch is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_features(
    sketch: Option<&Sketch>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    show_numbers(sketch.map(|sketch| sketch.inner.features()), len)
}

/// Frees a sketch. `sketch` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_sketch_free(sketch: Option<Box<Sketch>>) {
    border::free(sketch);
}
