use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use twindex_kernel::splitmix::SplitMix;

/// Returns sets of several kinds: families, chains in which each set has most elements of the previous set, copies, and
/// unrelated sets. Some elements are in few sets, others in many.
fn corpus(seed: u64, count: usize, max: u64) -> Vec<Vec<u64>> {
    let mut random = SplitMix(seed);
    let mut sets: Vec<BTreeSet<u64>> = Vec::new();
    for _ in 0..count {
        let common = random.next().is_multiple_of(2);
        let fresh = |random: &mut SplitMix| {
            let element = random.next();
            if common { SplitMix(element % 40).next() } else { element }
        };
        let size = (random.next() % max) as usize;
        let mut set = match random.next() % 4 {
            0 => BTreeSet::new(),
            1 => sets.last().cloned().unwrap_or_default(),
            _ if sets.is_empty() => BTreeSet::new(),
            _ => sets[(random.next() % sets.len() as u64) as usize].clone(),
        };
        for _ in 0..random.next() % 3 {
            let gone = set.iter().nth((random.next() % max) as usize).copied();
            gone.map(|gone| set.remove(&gone));
        }
        let wanted = if set.is_empty() { size } else { set.len() + (random.next() % 3) as usize };
        for _ in set.len()..wanted {
            set.insert(fresh(&mut random));
        }
        sets.push(set);
    }
    sets.into_iter().map(|set| set.into_iter().collect()).collect()
}

fn stored(sets: &[Vec<u64>], dir: &Path, budget: usize) -> ShingleSets {
    let mut stored = ShingleSets::new(dir, budget);
    for set in sets {
        let anchors = [set.first().copied().unwrap_or(0), set.len() as u64 / 8];
        stored.push_like(set, &anchors[..1]).unwrap();
    }
    stored
}

/// Computes the expected result from the definition: compares each set with all kept sets before it.
fn by_brute_force(sets: &[Vec<u64>], order: &[u32], near: Nearness, fixed: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut by, mut shared): (Vec<u32>, Vec<u32>) =
        ((0..sets.len() as u32).collect(), sets.iter().map(|set| set.len() as u32).collect());
    let mut kept: Vec<u32> = Vec::new();
    for (rank, &set) in order.iter().enumerate() {
        let earlier = if rank < fixed { &[][..] } else { &kept };
        let first = earlier.iter().find_map(|&other| {
            near.shared(&sets[set as usize], &sets[other as usize]).map(|shared| (other, shared as u32))
        });
        match first {
            Some((other, both)) => (by[set as usize], shared[set as usize]) = (other, both),
            None => kept.push(set),
        }
    }
    (by, shared)
}

fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut random = SplitMix(seed);
    let mut order: Vec<u32> = (0..count as u32).collect();
    for at in (1..count).rev() {
        order.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    order
}

/// The limits with which module `listed` makes every decision that it can make.
pub(super) const UNLIMITED: BitmapLimits =
    BitmapLimits { rows: u64::MAX, pairs: u64::MAX, partners: usize::MAX };

/// Returns the results of both modules, `listed` (if it is suitable) and `found`.
fn covered(
    sets: &ShingleSets,
    near: Nearness,
    order: Option<&[u32]>,
    fixed: u32,
    resources: JoinResources<'_>,
) -> Vec<CoverResult> {
    let priority = Priority { order, fixed, ..Priority::default() };
    vec![
        cover_within(sets, near, priority, resources, UNLIMITED).unwrap(),
        cover_found(sets, near, priority, resources).unwrap(),
    ]
}

#[test]
fn kept_sets_equal_brute_force_for_any_memory_threads_and_order() {
    let dir = tempfile::tempdir().unwrap();
    let (mut removed, mut passes) = (0, 0);
    // The cases combine all numbers of sets with all maximum sizes. TWINDEX_CASES sets the number of cases.
    let seeds = std::env::var("TWINDEX_CASES").map_or(15, |cases| cases.parse().expect("a number"));
    for seed in 0..seeds {
        let count = [0, 1, 20, 90, 200][(seed % 5) as usize];
        let sets = corpus(seed, count, [6, 30, 120][(seed % 3) as usize]);
        let order = shuffled(count, seed);
        let natural: Vec<u32> = (0..count as u32).collect();
        let ways = [(usize::MAX, 1 << 24, 1), (usize::MAX, 1 << 14, 3), (0, 0, 2)];
        for threshold in [0.05, 0.5, 0.8, 0.9, 1.0] {
            for near in [Nearness::Resemblance(threshold), Nearness::Containment(threshold)] {
                for (wanted_order, order) in [(&natural, None), (&order, Some(&order[..]))] {
                    let fixed = (seed % 4) * count as u64 / 8;
                    let (by, shared) = by_brute_force(&sets, wanted_order, near, fixed as usize);
                    removed += (0..).zip(&by).filter(|&(set, &by)| set != by).count();
                    for (budget, memory, threads) in ways {
                        let stored = stored(&sets, dir.path(), budget);
                        let resources = JoinResources { dir: dir.path(), memory, threads };
                        for found in covered(&stored, near, order, fixed as u32, resources) {
                            assert_eq!(found.by[..], by, "{seed} {near:?} {budget} {memory}");
                            assert_eq!(found.shared[..], shared, "{seed} {near:?} {budget} {memory}");
                            passes = passes.max(found.passes);
                        }
                    }
                }
            }
        }
    }
    assert!(removed > 2_500 && passes > 2, "{removed} {passes}");
}

