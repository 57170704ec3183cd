//! `CURRENT`: the generation and the digest of the newest manifest.
//!
//! Without this file, an index whose newest manifest is lost would open at the previous generation without an error.
//!
//! ```text
//!  0  header (role 3; its salt is the index's UUID)
//! 64  generation 8   digest of the manifest's bytes 16   zero 4   checksum of 0..92, with the UUID as salt, at 0
//! ```

use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::checksum::checksum;
use super::header::{HEADER_BYTES, Header, Refusal, Role};
use super::wire::Fault;

/// `CURRENT` as stored in the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Current {
    /// The header: role [`Role::Current`], the index's UUID as salt.
    pub header: Header,
    /// The generation in the name of the newest manifest.
    pub generation: U64,
    /// The [`super::manifest::Manifest::digest`] of the newest manifest.
    pub digest: U128,
    /// Reserved; always zero.
    pub reserved: U32,
    /// The [`checksum`] of the preceding fields, computed with the UUID as salt and offset 0.
    pub checksum: U32,
}

/// Length of the file in bytes.
pub const CURRENT_BYTES: usize = 96;
const _: () = assert!(size_of::<Current>() == CURRENT_BYTES);

impl Current {
    /// Creates the content of a `CURRENT` that refers to the manifest with this generation and digest.
    #[must_use]
    pub fn new(uuid: u128, params_digest: u128, generation: u64, digest: u128) -> Self {
        let mut current = Self {
            header: Header::new(Role::Current, uuid, params_digest),
            generation: U64::new(generation),
            digest: U128::new(digest),
            reserved: U32::ZERO,
            checksum: U32::ZERO,
        };
        current.checksum = U32::new(current.expected_checksum());
        current
    }

    fn expected_checksum(&self) -> u32 {
        checksum(self.header.salt.get(), 0, &self.as_bytes()[..CURRENT_BYTES - 4])
    }

    /// Reads the file and checks it.
    ///
    /// # Errors
    /// A [`Refusal`] if the file is damaged or not supported by this version.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        Header::read(bytes, Role::Current)?;
        let damaged = |offset, expected: String, found: String| {
            Refusal::Damaged(Fault::new(HEADER_BYTES as u64 + offset, expected, found))
        };
        let current = Self::read_from_bytes(bytes)
            .map_err(|_| damaged(0, format!("{CURRENT_BYTES} bytes"), format!("{}", bytes.len())))?;
        let expected = current.expected_checksum();
        // guard: CURRENT is compared with its checksum
        if current.checksum.get() != expected {
            let found = format!("{:08x}", current.checksum.get());
            return Err(damaged(28, format!("checksum {expected:08x}"), found));
        }
        if current.reserved.get() != 0 {
            return Err(damaged(24, "zero".into(), current.reserved.to_string()));
        }
        Ok(current)
    }
}
