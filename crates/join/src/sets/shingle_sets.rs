//! Stores the shingle sets of documents, and computes exact resemblances.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zerocopy::IntoBytes;

use crate::pairs::odd_sketches::OddSketches;
use crate::sets::delta::{SetDelta, ones};
use crate::sets::packed::{pack, packed_words, unpack};
use crate::sets::references::{
    DeltaHeader, DeltaScratch, EncodedSet, NO_REFERENCE, ReferenceSet, ReferenceSets, directory,
};
use crate::sets::stored::{LastSet, StoredSet};
use twindex::error::{Error, Result};
use twindex::sys::{Column, MemoryBudget, Spill};
use twindex_kernel::prefetch_all;
use twindex_sketch::nearness::{could_resemble, least_intersection, most_differences};
use twindex_sketch::{Resemblance, intersection_from, jaccard};

/// A collection of shingle sets, numbered in the order in which they were added. Sets beyond the memory budget are written
/// to a scratch file. Elements are 64-bit hashes, so a resemblance is exact unless hashes collide: with a billion distinct
/// shingles, the probability of any collision is 3 %, and one collision changes one resemblance by one shingle.
///
/// A set that shares most of its elements with an earlier set is delta-encoded against that set: see
/// [`push_like`](Self::push_like).
///
/// In addition to the budget, each set takes at least 32 bytes of a [`MemoryBudget`], in memory or in scratch files.
#[derive(Debug)]
pub struct ShingleSets {
    dir: PathBuf,
    budget: usize,
    /// The words of the sets that are in memory: the elements of a set, or its delta against its reference.
    held: Vec<u64>,
    spill: Option<Spill>,
    /// The path of the scratch file, if it has a name.
    path: Option<PathBuf>,
    /// Describes the last set if it is in a scratch file that has a name.
    last: Option<StoredSet>,
    /// Describes the set that is being added, if it is expected to be in the scratch file already.
    expected: Option<StoredSet>,
    /// The position, in words, at which each set ends. Sets that end after `held` are in the scratch file. Large sets
    /// there are packed unless they are delta-encoded.
    ends: Column<u64>,
    sizes: Column<u32>,
    elements: u64,
    /// The reference against which each set is encoded (a reference set refers to itself); [`NO_REFERENCE`] for sets
    /// without delta encoding.
    reference_of: Column<u32>,
    references: Arc<ReferenceSets>,
    odd: OddSketches,
    column_budget: MemoryBudget,
    /// Reusable buffers of [`push_like`](Self::push_like) and [`push_encoded`](Self::push_encoded).
    scratch: (DeltaScratch, Vec<u64>),
    /// Reusable buffer for the words of a packed set.
    packed: Vec<u64>,
}

impl ShingleSets {
    /// Creates an empty collection that holds up to `budget` bytes in memory; the rest is written to unnamed files in
    /// `dir`. An eighth of the budget holds the sizes and positions of sets, another eighth the sketches that [rule out
    /// pairs](Self::may_resemble).
    #[must_use]
    pub fn new(dir: &Path, budget: usize) -> Self {
        Self::within(&MemoryBudget::new(dir, budget / 4), budget)
    }

    /// Like [`new`](Self::new), but the sizes, positions and sketches of sets count towards `column_budget`.
    #[must_use]
    pub fn within(column_budget: &MemoryBudget, budget: usize) -> Self {
        Self {
            dir: column_budget.dir().to_owned(),
            budget: budget - budget / 8,
            held: Vec::new(),
            spill: None,
            path: None,
            last: None,
            expected: None,
            ends: Column::new(column_budget),
            sizes: Column::new(column_budget),
            elements: 0,
            reference_of: Column::new(column_budget),
            references: Arc::default(),
            odd: OddSketches::new(budget / 8, column_budget),
            column_budget: column_budget.clone(),
            scratch: Default::default(),
            packed: Vec::new(),
        }
    }

    /// Uses the file at `path` as the scratch file of an empty collection. The file is kept, so that another process
    /// can [read](crate::StoredSets) the sets. An existing file is overwritten from its start.
    #[must_use]
    pub fn with_file(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// Returns the last set in the form in which it can be added to another collection with the same earlier sets;
    /// `None` if the collection is empty, or if the set is in a scratch file that has no name.
    #[must_use]
    pub fn last(&self) -> Option<LastSet<'_>> {
        let number = u32::try_from(self.len().checked_sub(1)?).ok()?;
        if let Some(stored) = self.last {
            return Some(LastSet::InFile(stored));
        }
        let words = match self.held(number) {
            Some(set) => set,
            None if self.is_held(number) => self.held_words(number),
            None => return None,
        };
        Some(LastSet::InMemory(self.header(number), words))
    }

