//! The near relation of stored documents, by which orphans are decided. See [`orphans`](super::orphans).

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_128;

use super::groups::Neighbourhood;
use super::known_leaders::DocRef;
use super::orphans::{MarkedDocument, MarkedNeighbours, nearest_leaders};
use super::part::IndexPart;
use super::query::{FoundDocument, Query};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::format::prefixes::Marks;
use crate::key::KeyBuf;

/// Replaces the contents of its last argument with the set of the document that has the given key.
pub(super) type SetOf<'s> = dyn FnMut(&KeyBuf, &mut Vec<u64>) -> Result<()> + 's;

/// The near relation of stored documents.
pub(super) struct StoredNeighbours<'n, 'r> {
    pub(super) around: Neighbourhood,
    /// The document that the new one replaces.
    pub(super) replaced: Option<DocRef>,
    /// The value that documents must have; `None` if they may have any value.
    pub(super) value: Option<&'n [u8]>,
    /// Returns the set of a document, if the caller supplies sets.
    pub(super) set_of: Option<&'n mut SetOf<'r>>,
    pub(super) cancel: Cancel,
    /// The set of a document, if the caller supplies sets.
    pub(super) set: Vec<u64>,
    /// A buffer for the content of a document.
    pub(super) bytes: Vec<u8>,
}

impl StoredNeighbours<'_, '_> {
    /// Returns the leaders among the orphans that a query for marked documents finds: the nearest first, and all that are as
    /// near as the last of the first `enough`. `mine` is the set of the query's document, if the caller supplies sets.
    /// `has_none` returns whether a part is known to have no document that the query finds.
    pub(super) fn leaders(
        &mut self,
        query: &Query,
        (mine, enough): (&[u64], usize),
        has_none: impl Fn(&IndexPart<'_>) -> bool,
    ) -> Result<Vec<KeyBuf>> {
        let mut found = self.near(query, mine, has_none)?;
        found.sort_by(|a, b| a.0.by_nearness(&b.0));
        let (mut candidates, mut contents) = (Vec::new(), HashSet::new());
        for equally_near in found.chunk_by(|a, b| a.0.by_nearness(&b.0).is_eq()) {
            let mut distinct = Vec::new();
            for &(_, document) in equally_near {
                let content = self.content(document)?;
                if contents.insert(content) {
                    distinct.push(self.marked_document(document, content)?);
                }
            }
            candidates.push(distinct);
        }
        nearest_leaders(candidates, enough, self)
    }

    /// Returns the documents that a query finds. `mine` is the set of its document, if the caller supplies sets.
    fn near(
        &mut self,
        query: &Query,
        mine: &[u64],
        has_none: impl Fn(&IndexPart<'_>) -> bool,
    ) -> Result<Vec<(FoundDocument, DocRef)>> {
        self.cancel.check()?;
        let replaced = self.replaced;
        let mut all = Vec::new();
        self.around.for_each_part(|part, documents| {
            if has_none(documents) {
                return Ok(());
            }
            let mut is_wanted = |ordinal| Ok(Some(DocRef { part, ordinal }) != replaced);
            let found = query.find_among(documents, &mut is_wanted)?;
            all.extend(found.into_iter().map(|found| {
                let ordinal = found.ordinal;
                (found, DocRef { part, ordinal })
            }));
            Ok(())
        })?;
        if self.set_of.is_none() {
            return Ok(all);
        }
        let mut near = Vec::new();
        for (found, document) in all {
            let key = self.around.key(document)?;
            self.read_set(&key)?;
            near.extend(query.counted(found, mine, &self.set).map(|found| (found, document)));
        }
        Ok(near)
    }

    /// Reads the set of a document from the caller.
    pub(super) fn read_set(&mut self, key: &KeyBuf) -> Result<()> {
        self.set.clear();
        self.set_of.as_mut().map_or(Ok(()), |set_of| set_of(key, &mut self.set))
    }

    /// Returns a hash of the data that decides which documents are near this one.
    fn content(&mut self, document: DocRef) -> Result<u128> {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.around.content(document, &mut bytes)?;
        if self.set_of.is_some() {
            let key = self.around.key(document)?;
            self.read_set(&key)?;
            bytes.extend(self.set.iter().flat_map(|hash| hash.to_le_bytes()));
        }
        let content = xxh3_128(&bytes);
        self.bytes = bytes;
        Ok(content)
    }

    fn marked_document(&self, document: DocRef, content: u128) -> Result<MarkedDocument> {
        let (key, priority) =
            self.around.read(document, |part, ordinal| Ok((part.key(ordinal)?, part.priority(ordinal)?)))?;
        Ok(MarkedDocument { key, priority, content })
    }

    /// Returns the documents with these marks near a document.
    fn near_stored(&mut self, of: &KeyBuf, marks: Marks) -> Result<Vec<(FoundDocument, DocRef)>> {
        let Some(document) = self.around.find(of.as_key())? else { return Ok(Vec::new()) };
        let query = self.around.query_of(document)?.marks(marks).inside(self.value);
        self.read_set(of)?;
        let mine = std::mem::take(&mut self.set);
        self.near(&query, &mine, |_| false)
    }
}

impl MarkedNeighbours for StoredNeighbours<'_, '_> {
    fn has_leader(&mut self, of: &KeyBuf) -> Result<bool> {
        Ok(!self.near_stored(of, Marks::Unmarked)?.is_empty())
    }

    fn marked(&mut self, of: &KeyBuf) -> Result<Vec<MarkedDocument>> {
        let near = self.near_stored(of, Marks::Marked)?;
        let marked = |(_, document)| {
            let content = self.content(document)?;
            self.marked_document(document, content)
        };
        near.into_iter().map(marked).collect()
    }
}
