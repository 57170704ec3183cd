//! The boundary to C: converts pointers from C to references and slices, and panics to errors.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use twindex::sketch::CODE_WIDTHS;
use twindex::{Key, KeyBuf};

pub(crate) use crate::catch::{ask, free};
use crate::error::{Code, Error};

/// The result of the body of an exported function. [`call`] converts it to a code.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Runs the body of an exported function and returns its code. Unless `error` is null, sets `*error`: to null on
/// success, otherwise to the error of the body, or to an error that describes its panic.
pub(crate) fn call(error: Option<&mut MaybeUninit<*mut Error>>, body: impl FnOnce() -> Result<()>) -> Code {
    // Unwind-safe: mutable handles are in a mutex, and a panic during a change poisons the mutex.
    let ended = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
    let (code, given) = match ended {
        Ok(()) => (Code::Ok, std::ptr::null_mut()),
        Err(failed) => {
            let code = failed.code();
            (code, if error.is_some() { Box::into_raw(Box::new(failed)) } else { std::ptr::null_mut() })
        }
    };
    if let Some(error) = error {
        error.write(given);
    }
    code
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Error::new(Code::Panicked, format!("a defect of twindex, please report it: {text}"))
}

/// Returns the handle, or an error that names the argument if it is null.
pub(crate) fn given<'a, T>(handle: Option<&'a T>, name: &str) -> Result<&'a T> {
    handle.ok_or_else(|| Error::invalid(format!("{name} is null")))
}

/// Locks a handle. Returns an error if an earlier call on the handle panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    mutex.lock().map_err(|_| {
        Error::new(
            Code::Panicked,
            "an earlier call on this handle failed by a defect of twindex: free the handle",
        )
    })
}

/// An output argument. It is set to an empty value (null or zero) at first, and to the result if the call succeeds.
#[derive(Debug)]
pub(crate) struct Slot<'a, T>(&'a mut MaybeUninit<T>);

impl<'a, T> Slot<'a, T> {
    pub(crate) fn new(out: Option<&'a mut MaybeUninit<T>>, empty: T, name: &str) -> Result<Self> {
        let out =
            out.ok_or_else(|| Error::invalid(format!("{name} is null: there is no place for the result")))?;
        out.write(empty);
        Ok(Self(out))
    }

    pub(crate) fn put(self, value: T) {
        self.0.write(value);
    }
}

impl<'a, T> Slot<'a, *mut T> {
    pub(crate) fn handle(out: Option<&'a mut MaybeUninit<*mut T>>, name: &str) -> Result<Self> {
        Self::new(out, std::ptr::null_mut(), name)
    }

    /// Stores a new handle that contains `value`. The C caller then owns the handle and must free it.
    pub(crate) fn give(self, value: T) {
        self.put(Box::into_raw(Box::new(value)));
    }
}

/// Converts bytes that a C caller passed to a slice. `bytes` may be null if `len` is 0.
///
/// # Safety
/// `bytes` is null, or points to `len` readable bytes that are not written to until the call returns.
pub(crate) unsafe fn bytes<'a>(bytes: *const u8, len: usize, name: &str) -> Result<&'a [u8]> {
    // SAFETY: the caller guarantees the same, and all bytes are valid.
    unsafe { values(bytes, len, name) }
}

/// A plain structure of the interface, whose first field is its size. Later versions may add fields at its end.
///
/// # Safety
/// The first field is a `usize`, all bit patterns of all fields are valid, and zero bytes mean that a field is not set.
pub(crate) unsafe trait Structure: Copy {
    /// The size of the structure in the first version of the interface that had it.
    const FIRST: usize;
}

