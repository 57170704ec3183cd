//! Recovers the intact documents of a damaged index into a new index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::document::Document;
use super::history::Position;
use super::names::{self, FileKind};
use super::state::State;
use super::{directory, generation, idf, log};
use crate::error::{Error, Result, corrupt};
use crate::format::log::Operation;
use crate::format::manifest::Manifest;
use crate::format::wire::Fault;
use crate::key::KeyBuf;
use crate::params::Params;
use crate::segment::Segment;
use crate::segment::salvage::Salvaged;
use crate::store::{Index, WriterOptions};
use crate::sys::vfs::TEMPORARY_PREFIX;
use crate::sys::{Access, Vfs};

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
    /// The generation whose manifest was used. `None` if no manifest could be read. In this case all segments in the
    /// directory were used, oldest first, but no logs; deleted documents may reappear.
    pub generation: Option<u64>,
    /// Number of documents in the new index.
    pub documents: u64,
    /// The result for each file: segments, then logs, each oldest first.
    pub files: Vec<SalvagedFile>,
    /// Other problems: in `CURRENT`, manifests, or the IDF table.
    pub problems: Vec<Error>,
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
        self.problems.is_empty() && self.files.iter().all(|file| file.lost == 0 && file.problems.is_empty())
    }
}

/// Returns the manifest that `CURRENT` names; if it cannot be read, the newest manifest that can; `None` if there is
/// none.
fn newest(vfs: &dyn Vfs, dir: &Path, salvaged: &mut Salvage) -> Result<Option<Manifest>> {
    match State::load_manifest(vfs, dir) {
        Ok(manifest) => return Ok(Some(manifest)),
        Err(error) => salvaged.problems.push(error),
    }
    let names = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let mut generations: Vec<u64> = names
        .iter()
        .filter_map(|name| match names::parse(name) {
            Some(FileKind::Manifest(generation)) => Some(generation),
            _ => None,
        })
        .collect();
    generations.sort_unstable();
    while let Some(generation) = generations.pop() {
        match State::manifest_at(vfs, dir, generation) {
            Ok(manifest) => return Ok(Some(manifest)),
            Err(error) => salvaged.problems.push(error),
        }
    }
    Ok(None)
}

