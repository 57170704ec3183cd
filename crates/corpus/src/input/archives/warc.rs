//! Web archives (WARC, ISO 28500) and texts extracted from them (WET): reads records from a stream in bounded memory,
//! and parses the URL and the text of a record.
//!
//! The header of a record states the length of the record. A program that changed a file, for example its line ends,
//! often leaves wrong lengths. So a length is accepted only if the next record begins, or the file ends, right after
//! the record. Otherwise the record is bad, and reading continues at the next line that looks like a record start.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::input::archives::http;
use crate::input::archives::stream::{self, ArchiveFormat, ArchiveStream, BadRecord};
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::record::{Fields, Ids, name_conflict};
use crate::input::place::Problem;
use crate::input::text::charset::Charset;

/// Maximum length of a record header in bytes.
const HEAD_BYTES_MAX: usize = if cfg!(fuzzing) { 2 << 10 } else { 64 << 10 };
/// Maximum number of line ends accepted between two records; the standard specifies two.
const ENDS_MAX: usize = 64;
/// The line end before a record, and the start of the record.
static NEXT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\nWARC/"));
/// Length of `WARC/1.0` in bytes.
const VERSION_BYTES: usize = 8;

/// The records of one stream.
pub(crate) type ArchiveRecords = stream::ArchiveRecords<Warc>;

/// The formats WARC and WET.
pub(crate) enum Warc {}

impl ArchiveFormat for Warc {
    fn measure(stream: &mut ArchiveStream) -> Result<Result<(usize, usize), BadRecord>, Problem> {
        stream.window.hold(VERSION_BYTES)?;
        if !begins(stream.window.bytes()) {
            let start = &stream.window.bytes()[..stream.window.bytes().len().min(VERSION_BYTES)];
            let found = start.escape_ascii();
            return Ok(Err(BadRecord {
                reason: format!("expected a record, so WARC/1.0, found \"{found}\""),
                skip: 0,
                // Fewer bytes than a version are a truncated record if other records precede them, or if the stream is
                // known to be truncated. Otherwise they are a bad record.
                is_short: start.len() < VERSION_BYTES
                    && (stream.number > 1 || stream.window.broke_off().is_some()),
            }));
        }
        let head = loop {
            let bytes = stream.window.bytes();
            if let Some(head) = head_end(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]) {
                break head;
            }
            if bytes.len() >= HEAD_BYTES_MAX || !stream.window.more()? {
                let reason = "its head is not ended by an empty line".to_owned();
                let is_short = stream.window.bytes().len() < HEAD_BYTES_MAX;
                return Ok(Err(BadRecord { reason, skip: VERSION_BYTES, is_short }));
            }
        };
        let bad = |reason, skip| Ok(Err(BadRecord { reason, skip, is_short: false }));
        let Some(length) = field(&stream.window.bytes()[..head], "Content-Length") else {
            return bad("no Content-Length".to_owned(), head - 1);
        };
        let number = std::str::from_utf8(length).ok().and_then(|length| length.parse::<u64>().ok());
        let Some(length) = number.map(|length| usize::try_from(length).unwrap_or(usize::MAX)) else {
            let found = length.escape_ascii();
            return bad(format!("its Content-Length is no number: \"{found}\""), head - 1);
        };
        // The content of a truncated record may include complete records, so the search for the next one starts right
        // after this header.
        // guard: a long record of an archive is refused
        if length > stream.record_bytes_max {
            let upper = stream.record_bytes_max;
            return bad(
                format!("a record of more than {upper} bytes: its Content-Length is {length}"),
                head - 1,
            );
        }
        let end = head + length;
        let whole = stream.window.hold(end)?;
        let continues = stream.window.hold(end + ENDS_MAX + VERSION_BYTES)?;
        // Ignores the bytes after this bound: their number depends on read sizes, and messages must be deterministic.
        let bytes = stream.window.bytes();
        // guard: what is said of a length does not depend on how a stream is cut
        // without it: &bytes[..bytes.len().min(end + ENDS_MAX + VERSION_BYTES)] -> bytes
        let bytes = &bytes[..bytes.len().min(end + ENDS_MAX + VERSION_BYTES)];
        if whole {
            let after = &bytes[end..];
            let ends = after.iter().take(ENDS_MAX).take_while(|byte| b"\r\n".contains(byte)).count();
            let next = &after[ends..];
            // The record is complete even if the stream ends within the start of the next record.
            if next.is_empty() || begins(next) || !continues && can_begin(next) {
                return Ok(Ok((end, end + ends)));
            }
        }
        let uri = field(&bytes[..head], "WARC-Target-URI").unwrap_or_default();
        let of =
            if uri.is_empty() { String::new() } else { format!(", of {}", String::from_utf8_lossy(uri)) };
        let next = next_record(&bytes[head - 1..]).map(|at| at.saturating_sub(1));
        let is_short = next.is_none() && !whole;
        let reason = match next {
            Some(at) => {
                format!("its Content-Length is {length}, but the next record begins after {at} bytes{of}")
            }
            None if whole => {
                format!("no record begins after it, where its Content-Length of {length} ends{of}")
            }
            None => format!("the file ends after {} of its {length} bytes{of}", bytes.len() - head),
        };
        Ok(Err(BadRecord { reason, skip: head - 1, is_short }))
    }

    fn next_record(bytes: &[u8]) -> Option<usize> {
        next_record(bytes)
    }

    fn before_open_line(bytes: &[u8]) -> usize {
        bytes.len().saturating_sub(VERSION_BYTES)
    }
}

