//! Compares the files that `dedup` writes with a second implementation, written here from the documentation alone: it
//! compares every document with every other one, shingle by shingle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{
    Bench, Document, Random, corpus, documents, gzip, has_fields, jsonl, resemblance, resemblances, says,
    words,
};
use twindex::{Params, Sketcher};

const COVERING: &str = "document\tkept\tresemblance\tintersection\tunion";
const AGAINST: &str = "key\tother\tresemblance\tintersection\tunion";
const CLUSTERS: &str = "key\tcluster\tkept\tscore";

/// Returns the kept document for each document, by the rule: a document is removed if it is near an earlier kept
/// document, and the first such document is its kept document.
fn leaders(order: &[usize], near: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let (mut of, mut kept) = (vec![usize::MAX; order.len()], Vec::new());
    for &document in order {
        let is_near = |&&other: &&usize| near.contains(&(document.min(other), document.max(other)));
        of[document] = kept.iter().find(is_near).copied().unwrap_or(document);
        if of[document] == document {
            kept.push(document);
        }
    }
    of
}

/// Returns the lines of `clusters.tsv` for the kept document of each document.
fn cluster_lines(
    documents: &[Document],
    kept_of: &[usize],
    score: impl Fn(usize, usize) -> String,
) -> Vec<String> {
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|&document| &documents[document].0);
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let line = |document: usize| {
        let kept = kept_of[document];
        let next = numbers.len() + 1;
        let number = *numbers.entry(kept).or_insert(next);
        format!("{}\t{number}\t{}\t{}", documents[document].0, documents[kept].0, score(document, kept))
    };
    order.into_iter().map(line).collect()
}

/// Returns the number of words of an ASCII text.
pub(crate) fn tokens(text: &str) -> usize {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).count()
}

fn check_against_brute_force(percent: usize, keep: &str) {
    let bench = Bench::new();
    let mut documents = corpus(percent as u64, 400);
    // Adds a pair with a resemblance of exactly 0.8 (4 of 5 shingles), which a comparison of rounded numbers would miss.
    documents.push(("edge-a".into(), "e1 e2 e3 e4 e5 e6 e7 e8 e9".into()));
    documents.push(("edge-b".into(), "e1 e2 e3 e4 e5 e6 e7 e8".into()));
    bench.write("in.jsonl", jsonl(&documents));
    let threshold = format!("0.{percent:02}");
    let report =
        bench.json(&format!("dedup in.jsonl -o out --index kept --threshold {threshold} --keep {keep}"));

    let all = resemblances(&documents);
    let near: BTreeMap<(usize, usize), (usize, usize)> = (all.iter())
        .filter(|&&(_, _, both, all)| 100 * both >= percent * all)
        .map(|&(a, b, both, all)| ((a, b), (both, all)))
        .collect();
    let mut order: Vec<usize> = (0..documents.len()).collect();
    match keep {
        "first" => {}
        "longest" => order.sort_by_key(|&document| (usize::MAX - tokens(&documents[document].1), document)),
        _ => order.sort_by_key(|&document| &documents[document].0),
    }
    let leaders = leaders(&order, &near.keys().copied().collect());
    let sizes = |a: usize, b: usize| near[&(a.min(b), a.max(b))];
    let score = |document: usize, kept: usize| {
        if document == kept {
            "1.000000".to_owned()
        } else {
            resemblance(sizes(document, kept).0, sizes(document, kept).1)
        }
    };
    assert_eq!(bench.rows("out/clusters.tsv", CLUSTERS), cluster_lines(&documents, &leaders, score));

    let removed: Vec<(usize, usize)> =
        (0..).zip(leaders.iter().copied()).filter(|(document, leader)| document != leader).collect();
    let key = |line: &String| line.split('\t').take(2).map(str::to_owned).collect::<Vec<_>>();
    let line = |&(document, leader): &(usize, usize)| {
        let ((both, all), [gone, kept]) =
            (sizes(document, leader), [document, leader].map(|document| &documents[document].0));
        format!("{gone}\t{kept}\t{}\t{both}\t{all}", resemblance(both, all))
    };
    let mut covering: Vec<String> = removed.iter().map(line).collect();
    covering.sort_by_key(key);
    let found = bench.rows("out/pairs.tsv", COVERING);
    assert_eq!(found, covering);
    assert!(found.len() > 100, "a test of something: {}", found.len());
    assert_eq!(found.iter().any(|line| line.starts_with("edge-b\tedge-a\t0.800000\t4\t5")), percent <= 80);

    let rest: Vec<Document> = (0..)
        .zip(&documents)
        .filter(|(document, _)| leaders[*document] == *document)
        .map(|(_, one)| one.clone())
        .collect();
    assert_eq!(bench.read("out/kept.jsonl"), jsonl(&rest), "verbatim, in the order of the input");
    assert_eq!(report["documents"], documents.len());
    assert_eq!((&report["pairs"], &report["removed"]), (&removed.len().into(), &removed.len().into()));
    assert_eq!(report["kept"], rest.len());
    let distinct: BTreeSet<&str> = documents.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(report["identical"], documents.len() - distinct.len());
    let cluster_sizes = leaders.iter().fold(BTreeMap::<usize, u64>::new(), |mut sizes, &leader| {
        *sizes.entry(leader).or_default() += 1;
        sizes
    });
    assert_eq!(report["clusters"], cluster_sizes.values().filter(|&&size| size > 1).count());
    assert_eq!(report["largest_cluster"], *cluster_sizes.values().max().unwrap());
    assert_eq!(bench.json("verify out/index")["sound"], true);
}

