//! Tests sketches against theory, with random sets of known resemblance. For long documents, every plausible hash family
//! gives good estimates. For short documents, sound and unsound families differ in the variance of the estimates and in
//! the probability that all minima of a group match. The tests therefore measure these two quantities, for every family
//! that an index can use.
//!
//! Seeds are fixed, so the results are the same in every run. The bounds are the theoretical values plus three standard
//! errors of the measurement; with random seeds, each cell would pass in 99.7 % of runs. To print the measured values,
//! run `cargo test --test it sketch_accuracy:: -- --nocapture`.

use twindex::params::{self, FeatureScheme};
use twindex::params::{Family, Shingling};
use twindex::sketch::{Buffers, MinHasher, Resemblance, Shingler, features, jaccard, matches, pack, simhash};

use crate::support::random::Random;
use twindex::sketch::{fungible, small_features};
use twindex_kernel::splitmix::SplitMix;

const FAMILIES: [Family; 4] =
    [Family::OnePermutationFilled, Family::Linear, Family::MultiplyShift, Family::Matrix];

/// Fills `a` and `b` with random elements: `both` common ones and `union` in the union. The other elements alternate
/// between the two sets.
fn deal(random: &mut Random, both: usize, union: usize, a: &mut Vec<u64>, b: &mut Vec<u64>) {
    a.clear();
    a.extend((0..both).map(|_| random.next()));
    b.clone_from(a);
    for i in both..union {
        if i % 2 == 0 { &mut *a } else { &mut *b }.push(random.next());
    }
}

/// A test case: a pair of sets, given by the sizes of the larger set, of the union and of the intersection.
struct Cell {
    size: usize,
    union: usize,
    both: usize,
}

impl Cell {
    const fn new(size: usize, union: usize, both: usize) -> Self {
        Self { size, union, both }
    }

    fn resemblance(&self) -> f64 {
        self.both as f64 / self.union as f64
    }
}

/// Pairs of sets of 5, 20, 100 and 1000 elements each, with a resemblance as near as possible to .5, .8 and .9: .48, .82
/// and .905 for 20 elements, .504, .802 and .905 for 100, and .5004, .8002 and .8993 for 1000. Two sets of 5 elements can
/// only have .43 or .67, so there are also pairs with a union of 5 elements, which have .4, .6 and .8.
const CELLS: [Cell; 14] = [
    Cell::new(4, 5, 2),
    Cell::new(4, 5, 3),
    Cell::new(5, 5, 4),
    Cell::new(5, 7, 3),
    Cell::new(5, 6, 4),
    Cell::new(20, 27, 13),
    Cell::new(20, 22, 18),
    Cell::new(20, 21, 19),
    Cell::new(100, 133, 67),
    Cell::new(100, 111, 89),
    Cell::new(100, 105, 95),
    Cell::new(1000, 1333, 667),
    Cell::new(1000, 1111, 889),
    Cell::new(1000, 1053, 947),
];

