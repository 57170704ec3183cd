//! Groups documents with equal texts, and stores the shingle set of each group.
//!
//! Only documents with the same value of the `--inside` field, such as a source or a language, are compared. Equal
//! texts with different values are in different groups. Each shingle hash is combined with the value, so sets of
//! documents with different values have no common hash. Sketches are computed from the text alone; pairs of near
//! sketches with different values are discarded before the decision.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use twindex::sys::{Column, MemoryBudget};
use twindex::{Error, Sketch};
use twindex_join::{EncodedSet, ReferenceSets, ShingleSets, StoredSet};
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::rule::score::{Score, ScoreKind};
use crate::sketching::known_texts::{KnownTexts, TextLine};
use crate::stored::keys::{DocumentKeys, KnownKeys, arrange};
use crate::stored::set_thread::SetThread;

/// The distinct values of the `--inside` field, each with an id.
pub(crate) struct InsideValues {
    values: DocumentKeys,
    known: KnownKeys,
}

/// The id of the empty value, which all documents have without `--inside`.
pub(crate) const NO_FIELD: u32 = 0;

impl InsideValues {
    pub(crate) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        Ok(Self { values: DocumentKeys::new(budget), known: KnownKeys::new(budget)? })
    }

    /// Returns the id of a value; adds the value if it is new. The id of the empty value is [`NO_FIELD`].
    pub(crate) fn number(&mut self, value: &[u8]) -> anyhow::Result<u32> {
        if let Some(number) = self.find(value) {
            return Ok(number);
        }
        let next = self.values.len() as u32;
        ensure!(next < u32::MAX - 1, "more than 2^32 values");
        self.values.push(value)?;
        self.known.insert(value, next)?;
        Ok(next + 1)
    }

    /// Returns the id of a value; `None` if it was not added.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        if value.is_empty() {
            return Some(NO_FIELD);
        }
        self.known.find(&self.values, value).map(|number| number + 1)
    }

    /// Returns the value that was added as number `place`, from 0. Its id is `place` + 1.
    pub(crate) fn value(&self, place: u32) -> &[u8] {
        self.values.get(place)
    }

    /// Returns the value with this id; empty for [`NO_FIELD`].
    pub(crate) fn of_number(&self, number: u32) -> &[u8] {
        number.checked_sub(1).map_or(&[], |place| self.values.get(place))
    }

    /// Returns the indices of the values in ascending order of the values. Uses about `memory` bytes, in addition to
    /// the result, which counts against `budget`.
    pub(crate) fn sorted(&self, budget: &MemoryBudget, memory: usize) -> twindex::Result<Column<u32>> {
        self.values.sorted(0..self.values.len() as u32, budget, memory)
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Returns the number that is combined by XOR with each shingle hash of a document with this value; 0 for the empty
/// value.
fn salt(value: &[u8]) -> u64 {
    if value.is_empty() { 0 } else { xxh3_64(value) }
}

/// Returns the hash of a text combined with the value of its document.
pub(crate) fn salted(hash: u128, value: &[u8]) -> u128 {
    hash ^ u128::from(salt(value))
}

/// Returns the shingle hashes of a document combined with its value, in the same order. Distinct hashes remain
/// distinct.
pub(crate) fn shingles_inside<'s>(shingles: &'s [u64], value: &[u8]) -> Cow<'s, [u64]> {
    let salt = salt(value);
    match salt {
        0 => Cow::Borrowed(shingles),
        _ => shingles.iter().map(|shingle| shingle ^ salt).collect(),
    }
}

/// XORs the hashes of a document with the salt of its `--inside` value, in place.
pub(crate) fn put_inside(hashes: &mut [u64], value: &[u8]) {
    let salt = salt(value);
    for hash in hashes {
        *hash ^= salt;
    }
}

