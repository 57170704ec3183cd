//! The result of verifying all files of an index.

use std::ffi::{CString, c_char};

use crate::border;

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
