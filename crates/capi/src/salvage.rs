//! Recovers the intact documents of a damaged index.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;

use twindex::{KeyBuf, RealVfs, Vfs};

use crate::border::{self, Slot, show_empty, show_key};
use crate::error::{Code, Error};

/// The result of `twindex_salvage`. Must be freed with `twindex_salvaged_free`.
#[derive(Debug)]
pub struct Salvaged {
    result: twindex::Salvage,
    paths: Vec<CString>,
    problems: Vec<CString>,
    lost_keys: Vec<KeyBuf>,
}

fn string(text: &impl ToString) -> CString {
    CString::new(text.to_string().replace('\0', "")).unwrap_or_default()
}

/// Recovers the readable documents of the index at `path` into a new index at `out`. Changes nothing at `path`. A
/// document is lost if any part of it cannot be read. The caller must free the result.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_salvage(
    path: *const c_char,
    out: *const c_char,
    salvaged: Option<&mut MaybeUninit<*mut Salvaged>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(salvaged, "salvaged")?;
        // SAFETY: the caller passes strings, or null.
        let (path, out) = unsafe { (border::path(path)?, border::path(out)?) };
        let vfs = Arc::new(RealVfs) as Arc<dyn Vfs>;
        let result = twindex::salvage(&vfs, &path, &out)?;
        let of_files = result.files.iter().flat_map(|file| &file.problems);
        slot.give(Salvaged {
            paths: result.files.iter().map(|file| string(&file.path.display())).collect(),
            problems: result.problems.iter().chain(of_files).map(string).collect(),
            lost_keys: result.files.iter().flat_map(|file| &file.lost_keys).cloned().collect(),
            result,
        });
        Ok(())
    })
}

/// Returns whether no problem was found, so that the new index has all documents of the old one.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_is_whole(salvaged: Option<&Salvaged>) -> bool {
    border::ask(false, || salvaged.is_some_and(|salvaged| salvaged.result.is_whole()))
}

/// Returns the number of documents in the new index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_documents(salvaged: Option<&Salvaged>) -> u64 {
    salvaged.map_or(0, |salvaged| salvaged.result.documents)
}

/// Returns the number of documents that are known to be lost.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_lost(salvaged: Option<&Salvaged>) -> u64 {
    border::ask(0, || salvaged.map_or(0, |salvaged| salvaged.result.lost()))
}

/// Returns the number of documents in the new index that a commit after `twindex_salvaged_known_until` may have deleted
/// or replaced.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_doubtful(salvaged: Option<&Salvaged>) -> u64 {
    salvaged.map_or(0, |salvaged| salvaged.result.doubtful)
}

/// Returns the last commit up to which all deletions and replacements are known; 0 if all of them are known.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_known_until(salvaged: Option<&Salvaged>) -> u64 {
    salvaged.and_then(|salvaged| salvaged.result.known_until).unwrap_or(0)
}

/// Returns the generation whose manifest was used; 0 if none could be read.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_generation(salvaged: Option<&Salvaged>) -> u64 {
    salvaged.and_then(|salvaged| salvaged.result.generation).unwrap_or(0)
}

/// Returns the path of file `at`, counted from 0, and sets `saved` and `lost`, which may be null, to the numbers of its
/// recovered and lost documents. Returns null if there is no such file. The string is valid until the result is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_file(
    salvaged: Option<&Salvaged>,
    at: usize,
    saved: Option<&mut MaybeUninit<u64>>,
    lost: Option<&mut MaybeUninit<u64>>,
) -> *const c_char {
    let found = salvaged.and_then(|salvaged| salvaged.result.files.get(at).zip(salvaged.paths.get(at)));
    if let Some(saved) = saved {
        saved.write(found.map_or(0, |(file, _)| file.saved));
    }
    if let Some(lost) = lost {
        lost.write(found.map_or(0, |(file, _)| file.lost));
    }
    found.map_or(std::ptr::null(), |(_, path)| path.as_ptr())
}

/// Returns problem `at`, counted from 0; null if there is no such problem. The string is valid until the result is
/// freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_problem(salvaged: Option<&Salvaged>, at: usize) -> *const c_char {
    salvaged.and_then(|salvaged| salvaged.problems.get(at)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// Returns the key of lost document `at`, counted from 0, of those whose keys could be read, and sets `len` to its
/// length. Returns null if there is no such key. It is valid until the result is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_lost_key(
    salvaged: Option<&Salvaged>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match salvaged.and_then(|salvaged| salvaged.lost_keys.get(at)) {
        Some(key) => show_key(key, len),
        None => show_empty(len),
    }
}

/// As `twindex_salvaged_lost_key`, for the keys of documents that may have been deleted or replaced.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_doubtful_key(
    salvaged: Option<&Salvaged>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match salvaged.and_then(|salvaged| salvaged.result.doubtful_keys.get(at)) {
        Some(key) => show_key(key, len),
        None => show_empty(len),
    }
}

/// Frees the result. `salvaged` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_salvaged_free(salvaged: Option<Box<Salvaged>>) {
    border::free(salvaged);
}
