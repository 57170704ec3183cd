//! `why` must report the decision in the tables, recompute it from the texts, and show the words that differ.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, Document, documents, gzip, jsonl, says, succeeded};

/// Returns a text of `count` different words.
fn text(count: usize) -> String {
    (0..count).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")
}

/// Returns the text with another word in the middle. Each has 46 shingles; 41 are in both, 51 in the union.
fn edited() -> String {
    text(50).replace("w25 ", "CHANGED ")
}

/// Returns a long text and a copy with one changed word, whose fingerprints are near.
fn long() -> (String, String) {
    (text(400), text(400).replace("w200 ", "CHANGED "))
}

/// Returns an original, a copy, an edited copy, and a different text.
fn near() -> Vec<Document> {
    documents([("a", &text(50)), ("b", &edited()), ("c", &text(50)), ("d", "something else")])
}

fn deduped(documents: &[Document], options: &str) -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(documents));
    bench.ok(&format!("dedup in.jsonl -o out -q {options}"));
    bench
}

/// Returns a field of the recomputed values.
fn again<'v>(explanation: &'v Value, name: &str) -> &'v str {
    let columns = explanation["recomputed"].as_array().unwrap();
    columns.iter().find(|column| column[0] == name).unwrap()[1].as_str().unwrap()
}

