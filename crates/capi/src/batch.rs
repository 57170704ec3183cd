//! The results of calls for many items, in packed form.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use twindex::{Hit, KeyBuf, Record};

use crate::border::{self, Structure, given};
use crate::error::{Code, Error};

/// The document has a fingerprint.
pub const TWINDEX_HAS_FINGERPRINT: u8 = 1;
/// The document has a value.
pub const TWINDEX_HAS_VALUE: u8 = 2;
/// The document has a stamp.
pub const TWINDEX_HAS_STAMP: u8 = 4;
/// The document has a priority.
pub const TWINDEX_HAS_PRIORITY: u8 = 8;
/// The document is marked as a duplicate.
pub const TWINDEX_IS_DUPLICATE: u8 = 16;

/// The results of a call for many items. Must be freed with `twindex_batch_free`.
#[derive(Debug, Default)]
pub struct Batch {
    codes: Vec<i32>,
    messages: BTreeMap<usize, CString>,
    admitted: Vec<u8>,
    starts: Vec<u64>,
    bytes: Vec<u8>,
    offsets: Vec<u64>,
    distances: Vec<i32>,
    resemblances: Vec<f64>,
    flags: Vec<u8>,
    fingerprints: Vec<u64>,
    stamps: Vec<u64>,
    priorities: Vec<u64>,
    document_codes: Vec<u8>,
    code_len: usize,
}

/// The arrays of a batch. Each is valid until the batch is freed, and null if the call has no such results. Initialise
/// with `TWINDEX_ARRAYS_INIT`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arrays {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// The number of items.
    pub items: usize,
    /// For each item its `twindex_code`; `twindex_batch_message` has the message of an error.
    pub codes: *const i32,
    /// For each item its `twindex_admitted`. Only of `twindex_writer_admit_many`.
    pub admitted: *const u8,
    /// The results of item i are the entries `starts[i]` to `starts[i + 1] - 1`.
    pub starts: *const u64,
    /// The number of entries of all items.
    pub entries: usize,
    /// The bytes of all entries: keys of hits, keys, or values of documents.
    pub bytes: *const u8,
    /// The bytes of entry i are those from `offsets[i]` to `offsets[i + 1] - 1`.
    pub offsets: *const u64,
    /// For each hit, the distance in bits; -1 if it is unknown.
    pub distances: *const i32,
    /// For each hit, the resemblance from 0 to 1; -1 if it is unknown.
    pub resemblances: *const f64,
    /// For each document, a combination of `TWINDEX_HAS_...` and `TWINDEX_IS_DUPLICATE`. Only of
    /// `twindex_snapshot_get_many`, as the arrays that follow.
    pub flags: *const u8,
    /// For each document, its fingerprint of 64 bits; 0 if it has none.
    pub fingerprints: *const u64,
    /// For each document, its stamp; 0 if it has none.
    pub stamps: *const u64,
    /// For each document, its priority; 0 if it has none.
    pub priorities: *const u64,
    /// For each document, its fingerprint of `code_len` bytes; zeros if it has none. Only of an index of such fingerprints.
    pub document_codes: *const u8,
    /// Length of each of these fingerprints in bytes; 0 if there are none.
    pub code_len: usize,
}

// SAFETY: the first field is the size, and numbers and raw pointers have no invalid bits.
unsafe impl Structure for Arrays {
    const FIRST: usize = 14 * 8;
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { starts: vec![0], offsets: vec![0], ..Self::default() }
    }

    fn end_entry(&mut self) {
        self.offsets.push(self.bytes.len() as u64);
    }

    /// Adds an entry to the current item.
    pub(crate) fn add_key(&mut self, key: &KeyBuf) {
        match key {
            KeyBuf::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            KeyBuf::U64(number) => self.bytes.extend_from_slice(&number.to_ne_bytes()),
        }
        self.end_entry();
    }

    /// Adds a hit to the current item.
    pub(crate) fn add_hit(&mut self, hit: &Hit) {
        self.add_key(&hit.key);
        self.distances.push(hit.distance.and_then(|bits| i32::try_from(bits).ok()).unwrap_or(-1));
        self.resemblances.push(hit.resemblance.map_or(-1.0, |found| found.value()));
    }

    /// Adds a document to the current item.
    pub(crate) fn add_record(&mut self, record: &Record) {
        self.bytes.extend_from_slice(record.value.as_deref().unwrap_or_default());
        self.end_entry();
        let has = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        self.flags.push(
            has(record.fingerprint.is_some() || record.code.is_some(), TWINDEX_HAS_FINGERPRINT)
                | has(record.value.is_some(), TWINDEX_HAS_VALUE)
                | has(record.stamp.is_some(), TWINDEX_HAS_STAMP)
                | has(record.priority.is_some(), TWINDEX_HAS_PRIORITY)
                | has(record.is_duplicate, TWINDEX_IS_DUPLICATE),
        );
        self.fingerprints.push(record.fingerprint.map_or(0, |found| found.0));
        self.stamps.push(record.stamp.unwrap_or(0));
        self.priorities.push(record.priority.unwrap_or(0));
        if let Some(code) = record.code {
            self.code_len = code.bits() / 8; // of all documents of the index
            self.document_codes.resize(self.code_len * (self.flags.len() - 1), 0);
            self.document_codes.extend(code.to_bytes());
        }
    }

    /// Sets how the current item was admitted.
    pub(crate) fn add_admitted(&mut self, admitted: u8) {
        self.admitted.push(admitted);
    }

    /// Ends the current item.
    pub(crate) fn end(&mut self, done: Result<(), Error>) {
        self.document_codes.resize(self.code_len * self.flags.len(), 0);
        let code = match done {
            Ok(()) => Code::Ok,
            Err(error) => {
                let code = error.code();
                self.messages.insert(self.codes.len(), error.into_message());
                code
            }
        };
        self.codes.push(code as i32);
        self.starts.push(self.offsets.len() as u64 - 1);
    }
}

fn start<T>(values: &[T]) -> *const T {
    if values.is_empty() { std::ptr::null() } else { values.as_ptr() }
}

/// Fills `arrays`, whose `struct_size` must be set.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_batch_arrays(
    batch: Option<&Batch>,
    arrays: *mut Arrays,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let batch = given(batch, "batch")?;
        let filled = Arrays {
            struct_size: size_of::<Arrays>(),
            items: batch.codes.len(),
            codes: start(&batch.codes),
            admitted: start(&batch.admitted),
            starts: start(&batch.starts),
            entries: batch.offsets.len() - 1,
            bytes: start(&batch.bytes),
            offsets: start(&batch.offsets),
            distances: start(&batch.distances),
            resemblances: start(&batch.resemblances),
            flags: start(&batch.flags),
            fingerprints: start(&batch.fingerprints),
            stamps: start(&batch.stamps),
            priorities: start(&batch.priorities),
            document_codes: start(&batch.document_codes),
            code_len: batch.code_len,
        };
        // SAFETY: the caller passes a writable structure that begins with its size, or null.
        unsafe { border::fill(arrays, &filled, "arrays") }
    })
}

/// Returns the message of the error of item `at`, counted from 0, in UTF-8; an empty string if it succeeded. The string
/// is valid until the batch is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_batch_message(batch: Option<&Batch>, at: usize) -> *const c_char {
    batch.and_then(|batch| batch.messages.get(&at)).map_or(c"", |message| message).as_ptr()
}

/// Frees a batch. `batch` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_batch_free(batch: Option<Box<Batch>>) {
    border::free(batch);
}
