//! A file of sketches: the sketches of documents in input order, before they are added to an index.
//!
//! ```text
//! ┌────────┬────────────┬───────┬───┬───────┬─────┐
//! │ header │ parameters │ block │ … │ block │ end │
//! └────────┴────────────┴───────┴───┴───────┴─────┘
//! parameters: length (4), the text, checksum (4)
//! block:      records (4), length (4), the records, checksum (4)
//! record:     key, flag 0 or 1; after a 1: fingerprint, features, signature, samples; then the length of the set (4) and
//!             the set; parts that the parameters do not require are absent
//! ```
//!
//! The file is written and read sequentially, so it can be piped; this module does no I/O. [`Encoded`] is a buffer of
//! encoded records, which any thread can fill. [`Encoder`] groups the records into blocks. [`Decoder`] requests the
//! bytes of one part after another and decodes them. Block boundaries depend only on the records, so the same documents
//! and parameters give the same file.

use xxhash_rust::xxh3::Xxh3Default;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::checksum::checksum;
use super::fields::{FIELDS_BYTES_MAX, Fields, unread};
use super::footer;
use super::header::{HEADER_BYTES, Header, Refusal, Role, features_of_sketches};
use super::limits::PARAMS_BYTES_MAX;
use super::samples::{self, SampleChoice, VALUE_BYTES};
use super::wire::{Fault, wide};
use crate::error::{Error, Result};
use crate::key::{KEY_BYTES_MAX, Key};
use crate::params::{KeyKind, Params};

/// A block ends after the record with which its records reach this total number of bytes.
pub const BLOCK_BYTES: usize = 1 << 16;
/// Length of a block's head in bytes.
pub const BLOCK_HEAD_BYTES: usize = 8;
/// Length in bytes of a checksum, and of the field with the parameters' length.
const WORD: usize = 4;

/// The end of the file, 64 bytes. A file without this end was truncated.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SketchFileEnd {
    /// The magic: [`footer::MAGIC`].
    pub magic: [u8; 8],
    /// Length of the whole file in bytes.
    pub file_length: U64,
    /// Number of blocks in the file.
    pub blocks: U64,
    /// Number of records in the file.
    pub documents: U64,
    /// Number of records with a sketch.
    pub sketched: U64,
    /// The xxh3-128 of the concatenated checksums of all blocks.
    pub digest: U128,
    /// Reserved; always zero.
    pub reserved: U32,
    /// The [`checksum`] of the preceding fields, computed with the offset of this struct in the file.
    pub checksum: U32,
}

/// Length of a [`SketchFileEnd`] in bytes.
pub const END_BYTES: usize = 64;
const _: () = assert!(size_of::<SketchFileEnd>() == END_BYTES);

impl SketchFileEnd {
    fn sealed(mut self, salt: u128, offset: u64) -> Self {
        self.checksum = U32::new(checksum(salt, offset, &self.as_bytes()[..END_BYTES - WORD]));
        self
    }
}

/// The sketch of one document in a file of sketches. Parts that the parameters do not require are empty or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// The fingerprint.
    pub fingerprint: u64,
    /// One 64-bit feature for each band.
    pub features: &'a [u64],
    /// The packed signature, [`signature_bytes`](crate::params::MinhashParams::signature_bytes) long.
    pub signature: &'a [u8],
    /// The bottom sample, ascending.
    pub bottom: &'a [u64],
    /// The modular sample (the hashes divisible by `modulus`), ascending.
    pub modular: &'a [u64],
}

/// The parts of a record that the parameters require, and their lengths.
#[derive(Clone, Copy, Debug)]
struct RecordShape {
    key: KeyKind,
    fingerprint: bool,
    bands: usize,
    signature_bytes: usize,
    /// Number of used bits in the last byte of the signature; 0 if all bits are used.
    last_bits: u32,
    /// The bottom and the modular sample; `None` for a sample that is not stored.
    samples: [Option<SampleChoice>; 2],
    sets: bool,
    codes: bool,
}

impl RecordShape {
    fn of(params: &Params) -> Self {
        let minhash = params.minhash;
        let bits = minhash.map_or(0, |minhash| minhash.minima() * usize::from(minhash.signature_bits));
        Self {
            key: params.key,
            fingerprint: params.simhash.is_some(),
            bands: minhash.map_or(0, |minhash| usize::from(minhash.bands)),
            signature_bytes: minhash.map_or(0, |minhash| minhash.signature_bytes()),
            last_bits: (bits % 8) as u32,
            samples: SampleChoice::of(params),
            sets: params.sets,
            codes: params.codes.is_some(),
        }
    }

    /// Returns the maximum length of a record in bytes.
    fn record_bytes_max(self) -> usize {
        let samples = self.samples.iter().flatten().map(|choice| 2 + choice.max() * VALUE_BYTES);
        let samples = samples.sum::<u64>() as usize;
        let sets = if self.sets { 4 + FIELDS_BYTES_MAX } else { 0 };
        2 + KEY_BYTES_MAX + 1 + 8 + self.bands * 8 + self.signature_bytes + samples + sets
    }

    /// Returns the maximum length of a block's records in bytes.
    fn block_bytes_max(self) -> usize {
        BLOCK_BYTES - 1 + self.record_bytes_max()
    }
}

/// A buffer of encoded records for one file of sketches.
#[derive(Clone, Debug)]
pub struct Encoded {
    shape: RecordShape,
    bytes: Vec<u8>,
    /// For each record, the position in `bytes` at which the record ends, and whether it has a sketch.
    ends: Vec<(usize, bool)>,
}

