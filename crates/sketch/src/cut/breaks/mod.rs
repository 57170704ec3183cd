//! Word and sentence boundaries by the default rules of UAX #29, with tables that are part of this crate.
//!
//! [`tables`] has the properties of characters in one version of Unicode, which is stored in the parameters of an index.
//! Later versions of Unicode occasionally change the properties of characters. Rules and tables are part of this crate so
//! that no update of a dependency can move a boundary.

mod sentences;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use sentences::Sentence;
use tables::{TRAIT_BITS, TRAIT_BLOCK_OF, TRAIT_BLOCKS, TRAITS};
use words::Word;

pub(super) use sentences::sentences;
pub(super) use words::words;

/// Returns the `Word_Break` and `Sentence_Break` properties of a character.
#[inline]
const fn traits(c: char) -> (Word, Sentence) {
    let code = c as usize;
    let number = code >> TRAIT_BITS;
    let last = TRAIT_BLOCK_OF.len() - 1;
    let block = TRAIT_BLOCK_OF[if number < last { number } else { last }];
    let within = code & ((1 << TRAIT_BITS) - 1);
    TRAITS[TRAIT_BLOCKS[(block as usize) << TRAIT_BITS | within] as usize]
}

/// The properties of the ASCII characters, which are the most frequent.
static ASCII: [(Word, Sentence); 128] = {
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
fn traits_at(text: &str, at: usize) -> ((Word, Sentence), usize) {
    let byte = text.as_bytes()[at];
    if byte.is_ascii() {
        return (ASCII[usize::from(byte)], at + 1);
    }
    let c = text[at..].chars().next().expect("`at` is before the end");
    (traits(c), at + c.len_utf8())
}

/// An iterator over consecutive pieces of a text. `end_of` returns the end of the piece that begins at a given offset.
struct Pieces<'a, F> {
    text: &'a str,
    at: usize,
    end_of: F,
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
