//! Sketches against theory, for random sets of known resemblance. Every family that looks plausible gives
//! good estimates for long documents; what tells a sound one from an unsound one is the variance for short
//! documents and the probability that a whole group of minima matches. So these are tested, by numbers.
//!
//! Seeds are fixed, so a test passes always or never. The bounds are what the theory allows plus three
//! standard errors of the measurement itself; other seeds would pass in 99.8 % of runs each.

use twindex::params::Shingling;
use twindex::sketch::{MinHasher, Resemblance, Shingler, features, jaccard, matches, pack, simhash};

/// Splitmix64 (Steele, Lea and Flood 2014): independent of the hashes under test but for its shape, which
/// serves.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Two sets whose union has `union` elements, of which `both` are in both; the rest is dealt alternately.
    fn sets(&mut self, both: usize, union: usize) -> (Vec<u64>, Vec<u64>) {
        let mut a: Vec<u64> = (0..both).map(|_| self.next()).collect();
        let mut b = a.clone();
        for i in both..union {
            if i % 2 == 0 { &mut a } else { &mut b }.push(self.next());
        }
        (a, b)
    }
}

/// A row of the experiments: elements in the union, in both sets, and how many pairs of sets are drawn.
struct Case {
    union: usize,
    both: usize,
    trials: usize,
}

/// Unions of 5, 20, 100 and 1000 shingles at J near .5, .8 and .9 (.4, .8 and 1 - 1/5 where 5 allow no
/// others).
const CASES: [Case; 12] = [
    Case { union: 5, both: 2, trials: 4000 },
    Case { union: 5, both: 3, trials: 4000 },
    Case { union: 5, both: 4, trials: 4000 },
    Case { union: 20, both: 10, trials: 3000 },
    Case { union: 20, both: 16, trials: 3000 },
    Case { union: 20, both: 18, trials: 3000 },
    Case { union: 100, both: 50, trials: 2000 },
    Case { union: 100, both: 80, trials: 2000 },
    Case { union: 100, both: 90, trials: 2000 },
    Case { union: 1000, both: 500, trials: 1000 },
    Case { union: 1000, both: 800, trials: 1000 },
    Case { union: 1000, both: 900, trials: 1000 },
];

/// Draws pairs of sets and hands over their signatures, `trials` times.
fn draw(case: &Case, minima: usize, seed: u64, mut each: impl FnMut(&[u32], &[u32])) {
    let hasher = MinHasher::new(minima);
    let mut random = Random(seed);
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for _ in 0..case.trials {
        let (a, b) = random.sets(case.both, case.union);
        hasher.signature(&a, &mut of_a);
        hasher.signature(&b, &mut of_b);
        each(&of_a, &of_b);
    }
}

#[test]
fn minima_match_with_the_probability_of_the_resemblance_and_no_more_variance_than_independent_ones() {
    for minima in [84, 120] {
        for case in &CASES {
            let j = case.both as f64 / case.union as f64;
            let theory = j * (1.0 - j) / minima as f64;
            let (mut sum, mut squares) = (0.0, 0.0);
            draw(case, minima, 1, |a, b| {
                let error = Resemblance::of_signatures(a, b).value() - j;
                sum += error;
                squares += error * error;
            });
            let trials = case.trials as f64;
            let (bias, variance) = (sum / trials, squares / trials);
            let allowed = 3.0 * (theory / trials).sqrt();
            let name = format!("{} of {} shared, {minima} minima", case.both, case.union);
            println!(
                "{name}: bias {bias:+.5}, allowed {allowed:.5}; variance {:.3} of theory",
                variance / theory
            );
            assert!(bias.abs() <= allowed, "{name}: bias {bias}, allowed {allowed}");
            // A sample variance of n trials has a relative standard error of sqrt(2 / n).
            let excess = 1.05 + 3.0 * (2.0 / trials).sqrt();
            assert!(variance <= excess * theory, "{name}: variance {} of theory", variance / theory);
        }
    }
}

#[test]
fn whole_groups_of_minima_match_as_often_as_independent_minima_would() {
    const ROWS: u8 = 14;
    let cases = [(20, 16, 6000), (100, 80, 4000), (1000, 800, 1500), (20, 18, 3000), (100, 90, 2000)];
    for (union, both, trials) in cases {
        let case = Case { union, both, trials };
        let p = (case.both as f64 / case.union as f64).powi(i32::from(ROWS));
        let (mut equal, mut groups) = (0, 0);
        let (mut scratch, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new());
        draw(&case, 6 * usize::from(ROWS), 2, |a, b| {
            features(a, ROWS.into(), &mut scratch, &mut of_a);
            features(b, ROWS.into(), &mut scratch, &mut of_b);
            equal += of_a.iter().zip(&of_b).filter(|(a, b)| a == b).count();
            groups += of_a.len();
        });
        let (found, n) = (equal as f64 / groups as f64, groups as f64);
        // The six groups of one pair are not quite independent: count them as three.
        let noise = 3.0 * (p * (1.0 - p) / (n / 2.0)).sqrt();
        println!("{both} of {union}: a group of {ROWS} matches {found:.4}, theory {p:.4}, noise {noise:.4}");
        assert!(found <= 1.03 * p + noise, "{both} of {union}: {found}, theory {p}");
        assert!(found >= 0.8 * p - noise, "{both} of {union}: {found}, theory {p}");
    }
}

