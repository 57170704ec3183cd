//! ARC files (version 1), the predecessor of WARC: reads records from a stream in bounded memory, and parses the URL
//! and the page of a record.
//! A record consists of a header line, `URL IP-address Archive-date Content-type Archive-length`, the content, whose
//! length is the last header field, and a line end. The first record, `filedesc://...`, describes the file. As with
//! WARC, a length is accepted only if the next record begins, or the file ends, right after the content. Otherwise the
//! record is bad, and reading continues at the next line that can be a record header.
//!
//! Source: Burner and Kahle, *The Archive's ARC file format* (1996), version 1.

use std::borrow::Cow;

use crate::input::archives::http;
use crate::input::archives::stream::{self, ArchiveFormat, ArchiveStream, BadRecord};
use crate::input::archives::warc::RecordContent;
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::record::{Fields, Ids, name_conflict};
use crate::input::open::reader::Window;
use crate::input::place::Problem;
use crate::input::text::charset::Charset;

/// Maximum length of a record header in bytes.
const HEAD_BYTES_MAX: usize = if cfg!(fuzzing) { 1 << 10 } else { 64 << 10 };
/// Maximum number of line ends accepted between two records; the format specifies one.
const ENDS_MAX: usize = 16;
/// Number of digits in a date: year, month, day, hour, minute, second.
const DATE_DIGITS: usize = 14;
/// The names of the header fields.
pub(crate) const NAMES: [&str; 5] = ["URL", "IP-address", "Archive-date", "Content-type", "Archive-length"];
/// The start of the URL of a file's first record.
pub(crate) const FIRST: &[u8] = b"filedesc:";

/// The version block that twindex writes at the start of each ARC file.
pub(crate) const PREAMBLE: &[u8] = b"filedesc://kept.arc 0.0.0.0 19700101000000 text/plain 69\n\
1 0 twindex\nURL IP-address Archive-date Content-type Archive-length\n\n\n";

/// The fields of a record header.
struct ArcHeader<'h> {
    values: [&'h [u8]; 5],
    length: u64,
    /// Length of the header in bytes, including its line end.
    bytes: usize,
}

impl<'h> ArcHeader<'h> {
    /// Parses the header at the start of a record; `None` if it is not a header of version 1.
    fn of(record: &'h [u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', &record[..record.len().min(HEAD_BYTES_MAX)])?;
        let line = record[..end].strip_suffix(b"\r").unwrap_or(&record[..end]);
        // The URL may contain spaces, so the line is split from the end.
        let mut fields = line.rsplitn(NAMES.len(), |&byte| byte == b' ');
        let mut values = [&line[..0]; 5];
        for value in values.iter_mut().rev() {
            *value = fields.next()?;
        }
        let [url, _, date, _, length] = values;
        let is_date = date.len() == DATE_DIGITS && date.iter().all(u8::is_ascii_digit);
        let has_scheme = memchr::memchr(b':', url).is_some_and(|colon| {
            colon > 0 && url[..colon].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        });
        let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(length).ok().filter(|_| is_number && is_date && has_scheme)?;
        // A length of more than 64 bits does not make the header invalid. The record is then refused as too long.
        let length = length.parse().unwrap_or(u64::MAX);
        Some(Self { values, length, bytes: end + 1 })
    }

    /// Returns the value of a header field. The name is case-insensitive.
    fn field(&self, name: &str) -> Option<&'h [u8]> {
        let at = NAMES.iter().position(|own| own.eq_ignore_ascii_case(name))?;
        Some(self.values[at])
    }
}

/// The records of one stream.
pub(crate) type ArchiveRecords = stream::ArchiveRecords<ArcFile>;

/// The ARC format, version 1.
pub(crate) enum ArcFile {}

