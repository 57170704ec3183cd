//! Finds the files of a damaged index, and the order in which their documents replace each other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use super::history::Position;
use super::names::{self, FileKind};
use super::recovery::read_current;
use super::state::State;
use super::{directory, log};
use crate::error::{Error, Result, corrupt};
use crate::format::header::{Header, Role};
use crate::format::log::{BatchView, LOG_HEAD_BYTES, decode_head};
use crate::format::manifest::{LogEntry, Manifest, SegmentEntry};
use crate::format::wire::Fault;
use crate::params::Params;
use crate::segment::Segment;
use crate::sys::{Access, Vfs};

/// How a segment relates to the manifest that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The manifest does not name the segment, because a merge or a commit had replaced it.
    Replaced,
    /// The manifest names the segment.
    Named,
    /// The segment is newer than the manifest, or there is no manifest.
    Newer,
}

/// A segment of a damaged index.
#[derive(Debug)]
pub(super) struct FoundSegment {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
    pub(super) opened: Result<Segment>,
    /// The number of its live documents in the manifest; 0 if the manifest does not name it.
    pub(super) live: u64,
    /// The ordinals of the documents that are known to be deleted or replaced.
    pub(super) deleted: RoaringBitmap,
}

/// A log of a damaged index.
#[derive(Debug)]
pub(super) struct FoundLog {
    pub(super) entry: LogEntry,
    /// Whether the log has damage that hides some of its batches.
    pub(super) is_damaged: bool,
}

/// The files of a damaged index from which documents can be saved.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The newest manifest that can be read.
    pub(super) manifest: Option<Manifest>,
    pub(super) params: Params,
    /// A manifest with the UUID and the parameters of the index, by which its logs are read.
    pub(super) source: Manifest,
    /// The segments; the documents of a segment replace those of an earlier one.
    pub(super) segments: Vec<FoundSegment>,
    /// The logs, oldest first. Their batches replace documents of segments.
    pub(super) logs: Vec<FoundLog>,
    /// The last commit up to which all deletions and replacements are known; `None` if all of them are known.
    pub(super) known_until: Option<u64>,
    /// A commit before which batches of logs may be missing; 0 if none are.
    pub(super) hidden_before: u64,
}

/// The numbers in the names of the files in a directory, ascending.
#[derive(Default)]
struct Numbers {
    manifests: Vec<u64>,
    segments: Vec<u64>,
    logs: Vec<u64>,
}

impl Numbers {
    fn list(vfs: &dyn Vfs, dir: &Path) -> Result<Self> {
        let mut numbers = Self::default();
        for name in vfs.list(dir).map_err(|e| Error::io("list", dir, e))? {
            match names::parse(&name) {
                Some(FileKind::Manifest(generation)) => numbers.manifests.push(generation),
                Some(FileKind::Segment(number)) => numbers.segments.push(number),
                Some(FileKind::Log(number)) => numbers.logs.push(number),
                _ => {}
            }
        }
        for of_kind in [&mut numbers.manifests, &mut numbers.segments, &mut numbers.logs] {
            of_kind.sort_unstable();
        }
        Ok(numbers)
    }
}

