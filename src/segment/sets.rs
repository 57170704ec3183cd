//! Sets of shingle hashes. Finds the documents of a segment whose sets may be near a given set, and writes the sections
//! that this search reads.
//!
//! An element of a set is a 64-bit shingle hash. Its tag is its upper 32 bits. The section `common` lists the common
//! tags, which two passes over all sets determine. The first pass counts, for each tag, the documents with this tag, in
//! a count-min sketch (Cormode and Muthukrishnan 2005): two tables of `2^k` counters. The count of a tag is the smaller
//! of its two counters, and is never too low. The index into the first table is the first k bits of the tag, and the
//! index into the second is the first k bits of the tag times 0x9e3779b1. k is the smallest number from 1 to 18 for
//! which a table has at least one counter per set element, or 18 if there is none. The second pass selects the tags
//! whose count is at least 32 and at least the number of elements of all sets divided by `2^16`. It selects at most
//! 2^17 tags: the first ones in the order of documents and elements. The class of a tag is the number of bits of its
//! count. A segment of fewer than 32 documents has no common tags.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use twindex_sketch::Nearness;

use super::buckets::KeyList;
use super::entries::{EncodedEntries, encode_entries};
use super::open::Segment;
use super::output::SegmentOutput;
use super::sorted::RadixSorter;
use super::spilled::{ChunkedValues, SpillBudget};
use crate::error::{Error, Result};
use crate::format::bands::{Band, CODEC_PACKED, KEY_BITS};
use crate::format::contents::{Kind, Section};
use crate::format::fields::{Fields, unread};
use crate::format::prefixes::{CLASSES, Marks, key, tag, tags_in_order, tags_of};
use crate::format::wire::Fault;
use crate::params::Params;
use crate::sys::threads::{in_order, on_threads};

/// Minimum count of a common tag. A segment of fewer documents than this has no common tags.
const COMMON: u64 = 32;
/// Maximum number of common tags.
const COMMON_MAX: usize = 1 << 17;
/// For the index into the second table of counters, a tag is multiplied by this factor.
const SPREAD: u32 = 0x9E37_79B1;

/// Maximum number of bits of an index into a table of counters.
const COUNT_BITS: u32 = 18;

/// Returns the indices of a tag's counters in the two tables, which have `2^bits` counters each.
fn places(tag: u32, bits: u32) -> [usize; 2] {
    [tag >> (32 - bits), tag.wrapping_mul(SPREAD) >> (32 - bits)].map(|place| place as usize)
}

/// A callback for a document. Its arguments are the ordinal and the fields of the document.
pub(super) type SetVisitor<'a> = dyn FnMut(u32, Fields<'_>) -> Result<()> + 'a;
/// A function that calls a visitor with each document of a piece, in the order of ordinals. Piece n has [`SETS`] documents
/// from ordinal n * `SETS` on; the last one may have fewer.
type AllSets<'a> = dyn Fn(usize, &mut SetVisitor<'_>) -> Result<()> + Sync + 'a;
/// Number of documents of a piece.
pub(super) const SETS: usize = 1 << 9;

/// The common tags, each with its class.
struct CommonTags {
    classes: BTreeMap<u32, u8>,
    /// For each value of the first `FIRST_BITS` bits, whether a common tag begins with them.
    first_bits: Vec<bool>,
}

/// Number of leading bits of a tag that are looked up first; the whole tag is looked up only if they match.
const FIRST_BITS: u32 = 16;

impl CommonTags {
    fn new(classes: BTreeMap<u32, u8>) -> Self {
        let mut first_bits = vec![false; 1 << FIRST_BITS];
        for tag in classes.keys() {
            first_bits[(tag >> (32 - FIRST_BITS)) as usize] = true;
        }
        Self { classes, first_bits }
    }

    fn class(&self, tag: u32) -> u8 {
        let may_be = self.first_bits[(tag >> (32 - FIRST_BITS)) as usize];
        if may_be { self.classes.get(&tag).copied().unwrap_or(0) } else { 0 }
    }

