//! Random numbers for tests. They are the same on every machine.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use twindex_kernel::splitmix::SplitMix;

/// A [`SplitMix`] generator that allows any seed. The seeds of tests were chosen for the numbers of its `below`, which
/// differs from the one of [`SplitMix`].
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let mut random = SplitMix(self.0);
        let next = random.next();
        self.0 = random.0;
        next
    }

    /// Returns a random number below `n`. The distribution is slightly biased, so `n` must be small.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