/// Returns the size that the caller has stored in a structure, if this library can use the structure.
///
/// # Safety
/// As [`sized`].
unsafe fn size_of_given<T: Structure>(value: *const T, name: &str) -> Result<usize> {
    if value.is_null() || !value.is_aligned() {
        return Err(Error::invalid(format!("{name} is null or not aligned")));
    }
    // SAFETY: `value` is aligned for `T`, whose first field is a `usize` that the caller has set.
    let size = unsafe { value.cast::<usize>().read() };
    if size < T::FIRST || isize::try_from(size).is_err() {
        return Err(Error::invalid(format!(
            "struct_size of {name} is {size}, expected {} or more: begin with its INIT",
            T::FIRST
        )));
    }
    Ok(size)
}

/// Reads the fingerprint of an index of codes that a C caller passed.
///
/// # Safety
/// `bytes` is null, or points to `len` bytes that are not written to until the call returns.
pub(crate) unsafe fn code(code: *const u8, len: usize) -> Result<twindex::Code> {
    // SAFETY: the caller guarantees the same.
    let code = unsafe { bytes(code, len, "code") }?;
    twindex::Code::of_bytes(code).ok_or_else(|| not_a_code(len))
}

/// Reads `count` fingerprints of `len` bytes each, stored one after the other.
///
/// # Safety
/// `codes` is null, or points to `count * len` bytes that are not written to until the call returns.
pub(crate) unsafe fn codes(codes: *const u8, len: usize, count: usize) -> Result<Vec<twindex::Code>> {
    if count > 0 && !CODE_WIDTHS.iter().any(|&bits| bits / 8 == len) {
        return Err(not_a_code(len));
    }
    let all = len.checked_mul(count).ok_or_else(|| Error::invalid("codes: more bytes than memory"))?;
    // SAFETY: the caller guarantees the same.
    let codes = unsafe { bytes(codes, all, "codes") }?;
    let codes = codes.chunks_exact(len.max(1)).map(twindex::Code::of_bytes);
    codes.collect::<Option<_>>().ok_or_else(|| not_a_code(len))
}

fn not_a_code(len: usize) -> Error {
    Error::invalid(format!("code: expected 8, 16, 24, 32, 48 or 64 bytes, found {len}"))
}

/// Copies a plain structure that a C caller passed. A program that was compiled with an older header passes a shorter
/// structure: the fields that it lacks become zero. A newer program passes a longer one: if it has set a field that
/// this version lacks, returns an error.
///
/// # Safety
/// `value` is null, or points to a structure whose first field is its size, all of whose bytes are readable,
/// and that is not written to until the call returns. The pointers in it need a separate proof before they are used.
pub(crate) unsafe fn sized<T: Structure>(value: *const T, name: &str) -> Result<T> {
    // SAFETY: the caller guarantees the same.
    let size = unsafe { size_of_given(value, name) }?;
    let known = size.min(size_of::<T>());
    // SAFETY: the structure has `size` readable bytes, by its first field, and `u8` needs no alignment.
    let unknown = unsafe { std::slice::from_raw_parts(value.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(Error::new(
            Code::Unsupported,
            format!("{name} has set a field that this version of twindex does not know"),
        ));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: `value` has `known` readable bytes, and `copy` has as many; they do not overlap, because `copy` is new.
    unsafe { std::ptr::copy_nonoverlapping(value.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known) };
    // SAFETY: all bytes are set, and `Structure` guarantees that all bit patterns are valid.
    Ok(unsafe { copy.assume_init() })
}

/// Copies a plain structure to a caller, without the fields that the caller's version lacks. Its size field stays.
///
/// # Safety
/// As [`sized`], but the structure is writable, and no one else uses it until the call returns.
pub(crate) unsafe fn fill<T: Structure>(to: *mut T, from: &T, name: &str) -> Result<()> {
    // SAFETY: the caller guarantees the same.
    let size = unsafe { size_of_given(to.cast_const(), name) }?;
    let (field, known) = (size_of::<usize>(), size.min(size_of::<T>()));
    // SAFETY: both structures have `known` bytes, which begin with the size field, and they do not overlap: `from` is
    // of this crate.
    unsafe {
        let source = std::ptr::from_ref(from).cast::<u8>().add(field);
        std::ptr::copy_nonoverlapping(source, to.cast::<u8>().add(field), known - field);
    }
    Ok(())
}

/// Converts an array that a C caller passed to a slice. `values` may be null if `len` is 0.
///
/// # Safety
/// `values` is null, or points to `len` readable values that are not written to until the call returns. All
/// bit patterns of `T` are valid.
pub(crate) unsafe fn values<'a, T: Copy>(values: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if values.is_null() || !values.is_aligned() {
        return Err(Error::invalid(format!("{name} is null or not aligned, and its length is {len}")));
    }
    if len.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Error::invalid(format!("the length of {name} is {len}, more than memory can have")));
    }
    // SAFETY: not null, aligned, the size fits in an `isize`, and the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(values, len) })
}

