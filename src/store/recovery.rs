//! Opens an index, also after a crash, for reading or for writing.
//!
//! The steps, in this order:
//!
//! 1. `CURRENT` and the manifest that it names are read; digest and UUID must agree. Only `CURRENT` decides which
//!    generation is current. So if a writer stopped before it renamed `CURRENT`, its generation does not exist. A
//!    directory that lost its `CURRENT` is damaged; it is not treated as an empty one.
//! 2. The segments of the manifest are opened, and its logs are replayed into a memtable, oldest first. An incomplete record
//!    ends a log, because it was never acknowledged. But if the file is known to be synced beyond the record, the record is
//!    damaged, and an error is returned ([`log::replay`]). Readers stop here: they change nothing.
//! 3. A writer acquires the lock, and then repeats steps 1 and 2 to read later commits, so that it continues after the last
//!    commit (`Writer::new`). Once it has the lock, no other process can write.
//! 4. The new writer removes files that neither this generation nor the previous one names ([`sweep_leftovers`]). The
//!    previous one is still needed: a killed writer may have renamed `CURRENT` without syncing the directory, and after a
//!    crash of the machine the old `CURRENT` may be back. If a removal fails, only disk space is lost.
//! 5. At its first commit to the log, or its first manifest that still names logs, the writer creates its own log
//!    ([`rewrite_tail`]). It first copies to it the batches of the last log that are not known to be durable, because they
//!    may exist only in the page cache. The manifest records the durable length of the last log. Nothing is appended to that
//!    log, because a record after a torn one would be lost.
//! 6. The manifest that names the new log is published (`store::generation`). If a crash occurs before that, the files of
//!    step 2 still exist, and recovery begins again from the same state.
//!
//! Until step 5, opening changes no byte of a file that the manifest names. So after a crash at any point of a recovery, the
//! next recovery does the same again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::generation;
use super::history::{History, Position, another_index};
use super::log::{self, OpenLog};
use super::names::{self, FileKind};
use super::state::{LOGGED_BYTES_MAX, LiveView, State, open_segment, read_whole};
use crate::error::{Error, Result, corrupt, refused};
use crate::format::current::{CURRENT_BYTES, Current};
use crate::format::manifest::{LogEntry, MANIFEST_BYTES_MAX, Manifest};
use crate::format::wire::Fault;
use crate::sys::{Access, Vfs};

/// A callback for the progress of a recovery: the number of log bytes read so far, and the total number of log bytes.
pub(super) type RecoveryProgress<'a> = Option<&'a mut dyn FnMut(u64, u64)>;

/// Reports the progress of a recovery, beginning one second after its start.
struct ProgressReport<'a> {
    progress: &'a mut dyn FnMut(u64, u64),
    last: Instant,
    /// Total length in bytes of the logs that precede the log being replayed.
    before: u64,
    total: u64,
}

impl<'a> ProgressReport<'a> {
    fn of(progress: &'a mut dyn FnMut(u64, u64), vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> Self {
        let length = |entry: &LogEntry| {
            if !entry.grows {
                return entry.length;
            }
            // The length serves only to report progress. If a log cannot be read, the replay reports the reason.
            vfs.open(&names::log(dir, entry.number)).and_then(|file| file.len()).unwrap_or(0)
        };
        let total = manifest.logged.iter().flat_map(|logged| &logged.logs).map(length).sum();
        // Pretends that a report was made at the end of `QUIET`, so that the first one follows an interval later.
        let last = Instant::now() + QUIET;
        Self { progress, last, before: 0, total }
    }

    fn is_at(&mut self, offset: u64) {
        if Instant::now().saturating_duration_since(self.last) >= REPORT_INTERVAL {
            self.last = Instant::now();
            (self.progress)((self.before + offset).min(self.total), self.total);
        }
    }
}

/// A recovery that ends within this time reports no progress.
const QUIET: Duration = Duration::from_millis(900);
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

