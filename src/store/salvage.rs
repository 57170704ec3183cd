//! Recovers the intact documents of a damaged index into a new index.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::document::Document;
use super::evidence::{Evidence, FoundLog, FoundSegment, Origin, check_operations};
use super::history::Position;
use super::{directory, generation, idf, log, names};
use crate::error::{Error, Result, corrupt};
use crate::format::log::Operation;
use crate::format::manifest::Manifest;
use crate::key::{Key, KeyBuf};
use crate::params::Params;
use crate::store::{Index, Writer, WriterOptions};
use crate::sys::Vfs;
use crate::sys::vfs::TEMPORARY_PREFIX;

/// How much of one file was recovered.
#[derive(Debug)]
#[non_exhaustive]
pub struct SalvagedFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Number of documents of this file that were written to the new index, including those that a later file replaced.
    pub saved: u64,
    /// Number of lost documents. If a segment cannot be opened, this is the number of its live documents according to the
    /// manifest, or 0 if there is no manifest.
    pub lost: u64,
    /// Keys of lost documents that could be read, at most a thousand.
    pub lost_keys: Vec<KeyBuf>,
    /// The first few problems of the file.
    pub problems: Vec<Error>,
}

/// The result of [`salvage`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvage {
    /// The generation whose manifest was used. `None` if no manifest could be read.
    pub generation: Option<u64>,
    /// Number of documents in the new index.
    pub documents: u64,
    /// The result for each file: segments, then logs, each in the order in which they were applied.
    pub files: Vec<SalvagedFile>,
    /// Other problems: in `CURRENT`, manifests, or the IDF table.
    pub problems: Vec<Error>,
    /// The last commit up to which all deletions and replacements are known. `None` if all of them are known.
    pub known_until: Option<u64>,
    /// Number of documents in the new index that a commit after `known_until` may have deleted or replaced.
    pub doubtful: u64,
    /// Keys of these documents, at most a thousand.
    pub doubtful_keys: Vec<KeyBuf>,
}

impl SalvagedFile {
    fn new(path: PathBuf) -> Self {
        Self { path, saved: 0, lost: 0, lost_keys: Vec::new(), problems: Vec::new() }
    }
}

impl Salvage {
    /// Returns the number of documents that are known to be lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.files.iter().map(|file| file.lost).sum()
    }

    /// Returns whether no problem was found. If so, the new index has all documents of the old one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
            && self.doubtful == 0
            && self.files.iter().all(|file| file.lost == 0 && file.problems.is_empty())
    }
}

/// Recovers the readable documents of the index at `dir` into a new index at `out`, which must not exist or must be an empty
/// directory. Changes nothing at `dir`. Recovers every document whose record is intact on all its pages, and every batch of
/// a log before the first damaged batch. A document is lost if any part of it cannot be read.
///
/// Uses the newest manifest that can be read. If a newer one existed, also uses the segments and logs that were made since;
/// without any manifest, uses all of them. If a segment that the manifest names cannot be opened, also uses the older
/// segments from which it was merged, if they are still there.
///
/// Deletions and replacements hold if any manifest or log that can be read records them. If others may have existed,
/// [`Salvage::known_until`] and [`Salvage::doubtful`] report this. If the newest record of a document is lost but a segment
/// still has an older one, the older one is not recovered if the manifest marks it as replaced.
///
/// # Errors
/// [`Error::AlreadyExists`] unless `out` does not exist or is an empty directory; [`Error::NotAnIndex`] if there is
/// nothing to recover; [`Error::Io`] if `out` cannot be written. After any failure, a crash included, `out` is not
/// created.
pub fn salvage(vfs: &Arc<dyn Vfs>, dir: &Path, out: &Path) -> Result<Salvage> {
    directory::check_free(&**vfs, out)?;
    let mut salvaged = Salvage::default();
    let Some(evidence) = Evidence::find(&**vfs, dir, &mut salvaged.problems)? else {
        let why = "no manifest and no segment of it can be read; there is nothing to save".into();
        return Err(Error::NotAnIndex { path: dir.to_owned(), why });
    };
    salvaged.generation = evidence.manifest.as_ref().map(|manifest| manifest.generation);
    salvaged.known_until = evidence.known_until;
    let now = evidence.manifest.as_ref().and_then(|manifest| manifest.now);
    let params = evidence.params.clone();
    // Fills the index under a temporary name, so that a crash leaves no incomplete index under the final name.
    let parent = directory::parent(out);
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}{:032x}", directory::new_uuid(out)?));
    let filled = make_empty(&**vfs, dir, &temporary, &params, now, &mut salvaged)
        .and_then(|()| Filling::new(vfs, &temporary, &params, &mut salvaged))
        .and_then(|filling| filling.fill(&**vfs, dir, evidence));
    let named = filled.and_then(|documents| {
        vfs.rename_dir(&temporary, out).map_err(|e| Error::io("create", out, e))?;
        Ok(documents)
    });
    match named {
        Ok(documents) => {
            salvaged.documents = documents;
            generation::sync_dir(&**vfs, parent)?;
            Ok(salvaged)
        }
        Err(error) => {
            directory::discard(&**vfs, &temporary);
            Err(error)
        }
    }
}

