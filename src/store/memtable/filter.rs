//! A filter of the prefix keys of marked rows. Most new documents share no key with a marked row, and a query need not look
//! up their keys.

/// Number of bits; 2 MiB, which fit into the caches of most processors.
const BITS: usize = 1 << 24;

/// A set of keys that may contain further ones. Takes no memory until the first key is added.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyFilter {
    words: Vec<u64>,
}

impl KeyFilter {
    pub(super) fn add(&mut self, keys: &[u32]) {
        if self.words.is_empty() && !keys.is_empty() {
            self.words = vec![0; BITS / 64];
        }
        for &key in keys {
            let (word, bit) = place(key);
            self.words[word] |= bit;
        }
    }

    #[inline]
    pub(super) fn may_contain(&self, key: u32) -> bool {
        let (word, bit) = place(key);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.words.len()
    }
}

/// Returns the word of a key and its bit. A key is a part of a hash.
fn place(key: u32) -> (usize, u64) {
    let at = key as usize % BITS;
    (at / 64, 1 << (at % 64))
}
