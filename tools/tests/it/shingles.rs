//! `pairs --samples`: finds pairs of documents whose samples share elements, by a join. The results are compared with
//! brute force over all samples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::support::{Bench, Document, corpora, corpus, has_fields, jsonl, pair_line, resemblances, says};
use serde_json::Value;
use twindex::sketch::Sample;
use twindex::{Params, Resemblance, Sketcher};

/// The stages of the search, in order.
const STAGES: [&str; 4] = ["read", "shingle_merge", "pair_formation", "pair_merge"];

#[derive(Clone, Copy)]
enum Sampled {
    Bottom(u16),
    Modulus(u32),
}

impl Sampled {
    fn options(self) -> String {
        match self {
            Self::Bottom(t) => format!("--bottom {t}"),
            Self::Modulus(modulus) => format!("--modulus {modulus}"),
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

    /// Returns the lines of all pairs whose estimate is at least `threshold`. Compares every two samples.
    fn pairs(self, documents: &[Document], threshold: f64) -> Vec<String> {
        let (samples, mut lines) = (self.of(documents), BTreeMap::new());
        for b in 0..documents.len() {
            for a in (0..b).filter(|&a| !samples[a].is_empty() && !samples[b].is_empty()) {
                let known = self.resemblance(&samples[a], &samples[b]);
                if let Some(known) = known.filter(|known| known.at_least(threshold)) {
                    let (a, b) = (&documents[a].0, &documents[b].0);
                    let (a, b) = (a.min(b), a.max(b));
                    let line = format!("{a}\t{b}\t{:.6}\t{:.6}", known.value(), known.standard_error());
                    lines.insert((a, b), line);
                }
            }
        }
        lines.into_values().collect()
    }
}

#[test]
fn sampled_pairs_and_estimates_equal_brute_force() {
    let documents = corpus(41, 500);
    for (how, threshold) in [
        (Sampled::Bottom(12), 0.8),
        (Sampled::Bottom(64), 0.5),
        (Sampled::Modulus(3), 0.6),
        (Sampled::Modulus(1), 0.8),
    ] {
        let bench = Bench::new();
        bench.write("in.jsonl", jsonl(&documents));
        bench.ok(&format!("build i.twx in.jsonl -q {}", how.options()));
        let line = format!("pairs i.twx --samples --near {threshold} -q");
        let found: Vec<String> = bench.ok(&line).lines().map(str::to_owned).collect();
        let wanted = how.pairs(&documents, threshold);
        assert_eq!(found, wanted, "{}", how.options());
        assert!(found.len() > 250, "a test of something: {}", found.len());
        let report = bench.json(&format!("{line} --count"));
        assert_eq!(report["pairs"], wanted.len());
        assert!(report["candidates"].as_u64() >= report["pairs"].as_u64(), "{report}");
        has_fields(&report["stages"], &STAGES.map(|stage| (stage, "number")));
    }
}

/// The index has deleted documents and two segments, whose keys are interleaved.
#[test]
fn sampled_pairs_do_not_depend_on_the_number_of_segments() {
    let documents = corpus(45, 400);
    let bench = Bench::new();
    for (number, skipped) in [0, 1].into_iter().enumerate() {
        let part: Vec<Document> = documents.iter().skip(skipped).step_by(2).cloned().collect();
        bench.write(&format!("{number}.jsonl"), jsonl(&part));
        bench.ok(&format!("build i.twx {number}.jsonl --bottom 24 -q"));
    }
    assert_eq!(bench.json("stats i.twx")["segments"], 2);
    let deleted = [3, 170, 350];
    for document in deleted {
        bench.ok(&format!("delete i.twx {} -q", documents[document].0));
    }
    let left: Vec<Document> = documents
        .iter()
        .enumerate()
        .filter(|(number, _)| !deleted.contains(number))
        .map(|(_, document)| document.clone())
        .collect();
    let found = bench.ok("pairs i.twx --samples -q");
    assert_eq!(found.lines().collect::<Vec<_>>(), Sampled::Bottom(24).pairs(&left, 0.8));
    assert!(found.lines().count() > 100, "a test of something");
}

#[test]
fn sampled_pairs_across_two_indexes_have_one_document_from_each() {
    let documents = corpus(46, 500);
    let (left, right) = documents.split_at(250);
    let bench = Bench::new();
    for (name, part) in [("left", left), ("right", right)] {
        bench.write(&format!("{name}.jsonl"), jsonl(part));
        bench.ok(&format!("build {name}.twx {name}.jsonl --bottom 40 -q"));
    }
    let of_left: BTreeSet<&str> = left.iter().map(|(key, _)| key.as_str()).collect();
    let wanted: BTreeSet<String> = Sampled::Bottom(40)
        .pairs(&documents, 0.7)
        .into_iter()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [a, b] = [fields[0], fields[1]].map(|key| of_left.contains(key));
            let (first, second) = if a { (fields[0], fields[1]) } else { (fields[1], fields[0]) };
            (a != b).then(|| [&[first, second], &fields[2..]].concat().join("\t"))
        })
        .collect();
    let line = "pairs left.twx --with right.twx --samples --near 0.7 -q";
    let found = bench.ok(line);
    assert_eq!(found.lines().map(str::to_owned).collect::<BTreeSet<_>>(), wanted);
    assert!(wanted.len() > 30, "a test of something: {}", wanted.len());
    // Counted on the sets of both indexes, and on the texts, the pairs are equal.
    let by_sets = bench.ok(&format!("{line} --verify exact"));
    let by_texts = bench.ok(&format!("{line} --texts left.jsonl --with-texts right.jsonl"));
    assert_eq!(by_texts, by_sets);
    assert!(by_sets.lines().count() > 20, "a test of something");
    bench.ok("build bare.twx right.jsonl --bottom 40 --sets none -q");
    says(&bench.refused("pairs left.twx --with bare.twx --samples --verify exact"), &["bare.twx: no sets"]);
    // Samples of another kind, or of another size, cannot be compared.
    for (options, found) in [
        ("--bottom 41", "samples: expected --bottom 40, found --bottom 41"),
        ("--modulus 5", "samples: expected --bottom 40, found --modulus 5"),
        ("--bottom 40 --words 3", "width"),
        ("--sets none", "other.twx: this index stores no samples"),
    ] {
        bench.ok(&format!("build other.twx right.jsonl {options} -q"));
        let refused = bench.refused("pairs left.twx --with other.twx --samples");
        says(&refused, &["other.twx", found]);
        fs::remove_dir_all(bench.path("other.twx")).unwrap();
    }
}

