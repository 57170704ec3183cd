//! Compares the files that `dedup` writes with a second implementation, written here from the documentation alone: it
//! compares every document with every other one, shingle by shingle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{
    Bench, Document, Random, corpus, documents, has_fields, jsonl, pair_line, resemblance, resemblances,
    says, words,
};
use twindex::{Params, Sketcher};

const PAIRS: &str = "a\tb\tresemblance\tintersection\tunion";
const COVERING: &str = "document\tkept\tresemblance\tintersection\tunion";
const CLUSTERS: &str = "key\tcluster\tkept\tscore";

/// Returns the component of each document: the smallest document number in it.
fn components(count: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut of: Vec<usize> = (0..count).collect();
    for (a, b) in edges {
        let (from, to) = (of[a].max(of[b]), of[a].min(of[b]));
        of.iter_mut().filter(|component| **component == from).for_each(|component| *component = to);
    }
    of
}

/// Returns the kept document for each document, by the leaders rule: a document is removed if it is near an earlier kept
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

/// Returns the lines of `clusters.tsv` for these components and kept documents.
fn cluster_lines(
    documents: &[Document],
    components: &[usize],
    keep: impl Fn(&[usize]) -> usize,
    score: impl Fn(usize, usize) -> String,
) -> Vec<String> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (document, &component) in components.iter().enumerate() {
        members.entry(component).or_default().push(document);
    }
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|&document| &documents[document].0);
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let line = |document: usize| {
        let component = components[document];
        let next = numbers.len() + 1;
        let number = *numbers.entry(component).or_insert(next);
        let kept = keep(&members[&component]);
        format!("{}\t{number}\t{}\t{}", documents[document].0, documents[kept].0, score(document, kept))
    };
    order.into_iter().map(line).collect()
}

/// Returns the number of words of an ASCII text.
pub(crate) fn tokens(text: &str) -> usize {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).count()
}

