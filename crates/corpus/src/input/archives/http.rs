//! HTTP responses in web archives: extracts the page from a response, and decodes the page to text. If the header names
//! no content type, the type is detected from the first bytes.

use std::borrow::Cow;
use std::io::Read;

use crate::input::content::Loss;
use crate::input::open::reader::zstd_within;
use crate::input::text::charset::{self, Charset, Decoded};
#[cfg(feature = "html")]
use crate::input::text::html;
use crate::input::text::lossy;

/// Maximum number of header fields. A response with more fields is invalid.
const HEAD_FIELDS_MAX: usize = 256;
/// Maximum length of a status line.
const STATUS_BYTES_MAX: usize = 8 << 10;
/// Buffer size of the brotli decoder in bytes.
const BROTLI_BUFFER: usize = 4 << 10;
/// Base-2 logarithm of the maximum window size of zstd content in bytes (8 MiB). RFC 9659 allows no larger windows in
/// HTTP. Each thread holds a window in memory.
const WINDOW_LOG_MAX: u32 = 23;

/// The decoded content of a response, with its content type.
#[derive(Debug)]
pub(crate) struct HttpPage<'r> {
    pub(crate) of_type: Cow<'r, [u8]>,
    pub(crate) content: Cow<'r, [u8]>,
}

/// Returns whether archive records of this content type contain an HTTP message.
pub(crate) fn is_http(of_type: &[u8]) -> bool {
    without_parameters(of_type).eq_ignore_ascii_case(b"application/http")
}

pub(crate) fn is_plain_text(of_type: &[u8]) -> bool {
    without_parameters(of_type).eq_ignore_ascii_case(b"text/plain")
}

/// Returns the content type without its parameters. Servers also send a bare `html`, a type in quotes, or two types.
fn without_parameters(of_type: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| b";, \t".contains(byte);
    match of_type.trim_ascii().split(is_end).next().unwrap_or_default() {
        short if short.eq_ignore_ascii_case(b"html") => b"text/html",
        whole => unquoted(whole),
    }
}

/// Returns whether a content type does not say what the content is (MIME Sniffing standard, section 7).
fn is_unknown(of_type: &[u8]) -> bool {
    let medium = without_parameters(of_type);
    let unknown = [&b"unknown/unknown"[..], b"application/unknown", b"*/*"];
    !medium.contains(&b'/') || unknown.iter().any(|unknown| medium.eq_ignore_ascii_case(unknown))
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

/// Returns the response with a status line that the parser accepts; `None` if it has one. Archivers write lines for HTTP/2
/// and HTTP/3, which have none, and servers send `http/1.1 200`, `HTTP/1.1 200OK` or `HTTP 200`.
fn with_usual_status(response: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'\n', &response[..response.len().min(STATUS_BYTES_MAX)])?;
    let (line, rest) = response.split_at(end);
    let after = line.get(..4).filter(|name| name.eq_ignore_ascii_case(b"HTTP")).map(|_| &line[4..])?;
    let is_of_version = |byte: &u8| b"/.".contains(byte) || byte.is_ascii_digit();
    let (version, code) = after.split_at(after.iter().take_while(|byte| is_of_version(byte)).count());
    let code = code.trim_ascii_start();
    let (code, reason) = code.split_at_checked(3).filter(|(code, _)| code.iter().all(u8::is_ascii_digit))?;
    let is_usual = line.starts_with(b"HTTP") && [&b"/1.1"[..], b"/1.0"].contains(&version);
    let is_ended = reason.first().is_none_or(u8::is_ascii_whitespace);
    (!is_usual || !is_ended).then(|| [b"HTTP/1.1 ", code, b" \r", rest].concat())
}

/// Returns the page in a response; `None` if the status is an error or a redirection, or the type is not text.
///
/// # Errors
///
/// The record is no HTTP response, its encoding is unknown or wrong, or the content exceeds `bytes_max`.
pub(crate) fn page(response: &[u8], bytes_max: usize) -> Result<Option<HttpPage<'_>>, String> {
    let Some(usual) = with_usual_status(response) else { return page_of(response, bytes_max) };
    Ok(page_of(&usual, bytes_max)?.map(|page| HttpPage {
        of_type: Cow::Owned(page.of_type.into_owned()),
        content: Cow::Owned(page.content.into_owned()),
    }))
}