#[test]
fn counted_sampled_pairs_equal_brute_force_and_miss_few() {
    let bench = Bench::new();
    let documents = corpus(42, 600);
    bench.write("in.jsonl", jsonl(&documents));
    let all = resemblances(&documents);
    let near = |min: usize| -> BTreeSet<String> {
        let near = all.iter().filter(|&&(_, _, both, all)| both >= min && 10 * both >= 8 * all);
        near.map(|&pair| pair_line(&documents, pair)).collect()
    };
    let wanted = near(1);
    // `--modulus 1` samples all shingles, `--bottom 64` samples 64 of at most 80, and `--modulus 4` about a quarter, which
    // may be none of a short text.
    for (options, min, least) in
        [("--modulus 1", 1, 1.0), ("--bottom 64", 1, 0.99), ("--modulus 4", 20, 0.95)]
    {
        let _ = fs::remove_dir_all(bench.path("i.twx"));
        bench.ok(&format!("build i.twx in.jsonl {options} --near 0.8 -q"));
        let out = bench.ok("pairs i.twx --samples --verify exact -q");
        let found: BTreeSet<String> = out.lines().map(str::to_owned).collect();
        assert!(found.is_subset(&wanted), "{options}: {:?}", found.difference(&wanted).next());
        let long = near(min);
        let recall = found.intersection(&long).count() as f64 / long.len() as f64;
        assert!(long.len() > 80 && recall >= least, "{options}: {recall} of {}", long.len());
        // Without sets, the texts give the same counts.
        let _ = fs::remove_dir_all(bench.path("bare.twx"));
        bench.ok(&format!("build bare.twx in.jsonl {options} --sets none -q"));
        assert_eq!(bench.ok("pairs bare.twx --samples --texts in.jsonl -q"), out, "{options}");
        says(
            &bench.refused("pairs bare.twx --samples --verify exact"),
            &["bare.twx", "no sets are kept", "--texts INPUT", "leave out --verify"],
        );
    }
}

