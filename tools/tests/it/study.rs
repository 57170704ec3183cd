//! `study --method` prints the tables of the study of WET files, and compares scores with exact resemblance.

use std::collections::BTreeSet;

use crate::support::{Bench, corpus, gzip, jsonl};

#[test]
fn study_compares_scores_with_exact_pairs() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&corpus(5, 150)));
    bench.ok("build exact.twx pages.jsonl --method minhash --words 3 -q");
    let exact = bench.ok("pairs exact.twx --near 0.8");
    let pair = |line: &str| line.split('\t').take(2).map(str::to_owned).collect::<Vec<_>>();
    let exact: BTreeSet<Vec<String>> = exact.lines().map(pair).collect();
    assert!(exact.len() > 20, "{}", exact.len());
    for (method, lowest, highest) in [("simhash", 56, 64), ("minhash", 10, 20)] {
        let report = bench.json(&format!("study pages.jsonl --method {method} -o {method}.tsv"));
        assert_eq!(report["near_pairs"].as_u64(), Some(exact.len() as u64), "{report}");
        let bands = report["bands"].as_array().unwrap();
        let tops: BTreeSet<u64> = bands.iter().map(|band| band[highest - lowest].as_u64().unwrap()).collect();
        assert!(bands.len() == 4 && tops.len() == 1 && !tops.contains(&0), "{report}");
        // Checks each row of the file by counting again.
        let rows = bench.rows(&format!("{method}.tsv"), "a\tb\tscore\tnear");
        let scores = report["scores"].as_array().unwrap();
        let (mut so_far, mut last) = (0, 0);
        for score in scores.iter().rev() {
            let number = score["score"].as_u64().unwrap();
            let of_score: Vec<_> =
                rows.iter().filter(|row| row.split('\t').nth(2) == Some(&number.to_string())).collect();
            assert_eq!(score["pairs"].as_u64(), Some(of_score.len() as u64), "{method} {number}");
            let near = of_score.iter().filter(|row| exact.contains(&pair(row))).count() as u64;
            assert!(of_score.iter().all(|row| row.ends_with("\t1") == exact.contains(&pair(row))));
            assert_eq!(score["near"].as_u64(), Some(near));
            so_far += near;
            let recall = score["recall"].as_f64().unwrap();
            assert!((recall - so_far as f64 / exact.len() as f64).abs() < 1e-9 && so_far >= last);
            last = so_far;
        }
        assert_eq!(scores.last().unwrap()["pairs"].as_u64(), tops.first().copied());
        let text = bench.ok(&format!("study pages.jsonl --method {method}"));
        assert!(text.contains(&format!("band 3\nscore {lowest} portion: ")), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with(&format!("score {highest} portion"))).count(),
            4
        );
    }
}

#[test]
fn study_reads_a_folder_without_a_format_as_wet() {
    let bench = Bench::new();
    let wet = |documents: &[(String, String)]| {
        let record = |(key, text): &(String, String)| {
            let head = format!(
                "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {key}\r\nWARC-Record-ID: <urn:{key}>"
            );
            format!(
                "{head}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
                text.len()
            )
        };
        documents.iter().map(record).collect::<String>()
    };
    let documents = corpus(5, 60);
    std::fs::create_dir(bench.path("wet")).unwrap();
    bench.write("wet/one.wet", wet(&documents[..30]));
    bench.write("wet/two.wet.gz", gzip(wet(&documents[30..]).as_bytes()));
    bench.write("pages.jsonl", jsonl(&documents));
    let of = |input: &str| bench.json(&format!("study {input} --method minhash"));
    let (folder, lines) = (of("wet"), of("pages.jsonl"));
    assert_eq!(folder["documents"].as_u64(), Some(60), "{folder}");
    assert_eq!((&folder["bands"], &folder["scores"]), (&lines["bands"], &lines["scores"]));
}