impl Evidence {
    /// Finds the files of the index at `dir`. Returns `None` if neither a manifest nor a segment can be read. Adds the
    /// problems of `CURRENT` and of manifests to `problems`.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be listed.
    pub(super) fn find(vfs: &dyn Vfs, dir: &Path, problems: &mut Vec<Error>) -> Result<Option<Self>> {
        let numbers = Numbers::list(vfs, dir)?;
        let (manifest, unread) = match State::load_manifest(vfs, dir) {
            Ok(manifest) => (Some(manifest), None),
            Err(error) => {
                problems.push(error);
                let (manifest, unread) = newest_manifest(vfs, dir, &numbers.manifests, problems);
                (manifest, Some(unread))
            }
        };
        let mut segments = named_segments(vfs, dir, manifest.as_ref());
        let next = manifest.as_ref().map_or(0, |manifest| manifest.next_segment);
        let logged = manifest.as_ref().and_then(|manifest| manifest.logged.as_ref());
        let next_log = logged.map_or(0, |logged| logged.next_log);
        let has_newer = numbers.segments.last() >= Some(&next) || numbers.logs.last() >= Some(&next_log);
        let is_current =
            manifest.is_some() && unread.as_ref().is_none_or(|unread| unread.is_empty() && !has_newer);
        let unread = unread.unwrap_or_default();
        // guard: segments that are newer than the manifest are saved
        if !is_current {
            let newer = numbers.segments.iter().filter(|&&number| number >= next);
            segments.extend(newer.map(|&number| found(vfs, dir, number, Origin::Newer, None)));
        }
        if segments.iter().any(|segment| segment.origin == Origin::Named && segment.opened.is_err()) {
            let mut replaced = replaced_segments(vfs, dir, &numbers, manifest.as_ref());
            replaced.append(&mut segments);
            segments = replaced;
        }
        let of_segment = || segments.iter().find_map(|segment| segment.opened.as_ref().ok());
        let params = match (&manifest, of_segment()) {
            (Some(manifest), _) => manifest.params.clone(),
            (None, Some(segment)) => segment.params().clone(),
            (None, None) => return Ok(None),
        };
        let uuid = match (&manifest, read_current(vfs, dir)) {
            (Some(manifest), _) => Some(manifest.uuid),
            (None, Ok(current)) => Some(current.header.salt.get()),
            (None, Err(_)) => None,
        };
        let entries = log_entries(vfs, dir, &numbers.logs, manifest.as_ref(), is_current, uuid, &params);
        let uuid = uuid.or(entries.iter().find_map(|(_, uuid)| *uuid)).unwrap_or(0);
        let source = Manifest { uuid, ..directory::new_manifest(dir, params.clone())? };
        let mut evidence = Self {
            manifest,
            params,
            source,
            segments,
            logs: Vec::new(),
            known_until: None,
            hidden_before: 0,
        };
        let batches = evidence.check_logs(vfs, dir, entries.into_iter().map(|(entry, _)| entry));
        // A generation whose manifest cannot be read may have deleted documents, unless it only began a log.
        let begins_log = |generation: &u64| {
            evidence.logs.iter().any(|log| log.entry.first == *generation && !log.is_damaged)
        };
        let generation = evidence.manifest.as_ref().map_or(0, |manifest| manifest.generation);
        // Each number between the manifests is that of a batch.
        let last = unread.iter().copied().max().unwrap_or(if is_current { 0 } else { u64::MAX });
        let is_read = |commit: u64| unread.contains(&commit) || batches.contains(&commit);
        let is_complete = is_current
            || !unread.is_empty() && unread.iter().all(begins_log) && (generation + 1..last).all(is_read);
        if !is_complete {
            evidence.hidden_before = last;
        }
        if evidence.manifest.is_none() || !is_complete {
            evidence.is_known_until(generation);
        }
        Ok(Some(evidence))
    }

    fn is_known_until(&mut self, commit: u64) {
        self.known_until = Some(self.known_until.map_or(commit, |known| known.min(commit)));
    }

    /// Reads all logs once, to know before documents are saved which batches cannot be read.
    /// Returns the commit numbers of all batches.
    fn check_logs(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        entries: impl Iterator<Item = LogEntry>,
    ) -> HashSet<u64> {
        let mut batches = HashSet::new();
        for entry in entries {
            let before = entry.first.saturating_sub(1);
            let mut last = before;
            let from = Position::before(entry.number, before);
            let read = log::replay(vfs, dir, &self.source, &entry, from, |path, commit, at, batch| {
                check_operations(&self.source.params, path, at, batch)?;
                last = commit;
                batches.insert(commit);
                Ok(())
            });
            // A manifest names a log only after its first batch is durable.
            let is_damaged = read.is_err() || last == before;
            if is_damaged {
                self.is_known_until(last);
            }
            self.logs.push(FoundLog { entry, is_damaged });
        }
        batches
    }
}

/// Returns the error of the first operation of a batch that cannot be decoded. `at` is the offset of the payload.
pub(super) fn check_operations(params: &Params, path: &Path, at: u64, batch: &BatchView<'_>) -> Result<()> {
    let mut operations = batch.operations(params);
    let fault = |mut fault: Fault| {
        fault.offset += at;
        corrupt(path, "log", 0, fault)
    };
    while operations.next_operation().map_err(fault)?.is_some() {}
    Ok(())
}