/// Restores hashes that [`put_inside`] changed, in place. Returns whether the hashes may have changed.
pub(crate) fn take_outside(hashes: &mut [u64], value: &[u8]) -> bool {
    put_inside(hashes, value); // XOR with the same salt restores the hashes
    !value.is_empty()
}

/// A group of documents with the same text.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct DocumentGroup {
    /// Number of tokens of the text, or number of features.
    pub tokens: u64,
    /// The id of the value of the `--inside` field.
    pub inside: u32,
    /// The first document of the group in input order.
    pub first: u32,
    /// Number of documents in the group.
    pub documents: u32,
    /// Number of distinct shingles; 0 if the text has no words.
    pub shingles: u32,
}

/// The groups of equal documents, with their sets.
pub(crate) struct Grouped {
    /// The group of each document, in input order.
    pub group_of: Column<u32>,
    /// The groups, in the order in which they were found: that of their first documents, unless several inputs were read
    /// at the same time.
    pub groups: Column<DocumentGroup>,
    /// The first minimum of the sketch of each group, and whether there is one.
    first_minima: Column<[u32; 2]>,
    /// Finds the group of a text that occurred before; `None` after all documents were added.
    known: Option<Arc<KnownTexts>>,
    /// The values of the `--inside` field.
    pub values: InsideValues,
    /// The shingle set of each group, indexed by group. Empty while a thread adds them.
    pub sets: ShingleSets,
    /// The thread that adds the sets, if they are not added by the caller.
    set_thread: Option<SetThread>,
    /// The memory budget of the columns.
    pub budget: MemoryBudget,
}

/// Maximum number of anchors of a document.
pub(crate) const ANCHORS: usize = 12;

/// Hashes that similar texts probably share: minima, then features. A reference set for delta encoding is looked up by
/// them.
pub(crate) struct Anchors {
    hashes: [u64; ANCHORS],
    count: usize,
}

impl Anchors {
    /// Returns the anchors of a document with this value of the `--inside` field.
    pub(crate) fn of(sketch: &Sketch, inside: &[u8]) -> Self {
        let mut hashes = [0; ANCHORS];
        let minima = (0..).zip(sketch.signature());
        let minima = minima.map(|(number, &minimum)| (number << 32) | u64::from(minimum));
        let all = minima.chain(sketch.features().iter().copied());
        let count = hashes.iter_mut().zip(all).map(|(anchor, hash)| *anchor = hash).count();
        put_inside(&mut hashes, inside);
        Self { hashes, count }
    }

    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.hashes[..self.count]
    }
}

/// The shingle set of a new document, in one of the forms that callers have.
pub(crate) enum NewSet<'s> {
    /// A delta-encoded set to store.
    Encoded(SetHeader, &'s [u64]),
    /// Only the number of distinct shingles. No set is stored.
    Counted(u64),
    /// A sorted set to store.
    Held(&'s [u64]),
    /// None, because the text is known to be a copy.
    Copy,
    /// Computes a sorted set to store, and the number of tokens. Called only if the text is new.
    Late(&'s dyn Fn() -> twindex::Result<(Vec<u64>, u64)>),
}

/// The header of a delta-encoded set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetHeader {
    /// The set is new.
    New(EncodedSet),
    /// The set is already in the scratch file, where a stopped run wrote it.
    Stored(StoredSet),
}

impl<'s> NewSet<'s> {
    /// Returns the set that `words` encode. Without a `header`, the set is not stored, and the length of `words` is its
    /// size.
    pub(crate) fn of(header: Option<SetHeader>, words: &'s [u64]) -> Self {
        header.map_or(Self::Counted(words.len() as u64), |header| Self::Encoded(header, words))
    }
}

/// A document that is added to the group of its text.
pub(crate) struct NewDocument<'n> {
    /// The xxh3-128 hash of the bytes that are compared for equality.
    pub hash: u128,
    /// Number of tokens of the text, or number of features.
    pub tokens: u64,
    /// The value of the `--inside` field; empty if there is no such field.
    pub inside: &'n [u8],
    /// The group of an equal text, if another thread has found it and compared the texts.
    pub copy_of: Option<u32>,
    /// Where any thread can read the text again; `None` if that is impossible.
    pub line: Option<TextLine<'n>>,
    /// The sketch. It is stored if the document is the first of its group.
    pub sketch: &'n Sketch,
    /// The set of shingles.
    pub set: NewSet<'n>,
}

