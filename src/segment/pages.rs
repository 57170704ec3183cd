//! Checks each page against its checksum at its first use, and decides which pages to read ahead.
//!
//! Lookups read single pages, while scans read consecutive pages and benefit from read-ahead. The set of checked pages
//! distinguishes the two: if the [`WALK`] pages before a new page have been checked, the new page belongs to a scan. So
//! scans are recognized in any section, even several at once, and callers need not announce them.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::little_endian::U32;

use crate::format::checksum::{PAGE, checksum};
use crate::format::wire::Fault;
use crate::sys::mmap::{PIECE, View};

const _: () = assert!(PIECE as u64 == PAGE, "what is fetched together is checked together");

/// If this number of pages directly before a new page have been checked, the new page belongs to a scan. If half of a
/// file's pages were read at random, one new page in 256 is mistaken for a part of a scan.
const WALK: u64 = 8;
/// Number of pages ahead of a scan that the operating system is advised to read: 1 MiB, more than devices transfer at
/// once. The advice is repeated when less than half of these pages are still in flight.
const AHEAD: u64 = 256;
/// Maximum number of pages that are fetched by one read, in a scan or for a large request.
const RUN: u64 = 64;

/// The expected checksums of all pages, and the set of pages whose checksums have matched.
#[derive(Debug)]
pub(super) struct PageChecks {
    salt: u128,
    expected: Vec<u32>,
    /// A bit for each page whose checksum has matched. Two threads may check the same page at once; both then set its
    /// bit.
    sound: AtomicBits,
    /// A bit for each page that the operating system has been advised to read.
    announced: AtomicBits,
    /// The number of bits of `announced` that are set.
    announced_count: AtomicU64,
    /// The offset in the file at which the checksummed data ends.
    end: u64,
}

/// The reason why a page cannot be used.
#[derive(Debug)]
pub(super) enum PageError {
    /// The checksum of the page does not match, or the file is too short.
    Damaged(Fault),
    /// The page could not be read. A later attempt may succeed.
    Failed(io::Error),
}

/// Creates the error for a guarded map in which a page could not be read.
pub(super) fn lost() -> io::Error {
    io::Error::other(
        "a page of the map cannot be read: the file was cut short, or its disk failed; open the index again",
    )
}

impl From<Fault> for PageError {
    fn from(fault: Fault) -> Self {
        Self::Damaged(fault)
    }
}

/// The set of pages that have been checked, as plain words for fast lookups.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPages<'a>(&'a [AtomicU64]);

impl CheckedPages<'_> {
    /// Returns true if all pages of `range` (offsets in the file) have been checked.
    #[inline(always)]
    pub(super) fn have(self, range: &Range<usize>) -> bool {
        const SIZE: usize = PAGE as usize;
        // Acquire ordering, as explained at `AtomicBits::has`.
        let has = |page: usize| {
            let word = self.0.get(page / 64);
            word.is_some_and(|word| word.load(Ordering::Acquire) >> (page % 64) & 1 != 0)
        };
        let (first, last) = (range.start / SIZE, range.end.saturating_sub(1) / SIZE);
        has(first) && (first >= last || (first + 1..=last).all(has))
    }
}

/// A range of consecutive pages, for example the pages of all tables. All pages of the range before page `reached` have
/// been checked.
#[derive(Debug)]
pub(super) struct Stretch {
    pages: Range<u64>,
    reached: AtomicU64,
}

impl Stretch {
    /// Creates the stretch of pages that contain `range` (offsets in the file).
    pub(super) fn new(range: &Range<u64>) -> Self {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        Self { reached: AtomicU64::new(pages.start), pages }
    }
}

/// A bit for each page. Bits are never cleared.
#[derive(Debug)]
struct AtomicBits(Box<[AtomicU64]>);

impl AtomicBits {
    fn new(count: usize) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns true if the bit of a page is set. Uses acquire ordering: a thread that sees the bit of a checked page
    /// must also see the bytes that were fetched for this page.
    #[inline(always)]
    fn has(&self, page: u64) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Acquire) & 1 << (page % 64) != 0)
    }

    /// Sets the bit of a page. Returns false if it was already set or if there is no such page.
    fn set(&self, page: u64) -> bool {
        let bit = 1 << (page % 64);
        self.0.get((page / 64) as usize).is_some_and(|word| word.fetch_or(bit, Ordering::Release) & bit == 0)
    }
}

