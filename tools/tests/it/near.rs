//! A threshold must mean the same in each verb: it is stored in the index, defines duplicates for `stream` and the
//! default answers of `query` and `pairs`, and can be overridden for one run. Earlier, the threshold only selected the
//! bands. Then documents far below it were dropped as duplicates, and an index without signatures answered with every
//! document that shared a band.

use crate::support::{Bench, says};
use twindex::Index;
use twindex::params::Near;

/// Returns a text of `shared` words that all documents of the group have, and `own` words that only this text has.
fn text(group: &str, name: &str, shared: usize, own: usize) -> String {
    let shared = (0..shared).map(|number| format!("{group}{number}"));
    shared.chain((0..own).map(|number| format!("{group}{name}{number}"))).collect::<Vec<_>>().join(" ")
}

/// Returns 40 pairs of documents with 100 words each. The documents of a pair share `shared` words.
fn pairs(of: &str, shared: usize) -> String {
    let both = |pair: usize| {
        let group = format!("{of}{pair}x");
        ["a", "b"].map(|name| (format!("{group}{name}"), text(&group, name, shared, 100 - shared)))
    };
    let line = |(key, text): (String, String)| format!("{{\"id\":\"{key}\",\"text\":\"{text}\"}}\n");
    (0..40).flat_map(both).map(line).collect::<Vec<String>>().concat()
}

/// The resemblances of the three files are 0.905 (95 of 105), 0.818 (90 of 110) and 0.538 (70 of 130).
fn bench() -> Bench {
    let bench = Bench::new();
    for (name, shared) in [("close", 95), ("below", 90), ("far", 70)] {
        bench.write(&format!("{name}.jsonl"), pairs(name, shared));
    }
    bench
}

fn near(bench: &Bench, index: &str) -> Near {
    Index::open(bench.path(index)).unwrap().params().near()
}

#[test]
fn stream_keeps_documents_below_its_threshold_and_finds_those_above() {
    let bench = bench();
    for (input, threshold, duplicates) in
        [("below", 0.95, 0), ("below", 0.7, 40), ("close", 0.99, 0), ("far", 0.4, 40), ("far", 0.7, 0)]
    {
        let index = format!("{input}-{threshold}.twx");
        let line =
            format!("stream {index} {input}.jsonl --words 1 --threshold {threshold} --drop-duplicates");
        let report = bench.json(&line);
        assert_eq!(report["duplicates"].as_u64(), Some(duplicates), "{line}");
        assert_eq!(report["documents"].as_u64(), Some(80 - duplicates), "{line}");
        assert_eq!(near(&bench, &index), Near::resembling(threshold).unwrap());
        assert_eq!(report["near"]["threshold"].as_f64(), Some(threshold));
        assert!(report["near"]["within"].is_null() && report["verify"] == "exact");
        // Without options, the existing index determines the near relation.
        let again = bench.json(&format!("stream {index} {input}.jsonl"));
        assert_eq!(again["near"]["threshold"].as_f64(), Some(threshold));
    }
}

#[test]
fn stream_accepts_another_threshold_or_radius_for_one_run() {
    let bench = bench();
    let usual = Near::resembling(0.8).unwrap().or_within(3);
    let streamed = |options: &str| {
        let index = format!("usual{}.twx", options.replace(' ', ""));
        bench.ok(&format!("stream {index} below.jsonl --words 1 --drop-duplicates -q"));
        let output = bench.command(&format!("stream {index} close.jsonl {options}")).output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{notes}");
        assert_eq!(near(&bench, &index), usual, "{options}");
        let printed = String::from_utf8(output.stdout).unwrap();
        (printed.lines().filter(|line| line.contains("\tduplicate\t")).count(), notes)
    };
    let (duplicates, notes) = streamed("--threshold 0.99");
    assert_eq!(duplicates, 0);
    says(&notes, &["duplicates by a resemblance of 0.99 or more; a resemblance is counted"]);
    assert!(!notes.contains("its 20 bands"), "{notes}");
    says(
        &bench.refused("stream usual--threshold0.99.twx close.jsonl --threshold 0.5"),
        &["0.8 or more", "--verify signature"],
    );
    let (duplicates, notes) = streamed("--threshold 0.5 --verify signature");
    assert_eq!(duplicates, 40);
    says(&notes, &["its 20 bands of 6 minima find 27.0 % of the documents that resemble by 0.5"]);
    says(&notes, &["0.5 or more; a resemblance is an estimate"]);
    let (duplicates, notes) = streamed("--threshold 0.99 --within 10");
    assert!(duplicates > 0, "{notes}");
    says(&notes, &["0.99 or more, or fingerprints at most 10 bits apart"]);
    let (duplicates, _) = streamed("");
    assert_eq!(duplicates, 40);
    bench.ok("build simhash.twx far.jsonl --words 1 --method simhash -q");
    says(
        &bench.refused("stream simhash.twx below.jsonl --threshold 0.9"),
        &["simhash.twx", "no MinHash", "--threshold"],
    );
    bench.ok("build minhash.twx far.jsonl --words 1 --method minhash -q");
    says(&bench.refused("stream minhash.twx below.jsonl --within 3"), &["minhash.twx", "no fingerprints"]);
}

