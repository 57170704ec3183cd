//! Maps keys to ordinals, and ordinals to keys.

use std::cmp::Ordering;

use roaring::RoaringBitmap;

use super::ahead::ReadNext;
use super::open::{Keys, Segment};
use crate::error::{Error, Result};
use crate::extsort::Source;
use crate::format::contents::Section;
use crate::format::keys::{self, GROUP};
use crate::format::wire::Fault;
use crate::key::{Key, KeyBuf};
use crate::sys::column::{Column, MemoryBudget};

/// Iterator over the keys and ordinals of a segment's live documents, in the order of keys.
#[derive(Debug)]
pub struct LiveKeys<'a> {
    segment: &'a Segment,
    deleted: Option<&'a RoaringBitmap>,
    next: u32,
}

impl<'a> LiveKeys<'a> {
    /// Creates an iterator over all keys except those of the documents in `deleted`.
    #[must_use]
    pub fn new(segment: &'a Segment, deleted: Option<&'a RoaringBitmap>) -> Self {
        Self { segment, deleted: deleted.filter(|deleted| !deleted.is_empty()), next: 0 }
    }
}

impl Source for LiveKeys<'_> {
    type Item = (KeyBuf, u32);

    fn advance(&mut self, head: &mut Option<Self::Item>) -> Result<()> {
        let documents = self.segment.documents() as u32;
        let is_live = |ordinal: &u32| self.deleted.is_none_or(|deleted| !deleted.contains(*ordinal));
        *head = match (self.next..documents).find(is_live) {
            Some(ordinal) => {
                self.next = ordinal + 1;
                Some((self.segment.key(ordinal)?, ordinal))
            }
            None => None,
        };
        Ok(())
    }
}

