//! The verbs for an index that changes over time: `stream`, `delete`, `get`, `merge`. They
//! must print the content of the index, and a refused command must leave every file unchanged.

use crate::support::{Bench, documents, jsonl, refused, says, succeeded};

fn rows(out: &str) -> Vec<Vec<&str>> {
    out.lines().map(|line| line.split('\t').collect()).collect()
}

#[test]
fn stream_reports_the_earlier_near_document_of_each_document() {
    let bench = Bench::new();
    let long = "one two three four five six seven eight nine ten";
    let other = "the moon the sun the stars and all the rest of it";
    let all = [("b", long), ("a", long), ("c", other), ("a", other), ("d", "")];
    bench.write("in.jsonl", jsonl(&documents(all)));
    let out = bench.ok("stream i.twx in.jsonl -q --commit-ms 0");
    let rows = rows(&out);
    let printed: Vec<(&str, &str, &str)> = rows.iter().map(|row| (row[0], row[1], row[2])).collect();
    assert_eq!(
        printed,
        [
            ("b", "new", "-"),
            ("a", "duplicate", "b"),
            ("c", "new", "-"),
            ("a", "known", "c"),
            ("d", "new", "-")
        ]
    );
    assert_eq!((rows[1][3], rows[1][4]), ("0", "1.000"));
    assert_eq!(bench.ok("get i.twx"), "a\nb\nc\nd\n");
    assert_eq!(bench.ok("get i.twx --count"), "4\n");
    // A second run over the same input: all documents are known, and `--drop-duplicates` drops none that is already
    // indexed.
    let again = bench.json("stream i.twx in.jsonl --drop-duplicates");
    assert_eq!((again["known"].as_u64(), again["documents"].as_u64()), (Some(5), Some(4)));
    bench.write(
        "more.jsonl",
        jsonl(&documents([("e", long), ("f", "something else altogether, and new to it")])),
    );
    let more = bench.json("stream i.twx more.jsonl --drop-duplicates");
    assert_eq!((more["duplicates"].as_u64(), more["new"].as_u64()), (Some(1), Some(1)));
    assert_eq!(bench.ok("get i.twx --count"), "5\n");
    let stats = bench.json("stats i.twx");
    assert_eq!((stats["documents"].as_u64(), stats["logged_documents"].as_u64()), (Some(5), Some(5)));
    assert_eq!(bench.json("verify i.twx")["sound"].as_bool(), Some(true));
}

/// Returns the decision about a document, and the near document.
fn decided(out: &str) -> (String, String) {
    let row = rows(out).remove(0);
    (row[1].to_owned(), row[2].to_owned())
}

#[test]
fn stream_finds_the_marked_copy_of_a_page_that_was_replaced_deleted_or_expired() {
    let bench = Bench::new();
    let text = "a boat left the harbour at dawn and came back at night with no fish and a torn net";
    let line = |key: &str, text: &str, day: u32| {
        format!(
            "{{\"id\": \"{key}\", \"text\": \"{text}\", \"site\": \"x\", \"seen\": \"2026-03-{day:02}\"}}\n"
        )
    };
    bench.write("page.jsonl", line("page", text, 1));
    bench.write("copy.jsonl", line("copy", text, 15));
    bench.write("later.jsonl", line("later", text, 20));
    bench
        .write("other.jsonl", line("page", "the page has a new owner who sells lamps and chairs to all", 18));
    for options in ["", "--method simhash", "--near containment:0.8", "--inside site"] {
        for gone in ["replaced", "deleted", "expired"] {
            if gone == "expired" && (options.contains("containment") || options.contains("--inside")) {
                continue; // documents do not expire in such an index
            }
            let expiry = if gone == "expired" { " --stamp-field seen --expire-after 18d" } else { "" };
            let index = format!("{gone}{}.twx", options.len());
            let stream =
                |input: &str| bench.ok(&format!("stream {index} {input}.jsonl -q {options}{expiry}"));
            assert_eq!(decided(&stream("page")).0, "new");
            assert_eq!(decided(&stream("copy")), ("duplicate".into(), "page".into()));
            match gone {
                "replaced" => assert_eq!(decided(&stream("other")).0, "known"),
                "deleted" => _ = bench.ok(&format!("delete -q {index} page")),
                _ => {}
            }
            assert_eq!(decided(&stream("later")), ("duplicate".into(), "copy".into()), "{gone}, {options}");
        }
    }
}

