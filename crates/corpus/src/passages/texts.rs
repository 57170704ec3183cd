//! Splits texts into the units that are compared: words, lines, paragraphs or sentences.

use std::ops::Range;

use twindex::sketch::cut::PlacedUnits;

use crate::passages::find::hashed::{Exact, Hashed};
use crate::passages::options::{CutSettings, Unit};

/// Splits and hashes texts, with the working memory of a thread.
pub(crate) struct Hashing<'h> {
    how: &'h CutSettings,
    placed: PlacedUnits,
    identity: Vec<u8>,
}

impl<'h> Hashing<'h> {
    pub(crate) fn new(how: &'h CutSettings) -> Self {
        Self { how, placed: PlacedUnits::default(), identity: Vec::new() }
    }

    /// Replaces the content of `hashed` with the units of a text.
    pub(crate) fn hash(&mut self, text: &str, hashed: &mut Hashed) {
        let Self { how, placed, .. } = self;
        hashed.clear(how.exact);
        match how.unit {
            Unit::Words => how.cutter.for_each_placed(text, placed, |place, token| {
                hashed.push_token(&how.hasher, text, place, token);
            }),
            Unit::Line => lines(text, |place| self.push(text, place, hashed)),
            Unit::Paragraph => paragraphs(text, |place| self.push(text, place, hashed)),
            Unit::Sentence => sentences(text, |place| self.push(text, place, hashed)),
        }
    }

    /// Adds a line, paragraph or sentence as a unit, unless it has no words.
    fn push(&mut self, text: &str, place: Range<usize>, hashed: &mut Hashed) {
        let Self { how, placed, identity } = self;
        let unit = &text[place.clone()];
        let mut words = 0_u32;
        identity.clear();
        how.cutter.for_each_placed(unit, placed, |_, token| {
            words = words.saturating_add(1);
            identity.extend_from_slice(token);
            identity.push(b' ');
        });
        if words == 0 {
            return;
        }
        let bytes = if how.exact == Exact::Bytes { unit.trim().as_bytes() } else { identity };
        hashed.push_unit(&how.hasher, place, bytes, words);
    }
}

/// Passes each line of a text, with its line end, to `each`.
fn lines(text: &str, mut each: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        each(start..start + line.len());
        start += line.len();
    }
}

/// Passes each paragraph to `each`: a run of lines that are not blank, with the blank lines after it.
fn paragraphs(text: &str, mut each: impl FnMut(Range<usize>)) {
    let (mut start, mut was_empty) = (0, false);
    lines(text, |line| {
        let is_empty = text[line.clone()].trim().is_empty();
        if was_empty && !is_empty {
            each(start..line.start);
            start = line.start;
        }
        was_empty = is_empty;
    });
    if start < text.len() {
        each(start..text.len());
    }
}

/// Passes each sentence, with the white space after it, to `each`.
fn sentences(text: &str, each: impl FnMut(Range<usize>)) {
    twindex::sketch::cut::sentence_places(text, each);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_separators_cover_the_whole_text() {
        let text = "One line.\nTwo.  Three!\n \n\nFour\n";
        let of = |cut: fn(&str, &mut dyn FnMut(Range<usize>))| {
            let mut all = Vec::new();
            cut(text, &mut |place| all.push(&text[place]));
            all
        };
        assert_eq!(
            of(|text, each| lines(text, each)),
            ["One line.\n", "Two.  Three!\n", " \n", "\n", "Four\n"]
        );
        assert_eq!(of(|text, each| paragraphs(text, each)), ["One line.\nTwo.  Three!\n \n\n", "Four\n"]);
        let found = of(|text, each| sentences(text, each));
        assert_eq!(found.concat(), text);
        assert_eq!(found[..3], ["One line.\n", "Two.  ", "Three!\n"]);
    }
}
