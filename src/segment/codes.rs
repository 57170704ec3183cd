//! Compares the fingerprints of all documents with fingerprints of the same width, in an index that stores
//! [codes](crate::Params::codes).
//!
//! The fingerprints of a few documents are copied from the section of fields into a block of words, and the block is
//! compared with all queries. So each page is read once for a batch of queries.

use std::ops::{ControlFlow, Range};

use super::open::Segment;
use crate::error::Result;
use crate::format::fields::Fields;
use crate::params::CodeParams;
use twindex_kernel::{BLOCK, HalfWords, Level, Sides, TileScan, TileScratch};
use twindex_sketch::Code;

/// Appends the half words of a fingerprint. Their byte order does not matter for distances.
#[inline(always)]
fn append(code: &[u8], out: &mut Vec<u32>) {
    out.extend(code.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)));
}

impl Segment {
    /// Calls `hit` with the index of the query, the ordinal and the distance of each document, deleted or not, whose
    /// fingerprint differs from the query in at most `within` bits. Ordinals ascend for each query. If `hit` returns
    /// `Break`, the search for that query ends. Finds none if the index stores no codes.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error that `hit` returns.
    pub fn search_codes(
        &self,
        queries: &[Code],
        within: u32,
        mut hit: impl FnMut(usize, u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(codes) = self.params().codes else { return Ok(()) };
        let (width, mut columns, mut block) = (usize::from(codes.bits / 32), Vec::new(), Vec::new());
        for query in queries {
            append(&query.to_bytes(), &mut columns);
        }
        let mut scratch = TileScratch::default();
        let (mut ended, mut left) = (vec![false; queries.len()], queries.len());
        let level = Level::chosen();
        for first in (0..self.documents() as u32).step_by(BLOCK) {
            block.clear();
            let ordinals = first..first.saturating_add(BLOCK as u32).min(self.documents() as u32);
            self.for_each_code(ordinals.clone(), codes, |code| append(code, &mut block))?;
            let sides = Sides {
                columns: HalfWords { words: &columns, width },
                rows: HalfWords { words: &block, width },
                inside: false,
                within,
            };
            // `None` ends the search, because all queries have ended.
            let emit = |query: u32, row: u32, distance| {
                let query = query as usize;
                if !ended[query] && hit(query, first + row, distance).map_err(Some)?.is_break() {
                    (ended[query], left) = (true, left - 1);
                }
                if left == 0 { Err(None) } else { Ok(()) }
            };
            let all = 0..ordinals.len();
            let scan = TileScan {
                sides,
                columns: 0..queries.len(),
                rows: std::slice::from_ref(&all),
                scratch: &mut scratch,
                emit,
            };
            match level.dispatch(scan) {
                Err(Some(error)) => return Err(error),
                Err(None) => return Ok(()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Returns the fingerprint of a document, whether it is a simhash or a code; `None` if it has none, or fingerprints are
    /// not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), also for an ordinal that no document has.
    pub(crate) fn code(&self, ordinal: u32) -> Result<Option<Code>> {
        let Some(codes) = self.params().codes else {
            let fingerprint = self.rank(ordinal)?.map(|rank| self.fingerprint(rank)).transpose()?;
            return Ok(fingerprint.map(Code::from));
        };
        let code = self.fields(ordinal)?.code(codes).map_err(|fault| self.wrong_fields(ordinal, fault))?;
        Ok(Code::of_bytes(code))
    }

    /// Replaces the contents of `out` with the 64-bit words of the fingerprints of these documents, one after the other.
    /// Leaves it empty if the index stores no codes.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), also for an ordinal that no document has.
    pub fn code_words(&self, ordinals: Range<u32>, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let Some(codes) = self.params().codes else { return Ok(()) };
        self.for_each_code(ordinals, codes, |code| {
            out.extend(code.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)));
        })
    }

    /// Calls `each` with the fingerprints of these documents, which are at least one.
    #[inline(always)]
    fn for_each_code(
        &self,
        ordinals: Range<u32>,
        codes: CodeParams,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.for_each_fields(ordinals, |ordinal, fields| {
            each(Fields::of(fields).code(codes).map_err(|fault| self.wrong_fields(ordinal, fault))?);
            Ok(())
        })
    }
}
