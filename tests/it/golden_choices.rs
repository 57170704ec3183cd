//! Tests the formulas for choosing parameters against exact fractions. A second implementation,
//! `tests/second/choices.py`, wrote them to `tests/golden/choices.tsv`; it rounds only the logarithms at the end.

use twindex::params::FeatureScheme;
use twindex::planner::{
    Binomial, FalsePositiveBound, Goal, Infeasible, Miss, choose, samples_by_chernoff,
    samples_by_relative_entropy, samples_exact,
};

const FILE: &str = include_str!("../golden/choices.tsv");

/// Returns the rows of one kind, each as a list of columns.
fn rows(kind: &str) -> Vec<Vec<&'static str>> {
    let rows: Vec<Vec<&str>> = FILE
        .lines()
        .filter_map(|line| line.strip_prefix(kind)?.strip_prefix('\t'))
        .map(|columns| columns.split('\t').collect())
        .collect();
    assert!(!rows.is_empty(), "no rows of {kind}");
    rows
}

#[track_caller]
fn parse<T: std::str::FromStr>(column: &str) -> T {
    column.parse().unwrap_or_else(|_| panic!("`{column}` is no number"))
}

/// Checks that two logarithms differ by at most 4e-12 plus 1e-14 times the expected value. If the expected value is near
/// 0, their relative difference must also be at most 1e-10.
#[track_caller]
fn same_log10(found: f64, expected: &str, what: &[&str]) {
    let expected: f64 = parse(expected);
    let near = (found - expected).abs() <= 4e-12 + 1e-14 * expected.abs();
    // Near 0, the logarithm is about the distance of the number from 1, which must be accurate.
    let sharp = expected.abs() > 1e-3 || (found - expected).abs() <= 1e-10 * expected.abs();
    assert!(
        found.to_bits() == expected.to_bits() || (near && sharp),
        "{found:e}, expected {expected:e}: {what:?}"
    );
}

#[test]
fn binomial_tails_are_exact_below_the_smallest_double() {
    let mut smallest = 0.0_f64;
    for row in rows("tails") {
        let [n, p, k, at_least, below] = row[..] else { panic!("{row:?}") };
        let (events, k) = (Binomial::new(parse(n), parse(p)), parse::<u64>(k));
        same_log10(events.log10_at_least(k), at_least, &row);
        same_log10(events.log10_at_most(k - 1), below, &row);
        assert!((events.at_least(k) - 10_f64.powf(parse(at_least))).abs() < 1e-11, "{row:?}");
        assert!((events.at_most(k - 1) - 10_f64.powf(parse(below))).abs() < 1e-11, "{row:?}");
        smallest = smallest.min(parse(at_least)).min(parse(below));
    }
    assert!(smallest < -1000.0, "the file goes beyond the exponents of doubles");
}

#[test]
fn number_of_minima_needed_is_exact() {
    for row in rows("samples") {
        let [j, delta, failure, miss, chernoff, entropy, exact] = row[..] else { panic!("{row:?}") };
        let miss = match miss {
            "under" => Miss::Under,
            "over" => Miss::Over,
            _ => Miss::Either,
        };
        let (j, delta, failure) = (parse(j), parse(delta), parse(failure));
        assert_eq!(samples_by_chernoff(j, delta, failure, miss), Some(parse(chernoff)), "{row:?}");
        assert_eq!(samples_by_relative_entropy(j, delta, failure, miss), Some(parse(entropy)), "{row:?}");
        assert_eq!(samples_exact(j, delta, failure, miss), Some(parse(exact)), "{row:?}");
    }
}

fn scheme(columns: &[&str]) -> FeatureScheme {
    let [groups, group_size, threshold, bits] = columns else { panic!("{columns:?}") };
    let feature_bits = parse(bits);
    FeatureScheme { feature_bits, ..FeatureScheme::new(parse(groups), parse(group_size), parse(threshold)) }
}

#[test]
fn probability_of_fungible_pairs_equals_the_exact_polynomial() {
    for row in rows("scheme") {
        let (features, j) = (scheme(&row[..4]), parse(row[4]));
        same_log10(features.log10_accepted(j), row[5], &row);
        same_log10(features.log10_rejected(j), row[6], &row);
        assert!((features.fungible(j) - 10_f64.powf(parse(row[5]))).abs() < 1e-12, "{row:?}");
    }
}

#[test]
fn expected_number_of_chance_pairs_is_exact() {
    for row in rows("accidents") {
        let pairs = scheme(&row[..4]).accidental_pairs(parse(row[4]));
        same_log10(pairs.log10(), row[5], &row);
    }
}

#[test]
fn chosen_scheme_equals_an_exhaustive_search() {
    for row in rows("choose") {
        let [j, recall, strange, at_most, minima, thresholds, bits, answer] = row[..] else {
            panic!("{row:?}")
        };
        let goal = Goal {
            resemblance: parse(j),
            recall: parse(recall),
            false_positives: FalsePositiveBound { resemblance: parse(strange), at_most: parse(at_most) },
            minima: parse(minima),
            thresholds: parse(thresholds),
            feature_bits: parse(bits),
        };
        let text =
            |scheme: FeatureScheme| format!("{} {} {}", scheme.groups, scheme.group_size, scheme.threshold);
        let found = match choose(&goal) {
            Ok(scheme) => text(scheme),
            Err(Infeasible::Recall { .. }) => "recall".to_owned(),
            Err(Infeasible::FalsePositives { best, .. }) => format!("strangers {}", text(best)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, answer, "{row:?}");
    }
}