#[test]
fn results_at_threshold_0_5_equal_brute_force() {
    check_against_brute_force(50, "first");
}

#[test]
fn results_at_threshold_0_8_keeping_the_longest_equal_brute_force() {
    check_against_brute_force(80, "longest");
}

#[test]
fn results_at_threshold_0_95_keeping_smallest_keys_equal_brute_force() {
    check_against_brute_force(95, "smallest-key");
}

#[test]
fn result_files_of_a_small_input_are_as_documented() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        jsonl(&documents([
            ("b", "the quick brown fox jumps over the lazy dog"),
            ("a", "The quick brown fox -- jumps over the lazy DOG!"),
            ("d", "something else altogether, which resembles none of the others"),
            ("c", "the quick brown fox jumps over the lazy"),
            ("g", ""),
            ("e", "too short"),
            ("f", "Too short?"),
            ("h", ""),
            ("i", "!"),
        ])),
    );
    let out = bench.ok("dedup in.jsonl -o out");
    assert_eq!(
        bench.read("out/pairs.tsv"),
        format!(
            "{COVERING}\n\
             a\tb\t1.000000\t5\t5\nc\tb\t0.800000\t4\t5\nf\te\t1.000000\t1\t1\nh\tg\t1.000000\t0\t0\n"
        )
    );
    assert_eq!(
        bench.read("out/clusters.tsv"),
        format!(
            "{CLUSTERS}\na\t1\tb\t1.000000\nb\t1\tb\t1.000000\nc\t1\tb\t0.800000\nd\t2\td\t1.000000\n\
             e\t3\te\t1.000000\nf\t3\te\t1.000000\ng\t4\tg\t1.000000\nh\t4\tg\t1.000000\ni\t5\ti\t1.000000\n"
        )
    );
    let kept = bench.read("out/kept.jsonl");
    let ids: Vec<&str> = kept.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(ids, ["b", "d", "g", "e", "i"]);
    assert_eq!(bench.names("out"), ["clusters.tsv", "kept.jsonl", "pairs.tsv", "report.html", "run.json"]);
    says(
        &out,
        &["4 of 9 documents", "3  of two documents or more; the largest has 3", "5 kept", "out: pairs.tsv"],
    );
    assert_eq!(bench.ok("dedup in.jsonl -o quiet -q"), "");
}

#[test]
fn json_report_has_the_documented_fields() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        jsonl(&documents([("a", "one two three four five six"), ("b", "one two three four five six")])),
    );
    let report = bench.json("dedup in.jsonl -o out");
    for field in ["documents", "text_bytes", "candidates", "pairs", "clusters", "removed", "peak_rss_bytes"] {
        has_fields(&report, &[(field, "count")]);
    }
    has_fields(&report, &[("cpu_seconds", "number"), ("seconds", "number")]);
    for stage in ["read", "index", "candidates", "verify", "cluster", "write"] {
        has_fields(&report["stages"], &[(stage, "number")]);
    }
    assert_eq!(
        (&report["text_bytes"], &report["pairs"], &report["identical"]),
        (&54.into(), &1.into(), &1.into())
    );
}

