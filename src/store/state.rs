//! The state of an index at one commit: its files, its memtable and its live documents.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use super::history::{History, Position};
use super::known_leaders::{DocRef, KnownLeaders};
use super::memory::MemtablePart;
use super::memtable::Memtable;
use super::names;
use super::part::IndexPart;
use crate::error::{Error, Result, corrupt};
use crate::format::log::{BatchView, Operation};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::format::wire::Fault;
use crate::key::{Key, KeyBuf};
use crate::params::Params;
use crate::segment::near::check_radius;
use crate::segment::{Records, Segment, build};
use crate::sys::heap::Heap;
use crate::sys::{Access, Vfs};
use twindex_sketch::Code;

/// Maximum memory in bytes of the records replayed from logs. A writer flushes long before this. But a damaged log
/// could require more: an empty document takes only four bytes in a log.
pub(super) const LOGGED_BYTES_MAX: usize = 1 << 30;
/// Number of operations of a batch after which this limit is checked.
const CHECKED: u32 = 256;

/// The live documents at a commit: in segments, in the frozen memtable, and in the first `rows` rows of the memtable.
#[derive(Clone, Debug)]
pub(super) struct LiveView {
    pub(super) segments: Vec<Arc<Segment>>,
    /// For each segment, the documents that are no longer live.
    pub(super) deleted: Vec<Arc<RoaringBitmap>>,
    /// The frozen memtable that is being flushed. Its rows are older than the rows of `table`, and newer than
    /// any segment with the same keys.
    pub(super) frozen: Option<FrozenMemtable>,
    pub(super) table: Arc<Memtable>,
    /// The number of memtable rows that belong to this view.
    pub(super) rows: u32,
    /// The number of live rows among the first `rows` rows.
    pub(super) live: u64,
    /// The number of the last commit.
    pub(super) commit: u64,
    /// The payload of the last commit that has a payload.
    pub(super) payload: Option<Arc<[u8]>>,
    pub(super) time: Time,
}

/// A full memtable to which no more rows are added.
#[derive(Clone, Debug)]
pub(super) struct FrozenMemtable {
    pub(super) table: Arc<Memtable>,
    pub(super) rows: u32,
    /// The number of rows that were live when the memtable was frozen.
    pub(super) live: u64,
    /// The rows of documents that were deleted after the memtable was frozen.
    pub(super) deleted: Arc<RoaringBitmap>,
    /// The numbers of the logs that contain the rows of this memtable.
    pub(super) logs: Arc<[u64]>,
}

impl FrozenMemtable {
    pub(super) fn forget(&mut self, key: Key<'_>) -> bool {
        let rows = self.table.read();
        let found = rows.find(key, self.rows).filter(|&row| rows.is_live(row, self.rows));
        drop(rows);
        found.is_some_and(|row| !self.deleted.contains(row) && Arc::make_mut(&mut self.deleted).insert(row))
    }

    /// Marks live rows with stamps above `before` and at most `expired` as deleted.
    fn expire(&mut self, before: Option<u64>, expired: u64) {
        let gone: RoaringBitmap = {
            let rows = self.table.read();
            rows.stamped_between(before, expired).filter(|&row| rows.is_live(row, self.rows)).collect()
        };
        if !gone.is_subset(&self.deleted) {
            *Arc::make_mut(&mut self.deleted) |= gone;
        }
    }
}

/// Event time, derived from the stamps of documents. Expired documents are marked as deleted in segments and memtables,
/// so that readers need not check stamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// The age at which documents expire; `None` if documents do not expire.
    expire_after: Option<u64>,
    /// The highest committed stamp.
    now: Option<u64>,
    /// The time up to which documents were expired. A lookup through the writer can advance it before the commit.
    reached: Option<u64>,
    /// The highest stamp seen, including the current batch.
    newest: Option<u64>,
    /// The highest stamp in the files or the batch. Documents that `admit` dropped count only in `newest`.
    recorded: Option<u64>,
}

