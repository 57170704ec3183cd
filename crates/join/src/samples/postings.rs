//! Stores the documents of each element, and counts the shared elements of pairs of documents, in memory or in parts.

use std::path::{Path, PathBuf};
use std::{io, mem};

use crate::work::runs::{NumberCount, Sorted, Sorter};
use twindex::error::{Error, Result};
use twindex::sys::Spill;

/// Number of list entries read from the scratch file at once.
const BUFFER: usize = 1 << 14;
/// Minimum memory, in bytes, for a part of the lists.
const LEAST: usize = 1 << 19;

/// The cap on the number of documents of an element, and statistics of the elements above it.
pub(super) struct Capping {
    /// Maximum number of documents of an element for which all pairs are formed.
    pub(super) cap: u64,
    /// Number of capped elements, which have more documents than `cap`.
    pub(super) capped: u64,
    /// For each document, the number of its capped elements.
    pub(super) uncounted: Vec<u32>,
}

/// Pairs of documents, with the number of elements that they share.
#[derive(Debug)]
pub(super) enum SharedPairs {
    /// The pairs are counted in memory at each call of `for_each`.
    Met(Postings),
    /// The pairs were counted in advance, because the lists exceed the memory.
    Counted(Sorted<NumberCount>),
}

impl SharedPairs {
    /// Passes pairs to `each` in ascending order, the smaller document first, with the number of shared elements. Skips
    /// pairs with fewer shared elements than `min` returns for the smaller document. Returns the number of candidate pairs.
    pub(super) fn for_each<E: From<Error>>(
        &self,
        mut min: impl FnMut(u32) -> u32,
        mut each: impl FnMut(u32, u32, u32) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        match self {
            Self::Met(postings) => postings.for_each(min, each),
            Self::Counted(pairs) => {
                let (mut collisions, mut now, mut least_now) = (0, None, 0);
                pairs.for_each(|NumberCount { number, count }| {
                    let (a, b) = ((number >> 32) as u32, number as u32);
                    collisions += 1;
                    if now.replace(a) != Some(a) {
                        least_now = min(a);
                    }
                    if count >= least_now { each(a, b, count) } else { Ok(()) }
                })?;
                Ok(collisions)
            }
        }
    }
}

/// Marks the end of each list. Larger than all document numbers.
const END: u32 = u32::MAX;
/// A bit of a position. If set, the document is paired only with the next one in the list, not with all later ones.
pub(super) const ALONE: u32 = 1 << 31;

/// Lists of documents in memory, and the positions of each document in these lists.
#[derive(Debug)]
pub(super) struct Postings {
    /// A list for each element: its documents, ascending, and then [`END`].
    lists: Vec<u32>,
    /// For each document, the start of its entries in `places`, followed by the total number of entries.
    starts: Vec<u32>,
    /// For each document and each of its lists, the position after the document in `lists`, with the bit [`ALONE`] if
    /// the list is capped.
    places: Vec<u32>,
}