#[test]
fn near_equal_finds_only_equal_texts_and_writes_no_index() {
    let bench = Bench::new();
    let documents = corpus(7, 300);
    bench.write("in.jsonl", jsonl(&documents));
    let report = bench.json("dedup in.jsonl -o out --near equal");
    let mut wanted = Vec::new();
    for (place, (b, text)) in documents.iter().enumerate() {
        let first = documents[..place].iter().find(|(_, other)| other == text);
        wanted.extend(first.map(|(a, _)| (b.clone(), a.clone())));
    }
    wanted.sort();
    let found = bench.rows("out/pairs.tsv", COVERING);
    let key = |line: &String| {
        let (a, rest) = line.split_once('\t').unwrap();
        let (b, rest) = rest.split_once('\t').unwrap();
        assert!(rest.starts_with("1.000000\t"), "{line}");
        (a.to_owned(), b.to_owned())
    };
    assert_eq!(found.iter().map(key).collect::<Vec<_>>(), wanted);
    assert_eq!(report["pairs"], wanted.len());
    let distinct: BTreeSet<&str> = documents.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(report["kept"], distinct.len());
    assert_eq!(bench.read("out/kept.jsonl").lines().count(), distinct.len());
    assert_eq!(bench.names("out"), ["clusters.tsv", "kept.jsonl", "pairs.tsv", "report.html", "run.json"]);
}

#[test]
fn near_within_removes_every_document_within_the_distance_of_a_kept_one() {
    let bench = Bench::new();
    let mut documents = corpus(9, 250);
    let mut random = Random(10);
    // Long texts with one changed word have fingerprints that differ in a few bits.
    let long = words(&mut random, 600);
    for copy in 0..30 {
        let mut text = long.clone();
        text[copy * 20] = format!("changed{copy}");
        documents.push((format!("long{copy}"), text.join(" ")));
    }
    bench.write("in.jsonl", jsonl(&documents));
    for within in [0, 3, 7] {
        let out = format!("out{within}");
        let report = bench.json(&format!("dedup in.jsonl -o {out} --near within:{within}"));
        let sketcher = Sketcher::new(&Params::builder().simhash(within as u8).build().unwrap()).unwrap();
        let fingerprints: Vec<_> =
            documents.iter().map(|(_, text)| sketcher.sketch(text).unwrap().fingerprint()).collect();
        let mut near = BTreeMap::new();
        for b in 0..documents.len() {
            for a in 0..b {
                let distance = match (fingerprints[a], fingerprints[b]) {
                    (Some(x), Some(y)) => (x.0 ^ y.0).count_ones(),
                    // Texts without words have no fingerprint, but equal ones are still found.
                    _ if documents[a].1 == documents[b].1 => 0,
                    _ => 64,
                };
                if distance <= within {
                    near.insert((a, b), distance);
                }
            }
        }
        assert!(near.values().filter(|&&distance| distance == within).count() > 2, "a test: {within}");
        let order: Vec<usize> = (0..documents.len()).collect();
        let leaders = leaders(&order, &near.keys().copied().collect());
        let score = |document: usize, kept: usize| {
            if document == kept {
                "0".to_owned()
            } else {
                near[&(kept.min(document), kept.max(document))].to_string()
            }
        };
        let wanted = cluster_lines(&documents, &leaders, score);
        assert_eq!(bench.rows(&format!("{out}/clusters.tsv"), CLUSTERS), wanted, "within {within}");
        let removed = order.iter().filter(|&&document| leaders[document] != document);
        let name = |document: usize| &documents[document].0;
        let mut wanted: Vec<String> = removed
            .map(|&document| (document, leaders[document]))
            .map(|(a, b)| format!("{}\t{}\t{}", name(a), name(b), near[&(a.min(b), a.max(b))]))
            .collect();
        wanted.sort();
        assert_eq!(bench.rows(&format!("{out}/pairs.tsv"), "document\tkept\tdistance"), wanted);
        assert_eq!(report["pairs"], wanted.len());
    }
}

#[test]
fn dedup_results_do_not_depend_on_threads_or_memory() {
    let bench = Bench::new();
    let documents = corpus(11, 2500);
    bench.write("in.jsonl", jsonl(&documents));
    for (out, options) in [
        ("t1", "--threads 1 --memory 1G"),
        ("t4", "--threads 4 --memory 1G"),
        ("m1", "--threads 4 --memory 1M"),
    ] {
        bench.ok(&format!("dedup in.jsonl -o {out} {options} --index all -q"));
    }
    for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
        let first = bench.read(&format!("t1/{file}"));
        for other in ["t4", "m1"] {
            assert!(bench.read(&format!("{other}/{file}")) == first, "{other}/{file} differs");
        }
    }
    let segment = |out: &str| fs::read(bench.path(&format!("{out}/index/000001.seg"))).unwrap();
    assert!(segment("t1") == segment("t4"), "the segments differ");
    let segments = bench.json("stats m1/index")["segments"].as_u64().unwrap();
    assert!(segments > 1, "the small memory was felt");
    assert_eq!(bench.json("stats m1/index")["documents"], documents.len());
}