impl Time {
    /// Returns the highest stamp that is expired at the time `now`; `None` if no document can have expired.
    fn expired(&self, now: Option<u64>) -> Option<u64> {
        // guard: a document expires at its age and not a tick before
        // without it: now?.checked_sub(self.expire_after?) -> now?.checked_sub(self.expire_after?)?.checked_add(1)
        now?.checked_sub(self.expire_after?)
    }
}

impl LiveView {
    /// Creates the view of a generation from its manifest and segments. The memtable is empty: logs are not read.
    pub(super) fn of(manifest: &Manifest, segments: Vec<Arc<Segment>>) -> Self {
        let payload = manifest.logged.as_ref().and_then(|logged| logged.payload.as_deref());
        Self {
            segments,
            deleted: manifest.segments.iter().map(|entry| Arc::new(entry.deleted.clone())).collect(),
            frozen: None,
            table: Arc::new(Memtable::new(&manifest.params)),
            rows: 0,
            live: 0,
            commit: manifest.generation,
            payload: payload.map(Into::into),
            time: Time {
                expire_after: manifest.params.expire_after,
                now: None,
                reached: None,
                newest: manifest.now,
                recorded: manifest.now,
            },
        }
    }

    /// Returns a view that contains only the segment at position `place`, at the same commit.
    pub(super) fn of_segment(&self, place: usize, manifest: &Manifest) -> Self {
        Self {
            segments: vec![Arc::clone(&self.segments[place])],
            deleted: vec![Arc::clone(&self.deleted[place])],
            frozen: None,
            table: Arc::new(Memtable::new(&manifest.params)),
            rows: 0,
            live: 0,
            commit: self.commit,
            payload: self.payload.clone(),
            time: self.time,
        }
    }

    /// Returns the highest committed stamp.
    pub(super) fn now(&self) -> Option<u64> {
        self.time.now
    }

