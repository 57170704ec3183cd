//! A cluster runs stages over files. A stage may be killed, run again, or run twice at the same time, and all stages
//! together must give the results of one process, byte for byte. These tests kill workers at many points of each stage,
//! by time and by the amount of data written.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dedup::tokens;
use crate::support::{Bench, Document, TWINDEX, corpus, jsonl, raw, says};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/stages");

/// Writes the parts of a corpus, `parts/0.jsonl` and up. Some keys occur in two parts.
fn parts(bench: &Bench, seed: u64, count: usize, parts: usize) -> Vec<Document> {
    let mut documents = corpus(seed, count);
    for place in 0..count / 20 {
        let text = documents[place * 3].1.clone();
        let key = documents[count - 1 - place].0.clone();
        documents.push((key, text));
    }
    for (number, part) in documents.chunks(documents.len().div_ceil(parts)).enumerate() {
        bench.write(&format!("parts/{number}.jsonl"), jsonl(part));
    }
    bench.write("all.jsonl", jsonl(&documents));
    documents
}

/// Returns the contents of the segments. Their names, and the id of the index, may differ between equal indexes.
fn segments(index: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(index).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "seg") {
            found.push(fs::read(path).unwrap());
        }
    }
    found.sort();
    found
}

/// Returns the results of a stage under their final names: files with their bytes, and indexes with their segments.
fn results(folder: &Path) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.join("CURRENT").exists() {
            found.insert(name, segments(&path));
        } else if path.is_dir() {
            for (inner, bytes) in results(&path) {
                found.insert(format!("{name}/{inner}"), bytes);
            }
        } else {
            found.insert(name, vec![fs::read(&path).unwrap()]);
        }
    }
    found
}

/// Returns the number of temporary stage files below a folder.
fn half_done(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        count += usize::from(name.starts_with(".twindex-stage-"));
        if path.is_dir() {
            count += half_done(&path);
        }
    }
    count
}

fn stage(bench: &Bench, line: &str) -> Command {
    let mut command = Command::new(TWINDEX);
    command.current_dir(bench.root()).args(line.split_whitespace());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Kills the stage `line`, whose results are written to `out`, at many points: after fractions of its running time, and
/// when it has written more than a limit. Every file with a final name must then be complete, and the next run must give
/// the same results as an uninterrupted run.
fn survives_kills(bench: &Bench, line: &str, out: &str, times: u32) {
    let folder = bench.path(out);
    let fresh = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
    };
    fresh();
    let began = Instant::now();
    assert!(stage(bench, line).status().unwrap().success(), "{line}");
    let mut whole = began.elapsed();
    let wanted = results(&folder);
    assert!(!wanted.is_empty(), "{line}");
    let is_index = wanted.len() == 1 && folder.join(wanted.keys().next().unwrap()).is_dir();
    let largest = wanted.values().flatten().map(Vec::len).max().unwrap();

    let check = |point: &str| {
        for (name, bytes) in results(&folder) {
            // An index gets its name before it has documents. It must have all documents of a commit or none.
            if !is_index {
                assert_eq!(Some(&bytes), wanted.get(&name), "{line}, killed {point}: {name}");
            }
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.join("CURRENT").exists() {
                let verify = stage(bench, &format!("verify {}", path.display())).status().unwrap();
                assert!(verify.success(), "{line}, killed {point}");
            }
        }
        // `merge` does not replace an existing index. If the index exists, it must be complete.
        let is_done = line.starts_with("merge ") && results(&folder) == wanted;
        let again = stage(bench, line).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert_eq!(again.status.success(), !is_done, "{line}, again, killed {point}: {said}");
        assert_eq!(results(&folder), wanted, "{line}, again, killed {point}");
        assert_eq!(half_done(bench.root()), 0, "{line}, again, killed {point}");
    };
    let mut killed = 0;
    for time in 0..times {
        fresh();
        let mut child = stage(bench, line).spawn().unwrap();
        let after = whole.mul_f64(f64::from(time) / f64::from(times));
        std::thread::sleep(after);
        child.kill().unwrap(); // SIGKILL; no effect if the process has ended
        if child.wait().unwrap().success() {
            whole = after; // the machine is less busy than in the first run
        } else {
            killed += 1;
        }
        check(&format!("after {after:?}"));
    }
    assert!(killed > times / 4, "{line}: {killed} of {times} kills came in time");
    // With a file size limit, the system kills the process in the middle of a write.
    for share in 0..6 {
        fresh();
        let blocks = largest * share / 5 / 512;
        let limited = format!("ulimit -c 0; ulimit -f {blocks}; exec {TWINDEX} {line}");
        let status = Command::new("bash")
            .args(["-c", &limited])
            .current_dir(bench.root())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(share > 0 || !status.success(), "{line}: nothing may be written, and it was done");
        check(&format!("at {blocks} blocks of {largest} bytes"));
    }
    fresh();
}

