//! Converts text to NFKC (UAX #15) and removes marks, with tables that are part of this crate. Stretches of text that
//! are certainly in the normal form are copied unchanged.
//!
//! The tables list the decompositions, compositions and combining classes of one version of Unicode. The parameters of
//! an index contain this version. Later versions assign more characters but never change the normal form of assigned
//! characters. A character that this version does not assign is never changed, even if newer libraries would change it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::pieces::Pieces;
use crate::tables::{NORMAL, count, u8s, u16s, u32s};

/// The distinct values of [`trait_of`]: a combining class in the low 8 bits, and the flags `CHANGES` and `COMPOSES`.
static TRAITS: [u16; count(NORMAL, 0)] = u16s(NORMAL, 0);
/// Two-stage table, like the tables below: maps the upper bits of a character to its block. Characters beyond the end
/// of this table use the last block.
static TRAIT_BLOCK_OF: [u8; count(NORMAL, 1)] = u8s(NORMAL, 1);
/// The second stage: for each character, block after block, the index of its combination in `TRAITS`.
static TRAIT_BLOCKS: [u8; count(NORMAL, 2)] = u8s(NORMAL, 2);
/// The base-2 logarithm of the number of characters in a block.
const TRAIT_BITS: u32 = 6;

static DECOMPOSED_BLOCK_OF: [u8; count(NORMAL, 3)] = u8s(NORMAL, 3);
/// For each character, block after block, the number of its full compatibility decomposition, counted from 1. The
/// number is 0 for a Hangul syllable and for a character without a decomposition.
static DECOMPOSED_BLOCKS: [u16; count(NORMAL, 4)] = u16s(NORMAL, 4);
const DECOMPOSED_BITS: u32 = 6;
/// The end of each decomposition in `CHARACTERS`.
static ENDS: [u16; count(NORMAL, 5)] = u16s(NORMAL, 5);
static CHARACTERS: [u32; count(NORMAL, 6)] = u32s(NORMAL, 6);
/// The compositions, in ascending order. Each has three numbers: two characters, and the character that they compose to.
/// Hangul syllables are not listed.
static COMPOSITIONS: [u32; count(NORMAL, 7)] = u32s(NORMAL, 7);

static FLAG_BLOCK_OF: [u8; count(NORMAL, 8)] = u8s(NORMAL, 8);
/// The flags of each character, [`NOT_NFC`] to [`SHIFTS`], block after block.
static FLAG_BLOCKS: [u8; count(NORMAL, 9)] = u8s(NORMAL, 9);
const FLAG_BITS: u32 = 7;

/// The flag of a character that NFKC always changes.
const CHANGES: u16 = 1 << 8;
/// The flag of a character that may compose with a character before it in NFKC.
const COMPOSES: u16 = 1 << 9;

/// The flag of a character that is not in NFC.
const NOT_NFC: u8 = 1;
/// The flag of a character that may compose with a character before it in NFC.
const MAY_JOIN: u8 = 2;
/// The flag of a character of category Mn.
const MARK: u8 = 4;
/// The flag of a character whose canonical decomposition contains a character of category Mn.
const MARKED: u8 = 8;
/// The flag of a character, other than a Hangul syllable, that differs from its canonical decomposition.
const SPLITS: u8 = 16;
/// The flag of a character whose combining class is not 0.
const SHIFTS: u8 = 32;

/// The characters whose canonical and compatibility decompositions differ, ascending, each with its canonical decomposition.
static CANONICAL: [(u32, &[u32]); 16] = [
    (901, &[168, 769]),
    (979, &[978, 769]),
    (980, &[978, 776]),
    (7_835, &[383, 775]),
    (8_129, &[168, 834]),
    (8_141, &[8_127, 768]),
    (8_142, &[8_127, 769]),
    (8_143, &[8_127, 834]),
    (8_157, &[8_190, 768]),
    (8_158, &[8_190, 769]),
    (8_159, &[8_190, 834]),
    (8_173, &[168, 768]),
    (8_174, &[168, 769]),
    (8_189, &[180]),
    (8_192, &[8_194]),
    (8_193, &[8_195]),
];

/// Scratch memory: the normal form of a text, and the characters of a stretch with their combining classes.
#[derive(Clone, Debug, Default)]
pub(super) struct CutScratch {
    text: String,
    stretch: Vec<(u8, char)>,
}

