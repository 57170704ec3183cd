//! Two texts side by side, with the words that differ marked, as HTML.

use std::fmt::Write;
use std::path::Path;

use crate::results::page::chart::escaped;
use crate::results::page::compared::floor;
use crate::results::page::html::{begin, end};
use crate::results::page::report::write_whole;
use crate::work::numbers::counted;
use crate::work::word_diff::{self, Extent, Hunk, Word, WordDiff, WordOrigin};

/// Number of bytes at the start of a text that are compared.
pub(crate) const COMPARED_MAX: usize = 64 << 10;
/// Maximum number of bytes of HTML of a side.
const SIDE_MAX: usize = 4_000;
/// Maximum number of characters that are shown of a run of words.
const RUN_MAX: usize = 600;
/// Number of words shown from the start of a text.
const BEGINNING: usize = 12;
/// The differences that are shown of a pair on the page about a run.
const EXTENT: Extent = Extent { context: 10, hunks: 8, run: 40, steps: 1 << 21 };

/// A text of a pair: its role and its key.
pub(crate) struct Named<'n> {
    pub(crate) role: &'n str,
    pub(crate) key: &'n str,
}

/// Returns two texts side by side: the start of each, and the first places in which they differ. Long texts are cut.
pub(crate) fn texts_side_by_side(of: [Named<'_>; 2], kept: &str, removed: &str) -> String {
    let is_cut = kept.len().max(removed.len()) > COMPARED_MAX;
    let texts = [kept, removed].map(|text| word_diff::words(&text[..floor(text, COMPARED_MAX)]));
    let [kept, removed] = &texts;
    let mut diff = word_diff::diff(kept, removed, EXTENT);
    if is_cut && diff.hunks_in_all == diff.hunks.len() {
        // The texts were cut at places that do not correspond, so the last difference may be due to the cut.
        let _ = diff.hunks.pop();
        diff.hunks_in_all = diff.hunks.len();
    }
    let start = |words: &[Word<'_>]| word_diff::joined(&words[..words.len().min(BEGINNING)]);
    let around = ([start(kept), start(removed)], [kept.len(), removed.len()]);
    let mut html = side_by_side(of, &diff, Some(&around), SIDE_MAX);
    if is_cut {
        html.push_str("<p class=\"soft\">Only the first 64 kB of the texts were compared here.</p>\n");
    }
    html
}

/// Returns the starts of the texts that are known side by side. The others cannot be shown because of `why`.
pub(crate) fn unread_side_by_side(of: &[Named<'_>; 2], why: &str, texts: [Option<&str>; 2]) -> String {
    let mut html = "<div class=\"sides\">\n".to_owned();
    for (named, text) in of.iter().zip(texts) {
        let Some(text) = text else {
            push_side(&mut html, named, &format!("<i>Its text cannot be shown: {}.</i>", escaped(why)));
            continue;
        };
        let words = word_diff::words(&text[..floor(text, COMPARED_MAX)]);
        let mut side = Side { html: String::new(), max: SIDE_MAX, is_full: false };
        side.push("", &word_diff::joined(&words[..words.len().min(EXTENT.run)]));
        side.gap(words.len().saturating_sub(EXTENT.run));
        push_side(&mut html, named, &side.html);
    }
    html + "</div>\n"
}

/// Writes a page about one decision: a title, sentences, and the differing words of two documents, if both texts are
/// known. The keys are those of the kept and of the removed document.
///
/// # Errors
///
/// The page cannot be written.
pub fn write_decision(
    path: &Path,
    title: &str,
    sentences: &[String],
    differences: Option<(&WordDiff, [&str; 2])>,
) -> anyhow::Result<()> {
    let mut page = begin(title);
    for sentence in sentences {
        let _ = writeln!(page, "<p>{}</p>", escaped(sentence));
    }
    if let Some((diff, [kept, removed])) = differences {
        let of = [Named { role: "kept", key: kept }, Named { role: "removed", key: removed }];
        page.push_str(&side_by_side(of, diff, None, usize::MAX));
    }
    write_whole(path, &end(page))
}

/// Returns the differing words of two texts side by side. `around` are the first words and the numbers of words of the
/// texts, if they are known. A side has at most `max` bytes of HTML, and a little more.
fn side_by_side(
    of: [Named<'_>; 2],
    diff: &WordDiff,
    around: Option<&([String; 2], [usize; 2])>,
    max: usize,
) -> String {
    let mut sides = [0, 1].map(|_| Side { html: String::new(), max, is_full: false });
    let mut ends = [0, 0];
    if let Some((starts, lengths)) = around
        && diff.hunks.first().is_none_or(|hunk| hunk.word_of_kept > 1)
    {
        // The first difference may begin before the end of the usual beginning.
        let shown = diff.hunks.first().map_or(BEGINNING, |hunk| BEGINNING.min(hunk.word_of_kept - 1));
        for (((side, start), end), length) in sides.iter_mut().zip(starts).zip(&mut ends).zip(lengths) {
            *end = shown.min(*length);
            side.push("", &start.split(' ').take(*end).collect::<Vec<_>>().join(" "));
        }
    }
    for hunk in &diff.hunks {
        for ((side, end), start) in
            sides.iter_mut().zip(&mut ends).zip([hunk.word_of_kept - 1, hunk.word_of_key - 1])
        {
            side.gap(start.saturating_sub(*end));
            *end = start;
        }
        push_hunk(&mut sides, &mut ends, hunk);
    }
    let more = diff.hunks_in_all - diff.hunks.len();
    let mut html = "<div class=\"sides\">\n".to_owned();
    for (number, (mut side, named)) in sides.into_iter().zip(of).enumerate() {
        match around {
            _ if more > 0 => side.leave_out(&counted(more as u64, "more difference")),
            Some((_, lengths)) => side.gap(lengths[number].saturating_sub(ends[number])),
            None => {}
        }
        push_side(&mut html, &named, &side.html);
    }
    html.push_str("</div>\n");
    html
}

fn push_side(html: &mut String, Named { role, key }: &Named<'_>, text: &str) {
    let key = escaped(&shortened(key, 200));
    let _ = writeln!(
        html,
        "<div><h3>{role}: <bdi>{key}</bdi></h3><p class=\"text\" dir=\"auto\">{text}</p></div>"
    );
}

/// Adds the words of a hunk to the sides that have them.
fn push_hunk(sides: &mut [Side; 2], ends: &mut [usize; 2], hunk: &Hunk) {
    for run in &hunk.runs {
        let words = word_diff::words(&run.text).len() + run.omitted;
        let of: &[(usize, &str)] = match run.stands {
            WordOrigin::InBoth => &[(0, ""), (1, "")],
            WordOrigin::InKept => &[(0, "del")],
            WordOrigin::InKey => &[(1, "ins")],
        };
        for &(side, mark) in of {
            sides[side].push(mark, &run.text);
            sides[side].gap(run.omitted);
            ends[side] += words;
        }
    }
}

/// The HTML of a side.
struct Side {
    html: String,
    /// Maximum length of the HTML.
    max: usize,
    /// Whether further words are left out.
    is_full: bool,
}

impl Side {
    /// Adds words with a mark, which is the name of an element or empty.
    fn push(&mut self, mark: &str, words: &str) {
        if self.is_full || words.is_empty() {
            return;
        }
        // A side without a limit shows whole runs.
        let words = escaped(&shortened(words, RUN_MAX.max(self.max / 10)));
        let words = if mark.is_empty() { words } else { format!("<{mark}>{words}</{mark}>") };
        if self.html.len() + words.len() > self.max {
            self.leave_out("more");
            self.is_full = true;
            return;
        }
        if !self.html.is_empty() {
            self.html.push(' ');
        }
        self.html.push_str(&words);
    }

    /// Adds a mark for words that are left out.
    fn gap(&mut self, words: usize) {
        if words > 0 {
            self.leave_out(&counted(words as u64, "word"));
        }
    }

    /// Adds a mark for something that is left out.
    fn leave_out(&mut self, what: &str) {
        if !self.is_full {
            let _ = write!(self.html, " <i>… {what} …</i>"); // memory does not fail
        }
    }
}

/// Returns the first characters of a text, with an ellipsis if it is longer.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kept: &str, removed: &str) -> String {
        let of = [Named { role: "kept", key: "<a>" }, Named { role: "removed", key: "b&" }];
        texts_side_by_side(of, kept, removed)
    }

    #[test]
    fn differing_words_are_marked_and_common_words_are_left_out() {
        let words =
            |range: std::ops::Range<u32>| range.map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
        let kept = format!("{} <old> {}", words(0..60), words(60..120));
        let html = shown(&kept, &kept.replace("<old>", "new & \"two\""));
        let start = words(0..12) + " <i>… 38 words …</i> " + &words(50..60);
        let end = words(60..70) + " <i>… 50 words …</i></p>";
        for (key, mark) in
            [("&lt;a&gt;", "<del>&lt;old&gt;</del>"), ("b&amp;", "<ins>new &amp; &quot;two&quot;</ins>")]
        {
            let side = format!("<bdi>{key}</bdi></h3><p class=\"text\" dir=\"auto\">{start} {mark} {end}");
            assert!(html.contains(&side), "{html}\n{side}");
        }
    }

    #[test]
    fn equal_words_and_long_texts_are_shown_from_the_start() {
        let html = shown("one two", "one\n two");
        assert!(html.contains(">one two</p>") && !html.contains("<ins>"), "{html}");
        let long = "\"word\" ".repeat(50_000);
        let html = shown(&long, &format!("{long} more"));
        assert!(html.len() < 2_000 && html.contains("Only the first"), "{html}");
        let (a, b) = ("\"'a ".repeat(20_000), "\"'b ".repeat(20_000));
        assert!(shown(&a, &b).len() < 4 * SIDE_MAX);
    }
}
