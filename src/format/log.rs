//! The log: committed batches that are not in a segment yet. The first column has offsets; a number after a field is
//! its length in bytes.
//!
//! ```text
//!  0  header (its role is 4, its salt is the index's UUID)
//! 64  number 8   first commit 8   zero 4   checksum 4 (of bytes 0..84, with the UUID as salt and offset 0)
//! 88  records, each beginning at a multiple of 8:
//!     checksum 4   length 4   kind 1   zero 7   commit 8   payload   zeros up to a multiple of 8
//! ```
//!
//! The checksum of a record covers all bytes of the record after the checksum, including the padding. Its salt is the
//! UUID plus the number of the log, and its offset is that of the record. So a record that was copied from another log
//! or offset does not match. A batch is one record, so it is either complete or absent:
//!
//! ```text
//!  0  synced 8   operations 4   length of the caller's payload 4 (0xffffffff: none)   payload   operations
//!     operation: kind 1   key (8, or length 2 and bytes)   sketch, for kind 1:
//!       fingerprint 8   band keys 4 each   signature   for bottom and modular: count 2, values 6 each
//!     and for kinds 1 and 2: length of the value 4, the value   stamp 8   length of the fields 4, the fields
//! ```
//!
//! `synced` is the number of bytes of the file that were known to be durable when the record was written. An invalid
//! record before the highest `synced` of the log is damage; a later invalid record is the tail of a log torn by a
//! crash. As in `LevelDB`'s log, records have a kind, and lengths precede contents. Unlike `LevelDB`'s log, the log is
//! not divided into blocks, so records after a torn record cannot be found.

use byteorder::{ByteOrder, LittleEndian, WriteBytesExt};
use zerocopy::IntoBytes;

use super::attached::{Attached, VALUE_BYTES_MAX};
use super::bands;
use super::checksum::checksum;
use super::fields::{self, Fields};
use super::header::{HEADER_BYTES, Header, Refusal, Role, features_of};
use super::samples::{self, SampleChoice, VALUE_BYTES};
use super::sketches::Row;
use super::wire::Fault;
use crate::key::{KEY_BYTES_MAX, Key};
use crate::params::{KeyKind, Params};

/// Length in bytes of a log's head, which precedes the first record.
pub const LOG_HEAD_BYTES: u64 = 88;
/// Length in bytes of a record's head, which precedes its payload.
pub const RECORD_HEAD_BYTES: usize = 24;
/// Length in bytes of a batch's head, which precedes the caller's payload.
pub const BATCH_HEAD_BYTES: usize = 16;
/// The offsets of records are multiples of this number of bytes.
pub const RECORD_ALIGNMENT: u64 = 8;
/// Maximum length of a record's payload in bytes.
pub const RECORD_BYTES_MAX: u32 = 1 << 28;
/// Maximum length in bytes of the caller's payload of a commit.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 16;
/// The length that encodes "no payload".
const NO_PAYLOAD: u32 = u32::MAX;

/// The kind of a record. The numbers are part of the format and never change; 0 is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// A batch.
    Batch = 1,
    /// A mark: the number of bytes of the file that are known to be durable. The writer appends it when it stops using
    /// the log.
    Mark = 2,
}

/// The kind of an operation on a key. The numbers are part of the format and never change; 0 is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OperationKind {
    /// Puts a document with a sketch.
    Put = 1,
    /// Puts a document without tokens, which has no sketch.
    PutEmpty = 2,
    /// Deletes a document.
    Delete = 3,
}

/// Returns the salt for the checksums of the records of log `number`.
#[must_use]
pub fn record_salt(uuid: u128, number: u64) -> u128 {
    uuid.wrapping_add(number.into())
}