    fn of(documents: u64, threads: usize, sets: &AllSets<'_>) -> Result<Self> {
        let mut common = BTreeMap::new();
        if documents < COMMON {
            return Ok(Self::new(common));
        }
        // The number of elements is not known before the pass, so it counts in tables of 2^18 counters. If `2^k`
        // counters suffice, adjacent counters are summed afterwards: an index into the smaller table is the first k
        // bits of an index into the larger one.
        let pieces: Vec<usize> = (0..(documents as usize).div_ceil(SETS)).collect();
        let mut counters: Vec<TagCounter> =
            (0..threads.min(pieces.len())).map(|_| TagCounter::new()).collect();
        on_threads(&mut counters, &pieces, |counter, &piece| {
            sets(piece, &mut |_, fields| {
                fields.set_into(&mut counter.set).map_err(unread)?;
                counter.elements += counter.set.len() as u64;
                for &hash in &counter.set {
                    for (counts, place) in counter.counts.iter_mut().zip(places(tag(hash), COUNT_BITS)) {
                        counts[place] = counts[place].saturating_add(1);
                    }
                }
                Ok(())
            })
        })?;
        let TagCounter { mut counts, mut elements, .. } = counters.pop().unwrap_or_else(TagCounter::new);
        for other in counters {
            elements += other.elements;
            for (count, other) in counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
                *count = count.saturating_add(*other);
            }
        }
        let bits = elements.next_power_of_two().trailing_zeros().clamp(1, COUNT_BITS);
        for counts in &mut counts {
            let sums = counts
                .chunks(1 << (COUNT_BITS - bits))
                .map(|some| some.iter().fold(0_u32, |sum, &count| sum.saturating_add(count)));
            *counts = sums.collect();
        }
        let min = COMMON.max(elements >> 16);
        // Each thread returns a tag only once, because its pieces are in order.
        let mut seen: Vec<(HashSet<u32>, Vec<u64>)> = vec![Default::default(); threads.min(pieces.len())];
        let find = |(seen, set): &mut (HashSet<u32>, Vec<u64>), &piece: &usize| {
            let mut new = Vec::new();
            sets(piece, &mut |_, fields| {
                fields.set_into(set).map_err(unread)?;
                for &hash in &*set {
                    let [first, second] = places(tag(hash), bits);
                    // Skips most tags early: at least one of the two counters of a rare tag is below the minimum.
                    if u64::from(counts[0][first]) < min || u64::from(counts[1][second]) < min {
                        continue;
                    }
                    if seen.insert(tag(hash)) {
                        let count = counts[0][first].min(counts[1][second]);
                        new.push((tag(hash), (32 - count.leading_zeros()) as u8));
                    }
                }
                Ok(())
            })?;
            Ok::<_, Error>(new)
        };
        let _ = in_order(&mut seen, &pieces, 4, find, |new: Vec<(u32, u8)>| {
            for (tag, class) in new {
                if common.len() < COMMON_MAX {
                    common.insert(tag, class);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self::new(common))
    }

    fn entries(&self) -> Vec<u64> {
        self.classes.iter().map(|(&tag, &class)| u64::from(tag) << 32 | u64::from(class)).collect()
    }

    /// Calls `each` with the entries of the section of prefixes or suffixes, in the order of documents. An entry has the
    /// key in the upper 32 bits and the ordinal in the lower 32 bits.
    fn elements(
        &self,
        kind: Kind,
        params: &Params,
        (documents, threads): (u64, usize),
        sets: &AllSets<'_>,
        mut each: impl FnMut(&[u64]) -> Result<()> + Send,
    ) -> Result<()> {
        let Some(near) = nearness(params) else { return Ok(()) };
        let pieces: Vec<usize> = (0..(documents as usize).div_ceil(SETS)).collect();
        let mut scratch: Vec<(Vec<u64>, Vec<u32>)> =
            vec![Default::default(); threads.min(pieces.len()).max(1)];
        let find = |(set, tags): &mut (Vec<u64>, Vec<u32>), &piece: &usize| {
            let mut entries = Vec::new();
            sets(piece, &mut |ordinal, fields| {
                fields.set_into(set).map_err(unread)?;
                let class = |tag: u32| Ok(self.class(tag));
                tags_of(set, near.indexed(set.len()), class, tags)?;
                let entry = |key: u32| u64::from(key) << 32 | u64::from(ordinal);
                if kind == Kind::Suffixes {
                    let mut prefix = tags.iter().copied().peekable();
                    let all = set.chunk_by(|&a, &b| tag(a) == tag(b)).map(|some| tag(some[0]));
                    entries.extend(all.filter(|tag| prefix.next_if_eq(tag).is_none()).map(entry));
                } else {
                    let is_marked = fields.is_marked();
                    entries.extend(tags.iter().map(|&tag| entry(key(tag, is_marked))));
                }
                Ok(())
            })?;
            Ok(entries)
        };
        let take = |entries: Vec<u64>| each(&entries).map(ControlFlow::Continue);
        in_order(&mut scratch, &pieces, 4, find, take).map(drop)
    }
}

/// Counts the documents with each tag, on one thread.
struct TagCounter {
    counts: [Vec<u32>; 2],
    elements: u64,
    set: Vec<u64>,
}

impl TagCounter {
    fn new() -> Self {
        let counts = || vec![0_u32; 1 << COUNT_BITS];
        Self { counts: [counts(), counts()], elements: 0, set: Vec::new() }
    }
}

/// Returns the minimum resemblance of near sets; `None` if the parameters have no sets or no threshold.
#[must_use]
pub fn nearness(params: &Params) -> Option<Nearness> {
    params.near().threshold.filter(|_| params.sets).map(|threshold| Nearness::Resemblance(threshold.value()))
}

/// The contents of the sections of common tags, prefixes and suffixes.
pub(super) struct EncodedSets<'r> {
    common: EncodedEntries<'r>,
    prefixes: EncodedEntries<'r>,
    suffixes: Option<EncodedEntries<'r>>,
}

impl EncodedSets<'_> {
    pub(super) fn write(&self, out: &mut SegmentOutput) -> Result<()> {
        self.common.write(out, Kind::Common, 0)?;
        self.prefixes.write(out, Kind::Prefixes, 0)?;
        self.suffixes.as_ref().map_or(Ok(()), |suffixes| suffixes.write(out, Kind::Suffixes, 0))
    }
}

