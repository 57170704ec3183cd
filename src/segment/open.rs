//! Opens a file as a [`Segment`].
//!
//! The checks run in this order; each check relies on the earlier ones:
//!
//! 1. the header: magic, checksum, version, features, role;
//! 2. the footer, with the header's salt: magic, checksum, the file's length;
//! 3. the table of contents: checksum, section kinds, and that the sections tile the file;
//! 4. the checksums section, against its checksum in the footer;
//! 5. the parameters, against their digest in the header;
//! 6. the sections, against the parameters: exactly the required sections are present, and the length of each matches its
//!    number of rows.
//!
//! Steps 1 to 5, in `parsed`, return a `ParsedSegment`. Step 6, in this module, converts it into a [`Segment`], which
//! is immutable.
//!
//! The checksum of a page is checked when the page is first used; the validity of a stored value is checked at each
//! use. Header, footer, table of contents and checksums are read, not mapped. Opening takes O(sections + pages) time
//! and memory: about a thousandth of the file size.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use super::features::FeatureColumn;
use super::file::{SectionReader, SegmentFile};
use super::held::HeldOrders;
use super::parsed::ParsedSegment;
use super::tables::{OpenTable, OpenTables};
use crate::design::Design;
use crate::error::{Error, Result};
use crate::format::attached::{self, STAMPS_HEAD_BYTES, Stamps, Values};
use crate::format::bands::{self, Band};
use crate::format::checksum::PAGE;
use crate::format::code_parts::Cut;
use crate::format::contents::{Kind, Section};
use crate::format::fields;
use crate::format::keys::{self, FRAME_HEAD_BYTES, Frame};
use crate::format::prefixes::CLASSES;
use crate::format::samples::{self, SampleChoice, Samples};
use crate::format::table::Codec;
use crate::format::wire::Fault;
use crate::format::{design, hot, postings, ranks, signatures};
use crate::key::KeyBuf;
use crate::params::{KeyKind, Params};
use crate::sync::Mutex;
use crate::sys::vfs::{MemoryFile, ReadFile, Vfs};
use crate::sys::{Access, Column};

/// An open segment, which any number of readers share. Its bytes are mapped, or read from the file at their first use.
#[derive(Debug)]
pub struct Segment {
    pub(super) file: SegmentFile,
    params: Params,
    salt: u128,
    digest: u128,
    documents: u64,
    pub(super) keys: Keys,
    pub(super) fingerprints: Option<Fingerprints>,
    pub(super) bands: Vec<(Section, Band)>,
    pub(super) signatures: Option<(Section, u64)>,
    /// The sections of the bottom samples and of the modular samples; `None` if the index stores none.
    pub(super) samples: [Option<(Section, Samples)>; 2],
    pub(super) values: Option<(Section, Values)>,
    pub(super) stamps: Option<(Section, Stamps)>,
    pub(super) fields: Option<(Section, Values)>,
    /// The sections of common tags and of prefixes, which are used to find near sets; `None` if the index stores no sets.
    pub(super) sets: Option<[(Section, Band); 2]>,
    /// Set when the section of common tags has been announced.
    pub(super) common_announced: OnceLock<()>,
    /// The section of suffixes, which is used to find containing sets; `None` if the index stores none.
    pub(super) suffixes: Option<(Section, Band)>,
    /// The parts of the codes; `None` if there are none.
    pub(super) parts: Option<CodeParts>,
    /// The smallest and the largest key, computed at the first use. The inner `None` means that the segment is empty.
    pub(super) key_span: OnceLock<Option<(KeyBuf, KeyBuf)>>,
    /// The band keys, indexed by document; read at the first use.
    pub(super) features: OnceLock<FeatureColumn>,
    /// The priority of each document; computed at the first use.
    pub(super) priorities: OnceLock<Column<[u64; 2]>>,
    /// The number of reads that were announced to [`prepare_priorities`](Self::prepare_priorities) so far.
    pub(super) priority_reads: AtomicU64,
    /// The cached documents of long buckets, sorted by priority.
    pub(super) ordered: Mutex<HeldOrders>,
}

/// The parts of the codes.
#[derive(Debug)]
pub(super) struct CodeParts {
    pub(super) cut: Cut,
    pub(super) sections: Vec<(Section, Band)>,
}

/// The section of the keys, in one of two encodings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    Frame(Section, Frame),
    Front(Section),
}

/// The sections and tables of fingerprints.
#[derive(Debug)]
pub(super) struct Fingerprints {
    pub(super) distinct: u64,
    pub(super) ranks: Section,
    pub(super) tables: OpenTables,
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

