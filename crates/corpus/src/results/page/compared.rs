//! An HTML page that shows texts side by side with the passages that they share. It is one file without scripts.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use crate::results::page::chart::escaped;
use crate::results::page::html::{begin, end, summary};
use crate::results::page::report::write_whole;
use crate::work::numbers::{bytes, count};

/// Number of bytes of a text shown before and after a passage.
const CONTEXT: usize = 300;
/// Number of bytes shown at the start and at the end of a long passage.
const HALF: usize = 2_000;
/// After this number of bytes of a text, no further passages are shown.
const EXCERPT_MAX: usize = 16_000;
/// Maximum number of passages of a pair of texts that are listed with their positions.
const LISTED_MAX: usize = 50;

/// An HTML page with pairs of texts.
#[derive(Clone, Debug, Default)]
pub struct PassagePage {
    /// The heading of the page.
    pub title: String,
    /// Names and values of numbers that are shown above the texts.
    pub figures: Vec<(&'static str, String)>,
    /// A sentence that describes the content of the page.
    pub note: String,
    /// The pairs of texts in the order in which they are shown.
    pub pairs: Vec<ComparedPair>,
}

/// Two texts that share passages.
#[derive(Clone, Debug)]
pub struct ComparedPair {
    /// The text that repeats the passages.
    pub left: TextSide,
    /// The text in which the passages occurred first.
    pub right: TextSide,
    /// The shared passages. Each has the start and end in the left text, the start and end in the right text, and the
    /// number of words.
    pub passages: Vec<[u32; 5]>,
}

/// A text of a pair, as it is shown.
#[derive(Clone, Debug)]
pub struct TextSide {
    /// The role of the text, such as "document".
    pub name: &'static str,
    /// The key of the text.
    pub key: String,
    /// The parts of the text that are shown.
    pub excerpt: Excerpt,
}

/// The parts of a text around its passages, as HTML.
#[derive(Clone, Debug, Default)]
pub struct Excerpt(String);

/// Appends a text as HTML. Keeps line ends and tabs, and replaces other control characters.
fn push_text(out: &mut String, text: &str) {
    for piece in text.split_inclusive(['\n', '\t']) {
        let body = piece.strip_suffix(['\n', '\t']).unwrap_or(piece);
        out.push_str(&escaped(body.strip_suffix('\r').unwrap_or(body)));
        out.push_str(&piece[body.len()..]);
    }
}

fn push_gap(out: &mut String, length: usize) {
    let _ = write!(out, "<span class=\"gap\"> … {} … </span>", bytes(length as u64)); // memory does not fail
}

/// Returns the last character boundary at or before byte offset `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Returns the union of ranges that may overlap, as disjoint ranges in ascending order.
fn merged(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut sorted: Vec<&Range<usize>> = ranges.iter().collect();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range.clone()),
        }
    }
    merged
}

/// Appends a part of a text, and inserts the number of each passage at the start of the passage.
fn push_marked(out: &mut String, text: &str, part: Range<usize>, begins: &[(usize, usize)]) {
    let mut at = part.start;
    let inside = begins.iter().filter(|(begin, _)| part.contains(begin));
    for &(begin, number) in inside {
        push_text(out, &text[at..begin]);
        let _ = write!(out, "<sup>{number}</sup>");
        at = begin;
    }
    push_text(out, &text[at..part.end]);
}

impl Excerpt {
    /// Creates an excerpt around passages, which are numbered from 1. `None` if a passage is not inside the text or not
    /// on its character boundaries.
    #[must_use]
    pub fn of(text: &str, passages: &[Range<usize>]) -> Option<Self> {
        if !passages.iter().all(|passage| text.get(passage.clone()).is_some()) {
            return None;
        }
        let mut begins: Vec<(usize, usize)> = passages.iter().map(|passage| passage.start).zip(1..).collect();
        begins.sort_unstable();
        let (mut out, mut at, mut shown) = (String::new(), 0, 0);
        for passage in merged(passages) {
            if shown >= EXCERPT_MAX {
                break;
            }
            let begin = floor(text, passage.start.saturating_sub(CONTEXT)).max(at);
            if begin > at {
                push_gap(&mut out, begin - at);
            }
            push_text(&mut out, &text[begin..passage.start]);
            out.push_str("<mark>");
            if passage.len() <= 2 * HALF {
                push_marked(&mut out, text, passage.clone(), &begins);
            } else {
                let (first, last) = (floor(text, passage.start + HALF), floor(text, passage.end - HALF));
                push_marked(&mut out, text, passage.start..first, &begins);
                push_gap(&mut out, last - first);
                push_marked(&mut out, text, last..passage.end, &begins);
            }
            out.push_str("</mark>");
            let next = passages.iter().map(|other| other.start).filter(|&start| start >= passage.end).min();
            let after = floor(text, passage.end + CONTEXT).min(next.unwrap_or(text.len())).max(passage.end);
            push_text(&mut out, &text[passage.end..after]);
            shown += passage.len().min(2 * HALF) + (after - passage.end) + (passage.start - begin);
            at = after;
        }
        if at < text.len() {
            push_gap(&mut out, text.len() - at);
        }
        Some(Self(out))
    }

