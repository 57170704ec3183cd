//! Looks up the break properties of characters, and iterates over the pieces of a text.

use super::classes::{Sentence, Word};
use crate::tables::{BREAKS, count, u8s};

/// The distinct combinations of `Word_Break` and `Sentence_Break`.
pub(super) static TRAITS: [(Word, Sentence); count(BREAKS, 0) / 2] = {
    let numbers: [u8; count(BREAKS, 0)] = u8s(BREAKS, 0);
    let mut traits = [(Word::Other, Sentence::Other); count(BREAKS, 0) / 2];
    let mut i = 0;
    while i < traits.len() {
        traits[i] = (Word::ALL[numbers[2 * i] as usize], Sentence::ALL[numbers[2 * i + 1] as usize]);
        i += 1;
    }
    traits
};
/// Two-stage table: maps the upper bits of a character to its block. Characters beyond its end use the last block.
static BLOCK_OF: [u8; count(BREAKS, 1)] = u8s(BREAKS, 1);
/// The second stage: for each character, block after block, the index of its properties in `TRAITS`.
static BLOCKS: [u8; count(BREAKS, 2)] = u8s(BREAKS, 2);
/// The base-2 logarithm of the number of characters in a block.
const BLOCK_BITS: u32 = 7;

/// Returns the `Word_Break` and `Sentence_Break` properties of a character.
#[inline]
pub(super) const fn traits(c: char) -> (Word, Sentence) {
    let code = c as usize;
    let number = code >> BLOCK_BITS;
    let last = BLOCK_OF.len() - 1;
    let block = BLOCK_OF[if number < last { number } else { last }];
    let within = code & ((1 << BLOCK_BITS) - 1);
    TRAITS[BLOCKS[(block as usize) << BLOCK_BITS | within] as usize]
}

/// The properties of the ASCII characters, which are the most frequent.
pub(super) static ASCII: [(Word, Sentence); 128] = {
    let mut ascii = [(Word::Other, Sentence::Other); 128];
    let mut byte = 0_u8;
    while byte < 128 {
        ascii[byte as usize] = traits(byte as char);
        byte += 1;
    }
    ascii
};

/// Returns the properties of the character at byte `at`, which must be less than the length of `text`, and the offset of the
/// next character.
#[inline]
pub(super) fn traits_at(text: &str, at: usize) -> ((Word, Sentence), usize) {
    let byte = text.as_bytes()[at];
    if byte.is_ascii() {
        return (ASCII[usize::from(byte)], at + 1);
    }
    let c = text[at..].chars().next().expect("`at` is before the end");
    (traits(c), at + c.len_utf8())
}

/// An iterator over consecutive pieces of a text. `end_of` returns the end of the piece that begins at a given offset.
pub(super) struct Pieces<'a, F> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) end_of: F,
}

impl<'a, F: Fn(&str, usize) -> usize> Iterator for Pieces<'a, F> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        if self.at == self.text.len() {
            return None;
        }
        let start = self.at;
        self.at = (self.end_of)(self.text, start);
        Some(&self.text[start..self.at])
    }
}
