//! Tests a mistyped option, one bad line among millions, and a damaged disk. Each must end with exit code 1 and a
//! message that states the problem, the position and a remedy, and must leave every file unchanged. Each test compares
//! all bytes before and after.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Bench, TWINDEX, corpus, documents, jsonl, says};

/// Creates a folder with an input, and an index of its 60 documents for both methods.
fn indexed() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(5, 60)));
    bench.ok("build i.twx in.jsonl -q");
    bench
}

/// Runs a command that must be refused and change nothing in the folder. Returns its message.
fn refused_without_a_trace(bench: &Bench, line: &str) -> String {
    let before = bench.contents(".");
    let message = bench.refused(line);
    let after = bench.contents(".");
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{line}: files");
    assert!(before == after, "{line}: bytes changed");
    message
}

#[test]
fn bad_line_is_refused_with_its_position_and_leaves_no_files() {
    let good = jsonl(&corpus(6, 40));
    for (bad, parts) in [
        (&br#"{"id":"x","body":"t"}"#[..], &["no field \"text\"", "\"body\"", "--text-field"][..]),
        (br#"{"id":"x","text":"t"#, &["invalid JSON", "column"]),
        (b"{\"id\":\"x\",\"text\":\"f\xfcr\"}", &["not UTF-8", "0xfc"]),
        (br#"{"id":"","text":"t"}"#, &["key is empty"]),
        (br#"{"id":["x"],"text":"t"}"#, &["field \"id\" is an array"]),
    ] {
        let bench = indexed();
        let mut lines = good.clone().into_bytes();
        lines.extend(bad);
        bench.write("bad.jsonl", lines);
        for line in ["dedup bad.jsonl -o out", "build i.twx bad.jsonl", "build new.twx bad.jsonl"] {
            let message = refused_without_a_trace(&bench, line);
            says(&message, &["bad.jsonl:41: "]);
            says(&message, parts);
        }
    }
}

#[test]
fn dedup_refuses_a_repeated_key_naming_both_lines() {
    let bench = Bench::new();
    bench.write("a.jsonl", jsonl(&documents([("x", "one"), ("y\t", "two")])));
    bench.write("b.jsonl", jsonl(&documents([("z", "one"), ("z2", "one"), ("y\t", "three")])));
    let message = refused_without_a_trace(&bench, "dedup a.jsonl b.jsonl -o out --repeated-keys error");
    says(&message, &["b.jsonl:3", "`y\\t`", "a.jsonl:2", "a key of its own"]);
}

#[test]
fn unreadable_inputs_are_refused_before_any_file_is_created() {
    let bench = indexed();
    bench.write("lies.jsonl.gz", "{\"id\":1,\"text\":\"plain\"}\n");
    for (inputs, parts) in [
        ("none.jsonl", &["none.jsonl: cannot read", "No such file"][..]),
        ("in.jsonl none", &["none: cannot read"]),
        ("lies.jsonl.gz", &["lies.jsonl.gz: named as gzip", "rename it"]),
        ("- -", &["standard input, is named twice"]),
    ] {
        for line in [
            format!("dedup {inputs} -o out"),
            format!("build i.twx {inputs}"),
            format!("build new.twx {inputs}"),
            format!("query i.twx {inputs}"),
        ] {
            says(&refused_without_a_trace(&bench, &line), parts);
        }
    }
}

#[test]
fn truncated_archive_is_refused_and_leaves_no_files() {
    let bench = indexed();
    let packed = crate::support::gzip(jsonl(&corpus(8, 200)).as_bytes());
    bench.write("cut.jsonl.gz", &packed[..packed.len() - 20]);
    for line in ["dedup cut.jsonl.gz -o out", "build i.twx cut.jsonl.gz", "build new.twx cut.jsonl.gz"] {
        says(&refused_without_a_trace(&bench, line), &["cut.jsonl.gz: truncated"]);
    }
    assert_eq!(bench.json("verify i.twx")["sound"], true);
}

#[test]
fn existing_output_is_refused_before_any_work() {
    let bench = Bench::new();
    bench.write("out/notes.txt", "mine");
    // The missing input is not reported, so it has not been opened.
    let message = refused_without_a_trace(&bench, "dedup none.jsonl -o out");
    says(&message, &["out: already exists", "--force"]);
    bench.write("file", "mine");
    says(&refused_without_a_trace(&bench, "dedup none.jsonl -o file"), &["file: already exists"]);
}

#[test]
fn force_replaces_only_results_of_dedup() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(9, 30)));
    bench.write("two.jsonl", jsonl(&documents([("a", "one two three four five")])));
    bench.write("mine/notes.txt", "mine");
    bench.write("file", "mine");
    for out in ["mine", "file"] {
        let message = refused_without_a_trace(&bench, &format!("dedup in.jsonl -o {out} --force"));
        says(&message, &["not made by `twindex dedup`", "choose another folder"]);
    }
    bench.ok("dedup in.jsonl -o out -q");
    bench.ok("dedup two.jsonl -o out --force -q");
    assert_eq!(bench.read("out/kept.jsonl"), bench.read("two.jsonl"));
    assert_eq!(
        bench.names("."),
        ["file", "in.jsonl", "mine", "out", "two.jsonl"],
        "no temporary folder stays"
    );
    fs::create_dir(bench.path("empty")).unwrap();
    bench.ok("dedup two.jsonl -o empty --force -q");
    assert_eq!(bench.read("empty/kept.jsonl"), bench.read("two.jsonl"));
    // Adds a foreign file to a folder of results.
    bench.write("out/notes.txt", "mine");
    let message = refused_without_a_trace(&bench, "dedup in.jsonl -o out --force");
    says(&message, &["out: ", "notes.txt", "not made by `twindex dedup`"]);
}

#[test]
fn failed_run_with_force_keeps_the_earlier_results() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(9, 30)));
    bench.write("bad.jsonl", "{}\n");
    bench.ok("dedup in.jsonl -o out -q");
    refused_without_a_trace(&bench, "dedup bad.jsonl -o out --force");
}

