//! Computes and prints the page `docs/choosing.md`, so that none of its numbers are written by hand:
//!
//! ```sh
//! cargo run --example choosing > docs/choosing.md
//! ```
//!
//! `tests/it/choosing_page.rs` compares the output with the file.

use std::fmt::Write;

use twindex::params::{FeatureScheme, Preset};
use twindex::planner::Banding;
use twindex::planner::{
    Binomial, FalsePositiveBound, Goal, Infeasible, Miss, choose, samples_by_chernoff,
    samples_by_relative_entropy, samples_exact,
};
use twindex::sketch::standard_error;

#[allow(dead_code, reason = "the test that compares the page has a main of its own")]
fn main() {
    print!("{}", page());
}

/// Formats a Markdown table. The first row is the header.
fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (place, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if place == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Formats a probability or a number of pairs with three digits. Very small and very large values get an exponent.
fn short(x: f64) -> String {
    if x == 0.0 {
        "0".to_owned()
    } else if x < 0.001 {
        format!("{x:.1e}")
    } else if x < 50.0 {
        format!("{x:.3}")
    } else if x < 1e9 {
        thousands(x)
    } else {
        format!("{x:.1e}")
    }
}

/// Rounds a number to an integer and formats it with commas.
fn thousands(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn named(scheme: FeatureScheme) -> String {
    format!("{} x {}, r = {}", scheme.groups, scheme.group_size, scheme.threshold)
}

fn errors() -> String {
    let mut rows =
        vec![row(["resemblance", "84 minima", "120", "120 of 8 bits", "120 of 1 bit", "1,000", "4,096"])];
    for j in [0.3, 0.5, 0.8, 0.9, 0.95] {
        let cells = [(84, 32), (120, 32), (120, 8), (120, 1), (1000, 32), (4096, 32)]
            .map(|(minima, bits)| format!("{:.4}", standard_error(j, minima, bits)));
        rows.push([vec![format!("{j}")], cells.to_vec()].concat());
    }
    table(&rows)
}

fn samples() -> String {
    let mut rows = vec![row([
        "J",
        "delta",
        "failure",
        "estimate",
        "Chernoff",
        "relative entropy",
        "exact",
        "Chernoff / exact",
    ])];
    let count =
        |samples: Option<u64>| samples.map_or_else(|| "-".to_owned(), |samples| thousands(samples as f64));
    let mut add = |j, delta, failure, miss| {
        let side = match miss {
            Miss::Under => "below",
            Miss::Over => "above",
            Miss::Either => "either",
        };
        let [chernoff, entropy, exact] = [samples_by_chernoff, samples_by_relative_entropy, samples_exact]
            .map(|samples| samples(j, delta, failure, miss));
        let ratio = chernoff.zip(exact).map_or(0.0, |(bound, exact)| bound as f64 / exact as f64);
        rows.push(vec![
            j.to_string(),
            delta.to_string(),
            failure.to_string(),
            side.to_owned(),
            count(chernoff),
            count(entropy),
            count(exact),
            format!("{ratio:.1}"),
        ]);
    };
    for j in [0.5, 0.8, 0.9, 0.95] {
        for delta in [0.05, 0.1] {
            add(j, delta, 0.01, Miss::Under);
        }
    }
    for miss in [Miss::Over, Miss::Either] {
        add(0.8, 0.1, 0.01, miss);
    }
    for failure in [0.1, 0.001, 0.000_001] {
        add(0.8, 0.1, failure, Miss::Under);
    }
    table(&rows)
}

fn polynomials(preset: Preset) -> String {
    let scheme = preset.scheme;
    let threshold = scheme.full_sketch_threshold(0.9);
    let whole = |j: f64| -> Binomial { scheme.full_sketch(j) };
    let mut text = format!(
        "`{}`, {} of {} features of {} minima, compared with a full sketch that accepts {threshold} of {} equal \
         minima:\n\n",
        preset.name,
        scheme.threshold,
        scheme.groups,
        scheme.group_size,
        scheme.minima()
    );
    let mut rows = vec![row(["resemblance", "features accept", "full sketch accepts"])];
    for j in [0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99] {
        rows.push(vec![
            format!("{j:.2}"),
            short(scheme.fungible(j)),
            short(whole(j).at_least(threshold.into())),
        ]);
    }
    text.push_str(&table(&rows));
    text
}

fn presets() -> String {
    let mut rows = vec![row(["name", "k x s, r", "bits", "0.5", "0.7", "0.8", "0.9", "0.95", "source"])];
    for Preset { name, scheme, source } in Preset::ALL {
        let accepted = [0.5, 0.7, 0.8, 0.9, 0.95].map(|j| short(scheme.fungible(j)));
        let start = vec![format!("`{name}`"), named(scheme), scheme.feature_bits.to_string()];
        rows.push([start, accepted.to_vec(), vec![source.to_owned()]].concat());
    }
    table(&rows)
}

fn words_and_sum() -> String {
    let mut rows = vec![row(["preset", "at least r features", "more than r features"])];
    for preset in [Preset::BRODER_84, Preset::BRODER_200] {
        let [sum, words] =
            [preset.scheme, preset.scheme.more_than_threshold()].map(|scheme| scheme.fungible(0.9));
        rows.push(vec![format!("`{}`", preset.name), format!("{sum:.3}"), format!("{words:.3}")]);
    }
    table(&rows)
}

fn accidents() -> String {
    let mut rows = vec![row([
        "bytes that must agree",
        "probability by chance",
        "accidental partners of each of 50,000 documents",
        "accidental pairs among 50,000 documents",
        "documents with one accidental pair",
        "documents with one accidental partner each",
        "P(fungible) at 0.9",
    ])];
    for threshold in 1..=8 {
        let scheme = FeatureScheme { threshold, ..Preset::SMALL_8.scheme };
        let chance = scheme.by_chance();
        rows.push(vec![
            format!("{threshold} of 8"),
            short(chance),
            short(chance * 49_999.0),
            short(scheme.accidental_pairs(50_000)),
            short((2.0 / chance).sqrt()),
            short(1.0 / chance),
            short(scheme.fungible(0.9)),
        ]);
    }
    table(&rows)
}

fn chosen() -> String {
    let mut rows = vec![row([
        "recall",
        "at resemblance",
        "false positives at most",
        "at resemblance",
        "minima at most",
        "r at most",
        "answer",
        "minima",
        "recall",
        "false positives",
    ])];
    for (recall, resemblance, at_most, strange, minima, thresholds) in [
        (0.995, 0.8, 1.0, 0.4, 120, 1),
        (0.995, 0.8, 0.07, 0.4, 120, 1),
        (0.995, 0.8, 0.07, 0.4, 120, 4),
        (0.995, 0.8, 0.001, 0.4, 120, 1),
        (0.995, 0.8, 0.001, 0.4, 120, 4),
        (0.995, 0.8, 0.001, 0.4, 400, 1),
        (0.9, 0.9, 1e-6, 0.5, 256, 1),
        (0.9, 0.9, 1e-6, 0.5, 256, 4),
        (0.9999, 0.1, 1.0, 0.0, 64, 1),
    ] {
        let false_positives = FalsePositiveBound { resemblance: strange, at_most };
        let goal = Goal { false_positives, minima, thresholds, ..Goal::recall(recall, resemblance) };
        let (answer, scheme) = match choose(&goal) {
            Ok(scheme) => (named(scheme), scheme),
            Err(Infeasible::Recall { best, .. }) => (format!("no such recall; best {}", named(best)), best),
            Err(Infeasible::FalsePositives { best, .. }) => {
                (format!("too many false positives; best {}", named(best)), best)
            }
            Err(other) => (other.to_string(), FeatureScheme::new(0, 0, 0)),
        };
        rows.push(vec![
            recall.to_string(),
            resemblance.to_string(),
            at_most.to_string(),
            strange.to_string(),
            minima.to_string(),
            thresholds.to_string(),
            answer,
            scheme.minima().to_string(),
            format!("{:.4}", scheme.fungible(resemblance)),
            short(scheme.fungible(strange)),
        ]);
    }
    table(&rows)
}

fn several_bands() -> String {
    let banding = Banding { bands: 20, rows: 6 };
    let mut rows = vec![row(["shared bands", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"])];
    for r in 1..=4 {
        let cells = (2..=9).map(|tenths| short(banding.recall_sharing(f64::from(tenths) / 10.0, r)));
        rows.push([vec![format!("{r} or more")], cells.collect()].concat());
    }
    table(&rows)
}

/// Returns the content of `docs/choosing.md`.
pub(crate) fn page() -> String {
    let sections = [
        "# Choosing parameters\n\n\
         Written by `cargo run --example choosing > docs/choosing.md`; the numbers are computed by \
         `twindex::planner`, which has the formulas and their sources. The formulas assume that each of t minima is \
         equal in two documents with probability J, their resemblance, independently of the others.\n\n\
         ## Standard error of an estimate\n\n\
         The standard error is sqrt(J (1 - J) / t), and slightly more if only few bits of each minimum are stored:\n"
            .to_owned(),
        errors(),
        "## How many minima?\n\n\
         The table lists the smallest number of minima such that, with this number and every larger one, the estimate \
         is wrong by more than delta times J in at most the given share of cases (*failure*). *Chernoff* is the bound \
         of textbooks, exp(-J t delta^2 / 2) for estimates below J and (e^d / (1 + d)^(1 + d))^(J t) for estimates \
         above J, where d is delta. *Relative entropy* is the tighter bound exp(-t D), where D is the relative \
         entropy; the first bound is a simplification of it. *Exact* is computed from the binomial distribution.\n"
            .to_owned(),
        samples(),
        "\nThe probability of a failure does not fall steadily with the number of minima, because (1 - delta) J t passes \
         an integer at some steps and not at others: for J = 0.8, delta = 0.1 and 1 %, 136 minima are enough, 139 and 153 \
         are not, and 154 and every larger number are.\n"
            .to_owned(),
        "## Features compared with the full sketch\n\n\
         Two documents are *fungible*, accepted as near-duplicates, if at least r of their k features agree. This \
         approximates a comparison of all minima, the full sketch. The full sketch accepts a pair if at least a given \
         number of minima are equal. The table uses the number for which its probability of acceptance at resemblance \
         0.9 is nearest to that of the features.\n"
            .to_owned(),
        polynomials(Preset::BRODER_84),
        "Broder's slides require *more than r* common features, but his sum starts *at r*. His two presets are nearly \
         equal filters only by the sum. So here, as in the sum, r is the smallest number that suffices. At \
         resemblance 0.9:\n"
            .to_owned(),
        words_and_sum(),
        "## Presets\n\n\
         P(fungible) by resemblance. An index built with `twindex build --preset NAME` stores these bands, with the \
         given bits of each feature, at most 32. A query finds documents that share at least one feature, whatever r \
         is, unless `--sharing R` requires more. For features of one byte, the default of `--sharing` is 3, and 7 from \
         50,000 documents on.\n"
            .to_owned(),
        presets(),
        "## Eight bytes a document\n\n\
         `small-8` uses one byte of each feature. Two unrelated documents agree in a given byte with probability \
         1/256. Broder requires 3 common bytes for fewer than about 50,000 documents, and mentions 7 for large \
         collections. 50,000 is no sharp limit: at this size one document in six has an accidental partner, and the \
         share grows with the collection. If 7 bytes must agree, there are no accidental pairs, but few \
         near-duplicates are found. An index stores these 8 bytes in about 15 bytes, to find the documents that share \
         a byte.\n"
            .to_owned(),
        accidents(),
        "## Several shared bands\n\n\
         20 bands of 6: the probability that two documents share at least this many bands, by resemblance. If more \
         bands must be shared, there are fewer candidates, and fewer near-duplicates are found.\n"
            .to_owned(),
        several_bands(),
        "## Features for a recall and a bound on false positives\n\n\
         `planner::choose` finds the features with the fewest minima that reach a given recall and keep false \
         positives within a bound, or reports which of the two is impossible. Some results:\n"
            .to_owned(),
        chosen(),
    ];
    sections.join("\n")
}
