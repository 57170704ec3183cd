//! The answers about groups, and the resources that they may use.

use std::path::Path;

use crate::error::Result;
use crate::key::KeyBuf;

/// An answer, or the fact that the limit on queries was too low for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// The answer.
    Decided(T),
    /// The limit on queries was reached. The same snapshot, key and limit give this again; a higher limit, or
    /// [`Snapshot::groups`](crate::Snapshot::groups), decides.
    Undecided,
}

impl<T> Decision<T> {
    /// The answer, if there is one.
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
    /// The leader's key; the document's own key if it leads.
    pub key: KeyBuf,
    /// The number of queries for near documents that decide it, without remembered answers.
    pub questions: u64,
}

/// The group that a document belongs to, without its members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// The leader's key; the document's own key if it leads.
    pub leader: KeyBuf,
    /// The number of documents in the group, this one included.
    pub size: u64,
    /// The number of queries for near documents that decide it, without remembered answers.
    pub questions: u64,
}

/// A group: a leader, and the documents that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The leader's key.
    pub leader: KeyBuf,
    /// The keys of all its documents, including the leader's, ascending.
    pub members: Vec<KeyBuf>,
    /// The number of queries for near documents that decide it, without remembered answers.
    pub questions: u64,
}

/// The resources for a listing of all groups.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The folder of scratch files. They have no name, and disappear when the work or the process ends.
    pub dir: &'a Path,
    /// Bytes of memory.
    pub memory: usize,
    /// Threads, at least 1. The answer does not depend on them.
    pub threads: usize,
}

impl<'a> Resources<'a> {
    /// All cores, 1 GiB, and scratch files in `dir`.
    #[must_use]
    pub fn in_dir(dir: &'a Path) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { dir, memory: 1 << 30, threads }
    }
}
