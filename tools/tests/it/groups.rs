//! `groups` must list the decisions of `dedup --keep key-hash` over the same documents, regardless of the index's
//! history.

use std::collections::BTreeMap;

use crate::support::{Bench, corpus, jsonl, rows, says};

const HEADER: &str = "key\tleader\tsize";

/// Returns a map from keys to leaders, read from the output of `groups` or from `clusters.tsv`.
fn leaders(rows: Vec<String>, of: usize) -> BTreeMap<String, String> {
    let fields = |row: String| {
        let fields: Vec<&str> = row.split('\t').collect();
        (fields[0].to_owned(), fields[of].to_owned())
    };
    rows.into_iter().map(fields).collect()
}

#[test]
fn groups_equal_dedup_by_key_hash_after_any_history() {
    let bench = Bench::new();
    let documents = corpus(7, 300);
    bench.write("all.jsonl", jsonl(&documents));
    bench.write("others.jsonl", jsonl(&corpus(8, 120)));
    bench.ok("dedup all.jsonl --keep key-hash -o out");
    let decided = leaders(bench.rows("out/clusters.tsv", "key\tcluster\tkept\tscore"), 2);
    // Some keys first have other texts, which are then replaced.
    bench.ok("build living.twx others.jsonl");
    bench.ok("build living.twx all.jsonl");
    let listed = leaders(rows(&bench.ok("groups living.twx"), HEADER), 1);
    assert_eq!(listed, decided);
    let led = listed.iter().filter(|(key, leader)| key != leader).count();
    assert!(led > 20 && led < 290, "{led}");
    // The same result with an index that has marks, as written by `stream`.
    bench.ok("stream streamed.twx all.jsonl --quiet");
    assert_eq!(bench.ok("groups streamed.twx --threads 1"), bench.ok("groups living.twx --threads 2"));
}

#[test]
fn group_of_a_key_equals_its_group_in_the_listing() {
    let bench = Bench::new();
    bench.write("all.jsonl", jsonl(&corpus(7, 200)));
    bench.ok("build living.twx all.jsonl");
    let all = rows(&bench.ok("groups living.twx"), HEADER);
    let large = rows(&bench.ok("groups living.twx --min-size 2"), HEADER);
    let size = |row: &str| row.rsplit('\t').next().unwrap().parse::<u32>().unwrap();
    let expected: Vec<&String> = all.iter().filter(|row| size(row) >= 2).collect();
    assert_eq!(large.iter().collect::<Vec<_>>(), expected);
    assert!(large.len() > 10 && large.len() < all.len());
    for row in large.iter().step_by(9) {
        let fields: Vec<&str> = row.split('\t').collect();
        let of: Vec<&String> = all.iter().filter(|row| row.split('\t').nth(1) == Some(fields[1])).collect();
        let found = rows(&bench.ok(&format!("groups living.twx --of {}", fields[0])), HEADER);
        assert_eq!(found.iter().collect::<Vec<_>>(), of);
        let json = bench.ok(&format!("groups living.twx --json --of {}", fields[0]));
        assert_eq!(json.lines().count(), of.len() + 1);
        let line: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(
            (line["leader"].as_str(), line["size"].as_u64()),
            (Some(fields[1]), Some(of.len() as u64))
        );
    }
    says(&bench.refused("groups living.twx --of nothing"), &["no document `nothing`"]);
}

#[test]
fn group_estimates_are_marked_as_estimates() {
    let bench = Bench::new();
    bench.write("all.jsonl", jsonl(&corpus(7, 100)));
    bench.ok("build estimated.twx all.jsonl --sets none");
    let done = bench.command("groups estimated.twx").output().unwrap();
    assert!(done.status.success());
    says(&String::from_utf8_lossy(&done.stderr), &["an estimate from signatures"]);
    assert_eq!(rows(&String::from_utf8_lossy(&done.stdout), HEADER).len(), 100);
    assert_eq!(rows(&bench.ok("groups estimated.twx --quiet"), HEADER).len(), 100);
}

