//! Changes an index: adds parts, deletes documents, and merges parts. Each change replaces the list of parts once.
//! After a crash, the index is in the state before or after the change; the next writer removes left-over files.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use twindex::sys::vfs::{HeldLock, LockFailure};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Result};

use crate::passages::index::build::{Builder, BuiltPart};
use crate::passages::index::deletions::DeletedDocuments;
use crate::passages::index::folder::{
    LIST, LOCK, PassageIndex, deletions_name, is_name, part_name, read_list,
};
use crate::passages::index::format::{PARTS_MAX, PartEntry, list_to_bytes};

/// The result of [`PassageIndex::delete`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Number of documents that were deleted.
    pub documents: u64,
    /// Number of keys that no document of the index had.
    pub absent: u64,
}

/// The result of [`PassageIndex::compact`] or [`PassageIndex::merge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Number of parts that were merged into one.
    pub parts: usize,
    /// Number of deleted documents that were removed.
    pub dropped: u64,
    /// Total size of the parts before the merge, and size of the merged part, both in bytes.
    pub bytes: (u64, u64),
}

/// Parts smaller than [`FAN_IN`] times this number of bytes are in tier 0.
const TIER_BYTES: u64 = 1 << 20;
/// Maximum number of parts per tier after a merge, and the ratio between the sizes of adjacent tiers.
const FAN_IN: u64 = 8;

/// Returns the tier of a part of `bytes` bytes.
fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES).max(1).ilog(FAN_IN)
}

/// Returns the position of the first part to merge; a merge takes this part and all later parts of the list. Returns
/// `None` if no merge is needed. `sizes` has the sizes of all parts, in order. For each tier, a run consists of the
/// parts at the end of the list whose tier is not higher. A run qualifies if it has more than [`FAN_IN`] parts for each
/// tier that occurs in it. Of all qualifying runs, the run of the highest tier is merged.
///
/// Documents have an order, so only adjacent parts can be merged. After a merge there are at most [`FAN_IN`] parts per
/// tier. If parts are added one at a time, a merge of a part above tier 0 usually produces a part of a higher tier. It
/// does not if another part of the same tier was added meanwhile, which happens at most [`FAN_IN`] - 1 times. A byte is
/// therefore written fewer than [`FAN_IN`] times per tier, and about once if all parts have the same size. A merge in
/// tier 0 writes less than 72 MiB.
fn start_of_merge(sizes: &[u64]) -> Option<usize> {
    let tiers: Vec<u32> = sizes.iter().map(|&bytes| tier(bytes)).collect();
    let highest = tiers.iter().copied().max()?;
    (0..=highest).rev().find_map(|up_to| {
        let start = tiers.iter().rposition(|&tier| tier > up_to).map_or(0, |higher| higher + 1);
        let last = &tiers[start..];
        let kinds = last.iter().fold(0_u64, |kinds, &tier| kinds | 1 << tier).count_ones();
        (last.len() as u64 > FAN_IN * u64::from(kinds)).then_some(start)
    })
}

/// An index that this process has locked for changes.
struct IndexChange<'f> {
    folder: &'f Path,
    entries: Vec<PartEntry>,
    _lock: Box<dyn HeldLock>,
}

impl<'f> IndexChange<'f> {
    /// Locks the index for changes, and removes files that a crash left over.
    fn begin(folder: &'f Path) -> Result<Self> {
        let lock = lock(folder)?;
        let entries = read_list(folder)?.unwrap_or_default();
        let change = Self { folder, entries, _lock: lock };
        change.clean()?;
        Ok(change)
    }

    fn names(folder: &Path) -> Result<Vec<OsString>> {
        RealVfs.list(folder).map_err(|error| Error::io("list", folder, error))
    }

    /// Removes the files of parts and deletions that are not in the list, and temporary files.
    fn clean(&self) -> Result<()> {
        let is_named = |name: &str| {
            self.entries.iter().any(|entry| {
                part_name(entry.number) == name
                    || (entry.deletions > 0 && deletions_name(entry.deletions) == name)
            })
        };
        for name in Self::names(self.folder)?.iter().filter_map(|name| name.to_str()) {
            let is_left = name.starts_with("passages-") && is_name(name) && !is_named(name);
            if is_left || name.starts_with(".twindex-tmp-") {
                let path = self.folder.join(name);
                RealVfs.unlink(&path).map_err(|error| Error::io("remove", &path, error))?;
            }
        }
        Ok(())
    }

    /// Returns a number for a new file: above the numbers of all files in the list.
    fn next_number(&self) -> u64 {
        self.entries.iter().map(|entry| entry.number.max(entry.deletions)).max().unwrap_or(0) + 1
    }

    /// Syncs the folder, then writes the new list and syncs the folder again.
    fn publish(&self) -> Result<()> {
        let sync = || RealVfs.sync_dir(self.folder).map_err(|error| Error::io("sync", self.folder, error));
        sync()?;
        put(self.folder, LIST, &list_to_bytes(&self.entries), true)?;
        sync()
    }
}

