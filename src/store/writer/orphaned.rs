//! Finds the leader of a new document among the [orphans](crate::store::orphans), and removes marks.

use std::collections::HashSet;
use std::sync::Arc;

use twindex_sketch::{Code, MinHasher, Resemblance, features};
use xxhash_rust::xxh3::xxh3_128;

use super::smallest::Content;
use super::{Comparison, SetOf, Writer};
use crate::error::Result;
use crate::format::attached::Attached;
use crate::format::fields::{self, Fields};
use crate::format::prefixes::Marks;
use crate::key::{Key, KeyBuf};
use crate::segment::records::Kept;
use crate::store::groups::Neighbourhood;
use crate::store::known_leaders::DocRef;
use crate::store::orphans::{MarkedDocument, MarkedNeighbours, nearest_leader};
use crate::store::query::{FoundDocument, Hit, Query};
use crate::store::record::Record;

impl Writer {
    /// Returns the orphan that is the leader of a new document; `None` if there is none. `known` is the key of the document
    /// if it replaces a marked one.
    pub(super) fn nearest_orphan(
        &mut self,
        (kept, set): (Option<Kept<'_>>, &[u64]),
        known: Option<Key<'_>>,
        comparison: Comparison<'_>,
    ) -> Result<Option<Hit>> {
        let Comparison { counted, value } = comparison;
        let (mine, set_of) = counted.unzip();
        let state = self.now();
        let query = self.relation(Arc::clone(&state), kept, if mine.is_some() { &[] } else { set });
        let query = query.marks(Marks::Marked).value(value);
        let mut query = if mine.is_some() { query.unverified() } else { query };
        query.check()?;
        let near = self.options.near_or(&self.params);
        let unverified = self.options.unverified || mine.is_some();
        let around = Neighbourhood::by_relation(state, near, unverified, self.options.estimated);
        let replaced = known.map(|key| around.find(key)).transpose()?.flatten();
        let mut stored =
            StoredNeighbours { around, replaced, value, set_of, set: Vec::new(), bytes: Vec::new() };
        let mut found = stored.near(&query, mine.unwrap_or_default())?;
        found.sort_by(|a, b| a.0.by_nearness(&b.0));
        let (mut candidates, mut contents) = (Vec::new(), HashSet::new());
        for equally_near in found.chunk_by(|a, b| a.0.by_nearness(&b.0).is_eq()) {
            let mut distinct = Vec::new();
            for &(_, document) in equally_near {
                let content = stored.content(document)?;
                if contents.insert(content) {
                    distinct.push(stored.marked_document(document, content)?);
                }
            }
            candidates.push(distinct);
        }
        let Some(leader) = nearest_leader(candidates, &mut stored)? else { return Ok(None) };
        let mut hit = query.hit_of(leader.as_key())?;
        if let (Some(hit), Some(mine)) = (&mut hit, mine) {
            stored.read_set(&leader)?;
            hit.resemblance = Some(Resemblance::of_sets(mine, &stored.set));
        }
        Ok(hit)
    }

    /// Removes the mark of a document. Its value, stamp, priority and content stay, and so does the time. Returns false
    /// if there is no such document, or if it is not marked.
    ///
    /// [`admit`](Self::admit) does this itself. It is for callers that decide by another relation which documents are
    /// near.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).marks().build()?)?;
    /// let mut writer = index.writer()?;
    /// writer.admit("a", Fingerprint(7))?;
    /// writer.admit("b", Fingerprint(6))?;
    /// assert!(writer.get("b")?.unwrap().is_duplicate);
    /// assert!(writer.unmark("b")? && !writer.unmark("b")?);
    /// assert!(!writer.get("b")?.unwrap().is_duplicate);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`put`](Self::put) and [`contains`](Self::contains).
    pub fn unmark<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<bool> {
        let key = key.into();
        let Some(record) = self.get(key)?.filter(|record| record.is_duplicate) else { return Ok(false) };
        self.check_process_of_batch()?;
        let features = self.features_of(key, &record)?;
        let kept = (record.fingerprint.is_some() || features.is_some()).then(|| Kept {
            fingerprint: record.fingerprint.map_or(0, |fingerprint| fingerprint.0),
            features: features.as_deref().unwrap_or_default(),
            signature: &record.signature,
            bottom: &record.bottom,
            modular: &record.modular,
        });
        let mut fields = Vec::new();
        let words = record.code.as_ref().map_or(&record.set[..], Code::words);
        fields::encode(&self.params, false, words, record.priority, &mut fields);
        if let Some(content) = Content::of(&self.options, &self.params, kept, words) {
            self.smallest.put(&content, key);
        }
        let value = record.value.as_deref().unwrap_or_default();
        self.push(key, kept, Attached { value, stamp: record.stamp, fields: Fields::of(&fields) }, false)?;
        Ok(true)
    }

    /// Returns the stored bits of the features of a live document; `None` if it has no features.
    fn features_of(&mut self, key: Key<'_>, record: &Record) -> Result<Option<Vec<u64>>> {
        let Some(minhash) = self.params.minhash else { return Ok(None) };
        let state = self.now();
        for part in state.parts() {
            let Some(ordinal) = part.find(key)? else { continue };
            // A segment finds features that are known. They follow from the set, unless the minima are weighted.
            let (mut minima, mut expected) = (Vec::new(), Vec::new());
            MinHasher::of(minhash.family, minhash.minima()).signature(&record.set, &mut minima);
            features(&minima, minhash.rows.into(), &mut Vec::new(), &mut expected);
            let found = part.stored_features(ordinal, &expected)?;
            part.check_map()?;
            return Ok(found);
        }
        Ok(None)
    }
}

/// The near relation of the stored documents of a writer.
struct StoredNeighbours<'n, 'r> {
    around: Neighbourhood,
    /// The document that the new one replaces.
    replaced: Option<DocRef>,
    value: Option<&'n [u8]>,
    set_of: Option<&'n mut SetOf<'r>>,
    /// The set of a document, if the caller supplies sets.
    set: Vec<u64>,
    /// A buffer for the content of a document.
    bytes: Vec<u8>,
}

impl StoredNeighbours<'_, '_> {
    /// Returns the documents that a query finds. `mine` is the set of its document, if the caller supplies sets.
    fn near(&mut self, query: &Query, mine: &[u64]) -> Result<Vec<(FoundDocument, DocRef)>> {
        let replaced = self.replaced;
        let mut all = Vec::new();
        self.around.for_each_part(|part, documents| {
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
    fn read_set(&mut self, key: &KeyBuf) -> Result<()> {
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
        let query = self.around.query_of(document)?.marks(marks).value(self.value);
        self.read_set(of)?;
        let mine = std::mem::take(&mut self.set);
        self.near(&query, &mine)
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
