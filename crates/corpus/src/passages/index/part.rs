//! Opens and reads a part of an index: an immutable, memory-mapped file. A block is verified when it is first read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use twindex::sys::vfs::Bytes;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Result};

use crate::passages::index::deletions::DeletedDocuments;
use crate::passages::index::format::{
    BLOCK, FENCE_BYTES, FINGERPRINT_BITS, HEADER_BYTES, IndexSection, POSTINGS, PartHeader, SECTIONS,
    checksum, get, unzigzag,
};

#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    bytes: Bytes,
    pub(crate) header: PartHeader,
    /// The deleted documents.
    pub(crate) deletions: DeletedDocuments,
    /// One bit per block, set when the checksum of the block was verified.
    sound: Vec<AtomicU64>,
}

/// A posting of a selected fingerprint: the number of the document in the part, and the position in the document.
pub(crate) type Posting = (u32, u32);

impl Part {
    /// Opens a part, and checks its header and the lengths of its sections.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = RealVfs.open(path).map_err(|error| Error::io("open", path, error))?;
        let length = file.len().map_err(|error| Error::io("read the length of", path, error))?;
        let mut head = vec![0; HEADER_BYTES.min(usize::try_from(length).unwrap_or(HEADER_BYTES))];
        file.read_exact_at(&mut head, 0).map_err(|error| Error::io("read", path, error))?;
        let header = PartHeader::from_bytes(&head, length).map_err(|(offset, expected, found)| {
            Error::Corrupt { path: path.to_owned(), section: "header", offset, expected, found }
        })?;
        let mapped = usize::try_from(length)
            .map_err(|_| Error::Invalid(format!("{}: too large for the address space", path.display())))?;
        let bytes = file.map(mapped).map_err(|error| Error::io("map", path, error))?;
        let blocks = header.section(IndexSection::Checksums);
        let mut sound = Vec::new();
        sound.resize_with(((blocks.end - blocks.start) as usize / 8).div_ceil(64), AtomicU64::default);
        let part =
            Self { path: path.to_owned(), bytes, header, deletions: DeletedDocuments::default(), sound };
        std::str::from_utf8(part.all(IndexSection::Settings)?).map_err(|error| {
            part.corrupt(IndexSection::Settings, error.valid_up_to() as u64, "UTF-8", "other bytes")
        })?;
        Ok(part)
    }

    /// Returns the error that reports damage at offset `at` of a section.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "callers have a number or a new String, never a thing to keep"
    )]
    fn corrupt(
        &self,
        section: IndexSection,
        at: u64,
        expected: impl ToString,
        found: impl ToString,
    ) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            section: section.name(),
            offset: self.header.section(section).start.saturating_add(at),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Returns a range of bytes of a section, after verifying the blocks that contain it.
    fn part(&self, section: IndexSection, range: Range<u64>) -> Result<&[u8]> {
        let whole = self.header.section(section);
        let end =
            whole.start.checked_add(range.end).filter(|&end| end <= whole.end && range.start <= range.end);
        let Some(end) = end else {
            let length = whole.end - whole.start;
            return Err(self.corrupt(
                section,
                range.start,
                format!("a range in {length} bytes"),
                format!("{range:?}"),
            ));
        };
        let start = whole.start + range.start;
        let (first, last) = (start / BLOCK as u64, end.div_ceil(BLOCK as u64));
        for block in first..last {
            let bit = 1 << (block % 64);
            let word = &self.sound[block as usize / 64];
            if word.load(Ordering::Relaxed) & bit == 0 {
                self.check_block(block)?;
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(&self.bytes[start as usize..end as usize])
    }

    /// Returns all bytes of a section, after verifying its blocks.
    fn all(&self, section: IndexSection) -> Result<&[u8]> {
        let range = self.header.section(section);
        self.part(section, 0..range.end - range.start)
    }

    /// Verifies a block against its checksum.
    fn check_block(&self, block: u64) -> Result<()> {
        let covered = self.header.section(IndexSection::Checksums).start;
        let start = block * BLOCK as u64;
        let range = start as usize..covered.min(start + BLOCK as u64) as usize;
        let at = (covered + 8 * block) as usize;
        let stored = self.bytes.get(at..at + 8).map(le).unwrap_or_default();
        let sum = checksum(&self.bytes[range]);
        if sum == stored {
            return Ok(());
        }
        let (expected, found) = (format!("the checksum {stored:016x}"), format!("{sum:016x}"));
        Err(Error::Corrupt { path: self.path.clone(), section: "block", offset: start, expected, found })
    }

    /// Returns the text options.
    pub(crate) fn settings(&self) -> Result<&str> {
        let bytes = self.all(IndexSection::Settings)?;
        std::str::from_utf8(bytes).map_err(|error| {
            self.corrupt(IndexSection::Settings, error.valid_up_to() as u64, "UTF-8", "other bytes")
        })
    }

    /// Returns the size of the file in bytes, the number of documents, and the checksum of the header.
    pub(crate) fn identity(&self) -> (u64, u64, u64) {
        let sum = self.bytes.get(HEADER_BYTES - 8..HEADER_BYTES).map(le).unwrap_or_default();
        (self.bytes.len() as u64, self.header.documents, sum)
    }

    pub(crate) fn documents(&self) -> u32 {
        self.header.documents as u32 // `PartHeader::from_bytes` refuses larger numbers
    }

    /// Returns the range of a document's data, given by two adjacent ends in `section`. `limit` is the largest valid
    /// end.
    fn ends(&self, section: IndexSection, document: u32, limit: u64) -> Result<Range<u64>> {
        let number = u64::from(document);
        if number >= self.header.documents {
            let found = format!("document {document}");
            return Err(self.corrupt(
                section,
                8 * number,
                format!("fewer than {}", self.header.documents),
                found,
            ));
        }
        let end = |number: u64| Ok::<_, Error>(le(self.part(section, 8 * number..8 * number + 8)?));
        let range = if number == 0 { 0 } else { end(number - 1)? }..end(number)?;
        if range.start > range.end || range.end > limit {
            return Err(self.corrupt(section, 8 * number, format!("{} to {limit}", range.start), range.end));
        }
        Ok(range)
    }

    fn length(&self, section: IndexSection) -> u64 {
        let range = self.header.section(section);
        range.end - range.start
    }

    pub(crate) fn key(&self, document: u32) -> Result<&[u8]> {
        let range = self.ends(IndexSection::KeyEnds, document, self.length(IndexSection::Keys))?;
        self.part(IndexSection::Keys, range)
    }

    /// Returns the hashes of a document's units.
    pub(crate) fn hashes(&self, document: u32) -> Result<Hashes<'_>> {
        let range = self.ends(IndexSection::UnitEnds, document, self.header.units)?;
        Ok(Hashes(self.part(IndexSection::Hashes, 4 * range.start..4 * range.end)?))
    }

    /// Returns the byte ranges of a document's units as they are encoded in the file.
    pub(crate) fn place_bytes(&self, document: u32) -> Result<&[u8]> {
        let range = self.ends(IndexSection::PlaceEnds, document, self.length(IndexSection::Places))?;
        self.part(IndexSection::Places, range)
    }

    /// Returns the byte range of each unit of a document.
    pub(crate) fn places(&self, document: u32) -> Result<Vec<(u32, u32)>> {
        let units = self.ends(IndexSection::UnitEnds, document, self.header.units)?;
        let range = self.ends(IndexSection::PlaceEnds, document, self.length(IndexSection::Places))?;
        let bytes = self.part(IndexSection::Places, range.clone())?;
        let fault = |at: usize, found: String| {
            self.corrupt(
                IndexSection::Places,
                range.start + at as u64,
                "places of each unit, below 4 GiB",
                found,
            )
        };
        // Each unit takes at least two bytes.
        let count = units.end - units.start;
        if bytes.len() as u64 / 2 < count {
            return Err(fault(0, format!("{} bytes for {count} units", bytes.len())));
        }
        let (mut places, mut at, mut end) = (Vec::with_capacity(count as usize), 0, 0_i64);
        for number in 0..count {
            let place = get(bytes, &mut at).zip(get(bytes, &mut at)).and_then(|(gap, length)| {
                let start = end.checked_add(unzigzag(gap))?;
                let stop = start.checked_add(i64::try_from(length).ok()?)?;
                Some((u32::try_from(start).ok()?, u32::try_from(stop).ok()?))
            });
            let Some(place) = place else { return Err(fault(at, format!("no place of unit {number}"))) };
            end = i64::from(place.1);
            places.push(place);
        }
        if at != bytes.len() {
            return Err(fault(at, format!("{} bytes more", bytes.len() - at)));
        }
        Ok(places)
    }

    /// Returns the first fingerprint of a group of postings, and the offset of the group in the section.
    fn fence(&self, group: u64) -> Result<(u64, u64)> {
        let entry =
            self.part(IndexSection::Fence, group * FENCE_BYTES as u64..(group + 1) * FENCE_BYTES as u64)?;
        Ok((le(&entry[..8]), le(&entry[8..])))
    }

    fn groups(&self) -> u64 {
        self.header.postings.div_ceil(POSTINGS as u64)
    }

    /// Passes all postings to `each` in order, each with its stored fingerprint.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u64, Posting) -> Result<()>) -> Result<()> {
        (0..self.groups()).try_for_each(|group| {
            self.for_each_of_group(group, |fingerprint, posting| each(fingerprint, posting).map(|()| true))
        })
    }

    /// Returns the first group that may contain postings of a stored fingerprint.
    fn first_group(&self, wanted: u64) -> Result<u64> {
        // The last group that begins below `wanted` may end with postings of `wanted`. If no group begins below
        // `wanted`, the first group is returned.
        let (mut low, mut high) = (0, self.groups());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fence(middle)?.0 < wanted { low = middle + 1 } else { high = middle }
        }
        Ok(low.saturating_sub(1))
    }

    /// Returns the postings of a fingerprint, without deleted documents. Takes time logarithmic in the number of all
    /// postings; the iterator then reads one group at a time.
    pub(crate) fn postings(&self, fingerprint: u64) -> Result<Postings<'_>> {
        let wanted = fingerprint >> (64 - FINGERPRINT_BITS);
        let group = self.first_group(wanted)?;
        let mut postings = Postings { part: self, wanted, group, read: Vec::new(), at: 0 };
        postings.fill()?;
        Ok(postings)
    }

    /// Passes the postings of a group to `each`, each with its stored fingerprint, until `each` returns false.
    fn for_each_of_group(
        &self,
        group: u64,
        mut each: impl FnMut(u64, Posting) -> Result<bool>,
    ) -> Result<()> {
        let (mut fingerprint, start) = self.fence(group)?;
        let end = if group + 1 < self.groups() {
            self.fence(group + 1)?.1
        } else {
            self.length(IndexSection::Postings)
        };
        let bytes = self.part(IndexSection::Postings, start..end)?;
        let count = (self.header.postings - group * POSTINGS as u64).min(POSTINGS as u64);
        let fault = |at: usize, found: String| {
            self.corrupt(IndexSection::Postings, start + at as u64, "a posting above the one before", found)
        };
        let (mut at, mut before) = (0, (0_u32, 0_u32));
        for number in 0..count {
            let mut read = || -> Option<(u64, Posting)> {
                let step = get(bytes, &mut at)?;
                let new = fingerprint.checked_add(step).filter(|new| new >> FINGERPRINT_BITS == 0)?;
                let is_first = number == 0 || step > 0;
                let (document, position) = if is_first { (0, 0) } else { before };
                let later = u32::try_from(get(bytes, &mut at)?).ok()?;
                let document_now = document.checked_add(later)?;
                let position_now = u32::try_from(get(bytes, &mut at)?).ok()?;
                let position = if later == 0 && !is_first {
                    // Positions in one document must ascend; otherwise the group is damaged.
                    position.checked_add(position_now).filter(|now| *now > position)?
                } else {
                    position_now
                };
                Some((new, (document_now, position)))
            };
            let Some((new, posting)) = read() else {
                return Err(fault(at, format!("none, number {number}")));
            };
            (fingerprint, before) = (new, posting);
            if !each(fingerprint, posting)? {
                return Ok(());
            }
        }
        if at == bytes.len() { Ok(()) } else { Err(fault(at, format!("{} bytes more", bytes.len() - at))) }
    }

    /// Verifies the checksums of all blocks, and that the sections are consistent with each other.
    pub(crate) fn verify(&self) -> Result<()> {
        for section in [
            IndexSection::Keys,
            IndexSection::Hashes,
            IndexSection::Places,
            IndexSection::Postings,
            IndexSection::Fence,
        ] {
            self.all(section)?;
        }
        for document in 0..self.documents() {
            self.key(document)?;
            self.places(document)?;
        }
        for (section, total) in [
            (IndexSection::KeyEnds, self.length(IndexSection::Keys)),
            (IndexSection::UnitEnds, self.header.units),
            (IndexSection::PlaceEnds, self.length(IndexSection::Places)),
        ] {
            let last = match self.documents().checked_sub(1) {
                None => 0,
                Some(last) => self.ends(section, last, total)?.end,
            };
            if last != total {
                return Err(self.corrupt(section, self.length(section), total, last));
            }
        }
        let (mut above, mut groups) = (0, 0);
        while groups < self.groups() {
            let first = self.fence(groups)?;
            self.for_each_of_group(groups, |fingerprint, (document, position)| {
                let units = if document < self.documents() { self.hashes(document)?.len() } else { 0 };
                if fingerprint < above || position as usize >= units {
                    let found = format!("{fingerprint:012x} at unit {position} of document {document}");
                    return Err(self.corrupt(IndexSection::Postings, first.1, "a unit that is there", found));
                }
                above = fingerprint;
                Ok(true)
            })?;
            groups += 1;
        }
        debug_assert_eq!(self.header.ends.len(), SECTIONS);
        Ok(())
    }
}

