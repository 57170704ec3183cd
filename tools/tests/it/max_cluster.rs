//! `groups --max-cluster`: splits components with too many documents. The clusters are compared with a plain search
//! over the pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::support::{Bench, Document, Random, jsonl, says};

const HEAD: &str = "key\tcluster\tkept\tscore";

/// Returns 30 documents of 40 words. Each starts 3 words after the previous one. Neighbours share 33 of 39
/// shingles, and documents two apart 30 of 42.
fn chain() -> Vec<Document> {
    let text =
        |place: usize| -> Vec<String> { (0..40).map(|word| format!("w{}", place * 3 + word)).collect() };
    (0..30).map(|place| (format!("k{place:02}"), text(place).join(" "))).collect()
}

#[test]
fn chain_is_reported_and_split_by_max_cluster() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&chain()));
    bench.ok("build i.twx in.jsonl -q");
    let whole = bench.json("groups --as clusters i.twx --near 0.8 -o whole.tsv -q");
    assert_eq!(
        (&whole["clusters"], &whole["largest"], &whole["chained"]),
        (&1.into(), &30.into(), &28.into())
    );
    assert!(whole.get("cut_components").is_none(), "{whole}");

    let line = "groups --as clusters i.twx --near 0.8 --max-cluster";
    let cut = bench.json(&format!("{line} 29 -o cut.tsv -q"));
    assert_eq!(
        (&cut["cut_components"], &cut["chained"], &cut["documents"]),
        (&1.into(), &0.into(), &30.into())
    );
    assert_eq!((&cut["clusters"], &cut["largest"], &cut["removed"]), (&15.into(), &2.into(), &15.into()));
    let rows = bench.rows("cut.tsv", HEAD);
    assert_eq!(rows[..3], ["k00\t1\tk00\t=", "k01\t1\tk00\t0.846154", "k02\t2\tk02\t="]);
    let output = bench.command(&format!("{line} 29")).output().unwrap();
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["1 component of more than 29 documents split into clusters (--max-cluster)"],
    );
    // A limit that no component exceeds changes nothing.
    let same = bench.json(&format!("{line} 30 -o same.tsv -q"));
    assert_eq!(same["cut_components"], 0);
    assert_eq!(bench.read("same.tsv"), bench.read("whole.tsv"));
    // Which document is kept is decided in each cluster.
    bench.write("backwards.jsonl", jsonl(&chain().into_iter().rev().collect::<Vec<_>>()));
    bench.ok(&format!("{line} 29 --keep first --texts backwards.jsonl -o first.tsv -q"));
    let rows = bench.rows("first.tsv", HEAD);
    assert_eq!(rows[..3], ["k00\t1\tk01\t0.846154", "k01\t1\tk01\t=", "k02\t2\tk03\t0.846154"]);
    // Documents that are in no cluster of two are listed with --all.
    let all = bench.ok("groups --as clusters i.twx --near 0.8 --max-cluster 2 --min-size 1 -q");
    assert_eq!(all.lines().count(), 31);
}

/// Returns the expected table: components of more than `max` documents are split in the order of keys.
fn split(pairs: &BTreeMap<(u32, u32), String>, max: usize) -> (Vec<String>, usize) {
    let mut near: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for &(a, b) in pairs.keys() {
        near.entry(a).or_default().insert(b);
        near.entry(b).or_default().insert(a);
    }
    let (mut seen, mut clusters, mut cut) = (BTreeSet::new(), BTreeMap::new(), 0);
    for &root in near.keys() {
        if seen.contains(&root) {
            continue;
        }
        let (mut component, mut waiting) = (BTreeSet::new(), vec![root]);
        while let Some(one) = waiting.pop() {
            if seen.insert(one) {
                component.insert(one);
                waiting.extend(&near[&one]);
            }
        }
        if component.len() <= max {
            clusters.insert(root, component);
            continue;
        }
        cut += 1;
        while let Some(first) = component.pop_first() {
            let others: Vec<u32> = near[&first].intersection(&component).copied().take(max - 1).collect();
            component.retain(|one| !others.contains(one));
            clusters.insert(first, others.into_iter().chain([first]).collect());
        }
    }
    let mut lines = Vec::new();
    let clusters = clusters.into_iter().filter(|(_, members)| members.len() > 1);
    for (number, (first, members)) in (1..).zip(clusters) {
        for member in members {
            let score = pairs.get(&(first, member)).map_or("-", |score| score.as_str());
            let score = if member == first { "=" } else { score };
            lines.push(format!("{member:05}\t{number}\t{first:05}\t{score}"));
        }
    }
    (lines, cut)
}

