//! The stored record of a document.

use std::mem::MaybeUninit;

use crate::border::{self, show_bytes, show_empty, show_numbers};

/// The stored record of a document. Must be freed with `twindex_record_free`.
#[derive(Debug)]
pub struct Record {
    inner: twindex::Record,
    /// The bytes of the code; empty if the index stores none.
    code: Vec<u8>,
}

impl Record {
    pub(crate) fn new(inner: twindex::Record) -> Self {
        let code = inner.code.map_or_else(Vec::new, |code| code.to_bytes());
        Self { inner, code }
    }
}

fn number(found: Option<u64>, out: Option<&mut MaybeUninit<u64>>) -> bool {
    if let Some(out) = out {
        out.write(found.unwrap_or(0));
    }
    found.is_some()
}

/// Sets `fingerprint`, which may be null, to the fingerprint of the document. Returns false if it has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_fingerprint(
    record: Option<&Record>,
    fingerprint: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.fingerprint).map(|found| found.0), fingerprint)
}

/// Returns the fingerprint of the document in an index made with `twindex_params_codes`, and sets `len` to its number of
/// bytes: 0 in another index. It is valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_code(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match record.filter(|record| !record.code.is_empty()) {
        Some(record) => show_bytes(&record.code, len),
        None => show_empty(len),
    }
}

/// Returns the value of the document, and sets `len` to its length, which may be 0. Returns null if the index stores no
/// values. The value is valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_value(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match record.and_then(|record| record.inner.value.as_ref()) {
        Some(value) => show_bytes(value, len),
        None => show_empty(len),
    }
}

/// Sets `stamp`, which may be null, to the stamp of the document. Returns false if it has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_stamp(
    record: Option<&Record>,
    stamp: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.stamp), stamp)
}

/// Sets `priority`, which may be null, to the priority of the document. Returns false if it has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_priority(
    record: Option<&Record>,
    priority: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.priority), priority)
}

/// Returns whether the document is marked as a duplicate.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_is_duplicate(record: Option<&Record>) -> bool {
    record.is_some_and(|record| record.inner.is_duplicate)
}

/// Returns the distinct shingle hashes of the document in ascending order, and sets `len` to their number: 0 if the
/// index stores no sets. They are valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_set(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    show_numbers(record.map(|record| record.inner.set.as_slice()), len)
}

/// Returns the packed signature, and sets `len` to its number of bytes: 0 if the index stores no signatures. It is
/// valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_signature(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match record {
        Some(record) => show_bytes(&record.inner.signature, len),
        None => show_empty(len),
    }
}

/// Returns the smallest sampled hashes of the document, and sets `len` to their number: 0 if the index stores none.
/// They are valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_bottom(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    show_numbers(record.map(|record| record.inner.bottom.as_slice()), len)
}

/// Returns the sampled hashes of the document that are divisible by the modulus of the index, and sets `len` to their
/// number: 0 if the index stores none. They are valid until the record is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_modular(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u64 {
    show_numbers(record.map(|record| record.inner.modular.as_slice()), len)
}

/// Frees a record. `record` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_free(record: Option<Box<Record>>) {
    border::free(record);
}
