//! Band buckets. A bucket has all documents with the same key in a band.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use super::features::FeatureColumn;
use super::open::Segment;
use crate::error::{Error, Result};
use crate::format::bands::{self, Band, BandEntry};
use crate::format::contents::Section;
use crate::format::signatures;
use crate::format::table::source::Source;
use crate::format::wire::Fault;
use crate::sys::column::{Column, MemoryBudget};

impl Segment {
    /// Calls `each` with the ordinals of the documents whose feature in band `band` (from 0) agrees with `feature` in
    /// all stored bits, in ascending order. At most 32 bits of a feature are stored, or fewer if the parameters say so;
    /// therefore the documents are only candidates.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that the segment does not have; [`Error::Corrupt`].
    pub fn same_feature(&self, band: usize, feature: u64, each: impl FnMut(u32)) -> Result<()> {
        let (section, layout) = self.band(band)?;
        self.same_key(section, layout, bands::key(feature, layout.key_bits), each)
    }

    /// Returns, for each band, the documents whose feature agrees with the one of `features` in all stored bits.
    ///
    /// # Errors
    /// Same as [`same_feature`](Self::same_feature).
    pub fn feature_lists(&self, features: &[u64]) -> Result<Vec<KeyList<'_>>> {
        let bands = self.bands.iter().zip(features);
        bands
            .map(|((section, layout), &feature)| {
                self.list_of_key(section, layout, bands::key(feature, layout.key_bits))
            })
            .collect()
    }

    /// Calls `each` with the ordinals of the entries that have this key, in ascending order. `section` must be encoded
    /// as a band.
    pub(super) fn same_key(
        &self,
        section: &Section,
        layout: &Band,
        key: u32,
        mut each: impl FnMut(u32),
    ) -> Result<()> {
        let mut list = self.list_of_key(section, layout, key)?;
        while let Some(ordinal) = list.next_ordinal()? {
            each(ordinal);
        }
        Ok(())
    }

    /// Returns the entries that have this key. `section` must be encoded as a band.
    pub(super) fn list_of_key<'a>(
        &'a self,
        section: &'a Section,
        layout: &'a Band,
        key: u32,
    ) -> Result<KeyList<'a>> {
        let rows = layout.directory.bucket(self.at(section), layout.prefix(key).into())?;
        let bytes = self.read(section, layout.entries(&rows))?;
        let tag = layout.tag(key);
        let place = first_place(layout, bytes, &rows, |entry| entry < tag);
        Ok(KeyList { segment: self, section, layout, bytes, rows, tag, place })
    }

    /// Returns the number of entries that have this key. `section` must be encoded as a band.
    pub(super) fn count_key(&self, section: &Section, layout: &Band, key: u32) -> Result<usize> {
        let rows = layout.directory.bucket(self.at(section), layout.prefix(key).into())?;
        let bytes = self.read(section, layout.entries(&rows))?;
        let tag = layout.tag(key);
        let end = first_place(layout, bytes, &rows, |entry| entry <= tag);
        Ok(end - first_place(layout, bytes, &rows, |entry| entry < tag))
    }

    /// Prefetches the data that [`same_feature_bits`](Self::same_feature_bits) reads for `features`, one for each
    /// band. First prefetches the directory entries of all bands, then the buckets, so that memory accesses overlap.
    pub(crate) fn hint_features(&self, features: &[u64], bits: u32) {
        let bands = self.bands.iter().zip(features);
        self.hint_keys(bits, || {
            bands
                .clone()
                .map(|((section, layout), &feature)| (section, layout, bands::key(feature, layout.key_bits)))
        });
    }

    /// Prefetches data as [`hint_features`](Self::hint_features) does, for keys in any sections that are encoded as bands.
    pub(super) fn hint_keys<'s, I>(&'s self, bits: u32, all: impl Fn() -> I)
    where
        I: Iterator<Item = (&'s Section, &'s Band, u32)>,
    {
        for (section, layout, key) in all() {
            let (prefix, known) = layout.leading(key, bits);
            layout.directory.hint(self.at(section), prefix, known);
        }
        for (section, layout, key) in all() {
            let (source, (prefix, known)) = (self.at(section), layout.leading(key, bits));
            // Ignores damage, which is reported when the bucket is read.
            let Ok(rows) = layout.directory.rows(source, prefix, known) else { continue };
            let entries = layout.entries(&rows);
            source.hint(entries.start);
            source.hint(entries.end.saturating_sub(1));
            source.announce(entries);
        }
    }

    /// Like [`same_feature`](Self::same_feature), but compares only the first `bits` bits of the feature, and reports
    /// the documents in no particular order. `bits` must be at least 1. All stored bits are compared if `bits` exceeds
    /// their number. 8 bits are Broder's one-byte feature. For n documents, reads about `n / 2^bits` entries, or one
    /// bucket if a bucket has more entries.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that the segment does not have; [`Error::Corrupt`].
    pub fn same_feature_bits(
        &self,
        band: usize,
        feature: u64,
        bits: u32,
        mut each: impl FnMut(u32),
    ) -> Result<()> {
        let (section, layout) = self.band(band)?;
        let key = bands::key(feature, layout.key_bits);
        let bits = bits.min(layout.key_bits);
        let shift = layout.key_bits - bits;
        let (prefix, known) = layout.leading(key, bits);
        let rows = layout.directory.rows(self.at(section), prefix, known)?;
        let bytes = self.read(section, layout.entries(&rows))?;
        // The compared bits of the tag, which is the part of a key that its entry stores. Unused if the directory
        // prefix already covers all `bits`.
        let tag = u64::from(layout.tag(key)) >> shift;
        for entry in layout.decode(bytes, &rows) {
            if known < bits && u64::from(entry.tag) >> shift != tag {
                continue;
            }
            self.check_ordinal(section, layout, &rows, entry)?;
            each(entry.ordinal);
        }
        Ok(())
    }

    /// Calls `each` with each band key that two or more documents share, and with the ascending ordinals of these documents,
    /// in the order of keys.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that the segment does not have; [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_bucket(
        &self,
        band: usize,
        mut each: impl FnMut(u32, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut group: Vec<u32> = Vec::new();
        let mut group_key = 0;
        self.for_each_band_entry(band, |key, ordinal| {
            if key != group_key {
                if group.len() > 1 {
                    each(group_key, &group)?;
                }
                group.clear();
                group_key = key;
            }
            group.push(ordinal);
            Ok(())
        })?;
        if group.len() > 1 {
            each(group_key, &group)?;
        }
        Ok(())
    }

    /// Calls `each` with the band key and the ordinal of each entry of a band, in ascending order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that the segment does not have; [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_band_entry(&self, band: usize, each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        let (section, layout) = self.band(band)?;
        self.for_each_entry(section, layout, each)
    }

    /// Reads entries as [`for_each_band_entry`](Self::for_each_band_entry) does, for any section that is encoded as a band.
    pub(super) fn for_each_entry(
        &self,
        section: &Section,
        layout: &Band,
        mut each: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        let mut rows = 0..0;
        for prefix in 0..1_u32 << layout.directory.bits {
            rows = layout.directory.next_bucket(self.at(section), prefix.into(), rows.end)?;
            let bytes = self.read(section, layout.entries(&rows))?;
            for entry in layout.decode(bytes, &rows) {
                self.check_ordinal(section, layout, &rows, entry)?;
                each(layout.key(prefix, entry.tag), entry.ordinal)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with each entry of a band that can be read, in ascending order, and `lost` with the error of each
    /// damaged bucket.
    pub(super) fn for_each_sound_band_entry(
        &self,
        band: usize,
        mut each: impl FnMut(u32, u32),
        mut lost: impl FnMut(Error),
    ) {
        let (section, layout) = match self.band(band) {
            Ok(band) => band,
            Err(error) => return lost(error),
        };
        let mut end = 0;
        for prefix in 0..1_u32 << layout.directory.bits {
            let bucket = (|| {
                let rows = layout.directory.bucket(self.at(section), prefix.into())?;
                if rows.start < end {
                    // Overlapping buckets are rejected, because reading them could take quadratic time.
                    let expected = format!("a bucket from row {end} or later");
                    let lie = Fault::new(layout.directory.range(prefix.into()).start, expected, rows.start);
                    return Err(self.corrupt_at(section, lie));
                }
                end = rows.end;
                let bytes = self.read(section, layout.entries(&rows))?;
                for entry in layout.decode(bytes, &rows) {
                    self.check_ordinal(section, layout, &rows, entry)?;
                    each(layout.key(prefix, entry.tag), entry.ordinal);
                }
                Ok(())
            })();
            if let Err(error) = bucket {
                lost(error);
            }
        }
    }

    /// Returns the section and the layout of a band, numbered from 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a band that the segment does not have.
    #[inline]
    pub(super) fn band(&self, band: usize) -> Result<&(Section, bands::Band)> {
        self.bands.get(band).ok_or_else(|| {
            Error::Invalid(format!(
                "band {band}: expected one of the {} bands of the segment",
                self.bands.len()
            ))
        })
    }

    pub(super) fn band_rows(&self) -> u64 {
        self.bands.iter().map(|(section, _)| section.rows).sum()
    }

    #[inline]
    pub(super) fn check_ordinal(
        &self,
        section: &Section,
        layout: &Band,
        rows: &Range<u64>,
        entry: BandEntry,
    ) -> Result<()> {
        if u64::from(entry.ordinal) < layout.below {
            return Ok(());
        }
        let expected = format!("an ordinal below {}", layout.below);
        Err(self.corrupt_at(section, Fault::new(layout.entries(rows).start, expected, entry.ordinal)))
    }

    /// Returns the stored signature of a document. Empty if the index stores no signatures.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    #[inline]
    pub fn signature(&self, ordinal: u32) -> Result<&[u8]> {
        match &self.signatures {
            Some((section, width)) => self.read(section, signatures::range(ordinal.into(), *width)),
            None => Ok(&[]),
        }
    }

    /// Returns the number of bands in the segment.
    #[must_use]
    pub fn band_count(&self) -> usize {
        self.bands.len()
    }

    /// Returns the number of documents with a sketch, which is the number of entries in the first band. 0 if the segment has
    /// no bands.
    #[must_use]
    pub fn banded_documents(&self) -> u64 {
        self.bands.first().map_or(0, |(section, _)| section.rows)
    }
}

/// The entries of a section that have one key. The ordinals ascend, and are read one after the other.
pub struct KeyList<'a> {
    segment: &'a Segment,
    section: &'a Section,
    layout: &'a Band,
    /// The entries of the bucket that contains the key, and their row numbers in the section.
    bytes: &'a [u8],
    rows: Range<u64>,
    /// The part of the key that its entries store.
    tag: u32,
    /// The index of the next entry in the bucket.
    place: usize,
}

impl KeyList<'_> {
    /// Returns the number of entries that were not read yet.
    pub(super) fn count(&self) -> usize {
        let is_of_key = |place| self.layout.decode_one(self.bytes, &self.rows, place).tag == self.tag;
        let all = (self.rows.end - self.rows.start) as usize;
        // Most lists are short, so the end is sought from the start, in steps that double.
        let (mut low, mut step) = (self.place, 1);
        while low + step <= all && is_of_key(low + step - 1) {
            low += step;
            step *= 2;
        }
        while step > 0 {
            if low + step <= all && is_of_key(low + step - 1) {
                low += step;
            }
            step /= 2;
        }
        low - self.place
    }

    /// Returns the ordinals that were not read yet, unchecked.
    pub(crate) fn ordinals(&self) -> impl Iterator<Item = u32> + Clone {
        let entries = (self.place..(self.rows.end - self.rows.start) as usize)
            .map(|place| self.layout.decode_one(self.bytes, &self.rows, place));
        entries.take_while(|entry| entry.tag == self.tag).map(|entry| entry.ordinal)
    }

    /// Returns the next ordinal; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn next_ordinal(&mut self) -> Result<Option<u32>> {
        if self.place >= (self.rows.end - self.rows.start) as usize {
            return Ok(None);
        }
        let entry = self.layout.decode_one(self.bytes, &self.rows, self.place);
        if entry.tag != self.tag {
            return Ok(None);
        }
        self.segment.check_ordinal(self.section, self.layout, &self.rows, entry)?;
        self.place += 1;
        Ok(Some(entry.ordinal))
    }
}

