//! Removes parts of texts from the lines of documents. The lines keep their format.

use std::ops::Range;

use anyhow::{Context, anyhow, bail, ensure};

use crate::input::archives::warc;
use crate::input::content::{Content, Form};
use crate::input::fields::names::{Selection, push_text};
use crate::input::fields::record::Fields;
use crate::input::jsonl::nested;
use crate::input::parser::{ParseBuffers, ParsedLine, Parser, understand};
use crate::input::text::charset;
use crate::input::text::cuts::part_without;
pub use crate::input::text::cuts::without;
use crate::input::text::lossy::InvalidUtf8;

/// Returns whether the line of a document contains its text unchanged, so that parts of the text can be removed from
/// the line. The caller writes other documents as JSON objects with key and text.
#[must_use]
pub fn is_verbatim_in_line(form: Form, line: &[u8], text: &str) -> bool {
    match form {
        Form::Html | Form::Arc => false,
        Form::Archive { .. } => line.ends_with(text.as_bytes()),
        Form::Json | Form::Element | Form::Row(_) | Form::Columns(_) => true,
    }
}

/// Returns a JSON object with the key and the text of a document.
///
/// # Errors
///
/// None: writing to memory does not fail.
pub fn object(key: &[u8], text: &str, parser: &Parser) -> anyhow::Result<Vec<u8>> {
    let Fields { id, text: name, .. } = &parser.fields;
    let mut line = b"{".to_vec();
    serde_json::to_writer(&mut line, id)?;
    line.push(b':');
    serde_json::to_writer(&mut line, &String::from_utf8_lossy(key))?;
    line.push(b',');
    serde_json::to_writer(&mut line, name)?;
    line.push(b':');
    serde_json::to_writer(&mut line, text)?;
    line.push(b'}');
    Ok(line)
}

/// Returns the line of a document without these byte ranges of its text. The ranges must be in ascending order, must
/// not overlap, and must be on character boundaries. The rest of the line is unchanged, except that an archive record
/// gets a new length and loses its digests. As a check, the result is parsed again. Ranges of Parquet and Arrow rows are
/// removed [when rows are copied](crate::input::kept::writer::KeptWriter::without).
///
/// # Errors
///
/// The line does not contain the text, or lines of this form cannot be changed.
pub fn line_without(
    form: Form,
    line: &[u8],
    text: &str,
    cut: &[Range<usize>],
    parser: &Parser,
) -> anyhow::Result<Vec<u8>> {
    let encoding = charset::of_line(line, parser.charset);
    let (made, expected) = match form {
        Form::Json | Form::Element => json_without(line, text, cut, parser)?,
        Form::Row(number) => {
            let header = parser.headers().row(number).context("its header is gone")?;
            let decoded = charset::line(line, parser.charset);
            let utf8 = if std::str::from_utf8(line).is_ok() { line } else { decoded.text.as_bytes() };
            header.line_without(utf8, cut)?
        }
        Form::Archive { .. } => (archive_without(line, text, cut)?, without(text, cut)),
        Form::Html | Form::Arc | Form::Columns(_) => bail!("its text is not in its line"),
    };
    // A line is written in the encoding in which it was read.
    let line = match (encoding, std::str::from_utf8(&made)) {
        (Some(encoding), Ok(text)) => encoding.encode(text).0.into_owned(),
        _ => made,
    };
    let mut buffers = ParseBuffers::default();
    let parser = Parser { invalid_utf8: InvalidUtf8::Error, ..parser.clone() };
    match understand(form, &line, &parser, &mut buffers) {
        Ok(ParsedLine::Document { content: Content::Text(left), .. }) if left == expected => Ok(line),
        Ok(_) => bail!("cannot be written in its own form: it would be read as another text"),
        Err(reason) => bail!("cannot be written in its own form: {reason}"),
    }
}