impl Encoded {
    /// Creates an empty buffer for a file with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self { shape: RecordShape::of(params), bytes: Vec::new(), ends: Vec::new() }
    }

    /// Appends a record; `row` is `None` for a document without a sketch.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Limit`] for a key of the wrong kind or length, [`Error::Invalid`] for a sketch
    /// that does not match the parameters. On an error, no record is appended.
    pub fn push(&mut self, key: Key<'_>, row: Option<Row<'_>>) -> Result<()> {
        self.push_with(key, row, Fields::default())
    }

    /// Same as [`push`](Self::push), for files with sets ([`Params::sets`]). `set` is encoded [as in an
    /// index](super::fields::encode), and must be empty if the parameters store no sets.
    ///
    /// # Errors
    /// Same as [`push`](Self::push), and [`Error::Invalid`] if the parameters require a set and `set` is empty, or if
    /// the parameters do not allow sets and `set` is not empty.
    pub fn push_with(&mut self, key: Key<'_>, row: Option<Row<'_>>, set: Fields<'_>) -> Result<()> {
        if self.shape.codes {
            return Err(Error::Invalid("a file of sketches has no codes; index the documents".into()));
        }
        if self.shape.sets
            && let Err(fault) = set.check_kept((true, false, false), None)
            && !set.bytes().is_empty()
        {
            return Err(unread(fault));
        }
        if set.bytes().is_empty() == self.shape.sets {
            let (kept, given) =
                if self.shape.sets { ("keep sets", "comes without") } else { ("keep no sets", "has one") };
            return Err(Error::Invalid(format!("these parameters {kept}, and this document {given}")));
        }
        key.check(self.shape.key)?;
        if let Some(row) = &row {
            self.check(row)?;
        }
        match key {
            Key::U64(key) => self.bytes.extend(key.to_le_bytes()),
            Key::Bytes(key) => {
                self.bytes.extend((key.len() as u16).to_le_bytes()); // at most 65,535, as checked
                self.bytes.extend_from_slice(key);
            }
        }
        self.bytes.push(row.is_some().into());
        if let Some(row) = row {
            if self.shape.fingerprint {
                self.bytes.extend(row.fingerprint.to_le_bytes());
            }
            self.bytes.extend(row.features.iter().flat_map(|feature| feature.to_le_bytes()));
            self.bytes.extend_from_slice(row.signature);
            for (sample, choice) in [row.bottom, row.modular].into_iter().zip(self.shape.samples) {
                if choice.is_some() {
                    self.bytes.extend((sample.len() as u16).to_le_bytes()); // at most 65,535, as checked
                    samples::encode(sample, &mut self.bytes);
                }
            }
        }
        if self.shape.sets {
            self.bytes.extend((set.bytes().len() as u32).to_le_bytes()); // at most FIELDS_BYTES_MAX, as in an index
            self.bytes.extend_from_slice(set.bytes());
        }
        self.ends.push((self.bytes.len(), row.is_some()));
        Ok(())
    }

    fn check(&self, row: &Row<'_>) -> Result<()> {
        let RecordShape { bands, signature_bytes, .. } = self.shape;
        if (row.features.len(), row.signature.len()) != (bands, signature_bytes) {
            return Err(Error::Invalid(format!(
                "a sketch of these parameters has {bands} features and {signature_bytes} bytes of signature, this one \
                 {} and {}",
                row.features.len(),
                row.signature.len()
            )));
        }
        for (choice, sample) in self.shape.samples.into_iter().zip([row.bottom, row.modular]) {
            samples::check(choice, sample)?;
        }
        Ok(())
    }

    /// Removes all records. Keeps the allocated memory for further records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Writes records as blocks.
#[derive(Clone)]
pub struct Encoder {
    salt: u128,
    /// Length of the file so far: the number of bytes appended to `out`.
    offset: u64,
    /// The current block: its head, which is filled in when the block ends, and its records.
    block: Vec<u8>,
    records: u32,
    blocks: u64,
    documents: u64,
    sketched: u64,
    checksums: Xxh3Default,
}

impl Encoder {
    /// Appends the header and the parameters of a file to `out`. This call and later calls append the bytes of the file
    /// in order.
    #[must_use]
    pub fn new(params: &Params, out: &mut Vec<u8>) -> Self {
        let (text, digest) = (params.encode(), params.digest());
        let header = Header::new(Role::Sketches, digest, digest);
        out.extend_from_slice(header.with_features(features_of_sketches(params), 0).as_bytes());
        let mut part = (text.len() as u32).to_le_bytes().to_vec();
        part.extend_from_slice(text.as_bytes());
        part.extend(checksum(digest, HEADER_BYTES as u64, &part).to_le_bytes());
        out.extend_from_slice(&part);
        Self {
            salt: digest,
            offset: (HEADER_BYTES + part.len()) as u64,
            block: vec![0; BLOCK_HEAD_BYTES],
            records: 0,
            blocks: 0,
            documents: 0,
            sketched: 0,
            checksums: Xxh3Default::new(),
        }
    }

