//! The writer of an index.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, OnceLock};

use twindex::{Hit, Key};

use crate::border::{self, Result, Slot, Structure, given, key, lock};
use crate::error::{Code, Error};
use crate::hits::Hits;
use crate::params::near;
use crate::settings::set_writer;
use crate::sketch::Sketch;

/// The only writer of an index. Calls from several threads are executed one after the other. Changes become visible at
/// a commit; changes that are not committed when the writer is freed are lost. Must be freed with
/// `twindex_writer_free`.
#[derive(Debug)]
pub struct Writer {
    inner: Mutex<twindex::Writer>,
    index: twindex::Index,
    params: twindex::Params,
    /// The sketcher of the index, created when the caller adds the first text. Texts are sketched without the lock of
    /// `inner`.
    sketcher: OnceLock<twindex::Sketcher>,
}

impl Writer {
    pub(crate) fn new(writer: twindex::Writer, index: twindex::Index) -> Self {
        let params = index.params();
        Self { inner: Mutex::new(writer), index, params, sketcher: OnceLock::new() }
    }

    pub(crate) fn params(&self) -> &twindex::Params {
        &self.params
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, twindex::Writer>> {
        lock(&self.inner)
    }

    pub(crate) fn sketcher(&self) -> Result<&twindex::Sketcher> {
        if let Some(sketcher) = self.sketcher.get() {
            return Ok(sketcher);
        }
        let sketcher = self.index.sketcher()?;
        Ok(self.sketcher.get_or_init(|| sketcher))
    }

    /// Converts a key that a C caller passed.
    ///
    /// # Safety
    /// `bytes` is null, or points to `len` bytes that are not written to while the key is in use.
    pub(crate) unsafe fn key<'a>(&self, bytes: *const u8, len: usize) -> Result<Key<'a>> {
        // SAFETY: the caller guarantees the same.
        key(&self.params, unsafe { border::bytes(bytes, len, "key") }?)
    }

    /// Computes the sketch of a text that a C caller passed.
    ///
    /// # Safety
    /// `text` is null, or points to `len` bytes that are not written to until the call returns.
    unsafe fn sketch(&self, text: *const u8, len: usize) -> Result<twindex::Sketch> {
        // SAFETY: the caller guarantees the same.
        let text = unsafe { border::bytes(text, len, "text") }?;
        Ok(self.sketcher()?.sketch(&String::from_utf8_lossy(text)).map_err(twindex::Error::from)?)
    }
}

/// The result of `twindex_writer_admit`. The numbers never change.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// No other document is near. The document was added.
    New = 0,
    /// A document with this key existed and was replaced. No other document is near.
    Updated = 1,
    /// A document with this key existed and was replaced. Another document is near.
    Known = 2,
    /// Another document is near. The document was added, or omitted if `twindex_writer_drop_duplicates` was set.
    Duplicate = 3,
    /// The document has expired, according to its stamp. It was not added.
    Expired = 4,
}

/// A commit survives a crash of the machine. The default.
pub const TWINDEX_DURABILITY_SYNC: u32 = 0;
/// A commit survives a crash of the process. After `twindex_writer_sync`, all earlier commits also survive a crash of
/// the machine.
pub const TWINDEX_DURABILITY_BATCH: u32 = 1;
/// A commit may be only in memory until `twindex_writer_sync`.
pub const TWINDEX_DURABILITY_NONE: u32 = 2;

/// A document and all data that an index can store with it. Initialise with `TWINDEX_DOCUMENT_INIT` and set a sketch, a
/// fingerprint or a code. Null pointers mean that the document has no such data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// The sketch of the document's text, or null.
    pub sketch: *const Sketch,
    /// The fingerprint, or null. Only for an index that stores only fingerprints; `sketch` must then be null.
    pub fingerprint: *const u64,
    /// The value of the document, or null if it has none.
    pub value: *const u8,
    /// Length of the value in bytes.
    pub value_len: usize,
    /// The stamp of the document, or null if it has none.
    pub stamp: *const u64,
    /// The priority of the document, or null if it has none.
    pub priority: *const u64,
    /// If not 0, the document is marked as a duplicate.
    pub is_duplicate: u8,
    /// The distinct shingle hashes in ascending order, or null. Only for an index that stores sets, if there is no
    /// sketch, which has them.
    pub set: *const u64,
    /// Number of hashes in the set.
    pub set_len: usize,
    /// The fingerprint, for an index made with `twindex_params_codes`, the highest bits first; or null.
    pub code: *const u8,
    /// Length of the code in bytes.
    pub code_len: usize,
}

// SAFETY: the first field is the size, and numbers and raw pointers have no invalid bits.
unsafe impl Structure for Document {
    const FIRST: usize = 8 * 8;
}

