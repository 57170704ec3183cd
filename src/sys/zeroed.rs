//! Many numbers at once, in memory of huge pages where these come fast.
//!
//! A fault for each page of 4 KiB is a fifth of the time of a join, and a huge page of 2 MiB costs one fault, an eighth of
//! what its 512 small ones do. But a guest may have told its host which of its huge pages are free ("free page
//! reporting"), and then the first touch of one brings all of it back from there, which takes six times as long as small
//! pages, which the guest has kept. So huge pages are touched one after the other beforehand, and where one takes longer
//! than small ones would, small ones follow; these the system is asked for all at once, which takes it two thirds of what
//! faults do.

#[cfg(any(target_os = "linux", test))]
use std::ops::Range;
use std::ops::{Deref, DerefMut};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::mmap;
use crate::error::{Error, Result};

/// Bytes from which huge pages are worth asking for, though the first may be late.
const MANY: usize = 16 << 20;

/// Numbers that are 0 at first.
#[derive(Debug)]
pub struct Zeroed<T> {
    count: usize,
    memory: Memory<T>,
    /// Those who share it, and give the memory back.
    threads: usize,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    Map(memmap2::MmapMut),
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Self { count: 0, memory: Memory::Heap(Vec::new()), threads: 1 }
    }
}

impl<T: FromBytes + Immutable + IntoBytes + KnownLayout> Zeroed<T> {
    /// So many of them. All of their memory may be taken now, so it should be what will be used.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the system does not give so much.
    pub fn new(count: usize) -> Result<Self> {
        Self::shared(count, 1)
    }

    /// As [`new`](Self::new), for what so many threads share: they take the memory, and give it back, together, which
    /// takes the system as long as a tenth of a join.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shared(count: usize, threads: usize) -> Result<Self> {
        let bytes = count.saturating_mul(size_of::<T>());
        let memory = if bytes < MANY {
            T::new_vec_zeroed(count).ok().map(Memory::Heap)
        } else {
            memmap2::MmapMut::map_anon(bytes).ok().map(|mut map| {
                touch_huge_pages(&mut map, threads);
                Memory::Map(map)
            })
        };
        let none =
            || Error::Invalid(format!("no memory for {bytes} bytes at once: allow less with `memory`"));
        Ok(Self { count, memory: memory.ok_or_else(none)?, threads })
    }

    /// Forgets all after the first `count`; their memory stays.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        if let Memory::Map(map) = &mut self.memory
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
            Memory::Heap(numbers) => &numbers[..self.count],
            Memory::Map(map) => {
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
            Memory::Heap(numbers) => &mut numbers[..self.count],
            Memory::Map(map) => {
                let (numbers, _) = <[T]>::mut_from_prefix_with_elems(map, self.count)
                    .expect("a map is as long as asked for, and begins with a page");
                numbers
            }
        }
    }
}

/// Bytes that come in small pages after a huge one was late, before the next is tried, and twice as many each time that it
/// is late again: what is lost where all are late is a fifth of what small pages take, and less of more of them.
#[cfg(any(target_os = "linux", test))]
const PATIENCE: std::ops::RangeInclusive<usize> = 64 << 20..=1 << 30;

/// A huge page.
#[cfg(any(target_os = "linux", test))]
const PAGE: usize = 2 << 20;

/// Has the map made of huge pages, as far as they are there faster than the small ones that they stand for, on so many
/// threads.
#[cfg(target_os = "linux")]
fn touch_huge_pages(map: &mut memmap2::MmapMut, threads: usize) {
    use memmap2::Advice::{HugePage, NoHugePage, PopulateWrite};

    // All that the system refuses is left undone: it is memory without.
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

/// Touches one huge page after the other of these bytes, which begin at a place of the map; returns where small ones are
/// to be in it, which are not touched.
#[cfg(target_os = "linux")]
fn touch(from: usize, bytes: &mut [u8]) -> Vec<Range<usize>> {
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;

    /// What 512 small ones take, at 1.4 us each.
    const SMALL_ONES: Duration = Duration::from_micros(700);
    static LATELY: Mutex<Patience> = Mutex::new(Patience::NEW);

    // Not held meanwhile: who comes now begins again.
    let mut patience = std::mem::replace(&mut *LATELY.lock(), Patience::NEW);
    let small = patience.small_ones(bytes.len(), |at| {
        let begun = Instant::now();
        bytes[at] = 0;
        begun.elapsed() > SMALL_ONES
    });
    *LATELY.lock() = patience;
    small.into_iter().map(|small| from + small.start..from + small.end).collect()
}

/// How long small pages are taken.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// So many bytes of what comes next.
    left: usize,
    /// So many when a huge page is late again.
    next: usize,
}

#[cfg(any(target_os = "linux", test))]
impl Patience {
    const NEW: Self = Self { left: 0, next: *PATIENCE.start() };

    /// The ranges of this number of bytes that are to be of small pages. `is_late` touches the huge page at a place, and tells
    /// whether it was late.
    fn small_ones(&mut self, len: usize, mut is_late: impl FnMut(usize) -> bool) -> Vec<Range<usize>> {
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
                self.next = (2 * self.next).min(*PATIENCE.end());
            } else {
                self.next = *PATIENCE.start();
            }
            at += PAGE;
        }
        all
    }
}

/// Elsewhere the system decides.
#[cfg(not(target_os = "linux"))]
fn touch_huge_pages(_: &mut memmap2::MmapMut, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_and_few_are_zero_and_keep_what_is_written() {
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
    fn small_pages_follow_a_late_one_and_more_of_them_the_next() {
        const MIB: usize = 1 << 20;
        let late_at = [0, 66 * MIB];
        let mut patience = Patience::NEW;
        let mut touched = Vec::new();
        let small = patience.small_ones(200 * MIB + 5, |at| {
            touched.push(at / MIB);
            late_at.contains(&at)
        });
        // 64 MiB after the first; the next is late too, and 128 follow.
        assert_eq!(small, [2 * MIB..66 * MIB, 68 * MIB..196 * MIB]);
        assert_eq!(touched, [0, 66, 196, 198, 200]);
        // One that came fast began it again; the last of a map may be late for the next one.
        assert_eq!(patience.small_ones(3 * MIB, |at| at == 2 * MIB), []);
        let first = |small: Vec<Range<usize>>| (small.len(), small[0].start, small[0].end);
        assert_eq!(first(patience.small_ones(50 * MIB, |_| unreachable!())), (1, 0, 50 * MIB));
        assert_eq!(first(patience.small_ones(17 * MIB, |at| at != 14 * MIB)), (1, 0, 14 * MIB));
        assert_eq!(patience.left, 64 * MIB);
        assert_eq!(patience.small_ones(0, |_| unreachable!()), []);
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        assert!(Zeroed::<u64>::new(usize::MAX / 2).is_err());
        assert!(Zeroed::<u64>::new(usize::MAX / 16).is_err());
    }
}