    /// Adds records to the current block, and appends each completed block to `out`.
    pub fn append(&mut self, records: &Encoded, out: &mut Vec<u8>) {
        let mut start = 0;
        for &(end, sketched) in &records.ends {
            self.block.extend_from_slice(&records.bytes[start..end]);
            self.records += 1;
            self.sketched += u64::from(sketched);
            start = end;
            if self.block.len() - BLOCK_HEAD_BYTES >= BLOCK_BYTES {
                self.end_block(out);
            }
        }
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        let length = (self.block.len() - BLOCK_HEAD_BYTES) as u32;
        self.block[..4].copy_from_slice(&self.records.to_le_bytes());
        self.block[4..BLOCK_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(self.salt, self.offset, &self.block).to_le_bytes();
        self.checksums.update(&sum);
        out.extend_from_slice(&self.block);
        out.extend_from_slice(&sum);
        self.offset += (self.block.len() + WORD) as u64;
        self.blocks += 1;
        self.documents += u64::from(self.records);
        self.records = 0;
        self.block.truncate(BLOCK_HEAD_BYTES);
    }

    /// Appends the last block, if it has records, and the end of the file to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if self.records > 0 {
            self.end_block(out);
        }
        let end = SketchFileEnd {
            magic: footer::MAGIC,
            file_length: U64::new(self.offset + END_BYTES as u64),
            blocks: U64::new(self.blocks),
            documents: U64::new(self.documents),
            sketched: U64::new(self.sketched),
            digest: U128::new(self.checksums.digest128()),
            reserved: U32::ZERO,
            checksum: U32::ZERO,
        }
        .sealed(self.salt, self.offset);
        out.extend_from_slice(end.as_bytes());
    }
}

/// Decodes a file of sketches sequentially. The caller passes as many bytes to [`feed`](Self::feed) as
/// [`wants`](Self::wants) returns, until `wants` returns 0. It must then refuse further bytes.
///
/// ```
/// use twindex::Params;
/// use twindex::format::sketches::{Decoder, Encoded, Encoder, Row};
///
/// let params = Params::builder().simhash(3).build()?;
/// let mut records = Encoded::new(&params);
/// records.push("rose".into(), Some(Row { fingerprint: 7, ..Row::default() }))?;
/// let mut file = Vec::new();
/// let mut encoder = Encoder::new(&params, &mut file);
/// encoder.append(&records, &mut file);
/// encoder.finish(&mut file);
///
/// let (mut decoder, mut rest, mut found) = (Decoder::new(), &file[..], Vec::new());
/// while decoder.wants() > 0 {
///     let (part, later) = rest.split_at(decoder.wants());
///     let mut rows = decoder.feed(part).unwrap();
///     while let Some((key, row)) = rows.next().unwrap() {
///         found.push((key.to_buf(), row.unwrap().fingerprint));
///     }
///     rest = later;
/// }
/// assert_eq!(found, [(twindex::Key::from("rose").to_buf(), 7)]);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone)]
pub struct Decoder {
    next: NextPart,
    salt: u128,
    /// The incompatible feature bits of the header.
    incompatible: u32,
    params: Option<Params>,
    shape: Option<RecordShape>,
    /// The offset of the next part in the file.
    offset: u64,
    /// Whether a block with fewer than [`BLOCK_BYTES`] bytes of records was read. It must be the last block.
    short: bool,
    blocks: u64,
    documents: u64,
    sketched: u64,
    checksums: Xxh3Default,
}