/// Draws `trials` pairs of sets, and calls `each` with the signatures of each pair.
fn draw(hasher: &MinHasher, cell: &Cell, trials: usize, seed: u64, mut each: impl FnMut(&[u32], &[u32])) {
    let mut random = Random(seed);
    let (mut a, mut b, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..trials {
        deal(&mut random, cell.both, cell.union, &mut a, &mut b);
        hasher.signature(&a, &mut of_a);
        hasher.signature(&b, &mut of_b);
        each(&of_a, &of_b);
    }
}

/// One of Broder's presets (*Identifying and filtering near-duplicate documents*, 2000): k groups of s minima each. A
/// pair is fungible if r groups match.
struct Preset {
    groups: u8,
    rows: u8,
    common: u8,
}

const SIX_OF_FOURTEEN: Preset = Preset { groups: 6, rows: 14, common: 2 };
const EIGHT_OF_TWENTY_FIVE: Preset = Preset { groups: 8, rows: 25, common: 1 };

impl Preset {
    fn minima(&self) -> usize {
        usize::from(self.groups) * usize::from(self.rows)
    }

    /// P(fungible): sum over i >= r of C(k, i) p^(s i) (1 - p^s)^(k - i).
    fn fungible(&self, p: f64) -> f64 {
        let (k, group) = (self.groups, p.powi(self.rows.into()));
        let mut binomial = 1.0;
        let mut sum = 0.0;
        for i in 0..=k {
            if i >= self.common {
                sum += binomial * group.powi(i.into()) * (1.0 - group).powi((k - i).into());
            }
            binomial *= f64::from(k - i) / f64::from(i + 1);
        }
        sum
    }
}

/// The measured behaviour of a hash family in a test case.
struct Measured {
    bias: f64,
    variance: f64,
    /// The share of groups that match.
    groups: f64,
    /// The share of pairs with enough matching groups.
    fungible: f64,
}

fn measure(family: Family, preset: &Preset, cell: &Cell, trials: usize) -> Measured {
    let hasher = MinHasher::of(family, preset.minima());
    let j = cell.resemblance();
    let (mut sum, mut squares, mut equal, mut fungible) = (0.0, 0.0, 0, 0);
    let (mut scratch, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new());
    draw(&hasher, cell, trials, 1, |a, b| {
        let error = Resemblance::of_signatures(a, b).value() - j;
        sum += error;
        squares += error * error;
        features(a, preset.rows.into(), &mut scratch, &mut of_a);
        features(b, preset.rows.into(), &mut scratch, &mut of_b);
        let common = of_a.iter().zip(&of_b).filter(|(a, b)| a == b).count();
        equal += common;
        fungible += usize::from(common >= usize::from(preset.common));
    });
    let trials = trials as f64;
    Measured {
        bias: sum / trials,
        variance: squares / trials,
        groups: equal as f64 / (trials * f64::from(preset.groups)),
        fungible: f64::from(fungible as u32) / trials,
    }
}

/// Compares a hash family with theory in all test cases. `trials` returns the number of trials for a set size. `groups`
/// and `fungible` return the lowest and highest allowed factor between the measured and the theoretical value, for the
/// share of matching groups and for P(fungible).
fn hold(
    family: Family,
    preset: &Preset,
    trials: impl Fn(usize) -> usize,
    groups: impl Fn(&Cell) -> (f64, f64),
    fungible: impl Fn(&Cell) -> (f64, f64),
) {
    let Preset { groups: k, rows, common } = *preset;
    println!("{family}, {k} x {rows}, {common} common");
    for cell in &CELLS {
        let (j, n) = (cell.resemblance(), trials(cell.size) as f64);
        let theory = j * (1.0 - j) / preset.minima() as f64;
        let (group, pair) = (j.powi(rows.into()), preset.fungible(j));
        let found = measure(family, preset, cell, trials(cell.size));
        println!(
            "  {:4} elements, J {j:.4}: bias {:+.2} standard errors, variance {:.3}, \
             groups {:.3} of {group:.5}, \
             P(fungible) {:.3} of {pair:.5}",
            cell.size,
            found.bias / (theory / n).sqrt(),
            found.variance / theory,
            found.groups / group,
            found.fungible / pair,
        );
        let name = format!("{family}, {} elements, J = {j}", cell.size);
        assert!(found.bias.abs() <= 3.0 * (theory / n).sqrt(), "{name}: bias {}", found.bias);
        // A sample variance from n trials has a relative standard error of sqrt(2 / n).
        let excess = 1.05 + 3.0 * (2.0 / n).sqrt();
        assert!(found.variance <= excess * theory, "{name}: variance {} of theory", found.variance / theory);
        // A share p measured in n trials has a standard error of sqrt(p (1 - p) / n). One match is always allowed, even
        // if fewer are expected.
        let within = |found: f64, p: f64, n: f64, (low, high): (f64, f64)| {
            let noise = 3.0 * (p * (1.0 - p) / n).sqrt() + 1.0 / n;
            found >= low * p - noise && found <= high * p + noise
        };
        let groups_drawn = n * f64::from(k);
        assert!(within(found.groups, group, groups_drawn, groups(cell)), "{name}: groups {}", found.groups);
        assert!(within(found.fungible, pair, n, fungible(cell)), "{name}: P(fungible) {}", found.fungible);
    }
}

/// With one permutation, the minima of non-empty bins are different elements, that is, drawn without replacement. Their
/// variance is therefore smaller, and the probability that all s elements of a group are in both sets is slightly below
/// J^s. This makes the filter steeper, not looser. The bounds were measured with 20,000 trials: a group matches with at
/// least .80 of J^s at J = .8, and at least .947 at J = .9. P(fungible) is at least .65 of its value at J = .8 (.03) and
/// at least .947 at J = .9 (.46).
#[test]
fn filled_one_permutation_minhash_is_unbiased_with_fewer_group_matches() {
    let high = |cell: &Cell| cell.resemblance() > 0.85;
    let groups = |cell: &Cell| (if high(cell) { 0.94 } else { 0.8 }, 1.0);
    let two_of_six = |cell: &Cell| (if high(cell) { 0.94 } else { 0.65 }, 1.0);
    hold(Family::OnePermutationFilled, &SIX_OF_FOURTEEN, |_| 20_000, groups, two_of_six);
    let one_of_eight = |cell: &Cell| (if high(cell) { 0.97 } else { 0.8 }, 1.0);
    hold(Family::OnePermutationFilled, &EIGHT_OF_TWENTY_FIVE, |_| 20_000, groups, one_of_eight);
}

/// Compares a classic family with theory; no deviation beyond noise is allowed. With 200 minima, sets of 1000 elements
/// are drawn only 2,000 times, so their bounds are wider.
fn hold_classic(family: Family) {
    let exact = |_: &Cell| (1.0, 1.0);
    hold(family, &SIX_OF_FOURTEEN, |_| 20_000, exact, exact);
    hold(family, &EIGHT_OF_TWENTY_FIVE, |size| if size < 1000 { 20_000 } else { 2000 }, exact, exact);
}

#[test]
fn linear_transformations_behave_like_independent_permutations() {
    hold_classic(Family::Linear);
}

#[test]
fn multiply_shift_behaves_like_independent_permutations() {
    hold_classic(Family::MultiplyShift);
}

#[test]
fn matrices_behave_like_independent_permutations() {
    hold_classic(Family::Matrix);
}

/// The upper half of the 128-bit product increases with x, so all minima are the same element. This test shows that the
/// measurements above detect such an unsound family.
#[test]
fn variance_reveals_that_upper_product_half_is_unsound() {
    let mut random = Random(8);
    let factors: Vec<u64> = (0..84).map(|_| random.next() | 1 << 63).collect();
    let min = |set: &[u64], a: u64| set.iter().map(|&x| (u128::from(a) * u128::from(x)) >> 64).min();
    let (mut a, mut b, mut squares) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..500 {
        deal(&mut random, 89, 111, &mut a, &mut b);
        let equal = factors.iter().filter(|&&factor| min(&a, factor) == min(&b, factor)).count();
        squares += (equal as f64 / 84.0 - 89.0 / 111.0).powi(2);
    }
    let ratio = squares / 500.0 / (89.0 * 22.0 / (111.0 * 111.0) / 84.0);
    println!("variance {ratio:.1} of theory");
    assert!((60.0..110.0).contains(&ratio), "{ratio}");
}

#[test]
fn estimates_from_few_bits_are_unbiased_with_correct_standard_errors() {
    for family in FAMILIES {
        let hasher = MinHasher::of(family, 120);
        for bits in [1, 2, 4, 8, 16] {
            let (cell, trials) = (Cell::new(180, 200, 160), 1500);
            let (mut sum, mut squares, mut claimed) = (0.0, 0.0, 0.0);
            let (mut packed_a, mut packed_b) = (Vec::new(), Vec::new());
            draw(&hasher, &cell, trials, 3, |a, b| {
                packed_a.clear();
                packed_b.clear();
                pack(a, bits, &mut packed_a);
                pack(b, bits, &mut packed_b);
                let estimate = Resemblance::from_matches(matches(&packed_a, &packed_b, 120, bits), 120, bits);
                let error = estimate.value() - 0.8;
                sum += error;
                squares += error * error;
                claimed += estimate.standard_error();
            });
            let trials = trials as f64;
            let (bias, deviation, claimed) = (sum / trials, (squares / trials).sqrt(), claimed / trials);
            println!(
                "{family}, {bits} bits: bias {bias:+.5}, deviation {deviation:.4}, claimed {claimed:.4}"
            );
            assert!(bias.abs() <= 3.0 * claimed / trials.sqrt(), "{family}, {bits} bits: bias {bias}");
            // One-permutation minima vary less than independent ones, so the claimed error may be too high, but it must
            // not be too low.
            assert!(
                deviation < 1.06 * claimed && deviation > 0.7 * claimed,
                "{family}, {bits} bits: {deviation}, {claimed}"
            );
        }
    }
}

#[test]
fn minima_are_uniform_over_elements_and_bits() {
    // Each of n elements is the minimum of a signature's component with probability 1 / n, and the low bits of minima are
    // uniform.
    for family in FAMILIES {
        let hasher = MinHasher::of(family, 120);
        let mut random = Random(4);
        for n in [2_usize, 10, 60] {
            let (mut of_first, mut ones, mut all) = (0, [0_u32; 8], 0);
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for _ in 0..1500 {
                let set: Vec<u64> = (0..n).map(|_| random.next()).collect();
                hasher.signature(&set, &mut with);
                hasher.signature(&set[1..], &mut without);
                of_first += with.iter().zip(&without).filter(|(a, b)| a != b).count();
                all += with.len();
                for minimum in &with {
                    for (bit, count) in ones.iter_mut().enumerate() {
                        *count += minimum >> bit & 1;
                    }
                }
            }
            let (found, p) = (of_first as f64 / f64::from(all as u32), 1.0 / n as f64);
            // All components of a signature depend on the same first element, so the error is computed per trial rather
            // than per minimum.
            let allowed = 3.0 * (p * (1.0 - p) / all as f64).sqrt() * 1.1;
            assert!((found - p).abs() < allowed, "{family}, {n}: {found}");
            for (bit, count) in ones.iter().enumerate() {
                let share = f64::from(*count) / all as f64;
                assert!((share - 0.5).abs() < 0.01, "{family}, {n} elements, bit {bit}: {share}");
            }
        }
    }
}

#[test]
fn low_bits_of_different_minima_agree_only_by_chance() {
    for family in FAMILIES {
        let hasher = MinHasher::of(family, 120);
        for (n, trials) in [(1, 3000), (5, 3000), (60, 2000), (1000, 300), (20_000, 20)] {
            let mut agree = [0_u32; 4];
            let mut all = 0;
            draw(&hasher, &Cell::new(n, 2 * n, 0), trials, 9, |a, b| {
                for (&a, &b) in a.iter().zip(b) {
                    assert_ne!(a, b, "{family}: minima of disjoint sets of {n}");
                    for (count, bits) in agree.iter_mut().zip([1, 2, 4, 8]) {
                        *count += u32::from((a ^ b) << (32 - bits) == 0);
                    }
                    all += 1;
                }
            });
            for (&count, bits) in agree.iter().zip([1, 2, 4, 8]) {
                let (found, p) = (f64::from(count) / f64::from(all), f64::exp2(-f64::from(bits)));
                let noise = 3.5 * (p * (1.0 - p) / f64::from(all)).sqrt();
                assert!((found - p).abs() < noise, "{family}, {n} elements, {bits} bits: {found}");
            }
        }
    }
}

#[test]
fn hamming_distance_of_fingerprints_follows_the_angle_between_sets() {
    // Two sets of n elements with c in common are at an angle of acos(c / n), and each bit differs with probability angle
    // / pi. The formula holds in the limit of large sets, so n is large and odd (no ties), and a deviation of one per
    // cent is allowed.
    let mut random = Random(5);
    for (n, shared) in [(401, 200), (401, 320), (401, 380), (1001, 990)] {
        let trials = 1500;
        let (mut total, mut squares) = (0.0, 0.0);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..trials {
            deal(&mut random, shared, 2 * n - shared, &mut a, &mut b);
            assert_eq!((a.len().abs_diff(n), b.len().abs_diff(n)), (0, 0));
            let distance = f64::from(simhash(&a).distance(simhash(&b)));
            total += distance;
            squares += distance * distance;
        }
        let trials = f64::from(trials);
        let (mean, angle) = (total / trials, (shared as f64 / n as f64).acos());
        let p = angle / std::f64::consts::PI;
        let (expected, noise) = (64.0 * p, 3.0 * (64.0 * p * (1.0 - p) / trials).sqrt());
        let variance = squares / trials - mean * mean;
        println!("{shared} of {n}: mean distance {mean:.3}, theory {expected:.3}, noise {noise:.3}");
        assert!(
            (mean - expected).abs() < 0.01 * expected + noise,
            "{shared} of {n}: {mean}, theory {expected}"
        );
        // The bits are independent, so the distance has a binomial distribution.
        assert!(
            (variance / (64.0 * p * (1.0 - p)) - 1.0).abs() < 0.15,
            "{shared} of {n}: variance {variance}"
        );
    }
}

#[test]
fn shingles_of_real_words_behave_like_random_elements() {
    for family in FAMILIES {
        shingles_of_real_words(&MinHasher::of(family, 84), &family.to_string());
    }
}

fn shingles_of_real_words(hasher: &MinHasher, family: &str) {
    // The words of neighbouring documents are similar numbers, which must not make their hashes similar.
    let (union, both, trials) = (20, 16, 1500);
    for width in [1, 2] {
        let shingler = Shingler::new(&Shingling::words(width, 0)).unwrap();
        let (mut a, mut b, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut sum, mut squares, mut distances) = (0.0, 0.0, 0.0);
        for trial in 0..trials {
            // Takes both sets from the shingles of one text of consecutive numbers; a shingle has `width` numbers.
            let numbers: Vec<String> =
                (0..union + usize::from(width) - 1).map(|i| (trial * 50 + i).to_string()).collect();
            let mut all = Vec::new();
            shingler.occurrences(&numbers.join(" "), &mut Buffers::default(), &mut all);
            assert_eq!(all.len(), union);
            a.clear();
            b.clear();
            a.extend_from_slice(&all[..both + (union - both) / 2]);
            b.extend_from_slice(&all[(union - both) / 2..]);
            hasher.signature(&a, &mut of_a);
            hasher.signature(&b, &mut of_b);
            let error = Resemblance::of_signatures(&of_a, &of_b).value() - 0.8;
            sum += error;
            squares += error * error;
            distances += f64::from(simhash(&all[..1]).distance(simhash(&all[1..2])));
        }
        let (trials, theory) = (f64::from(trials as u32), 0.8 * 0.2 / 84.0);
        let (bias, variance, distance) = (sum / trials, squares / trials, distances / trials);
        println!(
            "{family}, w = {width}: bias {bias:+.5}, variance {:.3} of theory, distance {distance:.2}",
            variance / theory
        );
        assert!(bias.abs() <= 3.0 * (theory / trials).sqrt(), "{family}, w = {width}: bias {bias}");
        assert!(
            variance <= (1.05 + 3.0 * (2.0 / trials).sqrt()) * theory,
            "{family}, w = {width}: {variance}"
        );
        assert!((distance - 32.0).abs() < 3.0 * 4.0 / trials.sqrt(), "w = {width}: distance {distance}");
    }
}

#[test]
fn drawn_sets_have_the_requested_sizes_and_resemblance() {
    let mut random = Random(6);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for cell in &CELLS {
        deal(&mut random, cell.both, cell.union, &mut a, &mut b);
        a.sort_unstable();
        b.sort_unstable();
        assert_eq!(jaccard(&a, &b), (cell.both, cell.union));
        assert_eq!(a.len().max(b.len()), cell.size);
        assert!(cell.union == 5 || a.len() == b.len());
    }
}

fn happens(random: &mut SplitMix, probability: f64) -> bool {
    ((random.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
}

/// Returns the share of fungible pairs among pairs of signatures whose minima are equal with probability `resemblance`.
fn accepted(scheme: FeatureScheme, resemblance: f64, trials: u32, seed: u64) -> f64 {
    let mut random = SplitMix(seed);
    let (mut bytes, mut whole, mut count) = (Vec::new(), [Vec::new(), Vec::new()], 0);
    let mut small = [Vec::new(), Vec::new()];
    for _ in 0..trials {
        let a: Vec<u32> = (0..scheme.minima()).map(|_| random.next() as u32 >> 1).collect();
        let b: Vec<u32> = a
            .iter()
            .map(|minimum| if happens(&mut random, resemblance) { *minimum } else { minimum ^ 1 << 31 })
            .collect();
        for (signature, whole) in [a, b].iter().zip(&mut whole) {
            features(signature, scheme.group_size.into(), &mut bytes, whole);
        }
        let [a, b] = &whole;
        let threshold = scheme.threshold.into();
        count += u32::from(if scheme.feature_bits == 8 {
            let [small_a, small_b] = &mut small;
            small_features(a, small_a);
            small_features(b, small_b);
            fungible(small_a, small_b, threshold)
        } else {
            fungible(a, b, threshold)
        });
    }
    f64::from(count) / f64::from(trials)
}

#[test]
fn share_of_fungible_pairs_equals_the_formula() {
    let trials = 20_000;
    let bytes = |threshold| FeatureScheme { threshold, ..params::Preset::SMALL_8.scheme };
    for (scheme, resemblance) in [
        (params::Preset::BRODER_84.scheme, 0.8),
        (params::Preset::BRODER_84.scheme, 0.9),
        (params::Preset::BRODER_200.scheme, 0.9),
        (params::Preset::LSH_20X6.scheme, 0.5),
        (bytes(3), 0.9),
        (bytes(3), 0.8),
        (bytes(7), 0.99),
        // Features match by chance with a probability of 3.1 % for one byte, and of 0.04 % for two.
        (bytes(1), 0.0),
        (bytes(2), 0.0),
        (bytes(1), 0.5),
    ] {
        let expected = scheme.fungible(resemblance);
        let found = accepted(scheme, resemblance, trials, 3);
        let error = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
        assert!(
            (found - expected).abs() < 4.0 * error,
            "{scheme:?} {resemblance}: {found}, {expected}±{error}"
        );
    }
}