#[test]
fn results_of_many_files_do_not_depend_on_threads_or_memory() {
    let bench = Bench::new();
    let documents = corpus(14, 1500);
    // Small files of every kind, empty ones among them, then one large file, and a folder of texts.
    let (small, rest) = documents.split_at(600);
    let (large, texts) = rest.split_at(700);
    // A field that is not read makes the lines so long that they fill dozens of chunks.
    let pad = format!(",\"pad\":\"{}\"}}\n", "x".repeat(4000));
    let padded = |documents: &[Document]| jsonl(documents).replace("}\n", &pad);
    let mut inputs = Vec::new();
    for (number, some) in small.chunks(9).enumerate() {
        let lines = padded(some).into_bytes();
        let (suffix, bytes) = match number % 3 {
            0 => ("", lines),
            1 => (".gz", gzip(&lines)),
            _ => (".zst", zstd::encode_all(&lines[..], 0).unwrap()),
        };
        let name = format!("small-{number:03}.jsonl");
        bench.write(&format!("{name}{suffix}"), bytes);
        bench.write(&format!("empty-{name}"), "");
        inputs.extend([format!("{name}{suffix}"), format!("empty-{name}")]);
    }
    bench.write("large.jsonl", padded(large));
    for (key, text) in texts {
        bench.write(&format!("texts/{key}"), text);
    }
    let inputs = format!("{} large.jsonl texts", inputs.join(" "));
    let line = |out: &str| format!("dedup {inputs} -o {out} -q");
    let mut first = None;
    for (out, options) in [
        ("t1", "--threads 1"),
        ("t2", "--threads 2 --memory 64M"),
        ("t3", "--threads 3 --memory 1M"),
        ("t16", "--threads 16 --memory 4G"),
        ("t64", "--threads 64"),
    ] {
        bench.ok(&format!("{} {options}", line(out)));
        let file = |name: &str| fs::read(bench.path(&format!("{out}{name}"))).unwrap();
        let mut results = ["/pairs.tsv", "/clusters.tsv", "/kept.jsonl"].map(file).to_vec();
        for (how, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
            bench.ok(&format!("{} {options} --compress {how}", line(&format!("{out}-{how}"))));
            results.push(file(&format!("-{how}/kept.jsonl.{suffix}")));
        }
        assert!(first.get_or_insert_with(|| results.clone()) == &results, "{out} differs from t1");
        assert!(zstd::decode_all(&results[4][..]).unwrap() == results[2] && results[2].len() > 3 << 20);
    }
    // A damaged file in the middle: the error names it, wherever the threads are, and nothing is written.
    let damaged = gzip(jsonl(&small[..300]).as_bytes());
    bench.write("small-034.jsonl.gz", &damaged[..damaged.len() / 2]);
    for threads in [1, 3, 16] {
        let message = bench.failed(&format!("{} --threads {threads}", line("bad")));
        says(&message, &["small-034.jsonl.gz: truncated"]);
        assert!(!bench.path("bad").exists());
    }
}

