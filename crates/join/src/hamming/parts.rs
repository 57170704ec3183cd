//! Finds near pairs of codes by their parts, with the general pigeonhole principle.
//!
//! The bits of a code are cut into m parts, and part i has a threshold `t_i`, so that the thresholds plus 1 sum to the
//! radius plus 1. Two codes within the radius differ in at most `t_i` bits of some part i; otherwise they would differ in
//! more bits than the radius (Qin et al., *GPH: Similarity Search in Hamming Space*, ICDE 2018). For each part, all codes
//! are distributed to buckets by its bits, and the codes of each bucket are compared with those of all buckets within the
//! threshold. A pair is reported only for the first part that finds it.
//!
//! If a part has more bits than are needed for buckets of about one code, only its first bits select the bucket: two
//! codes differ in no more bits there than in the whole part.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::inside::NearPair;
use super::on_threads;
use super::tiles::{CodeWorker, Codes, add};
use twindex::error::Result;
use twindex_kernel::{HalfWords, Level, Sides, TileScan};

/// Maximum number of bits of a bucket.
const BITS_MAX: u32 = 24;
/// Number of plans whose comparisons are counted, the cheapest for random codes.
const COUNTED: usize = 3;
/// Number of codes whose comparisons are counted.
const SAMPLE: usize = 1 << 10;
/// Minimum number of codes for which plans are made.
const FEW: usize = 1 << 12;
/// The costs of visiting a bucket and of distributing a code, in comparisons.
const VISIT: f64 = 80.0;
const DISTRIBUTING: f64 = 200.0;
/// Number of codes in a register: a comparison with fewer costs as much.
const REGISTER: f64 = 16.0;
/// Number of buckets that a thread claims at a time.
const CLAIMED: usize = 64;

/// A part of the bits of a code.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    /// The bits that select a bucket.
    start: usize,
    bits: u32,
    /// Number of these bits in which a pair may differ.
    threshold: u32,
}

impl Part {
    /// Returns the bucket of a code.
    #[inline(always)]
    fn of(self, code: &[u64]) -> usize {
        let (word, shift) = (self.start / 64, self.start % 64);
        let next = code.get(word + 1).copied().unwrap_or_default();
        let both = u128::from(code[word]) | u128::from(next) << 64;
        (both >> shift) as usize & ((1 << self.bits) - 1)
    }

    /// Returns whether a pair of codes is found by this part.
    #[inline(always)]
    fn finds(self, a: &[u64], b: &[u64]) -> bool {
        (self.of(a) ^ self.of(b)).count_ones() <= self.threshold
    }

    /// Returns the number of buckets that are compared with each one.
    fn neighbours(self) -> f64 {
        let (mut choices, mut sum) = (1.0, 1.0);
        for bit in 0..self.threshold.min(self.bits) {
            choices *= f64::from(self.bits - bit) / f64::from(bit + 1);
            sum += choices;
        }
        sum
    }

    /// Returns the differences of buckets that are compared, 0 first.
    fn differences(self) -> Vec<usize> {
        let (mut all, mut from) = (vec![0_usize], 0);
        for _ in 0..self.threshold.min(self.bits) {
            let last = from..all.len();
            from = all.len();
            for at in last {
                let highest = usize::BITS - all[at].leading_zeros();
                all.extend((highest..self.bits).map(|bit| 1 << bit | all[at]).collect::<Vec<_>>());
            }
        }
        all
    }
}

/// The parts by which near pairs are found.
#[derive(Debug)]
pub(super) struct PartsPlan {
    parts: Vec<Part>,
    within: u32,
}

impl PartsPlan {
    /// Returns the plan that needs the least time, if it needs less than a comparison of all pairs and its buckets fit in
    /// memory.
    pub(super) fn cheapest(
        left: Codes<'_>,
        right: Option<Codes<'_>>,
        within: u32,
        memory: usize,
    ) -> Option<Self> {
        let other = right.unwrap_or(left);
        let count = left.len() + right.map_or(0, Codes::len);
        if count < FEW || left.is_empty() || other.is_empty() || count * (8 * left.width() + 8) > memory {
            return None;
        }
        let half = if right.is_none() { 0.5 } else { 1.0 };
        let (columns, rows) = (left.len() as f64, other.len() as f64);
        let all = half * columns * rows;
        let bits_max = (left.len().max(other.len()).ilog2() + 1).min(BITS_MAX);
        let parts_max = (within + 1).min(left.bits() / 4);
        let mut plans: Vec<(f64, Self)> = (1..=parts_max)
            .map(|parts| Self::of(parts, left.bits(), within, bits_max))
            .map(|plan| {
                let cost = plan.cost(count, half, |part| {
                    let buckets = (1_u64 << part.bits) as f64;
                    rows * part.neighbours() * (columns / buckets).max(REGISTER.min(columns))
                });
                (cost, plan)
            })
            .filter(|(cost, _)| *cost < all)
            .collect();
        plans.sort_by(|a, b| a.0.total_cmp(&b.0));
        plans.truncate(COUNTED);
        let step = other.len().div_ceil(SAMPLE);
        let counted = plans.into_iter().map(|(_, plan)| {
            let cost = plan.cost(count, half, |part| {
                let mut sizes = vec![0_u32; 1 << part.bits];
                (0..left.len()).for_each(|at| sizes[part.of(left.get(at))] += 1);
                let differences = part.differences();
                let of_code = |at: usize| {
                    let bucket = part.of(other.get(at));
                    let sizes = differences.iter().map(|difference| sizes[bucket ^ difference]);
                    sizes.filter(|&size| size > 0).map(|size| f64::from(size).max(REGISTER)).sum::<f64>()
                };
                (0..other.len()).step_by(step).map(of_code).sum::<f64>() * step as f64
            });
            (cost, plan)
        });
        let cheapest = counted.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (cheapest.0 < all).then_some(cheapest.1)
    }