fn page_of(response: &[u8], bytes_max: usize) -> Result<Option<HttpPage<'_>>, String> {
    let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let mut lenient = httparse::ParserConfig::default();
    lenient
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    let parsed = lenient.parse_response(&mut head, response);
    let bytes = match parsed {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Err("its HTTP head is not ended by an empty line".to_owned()),
        Err(error) => return Err(format!("no HTTP response: {error}")),
    };
    if head.code.is_some_and(|code| !(200..300).contains(&code)) {
        return Ok(None);
    }
    let value = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map_or(&[][..], |field| field.value)
    };
    let of_type = value("Content-Type");
    if !is_unknown(of_type) && !is_shown(of_type) {
        return Ok(None);
    }
    let mut content = Cow::Borrowed(&response[bytes..]);
    // A field may stand in several lines. Encodings are decoded in the reverse order of the list.
    for name in ["Transfer-Encoding", "Content-Encoding"] {
        let lines = head.headers.iter().rev().filter(|field| field.name.eq_ignore_ascii_case(name));
        for coding in lines.flat_map(|field| field.value.rsplit(|&byte| byte == b',')) {
            let coding = coding.split(|&byte| byte == b';').next().unwrap_or_default();
            let coding = unquoted(coding.trim_ascii()).to_ascii_lowercase();
            if let Some(decoded) = decoded(&content, &coding, bytes_max)? {
                content = Cow::Owned(decoded);
            }
        }
    }
    let of_type = if is_unknown(of_type) { sniffed(&content).unwrap_or_default() } else { of_type };
    Ok(Some(HttpPage { of_type: Cow::Owned(of_type.to_vec()), content }))
}

/// Undoes an encoding of the content; `None` if the content is not encoded. Many archivers store decoded content and
/// leave the name of the encoding in the header, and servers name encodings that are none, such as `UTF-8`.
fn decoded(content: &[u8], coding: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, String> {
    Ok(match coding {
        b"chunked" => unchunked(content)?,
        b"gzip" | b"x-gzip" | b"deflate" if content.starts_with(b"\x1f\x8b") => {
            // guard: all members of gzip in an answer are decompressed
            // without it: bounded(flate2::read::MultiGzDecoder::new(content), bytes_max, "gzip")
            // -> bounded(flate2::read::GzDecoder::new(content), bytes_max, "gzip")
            Some(bounded(flate2::read::MultiGzDecoder::new(content), bytes_max, "gzip")?)
        }
        b"zstd" if content.starts_with(b"\x28\xb5\x2f\xfd") => {
            // guard: zstd of an answer has a window of 8 MiB at most
            // without it: WINDOW_LOG_MAX -> 27
            Some(bounded(zstd_within(content, WINDOW_LOG_MAX)?, bytes_max, "zstd")?)
        }
        b"deflate" if is_zlib(content) => {
            Some(bounded(flate2::read::ZlibDecoder::new(content), bytes_max, "deflate")?)
        }
        // These formats have no magic number. If decompression fails and the content is UTF-8, the archiver is assumed to
        // have decompressed it.
        b"deflate" => {
            let decoder = flate2::read::DeflateDecoder::new(content);
            decompressed_or_text(decoder, content, bytes_max, "deflate")?
        }
        b"br" => {
            let decoder = brotli_decompressor::Decompressor::new(content, BROTLI_BUFFER);
            decompressed_or_text(decoder, content, bytes_max, "brotli")?
        }
        b"" | b"identity" | b"gzip" | b"x-gzip" | b"zstd" => None,
        _ if sniffed(content).is_some() => None,
        other => {
            let other = other.escape_ascii();
            return Err(format!("its content is encoded as \"{other}\", which twindex does not decode"));
        }
    })
}

/// Returns whether bytes start with a zlib header (RFC 1950, section 2.2).
fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, ..]
        if first & 0x0f == 8 && first >> 4 <= 7 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

