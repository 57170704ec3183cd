//! `groups` lists what `dedup --keep key-hash` decides over the same documents, whatever was in the index before.

use std::collections::BTreeMap;

use crate::support::{Bench, corpus, jsonl, rows, says};

const HEADER: &str = "key\tleader\tsize";

/// Key to leader, of a listing or of `clusters.tsv`.
fn leaders(rows: Vec<String>, of: usize) -> BTreeMap<String, String> {
    let fields = |row: String| {
        let fields: Vec<&str> = row.split('\t').collect();
        (fields[0].to_owned(), fields[of].to_owned())
    };
    rows.into_iter().map(fields).collect()
}

#[test]
fn groups_are_those_of_dedup_by_the_hash_of_keys_whatever_came_before() {
    let bench = Bench::new();
    let documents = corpus(7, 300);
    bench.write("all.jsonl", jsonl(&documents));
    bench.write("others.jsonl", jsonl(&corpus(8, 120)));
    bench.ok("dedup all.jsonl --keep key-hash -o out");
    let decided = leaders(bench.rows("out/clusters.tsv", "key\tcluster\tkept\tscore"), 2);
    // Other texts of some of the keys come first, and are replaced.
    bench.ok("build living.twx others.jsonl");
    bench.ok("build living.twx all.jsonl");
    let listed = leaders(rows(&bench.ok("groups living.twx"), HEADER), 1);
    assert_eq!(listed, decided);
    let led = listed.iter().filter(|(key, leader)| key != leader).count();
    assert!(led > 20 && led < 290, "{led}");
    // The same with the marks of a stream.
    bench.ok("stream streamed.twx all.jsonl --quiet");
    assert_eq!(bench.ok("groups streamed.twx --threads 1"), bench.ok("groups living.twx --threads 2"));
}

#[test]
fn the_group_of_a_key_is_that_of_the_listing_as_text_and_as_json() {
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
        assert_eq!(json.lines().count(), of.len());
        let line: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!((line["leader"].as_str(), line["size"].as_u64()), (Some(fields[1]), Some(of.len() as u64)));
    }
    says(&bench.refused("groups living.twx --of nothing"), &["no document `nothing`"]);
}

#[test]
fn an_estimate_says_that_it_is_one() {
    let bench = Bench::new();
    bench.write("all.jsonl", jsonl(&corpus(7, 100)));
    bench.ok("build estimated.twx all.jsonl --sets none");
    let done = bench.command("groups estimated.twx").output().unwrap();
    assert!(done.status.success());
    says(&String::from_utf8_lossy(&done.stderr), &["an estimate from signatures"]);
    assert_eq!(rows(&String::from_utf8_lossy(&done.stdout), HEADER).len(), 100);
    assert_eq!(rows(&bench.ok("groups estimated.twx --quiet"), HEADER).len(), 100);
}