#[test]
fn split_clusters_equal_a_plain_search_for_any_files_and_memory() {
    let bench = Bench::new();
    let mut random = Random(51);
    let mut pairs = BTreeMap::new();
    // Half of the documents are in components of many, others in small ones.
    for _ in 0..9000 {
        let a = random.below(6_000) as u32;
        let b = if a.is_multiple_of(2) {
            a + 2 * random.below(9) as u32
        } else {
            a + 2 * (random.below(40) as u32 / 39)
        };
        if a != b {
            pairs.insert((a, b), (random.below(11)).to_string());
        }
    }
    let (mut tables, mut all) = ([String::new(), String::new(), String::new()], String::new());
    for (&(a, b), score) in &pairs {
        // The order of files, of the lines in them, and of the two keys must not matter.
        let (a, b) = if random.below(2) == 0 { (a, b) } else { (b, a) };
        writeln!(tables[random.below(3)], "{a:05}\t{b:05}\t{score}").unwrap();
        writeln!(all, "{a:05}\t{b:05}\t{score}").unwrap();
    }
    bench.write("all.tsv", &all);
    for (number, table) in tables.iter().enumerate() {
        bench.write(&format!("{number}.tsv"), table);
    }
    bench.ok("groups --as forest all.tsv -o all.forest -q");
    for max in [2, 3, 10, 100] {
        let (wanted, cut) = split(&pairs, max);
        assert!(cut > 0 && wanted.len() > 1000, "a test of something: {cut}, {}", wanted.len());
        for (input, options) in [
            ("all.tsv", ""),
            ("2.tsv 0.tsv 1.tsv", ""),
            ("all.tsv", "--memory 64K"),
            ("1.tsv", "--scores all.tsv"),
        ] {
            let line =
                format!("groups --as clusters {input} {options} --max-cluster {max} -o c.tsv --force -q");
            let report = bench.command(&format!("{line} --json")).output().unwrap();
            let said = String::from_utf8(report.stderr).unwrap();
            if input == "1.tsv" {
                says(&said, &["all.tsv, line ", "make the forest of all pairs"]);
                continue;
            }
            let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect(&said);
            assert_eq!(report["cut_components"], cut, "{input} {options} {max}");
            let found = bench.rows("c.tsv", HEAD);
            let differs = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
            assert_eq!(differs, None, "{input} {options} {max}");
            assert_eq!(found.len(), wanted.len());
            assert_eq!(
                report["chained"].as_u64().unwrap() > 0,
                wanted.iter().any(|line| line.ends_with("\t-"))
            );
        }
    }
}

#[test]
fn forest_with_max_cluster_needs_the_pairs() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&chain()));
    bench.ok("build i.twx in.jsonl -q");
    for part in 1..=2 {
        bench.ok(&format!("pairs i.twx --near 0.8 --shard {part}/2 --into parts -q"));
    }
    bench.ok("groups --as forest parts -o all.forest -q");
    let output = bench.command("groups --as clusters all.forest --max-cluster 29").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["--max-cluster needs all pairs", "all.forest, a forest, does not have", "--scores"],
    );
    let wanted = bench.ok("groups --as clusters parts --max-cluster 29 -q");
    assert_eq!(wanted.lines().count(), 31);
    assert_eq!(bench.ok("groups --as clusters all.forest --scores parts --max-cluster 29 -q"), wanted);
    // The edges of a forest are not taken for pairs, beside pairs either.
    assert_eq!(bench.ok("groups --as clusters all.forest parts --scores parts --max-cluster 29 -q"), wanted);
    let output = bench.command("groups --as clusters parts --max-cluster 1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
