//! Batches: put, delete, commit.

use std::path::Path;
use std::sync::Arc;

use super::index::{Index, Shared};
use super::state::{State, open_segment};
use super::{commit, names};
use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, SEGMENTS_MAX, SegmentEntry};
use crate::format::sketches::Row;
use crate::key::Key;
use crate::params::Params;
use crate::segment::merge::{self, Input};
use crate::segment::records::{Kept, Records};
use crate::segment::rows::Rows;
use crate::segment::spilled::Room;
use crate::segment::{Built, Segment, build};
use crate::sketch::{Fingerprint, Sketch, pack};
use crate::sys::lock::{HeldLock, LockFailure};

/// Bytes of records held before they are written to a segment; see [`Writer::set_memory`].
const MEMORY: usize = 1 << 30;
/// Segments of a batch that are merged before there are more, where it is to become one.
const MERGED_AT: usize = 64;

/// The one writer of an index. What it was given is invisible until [`commit`](Writer::commit), and is gone if it
/// is dropped before.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    lock: Box<dyn HeldLock>,
    params: Params,
    params_digest: u128,
    memory: usize,
    one_segment: bool,
    records: Records,
    /// Records given before those, where a batch is to become one segment and they can wait in a scratch file.
    rows: Option<Rows>,
    /// The generation to come: the published one, and segments already written for this batch.
    next: Manifest,
    segments: Vec<Arc<Segment>>,
    /// Numbers of the segments written since the last commit.
    written: Vec<u64>,
    poisoned: bool,
    /// True once `CURRENT` may name the generation to come, so that nothing it names may be removed.
    pointed: bool,
    packed: Vec<u8>,
}

impl Writer {
    pub(super) fn new(index: &Index, lock_path: &Path) -> Result<Self> {
        let shared = Arc::clone(&index.shared);
        let lock = shared.vfs.lock(lock_path).map_err(|failure| match failure {
            LockFailure::Held(holder) => Error::Locked {
                path: lock_path.to_owned(),
                holder: holder.map_or(String::new(), |process| format!(" (process {process})")),
            },
            LockFailure::Io(error) => Error::io("lock", lock_path, error),
        })?;
        // What another writer committed since the index was opened is what this one goes on from.
        index.refresh()?;
        let state = Arc::clone(&shared.published.read());
        if state.manifest.read_only_compatible != 0 {
            return Err(Error::Unsupported {
                path: shared.dir.clone(),
                field: "read-only-compatible feature set",
                found: format!("{:#x}", state.manifest.read_only_compatible),
                supported: "it, and writes only without; use a newer version".into(),
            });
        }
        // A writer that was killed between renaming CURRENT and syncing the directory has left a generation that is
        // current but not durable. Make it so before anything that the one before names is removed.
        commit::sync_dir(&*shared.vfs, &shared.dir)?;
        commit::sweep(&*shared.vfs, &shared.dir, &state.manifest);
        let params = state.manifest.params.clone();
        Ok(Self {
            lock,
            params_digest: state.params_digest,
            memory: MEMORY,
            one_segment: false,
            records: Records::new(&params),
            rows: None,
            params,
            next: state.manifest.clone(),
            segments: state.segments.clone(),
            written: Vec::new(),
            poisoned: false,
            pointed: false,
            packed: Vec::new(),
            shared,
        })
    }

    /// How many bytes of records to hold in memory (1 GiB at first). A batch over that is written as several
    /// segments; it still becomes visible as one.
    pub fn set_memory(&mut self, bytes: usize) {
        self.memory = bytes;
    }

    /// Whether a batch becomes one segment, whatever its size (at first not). Then a commit takes longer, sorts or
    /// merges what is larger than the memory, in up to twice the bytes of [`set_memory`](Self::set_memory), and needs
    /// room on the disk for a second copy of the batch meanwhile; and the segment does not depend on the memory.
    pub fn set_one_segment(&mut self, one_segment: bool) {
        self.one_segment = one_segment;
    }

