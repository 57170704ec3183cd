//! Queries through a writer, which include the uncommitted batch.
use std::sync::Arc;

use super::{Admitted, Writer};
use crate::error::{Error, Result};
use crate::key::{Key, KeyBuf};
use crate::params::KeyKind;
use crate::store::document::Document;
use crate::store::groups::{Decision, Group, Leader, Membership};
use crate::store::query::Hit;
use crate::store::range::{self, Keys};
use crate::store::record::Record;
use crate::store::snapshot::Snapshot;

impl Writer {
    /// Returns the stored record of the document with this key, in the batch or committed; `None` if there is none.
    ///
    /// # Errors
    /// Same as [`contains`](Self::contains).
    pub fn get<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Record>> {
        let key = key.into();
        key.check(self.params.key)?;
        self.make_searchable()?;
        Record::find(&self.now(), key)
    }

    /// Returns the documents near `document` by the rule of [`admit`](Self::admit) (see
    /// [`WriterOptions::near`](super::WriterOptions::near)), nearest first: at most `limit` documents, committed or in
    /// the batch. A document with the same key is included.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(2).simhash(3).values().build()?;
    /// let index = Index::open_or_create(dir.path().join("x"), params)?;
    /// let sketcher = index.sketcher()?;
    /// let mut writer = index.writer()?;
    /// let rose = sketcher.sketch("a rose is a rose is a rose")?;
    /// writer.put("a", twindex::Document::from(&rose).with_value(b"the first"))?;
    /// let near = writer.near(&rose, 1)?;
    /// let record = writer.get(&near[0].key)?.unwrap();
    /// assert_eq!(record.value.unwrap(), b"the first");
    /// assert_eq!(index.snapshot().documents(), 0, "it is not committed");
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`admit`](Self::admit).
    pub fn near<'d>(&mut self, document: impl Into<Document<'d>>, limit: usize) -> Result<Vec<Hit>> {
        let document = document.into();
        self.make_searchable()?;
        self.with_kept(&document, |writer, kept, (_, set)| {
            if let Some(kept) = kept {
                writer.records.check_shape(kept)?;
            } else if set.is_empty() {
                return Ok(Vec::new());
            }
            Ok(writer.admit_query(kept, set).limit(limit).run()?.hits)
        })
    }

    /// Returns the leader of a document, with the changes of the batch applied. The result is the one that
    /// [`Snapshot::leader`] returns after a commit: the stamps of the batch advance the time before the lookup, as in
    /// [`admit`](Self::admit).
    ///
    /// # Errors
    /// Same as [`contains`](Self::contains) and [`Snapshot::leader`].
    pub fn leader<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        max_queries: u64,
    ) -> Result<Option<Decision<Leader>>> {
        self.make_searchable()?;
        Snapshot::new(self.now()).leader(key, max_queries)
    }

    /// Like [`admit`](Self::admit), but also returns the leader and the size of the document's group, with the changes
    /// of the batch applied. The result is the one that [`Snapshot::membership`] returns after a commit; `None` for a
    /// duplicate that was dropped.
    ///
    /// ```
    /// use twindex::{Admitted, GROUP_QUESTIONS, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(2).simhash(3).priorities().build()?;
    /// let index = Index::create(dir.path().join("x"), params)?;
    /// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
    /// let mut writer = index.writer()?;
    /// writer.put("first", twindex::Document::from(&sketch).with_priority(1))?;
    /// let (admitted, membership) = writer.admit_grouped("copy", &sketch, GROUP_QUESTIONS)?;
    /// let membership = membership.unwrap().decided().unwrap();
    /// assert!(matches!(admitted, Admitted::Duplicate(_)));
    /// assert_eq!((membership.leader.as_str(), membership.size), (Some("first"), 2));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`admit`](Self::admit) and [`leader`](Self::leader).
    pub fn admit_grouped<'k, 'd>(
        &mut self,
        key: impl Into<Key<'k>>,
        document: impl Into<Document<'d>>,
        max_queries: u64,
    ) -> Result<(Admitted, Option<Decision<Membership>>)> {
        let key = key.into();
        let admitted = self.admit(key, document)?;
        self.make_searchable()?;
        let membership = Snapshot::new(self.now()).membership(key, max_queries)?;
        Ok((admitted, membership))
    }

    /// Returns the group of a document, including the changes of the batch. The result is the same as the result of
    /// [`Snapshot::group`] after a commit.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader).
    pub fn group<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        max_queries: u64,
    ) -> Result<Option<Decision<Group>>> {
        self.make_searchable()?;
        Snapshot::new(self.now()).group(key, max_queries)
    }

    /// Returns the number of documents in a document's group, including the changes of the batch. The result is the same as
    /// the result of [`Snapshot::group_size`] after a commit.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader).
    pub fn group_size<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        max_queries: u64,
    ) -> Result<Option<Decision<u64>>> {
        self.make_searchable()?;
        Snapshot::new(self.now()).group_size(key, max_queries)
    }

    /// Removes all documents whose keys begin with `prefix`, in the batch and committed, and returns their number. An
    /// empty prefix removes all documents.
    ///
    /// Time and memory are proportional to the number of keys removed.
    ///
    /// # Errors
    /// Same as [`delete`](Self::delete); [`Error::Invalid`] if the keys of the index are numbers.
    pub fn delete_prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<u64> {
        if self.params.key != KeyKind::Bytes {
            return Err(Error::Invalid("keys of this index are numbers, which have no prefixes".into()));
        }
        self.check_sound()?;
        self.check_process_of_batch()?;
        self.make_searchable()?;
        let (from, to) = range::of_prefix(prefix.as_ref());
        let state = self.now();
        let keys: Vec<KeyBuf> = Keys::new(Arc::clone(&state), &from, &to)?.collect::<Result<_>>()?;
        let ordinals = range::of_segments(&state, &from, &to)?;
        drop(state);
        if keys.is_empty() {
            return Ok(0);
        }
        self.guarded(|writer| {
            for (deleted, (start, end)) in writer.view.deleted.iter_mut().zip(ordinals) {
                if start < end {
                    Arc::make_mut(deleted).insert_range(start..end);
                }
            }
            for key in keys.iter().map(KeyBuf::as_key) {
                if let Some(frozen) = &mut writer.view.frozen {
                    frozen.forget(key);
                }
                writer.view.table.write().delete(key)?;
                writer.batch.delete(key);
            }
            writer.view.count();
            Ok(())
        })?;
        self.flush_if_full()?; // only after all deletes: a flush before them could write documents that are to be deleted
        Ok(keys.len() as u64)
    }
}
