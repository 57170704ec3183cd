//! `--memory` must limit the memory of a job without changing its results. Per-document data goes to scratch files if it
//! does not fit in memory.

use std::fmt::Write;

use serde_json::json;

use crate::support::{Bench, Random, corpus, says};

/// The results to compare. The page contains the name of its folder, and the segments of the index depend on the memory,
/// so they are left out.
const RESULTS: [&str; 3] = ["pairs.tsv", "clusters.tsv", "kept.jsonl"];

/// Returns documents of all kinds, with copies, groups of near documents, and fields for `--keep`.
fn fielded(seed: u64, count: usize) -> String {
    let mut random = Random(seed);
    let mut lines = String::new();
    for (id, text) in corpus(seed, count) {
        let (lang, score) = (["en", "de"][random.below(2)], random.below(9));
        writeln!(lines, "{}", json!({"id": id, "text": text, "lang": lang, "score": score})).unwrap();
    }
    lines
}

#[test]
fn results_do_not_depend_on_memory_for_any_method_and_priority() {
    let bench = Bench::new();
    bench.write("in.jsonl", fielded(71, 1500));
    bench.write("before.jsonl", fielded(72, 300).replace("\"id\":\"d", "\"id\":\"b"));
    bench.ok("dedup before.jsonl -o before -q");
    bench.ok("dedup before.jsonl -o fingerprints --near within:3 -q");
    for options in [
        "",
        "--keep longest",
        "--keep smallest-key",
        "--keep key-hash",
        "--keep max:score",
        "--keep min:score --inside lang",
        "--keep rank:lang=de --keep max:score --keep longest",
        "--near containment:0.8",
        "--near containment:0.8 --keep key-hash",
        "--threshold 0.5",
        "--weights tf --keep smallest-key",
        "--near equal",
        "--near within:5",
        "--near within:3 --keep longest",
        "--against before",
        "--against before --keep longest",
        "--near within:3 --against fingerprints",
    ] {
        let mut roomy = Vec::new();
        for memory in ["1G", "1M", "64K"] {
            bench.ok(&format!("dedup in.jsonl -o out {options} --memory {memory} --force -q"));
            let mut all: Vec<String> =
                RESULTS.iter().map(|name| bench.read(&format!("out/{name}"))).collect();
            if options.contains("--against") {
                all.push(bench.read("out/against.tsv"));
            }
            if roomy.is_empty() {
                assert!(all[0].lines().count() > 20 && all[1].lines().count() > 1000, "{options}");
                roomy = all;
            } else {
                assert!(all == roomy, "{options} --memory {memory}");
            }
        }
    }
}

#[test]
fn repeated_key_error_names_both_records_for_any_memory() {
    let bench = Bench::new();
    let mut lines = fielded(73, 3000);
    writeln!(lines, "{}", json!({"id": "d1234", "text": "again"})).unwrap();
    bench.write("in.jsonl", &lines);
    let place = lines.lines().position(|line| line.contains("\"id\":\"d1234\"")).unwrap() + 1;
    for memory in ["64K", "1G"] {
        let error = bench.refused(&format!("dedup in.jsonl -o out --repeated-keys error --memory {memory}"));
        let first = format!("the key `d1234` is already at in.jsonl:{place}");
        says(&error, &["in.jsonl:3001", &first, "give each document a key of its own"]);
    }
}

/// Returns the peak anonymous memory of a run in bytes.
#[cfg(target_os = "linux")]
fn anonymous_peak(bench: &Bench, line: &str) -> usize {
    let mut command = std::process::Command::new(crate::support::TWINDEX);
    let mut child = command.current_dir(bench.root()).args(line.split_whitespace()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes =
            anonymous.and_then(|value| value.trim().trim_end_matches(" kB").parse::<usize>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{line}");
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn peak_memory_does_not_grow_with_the_number_of_documents() {
    let bench = Bench::new();
    let mut random = Random(74);
    let mut lines = String::new();
    let mut peaks = Vec::new();
    for part in 1..=3 {
        for number in 0..100_000_u64 {
            let key = format!("{:020}", (part * 100_000 + number) * 7919);
            let words: Vec<String> = (0..9).map(|_| format!("w{}", random.below(20_000))).collect();
            writeln!(lines, "{{\"id\":\"{key}\",\"text\":\"{}\"}}", words.join(" ")).unwrap();
        }
        if part != 2 {
            bench.write("in.jsonl", &lines);
            let line = "dedup in.jsonl -o out --keep key-hash --memory 8M --threads 2 --force -q";
            peaks.push(anonymous_peak(&bench, line));
        }
    }
    println!("100,000 and 300,000 documents: {peaks:?}");
    // For 200,000 more documents, 430 bytes each would be 86 MB.
    assert!(peaks[1] < peaks[0] + (8 << 20), "{peaks:?}");
}