/// Encodes the first [`LOG_HEAD_BYTES`] of a log.
///
/// # Panics
/// Never: writing to a `Vec` does not fail.
#[must_use]
pub fn encode_head(uuid: u128, params: &Params, number: u64, first: u64) -> Vec<u8> {
    let header = Header::new(Role::Log, uuid, params.digest()).with_features(features_of(params), 0);
    let mut out = header.as_bytes().to_vec();
    for value in [number, first] {
        out.write_u64::<LittleEndian>(value).expect("writing to a Vec does not fail");
    }
    out.extend_from_slice(&[0; 4]);
    let sum = checksum(uuid, 0, &out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Decodes the head of log `number` of this index. Returns the number of the first commit that the log may contain.
///
/// # Errors
/// A [`Refusal`] if the head is damaged, belongs to another log, or is not supported by this version.
pub fn decode_head(bytes: &[u8], uuid: u128, params: &Params, number: u64) -> Result<u64, Refusal> {
    let header = Header::read(bytes, Role::Log)?;
    let fault =
        |offset, expected: String, found: String| Err(Refusal::Damaged(Fault::new(offset, expected, found)));
    let Some(head) = bytes.get(..LOG_HEAD_BYTES as usize) else {
        return fault(bytes.len() as u64, format!("{LOG_HEAD_BYTES} bytes"), "the end".into());
    };
    let (body, sum) = head.split_at(head.len() - 4);
    let (expected, found) = (checksum(header.salt.get(), 0, body), LittleEndian::read_u32(sum));
    if expected != found {
        return fault(84, format!("checksum {expected:08x}"), format!("{found:08x}"));
    }
    let mine = (header.salt.get(), header.params_digest.get(), LittleEndian::read_u64(&body[HEADER_BYTES..]));
    header.check_features(params).map_err(Refusal::Damaged)?;
    // guard: a log says whose it is and which
    if mine != (uuid, params.digest(), number) {
        let expected = format!("log {number} of index {uuid:032x}");
        return fault(24, expected, format!("log {} of {:032x}", mine.2, mine.0));
    }
    if body[80..84] != [0; 4] {
        return fault(80, "zero".into(), format!("{:02x?}", &body[80..84]));
    }
    Ok(LittleEndian::read_u64(&body[HEADER_BYTES + 8..]))
}

/// The head of a record, before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// The kind of the record.
    pub kind: RecordKind,
    /// Length of the payload in bytes.
    pub length: u32,
    /// The number of the commit; for a mark, the number of the last commit before the mark.
    pub commit: u64,
}

impl RecordHead {
    /// Parses the head of a record; `None` if the bytes are not a valid head.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..RECORD_HEAD_BYTES)?;
        let length = LittleEndian::read_u32(&bytes[4..]);
        let kind = match bytes[8] {
            1 => RecordKind::Batch,
            2 => RecordKind::Mark,
            _ => return None,
        };
        let plausible = length <= RECORD_BYTES_MAX && bytes[9..16] == [0; 7];
        plausible.then(|| Self { kind, length, commit: LittleEndian::read_u64(&bytes[16..]) })
    }

    /// Returns the length of the whole record in bytes, including the padding.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        (RECORD_HEAD_BYTES as u64 + u64::from(self.length)).next_multiple_of(RECORD_ALIGNMENT)
    }
}

/// Returns whether `record` is an intact record that was written at `offset` with the salt `salt`.
#[must_use]
pub fn is_sound(salt: u128, offset: u64, record: &[u8]) -> bool {
    record.len() >= RECORD_HEAD_BYTES
        // guard: a record of the log has a checksum
        // without it: LittleEndian::read_u32(record) == checksum(salt, offset, &record[4..]) -> true
        && LittleEndian::read_u32(record) == checksum(salt, offset, &record[4..])
}