impl ArchiveFormat for ArcFile {
    fn measure(stream: &mut ArchiveStream) -> Result<Result<(usize, usize), BadRecord>, Problem> {
        while memchr::memchr(b'\n', stream.window.bytes()).is_none()
            && stream.window.bytes().len() < HEAD_BYTES_MAX
            && stream.window.more()?
        {}
        let bytes = stream.window.bytes();
        let bad = |reason: String, skip| Ok(Err(BadRecord { reason, skip, is_short: false }));
        let Some(ArcHeader { length, bytes: head, values, .. }) = ArcHeader::of(bytes) else {
            let start = bytes[..bytes.len().min(60)].split(|&byte| byte == b'\n').next().unwrap_or_default();
            let is_short = memchr::memchr(b'\n', bytes).is_none()
                && bytes.len() < HEAD_BYTES_MAX
                && (stream.number > 1 || stream.window.broke_off().is_some());
            let names = NAMES.join(" ");
            let reason =
                format!("expected the head of a record, {names}, found \"{}\"", start.escape_ascii());
            return Ok(Err(BadRecord { reason, skip: 0, is_short }));
        };
        let of = format!(", of {}", String::from_utf8_lossy(values[0]));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // guard: a long record of an ARC file is refused
        if length > stream.record_bytes_max {
            let upper = stream.record_bytes_max;
            return bad(format!("a record of more than {upper} bytes: its length is {length}{of}"), head - 1);
        }
        let end = head + length;
        let whole = stream.window.hold(end)?;
        let bound = hold_a_line_after(&mut stream.window, end)?;
        // Ignores the bytes after this line: their number depends on read sizes, and messages must be deterministic.
        let bytes = &stream.window.bytes()[..bound];
        if whole {
            let after = &bytes[end..];
            let ends = after.iter().take(ENDS_MAX).take_while(|byte| b"\r\n".contains(byte)).count();
            let next = &after[ends..];
            // The record is complete even if the stream ends within the header of the next record.
            if next.is_empty() || ArcHeader::of(next).is_some() || can_begin(next) {
                return Ok(Ok((end, end + ends)));
            }
        }
        let next = next_record(&bytes[head - 1..]).map(|at| at.saturating_sub(1));
        let is_short = next.is_none() && !whole;
        let reason = match next {
            Some(at) => format!("its length is {length}, but the next record begins after {at} bytes{of}"),
            None if whole => format!("no record begins after it, as its length of {length} says{of}"),
            None => format!("the file ends after {} of its {length} bytes{of}", bytes.len() - head),
        };
        Ok(Err(BadRecord { reason, skip: head - 1, is_short }))
    }

    fn next_record(bytes: &[u8]) -> Option<usize> {
        next_record(bytes)
    }

    fn before_open_line(bytes: &[u8]) -> usize {
        let last = memchr::memrchr(b'\n', bytes).unwrap_or(bytes.len());
        if bytes.len() - last > HEAD_BYTES_MAX { bytes.len() } else { last }
    }
}

/// Reads until the window contains a complete line after the record that ends at `end`, or a line that is too long for
/// a header. Returns the end of this line, at most of the longest header.
fn hold_a_line_after(window: &mut Window, end: usize) -> Result<usize, Problem> {
    loop {
        let after = window.bytes().get(end..).unwrap_or_default();
        let ends = after.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let upper = (end + HEAD_BYTES_MAX + ENDS_MAX).min(window.bytes().len());
        if let Some(newline) = memchr::memchr(b'\n', &after[ends..]) {
            return Ok(upper.min(end + ends + newline + 1));
        }
        if after.len() >= HEAD_BYTES_MAX + ENDS_MAX || !window.more()? {
            return Ok(upper);
        }
    }
}

/// Returns whether these last bytes of a stream can be the start of a header.
fn can_begin(bytes: &[u8]) -> bool {
    let scheme = bytes.split(|&byte| byte == b':').next().unwrap_or_default();
    let is_scheme = scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let is_open = bytes.len() < HEAD_BYTES_MAX && memchr::memchr(b'\n', bytes).is_none();
    is_open && is_scheme && bytes.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Returns the start of the next line that can be a record header.
fn next_record(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).map(|at| at + 1).find(|&at| ArcHeader::of(&bytes[at..]).is_some())
}

/// Parses the URL and the page of a record. The key is the URL, unless `--id-field` names another header field.
pub(crate) fn understand<'r>(
    record: &'r [u8],
    fields: &Fields,
    bytes_max: usize,
    charset: Option<Charset>,
) -> Result<RecordContent<'r>, String> {
    let head = ArcHeader::of(record).ok_or("its head is none of an ARC file")?;
    let (url, content) = (head.values[0], &record[head.bytes..]);
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme.as_bytes()));
    if url.starts_with(FIRST) {
        let version = content.split(|&byte| byte == b' ').next().unwrap_or_default();
        // guard: an ARC file of another version is refused
        if version != b"1" {
            return Err(format!(
                "an ARC file of version \"{}\"; version 1 is read, and others can be converted to WARC",
                version[..version.len().min(20)].escape_ascii()
            ));
        }
        return Ok(RecordContent::NoDocument);
    }
    if begins("dns:") || begins("whois:") {
        return Ok(RecordContent::NoDocument);
    }
    if let Some(name) = fields.reserved.first() {
        // A header has exactly five fields, so no field can be added for an annotation.
        return Err(format!("{}; and records of ARC files cannot hold another", name_conflict(name)));
    }
    let page = page(&head, content, bytes_max)?;
    let key = match fields.ids {
        Ids::Line => None,
        Ids::Field | Ids::FieldOrLine if fields.id == crate::input::options::ID_FIELD => {
            Some(Cow::Borrowed(url))
        }
        Ids::Field | Ids::FieldOrLine => {
            let found = fields.key_in_header(|name| head.field(name));
            Some(found.map_err(|name| format!("no field {name:?}; a record has {}", NAMES.join(", ")))?)
        }
    };
    let shown = page.map_or(Ok(None), |page| page.text(charset))?;
    Ok(shown.map_or(RecordContent::NoDocument, |shown| RecordContent::Made { key, shown }))
}

