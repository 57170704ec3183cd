//! Options for opening an index.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use twindex::Access;

use crate::access::{
    TWINDEX_ACCESS_LOAD, TWINDEX_ACCESS_MAP, TWINDEX_ACCESS_PLAIN_MAP, TWINDEX_ACCESS_READ, access,
};
use crate::border::{self, Structure, given};
use crate::error::{Code, Error};
use crate::index::{Index, open_by};

/// Called with `progress_data`, the number of log bytes that were read so far, and the total number.
pub type Progress = Option<extern "C" fn(data: *mut c_void, read: u64, all: u64)>;

/// Options for opening an index. Initialise with `TWINDEX_OPEN_INIT`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// How segment files are read: one of `TWINDEX_ACCESS_...`. Also applies to segments that are written later.
    pub access: u32,
    /// If not 0, opens this generation instead of the newest: the number in the name of a `MANIFEST-...`. Use it if the
    /// newest is damaged. The index then has no writer; `twindex_index_copy_to` makes an independent index from it.
    pub generation: u64,
    /// Called at most ten times a second, on the calling thread, if opening takes longer than a second; null for no
    /// calls.
    pub progress: Progress,
    /// Passed to `progress`.
    pub progress_data: *mut c_void,
}

// SAFETY: the first field is the size; numbers and raw pointers have no invalid bits, and a zero function pointer is
// `None`. A caller can store other bits in `progress` only by breaking the type of the field in C.
unsafe impl Structure for Open {
    const FIRST: usize = 40;
}

/// Opens an existing index with these options.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_index_open_with(
    path: *const c_char,
    options: *const Open,
    index: Option<&mut MaybeUninit<*mut Index>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    open_by(index, error, || {
        // SAFETY: the caller passes a string, or null, and a structure that begins with its size, or null.
        let (path, given) = unsafe { (border::path(path)?, border::sized(options, "options")?) };
        let mut options = twindex::Index::options().access(access(given.access)?);
        if given.generation != 0 {
            options = options.at_generation(given.generation);
        }
        Ok(match given.progress {
            Some(progress) => {
                options.progress(|read, all| progress(given.progress_data, read, all)).open(path)?
            }
            None => options.open(path)?,
        })
    })
}

/// Returns how the index reads segment files: one of `TWINDEX_ACCESS_...`; 0 if `index` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_index_access(index: Option<&Index>) -> u32 {
    given(index, "index").map_or(0, |index| match index.inner.access() {
        Access::PlainMap => TWINDEX_ACCESS_PLAIN_MAP,
        Access::Read => TWINDEX_ACCESS_READ,
        Access::Load => TWINDEX_ACCESS_LOAD,
        _ => TWINDEX_ACCESS_MAP,
    })
}