/// Writes a small file and syncs it, but not its directory entry.
fn put(folder: &Path, name: &str, bytes: &[u8], replace: bool) -> Result<()> {
    let path = folder.join(name);
    let failed = |op: &'static str| move |error| Error::io(op, folder, error);
    let mut file = RealVfs.create_temporary(folder).map_err(failed("create a file in"))?;
    file.append(bytes).map_err(failed("write a file in"))?;
    file.sync().map_err(failed("sync a file in"))?;
    file.publish(&path, replace).map_err(|error| Error::io("give its name to", &path, error))
}

fn lock(folder: &Path) -> Result<Box<dyn HeldLock>> {
    let path = folder.join(LOCK);
    RealVfs.lock(&path).map_err(|failure| match failure {
        LockFailure::Held(process) => {
            let holder = process.map_or_else(String::new, |process| format!(" (process {process})"));
            Error::Locked { path, holder }
        }
        LockFailure::Io(error) => Error::io("lock", &path, error),
    })
}

impl PassageIndex {
    /// Durably adds a built part to an index. Creates the index and its folder if they do not exist. `settings` are the
    /// text options, which must be the same for all parts.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process writes; [`Error::ParamsMismatch`] if the index was created with other
    /// options; [`Error::AlreadyExists`] if the folder exists and contains other files; [`Error::Limit`] if there are too
    /// many parts (use [`merge`](Self::merge) or [`compact`](Self::compact)); the errors of [`open`](Self::open).
    pub fn append(folder: &Path, built: BuiltPart, settings: &str) -> Result<()> {
        let is_there = RealVfs.exists(folder).map_err(|error| Error::io("look for", folder, error))?;
        if !is_there {
            RealVfs.create_dir(folder).map_err(|error| Error::io("create", folder, error))?;
        }
        let ours = |name: &OsString| {
            name.to_str().is_some_and(|name| is_name(name) || name.starts_with(".twindex-tmp-"))
        };
        if !IndexChange::names(folder)?.iter().all(ours) {
            return Err(Error::AlreadyExists { path: folder.to_owned() });
        }
        let mut change = IndexChange::begin(folder)?;
        if let Some(index) = Self::open_if_there(folder)? {
            index.check(built.shape(), built.seed(), settings)?;
        }
        let found = change.entries.len() as u64 + 1;
        if found > PARTS_MAX as u64 {
            return Err(Error::Limit { what: "parts of an index", limit: PARTS_MAX as u64, found });
        }
        let number = change.next_number();
        change.entries.push(built.write(&folder.join(part_name(number)), number, settings)?);
        change.publish()
    }

    /// Deletes all documents with these keys, in all parts. Readers that have the index open still find the documents.
    /// The space of deleted documents is freed when the parts are [merged](Self::compact).
    ///
    /// Takes time linear in the number of documents of the index.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process writes; the errors of [`open`](Self::open).
    pub fn delete(folder: &Path, keys: &HashSet<Vec<u8>>) -> Result<Deleted> {
        drop(Self::open(folder)?); // fails if there is no index, before a lock file is created
        let mut change = IndexChange::begin(folder)?;
        let index = Self::open(folder)?;
        let (mut deleted, mut found) = (Deleted::default(), HashSet::new());
        let mut number = change.next_number();
        for (part, entry) in index.parts.iter().zip(&mut change.entries) {
            let mut deletions: Vec<u32> = part.deletions.numbers().collect();
            let before = deletions.len();
            for document in (0..part.documents()).filter(|&document| !part.deletions.has(document)) {
                if let Some(key) = keys.get(part.key(document)?) {
                    found.insert(key.as_slice());
                    deletions.push(document);
                }
            }
            if deletions.len() == before {
                continue;
            }
            deleted.documents += (deletions.len() - before) as u64;
            deletions.sort_unstable();
            put(
                folder,
                &deletions_name(number),
                &DeletedDocuments::of(&deletions).to_bytes(entry.number),
                false,
            )?;
            (entry.deletions, entry.deleted) = (number, deletions.len() as u64);
            number += 1;
        }
        deleted.absent = (keys.len() - found.len()) as u64;
        if deleted.documents > 0 {
            change.publish()?;
            // The change is durable already. If removing old files fails, the next writer removes them.
            let _ = change.clean();
        }
        Ok(deleted)
    }

    /// Merges all parts into one, without the deleted documents. The part has the same bytes as if the other documents
    /// had been added at once. Returns `None` if there is only one part and no deleted document. Sorts in up to
    /// `memory` bytes, then in scratch files in the folder. Readers that have the index open continue to use the old
    /// parts.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process writes; the errors of [`open`](Self::open).
    pub fn compact(folder: &Path, memory: usize) -> Result<Option<Compacted>> {
        drop(Self::open(folder)?);
        let mut change = IndexChange::begin(folder)?;
        let index = Self::open(folder)?;
        if index.parts() == 1 && index.deleted() == 0 {
            return Ok(None);
        }
        index.merge_from(0, &mut change, memory).map(Some)
    }