#[test]
fn get_and_delete_find_documents_by_key() {
    let bench = Bench::new();
    let keys = ["a", "b\tc", "d"];
    bench.write("in.jsonl", jsonl(&documents(keys.map(|key| (key, "one two three four five six seven")))));
    bench.ok("build i.twx in.jsonl -q");
    assert_eq!(bench.ok("get i.twx"), "a\nb\\tc\nd\n");
    let got = bench.ok("get i.twx a b\\tc --escaped");
    assert!(got.starts_with("a\t") && got.contains("\nb\\tc\t"), "{got}");
    let deleted = bench.json("delete i.twx b\\tc absent --escaped");
    assert_eq!((deleted["deleted"].as_u64(), deleted["absent"].as_u64()), (Some(1), Some(1)));
    assert_eq!(bench.ok("get i.twx"), "a\nd\n");
    let message = bench.refused("get i.twx b\\tc --escaped");
    says(&message, &["no document `b\\tc`"]);
    bench.ok("merge i.twx -q");
    assert_eq!(bench.ok("get i.twx"), "a\nd\n");
    assert_eq!(bench.json("merge i.twx --gc")["bytes_removed"].as_u64(), Some(0));
}

#[test]
fn keys_from_standard_input_are_deleted_in_one_commit() {
    let bench = Bench::new();
    let keys: [String; 30] = std::array::from_fn(|number| format!("{}\t{number:02}", number % 3));
    let texts = keys.each_ref().map(|key| (key.as_str(), "one two three four five six seven"));
    bench.write("in.jsonl", jsonl(&documents(texts)));
    bench.ok("build i.twx in.jsonl -q");
    let all = bench.ok("get i.twx");
    assert_eq!(all.lines().count(), 30);
    let bad = format!("0\\t00\n{}\n", "x".repeat(300_000));
    let message = refused("a long line", bench.command("delete i.twx - --escaped").write_stdin(bad));
    says(&message, &["<stdin>:2: more than 262142 bytes"]);
    let message =
        refused("an empty line", bench.command("delete i.twx - --escaped").write_stdin("0\\t00\n\nx"));
    says(&message, &["<stdin>:2", "empty"]);
    assert_eq!(bench.ok("get i.twx"), all);
    let some: String = all.lines().filter(|key| key.starts_with('1')).flat_map(|key| [key, "\r\n"]).collect();
    let said = succeeded("delete", bench.command("delete i.twx - --escaped").write_stdin(some + "absent"));
    assert_eq!(said, "i.twx: 10 documents deleted, 1 key not there, 20 documents left\n");
    assert!(!bench.ok("get i.twx").lines().any(|key| key.starts_with('1')));
    // If there are several arguments, `-` is a key.
    says(&succeeded("-", &mut bench.command("delete i.twx - x")), &["2 keys not there"]);
}

#[test]
fn refused_commands_leave_every_file_unchanged() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        jsonl(&documents([("a", "one two three four five six"), ("b", "and another text of words")])),
    );
    bench.write("other.jsonl", jsonl(&documents([("a", "not at all what the other one says, but more")])));
    bench.write("bad.jsonl", "{\"id\":\"x\"}\n");
    bench.write("f.u64", 7_u64.to_le_bytes());
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("build other.twx other.jsonl -q");
    bench.ok("build numbers.twx --fingerprints f.u64 -q");
    bench.ok("build narrow.twx in.jsonl --words 2 -q");
    for (line, parts) in [
        ("stream i.twx absent.jsonl", &["absent.jsonl"][..]),
        ("stream i.twx in.jsonl --words 2", &["--words"]),
        ("stream new.twx absent.jsonl", &["absent.jsonl"]),
        ("delete absent.twx a", &["absent.twx", "not a twindex index"]),
        ("delete numbers.twx seven", &["`seven`", "keys from 0"]),
        ("get i.twx a\\q --escaped", &["a\\\\q"]),
        ("merge i.twx --snapshot other.twx", &["other.twx", "already exists"]),
        ("merge i.twx --snapshot new.twx --generation 77", &["MANIFEST-000077"]),
        ("merge i.twx -o other.twx", &["other.twx", "already exists"]),
        ("merge i.twx narrow.twx -o new.twx", &["width"]),
        ("merge i.twx other.twx -o new.twx", &["`a`", "i.twx", "other.twx"]),
        ("merge in.jsonl --gc", &["in.jsonl"]),
        ("get absent.twx", &["absent.twx"]),
    ] {
        let before = bench.contents(".");
        let message = bench.refused(line);
        says(&message, parts);
        assert!(bench.contents(".") == before, "{line}: files changed");
    }
}

