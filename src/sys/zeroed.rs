//! Large zeroed arrays, which use huge pages if the system provides them fast enough.
//!
//! Page faults of 4 KiB pages take a fifth of the time of a join. A huge page of 2 MiB causes a single fault, which
//! takes an eighth of the time of the 512 small faults it replaces. But a virtual machine may have returned its free
//! huge pages to the host ("free page reporting"), while it keeps free small pages. Fetching a huge page from the host
//! takes six times as long as the small faults. So huge pages are touched one by one in advance. If one is slower than
//! small pages, small pages are used for the memory that follows. One system call populates these in two thirds of the
//! time of their faults.

#[cfg(any(target_os = "linux", test))]
use std::ops::Range;
use std::ops::{Deref, DerefMut};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::mmap;
use crate::error::{Error, Result};

/// Minimum size in bytes of an array for which huge pages are tried.
const MANY: usize = 16 << 20;

/// An array of numbers. All of them are 0 initially.
#[derive(Debug)]
pub struct Zeroed<T> {
    count: usize,
    memory: ArrayMemory<T>,
    /// The number of threads that populate the array and release its memory.
    threads: usize,
}

#[derive(Debug)]
enum ArrayMemory<T> {
    Heap(Vec<T>),
    Map(memmap2::MmapMut),
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Self { count: 0, memory: ArrayMemory::Heap(Vec::new()), threads: 1 }
    }
}

impl<T: FromBytes + Immutable + IntoBytes + KnownLayout> Zeroed<T> {
    /// Creates an array of `count` zeros. The system may allocate all of the memory immediately, so `count` should not
    /// exceed the number of values that will be used.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the system does not have enough memory.
    pub fn new(count: usize) -> Result<Self> {
        Self::shared(count, 1)
    }

    /// Creates an array as [`new`](Self::new) does. `threads` threads populate and release its memory in parallel; with
    /// a single thread, this takes a tenth of the time of a join.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub fn shared(count: usize, threads: usize) -> Result<Self> {
        let bytes = count.saturating_mul(size_of::<T>());
        let memory = if bytes < MANY {
            T::new_vec_zeroed(count).ok().map(ArrayMemory::Heap)
        } else {
            memmap2::MmapMut::map_anon(bytes).ok().map(|mut map| {
                touch_huge_pages(&mut map, threads);
                ArrayMemory::Map(map)
            })
        };
        let none =
            || Error::Invalid(format!("no memory for {bytes} bytes at once: allow less with `memory`"));
        Ok(Self { count, memory: memory.ok_or_else(none)?, threads })
    }

    /// Truncates the array to its first `count` numbers. Does not release memory.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        if let ArrayMemory::Map(map) = &mut self.memory
            && self.threads > 1
        {
            mmap::forget_on(map, self.threads);
        }
    }
}

impl<T: FromBytes + Immutable + IntoBytes + KnownLayout> Deref for Zeroed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            ArrayMemory::Heap(numbers) => &numbers[..self.count],
            ArrayMemory::Map(map) => {
                let (numbers, _) = <[T]>::ref_from_prefix_with_elems(map, self.count)
                    .expect("a map is as long as asked for, and begins with a page");
                numbers
            }
        }
    }
}

impl<T: FromBytes + Immutable + IntoBytes + KnownLayout> DerefMut for Zeroed<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            ArrayMemory::Heap(numbers) => &mut numbers[..self.count],
            ArrayMemory::Map(map) => {
                let (numbers, _) = <[T]>::mut_from_prefix_with_elems(map, self.count)
                    .expect("a map is as long as asked for, and begins with a page");
                numbers
            }
        }
    }
}

/// Limits of the back-off in bytes. After a slow huge page, small pages are used for this many bytes before another
/// huge page is tried. If that page is slow too, the back-off doubles. If all huge pages are slow, trying them takes at
/// most a fifth of the time of small pages, and less for larger arrays.
#[cfg(any(target_os = "linux", test))]
const BACKOFF: std::ops::RangeInclusive<usize> = 64 << 20..=1 << 30;

/// Size of a huge page in bytes.
#[cfg(any(target_os = "linux", test))]
const PAGE: usize = 2 << 20;

/// Populates the map with `threads` threads, using huge pages as long as they are faster than the small pages that they
/// replace.
#[cfg(target_os = "linux")]
fn touch_huge_pages(map: &mut memmap2::MmapMut, threads: usize) {
    use memmap2::Advice::{HugePage, NoHugePage, PopulateWrite};

    // Ignore errors, because the advice only affects the speed.
    let _ = map.advise(HugePage);
    let share = map.len().div_ceil(threads.max(1)).next_multiple_of(PAGE);
    let touched: Vec<Vec<Range<usize>>> = if threads > 1 {
        std::thread::scope(|scope| {
            let shares = (0..).step_by(share).zip(map.chunks_mut(share));
            let touching: Vec<_> =
                shares.map(|(from, share)| scope.spawn(move || touch(from, share))).collect();
            touching.into_iter().map(|small| small.join().unwrap_or_default()).collect()
        })
    } else {
        vec![touch(0, map)]
    };
    let map = &*map;
    let populate = |small: Vec<Range<usize>>| {
        for small in small {
            let _ = map.advise_range(NoHugePage, small.start, small.len());
            let _ = map.advise_range(PopulateWrite, small.start, small.len());
        }
    };
    if threads > 1 {
        std::thread::scope(|scope| {
            for small in touched {
                scope.spawn(|| populate(small));
            }
        });
    } else {
        touched.into_iter().for_each(populate);
    }
}

