//! Keys to ordinals, and ordinals to keys.

use std::cmp::Ordering;

use roaring::RoaringBitmap;

use super::open::{Keys, Segment};
use crate::error::Result;
use crate::extsort::Source;
use crate::format::contents::Section;
use crate::format::keys::{self, GROUP};
use crate::format::wire::Fault;
use crate::key::{Key, KeyBuf};
use crate::sys::column::{Column, Room};

/// The keys of a segment's live documents with their ordinals, ascending.
#[derive(Debug)]
pub struct LiveKeys<'a> {
    segment: &'a Segment,
    deleted: Option<&'a RoaringBitmap>,
    next: u32,
}

impl<'a> LiveKeys<'a> {
    /// All keys but those of `deleted` ordinals.
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
    /// The key of a document: O(1) for numbers, up to 16 keys decoded for bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), also for an ordinal that no document has.
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

    /// The first ordinal whose key is not below `key`; with `after`, whose key is above `key`. O(log n).
    ///
    /// # Errors
    /// As [`key`](Self::key).
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

    /// The ordinal of a key, if the segment has it: O(log n).
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a key of the other kind,
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn find(&self, key: Key<'_>) -> Result<Option<u32>> {
        key.check(self.params().key)?;
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
                // The last group whose first key is not above the key.
                let (mut low, mut high) = (0, keys::groups(section.rows));
                while low < high {
                    let middle = low + (high - low) / 2;
                    let mut is_past = false;
                    self.group(section, middle, |_, first| {
                        is_past = first > key;
                        false
                    })?;
                    if is_past {
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

    /// Hands all keys to `each`, in ascending order, with their ordinals.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where keys do not ascend, among others.
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

    /// The sort key of a document among others: its priority (the largest number if it has none), then the hash of its
    /// key.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), also for an ordinal that no document has.
    #[inline]
    pub fn priority(&self, ordinal: u32) -> Result<[u64; 2]> {
        if let Some(&known) = self.priorities.get().and_then(|all| all.get(ordinal as usize)) {
            return Ok(known);
        }
        let number = self.fields(ordinal)?.priority().unwrap_or(u64::MAX);
        Ok([number, self.key(ordinal)?.as_key().priority_hash()])
    }

    /// Reads the [`priority`](Self::priority) of each document, and keeps them while the segment is open: 16 bytes for
    /// each. For callers that will ask for many.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn hold_priorities(&self) -> Result<()> {
        if self.priorities.get().is_some() {
            return Ok(());
        }
        let mut all = Column::new(&Room::unlimited());
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
        // Another thread may have stored the same values first.
        let _ = self.priorities.set(all);
        Ok(())
    }

    fn group(&self, section: &Section, group: u64, each: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let offsets = self.read(section, keys::group_offsets(group))?;
        let range = keys::group_range(offsets, group, section.length, section.rows)
            .map_err(|e| self.corrupt_at(section, e))?;
        let start = range.start;
        let bytes = self.read(section, range)?;
        keys::decode_group(bytes, group * GROUP, section.rows, each).map_err(|mut fault| {
            fault.offset += start;
            self.corrupt_at(section, fault)
        })
    }
}