/// Returns the newest manifest that can be read, and the newer generations, whose manifests cannot be read.
fn newest_manifest(
    vfs: &dyn Vfs,
    dir: &Path,
    generations: &[u64],
    problems: &mut Vec<Error>,
) -> (Option<Manifest>, Vec<u64>) {
    let mut unread: Vec<u64> =
        read_current(vfs, dir).iter().map(|current| current.generation.get()).collect();
    for &generation in generations.iter().rev() {
        match State::manifest_at(vfs, dir, generation) {
            Ok(manifest) => {
                unread.retain(|&unread| unread > generation);
                return (Some(manifest), unread);
            }
            Err(error) => {
                problems.push(error);
                unread.push(generation);
            }
        }
    }
    (None, unread)
}

fn found(
    vfs: &dyn Vfs,
    dir: &Path,
    number: u64,
    origin: Origin,
    entry: Option<&SegmentEntry>,
) -> FoundSegment {
    let path = names::segment(dir, number);
    // Reads the file instead of mapping it, so that a failing disk causes an error and does not end the process.
    let opened = Segment::open_with(vfs, &path, Access::Read);
    let live = entry.map_or(0, |entry| entry.documents - entry.deleted.len());
    let deleted = entry.map_or_else(RoaringBitmap::new, |entry| entry.deleted.clone());
    FoundSegment { path, origin, opened, live, deleted }
}

fn named_segments(vfs: &dyn Vfs, dir: &Path, manifest: Option<&Manifest>) -> Vec<FoundSegment> {
    let entries = manifest.iter().flat_map(|manifest| &manifest.segments);
    let named = entries.map(|entry| {
        let segment = found(vfs, dir, entry.number, Origin::Named, Some(entry));
        // A segment of another history of this index has other deletes.
        let is_another = segment.opened.as_ref().is_ok_and(|segment| segment.digest() != entry.digest);
        let opened = match segment.opened {
            Ok(_) if is_another => Err(Error::Invalid(format!(
                "{}: not the segment that the manifest names",
                segment.path.display()
            ))),
            opened => opened,
        };
        FoundSegment { opened, ..segment }
    });
    named.collect()
}

/// Returns the segments that `manifest` does not name, because a merge or a commit had replaced them. Older manifests tell
/// which of their documents were deleted.
fn replaced_segments(
    vfs: &dyn Vfs,
    dir: &Path,
    numbers: &Numbers,
    manifest: Option<&Manifest>,
) -> Vec<FoundSegment> {
    let Some(manifest) = manifest else { return Vec::new() };
    let older = numbers.manifests.iter().rev().filter(|&&generation| generation < manifest.generation);
    let older: Vec<Manifest> =
        older.filter_map(|&generation| State::manifest_at(vfs, dir, generation).ok()).collect();
    let is_named = |number: &u64| manifest.segments.iter().any(|entry| entry.number == *number);
    let replaced =
        numbers.segments.iter().filter(|number| **number < manifest.next_segment && !is_named(number));
    let entry_of = |number: u64| {
        older.iter().flat_map(|manifest| &manifest.segments).find(|entry| entry.number == number)
    };
    replaced.map(|&number| found(vfs, dir, number, Origin::Replaced, entry_of(number))).collect()
}

/// Returns the entries of the logs, each with the UUID in the head of the log: the logs that the manifest names, and the
/// newer ones unless the manifest is the current one.
fn log_entries(
    vfs: &dyn Vfs,
    dir: &Path,
    numbers: &[u64],
    manifest: Option<&Manifest>,
    is_current: bool,
    uuid: Option<u128>,
    params: &Params,
) -> Vec<(LogEntry, Option<u128>)> {
    let logged = manifest.and_then(|manifest| manifest.logged.as_ref());
    let named = logged.iter().flat_map(|logged| &logged.logs).map(|entry| (*entry, uuid));
    let next = logged.map_or(0, |logged| logged.next_log);
    let after = manifest.map_or(0, |manifest| manifest.generation) + 1;
    let newer = numbers.iter().filter(|&&number| number >= next && !is_current).map(|&number| {
        let head = || {
            let file = vfs.open(&names::log(dir, number)).ok()?;
            let mut head = vec![0; LOG_HEAD_BYTES as usize];
            file.read_exact_at(&mut head, 0).ok()?;
            let uuid = uuid.or_else(|| Some(Header::read(&head, Role::Log).ok()?.salt.get()))?;
            Some((decode_head(&head, uuid, params, number).ok()?, uuid))
        };
        // If the head cannot be read, reading the log reports the reason.
        let (first, uuid) = head().map_or((after, None), |(first, uuid)| (first, Some(uuid)));
        (LogEntry { number, first, length: LOG_HEAD_BYTES, grows: true }, uuid)
    });
    named.chain(newer).collect()
}