#[test]
fn stages_script_gives_the_results_of_one_process() {
    let bench = Bench::new();
    parts(&bench, 31, 900, 1);
    let run = || {
        let output = Command::new("bash")
            .args([SCRIPT, "all.jsonl", "work"])
            .current_dir(bench.root())
            .env("TWINDEX", TWINDEX)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run();
    assert!(first.contains("equal, byte for byte"), "{first}");
    let clusters = bench.read("work/clusters.tsv");
    assert!(clusters.lines().count() > 200, "{}", clusters.lines().count());
    assert!(bench.read("work/hits.tsv").lines().count() > 200);
    assert!(bench.names("work/pairs").len() == 6 && bench.names("work/forests").len() == 3);
    // A second run over existing results changes nothing and adds nothing.
    let names = bench.contents("work").into_keys().collect::<Vec<_>>();
    assert!(run().contains("equal, byte for byte"));
    assert_eq!(bench.contents("work").into_keys().collect::<Vec<_>>(), names);
    assert_eq!(bench.read("work/clusters.tsv"), clusters);
}

#[test]
fn killed_stage_leaves_no_partial_file_and_reruns_identically() {
    let bench = Bench::new();
    parts(&bench, 32, 1500, 3);
    let all = "parts/0.jsonl parts/1.jsonl parts/2.jsonl";
    let small = "--commit-bytes 64K";
    bench.ok(&format!("build whole.twx {all} -q"));
    for part in 0..3 {
        bench.ok(&format!("build shard-{part}.twx {all} --shard {}/3 -q", part + 1));
    }
    bench.ok("pairs whole.twx --near within:10 --into pairs");
    survives_kills(&bench, "build out/0.sketches parts/0.jsonl --force --as sketches", "out", 8);
    survives_kills(&bench, &format!("build out/i.twx {all} --shard 2/3 --resume {small}"), "out", 12);
    survives_kills(&bench, "merge shard-0.twx shard-1.twx shard-2.twx -o out/merged.twx", "out", 12);
    survives_kills(&bench, "pairs whole.twx --near within:10 --into out", "out", 8);
    survives_kills(&bench, "query whole.twx parts/1.jsonl --near within:10 --into out", "out", 8);
    survives_kills(&bench, "groups --as forest pairs --into out", "out", 6);
    survives_kills(
        &bench,
        "groups --as clusters whole.twx --near within:10 -o out/clusters.tsv --force",
        "out",
        6,
    );
}

#[test]
fn sketching_into_a_folder_resumes_after_a_kill_and_skips_finished_files() {
    let bench = Bench::new();
    parts(&bench, 33, 1500, 4);
    let all = "parts/0.jsonl parts/1.jsonl parts/2.jsonl parts/3.jsonl";
    survives_kills(&bench, &format!("build out {all} --as folder"), "out", 12);
    let names = bench.ok(&format!("build out {all} -q --as folder"));
    assert_eq!(names.lines().count(), 4);
    let again = bench.json(&format!("build out {all} --as folder"));
    assert_eq!((&again["resumed"], &again["documents"]), (&4.into(), &0.into()), "{again}");
    assert_eq!(again["files"].as_array().unwrap().len(), 4);
    // A changed file, and one whose result is missing, are processed again; the others are not.
    bench.write("parts/1.jsonl", jsonl(&corpus(99, 10)));
    fs::remove_file(bench.path(names.lines().nth(2).unwrap())).unwrap();
    let mended = bench.json(&format!("build out {all} --as folder"));
    assert_eq!(mended["resumed"], 2, "{mended}");
    assert_ne!(mended["files"][1], names.lines().nth(1).unwrap());
    assert_eq!(mended["files"][2], names.lines().nth(2).unwrap(), "by its content it has the name it had");
    // Other parameters give other results.
    assert_eq!(bench.json(&format!("build out {all} --words 3 --as folder"))["resumed"], 0);
}

#[test]
fn resumed_build_skips_committed_inputs() {
    let bench = Bench::new();
    parts(&bench, 34, 4000, 8);
    let all: Vec<String> = (0..8).map(|part| format!("parts/{part}.jsonl")).collect();
    let line = format!("build i.twx {} --resume --commit-bytes 64K", all.join(" "));
    bench.ok("build whole.twx all.jsonl -q");
    let wanted = segments(&bench.path("whole.twx"));
    let began = Instant::now();
    bench.ok(&line);
    let whole = began.elapsed();
    assert_eq!(segments(&bench.path("i.twx")), wanted);
    let again = bench.json(&line);
    assert_eq!((&again["resumed"], &again["added"]), (&8.into(), &0.into()), "{again}");
    assert_eq!(segments(&bench.path("i.twx")), wanted);

    // Kills the run at different times, until the process is killed once between the first commit and the last.
    let mut passed_over = Vec::new();
    for round in (1..40).map(|round| f64::from(round % 10) / 10.0) {
        if bench.path("i.twx").exists() {
            fs::remove_dir_all(bench.path("i.twx")).unwrap();
        }
        let mut child = stage(&bench, &line).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(round));
        child.kill().unwrap();
        child.wait().unwrap();
        passed_over.push(bench.json(&line)["resumed"].as_u64().unwrap());
        assert_eq!(segments(&bench.path("i.twx")), wanted);
        if passed_over.last().is_some_and(|passed| (1..8).contains(passed)) {
            break;
        }
    }
    assert!(passed_over.iter().any(|passed| (1..8).contains(passed)), "{passed_over:?}");
    bench.ok("verify i.twx -q");

    // If a document is repeated, the last file's version is used, even if the files were added on different days.
    fs::remove_dir_all(bench.path("i.twx")).unwrap();
    bench.ok(&format!("build i.twx {} --resume -q", all[..5].join(" ")));
    let more = bench.json(&format!("build i.twx {} --resume", all.join(" ")));
    assert_eq!(more["resumed"], 5, "{more}");
    assert_eq!(segments(&bench.path("i.twx")), wanted);
    // Files of sketches are identified by content, regardless of their names and times.
    let sketch = |to: &str| bench.ok(&format!("build {to} parts/0.jsonl --force -q --as sketches"));
    sketch("a.sketches");
    assert_eq!(bench.json("build s.twx a.sketches --resume")["resumed"], 0);
    sketch("a.sketches");
    sketch("b.sketches");
    let again = bench.json("build s.twx a.sketches b.sketches --resume");
    assert_eq!((&again["resumed"], &again["added"]), (&2.into(), &0.into()), "{again}");
    let message = bench.command("build i.twx - --resume").write_stdin("").output().unwrap();
    assert_eq!(message.status.code(), Some(2));
    says(&String::from_utf8_lossy(&message.stderr), &["standard input cannot be known again"]);
}