/// The kind of the next part of the file.
#[derive(Clone, Copy, Debug)]
enum NextPart {
    Header,
    Length,
    Params {
        length: usize,
    },
    /// The next 8 bytes: the head of a block, or the magic of the end of the file.
    Head,
    Block {
        head: [u8; BLOCK_HEAD_BYTES],
        length: usize,
    },
    End,
    Nothing,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Creates a decoder at the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next: NextPart::Header,
            salt: 0,
            incompatible: 0,
            params: None,
            shape: None,
            offset: 0,
            short: false,
            blocks: 0,
            documents: 0,
            sketched: 0,
            checksums: Xxh3Default::new(),
        }
    }

    /// Returns the number of bytes to pass to [`feed`](Self::feed) next; 0 after the end. It is at most the maximum
    /// length of a block: about 156,000 bytes, 574,000 bytes with samples, or 135 million bytes with sets.
    #[must_use]
    pub fn wants(&self) -> usize {
        match self.next {
            NextPart::Header => HEADER_BYTES,
            NextPart::Length => WORD,
            NextPart::Params { length } | NextPart::Block { length, .. } => length + WORD,
            NextPart::Head => BLOCK_HEAD_BYTES,
            NextPart::End => END_BYTES - BLOCK_HEAD_BYTES,
            NextPart::Nothing => 0,
        }
    }

    /// Returns whether the next part contains the records of a block.
    #[must_use]
    pub fn is_at_block(&self) -> bool {
        matches!(self.next, NextPart::Block { .. })
    }

    /// Returns the offset of the next part in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the parameters; `None` if they have not been decoded yet.
    #[must_use]
    pub fn params(&self) -> Option<&Params> {
        self.params.as_ref()
    }

    /// Returns the number of records in the blocks decoded so far.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Decodes the next part, and returns the records if it is a block, otherwise none. All records of a block are
    /// checked before this returns.
    ///
    /// # Errors
    /// A [`Refusal`] with an offset relative to the start of the file. The decoder cannot be used after an error.
    pub fn feed<'b>(&mut self, bytes: &'b [u8]) -> std::result::Result<Rows<'b>, Refusal> {
        if bytes.len() != self.wants() {
            let expected = format!("{} bytes", self.wants());
            return Err(damaged(self.offset, expected, format!("{} bytes", bytes.len())));
        }
        let start = self.offset;
        match self.next {
            NextPart::Header => {
                let header = Header::read(bytes, Role::Sketches)?;
                self.salt = header.salt.get();
                self.incompatible = header.incompatible.get();
                if header.read_only_compatible.get() != 0 {
                    let found = format!("{:#x}", header.read_only_compatible.get());
                    let supported = "none; use a newer version".into();
                    return Err(Refusal::Unsupported("read-only-compatible feature set", found, supported));
                }
                if header.params_digest.get() != self.salt {
                    let found = format!("{:032x}", header.params_digest.get());
                    return Err(damaged(
                        24,
                        format!("the digest of the parameters, {found}, as the salt"),
                        "another",
                    ));
                }
                self.next = NextPart::Length;
            }
            NextPart::Length => {
                let length = u32_at(bytes, 0);
                if length > PARAMS_BYTES_MAX {
                    return Err(damaged(
                        start,
                        format!("at most {PARAMS_BYTES_MAX} bytes of parameters"),
                        length,
                    ));
                }
                self.next = NextPart::Params { length: length as usize };
            }
            NextPart::Params { length } => {
                let mut part = (length as u32).to_le_bytes().to_vec();
                part.extend_from_slice(&bytes[..length]);
                self.check(&part, u32_at(bytes, length), HEADER_BYTES as u64)?;
                let wrong =
                    |found: String| damaged(start, format!("parameters of format {}", super::VERSION), found);
                let text = std::str::from_utf8(&bytes[..length]).map_err(|e| wrong(e.to_string()))?;
                let params = Params::decode(text).map_err(|e| wrong(e.to_string()))?;
                if params.digest() != self.salt {
                    return Err(damaged(start, "the parameters of the digest in the header", "others"));
                }
                let expected = features_of_sketches(&params);
                if self.incompatible != expected {
                    let expected = format!("the incompatible features of its parameters, {expected:#x}");
                    return Err(damaged(12, expected, format!("{:#x}", self.incompatible)));
                }
                self.shape = Some(RecordShape::of(&params));
                self.params = Some(params);
                self.next = NextPart::Head;
            }
            NextPart::Head => {
                if bytes == footer::MAGIC {
                    self.next = NextPart::End;
                } else {
                    let max = self.shape.map_or(0, RecordShape::block_bytes_max);
                    let (records, length) = (u32_at(bytes, 0), u32_at(bytes, 4) as usize);
                    if records == 0 || length > max || records as usize > length {
                        let expected = format!("a block of at most {max} bytes, or the end");
                        return Err(damaged(start, expected, format!("{records} records in {length} bytes")));
                    }
                    if self.short {
                        return Err(damaged(start, "the end after a block that is not full", "a block"));
                    }
                    let mut head = [0; BLOCK_HEAD_BYTES];
                    head.copy_from_slice(bytes);
                    self.next = NextPart::Block { head, length };
                }
            }
            NextPart::Block { head, length } => {
                self.offset += bytes.len() as u64;
                return self.block(head, bytes, length, start);
            }
            NextPart::End => {
                self.end(bytes, start - BLOCK_HEAD_BYTES as u64)?;
                self.next = NextPart::Nothing;
            }
            NextPart::Nothing => {}
        }
        self.offset += bytes.len() as u64;
        Ok(Rows::none())
    }

    fn check(&self, bytes: &[u8], found: u32, offset: u64) -> std::result::Result<(), Refusal> {
        let expected = checksum(self.salt, offset, bytes);
        if found == expected {
            return Ok(());
        }
        let at = offset + bytes.len() as u64;
        Err(damaged(at, format!("checksum {expected:08x}"), format!("{found:08x}")))
    }

    fn block<'b>(
        &mut self,
        head: [u8; BLOCK_HEAD_BYTES],
        bytes: &'b [u8],
        length: usize,
        start: u64,
    ) -> std::result::Result<Rows<'b>, Refusal> {
        let Some(shape) = self.shape else { return Ok(Rows::none()) };
        let mut whole = head.to_vec();
        whole.extend_from_slice(&bytes[..length]);
        let sum = u32_at(bytes, length);
        self.check(&whole, sum, start - BLOCK_HEAD_BYTES as u64)?;
        let rows = Rows {
            shape: Some(shape),
            bytes: &bytes[..length],
            at: 0,
            left: u32_at(&head, 0),
            offset: start,
            features: Vec::new(),
            samples: [Vec::new(), Vec::new()],
            set: Fields::default(),
        };
        // Check all records before the caller gets the first one.
        let mut ahead = rows.clone();
        let (mut sketched, mut last) = (0, 0);
        loop {
            let before = ahead.at;
            let Some((_, row)) = ahead.next().map_err(Refusal::Damaged)? else { break };
            sketched += u64::from(row.is_some());
            last = before;
        }
        if last >= BLOCK_BYTES {
            let found = format!("one at {last}");
            return Err(damaged(start, format!("no record after the first {BLOCK_BYTES} bytes"), found));
        }
        self.short = length < BLOCK_BYTES;
        self.checksums.update(&sum.to_le_bytes());
        self.blocks += 1;
        self.documents += u64::from(rows.left);
        self.sketched += sketched;
        self.next = NextPart::Head;
        Ok(rows)
    }

    /// Checks the end of the file, which begins at `offset`. `bytes` are the bytes of the end after the magic.
    fn end(&self, bytes: &[u8], offset: u64) -> std::result::Result<(), Refusal> {
        let whole = [&footer::MAGIC[..], bytes].concat();
        let end = SketchFileEnd::read_from_bytes(&whole).map_err(|_| {
            let found = format!("{} bytes", whole.len());
            Refusal::Damaged(Fault::new(offset, format!("an end of {END_BYTES} bytes"), found))
        })?;
        self.check(&whole[..END_BYTES - WORD], end.checksum.get(), offset)?;
        for (at, what, expected, found) in [
            (8, "file length", offset + END_BYTES as u64, end.file_length),
            (16, "number of blocks", self.blocks, end.blocks),
            (24, "number of documents", self.documents, end.documents),
            (32, "number of sketches", self.sketched, end.sketched),
        ] {
            if found.get() != expected {
                return Err(damaged(offset + at, format!("{what} {expected}"), found));
            }
        }
        if end.digest.get() != self.checksums.digest128() {
            return Err(damaged(offset + 40, "the digest of the blocks before", "another"));
        }
        if end.reserved.get() != 0 {
            return Err(damaged(offset + 56, "zero", end.reserved));
        }
        Ok(())
    }
}

