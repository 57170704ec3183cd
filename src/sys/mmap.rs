//! Access to the bytes of a file: mapped, read whole, or read page by page.
//!
//! A map is the fastest way to read a file that is in the page cache, and it shares that cache with all readers of the
//! file. Its disadvantage: the operating system cannot return an error for a page that cannot be read, because the disk
//! fails, the server of a network file system is unreachable or the file was truncated. It ends the process with
//! SIGBUS. Programs that must survive this use `sys::guard` or [`Access::Read`].

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

#[cfg(target_os = "linux")]
use super::guard::GuardRegistration;
use super::vfs::{Bytes, ReadFile};

/// A placeholder for systems on which maps are not guarded.
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

/// How the bytes of an index's segments are read into memory. The choice affects no answer, only the cost of reading
/// and the effect of a file that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Maps the files and gives hints to the operating system: no read-ahead for lookups of single pages
    /// (`MADV_RANDOM`), prefetch for page ranges that are about to be scanned (`MADV_WILLNEED`). The fastest choice for
    /// files on a local disk. A page that cannot be read ends the process with SIGBUS, as with every map, unless the
    /// program has installed a guard (`sys::guard::install`, on Linux).
    #[default]
    Map,
    /// Maps the files without hints: each page fault also reads neighbouring pages, up to the read-ahead of the device.
    /// Faster than [`Map`](Self::Map) only if the file fits into memory and most of it will be needed soon.
    PlainMap,
    /// Does not map files. The first access to a page reads it by a fallible call, checks it, and keeps it in memory of
    /// the process until the segment is closed. This is the safe choice: a failing disk, an unreachable server or a
    /// truncated file causes [`Error::Io`](crate::Error::Io) or [`Error::Corrupt`](crate::Error::Corrupt) in the
    /// current query, never SIGBUS, and pages read once cannot change any more. It costs a private copy of all pages
    /// touched, which the system can only swap out; address space of the length of the files is reserved. Do not use it
    /// for an index larger than memory, unless queries touch few of its pages.
    Read,
    /// Reads each file as a whole when it is opened, into memory of huge pages where the system has them
    /// (`MADV_HUGEPAGE`). For servers with memory for the whole index: queries of an index of several gigabytes spend
    /// much of their time on the page tables of a map, whose pages have 4 KiB. Opening takes as long as reading the
    /// files, each process has its own copy, and a file that cannot be read causes [`Error::Io`](crate::Error::Io) when
    /// it is opened. Pages are checked when they are first touched, as with the other choices.
    Load,
}

/// Maps the first `len` bytes of `file` read-only.
///
/// The map changes only if the file does: this crate writes a segment under a temporary name, publishes it by rename,
/// makes it read-only and never opens it for writing again.
///
/// # Errors
/// I/O errors of the operating system.
#[allow(unsafe_code, reason = "the one place that maps files; see the SAFETY note")]
pub(super) fn map(file: &File, len: usize) -> io::Result<Bytes> {
    if len == 0 {
        return Ok(Bytes::Heap(Vec::new()));
    }
    // SAFETY: `Mmap::map` requires that the file is not modified or truncated while the map exists. No code of this
    // crate does that to a published file: segments are created under a temporary name, renamed and made read-only, and
    // later only unlinked, which leaves the map intact. Another program could do it, with bounded effect. All readers
    // take the bytes as `[u8]` and check every value they decode, so changed bytes cause an error, or a wrong answer if
    // the page checksum did not cover them; a truncation causes SIGBUS.
    let map = unsafe { memmap2::MmapOptions::new().len(len).map(file) }?;
    Ok(Bytes::Mapped(map))
}

/// The number of bytes of a file read by one call.
const LOADED: usize = 8 << 20;

/// Reads the first `len` bytes of `file` into memory of huge pages, if the system has them.
///
/// # Errors
/// I/O errors of the operating system.
fn load(file: &dyn ReadFile, len: usize) -> io::Result<memmap2::Mmap> {
    let mut map = memmap2::MmapMut::map_anon(len)?;
    // A hint: reading also works without huge pages.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    for (offset, bytes) in (0..).step_by(LOADED).zip(map.chunks_mut(LOADED)) {
        file.read_exact_at(bytes, offset)?;
    }
    map.make_read_only()
}

/// Allocates the bytes `from..to` of a scratch file as zeros, so that every page of its map has a block on the disk.
///
/// # Errors
/// I/O errors of the operating system, for example of a full disk.
pub(super) fn extend(file: &File, from: usize, to: usize) -> io::Result<()> {
    #[cfg(test)]
    super::spill::faults::write((to - from) as u64)?;
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(file, flags, from as u64, (to - from) as u64) {
            Ok(()) => return Ok(()),
            // Some file systems cannot allocate, and some of these report it only by failing.
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

/// Maps the first `len` bytes of a scratch file for reading and writing; the file must be at least that long.
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

/// Resets an anonymous map to zeros on `threads` threads, and returns its memory to the system.
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
            // If no thread can be started, this memory is freed with the map.
            let _ = std::thread::Builder::new().spawn_scoped(scope, forget);
        }
    });
}

