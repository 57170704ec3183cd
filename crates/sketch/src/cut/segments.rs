//! Words and sentences by the boundaries of UAX #29.

use std::ops::Range;

use super::super::token::{GROWN, GROWS, Kind, classify};
use super::{GAP_MAX, breaks};

/// Calls `each` with every segment of the text that holds a word character, its place in the text and its characters in
/// lower case.
pub(super) fn words(text: &str, lower: &mut Vec<u8>, mut each: impl FnMut(Range<usize>, &[u8])) {
    let mut end = 0;
    for segment in breaks::words(text) {
        let start = end;
        end += segment.len();
        lower.clear();
        let mut word = false;
        for c in segment.chars() {
            word |= matches!(push_lower(c, lower), Kind::Word | Kind::Single);
        }
        if word {
            each(start..end, lower);
        }
    }
}

/// Appends a character in lower case and returns what it is.
#[inline]
fn push_lower(c: char, lower: &mut Vec<u8>) -> Kind {
    let (kind, small) = classify(c);
    let mut utf8 = [0; 4];
    let small = if c == GROWS { GROWN } else { small.encode_utf8(&mut utf8) };
    lower.extend_from_slice(small.as_bytes());
    kind
}

/// Calls `each` with every sentence of the text, its long gaps cut short; some have no word. `line` is working memory.
pub(super) fn sentences(text: &str, line: &mut String, mut each: impl FnMut(&str)) {
    // Where a line ends a sentence does (SB4), and the next starts as a text does.
    for whole in text.split_inclusive(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        breaks::sentences(shorten_gaps(whole, line)).for_each(&mut each);
    }
}

/// A line without what stands behind the first [`GAP_MAX`] characters of a gap: itself if no gap is so long, otherwise
/// written to `short`.
fn shorten_gaps<'a>(line: &'a str, short: &'a mut String) -> &'a str {
    short.clear();
    // Characters since the last word; a mark belongs to the word before it, if there is one.
    let mut gap = 0;
    let mut started = false;
    let mut copied = 0;
    for (at, c) in line.char_indices() {
        match classify(c).0 {
            Kind::Word | Kind::Single => {
                if gap > GAP_MAX {
                    copied = at;
                }
                (gap, started) = (0, true);
            }
            Kind::Mark if started && gap == 0 => {}
            Kind::Mark | Kind::Other => {
                if gap == GAP_MAX {
                    short.push_str(&line[copied..at]);
                    copied = line.len();
                }
                gap += 1;
            }
        }
    }
    if copied == 0 {
        return line;
    }
    short.push_str(&line[copied..]);
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::token::tokens;
    use super::*;

    fn shortened(line: &str) -> String {
        shorten_gaps(line, &mut "left over".to_owned()).to_owned()
    }

    #[test]
    fn of_a_gap_the_first_characters_stay() {
        let gap = |n: usize| "-".repeat(n);
        assert_eq!(shortened(&format!("a{}b", gap(GAP_MAX))), format!("a{}b", gap(GAP_MAX)));
        assert_eq!(shortened(&format!("a{}b", gap(GAP_MAX + 1))), format!("a{}b", gap(GAP_MAX)));
        assert_eq!(
            shortened(&format!("{}a.{}b{}", gap(100), gap(GAP_MAX - 1), gap(99))),
            format!("{}a.{}b{}", gap(GAP_MAX), gap(GAP_MAX - 1), gap(GAP_MAX))
        );
        assert_eq!(shortened(&gap(50)), gap(GAP_MAX));
        // Marks belong to the word before them, however many, and behind anything else to the gap.
        let marks = "\u{301}".repeat(100);
        assert_eq!(shortened(&format!("e{marks}b")), format!("e{marks}b"));
        assert_eq!(shortened(&format!("e.{marks}b")), format!("e.{}b", "\u{301}".repeat(GAP_MAX - 1)));
        assert_eq!(shortened(&format!("{marks}b")), format!("{}b", "\u{301}".repeat(GAP_MAX)));
    }

    #[test]
    fn line_by_line_and_without_long_gaps_sentences_are_those_of_the_whole_text() {
        for text in [
            "One. Two!\r\nThree\rfour.\n\nFive; etc. six? “Seven.” (Eight.) 3.14 U.S.A. Nine\u{2029}Ten\u{85}",
            "a.\n\u{301}b. C\r\n\r\n\u{301}",
        ] {
            let with_a_word = |sentence: &&str| {
                let mut words = 0;
                tokens(sentence, &mut Vec::new(), |_| words += 1);
                words > 0
            };
            let mut found = Vec::new();
            sentences(text, &mut String::new(), |sentence| found.push(sentence.trim_end().to_owned()));
            found.retain(|sentence| with_a_word(&sentence.as_str()));
            let whole: Vec<_> = breaks::sentences(text).filter(with_a_word).map(str::trim_end).collect();
            assert_eq!(found, whole);
        }
    }

    proptest! {
        #[test]
        fn shortening_changes_no_word(line in "(a|Б|京|é|e\u{301}|1| |-|\u{301}|😀|\\.){0,120}") {
            let of = |text: &str| {
                let mut found = Vec::new();
                tokens(text, &mut Vec::new(), |token| found.push(token.to_vec()));
                found
            };
            prop_assert_eq!(of(&line), of(&shortened(&line)));
        }
    }
}
