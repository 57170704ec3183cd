//! Groups of documents with equal texts, and the sets and sketches by which groups are compared.

use anyhow::{Context, anyhow};
use twindex::sys::{Column, MemoryBudget};
use twindex::{Fingerprint, Sketch};
use twindex_join::{Common, DeltaHeader, EqualGroups, SampledBy, ShingleSets, StoredSet};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::inside::{InsideValues, put_inside};
use super::score::{Sampled, Score, ScoreKind};

/// A group of documents with the same text.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct DocumentGroup {
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
    /// Flags: [`EMPTY`] and [`HAS_FINGERPRINT`].
    flags: u32,
    /// Explicit padding, since a row must have no uninitialized bytes.
    unused: u32,
}

/// Flag: the document has no words, or no features.
const EMPTY: u32 = 1;
/// Flag: the method uses fingerprints, and the document has words.
const HAS_FINGERPRINT: u32 = 2;

/// The groups of equal documents, with their sets and sketches.
pub(super) struct Grouped {
    /// The group of each document, in input order.
    pub group_of: Column<u32>,
    /// The groups, in the order of their first documents.
    pub groups: Column<DocumentGroup>,
    /// The fingerprint of each group that has [`HAS_FINGERPRINT`], indexed by group.
    fingerprints: Column<u64>,
    /// Finds the group of an equal text; `None` after all documents were added.
    equal: Option<EqualGroups>,
    /// The values of the `--inside` field.
    pub values: InsideValues,
    /// The shingle set of each group, indexed by group.
    pub sets: ShingleSets,
    /// The sampling method of the sketches, and the sketch of each group; `None` if the method does not join sketches.
    pub sketches: Option<(SampledBy, ShingleSets)>,
    /// The memory budget of the columns.
    pub budget: MemoryBudget,
}

/// The documents of each group, in one array.
pub(super) struct GroupMembers {
    /// The start of each group in `documents`, followed by the end of the last group.
    starts: Column<u32>,
    documents: Column<u32>,
}

impl GroupMembers {
    /// Returns the documents of a group, in input order.
    pub(super) fn of(&self, group: u32) -> &[u32] {
        let (group, starts) = (group as usize, &self.starts[..]);
        &self.documents[starts[group] as usize..starts[group + 1] as usize]
    }
}

/// Maximum number of anchors of a document.
pub(super) const ANCHORS: usize = 12;

/// Hashes that similar texts most likely share: minima, then features. They are used to find a reference set for delta
/// encoding.
pub(super) struct Anchors {
    hashes: [u64; ANCHORS],
    count: usize,
}

impl Anchors {
    /// Returns the anchors of a document with this value of the `--inside` field.
    pub(super) fn of(sketch: &Sketch, inside: &[u8]) -> Self {
        let mut hashes = [0; ANCHORS];
        let minima = (0..).zip(sketch.signature());
        let minima = minima.map(|(number, &minimum)| (number << 32) | u64::from(minimum));
        let all = minima.chain(sketch.features().iter().copied());
        let count = hashes.iter_mut().zip(all).map(|(anchor, hash)| *anchor = hash).count();
        put_inside(&mut hashes, inside);
        Self { hashes, count }
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.hashes[..self.count]
    }
}

/// The shingle set of a new document, in one of the forms in which the caller supplies it.
#[derive(Clone, Copy)]
pub(super) enum NewSet<'s> {
    /// A delta-encoded set to store.
    Encoded(SetHeader, &'s [u64]),
    /// The number of distinct shingles; the set is not stored.
    Counted(u64),
    /// A sorted set to store.
    Held(&'s [u64]),
    /// Computes a sorted set to store, and the number of tokens. Called only if the text is new.
    Late(&'s dyn Fn() -> twindex::Result<(Vec<u64>, u64)>),
}

/// The header of a delta-encoded set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetHeader {
    /// The set is new.
    New(DeltaHeader),
    /// The set is in the scratch file already, because a stopped run has written it.
    Stored(StoredSet),
}

impl<'s> NewSet<'s> {
    /// Returns the set of a document from its encoded words, or only its size if there is no `header` because sets are
    /// not stored.
    pub(super) fn of(header: Option<SetHeader>, words: &'s [u64]) -> Self {
        header.map_or(Self::Counted(words.len() as u64), |header| Self::Encoded(header, words))
    }
}

impl DocumentGroup {
    /// Returns whether the group exceeds the cap, so that only its first document is paired with documents of other
    /// groups.
    pub(super) fn is_starred(&self, max_bucket: usize) -> bool {
        self.documents as usize > max_bucket
    }
}

/// A document to add to the group of its text.
pub(super) struct NewDocument<'n> {
    /// The xxh3-128 hash of the bytes that are compared for equality.
    pub hash: u128,
    /// Number of tokens of the text, or number of features.
    pub tokens: u64,
    /// The value of the `--inside` field; empty if there is no such field.
    pub inside: &'n [u8],
    /// The sketch. It is stored if the document is the first of its group.
    pub sketch: &'n Sketch,
    /// The set of shingles.
    pub set: NewSet<'n>,
}

