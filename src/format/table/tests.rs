//! Helpers for the tests of codecs: a section in memory, and values to encode. The tests that every codec of complete
//! tables must pass are in `tests/it/table_codecs.rs`.

use std::cell::Cell;
use std::ops::Range;
use std::path::PathBuf;

use super::source::{Columns, Source};
use crate::error::{Error, Result};
use crate::format::place;
use crate::format::wire::Fault;
use twindex_kernel::splitmix::SplitMix;

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
}

/// A section in memory that counts the bytes read.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a>(pub(super) &'a [u8]);

pub(super) fn reset_bytes_read() {
    BYTES_READ.set(0);
}

pub(super) fn bytes_read() -> u64 {
    BYTES_READ.get()
}

impl<'a> Source<'a> for Memory<'a> {
    fn read(self, range: Range<u64>) -> Result<&'a [u8]> {
        BYTES_READ.set(BYTES_READ.get() + range.end.saturating_sub(range.start));
        let bytes = self.0.get(range.start as usize..range.end as usize);
        bytes.ok_or_else(|| {
            self.corrupt(Fault::new(range.start, "an offset in the section", format!("{range:?}")))
        })
    }

    fn corrupt(self, fault: Fault) -> Error {
        Error::Corrupt {
            path: PathBuf::new(),
            section: "table",
            offset: fault.offset,
            expected: fault.expected,
            found: fault.found,
        }
    }

    fn hint(self, _: u64) {}
}

/// The parts of a section, as written by an encoder.
#[derive(Default)]
pub(super) struct Parts(Vec<Vec<u8>>);

impl Columns for Parts {
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()> {
        if self.0.len() <= part {
            self.0.resize(part + 1, Vec::new());
        }
        self.0[part].extend_from_slice(bytes);
        Ok(())
    }
}

impl Parts {
    /// Returns the bytes of the section, with zeros between its parts.
    pub(super) fn section(self) -> Vec<u8> {
        let mut section: Vec<u8> = Vec::new();
        for part in self.0 {
            section.resize(place(section.len() as u64, part.len() as u64) as usize, 0);
            section.extend(part);
        }
        section
    }
}

/// Returns pseudo-random values, the same in every run.
pub(super) fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix(seed.wrapping_mul(0xA076_1D64_78BD_642F));
    std::iter::repeat_with(move || random.next())
}

/// Returns `rows` uniform values, ascending.
pub(super) fn uniform(rows: usize, seed: u64) -> Vec<u64> {
    let mut values: Vec<u64> = random(seed).take(rows).collect();
    values.sort_unstable();
    values.dedup();
    values
}