/// Returns the numbers of the segment files in the directory, ascending.
fn segments_of(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>> {
    let names = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| match names::parse(name) {
            Some(FileKind::Segment(number)) => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Recovers the readable documents of the index at `dir` into a new index at `out`, which must not exist or must be an empty
/// directory. Changes nothing at `dir`. Recovers every document whose record is intact on all its pages, and every batch of
/// a log before the first damaged batch. A document is lost if any part of it cannot be read. Logs cannot be read without a
/// manifest, because they do not describe the content of their records.
///
/// If the newest record of a document is lost but a segment still has an older one, the older one is not recovered, because
/// the manifest marks it as replaced. Without a manifest, it is recovered.
///
/// # Errors
/// [`Error::AlreadyExists`] unless `out` does not exist or is an empty directory; [`Error::NotAnIndex`] if there is
/// nothing to recover; [`Error::Io`] if `out` cannot be written. After any failure, a crash included, `out` is not
/// created.
pub fn salvage(vfs: &Arc<dyn Vfs>, dir: &Path, out: &Path) -> Result<Salvage> {
    directory::check_free(&**vfs, out)?;
    let mut salvaged = Salvage::default();
    let manifest = newest(&**vfs, dir, &mut salvaged)?;
    salvaged.generation = manifest.as_ref().map(|manifest| manifest.generation);
    // For each segment: its number, its number of live documents in the manifest, and its deleted documents.
    let named: Vec<(u64, u64, RoaringBitmap)> = match &manifest {
        Some(manifest) => manifest
            .segments
            .iter()
            .map(|entry| (entry.number, entry.documents - entry.deleted.len(), entry.deleted.clone()))
            .collect(),
        None => {
            segments_of(&**vfs, dir)?.into_iter().map(|number| (number, 0, RoaringBitmap::new())).collect()
        }
    };
    let mut segments = Vec::new();
    for (number, live, deleted) in named {
        let path = names::segment(dir, number);
        let mut file = SalvagedFile {
            path: path.clone(),
            saved: 0,
            lost: 0,
            lost_keys: Vec::new(),
            problems: Vec::new(),
        };
        // Reads the file instead of mapping it, so that a failing disk causes an error and does not end the process.
        let opened = Segment::open_with(&**vfs, &path, Access::Read);
        let expected = manifest.as_ref().map(|manifest| &manifest.params);
        match opened {
            Ok(segment) if expected.is_none_or(|params| params == segment.params()) => {
                segments.push((Some(segment), deleted));
            }
            Ok(_) => {
                file.lost = live;
                file.problems.push(Error::Invalid(format!("{}: of another index", path.display())));
                segments.push((None, deleted));
            }
            Err(error) => {
                file.lost = live;
                file.problems.push(error);
                segments.push((None, deleted));
            }
        }
        salvaged.files.push(file);
    }
    let of_manifest = manifest.as_ref().map(|manifest| &manifest.params);
    let of_segment = || segments.iter().find_map(|(segment, _)| segment.as_ref().map(Segment::params));
    let Some(params) = of_manifest.or_else(of_segment).cloned() else {
        let why = "no manifest and no segment of it can be read; there is nothing to save".into();
        return Err(Error::NotAnIndex { path: dir.to_owned(), why });
    };
    let now = manifest.as_ref().and_then(|manifest| manifest.now);
    // Fills the index under a temporary name, so that a crash leaves no incomplete index under the final name.
    let parent = directory::parent(out);
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}{:032x}", directory::new_uuid(out)?));
    let filled = make_empty(&**vfs, dir, &temporary, &params, now, &mut salvaged)
        .and_then(|()| fill(vfs, dir, &temporary, manifest.as_ref(), &segments, &params, &mut salvaged));
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

fn fill(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    out: &Path,
    manifest: Option<&Manifest>,
    segments: &[(Option<Segment>, RoaringBitmap)],
    params: &Params,
    salvaged: &mut Salvage,
) -> Result<u64> {
    let index = Index::open_with(Arc::clone(vfs), out)?;
    let mut writer = index.writer_with(WriterOptions::default().logged(false).max_jump(u64::MAX))?;
    writer.set_unnamed();
    for ((segment, deleted), file) in segments.iter().zip(&mut salvaged.files) {
        let Some(segment) = segment else { continue };
        if segment.params() != params {
            file.problems.push(Error::Invalid(format!("{}: of another index", file.path.display())));
            continue;
        }
        let mut refused = Vec::new();
        let Salvaged { saved, lost, lost_keys, reasons } =
            segment.salvage(deleted, |key, kept, attached| {
                match writer.put(key.as_key(), Document::stored(params, kept, attached)) {
                    // A record that the new index rejects is counted as lost, like a rejected operation of a log.
                    Err(error @ (Error::Invalid(_) | Error::Limit { .. })) => refused.push(error),
                    done => return done,
                }
                Ok(())
            })?;
        let left_out = refused.len() as u64;
        (file.saved, file.lost, file.lost_keys) = (saved - left_out, lost + left_out, lost_keys);
        file.problems = reasons;
        file.problems.append(&mut refused);
    }
    for entry in manifest.iter().flat_map(|manifest| manifest.logged.iter().flat_map(|logged| &logged.logs)) {
        let Some(manifest) = manifest else { break };
        let path = names::log(dir, entry.number);
        let mut file = SalvagedFile { path, saved: 0, lost: 0, lost_keys: Vec::new(), problems: Vec::new() };
        let mut failed = None;
        let from = Position::before(entry.number, entry.first.saturating_sub(1));
        let read = log::replay(&**vfs, dir, manifest, entry, from, |path, _, at, batch| {
            let fault = |mut fault: Fault| {
                fault.offset += at;
                corrupt(path, "log", 0, fault)
            };
            // Decodes the whole batch first, because batches are atomic: if one contains a fault, none of its
            // operations is applied, and reading the log ends, as in recovery.
            let mut operations = batch.operations(params);
            while operations.next_operation().map_err(fault)?.is_some() {}
            let mut operations = batch.operations(params);
            while let Some(operation) = operations.next_operation().map_err(fault)? {
                let (key, done) = match operation {
                    Operation::Put(key, kept, attached) => {
                        (Some(key), writer.put(key, Document::stored(params, kept, attached)))
                    }
                    Operation::Delete(key) => (None, writer.delete(key)),
                };
                match (done, key) {
                    (Ok(()), key) => file.saved += u64::from(key.is_some()),
                    // An operation that the new index rejects is skipped. Other errors are failures of the new index.
                    (Err(error @ (Error::Invalid(_) | Error::Limit { .. })), key) => {
                        file.lost += u64::from(key.is_some());
                        file.problems.push(error);
                    }
                    (Err(error), _) => {
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
        salvaged.files.push(file);
    }
    writer.commit()?;
    writer.compact()?;
    drop(writer);
    Ok(index.snapshot().documents())
}