/// Decodes up to eight bytes as a little-endian number.
fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// An iterator over the postings of a fingerprint, in order. Holds one group in memory.
pub(crate) struct Postings<'p> {
    part: &'p Part,
    wanted: u64,
    /// The index of the next group to read.
    group: u64,
    read: Vec<Posting>,
    at: usize,
}

impl Postings<'_> {
    /// Reads the next groups until one contains postings of the fingerprint or begins above it.
    fn fill(&mut self) -> Result<()> {
        let Self { part, wanted, group, read, at } = self;
        read.clear();
        *at = 0;
        while read.is_empty() && *group < part.groups() && part.fence(*group)?.0 <= *wanted {
            part.for_each_of_group(*group, |stored, posting| {
                if stored == *wanted && !part.deletions.has(posting.0) {
                    read.push(posting);
                }
                Ok(stored <= *wanted)
            })?;
            *group += 1;
        }
        Ok(())
    }

    /// Returns the current posting, or `None` at the end.
    pub(crate) fn first(&self) -> Option<Posting> {
        self.read.get(self.at).copied()
    }

    pub(crate) fn step(&mut self) -> Result<()> {
        self.at += 1;
        if self.at >= self.read.len() { self.fill() } else { Ok(()) }
    }
}

/// The hashes of a document's units, 4 bytes each.
#[derive(Clone, Copy)]
pub(crate) struct Hashes<'a>(&'a [u8]);

impl<'a> Hashes<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() / 4
    }

    /// Returns the hash of a unit, or `None` if `unit` is past the end of the document.
    #[inline]
    pub(crate) fn get(&self, unit: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(4 * unit..)?.first_chunk()?))
    }
}
