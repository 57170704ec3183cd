//! `dedup --method shingles`: finds pairs of documents whose sketches share elements, by a join. The results are
//! compared with brute force over all sketches.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Bench, Document, corpora, corpus, has_fields, jsonl, pair_line, resemblances, says};
use serde_json::Value;
use twindex::sketch::Sample;
use twindex::{Params, Resemblance, Sketcher};

const ESTIMATES: &str = "a\tb\tresemblance\tstandard_error";
const COUNTED: &str = "a\tb\tresemblance\tintersection\tunion";
/// The stages of the pipeline, in order.
const STAGES: [&str; 6] = ["sketch", "exact", "shingle_merge", "pair_formation", "pair_merge", "cluster"];

#[derive(Clone, Copy)]
enum Sketched {
    Bottom(u16),
    Modulus(u32),
}

impl Sketched {
    fn options(self) -> String {
        match self {
            Self::Bottom(t) => format!("--method shingles --bottom {t}"),
            Self::Modulus(modulus) => format!("--method shingles --modulus {modulus}"),
        }
    }

    fn of(self, documents: &[Document]) -> Vec<Vec<u64>> {
        let builder = Params::builder().minhash(1, 1);
        let params = match self {
            Self::Bottom(t) => builder.bottom(t),
            Self::Modulus(modulus) => builder.modulus(modulus),
        };
        let sketcher = Sketcher::new(&params.build().unwrap()).unwrap();
        let sketches = documents.iter().map(|(_, text)| sketcher.sketch(text).unwrap());
        sketches.map(|sketch| [sketch.bottom(), sketch.modular()].concat()).collect()
    }

    fn resemblance(self, a: &[u64], b: &[u64]) -> Option<Resemblance> {
        match self {
            Self::Bottom(t) => Sample::bottom(a, t.into()).resemblance(&Sample::bottom(b, t.into())),
            Self::Modulus(modulus) => {
                let of = |hashes| Sample::modular(hashes, modulus);
                of(a).resemblance(&of(b))
            }
        }
    }
}

#[test]
fn sketch_pairs_and_estimates_equal_brute_force() {
    let documents = corpus(41, 500);
    for (how, threshold) in [
        (Sketched::Bottom(12), 0.8),
        (Sketched::Bottom(64), 0.5),
        (Sketched::Modulus(3), 0.6),
        (Sketched::Modulus(1), 0.8),
    ] {
        let bench = Bench::new();
        bench.write("in.jsonl", jsonl(&documents));
        let report = bench
            .json(&format!("dedup in.jsonl --pairs all -o out {} --threshold {threshold}", how.options()));
        let sketches = how.of(&documents);
        let mut wanted = Vec::new();
        for b in 0..documents.len() {
            for a in 0..b {
                let shown = if documents[a].1 == documents[b].1 {
                    Some((1.0, 0.0)) // exact, not estimated
                } else {
                    let known = how.resemblance(&sketches[a], &sketches[b]);
                    let known = known.filter(|known| known.at_least(threshold));
                    known.map(|known| (known.value(), known.standard_error()))
                };
                if let Some((value, error)) = shown {
                    let (x, y) = (&documents[a].0, &documents[b].0);
                    wanted.push((x.min(y).clone(), x.max(y).clone(), value, error));
                }
            }
        }
        wanted.sort_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
        let found = bench.rows("out/pairs.tsv", ESTIMATES);
        assert_eq!(found.len(), wanted.len(), "{}", how.options());
        assert!(found.len() > 300, "a test of something: {}", found.len());
        for (line, (a, b, value, error)) in found.iter().zip(&wanted) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!((fields[0], fields[1]), (a.as_str(), b.as_str()), "{}", how.options());
            assert_eq!(fields[2], format!("{value:.6}"), "{line}");
            let written: f64 = fields[3].parse().unwrap();
            // The fraction of checked shingles is stored in 24 bits, so standard errors may differ slightly.
            assert!((written - error).abs() < 2e-4, "{line}: {error}");
        }
        assert_eq!(report["pairs"], wanted.len());
        for stage in STAGES {
            has_fields(&report["stages"], &[(stage, "number")]);
        }
        assert_eq!(bench.json("verify out/index")["sound"], true);
    }
}

