//! Reads and writes log files: replays complete batches, distinguishes a torn tail from damage, and appends batches.
//!
//! Only the writer that created a log appends to it; the next writer creates a new log. The manifest records how many
//! bytes of the old log are durable. Batches after these bytes are copied to the new log, so that no commit depends on
//! bytes that may exist only in the page cache.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::history::{Position, ReadLog, RecordChain};
use super::log_reader::LogReader;
use super::names;
use crate::error::{Error, Result, corrupt, refused};
use crate::format::log::{self, BatchView, LOG_HEAD_BYTES, LogBatch, RECORD_HEAD_BYTES, RecordKind};
use crate::format::manifest::{LogEntry, Manifest};
use crate::format::wire::Fault;
use crate::sys::Vfs;
use crate::sys::vfs::{AppendFile, FileStamp, ReadFile};

/// Calls `each` for each complete batch after `from`. The arguments are the path of the log, the commit number, the
/// offset of the batch's payload, and the batch. Returns the log as far as it was read.
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
) -> Result<ReadLog> {
    let path = names::log(dir, entry.number);
    let file: Arc<dyn ReadFile> = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?.into();
    let length = file.len().map_err(|e| Error::io("get the length of", &path, e))?;
    let fault = |fault: Fault| corrupt(&path, "log", 0, fault);
    let min = entry.length.max(from.offset).max(LOG_HEAD_BYTES);
    // guard: a log is as long as the manifest says at least
    if length < min {
        return Err(fault(Fault::new(length, format!("at least {min} bytes"), length)));
    }
    let end = if entry.grows { length } else { entry.length };
    let salt = log::record_salt(manifest.uuid, entry.number);
    let mut reader = LogReader::new(&path, Arc::clone(&file), end);
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
        at.records.add(at.offset, reader.get(at.offset, RECORD_HEAD_BYTES as u64)?.unwrap_or_default());
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
    Ok(ReadLog::new(at, &file))
}

/// Returns whether a log that no manifest names has a batch that was acknowledged: after it, a record was written that says
/// that it is synced, and a writer writes no such record before `CURRENT` names the log.
pub(super) fn has_synced(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest, number: u64) -> Result<bool> {
    let path = names::log(dir, number);
    let file: Arc<dyn ReadFile> = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?.into();
    let length = file.len().map_err(|e| Error::io("get the length of", &path, e))?;
    let mut reader = LogReader::new(&path, file, length);
    let (salt, mut offset) = (log::record_salt(manifest.uuid, number), LOG_HEAD_BYTES);
    while let Some(head) = reader.sound(salt, offset)? {
        if reader.synced(offset, &head)?.is_ok_and(|synced| synced > LOG_HEAD_BYTES) {
            return Ok(true);
        }
        offset += head.record_bytes();
    }
    Ok(false)
}

/// The log that a writer appends to.
#[derive(Debug)]
pub(super) struct OpenLog {
    file: Box<dyn AppendFile>,
    /// The same file, for reading.
    written: Arc<dyn ReadFile>,
    /// The stamp of the new file; `None` if the file system has no stamps.
    stamp: Option<FileStamp>,
    path: PathBuf,
    number: u64,
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
    /// The records up to `offset`, which are written.
    records: RecordChain,
    /// The records up to the end of `buffer`.
    all_records: RecordChain,
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
        let written: Arc<dyn ReadFile> = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?.into();
        let stamp = written.stamp().map_err(|e| Error::io("look at", &path, e))?;
        let buffer = log::encode_head(manifest.uuid, &manifest.params, number, first);
        let salt = log::record_salt(manifest.uuid, number);
        Ok(Self {
            file,
            written,
            stamp,
            path,
            number,
            salt,
            offset: 0,
            synced: 0,
            buffer,
            last: first,
            batches: 0,
            durable: 0,
            said: 0,
            records: RecordChain::default(),
            all_records: RecordChain::default(),
        })
    }

    /// Returns the offset of the next record.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the log as a reader has it after it read the whole log, up to `commit`.
    pub(super) fn read_log(&self, commit: u64) -> ReadLog {
        let position = Position {
            number: self.number,
            offset: self.end(),
            batches: self.batches,
            synced: self.synced.max(LOG_HEAD_BYTES),
            commit,
            durable: self.durable,
            records: self.all_records,
        };
        ReadLog::with_stamp(position, &self.written, self.stamp)
    }

    /// Returns whether the path of the log still has the file that was written, with the records that were written.
    pub(super) fn is_on_disk(&self, vfs: &dyn Vfs) -> Result<bool> {
        let failed = |error| Error::io("look at", &self.path, error);
        let Some(known) = self.stamp else { return Ok(true) };
        match vfs.stamp(&self.path) {
            Ok(Some(stamp)) => Ok(stamp.is_same_file(&known)
                && stamp.length == self.offset
                && self.records.ends_in(&*self.written).map_err(failed)?),
            Ok(None) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Appends a batch to the buffer.
    pub(super) fn add(&mut self, batch: &LogBatch, commit: u64, payload: Option<&[u8]>) {
        let (offset, synced) = (self.end(), self.synced);
        let start = self.buffer.len();
        batch.encode(&mut self.buffer, self.salt, offset, commit, synced, payload);
        self.all_records.add(offset, &self.buffer[start..]);
        (self.last, self.batches, self.said) = (commit, self.end(), synced);
    }

    /// Appends a batch that was read from another log to the buffer.
    pub(super) fn add_again(&mut self, batch: &BatchView<'_>, commit: u64) {
        let (offset, synced) = (self.end(), self.synced);
        let start = self.buffer.len();
        batch.encode(&mut self.buffer, self.salt, offset, commit, synced);
        self.all_records.add(offset, &self.buffer[start..]);
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
            self.records = self.all_records;
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
        self.all_records.add(self.offset, &self.buffer);
        if self.write().is_ok() {
            self.said = self.synced;
        } else {
            // Removes the partly written mark, so that the log ends with a complete record.
            // guard: a mark that could not be written is not looked for
            self.buffer.clear();
            self.all_records = self.records;
            self.file.cut(self.offset).map_err(|error| Error::io("cut", &self.path, error))?;
        }
        Ok(())
    }
}
