//! Adds the decision about a document to its line, in the format of the line: as fields of a JSON object, columns of a
//! table, or header lines of an archive record.

use encoding_rs::Encoding;

use crate::error::InvalidOptions;
use crate::input::archives::warc;
use crate::input::content::Form;
use crate::input::headers::Headers;
use crate::input::tables::dialect::RowDialect;
use crate::input::text::charset::{self, Charset};
use crate::work::tsv;

/// The data to add to a document: the decision about it, or its repeated spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentNote {
    /// The id of the document's cluster and the number of documents in it; `None` if the document was removed because
    /// it is near a document of a history.
    pub cluster: Option<(u32, u32)>,
    /// Whether the document is kept.
    pub is_kept: bool,
    /// The score of the pair with the kept document, as a decimal number; empty if it was not measured.
    pub score: Vec<u8>,
    /// The key of the kept document; `None` if this document is kept.
    pub near_key: Option<Vec<u8>>,
    /// The repeated spans of the text, `[[start,end],...]`, as decimal byte offsets.
    pub spans: Vec<u8>,
}

impl DocumentNote {
    /// Returns the score as a number; `None` if it was not measured.
    pub(crate) fn score(&self) -> Option<f64> {
        std::str::from_utf8(&self.score).ok()?.parse().ok()
    }
}

/// Selects the fields to add to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotatedFields {
    /// All fields of the decision about the document.
    Decided,
    /// Only the number of documents in the cluster of a kept document.
    Size,
    /// The repeated spans of the text.
    Spans,
}

/// The fields that are added to documents, and the prefix of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationOptions {
    /// The prefix of each field name.
    pub prefix: String,
    /// The fields to add.
    pub notes: AnnotatedFields,
}

/// Adds fields to documents of output files.
#[derive(Clone, Copy)]
pub struct Annotation<'n> {
    /// The fields to add, and their names.
    pub noted: &'n AnnotationOptions,
    /// Returns the note of the document with this index.
    pub of: &'n (dyn Fn(u32) -> DocumentNote + Sync),
}

impl AnnotatedFields {
    /// Returns the fields to add, in the order of the output.
    fn fields(self) -> &'static [NoteField] {
        match self {
            Self::Decided => &[
                NoteField::ClusterId,
                NoteField::ClusterSize,
                NoteField::Kept,
                NoteField::Score,
                NoteField::NearKey,
            ],
            Self::Size => &[NoteField::ClusterSize],
            Self::Spans => &[NoteField::Spans],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteField {
    ClusterId,
    ClusterSize,
    Kept,
    Score,
    NearKey,
    Spans,
}

enum NoteValue<'n> {
    Number(u32),
    Boolean(bool),
    /// A decimal number.
    Digits(&'n [u8]),
    Text(&'n [u8]),
    /// A JSON array of arrays. Formats other than JSON store it as text.
    Arrays(&'n [u8]),
}

impl NoteField {
    fn name(self) -> &'static str {
        match self {
            Self::ClusterId => "cluster_id",
            Self::ClusterSize => "cluster_size",
            Self::Kept => "kept",
            Self::Score => "score",
            Self::NearKey => "near_key",
            Self::Spans => "repeated_spans",
        }
    }

    /// Returns the value of the field; `None` if it is unknown for this document.
    fn of(self, note: &DocumentNote) -> Option<NoteValue<'_>> {
        Some(match self {
            Self::ClusterId => NoteValue::Number(note.cluster?.0),
            Self::ClusterSize => NoteValue::Number(note.cluster?.1),
            Self::Kept => NoteValue::Boolean(note.is_kept),
            Self::Score if note.score.is_empty() => return None,
            Self::Score => NoteValue::Digits(&note.score),
            Self::NearKey => NoteValue::Text(note.near_key.as_ref()?),
            Self::Spans => NoteValue::Arrays(&note.spans),
        })
    }
}

impl AnnotationOptions {
    /// Returns an error if the prefix contains characters that field names must not have.
    pub(crate) fn check_prefix(prefix: &str) -> Result<(), InvalidOptions> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if prefix.bytes().all(is_name) {
            return Ok(());
        }
        Err(InvalidOptions::new("--annotation-prefix: expected letters, digits, _ and -"))
    }

    /// Returns the fields to add, in the order of the output.
    pub(crate) fn fields(&self) -> impl Iterator<Item = NoteField> + use<> {
        self.notes.fields().iter().copied()
    }

    pub(crate) fn name(&self, field: NoteField) -> String {
        format!("{}{}", self.prefix, field.name())
    }

    /// Returns the names of the fields to add, in the order of the output.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.fields().map(|field| self.name(field)).collect()
    }