/// Touches the huge pages of `bytes` one by one. Skips and returns the ranges for which small pages should be used,
/// relative to the start of the map; `bytes` starts at offset `from` of the map.
#[cfg(target_os = "linux")]
fn touch(from: usize, bytes: &mut [u8]) -> Vec<Range<usize>> {
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;

    /// The time for touching 512 small pages, 1.4 us each.
    const SMALL_ONES: Duration = Duration::from_micros(700);
    static LATELY: Mutex<HugePageBackoff> = Mutex::new(HugePageBackoff::NEW);

    // Touch pages without holding the lock. A concurrent call starts with the initial state.
    let mut backoff = std::mem::replace(&mut *LATELY.lock(), HugePageBackoff::NEW);
    let small = backoff.small_page_ranges(bytes.len(), |at| {
        let begun = Instant::now();
        bytes[at] = 0;
        begun.elapsed() > SMALL_ONES
    });
    *LATELY.lock() = backoff;
    small.into_iter().map(|small| from + small.start..from + small.end).collect()
}

/// The state of the back-off after slow huge pages.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Copy, Debug)]
struct HugePageBackoff {
    /// The number of bytes from here on for which small pages are used.
    left: usize,
    /// The number of bytes for which small pages will be used if the next huge page is slow.
    next: usize,
}

#[cfg(any(target_os = "linux", test))]
impl HugePageBackoff {
    const NEW: Self = Self { left: 0, next: *BACKOFF.start() };

    /// Splits `len` bytes into huge pages and ranges of small pages, and returns the ranges of small pages. `is_late`
    /// touches the huge page at an offset, and returns true if it was slow.
    fn small_page_ranges(&mut self, len: usize, mut is_late: impl FnMut(usize) -> bool) -> Vec<Range<usize>> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < len {
            if self.left > 0 {
                let small = at..len.min(at + self.left);
                self.left -= small.len();
                at = small.end.next_multiple_of(PAGE);
                all.push(small);
                continue;
            }
            if is_late(at) {
                self.left = self.next;
                self.next = (2 * self.next).min(*BACKOFF.end());
            } else {
                self.next = *BACKOFF.start();
            }
            at += PAGE;
        }
        all
    }
}

/// Does nothing. Other systems choose the page size themselves.
#[cfg(not(target_os = "linux"))]
fn touch_huge_pages(_: &mut memmap2::MmapMut, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_arrays_start_at_zero_and_keep_written_values() {
        for count in [0, 1, 1000, MANY / 4 - 1, MANY / 4, MANY + 1025] {
            for threads in [1, 3] {
                let mut zeroed = Zeroed::<u32>::shared(count, threads).unwrap();
                assert_eq!(zeroed.len(), count);
                assert!(zeroed.iter().all(|&number| number == 0));
                zeroed.iter_mut().zip(7..).for_each(|(number, value)| *number = value);
                assert!(zeroed.iter().zip(7..).all(|(&number, value)| number == value), "{count}");
                zeroed.truncate(1000);
                assert_eq!(zeroed.len(), count.min(1000));
                assert!(zeroed.iter().zip(7..).all(|(&number, value)| number == value), "{count}");
            }
        }
    }

    #[test]
    fn each_slow_huge_page_doubles_the_back_off() {
        const MIB: usize = 1 << 20;
        let late_at = [0, 66 * MIB];
        let mut backoff = HugePageBackoff::NEW;
        let mut touched = Vec::new();
        let small = backoff.small_page_ranges(200 * MIB + 5, |at| {
            touched.push(at / MIB);
            late_at.contains(&at)
        });
        // The first huge page is slow, so small pages are used for the next 64 MiB. The next huge page is also slow, so
        // small pages are used for the next 128 MiB.
        assert_eq!(small, [2 * MIB..66 * MIB, 68 * MIB..196 * MIB]);
        assert_eq!(touched, [0, 66, 196, 198, 200]);
        // A fast huge page resets the back-off. The back-off after a slow huge page at the end of a map carries over to the
        // next map.
        assert!(backoff.small_page_ranges(3 * MIB, |at| at == 2 * MIB).is_empty());
        let first = |small: Vec<Range<usize>>| (small.len(), small[0].start, small[0].end);
        assert_eq!(first(backoff.small_page_ranges(50 * MIB, |_| unreachable!())), (1, 0, 50 * MIB));
        assert_eq!(first(backoff.small_page_ranges(17 * MIB, |at| at != 14 * MIB)), (1, 0, 14 * MIB));
        assert_eq!(backoff.left, 64 * MIB);
        assert!(backoff.small_page_ranges(0, |_| unreachable!()).is_empty());
    }

    #[test]
    fn allocation_beyond_the_address_space_is_an_error() {
        assert!(Zeroed::<u64>::new(usize::MAX / 2).is_err());
        assert!(Zeroed::<u64>::new(usize::MAX / 16).is_err());
    }
}
