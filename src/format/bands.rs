//! A band section: finds documents by their band key, a hash of a group of minima.
//!
//! A band key is the upper `b` bits of the document's feature, where `b` is the parameter `feature-bits`: usually 32,
//! or 8 for Broder's features of one byte. In memory, in logs and in record hashes a band key is a `u32` whose lowest
//! `32 - b` bits are zero, so keys are compared in the same way for all `b`. The section has a directory over the first
//! `d` bits of the keys ([`prefix_bits`](crate::design::prefix_bits) of the rows, at most `b`), and an entry of `w`
//! bits for each document that has a sketch. The upper bits of an entry are the last `b - d` bits of the key, and its
//! lower `o` bits are the ordinal. `o` is the number of bits of the largest ordinal (at least 1), and `w = b - d + o`.
//! The entries of a bucket ascend, so documents with equal keys are adjacent. Entries are packed without padding,
//! starting at the lowest bit of a byte. In older files each entry takes whole bytes: `w` is rounded up to a multiple
//! of 8.
//!
//! ```text
//! directory  (2^d + 1) x 4
//! entries    ceil(rows x w / 8), from the next multiple of 64
//! ```

use std::ops::Range;

use super::align;
use super::directory::Directory;
pub use crate::params::KEY_BITS;
use crate::params::Params;

/// Codec number of sections whose entries take whole bytes, as in files without the feature `packed`.
pub const CODEC_BYTES: u16 = 1;
/// Codec number of sections whose entries are packed without padding bits.
pub const CODEC_PACKED: u16 = 2;
/// Maximum number of bits of the directory of a band.
const DIRECTORY_BITS: u32 = 16;

/// Returns the number of bits of each feature that an index with these parameters stores; [`KEY_BITS`] if it stores no
/// features.
#[must_use]
pub fn bits_of(params: &Params) -> u32 {
    params.minhash.map_or(KEY_BITS, |minhash| minhash.feature_bits.into())
}

/// Returns the stored part of a feature: its first `bits` bits, followed by zeros.
#[must_use]
#[inline]
pub fn key(feature: u64, bits: u32) -> u32 {
    // If `bits` is 0, the shift is by 32 bits, for which `checked_shl` returns `None`.
    (feature >> KEY_BITS) as u32 & u32::MAX.checked_shl(KEY_BITS.saturating_sub(bits)).unwrap_or(0)
}

/// The layout of a band section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The directory over the first bits of the key.
    pub directory: Directory,
    /// Number of stored bits of a feature.
    pub key_bits: u32,
    /// The number of documents. All ordinals are below it.
    pub below: u64,
    /// Number of bits of the ordinal in an entry.
    pub ordinal_bits: u32,
    /// Number of bits of an entry, excluding padding bits.
    used_bits: u32,
    /// Number of bits of an entry, including padding bits.
    entry_bits: u32,
    entries: u64,
    /// Length of the section in bytes.
    pub length: u64,
}

/// An entry: the bits of the key that the directory does not cover, and the ordinal of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BandEntry {
    /// The stored bits of the key after the first `d` bits, which the directory covers.
    pub tag: u32,
    /// The ordinal of the document.
    pub ordinal: u32,
}

impl Band {
    /// Returns the layout for `rows` documents with a sketch among `documents` documents in total. `key_bits` bits of
    /// each feature are stored, with the codec number `codec`.
    #[must_use]
    pub fn of(rows: u64, documents: u64, key_bits: u32, codec: u16) -> Self {
        Self::with_most(DIRECTORY_BITS.min(key_bits), (rows, documents), key_bits, codec)
    }

    /// Returns the layout of a [part](super::code_parts) of `documents` codes. Its directory may have as many bits as a key,
    /// because queries read many small buckets.
    #[must_use]
    pub fn of_part(documents: u64, key_bits: u32) -> Self {
        Self::with_most(key_bits, (documents, documents), key_bits, CODEC_PACKED)
    }

    fn with_most(most: u32, (rows, documents): (u64, u64), key_bits: u32, codec: u16) -> Self {
        let directory = Directory::of(rows, most);
        let ordinal_bits = (64 - documents.saturating_sub(1).leading_zeros()).max(1);
        let used_bits = key_bits - directory.bits + ordinal_bits;
        let entry_bits = if codec == CODEC_PACKED { used_bits } else { used_bits.next_multiple_of(8) };
        let entries = align(directory.length());
        let length = entries + (rows * u64::from(entry_bits)).div_ceil(8);
        Self { directory, key_bits, below: documents, ordinal_bits, used_bits, entry_bits, entries, length }
    }

    /// Returns the number of the bucket that contains a key.
    #[must_use]
    pub fn prefix(&self, key: u32) -> u32 {
        // Shift 64 bits, because the distance is 32 if the directory has only one bucket.
        (u64::from(key) >> (KEY_BITS - self.directory.bits)) as u32
    }

