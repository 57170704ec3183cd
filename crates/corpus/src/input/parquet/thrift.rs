//! Checks the footers and page headers of Parquet files, which use the compact protocol of Thrift, before arrow-rs
//! reads them.
//!
//! arrow-rs allocates memory for a stated length before it checks that the bytes exist, and reads nested groups
//! recursively. A failed allocation or a stack overflow aborts the process. So arrow-rs must receive only lengths that
//! fit in the file, and groups nested no deeper than [`GROUPS_MAX`].
//!
//! arrow-rs identifies fields by the low bits of their numbers. It reads each field with the expected type, even if the
//! file states another type. So a file is accepted only if arrow-rs reads the same values as this check: known fields
//! must have their types, and field numbers must be in range.

use std::fs;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use twindex::sys::vfs::ReadFile;

/// Maximum nesting depth of column groups.
const GROUPS_MAX: usize = 64;
/// Maximum nesting depth of structures and lists. A valid footer has a depth of about eight.
const DEPTH_MAX: u32 = 32;
/// Number of bytes of a page header that are read first, and maximum length of a page header. A long header contains
/// the smallest and the largest text of its page.
const HEAD_BYTES: u64 = 1 << 10;
const HEAD_BYTES_MAX: u64 = 16 << 20;
/// Pages up to this decompressed size in bytes are accepted with any record limit and compression ratio.
const PAGE_BYTES: u64 = 32 << 20;
/// The maximum ratio of decompressed to compressed size for pages above [`PAGE_BYTES`]; the maximum of gzip.
const GROWTH_MAX: u64 = 1032;

/// The number of the footer field that describes the encryption of columns, if the footer itself is not encrypted.
const ENCRYPTION_ALGORITHM: i16 = 8;
/// The error for a file with encrypted columns.
const ENCRYPTED: &str = "it is encrypted, which twindex does not decode: write it again without encryption";

/// Length in bytes of the end of a file: the length of the footer, and the magic number.
const TAIL_BYTES: u64 = 8;

/// Walks over one Thrift structure to check it, without storing its values.
struct ThriftWalker<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// An error in a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThriftError {
    /// The structure continues after the end of the bytes.
    Short,
    Bad,
}

type ThriftResult<T> = std::result::Result<T, ThriftError>;

/// The type codes of fields in the compact protocol.
const BOOLEAN: Field = Field(1, &[]); // true; false is type 2
const BYTE: Field = Field(3, &[]);
const I32: Field = Field(5, &[]);
const BINARY: Field = Field(8, &[]);
const LIST: Field = Field(9, &[]);
const EMPTY: Field = Field(STRUCT, &[]);
const STRUCT: u8 = 12;

