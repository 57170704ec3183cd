//! `dedup --weights` must compute exactly the sum of the smaller weights divided by the sum of the larger weights: for
//! term frequencies, for these times inverse document frequencies, and for the weights of vectors, in whole units.

use std::collections::{BTreeMap, BTreeSet};

use twindex::sketch::idf;

use crate::support::{Bench, Random, jsonl};

/// Returns the number of occurrences of each word.
fn frequencies(text: &str) -> BTreeMap<&str, u64> {
    let mut found = BTreeMap::new();
    for word in text.split(' ') {
        *found.entry(word).or_insert(0) += 1;
    }
    found
}

#[test]
fn weighted_resemblance_equals_brute_force() {
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
    let options = "--words 1 --threshold 0.6 --weights tf -q";
    let report = bench.json(&format!("dedup docs.jsonl -o out {options}"));
    let gone = bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion");
    assert_eq!(gone.iter().cloned().collect::<BTreeSet<_>>(), removed_by_rule(&wanted));
    // Without weights, other pairs are near.
    bench.ok("dedup docs.jsonl -o plain --words 1 --threshold 0.6 -q");
    assert_ne!(bench.read("plain/pairs.tsv"), bench.read("out/pairs.tsv"));

    // Removals and their explanations use the same weights.
    assert!(report["removed"].as_u64() > Some(5), "{report}");
    for row in gone.iter().take(5) {
        let key = row.split('\t').next().unwrap();
        let why = bench.json(&format!("why out {key}"));
        assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
    }
    for option in ["--near within:3", "--near equal"] {
        let mut command = bench.command(&format!("dedup docs.jsonl -o x --weights tf {option}"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--weights goes with"), "{option}");
    }
}

/// Returns the lines of `pairs.tsv` by the rule, from the lines of all near pairs, in which the document that is first
/// in the input is first. Keys have the order of the input.
fn removed_by_rule(pairs: &BTreeSet<String>) -> BTreeSet<String> {
    let mut earlier: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for pair in pairs {
        let (first, rest) = pair.split_once('\t').unwrap();
        let (later, score) = rest.split_once('\t').unwrap();
        earlier.entry(later).or_default().push((first, score));
    }
    let (mut gone, mut lines) = (BTreeSet::new(), BTreeSet::new());
    for (document, near) in earlier {
        if let Some((kept, score)) = near.iter().find(|(first, _)| !gone.contains(first)) {
            gone.insert(document);
            lines.insert(format!("{document}\t{kept}\t{score}"));
        }
    }
    lines
}

/// Returns texts over a small vocabulary, so that words are repeated, with groups of near texts.
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
fn weighted_dedup_equals_daily_runs_and_streams() {
    let bench = Bench::new();
    let mut random = Random(9);
    let (old, new) = (documents(&mut random, "a", 80), documents(&mut random, "b", 80));
    bench.write("old.jsonl", jsonl(&old));
    bench.write("new.jsonl", jsonl(&new));
    bench.write("all.jsonl", jsonl(&[old, new].concat()));
    let options = "--words 1 --threshold 0.8 --weights tf -q";
    bench.ok(&format!("dedup all.jsonl -o all {options}"));
    bench.ok(&format!("dedup old.jsonl -o day1 --index kept {options}"));
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
    // The result is the same if the texts of the previous day are missing and only its index can be queried.
    std::fs::remove_file(bench.path("day1/kept.jsonl")).unwrap();
    bench.ok(&format!("dedup new.jsonl -o day3 --against day1/index {options}"));
    assert_eq!(bench.read("day3/kept.jsonl"), bench.read("day2/kept.jsonl"));
    // A stream into an index with the same weights makes the same decisions as `dedup`.
    bench.ok("build stream.twx old.jsonl --method minhash --words 1 --near 0.8 --weights tf -q");
    let built = bench.json("stats stream.twx");
    assert_eq!(built["documents"].as_u64(), Some(80), "{built}");
    bench.ok("stream stream2.twx all.jsonl --method minhash --words 1 --near 0.8 --weights tf --drop-duplicates -q");
    let exported = bench.json("stats stream2.twx");
    assert_eq!(exported["documents"].as_u64(), Some(kept(&["all"]).len() as u64), "{exported}");
    let stream = "stream stream2.twx new.jsonl --weights distinct -q";
    assert!(bench.refused(stream).contains("--weights"));
}

#[test]
fn minhash_weights_require_minhash() {
    let bench = Bench::new();
    bench.write("docs.jsonl", jsonl(&documents(&mut Random(1), "d", 20)));
    bench.ok("idf docs.jsonl -o words.idf --words 1 -q");
    let build = "build x.twx docs.jsonl --method minhash --words 1 -q";
    for (options, named) in [
        ("--weights idf", "--idf FILE"),
        ("--weights idf --idf words.idf", "minhash=darts"),
        ("--idf words.idf", "--weights idf"),
        ("--weights idf --idf words.idf --family darts --sets kept", "fractions"),
        ("--weight-unit 1", "minhash-unit without"),
    ] {
        let output = bench.command(&format!("{build} {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(named), "{options}: {said}");
    }
    bench.ok(&format!("{build} --weights idf --idf words.idf --family darts"));
    bench.ok("verify x.twx");
    let near = bench.ok("query x.twx docs.jsonl --near 0.5 --verify signature -q");
    assert!(near.lines().count() > 20, "{near}");
}

/// Documents with their weighted words or features, in the order of the lines.
type Weighted = Vec<(String, BTreeMap<String, f64>)>;

/// Returns vectors in groups of near ones, and their JSON lines.
fn vectors(random: &mut Random, prefix: &str, count: usize) -> (String, Weighted) {
    let all: Weighted = (0..count)
        .map(|number| {
            let family = random.below(9);
            let vector = (0..8)
                .filter(|feature| !(feature * (family % 4 + 1)).is_multiple_of(5))
                .map(|feature| {
                    let drift = if random.below(4) == 0 { random.below(300) } else { 0 };
                    (format!("f{feature}"), ((feature * 37 + family * 91) % 700 + drift + 20) as f64 / 100.0)
                })
                .collect();
            (format!("{prefix}{number:03}"), vector)
        })
        .collect();
    let lines =
        all.iter().map(|(id, f)| serde_json::json!({ "id": id, "f": f }).to_string() + "\n").collect();
    (lines, all)
}

/// Returns the lines of all pairs with a resemblance of at least 0.7, with weights rounded to units.
#[allow(clippy::cast_sign_loss, reason = "weights are above 0")]
fn pairs_in_units(documents: &Weighted, times: impl Fn(&str) -> f64, unit: f64) -> BTreeSet<String> {
    let rounded = |weights: &BTreeMap<String, f64>, word: &str| {
        let weight = weights.get(word).copied().unwrap_or(0.0);
        ((weight * 65_536.0).round() / 65_536.0 * times(word) / unit + 0.5).floor() as u64
    };
    let mut wanted = BTreeSet::new();
    for (place, (a, one)) in documents.iter().enumerate() {
        for (b, other) in &documents[place + 1..] {
            let words: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let both = |take: fn(u64, u64) -> u64| -> u64 {
                words.iter().map(|word| take(rounded(one, word), rounded(other, word))).sum()
            };
            let (least, most) = (both(u64::min), both(u64::max));
            if 10 * least >= 7 * most {
                wanted.insert(format!("{a}\t{b}\t{:.6}\t{least}\t{most}", least as f64 / most as f64));
            }
        }
    }
    wanted
}

/// Returns the number of documents that contain each word.
fn document_frequencies(documents: &Weighted) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for word in documents.iter().flat_map(|(_, weights)| weights.keys()) {
        *found.entry(word.clone()).or_insert(0) += 1;
    }
    found
}

/// Returns the words of each text, weighted by their number of occurrences.
fn by_frequency(documents: &[(String, String)]) -> Weighted {
    let of_text =
        |text: &str| frequencies(text).into_iter().map(|(word, n)| (word.to_owned(), n as f64)).collect();
    documents.iter().map(|(id, text)| (id.clone(), of_text(text))).collect()
}

#[test]
fn idf_and_vector_resemblance_in_units_equals_brute_force() {
    let bench = Bench::new();
    let mut random = Random(21);
    let texts = documents(&mut random, "d", 70);
    bench.write("texts.jsonl", jsonl(&texts));
    bench.ok("idf texts.jsonl -o texts.idf --words 1 --min-df 1 -q");
    let (lines, vectors) = vectors(&mut random, "v", 90);
    bench.write("vectors.jsonl", lines);
    bench.ok("idf vectors.jsonl -o vectors.idf --features-field f --min-df 1 -q");
    let texts = by_frequency(&texts);
    let of_texts = [(1.0, ""), (1.0, "--weight-unit 1"), (0.25, "--weight-unit 0.25")];
    let of_vectors = [(0.25, "--weight-unit 0.25"), (0.0625, "--weight-unit 0.0625")];
    for (input, documents, table, options, units) in [
        ("texts.jsonl", &texts, Some("texts.idf"), "--words 1 --weights idf", &of_texts[..]),
        ("vectors.jsonl", &vectors, None, "--features-field f --weights tf", &of_vectors),
        ("vectors.jsonl", &vectors, Some("vectors.idf"), "--features-field f --weights idf", &of_vectors),
    ] {
        let (counts, all) = (document_frequencies(documents), documents.len() as u32);
        let times = |word: &str| {
            if table.is_some() { f64::from(idf::weight(all, counts[word])) / 256.0 } else { 1.0 }
        };
        let named = table.map_or_else(String::new, |table| format!("--idf {table}"));
        let mut different = BTreeSet::new();
        for &(unit, option) in units {
            bench.ok(&format!("dedup {input} -o out --force {options} {named} {option} --threshold 0.7 -q"));
            let found = bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion");
            let found: BTreeSet<String> = found.into_iter().collect();
            let pairs = pairs_in_units(documents, times, unit);
            assert_eq!(found, removed_by_rule(&pairs), "{input} {options} {option}");
            assert!(found.len() > 10, "{input} {options}: {}", found.len());
            different.insert(found);
        }
        assert_eq!(different.len(), 2, "{input}: units decide");
    }
}

#[test]
fn unit_weighted_dedup_equals_history_runs_and_streams() {
    let bench = Bench::new();
    let mut random = Random(23);
    let (old, new) = (documents(&mut random, "a", 60), documents(&mut random, "b", 60));
    let ((old_vectors, _), (new_vectors, _)) = (vectors(&mut random, "a", 60), vectors(&mut random, "b", 60));
    let texts = [jsonl(&old), jsonl(&new)];
    for (number, ([old, new], how, table, index)) in [
        (texts, "--words 1 --weights idf", "--words 1", "--words 1 --weights idf"),
        (
            [old_vectors.clone(), new_vectors.clone()],
            "--features-field f --weights tf --weight-unit 0.125",
            "",
            "--features-field f --weights tf --weight-unit 0.125",
        ),
        (
            [old_vectors, new_vectors],
            "--features-field f --weights idf --weight-unit 0.25",
            "--features-field f",
            "--features-field f --weights idf --weight-unit 0.25",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = |file: &str| format!("{number}{file}");
        bench.write(&name("old.jsonl"), &old);
        bench.write(&name("new.jsonl"), &new);
        bench.write(&name("all.jsonl"), old + &new);
        let mut idf = String::new();
        if !table.is_empty() {
            bench.ok(&format!("idf {number}all.jsonl -o {number}.idf {table} --min-df 1 -q"));
            idf = format!("--idf {number}.idf");
        }
        let options = format!("{how} {idf} --threshold 0.85 -q");
        bench.ok(&format!("dedup {number}all.jsonl -o {number}all {options}"));
        bench.ok(&format!("dedup {number}old.jsonl -o {number}day1 --index kept {options}"));
        bench.ok(&format!("dedup {number}new.jsonl -o {number}day2 --against {number}day1 {options}"));
        let kept = |folder: &str| bench.read(&format!("{number}{folder}/kept.jsonl"));
        let counts = ["all", "day1", "day2"].map(|folder| kept(folder).lines().count());
        assert!(counts[0] < 110 && counts[2] > 0, "a test of something: {counts:?} of 120 {how}");
        assert_eq!(kept("day1") + &kept("day2"), kept("all"), "{how}");
        // Compares with the texts of the previous day, and with its index alone.
        bench.ok(&format!(
            "dedup {number}new.jsonl -o {number}day3 --against {number}day1 --max-work 1000000 {options}"
        ));
        assert_eq!(kept("day3"), kept("day2"), "{how}");
        std::fs::remove_file(bench.path(&name("day1/kept.jsonl"))).unwrap();
        bench.ok(&format!("dedup {number}new.jsonl -o {number}day4 --against {number}day1/index {options}"));
        assert_eq!(kept("day4"), kept("day2"), "{how}");
        // Streams the documents into an index. The default unit for texts is the default of `dedup`.
        let unit = if number == 0 { "--weight-unit 1" } else { "" };
        bench.ok(&format!(
            "stream {number}.twx {number}all.jsonl --method minhash {index} {unit} {idf} --near 0.85 \
             --drop-duplicates -q"
        ));
        let stats = bench.json(&format!("stats {number}.twx"));
        assert_eq!(stats["documents"].as_u64(), Some(kept("all").lines().count() as u64), "{how}");
        // Checks the removed documents and the explanations.
        let gone = bench.rows(&name("all/pairs.tsv"), "document\tkept\tresemblance\tintersection\tunion");
        for row in gone.iter().take(3) {
            let why = bench.json(&format!("why {number}all {}", row.split('\t').next().unwrap()));
            assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
        }
        // An index refuses weights in another unit.
        let other = format!("{how} --weight-unit 0.5")
            .replace("--weight-unit 0.125 ", "")
            .replace("--weight-unit 0.25 ", "");
        let line = format!(
            "dedup {number}new.jsonl -o {number}x --against {number}day1/index {other} {idf} --threshold 0.85 -q"
        );
        let output = bench.command(&line).output().unwrap();
        let refused = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{refused}");
        assert!(refused.contains("minhash-unit"), "{refused}");
    }
}

#[test]
fn weights_that_do_not_fit_units_are_bad_records() {
    let bench = Bench::new();
    let vectors = r#"{"id":"a","f":{"x":1,"y":2}}
{"id":"b","f":{"x":0.1}}
{"id":"c","f":{"x":1,"y":2.1}}
{"id":"d","f":{"x":1e9}}
"#;
    bench.write("vectors.jsonl", vectors);
    bench.write("texts.jsonl", jsonl(&documents(&mut Random(1), "d", 5)));
    bench.ok("idf texts.jsonl -o texts.idf --words 1 -q");
    let dedup = "dedup vectors.jsonl -o out --features-field f --weights tf -q";
    let said = bench.refused(dedup);
    assert!(said.contains("vectors.jsonl:2") && said.contains("less than half of the unit 1"), "{said}");
    let said = bench.refused(&format!("{dedup} --weight-unit 0.125"));
    assert!(said.contains("vectors.jsonl:4") && said.contains("16777216 units"), "{said}");
    let report = bench.json(&format!("{dedup} --skip-bad 2"));
    assert_eq!((report["kept"].as_u64(), report["removed"].as_u64()), (Some(1), Some(1)), "{report}");
    for (options, named) in [
        ("texts.jsonl --weights idf", "needs a table"),
        ("texts.jsonl --weights tf --weight-unit 0.5", "--weight-unit goes with"),
        ("texts.jsonl --weight-unit 0.5", "--weight-unit goes with"),
        ("texts.jsonl --weights tf --idf texts.idf", "--idf goes with"),
        ("texts.jsonl --words 1 --weights idf --idf texts.idf --weight-unit 0.3", "multiple of 1/65536"),
        ("texts.jsonl --words 1 --weights idf --idf texts.idf --weight-unit 3", "1/256 to 2"),
        ("texts.jsonl --words 1 --weights idf --idf texts.idf --near within:3", "--weights goes with"),
    ] {
        let output = bench.command(&format!("dedup {options} -o x")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        assert!(said.contains(named), "{options}: {said}");
    }
}
