//! Sorts hashes by their leading bits and removes duplicates.

/// Maximum mean number of moves per hash in the insertion sort; with more, the hashes are sorted by comparisons
/// instead. Repeated hashes, such as the shingles of a table, need few moves.
const MOVES: usize = 8;

/// Sorts hashes, reusing its buffers.
///
/// ```
/// let mut distinct = vec![0];
/// twindex_join::SortScratch::default().append_distinct(&[7, 3, 7, 5], &mut distinct);
/// assert_eq!(distinct, [0, 3, 5, 7]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SortScratch {
    places: Vec<u32>,
    sorted: Vec<u64>,
}

impl SortScratch {
    /// Appends the hashes to `distinct` in ascending order, without duplicates. A bucket sort by leading bits leaves
    /// little work for uniform hashes. Other hashes are sorted by comparisons.
    ///
    /// Takes linear time for uniform hashes.
    pub fn append_distinct(&mut self, hashes: &[u64], distinct: &mut Vec<u64>) {
        self.sort(hashes);
        // Has no branch: writes each hash, and advances the count only if the next hash is different.
        let start = distinct.len();
        distinct.resize(start + self.sorted.len(), 0);
        let out = &mut distinct[start..];
        let mut count = 0;
        for (at, &hash) in self.sorted.iter().enumerate() {
            out[count] = hash;
            count += usize::from(self.sorted.get(at + 1) != Some(&hash));
        }
        distinct.truncate(start + count);
    }

    /// Replaces the contents of `sorted` with the sorted `hashes`.
    fn sort(&mut self, hashes: &[u64]) {
        let Self { places, sorted } = self;
        if hashes.len() < 64 || u32::try_from(hashes.len()).is_err() {
            sorted.clear();
            sorted.extend_from_slice(hashes);
            sorted.sort_unstable();
            return;
        }
        // Uses more than twice as many buckets as hashes, so that most hashes are in order after the bucket sort.
        let shift = u64::BITS - (hashes.len().ilog2() + 2);
        places.clear();
        places.resize(1 << (hashes.len().ilog2() + 2), 0);
        for hash in hashes {
            places[(hash >> shift) as usize] += 1;
        }
        let mut next = 0;
        for place in places.iter_mut() {
            next += std::mem::replace(place, next);
        }
        if sorted.len() < hashes.len() {
            sorted.resize(hashes.len(), 0);
        }
        sorted.truncate(hashes.len());
        for &hash in hashes {
            let place = &mut places[(hash >> shift) as usize];
            sorted[*place as usize] = hash;
            *place += 1;
        }
        // An insertion sort: after the bucket sort, uniform hashes are at most a few positions from where they belong.
        let mut moves = MOVES * sorted.len();
        for end in 1..sorted.len() {
            let hash = sorted[end];
            let mut at = end;
            while at > 0 && sorted[at - 1] > hash {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = hash;
            let Some(left) = moves.checked_sub(end - at) else { return sorted.sort_unstable() };
            moves = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_any_distribution_are_sorted() {
        let mut sorting = SortScratch { places: Vec::new(), sorted: vec![7] };
        for size in [0, 1, 2, 63, 64, 65, 100, 1023, 1024, 1025, 5000] {
            for shift in [0, 5, 30, 63] {
                let hashes: Vec<u64> = (0..size)
                    .map(|i: u64| (i % 4000).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) >> shift)
                    .collect();
                let mut wanted = hashes.clone();
                wanted.sort_unstable();
                sorting.sort(&hashes);
                assert_eq!(sorting.sorted, wanted, "{size} {shift}");
                wanted.dedup();
                let mut distinct = vec![9, 9];
                sorting.append_distinct(&hashes, &mut distinct);
                assert_eq!((&distinct[..2], &distinct[2..]), (&[9, 9][..], &wanted[..]), "{size} {shift}");
            }
        }
        sorting.sort(&[u64::MAX; 100]);
        assert_eq!(sorting.sorted, [u64::MAX; 100]);
        // Tests the worst case: all hashes are in one bucket, in descending order.
        let falling: Vec<u64> = (0..2000).rev().collect();
        sorting.sort(&falling);
        assert!(sorting.sorted.iter().eq(falling.iter().rev()));
    }
}