/// Returns whether the bytes begin with the version of a record: `WARC/`, a digit, a period, a digit.
fn begins(bytes: &[u8]) -> bool {
    matches!(bytes, [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.', b'0'..=b'9', ..])
}

/// Returns whether these last bytes of a stream can be the start of a record.
fn can_begin(bytes: &[u8]) -> bool {
    let is_one =
        |(byte, wanted): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    bytes.len() < VERSION_BYTES && bytes.iter().zip(b"WARC/0.0").all(is_one)
}

/// Returns the start of the next line that looks like the start of a record.
fn next_record(bytes: &[u8]) -> Option<usize> {
    NEXT.find_iter(bytes).map(|at| at + 1).find(|&at| begins(&bytes[at..]))
}

/// Returns the end of the header: the offset after the first empty line; `None` if there is no empty line.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Returns the value of a header field without surrounding white space. The name is case-insensitive.
pub(crate) fn field<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })
}

/// The content of a record.
pub(crate) enum RecordContent<'r> {
    Text {
        key: Option<Cow<'r, [u8]>>,
        text: &'r [u8],
    },
    /// A text that was extracted from the content of the record.
    Made {
        key: Option<Cow<'r, [u8]>>,
        shown: http::PageText,
    },
    /// A record that is not a document, because of its type or because its content is not text.
    NoDocument,
    /// A revisit record: the capture equals an earlier one.
    Revisit,
}

/// Parses the URL and the text of a record. The text of a conversion record is its content; the text of a response is
/// its page. The key is the URL, `WARC-Target-URI`, unless `--id-field` names another header field.
pub(crate) fn understand<'r>(
    record: &'r [u8],
    fields: &Fields,
    bytes_max: usize,
    charset: Option<Charset>,
) -> Result<RecordContent<'r>, String> {
    let head_bytes = head_end(record).ok_or("its head is not ended by an empty line")?;
    let (head, content) = record.split_at(head_bytes);
    let kind = field(head, "WARC-Type").ok_or("no WARC-Type")?;
    let of_type = field(head, "Content-Type").unwrap_or_default();
    let Some(page) = page(kind, of_type, content, bytes_max)? else {
        return Ok(if kind == b"revisit" { RecordContent::Revisit } else { RecordContent::NoDocument });
    };
    if let Some(name) = fields.reserved.iter().find(|name| field(head, name).is_some()) {
        return Err(name_conflict(name));
    }
    let key = key(head, fields)?;
    // Texts extracted from archives are UTF-8, whatever the original encoding was.
    if kind == b"conversion" && http::is_plain_text(of_type) {
        return Ok(RecordContent::Text { key, text: content });
    }
    Ok(page.text(charset)?.map_or(RecordContent::NoDocument, |shown| RecordContent::Made { key, shown }))
}

/// Returns the page in a record of this kind; `None` if it has none.
fn page<'r>(
    kind: &[u8],
    of_type: &'r [u8],
    content: &'r [u8],
    bytes_max: usize,
) -> Result<Option<http::HttpPage<'r>>, String> {
    match kind {
        b"conversion" | b"resource" => {
            Ok(Some(http::HttpPage { of_type: Cow::Borrowed(of_type), content: content.into() }))
        }
        b"response" if http::is_http(of_type) => http::page(content, bytes_max),
        _ => Ok(None),
    }
}