#[test]
fn files_added_to_the_output_folder_during_the_run_are_not_replaced() {
    let bench = Bench::new();
    let mut child = Command::new(TWINDEX)
        .args(["dedup", "-", "-o", "out"])
        .current_dir(bench.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"id\":1,\"text\":\"one\"}\n").unwrap();
    // Waits until the temporary folder of the run exists.
    while fs::read_dir(bench.root()).unwrap().count() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    bench.write("out/notes.txt", "mine");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    says(&stderr, &["out: already exists"]);
    assert_eq!(bench.names("."), ["out"], "no temporary folder stays");
    assert_eq!(bench.names("out"), ["notes.txt"]);
}

#[test]
fn parameters_differing_from_the_index_are_refused_naming_both() {
    let bench = indexed();
    bench.ok("build minhash.twx in.jsonl --method minhash -q");
    bench.ok("build simhash.twx in.jsonl --method simhash -q");
    for (line, parts) in [
        ("build i.twx in.jsonl --words 4", &["i.twx: ", "words", "5", "4"][..]),
        ("build i.twx in.jsonl --near within:6", &["i.twx: ", "within", "3", "6"]),
        (
            "build i.twx in.jsonl --near within:3",
            &["i.twx: ", "near by a resemblance of 0.8 or more", "--near within:3"],
        ),
        ("build i.twx in.jsonl --bands 10", &["i.twx: ", "bands", "20", "10"]),
        ("build i.twx in.jsonl --rows 5", &["i.twx: ", "rows", "6", "5"]),
        ("build i.twx in.jsonl --signature-bits 4", &["i.twx: ", "signature-bits", "8", "4"]),
        ("build i.twx in.jsonl --seed 1", &["i.twx: ", "seed", "0", "1"]),
        ("build i.twx in.jsonl --method minhash", &["i.twx: ", "simhash", "kept", "not kept"]),
        ("build minhash.twx in.jsonl --method simhash", &["minhash.twx: ", "simhash", "not kept"]),
        ("build minhash.twx in.jsonl --near within:3", &["minhash.twx: ", "within", "none", "3"]),
        ("build simhash.twx in.jsonl --bands 20", &["simhash.twx: ", "bands", "none", "20"]),
        (
            "query minhash.twx in.jsonl --near within:3",
            &["minhash.twx: ", "no simhash fingerprints", "--near within:K"],
        ),
        ("query simhash.twx in.jsonl --near .8", &["simhash.twx: ", "no MinHash", "--near"]),
        ("pairs minhash.twx --near within:3", &["minhash.twx: ", "no simhash fingerprints", "--near"]),
    ] {
        says(&refused_without_a_trace(&bench, line), parts);
    }
    // The same parameters, given explicitly, are accepted.
    bench.ok("build i.twx in.jsonl --words 5 --bands 20 --rows 6 --method simhash,minhash --seed 0 -q");
    bench.ok("build simhash.twx in.jsonl --words 5 --near within:3 --method simhash --seed 0 -q");
}