impl State {
    /// Reads the current generation and replays its logs.
    pub(super) fn load(vfs: &dyn Vfs, dir: &Path, access: Access) -> Result<Self> {
        Self::load_with_progress(vfs, dir, access, None)
    }

    /// Like [`load`](Self::load), but reports progress if loading takes longer than a second.
    pub(super) fn load_with_progress(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        progress: RecoveryProgress<'_>,
    ) -> Result<Self> {
        let state = Self::newer(vfs, dir, access, None, progress)?;
        Ok(state.expect("anything is newer than nothing"))
    }

    /// Like [`load`](Self::load), but returns `None` if the index has not changed since `known` was read. Reuses the
    /// open segments of `known`, and its memtable if the history on disk continues the history of `known`.
    ///
    /// # Errors
    /// [`Error::NotAnIndex`] if the directory contains another index than `known`.
    pub(super) fn newer(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        known: Option<&Self>,
        mut progress: RecoveryProgress<'_>,
    ) -> Result<Option<Self>> {
        // At any time a writer may publish the next generation and remove files of the one that is being read, or the
        // directory may be replaced. If a file is missing or does not match and `CURRENT` has changed since, reading
        // starts again.
        let mut last = None;
        loop {
            let current = read_current(vfs, dir)?;
            // guard: the UUID of an open index is compared before its files are read on
            if known.is_some_and(|known| known.manifest.uuid != current.header.salt.get()) {
                return Err(another_index(dir));
            }
            let progress = progress.as_mut().map(|progress| &mut **progress as &mut dyn FnMut(u64, u64));
            let read = Self::read_on(vfs, dir, access, &current, known, progress);
            let generation = current.generation.get();
            let named = Some((current.header.salt.get(), generation, current.digest.get()));
            match read {
                // guard: a file that is gone when an index is opened is looked for in the next generation
                Err(error) if (is_missing(&error) || error.is_corruption()) && last != named => last = named,
                other => return other.map_err(|error| missing_is_damage(error, generation)),
            }
        }
    }

    /// Reads the generation that `current` names. Reads only what is new if the files on disk are those of `known`.
    fn read_on(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        current: &Current,
        known: Option<&Self>,
        progress: RecoveryProgress<'_>,
    ) -> Result<Option<Self>> {
        let digest = current.digest.get();
        if let Some(known) = known
            && known.history.manifest == digest
            && known.history.has_logs(vfs, dir, |_| true)?
        {
            return known.advanced(vfs, dir);
        }
        let manifest = Self::read_manifest(vfs, dir, current)?;
        Self::load_generation(vfs, dir, access, (manifest, digest), known, progress).map(Some)
    }

    /// Reads the generation with this number, independent of `CURRENT`.
    pub(super) fn load_at(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        generation: u64,
        progress: RecoveryProgress<'_>,
    ) -> Result<Self> {
        let manifest = Self::manifest_at(vfs, dir, generation)?;
        let digest = Manifest::digest(&manifest.encode());
        Self::load_generation(vfs, dir, access, (manifest, digest), None, progress)
            .map_err(|error| missing_is_damage(error, generation))
    }

    /// Reads the manifest of the generation with this number, independent of `CURRENT`.
    pub(super) fn manifest_at(vfs: &dyn Vfs, dir: &Path, generation: u64) -> Result<Manifest> {
        let path = names::manifest(dir, generation);
        let bytes = read_whole(vfs, &path, MANIFEST_BYTES_MAX)?;
        let manifest = Manifest::decode(&bytes).map_err(|refusal| refused(&path, "manifest", refusal))?;
        if manifest.generation == generation {
            return Ok(manifest);
        }
        let fault = Fault::new(64, format!("generation {generation}"), manifest.generation);
        Err(corrupt(&path, "manifest", 0, fault))
    }

