//! A table of document frequencies: the number of documents in a collection that contain each shingle.
//!
//! ```text
//!  0  header (role 5; its salt is the table's digest, its parameters' digest is the digest of the text below)
//! 64  documents 8   entries 8   absent 4   length of the text 4
//! 88  how text is tokenized and shingled: the lines `tokens` to `seed` of the parameters
//!     hashes, 8 bytes each, ascending   frequencies, 4 bytes each, in the same order
//! ```
//!
//! The table's digest is the xxh3-128 of all bytes after the header, so it identifies the content of the file. The
//! parameters of an index contain the digest of the table that the index uses. [`decode`] checks the digest in the
//! header.

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use super::header::{HEADER_BYTES, Header, Refusal, Role, text_of};
use super::limits::PARAMS_BYTES_MAX;
use super::wire::{self, Fault};
use crate::params::Shingling;
use twindex_sketch::IdfTable;

/// Maximum number of documents of a table.
pub const IDF_DOCUMENTS_MAX: u64 = u32::MAX as u64;
/// Maximum number of entries of a table.
pub const IDF_ENTRIES_MAX: u64 = 1 << 27;
/// The offset in the file of the text that specifies how documents are tokenized and shingled.
const TEXT_AT: usize = HEADER_BYTES + 24;
/// Maximum length of the file in bytes.
pub const IDF_BYTES_MAX: u64 = length(PARAMS_BYTES_MAX as u64, IDF_ENTRIES_MAX);

/// The content of a file. `hashes` and `frequencies` are views of the file's bytes.
#[derive(Clone, Debug)]
pub struct Idf<'a> {
    /// The xxh3-128 of all bytes after the header.
    pub digest: u128,
    /// Number of documents in the collection.
    pub documents: u32,
    /// The frequency assumed for a shingle without an entry.
    pub absent: u32,
    /// The rules by which the documents were split into shingles.
    pub shingling: Shingling,
    /// Shingle hashes, ascending.
    pub hashes: &'a [U64],
    /// For each shingle hash, the number of documents that contain the shingle.
    pub frequencies: &'a [U32],
}

/// Encodes a file. Does not check the arguments; [`decode`] checks the file.
#[must_use]
pub fn encode(
    documents: u32,
    absent: u32,
    shingling: &Shingling,
    hashes: &[u64],
    frequencies: &[u32],
) -> Vec<u8> {
    let text = shingling.encode();
    let mut bytes = Vec::with_capacity(TEXT_AT + text.len() + 12 * hashes.len());
    bytes.resize(HEADER_BYTES, 0);
    bytes.extend_from_slice(&u64::from(documents).to_le_bytes());
    bytes.extend_from_slice(&(hashes.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&absent.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
    bytes.extend(frequencies.iter().flat_map(|frequency| frequency.to_le_bytes()));
    let header = Header::new(Role::Idf, digest(&bytes), xxh3_128(text.as_bytes()));
    let header = header.with_features(text_of(shingling), 0);
    bytes[..HEADER_BYTES].copy_from_slice(header.as_bytes());
    bytes
}

/// Returns the length in bytes of a file with a text of `text_length` bytes and `entries` entries.
#[must_use]
pub const fn length(text_length: u64, entries: u64) -> u64 {
    TEXT_AT as u64 + text_length + 12 * entries
}

/// Returns the digest of the table in a file with the content `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> u128 {
    xxh3_128(&bytes[HEADER_BYTES..])
}

impl Idf<'_> {
    /// Converts the content to a table for lookups.
    ///
    /// # Errors
    /// A [`Refusal`] for invalid columns. The columns that [`decode`] returns are valid.
    pub fn table(self) -> Result<IdfTable, Refusal> {
        let hashes = self.hashes.iter().map(|hash| hash.get()).collect();
        let frequencies = self.frequencies.iter().map(|frequency| frequency.get()).collect();
        IdfTable::new(self.digest, self.documents, self.absent, self.shingling, hashes, frequencies).map_err(
            |error| Refusal::Damaged(Fault::new(TEXT_AT as u64, "columns of a table", error.to_string())),
        )
    }
}

/// Decodes a whole file and checks all its fields.
///
/// # Errors
/// A [`Refusal`] if the file is damaged or not supported by this version.
pub fn decode(bytes: &[u8]) -> Result<Idf<'_>, Refusal> {
    let header = Header::read(bytes, Role::Idf)?;
    checked(bytes, &header).map_err(Refusal::Damaged)
}