    /// Returns the header with which a set can be added to another collection with the same earlier sets. With this
    /// header, the other collection tries no further references.
    fn header(&self, number: u32) -> DeltaHeader {
        let size = self.sizes[number as usize] as usize;
        match self.reference_of[number as usize] {
            NO_REFERENCE => Self::plain_header(size, self.references.len()),
            reference if self.references.get(reference).is_some_and(|one| one.number == number) => {
                Self::plain_header(size, reference)
            }
            reference => DeltaHeader { reference, size, references: reference },
        }
    }

    /// Writes all buffered bytes to the scratch file. Returns a handle with which the caller can sync the file, or
    /// `None` if there is no scratch file.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn flush(&mut self) -> Result<Option<File>> {
        let flushed = self.spill.as_mut().map(Spill::flush).transpose();
        flushed.map_err(|e| Error::io("write a scratch file in", &self.dir, e))
    }

    /// Adds a set, sorted and without duplicates, and returns its number.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file; [`Error::Limit`] after 2^32 - 1 sets, and for a set of 2^32 or more elements.
    pub fn push(&mut self, set: &[u64]) -> Result<u32> {
        let number = self.next_number(set.len())?;
        self.append_set(set)?;
        self.odd.push(set)?;
        self.account(set.len(), NO_REFERENCE)?;
        Ok(number)
    }

    /// Adds the set of these hashes and returns its number. The hashes may be in any order and repeated. If the set
    /// shares most of its elements with an earlier reference set, it is stored with one bit per element of the
    /// reference. `anchors` are minima or other hashes that similar sets tend to share; sets with equal anchors most
    /// likely resemble each other. The anchors only help to find a reference; they do not change the stored set.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut sets = twindex_join::ShingleSets::new(dir.path(), 1 << 20);
    /// let hashes: Vec<u64> = (1..100_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    /// sets.push_like(&hashes, &[7])?;
    /// let set = sets.push_like(&hashes[..90], &[7])?;
    /// assert_eq!((sets.size(set), sets.resemblance(0, set)?.value()), (90, 90.0 / 99.0));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn push_like(&mut self, hashes: &[u64], anchors: &[u64]) -> Result<u32> {
        let (mut delta_scratch, mut words) = std::mem::take(&mut self.scratch);
        words.clear();
        let encoded = self.references.encode(hashes, anchors, &mut delta_scratch, &mut words);
        let pushed = self.push_encoded(encoded, &words, anchors);
        self.scratch = (delta_scratch, words);
        pushed
    }

    /// Returns the reference sets, for threads that [encode](ReferenceSets::encode) new sets.
    #[must_use]
    pub fn references(&self) -> Arc<ReferenceSets> {
        Arc::clone(&self.references)
    }

    /// Adds a set that [`encode`](ReferenceSets::encode) encoded with the same anchors, and returns its number. This is
    /// the second half of [`push_like`](Self::push_like). If `encode` found no reference, also tries the references
    /// that were added after `encode` was called.
    ///
    /// # Errors
    /// Same as [`push`](Self::push); [`Error::Invalid`] if `words` do not fit `header`.
    pub fn push_encoded(
        &mut self,
        encoded: impl Into<EncodedSet>,
        words: &[u64],
        anchors: &[u64],
    ) -> Result<u32> {
        let EncodedSet { header, plain } = encoded.into();
        let number = self.next_number(header.size)?;
        if header.reference != NO_REFERENCE {
            return self.push_delta(header, words, anchors);
        }
        let elements = plain.as_ref().map_or(words, |plain| &plain.elements);
        if elements.len() != header.size || plain.is_some() && !words.is_empty() {
            return Err(Error::Invalid("these are not the words of the set".into()));
        }
        if header.references < self.references.len() {
            let (mut delta_scratch, mut again) = std::mem::take(&mut self.scratch);
            again.clear();
            let late = self.references.encode_from(
                header.references,
                elements,
                anchors,
                &mut delta_scratch,
                &mut again,
            );
            let pushed = late.map(|late| self.push_delta(late, &again, anchors));
            self.scratch = (delta_scratch, again);
            if let Some(pushed) = pushed {
                return pushed;
            }
        }
        match &plain {
            Some(plain) => self.odd.push_made(&plain.odd_sketch, header.size)?,
            None => self.odd.push(elements)?,
        }
        // Only a set in memory can be a reference. From the scratch file, it would be read again for every comparison.
        let is_in_memory = self.fits(2 * size_of_val(elements));
        let (elements, directory) = match plain {
            Some(plain) => (plain.elements, plain.directory.filter(|_| is_in_memory)),
            None => (words.into(), if is_in_memory { directory(words) } else { None }),
        };
        let Some(directory) = directory else {
            self.append_set(&elements)?;
            self.account(header.size, NO_REFERENCE)?;
            return Ok(number);
        };
        let reference = self.references.add(number, elements, directory);
        self.append_set(&[])?;
        self.account(header.size, reference)?;
        self.references.hint(anchors, reference);
        Ok(number)
    }

    /// Adds a set whose `words` were read from the scratch file of the collection, and returns its number. Writes the
    /// set again only if the file no longer has it at its position.
    ///
    /// # Errors
    /// Same as [`push_encoded`](Self::push_encoded).
    pub fn push_stored(&mut self, set: StoredSet, words: &[u64], anchors: &[u64]) -> Result<u32> {
        self.expected = Some(set);
        let pushed = self.push_encoded(set.header(), words, anchors);
        self.expected = None;
        pushed
    }

    /// Returns whether the last set was appended to the scratch file, and not already in the file.
    #[cfg(test)]
    pub(crate) fn is_appending(&mut self) -> bool {
        self.spill.as_mut().is_some_and(|spill| !spill.pass_over(0))
    }

    /// Adds a set that is delta-encoded against a reference.
    fn push_delta(&mut self, header: DeltaHeader, words: &[u64], anchors: &[u64]) -> Result<u32> {
        let invalid = || Error::Invalid("these are not the words of the set".into());
        let references = Arc::clone(&self.references);
        let reference = references.get(header.reference).ok_or_else(invalid)?;
        let delta = SetDelta::of(reference.elements.len(), words);
        if !delta.fit(reference.elements.len()) || ones(delta.bits) + delta.new.len() != header.size {
            return Err(invalid());
        }
        self.append(header, words)?;
        self.odd.push_delta((reference.number, &reference.elements), delta, header.size)?;
        self.account(header.size, header.reference)?;
        references.hint(anchors, header.reference);
        Ok(self.ends.len() as u32 - 1)
    }

    /// Returns the header of a set without a reference.
    fn plain_header(size: usize, references: u32) -> DeltaHeader {
        DeltaHeader { reference: NO_REFERENCE, size, references }
    }

    fn next_number(&self, elements: usize) -> Result<u32> {
        let number = u32::try_from(self.ends.len()).ok().filter(|&number| number != NO_REFERENCE);
        let number = number.ok_or_else(|| Error::Limit {
            what: "shingle sets",
            limit: u64::from(u32::MAX),
            found: self.ends.len() as u64,
        })?;
        if u32::try_from(elements).is_err() {
            let limit = u64::from(u32::MAX);
            return Err(Error::Limit { what: "shingles of a set", limit, found: elements as u64 });
        }
        Ok(number)
    }

    /// Returns whether `bytes` more bytes fit in the memory budget.
    fn fits(&self, bytes: usize) -> bool {
        let held = size_of_val(self.held.as_slice()) + self.references.bytes();
        self.spill.is_none() && held + bytes <= self.budget
    }

    /// Appends the elements of a new set in memory or to the scratch file. Packs them in the file if that saves space.
    fn append_set(&mut self, set: &[u64]) -> Result<()> {
        let header = Self::plain_header(set.len(), self.references.len());
        if packed_words(set.len()).is_none() || self.fits(size_of_val(set)) {
            return self.append(header, set);
        }
        let mut words = std::mem::take(&mut self.packed);
        pack(set, &mut words);
        // A packed set goes to the scratch file even if it would fit in memory.
        self.begin_spill()?;
        let appended = self.append(header, &words);
        self.packed = words;
        appended
    }

    /// Creates the scratch file, unless there is one.
    fn begin_spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            let spill = match &self.path {
                Some(path) => Spill::open(path),
                None => Spill::create(&self.dir),
            };
            self.spill = Some(spill.map_err(|e| Error::io("create a scratch file in", &self.dir, e))?);
        }
        Ok(())
    }

    /// Appends the words of a new set, in memory or to the scratch file.
    fn append(&mut self, header: DeltaHeader, words: &[u64]) -> Result<()> {
        if !self.fits(size_of_val(words)) {
            self.begin_spill()?;
        }
        self.last = None;
        if let Some(spill) = &mut self.spill {
            if self.path.is_some() {
                self.last = StoredSet::new(header, spill.len(), words);
            }
            let is_there = self.last.filter(|last| self.expected == Some(*last));
            if !is_there.is_some_and(|last| spill.pass_over(last.bytes())) {
                let appended = spill.append(words.as_bytes());
                appended.map_err(|e| Error::io("write a scratch file in", &self.dir, e))?;
            }
        } else {
            self.held.extend_from_slice(words);
        }
        self.ends.push(self.ends.last().copied().unwrap_or(0) + words.len() as u64)
    }

    fn account(&mut self, size: usize, reference: u32) -> Result<()> {
        self.sizes.push(size as u32)?;
        self.elements += size as u64;
        self.reference_of.push(reference)
    }

    /// Returns the number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total number of elements of all sets.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns whether the collection has no sets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the numbers of all nonempty sets, sorted by size, then by number.
    pub(crate) fn by_size(&self) -> Vec<u32> {
        let mut list: Vec<u32> = (0..self.len() as u32).filter(|&set| self.size(set) > 0).collect();
        list.sort_unstable_by_key(|&set| (self.size(set), set));
        list
    }

    /// Returns the sketches with which [`may_resemble`](Self::may_resemble) rules out pairs.
    pub(crate) fn sketches(&self) -> &OddSketches {
        &self.odd
    }

    /// Returns the memory budget for the sizes and positions of sets.
    pub(crate) fn column_budget(&self) -> &MemoryBudget {
        &self.column_budget
    }

    /// Returns the directory in which scratch files are created.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn range(&self, number: u32) -> Range<u64> {
        let (number, ends) = (number as usize, &self.ends[..]);
        let start = if number == 0 { 0 } else { ends[number - 1] };
        start..ends[number]
    }

    /// Returns the number of elements of a set.
    ///
    /// # Panics
    /// If `number` is not a number that [`push`](Self::push) returned. All methods that take the number of a set panic
    /// in this case.
    #[must_use]
    pub fn size(&self, number: u32) -> u64 {
        self.sizes[number as usize].into()
    }

    /// Returns whether the resemblance of two sets may be at least `threshold`. Returns false only if their sizes, or a
    /// lower bound of their difference, prove that the resemblance is below `threshold`. Reads no set.
    #[must_use]
    pub fn may_resemble(&self, a: u32, b: u32, threshold: f64) -> bool {
        let (of_a, of_b) = (self.size(a), self.size(b));
        if !could_resemble(of_a.min(of_b), of_a.max(of_b), threshold) {
            return false;
        }
        most_differences((of_a + of_b) as usize, threshold)
            .is_some_and(|max| self.odd.least_difference(a, b) <= max as u64)
    }

    /// Computes the exact resemblance of two sets.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance(&self, a: u32, b: u32) -> Result<Resemblance> {
        let mut read = [Vec::new(), Vec::new()];
        if self.are_of_one_family(a, b)
            && let Some(intersection) = self.shared((a, b), 0, &mut read)?
        {
            let union = (self.size(a) + self.size(b)) as usize - intersection;
            return Ok(Resemblance::Exact { intersection, union });
        }
        let [left, right] = &mut read;
        let (intersection, union) = jaccard(self.set(a, left)?, self.set(b, right)?);
        Ok(Resemblance::Exact { intersection, union })
    }

    /// Returns the resemblance of two sets if it is at least `threshold`, otherwise `None`. Does not read the sets if their
    /// resemblance is [ruled out](Self::may_resemble).
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn resemblance_from(&self, a: u32, b: u32, threshold: f64) -> Result<Option<Resemblance>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        if !self.may_resemble(a, b, threshold) {
            return Ok(None);
        }
        let left = self.set(a, &mut left)?;
        let right = self.set(b, &mut right)?;
        Ok(resemblance_from(left, right, threshold))
    }

    /// Passes each pair of `pairs` whose resemblance is at least `threshold`, with the resemblance, to `each`, in the order
    /// of `pairs`. Reads a set only once if it is the first set of several consecutive pairs.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn for_each_resembling(
        &self,
        pairs: &[(u32, u32)],
        threshold: f64,
        mut each: impl FnMut(u32, u32, Resemblance),
    ) -> Result<()> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for same in pairs.chunk_by(|x, y| x.0 == y.0) {
            let a = same[0].0;
            left.clear();
            let set = self.set(a, &mut left)?;
            for &(_, b) in same {
                if self.may_resemble(a, b, threshold) {
                    right.clear();
                    if let Some(resemblance) = resemblance_from(set, self.set(b, &mut right)?, threshold) {
                        each(a, b, resemblance);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the words of a set that is in memory; the slice is empty if the set is in the scratch file.
    fn held_words(&self, number: u32) -> &[u64] {
        let range = self.range(number);
        self.held.get(range.start as usize..range.end as usize).unwrap_or(&[])
    }

    /// Returns whether all words of a set are in memory.
    fn is_held(&self, number: u32) -> bool {
        self.range(number).end <= self.held.len() as u64
    }

    /// Returns the reference against which a set is encoded, or the set itself if it is a reference. Returns `None` for
    /// sets without delta encoding.
    fn reference(&self, number: u32) -> Option<&ReferenceSet> {
        self.references.get(self.reference_of[number as usize])
    }

    /// Returns the elements of a set if they are in memory and not delta-encoded.
    fn held(&self, number: u32) -> Option<&[u64]> {
        match self.reference(number) {
            Some(reference) => (reference.number == number).then_some(&*reference.elements),
            None => self.is_held(number).then(|| self.held_words(number)),
        }
    }

    /// Releases the disk space of all sets before `number` in the scratch file, in large steps, if the file system supports
    /// it. Reading a released set returns an error. Sets in memory are not released.
    ///
    /// # Panics
    /// If `number` is greater than the number of sets.
    pub fn release_before(&self, number: u32) {
        let Some(spill) = &self.spill else { return };
        let words = number.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        spill.release(words.saturating_sub(self.held.len() as u64) * size_of::<u64>() as u64);
    }

    /// Returns the words of a set. Words from the scratch file are appended to `read`.
    fn words<'a>(&'a self, number: u32, read: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        if self.is_held(number) {
            return Ok(self.held_words(number));
        }
        let start = read.len();
        self.read_words(self.range(number), read)?;
        Ok(&read[start..])
    }

    /// Reads `words`, a range in the scratch file, and appends them to `read`.
    fn read_words(&self, words: Range<u64>, read: &mut Vec<u64>) -> Result<()> {
        let missing = || io::Error::other("a set beyond the budget without a scratch file");
        let io_error = |e| Error::io("read a scratch file in", &self.dir, e);
        let spill = self.spill.as_ref().ok_or_else(missing).map_err(io_error)?;
        let start = read.len();
        read.resize(start + (words.end - words.start) as usize, 0);
        let offset = (words.start - self.held.len() as u64) * size_of::<u64>() as u64;
        spill.read_exact_at(read[start..].as_mut_bytes(), offset).map_err(io_error)
    }

    /// Returns the elements of a set, ascending. Elements from the scratch file, and delta-encoded elements, are appended
    /// to `read`.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn set<'a>(&'a self, number: u32, read: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        if let Some(set) = self.held(number) {
            return Ok(set);
        }
        let reference = self.reference(number);
        if reference.is_none() && !self.is_packed(number) {
            return self.words(number, read);
        }
        let start = read.len();
        let mut words = Vec::new();
        let words = self.words(number, &mut words)?;
        match reference {
            Some(reference) => self.decode(number, reference, words, read),
            None => self.unpack(number, words, read)?,
        }
        Ok(&read[start..])
    }

    /// Returns whether a set without delta encoding is packed.
    fn is_packed(&self, number: u32) -> bool {
        !self.is_held(number) && packed_words(self.sizes[number as usize] as usize).is_some()
    }

    /// Unpacks the set `number` from its packed `words`, and appends its elements to `read`.
    fn unpack(&self, number: u32, words: &[u64], read: &mut Vec<u64>) -> Result<()> {
        if unpack(words, self.sizes[number as usize] as usize, read) {
            return Ok(());
        }
        let damaged = io::Error::other("a scratch file of sets is not as it was written");
        Err(Error::io("read a scratch file in", &self.dir, damaged))
    }

    /// Decodes the set `number` from its delta `words` against `reference`, and appends its elements to `read`.
    fn decode(&self, number: u32, reference: &ReferenceSet, words: &[u64], read: &mut Vec<u64>) {
        read.reserve(self.sizes[number as usize] as usize);
        SetDelta::of(reference.elements.len(), words)
            .for_each(&reference.elements, |element| read.push(element));
    }

    /// Returns whether two sets have the same reference, or one is the reference of the other. If so,
    /// [`shared`](Self::shared) can compute the size of their intersection.
    pub(crate) fn are_of_one_family(&self, a: u32, b: u32) -> bool {
        let reference = self.reference_of[a as usize];
        reference != NO_REFERENCE && reference == self.reference_of[b as usize]
    }

    /// Returns the size of the intersection of two sets with the [same reference](Self::are_of_one_family), or `None`
    /// if the size is below `min`. Uses `read` for words from the scratch file.
    pub(crate) fn shared(
        &self,
        (a, b): (u32, u32),
        min: usize,
        read: &mut [Vec<u64>; 2],
    ) -> Result<Option<usize>> {
        let Some(reference) = self.reference(a) else { return Ok(None) };
        let [of_a, of_b] = read;
        of_a.clear();
        of_b.clear();
        let shared = match (a == reference.number, b == reference.number) {
            (true, true) => reference.elements.len(),
            (true, false) => ones(SetDelta::of(reference.elements.len(), self.words(b, of_b)?).bits),
            (false, true) => ones(SetDelta::of(reference.elements.len(), self.words(a, of_a)?).bits),
            (false, false) => {
                let (a, b) = (self.words(a, of_a)?, self.words(b, of_b)?);
                return Ok(SetDelta::of(reference.elements.len(), a)
                    .shared(SetDelta::of(reference.elements.len(), b), min));
            }
        };
        Ok((shared >= min).then_some(shared))
    }
}

