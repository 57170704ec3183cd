//! `dedup --job` and `--print-job`: the settings of a run as a file, and the short help, which lists most of them.

use serde_json::json;

use crate::support::{Bench, corpus, says};

const RESULTS: [&str; 3] = ["kept.jsonl", "pairs.tsv", "clusters.tsv"];

/// Writes documents with a number and a language.
fn bench() -> Bench {
    let bench = Bench::new();
    let line = |(place, (key, text)): (usize, (String, String))| {
        let lang = ["en", "de"][place % 2];
        json!({ "key": key, "body": text, "rank": place * 7 % 11, "lang": lang }).to_string() + "\n"
    };
    bench.write("in.jsonl", corpus(61, 300).into_iter().enumerate().map(line).collect::<String>());
    bench
}

fn results(bench: &Bench, out: &str) -> Vec<String> {
    RESULTS.iter().map(|name| bench.read(&format!("{out}/{name}"))).collect()
}

const READING: &str = "--id-field key --text-field body";

#[test]
fn job_file_gives_the_same_results_and_options_beside_it_replace_its_settings() {
    let bench = bench();
    let options = format!("{READING} --near containment:0.7 --keep max:rank --inside lang --words 3");
    bench.ok(&format!("dedup in.jsonl -o first {options} -q"));
    bench.ok("dedup --job first/run.json -o again -q");
    assert_eq!(results(&bench, "again"), results(&bench, "first"));
    // The settings of the second run are those of the first, except for the folder.
    bench.ok("dedup --job again/run.json -o third -q");
    assert_eq!(results(&bench, "third"), results(&bench, "first"));
    assert!(bench.read("first/pairs.tsv").lines().count() > 20, "a test of something");

    bench.ok("dedup --job first/run.json -o replaced --near 0.5 --keep longest -q");
    bench.ok(&format!("dedup in.jsonl -o direct {options} --near 0.5 --keep longest -q")
        .replace("--near containment:0.7 --keep max:rank ", ""));
    assert_eq!(results(&bench, "replaced"), results(&bench, "direct"));
    assert_ne!(results(&bench, "replaced"), results(&bench, "first"));
    // Without an option, the folder is that of the file, which exists.
    says(&bench.refused("dedup --job first/run.json"), &["first", "already exists"]);
}

#[test]
fn printed_job_is_read_as_it_was_given() {
    let bench = bench();
    let options = format!("{READING} --threshold 0.6 --keep smallest-key --also annotated --skip-bad 3");
    let printed = bench.ok(&format!("dedup in.jsonl -o direct {options} --print-job"));
    let file: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        file,
        json!({ "settings": {
            "inputs": ["in.jsonl"], "out": "direct", "also": ["annotated"], "text_field": "body", "id_field": "key",
            "skip_bad": "3", "near": "0.6", "keep": "smallest-key",
        }})
    );
    assert_eq!(bench.names("."), ["in.jsonl"], "nothing is run");
    bench.write("job.json", &printed);
    assert_eq!(bench.ok("dedup --job job.json --print-job"), printed);
    bench.ok("dedup --job job.json -o by-file -q");
    bench.ok(&format!("dedup in.jsonl -o direct {options} -q"));
    assert_eq!(results(&bench, "by-file"), results(&bench, "direct"));
    // A file that a person writes may have numbers.
    bench.write("job.json", json!({ "settings": { "inputs": ["in.jsonl"], "near": 0.6 } }).to_string());
    says(&bench.ok("dedup --job job.json --print-job"), &["\"near\": \"0.6\""]);
}

#[test]
fn wrong_job_files_are_refused_with_the_setting_and_the_file() {
    let bench = bench();
    bench.ok(&format!("dedup in.jsonl -o first {READING} -q"));
    let moved = bench.read("first/run.json").replacen("\"directory\": \"", "\"directory\": \"/elsewhere", 1);
    for (content, parts) in [
        (r#"{"settings": {"text_feild": "body"}}"#, &["\"text_feild\"", "did you mean \"text_field\"?"][..]),
        (r#"{"settings": {"nothing_like_it_at_all": 1}}"#, &["no setting \"nothing_like_it_at_all\""]),
        (r#"{"settings": {"near": "1.5"}}"#, &["--near: expected 0.05 to 1", "found \"1.5\""]),
        (r#"{"settings": {"near": {"J": 0.8}}}"#, &["--near: expected a text or a number"]),
        (r#"{"settings": {"force": "yes"}}"#, &["--force: expected true or false, found \"yes\""]),
        (r#"{"near": "0.8"}"#, &["settings"]),
        ("{", &["EOF"]),
        (&moved, &["/elsewhere", "in.jsonl is relative to it"]),
    ] {
        bench.write("job.json", content);
        let output = bench.command("dedup --job job.json -o out").output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{content}: {message}");
        says(&message, &["--job job.json"]);
        says(&message, parts);
        assert!(!bench.path("out").exists(), "{content}");
    }
    says(&bench.refused("dedup --job none.json -o out"), &["--job none.json", "cannot be read"]);
}

#[test]
fn short_help_of_dedup_fits_on_a_page() {
    let bench = Bench::new();
    let help = bench.ok("dedup -h");
    assert!(help.lines().count() <= 62, "{} lines:\n{help}", help.lines().count());
    says(&help, &["--near", "--keep", "--text-field", "--against", "--memory", "--job"]);
    assert!(help.lines().all(|line| line.chars().count() <= 120), "{help}");
}