    /// Returns the first bits of a key that the directory covers, at most `bits`, and their number.
    #[must_use]
    #[inline]
    pub fn leading(&self, key: u32, bits: u32) -> (u64, u32) {
        let known = bits.min(self.directory.bits);
        // Shift 64 bits, because the distance is 32 if `known` is 0.
        (u64::from(key) >> (KEY_BITS - known), known)
    }

    /// Returns the part of a key that is stored in its entry.
    #[must_use]
    pub fn tag(&self, key: u32) -> u32 {
        ((u64::from(key) & ((1 << (KEY_BITS - self.directory.bits)) - 1)) >> self.unkept_bits()) as u32
    }

    /// Returns the key of an entry with tag `tag` in bucket `prefix`.
    #[must_use]
    pub fn key(&self, prefix: u32, tag: u32) -> u32 {
        (u64::from(prefix) << (KEY_BITS - self.directory.bits) | u64::from(tag) << self.unkept_bits()) as u32
    }

    /// Returns the number of low bits of a key that are always zero and are not stored.
    fn unkept_bits(&self) -> u32 {
        KEY_BITS - self.key_bits
    }

    /// Returns the byte range of the entries of these rows in the section.
    #[must_use]
    pub fn entries(&self, rows: &Range<u64>) -> Range<u64> {
        let bits = u64::from(self.entry_bits);
        self.entries + rows.start * bits / 8..self.entries + (rows.end * bits).div_ceil(8)
    }

    /// Encodes an entry as a number.
    #[must_use]
    pub fn encode(&self, entry: BandEntry) -> u64 {
        u64::from(entry.tag) << self.ordinal_bits | u64::from(entry.ordinal)
    }

    /// Creates a writer of consecutive entries.
    #[must_use]
    pub fn writer(&self) -> EntryWriter {
        EntryWriter { entry_bits: self.entry_bits, pending: 0, filled: 0 }
    }

    /// Returns the index in `bytes` of the first byte with a set padding bit; `None` if all padding bits are zero.
    /// `bytes` are the entries of all `rows`. [`decode`](Self::decode) does not check padding bits.
    #[must_use]
    pub fn overfull(&self, bytes: &[u8], rows: u64) -> Option<usize> {
        let spare = self.entry_bits - self.used_bits;
        let (end, last) = ((rows * u64::from(self.entry_bits)) as usize, bytes.len() * 8);
        let above = |row: u64| {
            let bit = (row + 1) as usize * self.entry_bits as usize - spare as usize;
            (bits_from(bytes, bit, spare) != 0).then_some(bit / 8)
        };
        let between = || (0..rows).find_map(above);
        let past_end = || (bits_from(bytes, end, last.saturating_sub(end) as u32) != 0).then_some(end / 8);
        if spare > 0 { between() } else { None }.or_else(past_end)
    }

    /// Decodes the entries of these rows from the bytes at [`entries`](Self::entries). The caller must check that the
    /// ordinals are below the number of documents.
    #[inline]
    #[must_use]
    pub fn decode<'a>(
        &self,
        bytes: &'a [u8],
        rows: &Range<u64>,
    ) -> impl ExactSizeIterator<Item = BandEntry> + Clone + use<'a> {
        let layout = *self;
        let first = (rows.start * u64::from(self.entry_bits) % 8) as usize;
        (0..(rows.end - rows.start) as usize)
            .map(move |place| layout.decode_at(bytes, first + place * layout.entry_bits as usize))
    }

    /// Same as [`decode`](Self::decode), but decodes only the entry at position `place` (from 0) among these rows.
    #[inline]
    #[must_use]
    pub fn decode_one(&self, bytes: &[u8], rows: &Range<u64>, place: usize) -> BandEntry {
        let first = (rows.start * u64::from(self.entry_bits) % 8) as usize;
        self.decode_at(bytes, first + place * self.entry_bits as usize)
    }

    #[inline(always)]
    fn decode_at(&self, bytes: &[u8], bit: usize) -> BandEntry {
        let value = bits_from(bytes, bit, self.used_bits);
        let ordinal_bits = self.ordinal_bits;
        BandEntry { tag: (value >> ordinal_bits) as u32, ordinal: (value & ((1 << ordinal_bits) - 1)) as u32 }
    }
}

/// Returns the `bits` bits (at most 63) that start at bit `bit`. Bits past the end of `bytes` are read as zero. No
/// entry extends past the end, because the bytes at [`Band::entries`] contain all bits of their rows.
#[inline(always)]
fn bits_from(bytes: &[u8], bit: usize, bits: u32) -> u64 {
    let (rest, shift) = (bytes.get(bit / 8..).unwrap_or_default(), (bit % 8) as u32);
    let value = match rest.first_chunk::<8>() {
        Some(word) if shift + bits <= 64 => u64::from_le_bytes(*word) >> shift,
        _ => {
            let mut word = [0; 16];
            let there = rest.len().min(word.len());
            word[..there].copy_from_slice(&rest[..there]);
            (u128::from_le_bytes(word) >> shift) as u64
        }
    };
    value & ((1 << bits) - 1)
}

