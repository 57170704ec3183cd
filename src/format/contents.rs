//! The table of contents: the kinds, offsets and lengths of the sections of a segment.
//!
//! The table has one entry of 32 bytes for each section, in ascending order of (kind, index), which is also the order
//! of the sections in the file. Sections follow the header without gaps: each begins at the first multiple of 64 after
//! the previous one. So the lengths determine the offsets, and no bytes can overlap or be hidden between sections.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::HEADER_BYTES;
use super::wire::{self, Fault};

/// The kinds of sections. The numbers are part of the format and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Kind {
    /// The parameters' text.
    Params = 1,
    /// Keys in ascending order; a key's position is its document's ordinal.
    Keys = 2,
    /// The rank of each document's fingerprint.
    Ranks = 3,
    /// The name of the segment's table design.
    Design = 4,
    /// The nested tables for the hot buckets of table number `index` (from 1): the buckets with too many rows. Absent
    /// if the table has no hot bucket.
    Hot = 5,
    /// Table number `index` (from 1): the whole fingerprints, sorted. The position of a fingerprint in table 1 is its
    /// rank.
    Table = 6,
    /// Partial table number `index` (from 2): for each fingerprint, a pointer into table 1 and a filter.
    FilterTable = 7,
    /// For each rank, the documents whose fingerprint has this rank.
    Postings = 8,
    /// Band number `index` (from 1): the documents sorted by their band key, a hash of a group of minima.
    Band = 9,
    /// The signature of each document.
    Signatures = 10,
    /// The lowest hashes of each document, at most `bottom`.
    Bottom = 11,
    /// The hashes of each document that are divisible by the modulus.
    Modular = 12,
    /// The value of each document.
    Values = 13,
    /// The stamp of each document, and the ordinals sorted by stamp.
    Stamps = 14,
    /// The fields of each document.
    Fields = 15,
    /// The tags (upper 32 bits) of the shingle hashes that occur in many documents of the segment.
    Common = 16,
    /// For each tag (upper 32 bits) of a shingle hash, the documents that have the tag in the prefix of their set.
    Prefixes = 17,
    /// For each tag (upper 32 bits) of a shingle hash, the documents that have the tag in their set but not in its prefix.
    Suffixes = 18,
    /// Part number `index` (from 1) of the codes: the documents sorted by some bits of their code.
    Part = 19,
    /// A checksum for each page of the file before this section.
    Checksums = 255,
}

impl Kind {
    /// All kinds of sections of this version.
    pub const ALL: [Self; 20] = [
        Self::Params,
        Self::Keys,
        Self::Ranks,
        Self::Design,
        Self::Hot,
        Self::Table,
        Self::FilterTable,
        Self::Postings,
        Self::Band,
        Self::Signatures,
        Self::Bottom,
        Self::Modular,
        Self::Values,
        Self::Stamps,
        Self::Fields,
        Self::Common,
        Self::Prefixes,
        Self::Suffixes,
        Self::Part,
        Self::Checksums,
    ];

    /// Returns the name used in `format-spec.md`, in `stats` and in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Keys => "keys",
            Self::Ranks => "ranks",
            Self::Design => "design",
            Self::Hot => "hot",
            Self::Table => "table",
            Self::FilterTable => "filter table",
            Self::Postings => "postings",
            Self::Band => "band",
            Self::Signatures => "signatures",
            Self::Bottom => "bottom",
            Self::Modular => "modular",
            Self::Values => "values",
            Self::Stamps => "stamps",
            Self::Fields => "fields",
            Self::Common => "common",
            Self::Prefixes => "prefixes",
            Self::Suffixes => "suffixes",
            Self::Part => "part",
            Self::Checksums => "checksums",
        }
    }

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

/// An entry of the table of contents, as stored in the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// The kind of the section: the number of a [`Kind`].
    pub kind: U16,
    /// The number of the table, band or part; 0 for other sections.
    pub index: U16,
    /// The codec of the section; `format-spec.md` lists the codecs of each kind.
    pub codec: U16,
    /// Reserved; always zero.
    pub reserved: U16,
    /// Offset of the section in the file.
    pub offset: U64,
    /// Length of the section in bytes, without the padding after the section.
    pub length: U64,
    /// Number of entries, such as documents, fingerprints or pages. For `params`, `design`, `values` and `fields`:
    /// number of bytes.
    pub rows: U64,
}

/// Length of an [`Entry`] in bytes.
pub const ENTRY_BYTES: usize = 32;
const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

/// A section whose offset and length have been checked against the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The kind of the section.
    pub kind: Kind,
    /// The number of the table, band or part; 0 for other sections.
    pub index: u16,
    /// The codec of the section.
    pub codec: u16,
    /// Offset of the section in the file.
    pub offset: u64,
    /// Length of the section in bytes.
    pub length: u64,
    /// Number of entries of the section, as in [`Entry::rows`].
    pub rows: u64,
}

impl Section {
    /// Returns the entry of this section in the table of contents.
    #[must_use]
    pub fn entry(&self) -> Entry {
        Entry {
            kind: U16::new(self.kind as u16),
            index: U16::new(self.index),
            codec: U16::new(self.codec),
            reserved: U16::ZERO,
            offset: U64::new(self.offset),
            length: U64::new(self.length),
            rows: U64::new(self.rows),
        }
    }

    /// Returns the offset of the first byte after the section.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// Reads the table of contents, which begins at `start` in the file, and checks that all kinds are known, entries
/// ascend strictly, sections cover the bytes from the header to `start`, and the checksums section is the last one.
///
/// # Errors
/// A [`Fault`] with an offset relative to `start`.
pub fn read(bytes: &[u8], start: u64) -> Result<Vec<Section>, Fault> {
    let entries: &[Entry] = wire::column(bytes)?;
    let mut sections: Vec<Section> = Vec::with_capacity(entries.len());
    let mut end = HEADER_BYTES as u64;
    for (row, entry) in entries.iter().enumerate() {
        let at = |field: u64| (row * ENTRY_BYTES) as u64 + field;
        let kind = Kind::from_number(entry.kind.get())
            .ok_or_else(|| Fault::new(at(0), "a known kind of section", entry.kind))?;
        if entry.reserved.get() != 0 {
            return Err(Fault::new(at(6), "zero", entry.reserved));
        }
        if let Some(last) = sections.last()
            && (last.kind, last.index) >= (kind, entry.index.get())
        {
            let found = format!("{} {}", kind.name(), entry.index);
            return Err(Fault::new(
                at(0),
                format!("a section after {} {}", last.kind.name(), last.index),
                found,
            ));
        }
        let offset = super::align(end);
        if entry.offset.get() != offset {
            return Err(Fault::new(at(8), format!("offset {offset}"), entry.offset));
        }
        end = offset
            .checked_add(entry.length.get())
            .filter(|&end| end <= start)
            .ok_or_else(|| Fault::new(at(16), format!("a section that ends by {start}"), entry.length))?;
        sections.push(Section {
            kind,
            index: entry.index.get(),
            codec: entry.codec.get(),
            offset,
            length: entry.length.get(),
            rows: entry.rows.get(),
        });
    }
    if sections.last().map(|section| section.kind) != Some(Kind::Checksums) {
        return Err(Fault::new(0, "the checksums as last section", "another or none"));
    }
    if super::align(end) != start {
        return Err(Fault::new(0, format!("contents at {}", super::align(end)), start));
    }
    Ok(sections)
}
