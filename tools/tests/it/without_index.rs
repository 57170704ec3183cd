//! `dedup --index` changes no result: the other files are the same, byte for byte, and so are those of later runs with
//! `--against`, which query the index or read the kept texts.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Bench, Document, corpus, documents, jsonl, says};

/// Returns the files of a results folder by name, without the index and the options of the run.
fn results(bench: &Bench, out: &str) -> BTreeMap<String, Vec<u8>> {
    let files = bench.contents(out).into_iter().filter(|(path, _)| path.is_file());
    files
        .filter_map(|(path, bytes)| {
            let name = path.strip_prefix(bench.path(out)).unwrap().to_string_lossy().into_owned();
            // The page names the history.
            let bytes = if name == "report.html" { without_names(&bytes) } else { bytes };
            (!name.starts_with("index") && name != "run.json").then_some((name, bytes))
        })
        .collect()
}

/// Returns a page without the names of histories.
fn without_names(page: &[u8]) -> Vec<u8> {
    let names = ["bare", "indexed", "all"];
    let page = String::from_utf8(page.to_vec()).unwrap();
    let without = |page: String, name| {
        ["", "1", "2"].iter().fold(page, |page, day| page.replace(&format!("--against {name}{day}"), ""))
    };
    let page = names.iter().fold(page, without);
    page.split_once("<h2 id=\"settings\">").map_or(page.clone(), |(page, _)| page.to_owned()).into_bytes()
}

#[test]
fn default_run_writes_no_index_but_the_page_about_the_run() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(23, 200)));
    for (options, section) in [
        ("", "if its resemblance to a kept document is 0.8"),
        ("--near containment:0.8", "has the share 0.8 of its shingles or more"),
        ("--near within:3", "in 3 bits or fewer"),
        ("--near equal", "text equals that of a kept"),
    ] {
        let said = bench.ok(&format!("dedup in.jsonl -o out --force {options}"));
        let names = ["clusters.tsv", "kept.jsonl", "pairs.tsv", "report.html", "run.json"];
        assert_eq!(bench.names("out"), names, "{options}");
        says(&said, &["out: pairs.tsv, clusters.tsv, kept.jsonl, report.html\n"]);
        let page = bench.read("out/report.html");
        says(&page, &["documents removed", "id=\"found\"", "Largest clusters", "<summary>Details", section]);
    }
    says(
        &bench.refused("query out/index in.jsonl"),
        &["out/index", "not a twindex index", "no such directory"],
    );
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
            let line = format!("dedup in.jsonl -o out --index {index} --force --threads {threads} {options}");
            let output = bench.command(&line).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let summary = String::from_utf8(output.stdout).unwrap();
            let writes_index = index != "none";
            assert_eq!(bench.path("out/index").exists(), writes_index, "{line}");
            assert_eq!(summary.contains("report.html, index"), writes_index, "{line}: {summary}");
            let found = results(&bench, "out");
            if index == "kept" {
                kept = found;
                continue;
            }
            assert!(found == kept, "{line}: {:?} and {:?}", found.keys(), kept.keys());
        }
        let removed = bench.json(&format!("dedup in.jsonl -o out --force -q {options}"));
        assert!(removed["removed"].as_u64() > Some(50), "{options}: {removed}");
    }
}

/// Returns lines of documents with one of two languages, a score and a URL.
fn fielded(documents: &[Document]) -> String {
    let line = |(number, (id, text)): (usize, &Document)| {
        let lang = ["en", "de"][number % 3 % 2];
        let url = format!("https://h{}.example/{id}", number % 5);
        json!({"id": id, "text": text, "lang": lang, "score": number * 7 % 10, "url": url}).to_string() + "\n"
    };
    documents.iter().enumerate().map(line).collect()
}

#[test]
fn history_with_an_index_and_history_without_one_give_the_same_files() {
    let bench = Bench::new();
    let mut documents: Vec<Document> = corpus(29, 700);
    // Texts without words. The history has copies of the first, not of the second.
    for (at, text) in [(12, "?!?"), (15, "?!?"), (450, "?!?"), (480, "."), (490, ".")] {
        documents.insert(at, (format!("wordless{at}"), text.to_owned()));
    }
    let (old, new) = documents.split_at(400);
    bench.write("older.jsonl", fielded(&old[..200]));
    bench.write("old.jsonl", fielded(&old[200..]));
    bench.write("new.jsonl", fielded(new));
    bench.write("both.jsonl", bench.read("older.jsonl") + &bench.read("old.jsonl"));
    for near in ["0.8", "containment:0.8", "equal", "within:3"] {
        // A run with --near equal writes no index, but its history may have one.
        let of_history = if near == "equal" { "0.8" } else { near };
        let is_queried = near == "0.8" || near == "within:3";
        for inside in ["", "--inside lang"] {
            let run = |input: &str, out: &str, options: &str| {
                bench.json(&format!("dedup {input}.jsonl -o {out} {inside} {options} --force -q"))
            };
            // The history is one run, or two runs. The second run was compared with the first.
            for (out, index) in [("bare", "none"), ("indexed", "kept"), ("all", "all")] {
                let options = format!("--near {of_history} --index {index}");
                run("both", out, &options);
                run("older", &format!("{out}1"), &options);
                run("old", &format!("{out}2"), &format!("{options} --against {out}1"));
            }
            for keep in [
                "",
                "--keep longest --url-field url",
                "--keep max:score --also annotated --annotation-prefix x_",
            ] {
                for days in [false, true] {
                    let mut by_texts = BTreeMap::new();
                    for history in ["bare", "indexed", "all"] {
                        let against = if days {
                            format!("--against {history}1 --against {history}2")
                        } else {
                            format!("--against {history}")
                        };
                        let what = format!("--near {near} {inside} {keep} {against}");
                        let report = run("new", "out", &format!("--near {near} {keep} {against}"));
                        let kind = if is_queried && history != "bare" { "index" } else { "texts" };
                        assert_eq!(report["histories"][0]["kind"], kind, "{what}");
                        let found = results(&bench, "out");
                        if history == "bare" {
                            by_texts = found;
                            continue;
                        }
                        for (name, bytes) in &by_texts {
                            assert!(found.get(name) == Some(bytes), "{what}: {name}");
                        }
                        assert_eq!(found.len(), by_texts.len(), "{what}");
                    }
                    let dropped = bench.read("out/against.tsv");
                    assert!(dropped.lines().count() > 40, "{near} {inside} {keep}: {dropped}");
                    assert!(dropped.contains("\nwordless450\t"), "{near} {inside}: {dropped}");
                }
            }
        }
    }
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
        bench.ok(&format!("dedup in.jsonl -o out --force -q {options}"));
        let why = bench.json("why out b");
        assert_eq!((&why["kept"], &why["agrees"]), (&"a".into(), &true.into()), "{options}: {why}");
    }
    // A document that a history without an index covers is explained by the texts of the history.
    bench.write("new.jsonl", jsonl(&documents([("n", &edited)])));
    bench.ok("dedup new.jsonl -o new --against out -q --without-boilerplate 5:4");
    let why = bench.json("why new n");
    assert_eq!((&why["fate"], &why["kept"], &why["agrees"]), (&"dropped".into(), &"a".into(), &true.into()));
    // Without an index, the table of weights is read from the file that the run read.
    bench.ok("dedup in.jsonl -o out --force -q --weights idf --idf table.idf");
    std::fs::rename(bench.path("table.idf"), bench.path("moved.idf")).unwrap();
    says(&bench.refused("why out b"), &["out/run.json", "table.idf", "no index"]);
}