#[test]
fn inputs_read_at_the_same_time_give_the_results_and_errors_of_those_read_in_turn() {
    let bench = Bench::new();
    // Files of several forms, among them tables with different columns, and equal texts in several files.
    let documents = corpus(15, 1200);
    let mut names = Vec::new();
    for (number, some) in documents.chunks(100).enumerate() {
        let some: Vec<Document> = some.iter().chain(&documents[..5]).cloned().collect();
        let field = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let row = |(id, text): &Document| format!("{id}-{number},{},{},{number}\n", field(text), number % 3);
        let object = |(id, text): &Document| {
            serde_json::json!({ "id": format!("{id}-{number}"), "text": text, "from": number % 3 })
                .to_string()
        };
        let (suffix, content) = match number % 4 {
            0 => (
                "csv",
                format!("id,text,from,column{}\n", number % 8) + &some.iter().map(row).collect::<String>(),
            ),
            1 => ("json", format!("[{}]", some.iter().map(object).collect::<Vec<_>>().join(",\n"))),
            _ => ("jsonl", some.iter().map(|one| object(one) + "\n").collect()),
        };
        names.push(format!("in-{number:02}.{suffix}"));
        bench.write(names.last().unwrap(), content);
    }
    let all = names.join(" ");
    let same = |line: &str| {
        let of = |threads: u32| {
            let mut report = bench.json(&format!("{line} -o out --force --threads {threads}"));
            for cost in ["cpu_seconds", "seconds", "peak_rss_bytes", "stages"] {
                report.as_object_mut().unwrap().remove(cost).expect(cost);
            }
            (report, bench.contents("out"))
        };
        let one = of(1);
        assert!([2, 3, 16].into_iter().all(|threads| of(threads) == one), "{line}");
    };
    for options in [
        "",
        "--keep longest",
        "--keep min:from --near containment:0.6",
        "--near equal",
        "--inside from --also annotated",
        "--repeated-keys first",
        "--memory 64K",
    ] {
        same(&format!("dedup {all} {options}"));
    }
    // Bad records at the end of some files: those that are named come first in the input, and one too many is the last.
    let broken: Vec<&String> = names.iter().filter(|name| name.contains("jsonl")).collect();
    for (number, name) in broken.iter().enumerate() {
        bench.write(name, bench.read(name) + &"{\n".repeat(number + 1));
    }
    same(&format!("dedup {all} --skip-bad 21"));
    for allowed in [0, 1, 7, 20] {
        let line = format!("dedup {all} --skip-bad {allowed} -o bad -q --threads");
        let one = bench.failed(&format!("{line} 1"));
        for threads in [2, 3, 16] {
            assert_eq!(bench.failed(&format!("{line} {threads}")), one, "{line}");
        }
    }
    // Keys that are repeated in several files, and keys that look as if a number had been added.
    let mut random = Random(16);
    let numbered: Vec<String> = (0..7).map(|number| format!("numbered-{number}.jsonl")).collect();
    for name in &numbered {
        let key =
            |random: &mut Random| ["a", "a#2", "a#3", "a#2#2", "b", "b#7", "c"][random.below(7)].to_owned();
        let some: Vec<Document> =
            (0..random.below(30)).map(|_| (key(&mut random), words(&mut random, 30).join(" "))).collect();
        bench.write(name, jsonl(&some));
    }
    same(&format!("dedup {}", numbered.join(" ")));
    same(&format!("dedup {} --keep smallest-key", numbered.join(" ")));
    // Long fingerprints. Those of another length than the first one of the input are bad records.
    let codes: Vec<String> = (0..6).map(|number| format!("codes-{number}.csv")).collect();
    for (number, name) in codes.iter().enumerate() {
        let rows = (0..40).map(|row| {
            let mut digits = [b"0123456789abcdef"[random.below(7)]; 64];
            for _ in 0..random.below(9) {
                digits[random.below(64)] = b'0' + random.below(10) as u8;
            }
            let length = if row == 39 && number != 0 { 32 } else { 64 };
            format!("{number}-{row},{}\n", std::str::from_utf8(&digits[..length]).unwrap())
        });
        let rows = "id,hash\n".to_owned() + &rows.collect::<String>();
        bench.write(name, rows);
    }
    same(&format!("dedup {} --fingerprint-field hex:hash --near within:31 --skip-bad 5", codes.join(" ")));
    // The first key that is repeated, and its first place.
    let repeated = names.iter().rev().chain(&names).map(String::as_str).collect::<Vec<_>>();
    let copies = repeated.iter().enumerate().map(|(number, name)| {
        let copy = format!("again-{number}-{name}");
        bench.write(&copy, bench.read(name).replace("{\n", ""));
        copy
    });
    let copies = copies.collect::<Vec<_>>().join(" ");
    let one = bench.failed(&format!("dedup {copies} --repeated-keys error -o bad -q --threads 1"));
    says(&one, &["again-11-in-00.csv:102: the key `d0-0` is already at again-11-in-00.csv:2"]);
    for threads in [2, 3, 16] {
        assert_eq!(
            bench.failed(&format!("dedup {copies} --repeated-keys error -o bad -q --threads {threads}")),
            one
        );
    }
}

#[test]
fn shuffled_input_gives_the_same_tables_if_keys_decide() {
    let bench = Bench::new();
    let mut documents = corpus(12, 600);
    bench.write("in.jsonl", jsonl(&documents));
    let mut random = Random(13);
    for place in (1..documents.len()).rev() {
        documents.swap(place, random.below(place + 1));
    }
    bench.write("shuffled.jsonl", jsonl(&documents));
    for keep in ["smallest-key", "key-hash"] {
        bench.ok(&format!("dedup in.jsonl -o {keep} --keep {keep} -q"));
        bench.ok(&format!("dedup shuffled.jsonl -o {keep}-shuffled --keep {keep} -q"));
        assert!(bench.read(&format!("{keep}/pairs.tsv")).lines().count() > 100, "a test of something");
        for table in ["pairs.tsv", "clusters.tsv"] {
            let [one, other] = ["", "-shuffled"].map(|end| bench.read(&format!("{keep}{end}/{table}")));
            assert_eq!(one, other, "{keep} {table}");
        }
    }
}