    /// Opens a segment as [`open`](Self::open) does, but `access` specifies whether its bytes are mapped or read.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn open_with(vfs: &dyn Vfs, path: &Path, access: Access) -> Result<Self> {
        let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
        Self::open_file(file, path, access)
    }

    /// Opens a segment from bytes in memory. Error messages name `path` as the file.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        Self::open_file(Box::new(MemoryFile(bytes)), path, Access::default())
    }

    fn open_file(file: Box<dyn ReadFile>, path: &Path, access: Access) -> Result<Self> {
        let parsed = ParsedSegment::read(file, path, access)?;
        // The first entry, the section of parameters, has been read already.
        let mut entries = Entries { parsed: &parsed, next: 1 };
        let keys = entries.keys()?;
        let fingerprints = entries.fingerprints()?;
        let bands = entries.bands()?;
        let signatures = entries.signatures()?;
        let samples = entries.samples()?;
        let values = entries.values()?;
        let stamps = entries.stamps()?;
        let fields = entries.fields()?;
        let sets = entries.sets()?;
        let suffixes = entries.suffixes()?;
        let parts = entries.parts()?;
        entries.take(Kind::Checksums, 0, 1, None)?;
        entries.finish()?;
        let ParsedSegment { file, params, salt, digest, documents, .. } = parsed;
        Ok(Self {
            file,
            params,
            salt,
            digest,
            documents,
            keys,
            fingerprints,
            bands,
            signatures,
            samples,
            values,
            stamps,
            fields,
            sets,
            common_announced: OnceLock::new(),
            suffixes,
            parts,
            key_span: OnceLock::new(),
            features: OnceLock::new(),
            priorities: OnceLock::new(),
            priority_reads: AtomicU64::new(0),
            ordered: Mutex::new(HeldOrders::default()),
        })
    }

    /// Returns the total size in bytes of the pages whose checksums have matched since the segment was opened.
    pub(crate) fn verified_bytes(&self) -> u64 {
        self.file.sound_pages() * PAGE
    }

    /// Returns the size in bytes of the data that queries cached: features, priorities, and orders of long buckets.
    pub(crate) fn cached_bytes(&self) -> u64 {
        let features = self.features.get().map_or(0, FeatureColumn::bytes);
        let priorities = self.priorities.get().map_or(0, |all| size_of::<[u64; 2]>() * all.len());
        (features + priorities + self.ordered.lock().bytes()) as u64
    }

    /// Reads the whole file and compares each page with its checksum, about as fast as the file can be read. Unlike
    /// [`verify`](Self::verify), does not check the contents.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first damaged page, [`Error::Io`].
    pub fn check_pages(&self) -> Result<()> {
        // The checksums section has its own checksum, which was checked when the file was opened.
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

    /// Returns a reader of `section`, from which codecs read.
    #[inline]
    pub(super) fn at<'a>(&'a self, section: &'a Section) -> SectionReader<'a> {
        SectionReader::new(&self.file, section)
    }

    /// Returns the bytes at `range` of a section. First checks the pages that contain them.
    #[inline(always)]
    pub(super) fn read(&self, section: &Section, range: Range<u64>) -> Result<&[u8]> {
        self.file.read(section, range)
    }

    /// Returns the bytes at `range` of a section as a slice of `T`.
    #[inline(always)]
    pub(super) fn column<T>(&self, section: &Section, range: Range<u64>) -> Result<&[T]>
    where
        T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned,
    {
        self.file.column(section, range)
    }

    /// Converts a fault at an offset in a section to an error at an offset in the file.
    #[cold]
    pub(super) fn corrupt_at(&self, section: &Section, fault: Fault) -> Error {
        self.file.corrupt_at(section, fault)
    }

    /// Returns an error if pages of the map could not be read. Call this after each query on this segment, before you
    /// use the results: if the program has installed the guard (`sys::guard::install`), unreadable pages of a map read
    /// as zeros and are reported only here. Without the guard, this always succeeds. [`Snapshot`](crate::Snapshot) and
    /// all layers above it call this.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[inline]
    pub fn check_map(&self) -> Result<()> {
        self.file.check_map()
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.file.length()
    }

    /// Returns the parameters with which the segment's records were made.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the salt: the sum modulo 2^128 of the parameters' digest and the records' hashes.
    #[must_use]
    pub fn salt(&self) -> u128 {
        self.salt
    }

    /// Returns the digest that identifies the contents of the file: the xxh3-128 of header, checksums, table of contents and
    /// footer.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// Returns the number of documents in the segment.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the number of distinct fingerprints in the segment; 0 if the index stores no fingerprints.
    #[must_use]
    pub fn distinct_fingerprints(&self) -> u64 {
        self.fingerprints.as_ref().map_or(0, |fingerprints| fingerprints.distinct)
    }

    /// Returns the sections in the order of the file.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        self.file.sections()
    }
}