/// Converts a string that a C caller passed.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte, and is not written to until the call returns.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(Error::invalid(format!("{name} is null")));
    }
    // SAFETY: not null; the caller guarantees the rest.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Converts a string in UTF-8 that a C caller passed.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn utf8<'a>(given: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: the caller guarantees the precondition of `text`.
    let text = unsafe { text(given, name) }?;
    text.to_str().map_err(|_| Error::invalid(format!("{name} is not UTF-8")))
}

/// Converts a path that a C caller passed: any bytes on Unix, UTF-8 elsewhere.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path(given: *const c_char) -> Result<PathBuf> {
    // SAFETY: the caller guarantees the precondition of `text`.
    let path = unsafe { text(given, "path") }?;
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        Ok(std::ffi::OsStr::from_bytes(path.to_bytes()).into())
    }
    #[cfg(not(unix))]
    {
        path.to_str().map(Into::into).map_err(|_| Error::invalid("path is not UTF-8"))
    }
}

/// Converts paths that a C caller passed.
///
/// # Safety
/// `paths` is null or points to `count` strings, each as [`text`] requires.
pub(crate) unsafe fn paths(paths: *const *const c_char, count: usize, name: &str) -> Result<Vec<PathBuf>> {
    // SAFETY: the caller passes `count` pointers, or null and 0.
    let all = unsafe { values(paths, count, name) }?;
    // SAFETY: each pointer is a string, or null.
    all.iter().map(|&one| unsafe { path(one) }).collect()
}

/// Converts a key that a C caller passed: bytes or, if keys of the index are numbers, 8 bytes in native byte order.
pub(crate) fn key<'a>(params: &twindex::Params, bytes: &'a [u8]) -> Result<Key<'a>> {
    if matches!(params.key, twindex::params::KeyKind::Bytes) {
        return Ok(Key::Bytes(bytes));
    }
    let number = <[u8; 8]>::try_from(bytes).map_err(|_| {
        Error::invalid(format!(
            "keys of this index are numbers: pass a uint64_t and length 8, not {}",
            bytes.len()
        ))
    })?;
    Ok(Key::U64(u64::from_ne_bytes(number)))
}

/// Returns a pointer to a key in the format that [`key`] accepts, and its length.
pub(crate) fn start_of(key: &KeyBuf) -> (*const u8, usize) {
    match key {
        KeyBuf::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
        KeyBuf::U64(number) => (std::ptr::from_ref(number).cast(), size_of::<u64>()),
    }
}

/// Like [`start_of`], but stores the length of the key in `len`.
pub(crate) fn show_key(key: &KeyBuf, len: Option<&mut MaybeUninit<usize>>) -> *const u8 {
    let (start, bytes) = start_of(key);
    show(start, bytes, len)
}

/// Returns a pointer to bytes that a handle owns, and stores their length in `len`.
pub(crate) fn show_bytes(bytes: &[u8], len: Option<&mut MaybeUninit<usize>>) -> *const u8 {
    show(bytes.as_ptr(), bytes.len(), len)
}

