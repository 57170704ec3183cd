//! `dedup --index none` must give the same results as a run with an index, except for the index and the page about it.

use std::collections::BTreeMap;

use crate::support::{Bench, Document, corpus, documents, jsonl, says};

/// Returns the files of a results folder by name, without the index, its page, and the options of the run.
fn results(bench: &Bench, out: &str) -> BTreeMap<String, Vec<u8>> {
    let files = bench.contents(out).into_iter().filter(|(path, _)| path.is_file());
    files
        .filter_map(|(path, bytes)| {
            let name = path.strip_prefix(bench.path(out)).unwrap().to_string_lossy().into_owned();
            let is_left_out = name.starts_with("index") || ["report.html", "run.json"].contains(&&*name);
            (!is_left_out).then_some((name, bytes))
        })
        .collect()
}

/// Checks that the command reports an error about the options. Returns its message.
fn wrong_use(bench: &Bench, line: &str) -> String {
    let output = bench.command(line).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    message
}

#[test]
fn results_are_the_same_for_every_choice_of_indexed_documents() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(23, 500)));
    bench.ok("idf in.jsonl -o table.idf -q");
    for options in [
        "",
        "--keep longest --memory 1M",
        "--keep smallest-key --threshold 0.5",
        "--also annotated --compress gzip",
        "--near containment:0.8",
        "--weights tf",
        "--weights idf --idf table.idf",
        "--without-boilerplate 30:4",
        "--words 3",
        "--near within:6",
        "--near within:3 --idf table.idf",
    ] {
        let mut kept = BTreeMap::new();
        for (index, threads) in [("kept", 2), ("all", 2), ("none", 2), ("none", 1)] {
            let line =
                format!("dedup in.jsonl -o {index} --index {index} --force --threads {threads} {options}");
            let output = bench.command(&line).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let summary = String::from_utf8(output.stdout).unwrap();
            let found = results(&bench, index);
            if index == "kept" {
                kept = found;
                continue;
            }
            assert!(found == kept, "{line}: {:?} and {:?}", found.keys(), kept.keys());
            let writes_index = index == "all";
            for name in ["index", "report.html"] {
                assert_eq!(bench.path(index).join(name).exists(), writes_index, "{line}: {name}");
            }
            assert_eq!(summary.contains(", index, report.html"), writes_index, "{line}: {summary}");
        }
        let removed = bench.json(&format!("dedup in.jsonl -o none --index none --force -q {options}"));
        assert!(removed["removed"].as_u64() > Some(50), "{options}: {removed}");
    }
    says(
        &bench.refused("query none/index in.jsonl"),
        &["none/index", "not a twindex index", "no such directory"],
    );
}

#[test]
fn history_without_an_index_drops_the_same_documents_as_a_history_with_one() {
    let bench = Bench::new();
    let documents: Vec<Document> = corpus(29, 700);
    let (old, new) = documents.split_at(400);
    bench.write("older.jsonl", jsonl(&old[..200]));
    bench.write("old.jsonl", jsonl(&old[200..]));
    bench.write("new.jsonl", jsonl(new));
    for options in ["", "--near containment:0.8", "--weights tf --words 3"] {
        for (input, out, index) in
            [("old", "bare", "none"), ("old", "indexed", "kept"), ("older", "before", "kept")]
        {
            bench.ok(&format!("dedup {input}.jsonl -o {out} --index {index} --force -q {options}"));
        }
        assert!(!bench.path("bare/index").exists());
        for more in ["", " --against before"] {
            let run = |out: &str, against: &str, index: &str| {
                bench.ok(&format!(
                    "dedup new.jsonl -o {out} --index {index} --force -q --against {against}{more} {options}"
                ));
                results(&bench, out)
            };
            let (mut expected, mut found) = (run("a", "indexed", "kept"), run("b", "bare", "none"));
            // A document near several earlier ones may be listed with another one of them if several histories are named.
            if !more.is_empty() {
                let keys = |files: &mut BTreeMap<String, Vec<u8>>| -> Vec<String> {
                    let table = String::from_utf8(files.remove("against.tsv").unwrap()).unwrap();
                    table.lines().map(|row| row.split('\t').next().unwrap().to_owned()).collect()
                };
                assert_eq!(keys(&mut expected), keys(&mut found), "{options}{more}");
            }
            assert!(found == expected, "{options}{more}: {:?} {:?}", found.keys(), expected.keys());
        }
        let dropped = bench.read("b/against.tsv").lines().count();
        assert!(dropped > 50, "{options}: {dropped}");
    }
    says(
        &wrong_use(&bench, "dedup new.jsonl -o x --against bare --near within:3"),
        &["--against bare", "has no index", "--index none", "distances cannot be compared"],
    );
}

#[test]
fn wordless_copies_of_a_history_are_dropped_for_every_choice_of_indexed_documents() {
    let bench = Bench::new();
    bench.write("old.jsonl", jsonl(&documents([("a", "?!"), ("b", "one two three")])));
    bench.write("new.jsonl", jsonl(&documents([("c", "?!"), ("d", "!?"), ("e", "one two three")])));
    bench.ok("dedup old.jsonl -o old -q");
    for options in ["", "--index all", "--index none"] {
        bench.ok(&format!("dedup new.jsonl -o new --force -q --against old {options}"));
        let rows = bench.rows("new/against.tsv", "key\tother\tresemblance\tintersection\tunion");
        assert_eq!(rows, ["c\ta\t1.000000\t0\t0", "e\tb\t1.000000\t1\t1"], "{options}");
        assert_eq!(bench.read("new/kept.jsonl").lines().count(), 1, "{options}");
    }
}

#[test]
fn why_explains_a_run_without_an_index() {
    let bench = Bench::new();
    let text: Vec<String> = (0..400).map(|word| format!("w{word}")).collect();
    let (text, menu) = (text.join(" "), "home about contact imprint");
    let edited = text.replace("w200 ", "CHANGED ");
    let mut all = documents([("a", &text), ("b", &edited)]);
    all.extend((0..9).map(|number| (format!("c{number}"), format!("{menu} x{number} y{number} z{number}"))));
    bench.write("in.jsonl", jsonl(&all));
    bench.ok("idf in.jsonl -o table.idf -q");
    let spans = "--without-boilerplate 5:4";
    for options in [
        "",
        "--near containment:0.8",
        "--near within:10",
        "--near within:10 --idf table.idf",
        "--weights idf --idf table.idf",
        &format!("{spans} --weights idf --idf table.idf"),
        spans,
    ] {
        bench.ok(&format!("dedup in.jsonl -o out --index none --force -q {options}"));
        let why = bench.json("why out b");
        assert_eq!((&why["kept"], &why["agrees"]), (&"a".into(), &true.into()), "{options}: {why}");
    }
    // A document that a history without an index covers is explained by the texts of the history.
    bench.write("new.jsonl", jsonl(&documents([("n", &edited)])));
    bench.ok("dedup new.jsonl -o new --against out --index none -q --without-boilerplate 5:4");
    let why = bench.json("why new n");
    assert_eq!((&why["fate"], &why["kept"], &why["agrees"]), (&"dropped".into(), &"a".into(), &true.into()));
    // Without an index, the table of weights is read from the file that the run read.
    bench.ok("dedup in.jsonl -o out --index none --force -q --weights idf --idf table.idf");
    std::fs::rename(bench.path("table.idf"), bench.path("moved.idf")).unwrap();
    says(&bench.refused("why out b"), &["out/run.json", "table.idf", "no index"]);
}