/// The type code of a field. For a structure, also its known fields, numbered from 1. Unknown fields may have any type.
#[derive(Clone, Copy)]
struct Field(u8, &'static [Field]);

/// The start of a footer, up to the schema.
const FOOTER: &[Field] = &[I32, LIST];
/// An element of a schema.
const ELEMENT: &[Field] = &[I32, I32, I32, BINARY, I32, I32, I32, I32, I32, Field(STRUCT, LOGICAL)];
/// The logical type of a column.
const LOGICAL: &[Field] = &[
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Field(STRUCT, &[I32, I32]),
    EMPTY,
    TIME,
    TIME,
    EMPTY,
    Field(STRUCT, &[BYTE, BOOLEAN]),
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Field(STRUCT, &[BYTE]),
    Field(STRUCT, &[BINARY]),
    Field(STRUCT, &[BINARY, I32]),
];
const TIME: Field = Field(STRUCT, &[BOOLEAN, Field(STRUCT, &[EMPTY, EMPTY, EMPTY])]);
/// The header of a page. It contains the header of a data page, an index page, a dictionary page, or a data page of
/// version 2.
const PAGE: &[Field] = &[
    I32,
    I32,
    I32,
    I32,
    Field(STRUCT, &[I32, I32, I32, I32]),
    EMPTY,
    Field(STRUCT, &[I32, I32, BOOLEAN]),
    Field(STRUCT, &[I32, I32, I32, I32, I32, I32, BOOLEAN]),
];

impl<'b> ThriftWalker<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> ThriftResult<u8> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, bytes: u64) -> ThriftResult<()> {
        let rest = (self.bytes.len() - self.at) as u64;
        // guard: a text does not end before it begins
        if bytes > rest {
            return Err(ThriftError::Short);
        }
        self.at += bytes as usize;
        Ok(())
    }

    fn varint(&mut self) -> ThriftResult<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        // guard: a number has ten bytes at most
        // without it: Err(ThriftError::Bad) -> Ok(value)
        Err(ThriftError::Bad)
    }

    /// Reads a signed number.
    fn number(&mut self) -> ThriftResult<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Reads a non-negative 32-bit number.
    fn count(&mut self) -> ThriftResult<u64> {
        // guard: lengths of pages are in their range
        // without it: return Ok(self.number()? as u64);
        i32::try_from(self.number()?).ok().and_then(|count| u64::try_from(count).ok()).ok_or(ThriftError::Bad)
    }

    /// Reads the head of a list: the type code of its items, and their number.
    fn list(&mut self) -> ThriftResult<(u8, u64)> {
        let head = self.byte()?;
        let items = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((head & 15, items))
    }

    /// Passes the number of each field in a structure to `take`. If `take` returns that it has not read the value,
    /// skips it.
    fn fields(
        &mut self,
        known: &[Field],
        depth: u32,
        take: &mut dyn FnMut(&mut Self, i16) -> ThriftResult<bool>,
    ) -> ThriftResult<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let next = if head >> 4 == 0 { self.number()? } else { i64::from(id) + i64::from(head >> 4) };
            // guard: the number of a field is in its range
            // without it: i16::try_from(next).map_err(|_| ThriftError::Bad)? -> i16::try_from(next).unwrap_or(100)
            id = i16::try_from(next).map_err(|_| ThriftError::Bad)?;
            // The type codes of true and false are treated as one type.
            let of_type = if head & 15 == 2 { BOOLEAN.0 } else { head & 15 };
            let field = usize::try_from(id).ok().and_then(|id| known.get(id.checked_sub(1)?));
            // guard: a field that is known has its type
            if field.is_some_and(|field| field.0 != of_type) {
                return Err(ThriftError::Bad);
            }
            if !take(self, id)? && of_type != BOOLEAN.0 {
                self.value(of_type, field.map_or(&[], |field| field.1), depth + 1)?;
            }
        }
    }

    /// Skips a value. Must not be called for a boolean field of a structure, whose type code encodes the value.
    /// Booleans in lists are an error: each takes a byte, but arrow-rs does not skip this byte.
    fn value(&mut self, of_type: u8, known: &[Field], depth: u32) -> ThriftResult<()> {
        // guard: structures are not too deep
        if depth > DEPTH_MAX {
            return Err(ThriftError::Bad);
        }
        match of_type {
            // guard: a list has no booleans
            // without it: 1 | 2 => self.pass(1),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => {
                let bytes = self.varint()?;
                self.pass(bytes)
            }
            9 | 10 => {
                let (of_type, items) = self.list()?;
                (0..items).try_for_each(|_| self.value(of_type, &[], depth + 1))
            }
            11 => {
                let items = self.varint()?;
                if items == 0 {
                    return Ok(());
                }
                let types = self.byte()?;
                (0..items).try_for_each(|_| {
                    self.value(types >> 4, &[], depth + 1)?;
                    self.value(types & 15, &[], depth + 1)
                })
            }
            STRUCT => self.fields(known, depth, &mut |_, _| Ok(false)),
            13 => self.pass(16),
            _ => Err(ThriftError::Bad),
        }
    }
}