#[test]
fn sampled_pairs_do_not_depend_on_memory_or_threads() {
    let bench = Bench::new();
    let documents = corpus(43, 4000);
    bench.write("in.jsonl", jsonl(&documents));
    for (sampled, options) in [
        ("--bottom 64", ""),
        ("--modulus 2", "--max-bucket 50"),
        ("--bottom 32", "--verify exact --near 0.6"),
    ] {
        let _ = fs::remove_dir_all(bench.path("i.twx"));
        bench.ok(&format!("build i.twx in.jsonl {sampled} -q"));
        let line = format!("pairs i.twx --samples -q {options}");
        let much = bench.ok(&format!("{line} --memory 4G --threads 2"));
        assert!(much.lines().count() > 1000, "a test of something");
        for resources in ["--memory 64K --threads 1", "--memory 1M --threads 3"] {
            assert!(bench.ok(&format!("{line} {resources}")) == much, "{sampled} {options} {resources}");
        }
        let mut shards: Vec<String> = Vec::new();
        for part in 1..=3 {
            shards.extend(bench.ok(&format!("{line} --shard {part}/3")).lines().map(str::to_owned));
        }
        shards.sort();
        let mut whole: Vec<&str> = much.lines().collect();
        whole.sort_unstable();
        assert!(shards == whole, "{sampled} {options}");
    }
}

/// Returns sixty documents from one template, each with one distinct word.
fn templates() -> Vec<Document> {
    let template =
        "this page is under construction and will be finished as soon as anybody finds the time to do it";
    (0..60).map(|i| (format!("d{i:02}"), format!("{template} {template} again {template} n{i}"))).collect()
}

/// Runs `pairs` and returns its notes.
fn notes(bench: &Bench, line: &str) -> String {
    let output = bench.command(line).output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}: {notes}");
    notes
}

#[test]
fn capped_frequent_shingles_are_listed_and_keep_documents_connected() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&templates()));
    bench.ok("build i.twx in.jsonl --bottom 128 -q");
    let report = bench.json("pairs i.twx --samples --max-bucket 20 -o capped.pairs -q");
    assert_eq!((&report["bucket_cap"], &report["largest_bucket"]), (&20.into(), &60.into()));
    assert!(report["capped_shingles"].as_u64().unwrap() > 20, "{report}");
    assert!(report.get("capped_buckets").is_none(), "{report}");
    let common = report["common_shingles"].as_array().unwrap();
    assert_eq!(common.len(), 10);
    for one in common {
        assert_eq!((&one["documents"], &one["first"]), (&60.into(), &"d00".into()));
        assert!(u64::from_str_radix(one["hash"].as_str().unwrap(), 16).is_ok(), "{one}");
    }
    let clusters = bench.json("groups --as clusters capped.pairs");
    assert_eq!((&clusters["clusters"], &clusters["largest"]), (&1.into(), &60.into()));
    // The capped shingles give a star and a chain of pairs.
    let pairs = bench.ok("pairs i.twx --samples --max-bucket 20 -q");
    assert_eq!(pairs.lines().count(), 59 + 58);
    // The scores of the pairs equal the scores in a run without a cap.
    let whole = bench.ok("pairs i.twx --samples");
    let whole: BTreeSet<&str> = whole.lines().collect();
    assert!(whole.len() == 60 * 59 / 2 && pairs.lines().all(|pair| whole.contains(pair)));
    let said = notes(&bench, "pairs i.twx --samples --max-bucket 20");
    let named = [
        "shingles of more documents than --max-bucket 20",
        "by their hashes: ",
        "in 60 documents, the first of them d00",
    ];
    says(&said, &named);
}

