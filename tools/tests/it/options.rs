//! Options that change how results are computed but not the results, and options that resolve conflicts. A last test
//! checks that every option of every verb occurs in these tests.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Bench, corpus, documents, jsonl, says};
use crate::verbs::verbs;

#[test]
fn answers_do_not_depend_on_access_mode_or_probe_strategy() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(3, 200)));
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("build plain.twx in.jsonl -q --design blocks-4 --codec plain");
    let wanted = bench.ok("query i.twx in.jsonl --near within:3");
    assert!(wanted.lines().count() > 200, "{wanted}");
    for (index, how) in [
        ("i.twx", "--access read"),
        ("i.twx", "--access load"),
        ("i.twx", "--access plain-map"),
        ("i.twx", "--access map"),
        ("i.twx", "--probe directory"),
        ("plain.twx", "--probe directory"),
        ("plain.twx", "--probe interpolation"),
        ("plain.twx", "--probe binary"),
    ] {
        assert!(
            bench.ok(&format!("query {index} in.jsonl --near within:3 {how}")) == wanted,
            "{index} {how}"
        );
    }
    // Not every codec supports every probe strategy.
    bench.ok("build planes.twx in.jsonl -q --design blocks-4 --codec planes");
    says(
        &bench.refused("query planes.twx in.jsonl --near within:3 --probe binary"),
        &["probe", "coded as planes"],
    );
    for how in ["read", "load", "plain-map"] {
        assert_eq!(bench.json(&format!("verify i.twx --access {how}"))["sound"], true, "{how}");
    }
}

#[test]
fn query_with_a_visit_limit_reports_the_skipped_buckets() {
    let bench = Bench::new();
    let all = corpus(3, 200);
    bench.write("in.jsonl", jsonl(&all));
    bench.ok("build i.twx in.jsonl -q");
    let hits = |visits: &str| {
        let output = bench
            .command(&format!("query i.twx in.jsonl --near within:3 --json --count {visits}"))
            .output()
            .unwrap();
        let (printed, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        let printed: serde_json::Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(said.contains("left out by --visits"), printed["unvisited"].as_u64() != Some(0), "{said}");
        (printed["hits"].as_u64().unwrap(), printed["unvisited"].as_u64().unwrap())
    };
    let (some, left_out) = hits("--visits 1");
    let (wanted, nothing) = hits("");
    assert!(some < wanted && left_out > 0 && nothing == 0, "{some} {left_out} {wanted} {nothing}");
    assert_eq!(hits("--visits 1000000"), (wanted, 0));
}

#[test]
fn each_minhash_family_works_and_is_not_confused_with_another() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(3, 100)));
    for family in ["one-permutation-filled", "linear", "multiply-shift", "matrix"] {
        bench.ok(&format!("build {family}.twx in.jsonl -q --method minhash --family {family}"));
        let found = bench.ok(&format!("query {family}.twx in.jsonl --near 0.8"));
        assert!(found.lines().count() >= 100, "{family}: each document finds itself");
        let other = if family == "linear" { "matrix" } else { "linear" };
        let said = bench.refused(&format!("build {family}.twx in.jsonl --family {other}"));
        says(&said, &[&format!("{family}.twx"), "family", family, other]);
    }
}

#[test]
fn distinct_weights_give_equal_fingerprints_for_equal_word_sets() {
    let bench = Bench::new();
    let (once, often) =
        ("a rose is what it was".to_owned(), "a rose is what it was".to_owned() + &" rose".repeat(9));
    bench.write("in.jsonl", jsonl(&documents([("once", &once), ("often", &often)])));
    let build = "in.jsonl -q --method simhash --words 1 --simhash-weights";
    bench.ok(&format!("build distinct.twx {build} distinct"));
    bench.ok(&format!("build counted.twx {build} occurrences"));
    assert_eq!(bench.ok("pairs distinct.twx --near within:0").lines().count(), 1);
    assert_eq!(bench.ok("pairs counted.twx --near within:0"), "");
    let said = bench.refused(&format!("build distinct.twx {build} occurrences"));
    says(&said, &["distinct.twx", "--simhash-weights occurrences", "distinct"]);
}