    /// Returns an error if the stamp of a new document is too far ahead of all earlier stamps.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(super) fn check_stamp(&self, stamp: Option<u64>, max_jump: u64) -> Result<()> {
        if let (Some(stamp), Some(newest)) = (stamp, self.time.newest)
            // guard: a stamp far ahead is refused
            // without it: stamp.saturating_sub(newest) > max_jump -> false
            && stamp.saturating_sub(newest) > max_jump
        {
            return Err(Error::Invalid(format!(
                "stamp {stamp} is {} ahead of {newest}, the highest so far, and at most {max_jump} are taken: by a wrong \
                 one, all documents would expire; if it is right, allow a longer jump (`WriterOptions::max_jump`, --max-jump)",
                stamp - newest
            )));
        }
        Ok(())
    }

    /// Records the stamp of an added document. The next commit or lookup advances the time to this stamp.
    pub(super) fn stamped(&mut self, stamp: Option<u64>) {
        // guard: time goes forward only
        // without it: self.time.newest.max(stamp) -> stamp.or(self.time.newest)
        self.time.newest = self.time.newest.max(stamp);
        self.time.recorded = self.time.recorded.max(stamp);
    }

    /// Records the stamp of a document to look up. Then advances the time as if all earlier documents were committed.
    pub(super) fn looked_up_at(&mut self, stamp: Option<u64>) -> Result<()> {
        self.time.newest = self.time.newest.max(stamp);
        if self.is_behind() { self.expire_by_newest() } else { Ok(()) }
    }

    /// Returns whether a higher stamp was recorded after documents were last expired.
    fn is_behind(&self) -> bool {
        self.time.expire_after.is_some() && self.time.newest > self.time.reached
    }

    /// Returns the highest stamp if it is in neither the files nor the batch, because `admit` dropped its document;
    /// otherwise `None`.
    pub(super) fn unrecorded(&self) -> Option<u64> {
        self.time.newest.filter(|_| self.time.newest > self.time.recorded)
    }

    /// Returns whether a document with this stamp is already expired when it is added.
    pub(super) fn is_expired(&self, stamp: Option<u64>) -> bool {
        self.time
            .expired(self.time.reached)
            .is_some_and(|expired| stamp.is_some_and(|stamp| stamp <= expired))
    }

    pub(super) fn is_to_advance(&self) -> bool {
        self.time.newest > self.time.now
    }

    /// Sets the committed time to the highest stamp, and removes expired documents. The time never decreases.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.time.now = self.time.newest;
        self.expire_by_newest()
    }

    fn expire_by_newest(&mut self) -> Result<()> {
        let before = self.time.expired(self.time.reached);
        self.time.reached = self.time.newest;
        let expired = self.time.expired(self.time.reached);
        if expired != before {
            for place in 0..self.segments.len() {
                self.expire_segment(place, before)?;
            }
            if let (Some(frozen), Some(expired)) = (&mut self.frozen, expired) {
                frozen.expire(before, expired);
            }
        }
        self.expire_rows()
    }

    /// Removes the expired rows of the memtable.
    pub(super) fn expire_rows(&mut self) -> Result<()> {
        if let Some(expired) = self.time.expired(self.time.reached) {
            self.table.expire(expired)?;
            self.count();
        }
        Ok(())
    }

    /// Removes the expired documents of a segment. Skips stamps up to `before`, whose documents were removed earlier.
    pub(super) fn expire_segment(&mut self, place: usize, before: Option<u64>) -> Result<()> {
        let Some(expired) = self.time.expired(self.time.reached) else { return Ok(()) };
        let (segment, deleted) = (&self.segments[place], &mut self.deleted[place]);
        let mut gone = RoaringBitmap::new();
        segment.stamped_between(before, expired, |ordinal| {
            if !deleted.contains(ordinal) {
                gone.insert(ordinal);
            }
        })?;
        segment.check_map()?;
        if !gone.is_empty() {
            *Arc::make_mut(deleted) |= gone;
        }
        Ok(())
    }

    /// Returns the segments, then the frozen memtable and the rows of the memtable, if there are any.
    pub(super) fn parts<'a>(&'a self, params: &'a Params) -> impl Iterator<Item = IndexPart<'a>> {
        let segments = self.segments.iter().zip(&self.deleted);
        let frozen = (self.frozen.iter())
            .map(move |frozen| MemtablePart::new(&frozen.table, frozen.rows, Some(&frozen.deleted), params));
        let memory = std::iter::once_with(move || {
            // guard: who looks at a snapshot sees its rows alone
            // without it: self.rows -> u32::MAX
            let rows = self.rows;
            MemtablePart::new(&self.table, rows, None, params)
        });
        segments
            .map(|(segment, deleted)| IndexPart::Segment { segment, deleted })
            .chain(frozen.chain(memory.filter(|_| self.rows > 0)).map(IndexPart::Memory))
    }

    /// Marks the document with this key as deleted in segments and in the frozen memtable. Returns whether it was live.
    pub(super) fn forget(&mut self, key: Key<'_>) -> Result<bool> {
        let mut any = self.frozen.as_mut().is_some_and(|frozen| frozen.forget(key));
        for (segment, deleted) in self.segments.iter().zip(&mut self.deleted) {
            let found = segment.find(key)?;
            segment.check_map()?;
            if let Some(ordinal) = found
                && !deleted.contains(ordinal)
            {
                any |= Arc::make_mut(deleted).insert(ordinal);
            }
        }
        Ok(any)
    }

    /// Applies a batch of a log. Adds its rows to the memtable, and marks older versions of its documents in segments
    /// and in the frozen memtable as deleted.
    pub(super) fn apply(
        &mut self,
        path: &Path,
        commit: u64,
        at: u64,
        batch: &BatchView<'_>,
        manifest: &Manifest,
    ) -> Result<()> {
        let before = self.rows;
        self.apply_rows(path, commit, at, batch, manifest)?;
        self.forget_rows(before)
    }

    /// Marks the documents in segments and in the frozen memtable whose keys occur in the memtable rows `from..` as
    /// deleted. Looks keys up in ascending order, so that lookups share pages.
    pub(super) fn forget_rows(&mut self, from: u32) -> Result<()> {
        if self.segments.is_empty() && self.frozen.is_none() {
            return Ok(());
        }
        let table = Arc::clone(&self.table);
        let rows = table.read();
        let key = |row: u32| rows.records().key(row as usize);
        let mut order: Vec<u32> = (from..self.rows).collect();
        order.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
        order.dedup_by(|a, b| key(*a) == key(*b));
        for (segment, deleted) in self.segments.iter().zip(&mut self.deleted) {
            for &row in &order {
                if let Some(ordinal) = segment.find(key(row))?
                    && !deleted.contains(ordinal)
                {
                    Arc::make_mut(deleted).insert(ordinal);
                }
            }
            segment.check_map()?;
        }
        if let Some(frozen) = &mut self.frozen {
            for &row in &order {
                frozen.forget(key(row));
            }
        }
        Ok(())
    }

    /// Like [`apply`](Self::apply), but leaves segments and the frozen memtable unchanged.
    pub(super) fn apply_rows(
        &mut self,
        path: &Path,
        commit: u64,
        at: u64,
        batch: &BatchView<'_>,
        manifest: &Manifest,
    ) -> Result<()> {
        let fault = |mut fault: Fault| {
            fault.offset += at;
            corrupt(path, "log", 0, fault)
        };
        let table = Arc::clone(&self.table);
        let check_memory = |offset| {
            let memory = table.memory();
            if memory <= LOGGED_BYTES_MAX {
                return Ok(());
            }
            let expected = format!("records that take {LOGGED_BYTES_MAX} bytes of memory");
            Err(fault(Fault::new(offset, expected, format!("{memory}"))))
        };
        let mut operations = batch.operations(&manifest.params);
        let (mut applied, mut last) = (0_u32, 0);
        loop {
            let offset = operations.offset();
            let Some(operation) = operations.next_operation().map_err(fault)? else { break };
            if let Operation::Put(_, _, attached) = &operation {
                self.stamped(attached.stamp);
            }
            table.apply(operation).map_err(|error| match error {
                // Invalid content of a file is not an error of the caller, so it is reported as corruption.
                Error::Invalid(why) => fault(Fault::new(offset, "a record of this index", why)),
                other => other,
            })?;
            (applied, last) = (applied + 1, offset);
            if applied % CHECKED == 0 {
                check_memory(offset)?;
            }
        }
        check_memory(last)?;
        self.commit = commit;
        // The manifest already contains the payloads of commits up to this generation.
        if let Some(payload) = batch.payload.filter(|_| commit > manifest.generation) {
            self.payload = Some(payload.into());
        }
        self.count();
        Ok(())
    }

    /// Shares the memtable of the view `known`. The logs of this generation must begin with the logs of `known`.
    pub(super) fn take_rows(&mut self, known: &Self, generation: u64) {
        (self.table, self.rows, self.live) = (Arc::clone(&known.table), known.rows, known.live);
        self.forget_attempts();
        self.commit = known.commit;
        if known.commit > generation {
            self.payload.clone_from(&known.payload);
        }
        self.stamped(known.time.newest);
    }

    /// Removes the rows that were added by a failed attempt to read more batches from the log.
    pub(super) fn forget_attempts(&mut self) {
        if self.table.read().len() > self.rows {
            self.table.truncate(self.rows);
        }
    }

    /// Includes all rows of the memtable in this view.
    pub(super) fn count(&mut self) {
        let rows = self.table.read();
        (self.rows, self.live) = (rows.len(), rows.live());
    }

    pub(super) fn documents(&self) -> u64 {
        let of_segments = self.segments.iter().zip(&self.deleted);
        of_segments.map(|(segment, deleted)| segment.documents() - deleted.len()).sum::<u64>() + self.logged()
    }

    /// Returns the number of live documents that are not in a segment yet.
    pub(super) fn logged(&self) -> u64 {
        self.live + self.frozen.as_ref().map_or(0, |frozen| frozen.live - frozen.deleted.len())
    }

    /// Returns the live documents between these bounds that are not in a segment yet, with their keys, in no particular
    /// order.
    pub(super) fn logged_keys(&self, from: Bound<Key<'_>>, to: Bound<Key<'_>>) -> Vec<(KeyBuf, DocRef)> {
        let mut keys = Vec::new();
        let mut part = self.segments.len() as u32; // the memtables follow the segments in `parts`
        if let Some(frozen) = &self.frozen {
            frozen.table.keys_between(frozen.rows, from, to, |ordinal, key| {
                if !frozen.deleted.contains(ordinal) {
                    keys.push((key.to_buf(), DocRef { part, ordinal }));
                }
            });
            part += 1;
        }
        self.table.keys_between(self.rows, from, to, |ordinal, key| {
            keys.push((key.to_buf(), DocRef { part, ordinal }));
        });
        keys
    }

    /// Returns the records of both memtables, including deletes, oldest first.
    pub(super) fn logged_records(&self) -> Result<Records> {
        let table = self.table.read().first(self.rows);
        let Some(frozen) = &self.frozen else { return Ok(table.into_records()) };
        let first = frozen.table.read().first(frozen.rows);
        let mut records = first.into_records();
        for row in &*frozen.deleted {
            let key = records.key(row as usize).to_buf();
            records.delete(key.as_key())?;
        }
        records.append(&table.into_records());
        Ok(records)
    }
}