#[test]
fn estimates_from_a_few_bits_are_unbiased_and_their_standard_error_is_honest() {
    for bits in [1, 2, 4, 8, 16] {
        let case = Case { union: 200, both: 160, trials: 1500 };
        let (mut sum, mut squares, mut claimed) = (0.0, 0.0, 0.0);
        let (mut packed_a, mut packed_b) = (Vec::new(), Vec::new());
        draw(&case, 120, 3, |a, b| {
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
        let trials = case.trials as f64;
        let (bias, deviation, claimed) = (sum / trials, (squares / trials).sqrt(), claimed / trials);
        println!("{bits} bits: bias {bias:+.5}, deviation {deviation:.4}, claimed {claimed:.4}");
        assert!(bias.abs() <= 3.0 * claimed / trials.sqrt(), "{bits} bits: bias {bias}");
        // One-permutation minima vary less than independent ones, so the claim may be a little high, not low.
        assert!(
            deviation < 1.06 * claimed && deviation > 0.7 * claimed,
            "{bits} bits: {deviation}, {claimed}"
        );
    }
}

#[test]
fn minima_are_uniform_over_elements_and_bits() {
    // Of n elements each is the least of a component in one of n cases; and the low bits kept are balanced.
    let hasher = MinHasher::new(120);
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
        // The components of one set share its first element's luck: count them by the trial, not by the
        // minimum.
        assert!((found - p).abs() < 3.0 * (p * (1.0 - p) / all as f64).sqrt() * 1.1, "{n}: {found}");
        for (bit, count) in ones.iter().enumerate() {
            let share = f64::from(*count) / all as f64;
            assert!((share - 0.5).abs() < 0.01, "{n} elements, bit {bit}: {share}");
        }
    }
}

#[test]
fn the_hamming_distance_of_fingerprints_follows_the_angle() {
    // Sets of n elements each that share c are at an angle of acos(c / n); a bit differs with angle / pi. The
    // bits of a finite set only tend to that, so n is odd (no ties) and large, and one per cent is allowed
    // for it.
    let mut random = Random(5);
    for (n, shared) in [(401, 200), (401, 320), (401, 380), (1001, 990)] {
        let trials = 1500;
        let (mut total, mut squares) = (0.0, 0.0);
        for _ in 0..trials {
            let (a, b) = random.sets(shared, 2 * n - shared);
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
        // Bits vote independently: the distance is binomial.
        assert!(
            (variance / (64.0 * p * (1.0 - p)) - 1.0).abs() < 0.15,
            "{shared} of {n}: variance {variance}"
        );
    }
}

#[test]
fn shingles_of_real_words_are_as_good_as_random_ones() {
    // The words and numbers of neighbouring documents differ little; their hashes must not show it.
    let hasher = MinHasher::new(84);
    let (union, both, trials) = (20, 16, 1500);
    for width in [1, 2] {
        let shingler = Shingler::new(&Shingling::words(width, 0));
        let (mut a, mut b, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut sum, mut squares, mut distances) = (0.0, 0.0, 0.0);
        for trial in 0..trials {
            // One text of `width` consecutive numbers a shingle; the sets are cut from its shingles.
            let numbers: Vec<String> =
                (0..union + usize::from(width) - 1).map(|i| (trial * 50 + i).to_string()).collect();
            let mut all = Vec::new();
            shingler.occurrences(&numbers.join(" "), &mut Vec::new(), &mut all);
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
            "w = {width}: bias {bias:+.5}, variance {:.3} of theory, distance {distance:.2}",
            variance / theory
        );
        assert!(bias.abs() <= 3.0 * (theory / trials).sqrt(), "w = {width}: bias {bias}");
        assert!(variance <= (1.05 + 3.0 * (2.0 / trials).sqrt()) * theory, "w = {width}: {variance}");
        assert!((distance - 32.0).abs() < 3.0 * 4.0 / trials.sqrt(), "w = {width}: distance {distance}");
    }
}

#[test]
fn the_sets_drawn_have_the_resemblance_they_are_meant_to() {
    let mut random = Random(6);
    for case in &CASES {
        let (mut a, mut b) = random.sets(case.both, case.union);
        a.sort_unstable();
        b.sort_unstable();
        assert_eq!(jaccard(&a, &b), (case.both, case.union));
    }
}
