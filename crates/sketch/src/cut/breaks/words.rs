//! Finds word boundaries by the rules WB1 to WB999 of UAX #29.

use super::{ASCII, Pieces, traits_at};

/// A value of the property `Word_Break`. Pictographs (`Extended_Pictographic`) have values of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Word {
    Other,
    CR,
    LF,
    Newline,
    Extend,
    Zwj,
    Format,
    RegionalIndicator,
    Katakana,
    HebrewLetter,
    ALetter,
    SingleQuote,
    DoubleQuote,
    MidNumLet,
    MidLetter,
    MidNum,
    Numeric,
    ExtendNumLet,
    WSegSpace,
    /// A pictograph whose `Word_Break` is `Other`.
    Pictograph,
    /// A pictograph whose `Word_Break` is `ALetter`.
    PictographLetter,
}

/// A set of `Word` values, one bit for each value.
type Words = u32;

/// The values that the rules call `AHLetter`.
const LETTERS: Words = set(&[Word::ALetter, Word::PictographLetter, Word::HebrewLetter]);
const NUMERIC: Words = set(&[Word::Numeric]);
const HEBREW: Words = set(&[Word::HebrewLetter]);
const KATAKANA: Words = set(&[Word::Katakana]);
const CONNECTORS: Words = set(&[Word::ExtendNumLet]);
/// The values that WB4 ignores.
const IGNORED: Words = set(&[Word::Extend, Word::Format, Word::Zwj]);
const NEWLINES: Words = set(&[Word::CR, Word::LF, Word::Newline]);
const PICTOGRAPHS: Words = set(&[Word::Pictograph, Word::PictographLetter]);
/// The punctuation that does not separate two letters, and the punctuation that does not separate two digits.
const WITHIN_LETTERS: Words = set(&[Word::MidLetter, Word::MidNumLet, Word::SingleQuote]);
const WITHIN_NUMBERS: Words = set(&[Word::MidNum, Word::MidNumLet, Word::SingleQuote]);

const fn set(words: &[Word]) -> Words {
    let mut set = 0;
    let mut i = 0;
    while i < words.len() {
        set |= 1 << words[i] as u32;
        i += 1;
    }
    set
}

impl Word {
    /// All values, in the order of their numbers in the table.
    pub(super) const ALL: [Self; 21] = [
        Self::Other,
        Self::CR,
        Self::LF,
        Self::Newline,
        Self::Extend,
        Self::Zwj,
        Self::Format,
        Self::RegionalIndicator,
        Self::Katakana,
        Self::HebrewLetter,
        Self::ALetter,
        Self::SingleQuote,
        Self::DoubleQuote,
        Self::MidNumLet,
        Self::MidLetter,
        Self::MidNum,
        Self::Numeric,
        Self::ExtendNumLet,
        Self::WSegSpace,
        Self::Pictograph,
        Self::PictographLetter,
    ];

    #[inline]
    const fn is_in(self, set: Words) -> bool {
        set >> self as u32 & 1 == 1
    }

    /// Returns the values that continue a word directly after this value: WB5, 8, 9, 10, 13, 13a, 13b.
    const fn continued_by(self) -> Words {
        match self {
            Self::ALetter | Self::PictographLetter | Self::HebrewLetter | Self::Numeric => {
                LETTERS | NUMERIC | CONNECTORS
            }
            Self::Katakana => KATAKANA | CONNECTORS,
            Self::ExtendNumLet => LETTERS | NUMERIC | KATAKANA | CONNECTORS,
            _ => 0,
        }
    }

    /// Returns the values for which this value, `punctuation` and the value form one word: WB6, 7, 7b, 7c, 11, 12.
    const fn bridged_to(self, punctuation: Self) -> Words {
        if self.is_in(LETTERS) && punctuation.is_in(WITHIN_LETTERS) {
            LETTERS
        } else if self.is_in(NUMERIC) && punctuation.is_in(WITHIN_NUMBERS) {
            NUMERIC
        } else if self.is_in(HEBREW) && punctuation.is_in(set(&[Self::DoubleQuote])) {
            HEBREW
        } else {
            0
        }
    }
}

/// Returns the segments of `text` between word boundaries: words, punctuation and space. Takes linear time.
///
/// Departs from the rules in one case, for compatibility with the first indexes: a pictograph after a joiner (U+200D, rule
/// 3c) is never treated as a letter, and punctuation before the joiner stays in the word. So in `a\u{200d}ℹb` a word ends
/// before `b`, although `ℹ` is a letter, and `a:\u{200d}😀` is one segment.
pub(in crate::cut) fn words(text: &str) -> impl Iterator<Item = &str> {
    Pieces { text, at: 0, end_of }
}

fn end_of(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let ((first, _), mut at) = traits_at(text, start);
    if first.is_in(NEWLINES) {
        // A newline is a segment of its own, and so is CR LF (WB3, 3a).
        return at + usize::from(first == Word::CR && bytes.get(at) == Some(&b'\n'));
    }
    // `neighbour` is the character before `at`, and `before` is the last character that WB4 does not ignore.
    let (mut neighbour, mut before) = (first, first);
    // Whether the last regional indicator has no partner yet (WB15, 16).
    let mut flag = first == Word::RegionalIndicator;
    while at < bytes.len() {
        if before.is_in(LETTERS | NUMERIC | CONNECTORS) {
            let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
            if let Some(last) = run.copied().inspect(|_| at += 1).last() {
                before = ASCII[usize::from(last)].0;
                neighbour = before;
                continue;
            }
        }
        let ((word, _), next) = traits_at(text, at);
        if word.is_in(IGNORED) {
            neighbour = word;
            at = next;
            continue;
        }
        if neighbour == Word::Zwj && word.is_in(PICTOGRAPHS) {
            (neighbour, before, at) = (word, Word::Pictograph, next); // WB3c
            continue;
        }
        if before.bridged_to(word) != 0
            && let Some((beyond, next)) = after_ignored(text, next)
            && beyond.is_in(before.bridged_to(word) | set(&[Word::Pictograph]))
        {
            (neighbour, before, at) = (beyond, beyond, next);
            continue;
        }
        let joins = match word {
            Word::RegionalIndicator => before == word && std::mem::take(&mut flag),
            Word::WSegSpace => neighbour == word, // WB3d
            Word::SingleQuote if before == Word::HebrewLetter => true, // WB7a
            _ => word.is_in(before.continued_by()),
        };
        if !joins {
            return at;
        }
        (neighbour, before, at) = (word, word, next);
    }
    at
}

/// Returns the first character from `at` on that rule WB4 does not ignore, and the offset after it. Any pictograph after a
/// joiner is returned as `Pictograph`, which rule 3c keeps in the word. Returns `None` if there is no such character, or if
/// it is a pictograph that neither follows a joiner nor is a letter.
fn after_ignored(text: &str, mut at: usize) -> Option<(Word, usize)> {
    let mut neighbour = Word::Other;
    while at < text.len() {
        let ((word, _), next) = traits_at(text, at);
        if !word.is_in(IGNORED) {
            return match (neighbour == Word::Zwj, word) {
                (true, Word::Pictograph | Word::PictographLetter) => Some((Word::Pictograph, next)),
                (false, Word::Pictograph) => None,
                _ => Some((word, next)),
            };
        }
        (neighbour, at) = (word, next);
    }
    None
}
