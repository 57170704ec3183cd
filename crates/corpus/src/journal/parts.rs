//! The results of the chunks of the inputs, stored in part files. A part has the results of consecutive chunks.
//!
//! ```text
//! part:  "twindex part 002"  run: 16  part: 8  first chunk: 8  hash: 8
//! chunk: number: 8  digest of its records: 8  bytes: 8  hash of these and of the content: 8  content
//! end:   2^64 - 1: 8  chunks of the part: 8  1 if the input ends with it: 8  hash: 8
//! ```
//!
//! A part contains only the positions and hashes of most sets. The sets themselves are in the journal's scratch file
//! `sets`, which is synced before the part is given its final name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, bail};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::journal::cache::{ByteReader, CachedChunk, damaged};
use crate::journal::files::{SETS, last, name, name_file, refuse, unnamed_file};
use crate::journal::folder::Journal;

const MAGIC: &[u8; 16] = b"twindex part 002";
/// Number of bytes before the first chunk of a part file.
const HEAD: usize = 56;
/// Number of bytes before the content of a chunk; also the number of bytes of the end record.
const CHUNK_HEAD: usize = 32;
/// Chunk number that marks the end record.
const END: u64 = u64::MAX;
/// Buffer size for reading and writing, in bytes.
const BUFFER: usize = 1 << 20;

/// Reads the results of chunks that the stopped run stored, then stores the results of further chunks.
pub(crate) struct ChunkParts<'j> {
    journal: &'j Journal<'j>,
    reading: &'static str,
    /// The number of the last part of the stopped run.
    last: u64,
    /// The number of the part that is being read or written.
    part: u64,
    open: Option<OpenPart>,
    /// The number of the next chunk to read or, after the last stored chunk, to store.
    chunk: u64,
    /// Whether the last part that was read contains the end of the input.
    is_over: bool,
    writing: Option<SealedWriter>,
    /// The part that another thread is syncing.
    sealing: Option<(u64, JoinHandle<anyhow::Result<()>>)>,
}

/// A part that is being read.
struct OpenPart {
    shown: Arc<str>,
    file: BufReader<File>,
    left: u64,
    chunks: u64,
}

/// A part that is being written.
struct SealedWriter {
    out: BufWriter<File>,
    /// Number of bytes of the part so far, plus the number of bytes of its sets in the scratch file.
    bytes: u64,
    chunks: u64,
}

impl<'j> ChunkParts<'j> {
    /// Opens the part files of `reading`: of the input documents or of the history.
    pub(crate) fn open(journal: &'j Journal<'j>, reading: &'static str) -> anyhow::Result<Self> {
        let last = last(&journal.folder, reading)?;
        Ok(Self {
            journal,
            reading,
            last,
            part: 0,
            open: None,
            chunk: 0,
            is_over: false,
            writing: None,
            sealing: None,
        })
    }

    /// Stores the last part, after the last chunk. `flush` returns the scratch file of the sets, if there is one.
    ///
    /// # Errors
    ///
    /// The stopped run stored results of further chunks, or an I/O operation fails.
    pub(crate) fn finish(
        mut self,
        flush: impl FnOnce() -> twindex::Result<Option<File>>,
    ) -> anyhow::Result<()> {
        if self.next()?.is_some() {
            let part = self.journal.folder.join(name(self.reading, self.part));
            bail!(refuse(&format!(
                "the input has fewer documents than the stopped run has read (see {})",
                part.display()
            )));
        }
        if !self.is_over {
            self.end_part(true, flush)?;
        }
        self.sealed()
    }

    /// Returns the path of the current part, for messages.
    fn shown(&self) -> Arc<str> {
        self.journal.folder.join(name(self.reading, self.part)).display().to_string().into()
    }

    /// Opens the next part of the stopped run; `None` after its last part.
    fn open_part(&mut self) -> anyhow::Result<Option<OpenPart>> {
        if self.part >= self.last {
            return Ok(None);
        }
        self.part += 1;
        let shown = self.shown();
        if self.is_over {
            bail!("{}", damaged(&shown)); // there is a part after the end of the input
        }
        let path = self.journal.folder.join(name(self.reading, self.part));
        let opened = || -> io::Result<_> {
            let file = File::open(&path)?;
            let left = file.metadata()?.len();
            let (mut file, mut head) = (BufReader::with_capacity(BUFFER, file), [0; HEAD]);
            if left >= HEAD as u64 {
                file.read_exact(&mut head)?;
            }
            Ok((file, left, head))
        };
        let (file, left, head) = opened().with_context(|| format!("{shown}: cannot read"))?;
        if left < HEAD as u64 || head != self.head(self.part, self.chunk) {
            bail!("{}", damaged(&shown));
        }
        Ok(Some(OpenPart { shown, file, left: left - HEAD as u64, chunks: 0 }))
    }

