//! Measures the CPU time of both modules that decide which sets are kept, and of the choice between them.
//!
//! ```sh
//! TWINDEX_KERNEL=avx2 cargo test --release -p twindex-join --lib -- --ignored --nocapture cpu_time
//! ```

use std::ops::Range;
use std::path::Path;

use super::tests::UNLIMITED;
use super::*;
use twindex_kernel::splitmix::SplitMix;

/// Returns the CPU seconds of this thread.
#[allow(clippy::disallowed_methods, reason = "reads a file of the kernel")]
fn cpu_seconds() -> f64 {
    std::thread::yield_now(); // the kernel updates the time only when it schedules
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel");
    times.split(' ').next().map_or(0.0, |time| time.parse::<f64>().expect("nanoseconds") / 1e9)
}

/// Returns sets of `sizes` elements. One in seven is a copy of an earlier set with up to a fifth of its elements replaced. One
/// element in five is drawn from a million elements, some of them often.
fn planted(count: usize, sizes: Range<usize>, dir: &Path) -> ShingleSets {
    let mut random = SplitMix(5);
    let element = |random: &mut SplitMix| {
        if random.below(5) > 0 {
            return random.next();
        }
        SplitMix((0..3).fold(1 << 20, |below, _| 1 + random.below(below))).next()
    };
    let mut sets = ShingleSets::new(dir, 1 << 30);
    let mut originals: Vec<Vec<u64>> = Vec::new();
    for number in 0..count {
        let mut set: Vec<u64> = if number % 7 == 6 {
            let mut copy = originals[random.below(originals.len() as u64) as usize].clone();
            for _ in 0..random.below(1 + copy.len() as u64 / 5) {
                let at = random.below(copy.len() as u64) as usize;
                copy[at] = element(&mut random);
            }
            copy
        } else {
            let size = sizes.start + random.below(sizes.len() as u64) as usize;
            (0..size).map(|_| element(&mut random)).collect()
        };
        set.sort_unstable();
        set.dedup();
        sets.push_like(&set, &set[..3]).unwrap();
        if originals.len() < 20_000 {
            originals.push(set);
        }
    }
    sets
}

#[test]
#[ignore = "takes some minutes, and measures only with --release"]
fn cpu_time_of_both_modules_and_of_the_choice() {
    let dir = tempfile::tempdir().unwrap();
    let resources = JoinResources { dir: dir.path(), memory: 1 << 29, threads: 1 };
    println!("kernel, sets, sizes, threshold: CPU s of listed, found, the choice");
    for sizes in [296..297, 150..450, 26..27, 10..50] {
        for count in [6_250, 12_500, 25_000, 50_000, 100_000] {
            let sets = planted(count, sizes.clone(), dir.path());
            for threshold in [0.7, 0.8, 0.9] {
                let near = Nearness::Resemblance(threshold);
                let priority = Priority::default();
                let seconds = [0, 1, 2].map(|way| {
                    let start = cpu_seconds();
                    let covered = match way {
                        0 => cover_within(&sets, near, priority, resources, UNLIMITED),
                        1 => cover_found(&sets, near, priority, resources),
                        _ => cover_sets(&sets, near, priority, resources),
                    };
                    covered.unwrap();
                    cpu_seconds() - start
                });
                println!("{}, {count}, {sizes:?}, {threshold}: {seconds:.3?}", Level::chosen());
            }
        }
    }
}
