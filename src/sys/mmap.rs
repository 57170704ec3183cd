//! Access to the bytes of a file by mapping it, reading all of it, or reading single pages.
//!
//! Mapping is the fastest way to read a file that is in the page cache: no bytes are copied, and all readers share the
//! memory of the cache. But the operating system cannot return an error for an unreadable page of a map. If the disk
//! fails, the file server is unreachable or the file was truncated, it sends SIGBUS, which ends the process. Programs
//! that must survive this use `sys::guard` or [`Access::Read`].

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

#[cfg(target_os = "linux")]
use super::guard::GuardRegistration;
use super::vfs::{Bytes, ReadFile};

/// A placeholder for systems without a guard for maps.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) enum GuardRegistration {}

#[cfg(not(target_os = "linux"))]
impl GuardRegistration {
    fn new(_: &[u8]) -> Option<Self> {
        None
    }

    fn is_lost(&self) -> bool {
        match *self {}
    }
}

/// Selects how the bytes of segment files are brought into memory. The choice does not affect query results, only the
/// cost of reading and the effect of unreadable files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Maps the files and advises the operating system: no read-ahead for lookups of single pages (`MADV_RANDOM`), but
    /// prefetching of page ranges before they are scanned (`MADV_WILLNEED`). The fastest choice for files on a local
    /// disk. An unreadable page ends the process with SIGBUS, unless the program has installed a guard
    /// (`sys::guard::install`, on Linux).
    #[default]
    Map,
    /// Maps the files without advice. Each page fault also reads neighbouring pages, up to the read-ahead of the device.
    /// Faster than [`Map`](Self::Map) only if the file fits into memory and most of it will be read soon.
    PlainMap,
    /// Does not map files. The first access to a page reads it with a system call, checks it, and keeps a copy in the memory
    /// of the process until the segment is closed. This is the safe choice: a failing disk, an unreachable server or a
    /// truncated file causes [`Error::Io`](crate::Error::Io) or [`Error::Corrupt`](crate::Error::Corrupt) in the current
    /// query, never SIGBUS, and pages that have been read cannot change. The cost is a private copy of each page that is
    /// used, which the system can swap out but not drop. Address space of the length of the files is reserved. Do not
    /// use it for an index larger than the memory, unless queries use few of its pages.
    Read,
    /// Reads each file completely when it is opened, into huge pages if the system supports them (`MADV_HUGEPAGE`). For
    /// servers with enough memory for the whole index. Maps have pages of 4 KiB, so queries of an index of several
    /// gigabytes spend much of their time on page tables; huge pages avoid this. Opening takes as long as reading the
    /// files, and each process has its own copy. An unreadable file causes [`Error::Io`](crate::Error::Io) when it is
    /// opened. Pages are checked at first use, as with the other choices.
    Load,
}

/// Maps the first `len` bytes of `file` read-only.
///
/// The map changes only if the file does. This crate creates a segment file under a temporary name, on Unix without write
/// permission, publishes it by renaming it, and never opens it for writing again.
///
/// # Errors
/// I/O errors of the operating system.
#[allow(unsafe_code, reason = "the one place that maps files; see the SAFETY note")]
pub(super) fn map(file: &File, len: usize) -> io::Result<Bytes> {
    if len == 0 {
        return Ok(Bytes::Heap(Vec::new()));
    }
    // SAFETY: `Mmap::map` requires that the file is not modified or truncated while the map exists. No code of this crate
    // does that to a published file: segments are created under a temporary name, on Unix without write permission, then
    // renamed, and later only unlinked, which leaves the map intact. Another program could do it, with bounded effect. All
    // readers take the bytes as `[u8]` and check every value they decode, so changed bytes cause an error, or a wrong answer
    // if the page checksum did not cover them; a truncation causes SIGBUS.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(file) }?;
    Ok(Bytes::Mapped(map))
}

/// Number of bytes that are read with one system call.
const LOADED: usize = 8 << 20;

/// Reads the first `len` bytes of `file` into memory, in huge pages if the system supports them.
///
/// # Errors
/// I/O errors of the operating system.
fn load(file: &dyn ReadFile, len: usize) -> io::Result<memmap2::Mmap> {
    let mut map = memmap2::MmapMut::map_anon(len)?;
    // Ignore errors, because huge pages are not required.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    for (offset, bytes) in (0..).step_by(LOADED).zip(map.chunks_mut(LOADED)) {
        file.read_exact_at(bytes, offset)?;
    }
    map.make_read_only()
}

