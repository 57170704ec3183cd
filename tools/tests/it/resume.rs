//! `dedup --resume`: a process is killed, and a later one continues from its journal.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Bench, TWINDEX, corpus, jsonl, says};

fn start(bench: &Bench) -> Child {
    let mut command = Command::new(TWINDEX);
    command.args(["dedup", "in.jsonl", "-o", "out", "--resume", "--memory", "1M", "--quiet"]);
    command.current_dir(bench.root()).stderr(Stdio::inherit()).spawn().unwrap()
}

#[test]
fn killed_run_is_resumed_with_the_same_results() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(3, 2000)));
    bench.ok("dedup in.jsonl -o out --memory 1M -q");
    std::fs::rename(bench.path("out"), bench.path("expected")).unwrap();
    let kept = bench.path(".out.twindex-resume");
    let mut killed = 0;
    for part in ["reading-000001", "reading-000002", "decided", "kept"] {
        let mut process = start(&bench);
        let begin = Instant::now();
        while !kept.join(part).exists() && process.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(100), "{part}");
            std::thread::sleep(Duration::from_micros(200));
        }
        process.kill().unwrap();
        if process.wait().unwrap().success() {
            break;
        }
        killed += 1;
        assert!(!bench.path("out").exists() && kept.join("manifest").exists(), "{part}");
    }
    assert!(killed >= 2, "{killed}: the input is too small");
    if kept.exists() {
        says(
            &bench.refused("dedup in.jsonl -o out --memory 1M"),
            &["a run was stopped", "--resume", "--force"],
        );
        says(
            &bench.refused("dedup in.jsonl -o out --memory 1M --resume --words 3"),
            &["--words was not given in the stopped run, and is 3", "--force"],
        );
        let run = bench.command("dedup in.jsonl -o out --memory 1M --resume").output().unwrap();
        assert!(run.status.success());
        says(&String::from_utf8_lossy(&run.stderr), &["continuing after"]);
    }
    // The manifests of the index contain a random number.
    let is_random = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name == "CURRENT" || name.starts_with("MANIFEST-")
    };
    let contents = |name: &str| {
        let contents = bench.contents(name).into_iter();
        contents.filter(|(path, _)| !is_random(path)).map(|(_, bytes)| bytes).collect::<Vec<_>>()
    };
    assert!(contents("out") == contents("expected"));
    assert!(!kept.exists());
    let mut pipe = bench.command("dedup - -o piped --resume");
    let output = pipe.write_stdin("{\"id\":1,\"text\":\"a\"}\n").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8_lossy(&output.stderr), &["<stdin>", "--resume reads the inputs again"]);
    assert!(!bench.path(".piped.twindex-resume").exists());
}

/// Writes documents with a bad record among them, and runs a job that stops at it.
fn stopped_at_a_bad_record() -> Bench {
    let bench = Bench::new();
    let lines = jsonl(&corpus(5, 200));
    bench.write("in.jsonl", format!("{lines}no record\n{}", lines.replace("\"id\":\"d", "\"id\":\"e")));
    says(&bench.failed("dedup in.jsonl -o out --resume"), &["in.jsonl:201", "--skip-bad"]);
    assert!(bench.path(".out.twindex-resume").exists() && !bench.path("out").exists());
    bench
}

#[test]
fn run_stopped_at_a_bad_record_goes_on_with_skip_bad_memory_and_threads() {
    let bench = stopped_at_a_bad_record();
    let line = "dedup in.jsonl --skip-bad 1 -q --memory 2M --threads 1";
    bench.ok(&format!("{line} -o expected"));
    let output = bench.command(&format!("{line} -o out --resume")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for table in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
        assert_eq!(bench.read(&format!("out/{table}")), bench.read(&format!("expected/{table}")));
    }
    assert!(!bench.path(".out.twindex-resume").exists());
}

#[test]
fn resuming_with_another_option_names_it_and_both_values() {
    let bench = stopped_at_a_bad_record();
    for (options, difference) in [
        ("--text-field body", "--text-field was not given in the stopped run, and is body"),
        ("--id-field key", "--id-field was not given in the stopped run, and is key"),
        ("--format jsonl", "--format was not given in the stopped run, and is jsonl"),
        ("--encoding auto", "--encoding was not given in the stopped run, and is auto"),
        ("--keep longest", "--keep was first in the stopped run, and is longest"),
        ("--near 0.7", "--near was not given in the stopped run, and is 0.7"),
        ("--weights tf", "--weights was distinct in the stopped run, and is tf"),
        ("--words 3", "--words was not given in the stopped run, and is 3"),
        ("--tokens raw", "--tokens was not given in the stopped run, and is raw"),
        ("--inside lang", "--inside was not given in the stopped run, and is lang"),
        ("--also annotated", "--also was not given in the stopped run, and is annotated"),
        ("--compress zstd", "--compress was not given in the stopped run, and is zstd"),
    ] {
        let message = bench.failed(&format!("dedup in.jsonl -o out --resume --skip-bad 1 {options}"));
        says(&message, &[difference, "--force"]);
        assert!(bench.path(".out.twindex-resume").exists(), "{options}");
    }
}