fn check_against_all_pairs(percent: usize, keep: &str) {
    let bench = Bench::new();
    let mut documents = corpus(percent as u64, 400);
    // Adds a pair with a resemblance of exactly 0.8 (4 of 5 shingles), which a comparison of rounded numbers would miss.
    documents.push(("edge-a".into(), "e1 e2 e3 e4 e5 e6 e7 e8 e9".into()));
    documents.push(("edge-b".into(), "e1 e2 e3 e4 e5 e6 e7 e8".into()));
    bench.write("in.jsonl", jsonl(&documents));
    let threshold = format!("0.{percent:02}");
    let all_pairs = format!("dedup in.jsonl -o out --threshold {threshold} --keep {keep} --pairs all");
    let report = bench.json(&format!("{all_pairs} --clusters components"));

    let all = resemblances(&documents);
    let near: Vec<_> = all.iter().copied().filter(|&(_, _, both, all)| 100 * both >= percent * all).collect();
    let lines: BTreeMap<String, _> = near.iter().map(|&pair| (pair_line(&documents, pair), pair)).collect();
    let found = bench.rows("out/pairs.tsv", PAIRS);
    let key = |line: &String| line.split('\t').take(2).map(str::to_owned).collect::<Vec<_>>();
    assert!(found.is_sorted_by_key(key), "sorted, each pair once");
    for line in &found {
        assert!(lines.contains_key(line), "no such pair: {line}");
    }
    assert_eq!(found.len(), lines.len(), "none is missed");
    assert!(lines.len() > 300, "a test of something: {}", lines.len());
    assert_eq!(found.iter().any(|line| line.starts_with("edge-a\tedge-b\t0.800000\t4\t5")), percent <= 80);

    let components = components(documents.len(), found.iter().map(|line| (lines[line].0, lines[line].1)));
    let sizes: BTreeMap<(usize, usize), (usize, usize)> =
        all.iter().map(|&(a, b, i, u)| ((a, b), (i, u))).collect();
    let itself = |document: usize| crate::support::shingles(&documents[document].1).len();
    let score = |document: usize, kept: usize| {
        let (a, b) = (document.min(kept), document.max(kept));
        let (both, all) = match sizes.get(&(a, b)) {
            _ if a == b => (itself(a), itself(a)),
            Some(&sizes) => sizes,
            None => (0, itself(a) + itself(b)),
        };
        resemblance(both, all)
    };
    let kept = |members: &[usize]| match keep {
        "first" => members[0],
        "longest" => {
            let longest = members.iter().map(|&member| tokens(&documents[member].1)).max().unwrap();
            *members.iter().find(|&&member| tokens(&documents[member].1) == longest).unwrap()
        }
        _ => *members.iter().min_by_key(|&&member| &documents[member].0).unwrap(),
    };
    let wanted = cluster_lines(&documents, &components, kept, score);
    assert_eq!(bench.rows("out/clusters.tsv", CLUSTERS), wanted);

    let names: BTreeSet<&str> = wanted.iter().map(|line| line.split('\t').nth(2).unwrap()).collect();
    let rest: Vec<Document> =
        documents.iter().filter(|(key, _)| names.contains(key.as_str())).cloned().collect();
    assert_eq!(bench.read("out/kept.jsonl"), jsonl(&rest), "verbatim, in the order of the input");
    assert_eq!(report["documents"], documents.len());
    assert_eq!(report["pairs"], found.len());
    assert_eq!(report["removed"], documents.len() - rest.len());
    let distinct: BTreeSet<&str> = documents.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(report["identical"], documents.len() - distinct.len());
    let component_sizes = components.iter().fold(BTreeMap::<usize, u64>::new(), |mut sizes, &component| {
        *sizes.entry(component).or_default() += 1;
        sizes
    });
    assert_eq!(report["clusters"], component_sizes.values().filter(|&&size| size > 1).count());
    assert_eq!(report["largest_cluster"], *component_sizes.values().max().unwrap());
    assert_eq!(bench.json("verify out/index")["sound"], true);

    // With the default rule, a component may have several kept documents.
    let mut order: Vec<usize> = (0..documents.len()).collect();
    match keep {
        "first" => {}
        "longest" => order.sort_by_key(|&document| (usize::MAX - tokens(&documents[document].1), document)),
        _ => order.sort_by_key(|&document| &documents[document].0),
    }
    let near: BTreeSet<(usize, usize)> = near.iter().map(|pair| (pair.0, pair.1)).collect();
    let leaders = leaders(&order, &near);
    let report = bench.json(&format!("{all_pairs} --force"));
    assert_eq!(bench.rows("out/pairs.tsv", PAIRS), found);
    let wanted = cluster_lines(&documents, &leaders, |members| leaders[members[0]], score);
    assert_eq!(bench.rows("out/clusters.tsv", CLUSTERS), wanted);
    let removed = (0..).zip(&leaders).filter(|&(document, &leader)| document != leader).count();
    let kept = documents.len() - removed;
    assert_eq!((&report["removed"], &report["kept"]), (&removed.into(), &kept.into()));
    assert!(kept > rest.len() || percent > 90, "chains in the corpus: {kept} {}", rest.len());
    // By default, only the pairs that lead to a removal are listed.
    for join in ["auto", "prefix"] {
        let line =
            format!("dedup in.jsonl -o out --threshold {threshold} --keep {keep} --force --join {join}");
        let report = bench.json(&line);
        assert_eq!(bench.rows("out/clusters.tsv", CLUSTERS), wanted);
        let mut covering: Vec<String> = (0..)
            .zip(&leaders)
            .filter(|&(document, &leader)| document != leader)
            .map(|(document, &leader)| {
                let pair = (document.min(leader), document.max(leader));
                let line = lines.iter().find(|&(_, &(a, b, ..))| (a, b) == pair);
                let counts = line.unwrap().0.splitn(3, '\t').last().unwrap();
                format!("{}\t{}\t{counts}", documents[document].0, documents[leader].0)
            })
            .collect();
        covering.sort_by_key(key);
        assert_eq!(bench.rows("out/pairs.tsv", COVERING), covering);
        assert_eq!((&report["pairs"], &report["chained"]), (&removed.into(), &0.into()));
    }
}

#[test]
fn results_at_threshold_0_5_equal_brute_force() {
    check_against_all_pairs(50, "first");
}

#[test]
fn results_at_threshold_0_8_keeping_the_longest_equal_brute_force() {
    check_against_all_pairs(80, "longest");
}

