//! Extracts the visible text from HTML, with the tokenizer of a browser engine (html5ever).
//!
//! Builds no tree of elements, because their nesting is not needed and a tree may have many more nodes than the page
//! has bytes.

use std::borrow::Cow;
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
    tokens_of(page, VisibleText::default()).0.into_inner().text.made
}

/// Returns the target of the first canonical link in the head of a page, as it is written.
pub(crate) fn canonical(page: &str) -> Option<String> {
    tokens_of(page, CanonicalLink::default()).0.into_inner().link
}

/// Passes the tokens of a page to `sink`, and returns it.
fn tokens_of<S: TokenSink>(page: &str, sink: S) -> S {
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    let page = without_further_attributes(page);
    // A tendril is limited to 4 GiB, so the page is passed in pieces.
    let mut rest = &*page;
    while !rest.is_empty() {
        let end = (0..=PIECE.min(rest.len())).rev().find(|&end| rest.is_char_boundary(end));
        let (first, others) = rest.split_at(end.filter(|end| *end > 0).unwrap_or(rest.len()));
        input.push_back(StrTendril::from_slice(first));
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        rest = others;
    }
    tokenizer.end();
    tokenizer.sink
}

/// Number of bytes that are passed to the tokenizer at a time.
const PIECE: usize = 1 << 20;

/// Number of attributes of a tag that are passed to the tokenizer.
const ATTRIBUTES_MAX: usize = 1 << 10;

/// Removes the attributes of each tag after the first thousand. They do not change the text, and the tokenizer compares
/// each attribute of a tag with all attributes before it.
fn without_further_attributes(page: &str) -> Cow<'_, str> {
    let bytes = page.as_bytes();
    let (mut state, mut made, mut copied, mut at) = (State::default(), String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'<', &bytes[at..]) {
        at += found + 1;
        if bytes[at..].starts_with(b"!--") {
            at = memchr::memmem::find(&bytes[at..], b"-->").map_or(bytes.len(), |end| at + end);
            continue;
        }
        let is_end = bytes[at..].starts_with(b"/");
        at += usize::from(is_end);
        if !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let name = skip_until(bytes, &mut at, b"\t\n\x0c\r />").to_ascii_lowercase();
        let mut further = None;
        for number in 0.. {
            skip_while(bytes, &mut at, b"\t\n\x0c\r /");
            if matches!(bytes.get(at), None | Some(b'>')) {
                break;
            }
            if number == ATTRIBUTES_MAX {
                further = Some(at);
            }
            skip_attribute(bytes, &mut at);
        }
        let self_closing = bytes[at - 1] == b'/';
        if let Some(further) = further {
            made.push_str(&page[copied..further]);
            copied = at - usize::from(self_closing);
        }
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        match state.tag(name, is_end, self_closing) {
            TokenSinkResult::RawData(_) => at = end_of_raw(bytes, at, name),
            TokenSinkResult::Plaintext => break,
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(page);
    }
    made.push_str(&page[copied..]);
    Cow::Owned(made)
}

/// Moves `at` to the next of these bytes, or to the end. Returns the bytes before it.
fn skip_until<'b>(bytes: &'b [u8], at: &mut usize, ends: &[u8]) -> &'b [u8] {
    let rest = &bytes[*at..];
    let length = rest.iter().position(|byte| ends.contains(byte)).unwrap_or(rest.len());
    *at += length;
    &rest[..length]
}

fn skip_while(bytes: &[u8], at: &mut usize, of: &[u8]) {
    *at += bytes[*at..].iter().take_while(|byte| of.contains(byte)).count();
}

/// Moves `at` past the attribute that starts there (HTML standard, 13.2.5.33 to 13.2.5.39).
fn skip_attribute(bytes: &[u8], at: &mut usize) {
    *at += 1; // the first character may be any, even `=`
    skip_until(bytes, at, b"\t\n\x0c\r />=");
    let mut value = *at;
    skip_while(bytes, &mut value, b"\t\n\x0c\r ");
    if bytes.get(value) != Some(&b'=') {
        return;
    }
    *at = value + 1;
    skip_while(bytes, at, b"\t\n\x0c\r ");
    match bytes.get(*at) {
        Some(&quote @ (b'"' | b'\'')) => {
            *at += 1;
            *at += memchr::memchr(quote, &bytes[*at..]).map_or(bytes.len() - *at, |end| end + 1);
        }
        _ => _ = skip_until(bytes, at, b"\t\n\x0c\r >"),
    }
}