#[test]
fn kept_lines_are_verbatim_and_keys_are_escaped_in_tables_only() {
    let bench = Bench::new();
    let lines = [
        r#"{"text" : "one two three four five six", "id":"tab\there", "more": [1, {"x": null}]}"#,
        r#"  {"id":"line\nbreak","text":"one two three four five six"}"#,
        r#"{"id":"back\\slash","text":"seven eight nine ten eleven twelve \u00e9"}"#,
        r#"{"id":"carriage\rreturn","text":"seven eight nine ten eleven twelve é"}"#,
        r#"{"id":17,"text":"alone"}"#,
    ];
    bench.write("in.jsonl", lines.join("\n"));
    bench.ok("dedup in.jsonl -o out -q");
    assert_eq!(
        bench.rows("out/pairs.tsv", COVERING),
        [r"carriage\rreturn	back\\slash	1.000000	3	3", r"line\nbreak	tab\there	1.000000	2	2"]
    );
    assert_eq!(
        bench.rows("out/clusters.tsv", CLUSTERS),
        [
            r"17	1	17	1.000000",
            r"back\\slash	2	back\\slash	1.000000",
            r"carriage\rreturn	2	back\\slash	1.000000",
            r"line\nbreak	3	tab\there	1.000000",
            r"tab\there	3	tab\there	1.000000",
        ]
    );
    assert_eq!(bench.read("out/kept.jsonl"), [lines[0], lines[2], lines[4]].join("\n"));
}

