//! Tests `upgrade`, which converts old indexes and segment files to new indexes, and `upgrade --check`, which reports
//! versions.

use std::path::{Path, PathBuf};

use crate::support::{Bench, says};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

#[test]
fn old_index_is_refused_with_advice_and_upgraded() {
    let bench = Bench::new();
    let old = golden("index-v1/pages");
    let old = old.display();
    let said = bench.refused(&format!("stats {old}"));
    says(&said, &["format version is 1", "convert it with `twindex upgrade`"]);

    let output = bench.command(&format!("upgrade --check {old}")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    says(&said, &["format version 1", "twindex upgrade", "-o OUT"]);

    let said = bench.ok(&format!("upgrade {old} -o new.twx"));
    says(
        &said,
        &[
            "new.twx: 42 documents",
            "format version 1",
            "had no samples, values, stamps, marks, priorities and sets",
        ],
    );
    assert_eq!(bench.names("."), ["new.twx"]);
    bench.ok("verify new.twx");
    assert_eq!(bench.ok("keys new.twx").lines().count(), 42);
    says(&bench.ok("upgrade --check new.twx"), &["format 1.0: current, no upgrade is needed"]);

    let said = bench.refused(&format!("upgrade {old} -o new.twx"));
    says(&said, &["new.twx", "already exists"]);
}

#[test]
fn current_index_is_copied_and_reported_as_current() {
    let bench = Bench::new();
    let said = bench.ok(&format!("upgrade {} -o copy.twx --memory 64K", golden("index-v3/living").display()));
    says(&said, &["copy.twx: 4 documents", "format 1.0", "is a fresh copy"]);
    let report = bench.json(&format!("upgrade {} -o seg.twx", golden("three-records.seg").display()));
    assert_eq!((report["version"].as_u64(), report["documents"].as_u64()), (Some(3), Some(3)));
    assert_eq!((report["current"].as_bool(), report["absent"].is_null()), (Some(true), true));
    let report = bench.json("upgrade seg.twx --check");
    assert_eq!((report["version"].as_u64(), report["current"].as_bool()), (Some(3), Some(true)));
}

#[test]
fn upgrade_refuses_damage_and_other_files_and_writes_nothing() {
    let bench = Bench::new();
    let mut bytes = std::fs::read(golden("version-2.seg")).unwrap();
    bytes[1217] ^= 4;
    bench.write("damaged.seg", &bytes);
    let said = bench.refused("upgrade damaged.seg -o out");
    says(&said, &["damaged.seg: damaged: ", " at offset ", "expected page checksum ", ", found "]);
    let said = bench.refused(&format!("upgrade {} -o out", golden("sets.sketches").display()));
    says(&said, &["sets.sketches", "role 6 (Sketches)", "only indexes and segments"]);
    std::fs::create_dir(bench.path("parts")).unwrap();
    bench.write("parts/PASSAGES", "");
    says(&bench.refused("upgrade parts -o out"), &["parts", "an index of passages"]);
    assert_eq!(bench.names("."), ["damaged.seg", "parts"]);
}

/// Reads the files of `tests/golden/format-1.0` that only the command can read.
#[test]
fn golden_index_of_passages_and_list_of_spans_are_read() {
    let bench = Bench::new();
    let passages = golden("format-1.0/passages");
    bench.ok(&format!("passages verify {}", passages.display()));
    bench.write(
        "query.jsonl",
        "{\"id\": \"q\", \"text\": \"the shop at the old mill: opening hours are from nine to five\"}\n",
    );
    let found = bench.ok(&format!("passages query {} query.jsonl", passages.display()));
    assert!(found.contains("\tpage 2\t") && !found.contains("\tpage 3\t"), "{found}");

    // The query is sketched with the list of spans, so that the boilerplate that all pages share is ignored.
    let weighted = golden("format-1.0/weighted");
    let list = weighted.join("boilerplate");
    bench.write(
        "pages.jsonl",
        "{\"id\": \"q\", \"text\": \"Home | About us | Contact the shop at the old mill: \
        opening hours are from nine to five. text number 12 of page 5, words 144 \u{2192} \u{a9}12 even\"}\n",
    );
    let query = format!("query {} pages.jsonl --boilerplate {}", weighted.display(), list.display());
    let found = bench.ok(&format!("{query} --verify signature --near 0.9"));
    assert!(found.contains("page 24"), "{found}");
}