#[test]
fn counted_pairs_equal_brute_force_and_estimates_miss_few() {
    let bench = Bench::new();
    let documents = corpus(42, 600);
    bench.write("in.jsonl", jsonl(&documents));
    let all = resemblances(&documents);
    let near = all.iter().filter(|&&(_, _, both, all)| 10 * both >= 8 * all);
    let wanted: BTreeSet<String> = near.map(|&pair| pair_line(&documents, pair)).collect();
    // `--modulus 1` samples all shingles, `--bottom 64` samples 64 of at most 80, and `--modulus 4` about a quarter.
    for (options, least) in [("--modulus 1", 1.0), ("--bottom 64", 0.99), ("--modulus 4", 0.75)] {
        bench.ok(&format!(
            "dedup in.jsonl --pairs all -o out --force -q --method shingles --verify exact {options}"
        ));
        let found: BTreeSet<String> = bench.rows("out/pairs.tsv", COUNTED).into_iter().collect();
        assert!(found.is_subset(&wanted), "{options}");
        let recall = found.len() as f64 / wanted.len() as f64;
        assert!(recall >= least, "{options}: {} of {}", found.len(), wanted.len());
    }
}

#[test]
fn sketch_join_results_do_not_depend_on_memory_or_threads() {
    let bench = Bench::new();
    let documents = corpus(43, 4000);
    bench.write("in.jsonl", jsonl(&documents));
    for options in
        ["--bottom 64", "--modulus 2 --max-bucket 50", "--bottom 32 --verify exact --threshold 0.6"]
    {
        let line = format!("dedup in.jsonl --force -q --method shingles {options}");
        bench.ok(&format!("{line} -o much --memory 4G --threads 2"));
        bench.ok(&format!("{line} -o little --memory 16M --threads 1"));
        for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
            assert!(
                bench.read(&format!("much/{file}")) == bench.read(&format!("little/{file}")),
                "{options}: {file}"
            );
        }
    }
}

#[test]
fn capped_frequent_shingles_are_listed_and_keep_documents_connected() {
    let bench = Bench::new();
    // Creates sixty documents from one template, each with one distinct word.
    let template =
        "this page is under construction and will be finished as soon as anybody finds the time to do it";
    let documents: Vec<Document> = (0..60)
        .map(|i| (format!("d{i:02}"), format!("{template} {template} again {template} n{i}")))
        .collect();
    bench.write("in.jsonl", jsonl(&documents));
    let report = bench.json("dedup in.jsonl --clusters components -o out --method shingles --max-bucket 20");
    assert_eq!((&report["bucket_cap"], &report["largest_bucket"]), (&20.into(), &60.into()));
    assert!(report["capped_shingles"].as_u64().unwrap() > 20, "{report}");
    let common = report["common_shingles"].as_array().unwrap();
    assert_eq!(common.len(), 10);
    for one in common {
        assert_eq!((&one["texts"], &one["first"]), (&60.into(), &"d00".into()));
        assert!(u64::from_str_radix(one["hash"].as_str().unwrap(), 16).is_ok(), "{one}");
    }
    assert_eq!((&report["clusters"], &report["largest_cluster"]), (&1.into(), &60.into()));
    // The capped bucket gives a star and a chain of pairs.
    let pairs = bench.rows("out/pairs.tsv", ESTIMATES);
    assert_eq!(pairs.len(), 59 + 58);
    // The scores of the pairs equal the scores in a run without a cap.
    bench.ok("dedup in.jsonl --clusters components -o whole --method shingles -q");
    let whole: BTreeSet<String> = bench.rows("whole/pairs.tsv", ESTIMATES).into_iter().collect();
    assert!(whole.len() == 60 * 59 / 2 && pairs.iter().all(|pair| whole.contains(pair)));
    let said = bench.ok("dedup in.jsonl -o out --force --pairs all --method shingles --max-bucket 20");
    says(
        &said,
        &[
            "shingles of more texts than --max-bucket 20",
            "by their hashes: ",
            "in 60 texts, the first of them d00",
        ],
    );
}

