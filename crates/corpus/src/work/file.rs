//! Writes files durably, and computes the hash of a file while it is written.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use anyhow::Context;
use twindex::sys::DurableFile;
use xxhash_rust::xxh3::Xxh3Default;

/// The length and the xxh3-128 hash of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The length in bytes.
    pub bytes: u64,
    /// The hash of all bytes.
    pub xxh3: u128,
}

impl FileDigest {
    /// Reads a file, and returns its digest.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let (mut file, mut hash, mut buffer) = (File::open(path)?, FileHash::default(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hash.digest()),
                read => hash.update(&buffer[..read]),
            }
        }
    }
}

/// The intermediate state of the hash of a file.
#[derive(Default)]
pub(crate) struct FileHash {
    bytes: u64,
    hasher: Box<Xxh3Default>,
}

impl FileHash {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    #[must_use]
    pub(crate) fn digest(&self) -> FileDigest {
        FileDigest { bytes: self.bytes, xxh3: self.hasher.digest128() }
    }
}

/// A file, and the hash of the bytes that were written to it.
pub(crate) struct Hashed<F> {
    file: F,
    hash: FileHash,
}

/// A hashed file that is synced when it is finished.
pub(crate) type HashedFile = Hashed<DurableFile>;

impl<F: Write> Hashed<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { file, hash: FileHash::default() }
    }

    pub(crate) fn into_parts(self) -> (F, FileHash) {
        (self.file, self.hash)
    }
}

impl HashedFile {
    /// Creates a new file.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system. Fails if the file already exists.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        DurableFile::create_new(path).map(Self::new)
    }

    /// Opens a file for appending. `hash` is the state of the hash after the existing bytes.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system.
    pub(crate) fn append(path: &Path, hash: FileHash) -> io::Result<Self> {
        Ok(Self { file: DurableFile::append(path)?, hash })
    }

    /// Syncs the contents of the file to disk, closes the file, and returns the state of the hash after all bytes.
    ///
    /// # Errors
    ///
    /// I/O errors of the operating system. After an error, the contents of the file are undefined.
    pub(crate) fn finish(self) -> io::Result<FileHash> {
        self.file.finish().map(|()| self.hash)
    }
}

impl<F: Write> Write for Hashed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that a job wrote.
#[derive(Debug)]
pub struct WrittenFile {
    /// The name of the file in its folder.
    pub name: String,
    /// The digest of the file.
    pub digest: FileDigest,
    /// The digest of the file that lists the keys of this file's documents; `None` if no such file was written.
    pub keys: Option<FileDigest>,
}

/// Writes a file and syncs it.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<DurableFile>) -> io::Result<()>,
) -> anyhow::Result<()> {
    write_any(path, (DurableFile::create_new, DurableFile::finish), write)
}

/// Writes a file, syncs it, and returns its digest.
pub(crate) fn write_hashed_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<HashedFile>) -> io::Result<()>,
) -> anyhow::Result<FileDigest> {
    Ok(write_any(path, (HashedFile::create_new, HashedFile::finish), write)?.digest())
}

fn write_any<F: Write, R>(
    path: &Path,
    (create, finish): (impl FnOnce(&Path) -> io::Result<F>, impl FnOnce(F) -> io::Result<R>),
    write: impl FnOnce(&mut BufWriter<F>) -> io::Result<()>,
) -> anyhow::Result<R> {
    let whole = || {
        let mut out = BufWriter::with_capacity(1 << 20, create(path)?);
        write(&mut out)?;
        finish(out.into_inner().map_err(io::IntoInnerError::into_error)?)
    };
    // The error does not name the folder, which is temporary and unknown to the user.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    whole().with_context(|| format!("{name}: cannot write"))
}