/// Returns the canonical link of the page in a record; `None` if there is none.
pub(crate) fn link(
    record: &[u8],
    bytes_max: usize,
    charset: Option<Charset>,
) -> Result<Option<String>, String> {
    let (head, content) = record.split_at(head_end(record).unwrap_or(record.len()));
    let [kind, of_type] = ["WARC-Type", "Content-Type"].map(|name| field(head, name).unwrap_or_default());
    Ok(page(kind, of_type, content, bytes_max)?.and_then(|page| page.link(charset)))
}

/// Returns the key in a record header: the URL, or the header fields that options name. Returns `None` if the key must
/// be created from the number of the record.
fn key<'r>(head: &'r [u8], fields: &Fields) -> Result<Option<Cow<'r, [u8]>>, String> {
    let of = |name: &str| {
        let key = field(head, name)?;
        Some(key.strip_prefix(b"<").and_then(|key| key.strip_suffix(b">")).unwrap_or(key))
    };
    let is_usual = fields.id == crate::input::options::ID_FIELD;
    let found = if is_usual {
        of("WARC-Target-URI").map(Cow::Borrowed).ok_or_else(|| "WARC-Target-URI".to_owned())
    } else {
        fields.key_in_header(of)
    };
    match (found, fields.ids) {
        (_, Ids::Line) | (Err(_), Ids::FieldOrLine) => Ok(None),
        (Ok(key), _) => Ok(Some(key)),
        (Err(name), Ids::Field) => {
            let remedy =
                if is_usual { "" } else { " (use --id-field NAME, or leave it out for WARC-Target-URI)" };
            Err(format!("no {name} in its head{remedy}"))
        }
    }
}

/// Returns the requested values of a record, except key and text, from its header fields.
pub(crate) fn attached(record: &[u8], fields: &Fields) -> anyhow::Result<OwnAttached> {
    let head = &record[..head_end(record).unwrap_or(record.len())];
    let is_time = |name: &str| name.eq_ignore_ascii_case("WARC-Date");
    fields.attached.of_header(|name| field(head, name), is_time, String::from_utf8_lossy)
}

pub(crate) fn field_names(record: &[u8]) -> Vec<Cow<'_, str>> {
    let head = &record[..head_end(record).unwrap_or(record.len())];
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    lines.filter_map(|line| Some(String::from_utf8_lossy(&line[..memchr::memchr(b':', line)?]))).collect()
}

#[cfg(test)]
mod tests {
    use crate::input::open::reader::{Origin, Reader};
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::input::open::reader::Window;

