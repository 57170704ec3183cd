//! Detects the format of a file from its first bytes, if its name indicates none. Also detects files that no reader
//! supports.

use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::open::{Origin, Reader};
use super::{Kind, Problem};

/// Number of bytes that are checked. A longer JSON line is recognized by its start.
const LOOKED_AT: usize = 64 << 10;

/// Returns the format of a file, from its decompressed bytes; `None` unless they are certainly records.
///
/// # Errors
///
/// The file cannot be read, or its compression is not supported.
pub(super) fn kind(path: &Path) -> Result<Option<Kind>, Problem> {
    let mut reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
    let is_plain = reader.plain_bytes().is_some();
    let (mut start, mut filled) = (vec![0; LOOKED_AT], 0);
    while filled < start.len() {
        match reader.read_once(&mut start[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    // Parquet files are read from their end, so they cannot be compressed as a whole.
    Ok(kind_of(&start[..filled]).filter(|kind| *kind != Kind::Parquet || is_plain))
}

fn kind_of(start: &[u8]) -> Option<Kind> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match text {
        [b'P', b'A', b'R', b'1', ..] => Some(Kind::Parquet),
        [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.', ..] => Some(Kind::Warc),
        [b'f', b'i', b'l', b'e', b'd', b'e', b's', b'c', b':', ..] => Some(Kind::Arc),
        [b'{', ..] => is_line_of_json(text, start.len() == LOOKED_AT).then_some(Kind::Jsonl),
        _ => None,
    }
}

/// Returns whether the first line is a complete JSON object. `continues` is whether the file has more bytes.
fn is_line_of_json(text: &[u8], continues: bool) -> bool {
    match memchr::memchr(b'\n', text) {
        Some(end) => serde_json::from_slice::<IgnoredAny>(&text[..end]).is_ok(),
        None if continues => text[1..].trim_ascii_start().starts_with(b"\""),
        None => serde_json::from_slice::<IgnoredAny>(text).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_first_bytes_and_texts_are_not() {
        for (start, wanted) in [
            (&b"{\"id\":1}\n{\"id\":2}\n"[..], Some(Kind::Jsonl)),
            (b"\xef\xbb\xbf{\"id\":1}", Some(Kind::Jsonl)),
            (b"{\n  \"id\": 1\n}\n", None),
            (b"{% template %}\n", None),
            (b"WARC/1.0\r\n", Some(Kind::Warc)),
            (b"PAR1\x15\x04", Some(Kind::Parquet)),
            (b"filedesc://a.arc 0.0.0.0 ", Some(Kind::Arc)),
            (b"WARCs are archives", None),
            (b"plain", None),
            (b"", None),
        ] {
            assert_eq!(kind_of(start), wanted, "{}", start.escape_ascii());
        }
        let long = [b"{\"id\":\"".to_vec(), vec![b'x'; LOOKED_AT]].concat();
        assert_eq!(kind_of(&long[..LOOKED_AT]), Some(Kind::Jsonl));
    }
}