    /// Appends the names of the fields to the header row of a table.
    ///
    /// # Errors
    ///
    /// The dialect cannot express a name.
    pub(crate) fn add_names(&self, line: &mut Vec<u8>, written: RowDialect) -> Result<(), String> {
        self.names().iter().try_for_each(|name| {
            line.push(written.delimiter);
            written.push_field(line, name.as_bytes())
        })
    }

    /// Returns the line of a document with the fields added. Rows of Parquet and Arrow are returned unchanged, because their
    /// columns are added when the rows are copied.
    ///
    /// # Errors
    ///
    /// The line is not in the expected format, or the dialect of a table cannot express a field.
    pub fn line(
        &self,
        form: Form,
        line: &[u8],
        note: &DocumentNote,
        headers: &Headers,
        charset: Option<Charset>,
    ) -> Result<Vec<u8>, String> {
        match form {
            Form::Json | Form::Html | Form::Element => {
                self.object(line, note).ok_or_else(|| "no object of JSON".to_owned())
            }
            Form::Row(number) => {
                let header = headers.row(number).ok_or("its header is gone")?;
                self.row(line, note, header.written(), charset::of_line(line, charset))
            }
            Form::Archive { .. } => {
                self.record(line, note).ok_or_else(|| "no record of an archive".to_owned())
            }
            Form::Arc => Err("records of ARC files cannot hold more fields; convert them to WARC".to_owned()),
            Form::Columns(_) => Ok(line.to_vec()),
        }
    }

    fn object(&self, line: &[u8], note: &DocumentNote) -> Option<Vec<u8>> {
        let object = line.trim_ascii_end().strip_suffix(b"}")?;
        let mut all = object.to_vec();
        for field in self.fields() {
            // A comma is needed, because the object already has at least the text field.
            all.push(b',');
            push_json(&mut all, self.name(field).as_bytes());
            all.push(b':');
            match field.of(note) {
                None => all.extend_from_slice(b"null"),
                Some(NoteValue::Text(text)) => push_json(&mut all, text),
                Some(value) => push_plain(&mut all, &value),
            }
        }
        all.push(b'}');
        // Copies the bytes of the line that follow the object.
        all.extend_from_slice(&line[object.len() + 1..]);
        Some(all)
    }

    fn row(
        &self,
        line: &[u8],
        note: &DocumentNote,
        written: RowDialect,
        encoding: Option<&'static Encoding>,
    ) -> Result<Vec<u8>, String> {
        let mut all = line.to_vec();
        for field in self.fields() {
            all.push(written.delimiter);
            match field.of(note) {
                None => {}
                Some(NoteValue::Text(text)) => match (encoding, std::str::from_utf8(text)) {
                    (Some(encoding), Ok(text)) => written.push_field(&mut all, &encoding.encode(text).0)?,
                    _ => written.push_field(&mut all, text)?,
                },
                Some(NoteValue::Arrays(digits)) => written.push_field(&mut all, digits)?,
                Some(value) => push_plain(&mut all, &value),
            }
        }
        Ok(all)
    }

    fn record(&self, record: &[u8], note: &DocumentNote) -> Option<Vec<u8>> {
        let (head, content) = record.split_at(warc::head_end(record)?);
        // The added lines go before the empty line that ends the header.
        let end: &[u8] = if head.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        let mut all = head.strip_suffix(end)?.to_vec();
        for field in self.fields() {
            let Some(value) = field.of(note) else { continue };
            all.extend_from_slice(self.name(field).as_bytes());
            all.extend_from_slice(b": ");
            match value {
                NoteValue::Text(text) => push_escaped(&mut all, text),
                value => push_plain(&mut all, &value),
            }
            all.extend_from_slice(end);
        }
        all.extend_from_slice(end);
        all.extend_from_slice(content);
        Some(all)
    }
}

fn push_plain(all: &mut Vec<u8>, value: &NoteValue<'_>) {
    match value {
        NoteValue::Number(number) => all.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
        NoteValue::Boolean(is_true) => all.extend_from_slice(if *is_true { b"true" } else { b"false" }),
        NoteValue::Digits(bytes) | NoteValue::Text(bytes) | NoteValue::Arrays(bytes) => {
            all.extend_from_slice(bytes);
        }
    }
}

/// Appends a JSON string in ASCII, which is valid in any encoding that the file may have.
fn push_json(all: &mut Vec<u8>, text: &[u8]) {
    all.push(b'"');
    for unit in String::from_utf8_lossy(text).encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ (b'"' | b'\\')) => all.extend_from_slice(&[b'\\', byte]),
            Ok(byte @ b' '..=b'~') => all.push(byte),
            _ => all.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
    }
    all.push(b'"');
}

