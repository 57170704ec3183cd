//! The states of a writer: whether it can continue, its next generation, and what is known of the disk.

use std::time::Duration;

use super::Durability;
use crate::params::{Near, Params};

/// Bytes of records held before they are written to a segment; see [`Writer::set_memory`](super::Writer::set_memory).
const MEMORY: usize = 1 << 30;

/// Rows at which a memtable is flushed; see [`Writer::set_memtable`](super::Writer::set_memtable).
const MEMTABLE_ROWS: u32 = 1 << 17;
/// Bytes at which a memtable is flushed.
pub(super) const MEMTABLE_BYTES: usize = 64 << 20;

/// See [`Writer::set_stalls`](super::Writer::set_stalls).
const PAUSE: Duration = Duration::from_millis(20);
const MEMTABLES: usize = 2;

/// Rows of the largest memtable. Logs of three of them can be read again: see
/// [`Memtable`](crate::store::memtable::Memtable).
pub(super) const MEMTABLE_ROWS_MAX: u32 = 1 << 26;
/// Bytes of the largest memtable.
pub(super) const MEMTABLE_BYTES_MAX: usize = 256 << 20;

/// The caller's choices; nothing else changes them.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent choices")]
pub(super) struct Settings {
    /// Bytes of records held before they are written to a segment.
    pub(super) memory: usize,
    /// Rows at which a memtable is flushed.
    pub(super) memtable_rows: u32,
    /// Bytes at which a memtable is flushed.
    pub(super) memtable_bytes: usize,
    /// Whether a batch of any size becomes a single segment.
    pub(super) one_segment: bool,
    /// Whether small batches go to the log.
    pub(super) logged: bool,
    /// The durability of a commit to the log.
    pub(super) durability: Durability,
    /// Whether [`Writer::admit`](super::Writer::admit) drops duplicates.
    pub(super) drop_duplicates: bool,
    /// The near relation of `admit`.
    pub(super) near: Near,
    /// Whether `admit` treats all documents that share a band as duplicates.
    pub(super) unverified: bool,
    /// Whether resemblance is estimated though sets are stored.
    pub(super) estimated: bool,
    /// How far a stamp may be ahead of all earlier ones.
    pub(super) max_jump: u64,
    /// Whether segments are built and merged in the background.
    pub(super) background: bool,
    /// The write rate of a background merge, in bytes a second; `None` for no limit.
    pub(super) rate: Option<u64>,
    /// How long a commit waits if the memtable is full and the previous one is not yet a segment.
    pub(super) pause: Duration,
    /// The number of full memtables at which a commit waits until the segment is finished.
    pub(super) memtables: usize,
}

impl Settings {
    /// The settings of a new writer.
    pub(super) fn of(params: &Params) -> Self {
        Self {
            memory: MEMORY,
            memtable_rows: MEMTABLE_ROWS,
            memtable_bytes: MEMTABLE_BYTES,
            one_segment: false,
            logged: true,
            durability: Durability::Sync,
            drop_duplicates: false,
            near: params.near(),
            unverified: false,
            estimated: false,
            max_jump: params.expire_after.unwrap_or(u64::MAX),
            background: true,
            rate: None,
            pause: PAUSE,
            memtables: MEMTABLES,
        }
    }

    /// Whether each commit makes a segment, so that no batch goes to the log.
    pub(super) fn makes_segments(&self) -> bool {
        self.one_segment || !self.logged
    }
}

/// Whether a writer can still be used, and what its end may remove. It only changes from sound to one of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No step has failed.
    Sound,
    /// A step that uses the disk has failed: the writer refuses everything. The last commit is current, and files of
    /// the batch can be removed.
    Failed,
    /// `CURRENT` may name the next generation: set before the rename, and kept if the rename or the sync after it
    /// fails. The writer refuses everything, and no file that this generation names may be removed.
    InDoubt,
}

/// The route of the rest of a batch. The next batch starts by the settings again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To segments or to the memtable, as the settings say.
    BySettings,
    /// To the memtable: the batch was queried, and records collected for a segment cannot be looked up.
    Memtable,
}

/// The next generation compared with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextGeneration {
    /// There is nothing to publish.
    AsPublished,
    /// There is something to publish: other segments, a payload, the time, or the end of a log.
    Changed,
}

impl NextGeneration {
    /// Records that a step may have changed something.
    pub(super) fn note(&mut self, changed: bool) {
        if changed {
            *self = Self::Changed;
        }
    }
}

/// Whether earlier commits wait for the sync of the next generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingSync {
    /// No commit waits for it; unsynced commits in the log are synced there.
    Nothing,
    /// Commits that were acknowledged with less than [`Durability::Sync`] become durable only with it.
    Sync,
}

/// Whether the file `CURRENT` is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The directory was not synced since the file was replaced: after a power failure the old one may be back.
    MayBeLost,
    /// It is durable as it is.
    Durable,
}

/// The name of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryName {
    /// Its final name, by which it is found after a crash.
    Named,
    /// A temporary name, until it is complete.
    Unnamed,
}

/// The reason why a generation is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publish {
    /// A commit that makes segments: they must be durable, and the files of the generation before may be removed.
    Commit,
    /// A new log begins, whose first batch is a commit; the files of the generation before stay.
    Log,
    /// The same documents in other files; the files of the generation before stay, as this one need not be durable.
    Shape,
}

impl Publish {
    /// Whether it adds documents to the generation before.
    pub(super) fn acknowledges(self) -> bool {
        self != Self::Shape
    }

    /// Whether the files of the generation before stay.
    pub(super) fn keeps_before(self) -> bool {
        self != Self::Commit
    }
}