#[test]
fn query_and_pairs_use_the_stored_threshold_by_default() {
    let bench = bench();
    let hits = |line: &str| bench.ok(line).lines().filter(|line| !line.is_empty()).count();
    for (threshold, found) in [("0.97", 0), ("0.6", 40)] {
        let index = format!("{threshold}.twx");
        bench.ok(&format!("build {index} below.jsonl --words 1 --threshold {threshold} -q"));
        // Each document finds itself and, with the low threshold, also the other document of its pair.
        assert_eq!(hits(&format!("query {index} below.jsonl")), 80 + 2 * found, "{threshold}");
        assert_eq!(hits(&format!("pairs {index}")), found, "{threshold}");
        // The output is one line for each document of a cluster, and the header.
        assert_eq!(hits(&format!("clusters {index} -q")), 1 + 2 * found, "{threshold}");
        // Options override the stored threshold for one run.
        assert_eq!(hits(&format!("query {index} below.jsonl --resembling 0.98")), 80);
        assert_eq!(hits(&format!("query {index} below.jsonl --within 0")), 80);
        assert_eq!(hits(&format!("pairs {index} --resembling 0.95")), 0);
    }
    bench.ok("build minhash.twx below.jsonl --words 1 --method minhash --threshold 0.6 -q");
    assert_eq!(hits("pairs minhash.twx"), 40);
    let stats = bench.json("stats minhash.twx");
    assert_eq!((stats["near"]["threshold"].as_f64(), stats["near"]["within"].is_null()), (Some(0.6), true));
    assert_eq!(stats["params"]["threshold"], "0.6");
    says(&bench.ok("stats minhash.twx"), &["near by: a resemblance of 0.6 or more"]);
}

#[test]
fn index_without_signatures_accepts_shared_bands_only_with_verify_none() {
    let bench = bench();
    bench.ok("build x.twx far.jsonl --words 1 --bands 100 --rows 2 --signature-bits 0 --sets none -q");
    let before = bench.contents(".");
    for line in [
        "query x.twx far.jsonl",
        "query x.twx far.jsonl --resembling 0.99",
        "pairs x.twx --resembling 0.99",
        "stream x.twx far.jsonl",
        "stream new.twx far.jsonl --words 1 --signature-bits 0 --sets none",
        "clusters x.twx --resembling 0.99",
        "stream new.twx far.jsonl --words 1 --sets none --drop-duplicates",
    ] {
        says(&bench.refused(line), &["no sets", "--verify signature"]);
    }
    for line in ["query x.twx far.jsonl", "pairs x.twx --resembling 0.99", "stream x.twx far.jsonl"] {
        says(&bench.refused(&format!("{line} --verify signature")), &["keeps no signatures"]);
    }
    assert!(bench.contents(".") == before, "what is refused leaves no trace");
    // Queries by distance and with exact counts work as before.
    assert_eq!(bench.ok("query x.twx far.jsonl --within 0").lines().count(), 80);
    let counted = bench.ok("query x.twx far.jsonl --resembling 0.99 --verify exact --texts far.jsonl");
    assert_eq!(counted.lines().count(), 80);
    assert_eq!(bench.json("stream y.twx far.jsonl --words 1 --method simhash --within 0")["duplicates"], 0);

    let output = bench.command("query x.twx far.jsonl --resembling 0.99 --verify none").output().unwrap();
    says(&String::from_utf8(output.stderr).unwrap(), &["share a band", "whatever their resemblance"]);
    let all = String::from_utf8(output.stdout).unwrap();
    assert!(all.lines().count() > 140 && all.lines().all(|line| line.ends_with("\t-")), "{all}");
    let line = "stream new.twx far.jsonl --words 1 --bands 100 --rows 2 --signature-bits 0 --sets none --verify none";
    let output = bench.command(line).output().unwrap();
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["duplicates by a band in common, whatever the resemblance"],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.lines().filter(|line| line.contains("\tduplicate\t")).count() > 30, "{printed}");
    // Without a resemblance, there is nothing to verify.
    for line in ["query x.twx far.jsonl --within 3 --verify none", "stream y.twx far.jsonl --verify none"] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), &["--verify", "leave it out"]);
    }
}

#[test]
fn parameters_list_the_threshold_only_if_it_is_not_default() {
    let bench = bench();
    bench.ok("build numbers.twx close.jsonl --words 1 --bands 20 --rows 6 -q");
    bench.ok("build usual.twx close.jsonl --words 1 --threshold 0.8 --within 3 --bottom 0 -q");
    let params = |index: &str| Index::open(bench.path(index)).unwrap().params();
    let bands = params("usual.twx").minhash.unwrap();
    bench.ok(&format!(
        "build same.twx close.jsonl --words 1 --bands {} --rows {} -q",
        bands.bands, bands.rows
    ));
    assert_eq!(params("usual.twx").encode(), params("same.twx").encode());
    assert!(!params("numbers.twx").encode().contains("threshold"));
    assert!(
        bench
            .ok("stats numbers.twx")
            .contains("a resemblance of 0.8 or more, or fingerprints at most 3 bits apart")
    );
    // Options must agree with the existing index, as for all stored parameters.
    bench.ok("build usual.twx below.jsonl --words 1 --threshold 0.8 -q");
    bench.ok("build same.twx below.jsonl --words 1 --threshold 0.8 --within 3 -q");
    bench.ok("build high.twx close.jsonl --words 1 --threshold 0.95 --within 2 -q");
    assert_eq!(near(&bench, "high.twx"), Near::resembling(0.95).unwrap().or_within(2));
    says(
        &bench.refused("build high.twx below.jsonl --words 1 --threshold 0.952"),
        &["0.95", "--threshold 0.952"],
    );
    // The same with a file of sketches.
    bench.ok("sketch close.jsonl -o close.sketches --words 1 --threshold 0.95 -q");
    bench.ok("build sketched.twx close.sketches -q");
    assert_eq!(near(&bench, "sketched.twx"), Near::resembling(0.95).unwrap());
}
