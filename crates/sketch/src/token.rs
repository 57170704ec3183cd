//! Splits text into tokens: lower-cased runs of word characters.
//!
//! Word characters are those of `\w` in most regular expressions: letters, marks, digits and the underscore. All other
//! characters separate words. There are two more rules:
//!
//! - In a script that is written without spaces (Han, kana, Thai, Khmer and so on; the list of blocks is in
//!   `tests/second/tables.py`), each letter is a token, together with the marks that follow it. Digits of these scripts
//!   form runs as in other scripts. Hangul has spaces and forms words.
//! - A mark continues the token before it and never begins one, so a variation selector after an emoji is not a word.
//!
//! `don't` and `3.14` are two tokens each, but one word each by the word boundaries of UAX #29.
//!
//! Each character is lower-cased independently of its neighbours: there are no rules for the final sigma or for single
//! languages. So a token depends only on its own characters: tokenising a text at once or in parts, split between any
//! two tokens, gives the same tokens. As a drawback, the lower case of a Greek capital word that ends in sigma ends in
//! the medial form of sigma. Text is not normalised: a letter composed with its accent and the same letter followed by
//! a combining accent give different tokens.
//!
//! Character classes and lower case come from tables in this crate, made from the version of Unicode in
//! [`UNICODE_VERSION`]. The tables of the standard library would change with the compiler, and with them the
//! fingerprints in existing indexes.

use std::ops::Range;

use super::tables::{TOKEN, count, u8s, u32s};

/// The version of Unicode whose character classes and lower case are used. It never changes.
pub const UNICODE_VERSION: &str = "14.0.0";

/// The distinct combinations of a kind and a shift. The low two bits are the kind (0 not part of a token, 1 part of a
/// word, 2 a token by itself, 3 a mark). The upper bits are the shift, the signed difference between the lower case of
/// a character and the character.
static TRAITS: [u32; count(TOKEN, 0)] = u32s(TOKEN, 0);
/// Two-stage table: maps the upper bits of a character to its block. Characters beyond the end of this table use the
/// last block.
static BLOCK_OF: [u8; count(TOKEN, 1)] = u8s(TOKEN, 1);
/// The second stage: for each character, block after block, the index of its combination in `TRAITS`.
static BLOCKS: [u8; count(TOKEN, 2)] = u8s(TOKEN, 2);
/// The base-2 logarithm of the number of characters in a block.
const BLOCK_BITS: u32 = 7;

/// Calls `each` with every token of `text`, lower-cased, in order.
///
/// A token is valid UTF-8 and never empty. `scratch` is scratch memory: it grows to the longest token that differs from its
/// lower case, and no other memory is allocated. Takes time linear in the length of the text, for any input.
///
/// ```
/// let mut found = Vec::new();
/// twindex_sketch::tokens("Łódź: 2 boats, 東京", &mut Vec::new(), |token| {
///     found.push(String::from_utf8(token.to_vec()).unwrap());
/// });
/// assert_eq!(found, ["łódź", "2", "boats", "東", "京"]);
/// ```
#[inline]
pub fn tokens(text: &str, scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) {
    placed_tokens(text, scratch, |_, token| each(token));
}

/// Like [`tokens`], but also passes the byte range of each token in the text.
///
/// ```
/// let mut found = Vec::new();
/// twindex_sketch::token::placed_tokens("An Élan", &mut Vec::new(), |place, _| found.push(place));
/// assert_eq!(found, [0..2, 3..8]);
/// ```
pub fn placed_tokens(text: &str, scratch: &mut Vec<u8>, mut each: impl FnMut(Range<usize>, &[u8])) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let mut end = start;
        let mut seen = 0;
        let stop = loop {
            let Some(&byte) = bytes.get(end) else { break SEPARATOR };
            let trait_ = ASCII[usize::from(byte)];
            if trait_ & WORD == 0 {
                break trait_;
            }
            seen |= trait_;
            end += 1;
        };
        if stop == BEYOND {
            start = tokens_beyond_ascii(text, start, scratch, &mut each);
            continue;
        }
        let word = &bytes[start..end];
        if seen & UPPER != 0 {
            scratch.clear();
            scratch.extend(word.iter().map(u8::to_ascii_lowercase));
            each(start..end, scratch);
        } else if !word.is_empty() {
            each(start..end, word);
        }
        start = end + 1;
    }
}

