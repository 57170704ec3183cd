//! Scripts depend on the output of commands. These tests fix the output of every verb, the stream it is written to, and
//! the exit code, and check that closing the pipe early is not an error.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::support::{Bench, TWINDEX, documents, has_fields, jsonl, raw, says, words};

/// Returns an index of five documents: `a`, `b` and `c` are near each other; `d` and the empty `e` are near none.
fn small() -> Bench {
    let bench = Bench::new();
    let mut random = crate::support::Random(1);
    let text = words(&mut random, 400);
    let mut near = text.clone();
    for place in [100, 200, 399] {
        near[place] = format!("changed{place}");
    }
    bench.write(
        "in.jsonl",
        jsonl(&documents([
            ("a", &text.join(" ")),
            ("b", &text.join("  ").to_uppercase()),
            ("c", &near.join(" ")),
            ("d", "the quick brown fox jumps over the lazy dog"),
            ("e", "!"),
        ])),
    );
    bench.write("q.jsonl", jsonl(&documents([("q", &text.join(" ")), ("r", "nothing like it"), ("s", "")])));
    bench.ok("build i.twx in.jsonl -q");
    bench
}

#[test]
fn build_prints_one_line_or_nothing_or_json() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one two three"), ("b", "four five six")])));
    let out = bench.ok("build i.twx in.jsonl");
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(out.starts_with("i.twx: 2 documents, ") && out.contains(" on disk, "), "{out}");
    assert_eq!(bench.ok("build quiet.twx in.jsonl -q"), "");
    let report = bench.json("build json.twx in.jsonl");
    for field in
        ["documents", "added", "distinct_fingerprints", "bytes_on_disk", "peak_rss_bytes", "text_bytes"]
    {
        has_fields(&report, &[(field, "count")]);
    }
    for field in ["bytes_per_fingerprint", "cpu_seconds", "seconds"] {
        has_fields(&report, &[(field, "number")]);
    }
    assert_eq!(report["bytes_on_disk"], current_bytes(&bench, "json.twx", 2));
}

/// Returns the total length in bytes of the files of an index that has one segment and this generation.
fn current_bytes(bench: &Bench, index: &str, generation: u64) -> u64 {
    let names = ["CURRENT".to_owned(), format!("MANIFEST-{generation:06}"), "000001.seg".to_owned()];
    names.iter().map(|name| std::fs::metadata(bench.path(index).join(name)).unwrap().len()).sum()
}

#[test]
fn json_output_repeats_no_field_name() {
    let bench = small();
    for line in [
        "build i.twx in.jsonl",
        "query i.twx q.jsonl",
        "pairs i.twx",
        "stats i.twx",
        "verify i.twx",
        "dedup in.jsonl -o out",
    ] {
        let all = bench.ok(&format!("{line} --json"));
        let out = all.lines().last().unwrap();
        let mut seen = BTreeSet::new();
        // Top-level names follow `{` or `,` at depth 1.
        let (mut depth, mut rest) = (0, out);
        while let Some(c) = rest.chars().next() {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                '"' => {
                    let end = rest[1..].find('"').unwrap() + 2;
                    let name = &rest[..end];
                    rest = &rest[end..];
                    if depth == 1 && rest.starts_with(':') {
                        assert!(seen.insert(name), "{line}: {name} is repeated in {out}");
                    }
                    continue;
                }
                _ => {}
            }
            rest = &rest[1..];
        }
        assert!(seen.len() > 3, "{line}: {seen:?}");
    }
}

#[test]
fn build_on_an_existing_index_reports_total_and_added_documents() {
    let bench = Bench::new();
    bench.write("one.jsonl", jsonl(&documents([("a", "one two three"), ("b", "four five six")])));
    bench.write("two.jsonl", jsonl(&documents([("b", "seven eight nine"), ("c", "ten eleven twelve")])));
    bench.ok("build i.twx one.jsonl -q");
    let report = bench.json("build i.twx two.jsonl");
    assert_eq!((&report["documents"], &report["added"]), (&3.into(), &2.into()));
    assert_eq!(bench.json("stats i.twx")["documents"], 3);
    // The last document with a key is used, also within one run.
    bench.write("twice.jsonl", jsonl(&documents([("k", "first first first"), ("k", "last last last")])));
    bench.ok("build i.twx twice.jsonl -q");
    bench.write("q.jsonl", jsonl(&documents([("q", "first first first"), ("r", "last last last")])));
    assert_eq!(bench.ok("query i.twx q.jsonl --near within:0"), "r\tk\t0\t1.0000\n".replace("1.0000", "-"));
}

