//! Detects the content type of an HTTP response from its first bytes if the header has none: a page, other text, or
//! neither (the MIME Sniffing standard of the WHATWG, sections 5 and 7.1).

/// Number of bytes at the start of the content that are checked.
const LOOKED_AT: usize = 1445;
/// The tags with which a page may begin, after white space. A space or `>` must follow the tag name.
const TAGS: [&str; 16] = [
    "<!DOCTYPE HTML",
    "<HTML",
    "<HEAD",
    "<SCRIPT",
    "<IFRAME",
    "<H1",
    "<DIV",
    "<FONT",
    "<TABLE",
    "<A",
    "<STYLE",
    "<TITLE",
    "<B",
    "<BODY",
    "<BR",
    "<P",
];
/// The names of script and style types among the text types.
const NOT_SHOWN: [&str; 8] =
    ["css", "ecmascript", "javascript", "jscript", "livescript", "x-ecmascript", "x-javascript", "vbscript"];

/// Returns the content type of content that begins with these bytes; `None` if it is not text.
pub(crate) fn sniffed(content: &[u8]) -> Option<&'static [u8]> {
    let start = &content[..content.len().min(LOOKED_AT)];
    let text = start.trim_ascii_start();
    let is_page = text.starts_with(b"<!--") || TAGS.iter().any(|tag| begins_with(text, tag.as_bytes()));
    let is_marked =
        [&b"\xef\xbb\xbf"[..], b"\xfe\xff", b"\xff\xfe"].iter().any(|mark| start.starts_with(mark));
    let is_binary = |byte: &u8| matches!(*byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    match () {
        () if is_page => Some(b"text/html"),
        () if is_marked || !start.iter().any(is_binary) => Some(b"text/plain"),
        () => None,
    }
}

fn begins_with(text: &[u8], tag: &[u8]) -> bool {
    let (start, rest) = text.split_at(text.len().min(tag.len()));
    start.eq_ignore_ascii_case(tag) && rest.first().is_some_and(|byte| b" >".contains(byte))
}

/// Returns whether a text type is a type of scripts or styles, which are not documents.
pub(crate) fn is_not_shown(medium: &[u8]) -> bool {
    medium
        .get(5..)
        .is_some_and(|name| NOT_SHOWN.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_sniffed_from_the_first_bytes_and_others_give_none() {
        for page in [" \n<!doctype html>", "<html lang=en>", "<P>words", "<!-- a --><b>"] {
            assert_eq!(sniffed(page.as_bytes()), Some(&b"text/html"[..]), "{page}");
        }
        for text in ["plain words", "<html", "<pre>", "", "{\"a\": 1}"] {
            assert_eq!(sniffed(text.as_bytes()), Some(&b"text/plain"[..]), "{text}");
        }
        assert_eq!(sniffed(b"\xff\xfea\0"), Some(&b"text/plain"[..]));
        for other in [&b"\x89PNG\r\n\x1a\n"[..], b"PK\x03\x04", b"words \x00"] {
            assert_eq!(sniffed(other), None);
        }
        assert!(is_not_shown(b"text/CSS") && is_not_shown(b"text/javascript"));
        assert!(!is_not_shown(b"text/plain") && !is_not_shown(b"text"));
    }
}