/// Appends a record to `out`. `offset` is the position of the record in the file, a multiple of 8.
fn encode_record(
    out: &mut Vec<u8>,
    salt: u128,
    offset: u64,
    kind: RecordKind,
    commit: u64,
    payload: &[&[u8]],
) {
    let start = out.len();
    let length: usize = payload.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.push(kind as u8);
    out.extend_from_slice(&[0; 7]);
    out.extend_from_slice(&commit.to_le_bytes());
    for part in payload {
        out.extend_from_slice(part);
    }
    out.resize(start + (out.len() - start).next_multiple_of(RECORD_ALIGNMENT as usize), 0);
    let sum = checksum(salt, offset, &out[start + 4..]);
    out[start..start + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Appends a mark to `out`. `offset` is the position of the mark in the file.
pub fn encode_mark(out: &mut Vec<u8>, salt: u128, offset: u64, commit: u64, synced: u64) {
    encode_record(out, salt, offset, RecordKind::Mark, commit, &[&synced.to_le_bytes()]);
}

/// The encoded operations of a batch.
#[derive(Clone, Debug, Default)]
pub struct LogBatch {
    operations: u32,
    bytes: Vec<u8>,
}

impl LogBatch {
    /// Returns whether the batch has no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Returns the length of the encoded operations in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.operations = 0;
        self.bytes.clear();
    }

    fn begin(&mut self, kind: OperationKind, key: Key<'_>) {
        self.operations += 1;
        self.bytes.push(kind as u8);
        match key {
            Key::U64(key) => self.bytes.extend_from_slice(&key.to_le_bytes()),
            Key::Bytes(key) => {
                self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
                self.bytes.extend_from_slice(key);
            }
        }
    }

    /// Adds an operation that puts a document. `kept` is its sketch; `None` if the document has no tokens. Key, sketch
    /// and attached data must match the parameters.
    pub fn put(&mut self, params: &Params, key: Key<'_>, kept: Option<Row<'_>>, attached: Attached<'_>) {
        match kept {
            Some(kept) => self.put_sketch(params, key, kept),
            None => self.begin(OperationKind::PutEmpty, key),
        }
        attached.encode(params, &mut self.bytes);
    }

    fn put_sketch(&mut self, params: &Params, key: Key<'_>, kept: Row<'_>) {
        self.begin(OperationKind::Put, key);
        if params.simhash.is_some() {
            self.bytes.extend_from_slice(&kept.fingerprint.to_le_bytes());
        }
        let bits = bands::bits_of(params);
        for &feature in kept.features {
            self.bytes.extend_from_slice(&bands::key(feature, bits).to_le_bytes());
        }
        self.bytes.extend_from_slice(kept.signature);
        for (choice, values) in SampleChoice::of(params).iter().zip([kept.bottom, kept.modular]) {
            if choice.is_some() {
                self.bytes.extend_from_slice(&(values.len() as u16).to_le_bytes());
                samples::encode(values, &mut self.bytes);
            }
        }
    }

    /// Adds an operation that deletes this key.
    pub fn delete(&mut self, key: Key<'_>) {
        self.begin(OperationKind::Delete, key);
    }

    /// Appends the batch as a record to `out`. `offset` is the offset of the record in the file, and `synced` the
    /// number of bytes of the file that are known to be durable.
    pub fn encode(
        &self,
        out: &mut Vec<u8>,
        salt: u128,
        offset: u64,
        commit: u64,
        synced: u64,
        payload: Option<&[u8]>,
    ) {
        BatchView { synced, operations: self.operations, payload, bytes: &self.bytes }
            .encode(out, salt, offset, commit, synced);
    }
}

/// A batch as stored in the payload of a record.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// Number of bytes of the file that were known to be durable when the record was written.
    pub synced: u64,
    /// Number of operations.
    pub operations: u32,
    /// The caller's payload of the commit; `None` if the commit has none.
    pub payload: Option<&'a [u8]>,
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Parses the payload of an intact batch record.
    ///
    /// # Errors
    /// A [`Fault`] with an offset relative to the start of the payload.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Fault> {
        let Some((head, rest)) = bytes.split_at_checked(BATCH_HEAD_BYTES) else {
            return Err(Fault::new(0, format!("{BATCH_HEAD_BYTES} bytes of a batch"), bytes.len()));
        };
        let length = LittleEndian::read_u32(&head[12..]);
        let (payload, bytes) = match length {
            NO_PAYLOAD => (None, rest),
            _ if length as usize > PAYLOAD_BYTES_MAX || length as usize > rest.len() => {
                let max = rest.len().min(PAYLOAD_BYTES_MAX);
                return Err(Fault::new(12, format!("at most {max} bytes of the caller's"), length));
            }
            _ => {
                let (payload, bytes) = rest.split_at(length as usize);
                (Some(payload), bytes)
            }
        };
        let operations = LittleEndian::read_u32(&head[8..]);
        Ok(Self { synced: LittleEndian::read_u64(head), operations, payload, bytes })
    }

    /// Appends the batch as a record to `out`, as [`LogBatch::encode`] does.
    pub fn encode(&self, out: &mut Vec<u8>, salt: u128, offset: u64, commit: u64, synced: u64) {
        let mut head = [0; BATCH_HEAD_BYTES];
        LittleEndian::write_u64(&mut head, synced);
        LittleEndian::write_u32(&mut head[8..], self.operations);
        let length = self.payload.map_or(NO_PAYLOAD, |payload| payload.len() as u32);
        LittleEndian::write_u32(&mut head[12..], length);
        let parts = [&head[..], self.payload.unwrap_or_default(), self.bytes];
        encode_record(out, salt, offset, RecordKind::Batch, commit, &parts);
    }

    /// Iterates over the operations of the batch.
    #[must_use]
    pub fn operations(&self, params: &Params) -> Operations<'a> {
        Operations {
            bytes: self.bytes,
            at: 0,
            left: self.operations,
            start: (BATCH_HEAD_BYTES + self.payload.map_or(0, <[u8]>::len)) as u64,
            key: params.key,
            fingerprint: params.simhash.is_some(),
            bands: params.minhash.map_or(0, |minhash| minhash.bands.into()),
            feature_bits: bands::bits_of(params),
            signature_bytes: params.minhash.map_or(0, |minhash| minhash.signature_bytes()),
            choices: SampleChoice::of(params),
            values: params.values,
            stamps: params.expire_after.is_some(),
            fields: fields::are_kept(params),
            features: Vec::new(),
            set: Vec::new(),
            samples: [Vec::new(), Vec::new()],
        }
    }
}

