//! Writes an index of any version of the format as a new index of the current version.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use roaring::RoaringBitmap;
use xxhash_rust::xxh3::Xxh3Default;
use zerocopy::IntoBytes;

use super::copies::entry_of;
use super::recovery::version_of;
use super::state::{State, check_entry};
use super::{directory, idf, names};
use crate::error::{Error, Result, corrupt, refused};
use crate::format::VERSION;
use crate::format::header::{HEADER_BYTES, Header, Role};
use crate::format::legacy::LegacyVersion;
use crate::format::manifest::{Logged, Manifest};
use crate::format::wire::Fault;
use crate::params::Params;
use crate::segment::legacy::LegacySegment;
use crate::segment::merge::{self, MergeInput};
use crate::segment::spilled::SpillBudget;
use crate::segment::{BuiltSegment, Segment};
use crate::store::Index;
use crate::sys::Vfs;

/// The version of the format of an index or a segment file; see [`format_version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatVersion {
    /// The number in the headers of the files.
    pub number: u16,
    /// Whether this build reads and writes files of this version. If not, convert them with [`upgrade`].
    pub is_current: bool,
    /// A list, in words, of the kinds of data that files of the current version can have and files of this version cannot.
    /// `None` for the current version.
    pub absent: Option<&'static str>,
}

impl FormatVersion {
    fn of(number: u16) -> Self {
        let absent = LegacyVersion::of(number).map(LegacyVersion::absent);
        Self { number, is_current: number == VERSION, absent }
    }
}

/// The result of [`upgrade`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Upgrade {
    /// The version of the old files.
    pub from: FormatVersion,
    /// Number of documents in the new index, which are the live documents of the old files.
    pub documents: u64,
    /// Number of segments of the new index.
    pub segments: u64,
}

/// The kind of the old files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OldFiles {
    /// The directory of an index.
    Index,
    /// A single segment file.
    Segment,
}

/// Returns the format version of an index or of a single segment file. Reads only the header of `CURRENT` or of the segment,
/// so it does not detect damage elsewhere.
///
/// # Errors
/// [`Error::NotAnIndex`]; [`Error::Invalid`] for a file of twindex that is not a segment; [`Error::Unsupported`] for a
/// version that this build can neither read nor convert; [`Error::Corrupt`] if the header is damaged or the file is not a
/// file of twindex; [`Error::Io`].
pub fn format_version(vfs: &dyn Vfs, path: &Path) -> Result<FormatVersion> {
    inspect(vfs, path).map(|(_, version)| version)
}

fn inspect(vfs: &dyn Vfs, path: &Path) -> Result<(OldFiles, FormatVersion)> {
    let (old, file, number) = match vfs.list(path) {
        Ok(_) => (OldFiles::Index, names::current(path), version_of(vfs, path)?),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            (OldFiles::Segment, path.to_owned(), version_of_segment(vfs, path)?)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::NotAnIndex { path: path.to_owned(), why: "no such file or directory".into() });
        }
        Err(error) => return Err(Error::io("list", path, error)),
    };
    let version = FormatVersion::of(number);
    if version.is_current || version.absent.is_some() {
        return Ok((old, version));
    }
    Err(Error::Unsupported {
        path: file,
        field: "format version",
        found: number.to_string(),
        supported: format!("1 to {VERSION}; use a newer version"),
    })
}

