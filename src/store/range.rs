//! Iterates over keys and documents in order, between two bounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::sync::Arc;

use super::known_leaders::DocRef;
use super::record::Record;
use super::state::State;
use crate::error::{Error, Result};
use crate::key::{Key, KeyBuf};
use crate::params::KeyKind;

/// Iterator over the keys of live documents in a range, ascending, and descending from the end of the range. Returned by
/// [`Snapshot::range`](crate::Snapshot::range), [`Snapshot::prefix`](crate::Snapshot::prefix) and
/// [`Snapshot::keys`](crate::Snapshot::keys).
///
/// Keys of segments are read lazily. Keys of the memtable are collected when the iterator is created. After an error,
/// the iterator returns no more keys.
///
/// ```
/// use twindex::{Fingerprint, Index, Params};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let index = Index::create(dir.path().join("x"), Params::builder().u64_keys().simhash(3).build()?)?;
/// let mut writer = index.writer()?;
/// for key in 0..100_u64 {
///     writer.put(key, Fingerprint(key))?;
/// }
/// writer.commit()?;
/// // The last three keys below 50, and the first one from 50.
/// let snapshot = index.snapshot();
/// let before = snapshot.range(..50_u64)?.rev().take(3).collect::<twindex::Result<Vec<_>>>()?;
/// assert_eq!(before.iter().map(|key| key.as_u64()).collect::<Vec<_>>(), [Some(49), Some(48), Some(47)]);
/// assert_eq!(snapshot.range(50_u64..)?.next().transpose()?.unwrap().as_u64(), Some(50));
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct Keys {
    state: Arc<State>,
    cursors: Vec<Cursor>,
    /// The first remaining key of each cursor. A cursor whose keys were all returned from the end can still have an
    /// entry.
    heads: BinaryHeap<Reverse<(KeyBuf, usize)>>,
    /// The last remaining key of each cursor, as in `heads`; `None` until the first key from the end is requested.
    tails: Option<BinaryHeap<(KeyBuf, usize)>>,
    failed: Option<Error>,
}

/// The remaining documents of a segment, or those of the memtables.
#[derive(Debug)]
enum Cursor {
    Segment { place: usize, next: u32, end: u32 },
    Memory(std::vec::IntoIter<(KeyBuf, DocRef)>),
}

impl Cursor {
    /// Returns the key of the first document; `None` if there is none. Skips deleted documents.
    fn first(&mut self, state: &State) -> Result<Option<KeyBuf>> {
        match self {
            Self::Memory(keys) => Ok(keys.as_slice().first().map(|(key, _)| key.clone())),
            Self::Segment { place, next, end } => {
                let deleted = &state.view.deleted[*place];
                while *next < *end && deleted.contains(*next) {
                    *next += 1;
                }
                (*next < *end).then(|| key_of(state, *place, *next)).transpose()
            }
        }
    }

    /// Like [`first`](Self::first), for the last document.
    fn last(&mut self, state: &State) -> Result<Option<KeyBuf>> {
        match self {
            Self::Memory(keys) => Ok(keys.as_slice().last().map(|(key, _)| key.clone())),
            Self::Segment { place, next, end } => {
                let deleted = &state.view.deleted[*place];
                while *next < *end && deleted.contains(*end - 1) {
                    *end -= 1;
                }
                (*next < *end).then(|| key_of(state, *place, *end - 1)).transpose()
            }
        }
    }

    /// Removes the document whose key [`first`](Self::first) has returned; `None` if it was removed from the end.
    fn take_first(&mut self) -> Option<DocRef> {
        match self {
            Self::Memory(keys) => keys.next().map(|(_, document)| document),
            Self::Segment { place, next, end } => (*next < *end).then(|| {
                *next += 1;
                DocRef { part: *place as u32, ordinal: *next - 1 }
            }),
        }
    }

    /// Like [`take_first`](Self::take_first), for the key that [`last`](Self::last) has returned.
    fn take_last(&mut self) -> Option<DocRef> {
        match self {
            Self::Memory(keys) => keys.next_back().map(|(_, document)| document),
            Self::Segment { place, next, end } => (*next < *end).then(|| {
                *end -= 1;
                DocRef { part: *place as u32, ordinal: *end }
            }),
        }
    }
}

fn key_of(state: &State, place: usize, ordinal: u32) -> Result<KeyBuf> {
    let segment = &state.view.segments[place];
    let key = segment.key(ordinal)?;
    segment.check_map()?;
    Ok(key)
}

/// Returns the bounds of all keys that begin with `prefix`.
pub(super) fn of_prefix(prefix: &[u8]) -> (Bound<KeyBuf>, Bound<KeyBuf>) {
    let key = |bytes: &[u8]| KeyBuf::Bytes(bytes.into());
    // The exclusive upper bound is the prefix, cut after its last byte below 255, with that byte incremented. A prefix
    // of bytes 255 only has no upper bound.
    let end = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        key(&end)
    });
    (Bound::Included(key(prefix)), end.map_or(Bound::Unbounded, Bound::Excluded))
}

fn as_keys(bound: &Bound<KeyBuf>) -> Bound<Key<'_>> {
    bound.as_ref().map(KeyBuf::as_key)
}

fn check_kind(bound: &Bound<KeyBuf>, kind: KeyKind) -> Result<()> {
    match (bound, kind) {
        (Bound::Included(KeyBuf::U64(_)) | Bound::Excluded(KeyBuf::U64(_)), KeyKind::Bytes)
        | (Bound::Included(KeyBuf::Bytes(_)) | Bound::Excluded(KeyBuf::Bytes(_)), KeyKind::U64) => Err(
            Error::Invalid(format!("keys of this index are {kind}, and the bound of the range is another")),
        ),
        _ => Ok(()),
    }
}

