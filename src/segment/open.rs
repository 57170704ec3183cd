//! Opening: a file to a [`Segment`].
//!
//! What is checked, in this order, each step resting on the one before:
//!
//! 1. the header: magic, checksum, version, features, role;
//! 2. the footer, with the header's salt: magic, checksum, the file's length;
//! 3. the table of contents: checksum, known sections, tiling the file;
//! 4. the checksums section against the footer;
//! 5. the parameters against the digest in the header;
//! 6. the sections against the parameters: all that belong, no others, and each as long as its rows ask for.
//!
//! Pages are checked when first touched; what their numbers say is checked where they are used. Header, footer,
//! contents and checksums are read, not mapped. Time and memory O(sections + pages), a thousandth of the file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use zerocopy::little_endian::U32;

use super::pages::{self, Known, Pages, Stretch, Trouble};
use super::tables::{OpenTable, Tables};
use crate::design::Design;
use crate::error::{Error, Result, corrupt, refused};
use crate::format::attached::{self, STAMPS_HEAD_BYTES, Stamps, Values};
use crate::format::bands::{self, Band};
use crate::format::checksum::{PAGE, checksum};
use crate::format::contents::{self, ENTRY_BYTES, Kind, Section};
use crate::format::footer::{FOOTER_BYTES, Footer};
use crate::format::header::{FEATURE_PACKED, HEADER_BYTES, Header, Role};
use crate::format::keys::{self, FRAME_HEAD_BYTES, Frame};
use crate::format::manifest::PARAMS_BYTES_MAX;
use crate::format::samples::{self, Choice, Samples};
use crate::format::table::Codec;
use crate::format::wire::{self, Fault};
use crate::format::{DOCUMENTS_MAX, design, hot, postings, ranks, signatures};
use crate::params::{KeyKind, Params};
use crate::sys::Access;
use crate::sys::mmap::View;
use crate::sys::vfs::{MemoryFile, ReadFile, Vfs};

/// An open segment: `Send + Sync`, shared by all who ask. The bytes are mapped, or read when first touched.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    bytes: View,
    pages: Pages,
    params: Params,
    salt: u128,
    digest: u128,
    documents: u64,
    sections: Vec<Section>,
    pub(super) keys: Keys,
    pub(super) fingerprints: Option<Fingerprints>,
    pub(super) bands: Vec<(Section, Band)>,
    pub(super) signatures: Option<(Section, u64)>,
    /// Bottom and modular.
    pub(super) samples: [Option<(Section, Samples)>; 2],
    pub(super) values: Option<(Section, Values)>,
    pub(super) stamps: Option<(Section, Stamps)>,
}

/// How the keys are coded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    Frame(Section, Frame),
    Front(Section),
}

/// The sections that are there when fingerprints are kept.
#[derive(Debug)]
pub(super) struct Fingerprints {
    pub(super) distinct: u64,
    pub(super) ranks: Section,
    pub(super) tables: Tables,
    pub(super) postings: Section,
}

impl Segment {
    /// Opens and maps the segment at `path`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unsupported`] or [`Error::Io`], each naming the file.
    pub fn open(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        Self::open_with(vfs, path, Access::default())
    }

