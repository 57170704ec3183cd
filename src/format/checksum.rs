//! CRC-32 (ISO-HDLC, the polynomial of zlib), seeded with a salt and an offset.
//!
//! The checksum depends on the salt of the file and on the offset, so a page that was copied from another file or
//! another offset does not match. It is not a MAC: it detects accidental damage, not attacks.

/// Number of bytes of a file that one checksum covers.
pub const PAGE: u64 = 4096;

/// Returns the checksum of `bytes` at `offset` in a file with `salt`: the CRC-32 of the salt (16 bytes), the offset (8
/// bytes), both little-endian, and `bytes`.
#[must_use]
pub fn checksum(salt: u128, offset: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    // guard: checksums of records are of one log
    hasher.update(&salt.to_le_bytes());
    // guard: checksums are of one place in the file
    hasher.update(&offset.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_the_crc_of_salt_offset_and_bytes() {
        let salt = u128::from_le_bytes(std::array::from_fn(|i| i as u8));
        // Computed in Python: zlib.crc32(bytes(range(16)) + (4096).to_bytes(8, "little") + b"twindex").
        let golden = 0xC86A_4D8E;
        assert_eq!(checksum(salt, 4096, b"twindex"), golden);
        assert_ne!(checksum(salt, 0, b"twindex"), golden);
        assert_ne!(checksum(salt + 1, 4096, b"twindex"), golden);
    }
}
