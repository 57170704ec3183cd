//! Encodes and decodes a part of a passage index, and the list of parts, as specified in `format-spec.md`.

use std::ops::Range;

/// Magic bytes of a part.
pub(crate) const PART_MAGIC: [u8; 8] = *b"TWXPSGP1";
/// Magic bytes of the list of parts.
pub(crate) const LIST_MAGIC: [u8; 8] = *b"TWXPSGL1";
/// Format version of parts and of lists without deletions.
pub(crate) const VERSION: u32 = 1;
/// Size of the header of a part in bytes.
pub(crate) const HEADER_BYTES: usize = 256;
/// Size of a block in bytes. Each block has a checksum.
pub(crate) const BLOCK: usize = 1 << 14;
/// Number of postings in a group. Within a group, a posting is encoded as the difference from the previous posting.
pub(crate) const POSTINGS: usize = 128;
/// Number of upper bits of a fingerprint that are stored.
pub(crate) const FINGERPRINT_BITS: u32 = 48;
/// Size of a fence entry in bytes: the first fingerprint of a group of postings, and the offset of the group.
pub(crate) const FENCE_BYTES: usize = 16;
/// Size of the header of the list of parts, in bytes. Entries of [`LIST_ENTRY_BYTES`] bytes and a checksum follow.
pub(crate) const LIST_HEAD_BYTES: usize = 16;
/// Size in bytes of an entry of a list without deletions.
pub(crate) const LIST_ENTRY_BYTES: usize = 32;
/// Format version of a list with deletions.
pub(crate) const LIST_VERSION_GONE: u32 = 2;
/// Size in bytes of an entry of a list with deletions.
pub(crate) const LIST_ENTRY_BYTES_GONE: usize = 48;
/// Maximum size of the list of parts in bytes.
pub(crate) const LIST_BYTES_MAX: u64 = (LIST_HEAD_BYTES + PARTS_MAX * LIST_ENTRY_BYTES_GONE + 8) as u64;
/// Magic bytes of a file of deleted documents.
pub(crate) const GONE_MAGIC: [u8; 8] = *b"TWXPSGD1";
/// Size in bytes of the header of a file of deleted documents.
pub(crate) const GONE_HEAD_BYTES: usize = 32;
/// Maximum number of parts in an index.
pub(crate) const PARTS_MAX: usize = 1 << 16;
/// Maximum size of the settings in bytes.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The sections of a part, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexSection {
    /// The text options, as UTF-8 text.
    Settings,
    /// The keys of all documents, concatenated.
    Keys,
    /// The end of each key, 8 bytes each.
    KeyEnds,
    /// The total number of units up to the end of each document, 8 bytes each.
    UnitEnds,
    /// Hashes of the units, 4 bytes each.
    Hashes,
    /// The end of each document's data in `Places`, 8 bytes each.
    PlaceEnds,
    /// For each unit, the distance of its start from the end of the previous unit, and its length, both in bytes of the
    /// text.
    Places,
    /// All postings, sorted by fingerprint, in groups.
    Postings,
    /// For each group of postings, its first fingerprint and its offset.
    Fence,
    /// A checksum of each block of the file before this section, 8 bytes each.
    Checksums,
}

pub(crate) const SECTIONS: usize = 10;

impl IndexSection {
    /// Returns the name of the section, as used in error messages and in the specification.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Keys => "keys",
            Self::KeyEnds => "key ends",
            Self::UnitEnds => "unit ends",
            Self::Hashes => "hashes",
            Self::PlaceEnds => "place ends",
            Self::Places => "places",
            Self::Postings => "postings",
            Self::Fence => "fence",
            Self::Checksums => "checksums",
        }
    }
}

/// The fields of the header of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartHeader {
    /// Number of units in a run, and in a fingerprint.
    pub(crate) widths: (u32, u32),
    pub(crate) seed: u64,
    pub(crate) documents: u64,
    pub(crate) units: u64,
    pub(crate) postings: u64,
    /// The end of each section, as an offset in the file. The first section begins after the header; every other
    /// section begins where the previous one ends.
    pub(crate) ends: [u64; SECTIONS],
}

