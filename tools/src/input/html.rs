//! HTML reduced to the text that a reader sees, by the parser of browsers (html5ever).

use scraper::Html;
use scraper::node::Node;

/// Elements whose contents are not shown as text.
const HIDDEN: [&str; 6] = ["script", "style", "noscript", "template", "iframe", "svg"];

/// Elements that stand in a line with what is around them; all others begin a line of their own.
const INLINE: [&str; 35] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr",
];

/// The text of a page: its title and what its body shows, entities undone, blanks joined to one, a line for each
/// block. Any text is a page of some kind, so that nothing is refused.
pub(super) fn text(page: &str) -> String {
    use ego_tree::iter::Edge;
    let page = Html::parse_document(page);
    let mut text = Text::default();
    let mut hidden = 0_usize;
    // In the order of the tree and without recursion, however deep it is.
    for edge in page.tree.root().traverse() {
        let (opens, node) = match edge {
            Edge::Open(node) => (true, node),
            Edge::Close(node) => (false, node),
        };
        match node.value() {
            Node::Element(element) => {
                let name = element.name();
                if HIDDEN.contains(&name) {
                    hidden = if opens { hidden + 1 } else { hidden - 1 };
                } else if !INLINE.contains(&name) {
                    text.gap = text.gap.max(Gap::Line);
                }
            }
            Node::Text(run) if opens && hidden == 0 => text.push(run),
            _ => {}
        }
    }
    text.made
}

/// What stands between two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Blank,
    Line,
}

#[derive(Debug, Default)]
struct Text {
    made: String,
    gap: Gap,
}

impl Text {
    fn push(&mut self, run: &str) {
        for character in run.chars() {
            // What HTML calls white space, which a space that does not break a line is not.
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
    fn a_page_is_its_title_and_what_it_shows() {
        let page = "<!doctype html><html><head><title>The  title</title><style>p{}</style></head><body>\
                    <h1>Head</h1><p>One <b>bo</b>ld&nbsp;word,\n and &lt;more&gt;<br>next<script>x</script> line\
                    <ul><li>a<li>b</ul><!-- no --><noscript>no</noscript></body></html>";
        assert_eq!(text(page), "The title\nHead\nOne bold\u{a0}word, and <more>\nnext line\na\nb");
    }

    #[test]
    fn what_is_no_page_is_its_own_text_and_nothing_breaks() {
        assert_eq!(text("just words"), "just words");
        assert_eq!(text(""), "");
        assert_eq!(text("<p unclosed"), "");
        assert_eq!(text(&"<div><b>".repeat(20_000)), "");
        assert_eq!(text(&format!("{}x", "<ul><li>".repeat(20_000))), "x");
    }
}