/// Appends a field with tabs and line ends escaped.
fn push_escaped(all: &mut Vec<u8>, field: &[u8]) {
    // Writing to memory does not fail.
    let _ = tsv::write_field(all, field);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::tables::dialect::Dialect;

    fn all() -> AnnotationOptions {
        AnnotationOptions { prefix: String::new(), notes: AnnotatedFields::Decided }
    }

    fn gone() -> DocumentNote {
        let near_key = Some("a,\"é\"".as_bytes().to_vec());
        DocumentNote {
            cluster: Some((3, 2)),
            is_kept: false,
            score: b"0.875000".to_vec(),
            near_key,
            ..DocumentNote::default()
        }
    }

    #[test]
    fn annotated_object_keeps_its_bytes_and_new_fields_are_appended() {
        let of = |line: &str, note: &DocumentNote| {
            String::from_utf8(all().object(line.as_bytes(), note).unwrap()).unwrap()
        };
        assert_eq!(
            of("{ \"id\" : 1.0, \"text\":\"x\" }  ", &gone()),
            "{ \"id\" : 1.0, \"text\":\"x\" ,\"cluster_id\":3,\"cluster_size\":2,\"kept\":false,\"score\":0.875000,\
             \"near_key\":\"a,\\\"\\u00e9\\\"\"}  "
        );
        let of_history = DocumentNote { cluster: None, score: Vec::new(), ..gone() };
        assert!(
            of("{\"text\":\"\"}", &of_history)
                .contains("\"cluster_id\":null,\"cluster_size\":null,\"kept\":false,\"score\":null")
        );
        assert_eq!(all().object(b"[1]", &gone()), None);
    }

    #[test]
    fn annotated_rows_use_the_dialect_of_their_table() {
        let of = |dialect, is_tsv| {
            let written = RowDialect::of(dialect, is_tsv);
            String::from_utf8(all().row(b"1", &gone(), written, None).unwrap()).unwrap()
        };
        assert_eq!(of(Dialect::default(), false), "1,3,2,false,0.875000,\"a,\"\"é\"\"\"");
        assert_eq!(of(Dialect::default(), true), "1\t3\t2\tfalse\t0.875000\ta,\"é\"");
        let escaped = Dialect { escape: Some(b'\\'), ..Dialect::default() };
        assert_eq!(of(escaped, false), "1,3,2,false,0.875000,\"a,\\\"é\\\"\"");
        let mut header = b"id".to_vec();
        let noted = AnnotationOptions { prefix: "d_".to_owned(), notes: AnnotatedFields::Size };
        noted.add_names(&mut header, RowDialect::of(Dialect::default(), false)).unwrap();
        assert_eq!(header, b"id,d_cluster_size");
    }

    #[test]
    fn spans_are_arrays_in_objects_and_text_in_tables() {
        let noted = AnnotationOptions { prefix: String::new(), notes: AnnotatedFields::Spans };
        let note = DocumentNote { spans: b"[[0,5],[9,12]]".to_vec(), ..DocumentNote::default() };
        let object = noted.object(b"{\"text\":\"x\"}", &note).unwrap();
        assert_eq!(object, b"{\"text\":\"x\",\"repeated_spans\":[[0,5],[9,12]]}");
        let row = noted.row(b"1", &note, RowDialect::of(Dialect::default(), false), None).unwrap();
        assert_eq!(row, b"1,\"[[0,5],[9,12]]\"");
        let record = noted.record(b"WARC/1.0\nA: b\n\nx", &note).unwrap();
        assert_eq!(record, b"WARC/1.0\nA: b\nrepeated_spans: [[0,5],[9,12]]\n\nx");
    }

    #[test]
    fn annotated_record_gets_header_lines_and_keeps_its_content() {
        let record = b"WARC/1.0\r\nContent-Length: 3\r\n\r\na\r\nb";
        let made = all().record(record, &DocumentNote { near_key: None, is_kept: true, ..gone() }).unwrap();
        let wanted = "WARC/1.0\r\nContent-Length: 3\r\ncluster_id: 3\r\ncluster_size: 2\r\nkept: true\r\nscore: 0.875000\r\n\r\na\r\nb";
        assert_eq!(String::from_utf8(made).unwrap(), wanted);
        assert!(
            all()
                .record(b"WARC/1.0\nA: b\n\nx", &gone())
                .unwrap()
                .ends_with(b"near_key: a,\"\xc3\xa9\"\n\nx")
        );
    }
}