    /// Reads the batches that were appended to the active log since this state was read. Returns `None` if there is
    /// nothing new.
    fn advanced(&self, vfs: &dyn Vfs, dir: &Path) -> Result<Option<Self>> {
        let logs = self.manifest.logged.as_ref().map_or(&[][..], |logged| &logged.logs);
        let (Some(entry), Some(from)) = (logs.last(), self.position()) else { return Ok(None) };
        let mut view = self.view.clone();
        view.forget_attempts();
        let log = log::replay(vfs, dir, &self.manifest, entry, from, |path, commit, at, batch| {
            view.apply(path, commit, at, batch, &self.manifest)
        })?;
        // If only a mark was appended, there is no new batch, but earlier batches have become durable.
        if view.commit == self.view.commit && log.position.durable <= from.durable {
            return Ok(None);
        }
        view.advance()?;
        let mut history = self.history.clone();
        history.logs.pop();
        history.logs.push(log);
        Ok(Some(Self::new(Arc::clone(&self.manifest), view, history, self.sketch_digest)))
    }

    /// Returns the position up to which this state has read `logs`, the logs of another generation; `None` unless
    /// `logs` begins with the logs of this state. With this position, a reader reuses the rows of this state after a
    /// new log or a merge, and need not replay all logs again.
    fn position_in(&self, logs: &[LogEntry]) -> Option<Position> {
        let position = self.position().filter(|_| self.view.frozen.is_none())?;
        let known = &self.manifest.logged.as_ref()?.logs;
        let are_known = known.len() <= logs.len()
            && known
                .iter()
                .zip(logs)
                .all(|(known, log)| (known.number, known.first) == (log.number, log.first));
        let last = logs.get(known.len().checked_sub(1)?)?;
        // If this state has read batches after the final length of its last log, the next log begins with copies of
        // these batches.
        // guard: batches that were written again are not read twice
        // without it: last.length >= position.batches -> true
        let is_whole = last.grows || last.length >= position.batches;
        (are_known && is_whole && position.number == last.number).then_some(position)
    }