#[test]
fn query_prints_the_nearest_hits_first() {
    let bench = small();
    let out = bench.ok("query i.twx q.jsonl");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    let keys: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(keys, [("q", "a"), ("q", "b"), ("q", "c")], "{out}");
    assert_eq!(
        (&rows[0][2..], &rows[1][2..]),
        (&["0", "1.0000", "396", "396"][..], &["0", "1.0000", "396", "396"][..])
    );
    let (distance, resemblance): (u32, f64) = (rows[2][2].parse().unwrap(), rows[2][3].parse().unwrap());
    assert!(distance > 0 && resemblance > 0.9, "{out}");

    assert_eq!(bench.ok("query i.twx q.jsonl --near within:0"), "q\ta\t0\t-\nq\tb\t0\t-\n");
    assert_eq!(bench.ok("query i.twx q.jsonl --near 1 --limit 1"), "q\ta\t0\t1.0000\t396\t396\n");
    assert_eq!(bench.ok("query i.twx q.jsonl --count"), "3\n");
    let report = bench.json("query i.twx q.jsonl");
    has_fields(&report, &[("cpu_seconds", "number"), ("ns_per_query", "number"), ("checksum", "checksum")]);
    assert_eq!((&report["queries"], &report["hits"]), (&3.into(), &3.into()));
    let checksum = ["a", "b", "c"].iter().fold(0_u64, |sum, key| {
        sum.wrapping_add(crate::support::mix(0, xxhash_rust::xxh3::xxh3_64(key.as_bytes())))
    });
    assert_eq!(report["checksum"], format!("{checksum:016x}"));
}

#[test]
fn index_with_samples_reports_containment_in_both_directions() {
    let bench = small();
    let mut random = crate::support::Random(1);
    let text = words(&mut random, 400);
    let part = text[..200].join(" ");
    bench.write("more.jsonl", jsonl(&documents([("part", &part), ("whole", &text.join(" "))])));
    bench.write("q.jsonl", jsonl(&documents([("q", &text.join(" "))])));
    bench.ok("build s.twx more.jsonl -q --method minhash --words 1 --bands 100 --rows 1 --bottom 1000");
    let out = bench.ok("query s.twx q.jsonl --near 0.1 --verify signature");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), ["whole", "part"], "{out}");
    // Sets with fewer hashes than the sample size are compared exactly.
    assert_eq!(rows[0][4..], ["1.0000", "1.0000"], "{out}");
    let in_part: f64 = rows[1][4].parse().unwrap();
    assert!((0.3..0.7).contains(&in_part) && rows[1][5] == "1.0000", "{out}");
    let report = bench.json("query s.twx q.jsonl --near 0.1 --verify signature");
    has_fields(&report, &[("mean_query_in_hit", "number"), ("mean_hit_in_query", "number")]);
    let mean = report["mean_query_in_hit"].as_f64().unwrap();
    assert!((mean - f64::midpoint(1.0, in_part)).abs() < 1e-4, "{report}");
    assert!(bench.json("query i.twx q.jsonl").get("mean_query_in_hit").is_none());

    bench.ok("build m.twx more.jsonl -q --words 1 --modulus 7 --bottom 0");
    says(&bench.ok("stats m.twx"), &["    modular ", "    modulus                            7"]);
    assert!(!bench.ok("stats m.twx").contains("    bottom  \n"));
    says(&bench.ok("verify m.twx"), &["sound"]);
    for other in ["--modulus 8", "--bottom 5"] {
        let name = other.split_whitespace().next().unwrap().trim_start_matches('-');
        says(&bench.refused(&format!("build m.twx more.jsonl {other}")), &[name, "in this index", other]);
    }
    let usage = bench.command("build n.twx more.jsonl --bottom 4097").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    says(&String::from_utf8_lossy(&usage.stderr), &["4097 is not in 0..=4096"]);
    let numbers = bench.path("f.u64");
    std::fs::write(numbers, [0_u8; 16]).unwrap();
    let out = bench.command("build n.twx --fingerprints f.u64 --bottom 5").output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}

#[test]
fn pairs_prints_the_smaller_key_first_and_the_distance() {
    let bench = small();
    let out = bench.ok("pairs i.twx --near within:10");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    let keys: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(keys, [("a", "b"), ("a", "c"), ("b", "c")], "{out}");
    assert_eq!((rows[0][2], rows[1][2] == rows[2][2]), ("0", true));
    assert_eq!(bench.ok("pairs i.twx --near within:0"), "a\tb\t0\n");
    assert_eq!(bench.ok("pairs i.twx --near within:10 --count"), "3\n");
    let report = bench.json("pairs i.twx --near within:10");
    has_fields(&report, &[("pairs", "count"), ("cpu_seconds", "number"), ("checksum", "checksum")]);
    assert_eq!(report["pairs"], 3);
}

