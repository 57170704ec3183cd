//! Batches: put, delete, admit, commit.
//!
//! A small batch is a record of the log and rows of the memtable. When the memtable is full it becomes a segment;
//! what is larger than a memtable is collected and becomes segments at once, without a log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::index::{Index, Shared};
use super::log::{self, OpenLog, Position};
use super::memtable::Memtable;
use super::merge_plan::{self, Size};
use super::merging::{Merged, Merging, Work};
use super::nearest::nearest;
use super::query::Hit;
use super::snapshot::Snapshot;
use super::state::{State, View, open_segment};
use super::{commit, names};
use crate::error::{Error, Result};
use crate::format::log::{Batch, LOG_HEAD_BYTES, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX};
use crate::format::manifest::{LogEntry, Logged, Manifest, SEGMENTS_MAX, SegmentEntry};
use crate::format::sketches::Row;
use crate::key::Key;
use crate::params::Params;
use crate::segment::merge::{self, Input};
use crate::segment::records::{Kept, Records};
use crate::segment::rows::Rows;
use crate::segment::spilled::Room;
use crate::segment::{Built, Scratch, build};
use crate::sketch::{Fingerprint, Sketch, pack};
use crate::sys::lock::{HeldLock, LockFailure};

/// Bytes of records held before they are written to a segment; see [`Writer::set_memory`].
const MEMORY: usize = 1 << 30;
/// Segments of a batch that are merged before there are more, where it is to become one.
const MERGED_AT: usize = 64;
/// Rows of a memtable that becomes a segment.
const MEMTABLE_ROWS: u32 = 1 << 18;
/// Bytes of a memtable that becomes a segment.
const MEMTABLE_BYTES: usize = 64 << 20;
/// Bytes of commits that are held in memory where nothing is promised of them.
const HELD: usize = 1 << 20;
/// Logs of writers that ended with little in them; one more, and their rows become a segment.
const LOGS: usize = 16;

/// What a commit promises when it returns. All of them are atomic, and visible to this process's snapshots at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing: up to a megabyte is held in memory until a commit that promises more, [`Writer::sync`], or the writer's
    /// end.
    None,
    /// It survives the end of the process, however that comes, and other processes see it; not that of the machine. One
    /// later [`Writer::sync`] makes many such commits durable: a group commit.
    Batch,
    /// It survives the machine.
    #[default]
    Sync,
}

/// What [`Writer::admit`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admitted {
    /// Nothing is near it; it was added.
    New,
    /// There was a document of this key; it was replaced, whatever is near.
    Known,
    /// This is the nearest. The document was added all the same, unless duplicates are dropped
    /// ([`Writer::set_drop_duplicates`]).
    Duplicate(Hit),
}

/// The one writer of an index. What it was given is invisible until [`commit`](Writer::commit), and is gone if it
/// is dropped before.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "choices of the caller, and what is known of the files")]
pub struct Writer {
    shared: Arc<Shared>,
    lock: Box<dyn HeldLock>,
    params: Params,
    params_digest: u128,
    memory: usize,
    one_segment: bool,
    logged: bool,
    durability: Durability,
    drop_duplicates: bool,
    /// Records of a batch that will be segments at once.
    records: Records,
    /// Records given before those, where a batch is to become one segment and they can wait in a scratch file.
    rows: Option<Rows>,
    /// What is live, with the batch.
    view: View,
    /// The operations of the batch whose rows are in the memtable.
    batch: Batch,
    /// This writer's log, once it has one.
    log: Option<OpenLog>,
    /// The one before, as long as what is in it is in no published segment.
    retired: Option<OpenLog>,
    /// The generation to come: the published one, and segments already written for this batch. The deletes of its
    /// entries are those of the view when it is published.
    next: Manifest,
    /// True where the generation to come has other documents in segments than the published one.
    changed: bool,
    /// Numbers of the segments written since the last commit.
    written: Vec<u64>,
    background: bool,
    rate: Option<u64>,
    merging: Option<Merging>,
    merge_failure: Option<Error>,
    poisoned: bool,
    /// True once `CURRENT` may name the generation to come, so that nothing it names may be removed.
    pointed: bool,
    /// True where the generation to come has commits that are not durable without it.
    owes_sync: bool,
    /// True where `CURRENT` is known to be durable as it is.
    settled: bool,
    packed: Vec<u8>,
    scratch: Scratch,
}