/// Step 6: takes the entries of the table of contents one by one, and checks that they are the required ones.
struct Entries<'a> {
    parsed: &'a ParsedSegment,
    /// The index of the next entry.
    next: usize,
}

impl Entries<'_> {
    /// Takes the next entry and returns its section. Returns an error unless the entry has this kind, index, codec and
    /// number of rows; `None` accepts any number of rows.
    fn take(&mut self, kind: Kind, index: u16, codec: u16, rows: Option<u64>) -> Result<Section> {
        let entry = self.next;
        let expected = || {
            let rows = rows.map_or(String::new(), |rows| format!(", {rows} rows"));
            format!("section {} {index}, codec {codec}{rows}", kind.name())
        };
        let Some(&section) = self.parsed.file.sections().get(entry) else {
            return Err(self.parsed.wrong_entry(entry, expected(), "the end".into()));
        };
        let found = (section.kind, section.index, section.codec);
        if found != (kind, index, codec) || rows.is_some_and(|rows| rows != section.rows) {
            return Err(self.parsed.wrong_entry(entry, expected(), shown(&section)));
        }
        self.next += 1;
        Ok(section)
    }

    /// Returns an error if entries remain.
    fn finish(self) -> Result<()> {
        match self.parsed.file.sections().get(self.next) {
            None => Ok(()),
            Some(section) => {
                Err(self.parsed.wrong_entry(self.next, "no further section".into(), shown(section)))
            }
        }
    }

    fn corrupt_at(&self, section: &Section, fault: Fault) -> Error {
        self.parsed.file.corrupt_at(section, fault)
    }

    fn check_length(&self, section: &Section, length: u64) -> Result<()> {
        if section.length == length {
            return Ok(());
        }
        let found = format!("{} bytes", section.length);
        Err(self
            .corrupt_at(section, Fault::new(0, format!("{length} bytes for {} rows", section.rows), found)))
    }

    fn keys(&mut self) -> Result<Keys> {
        let documents = self.parsed.documents;
        match self.parsed.params.key {
            KeyKind::U64 => {
                let section = self.take(Kind::Keys, 0, keys::CODEC_FRAME, Some(documents))?;
                let head = self.parsed.file.read(&section, 0..FRAME_HEAD_BYTES)?;
                let frame = Frame::read(head, section.length, section.rows);
                Ok(Keys::Frame(section, frame.map_err(|e| self.corrupt_at(&section, e))?))
            }
            KeyKind::Bytes => {
                let section = self.take(Kind::Keys, 0, keys::CODEC_FRONT, Some(documents))?;
                let min = keys::groups(documents) * 8 + 8;
                if section.length < min {
                    self.check_length(&section, min)?;
                }
                Ok(Keys::Front(section))
            }
        }
    }

    fn fingerprints(&mut self) -> Result<Option<Fingerprints>> {
        let ParsedSegment { file, params, distinct, .. } = self.parsed;
        let distinct = *distinct;
        if params.simhash.is_none() {
            return Ok(None);
        }
        let ranks = self.ranks()?;
        let named = self.take(Kind::Design, 0, design::CODEC, None)?;
        self.check_length(&named, named.rows.min(design::NAME_BYTES_MAX))?;
        let name = design::decode(file.read(&named, 0..named.length)?);
        let design = Design::new(name.map_err(|e| self.corrupt_at(&named, e))?)?;
        let count = design.tables.len() as u16;
        // A table with hot buckets has a hot section. If such a section is missing, only `verify` detects this.
        let mut hot_sections = vec![None; count.into()];
        for index in 1..=count {
            if file.sections().iter().any(|section| (section.kind, section.index) == (Kind::Hot, index)) {
                hot_sections[usize::from(index) - 1] = Some(self.take(Kind::Hot, index, hot::CODEC, None)?);
            }
        }
        let mut all: Vec<OpenTable> = Vec::with_capacity(design.tables.len());
        for (index, hot) in (1..=count).zip(hot_sections) {
            let codec = self.codec_of_table(&design, index, &all)?;
            let entry = self.next;
            self.take(codec.kind(), index, codec.number(), Some(distinct))?;
            all.push(OpenTable::open(file, &design, entry, codec, hot)?);
        }
        let postings = self.postings()?;
        let tables = OpenTables::new(design, all, distinct);
        Ok(Some(Fingerprints { distinct, ranks, tables, postings }))
    }

    fn ranks(&mut self) -> Result<Section> {
        let documents = self.parsed.documents;
        let ranks = self.take(Kind::Ranks, 0, ranks::CODEC, Some(documents))?;
        self.check_length(&ranks, documents * ranks::RANK_BYTES)?;
        Ok(ranks)
    }

    fn postings(&mut self) -> Result<Section> {
        let distinct = self.parsed.distinct;
        let postings = self.take(Kind::Postings, 0, postings::CODEC, Some(distinct))?;
        if postings.length < distinct * 4 || postings.length % 4 != 0 {
            self.check_length(&postings, distinct * 4)?;
        }
        Ok(postings)
    }

    /// Returns the codec of table `index`, numbered from 1, according to the table of contents. `before` has the tables
    /// with lower numbers. Refuses a complete table after a partial one.
    fn codec_of_table(&self, design: &Design, index: u16, before: &[OpenTable]) -> Result<Codec> {
        let kinds = [Kind::Table, Kind::FilterTable];
        let mut entries = self.parsed.file.sections().iter().enumerate();
        let Some((entry, section)) =
            entries.find(|(_, found)| found.index == index && kinds.contains(&found.kind))
        else {
            let expected = format!("{} tables of the design {}", design.tables.len(), design.name);
            return Err(self.parsed.wrong_entry(0, expected, format!("no table {index}")));
        };
        let codec = Codec::of(section.kind, section.codec).filter(|&codec| match before {
            [] => matches!(codec, Codec::Complete(_)),
            [first] => matches!(codec, Codec::Partial(_)) || codec == first.codec,
            [.., last] => codec == last.codec,
        });
        codec.ok_or_else(|| {
            let expected = match before {
                [] => "a codec of complete tables".into(),
                [first] => format!("codec {}, or one of partial tables", first.codec.number()),
                [.., last] => format!("codec {} of {}", last.codec.number(), last.codec.kind().name()),
            };
            self.parsed.wrong_entry(entry, format!("table {index} by {expected}"), shown(section))
        })
    }

    fn bands(&mut self) -> Result<Vec<(Section, Band)>> {
        let ParsedSegment { params, documents, band_codec, .. } = self.parsed;
        let Some(minhash) = params.minhash else { return Ok(Vec::new()) };
        let (mut bands, mut rows) = (Vec::new(), None);
        for index in 1..=minhash.bands {
            let section = self.take(Kind::Band, index, *band_codec, rows)?;
            rows = Some(section.rows);
            if section.rows > *documents {
                let found = section.rows.to_string();
                let lie = Fault::new(0, format!("at most {documents} documents in a band"), found);
                return Err(self.corrupt_at(&section, lie));
            }
            let band = Band::of(section.rows, *documents, minhash.feature_bits.into(), *band_codec);
            self.check_length(&section, band.length)?;
            bands.push((section, band));
        }
        Ok(bands)
    }

    /// Returns the section of signatures, and the length of a signature in bytes.
    fn signatures(&mut self) -> Result<Option<(Section, u64)>> {
        let (params, documents) = (&self.parsed.params, self.parsed.documents);
        let width = params.minhash.map_or(0, |minhash| minhash.signature_bytes() as u64);
        if width == 0 {
            return Ok(None);
        }
        let section = self.take(Kind::Signatures, 0, signatures::CODEC, Some(documents))?;
        self.check_length(&section, documents * width)?;
        Ok(Some((section, width)))
    }

    fn samples(&mut self) -> Result<[Option<(Section, Samples)>; 2]> {
        let mut samples = [None; 2];
        let chosen = [Kind::Bottom, Kind::Modular].into_iter().zip(SampleChoice::of(&self.parsed.params));
        for ((kind, choice), sample) in chosen.zip(&mut samples) {
            let Some(choice) = choice else { continue };
            let section = self.take(kind, 0, samples::CODEC, None)?;
            let layout = Samples::of(choice, section.rows, self.parsed.documents).ok_or_else(|| {
                self.corrupt_at(&section, Fault::new(0, "as many values as a file can have", section.rows))
            })?;
            self.check_length(&section, layout.length)?;
            *sample = Some((section, layout));
        }
        Ok(samples)
    }

    fn values(&mut self) -> Result<Option<(Section, Values)>> {
        if !self.parsed.params.values {
            return Ok(None);
        }
        self.bytes_of_documents(Kind::Values, attached::CODEC, Values::of).map(Some)
    }

    fn fields(&mut self) -> Result<Option<(Section, Values)>> {
        if !fields::are_kept(&self.parsed.params) {
            return Ok(None);
        }
        self.bytes_of_documents(Kind::Fields, fields::CODEC, Values::of_fields).map(Some)
    }

    /// Takes the section of values or the section of fields. Each has one byte string per document.
    fn bytes_of_documents(
        &mut self,
        kind: Kind,
        codec: u16,
        layout: impl Fn(u64, u64) -> Option<Values>,
    ) -> Result<(Section, Values)> {
        let section = self.take(kind, 0, codec, None)?;
        let layout = layout(section.rows, self.parsed.documents).ok_or_else(|| {
            self.corrupt_at(&section, Fault::new(0, "as many bytes as a file can have", section.rows))
        })?;
        self.check_length(&section, layout.length)?;
        Ok((section, layout))
    }

    /// Takes the sections of common tags and prefixes, which are used to find near sets. `None` if the index stores no sets.
    fn sets(&mut self) -> Result<Option<[(Section, Band); 2]>> {
        if !self.parsed.params.sets {
            return Ok(None);
        }
        let common = self.coded_as_band(Kind::Common, CLASSES)?;
        let prefixes = self.coded_as_band(Kind::Prefixes, self.parsed.documents)?;
        Ok(Some([common, prefixes]))
    }

    /// Takes the section of suffixes; `None` if the index stores none.
    fn suffixes(&mut self) -> Result<Option<(Section, Band)>> {
        if !self.parsed.params.suffixes {
            return Ok(None);
        }
        self.coded_as_band(Kind::Suffixes, self.parsed.documents).map(Some)
    }

    /// Takes the parts of the codes; `None` if the segment has none. Their number is that of their entries.
    fn parts(&mut self) -> Result<Option<CodeParts>> {
        let ParsedSegment { file, params, documents, has_parts, .. } = self.parsed;
        let Some(codes) = params.codes.filter(|_| *has_parts) else { return Ok(None) };
        let count = file.sections().iter().filter(|section| section.kind == Kind::Part).count();
        let cut = Cut::new(codes.bits, count).ok_or_else(|| {
            let expected = format!("parts of at most {} bits of {}", bands::KEY_BITS, codes.bits);
            self.parsed.wrong_entry(self.next, expected, format!("{count} parts"))
        })?;
        let mut sections = Vec::with_capacity(count);
        for part in 0..cut.parts {
            let section = self.take(Kind::Part, part as u16 + 1, bands::CODEC_PACKED, Some(*documents))?;
            let layout = cut.layout(part, *documents);
            self.check_length(&section, layout.length)?;
            sections.push((section, layout));
        }
        Ok(Some(CodeParts { cut, sections }))
    }

    /// Takes a section that is encoded as a band. The ordinals in its entries must be below `below`.
    fn coded_as_band(&mut self, kind: Kind, below: u64) -> Result<(Section, Band)> {
        let section = self.take(kind, 0, bands::CODEC_PACKED, None)?;
        if section.rows > u32::MAX.into() {
            let lie = Fault::new(0, format!("at most {} entries", u32::MAX), section.rows);
            return Err(self.corrupt_at(&section, lie));
        }
        let layout = Band::of(section.rows, below, bands::KEY_BITS, bands::CODEC_PACKED);
        self.check_length(&section, layout.length)?;
        Ok((section, layout))
    }

    fn stamps(&mut self) -> Result<Option<(Section, Stamps)>> {
        let (params, documents) = (&self.parsed.params, self.parsed.documents);
        if params.expire_after.is_none() {
            return Ok(None);
        }
        let section = self.take(Kind::Stamps, 0, attached::CODEC, Some(documents))?;
        let head = self.parsed.file.read(&section, 0..STAMPS_HEAD_BYTES)?;
        let layout = Stamps::read(head, section.length, documents);
        Ok(Some((section, layout.map_err(|e| self.corrupt_at(&section, e))?)))
    }
}

/// Describes a section in error messages.
fn shown(section: &Section) -> String {
    let Section { kind, index, codec, rows, .. } = section;
    format!("section {} {index}, codec {codec}, {rows} rows", kind.name())
}
