//! Escapes fields of tab-separated tables: encodes any bytes as valid UTF-8 on one line, and decodes them again.
//!
//! A tab, a newline, a carriage return and a backslash are written `\t`, `\n`, `\r` and `\\`. Each byte that is not
//! part of valid UTF-8 is written `\xNN`. All other bytes are unchanged. [`unescape`] inverts [`escape`] for every
//! sequence of bytes, so that a key copied from a table finds its document.

use std::borrow::Cow;
use std::io::{self, Write};

use anyhow::bail;
use twindex::KeyBuf;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Returns the letter that represents `byte` after a backslash; `None` if `byte` is not escaped by a letter.
fn letter_of(byte: u8) -> Option<u8> {
    match byte {
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\\' => Some(b'\\'),
        _ => None,
    }
}

/// Returns `field` escaped for a table, as valid UTF-8. Does not copy a field that needs no escapes.
#[must_use]
pub fn escape(field: &[u8]) -> Cow<'_, [u8]> {
    // The loop has no early exit, so that the compiler can vectorize it.
    let special = field.iter().fold(false, |special, &byte| special | letter_of(byte).is_some());
    if !special && std::str::from_utf8(field).is_ok() {
        return Cow::Borrowed(field);
    }
    let mut out = Vec::with_capacity(field.len() + field.len() / 8 + 8);
    for chunk in field.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            match letter_of(byte) {
                Some(letter) => out.extend([b'\\', letter]),
                None => out.push(byte),
            }
        }
        for &byte in chunk.invalid() {
            out.extend([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    Cow::Owned(out)
}

/// Escapes `field` and writes it, without a tab or newline after it.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_field(out: &mut impl Write, field: &[u8]) -> io::Result<()> {
    out.write_all(&escape(field))
}

/// Writes a number as a field.
///
/// # Errors
///
/// The errors of `out`.
#[inline]
pub fn write_number(out: &mut impl Write, number: impl itoa::Integer) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}

/// Writes a key as a field. Bytes are escaped; numbers are written in decimal.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_key(out: &mut impl Write, key: &KeyBuf) -> io::Result<()> {
    match key {
        KeyBuf::U64(key) => write_number(out, *key),
        KeyBuf::Bytes(key) => write_field(out, key),
    }
}

/// Returns the bytes that [`escape`] encodes as `field`.
///
/// # Errors
///
/// Fails if a backslash is followed by nothing, by a character other than `t n r x \`, or by `x` without two
/// hexadecimal digits. The message gives the offset of the backslash.
pub fn unescape(field: &[u8]) -> anyhow::Result<Cow<'_, [u8]>> {
    if !field.contains(&b'\\') {
        return Ok(Cow::Borrowed(field));
    }
    let mut out = Vec::with_capacity(field.len());
    let mut at = 0;
    while at < field.len() {
        if field[at] != b'\\' {
            out.push(field[at]);
            at += 1;
            continue;
        }
        let (byte, width) = match field.get(at + 1) {
            Some(b't') => (b'\t', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'\\') => (b'\\', 2),
            Some(b'x') => match (digit(field.get(at + 2)), digit(field.get(at + 3))) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => bail!("bad escape at offset {at}: \\x is followed by two hexadecimal digits"),
            },
            Some(&other) => bail!(
                "bad escape at offset {at}: \\{}; known are \\t, \\n, \\r, \\\\ and \\xNN",
                other.escape_ascii()
            ),
            None => bail!("bad escape at offset {at}: a backslash at the end; a backslash itself is \\\\"),
        };
        out.push(byte);
        at += width;
    }
    Ok(Cow::Owned(out))
}

/// Returns the value of a hexadecimal digit.
fn digit(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of a raw field and its escaped form.
    const CASES: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (b"plain key", b"plain key"),
        ("\u{fc}\u{4e2d}\u{1f600}".as_bytes(), "\u{fc}\u{4e2d}\u{1f600}".as_bytes()),
        (b"a\tb", b"a\\tb"),
        (b"a\nb", b"a\\nb"),
        (b"a\rb", b"a\\rb"),
        (b"a\\b", b"a\\\\b"),
        (b"\\t", b"\\\\t"),
        (b"\xff", b"\\xff"),
        (b"a\x80\x0ab", b"a\\x80\\nb"),
        // The first two bytes of a three-byte character.
        (b"\xe4\xb8", b"\\xe4\\xb8"),
        // Other control characters are not escaped, because they do not separate fields or lines.
        (b"\x00\x1b", b"\x00\x1b"),
    ];

    #[test]
    fn special_bytes_are_escaped_and_unescaped() {
        for &(raw, written) in CASES {
            assert_eq!(escape(raw).as_ref(), written, "{}", raw.escape_ascii());
            assert_eq!(unescape(written).unwrap().as_ref(), raw, "{}", written.escape_ascii());
            let mut out = Vec::new();
            write_field(&mut out, raw).unwrap();
            assert_eq!(out, written);
        }
    }

    #[test]
    fn field_without_escapes_is_not_copied() {
        assert!(matches!(escape(b"plain"), Cow::Borrowed(_)));
        assert!(matches!(unescape(b"plain"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn every_pair_of_bytes_round_trips_as_one_utf8_field() {
        for pair in 0..=u16::MAX {
            let raw = [b'a', pair.to_be_bytes()[0], pair.to_be_bytes()[1], b'z'];
            let written = escape(&raw);
            assert!(std::str::from_utf8(&written).is_ok(), "{raw:?}");
            assert!(!written.iter().any(|byte| b"\t\n\r".contains(byte)), "{raw:?}");
            assert_eq!(unescape(&written).unwrap().as_ref(), raw);
        }
    }

    #[test]
    fn bad_escapes_are_refused_with_their_offset() {
        for (written, wanted) in [
            (&b"ab\\"[..], "offset 2: a backslash at the end"),
            (b"\\q", "offset 0: \\q"),
            (b"\\\\\\x4", "offset 2: \\x is followed by two"),
            (b"\\xg0", "offset 0: \\x is followed by two"),
            (b"\\x", "offset 0: \\x is followed by two"),
        ] {
            let message = unescape(written).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn capital_hexadecimal_digits_are_read_too() {
        assert_eq!(unescape(b"\\xFE").unwrap().as_ref(), b"\xfe");
    }
}