/// Returns the version in the header of a segment file. Other files are errors.
fn version_of_segment(vfs: &dyn Vfs, path: &Path) -> Result<u16> {
    let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
    let length = file.len().map_err(|e| Error::io("get the length of", path, e))?;
    let mut bytes = vec![0; length.min(HEADER_BYTES as u64) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", path, e))?;
    let header = Header::read_any(&bytes).map_err(|fault| corrupt(path, "header", 0, fault))?;
    if header.role == Role::Segment as u8 {
        return Ok(header.version.get());
    }
    let role = Role::ALL.into_iter().find(|role| *role as u8 == header.role);
    Err(Error::Invalid(format!(
        "{}: not a segment but a file of role {}; only indexes and segments are converted",
        path.display(),
        role.map_or(header.role.to_string(), |role| format!("{} ({role:?})", header.role)),
    )))
}

/// Writes the documents of an index, or of a single segment file, to a new index of the current version at `out`, which must
/// not exist or must be an empty directory. Reads every version of the format, and does not change `from`. If `from` has the
/// current version, the result is a copy whose segments are encoded again, without deleted and expired documents.
///
/// The new index has all live documents with their keys, fingerprints, band keys, signatures, samples, values, stamps,
/// marks, priorities and sets. It also has the IDF table that the parameters name, the time, the payload and the number of
/// the last commit of the old index, but a new UUID. The documents in a log are written to a segment. Data that the old
/// version could not store ([`FormatVersion::absent`]) is absent.
///
/// A single segment file contains neither deletes nor a time, so all of its documents are live. But if its parameters let
/// documents expire, its highest stamp becomes the time, and the documents that have expired at that time are left out. The
/// IDF table that its parameters name must be in the same directory.
///
/// Every page of the old segments is compared with its checksum, and the hashes of the records with the salt of their
/// segment. Memory is bounded by `memory`, plus about a thousandth of the size of a segment and the memtable of a log. If
/// `memory` is small, the bands of a segment are read many times.
///
/// If `out` does not exist, the index gets this name when it is complete and durable. A crash before that can leave a
/// directory with a temporary name, which can be removed. An existing empty directory is filled in place, and a crash can
/// leave files in it.
///
/// # Errors
/// [`Error::AlreadyExists`] if `out` exists and is not an empty directory; [`Error::Invalid`] if `out` is inside `from`;
/// [`Error::Corrupt`] for the first damaged part of the old files, including a missing IDF table; [`Error::Io`]; otherwise
/// the same as [`format_version`].
pub fn upgrade(vfs: &Arc<dyn Vfs>, from: &Path, out: &Path, memory: usize) -> Result<Upgrade> {
    let (old, version) = inspect(&**vfs, from)?;
    let absolute = |path: &Path| without_parents(&vfs.absolute(path).unwrap_or_else(|_| path.to_owned()));
    if absolute(out).starts_with(absolute(from)) {
        let why = format!("{}: inside {}, where nothing is changed", out.display(), from.display());
        return Err(Error::Invalid(why));
    }
    directory::check_free(&**vfs, out)?;
    let mut upgraded = Upgrade { from: version, documents: 0, segments: 0 };
    let legacy = LegacyVersion::of(version.number);
    directory::make(&**vfs, out, |dir| {
        let copy = Copy { vfs: &**vfs, dir, scratch: &vfs.scratch(dir), memory };
        let manifest = match (old, legacy) {
            (OldFiles::Index, None) => copy.index(&Index::open_with(Arc::clone(vfs), from)?),
            (OldFiles::Index, Some(version)) => copy.legacy_index(from, version),
            (OldFiles::Segment, None) => copy.segment(from),
            (OldFiles::Segment, Some(version)) => copy.legacy_segment(from, version),
        }?;
        upgraded.segments = manifest.segments.len() as u64;
        upgraded.documents = manifest.segments.iter().map(|entry| entry.documents).sum();
        Ok(manifest)
    })?;
    Ok(upgraded)
}

/// Removes each component `..` of a path together with the one before it.
fn without_parents(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            result.pop();
        } else {
            result.push(component);
        }
    }
    result
}

/// The destination of an upgrade, and the resources for writing it.
struct Copy<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    scratch: &'a Path,
    memory: usize,
}