/// Extends a scratch file from length `from` to `to` by zeros, and allocates the disk blocks, so that writes to a map
/// of the file cannot fail.
///
/// # Errors
/// I/O errors of the operating system, for example if the disk is full.
pub(super) fn extend(file: &File, from: usize, to: usize) -> io::Result<()> {
    #[cfg(test)]
    super::spill::faults::write((to - from) as u64)?;
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(file, flags, from as u64, (to - from) as u64) {
            Ok(()) => return Ok(()),
            // Some file systems cannot allocate blocks, which only the failed call shows. Write zeros instead.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut file = file;
    io::Seek::seek(&mut file, io::SeekFrom::Start(from as u64))?;
    let zeros = vec![0; (1 << 20).min(to - from)];
    for start in (from..to).step_by(zeros.len().max(1)) {
        io::Write::write_all(&mut file, &zeros[..zeros.len().min(to - start)])?;
    }
    Ok(())
}

/// Maps the first `len` bytes of a scratch file for reading and writing. The file must have at least this length.
///
/// # Errors
/// I/O errors of the operating system.
#[allow(unsafe_code, reason = "the one place that maps files; see the SAFETY note")]
pub(super) fn scratch(file: &File, len: usize) -> io::Result<memmap2::MmapMut> {
    // SAFETY: `map_mut` requires that nobody else modifies or truncates the file while the map exists. The file has no
    // name, so no other process can open it. Its only owner, `sys::column`, writes to it only through the map, and only
    // extends it, which leaves the bytes of the map unchanged.
    unsafe { memmap2::MmapOptions::new().len(len).map_mut(file) }
}

/// Returns the memory of an anonymous map to the system, with `threads` threads. The bytes of the map become zeros.
#[cfg(unix)]
#[allow(unsafe_code, reason = "a call to the system; see the SAFETY note")]
pub(super) fn forget_on(map: &mut memmap2::MmapMut, threads: usize) {
    let map = &*map;
    let share = map.len().div_ceil(threads.max(1)).next_multiple_of(PIECE).max(PIECE);
    std::thread::scope(|scope| {
        for start in (0..map.len()).step_by(share) {
            let forget = move || {
                let length = share.min(map.len() - start);
                // SAFETY: `MADV_DONTNEED` changes the bytes of the map to zeros, which are valid bytes. Nobody else has
                // borrowed them, as the map is borrowed mutably here, and this function reads none of them. If the
                // system refuses the call, nothing changes.
                let _ =
                    unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, length) };
            };
            // If a thread cannot be started, its share of the memory is released together with the map.
            let _ = std::thread::Builder::new().spawn_scoped(scope, forget);
        }
    });
}

/// Does nothing: on other systems, the memory is released together with the map.
#[cfg(not(unix))]
pub(super) fn forget_on(_: &mut memmap2::MmapMut, _: usize) {}

/// Advises the system that these bytes of `file` will be read soon. Ignores errors.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a call to the system; see the SAFETY note")]
pub(super) fn will_need(file: &File, offset: u64, length: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: The descriptor is open while `file` is borrowed. The call takes only numbers and accesses no memory of
    // this process; for invalid numbers it returns an error.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, length, libc::POSIX_FADV_WILLNEED) };
}

/// Number of bytes that [`PartialFile`] reads and stores as one piece. It is the page size of the format and of most
/// processors.
pub(crate) const PIECE: usize = 4096;

/// The bytes of a file, in the form that an [`Access`] selects.
#[derive(Debug)]
pub(crate) enum View {
    /// A map or a copy of the whole file.
    Whole {
        /// The registration of the map with the guard. It must be dropped before the map.
        guard: Option<GuardRegistration>,
        bytes: Bytes,
        /// Whether to advise the operating system before page ranges are read.
        hints: bool,
    },
    /// A file whose used pieces are copied to memory.
    Fetched(PartialFile),
}

impl View {
    /// Opens the first `len` bytes of `file` with this kind of access.
    ///
    /// # Errors
    /// I/O errors of the operating system. For [`Access::Read`], reserving address space of `len` bytes may fail.
    pub(crate) fn new(file: Box<dyn ReadFile>, len: usize, access: Access) -> io::Result<Self> {
        if access == Access::Read && len > 0 {
            return PartialFile::new(file, len).map(Self::Fetched);
        }
        if access == Access::Load && len > 0 {
            let bytes = Bytes::Mapped(load(&*file, len)?);
            return Ok(Self::Whole { guard: None, bytes, hints: false });
        }
        let bytes = file.map(len)?;
        let guard = match &bytes {
            Bytes::Mapped(map) => GuardRegistration::new(map),
            Bytes::Heap(_) => None,
        };
        #[cfg(unix)]
        if access == Access::Map
            && let Bytes::Mapped(map) = &bytes
        {
            // Ignore errors, because the map also works without this advice.
            let _ = map.advise(memmap2::Advice::Random);
            return Ok(Self::Whole { guard, bytes, hints: true });
        }
        Ok(Self::Whole { guard, bytes, hints: false })
    }

