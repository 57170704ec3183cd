//! What is answered about groups, and what the answers may use.

use std::path::Path;

use crate::error::Result;
use crate::key::KeyBuf;

/// An answer, or that the bound on queries was too low for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// The answer.
    Decided(T),
    /// More queries would be needed than were allowed. The same snapshot, key and bound give this again; a higher bound, or
    /// [`Snapshot::groups`](crate::Snapshot::groups), decides.
    Undecided,
}

impl<T> Decision<T> {
    /// The answer, where there is one.
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
    /// The leader's key; that of the document itself where it leads.
    pub key: KeyBuf,
    /// How many queries for near documents decided it, where nothing was known before.
    pub questions: u64,
}

/// The group that a document belongs to, without its members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// The leader's key; that of the document itself where it leads.
    pub leader: KeyBuf,
    /// How many documents the group has, this one among them.
    pub size: u64,
    /// How many queries for near documents decided it, where nothing was known before.
    pub questions: u64,
}

/// A group: a leader, and the documents that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The leader's key.
    pub leader: KeyBuf,
    /// The keys of all its documents, the leader's among them, ascending.
    pub members: Vec<KeyBuf>,
    /// How many queries for near documents decided it, where nothing was known before.
    pub questions: u64,
}

/// What a listing of all groups may use.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// Where scratch files go. They have no name, and are gone when the work or the process ends.
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
