//! Copies indexes by linking their files, and merges several indexes (called shards) into one.

use std::io::ErrorKind;
use std::path::Path;

use roaring::RoaringBitmap;

use super::finished::link_or_copy;
use super::index::Index;
use super::snapshot::Snapshot;
use super::{directory, idf, names};
use crate::error::{Error, Result};
use crate::extsort::Merge;
use crate::format::manifest::{Logged, Manifest, SegmentEntry};
use crate::key::KeyBuf;
use crate::params::{ParamDifference, Params};
use crate::segment::keys::LiveKeys;
use crate::segment::merge::{self, MergeInput};
use crate::segment::spilled::SpillBudget;
use crate::segment::{BuiltSegment, Segment, build};

/// Maximum number of attempts to copy an index while a concurrent writer removes its files.
const ATTEMPTS: usize = 8;

/// How [`Index::merge`] handles a key that has different records in several shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Returns an error.
    #[default]
    Refuse,
    /// Keeps the record of the first of these shards, in the order in which the caller lists them.
    First,
    /// Keeps the record of the last of these shards, in the order in which the caller lists them.
    Last,
}

/// The result of [`Index::merge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedShards {
    /// Number of documents in the new index.
    pub documents: u64,
    /// Number of keys that several shards contain with the same record.
    pub repeated: u64,
    /// Number of keys that several shards contain with different records.
    pub conflicts: u64,
}

pub(super) fn entry_of(number: u64, built: &BuiltSegment) -> SegmentEntry {
    SegmentEntry {
        number,
        length: built.length,
        digest: built.digest,
        salt: built.salt,
        documents: built.documents,
        deleted: RoaringBitmap::new(),
    }
}

impl Index {
    /// Copies the current state of the index to a new directory. Segments are linked if the file system supports it, so
    /// a copy takes little time and space. Documents that are only in logs are written to a segment of the copy. The
    /// copy is atomic. A writer may continue during the copy. Returns the number of the copied commit.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the path exists and is not an empty directory, [`Error::Io`].
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<u64> {
        let path = path.as_ref();
        let vfs = &*self.shared.vfs;
        directory::check_free(vfs, path)?;
        for attempt in 1.. {
            self.refresh()?;
            let snapshot = self.snapshot();
            match directory::make(vfs, path, |dir| self.fill_copy(&snapshot, dir)) {
                // A writer removed a segment after a merge, before the segment was linked. So the copy starts again.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
                done => return done.map(|()| snapshot.generation()),
            }
        }
        unreachable!("the last attempt returns")
    }

    fn fill_copy(&self, snapshot: &Snapshot, dir: &Path) -> Result<Manifest> {
        let (vfs, state) = (&*self.shared.vfs, snapshot.state());
        let mut manifest = Manifest::clone(&state.manifest);
        for (entry, deleted) in manifest.segments.iter_mut().zip(&state.view.deleted) {
            let number = entry.number;
            link_or_copy(vfs, &names::segment(&self.shared.dir, number), &names::segment(dir, number))?;
            entry.deleted.clone_from(deleted);
        }
        if let Some(digest) = idf::named_by(&manifest.params) {
            link_or_copy(vfs, &names::idf(&self.shared.dir, digest), &names::idf(dir, digest))?;
        }
        if state.view.logged() > 0 {
            let built = build::build(&state.view.logged_records()?, vfs, dir)?;
            let number = manifest.next_segment;
            let next = number.checked_add(1);
            let limit = Error::Limit { what: "number of a segment", limit: u64::MAX, found: number };
            manifest.next_segment = next.ok_or(limit)?;
            manifest.segments.push(entry_of(number, &built));
            built.publish(&names::segment(dir, number))?;
        }
        manifest.segments.retain(|entry| entry.deleted.len() < entry.documents);
        manifest.generation = state.view.commit;
        manifest.now = state.view.now();
        // The copy is an independent index, so it gets a new UUID.
        // guard: a copy is an index of its own
        manifest.uuid = directory::new_uuid(dir)?;
        if let Some(logged) = &mut manifest.logged {
            logged.logs.clear();
        }
        if let Some(payload) = &state.view.payload {
            let logged = manifest.logged.get_or_insert_with(|| Logged { next_log: 1, ..Logged::default() });
            logged.payload = Some(payload.to_vec());
        }
        Ok(manifest)
    }