/// Returns the page in a record; `None` if it has none.
fn page<'r>(
    head: &ArcHeader<'r>,
    content: &'r [u8],
    bytes_max: usize,
) -> Result<Option<http::HttpPage<'r>>, String> {
    let is_of_web = head.values[0].get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http"));
    if is_of_web && content.starts_with(b"HTTP/") {
        return http::page(content, bytes_max);
    }
    Ok(Some(http::HttpPage { of_type: Cow::Borrowed(head.values[3]), content: content.into() }))
}

/// Returns the canonical link of the page in a record; `None` if there is none.
pub(crate) fn link(
    record: &[u8],
    bytes_max: usize,
    charset: Option<Charset>,
) -> Result<Option<String>, String> {
    let Some(head) = ArcHeader::of(record) else { return Ok(None) };
    Ok(page(&head, &record[head.bytes..], bytes_max)?.and_then(|page| page.link(charset)))
}

/// Returns the requested values of a record, except key and text, from its header fields.
pub(crate) fn attached(record: &[u8], fields: &Fields) -> anyhow::Result<OwnAttached> {
    let head = ArcHeader::of(record);
    let is_time = |name: &str| name.eq_ignore_ascii_case("Archive-date");
    let time = |date| Cow::Owned(String::from_utf8_lossy(&time(date)).into_owned());
    fields.attached.of_header(|name| head.as_ref()?.field(name), is_time, time)
}

/// Converts a date of 14 digits to RFC 3339 format.
fn time(date: &[u8]) -> Vec<u8> {
    let mut time = Vec::with_capacity(DATE_DIGITS + 6);
    for (at, &digit) in date.iter().enumerate() {
        let before: &[u8] = match at {
            4 | 6 => b"-",
            8 => b"T",
            10 | 12 => b":",
            _ => b"",
        };
        time.extend_from_slice(before);
        time.push(digit);
    }
    time.push(b'Z');
    time
}

#[cfg(test)]
mod tests {
    use crate::input::open::reader::{Origin, Reader};
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    fn record(url: &str, of_type: &str, content: &str) -> String {
        format!("{url} 192.0.2.1 20260131120000 {of_type} {}\n{content}\n", content.len())
    }