/// Checks the number and the nesting of the groups in a schema.
fn check_schema(walk: &mut ThriftWalker<'_>) -> ThriftResult<()> {
    let (_, elements) = walk.list()?;
    // For each open group, the number of its children that were not yet read.
    let mut open: Vec<u64> = Vec::new();
    for _ in 0..elements {
        let mut children = 0;
        walk.fields(ELEMENT, 2, &mut |walk, id| {
            let is_children = id == 5;
            if is_children {
                children = walk.count()?;
            }
            Ok(is_children)
        })?;
        // guard: a group has no more columns than there are
        if children > elements {
            return Err(ThriftError::Bad);
        }
        if children > 0 {
            open.push(children);
            // guard: groups of columns are not too deep
            if open.len() > GROUPS_MAX {
                return Err(ThriftError::Bad);
            }
        } else {
            // A leaf closes each open group whose last child it is.
            while let Some(wanted) = open.last_mut() {
                *wanted -= 1;
                if *wanted > 0 {
                    break;
                }
                open.pop();
            }
        }
    }
    Ok(())
}

/// Checks the footer of a Parquet file.
///
/// # Errors
///
/// The file has no footer, or the footer is invalid.
pub(crate) fn check_footer(file: &fs::File) -> std::result::Result<(), String> {
    let message = |error: io::Error| error.to_string();
    let bytes = file.metadata().map_err(message)?.len();
    let no_parquet = || "it does not end as a Parquet file does".to_owned();
    let before = bytes.checked_sub(TAIL_BYTES).ok_or_else(no_parquet)?;
    let mut tail = [0; TAIL_BYTES as usize];
    ReadFile::read_exact_at(file, &mut tail, before).map_err(message)?;
    let [a, b, c, d, magic @ ..] = tail;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    // guard: a Parquet file ends as one
    if magic != *b"PAR1" {
        return Err(if magic == *b"PARE" { ENCRYPTED.to_owned() } else { no_parquet() });
    }
    let start = before
        // guard: a footer is not longer than its file
        // without it: .checked_sub(length) -> .checked_sub(length).or(REMOVED.then_some(0))
        .checked_sub(length)
        .ok_or_else(|| format!("its end names a footer of {length} bytes, and the file has {bytes}"))?;
    let mut footer = vec![0; length as usize];
    ReadFile::read_exact_at(file, &mut footer, start).map_err(message)?;
    let (mut has_schema, mut is_encrypted) = (false, false);
    let walked = ThriftWalker::new(&footer).fields(FOOTER, 0, &mut |walk, id| {
        // arrow-rs uses the first schema that it finds. Only the version may precede the schema, because an unknown
        // field could contain another schema.
        let is_schema = id == 2 && !has_schema;
        is_encrypted |= id == ENCRYPTION_ALGORITHM;
        if is_schema {
            has_schema = true;
            check_schema(walk)?;
        }
        // guard: only the version precedes a schema
        // without it: has_schema || id == 1 -> true
        if has_schema || id == 1 { Ok(is_schema) } else { Err(ThriftError::Bad) }
    });
    walked
        .map_err(|_| "its footer is damaged, or has too many groups of columns in each other".to_owned())?;
    if is_encrypted { Err(ENCRYPTED.to_owned()) } else { Ok(()) }
}

/// Reads a page header. Returns the decompressed size, the compressed size, and the length of the header.
fn page(bytes: &[u8]) -> ThriftResult<(u64, u64, usize)> {
    let mut walk = ThriftWalker::new(bytes);
    let (mut unpacked, mut packed) = (None, None);
    walk.fields(PAGE, 0, &mut |walk, id| {
        let wanted = match id {
            2 => &mut unpacked,
            3 => &mut packed,
            _ => return Ok(false),
        };
        *wanted = Some(walk.count()?);
        Ok(true)
    })?;
    match (unpacked, packed) {
        (Some(unpacked), Some(packed)) => Ok((unpacked, packed, walk.at)),
        _ => Err(ThriftError::Bad),
    }
}