impl Grouped {
    /// Creates an empty list of groups. Up to `memory` bytes of sets are kept in memory, the rest in scratch files. A
    /// document takes 4 bytes of memory or scratch files. A group takes 60 to 80 bytes.
    pub(crate) fn new(budget: &MemoryBudget, memory: usize) -> anyhow::Result<Self> {
        Ok(Self {
            group_of: Column::new(budget),
            groups: Column::new(budget),
            first_minima: Column::new(budget),
            values: InsideValues::new(budget)?,
            known: Some(Arc::new(KnownTexts::new(budget)?)),
            sets: ShingleSets::within(budget, memory),
            set_thread: None,
            budget: budget.clone(),
        })
    }

    /// Returns whether a group with this text hash and `--inside` value may exist. May be a false positive.
    pub(crate) fn may_have(&self, hash: u128, inside: &[u8]) -> bool {
        let Some(inside) = self.values.find(inside) else { return false };
        self.known.as_ref().is_none_or(|known| known.may_have(hash ^ u128::from(inside)))
    }

    /// Lets a thread add the sets until [`end`](Self::end). From now on, every document must have an encoded set.
    pub(crate) fn start_set_thread(&mut self) -> anyhow::Result<()> {
        let sets = std::mem::replace(&mut self.sets, ShingleSets::within(&self.budget, 0));
        self.set_thread = Some(SetThread::start(sets)?);
        Ok(())
    }

    /// Returns the texts, for threads that look up texts; `None` after all documents were added.
    pub(crate) fn known(&self) -> Option<Arc<KnownTexts>> {
        self.known.clone()
    }

    /// Returns the references against which sets are encoded.
    pub(crate) fn references(&self) -> Arc<ReferenceSets> {
        self.set_thread.as_ref().map_or_else(|| self.sets.references(), SetThread::references)
    }

