//! Results of queries about groups, and the limits within which all groups are computed.

use std::path::Path;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::key::KeyBuf;

/// The result of a computation that stops when it reaches a limit on queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// The computation finished with this result.
    Decided(T),
    /// The limit on queries was too low; the result is the same whenever this snapshot, key and limit are used again.
    /// Use a higher limit, or [`Snapshot::groups`](crate::Snapshot::groups).
    Undecided,
}

impl<T> Decision<T> {
    /// Returns the result; `None` if undecided.
    #[must_use]
    pub fn decided(self) -> Option<T> {
        match self {
            Self::Decided(answer) => Some(answer),
            Self::Undecided => None,
        }
    }

    pub(super) fn map<U>(self, of: impl FnOnce(T) -> Result<U>) -> Result<Decision<U>> {
        match self {
            Self::Decided(answer) => of(answer).map(Decision::Decided),
            Self::Undecided => Ok(Decision::Undecided),
        }
    }
}

/// The leader of a document's group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The key of the leader; the document's own key if the document is a leader.
    pub key: KeyBuf,
    /// Number of queries for near documents that decide the leader, including queries whose results were cached.
    pub questions: u64,
}

/// The leader and the size of a document's group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// The key of the leader; the document's own key if the document is a leader.
    pub leader: KeyBuf,
    /// Number of documents in the group, including the document itself.
    pub size: u64,
    /// Number of queries for near documents that decide the group, including queries whose results were cached.
    pub questions: u64,
}

/// A group: a leader, and the documents that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The key of the leader.
    pub leader: KeyBuf,
    /// The keys of all documents in the group, including the leader, ascending.
    pub members: Vec<KeyBuf>,
    /// Number of queries for near documents that decide the group, including queries whose results were cached.
    pub questions: u64,
}

/// The memory, threads and directory for scratch files with which all groups are computed.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The directory for scratch files. These files have no names, and disappear when the work or the process ends.
    pub dir: &'a Path,
    /// The memory budget in bytes.
    pub memory: usize,
    /// Number of threads, at least 1. It does not affect the result.
    pub threads: usize,
    /// Ends the computation early with [`Error::Cancelled`](crate::Error::Cancelled); `None` if nothing does. Checked
    /// before each round of queries, and before each query of a round that compares documents one by one.
    pub cancel: Option<&'a Cancel>,
}

impl<'a> Resources<'a> {
    /// Creates resources with all cores, 1 GiB of memory, and `dir` as the directory for scratch files.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads, cancel: None }
    }
}