impl CheckedPages<'_> {
    pub(super) fn count(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

impl PageChecks {
    /// Creates the state for the pages of the first `end` bytes of a file. `expected` has the checksum of each page.
    pub(super) fn new(salt: u128, expected: &[U32], end: u64) -> Self {
        let expected: Vec<u32> = expected.iter().map(|sum| sum.get()).collect();
        let [sound, announced] = [(); 2].map(|()| AtomicBits::new(expected.len()));
        Self { salt, expected, sound, announced, announced_count: AtomicU64::new(0), end }
    }

    #[inline(always)]
    pub(super) fn known(&self) -> CheckedPages<'_> {
        CheckedPages(&self.sound.0)
    }

    /// Returns true if all pages of a stretch have been checked. Each call continues at the page where the previous one
    /// stopped.
    #[inline(always)]
    pub(super) fn all_sound(&self, stretch: &Stretch) -> bool {
        let reached = stretch.reached.load(Ordering::Acquire);
        reached >= stretch.pages.end || self.sound.has(reached) && self.walk(stretch, reached)
    }

    #[cold]
    fn walk(&self, stretch: &Stretch, mut reached: u64) -> bool {
        while reached < stretch.pages.end && self.sound.has(reached) {
            reached += 1;
        }
        // Another thread may have stored a larger number, which this overwrites: later calls then repeat some checks.
        stretch.reached.store(reached, Ordering::Release);
        reached >= stretch.pages.end
    }

    pub(super) fn count(&self) -> u64 {
        self.expected.len() as u64
    }

    /// Returns the bytes at `range` of `file`. First checks the pages that contain them. If reading a page fails, the
    /// next call tries it again.
    #[inline(always)]
    pub(super) fn read<'a>(&self, file: &'a View, range: &Range<u64>) -> Result<&'a [u8], PageError> {
        if range.start < range.end {
            let (first, last) = (range.start / PAGE, (range.end - 1) / PAGE);
            for page in first..=last {
                if !self.sound.has(page) {
                    self.admit(file, page, last)?;
                }
            }
        }
        file.get(range.start as usize..range.end as usize)
            .ok_or_else(|| Fault::new(range.start, "a place in the file", "one past its end").into())
    }

    /// Checks a page at its first use, as part of a read that ends at page `last`.
    #[cold]
    #[inline(never)]
    fn admit(&self, file: &View, page: u64, last: u64) -> Result<(), PageError> {
        let View::Fetched(fetched) = file else {
            // Extends read-ahead only when less than half of the last window is still in flight.
            if last > page && !(self.is_under_way(page + 1) && self.is_under_way(last.min(page + AHEAD / 2)))
            {
                self.announce(file, page..last.min(page + AHEAD) + 1);
            }
            return self.check(file, page);
        };
        let max = if self.is_walk(page) { RUN } else { RUN.min(last - page + 1) };
        let max = max.min(self.count().saturating_sub(page));
        let count = 1 + (1..max).take_while(|ahead| !self.sound.has(page + ahead)).count();
        if count > 1 {
            let start = page as usize * PIECE;
            let mut bytes = vec![0; (count * PIECE).min(file.len().saturating_sub(start))];
            if fetched.read_exact_at(&mut bytes, start).is_ok() {
                for (page, bytes) in (page..).zip(bytes.chunks(PIECE)) {
                    if self.compare(page, bytes).is_ok() {
                        fetched.keep(page as usize, bytes);
                        self.sound.set(page);
                    }
                }
            }
            if self.sound.has(page) {
                return Ok(());
            }
            // The failure may concern a page that was not requested, so the requested page is read and checked alone.
        }
        self.check(file, page)
    }

    /// Compares a page with its checksum, even if it has matched before. Reads an unmapped page again.
    #[inline(never)]
    pub(super) fn check(&self, file: &View, page: u64) -> Result<(), PageError> {
        let start = page.saturating_mul(PAGE);
        let ends = |found: &str| Fault::new(start, "a page", found);
        let length = (file.len() as u64).saturating_sub(start).min(PAGE) as usize;
        if page >= self.count() || length == 0 {
            return Err(ends("the end of the file").into());
        }
        match file {
            View::Whole { .. } => {
                self.read_ahead(file, page);
                let bytes = file.get(start as usize..start as usize + length);
                let compared = self.compare(page, bytes.ok_or_else(|| ends("the end of the file"))?);
                if file.is_lost() {
                    return Err(PageError::Failed(lost()));
                }
                compared?;
            }
            View::Fetched(fetched) => {
                let mut bytes = [0; PIECE];
                let bytes = &mut bytes[..length];
                fetched.read_exact_at(bytes, start as usize).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => ends("the end of a file that was cut short").into(),
                    // guard: a failed read is reported as such
                    // without it: _ => ends("what cannot be read").into(),
                    _ => PageError::Failed(error),
                })?;
                // guard: bytes are compared before they are kept
                self.compare(page, bytes)?;
                fetched.keep(page as usize, bytes);
            }
        }
        self.sound.set(page);
        Ok(())
    }

    /// Compares the checksummed bytes of a page with the expected checksum.
    fn compare(&self, page: u64, bytes: &[u8]) -> Result<(), Fault> {
        let start = page * PAGE;
        let expected = *self.expected.get(page as usize).ok_or_else(|| {
            Fault::new(start, format!("{} pages", self.expected.len()), format!("page {page}"))
        })?;
        let covered = self.end.saturating_sub(start).min(PAGE) as usize;
        let bytes = bytes.get(..covered).ok_or_else(|| Fault::new(start, "a page", "the end of the file"))?;
        let found = checksum(self.salt, start, bytes);
        // guard: a page is compared with its checksum
        if found != expected {
            return Err(Fault::new(start, format!("page checksum {expected:08x}"), format!("{found:08x}")));
        }
        Ok(())
    }

    /// Returns true if a page belongs to a scan.
    fn is_walk(&self, page: u64) -> bool {
        page >= WALK && (page - WALK..page).rev().all(|before| self.sound.has(before))
    }

    /// Returns true if the operating system was advised to read a page, or if the page has been checked.
    fn is_under_way(&self, page: u64) -> bool {
        self.announced.has(page) || self.sound.has(page)
    }

    /// Advises the operating system to read the pages ahead of `page` if the page belongs to a scan.
    fn read_ahead(&self, file: &View, page: u64) {
        let middle = (page + AHEAD / 2).min(self.count() - 1);
        if !self.is_under_way(middle) && self.is_walk(page) {
            self.announce(file, page..page + AHEAD);
        }
    }

    /// Returns the number of pages that the operating system has been advised to read.
    #[inline]
    pub(super) fn announced(&self) -> u64 {
        self.announced_count.load(Ordering::Relaxed)
    }

    /// Advises the operating system that the pages of `range` (offsets in the file) will be read soon, but no more than
    /// [`AHEAD`] pages. Each page is announced at most once, and never after it has been checked.
    pub(super) fn will_need(&self, file: &View, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let first = range.start / PAGE;
        let last = ((range.end - 1) / PAGE).min(first.saturating_add(AHEAD - 1));
        for page in first..=last.min(self.count().saturating_sub(1)) {
            if !self.is_under_way(page) {
                return self.announce(file, page..last + 1);
            }
        }
    }

    /// Announces to the operating system each run of pages that have been neither announced nor checked.
    #[cold]
    #[inline(never)]
    fn announce(&self, file: &View, pages: Range<u64>) {
        if matches!(file, View::Whole { hints: false, .. }) {
            return;
        }
        let end = pages.end.min(self.count());
        let mut page = pages.start;
        while page < end {
            let start = page;
            while page < end && !self.sound.has(page) && self.announced.set(page) {
                page += 1;
            }
            if page > start {
                self.announced_count.fetch_add(page - start, Ordering::Relaxed);
                file.will_need(&((start * PAGE) as usize..(page * PAGE) as usize));
            } else {
                page += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex};

    use super::*;
    use crate::sys::vfs::ReadFile;
    use crate::sys::{Access, Bytes};

    const SALT: u128 = 5;

    /// A file in memory that records its reads and announcements. Single pages can be made unreadable.
    #[derive(Clone, Debug, Default)]
    struct Disk {
        bytes: Vec<u8>,
        bad: Vec<u64>,
        /// For each read, the first page and the number of pages.
        read: Arc<Mutex<Vec<(u64, u64)>>>,
        announced: Arc<Mutex<Vec<(u64, u64)>>>,
    }

    fn pages_of(offset: u64, length: u64) -> (u64, u64) {
        (offset / PAGE, length.div_ceil(PAGE))
    }

    impl ReadFile for Disk {
        fn len(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            let (first, count) = pages_of(offset, buffer.len() as u64);
            self.read.lock().unwrap().push((first, count));
            if self.bad.iter().any(|bad| (first..first + count).contains(bad)) {
                return Err(io::Error::from_raw_os_error(5));
            }
            let bytes = self.bytes.get(offset as usize..).and_then(|bytes| bytes.get(..buffer.len()));
            buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
        fn map(&self, _: usize) -> io::Result<Bytes> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn will_need(&self, offset: u64, length: u64) {
            self.announced.lock().unwrap().push(pages_of(offset, length));
        }
    }

    impl Disk {
        fn new(length: usize) -> Self {
            let mut state = 1_u64;
            let bytes = std::iter::repeat_with(|| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 33) as u8
            });
            Self { bytes: bytes.take(length).collect(), ..Self::default() }
        }

        fn open(&self) -> (PageChecks, View) {
            let sums = self.bytes.chunks(PIECE).zip((0..).step_by(PIECE));
            let sums: Vec<U32> = sums.map(|(bytes, at)| U32::new(checksum(SALT, at, bytes))).collect();
            let length = self.bytes.len();
            let view = View::new(Box::new(self.clone()), length, Access::Read).unwrap();
            (PageChecks::new(SALT, &sums, length as u64), view)
        }

        fn taken(list: &Mutex<Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
            std::mem::take(&mut list.lock().unwrap())
        }
    }

    fn page(page: u64) -> Range<u64> {
        page * PAGE..page * PAGE + 8
    }

    #[test]
    fn random_reads_fetch_one_page_and_scans_fetch_runs() {
        let disk = Disk::new(1000 * PIECE);
        let (pages, view) = disk.open();
        for at in [500, 900, 7, 500, 501, 901] {
            pages.read(&view, &page(at)).unwrap();
        }
        assert_eq!(Disk::taken(&disk.read), [(500, 1), (900, 1), (7, 1), (501, 1), (901, 1)]);
        for at in 100..400 {
            pages.read(&view, &page(at)).unwrap();
        }
        let alone = (100..100 + WALK).map(|page| (page, 1));
        let runs = (100 + WALK..400).step_by(RUN as usize).map(|page| (page, RUN));
        assert_eq!(Disk::taken(&disk.read), alone.chain(runs).collect::<Vec<_>>());
        // A read of several pages ends before a page that has been checked already, and at the end of the file.
        for at in 860..1000 {
            pages.read(&view, &page(at)).unwrap();
        }
        assert_eq!(Disk::taken(&disk.read)[WALK as usize..], [(868, 32), (902, 64), (966, 34)]);
    }

    #[test]
    fn large_read_fetches_pages_in_runs() {
        let disk = Disk::new(300 * PIECE + 77);
        let (pages, view) = disk.open();
        let extent = 10 * PAGE + 5..299 * PAGE + 99;
        let bytes = pages.read(&view, &extent).unwrap();
        assert!(*bytes == disk.bytes[extent.start as usize..extent.end as usize]);
        let runs = [(10, 64), (74, 64), (138, 64), (202, 64), (266, 35)];
        assert_eq!(Disk::taken(&disk.read), runs, "the last brings the end of the file along");
        let end = 300 * PAGE..300 * PAGE + 77;
        assert!(*pages.read(&view, &end).unwrap() == disk.bytes[300 * PIECE..]);
        assert_eq!(Disk::taken(&disk.read), []);
    }

    #[test]
    fn damaged_prefetched_page_does_not_fail_other_reads() {
        let mut disk = Disk::new(200 * PIECE);
        disk.bad = vec![120];
        let (pages, view) = disk.open();
        for at in 90..120 {
            pages.read(&view, &page(at)).unwrap();
        }
        assert!(matches!(pages.read(&view, &page(120)), Err(PageError::Failed(_))));
        assert!(matches!(pages.read(&view, &page(120)), Err(PageError::Failed(_))), "not cached as sound");
        for at in 121..140 {
            pages.read(&view, &page(at)).unwrap();
        }
        // Nor does a page with wrong bytes make other reads fail.
        let disk = Disk::new(200 * PIECE);
        let (pages, _) = disk.open();
        let mut damaged = disk.clone();
        damaged.bytes[120 * PIECE + 1] ^= 1;
        let (_, view) = damaged.open();
        for at in (90..120).chain(121..140) {
            pages.read(&view, &page(at)).unwrap();
        }
        let Err(PageError::Damaged(fault)) = pages.read(&view, &page(120)) else {
            panic!("page 120 is damaged")
        };
        assert_eq!(fault.offset, 120 * PAGE);
    }

    #[test]
    fn truncation_is_reported_and_pages_already_read_remain_valid() {
        let whole = Disk::new(20 * PIECE);
        let (pages, _) = whole.open();
        let short = Disk { bytes: whole.bytes[..=10 * PIECE].to_vec(), ..Disk::default() };
        let view = View::new(Box::new(short), 20 * PIECE, Access::Read).unwrap();
        pages.read(&view, &page(9)).unwrap();
        for at in [10, 11, 19] {
            let Err(PageError::Damaged(fault)) = pages.read(&view, &page(at)) else {
                panic!("page {at} is gone")
            };
            assert!(fault.found.contains("cut short"), "{fault:?}");
        }
        assert!(matches!(pages.read(&view, &(9 * PAGE..11 * PAGE)), Err(PageError::Damaged(_))));
        assert!(*pages.read(&view, &page(9)).unwrap() == whole.bytes[9 * PIECE..9 * PIECE + 8]);
        for past in [20, 64, u64::MAX / PAGE] {
            assert!(pages.check(&view, past).is_err(), "{past}");
        }
    }

    #[test]
    fn pages_are_announced_once_and_adjacent_pages_in_one_call() {
        let disk = Disk::new(200 * PIECE + 1);
        let (pages, view) = disk.open();
        let will_need = |range: Range<u64>| {
            pages.will_need(&view, &range);
            Disk::taken(&disk.announced)
        };
        assert_eq!(will_need(page(70)), [(70, 1)]);
        assert_eq!(will_need(page(70)), []);
        assert_eq!(will_need(60 * PAGE + 9..61 * PAGE + 9), [(60, 2)]);
        assert_eq!(will_need(59 * PAGE..73 * PAGE), [(59, 1), (62, 8), (71, 2)]);
        pages.read(&view, &page(100)).unwrap();
        assert_eq!(will_need(page(100)), [], "it was read");
        assert_eq!(will_need(99 * PAGE..102 * PAGE), [(99, 1), (101, 1)]);
        assert_eq!(will_need(200 * PAGE..900 * PAGE), [(200, 1)], "no further than the file");
        assert_eq!(will_need(900 * PAGE..u64::MAX), []);
        assert_eq!(will_need(5..5), []);
    }

    #[test]
    fn stretch_is_sound_only_after_all_its_pages_are_checked() {
        let disk = Disk::new(10 * PIECE);
        let (pages, view) = disk.open();
        // The stretch has pages 2 to 6. Only parts of the first and the last page are in the range.
        let stretch = Stretch::new(&(2 * PAGE + 100..6 * PAGE + 1));
        for page in [6, 2, 4, 1, 7, 3, 5] {
            assert!(!pages.all_sound(&stretch), "before page {page}");
            pages.read(&view, &(page * PAGE..page * PAGE + 1)).unwrap();
        }
        assert!(pages.all_sound(&stretch));
        assert!(pages.all_sound(&Stretch::new(&(3 * PAGE..3 * PAGE))), "of no pages");
        assert!(!pages.all_sound(&Stretch::new(&(0..PAGE))), "of another page");
    }

    #[test]
    fn concurrent_reads_of_the_same_pages_return_the_file_contents() {
        let disk = Disk::new(257 * PIECE + 1234);
        for round in 0..20_u64 {
            let (pages, view) = disk.open();
            let start = Barrier::new(16);
            std::thread::scope(|scope| {
                for thread in 0..16_u64 {
                    let (pages, view, disk, start) = (&pages, &view, &disk, &start);
                    scope.spawn(move || {
                        let mut state = (round << 8) | (thread / 2); // two threads read the same ranges
                        start.wait();
                        for _ in 0..600 {
                            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405);
                            let at = (state >> 20) % disk.bytes.len() as u64;
                            let end = (at + (state >> 50) % 9000).min(disk.bytes.len() as u64);
                            pages.will_need(view, &(at..end));
                            let found = pages.read(view, &(at..end)).unwrap();
                            assert!(*found == disk.bytes[at as usize..end as usize], "{at}..{end}");
                        }
                    });
                }
            });
        }
    }
}
