//! Many numbers at once, in memory of huge pages where these come fast.
//!
//! A fault for each page of 4 KiB is a fifth of the time of a join, and a huge page of 2 MiB costs one fault, an eighth of
//! what its 512 small ones do. But a guest may have told its host which of its huge pages are free ("free page
//! reporting"), and then the first touch of one brings all of it back from there, which takes six times as long as small
//! pages, which the guest has kept. So huge pages are touched one after the other beforehand, and where one takes longer
//! than small ones would, small ones follow.

use std::ops::{Deref, DerefMut};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};

/// Bytes from which huge pages are worth asking for, though the first may be late.
const MANY: usize = 16 << 20;

/// Numbers that are 0 at first.
#[derive(Debug)]
pub(crate) struct Zeroed<T> {
    count: usize,
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    Map(memmap2::MmapMut),
}

impl<T> Default for Zeroed<T> {
    fn default() -> Self {
        Self { count: 0, memory: Memory::Heap(Vec::new()) }
    }
}

impl<T: FromBytes + Immutable + IntoBytes + KnownLayout> Zeroed<T> {
    /// So many of them. All of their memory may be taken now, so it should be what will be used.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the system does not give so much.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let bytes = count.saturating_mul(size_of::<T>());
        let memory = if bytes < MANY {
            T::new_vec_zeroed(count).ok().map(Memory::Heap)
        } else {
            memmap2::MmapMut::map_anon(bytes).ok().map(|mut map| {
                touch_huge_pages(&mut map);
                Memory::Map(map)
            })
        };
        let none =
            || Error::Invalid(format!("no memory for {bytes} bytes at once: allow less with `memory`"));
        Ok(Self { count, memory: memory.ok_or_else(none)? })
    }

    /// Forgets all behind the first `count`; their memory stays.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
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

/// Bytes that come in small pages after a huge one was late, before the next is tried: what is lost where all are late
/// is a fifth of what small pages take.
#[cfg(target_os = "linux")]
const PATIENCE: usize = 64 << 20;

/// Has the map made of huge pages, as far as they are there faster than the small ones that they stand for.
#[cfg(target_os = "linux")]
fn touch_huge_pages(map: &mut memmap2::MmapMut) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use memmap2::Advice::{HugePage, NoHugePage};

    /// Bytes of the next map that are still to be of small pages.
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    const PAGE: usize = 2 << 20;
    /// What 512 small ones take, at 1.4 us each.
    const SMALL_ONES: Duration = Duration::from_micros(700);

    let len = map.len();
    // All that the system refuses is left undone: it is memory without.
    let _ = map.advise(HugePage);
    let mut small = LEFT.swap(0, Ordering::Relaxed);
    let _ = map.advise_range(NoHugePage, 0, small.min(len));
    for at in (0..len).step_by(PAGE) {
        if at < small {
            continue;
        }
        let begun = Instant::now();
        map[at] = 0;
        if begun.elapsed() > SMALL_ONES && at + PAGE < len {
            small = at + PAGE + PATIENCE;
            let _ = map.advise_range(NoHugePage, at + PAGE, small.min(len) - at - PAGE);
        }
    }
    LEFT.fetch_max(small.saturating_sub(len), Ordering::Relaxed);
}

/// Elsewhere the system decides.
#[cfg(not(target_os = "linux"))]
fn touch_huge_pages(_: &mut memmap2::MmapMut) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_and_few_are_zero_and_keep_what_is_written() {
        for count in [0, 1, 1000, MANY / 4 - 1, MANY / 4, MANY + 1025] {
            let mut zeroed = Zeroed::<u32>::new(count).unwrap();
            assert_eq!(zeroed.len(), count);
            assert!(zeroed.iter().all(|&number| number == 0));
            zeroed.iter_mut().zip(7..).for_each(|(number, value)| *number = value);
            assert!(zeroed.iter().zip(7..).all(|(&number, value)| number == value), "{count}");
            zeroed.truncate(1000);
            assert_eq!(zeroed.len(), count.min(1000));
            assert!(zeroed.iter().zip(7..).all(|(&number, value)| number == value), "{count}");
        }
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        assert!(Zeroed::<u64>::new(usize::MAX / 2).is_err());
        assert!(Zeroed::<u64>::new(usize::MAX / 16).is_err());
    }
}