    /// Waits for the sets, and frees the lookup table for equal texts. Called after all documents were added.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.known = None;
        if let Some(thread) = self.set_thread.take() {
            self.sets = thread.finish()?;
            ensure!(
                self.sets.len() == self.groups.len(),
                "{} sets of {} texts",
                self.sets.len(),
                self.groups.len()
            );
        }
        Ok(())
    }

    /// Adds the next document to the group of its text, or to a new group if the text is new. `is_equal` returns
    /// whether the text equals the text of an earlier document with the same hash.
    ///
    /// # Errors
    ///
    /// The errors of `is_equal`, I/O errors of scratch files, or more than 2^32 documents.
    pub(crate) fn add<E>(
        &mut self,
        one: NewDocument<'_>,
        mut is_equal: impl FnMut(u32) -> Result<bool, E>,
    ) -> anyhow::Result<()>
    where
        anyhow::Error: From<E>,
    {
        let document = u32::try_from(self.group_of.len()).map_err(|_| anyhow!("more than 2^32 documents"))?;
        let inside = self.values.number(one.inside)?;
        let (groups, known) = (&self.groups, self.known.as_ref().context("a document after the last one")?);
        // Only texts without a value are looked up by other threads, which do not know the numbers of values.
        let line = one.line.filter(|_| inside == NO_FIELD);
        let found = known.group(one.hash ^ u128::from(inside), line, |number| -> anyhow::Result<bool> {
            let group = groups[number as usize];
            Ok(group.inside == inside && (one.copy_of == Some(number) || is_equal(group.first)?))
        })?;
        if found as usize == self.groups.len() {
            self.begin_group(one, inside, document)?;
        } else {
            self.groups[found as usize].documents += 1;
        }
        Ok(self.group_of.push(found)?)
    }

    /// Numbers the documents by these runs of them. Groups keep their numbers.
    pub(crate) fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        arrange(&mut self.group_of, runs)?;
        let groups = &mut self.groups[..];
        for (document, &group) in self.group_of.iter().enumerate().rev() {
            groups[group as usize].first = document as u32; // the last assignment is the first document
        }
        Ok(())
    }

    /// Returns the groups in the order of their first documents.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = u32> {
        let firsts = (0..).zip(&self.group_of[..]);
        let firsts = firsts.filter(|&(document, &group)| self.groups[group as usize].first == document);
        firsts.map(|(_, &group)| group)
    }

    fn begin_group(&mut self, one: NewDocument<'_>, inside: u32, first: u32) -> twindex::Result<()> {
        let mut tokens = one.tokens;
        self.first_minima.push(one.sketch.signature().first().map_or([0, 0], |&minimum| [minimum, 1]))?;
        let shingles = match one.set {
            NewSet::Encoded(header, words) => {
                let anchors = Anchors::of(one.sketch, one.inside);
                match (header, &mut self.set_thread) {
                    (SetHeader::New(encoded), Some(thread)) => {
                        let size = encoded.size();
                        thread.push(encoded, words, anchors.as_slice())?;
                        size as u64
                    }
                    (header, _) => {
                        let set = match header {
                            SetHeader::New(encoded) => {
                                self.sets.push_encoded(encoded, words, anchors.as_slice())?
                            }
                            SetHeader::Stored(set) => {
                                self.sets.push_stored(set, words, anchors.as_slice())?
                            }
                        };
                        debug_assert_eq!(set as usize, self.groups.len());
                        self.sets.size(set)
                    }
                }
            }
            NewSet::Counted(shingles) => {
                self.sets.push(&[])?;
                shingles
            }
            NewSet::Held(set) => self.push(set)?,
            NewSet::Copy => return Err(Error::Invalid("a copy of no text".into())),
            NewSet::Late(set) => {
                let (set, late) = set()?;
                tokens = late;
                self.push(&set)?
            }
        };
        let shingles = u32::try_from(shingles).unwrap_or(u32::MAX);
        self.groups.push(DocumentGroup { tokens, inside, first, documents: 1, shingles })
    }

    fn push(&mut self, set: &[u64]) -> twindex::Result<u64> {
        self.sets.push(set)?;
        Ok(set.len() as u64)
    }

    /// Returns whether two groups have the same value of the `--inside` field. True if there is no such field.
    pub(crate) fn are_compared(&self, a: u32, b: u32) -> bool {
        self.groups[a as usize].inside == self.groups[b as usize].inside
    }

    /// Returns the first minimum of a group; `None` if its sketch has none.
    pub(crate) fn first_minimum(&self, group: u32) -> Option<u32> {
        let [minimum, is_there] = self.first_minima[group as usize];
        (is_there > 0).then_some(minimum)
    }

    /// Returns whether the texts of two groups have equally many tokens.
    pub(crate) fn has_equal_tokens(&self, a: u32, b: u32) -> bool {
        self.groups[a as usize].tokens == self.groups[b as usize].tokens
    }

    /// Returns the value of the `--inside` field of a group; empty if there is no such field.
    pub(crate) fn value_of(&self, group: u32) -> &[u8] {
        self.values.of_number(self.groups[group as usize].inside)
    }

    pub(crate) fn len(&self) -> usize {
        self.group_of.len()
    }

    pub(crate) fn group(&self, document: u32) -> &DocumentGroup {
        &self.groups[self.group_of[document as usize] as usize]
    }

    pub(crate) fn itself(&self, group: u32, kind: ScoreKind) -> Score {
        kind.itself(self.groups[group as usize].shingles)
    }
}