#[test]
fn priorities_choose_the_same_leaders_as_dedup_keep() {
    let bench = Bench::new();
    let lines: String = corpus(7, 300)
        .iter()
        .enumerate()
        .map(|(place, (key, text))| {
            // All scores are different; some are negative, and some are fractions.
            let score = (place as f64 * 7919.0) % 300.0 - 40.5;
            serde_json::json!({ "id": key, "text": text, "score": score }).to_string() + "\n"
        })
        .collect();
    bench.write("all.jsonl", lines);
    let mut found = Vec::new();
    for which in ["max:score", "min:score"] {
        bench.ok(&format!("dedup all.jsonl --keep {which} -o out --force"));
        let decided = leaders(bench.rows("out/clusters.tsv", "key\tcluster\tkept\tscore"), 2);
        let name = &which[..3];
        bench.ok(&format!("build {name}.twx all.jsonl --priority-field {which}"));
        assert_eq!(leaders(rows(&bench.ok(&format!("groups {name}.twx")), HEADER), 1), decided, "{which}");
        found.push(decided);
    }
    assert_ne!(found[0], found[1]);
    bench.write("without.jsonl", "{\"id\":\"a\",\"text\":\"one two\"}\n");
    says(
        &bench.refused("build min.twx without.jsonl --priority-field min:score"),
        &["score", "--priority-field"],
    );
    bench.ok("build plain.twx without.jsonl");
    says(&bench.refused("build plain.twx all.jsonl --priority-field min:score"), &["no priorities are kept"]);
}

#[test]
fn stream_prints_leader_and_size_of_the_group_of_each_document() {
    let bench = Bench::new();
    let text = "one two three four five six seven eight nine ten";
    let all = [("b", text), ("a", text), ("c", "something else"), ("d", text)];
    bench.write("in.jsonl", jsonl(&all.map(|(key, text)| (key.to_owned(), text.to_owned()))));
    let said = bench.ok("stream x.twx in.jsonl --groups --quiet");
    let ends: Vec<Vec<&str>> = said.lines().map(|line| line.split('\t').skip(5).collect()).collect();
    let listed = leaders(rows(&bench.ok("groups x.twx"), HEADER), 1);
    assert_eq!(ends[0], ["b", "1"]);
    assert_eq!(ends[1][1], "2");
    assert_eq!(ends[2], ["c", "1"]);
    assert_eq!(ends[3], [listed["d"].as_str(), "3"]);
    assert!(bench.ok("stream y.twx in.jsonl --quiet").lines().all(|line| line.split('\t').count() == 5));
    let dropped = bench.ok("stream z.twx in.jsonl --groups --drop-duplicates --quiet");
    assert!(dropped.lines().nth(1).unwrap().ends_with("\t-\t-"), "{dropped}");
}

#[test]
fn stats_count_groups_by_size() {
    let bench = Bench::new();
    bench.write("all.jsonl", jsonl(&corpus(7, 200)));
    bench.ok("build x.twx all.jsonl");
    let groups = &bench.json("stats x.twx --groups")["groups"];
    let all = rows(&bench.ok("groups x.twx"), HEADER);
    let led = all.iter().filter(|row| row.split('\t').next() == row.split('\t').nth(1)).count();
    assert_eq!(groups["groups"].as_u64(), Some(led as u64));
    let documents: u64 = groups["sizes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(size, groups)| size.parse::<u64>().unwrap() * groups.as_u64().unwrap())
        .sum();
    assert_eq!(documents, 200);
    says(&bench.ok("stats x.twx --groups"), &["groups", "of 1 "]);
    assert!(bench.json("stats x.twx").get("groups").is_none());
    let page = bench.ok("stats x.twx --html - --groups");
    says(&page, &["<h2 id=\"groups\">", &format!("<p>{led} groups")]);
    assert!(!bench.ok("stats x.twx --html -").contains("id=\"groups\""));
}