    /// Returns a plan of this number of parts, at most the radius and 1.
    fn of(parts: u32, width: u32, within: u32, bits_max: u32) -> Self {
        let (each, more) = ((within + 1) / parts, (within + 1) % parts);
        let part = |part: u32| {
            let (start, end) = (width * part / parts, width * (part + 1) / parts);
            let threshold = each + u32::from(part < more) - 1;
            Part { start: start as usize, bits: (end - start).min(bits_max), threshold }
        };
        Self { parts: (0..parts).map(part).collect(), within }
    }

    /// Returns the cost of a join of `count` codes. `compared` returns the number of comparisons for a part, each pair
    /// counted twice if `half` is one half.
    fn cost(&self, count: usize, half: f64, compared: impl Fn(Part) -> f64) -> f64 {
        let of_part = |&part: &Part| {
            let visits = (1_u64 << part.bits) as f64 * part.neighbours() * VISIT;
            DISTRIBUTING * count as f64 + half * (visits + compared(part))
        };
        self.parts.iter().map(of_part).sum()
    }

    /// Finds all near pairs.
    pub(super) fn join<S: Send>(
        &self,
        left: Codes<'_>,
        right: Option<Codes<'_>>,
        workers: &mut [CodeWorker<S>],
        take: &(impl Fn(&mut S, &[NearPair]) -> Result<()> + Sync),
    ) -> Result<()> {
        let (other, level) = (right.unwrap_or(left), Level::chosen());
        for (number, &part) in self.parts.iter().enumerate() {
            let mine = Buckets::of(left, part, workers.len())?;
            let theirs = right.map(|right| Buckets::of(right, part, workers.len())).transpose()?;
            let (inside, theirs) = (right.is_none(), theirs.as_ref().unwrap_or(&mine));
            let sides = Sides { columns: mine.codes(), rows: theirs.codes(), inside, within: self.within };
            let (differences, next) = (part.differences(), AtomicUsize::new(0));
            on_threads(workers, |CodeWorker { scratch, pairs, state }| {
                let mut rows: Vec<Range<usize>> = Vec::new();
                loop {
                    let start = next.fetch_add(CLAIMED, Ordering::Relaxed);
                    if start >= 1 << part.bits {
                        return Ok(());
                    }
                    for bucket in start..(1 << part.bits).min(start + CLAIMED) {
                        let columns = mine.range(bucket);
                        if columns.is_empty() {
                            continue;
                        }
                        let buckets = differences.iter().map(|difference| bucket ^ difference);
                        let others = buckets.filter(|&other| !inside || other >= bucket);
                        rows.clear();
                        rows.extend(others.map(|other| theirs.range(other)).filter(|rows| !rows.is_empty()));
                        let emit = |column: u32, row: u32, distance| {
                            let (a, b) = (mine.numbers[column as usize], theirs.numbers[row as usize]);
                            let (one, two) = (left.get(a as usize), other.get(b as usize));
                            if self.parts[..number].iter().any(|earlier| earlier.finds(one, two)) {
                                return Ok(());
                            }
                            let (a, b) = if inside { (a.min(b), a.max(b)) } else { (a, b) };
                            add(pairs, NearPair { a, b, distance }, state, take)
                        };
                        level.dispatch(TileScan { sides, columns, rows: &rows, scratch, emit })?;
                    }
                }
            })?;
        }
        Ok(())
    }
}

/// The codes of one side in the order of their buckets.
struct Buckets {
    /// The position of the first code of each bucket, and at the end the number of codes.
    starts: Vec<u32>,
    numbers: Vec<u32>,
    words: Vec<u32>,
    /// Number of 32-bit words of a code.
    width: usize,
}