#[test]
fn contradicting_options_are_refused_as_usage_errors() {
    let bench = Bench::new();
    bench.write("in.jsonl", "");
    for (options, parts) in [
        ("--near within:513", &["within:K (0 to 512)", "within:513"][..]),
        (
            "--near within:11",
            &["--near within:K with a K above 10 goes with --simhash-bits or --fingerprint-field"],
        ),
        ("--near 80%", &["found \"80%\"; 80 % is 0.8"]),
        ("--near resembling:0.9", &["expected 0.05 to 1, containment:J, within:K", "resembling:0.9"]),
        ("--near equal --weights tf", &["--weights goes with a resemblance or containment in --near"]),
        ("--near within:3 --weights tf", &["--weights goes with a resemblance or containment in --near"]),
        ("--near equal --words 3", &["--words says how text is cut", "--near equal compares whole texts"]),
        ("--near equal --index all", &["--index goes with another --near than equal"]),
        ("--max-work 9 --near equal", &["--max-work goes with a resemblance or containment in --near"]),
        ("--max-work 9 --near within:3", &["--max-work goes with a resemblance or containment in --near"]),
        ("--texts in.jsonl", &["--texts goes with --against"]),
        ("--annotation-prefix x_", &["--annotation-prefix goes with --also annotated or --also sizes"]),
    ] {
        let output = bench.command(&format!("dedup in.jsonl -o out {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
        says(&String::from_utf8_lossy(&output.stderr), parts);
    }
    assert_eq!(bench.names("."), ["in.jsonl"]);
}

#[test]
fn chain_is_split_into_clusters_around_kept_documents() {
    let bench = Bench::new();
    // Each text has 40 words and starts 3 words after the previous one. Neighbours share 33 of 39 shingles, and texts
    // two apart share 30 of 42.
    let documents: Vec<Document> = (0..30)
        .map(|place| {
            let text: Vec<String> = (0..40).map(|word| format!("w{}", place * 3 + word)).collect();
            (format!("k{place:02}"), text.join(" "))
        })
        .collect();
    bench.write("in.jsonl", jsonl(&documents));
    let report = bench.json("dedup in.jsonl -o out");
    assert_eq!((&report["pairs"], &report["kept"]), (&15.into(), &15.into()));
    assert_eq!((&report["clusters"], &report["largest_cluster"]), (&15.into(), &2.into()));
    assert_eq!(report["cluster_sizes"][1], serde_json::json!([2, 15]));
    says(&bench.ok("dedup in.jsonl -o out --force"), &["15  of two documents or more; the largest has 2"]);
    let rows = bench.rows("out/clusters.tsv", CLUSTERS);
    assert_eq!(rows[..3], ["k00\t1\tk00\t1.000000", "k01\t1\tk00\t0.846154", "k02\t2\tk02\t1.000000"]);
}

#[test]
fn new_documents_near_a_history_index_are_dropped_and_listed() {
    let bench = Bench::new();
    let documents = worded(corpus(41, 900));
    let (old, new) = documents.split_at(documents.len() / 2);
    bench.write("old.jsonl", jsonl(old));
    bench.write("new.jsonl", jsonl(new));
    bench.ok("dedup old.jsonl -o old --index all -q");
    let report = bench.json("dedup new.jsonl --index kept --against old/index -o new");
    let rows = bench.rows("new/against.tsv", AGAINST);
    assert_eq!(
        (report["dropped"].as_u64().unwrap() as usize, report["documents"].as_u64().unwrap() as usize),
        (rows.len(), new.len())
    );
    assert!(rows.is_sorted() && rows.len() > 100 && rows.len() < new.len());
    // Only the kept documents of the earlier run are compared. The index contains the others with a mark.
    let kept = bench.read("old/kept.jsonl");
    let kept: BTreeSet<&str> = kept.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    let mut near: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (a, b, both, all) in resemblances(&documents) {
        let (old_key, key) = (documents[a].0.as_str(), documents[b].0.as_str());
        if a < old.len() && b >= old.len() && kept.contains(old_key) && 10 * both >= 8 * all {
            near.entry(key)
                .or_default()
                .insert(format!("{old_key}\t{}\t{both}\t{all}", resemblance(both, all)));
        }
    }
    let dropped: BTreeSet<&str> = rows.iter().map(|row| row.split('\t').next().unwrap()).collect();
    assert_eq!(dropped, near.keys().copied().collect());
    for row in &rows {
        let (key, other) = row.split_once('\t').unwrap();
        assert!(near[key].contains(other), "{row}");
    }
    // The kept documents equal the kept documents of a `dedup` run over the remaining documents.
    let rest: Vec<Document> =
        new.iter().filter(|(key, _)| !dropped.contains(key.as_str())).cloned().collect();
    bench.write("rest.jsonl", jsonl(&rest));
    bench.ok("dedup rest.jsonl --index kept -o rest -q");
    for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl", "index/000001.seg"] {
        assert!(
            fs::read(bench.path(&format!("new/{file}"))).unwrap()
                == fs::read(bench.path(&format!("rest/{file}"))).unwrap(),
            "{file}"
        );
    }
    assert_eq!(
        bench.names("new"),
        ["against.tsv", "clusters.tsv", "index", "kept.jsonl", "pairs.tsv", "report.html", "run.json"]
    );
    says(
        &bench.ok("dedup new.jsonl --against old/index -o new --force"),
        &["dropped", "near one of old/index", "against.tsv"],
    );

    // If the index stores more data than the comparison needs, the results are the same, for any number of threads.
    bench.ok("build both.twx old.jsonl --bands 20 --rows 6 -q");
    bench.ok("build same.twx old.jsonl --method minhash --bands 20 --rows 6 -q");
    for (index, threads) in [("both.twx", 1), ("both.twx", 2), ("same.twx", 1)] {
        let line = format!("dedup new.jsonl --against {index} --threads {threads}");
        bench.ok(&format!("{line} -o {index}.{threads} -q"));
    }
    let rows_of = |out: &str| bench.rows(&format!("{out}/against.tsv"), AGAINST);
    assert_eq!(rows_of("both.twx.1"), rows_of("same.twx.1"));
    assert_eq!(rows_of("both.twx.1"), rows_of("both.twx.2"));
    assert!(rows_of("both.twx.1").len() > 100);

    // With fingerprints, the document with the smallest key within the radius is found. Only kept documents count.
    bench.ok("dedup old.jsonl --near within:3 -o oldsim --index all -q");
    let kept = bench.read("oldsim/kept.jsonl");
    let kept: BTreeSet<&str> = kept.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert!(kept.len() < old.len());
    let sketcher = Sketcher::new(&Params::builder().simhash(3).build().unwrap()).unwrap();
    let fingerprint = |text: &str| sketcher.sketch(text).unwrap().fingerprint().unwrap().0;
    let of_old: Vec<(&str, u64)> = old.iter().map(|(key, text)| (key.as_str(), fingerprint(text))).collect();
    for (index, has_all) in [("oldsim/index", false), ("both.twx", true)] {
        bench.ok(&format!("dedup new.jsonl --near within:3 --against {index} -o newsim --force -q"));
        let near = |(key, text): &Document| {
            let mine = fingerprint(text);
            let counted = of_old.iter().filter(|(key, _)| has_all || kept.contains(key));
            let near = counted.map(|&(key, other)| (key, (mine ^ other).count_ones()));
            let (other, distance) = near.filter(|(_, distance)| *distance <= 3).min()?;
            Some(format!("{key}\t{other}\t{distance}"))
        };
        let mut wanted: Vec<String> = new.iter().filter_map(near).collect();
        wanted.sort();
        assert_eq!(bench.rows("newsim/against.tsv", "key\tother\tdistance"), wanted, "{index}");
    }
}

#[test]
fn incomparable_history_index_and_previously_dropped_key_are_refused() {
    let bench = Bench::new();
    let text = "one two three four five six seven";
    bench.write("old.jsonl", jsonl(&documents([("x", text)])));
    bench.write("twice.jsonl", jsonl(&documents([("a", text), ("a", "something else")])));
    bench.ok("dedup old.jsonl -o old --index kept -q");
    bench.ok("build sim.twx old.jsonl --method simhash -q");
    let usage = |line: &str, parts: &[&str]| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), parts);
    };
    bench.write("folder/a.txt", "a text");
    for (against, why) in [("none", "no such directory"), ("folder", "it has no file CURRENT")] {
        for options in ["", "--near equal", "--texts old.jsonl"] {
            let message = bench.refused(&format!("dedup old.jsonl --against {against} -o out {options}"));
            let said = format!(
                "{against}: neither results of `dedup` nor an index: {why}; name the folder of one of"
            );
            says(&message, &[&said]);
        }
    }
    let message = bench.refused("verify folder");
    assert!(message.ends_with("folder: not a twindex index: it has no file CURRENT\n"), "{message}");
    says(
        &bench.refused("dedup twice.jsonl --against old -o out --repeated-keys error"),
        &["twice.jsonl:2", "is already at twice.jsonl:1"],
    );
    // An index alone has no texts.
    let no_texts = ["--against old/index", "no texts to count on", "--texts"];
    usage(
        "dedup old.jsonl --near within:3 --against old/index -o out",
        &[&no_texts[..], &["keeps no fingerprints like those of this run", "parameters differ"]].concat(),
    );
    usage(
        "dedup old.jsonl --near within:3 --words 3 --against sim.twx -o out",
        &["--against sim.twx", "no texts to count on", "width is 5 in the index and 3 here"],
    );
    usage("dedup old.jsonl --near equal --against old/index -o out", &no_texts);
    usage("dedup old.jsonl --against old/index --near containment:0.8 -o out", &no_texts);
    let stricter = "dedup old.jsonl --against old/index --threshold 0.7 -o out";
    usage(stricter, &[&no_texts[..], &["resembles by 0.8 or more, and 0.7 is asked for"]].concat());
    let other = "dedup old.jsonl --against old/index --words 3 -o out";
    usage(other, &[&no_texts[..], &["sets of other shingles", "width"]].concat());
    usage("dedup old.jsonl --texts old.jsonl -o out", &["--texts goes with --against"]);
    usage("dedup old.jsonl --against sim.twx -o out", &["--against sim.twx", "no texts to count on"]);
    usage("dedup old.jsonl --against old/index --texts twice.jsonl -o out", &["has 0 of the 1 documents"]);
    assert_eq!(bench.names("."), ["folder", "old", "old.jsonl", "sim.twx", "twice.jsonl"]);
}