/// Calls `then` with the document that a C caller passed.
///
/// # Safety
/// `document` is null or set as the header requires. The caller does not change it, nor the memory that it points to,
/// until this call returns.
pub(crate) unsafe fn with_document<T>(
    document: *const Document,
    then: impl FnOnce(twindex::Document<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: the caller passes a structure that begins with its size, or null.
    let given = unsafe { border::sized(document, "document") }?;
    // SAFETY: each pointer is null or valid, as the header requires.
    let (sketch, fingerprint, stamp, priority) = unsafe {
        (given.sketch.as_ref(), given.fingerprint.as_ref(), given.stamp.as_ref(), given.priority.as_ref())
    };
    // SAFETY: `value` is null or has `value_len` bytes.
    let value = unsafe { border::bytes(given.value, given.value_len, "value") }?;
    // SAFETY: `set` is null or has `set_len` numbers.
    let set = unsafe { border::values(given.set, given.set_len, "set") }?;
    let has_code = !given.code.is_null();
    // SAFETY: `code` is null or has `code_len` bytes.
    let code = has_code.then(|| unsafe { border::code(given.code, given.code_len) }).transpose()?;
    let document: twindex::Document<'_> = match (sketch, fingerprint, code) {
        (Some(sketch), None, None) => (&sketch.inner).into(),
        (None, Some(&fingerprint), None) => twindex::Fingerprint(fingerprint).into(),
        (None, None, Some(code)) => code.into(),
        _ => return Err(Error::invalid("document: set a sketch, a fingerprint or a code, one of them")),
    };
    let document = document.with_value(value).with_stamp(stamp.copied()).with_priority(priority.copied());
    let document = if given.set.is_null() { document } else { document.with_set(set) };
    then(if given.is_duplicate != 0 { document.as_duplicate() } else { document })
}

/// Runs `change` on the writer.
pub(crate) fn with(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    change: impl FnOnce(&mut twindex::Writer) -> Result<()>,
) -> Code {
    border::call(error, || change(&mut *given(writer, "writer")?.lock()?))
}

/// Returns the number for how a document was admitted, and the nearest document if it is near one.
pub(crate) fn hit_of(found: twindex::Admitted) -> Result<(Admitted, Option<Hit>)> {
    Ok(match found {
        twindex::Admitted::New => (Admitted::New, None),
        twindex::Admitted::Updated => (Admitted::Updated, None),
        twindex::Admitted::Known { near } => (Admitted::Known, Some(near)),
        twindex::Admitted::Duplicate(hit) => (Admitted::Duplicate, Some(hit)),
        twindex::Admitted::Expired => (Admitted::Expired, None),
        _ => return Err(Error::new(Code::Other, "an answer for which this version has no number")),
    })
}

/// Where the result of `twindex_writer_admit` is stored.
pub(crate) struct AdmittedSlots<'a> {
    admitted: Slot<'a, Admitted>,
    near: Option<Slot<'a, *mut Hits>>,
}

impl<'a> AdmittedSlots<'a> {
    pub(crate) fn new(
        admitted: Option<&'a mut MaybeUninit<Admitted>>,
        near: Option<&'a mut MaybeUninit<*mut Hits>>,
    ) -> Result<Self> {
        let near = near.map(|near| Slot::handle(Some(near), "near")).transpose()?;
        Ok(Self { admitted: Slot::new(admitted, Admitted::Expired, "admitted")?, near })
    }

    pub(crate) fn give(self, found: twindex::Admitted) -> Result<()> {
        let (admitted, hit) = hit_of(found)?;
        self.admitted.put(admitted);
        if let (Some(slot), Some(hit)) = (self.near, hit) {
            slot.give(Hits::new(vec![hit], false));
        }
        Ok(())
    }
}

/// Adds a document, or replaces the document with this key.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_put(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    document: *const Document,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let key = unsafe { writer.key(key_bytes, key_len) }?;
        // SAFETY: the caller passes a document as the header requires.
        unsafe { with_document(document, |document| Ok(writer.lock()?.put(key, document)?)) }
    })
}

/// Adds a document with this text in UTF-8, or replaces the document with this key. The text is sketched before the
/// writer is locked.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_put_text(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    text: *const u8,
    text_len: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes this many bytes, or null and 0.
        let (key, sketch) = unsafe { (writer.key(key_bytes, key_len)?, writer.sketch(text, text_len)?) };
        Ok(writer.lock()?.put(key, &sketch)?)
    })
}