/// Reads all output of a decoder. Returns an error if the output exceeds `bytes_max` bytes.
fn bounded(decoder: impl Read, bytes_max: usize, name: &str) -> Result<Vec<u8>, String> {
    let mut whole = Vec::new();
    // guard: a long content of an answer is refused
    // without it: bytes_max as u64 + 1 -> u64::MAX
    match decoder.take(bytes_max as u64 + 1).read_to_end(&mut whole) {
        Err(error) => Err(format!("its content cannot be decompressed by {name}: {error}")),
        // guard: a long content of an answer is refused
        Ok(_) if whole.len() > bytes_max => Err(format!("a content of more than {bytes_max} bytes")),
        Ok(_) => Ok(whole),
    }
}

/// Returns the decoded content; `None` if decoding fails and the content is UTF-8.
fn decompressed_or_text(
    decoder: impl Read,
    content: &[u8],
    bytes_max: usize,
    name: &str,
) -> Result<Option<Vec<u8>>, String> {
    match bounded(decoder, bytes_max, name) {
        Err(_) if std::str::from_utf8(content).is_ok() => Ok(None),
        done => done.map(Some),
    }
}

/// Joins the chunks of content with chunked transfer encoding; `None` if the content does not begin with a chunk.
///
/// # Errors
///
/// The content ends before its last chunk, or a chunk has another length than it says.
fn unchunked(content: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let (mut whole, mut rest) = (Vec::with_capacity(content.len()), content);
    while let Ok(httparse::Status::Complete((head, bytes))) = httparse::parse_chunk_size(rest) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes == 0 {
            return Ok(Some(whole));
        }
        let after = rest.get(head..).and_then(|rest| rest.split_at_checked(bytes));
        let Some((chunk, after)) = after else { break };
        whole.extend_from_slice(chunk);
        let Some(next) = after.strip_prefix(b"\r\n") else { break };
        rest = next;
    }
    // Text may begin like the size of a chunk.
    if whole.is_empty() {
        return Ok(None);
    }
    let at = content.len() - rest.len();
    Err(format!("its content is cut: no whole chunk at byte {at} of {}", content.len()))
}

fn is_html(medium: &[u8]) -> bool {
    [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|html| medium.eq_ignore_ascii_case(html))
}

/// Returns whether content of this type is read as text. Scripts and styles are not.
fn is_shown(of_type: &[u8]) -> bool {
    let medium_of = without_parameters(of_type);
    let is_text = medium_of.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case(b"text/"));
    is_html(medium_of) || is_text && !is_not_shown(medium_of)
}

impl HttpPage<'_> {
    /// Returns the visible text; `None` if the content is not text.
    ///
    /// # Errors
    ///
    /// The page is HTML, and this build does not read HTML.
    pub(crate) fn text(&self, charset: Option<Charset>) -> Result<Option<PageText>, String> {
        if !is_shown(&self.of_type) {
            return Ok(None);
        }
        if is_html(without_parameters(&self.of_type)) {
            let decoded = charset::page(&self.content, &self.of_type, charset);
            return shown(decoded, &self.content, true).map(Some);
        }
        shown(charset::answer(&self.content, &self.of_type, charset), &self.content, false).map(Some)
    }

    /// Returns the canonical link of the page; `None` if it has none or is not HTML.
    pub(crate) fn link(&self, charset: Option<Charset>) -> Option<String> {
        let is_page = is_html(without_parameters(&self.of_type));
        is_page.then(|| link_of_page(&charset::page(&self.content, &self.of_type, charset).text)).flatten()
    }
}

/// The kind of loss when a text was decoded, and the bytes that are compared instead of the text.
pub(crate) type OpaqueIdentity = (Loss, Vec<u8>);

/// The visible text of an HTML page, or the text of a page of another text type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageText {
    pub(crate) text: String,
    /// The bytes to compare instead of the text, if decoding was lossy or the page has no visible text.
    pub(crate) opaque: Option<OpaqueIdentity>,
    /// Whether the encoding of the page was detected from its bytes.
    pub(crate) is_detected: bool,
}

/// Returns the text of a decoded document; of HTML, the visible text. `bytes` is the document before decoding.
///
/// # Errors
///
/// The page is HTML, and this build does not read HTML.
pub(crate) fn shown(decoded: Decoded<'_>, bytes: &[u8], is_html: bool) -> Result<PageText, String> {
    let Decoded { text, is_lossy, is_detected } = decoded;
    let lost = is_lossy.then(|| (Loss::Bytes, identity(lossy::LOSSY, &lossy::mark(bytes))));
    let (text, opaque) = if is_html { shown_of_page(&text, lost)? } else { (text.into_owned(), lost) };
    Ok(PageText { text, opaque, is_detected })
}

