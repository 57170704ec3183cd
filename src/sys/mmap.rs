//! Bytes of a file, mapped or read.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of one immutable file: a read-only map, or a copy on the heap where there is nothing to map.
#[derive(Debug)]
pub enum Bytes {
    /// Pages of the file, read by the kernel when touched.
    Mapped(memmap2::Mmap),
    /// A copy.
    Heap(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Heap(bytes) => bytes,
        }
    }
}

/// Maps the first `len` bytes of `file` read-only.
///
/// What the map shows is only as constant as the file: this crate writes a segment under a temporary name,
/// publishes it by rename, makes it read-only and never opens it for writing again.
///
/// # Errors
/// The operating system's.
#[allow(unsafe_code, reason = "the one place that maps files; see the SAFETY note")]
pub(super) fn map(file: &File, len: usize) -> io::Result<Bytes> {
    if len == 0 {
        return Ok(Bytes::Heap(Vec::new()));
    }
    // SAFETY: `Mmap::map` asks that the file is not modified or truncated while the map lives. No code of this
    // crate does that to a published file (segments are created under a temporary name, renamed and made
    // read-only; they are only ever unlinked, which leaves the map intact). Another program could; what it can
    // cause is bounded: all readers take the bytes as `[u8]` and check every value they decode, so changed bytes
    // give an error or a wrong answer that the page checksum did not cover, and a truncation gives SIGBUS.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(file) }?;
    Ok(Bytes::Mapped(map))
}