/// Tokenises text with non-ASCII characters for [`placed_tokens`]: decodes characters from `start`, which is not inside
/// a token, up to the next ASCII separator. Returns the offset after the separator.
fn tokens_beyond_ascii(
    text: &str,
    start: usize,
    scratch: &mut Vec<u8>,
    each: &mut impl FnMut(Range<usize>, &[u8]),
) -> usize {
    let bytes = text.as_bytes();
    // The current token: its kind, its start, and whether its lower case was written to `scratch`.
    let mut open = None;
    let mut token = start;
    let mut rewritten = false;
    let mut at = start;
    for c in text[start..].chars() {
        let (kind, lower) = classify(c);
        let continues = match kind {
            Kind::Word => open == Some(Kind::Word),
            Kind::Mark => open.is_some(),
            Kind::Other | Kind::Single => false,
        };
        if !continues {
            if open.take().is_some() {
                each(token..at, if rewritten { scratch.as_slice() } else { &bytes[token..at] });
            }
            if matches!(kind, Kind::Word | Kind::Single) {
                open = Some(kind);
            } else if c.is_ascii() {
                return at + 1;
            }
            token = at;
            rewritten = false;
        }
        let grows = c == GROWS;
        if open.is_some() && (lower != c || grows) && !rewritten {
            scratch.clear();
            scratch.extend_from_slice(&bytes[token..at]);
            rewritten = true;
        }
        if rewritten {
            let mut utf8 = [0; 4];
            let written = if grows { GROWN } else { lower.encode_utf8(&mut utf8) };
            scratch.extend_from_slice(written.as_bytes());
        }
        at += c.len_utf8();
    }
    if open.is_some() {
        each(token..at, if rewritten { scratch.as_slice() } else { &bytes[token..at] });
    }
    at
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Other,
    Word,
    Single,
    Mark,
}

/// The only character whose lower case is two characters, `i` and a dot above. The tables leave it unchanged.
pub(super) const GROWS: char = '\u{130}';
pub(super) const GROWN: &str = "i\u{307}";

/// Returns the kind of a character and its lower case; [`GROWS`] is returned unchanged.
#[inline]
pub(super) fn classify(c: char) -> (Kind, char) {
    let code = c as usize;
    let block = BLOCK_OF[(code >> BLOCK_BITS).min(BLOCK_OF.len() - 1)];
    let within = code & ((1 << BLOCK_BITS) - 1);
    let packed = TRAITS[usize::from(BLOCKS[(usize::from(block) << BLOCK_BITS) + within])];
    let kind = match packed & 3 {
        0 => Kind::Other,
        1 => Kind::Word,
        2 => Kind::Single,
        _ => Kind::Mark,
    };
    let lower = (c as u32).checked_add_signed(packed.cast_signed() >> 2).and_then(char::from_u32);
    (kind, lower.unwrap_or(c)) // the shifts in the tables always give valid characters
}

/// The classes of bytes in [`ASCII`]: separators, word characters, capital letters, and bytes of non-ASCII characters.
const SEPARATOR: u8 = 0;
const WORD: u8 = 1;
const UPPER: u8 = 2;
const BEYOND: u8 = 4;

static ASCII: [u8; 256] = ascii_traits();