/// Encodes the sections of common tags, prefixes and suffixes; `None` if the index stores no sets.
pub(super) fn encode_sets<'r>(
    params: &Params,
    documents: u64,
    budget: SpillBudget<'r>,
    sets: &AllSets<'_>,
) -> Result<Option<EncodedSets<'r>>> {
    if !params.sets {
        return Ok(None);
    }
    let common = CommonTags::of(documents, budget.threads(), sets)?;
    let entries = common.entries();
    let layout = |rows, below| Band::of(rows, below, KEY_BITS, CODEC_PACKED);
    let encoded =
        encode_entries(layout(entries.len() as u64, CLASSES), budget, &mut ChunkedValues::of(&entries))?;
    let elements = |kind: Kind, what: &'static str| {
        let mut sorter: RadixSorter<'_, u64> = RadixSorter::new(budget, budget.share(4), 64);
        let mut rows = 0;
        common.elements(kind, params, (documents, budget.threads()), sets, |entries| {
            rows += entries.len() as u64;
            entries.iter().try_for_each(|&entry| sorter.push(entry))
        })?;
        if rows > u64::from(u32::MAX) {
            return Err(Error::Limit { what, limit: u32::MAX.into(), found: rows });
        }
        let mut sorted = sorter.finish()?.into_values();
        encode_entries(layout(rows, documents), budget, &mut sorted)
    };
    let prefixes = elements(Kind::Prefixes, "entries of prefixes of a segment")?;
    let suffixes = || elements(Kind::Suffixes, "entries of suffixes of a segment");
    let suffixes = params.suffixes.then(suffixes).transpose()?;
    Ok(Some(EncodedSets { common: encoded, prefixes, suffixes }))
}

