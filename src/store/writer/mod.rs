//! The writer of an index: put, delete, admit, commit.
//!
//! A small batch becomes a record of the log and rows of the memtable. A full memtable becomes a segment. A batch
//! larger than a memtable is collected and written directly as segments, without a log.
//!
//! This file contains the batch and its operations. `flush` builds segments from a batch, `commits` makes a batch visible
//! and durable, and `merges` keeps the number of segments small.

mod commits;
mod flush;
mod held;
mod ingest;
mod lookahead;
mod merges;
mod options;
mod orphaned;
mod reads;
mod rollback;
mod smallest;
mod states;
mod sweeping;

use std::cell::Cell;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use twindex_sketch::Fingerprint;

pub use self::lookahead::Lookahead;
pub use self::options::{Durability, WriterOptions};
use self::smallest::{Content, SmallestKeys};
use self::states::{DirectoryName, Life, NextGeneration, PendingSync, Pointer, Route};
use self::sweeping::Sweeping;
use super::document::Document;
use super::history::{History, current_stamp};
use super::log::OpenLog;
use super::merging::Merging;
use super::nearest::nearest;
use super::part::IndexPart;
use super::query::{Answers, Hit, Omitted, Query};
use super::shared::SharedIndex;
use super::state::{LiveView, State};
use super::{names, recovery};
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::fields::Fields;
use crate::format::log::LogBatch;
use crate::format::manifest::Manifest;
use crate::format::prefixes::Marks;
use crate::key::{Key, KeyBuf};
use crate::params::Params;
use crate::segment::SearchScratch;
use crate::segment::records::{Kept, Records};
use crate::segment::rows::Rows;
use crate::store::marked::SetOf;
use crate::sys::fork;
use crate::sys::vfs::{FileStamp, HeldLock, LockFailure};

/// The result of [`Writer::admit`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admitted {
    /// No document is near the new one; it was added.
    New,
    /// A document with this key existed, and no other document is near the new one. The new one replaced it.
    Updated,
    /// A document with this key existed, and the new document is near a document with another key. Example: the new
    /// version of a page is a copy of another page. The new document replaced the old one and, if marks are stored, is
    /// marked as a duplicate.
    Known {
        /// The nearest document of another key.
        near: Hit,
    },
    /// A document near the new one exists; the hit is the nearest. The new document was added, unless the writer drops
    /// duplicates ([`WriterOptions::drop_duplicates`]).
    Duplicate(Hit),
    /// The stamp of the new document is too old. It was not added, and an existing document with this key is unchanged.
    Expired,
}

/// How `admit` compares documents, besides the options of the writer.
#[derive(Default)]
struct Comparison<'r> {
    /// The set of the new document and the sets of stored ones, if the caller supplies them.
    counted: Option<(&'r [u64], &'r mut SetOf<'r>)>,
    /// The value that a near document must have; `None` for any value.
    value: Option<&'r [u8]>,
    /// What was found before.
    ahead: Option<&'r Lookahead>,
}

/// The writer of an index; an index has at most one at a time. The current batch is invisible until
/// [`commit`](Writer::commit), and is lost if the writer is dropped before or [rolled back](Writer::rollback).
#[derive(Debug)]
pub struct Writer {
    shared: Arc<SharedIndex>,
    lock: Box<dyn HeldLock>,
    /// The stamp of the file `CURRENT` that names the published generation.
    current: Cell<Option<FileStamp>>,
    /// The id of the process that opened this writer. A forked child has a copy of the writer and must not use it.
    process: u32,
    /// The value of [`fork::generation`] when the writer was opened.
    forks: u32,
    params: Params,
    sketch_digest: u128,
    options: WriterOptions,
    /// The number of memtable rows at the last check of the memtable's size.
    checked_at: u32,
    route: Route,
    /// Records of a batch that is written directly as segments, without the log and the memtable.
    records: Records,
    /// Records of the batch that precede `records`, in a scratch file. Used if the batch is to become a single segment.
    rows: Option<Rows>,
    /// The live documents, including the documents of the batch.
    view: LiveView,
    /// The operations of the batch, in the form in which the log stores them. Their rows are already in the memtable.
    batch: LogBatch,
    /// The log of this writer; `None` until one is needed.
    log: Option<OpenLog>,
    /// The log before `log`, until all its rows are in a published segment.
    retired: Option<OpenLog>,
    /// The next generation: the published one, plus the segments that this batch has written. Its entries get the
    /// deleted documents of `view` when it is published.
    next: Manifest,
    coming: NextGeneration,
    /// Numbers of the segments written since the last commit.
    written: Vec<u64>,
    merging: Option<Merging>,
    /// The running flush of the frozen memtable; `None` if none is running.
    flushing: Option<Merging>,
    merge_failure: Option<Error>,
    /// The thread that removes unneeded files; `None` if none was started.
    sweeping: Option<Sweeping>,
    life: Life,
    owed: PendingSync,
    pointer: Pointer,
    place: DirectoryName,
    packed: Vec<u8>,
    /// Buffers for the fields and the set of a document.
    fields: (Vec<u8>, Vec<u64>),
    /// The key of the document with the highest stamp among the documents of the batch that were dropped.
    dropped: Option<KeyBuf>,
    /// The results of earlier lookups of `admit`, for documents with equal content.
    smallest: SmallestKeys,
    scratch: SearchScratch,
}