/// Creates an empty index with these parameters and this time, and with its IDF table if the table can be read.
fn make_empty(
    vfs: &dyn Vfs,
    dir: &Path,
    out: &Path,
    params: &Params,
    now: Option<u64>,
    salvaged: &mut Salvage,
) -> Result<()> {
    let table = match idf::of_index(vfs, dir, params) {
        Ok(table) => table,
        Err(error) => {
            salvaged.problems.push(error);
            None
        }
    };
    directory::make(vfs, out, |dir| {
        if let Some(table) = &table {
            idf::publish(vfs, dir, &names::idf(dir, table.digest()), table, false)?;
        }
        // Keeps the time of the old index, even if the document with the highest stamp is lost: time never decreases.
        Ok(Manifest { now, ..directory::new_manifest(out, params.clone())? })
    })
}

/// The maximum number of keys of doubtful documents that are returned.
const DOUBTFUL_KEYS: usize = 1000;

/// Fills the new index.
struct Filling<'a> {
    index: Index,
    writer: Writer,
    params: &'a Params,
    salvaged: &'a mut Salvage,
    /// Hashes of the keys of documents that a commit which is not known may have deleted or replaced.
    doubtful: HashSet<u64>,
    /// The keys of some of these documents.
    keys: Vec<KeyBuf>,
}

impl<'a> Filling<'a> {
    fn new(vfs: &Arc<dyn Vfs>, out: &Path, params: &'a Params, salvaged: &'a mut Salvage) -> Result<Self> {
        let index = Index::open_with(Arc::clone(vfs), out)?;
        let mut writer = index.writer_with(WriterOptions::default().logged(false).max_jump(u64::MAX))?;
        writer.set_unnamed();
        Ok(Self { index, writer, params, salvaged, doubtful: HashSet::new(), keys: Vec::new() })
    }

    /// Saves the documents of all segments and logs. Returns the number of documents in the new index.
    fn fill(mut self, vfs: &dyn Vfs, dir: &Path, mut evidence: Evidence) -> Result<u64> {
        let damaged = evidence.logs.iter().rposition(|log| log.is_damaged);
        let mut kinds = Vec::new();
        let (replaced, others): (Vec<_>, Vec<_>) = std::mem::take(&mut evidence.segments)
            .into_iter()
            .partition(|found| found.origin == Origin::Replaced);
        for segment in replaced {
            kinds.push((segment.origin, segment.opened.is_ok()));
            self.save_segment(segment, Doubt::Added)?;
        }
        self.remove_deleted(&others)?;
        for segment in others {
            // A damaged log may have hidden any change of the documents in segments. A newer segment may be a merge of
            // others, so its documents may be deleted if those of the others may be.
            let doubt = match segment.origin {
                Origin::Named if evidence.known_until.is_some() => Doubt::Added,
                Origin::Newer if evidence.manifest.is_none() || damaged.is_some() => Doubt::Added,
                Origin::Newer => Doubt::Kept,
                Origin::Named | Origin::Replaced => Doubt::Removed,
            };
            kinds.push((segment.origin, segment.opened.is_ok()));
            self.save_segment(segment, doubt)?;
        }
        self.count_lost(&kinds);
        let mut last = 0;
        for (place, found) in evidence.logs.iter().enumerate() {
            let doubt =
                if damaged.is_some_and(|damaged| place <= damaged) { Doubt::Added } else { Doubt::Removed };
            self.save_log(vfs, dir, &evidence, found, doubt, &mut last)?;
        }
        self.writer.commit()?;
        self.writer.compact()?;
        drop(self.writer);
        let documents = self.index.snapshot().documents();
        let doubtful = &self.doubtful;
        self.salvaged.doubtful = (doubtful.len() as u64).min(documents);
        self.keys.retain(|key| doubtful.contains(&hash_of(key.as_key())));
        self.keys.truncate(DOUBTFUL_KEYS);
        self.salvaged.doubtful_keys = self.keys;
        if self.salvaged.doubtful == 0 {
            self.salvaged.known_until = None;
        } else {
            // Nothing is known about the deletions in segments that the manifest does not name.
            self.salvaged.known_until.get_or_insert(0);
        }
        Ok(documents)
    }

    /// Removes the documents of replaced segments that the manifest marks as deleted in one of its segments.
    fn remove_deleted(&mut self, segments: &[FoundSegment]) -> Result<()> {
        if self.doubtful.is_empty() {
            return Ok(());
        }
        for found in segments {
            let Ok(segment) = &found.opened else { continue };
            for key in found.deleted.iter().filter_map(|ordinal| segment.key(ordinal).ok()) {
                if self.doubtful.remove(&hash_of(key.as_key())) {
                    self.writer.delete(key.as_key())?;
                }
            }
        }
        Ok(())
    }