impl Segment {
    /// Returns the key of a document. O(1) for numeric keys; byte-string keys require decoding up to 16 keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn key(&self, ordinal: u32) -> Result<KeyBuf> {
        let ordinal = u64::from(ordinal);
        match &self.keys {
            Keys::Frame(section, frame) => {
                if ordinal >= section.rows {
                    let lie = Fault::new(0, format!("an ordinal below {}", section.rows), ordinal);
                    return Err(self.corrupt_at(section, lie));
                }
                let bytes = self.read(section, frame.range(ordinal))?;
                let key = frame.decode(ordinal, bytes).map_err(|e| self.corrupt_at(section, e))?;
                Ok(KeyBuf::U64(key))
            }
            Keys::Front(section) => {
                let mut found = None;
                self.group(section, ordinal / GROUP, |at, key| {
                    if at == ordinal {
                        found = Some(KeyBuf::Bytes(key.into()));
                    }
                    found.is_none()
                })?;
                found.ok_or_else(|| {
                    let lie = Fault::new(0, format!("an ordinal below {}", section.rows), ordinal);
                    self.corrupt_at(section, lie)
                })
            }
        }
    }

    /// Returns the first ordinal whose key is at least `key`, or above `key` if `after` is true; the number of
    /// documents if there is none. O(log n).
    ///
    /// # Errors
    /// Same as [`key`](Self::key).
    pub(crate) fn lower_bound(&self, key: Key<'_>, after: bool) -> Result<u32> {
        let (mut low, mut high) = (0, self.documents() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            let other = self.key(middle)?;
            if other.as_key() < key || after && other.as_key() == key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the ordinal of the document with this key, or `None` if the segment has no such document. O(log n).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the wrong kind,
    /// [`Error::Corrupt`].
    pub fn find(&self, key: Key<'_>) -> Result<Option<u32>> {
        key.check(self.params().key)?;
        if !self.spans(key) {
            return Ok(None);
        }
        match (&self.keys, key) {
            (Keys::Frame(..), Key::U64(key)) => {
                let (mut low, mut high) = (0, self.documents());
                while low < high {
                    let middle = low + (high - low) / 2;
                    match self.key(middle as u32)?.cmp(&KeyBuf::U64(key)) {
                        Ordering::Less => low = middle + 1,
                        Ordering::Greater => high = middle,
                        Ordering::Equal => return Ok(Some(middle as u32)),
                    }
                }
                Ok(None)
            }
            (Keys::Front(section), Key::Bytes(key)) => {
                // Find the last group whose first key is not above `key`.
                let (mut low, mut high) = (0, keys::groups(section.rows));
                while low < high {
                    let middle = low + (high - low) / 2;
                    if self.first_key(section, middle)? > key {
                        high = middle;
                    } else {
                        low = middle + 1;
                    }
                }
                let mut found = None;
                if let Some(group) = low.checked_sub(1) {
                    self.group(section, group, |ordinal, candidate| {
                        if candidate == key {
                            found = Some(ordinal as u32);
                        }
                        candidate < key
                    })?;
                }
                Ok(found)
            }
            _ => unreachable!("the kind of the key was checked above"),
        }
    }

    /// Returns false if the key is below the smallest or above the largest key of the segment. If new keys are larger
    /// than all old ones, as with timestamps, this test alone rejects most of them in every segment.
    fn spans(&self, key: Key<'_>) -> bool {
        let span = self.key_span.get().or_else(|| {
            // If the smallest or the largest key cannot be read, assumes that `key` is between them: a damaged key must
            // not hide others.
            let span = self.read_key_span().ok()?;
            Some(self.key_span.get_or_init(|| span))
        });
        span.is_none_or(|span| {
            span.as_ref().is_some_and(|(min, max)| min.as_key() <= key && key <= max.as_key())
        })
    }

    /// Reads the smallest and the largest key. `None` if there are no documents.
    fn read_key_span(&self) -> Result<Option<(KeyBuf, KeyBuf)>> {
        let Some(last) = self.documents().checked_sub(1) else { return Ok(None) };
        self.announce_documents(ReadNext { keys: 2, ..ReadNext::default() }, [0, last as u32].into_iter());
        let span = (self.key(0)?, self.key(last as u32)?);
        self.check_map()?;
        Ok(Some(span))
    }

    /// Calls `each` with the ordinal and the key of each document, in the order of keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also if keys do not ascend.
    pub fn for_each_key(&self, mut each: impl FnMut(u32, Key<'_>)) -> Result<()> {
        match &self.keys {
            Keys::Frame(section, frame) => {
                let mut previous = None;
                for ordinal in 0..section.rows {
                    let bytes = self.read(section, frame.range(ordinal))?;
                    let key = frame.decode(ordinal, bytes).map_err(|e| self.corrupt_at(section, e))?;
                    if previous >= Some(key) {
                        let at = frame.range(ordinal).start;
                        return Err(self.corrupt_at(section, Fault::new(at, "keys in ascending order", key)));
                    }
                    previous = Some(key);
                    each(ordinal as u32, Key::U64(key));
                }
            }
            Keys::Front(section) => {
                let mut last = Vec::new();
                for group in 0..keys::groups(section.rows) {
                    let mut ascends = true;
                    self.group(section, group, |ordinal, key| {
                        ascends &= last.as_slice() < key;
                        last.clear();
                        last.extend_from_slice(key);
                        each(ordinal as u32, Key::Bytes(key));
                        ascends
                    })?;
                    if !ascends {
                        let at = keys::group_offsets(group).start;
                        let found = String::from_utf8_lossy(&last).into_owned();
                        return Err(
                            self.corrupt_at(section, Fault::new(at, "keys in ascending order", found))
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the sort key that orders documents by priority: the priority of the document (`u64::MAX` if it has
    /// none), then the hash of its key.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    #[inline]
    pub fn priority(&self, ordinal: u32) -> Result<[u64; 2]> {
        if let Some(&known) = self.priorities.get().and_then(|all| all.get(ordinal as usize)) {
            return Ok(known);
        }
        let number = self.fields(ordinal)?.priority().unwrap_or(u64::MAX);
        Ok([number, self.key(ordinal)?.as_key().priority_hash()])
    }

    /// Reads the [`priority`](Self::priority) of each document, and caches all of them while the segment is open. Takes
    /// 16 bytes per document. Use it before reading many priorities.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn hold_priorities(&self) -> Result<()> {
        if self.priorities.get().is_some() {
            return Ok(());
        }
        let mut all = Column::new(&MemoryBudget::unlimited());
        let mut done = Ok(());
        let keeps = self.params().priorities;
        self.for_each_key(|ordinal, key| {
            let mut add = || {
                let number = if keeps { self.fields(ordinal)?.priority() } else { None };
                all.push([number.unwrap_or(u64::MAX), key.priority_hash()])
            };
            if done.is_ok() {
                done = add();
            }
        })?;
        done?;
        self.check_map()?;
        // If another thread has cached the same priorities first, keeps those.
        let _ = self.priorities.set(all);
        Ok(())
    }

    fn group(&self, section: &Section, group: u64, each: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (start, bytes) = self.group_bytes(section, group)?;
        keys::decode_group(bytes, group * GROUP, section.rows, each)
            .map_err(|fault| self.wrong_group(section, start, fault))
    }

    fn first_key(&self, section: &Section, group: u64) -> Result<&[u8]> {
        let (start, bytes) = self.group_bytes(section, group)?;
        keys::first_key(bytes).map_err(|fault| self.wrong_group(section, start, fault))
    }

    /// Returns the offset of a group in the section, and the bytes of the group.
    fn group_bytes(&self, section: &Section, group: u64) -> Result<(u64, &[u8])> {
        let offsets = self.read(section, keys::group_offsets(group))?;
        let range = keys::group_range(offsets, group, section.length, section.rows)
            .map_err(|e| self.corrupt_at(section, e))?;
        Ok((range.start, self.read(section, range)?))
    }

    #[cold]
    fn wrong_group(&self, section: &Section, start: u64, mut fault: Fault) -> Error {
        fault.offset += start;
        self.corrupt_at(section, fault)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::format::contents::Kind;
    use crate::params::Params;
    use crate::segment::{Records, build};
    use crate::sys::heap::Heap;

    fn bytes_of(params: &Params, keys: &[Key<'_>]) -> Vec<u8> {
        let mut records = Records::new(params);
        for &key in keys {
            records.push(key, None).unwrap();
        }
        let (heap, path) = (Heap::default(), Path::new("keys"));
        build::build(&records, &heap, path).unwrap().publish(path).unwrap();
        heap.take()
    }

    fn opened(bytes: Vec<u8>) -> Segment {
        Segment::from_bytes(bytes, Path::new("keys")).unwrap()
    }

    #[test]
    fn find_returns_exactly_the_stored_keys() {
        let named: Vec<String> = (1..=600).map(|i| format!("key {:04}", 2 * i)).collect();
        let named: Vec<Key<'_>> = named.iter().map(Key::from).collect();
        let numbers: Vec<Key<'_>> = (1..=600).map(|i| Key::U64(1000 + 2 * i)).collect();
        let of_bytes = Params::builder().simhash(3).build().unwrap();
        let of_numbers = Params::builder().simhash(3).u64_keys().build().unwrap();
        for (params, keys) in [(&of_bytes, &named), (&of_numbers, &numbers)] {
            for count in [0, 1, 2, 600] {
                let segment = opened(bytes_of(params, &keys[..count]));
                for (ordinal, &key) in keys.iter().enumerate() {
                    let expected = (ordinal < count).then_some(ordinal as u32);
                    assert_eq!(segment.find(key).unwrap(), expected, "{key:?} of {count}");
                }
                let others = match keys[0] {
                    Key::Bytes(_) => {
                        [Key::from("a"), Key::from("key 0003"), Key::from("key 0599"), Key::from("z")]
                    }
                    Key::U64(_) => [Key::U64(0), Key::U64(1003), Key::U64(1599), Key::U64(u64::MAX)],
                };
                for key in others {
                    assert_eq!(segment.find(key).unwrap(), None, "{key:?} of {count}");
                }
            }
        }
    }

    #[test]
    fn damaged_largest_key_does_not_hide_other_keys() {
        let names: Vec<String> = (0..3000).map(|i| format!("key {i:04}")).collect();
        let keys: Vec<Key<'_>> = names.iter().map(Key::from).collect();
        let mut bytes = bytes_of(&Params::builder().simhash(3).build().unwrap(), &keys);
        let sections = opened(bytes.clone()).sections().to_vec();
        let section = sections.iter().find(|section| section.kind == Kind::Keys).unwrap();
        bytes[section.end() as usize - 1] ^= 1;
        let segment = opened(bytes);
        assert_eq!(segment.find(keys[0]).unwrap(), Some(0));
        for key in [keys[2999], Key::from("z")] {
            assert!(matches!(segment.find(key), Err(Error::Corrupt { .. })), "{key:?}");
        }
    }
}