#[test]
fn edited_copy_is_explained_by_counts_and_differing_words() {
    let bench = deduped(&near(), "");
    let said = bench.ok("why out b");
    says(
        &said,
        &[
            "b goes for a, which is kept\n",
            "resemblance 41 / 51 = 0.803922, at least 0.8: shingles of both by shingles of either, counted",
            "(out/pairs.tsv:2)",
            "again      resemblance 0.803922, intersection 41, union 51: as in the table",
            "46 in b, 46 in a, 41 in both; 5 in b only, 5 in a only",
            "in.jsonl:2 (b)",
            "out/kept.jsonl:1 (a)",
            "words      1 in a only, [-so-]; 1 in b only, {+so+}",
            "@@ word 21 of a, word 21 of b",
            "  w20 w21 w22 w23 w24 [-w25-] {+CHANGED+} w26 w27 w28 w29 w30\n",
        ],
    );
    let json = bench.json("why out b");
    assert_eq!(
        (&json["fate"], &json["kept"], &json["agrees"]),
        (&"removed".into(), &"a".into(), &true.into())
    );
    assert_eq!(
        json["reason"],
        serde_json::json!({ "kind": "counted", "intersection": 41, "union": 51, "threshold": 0.8 })
    );
    assert_eq!(json["sets"], serde_json::json!({ "key": 46, "kept": 46, "both": 41 }));
    assert_eq!(json["differences"]["hunks"][0]["runs"][1]["text"], "w25");
    let short = bench.json("why out b --context 0");
    assert_eq!(short["differences"]["hunks"][0]["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn why_distinguishes_identical_bytes_from_equal_normalised_texts() {
    let bench = deduped(&near(), "");
    let said = bench.ok("why out c");
    says(&said, &["c goes for a", "the texts are identical, byte for byte", "intersection 46, union 46"]);
    assert!(!said.contains("@@") && !said.contains("in a only, [-so-]"), "{said}");

    let texts = documents([("a", "caf\u{e9} here"), ("b", "cafe\u{301} here")]);
    let bench = deduped(&texts, "--near equal --normal-form nfkc");
    says(&bench.ok("why out b"), &["the texts are equal after --normal-form and --fold", "as in the table"]);
    assert_eq!(bench.json("why out b")["reason"]["normalised"], true);
}

#[test]
fn why_reports_differences_in_case_and_white_space_only() {
    let texts =
        documents([("a", &text(9)), ("b", &text(9).to_uppercase()), ("c", &text(9).replace(' ', "\n"))]);
    let bench = deduped(&texts, "");
    let said = bench.ok("why out b");
    says(
        &said,
        &["5 / 5 = 1.000000", "the differences change no shingle (tokens words, width 5)", "{+W0 W1"],
    );
    says(&bench.ok("why out c"), &["no word differs: the texts differ in white space only"]);
}

#[test]
fn fingerprints_are_explained_by_their_distance() {
    let (a, b) = long();
    let bench = deduped(&documents([("a", &a), ("b", &b)]), "--near within:10");
    let rows = bench.rows("out/pairs.tsv", "document\tkept\tdistance");
    let row = rows.iter().find(|row| row.starts_with("b\ta\t")).expect("the edited copy is within 10 bits");
    let distance = row.rsplit('\t').next().unwrap();
    let json = bench.json("why out b");
    assert_eq!(again(&json, "distance"), distance);
    assert_eq!(json["reason"]["bits"].to_string(), distance);
    says(&bench.ok("why out b"), &[&format!("the fingerprints differ in {distance} bit"), ", at most 10"]);
    // The IDF table is stored in the index.
    bench.ok("idf in.jsonl -o table.idf -q");
    bench.ok("dedup in.jsonl -o out -q --force --index kept --near within:10 --idf table.idf");
    assert_eq!(bench.json("why out b")["agrees"], true);
}

#[test]
fn document_removed_for_a_history_is_explained_with_its_text() {
    let bench = Bench::new();
    let (a, b) = long();
    bench.write("old.jsonl", jsonl(&documents([("a", &a), ("z", "another old text")])));
    // The key of the earlier document is used again for another text.
    bench.write("new.jsonl", jsonl(&documents([("b", &b), ("a", "a new text"), ("c", &a)])));
    bench.ok("dedup old.jsonl -o old -q");
    for (options, kind) in [("", "counted"), ("--near equal", "identical"), ("--near within:10", "distance")]
    {
        if options.contains("within") {
            bench.ok("dedup old.jsonl -o old -q --force --near within:10");
        }
        bench.ok(&format!("dedup new.jsonl -o out -q --force --against old {options}"));
        let key = if kind == "identical" { "c" } else { "b" };
        let json = bench.json(&format!("why out {key}"));
        assert_eq!((&json["fate"], &json["kept"]), (&"dropped".into(), &"a".into()), "{options}");
        assert_eq!(
            (&json["agrees"], &json["reason"]["kind"]),
            (&true.into(), &kind.into()),
            "{options}: {json}"
        );
        let place = json["place_of_kept"].as_str().unwrap();
        assert!(place.ends_with("old/kept.jsonl:1"), "{place}");
    }
    says(
        &bench.ok("why out b"),
        &["b goes for a, which an earlier run kept (--against)", "out/against.tsv:2"],
    );
    bench.ok("dedup old.jsonl -o old -q --force --index kept");
    bench.ok("dedup new.jsonl -o out -q --force --against old/index --texts old.jsonl");
    assert_eq!(bench.json("why out b")["agrees"], true);
    fs::remove_file(bench.path("old.jsonl")).unwrap();
    bench.refused("why out b");

    bench.ok("dedup new.jsonl -o out -q --force --against old");
    fs::remove_dir_all(bench.path("old")).unwrap();
    let said = bench.ok("why out b");
    says(
        &said,
        &["/old: is gone, which --against named", "the text of `a` was not found", "(out/against.tsv:2)"],
    );
    assert_eq!(bench.json("why out b")["agrees"], Value::Null);
}

#[test]
fn why_lists_the_duplicates_of_a_kept_document() {
    let mut all = near();
    all.extend((0..12).map(|copy| (format!("e{copy:02}"), text(50))));
    let bench = deduped(&all, "");
    let said = bench.ok("why out a");
    says(
        &said,
        &[
            "a stays (out/clusters.tsv:2)",
            "14 documents go for it",
            "\n    b\n",
            "and 4 more (--all shows them)",
        ],
    );
    let json = bench.json("why out a --all");
    assert_eq!((&json["fate"], json["removed_for_it"].as_u64()), (&"kept".into(), Some(14)));
    assert_eq!(json["others"].as_array().unwrap().len(), 14);
    says(&bench.ok("why out d"), &["d stays", "no document goes for it"]);
}

#[test]
fn why_refuses_unknown_keys_and_foreign_folders_and_names_them() {
    let bench = deduped(&near(), "");
    says(&bench.refused("why out nope"), &["out/clusters.tsv: no document `nope`"]);
    says(&bench.refused("why gone a"), &["gone: cannot be opened"]);
    bench.write("mine/notes.txt", "mine");
    says(&bench.refused("why mine a"), &["mine: not a folder of results of `twindex dedup`"]);
    says(&bench.refused("why out a\\q --escaped"), &["bad escape at offset 1"]);
    bench.write("out/clusters.tsv", "key\tcluster\tkept\tscore\na\t1\ta\n");
    says(&bench.refused("why out a"), &["out/clusters.tsv:2: expected 4 columns, found 3"]);
    bench.write("out/run.json", "{");
    says(&bench.refused("why out a"), &["out/run.json: not as `dedup` writes it"]);
}

#[test]
fn changed_or_missing_input_is_reported() {
    let bench = deduped(&near(), "");
    let mut changed = near();
    changed[1].1.push_str(" and more");
    bench.write("in.jsonl", jsonl(&changed));
    let disagrees = |line: &str| {
        let output = bench.command(line).output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]), "{line}");
        String::from_utf8(output.stdout).unwrap()
    };
    says(
        &disagrees("why out b"),
        &[
            "resemblance 41 / 51 = 0.803922",
            "intersection 41, union 53: NOT as in the table, which has resemblance 0.803922, intersection 41, union 51",
            "one of the two changed since",
            "{+and more+}",
        ],
    );
    let json: Value = serde_json::from_str(&disagrees("why out b --json")).unwrap();
    assert_eq!(json["agrees"], false);
    changed.remove(1);
    bench.write("in.jsonl", jsonl(&changed));
    let said = bench.ok("why out b");
    says(&said, &["41 / 51", "`b` is not in the inputs any more, so that nothing was counted again"]);
    assert_eq!(bench.json("why out b")["agrees"], Value::Null);
    fs::rename(bench.path("in.jsonl"), bench.path("moved.jsonl")).unwrap();
    says(
        &bench.refused("why out b"),
        &["in.jsonl: is gone, and out/run.json names it as an input; name INPUT"],
    );
    bench.write("moved.jsonl", jsonl(&near()));
    assert_eq!(bench.json("why out b moved.jsonl")["agrees"], true);
    // `why` shows the text that was kept, even if the input has changed.
    changed[0].1.push_str(" and more");
    changed.push(("b".to_owned(), edited()));
    bench.write("in.jsonl", jsonl(&changed));
    assert_eq!(bench.json("why out b")["agrees"], true);
}