#[test]
fn folder_without_an_index_is_not_read_as_an_empty_index() {
    let bench = indexed();
    bench.write("other/notes.txt", "mine");
    fs::create_dir(bench.path("empty")).unwrap();
    for path in ["none", "other", "empty", "in.jsonl"] {
        for line in [format!("query {path} in.jsonl"), format!("pairs {path}"), format!("stats {path}")] {
            says(&refused_without_a_trace(&bench, &line), &[&format!("{path}: not a twindex index: ")]);
        }
        if path != "none" {
            let line = format!("build {path} in.jsonl");
            says(&refused_without_a_trace(&bench, &line), &[&format!("{path}: not a twindex index: ")]);
        }
        let output = bench.command(&format!("verify {path}")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "verify {path}");
    }
}

/// Checks that every verb that reads the index fails and names the file at `place`, that `build` does not change the
/// index, and that `verify` exits with 1.
fn everything_errors(bench: &Bench, place: &str, parts: &[&str]) {
    for line in ["query i.twx in.jsonl", "pairs i.twx", "stats i.twx", "build i.twx in.jsonl"] {
        let message = refused_without_a_trace(bench, line);
        says(&message, &[place]);
        says(&message, parts);
    }
    let output = bench.command("verify i.twx").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    says(&stdout, &[place]);
    let output = bench.command("verify i.twx --json").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sound"], false);
    assert!(!report["problems"].as_array().unwrap().is_empty());
}

#[test]
fn missing_index_file_is_reported_as_damage() {
    for name in ["CURRENT", "MANIFEST-000002", "000001.seg"] {
        let bench = indexed();
        fs::remove_file(bench.path("i.twx").join(name)).unwrap();
        let parts = ["damaged", "no such file", "restore it from a copy"];
        everything_errors(&bench, &format!("i.twx/{name}: "), &parts);
    }
}

#[test]
fn special_file_in_place_of_an_index_file_is_an_error() {
    for name in ["CURRENT", "MANIFEST-000002", "000001.seg"] {
        for kind in ["folder", "pipe", "empty", "short"] {
            let bench = indexed();
            let path = bench.path("i.twx").join(name);
            let whole = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            match kind {
                "folder" => fs::create_dir(&path).unwrap(),
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "empty" => fs::write(&path, "").unwrap(),
                _ => fs::write(&path, &whole[..whole.len() - 1]).unwrap(),
            }
            // If a command waited for the other end of the pipe, the test's time limit would end it.
            everything_errors(&bench, &format!("i.twx/{name}: "), &[]);
        }
    }
}