/// An operation on a key.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Puts a document with this key: adds it, or replaces the document with the same key.
    Put(Key<'a>, Option<Row<'a>>, Attached<'a>),
    /// Deletes the document with this key.
    Delete(Key<'a>),
}

/// Iterates over the operations of a batch. Sets are checked completely; of sketches, only the lengths of the parts and
/// the unused bits of band keys are checked.
#[allow(clippy::struct_excessive_bools, reason = "each is a part that parameters keep or not")]
#[derive(Debug)]
pub struct Operations<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
    /// The offset of `bytes` in the payload of the record.
    start: u64,
    key: KeyKind,
    fingerprint: bool,
    bands: usize,
    /// Number of stored bits of a band key, the highest ones. The lower bits are zero.
    feature_bits: u32,
    signature_bytes: usize,
    choices: [Option<SampleChoice>; 2],
    values: bool,
    stamps: bool,
    fields: bool,
    features: Vec<u64>,
    set: Vec<u64>,
    samples: [Vec<u64>; 2],
}

impl<'a> Operations<'a> {
    fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], Fault> {
        let taken = self.at.checked_add(length).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| {
            Fault::new(
                self.start + self.at as u64,
                format!("{length} bytes of {what}"),
                "the end of the record",
            )
        })?;
        self.at += length;
        Ok(taken)
    }

    fn attached(&mut self) -> Result<Attached<'a>, Fault> {
        let mut attached = Attached::default();
        if self.values {
            let offset = self.offset();
            let length = LittleEndian::read_u32(self.take(4, "a value's length")?);
            if length as usize > VALUE_BYTES_MAX {
                return Err(Fault::new(
                    offset,
                    format!("a value of at most {VALUE_BYTES_MAX} bytes"),
                    length,
                ));
            }
            attached.value = self.take(length as usize, "a value")?;
        }
        if self.stamps {
            attached.stamp = Some(LittleEndian::read_u64(self.take(8, "a stamp")?));
        }
        if self.fields {
            let length = LittleEndian::read_u32(self.take(4, "the length of fields")?) as usize;
            let at = self.offset();
            attached.fields = Fields::of(self.take(length, "fields")?);
            let read = attached.fields.set_into(&mut self.set);
            read.map_err(|fault| Fault { offset: at + fault.offset, ..fault })?;
        }
        Ok(attached)
    }

    /// Returns the offset of the next operation in the payload.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Returns the next operation; `None` after the last.
    ///
    /// # Errors
    /// A [`Fault`], after which no operation can be read.
    pub fn next_operation(&mut self) -> Result<Option<Operation<'_>>, Fault> {
        let offset = self.offset();
        if self.left == 0 {
            let rest = self.bytes.len() - self.at;
            if rest > 0 {
                return Err(Fault::new(offset, "the end of the operations", format!("{rest} more bytes")));
            }
            return Ok(None);
        }
        self.left -= 1;
        let kind = self.take(1, "an operation")?[0];
        let key = match self.key {
            KeyKind::U64 => Key::U64(LittleEndian::read_u64(self.take(8, "a key")?)),
            KeyKind::Bytes => {
                let length = usize::from(LittleEndian::read_u16(self.take(2, "a key's length")?));
                if length == 0 {
                    return Err(Fault::new(offset + 1, format!("a key of 1 to {KEY_BYTES_MAX} bytes"), 0));
                }
                Key::Bytes(self.take(length, "a key")?)
            }
        };
        match kind {
            1 => {}
            2 => {
                let attached = self.attached()?;
                return Ok(Some(Operation::Put(key, None, attached)));
            }
            3 => return Ok(Some(Operation::Delete(key))),
            other => return Err(Fault::new(offset, "an operation of kind 1 to 3", other)),
        }
        let mut fingerprint = 0;
        if self.fingerprint {
            fingerprint = LittleEndian::read_u64(self.take(8, "a fingerprint")?);
        }
        let (keys_at, bits) = (self.offset(), self.feature_bits);
        let band_keys = self.take(self.bands * 4, "band keys")?;
        self.features.clear();
        // A band key is the upper 32 bits of a feature. The lower 32 bits are not stored; set them to zero.
        self.features
            .extend(band_keys.chunks_exact(4).map(|key| u64::from(LittleEndian::read_u32(key)) << 32));
        let is_wider = |&feature: &u64| bands::key(feature, bits) != bands::key(feature, bands::KEY_BITS);
        if let Some(band) = self.features.iter().position(is_wider) {
            let expected = format!("a band key of {bits} bits above zeros");
            let found = format!("{:#010x}", self.features[band] >> 32);
            return Err(Fault::new(keys_at + band as u64 * 4, expected, found));
        }
        let signature = self.take(self.signature_bytes, "a signature")?;
        for of in 0..2 {
            self.samples[of].clear();
            if self.choices[of].is_some() {
                let count = usize::from(LittleEndian::read_u16(self.take(2, "a number of sampled hashes")?));
                let bytes = self.take(count * VALUE_BYTES as usize, "sampled hashes")?;
                self.samples[of].extend(samples::decode(bytes));
            }
        }
        let attached = self.attached()?;
        let [bottom, modular] = &self.samples;
        let row = Row { fingerprint, features: &self.features, signature, bottom, modular };
        Ok(Some(Operation::Put(key, Some(row), attached)))
    }
}