/// Returns the text in NFKC: `text` itself if it is already in NFKC, otherwise the copy in `work`.
///
/// The text is split before each character that can be normalised independently of the text before it. These characters
/// have combining class 0, never change, and never compose with a previous character. Most characters are of this kind,
/// including all of ASCII. A *stretch* is one of these characters and the text up to the next; it is normalised only if
/// it may not be in NFKC. Takes linear time, except for long runs of marks, which are sorted.
///
/// If `pieces` is given, records for each part of the result from which part of `text` it came. For this purpose, a
/// stretch is also split before each character whose decomposition begins with a starter that never composes with a
/// previous character.
pub(super) fn nfkc<'a>(text: &'a str, work: &'a mut CutScratch, mut pieces: Option<&mut Pieces>) -> &'a str {
    let CutScratch { text: normal, stretch } = work;
    let bytes = text.as_bytes();
    normal.clear();
    if let Some(pieces) = &mut pieces {
        pieces.clear();
    }
    // The text before `copied` is already in `normal`. The current stretch begins at byte `start`.
    let (mut copied, mut start, mut at) = (0, 0, 0);
    let mut class = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii()).count();
            (start, class) = (at - 1, 0);
            continue;
        }
        let c = text[at..].chars().next().expect("`at` is before the end");
        let trait_ = trait_of(c);
        if trait_ == 0 {
            (start, class) = (at, 0);
        } else if trait_ & (CHANGES | COMPOSES) == 0 && trait_ >= class {
            class = trait_;
        } else {
            let rest = &text[at..];
            let end =
                rest.char_indices().find(|&(_, c)| trait_of(c) == 0).map_or(text.len(), |(end, _)| at + end);
            let begins = |c: char, stretch: &mut Vec<(u8, char)>| {
                push_decomposed(c, stretch);
                stretch.first().is_some_and(|&(_, first)| trait_of(first) & (0xff | COMPOSES) == 0)
            };
            let mut rewrite = |part: &str, stretch: &mut Vec<_>, normal: &mut String| {
                push_normalised(part, stretch, normal);
            };
            let places = (text, copied, start..end);
            push_pieces(places, pieces.as_deref_mut(), (stretch, normal), begins, &mut rewrite);
            (copied, start, at, class) = (end, end, end, 0);
            continue;
        }
        at += c.len_utf8();
    }
    if copied == 0 {
        return text;
    }
    if let Some(pieces) = pieces {
        pieces.push(normal.len(), copied, true);
    }
    normal.push_str(&text[copied..]);
    normal
}

/// Appends to `normal` the text from `copied` to the stretch at `places`, and then the rewritten stretch. The stretch is
/// rewritten as a whole, or, if `pieces` is given, piece by piece. A piece begins at each character for which `begins`
/// returns true.
fn push_pieces(
    (text, copied, places): (&str, usize, Range<usize>),
    pieces: Option<&mut Pieces>,
    (stretch, normal): (&mut Vec<(u8, char)>, &mut String),
    begins: impl Fn(char, &mut Vec<(u8, char)>) -> bool,
    rewrite: &mut impl FnMut(&str, &mut Vec<(u8, char)>, &mut String),
) {
    let Some(pieces) = pieces else {
        normal.push_str(&text[copied..places.start]);
        return rewrite(&text[places], stretch, normal);
    };
    pieces.push(normal.len(), copied, true);
    normal.push_str(&text[copied..places.start]);
    let mut start = places.start;
    while start < places.end {
        let others = text[start..places.end].char_indices().skip(1);
        let next = others.map(|(at, c)| (start + at, c)).find(|&(_, c)| {
            stretch.clear();
            begins(c, stretch)
        });
        let end = next.map_or(places.end, |(at, _)| at);
        let (piece, new) = (&text[start..end], normal.len());
        rewrite(piece, stretch, normal);
        pieces.push(new, start, &normal[new..] == piece);
        start = end;
    }
}

/// Appends the NFKC of `text` to `normal` by the definition: decomposes, sorts by combining class, composes.
fn push_normalised(text: &str, stretch: &mut Vec<(u8, char)>, normal: &mut String) {
    stretch.clear();
    for c in text.chars() {
        push_decomposed(c, stretch);
    }
    push_composed(stretch, normal);
}

/// The flags of characters that may change when marks are removed, or that may compose with a previous character.
const TOUCHED: u8 = NOT_NFC | MAY_JOIN | MARK | MARKED | SHIFTS;

