//! `twindex dump`: prints the bytes of an index file and their meaning.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use twindex::format::contents::{ENTRY_BYTES, Kind};
use twindex::format::current::Current;
use twindex::format::footer::FOOTER_BYTES;
use twindex::format::header::{HEADER_BYTES, Role};
use twindex::format::log::{self, BatchView, RecordHead, RecordKind};
use twindex::format::manifest::Manifest;
use twindex::segment::Segment;
use twindex::store::idf;
use twindex::sys::RealVfs;

/// Options of `dump`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dump pages.twx/CURRENT\n  \
    twindex dump pages.twx/000001.seg | less\n  \
    twindex dump pages.twx/000001.seg --rows 0\n\n\
    Prints offset, bytes and meaning as format-spec.md names them. What is damaged is refused with its place; \
    `verify` looks at all of it.")]
pub(crate) struct DumpArgs {
    /// The file to print: a segment, a manifest, CURRENT, a log or an IDF table
    file: PathBuf,
    /// Number of entries of each section to print
    #[arg(long, value_name = "N", default_value_t = 16)]
    rows: u64,
}

/// Prints lines with an offset, the bytes there, and their meaning. Reads bytes when they are printed, because a segment
/// may be larger than memory.
struct Printer<W> {
    out: W,
    file: File,
    at: usize,
}

/// The message if copying bytes to the output fails. The file was checked before, so usually the write has failed.
const CANNOT: &str = "cannot copy from the file to standard output";
/// Maximal number of bytes printed on a line.
const SHOWN: usize = 16;

impl<W: Write> Printer<W> {
    /// Prints the next `length` bytes, at most [`SHOWN`] of them, and their meaning.
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
}

