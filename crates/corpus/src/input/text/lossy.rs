//! Texts with undecodable data (invalid bytes or lone surrogates), which marks record and U+FFFD replaces.
//!
//! A *marked* text contains all undecodable data, so that different inputs have different marked texts. A lone
//! surrogate is encoded as U+10FFFF, four hexadecimal digits, U+10FFFF. An invalid byte `XX` is encoded like the
//! surrogate `dcXX`, as in Python's `surrogateescape`. U+10FFFF itself is doubled. Lossy texts are compared in marked
//! form, and displayed with U+FFFD.

use std::fmt::Write;

/// The character before and after undecodable data.
const MARK: char = '\u{10ffff}';

/// The first byte of the bytes that are compared instead of a lossy text. No UTF-8 text begins with this byte.
pub(crate) const LOSSY: u8 = 0xff;
/// The first byte of the bytes that are compared instead of the text of a page without visible text.
pub(crate) const UNSEEN: u8 = 0xfe;
/// The start of the bytes that are compared instead of a fingerprint or features that a record lacks; its key follows.
/// No text begins like this, and it is longer than a fingerprint of 64 bits.
pub(crate) const ABSENT: &[u8] = b"\xfdno content";
/// The first byte of the bytes that are compared of a fingerprint of more than 64 bits.
pub(crate) const LONG_FINGERPRINT: u8 = 0xfc;

/// Returns the text in marked form: invalid bytes are marked.
pub(crate) fn mark(bytes: &[u8]) -> String {
    let mut marked = String::with_capacity(bytes.len() + bytes.len() / 8);
    for chunk in bytes.utf8_chunks() {
        push_valid(&mut marked, chunk.valid());
        push_lost(&mut marked, chunk.invalid().iter().map(|&byte| 0xdc00 | u16::from(byte)));
    }
    marked
}

fn push_valid(marked: &mut String, valid: &str) {
    for (number, part) in valid.split(MARK).enumerate() {
        if number > 0 {
            marked.extend([MARK, MARK]);
        }
        marked.push_str(part);
    }
}

fn push_lost(marked: &mut String, halves: impl ExactSizeIterator<Item = u16>) {
    if halves.len() == 0 {
        return;
    }
    marked.push(MARK);
    for half in halves {
        let _ = write!(marked, "{half:04x}"); // writing to memory does not fail
    }
    marked.push(MARK);
}

/// Returns a JSON line in marked form: invalid bytes and escapes of lone surrogates are marked.
pub(crate) fn mark_json(line: &[u8]) -> String {
    let plain = mark(line);
    let mut marked = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(at) = rest.find('\\') {
        marked.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(first) = half(rest) else {
            // Any other escape is skipped as a backslash and one character.
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
            marked.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        };
        if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, half(&rest[ESCAPE..])) {
            if (first, second) == (0xdbff, 0xdfff) {
                marked.extend([MARK, MARK]);
            } else {
                marked.push_str(&rest[..2 * ESCAPE]);
            }
            rest = &rest[2 * ESCAPE..];
            continue;
        }
        let byte =
            |rest: &str| half(rest).filter(|half| (0xdc80..0xdd00).contains(half)).map(|half| half as u8);
        let mut bytes = Vec::new();
        while let Some(byte) = byte(rest) {
            bytes.push(byte);
            rest = &rest[ESCAPE..];
        }
        if bytes.is_empty() {
            push_lost(&mut marked, [first].into_iter());
            rest = &rest[ESCAPE..];
        } else {
            // Decodes consecutive escaped bytes together, as if they were raw bytes of the line.
            marked.push_str(&mark(&bytes));
        }
    }
    marked.push_str(rest);
    marked
}

/// Length in bytes of a `\u` escape.
const ESCAPE: usize = 6;

/// Returns the surrogate that an escape at the start of `rest` encodes; `None` if `rest` does not start with such an
/// escape.
fn half(rest: &str) -> Option<u16> {
    let digits = rest.strip_prefix("\\u")?.get(..4)?;
    let half = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&half).then_some(half)
}

/// Returns whether a line contains an escape of a surrogate, which may be lone.
pub(crate) fn has_half(line: &str) -> bool {
    memchr::memmem::find_iter(line.as_bytes(), b"\\u").any(|at| half(&line[at..]).is_some())
}

/// Replaces the marks of a marked text with U+FFFD; `None` if it has no marks.
pub(crate) fn shown(marked: &str) -> Option<String> {
    if !marked.contains(MARK) {
        return None;
    }
    Some(
        parts(marked)
            .map(|part| match part {
                TextPart::Text(text) => text.to_owned(),
                TextPart::Lost => "\u{fffd}".to_owned(),
            })
            .collect(),
    )
}

/// Returns whether a marked text contains undecodable data.
pub(crate) fn is_lossy(marked: &str) -> bool {
    parts(marked).any(|part| matches!(part, TextPart::Lost))
}

enum TextPart<'m> {
    Text(&'m str),
    Lost,
}

/// Splits a marked text at [`MARK`]: the parts are text and undecodable data in alternation.
fn parts(marked: &str) -> impl Iterator<Item = TextPart<'_>> {
    marked.split(MARK).enumerate().map(|(number, part)| match (number % 2, part) {
        (0, text) => TextPart::Text(text),
        (_, "") => TextPart::Text("\u{10ffff}"),
        _ => TextPart::Lost,
    })
}

