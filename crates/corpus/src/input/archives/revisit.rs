//! WARC/1.1 revisit records. Such a record states that the payload of a capture equals the payload of another record,
//! byte for byte (ISO 28500:2017, section 6.7.2, profile `identical-payload-digest`).
//!
//! The other profile, `server-not-modified`, states that the server sent status 304. Such a response is never a
//! document, so that profile is never written.

use sha1_smol::Sha1;
use xxhash_rust::xxh3::Xxh3;

use crate::input::archives::http;
use crate::input::archives::warc::{field, head_end};

const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// The digits of Base32 (RFC 4648, section 6), the encoding of SHA-1 digests in archives.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The parts of a response record.
struct Capture<'r> {
    head: &'r [u8],
    http_head: &'r [u8],
    payload: &'r [u8],
}

impl<'r> Capture<'r> {
    /// Parses a record; `None` if it is not an HTTP response, or is truncated.
    fn of(record: &'r [u8]) -> Option<Self> {
        let (head, content) = record.split_at(head_end(record)?);
        let is_answer = field(head, "WARC-Type")? == b"response"
            && http::is_http(field(head, "Content-Type").unwrap_or_default());
        // A truncated record lacks the end of its payload, which may differ from the other payload.
        let is_whole = field(head, "WARC-Truncated").is_none();
        let (http_head, payload) = content.split_at(head_end(content)?);
        (is_answer && is_whole).then_some(Self { head, http_head, payload })
    }

    fn field(&self, name: &str) -> Option<&'r [u8]> {
        field(self.head, name).filter(|value| !value.is_empty())
    }

    /// Returns the URL, without the angle brackets that some writers add.
    fn uri(&self) -> Option<&'r [u8]> {
        let uri = self.field("WARC-Target-URI")?;
        Some(uri.strip_prefix(b"<").and_then(|uri| uri.strip_suffix(b">")).unwrap_or(uri))
    }

    /// Returns the payload digest that `self` and `other` both declare. If they declare different digests or none,
    /// returns the SHA-1 of the payload.
    fn digest(&self, other: &Self) -> Vec<u8> {
        let stated = [self, other].map(|capture| capture.field("WARC-Payload-Digest"));
        match stated {
            [Some(one), Some(same)] if one == same => one.to_vec(),
            _ => [b"sha1:".to_vec(), base32(&Sha1::from(self.payload).digest().bytes())].concat(),
        }
    }
}

/// Returns a revisit record that replaces `record`, with the line ends after it. Returns `None` if the payloads of
/// `record` and of the record `kept` differ, or if one lacks a header field that a revisit record needs. The result
/// depends only on the two records.
#[must_use]
pub fn revisit(record: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let (capture, of_kept) = (Capture::of(record)?, Capture::of(kept)?);
    // guard: a revisit record is written for equal payloads alone
    if capture.payload != of_kept.payload {
        return None;
    }
    let (uri, date) = (capture.uri()?, capture.field("WARC-Date")?);
    let mut all = b"WARC/1.1\r\n".to_vec();
    let mut push = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            all.extend_from_slice(part);
        }
    };
    push("WARC-Type", b"revisit");
    push("WARC-Record-ID", id(record, kept).as_bytes());
    push("WARC-Target-URI", uri);
    push("WARC-Date", date);
    push("WARC-Profile", PROFILE.as_bytes());
    push("WARC-Payload-Digest", &capture.digest(&of_kept));
    for (name, value) in [
        ("WARC-Refers-To", of_kept.field("WARC-Record-ID")),
        ("WARC-Refers-To-Target-URI", of_kept.uri()),
        ("WARC-Refers-To-Date", of_kept.field("WARC-Date")),
        ("WARC-IP-Address", capture.field("WARC-IP-Address")),
    ] {
        if let Some(value) = value {
            push(name, value);
        }
    }
    push("Content-Type", b"application/http; msgtype=response");
    push("Content-Length", capture.http_head.len().to_string().as_bytes());
    all.extend_from_slice(b"\r\n");
    all.extend_from_slice(capture.http_head);
    all.extend_from_slice(b"\r\n\r\n");
    Some(all)
}

/// Returns a UUID of version 8 (RFC 9562) that is a hash of both records: the same records always give the same UUID.
fn id(record: &[u8], kept: &[u8]) -> String {
    let mut hash = Xxh3::new();
    for part in [b"twindex revisit".as_slice(), &(record.len() as u64).to_le_bytes(), record, kept] {
        hash.update(part);
    }
    let bits = hash.digest128();
    let bits = bits & !(0xf << 76) | 8 << 76;
    let digits = format!("{:032x}", bits & !(3 << 62) | 2 << 62);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("<urn:uuid:{a}-{b}-{c}-{d}-{e}>")
}

