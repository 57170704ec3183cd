//! Decodes bytes to text. The encoding is given by a byte order mark, by an option, or by a declaration in the HTTP
//! header or in the page (HTML standard, 13.2.3.2). Otherwise it is detected.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Name and version of the encoding detector, for texts without a declared encoding.
pub(crate) const DETECTOR: &str = "chardetng 1";
/// Number of bytes at the start of a page that browsers search for a declared encoding before they parse the page.
const PRESCANNED: usize = 1024;

/// The encoding of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// The encoding of all texts that are not UTF-8. For pages, it overrides the declared encoding, but not a byte
    /// order mark.
    Of(&'static Encoding),
    /// The encoding is that of the byte order mark, the one that a page declares, or UTF-8 if all bytes are valid.
    /// Otherwise it is detected.
    Auto,
}

impl Charset {
    /// Returns the encoding with this label in the Encoding standard; [`Auto`](Self::Auto) for `auto`.
    #[must_use]
    pub fn named(label: &str) -> Option<Self> {
        match label {
            "auto" => Some(Self::Auto),
            label => Encoding::for_label_no_replacement(label.as_bytes()).map(Self::Of),
        }
    }

    /// Returns the name of the encoding. [`named`](Self::named) accepts it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(encoding) => encoding.name(),
            Self::Auto => "auto",
        }
    }

    /// Returns whether the encoding is UTF-16. UTF-16 texts contain zero bytes, and the end of a line is not a single
    /// byte.
    pub(crate) fn is_utf16(self) -> bool {
        matches!(self, Self::Of(encoding) if encoding == UTF_16BE || encoding == UTF_16LE)
    }
}

/// A decoded text, and how it was decoded.
#[derive(Debug)]
pub(crate) struct Decoded<'b> {
    pub(crate) text: Cow<'b, str>,
    /// Whether some bytes were invalid in the encoding and replaced with U+FFFD.
    pub(crate) is_lossy: bool,
    /// Whether the encoding was detected from the bytes.
    pub(crate) is_detected: bool,
}

impl<'b> Decoded<'b> {
    fn by(encoding: &'static Encoding, bytes: &'b [u8]) -> Self {
        let (text, is_lossy) = encoding.decode_without_bom_handling(bytes);
        Self { text, is_lossy, is_detected: false }
    }

    fn utf32(bytes: &[u8], of_bytes: fn([u8; 4]) -> u32) -> Self {
        let (characters, rest) = bytes.as_chunks();
        let mut is_lossy = !rest.is_empty();
        let decode = |&character| {
            char::from_u32(of_bytes(character)).unwrap_or_else(|| {
                is_lossy = true;
                char::REPLACEMENT_CHARACTER
            })
        };
        let mut text: String = characters.iter().map(decode).collect();
        text.extend((!rest.is_empty()).then_some(char::REPLACEMENT_CHARACTER));
        Self { text: text.into(), is_lossy, is_detected: false }
    }

    fn detected(bytes: &'b [u8]) -> Self {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(bytes, true);
        Self { is_detected: true, ..Self::by(detector.guess(None, Utf8Detection::Deny), bytes) }
    }

    fn lossless(self) -> Option<Self> {
        (!self.is_lossy).then_some(self)
    }
}

/// Decodes text that starts with a byte order mark; `None` if there is no such mark.
fn marked(bytes: &[u8]) -> Option<Decoded<'_>> {
    if let Some(of_bytes) = marked_utf32(bytes) {
        return Some(Decoded::utf32(&bytes[4..], of_bytes));
    }
    let (encoding, mark) = Encoding::for_bom(bytes)?;
    Some(Decoded::by(encoding, &bytes[mark..]))
}

/// Returns the order of bytes that the byte order mark of UTF-32 indicates, as the conversion of four bytes; `None` if
/// there is no such mark.
fn marked_utf32(bytes: &[u8]) -> Option<fn([u8; 4]) -> u32> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => Some(u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, ..] => Some(u32::from_be_bytes),
        _ => None,
    }
}

/// Returns the encoding with zero bytes, UTF-16 or UTF-32, whose byte order mark the bytes start with. Zero bytes then do
/// not indicate binary data.
pub(crate) fn marked_wide(bytes: &[u8]) -> Option<&'static str> {
    let is_utf16 = || bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe");
    marked_utf32(bytes).map(|_| "UTF-32").or_else(|| is_utf16().then_some("UTF-16"))
}