/// Removes the ranges from a JSON object, whose text may be in several fields. Returns the new line and the new text.
fn json_without(
    line: &[u8],
    text: &str,
    cut: &[Range<usize>],
    parser: &Parser,
) -> anyhow::Result<(Vec<u8>, String)> {
    let decoded;
    let line = if let Ok(line) = std::str::from_utf8(line) {
        line
    } else {
        decoded = charset::line(line, parser.charset);
        &decoded.text
    };
    let fields = &parser.fields;
    let selections = match &fields.named {
        Some(named) => [named.id.clone(), named.text.clone()],
        None => [&fields.id, &fields.text].map(|name| Selection::of(name)),
    };
    let [_, values] = nested::select(line, [&selections[0], &selections[1]])?;
    let (mut out, mut left, mut at, mut start) = (Vec::with_capacity(line.len()), Vec::new(), 0, 0);
    let mut parts = Vec::new();
    for (number, value) in values.iter().enumerate() {
        start += usize::from(number > 0); // the newline between two parts
        let part: Option<String> = value.map_or(Ok(None), |value| serde_json::from_str(value.get()))?;
        let part = part.unwrap_or_default();
        let place = start..start + part.len();
        ensure!(text.get(place.clone()) == Some(&part), "changed since it was read");
        let kept = part_without(&part, &place, cut);
        push_text(&mut left, kept.as_bytes(), number);
        if let Some(value) = value.filter(|_| kept.len() < part.len()) {
            let begin = value.get().as_ptr().addr() - line.as_ptr().addr();
            parts.push((begin..begin + value.get().len(), kept));
        }
        start = place.end;
    }
    // Sorts the fields by position, because their order in the line may differ from their order in the text.
    parts.sort_by_key(|(place, _)| place.start);
    for (place, kept) in parts {
        ensure!(at <= place.start, "two names of the text mean the same field");
        out.extend_from_slice(&line.as_bytes()[at..place.start]);
        serde_json::to_writer(&mut out, &kept)?;
        at = place.end;
    }
    out.extend_from_slice(&line.as_bytes()[at..]);
    let left = String::from_utf8(left).map_err(|_| anyhow!("its text is not UTF-8"))?;
    Ok((out, left))
}

/// Removes the ranges from a record of a WET archive.
fn archive_without(record: &[u8], text: &str, cut: &[Range<usize>]) -> anyhow::Result<Vec<u8>> {
    let head_bytes = warc::head_end(record).context("its head is not ended by an empty line")?;
    let (head, content) = record.split_at(head_bytes);
    ensure!(content == text.as_bytes(), "changed since it was read");
    let left = without(text, cut);
    let mut out = Vec::with_capacity(record.len());
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default().to_ascii_lowercase();
        match &name[..] {
            b"content-length" => {
                let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
                out.extend_from_slice(format!("Content-Length: {}", left.len()).as_bytes());
                out.extend_from_slice(end);
            }
            b"warc-block-digest" | b"warc-payload-digest" => {}
            _ => out.extend_from_slice(line),
        }
    }
    out.extend_from_slice(left.as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Ids, InputOptions};

    fn parser(text_field: &str) -> Parser {
        Parser::new(&InputOptions {
            text_field: text_field.to_owned(),
            ids: Ids::FieldOrLine,
            ..InputOptions::default()
        })
    }

    #[test]
    fn removing_spans_changes_only_the_text_of_json_lines() {
        let line = r#"{"n": 1.50, "text":"a\u0062c \"d\" é", "id":"k","o":{"text":"abc"}}"#;
        let left = line_without(Form::Json, line.as_bytes(), "abc \"d\" é", &[1..2, 4..7], &parser("text"));
        let expected = r#"{"n": 1.50, "text":"ac  é", "id":"k","o":{"text":"abc"}}"#;
        assert_eq!(String::from_utf8(left.unwrap()).unwrap(), expected);

        // The text is in several fields: a nested one, in another order than in the line, and a null one.
        let line = r#"{"meta":{"body":"xyz"},"title":"abc","other":null}"#;
        let text = "abc\n\nxyz";
        let left = line_without(
            Form::Json,
            line.as_bytes(),
            text,
            std::slice::from_ref(&(2..6)),
            &parser("title,other,meta.body"),
        );
        let expected = r#"{"meta":{"body":"yz"},"title":"ab","other":null}"#;
        assert_eq!(String::from_utf8(left.unwrap()).unwrap(), expected);

        let other = line_without(Form::Json, b"{\"text\":\"abd\"}", "abc", &[0..1, 2..3], &parser("text"));
        assert!(other.unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn changed_wet_record_has_its_new_length_and_no_digest() {
        let record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/plain\r\n\
                      WARC-Block-Digest: sha1:X\r\nContent-Length: 7\r\n\r\none two";
        let left = line_without(
            Form::Archive { texts: true },
            record.as_bytes(),
            "one two",
            std::slice::from_ref(&(0..4)),
            &parser("text"),
        );
        let left = String::from_utf8(left.unwrap()).unwrap();
        assert!(left.contains("Content-Length: 3\r\n\r\ntwo") && !left.contains("Digest"), "{left}");
    }
}