impl Writer {
    pub(super) fn new(shared: &Arc<SharedIndex>, options: WriterOptions) -> Result<Self> {
        let shared = Arc::clone(shared);
        let lock_path = names::lock(&shared.dir);
        // guard: a writer goes on from what was committed before it had the lock
        // without it: shared.refresh()?;
        let lock = shared.vfs.lock(&lock_path).map_err(|failure| match failure {
            LockFailure::Held(holder) => Error::Locked {
                path: lock_path.clone(),
                holder: holder.map_or(String::new(), |process| format!(" (process {process})")),
            },
            LockFailure::Io(error) if error.kind() == ErrorKind::NotFound => Error::NotAnIndex {
                path: shared.dir.clone(),
                why: "the directory was moved or removed since the index was opened; open the index where it is now"
                    .into(),
            },
            LockFailure::Io(error) => Error::io("lock", &lock_path, error),
        })?;
        // Reads the commits that other writers made since the index was opened. While the writer is being created, no
        // other thread may refresh: it would remove new memtable rows as leftovers of a failed writer.
        // guard: nobody refreshes while a writer begins
        let refreshing = shared.refreshing.lock();
        let current = current_stamp(&*shared.vfs, &shared.dir)?; // before `CURRENT` is read, so that no later change is missed
        // guard: a writer goes on from what was committed before it had the lock
        shared.refresh_alone()?;
        let state = Arc::clone(&shared.published.read());
        // guard: an index with a read-only-compatible feature takes no writer
        if state.manifest.read_only_compatible != 0 {
            return Err(Error::Unsupported {
                path: shared.dir.clone(),
                field: "read-only-compatible feature set",
                found: format!("{:#x}", state.manifest.read_only_compatible),
                supported: "it, and writes only without; use a newer version".into(),
            });
        }
        recovery::sweep_leftovers(&*shared.vfs, &shared.dir, &state.manifest);
        let params = state.manifest.params.clone();
        options.check(&params)?;
        shared.writing.store(true, Ordering::Release);
        drop(refreshing);
        Ok(Self {
            lock,
            current: Cell::new(current),
            process: std::process::id(),
            forks: fork::generation(),
            sketch_digest: state.sketch_digest,
            options,
            checked_at: 0,
            route: Route::BySettings,
            records: Records::new(&params),
            rows: None,
            view: state.view.clone(),
            batch: LogBatch::default(),
            log: None,
            retired: None,
            params,
            next: Manifest::clone(&state.manifest),
            coming: NextGeneration::AsPublished,
            written: Vec::new(),
            merging: None,
            flushing: None,
            merge_failure: None,
            sweeping: None,
            life: Life::Sound,
            owed: PendingSync::Nothing,
            pointer: Pointer::MayBeLost,
            place: DirectoryName::Named,
            packed: Vec::new(),
            fields: Default::default(),
            dropped: None,
            smallest: SmallestKeys::default(),
            scratch: SearchScratch::default(),
            shared,
        })
    }

    /// Returns the options of this writer.
    pub fn options(&self) -> WriterOptions {
        self.options
    }

    /// Replaces the options of this writer for later calls. Documents that are already in the batch stay.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the index does not store the data that [`WriterOptions::near`] requires; the options are then
    /// unchanged.
    pub fn set_options(&mut self, options: WriterOptions) -> Result<()> {
        options.check(&self.params)?;
        if options.near_by(&self.params) != self.options.near_by(&self.params) {
            self.smallest.clear();
        }
        self.options = options;
        Ok(())
    }