/// Packs consecutive entries into bytes.
#[derive(Debug)]
pub struct EntryWriter {
    entry_bits: u32,
    /// The bits that do not fill a byte yet. `filled` is their number, 0 to 7.
    pending: u128,
    filled: u32,
}

impl EntryWriter {
    /// Adds an [encoded](Band::encode) entry, and appends the bytes that it completes to `out`.
    #[inline]
    pub fn put(&mut self, entry: u64, out: &mut Vec<u8>) {
        self.pending |= u128::from(entry) << self.filled;
        self.filled += self.entry_bits;
        let whole = self.filled / 8;
        out.extend_from_slice(&self.pending.to_le_bytes()[..whole as usize]);
        self.pending >>= 8 * whole;
        self.filled %= 8;
    }

    /// Appends the last byte to `out` if it is incomplete.
    pub fn finish(self, out: &mut Vec<u8>) {
        if self.filled > 0 {
            out.push(self.pending as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ordinals_round_trip_at_every_size() {
        let sizes = [1, 2, 15, 16, 1000, 1 << 20, 1 << 30];
        for (documents, bits) in
            sizes.into_iter().flat_map(|size| [1, 2, 8, 16, 17, 32].map(|bits| (size, bits)))
        {
            for (codec, rows) in [(CODEC_BYTES, documents), (CODEC_PACKED, documents), (CODEC_PACKED, 1)] {
                let band = Band::of(rows, documents, bits, codec);
                let keys = [0, 1, 0x8000_0000, 0x1234_5678, u32::MAX, 0, u32::MAX, 7, 7]
                    .map(|upper| key(u64::from(upper) << 32, bits));
                let ordinal = (documents - 1) as u32;
                let (mut bytes, mut writer) = (Vec::new(), band.writer());
                for key in keys {
                    writer.put(band.encode(BandEntry { tag: band.tag(key), ordinal }), &mut bytes);
                }
                writer.finish(&mut bytes);
                assert_eq!(bytes.len(), (keys.len() * band.entry_bits as usize).div_ceil(8));
                assert!(band.directory.bits <= bits.min(16));
                assert_eq!(band.used_bits, bits - band.directory.bits + band.ordinal_bits);
                assert_eq!(band.overfull(&bytes, keys.len() as u64), None);
                for from in 0..keys.len() {
                    let rows = from as u64..keys.len() as u64;
                    let at = band.entries(&rows);
                    let some = &bytes[(at.start - band.entries) as usize..(at.end - band.entries) as usize];
                    let back: Vec<BandEntry> = band.decode(some, &rows).collect();
                    let expected = keys[from..].iter().map(|&key| BandEntry { tag: band.tag(key), ordinal });
                    assert_eq!(back, expected.collect::<Vec<_>>(), "{documents} {codec} from {from}");
                    assert_eq!(band.decode_one(some, &rows, 0), back[0]);
                }
                for key in keys {
                    assert_eq!(band.key(band.prefix(key), band.tag(key)), key, "{documents} {codec} {bits}");
                }
            }
        }
    }

    #[test]
    fn band_key_keeps_leading_feature_bits_and_zeroes_the_rest() {
        let feature = 0xA5A5_A5A5_FFFF_FFFF;
        assert_eq!(
            [32, 31, 8, 1].map(|bits| key(feature, bits)),
            [0xA5A5_A5A5, 0xA5A5_A5A4, 0xA500_0000, 1 << 31]
        );
    }

    #[test]
    fn set_padding_bits_are_detected_at_any_position() {
        for (codec, rows) in [(CODEC_BYTES, 9), (CODEC_PACKED, 9), (CODEC_PACKED, 8)] {
            let band = Band::of(rows, 1000, KEY_BITS, codec);
            let length = (band.length - band.entries) as usize;
            let spare: Vec<usize> = (0..length * 8)
                .filter(|bit| {
                    let (row, within) = (bit / band.entry_bits as usize, bit % band.entry_bits as usize);
                    row as u64 >= rows || within >= band.used_bits as usize
                })
                .collect();
            for bit in 0..length * 8 {
                let mut bytes = vec![0; length];
                bytes[bit / 8] |= 1 << (bit % 8);
                let found = band.overfull(&bytes, rows);
                assert_eq!(found.is_some(), spare.contains(&bit), "{codec} {rows}: bit {bit}");
                assert!(found.is_none_or(|at| at <= bit / 8), "{codec} {rows}: bit {bit}");
            }
            assert_eq!(spare.is_empty(), codec == CODEC_PACKED && rows == 8);
        }
    }
}
