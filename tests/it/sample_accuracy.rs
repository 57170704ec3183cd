//! Tests samples against theory: bottom-t and 0-mod-m estimates of the resemblance and the containment of random sets
//! must be unbiased, and their standard errors must agree with the observed deviation.
//!
//! Seeds are fixed, so the results are the same in every run. The bias may be up to three standard errors of the
//! measurement. The claimed standard error is the root mean square over all trials. It may be at most 10 % below the
//! observed deviation. It may exceed the deviation by 15 % if at least 25 shingles are checked on average, by 30 % if at
//! least 5 are, and by 60 % otherwise, where the estimate of the error is deliberately cautious. At containment 1, where
//! nothing deviates, the claimed error must be positive. Averaged over all cases, it must be within 10 % of the
//! deviation.

use twindex::params::MODULAR_MAX;
use twindex::sketch::samples::{bottom, modular};
use twindex::sketch::{Resemblance, Sample, containment, jaccard};
use twindex_kernel::splitmix::SplitMix;

/// Returns two random sets of `a` and `b` elements with `both` elements in common.
fn sets(random: &mut SplitMix, a: usize, b: usize, both: usize) -> (Vec<u64>, Vec<u64>) {
    let common: Vec<u64> = (0..both).map(|_| random.next()).collect();
    let mut rest = |size: usize| {
        let mut set = common.clone();
        set.extend((both..size).map(|_| random.next()));
        set
    };
    (rest(a), rest(b))
}

const T: usize = 100;
const M: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Bottom,
    Modular,
}

/// Buffers for the samples of two sets.
struct Sketches {
    scratch: Vec<u64>,
    a: Vec<u64>,
    b: Vec<u64>,
}

impl Sketches {
    fn of(&mut self, method: Method, a: &[u64], b: &[u64]) -> (Sample<'_>, Sample<'_>) {
        match method {
            Method::Bottom => {
                bottom(a, T, &mut self.scratch, &mut self.a);
                bottom(b, T, &mut self.scratch, &mut self.b);
                (Sample::bottom(&self.a, T), Sample::bottom(&self.b, T))
            }
            Method::Modular => {
                modular(a, M, &mut self.a);
                modular(b, M, &mut self.b);
                (Sample::modular(&self.a, M), Sample::modular(&self.b, M))
            }
        }
    }
}

/// The value, the standard error, and the number of checked shingles of an estimate; `None` if the samples have no
/// shingle.
type Estimated = Option<(f64, f64, usize)>;

/// Draws pairs of sets and compares the estimates with `truth`.
fn check(
    name: &str,
    sizes: (usize, usize, usize),
    method: Method,
    truth: f64,
    estimate: impl Fn(&Sample<'_>, &Sample<'_>) -> Estimated,
    ratios: &mut Vec<f64>,
) {
    let trials = if sizes.0.max(sizes.1) > 500 { 5000 } else { 20_000 };
    let mut random = SplitMix(sizes.0 as u64 * 31 + sizes.2 as u64);
    let mut sketches = Sketches { scratch: Vec::new(), a: Vec::new(), b: Vec::new() };
    let (mut sum, mut squares, mut claimed, mut looked_at, mut known) = (0.0, 0.0, 0.0, 0, 0_u32);
    let mut least_claim = f64::INFINITY;
    for _ in 0..trials {
        let (a, b) = sets(&mut random, sizes.0, sizes.1, sizes.2);
        let (a, b) = sketches.of(method, &a, &b);
        let Some((value, error, sampled)) = estimate(&a, &b) else { continue };
        known += 1;
        sum += value - truth;
        squares += (value - truth) * (value - truth);
        claimed += error * error;
        least_claim = error.min(least_claim);
        looked_at += sampled;
    }
    let known = f64::from(known);
    let (bias, deviation, claimed) = (sum / known, (squares / known).sqrt(), (claimed / known).sqrt());
    let looked_at = looked_at as f64 / known;
    let allowed = 3.0 * deviation / known.sqrt() + 1e-12;
    let name = format!("{name}, {method:?}, sizes {sizes:?}");
    println!(
        "{name}: {known} of {trials} known by {looked_at:.1}; bias {bias:+.5} of {allowed:.5} allowed; deviation \
         {deviation:.4}, claimed {claimed:.4} ({:.3})",
        claimed / deviation
    );
    // Most pairs have an estimate, unless hardly any element is expected in a sample.
    assert!(known / f64::from(trials) > 0.8, "{name}: {known} of {trials} known");
    assert!(bias.abs() <= allowed, "{name}: bias {bias}, allowed {allowed}");
    if truth >= 1.0 {
        assert!(deviation < 1e-12 && least_claim > 0.0, "{name}: {deviation}, {least_claim}");
        return;
    }
    let max =
        [(25.0, 1.15), (5.0, 1.3)].iter().find(|(min, _)| looked_at >= *min).map_or(1.6, |(_, max)| *max);
    assert!((0.9..=max).contains(&(claimed / deviation)), "{name}: {claimed} claimed, {deviation} seen");
    ratios.push(claimed / deviation);
}

fn check_average(ratios: &[f64]) {
    let average = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!("claimed over seen, average of {} cases: {average:.3}", ratios.len());
    assert!((0.9..1.1).contains(&average), "{average}");
}

