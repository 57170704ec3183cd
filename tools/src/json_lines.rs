//! Writes tables to standard output as JSON: one object per line, with the column names as field names.

use std::io::{self, Write};

use twindex_corpus::tsv;

/// How the fields of a column are converted to JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A key or another string. Invalid UTF-8 is escaped as in the table.
    Text,
    /// Like [`Kind::Text`], but null if the value is unknown.
    Known,
    /// A key: a number if the index has numbers as keys.
    Digits,
    /// A number; null if the field is not a number.
    Number,
    /// A list of strings, separated by commas in the table; null if empty.
    List,
}

/// Columns that lines lack if no shingles were counted.
const COUNTS: [&str; 2] = ["intersection", "union"];

/// The columns of a table.
#[derive(Clone, Debug)]
pub(crate) struct JsonColumns(Vec<(String, Kind)>);

impl JsonColumns {
    /// Parses column names separated by tabs. `has_numbers_as_keys` is true if keys of documents are numbers.
    pub(crate) fn of(names: &str, has_numbers_as_keys: bool) -> Self {
        let kind = |name: &str| match name {
            "a" | "b" | "key" | "kept" | "leader" | "near_key" | "query" | "root" if has_numbers_as_keys => {
                Kind::Digits
            }
            "a" | "b" | "key" | "kept" | "leader" | "query" | "root" | "decision" | "host" | "template"
            | "example" => Kind::Text,
            "near_key" | "fingerprint" | "parts" => Kind::Known,
            "features" => Kind::List,
            _ => Kind::Number,
        };
        Self(names.split('\t').map(|name| (name.to_owned(), kind(name))).collect())
    }

    /// Appends the JSON object for a line, and a newline.
    pub(crate) fn push(&self, line: &[u8], all: &mut Vec<u8>) -> io::Result<()> {
        let fields = line.split(|&byte| byte == b'\t');
        // A line with fewer fields than columns lacks the columns `COUNTS`.
        let is_short = fields.clone().count() < self.0.len();
        let is_there = |(name, _): &&(String, Kind)| !(is_short && COUNTS.contains(&name.as_str()));
        for (number, ((name, kind), field)) in self.0.iter().filter(is_there).zip(fields).enumerate() {
            all.push(if number == 0 { b'{' } else { b',' });
            serde_json::to_writer(&mut *all, name)?;
            all.push(b':');
            push_value(field, *kind, all)?;
        }
        all.extend_from_slice(b"}\n");
        Ok(())
    }
}

fn push_value(field: &[u8], kind: Kind, all: &mut Vec<u8>) -> io::Result<()> {
    let is_none = field == b"-";
    match kind {
        Kind::Known | Kind::List if is_none => all.extend_from_slice(b"null"),
        Kind::List => {
            for (number, one) in field.split(|&byte| byte == b',').enumerate() {
                all.push(if number == 0 { b'[' } else { b',' });
                push_text(one, all)?;
            }
            all.push(b']');
        }
        Kind::Number => all.extend_from_slice(if is_number(field) { field } else { b"null" }),
        Kind::Digits if is_number(field) => all.extend_from_slice(field),
        Kind::Text | Kind::Known | Kind::Digits => push_text(field, all)?,
    }
    Ok(())
}

fn is_number(field: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Number>(field).is_ok()
}

fn push_text(field: &[u8], all: &mut Vec<u8>) -> io::Result<()> {
    let plain = tsv::unescape(field).ok();
    let plain = plain.as_deref().and_then(|plain| std::str::from_utf8(plain).ok());
    let shown = plain.map_or_else(|| String::from_utf8_lossy(field), Into::into);
    Ok(serde_json::to_writer(&mut *all, &shown)?)
}

/// Converts a table to JSON objects while it is written.
pub(crate) struct JsonLines<W> {
    out: W,
    columns: JsonColumns,
    /// The header line until it is found, then `None`. The header, and lines before it, are dropped.
    head: Option<String>,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    made: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Creates a converter. `head` is the last line of the table's header; `None` for a table without a header.
    pub(crate) fn new(out: W, columns: JsonColumns, head: Option<&str>) -> Self {
        let head = head.map(str::to_owned);
        Self { out, columns, head, begun: Vec::new(), made: Vec::new() }
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if let Some(head) = &self.head {
            if line == head.as_bytes() {
                self.head = None;
            }
            return Ok(());
        }
        // Lines with totals after the table have no columns and are dropped.
        if self.columns.0.len() > 1 && !line.contains(&b'\t') {
            return Ok(());
        }
        self.columns.push(line, &mut self.made)
    }
}

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            if self.begun.is_empty() {
                self.line(&rest[..end])?;
            } else {
                self.begun.extend_from_slice(&rest[..end]);
                let line = std::mem::take(&mut self.begun);
                self.line(&line)?;
            }
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
        self.out.write_all(&self.made)?;
        self.made.clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(columns: &str, head: Option<&str>, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut lines = JsonLines::new(&mut out, JsonColumns::of(columns, false), head);
        for piece in pieces {
            lines.write_all(piece).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_table_line_becomes_an_object_and_headers_are_dropped() {
        let pieces: [&[u8]; 3] =
            [b"# twindex\na\tb\tdist", b"ance\nx\\ty\t\"\t3\n", b"\\xff\tz\t-\n# end 2\n"];
        let wanted = "{\"a\":\"x\\ty\",\"b\":\"\\\"\",\"distance\":3}\n{\"a\":\"\\\\xff\",\"b\":\"z\",\"distance\":null}\n";
        assert_eq!(made("a\tb\tdistance", Some("a\tb\tdistance"), &pieces), wanted);
        let line: &[u8] = b"k\t00ff\t01,02\nk\t-\t-\n";
        let wanted = "{\"key\":\"k\",\"fingerprint\":\"00ff\",\"features\":[\"01\",\"02\"]}\n\
                      {\"key\":\"k\",\"fingerprint\":null,\"features\":null}\n";
        assert_eq!(made("key\tfingerprint\tfeatures", None, &[line]), wanted);
        let columns = JsonColumns::of("key\tscore", true);
        let mut all = Vec::new();
        columns.push(b"18446744073709551615\t=", &mut all).unwrap();
        assert_eq!(all, b"{\"key\":18446744073709551615,\"score\":null}\n");
    }
}
