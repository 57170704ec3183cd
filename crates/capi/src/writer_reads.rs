//! Reading through a writer, which includes the uncommitted batch, and decisions about groups.

use std::mem::MaybeUninit;

use twindex::Key;

use crate::border::{self, Result, Slot, given};
use crate::error::{Code, Error};
use crate::groups::{Group, give};
use crate::hits::Hits;
use crate::record::Record;
use crate::writer::{Admitted, AdmittedSlots, Document, Writer, with_document};

/// Calls `then` with the locked writer and a key that a C caller passed.
///
/// # Safety
/// `bytes` is null, or points to `len` bytes that are not written to until the call returns.
unsafe fn at(
    (writer, bytes, len): (Option<&Writer>, *const u8, usize),
    then: impl FnOnce(&mut twindex::Writer, Key<'_>) -> Result<()>,
) -> Result<()> {
    let writer = given(writer, "writer")?;
    // SAFETY: the caller guarantees the same.
    let key = unsafe { writer.key(bytes, len) }?;
    then(&mut *writer.lock()?, key)
}

/// Sets `contained` to whether a document with this key exists, including uncommitted changes.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_contains(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    contained: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(contained, false, "contained")?;
        let find = |inner: &mut twindex::Writer, key: Key<'_>| {
            slot.put(inner.contains(key)?);
            Ok(())
        };
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        unsafe { at((writer, key_bytes, key_len), find) }
    })
}

/// As `twindex_snapshot_get`, including uncommitted changes. The caller must free the record.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_get(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    record: Option<&mut MaybeUninit<*mut Record>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(record, "record")?;
        let find = |inner: &mut twindex::Writer, key: Key<'_>| {
            if let Some(found) = inner.get(key)? {
                slot.give(Record::new(found));
            }
            Ok(())
        };
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        unsafe { at((writer, key_bytes, key_len), find) }
    })
}

/// Finds the documents that are near a document by the rule of this writer, including uncommitted changes. Returns at
/// most the `limit` nearest ones. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_find_near(
    writer: Option<&Writer>,
    document: *const Document,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes a document as the header requires.
        let found = unsafe { with_document(document, |document| Ok(writer.lock()?.near(document, limit)?)) }?;
        slot.give(Hits::new(found, false));
        Ok(())
    })
}

/// As `twindex_snapshot_leader`, including uncommitted changes. The caller must free the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_leader(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    max_queries: u64,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(group, "group")?;
        let find = |inner: &mut twindex::Writer, key: Key<'_>| {
            give(slot, inner.leader(key, max_queries)?, Group::of_leader)
        };
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        unsafe { at((writer, key_bytes, key_len), find) }
    })
}

/// As `twindex_snapshot_group`, including uncommitted changes. The caller must free the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_group(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    max_queries: u64,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(group, "group")?;
        let find = |inner: &mut twindex::Writer, key: Key<'_>| {
            give(slot, inner.group(key, max_queries)?, Group::of_members)
        };
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        unsafe { at((writer, key_bytes, key_len), find) }
    })
}

/// As `twindex_writer_admit`; also sets `group` to the leader and the size of the document's group, including
/// uncommitted changes, or to null for a duplicate that was omitted. If the group takes more than `max_queries`
/// queries, returns `TWINDEX_CODE_UNDECIDED` after the document was admitted; `admitted` and `near` are then set. The
/// caller must free the hits and the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_admit_grouped(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    document: *const Document,
    max_queries: u64,
    admitted: Option<&mut MaybeUninit<Admitted>>,
    near: Option<&mut MaybeUninit<*mut Hits>>,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slots = AdmittedSlots::new(admitted, near)?;
        let slot = Slot::handle(group, "group")?;
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let key = unsafe { writer.key(key_bytes, key_len) }?;
        // SAFETY: the caller passes a document as the header requires.
        let (found, membership) = unsafe {
            with_document(document, |document| {
                Ok(writer.lock()?.admit_grouped(key, document, max_queries)?)
            })
        }?;
        slots.give(found)?;
        give(slot, membership, Group::of_membership)
    })
}

/// As `twindex_writer_admit`, but compares the document only with documents of the same value.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_admit_inside(
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
        let found =
            unsafe { with_document(document, |document| Ok(writer.lock()?.admit_inside(key, document)?)) }?;
        slots.give(found)
    })
}

/// Removes the mark of a document. Sets `changed`, which may be null, to false if there is no such document, or if it
/// has none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_unmark(
    writer: Option<&Writer>,
    key_bytes: *const u8,
    key_len: usize,
    changed: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = changed.map(|changed| Slot::new(Some(changed), false, "changed")).transpose()?;
        let unmark = |inner: &mut twindex::Writer, key: Key<'_>| {
            let has_changed = inner.unmark(key)?;
            if let Some(slot) = slot {
                slot.put(has_changed);
            }
            Ok(())
        };
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        unsafe { at((writer, key_bytes, key_len), unmark) }
    })
}