/// A file for arrow-rs: page headers are checked before they are read, and reads past the end are refused. Several threads
/// may read it.
pub(crate) struct Checked {
    file: Arc<fs::File>,
    bytes: u64,
    page_bytes_max: u64,
}

impl Checked {
    /// Creates a checked file. A page may have up to four times `record_bytes_max` bytes, or [`PAGE_BYTES`] if larger.
    ///
    /// # Errors
    ///
    /// The size of the file cannot be read.
    pub(crate) fn new(file: fs::File, record_bytes_max: usize) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let page_bytes_max = (record_bytes_max as u64).saturating_mul(4).max(PAGE_BYTES);
        Ok(Self { file: Arc::new(file), bytes, page_bytes_max })
    }
}

impl Length for Checked {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Checked {
    type T = PageHeader;

    /// arrow-rs calls this function only to read page headers. It reads some headers in other ways.
    fn get_read(&self, start: u64) -> Result<PageHeader> {
        let (file, bytes) = (Arc::clone(&self.file), self.bytes);
        Ok(PageHeader { file, start, bytes, page_bytes_max: self.page_bytes_max, read: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // guard: bytes that a file does not have are not asked for
        if length as u64 > self.bytes.saturating_sub(start) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start}, where the file ends before")));
        }
        let mut bytes = vec![0; length];
        ReadFile::read_exact_at(&*self.file, &mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A page header, which is read and checked on first access.
pub(crate) struct PageHeader {
    file: Arc<fs::File>,
    start: u64,
    bytes: u64,
    page_bytes_max: u64,
    /// The bytes of the header; `None` before they are read.
    read: Option<Cursor<Vec<u8>>>,
}

impl PageHeader {
    fn load(&self) -> io::Result<Vec<u8>> {
        // guard: a header of a page is not read to any length
        // without it: HEAD_BYTES_MAX -> u64::MAX
        let rest = self.bytes.saturating_sub(self.start).min(HEAD_BYTES_MAX);
        let mut wanted = HEAD_BYTES;
        loop {
            let mut bytes = vec![0; wanted.min(rest) as usize];
            ReadFile::read_exact_at(&*self.file, &mut bytes, self.start)?;
            match page(&bytes) {
                Err(ThriftError::Short) if wanted < rest => wanted *= 8,
                Err(_) => return Err(io::Error::other("the header of a page is damaged")),
                Ok((unpacked, packed, length)) => {
                    // guard: a page does not grow by more than it can
                    // without it: GROWTH_MAX -> u64::MAX
                    let max = packed.saturating_mul(GROWTH_MAX).max(PAGE_BYTES).min(self.page_bytes_max);
                    // guard: a page is not longer than pages are
                    if unpacked > max {
                        return Err(io::Error::other(format!(
                            "a page of {packed} bytes has {unpacked} by its header once decompressed, more than the limit of {max}"
                        )));
                    }
                    bytes.truncate(length);
                    return Ok(bytes);
                }
            }
        }
    }
}

impl Read for PageHeader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.is_none() {
            self.read = Some(Cursor::new(self.load()?));
        }
        self.read.as_mut().map_or(Ok(0), |head| head.read(buffer))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// Encodes a non-negative number as a signed number.
    fn number(value: u64) -> Vec<u8> {
        varint(value << 1)
    }

    fn file(bytes: &[u8]) -> fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Returns a Parquet file without rows. Element `i` of its schema has `children[i]` children.
    fn of_schema(children: &[u64]) -> Vec<u8> {
        of_footer(&[b"\x15\x02", &schema(children)[..]].concat())
    }

    fn of_footer(footer: &[u8]) -> Vec<u8> {
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        [&b"PAR1"[..], footer, &length, b"PAR1"].concat()
    }

    /// Returns the bytes of a footer that follow the version: a schema with these numbers of children.
    fn schema(children: &[u64]) -> Vec<u8> {
        let mut footer = [&b"\x19\xfc"[..], &varint(children.len() as u64)].concat();
        for &children in children {
            // An element is optional (3), named `a` (4), and of type int32 (1) unless it has children (5).
            let (of_type, repetition) =
                if children == 0 { (&b"\x15\x02"[..], 0x25) } else { (&b""[..], 0x35) };
            footer.extend([of_type, &[repetition, 0x02, 0x18, 1, b'a']].concat());
            if children > 0 {
                footer.extend([&b"\x15"[..], &number(children)].concat());
            }
            footer.push(0);
        }
        footer.extend(b"\x16\x00\x19\x0c\x00");
        footer
    }

    /// Opens `bytes` as a Parquet file of documents, and returns the error message.
    fn opened(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        fs::write(&path, bytes).unwrap();
        let fields = crate::input::fields::record::Fields::default();
        let rows = crate::input::parquet::columns::open(&path, &fields, 1000, &Arc::default());
        rows.err().unwrap().to_string()
    }

    #[test]
    fn deeply_nested_columns_are_refused_before_they_exhaust_stack_or_memory() {
        let deep = |groups: usize| of_schema(&[vec![1; groups], vec![0]].concat());
        let said = opened(&deep(GROUPS_MAX));
        assert!(said.contains("no column"), "{said}");
        for groups in [200_000, GROUPS_MAX + 1] {
            let said = opened(&deep(groups));
            assert!(said.contains("its footer is damaged, or has too many groups"), "{groups}: {said}");
        }
        let said = opened(&of_schema(&[u64::from(u32::MAX >> 1), 0]));
        assert!(said.contains("its footer is damaged"), "{said}");
        // Groups beside each other do not increase the nesting depth.
        let beside: Vec<u64> = std::iter::once(100).chain([1, 0].repeat(100)).collect();
        assert_eq!(check_footer(&file(&of_schema(&beside))), Ok(()));
    }

    /// arrow-rs reads field 65,538 as field 2, and reads known fields with their expected types. Each footer hides a
    /// schema that only arrow-rs reads.
    #[test]
    fn structures_that_arrow_would_read_differently_are_refused() {
        let deep = schema(&[vec![1; 200_000], vec![0]].concat());
        let far = [&b"\x15\x02\x09"[..], &number((1 << 16) + 2), &deep[1..]].concat();
        // This check sees a text; arrow-rs sees a version followed by the schema.
        let sound = schema(&[1, 0]);
        let hidden = [&b"\x18"[..], &varint(deep.len() as u64), &deep, &sound].concat();
        // The same inside the logical type of a column: the scale of a decimal is a text that arrow-rs reads as the
        // next column, a group with too many children.
        let group = [&b"\x15\x02\x00\x00\x00\x35\x02\x18\x01a\x15"[..], &number(1 << 30), b"\x00"].concat();
        let scale = [&b"\x18"[..], &varint(group.len() as u64), &group, b"\x00\x00\x00"].concat();
        let leaf = &schema(&[0])[3..];
        let meant = [b"\x15\x02\x19\x2c\x35\x02\x18\x01a\x15\x02\x5c\x5c", &scale[..], leaf].concat();
        // A schema after an unknown field, which arrow-rs reads as the number of rows and then the schema.
        let rows = [&b"\x09\x04"[..], &deep[1..]].concat();
        let before =
            [&b"\x15\x02\x28"[..], &varint(rows.len() as u64), &rows, b"\x09\x04", &sound[1..]].concat();
        for footer in [far, hidden, meant, before] {
            let said = opened(&of_footer(&footer));
            assert!(said.contains("its footer is damaged"), "{said}");
        }
    }

    #[test]
    fn invalid_footer_is_reported() {
        for (bytes, wanted) in [
            (&b""[..], "does not end as a Parquet file does"),
            (b"PAR1", "does not end as a Parquet file does"),
            (b"PAR1\x00\x00\x00\x00PAR2", "does not end as a Parquet file does"),
            (b"PAR1\xff\xff\xff\xffPAR1", "its end names a footer of 4294967295 bytes, and the file has 12"),
            (b"PAR1\x00\x00\x00\x00PAR1", "its footer is damaged"),
        ] {
            let said = opened(bytes);
            assert!(
                said.contains(wanted) && said.contains("(is it a whole Parquet file? copy it again)"),
                "{said}"
            );
        }
    }

    #[test]
    fn page_with_an_impossible_size_is_refused() {
        let head = |unpacked: u64, packed: u64, more: &[u8]| {
            [b"\x15\x00\x15", &number(unpacked)[..], b"\x15", &number(packed), more, b"\x00"].concat()
        };
        let read = |bytes: &[u8], record_bytes_max| {
            let file = Checked::new(file(&[&[9; 50], bytes, &[9; 50]].concat()), record_bytes_max).unwrap();
            let mut read = Vec::new();
            file.get_read(50).unwrap().read_to_end(&mut read).map(|_| read).map_err(|error| error.to_string())
        };
        let sound = head(1000, 100, b"");
        assert_eq!(read(&sound, 10), Ok(sound.clone()));
        let large = head(PAGE_BYTES + 1, 1 << 20, b"");
        assert_eq!(read(&large, 256 << 20), Ok(large.clone()));
        assert!(read(&large, 10).unwrap_err().ends_with(&format!("more than the limit of {PAGE_BYTES}")));
        let bomb = head((1 << 31) - 1, 1000, b"");
        assert!(
            read(&bomb, usize::MAX)
                .unwrap_err()
                .contains("a page of 1000 bytes has 2147483647 by its header")
        );
        // A text in the statistics that is longer than the file. arrow-rs would allocate memory for its length.
        let text = head(10, 10, &[b"\x2c\x58", &varint(1 << 50)[..]].concat());
        assert_eq!(read(&text, 10).unwrap_err(), "the header of a page is damaged");
        // A text so long that its end wraps around to its start.
        let round = head(10, 10, &[&b"\x98"[..], &varint(u64::MAX - 10)].concat());
        // Structures that are nested too deeply for the stack; the largest field number, followed by one more field.
        let deep = head(10, 10, &vec![0x9c; 200_000]);
        let last = head(10, 10, &[&b"\x05"[..], &number(32_767), b"\x00\x15\x00"].concat());
        // A number with more bytes than allowed.
        let wide = head(10, 10, &[&[0x95][..], &[0x80; 10]].concat());
        // The length again, in a field that arrow-rs mistakes for its field; and the page type, hidden in a text.
        let again = head(10, 10, &[&b"\x05"[..], &number((1 << 16) + 2), &number((1 << 31) - 1)].concat());
        let hidden = [&b"\x18\x08\x15"[..], &number((1 << 31) - 1), b"\x15\x02", &sound[2..]].concat();
        // Booleans in a list, for which a reader may or may not read bytes; a header longer than the limit.
        let flags = head(10, 10, &[&b"\x09"[..], &number(40), b"\x21\x01\x01"].concat());
        let endless = vec![7; HEAD_BYTES_MAX as usize];
        let endless = head(10, 10, &[&b"\x98"[..], &varint(HEAD_BYTES_MAX), &endless].concat());
        for bytes in [round, deep, last, wide, again, hidden, flags, endless, head(10, 1 << 32, b"")] {
            assert_eq!(read(&bytes, 10).unwrap_err(), "the header of a page is damaged");
        }
        // A valid header that is longer than the part that is checked first.
        let long = head(10, 10, &[b"\x98", &varint(5000)[..], &[7; 5000]].concat());
        assert_eq!(read(&long, 10), Ok(long));
        let past = Checked::new(file(b"1234"), 10).unwrap();
        assert!(past.get_bytes(2, 3).is_err() && past.get_bytes(2, usize::MAX).is_err());
        assert_eq!(past.get_bytes(2, 2).unwrap(), &b"34"[..]);
    }
}
