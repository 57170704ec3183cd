//! The classes of characters that the rules of UAX #29 distinguish.

/// A value of the property `Word_Break`. Pictographs (`Extended_Pictographic`) have two additional values.
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
pub(super) type Words = u32;

/// The values that the rules call `AHLetter`.
pub(super) const LETTERS: Words = set(&[Word::ALetter, Word::PictographLetter, Word::HebrewLetter]);
pub(super) const NUMERIC: Words = set(&[Word::Numeric]);
pub(super) const HEBREW: Words = set(&[Word::HebrewLetter]);
pub(super) const KATAKANA: Words = set(&[Word::Katakana]);
pub(super) const CONNECTORS: Words = set(&[Word::ExtendNumLet]);
/// The values of the characters that rule WB4 ignores.
pub(super) const IGNORED: Words = set(&[Word::Extend, Word::Format, Word::Zwj]);
pub(super) const NEWLINES: Words = set(&[Word::CR, Word::LF, Word::Newline]);
pub(super) const PICTOGRAPHS: Words = set(&[Word::Pictograph, Word::PictographLetter]);
/// Punctuation that does not separate two letters (`WITHIN_LETTERS`) or two digits (`WITHIN_NUMBERS`).
pub(super) const WITHIN_LETTERS: Words = set(&[Word::MidLetter, Word::MidNumLet, Word::SingleQuote]);
pub(super) const WITHIN_NUMBERS: Words = set(&[Word::MidNum, Word::MidNumLet, Word::SingleQuote]);

pub(super) const fn set(words: &[Word]) -> Words {
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
    pub(super) const fn is_in(self, set: Words) -> bool {
        set >> self as u32 & 1 == 1
    }

    /// Returns the values of characters that continue a word after one of this value (WB5, 8, 9, 10, 13, 13a, 13b).
    pub(super) const fn continued_by(self) -> Words {
        match self {
            Self::ALetter | Self::PictographLetter | Self::HebrewLetter | Self::Numeric => {
                LETTERS | NUMERIC | CONNECTORS
            }
            Self::Katakana => KATAKANA | CONNECTORS,
            Self::ExtendNumLet => LETTERS | NUMERIC | KATAKANA | CONNECTORS,
            _ => 0,
        }
    }

    /// Returns the values of characters that continue a word after this one and `punctuation` (WB6, 7, 7b, 7c, 11, 12).
    pub(super) const fn bridged_to(self, punctuation: Self) -> Words {
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

/// A value of the property `Sentence_Break`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sentence {
    Other,
    CR,
    LF,
    Sep,
    Extend,
    Format,
    Sp,
    Lower,
    Upper,
    OLetter,
    Numeric,
    ATerm,
    STerm,
    Close,
    SContinue,
}

impl Sentence {
    /// All values, in the order of their numbers in the table.
    pub(super) const ALL: [Self; 15] = [
        Self::Other,
        Self::CR,
        Self::LF,
        Self::Sep,
        Self::Extend,
        Self::Format,
        Self::Sp,
        Self::Lower,
        Self::Upper,
        Self::OLetter,
        Self::Numeric,
        Self::ATerm,
        Self::STerm,
        Self::Close,
        Self::SContinue,
    ];
}
