//! The stored record of a document.

use std::mem::MaybeUninit;

use crate::border::{self, show_bytes, show_empty};

/// The stored record of a document. Free it with `twindex_record_free`.
#[derive(Debug)]
pub struct Record {
    inner: twindex::Record,
}

impl Record {
    pub(crate) fn new(inner: twindex::Record) -> Self {
        Self { inner }
    }
}

fn number(found: Option<u64>, out: Option<&mut MaybeUninit<u64>>) -> bool {
    if let Some(out) = out {
        out.write(found.unwrap_or(0));
    }
    found.is_some()
}

/// Sets `fingerprint`, if it is not null; false if the document has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_fingerprint(
    record: Option<&Record>,
    fingerprint: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.fingerprint).map(|found| found.0), fingerprint)
}

/// The value and its length; they live as long as the record.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_value(
    record: Option<&Record>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match record {
        Some(record) => show_bytes(&record.inner.value, len),
        None => show_empty(len),
    }
}

/// Sets `stamp`, if it is not null; false if the document has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_stamp(
    record: Option<&Record>,
    stamp: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.stamp), stamp)
}

/// Sets `priority`, if it is not null; false if the document has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_priority(
    record: Option<&Record>,
    priority: Option<&mut MaybeUninit<u64>>,
) -> bool {
    number(record.and_then(|record| record.inner.priority), priority)
}

/// Whether the document has the mark of a duplicate.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_is_duplicate(record: Option<&Record>) -> bool {
    record.is_some_and(|record| record.inner.is_duplicate)
}

/// Frees a record; null is allowed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_record_free(record: Option<Box<Record>>) {
    border::free(record);
}
