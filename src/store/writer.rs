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
use crate::segment::records::{Kept, Records};
use crate::segment::{Segment, build};
use crate::sketch::{Fingerprint, Sketch, pack};
use crate::sys::lock::{FileLock, LockFailure};

/// Bytes of records held before they are written to a segment; see [`Writer::set_memory`].
const MEMORY: usize = 1 << 30;

/// The one writer of an index. What it was given is invisible until [`commit`](Writer::commit), and is gone if it
/// is dropped before.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    lock: FileLock,
    params: Params,
    params_digest: u128,
    memory: usize,
    records: Records,
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
            records: Records::new(&params),
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
        self.guarded(Self::flush)
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
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let built = build::build(&records, vfs, dir)?;
        drop(keys);
        drop(records);
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
        built.publish(&names::segment(dir, entry.number))?;
        self.segments.push(open_segment(vfs, dir, &self.next, &entry)?);
        self.next.segments.push(entry);
        Ok(())
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
            let generation = writer.shared.published.read().manifest.generation;
            let unchanged = writer.shared.published.read().manifest == writer.next;
            if unchanged {
                return Ok(generation);
            }
            writer.check_lock()?;
            // A segment without a live document only costs probes.
            let (entries, segments) = (&mut writer.next.segments, &mut writer.segments);
            (*entries, *segments) = std::mem::take(entries)
                .into_iter()
                .zip(std::mem::take(segments))
                .filter(|(entry, _)| entry.deleted.len() < entry.documents)
                .unzip();
            writer.next.generation = next_number("generation of an index", generation)?;

            let (vfs, dir) = (&*writer.shared.vfs, &writer.shared.dir);
            let current = commit::write_manifest(vfs, dir, &writer.next)?;
            commit::point(vfs, dir, &current, &mut writer.pointed)?;
            writer.pointed = false;
            writer.written.clear();
            let state = State::new(writer.next.clone(), writer.segments.clone());
            *writer.shared.published.write() = Arc::new(state);
            commit::sweep(vfs, dir, &writer.next);
            Ok(writer.next.generation)
        })
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