#[test]
fn merged_shards_equal_the_index_of_all_documents() {
    let bench = Bench::new();
    let documents = parts(&bench, 35, 600, 3);
    let all = "parts/0.jsonl parts/1.jsonl parts/2.jsonl";
    let sketches = bench.ok(&format!("build sketches {all} -q --as folder")).replace('\n', " ");
    let mut random = crate::support::Random(7);
    let fingerprints: Vec<u64> = (0..5000).map(|_| random.next()).collect();
    bench.write("f.u64", raw(&fingerprints));
    for (name, inputs) in [("texts", all), ("sketches", &*sketches), ("raw", "--fingerprints f.u64")] {
        bench.ok(&format!("build {name}.twx {inputs} -q"));
        let mut added = 0;
        for part in 1..=4 {
            let report = bench.json(&format!("build {name}-{part}.twx {inputs} --shard {part}/4"));
            added += report["added"].as_u64().unwrap();
        }
        let whole = if name == "raw" { fingerprints.len() } else { documents.len() };
        assert_eq!(added, whole as u64, "{name}");
        let shards: Vec<String> = (1..=4).map(|part| format!("{name}-{part}.twx")).collect();
        bench.ok(&format!("merge {} -o {name}-merged.twx -q", shards.join(" ")));
        let (merged, wanted) = (format!("{name}-merged.twx"), format!("{name}.twx"));
        assert_eq!(segments(&bench.path(&merged)), segments(&bench.path(&wanted)), "{name}");
    }
    assert_eq!(segments(&bench.path("texts.twx")), segments(&bench.path("sketches.twx")));

    // Hamming search on raw fingerprints: every shard answers all queries.
    let queries: Vec<u64> = fingerprints.iter().step_by(9).map(|f| f ^ 1 << (f % 64)).collect();
    bench.write("q.u64", raw(&queries));
    let ask = |index: &str, more: &str| -> Vec<String> {
        let lines = bench.ok(&format!("query {index} --fingerprints q.u64 --near within:4{more}"));
        lines.lines().map(str::to_owned).collect()
    };
    let mut wanted = ask("raw.twx", "");
    assert!(wanted.len() >= queries.len());
    wanted.sort();
    let mut of_shards: Vec<String> = (1..=4).flat_map(|part| ask(&format!("raw-{part}.twx"), "")).collect();
    of_shards.sort();
    assert_eq!(of_shards, wanted);
    let mut of_parts: Vec<String> =
        (1..=4).flat_map(|part| ask("raw.twx", &format!(" --shard {part}/4"))).collect();
    of_parts.sort();
    assert_eq!(of_parts, wanted);
}