fn damaged(offset: u64, expected: impl Into<String>, found: impl ToString) -> Refusal {
    Refusal::Damaged(Fault::new(offset, expected, found))
}

/// Reads a little-endian number of 4 bytes at position `at`.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + WORD].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// Iterates over the records of a block.
#[derive(Clone, Debug)]
pub struct Rows<'b> {
    /// The parts of each record; `None` only if there are no records.
    shape: Option<RecordShape>,
    bytes: &'b [u8],
    at: usize,
    left: u32,
    /// The offset of `bytes` in the file.
    offset: u64,
    features: Vec<u64>,
    samples: [Vec<u64>; 2],
    set: Fields<'b>,
}

impl<'b> Rows<'b> {
    fn none() -> Self {
        Self {
            shape: None,
            bytes: &[],
            at: 0,
            left: 0,
            offset: 0,
            features: Vec::new(),
            samples: [Vec::new(), Vec::new()],
            set: Fields::default(),
        }
    }

    /// Returns the next record and its set, which is empty if sets are not stored.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    #[allow(clippy::type_complexity, reason = "a key, and what comes with it")]
    pub fn next_with_set(
        &mut self,
    ) -> std::result::Result<Option<(Key<'b>, Option<Row<'_>>, Fields<'b>)>, Fault> {
        let Some((key, sketched)) = self.read()? else { return Ok(None) };
        Ok(Some((key, sketched.map(|parts| self.row(parts)), self.set)))
    }

    /// Returns the key of the next record, and its sketch if it has one; `None` after the last record.
    ///
    /// # Errors
    /// A [`Fault`] for an invalid record in a block with a valid checksum; its offset is relative to the start of the
    /// file.
    #[allow(clippy::should_implement_trait, reason = "what it gives is lent until the next call")]
    pub fn next(&mut self) -> std::result::Result<Option<(Key<'b>, Option<Row<'_>>)>, Fault> {
        let Some((key, sketched)) = self.read()? else { return Ok(None) };
        Ok(Some((key, sketched.map(|parts| self.row(parts)))))
    }

    /// Returns a sketch that consists of the given fingerprint and signature, and of the features and samples in the
    /// buffers.
    fn row(&self, (fingerprint, signature): (u64, &'b [u8])) -> Row<'_> {
        let [bottom, modular] = &self.samples;
        Row { fingerprint, features: &self.features, signature, bottom, modular }
    }

    /// Reads the next record. Returns the key and, for a record with a sketch, the fingerprint and the signature.
    #[allow(clippy::type_complexity, reason = "a key, and what comes with it")]
    fn read(&mut self) -> std::result::Result<Option<(Key<'b>, Option<(u64, &'b [u8])>)>, Fault> {
        let Some(shape) = self.shape.filter(|_| self.left > 0) else {
            return match self.bytes.len() - self.at {
                0 => Ok(None),
                more => Err(self.fault("the end of the block", format!("{more} more bytes"))),
            };
        };
        self.left -= 1;
        let key = match shape.key {
            KeyKind::U64 => Key::U64(wide(self.take(8, "key")?)),
            KeyKind::Bytes => {
                let length = wide(self.take(2, "length of a key")?) as usize;
                if length == 0 {
                    return Err(self.fault("a key of 1 to 65535 bytes", "one of 0"));
                }
                Key::Bytes(self.take(length, "key")?)
            }
        };
        let sketched = match self.take(1, "a byte, 0 or 1")? {
            [0] => None,
            [1] => Some(self.read_sketch(shape)?),
            other => return Err(self.fault("0 or 1", format!("{other:?}"))),
        };
        if shape.sets {
            let length = wide(self.take(4, "length of a set")?) as usize;
            let at = self.offset + self.at as u64;
            self.set = Fields::of(self.take(length, "a set")?);
            let checked = self
                .set
                .check_kept((true, false, false), None)
                .and_then(|()| self.set.set_into(&mut Vec::new()));
            checked.map_err(|fault| Fault { offset: at + fault.offset, ..fault })?;
        }
        Ok(Some((key, sketched)))
    }

    /// Reads a sketch. Returns the fingerprint and signature; decodes features and samples into buffers of `self`.
    fn read_sketch(&mut self, shape: RecordShape) -> std::result::Result<(u64, &'b [u8]), Fault> {
        let fingerprint = if shape.fingerprint { wide(self.take(8, "fingerprint")?) } else { 0 };
        let features = self.take(shape.bands * 8, "features")?;
        self.features.clear();
        self.features.extend(features.chunks_exact(8).map(wide));
        let signature = self.take(shape.signature_bytes, "signature")?;
        if let Some(&last) = signature.last()
            && shape.last_bits > 0
            && last >> shape.last_bits != 0
        {
            return Err(self.fault("zeros after the last minimum", format!("{last:#x}")));
        }
        for (which, choice) in shape.samples.into_iter().enumerate() {
            self.samples[which].clear();
            let Some(choice) = choice else { continue };
            let count_at = self.offset + self.at as u64;
            let count = wide(self.take(2, "number of sampled hashes")?) as usize;
            choice.check_count(count).map_err(|fault| Fault { offset: count_at, ..fault })?;
            let values_at = self.offset + self.at as u64;
            let values = self.take(count * VALUE_BYTES as usize, "sampled hashes")?;
            self.samples[which].extend(samples::decode(values));
            let checked = choice.check_values(&self.samples[which]);
            checked.map_err(|fault| Fault { offset: values_at + fault.offset, ..fault })?;
        }
        Ok((fingerprint, signature))
    }

    fn take(&mut self, length: usize, what: &str) -> std::result::Result<&'b [u8], Fault> {
        let rest: &'b [u8] = &self.bytes[self.at..];
        let Some(taken) = rest.get(..length) else {
            return Err(self.fault(&format!("{length} bytes of {what}"), format!("{} bytes", rest.len())));
        };
        self.at += length;
        Ok(taken)
    }

