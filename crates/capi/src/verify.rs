//! The result of a verification of all files.

use std::ffi::{CString, c_char};

use crate::border;

/// The result of `twindex_index_verify`. Free it with `twindex_findings_free`.
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

/// The number of problems: 0 for a sound index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_problems(findings: Option<&Findings>) -> usize {
    findings.map_or(0, |findings| findings.problems.len())
}

/// Problem number `at`, from 0; null beyond the last. It lives as long as the findings.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_problem(findings: Option<&Findings>, at: usize) -> *const c_char {
    findings.and_then(|findings| findings.problems.get(at)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// The number of notes: harmless observations.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_notes(findings: Option<&Findings>) -> usize {
    findings.map_or(0, |findings| findings.notes.len())
}

/// Note number `at`, from 0; null beyond the last. It lives as long as the findings.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_note(findings: Option<&Findings>, at: usize) -> *const c_char {
    findings.and_then(|findings| findings.notes.get(at)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// Bytes that were checked.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_bytes(findings: Option<&Findings>) -> u64 {
    findings.map_or(0, |findings| findings.bytes)
}

/// Frees findings; null is allowed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_findings_free(findings: Option<Box<Findings>>) {
    border::free(findings);
}