    /// Adds a document, or replaces the one with this key. An empty sketch is kept under its key and near nothing.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch made with other parameters; [`Error::Invalid`] or [`Error::Limit`]
    /// for a key the index cannot hold; [`Error::Io`], after which the writer is poisoned.
    pub fn put<'a>(&mut self, key: impl Into<Key<'a>>, sketch: &Sketch) -> Result<()> {
        sketch.check_comparable(&self.params, self.params_digest)?;
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        if let Some(minhash) = self.params.minhash {
            pack(sketch.signature(), minhash.signature_bits, &mut packed);
        }
        let kept = (!sketch.is_empty()).then(|| Kept {
            fingerprint: sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0),
            features: sketch.features(),
            signature: &packed,
            bottom: sketch.bottom(),
            modular: sketch.modular(),
        });
        let put = self.push(key.into(), kept);
        self.packed = packed;
        put
    }

    /// Adds a fingerprint made elsewhere, or replaces the document with this key.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an index that keeps more or other than fingerprints; otherwise as [`put`](Self::put).
    pub fn put_fingerprint<'a>(&mut self, key: impl Into<Key<'a>>, fingerprint: Fingerprint) -> Result<()> {
        let params = &self.params;
        let samples = params.bottom > 0 || params.modulus > 0;
        if params.simhash.is_none() || params.minhash.is_some() || samples {
            return Err(Error::Invalid(
                "raw fingerprints need an index that keeps simhash and no MinHash or samples".into(),
            ));
        }
        self.push(key.into(), Some(Kept { fingerprint: fingerprint.0, ..Kept::default() }))
    }

    /// Adds a document that was sketched elsewhere, from a [file of sketches](crate::format::sketches) made with the
    /// parameters `made_with`, or replaces the one with this key. `None` stands for an empty sketch.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_row<'a>(
        &mut self,
        key: impl Into<Key<'a>>,
        made_with: &Params,
        row: Option<Row<'_>>,
    ) -> Result<()> {
        if *made_with != self.params {
            self.params.check_same_sketch(made_with)?;
        }
        self.push(key.into(), row)
    }

    /// Removes the document with this key; nothing happens if there is none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete<'a>(&mut self, key: impl Into<Key<'a>>) -> Result<()> {
        self.check_sound()?;
        self.records.delete(key.into())?;
        self.flush_if_full()
    }

    fn push(&mut self, key: Key<'_>, kept: Option<Kept<'_>>) -> Result<()> {
        self.check_sound()?;
        self.records.push(key, kept)?;
        self.flush_if_full()
    }

    fn check_sound(&self) -> Result<()> {
        if self.poisoned { Err(Error::Poisoned { path: self.shared.dir.clone() }) } else { Ok(()) }
    }

    fn check_lock(&self) -> Result<()> {
        if self.lock.is_current() {
            return Ok(());
        }
        let path = names::lock(&self.shared.dir);
        Err(Error::Locked { path, holder: " (the lock file was replaced)".into() })
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.records.memory() < self.memory {
            return Ok(());
        }
        self.guarded(|writer| {
            if writer.one_segment && Rows::can_hold(&writer.params) {
                return writer.set_aside();
            }
            writer.flush()?;
            if writer.one_segment && writer.written.len() >= MERGED_AT {
                writer.merge_written()
            } else {
                Ok(())
            }
        })
    }

    /// Moves the records held to a scratch file.
    fn set_aside(&mut self) -> Result<()> {
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.memory, &scratch);
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => none.insert(Rows::new(room)?),
        };
        rows.append(&records, room)
    }

    /// Runs a step that touches the disk; its failure ends this writer.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_sound()?;
        let done = step(self);
        self.poisoned = done.is_err();
        done
    }

    /// Writes the records held as a segment of the generation to come.
    fn flush(&mut self) -> Result<()> {
        if self.rows.is_some() {
            return self.flush_rows();
        }
        if self.records.is_empty() {
            return Ok(());
        }
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        let keys: Vec<Key<'_>> = if self.segments.is_empty() { Vec::new() } else { records.keys().collect() };
        for (entry, segment) in self.next.segments.iter_mut().zip(&self.segments) {
            for &key in &keys {
                if let Some(ordinal) = segment.find(key)? {
                    entry.deleted.insert(ordinal);
                }
            }
        }
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        drop(keys);
        drop(records);
        self.add(built)
    }

    /// As [`flush`](Self::flush), for what waits in a scratch file too.
    fn flush_rows(&mut self) -> Result<()> {
        self.set_aside()?;
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.memory.saturating_mul(2), &scratch);
        let (entries, segments) = (&mut self.next.segments, &self.segments);
        let built = rows.build(&self.params, &*self.shared.vfs, &self.shared.dir, room, |key| {
            for (entry, segment) in entries.iter_mut().zip(segments) {
                if let Some(ordinal) = segment.find(Key::U64(key))? {
                    entry.deleted.insert(ordinal);
                }
            }
            Ok(())
        })?;
        self.add(built)
    }

    /// Adds a segment to the generation to come.
    fn add(&mut self, built: Built) -> Result<()> {
        if built.documents == 0 {
            return Ok(()); // nothing but deletes
        }
        if self.next.segments.len() as u64 >= u64::from(SEGMENTS_MAX) {
            let found = self.next.segments.len() as u64 + 1;
            return Err(Error::Limit { what: "segments of an index", limit: SEGMENTS_MAX.into(), found });
        }
        let entry = SegmentEntry {
            number: self.next.next_segment,
            length: built.length,
            digest: built.digest,
            salt: built.salt,
            documents: built.documents,
            deleted: roaring::RoaringBitmap::new(),
        };
        self.next.next_segment = next_number("number of a segment", entry.number)?;
        // A writer that lost its lock must not take a name from the one that has it.
        self.check_lock()?;
        self.written.push(entry.number);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        built.publish(&names::segment(dir, entry.number))?;
        self.segments.push(open_segment(vfs, dir, self.shared.access, &self.next, &entry)?);
        self.next.segments.push(entry);
        Ok(())
    }

    /// Merges the segments of this batch to one, and removes them.
    fn merge_written(&mut self) -> Result<()> {
        let written = std::mem::take(&mut self.written);
        // Whatever happens, they are known: they go when the writer goes, if not before.
        self.written.clone_from(&written);
        if !self.merge_all(|entry| written.contains(&entry.number))? {
            return Ok(());
        }
        self.written.retain(|number| !written.contains(number));
        for number in written {
            let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
        }
        Ok(())
    }

    /// Merges the chosen segments of the generation to come to one, in the place of the last. False where there is
    /// nothing to do, as the only one is whole.
    fn merge_all(&mut self, chosen: impl Fn(&SegmentEntry) -> bool) -> Result<bool> {
        let mut of_them: Vec<&SegmentEntry> =
            self.next.segments.iter().filter(|entry| chosen(entry)).collect();
        if of_them.len() < 2 && of_them.iter().all(|entry| entry.deleted.is_empty()) {
            return Ok(false);
        }
        of_them.retain(|entry| entry.deleted.len() < entry.documents);
        let inputs: Vec<Input<'_>> = (self.next.segments.iter().zip(&self.segments))
            .filter(|(entry, _)| of_them.iter().any(|one| one.number == entry.number))
            .map(|(entry, segment)| Input { segment, deleted: &entry.deleted })
            .collect();
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.memory.saturating_mul(2), &scratch);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let built = if inputs.is_empty() { None } else { Some(merge::merge(&inputs, vfs, dir, room)?) };
        let (entries, segments) = (&mut self.next.segments, &mut self.segments);
        (*entries, *segments) = std::mem::take(entries)
            .into_iter()
            .zip(std::mem::take(segments))
            .filter(|(entry, _)| !chosen(entry))
            .unzip();
        built.map_or(Ok(()), |built| self.add(built))?;
        Ok(true)
    }

    /// Merges all segments, and the batch with them, to one, and makes it visible and durable as
    /// [`commit`](Self::commit) does: the index answers as before. The segment is byte by byte the one that an index
    /// gets to which the live documents are given at once; without a live document there is none. An index that is
    /// one such segment already is left alone.
    ///
    /// Time is that of building it; memory up to twice the bytes of [`set_memory`](Self::set_memory), beside a
    /// thousandth of the files; on the disk there is room needed for a second copy meanwhile. The old files are removed
    /// once nothing names them, and stay for snapshots that have them open.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::Corrupt`] for a damaged segment, and [`Error::Limit`] for more than 2^30
    /// documents: the index stays as it was.
    pub fn compact(&mut self) -> Result<u64> {
        self.guarded(|writer| {
            writer.flush()?;
            writer.merge_all(|_| true)?;
            writer.publish()
        })
    }

    /// Makes the batch visible and durable, all of it or nothing, and returns the new generation. Without changes
    /// nothing is written.
    ///
    /// # Errors
    /// [`Error::Io`], for one when the disk is full: what was committed before stands, and the writer is poisoned.
    /// Almost always the batch is lost as a whole; if the very last steps failed, it may have become current as a
    /// whole all the same: [`Index::refresh`] and [`Snapshot::generation`](super::Snapshot::generation) tell.
    /// [`Error::Locked`] if the lock file was taken away.
    pub fn commit(&mut self) -> Result<u64> {
        self.guarded(|writer| {
            writer.flush()?;
            if writer.one_segment {
                writer.merge_written()?;
            }
            writer.publish()
        })
    }

    /// Makes the generation to come the current one.
    fn publish(&mut self) -> Result<u64> {
        let generation = self.shared.published.read().manifest.generation;
        let unchanged = self.shared.published.read().manifest == self.next;
        if unchanged {
            return Ok(generation);
        }
        self.check_lock()?;
        // A segment without a live document only costs probes.
        let (entries, segments) = (&mut self.next.segments, &mut self.segments);
        (*entries, *segments) = std::mem::take(entries)
            .into_iter()
            .zip(std::mem::take(segments))
            .filter(|(entry, _)| entry.deleted.len() < entry.documents)
            .unzip();
        self.next.generation = next_number("generation of an index", generation)?;

        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let current = commit::write_manifest(vfs, dir, &self.next)?;
        commit::sync_dir(vfs, dir)?;
        commit::point(vfs, dir, &current, &mut self.pointed)?;
        self.pointed = false;
        self.written.clear();
        let state = State::new(self.next.clone(), self.segments.clone());
        *self.shared.published.write() = Arc::new(state);
        commit::sweep(vfs, dir, &self.next);
        Ok(self.next.generation)
    }
}

/// The number after this one. A manifest can hold the largest only if somebody made it so.
fn next_number(what: &'static str, number: u64) -> Result<u64> {
    number.checked_add(1).ok_or(Error::Limit { what, limit: u64::MAX, found: number })
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Segments of a batch that was not committed. After a failure from which the new generation may or may not
        // have come out current, they stay, and the next writer sweeps what is not named.
        if self.pointed || !self.lock.is_current() {
            return;
        }
        let published = Arc::clone(&self.shared.published.read());
        self.segments.clear();
        for &number in &self.written {
            if published.manifest.segments.iter().all(|known| known.number != number) {
                let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
            }
        }
        if self.next.generation > published.manifest.generation {
            let _ = self.shared.vfs.unlink(&names::manifest(&self.shared.dir, self.next.generation));
        }
    }
}
