//! A vector to which items can be appended while other threads read it.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Aligns a frequently written value to its own cache lines, so that writes do not slow down readers of other fields.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// A vector to which items can be appended while other threads read it. Items never move.
#[derive(Debug)]
pub(crate) struct AppendOnlyVec<T> {
    /// The parts that hold the items. Each part is twice as long as the previous one.
    parts: [OnceLock<Box<[OnceLock<T>]>>; 27],
    len: CachePadded<AtomicU32>,
}

impl<T> Default for AppendOnlyVec<T> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| OnceLock::new()), len: CachePadded(AtomicU32::new(0)) }
    }
}

impl<T> AppendOnlyVec<T> {
    /// The number of items in the first part.
    const FIRST: u32 = 64;

    /// Returns the part that contains item `number`, and the position of the item in this part.
    fn place(number: u32) -> (usize, usize) {
        let part = (number / Self::FIRST + 1).ilog2();
        (part as usize, (number - Self::FIRST * ((1 << part) - 1)) as usize)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len.0.load(Acquire)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (part, place) = Self::place(number);
        self.parts.get(part)?.get()?.get(place)?.get()
    }

    pub(crate) fn push(&self, item: T) -> u32 {
        let number = self.len.0.fetch_add(1, AcqRel);
        let (part, place) = Self::place(number);
        let length = (Self::FIRST as usize) << part;
        let part = self.parts[part].get_or_init(|| (0..length).map(|_| OnceLock::new()).collect());
        part[place].get_or_init(|| item);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_can_be_read_while_items_are_appended() {
        let list = AppendOnlyVec::default();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 0..5000_u32 {
                        list.push(number);
                    }
                });
            }
            scope.spawn(|| {
                while list.len() < 10_000 {
                    let last = list.len().saturating_sub(3);
                    assert!(list.get(last).is_none_or(|&number| number < 5000));
                }
            });
        });
        assert_eq!((list.len(), list.get(10_000)), (10_000, None));
        let mut all: Vec<u32> = (0..10_000).map(|number| *list.get(number).unwrap()).collect();
        all.sort_unstable();
        assert!(all.iter().zip(0..).all(|(&number, twice)| number == twice / 2));
    }
}
