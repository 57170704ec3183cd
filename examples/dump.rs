//! Prints the bytes of a file of an index with their meaning, in the terms of format-spec.md.
//!
//! ```sh
//! cargo run --example dump -- pages.twx/000001.seg 16
//! ```
//!
//! The file is a segment, a manifest, `CURRENT`, a log or an IDF table. The number limits the entries that are printed
//! for each section. For a damaged file, the error states where the damage is.

#![allow(clippy::disallowed_methods, reason = "reads an index from outside")]
#![allow(unreachable_pub, reason = "a test calls it")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use twindex::format::contents::{ENTRY_BYTES, Kind};
use twindex::format::current::Current;
use twindex::format::footer::FOOTER_BYTES;
use twindex::format::header::{HEADER_BYTES, Role};
use twindex::format::log::{self, BatchView, RecordHead, RecordKind};
use twindex::format::manifest::Manifest;
use twindex::segment::Segment;
use twindex::store::idf;
use twindex::sys::RealVfs;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[allow(dead_code, reason = "a test calls only `dump`")]
fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let file = args.next().ok_or("expected the path of a file of an index")?;
    let rows = args.next().map_or(Ok(16), |rows| rows.to_string_lossy().parse())?;
    dump(Path::new(&file), rows, &mut BufWriter::new(io::stdout().lock()))
}

/// Prints the file to `out`, with the first `rows` entries of each section.
pub(crate) fn dump(path: &Path, rows: u64, out: &mut impl Write) -> Result<()> {
    if !path.is_file() {
        return Err(format!("{}: not a file; name one of an index", path.display()).into());
    }
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    let mut printer = Printer { out, file, path: path.to_owned(), rows, at: 0 };
    match head.get(10).copied() {
        Some(role) if role == Role::Segment as u8 => printer.segment()?,
        Some(role) if role == Role::Manifest as u8 => printer.manifest(&fs::read(path)?)?,
        Some(role) if role == Role::Current as u8 => printer.current(&fs::read(path)?)?,
        Some(role) if role == Role::Log as u8 => printer.log()?,
        Some(role) if role == Role::Idf as u8 => printer.idf()?,
        _ => return Err(format!("{}: not a file of an index", path.display()).into()),
    }
    Ok(printer.out.flush()?)
}

/// Prints lines that consist of an offset, the bytes at this offset, and their meaning. Bytes are read just before they
/// are printed, because a segment may be larger than memory.
struct Printer<'a, W> {
    out: &'a mut W,
    file: File,
    path: PathBuf,
    /// Number of entries of each section to print.
    rows: u64,
    at: usize,
}

/// Maximum number of bytes printed on a line.
const SHOWN: usize = 16;