impl Copy<'_> {
    fn index(&self, index: &Index) -> Result<Manifest> {
        let snapshot = index.snapshot();
        let mut manifest = directory::new_manifest(self.dir, snapshot.params().clone())?;
        (manifest.generation, manifest.now) = (snapshot.generation(), snapshot.now());
        if let Some(payload) = snapshot.payload() {
            manifest.logged =
                Some(Logged { next_log: 1, payload: Some(payload.to_vec()), ..Logged::default() });
        }
        self.idf(index.path(), &manifest.params, None)?;
        for (segment, deleted) in snapshot.segments() {
            self.add_segment(&mut manifest, segment, deleted)?;
        }
        Ok(manifest)
    }

    fn segment(&self, path: &Path) -> Result<Manifest> {
        let segment = Segment::open(self.vfs, path)?;
        let mut manifest = directory::new_manifest(self.dir, segment.params().clone())?;
        self.idf(directory::parent(path), &manifest.params, None)?;
        let mut deleted = RoaringBitmap::new();
        if let Some(age) = manifest.params.expire_after {
            for ordinal in 0..segment.documents() as u32 {
                manifest.now = manifest.now.max(segment.stamp(ordinal)?);
            }
            if let Some(expired) = manifest.now.and_then(|now| now.checked_sub(age)) {
                segment.stamped_between(None, expired, |ordinal| {
                    deleted.insert(ordinal);
                })?;
            }
        }
        self.add_segment(&mut manifest, &segment, &deleted)?;
        Ok(manifest)
    }

    fn legacy_index(&self, dir: &Path, version: LegacyVersion) -> Result<Manifest> {
        let old = State::load_legacy_manifest(self.vfs, dir, version)?;
        let mut manifest = directory::new_manifest(self.dir, old.params.clone())?;
        manifest.generation = old.generation;
        self.idf(dir, &manifest.params, Some(version))?;
        for entry in &old.segments {
            let segment = LegacySegment::open(self.vfs, &names::segment(dir, entry.number), version)?;
            check_entry(segment.segment(), &old, entry)?;
            self.add_legacy(&mut manifest, &segment, &entry.deleted)?;
        }
        Ok(manifest)
    }

    fn legacy_segment(&self, path: &Path, version: LegacyVersion) -> Result<Manifest> {
        let segment = LegacySegment::open(self.vfs, path, version)?;
        let mut manifest = directory::new_manifest(self.dir, segment.segment().params().clone())?;
        self.idf(directory::parent(path), &manifest.params, Some(version))?;
        self.add_legacy(&mut manifest, &segment, &RoaringBitmap::new())?;
        Ok(manifest)
    }

    fn budget(&self) -> SpillBudget<'_> {
        SpillBudget::new(self.memory, self.scratch)
    }

    fn add_segment(&self, manifest: &mut Manifest, segment: &Segment, deleted: &RoaringBitmap) -> Result<()> {
        segment.check(self.memory / 4)?;
        if deleted.len() == segment.documents() {
            return Ok(());
        }
        let built = merge::merge(&[MergeInput { segment, deleted }], self.vfs, self.dir, self.budget())?;
        segment.check_map()?;
        self.add(manifest, built)
    }

    fn add_legacy(
        &self,
        manifest: &mut Manifest,
        legacy: &LegacySegment,
        deleted: &RoaringBitmap,
    ) -> Result<()> {
        legacy.check(self.memory / 4)?;
        if deleted.len() == legacy.segment().documents() {
            return Ok(());
        }
        let built = merge::convert(legacy, deleted, self.vfs, self.dir, self.budget())?;
        legacy.segment().check_map()?;
        self.add(manifest, built)
    }

    fn add(&self, manifest: &mut Manifest, built: BuiltSegment) -> Result<()> {
        let number = manifest.next_segment;
        manifest.segments.push(entry_of(number, &built));
        manifest.next_segment += 1;
        built.publish(&names::segment(self.dir, number))
    }

    /// Copies the IDF table that the parameters name, if any, from the directory `from`, and compares its bytes with its
    /// digest. Writes a new header, which is the only part that differs between versions.
    fn idf(&self, from: &Path, params: &Params, version: Option<LegacyVersion>) -> Result<()> {
        let Some(digest) = idf::named_by(params) else { return Ok(()) };
        let path = names::idf(from, digest);
        let file = self.vfs.open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => corrupt(
                &path,
                "idf",
                0,
                Fault::new(0, "the idf table that the parameters name", "no such file; put it there"),
            ),
            _ => Error::io("open", &path, error),
        })?;
        let length = file.len().map_err(|e| Error::io("get the length of", &path, e))?;
        let read =
            |bytes: &mut [u8], at| file.read_exact_at(bytes, at).map_err(|e| Error::io("read", &path, e));
        let mut bytes = vec![0; length.min(HEADER_BYTES as u64) as usize];
        read(&mut bytes, 0)?;
        let header = match version {
            None => Header::read(&bytes, Role::Idf),
            Some(version) => version.read_header(&bytes, Role::Idf),
        };
        let header = header.map_err(|refusal| refused(&path, "idf", refusal))?;
        let header = Header::new(Role::Idf, digest, header.params_digest.get())
            .with_features(header.incompatible.get(), 0);
        let failed = |e| Error::io("write an IDF table in", self.dir, e);
        let mut copy = self.vfs.create_temporary(self.dir).map_err(failed)?;
        copy.append(header.as_bytes()).map_err(failed)?;
        let (mut at, mut found) = (HEADER_BYTES as u64, Xxh3Default::new());
        while at < length {
            bytes.resize((length - at).min(COPIED) as usize, 0);
            read(&mut bytes, at)?;
            found.update(&bytes);
            copy.append(&bytes).map_err(failed)?;
            at += bytes.len() as u64;
        }
        if found.digest128() != digest {
            let fault = Fault::new(
                HEADER_BYTES as u64,
                format!("digest {digest:032x} as in the parameters"),
                format!("{:032x}", found.digest128()),
            );
            return Err(corrupt(&path, "idf", 0, fault));
        }
        copy.sync().map_err(failed)?;
        copy.publish(&names::idf(self.dir, digest), false).map_err(failed)
    }
}

/// Buffer size for copying an IDF table.
const COPIED: u64 = 1 << 20;