/// Returns a pointer to numbers that a handle owns, and stores their count in `len`; null and 0 for `None`.
pub(crate) fn show_numbers<T>(numbers: Option<&[T]>, len: Option<&mut MaybeUninit<usize>>) -> *const T {
    if let Some(len) = len {
        len.write(numbers.map_or(0, <[T]>::len));
    }
    numbers.map_or(std::ptr::null(), <[T]>::as_ptr)
}

fn show(start: *const u8, bytes: usize, len: Option<&mut MaybeUninit<usize>>) -> *const u8 {
    if let Some(len) = len {
        len.write(bytes);
    }
    start
}

/// Returns a null pointer and stores 0 in `len`. Used for bytes that a handle does not have.
pub(crate) fn show_empty(len: Option<&mut MaybeUninit<usize>>) -> *const u8 {
    show(std::ptr::null(), 0, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{twindex_error_code, twindex_error_free};

    #[test]
    fn panic_is_returned_as_an_error_with_its_message() {
        let mut error = MaybeUninit::uninit();
        assert_eq!(call(Some(&mut error), || panic!("number {}", 7)), Code::Panicked);
        // SAFETY: `call` has stored a pointer from `Box::into_raw`.
        let error = unsafe { Box::from_raw(error.assume_init()) };
        assert!(format!("{error:?}").contains("number 7"), "{error:?}");
        assert_eq!(twindex_error_code(Some(&error)), Code::Panicked);
        twindex_error_free(Some(error));
        assert_eq!(ask(3, || panic!("unseen")), 3);
    }

    #[test]
    fn handle_is_refused_after_a_panic_during_a_change() {
        let handle = Mutex::new(0);
        let code = call(None, || {
            let mut held = lock(&handle)?;
            *held += 1;
            panic!("in the middle");
        });
        assert_eq!(code, Code::Panicked);
        assert_eq!(call(None, || lock(&handle).map(drop)), Code::Panicked);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        // SAFETY: `bytes` returns an error for a null pointer and for this length, before it reads a byte.
        let (null, long) =
            unsafe { (bytes(std::ptr::null(), 3, "x"), bytes(b"x".as_ptr(), usize::MAX, "x")) };
        assert_eq!((null.unwrap_err().code(), long.unwrap_err().code()), (Code::Invalid, Code::Invalid));
        // SAFETY: with length 0, no byte is read.
        assert!(unsafe { bytes(std::ptr::null(), 0, "x") }.unwrap().is_empty());
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        struct_size: usize,
        old: u64,
        new: u64,
    }

    // SAFETY: the first field is the size, and numbers have no invalid bits.
    unsafe impl Structure for Grown {
        const FIRST: usize = 16;
    }

    #[test]
    fn structures_of_older_and_newer_programs_are_read_and_filled() {
        let read = |words: &[u64]| {
            // SAFETY: the array has as many bytes as its first word says, or the size is refused.
            unsafe { sized(words.as_ptr().cast::<Grown>(), "x") }
        };
        assert_eq!(read(&[16, 7]).unwrap(), Grown { struct_size: 16, old: 7, new: 0 });
        assert_eq!(read(&[24, 7, 8]).unwrap(), Grown { struct_size: 24, old: 7, new: 8 });
        assert_eq!(read(&[32, 7, 8, 0]).unwrap(), Grown { struct_size: 32, old: 7, new: 8 });
        assert_eq!(read(&[32, 7, 8, 1]).unwrap_err().code(), Code::Unsupported);
        assert_eq!(read(&[8, 7]).unwrap_err().code(), Code::Invalid);
        let mut old = [16_u64, 0, 99];
        let now = Grown { struct_size: 24, old: 1, new: 2 };
        // SAFETY: the array has 16 bytes and more.
        unsafe { fill(old.as_mut_ptr().cast::<Grown>(), &now, "x") }.unwrap();
        assert_eq!(old, [16, 1, 99]);
    }
}
