//! Extracts the visible text from HTML, with the tokenizer of a browser engine (html5ever).
//!
//! Builds no tree of elements, because their nesting is not needed and a tree may have many more nodes than the page
//! has bytes.

use std::cell::RefCell;

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Elements with invisible content that may contain elements of the same name.
const HIDDEN: [&str; 2] = ["svg", "template"];

/// Elements with invisible content that contains no tags.
const RAW: [&str; 6] = ["iframe", "noembed", "noframes", "noscript", "script", "style"];

/// Elements that do not start a new line. All other elements do.
const INLINE: [&str; 35] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr",
];

/// Returns the text of a page: its title and the visible text of its body. Entities are decoded, a run of white space
/// becomes one space, and each block becomes a line. Any input is a valid page, so there are no errors.
pub(crate) fn text(page: &str) -> String {
    let tokenizer = Tokenizer::new(VisibleText::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    // A tendril is limited to 4 GiB, so the page is passed in pieces.
    let mut rest = page;
    while !rest.is_empty() {
        let end = (0..=PIECE.min(rest.len())).rev().find(|&end| rest.is_char_boundary(end));
        let (first, others) = rest.split_at(end.filter(|end| *end > 0).unwrap_or(rest.len()));
        input.push_back(StrTendril::from_slice(first));
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        rest = others;
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().text.made
}

/// Number of bytes that are passed to the tokenizer at a time.
const PIECE: usize = 1 << 20;

#[derive(Default)]
struct VisibleText(RefCell<State>);

#[derive(Default)]
struct State {
    text: HtmlText,
    /// The open hidden element, and the number of open elements with its name.
    hidden: Option<(&'static str, u32)>,
    /// Whether the text that follows is inside an element of [`RAW`].
    raw: bool,
}

impl TokenSink for VisibleText {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => return state.tag(&tag),
            Token::CharacterTokens(run) if state.hidden.is_none() && !state.raw => state.text.push(&run),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl State {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        self.raw = false; // the next tag ends content without tags
        if let Some(hidden) = HIDDEN.into_iter().find(|hidden| *hidden == name) {
            let depth = self.hidden.filter(|(open, _)| *open == hidden).map_or(0, |(_, depth)| depth);
            match tag.kind {
                TagKind::StartTag if tag.self_closing => {}
                TagKind::StartTag if self.hidden.is_none() || depth > 0 => {
                    self.hidden = Some((hidden, depth.saturating_add(1)));
                }
                TagKind::EndTag if depth > 1 => self.hidden = Some((hidden, depth - 1)),
                TagKind::EndTag if depth == 1 => self.hidden = None,
                _ => {}
            }
        }
        if !INLINE.contains(&name) && !HIDDEN.contains(&name) && !RAW.contains(&name) {
            self.text.gap = self.text.gap.max(Gap::Line);
        }
        if tag.kind == TagKind::EndTag || self.hidden.is_some() {
            return TokenSinkResult::Continue;
        }
        // Sets the tokenizer state as a tree builder would (HTML standard, 13.2.6.4), because the state affects how the
        // following text is tokenized.
        match name {
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            name if RAW.contains(&name) => {
                self.raw = true;
                let script = name == "script";
                TokenSinkResult::RawData(if script { RawKind::ScriptData } else { RawKind::Rawtext })
            }
            "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

/// The gap between two words: nothing, white space or a line break.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Blank,
    Line,
}

#[derive(Debug, Default)]
struct HtmlText {
    made: String,
    gap: Gap,
}

impl HtmlText {
    fn push(&mut self, run: &str) {
        for character in run.chars() {
            // White space as defined by HTML, which excludes the non-breaking space.
            if matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c') {
                self.gap = self.gap.max(Gap::Blank);
                continue;
            }
            match self.gap {
                _ if self.made.is_empty() => {}
                Gap::None => {}
                Gap::Blank => self.made.push(' '),
                Gap::Line => self.made.push('\n'),
            }
            self.gap = Gap::None;
            self.made.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_page_is_its_title_and_visible_text() {
        let page = "<!doctype html><html><head><title>The  title</title><style>p{}</style></head><body>\
                    <h1>Head</h1><p>One <b>bo</b>ld&nbsp;word,\n and &lt;more&gt;<br>next<script>x</script> line\
                    <ul><li>a<li>b</ul><!-- no --><noscript>no</noscript></body></html>";
        assert_eq!(text(page), "The title\nHead\nOne bold\u{a0}word, and <more>\nnext line\na\nb");
    }

    #[test]
    fn input_without_markup_is_unchanged_and_never_panics() {
        assert_eq!(text("just words"), "just words");
        assert_eq!(text(""), "");
        assert_eq!(text("<p unclosed"), "");
        assert_eq!(text(&"<div><b>".repeat(200_000)), "");
        assert_eq!(text(&format!("{}x", "<ul><li>".repeat(200_000))), "x");
        let formats = "<font a=b>".repeat(5000);
        assert_eq!(text(&format!("<p>{formats}</p>{}", "<p>x".repeat(8000))).len(), 15_999);
        assert_eq!(text("a<svg><svg>b</svg>c</svg>d<template>e</template><svg/>f"), "adf");
        assert_eq!(text(&"<svg>".repeat(100)), "");
        assert_eq!(text("<textarea>a<b></textarea><xmp><i></xmp>z"), "a<b>\n<i>\nz");
    }
}