#[test]
fn documents_with_empty_sketches_are_reported_and_unpaired() {
    let bench = Bench::new();
    let documents: Vec<Document> =
        (0..40).map(|i| (format!("d{i:02}"), format!("one two three four {i}"))).collect();
    bench.write("in.jsonl", jsonl(&documents));
    let report =
        bench.json("dedup in.jsonl --clusters components -o out --method shingles --modulus 1000000");
    assert_eq!(report["without_elements"], 40);
    let said = bench.ok("dedup in.jsonl -o out --force --method shingles --modulus 1000000");
    says(&said, &["40 documents without a shingle hash that 1000000 divides"]);
    assert_eq!(bench.json("dedup in.jsonl -o out --force --method shingles")["without_elements"], 0);
}

#[test]
fn contradicting_options_of_dedup_by_sketches_are_refused() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(44, 5)));
    for (options, why) in [
        ("--modulus 25", "--modulus goes with --method shingles"),
        ("--method simhash --bottom 25", "--bottom goes with --method shingles"),
        ("--method shingles --verify none", "--verify none goes with --method minhash"),
        ("--method shingles --join bands", "--join goes with --method minhash"),
        ("--method shingles --within 3", "--within goes with --method simhash"),
        ("--method shingles --modulus 0", "0 is not in 1.."),
        ("--method shingles --modulus 2 --bottom 2", "cannot be used with"),
    ] {
        let output = bench.command(&format!("dedup in.jsonl -o out {options}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
        says(&String::from_utf8(output.stderr).unwrap(), &[why]);
    }
}

/// Returns precision and recall at a threshold of 0.8, computed by `eval`.
fn quality(bench: &Bench, out: &str, truth: &Path) -> (f64, f64) {
    let table = bench.json(&format!("eval {out} --truth {} --thresholds 0.8", truth.display()));
    let rate = |name: &str| table["rows"][0][name].as_f64().unwrap();
    (rate("precision"), rate("recall"))
}

/// Runs `dedup` on a real corpus with 16 MiB and with unlimited memory. Returns precision, recall and the report; `None`
/// without the corpus.
fn run(name: &str, options: &str) -> Option<(f64, f64, Value)> {
    let folder = corpora()?;
    let bench = Bench::new();
    let (input, truth) =
        (folder.join(format!("{name}.jsonl.zst")), folder.join(format!("{name}.truth.tsv.zst")));
    bench.write("truth.tsv", zstd::decode_all(fs::File::open(truth).unwrap()).unwrap());
    let line = format!("dedup {} --pairs all --method shingles {options}", input.display());
    let report = bench.json(&format!("{line} -o out"));
    bench.ok(&format!("{line} -o little --memory 16M -q"));
    for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
        assert!(
            bench.read(&format!("out/{file}")) == bench.read(&format!("little/{file}")),
            "{name} {options}: {file}"
        );
    }
    let (precision, recall) = quality(&bench, "out", &bench.path("truth.tsv"));
    println!("{name} {options}: precision {precision:.5}, recall {recall:.5}; {}", report["stages"]);
    Some((precision, recall, report))
}

#[test]
fn precision_and_recall_on_real_pages_reach_their_minimum() {
    for (name, options, least_precision, least_recall) in [
        ("eips", "", 0.9, 0.9),
        ("eips", "--modulus 25", 0.9, 0.9),
        ("eips", "--verify exact", 0.999, 0.98),
        ("tldr", "", 0.9, 0.9),
        ("tldr", "--verify exact", 0.999, 0.97),
    ] {
        let Some((precision, recall, report)) = run(name, options) else { return };
        assert!(
            precision >= least_precision && recall >= least_recall,
            "{name} {options}: {precision} {recall}"
        );
        for stage in STAGES {
            has_fields(&report["stages"], &[(stage, "number")]);
        }
    }
}
