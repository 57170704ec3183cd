//! Reads and writes log files: replays complete batches, distinguishes a torn tail from damage, and appends batches.
//!
//! Only the writer that created a log appends to it; the next writer creates a new log. The manifest records how many
//! bytes of the old log are durable. Batches after these bytes are copied to the new log, so that no commit depends on
//! bytes that may exist only in the page cache.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::names;
use crate::error::{Error, Result, corrupt, refused};
use crate::format::log::{
    self, BatchView, LOG_HEAD_BYTES, LogBatch, RECORD_ALIGNMENT, RECORD_HEAD_BYTES, RecordHead, RecordKind,
};
use crate::format::manifest::{LogEntry, Manifest};
use crate::format::wire::Fault;
use crate::sys::Vfs;
use crate::sys::vfs::{AppendFile, ReadFile};

/// Minimum number of bytes read from a log at a time.
const WINDOW: u64 = 1 << 20;
/// The maximum gap between the commit numbers of consecutive batches. The numbers in a gap belong to manifests.
const COMMITS_APART_MAX: u64 = 1 << 40;

/// The position up to which a log has been read, and up to which it is known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The number of the log.
    pub(super) number: u64,
    /// The offset of the next record.
    pub(super) offset: u64,
    /// The offset at which the last complete batch ends.
    pub(super) batches: u64,
    /// The length up to which the file is known to be synced.
    pub(super) synced: u64,
    /// The number of the last commit that was read.
    pub(super) commit: u64,
    /// The number of the last commit that is known to be synced; 0 if there is none.
    pub(super) durable: u64,
}

impl Position {
    /// Returns the position at the start of a log, before its head. `commit` is the last commit before the log.
    pub(super) fn before(number: u64, commit: u64) -> Self {
        Self { number, offset: 0, batches: 0, synced: 0, commit, durable: 0 }
    }
}

/// Reads a log through a buffer of limited size.
struct LogReader<'a> {
    path: &'a Path,
    file: Box<dyn ReadFile>,
    /// The offset at which reading ends: the length of the log that the manifest records, or the length of the file.
    end: u64,
    window: Vec<u8>,
    start: u64,
}

impl LogReader<'_> {
    /// Returns the `length` bytes from `offset` on; `None` if the log ends before that.
    fn get(&mut self, offset: u64, length: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(length).filter(|&end| end <= self.end) else { return Ok(None) };
        if offset < self.start || end > self.start + self.window.len() as u64 {
            // guard: a log is read piece by piece
            // without it: WINDOW -> u64::MAX
            let size = length.max(WINDOW).min(self.end - offset) as usize;
            self.window.resize(size, 0);
            self.start = offset;
            let read = self.file.read_exact_at(&mut self.window, offset);
            read.map_err(|e| Error::io("read", self.path, e))?;
        }
        let from = (offset - self.start) as usize;
        Ok(self.window.get(from..from + length as usize))
    }

    /// Returns the head of the record at `offset` if the record is intact; otherwise `None`.
    fn sound(&mut self, salt: u128, offset: u64) -> Result<Option<RecordHead>> {
        let head = self.get(offset, RECORD_HEAD_BYTES as u64)?.and_then(RecordHead::read);
        let Some(head) = head else { return Ok(None) };
        let record = self.get(offset, head.record_bytes())?;
        Ok(record.filter(|record| log::is_sound(salt, offset, record)).map(|_| head))
    }

    /// Returns the payload of the record at `offset`, whose head [`sound`](Self::sound) has returned as `head`.
    fn payload(&mut self, offset: u64, head: &RecordHead) -> Result<&[u8]> {
        let (path, end) = (self.path, self.end);
        let payload = RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + head.length as usize;
        let record = self.get(offset, head.record_bytes())?;
        record.and_then(|record| record.get(payload)).ok_or_else(|| {
            let expected = format!("a record of {} bytes", head.record_bytes());
            corrupt(path, "log", 0, Fault::new(offset, expected, format!("the end at {end}")))
        })
    }

    /// Returns the synced offset that the record at `offset` contains, or the fault in the record.
    fn synced(&mut self, offset: u64, head: &RecordHead) -> Result<std::result::Result<u64, Fault>> {
        let payload = self.payload(offset, head)?;
        Ok(match head.kind {
            RecordKind::Batch => BatchView::decode(payload).map(|batch| batch.synced),
            RecordKind::Mark => log::decode_mark(payload),
        })
    }

    /// Returns the highest synced offset that is recorded in an intact record after the damaged record at `bad`.
    /// Returns `None` if the search would take too long, for example if crafted bytes look like the heads of many
    /// records.
    fn synced_after(&mut self, salt: u128, bad: u64, commit: u64) -> Result<Option<u64>> {
        let mut highest = 0;
        let mut budget = (self.end - bad).saturating_mul(4).max(1 << 16);
        let mut offset = bad + RECORD_ALIGNMENT;
        while let Some(bytes) = self.get(offset, RECORD_HEAD_BYTES as u64)? {
            let head = RecordHead::read(bytes)
                .filter(|head| (commit..commit.saturating_add(COMMITS_APART_MAX)).contains(&head.commit));
            let Some(head) = head else {
                offset += RECORD_ALIGNMENT;
                continue;
            };
            let Some(left) = budget.checked_sub(head.record_bytes()) else { return Ok(None) };
            budget = left;
            if self.sound(salt, offset)?.is_some() {
                // An intact record that cannot be decoded is damage, so the whole file is treated as synced.
                highest = highest.max(self.synced(offset, &head)?.unwrap_or(u64::MAX));
                offset += head.record_bytes();
            } else {
                offset += RECORD_ALIGNMENT;
            }
        }
        Ok(Some(highest))
    }
}

