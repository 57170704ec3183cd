//! The history of a state: the manifest and the log records from which the state was read.
//!
//! A restored backup, a volume snapshot or rsync can replace the files of a directory by those of a copy of the same index.
//! The UUID is then the same. The numbers of commits, segments and logs and the lengths of logs may be the same too,
//! although the commits differ. So a state reads on in a log only if the records that it has read are still in the file.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::log_reader::LogReader;
use super::names;
use crate::error::{Error, Result};
use crate::format::log::{LOG_HEAD_BYTES, RECORD_HEAD_BYTES, RecordHead};
use crate::sys::Vfs;
use crate::sys::vfs::{FileStamp, ReadFile};

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
    /// The records up to `offset`.
    pub(super) records: RecordChain,
}

impl Position {
    /// Returns the position at the start of a log, before its head. `commit` is the last commit before the log.
    pub(super) fn before(number: u64, commit: u64) -> Self {
        let records = RecordChain::default();
        Self { number, offset: 0, batches: 0, synced: 0, commit, durable: 0, records }
    }
}

/// Identifies the records of a log up to an offset. The head of a record has the checksum of the whole record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordChain {
    /// The offset of the last record; 0 if there is none.
    last: u64,
    /// The head of the last record.
    head: [u8; RECORD_HEAD_BYTES],
    /// A digest of the heads of all records.
    digest: u64,
}

impl RecordChain {
    /// Adds the record at `offset`, which begins with the bytes `head`.
    pub(super) fn add(&mut self, offset: u64, head: &[u8]) {
        if let Some(&head) = head.first_chunk() {
            (self.last, self.head) = (offset, head);
            self.digest = xxh3_64_with_seed(&head, self.digest);
        }
    }

    /// Returns whether the last record is still at its offset in `file`.
    pub(super) fn ends_in(&self, file: &dyn ReadFile) -> io::Result<bool> {
        if self.last == 0 {
            return Ok(true);
        }
        let mut head = [0; RECORD_HEAD_BYTES];
        match file.read_exact_at(&mut head, self.last) {
            // guard: a log is read on only after the record that was read last
            // without it: head == self.head -> true
            Ok(()) => Ok(head == self.head),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A log as far as it was read or written.
#[derive(Clone, Debug)]
pub(super) struct ReadLog {
    pub(super) position: Position,
    /// The file that was read. While it is open, no other file has the same stamp. `None` if the file system has no stamps.
    file: Option<(Arc<dyn ReadFile>, FileStamp)>,
}

impl ReadLog {
    pub(super) fn new(position: Position, file: &Arc<dyn ReadFile>) -> Self {
        // Without a stamp, the records are compared.
        Self::with_stamp(position, file, file.stamp().unwrap_or(None))
    }

    /// Like [`new`](Self::new), for a file whose stamp is known.
    pub(super) fn with_stamp(position: Position, file: &Arc<dyn ReadFile>, stamp: Option<FileStamp>) -> Self {
        Self { position, file: stamp.map(|stamp| (Arc::clone(file), stamp)) }
    }

    /// Returns whether the log on disk still begins with the records that were read. Takes two system calls if the file at
    /// the path is the one that was read; otherwise compares the heads of all records. A longer log with the same last
    /// record that was copied over the bytes of the file is taken for a log that grew.
    fn is_on_disk(&self, vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
        let Position { number, offset, records, .. } = self.position;
        let path = names::log(dir, number);
        if let Some((file, known)) = &self.file {
            match vfs.stamp(&path) {
                // guard: a log that changed without growing is compared record by record
                // without it: stamp.length != known.length || stamp.modified == known.modified -> true
                Ok(Some(stamp))
                    if stamp.is_same_file(known)
                        && (stamp.length != known.length || stamp.modified == known.modified) =>
                {
                    let is_here = stamp.length >= offset
                        && records.ends_in(&**file).map_err(|e| Error::io("read", &path, e))?;
                    return Ok(is_here);
                }
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("look at", &path, error));
                }
                _ => {}
            }
        }
        let file: Arc<dyn ReadFile> = match vfs.open(&path) {
            Ok(file) => file.into(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        let length = file.len().map_err(|e| Error::io("get the length of", &path, e))?;
        if length < offset || !records.ends_in(&*file).map_err(|e| Error::io("read", &path, e))? {
            return Ok(false);
        }
        // guard: another file with the name of a log is compared record by record
        // without it: return Ok(true);
        let mut reader = LogReader::new(&path, file, offset);
        let (mut found, mut at) = (RecordChain::default(), LOG_HEAD_BYTES);
        while at < offset {
            let Some(bytes) = reader.get(at, RECORD_HEAD_BYTES as u64)? else { return Ok(false) };
            let Some(head) = RecordHead::read(bytes) else { return Ok(false) };
            found.add(at, bytes);
            at += head.record_bytes();
        }
        Ok(found == records)
    }
}

/// The manifest and the logs from which a state was read.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The digest of the manifest, as in `CURRENT`.
    pub(super) manifest: u128,
    /// The logs that the manifest names, in its order.
    pub(super) logs: Vec<ReadLog>,
}

impl History {
    /// The position in the last log; `None` if there is no log.
    pub(super) fn position(&self) -> Option<Position> {
        self.logs.last().map(|log| log.position)
    }

    pub(super) fn log(&self, number: u64) -> Option<&ReadLog> {
        self.logs.iter().find(|log| log.position.number == number)
    }

    /// Returns whether the logs on disk that `is_checked` chooses by their numbers still begin with the records that were read.
    pub(super) fn has_logs(
        &self,
        vfs: &dyn Vfs,
        dir: &Path,
        is_checked: impl Fn(u64) -> bool,
    ) -> Result<bool> {
        for log in self.logs.iter().filter(|log| is_checked(log.position.number)) {
            if !log.is_on_disk(vfs, dir)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the stamp of the file `CURRENT`; `None` if the file system has no stamps, or if there is no such file.
pub(super) fn current_stamp(vfs: &dyn Vfs, dir: &Path) -> Result<Option<FileStamp>> {
    let path = names::current(dir);
    match vfs.stamp(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        stamp => stamp.map_err(|e| Error::io("look at", &path, e)),
    }
}

/// The error for a directory that contains an index with another UUID than the open one.
pub(super) fn another_index(dir: &Path) -> Error {
    let why = "another index has taken its place; open it again".into();
    Error::NotAnIndex { path: dir.to_owned(), why }
}

/// The error for a directory that contains another history of the index than the one that a writer continues.
pub(super) fn another_history(dir: &Path) -> Error {
    let why = "another history of this index, such as a restored copy, has taken its place while a writer had it open; \
               nothing more is written to it; drop the writer and take a new one, which goes on from that history";
    Error::NotAnIndex { path: dir.to_owned(), why: why.into() }
}