#[test]
fn max_bucket_caps_pairs_by_resemblance_without_samples() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&templates()));
    bench.ok("build i.twx in.jsonl -q");
    for options in ["", " --verify signature", " --verify exact --texts in.jsonl"] {
        let line = format!("pairs i.twx --near 0.8{options}");
        let whole = bench.ok(&format!("{line} -q"));
        let capped = bench.ok(&format!("{line} --max-bucket 20 -q"));
        let whole: BTreeSet<&str> = whole.lines().collect();
        let capped: BTreeSet<&str> = capped.lines().collect();
        assert!(capped.len() < whole.len() && capped.is_subset(&whole), "{options}: {}", capped.len());
        let report = bench.json(&format!("{line} --max-bucket 20 -q --count"));
        assert!(report["capped_buckets"].as_u64().unwrap() > 0, "{options}: {report}");
    }
}

#[test]
fn forest_and_clusters_of_sampled_pairs_equal_those_of_the_table() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(47, 500)));
    bench.ok("build i.twx in.jsonl --modulus 2 -q");
    for part in 1..=2 {
        bench.ok(&format!("pairs i.twx --samples --shard {part}/2 --into parts -q"));
    }
    bench.write("table.tsv", bench.ok("pairs i.twx --samples -q"));
    bench.ok("groups --as forest parts -o all.forest -q");
    let line = "groups --as clusters all.forest --scores parts -q";
    let clusters = bench.ok(line);
    assert!(clusters.lines().count() > 100, "a test of something");
    assert_eq!(clusters, bench.ok("groups --as clusters table.tsv -q"));
    // Pairs of another kind are refused.
    bench.ok("pairs i.twx --samples --verify exact -o counted.pairs -q");
    bench.ok("pairs i.twx --near 0.8 -o sets.pairs -q");
    for other in ["counted.pairs", "sets.pairs"] {
        says(
            &bench.refused(&format!("groups --as forest parts {other}")),
            &[other, "pairs: expected", "sampled by modulus, estimated"],
        );
    }
}

#[test]
fn documents_without_sampled_hashes_are_reported_and_unpaired() {
    let bench = Bench::new();
    let mut documents: Vec<Document> =
        (0..40).map(|i| (format!("d{i:02}"), format!("one two three four {}", i / 2))).collect();
    documents.extend([("e1".to_owned(), String::new()), ("e2".to_owned(), String::new())]);
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("build few.twx in.jsonl --modulus 1000000 -q");
    bench.ok("build i.twx in.jsonl --bottom 8 -q");
    assert_eq!(bench.json("pairs few.twx --samples --count -q")["without_elements"], 42);
    assert_eq!(bench.json("pairs i.twx --samples --count -q")["without_elements"], 2);
    assert_eq!(bench.ok("pairs few.twx --samples -q"), "");
    // Copies share all of their sampled hashes.
    assert_eq!(bench.ok("pairs i.twx --samples -q").lines().count(), 20);
    says(
        &notes(&bench, "pairs few.twx --samples"),
        &["42 documents without a shingle hash that 1000000 divides: in no pair", "--bottom"],
    );
    says(&notes(&bench, "pairs i.twx --samples"), &["2 documents without words or features: in no pair"]);
}

#[test]
fn index_with_both_samples_is_joined_by_its_bottom_samples() {
    let documents = corpus(48, 200);
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("build i.twx in.jsonl --bottom 20 --modulus 2 -q");
    let found = bench.ok("pairs i.twx --samples -q");
    assert_eq!(found.lines().collect::<Vec<_>>(), Sampled::Bottom(20).pairs(&documents, 0.8));
}