/// The state of an index at one commit: its live documents, and the files that contain them.
#[derive(Debug)]
pub(super) struct State {
    pub(super) manifest: Arc<Manifest>,
    pub(super) view: LiveView,
    /// The files from which this state was read, or to which it was written.
    pub(super) history: History,
    /// The digest of the sketch parameters, which is compared with the digest of each new sketch's parameters.
    pub(super) sketch_digest: u128,
    /// A segment in memory with the live rows of the memtables, built at the first use.
    as_segment: OnceLock<Segment>,
    nothing: RoaringBitmap,
    /// Cached leaders of documents of this state.
    pub(super) known_leaders: KnownLeaders,
}

impl State {
    pub(super) fn new(
        manifest: Arc<Manifest>,
        view: LiveView,
        history: History,
        sketch_digest: u128,
    ) -> Self {
        Self {
            manifest,
            view,
            history,
            sketch_digest,
            as_segment: OnceLock::new(),
            nothing: RoaringBitmap::new(),
            known_leaders: KnownLeaders::default(),
        }
    }

    /// The position up to which the last log has been read or written; `None` if there is no log.
    pub(super) fn position(&self) -> Option<Position> {
        self.history.position()
    }

    pub(super) fn durable_commit(&self) -> u64 {
        let logged = self.position().map_or(0, |position| position.durable);
        logged.max(self.manifest.generation).min(self.view.commit)
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = IndexPart<'_>> {
        self.view.parts(&self.manifest.params)
    }