/// Returns the documents that have words.
fn worded(documents: Vec<Document>) -> Vec<Document> {
    documents.into_iter().filter(|(_, text)| text.chars().any(char::is_alphanumeric)).collect()
}

#[test]
fn empty_input_is_not_an_error() {
    let bench = Bench::new();
    bench.write("in.jsonl", "\n\n");
    let report = bench.json("dedup in.jsonl -o out --index kept");
    assert_eq!(
        (&report["documents"], &report["pairs"], &report["clusters"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert_eq!(bench.read("out/pairs.tsv"), format!("{COVERING}\n"));
    assert_eq!(bench.read("out/clusters.tsv"), format!("{CLUSTERS}\n"));
    assert_eq!(bench.read("out/kept.jsonl"), "");
    assert_eq!(bench.json("verify out/index")["sound"], true);
}

#[test]
fn index_written_by_dedup_answers_queries_with_its_shingle_width() {
    let bench = Bench::new();
    let text = "one two three four five six seven";
    bench.write("in.jsonl", jsonl(&documents([("a", text)])));
    bench.ok("dedup in.jsonl -o out --index kept --words 3 -q");
    assert_eq!(bench.json("stats out/index")["params"]["width"], "3");
    bench.write("q.jsonl", jsonl(&documents([("q", text)])));
    assert_eq!(bench.ok("query out/index q.jsonl"), "q\ta\t-\t1.0000\t5\t5\n");
}