impl Segment {
    /// Calls `each` with candidates for documents near `set`, in no particular order. A candidate has a tag (the upper 32
    /// bits of a shingle hash) in common with the prefix of `set`, and is passed once for each such tag. The arguments of
    /// `each` are the ordinal of the candidate and the position of the tag.
    ///
    /// Reports every near document that `marks` includes. May also report documents that are not near, deleted documents,
    /// and other documents whose key in the section equals one of the query. Reports nothing if the index stores no sets.
    ///
    /// The position is the index (from 0) of the shared tag in the prefix of `set`;
    /// [`fewest_missing`](crate::format::prefixes::fewest_missing) uses it. It is always 0 for [`Marks::Any`] if the index
    /// stores marks. `near` must require at least the resemblance that the parameters require.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn sharing_prefix(
        &self,
        set: &[u64],
        near: Nearness,
        marks: Marks,
        mut each: impl FnMut(u32, u32),
    ) -> Result<()> {
        let keys = self.prefix_keys(set, near, marks)?;
        for (&(place, _), mut list) in keys.iter().zip(self.prefix_lists(&keys)?) {
            while let Some(ordinal) = list.next_ordinal()? {
                each(ordinal, place);
            }
        }
        Ok(())
    }

    /// Returns the entries that have these keys, which [`prefix_keys`](Self::prefix_keys) has returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn prefix_lists(&self, keys: &[(u32, u32)]) -> Result<Vec<KeyList<'_>>> {
        let Some([_, (section, layout)]) = &self.sets else { return Ok(Vec::new()) };
        keys.iter().map(|&(_, key)| self.list_of_key(section, layout, key)).collect()
    }

    /// Returns the pairs (position, key) that [`sharing_prefix`](Self::sharing_prefix) looks up: each key, with the
    /// position that is reported for it. A key is a tag, or an inverted tag for marked documents. Prefetches the
    /// entries of these keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn prefix_keys(&self, set: &[u64], near: Nearness, marks: Marks) -> Result<Vec<(u32, u32)>> {
        let Some([(common, classes), (section, layout)]) = &self.sets else { return Ok(Vec::new()) };
        let mut tags = Vec::new();
        // All tags of the set are looked up in it, and it is short.
        self.common_announced.get_or_init(|| _ = self.at(common).announce_always(0..common.length));
        let class_of = |tag: u32| {
            let mut class = 0;
            if common.rows > 0 {
                self.same_key(common, classes, tag, |found| class = found as u8)?;
            }
            Ok(class)
        };
        tags_in_order(set, near.prefix(set.len()), class_of, &mut tags)?;
        let marks = if self.params().marks { marks } else { Marks::Unmarked };
        // An inverted tag of a marked document may equal a tag of an unmarked one. So if keys of both kinds are looked
        // up, a match does not determine the position of the tag; position 0 is reported.
        let places = (0..).zip(&tags).map(|(place, &tag)| (if marks == Marks::Any { 0 } else { place }, tag));
        let keys: Vec<(u32, u32)> =
            places.flat_map(|(place, tag)| marks.keys(tag).map(move |key| (place, key))).collect();
        self.hint_keys(KEY_BITS, || keys.iter().map(|&(_, key)| (section, layout, key)));
        Ok(keys)
    }

    /// Returns whether a marked document can have one of the tags of these keys in its prefix. The keys are those of
    /// unmarked documents, which [`prefix_keys`](Self::prefix_keys) has returned.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn has_marked(&self, keys: &[(u32, u32)]) -> Result<bool> {
        let Some([_, (section, layout)]) = &self.sets else { return Ok(false) };
        let keys = || keys.iter().map(|&(_, tag)| key(tag, true));
        self.hint_keys(KEY_BITS, || keys().map(|key| (section, layout, key)));
        for key in keys() {
            if self.list_of_key(section, layout, key)?.next_ordinal()?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `each(tag, class)` for every common tag (a frequent 32-bit hash prefix) in ascending order. `class` is the bit
    /// length of the tag's estimated document count.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_common_tag(&self, each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        let Some([(section, layout), _]) = &self.sets else { return Ok(()) };
        self.for_each_entry(section, layout, each)
    }

    /// Calls `each(key, ordinal)` for every entry of the prefix section in ascending order. `key` is the tag of an element
    /// in the prefix of document `ordinal`, inverted if the document is marked as a duplicate.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_prefix_entry(&self, each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        let Some([_, (section, layout)]) = &self.sets else { return Ok(()) };
        self.for_each_entry(section, layout, each)
    }

    /// Calls `each(tag, ordinal)` for every entry of the suffix section in ascending order. `tag` is that of an element of
    /// document `ordinal` which is not a tag of its prefix.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_suffix_entry(&self, each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        let Some((section, layout)) = &self.suffixes else { return Ok(()) };
        self.for_each_entry(section, layout, each)
    }

    /// Checks the sections of fields and sets for [`verify`](Self::verify): fields are valid, and common tags, prefixes
    /// and suffixes match the stored sets. To save memory, compares only the number of the entries of prefixes or suffixes
    /// and the sum of their hashes, not the entries.
    pub(super) fn verify_sets(&self) -> Result<()> {
        if self.fields.is_none() {
            return Ok(());
        }
        let params = self.params();
        let documents = self.documents();
        for ordinal in 0..documents as u32 {
            self.fields(ordinal)?.check(params).map_err(|fault| self.wrong_fields(ordinal, fault))?;
        }
        let all = |piece: usize, each: &mut SetVisitor<'_>| {
            let start = (piece * SETS) as u32;
            (start..(start + SETS as u32).min(documents as u32))
                .try_for_each(|ordinal| each(ordinal, self.fields(ordinal)?))
        };
        let Some([(common_section, classes), prefixes]) = &self.sets else { return Ok(()) };
        let elements = || std::iter::once(prefixes).chain(&self.suffixes);
        for (section, layout) in
            elements().map(|(section, layout)| (section, layout)).chain([(common_section, classes)])
        {
            let entries = layout.entries(&(0..section.rows));
            if let Some(at) = layout.overfull(self.read(section, entries.clone())?, section.rows) {
                let at = entries.start + at as u64;
                return Err(
                    self.corrupt_at(section, Fault::new(at, "zeros where no entry has a bit", "others"))
                );
            }
        }
        let common = CommonTags::of(documents, 1, &all)?;
        let mut found = Vec::new();
        self.for_each_entry(common_section, classes, |tag, class| {
            found.push(u64::from(tag) << 32 | u64::from(class));
            Ok(())
        })?;
        if found != common.entries() {
            let (expected, found) =
                (format!("the {} common tags of the sets", common.classes.len()), found.len());
            return Err(
                self.corrupt_at(common_section, Fault::new(0, expected, format!("{found}, or others")))
            );
        }
        elements().try_for_each(|(section, layout)| self.verify_elements(section, layout, &common, &all))
    }

    /// Checks the entries of a section of prefixes or suffixes.
    fn verify_elements(
        &self,
        section: &Section,
        layout: &Band,
        common: &CommonTags,
        all: &AllSets<'_>,
    ) -> Result<()> {
        let mut expected = EntrySum::default();
        common.elements(section.kind, self.params(), (self.documents(), 1), all, |entries| {
            for &entry in entries {
                expected.add(entry);
            }
            Ok(())
        })?;
        let (mut summed, mut last) = (EntrySum::default(), None);
        self.for_each_entry(section, layout, |key, ordinal| {
            let entry = u64::from(key) << 32 | u64::from(ordinal);
            if last.replace(entry) >= Some(entry) {
                let found = format!("{key:08x}, {ordinal}");
                return Err(self.corrupt_at(section, Fault::new(0, "entries that ascend", found)));
            }
            summed.add(entry);
            Ok(())
        })?;
        if summed == expected {
            return Ok(());
        }
        let (expected, found) = (format!("the {} entries of the sets", expected.count), summed.count);
        Err(self.corrupt_at(section, Fault::new(0, expected, format!("{found}, or others"))))
    }
}

/// The number of entries and the sum of their hashes; used to compare multisets of entries.
#[derive(Debug, Default, PartialEq, Eq)]
struct EntrySum {
    count: u64,
    sum: u128,
}

impl EntrySum {
    fn add(&mut self, entry: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxhash_rust::xxh3::xxh3_128(&entry.to_le_bytes()));
    }
}
