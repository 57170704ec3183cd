//! Caches the leaders of documents (see `groups`) of one snapshot. The cache does not change query results.

use std::collections::HashMap;

use crate::sync::Mutex;

/// Maximum number of cached leaders. A full cache takes about 50 MB.
const ANSWERS_MAX: usize = 1 << 20;

/// A document of a snapshot: the number of its part (a segment or a memtable), and its ordinal in the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DocRef {
    pub(super) part: u32,
    pub(super) ordinal: u32,
}

/// The leader of a document, and the number of queries that compute it if nothing is cached.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownLeader {
    pub(super) leader: DocRef,
    pub(super) queries: u64,
}

/// The cached leaders of documents.
#[derive(Debug, Default)]
pub(super) struct KnownLeaders {
    answers: Mutex<HashMap<DocRef, KnownLeader>>,
}

impl KnownLeaders {
    pub(super) fn bytes(&self) -> usize {
        size_of::<(DocRef, KnownLeader)>() * self.answers.lock().capacity()
    }

    pub(super) fn get(&self, document: DocRef) -> Option<KnownLeader> {
        self.answers.lock().get(&document).copied()
    }

    pub(super) fn add(&self, document: DocRef, known: KnownLeader) {
        let mut answers = self.answers.lock();
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        answers.insert(document, known);
    }
}
