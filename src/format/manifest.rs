//! The manifest: the content of an index at one generation.
//!
//! ```text
//!  0  header (role 2; its salt is the index's UUID)
//! 64  generation 8   next segment number 8   length of the parameters 4   segments 4
//! 88  parameters' text
//!     for each segment, numbers ascending:
//!       number 8   file length 8   digest 16   salt 16   documents 8   length of the deletes 4
//!       deletes: the ordinals that are no longer live, as a roaring bitmap (portable format); nothing if none
//!     with the feature `log`:
//!       next log number 8   logs 4   length of the payload 4 (0xffffffff: none)   payload
//!       for each log, numbers ascending: number 8   first commit 8   length 8; for the active log, the last: bit 63
//!       set with the feature `grown`, 0 without it
//!     with stamps: 1 if there was a stamp, otherwise 0, 4   highest stamp 8
//!     checksum of all bytes before it, with the UUID as salt, at offset 0
//! ```
//!
//! If no batch was ever logged in the index, the manifest has no part about logs. It then equals, byte for byte, the
//! manifest that a version without logs writes.

use byteorder::{LittleEndian, ReadBytesExt, WriteBytesExt};
use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::IntoBytes;

use super::checksum::checksum;
use super::header::{FEATURE_GROWN, FEATURE_LOG, HEADER_BYTES, Header, Refusal, Role, features_of};
pub use super::limits::PARAMS_BYTES_MAX;
use super::log::{LOG_HEAD_BYTES, PAYLOAD_BYTES_MAX};
use super::wire::{self, Fault};
use super::{DOCUMENTS_MAX, VERSION};
use crate::params::Params;

/// Maximum length of the file in bytes.
pub const MANIFEST_BYTES_MAX: u64 = (1 << 32) - 1;
/// Maximum number of segments of an index.
pub const SEGMENTS_MAX: u32 = 1 << 16;
/// Maximum number of logs of an index.
pub const LOGS_MAX: u32 = 64;
/// The length that encodes "no payload".
const NO_PAYLOAD: u32 = u32::MAX;
/// A flag in the length of the active log, set with the feature `grown`. The lower 63 bits then contain the length.
const GROWS: u64 = 1 << 63;

/// The content of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The UUID of the index, chosen at random when the index was created.
    pub uuid: u128,
    /// The features that a writer must know but a reader may ignore; 0 in manifests of this version.
    pub read_only_compatible: u32,
    /// The generation: 1 for a new index, otherwise the number of a commit. Commits that are only in logs have
    /// the numbers between two generations.
    pub generation: u64,
    /// The number of the next segment; numbers are never reused.
    pub next_segment: u64,
    /// The index's parameters.
    pub params: Params,
    /// The segments in ascending order of their numbers. A document replaces the document with the same key in an
    /// earlier segment.
    pub segments: Vec<SegmentEntry>,
    /// The logs whose batches are not in a segment yet; `None` if no batch was ever logged.
    pub logged: Option<Logged>,
    /// The highest stamp of all commits up to this generation; `None` if no document had a stamp.
    pub now: Option<u64>,
}

/// The logs, and the newest payload of a commit, at the generation of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// The number of the next log; numbers are never reused.
    pub next_log: u64,
    /// The newest payload of a commit up to this generation; `None` if no commit had a payload.
    pub payload: Option<Vec<u8>>,
    /// The logs whose batches are not in a segment yet, in ascending order of their numbers.
    pub logs: Vec<LogEntry>,
}

/// The entry of a log in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The number in the name of the file.
    pub number: u64,
    /// The number of the first commit in the log.
    pub first: u64,
    /// Number of bytes that are known to be intact. For the active log: its length when this manifest was written, or 0
    /// in manifests of older versions, which omit it. For any other log: the whole length, excluding a torn tail.
    pub length: u64,
    /// Whether this is the active log: the last log, to which batches are appended.
    pub grows: bool,
}

/// The entry of a segment in the manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentEntry {
    /// The number in the name of the file.
    pub number: u64,
    /// Length of the file in bytes.
    pub length: u64,
    /// The digest of the file: [`crate::segment::Segment::digest`].
    pub digest: u128,
    /// The salt in the header of the file.
    pub salt: u128,
    /// Number of documents, including deleted ones.
    pub documents: u64,
    /// Ordinals of the documents that were deleted or replaced since the segment was written.
    pub deleted: RoaringBitmap,
}