    /// Declares that the directory has a temporary name until the index is complete. If the machine crashes before that, no
    /// index exists under the final name.
    pub(super) fn set_unnamed(&mut self) {
        self.place = DirectoryName::Unnamed;
    }

    /// Adds a document, or replaces the one with this key. An empty sketch is stored, but is near no document, except
    /// documents with the same bytes if the index stores sets. If the stamp of the document has already expired, the
    /// document with this key is removed, and the new one is not visible.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch made with other parameters; [`Error::Invalid`] or [`Error::Limit`] for a key,
    /// a value or a stamp that the index cannot store, and for a stamp [too far ahead](WriterOptions::max_jump);
    /// [`Error::Invalid`] for a fingerprint if the index stores more than fingerprints, or none; [`Error::Io`], after which
    /// the writer is poisoned.
    pub fn put<'k, 'd>(&mut self, key: impl Into<Key<'k>>, document: impl Into<Document<'d>>) -> Result<()> {
        let (key, document) = (key.into(), document.into());
        self.with_kept(&document, |writer, kept, (fields, set)| {
            let attached = Attached { fields: Fields::of(fields), ..document.attached() };
            if !writer.smallest.is_empty()
                && let Some(content) = Content::of(&writer.options, &writer.params, kept, set)
            {
                writer.smallest.put(&content, key);
            }
            writer.push(key, kept, attached, false)
        })
    }