/// Returns the text without the characters of the category Mn, in NFC: `text` itself if it already has this form,
/// otherwise the copy in `work`. Decomposes the text, removes the marks, and composes the result. Fills `pieces` like
/// [`nfkc`]; a removed mark belongs to the piece of the character before it.
pub(super) fn without_marks<'a>(
    text: &'a str,
    work: &'a mut CutScratch,
    mut pieces: Option<&mut Pieces>,
) -> &'a str {
    let CutScratch { text: unmarked, stretch } = work;
    unmarked.clear();
    if let Some(pieces) = &mut pieces {
        pieces.clear();
    }
    // The text before `copied` is already in `unmarked`. The current stretch begins at byte `start`.
    let (mut copied, mut start, mut at) = (0, 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii()).count();
            start = at - 1;
            continue;
        }
        let c = text[at..].chars().next().expect("`at` is before the end");
        if flags_of(c) & TOUCHED == 0 {
            (start, at) = (at, at + c.len_utf8());
            continue;
        }
        let rest = &text[at..];
        let end = rest
            .char_indices()
            .find(|&(_, c)| flags_of(c) & TOUCHED == 0)
            .map_or(text.len(), |(end, _)| at + end);
        let begins = |c: char, stretch: &mut Vec<(u8, char)>| {
            push_split(c, stretch);
            let is_apart =
                |&(class, first): &(u8, char)| class == 0 && flags_of(first) & (MAY_JOIN | MARK) == 0;
            stretch.first().is_some_and(is_apart)
        };
        let mut rewrite = |part: &str, stretch: &mut Vec<_>, unmarked: &mut String| {
            stretch.clear();
            part.chars().for_each(|c| push_split(c, stretch));
            stretch.retain(|&(_, c)| flags_of(c) & MARK == 0);
            push_composed(stretch, unmarked);
        };
        let places = (text, copied, start..end);
        push_pieces(places, pieces.as_deref_mut(), (stretch, unmarked), begins, &mut rewrite);
        (copied, start, at) = (end, end, end);
    }
    if copied == 0 {
        return text;
    }
    if let Some(pieces) = pieces {
        pieces.push(unmarked.len(), copied, true);
    }
    unmarked.push_str(&text[copied..]);
    unmarked
}

/// Which forms of letters with marks occur in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    /// Some letters with marks are a single character, as in NFC: `é`, `й`, `が`, `각`.
    pub composed: bool,
    /// Some letters with marks are several characters, so that NFC would change the text.
    pub decomposed: bool,
}

/// Determines the forms of letters with marks that occur in a text.
///
/// Takes linear time: each non-ASCII character is looked up in a table. Allocates no memory for a text in NFC.
#[must_use]
pub fn letters(text: &str) -> Letters {
    let mut found = Letters::default();
    let (mut stretch, mut normal) = (Vec::new(), String::new());
    let (mut start, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii()).count();
            start = at - 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else { break };
        let flags = flags_of(c);
        let is_syllable = (c as u32).wrapping_sub(SYLLABLE) < LEADINGS * VOWELS * TRAILINGS;
        found.composed |= is_syllable || flags & (MARKED | SPLITS | MARK | NOT_NFC) == MARKED | SPLITS;
        if flags & (NOT_NFC | MAY_JOIN | SHIFTS) == 0 {
            (start, at) = (at, at + c.len_utf8());
            continue;
        }
        let is_apart = |c: char| flags_of(c) & (NOT_NFC | MAY_JOIN | SHIFTS) == 0;
        let end =
            text[at..].char_indices().find(|&(_, c)| is_apart(c)).map_or(text.len(), |(end, _)| at + end);
        stretch.clear();
        normal.clear();
        text[start..end].chars().for_each(|c| push_split(c, &mut stretch));
        push_composed(&mut stretch, &mut normal);
        if normal != text[start..end] {
            found.decomposed = true;
            return found;
        }
        (start, at) = (end, end);
    }
    found
}

/// Sorts decomposed characters into canonical order and appends their composition.
fn push_composed(stretch: &mut [(u8, char)], normal: &mut String) {
    for marks in stretch.chunk_by_mut(|a, b| a.0 > 0 && b.0 > 0) {
        marks.sort_by_key(|&(class, _)| class);
    }
    // `starter` is the position of the last starter, and `class_before` the class of the last character kept after it.
    let mut starter: Option<usize> = None;
    let mut class_before = 0;
    let mut kept = 0;
    for i in 0..stretch.len() {
        let (class, c) = stretch[i];
        // A character of the same or a higher class, or another starter, blocks composition.
        if let Some(starter) = starter
            && (starter + 1 == kept || class_before < class)
            && let Some(composed) = composition(stretch[starter].1, c)
        {
            stretch[starter].1 = composed;
            continue;
        }
        if class == 0 {
            starter = Some(kept);
        }
        class_before = class;
        stretch[kept] = (class, c);
        kept += 1;
    }
    normal.extend(stretch[..kept].iter().map(|&(_, c)| c));
}

