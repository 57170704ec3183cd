//! The footer: the last 64 bytes of a segment.
//!
//! ```text
//!  0  magic 8A 54 57 58 0D 0A 1A 0A    8 file length    16 offset of the table of contents
//! 24  its number of entries  28 its checksum  32 checksum of the checksums section  36 reserved
//! 40  documents      48 distinct fingerprints           56 reserved           60 checksum of 0..60
//! ```

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::checksum::checksum;
use super::wire::Fault;

/// The first bytes of the footer. They differ from the magic of a header, so that a truncated file that ends with a
/// header is not taken for a complete one.
pub const MAGIC: [u8; 8] = *b"\x8ATWX\r\n\x1a\n";

/// The footer as stored in the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Footer {
    /// The magic: [`MAGIC`].
    pub magic: [u8; 8],
    /// Length of the whole file in bytes.
    pub file_length: U64,
    /// The offset of the table of contents, which ends at the start of the footer.
    pub contents_offset: U64,
    /// Number of entries in the table of contents.
    pub contents_entries: U32,
    /// The [`checksum`] of the table of contents, computed with its offset in the file.
    pub contents_checksum: U32,
    /// The [`checksum`] of the checksums section, computed with its offset in the file.
    pub checksums_checksum: U32,
    /// Reserved; always zero.
    pub reserved: U32,
    /// Number of documents in the segment.
    pub documents: U64,
    /// Number of distinct fingerprints in the segment; 0 if it stores no fingerprints.
    pub distinct: U64,
    /// Reserved; always zero.
    pub reserved_too: U32,
    /// The [`checksum`] of the preceding fields, computed with the offset of the footer.
    pub checksum: U32,
}

/// Length of a [`Footer`] in bytes.
pub const FOOTER_BYTES: usize = 64;
const _: () = assert!(size_of::<Footer>() == FOOTER_BYTES);

impl Footer {
    /// Sets the checksum of the footer, which begins at `offset` of the file, and returns the footer.
    #[must_use]
    pub fn sealed(mut self, salt: u128, offset: u64) -> Self {
        self.checksum = U32::new(checksum(salt, offset, &self.as_bytes()[..FOOTER_BYTES - 4]));
        self
    }

    /// Reads and checks the footer of a file of `file_length` bytes. `bytes` are the last 64 bytes of the file.
    ///
    /// # Errors
    /// A [`Fault`] with an offset relative to the footer.
    pub fn read(bytes: &[u8], salt: u128, file_length: u64) -> Result<Self, Fault> {
        let Ok(footer) = Self::read_from_bytes(bytes) else {
            return Err(Fault::new(0, "a footer of 64 bytes", format!("{} bytes", bytes.len())));
        };
        // guard: a segment ends with a footer that fits it
        // without it: return Ok(footer);
        if footer.magic != MAGIC {
            return Err(Fault::new(0, "the magic of a footer", format!("{:02x?}", footer.magic)));
        }
        let offset = file_length - FOOTER_BYTES as u64;
        let expected = footer.sealed(salt, offset).checksum;
        // guard: the footer and the contents are compared with their checksums
        if footer.checksum != expected {
            let found = format!("{:08x}", footer.checksum.get());
            return Err(Fault::new(60, format!("checksum {:08x}", expected.get()), found));
        }
        if footer.file_length.get() != file_length {
            return Err(Fault::new(8, format!("file length {file_length}"), footer.file_length));
        }
        let contents_bytes = u64::from(footer.contents_entries.get()) * super::contents::ENTRY_BYTES as u64;
        if footer.contents_offset.get().checked_add(contents_bytes) != Some(offset) {
            let found = format!("{} entries at {}", footer.contents_entries, footer.contents_offset);
            return Err(Fault::new(16, format!("a table of contents that ends at {offset}"), found));
        }
        for (at, reserved) in [(36, footer.reserved), (56, footer.reserved_too)] {
            if reserved.get() != 0 {
                return Err(Fault::new(at, "zero", reserved));
            }
        }
        Ok(footer)
    }
}