    /// Returns whether the index on disk, whose manifest is `next`, continues the history of this state. Returns false also
    /// if this cannot be decided, because the manifest of this state was removed since.
    fn is_continued_by(&self, vfs: &dyn Vfs, dir: &Path, next: &Manifest) -> Result<bool> {
        let known = self.manifest.generation;
        if next.generation <= known || !self.history.has_logs(vfs, dir, |_| true)? {
            return Ok(false);
        }
        // If a log has a batch that is newer than the known manifest, it was copied after this manifest was published.
        if self.position().is_some_and(|position| position.commit > known) {
            return Ok(true);
        }
        match read_whole(vfs, &names::manifest(dir, known), MANIFEST_BYTES_MAX) {
            // guard: the manifest of the generation before is the one that was read
            // without it: Manifest::digest(&bytes) == self.history.manifest -> true
            Ok(bytes) => Ok(Manifest::digest(&bytes) == self.history.manifest),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the manifest of the current generation.
    pub(super) fn load_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<Manifest> {
        Self::read_manifest(vfs, dir, &read_current(vfs, dir)?)
    }

    fn load_generation(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        (manifest, digest): (Manifest, u128),
        known: Option<&Self>,
        progress: RecoveryProgress<'_>,
    ) -> Result<Self> {
        let segments = manifest
            .segments
            .iter()
            .map(|entry| {
                let open = known.and_then(|state| state.segment(entry));
                open.map_or_else(|| open_segment(vfs, dir, access, &manifest, entry), Ok)
            })
            .collect::<Result<_>>()?;
        let mut view = LiveView::of(&manifest, segments);
        let logs = manifest.logged.as_ref().map_or(&[][..], |logged| &logged.logs);
        let mut history = History { manifest: digest, logs: Vec::new() };
        // Number of memtable rows of commits up to this generation. The manifest already contains the deletes of these
        // commits.
        let mut known_rows = 0;
        if let Some(known) = known
            && let Some(at) = known.position_in(logs)
            && known.is_continued_by(vfs, dir, &manifest)?
        {
            view.take_rows(&known.view, manifest.generation);
            history.logs.clone_from(&known.history.logs);
            history.logs.retain(|log| log.position.number <= at.number);
            known_rows = if known.view.commit <= manifest.generation { view.rows } else { 0 };
        } else {
            view.table.write().begin_loading();
        }
        let read = history.position().map_or(0, |position| position.number);
        let mut report = progress.map(|progress| ProgressReport::of(progress, vfs, dir, &manifest));
        for entry in logs.iter().filter(|entry| entry.number >= read) {
            let position = history.position();
            let commit = position.map_or(entry.first.saturating_sub(1), |position| position.commit);
            let before = Position::before(entry.number, commit);
            let known = history.logs.pop_if(|log| log.position.number == entry.number);
            let from = known.map_or(before, |log| log.position);
            let read = log::replay(vfs, dir, &manifest, entry, from, |path, commit, at, batch| {
                if let Some(report) = &mut report {
                    report.is_at(at);
                }
                view.apply_rows(path, commit, at, batch, &manifest)?;
                if commit <= manifest.generation {
                    known_rows = view.rows;
                }
                Ok(())
            })?;
            if let Some(report) = &mut report {
                report.before += read.position.offset;
            }
            history.logs.push(read);
        }
        view.table.end_loading(LOGGED_BYTES_MAX)?;
        view.count();
        view.forget_rows(known_rows)?;
        // The generation may be newer than the last batch of its logs.
        view.commit = view.commit.max(manifest.generation);
        view.advance()?;
        let sketch_digest = manifest.params.sketch().digest();
        Ok(Self::new(Arc::new(manifest), view, history, sketch_digest))
    }

    fn read_manifest(vfs: &dyn Vfs, dir: &Path, current: &Current) -> Result<Manifest> {
        let generation = current.generation.get();
        let path = names::manifest(dir, generation);
        let bytes = read_whole(vfs, &path, MANIFEST_BYTES_MAX)?;
        let fault =
            |expected: String, found: String| corrupt(&path, "manifest", 0, Fault::new(0, expected, found));
        let digest = Manifest::digest(&bytes);
        if digest != current.digest.get() {
            // Decodes the manifest first: an error about its content is more specific than a wrong digest.
            Manifest::decode(&bytes).map_err(|refusal| refused(&path, "manifest", refusal))?;
            return Err(fault(
                format!("digest {:032x} as in CURRENT", current.digest.get()),
                format!("{digest:032x}"),
            ));
        }
        let manifest = Manifest::decode(&bytes).map_err(|refusal| refused(&path, "manifest", refusal))?;
        if (manifest.uuid, manifest.generation) != (current.header.salt.get(), generation) {
            let expected = format!("generation {generation} of index {:032x}", current.header.salt.get());
            return Err(fault(
                expected,
                format!("generation {} of {:032x}", manifest.generation, manifest.uuid),
            ));
        }
        Ok(manifest)
    }
}

pub(super) fn read_current(vfs: &dyn Vfs, dir: &Path) -> Result<Current> {
    let path = names::current(dir);
    let bytes = current_bytes(vfs, dir, &path)?;
    Current::read(&bytes).map_err(|refusal| refused(&path, "CURRENT", refusal))
}

/// Returns the bytes of the file `CURRENT` of the index `dir`. `path` is the path of `CURRENT`.
fn current_bytes(vfs: &dyn Vfs, dir: &Path, path: &Path) -> Result<Vec<u8>> {
    match read_whole(vfs, path, CURRENT_BYTES as u64) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Err(no_current(vfs, dir, path.to_owned()))
        }
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            Err(Error::NotAnIndex { path: dir.to_owned(), why: "it is not a directory".into() })
        }
        other => other,
    }
}