#[test]
fn snapshots_and_merged_indexes_have_the_documents_of_their_sources() {
    let bench = Bench::new();
    let text = |i: usize| format!("text number {i} has words of its own like w{i} and x{i} and y{i}");
    let all: Vec<(String, String)> = (0..40).map(|i| (format!("k{i:02}"), text(i))).collect();
    let lines = |range: std::ops::Range<usize>| jsonl(&all[range]);
    bench.write("a.jsonl", lines(0..25));
    bench.write("b.jsonl", lines(20..40));
    bench.write("all.jsonl", lines(0..40));
    bench.ok("stream a.twx a.jsonl -q");
    bench.ok("build b.twx b.jsonl -q");
    bench.ok("build all.twx all.jsonl -q");
    let merged = bench.json("merge a.twx b.twx -o ab.twx");
    assert_eq!((merged["documents"].as_u64(), merged["repeated"].as_u64()), (Some(40), Some(5)));
    assert_eq!(bench.ok("get ab.twx"), bench.ok("get all.twx"));
    let segment = |index: &str| std::fs::read(bench.path(&format!("{index}/000001.seg"))).unwrap();
    assert!(segment("ab.twx") == segment("all.twx"), "the same documents give the same segment");
    bench.ok("merge a.twx --snapshot copy.twx -q");
    bench.ok("delete a.twx k00 -q");
    assert_eq!(bench.ok("get copy.twx --count"), "25\n");
    assert_eq!(bench.ok("get a.twx --count"), "24\n");
    for index in ["ab.twx", "copy.twx", "a.twx"] {
        assert_eq!(bench.json(&format!("verify {index}"))["sound"].as_bool(), Some(true), "{index}");
    }
}

#[test]
fn values_and_stamps_come_from_fields_and_old_documents_expire() {
    let bench = Bench::new();
    let line = |id: &str, rest: &str| {
        format!("{{\"id\":\"{id}\",\"text\":\"one two three four five six of {id}\"{rest}}}\n")
    };
    bench.write(
        "in.jsonl",
        line("a", ",\"t\":100000,\"v\":\"first\\tvalue\"")
            + &line("b", ",\"t\":\"150000\",\"v\":{\"n\": [1]}")
            + &line("c", ",\"t\":186399"),
    );
    let made = "--stamp-field t --value-field v";
    bench.ok(&format!("build i.twx in.jsonl -q {made} --expire-after 1d"));
    let got = bench.ok("get i.twx a b c");
    let attached: Vec<(String, String)> =
        rows(&got).iter().map(|row| (row[4].to_owned(), row[5].to_owned())).collect();
    let expected = [("first\\tvalue", "86399"), ("{\"n\": [1]}", "36399"), ("", "0")];
    assert_eq!(attached, expected.map(|(value, age)| (value.to_owned(), age.to_owned())));
    assert_eq!(bench.json("stats i.twx")["now"].as_u64(), Some(186_399));

    bench.write("more.jsonl", line("d", ",\"t\":186400,\"v\":null"));
    bench.ok(&format!("stream i.twx more.jsonl -q {made}"));
    assert_eq!(bench.ok("get i.twx"), "b\nc\nd\n");
    let got = bench.json_lines("get i.twx b");
    assert_eq!(got[1], serde_json::json!({ "documents": 1, "absent": 0 }));
    let fields = (got[0]["value"].as_str(), got[0]["stamp"].as_u64(), got[0]["age"].as_u64());
    assert_eq!(fields, (Some("{\"n\": [1]}"), Some(150_000), Some(36_400)));
    assert!(bench.refused("get i.twx a").contains("no document `a`"));
    bench.ok("merge i.twx -q");
    assert_eq!(bench.ok("get i.twx"), "b\nc\nd\n");
    assert_eq!(bench.json("verify i.twx")["sound"].as_bool(), Some(true));

    let before = bench.contents("i.twx");
    bench.write("late.jsonl", line("e", ""));
    bench.write("far.jsonl", line("e", ",\"t\":1000000000,\"v\":null"));
    says(&bench.refused(&format!("stream i.twx late.jsonl {made}")), &["late.jsonl:1", "no field \"t\""]);
    says(&bench.refused(&format!("build i.twx far.jsonl {made}")), &["far.jsonl:1", "1000000000", "186400"]);
    says(&bench.refused("build i.twx more.jsonl"), &["--stamp-field"]);
    says(&bench.refused(&format!("build i.twx more.jsonl {made} --expire-after 2d")), &["86400", "172800"]);
    assert_eq!(bench.contents("i.twx"), before);
    bench.ok(&format!("build i.twx far.jsonl -q {made} --max-jump 9999w"));
    assert_eq!(bench.ok("get i.twx"), "e\n");
}

