//! Generates random sets for tests of containment.

use twindex_kernel::splitmix::SplitMix;

/// Returns `count` random sets. Some include parts of other sets, some share frequent elements, and some are empty.
pub(crate) fn sets(random: &mut SplitMix, count: usize) -> Vec<Vec<u64>> {
    let mut sets: Vec<Vec<u64>> = Vec::new();
    for _ in 0..count {
        let below = [12, 200, 1 << 40][(random.next() % 3) as usize];
        let mut set: Vec<u64> = (0..random.next() % 40).map(|_| (random.next() % below) << 20).collect();
        if !sets.is_empty() && !random.next().is_multiple_of(3) {
            let other = &sets[random.next() as usize % sets.len()];
            let from = random.next() as usize % (other.len() + 1);
            set.truncate((random.next() % 6) as usize);
            set.extend(&other[from / 2..]);
        }
        set.sort_unstable();
        set.dedup();
        sets.push(set);
    }
    sets
}