/// Returns the position of the tag that ends the content of an element without tags, which starts at `at`.
fn end_of_raw(bytes: &[u8], at: usize, name: &str) -> usize {
    let is_end = |&end: &usize| {
        let rest = &bytes[at + end + 2..];
        rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && rest.get(name.len()).is_none_or(|after| b"\t\n\x0c\r />".contains(after))
    };
    memchr::memmem::find_iter(&bytes[at..], b"</").find(is_end).map_or(bytes.len(), |end| at + end)
}

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
            Token::TagToken(Tag { kind, name, self_closing, .. }) => {
                return state.tag(&name, kind == TagKind::EndTag, self_closing);
            }
            Token::CharacterTokens(run) if state.hidden.is_none() && !state.raw => state.text.push(&run),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Finds the canonical link of a page.
#[derive(Default)]
struct CanonicalLink(RefCell<HeadState>);

#[derive(Default)]
struct HeadState {
    elements: State,
    /// Whether the body has begun. Links in it are of the authors of its content, and do not count.
    is_over: bool,
    link: Option<String>,
}

impl TokenSink for CanonicalLink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        let mut state = self.0.borrow_mut();
        let is_end = tag.kind == TagKind::EndTag;
        let value = |name: &str| {
            let attribute = tag.attrs.iter().find(|attribute| &*attribute.name.local == name);
            attribute.map_or("", |attribute| &*attribute.value)
        };
        state.is_over |= &*tag.name == "body";
        let is_canonical =
            || value("rel").split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("canonical"));
        let is_in_head = !is_end && !state.is_over && state.elements.hidden.is_none();
        let href = value("href").trim_ascii();
        if is_in_head && state.link.is_none() && &*tag.name == "link" && !href.is_empty() && is_canonical() {
            state.link = Some(href.to_owned());
        }
        state.elements.tag(&tag.name, is_end, tag.self_closing)
    }
}

impl State {
    fn tag(&mut self, name: &str, is_end: bool, self_closing: bool) -> TokenSinkResult<()> {
        self.raw = false; // the next tag ends content without tags
        if let Some(hidden) = HIDDEN.into_iter().find(|hidden| *hidden == name) {
            let depth = self.hidden.filter(|(open, _)| *open == hidden).map_or(0, |(_, depth)| depth);
            match depth {
                1 if is_end => self.hidden = None,
                2.. if is_end => self.hidden = Some((hidden, depth - 1)),
                _ if is_end || self_closing => {}
                0 if self.hidden.is_some() => {}
                _ => self.hidden = Some((hidden, depth.saturating_add(1))),
            }
        }
        if !INLINE.contains(&name) && !HIDDEN.contains(&name) && !RAW.contains(&name) {
            self.text.gap = self.text.gap.max(Gap::Line);
        }
        if is_end || self.hidden.is_some() {
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
    fn canonical_link_is_the_first_in_the_head() {
        for (page, link) in [
            (
                "<head><link rel=stylesheet href=s><LINK REL='next Canonical' HREF=' /a?b&amp;c '></head>",
                Some("/a?b&c"),
            ),
            ("<link rel=canonical href=a><link rel=canonical href=b>", Some("a")),
            ("<link rel=canonical><link rel=canonical href=b>", Some("b")),
            (
                "<title><link rel=canonical href=a></title><script>'<link rel=canonical href=b>'</script>",
                None,
            ),
            ("<!-- <link rel=canonical href=a> --><template><link rel=canonical href=b></template>", None),
            ("<html><body><link rel=canonical href=a>", None),
            ("text", None),
        ] {
            assert_eq!(canonical(page).as_deref(), link, "{page}");
        }
    }

    #[test]
    fn attributes_after_the_first_thousand_are_removed_and_text_stays() {
        let many = |with: &str| (0..2000).map(|at| format!(" a{at}{with}")).collect::<Vec<_>>().concat();
        for with in ["", "=1", "=\"<p>\"", " = '>'", "=>/"] {
            let many = many(with);
            let page = format!("<title>t</title>x<p{many}>one</p{many}><div{many}/>two<svg{many}/>three");
            let made = without_further_attributes(&page);
            assert_eq!(made.len() < page.len(), with != "=>/", "{with}");
            let short = made.split('<').all(|tag| tag.matches(" a").count() <= ATTRIBUTES_MAX);
            assert!(short || with.contains('<') || with.contains('>'), "{with}");
            assert_eq!(text(&page).replace(&many[5..], ""), text(&made).replace(&many[5..], ""));
        }
        let many = many("");
        for page in [
            format!("<textarea>a<b{many}></textarea>"),
            format!("<xmp><b{many}></xmp><script>if (a<b{many}) </script>"),
            format!("<!-- <b{many}> -->"),
            format!("<plaintext><b{many}>"),
            "<p a b c>".repeat(1000),
        ] {
            assert!(matches!(without_further_attributes(&page), Cow::Borrowed(_)), "{}", &page[..20]);
        }
        assert_eq!(text(&format!("kept<b{many}")), "kept");
        assert_eq!(text(&format!("<svg><style><b{many}></style></svg>x")), "x");
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
