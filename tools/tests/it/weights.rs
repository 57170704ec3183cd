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

/// Texts of few words, so that these occur often, and families of near ones.
fn documents(random: &mut Random, prefix: &str, count: usize) -> Vec<(String, String)> {
    (0..count)
        .map(|number| {
            let family = random.below(12);
            let words = (0..25).map(|word| match random.below(12) {
                0 => format!("w{}", random.below(9)),
                _ => format!("w{}", (word * (family + 2) + family) % 9),
            });
            (format!("{prefix}{number:03}"), words.collect::<Vec<_>>().join(" "))
        })
        .collect()
}

#[test]
fn documents_that_stay_by_weights_are_the_same_in_one_run_in_one_a_day_and_in_a_stream() {
    let bench = Bench::new();
    let mut random = Random(9);
    let (old, new) = (documents(&mut random, "a", 80), documents(&mut random, "b", 80));
    bench.write("old.jsonl", jsonl(&old));
    bench.write("new.jsonl", jsonl(&new));
    bench.write("all.jsonl", jsonl(&[old, new].concat()));
    let options = "--words 1 --threshold 0.8 --weights tf -q";
    bench.ok(&format!("dedup all.jsonl -o all {options}"));
    bench.ok(&format!("dedup old.jsonl -o day1 {options}"));
    let second = bench.json(&format!("dedup new.jsonl -o day2 --against day1 {options}"));
    assert!(second["removed"].as_u64() > Some(10), "{second}");
    let kept = |folders: &[&str]| -> BTreeSet<String> {
        let read = |folder: &&str| bench.read(&format!("{folder}/kept.jsonl"));
        folders
            .iter()
            .flat_map(|folder| read(folder).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(kept(&["day1", "day2"]), kept(&["all"]));
    // The same where the texts of the day before are gone, and only its index can be queried.
    std::fs::remove_file(bench.path("day1/kept.jsonl")).unwrap();
    bench.ok(&format!("dedup new.jsonl -o day3 --against day1/index {options}"));
    assert_eq!(bench.read("day3/kept.jsonl"), bench.read("day2/kept.jsonl"));
    // An index of the same weights decides as `dedup`, document by document.
    bench.ok("build stream.twx old.jsonl --method minhash --words 1 --threshold 0.8 --minhash-weights tf -q");
    let built = bench.json("stats stream.twx");
    assert_eq!(built["documents"].as_u64(), Some(80), "{built}");
    bench.ok("stream stream2.twx all.jsonl --method minhash --words 1 --threshold 0.8 --minhash-weights tf --drop-duplicates -q");
    let exported = bench.json("stats stream2.twx");
    assert_eq!(exported["documents"].as_u64(), Some(kept(&["all"]).len() as u64), "{exported}");
    let stream = "stream stream2.twx new.jsonl --minhash-weights distinct -q";
    assert!(bench.refused(stream).contains("--minhash-weights"));
}

#[test]
fn weights_of_minima_need_what_they_are_made_of() {
    let bench = Bench::new();
    bench.write("docs.jsonl", jsonl(&documents(&mut Random(1), "d", 20)));
    bench.ok("idf docs.jsonl -o words.idf --words 1 -q");
    let build = "build x.twx docs.jsonl --method minhash --words 1 -q";
    for (options, named) in [
        ("--minhash-weights idf", "--idf FILE"),
        ("--minhash-weights idf --idf words.idf", "minhash=darts"),
        ("--idf words.idf", "--minhash-weights idf"),
        ("--minhash-weights idf --idf words.idf --family darts --sets kept", "fractions"),
    ] {
        let output = bench.command(&format!("{build} {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(named), "{options}: {said}");
    }
    bench.ok(&format!("{build} --minhash-weights idf --idf words.idf --family darts"));
    bench.ok("verify x.twx");
    let near = bench.ok("query x.twx docs.jsonl --resembling 0.5 --verify signature -q");
    assert!(near.lines().count() > 20, "{near}");
}