impl DumpArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let path = &self.file;
        if !path.is_file() {
            bail!(
                "{}: not a file; name a segment, a manifest, CURRENT, a log or an IDF table",
                path.display()
            );
        }
        let cannot = || format!("{}: cannot read", path.display());
        let mut file = File::open(path).with_context(cannot)?;
        let mut head = Vec::new();
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head).with_context(cannot)?;
        let printer = Printer { out: BufWriter::new(io::stdout().lock()), file, at: 0 };
        let whole = || fs::read(path).with_context(cannot);
        match head.get(10).copied() {
            Some(role) if role == Role::Segment as u8 => self.segment(printer),
            Some(role) if role == Role::Manifest as u8 => manifest(path, &whole()?, printer),
            Some(role) if role == Role::Current as u8 => current(path, &whole()?, printer),
            Some(role) if role == Role::Log as u8 => self.log(printer),
            Some(role) if role == Role::Idf as u8 => self.idf(printer),
            _ => bail!("{}: not a file of an index", path.display()),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn idf(&self, mut printer: Printer<impl Write>) -> anyhow::Result<()> {
        let table = idf::read(&RealVfs, &self.file)?;
        let mut print = || {
            printer.header("IDF table", "digest of the table")?;
            printer.title("counts")?;
            printer.field(8, format_args!("{} documents", table.documents()))?;
            printer.field(8, format_args!("{} entries", table.len()))?;
            printer.field(4, format_args!("absent shingles are as if in {} documents", table.absent()))?;
            let text = printer.u32()? as usize;
            printer.field(4, format_args!("{text} bytes of parameters"))?;
            printer.field(text, table.shingling().encode().trim_end().replace('\n', " "))?;
            let shown = (table.len() as u64).min(self.rows) as usize;
            printer.title(format_args!("hashes: {} of 8 bytes", table.len()))?;
            for (hash, _) in table.iter().take(shown) {
                printer.field(8, format_args!("{hash:016x}"))?;
            }
            let rest = table.len() - shown;
            if rest > 0 {
                printer.field(8 * rest, format_args!("{rest} more hashes"))?;
            }
            printer.title(format_args!("frequencies: {} of 4 bytes", table.len()))?;
            for (hash, frequency) in table.iter().take(shown) {
                let weight = f64::from(table.weight(hash)) / 256.0;
                printer.field(4, format_args!("{hash:016x} in {frequency} documents, weight {weight:.3}"))?;
            }
            if rest > 0 {
                printer.field(4 * rest, format_args!("{rest} more frequencies"))?;
            }
            printer.out.flush()
        };
        print().context(CANNOT)
    }

    /// Prints the records of a log without the meaning of their operations: a log does not contain the parameters of its
    /// index.
    fn log(&self, mut printer: Printer<impl Write>) -> anyhow::Result<()> {
        let length = printer.file.metadata().with_context(|| CANNOT)?.len();
        let mut bytes = Vec::new();
        let mut print = || {
            printer.header("log", "UUID of the index")?;
            printer.title("log")?;
            let number = printer.u64()?;
            printer.field(8, format_args!("number {number}"))?;
            let first = printer.u64()?;
            printer.field(8, format_args!("first commit {first}"))?;
            printer.field(4, "reserved")?;
            printer.field(4, "checksum of the head")?;
            let mut uuid = [0; 16];
            printer.file.seek(SeekFrom::Start(24))?;
            printer.file.read_exact(&mut uuid)?;
            let salt = log::record_salt(u128::from_le_bytes(uuid), number);
            let mut shown = 0;
            while (printer.at + log::RECORD_HEAD_BYTES) as u64 <= length {
                let mut head = [0; log::RECORD_HEAD_BYTES];
                printer.read(&mut head)?;
                let fits = |head: &RecordHead| printer.at as u64 + head.record_bytes() <= length;
                let Some(head) = RecordHead::read(&head).filter(fits) else { break };
                // Not larger than the file.
                bytes.resize(head.record_bytes() as usize, 0);
                printer.read(&mut bytes)?;
                if !log::is_sound(salt, printer.at as u64, &bytes) {
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
                printer.title(format_args!("{:?}, commit {}", head.kind, head.commit))?;
                printer.field(4, "checksum of the record")?;
                printer.field(4, format_args!("{} bytes of payload", head.length))?;
                printer.field(1, format_args!("{:?}", head.kind))?;
                printer.field(7, "reserved")?;
                printer.field(8, format_args!("commit {}", head.commit))?;
                let mut rest = payload.len();
                if let Some(batch) = batch {
                    printer.field(8, format_args!("{} bytes were synced", batch.synced))?;
                    printer.field(4, format_args!("{} operations", batch.operations))?;
                    let given = batch.payload.map_or(0, <[u8]>::len);
                    printer.field(4, format_args!("{given} bytes of the caller's payload"))?;
                    if given > 0 {
                        printer.field(given, "payload of the caller")?;
                    }
                    rest -= log::BATCH_HEAD_BYTES + given;
                }
                if rest > 0 {
                    let what = if batch.is_some() { "operations" } else { "bytes that were synced" };
                    printer.field(rest, what)?;
                }
                if padding > 0 {
                    printer.field(padding, "padding")?;
                }
            }
            let rest = length as usize - printer.at;
            if rest > 0 {
                let torn = shown < self.rows;
                let what = if torn { "of no sound record: torn, or damaged" } else { "of more records" };
                printer.field(rest, format_args!("{rest} bytes {what}"))?;
            }
            printer.out.flush()
        };
        print().context(CANNOT)
    }

    fn segment(&self, mut printer: Printer<impl Write>) -> anyhow::Result<()> {
        let segment = Segment::open(&RealVfs, &self.file)?;
        let write = || CANNOT;
        printer.header("segment", "salt").with_context(write)?;
        for section in segment.sections() {
            let gap = section.offset as usize - printer.at;
            if gap > 0 {
                printer.field(gap, "padding").with_context(write)?;
            }
            let name = section.kind.name();
            let index = if section.index > 0 { format!(" {}", section.index) } else { String::new() };
            printer
                .title(format_args!(
                    "{name}{index}: codec {}, {} rows, {} bytes",
                    section.codec, section.rows, section.length
                ))
                .with_context(write)?;
            self.entries(&segment, section.kind, section.index, &mut printer)?;
            let rest = section.end() as usize - printer.at;
            if rest > 0 {
                printer.field(rest, format_args!("{rest} bytes of {name}{index}")).with_context(write)?;
            }
        }
        let contents = segment.length() as usize - FOOTER_BYTES - segment.sections().len() * ENTRY_BYTES;
        if contents > printer.at {
            printer.field(contents - printer.at, "padding").with_context(write)?;
        }
        (|| {
            printer.title("table of contents")?;
            for section in segment.sections() {
                printer.field(2, format_args!("section {}", section.kind.name()))?;
                printer.field(2, format_args!("index {}", section.index))?;
                printer.field(2, format_args!("codec {}", section.codec))?;
                printer.field(2, "reserved")?;
                printer.field(8, format_args!("offset {}", section.offset))?;
                printer.field(8, format_args!("length {}", section.length))?;
                printer.field(8, format_args!("rows {}", section.rows))?;
            }
            printer.title("footer")?;
            printer.field(8, "magic")?;
            let number = printer.u64()?;
            printer.field(8, format_args!("file length {number}"))?;
            let number = printer.u64()?;
            printer.field(8, format_args!("table of contents at {number}"))?;
            let number = printer.u32()?;
            printer.field(4, format_args!("{number} entries"))?;
            printer.field(4, "checksum of the table of contents")?;
            printer.field(4, "checksum of the checksums")?;
            printer.field(4, "reserved")?;
            let number = printer.u64()?;
            printer.field(8, format_args!("{number} documents"))?;
            let number = printer.u64()?;
            printer.field(8, format_args!("{number} distinct fingerprints"))?;
            printer.field(4, "reserved")?;
            printer.field(4, "checksum of the footer")?;
            printer.out.flush()
        })()
        .with_context(write)
    }

    /// Decodes the first entries of a section, whose raw bytes the printer prints afterwards.
    fn entries(
        &self,
        segment: &Segment,
        kind: Kind,
        index: u16,
        printer: &mut Printer<impl Write>,
    ) -> anyhow::Result<()> {
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
            Kind::Band => {
                let mut left = self.rows;
                segment.for_each_band_entry(usize::from(index) - 1, |key, ordinal| {
                    if left > 0 {
                        left -= 1;
                        lines.push(format!("key {key:08x}: ordinal {ordinal}"));
                    }
                    Ok(())
                })?;
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
            Kind::Common | Kind::Prefixes => lines.extend(entries_of_sets(segment, kind, self.rows)?),
            Kind::Hot | Kind::Checksums => {}
        }
        for line in lines {
            writeln!(printer.out, "{:>10}  {line}", "").context(CANNOT)?;
        }
        Ok(())
    }
}

/// Returns the marks, priorities and sets of the first documents, one line for each document.
fn fields(segment: &Segment, documents: u32) -> twindex::Result<Vec<String>> {
    let (mut lines, mut set) = (Vec::new(), Vec::new());
    for ordinal in 0..documents {
        let fields = segment.fields(ordinal)?;
        let mark = if fields.is_marked() { "mark, " } else { "" };
        let priority = fields.priority().map_or_else(String::new, |number| format!("priority {number}, "));
        segment.set(ordinal, &mut set)?;
        let more = if set.len() > SHOWN { " .." } else { "" };
        let shown: Vec<String> = set.iter().take(SHOWN).map(|hash| format!("{hash:016x}")).collect();
        let count = set.len();
        lines.push(format!("ordinal {ordinal}: {mark}{priority}{count} hashes {}{more}", shown.join(" ")));
    }
    Ok(lines)
}

/// Returns the first entries of a section that finds documents by the hashes in their sets, one line for each entry.
fn entries_of_sets(segment: &Segment, kind: Kind, most: u64) -> twindex::Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut each = |tag: u32, of: u32| {
        if (lines.len() as u64) < most {
            let what = if kind == Kind::Common { "class" } else { "ordinal" };
            lines.push(format!("tag {tag:08x}: {what} {of}"));
        }
        Ok(())
    };
    if kind == Kind::Common {
        segment.for_each_common_tag(&mut each)?;
    } else {
        segment.for_each_prefix_entry(&mut each)?;
    }
    Ok(lines)
}

