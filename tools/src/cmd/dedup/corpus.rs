//! What is remembered of the documents: their keys and places, and the groups that equal texts make.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use twindex::{Fingerprint, Key, Sketch};
use twindex_join::{Common, Groups, SampledBy, ShingleSets, Told};

use super::against::Dropped;
use super::lines::{Lines, Reading};
use super::score::{Kind, Sampled, Score};
use crate::input::{Block, Form, Parser, Place};
use crate::sketching::Sketched;

/// A group of documents with the same text.
pub(super) struct Group {
    /// Its documents, in the order of the input.
    pub(super) members: Vec<u32>,
    /// Bytes of the text.
    pub(super) text_bytes: u64,
    /// Distinct shingles; none for a text without words.
    pub(super) shingles: u64,
    /// The text has no words, or features.
    is_empty: bool,
    /// If the method asks for it, and the text has words.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// All that is remembered of the documents.
pub(super) struct Corpus {
    pub(super) keys: Vec<Arc<[u8]>>,
    pub(super) places: Vec<Place>,
    pub(super) group_of: Vec<u32>,
    /// What stands for each document in a file of documents that are kept.
    lines: Lines,
    by_key: HashMap<Arc<[u8]>, u32, ahash::RandomState>,
    /// Documents that are near one of another index, with their places.
    pub(super) dropped: HashMap<Arc<[u8]>, (Place, Dropped), ahash::RandomState>,
    equal: Groups,
    pub(super) groups: Vec<Group>,
    /// A set for each group, with its number.
    pub(super) sets: ShingleSets,
    /// The sketches that are joined, and how their elements were chosen, where the method is to join them; one for each
    /// group.
    pub(super) sketches: Option<(SampledBy, ShingleSets)>,
    /// What finds out again what a line says.
    pub(super) parser: Parser,
}

/// Minima by which near texts find each other.
const ANCHORS: usize = 12;

/// Hashes of which texts that resemble each other most likely share some: minima, or features where none are kept.
pub(super) struct Anchors {
    hashes: [u64; ANCHORS],
    count: usize,
}

impl Anchors {
    pub(super) fn of(sketch: &Sketch) -> Self {
        let mut hashes = [0; ANCHORS];
        let minima = (0..).zip(sketch.signature());
        let minima = minima.map(|(number, &minimum)| (number << 32) | u64::from(minimum));
        let all = minima.chain(sketch.features().iter().copied());
        let count = hashes.iter_mut().zip(all).map(|(anchor, hash)| *anchor = hash).count();
        Self { hashes, count }
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.hashes[..self.count]
    }
}

/// The set of a new document's shingles.
#[derive(Clone, Copy)]
pub(super) enum NewSet<'s> {
    /// To be added, as it was told.
    Told(Told, &'s [u64]),
    /// Of so many, which are not held.
    Counted(u64),
}

impl Group {
    /// True for a group that stands in pairs with its first document only.
    pub(super) fn is_starred(&self, max_bucket: usize) -> bool {
        self.members.len() > max_bucket
    }
}

impl Corpus {
    pub(super) fn new(
        folder: &Path,
        memory: usize,
        parser: Parser,
        sampled_by: Option<SampledBy>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            keys: Vec::new(),
            places: Vec::new(),
            group_of: Vec::new(),
            lines: Lines::new(folder)?,
            by_key: HashMap::default(),
            dropped: HashMap::default(),
            equal: Groups::default(),
            groups: Vec::new(),
            sets: ShingleSets::new(folder, memory),
            sketches: sampled_by.map(|by| (by, ShingleSets::new(folder, memory / 2))),
            parser,
        })
    }

    pub(super) fn add(&mut self, one: &Sketched, set: NewSet<'_>) -> anyhow::Result<()> {
        let document = u32::try_from(self.keys.len()).map_err(|_| anyhow!("more than 2^32 documents"))?;
        let key: Arc<[u8]> = one.key.as_slice().into();
        let first = match self.by_key.entry(Arc::clone(&key)) {
            Entry::Occupied(first) => Some(&self.places[*first.get() as usize]),
            Entry::Vacant(vacant) => {
                let first = self.dropped.get(&key).map(|(place, _)| place);
                if first.is_none() {
                    vacant.insert(document);
                }
                first
            }
        };
        if let Some(first) = first {
            return Err(repeated(one, first));
        }
        self.keys.push(key);
        self.places.push(one.place.clone());
        let whole = &one.whole;
        self.lines.push(whole.form, &whole.line).with_context(|| format!("{}: cannot be kept", one.place))?;
        let group = self.group_for(one, set)?;
        self.groups[group as usize].members.push(document);
        self.group_of.push(group);
        Ok(())
    }

    /// Takes note of a document that is dropped.
    pub(super) fn drop_near(&mut self, one: &Sketched, dropped: Dropped) -> anyhow::Result<()> {
        let key = one.key.as_slice();
        let first = self.by_key.get(key).map(|&document| &self.places[document as usize]);
        if let Some(first) = first.or_else(|| self.dropped.get(key).map(|(place, _)| place)) {
            return Err(repeated(one, first));
        }
        self.dropped.insert(key.into(), (one.place.clone(), dropped));
        Ok(())
    }

    /// The group of a text, a new one if the text is new.
    fn group_for(&mut self, one: &Sketched, set: NewSet<'_>) -> anyhow::Result<u32> {
        let new = self.groups.len() as u32;
        let document = self.group_of.len() as u32;
        // Lent, as what confirms an equal text looks into the rest.
        let mut equal = std::mem::take(&mut self.equal);
        let found = equal.group(one.whole.hash, |group| -> anyhow::Result<bool> {
            let identity =
                |document| self.parser.identity_of_line(self.form(document), &self.line(document)?);
            Ok(identity(self.groups[group as usize].members[0])? == identity(document)?)
        });
        self.equal = equal;
        let group = found?;
        if group < new {
            return Ok(group);
        }
        let shingles = match set {
            NewSet::Told(told, words) => {
                let set = self.sets.push_told(told, words, Anchors::of(&one.sketch).as_slice())?;
                debug_assert_eq!(set, new);
                self.sets.size(set)
            }
            NewSet::Counted(shingles) => {
                self.sets.push(&[])?;
                shingles
            }
        };
        if let Some((by, sketches)) = &mut self.sketches {
            sketches.push(match by {
                SampledBy::Bottom(_) => one.sketch.bottom(),
                SampledBy::Modulus(_) => one.sketch.modular(),
            })?;
        }
        self.groups.push(Group {
            members: Vec::new(),
            text_bytes: one.text_bytes,
            shingles,
            is_empty: one.sketch.is_empty(),
            fingerprint: one.sketch.fingerprint(),
        });
        Ok(new)
    }

    /// The line of a document, read again where it was read from, or where it was written meanwhile.
    pub(super) fn line(&self, document: u32) -> anyhow::Result<Vec<u8>> {
        self.found(document, self.lines.get(document as usize))
    }

    /// Adds the lines of documents to a block, until it is full or there are no more.
    pub(super) fn fill(
        &self,
        block: &mut Block,
        documents: &mut impl Iterator<Item = u32>,
        reading: &mut Reading<'_>,
    ) -> anyhow::Result<()> {
        block.clear();
        for document in documents {
            block.push(self.form(document), self.found(document, reading.get(document as usize))?);
            if block.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Reads lines, as a rule one after the other.
    pub(super) fn reading(&self) -> Reading<'_> {
        self.lines.reading()
    }

    fn found<L>(&self, document: u32, line: io::Result<Option<L>>) -> anyhow::Result<L> {
        let place = &self.places[document as usize];
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => {
                bail!("{place}: changed since it was read; run again when nothing writes to the input")
            }
            Err(error) => Err(error).with_context(|| format!("{place}: cannot be read again")),
        }
    }

    /// What the line of a document is.
    pub(super) fn form(&self, document: u32) -> Form {
        self.lines.form(document as usize)
    }

    pub(super) fn group(&self, document: u32) -> &Group {
        &self.groups[self.group_of[document as usize] as usize]
    }

    /// The group of the document with this key.
    pub(super) fn group_at(&self, key: Key<'_>) -> Option<u32> {
        let Key::Bytes(key) = key else { return None };
        self.by_key.get(key).map(|&document| self.group_of[document as usize])
    }

    /// What the sketches of two groups have in common; none where none are joined, or they tell nothing.
    pub(super) fn sampled(&self, a: u32, b: u32) -> twindex::Result<Option<Score>> {
        let Some((by, sketches)) = &self.sketches else { return Ok(None) };
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        let (a, b) = (sketches.set(a, &mut of_a)?, sketches.set(b, &mut of_b)?);
        let common = Common::of(&by.sample(a), &by.sample(b));
        Ok(common.map(|common| Score::Sampled(Sampled::from(common))))
    }

    /// Documents whose text has words, and whose sketch has no element.
    pub(super) fn without_elements(&self) -> u64 {
        let Some((_, sketches)) = &self.sketches else { return 0 };
        let groups = (0..).zip(&self.groups).filter(|(_, group)| !group.is_empty);
        groups
            .filter(|&(number, _)| sketches.size(number) == 0)
            .map(|(_, group)| group.members.len() as u64)
            .sum()
    }

    /// The score of a text with itself.
    pub(super) fn itself(&self, group: u32, kind: Kind) -> Score {
        kind.itself(self.groups[group as usize].shingles as u32)
    }

    pub(super) fn documents_by_key(&self) -> Vec<u32> {
        let mut documents: Vec<u32> = (0..self.keys.len() as u32).collect();
        documents.sort_unstable_by(|&a, &b| self.keys[a as usize].cmp(&self.keys[b as usize]));
        documents
    }
}

/// What is wrong with a document whose key stands already at `first`.
fn repeated(one: &Sketched, first: &Place) -> anyhow::Error {
    let (key, again) = (one.key.as_slice(), &one.place);
    let advice = if first == again {
        "the input is named twice, name it once"
    } else if first.is_below_a_folder(key) && again.is_below_a_folder(key) {
        "keys are paths below the folder that is named; name the folder above them instead"
    } else {
        "give each document a key of its own"
    };
    let key = String::from_utf8_lossy(key);
    anyhow!("{again}: the key `{}` stands already at {first}; {advice}", key.escape_debug())
}
