//! Every byte on disk.
//!
//! One file for each part of `format-spec.md`, in its order and under its names. This module opens no files, and it is
//! the only one that decodes bytes. It never allocates in proportion to a length that has not been checked against the
//! available bytes.
//!
//! ```text
//! segment file
//! ┌────────┬──────────┬───┬──────────┬───────────┬───────────────────┬────────┐
//! │ header │ section  │ … │ section  │ checksums │ table of contents │ footer │
//! └────────┴──────────┴───┴──────────┴───────────┴───────────────────┴────────┘
//!   each part begins at a multiple of 64; the gaps are zero
//! ```

pub mod attached;
pub mod bands;
pub mod checksum;
pub mod contents;
pub mod current;
pub mod design;
pub mod directory;
pub mod fields;
pub mod footer;
pub mod header;
pub mod hot;
pub mod idf;
pub mod keys;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod postings;
pub mod prefixes;
pub mod ranks;
pub mod samples;
pub mod signatures;
pub mod sketches;
pub mod table;
pub mod wire;

/// The version of the format this crate reads and writes.
pub const VERSION: u16 = 3;
/// Parts of a file begin at multiples of this.
pub const ALIGNMENT: u64 = 64;
/// The most documents a segment holds.
pub const DOCUMENTS_MAX: u64 = 1 << 30;

/// The next multiple of [`ALIGNMENT`].
#[must_use]
pub fn align(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGNMENT)
}

/// The start of a part of `bytes` bytes after one that ends at `end`: aligned by [`align`]; an empty part takes no
/// space.
#[must_use]
pub fn place(end: u64, bytes: u64) -> u64 {
    if bytes == 0 { end } else { align(end) }
}
