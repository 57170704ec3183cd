//! The equal document that a lookup finds first, for contents that several documents have.
//!
//! [`Writer::admit`](super::Writer::admit) returns the nearest document, and of equal documents the one with the smallest
//! key. Only the writer changes the index. So it remembers the key that a search found, and compares it with the keys of
//! the documents that it adds later.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::IntoBytes;

use super::WriterOptions;
use crate::key::{Key, KeyBuf};
use crate::params::Params;
use crate::segment::records::Kept;

/// Maximum number of remembered keys. When it is reached, all keys are dropped.
const KEYS_MAX: usize = 1 << 14;

/// The part of a document that decides how near it is to other documents, by the options of the writer.
pub(super) struct Content<'a> {
    /// The hash of the data that two documents share if no other document can be nearer to either of them.
    hash: u128,
    /// The fingerprint, if distances are computed.
    fingerprint: Option<u64>,
    /// The features, if they decide which documents are compared.
    features: &'a [u64],
}

impl<'a> Content<'a> {
    /// Returns the content of a document; `None` if its stored data does not show which documents are nearest to it.
    pub(super) fn of(
        options: &WriterOptions,
        params: &Params,
        kept: Option<Kept<'a>>,
        set: &[u64],
    ) -> Option<Self> {
        let fingerprint = kept.filter(|_| params.simhash.is_some()).map(|kept| kept.fingerprint);
        let by_resemblance = options.near_or(params).threshold.is_some();
        let by_set = by_resemblance && params.sets && !options.unverified && !options.estimated;
        if by_set || params.codes.is_some() {
            return (!set.is_empty()).then(|| Self {
                hash: xxh3_128(set.as_bytes()),
                fingerprint,
                features: &[],
            });
        }
        let features = kept.filter(|_| by_resemblance).map_or(&[][..], |kept| kept.features);
        if let Some(fingerprint) = fingerprint {
            return Some(Self { hash: fingerprint.into(), fingerprint: Some(fingerprint), features });
        }
        // The unused bits of the last byte may differ between signatures that are otherwise equal.
        let minhash = params.minhash?;
        let fills_bytes = (minhash.minima() * usize::from(minhash.signature_bits)).is_multiple_of(8);
        let signature = kept.map(|kept| kept.signature).filter(|stored| fills_bytes && !stored.is_empty())?;
        Some(Self { hash: xxh3_128(signature), fingerprint, features })
    }
}

/// A remembered key, with the content of the document for which it was found.
#[derive(Debug)]
struct SmallestKey {
    key: KeyBuf,
    fingerprint: Option<u64>,
    features: Box<[u64]>,
}

/// For each content hash, the smallest key of the unmarked documents to which no document can be nearer. The document may
/// have been deleted, replaced or marked since, and another content may have the same hash. So the caller must compare the
/// document. If it is still equal, no equal document has a smaller key.
#[derive(Debug, Default)]
pub(super) struct SmallestKeys {
    by_hash: HashMap<u128, SmallestKey>,
}

impl SmallestKeys {
    pub(super) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.by_hash.clear();
    }

    pub(super) fn get(&self, content: &Content<'_>) -> Option<&KeyBuf> {
        let known = self.by_hash.get(&content.hash)?;
        let is_same = (known.fingerprint, &*known.features) == (content.fingerprint, content.features);
        is_same.then_some(&known.key)
    }

    /// Records the result of a search: the smallest key of the equal documents; `None` if there are none.
    pub(super) fn searched(&mut self, content: &Content<'_>, key: Option<KeyBuf>) {
        let Some(key) = key else {
            self.by_hash.remove(&content.hash);
            return;
        };
        if self.by_hash.len() >= KEYS_MAX {
            self.clear();
        }
        let &Content { hash, fingerprint, features } = content;
        self.by_hash.insert(hash, SmallestKey { key, fingerprint, features: features.into() });
    }

    /// Records that a document was admitted without a mark. The lookup must have compared it with the remembered
    /// document.
    pub(super) fn admitted(&mut self, content: &Content<'_>, key: Key<'_>) {
        if let Some(known) = self.by_hash.get_mut(&content.hash)
            && key < known.key.as_key()
        {
            known.key = key.to_buf();
        }
    }

    /// Records that a document was added without a lookup. Forgets a larger or equal key, because the contents may differ
    /// although their hashes agree.
    pub(super) fn put(&mut self, content: &Content<'_>, key: Key<'_>) {
        if self.by_hash.get(&content.hash).is_some_and(|known| key <= known.key.as_key()) {
            self.by_hash.remove(&content.hash);
        }
    }
}