/// The first Hangul syllable. Syllables are composed by arithmetic from a leading consonant, a vowel and an optional
/// trailing consonant.
const SYLLABLE: u32 = 0xac00;
const LEADING: u32 = 0x1100;
const VOWEL: u32 = 0x1161;
/// The code point before the first trailing consonant.
const TRAILING: u32 = 0x11a7;
const VOWELS: u32 = 21;
const TRAILINGS: u32 = 28;
const LEADINGS: u32 = 19;

/// Appends the full canonical decomposition of a character, with combining classes.
fn push_split(c: char, stretch: &mut Vec<(u8, char)>) {
    let is_syllable = (c as u32).wrapping_sub(SYLLABLE) < LEADINGS * VOWELS * TRAILINGS;
    if !is_syllable && flags_of(c) & SPLITS == 0 {
        stretch.push((combining_class(c), c));
    } else if let Ok(found) = CANONICAL.binary_search_by_key(&(c as u32), |&(code, _)| code) {
        stretch.extend(CANONICAL[found].1.iter().map(|&code| {
            let c = char::from_u32(code).expect("tables have characters");
            (combining_class(c), c)
        }));
    } else {
        push_decomposed(c, stretch);
    }
}

/// Appends the full compatibility decomposition of a character, with combining classes.
fn push_decomposed(c: char, stretch: &mut Vec<(u8, char)>) {
    let mut push = |code: u32| {
        let c = char::from_u32(code).expect("tables have characters");
        stretch.push((combining_class(c), c));
    };
    let code = c as u32;
    let syllable = code.wrapping_sub(SYLLABLE);
    if syllable < LEADINGS * VOWELS * TRAILINGS {
        push(LEADING + syllable / (VOWELS * TRAILINGS));
        push(VOWEL + syllable / TRAILINGS % VOWELS);
        if !syllable.is_multiple_of(TRAILINGS) {
            push(TRAILING + syllable % TRAILINGS);
        }
        return;
    }
    let number = usize::from(DECOMPOSED_BLOCKS[place(&DECOMPOSED_BLOCK_OF, DECOMPOSED_BITS, c)]);
    if number == 0 {
        push(code);
        return;
    }
    let characters = usize::from(ENDS[number - 1])..usize::from(ENDS[number]);
    CHARACTERS[characters].iter().copied().for_each(push);
}

/// Returns the character that two characters compose to, or `None` if they do not compose.
fn composition(first: char, second: char) -> Option<char> {
    let (a, b) = (first as u32, second as u32);
    let (leading, vowel) = (a.wrapping_sub(LEADING), b.wrapping_sub(VOWEL));
    if leading < LEADINGS && vowel < VOWELS {
        return char::from_u32(SYLLABLE + (leading * VOWELS + vowel) * TRAILINGS);
    }
    let (syllable, trailing) = (a.wrapping_sub(SYLLABLE), b.wrapping_sub(TRAILING));
    if syllable < LEADINGS * VOWELS * TRAILINGS
        && syllable.is_multiple_of(TRAILINGS)
        && (1..TRAILINGS).contains(&trailing)
    {
        return char::from_u32(a + trailing);
    }
    let compositions = COMPOSITIONS.as_chunks::<3>().0;
    let found = compositions.binary_search_by_key(&(a, b), |&[a, b, _]| (a, b)).ok()?;
    char::from_u32(compositions[found][2])
}

/// Returns the combining class of a character, and the flags [`CHANGES`] and [`COMPOSES`]. Usually 0.
#[inline]
fn trait_of(c: char) -> u16 {
    TRAITS[usize::from(TRAIT_BLOCKS[place(&TRAIT_BLOCK_OF, TRAIT_BITS, c)])]
}

/// Returns the flags that determine how a character changes when marks are removed; 0 for most characters.
#[inline]
fn flags_of(c: char) -> u8 {
    FLAG_BLOCKS[place(&FLAG_BLOCK_OF, FLAG_BITS, c)]
}

fn combining_class(c: char) -> u8 {
    trait_of(c) as u8 // the low eight bits are the class
}

/// Returns the index of a character in the second stage of a two-stage table.
#[inline]
fn place(block_of: &[u8], bits: u32, c: char) -> usize {
    let code = c as usize;
    let block = block_of[(code >> bits).min(block_of.len() - 1)];
    usize::from(block) << bits | code & ((1 << bits) - 1)
}
