//! Copies of indexes, and indexes that are made from others.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use twindex::OnConflict;

use crate::border::{self, Structure, given};
use crate::error::{Code, Error};
use crate::index::Index;
use crate::params::Params;

/// A key that has different records in several indexes is an error.
pub const TWINDEX_CONFLICT_REFUSE: u32 = 0;
/// Of different records of a key, the one of the first index is kept.
pub const TWINDEX_CONFLICT_FIRST: u32 = 1;
/// Of different records of a key, the one of the last index is kept.
pub const TWINDEX_CONFLICT_LAST: u32 = 2;

/// The result of `twindex_index_merge`. Initialise with `TWINDEX_MERGED_INIT`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Merged {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// Number of documents in the new index.
    pub documents: u64,
    /// Number of keys that several indexes contain with the same record.
    pub repeated: u64,
    /// Number of keys that several indexes contain with different records.
    pub conflicts: u64,
}

// SAFETY: the first field is the size, and all fields are numbers, for which zero is a value.
unsafe impl Structure for Merged {
    const FIRST: usize = 4 * 8;
}

/// Copies the current state of the index to a new directory: a backup, while a writer may continue. Files are linked if
/// the file system supports it. Sets `commit`, which may be null, to the number of the copied commit. To restore, open
/// the copy, or copy it back to the path of the index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_copy_to(
    index: Option<&Index>,
    path: *const c_char,
    commit: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let index = given(index, "index")?;
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        let number = index.inner.copy_to(path)?;
        if let Some(commit) = commit {
            commit.write(number);
        }
        Ok(())
    })
}

/// Merges `count` indexes with the same parameters into a new index at `path`, with a single segment. The indexes are
/// not changed. `on_conflict` is one of `TWINDEX_CONFLICT_...`, `memory` a number of bytes, `threads` a number of
/// threads or 0 for all cores. Fills `merged`, which may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_merge(
    path: *const c_char,
    indexes: *const *const Index,
    count: usize,
    on_conflict: u32,
    memory: usize,
    threads: usize,
    merged: *mut Merged,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        // SAFETY: the caller passes a string, or null, and `count` pointers, or null and 0.
        let (path, indexes) = unsafe { (border::path(path)?, border::values(indexes, count, "indexes")?) };
        let shard = |&one: &*const Index| {
            // SAFETY: each pointer is a handle that is not freed before the call returns, or null.
            Ok(given(unsafe { one.as_ref() }, "an index")?.inner.clone())
        };
        let shards: Vec<twindex::Index> = indexes.iter().map(shard).collect::<border::Result<_>>()?;
        let on_conflict = match on_conflict {
            TWINDEX_CONFLICT_REFUSE => OnConflict::Refuse,
            TWINDEX_CONFLICT_FIRST => OnConflict::First,
            TWINDEX_CONFLICT_LAST => OnConflict::Last,
            other => return Err(Error::invalid(format!("on_conflict is {other}, expected 0, 1 or 2"))),
        };
        if !merged.is_null() {
            // SAFETY: the caller passes a structure that begins with its size. It is refused before the merge.
            unsafe { border::sized(merged.cast_const(), "merged") }?;
        }
        let done = match threads {
            0 => twindex::Index::merge(path, &shards, on_conflict, memory)?,
            threads => twindex::Index::merge_on_threads(path, &shards, on_conflict, memory, threads)?,
        };
        if merged.is_null() {
            return Ok(());
        }
        let filled = Merged {
            struct_size: size_of::<Merged>(),
            documents: done.documents,
            repeated: done.repeated,
            conflicts: done.conflicts,
        };
        // SAFETY: the caller passes a writable structure that begins with its size.
        unsafe { border::fill(merged, &filled, "merged") }
    })
}

/// Creates an index at `path` from `count` finished segment files, which other indexes with these parameters have
/// written: see `twindex_snapshot_segment`. No key may be in two segments. The files are linked, or copied. Sets
/// `documents`, which may be null, to the number of documents.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_adopt(
    path: *const c_char,
    params: Option<&Params>,
    segments: *const *const c_char,
    count: usize,
    documents: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        // SAFETY: the caller passes strings, or null.
        let (path, segments) = unsafe { (border::path(path)?, border::paths(segments, count, "segments")?) };
        let (params, table) = given(params, "params")?.build_with_table()?;
        let number = match table {
            Some(table) => twindex::Index::adopt_with_idf(path, params, &segments, &table)?,
            None => twindex::Index::adopt(path, params, &segments)?,
        };
        if let Some(documents) = documents {
            documents.write(number);
        }
        Ok(())
    })
}