#[test]
fn results_at_threshold_0_95_keeping_smallest_keys_equal_brute_force() {
    check_against_all_pairs(95, "smallest-key");
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
    assert_eq!(
        bench.names("out"),
        ["clusters.tsv", "index", "kept.jsonl", "pairs.tsv", "report.html", "run.json"]
    );
    says(
        &out,
        &["9 documents", "3  of two documents or more; the largest has 3", "5 kept", "out: pairs.tsv"],
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
fn exact_method_finds_only_equal_texts_and_writes_no_index() {
    let bench = Bench::new();
    let documents = corpus(7, 300);
    bench.write("in.jsonl", jsonl(&documents));
    let report = bench.json("dedup in.jsonl -o out --method exact --pairs all");
    let mut wanted = Vec::new();
    for (place, (b, text)) in documents.iter().enumerate() {
        for (a, _) in documents[..place].iter().filter(|(_, other)| other == text) {
            wanted.push((a.min(b).clone(), a.max(b).clone()));
        }
    }
    wanted.sort();
    let found = bench.rows("out/pairs.tsv", PAIRS);
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
    assert_eq!(bench.names("out"), ["clusters.tsv", "kept.jsonl", "pairs.tsv", "run.json"]);
}

#[test]
fn simhash_finds_every_pair_within_the_radius_and_writes_distances() {
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
        let options = "--pairs all --clusters components";
        let line = format!("dedup in.jsonl -o {out} --method simhash --within {within}");
        let report = bench.json(&format!("{line} {options}"));
        let sketcher = Sketcher::new(&Params::builder().simhash(within as u8).build().unwrap()).unwrap();
        let fingerprints: Vec<_> =
            documents.iter().map(|(_, text)| sketcher.sketch(text).unwrap().fingerprint()).collect();
        let mut near = Vec::new();
        for b in 0..documents.len() {
            for a in 0..b {
                let distance = match (fingerprints[a], fingerprints[b]) {
                    (Some(x), Some(y)) => (x.0 ^ y.0).count_ones(),
                    // Texts without words have no fingerprint, but equal ones are still found.
                    _ if documents[a].1 == documents[b].1 => 0,
                    _ => 64,
                };
                if distance <= within {
                    let (x, y) = (&documents[a].0, &documents[b].0);
                    near.push((x.min(y), x.max(y), distance, a, b));
                }
            }
        }
        near.sort();
        assert!(near.iter().filter(|pair| pair.2 == within).count() > 2, "a test: {within}");
        let wanted: Vec<String> =
            near.iter().map(|(a, b, distance, ..)| format!("{a}\t{b}\t{distance}")).collect();
        assert_eq!(bench.rows(&format!("{out}/pairs.tsv"), "a\tb\tdistance"), wanted, "within {within}");
        assert_eq!(report["pairs"], wanted.len());

        let components = components(documents.len(), near.iter().map(|pair| (pair.3, pair.4)));
        let score = |document: usize, kept: usize| {
            let pair = near.iter().find(|pair| (pair.3, pair.4) == (kept.min(document), kept.max(document)));
            match pair {
                _ if document == kept => "0".to_owned(),
                Some(pair) => pair.2.to_string(),
                None => "-".to_owned(),
            }
        };
        let wanted = cluster_lines(&documents, &components, |members| members[0], score);
        assert_eq!(bench.rows(&format!("{out}/clusters.tsv"), CLUSTERS), wanted, "within {within}");

        bench.ok(&format!("{line} --force -q"));
        let order: Vec<usize> = (0..documents.len()).collect();
        let leaders =
            leaders(&order, &near.iter().map(|pair| (pair.3.min(pair.4), pair.3.max(pair.4))).collect());
        let wanted = cluster_lines(&documents, &leaders, |members| leaders[members[0]], score);
        assert_eq!(bench.rows(&format!("{out}/clusters.tsv"), CLUSTERS), wanted, "within {within}");
        let removed = order.iter().filter(|&&document| leaders[document] != document).count();
        assert_eq!(bench.rows(&format!("{out}/pairs.tsv"), "document\tkept\tdistance").len(), removed);
    }
}

#[test]
fn group_over_max_bucket_is_written_as_a_star_and_reported() {
    let bench = Bench::new();
    let text = "the same words in each of these many documents";
    let mut documents: Vec<Document> =
        (0..6).map(|copy| (format!("c{}", (copy + 3) % 6), text.into())).collect();
    documents.push(("n".into(), "The same words in each of these many documents!".into()));
    documents.push(("o".into(), "a text that resembles nothing else in this file".into()));
    bench.write("in.jsonl", jsonl(&documents));
    let out = bench.ok("dedup in.jsonl -o out --max-bucket 2 --pairs all");
    says(&out, &["1 group of identical documents over --max-bucket 2", "first member"]);
    let wanted = ["c0\tc3", "c1\tc3", "c2\tc3", "c3\tc4", "c3\tc5", "c3\tn"]
        .map(|pair| format!("{pair}\t1.000000\t5\t5"));
    assert_eq!(bench.rows("out/pairs.tsv", PAIRS), wanted);
    // Clusters and kept documents are the same as without a cap.
    let report = bench.json("dedup in.jsonl -o full --pairs all");
    for file in ["clusters.tsv", "kept.jsonl"] {
        assert_eq!(bench.read(&format!("out/{file}")), bench.read(&format!("full/{file}")));
    }
    assert_eq!((&report["pairs"], &report["starred_groups"]), (&21.into(), &0.into()));
    let report = bench.json("dedup in.jsonl -o out --max-bucket 2 --force --pairs all");
    assert_eq!(
        (&report["pairs"], &report["starred_groups"], &report["removed"]),
        (&6.into(), &1.into(), &6.into())
    );
}

#[test]
fn chained_documents_in_a_capped_bucket_stay_connected() {
    let bench = Bench::new();
    let spellings = ["", "!", "?", ".", ",", ";"];
    let documents: Vec<Document> = spellings
        .iter()
        .enumerate()
        .map(|(place, mark)| (format!("k{place}"), format!("six words are two shingles here{mark}")))
        .collect();
    bench.write("in.jsonl", jsonl(&documents));
    for (join, capped, other, named) in [
        ("bands", "capped_buckets", "capped_shingles", "20 buckets of more texts than --max-bucket 2"),
        ("prefix", "capped_shingles", "capped_buckets", "1 shingle of more texts than --max-bucket 2"),
    ] {
        let options = "--pairs all --clusters components";
        let line = format!("dedup in.jsonl -o out-{join} --max-bucket 2 --join {join} {options}");
        let report = bench.json(&line);
        assert!(report[capped].as_u64().unwrap() > 0, "{report}");
        assert_eq!(
            (&report[other], &report["largest_bucket"], &report["bucket_cap"]),
            (&0.into(), &6.into(), &2.into())
        );
        assert_eq!(
            (&report["clusters"], &report["kept"], &report["starred_groups"]),
            (&1.into(), &1.into(), &0.into())
        );
        let out = bench.ok(&format!("{line} --force"));
        says(&out, &[named, "(the largest: 6)", "as stars"]);
        assert!(!out.contains("identical documents over"), "{out}");
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
fn shuffled_input_gives_the_same_pairs() {
    let bench = Bench::new();
    let mut documents = corpus(12, 600);
    bench.write("in.jsonl", jsonl(&documents));
    let mut random = Random(13);
    for place in (1..documents.len()).rev() {
        documents.swap(place, random.below(place + 1));
    }
    bench.write("shuffled.jsonl", jsonl(&documents));
    bench.ok("dedup in.jsonl -o out --pairs all -q");
    bench.ok("dedup shuffled.jsonl -o shuffled --pairs all -q");
    assert!(bench.read("out/pairs.tsv").lines().count() > 300, "a test of something");
    assert_eq!(bench.read("out/pairs.tsv"), bench.read("shuffled/pairs.tsv"));
    let smallest = |out: &str, input: &str| {
        bench.ok(&format!("dedup {input} -o {out} --keep smallest-key -q"));
        bench.read(&format!("{out}/clusters.tsv"))
    };
    assert_eq!(smallest("a", "in.jsonl"), smallest("b", "shuffled.jsonl"));
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
fn bands_find_a_subset_of_the_pairs_and_write_the_same_index() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(21, 900)));
    for threshold in ["0.5", "0.8"] {
        let run = |join: &str| {
            let out = format!("{join}-{threshold}");
            bench
                .ok(&format!("dedup in.jsonl -o {out} --join {join} --threshold {threshold} --pairs all -q"));
            bench.rows(&format!("{out}/pairs.tsv"), PAIRS)
        };
        let (auto, prefix, bands) = (run("auto"), run("prefix"), run("bands"));
        assert!(auto == prefix, "each finds all");
        let all: BTreeSet<&String> = prefix.iter().collect();
        assert!(bands.iter().all(|pair| all.contains(pair)));
        assert!(
            prefix.len() > 500 && bands.len() * 200 >= prefix.len() * 199,
            "{} {}",
            prefix.len(),
            bands.len()
        );
        let segment =
            |join: &str| fs::read(bench.path(&format!("{join}-{threshold}/index/000001.seg"))).unwrap();
        assert!(segment("prefix") == segment("bands") && segment("auto") == segment("bands"));
    }
}

#[test]
fn estimated_pairs_have_standard_errors_and_unverified_pairs_no_score() {
    let bench = Bench::new();
    let documents = corpus(22, 700);
    bench.write("in.jsonl", jsonl(&documents));
    let exact: BTreeMap<(String, String), f64> = resemblances(&documents)
        .into_iter()
        .map(|(a, b, both, all)| {
            let (a, b) = (&documents[a].0, &documents[b].0);
            ((a.min(b).clone(), a.max(b).clone()), both as f64 / all as f64)
        })
        .collect();
    let table = |name: &str, header: &str| -> Vec<Vec<String>> {
        bench.rows(name, header).iter().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    };
    for bits in [1, 2, 4, 8, 16, 32] {
        let out = format!("bits{bits}");
        let report = bench
            .json(&format!("dedup in.jsonl -o {out} --verify signature --signature-bits {bits} --pairs all"));
        let rows = table(&format!("{out}/pairs.tsv"), "a\tb\tresemblance\tstandard_error");
        assert_eq!(report["pairs"], rows.len());
        assert!(rows.len() > 300, "a test of something");
        let (mut estimates, mut within) = (0, 0);
        for row in &rows {
            let (value, error): (f64, f64) = (row[2].parse().unwrap(), row[3].parse().unwrap());
            assert!((0.8..=1.0).contains(&value) && error < 0.2, "{row:?}");
            if error > 0.0 {
                let truth = exact.get(&(row[0].clone(), row[1].clone())).copied().unwrap_or(0.0);
                estimates += 1;
                within += usize::from((value - truth).abs() <= 3.0 * error);
            } else {
                assert!(value >= 1.0, "identical texts: {row:?}");
            }
        }
        assert!(estimates > 100 && within * 100 >= estimates * 95, "{bits}: {within} of {estimates}");
        assert_eq!(bench.json(&format!("stats {out}/index"))["params"]["signature-bits"], bits.to_string());
    }
    let report = bench.json("dedup in.jsonl -o none --verify none --minima 512 --pairs all");
    let rows = table("none/pairs.tsv", "a\tb\tresemblance");
    assert!(rows.iter().all(|row| row[2] == "-" || row[2] == "1.000000"));
    assert!(rows.iter().any(|row| row[2] == "-") && rows.iter().any(|row| row[2] != "-"));
    assert_eq!(
        (&report["pairs"], &report["lowest_resemblance"], &report["chained"]),
        (&rows.len().into(), &serde_json::Value::Null, &0.into()),
        "nothing was measured, so that nothing is known to be far"
    );
    let signature = table("bits8/pairs.tsv", "a\tb\tresemblance\tstandard_error");
    let unverified: BTreeSet<&[String]> = rows.iter().map(|row| &row[..2]).collect();
    assert!(signature.iter().all(|row| unverified.contains(&row[..2])));
}

#[test]
fn more_minima_give_estimates_with_smaller_standard_error() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(22, 300)));
    // Four times as many minima halve the standard error.
    for (out, options, bands, rows, least, most) in [
        ("default", "--verify signature", "51", "10", 0.015, 0.019),
        ("narrow", "--verify signature --minima 120", "20", "6", 0.03, 0.04),
        ("exact", "", "20", "6", 0.0, 0.0),
        ("shingles", "--method shingles", "20", "6", 0.0, 0.1),
    ] {
        bench.ok(&format!("dedup in.jsonl -o {out} {options} -q"));
        let params = bench.json(&format!("stats {out}/index"))["params"].clone();
        assert_eq!((&params["bands"], &params["rows"]), (&bands.into(), &rows.into()), "{out}");
        let table = bench.read(&format!("{out}/pairs.tsv"));
        let near_threshold = |line: &&str| line.split('\t').nth(2).is_some_and(|value| value < "0.830000");
        for line in table.lines().skip(1).filter(near_threshold).filter(|_| most > 0.0) {
            let error: f64 = line.split('\t').nth(3).unwrap().parse().unwrap();
            assert!((least..=most).contains(&error), "{out}: {line}");
        }
        assert!(
            most == 0.0 || table.lines().skip(1).any(|line| near_threshold(&line)),
            "{out}: of something"
        );
    }
}