/// Parses the payload of a mark: the number of bytes of the file that are known to be durable.
///
/// # Errors
/// A [`Fault`] for a payload that is not 8 bytes long.
pub fn decode_mark(bytes: &[u8]) -> Result<u64, Fault> {
    let bytes: [u8; 8] = bytes.try_into().map_err(|_| Fault::new(0, "8 bytes of a mark", bytes.len()))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Params {
        Params::builder().simhash(3).minhash(2, 2).bottom(3).values().expire_after(9).build().unwrap()
    }

    fn batch() -> LogBatch {
        let mut batch = LogBatch::default();
        let row = Row {
            fingerprint: 7,
            features: &[5 << 32, u64::MAX << 32],
            signature: &[1, 2, 3, 4],
            bottom: &[3, 9],
            modular: &[],
        };
        let attached = |value, stamp| Attached { value, stamp: Some(stamp), ..Attached::default() };
        batch.put(&params(), Key::from("a"), Some(row), attached(b"value", 1 << 40));
        batch.put(&params(), Key::from("bb"), None, attached(b"", 7));
        batch.delete(Key::from("a"));
        batch
    }

    #[test]
    fn batch_round_trips() {
        for payload in [None, Some(&b""[..]), Some(b"position 17")] {
            let mut record = Vec::new();
            batch().encode(&mut record, 99, 88, 12, 64, payload);
            assert!(record.len().is_multiple_of(8) && is_sound(99, 88, &record));
            assert!(!is_sound(99, 96, &record) && !is_sound(98, 88, &record));
            let head = RecordHead::read(&record).unwrap();
            assert_eq!(
                (head.kind, head.commit, head.record_bytes()),
                (RecordKind::Batch, 12, record.len() as u64)
            );
            let view = BatchView::decode(&record[RECORD_HEAD_BYTES..][..head.length as usize]).unwrap();
            assert_eq!((view.synced, view.operations, view.payload), (64, 3, payload));
            let params = params();
            let mut operations = view.operations(&params);
            let Some(Operation::Put(Key::Bytes(b"a"), Some(row), attached)) =
                operations.next_operation().unwrap()
            else {
                panic!("a put of a sketch");
            };
            assert_eq!(
                (row.fingerprint, row.features, row.signature),
                (7, &[5 << 32, u64::MAX << 32][..], &[1, 2, 3, 4][..])
            );
            assert_eq!((row.bottom, row.modular), (&[3, 9][..], &[][..]));
            assert_eq!(attached, Attached { value: b"value", stamp: Some(1 << 40), ..Attached::default() });
            let second = operations.next_operation().unwrap();
            let empty = Attached { value: b"", stamp: Some(7), ..Attached::default() };
            assert!(matches!(second, Some(Operation::Put(Key::Bytes(b"bb"), None, found)) if found == empty));
            assert!(matches!(operations.next_operation(), Ok(Some(Operation::Delete(Key::Bytes(b"a"))))));
            assert!(matches!(operations.next_operation(), Ok(None)));
        }
    }

    #[test]
    fn every_flipped_bit_of_record_and_head_is_detected() {
        let mut record = Vec::new();
        batch().encode(&mut record, 99, 88, 12, 64, Some(b"x"));
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sound(99, 88, &damaged), "bit {bit}");
        }
        let params = params();
        let head = encode_head(5, &params, 7, 8);
        assert_eq!((head.len() as u64, decode_head(&head, 5, &params, 7)), (LOG_HEAD_BYTES, Ok(8)));
        assert!(decode_head(&head, 5, &params, 8).is_err() && decode_head(&head, 4, &params, 7).is_err());
        let other = Params::builder().simhash(3).build().unwrap();
        assert!(decode_head(&encode_head(5, &other, 7, 8), 5, &params, 7).is_err());
        for bit in 0..head.len() * 8 {
            let mut damaged = head.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_head(&damaged, 5, &params, 7).is_err(), "bit {bit}");
        }
        for length in 0..head.len() {
            assert!(decode_head(&head[..length], 5, &params, 7).is_err(), "length {length}");
        }
    }

    #[test]
    fn band_keys_with_unstored_bits_set_are_refused() {
        let builder = Params::builder().minhash(2, 2).signature_bits(0);
        let (wide, narrow) = (builder.clone().build().unwrap(), builder.feature_bits(8).build().unwrap());
        let batch = |params: &Params, second: u64| {
            let row = Row { features: &[0xA5 << 56, second], ..Row::default() };
            let (mut batch, mut record) = (LogBatch::default(), Vec::new());
            batch.put(params, Key::from("a"), Some(row), Attached::default());
            batch.encode(&mut record, 99, 88, 12, 64, None);
            record
        };
        let features = |record: &[u8]| -> Result<Vec<u64>, Fault> {
            let length = RecordHead::read(record).unwrap().length as usize;
            let payload = &record[RECORD_HEAD_BYTES..][..length];
            let mut operations = BatchView::decode(payload)?.operations(&narrow);
            let Some(Operation::Put(_, Some(row), _)) = operations.next_operation()? else {
                panic!("no put")
            };
            Ok(row.features.to_vec())
        };
        assert_eq!(features(&batch(&narrow, 0x7FFF_FFFF << 32)), Ok(vec![0xA5 << 56, 0x7F << 56]));
        // The offset of the first band key: head of the batch, kind of the operation, length and bytes of the key.
        let place = BATCH_HEAD_BYTES as u64 + 1 + 2 + 1 + 4;
        let fault = features(&batch(&wide, 0x7F80_0000 << 32)).unwrap_err();
        assert_eq!(fault, Fault::new(place, "a band key of 8 bits above zeros", "0x7f800000"));
    }

    #[test]
    fn invalid_operations_are_refused_and_never_read_past_the_record() {
        let params = params();
        let mut record = Vec::new();
        batch().encode(&mut record, 99, 88, 12, 64, None);
        let length = RecordHead::read(&record).unwrap().length as usize;
        let payload = &record[RECORD_HEAD_BYTES..][..length];
        let run = |payload: &[u8]| -> Result<u32, Fault> {
            let mut operations = BatchView::decode(payload)?.operations(&params);
            let mut count = 0;
            while operations.next_operation()?.is_some() {
                count += 1;
            }
            Ok(count)
        };
        assert_eq!(run(payload), Ok(3));
        for cut in 0..payload.len() {
            assert!(run(&payload[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..payload.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut lying = payload.to_vec();
                lying[at] = value;
                let _ = run(&lying); // may return an error or other operations, but must not panic
            }
        }
        let mut longer = payload.to_vec();
        longer.push(0);
        assert!(run(&longer).is_err());
    }
}
