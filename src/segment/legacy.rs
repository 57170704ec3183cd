//! Reads segments of versions 1 and 2 of the format, to [convert](super::merge::convert) them.
//!
//! Opening such a file performs the same checks as opening a [`Segment`]. The file cannot be queried. Only its records are
//! read; fingerprints are read from table 1, and the other tables are not decoded. [`check`](LegacySegment::check) compares
//! all pages with their checksums, and the hashes of the records with the salt, so that neither damage nor a bug of this
//! decoder changes a record unnoticed.

use std::path::Path;

use super::open::{Entries, Segment};
use super::parsed::ParsedSegment;
use crate::error::{Error, Result};
use crate::format::contents::{Kind, Section};
use crate::format::legacy::{self, BlockTable, FILTER_CODEC_MAX, LegacyVersion, TABLES};
use crate::format::{ranks, wire};
use crate::sys::{Access, Vfs};

/// An open segment of version 1 or 2.
#[derive(Debug)]
pub struct LegacySegment {
    /// All sections except the sections of fingerprints. The parameters are converted to the current version.
    pub(super) segment: Segment,
    /// The digest of the text of the parameters in the file, not of the converted text. It is one summand of the salt.
    pub(super) params_digest: u128,
    /// The sections of fingerprints; `None` if the index stores none.
    fingerprints: Option<LegacyFingerprints>,
}

#[derive(Debug)]
struct LegacyFingerprints {
    /// Number of distinct fingerprints, which is the number of rows of table 1.
    distinct: u64,
    ranks: Section,
    /// The section of table 1.
    section: Section,
    table: BlockTable,
}

impl LegacySegment {
    /// Opens the segment at `path`, which must have the version `version`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unsupported`] or [`Error::Io`], each naming the file.
    pub fn open(vfs: &dyn Vfs, path: &Path, version: LegacyVersion) -> Result<Self> {
        let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
        let parsed = ParsedSegment::read(file, path, Access::default(), Some(version))?;
        let params_digest = parsed.params_digest;
        let (segment, fingerprints) =
            Segment::of_parsed(parsed, |entries| Ok((None, fingerprints(entries)?)))?;
        Ok(Self { segment, params_digest, fingerprints })
    }

    /// Returns the file as a segment of the current version without fingerprints: the other sections have the same encoding
    /// in all versions. The parameters are converted to the current version.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Checks every page, and all data that a conversion reads. Uses about `memory` bytes and a few bits for each document.
    /// The bands are read once for each stripe of documents whose band keys fit in `memory`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first problem; [`Error::Io`].
    pub fn check(&self, memory: usize) -> Result<()> {
        self.segment.check_content(self.params_digest, memory, |ordinal| self.fingerprint(ordinal))
    }

    /// Returns the fingerprint of the document `ordinal`; `None` if the document has no sketch or the index stores no
    /// fingerprints.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Io`].
    pub fn fingerprint(&self, ordinal: u32) -> Result<Option<u64>> {
        let Some(LegacyFingerprints { distinct, ranks, section, table }) = &self.fingerprints else {
            return Ok(None);
        };
        let segment = &self.segment;
        let ordinal = u64::from(ordinal);
        let rank = ranks::decode(segment.read(ranks, ranks::range(ordinal))?, ordinal, *distinct);
        let Some(rank) = rank.map_err(|fault| segment.corrupt_at(ranks, fault))? else { return Ok(None) };
        let row = u64::from(rank);
        let (first, middle, last) = table.ranges(row);
        let first = match first {
            Some(range) => wire::wide(segment.read(section, range)?),
            None => table.directory.prefix_of(segment.at(section), row)?,
        };
        let [middle, last] = [segment.read(section, middle)?, segment.read(section, last)?].map(wire::wide);
        Ok(Some(legacy::fingerprint(first, middle, last)))
    }
}

/// Takes the entries of the sections of fingerprints: ranks, table 1, the filter tables and postings.
fn fingerprints(entries: &mut Entries<'_>) -> Result<Option<LegacyFingerprints>> {
    if entries.parsed.params.simhash.is_none() {
        return Ok(None);
    }
    let distinct = entries.parsed.distinct;
    let ranks = entries.ranks()?;
    let section = entries.take(Kind::Table, 1, legacy::CODEC, Some(distinct))?;
    let table = BlockTable::of(distinct);
    entries.check_length(&section, table.length)?;
    // All filter tables have the codec of the first one.
    let codec = entries.next_codec().unwrap_or(legacy::CODEC).clamp(legacy::CODEC, FILTER_CODEC_MAX);
    for index in 2..=TABLES {
        let filter = entries.take(Kind::FilterTable, index, codec, Some(distinct))?;
        entries.check_length(&filter, BlockTable::filter_length(distinct, codec))?;
    }
    entries.postings()?;
    Ok(Some(LegacyFingerprints { distinct, ranks, section, table }))
}