#[test]
fn results_from_standard_input_require_an_input() {
    let bench = Bench::new();
    succeeded("dedup", bench.command("dedup - -o out -q").write_stdin(jsonl(&near())));
    let mut command = bench.command("why out b");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(
        &String::from_utf8_lossy(&output.stderr),
        &["out/run.json: the documents came from standard input, which cannot be read again; name INPUT"],
    );
    bench.write("in.jsonl", jsonl(&near()));
    assert_eq!(bench.json("why out b in.jsonl")["agrees"], true);
    let said = succeeded("why", bench.command("why out b - --json").write_stdin(jsonl(&near())));
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["agrees"], true);
}

#[test]
fn results_of_an_earlier_version_require_an_input() {
    let bench = deduped(&near(), "--threshold 0.6 --words 3 --index kept");
    fs::remove_file(bench.path("out/run.json")).unwrap();
    let output = bench.command("why out b").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8_lossy(&output.stderr), &["out: has no run.json", "name INPUT"]);
    // The options for tokenizing are stored in the index, but the threshold is not.
    let said = bench.ok("why out b in.jsonl");
    says(&said, &["the threshold is not recorded", "as in the table"]);
    fs::remove_dir_all(bench.path("out")).unwrap();
    bench.ok("dedup in.jsonl -o out -q");
    bench.ok("why out b");
}