impl PartHeader {
    pub(crate) fn section(&self, section: IndexSection) -> Range<u64> {
        let number = section as usize;
        let start = number.checked_sub(1).map_or(HEADER_BYTES as u64, |before| self.ends[before]);
        start..self.ends[number]
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&PART_MAGIC);
        for number in [VERSION, self.widths.0, self.widths.1, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.seed, self.documents, self.units, self.postings] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for end in self.ends {
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        bytes.resize(HEADER_BYTES - 8, 0);
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes and checks the header of a file that has `file_bytes` bytes.
    ///
    /// # Errors
    ///
    /// Fails if the header is damaged, with the offset, the expected value, and the value found.
    pub(crate) fn from_bytes(bytes: &[u8], file_bytes: u64) -> Result<Self, (u64, String, String)> {
        let fault = |offset: usize, expected: String, found: String| Err((offset as u64, expected, found));
        if bytes.len() < HEADER_BYTES {
            return fault(
                bytes.len(),
                format!("a header of {HEADER_BYTES} bytes"),
                format!("{} bytes", bytes.len()),
            );
        }
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..8] != PART_MAGIC {
            return fault(
                0,
                format!("{:?}", PART_MAGIC.escape_ascii().to_string()),
                format!("{:?}", bytes[..8].escape_ascii().to_string()),
            );
        }
        let sum = checksum(&bytes[..HEADER_BYTES - 8]);
        if u64_at(HEADER_BYTES - 8) != sum {
            let found = format!("{:016x}", u64_at(HEADER_BYTES - 8));
            return fault(HEADER_BYTES - 8, format!("the checksum {sum:016x}"), found);
        }
        if u32_at(8) != VERSION {
            return fault(8, format!("version {VERSION}"), u32_at(8).to_string());
        }
        let mut header = Self {
            widths: (u32_at(12), u32_at(16)),
            seed: u64_at(24),
            documents: u64_at(32),
            units: u64_at(40),
            postings: u64_at(48),
            ends: [0; SECTIONS],
        };
        let (t, k) = header.widths;
        if !(1..=t).contains(&k) || t as usize > crate::passages::find::finder::WIDTH_MAX {
            return fault(12, "1 <= k <= t <= 65535".into(), format!("t = {t}, k = {k}"));
        }
        let mut before = HEADER_BYTES as u64;
        for (number, end) in header.ends.iter_mut().enumerate() {
            *end = u64_at(56 + 8 * number);
            if *end < before || *end > file_bytes {
                return fault(56 + 8 * number, format!("{before} to {file_bytes}"), end.to_string());
            }
            before = *end;
        }
        let length = |section: IndexSection| header.section(section).end - header.section(section).start;
        let groups = header.postings.div_ceil(POSTINGS as u64);
        let blocks = header.ends[SECTIONS - 2].div_ceil(BLOCK as u64);
        for (section, count, width) in [
            (IndexSection::KeyEnds, header.documents, 8),
            (IndexSection::UnitEnds, header.documents, 8),
            (IndexSection::PlaceEnds, header.documents, 8),
            (IndexSection::Hashes, header.units, 4),
            (IndexSection::Fence, groups, FENCE_BYTES as u64),
            (IndexSection::Checksums, blocks, 8),
        ] {
            if count.checked_mul(width) != Some(length(section)) {
                let found = format!("{} bytes of {}", length(section), section.name());
                return fault(56 + 8 * section as usize, format!("{count} times {width} bytes"), found);
            }
        }
        if header.ends[SECTIONS - 1] != file_bytes || header.documents > u64::from(u32::MAX) {
            let found = format!("{file_bytes} bytes, {} documents", header.documents);
            return fault(32, format!("a file of {} bytes", header.ends[SECTIONS - 1]), found);
        }
        if length(IndexSection::Settings) > SETTINGS_BYTES_MAX {
            return fault(
                56,
                format!("up to {SETTINGS_BYTES_MAX} bytes of settings"),
                length(IndexSection::Settings).to_string(),
            );
        }
        Ok(header)
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Appends a number as a variable-length integer (LEB128): groups of 7 bits, lowest first.
pub(crate) fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Decodes a variable-length integer and advances `at` past it. Returns `None` if it is truncated or exceeds 64 bits.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let &byte = bytes.get(*at)?;
        *at += 1;
        let low = u64::from(byte & 0x7f);
        if shift == 63 && low > 1 {
            return None;
        }
        number |= low << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Maps a signed distance to an unsigned number, so that small absolute values give small numbers.
pub(crate) fn zigzag(distance: i64) -> u64 {
    (distance << 1 ^ distance >> 63).cast_unsigned()
}

/// Decodes the result of [`zigzag`].
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// An entry of the list, which describes one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartEntry {
    /// The number in the part's file name.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) documents: u64,
    /// The checksum of the part's header, which is stored at the header's end.
    pub(crate) header: u64,
    /// The number in the file name of the part's deleted documents; 0 if no document is deleted.
    pub(crate) deletions: u64,
    /// Number of deleted documents.
    pub(crate) deleted: u64,
}

impl PartEntry {
    /// Returns the size in bytes of an encoded entry: larger if any part of the list has deleted documents.
    pub(crate) fn bytes_of(entries: &[Self]) -> usize {
        let has_deletions = entries.iter().any(|entry| entry.deletions > 0);
        if has_deletions { LIST_ENTRY_BYTES_GONE } else { LIST_ENTRY_BYTES }
    }
}

pub(crate) fn list_to_bytes(entries: &[PartEntry]) -> Vec<u8> {
    let mut bytes = LIST_MAGIC.to_vec();
    let width = PartEntry::bytes_of(entries);
    let version = if width == LIST_ENTRY_BYTES { VERSION } else { LIST_VERSION_GONE };
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        let numbers =
            [entry.number, entry.bytes, entry.documents, entry.header, entry.deletions, entry.deleted];
        for number in &numbers[..width / 8] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Decodes a list of parts.
///
/// # Errors
///
/// Fails if the list is damaged, with the offset, the expected value, and the value found.
pub(crate) fn list_from_bytes(bytes: &[u8]) -> Result<Vec<PartEntry>, (u64, String, String)> {
    let fault = |offset: usize, expected: String, found: String| Err((offset as u64, expected, found));
    let u64_at = |at: usize| -> u64 {
        bytes[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    if bytes.len() < LIST_HEAD_BYTES + 8 {
        return fault(
            bytes.len(),
            format!("{} bytes or more", LIST_HEAD_BYTES + 8),
            format!("{} bytes", bytes.len()),
        );
    }
    if bytes[..8] != LIST_MAGIC {
        return fault(
            0,
            format!("{:?}", LIST_MAGIC.escape_ascii().to_string()),
            format!("{:?}", bytes[..8].escape_ascii().to_string()),
        );
    }
    let end = bytes.len() - 8;
    let sum = checksum(&bytes[..end]);
    if u64_at(end) != sum {
        return fault(end, format!("the checksum {sum:016x}"), format!("{:016x}", u64_at(end)));
    }
    let (version, count) = (u64_at(8) as u32, (u64_at(8) >> 32) as usize);
    let width = match version {
        VERSION => LIST_ENTRY_BYTES,
        LIST_VERSION_GONE => LIST_ENTRY_BYTES_GONE,
        other => return fault(8, format!("version {VERSION} or {LIST_VERSION_GONE}"), other.to_string()),
    };
    if count > PARTS_MAX || LIST_HEAD_BYTES + count * width != end {
        return fault(12, format!("entries in {} bytes", end - LIST_HEAD_BYTES), count.to_string());
    }
    Ok((0..count)
        .map(|number| LIST_HEAD_BYTES + number * width)
        .map(|at| PartEntry {
            number: u64_at(at),
            bytes: u64_at(at + 8),
            documents: u64_at(at + 16),
            header: u64_at(at + 24),
            deletions: if width > LIST_ENTRY_BYTES { u64_at(at + 32) } else { 0 },
            deleted: if width > LIST_ENTRY_BYTES { u64_at(at + 40) } else { 0 },
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_truncated_varints_decode_to_none() {
        let mut bytes = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        for number in numbers {
            put(number, &mut bytes);
        }
        let mut at = 0;
        for number in numbers {
            assert_eq!(get(&bytes, &mut at), Some(number));
        }
        assert_eq!(get(&bytes, &mut at), None);
        assert_eq!(get(&[0x80, 0x80], &mut 0), None);
        assert_eq!(get(&[0xff; 11], &mut 0), None);
        for distance in [0, 1, -1, 77, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(distance)), distance);
        }
    }

    /// Reads the first table after a heading of the specification. Returns the name, offset and size of each row.
    fn table(heading: &str) -> Vec<(String, usize, usize)> {
        let spec = include_str!("../../../../../format-spec.md");
        let part =
            spec.split(&format!("\n{heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
        let rows =
            part.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        rows.skip(2)
            .map(|row| {
                let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
                (cells[1].to_owned(), cells[2].parse().unwrap(), cells[3].parse().unwrap())
            })
            .collect()
    }

    #[test]
    fn fields_are_at_the_offsets_of_the_specification() {
        let header = PartHeader {
            widths: (0x0101_0101, 0x0202_0202),
            seed: 0x0303_0303_0303_0303,
            documents: 0x0404_0404_0404_0404,
            units: 0x0505_0505_0505_0505,
            postings: 0x0606_0606_0606_0606,
            ends: [0x0707_0707_0707_0707; SECTIONS],
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), HEADER_BYTES);
        let mut end = 0;
        for (name, offset, size) in table("#### Header of a part") {
            assert_eq!(offset, end, "{name}");
            end = offset + size;
            let field = &bytes[offset..end];
            let byte = match &*name {
                "magic" => {
                    assert_eq!(field, PART_MAGIC);
                    continue;
                }
                "version" => {
                    assert_eq!(field, VERSION.to_le_bytes());
                    continue;
                }
                "checksum" => {
                    assert_eq!(field, checksum(&bytes[..offset]).to_le_bytes());
                    continue;
                }
                "reserved" | "zero" => 0,
                "t" => 1,
                "k" => 2,
                "seed" => 3,
                "documents" => 4,
                "units" => 5,
                "postings" => 6,
                "ends" => 7,
                other => panic!("{other} is no field"),
            };
            assert!(field.iter().all(|&one| one == byte), "{name}");
        }
        assert_eq!(end, HEADER_BYTES);
        let list = table("#### List of passages");
        assert_eq!(list.iter().map(|(_, _, size)| size).sum::<usize>(), LIST_HEAD_BYTES);
        let entry = PartEntry { number: 1, bytes: 2, documents: 3, header: 4, deletions: 0, deleted: 0 };
        let bytes = list_to_bytes(&[entry]);
        assert_eq!(bytes[..8], LIST_MAGIC);
        assert_eq!(bytes.len(), LIST_HEAD_BYTES + LIST_ENTRY_BYTES + 8);
        let spec = include_str!("../../../../../format-spec.md");
        for words in [
            format!("groups of {POSTINGS} postings"),
            format!("each {BLOCK} bytes"),
            format!("at most {SETTINGS_BYTES_MAX} bytes"),
        ] {
            assert!(spec.contains(&words), "{words}");
        }
    }

    #[test]
    fn list_of_parts_round_trips_and_each_flipped_bit_is_refused() {
        let entry = |number, deletions| PartEntry {
            number,
            bytes: 9,
            documents: 3,
            header: 77,
            deletions,
            deleted: deletions.min(2),
        };
        for entries in [[entry(1, 0), entry(5, 0)], [entry(1, 7), entry(5, 0)]] {
            let bytes = list_to_bytes(&entries);
            assert_eq!(list_from_bytes(&bytes).unwrap(), entries);
            for bit in 0..8 * bytes.len() {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(list_from_bytes(&changed).is_err(), "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert!(list_from_bytes(&bytes[..length]).is_err());
            }
        }
    }
}