    fn fault(&self, expected: &str, found: impl ToString) -> Fault {
        Fault::new(self.offset + self.at as u64, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::header::FEATURE_NARROW;
    use crate::key::KeyBuf;

    type Found = (KeyBuf, Option<(u64, Vec<u64>, Vec<u8>, [Vec<u64>; 2])>);

    fn owned(key: Key<'_>, row: Option<Row<'_>>) -> Found {
        let row = row.map(|row| {
            let samples = [row.bottom.to_vec(), row.modular.to_vec()];
            (row.fingerprint, row.features.to_vec(), row.signature.to_vec(), samples)
        });
        (key.to_buf(), row)
    }

    /// Decodes all records of a file.
    fn read(file: &[u8]) -> std::result::Result<Vec<Found>, Refusal> {
        let (mut decoder, mut rest, mut found) = (Decoder::new(), file, Vec::new());
        while decoder.wants() > 0 {
            let Some((part, later)) = rest.split_at_checked(decoder.wants()) else {
                return Err(damaged(decoder.offset(), "more", "the end"));
            };
            let mut rows = decoder.feed(part)?;
            while let Some((key, row)) = rows.next().map_err(Refusal::Damaged)? {
                found.push(owned(key, row));
            }
            rest = later;
        }
        if rest.is_empty() { Ok(found) } else { Err(damaged(decoder.offset(), "the end", "more")) }
    }

    fn file(params: &Params, records: &[Encoded]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(params, &mut file);
        for records in records {
            encoder.append(records, &mut file);
        }
        encoder.finish(&mut file);
        file
    }

    /// Parameters that store every part, with a signature that ends in the middle of a byte.
    fn everything() -> Params {
        let builder = Params::builder().simhash(3).minhash(3, 3).signature_bits(4);
        builder.bottom(5).modulus(7).build().unwrap()
    }

    const ROW: Row<'static> = Row {
        fingerprint: 0x0123_4567_89ab_cdef,
        features: &[1, u64::MAX, 3],
        signature: &[0x21, 0x43, 0x65, 0x87, 0x09],
        bottom: &[4, 9, (1 << 48) - 1],
        modular: &[7, 700],
    };

    fn small() -> Vec<u8> {
        let params = everything();
        let mut records = Encoded::new(&params);
        records.push("rose".into(), Some(ROW)).unwrap();
        records.push("empty".into(), None).unwrap();
        records.push("tulip".into(), Some(Row { modular: &[], ..ROW })).unwrap();
        file(&params, &[records])
    }

    #[test]
    fn records_round_trip_in_order() {
        let found = read(&small()).unwrap();
        assert_eq!(found[0], owned("rose".into(), Some(ROW)));
        assert_eq!(found[1], owned("empty".into(), None));
        assert_eq!(found[2], owned("tulip".into(), Some(Row { modular: &[], ..ROW })));
        assert_eq!(found.len(), 3);

        let numbers = Params::builder().u64_keys().simhash(3).build().unwrap();
        let mut records = Encoded::new(&numbers);
        let row = Row { fingerprint: 5, ..Row::default() };
        records.push(u64::MAX.into(), Some(row)).unwrap();
        assert_eq!(read(&file(&numbers, &[records])).unwrap(), [owned(u64::MAX.into(), Some(row))]);
        assert_eq!(read(&file(&numbers, &[])).unwrap(), []);
    }

    #[test]
    fn every_flipped_bit_of_a_sketch_file_is_detected() {
        let file = small();
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let refusal = read(&damaged).expect_err(&format!("bit {bit}"));
            assert!(matches!(refusal, Refusal::Damaged(_)), "bit {bit}: {refusal:?}");
        }
    }

