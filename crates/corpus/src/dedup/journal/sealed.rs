//! Journal files that are written once and end with a hash of their content.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::Context;
use xxhash_rust::xxh3::Xxh3Default;

use super::{Journal, unnamed_file};
use crate::remembered::damaged;

/// The first bytes of each sealed file. The id of the run follows.
const MAGIC: &[u8; 16] = b"twindex sealed 1";
/// Number of bytes before the content.
const HEAD: u64 = 32;
/// Length in bytes of the hash after the content.
const HASH: u64 = 8;
/// Buffer size for reading and writing, in bytes.
const BUFFER: usize = 256 << 10;

/// Writes a file and computes the hash of its bytes.
pub(in super::super) struct SealedWriter {
    out: BufWriter<File>,
    hash: Xxh3Default,
}

impl Write for SealedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads the content of a sealed file whose hash was verified.
pub(in super::super) type SealedReader = io::Take<BufReader<File>>;

impl Journal<'_> {
    /// Writes a sealed file and syncs it.
    pub(in super::super) fn seal(
        &self,
        name: &str,
        write: impl FnOnce(&mut SealedWriter) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let file = unnamed_file(&self.folder, name)?;
        let written = || {
            let mut writing =
                SealedWriter { out: BufWriter::with_capacity(BUFFER, file), hash: Xxh3Default::new() };
            writing.write_all(MAGIC)?;
            writing.write_all(&self.run.to_le_bytes())?;
            write(&mut writing)?;
            let SealedWriter { mut out, hash } = writing;
            out.write_all(&hash.digest().to_le_bytes())?;
            out.into_inner().map_err(io::IntoInnerError::into_error)
        };
        let file =
            written().with_context(|| format!("{}: cannot write", self.folder.join(name).display()))?;
        self.name(&file, name)?;
        self.observer.sealed(name);
        Ok(())
    }

    /// Returns the content of a sealed file; `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    pub(in super::super) fn sealed(&self, name: &str) -> anyhow::Result<Option<SealedReader>> {
        let path = self.folder.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let content =
            open_sealed(&path, self.run).with_context(|| format!("{}: cannot read", path.display()))?;
        match content {
            Some(content) => Ok(Some(content)),
            None => anyhow::bail!("{}", damaged(&path.display().to_string())),
        }
    }
}

/// Returns the content of a file; `None` if it is damaged or was written by another run than `run`.
fn open_sealed(path: &Path, run: u128) -> io::Result<Option<SealedReader>> {
    let file = File::open(path)?;
    let Some(length) = file.metadata()?.len().checked_sub(HEAD + HASH) else { return Ok(None) };
    let mut content = BufReader::with_capacity(BUFFER, file).take(HEAD + length);
    let (mut hash, mut buffer, mut head) = (Xxh3Default::new(), vec![0; BUFFER], Vec::new());
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        head.extend(buffer[..count].iter().take(HEAD as usize - head.len()));
    }
    let mut expected = [0; HASH as usize];
    content.into_inner().read_exact(&mut expected)?;
    if hash.digest().to_le_bytes() != expected || head[..16] != *MAGIC || head[16..] != run.to_le_bytes() {
        return Ok(None);
    }
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    file.read_exact(&mut head)?;
    Ok(Some(file.take(length)))
}