#[test]
fn damaged_segment_fails_queries_and_verify_names_the_offset() {
    let bench = indexed();
    let path = bench.path("i.twx/000001.seg");
    let sound = fs::read(&path).unwrap();
    for at in [0, 100, 4096 + 17, sound.len() / 2, sound.len() - 1] {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let output = bench.command("verify i.twx").output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{at}: {stdout}");
        let problem = stdout.lines().next().unwrap();
        says(problem, &["i.twx/000001.seg: ", " at offset ", "expected", "found"]);
        let offset: usize =
            problem.split(" at offset ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
        assert!(offset <= at && at - offset <= 4096 || at < 4096 && offset < 4096, "{at}: {problem}");
        assert!(stdout.lines().last().unwrap().starts_with("i.twx: 1 problem"), "{stdout}");
    }
    // Damages every page except the first, so that a query that reads all bands must read a damaged page.
    let mut damaged = sound.clone();
    damaged.iter_mut().skip(4096).step_by(64).for_each(|byte| *byte ^= 1);
    fs::write(&path, damaged).unwrap();
    says(&refused_without_a_trace(&bench, "query i.twx in.jsonl"), &["000001.seg", "damaged"]);
    fs::write(&path, sound).unwrap();
    assert_eq!(bench.json("verify i.twx")["sound"], true);
}

#[test]
fn second_writer_is_refused_while_readers_continue() {
    let bench = indexed();
    let index = twindex::Index::open(bench.path("i.twx")).unwrap();
    let writer = index.writer().unwrap();
    let message = refused_without_a_trace(&bench, "build i.twx in.jsonl");
    says(&message, &["locked by another writer", &format!("process {}", std::process::id())]);
    bench.ok("query i.twx in.jsonl --count");
    bench.ok("stats i.twx");
    assert_eq!(bench.json("verify i.twx")["sound"], true);
    drop(writer);
    bench.ok("build i.twx in.jsonl -q");
}

#[test]
fn foreign_files_in_an_index_are_ignored_kept_and_reported() {
    let bench = indexed();
    for name in [".DS_Store", "._000001.seg", "7.seg", "notes.txt"] {
        bench.write(&format!("i.twx/{name}"), "mine");
    }
    bench.ok("query i.twx in.jsonl --count");
    bench.ok("build i.twx in.jsonl -q");
    let report = bench.json("verify i.twx");
    assert_eq!((&report["sound"], report["notes"].as_array().unwrap().len()), (&true.into(), 4));
    assert_eq!(bench.read("i.twx/._000001.seg"), "mine");
    assert_eq!(bench.read("i.twx/7.seg"), "mine");
}

#[test]
fn moved_index_answers_queries() {
    let bench = indexed();
    let before = bench.ok("query i.twx in.jsonl");
    fs::create_dir(bench.path("elsewhere")).unwrap();
    fs::rename(bench.path("i.twx"), bench.path("elsewhere/j")).unwrap();
    assert_eq!(bench.ok("query elsewhere/j in.jsonl"), before);
    assert_eq!(bench.json("verify elsewhere/j")["sound"], true);
}

#[cfg(unix)]
#[test]
fn non_utf8_and_long_file_names_work() {
    use std::os::unix::ffi::OsStrExt;
    let bench = indexed();
    let long = "n".repeat(240);
    for name in [&b"f\xfcr"[..], long.as_bytes()] {
        let name = std::ffi::OsStr::from_bytes(name);
        let path = bench.path("").join(name);
        fs::rename(bench.path("i.twx"), &path).unwrap();
        for verb in ["query", "stats", "verify", "build"] {
            let mut command = bench.command(verb);
            command.arg(name);
            if matches!(verb, "query" | "build") {
                command.arg("in.jsonl");
            }
            crate::support::succeeded(verb, &mut command);
        }
        fs::rename(path, bench.path("i.twx")).unwrap();
    }
}

/// Runs commands with common mistakes of new users. Each error message must say how to correct the command.
#[test]
fn common_first_mistakes_are_answered_with_advice() {
    let bench = Bench::new();
    let documents = crate::support::corpus(1, 20);
    let lines = jsonl(&documents);
    bench.write("corpus/a.jsonl", &lines);
    bench.write("corpus/b.jsonl.gz", crate::support::gzip(lines.as_bytes()));
    let record =
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: u\r\nContent-Length: 5\r\n\r\nwords\r\n\r\n";
    bench.write("in.wet", record);
    bench.write("mixed/a.jsonl", &lines);
    bench.write("mixed/b.txt", "a rose is a rose");

    // Reads a folder of records of several formats.
    bench.write("corpus/c.csv", "id,text\n");
    let said = bench.refused("build i.twx corpus");
    says(
        &said,
        &[
            "records of several formats",
            "2 files of jsonl, 1 file of csv",
            "one by one",
            "leaves out the others",
        ],
    );
    let printed = bench.ok("build csv.twx corpus --format csv");
    says(&printed, &["0 documents", "2 entries of folders left out"]);
    says(
        &bench.refused("build mixed.twx mixed"),
        &["mixed", "1 file beside 1 other is records", "--format text"],
    );
    bench.ok("build mixed.twx mixed --format text -q");
    assert_eq!(bench.ok("get mixed.twx"), "a.jsonl\nb.txt\n");
    bench.ok("dedup corpus -o texts --format text -q");

    // Names the result folder of `dedup` instead of the index in it.
    bench.ok("dedup mixed -o out --index kept --format text -q");
    for line in ["stats out", "query out in.wet", "get out"] {
        says(&bench.refused(line), &["out: not a twindex index", "out/index"]);
    }
    // Gives options that do not apply to archives.
    let output = bench.command("dedup in.wet -o archive --text-field body").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["--text-field has no effect", "a record of an archive has one text", "the inputs are WET files"],
    );
    says(
        &bench.refused("dedup in.wet -o o --id-field url"),
        &["in.wet, record 1", "--id-field", "WARC-Target-URI"],
    );
    // Names a path whose parent folder does not exist.
    says(&bench.refused("build no/such/i.twx in.wet"), &["no/such", "make that folder first"]);
    let said = bench.refused("build i.twx in.wet --idf no.idf");
    says(&said, &["no.idf", "see whether its name is right"]);
    assert!(!said.contains("folder"), "{said}");
    // Names an empty folder as input.
    std::fs::create_dir(bench.path("nothing")).unwrap();
    says(&bench.refused("dedup nothing -o none"), &["nothing: no file below it"]);
}