    /// Merges indexes as [`merge_on_threads`](Self::merge_on_threads) does, on all cores.
    ///
    /// # Errors
    /// Same as [`merge_on_threads`](Self::merge_on_threads).
    pub fn merge(
        path: impl AsRef<Path>,
        shards: &[Index],
        on_conflict: OnConflict,
        memory: usize,
    ) -> Result<MergedShards> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::merge_on_threads(path, shards, on_conflict, memory, threads)
    }

    /// Merges indexes with the same parameters into a new index with a single segment. This segment is identical to the
    /// one that a single index with all the documents has after [compaction](Self::compact). `memory` is the budget in
    /// bytes for keys and tables, `threads` the number of threads. The shards are not changed.
    ///
    /// Two records are equal if [`Snapshot::get`] returns equal values for them. Indexes that store bands but no
    /// signatures cannot compare records, so every key that is in several shards is a conflict.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the path exists and is not an empty directory; [`Error::ParamsDiffer`];
    /// [`Error::Invalid`] if there are no shards, or if a conflict is refused (the error names the key); [`Error::Io`],
    /// [`Error::Corrupt`].
    pub fn merge_on_threads(
        path: impl AsRef<Path>,
        shards: &[Index],
        on_conflict: OnConflict,
        memory: usize,
        threads: usize,
    ) -> Result<MergedShards> {
        let path = path.as_ref();
        let Some(first) = shards.first() else { return Err(Error::Invalid("no shards to merge".into())) };
        let (vfs, params) = (&*first.shared.vfs, first.params());
        for shard in shards {
            check_same_params((first.path(), &params), (shard.path(), &shard.params()))?;
        }
        directory::check_free(vfs, path)?;
        let snapshots: Vec<Snapshot> = shards.iter().map(Index::snapshot).collect();
        // The time of the new index is the latest time of all shards.
        let now = snapshots.iter().filter_map(Snapshot::now).max();
        let mut merged = MergedShards::default();
        directory::make(vfs, path, |dir| {
            let left_out = conflicts(shards, &snapshots, on_conflict, now, &mut merged)?;
            let segments: Vec<&Segment> = snapshots
                .iter()
                .flat_map(|snapshot| snapshot.segments().map(|(segment, _)| segment))
                .collect();
            let inputs: Vec<MergeInput<'_>> = (segments.into_iter().zip(&left_out))
                .filter(|(segment, deleted)| deleted.len() < segment.documents())
                .map(|(segment, deleted)| MergeInput { segment, deleted })
                .collect();
            let mut manifest =
                Manifest { next_segment: 2, now, ..directory::new_manifest(path, params.clone())? };
            if let Some(digest) = idf::named_by(&params) {
                link_or_copy(vfs, &names::idf(first.path(), digest), &names::idf(dir, digest))?;
            }
            if !inputs.is_empty() {
                let scratch = vfs.scratch(dir);
                let budget = SpillBudget::new(memory, &scratch).on_threads(threads);
                let built = merge::merge(&inputs, vfs, dir, budget)?;
                inputs.iter().try_for_each(|input| input.segment.check_map())?;
                merged.documents = built.documents;
                manifest.segments.push(entry_of(1, &built));
                built.publish(&names::segment(dir, 1))?;
            }
            Ok(manifest)
        })?;
        Ok(merged)
    }
}