impl Manifest {
    /// Encodes the manifest as the content of its file.
    ///
    /// # Panics
    /// Never: writing to a `Vec` does not fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.try_encode().expect("writing to a Vec does not fail")
    }

    fn try_encode(&self) -> std::io::Result<Vec<u8>> {
        let params = self.params.encode();
        let header = Header::new(Role::Manifest, self.uuid, self.params.digest());
        let incompatible = if self.logged.is_some() { FEATURE_LOG } else { 0 };
        let grown = |logged: &Logged| logged.logs.iter().any(|log| log.grows && log.length > 0);
        let grown = if self.logged.as_ref().is_some_and(grown) { FEATURE_GROWN } else { 0 };
        let incompatible = incompatible | grown | features_of(&self.params);
        let header = header.with_features(incompatible, self.read_only_compatible);
        let mut out = header.as_bytes().to_vec();
        out.write_u64::<LittleEndian>(self.generation)?;
        out.write_u64::<LittleEndian>(self.next_segment)?;
        out.write_u32::<LittleEndian>(params.len() as u32)?;
        out.write_u32::<LittleEndian>(self.segments.len() as u32)?;
        out.extend_from_slice(params.as_bytes());
        for segment in &self.segments {
            out.write_u64::<LittleEndian>(segment.number)?;
            out.write_u64::<LittleEndian>(segment.length)?;
            out.write_u128::<LittleEndian>(segment.digest)?;
            out.write_u128::<LittleEndian>(segment.salt)?;
            out.write_u64::<LittleEndian>(segment.documents)?;
            if segment.deleted.is_empty() {
                out.write_u32::<LittleEndian>(0)?;
            } else {
                out.write_u32::<LittleEndian>(segment.deleted.serialized_size() as u32)?;
                segment.deleted.serialize_into(&mut out)?;
            }
        }
        if let Some(logged) = &self.logged {
            out.write_u64::<LittleEndian>(logged.next_log)?;
            out.write_u32::<LittleEndian>(logged.logs.len() as u32)?;
            let length = logged.payload.as_ref().map_or(NO_PAYLOAD, |payload| payload.len() as u32);
            out.write_u32::<LittleEndian>(length)?;
            out.extend_from_slice(logged.payload.as_deref().unwrap_or_default());
            for log in &logged.logs {
                let grows = if log.grows && log.length > 0 { GROWS } else { 0 };
                for field in [log.number, log.first, log.length | grows] {
                    out.write_u64::<LittleEndian>(field)?;
                }
            }
        }
        if self.params.expire_after.is_some() {
            out.write_u32::<LittleEndian>(self.now.is_some().into())?;
            out.write_u64::<LittleEndian>(self.now.unwrap_or(0))?;
        }
        out.write_u32::<LittleEndian>(checksum(self.uuid, 0, &out))?;
        Ok(out)
    }

    /// Returns the digest of the bytes of a manifest, as stored in `CURRENT`.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> u128 {
        xxh3_128(bytes)
    }

    /// Decodes a manifest. Checks the header, then the checksum, then the range of every field.
    ///
    /// # Errors
    /// A [`Refusal`] if the manifest is damaged or not supported by this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let header = Header::read(bytes, Role::Manifest)?;
        Self::decode_body(bytes, &header).map_err(Refusal::Damaged)
    }

    fn decode_body(bytes: &[u8], header: &Header) -> Result<Self, Fault> {
        let uuid = header.salt.get();
        let end = bytes.len().saturating_sub(4).max(HEADER_BYTES);
        let (body, mut tail) = wire::split(bytes, end as u64, "manifest")?;
        let mut reader = ManifestReader { bytes: body, at: HEADER_BYTES };
        let found = tail.read_u32::<LittleEndian>().map_err(|_| reader.fault("a checksum", "the end"))?;
        let expected = checksum(uuid, 0, body);
        // guard: a manifest is compared with its checksum
        if found != expected {
            return Err(Fault::new(end as u64, format!("checksum {expected:08x}"), format!("{found:08x}")));
        }
        let generation = reader.number("generation", ReadBytesExt::read_u64::<LittleEndian>)?;
        let next_segment = reader.number("next segment", ReadBytesExt::read_u64::<LittleEndian>)?;
        let params_length = reader.number("parameters' length", ReadBytesExt::read_u32::<LittleEndian>)?;
        let segment_count = reader.number("segments", ReadBytesExt::read_u32::<LittleEndian>)?;
        if params_length > PARAMS_BYTES_MAX || segment_count > SEGMENTS_MAX {
            let found = format!("{params_length} and {segment_count}");
            return Err(
                reader.fault(&format!("at most {PARAMS_BYTES_MAX} bytes, {SEGMENTS_MAX} segments"), &found)
            );
        }
        let text = reader.take(params_length as usize, "parameters")?;
        let params = std::str::from_utf8(text)
            .ok()
            .and_then(|text| Params::decode(text).ok())
            .ok_or_else(|| reader.fault(&format!("parameters of format {VERSION}"), "others"))?;
        // Equal parameters have equal texts, because the decoder accepts no other text. So the digest identifies them.
        if xxh3_128(text) != header.params_digest.get() {
            return Err(reader.fault("the parameters of the digest in the header", "others"));
        }
        header.check_features(&params)?;
        let mut segments: Vec<SegmentEntry> = Vec::new();
        for _ in 0..segment_count {
            let segment = reader.segment()?;
            let min = segments.last().map_or(0, |last| last.number + 1);
            // guard: fields of a manifest are in their ranges and in order
            if segment.number < min || segment.number >= next_segment {
                let expected = format!("a segment number from {min} to below {next_segment}");
                return Err(reader.fault(&expected, &segment.number.to_string()));
            }
            segments.push(segment);
        }
        let grown = header.incompatible.get() & FEATURE_GROWN != 0;
        let logged = match header.incompatible.get() & FEATURE_LOG {
            0 if grown => return Err(reader.fault("logs, as one grows", "none")),
            0 => None,
            _ => Some(reader.logged(grown)?),
        };
        let now = if params.expire_after.is_some() { reader.now()? } else { None };
        if reader.at != body.len() {
            return Err(reader.fault("the end", &format!("{} more bytes", body.len() - reader.at)));
        }
        let read_only_compatible = header.read_only_compatible.get();
        Ok(Self { uuid, read_only_compatible, generation, next_segment, params, segments, logged, now })
    }
}