/// Returns the error for a missing `CURRENT`: the directory is either no index, or an index that lost this file. A
/// damaged index must never be reported as a directory without an index.
fn no_current(vfs: &dyn Vfs, dir: &Path, path: PathBuf) -> Error {
    let names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Error::NotAnIndex { path: dir.to_owned(), why: "no such directory".into() };
        }
        Err(error) => return Error::io("list", dir, error),
    };
    let ours = names.iter().filter(|name| {
        matches!(names::parse(name), Some(FileKind::Manifest(_) | FileKind::Segment(_) | FileKind::Log(_)))
    });
    // guard: segments without CURRENT are a damaged index and not none
    // without it: ours.count() -> 0
    match ours.count() {
        0 => Error::NotAnIndex { path: dir.to_owned(), why: "it has no file CURRENT".into() },
        count => Error::Corrupt {
            path,
            section: "CURRENT",
            offset: 0,
            expected: format!(
                "a file that names the newest manifest, as {count} manifests or segments are there"
            ),
            found: "no such file; restore it from a copy of the index".into(),
        },
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

pub(super) fn missing_is_damage(error: Error, generation: u64) -> Error {
    match error {
        // guard: a missing segment is damage
        Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => Error::Corrupt {
            path,
            section: "index",
            offset: 0,
            expected: format!("a file that generation {generation} names"),
            found: "no such file; restore it from a copy of the index".into(),
        },
        other => other,
    }
}

/// Removes leftover files (step 4 above). The caller must hold the writer lock.
pub(super) fn sweep_leftovers(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) {
    // A writer that was killed between renaming CURRENT and syncing the directory leaves a generation that is current but
    // not durable. So the files of the previous generation are kept until the next sync. If the previous manifest cannot be
    // read, nothing is removed; if it is damaged, the directory is synced, which makes the current generation durable.
    let before = match previous(vfs, dir, manifest) {
        Err(error) if error.is_corruption() && generation::sync_dir(vfs, dir).is_ok() => Ok(None),
        before => before,
    };
    if let Ok(before) = before {
        // guard: a new writer keeps what the generation before names
        // without it: before.as_ref() -> None
        let _ = generation::sweep(vfs, dir, manifest, before.as_ref(), &[]); // the next sweep tries again
    }
}

/// Returns the manifest of the previous generation; `None` if there is none.
fn previous(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> Result<Option<Manifest>> {
    let names = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let before = names.iter().filter_map(|name| match names::parse(name) {
        Some(FileKind::Manifest(generation)) => Some(generation),
        _ => None,
    });
    let generation = before.filter(|&generation| generation < manifest.generation).max();
    generation.map(|generation| State::manifest_at(vfs, dir, generation)).transpose()
}

/// Creates the log with number `number` (step 5 above). It begins with copies of those batches of the last log, up to
/// `position`, that are not known to be durable. `commit` is the number of the next commit. Returns the log, and the
/// number of the first commit in it.
///
/// # Errors
/// Same as [`log::replay`] and [`OpenLog::create`].
pub(super) fn rewrite_tail(
    vfs: &dyn Vfs,
    dir: &Path,
    next: &Manifest,
    position: Option<Position>,
    number: u64,
    commit: u64,
) -> Result<(OpenLog, u64)> {
    let last = next.logged.as_ref().and_then(|logged| logged.logs.last().copied());
    let mut log = None;
    let mut first = commit;
    if let (Some(entry), Some(position)) = (last, position)
        && position.synced < position.batches
    {
        let from = Position { offset: position.synced, commit: 0, ..position };
        log::replay(vfs, dir, next, &entry, from, |_, commit, _, batch| {
            let log = match &mut log {
                Some(log) => log,
                none => {
                    first = commit;
                    none.insert(OpenLog::create(vfs, dir, next, number, commit)?)
                }
            };
            log.add_again(batch, commit);
            Ok(())
        })?;
    }
    let log = match log {
        Some(log) => log,
        None => OpenLog::create(vfs, dir, next, number, commit)?,
    };
    Ok((log, first))
}
