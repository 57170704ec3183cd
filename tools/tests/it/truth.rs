//! Compares the output of `study --truth` with counts made here, from documents whose pairs are all known.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::support::{Bench, Document, corpus, documents, jsonl, resemblances, says};
use serde_json::Value;
use twindex::{Params, Sketcher};

/// Returns a table of all pairs with a resemblance of at least 0.5.
fn truth(documents: &[Document]) -> String {
    let mut table = String::from("#id_a\tid_b\tintersection\tunion\tjaccard\n");
    for (a, b, both, all) in resemblances(documents) {
        if 2 * both >= all {
            // The order of the two keys must not matter.
            let (a, b) = if a % 2 == 0 { (a, b) } else { (b, a) };
            let (a, b) = (&documents[a].0, &documents[b].0);
            writeln!(table, "{a}\t{b}\t{both}\t{all}\t{:.6}", both as f64 / all as f64).unwrap();
        }
    }
    table
}

/// Returns the counts of a row: found, right and known pairs.
fn counts(row: &Value) -> [u64; 3] {
    ["found", "right", "true"].map(|field| row[field].as_u64().unwrap())
}

/// Returns documents that have words. For equal documents without words, `dedup` reports no resemblance.
fn worded(seed: u64, count: usize) -> Vec<Document> {
    corpus(seed, count).into_iter().filter(|(_, text)| text.chars().any(char::is_alphanumeric)).collect()
}

#[test]
fn exact_results_have_full_precision_and_recall_and_estimates_less() {
    let bench = Bench::new();
    let documents = worded(31, 800);
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("truth.tsv", truth(&documents));
    bench.write("truth.tsv.gz", crate::support::gzip(truth(&documents).as_bytes()));
    // Bands as narrow as these miss no pair.
    bench.ok("build i.twx in.jsonl --method minhash --bands 100 --rows 2 --signature-bits 4 -q");
    for (name, columns, verify) in [
        ("exact.tsv", "a\tb\tresemblance\tintersection\tunion", ""),
        ("estimate.tsv", "a\tb\tresemblance\tstandard_error", "--verify signature"),
    ] {
        let table = bench.ok(&format!("pairs i.twx --near 0.5 -q {verify}"));
        bench.write(name, format!("{columns}\n{table}"));
    }
    let rows = |line: &str| bench.json(line)["rows"].as_array().unwrap().clone();
    let exact = rows("study exact.tsv --truth truth.tsv");
    assert_eq!(exact, rows("study exact.tsv --truth truth.tsv.gz"));
    let all = resemblances(&documents);
    assert_eq!(exact.len(), 10);
    for (row, percent) in exact.iter().zip((50..).step_by(5)) {
        let known = all.iter().filter(|&&(_, _, both, all)| 100 * both >= percent * all).count() as u64;
        assert_eq!(counts(row), [known; 3], "{percent}");
        assert_eq!(row["threshold"], serde_json::json!(percent as f64 / 100.0));
        assert_eq!((&row["precision"], &row["recall"], &row["f1"]), (&1.0.into(), &1.0.into(), &1.0.into()));
    }
    let estimate = rows("study estimate.tsv --truth truth.tsv --thresholds 0.8");
    let (precision, recall) =
        (estimate[0]["precision"].as_f64().unwrap(), estimate[0]["recall"].as_f64().unwrap());
    assert!((0.7..1.0).contains(&precision) && (0.7..1.0).contains(&recall), "{estimate:?}");
    // With a fixed smallest resemblance of known pairs, recall decreases as the threshold rises.
    let fixed = rows("study exact.tsv --truth truth.tsv --near 0.6");
    assert!(fixed.iter().all(|row| row["true"] == exact[2]["true"]));
    assert!(fixed[9]["recall"].as_f64().unwrap() < 1.0 && fixed[0]["precision"].as_f64().unwrap() < 1.0);
    let table = bench.ok("study exact.tsv --truth truth.tsv --thresholds 0.5,0.75");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "threshold\tprecision\trecall\tf1\tfound\tright\ttrue");
    assert!(lines[1].starts_with("0.50\t1.00000\t1.00000\t1.00000\t") && lines.len() == 3, "{table}");
}