    /// Adds fingerprints, each with its key, as calls of [`put`](Self::put) do, but faster if the index stores nothing else
    /// and commits write segments.
    ///
    /// # Errors
    /// Same as [`put`](Self::put); [`Error::Invalid`] if there is not a key for each fingerprint.
    pub fn put_fingerprints(&mut self, keys: &[u64], fingerprints: &[u64]) -> Result<()> {
        let (mut keys, mut rest) = (keys, fingerprints);
        if keys.len() != rest.len() {
            return Err(Error::Invalid(format!("{} keys of {} fingerprints", keys.len(), rest.len())));
        }
        if !self.collects() || !Rows::can_hold(&self.params) {
            return keys.iter().zip(rest).try_for_each(|(&key, &value)| self.put(key, Fingerprint(value)));
        }
        self.check_sound()?;
        self.check_process_of_batch()?;
        while !rest.is_empty() {
            // Fills the memory as single records would.
            let left = self.options.memory.saturating_sub(self.records.memory());
            let now = left.div_ceil(Rows::RECORD_BYTES).clamp(1, rest.len());
            self.records.extend(&keys[..now], &rest[..now])?;
            (keys, rest) = (&keys[now..], &rest[now..]);
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Looks up a document and adds it in one step. Returns the nearest document, if one is near according to the parameters
    /// of the index (as in [`Snapshot::near`](crate::Snapshot::near)) or according to [another rule](WriterOptions::near). Of
    /// equally near documents it returns the one with the smallest key. The lookup also finds earlier documents of the same
    /// batch, so the result is the same as if each document were committed separately.
    ///
    /// | the new document | its key is new | its key exists |
    /// |---|---|---|
    /// | is too old by its stamp | [`Expired`](Admitted::Expired): not added | `Expired`: not replaced |
    /// | is near no other document | [`New`](Admitted::New): added | [`Updated`](Admitted::Updated): replaced |
    /// | is near another document | [`Duplicate`](Admitted::Duplicate): added with a mark, or dropped | [`Known`](Admitted::Known): replaced, with a mark |
    ///
    /// A document is marked only if the index stores [marks](crate::params::ParamsBuilder::marks). Marked documents, an
    /// older version of the document itself, and expired documents are not considered near. The stamp of the document
    /// advances the time before the lookup, even if the document is dropped. Dropping a document does not refresh the
    /// document that it is near, which keeps its own stamp.
    ///
    /// A mark counts only while a live unmarked document is near. If the last one was replaced, deleted or has expired, the
    /// marked document is an *orphan*, and a new document near it can be its duplicate. In the order of
    /// [groups](crate::Snapshot::groups) (priority, hash of the key, key), an orphan is a leader if it is near no earlier
    /// orphan that is one. The new document duplicates the nearest such leader, which loses its mark in the same batch, even
    /// if the new document is dropped. A document that replaces an unmarked one and is near no other unmarked document
    /// stays unmarked.
    ///
    /// The time of a lookup does not grow with the number of documents that equal the new one, but it grows with the number
    /// of unmarked documents that are near it and differ: the nearest one is found only by comparing all of them. If no
    /// unmarked document is near, also the marked documents near it are read, and those near an orphan. If documents of
    /// segments are compared by estimates or shared bands, the first such lookup reads the bands of these segments, which
    /// then keep 4 bytes per document and band in memory.
    ///
    /// ```
    /// use twindex::{Admitted, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let index = Index::create(dir.path().join("x"), Params::builder().words(2).simhash(3).build()?)?;
    /// let sketcher = index.sketcher()?;
    /// let mut writer = index.writer()?;
    /// let rose = sketcher.sketch("a rose is a rose is a rose")?;
    /// assert_eq!(writer.admit("a", &rose)?, Admitted::New);
    /// match writer.admit("b", &sketcher.sketch("A rose is a rose is a rose!")?)? {
    ///     Admitted::Duplicate(of) => assert_eq!((of.key.to_string(), of.distance), ("a".into(), Some(0))),
    ///     other => panic!("{other:?}"),
    /// }
    /// let again = writer.admit("a", &rose)?; // and `b` is a copy of it that was added, without a mark
    /// assert!(matches!(again, Admitted::Known { near } if near.key.to_string() == "b"));
    /// assert_eq!(writer.admit("c", &sketcher.sketch("another text")?)?, Admitted::New);
    /// assert_eq!(writer.admit("c", &sketcher.sketch("some other text of c")?)?, Admitted::Updated);
    /// writer.commit()?;
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`put`](Self::put), and [`Error::Corrupt`]; [`Error::Invalid`] if duplicates are dropped or marked by
    /// resemblance and the index stores no sets to compute it exactly, unless [estimates decide](WriterOptions::estimated)
    /// or [sharing a band is enough](WriterOptions::unverified).
    pub fn admit<'k, 'd>(
        &mut self,
        key: impl Into<Key<'k>>,
        document: impl Into<Document<'d>>,
    ) -> Result<Admitted> {
        let (key, document) = (key.into(), document.into());
        self.admit_by(key, &document, Comparison::default())
    }

    /// Like [`admit`](Self::admit), but compares the document only with documents of the same value, in an index that
    /// stores [values](crate::params::ParamsBuilder::values).
    ///
    /// ```
    /// use twindex::{Admitted, Document, Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).values().build()?)?;
    /// let mut writer = index.writer()?;
    /// let document = |language| Document::from(Fingerprint(7)).with_value(language);
    /// assert_eq!(writer.admit_inside("a", document(b"en"))?, Admitted::New);
    /// assert_eq!(writer.admit_inside("b", document(b"de"))?, Admitted::New);
    /// assert!(matches!(writer.admit_inside("c", document(b"de"))?, Admitted::Duplicate(_)));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`admit`](Self::admit).
    pub fn admit_inside<'k, 'd>(
        &mut self,
        key: impl Into<Key<'k>>,
        document: impl Into<Document<'d>>,
    ) -> Result<Admitted> {
        let (key, document) = (key.into(), document.into());
        let value = Some(document.attached().value);
        self.admit_by(key, &document, Comparison { value, ..Comparison::default() })
    }

    /// Like [`admit`](Self::admit), in less time if `ahead` is a lookup of this document in a recent snapshot of the
    /// index, by the options of this writer. Several threads can look up documents for one writer. The result does not depend
    /// on `ahead`: segments that the snapshot lacks are searched, and so are those in which a document that was found has
    /// been deleted since.
    ///
    /// ```
    /// use twindex::{Admitted, Index, Lookahead, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().words(2).simhash(3).build()?)?;
    /// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", &sketch)?;
    /// writer.commit()?;
    /// writer.flush()?;
    /// let (snapshot, options) = (index.snapshot(), writer.options());
    /// let look_up = || Lookahead::new(&snapshot, &sketch, options);
    /// let ahead = std::thread::scope(|scope| scope.spawn(look_up).join().unwrap())?;
    /// assert!(matches!(writer.admit_ahead("b", &sketch, &ahead)?, Admitted::Duplicate(_)));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`admit`](Self::admit).
    pub fn admit_ahead<'k, 'd>(
        &mut self,
        key: impl Into<Key<'k>>,
        document: impl Into<Document<'d>>,
        ahead: &Lookahead,
    ) -> Result<Admitted> {
        let (key, document) = (key.into(), document.into());
        self.admit_by(key, &document, Comparison { ahead: Some(ahead), ..Comparison::default() })
    }

    /// Like [`admit`](Self::admit), for an index without sets: the caller supplies the sets of documents, as in
    /// [`Query::run_counting`].
    ///
    /// # Errors
    /// Same as [`Query::run_counting`] and [`admit`](Self::admit).
    pub fn admit_counting<'k, 'd>(
        &mut self,
        key: impl Into<Key<'k>>,
        document: impl Into<Document<'d>>,
        mine: &[u64],
        mut set_of: impl FnMut(&KeyBuf, &mut Vec<u64>) -> Result<()>,
    ) -> Result<Admitted> {
        let (key, document) = (key.into(), document.into());
        let counted: Option<(&[u64], &mut SetOf<'_>)> = Some((mine, &mut set_of));
        self.admit_by(key, &document, Comparison { counted, ..Comparison::default() })
    }

    fn admit_by(
        &mut self,
        key: Key<'_>,
        document: &Document<'_>,
        mut comparison: Comparison<'_>,
    ) -> Result<Admitted> {
        self.with_kept(document, |writer, kept, (fields, set)| {
            let attached = Attached { fields: Fields::of(fields), ..document.attached() };
            writer.check_attached(attached)?;
            kept.map_or(Ok(()), |kept| writer.records.check_shape(kept))?;
            writer.check_process_of_batch()?;
            writer.make_searchable()?;
            writer.guarded(|writer| writer.view.looked_up_at(attached.stamp))?;
            if writer.view.is_expired(attached.stamp) {
                return Ok(Admitted::Expired);
            }
            let known = writer.contains(key)?.then_some(key);
            let of = writer.options.near_by(&writer.params);
            comparison.ahead = comparison.ahead.filter(|ahead| ahead.is_of(kept, set, of));
            let (mut near, may_have_orphan) = writer.nearest((kept, set), known, &mut comparison)?;
            if near.is_none() && may_have_orphan && !writer.has_unmarked(key)? {
                near = writer.nearest_orphan((kept, set), known, comparison)?;
                if let Some(orphan) = &near {
                    writer.unmark(&orphan.key)?;
                }
            }
            if near.is_some() && writer.params.marks {
                document.encode_fields(&writer.params, true, set, fields);
            }
            let is_dropped = near.is_some() && known.is_none() && writer.options.drop_duplicates;
            if is_dropped {
                if writer.view.unrecorded().is_some() {
                    writer.dropped = Some(key.to_buf());
                }
            } else {
                let attached = Attached { fields: Fields::of(fields), ..document.attached() };
                if near.is_some()
                    && !attached.fields.is_marked()
                    && let Some(content) = Content::of(&writer.options, &writer.params, kept, set)
                {
                    writer.smallest.admitted(&content, key);
                }
                writer.push(key, kept, attached, known.is_none())?;
            }
            Ok(match (known, near) {
                (None, None) => Admitted::New,
                (None, Some(hit)) => Admitted::Duplicate(hit),
                (Some(_), None) => Admitted::Updated,
                (Some(_), Some(near)) => Admitted::Known { near },
            })
        })
    }

    /// Calls `step` with the stored form of a document: the sketch data (`None` for a document without tokens), the
    /// encoded fields, and the set.
    fn with_kept<T>(
        &mut self,
        document: &Document<'_>,
        step: impl FnOnce(&mut Self, Option<Kept<'_>>, (&mut Vec<u8>, &[u64])) -> Result<T>,
    ) -> Result<T> {
        let (mut packed, (mut fields, mut set)) =
            (std::mem::take(&mut self.packed), std::mem::take(&mut self.fields));
        let kept = document.kept(&self.params, self.sketch_digest, &mut packed);
        let done = kept.and_then(|kept| {
            document.fields_into(&self.params, &mut fields, &mut set)?;
            step(self, kept, (&mut fields, &set))
        });
        (self.packed, self.fields) = (packed, (fields, set));
        done
    }

    /// Returns the live unmarked document nearest to this one, and whether an orphan can be near if there is none. Includes
    /// documents of the batch; excludes the one with the key `known`. If sets are stored, a document without tokens is near
    /// documents with the same bytes.
    fn nearest(
        &mut self,
        (kept, set): (Option<Kept<'_>>, &[u64]),
        known: Option<Key<'_>>,
        comparison: &mut Comparison<'_>,
    ) -> Result<(Option<Hit>, bool)> {
        let first = |answers: Answers| {
            let other = answers.hits.into_iter().find(|hit| known != Some(hit.key.as_key()));
            (other, answers.may_omit_marked)
        };
        if let Some(kept) = kept {
            self.records.check_shape(kept)?;
        } else if set.is_empty() || comparison.counted.is_some() && self.params.codes.is_none() {
            return Ok((None, false));
        }
        let limit = if known.is_some() { 2 } else { 1 };
        if comparison.counted.is_some() || comparison.value.is_some() {
            self.smallest.clear(); // its keys are of documents that are near by the options alone
        }
        if let Some((mine, set_of)) = &mut comparison.counted {
            let query = self.options.query(self.now(), kept, &[]).marks(Marks::Unmarked).limit(limit);
            return Ok(first(query.run_counting(mine, set_of)?));
        }
        let samples = self.params.bottom > 0 || self.params.modulus > 0;
        let WriterOptions { unverified, estimated, drop_duplicates, .. } = self.options;
        let near = self.options.near_or(&self.params);
        let decides = drop_duplicates || self.params.marks;
        if near.threshold.is_some() && decides && !self.params.sets && !unverified && !estimated {
            return Err(Error::Invalid(
                "this index keeps no sets to count resemblance by, and `admit` drops or marks nothing on an estimate that \
                 was not asked for: make the index with ParamsBuilder::sets, ask with WriterOptions::estimated, or count with \
                 Writer::admit_counting"
                    .into(),
            ));
        }
        if comparison.value.is_some() {
            let query = self.admit_query(kept, set).inside(comparison.value).limit(limit);
            return Ok(first(query.run()?));
        }
        let content = Content::of(&self.options, &self.params, kept, set);
        let remembered = content.as_ref().and_then(|content| self.smallest.get(content));
        if let Some(key) = remembered.filter(|key| known != Some(key.as_key()))
            && let Some(hit) = self.admit_query(kept, set).hit_if_equal(key.as_key())?
        {
            return Ok((Some(hit), false));
        }
        let ((found, may_have_orphan), is_equal) = match (near.within, near.threshold, kept) {
            (Some(within), None, Some(kept))
                if !samples && !self.params.marks && known.is_none() && comparison.ahead.is_none() =>
            {
                let parts = self.view.parts(&self.params);
                let found = nearest(parts, kept.fingerprint, within.into(), &mut self.scratch)?;
                let is_equal = found.as_ref().is_some_and(|&(distance, _)| distance == 0);
                ((found.map(|(distance, key)| Hit::at_distance(key, distance)), false), is_equal)
            }
            _ => {
                let mut query = self.admit_query(kept, set).limit(limit);
                let known =
                    |part: &IndexPart<'_>, omitted: &mut Omitted| comparison.ahead?.find(part, omitted);
                let found = first(query.answers_with(known)?);
                let is_equal =
                    found.0.as_ref().is_some_and(|hit| query.is_equal(hit.distance, hit.resemblance));
                (found, is_equal)
            }
        };
        if let Some(content) = content {
            let key = found.as_ref().filter(|_| is_equal).map(|hit| hit.key.clone());
            self.smallest.searched(&content, key);
        }
        Ok((found, may_have_orphan))
    }

    /// Returns the query that [`admit`](Self::admit) runs for a document.
    fn admit_query(&self, kept: Option<Kept<'_>>, set: &[u64]) -> Query {
        self.options.query(self.now(), kept, set).marks(Marks::Unmarked)
    }

    /// Returns a state that includes the uncommitted batch.
    fn now(&self) -> Arc<State> {
        let manifest = Arc::clone(&self.shared.published.read().manifest);
        Arc::new(State::new(manifest, self.view.clone(), History::default(), self.sketch_digest))
    }

    /// Returns whether there is a live document with this key, in the batch or committed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the wrong kind (number or bytes), [`Error::Corrupt`]; [`Error::Io`] if collected
    /// documents cannot be written to a segment, after which the writer is poisoned.
    pub fn contains<'a>(&mut self, key: impl Into<Key<'a>>) -> Result<bool> {
        Ok(self.read(key.into(), |_, _| Ok(()))?.is_some())
    }

    /// Returns whether there is a live document with this key, and it is not marked.
    fn has_unmarked(&mut self, key: Key<'_>) -> Result<bool> {
        Ok(self.read(key, |part, ordinal| Ok(!part.is_marked(ordinal)?))?.unwrap_or(false))
    }

    /// Calls `read` with the part and the ordinal of the live document with this key, and returns its result; `None` if
    /// there is no such document.
    fn read<T>(
        &mut self,
        key: Key<'_>,
        read: impl FnOnce(&IndexPart<'_>, u32) -> Result<T>,
    ) -> Result<Option<T>> {
        key.check(self.params.key)?;
        self.make_searchable()?;
        for part in self.view.parts(&self.params) {
            let found = part.find(key)?;
            if let Some(ordinal) = found {
                let found = read(&part, ordinal)?;
                part.check_map()?;
                return Ok(Some(found));
            }
            part.check_map()?;
        }
        Ok(None)
    }

    /// Makes the whole batch visible to lookups. The stamps of the batch advance the time, as in a commit.
    fn make_searchable(&mut self) -> Result<()> {
        self.check_sound()?;
        self.route = Route::Memtable;
        self.guarded(|writer| writer.view.looked_up_at(None))?;
        if self.records.is_empty() && self.rows.is_none() {
            return Ok(());
        }
        self.guarded(|writer| {
            writer.flush_records()?; // collected records cannot be looked up
            writer.expire_written() // so that lookups do not find expired documents
        })
    }

    /// Removes the document with this key; does nothing if there is none.
    ///
    /// # Errors
    /// Same as [`put`](Self::put).
    pub fn delete<'a>(&mut self, key: impl Into<Key<'a>>) -> Result<()> {
        let key = key.into();
        self.check_sound()?;
        self.check_process_of_batch()?;
        if self.collects() {
            self.records.delete(key)?;
            return self.flush_if_full();
        }
        if self.contains(key)? {
            self.view.table.write().delete(key)?;
            self.batch.delete(key);
            self.guarded(|writer| writer.view.forget(key))?;
            self.view.count();
        }
        self.flush_if_full()
    }

    /// Returns whether records of this batch are collected, to be written as segments.
    fn collects(&self) -> bool {
        self.options.makes_segments() && self.route == Route::BySettings
            || !self.records.is_empty()
            || self.rows.is_some()
    }

    /// Returns an error if the index does not store the values, stamps or fields of a document, if a required one is
    /// missing, or if the stamp is too far ahead.
    fn check_attached(&self, attached: Attached<'_>) -> Result<()> {
        attached.check(&self.params)?;
        self.view.check_stamp(attached.stamp, self.options.max_jump_or(&self.params))
    }

    fn push(
        &mut self,
        key: Key<'_>,
        kept: Option<Kept<'_>>,
        attached: Attached<'_>,
        is_new: bool,
    ) -> Result<()> {
        self.check_sound()?;
        self.check_process_of_batch()?;
        self.check_attached(attached)?;
        if self.collects() {
            self.records.push_with(key, kept, attached)?;
            self.view.stamped(attached.stamp);
            return self.flush_if_full();
        }
        {
            self.view.table.put(key, kept, attached)?;
            self.view.count();
        }
        self.view.stamped(attached.stamp);
        self.batch.put(&self.params, key, kept, attached);
        if !is_new {
            self.guarded(|writer| writer.view.forget(key))?;
        }
        if self.view.is_expired(attached.stamp) {
            self.view.expire_rows()?;
        }
        self.flush_if_full()
    }

    fn check_sound(&self) -> Result<()> {
        match self.life {
            Life::Sound => Ok(()),
            Life::Failed | Life::InDoubt => Err(Error::Poisoned { path: self.shared.dir.clone() }),
        }
    }

    /// Runs a step that uses the disk. If it fails, the writer is poisoned.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_sound()?;
        let done = step(self).map_err(|error| self.explained(error));
        // guard: the first failure ends the writer
        if done.is_err() && self.life == Life::Sound {
            self.life = Life::Failed;
        }
        done
    }
}

/// Returns `number + 1`. An overflow is possible only with a forged manifest.
fn next_number(what: &'static str, number: u64) -> Result<u64> {
    number.checked_add(1).ok_or(Error::Limit { what, limit: u64::MAX, found: number })
}
