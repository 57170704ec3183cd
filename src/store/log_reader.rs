//! Reads the records of a log file.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result, corrupt};
use crate::format::log::{self, BatchView, RECORD_ALIGNMENT, RECORD_HEAD_BYTES, RecordHead, RecordKind};
use crate::format::wire::Fault;
use crate::sys::vfs::ReadFile;

/// Minimum number of bytes read from a log at a time.
const WINDOW: u64 = 1 << 20;
/// The maximum gap between the commit numbers of consecutive batches. The numbers in a gap belong to manifests.
const COMMITS_APART_MAX: u64 = 1 << 40;

/// Reads a log through a buffer of limited size.
pub(super) struct LogReader<'a> {
    path: &'a Path,
    file: Arc<dyn ReadFile>,
    /// The offset at which reading ends: the length of the log that the manifest records, or the length of the file.
    end: u64,
    window: Vec<u8>,
    start: u64,
}

impl<'a> LogReader<'a> {
    /// Reads the first `end` bytes of a file. `path` is its path, for errors.
    pub(super) fn new(path: &'a Path, file: Arc<dyn ReadFile>, end: u64) -> Self {
        Self { path, file, end, window: Vec::new(), start: 0 }
    }

    /// Returns the `length` bytes from `offset` on; `None` if the log ends before that.
    pub(super) fn get(&mut self, offset: u64, length: u64) -> Result<Option<&[u8]>> {
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
    pub(super) fn sound(&mut self, salt: u128, offset: u64) -> Result<Option<RecordHead>> {
        let head = self.get(offset, RECORD_HEAD_BYTES as u64)?.and_then(RecordHead::read);
        let Some(head) = head else { return Ok(None) };
        let record = self.get(offset, head.record_bytes())?;
        Ok(record.filter(|record| log::is_sound(salt, offset, record)).map(|_| head))
    }

    /// Returns the payload of the record at `offset`, whose head [`sound`](Self::sound) has returned as `head`.
    pub(super) fn payload(&mut self, offset: u64, head: &RecordHead) -> Result<&[u8]> {
        let (path, end) = (self.path, self.end);
        let payload = RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + head.length as usize;
        let record = self.get(offset, head.record_bytes())?;
        record.and_then(|record| record.get(payload)).ok_or_else(|| {
            let expected = format!("a record of {} bytes", head.record_bytes());
            corrupt(path, "log", 0, Fault::new(offset, expected, format!("the end at {end}")))
        })
    }

    /// Returns the synced offset that the record at `offset` contains, or the fault in the record.
    pub(super) fn synced(
        &mut self,
        offset: u64,
        head: &RecordHead,
    ) -> Result<std::result::Result<u64, Fault>> {
        let payload = self.payload(offset, head)?;
        Ok(match head.kind {
            RecordKind::Batch => BatchView::decode(payload).map(|batch| batch.synced),
            RecordKind::Mark => log::decode_mark(payload),
        })
    }

    /// Returns the highest synced offset that is recorded in an intact record after the damaged record at `bad`.
    /// Returns `None` if the search would take too long, for example if crafted bytes look like the heads of many
    /// records.
    pub(super) fn synced_after(&mut self, salt: u128, bad: u64, commit: u64) -> Result<Option<u64>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::vfs::MemoryFile;

    #[test]
    fn payload_beyond_the_end_of_file_is_reported_at_its_record_offset() {
        let mut reader = LogReader::new(Path::new("LOG-1"), Arc::new(MemoryFile(vec![0; 256])), 256);
        let head = RecordHead { length: 100, kind: RecordKind::Batch, commit: 1 };
        assert_eq!(reader.payload(0, &head).unwrap().len(), 100);
        let error = reader.payload(192, &head).unwrap_err();
        assert!(matches!(error, Error::Corrupt { section: "log", offset: 192, .. }), "{error:?}");
    }
}
