//! Results of queries about groups, and the resources for listing all groups.

use std::path::Path;

use crate::error::Result;
use crate::key::KeyBuf;

/// The result of a query with a limit, or the fact that the limit was too low to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// The result.
    Decided(T),
    /// The limit on queries was reached. The same snapshot, key and limit always give this result. To decide, use a
    /// higher limit or [`Snapshot::groups`](crate::Snapshot::groups).
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

/// The document that represents a document's group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The key of the leader; the document's own key if it is a leader.
    pub key: KeyBuf,
    /// Number of queries for near documents needed to decide the leader without cached results.
    pub questions: u64,
}

/// The group that a document belongs to, without its members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// The key of the leader; the document's own key if it is a leader.
    pub leader: KeyBuf,
    /// Number of documents in the group, including this one.
    pub size: u64,
    /// Number of queries for near documents needed to decide the group without cached results.
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
    /// Number of queries for near documents needed to decide the group without cached results.
    pub questions: u64,
}

/// The resources for a listing of all groups.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The folder for scratch files. They have no name, and disappear when the work or the process ends.
    pub dir: &'a Path,
    /// Bytes of memory to use.
    pub memory: usize,
    /// Number of threads, at least 1. The result does not depend on it.
    pub threads: usize,
}

impl<'a> Resources<'a> {
    /// Uses all cores, 1 GiB of memory, and scratch files in `dir`.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads }
    }
}