/// Returns an error if the parameters differ. The error names both paths and the first parameter that differs.
fn check_same_params((path, params): (&Path, &Params), (other, found): (&Path, &Params)) -> Result<()> {
    // The list of differences names an index by the last component of its path, or by the full path if both are equal.
    let last = [path, other].map(|path| path.file_name().map(Path::new));
    let names = match last {
        [Some(mine), Some(theirs)] if mine != theirs => [mine, theirs],
        _ => [path, other],
    };
    let names = names.map(|path| path.display().to_string());
    let all = params.differences(found);
    let Some(first) = all.first() else { return Ok(()) };
    Err(Error::ParamsDiffer {
        path: path.to_owned(),
        other: other.to_owned(),
        first: Box::new((first.field, first.values.clone())),
        differences: ParamDifference::first_in_words(&all, [&names[0], &names[1]]),
    })
}

/// Returns a set for each segment of all snapshots, in order: the ordinals that are left out of the merged index.
fn conflicts(
    shards: &[Index],
    snapshots: &[Snapshot],
    on_conflict: OnConflict,
    now: Option<u64>,
    merged: &mut MergedShards,
) -> Result<Vec<RoaringBitmap>> {
    let all: Vec<(usize, &Segment, &RoaringBitmap)> = (snapshots.iter().enumerate())
        .flat_map(|(of, snapshot)| snapshot.segments().map(move |(segment, deleted)| (of, segment, deleted)))
        .collect();
    let mut left_out: Vec<RoaringBitmap> = all.iter().map(|(_, _, deleted)| (*deleted).clone()).collect();
    for ((of, segment, _), left_out) in all.iter().zip(&mut left_out) {
        let age = snapshots[*of].params().expire_after;
        if let Some(expired) = now.zip(age).and_then(|(now, age)| now.checked_sub(age)) {
            segment.stamped_between(None, expired, |ordinal| {
                left_out.insert(ordinal);
            })?;
        }
    }
    // Without overlap, for example of shards by time, no key is in two segments.
    let mut spans: Vec<(KeyBuf, KeyBuf)> = Vec::new();
    for (_, segment, _) in all.iter().filter(|(_, segment, _)| segment.documents() > 0) {
        spans.push((segment.key(0)?, segment.key(segment.documents() as u32 - 1)?));
    }
    spans.sort_unstable();
    if spans.is_sorted_by(|span, next| span.1 < next.0) {
        return Ok(left_out);
    }
    let gone = left_out.clone();
    let sources = all.iter().zip(&gone).map(|((_, segment, _), gone)| LiveKeys::new(segment, Some(gone)));
    // The segments are in the order of the shards, so the merge returns equal keys in the order of the shards.
    let mut merge = Merge::new(sources, |a, b| a.0.cmp(&b.0));
    let mut kept: Option<(KeyBuf, usize, u32)> = None;
    while let Some((place, (key, ordinal))) = merge.next()? {
        let (key, ordinal) = (key.clone(), *ordinal);
        let Some((known, of, other)) = &kept else {
            kept = Some((key, place, ordinal));
            continue;
        };
        if *known != key {
            kept = Some((key, place, ordinal));
            continue;
        }
        let (a, b) = (all[*of].0, all[place].0);
        let comparable = snapshots[a].params().minhash.is_none_or(|minhash| minhash.signature_bits > 0);
        let same = comparable && snapshots[a].get(key.as_key())? == snapshots[b].get(key.as_key())?;
        if same {
            merged.repeated += 1;
        } else {
            merged.conflicts += 1;
        }
        if same || on_conflict == OnConflict::First {
            left_out[place].insert(ordinal);
        } else if on_conflict == OnConflict::Last {
            left_out[*of].insert(*other);
            kept = Some((key, place, ordinal));
        } else {
            return Err(Error::Invalid(format!(
                "the key `{}` is in {} and in {} with different records; say which of them counts (--on-conflict first or last)",
                key.to_string().escape_debug(),
                shards[a].path().display(),
                shards[b].path().display()
            )));
        }
    }
    Ok(left_out)
}