/// Finds the nearest other document and adds this document, as one atomic step. Does not add a document that has
/// expired, nor a duplicate if `twindex_writer_drop_duplicates` was set. For `TWINDEX_ADMITTED_KNOWN` and
/// `TWINDEX_ADMITTED_DUPLICATE`, sets `near`, which may be null, to the nearest document, otherwise to null. The caller
/// must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_admit(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    document: *const Document,
    admitted: Option<&mut MaybeUninit<Admitted>>,
    near: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slots = AdmittedSlots::new(admitted, near)?;
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let key = unsafe { writer.key(key_bytes, key_len) }?;
        // SAFETY: the caller passes a document as the header requires.
        let found = unsafe { with_document(document, |document| Ok(writer.lock()?.admit(key, document)?)) }?;
        slots.give(found)
    })
}

/// As `twindex_writer_admit`, with a text in UTF-8. The text is sketched before the writer is locked.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_admit_text(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    text: *const u8,
    text_len: usize,
    admitted: Option<&mut MaybeUninit<Admitted>>,
    near: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slots = AdmittedSlots::new(admitted, near)?;
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes this many bytes, or null and 0.
        let (key, sketch) = unsafe { (writer.key(key_bytes, key_len)?, writer.sketch(text, text_len)?) };
        let found = writer.lock()?.admit(key, &sketch)?;
        slots.give(found)
    })
}

/// Deletes the document with this key, if it exists.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_delete(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let key = unsafe { writer.key(key_bytes, key_len) }?;
        Ok(writer.lock()?.delete(key)?)
    })
}

/// Commits all changes, durably unless `twindex_writer_durability` was set. Sets `commit`, which may be null, to the
/// commit number.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_commit(
    writer: Option<&Writer>,
    commit: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        let number = inner.commit()?;
        if let Some(commit) = commit {
            commit.write(number);
        }
        Ok(())
    })
}

/// As `twindex_writer_commit`; also stores up to 64 KiB of the caller's data with the commit, such as the position at
/// which to resume after a crash.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_commit_with(
    writer: Option<&Writer>,
    payload: *const u8,
    payload_len: usize,
    commit: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        // SAFETY: the caller passes `payload_len` bytes, or null and 0.
        let payload = unsafe { border::bytes(payload, payload_len, "payload") }?;
        let number = inner.commit_with(payload)?;
        if let Some(commit) = commit {
            commit.write(number);
        }
        Ok(())
    })
}

/// Makes all commits survive a crash of the machine.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_sync(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.sync()?))
}

/// Sets an option of the writer by name. The options are `memory`, `threads`, `memtable`, `stalls`, `one_segment`,
/// `logged`, `durability`, `drop_duplicates`, `near`, `unverified`, `estimated`, `max_jump`, `background_merges` and
/// `merge_rate`, as the functions of Rust's `WriterOptions`. A wrong value returns an error with the expected form.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_set(
    writer: Option<&Writer>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        // SAFETY: the caller passes strings, or null.
        let (name, value) = unsafe { (border::utf8(name, "name")?, border::utf8(value, "value")?) };
        let options = set_writer(inner.options(), name, value).map_err(Error::invalid)?;
        Ok(inner.set_options(options)?)
    })
}

/// Sets the durability of commits: one of `TWINDEX_DURABILITY_...`.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_durability(
    writer: Option<&Writer>,
    durability: u32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        let durability = match durability {
            TWINDEX_DURABILITY_SYNC => twindex::Durability::Sync,
            TWINDEX_DURABILITY_BATCH => twindex::Durability::Batch,
            TWINDEX_DURABILITY_NONE => twindex::Durability::None,
            other => return Err(Error::invalid(format!("durability is {other}, expected 0, 1 or 2"))),
        };
        Ok(inner.set_options(inner.options().durability(durability))?)
    })
}

/// Sets whether `twindex_writer_admit` omits duplicates instead of adding them. The default is 0 (false).
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_drop_duplicates(
    writer: Option<&Writer>,
    drop_duplicates: i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.set_options(inner.options().drop_duplicates(drop_duplicates != 0))?))
}

/// Sets whether `twindex_writer_admit` may decide by an estimated resemblance. If not (0, the default) and the index
/// stores no sets, it fails if it would omit or mark a document because of an estimate.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_estimated(
    writer: Option<&Writer>,
    estimated: i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.set_options(inner.options().estimated(estimated != 0))?))
}

/// Sets which documents are near for this writer, as `twindex_params_near` does for an index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_near(
    writer: Option<&Writer>,
    threshold: f64,
    within: i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.set_options(inner.options().near(near(threshold, within)?))?))
}

/// Sets the memory budget for the records of a batch, in bytes (default 1 GiB). A larger batch is written as several
/// segments, but still becomes visible as a whole.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_memory(
    writer: Option<&Writer>,
    bytes: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.set_options(inner.options().memory(bytes))?))
}

/// Frees a writer. `writer` may be null. Uncommitted changes are lost.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_free(writer: Option<Box<Writer>>) {
    border::free(writer);
}