    /// Returns true if a page of a guarded map was unreadable and was replaced by zeros. All bytes that were read since
    /// then are invalid.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // guard: a lost map is looked for before its answer is believed
        // without it: guard.is_lost() -> false
        matches!(self, Self::Whole { guard: Some(guard), .. } if guard.is_lost())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole { bytes, .. } => bytes.len(),
            Self::Fetched(fetched) => fetched.region.len(),
        }
    }

    /// Returns the bytes at `range`. Returns `None` if the file ends before the range does, or if a piece of a
    /// [`PartialFile`] has not been stored yet. Access to a map may wait for the disk; access to stored pieces never
    /// does.
    #[inline(always)]
    pub(crate) fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match self {
            Self::Whole { bytes, .. } => bytes.get(range),
            Self::Fetched(fetched) => fetched.get(range),
        }
    }

    /// Advises the operating system to prefetch the bytes at `range`. Call it shortly before reading them. Does not
    /// wait.
    pub(crate) fn will_need(&self, range: &Range<usize>) {
        let end = range.end.min(self.len());
        let Some(length) = end.checked_sub(range.start).filter(|&length| length > 0) else { return };
        match self {
            #[cfg(unix)]
            Self::Whole { bytes: Bytes::Mapped(map), hints: true, .. } => {
                let _ = map.advise_range(memmap2::Advice::WillNeed, range.start, length);
            }
            Self::Whole { .. } => {}
            Self::Fetched(fetched) => fetched.file.will_need(range.start as u64, length as u64),
        }
    }
}

/// A file whose pieces are read into memory when they are first used. The pieces are stored in a reserved region as
/// long as the file; a page of the region uses no memory until it is written. A stored piece never changes.
#[derive(Debug)]
pub(crate) struct PartialFile {
    file: Box<dyn ReadFile>,
    region: memmap2::MmapRaw,
    /// One bit per piece, which is set once the piece is stored.
    there: Box<[AtomicU64]>,
    /// Held while a thread stores a piece.
    keeping: Mutex<()>,
}

impl PartialFile {
    fn new(file: Box<dyn ReadFile>, len: usize) -> io::Result<Self> {
        let region = memmap2::MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        // With huge pages, storing the first piece would already use 2 MiB.
        #[cfg(target_os = "linux")]
        let _ = region.advise(memmap2::Advice::NoHugePage);
        let there = (0..len.div_ceil(PIECE).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { file, region: region.into(), there, keeping: Mutex::new(()) })
    }