/// Maximum number of words read from the scratch file at once: 1 MiB.
const TOGETHER: u64 = 1 << 17;
/// Maximum number of elements that are prefetched: the hardware prefetches the rest of a larger set.
const PREFETCHED: usize = 512;

/// Reads sets one after the other. Keeps the last set in memory, so that reading it again takes no time. Consecutive
/// sets in the scratch file can be read [together](Self::ahead).
#[derive(Debug)]
pub struct SetReader<'a> {
    sets: &'a ShingleSets,
    /// The set whose elements are in `read`; `None` if there is none.
    last: Option<u32>,
    read: Vec<u64>,
    /// Words of consecutive sets, read in one read. `first` is the position of the first word.
    together: Vec<u64>,
    first: u64,
}

impl<'a> SetReader<'a> {
    /// Creates a reader of `sets`.
    #[must_use]
    pub fn new(sets: &'a ShingleSets) -> Self {
        Self { sets, last: None, read: Vec::new(), together: Vec::new(), first: 0 }
    }

    /// Returns the elements of a set, ascending.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn set(&mut self, number: u32) -> Result<&[u64]> {
        if let Some(set) = self.sets.held(number) {
            return Ok(set);
        }
        if self.last != Some(number) {
            self.last = None;
            self.read.clear();
            match (self.words_together(number), self.sets.reference(number)) {
                (Some(words), None) if self.sets.is_packed(number) => {
                    self.sets.unpack(number, &self.together[words], &mut self.read)?;
                }
                (Some(words), None) => return Ok(&self.together[words]),
                (Some(words), Some(reference)) => {
                    self.sets.decode(number, reference, &self.together[words], &mut self.read);
                }
                (None, _) => {
                    self.sets.set(number, &mut self.read)?;
                }
            }
            self.last = Some(number);
        }
        Ok(&self.read)
    }

    /// Prefetches the first elements of a set that is in memory. Does nothing for other sets, and after the last set.
    pub(crate) fn prefetch(&self, number: u32) {
        if (number as usize) < self.sets.len()
            && let Some(set) = self.sets.held(number)
        {
            prefetch_all(set[..set.len().min(PREFETCHED)].as_bytes());
        }
    }

    /// Like [`set`](Self::set), for sets that are requested in ascending order. Reads the following sets in the same read.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn next_set(&mut self, number: u32) -> Result<&[u64]> {
        self.next_set_before(number, self.sets.len() as u32)
    }

    /// Like [`next_set`](Self::next_set), but reads only sets before `end` in the same read.
    pub(crate) fn next_set_before(&mut self, number: u32, end: u32) -> Result<&[u64]> {
        // Only a set in the scratch file triggers a read of the following sets.
        if number < end && !self.sets.is_held(number) && self.words_together(number).is_none() {
            self.ahead(number..end)?;
        }
        self.set(number)
    }

    /// Reads the words of `sets` from the scratch file in one read of at most 1 MiB; a larger first set is read as a
    /// whole. Useful if most of these sets are requested next.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file.
    pub fn ahead(&mut self, sets: Range<u32>) -> Result<()> {
        self.together.clear();
        if sets.is_empty() {
            return Ok(());
        }
        let (one, last) = (self.sets.range(sets.start), self.sets.range(sets.end - 1));
        let start = one.start.max(self.sets.held.len() as u64);
        // A first set that exceeds the limit is read as a whole.
        let end = last.end.min((start + TOGETHER).max(one.end));
        if start < end {
            self.first = start;
            self.sets.read_words(start..end, &mut self.together)?;
        }
        Ok(())
    }

    /// Returns the range of a set's words in `together`, or `None` if `together` lacks some of these words.
    fn words_together(&self, number: u32) -> Option<Range<usize>> {
        let words = self.sets.range(number);
        let start = usize::try_from(words.start.checked_sub(self.first)?).ok()?;
        let end = start + (words.end - words.start) as usize;
        (end <= self.together.len()).then_some(start..end)
    }
}