impl<W: Write> Printer<'_, W> {
    /// Prints the meaning of the next `length` bytes, and the bytes themselves, at most [`SHOWN`] of them.
    fn field(&mut self, length: usize, meaning: impl std::fmt::Display) -> io::Result<()> {
        let mut field = [0; SHOWN];
        let field = &mut field[..length.min(SHOWN)];
        self.read(field)?;
        let shown: Vec<String> = field.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if length > SHOWN { ".." } else { "" };
        writeln!(self.out, "{:>10}  {:<50}  {meaning}", self.at, shown.join(" ") + more)?;
        self.at += length;
        Ok(())
    }

    fn title(&mut self, title: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "-- {title}")
    }

    /// Reads bytes from the current position.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.at as u64))?;
        self.file.read_exact(bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut number = [0; 4];
        self.read(&mut number)?;
        Ok(u32::from_le_bytes(number))
    }

    fn u64(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        self.read(&mut number)?;
        Ok(u64::from_le_bytes(number))
    }

    fn header(&mut self, role: &str, salt: &str) -> io::Result<()> {
        self.title("header")?;
        self.field(8, "magic")?;
        let version = self.u32()? & 0xFFFF;
        self.field(2, format_args!("version {version}"))?;
        self.field(1, format_args!("role: {role}"))?;
        self.field(1, "fingerprint bits")?;
        self.field(4, "incompatible features")?;
        self.field(4, "read-only-compatible features")?;
        self.field(4, "compatible features")?;
        self.field(16, salt)?;
        self.field(16, "digest of the parameters")?;
        self.field(4, "reserved")?;
        self.field(4, "checksum of the header")
    }

    fn idf(&mut self) -> Result<()> {
        let table = idf::read(&RealVfs, &self.path)?;
        self.header("IDF table", "digest of the table")?;
        self.title("counts")?;
        self.field(8, format_args!("{} documents", table.documents()))?;
        self.field(8, format_args!("{} entries", table.len()))?;
        self.field(4, format_args!("absent shingles are as if in {} documents", table.absent()))?;
        let text = self.u32()? as usize;
        self.field(4, format_args!("{text} bytes of parameters"))?;
        self.field(text, table.shingling().encode().trim_end().replace('\n', " "))?;
        let shown = (table.len() as u64).min(self.rows) as usize;
        self.title(format_args!("hashes: {} of 8 bytes", table.len()))?;
        for (hash, _) in table.iter().take(shown) {
            self.field(8, format_args!("{hash:016x}"))?;
        }
        let rest = table.len() - shown;
        if rest > 0 {
            self.field(8 * rest, format_args!("{rest} more hashes"))?;
        }
        self.title(format_args!("frequencies: {} of 4 bytes", table.len()))?;
        for (hash, frequency) in table.iter().take(shown) {
            let weight = f64::from(table.weight(hash)) / 256.0;
            self.field(4, format_args!("{hash:016x} in {frequency} documents, weight {weight:.3}"))?;
        }
        if rest > 0 {
            self.field(4 * rest, format_args!("{rest} more frequencies"))?;
        }
        Ok(())
    }

    /// Prints the records of a log. The meaning of their operations is not printed, because it depends on the
    /// parameters of the index, which a log does not contain.
    fn log(&mut self) -> Result<()> {
        let length = self.file.metadata()?.len();
        let mut bytes = Vec::new();
        self.header("log", "UUID of the index")?;
        self.title("log")?;
        let number = self.u64()?;
        self.field(8, format_args!("number {number}"))?;
        let first = self.u64()?;
        self.field(8, format_args!("first commit {first}"))?;
        self.field(4, "reserved")?;
        self.field(4, "checksum of the head")?;
        let mut uuid = [0; 16];
        self.file.seek(SeekFrom::Start(24))?;
        self.file.read_exact(&mut uuid)?;
        let salt = log::record_salt(u128::from_le_bytes(uuid), number);
        let mut shown = 0;
        while (self.at + log::RECORD_HEAD_BYTES) as u64 <= length {
            let mut head = [0; log::RECORD_HEAD_BYTES];
            self.read(&mut head)?;
            let fits = |head: &RecordHead| self.at as u64 + head.record_bytes() <= length;
            let Some(head) = RecordHead::read(&head).filter(fits) else { break };
            // The whole record is in the file, so this allocates at most the length of the file.
            bytes.resize(head.record_bytes() as usize, 0);
            self.read(&mut bytes)?;
            if !log::is_sound(salt, self.at as u64, &bytes) {
                break;
            }
            if shown == self.rows {
                break;
            }
            shown += 1;
            let payload = &bytes[log::RECORD_HEAD_BYTES..][..head.length as usize];
            let padding = bytes.len() - log::RECORD_HEAD_BYTES - payload.len();
            let batch = match head.kind {
                RecordKind::Batch => BatchView::decode(payload).ok(),
                RecordKind::Mark => None,
            };
            self.title(format_args!("{:?}, commit {}", head.kind, head.commit))?;
            self.field(4, "checksum of the record")?;
            self.field(4, format_args!("{} bytes of payload", head.length))?;
            self.field(1, format_args!("{:?}", head.kind))?;
            self.field(7, "reserved")?;
            self.field(8, format_args!("commit {}", head.commit))?;
            let mut rest = payload.len();
            if let Some(batch) = batch {
                self.field(8, format_args!("{} bytes were synced", batch.synced))?;
                self.field(4, format_args!("{} operations", batch.operations))?;
                let given = batch.payload.map_or(0, <[u8]>::len);
                self.field(4, format_args!("{given} bytes of the caller's payload"))?;
                if given > 0 {
                    self.field(given, "payload of the caller")?;
                }
                rest -= log::BATCH_HEAD_BYTES + given;
            }
            if rest > 0 {
                let what = if batch.is_some() { "operations" } else { "bytes that were synced" };
                self.field(rest, what)?;
            }
            if padding > 0 {
                self.field(padding, "padding")?;
            }
        }
        let rest = length as usize - self.at;
        if rest > 0 {
            let torn = shown < self.rows;
            let what = if torn { "of no sound record: torn, or damaged" } else { "of more records" };
            self.field(rest, format_args!("{rest} bytes {what}"))?;
        }
        Ok(())
    }

    fn segment(&mut self) -> Result<()> {
        let segment = Segment::open(&RealVfs, &self.path)?;
        self.header("segment", "salt")?;
        for section in segment.sections() {
            let gap = section.offset as usize - self.at;
            if gap > 0 {
                self.field(gap, "padding")?;
            }
            let name = section.kind.name();
            let index = if section.index > 0 { format!(" {}", section.index) } else { String::new() };
            self.title(format_args!(
                "{name}{index}: codec {}, {} rows, {} bytes",
                section.codec, section.rows, section.length
            ))?;
            self.entries(&segment, section.kind, section.index)?;
            let rest = section.end() as usize - self.at;
            if rest > 0 {
                self.field(rest, format_args!("{rest} bytes of {name}{index}"))?;
            }
        }
        let contents = segment.length() as usize - FOOTER_BYTES - segment.sections().len() * ENTRY_BYTES;
        if contents > self.at {
            self.field(contents - self.at, "padding")?;
        }
        self.title("table of contents")?;
        for section in segment.sections() {
            self.field(2, format_args!("section {}", section.kind.name()))?;
            self.field(2, format_args!("index {}", section.index))?;
            self.field(2, format_args!("codec {}", section.codec))?;
            self.field(2, "reserved")?;
            self.field(8, format_args!("offset {}", section.offset))?;
            self.field(8, format_args!("length {}", section.length))?;
            self.field(8, format_args!("rows {}", section.rows))?;
        }
        self.title("footer")?;
        self.field(8, "magic")?;
        let number = self.u64()?;
        self.field(8, format_args!("file length {number}"))?;
        let number = self.u64()?;
        self.field(8, format_args!("table of contents at {number}"))?;
        let number = self.u32()?;
        self.field(4, format_args!("{number} entries"))?;
        self.field(4, "checksum of the table of contents")?;
        self.field(4, "checksum of the checksums")?;
        self.field(4, "reserved")?;
        let number = self.u64()?;
        self.field(8, format_args!("{number} documents"))?;
        let number = self.u64()?;
        self.field(8, format_args!("{number} distinct fingerprints"))?;
        self.field(4, "reserved")?;
        self.field(4, "checksum of the footer")?;
        Ok(())
    }

    /// Decodes the first entries of a section. The printer prints their raw bytes afterwards.
    fn entries(&mut self, segment: &Segment, kind: Kind, index: u16) -> Result<()> {
        let mut lines: Vec<String> = Vec::new();
        let documents = segment.documents().min(self.rows) as u32;
        let ranks = segment.distinct_fingerprints().min(self.rows) as u32;
        match kind {
            Kind::Params => {
                lines.extend(segment.params().fields().iter().map(|(name, value)| format!("{name}={value}")));
            }
            Kind::Keys => {
                for ordinal in 0..documents {
                    lines.push(format!(
                        "ordinal {ordinal}: {}",
                        segment.key(ordinal)?.to_string().escape_debug()
                    ));
                }
            }
            Kind::Ranks => {
                for ordinal in 0..documents {
                    let rank = segment.rank(ordinal)?.map_or("none".into(), |rank| rank.to_string());
                    lines.push(format!("ordinal {ordinal}: rank {rank}"));
                }
            }
            Kind::Design => lines.extend(segment.scheme().map(|scheme| scheme.to_string())),
            Kind::Table | Kind::FilterTable => {
                let mut left = self.rows;
                segment.for_each_table_row(index.into(), |row, value| {
                    if left > 0 {
                        left -= 1;
                        lines.push(format!("row {row}: {value:016x}"));
                    }
                    Ok(())
                })?;
            }
            Kind::Postings => {
                for rank in 0..ranks {
                    let mut ordinals = Vec::new();
                    segment.postings(rank, |ordinal| ordinals.push(ordinal.to_string()))?;
                    lines.push(format!("rank {rank}: ordinals {}", ordinals.join(" ")));
                }
            }
            Kind::Band | Kind::Part => {
                let (mut left, place) = (self.rows, usize::from(index) - 1);
                let mut each = |key: u32, ordinal: u32| {
                    if left > 0 {
                        left -= 1;
                        lines.push(format!("key {key:08x}: ordinal {ordinal}"));
                    }
                    Ok(())
                };
                if kind == Kind::Band {
                    segment.for_each_band_entry(place, &mut each)?;
                } else {
                    segment.for_each_part_entry(place, &mut each)?;
                }
            }
            Kind::Signatures => {
                for ordinal in 0..documents {
                    let signature = segment.signature(ordinal)?;
                    let hex: Vec<String> =
                        signature.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
                    lines.push(format!("ordinal {ordinal}: {}..", hex.join(" ")));
                }
            }
            Kind::Bottom | Kind::Modular => {
                let mut hashes = Vec::new();
                for ordinal in 0..documents {
                    if kind == Kind::Bottom {
                        segment.bottom(ordinal, &mut hashes)?;
                    } else {
                        segment.modular(ordinal, &mut hashes)?;
                    }
                    let more = if hashes.len() > SHOWN { " .." } else { "" };
                    let shown: Vec<String> =
                        hashes.iter().take(SHOWN).map(|hash| format!("{hash:012x}")).collect();
                    let count = hashes.len();
                    lines.push(format!("ordinal {ordinal}: {count} hashes {}{more}", shown.join(" ")));
                }
            }
            Kind::Values => {
                for ordinal in 0..documents {
                    let value = segment.value(ordinal)?;
                    let more = if value.len() > SHOWN { ".." } else { "" };
                    let shown = value[..value.len().min(SHOWN)].escape_ascii();
                    lines.push(format!("ordinal {ordinal}: {} bytes {shown}{more}", value.len()));
                }
            }
            Kind::Stamps => {
                for ordinal in 0..documents {
                    lines.push(format!("ordinal {ordinal}: {}", segment.stamp(ordinal)?.unwrap_or_default()));
                }
            }
            Kind::Fields => lines.extend(fields(segment, documents)?),
            Kind::Common | Kind::Prefixes | Kind::Suffixes => {
                lines.extend(entries_of_sets(segment, kind, self.rows)?);
            }
            Kind::Hot | Kind::Checksums => {}
        }
        for line in lines {
            writeln!(self.out, "{:>10}  {line}", "")?;
        }
        Ok(())
    }

    fn manifest(&mut self, bytes: &[u8]) -> Result<()> {
        let manifest = Manifest::decode(bytes)
            .map_err(|refusal| twindex::error::refused(&self.path, "manifest", refusal))?;
        self.header("manifest", "UUID of the index")?;
        self.title("manifest")?;
        self.field(8, format_args!("generation {}", manifest.generation))?;
        self.field(8, format_args!("next segment {}", manifest.next_segment))?;
        let params = self.u32()? as usize;
        self.field(4, format_args!("{params} bytes of parameters"))?;
        self.field(4, format_args!("{} segments", manifest.segments.len()))?;
        self.field(params, manifest.params.encode().trim_end().replace('\n', " "))?;
        for segment in &manifest.segments {
            self.title(format_args!("segment {}", segment.number))?;
            self.field(8, format_args!("number {}", segment.number))?;
            self.field(8, format_args!("length {}", segment.length))?;
            self.field(16, "digest")?;
            self.field(16, "salt")?;
            self.field(8, format_args!("{} documents", segment.documents))?;
            let deletes = self.u32()? as usize;
            self.field(4, format_args!("{deletes} bytes of deletes"))?;
            if deletes > 0 {
                self.field(deletes, format_args!("{} ordinals no longer live", segment.deleted.len()))?;
            }
        }
        if let Some(logged) = &manifest.logged {
            self.title("logs")?;
            self.field(8, format_args!("next log {}", logged.next_log))?;
            self.field(4, format_args!("{} logs", logged.logs.len()))?;
            match &logged.payload {
                None => self.field(4, "no payload of the caller")?,
                Some(payload) => {
                    self.field(4, format_args!("{} bytes of payload", payload.len()))?;
                    if !payload.is_empty() {
                        self.field(payload.len(), "payload of the caller")?;
                    }
                }
            }
            for log in &logged.logs {
                self.field(8, format_args!("log {}", log.number))?;
                self.field(8, format_args!("from commit {} on", log.first))?;
                match (log.grows, log.length) {
                    (true, 0) => self.field(8, "grows")?,
                    (true, length) => self.field(8, format_args!("grows, from {length} bytes on"))?,
                    (false, length) => self.field(8, format_args!("{length} bytes of it"))?,
                }
            }
        }
        if manifest.params.expire_after.is_some() {
            self.title("time")?;
            self.field(4, if manifest.now.is_some() { "there were stamps" } else { "no stamp yet" })?;
            self.field(8, format_args!("highest stamp {}", manifest.now.unwrap_or_default()))?;
        }
        self.field(4, "checksum of the manifest")?;
        Ok(())
    }

    fn current(&mut self, bytes: &[u8]) -> Result<()> {
        let current = Current::read(bytes)
            .map_err(|refusal| twindex::error::refused(&self.path, "CURRENT", refusal))?;
        self.header("CURRENT", "UUID of the index")?;
        debug_assert_eq!(self.at, HEADER_BYTES);
        self.title("CURRENT")?;
        self.field(8, format_args!("generation {}", current.generation))?;
        self.field(16, "digest of the manifest")?;
        self.field(4, "reserved")?;
        self.field(4, "checksum of CURRENT")?;
        Ok(())
    }
}