struct ManifestReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ManifestReader<'a> {
    fn fault(&self, expected: &str, found: &str) -> Fault {
        Fault::new(self.at as u64, expected, found)
    }

    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], Fault> {
        let taken = self.at.checked_add(length).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.fault(&format!("{length} bytes of {what}"), "the end"))?;
        self.at += length;
        Ok(taken)
    }

    fn number<T>(
        &mut self,
        what: &str,
        read: impl Fn(&mut &'a [u8]) -> std::io::Result<T>,
    ) -> Result<T, Fault> {
        let mut bytes = self.take(size_of::<T>(), what)?;
        read(&mut bytes).map_err(|_| self.fault(what, "the end"))
    }

    fn segment(&mut self) -> Result<SegmentEntry, Fault> {
        let number = self.number("segment number", ReadBytesExt::read_u64::<LittleEndian>)?;
        let length = self.number("segment length", ReadBytesExt::read_u64::<LittleEndian>)?;
        let digest = self.number("segment digest", ReadBytesExt::read_u128::<LittleEndian>)?;
        let salt = self.number("segment salt", ReadBytesExt::read_u128::<LittleEndian>)?;
        let documents = self.number("documents", ReadBytesExt::read_u64::<LittleEndian>)?;
        if documents > DOCUMENTS_MAX {
            return Err(self.fault(&format!("at most {DOCUMENTS_MAX} documents"), &documents.to_string()));
        }
        let deleted_bytes = self.number("length of the deletes", ReadBytesExt::read_u32::<LittleEndian>)?;
        let start = self.at;
        let mut bytes = self.take(deleted_bytes as usize, "deletes")?;
        let mut deleted = RoaringBitmap::new();
        if deleted_bytes > 0 {
            let whole = bytes;
            deleted = RoaringBitmap::deserialize_from(&mut bytes)
                .map_err(|error| Fault::new(start as u64, "a roaring bitmap", error))?;
            check_offsets(whole).map_err(|mut fault| {
                fault.offset += start as u64;
                fault
            })?;
            let last = deleted.max().map(u64::from);
            if !bytes.is_empty() || last.is_none_or(|last| last >= documents) {
                return Err(Fault::new(
                    start as u64,
                    format!("deletes below {documents}"),
                    format!("{last:?}"),
                ));
            }
        }
        Ok(SegmentEntry { number, length, digest, salt, documents, deleted })
    }
}

