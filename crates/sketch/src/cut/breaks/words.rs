//! Finds word boundaries by the rules WB1 to WB999 of UAX #29.

use super::classes::{CONNECTORS, IGNORED, LETTERS, NEWLINES, NUMERIC, PICTOGRAPHS, Word, set};
use super::traits::{ASCII, Pieces, traits_at};

/// Returns the segments of `text` between word boundaries: words, punctuation and space. Takes linear time.
///
/// For compatibility with the first indexes, the function departs from the rules in one case: a pictograph after a
/// joiner (U+200D, rule 3c) is never treated as a letter, and punctuation before the joiner stays in the word. So in
/// `a\u{200d}ℹb` a word ends before `b`, although `ℹ` is a letter, and `a:\u{200d}😀` is one segment.
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
    // Whether the last regional indicator still lacks the second indicator of its pair (WB15, 16).
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