/// Appends bytes as a JSON string. Each invalid byte is encoded as a lone surrogate.
pub(crate) fn push_json(line: &mut Vec<u8>, bytes: &[u8]) -> anyhow::Result<()> {
    line.push(b'"');
    for chunk in bytes.utf8_chunks() {
        let quoted = serde_json::to_string(chunk.valid())?;
        line.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
        for byte in chunk.invalid() {
            line.extend_from_slice(format!("\\udc{byte:02x}").as_bytes());
        }
    }
    line.push(b'"');
    Ok(())
}

/// The treatment of a text with bytes that are invalid in its encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidUtf8 {
    /// [`InvalidUtf8::Replace`] for HTML pages and web archives, [`InvalidUtf8::Error`] for other inputs.
    #[default]
    Usual,
    /// A line or a named file with invalid bytes is a bad record. Files in folders are skipped.
    Error,
    /// Each maximal invalid part of a character, and each byte that cannot begin a character, is replaced with U+FFFD.
    /// Invalid bytes in keys are an error. `dedup` compares such texts only for equality of their original bytes.
    Replace,
    /// A text with invalid bytes is skipped and counted.
    Skip,
}

impl InvalidUtf8 {
    /// Resolves [`InvalidUtf8::Usual`], which depends on whether the input is a page or an archive.
    pub(crate) fn of(self, is_page_or_archive: bool) -> Self {
        match self {
            Self::Usual if is_page_or_archive => Self::Replace,
            Self::Usual => Self::Error,
            said => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes from which a marked text was made. A lone surrogate that does not represent an invalid byte is
    /// encoded as in UTF-8. Because marking can be reversed, different inputs have different marked texts.
    fn bytes(marked: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, part) in marked.split(MARK).enumerate() {
            match (number % 2, part) {
                (0, text) => bytes.extend_from_slice(text.as_bytes()),
                (_, "") => bytes.extend_from_slice("\u{10ffff}".as_bytes()),
                (_, halves) => {
                    for digits in halves.as_bytes().chunks(4) {
                        let half = u16::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
                        if (0xdc80..0xdd00).contains(&half) {
                            bytes.push(half as u8);
                        } else {
                            let six = |shift: u16| 0x80 | (half >> shift & 63) as u8;
                            bytes.extend([0xe0 | (half >> 12) as u8, six(6), six(0)]);
                        }
                    }
                }
            }
        }
        bytes
    }

    #[test]
    fn invalid_bytes_are_shown_as_replacement_characters_and_different_bytes_stay_distinct() {
        for (from, wanted, lossy) in [
            (&b"f\xfcr"[..], Some("f\u{fffd}r"), true),
            (b"f\xe4\xb8r\xff\xfe", Some("f\u{fffd}r\u{fffd}\u{fffd}"), true),
            (b"plain", None, false),
            ("\u{10ffff}dc41".as_bytes(), Some("\u{10ffff}dc41"), false),
        ] {
            let marked = mark(from);
            assert_eq!((shown(&marked).as_deref(), is_lossy(&marked)), (wanted, lossy), "{marked:?}");
            assert_eq!(bytes(&marked), from);
        }
        assert_ne!(mark(b"a\xcf\xf0"), mark(b"a\xc0\xf0"));
    }

    #[test]
    fn lone_surrogate_escapes_are_marked_and_pairs_are_not() {
        let text = |json: &str| -> String { serde_json::from_str(&mark_json(json.as_bytes())).unwrap() };
        for (json, wanted) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""a\udc00\ud83d\ude00""#, "a\u{fffd}\u{1f600}"),
            (r#""\\ud800\"""#, "\\ud800\""),
            (r#""\udbff\udfff\udce4\udcb8""#, "\u{10ffff}\u{fffd}"),
        ] {
            let marked = text(json);
            assert_eq!(shown(&marked).unwrap_or(marked), wanted, "{json}");
        }
        assert_eq!(bytes(&text(r#""a\ud800""#)), b"a\xed\xa0\x80");
        assert!(has_half(r#"{"a":"\ud800"}"#) && !has_half(r#"{"a":"\u00fc"}"#));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lost_bytes_are_recovered_from_marks_and_from_json(parts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..6),
            prop::sample::select(vec!["\u{10ffff}", "ü", "\\ud800", "\"", "\\"]).prop_map(|text| text.as_bytes().to_vec()),
        ], 0..8)) {
            let all = parts.concat();
            let marked = mark(&all);
            prop_assert_eq!(&bytes(&marked), &all);
            prop_assert_eq!(is_lossy(&marked), std::str::from_utf8(&all).is_err());
            let lossy = String::from_utf8_lossy(&all);
            prop_assert_eq!(shown(&marked).unwrap_or_else(|| marked.clone()), &*lossy);
            let mut json = Vec::new();
            push_json(&mut json, &all).unwrap();
            let again: String = serde_json::from_str(&mark_json(&json)).unwrap();
            prop_assert_eq!(again, marked, "a line that is made of bytes says the same");
        }
    }
}