/// Describes the marks, priorities, and sets or codes of the first documents, one line per document.
fn fields(segment: &Segment, documents: u32) -> Result<Vec<String>> {
    let (mut lines, mut set) = (Vec::new(), Vec::new());
    for ordinal in 0..documents {
        let fields = segment.fields(ordinal)?;
        let mark = if fields.is_marked() { "mark, " } else { "" };
        let priority = fields.priority().map_or_else(String::new, |number| format!("priority {number}, "));
        if let Some(codes) = segment.params().codes {
            let code = fields.code(codes).ok().and_then(twindex::Code::of_bytes);
            let code = code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
            lines.push(format!("ordinal {ordinal}: {mark}{priority}{code}"));
            continue;
        }
        segment.set(ordinal, &mut set)?;
        let more = if set.len() > SHOWN { " .." } else { "" };
        let shown: Vec<String> = set.iter().take(SHOWN).map(|hash| format!("{hash:016x}")).collect();
        let count = set.len();
        lines.push(format!("ordinal {ordinal}: {mark}{priority}{count} hashes {}{more}", shown.join(" ")));
    }
    Ok(lines)
}

/// Describes the first entries of the section of common tags, prefixes or suffixes, one line per entry.
fn entries_of_sets(segment: &Segment, kind: Kind, most: u64) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut each = |tag: u32, of: u32| {
        if (lines.len() as u64) < most {
            let what = if kind == Kind::Common { "class" } else { "ordinal" };
            lines.push(format!("tag {tag:08x}: {what} {of}"));
        }
        Ok(())
    };
    match kind {
        Kind::Common => segment.for_each_common_tag(&mut each)?,
        Kind::Suffixes => segment.for_each_suffix_entry(&mut each)?,
        _ => segment.for_each_prefix_entry(&mut each)?,
    }
    Ok(lines)
}