const fn ascii_traits() -> [u8; 256] {
    let mut table = [BEYOND; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        table[byte as usize] = match byte {
            b'A'..=b'Z' => WORD | UPPER,
            b'a'..=b'z' | b'0'..=b'9' | b'_' => WORD,
            _ => SEPARATOR,
        };
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        tokens(text, &mut Vec::new(), |token| found.push(String::from_utf8(token.to_vec()).unwrap()));
        found
    }

    #[test]
    fn words_digits_and_underscores_form_one_lower_case_token() {
        assert_eq!(split("A rose is A_Rose2, (is) 3.14!"), ["a", "rose", "is", "a_rose2", "is", "3", "14"]);
        assert_eq!(split("don't"), ["don", "t"]);
    }

    #[test]
    fn text_without_word_characters_has_no_tokens() {
        for text in ["", " ", "\0\n\t", "?!… — «»", "😀 👍🏽", "\u{301}\u{fe0f}"] {
            assert!(split(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn all_scripts_with_case_are_lower_cased() {
        assert_eq!(split("ÉCOLE Straße ŁÓDŹ"), ["école", "straße", "łódź"]);
        assert_eq!(split("ΟΔΟΣ Οδός"), ["οδοσ", "οδός"]);
        assert_eq!(split("Москва ЁЖИК"), ["москва", "ёжик"]);
        assert_eq!(split("ԵՐԵՎԱՆ ႠႡ 𐐀"), ["երեվան", "ⴀⴁ", "𐐨"]);
    }

    #[test]
    fn lower_case_may_be_longer_or_shorter_than_upper_case() {
        assert_eq!(split("İSTANBUL xİx"), ["i\u{307}stanbul", "xi\u{307}x"]);
        assert_eq!(split("\u{212a}elvin aẞ Ⱥb"), ["kelvin", "aß", "ⱥb"]);
    }

    #[test]
    fn marks_belong_to_the_token_before_them() {
        assert_eq!(split("e\u{301}te\u{301} E\u{301}"), ["e\u{301}te\u{301}", "e\u{301}"]);
        assert_eq!(split("हिन्दी भाषा"), ["हिन्दी", "भाषा"]);
        assert_eq!(split("👍\u{fe0f}ok 1\u{fe0f}\u{20e3}"), ["ok", "1\u{fe0f}\u{20e3}"]);
        assert_eq!(split("か\u{3099}x \u{ff76}\u{ff9e}"), ["か\u{3099}", "x", "\u{ff76}\u{ff9e}"]);
    }

    #[test]
    fn scripts_without_spaces_have_one_token_per_letter() {
        assert_eq!(split("東京タワー2号"), ["東", "京", "タ", "ワ", "ー", "2", "号"]);
        assert_eq!(split("ที่นี่ ๑๒"), ["ที่", "นี่", "๑๒"]);
        assert_eq!(split("ພາສາ"), ["ພ", "າ", "ສ", "າ"]);
        assert_eq!(split("abc漢字Def𠀀"), ["abc", "漢", "字", "def", "𠀀"]);
        assert_eq!(split("한국어 문서"), ["한국어", "문서"]);
    }

    #[test]
    fn non_ascii_separators_end_tokens() {
        assert_eq!(split("a\u{a0}b\u{2003}c\u{200b}d“e”—É„F"), ["a", "b", "c", "d", "e", "é", "f"]);
        assert_eq!(split("東、京。x"), ["東", "京", "x"]);
    }

    #[test]
    fn ten_megabytes_without_a_space_are_one_token() {
        let text = "Ab".repeat(5_000_000);
        let mut lengths = Vec::new();
        tokens(&text, &mut Vec::new(), |token| lengths.push(token.len()));
        assert_eq!(lengths, [10_000_000]);
    }

    #[test]
    fn tables_agree_with_ascii_traits_and_standard_library_case() {
        for c in '\0'..=char::MAX {
            let (kind, lower) = classify(c);
            if c.is_ascii() {
                assert_eq!(kind == Kind::Word, ASCII[c as usize] & WORD != 0, "{c:?}");
                assert_eq!(lower, c.to_ascii_lowercase());
            }
            if kind != Kind::Other && c != GROWS {
                assert!(c.to_lowercase().eq([lower]), "{c:?}");
            }
        }
        assert!(GROWS.to_lowercase().eq(GROWN.chars()));
    }

    #[test]
    fn slow_path_gives_the_tokens_of_the_fast_path() {
        // Splits the same words at a separator that only the slow path handles.
        let words = "The QUICK brown_fox 7 jumps";
        assert_eq!(split(words), split(&words.replace(' ', "\u{2003}")));
    }
}