/// Minimum number of containers with which a roaring bitmap with run containers stores offsets.
const OFFSETS_FROM: usize = 4;
/// The first 16 bits of a roaring bitmap with run containers. The next 16 bits are the number of containers minus one.
const COOKIE_WITH_RUNS: u32 = 12347;
/// Maximum number of values of a container that is stored as a list; a container with more values is a bitmap.
const LISTED_MAX: usize = 4096;

/// Checks that each container of a roaring bitmap begins at its stored offset. Some readers of roaring bitmaps use the
/// offsets; others ignore them and read the containers in sequence. Both must read the same values.
fn check_offsets(bytes: &[u8]) -> Result<(), Fault> {
    let number = |at: usize, width: usize| bytes.get(at..at + width).map(wire::wide);
    let short = || Fault::new(bytes.len() as u64, "a roaring bitmap", "the end");
    let cookie = number(0, 4).ok_or_else(short)? as u32;
    let has_runs = cookie & 0xffff == COOKIE_WITH_RUNS;
    let (containers, mut at) = if has_runs {
        let containers = (cookie >> 16) as usize + 1;
        (containers, 4 + containers.div_ceil(8))
    } else {
        (number(4, 4).ok_or_else(short)? as usize, 8)
    };
    let (is_run, described) = (4, at);
    at += 4 * containers;
    let offsets = at;
    if has_runs && containers < OFFSETS_FROM {
        return Ok(());
    }
    at += 4 * containers;
    for container in 0..containers {
        let offset = number(offsets + 4 * container, 4).ok_or_else(short)?;
        if offset != at as u64 {
            return Err(Fault::new((offsets + 4 * container) as u64, format!("offset {at}"), offset));
        }
        let count = number(described + 4 * container + 2, 2).ok_or_else(short)? as usize + 1;
        let runs =
            has_runs && number(is_run + container / 8, 1).ok_or_else(short)? >> (container % 8) & 1 == 1;
        at += match count {
            _ if runs => 2 + 4 * number(at, 2).ok_or_else(short)? as usize,
            0..=LISTED_MAX => 2 * count,
            _ => 8192,
        };
    }
    Ok(())
}

