//! Finds the leader of a new document among the [orphans](crate::store::orphans), and removes marks.

use std::sync::Arc;

use twindex_sketch::{Code, MinHasher, Resemblance, features};

use super::smallest::Content;
use super::{Comparison, Writer};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::format::attached::Attached;
use crate::format::fields::{self, Fields};
use crate::format::prefixes::Marks;
use crate::key::Key;
use crate::segment::records::Kept;
use crate::store::groups::Neighbourhood;
use crate::store::marked::StoredNeighbours;
use crate::store::part::IndexPart;
use crate::store::query::Hit;
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
        let Comparison { counted, value, ahead } = comparison;
        let (mine, set_of) = counted.unzip();
        let state = self.now();
        let query = self.options.query(Arc::clone(&state), kept, if mine.is_some() { &[] } else { set });
        let query = query.marks(Marks::Marked).inside(value);
        let mut query = if mine.is_some() { query.unverified() } else { query };
        query.check()?;
        let near = self.options.near_or(&self.params);
        let unverified = self.options.unverified || mine.is_some();
        let around = Neighbourhood::by_relation(state, near, unverified, self.options.estimated);
        let replaced = known.map(|key| around.find(key)).transpose()?.flatten();
        let mut stored = StoredNeighbours {
            around,
            replaced,
            value,
            set_of,
            cancel: Cancel::default(),
            set: Vec::new(),
            bytes: Vec::new(),
        };
        let has_none = |part: &IndexPart<'_>| ahead.is_some_and(|ahead| ahead.has_none(part));
        let leaders = stored.leaders(&query, (mine.unwrap_or_default(), 1), has_none)?;
        let Some(leader) = leaders.into_iter().next() else { return Ok(None) };
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