    /// As [`open`](Self::open), with a choice of how the bytes come into memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(vfs: &dyn Vfs, path: &Path, access: Access) -> Result<Self> {
        let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
        Self::open_file(file, path, access)
    }

    /// Opens a segment from bytes in memory; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        Self::open_file(Box::new(MemoryFile(bytes)), path, Access::default())
    }

    fn open_file(file: Box<dyn ReadFile>, path: &Path, access: Access) -> Result<Self> {
        let length = file.len().map_err(|e| Error::io("get the length of", path, e))?;
        let fault = |section, base: u64, fault: Fault| corrupt(path, section, base, fault);
        let least = (HEADER_BYTES + FOOTER_BYTES) as u64;
        // guard: a file has room for a header and a footer
        if length < least {
            let cut = Fault::new(length, format!("at least {least} bytes"), format!("{length}"));
            return Err(fault("segment", 0, cut));
        }
        let read = |offset: u64, length: u64| -> Result<Vec<u8>> {
            let length = usize::try_from(length).map_err(|_| Error::Limit {
                what: "bytes in memory",
                limit: usize::MAX as u64,
                found: length,
            })?;
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map_err(|e| Error::io("read", path, e))?;
            Ok(bytes)
        };

        let header = read(0, HEADER_BYTES as u64)?;
        let header =
            Header::read(&header, Role::Segment).map_err(|refusal| refused(path, "header", refusal))?;
        let salt = header.salt.get();

        let footer_offset = length - FOOTER_BYTES as u64;
        let footer = read(footer_offset, FOOTER_BYTES as u64)?;
        let footer = Footer::read(&footer, salt, length).map_err(|e| fault("footer", footer_offset, e))?;

        // The footer's checks leave offsets within the file, so this reads no more than the file has.
        let contents_offset = footer.contents_offset.get();
        let contents = read(contents_offset, footer_offset - contents_offset)?;
        let expected = checksum(salt, contents_offset, &contents);
        // guard: the footer and the contents are compared with their checksums
        if footer.contents_checksum.get() != expected {
            let found = format!("{:08x}", footer.contents_checksum.get());
            let sums = Fault::new(28, format!("checksum {expected:08x} of the table of contents"), found);
            return Err(fault("footer", footer_offset, sums));
        }
        let sections = contents::read(&contents, contents_offset)
            .map_err(|e| fault("table of contents", contents_offset, e))?;

        let sums = *sections.last().expect("contents::read asks for checksums");
        let page_checksums = read(sums.offset, sums.length)?;
        let expected = checksum(salt, sums.offset, &page_checksums);
        if footer.checksums_checksum.get() != expected {
            let found = format!("{:08x}", footer.checksums_checksum.get());
            let sums = Fault::new(32, format!("checksum {expected:08x} of the checksums section"), found);
            return Err(fault("footer", footer_offset, sums));
        }
        // What is between the checksums and the contents is the one place that no checksum covers.
        let gap = read(sums.end(), contents_offset - sums.end())?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let padding = Fault::new(at as u64, "zero padding", format!("{:#04x}", gap[at]));
            return Err(fault("checksums", sums.end(), padding));
        }
        let pages = sums.offset.div_ceil(PAGE);
        let columns: &[U32] =
            wire::column(&page_checksums).map_err(|odd| fault("checksums", sums.offset, odd))?;
        if columns.len() as u64 != pages || sums.rows != pages || sums.index != 0 || sums.codec != 1 {
            let found = format!(
                "{} bytes, {} rows, index {}, codec {}",
                sums.length, sums.rows, sums.index, sums.codec
            );
            return Err(fault(
                "checksums",
                sums.offset,
                Fault::new(0, format!("{pages} checksums, codec 1"), found),
            ));
        }
        let map_length = usize::try_from(length).map_err(|_| Error::Limit {
            what: "bytes of a map",
            limit: usize::MAX as u64,
            found: length,
        })?;

        let mut segment = Self {
            path: path.to_owned(),
            bytes: View::new(file, map_length, access).map_err(|e| Error::io("map", path, e))?,
            pages: Pages::new(salt, columns, sums.offset),
            params: Params::builder().simhash(0).build()?,
            salt,
            digest: super::output::digest(&header, &page_checksums, &contents, &footer),
            documents: footer.documents.get(),
            sections,
            keys: Keys::Front(sums),
            fingerprints: None,
            bands: Vec::new(),
            signatures: None,
            samples: [None; 2],
            values: None,
            stamps: None,
        };
        segment.read_params(header.params_digest.get(), contents_offset)?;
        header.check_features(&segment.params).map_err(|e| fault("header", 0, e))?;
        let is_packed = header.incompatible.get() & FEATURE_PACKED != 0;
        let band_codec = if is_packed { bands::CODEC_PACKED } else { bands::CODEC_BYTES };
        segment.check_sections(&footer, footer_offset, band_codec)?;
        Ok(segment)
    }

    /// Reads the whole file and compares the checksums of all pages: less than [`verify`](Self::verify), at the
    /// speed of reading.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first page that is damaged, [`Error::Io`].
    pub fn check_pages(&self) -> Result<()> {
        // The checksums have one of their own, and were compared with it when the file was opened.
        for section in self.sections().iter().filter(|section| section.kind != Kind::Checksums) {
            let mut at = 0;
            while at < section.length {
                let end = section.length.min(at + (1 << 20));
                self.read(section, at..end)?;
                at = end;
            }
        }
        Ok(())
    }

    fn read_params(&mut self, digest: u128, contents_offset: u64) -> Result<()> {
        let section = self.sections[0];
        let wrong = |expected: &str, found: String| self.corrupt_at(&section, Fault::new(0, expected, found));
        if section.kind != Kind::Params
            || section.index != 0
            || section.codec != 1
            || section.rows != section.length
        {
            let found = format!("{}, codec {}, {} rows", section.kind.name(), section.codec, section.rows);
            let fault = Fault::new(0, "the parameters as first section, codec 1", found);
            return Err(corrupt(&self.path, "table of contents", contents_offset, fault));
        }
        if section.length > u64::from(PARAMS_BYTES_MAX) {
            let expected = format!("at most {PARAMS_BYTES_MAX} bytes of parameters");
            return Err(wrong(&expected, section.length.to_string()));
        }
        let text = self.read(&section, 0..section.length)?;
        let text = std::str::from_utf8(text).map_err(|e| wrong("UTF-8 text", e.to_string()))?;
        let params = Params::decode(text).map_err(|e| wrong("parameters", e.to_string()))?;
        if params.digest() != digest {
            return Err(wrong("the parameters of the digest in the header", "others".into()));
        }
        self.params = params;
        Ok(())
    }

    #[allow(clippy::too_many_lines, reason = "one straight list of checks, in the order of the sections")]
    /// Step 6. Takes the sections one by one in the order the format lays down.
    fn check_sections(&mut self, footer: &Footer, footer_offset: u64, band_codec: u16) -> Result<()> {
        let (documents, distinct) = (footer.documents.get(), footer.distinct.get());
        if documents > DOCUMENTS_MAX
            || distinct > documents
            || (self.params.simhash.is_none() && distinct > 0)
        {
            let expected =
                format!("at most {DOCUMENTS_MAX} documents and no more fingerprints than documents");
            let lie = Fault::new(40, expected, format!("{documents} and {distinct}"));
            return Err(corrupt(&self.path, "footer", footer_offset, lie));
        }
        let contents_offset = footer.contents_offset.get();
        // The error for an entry, numbered from 0, of the table of contents.
        let wrong_entry = |entry: usize, expected: String, found: String| {
            let fault = Fault::new((entry * ENTRY_BYTES) as u64, expected, found);
            corrupt(&self.path, "table of contents", contents_offset, fault)
        };
        let shown = |section: &Section| {
            let Section { kind, index, codec, rows, .. } = section;
            format!("section {} {index}, codec {codec}, {rows} rows", kind.name())
        };
        // The parameters, the first entry, have been read.
        let mut entries = self.sections.iter().copied().enumerate().skip(1);
        let mut next = |kind: Kind, index: u16, codec: u16, rows: Option<u64>| -> Result<Section> {
            let expected = || {
                let rows = rows.map_or(String::new(), |rows| format!(", {rows} rows"));
                format!("section {} {index}, codec {codec}{rows}", kind.name())
            };
            let Some((entry, section)) = entries.next() else {
                return Err(wrong_entry(self.sections.len(), expected(), "the end".into()));
            };
            let found = (section.kind, section.index, section.codec);
            if found != (kind, index, codec) || rows.is_some_and(|rows| rows != section.rows) {
                return Err(wrong_entry(entry, expected(), shown(&section)));
            }
            Ok(section)
        };
        let long = |section: &Section, length: u64| {
            if section.length == length {
                return Ok(());
            }
            let found = format!("{} bytes", section.length);
            Err(self.corrupt_at(
                section,
                Fault::new(0, format!("{length} bytes for {} rows", section.rows), found),
            ))
        };

        let keys = match self.params.key {
            KeyKind::U64 => {
                let section = next(Kind::Keys, 0, keys::CODEC_FRAME, Some(documents))?;
                let head = self.read(&section, 0..FRAME_HEAD_BYTES)?;
                let frame = Frame::read(head, section.length, section.rows);
                Keys::Frame(section, frame.map_err(|e| self.corrupt_at(&section, e))?)
            }
            KeyKind::Bytes => {
                let section = next(Kind::Keys, 0, keys::CODEC_FRONT, Some(documents))?;
                let least = keys::groups(documents) * 8 + 8;
                if section.length < least {
                    long(&section, least)?;
                }
                Keys::Front(section)
            }
        };
        let mut fingerprints = None;
        if self.params.simhash.is_some() {
            let ranks = next(Kind::Ranks, 0, ranks::CODEC, Some(documents))?;
            long(&ranks, documents * ranks::RANK_BYTES)?;
            let named = next(Kind::Design, 0, design::CODEC, None)?;
            long(&named, named.rows.min(design::NAME_BYTES_MAX))?;
            let name = design::decode(self.read(&named, 0..named.length)?);
            let design = Design::new(name.map_err(|e| self.corrupt_at(&named, e))?)?;
            let count = design.tables.len() as u16;
            // A table has a hot section if it has hot buckets; `verify` finds out whether it should have.
            let mut hot_sections = vec![None; count.into()];
            for index in 1..=count {
                if self.sections.iter().any(|section| (section.kind, section.index) == (Kind::Hot, index)) {
                    hot_sections[usize::from(index) - 1] = Some(next(Kind::Hot, index, hot::CODEC, None)?);
                }
            }
            let mut all: Vec<OpenTable> = Vec::with_capacity(design.tables.len());
            for (index, hot) in (1..=count).zip(hot_sections) {
                // The table of contents says which codec the table has; partial tables come after complete ones.
                let kinds = [Kind::Table, Kind::FilterTable];
                let mut entries = self.sections.iter().enumerate();
                let found = entries.find(|(_, found)| found.index == index && kinds.contains(&found.kind));
                let Some((entry, found)) = found else {
                    let none = format!("no table {index}");
                    return Err(wrong_entry(0, format!("{count} tables of the design {}", design.name), none));
                };
                let codec = Codec::of(found.kind, found.codec).filter(|&codec| match &all[..] {
                    [] => matches!(codec, Codec::Complete(_)),
                    [first] => matches!(codec, Codec::Partial(_)) || codec == first.codec,
                    [.., last] => codec == last.codec,
                });
                let Some(codec) = codec else {
                    let expected = match &all[..] {
                        [] => "a codec of complete tables".into(),
                        [first] => format!("codec {}, or one of partial tables", first.codec.number()),
                        [.., last] => format!("codec {} of {}", last.codec.number(), last.codec.kind().name()),
                    };
                    return Err(wrong_entry(entry, format!("table {index} by {expected}"), shown(found)));
                };
                let section = next(codec.kind(), index, codec.number(), Some(distinct))?;
                all.push(OpenTable::open(self, &design, section, codec, hot)?);
            }
            let postings = next(Kind::Postings, 0, postings::CODEC, Some(distinct))?;
            if postings.length < distinct * 4 || postings.length % 4 != 0 {
                long(&postings, distinct * 4)?;
            }
            let tables = Tables::new(design, all, distinct);
            fingerprints = Some(Fingerprints { distinct, ranks, tables, postings });
        }
        let (mut band_sections, mut signature_section) = (Vec::new(), None);
        if let Some(minhash) = self.params.minhash {
            let mut rows = None;
            for index in 1..=minhash.bands {
                let section = next(Kind::Band, index, band_codec, rows)?;
                rows = Some(section.rows);
                if section.rows > documents {
                    let found = section.rows.to_string();
                    let lie = Fault::new(0, format!("at most {documents} documents in a band"), found);
                    return Err(self.corrupt_at(&section, lie));
                }
                let band = Band::of(section.rows, documents, minhash.feature_bits.into(), band_codec);
                long(&section, band.length)?;
                band_sections.push((section, band));
            }
            let width = minhash.signature_bytes() as u64;
            if width > 0 {
                let section = next(Kind::Signatures, 0, signatures::CODEC, Some(documents))?;
                long(&section, documents * width)?;
                signature_section = Some((section, width));
            }
        }
        let mut samples = [None; 2];
        let chosen = [Kind::Bottom, Kind::Modular].into_iter().zip(Choice::of(&self.params));
        for ((kind, choice), sample) in chosen.zip(&mut samples) {
            let Some(choice) = choice else { continue };
            let section = next(kind, 0, samples::CODEC, None)?;
            let layout = Samples::of(choice, section.rows, documents).ok_or_else(|| {
                self.corrupt_at(&section, Fault::new(0, "as many values as a file can have", section.rows))
            })?;
            long(&section, layout.length)?;
            *sample = Some((section, layout));
        }
        let (mut values, mut stamps) = (None, None);
        if self.params.values {
            let section = next(Kind::Values, 0, attached::CODEC, None)?;
            let layout = Values::of(section.rows, documents).ok_or_else(|| {
                self.corrupt_at(&section, Fault::new(0, "as many bytes as a file can have", section.rows))
            })?;
            long(&section, layout.length)?;
            values = Some((section, layout));
        }
        if self.params.expire_after.is_some() {
            let section = next(Kind::Stamps, 0, attached::CODEC, Some(documents))?;
            let head = self.read(&section, 0..STAMPS_HEAD_BYTES)?;
            let layout = Stamps::read(head, section.length, documents);
            stamps = Some((section, layout.map_err(|e| self.corrupt_at(&section, e))?));
        }
        next(Kind::Checksums, 0, 1, None)?;
        if let Some((entry, section)) = entries.next() {
            return Err(wrong_entry(entry, "no further section".into(), shown(&section)));
        }
        self.keys = keys;
        self.fingerprints = fingerprints;
        self.bands = band_sections;
        self.signatures = signature_section;
        self.samples = samples;
        self.values = values;
        self.stamps = stamps;
        Ok(())
    }

    /// The bytes at `range` of a section, their pages checked.
    #[inline(always)]
    pub(super) fn read(&self, section: &Section, range: Range<u64>) -> Result<&[u8]> {
        if range.end > section.length || range.start > range.end {
            return Err(self.outside(section, &range));
        }
        let range = section.offset + range.start..section.offset + range.end;
        self.pages.read(&self.bytes, &range).map_err(|trouble| self.unreadable(section.kind.name(), trouble))
    }

    /// The bytes at `range` of the file, as [`read`](Self::read) has those of a section; of no use behind the
    /// pages' end.
    pub(super) fn read_file(&self, section: &'static str, range: &Range<u64>) -> Result<&[u8]> {
        self.pages.read(&self.bytes, range).map_err(|trouble| self.unreadable(section, trouble))
    }

    /// Compares a page with its checksum, even if it was found sound before.
    pub(super) fn check_page(&self, page: u64) -> Result<()> {
        self.pages.check(&self.bytes, page).map_err(|trouble| self.unreadable("page", trouble))
    }

    /// To be asked when a question has been answered from this segment, and before the answer is believed: a map whose
    /// pages cannot be read any more has zeros in their place, where the program has asked for a guard
    /// (`sys::guard::install`); otherwise nothing is ever wrong here. [`Snapshot`](crate::Snapshot) and all above it
    /// ask.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[inline]
    pub fn check_map(&self) -> Result<()> {
        if self.bytes.is_lost() { Err(Error::io("read", &self.path, pages::lost())) } else { Ok(()) }
    }

    /// Pages in all.
    pub(super) fn page_count(&self) -> u64 {
        self.pages.count()
    }

    #[cold]
    fn unreadable(&self, section: &'static str, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Damaged(fault) => corrupt(&self.path, section, 0, fault),
            Trouble::Failed(error) => Error::io("read", &self.path, error),
        }
    }

    /// The whole file where it is mapped or in memory, otherwise nothing. Not checked: to be read where
    /// [`knows`](Self::knows) says so.
    #[inline(always)]
    pub(super) fn whole(&self) -> &[u8] {
        match &self.bytes {
            View::Whole { bytes, .. } => bytes,
            View::Fetched(_) => &[],
        }
    }

    /// The section of a table, numbered from 0, of those that there are.
    pub(super) fn table_section(&self, table: u32) -> &Section {
        let tables = self.fingerprints.as_ref().map(|fingerprints| &fingerprints.tables.all[table as usize]);
        tables.map_or(&self.sections[0], |table| &table.section)
    }

    /// True once all pages of a stretch of a mapped file were found sound.
    #[inline(always)]
    pub(super) fn all_sound(&self, stretch: &Stretch) -> bool {
        self.pages.all_sound(stretch)
    }

    /// Which pages were found sound.
    #[inline(always)]
    pub(super) fn known(&self) -> Known<'_> {
        self.pages.known()
    }

    /// Says that the bytes at `range`, offsets in the file, will be read soon: the operating system begins to read
    /// those of pages that were not touched yet, and this does not wait. Worth saying for all that a batch of questions
    /// will read before the first of it is read: a disk serves many reads at once nearly as fast as one.
    #[cold]
    #[inline(never)]
    pub(super) fn will_need(&self, range: Range<u64>) {
        self.pages.will_need(&self.bytes, &range);
    }

    #[cold]
    fn outside(&self, section: &Section, range: &Range<u64>) -> Error {
        let expected = format!("a place within {} bytes", section.length);
        self.corrupt_at(section, Fault::new(range.start, expected, format!("{}..{}", range.start, range.end)))
    }

    /// A fault at an offset of a section, as an error at an offset of the file.
    #[cold]
    pub(super) fn corrupt_at(&self, section: &Section, fault: Fault) -> Error {
        corrupt(&self.path, section.kind.name(), section.offset, fault)
    }

    /// Sees the bytes at `range` of a section as a column of `T`.
    #[inline(always)]
    pub(super) fn column<T>(&self, section: &Section, range: Range<u64>) -> Result<&[T]>
    where
        T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned,
    {
        let start = range.start;
        wire::column(self.read(section, range)?).map_err(|mut fault| {
            fault.offset += start;
            self.corrupt_at(section, fault)
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The parameters of its records.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The sum modulo 2^128 of the parameters' digest and its records' hashes.
    #[must_use]
    pub fn salt(&self) -> u128 {
        self.salt
    }

    /// Identifies the bytes of the file: xxh3-128 of header, checksums, contents and footer.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// Documents in it.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Distinct fingerprints in it.
    #[must_use]
    pub fn distinct_fingerprints(&self) -> u64 {
        self.fingerprints.as_ref().map_or(0, |fingerprints| fingerprints.distinct)
    }

    /// Its sections, in the order of the file.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }
}