    /// Returns an error if this index has no fingerprints, or for a radius that no table design supports.
    pub(super) fn check_within(&self, within: u32) -> Result<()> {
        if let Some(codes) = self.manifest.params.codes {
            let bits = codes.bits;
            return Err(Error::Invalid(format!(
                "this index keeps fingerprints of {bits} bits without tables, and this search reads tables"
            )));
        }
        if self.manifest.params.simhash.is_none() {
            return Err(Error::Invalid("this index keeps no fingerprints: distance is not answered".into()));
        }
        check_radius(within)
    }

    /// Returns an error if a fingerprint cannot be compared with those of this index, or for a radius that the index does not
    /// support.
    pub(super) fn check_radius_of(&self, code: &Code, within: u32) -> Result<()> {
        let codes = self.manifest.params.codes;
        let (expected, found) = (codes.map_or(64, |codes| usize::from(codes.bits)), code.bits());
        match codes {
            _ if expected != found => Err(Error::Invalid(format!(
                "this index keeps fingerprints of {expected} bits, and this one has {found}"
            ))),
            Some(codes) if within > codes.bits.into() => Err(Error::Invalid(format!(
                "fingerprints of {expected} bits are at most {expected} bits apart, and you asked for {within}"
            ))),
            Some(_) => Ok(()),
            None => self.check_within(within),
        }
    }