#[test]
fn join_methods_without_effect_are_refused_as_usage_errors() {
    let bench = Bench::new();
    bench.write("in.jsonl", "");
    for (options, parts) in [
        ("--join prefix --verify signature", &["--join prefix goes with --verify exact"][..]),
        ("--join prefix --verify none", &["--join prefix goes with --verify exact"]),
        ("--join auto --verify signature", &["--join auto goes with --verify exact"]),
        ("--verify signature --signature-bits 0", &["--signature-bits of 1 or more"]),
        ("--method simhash --join bands", &["--join goes with --method minhash"]),
        ("--method simhash --minima 200", &["--minima goes with --method minhash"]),
        ("--minima 119", &["--minima", "120"]),
        ("--minima 200 --preset lsh-16x8", &["--minima", "--preset"]),
        ("--method exact --verify exact", &["--verify goes with --method minhash"]),
        ("--method simhash --signature-bits 8", &["--signature-bits goes with --method minhash"]),
        ("--max-cluster 1", &["--max-cluster"]),
        ("--max-cluster 9", &["--max-cluster goes with --clusters components"]),
        ("--max-work 9 --clusters components", &["--max-work goes with"]),
        ("--max-work 9 --method simhash", &["--max-work goes with"]),
    ] {
        let output = bench.command(&format!("dedup in.jsonl -o out {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
        says(&String::from_utf8_lossy(&output.stderr), parts);
    }
    assert_eq!(bench.names("."), ["in.jsonl"]);
}

#[test]
fn chain_is_reported_and_split_by_max_cluster() {
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
    let whole = bench.json("dedup in.jsonl -o whole --clusters components");
    assert_eq!(
        (&whole["clusters"], &whole["largest_cluster"], &whole["chained"]),
        (&1.into(), &30.into(), &28.into())
    );
    assert_eq!((&whole["lowest_resemblance"], &whole["cut_components"]), (&0.0.into(), &0.into()));
    assert_eq!(whole["cluster_sizes"][5], serde_json::json!([32, 1]));
    says(
        &bench.ok("dedup in.jsonl -o whole --force --clusters components"),
        &["resemble each other by 0.000", "1 of 17-32 documents"],
    );

    let cut = bench.json("dedup in.jsonl -o cut --max-cluster 29 --clusters components");
    assert_eq!((&cut["cut_components"], &cut["chained"], &cut["pairs"]), (&1.into(), &0.into(), &29.into()));
    assert_eq!((&cut["clusters"], &cut["largest_cluster"]), (&15.into(), &2.into()));
    says(
        &bench.ok("dedup in.jsonl -o cut --max-cluster 29 --force --clusters components"),
        &["1 component of more than 29 documents cut"],
    );
    let rows = bench.rows("cut/clusters.tsv", CLUSTERS);
    assert_eq!(rows[..3], ["k00\t1\tk00\t1.000000", "k01\t1\tk00\t0.846154", "k02\t2\tk02\t1.000000"]);
    // A limit above the size of every component changes nothing.
    bench.ok("dedup in.jsonl -o same --max-cluster 30 --clusters components -q");
    assert_eq!(bench.read("same/clusters.tsv"), bench.read("whole/clusters.tsv"));
}

#[test]
fn new_documents_near_a_history_index_are_dropped_and_listed() {
    let bench = Bench::new();
    let documents = worded(corpus(41, 900));
    let (old, new) = documents.split_at(documents.len() / 2);
    bench.write("old.jsonl", jsonl(old));
    bench.write("new.jsonl", jsonl(new));
    // Estimates resemblances from an index that has all documents.
    bench.ok("dedup old.jsonl -o old --index all -q");
    let estimated = "dedup new.jsonl --verify signature --minima 120 --against old/index";
    let report = bench.json(&format!("{estimated} -o new"));
    let rows = bench.rows("new/against.tsv", "key\tother\tresemblance\tstandard_error");
    assert_eq!(
        (report["dropped"].as_u64().unwrap() as usize, report["documents"].as_u64().unwrap() as usize),
        (rows.len(), new.len())
    );
    assert!(rows.is_sorted() && rows.len() > 100 && rows.len() < new.len());
    let of_old: BTreeSet<&str> = old.iter().map(|(key, _)| key.as_str()).collect();
    let mut dropped = BTreeSet::new();
    for row in &rows {
        let fields: Vec<&str> = row.split('\t').collect();
        assert!(of_old.contains(fields[1]) && fields[2].parse::<f64>().unwrap() >= 0.8, "{row}");
        dropped.insert(fields[0]);
    }
    // Estimates have errors of a few hundredths, so only pairs that are far from 0.8 are checked.
    let mut best: BTreeMap<usize, f64> = BTreeMap::new();
    // Only the kept documents of the earlier run are compared. The index contains the others with a mark.
    let kept = bench.read("old/kept.jsonl");
    let kept: BTreeSet<&str> = kept.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    for (a, b, both, all) in resemblances(&documents) {
        if a < old.len() && b >= old.len() && kept.contains(documents[a].0.as_str()) {
            let best = best.entry(b).or_default();
            *best = best.max(both as f64 / all as f64);
        }
    }
    for (place, (key, _)) in documents.iter().enumerate().skip(old.len()) {
        let near = best.get(&place).copied().unwrap_or(0.0);
        assert!(near < 0.95 || dropped.contains(key.as_str()), "{key}: {near}");
        assert!(near > 0.6 || !dropped.contains(key.as_str()), "{key}: {near}");
    }
    // The kept documents equal the kept documents of a `dedup` run over the remaining documents.
    let rest: Vec<Document> =
        new.iter().filter(|(key, _)| !dropped.contains(key.as_str())).cloned().collect();
    bench.write("rest.jsonl", jsonl(&rest));
    bench.ok("dedup rest.jsonl --verify signature --minima 120 -o rest -q");
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
        &bench.ok(&format!("{estimated} -o new --force")),
        &["dropped", "near one of old/index", "against.tsv"],
    );

    // If the index stores more data than the comparison needs, the results are the same, for any number of threads and
    // any number of signature bits.
    bench.ok("build both.twx old.jsonl --bands 20 --rows 6 --signature-bits 16 -q");
    bench.ok("build same.twx old.jsonl --method minhash --bands 20 --rows 6 --signature-bits 16 -q");
    for (index, threads) in [("both.twx", 1), ("both.twx", 2), ("same.twx", 1)] {
        let options = "--verify signature --minima 120";
        let line = format!("dedup new.jsonl {options} --against {index} --threads {threads}");
        bench.ok(&format!("{line} -o {index}.{threads} -q"));
    }
    let rows_of =
        |out: &str| bench.rows(&format!("{out}/against.tsv"), "key\tother\tresemblance\tstandard_error");
    assert_eq!(rows_of("both.twx.1"), rows_of("same.twx.1"));
    assert_eq!(rows_of("both.twx.1"), rows_of("both.twx.2"));
    assert!(rows_of("both.twx.1").len() > 100);

    // With fingerprints, every document within the radius is found.
    bench.ok("dedup old.jsonl --method simhash -o oldsim --index all -q");
    bench.ok("dedup new.jsonl --method simhash --against oldsim/index -o newsim -q");
    let sketcher = Sketcher::new(&Params::builder().simhash(3).build().unwrap()).unwrap();
    let fingerprint = |text: &str| sketcher.sketch(text).unwrap().fingerprint().unwrap().0;
    let of_old: Vec<u64> = old.iter().map(|(_, text)| fingerprint(text)).collect();
    let mut wanted: Vec<String> = new
        .iter()
        .filter_map(|(key, text)| {
            let mine = fingerprint(text);
            let nearest = of_old.iter().map(|other| (mine ^ other).count_ones()).min()?;
            (nearest <= 3).then(|| format!("{key}\t{nearest}"))
        })
        .collect();
    wanted.sort();
    let found: Vec<String> = bench
        .rows("newsim/against.tsv", "key\tother\tdistance")
        .iter()
        .map(|row| {
            row.split('\t')
                .enumerate()
                .filter(|&(at, _)| at != 1)
                .map(|(_, field)| field)
                .collect::<Vec<_>>()
                .join("\t")
        })
        .collect();
    assert_eq!(found, wanted);
    bench.ok("dedup new.jsonl --method simhash --against both.twx -o newboth -q");
    let with_both = bench.rows("newboth/against.tsv", "key\tother\tdistance");
    assert_eq!(with_both, bench.rows("newsim/against.tsv", "key\tother\tdistance"));
}

#[test]
fn incomparable_history_index_and_previously_dropped_key_are_refused() {
    let bench = Bench::new();
    let text = "one two three four five six seven";
    bench.write("old.jsonl", jsonl(&documents([("x", text)])));
    bench.write("twice.jsonl", jsonl(&documents([("a", text), ("a", "something else")])));
    bench.ok("dedup old.jsonl -o old -q");
    let estimated = "dedup old.jsonl --verify signature --minima 120";
    let message = bench.refused(&format!("{estimated} --words 3 --against old/index -o out"));
    says(
        &message,
        &["--against old/index", "the options with which it was made", "width is 5 in the index and 3 here"],
    );
    says(
        &bench.refused("dedup old.jsonl --method simhash --against old/index -o out"),
        &["parameters differ"],
    );
    bench.ok("build sim.twx old.jsonl --method simhash -q");
    says(&bench.refused(&format!("{estimated} --against sim.twx -o out")), &["minhash is none in the index"]);
    bench.ok("build nobits.twx old.jsonl --method minhash --bands 20 --rows 6 --signature-bits 0 -q");
    let usage = |line: &str, parts: &[&str]| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), parts);
    };
    usage(
        &format!("{estimated} --against nobits.twx -o out"),
        &["--against nobits.twx", "--signature-bits 0"],
    );
    says(&bench.refused("dedup old.jsonl --against none -o out"), &["none"]);
    says(
        &bench.refused("dedup twice.jsonl --against old -o out --repeated-keys error"),
        &["twice.jsonl:2", "is already at twice.jsonl:1"],
    );
    // An index alone has no texts for exact counts.
    let no_texts = ["--against old/index", "no texts to count on", "--texts", "--verify signature"];
    usage("dedup old.jsonl --method exact --against old/index -o out", &no_texts);
    usage("dedup old.jsonl --against old/index --near containment -o out", &no_texts);
    let stricter = "dedup old.jsonl --against old/index --threshold 0.7 -o out";
    usage(stricter, &[&no_texts[..], &["resembles by 0.8 or more, and 0.7 is asked for"]].concat());
    let other = "dedup old.jsonl --against old/index --words 3 -o out";
    usage(other, &[&no_texts[..], &["sets of other shingles", "width"]].concat());
    usage("dedup old.jsonl --texts old.jsonl -o out", &["--texts goes with --against"]);
    usage(&format!("{estimated} --against old/index --texts old.jsonl -o out"), &["--texts goes with"]);
    usage("dedup old.jsonl --join bands --against old -o out", &["--join bands", "history"]);
    usage("dedup old.jsonl --against old/index --texts twice.jsonl -o out", &["has 0 of the 1 documents"]);
    assert_eq!(bench.names("."), ["nobits.twx", "old", "old.jsonl", "sim.twx", "twice.jsonl"]);
}

/// Returns the documents that have words.
fn worded(documents: Vec<Document>) -> Vec<Document> {
    documents.into_iter().filter(|(_, text)| text.chars().any(char::is_alphanumeric)).collect()
}

#[test]
fn empty_input_is_not_an_error() {
    let bench = Bench::new();
    bench.write("in.jsonl", "\n\n");
    let report = bench.json("dedup in.jsonl -o out");
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
    bench.ok("dedup in.jsonl -o out --words 3 -q");
    assert_eq!(bench.json("stats out/index")["params"]["width"], "3");
    bench.write("q.jsonl", jsonl(&documents([("q", text)])));
    assert_eq!(bench.ok("query out/index q.jsonl"), "q\ta\t-\t1.0000\t5\t5\n");
    bench.ok("dedup in.jsonl -o bare --words 3 --sets none -q");
    says(&bench.refused("query bare/index q.jsonl"), &["bare/index", "no sets", "--verify signature"]);
    assert_eq!(bench.ok("query bare/index q.jsonl --verify signature"), "q\ta\t-\t1.0000\n");
}