#[test]
fn document_with_an_invalid_stamp_or_value_is_a_bad_record() {
    let bench = Bench::new();
    let line = |id: &str, rest: &str| {
        format!("{{\"id\":\"{id}\",\"text\":\"one two three four five six of {id}\"{rest}}}\n")
    };
    let long = "x".repeat(65_537);
    bench.write(
        "in.jsonl",
        line("a", ",\"t\":100")
            + &line("none", "")
            + &line("odd", ",\"t\":\"yesterday\"")
            + &line("long", &format!(",\"t\":101,\"v\":\"{long}\""))
            + &line("b", ",\"t\":102,\"v\":1"),
    );
    let made = "--stamp-field t --value-field v";
    for verb in ["build", "stream"] {
        let new = if verb == "build" { "--expire-after 1d" } else { "" };
        if verb == "stream" {
            bench.write("empty.jsonl", "");
            bench.ok(&format!("build {verb}.twx empty.jsonl -q {made} --expire-after 1d"));
        }
        let line = format!("{verb} {verb}.twx in.jsonl {made} {new}");
        says(&bench.refused(&line), &["in.jsonl:2", "no field \"t\"", "--skip-bad"]);
        says(&bench.refused(&format!("{line} --skip-bad 1")), &["in.jsonl:3", "yesterday"]);
        says(&bench.refused(&format!("{line} --skip-bad 2")), &["in.jsonl:4", "65537", "65536"]);
        bench.ok(&format!("{line} --skip-bad 3 -q"));
        assert_eq!(bench.ok(&format!("get {verb}.twx")), "a\nb\n", "{verb}");
    }
}

#[test]
fn stamp_too_far_ahead_makes_its_record_a_bad_record() {
    let bench = Bench::new();
    let line = |id: &str, stamp: u64| {
        format!("{{\"id\":\"{id}\",\"text\":\"one two three four five six of {id}\",\"t\":{stamp}}}\n")
    };
    bench.write(
        "in.jsonl",
        line("a", 100) + &line("far", 100_000) + &line("b", 150) + &line("farther", 200_000),
    );
    for verb in ["build", "stream"] {
        let made = format!("{verb} {verb}.twx in.jsonl --stamp-field t --expire-after 60 --max-jump 60");
        says(&bench.failed(&format!("{made} --json")), &["in.jsonl:2", "100000", "--max-jump", "--skip-bad"]);
        let _ = std::fs::remove_dir_all(bench.path(&format!("{verb}.twx")));
        says(&bench.failed(&format!("{made} --json --skip-bad 1")), &["in.jsonl:4", "--skip-bad 1"]);
        let _ = std::fs::remove_dir_all(bench.path(&format!("{verb}.twx")));
        let printed = bench.json(&format!("{made} --skip-bad 2"));
        assert_eq!(
            (printed["documents"].as_u64(), printed["skipped_bad"].as_u64()),
            (Some(2), Some(2)),
            "{printed}"
        );
        says(printed["first_bad"][0].as_str().unwrap(), &["in.jsonl:2", "100000"]);
        let read = if verb == "build" { "added" } else { "admitted" };
        assert_eq!(printed[read].as_u64(), Some(2), "{printed}");
        assert_eq!(bench.ok(&format!("get {verb}.twx")), "a\nb\n", "{verb}");
        assert_eq!(bench.json(&format!("stats {verb}.twx"))["now"].as_u64(), Some(150));
    }
    // Documents from a pipe are added as they arrive.
    let mut piped =
        bench.command("stream piped.twx - --stamp-field t --expire-after 60 --max-jump 60 --skip-bad 2 -q");
    crate::support::succeeded("a pipe", piped.write_stdin(bench.read("in.jsonl")));
    assert_eq!(bench.ok("get piped.twx"), "a\nb\n");
}

