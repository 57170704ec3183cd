//! What a careful user fears: a mistyped option, one bad line in a million, a damaged disk. Each must end
//! with exit code 1 and a message that names what, where and what to do, and leave every file as it was. So
//! each test here compares all bytes before and after.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Bench, TWINDEX, corpus, documents, jsonl, says};

/// A folder with an index of 60 documents of both methods, and its input.
fn indexed() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(5, 60)));
    bench.ok("build i.twx in.jsonl -q");
    bench
}

/// The message of a refusal that changed nothing at all in the folder.
fn refused_without_a_trace(bench: &Bench, line: &str) -> String {
    let before = bench.contents(".");
    let message = bench.refused(line);
    let after = bench.contents(".");
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{line}: files");
    assert!(before == after, "{line}: bytes changed");
    message
}

#[test]
fn a_bad_line_is_refused_by_its_place_and_nothing_is_left_behind() {
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
fn a_repeated_key_is_refused_by_dedup_with_both_places() {
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
fn a_truncated_archive_is_refused_and_nothing_is_left_behind() {
    let bench = indexed();
    let packed = crate::support::gzip(jsonl(&corpus(8, 200)).as_bytes());
    bench.write("cut.jsonl.gz", &packed[..packed.len() - 20]);
    for line in ["dedup cut.jsonl.gz -o out", "build i.twx cut.jsonl.gz", "build new.twx cut.jsonl.gz"] {
        says(&refused_without_a_trace(&bench, line), &["cut.jsonl.gz: truncated"]);
    }
    assert_eq!(bench.json("verify i.twx")["sound"], true);
}

#[test]
fn out_that_exists_is_refused_before_any_work() {
    let bench = Bench::new();
    bench.write("out/notes.txt", "mine");
    // The input does not even exist: it has not been opened yet.
    let message = refused_without_a_trace(&bench, "dedup none.jsonl -o out");
    says(&message, &["out: already exists", "--force"]);
    bench.write("file", "mine");
    says(&refused_without_a_trace(&bench, "dedup none.jsonl -o file"), &["file: already exists"]);
}

#[test]
fn force_replaces_only_what_dedup_made() {
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
    // A folder of results with a foreign file.
    bench.write("out/notes.txt", "mine");
    let message = refused_without_a_trace(&bench, "dedup in.jsonl -o out --force");
    says(&message, &["out: ", "notes.txt", "not made by `twindex dedup`"]);
}

#[test]
fn a_failed_run_with_force_leaves_the_earlier_results() {
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
    // It works as soon as its temporary folder is there.
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
fn parameters_other_than_the_indexs_are_refused_with_both_values() {
    let bench = indexed();
    bench.ok("build minhash.twx in.jsonl --method minhash -q");
    bench.ok("build simhash.twx in.jsonl --method simhash -q");
    for (line, parts) in [
        ("build i.twx in.jsonl --words 4", &["i.twx: ", "words", "5", "4"][..]),
        ("build i.twx in.jsonl --within 6", &["i.twx: ", "within", "3", "6"]),
        ("build i.twx in.jsonl --bands 10", &["i.twx: ", "bands", "20", "10"]),
        ("build i.twx in.jsonl --rows 5", &["i.twx: ", "rows", "6", "5"]),
        ("build i.twx in.jsonl --signature-bits 4", &["i.twx: ", "signature-bits", "8", "4"]),
        ("build i.twx in.jsonl --seed 1", &["i.twx: ", "seed", "0", "1"]),
        ("build i.twx in.jsonl --method minhash", &["i.twx: ", "simhash", "kept", "not kept"]),
        ("build minhash.twx in.jsonl --method simhash", &["minhash.twx: ", "simhash", "not kept"]),
        ("build minhash.twx in.jsonl --within 3", &["minhash.twx: ", "within", "none", "3"]),
        ("build simhash.twx in.jsonl --bands 20", &["simhash.twx: ", "bands", "none", "20"]),
        ("query minhash.twx in.jsonl --within 3", &["minhash.twx: ", "no simhash fingerprints", "--within"]),
        ("query simhash.twx in.jsonl --resembling .8", &["simhash.twx: ", "no MinHash", "--resembling"]),
        ("pairs minhash.twx --within 3", &["minhash.twx: ", "no simhash fingerprints", "--resembling"]),
    ] {
        says(&refused_without_a_trace(&bench, line), parts);
    }
    // The same parameters, spelled out, are none other.
    bench.ok(
        "build i.twx in.jsonl --words 5 --within 3 --bands 20 --rows 6 --method simhash,minhash --seed 0 -q",
    );
}

#[test]
fn a_folder_that_is_no_index_is_never_taken_for_an_empty_one() {
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

/// All that reads an index errors, naming the file at `place`; `build` does not touch it, `verify` exits with
/// 1.
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
fn a_missing_file_beside_the_others_is_damage_never_an_empty_index() {
    for name in ["CURRENT", "MANIFEST-000002", "000001.seg"] {
        let bench = indexed();
        fs::remove_file(bench.path("i.twx").join(name)).unwrap();
        let parts = ["damaged", "no such file", "restore it from a copy"];
        everything_errors(&bench, &format!("i.twx/{name}: "), &parts);
    }
}

#[test]
fn a_file_of_another_kind_in_the_place_of_one_is_an_error_at_once() {
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
            // A command that waits for the other end of the pipe is ended by the test's time limit.
            everything_errors(&bench, &format!("i.twx/{name}: "), &[]);
        }
    }
}

#[test]
fn a_damaged_segment_fails_queries_and_verify_names_file_section_and_offset() {
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
    // Every page but the first: a query that reads all the documents' own bands reads some of the damage.
    let mut damaged = sound.clone();
    damaged.iter_mut().skip(4096).step_by(64).for_each(|byte| *byte ^= 1);
    fs::write(&path, damaged).unwrap();
    says(&refused_without_a_trace(&bench, "query i.twx in.jsonl"), &["000001.seg", "damaged"]);
    fs::write(&path, sound).unwrap();
    assert_eq!(bench.json("verify i.twx")["sound"], true);
}

#[test]
fn a_second_writer_is_refused_while_the_first_one_lives_and_readers_go_on() {
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
fn files_of_others_in_an_index_are_ignored_kept_and_noted() {
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
fn an_index_can_be_moved() {
    let bench = indexed();
    let before = bench.ok("query i.twx in.jsonl");
    fs::create_dir(bench.path("elsewhere")).unwrap();
    fs::rename(bench.path("i.twx"), bench.path("elsewhere/j")).unwrap();
    assert_eq!(bench.ok("query elsewhere/j in.jsonl"), before);
    assert_eq!(bench.json("verify elsewhere/j")["sound"], true);
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf8_or_long_work() {
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

/// The mistakes of a first hour, and that each answer says what to do.
#[test]
fn first_mistakes_are_answered_with_what_to_do() {
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

    // A folder of records, taken for one of texts.
    let said = bench.refused("dedup corpus -o out");
    says(&said, &["corpus", "all of its files", "--format jsonl", "--format text"]);
    bench.write("corpus/c.csv", "id,text\n");
    let said = bench.refused("build i.twx corpus");
    says(
        &said,
        &["all of its files", "2 files of jsonl, 1 file of csv", "one by one", "leaves out the others"],
    );
    let printed = bench.ok("build csv.twx corpus --format csv");
    says(&printed, &["0 documents", "2 entries of folders left out"]);
    says(
        &bench.refused("build mixed.twx mixed"),
        &["mixed", "1 file beside 1 other is records", "--format text"],
    );
    bench.ok("build mixed.twx mixed --format text -q");
    assert_eq!(bench.ok("keys mixed.twx"), "a.jsonl\nb.txt\n");
    bench.ok("dedup corpus -o texts --format text -q");

    // The folder that `dedup` made, in the place of the index in it.
    bench.ok("dedup mixed -o out --format text -q");
    for line in ["stats out", "query out in.wet", "keys out"] {
        says(&bench.refused(line), &["out: not a twindex index", "out/index"]);
    }
    // Options that mean nothing to archives.
    says(
        &bench.ok("dedup in.wet -o archive --text-field body"),
        &["note: web archives", "--text-field body means nothing"],
    );
    says(
        &bench.refused("dedup in.wet -o o --id-field url"),
        &["in.wet, record 1", "--id-field", "WARC-Target-URI"],
    );
    // A place that is not there.
    says(&bench.refused("build no/such/i.twx in.wet"), &["no/such", "make that folder first"]);
    let said = bench.refused("build i.twx in.wet --idf no.idf");
    says(&said, &["no.idf", "see whether its name is right"]);
    assert!(!said.contains("folder"), "{said}");
    // Nothing in it.
    std::fs::create_dir(bench.path("nothing")).unwrap();
    says(&bench.ok("dedup nothing -o none"), &["0 documents", "no document was found"]);
}

#[test]
fn option_that_applies_to_some_inputs_only_is_accepted() {
    let bench = Bench::new();
    bench.write("a.jsonl", "{\"id\":\"a\",\"body\":\"one two three four five six\"}\n");
    let record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: u\r\nContent-Type: text/plain\r\nContent-Length: 27\r\n\r\n\
                  one two three four five six\r\n\r\n";
    bench.write("b.wet", record);
    std::fs::create_dir(bench.path("sketches")).unwrap();
    let said_of_archives = "--text-field body means nothing";
    for line in ["build i.twx a.jsonl b.wet", "build r.twx a.jsonl b.wet --resume"] {
        let printed = bench.ok(&format!("{line} --method minhash --text-field body"));
        assert!(printed.contains("2 documents") && !printed.contains(said_of_archives), "{printed}");
    }
    bench.ok("sketch --into sketches a.jsonl b.wet --text-field body");
    let found = bench.ok(
        "query i.twx b.wet -q --resembling 0.5 --verify exact --texts a.jsonl --texts b.wet --text-field body",
    );
    assert_eq!(found.lines().count(), 2, "{found}");
    // If no input has fields, a note says so.
    says(&bench.ok("build wet.twx b.wet --resume --text-field body"), &["note: ", said_of_archives]);
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
    for line in ["build r.twx in.jsonl --resume", "sketch --into sketches in.jsonl"] {
        for _ in 0..2 {
            let printed = said(line);
            assert!(!printed.contains(none), "{printed}");
        }
    }
    let wanted = [
        "build e.twx empty.jsonl",
        "build er.twx empty.jsonl --resume",
        "sketch --into sketches empty.jsonl",
    ];
    for line in wanted {
        says(&said(line), &[none]);
    }
    // A field of values that no document has.
    bench.write("v.jsonl", "{\"id\":\"a\",\"text\":\"one two\",\"colour\":\"red\"}\n");
    says(
        &said("build v.twx v.jsonl --value-field color"),
        &["the document has no value in a field \"color\""],
    );
    assert!(!said("build w.twx v.jsonl --value-field colour").contains("note:"));
}