    #[test]
    fn every_truncation_and_extension_is_detected() {
        let file = small();
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "{length} bytes");
        }
        assert!(read(&[&file[..], b"\0"].concat()).is_err());
    }

    /// Encodes records of very different lengths that fill several blocks.
    fn large(records: usize) -> (Params, Vec<Encoded>) {
        let params = Params::builder().minhash(40, 3).build().unwrap();
        let features: Vec<u64> = (0..40).collect();
        let encoded = (0..records)
            .map(|i| {
                let mut one = Encoded::new(&params);
                let key = "k".repeat(1 + i * i * 31 % 65_535);
                let row = Row { features: &features, signature: &[i as u8; 120], ..Row::default() };
                one.push((&key).into(), (i % 5 > 0).then_some(row)).unwrap();
                one
            })
            .collect();
        (params, encoded)
    }

    #[test]
    fn block_boundaries_depend_only_on_the_records() {
        let (params, singly) = large(60);
        let expected = file(&params, &singly);
        let mut whole = Encoded::new(&params);
        for one in &singly {
            let start = whole.bytes.len();
            whole.bytes.extend_from_slice(&one.bytes);
            whole.ends.extend(one.ends.iter().map(|&(end, sketched)| (start + end, sketched)));
        }
        assert!(expected == file(&params, &[whole]));
        assert_eq!(read(&expected).unwrap().len(), 60);
        let mut decoder = Decoder::new();
        let (mut at, mut blocks) = (0, 0);
        while decoder.wants() > 0 {
            assert!(decoder.wants() < 200_000);
            blocks += u32::from(decoder.is_at_block());
            let next = at + decoder.wants();
            decoder.feed(&expected[at..next]).unwrap();
            at = next;
        }
        assert!(blocks > 5, "{blocks} blocks");
    }

    #[test]
    fn missing_and_swapped_blocks_are_detected() {
        let (params, singly) = large(60);
        let whole = file(&params, &singly);
        let (mut decoder, mut at, mut starts) = (Decoder::new(), 0, Vec::new());
        while decoder.wants() > 0 {
            if decoder.is_at_block() {
                starts.push(at - BLOCK_HEAD_BYTES);
            }
            let next = at + decoder.wants();
            decoder.feed(&whole[at..next]).unwrap();
            at = next;
        }
        let (first, second) = (&whole[starts[0]..starts[1]], &whole[starts[1]..starts[2]]);
        let (head, tail) = (&whole[..starts[0]], &whole[starts[2]..]);
        assert!(read(&[head, first, second, tail].concat()).is_ok());
        for forged in [
            [head, second, first, tail].concat(),
            [head, second, tail].concat(),
            [head, first, tail].concat(),
            [head, first, first, second, tail].concat(),
        ] {
            assert!(read(&forged).is_err());
        }
    }

    #[test]
    fn block_of_another_file_with_equal_parameters_is_refused() {
        let params = Params::builder().simhash(3).build().unwrap();
        let of = |fingerprint| {
            let mut records = Encoded::new(&params);
            records.push("k".into(), Some(Row { fingerprint, ..Row::default() })).unwrap();
            file(&params, &[records])
        };
        let (mut one, other) = (of(1), of(2));
        let end = one.len() - END_BYTES;
        one[..end].copy_from_slice(&other[..end]);
        let Err(Refusal::Damaged(fault)) = read(&one) else { panic!("not found") };
        assert_eq!((fault.offset, &*fault.expected), (end as u64 + 40, "the digest of the blocks before"));
    }

    #[test]
    fn wrong_counts_at_the_end_are_refused_with_field_name() {
        let file = small();
        let salt = everything().digest();
        let start = file.len() - END_BYTES;
        for (at, what) in
            [(8, "file length"), (16, "blocks"), (24, "documents"), (32, "sketches"), (56, "zero")]
        {
            let mut end = SketchFileEnd::read_from_bytes(&file[start..]).unwrap();
            end.as_mut_bytes()[at] ^= 1;
            let forged = [&file[..start], end.sealed(salt, start as u64).as_bytes()].concat();
            let Err(Refusal::Damaged(fault)) = read(&forged) else { panic!("{what}") };
            assert!(fault.offset == (start + at) as u64 && fault.expected.contains(what), "{fault:?}");
        }
    }

    /// Encodes blocks with valid checksums and counts, so that only the contents of the records can be invalid.
    fn resealed(head: &[u8], salt: u128, blocks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut file = head.to_vec();
        let (mut sums, mut documents) = (Xxh3Default::new(), 0);
        for (records, bytes) in blocks {
            let offset = file.len() as u64;
            let mut block = records.to_le_bytes().to_vec();
            block.extend((bytes.len() as u32).to_le_bytes());
            block.extend_from_slice(bytes);
            let sum = checksum(salt, offset, &block).to_le_bytes();
            sums.update(&sum);
            file.extend(block);
            file.extend(sum);
            documents += u64::from(*records);
        }
        let offset = file.len() as u64;
        let end = SketchFileEnd {
            magic: footer::MAGIC,
            file_length: U64::new(offset + END_BYTES as u64),
            blocks: U64::new(blocks.len() as u64),
            documents: U64::new(documents),
            sketched: U64::new(documents),
            digest: U128::new(sums.digest128()),
            reserved: U32::ZERO,
            checksum: U32::ZERO,
        };
        file.extend_from_slice(end.sealed(salt, offset).as_bytes());
        file
    }

    #[test]
    fn invalid_records_with_valid_checksums_are_refused() {
        let params = Params::builder().minhash(1, 1).signature_bits(4).build().unwrap();
        let mut head = Vec::new();
        let salt = Encoder::new(&params, &mut head).salt;
        let row = Row { features: &[1], signature: &[0x0f], ..Row::default() };
        let mut records = Encoded::new(&params);
        records.push("k".into(), Some(row)).unwrap();
        let good = records.bytes.clone();
        assert_eq!(resealed(&head, salt, &[(1, &good)]), file(&params, &[records]));
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let mut full = Encoded::new(&params);
        full.push((&vec![b'k'; 65_530]).into(), Some(row)).unwrap();
        full.push("k".into(), Some(row)).unwrap();
        assert!(full.ends[0].0 >= BLOCK_BYTES, "full without the second");
        let keyless = [&[0, 0], &good[3..]].concat();
        for (what, blocks) in [
            ("an empty key", vec![(1, keyless)]),
            ("a key beyond the block", vec![(1, with(1, 1))]),
            ("neither 0 nor 1", vec![(1, with(3, 2))]),
            ("bits after the last minimum", vec![(1, with(12, 0x1f))]),
            ("more bytes than records", vec![(1, [&good[..], b"x"].concat())]),
            ("more records than bytes", vec![(2, good.clone())]),
            ("no records", vec![(0, good.clone())]),
            ("a block that is not full before another", vec![(1, good.clone()), (1, good.clone())]),
            ("a record after a full block", vec![(2, full.bytes.clone())]),
        ] {
            let blocks: Vec<(u32, &[u8])> = blocks.iter().map(|(n, bytes)| (*n, &bytes[..])).collect();
            assert!(read(&resealed(&head, salt, &blocks)).is_err(), "{what}");
        }
    }

    #[test]
    fn invalid_samples_with_valid_checksums_are_refused_at_their_offset() {
        let params = everything();
        let mut head = Vec::new();
        let salt = Encoder::new(&params, &mut head).salt;
        let encoded = |params: &Params, row| {
            let mut records = Encoded::new(params);
            records.push("k".into(), Some(row)).unwrap();
            records.bytes
        };
        let start = (head.len() + BLOCK_HEAD_BYTES) as u64;
        let refused = |bytes: &[u8]| match read(&resealed(&head, salt, &[(1, bytes)])) {
            Err(Refusal::Damaged(fault)) => fault,
            other => panic!("{other:?}"),
        };
        let good = encoded(&params, ROW);
        assert!(read(&resealed(&head, salt, &[(1, &good)])).is_ok());
        // The last hash is 700, a multiple of 7. Change it to 701.
        let mut lying = good.clone();
        lying[good.len() - 6] += 1;
        let fault = refused(&lying);
        assert_eq!(fault.offset, start + good.len() as u64 - 6);
        assert!(fault.expected.contains("multiple of 7") && fault.found == "701", "{fault:?}");
        // Six hashes exceed the limit of five. Their number follows the key, the flag, the fingerprint, features and
        // signature.
        let roomy = Params { bottom: 6, ..params };
        let fault = refused(&encoded(&roomy, Row { bottom: &[1, 2, 3, 4, 5, 6], ..ROW }));
        assert_eq!((fault.offset, &*fault.expected), (start + 3 + 1 + 8 + 24 + 5, "1 to 5 sampled hashes"));
        assert_eq!(fault.found, "6");
    }

    #[test]
    fn wrong_header_features_and_wrong_digests_give_different_errors() {
        let (file, salt) = (small(), everything().digest());
        let with = |header: Header| read(&[header.as_bytes(), &file[HEADER_BYTES..]].concat()).unwrap_err();
        let featured = Header::new(Role::Sketches, salt, salt).with_features(0, 1);
        let Refusal::Unsupported(field, found, _) = with(featured) else { panic!("damage") };
        assert_eq!((field, &*found), ("read-only-compatible feature set", "0x1"));
        let narrow = Header::new(Role::Sketches, salt, salt).with_features(FEATURE_NARROW, 0);
        let Refusal::Damaged(fault) = with(narrow) else { panic!("unsupported") };
        assert_eq!((fault.offset, &*fault.found), (12, "0x20"));
        let Refusal::Damaged(fault) = with(Header::new(Role::Sketches, salt, 1)) else {
            panic!("unsupported")
        };
        assert!(fault.offset == 24 && fault.expected.contains("digest"), "{fault:?}");
    }

    #[test]
    fn parameters_that_cannot_be_read_are_refused_with_the_reason() {
        let text = everything().encode().replacen("within=3", "within=99", 1);
        let salt = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        let mut file = Header::new(Role::Sketches, salt, salt).as_bytes().to_vec();
        let mut part = (text.len() as u32).to_le_bytes().to_vec();
        part.extend_from_slice(text.as_bytes());
        let sum = checksum(salt, HEADER_BYTES as u64, &part);
        file.extend(part);
        file.extend(sum.to_le_bytes());
        let Err(Refusal::Damaged(fault)) = read(&file) else { panic!("read") };
        assert!(fault.found.contains("within is 99"), "{fault:?}");
    }

    #[test]
    fn sketches_that_do_not_match_the_parameters_are_refused() {
        let mut records = Encoded::new(&everything());
        let refused = [
            Row { features: &[1], ..ROW },
            Row { signature: &[1], ..ROW },
            Row { bottom: &[], ..ROW },
            Row { bottom: &[2, 1], ..ROW },
            Row { modular: &[1 << 48], ..ROW },
            Row { bottom: &[1, 2, 3, 4, 5, 6], ..ROW },
            Row { modular: &[7, 8], ..ROW },
        ];
        for row in refused {
            assert!(records.push("k".into(), Some(row)).is_err(), "{row:?}");
        }
        assert!(records.push("".into(), Some(ROW)).is_err());
        assert!(records.push(7.into(), Some(ROW)).is_err());
        assert!(records.bytes.is_empty() && records.ends.is_empty());
        let plain = Params::builder().simhash(3).build().unwrap();
        let row = Row { bottom: &[1], ..Row::default() };
        assert!(Encoded::new(&plain).push("k".into(), Some(row)).is_err());
    }
}