/// Decodes a line of text or a row of a table.
pub(crate) fn line(bytes: &[u8], charset: Option<Charset>) -> Decoded<'_> {
    match (std::str::from_utf8(bytes), charset) {
        (Ok(text), _) => Decoded { text: text.into(), is_lossy: false, is_detected: false },
        (Err(_), None) => Decoded::by(UTF_8, bytes),
        (Err(_), Some(Charset::Of(encoding))) => Decoded::by(encoding, bytes),
        (Err(_), Some(Charset::Auto)) => Decoded::detected(bytes),
    }
}

/// Returns the encoding by which a line that is not UTF-8 is decoded; `None` if the line is UTF-8 or no encoding is given.
pub(crate) fn of_line(line: &[u8], charset: Option<Charset>) -> Option<&'static Encoding> {
    match charset {
        Some(Charset::Of(encoding)) if std::str::from_utf8(line).is_err() => Some(encoding),
        _ => None,
    }
}

/// Decodes a whole file of plain text.
pub(crate) fn text(bytes: &[u8], charset: Option<Charset>) -> Decoded<'_> {
    match charset {
        Some(Charset::Of(encoding)) if Charset::Of(encoding).is_utf16() => {
            marked(bytes).unwrap_or_else(|| Decoded::by(encoding, bytes))
        }
        charset => marked(bytes).unwrap_or_else(|| line(bytes, charset)),
    }
}

/// Decodes the plain text in an HTTP response. `of_type` is the content type in the HTTP header.
pub(crate) fn answer<'b>(bytes: &'b [u8], of_type: &[u8], charset: Option<Charset>) -> Decoded<'b> {
    if let Some(Charset::Of(encoding)) = charset {
        return marked(bytes).unwrap_or_else(|| Decoded::by(encoding, bytes));
    }
    marked(bytes).unwrap_or_else(|| declared(bytes, &[of_head(of_type)]))
}

/// Decodes an HTML page. `of_type` is the content type in the HTTP header; empty if there is none.
pub(crate) fn page<'b>(bytes: &'b [u8], of_type: &[u8], charset: Option<Charset>) -> Decoded<'b> {
    if let Some(marked) = marked(bytes) {
        return marked;
    }
    if let Some(Charset::Of(encoding)) = charset {
        return Decoded::by(encoding, bytes);
    }
    let of_head = of_head(of_type);
    if let Some(decoded) = of_head.and_then(|encoding| Decoded::by(encoding, bytes).lossless()) {
        return decoded;
    }
    let start = &bytes[..bytes.len().min(PRESCANNED)];
    let own = prescan(start).or_else(|| of_xml(start)).or_else(|| {
        // While browsers parse a page, they also find a declaration after the prescanned bytes.
        let is_needed = of_head.is_none() && std::str::from_utf8(bytes).is_err();
        is_needed.then(|| prescan(bytes)).flatten()
    });
    declared(bytes, &[of_head, own])
}

/// Decodes with the first of `encodings` and UTF-8 in which all bytes are valid. If there is none, uses the first
/// encoding, unless most non-ASCII characters are invalid in it and a detected encoding decodes all bytes.
fn declared<'b>(bytes: &'b [u8], encodings: &[Option<&'static Encoding>]) -> Decoded<'b> {
    let known = encodings.iter().copied().flatten();
    let mut fitting = known.clone().chain([UTF_8]);
    if let Some(decoded) = fitting.find_map(|encoding| Decoded::by(encoding, bytes).lossless()) {
        return decoded;
    }
    let Some(first) = known.clone().next() else { return Decoded::detected(bytes) };
    let decoded = Decoded::by(first, bytes);
    let (lost, kept) =
        decoded.text.chars().filter(|character| !character.is_ascii()).fold((0, 0), |(lost, kept), one| {
            if one == '\u{fffd}' { (lost + 1_u64, kept) } else { (lost, kept + 1_u64) }
        });
    let other = (lost > kept).then(|| Decoded::detected(bytes).lossless()).flatten();
    other.unwrap_or(decoded)
}

/// Returns the encoding with this label. Ignores labels of encodings that no browser decodes.
fn of_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != REPLACEMENT)
}

/// Returns the encoding that a page declares by this label. If the label is UTF-16, returns UTF-8, because a page in
/// UTF-16 would not contain the label in ASCII.
fn of_own_label(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = of_label(label)?;
    Some(match encoding {
        own if own == UTF_16BE || own == UTF_16LE => UTF_8,
        own if own == X_USER_DEFINED => WINDOWS_1252,
        own => own,
    })
}

/// Returns the encoding that the content type of an HTTP header names.
fn of_head(of_type: &[u8]) -> Option<&'static Encoding> {
    of_label(charset_in(of_type)?)
}

