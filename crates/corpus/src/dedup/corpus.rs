//! What is remembered of the documents of files: their keys, places and lines, beside the groups that equal texts make.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use twindex::Key;
use twindex_join::SampledBy;

use super::dropped::Dropped;
use super::groups::{Grouped, NewSet, Newcomer};
use super::lines::{Lines, Reading};
use crate::input::{Block, Form, Parser, Place};
use crate::sketching::Sketched;

/// All that is remembered of the documents.
pub(super) struct Corpus {
    /// How many of the first documents are a history: they stay, and are not written.
    pub(super) history: u32,
    /// How many of the first groups the history has.
    pub(super) history_groups: u32,
    pub(super) keys: Vec<Arc<[u8]>>,
    pub(super) places: Vec<Place>,
    /// Documents whose keys are not those that their lines say, in their order.
    other_keys: OtherKeys,
    /// By their texts.
    pub(super) grouped: Grouped,
    /// What stands for each document in a file of documents that are kept.
    lines: Lines,
    by_key: HashMap<Arc<[u8]>, u32, ahash::RandomState>,
    /// Documents that are near one of another index, with their places.
    pub(super) dropped: HashMap<Arc<[u8]>, (Place, Dropped), ahash::RandomState>,
    /// What finds out again what a line says.
    pub(super) parser: Parser,
}

impl Corpus {
    pub(super) fn new(
        folder: &Path,
        memory: usize,
        parser: Parser,
        sampled_by: Option<SampledBy>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            history: 0,
            history_groups: 0,
            keys: Vec::new(),
            places: Vec::new(),
            other_keys: OtherKeys::default(),
            grouped: Grouped::new(folder, memory, sampled_by),
            lines: Lines::new(folder)?,
            by_key: HashMap::default(),
            dropped: HashMap::default(),
            parser,
        })
    }

    /// Adds a document of a history; all of them come before the others. Their keys may come again.
    pub(super) fn add_history(&mut self, one: &Sketched, set: NewSet<'_>) -> anyhow::Result<()> {
        self.push(one, one.key.as_slice().into(), set)?;
        self.history = self.keys.len() as u32;
        self.history_groups = self.grouped.groups.len() as u32;
        Ok(())
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
        self.push(one, key, set)
    }

    fn push(&mut self, one: &Sketched, key: Arc<[u8]>, set: NewSet<'_>) -> anyhow::Result<()> {
        let document = self.keys.len() as u32;
        self.keys.push(key);
        self.places.push(one.place.clone());
        self.other_keys.push(!one.is_own_key);
        let whole = &one.whole;
        self.lines.push(whole.form, &whole.line).with_context(|| format!("{}: cannot be kept", one.place))?;
        let new = Newcomer { hash: whole.hash, text_bytes: one.text_bytes, sketch: &one.sketch, set };
        // What confirms an equal text looks into the lines alone.
        let Self { grouped, lines, places, parser, .. } = self;
        let identity = |document: u32| -> anyhow::Result<_> {
            let line = found(places, document, lines.get(document as usize))?;
            parser.identity_of_line(lines.form(document as usize), &line)
        };
        grouped.add(&new, |first| -> anyhow::Result<bool> { Ok(identity(first)? == identity(document)?) })
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

    /// Adds the lines of documents to a block, until it is full or there are no more.
    pub(super) fn fill(
        &self,
        block: &mut Block,
        documents: &mut impl Iterator<Item = u32>,
        reading: &mut Reading<'_>,
    ) -> anyhow::Result<()> {
        block.clear();
        for document in documents {
            let line = found(&self.places, document, reading.get(document as usize))?;
            let key = self.other_keys.has(document).then(|| &*self.keys[document as usize]);
            block.push(self.form(document), line, key);
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

    /// Whether there are pages in HTML, whose lines have the markup and not the text that is compared.
    pub(super) fn has_pages(&self) -> bool {
        self.documents().any(|document| matches!(self.form(document), Form::Html))
    }

    /// What the line of a document is.
    pub(super) fn form(&self, document: u32) -> Form {
        self.lines.form(document as usize)
    }

    /// The documents that are no history, in the order of the input.
    pub(super) fn documents(&self) -> Range<u32> {
        self.history..self.keys.len() as u32
    }

    /// How many of these have the text of an earlier one.
    pub(super) fn identical(&self) -> u64 {
        let groups = &self.grouped.groups;
        let firsts = groups.iter().filter(|group| group.members[0] >= self.history).count();
        (self.documents().len() - firsts) as u64
    }

    /// The group of the document with this key.
    pub(super) fn group_at(&self, key: Key<'_>) -> Option<u32> {
        let Key::Bytes(key) = key else { return None };
        self.by_key.get(key).map(|&document| self.grouped.group_of[document as usize])
    }

    /// The documents that are no history, by their keys.
    pub(super) fn documents_by_key(&self) -> Vec<u32> {
        let mut documents: Vec<u32> = self.documents().collect();
        documents.sort_unstable_by(|&a, &b| self.keys[a as usize].cmp(&self.keys[b as usize]));
        documents
    }
}

/// A bit for each document.
#[derive(Default)]
struct OtherKeys {
    bits: Vec<u64>,
    documents: u32,
}

impl OtherKeys {
    fn push(&mut self, is_other: bool) {
        let (word, bit) = (self.documents / 64, self.documents % 64);
        if bit == 0 {
            self.bits.push(0);
        }
        self.bits[word as usize] |= u64::from(is_other) << bit;
        self.documents += 1;
    }

    fn has(&self, document: u32) -> bool {
        self.bits[document as usize / 64] >> (document % 64) & 1 == 1
    }
}

/// A line that was asked for, of the document with this number.
fn found<L>(places: &[Place], document: u32, line: io::Result<Option<L>>) -> anyhow::Result<L> {
    let place = &places[document as usize];
    match line {
        Ok(Some(line)) => Ok(line),
        Ok(None) => {
            bail!("{place}: changed since it was read; run again when nothing writes to the input")
        }
        Err(error) => Err(error).with_context(|| format!("{place}: cannot be read again")),
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