#[test]
fn keys_are_escaped_in_every_table() {
    let bench = Bench::new();
    let text = "one two three four five six";
    let keys = [("tab\t", text), ("line\nbreak", text), ("\\", text), ("ü\r", text)];
    bench.write("in.jsonl", jsonl(&documents(keys)));
    bench.ok("build i.twx in.jsonl -q");
    let out = bench.ok("pairs i.twx --near within:0");
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            r"\\	line\nbreak	0",
            r"\\	tab\t	0",
            r"\\	ü\r	0",
            r"line\nbreak	tab\t	0",
            r"line\nbreak	ü\r	0",
            r"tab\t	ü\r	0"
        ]
    );
    let out = bench.ok("query i.twx in.jsonl --near within:0");
    assert_eq!(out.lines().count(), 16);
    assert!(out.lines().all(|line| line.split('\t').count() == 4), "{out}");
    assert_eq!(out.lines().nth(4), Some(r"line\nbreak	\\	0	-"));
}

#[test]
fn stats_prints_the_content_of_the_index() {
    let bench = small();
    let out = bench.ok("stats i.twx");
    assert!(out.starts_with("i.twx\n"), "{out}");
    says(
        &out,
        &[
            "documents                            5",
            "segments                             1",
            "bands",
            "width",
        ],
    );
    let report = bench.json("stats i.twx");
    has_fields(
        &report,
        &[
            ("documents", "count"),
            ("distinct_fingerprints", "count"),
            ("segments", "count"),
            ("design", "text"),
            ("bytes", "object"),
        ],
    );
    assert_eq!(report["distinct_fingerprints"], 3);
    let sum: u64 = report["bytes"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert_eq!(report["bytes_on_disk"], sum, "every byte is some section's");
    assert_eq!(report["bytes_on_disk"], current_bytes(&bench, "i.twx", 2));
}

#[test]
fn index_bytes_exclude_foreign_files_and_earlier_generations() {
    let bench = small();
    let before = bench.json("stats i.twx");
    bench.write("i.twx/notes.txt", "mine ".repeat(1000));
    bench.write("i.twx/photos/a.txt", "mine");
    let after = bench.json("stats i.twx");
    for field in ["bytes_on_disk", "bytes", "bytes_per_fingerprint"] {
        assert_eq!(before[field], after[field], "{field}");
    }
}

#[test]
fn resemblance_below_band_threshold_prints_a_note_about_recall() {
    let bench = small();
    let run = |line: &str| {
        let output = bench.command(line).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {stderr}");
        (String::from_utf8(output.stdout).unwrap(), stderr)
    };
    // The expected recall of 20 bands of 6 minima at 0.5 is 1 - (1 - .5^6)^20.
    let (out, note) = run("query i.twx q.jsonl --near .5 --verify signature");
    assert_eq!(out.lines().count(), 3, "the note is no answer: {out}");
    assert_eq!(note.lines().count(), 1, "{note}");
    says(&note, &["note: ", "i.twx", "--near 0.5", "27.0 %", "--bands 40 --rows 3", "99.5 %"]);
    assert_eq!(run("query i.twx q.jsonl --near .5 --verify signature -q").1, "");
    let (out, note) = run("query i.twx q.jsonl --near .5 --verify signature --json");
    assert_eq!(note.lines().count(), 1, "{note}");
    let report: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert!((report["expected_recall"].as_f64().unwrap() - 0.2702).abs() < 1e-4, "{out}");
    // No note is printed for a resemblance that the bands are made for.
    let report = bench.json("query i.twx q.jsonl --near .8 --verify signature");
    assert!((report["expected_recall"].as_f64().unwrap() - 0.9977).abs() < 1e-4, "{report}");
    assert!(bench.json("query i.twx q.jsonl")["expected_recall"].is_null());
    assert!(bench.json("query i.twx q.jsonl --near .8")["expected_recall"].is_null(), "all are found");
    says(&bench.refused("query i.twx q.jsonl --near .5"), &["i.twx", "0.8 or more", "--verify signature"]);
}

#[test]
fn build_reports_the_number_of_replaced_documents() {
    let bench = Bench::new();
    bench.write("one.jsonl", jsonl(&documents([("a", "one two three"), ("b", "four five six")])));
    bench.write("two.jsonl", jsonl(&documents([("b", "seven"), ("c", "eight"), ("c", "nine")])));
    assert_eq!(bench.json("build i.twx one.jsonl")["replaced"], 0);
    let out = bench.ok("build other.twx one.jsonl");
    assert!(!out.contains("replaced"), "{out}");
    let report = bench.json("build i.twx two.jsonl");
    assert_eq!(
        (&report["documents"], &report["added"], &report["replaced"]),
        (&3.into(), &3.into(), &2.into())
    );
    says(&bench.ok("build other.twx two.jsonl"), &["other.twx: 3 documents, 2 replaced, "]);
}

#[test]
fn verbs_accept_only_options_that_have_an_effect() {
    let bench = small();
    for option in ["--threads 2", "--memory 1G"] {
        let output = bench.command(&format!("stats i.twx {option}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}");
        says(&String::from_utf8_lossy(&output.stderr), &["required arguments", "--groups"]);
        bench.ok(&format!("stats i.twx --groups {option}"));
    }
    for line in ["get i.twx", "verify i.twx"] {
        for option in ["--threads 2", "--memory 1G"] {
            let output = bench.command(&format!("{line} {option}")).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line} {option}: {stderr}");
            says(&stderr, &["unexpected argument", option.split(' ').next().unwrap()]);
        }
    }
    for line in ["build i.twx in.jsonl", "query i.twx q.jsonl", "pairs i.twx", "dedup in.jsonl -o out"] {
        bench.ok(&format!("{line} --threads 2 --memory 1G --quiet"));
    }
}

#[test]
fn verify_accepts_an_undamaged_index() {
    let bench = small();
    let out = bench.ok("verify i.twx");
    assert!(out.starts_with("i.twx: sound, ") && out.lines().count() == 1, "{out}");
    assert_eq!(bench.ok("verify i.twx -q"), "");
    assert!(bench.ok("verify i.twx/000001.seg").starts_with("i.twx/000001.seg: sound, "));
    let report = bench.json("verify i.twx");
    has_fields(&report, &[("sound", "bool"), ("problems", "list")]);
    assert_eq!((&report["sound"], &report["problems"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn usage_errors_exit_with_2_and_print_nothing_on_standard_output() {
    let bench = small();
    for line in [
        "",
        "no-such-verb",
        "build",
        "build i.twx in.jsonl --near within:11",
        "build i.twx in.jsonl --words 0",
        "build new.twx",
        "build new.twx in.jsonl --ids ids.u64",
        "build new.twx in.jsonl --fingerprints f.u64",
        "query i.twx",
        "query i.twx q.jsonl --near within:11",
        "query i.twx q.jsonl --near within:3 --near .8",
        "query i.twx q.jsonl --near 1.5",
        "dedup in.jsonl",
        "dedup -o out",
        "dedup in.jsonl -o out --threshold 0",
        "dedup in.jsonl -o out --threshold 80",
        "dedup in.jsonl -o out --within 3",
        "pairs i.twx --within 3",
        "query i.twx q.jsonl --resembling .8",
        "dedup in.jsonl -o out --near equal --words 3",
        "dedup in.jsonl -o out --keep max:",
        "dedup in.jsonl -o out --words 17",
        "dedup in.jsonl -o out --threads 0",
        "dedup in.jsonl -o out --memory lots",
        "pairs i.twx --near within:11",
        "stats",
    ] {
        let output = bench.command(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(output.stdout.is_empty() && !stderr.is_empty(), "{line}");
    }
    assert_eq!(bench.names("."), ["i.twx", "in.jsonl", "q.jsonl"]);
    for line in ["--help", "--version", "dedup --help", "build --help"] {
        assert!(!bench.ok(line).is_empty());
    }
}

#[test]
fn closed_standard_output_is_not_an_error_for_any_verb() {
    let bench = small();
    bench.write("q.u64", raw(&(0..3000).collect::<Vec<u64>>()));
    bench.ok("build h.twx --fingerprints q.u64 -q");
    for line in [
        "dedup in.jsonl -o out",
        "dedup in.jsonl -o out2 --json",
        "build i2.twx in.jsonl",
        "build i3.twx in.jsonl --json",
        "query i.twx q.jsonl",
        "query i.twx q.jsonl --count",
        "query i.twx q.jsonl --json",
        "query h.twx --fingerprints q.u64",
        "pairs h.twx",
        "pairs i.twx --count",
        "stats i.twx",
        "stats i.twx --json",
        "verify i.twx",
        "verify i.twx --json",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(TWINDEX)
            .args(line.split_whitespace())
            .current_dir(bench.root())
            .stdout(Stdio::from(writer))
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{line}");
    }
    // If there is damage, the exit code reports it even if no output can be written.
    let mut damaged = std::fs::read(bench.path("i.twx/000001.seg")).unwrap();
    damaged[5000] ^= 1;
    bench.write("i.twx/000001.seg", damaged);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(TWINDEX);
    command.args(["verify", "i.twx"]).current_dir(bench.root()).stdout(Stdio::from(writer));
    assert_eq!(command.status().unwrap().code(), Some(1));
}