/// Regression test: if shingles exceeded the memory, a join became quadratic and took 30 times as long for twice the sets.
#[test]
fn unrelated_sets_take_few_comparisons_and_a_bounded_number_of_passes() {
    let dir = tempfile::tempdir().unwrap();
    let mut passes = Vec::new();
    for count in [5_000, 10_000, 20_000_usize] {
        let mut random = SplitMix(count as u64);
        let mut sets = ShingleSets::new(dir.path(), 0);
        for _ in 0..count {
            let mut set: Vec<u64> = (0..8).map(|_| random.next()).collect();
            set.sort_unstable();
            sets.push(&set).unwrap();
        }
        // A twentieth of the size of all elements.
        let resources = JoinResources { dir: dir.path(), memory: 8 * 8 * count / 20, threads: 2 };
        let near = Nearness::Resemblance(0.8);
        let found = cover_found(&sets, near, Priority::default(), resources).unwrap();
        let few = count as u64 / 100;
        assert!(found.comparisons < few, "{count}: {}", found.comparisons);
        passes.push(found.passes);
        assert!((0..).zip(found.by.iter()).all(|(set, &by)| set == by));
    }
    // A quadratic join takes twice as many passes for twice as many sets.
    assert!(passes.iter().all(|&more| more <= passes[0]), "{passes:?}");
}

#[test]
fn decisions_from_listed_pairs_equal_decisions_from_sets() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let sets = corpus(seed, 100, 30);
        let order = shuffled(sets.len(), seed);
        let near = Nearness::Resemblance(0.6);
        let (by, shared) = by_brute_force(&sets, &order, near, seed as usize);
        let budget = MemoryBudget::new(dir.path(), if seed % 2 == 0 { 0 } else { 1 << 20 });
        let mut pairs = CoverPairs::new(&budget, 0, sets.len(), Some(&order)).unwrap().fixing(seed as u32);
        for a in (0..sets.len()).rev() {
            for b in 0..a {
                if let Some(shared) = near.shared(&sets[a], &sets[b]) {
                    pairs.push(b as u32, a as u32, shared as u64).unwrap();
                }
            }
        }
        let (found, scores) = pairs.finish().unwrap();
        assert_eq!(found[..], by, "{seed}");
        for (set, &score) in scores.iter().enumerate() {
            assert_eq!(score, if by[set] == set as u32 { 0 } else { shared[set].into() }, "{seed}");
        }
    }
}

#[test]
fn cover_with_more_comparisons_than_allowed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let sets = stored(&corpus(3, 200, 30), dir.path(), usize::MAX);
    let resources = JoinResources { dir: dir.path(), memory: 1 << 20, threads: 1 };
    let near = Nearness::Resemblance(0.5);
    let all = cover_sets(&sets, near, Priority::default(), resources).unwrap();
    let with = |max| cover_sets(&sets, near, Priority { max: Some(max), ..Priority::default() }, resources);
    assert_eq!(with(all.comparisons).unwrap().by[..], all.by[..]);
    let error = with(all.comparisons - 1).unwrap_err().to_string();
    assert!(error.contains("comparisons with kept sets"), "{error}");
}

/// Returns `count` sets with the same structure: each has `common` of `of` shared elements, and `own` elements that no
/// other set has.
fn records(count: usize, common: usize, of: u64, own: usize) -> Vec<Vec<u64>> {
    let mut random = SplitMix(77);
    let element = |number: u64| SplitMix(number + 1_000_003).next();
    (0..count)
        .map(|_| {
            let mut set = BTreeSet::new();
            while set.len() < common {
                set.insert(element(random.next() % of));
            }
            set.extend((0..own).map(|_| random.next()));
            set.into_iter().collect()
        })
        .collect()
}

#[test]
fn family_members_are_compared_only_with_kept_members() {
    let dir = tempfile::tempdir().unwrap();
    let sets = records(3000, 95, 105, 5);
    let near = Nearness::Resemblance(0.8);
    let order: Vec<u32> = (0..sets.len() as u32).collect();
    let (by, shared) = by_brute_force(&sets, &order, near, 0);
    let kept = (0..).zip(&by).filter(|&(set, &by)| set == by).count();
    let stored = stored(&sets, dir.path(), usize::MAX);
    for memory in [1 << 26, 1 << 18] {
        for found in covered(&stored, near, None, 0, JoinResources { dir: dir.path(), memory, threads: 2 }) {
            assert!(found.by[..] == by && found.shared[..] == shared, "{memory}");
            assert!(found.comparisons < 150 * 3000, "{memory}: {} {kept}", found.comparisons);
        }
    }
}