/// Does nothing: on other systems the memory is freed with the map.
#[cfg(not(unix))]
pub(super) fn forget_on(_: &mut memmap2::MmapMut, _: usize) {}

/// Hints to the system that these bytes of `file` will be read soon; errors are ignored.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a call to the system; see the SAFETY note")]
pub(super) fn will_need(file: &File, offset: u64, length: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: The descriptor is open while `file` is borrowed. The call takes only numbers and accesses no memory of
    // this process; for invalid numbers it returns an error.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, length, libc::POSIX_FADV_WILLNEED) };
}

/// The number of bytes that [`PartialFile`] reads and keeps as a unit: a page of the format, and of most processors.
pub(crate) const PIECE: usize = 4096;

/// The bytes of a file, accessed as an [`Access`] specifies.
#[derive(Debug)]
pub(crate) enum View {
    /// A map or a copy of the whole file.
    Whole {
        /// The registration of the map, dropped before the map.
        guard: Option<GuardRegistration>,
        bytes: Bytes,
        /// Whether future reads are announced to the operating system.
        hints: bool,
    },
    /// The parts of the file read so far.
    Fetched(PartialFile),
}

impl View {
    /// Opens a view of the first `len` bytes of `file`.
    ///
    /// # Errors
    /// I/O errors of the operating system, which may refuse to reserve address space of `len` bytes.
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
            // A hint: if the system refuses it, the map works without it.
            let _ = map.advise(memmap2::Advice::Random);
            return Ok(Self::Whole { guard, bytes, hints: true });
        }
        Ok(Self::Whole { guard, bytes, hints: false })
    }

    /// Whether any page of a guarded map was unreadable and was replaced by zeros. Everything read since then is
    /// invalid.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // guard: a lost map is looked for before its answer is believed
        // without it: guard.is_lost() -> false
        matches!(self, Self::Whole { guard: Some(guard), .. } if guard.is_lost())
    }

    /// Returns the number of bytes of the file.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole { bytes, .. } => bytes.len(),
            Self::Fetched(fetched) => fetched.region.len(),
        }
    }

    /// Returns the bytes at `range`; `None` if the range is outside of the file, or has not been read yet by a
    /// [`PartialFile`]. Access to a map may wait for the disk; access to pieces already read never does.
    #[inline(always)]
    pub(crate) fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match self {
            Self::Whole { bytes, .. } => bytes.get(range),
            Self::Fetched(fetched) => fetched.get(range),
        }
    }

    /// Hints to the operating system that the bytes at `range` will be read soon, so that it prefetches them. It
    /// neither waits nor has any other effect.
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

/// A file that is read into memory piece by piece, as requested. The pieces are stored in a region as long as the file,
/// whose pages use no memory until they are written. A stored piece never changes.
#[derive(Debug)]
pub(crate) struct PartialFile {
    file: Box<dyn ReadFile>,
    region: memmap2::MmapRaw,
    /// One bit for each piece, set if the piece is in the region.
    there: Box<[AtomicU64]>,
    /// Held while a piece is written to the region.
    keeping: Mutex<()>,
}

impl PartialFile {
    fn new(file: Box<dyn ReadFile>, len: usize) -> io::Result<Self> {
        let region = memmap2::MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        // With huge pages the first piece would take 2 MiB.
        #[cfg(target_os = "linux")]
        let _ = region.advise(memmap2::Advice::NoHugePage);
        let there = (0..len.div_ceil(PIECE).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { file, region: region.into(), there, keeping: Mutex::new(()) })
    }

    /// Fills `buffer` from the file, without using the region.
    ///
    /// # Errors
    /// I/O errors of the operating system.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: usize) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset as u64)
    }

    #[inline(always)]
    fn is_there(&self, piece: usize) -> bool {
        // Acquire ordering, so that the bytes written before the bit was set are visible.
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

    /// Stores the bytes of a piece, which must be complete. A piece that is already stored does not change.
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
    fn bytes_are_handed_out_only_from_pieces_that_are_there() {
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
    fn places_outside_of_the_file_have_no_bytes() {
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
    fn first_stored_piece_is_kept() {
        let (view, _) = fetched(&vec![0; 2 * PIECE]);
        pieces(&view).keep(1, &[1; PIECE]);
        pieces(&view).keep(1, &[2; PIECE]);
        assert_eq!(view.get(PIECE..2 * PIECE), Some(&[1; PIECE][..]));
    }
}
