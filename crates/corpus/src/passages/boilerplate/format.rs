//! Encodes and decodes a list of spans, as specified in `format-spec.md`.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

/// Magic bytes of a list.
pub(crate) const MAGIC: [u8; 8] = *b"TWXSPAN1";
/// Format version of a list.
pub(crate) const VERSION: u32 = 1;
/// Size of the header in bytes, including the digest at its end.
pub(crate) const HEADER_BYTES: usize = 80;
/// Size of the digest in bytes.
pub(crate) const DIGEST_BYTES: usize = 16;
/// Size of a span in bytes.
pub(crate) const SPAN_BYTES: usize = 16;
/// Maximum size of the settings in bytes.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The options with which a list was built, and the number of documents in which its spans were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListTotals {
    /// Number of words in a span.
    pub words: u32,
    /// A span occurs in more than this number of documents.
    pub more_than: u32,
    /// Number of documents from which the list was built.
    pub documents: u64,
}

/// The fields of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListHeader {
    pub(crate) counted: ListTotals,
    pub(crate) seed: u64,
    pub(crate) spans: u64,
    pub(crate) settings_bytes: u64,
}

/// A fault in a file: the offset, the expected value, and the value found.
pub(crate) type ListFault = (u64, String, String);

impl ListHeader {
    /// Encodes the header without its digest.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [VERSION, self.counted.words] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let ListTotals { more_than, documents, .. } = self.counted;
        for number in [more_than.into(), documents, self.seed, self.spans, self.settings_bytes, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns the byte ranges of the settings and of the spans in the file.
    pub(crate) fn places(&self) -> (Range<usize>, Range<usize>) {
        let settings = HEADER_BYTES..HEADER_BYTES + self.settings_bytes as usize;
        let end = settings.end + self.spans as usize * SPAN_BYTES;
        (settings.clone(), settings.end..end)
    }

    /// Decodes the header of a file, and verifies the digest of the whole file. Returns the header and the digest.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<(Self, u128), ListFault> {
        let fault = |offset: usize, expected: String, found: String| Err((offset as u64, expected, found));
        if bytes.get(..8) != Some(&MAGIC) {
            let found = bytes.get(..8).unwrap_or(bytes).escape_ascii().to_string();
            return fault(
                0,
                format!("{:?}, as a list of spans begins", MAGIC.escape_ascii().to_string()),
                format!("{found:?}"),
            );
        }
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return fault(
                bytes.len(),
                format!("a header of {HEADER_BYTES} bytes"),
                format!("{} bytes", bytes.len()),
            );
        };
        let u64_at =
            |at: usize| head[at..at + 8].iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        let version = u64_at(8) as u32;
        if version != VERSION {
            return fault(8, format!("version {VERSION}"), version.to_string());
        }
        let digest = digest_of(|add| {
            add(&head[..HEADER_BYTES - DIGEST_BYTES]);
            add(&bytes[HEADER_BYTES..]);
        });
        let stored = u128::from(u64_at(64)) | u128::from(u64_at(72)) << 64;
        if digest != stored {
            let at = HEADER_BYTES - DIGEST_BYTES;
            return fault(at, format!("the digest {digest:032x}"), format!("{stored:032x}"));
        }
        let words = (u64_at(8) >> 32) as u32;
        if !(1..=crate::passages::find::finder::WIDTH_MAX).contains(&(words as usize)) {
            return fault(
                12,
                format!("1 to {} words", crate::passages::find::finder::WIDTH_MAX),
                words.to_string(),
            );
        }
        let Some(more_than) = u32::try_from(u64_at(16)).ok().filter(|&number| number > 0) else {
            return fault(16, format!("1 to {}", u32::MAX), u64_at(16).to_string());
        };
        let counted = ListTotals { words, more_than, documents: u64_at(24) };
        let header = Self { counted, seed: u64_at(32), spans: u64_at(40), settings_bytes: u64_at(48) };
        if header.settings_bytes > SETTINGS_BYTES_MAX {
            let found = header.settings_bytes.to_string();
            return fault(48, format!("up to {SETTINGS_BYTES_MAX} bytes of settings"), found);
        }
        let length = header.spans.checked_mul(SPAN_BYTES as u64);
        let length = length.and_then(|bytes| bytes.checked_add(HEADER_BYTES as u64 + header.settings_bytes));
        if length != Some(bytes.len() as u64) {
            let found = format!("{} spans in a file of {} bytes", header.spans, bytes.len());
            return fault(40, "as many spans as there are bytes for".into(), found);
        }
        Ok((header, digest))
    }
}

/// Returns the XXH3-128 digest of all byte strings that `pieces` passes to its argument, concatenated.
pub(crate) fn digest_of(pieces: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u128 {
    let mut state = Xxh3::new();
    pieces(&mut |piece| state.update(piece));
    state.digest128()
}

pub(crate) fn span_to_bytes(hash: [u64; 2]) -> [u8; SPAN_BYTES] {
    (u128::from(hash[0]) << 64 | u128::from(hash[1])).to_le_bytes()
}

pub(crate) fn span_from_bytes(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_the_offsets_of_the_specification() {
        let counted =
            ListTotals { words: 0x0101_0101, more_than: 0x0202_0202, documents: 0x0303_0303_0303_0303 };
        let (seed, spans, settings_bytes) =
            (0x0404_0404_0404_0404, 0x0505_0505_0505_0505, 0x0606_0606_0606_0606);
        let bytes = ListHeader { counted, seed, spans, settings_bytes }.to_bytes();
        let spec = include_str!("../../../../../format-spec.md");
        let part = spec.split("\n### List of spans\n").nth(1).expect("the heading");
        let rows =
            part.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let mut end = 0;
        for row in rows.skip(2) {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let (offset, size): (usize, usize) = (cells[2].parse().unwrap(), cells[3].parse().unwrap());
            assert_eq!(offset, end, "{}", cells[1]);
            end = offset + size;
            let byte = match cells[1] {
                "magic" => {
                    assert_eq!(bytes[offset..end], MAGIC);
                    continue;
                }
                "version" => {
                    assert_eq!(bytes[offset..end], VERSION.to_le_bytes());
                    continue;
                }
                "more than" => {
                    assert_eq!(bytes[offset..end], 0x0202_0202_u64.to_le_bytes());
                    continue;
                }
                "digest" => continue,
                "words" => 1,
                "documents" => 3,
                "seed" => 4,
                "spans" => 5,
                "settings bytes" => 6,
                "zero" => 0,
                other => panic!("{other} is no field"),
            };
            assert!(bytes[offset..end].iter().all(|&one| one == byte), "{}", cells[1]);
        }
        assert_eq!((end, bytes.len()), (HEADER_BYTES, HEADER_BYTES - DIGEST_BYTES));
        assert!(part.contains(&format!("at most {SETTINGS_BYTES_MAX} bytes")));
    }

    #[test]
    fn spans_round_trip_and_sort_by_hash() {
        let all = [[0, 0], [0, 1], [1, 0], [1, 7], [u64::MAX >> 3, 3]];
        let numbers = all.map(|hash| span_from_bytes(&span_to_bytes(hash)));
        assert!(numbers.is_sorted());
        assert_eq!(numbers[3], 1 << 64 | 7);
    }
}
