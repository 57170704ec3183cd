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
            &bench.refused("dedup in.jsonl -o out --memory 2M --resume"),
            &["--memory was 1048576", "is 2097152", "--force"],
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
