//! What an index consists of at one generation.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::current::{CURRENT_BYTES, Current};
use crate::format::manifest::{MANIFEST_BYTES_MAX, Manifest, SegmentEntry};
use crate::format::wire::Fault;
use crate::segment::Segment;
use crate::segment::open::{corrupt, refused};
use crate::store::names::{self, Name};
use crate::sys::{Access, Vfs};

/// A generation: its manifest and its open segments, in the manifest's order.
#[derive(Debug)]
pub(super) struct State {
    pub(super) manifest: Manifest,
    pub(super) segments: Vec<Arc<Segment>>,
    /// Of the manifest's parameters: each sketch that comes is compared with it.
    pub(super) params_digest: u128,
}

impl State {
    pub(super) fn new(manifest: Manifest, segments: Vec<Arc<Segment>>) -> Self {
        let params_digest = manifest.params.digest();
        Self { manifest, segments, params_digest }
    }

    /// Reads the current generation; segments that `known` has open are not opened again.
    pub(super) fn load(vfs: &dyn Vfs, dir: &Path, access: Access, known: Option<&State>) -> Result<Self> {
        // A writer may publish the next generation and remove files of this one at any time. Then a file that this
        // one names is missing, but CURRENT has moved on: start over.
        let mut last = None;
        loop {
            let current = read_current(vfs, dir)?;
            let generation = current.generation.get();
            match Self::load_generation(vfs, dir, access, &current, known) {
                Err(error) if is_missing(&error) && last != Some(generation) => last = Some(generation),
                other => return other.map_err(|error| missing_is_damage(error, generation)),
            }
        }
    }

    /// The manifest of the current generation.
    pub(super) fn load_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<Manifest> {
        Self::read_manifest(vfs, dir, &read_current(vfs, dir)?)
    }

    fn load_generation(
        vfs: &dyn Vfs,
        dir: &Path,
        access: Access,
        current: &Current,
        known: Option<&State>,
    ) -> Result<Self> {
        let manifest = Self::read_manifest(vfs, dir, current)?;
        let segments = manifest
            .segments
            .iter()
            .map(|entry| {
                let open = known.and_then(|state| state.segment(entry));
                open.map_or_else(|| open_segment(vfs, dir, access, &manifest, entry), Ok)
            })
            .collect::<Result<_>>()?;
        Ok(Self::new(manifest, segments))
    }

    fn read_manifest(vfs: &dyn Vfs, dir: &Path, current: &Current) -> Result<Manifest> {
        let generation = current.generation.get();
        let path = names::manifest(dir, generation);
        let bytes = read_whole(vfs, &path, MANIFEST_BYTES_MAX)?;
        let fault =
            |expected: String, found: String| corrupt(&path, "manifest", 0, Fault::new(0, expected, found));
        let digest = Manifest::digest(&bytes);
        if digest != current.digest.get() {
            // The manifest's own checks say more, if they find anything.
            Manifest::decode(&bytes).map_err(|refusal| refused(&path, "manifest", refusal))?;
            return Err(fault(
                format!("digest {:032x} as in CURRENT", current.digest.get()),
                format!("{digest:032x}"),
            ));
        }
        let manifest = Manifest::decode(&bytes).map_err(|refusal| refused(&path, "manifest", refusal))?;
        if (manifest.uuid, manifest.generation) != (current.header.salt.get(), generation) {
            let expected = format!("generation {generation} of index {:032x}", current.header.salt.get());
            return Err(fault(
                expected,
                format!("generation {} of {:032x}", manifest.generation, manifest.uuid),
            ));
        }
        Ok(manifest)
    }

    /// The open segment that an entry of another generation names.
    fn segment(&self, entry: &SegmentEntry) -> Option<Arc<Segment>> {
        let place = self.manifest.segments.iter().position(|mine| mine.number == entry.number)?;
        (self.segments[place].digest() == entry.digest).then(|| Arc::clone(&self.segments[place]))
    }
}

pub(super) fn open_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    access: Access,
    manifest: &Manifest,
    entry: &SegmentEntry,
) -> Result<Arc<Segment>> {
    let path = names::segment(dir, entry.number);
    let segment = Segment::open_with(vfs, &path, access)?;
    let differs = |what: &str, expected: String, found: String| {
        let expected = format!("{what} {expected} as in the manifest");
        Err(corrupt(&path, "segment", 0, Fault::new(0, expected, found)))
    };
    if segment.length() != entry.length {
        return differs("length", entry.length.to_string(), segment.length().to_string());
    }
    if segment.params() != &manifest.params {
        return differs("parameters", manifest.params.encode(), segment.params().encode());
    }
    if (segment.digest(), segment.salt()) != (entry.digest, entry.salt) {
        let name = |digest, salt| format!("{digest:032x}, salt {salt:032x}");
        return differs("digest", name(entry.digest, entry.salt), name(segment.digest(), segment.salt()));
    }
    if segment.documents() != entry.documents {
        return differs("documents", entry.documents.to_string(), segment.documents().to_string());
    }
    Ok(Arc::new(segment))
}

fn read_current(vfs: &dyn Vfs, dir: &Path) -> Result<Current> {
    let path = names::current(dir);
    let bytes = match read_whole(vfs, &path, CURRENT_BYTES as u64) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Err(no_current(vfs, dir, path));
        }
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            return Err(Error::NotAnIndex { path: dir.to_owned(), why: "it is not a directory".into() });
        }
        other => other?,
    };
    Current::read(&bytes).map_err(|refusal| refused(&path, "CURRENT", refusal))
}

/// Why there is no `CURRENT`: no index at all, or one that lost it. The second must never pass for the first.
fn no_current(vfs: &dyn Vfs, dir: &Path, path: PathBuf) -> Error {
    let names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Error::NotAnIndex { path: dir.to_owned(), why: "no such directory".into() };
        }
        Err(error) => return Error::io("list", dir, error),
    };
    let ours =
        names.iter().filter(|name| matches!(names::parse(name), Some(Name::Manifest(_) | Name::Segment(_))));
    match ours.count() {
        0 => Error::NotAnIndex { path: dir.to_owned(), why: "it has no file CURRENT".into() },
        count => Error::Corrupt {
            path,
            section: "CURRENT",
            offset: 0,
            expected: format!(
                "a file that names the newest manifest, as {count} manifests or segments are there"
            ),
            found: "no such file; restore it from a copy of the index".into(),
        },
    }
}

/// Reads a file of at most `limit` bytes, without trusting it to be that small.
pub(super) fn read_whole(vfs: &dyn Vfs, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = vfs.open(path).map_err(|e| Error::io("open", path, e))?;
    let length = file.len().map_err(|e| Error::io("get the length of", path, e))?;
    if length > limit {
        return Err(corrupt(path, "file", 0, Fault::new(limit, format!("at most {limit} bytes"), length)));
    }
    let size = usize::try_from(length).map_err(|_| Error::Limit {
        what: "bytes in memory",
        limit: usize::MAX as u64,
        found: length,
    })?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

pub(super) fn missing_is_damage(error: Error, generation: u64) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => Error::Corrupt {
            path,
            section: "index",
            offset: 0,
            expected: format!("a file that generation {generation} names"),
            found: "no such file; restore it from a copy of the index".into(),
        },
        other => other,
    }
}