#[test]
fn why_reads_inputs_as_dedup_did() {
    let bench = Bench::new();
    let rows: Vec<String> = near().iter().map(|(key, text)| format!("{key},{text}\n")).collect();
    bench.write("in.data", format!("name,body\n{}", rows.concat()));
    bench.ok("dedup in.data -o csv -q --format csv --id-field name --text-field body");
    let json = bench.json("why csv b");
    assert_eq!(json["agrees"], true);
    assert!(json["place"].as_str().unwrap().ends_with("in.data:3"), "{json}");

    // If a file is named on the command line, its key is the path as given there.
    for (key, text) in near() {
        bench.write(&format!("texts/{key}.txt"), text);
    }
    bench.ok("dedup texts/a.txt ./texts/b.txt -o files -q");
    assert_eq!(bench.json("why files ./texts/b.txt")["agrees"], true);
    bench.write("texts/b.txt.gz", gzip(edited().as_bytes()));
    bench.ok("dedup texts/a.txt texts/b.txt.gz -o packed -q");
    assert_eq!(bench.json("why packed texts/b.txt")["agrees"], true);
    fs::remove_file(bench.path("texts/b.txt.gz")).unwrap();
    bench.ok("dedup texts -o folder -q");
    assert_eq!(bench.json("why folder b.txt")["agrees"], true);
    bench.ok("dedup in.data -o lines -q --format csv --id-field name --text-field body --tokens characters");
    assert_eq!(bench.json("why lines b")["agrees"], true);

    let page = |text: &str| format!("<html><body><p>{text}</p></body></html>");
    for (key, text) in near() {
        bench.write(&format!("pages/{key}.html"), page(&text));
    }
    bench.ok("dedup pages -o html -q");
    assert_eq!(bench.json("why html b.html")["agrees"], true);
    // From another working directory, the paths still work.
    let out = bench.path("folder");
    let said = succeeded("why", bench.command("why").current_dir(bench.path("texts")).arg(out).arg("b.txt"));
    says(&said, &["as in the table"]);
}

#[test]
fn why_compares_features_by_name() {
    let line = |key: &str, last: &str| {
        let names: Vec<String> = (0..20).map(|name| format!("f{name}")).chain([last.to_owned()]).collect();
        serde_json::json!({ "id": key, "f": names }).to_string() + "\n"
    };
    let bench = Bench::new();
    bench.write("in.jsonl", [line("a", "x"), line("b", "y")].concat());
    bench.ok("dedup in.jsonl -o out -q --features-field f");
    let json = bench.json("why out b");
    assert_eq!((&json["agrees"], &json["sets"]["both"]), (&true.into(), &20.into()));
    assert_eq!(json["differences"]["only_in_key"], 1);
    says(&bench.ok("why out b"), &["[-x-] {+y+}"]);
}

#[test]
fn why_escapes_odd_keys_and_control_characters() {
    let odd = format!("{} \u{1b}[31mred\u{7}", text(50));
    let bench = deduped(&documents([("a\tb\nc\u{1b}", &text(50)), ("t\tn\n", &odd)]), "");
    let said = bench.ok("why out t\\tn\\n --escaped");
    says(&said, &["t\\tn\\n goes for a\\tb\\nc\\u{1b}, which is kept", "{+\\u{1b}[31mred\\u{7}+}"]);
    assert!(!said.contains(['\u{1b}', '\u{7}', '\t']), "{said:?}");
    let json = bench.json("why out t\\tn\\n --escaped");
    assert_eq!(json["key"], "t\\tn\\n");
    let raw = succeeded("why", bench.command("why out").arg("t\tn\n"));
    assert_eq!(raw, said);
    says(&bench.refused("why out t\\tn\\n"), &["no document", "--escaped"]);
}

#[test]
fn only_the_first_differences_are_shown_unless_all_is_given() {
    let words = |changed: &str| -> String {
        (0..2000)
            .map(|word| if word % 100 == 50 { format!("{changed}{word} ") } else { format!("w{word} ") })
            .collect()
    };
    let bench = deduped(&documents([("a", &words("x")), ("b", &words("y"))]), "");
    let said = bench.ok("why out b");
    assert_eq!(said.matches("@@").count(), 10);
    says(&said, &["20 in a only", "10 more places differ (--all shows all)"]);
    let all = bench.ok("why out b --all");
    assert_eq!((all.matches("@@").count(), all.contains("more places")), (20, false));
}
