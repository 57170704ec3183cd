//! Texts without some of their bytes.

use std::ops::Range;

/// `text` without the bytes of these ranges, which ascend, do not overlap and end at characters.
#[must_use]
pub fn without(text: &str, cut: &[Range<usize>]) -> String {
    let (mut left, mut at) = (String::with_capacity(text.len()), 0);
    for range in cut {
        left.push_str(&text[at..range.start]);
        at = range.end;
    }
    left.push_str(&text[at..]);
    left
}

/// The byte ranges cut from texts, by the number of the document. They ascend, do not overlap and end at characters. A
/// text of several fields has one byte between two of them.
#[derive(Clone, Copy)]
pub struct Cuts<'c> {
    /// The ranges of a document.
    pub of: &'c (dyn Fn(u32) -> Vec<Range<usize>> + Sync),
}

/// The ranges inside of a part of a text, from its beginning on.
fn inside(cut: &[Range<usize>], part: &Range<usize>) -> Vec<Range<usize>> {
    let clamped = |range: &Range<usize>| {
        let clamp = |at: usize| at.clamp(part.start, part.end) - part.start;
        clamp(range.start)..clamp(range.end)
    };
    cut.iter().map(clamped).filter(|range| !range.is_empty()).collect()
}

/// A part of a text that is at this place in it, without the bytes of these ranges of the text.
pub(super) fn part_without(part: &str, place: &Range<usize>, cut: &[Range<usize>]) -> String {
    without(part, &inside(cut, place))
}

/// As [`part_without`]; none if a range does not end at characters of the part.
pub(super) fn checked_part_without(part: &str, place: &Range<usize>, cut: &[Range<usize>]) -> Option<String> {
    let is_sound = |range: &Range<usize>| part.is_char_boundary(range.start) && part.is_char_boundary(range.end);
    inside(cut, place).iter().all(is_sound).then(|| part_without(part, place, cut))
}