#[test]
fn shards_of_pairs_together_have_each_pair_once() {
    let bench = Bench::new();
    parts(&bench, 36, 500, 2);
    bench.ok("build a.twx parts/0.jsonl -q");
    bench.ok("build b.twx parts/1.jsonl -q");
    for options in ["--near within:5", "--near 0.7", "--near within:5 --with b.twx"] {
        let mut all: Vec<String> = Vec::new();
        for part in 1..=3 {
            let lines = bench.ok(&format!("pairs a.twx {options} --shard {part}/3"));
            assert!(!lines.is_empty(), "{options} {part}");
            all.extend(lines.lines().map(str::to_owned));
        }
        all.sort();
        let whole = bench.ok(&format!("pairs a.twx {options}"));
        let mut wanted: Vec<&str> = whole.lines().collect();
        wanted.sort_unstable();
        assert_eq!(all, wanted, "{options}");
    }
}

#[test]
fn two_workers_on_the_same_part_write_one_file() {
    let bench = Bench::new();
    parts(&bench, 37, 800, 1);
    bench.ok("build a.twx all.jsonl -q");
    let children: Vec<_> =
        (0..4).map(|_| stage(&bench, "pairs a.twx --near within:6 --into pairs").spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let names = bench.names("pairs");
    assert_eq!(names.len(), 1, "{names:?}");
    let hash = names[0].strip_suffix(".pairs");
    assert!(hash.is_some_and(|hash| hash.len() == 32), "{names:?}");
}

#[test]
fn mismatched_and_truncated_pair_files_are_refused() {
    let bench = Bench::new();
    parts(&bench, 38, 200, 1);
    bench.ok("build a.twx all.jsonl -q");
    bench.ok("build narrow.twx all.jsonl --words 3 -q");
    bench.ok("pairs a.twx --near within:3 -o a.pairs -q");
    bench.ok("pairs a.twx --near within:4 -o wide.pairs -q");
    bench.ok("pairs narrow.twx --near within:3 -o narrow.pairs -q");
    let table = bench.ok("pairs a.twx --near within:3");
    bench.write("a.tsv", &table);
    says(
        &bench.refused("groups --as forest a.pairs wide.pairs"),
        &["wide.pairs", "a.pairs", "pairs: expected within 3, found within 4", "the same options"],
    );
    says(
        &bench.refused("groups --as forest a.pairs narrow.pairs"),
        &["narrow.pairs", "width: expected 5, found 3"],
    );
    says(
        &bench.refused("groups --as forest a.pairs a.tsv"),
        &["a.tsv", "parameters: expected those of a.pairs, found none"],
    );
    says(&bench.refused("merge a.twx narrow.twx -o m.twx"), &["width", "5", "3"]);
    bench.ok("groups --as forest a.pairs -o a.forest -q");
    says(
        &bench.refused("groups --as clusters a.forest --scores wide.pairs"),
        &["wide.pairs", "pairs: expected within 3, found within 4"],
    );
    let whole = fs::read(bench.path("a.pairs")).unwrap();
    bench.write("cut.pairs", &whole[..whole.len() - 30]);
    says(&bench.refused("groups --as forest cut.pairs"), &["cut.pairs, line ", "was cut off"]);
    // A table without a header gives the same forest, except for the header.
    let edges =
        |text: String| text.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    assert_eq!(edges(bench.ok("groups --as forest a.tsv")), edges(bench.read("a.forest")));
    for (line, parts) in [
        ("groups --as forest missing.pairs", &["missing.pairs", "cannot open"][..]),
        ("groups --as clusters missing.twx", &["missing.twx", "cannot open"]),
        ("groups --as clusters missing.twx --near within:3", &["missing.twx"]),
        ("groups --as forest a.pairs -o a.forest", &["a.forest", "already exists", "--force"]),
        ("groups --as forest a.pairs -o all.jsonl --force", &["all.jsonl", "is not a file of a forest"]),
    ] {
        says(&bench.refused(line), parts);
    }
    // Refuses scores of pairs that are not in the forest.
    bench.ok("pairs a.twx --near within:10 -o more.pairs -q");
    bench.write("more.tsv", edges(bench.read("more.pairs")) + "\n");
    bench.write("f.tsv", edges(bench.read("a.forest")).replacen("root\tkey\n", "", 1) + "\n");
    says(
        &bench.refused("groups --as clusters f.tsv --scores more.tsv"),
        &["more.tsv, line ", "make the forest of all pairs"],
    );
    for line in ["groups --as clusters a.forest --keep first", "groups --as clusters a.forest --min-size 1"] {
        assert_eq!(bench.command(line).output().unwrap().status.code(), Some(2), "{line}");
    }
}

/// Returns clusters found by a graph search over the pairs, as a table. `keep` selects the kept document by its position
/// in the input or the number of its tokens.
fn clusters_of(documents: &[Document], pairs: &str, keep: &str) -> Vec<String> {
    let mut near: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for pair in pairs.lines() {
        let fields: Vec<&str> = pair.split('\t').collect();
        near.entry(fields[0]).or_default().insert(fields[1], fields[2]);
        near.entry(fields[1]).or_default().insert(fields[0], fields[2]);
    }
    let place: BTreeMap<&str, (usize, usize)> = documents
        .iter()
        .enumerate()
        .map(|(place, (key, text))| (key.as_str(), (place, tokens(text))))
        .collect();
    let (mut seen, mut lines, mut number) = (std::collections::BTreeSet::new(), Vec::new(), 0);
    for &root in near.keys() {
        let mut members = std::collections::BTreeSet::new();
        let mut waiting = vec![root];
        while let Some(key) = waiting.pop() {
            if seen.insert(key) {
                members.insert(key);
                waiting.extend(near[key].keys());
            }
        }
        if members.is_empty() {
            continue;
        }
        number += 1;
        let kept = match keep {
            "first" => *members.iter().min_by_key(|&&key| place[key].0).unwrap(),
            "longest" => {
                *members.iter().min_by_key(|&&key| (std::cmp::Reverse(place[key].1), place[key].0)).unwrap()
            }
            "key-hash" => {
                *members.iter().min_by_key(|&&key| twindex::Key::from(key).priority_hash()).unwrap()
            }
            _ => root,
        };
        for key in members {
            let score = if key == kept { "=" } else { near[key].get(kept).copied().unwrap_or("-") };
            lines.push(format!("{key}\t{number}\t{kept}\t{score}"));
        }
    }
    lines
}

#[test]
fn clusters_equal_a_graph_search_for_every_keep_rule() {
    let bench = Bench::new();
    let documents = corpus(39, 900);
    bench.write("all.jsonl", jsonl(&documents));
    bench.ok("build a.twx all.jsonl -q");
    for radius in ["--near within:8", "--near 0.75"] {
        let found = bench.ok(&format!("pairs a.twx {radius}"));
        // The last two digits of an estimate are affected by rounding, so the printed digits are compared.
        for keep in ["smallest-key", "key-hash", "first", "longest"] {
            let texts = if keep.contains("key") { "" } else { " --texts all.jsonl" };
            let wanted = clusters_of(&documents, &found, keep);
            let line = format!("groups --as clusters a.twx {radius} --keep {keep}{texts} -o c.tsv --force");
            let report = bench.json(&line);
            assert_eq!(bench.rows("c.tsv", "key\tcluster\tkept\tscore"), wanted, "{radius} {keep}");
            let chained = wanted.iter().filter(|line| line.ends_with("\t-")).count();
            assert_eq!(report["chained"], chained, "{radius} {keep}");
            assert_eq!(report["documents"], wanted.len());
            // Scratch files instead of memory give the same result.
            bench.json(&format!("{line} --memory 64K"));
            assert_eq!(bench.rows("c.tsv", "key\tcluster\tkept\tscore"), wanted, "{radius} {keep} in 64 KiB");
        }
    }
    let some = clusters_of(&documents, &bench.ok("pairs a.twx --near within:8"), "first");
    assert!(some.iter().any(|line| line.ends_with("\t-")), "the corpus has chains");
    let all = bench.ok("groups --as clusters a.twx --near within:8 --min-size 1 -q");
    assert_eq!(all.lines().count(), 1 + documents.len());
    bench.write("few.jsonl", jsonl(&documents[..450]));
    let missing = bench.refused("groups --as clusters a.twx --near within:8 --keep first --texts few.jsonl");
    says(&missing, &["--texts", "expected every document of the clusters"]);
}

#[test]
fn clusters_use_the_last_document_of_a_repeated_key() {
    let bench = Bench::new();
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let documents: Vec<Document> = [("a", " and the longest"), ("b", ""), ("c", " fifteen"), ("a", ".")]
        .map(|(key, more)| (key.to_owned(), format!("{text}{more}")))
        .into();
    bench.write("all.jsonl", jsonl(&documents));
    assert_eq!(bench.json("build a.twx all.jsonl")["replaced"], 1);
    let found = "a\tb\t0\na\tc\t0\nb\tc\t0\n";
    for (keep, kept) in [("first", "b"), ("longest", "c"), ("smallest-key", "a")] {
        let texts = if keep == "smallest-key" { "" } else { " --texts all.jsonl" };
        let line = format!("groups --as clusters a.twx --near 0.3 --keep {keep}{texts} -o c.tsv --force -q");
        bench.ok(&line);
        let rows = bench.rows("c.tsv", "key\tcluster\tkept\tscore");
        let kept_of: Vec<&str> = rows.iter().map(|row| row.split('\t').nth(2).unwrap()).collect();
        assert_eq!(kept_of, [kept; 3], "{keep}");
        let wanted = clusters_of(&documents, found, keep);
        let kept_there: Vec<&str> = wanted.iter().map(|row| row.split('\t').nth(2).unwrap()).collect();
        assert_eq!(kept_of, kept_there, "{keep}");
    }
}

#[test]
fn clusters_and_dedup_keep_the_same_longest_document() {
    let bench = Bench::new();
    let text = "ten old owls open one oak door over our oven";
    // The second text has more tokens, the first more bytes, and the third more characters.
    let all = [
        ("bytes", format!("{text} extraordinarily-incomprehensible-circumnavigation")),
        ("tokens", format!("{text} a b c d e")),
        ("characters", format!("{text} {}", "-".repeat(200))),
    ];
    let lines: Vec<Document> = all.map(|(key, text)| (key.to_owned(), text)).into();
    bench.write("all.jsonl", jsonl(&lines));
    bench.write("few.txt", "a\nb\nc\nd\ne\n");
    for options in ["", "--tokens characters", "--words 1 --stop-words @few.txt"] {
        let dedup = format!("dedup all.jsonl -o out --force -q --threshold 0.3 --keep longest {options}");
        bench.ok(&dedup);
        let kept = bench.read("out/kept.jsonl");
        let key = kept.split('"').nth(3).unwrap();
        bench.ok(&format!("build i.twx all.jsonl -q --near 0.3 {options}"));
        bench.ok("pairs i.twx --near 0.3 -o found.pairs -q");
        for input in ["i.twx --near 0.3", "found.pairs"] {
            let found =
                bench.ok(&format!("groups --as clusters {input} --keep longest --texts all.jsonl -q"));
            assert_eq!(found.lines().count(), 4, "{options}: {found}");
            assert!(
                found.lines().skip(1).all(|line| line.split('\t').nth(2) == Some(key)),
                "{options}: {key}: {found}"
            );
        }
        for path in ["i.twx", "found.pairs"] {
            let path = bench.path(path);
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
    }
    // A table without parameters has no tokens of its own: they are words.
    bench.write("table.tsv", "bytes\ttokens\ntokens\tcharacters\n");
    let found = bench.ok("groups --as clusters table.tsv --keep longest --texts all.jsonl -q");
    assert!(found.lines().skip(1).all(|line| line.split('\t').nth(2) == Some("tokens")), "{found}");
}

#[test]
fn forest_larger_than_memory_is_unchanged_and_uses_little_memory() {
    let bench = Bench::new();
    let mut random = crate::support::Random(40);
    let count = 400_000_usize;
    let name = |number: usize| format!("https://example.org/a/long/path/to/make/keys/large/{number:08}");
    let mut table = String::new();
    for number in 0..count {
        let other = number.saturating_sub(1 + random.below(3) * 7);
        let other = if number % 10 < 6 { other } else { number };
        writeln!(table, "{}\t{}\t1", name(number), name(other)).unwrap();
    }
    bench.write("p.tsv", &table);
    let roomy = bench.json("groups --as forest p.tsv -o roomy.forest --memory 1G");
    let tight = bench.json("groups --as forest p.tsv -o tight.forest --memory 8M");
    assert_eq!((&roomy["spilled"], &tight["spilled"]), (&false.into(), &true.into()));
    assert_eq!(bench.read("roomy.forest"), bench.read("tight.forest"));
    let edges = tight["edges"].as_u64().unwrap();
    assert!(edges > 100_000 && edges < count as u64, "{tight}");
    let peak = tight["peak_rss_bytes"].as_u64().unwrap();
    println!("peak of 8M: {peak}, of 1G: {}", roomy["peak_rss_bytes"]);
    // The program itself accounts for a part of this memory.
    assert!(peak < 48 << 20, "{peak}");
}

#[test]
fn interrupted_stage_removes_its_temporary_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("out")).unwrap();
    let fifo = bench.path("slow.tsv");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut child =
        stage(&bench, "build out/s.sketches slow.tsv --format jsonl --as sketches").spawn().unwrap();
    let began = Instant::now();
    let held = fs::File::options().write(true).open(&fifo).unwrap(); // it has opened the file and waits for data
    while half_done(&bench.path("out")) == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "no temporary file came");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    drop(held);
    assert_eq!(bench.names("out"), [""; 0]);
}
