//! How an index changes: parts are added, documents deleted, and parts merged. Each is one new list, which takes the place
//! of the old one; a crash leaves the index as it was before or after, and files that the next writer removes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use twindex::sys::vfs::{HeldLock, LockFailure};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Result};

use super::build::{Builder, Built};
use super::format::{Entry, PARTS_MAX, list_to_bytes};
use super::gone::Gone;
use super::{LIST, LOCK, PassageIndex, gone_name, is_name, part_name, read_list};

/// The result of [`PassageIndex::delete`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Documents that are gone now.
    pub documents: u64,
    /// Keys that no document had.
    pub absent: u64,
}

/// The result of [`PassageIndex::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Parts before; there is one now.
    pub parts: usize,
    /// Deleted documents that were dropped.
    pub dropped: u64,
    /// Bytes of all parts before, and after.
    pub bytes: (u64, u64),
}

/// An index that one process changes.
struct Change<'f> {
    folder: &'f Path,
    entries: Vec<Entry>,
    _lock: Box<dyn HeldLock>,
}

impl<'f> Change<'f> {
    /// Locks the index, and removes what a crash left.
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

    /// Removes files that the list does not name.
    fn clean(&self) -> Result<()> {
        let is_named = |name: &str| {
            self.entries.iter().any(|entry| {
                part_name(entry.number) == name || (entry.gone > 0 && gone_name(entry.gone) == name)
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

    /// A number that no file has.
    fn next_number(&self) -> u64 {
        self.entries.iter().map(|entry| entry.number.max(entry.gone)).max().unwrap_or(0) + 1
    }

    /// Makes the files durable that were written, and then the list of them.
    fn publish(&self) -> Result<()> {
        let sync = || RealVfs.sync_dir(self.folder).map_err(|error| Error::io("sync", self.folder, error));
        sync()?;
        put(self.folder, LIST, &list_to_bytes(&self.entries), true)?;
        sync()
    }
}

/// Writes a small file, durable but for its name.
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
    /// Adds the documents of a part that was built as a new one, and makes it durable; makes the index, and its folder, if there is
    /// none. `settings` say how the texts were cut, and are the same for all parts.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another writes; [`Error::ParamsMismatch`] if the index was made with other options;
    /// [`Error::AlreadyExists`] if the folder is there and has something else in it; [`Error::Limit`] for too many parts,
    /// which [`compact`](Self::compact) merges; those of [`open`](Self::open).
    pub fn append(folder: &Path, built: Built, settings: &str) -> Result<()> {
        let is_there = RealVfs.exists(folder).map_err(|error| Error::io("look for", folder, error))?;
        if !is_there {
            RealVfs.create_dir(folder).map_err(|error| Error::io("create", folder, error))?;
        }
        let ours = |name: &OsString| {
            name.to_str().is_some_and(|name| is_name(name) || name.starts_with(".twindex-tmp-"))
        };
        if !Change::names(folder)?.iter().all(ours) {
            return Err(Error::AlreadyExists { path: folder.to_owned() });
        }
        let mut change = Change::begin(folder)?;
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

    /// Deletes the documents with these keys, in all parts. Who has the index open sees them still. Their bytes go when parts are
    /// [merged](Self::compact).
    ///
    /// Time: linear in the documents of the index.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another writes; those of [`open`](Self::open).
    pub fn delete(folder: &Path, keys: &HashSet<Vec<u8>>) -> Result<Deleted> {
        drop(Self::open(folder)?); // before a lock is made where no index is
        let mut change = Change::begin(folder)?;
        let index = Self::open(folder)?;
        let (mut deleted, mut found) = (Deleted::default(), HashSet::new());
        let mut number = change.next_number();
        for (part, entry) in index.parts.iter().zip(&mut change.entries) {
            let mut gone: Vec<u32> = part.gone.numbers().collect();
            let before = gone.len();
            for document in (0..part.documents()).filter(|&document| !part.gone.has(document)) {
                if let Some(key) = keys.get(part.key(document)?) {
                    found.insert(key.as_slice());
                    gone.push(document);
                }
            }
            if gone.len() == before {
                continue;
            }
            deleted.documents += (gone.len() - before) as u64;
            gone.sort_unstable();
            put(folder, &gone_name(number), &Gone::of(&gone).to_bytes(entry.number), false)?;
            (entry.gone, entry.deleted) = (number, gone.len() as u64);
            number += 1;
        }
        deleted.absent = (keys.len() - found.len()) as u64;
        if deleted.documents > 0 {
            change.publish()?;
            // The next writer removes files that stay here.
            let _ = change.clean();
        }
        Ok(deleted)
    }

    /// Merges all parts into one, without the documents that were deleted: the same bytes as if the others had been added
    /// together. None where there is one part and nothing is deleted. Sorts in up to `memory` bytes, and beyond them in
    /// scratch files in the folder. Who has the index open reads on in the parts that it has.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another writes; those of [`open`](Self::open).
    pub fn compact(folder: &Path, memory: usize) -> Result<Option<Compacted>> {
        drop(Self::open(folder)?);
        let mut change = Change::begin(folder)?;
        let index = Self::open(folder)?;
        let dropped: u64 = index.parts.iter().map(|part| u64::from(part.gone.count())).sum();
        if index.parts() == 1 && dropped == 0 {
            return Ok(None);
        }
        let mut builder = Builder::new(folder, memory, index.shape(), index.seed())?;
        let mut before = 0;
        for part in &index.parts {
            let place = |document: u32| before + document - part.gone.before(document);
            for document in (0..part.documents()).filter(|&document| !part.gone.has(document)) {
                let (hashes, places) = (part.hashes(document)?, part.place_bytes(document)?);
                builder.push_bytes(part.key(document)?, hashes.bytes(), places)?;
            }
            part.for_each(|fingerprint, (document, position)| {
                if part.gone.has(document) {
                    return Ok(());
                }
                builder.push_posting(fingerprint, place(document), position)
            })?;
            before += part.documents() - part.gone.count();
        }
        let built = builder.finish()?;
        let number = change.next_number();
        let entry = built.write(&folder.join(part_name(number)), number, index.settings()?)?;
        let bytes = (index.bytes(), entry.bytes);
        change.entries = vec![entry];
        change.publish()?;
        // The next writer removes files that stay here.
        let _ = change.clean();
        Ok(Some(Compacted { parts: index.parts(), dropped, bytes }))
    }
}
