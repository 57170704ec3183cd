//! `dedup --weights tf` counts the sum of the lesser frequencies by the sum of the greater ones, and no estimate of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Bench, Random, jsonl};

/// How often each word occurs.
fn frequencies(text: &str) -> BTreeMap<&str, u64> {
    let mut found = BTreeMap::new();
    for word in text.split(' ') {
        *found.entry(word).or_insert(0) += 1;
    }
    found
}

#[test]
fn weighted_resemblance_of_all_pairs_is_that_of_brute_force() {
    let bench = Bench::new();
    let mut random = Random(5);
    let documents: Vec<(String, String)> = (0..60)
        .map(|number| {
            let words = 3 + random.below(30);
            let text: Vec<String> = (0..words).map(|_| format!("w{}", random.below(9))).collect();
            (format!("d{number:02}"), text.join(" "))
        })
        .collect();
    bench.write("docs.jsonl", jsonl(&documents));
    let mut wanted = BTreeSet::new();
    for (place, (a, text)) in documents.iter().enumerate() {
        for (b, other) in &documents[place + 1..] {
            let (of_a, of_b) = (frequencies(text), frequencies(other));
            let words: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
            let of = |found: &BTreeMap<&str, u64>, word: &str| found.get(word).copied().unwrap_or(0_u64);
            let least: u64 = words.iter().map(|word| of(&of_a, word).min(of(&of_b, word))).sum();
            let most: u64 = words.iter().map(|word| of(&of_a, word).max(of(&of_b, word))).sum();
            if 10 * least >= 6 * most {
                wanted.insert(format!("{a}\t{b}\t{:.6}\t{least}\t{most}", least as f64 / most as f64));
            }
        }
    }
    assert!(wanted.len() > 10, "{}", wanted.len());
    let options = "--words 1 --threshold 0.6 --pairs all --weights tf -q";
    let report = bench.json(&format!("dedup docs.jsonl -o out {options}"));
    let found: BTreeSet<String> =
        bench.rows("out/pairs.tsv", "a\tb\tresemblance\tintersection\tunion").into_iter().collect();
    assert_eq!(found, wanted);
    // Without weights other pairs are near.
    bench.ok("dedup docs.jsonl -o plain --words 1 --threshold 0.6 --pairs all -q");
    assert_ne!(bench.read("plain/pairs.tsv"), bench.read("out/pairs.tsv"));

    // What goes, and why, by the same weights.
    assert!(report["removed"].as_u64() > Some(5), "{report}");
    bench.ok(&format!("dedup docs.jsonl -o out --force {}", options.replace("--pairs all ", "")));
    let gone = bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion");
    for row in gone.iter().take(5) {
        let key = row.split('\t').next().unwrap();
        let why = bench.json(&format!("why out {key}"));
        assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
    }
    for option in ["--method simhash", "--verify signature", "--join bands"] {
        let mut command = bench.command(&format!("dedup docs.jsonl -o x --weights tf {option}"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--weights goes with"), "{option}");
    }
}
