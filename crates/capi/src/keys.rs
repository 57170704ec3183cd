//! Iterates over keys in ascending order.

use std::mem::MaybeUninit;
use std::sync::Mutex;

use twindex::KeyBuf;

use crate::border::{self, Result, Slot, given, lock, start_of};
use crate::error::{Code, Error};

/// An iterator over keys of a snapshot, in ascending order. Must be freed with `twindex_keys_free`.
#[derive(Debug)]
pub struct Keys {
    walk: Mutex<(Source, Option<KeyBuf>)>,
}

#[derive(Debug)]
enum Source {
    Walk(Box<twindex::Keys>),
    List(std::vec::IntoIter<KeyBuf>),
}

impl Source {
    fn next(&mut self) -> Result<Option<KeyBuf>> {
        Ok(match self {
            Self::Walk(keys) => keys.next().transpose()?,
            Self::List(keys) => keys.next(),
        })
    }

    fn previous(&mut self) -> Result<Option<KeyBuf>> {
        Ok(match self {
            Self::Walk(keys) => keys.next_back().transpose()?,
            Self::List(keys) => keys.next_back(),
        })
    }
}

impl Keys {
    pub(crate) fn new(keys: twindex::Keys) -> Self {
        Self { walk: Mutex::new((Source::Walk(Box::new(keys)), None)) }
    }

    pub(crate) fn of(keys: Vec<KeyBuf>) -> Self {
        Self { walk: Mutex::new((Source::List(keys.into_iter()), None)) }
    }

    /// Returns the next keys, at most `max`. After an error, the keys before it are lost, as for a single key.
    pub(crate) fn take(&self, max: usize) -> Result<Vec<KeyBuf>> {
        let mut walk = lock(&self.walk)?;
        let mut keys = Vec::new();
        while keys.len() < max
            && let Some(key) = walk.0.next()?
        {
            keys.push(key);
        }
        Ok(keys)
    }
}

fn step(
    keys: Option<&Keys>,
    key: Option<&mut MaybeUninit<*const u8>>,
    key_len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    next: impl FnOnce(&mut Source) -> Result<Option<KeyBuf>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(key, std::ptr::null(), "key")?;
        let len = Slot::new(key_len, 0, "key_len")?;
        let mut walk = lock(&given(keys, "keys")?.walk)?;
        walk.1 = next(&mut walk.0)?;
        if let Some(next) = &walk.1 {
            let (start, bytes) = start_of(next);
            slot.put(start);
            len.put(bytes);
        }
        Ok(())
    })
}

/// Sets `key` to the next key and `key_len` to its length; sets `key` to null after the last key. The key is valid
/// until the next call with the same `keys`, so two threads must not share them. For many keys, use
/// `twindex_keys_next_many`.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_next(
    keys: Option<&Keys>,
    key: Option<&mut MaybeUninit<*const u8>>,
    key_len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    step(keys, key, key_len, error, Source::next)
}

/// As `twindex_keys_next`, but from the end: sets `key` to the last key that was not returned yet.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_previous(
    keys: Option<&Keys>,
    key: Option<&mut MaybeUninit<*const u8>>,
    key_len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    step(keys, key, key_len, error, Source::previous)
}

/// Frees an iterator over keys. `keys` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_free(keys: Option<Box<Keys>>) {
    border::free(keys);
}