/// Encodes twenty bytes in Base32. This length needs no padding.
fn base32(bytes: &[u8]) -> Vec<u8> {
    let groups =
        bytes.chunks(5).map(|group| group.iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte)));
    groups.flat_map(|bits| (0..8).rev().map(move |at| BASE32[(bits >> (5 * at) & 31) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(uri: &str, date: &str, more: &str, http: &str) -> Vec<u8> {
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uri}>\r\nWARC-Target-URI: <{uri}>\r\n\
             {date}{more}Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}",
            http.len()
        )
        .into_bytes()
    }

    const DATE: &str = "WARC-Date: 2026-01-31T12:00:00Z\r\n";
    const PAGE: &str = "HTTP/1.1 200 OK\r\nServer: a\r\n\r\n";

    #[test]
    fn digests_are_written_in_base32_like_in_archives() {
        // The SHA-1 of no bytes (RFC 3174), as archives write it for empty payloads.
        assert_eq!(base32(&Sha1::from(b"").digest().bytes()), b"3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }

    #[test]
    fn revisit_record_of_equal_payloads_refers_to_the_other_record() {
        let kept = response("http://a/", DATE, "", &format!("{PAGE}words"));
        let copy = response("http://b/", DATE, "", "HTTP/1.1 200 OK\r\nServer: b\r\n\r\nwords");
        let made = revisit(&copy, &kept).unwrap();
        assert_eq!(revisit(&copy, &kept), Some(made.clone()), "the same records give the same bytes");
        assert_ne!(revisit(&copy, &copy), Some(made.clone()));
        let text = String::from_utf8(made).unwrap();
        let digest = String::from_utf8(base32(&Sha1::from(b"words").digest().bytes())).unwrap();
        for line in [
            "WARC/1.1",
            "WARC-Type: revisit",
            "WARC-Target-URI: http://b/",
            "WARC-Date: 2026-01-31T12:00:00Z",
            "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            &format!("WARC-Payload-Digest: sha1:{digest}"),
            "WARC-Refers-To: <urn:uuid:http://a/>",
            "WARC-Refers-To-Target-URI: http://a/",
            "WARC-Refers-To-Date: 2026-01-31T12:00:00Z",
            "Content-Length: 30",
            "Server: b",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
        assert!(text.ends_with("Server: b\r\n\r\n\r\n\r\n"), "the head of the answer alone: {text}");
        let id = text.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: <urn:uuid:")).unwrap();
        assert_eq!((id.len(), &id[14..15], &id[36..]), (37, "8", ">"), "{id}");
    }

    #[test]
    fn different_payloads_and_incomplete_records_give_no_revisit() {
        let kept = response("http://a/", DATE, "", &format!("{PAGE}words"));
        let same = format!("{PAGE}words");
        assert!(revisit(&response("http://b/", DATE, "", &same), &kept).is_some());
        for (why, other) in [
            ("another payload", response("http://b/", DATE, "", &format!("{PAGE}word"))),
            ("no date", response("http://b/", "", "", &same)),
            ("cut", response("http://b/", DATE, "WARC-Truncated: length\r\n", &same)),
            ("no head", response("http://b/", DATE, "", "words")),
            (
                "no answer",
                String::from_utf8(kept.clone()).unwrap().replace("Type: response", "Type: resource").into(),
            ),
        ] {
            assert_eq!(revisit(&other, &kept), None, "{why}");
        }
    }

    #[test]
    fn digest_is_kept_if_both_records_state_it() {
        let digest = |one: &str, other: &str| {
            let stated = |digest: &str| format!("WARC-Payload-Digest: {digest}\r\n");
            let kept = response("http://a/", DATE, &stated(one), &format!("{PAGE}words"));
            let copy = response("http://b/", DATE, &stated(other), &format!("{PAGE}words"));
            let made = String::from_utf8(revisit(&copy, &kept).unwrap()).unwrap();
            made.lines()
                .find_map(|line| line.strip_prefix("WARC-Payload-Digest: ").map(str::to_owned))
                .unwrap()
        };
        assert_eq!(digest("md5:x", "md5:x"), "md5:x");
        assert!(digest("md5:x", "md5:y").starts_with("sha1:"));
    }
}
