//! An array of numbers, indexed by the rank of a key, in memory or in a scratch file.

use std::path::Path;

use anyhow::Context;
use twindex::sys::Spill;
use twindex_join::{Sorter, Stars};

/// Packs an index and the number at this index into one sortable number.
pub(super) fn place(at: u32, number: u32) -> u64 {
    u64::from(at) << 32 | u64::from(number)
}

/// Where numbers are stored: in memory up to `memory` bytes, otherwise in a scratch file in `folder`.
#[derive(Clone, Copy)]
pub(super) struct NumberSpill<'a> {
    pub(super) folder: &'a Path,
    pub(super) memory: usize,
}

/// An array with a number for each rank.
pub(super) enum RankNumbers {
    Held(Vec<u32>),
    Spilled(Spill),
}

impl RankNumbers {
    /// Creates an array of the numbers that `fill` pushes, packed by [`place`]. A rank without a number maps to itself.
    pub(super) fn of(
        count: u32,
        destination: NumberSpill<'_>,
        fill: impl FnOnce(&mut Sorter<u64>) -> twindex::Result<()>,
    ) -> anyhow::Result<Self> {
        let mut sorter = Sorter::new(destination.folder, destination.memory);
        fill(&mut sorter)?;
        let sorted = sorter.finish()?;
        if count as usize <= destination.memory / size_of::<u32>() {
            let mut numbers: Vec<u32> = (0..count).collect();
            sorted.for_each(|one| {
                numbers[(one >> 32) as usize] = one as u32;
                Ok::<_, anyhow::Error>(())
            })?;
            return Ok(Self::Held(numbers));
        }
        let mut spill = Spill::create(destination.folder).context(CANNOT_SPILL)?;
        let mut next = 0;
        let mut fill_up = |spill: &mut Spill, to: u32, number: Option<u32>| -> anyhow::Result<()> {
            for number in (next..to).chain(number) {
                spill.append(&number.to_le_bytes()).context(CANNOT_SPILL)?;
            }
            next = to + u32::from(number.is_some());
            Ok(())
        };
        sorted.for_each(|one| fill_up(&mut spill, (one >> 32) as u32, Some(one as u32)))?;
        fill_up(&mut spill, count, None)?;
        Ok(Self::Spilled(spill))
    }

    /// Returns the root of each rank's component.
    pub(super) fn roots(stars: &Stars, destination: NumberSpill<'_>) -> anyhow::Result<Self> {
        Self::of(stars.keys(), destination, |sorter| {
            stars.for_each_rank(|root, rank| sorter.push(place(rank, root)))
        })
    }

    pub(super) fn get(&self, rank: u32) -> anyhow::Result<u32> {
        match self {
            Self::Held(numbers) => Ok(numbers[rank as usize]),
            Self::Spilled(spill) => {
                let mut bytes = [0; 4];
                spill.read_exact_at(&mut bytes, u64::from(rank) * 4).context(CANNOT_SPILL)?;
                Ok(u32::from_le_bytes(bytes))
            }
        }
    }
}

const CANNOT_SPILL: &str = "cannot use a scratch file in the folder for temporary files";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_numbers_are_equal_in_memory_and_in_a_scratch_file() {
        let folder = tempfile::tempdir().unwrap();
        for memory in [0, 1 << 20] {
            let destination = NumberSpill { folder: folder.path(), memory };
            let numbers = RankNumbers::of(10, destination, |sorter| {
                [(7, 1), (2, 0), (9, 9), (3, 2)].iter().try_for_each(|&(at, one)| sorter.push(place(at, one)))
            })
            .unwrap();
            assert_eq!(matches!(numbers, RankNumbers::Spilled(_)), memory == 0);
            let all: Vec<u32> = (0..10).map(|rank| numbers.get(rank).unwrap()).collect();
            assert_eq!(all, [0, 1, 0, 2, 4, 5, 6, 1, 8, 9]);
        }
    }
}