    fn record(kind: &str, uri: &str, of_type: &str, content: &str) -> String {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {of_type}\r\n\
             Content-Length: {}\r\n\r\n{content}\r\n\r\n",
            content.len()
        )
    }

    fn text(uri: &str, content: &str) -> String {
        record("conversion", uri, "text/plain", content)
    }

    fn fields() -> Fields {
        Fields { id: "id".to_owned(), text: "text".to_owned(), features: false, ..Default::default() }
    }

    /// Returns each record as `key=text`, or its error.
    fn read(bytes: &[u8], max: usize) -> Vec<Result<String, String>> {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
        let window = Window::new(Reader::open_verbatim(origin, &Arc::default()).unwrap());
        let mut records = ArchiveRecords::new(window, max);
        let mut all = Vec::new();
        let fields = fields();
        while records
            .next(|number, found| {
                let line = found.map(|found| found.line.to_vec());
                let said = line.and_then(|line| {
                    let pair = |key: &[u8], text: &[u8]| {
                        format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(text))
                    };
                    Ok(match understand(&line, &fields, max, None)? {
                        RecordContent::Text { key, text } => pair(&key.unwrap(), text),
                        RecordContent::Made { key, shown } => pair(&key.unwrap(), shown.text.as_bytes()),
                        RecordContent::NoDocument => "none".to_owned(),
                        RecordContent::Revisit => "revisit".to_owned(),
                    })
                });
                assert_eq!(number as usize, all.len() + 1);
                all.push(said);
            })
            .unwrap()
        {}
        all
    }

    #[test]
    fn url_and_content_are_read_from_text_records_only() {
        let info = "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 2\r\n\r\na\n\r\n\r\n";
        let archive =
            [info.into(), text("http://a/", "one\nWARC/1.0\ntwo"), text("<http://b/>", "")].concat();
        let wanted = ["none", "http://a/=one\nWARC/1.0\ntwo", "http://b/="];
        assert_eq!(read(archive.as_bytes(), 1000), wanted.map(|said| Ok(said.to_owned())));
    }

    #[test]
    fn changed_line_ends_outside_contents_are_accepted() {
        let archive = [text("a", "one"), text("b", "two")].concat().replace("\r\n", "\n");
        assert_eq!(read(archive.as_bytes(), 1000), [Ok("a=one".to_owned()), Ok("b=two".to_owned())]);
        assert_eq!(read(archive.trim_end().as_bytes(), 1000).len(), 2);
    }

    #[test]
    fn wrong_length_makes_only_its_own_record_bad() {
        let good = |key: &str| Ok(format!("{key}=right"));
        for (wrong, message) in [
            ("12", "its Content-Length is 12, but the next record begins after 9 bytes, of b"),
            ("2", "its Content-Length is 2, but the next record begins after 9 bytes, of b"),
            ("100", "its Content-Length is 100, but the next record begins after 9 bytes, of b"),
            ("999999", "a record of more than 1000 bytes: its Content-Length is 999999"),
            ("-1", "its Content-Length is no number: \"-1\""),
            ("99999999999999999999", "its Content-Length is no number: \"99999999999999999999\""),
        ] {
            let bad = text("b", "wrong").replace("Content-Length: 5", &format!("Content-Length: {wrong}"));
            let archive = [text("a", "right"), bad, text("c", "right"), text("d", "right")].concat();
            let found = read(archive.as_bytes(), 1000);
            assert_eq!(found, [good("a"), Err(message.to_owned()), good("c"), good("d")], "{wrong}");
        }
    }

    #[test]
    fn truncated_archives_and_other_files_are_reported() {
        let archive = text("a", "right");
        let cut = &archive.as_bytes()[..archive.len() - 7];
        assert_eq!(read(cut, 1000), [], "the record that breaks off is none");
        assert_eq!(read(b"WARC", 1000).len(), 1);
        let other = b"{\"id\":1}\n{}\n";
        assert_eq!(
            read(other, 1000),
            [Err("expected a record, so WARC/1.0, found \"{\\\"id\\\":1}\"".to_owned())]
        );
        let headless = [b"WARC/1.0\r\nWARC-Type: x\r\n".repeat(10_000).as_slice(), b"\r\n"].concat();
        assert!(read(&headless, 1000).iter().all(Result::is_err));
        assert_eq!(read(b"", 1000), []);
        assert_eq!(read(b"\r\n\r\n", 1000), []);
    }

    #[test]
    fn warc_records_before_a_truncation_are_read() {
        let archive = [text("a", "right"), text("b", "right"), text("c", "cut off")].concat();
        for (bytes, why) in [
            (archive.len() - 7, "the file ends after 4 of its 7 bytes, of c"),
            (archive.len() - 30, "its head is not ended by an empty line"),
            (
                archive.len() - record("conversion", "c", "text/plain", "cut off").len() + 3,
                "expected a record",
            ),
        ] {
            let reader = Box::new(std::io::Cursor::new(archive.as_bytes()[..bytes].to_vec()));
            let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
            let mut records = ArchiveRecords::new(
                Window::new(Reader::open_verbatim(origin, &Arc::default()).unwrap()),
                1000,
            );
            let mut all = 0;
            while records.next(|_, found| all += u64::from(found.is_ok())).unwrap() {}
            let cut = records.cut().unwrap();
            assert!(all == 2 && cut.starts_with("t, after 2 records: ") && cut.contains(why), "{all} {cut}");
        }
    }

    #[test]
    fn records_across_every_read_buffer_boundary_are_read_whole() {
        for pad in [1, 262_000, 262_100, 262_140, 262_144, 600_000] {
            let long = "y".repeat(pad);
            let archive = [text("a", &long), text("b", "short"), text("c", &long)].concat();
            let wanted = [format!("a={long}"), "b=short".to_owned(), format!("c={long}")].map(Ok);
            assert_eq!(read(archive.as_bytes(), 1 << 20), wanted, "{pad}");
        }
    }

    #[test]
    #[cfg(feature = "html")]
    fn pages_of_responses_are_reduced_to_their_texts() {
        let page =
            "<html><head><title>T</title><script>no()</script></head><body><p>a&amp;b<p>c</body></html>";
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{page}");
        let archive = [
            record("response", "a", "application/http; msgtype=response", &answer),
            record("request", "a", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n"),
            record("resource", "b", "text/html", "<p>x"),
            record("resource", "c", "image/png", "\u{89}PNG"),
        ]
        .concat();
        let wanted = ["a=T\na&b\nc", "none", "b=x", "none"];
        assert_eq!(read(archive.as_bytes(), 1 << 20), wanted.map(|said| Ok(said.to_owned())));
    }
}
