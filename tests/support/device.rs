//! A simulated device that has a latency and reads some pages in parallel. Counts reads and steps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

const PAGE: u64 = 4096;
const LATENCY: Duration = Duration::from_micros(100);
const PARALLEL: usize = 32;

/// A device whose time passes only while a read waits.
#[derive(Debug, Default)]
pub struct Device {
    /// The time so far.
    pub time: Duration,
    /// Number of pages read.
    pub reads: u64,
    /// The length of the longest chain of reads in which each was requested only after the previous one was complete.
    pub depth: u64,
    /// For each requested page, the time when it is complete, and the length of the chain that it ends.
    pages: HashMap<(usize, u64), (Duration, u64)>,
    busy: BinaryHeap<Reverse<Duration>>,
}

impl Device {
    /// Starts reading the pages at this range of a file, unless they have been requested before.
    pub fn request(&mut self, file: usize, offset: u64, length: u64) {
        for page in offset / PAGE..(offset + length).div_ceil(PAGE) {
            self.pages.entry((file, page)).or_insert_with(|| {
                let free = if self.busy.len() < PARALLEL { None } else { self.busy.pop() };
                let done = free.map_or(self.time, |Reverse(free)| free.max(self.time)) + LATENCY;
                self.busy.push(Reverse(done));
                self.reads += 1;
                (done, self.depth + 1)
            });
        }
    }

    /// Waits for the pages at this range of a file.
    pub fn read(&mut self, file: usize, offset: u64, length: u64) {
        self.request(file, offset, length);
        for page in offset / PAGE..(offset + length).div_ceil(PAGE) {
            let (done, depth) = self.pages[&(file, page)];
            self.time = self.time.max(done);
            self.depth = self.depth.max(depth);
        }
    }
}