#[test]
fn merge_of_conflicting_shards_requires_option_on_conflict() {
    let bench = Bench::new();
    let of = |text| documents([("k", text), ("same", "a rose is a rose is a rose")]);
    bench.write("a.jsonl", jsonl(&of("one two three four five six")));
    bench.write("b.jsonl", jsonl(&of("seven eight nine ten eleven twelve")));
    bench.ok("build a.twx a.jsonl -q");
    bench.ok("build b.twx b.jsonl -q");
    let said = bench.refused("merge a.twx b.twx -o m.twx");
    says(&said, &["`k`", "a.twx", "b.twx", "--on-conflict first or last"]);
    assert!(!bench.path("m.twx").exists());
    for (what, wanted) in [("first", "a"), ("last", "b")] {
        bench.ok(&format!("merge a.twx b.twx -o {what}.twx -q --on-conflict {what}"));
        assert_eq!(
            bench.ok(&format!("get {what}.twx k same")),
            bench.ok(&format!("get {wanted}.twx k same"))
        );
    }
    says(&bench.refused("merge a.twx b.twx -o m.twx --on-conflict refuse"), &["`k`"]);
}

#[test]
fn merge_of_different_indexes_names_what_differs_with_both_values() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        "{\"id\":\"k\",\"text\":\"nine cats nap near nets\",\"v\":\"x\",\"n\":1,\"t\":1}\n",
    );
    bench.ok("build usual.twx in.jsonl -q");
    for (options, words) in [
        ("--sets none", "sets are kept in usual.twx, and not kept in o.twx"),
        ("--fold marks", "fold is none in usual.twx, and marks/"),
        ("--feature-bits 16", "feature-bits is 32 in usual.twx, and 16 in o.twx"),
        ("--value-field v", "values are not kept in usual.twx, and kept in o.twx"),
        ("--priority-field min:n", "priorities are not kept in usual.twx, and kept in o.twx"),
        ("--stamp-field t --expire-after 60", "expire-after is none in usual.twx, and 60 in o.twx"),
        ("--words 4", "width is 5 in usual.twx, and 4 in o.twx"),
        ("--method minhash", "simhash is kept in usual.twx, and not kept in o.twx"),
        ("--method simhash", "minhash is kept in usual.twx, and not kept in o.twx"),
        ("--near 0.9", "bands is 20 in usual.twx, and 13 in o.twx; rows is 6 in usual.twx, and 9 in o.twx"),
        ("--design blocks-4", "tables is auto in usual.twx, and blocks-4 in o.twx"),
    ] {
        bench.ok(&format!("build o.twx in.jsonl -q {options}"));
        let said = bench.refused("merge usual.twx o.twx -o m.twx");
        says(&said, &["usual.twx and ", "o.twx have different parameters: ", words, "with the same options"]);
        assert!(!bench.path("m.twx").exists(), "{options}");
        std::fs::remove_dir_all(bench.path("o.twx")).unwrap();
    }
}

/// Returns the options listed in a page of help.
fn options(help: &str) -> impl Iterator<Item = &str> {
    let names = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.split_once(", --").map_or(line, |(short, _)| &line[short.len() + 2..]);
        let is_part = |c: char| c == '-' || c.is_ascii_alphanumeric();
        line.starts_with("--").then(|| line.split(|c| !is_part(c)).next().unwrap_or(line))
    });
    names.filter(|name| !["--help", "--version"].contains(name))
}

#[test]
fn every_option_name_occurs_in_some_test() {
    let bench = Bench::new();
    let mut all = BTreeSet::new();
    for verb in verbs(&bench) {
        let help = bench.ok(&format!("{verb} --help"));
        all.extend(options(&help).map(str::to_owned));
    }
    assert!(all.len() > 60 && all.contains("--threads") && all.contains("--quiet"), "{all:?}");
    let mut tests = String::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            tests += &std::fs::read_to_string(path).unwrap();
        }
    }
    let is_there = |option: &str| {
        tests.match_indices(option).any(|(at, _)| {
            !tests[at + option.len()..].starts_with(|next: char| next == '-' || next.is_ascii_alphanumeric())
        })
    };
    // The tests use the short form of these options.
    let short = [("quiet", "-q"), ("verbose", "-v")];
    let spelled = |option: &str| {
        is_there(option) || short.iter().any(|(name, short)| *name == &option[2..] && is_there(short))
    };
    let missing: Vec<&String> = all.iter().filter(|option| !spelled(option)).collect();
    assert!(missing.is_empty(), "no test has {missing:?}");
}