impl Keys {
    /// Creates an iterator over the keys of live documents in `state` that are between `from` and `to`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for bounds of the wrong kind (numbers or bytes), [`Error::Corrupt`].
    pub(super) fn new(state: Arc<State>, from: &Bound<KeyBuf>, to: &Bound<KeyBuf>) -> Result<Self> {
        let kind = state.manifest.params.key;
        check_kind(from, kind)?;
        check_kind(to, kind)?;
        let mut cursors = Vec::new();
        for (place, (next, end)) in of_segments(&state, from, to)?.into_iter().enumerate() {
            if next < end {
                cursors.push(Cursor::Segment { place, next, end });
            }
        }
        let mut memory = state.view.logged_keys(as_keys(from), as_keys(to));
        memory.sort_unstable();
        cursors.push(Cursor::Memory(memory.into_iter()));
        let mut keys = Self { state, cursors, heads: BinaryHeap::new(), tails: None, failed: None };
        for of in 0..keys.cursors.len() {
            keys.read_head(of)?;
        }
        Ok(keys)
    }

    /// Returns the documents with their keys, in the same order. A record is read from the place where its key was
    /// found, without another lookup.
    ///
    /// ```
    /// use twindex::{Document, Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).values().build()?)?;
    /// let mut writer = index.writer()?;
    /// writer.put("a", Document::from(Fingerprint(1)).with_value(b"one"))?;
    /// writer.put("b", Document::from(Fingerprint(2)).with_value(b"two"))?;
    /// writer.commit()?;
    /// for document in index.snapshot().range("b"..)?.records() {
    ///     let (key, record) = document?;
    ///     assert_eq!((key.to_string(), record.value.unwrap()), ("b".to_owned(), b"two".to_vec()));
    /// }
    /// # Ok::<(), twindex::Error>(())
    /// ```
    #[must_use]
    pub fn records(self) -> impl DoubleEndedIterator<Item = Result<(KeyBuf, Record)>> {
        KeyedRecords { keys: self }
    }

    fn read_head(&mut self, of: usize) -> Result<()> {
        let key = self.cursors[of].first(&self.state)?;
        self.heads.extend(key.map(|key| Reverse((key, of))));
        Ok(())
    }

    fn read_tail(&mut self, of: usize) -> Result<()> {
        let key = self.cursors[of].last(&self.state)?;
        self.tails.get_or_insert_default().extend(key.map(|key| (key, of)));
        Ok(())
    }

    /// Removes all remaining keys. Returns the error after which no keys are returned.
    fn end(&mut self, error: Error) -> Error {
        self.cursors.clear();
        self.heads.clear();
        self.tails = Some(BinaryHeap::new());
        error
    }

    fn next_document(&mut self) -> Option<Result<(KeyBuf, DocRef)>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(self.end(error)));
        }
        loop {
            let Reverse((key, of)) = self.heads.pop()?;
            if let Some(document) = self.cursors[of].take_first() {
                // Returns the key that was read ahead. If reading the next key fails, the next call returns the error.
                self.failed = self.read_head(of).err();
                return Some(Ok((key, document)));
            }
        }
    }

    fn last_document(&mut self) -> Option<Result<(KeyBuf, DocRef)>> {
        if self.failed.is_none() && self.tails.is_none() {
            self.failed = (0..self.cursors.len()).try_for_each(|of| self.read_tail(of)).err();
        }
        if let Some(error) = self.failed.take() {
            return Some(Err(self.end(error)));
        }
        loop {
            let (key, of) = self.tails.as_mut()?.pop()?;
            if let Some(document) = self.cursors[of].take_last() {
                self.failed = self.read_tail(of).err();
                return Some(Ok((key, document)));
            }
        }
    }
}

/// Returns, for each segment, the range of ordinals whose keys are between these bounds. The ranges can contain deleted
/// documents.
pub(super) fn of_segments(
    state: &State,
    from: &Bound<KeyBuf>,
    to: &Bound<KeyBuf>,
) -> Result<Vec<(u32, u32)>> {
    let segments = state.view.segments.iter().map(|segment| {
        let start = match from {
            Bound::Unbounded => 0,
            Bound::Included(key) => segment.lower_bound(key.as_key(), false)?,
            Bound::Excluded(key) => segment.lower_bound(key.as_key(), true)?,
        };
        let end = match to {
            Bound::Unbounded => segment.documents() as u32,
            Bound::Included(key) => segment.lower_bound(key.as_key(), true)?,
            Bound::Excluded(key) => segment.lower_bound(key.as_key(), false)?,
        };
        segment.check_map()?;
        Ok((start, end))
    });
    segments.collect()
}

impl Iterator for Keys {
    type Item = Result<KeyBuf>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_document().map(|document| document.map(|(key, _)| key))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.last_document().map(|document| document.map(|(key, _)| key))
    }
}

/// The iterator that [`Keys::records`] returns.
struct KeyedRecords {
    keys: Keys,
}

impl KeyedRecords {
    fn read(&mut self, document: Result<(KeyBuf, DocRef)>) -> Result<(KeyBuf, Record)> {
        let (key, document) = document?;
        match Record::of(&self.keys.state, document) {
            Ok(record) => Ok((key, record)),
            Err(error) => Err(self.keys.end(error)),
        }
    }
}

impl Iterator for KeyedRecords {
    type Item = Result<(KeyBuf, Record)>;

    fn next(&mut self) -> Option<Self::Item> {
        let document = self.keys.next_document()?;
        Some(self.read(document))
    }
}

impl DoubleEndedIterator for KeyedRecords {
    fn next_back(&mut self) -> Option<Self::Item> {
        let document = self.keys.last_document()?;
        Some(self.read(document))
    }
}
