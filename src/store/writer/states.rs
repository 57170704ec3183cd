//! The states of a writer: whether it can continue, its next generation, and which of its data are known to be durable.

use std::time::Duration;

use super::Durability;
use crate::params::{Near, Params};

/// Default memory budget for the records of a batch in bytes; see [`Writer::set_memory`](super::Writer::set_memory).
const MEMORY: usize = 1 << 30;

/// Default number of rows at which a memtable is flushed; see [`Writer::set_memtable`](super::Writer::set_memtable).
const MEMTABLE_ROWS: u32 = 1 << 17;
/// Default number of bytes at which a memtable is flushed.
pub(super) const MEMTABLE_BYTES: usize = 64 << 20;

/// Defaults of [`Writer::set_stalls`](super::Writer::set_stalls).
const PAUSE: Duration = Duration::from_millis(20);
const MEMTABLES: usize = 2;

/// Maximum number of rows at which a memtable is flushed. The logs of three memtables of this size can be replayed; see
/// [`Memtable`](crate::store::memtable::Memtable).
pub(super) const MEMTABLE_ROWS_MAX: u32 = 1 << 26;
/// Maximum number of bytes at which a memtable is flushed.
pub(super) const MEMTABLE_BYTES_MAX: usize = 256 << 20;

/// Settings of a writer; only its `set_` methods change them.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent choices")]
pub(super) struct Settings {
    /// The memory budget for the records of a batch, in bytes.
    pub(super) memory: usize,
    /// Rows at which a memtable is flushed.
    pub(super) memtable_rows: u32,
    /// Bytes at which a memtable is flushed.
    pub(super) memtable_bytes: usize,
    /// Whether a batch of any size becomes a single segment.
    pub(super) one_segment: bool,
    /// Whether small batches are appended to the log.
    pub(super) logged: bool,
    /// The durability of a commit to the log.
    pub(super) durability: Durability,
    /// Whether [`Writer::admit`](super::Writer::admit) drops duplicates.
    pub(super) drop_duplicates: bool,
    /// The near relation used by `admit`.
    pub(super) near: Near,
    /// Whether `admit` treats all documents that share a band as duplicates.
    pub(super) unverified: bool,
    /// Whether resemblance is estimated even if sets are stored.
    pub(super) estimated: bool,
    /// The largest accepted difference between a stamp and the highest earlier stamp.
    pub(super) max_jump: u64,
    /// Whether segments are built and merged in the background.
    pub(super) background: bool,
    /// The write rate of a background merge, in bytes a second; `None` for no limit.
    pub(super) rate: Option<u64>,
    /// Maximum time that a commit waits if the memtable is full and the previous one is still being flushed.
    pub(super) pause: Duration,
    /// The multiple of its normal size at which the memtable makes a commit wait until the flush is finished.
    pub(super) memtables: usize,
}

impl Settings {
    /// Returns the default settings of a writer.
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

    /// Returns whether each commit writes a segment, so that no batch is appended to the log.
    pub(super) fn makes_segments(&self) -> bool {
        self.one_segment || !self.logged
    }
}

/// Whether a writer can still be used, and which files may be removed when it is dropped. `Failed` is final; `InDoubt`
/// becomes `Sound` again if the publication succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No step has failed.
    Sound,
    /// A step that uses the disk has failed, and the writer refuses all operations. The last commit is still current, and
    /// the files of the batch can be removed.
    Failed,
    /// `CURRENT` may already name the next generation. Set before the rename, and kept if the rename or the following sync
    /// fails. The writer then refuses all operations, and no file that this generation names may be removed.
    InDoubt,
}

/// The destination of the remaining documents of a batch. Each batch begins with `BySettings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Documents are collected for segments or added to the memtable, depending on the settings.
    BySettings,
    /// Documents are added to the memtable: the batch was queried, and records collected for a segment cannot be looked up.
    Memtable,
}

/// Whether the next generation differs from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextGeneration {
    /// The next generation is the same as the published one, so there is nothing to publish.
    AsPublished,
    /// The next generation has other segments, another payload or another time, or it ends a log.
    Changed,
}

impl NextGeneration {
    /// Sets `Changed` if `changed` is true.
    pub(super) fn note(&mut self, changed: bool) {
        if changed {
            *self = Self::Changed;
        }
    }
}

/// Whether earlier commits become durable only when the next generation is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingSync {
    /// Unsynced commits are in the log, and a sync of the log makes them durable.
    Nothing,
    /// Commits acknowledged with less than [`Durability::Sync`] become durable only when the next generation is synced.
    Sync,
}

/// Whether the current content of the file `CURRENT` is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The directory was not synced after the file was replaced. After a power failure the old content may be back.
    MayBeLost,
    /// The current content is durable.
    Durable,
}

/// Whether the directory has its final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryName {
    /// The directory has its final name, under which the index is found after a crash.
    Named,
    /// The directory has a temporary name until the index is complete.
    Unnamed,
}

/// The reason why a generation is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publish {
    /// A commit that writes segments. They must be durable, and files of the previous generation may be removed.
    Commit,
    /// A new log, whose first batch is a commit. Files of the previous generation are kept.
    Log,
    /// Only files change; the documents are the same. Files of the previous generation are kept, because the new generation
    /// need not be durable.
    Shape,
}

impl Publish {
    /// Returns whether the generation contains a commit, so that it must be durable.
    pub(super) fn acknowledges(self) -> bool {
        self != Self::Shape
    }

    /// Returns whether files of the previous generation are kept.
    pub(super) fn keeps_before(self) -> bool {
        self != Self::Commit
    }
}
