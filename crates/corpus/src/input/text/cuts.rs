//! Removes byte ranges from texts.

use std::ops::Range;

/// Returns `text` without these byte ranges. The ranges must be in ascending order, must not overlap, and must be on
/// character boundaries.
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

/// The byte ranges to remove from texts. The ranges of a text are in ascending order, do not overlap, and are on
/// character boundaries. If a text is joined from several fields, the newline between two fields counts as one byte.
#[derive(Clone, Copy)]
pub struct Cuts<'c> {
    /// Returns the ranges of the document with this index.
    pub of: &'c (dyn Fn(u32) -> Vec<Range<usize>> + Sync),
}

/// Clips the ranges of a text to a part of the text, and makes them relative to the start of the part.
fn inside(cut: &[Range<usize>], part: &Range<usize>) -> Vec<Range<usize>> {
    let clamped = |range: &Range<usize>| {
        let clamp = |at: usize| at.clamp(part.start, part.end) - part.start;
        clamp(range.start)..clamp(range.end)
    };
    cut.iter().map(clamped).filter(|range| !range.is_empty()).collect()
}

/// Removes byte ranges of a text from `part`, which is the range `place` of the text.
pub(crate) fn part_without(part: &str, place: &Range<usize>, cut: &[Range<usize>]) -> String {
    without(part, &inside(cut, place))
}

/// Does the work of [`part_without`]; returns `None` if a range is not on character boundaries of the part.
pub(crate) fn checked_part_without(part: &str, place: &Range<usize>, cut: &[Range<usize>]) -> Option<String> {
    let is_sound =
        |range: &Range<usize>| part.is_char_boundary(range.start) && part.is_char_boundary(range.end);
    inside(cut, place).iter().all(is_sound).then(|| part_without(part, place, cut))
}
