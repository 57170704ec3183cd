//! A band section: documents by the hash of a group of minima.
//!
//! A band key is the upper 32 bits of the document's feature. The section has a directory over the key's first
//! `d` bits ([`prefix_bits`](crate::tables::prefix_bits) of the rows), and an entry of `e` bytes for each document
//! that has a sketch: the rest of the key above the ordinal,
//! `key mod 2^(32-d) * 2^o + ordinal`, where `o` is the number of bits of the largest ordinal (at least 1) and
//! `e = ceil((32 - d + o) / 8)`. Entries of a bucket ascend, so documents with equal keys stand together.
//!
//! ```text
//! directory  (2^d + 1) x 4
//! entries    rows x e, from the next multiple of 64
//! ```

use std::ops::Range;

use super::align;
use super::directory::Directory;

/// Codec of the section.
pub const CODEC: u16 = 1;
/// The most bits of a key that the directory has.
const DIRECTORY_BITS: u32 = 16;
/// Bits of a feature that are kept.
pub const KEY_BITS: u32 = 32;

/// What is kept of a feature.
#[must_use]
pub fn key(feature: u64) -> u32 {
    (feature >> KEY_BITS) as u32
}

/// Where the parts of a band stand in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Over the first bits of the key.
    pub directory: Directory,
    /// Bits of an ordinal.
    pub ordinal_bits: u32,
    /// Bytes of an entry.
    pub entry_bytes: u64,
    entries: u64,
    /// Length of the section.
    pub length: u64,
}

/// An entry: the part of the key behind the directory's, and the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BandEntry {
    /// `key mod 2^(32-d)`.
    pub tag: u32,
    /// The document.
    pub ordinal: u32,
}

impl Band {
    /// The layout for `rows` sketched documents of `documents`.
    #[must_use]
    pub fn of(rows: u64, documents: u64) -> Self {
        let directory = Directory::of(rows, DIRECTORY_BITS);
        let ordinal_bits = (64 - documents.saturating_sub(1).leading_zeros()).max(1);
        let entry_bytes = u64::from((KEY_BITS - directory.bits + ordinal_bits).div_ceil(8));
        let entries = align(directory.length());
        Self { directory, ordinal_bits, entry_bytes, entries, length: entries + rows * entry_bytes }
    }

    /// The bucket of a key.
    #[must_use]
    pub fn prefix(&self, key: u32) -> u16 {
        // A shift by 32, for a directory of one bucket, is not a shift.
        (u64::from(key) >> (KEY_BITS - self.directory.bits)) as u16
    }

    /// What of a key its entry holds.
    #[must_use]
    pub fn tag(&self, key: u32) -> u32 {
        (u64::from(key) & ((1 << (KEY_BITS - self.directory.bits)) - 1)) as u32
    }

    /// The key of an entry in bucket `prefix`.
    #[must_use]
    pub fn key(&self, prefix: u16, tag: u32) -> u32 {
        (u64::from(prefix) << (KEY_BITS - self.directory.bits)) as u32 | tag
    }

    /// Where the entries of these rows stand.
    #[must_use]
    pub fn entries(&self, rows: &Range<u64>) -> Range<u64> {
        self.entries + rows.start * self.entry_bytes..self.entries + rows.end * self.entry_bytes
    }

    /// The bytes of an entry.
    #[must_use]
    pub fn encode(&self, entry: BandEntry) -> [u8; 8] {
        (u64::from(entry.tag) << self.ordinal_bits | u64::from(entry.ordinal)).to_le_bytes()
    }

    /// The first of a run of rows with ones above its tag, where an entry has no bits. [`decode`](Self::decode)
    /// does not look at them.
    #[must_use]
    pub fn overfull(&self, bytes: &[u8]) -> Option<usize> {
        let used = KEY_BITS - self.directory.bits + self.ordinal_bits;
        bytes.chunks_exact(self.entry_bytes as usize).position(|entry| {
            let mut value = [0; 8];
            value[..entry.len()].copy_from_slice(entry);
            u64::from_le_bytes(value) >> used != 0
        })
    }

    /// Reads the entries of a run of rows. Ordinals may lie; the caller checks them against the documents.
    #[inline]
    #[must_use]
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> impl ExactSizeIterator<Item = BandEntry> + Clone + use<'a> {
        let (width, ordinal_bits) = (self.entry_bytes as usize, self.ordinal_bits);
        bytes.chunks_exact(width).map(move |entry| {
            let mut value = [0; 8];
            value[..width].copy_from_slice(entry);
            let value = u64::from_le_bytes(value);
            BandEntry {
                tag: (value >> ordinal_bits) as u32,
                ordinal: (value & ((1 << ordinal_bits) - 1)) as u32,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ordinals_come_back_at_every_size() {
        for documents in [1, 2, 15, 16, 1000, 1 << 20, 1 << 30] {
            let band = Band::of(documents, documents);
            assert!(band.entry_bytes <= 6, "{band:?}");
            for key in [0, 1, 0x8000_0000, 0x1234_5678, u32::MAX] {
                let ordinal = (documents - 1) as u32;
                let bytes = band.encode(BandEntry { tag: band.tag(key), ordinal });
                let (entry, rest) = bytes.split_at(band.entry_bytes as usize);
                assert!(rest.iter().all(|&byte| byte == 0));
                let back = band.decode(entry).next().unwrap();
                assert_eq!(
                    (band.key(band.prefix(key), back.tag), back.ordinal),
                    (key, ordinal),
                    "{documents}"
                );
            }
        }
    }
}
