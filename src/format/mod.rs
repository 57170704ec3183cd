//! The on-disk format: encodes and decodes every file of an index.
//!
//! Each submodule implements the part of `format-spec.md` with the same name. Only this module decodes the bytes of
//! files, and it opens no files. Decoders check a length against the number of available bytes before they allocate
//! memory for it.
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
pub mod code_parts;
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

/// The version of the format that this crate reads and writes.
pub const VERSION: u16 = 3;
/// The offsets of the parts of a file are multiples of this number of bytes.
pub const ALIGNMENT: u64 = 64;
/// Maximum number of documents in a segment.
pub const DOCUMENTS_MAX: u64 = 1 << 30;

/// Rounds `offset` up to a multiple of [`ALIGNMENT`].
#[must_use]
pub fn align(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGNMENT)
}

/// Returns the offset of a part of `bytes` bytes after a part that ends at `end`: the [aligned](align) `end`, or `end`
/// itself if `bytes` is 0.
#[must_use]
pub fn place(end: u64, bytes: u64) -> u64 {
    if bytes == 0 { end } else { align(end) }
}
