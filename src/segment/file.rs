//! The bytes of a segment file, read by section. Each page is compared with its checksum at its first use.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pages::{self, CheckedPages, PageChecks, Stretch, PageError};
use crate::error::{Error, Result, corrupt};
use crate::format::contents::Section;
use crate::format::table::Source;
use crate::format::wire::{self, Fault};
use crate::sys::mmap::View;

/// A file and the extents of its sections. The bytes are mapped, or read at their first use.
#[derive(Debug)]
pub(super) struct SegmentFile {
    path: PathBuf,
    bytes: View,
    pages: PageChecks,
    sections: Vec<Section>,
}

impl SegmentFile {
    pub(super) fn new(path: &Path, bytes: View, pages: PageChecks, sections: Vec<Section>) -> Self {
        Self { path: path.to_owned(), bytes, pages, sections }
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

    /// The bytes at `range` of the file, as [`read`](Self::read) returns those of a section. Works only for ranges
    /// within the checksummed pages.
    pub(super) fn read_file(&self, section: &'static str, range: &Range<u64>) -> Result<&[u8]> {
        self.pages.read(&self.bytes, range).map_err(|trouble| self.unreadable(section, trouble))
    }

    /// Compares a page with its checksum, even if it was found sound before.
    pub(super) fn check_page(&self, page: u64) -> Result<()> {
        self.pages.check(&self.bytes, page).map_err(|trouble| self.unreadable("page", trouble))
    }

    /// Fails if a page of a guarded map was unreadable.
    #[inline]
    pub(super) fn check_map(&self) -> Result<()> {
        if self.bytes.is_lost() { Err(Error::io("read", &self.path, pages::lost())) } else { Ok(()) }
    }

    /// The number of pages.
    pub(super) fn page_count(&self) -> u64 {
        self.pages.count()
    }

    /// The number of pages whose checksums were compared.
    pub(super) fn sound_pages(&self) -> u64 {
        self.pages.known().count()
    }

    #[cold]
    fn unreadable(&self, section: &'static str, trouble: PageError) -> Error {
        match trouble {
            PageError::Damaged(fault) => corrupt(&self.path, section, 0, fault),
            PageError::Failed(error) => Error::io("read", &self.path, error),
        }
    }

    /// The whole file if it is mapped or in memory, otherwise empty. Not checked: read it only where [`CheckedPages::have`] is
    /// true.
    #[inline(always)]
    pub(super) fn whole(&self) -> &[u8] {
        match &self.bytes {
            View::Whole { bytes, .. } => bytes,
            View::Fetched(_) => &[],
        }
    }

    /// True once all pages of a stretch of a mapped file have been checked.
    #[inline(always)]
    fn all_sound(&self, stretch: &Stretch) -> bool {
        self.pages.all_sound(stretch)
    }

    /// The set of pages that have been checked.
    #[inline(always)]
    fn known(&self) -> CheckedPages<'_> {
        self.pages.known()
    }

    /// Prefetches the bytes at `range` (offsets in the file) of pages that were not used yet, without waiting. Worth it
    /// for everything that a batch of queries will read, before the first read: a disk serves many reads at once nearly
    /// as fast as one.
    #[cold]
    #[inline(never)]
    fn will_need(&self, range: Range<u64>) {
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

    /// The bytes at `range` of a section as a column of `T`.
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
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Its sections, in the order of the file.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }
}

/// Reads a section of a segment for a codec.
#[derive(Clone, Copy)]
pub(super) struct SectionReader<'a> {
    pub(super) file: &'a SegmentFile,
    section: &'a Section,
    /// [`SegmentFile::whole`].
    pub(super) whole: &'a [u8],
    /// The part of the file from `base` on whose pages have all been checked; empty until this holds for all tables.
    pub(super) sound: &'a [u8],
    pub(super) base: usize,
}

impl<'a> SectionReader<'a> {
    #[inline]
    pub(super) fn new(file: &'a SegmentFile, section: &'a Section) -> Self {
        Self { file, section, whole: file.whole(), sound: &[], base: 0 }
    }

    /// If all pages of `stretch`, which covers `extent` of the file, have been checked, later reads there skip their
    /// own check.
    #[inline(always)]
    pub(super) fn settle(&mut self, extent: &Range<u64>, stretch: &Stretch) {
        if self.sound.is_empty() && self.file.all_sound(stretch) {
            let &Range { start, end } = extent;
            // Without the bytes nothing changes: each read is checked.
            self.sound = self.whole.get(start as usize..end as usize).unwrap_or_default();
            self.base = start as usize;
        }
    }

    /// The same reader for another section.
    #[inline(always)]
    pub(super) fn section(self, section: &'a Section) -> Self {
        Self { section, ..self }
    }

    /// True while pages must be checked and prefetched.
    #[inline(always)]
    pub(super) fn is_cold(&self) -> bool {
        self.sound.is_empty()
    }

    /// The bytes at `range` of the file, if they are within the checked part.
    #[inline(always)]
    pub(super) fn sound(&self, range: &Range<usize>) -> Option<&'a [u8]> {
        self.sound.get(range.start.wrapping_sub(self.base)..range.end.wrapping_sub(self.base))
    }

    /// The bytes at `range` of the file, which lies in this section.
    #[inline(always)]
    fn bytes(&self, range: Range<usize>, section: &Section) -> Result<&'a [u8]> {
        match self.sound(&range) {
            Some(bytes) => Ok(bytes),
            None => self.checked(&range, section),
        }
    }

    // Not inlined, and with references only, so that the fast path copies nothing.
    #[inline(never)]
    pub(super) fn checked(&self, range: &Range<usize>, section: &Section) -> Result<&'a [u8]> {
        if let Some(bytes) = self.whole.get(range.clone())
            && self.file.known().have(range)
        {
            return Ok(bytes);
        }
        let (start, end) = (range.start as u64 - section.offset, range.end as u64 - section.offset);
        self.file.read(section, start..end)
    }

    #[inline(never)]
    pub(super) fn announce_file(&self, range: &Range<usize>) {
        if !self.file.known().have(range) {
            self.file.will_need(range.start as u64..range.end as u64);
        }
    }
}

impl<'a> Source<'a> for SectionReader<'a> {
    #[inline(always)]
    fn read(self, range: Range<u64>) -> Result<&'a [u8]> {
        let (offset, length) = (self.section.offset as usize, self.section.length);
        if range.start > range.end || range.end > length {
            return self.file.read(self.section, range);
        }
        self.bytes(offset + range.start as usize..offset + range.end as usize, self.section)
    }

    #[cold]
    fn corrupt(self, fault: Fault) -> Error {
        self.file.corrupt_at(self.section, fault)
    }

    #[inline(always)]
    fn hint(self, at: u64) {
        twindex_kernel::prefetch(self.whole, (self.section.offset + at) as usize);
    }

    #[inline(always)]
    fn announce(self, range: Range<u64>) {
        let offset = self.section.offset as usize;
        if self.is_cold() {
            self.announce_file(&(offset + range.start as usize..offset + range.end as usize));
        }
    }
}
