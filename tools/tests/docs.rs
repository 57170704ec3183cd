//! What the guide tells people to type works as it stands there.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Bench, TWINDEX, corpus, jsonl};

/// The lines of the `sh` blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => commands.push(line.to_owned()),
            _ => {}
        }
    }
    assert!(!inside, "a block that is not ended");
    commands
}

#[cfg(unix)]
#[test]
fn every_command_of_the_guide_runs_in_its_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
    let page = std::fs::read_to_string(page).unwrap();
    let commands = commands(&page);
    assert!(commands.len() > 15, "{commands:?}");
    let bench = Bench::new();
    let documents = corpus(1, 120);
    bench.write("pages.jsonl", jsonl(&documents[..100]));
    let renamed: Vec<_> =
        documents[80..].iter().map(|(key, text)| (format!("more-{key}"), text.clone())).collect();
    bench.write("more.jsonl", jsonl(&renamed));
    bench.write("queries.jsonl", jsonl(&documents[5..10]));
    let tool = Path::new(TWINDEX).parent().unwrap();
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap_or_default());
    for command in commands {
        let output = Command::new("sh")
            .args(["-ec", &command])
            .current_dir(bench.root())
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        assert!(
            !output.stdout.is_empty() || command.contains('>') || command.contains(" query "),
            "{command}"
        );
    }
    assert_eq!(bench.read("admitted.tsv").lines().count(), 100);
}