impl Postings {
    /// Indexes `lists`, which has at most [`ALONE`] entries.
    fn new(lists: Vec<u32>, capping: &mut Capping) -> Self {
        let documents = capping.uncounted.len();
        // A counting sort. The start of document d is at index d + 2 while counting, and at d + 1 while `places` is
        // filled.
        let mut starts = vec![0; documents + 2];
        for list in lists.split(|&document| document == END) {
            let Some((_, before_others)) = list.split_last() else { continue };
            for &document in before_others {
                starts[document as usize + 2] += 1;
            }
            if list.len() as u64 > capping.cap {
                capping.capped += 1;
                for &document in list {
                    capping.uncounted[document as usize] += 1;
                }
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut places = vec![0; sum as usize];
        let mut at = 0;
        for list in lists.split(|&document| document == END) {
            let is_capped = list.len() as u64 > capping.cap;
            for (place, &document) in (at + 1..).zip(list.split_last().map_or(&[][..], |(_, others)| others))
            {
                let next = &mut starts[document as usize + 1];
                // The first document of a capped element is paired with all its other documents.
                places[*next as usize] = if is_capped && place > at + 1 { place | ALONE } else { place };
                *next += 1;
            }
            at += list.len() as u32 + 1;
        }
        starts.pop();
        Self { lists, starts, places }
    }

    /// Like [`SharedPairs::for_each`].
    fn for_each<E>(
        &self,
        mut min: impl FnMut(u32) -> u32,
        mut each: impl FnMut(u32, u32, u32) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let documents = self.starts.len() - 1;
        // One counter per document, and the documents whose counter is not 0. To avoid an unpredictable branch, each
        // document is written to the list, but the length grows only if the document is new.
        let (mut counts, mut collisions) = (vec![0_u32; documents], vec![0_u32; documents + 1]);
        let (mut wanted, mut pairs) = (Vec::new(), 0);
        for a in 0..documents {
            let mut new = 0;
            let mut meet = |b: u32| {
                let count = &mut counts[b as usize];
                collisions[new] = b;
                new += usize::from(*count == 0);
                *count += 1;
            };
            for &place in &self.places[self.starts[a] as usize..self.starts[a + 1] as usize] {
                if place & ALONE == 0 {
                    self.lists[place as usize..].iter().take_while(|&&b| b != END).for_each(|&b| meet(b));
                } else {
                    meet(self.lists[(place & !ALONE) as usize]);
                }
            }
            if new == 0 {
                continue;
            }
            pairs += new as u64;
            let min = min(a as u32);
            for &b in &collisions[..new] {
                let count = mem::take(&mut counts[b as usize]);
                if count >= min {
                    wanted.push((b, count));
                }
            }
            wanted.sort_unstable();
            wanted.drain(..).try_for_each(|(b, count)| each(a as u32, b, count))?;
        }
        Ok(pairs)
    }
}

/// Lists of documents, concatenated, each ending with [`END`]. They are held in memory up to a budget, then in a
/// scratch file.
#[derive(Debug)]
pub(super) struct PostingLists {
    dir: PathBuf,
    /// Maximum number of entries held in memory.
    max: usize,
    held: Vec<u32>,
    spill: Option<Spill>,
    bytes: Vec<u8>,
}

impl PostingLists {
    pub(super) fn new(dir: &Path, memory: usize) -> Self {
        Self {
            dir: dir.to_owned(),
            max: memory / size_of::<u32>(),
            held: Vec::new(),
            spill: None,
            bytes: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, documents: &[u32]) -> Result<()> {
        if self.spill.is_none() && self.held.len() + documents.len() < self.max {
            self.held.extend_from_slice(documents);
            self.held.push(END);
            return Ok(());
        }
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(
                Spill::create(&self.dir).map_err(|e| Error::io("create a scratch file in", &self.dir, e))?,
            ),
        };
        self.bytes.clear();
        self.bytes.extend(documents.iter().chain(&[END]).flat_map(|number| number.to_le_bytes()));
        spill.append(&self.bytes).map_err(|e| Error::io("write a scratch file in", &self.dir, e))?;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn is_on_disk(&self) -> bool {
        self.spill.is_some()
    }

    /// Passes each list, including its [`END`], to `each`, in the order in which the lists were added.
    fn for_each(&self, mut each: impl FnMut(&[u32]) -> Result<()>) -> Result<()> {
        self.held.split_inclusive(|&number| number == END).try_for_each(&mut each)?;
        let Some(spill) = &self.spill else { return Ok(()) };
        let mut window = CountWindow { spill, at: 0, waiting: Vec::new(), next: 0 };
        let mut list = Vec::new();
        while window.is_left() {
            list.push(window.next().map_err(|e| Error::io("read a scratch file in", &self.dir, e))?);
            if list.last() == Some(&END) {
                each(&list)?;
                list.clear();
            }
        }
        Ok(())
    }

    /// Forms the pairs of all lists.
    ///
    /// Memory: as many bytes for positions as for lists, if the lists are in memory and positions take at most `memory`
    /// bytes. Otherwise `memory` bytes, at least 2 MiB, and an unnamed file in `dir` for pairs.
    pub(super) fn into_pairs(
        self,
        capping: &mut Capping,
        (dir, memory): (&Path, usize),
    ) -> Result<SharedPairs> {
        let max = |memory: usize| (memory / size_of::<u32>()).min(ALONE as usize);
        if self.spill.is_none() && self.held.len() <= max(memory) {
            return Ok(SharedPairs::Met(Postings::new(self.held, capping)));
        }
        // The lists of a part take three eighths of the memory, the positions another three eighths, and sorting a quarter.
        let part = max((memory / 8 * 3).max(LEAST));
        Ok(SharedPairs::Counted(self.count_pairs(capping, part, Sorter::new(dir, memory / 4))?))
    }

    /// Counts the pairs of each part of the lists and sums the counts. A part has at most `max` entries, or a single longer
    /// list.
    fn count_pairs(
        &self,
        capping: &mut Capping,
        max: usize,
        mut pairs: Sorter<NumberCount>,
    ) -> Result<Sorted<NumberCount>> {
        let mut count = |part: &mut Vec<u32>| {
            let postings = Postings::new(mem::take(part), capping);
            let add =
                |a, b, count| pairs.push(NumberCount { number: u64::from(a) << 32 | u64::from(b), count });
            postings.for_each(|_| 1, add).map(|_| ())
        };
        let mut part = Vec::new();
        self.for_each(|list| {
            if part.len() + list.len() > max {
                count(&mut part)?;
            }
            part.extend_from_slice(list);
            Ok(())
        })?;
        count(&mut part)?;
        pairs.finish()
    }
}

/// Reads the entries of a scratch file sequentially.
struct CountWindow<'s> {
    spill: &'s Spill,
    /// The offset in the file at which the next read begins.
    at: u64,
    waiting: Vec<u8>,
    next: usize,
}

impl CountWindow<'_> {
    fn is_left(&self) -> bool {
        self.next < self.waiting.len() || self.at < self.spill.len()
    }

    fn next(&mut self) -> io::Result<u32> {
        if self.next == self.waiting.len() {
            let left = (self.spill.len() - self.at).min((BUFFER * size_of::<u32>()) as u64);
            self.waiting.resize(left as usize, 0);
            self.spill.read_exact_at(&mut self.waiting, self.at)?;
            self.at += left;
            self.next = 0;
        }
        let bytes = self.waiting.get(self.next..).and_then(<[u8]>::first_chunk);
        self.next += size_of::<u32>();
        Ok(u32::from_le_bytes(*bytes.ok_or(io::ErrorKind::UnexpectedEof)?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type PairCounts = BTreeMap<(u32, u32), u32>;

    /// Forms all pairs by brute force. Returns the counts, the number of capped elements, and for each document the
    /// number of its capped elements.
    fn slowly(lists: &[Vec<u32>], documents: u32, cap: u64) -> (PairCounts, u64, Vec<u32>) {
        let (mut counts, mut capped, mut uncounted) = (PairCounts::new(), 0, vec![0; documents as usize]);
        for list in lists {
            let is_capped = list.len() as u64 > cap;
            capped += u64::from(is_capped);
            for (place, &b) in list.iter().enumerate() {
                uncounted[b as usize] += u32::from(is_capped);
                for (before, &a) in list[..place].iter().enumerate() {
                    if !is_capped || before == 0 || before + 1 == place {
                        *counts.entry((a, b)).or_default() += 1;
                    }
                }
            }
        }
        (counts, capped, uncounted)
    }

    proptest::proptest! {
        #[test]
        fn counts_in_one_or_several_parts_equal_brute_force(
            lists in proptest::collection::vec(proptest::collection::btree_set(0..40_u32, 2..20), 0..60),
            (cap, max, memory, min) in (0..20_u64, 1..200_usize, 0..800_usize, 0..4_u32),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let lists: Vec<Vec<u32>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let (wanted, capped, uncounted) = slowly(&lists, 40, cap);
            let mut pushed = PostingLists::new(dir.path(), memory);
            for list in &lists {
                pushed.push(list).unwrap();
            }
            let whole: Vec<u32> = lists.iter().flat_map(|list| list.iter().copied().chain([END])).collect();
            let new = || Capping { cap, capped: 0, uncounted: vec![0; 40] };
            let (mut at_once, mut by_parts) = (new(), new());
            let parts = pushed.count_pairs(&mut by_parts, max, Sorter::new(dir.path(), 0)).unwrap();
            let pairs =
                [SharedPairs::Met(Postings::new(whole, &mut at_once)), SharedPairs::Counted(parts)];
            for (pairs, capping) in pairs.into_iter().zip([at_once, by_parts]) {
                proptest::prop_assert_eq!((capping.capped, &capping.uncounted), (capped, &uncounted));
                let mut found = Vec::new();
                let collisions = pairs.for_each(|a| (a + min) % 4, |a, b, count| {
                    found.push(((a, b), count));
                    Ok::<_, Error>(())
                });
                proptest::prop_assert_eq!(collisions.unwrap(), wanted.len() as u64);
                let enough = wanted.iter().filter(|((a, _), count)| **count >= (a + min) % 4);
                proptest::prop_assert_eq!(found, enough.map(|(&pair, &count)| (pair, count)).collect::<Vec<_>>());
            }
        }
    }
}