    /// Returns the number of segments, including one for the memtables if they have live rows.
    pub(super) fn segment_count(&self) -> usize {
        self.view.segments.len() + usize::from(self.view.logged() > 0)
    }

    /// Returns the segment at a position, and its deleted documents. The position after the segments on disk denotes a
    /// segment of the memtables' rows, which is built at the first use.
    pub(super) fn segment_at(&self, place: usize) -> (&Segment, &RoaringBitmap) {
        match self.view.segments.get(place) {
            Some(segment) => (segment, &self.view.deleted[place]),
            None => (self.as_segment.get_or_init(|| self.make_segment()), &self.nothing),
        }
    }

    /// Returns the size in bytes of the data that queries cached: leaders, the segment of the memtables, and data of
    /// segments.
    pub(super) fn cached_bytes(&self) -> u64 {
        let as_segment = self.as_segment.get();
        let segments = self.view.segments.iter().map(|segment| &**segment).chain(as_segment);
        self.known_leaders.bytes() as u64
            + as_segment.map_or(0, Segment::length)
            + segments.map(Segment::cached_bytes).sum::<u64>()
    }

    fn make_segment(&self) -> Segment {
        let heap = Heap::default();
        let path = Path::new("memtable");
        let made = (self.view.logged_records())
            .and_then(|records| build::build(&records, &heap, path))
            .and_then(|built| built.publish(path))
            .and_then(|()| Segment::from_bytes(heap.take(), path));
        made.expect("records were checked when they came in, and memory does not fail as a disk does")
    }

    /// Returns the open segment that this entry of another manifest describes; `None` if it is not open here.
    pub(super) fn segment(&self, entry: &SegmentEntry) -> Option<Arc<Segment>> {
        let place = self.manifest.segments.iter().position(|mine| mine.number == entry.number)?;
        let segment = &self.view.segments[place];
        (segment.digest() == entry.digest).then(|| Arc::clone(segment))
    }
}

pub(super) fn open_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    access: Access,
    manifest: &Manifest,
    entry: &SegmentEntry,
) -> Result<Arc<Segment>> {
    let path = names::segment(dir, entry.number);
    let segment = Segment::open_with(vfs, &path, access)?;
    check_entry(&segment, manifest, entry)?;
    Ok(Arc::new(segment))
}

/// Returns an error if the segment does not match `entry`, its entry in the manifest.
pub(super) fn check_entry(segment: &Segment, manifest: &Manifest, entry: &SegmentEntry) -> Result<()> {
    let differs = |what: &str, expected: String, found: String| {
        let expected = format!("{what} {expected} as in the manifest");
        Err(corrupt(segment.path(), "segment", 0, Fault::new(0, expected, found)))
    };
    // guard: a segment is that which the manifest names
    if segment.length() != entry.length {
        return differs("length", entry.length.to_string(), segment.length().to_string());
    }
    if segment.params() != &manifest.params {
        return differs("parameters", manifest.params.encode(), segment.params().encode());
    }
    // guard: a segment is that which the manifest names
    if (segment.digest(), segment.salt()) != (entry.digest, entry.salt) {
        let name = |digest, salt| format!("{digest:032x}, salt {salt:032x}");
        return differs("digest", name(entry.digest, entry.salt), name(segment.digest(), segment.salt()));
    }
    // guard: a segment is that which the manifest names
    if segment.documents() != entry.documents {
        return differs("documents", entry.documents.to_string(), segment.documents().to_string());
    }
    Ok(())
}

/// Reads a whole file. A file of more than `limit` bytes is an error.
pub(super) fn read_whole(vfs: &dyn Vfs, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
    let length = file.len().map_err(|e| Error::io("get the length of", path, e))?;
    if length > limit {
        return Err(corrupt(path, "file", 0, Fault::new(limit, format!("at most {limit} bytes"), length)));
    }
    let size = usize::try_from(length).map_err(|_| Error::Limit {
        what: "bytes in memory",
        limit: usize::MAX as u64,
        found: length,
    })?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}
