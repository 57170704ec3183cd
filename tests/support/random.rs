//! Numbers for tests that are the same on every machine.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use twindex_kernel::splitmix::SplitMix;

/// [`SplitMix`] from any seed, with another `below`: seeds of tests were chosen for the numbers that it draws.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let mut random = SplitMix(self.0);
        let next = random.next();
        self.0 = random.0;
        next
    }

    /// Below `n`, which is small: the remainder.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
