//! Finds sentence boundaries by the rules SB1 to SB998 of UAX #29.

use super::classes::Sentence;
use super::traits::{ASCII, Pieces, traits_at};

/// The part of a sentence end, `SATerm Close* Sp*`, that precedes the current character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Nothing,
    Terminator,
    Close,
    Space,
}

/// Returns the sentences of `text`, each including the space after it. Takes linear time: rule SB8 looks ahead only
/// once after each full stop, and at most to the next full stop.
pub(in crate::cut) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    Pieces { text, at: 0, end_of }
}

fn end_of(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    let mut end = End::Nothing;
    // Whether the last terminator is an `ATerm` (a full stop), and whether it follows a letter that has case.
    let (mut full_stop, mut cased) = (false, false);
    // The class of the last character that rule SB5 does not ignore.
    let mut before = Sentence::Other;
    while at < bytes.len() {
        if end == End::Nothing {
            let run = bytes[at..]
                .iter()
                .take_while(|byte| byte.is_ascii() && !matches!(byte, b'.' | b'!' | b'?' | b'\n' | b'\r'));
            if let Some(last) = run.copied().inspect(|_| at += 1).last() {
                before = ASCII[usize::from(last)].1;
                continue;
            }
        }
        let ((_, sentence), next) = traits_at(text, at);
        let joins = match sentence {
            // Rule SB5 ignores these characters.
            Sentence::Extend | Sentence::Format => {
                at = next;
                continue;
            }
            _ if end == End::Nothing => true,                         // SB998
            Sentence::Numeric => full_stop && end == End::Terminator, // SB6
            Sentence::Upper => full_stop && cased && end == End::Terminator, // SB7
            Sentence::Close => end != End::Space,                     // SB9
            Sentence::Other | Sentence::Lower | Sentence::OLetter => false,
            // No sentence ends before these characters (SB8a, 9, 10).
            Sentence::SContinue
            | Sentence::ATerm
            | Sentence::STerm
            | Sentence::Sp
            | Sentence::CR
            | Sentence::LF
            | Sentence::Sep => true,
        };
        if !(joins || full_stop && lower_follows(text, at)) {
            return at; // SB11
        }
        match sentence {
            // A sentence ends after the end of a line (SB3, 4).
            Sentence::CR => return next + usize::from(bytes.get(next) == Some(&b'\n')),
            Sentence::LF | Sentence::Sep => return next,
            Sentence::ATerm | Sentence::STerm => {
                end = End::Terminator;
                full_stop = sentence == Sentence::ATerm;
                cased = matches!(before, Sentence::Upper | Sentence::Lower);
            }
            Sentence::Close if matches!(end, End::Terminator | End::Close) => end = End::Close,
            Sentence::Sp if end != End::Nothing => end = End::Space,
            _ => end = End::Nothing,
        }
        before = sentence;
        at = next;
    }
    at
}

/// Checks the look-ahead of SB8: whether the next letter is lower-case and no terminator or line end precedes it.
fn lower_follows(text: &str, mut at: usize) -> bool {
    while at < text.len() {
        let ((_, sentence), next) = traits_at(text, at);
        match sentence {
            Sentence::Lower => return true,
            Sentence::OLetter
            | Sentence::Upper
            | Sentence::CR
            | Sentence::LF
            | Sentence::Sep
            | Sentence::ATerm
            | Sentence::STerm => return false,
            _ => at = next,
        }
    }
    false
}
