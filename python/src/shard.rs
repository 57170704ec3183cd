//! Builds the segment of one shard on a worker of a cluster. The segment's file name is derived from its content.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow_array::{Int32Array, Int64Array};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;
use twindex::format::sketches::Row;
use twindex::params::{CodeParams, KeyKind};
use twindex::sys::lock::LockFailure;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Document, Index, Key};
use twindex_corpus::part_of;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::args;
use crate::columns::Column;
use crate::error::{Failure, Result};
use crate::params::Params;
use crate::process::writer_options;

/// Prefix of the names of folders in which segments are built. After a crash, these folders remain.
const PREFIX: &str = ".twindex-shard-";
/// The path, in the builder's folder, of the lock that a running builder holds.
const LOCK: &str = "index/LOCK";

/// Assigns documents to shards, as `--shard I/N` of the command does, but numbered from 0.
pub(crate) struct Shards(u32);

impl Shards {
    pub(crate) fn new(count: u32) -> Result<Self> {
        if count == 0 || i32::try_from(count).is_err() {
            return Err(Failure::invalid(format!("shards: expected 1 to {}, found {count}", i32::MAX)));
        }
        Ok(Self(count))
    }

    /// Returns the shard of a key, which fits in an `i32` because the number of shards does.
    pub(crate) fn of(&self, key: Key<'_>) -> i32 {
        part_of(key, self.0).cast_signed()
    }
}

/// The hash function for shards and golden tables.
#[pyfunction(name = "xxh3_64")]
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Returns the hash of each key that defines the `key-hash` order, converted to a signed number with the same order.
#[pyfunction]
pub(crate) fn key_hashes(py: Python<'_>, keys: &Bound<'_, PyAny>) -> Result<PyArray> {
    let keys = Column::of("keys", keys)?;
    let hash = |row| Ok((keys.key(row, KeyKind::Bytes)?.priority_hash() ^ (1 << 63)).cast_signed());
    let all: Vec<i64> = py.detach(|| (0..keys.len()).map(hash).collect::<Result<_>>())?;
    Ok(PyArray::from_array_ref(std::sync::Arc::new(Int64Array::from(all))))
}

/// Returns the shard of each key, from 0.
#[pyfunction]
#[pyo3(signature = (keys, shards, kind="bytes"))]
pub(crate) fn shards_of(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::shards)] shards: u32,
    kind: &str,
) -> Result<PyArray> {
    let keys = Column::of("keys", keys)?;
    let shards = Shards::new(shards)?;
    let kind = if kind == "u64" { KeyKind::U64 } else { KeyKind::Bytes };
    let all: Vec<i32> =
        py.detach(|| (0..keys.len()).map(|row| Ok(shards.of(keys.key(row, kind)?))).collect::<Result<_>>())?;
    Ok(PyArray::from_array_ref(std::sync::Arc::new(Int32Array::from(all))))
}

struct UnfinishedShard {
    /// The folder of the builder.
    folder: tempfile::TempDir,
    index: Index,
    writer: twindex::Writer,
    rows: u64,
    /// The hashes of the keys so far, to detect a repeated key.
    seen: HashSet<u128>,
    again: Option<String>,
}

impl UnfinishedShard {
    /// Adds the document in a row, and notes whether its key is repeated.
    fn put(&mut self, row: usize, key: Key<'_>, document: Document<'_>) -> Result<()> {
        self.writer.put(key, document).map_err(|error| Failure::Record(row, error))?;
        self.rows += 1;
        let hash = match key {
            Key::Bytes(key) => xxh3_128(key),
            Key::U64(key) => xxh3_128(&key.to_le_bytes()),
        };
        if !self.seen.insert(hash) && self.again.is_none() {
            self.again = Some(key.to_buf().to_string());
        }
        Ok(())
    }
}

/// Builds the segment of one shard in a folder, under a name derived from its bytes.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct ShardBuilder {
    into: PathBuf,
    params: twindex::Params,
    building: Mutex<Option<UnfinishedShard>>,
}

#[pymethods]
impl ShardBuilder {
    #[new]
    #[pyo3(signature = (into, params, memory=268_435_456, scratch=None))]
    fn new(
        py: Python<'_>,
        into: PathBuf,
        params: &Params,
        #[pyo3(from_py_with = args::memory)] memory: usize,
        scratch: Option<PathBuf>,
    ) -> Result<Self> {
        let Params { inner: params, idf } = params.clone();
        py.detach(|| {
            fs::create_dir_all(&into).map_err(|error| Failure::io("create", &into, error))?;
            let place = scratch.unwrap_or_else(|| into.clone());
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(&place)
                .map_err(|error| Failure::io("create a folder in", &place, error))?;
            let path = folder.path().join("index");
            let index = match idf {
                Some(table) => Index::create_with_idf(path, params.clone(), &table)?,
                None => Index::create(path, params.clone())?,
            };
            let writer =
                index.writer_with(writer_options().memory(memory).logged(false).one_segment(true))?;
            let (rows, seen, again) = (0, HashSet::new(), None);
            let building = Mutex::new(Some(UnfinishedShard { folder, index, writer, rows, seen, again }));
            Ok(Self { into, params, building })
        })
    }