/// Returns the visible text of a page. If the page was decoded with loss or has no visible text, also returns the bytes
/// to compare instead. For a loss in decoding, these are `lost`.
///
/// # Errors
///
/// This build does not read HTML.
pub(crate) fn shown_of_page(
    markup: &str,
    lost: Option<OpaqueIdentity>,
) -> Result<(String, Option<OpaqueIdentity>), String> {
    let text = page_text(markup)?;
    let is_unseen = text.is_empty() && !markup.trim_ascii().is_empty();
    let unseen = || is_unseen.then(|| (Loss::Unseen, identity(lossy::UNSEEN, markup)));
    Ok((text, lost.or_else(unseen)))
}

/// Returns the bytes that are compared instead of a text: the kind of loss, followed by `all`.
pub(crate) fn identity(kind: u8, all: &str) -> Vec<u8> {
    [&[kind], all.as_bytes()].concat()
}

/// Returns whether the file name has the suffix of an HTML page.
pub(crate) fn is_named_html(path: &std::path::Path) -> bool {
    path.extension()
        .is_some_and(|suffix| ["html", "htm", "xhtml"].iter().any(|name| suffix.eq_ignore_ascii_case(name)))
}

/// Returns the visible text of an HTML page.
///
/// # Errors
///
/// This build does not read HTML.
#[cfg(feature = "html")]
#[allow(clippy::unnecessary_wraps, reason = "as where the feature is not there")]
pub(crate) fn page_text(page: &str) -> Result<String, String> {
    Ok(html::text(page))
}

#[cfg(not(feature = "html"))]
pub(crate) fn page_text(_page: &str) -> Result<String, String> {
    Err("a page of HTML, which this build of twindex does not read; build it with the cargo feature `html`"
        .to_owned())
}

/// Returns the canonical link of an HTML page.
#[cfg(feature = "html")]
pub(crate) fn link_of_page(page: &str) -> Option<String> {
    html::canonical(page)
}

#[cfg(not(feature = "html"))]
pub(crate) fn link_of_page(_page: &str) -> Option<String> {
    None // reading the page was an error
}

/// Number of bytes at the start of the content that are examined to detect its type (MIME Sniffing standard).
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
/// Subtypes of `text/` that are scripts or styles.
const NOT_SHOWN: [&str; 8] =
    ["css", "ecmascript", "javascript", "jscript", "livescript", "x-ecmascript", "x-javascript", "vbscript"];

/// Detects the content type from the first bytes of the content; `None` if the content is not text.
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

/// Returns whether a text begins like a page of HTML.
pub(crate) fn is_page(text: &str) -> bool {
    text.trim_ascii_start().starts_with('<') && sniffed(text.as_bytes()) == Some(b"text/html")
}

fn begins_with(text: &[u8], tag: &[u8]) -> bool {
    let (start, rest) = text.split_at(text.len().min(tag.len()));
    start.eq_ignore_ascii_case(tag) && rest.first().is_some_and(|byte| b" >".contains(byte))
}