impl ManifestReader<'_> {
    fn now(&mut self) -> Result<Option<u64>, Fault> {
        let stamped = self.number("whether there were stamps", ReadBytesExt::read_u32::<LittleEndian>)?;
        let now = self.number("highest stamp", ReadBytesExt::read_u64::<LittleEndian>)?;
        match (stamped, now) {
            (1, now) => Ok(Some(now)),
            (0, 0) => Ok(None),
            found => Err(self.fault("1 and the highest stamp, or zeros", &format!("{found:?}"))),
        }
    }

    fn logged(&mut self, grown: bool) -> Result<Logged, Fault> {
        let next_log = self.number("next log", ReadBytesExt::read_u64::<LittleEndian>)?;
        let count = self.number("logs", ReadBytesExt::read_u32::<LittleEndian>)?;
        let length = self.number("payload's length", ReadBytesExt::read_u32::<LittleEndian>)?;
        if count > LOGS_MAX || length != NO_PAYLOAD && length as usize > PAYLOAD_BYTES_MAX {
            let expected = format!("at most {LOGS_MAX} logs and {PAYLOAD_BYTES_MAX} bytes of payload");
            return Err(self.fault(&expected, &format!("{count} and {length}")));
        }
        let payload = match length {
            NO_PAYLOAD => None,
            length => Some(self.take(length as usize, "payload")?.to_vec()),
        };
        let mut logs: Vec<LogEntry> = Vec::new();
        for place in 0..count {
            let number = self.number("log number", ReadBytesExt::read_u64::<LittleEndian>)?;
            let first = self.number("first commit", ReadBytesExt::read_u64::<LittleEndian>)?;
            let length = self.number("length of a log", ReadBytesExt::read_u64::<LittleEndian>)?;
            let (min, least_first) = logs.last().map_or((0, 0), |last| (last.number + 1, last.first));
            let is_last = place + 1 == count;
            let (length, grows) = match length {
                0 => (0, is_last && !grown),
                length if length & GROWS != 0 && is_last && grown => (length & !GROWS, true),
                length => (length, false),
            };
            if number < min || number >= next_log || first < least_first {
                let expected =
                    format!("a log from {min} to below {next_log}, of commits from {least_first} on");
                return Err(self.fault(&expected, &format!("{number}, of commits from {first} on")));
            }
            let unknown = grows && !grown;
            if !unknown && !(LOG_HEAD_BYTES..GROWS).contains(&length) || grown && is_last != grows {
                return Err(
                    self.fault(&format!("at least {LOG_HEAD_BYTES} bytes of a log"), &length.to_string())
                );
            }
            logs.push(LogEntry { number, first, length, grows });
        }
        if grown && logs.is_empty() {
            return Err(self.fault("a log that grows", "none"));
        }
        Ok(Logged { next_log, payload, logs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let params = Params::builder().words(5).simhash(3).build().unwrap();
        let entry = |number, deleted: &[u32]| SegmentEntry {
            number,
            length: 1000 + number,
            digest: 7,
            salt: 8,
            documents: 100,
            deleted: deleted.iter().collect(),
        };
        Manifest {
            uuid: 0x1234,
            read_only_compatible: 0,
            generation: 5,
            next_segment: 9,
            params,
            segments: vec![entry(1, &[]), entry(4, &[3, 99])],
            logged: None,
            now: None,
        }
    }

    fn with_logs() -> Manifest {
        let sealed = LogEntry { number: 2, first: 3, length: 200, grows: false };
        let growing = LogEntry { number: 3, first: 5, length: 0, grows: true };
        let logged = Logged { next_log: 4, payload: Some(b"here".to_vec()), logs: vec![sealed, growing] };
        Manifest { logged: Some(logged), ..manifest() }
    }

    /// Same as [`with_logs`], but states the length of the active log, as this version does.
    fn with_grown_log() -> Manifest {
        let mut manifest = with_logs();
        manifest.logged.as_mut().unwrap().logs[1].length = 300;
        manifest
    }

    #[test]
    fn bitmap_with_wrong_offsets_is_refused() {
        let listed: RoaringBitmap = (0..9).map(|number| number * 70_000).collect();
        let mut maps: RoaringBitmap = (0..20_000).map(|number| number * 3).collect();
        let mut runs: RoaringBitmap = (0..400_000).filter(|number| number % 100_000 > 20).collect();
        runs.optimize();
        maps |= &listed;
        for bitmap in [&listed, &maps, &runs] {
            let mut bytes = Vec::new();
            bitmap.serialize_into(&mut bytes).unwrap();
            check_offsets(&bytes).unwrap();
            // The first stored offset is the position of the first container.
            let head = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let has_runs = head & 0xffff == COOKIE_WITH_RUNS;
            assert_eq!(has_runs, std::ptr::eq(bitmap, &raw const runs), "{head:x}");
            let (start, count) = if has_runs {
                let count = (head >> 16) as usize + 1;
                (4 + count.div_ceil(8), count)
            } else {
                (8, u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize)
            };
            for container in [0, count - 1] {
                let at = start + 4 * count + 4 * container;
                bytes[at] ^= 2;
                let fault = check_offsets(&bytes).unwrap_err();
                assert_eq!(fault.offset, at as u64);
                bytes[at] ^= 2;
            }
        }
    }

    #[test]
    fn manifest_round_trips() {
        for manifest in [
            manifest(),
            with_logs(),
            with_grown_log(),
            Manifest { logged: Some(Logged::default()), ..manifest() },
        ] {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_detected() {
        let bytes = with_grown_log().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn invalid_manifest_fields_with_valid_checksum_are_refused() {
        let lies: [fn(&mut Manifest); 9] = [
            |m| m.logged.as_mut().unwrap().next_log = 3,
            |m| m.logged.as_mut().unwrap().logs.swap(0, 1),
            |m| m.logged.as_mut().unwrap().logs[0].length = 0,
            |m| m.logged.as_mut().unwrap().logs[0].length = 87,
            |m| m.logged.as_mut().unwrap().logs[1].first = 2,
            |m| m.next_segment = 4,
            |m| m.segments.swap(0, 1),
            |m| m.segments[0].documents = DOCUMENTS_MAX + 1,
            |m| m.segments[1].documents = 99,
        ];
        for (case, lie) in lies.into_iter().enumerate() {
            for mut lying in [with_logs(), with_grown_log()] {
                lie(&mut lying);
                assert!(matches!(Manifest::decode(&lying.encode()), Err(Refusal::Damaged(_))), "case {case}");
            }
        }
        let mut lying = with_grown_log();
        lying.logged.as_mut().unwrap().logs[1].length = 87;
        assert!(matches!(Manifest::decode(&lying.encode()), Err(Refusal::Damaged(_))));
    }
}