/// The generation before this one, if its manifest is there.
fn previous(shared: &Shared, manifest: &Manifest) -> Result<Option<Manifest>> {
    let names = shared.vfs.list(&shared.dir).map_err(|e| Error::io("list", &shared.dir, e))?;
    let before = names.iter().filter_map(|name| match names::parse(name) {
        Some(names::Name::Manifest(generation)) => Some(generation),
        _ => None,
    });
    let generation = before.filter(|&generation| generation < manifest.generation).max();
    generation.map(|generation| State::manifest_at(&*shared.vfs, &shared.dir, generation)).transpose()
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
        // Nobody else refreshes in between: it would take this writer's rows for those of an attempt that failed.
        let refreshing = shared.refreshing.lock();
        index.refresh_alone()?;
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
        // current but not durable. So what the one before names stays, until a sync.
        // Where it cannot be read, nothing is removed.
        if let Ok(before) = previous(&shared, &state.manifest) {
            commit::sweep(&*shared.vfs, &shared.dir, &state.manifest, before.as_ref());
        }
        let params = state.manifest.params.clone();
        shared.writing.store(true, Ordering::Release);
        drop(refreshing);
        Ok(Self {
            lock,
            params_digest: state.params_digest,
            memory: MEMORY,
            one_segment: false,
            logged: true,
            durability: Durability::Sync,
            drop_duplicates: false,
            records: Records::new(&params),
            rows: None,
            view: state.view.clone(),
            batch: Batch::default(),
            log: None,
            retired: None,
            params,
            next: Manifest::clone(&state.manifest),
            changed: false,
            written: Vec::new(),
            background: true,
            rate: None,
            merging: None,
            merge_failure: None,
            poisoned: false,
            pointed: false,
            owes_sync: false,
            settled: false,
            packed: Vec::new(),
            scratch: Scratch::default(),
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

    /// Whether small batches go to the log (at first so), where a commit costs one sync, and become segments when there
    /// are some 260,000 documents. Otherwise each commit makes a segment: right for few large batches.
    pub fn set_logged(&mut self, logged: bool) {
        self.logged = logged;
    }

    /// What commits promise from now on, as far as they go to the log; those that make a segment are always durable.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Whether [`admit`](Self::admit) leaves out what it finds to be a duplicate; at first it does not.
    pub fn set_drop_duplicates(&mut self, drop: bool) {
        self.drop_duplicates = drop;
    }

    /// Whether segments are merged on a thread of their own while this writer goes on (at first so); otherwise only by
    /// [`merge_step`](Self::merge_step) and [`compact`](Self::compact).
    pub fn set_background_merges(&mut self, background: bool) {
        self.background = background;
    }

    /// How fast merges in the background may write, in bytes a second; `None`, as at first, is as fast as they can.
    pub fn set_merge_rate(&mut self, rate: Option<u64>) {
        self.rate = rate;
    }

    /// Why merges in the background stopped, if they did: a full disk, or damage of a segment. The index is as it was,
    /// with more segments than it should have. Taking the failure lets them begin again.
    pub fn take_merge_failure(&mut self) -> Option<Error> {
        self.merge_failure.take()
    }

    /// Adds a document, or replaces the one with this key. An empty sketch is kept under its key and near nothing.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a sketch made with other parameters; [`Error::Invalid`] or [`Error::Limit`]
    /// for a key the index cannot hold; [`Error::Io`], after which the writer is poisoned.
    pub fn put<'a>(&mut self, key: impl Into<Key<'a>>, sketch: &Sketch) -> Result<()> {
        self.put_sketch(key.into(), sketch, false)
    }

    fn put_sketch(&mut self, key: Key<'_>, sketch: &Sketch, is_new: bool) -> Result<()> {
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
        let put = self.push(key, kept, is_new);
        self.packed = packed;
        put
    }

    /// As [`put`](Self::put), and tells whether there was a document of this key.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`Error::Corrupt`].
    pub fn upsert<'a>(&mut self, key: impl Into<Key<'a>>, sketch: &Sketch) -> Result<bool> {
        let key = key.into();
        let known = self.contains(key)?;
        self.put_sketch(key, sketch, !known)?;
        Ok(known)
    }

    /// Adds a fingerprint made elsewhere, or replaces the document with this key.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an index that keeps more or other than fingerprints; otherwise as [`put`](Self::put).
    pub fn put_fingerprint<'a>(&mut self, key: impl Into<Key<'a>>, fingerprint: Fingerprint) -> Result<()> {
        self.check_raw()?;
        self.push(key.into(), Some(Kept { fingerprint: fingerprint.0, ..Kept::default() }), false)
    }

    fn check_raw(&self) -> Result<()> {
        let params = &self.params;
        let samples = params.bottom > 0 || params.modulus > 0;
        if params.simhash.is_none() || params.minhash.is_some() || samples {
            return Err(Error::Invalid(
                "raw fingerprints need an index that keeps simhash and no MinHash or samples".into(),
            ));
        }
        Ok(())
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
        self.push(key.into(), row, false)
    }

    /// Looks up and adds as one step: the nearest document to this one, if any is within the radius of the index's
    /// parameters or resembles it by 0.8 or more, as [`Snapshot::near`] asks; of several that are as near, the one
    /// of the smallest key. What this batch added before is found too. A document of the same key is no duplicate of
    /// itself: it is replaced.
    ///
    /// ```
    /// use twindex::{Admitted, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let index = Index::create(dir.path().join("x"), Params::builder().words(2).simhash(3).build()?)?;
    /// let sketcher = index.sketcher()?;
    /// let mut writer = index.writer()?;
    /// let rose = sketcher.sketch("a rose is a rose is a rose")?;
    /// assert_eq!(writer.admit("a", &rose)?, Admitted::New);
    /// match writer.admit("b", &sketcher.sketch("A rose is a rose is a rose!")?)? {
    ///     Admitted::Duplicate(of) => assert_eq!((of.key.to_string(), of.distance), ("a".into(), Some(0))),
    ///     other => panic!("{other:?}"),
    /// }
    /// assert_eq!(writer.admit("a", &rose)?, Admitted::Known);
    /// writer.commit()?;
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`Error::Corrupt`].
    pub fn admit<'a>(&mut self, key: impl Into<Key<'a>>, sketch: &Sketch) -> Result<Admitted> {
        let key = key.into();
        sketch.check_comparable(&self.params, self.params_digest)?;
        if self.contains(key)? {
            return self.put_sketch(key, sketch, false).map(|()| Admitted::Known);
        }
        let hit = match (self.params.simhash, self.params.minhash, sketch.fingerprint()) {
            _ if sketch.is_empty() => None,
            (Some(simhash), None, Some(fingerprint))
                if self.params.bottom == 0 && self.params.modulus == 0 =>
            {
                self.nearest(fingerprint, simhash.within.into())?
            }
            _ => self.now().near(sketch).limit(1).run()?.hits.pop(),
        };
        self.admitted(hit, |writer| writer.put_sketch(key, sketch, true))
    }

    /// As [`admit`](Self::admit), for a fingerprint made elsewhere.
    ///
    /// # Errors
    /// As [`put_fingerprint`](Self::put_fingerprint), and [`Error::Corrupt`].
    pub fn admit_fingerprint<'a>(
        &mut self,
        key: impl Into<Key<'a>>,
        fingerprint: Fingerprint,
    ) -> Result<Admitted> {
        self.check_raw()?;
        let (key, kept) = (key.into(), Some(Kept { fingerprint: fingerprint.0, ..Kept::default() }));
        if self.contains(key)? {
            return self.push(key, kept, false).map(|()| Admitted::Known);
        }
        let within = self.params.simhash.map_or(0, |simhash| simhash.within.into());
        let hit = self.nearest(fingerprint, within)?;
        self.admitted(hit, |writer| writer.push(key, kept, true))
    }

    fn admitted(&mut self, hit: Option<Hit>, put: impl FnOnce(&mut Self) -> Result<()>) -> Result<Admitted> {
        if hit.is_none() || !self.drop_duplicates {
            put(self)?;
        }
        Ok(hit.map_or(Admitted::New, Admitted::Duplicate))
    }

    fn nearest(&mut self, fingerprint: Fingerprint, within: u32) -> Result<Option<Hit>> {
        let found = nearest(self.view.parts(&self.params), fingerprint.0, within, &mut self.scratch)?;
        Ok(found.map(|(distance, key)| Hit::at_distance(key, distance)))
    }

    /// What is live, with the batch.
    fn now(&self) -> Snapshot {
        let manifest = Arc::clone(&self.shared.published.read().manifest);
        Snapshot::new(Arc::new(State::new(manifest, self.view.clone(), None, self.params_digest)))
    }

    /// True if there is a live document of this key, of the batch or before it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key of the other kind, [`Error::Corrupt`]; [`Error::Io`] where a large batch has to be
    /// written for it, after which the writer is poisoned.
    pub fn contains<'a>(&mut self, key: impl Into<Key<'a>>) -> Result<bool> {
        let key = key.into();
        self.check_sound()?;
        key.check(self.params.key)?;
        if !self.records.is_empty() || self.rows.is_some() {
            self.guarded(Self::flush_records)?; // such records cannot be looked up
        }
        for part in self.view.parts(&self.params) {
            if part.find(key)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the document with this key; nothing happens if there is none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete<'a>(&mut self, key: impl Into<Key<'a>>) -> Result<()> {
        let key = key.into();
        self.check_sound()?;
        if self.collects() {
            self.records.delete(key)?;
            return self.flush_if_full();
        }
        if self.contains(key)? {
            self.view.table.write().delete(key)?;
            self.batch.delete(key);
            self.guarded(|writer| writer.view.forget(key))?;
            self.view.count();
        }
        self.flush_if_full()
    }

    /// True where records of this batch become segments at once.
    fn collects(&self) -> bool {
        self.one_segment || !self.logged || !self.records.is_empty() || self.rows.is_some()
    }

    fn push(&mut self, key: Key<'_>, kept: Option<Kept<'_>>, is_new: bool) -> Result<()> {
        self.check_sound()?;
        if self.collects() {
            self.records.push(key, kept)?;
            return self.flush_if_full();
        }
        {
            let mut rows = self.view.table.write();
            rows.put(key, kept)?;
            (self.view.rows, self.view.live) = (rows.len(), rows.live());
        }
        self.batch.put(&self.params, key, kept);
        if !is_new {
            self.guarded(|writer| writer.view.forget(key))?;
        }
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

    /// True where the memtable has `times` what it should have.
    fn is_full(&self, times: usize) -> bool {
        let rows = self.view.table.read();
        rows.len() as usize >= MEMTABLE_ROWS as usize * times
            || rows.len() > 0 && rows.memory() >= MEMTABLE_BYTES.min(self.memory).saturating_mul(times)
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if !self.collects() {
            // A batch that does not end by then is a large one, and comes with segments. It must not become a record
            // that no reader takes.
            if self.batch.len() > RECORD_BYTES_MAX as usize / 2
                || self.view.rows.is_multiple_of(1024) && self.is_full(2)
                || self.memory < MEMTABLE_BYTES && self.is_full(2)
            {
                return self.guarded(Self::flush_table);
            }
            return Ok(());
        }
        if self.records.memory() < self.memory {
            return Ok(());
        }
        self.guarded(|writer| {
            if writer.one_segment && Rows::can_hold(&writer.params) {
                return writer.set_aside();
            }
            writer.flush_records()?;
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

    /// Writes the memtable as a segment of the generation to come, which needs no logs then.
    fn flush_table(&mut self) -> Result<()> {
        let table = Arc::clone(&self.view.table);
        let rows = table.read();
        if rows.len() == 0 {
            return Ok(());
        }
        let built = build::build(rows.records(), &*self.shared.vfs, &self.shared.dir)?;
        drop(rows);
        self.view.table = Arc::new(Memtable::new(&self.params));
        self.view.count();
        self.batch.clear();
        // What was committed and held back is in the segment, which only comes with this batch; if that does not come,
        // it is in the log.
        if let Some(log) = &mut self.log {
            log.write()?;
        }
        // What was committed and never synced is durable with the segment only.
        self.owes_sync |= match &self.log {
            Some(log) => !log.is_synced(),
            None => self.is_torn(),
        };
        self.retired = self.log.take().or(self.retired.take());
        if let Some(logged) = &mut self.next.logged {
            logged.logs.clear();
        }
        self.changed = true;
        self.add(built)
    }

    /// Writes the records held as a segment of the generation to come.
    fn flush_records(&mut self) -> Result<()> {
        if self.rows.is_none() && self.records.is_empty() {
            return Ok(());
        }
        // They are newer than what is in the memtable.
        self.flush_table()?;
        if self.rows.is_some() {
            return self.flush_rows();
        }
        let records = std::mem::replace(&mut self.records, Records::new(&self.params));
        if !self.view.segments.is_empty() {
            for key in records.keys() {
                self.changed |= self.view.forget(key)?;
            }
        }
        let built = build::build(&records, &*self.shared.vfs, &self.shared.dir)?;
        drop(records);
        self.add(built)
    }

    /// As [`flush_records`](Self::flush_records), for what waits in a scratch file too.
    fn flush_rows(&mut self) -> Result<()> {
        self.set_aside()?;
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.memory.saturating_mul(2), &scratch);
        let (view, changed) = (&mut self.view, &mut self.changed);
        let built = rows.build(&self.params, &*self.shared.vfs, &self.shared.dir, room, |key| {
            *changed |= view.forget(Key::U64(key))?;
            Ok(())
        })?;
        self.add(built)
    }

    /// Adds a segment to the generation to come.
    fn add(&mut self, built: Built) -> Result<()> {
        if built.documents == 0 {
            return Ok(()); // nothing but deletes
        }
        self.changed = true;
        let entry = SegmentEntry {
            number: self.take_number()?,
            length: built.length,
            digest: built.digest,
            salt: built.salt,
            documents: built.documents,
            deleted: roaring::RoaringBitmap::new(),
        };
        // A writer that lost its lock must not take a name from the one that has it.
        self.check_lock()?;
        self.written.push(entry.number);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        built.publish(&names::segment(dir, entry.number))?;
        self.view.segments.push(open_segment(vfs, dir, self.shared.access, &self.next, &entry)?);
        self.view.deleted.push(Arc::default());
        self.next.segments.push(entry);
        Ok(())
    }

    /// The number of a segment to come.
    fn take_number(&mut self) -> Result<u64> {
        if self.next.segments.len() as u64 >= u64::from(SEGMENTS_MAX) {
            let found = self.next.segments.len() as u64 + 1;
            return Err(Error::Limit { what: "segments of an index", limit: SEGMENTS_MAX.into(), found });
        }
        let number = self.next.next_segment;
        self.next.next_segment = next_number("number of a segment", number)?;
        Ok(number)
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
        let taken: Vec<bool> = self.next.segments.iter().map(chosen).collect();
        let inputs: Vec<Input<'_>> = (self.view.segments.iter().zip(&self.view.deleted).zip(&taken))
            .filter(|(_, taken)| **taken)
            .map(|((segment, deleted), _)| Input { segment, deleted })
            .collect();
        if inputs.len() < 2 && inputs.iter().all(|input| input.deleted.is_empty()) {
            return Ok(false);
        }
        let live: Vec<Input<'_>> =
            inputs.into_iter().filter(|input| input.deleted.len() < input.segment.documents()).collect();
        let scratch = self.shared.vfs.scratch(&self.shared.dir);
        let room = Room::new(self.memory.saturating_mul(2), &scratch);
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let built = if live.is_empty() { None } else { Some(merge::merge(&live, vfs, dir, room)?) };
        self.keep_segments(|place, _, _| !taken[place]);
        self.changed = true;
        built.map_or(Ok(()), |built| self.add(built))?;
        Ok(true)
    }

    /// Leaves segments out of the generation to come.
    fn keep_segments(&mut self, keep: impl Fn(usize, &SegmentEntry, u64) -> bool) {
        let (mut entries, mut segments, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        let all = std::mem::take(&mut self.next.segments).into_iter();
        let all =
            all.zip(std::mem::take(&mut self.view.segments)).zip(std::mem::take(&mut self.view.deleted));
        for (place, ((entry, segment), deleted)) in all.enumerate() {
            if keep(place, &entry, deleted.len()) {
                entries.push(entry);
                segments.push(segment);
                deletes.push(deleted);
            }
        }
        (self.next.segments, self.view.segments, self.view.deleted) = (entries, segments, deletes);
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
    /// As [`commit`](Self::commit); [`Error::NoSpace`] where the disk has no room for it; [`Error::Corrupt`] for a
    /// damaged segment, and [`Error::Limit`] for more than 2^30 documents: the index stays as it was.
    pub fn compact(&mut self) -> Result<u64> {
        self.check_sound()?;
        drop(self.merging.take());
        let all: Vec<usize> = (0..self.view.segments.len()).collect();
        if self.view.segments.len() > 1 {
            self.work(&all, 0).check_space()?;
        }
        self.guarded(|writer| {
            writer.flush_records()?;
            writer.flush_table()?;
            writer.merge_all(|_| true)?;
            if writer.changed {
                return writer.publish(false);
            }
            writer.sweep_all()?;
            Ok(writer.view.commit)
        })
    }

    /// Makes the batch visible and durable, all of it or nothing, and returns the number of the commit. Without changes
    /// nothing is written.
    ///
    /// # Errors
    /// [`Error::Io`], for one when the disk is full: what was committed before stands, and the writer is poisoned.
    /// Almost always the batch is lost as a whole; if the very last steps failed, or what a writer does once a batch is
    /// durable (a full memtable becomes a segment), it may have become current as a whole all the same:
    /// [`Index::refresh`] and [`Snapshot::generation`](super::Snapshot::generation) tell. [`Error::Locked`] if the
    /// lock file was taken away.
    pub fn commit(&mut self) -> Result<u64> {
        self.guarded(|writer| writer.commit_batch(None))
    }

    /// As [`commit`](Self::commit), also of an empty batch, and keeps `payload` with it: what [`Snapshot::payload`]
    /// gives back, here and after opening, until another commit has one. So a program can know how far another store
    /// of its own had come at this commit.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::Limit`] for more than 65,536 bytes.
    pub fn commit_with(&mut self, payload: &[u8]) -> Result<u64> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            let (limit, found) = (PAYLOAD_BYTES_MAX as u64, payload.len() as u64);
            return Err(Error::Limit { what: "bytes of a commit's payload", limit, found });
        }
        self.guarded(|writer| writer.commit_batch(Some(payload)))
    }

    /// Makes durable what was committed and only promised to survive less.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::Invalid`] in the middle of a batch, where it was another writer that
    /// committed it.
    pub fn sync(&mut self) -> Result<()> {
        if self.log.is_none() && self.retired.is_none() && self.is_torn() {
            // Of the writer before: it is written again, with a generation.
            self.check_between("sync what another writer has left")?;
            return self.guarded(|writer| {
                writer.changed = true;
                writer.publish(false).map(drop)
            });
        }
        self.guarded(|writer| writer.retired.iter_mut().chain(&mut writer.log).try_for_each(OpenLog::sync))
    }

    fn commit_batch(&mut self, payload: Option<&[u8]>) -> Result<u64> {
        let collected = self.one_segment || !self.logged;
        self.flush_records()?;
        if self.one_segment {
            self.merge_written()?;
        }
        if self.changed || collected && !self.batch.is_empty() {
            // A part of the batch is in segments, and the rest must come with it.
            self.flush_table()?;
            self.set_payload(payload);
            self.publish(false)?;
        } else if !self.batch.is_empty() || payload.is_some() {
            self.log_batch(payload)?;
        } else {
            // Earlier commits may have promised less than this one does.
            let torn = self.log.is_none() && self.is_torn();
            match (&mut self.log, self.durability) {
                (Some(log), Durability::Sync) => log.sync()?,
                (Some(log), Durability::Batch) => log.write()?,
                (None, Durability::Sync) if torn => {
                    self.changed = true;
                    return self.publish(false);
                }
                _ => {}
            }
            return Ok(self.view.commit);
        }
        if self.logged && !self.one_segment {
            self.maintain()?;
        }
        Ok(self.view.commit)
    }

    fn set_payload(&mut self, payload: Option<&[u8]>) {
        if let Some(payload) = payload {
            self.view.payload = Some(payload.into());
            self.changed = true;
        }
    }

    /// Gives the batch to the log.
    fn log_batch(&mut self, payload: Option<&[u8]>) -> Result<()> {
        let commit = next_number("number of a commit", self.view.commit)?;
        self.check_lock()?;
        let begins = self.log.is_none();
        if begins {
            let logs = self.next.logged.as_ref().map_or(0, |logged| logged.logs.len());
            if logs >= LOGS {
                self.flush_table()?;
                // A batch of deletes, or of a payload alone, has no rows, and the manifest has all of it.
                self.owes_sync |= self.is_torn();
                if let Some(logged) = &mut self.next.logged {
                    logged.logs.clear();
                }
                self.batch.clear();
                self.changed = true;
                self.set_payload(payload);
                return self.publish(false).map(drop);
            }
            self.begin_log(commit)?;
        }
        let Some(log) = &mut self.log else { unreachable!("begun above") };
        log.add(&self.batch, commit, payload);
        let held = log.held();
        match self.durability {
            _ if begins => log.sync()?,
            Durability::Sync => log.sync()?,
            Durability::Batch => log.write()?,
            Durability::None if held > HELD => log.write()?,
            Durability::None => {}
        }
        self.batch.clear();
        self.view.commit = commit;
        if let Some(payload) = payload {
            self.view.payload = Some(payload.into());
        }
        self.view.count();
        if begins {
            // The manifest names the log, and is of the number of the first commit in it.
            return self.publish_as(commit, true, true).map(drop);
        }
        let manifest = Arc::clone(&self.shared.published.read().manifest);
        self.show(manifest);
        Ok(())
    }

    /// Makes a log of this writer's own, which begins with what of the last writer's log is not known to be durable,
    /// and will be followed by the commit of this number. The generation to come names it.
    fn begin_log(&mut self, commit: u64) -> Result<()> {
        let (vfs, dir) = (Arc::clone(&self.shared.vfs), self.shared.dir.clone());
        let position = self.shared.published.read().position;
        let number = self.next.logged.as_ref().map_or(1, |logged| logged.next_log);
        let last = self.next.logged.as_ref().and_then(|logged| logged.logs.last().copied());
        let mut log = None;
        let mut first = commit;
        if let (Some(entry), Some(position)) = (last, position)
            && position.synced < position.batches
        {
            let from = Position { offset: position.synced, commit: 0, ..position };
            log::replay(&*vfs, &dir, &self.next, &entry, from, |_, commit, _, batch| {
                let log = match &mut log {
                    Some(log) => log,
                    none => {
                        first = commit;
                        none.insert(OpenLog::create(&*vfs, &dir, &self.next, number, commit)?)
                    }
                };
                log.add_again(batch, commit);
                Ok(())
            })?;
        }
        let log = match log {
            Some(log) => log,
            None => OpenLog::create(&*vfs, &dir, &self.next, number, commit)?,
        };
        let logged = self.next.logged.get_or_insert_with(Logged::default);
        if let (Some(last), Some(position)) = (logged.logs.last_mut(), position)
            && last.length == 0
        {
            last.length = position.synced;
            if position.synced <= LOG_HEAD_BYTES {
                logged.logs.pop();
            }
        }
        logged.logs.push(LogEntry { number, first, length: 0 });
        logged.next_log = next_number("number of a log", number)?;
        self.log = Some(log);
        Ok(())
    }

    /// True where the last writer's log has batches that are not known to be durable.
    fn is_torn(&self) -> bool {
        self.shared.published.read().position.is_some_and(|at| at.synced < at.batches)
    }

    /// Between batches: a full memtable becomes a segment, merges that are done take their place, and another begins.
    fn maintain(&mut self) -> Result<()> {
        if self.is_full(1) {
            self.flush_table()?;
            self.publish(true)?;
        }
        if self.merging.as_ref().is_some_and(Merging::is_done) {
            self.finish_merge()?;
        }
        if self.background && self.merging.is_none() && self.merge_failure.is_none() {
            let chosen = merge_plan::choose(&self.sizes(), &[]);
            if !chosen.is_empty() {
                self.check_lock()?;
                let number = self.take_number()?;
                let work = self.work(&chosen, number);
                match work.check_space().and_then(|()| work.spawn(self.rate)) {
                    Ok(merging) => self.merging = Some(merging),
                    Err(error) => self.merge_failure = Some(error),
                }
            }
        }
        Ok(())
    }

    fn sizes(&self) -> Vec<Size> {
        let segments = self.view.segments.iter().zip(&self.view.deleted);
        segments
            .map(|(segment, deleted)| Size {
                live: segment.documents() - deleted.len(),
                documents: segment.documents(),
            })
            .collect()
    }

    /// A merge of the segments in these places.
    fn work(&self, chosen: &[usize], number: u64) -> Work {
        let input = |&place: &usize| {
            let (segment, deleted) = (&self.view.segments[place], &self.view.deleted[place]);
            (self.next.segments[place].number, Arc::clone(segment), Arc::clone(deleted))
        };
        Work {
            vfs: Arc::clone(&self.shared.vfs),
            dir: self.shared.dir.clone(),
            access: self.shared.access,
            manifest: Manifest { segments: Vec::new(), ..self.next.clone() },
            number,
            memory: self.memory.saturating_mul(2),
            inputs: chosen.iter().map(input).collect(),
        }
    }

    /// Waits for the merge in the background, if there is one, and lets its output take its place.
    ///
    /// # Errors
    /// What stopped it, with which the index is as it was; otherwise as [`commit`](Self::commit). [`Error::Invalid`] in
    /// the middle of a batch.
    pub fn wait_for_merge(&mut self) -> Result<()> {
        self.check_between("wait for a merge")?;
        self.guarded(Self::finish_merge)?;
        self.merge_failure.take().map_or(Ok(()), Err)
    }

    fn check_between(&self, what: &str) -> Result<()> {
        self.check_sound()?;
        if self.batch.is_empty() && self.records.is_empty() && self.rows.is_none() && !self.changed {
            return Ok(());
        }
        Err(Error::Invalid(format!("{what} between batches: commit this one first")))
    }

    fn finish_merge(&mut self) -> Result<()> {
        let Some(merging) = self.merging.take() else { return Ok(()) };
        let number = merging.number;
        match merging.join() {
            Ok(merged) => self.take_place(merged),
            Err(error) => {
                // Whoever took the lock away may have taken the number, too.
                if self.lock.is_current() {
                    let _ = self.shared.vfs.unlink(&names::segment(&self.shared.dir, number));
                }
                self.merge_failure = Some(error);
                Ok(())
            }
        }
    }

    fn take_place(&mut self, merged: Merged) -> Result<()> {
        self.written.extend(merged.number());
        if !merged.fits(&self.next) {
            return Ok(()); // what was deleted of it since could not be deleted of the output
        }
        merged.take_place(&mut self.next, &mut self.view)?;
        self.changed = true;
        self.publish(true).map(drop)
    }

    /// Does the merge that is due, here and now; false if none is. Called until then, it leaves few segments.
    ///
    /// # Errors
    /// As [`compact`](Self::compact); [`Error::Invalid`] in the middle of a batch.
    pub fn merge_step(&mut self) -> Result<bool> {
        self.check_between("merge")?;
        if self.merging.is_some() {
            self.wait_for_merge()?;
            return Ok(true);
        }
        let chosen = merge_plan::choose(&self.sizes(), &[]);
        if chosen.is_empty() {
            return Ok(false);
        }
        self.work(&chosen, 0).check_space()?;
        self.guarded(|writer| {
            writer.check_lock()?;
            let number = writer.take_number()?;
            let merged = writer.work(&chosen, number).run()?;
            writer.take_place(merged)
        })?;
        Ok(true)
    }

    /// Makes a segment of what is in the log, which is empty then.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); [`Error::Invalid`] in the middle of a batch.
    pub fn flush(&mut self) -> Result<()> {
        self.check_between("flush")?;
        self.guarded(|writer| {
            writer.flush_table()?;
            if writer.changed { writer.publish(true).map(drop) } else { Ok(()) }
        })
    }

    /// Removes files that the current generation does not need, the one before included: after this there is nothing to
    /// go back to. Returns how many bytes that were. What a snapshot has open stays for it.
    ///
    /// # Errors
    /// [`Error::Invalid`] in the middle of a batch, [`Error::Locked`] if the lock file was taken away, [`Error::Io`].
    pub fn gc(&mut self) -> Result<u64> {
        self.check_between("collect garbage")?;
        drop(self.merging.take());
        self.sweep_all()
    }

    fn sweep_all(&mut self) -> Result<u64> {
        self.check_lock()?;
        // A killed writer may have renamed CURRENT and not synced it; then the one before could come back.
        if !self.settled {
            commit::sync_dir(&*self.shared.vfs, &self.shared.dir)?;
            self.settled = true;
        }
        Ok(commit::sweep(&*self.shared.vfs, &self.shared.dir, &self.next, None))
    }

    /// Makes the generation to come the current one, and removes what it does not need; the files of the one before
    /// stay if they are to be kept.
    fn publish(&mut self, keep: bool) -> Result<u64> {
        if !self.changed {
            return Ok(self.view.commit);
        }
        let generation = next_number("generation of an index", self.view.commit)?;
        self.publish_as(generation, keep, !keep)
    }

    /// As [`publish`](Self::publish), under this number; `acknowledges` is whether it has documents that the one before
    /// has not.
    fn publish_as(&mut self, generation: u64, keep: bool, acknowledges: bool) -> Result<u64> {
        self.check_lock()?;
        // The manifest has the deletes of every batch, so all of them must be durable before it.
        let named = self.next.logged.as_ref().is_some_and(|logged| !logged.logs.is_empty());
        let begins = named && self.log.is_none() && self.is_torn();
        if begins {
            self.begin_log(generation)?;
        }
        if let Some(log) = &mut self.log {
            log.sync()?;
        }
        // A segment without a live document only costs probes.
        let merging: Vec<u64> = self.merging.iter().flat_map(|merging| merging.inputs.clone()).collect();
        self.keep_segments(|_, entry, deleted| deleted < entry.documents || merging.contains(&entry.number));
        for (entry, deleted) in self.next.segments.iter_mut().zip(&self.view.deleted) {
            if entry.deleted != **deleted {
                entry.deleted.clone_from(deleted);
            }
        }
        self.next.generation = generation;
        if self.next.logged.is_some() || self.view.payload.is_some() {
            let logged = self.next.logged.get_or_insert_with(|| Logged { next_log: 1, ..Logged::default() });
            logged.payload = self.view.payload.as_deref().map(<[u8]>::to_vec);
        }

        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        let current = commit::write_manifest(vfs, dir, &self.next)?;
        commit::sync_dir(vfs, dir)?;
        self.settled = false;
        commit::point(vfs, dir, &current, &mut self.pointed)?;
        if acknowledges || begins || self.owes_sync {
            commit::sync_dir(vfs, dir)?;
            self.settled = true;
        }
        self.pointed = false;
        self.changed = false;
        self.owes_sync = false;
        self.retired = None;
        let busy = self.merging.as_ref().map(|merging| merging.number);
        self.written.clear();
        self.view.commit = generation;
        let before = Arc::clone(&self.shared.published.read().manifest);
        self.show(Arc::new(self.next.clone()));
        // What is being merged has a name before anything names it.
        if busy.is_none() {
            commit::sweep(vfs, dir, &self.next, keep.then_some(&*before));
        }
        Ok(generation)
    }

    /// Shows the view to all snapshots to come.
    fn show(&self, manifest: Arc<Manifest>) {
        let position = match (&self.log, manifest.logged.as_ref().map(|logged| &logged.logs)) {
            (Some(log), Some(logs)) if !logs.is_empty() => {
                Some(log.position(logs[logs.len() - 1].number, self.view.commit))
            }
            (None, Some(logs)) if !logs.is_empty() => self.shared.published.read().position,
            _ => None,
        };
        let state = State::new(manifest, self.view.clone(), position, self.params_digest);
        *self.shared.published.write() = Arc::new(state);
    }
}

/// The number after this one. A manifest can hold the largest only if somebody made it so.
fn next_number(what: &'static str, number: u64) -> Result<u64> {
    number.checked_add(1).ok_or(Error::Limit { what, limit: u64::MAX, found: number })
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.written.extend(self.merging.take().map(|merging| merging.number));
        if !self.poisoned
            && self.lock.is_current()
            && let Some(log) = &mut self.log
            && log.write().is_ok()
        {
            // What was committed and held back is written now; whoever asked for that has been promised nothing.
            log.mark();
            let known = Arc::clone(&self.shared.published.read());
            let logs = known.manifest.logged.iter().flat_map(|logged| &logged.logs);
            let position = logs.last().map(|entry| log.position(entry.number, known.view.commit));
            let state =
                State::new(Arc::clone(&known.manifest), known.view.clone(), position, self.params_digest);
            *self.shared.published.write() = Arc::new(state);
        }
        let held = self.log.iter().chain(&self.retired).any(|log| log.held() > 0);
        if self.poisoned && (held || self.durability == Durability::None) {
            // Commits that were held back and could not be written are not there, whatever was shown of them.
            let loaded = State::load(&*self.shared.vfs, &self.shared.dir, self.shared.access);
            if let Ok(state) = loaded {
                *self.shared.published.write() = Arc::new(state);
            }
        }
        // Rows of a batch that was not committed.
        let published = Arc::clone(&self.shared.published.read());
        let beyond = published.view.table.read().len() > published.view.rows;
        if beyond {
            published.view.table.write().truncate(published.view.rows);
        }
        self.shared.writing.store(false, Ordering::Release);
        // Segments of a batch that was not committed. After a failure from which the new generation may or may not
        // have come out current, they stay, and the next writer sweeps what is not named.
        if self.pointed || !self.lock.is_current() {
            return;
        }
        self.view.segments.clear();
        let (vfs, dir) = (&*self.shared.vfs, &self.shared.dir);
        for &number in &self.written {
            if published.manifest.segments.iter().all(|known| known.number != number) {
                let _ = vfs.unlink(&names::segment(dir, number));
            }
        }
        let known = published.manifest.logged.iter().flat_map(|logged| &logged.logs);
        let known: Vec<u64> = known.map(|log| log.number).collect();
        for log in self.next.logged.iter().flat_map(|logged| &logged.logs) {
            if !known.contains(&log.number) {
                let _ = vfs.unlink(&names::log(dir, log.number));
            }
        }
        if self.next.generation > published.manifest.generation {
            let _ = vfs.unlink(&names::manifest(dir, self.next.generation));
        }
    }
}