    /// Reads bytes of the file into `buffer`, and does not store them.
    ///
    /// # Errors
    /// I/O errors of the operating system.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: usize) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset as u64)
    }

    #[inline(always)]
    fn is_there(&self, piece: usize) -> bool {
        // Acquire: if the bit is set, the bytes of the piece, which were written before it, are visible.
        self.there.get(piece / 64).is_some_and(|word| word.load(Ordering::Acquire) & 1 << (piece % 64) != 0)
    }

    #[inline(always)]
    #[allow(
        unsafe_code,
        reason = "parts of the region are written while others are read; see the SAFETY note"
    )]
    fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        if range.start >= range.end {
            return (range.start == range.end && range.end <= self.region.len()).then_some(&[]);
        }
        let in_file = range.end <= self.region.len();
        if !in_file || !(range.start / PIECE..=(range.end - 1) / PIECE).all(|piece| self.is_there(piece)) {
            return None;
        }
        // SAFETY: `range` is not empty and ends within the region. The region is mapped, readable, and zeroed or
        // written from its first byte to its last, and it lives as long as `self`. The bit in `there` is set for every
        // piece that overlaps `range`. Only `keep` writes to the region, and only to a piece whose bit it finds unset
        // while it holds the lock; it sets the bit after writing, and no bit is ever cleared. So nothing writes to
        // these pieces any more, and they were written before the bit was seen (Release in `keep`, Acquire here). The
        // region's pointer is never returned, and no `&mut` to the region is ever created.
        Some(unsafe {
            std::slice::from_raw_parts(self.region.as_ptr().add(range.start), range.end - range.start)
        })
    }

    /// Stores `bytes` as piece number `piece`. Does nothing if the piece is already stored or `bytes` has another
    /// length.
    #[allow(unsafe_code, reason = "writes to the region through a shared reference; see the SAFETY note")]
    pub(crate) fn keep(&self, piece: usize, bytes: &[u8]) {
        let start = piece.saturating_mul(PIECE);
        let length = self.region.len().saturating_sub(start).min(PIECE);
        let Some(word) = self.there.get(piece / 64) else { return };
        if bytes.len() != length || length == 0 {
            debug_assert_eq!(bytes.len(), length, "piece {piece}");
            return;
        }
        let _keeping = self.keeping.lock();
        if self.is_there(piece) {
            return;
        }
        // SAFETY: The target is `length` bytes within the region (`start + length` is at most its length), mapped and
        // writable. No reference to these bytes exists: `get` creates references only to pieces whose bit is set, and
        // the bit of this piece is not set. No other thread writes to them: only this code writes to the region, and it
        // holds the lock from checking the bit until setting it. The source is a live slice. If it were a part of this
        // region, it would belong to a stored piece, thus to another piece, so the two do not overlap.
        unsafe {
            let target = self.region.as_mut_ptr().add(start);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, length);
        }
        word.fetch_or(1 << (piece % 64), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::vfs::MemoryFile;
    use super::*;

    fn fetched(bytes: &[u8]) -> (View, Vec<u8>) {
        let view = View::new(Box::new(MemoryFile(bytes.to_vec())), bytes.len(), Access::Read).unwrap();
        (view, bytes.to_vec())
    }

    fn pieces(view: &View) -> &PartialFile {
        match view {
            View::Fetched(fetched) => fetched,
            View::Whole { .. } => unreachable!("asked for with Access::Read"),
        }
    }

    #[test]
    fn get_returns_bytes_only_if_all_their_pieces_are_stored() {
        let bytes: Vec<u8> = (0..3 * PIECE + 100).map(|i| (i / 7) as u8).collect();
        let (view, bytes) = fetched(&bytes);
        assert_eq!(view.len(), bytes.len());
        assert_eq!(view.get(0..1), None);
        pieces(&view).keep(1, &bytes[PIECE..2 * PIECE]);
        assert_eq!(view.get(PIECE..2 * PIECE), Some(&bytes[PIECE..2 * PIECE]));
        assert_eq!(view.get(2 * PIECE - 1..2 * PIECE + 1), None, "its second piece is missing");
        assert_eq!(view.get(PIECE - 1..PIECE + 1), None, "its first piece is missing");
        pieces(&view).keep(3, &bytes[3 * PIECE..]);
        assert_eq!(view.get(3 * PIECE..bytes.len()), Some(&bytes[3 * PIECE..]));
        pieces(&view).keep(2, &bytes[2 * PIECE..3 * PIECE]);
        assert_eq!(view.get(PIECE + 5..bytes.len()), Some(&bytes[PIECE + 5..]));
    }

    #[test]
    fn get_returns_none_for_ranges_outside_the_file() {
        for len in [1, PIECE, PIECE + 1, 64 * PIECE, 64 * PIECE + 1] {
            let (view, bytes) = fetched(&vec![7; len]);
            for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
                pieces(&view).keep(piece, bytes);
            }
            assert_eq!(view.get(0..len), Some(&bytes[..]), "{len}");
            assert_eq!(view.get(0..len + 1), None, "{len}");
            assert_eq!(view.get(len + PIECE..len + PIECE), None, "{len}");
            assert_eq!(view.get(usize::MAX - 1..usize::MAX), None, "{len}");
            #[allow(clippy::reversed_empty_ranges, reason = "what a lie in a file can ask for")]
            let reversed = view.get(1..0);
            assert_eq!(reversed, None, "{len}");
            pieces(&view).keep(usize::MAX, &[]);
            view.will_need(&(0..usize::MAX));
            view.will_need(&(len + 1..len + 2));
        }
    }

    #[test]
    fn storing_a_piece_again_does_not_change_it() {
        let (view, _) = fetched(&vec![0; 2 * PIECE]);
        pieces(&view).keep(1, &[1; PIECE]);
        pieces(&view).keep(1, &[2; PIECE]);
        assert_eq!(view.get(PIECE..2 * PIECE), Some(&[1; PIECE][..]));
    }
}