/// Calls `each` with each ordinal of these lists, in ascending order, and with the indices of the lists that contain it,
/// also in ascending order, until it returns `Break`. Reads the lists only as far as needed.
///
/// # Errors
/// [`Error::Corrupt`], or the error that `each` returns.
pub fn merge_lists(
    mut lists: Vec<KeyList<'_>>,
    mut each: impl FnMut(u32, &[u32]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut next = BinaryHeap::new();
    for (index, list) in (0..).zip(&mut lists) {
        next.extend(list.next_ordinal()?.map(|ordinal| Reverse((ordinal, index))));
    }
    let mut with_ordinal: Vec<u32> = Vec::new();
    while let Some(&Reverse((ordinal, _))) = next.peek() {
        with_ordinal.clear();
        while let Some(mut first) = next.peek_mut().filter(|first| first.0.0 == ordinal) {
            let index = first.0.1;
            with_ordinal.push(index);
            match lists[index as usize].next_ordinal()? {
                // An ordinal that repeats in a damaged list is skipped.
                Some(following) if following > ordinal => first.0.0 = following,
                _ => _ = PeekMut::pop(first),
            }
        }
        if each(ordinal, &with_ordinal)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the index of the first entry of a bucket for whose tag `before` is false; the number of entries if there is
/// none. A tag is the part of a key that its entry stores. Uses binary search, because entries ascend by tag.
fn first_place(layout: &Band, bytes: &[u8], rows: &Range<u64>, before: impl Fn(u32) -> bool) -> usize {
    let (mut low, mut high) = (0, (rows.end - rows.start) as usize);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(layout.decode_one(bytes, rows, middle).tag) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Segment {
    /// Returns the stored bits of the features of one document, followed by zeros; `None` if it has no sketch. If a band
    /// has the document under the feature of `expected`, reads one bucket of the band; otherwise all its entries. If the
    /// [features of all documents](Self::held_features) are cached, reads no bands.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn features_of(&self, ordinal: u32, expected: &[u64]) -> Result<Option<Vec<u64>>> {
        let mut features = Vec::with_capacity(self.bands.len());
        if let Some(known) = self.features.get() {
            return Ok(known.features(ordinal, &mut features).then_some(features));
        }
        for (band, (section, layout)) in self.bands.iter().enumerate() {
            let mut found = None;
            if let Some(&feature) = expected.get(band) {
                let key = bands::key(feature, layout.key_bits);
                self.same_key(section, layout, key, |other| {
                    if other == ordinal {
                        found = Some(key);
                    }
                })?;
            }
            if found.is_none() {
                self.for_each_band_entry(band, |key, other| {
                    if other == ordinal {
                        found = Some(key);
                    }
                    Ok(())
                })?;
            }
            let Some(key) = found else { return Ok(None) };
            features.push(u64::from(key) << 32);
        }
        Ok((!features.is_empty()).then_some(features))
    }

    /// Returns the [`feature_column`](Self::feature_column) of this segment. The first call reads the column, which is
    /// then cached while the segment is open.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn held_features(&self) -> Result<&FeatureColumn> {
        if let Some(known) = self.features.get() {
            return Ok(known);
        }
        let made = self.feature_column(&MemoryBudget::unlimited())?;
        Ok(self.features.get_or_init(|| made))
    }

    /// Reads all bands once, and returns the band keys by document. Takes 4 bytes of `budget` per document and band.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] from a scratch file.
    pub fn feature_column(&self, budget: &MemoryBudget) -> Result<FeatureColumn> {
        let (bands, documents) = (self.band_count(), self.documents() as usize);
        let mut keys = Column::filled(budget, bands * documents, 0_u32)?;
        let mut sketched = RoaringBitmap::new();
        for band in 0..bands {
            let column = &mut keys[..];
            self.for_each_band_entry(band, |key, ordinal| {
                column[ordinal as usize * bands + band] = key;
                if band == 0 {
                    sketched.insert(ordinal);
                }
                Ok(())
            })?;
        }
        self.check_map()?;
        Ok(FeatureColumn { bands, keys, sketched })
    }
}