#[test]
fn option_that_applies_to_only_some_inputs_is_accepted() {
    let bench = Bench::new();
    bench.write("a.jsonl", "{\"id\":\"a\",\"body\":\"one two three four five six\"}\n");
    let record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: u\r\nContent-Type: text/plain\r\nContent-Length: 27\r\n\r\n\
                  one two three four five six\r\n\r\n";
    bench.write("b.wet", record);
    std::fs::create_dir(bench.path("sketches")).unwrap();
    for line in ["build i.twx a.jsonl b.wet", "build r.twx a.jsonl b.wet --resume"] {
        let printed = bench.ok(&format!("{line} --method minhash --text-field body"));
        assert!(printed.contains("2 documents"), "{printed}");
    }
    bench.ok("build sketches a.jsonl b.wet --text-field body --as folder");
    let found = bench
        .ok("query i.twx b.wet -q --near 0.5 --verify exact --texts a.jsonl --texts b.wet --text-field body");
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn notes_are_printed_only_if_they_apply() {
    let bench = Bench::new();
    let none = "no document was found";
    bench.write("in.jsonl", jsonl(&crate::support::corpus(1, 20)));
    bench.write("in.u64", crate::support::raw(&[1, 2, 3]));
    bench.write("empty.jsonl", "");
    std::fs::create_dir(bench.path("sketches")).unwrap();
    let said = |line: &str| {
        let output = bench.command(line).output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let printed = said("build raw.twx --fingerprints in.u64");
    assert!(printed.contains("3 documents") && !printed.contains("note:"), "{printed}");
    for line in ["build r.twx in.jsonl --resume", "build sketches in.jsonl --as folder"] {
        for _ in 0..2 {
            let printed = said(line);
            assert!(!printed.contains(none), "{printed}");
        }
    }
    let wanted = [
        "build e.twx empty.jsonl",
        "build er.twx empty.jsonl --resume",
        "build sketches empty.jsonl --as folder",
    ];
    for line in wanted {
        says(&said(line), &[none]);
    }
    // Names a value field that is empty in all documents.
    bench.write("v.jsonl", "{\"id\":\"a\",\"text\":\"one two\",\"colour\":\"red\",\"color\":null}\n");
    says(
        &said("build v.twx v.jsonl --value-field color"),
        &["the document has no value in a field \"color\""],
    );
    assert!(!said("build w.twx v.jsonl --value-field colour").contains("note:"));
}
