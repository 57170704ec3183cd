//! The states of a writer: whether it can continue, whether its next generation differs, and which data are durable.

/// Whether a writer can still be used, and which files may be removed when it is dropped. `Failed` is final; `InDoubt`
/// becomes `Sound` again if the publication succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No step has failed.
    Sound,
    /// A step that uses the disk has failed, and the writer refuses all operations. The last commit is still current,
    /// so the files of the batch can be removed.
    Failed,
    /// `CURRENT` may already name the next generation. The state is set before the rename, and remains if the rename or
    /// the next sync fails. The writer then refuses all operations, and removes no file that this generation names.
    InDoubt,
}

/// The destination of the remaining documents of a batch. Each batch begins with `BySettings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Documents are collected for segments or added to the memtable, depending on the settings.
    BySettings,
    /// Documents are added to the memtable, because the batch was queried. Records collected for segments cannot be
    /// queried.
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
    pub(super) fn note(&mut self, changed: bool) {
        if changed {
            *self = Self::Changed;
        }
    }
}

/// Whether a sync of the log is enough to make all earlier commits durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingSync {
    /// It is enough: a sync of the log makes all unsynced commits durable.
    Nothing,
    /// It is not enough: some unsynced commits become durable only when the next generation is published.
    Sync,
}

/// Whether the content of the file `CURRENT` is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The directory was not synced after `CURRENT` was replaced. A power failure may restore the old content.
    MayBeLost,
    /// The current content is durable.
    Durable,
}

/// Whether the directory has its final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryName {
    /// The directory has its final name, so the index can be found after a crash.
    Named,
    /// The directory has a temporary name until the index is complete.
    Unnamed,
}

/// The reason why a generation is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publish {
    /// A commit that writes segments. The segments must be durable, and files of the previous generation may be
    /// removed.
    Commit,
    /// A new log, whose first batch is a commit. The files of the previous generation are kept.
    Log,
    /// Documents were moved between files, and none was changed. The files of the previous generation are kept, because
    /// the new generation need not be durable.
    Shape,
}

impl Publish {
    /// Returns whether the generation contains a commit, so that it must be durable.
    pub(super) fn acknowledges(self) -> bool {
        self != Self::Shape
    }

    pub(super) fn keeps_before(self) -> bool {
        self != Self::Commit
    }
}