fn checked<'a>(bytes: &'a [u8], header: &Header) -> Result<Idf<'a>, Fault> {
    let at = |place: usize, expected: String, found: String| Err(Fault::new(place as u64, expected, found));
    let body = &bytes[HEADER_BYTES..];
    let digest = xxh3_128(body);
    if digest != header.salt.get() {
        return at(HEADER_BYTES, format!("digest {:032x}", header.salt.get()), format!("{digest:032x}"));
    }
    let (fixed, rest) = wire::split(body, (TEXT_AT - HEADER_BYTES) as u64, "counts")?;
    let number = |place: usize| u64::from_le_bytes(std::array::from_fn(|i| fixed[place + i]));
    let (documents, entries) = (number(0), number(8));
    let (absent, text_length) = (number(16) as u32, (number(16) >> 32) as u32);
    if documents > IDF_DOCUMENTS_MAX {
        return at(HEADER_BYTES, format!("at most {IDF_DOCUMENTS_MAX} documents"), documents.to_string());
    }
    if entries > IDF_ENTRIES_MAX {
        return at(HEADER_BYTES + 8, format!("at most {IDF_ENTRIES_MAX} entries"), entries.to_string());
    }
    if text_length > PARAMS_BYTES_MAX {
        let expected = format!("at most {PARAMS_BYTES_MAX} bytes of text");
        return at(HEADER_BYTES + 20, expected, text_length.to_string());
    }
    let length = length(text_length.into(), entries);
    if bytes.len() as u64 != length {
        return at(HEADER_BYTES, format!("{length} bytes of file"), bytes.len().to_string());
    }
    let (text, columns) = wire::split(rest, text_length.into(), "text")?;
    if xxh3_128(text) != header.params_digest.get() {
        return at(TEXT_AT, "the text of the digest in the header".into(), "another".into());
    }
    let wrong = |found: String| Fault::new(TEXT_AT as u64, "how text is cut, as parameters say it", found);
    let text = std::str::from_utf8(text).map_err(|e| wrong(e.to_string()))?;
    let shingling = Shingling::decode(text).map_err(|e| wrong(e.to_string()))?;
    let (features, found) = (text_of(&shingling), header.incompatible.get());
    if found != features {
        let expected = format!("the incompatible features of its text, {features:#x}");
        return Err(Fault::new(12, expected, format!("{found:#x}")));
    }
    let (hashes, frequencies) = wire::split(columns, 8 * entries, "hashes")?;
    let (hashes, frequencies) = (wire::column::<U64>(hashes)?, wire::column::<U32>(frequencies)?);
    let hashes_at = TEXT_AT + text.len();
    if let Some(i) = (1..hashes.len()).find(|&i| hashes[i - 1].get() >= hashes[i].get()) {
        let expected = format!("a hash above {:016x}", hashes[i - 1].get());
        return at(hashes_at + 8 * i, expected, format!("{:016x}", hashes[i].get()));
    }
    let range = absent.max(1)..=documents as u32;
    if let Some(i) = frequencies.iter().position(|frequency| !range.contains(&frequency.get())) {
        let expected = format!("a frequency of {} to {}", range.start(), range.end());
        return at(hashes_at + 8 * hashes.len() + 4 * i, expected, frequencies[i].to_string());
    }
    if u64::from(absent) > documents {
        return at(HEADER_BYTES + 16, format!("a frequency of at most {documents}"), absent.to_string());
    }
    Ok(Idf { digest, documents: documents as u32, absent, shingling, hashes, frequencies })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<u8> {
        let hashes = [3, 5, u64::MAX];
        encode(9, 1, &Shingling::words(2, 0), &hashes, &[2, 9, 1])
    }

    #[test]
    fn table_round_trips() {
        let bytes = table();
        let idf = decode(&bytes).unwrap();
        assert_eq!((idf.documents, idf.absent, idf.shingling), (9, 1, Shingling::words(2, 0)));
        assert_eq!(idf.hashes.iter().map(|hash| hash.get()).collect::<Vec<_>>(), [3, 5, u64::MAX]);
        assert_eq!(idf.frequencies.iter().map(|df| df.get()).collect::<Vec<_>>(), [2, 9, 1]);
        assert_eq!(idf.digest, xxh3_128(&bytes[HEADER_BYTES..]));
    }

    #[test]
    fn every_flipped_bit_truncation_and_extra_byte_is_detected() {
        let bytes = table();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "length {length}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    /// Recomputes the digests of a file after a test changed its body, so that the changed field is the only invalid
    /// one.
    fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let length = u32::from_le_bytes(bytes[TEXT_AT - 4..TEXT_AT].try_into().unwrap()) as usize;
        let text = &bytes[TEXT_AT..bytes.len().min(TEXT_AT + length)];
        let header = Header::new(Role::Idf, xxh3_128(&bytes[HEADER_BYTES..]), xxh3_128(text));
        bytes[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        bytes
    }

    #[test]
    fn invalid_field_with_valid_digest_is_refused_at_its_offset() {
        let sound = table();
        let hashes = sound.len() - 36;
        for (what, place, lie) in [
            ("documents over the limit", 64, &u64::MAX.to_le_bytes()[..]),
            ("a frequency over the documents", 64, &8_u64.to_le_bytes()),
            ("fewer entries", 72, &2_u64.to_le_bytes()),
            ("entries over the limit", 72, &u64::MAX.to_le_bytes()),
            ("absent over a frequency", 80, &2_u32.to_le_bytes()),
            ("a longer text", 84, &u32::MAX.to_le_bytes()),
            ("a shorter text", 84, &1_u32.to_le_bytes()),
            ("another line", 88, b"T"),
            ("no UTF-8", 88, &[0xFF]),
            ("equal hashes", hashes, &5_u64.to_le_bytes()),
            ("hashes out of order", hashes, &6_u64.to_le_bytes()),
            ("a frequency of none", hashes + 24, &0_u32.to_le_bytes()),
        ] {
            let mut lying = sound.clone();
            lying[place..place + lie.len()].copy_from_slice(lie);
            let lying = resealed(lying);
            let refused = decode(&lying);
            assert!(matches!(refused, Err(Refusal::Damaged(_))), "{what}: {refused:?}");
        }
        let mut lying = sound.clone();
        lying[88] = b'T';
        let Err(Refusal::Damaged(fault)) = decode(&resealed(lying)) else { panic!("taken") };
        assert!(fault.offset == 88 && fault.found.contains("expected a line `tokens=...`"), "{fault:?}");
        assert!(decode(&resealed(sound)).is_ok());
    }
}