    /// Creates an excerpt for a text that is not available, from the other text of the pair. Each passage is given by
    /// its range in the available text and its range in the missing text. The words of a passage are the same in both;
    /// the bytes between words may differ.
    #[must_use]
    pub fn of_other(text: &str, passages: &[(Range<usize>, Range<usize>)]) -> Self {
        let mut sorted: Vec<_> = passages.iter().zip(1..).collect();
        sorted.sort_by_key(|((_, other), number)| (other.start, other.end, *number));
        let (mut out, mut at, mut shown) = (String::new(), 0, 0);
        for ((own, other), number) in sorted {
            let Some(passage) = text.get(own.clone()) else { continue };
            if shown >= EXCERPT_MAX {
                out.push_str("<span class=\"gap\"> … </span>");
                break;
            }
            if other.start > at {
                push_gap(&mut out, other.start - at);
            }
            out.push_str("<mark>");
            let _ = write!(out, "<sup>{number}</sup>");
            if passage.len() <= 2 * HALF {
                push_text(&mut out, passage);
            } else {
                let (first, last) = (floor(passage, HALF), floor(passage, passage.len() - HALF));
                push_text(&mut out, &passage[..first]);
                push_gap(&mut out, last - first);
                push_text(&mut out, &passage[last..]);
            }
            out.push_str("</mark>");
            shown += passage.len().min(2 * HALF);
            at = at.max(other.end);
        }
        Self(out)
    }
}

impl PassagePage {
    /// Returns the page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = begin(&self.title);
        summary(&mut page, &self.figures);
        let _ = writeln!(page, "<p>{}</p>", escaped(&self.note));
        for (pair, number) in self.pairs.iter().zip(1..) {
            pair.push(&mut page, number);
        }
        end(page)
    }

    /// Writes the page to a temporary file, and then renames it to `path`.
    ///
    /// # Errors
    ///
    /// The page cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_whole(path, &self.html())
    }
}

impl ComparedPair {
    fn push(&self, page: &mut String, number: usize) {
        let words: u64 = self.passages.iter().map(|passage| u64::from(passage[4])).sum();
        let several = if self.passages.len() == 1 { "passage" } else { "passages" };
        let _ = writeln!(
            page,
            "<h2 id=\"pair-{number}\">{number}. {} {several}, {} words</h2>\n<div class=\"sides\">",
            count(self.passages.len() as u64),
            count(words)
        );
        for side in [&self.left, &self.right] {
            let _ = writeln!(
                page,
                "<div><h3>{}: <bdi>{}</bdi></h3><p class=\"text\" dir=\"auto\">{}</p></div>",
                side.name,
                escaped(&side.key),
                side.excerpt.0
            );
        }
        page.push_str(
            "</div>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Places\"><table><caption>Where the passages \
             are, in bytes</caption>\n<tr><th scope=\"col\">passage</th><th scope=\"col\">left</th><th scope=\"col\">right</th>\
             <th scope=\"col\">words</th></tr>\n",
        );
        for ([start, end, there, there_end, words], number) in self.passages.iter().zip(1..).take(LISTED_MAX)
        {
            let _ = writeln!(
                page,
                "<tr><td>{number}</td><td>{start} to {end}</td><td>{there} to {there_end}</td><td>{words}</td></tr>"
            );
        }
        page.push_str("</table></div>\n");
        if let Some(more) = self.passages.len().checked_sub(LISTED_MAX).filter(|&more| more > 0) {
            let _ = writeln!(page, "<p class=\"soft\">and {} more.</p>", count(more as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_show_passages_with_context_and_escape_markup() {
        let text = format!("{}<b>shared</b>\nand & more{}", "é".repeat(400), "x".repeat(1000));
        let start = 800;
        let passage = start..start + "<b>shared</b>\nand & more".len();
        let Excerpt(html) = Excerpt::of(&text, std::slice::from_ref(&passage)).unwrap();
        assert!(
            html.contains("<mark><sup>1</sup>&lt;b&gt;shared&lt;/b&gt;\nand &amp; more</mark>xxx"),
            "{html}"
        );
        assert_eq!((html.matches('é').count(), html.matches('x').count()), (150, 300));
        assert!(html.starts_with("<span class=\"gap\"> … 500 bytes … </span>é"), "{html}");
        assert!(html.ends_with("<span class=\"gap\"> … 700 bytes … </span>"), "{html}");
        // Ranges that are not on character boundaries, or are beyond the end of the text, must belong to a different
        // text.
        assert!(Excerpt::of(&text, std::slice::from_ref(&(1..6))).is_none());
        assert!(Excerpt::of("abc", std::slice::from_ref(&(0..4))).is_none());
    }

    #[test]
    fn long_and_overlapping_passages_are_marked_once_and_shortened() {
        let text = "word ".repeat(20_000);
        let Excerpt(html) = Excerpt::of(&text, &[0..50_000, 10..60, 60_000..99_999]).unwrap();
        assert_eq!(html.matches("<mark>").count(), 2);
        assert!(html.contains("<sup>1</sup>word word <sup>2</sup>word"), "{html}");
        assert!(html.len() < 10_000, "{}", html.len());
        let passages: Vec<Range<usize>> = (0..2000).map(|at| at * 50..at * 50 + 10).collect();
        let Excerpt(html) = Excerpt::of(&text, &passages).unwrap();
        assert!(html.len() < 3 * EXCERPT_MAX, "{}", html.len());
        let Excerpt(html) = Excerpt::of_other(&text, &[(0..4, 700..704), (5..9, 100..104)]);
        let wanted = "<span class=\"gap\"> … 100 bytes … </span><mark><sup>2</sup>word</mark>\
                      <span class=\"gap\"> … 596 bytes … </span><mark><sup>1</sup>word</mark>";
        assert_eq!(html, wanted);
    }
}