    /// Adds rows of Sketcher.rows, with their sets if the parameters keep sets.
    #[pyo3(signature = (keys, fingerprints, features, signatures, bottoms, modulars, sets=None))]
    #[allow(clippy::too_many_arguments, reason = "the columns, by name")]
    fn add(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        fingerprints: &Bound<'_, PyAny>,
        features: &Bound<'_, PyAny>,
        signatures: &Bound<'_, PyAny>,
        bottoms: &Bound<'_, PyAny>,
        modulars: &Bound<'_, PyAny>,
        sets: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let keys = Column::of("key", keys)?;
        let columns = [
            Column::of("fingerprint", fingerprints)?,
            Column::of("features", features)?,
            Column::of("signature", signatures)?,
            Column::of("bottom", bottoms)?,
            Column::of("modular", modulars)?,
        ];
        let sets = sets.map(|sets| Column::of("set", sets)).transpose()?;
        columns.iter().chain(&sets).try_for_each(|column| keys.check_len(column))?;
        if self.params.sets != sets.is_some() {
            let (expected, found) = if self.params.sets { ("sets", "none") } else { ("no sets", "some") };
            return Err(Failure::invalid(format!(
                "sets: expected {expected} by the parameters, found {found}; give the column set of Sketcher.rows if it has \
                 sets"
            )));
        }
        py.detach(|| self.with_building(|building| self.add_rows(building, &keys, &columns, sets.as_ref())))
    }

    /// Adds fingerprints, for parameters with codes: a binary column, or a matrix of uint8.
    fn add_codes(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, codes: &Bound<'_, PyAny>) -> Result<()> {
        let Some(CodeParams { bits, .. }) = self.params.codes else {
            return Err(Failure::invalid(
                "codes: the parameters keep sketches of texts; give rows of Sketcher.rows to `add`",
            ));
        };
        let (keys, codes) = (Column::of("key", keys)?, Column::of_codes("code", codes)?);
        keys.check_len(&codes)?;
        py.detach(|| {
            self.with_building(|building| {
                (0..keys.len()).try_for_each(|row| {
                    let code = codes.code(row, bits)?;
                    building.put(row, keys.key(row, self.params.key)?, code.into())
                })
            })
        })
    }

    /// Finishes the segment. Returns its name, its number of documents, and its size in bytes.
    fn finish(&self, py: Python<'_>) -> Result<(String, u64, u64)> {
        py.detach(|| {
            let Some(building) = self.take() else { return Err(ended()) };
            publish(&self.into, building)
        })
    }

    /// Stops, and removes unfinished files.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

fn ended() -> Failure {
    Failure::invalid("the builder has ended; make another")
}

impl ShardBuilder {
    fn take(&self) -> Option<UnfinishedShard> {
        self.building.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Runs `work` with the shard, unless the builder has ended.
    fn with_building(&self, work: impl FnOnce(&mut UnfinishedShard) -> Result<()>) -> Result<()> {
        let mut guard = self.building.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(guard.as_mut().ok_or_else(ended)?)
    }

    fn add_rows(
        &self,
        building: &mut UnfinishedShard,
        keys: &Column,
        columns: &[Column; 5],
        sets: Option<&Column>,
    ) -> Result<()> {
        let [fingerprints, features, signatures, bottoms, modulars] = columns;
        let (mut numbers, mut bottom, mut modular) = (Vec::new(), Vec::new(), Vec::new());
        let mut set = Vec::new();
        for row in 0..keys.len() {
            let key = keys.key(row, self.params.key)?;
            let made = match features.bytes(row)? {
                None => None,
                Some(bytes) => {
                    little_endian(row, "features", bytes, &mut numbers)?;
                    little_endian(row, "bottom", bottoms.bytes(row)?.unwrap_or_default(), &mut bottom)?;
                    little_endian(row, "modular", modulars.bytes(row)?.unwrap_or_default(), &mut modular)?;
                    let row = Row {
                        fingerprint: fingerprints.number(row)?.unwrap_or(0),
                        features: &numbers,
                        signature: signatures.bytes(row)?.unwrap_or_default(),
                        bottom: &bottom,
                        modular: &modular,
                    };
                    Some(self.checked(row, building.rows)?)
                }
            };
            let mut document = Document::from_row(&self.params, made);
            if let Some(sets) = sets {
                little_endian(row, "set", sets.text(row)?, &mut set)?;
                document = document.with_set(&set);
            }
            building.put(row, key, document)?;
        }
        Ok(())
    }

    /// Returns an error if a row does not match the parameters. The writer does not check this.
    fn checked<'r>(&self, row: Row<'r>, number: u64) -> Result<Row<'r>> {
        let minhash = self.params.minhash;
        let bands = minhash.map_or(0, |minhash| usize::from(minhash.bands));
        let bytes = minhash.map_or(0, |minhash| minhash.signature_bytes());
        for (what, expected, found) in
            [("features", bands, row.features.len()), ("bytes of a signature", bytes, row.signature.len())]
        {
            if expected != found {
                let why = format!(
                    "row {number}: expected {expected} {what}, found {found}; make rows by a Sketcher of the same \
                     parameters"
                );
                return Err(Failure::invalid(why));
            }
        }
        Ok(row)
    }
}