/// Returns whether a `text/` type is for scripts or styles, which are not documents.
pub(crate) fn is_not_shown(medium: &[u8]) -> bool {
    medium
        .get(5..)
        .is_some_and(|name| NOT_SHOWN.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn answer(head: &str, content: &[u8]) -> Vec<u8> {
        [b"HTTP/1.1 200 OK\r\n".as_slice(), head.as_bytes(), b"\r\n", content].concat()
    }

    fn text(response: &[u8]) -> Result<Option<String>, String> {
        let shown = page(response, 1000)?.map_or(Ok(None), |page| page.text(None))?;
        Ok(shown.map(|shown| shown.text))
    }

    #[test]
    #[cfg(feature = "html")]
    fn chunked_and_compressed_page_is_decoded() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all("<p>grün".as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut chunked = Vec::new();
        for part in gzip.chunks(7) {
            chunked.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            chunked.extend_from_slice(part);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        let head = "content-type: text/html\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
        assert_eq!(text(&answer(head, &chunked)), Ok(Some("grün".to_owned())));
        assert_eq!(text(&answer(head, b"<p>as it is")), Ok(Some("as it is".to_owned())), "decoded before");
        let zstd = zstd::encode_all(&b"plain"[..], 3).unwrap();
        let head = "Content-Type: text/plain\r\nContent-Encoding: zstd\r\n";
        assert_eq!(text(&answer(head, &zstd)), Ok(Some("plain".to_owned())));
    }

    #[test]
    fn content_that_decompresses_beyond_the_limit_or_is_damaged_is_an_error() {
        let head = "Content-Type: text/plain\r\nContent-Encoding: zstd\r\n";
        let bomb = zstd::encode_all(&vec![b'x'; 1 << 20][..], 3).unwrap();
        assert_eq!(text(&answer(head, &bomb)), Err("a content of more than 1000 bytes".to_owned()));
        let mut damaged = zstd::encode_all(&[b"abc".repeat(9), b"xyz".repeat(9)].concat()[..], 3).unwrap();
        damaged.truncate(damaged.len() - 3);
        assert!(
            text(&answer(head, &damaged))
                .unwrap_err()
                .starts_with("its content cannot be decompressed by zstd")
        );
        let head = "Content-Type: text/plain\r\nContent-Encoding: compress\r\n";
        assert!(text(&answer(head, b"\x1f\x9d\x90x\0")).unwrap_err().contains("\"compress\""));
        let head = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n";
        for (cut, at) in
            [("5\r\nwords\r\n9\r\nand", 10), ("5\r\nwords\r\n", 10), ("2\r\nwo\r\n3\r\nrds!0\r\n", 7)]
        {
            let said = format!("its content is cut: no whole chunk at byte {at} of {}", cut.len());
            assert_eq!(text(&answer(head, cut.as_bytes())), Err(said));
        }
        assert_eq!(text(&answer(head, b"added words")), Ok(Some("added words".to_owned())));
    }

    #[test]
    fn brotli_and_raw_deflate_are_decoded_and_plain_text_is_kept() {
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        deflate.write_all("plain words, grün".as_bytes()).unwrap();
        let deflate = deflate.finish().unwrap();
        // The brotli data is an uncompressed block (RFC 7932, section 9.2).
        let brotli = b"\x8b\x08\x80plain words, gr\xc3\xbcn\x03";
        for (coding, content) in [("deflate", &deflate[..]), ("br", brotli)] {
            let head = format!("Content-Type: text/plain\r\nContent-Encoding: {coding}\r\n");
            assert_eq!(text(&answer(&head, content)), Ok(Some("plain words, grün".to_owned())), "{coding}");
            let before = "plain words, grün".as_bytes();
            assert_eq!(text(&answer(&head, before)), Ok(Some("plain words, grün".to_owned())), "{coding}");
            assert!(text(&answer(&head, b"\xff\xfe\xfd no stream")).is_err(), "{coding}");
        }
        let bomb = {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
            encoder.finish().unwrap()
        };
        let head = "Content-Type: text/plain\r\nContent-Encoding: deflate\r\n";
        assert_eq!(text(&answer(head, &bomb)), Err("a content of more than 1000 bytes".to_owned()));
    }

    #[test]
    fn response_type_is_sniffed_and_scripts_and_styles_are_not_text() {
        assert_eq!(text(&answer("", b" <!doctype html><p>words</p>")), Ok(Some("words".to_owned())));
        assert_eq!(text(&answer("", b"plain words")), Ok(Some("plain words".to_owned())));
        assert_eq!(text(&answer("Content-Type:\r\n", b"plain words")), Ok(Some("plain words".to_owned())));
        assert_eq!(text(&answer("", b"\x89PNG\r\n\x1a\n\0")), Ok(None));
        for medium in ["text/css", "text/javascript; charset=utf-8", "Text/JavaScript"] {
            assert_eq!(text(&answer(&format!("Content-Type: {medium}\r\n"), b"a { }")), Ok(None), "{medium}");
        }
    }

    #[test]
    #[cfg(feature = "html")]
    fn encodings_that_are_none_are_ignored_and_several_are_undone_in_order() {
        let page = "<p>words</p>";
        for coding in ["UTF-8", "none", "binary", "\"gzip\"", "gzip;q=1.0", "null", "iso-8859-1", "text/html"]
        {
            for name in ["Content-Encoding", "Transfer-Encoding"] {
                let head = format!("Content-Type: text/html\r\n{name}: {coding}\r\n");
                assert_eq!(text(&answer(&head, page.as_bytes())), Ok(Some("words".to_owned())), "{head}");
            }
        }
        let gzip = |bytes: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        };
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        for (head, content) in [
            ("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", gzip(&gzip(page.as_bytes()))),
            ("Content-Encoding: gzip, zstd\r\n", zstd(&gzip(page.as_bytes()))),
            ("Content-Encoding: zstd\r\nX: y\r\nContent-Encoding: gzip\r\n", gzip(&zstd(page.as_bytes()))),
            ("Content-Encoding: deflate\r\n", gzip(page.as_bytes())),
            ("Content-Encoding: \"gzip\";q=1\r\n", gzip(page.as_bytes())),
        ] {
            let head = format!("Content-Type: text/html\r\n{head}");
            assert_eq!(text(&answer(&head, &content)), Ok(Some("words".to_owned())), "{head}");
        }
        let cut = gzip(page.as_bytes());
        let head = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
        assert!(text(&answer(head, &cut[..cut.len() - 9])).is_err());
    }

    #[test]
    #[cfg(feature = "html")]
    fn content_types_that_servers_misspell_are_understood() {
        for of_type in
            ["html", "\"text/html\"", "text/html, text/html", "TEXT/HTML text/plain", "*/*", "charset=utf-8"]
        {
            let head = format!("Content-Type: {of_type}\r\n");
            assert_eq!(text(&answer(&head, b"<html><p>words")), Ok(Some("words".to_owned())), "{of_type}");
        }
    }

    #[test]
    fn unusual_status_lines_are_accepted() {
        for line in [
            "HTTP/2 200",
            "HTTP/2.0 200 OK",
            "HTTP/3 200 ",
            "http/1.1 200 OK",
            "HTTP/1.1 200OK",
            "HTTP 200 OK",
        ] {
            let answer = format!("{line}\r\ncontent-type: text/plain\r\n\r\nwords");
            assert_eq!(text(answer.as_bytes()), Ok(Some("words".to_owned())), "{line}");
        }
        assert_eq!(text(b"HTTP/2 404\r\ncontent-type: text/plain\r\n\r\nwords"), Ok(None));
        assert!(text(b"HTTP/1.1 OK\r\n\r\nwords").is_err() && text(b"HTTP/9\n").is_err());
    }

    #[test]
    fn zstd_content_with_a_window_over_8_mib_is_refused() {
        let within = |window_log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window_log).unwrap();
            encoder.write_all(b"plain").unwrap();
            let head = "Content-Type: text/plain\r\nContent-Encoding: zstd\r\n";
            text(&answer(head, &encoder.finish().unwrap()))
        };
        assert_eq!(within(WINDOW_LOG_MAX), Ok(Some("plain".to_owned())));
        let said = within(WINDOW_LOG_MAX + 1).unwrap_err();
        assert!(
            said.starts_with("its content cannot be decompressed by zstd") && said.contains("memory"),
            "{said}"
        );
    }

    #[test]
    #[cfg(feature = "html")]
    fn charset_is_taken_from_the_page_or_its_header() {
        let html = |of_type: &str, content: &[u8]| {
            text(&answer(&format!("Content-Type: {of_type}\r\n"), content)).unwrap().unwrap()
        };
        assert_eq!(html("text/html; charset=\"iso-8859-1\"", b"gr\xfcn"), "grün");
        assert_eq!(html("text/html", b"<meta charset=windows-1251><p>\xcf\xf0"), "Пр");
        assert_eq!(html("text/html", "<meta charset=utf-16><p>grün".as_bytes()), "grün");
        assert_eq!(html("text/html", "<p>grün".as_bytes()), "grün");
        assert_eq!(html("text/html", b"<p>gr\xfcn"), "grün");
        assert_eq!(html("text/plain", b"\xef\xbb\xbfa"), "a");
    }

    #[test]
    fn errors_images_and_other_records_are_not_pages() {
        assert_eq!(text(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\nx"), Ok(None));
        assert_eq!(text(&answer("Content-Type: image/png\r\n", b"x")), Ok(None));
        assert!(text(b"nonsense").is_err());
        assert!(text(b"HTTP/1.1 200 OK\r\nA: b\r\n").is_err());
    }

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
