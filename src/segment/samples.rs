//! Reads the sampled hashes of documents by ordinal.

use super::open::Segment;
use crate::error::Result;
use crate::format::contents::Section;
use crate::format::samples::Samples;

impl Segment {
    /// Replaces `out` by the bottom sample of a document: its smallest shingle hashes, ascending. Empty if not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), also for an ordinal that no document has.
    pub fn bottom(&self, ordinal: u32, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        self.sample(self.samples[0].as_ref(), ordinal, out).map(|_| ())
    }

    /// Replaces `out` by the modular sample of a document: its shingle hashes that are divisible by the modulus,
    /// ascending. Empty if the index stores none.
    ///
    /// # Errors
    /// Same as [`bottom`](Self::bottom).
    pub fn modular(&self, ordinal: u32, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        self.sample(self.samples[1].as_ref(), ordinal, out).map(|_| ())
    }

    /// Returns the bottom and the modular sample of a document in the encoding of the file; `None` for a sample that is
    /// not stored.
    pub(super) fn sample_bytes(&self, ordinal: u32) -> Result<[Option<&[u8]>; 2]> {
        let mut values = Vec::new();
        let mut bytes = [None; 2];
        for (bytes, of) in bytes.iter_mut().zip(&self.samples) {
            values.clear();
            *bytes = match of {
                Some(_) => Some(self.sample(of.as_ref(), ordinal, &mut values)?),
                None => None,
            };
        }
        Ok(bytes)
    }

    /// Reads a document's sample from a section of samples: appends its hashes to `out`, and returns their encoded
    /// bytes. If `of` is `None`, the sample is empty.
    pub(super) fn sample(
        &self,
        of: Option<&(Section, Samples)>,
        ordinal: u32,
        out: &mut Vec<u64>,
    ) -> Result<&[u8]> {
        let Some((section, layout)) = of else { return Ok(&[]) };
        let ordinal = u64::from(ordinal);
        // Past the last ordinal, hashes would be misread as offsets. Reads a range past the section instead, which
        // fails.
        let offsets = if ordinal < self.documents() {
            layout.offsets(ordinal)
        } else {
            section.length..section.length + layout.offset_bytes
        };
        let offsets = self.read(section, offsets)?;
        let range = layout.range(offsets, ordinal).map_err(|e| self.corrupt_at(section, e))?;
        let bytes = self.read(section, range.clone())?;
        layout.decode(bytes, range.start, out).map_err(|e| self.corrupt_at(section, e))?;
        Ok(bytes)
    }
}
