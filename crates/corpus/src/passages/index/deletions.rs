//! The set of deleted documents of a part, and the encoding of its file.

use crate::passages::index::format::{GONE_HEAD_BYTES, GONE_MAGIC, VERSION, checksum};

/// The deleted documents of a part: one bit per document, and one count per 64 documents. Empty if no document is deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletedDocuments {
    bits: Vec<u64>,
    /// For each word of `bits`, the number of deleted documents before it.
    before: Vec<u32>,
    count: u32,
}

impl DeletedDocuments {
    /// Creates the set from document numbers, which must be ascending and distinct.
    pub(crate) fn of(numbers: &[u32]) -> Self {
        let Some(&last) = numbers.last() else { return Self::default() };
        let mut bits = vec![0_u64; last as usize / 64 + 1];
        for &number in numbers {
            bits[number as usize / 64] |= 1 << (number % 64);
        }
        let mut count = 0;
        let before = bits.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before = before.collect();
        Self { bits, before, count }
    }

    #[inline]
    pub(crate) fn has(&self, document: u32) -> bool {
        self.bits.get(document as usize / 64).is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of deleted documents before `document`.
    pub(crate) fn before(&self, document: u32) -> u32 {
        match self.bits.get(document as usize / 64) {
            None => self.count,
            Some(word) => {
                let lower = word & ((1_u64 << (document % 64)) - 1);
                self.before[document as usize / 64] + lower.count_ones()
            }
        }
    }

    /// Returns the numbers of the deleted documents, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.bits.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at as u32 + bit)
        })
    }

    /// Encodes the file of deleted documents of the part with the number `part`.
    pub(crate) fn to_bytes(&self, part: u64) -> Vec<u8> {
        let mut bytes = GONE_MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&part.to_le_bytes());
        bytes.extend_from_slice(&u64::from(self.count).to_le_bytes());
        for number in self.numbers() {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes the file of deleted documents of part `part`, which has `documents` documents.
    ///
    /// # Errors
    ///
    /// Fails if the file is damaged, with the offset, the expected value, and the value found.
    pub(crate) fn from_bytes(bytes: &[u8], part: u64, documents: u32) -> Result<Self, (u64, String, String)> {
        let fault = |offset: usize, expected: String, found: String| Err((offset as u64, expected, found));
        let number_at = |at: usize, size: usize| {
            bytes[at..at + size].iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))
        };
        if bytes.len() < GONE_HEAD_BYTES + 8 {
            let expected = format!("{} bytes or more", GONE_HEAD_BYTES + 8);
            return fault(bytes.len(), expected, format!("{} bytes", bytes.len()));
        }
        if bytes[..8] != GONE_MAGIC {
            let found = format!("{:?}", bytes[..8].escape_ascii().to_string());
            return fault(0, format!("{:?}", GONE_MAGIC.escape_ascii().to_string()), found);
        }
        let end = bytes.len() - 8;
        let sum = checksum(&bytes[..end]);
        if number_at(end, 8) != sum {
            return fault(end, format!("the checksum {sum:016x}"), format!("{:016x}", number_at(end, 8)));
        }
        if number_at(8, 4) != u64::from(VERSION) {
            return fault(8, format!("version {VERSION}"), number_at(8, 4).to_string());
        }
        if number_at(16, 8) != part {
            return fault(16, format!("part {part}"), number_at(16, 8).to_string());
        }
        let (numbers, rest) = bytes[GONE_HEAD_BYTES..end].as_chunks::<4>();
        if !rest.is_empty() || number_at(24, 8) != numbers.len() as u64 {
            let found = format!("{} in {} bytes", number_at(24, 8), end - GONE_HEAD_BYTES);
            return fault(24, "4 bytes for each document".into(), found);
        }
        let numbers: Vec<u32> = numbers.iter().map(|number| u32::from_le_bytes(*number)).collect();
        let is_sound = numbers.windows(2).all(|pair| pair[0] < pair[1])
            && numbers.last().is_none_or(|&last| last < documents);
        if !is_sound {
            let expected = format!("documents below {documents} that ascend");
            return fault(GONE_HEAD_BYTES, expected, "others".into());
        }
        Ok(Self::of(&numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_round_trip_with_counts_and_each_flipped_bit_is_refused() {
        let numbers = [0, 1, 63, 64, 130, 191, 300];
        let deletions = DeletedDocuments::of(&numbers);
        assert_eq!(deletions.numbers().collect::<Vec<_>>(), numbers);
        for document in 0..400 {
            assert_eq!(deletions.has(document), numbers.contains(&document));
            let before = numbers.iter().filter(|&&number| number < document).count();
            assert_eq!(deletions.before(document) as usize, before, "{document}");
        }
        let bytes = deletions.to_bytes(7);
        let again = DeletedDocuments::from_bytes(&bytes, 7, 301).unwrap();
        assert_eq!((again.numbers().collect::<Vec<_>>(), again.count()), (numbers.to_vec(), 7));
        assert!(DeletedDocuments::from_bytes(&bytes, 8, 301).is_err(), "another part");
        assert!(DeletedDocuments::from_bytes(&bytes, 7, 300).is_err(), "a document that is not there");
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(DeletedDocuments::from_bytes(&changed, 7, 301).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(DeletedDocuments::from_bytes(&bytes[..length], 7, 301).is_err(), "cut to {length}");
        }
        let none = DeletedDocuments::of(&[]);
        assert_eq!((none.count(), none.has(0), none.before(9)), (0, false, 0));
    }
}