    fn save_segment(&mut self, found: FoundSegment, doubt: Doubt) -> Result<()> {
        let opened = found.opened.and_then(|segment| {
            if segment.params() == self.params {
                Ok(segment)
            } else {
                Err(Error::Invalid(format!("{}: of another index", found.path.display())))
            }
        });
        let mut file = SalvagedFile::new(found.path.clone());
        let segment = match opened {
            Ok(segment) => segment,
            Err(error) => {
                file.lost = found.live;
                file.problems.push(error);
                self.salvaged.files.push(file);
                return Ok(());
            }
        };
        let Self { writer, params, doubtful, keys, .. } = self;
        let mut refused = Vec::new();
        let done = segment.salvage(&found.deleted, |key, kept, attached| {
            match writer.put(key.as_key(), Document::stored(params, kept, attached)) {
                // A record that the new index rejects is counted as lost, like a rejected operation of a log.
                Err(error @ (Error::Invalid(_) | Error::Limit { .. })) => refused.push(error),
                done => {
                    done?;
                    doubt.note(doubtful, keys, key.as_key());
                }
            }
            Ok(())
        })?;
        let left_out = refused.len() as u64;
        (file.saved, file.lost, file.lost_keys) =
            (done.saved - left_out, done.lost + left_out, done.lost_keys);
        file.problems = done.reasons;
        file.problems.append(&mut refused);
        self.salvaged.files.push(file);
        Ok(())
    }

    /// Subtracts the documents of segments that the manifest does not name from the number of lost documents: a segment
    /// that cannot be opened has the same documents as the segments from which, or to which, it was merged.
    fn count_lost(&mut self, kinds: &[(Origin, bool)]) {
        let files = &mut self.salvaged.files;
        let others = files.iter().zip(kinds).filter(|(_, (origin, _))| *origin != Origin::Named);
        let mut saved: u64 = others.map(|(file, _)| file.saved).sum();
        let unopened = files.iter_mut().zip(kinds).filter(|(_, (_, is_opened))| !is_opened);
        for (file, _) in unopened {
            let found_again = file.lost.min(saved);
            (file.lost, saved) = (file.lost - found_again, saved - found_again);
        }
    }

    fn save_log(
        &mut self,
        vfs: &dyn Vfs,
        dir: &Path,
        evidence: &Evidence,
        found: &FoundLog,
        doubt: Doubt,
        last: &mut u64,
    ) -> Result<()> {
        let entry = &found.entry;
        let mut file = SalvagedFile::new(names::log(dir, entry.number));
        let Self { writer, params, doubtful, keys, .. } = self;
        let mut failed = None;
        let from = Position::before(entry.number, entry.first.saturating_sub(1));
        let read = log::replay(vfs, dir, &evidence.source, entry, from, |path, commit, at, batch| {
            // Checks the whole batch first, because batches are atomic: if one contains a fault, none of its operations
            // is applied, and reading the log ends, as in recovery.
            check_operations(params, path, at, batch)?;
            // A log begins with copies of the batches that an earlier log may have lost.
            if commit <= std::mem::replace(last, commit.max(*last)) {
                return Ok(());
            }
            let doubt = if commit < evidence.hidden_before { Doubt::Added } else { doubt };
            let mut operations = batch.operations(params);
            let fault = |fault| corrupt(path, "log", at, fault);
            while let Some(operation) = operations.next_operation().map_err(fault)? {
                let (key, is_put, done) = match operation {
                    Operation::Put(key, kept, attached) => {
                        (key, true, writer.put(key, Document::stored(params, kept, attached)))
                    }
                    Operation::Delete(key) => (key, false, writer.delete(key)),
                };
                match done {
                    Ok(()) => {
                        file.saved += u64::from(is_put);
                        if is_put { doubt } else { Doubt::Removed }.note(doubtful, keys, key);
                    }
                    // An operation that the new index rejects is skipped. Other errors are failures of the new index.
                    Err(error @ (Error::Invalid(_) | Error::Limit { .. })) => {
                        file.lost += u64::from(is_put);
                        file.problems.push(error);
                    }
                    Err(error) => {
                        failed = Some(error);
                        return Err(Error::Invalid(String::new()));
                    }
                }
            }
            Ok(())
        });
        if let Some(error) = failed {
            return Err(error);
        }
        file.problems.extend(read.err());
        self.salvaged.files.push(file);
        Ok(())
    }
}

fn hash_of(key: Key<'_>) -> u64 {
    match key {
        Key::U64(key) => xxh3_64(&key.to_le_bytes()),
        Key::Bytes(key) => xxh3_64(key),
    }
}

/// Whether a document that is saved may have been deleted or replaced by a commit that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Added,
    /// It may have been if the document that it replaces may have been.
    Kept,
    Removed,
}

impl Doubt {
    /// Records the doubt about the document that was saved or deleted last under this key.
    fn note(self, doubtful: &mut HashSet<u64>, keys: &mut Vec<KeyBuf>, key: Key<'_>) {
        match self {
            Self::Added => {
                if doubtful.insert(hash_of(key)) && keys.len() < 10 * DOUBTFUL_KEYS {
                    keys.push(key.to_buf());
                }
            }
            Self::Kept => {}
            Self::Removed => drop(doubtful.remove(&hash_of(key))),
        }
    }
}
