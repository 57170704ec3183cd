//! Reads the bytes of a segment file section by section. Checks each page against its checksum at its first use.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pages::{self, CheckedPages, PageChecks, PageError, Stretch};
use crate::error::{Error, Result, corrupt};
use crate::format::contents::Section;
use crate::format::table::Source;
use crate::format::wire::{self, Fault};
use crate::sys::mmap::View;

/// A segment file and the ranges of its sections. Its bytes are either mapped, or read at their first use.
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

    /// Returns the bytes at `range` of a section. First checks the pages that contain them.
    #[inline(always)]
    pub(super) fn read(&self, section: &Section, range: Range<u64>) -> Result<&[u8]> {
        if range.end > section.length || range.start > range.end {
            return Err(self.outside(section, &range));
        }
        let range = section.offset + range.start..section.offset + range.end;
        self.pages.read(&self.bytes, &range).map_err(|trouble| self.unreadable(section.kind.name(), trouble))
    }

    /// Returns the bytes at `range` of the file, which must be within the checksummed pages. Errors name the section
    /// `section`.
    pub(super) fn read_file(&self, section: &'static str, range: &Range<u64>) -> Result<&[u8]> {
        self.pages.read(&self.bytes, range).map_err(|trouble| self.unreadable(section, trouble))
    }

    /// Compares a page with its checksum, even if it has matched before.
    pub(super) fn check_page(&self, page: u64) -> Result<()> {
        self.pages.check(&self.bytes, page).map_err(|trouble| self.unreadable("page", trouble))
    }

    /// Returns an error if a page of a guarded map could not be read.
    #[inline]
    pub(super) fn check_map(&self) -> Result<()> {
        if self.bytes.is_lost() { Err(Error::io("read", &self.path, pages::lost())) } else { Ok(()) }
    }

    pub(super) fn page_count(&self) -> u64 {
        self.pages.count()
    }

    /// Returns the number of pages whose checksums have matched.
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

    /// Returns the whole file if it is mapped or in memory, otherwise an empty slice. The bytes may be damaged: use
    /// only ranges for which [`CheckedPages::have`] returns true.
    #[inline(always)]
    pub(super) fn whole(&self) -> &[u8] {
        match &self.bytes {
            View::Whole { bytes, .. } => bytes,
            View::Fetched(_) => &[],
        }
    }

    #[inline(always)]
    fn all_sound(&self, stretch: &Stretch) -> bool {
        self.pages.all_sound(stretch)
    }

    #[inline(always)]
    fn known(&self) -> CheckedPages<'_> {
        self.pages.known()
    }

    /// Returns the number of pages that were announced so far.
    #[inline]
    pub(super) fn announced(&self) -> u64 {
        self.pages.announced()
    }

    /// Asks the operating system to read the pages at `range` (offsets in the file), unless they were read already.
    /// Does not wait. Call it for all data that a batch of queries needs before the first byte is read: a disk serves
    /// many reads at once nearly as fast as one.
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

    /// Converts a fault at an offset in a section to an error at an offset in the file.
    #[cold]
    pub(super) fn corrupt_at(&self, section: &Section, fault: Fault) -> Error {
        corrupt(&self.path, section.kind.name(), section.offset, fault)
    }

    /// Returns the bytes at `range` of a section as a slice of `T`.
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the sections in the order of the file.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }
}

/// Reads the bytes of one section; codecs use it as their input.
#[derive(Clone, Copy)]
pub(super) struct SectionReader<'a> {
    pub(super) file: &'a SegmentFile,
    section: &'a Section,
    /// The whole file if it is mapped or in memory, otherwise empty.
    pub(super) whole: &'a [u8],
    /// The bytes of all tables, which start at offset `base` of the file. Empty until all their pages are checked.
    pub(super) sound: &'a [u8],
    pub(super) base: usize,
}

impl<'a> SectionReader<'a> {
    #[inline]
    pub(super) fn new(file: &'a SegmentFile, section: &'a Section) -> Self {
        Self { file, section, whole: file.whole(), sound: &[], base: 0 }
    }

    /// If all pages of `stretch` have been checked, later reads within `extent`, a range of the file, skip their
    /// checks. `stretch` must contain all pages of `extent`.
    #[inline(always)]
    pub(super) fn settle(&mut self, extent: &Range<u64>, stretch: &Stretch) {
        if self.sound.is_empty() && self.file.all_sound(stretch) {
            let &Range { start, end } = extent;
            // A file that is neither mapped nor in memory leaves `sound` empty, so that each read is checked.
            self.sound = self.whole.get(start as usize..end as usize).unwrap_or_default();
            self.base = start as usize;
        }
    }

    #[inline(always)]
    pub(super) fn section(self, section: &'a Section) -> Self {
        Self { section, ..self }
    }

    /// Returns true until all pages of the tables are known to be checked.
    #[inline(always)]
    pub(super) fn is_cold(&self) -> bool {
        self.sound.is_empty()
    }

    /// Returns the bytes at `range` of the file, or `None` if `range` is not within `sound`.
    #[inline(always)]
    pub(super) fn sound(&self, range: &Range<usize>) -> Option<&'a [u8]> {
        self.sound.get(range.start.wrapping_sub(self.base)..range.end.wrapping_sub(self.base))
    }

    /// Returns the bytes at `range` of the file, which must be in this section.
    #[inline(always)]
    fn bytes(&self, range: Range<usize>, section: &Section) -> Result<&'a [u8]> {
        match self.sound(&range) {
            Some(bytes) => Ok(bytes),
            None => self.checked(&range, section),
        }
    }

    // Not inlined, and takes only references, so that the fast path in the callers copies nothing.
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

    /// Announces the bytes at `range` of the file, which are read soon. Returns whether all their pages have been checked
    /// already.
    #[inline(never)]
    pub(super) fn announce_file(&self, range: &Range<usize>) -> bool {
        let is_known = self.file.known().have(range);
        if !is_known {
            self.file.will_need(range.start as u64..range.end as u64);
        }
        is_known
    }

    /// Announces the bytes at `range` of the section, whether the tables are cold or not. Returns whether all their pages
    /// have been checked already.
    pub(super) fn announce_always(&self, range: Range<u64>) -> bool {
        let place = |at: u64| self.section.offset.saturating_add(at) as usize;
        self.announce_file(&(place(range.start)..place(range.end)))
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
