//! Writes a segment file section by section, with a checksum for each page.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use xxhash_rust::xxh3::Xxh3Default;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::checksum::{PAGE, checksum};
use crate::format::contents::{ENTRY_BYTES, Entry, Kind, Section};
use crate::format::footer::{self, Footer};
use crate::format::header::{Header, Role, features_of_segment};
use crate::format::{self, align};
use crate::params::Params;
use crate::sys::vfs::{TemporaryFile, Vfs};

/// Number of bytes that are collected before they are written: the size of a huge page, and a multiple of the page
/// size. Each write starts at a multiple of this size. So file systems with large folios keep the file in huge pages,
/// and maps of the file need few TLB entries.
const BUFFER: usize = 2 << 20;

/// Writes a segment from front to back. The file has no name until [`SegmentOutput::finish`] has synced it.
pub(super) struct SegmentOutput {
    pages: Pages,
    salt: u128,
    header: Header,
    buffer: Vec<u8>,
    /// The offset in the file at which the buffer will be written; a multiple of the page size.
    flushed: u64,
    sections: Vec<Section>,
    cancel: Option<Cancel>,
}

/// The file, written by this thread or by a thread of its own.
enum Pages {
    Here(PageFile),
    Thread(PageThread),
    Ended,
}

/// The part of the file that is written, and the checksums of its pages.
struct PageFile {
    file: Box<dyn TemporaryFile>,
    dir: PathBuf,
    salt: u128,
    length: u64,
    checksums: Vec<u32>,
}

impl PageFile {
    /// Appends whole pages, and computes their checksums. Only the last page of the file may be shorter.
    fn append_pages(&mut self, pages: &[u8]) -> Result<()> {
        for (page, bytes) in (0..).zip(pages.chunks(PAGE as usize)) {
            self.checksums.push(checksum(self.salt, self.length + page * PAGE, bytes));
        }
        self.append(pages)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes).map_err(|e| Error::io("write a new segment in", &self.dir, e))?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// A thread that writes the file while later sections are encoded.
struct PageThread {
    /// Buffers to write. `None` after the last one.
    full: Option<SyncSender<Vec<u8>>>,
    /// Written buffers, whose memory is reused.
    written: Receiver<Vec<u8>>,
    /// `None` after the thread was joined.
    thread: Option<JoinHandle<Result<PageFile>>>,
}

/// Maximum number of buffers that wait for the thread that writes the file.
const WAITING: usize = 4;

impl PageThread {
    fn start(mut file: PageFile) -> Result<Self> {
        let dir = file.dir.clone();
        let (full, buffers) = sync_channel::<Vec<u8>>(WAITING);
        let (spare, written) = channel();
        let write = move || {
            for mut buffer in buffers {
                file.append_pages(&buffer)?;
                buffer.clear();
                let _ = spare.send(buffer); // fails if the other thread has failed
            }
            Ok(file)
        };
        let thread = Builder::new().name("twindex-write".into()).spawn(write);
        let thread = thread.map_err(|e| Error::io("start a thread for", &dir, e))?;
        Ok(Self { full: Some(full), written, thread: Some(thread) })
    }

    /// Passes a buffer to the thread, and returns an empty one.
    fn write(&mut self, buffer: Vec<u8>) -> Result<Vec<u8>> {
        let is_taken = self.full.as_ref().is_some_and(|full| full.send(buffer).is_ok());
        if !is_taken {
            return self.end().map(|_| Vec::new()); // the thread has ended with an error
        }
        Ok(self.written.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER)))
    }

    /// Waits until all buffers are written, and returns the file.
    fn end(&mut self) -> Result<PageFile> {
        self.full = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(file)) => file,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("a thread is joined once"),
        }
    }
}

impl Drop for PageThread {
    /// Waits for the thread, so that no temporary file remains after an error.
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A complete, synced file, and the length and the digest that the manifest records for it.
pub(super) struct Finished {
    pub(super) file: Box<dyn TemporaryFile>,
    pub(super) length: u64,
    pub(super) digest: u128,
}

impl SegmentOutput {
    /// Creates the file. With several threads, one of them writes it.
    pub(super) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        salt: u128,
        (params, has_parts): (&Params, bool),
        threads: usize,
        cancel: Option<Cancel>,
    ) -> Result<Self> {
        let file = vfs.create_temporary(dir).map_err(|e| Error::io("create a temporary file in", dir, e))?;
        let features = features_of_segment(params, has_parts);
        let header = Header::new(Role::Segment, salt, params.digest()).with_features(features, 0);
        let file = PageFile { file, dir: dir.to_owned(), salt, length: 0, checksums: Vec::new() };
        let pages = if threads > 1 { Pages::Thread(PageThread::start(file)?) } else { Pages::Here(file) };
        let buffer = Vec::with_capacity(BUFFER);
        let mut output = Self { pages, salt, header, buffer, flushed: 0, sections: Vec::new(), cancel };
        output.put(header.as_bytes())?;
        Ok(output)
    }