    fn answer(url: &str, text: &str) -> String {
        record(url, "text/plain", &format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{text}"))
    }

    fn first(version: &str) -> String {
        record("filedesc://a.arc", "text/plain", &format!("{version} 0 Maker\n{}\n\n", NAMES.join(" ")))
    }

    fn fields() -> Fields {
        Fields { id: "id".to_owned(), text: "text".to_owned(), ..Default::default() }
    }

    /// Returns each record as `key=text`, or its error, and the message about the truncation of the stream.
    fn read(bytes: &[u8], max: usize) -> (Vec<Result<String, String>>, Option<String>) {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
        let window = Window::new(Reader::open_verbatim(origin, &Arc::default()).unwrap());
        let mut records = ArchiveRecords::new(window, max);
        let mut all = Vec::new();
        while records
            .next(|number, found| {
                let line = found.map(|found| found.line.to_vec());
                let said = line.and_then(|line| {
                    Ok(match understand(&line, &fields(), max, None)? {
                        RecordContent::Made { key, shown } => {
                            format!("{}={}", String::from_utf8_lossy(&key.unwrap()), shown.text)
                        }
                        RecordContent::Text { .. } | RecordContent::Revisit => {
                            panic!("no record of an ARC file is one")
                        }
                        RecordContent::NoDocument => "none".to_owned(),
                    })
                });
                assert_eq!(number as usize, all.len() + 1);
                all.push(said);
            })
            .unwrap()
        {}
        let cut = records.cut();
        (all, cut)
    }

    fn good(said: &[&str]) -> Vec<Result<String, String>> {
        said.iter().map(|said| Ok((*said).to_owned())).collect()
    }

    #[test]
    fn url_and_page_are_read_from_response_records_only() {
        let archive = [
            first("1"),
            record("dns:a.example", "text/dns", "20260131120000\na.example. 300 IN A 192.0.2.1"),
            answer("http://a.example/", "one\nhttp://b/ 1 2 3 4\ntwo"),
            answer("http://a.example/with a blank", "three"),
            record("ftp://a.example/x", "text/plain", "four"),
            record(
                "http://a.example/p",
                "image/png",
                "HTTP/1.0 200 OK\r\nContent-Type: image/png\r\n\r\n\u{89}PNG",
            ),
        ]
        .concat();
        let wanted = [
            "none",
            "none",
            "http://a.example/=one\nhttp://b/ 1 2 3 4\ntwo",
            "http://a.example/with a blank=three",
            "ftp://a.example/x=four",
            "none",
        ];
        assert_eq!(read(archive.as_bytes(), 1000), (good(&wanted), None));
        // The version block of written files can be read, too.
        assert_eq!(
            read(&[PREAMBLE, answer("http://a/", "x").as_bytes()].concat(), 1000).0,
            good(&["none", "http://a/=x"])
        );
    }

    #[test]
    fn wrong_length_makes_only_its_own_record_bad() {
        let sound = answer("http://b/", "right");
        let length = sound.split_whitespace().nth(4).unwrap();
        for wrong in ["1", "60", "999999"] {
            let bad = sound.replacen(&format!(" {length}\n"), &format!(" {wrong}\n"), 1);
            let archive = [first("1"), answer("http://a/", "x"), bad, answer("http://c/", "y")].concat();
            let (said, cut) = read(archive.as_bytes(), 1000);
            assert_eq!((said.len(), cut), (4, None), "{said:?}");
            assert!(said[2].as_ref().unwrap_err().contains("http://b/"), "{said:?}");
            assert_eq!(said[3], Ok("http://c/=y".to_owned()));
        }
    }

    #[test]
    fn record_over_the_limit_is_bad_and_the_next_is_read() {
        let long = answer("http://a/", &"x".repeat(1000));
        let (said, cut) = read([first("1"), long, answer("http://b/", "y")].concat().as_bytes(), 1000);
        assert_eq!((said.len(), &said[2], cut), (3, &Ok("http://b/=y".to_owned()), None));
        assert!(said[1].as_ref().unwrap_err().contains("a record of more than 1000 bytes"), "{said:?}");
    }

    #[test]
    fn records_before_a_truncation_are_read_and_its_offset_reported() {
        let archive = [first("1"), answer("http://a/", "x"), answer("http://b/", "y")].concat();
        let (said, cut) = read(&archive.as_bytes()[..archive.len() - 4], 1000);
        assert_eq!(said, good(&["none", "http://a/=x"]));
        assert!(cut.unwrap().starts_with("t, after 2 records: the file ends after "));
        // The stream is truncated in the header of the last record.
        for kept in [1, 5, 30] {
            let end = archive.len() - answer("http://b/", "y").len() + kept;
            let (said, cut) = read(&archive.as_bytes()[..end], 1000);
            assert_eq!((said, cut.is_some()), (good(&["none", "http://a/=x"]), true), "{kept}");
        }
    }

    #[test]
    fn arc_files_of_other_versions_and_other_files_are_refused() {
        let two = read(first("2").as_bytes(), 1000).0;
        assert!(two[0].as_ref().unwrap_err().contains("version \"2\""), "{two:?}");
        let other = read(b"{\"id\":1}\n{}\n", 1000).0;
        assert!(other[0].as_ref().unwrap_err().contains("expected the head of a record"), "{other:?}");
        assert!(read(b"no line", 1000).0[0].is_err());
        assert_eq!(read(b"", 1000), (Vec::new(), None));
    }

    #[test]
    fn records_across_every_read_buffer_boundary_are_read_whole() {
        for pad in [262_000, 262_100, 262_144, 600_000] {
            let long = "y".repeat(pad);
            let archive = [first("1"), answer("http://a/", &long), answer("http://b/", "x")].concat();
            let wanted =
                ["none".to_owned(), format!("http://a/={long}"), "http://b/=x".to_owned()].map(Ok).to_vec();
            assert_eq!(read(archive.as_bytes(), 1 << 20).0, wanted, "{pad}");
        }
    }

    #[test]
    fn arc_dates_become_stamps_and_urls_become_values() {
        let mut fields = fields();
        fields.attached.stamp = Some("archive-date".to_owned());
        fields.attached.value = Some("IP-address".to_owned());
        let own = attached(answer("http://a/", "x").as_bytes(), &fields).unwrap();
        assert_eq!((own.stamp, &own.value[..]), (Some(1_769_860_800), &b"192.0.2.1"[..]));
    }
}