#[test]
fn index_of_fingerprints_with_samples_needs_a_resemblance() {
    let documents = corpus(49, 200);
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("build i.twx in.jsonl --method simhash --bottom 30 -q");
    says(&bench.refused("pairs i.twx --samples"), &["i.twx", "near by distance", "--samples with --near J"]);
    let found = bench.ok("pairs i.twx --samples --near 0.6 -q");
    assert_eq!(found.lines().collect::<Vec<_>>(), Sampled::Bottom(30).pairs(&documents, 0.6));
}

#[test]
fn contradicting_options_of_sampled_pairs_are_refused() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(44, 5)));
    bench.ok("build none.twx in.jsonl -q");
    bench.ok("build i.twx in.jsonl --bottom 5 -q");
    says(
        &bench.refused("pairs none.twx --samples"),
        &["none.twx", "stores no samples", "--bottom 128", "--modulus 25"],
    );
    for (options, why) in [
        ("--samples --near within:3", "--samples is about pairs by resemblance"),
        ("--samples --sharing 2", "--sharing and --feature-bits are about bands"),
        ("--samples --verify signature", "--samples estimates from the samples"),
        ("--samples --max-bucket 1", "1 is not in 2.."),
        ("--max-bucket 9 --near within:3", "--max-bucket is about pairs by resemblance"),
    ] {
        let output = bench.command(&format!("pairs i.twx {options}")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        says(&said, &[why]);
    }
}

/// Returns precision and recall of a table of pairs at a threshold of 0.8, computed by `eval`.
fn quality(bench: &Bench, found: &str, truth: &Path) -> (f64, f64) {
    let table = bench.json(&format!("study {found} --truth {} --thresholds 0.8", truth.display()));
    let rate = |name: &str| table["rows"][0][name].as_f64().unwrap();
    (rate("precision"), rate("recall"))
}

/// Runs `build` and `pairs` on a real corpus, with 16 MiB and with unlimited memory. Returns precision, recall and the
/// report; `None` without the corpus.
fn run(name: &str, sampled: &str, options: &str) -> Option<(f64, f64, Value)> {
    let folder = corpora()?;
    let bench = Bench::new();
    let (input, truth) =
        (folder.join(format!("{name}.jsonl.zst")), folder.join(format!("{name}.truth.tsv.zst")));
    bench.write("truth.tsv", zstd::decode_all(fs::File::open(truth).unwrap()).unwrap());
    bench.ok(&format!("build i.twx {} {sampled} -q", input.display()));
    let line = format!("pairs i.twx --samples --near 0.8 -q {options}");
    let report = bench.json(&format!("{line} -o out.pairs"));
    bench.ok(&format!("{line} --memory 16M -o little.pairs"));
    assert!(bench.read("out.pairs") == bench.read("little.pairs"), "{name} {options}");
    let (precision, recall) = quality(&bench, "out.pairs", &bench.path("truth.tsv"));
    println!(
        "{name} {sampled} {options}: precision {precision:.5}, recall {recall:.5}; {}",
        report["stages"]
    );
    Some((precision, recall, report))
}

#[test]
fn precision_and_recall_on_real_pages_reach_their_minimum() {
    for (name, sampled, options, least_precision, least_recall) in [
        ("eips", "--bottom 128", "", 0.9, 0.9),
        ("eips", "--modulus 25", "", 0.9, 0.9),
        ("eips", "--bottom 128", "--verify exact", 0.999, 0.98),
        ("tldr", "--bottom 128", "", 0.9, 0.9),
        ("tldr", "--bottom 128", "--verify exact", 0.999, 0.97),
    ] {
        let Some((precision, recall, report)) = run(name, sampled, options) else { return };
        assert!(
            precision >= least_precision && recall >= least_recall,
            "{name} {sampled} {options}: {precision} {recall}"
        );
        has_fields(&report["stages"], &STAGES.map(|stage| (stage, "number")));
    }
}
