//! The first steps of a new user: documents are converted to web archives with `benches/experiments/make_wet.py` and deduplicated, and
//! first mistakes give helpful errors. (For Parquet and more mistakes, see `formats.rs` and `refusals.rs`.)

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use crate::support::skip::{Missing, skip};
use crate::support::{Bench, corpus, jsonl, says};

/// Runs `benches/experiments/make_wet.py`; `None`, with a notice, if Python is missing.
fn make_wet(bench: &Bench, line: &str) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/experiments/make_wet.py");
    let output =
        Command::new("python3").arg(script).args(line.split_whitespace()).current_dir(bench.root()).output();
    if output.is_err() {
        skip(Missing::Program("python3"));
    }
    output.ok()
}

#[test]
fn documents_wrapped_as_wet_have_the_same_duplicates_as_jsonl() {
    let bench = Bench::new();
    let documents = corpus(1, 120);
    bench.write("pages.jsonl", jsonl(&documents));
    let Some(made) = make_wet(&bench, "pages.jsonl -o pages.wet.gz --records 50") else { return };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(bench.names("."), ["pages-2.wet.gz", "pages-3.wet.gz", "pages.jsonl", "pages.wet.gz"]);
    let wet = bench.json("dedup pages.wet.gz pages-2.wet.gz pages-3.wet.gz -o wet --keep smallest-key");
    let lines = bench.json("dedup pages.jsonl -o lines --keep smallest-key");
    for field in ["documents", "text_bytes", "pairs", "clusters", "removed"] {
        assert_eq!(wet[field], lines[field], "{field}");
    }
    assert!(wet["removed"].as_u64() > Some(0) && wet["no_documents"] == 3, "{wet}");
    assert_eq!(bench.read("wet/pairs.tsv").replace("http://wet.example/", ""), bench.read("lines/pairs.tsv"));
    // The kept file is a valid archive again.
    let kept = bench.json("dedup wet/kept.wet -o again");
    let left = lines["documents"].as_u64().unwrap() - lines["removed"].as_u64().unwrap();
    assert_eq!((kept["documents"].as_u64(), kept["removed"].as_u64()), (Some(left), Some(0)));
}

#[test]
fn make_wet_writes_no_incomplete_archives() {
    let bench = Bench::new();
    bench.write("pages.jsonl", "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2, \"body\": \"two\"}\n");
    bench.write("torn.jsonl", "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2,\n");
    bench.write("there.wet.gz", "mine");
    for (line, parts) in [
        ("pages.jsonl -o new.wet.gz", &["pages.jsonl:2: no field 'text'", "id, body", "--text-field"][..]),
        ("torn.jsonl -o new.wet.gz --records 1", &["torn.jsonl:2: no JSON"]),
        ("none.jsonl -o new.wet.gz", &["none.jsonl: No such file"]),
        ("pages.jsonl -o there.wet.gz", &["there.wet.gz: already exists; choose another name"]),
        ("/dev/null -o new.wet.gz", &["nothing was written"]),
    ] {
        let Some(output) = make_wet(&bench, line) else { return };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{line}: {stderr}");
        says(&stderr, parts);
        assert_eq!(bench.names("."), ["pages.jsonl", "there.wet.gz", "torn.jsonl"], "{line}");
    }
    assert_eq!(bench.read("there.wet.gz"), "mine");
}