/// Returns the label after `charset=` in a value (HTML standard, "extracting a character encoding from a meta
/// element").
fn charset_in(value: &[u8]) -> Option<&[u8]> {
    let lower = value.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, b"charset").find_map(|at| {
        let rest = value[at + 7..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let (rest, ends): (&[u8], &[u8]) = match rest {
            [b'"', rest @ ..] => (rest, b"\""),
            [b'\'', rest @ ..] => (rest, b"'"),
            rest => (rest, b"; \t\r\n\x0c"),
        };
        let end = rest.iter().position(|byte| ends.contains(byte));
        Some(&rest[..end.unwrap_or(rest.len())])
    })
}

/// Returns the encoding that an XML declaration at the start of the page names.
fn of_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let rest = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote @ (b'"' | b'\''), rest) = rest.split_first()? else { return None };
    of_own_label(&rest[..memchr::memchr(*quote, rest)?])
}

/// Returns the encoding that a `meta` element declares (HTML standard, "prescan a byte stream to determine its
/// encoding"). Skips comments and the tags of other elements.
fn prescan(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_space_or_slash = |byte: &u8| SPACE.contains(byte) || *byte == b'/';
        if rest.starts_with(b"<!--") {
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
        } else if rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"<meta") && is_space_or_slash(&rest[5]) {
            at += 5;
            if let Some(encoding) = meta(bytes, &mut at).ok()? {
                return Some(encoding);
            }
        } else if matches!(rest, [b'<', b'/', letter, ..] | [b'<', letter, ..] if letter.is_ascii_alphabetic())
        {
            at += rest.iter().position(|byte| SPACE.contains(byte) || *byte == b'>')?;
            while attribute(bytes, &mut at).ok()?.is_some() {}
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            at += memchr::memchr(b'>', rest)? + 1;
        } else {
            at += 1 + memchr::memchr(b'<', &rest[1..])?;
        }
    }
    None
}

const SPACE: &[u8] = b"\t\n\x0c\r ";

/// Returns the encoding that the attributes of a `meta` element declare. Fails if the page ends inside the tag.
fn meta(bytes: &[u8], at: &mut usize) -> Result<Option<&'static Encoding>, UnfinishedTag> {
    let (mut seen, mut has_pragma, mut needs_pragma, mut found) = (Vec::new(), false, None, None);
    while let Some((name, value)) = attribute(bytes, at)? {
        if seen.contains(&name) {
            continue;
        }
        match name.as_slice() {
            b"http-equiv" => has_pragma |= value == b"content-type",
            b"content" if found.is_none() => {
                if let Some(encoding) = charset_in(&value).and_then(of_own_label) {
                    (found, needs_pragma) = (Some(encoding), Some(true));
                }
            }
            b"charset" => (found, needs_pragma) = (of_own_label(&value), Some(false)),
            _ => {}
        }
        seen.push(name);
    }
    Ok(found.filter(|_| needs_pragma == Some(false) || needs_pragma == Some(true) && has_pragma))
}

/// The error for a page that ends inside a tag.
struct UnfinishedTag;

/// The name and the value of an attribute.
type Attribute = (Vec<u8>, Vec<u8>);