    /// Returns the header of the part `part`, whose first chunk is `chunk`.
    fn head(&self, part: u64, chunk: u64) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..16].copy_from_slice(MAGIC);
        head[16..32].copy_from_slice(&self.journal.run.to_le_bytes());
        head[32..40].copy_from_slice(&part.to_le_bytes());
        head[40..48].copy_from_slice(&chunk.to_le_bytes());
        let hash = xxh3_64(&head[..48]);
        head[48..].copy_from_slice(&hash.to_le_bytes());
        head
    }

    /// Ends the current part. Another thread syncs the scratch file of the sets, and then the part.
    fn end_part(
        &mut self,
        is_over: bool,
        flush: impl FnOnce() -> twindex::Result<Option<File>>,
    ) -> anyhow::Result<()> {
        let mut writing = match self.writing.take() {
            Some(writing) => writing,
            None if !is_over => return Ok(()),
            None => self.begin_part()?,
        };
        let numbers = [END, writing.chunks, is_over.into()];
        let end = chunk_head(numbers, &[]);
        let whole = || {
            writing.out.write_all(&end)?;
            writing.out.into_inner().map_err(io::IntoInnerError::into_error)
        };
        let file = whole().with_context(|| format!("{}: cannot write", self.shown()))?;
        self.sealed()?;
        let (folder, name) = (self.journal.folder.clone(), name(self.reading, self.part));
        let sets = flush()?;
        let seal = move || {
            if let Some(sets) = sets {
                let synced = sets.sync_data();
                synced.with_context(|| format!("{}: cannot make it durable", folder.join(SETS).display()))?;
            }
            name_file(&folder, &file, &name)
        };
        let thread = std::thread::Builder::new().name("sealing".to_owned());
        let sealing = thread.spawn(seal).context("cannot start a thread")?;
        self.sealing = Some((self.part, sealing));
        Ok(())
    }

    fn begin_part(&mut self) -> anyhow::Result<SealedWriter> {
        self.part += 1;
        let file = unnamed_file(&self.journal.folder, &name(self.reading, self.part))?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        out.write_all(&self.head(self.part, self.chunk))
            .with_context(|| format!("{}: cannot write", self.shown()))?;
        Ok(SealedWriter { out, bytes: 0, chunks: 0 })
    }

    /// Waits until the part that is being synced is durable.
    fn sealed(&mut self) -> anyhow::Result<()> {
        let Some((part, sealing)) = self.sealing.take() else { return Ok(()) };
        match sealing.join() {
            Ok(sealed) => sealed?,
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
        self.journal.observer.sealed(&name(self.reading, part));
        Ok(())
    }
}

impl Drop for ChunkParts<'_> {
    /// Waits for the thread that syncs a part, which must not write to the folder after its lock is released.
    fn drop(&mut self) {
        if let Some((_, sealing)) = self.sealing.take() {
            let _ = sealing.join();
        }
    }
}

/// Returns the header of a chunk: `numbers`, and a hash of `numbers` and `content`.
fn chunk_head(numbers: [u64; 3], content: &[u8]) -> [u8; CHUNK_HEAD] {
    let mut head = [0; CHUNK_HEAD];
    for (bytes, number) in head.chunks_exact_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let hash = chunk_hash(numbers, content);
    head[24..].copy_from_slice(&hash.to_le_bytes());
    head
}

fn chunk_hash(numbers: [u64; 3], content: &[u8]) -> u64 {
    let mut hash = Xxh3Default::new();
    for number in numbers {
        hash.update(&number.to_le_bytes());
    }
    hash.update(content);
    hash.digest()
}

impl ChunkParts<'_> {
    /// Returns the stored results of the next chunk; `None` after the last one.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<CachedChunk>> {
        loop {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => match self.open_part()? {
                    Some(open) => open,
                    None => return Ok(None),
                },
            };
            let not_as_written = || anyhow::anyhow!("{}", damaged(&open.shown));
            if open.left < CHUNK_HEAD as u64 {
                return Err(not_as_written());
            }
            let cannot = || format!("{}: cannot read", open.shown);
            let mut head = [0; CHUNK_HEAD];
            open.file.read_exact(&mut head).with_context(cannot)?;
            open.left -= CHUNK_HEAD as u64;
            let mut head = ByteReader(&head);
            let (Some(number), Some(digest), Some(length), Some(hash)) =
                (head.u64(), head.u64(), head.u64(), head.u64())
            else {
                return Err(not_as_written());
            };
            if number == END {
                let is_end = hash == chunk_hash([number, digest, length], &[]);
                if !is_end || open.left > 0 || digest != open.chunks {
                    return Err(not_as_written());
                }
                self.is_over = length == 1;
                continue;
            }
            if number != self.chunk || length > open.left {
                return Err(not_as_written());
            }
            let mut bytes = vec![0; length as usize];
            open.file.read_exact(&mut bytes).with_context(cannot)?;
            open.left -= length;
            open.chunks += 1;
            self.chunk += 1;
            let recalled = CachedChunk { at: Arc::clone(&open.shown), digest, bytes, is_whole, hash, number };
            self.open = Some(open);
            return Ok(Some(recalled));
        }
    }

    /// Stores the results of a chunk. `set_bytes` is the size of its sets in the file that `flush` returns.
    pub(crate) fn keep(
        &mut self,
        digest: u64,
        bytes: &[u8],
        set_bytes: u64,
        flush: impl FnOnce() -> twindex::Result<Option<File>>,
    ) -> anyhow::Result<()> {
        if self.is_over {
            let part = self.shown();
            bail!(refuse(&format!(
                "the input has more documents than the stopped run has read (see {part})"
            )));
        }
        let mut writing = match self.writing.take() {
            Some(writing) => writing,
            None => self.begin_part()?,
        };
        let head = chunk_head([self.chunk, digest, bytes.len() as u64], bytes);
        let written = writing.out.write_all(&head).and_then(|()| writing.out.write_all(bytes));
        written.with_context(|| format!("{}: cannot write", self.shown()))?;
        self.chunk += 1;
        writing.chunks += 1;
        writing.bytes += (CHUNK_HEAD + bytes.len()) as u64 + set_bytes;
        let is_full = writing.bytes >= self.journal.part_bytes;
        self.writing = Some(writing);
        if is_full { self.end_part(false, flush) } else { Ok(()) }
    }
}

fn is_whole(recalled: &CachedChunk) -> bool {
    let CachedChunk { digest, bytes, hash, number, .. } = recalled;
    chunk_hash([*number, *digest, bytes.len() as u64], bytes) == *hash
}