fn of_resemblance(a: &Sample<'_>, b: &Sample<'_>) -> Estimated {
    let resemblance = a.resemblance(b)?;
    assert!(matches!(resemblance, Resemblance::Estimate { .. }), "{resemblance:?}");
    // The number of sampled hashes in the union, derived from the two containments.
    let (in_a, in_b) = (a.containment(b), b.containment(a));
    let common = in_a.or(in_b).map_or(0, |known| known.common);
    let looked_at = in_a.map_or(0, |known| known.sampled) + in_b.map_or(0, |known| known.sampled) - common;
    Some((resemblance.value(), resemblance.standard_error(), looked_at))
}

fn of_containment(a: &Sample<'_>, b: &Sample<'_>) -> Estimated {
    let contained = a.containment(b)?;
    assert!(!contained.is_exact(), "{contained:?}");
    Some((contained.value(), contained.standard_error(), contained.sampled))
}

/// Returns the sizes `(a, b, both)` of two equally large sets whose resemblance is nearest to `tenths` / 10.
fn resembling(size: usize, tenths: usize) -> (usize, usize, usize) {
    // J = both / (2 size - both), so both = 2 J / (1 + J) * size, rounded to the nearest integer.
    let whole = 10 + tenths;
    (size, size, (2 * tenths * size + whole / 2) / whole)
}

#[test]
fn resemblance_estimates_are_unbiased_with_correct_standard_errors() {
    let mut ratios = Vec::new();
    for size in [20, 100, 1000] {
        for j in [5, 8, 9] {
            let sizes = resembling(size, j);
            let truth = sizes.2 as f64 / (2 * size - sizes.2) as f64;
            for method in [Method::Bottom, Method::Modular] {
                if method == Method::Modular || size >= T {
                    check("resemblance", sizes, method, truth, of_resemblance, &mut ratios);
                }
            }
        }
    }
    check_average(&ratios);
}

#[test]
fn containment_estimates_of_unequal_sets_are_unbiased() {
    let mut ratios = Vec::new();
    for size in [20_usize, 100, 1000] {
        // Containment in tenths. At most a third of the larger set is contained in the smaller one.
        for (contained, a, b) in
            [(3, size, 3 * size), (8, size, 3 * size), (10, size, 3 * size), (3, 3 * size, size)]
        {
            let both = contained * a / 10;
            let truth = both as f64 / a as f64;
            for method in [Method::Bottom, Method::Modular] {
                if method == Method::Modular || a.max(b) >= T {
                    check("containment", (a, b, both), method, truth, of_containment, &mut ratios);
                }
            }
        }
    }
    check_average(&ratios);
}

#[test]
fn sets_of_fewer_than_t_hashes_are_compared_exactly() {
    let mut random = SplitMix(7);
    let mut sketches = Sketches { scratch: Vec::new(), a: Vec::new(), b: Vec::new() };
    for (a, b, both) in [(20, 20, 13), (99, 99, 90), (1, 99, 1), (5, 60, 0)] {
        for _ in 0..200 {
            let (a, b) = sets(&mut random, a, b, both);
            let (x, y) = sketches.of(Method::Bottom, &a, &b);
            let (mut a, mut b) = (a.clone(), b.clone());
            a.sort_unstable();
            b.sort_unstable();
            let (intersection, union) = jaccard(&a, &b);
            assert_eq!(x.resemblance(&y), Some(Resemblance::Exact { intersection, union }));
            let found = x.containment(&y).unwrap();
            assert!(found.is_exact());
            assert_eq!((found.common, found.sampled), containment(&a, &b));
        }
    }
}

/// The format limits the number of hashes of a sample; longer samples are truncated.
#[test]
fn truncated_samples_are_compared_over_their_common_range() {
    let mut random = SplitMix(9);
    let mut sketches = Sketches { scratch: Vec::new(), a: Vec::new(), b: Vec::new() };
    let (mut sum, mut squares, mut claimed) = (0.0, 0.0, 0.0);
    let trials = 24;
    for _ in 0..trials {
        // Sets of 100,000 and 150,000 shingles with 75,000 in common. With modulus 1, all hashes are kept up to the
        // limit.
        let (a, b) = sets(&mut random, 100_000, 150_000, 75_000);
        modular(&a, 1, &mut sketches.a);
        modular(&b, 1, &mut sketches.b);
        assert_eq!((sketches.a.len(), sketches.b.len()), (MODULAR_MAX, MODULAR_MAX));
        let (a, b) = (Sample::modular(&sketches.a, 1), Sample::modular(&sketches.b, 1));
        let contained = a.containment(&b).unwrap();
        let error = contained.value() - 0.75;
        sum += error;
        squares += error * error;
        claimed += contained.standard_error().powi(2);
    }
    let (deviation, trials) = ((squares / f64::from(trials)).sqrt(), f64::from(trials));
    println!("bias {}, deviation {deviation}, claimed {}", sum / trials, (claimed / trials).sqrt());
    assert!((sum / trials).abs() < 3.0 * deviation / trials.sqrt());
    // The deviation is measured in only 24 trials, so its relative error is about 15 %.
    assert!((0.6..1.6).contains(&((claimed / trials).sqrt() / deviation)));
}
