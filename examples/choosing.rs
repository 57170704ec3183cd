//! Prints `docs/choosing.md`, so that all numbers in the page are computed:
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
    Binomial, FalsePositiveBound, Goal, Infeasible, Miss, choose, miss_probability, samples_by_chernoff,
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

/// Formats a probability or a number of pairs with three digits; very small and large values have an exponent.
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

fn log10(x: f64) -> String {
    // Adding 0 removes the sign of a negative zero.
    format!("{:.2}", (x * 100.0).round() / 100.0 + 0.0)
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
        "wrong",
        "Chernoff",
        "relative entropy",
        "exact",
        "from the bound to the truth",
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

/// Returns a table of exact miss probabilities, which rise and fall as the number of minima increases.
fn saw() -> String {
    let mut rows = vec![row(["minima", "P[miss]"])];
    for samples in [100, 135, 136, 139, 140, 150, 153, 154, 157, 158] {
        let miss = miss_probability(samples, 0.8, 0.1, Miss::Under);
        rows.push(vec![samples.to_string(), format!("{miss:.5}")]);
    }
    table(&rows)
}

fn polynomials(preset: Preset) -> String {
    let scheme = preset.scheme;
    let threshold = scheme.full_sketch_threshold(0.9);
    let whole = |j: f64| -> Binomial { scheme.full_sketch(j) };
    let mut text = format!(
        "`{}`, {} of {} features of {} minima, beside {threshold} of {} equal minima:\n\n",
        preset.name,
        scheme.threshold,
        scheme.groups,
        scheme.group_size,
        scheme.minima()
    );
    let mut rows = vec![row([
        "resemblance",
        "features accept",
        "full sketch accepts",
        "log10 accepted: features",
        "full sketch",
        "log10 rejected: features",
        "full sketch",
    ])];
    for j in [0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99] {
        rows.push(vec![
            format!("{j:.2}"),
            short(scheme.fungible(j)),
            short(whole(j).at_least(threshold.into())),
            log10(scheme.log10_accepted(j)),
            log10(whole(j).log10_at_least(threshold.into())),
            log10(scheme.log10_rejected(j)),
            log10(whole(j).log10_at_most(u64::from(threshold) - 1)),
        ]);
    }
    text.push_str(&table(&rows));
    text
}

fn presets() -> String {
    let mut rows = vec![row(["name", "k x s, r", "bits", "0.5", "0.7", "0.8", "0.9", "0.95", "chosen by"])];
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
        "by chance",
        "partners of each of 50,000",
        "pairs among 50,000",
        "documents for one pair",
        "documents for a partner each",
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
        "at",
        "false positives at most",
        "at",
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
         Written by `cargo run --example choosing > docs/choosing.md`; the numbers are those of `twindex::planner`, \
         which has the formulas and their sources. They suppose that each of t minima is equal in two documents with \
         the probability of their resemblance J, one independently of the other.\n\n\
         ## How far off is an estimate?\n\n\
         By one standard error, sqrt(J (1 - J) / t), and a little more where few bits of each minimum are kept:\n"
            .to_owned(),
        errors(),
        "## How many minima?\n\n\
         The number for which the estimate is wrong by more than the share delta of J in at most the given share of \
         cases: by Chernoff's bound exp(-J t delta^2 / 2) as in text books (above J: (e^d / (1 + d)^(1 + d))^(J t)), \
         by the bound exp(-t D) from which it is simplified, with D the relative entropy, and exactly.\n"
            .to_owned(),
        samples(),
        "\nThe lecture among our sources takes 100 minima for J = 0.8, delta = 0.1 and 1 %. Its exponent, \
         -k J / 0.02, should be -k J / 200; its other bound lacks the power mu. The bound asks for 1,152 minima and \
         154 are enough. *Enough* means: with that number and with every larger one. The probability is no steady \
         function of the number, as (1 - delta) J t passes a whole number at some steps and not at others, and 136 \
         minima keep 1 % where 139 and 153 do not:\n"
            .to_owned(),
        saw(),
        "## Features beside the full sketch\n\n\
         Documents are fungible if r of their k features agree. This approximates what comparing all minima would \
         say. The full sketch accepts from that number of equal minima on which is nearest to the features at 0.9. \
         Logarithms show the tails: to the left, what false positives cost; to the right, what duplicates are missed.\n"
            .to_owned(),
        polynomials(Preset::BRODER_84),
        polynomials(Preset::BRODER_200),
        "Broder's slides say *more than r* common features; his sum starts *at r*. Only the sum makes his two presets \
         two ways to the same filter, and so r is the least number that suffices, here as in the sum. At 0.9:\n"
            .to_owned(),
        words_and_sum(),
        "## Presets\n\n\
         P(fungible) by resemblance. `twindex build --preset NAME` keeps these bands, and of each feature as many \
         bits, at most 32; an index finds what shares one of them, whatever r is, unless it is asked for more \
         (`--sharing R`; with features of one byte that is 3 or 7 if nothing is said).\n"
            .to_owned(),
        presets(),
        "## Eight bytes a document\n\n\
         Of `small-8`, one byte of each feature, unrelated documents agree in each byte once in 256 pairs. Broder asks \
         for 3 common bytes below about 50,000 documents, and mentions 7 for large collections. There is no edge at \
         50,000: it is where one document in six has an accidental partner, and the share grows with the \
         collection. 7 bytes let no accidents pass, and few near-duplicates. An index, which finds who shares a byte, \
         takes some 15 bytes for these 8.\n"
            .to_owned(),
        accidents(),
        "## More bands than one\n\n\
         20 bands of 6, by resemblance: what asking for several shared bands saves and costs.\n"
            .to_owned(),
        several_bands(),
        "## Chosen for a recall and a bound\n\n\
         `planner::choose` finds the features with the fewest minima that keep a recall and a bound on false \
         positives, or reports which of them is not possible. Some answers:\n"
            .to_owned(),
        chosen(),
    ];
    sections.join("\n")
}
