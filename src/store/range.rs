//! Iterates over keys in order, between two bounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::sync::Arc;

use super::state::State;
use crate::error::{Error, Result};
use crate::key::{Key, KeyBuf};
use crate::params::KeyKind;

/// Iterator over the keys of live documents in a range, ascending. Returned by [`Snapshot::range`](crate::Snapshot::range),
/// [`Snapshot::prefix`](crate::Snapshot::prefix) and [`Snapshot::keys`](crate::Snapshot::keys).
///
/// Keys of segments are read lazily. Keys of the memtable are collected when the iterator is created. After an error,
/// the iterator returns no more keys.
#[derive(Debug)]
pub struct Keys {
    state: Arc<State>,
    cursors: Vec<Cursor>,
    /// The next key of each cursor that is not exhausted.
    heads: BinaryHeap<Reverse<(KeyBuf, usize)>>,
    failed: Option<Error>,
}

/// A source of keys: the remaining keys of a segment, or the keys of the memtables.
#[derive(Debug)]
enum Cursor {
    Segment { place: usize, next: u32, end: u32 },
    Memory(std::vec::IntoIter<KeyBuf>),
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
        let mut keys = Self { state, cursors, heads: BinaryHeap::new(), failed: None };
        for of in 0..keys.cursors.len() {
            keys.advance(of)?;
        }
        Ok(keys)
    }

    fn advance(&mut self, of: usize) -> Result<()> {
        let key = match &mut self.cursors[of] {
            Cursor::Memory(keys) => keys.next(),
            Cursor::Segment { place, next, end } => {
                let (segment, deleted) =
                    (&self.state.view.segments[*place], &self.state.view.deleted[*place]);
                while *next < *end && deleted.contains(*next) {
                    *next += 1;
                }
                if *next < *end {
                    let key = segment.key(*next)?;
                    segment.check_map()?;
                    *next += 1;
                    Some(key)
                } else {
                    None
                }
            }
        };
        self.heads.extend(key.map(|key| Reverse((key, of))));
        Ok(())
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
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let Reverse((key, of)) = self.heads.pop()?;
        // Returns the key that was read ahead. If reading the next key fails, the next call returns the error.
        self.failed = self.advance(of).err();
        Some(Ok(key))
    }
}
