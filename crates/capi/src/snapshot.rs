//! The state of an index at one commit.

use std::mem::MaybeUninit;

use twindex::{Fingerprint, Query};

use crate::border::{self, Result, Slot, given, key, show_bytes, show_empty};
use crate::error::{Code, Error};
use crate::hits::Hits;
use crate::keys::Keys;
use crate::record::Record;
use crate::sketch::Sketch;

/// The state of an index at one commit, which never changes. Must be freed with `twindex_snapshot_free`.
#[derive(Debug)]
pub struct Snapshot {
    inner: twindex::Snapshot,
}

impl Snapshot {
    pub(crate) fn new(inner: twindex::Snapshot) -> Self {
        Self { inner }
    }
}

/// Returns all documents that share a band as hits, without comparing their resemblance with the threshold.
pub const TWINDEX_QUERY_UNVERIFIED: u32 = 1;
/// Estimates resemblances, even if the index stores sets.
pub const TWINDEX_QUERY_ESTIMATED: u32 = 2;
/// Excludes documents that are marked as duplicates.
pub const TWINDEX_QUERY_UNMARKED: u32 = 4;

/// Returns the number of live documents; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_documents(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.documents()))
}

/// Returns the number of the snapshot's commit; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_commit(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.generation()))
}

/// Returns the payload of the last `twindex_writer_commit_with`, and sets `len` to its length. Returns null if there is
/// none. The payload is valid until the snapshot is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_payload(
    snapshot: Option<&Snapshot>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match snapshot.and_then(|snapshot| snapshot.inner.payload()) {
        Some(payload) => show_bytes(payload, len),
        None => show_empty(len),
    }
}

/// Sets `contained` to whether there is a live document with this key.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_contains(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    contained: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(contained, false, "contained")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        slot.put(snapshot.contains(key(snapshot.params(), bytes)?)?);
        Ok(())
    })
}

/// Sets `record` to the stored record of the document with this key. If there is no such document, sets `record` to null
/// and returns `TWINDEX_CODE_OK`. The caller must free the record.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_get(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    record: Option<&mut MaybeUninit<*mut Record>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(record, "record")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        if let Some(found) = snapshot.get(key(snapshot.params(), bytes)?)? {
            slot.give(Record::new(found));
        }
        Ok(())
    })
}

/// Returns an iterator over all keys that begin with `prefix`, in ascending order; over all keys if the prefix is empty.
/// The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_keys(
    snapshot: Option<&Snapshot>,
    prefix: *const u8,
    prefix_len: usize,
    keys: Option<&mut MaybeUninit<*mut Keys>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(keys, "keys")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `prefix_len` bytes, or null and 0.
        let prefix = unsafe { border::bytes(prefix, prefix_len, "prefix") }?;
        let found = if prefix.is_empty() { snapshot.range::<&[u8]>(..) } else { snapshot.prefix(prefix) };
        slot.give(Keys::new(found?));
        Ok(())
    })
}

fn run(query: Query, limit: usize, slot: Slot<'_, *mut Hits>) -> Result<()> {
    let answers = query.limit(limit).run()?;
    slot.give(Hits::new(answers.hits, answers.has_more));
    Ok(())
}

/// Finds the documents that are near a sketch by the rule of the index. Returns at most the `limit` nearest ones. The
/// caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_near(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        run(given(snapshot, "snapshot")?.inner.near(&given(sketch, "sketch")?.inner), limit, slot)
    })
}

/// Finds documents whose resemblance to a sketch is at least `threshold`. Returns at most the `limit` nearest ones.
/// `flags` is 0 or a combination of `TWINDEX_QUERY_...`. With flags 0 and an index that stores sets, no such document is
/// missed, and a threshold below that of the index is refused. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_resembling(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    threshold: f64,
    flags: u32,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let known = TWINDEX_QUERY_UNVERIFIED | TWINDEX_QUERY_ESTIMATED | TWINDEX_QUERY_UNMARKED;
        if flags & !known != 0 {
            return Err(Error::invalid(format!("flags are {flags:#x}, this version knows {known:#x}")));
        }
        let sketch = &given(sketch, "sketch")?.inner;
        let mut query = given(snapshot, "snapshot")?.inner.resembling(sketch, threshold);
        if flags & TWINDEX_QUERY_UNVERIFIED != 0 {
            query = query.unverified();
        }
        if flags & TWINDEX_QUERY_ESTIMATED != 0 {
            query = query.estimated();
        }
        if flags & TWINDEX_QUERY_UNMARKED != 0 {
            query = query.unmarked();
        }
        run(query, limit, slot)
    })
}

/// Finds documents whose fingerprints differ from `fingerprint` in at most `within` bits. Returns at most the `limit`
/// nearest ones. No such document is missed. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_within(
    snapshot: Option<&Snapshot>,
    fingerprint: u64,
    within: u32,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        run(given(snapshot, "snapshot")?.inner.within(Fingerprint(fingerprint), within), limit, slot)
    })
}

/// Frees a snapshot. `snapshot` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_free(snapshot: Option<Box<Snapshot>>) {
    border::free(snapshot);
}