fn resemblance_from(a: &[u64], b: &[u64], threshold: f64) -> Option<Resemblance> {
    let sum = a.len() + b.len();
    let intersection = intersection_from(a, b, least_intersection(sum, threshold))?;
    let resemblance = Resemblance::Exact { intersection, union: sum - intersection };
    resemblance.at_least(threshold).then_some(resemblance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_kernel::splitmix::SplitMix;

    #[test]
    fn large_sets_are_packed_in_the_scratch_file_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(3);
        let mut sets: Vec<Vec<u64>> = Vec::new();
        for size in [0, 10, 300, 300, 45, 1000, 299, 30, 300] {
            let mut set: Vec<u64> = (0..size).map(|_| random.next()).collect();
            set.sort_unstable();
            sets.push(set);
        }
        let words = sets.iter().map(|set| set.len() as u64).sum::<u64>();
        for (budget, is_packed) in [(0, true), (8 * 400, true), (1 << 20, false)] {
            let mut stored = ShingleSets::new(dir.path(), budget);
            for set in &sets {
                stored.push(set).unwrap();
            }
            assert_eq!(*stored.ends.last().unwrap() < words * 19 / 20, is_packed);
            let mut readers = [SetReader::new(&stored), SetReader::new(&stored)];
            readers[0].ahead(1..6).unwrap();
            for (number, set) in (0..).zip(&sets) {
                let mut read = vec![1];
                assert_eq!(stored.set(number, &mut read).unwrap(), set, "{budget} {number}");
                assert_eq!(readers[0].set(number).unwrap(), set, "{budget} {number}");
                assert_eq!(readers[1].next_set(number).unwrap(), set, "{budget} {number}");
            }
            assert!(
                stored.resemblance(2, 2).unwrap().at_least(1.0)
                    && !stored.resemblance(2, 3).unwrap().at_least(0.1)
            );
        }
    }

    #[test]
    fn resemblances_are_equal_on_disk_and_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let sets: Vec<Vec<u64>> =
            (1..60_u64).map(|i| (0..i * 7).map(|x| x * (1 + i % 3)).collect()).collect();
        let mut all: Vec<ShingleSets> =
            [0, 1000, usize::MAX].into_iter().map(|budget| ShingleSets::new(dir.path(), budget)).collect();
        for store in &mut all {
            for (number, set) in sets.iter().enumerate() {
                assert_eq!(store.push(set).unwrap() as usize, number);
            }
        }
        assert!(all[1].spill.is_some() && !all[1].held.is_empty() && all[2].spill.is_none());
        for a in 0..sets.len() as u32 {
            for b in 0..sets.len() as u32 {
                let (left, right) = (&sets[a as usize], &sets[b as usize]);
                let expected = Resemblance::of_sets(left, right);
                let far_enough = expected.at_least(0.5);
                for store in &all {
                    assert_eq!(store.resemblance(a, b).unwrap(), expected);
                    assert_eq!(store.resemblance_from(a, b, 0.5).unwrap().is_some(), far_enough, "{a} {b}");
                    let mut found = Vec::new();
                    let each = |a, b, resemblance| found.push((a, b, resemblance));
                    store.for_each_resembling(&[(a, b), (a, a), (b, a)], 0.5, each).unwrap();
                    assert_eq!(found.len(), if far_enough { 3 } else { 1 }, "{a} {b}");
                    assert!(!far_enough || found[0] == (a, b, expected));
                }
            }
        }
    }

    #[test]
    fn delta_encoded_sets_equal_plainly_stored_sets() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(3);
        // Builds families of texts: each version changes a few hashes of the previous version. Some hashes are
        // repeated.
        let mut texts: Vec<(u64, Vec<u64>)> = Vec::new();
        for number in 0..300_u64 {
            let size = [0, 1, 15, 16, 17, 63, 64, 65, 200, 1000, 3000, 70_000][(number % 12) as usize];
            let (family, mut text) = match texts.iter().rev().find(|(family, _)| *family == number % 24) {
                Some(before) => before.clone(),
                None => (number % 24, std::iter::repeat_with(|| random.next()).take(size).collect()),
            };
            for _ in 0..=text.len() / 40 {
                let at = random.next() as usize % (text.len() + 1);
                let end = (at + random.next() as usize % 6).min(text.len());
                let repeated = text.get(random.next() as usize % (text.len() + 1)).copied();
                let _ = text.splice(at..end, [random.next()].into_iter().chain(repeated));
            }
            texts.push((family, text));
        }
        let anchors = |family: u64| [family, family + 100, SplitMix(family).next()];
        for budget in [usize::MAX, 2 << 20, 100_000, 0] {
            let mut encoded = ShingleSets::new(dir.path(), budget);
            let mut alone = ShingleSets::new(dir.path(), usize::MAX);
            for (number, (family, text)) in (0..).zip(&texts) {
                let mut set = text.clone();
                set.sort_unstable();
                set.dedup();
                // Also passes anchors of another family, which must not change the result.
                let family = if number % 10 == 9 { number % 24 + 1 } else { *family };
                assert_eq!(encoded.push_like(text, &anchors(family)).unwrap(), number as u32);
                assert_eq!(alone.push(&set).unwrap(), number as u32);
                assert_eq!(encoded.size(number as u32), set.len() as u64);
            }
            let is_encoded =
                |&set: &u32| encoded.reference(set).is_some_and(|reference| reference.number != set);
            let by_others = (0..texts.len() as u32).filter(is_encoded).count();
            assert!(budget < 2 << 20 || by_others > 40, "{budget}: {by_others}");
            assert!(budget > 0 || by_others == 0, "none that would have to be read");
            assert!((budget < usize::MAX) == encoded.spill.is_some());
            assert_eq!(encoded.elements(), alone.elements());
            for a in 0..texts.len() as u32 {
                let (mut of_led, mut of_alone) = (vec![5], Vec::new());
                assert_eq!(
                    encoded.set(a, &mut of_led).unwrap(),
                    alone.set(a, &mut of_alone).unwrap(),
                    "{budget} {a}"
                );
                assert_eq!(encoded.sketches().of(a), alone.sketches().of(a), "{budget} {a}");
            }
            let (mut read, mut of_one_family) = ([Vec::new(), Vec::new()], 0);
            for a in (0..texts.len() as u32).step_by(3) {
                for b in 0..texts.len() as u32 {
                    let expected = alone.resemblance(a, b).unwrap();
                    assert_eq!(encoded.resemblance(a, b).unwrap(), expected, "{budget} {a} {b}");
                    let Resemblance::Exact { intersection, .. } = expected else { panic!("not counted") };
                    if encoded.are_of_one_family(a, b) {
                        of_one_family += 1;
                        for min in [0, intersection, intersection + 1] {
                            let shared = encoded.shared((a, b), min, &mut read).unwrap();
                            assert_eq!(
                                shared,
                                (min <= intersection).then_some(intersection),
                                "{a} {b} {min}"
                            );
                        }
                    }
                }
            }
            assert!(budget < 2 << 20 || of_one_family > 50, "{budget}: {of_one_family}");
        }
    }

    #[test]
    fn sets_read_together_equal_sets_read_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(9);
        let text: Vec<u64> = std::iter::repeat_with(|| random.next()).take(5000).collect();
        for budget in [usize::MAX, 400_000, 0] {
            let mut sets = ShingleSets::new(dir.path(), budget);
            for number in 0..900_u64 {
                // Some sets resemble the first text, some are unrelated, some are empty, and one is larger than a single
                // read.
                let hashes: Vec<u64> = match number % 7 {
                    0 => Vec::new(),
                    1..4 => text[number as usize..].iter().copied().chain([number]).collect(),
                    _ if number == 501 => (0..TOGETHER + 5).map(|_| random.next()).collect(),
                    _ => (0..number).map(|_| random.next()).collect(),
                };
                sets.push_like(&hashes, &[number.min(1), number % 7]).unwrap();
            }
            assert_eq!(sets.spill.is_some(), budget < usize::MAX);
            let (mut in_order, mut anywhere) = (SetReader::new(&sets), SetReader::new(&sets));
            for number in 0..900 {
                let mut read = Vec::new();
                let expected = sets.set(number, &mut read).unwrap();
                assert_eq!(in_order.next_set(number).unwrap(), expected, "{budget} {number}");
                if number % 90 == 0 {
                    anywhere.ahead(number..number + 45).unwrap();
                }
                // Also requests sets that may be outside the sets of the last read.
                for other in [number, 899 - number, number] {
                    let mut read = Vec::new();
                    let expected = sets.set(other, &mut read).unwrap();
                    assert_eq!(anywhere.set(other).unwrap(), expected, "{budget} {other}");
                }
            }
        }
    }

    #[test]
    fn reading_released_sets_fails_and_later_sets_are_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let mut sets = ShingleSets::new(dir.path(), 0);
        let set = |number: u64| (number << 32..(number << 32) + 40_000).collect::<Vec<u64>>();
        for number in 0..120 {
            sets.push(&set(number)).unwrap();
        }
        sets.release_before(0);
        assert_eq!(sets.set(0, &mut Vec::new()).unwrap(), set(0));
        sets.release_before(110);
        assert!(sets.set(0, &mut Vec::new()).unwrap_err().to_string().contains("given back"));
        for number in 110..120 {
            assert_eq!(sets.set(number, &mut Vec::new()).unwrap(), set(number.into()));
        }
    }

    #[test]
    fn invalid_delta_words_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut random = SplitMix(4);
        let text: Vec<u64> = std::iter::repeat_with(|| random.next()).take(100).collect();
        let mut sets = ShingleSets::new(dir.path(), 1 << 20);
        sets.push_like(&text, &[1]).unwrap();
        let (mut delta_scratch, mut words) = (DeltaScratch::default(), Vec::new());
        let header = sets.references().encode(&text[..90], &[1], &mut delta_scratch, &mut words).header;
        assert!(header.reference == 0 && words.len() == 2 && header.size == 90);
        let mut others = ShingleSets::new(dir.path(), 1 << 20);
        let mut moved = words.clone();
        moved[1] = moved[1] & (moved[1] - 1) | 1 << 40; // sets a bit after the last element
        for wrong in [&words[..1], &[words[0], 0], &[words[0], words[1], 7], &moved, &[]] {
            let error = sets.push_encoded(header, wrong, &[1]).unwrap_err();
            assert!(error.to_string().contains("not the words of the set"), "{error}");
        }
        assert!(others.push_encoded(header, &words, &[1]).is_err(), "of other sets");
        let alone = sets.references().encode(&text[..50], &[2], &mut delta_scratch, &mut Vec::new());
        assert!(sets.push_encoded(alone, &[1, 2, 3], &[2]).is_err());
        assert_eq!(sets.push_encoded(header, &words, &[1]).unwrap(), 1, "nothing was added");
        assert_eq!(sets.size(1), 90);
    }
}