#[test]
fn eval_counts_pairs_at_radii_0_to_10_and_draws_a_figure() {
    let bench = Bench::new();
    let documents = worded(32, 500);
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("truth.tsv", truth(&documents));
    bench.ok("build i.twx in.jsonl --method simhash -q");
    let report = bench.json("study i.twx --truth truth.tsv --svg figure.svg");
    let sketcher = Sketcher::new(&Params::builder().simhash(3).build().unwrap()).unwrap();
    let fingerprints: Vec<u64> =
        documents.iter().map(|(_, text)| sketcher.sketch(text).unwrap().fingerprint().unwrap().0).collect();
    let near: BTreeMap<(usize, usize), bool> = resemblances(&documents)
        .into_iter()
        .map(|(a, b, both, all)| ((a, b), 10 * both >= 8 * all))
        .collect();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 11);
    for (row, k) in rows.iter().zip(0..) {
        let mut wanted = [0, 0, near.values().filter(|is_near| **is_near).count() as u64];
        for b in 0..documents.len() {
            for a in 0..b {
                if (fingerprints[a] ^ fingerprints[b]).count_ones() <= k {
                    wanted[0] += 1;
                    wanted[1] += u64::from(near.get(&(a, b)).copied().unwrap_or(false));
                }
            }
        }
        assert_eq!((counts(row), &row["k"]), (wanted, &k.into()));
    }
    assert!(rows[10]["recall"].as_f64().unwrap() > rows[0]["recall"].as_f64().unwrap());
    let figure = bench.read("figure.svg");
    assert!(figure.starts_with("<svg ") && figure.matches("<polyline").count() == 3);
    says(
        &bench.refused("study i.twx --truth truth.tsv --svg figure.svg"),
        &["figure.svg: cannot write", "exists"],
    );
    // The distances in a table of `pairs` give the same counts.
    let table = bench.ok("pairs i.twx --near within:10 -q");
    bench.write("pairs.tsv", format!("a\tb\tdistance\n{table}"));
    assert_eq!(bench.json("study pairs.tsv --truth truth.tsv"), report);
    assert_eq!(bench.ok("study i.twx --truth truth.tsv --within 3").lines().count(), 5);
}

#[test]
fn tables_that_cannot_be_compared_are_refused() {
    let bench = Bench::new();
    bench
        .write("in.jsonl", jsonl(&documents([("a", "one two three"), ("b", "one two three four five six")])));
    bench.ok("build m.twx in.jsonl --method minhash -q");
    bench.write("truth.tsv", "a\tb\tresemblance\na\tb\t0.9\n");
    bench.write("near.tsv", "a\tb\tdistance\na\tb\t3\n");
    bench.write("bare.tsv", "a\tb\na\tb\n");
    says(&bench.refused("study m.twx --truth truth.tsv"), &["m.twx", "no simhash fingerprints"]);
    says(&bench.refused("study truth.tsv --truth near.tsv"), &["near.tsv", "not distances"]);
    says(&bench.refused("study truth.tsv --truth none.tsv"), &["none.tsv"]);
    for (line, part) in [
        ("study truth.tsv --truth bare.tsv --near 0.5", "--near goes with"),
        ("study near.tsv --truth truth.tsv --thresholds 0.5", "--thresholds goes with"),
        ("study truth.tsv --truth truth.tsv --within 3", "--within goes with"),
        ("study truth.tsv", "--truth"),
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8_lossy(&output.stderr), &[part]);
    }
    assert_eq!(counts(&bench.json("study near.tsv --truth bare.tsv --within 3")["rows"][3]), [1, 1, 1]);
}

#[test]
fn pair_file_is_evaluated_like_a_table() {
    let bench = Bench::new();
    let documents = worded(33, 400);
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("truth.tsv", truth(&documents));
    bench.ok("build i.twx in.jsonl --near 0.5 -q");
    for (options, head) in [
        ("--near 0.5", "a\tb\tresemblance\tintersection\tunion\n"),
        ("--near 0.5 --verify signature", "a\tb\tresemblance\terror\n"),
        ("--near within:6", "a\tb\tdistance\n"),
    ] {
        bench.write("table.tsv", head.to_owned() + &bench.ok(&format!("pairs i.twx {options} -q")));
        bench.ok(&format!("pairs i.twx {options} -o found.pairs --force -q"));
        let [table, file] = ["table.tsv", "found.pairs"]
            .map(|found| bench.json(&format!("study {found} --truth truth.tsv"))["rows"].clone());
        assert!(table[0]["found"].as_u64().unwrap() > 100, "{options}: {table}");
        assert_eq!(file, table, "{options}");
    }
    // A file that was cut off is refused.
    let whole = bench.read("found.pairs");
    bench.write("cut.pairs", &whole[..whole.len() - 30]);
    says(&bench.refused("study cut.pairs --truth truth.tsv"), &["cut.pairs, line ", "was cut off"]);
}