/// Calls `each` for each complete batch after `from`. The arguments are the path of the log, the commit number, the
/// offset of the batch's payload, and the batch. Returns the position at the end of the log.
///
/// # Errors
/// [`Error::Corrupt`] for a bad record in the synced part of the file; [`Error::Io`]; the error that `each` returns.
pub(super) fn replay(
    vfs: &dyn Vfs,
    dir: &Path,
    manifest: &Manifest,
    entry: &LogEntry,
    from: Position,
    mut each: impl FnMut(&Path, u64, u64, &BatchView<'_>) -> Result<()>,
) -> Result<Position> {
    let path = names::log(dir, entry.number);
    let file = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?;
    let length = file.len().map_err(|e| Error::io("get the length of", &path, e))?;
    let fault = |fault: Fault| corrupt(&path, "log", 0, fault);
    let min = entry.length.max(from.offset).max(LOG_HEAD_BYTES);
    // guard: a log is as long as the manifest says at least
    if length < min {
        return Err(fault(Fault::new(length, format!("at least {min} bytes"), length)));
    }
    let end = if entry.grows { length } else { entry.length };
    let salt = log::record_salt(manifest.uuid, entry.number);
    let mut reader = LogReader { path: &path, file, end, window: Vec::new(), start: 0 };
    let mut at = from;
    if at.offset == 0 {
        // A file that is shorter than a head is reported with the same error as an empty file.
        let head = reader.get(0, LOG_HEAD_BYTES)?.unwrap_or_default();
        let first = log::decode_head(head, manifest.uuid, &manifest.params, entry.number)
            .map_err(|refusal| refused(&path, "log", refusal))?;
        if first != entry.first {
            return Err(fault(Fault::new(
                72,
                format!("first commit {} as in the manifest", entry.first),
                first,
            )));
        }
        (at.offset, at.synced) = (LOG_HEAD_BYTES, LOG_HEAD_BYTES);
    }
    at.synced = at.synced.max(entry.length);
    let start = at.offset;
    // The end of each record that is not known to be synced yet, and the number of the last commit before this end.
    let mut ends: VecDeque<(u64, u64)> = VecDeque::new();
    // The ends of all records read so far, ascending. Takes 8 bytes per record.
    let mut all_ends: Vec<u64> = Vec::new();
    let mut last_batch = None;
    while at.offset < end {
        let Some(head) = reader.sound(salt, at.offset)? else {
            let after = reader.synced_after(salt, at.offset, at.commit)?;
            // `None` means that the search would take too long; the bad record is then reported as damage.
            let synced = after.unwrap_or(u64::MAX).max(at.synced);
            // guard: what is bad below the synced offset is damage
            if at.offset < synced {
                let expected = format!("a sound record, as the file was synced up to {}", synced.min(end));
                return Err(fault(Fault::new(at.offset, expected, "another")));
            }
            break; // the record was torn by a crash, or is being written
        };
        let payload_at = at.offset + RECORD_HEAD_BYTES as u64;
        let lies = |mut lie: Fault| {
            lie.offset += payload_at;
            fault(lie)
        };
        let synced = reader.synced(at.offset, &head)?.map_err(lies)?;
        if synced > at.offset {
            return Err(lies(Fault::new(0, format!("at most {} bytes synced", at.offset), synced)));
        }
        // guard: a record says that records before it are synced, as a whole
        // without it: synced > start -> false
        if synced > start && all_ends.binary_search(&synced).is_err() || (1..LOG_HEAD_BYTES).contains(&synced)
        {
            return Err(lies(Fault::new(0, "a place where a record ends", synced)));
        }
        if synced > at.synced {
            // Updates the last durable commit, and drops the ends of records that are now known to be synced.
            while let Some(&(end, commit)) = ends.front()
                && end <= synced
            {
                at.durable = at.durable.max(commit);
                if end == synced {
                    break;
                }
                ends.pop_front();
            }
            at.synced = synced;
        }
        let end_of_payload = payload_at + u64::from(head.length);
        let padding = reader.get(end_of_payload, at.offset + head.record_bytes() - end_of_payload)?;
        // guard: a record is filled with zeros
        if let Some(place) = padding.and_then(|padding| padding.iter().position(|&byte| byte != 0)) {
            let offset = end_of_payload + place as u64;
            return Err(fault(Fault::new(offset, "zeros up to the next record", "another byte")));
        }
        // guard: a mark has the number of the batch before it
        if head.kind == RecordKind::Mark && last_batch.is_some_and(|last| last != head.commit) {
            let expected = format!("commit {}, that of the batch before the mark", at.commit);
            return Err(fault(Fault::new(at.offset + 16, expected, head.commit)));
        }
        if head.kind == RecordKind::Batch {
            if head.commit <= at.commit {
                let expected = format!("a commit above {}", at.commit);
                return Err(fault(Fault::new(at.offset + 16, expected, head.commit)));
            }
            last_batch = Some(head.commit);
            let payload = reader.payload(at.offset, &head)?;
            each(&path, head.commit, payload_at, &BatchView::decode(payload).map_err(lies)?)?;
            at.commit = head.commit;
            at.batches = at.offset + head.record_bytes();
        }
        at.offset += head.record_bytes();
        ends.push_back((at.offset, at.commit));
        all_ends.push(at.offset);
    }
    // Older versions of twindex record length 0 for the active log. They sync its first batch before they write the
    // manifest, so the batch must exist.
    if entry.grows && entry.length == 0 && at.batches == 0 {
        let expected = format!("a batch from commit {} on", entry.first);
        return Err(fault(Fault::new(at.offset, expected, "the end of the log")));
    }
    if at.batches > 0 && at.synced >= at.batches {
        at.durable = at.commit;
    }
    Ok(at)
}

/// The log that a writer appends to.
#[derive(Debug)]
pub(super) struct OpenLog {
    file: Box<dyn AppendFile>,
    path: PathBuf,
    salt: u128,
    /// Number of bytes written to the file so far.
    offset: u64,
    /// Number of bytes that are known to be durable.
    synced: u64,
    /// Encoded records that are not written to the file yet.
    buffer: Vec<u8>,
    last: u64,
    /// The offset at which the last batch ends.
    batches: u64,
    /// The number of the last durable commit in the log; 0 if there is none.
    durable: u64,
    /// The highest synced offset that any record of this log contains.
    said: u64,
}

impl OpenLog {
    /// Creates an empty log file. Its head is only buffered; [`write`](Self::write) writes it.
    pub(super) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        manifest: &Manifest,
        number: u64,
        first: u64,
    ) -> Result<Self> {
        let path = names::log(dir, number);
        let file = vfs.create_append(&path).map_err(|e| Error::io("create", &path, e))?;
        let buffer = log::encode_head(manifest.uuid, &manifest.params, number, first);
        let salt = log::record_salt(manifest.uuid, number);
        Ok(Self {
            file,
            path,
            salt,
            offset: 0,
            synced: 0,
            buffer,
            last: first,
            batches: 0,
            durable: 0,
            said: 0,
        })
    }

    /// Returns the offset of the next record.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the position that a reader has after it read the whole log, up to `commit`.
    pub(super) fn position(&self, number: u64, commit: u64) -> Position {
        let synced = self.synced.max(LOG_HEAD_BYTES);
        Position { number, offset: self.end(), batches: self.batches, synced, commit, durable: self.durable }
    }

    /// Appends a batch to the buffer.
    pub(super) fn add(&mut self, batch: &LogBatch, commit: u64, payload: Option<&[u8]>) {
        let (offset, synced) = (self.end(), self.synced);
        batch.encode(&mut self.buffer, self.salt, offset, commit, synced, payload);
        (self.last, self.batches, self.said) = (commit, self.end(), synced);
    }

    /// Appends a batch that was read from another log to the buffer.
    pub(super) fn add_again(&mut self, batch: &BatchView<'_>, commit: u64) {
        let (offset, synced) = (self.end(), self.synced);
        batch.encode(&mut self.buffer, self.salt, offset, commit, synced);
        (self.last, self.batches, self.said) = (commit, self.end(), synced);
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced == self.end()
    }

    /// Returns the number of buffered bytes that are not written yet.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the buffered records to the file. After that they survive a crash of the process.
    pub(super) fn write(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            if let Err(error) = self.file.append(&self.buffer) {
                // Removes a partly written batch. If the disk is full, the next writer needs the space that it takes.
                let _ = self.file.cut(self.offset);
                return Err(Error::io("write", &self.path, error));
            }
            self.offset += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        self.write()?;
        if self.synced < self.offset {
            // guard: a log is synced before a commit is acknowledged
            self.file.sync().map_err(|e| Error::io("sync", &self.path, e))?;
            self.synced = self.offset;
            self.durable = self.last;
        }
        Ok(())
    }

    /// Appends a mark, which records the synced offset. From a mark, readers can distinguish damage in the synced part
    /// from a torn tail, and other processes learn which commits are durable. If the disk has no space for the mark,
    /// nothing is lost, because commits are durable without it.
    ///
    /// # Errors
    /// [`Error::Io`] if a partly written mark could not be removed from the log. Readers would ignore later records.
    pub(super) fn mark(&mut self) -> Result<()> {
        if !self.buffer.is_empty() || self.synced < self.batches || self.said >= self.batches {
            return Ok(()); // a later batch will record the offset, or the last record contains it already
        }
        log::encode_mark(&mut self.buffer, self.salt, self.offset, self.last, self.synced);
        if self.write().is_ok() {
            self.said = self.synced;
        } else {
            // Removes the partly written mark, so that the log ends with a complete record.
            // guard: a mark that could not be written is not looked for
            self.buffer.clear();
            self.file.cut(self.offset).map_err(|error| Error::io("cut", &self.path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::vfs::MemoryFile;

    #[test]
    fn payload_beyond_the_end_of_file_is_reported_at_its_record_offset() {
        let file = Box::new(MemoryFile(vec![0; 256]));
        let mut reader = LogReader { path: Path::new("LOG-1"), file, end: 256, window: Vec::new(), start: 0 };
        let head = RecordHead { length: 100, kind: RecordKind::Batch, commit: 1 };
        assert_eq!(reader.payload(0, &head).unwrap().len(), 100);
        let error = reader.payload(192, &head).unwrap_err();
        assert!(matches!(error, Error::Corrupt { section: "log", offset: 192, .. }), "{error:?}");
    }
}