fn manifest(path: &Path, bytes: &[u8], mut printer: Printer<impl Write>) -> anyhow::Result<()> {
    let manifest =
        Manifest::decode(bytes).map_err(|refusal| twindex::error::refused(path, "manifest", refusal))?;
    let mut print = || {
        printer.header("manifest", "UUID of the index")?;
        printer.title("manifest")?;
        printer.field(8, format_args!("generation {}", manifest.generation))?;
        printer.field(8, format_args!("next segment {}", manifest.next_segment))?;
        let params = printer.u32()? as usize;
        printer.field(4, format_args!("{params} bytes of parameters"))?;
        printer.field(4, format_args!("{} segments", manifest.segments.len()))?;
        printer.field(params, manifest.params.encode().trim_end().replace('\n', " "))?;
        for segment in &manifest.segments {
            printer.title(format_args!("segment {}", segment.number))?;
            printer.field(8, format_args!("number {}", segment.number))?;
            printer.field(8, format_args!("length {}", segment.length))?;
            printer.field(16, "digest")?;
            printer.field(16, "salt")?;
            printer.field(8, format_args!("{} documents", segment.documents))?;
            let deletes = printer.u32()? as usize;
            printer.field(4, format_args!("{deletes} bytes of deletes"))?;
            if deletes > 0 {
                printer.field(deletes, format_args!("{} ordinals no longer live", segment.deleted.len()))?;
            }
        }
        if let Some(logged) = &manifest.logged {
            printer.title("logs")?;
            printer.field(8, format_args!("next log {}", logged.next_log))?;
            printer.field(4, format_args!("{} logs", logged.logs.len()))?;
            match &logged.payload {
                None => printer.field(4, "no payload of the caller")?,
                Some(payload) => {
                    printer.field(4, format_args!("{} bytes of payload", payload.len()))?;
                    if !payload.is_empty() {
                        printer.field(payload.len(), "payload of the caller")?;
                    }
                }
            }
            for log in &logged.logs {
                printer.field(8, format_args!("log {}", log.number))?;
                printer.field(8, format_args!("from commit {} on", log.first))?;
                match (log.grows, log.length) {
                    (true, 0) => printer.field(8, "grows")?,
                    (true, length) => printer.field(8, format_args!("grows, from {length} bytes on"))?,
                    (false, length) => printer.field(8, format_args!("{length} bytes of it"))?,
                }
            }
        }
        if manifest.params.expire_after.is_some() {
            printer.title("time")?;
            printer.field(4, if manifest.now.is_some() { "there were stamps" } else { "no stamp yet" })?;
            printer.field(8, format_args!("highest stamp {}", manifest.now.unwrap_or_default()))?;
        }
        printer.field(4, "checksum of the manifest")?;
        printer.out.flush()
    };
    print().context(CANNOT)
}

fn current(path: &Path, bytes: &[u8], mut printer: Printer<impl Write>) -> anyhow::Result<()> {
    let current =
        Current::read(bytes).map_err(|refusal| twindex::error::refused(path, "CURRENT", refusal))?;
    let mut print = || {
        printer.header("CURRENT", "UUID of the index")?;
        debug_assert_eq!(printer.at, HEADER_BYTES);
        printer.title("CURRENT")?;
        printer.field(8, format_args!("generation {}", current.generation))?;
        printer.field(16, "digest of the manifest")?;
        printer.field(4, "reserved")?;
        printer.field(4, "checksum of CURRENT")?;
        printer.out.flush()
    };
    print().context(CANNOT)
}
