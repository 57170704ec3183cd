//! The command as a shell sees it: completions, a manual, messages on standard error, tables on a terminal, and
//! termination by Ctrl-C without partial results.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::skip::{Missing, skip};
use crate::support::{Bench, TWINDEX, corpus, jsonl, says};
use crate::verbs::verbs;

#[test]
fn completions_for_every_shell_include_every_verb() {
    let bench = Bench::new();
    let verbs = verbs(&bench);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.ok(&format!("completions {shell}"));
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell}: {verb}");
        }
        assert!(script.contains("threshold"), "{shell}: options, too");
    }
}

#[test]
fn manual_has_a_page_for_every_verb() {
    let bench = Bench::new();
    bench.ok("man deep/man1");
    for verb in verbs(&bench) {
        let page = bench.read(&format!("deep/man1/twindex-{verb}.1"));
        assert!(page.contains(".SH OPTIONS") || page.contains(".SH SYNOPSIS"), "{verb}");
    }
    assert!(bench.read("deep/man1/twindex.1").contains("dedup"));
    bench.write("file", "");
    says(&bench.refused("man file"), &["file: cannot create"]);
}

#[test]
fn verbose_logs_to_standard_error_and_changes_no_result() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(1, 50)));
    let plain = bench.ok("dedup in.jsonl -o plain --json");
    let output = bench.command("dedup in.jsonl -o out --json -v").output().unwrap();
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success());
    assert_eq!(out.matches("\"documents\":50").count(), plain.matches("\"documents\":50").count());
    says(&said, &["reading in.jsonl", "stage read", "stage write", "kernel="]);
    assert_eq!(bench.read("out/pairs.tsv"), bench.read("plain/pairs.tsv"));
}

/// Returns the names in a folder.
fn names(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.root()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Starts `dedup` on a pipe, sends it a signal once its temporary folder exists, and returns the process and the pipe.
#[cfg(target_os = "linux")]
fn signalled(bench: &Bench, command: &mut Command, signal: &str) -> (Child, ChildStdin) {
    let mut child = command.current_dir(bench.root()).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(jsonl(&corpus(1, 50)).as_bytes()).unwrap();
    let start = Instant::now();
    while names(bench).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "no folder is made");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(names(bench)[0].starts_with(".twindex-run-"), "{:?}", names(bench));
    let id = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    (child, stdin)
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_no_partial_files() {
    let bench = Bench::new();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A shell starts background jobs with SIGINT ignored, and it must stay ignored.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT,TERM", TWINDEX, "dedup", "-", "-o", "out"])
            .stderr(Stdio::piped());
        let (child, stdin) = signalled(&bench, &mut command, signal);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{signal}");
        let said = String::from_utf8(ended.stderr).unwrap();
        says(&said, &["stopped; nothing of this run is left, and out is as it was", "With --resume"]);
        assert_eq!(names(&bench), [""; 0], "{signal}");
        drop(stdin);
    }
    // A process started with nohup must survive the end of the session.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("trap '' HUP; exec {TWINDEX} dedup - -o out -q")]);
    let (mut child, stdin) = signalled(&bench, &mut command, "HUP");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&bench), ["out"]);
}

#[cfg(target_os = "linux")]
#[test]
fn interrupted_build_removes_a_new_index_and_keeps_an_existing_one() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(1, 50)));
    bench.ok("build old.twx in.jsonl -q");
    let before = bench.ok("get old.twx");
    for (index, stays) in [("new.twx", false), ("old.twx", true)] {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", TWINDEX, "build", index, "-", "-q"]).current_dir(bench.root());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let (id, start) = (child.id().to_string(), Instant::now());
        // The process that holds the lock is the writer.
        let locked =
            || std::fs::read_to_string(bench.path(index).join("LOCK")).is_ok_and(|said| said.contains(&id));
        while !locked() {
            assert!(start.elapsed() < Duration::from_secs(30), "{index}: nobody writes");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{index}");
        drop(stdin);
        assert_eq!(bench.path(index).exists(), stays, "{index}");
    }
    assert_eq!(bench.ok("get old.twx"), before);
}

/// Runs a command on a terminal and returns what it prints; `None`, with a notice, if no program provides a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(bench: &Bench, line: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("'{TWINDEX}' {line}"), "/dev/null"]).env("SHELL", "/bin/sh");
    let script = script.current_dir(bench.root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        skip(Missing::Program("script"));
        return None;
    };
    let stdin = child.stdin.take(); // `script` prints the end of its standard input
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}: {said}");
    Some(said.replace("\r\n", "\n"))
}

#[cfg(target_os = "linux")]
#[test]
fn tables_begin_with_the_names_of_their_columns_on_a_terminal_only() {
    let bench = Bench::new();
    let documents = corpus(1, 50);
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("build all.twx in.jsonl -q");
    let get = format!("get all.twx {} {}", documents[0].0, documents[1].0);
    for (line, names) in [
        ("pairs all.twx --near 0.5 -q", "a\tb\tresemblance\tintersection\tunion"),
        ("query all.twx in.jsonl -q", "query\tkey\tdistance\tresemblance\tintersection\tunion"),
        (&get, "key\tfingerprint\tsignature_bytes\tsamples\tvalue\tage"),
    ] {
        let piped = bench.ok(line);
        assert!(piped.lines().count() > 1 && !piped.contains(names), "{line}: {piped}");
        let Some(shown) = on_a_terminal(&bench, line) else { return };
        assert_eq!(shown, format!("{names}\n{piped}"), "{line}");
    }
    // Each run of `stream` needs an index of its own.
    let piped = bench.ok("stream piped.twx in.jsonl -q");
    let Some(shown) = on_a_terminal(&bench, "stream shown.twx in.jsonl -q") else { return };
    let (names, lines) = shown.split_once('\n').unwrap();
    assert_eq!(names, "key\tdecision\tnear_key\tdistance\tresemblance");
    assert!(piped.lines().count() > 1 && lines == piped, "{piped}\n{lines}");
}
