//! The states of a writer, by name: whether it goes on, what its next generation is, and what is known of the disk.

use std::time::Duration;

use super::Durability;
use crate::params::{Near, Params};

/// Bytes of records held before they are written to a segment; see [`Writer::set_memory`](super::Writer::set_memory).
const MEMORY: usize = 1 << 30;

/// Rows of a memtable that becomes a segment; see [`Writer::set_memtable`](super::Writer::set_memtable).
const MEMTABLE_ROWS: u32 = 1 << 16;
/// Bytes of such a memtable.
pub(super) const MEMTABLE_BYTES: usize = 64 << 20;

/// See [`Writer::set_stalls`](super::Writer::set_stalls).
const PAUSE: Duration = Duration::from_millis(20);
const MEMTABLES: usize = 2;

/// The largest memtable. Logs of three of them can be read again: see [`Memtable`](crate::store::memtable::Memtable).
pub(super) const MEMTABLE_ROWS_MAX: u32 = 1 << 26;
/// Bytes of the largest memtable.
pub(super) const MEMTABLE_BYTES_MAX: usize = 256 << 20;

/// What the caller chose; nothing else changes it.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "choices that do not depend on each other")]
pub(super) struct Settings {
    /// Bytes of records held before they are written to a segment.
    pub(super) memory: usize,
    /// Rows of a memtable that becomes a segment.
    pub(super) memtable_rows: u32,
    /// Bytes of such a memtable.
    pub(super) memtable_bytes: usize,
    /// Whether a batch becomes one segment, whatever its size.
    pub(super) one_segment: bool,
    /// Whether small batches go to the log.
    pub(super) logged: bool,
    /// What a commit by the log promises.
    pub(super) durability: Durability,
    /// Whether [`Writer::admit`](super::Writer::admit) leaves out duplicates.
    pub(super) drop_duplicates: bool,
    /// What `admit` takes for a duplicate.
    pub(super) near: Near,
    /// Whether it takes all that share a band for one, too.
    pub(super) unverified: bool,
    /// Whether resemblance is estimated though sets are kept.
    pub(super) estimated: bool,
    /// How far a stamp may be ahead of all before.
    pub(super) max_jump: u64,
    /// Whether segments are made and merged in the background.
    pub(super) background: bool,
    /// Bytes a second that such a merge may write; `None` for no limit.
    pub(super) rate: Option<u64>,
    /// How long a commit waits where the memtable is full, and the one before is not yet a segment.
    pub(super) pause: Duration,
    /// How many times the memtable is full where it waits until the segment is there.
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

/// Whether a writer can still be used, and what its end may remove. It only moves on: from sound to one of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No step has failed.
    Sound,
    /// A step that touches the disk has failed: the writer refuses everything. The last commit is the current one, and
    /// files of the batch can be removed.
    Failed,
    /// `CURRENT` may name the generation to come: set before the rename, and left behind when the rename or the sync
    /// after it fails. The writer refuses everything, and nothing that this generation names may be removed.
    InDoubt,
}

/// Where the rest of a batch goes. The next batch begins by the settings again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To segments or to the memtable, as the settings say.
    BySettings,
    /// To the memtable: the batch has been asked for keys or neighbours, and records on their way to a segment cannot
    /// be looked up.
    Memtable,
}

/// The generation to come beside the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// There is nothing to publish.
    AsPublished,
    /// There is something to publish: other segments, a payload, the time, or a log that is left behind.
    Changed,
}

impl Coming {
    /// Takes note of a step that may have changed something.
    pub(super) fn note(&mut self, changed: bool) {
        if changed {
            *self = Self::Changed;
        }
    }
}

/// Whether the generation to come owes commits a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    /// No commit waits for it; what is not synced yet in the log is synced there.
    Nothing,
    /// Commits that were acknowledged with less than [`Durability::Sync`] become durable only with it.
    Sync,
}

/// What is known of the file `CURRENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The directory was not synced since it was replaced: after a power failure the one before may be there.
    MayBeLost,
    /// It is durable as it is.
    Durable,
}

/// Where the directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Under the name by which it is found after a crash.
    Named,
    /// Under a temporary name, until all is in it.
    Unnamed,
}

/// Why a generation is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publish {
    /// A commit that goes to segments: what it has must be durable, and the files of the generation before may go.
    Commit,
    /// A log begins, whose first batch is a commit; the files of the generation before stay.
    Log,
    /// The same documents in other files; those of the generation before stay, as this one need not be durable.
    Shape,
}

impl Publish {
    /// Whether it has documents that the generation before has not.
    pub(super) fn acknowledges(self) -> bool {
        self != Self::Shape
    }

    /// Whether the files of the generation before stay.
    pub(super) fn keeps_before(self) -> bool {
        self != Self::Commit
    }
}
