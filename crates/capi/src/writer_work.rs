//! Work of a writer besides documents and commits: prefixes, rollback, segments and merges.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::border;
use crate::cancel::{self, Cancel};
use crate::error::{Code, Error};
use crate::writer::{Writer, with};

fn put<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Removes all documents whose keys begin with `prefix`, including uncommitted ones, and sets `removed`, which may be
/// null, to their number. An empty prefix removes all documents.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_delete_prefix(
    writer: Option<&Writer>,
    prefix: *const u8,
    prefix_len: usize,
    removed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        // SAFETY: the caller passes `prefix_len` bytes, or null and 0.
        let prefix = unsafe { border::bytes(prefix, prefix_len, "prefix") }?;
        put(removed, inner.delete_prefix(prefix)?);
        Ok(())
    })
}

/// Adds `count` fingerprints, each with its numeric key, faster than single calls if commits write segments. Only for
/// an index that stores nothing but fingerprints.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_put_fingerprints(
    writer: Option<&Writer>,
    keys: *const u64,
    fingerprints: *const u64,
    count: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        // SAFETY: the caller passes `count` numbers each, or null and 0.
        let (keys, fingerprints) = unsafe {
            (border::values(keys, count, "keys")?, border::values(fingerprints, count, "fingerprints")?)
        };
        Ok(inner.put_fingerprints(keys, fingerprints)?)
    })
}

/// Drops all uncommitted changes.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_rollback(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.rollback()?))
}

/// Writes the documents of the log to a segment. Commit first.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_flush(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.flush()?))
}

/// Adds the documents of `count` finished segment files to the batch: see `twindex_snapshot_segment`. A document
/// replaces the one with its key. Sets `documents`, which may be null, to their number.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_ingest(
    writer: Option<&Writer>,
    segments: *const *const c_char,
    count: usize,
    documents: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        // SAFETY: the caller passes `count` strings, or null and 0.
        let segments = unsafe { border::paths(segments, count, "segments") }?;
        put(documents, inner.ingest(&segments)?);
        Ok(())
    })
}

/// Merges all segments and the batch into one segment, and commits it. If `cancel` is not null, it can end the work
/// early with `TWINDEX_CODE_CANCELLED`; the batch must then be empty. Sets `commit`, which may be null, to the commit
/// number.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_compact(
    writer: Option<&Writer>,
    cancel: Option<&Cancel>,
    commit: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        let number = match cancel {
            None => inner.compact()?,
            Some(_) => inner.compact_until(&cancel::of(cancel))?,
        };
        put(commit, number);
        Ok(())
    })
}

/// Runs the next due merge of segments on the calling thread. Sets `merged`, which may be null, to false if none is
/// due. `cancel` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_merge_step(
    writer: Option<&Writer>,
    cancel: Option<&Cancel>,
    merged: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        put(merged, inner.merge_step_until(&cancel::of(cancel))?);
        Ok(())
    })
}

/// Waits for the merge in the background, if one is running, and uses its result.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_wait_for_merge(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| Ok(inner.wait_for_merge()?))
}

/// Returns the error that stopped merges in the background, such as a full disk, and lets them begin again; returns
/// `TWINDEX_CODE_OK` if there is none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_take_merge_failure(
    writer: Option<&Writer>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| inner.take_merge_failure().map_or(Ok(()), |failure| Err(failure.into())))
}

/// As `twindex_index_gc`, by this writer.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_writer_gc(
    writer: Option<&Writer>,
    bytes: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    with(writer, error, |inner| {
        put(bytes, inner.gc()?);
        Ok(())
    })
}
