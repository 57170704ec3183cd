//! Splits text into words and sentences at the boundaries of UAX #29.

use std::ops::Range;

use super::super::token::{GROWN, GROWS, Kind, classify};
use super::{Pieces, breaks};

/// Maximum number of characters of a gap between two words that the search for the end of a sentence reads.
pub const GAP_MAX: usize = 32;

/// Calls `each` for every segment of the text that contains a word character, with its byte range in the text and its
/// lower-cased characters.
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

/// Appends the lower case of a character and returns the kind of the character.
#[inline]
fn push_lower(c: char, lower: &mut Vec<u8>) -> Kind {
    let (kind, small) = classify(c);
    let mut utf8 = [0; 4];
    let small = if c == GROWS { GROWN } else { small.encode_utf8(&mut utf8) };
    lower.extend_from_slice(small.as_bytes());
    kind
}

/// Calls `each` with every sentence of the text, with long gaps shortened. Includes sentences without a word. `line` is
/// scratch memory.
pub(super) fn sentences(text: &str, line: &mut String, mut each: impl FnMut(&str)) {
    // A sentence ends at the end of a line (SB4), so each line can be split like a text of its own.
    for whole in text.split_inclusive(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        breaks::sentences(shorten_gaps(whole, line, None)).for_each(&mut each);
    }
}

/// Calls `each` with the byte range of each sentence of the text. The ranges cover the whole text. Includes sentences
/// without a word.
///
/// Sentences end by the rules of UAX #29, and therefore at every end of a line. The search for the end of a sentence
/// reads only the first [`GAP_MAX`] characters of a gap between words, so that it takes linear time.
///
/// ```
/// let mut found = Vec::new();
/// twindex_sketch::cut::sentence_places("One. Two!\nThree", |place| found.push(place));
/// assert_eq!(found, [0..5, 5..10, 10..15]);
/// ```
pub fn sentence_places(text: &str, mut each: impl FnMut(Range<usize>)) {
    let (mut line, mut pieces, mut before) = (String::new(), Pieces::default(), 0);
    for whole in text.split_inclusive(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        pieces.clear();
        let shown = shorten_gaps(whole, &mut line, Some(&mut pieces));
        let (mut at, mut start) = (0, 0);
        for sentence in breaks::sentences(shown) {
            at += sentence.len();
            let end = match at {
                _ if at == shown.len() => whole.len(),
                _ if std::ptr::eq(shown, whole) => at,
                _ => pieces.old(at..at + 1, whole.len()).start,
            };
            each(before + start..before + end);
            start = end;
        }
        before += whole.len();
    }
}

/// Shortens each gap (a run of characters outside words) to [`GAP_MAX`] characters. Returns `line` if no gap is longer,
/// otherwise the copy in `short`. If `pieces` is given, records from which part of `line` each part of the copy came.
fn shorten_gaps<'a>(line: &'a str, short: &'a mut String, mut pieces: Option<&mut Pieces>) -> &'a str {
    short.clear();
    // The number of characters since the last word. A mark directly after a word is part of the word.
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
                    if let Some(pieces) = &mut pieces {
                        pieces.push(short.len(), copied, true);
                    }
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
    if let Some(pieces) = &mut pieces {
        pieces.push(short.len(), copied, true);
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
        shorten_gaps(line, &mut "left over".to_owned(), None).to_owned()
    }

    #[test]
    fn only_the_first_characters_of_a_gap_are_kept() {
        let gap = |n: usize| "-".repeat(n);
        assert_eq!(shortened(&format!("a{}b", gap(GAP_MAX))), format!("a{}b", gap(GAP_MAX)));
        assert_eq!(shortened(&format!("a{}b", gap(GAP_MAX + 1))), format!("a{}b", gap(GAP_MAX)));
        assert_eq!(
            shortened(&format!("{}a.{}b{}", gap(100), gap(GAP_MAX - 1), gap(99))),
            format!("{}a.{}b{}", gap(GAP_MAX), gap(GAP_MAX - 1), gap(GAP_MAX))
        );
        assert_eq!(shortened(&gap(50)), gap(GAP_MAX));
        // All marks directly after a word are part of the word. Marks after another character are part of the gap.
        let marks = "\u{301}".repeat(100);
        assert_eq!(shortened(&format!("e{marks}b")), format!("e{marks}b"));
        assert_eq!(shortened(&format!("e.{marks}b")), format!("e.{}b", "\u{301}".repeat(GAP_MAX - 1)));
        assert_eq!(shortened(&format!("{marks}b")), format!("{}b", "\u{301}".repeat(GAP_MAX)));
    }

    #[test]
    fn sentences_of_single_lines_equal_sentences_of_the_text() {
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

    #[test]
    fn sentence_ranges_cover_the_text_including_long_gaps() {
        let gap = " ".repeat(3 * GAP_MAX);
        let text = format!("One. Two.{gap}Three{gap}four.{gap}\n{gap}Five. Six");
        let mut shown = Vec::new();
        sentence_places(&text, |place| shown.push(text[place].to_owned()));
        assert_eq!(shown.concat(), text);
        let shown: Vec<&str> = shown.iter().map(|sentence| sentence.trim()).collect();
        assert_eq!(shown, ["One.", "Two.", &format!("Three{gap}four."), "Five.", "Six"]);
    }

    proptest! {
        #[test]
        fn sentence_ranges_match_the_sentences(text in "(a|B|京|e\u{301}|1| |-|\u{301}|\\.|!|\n){0,200}") {
            let (mut places, mut sentences_of) = (Vec::new(), Vec::new());
            sentence_places(&text, |place| places.push(place));
            sentences(&text, &mut String::new(), |sentence| sentences_of.push(sentence.to_owned()));
            prop_assert_eq!(places.len(), sentences_of.len());
            let mut end = 0;
            for (place, sentence) in places.iter().zip(&sentences_of) {
                prop_assert_eq!(place.start, end);
                end = place.end;
                let shown = &text[place.clone()];
                let short: Vec<&str> = sentence.split_whitespace().collect();
                if shown.len() == sentence.len() {
                    prop_assert_eq!(shown, sentence);
                } else {
                    prop_assert!(short.iter().all(|word| shown.contains(word)));
                }
            }
            prop_assert_eq!(end, text.len());
        }

        #[test]
        fn shortening_gaps_changes_no_word(line in "(a|Б|京|é|e\u{301}|1| |-|\u{301}|😀|\\.){0,120}") {
            let of = |text: &str| {
                let mut found = Vec::new();
                tokens(text, &mut Vec::new(), |token| found.push(token.to_vec()));
                found
            };
            prop_assert_eq!(of(&line), of(&shortened(&line)));
        }
    }
}
