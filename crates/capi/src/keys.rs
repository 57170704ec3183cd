//! Iterates over keys in ascending order.

use std::mem::MaybeUninit;
use std::sync::Mutex;

use twindex::KeyBuf;

use crate::border::{self, Slot, given, lock, show_key};
use crate::error::{Code, Error};

/// An iterator over keys of a snapshot, in ascending order. Must be freed with `twindex_keys_free`.
#[derive(Debug)]
pub struct Keys {
    walk: Mutex<(twindex::Keys, Option<KeyBuf>)>,
}

impl Keys {
    pub(crate) fn new(keys: twindex::Keys) -> Self {
        Self { walk: Mutex::new((keys, None)) }
    }
}

/// Sets `key` to the next key and `key_len` to its length; sets `key` to null after the last key. The key is valid until
/// the next call with the same `keys`, so two threads must not share them.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_next(
    keys: Option<&Keys>,
    key: Option<&mut MaybeUninit<*const u8>>,
    key_len: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(key, std::ptr::null(), "key")?;
        let len = Slot::new(key_len, 0, "key_len")?;
        let mut walk = lock(&given(keys, "keys")?.walk)?;
        walk.1 = walk.0.next().transpose()?;
        if let Some(next) = &walk.1 {
            let mut bytes = MaybeUninit::new(0);
            slot.put(show_key(next, Some(&mut bytes)));
            // SAFETY: `Slot` initialises the bytes when it is created.
            len.put(unsafe { bytes.assume_init() });
        }
        Ok(())
    })
}

/// Frees an iterator over keys. `keys` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_free(keys: Option<Box<Keys>>) {
    border::free(keys);
}