    fn offset(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Adds a section. `body` writes the contents of the section, whose offset it does not need.
    pub(super) fn section(
        &mut self,
        kind: Kind,
        index: u16,
        codec: u16,
        rows: u64,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.align()?;
        let offset = self.offset();
        self.sections.push(Section { kind, index, codec, offset, length: 0, rows });
        body(self)?;
        let length = self.offset() - offset;
        self.sections.last_mut().expect("pushed above").length = length;
        Ok(())
    }

    /// Pads the file with zeros to a multiple of 64, at which sections and the aligned parts of a section start.
    pub(super) fn align(&mut self) -> Result<()> {
        let gap = align(self.offset()) - self.offset();
        self.put(&[0; format::ALIGNMENT as usize][..gap as usize])
    }

    pub(super) fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let free = BUFFER - self.buffer.len();
            let (now, later) = bytes.split_at(free.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == BUFFER {
                self.cancel.as_ref().map_or(Ok(()), Cancel::check)?;
                self.flushed += BUFFER as u64;
                match &mut self.pages {
                    Pages::Here(file) => file.append_pages(&self.buffer)?,
                    Pages::Thread(thread) => self.buffer = thread.write(std::mem::take(&mut self.buffer))?,
                    Pages::Ended => unreachable!("nothing is written after the last section"),
                }
                self.buffer.clear();
            }
        }
        Ok(())
    }

    /// Writes checksums, table of contents and footer, and syncs the file.
    pub(super) fn finish(mut self, documents: u64, distinct: u64) -> Result<Finished> {
        self.align()?;
        let mut file = match std::mem::replace(&mut self.pages, Pages::Ended) {
            Pages::Thread(mut thread) => thread.end()?,
            Pages::Here(file) => file,
            Pages::Ended => unreachable!("a file is finished once"),
        };
        file.append_pages(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();

        let checksums_offset = self.flushed;
        let checksums: Vec<u8> = file.checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        self.sections.push(Section {
            kind: Kind::Checksums,
            index: 0,
            codec: 1,
            offset: checksums_offset,
            length: checksums.len() as u64,
            rows: file.checksums.len() as u64,
        });
        self.put_whole(&checksums);

        let contents_offset = self.offset();
        let entries: Vec<Entry> = self.sections.iter().map(Section::entry).collect();
        self.buffer.extend_from_slice(entries.as_bytes());

        let footer_offset = self.offset();
        let length = footer_offset + footer::FOOTER_BYTES as u64;
        let footer = Footer {
            magic: footer::MAGIC,
            file_length: U64::new(length),
            contents_offset: U64::new(contents_offset),
            contents_entries: U32::new(entries.len() as u32),
            contents_checksum: U32::new(checksum(self.salt, contents_offset, entries.as_bytes())),
            checksums_checksum: U32::new(checksum(self.salt, checksums_offset, &checksums)),
            reserved: U32::ZERO,
            documents: U64::new(documents),
            distinct: U64::new(distinct),
            reserved_too: U32::ZERO,
            checksum: U32::ZERO,
        }
        .sealed(self.salt, footer_offset);
        self.buffer.extend_from_slice(footer.as_bytes());
        debug_assert_eq!(footer_offset - contents_offset, (entries.len() * ENTRY_BYTES) as u64);
        let digest = digest(&self.header, &checksums, entries.as_bytes(), &footer);
        file.append(&self.buffer)?;
        let PageFile { mut file, dir, .. } = file;
        // guard: a segment is synced before it has its name
        file.sync().map_err(|e| Error::io("sync a new segment in", &dir, e))?;
        Ok(Finished { file, length, digest })
    }

    /// Appends bytes and padding after the checksummed pages. The sections after these pages have their own checksums.
    fn put_whole(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        let gap = align(self.offset()) - self.offset();
        self.buffer.resize(self.buffer.len() + gap as usize, 0);
    }
}

/// Returns a digest that identifies a whole segment without reading all of it. It covers the header, the page
/// checksums, the table of contents and the footer, which together determine all other bytes.
pub(super) fn digest(header: &Header, checksums: &[u8], contents: &[u8], footer: &Footer) -> u128 {
    let mut hasher = Xxh3Default::new();
    hasher.update(header.as_bytes());
    hasher.update(checksums);
    hasher.update(contents);
    hasher.update(footer.as_bytes());
    hasher.digest128()
}