fn little_endian(row: usize, name: &str, bytes: &[u8], numbers: &mut Vec<u64>) -> Result<()> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        let why = format!("{name}: expected a multiple of 8 bytes, found {}", bytes.len());
        return Err(Failure::Record(row, twindex::Error::Invalid(why)));
    }
    numbers.clear();
    numbers.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(())
}

/// Commits, and renames the segment to its final name. An existing file with this name has the same bytes.
fn publish(into: &Path, building: UnfinishedShard) -> Result<(String, u64, u64)> {
    let UnfinishedShard { folder, index, mut writer, rows, again, .. } = building;
    writer.commit()?;
    let snapshot = index.snapshot();
    let mut segments = snapshot.segments();
    let Some((segment, _)) = segments.next() else { return Ok((String::new(), 0, 0)) };
    if segments.next().is_some() {
        return Err(Failure::invalid("a shard became several segments; give the builder more memory"));
    }
    if segment.documents() != rows {
        return Err(Failure::invalid(format!(
            "{rows} records have {} keys: `{}` is the key of two of them; give each document a key of its own, as the \
             order in which records come to a worker is not fixed",
            segment.documents(),
            again.unwrap_or_default().escape_debug()
        )));
    }
    let name = format!("{:032x}.seg", segment.digest());
    let path = into.join(&name);
    let (documents, length) = (segment.documents(), segment.length());
    // The commit has synced the file. If another attempt was faster, the rename replaces an identical file.
    match fs::rename(segment.path(), &path) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => copy(segment.path(), into, &path),
        renamed => renamed,
    }
    .map_err(|error| Failure::io("rename a segment to", &path, error))?;
    RealVfs.sync_dir(into).map_err(|error| Failure::io("make names durable in", into, error))?;
    drop(writer);
    drop(folder);
    Ok((name, documents, length))
}

/// Copies a file to another file system. The copy gets its final name when it is complete and durable.
fn copy(from: &Path, into: &Path, to: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(into)?;
    // Locks the file while it is written, so that `clean` does not remove it.
    file.as_file().lock()?;
    io::copy(&mut fs::File::open(from)?, &mut file)?;
    // Scratch files are readable only for their owner; segments must be readable for everyone and read-only.
    #[cfg(unix)]
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
    file.as_file().sync_all()?;
    file.persist(to).map(drop).map_err(|failed| failed.error)
}

/// Removes files of builders that were killed from a folder of segments, and segments that are not in `keep`. Returns the
/// removed names.
#[pyfunction]
pub(crate) fn clean(py: Python<'_>, folder: PathBuf, keep: HashSet<String>) -> Result<Vec<String>> {
    py.detach(|| {
        let mut removed = Vec::new();
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(removed),
            entries => entries.map_err(|error| Failure::io("list", &folder, error))?,
        };
        for entry in entries {
            let entry = entry.map_err(|error| Failure::io("list", &folder, error))?;
            let (path, Ok(name)) = (entry.path(), entry.file_name().into_string()) else { continue };
            let is_left = name.starts_with(PREFIX) && path.is_file() && is_free(&path);
            let done = if name.starts_with(PREFIX) && path.is_dir() && !is_locked(&path.join(LOCK)) {
                fs::remove_dir_all(&path)
            } else if is_left || is_segment(&name) && !keep.contains(&name) {
                fs::remove_file(&path)
            } else {
                continue;
            };
            match done {
                Ok(()) => removed.push(name),
                // Another process has removed the file, or writes to the folder again.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                Err(error) => return Err(Failure::io("remove", &path, error)),
            }
        }
        removed.sort();
        Ok(removed)
    })
}

/// Returns whether this is a file name derived from a segment's content.
fn is_segment(name: &str) -> bool {
    name.strip_suffix(".seg").is_some_and(|digest| {
        digest.len() == 32
            && digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Returns whether no process is writing to a file.
fn is_free(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Returns whether a running writer may hold the lock. If this cannot be determined, returns true.
fn is_locked(lock: &Path) -> bool {
    match RealVfs.lock(lock) {
        Ok(_) => false,
        Err(LockFailure::Io(error)) => error.kind() != ErrorKind::NotFound,
        Err(LockFailure::Held(_)) => true,
    }
}