impl Buckets {
    fn of(codes: Codes<'_>, part: Part, threads: usize) -> Result<Self> {
        let mut starts = vec![0_u32; (1 << part.bits) + 1];
        (0..codes.len()).for_each(|at| starts[part.of(codes.get(at)) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut ends, mut numbers) = (starts.clone(), vec![0; codes.len()]);
        for at in 0..codes.len() {
            let end = &mut ends[part.of(codes.get(at))];
            numbers[*end as usize] = at as u32;
            *end += 1;
        }
        // The words of the part come last, because the codes that are compared hardly differ there.
        let width = 2 * codes.width();
        let first = (part.start + part.bits as usize).div_ceil(32);
        let mut words = vec![0_u32; width * codes.len()];
        let some = codes.len().div_ceil(threads).max(1);
        let mut work: Vec<_> = numbers.chunks(some).zip(words.chunks_mut(some * width)).collect();
        on_threads(&mut work, |(numbers, words)| {
            for (&number, to) in numbers.iter().zip(words.chunks_exact_mut(width)) {
                let code = codes.get(number as usize);
                for (at, to) in to.iter_mut().enumerate() {
                    let half = (first + at) % width;
                    *to = (code[half / 2] >> (32 * (half % 2))) as u32;
                }
            }
            Ok(())
        })?;
        Ok(Self { starts, numbers, words, width })
    }

    fn codes(&self) -> HalfWords<'_> {
        HalfWords { words: &self.words, width: self.width }
    }

    fn range(&self, bucket: usize) -> Range<usize> {
        self.starts[bucket] as usize..self.starts[bucket + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_kernel::TileScratch;
    use twindex_kernel::splitmix::SplitMix;

    /// Returns random codes, and near ones of them with equal bits in places.
    fn clustered(random: &mut SplitMix, width: usize, count: usize) -> Vec<u64> {
        let mut codes: Vec<u64> = Vec::new();
        for at in 0..count {
            let mut code: Vec<u64> = match random.below(3) {
                0 if at > 0 => codes[random.below(at as u64) as usize * width..][..width].to_vec(),
                1 => (0..width).map(|_| random.next() & 0x00ff_f00f).collect(),
                _ => (0..width).map(|_| random.next()).collect(),
            };
            for _ in 0..random.below(40) {
                let bit = random.below(64 * width as u64) as usize;
                code[bit / 64] ^= u64::from(random.below(2) > 0) << (bit % 64);
            }
            codes.extend(code);
        }
        codes
    }

    fn found(workers: Vec<CodeWorker<Vec<NearPair>>>) -> Vec<NearPair> {
        let mut found: Vec<_> =
            workers.into_iter().flat_map(|worker| [worker.state, worker.pairs].concat()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn plans_of_any_number_of_parts_find_each_near_pair_once() {
        let mut random = SplitMix(3);
        for width in [1, 2, 3, 4, 6, 8] {
            let words = [clustered(&mut random, width, 150), clustered(&mut random, width, 70)];
            let [left, right] = words.each_ref().map(|words| Codes::new(words, width).unwrap());
            for within in (0..34).chain([40, 52, 63, 100]) {
                for right in [None, Some(right)] {
                    let distance =
                        |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
                    let mut expected = Vec::new();
                    for a in 0..left.len() as u32 {
                        let from = right.map_or(a + 1, |_| 0);
                        for b in from..right.unwrap_or(left).len() as u32 {
                            let distance =
                                distance(left.get(a as usize), right.unwrap_or(left).get(b as usize));
                            if distance <= within {
                                expected.push(NearPair { a, b, distance });
                            }
                        }
                    }
                    for parts in [1, 2, 5, 16, within + 1] {
                        let parts = parts.min(within + 1).min(left.bits() / 4);
                        let plan = PartsPlan::of(parts, left.bits(), within, 6);
                        let worker = |_| CodeWorker {
                            scratch: TileScratch::default(),
                            pairs: Vec::new(),
                            state: Vec::new(),
                        };
                        let mut workers: Vec<_> = (0..2).map(worker).collect();
                        let take = |all: &mut Vec<NearPair>, some: &[NearPair]| {
                            all.extend_from_slice(some);
                            Ok(())
                        };
                        plan.join(left, right, &mut workers, &take).unwrap();
                        assert!(found(workers) == expected, "{width} words, within {within}, {parts} parts");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_chosen_only_if_they_save_comparisons() {
        let mut random = SplitMix(4);
        let mut plan = |count: usize, within: u32, memory: usize, mask: u64| {
            let words: Vec<u64> = (0..4 * count).map(|_| random.next() & mask).collect();
            let plan = PartsPlan::cheapest(Codes::new(&words, 4).unwrap(), None, within, memory);
            plan.map(|plan| plan.parts.len())
        };
        assert!(plan(50_000, 31, 1 << 30, !0).is_some_and(|parts| parts > 8));
        assert_eq!(plan(50_000, 31, 1 << 20, !0), None, "buckets need memory");
        assert_eq!(plan(50_000, 100, 1 << 30, !0), None, "a neighbourhood has most buckets");
        assert_eq!(plan(50_000, 31, 1 << 30, 0xf), None, "most codes are in few buckets");
        assert_eq!(plan(1000, 3, 1 << 30, !0), None);
    }
}