/// Returns the next attribute of a tag in lower case; `None` at the end of the tag. Returns an error if the page ends
/// inside the tag (HTML standard, "get an attribute").
fn attribute(bytes: &[u8], at: &mut usize) -> Result<Option<Attribute>, UnfinishedTag> {
    let peek = |at: usize| bytes.get(at).copied().ok_or(UnfinishedTag);
    let skip_space = |at: &mut usize| {
        while peek(*at).is_ok_and(|byte| SPACE.contains(&byte)) {
            *at += 1;
        }
    };
    while peek(*at).is_ok_and(|byte| SPACE.contains(&byte) || byte == b'/') {
        *at += 1;
    }
    if peek(*at)? == b'>' {
        *at += 1;
        return Ok(None);
    }
    let (mut name, mut value) = (Vec::new(), Vec::new());
    loop {
        match peek(*at)? {
            b'=' if !name.is_empty() => break,
            byte if SPACE.contains(&byte) => break,
            b'/' | b'>' => return Ok(Some((name, value))),
            byte => name.push(byte.to_ascii_lowercase()),
        }
        *at += 1;
    }
    skip_space(at);
    if peek(*at)? != b'=' {
        return Ok(Some((name, value)));
    }
    *at += 1;
    skip_space(at);
    if let quote @ (b'"' | b'\'') = peek(*at)? {
        let rest = &bytes[*at + 1..];
        let end = memchr::memchr(quote, rest).ok_or(UnfinishedTag)?;
        value.extend(rest[..end].to_ascii_lowercase());
        *at += end + 2;
        return Ok(Some((name, value)));
    }
    loop {
        match peek(*at)? {
            byte if SPACE.contains(&byte) || byte == b'>' => break,
            byte => value.push(byte.to_ascii_lowercase()),
        }
        *at += 1;
    }
    Ok(Some((name, value)))
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

    use super::*;

    #[test]
    fn only_a_meta_element_declares_the_encoding() {
        for (page, wanted) in [
            ("<meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<META CharSet='Shift_JIS'>", Some(SHIFT_JIS)),
            ("<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>", Some(WINDOWS_1251)),
            (
                "<meta content=\"text/html;charset=windows-1251\" http-equiv=\"content-type\"/>",
                Some(WINDOWS_1251),
            ),
            ("<meta content='text/html; charset=windows-1251'>", None),
            ("<meta name=description content='charset=windows-1251' http-equiv=refresh>", None),
            ("<!-- <meta charset=shift_jis> --><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<!--><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<script charset=shift_jis src=x></script><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<link href='a>b' charset=shift_jis><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<p title=\"<meta charset=shift_jis>\"><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("charset=shift_jis <p>", None),
            ("<metadata charset=shift_jis>", None),
            ("<meta charset=utf-16>", Some(UTF_8)),
            ("<meta charset=x-user-defined>", Some(WINDOWS_1252)),
            ("<meta charset=iso-2022-kr><meta charset=windows-1251>", Some(WINDOWS_1251)),
            ("<meta charset=nonsense>", None),
            ("<?php echo '<meta charset=shift_jis>'", None),
            ("<meta charset=windows-1251", None),
            ("<meta", None),
            ("<", None),
            ("", None),
        ] {
            assert_eq!(prescan(page.as_bytes()), wanted, "{page}");
        }
        assert_eq!(of_xml(b"<?xml version='1.0' encoding='windows-1251'?><html>"), Some(WINDOWS_1251));
        assert_eq!(of_xml(b"<html encoding='windows-1251'>"), None);
        for end in 0..60 {
            let page = "<meta charset=\"windows-1251\" a=b/><!-- x --><p a = 'b' c>"; // a prefix ends inside a tag
            prescan(&page.as_bytes()[..end.min(page.len())]);
        }
    }

    #[test]
    fn unknown_charset_name_is_ignored() {
        let cyrillic = b"\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0! \xdd\xf2\xee \xf2\xe5\xea\xf1\xf2 \xed\xe0 \xf0\xf3\xf1\xf1\xea\xee\xec.";
        let read = "Привет, мир! Это текст на русском.";
        let found = page(cyrillic, b"text/html; charset=utf-8", None);
        assert_eq!((&*found.text, found.is_lossy, found.is_detected), (read, false, true));
        // If most bytes are valid in the declared encoding, this encoding is used, and invalid bytes are replaced.
        let found = page(b"<p>\xc3\xa4\xc3\xb6\xc3\xbc\xff", b"text/html; charset=utf-8", None);
        assert_eq!((&*found.text, found.is_lossy), ("<p>äöü\u{fffd}", true));
        // Of the two declarations, the second is right.
        let both = [b"<meta charset=windows-1251>", &cyrillic[..]].concat();
        let found = page(&both, b"text/html; charset=utf-8", None);
        assert_eq!((found.text.ends_with(read), found.is_detected), (true, false));
        // Labels of encodings that browsers do not decode are ignored.
        let found = page(b"<meta charset=iso-2022-kr>plain words", b"text/html; charset=hz-gb-2312", None);
        assert_eq!((&*found.text, found.is_lossy), ("<meta charset=iso-2022-kr>plain words", false));
        // A declaration after the first 1024 bytes is found, too.
        let far = [&b" ".repeat(3000)[..], b"<meta charset=windows-1251>", cyrillic].concat();
        assert!(page(&far, b"text/html", None).text.ends_with(read));
    }

    #[test]
    fn byte_order_mark_overrides_header_and_header_overrides_meta_element() {
        let utf16: Vec<u8> = "\u{feff}<p>ü".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(page(&utf16, b"text/html; charset=shift_jis", None).text, "<p>ü");
        assert_eq!(text(&utf16, None).text, "<p>ü");
        assert_eq!(text(b"\xef\xbb\xbfa", Some(Charset::Of(SHIFT_JIS))).text, "a");
        let said = page(b"<meta charset=shift_jis>\xcf", b"", Charset::named("cp1251"));
        assert_eq!(said.text, "<meta charset=shift_jis>П");
        assert_eq!(line("ü".as_bytes(), Charset::named("cp1251")).text, "ü", "what is UTF-8 is taken so");
        assert_eq!(line(b"\xcf", Charset::named("cp1251")).text, "П");
        assert!(line(b"\xcf", None).is_lossy);
        assert_eq!(Charset::named("iso-2022-kr"), None);
        assert_eq!(Charset::named("auto").map(Charset::name), Some("auto"));
    }
}