/// The pipe stays open: documents that have arrived are answered without waiting for more.
#[test]
fn stream_answers_lines_of_a_pipe_before_it_is_closed() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    let bench = Bench::new();
    let mut child = Command::new(crate::support::TWINDEX)
        .current_dir(bench.root())
        .args(["stream", "i.twx", "-", "-q", "--commit-ms", "100"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let (send, lines) = std::sync::mpsc::channel();
    let out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            let _ = send.send(line.unwrap());
        }
    });
    let wait = std::time::Duration::from_secs(30);
    for (number, expected) in ["new", "duplicate", "duplicate"].iter().enumerate() {
        let key = format!("key {number}");
        input
            .write_all(jsonl(&documents([(key.as_str(), "one two three four five six")])).as_bytes())
            .unwrap();
        input.flush().unwrap();
        let line = lines.recv_timeout(wait).expect("an answer while the pipe is open");
        assert!(line.starts_with(&format!("{key}\t{expected}\t")), "{line}");
        // Printed documents are durable: another process can read them.
        assert_eq!(bench.ok("get i.twx --count"), format!("{}\n", number + 1));
    }
    // Writes several documents at once, and closes the pipe.
    let more = [("x", "seven eight nine ten"), ("y", "eleven twelve thirteen")];
    input.write_all(jsonl(&documents(more)).as_bytes()).unwrap();
    drop(input);
    assert!(lines.recv_timeout(wait).unwrap().starts_with("x\tnew"));
    assert!(lines.recv_timeout(wait).unwrap().starts_with("y\tnew"));
    assert!(child.wait().unwrap().success());
    assert_eq!(bench.ok("get i.twx --count"), "5\n");
}

#[test]
fn salvage_writes_readable_documents_and_reports_the_rest() {
    let bench = Bench::new();
    let texts: Vec<(String, String)> =
        (0..300).map(|i| (format!("key {i}"), format!("text number {i} of all those {}", i % 17))).collect();
    bench.write("in.jsonl", jsonl(&texts));
    bench.ok("build i.twx in.jsonl -q");
    let whole = bench.json("verify i.twx --salvage whole.twx");
    assert_eq!((whole["whole"].as_bool(), whole["documents"].as_u64()), (Some(true), Some(300)));
    assert_eq!(bench.ok("get whole.twx"), bench.ok("get i.twx"));

    let path = bench.path("i.twx/000001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let before = bench.contents("i.twx");
    let out = bench.command("verify i.twx --salvage saved.twx --json").output().unwrap();
    assert_eq!(out.status.code(), Some(1), "something was wrong");
    let printed: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let (saved, lost) = (printed["documents"].as_u64().unwrap(), printed["lost"].as_u64().unwrap());
    assert!(saved + lost == 300 && lost > 0, "{printed}");
    assert!(printed["files"][0]["problems"][0].as_str().unwrap().contains("000001.seg"), "{printed}");
    assert_eq!(bench.contents("i.twx"), before);
    assert_eq!(bench.json("verify saved.twx")["sound"].as_bool(), Some(true));
    assert_eq!(bench.ok("get saved.twx --count"), format!("{saved}\n"));
    says(&bench.refused("verify i.twx --salvage saved.twx"), &["already exists"]);
}