    /// Merges the last parts into one, as [`compact`](Self::compact) does for all parts, if there are many parts of
    /// similar size. Sizes are divided into tiers that grow by a factor of 8. If this is called after each
    /// [`append`](Self::append), the index has at most 8 parts per tier. Each byte is written fewer than 8 times per
    /// tier, and about once if all appended parts have the same size. Returns `None` if nothing was merged.
    ///
    /// # Errors
    ///
    /// Same as [`compact`](Self::compact).
    pub fn merge(folder: &Path, memory: usize) -> Result<Option<Compacted>> {
        drop(Self::open(folder)?);
        let mut change = IndexChange::begin(folder)?;
        let sizes: Vec<u64> = change.entries.iter().map(|entry| entry.bytes).collect();
        let Some(start) = start_of_merge(&sizes) else { return Ok(None) };
        Self::open(folder)?.merge_from(start, &mut change, memory).map(Some)
    }

    /// Merges the parts from index `start` to the end of the list.
    fn merge_from(&self, start: usize, change: &mut IndexChange<'_>, memory: usize) -> Result<Compacted> {
        let folder = change.folder;
        let parts = &self.parts[start..];
        let mut builder = Builder::new(folder, memory, self.shape(), self.seed())?;
        let mut before = 0;
        for part in parts {
            let place = |document: u32| before + document - part.deletions.before(document);
            for document in (0..part.documents()).filter(|&document| !part.deletions.has(document)) {
                let (hashes, places) = (part.hashes(document)?, part.place_bytes(document)?);
                builder.push_bytes(part.key(document)?, hashes.bytes(), places)?;
            }
            part.for_each(|fingerprint, (document, position)| {
                if part.deletions.has(document) {
                    return Ok(());
                }
                builder.push_posting(fingerprint, place(document), position)
            })?;
            before += part.documents() - part.deletions.count();
        }
        let built = builder.finish()?;
        let number = change.next_number();
        let entry = built.write(&folder.join(part_name(number)), number, self.settings()?)?;
        let dropped = parts.iter().map(|part| u64::from(part.deletions.count())).sum();
        let bytes = (parts.iter().map(|part| part.identity().0).sum(), entry.bytes);
        change.entries.truncate(start);
        change.entries.push(entry);
        change.publish()?;
        // The change is durable already. If removing old files fails, the next writer removes them.
        let _ = change.clean();
        Ok(Compacted { parts: parts.len(), dropped, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates adding parts one by one, with merges. Returns the final sizes, and the total number of bytes written.
    fn added(new: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
        let (mut sizes, mut written) = (Vec::new(), 0);
        for bytes in new {
            sizes.push(bytes);
            written += bytes;
            if let Some(start) = start_of_merge(&sizes) {
                let merged: u64 = sizes.drain(start..).sum();
                written += merged;
                sizes.push(merged);
            }
            let tiers: std::collections::HashSet<u32> = sizes.iter().map(|&bytes| tier(bytes)).collect();
            assert!(sizes.len() <= FAN_IN as usize * tiers.len(), "{sizes:?}");
            assert_eq!(start_of_merge(&sizes), None, "{sizes:?}");
        }
        (sizes, written)
    }

    #[test]
    fn parts_of_equal_size_stay_few_with_one_write_per_tier() {
        assert_eq!([0, 1, 8 << 20, (64 << 20) - 1, 64 << 20, u64::MAX].map(tier), [0, 0, 1, 1, 2, 14]);
        for size in [1 << 10, 1 << 20, 3 << 20, 1 << 30] {
            let (few, written) = added(std::iter::repeat_n(size, 8));
            assert_eq!((few.len(), written), (8, 8 * size), "eight are left alone");
            assert_eq!(added(std::iter::repeat_n(size, 9)).0, [9 * size]);
            let (sizes, written) = added(std::iter::repeat_n(size, 3000));
            let tiers = u64::from(tier(3000 * size)) - u64::from(tier(size)) + 1;
            assert!(
                size < TIER_BYTES || written <= (tiers + 1) * 3000 * size,
                "{written} of parts of {size}"
            );
            assert_eq!(sizes.iter().sum::<u64>(), 3000 * size);
        }
    }

    #[test]
    fn number_of_parts_and_rewritten_bytes_are_bounded() {
        let large = 1 << 30;
        let small = |count| std::iter::repeat_n(1 << 10, count);
        let (sizes, written) = added(std::iter::once(large).chain(small(500)));
        assert!(sizes[0] == large && written < 2 * large, "{written}");
        // Tests large parts of one size at regular intervals between small parts.
        for period in [2, 5, 8, 9, 10, 17] {
            let of = |at: u64| if at.is_multiple_of(period) { 9 << 20 } else { 1 << 10 };
            let all: u64 = (0..4000).map(of).sum();
            let (_, written) = added((0..4000).map(of));
            assert!(written <= (1 + FAN_IN * u64::from(tier(all) + 1)) * all, "{period}: {written} of {all}");
        }
        // Tests descending, ascending and random sizes.
        added((0..40).rev().map(|power| 1 << power));
        added((0..40).map(|power| 1 << power));
        let mut state = 7_u64;
        added((0..3000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            1 << ((state >> 33) % 34)
        }));
        assert_eq!(start_of_merge(&[]), None);
    }
}
