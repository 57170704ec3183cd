//! The result of verifying all files of an index.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;

use twindex::RealVfs;

use crate::access::access;
use crate::border::{self, Slot};
use crate::cancel::{self, Cancel};
use crate::error::{Code, Error};

/// The result of `twindex_index_verify`. Must be freed with `twindex_findings_free`.
#[derive(Debug)]
pub struct Findings {
    problems: Vec<CString>,
    notes: Vec<CString>,
    bytes: u64,
}

fn strings(lines: impl Iterator<Item = String>) -> Vec<CString> {
    lines.map(|line| CString::new(line.replace('\0', "")).unwrap_or_default()).collect()
}

impl Findings {
    pub(crate) fn new(findings: &twindex::Findings) -> Self {
        Self {
            problems: strings(findings.problems.iter().map(ToString::to_string)),
            notes: strings(findings.notes.iter().cloned()),
            bytes: findings.bytes,
        }
    }
}

/// Called with `data` and the number of bytes that were verified so far.
pub type VerifyProgress = Option<extern "C" fn(data: *mut c_void, bytes: u64)>;

/// As `twindex_index_verify`, for an index that need not be open, and that may be too damaged to be opened.
/// `access_number` is one of `TWINDEX_ACCESS_...`. `cancel`, which may be null, ends it early with
/// `TWINDEX_CODE_CANCELLED`. `progress` may be null. The caller must free the findings.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_verify(
    path: *const c_char,
    access_number: u32,
    cancel: Option<&Cancel>,
    progress: VerifyProgress,
    data: *mut c_void,
    findings: Option<&mut MaybeUninit<*mut Findings>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(findings, "findings")?;
        // SAFETY: the caller passes a string, or null.
        let path = unsafe { border::path(path) }?;
        let verified =
            twindex::verify_until(&RealVfs, &path, access(access_number)?, &cancel::of(cancel), |bytes| {
                if let Some(progress) = progress {
                    progress(data, bytes);
                }
            })?;
        slot.give(Findings::new(&verified));
        Ok(())
    })
}

/// Returns the number of problems; 0 if the index is undamaged.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_problems(findings: Option<&Findings>) -> usize {
    findings.map_or(0, |findings| findings.problems.len())
}

/// Returns problem `at`, counted from 0; null if there is no such problem. The string is valid until the findings are
/// freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_problem(findings: Option<&Findings>, at: usize) -> *const c_char {
    findings.and_then(|findings| findings.problems.get(at)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// Returns the number of notes, which are harmless observations.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_notes(findings: Option<&Findings>) -> usize {
    findings.map_or(0, |findings| findings.notes.len())
}

/// Returns note `at`, counted from 0; null if there is no such note. The string is valid until the findings are freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_note(findings: Option<&Findings>, at: usize) -> *const c_char {
    findings.and_then(|findings| findings.notes.get(at)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// Returns the number of bytes that were verified.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_bytes(findings: Option<&Findings>) -> u64 {
    findings.map_or(0, |findings| findings.bytes)
}

/// Frees findings. `findings` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_free(findings: Option<Box<Findings>>) {
    border::free(findings);
}