impl Grouped {
    /// Creates an empty list of groups. Up to `memory` bytes of sets are kept in memory, the rest in scratch files. A
    /// document takes 4 bytes of memory or scratch files. A group takes 70 to 90 bytes, or more with longer sketches.
    pub(super) fn new(
        budget: &MemoryBudget,
        memory: usize,
        sampled_by: Option<SampledBy>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            group_of: Column::new(budget),
            groups: Column::new(budget),
            fingerprints: Column::new(budget),
            values: InsideValues::new(budget)?,
            equal: Some(EqualGroups::new(budget)?),
            sets: ShingleSets::within(budget, memory),
            sketches: sampled_by.map(|by| (by, ShingleSets::within(budget, memory / 2))),
            budget: budget.clone(),
        })
    }

    /// Returns whether there may be a group of texts with this hash and this value of the `--inside` field.
    pub(super) fn may_have(&self, hash: u128, inside: &[u8]) -> bool {
        let Some(inside) = self.values.find(inside) else { return false };
        self.equal.as_ref().is_none_or(|equal| equal.may_have(hash ^ u128::from(inside)))
    }

    /// Frees the lookup of equal texts after all documents were added.
    pub(super) fn end(&mut self) {
        self.equal = None;
    }

    /// Adds the next document to the group of its text, or to a new group if the text is new. `is_equal` returns
    /// whether the text equals the text of an earlier document with the same hash.
    ///
    /// # Errors
    ///
    /// More than 2^32 documents; the errors of `is_equal`; I/O errors of scratch files.
    pub(super) fn add<E>(
        &mut self,
        one: &NewDocument<'_>,
        mut is_equal: impl FnMut(u32) -> Result<bool, E>,
    ) -> anyhow::Result<()>
    where
        anyhow::Error: From<E>,
    {
        let document = u32::try_from(self.group_of.len()).map_err(|_| anyhow!("more than 2^32 documents"))?;
        let inside = self.values.number(one.inside)?;
        let (groups, equal) = (&self.groups, self.equal.as_mut().context("a document after the last one")?);
        let found = equal.group(one.hash ^ u128::from(inside), |group| -> anyhow::Result<bool> {
            let group = groups[group as usize];
            Ok(group.inside == inside && is_equal(group.first)?)
        })?;
        if found as usize == self.groups.len() {
            self.begin_group(one, inside, document)?;
        } else {
            self.groups[found as usize].documents += 1;
        }
        Ok(self.group_of.push(found)?)
    }

    fn begin_group(&mut self, one: &NewDocument<'_>, inside: u32, first: u32) -> twindex::Result<()> {
        let mut tokens = one.tokens;
        let shingles = match one.set {
            NewSet::Encoded(header, words) => {
                let anchors = Anchors::of(one.sketch, one.inside);
                let set = match header {
                    SetHeader::New(header) => self.sets.push_encoded(header, words, anchors.as_slice())?,
                    SetHeader::Stored(set) => self.sets.push_stored(set, words, anchors.as_slice())?,
                };
                debug_assert_eq!(set as usize, self.groups.len());
                self.sets.size(set)
            }
            NewSet::Counted(shingles) => {
                self.sets.push(&[])?;
                shingles
            }
            NewSet::Held(set) => self.push(set)?,
            NewSet::Late(set) => {
                let (set, late) = set()?;
                tokens = late;
                self.push(&set)?
            }
        };
        if let Some((by, sketches)) = &mut self.sketches {
            sketches.push(match by {
                SampledBy::Bottom(_) => one.sketch.bottom(),
                SampledBy::Modulus(_) => one.sketch.modular(),
            })?;
        }
        let mut flags = if one.sketch.is_empty() { EMPTY } else { 0 };
        if let Some(Fingerprint(fingerprint)) = one.sketch.fingerprint() {
            flags |= HAS_FINGERPRINT;
            self.fingerprints.resize(self.groups.len(), 0)?;
            self.fingerprints.push(fingerprint)?;
        }
        let shingles = u32::try_from(shingles).unwrap_or(u32::MAX);
        self.groups.push(DocumentGroup { tokens, inside, first, documents: 1, shingles, flags, unused: 0 })
    }

    fn push(&mut self, set: &[u64]) -> twindex::Result<u64> {
        self.sets.push(set)?;
        Ok(set.len() as u64)
    }

    /// Returns whether two groups have the same value of the `--inside` field. True if there is no such field.
    pub(super) fn are_compared(&self, a: u32, b: u32) -> bool {
        self.groups[a as usize].inside == self.groups[b as usize].inside
    }

    /// Returns the value of the `--inside` field of a group; empty if there is no such field.
    pub(super) fn value_of(&self, group: u32) -> &[u8] {
        self.values.of_number(self.groups[group as usize].inside)
    }

    /// Returns the number of documents added so far.
    pub(super) fn len(&self) -> usize {
        self.group_of.len()
    }

    pub(super) fn group(&self, document: u32) -> &DocumentGroup {
        &self.groups[self.group_of[document as usize] as usize]
    }

    /// Returns the fingerprint of a group's text; `None` if the method uses none, or if the text has no words.
    pub(super) fn fingerprint(&self, group: u32) -> Option<Fingerprint> {
        let has_one = self.groups[group as usize].flags & HAS_FINGERPRINT != 0;
        has_one.then(|| Fingerprint(self.fingerprints[group as usize]))
    }

    /// Returns the documents of each group.
    pub(super) fn members(&self) -> twindex::Result<GroupMembers> {
        let mut starts = Column::new(&self.budget);
        let mut end = 0;
        for group in &self.groups[..] {
            starts.push(end)?;
            end += group.documents;
        }
        starts.push(end)?;
        // A counting sort: each document is written at the start of its group, and the start advances past it.
        let mut documents = Column::filled(&self.budget, self.group_of.len(), 0)?;
        let (places, all) = (&mut starts[..], &mut documents[..]);
        for (document, &group) in (0..).zip(&self.group_of[..]) {
            let place = &mut places[group as usize];
            all[*place as usize] = document;
            *place += 1;
        }
        places.rotate_right(1);
        if let Some(first) = places.first_mut() {
            *first = 0;
        }
        Ok(GroupMembers { starts, documents })
    }

    /// Returns the score of two groups from the common elements of their sketches; `None` if sketches are not joined,
    /// or if the sketches give no estimate.
    pub(super) fn sampled(&self, a: u32, b: u32) -> twindex::Result<Option<Score>> {
        let Some((by, sketches)) = &self.sketches else { return Ok(None) };
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        let (a, b) = (sketches.set(a, &mut of_a)?, sketches.set(b, &mut of_b)?);
        let common = Common::of(&by.sample(a), &by.sample(b));
        Ok(common.map(|common| Score::Sampled(Sampled::from(common))))
    }

    /// Returns the number of documents that have words but no element in their sketch.
    pub(super) fn without_elements(&self) -> u64 {
        let Some((_, sketches)) = &self.sketches else { return 0 };
        let groups = (0..).zip(&self.groups[..]).filter(|(_, group)| group.flags & EMPTY == 0);
        groups
            .filter(|&(number, _)| sketches.size(number) == 0)
            .map(|(_, group)| u64::from(group.documents))
            .sum()
    }

    /// Returns the score of a group against itself.
    pub(super) fn itself(&self, group: u32, kind: ScoreKind) -> Score {
        kind.itself(self.groups[group as usize].shingles)
    }
}
