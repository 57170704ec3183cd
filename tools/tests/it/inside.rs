//! Fields that affect decisions: `--keep max:FIELD` and `min:FIELD`, and `--inside FIELD`, which compares only documents
//! with equal values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::arrow_writer::ArrowWriter;
use serde_json::{Value, json};

use crate::support::{Bench, Document, Random, corpus, says};

const CLUSTERS: &str = "key\tcluster\tkept\tscore";

/// A document with a value for `--inside` and a number for `--keep`.
struct TwoFieldDocument {
    key: String,
    text: String,
    lang: &'static str,
    score: Value,
}

/// Returns documents of [`corpus`] with random values and numbers: integers and floats, some of them equal, some large.
fn fielded(seed: u64, count: usize, values: usize) -> Vec<TwoFieldDocument> {
    let mut random = Random(seed);
    let with_fields = |(key, text): Document| {
        let number = random.below(5) as u32;
        let score = match random.below(3) {
            0 => json!(f64::from(number) - 1.5),
            1 => json!((1_i64 << 53) + i64::from(number)),
            _ => json!(i64::from(number) - 2),
        };
        TwoFieldDocument { key, text, lang: ["en", "de", "fr \u{fc}"][random.below(values)], score }
    };
    corpus(seed, count).into_iter().map(with_fields).collect()
}

fn jsonl<'d>(documents: impl IntoIterator<Item = &'d TwoFieldDocument>) -> String {
    let line = |one: &TwoFieldDocument| {
        let TwoFieldDocument { key, text, lang, score } = one;
        json!({ "id": key, "text": text, "lang": lang, "score": score }).to_string() + "\n"
    };
    documents.into_iter().map(line).collect()
}

/// Returns the kept document for each document in `OUT/clusters.tsv`.
fn kept_of(bench: &Bench, out: &str) -> BTreeMap<String, String> {
    let rows = bench.rows(&format!("{out}/clusters.tsv"), CLUSTERS);
    let columns = rows.iter().map(|row| row.split('\t').collect::<Vec<_>>());
    columns.map(|columns| (columns[0].to_owned(), columns[2].to_owned())).collect()
}

/// The same as [`kept_of`], including documents that were removed for a document of a history.
fn all_kept_of(bench: &Bench, out: &str) -> BTreeMap<String, String> {
    let mut all = kept_of(bench, out);
    let against = bench.read(&format!("{out}/against.tsv"));
    let dropped = against.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    all.extend(dropped.map(|columns| (columns[0].to_owned(), columns[1].to_owned())));
    all
}

#[test]
fn inside_option_keeps_same_documents_as_one_run_per_value() {
    let bench = Bench::new();
    let documents = fielded(71, 260, 3);
    bench.write("all.jsonl", jsonl(&documents));
    let values: BTreeSet<&str> = documents.iter().map(|one| one.lang).collect();
    for (number, value) in values.iter().enumerate() {
        bench.write(&format!("{number}.jsonl"), jsonl(documents.iter().filter(|one| one.lang == *value)));
    }
    for options in [
        "",
        "--keep max:score",
        "--threshold 0.6 --keep min:score",
        "--near containment:0.8 --keep longest",
        "--weights tf",
        "--near within:6 --keep max:score",
        "--near equal --keep min:score",
        "--near equal --normal-form nfkc",
    ] {
        let pairs = |out: &str| {
            let text = bench.read(&format!("{out}/pairs.tsv"));
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let report = bench.json(&format!("dedup all.jsonl -o all --force -q --inside lang {options}"));
        assert_eq!(report["inside_values"], 3);
        let (mut kept, mut listed) = (BTreeMap::new(), Vec::new());
        for number in 0..values.len() {
            bench.ok(&format!("dedup {number}.jsonl -o one --force -q {options}"));
            kept.extend(kept_of(&bench, "one"));
            listed.extend(pairs("one"));
        }
        assert_eq!(kept_of(&bench, "all"), kept, "{options}");
        listed.sort();
        assert_eq!(pairs("all"), listed, "{options}");

        bench.ok(&format!("dedup all.jsonl -o all --force -q {options}"));
        let removed = |kept: &BTreeMap<String, String>| kept.iter().filter(|(key, kept)| key != kept).count();
        let (inside, across) = (removed(&kept), removed(&kept_of(&bench, "all")));
        assert!(inside > 10 && inside + 10 < across, "{options}: {inside} and {across}");
    }
}

#[test]
fn two_daily_runs_with_option_inside_equal_one_run() {
    let bench = Bench::new();
    let documents = fielded(72, 200, 2);
    let (old, new) = documents.split_at(100);
    bench.write("old.jsonl", jsonl(old));
    bench.write("new.jsonl", jsonl(new));
    bench.ok("dedup old.jsonl new.jsonl -o all -q --threshold 0.7 --words 3 --inside lang");
    bench.ok("dedup old.jsonl -o old -q --index kept --threshold 0.7 --words 3 --inside lang");
    for against in ["--against old", "--against old/index --texts old.jsonl"] {
        bench.ok(&format!(
            "dedup new.jsonl -o new -q --force --threshold 0.7 --words 3 --inside lang {against}"
        ));
        let mut days = kept_of(&bench, "old");
        days.extend(all_kept_of(&bench, "new"));
        assert_eq!(days, kept_of(&bench, "all"), "{against}");
    }
    // Documents of a history have priority over new ones whatever their numbers are, and they need no number.
    let without: String = bench
        .read("old.jsonl")
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("score");
            line.to_string() + "\n"
        })
        .collect();
    bench.write("bare.jsonl", without);
    bench.ok("dedup bare.jsonl -o bare -q --inside lang");
    bench.ok("dedup new.jsonl -o new -q --force --inside lang --against bare --keep max:score");
    bench.ok("dedup bare.jsonl -o first -q --inside lang");
    let against = all_kept_of(&bench, "new");
    let history = kept_of(&bench, "first");
    let (dropped, _) = against.iter().find(|(_, kept)| history.contains_key(*kept)).unwrap();
    let said = bench.ok(&format!("why new {dropped}"));
    says(&said, &["field      score (keep max): ", "field      lang (inside): "]);
}

/// An index of its own, without the folder of results, knows the field that decided.
#[test]
fn index_refuses_another_field_than_that_inside_which_it_was_made() {
    let bench = Bench::new();
    let documents = fielded(74, 200, 2);
    let (old, new) = documents.split_at(100);
    bench.write("old.jsonl", jsonl(old));
    bench.write("new.jsonl", jsonl(new));
    bench.ok("dedup old.jsonl -o old -q --index kept --inside lang");
    fs::create_dir(bench.path("copy")).unwrap();
    for entry in fs::read_dir(bench.path("old/index")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), bench.path("copy").join(entry.file_name())).unwrap();
    }
    for against in ["old", "old/index", "copy"] {
        bench.ok(&format!("dedup new.jsonl -o new -q --force --inside lang --against {against}"));
        bench.ok("dedup new.jsonl -o same -q --force --inside lang --against old");
        assert_eq!(bench.read("new/kept.jsonl"), bench.read("same/kept.jsonl"), "{against}");
        for (option, own) in [("", "all documents"), ("--inside score", "inside of score")] {
            let line = format!("dedup new.jsonl -o no {option} --against {against}");
            says(&bench.misused(&line), &["inside of lang", own, "give --inside lang"]);
        }
    }
    // A stream goes on inside of its field only.
    bench.ok("stream living.twx old.jsonl -q --inside lang");
    for index in ["living.twx", "copy"] {
        let line = format!("stream {index} new.jsonl -q");
        says(&bench.misused(&line), &["all documents", "give --inside lang"]);
        says(&bench.misused(&format!("{line} --inside score")), &["inside of score", "give --inside lang"]);
        bench.ok(&format!("{line} --inside lang"));
    }
    // Results are replaced, with the record in the index.
    bench.ok("dedup old.jsonl -o old -q --force --index kept");
    assert!(!bench.path("old/index/inside").exists());
}

/// Writes the documents as a Parquet table with these additional columns.
fn write_parquet(bench: &Bench, name: &str, documents: &[TwoFieldDocument], columns: Vec<(&str, ArrayRef)>) {
    let strings = |of: &dyn Fn(&TwoFieldDocument) -> String| -> ArrayRef {
        Arc::new(documents.iter().map(|one| Some(of(one))).collect::<StringArray>())
    };
    let mut all = vec![("id", strings(&|one| one.key.clone())), ("text", strings(&|one| one.text.clone()))];
    all.extend(columns);
    let batch = RecordBatch::try_from_iter(all).unwrap();
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn keep_fields_are_read_from_every_format_and_compared_exactly() {
    let bench = Bench::new();
    let mut documents = fielded(73, 150, 2);
    // The numbers are consecutive integers that a float cannot distinguish.
    let mut random = Random(5);
    for one in &mut documents {
        one.score = json!((1_u64 << 63) + random.below(40) as u64);
        one.lang = ["en", "de"][random.below(2)];
    }
    bench.write("in.jsonl", jsonl(&documents));
    let mut table = "score,id,lang,text\n".to_owned();
    for TwoFieldDocument { key, text, lang, score } in &documents {
        writeln!(table, " {score},{key},{lang},\"{text}\"").unwrap();
    }
    bench.write("in.csv", &table);
    let mut tabs = "score\tid\tlang\ttext\n".to_owned();
    for TwoFieldDocument { key, text, lang, score } in &documents {
        writeln!(tabs, " {score}\t{key}\t{lang}\t{text}").unwrap();
    }
    bench.write("in.tsv", tabs);
    let scores: UInt64Array = documents.iter().map(|one| one.score.as_u64()).collect();
    let langs: StringArray = documents.iter().map(|one| Some(one.lang)).collect();
    write_parquet(
        &bench,
        "in.parquet",
        &documents,
        vec![("score", Arc::new(scores)), ("lang", Arc::new(langs))],
    );
    let record = |one: &TwoFieldDocument| {
        let TwoFieldDocument { key, text, lang, score } = one;
        let length = text.len();
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {key}\r\nContent-Type: text/plain\r\n\
             Lang: {lang}\r\nScore: {score}\r\nContent-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    bench.write("in.wet", documents.iter().map(record).collect::<String>());
    let options = "-q --force --threshold 0.6 --words 2 --inside lang --keep max:score";
    bench.ok(&format!("dedup in.jsonl -o lines {options}"));
    let lines = kept_of(&bench, "lines");
    let removed = lines.iter().filter(|(key, kept)| key != kept).count();
    assert!(removed > 20, "{removed}");
    let score: BTreeMap<&str, u64> =
        documents.iter().map(|one| (one.key.as_str(), one.score.as_u64().unwrap())).collect();
    for (key, kept) in &lines {
        assert!((score[&**kept], kept) >= (score[&**key], kept), "{key} {kept}");
    }
    for input in ["in.csv", "in.tsv", "in.parquet", "in.wet"] {
        bench.ok(&format!("dedup {input} -o out {options}"));
        assert_eq!(kept_of(&bench, "out"), lines, "{input}");
        // Kept documents still have the fields, so that later runs can be compared with them.
        bench.ok(&format!("dedup {input} -o next {options} --against out"));
        assert_eq!(bench.rows("next/clusters.tsv", CLUSTERS), [""; 0], "{input}");
    }

    let booleans: BooleanArray = documents.iter().map(|one| Some(one.lang == "en")).collect();
    let floats: Float64Array =
        documents.iter().map(|one| one.score.as_u64().map(|n| n as f64 / 3e18)).collect();
    write_parquet(
        &bench,
        "other.parquet",
        &documents,
        vec![("score", Arc::new(floats)), ("lang", Arc::new(booleans))],
    );
    let report = bench.json("dedup other.parquet -o out --force --inside lang --keep min:score");
    assert_eq!(report["inside_values"], 2);
}

#[test]
fn keep_option_breaks_ties_by_key_and_longest_counts_tokens() {
    let bench = Bench::new();
    let text = "one two three four five six seven eight nine ten eleven twelve";
    let line = |key: &str, text: &str, score: &str| {
        format!("{{\"id\":\"{key}\",\"text\":\"{text}\",\"score\":{score}}}\n")
    };
    let longer = format!("{text} a");
    let wide = format!("{text} {}", "w".repeat(200));
    let lines = [
        line("c", &wide, "9007199254740993"),
        line("b", &format!("{longer} b"), "9007199254740992"),
        line("a", &longer, "9007199254740993.0"),
        line("d", text, "9007199254740993"),
    ];
    bench.write("in.jsonl", lines.concat());
    for (options, kept) in [
        ("--keep first", "c"),
        ("--keep longest", "b"),
        ("--keep max:score", "c"),
        // The float equals the smaller integer, and its document has the smaller key.
        ("--keep min:score", "a"),
    ] {
        bench.ok(&format!("dedup in.jsonl -o out -q --force --threshold 0.6 {options}"));
        let found: BTreeSet<String> = kept_of(&bench, "out").into_values().collect();
        assert_eq!(found, BTreeSet::from([kept.to_owned()]), "{options}");
    }
    let run: Value = serde_json::from_str(&bench.read("out/run.json")).unwrap();
    let settings = &run["settings"];
    assert_eq!((&settings["keep"], &settings["inside"]), (&json!("min:score"), &json!(null)));
    let why = bench.json("why out d");
    let field =
        json!({"option": "keep min", "name": "score", "key": "9007199254740993", "kept": "9007199254740992"});
    assert_eq!((&why["fields"], &why["agrees"]), (&json!([field]), &json!(true)));
    // If fields have changed since the run, they no longer explain its decisions.
    bench.write("in.jsonl", lines.concat().replace(":9007199254740993}", ":1}"));
    let output = bench.command("why out d").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    says(
        &said,
        &[
            "field      score (keep min): 1 in d",
            "the number in `score` of the kept document does not come first",
        ],
    );
}

#[test]
fn invalid_fields_are_reported_with_line_and_value() {
    let bench = Bench::new();
    let line = |id: u32, rest: &str| format!("{{\"id\":{id},\"text\":\"t{id}\"{rest}}}\n");
    for (rest, options, part) in [
        ("", "--keep max:score", "no field \"score\" for --keep"),
        (",\"score\":null", "--keep max:score", "no field \"score\" for --keep"),
        (",\"score\":\"x\"", "--keep min:score", "field \"score\": expected a number or a time such as"),
        (",\"score\":1e999", "--keep min:score", "found 1e999"),
        ("", "--inside lang", "no field \"lang\" for --inside"),
        (",\"lang\":\"\"", "--inside lang", "field \"lang\" for --inside is empty"),
        (",\"lang\":[1]", "--inside lang", "expected a string, an integer or a boolean, found [1]"),
    ] {
        let good = line(1, ",\"score\":1,\"lang\":\"en\"");
        bench.write("in.jsonl", [good, line(2, rest)].concat());
        let message = bench.refused(&format!("dedup in.jsonl -o out --force {options}"));
        says(&message, &["in.jsonl:2: ", part, "--skip-bad N passes over"]);
        let report = bench.json(&format!("dedup in.jsonl -o out --force --skip-bad 1 {options}"));
        assert_eq!((&report["documents"], &report["skipped_bad"]), (&json!(1), &json!(1)), "{options}");
    }
    bench.write("in.csv", "id,text,score\n1,a,2\n2,b,\n");
    says(&bench.refused("dedup in.csv -o new --keep max:score"), &["in.csv:3: ", "no field \"score\""]);
    says(&bench.refused("dedup in.csv -o new --keep max:n"), &["in.csv", "no column \"n\"", "see --keep"]);
    says(&bench.refused("dedup in.csv -o new --inside n"), &["no column \"n\"", "see --inside"]);
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    let lists = fielded(1, 1, 1);
    write_parquet(
        &bench,
        "in.parquet",
        &lists,
        vec![("score", flags), ("n", Arc::new(Int64Array::from(vec![1])))],
    );
    let message = bench.refused("dedup in.parquet -o new --keep max:score");
    says(&message, &["the column \"score\" holds", "where numbers, times or strings are expected"]);
    bench.write("texts/a.txt", "a");
    let message = bench.refused("dedup texts -o new --keep max:score --inside lang");
    says(&message, &["text files have no fields, which --keep and --inside ask for"]);
    let said = |line: &str| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    says(
        &said("dedup in.csv -o new --keep max:"),
        &["expected first, longest, smallest-key, key-hash, max:FIELD"],
    );
    says(&said("dedup in.csv -o new --keep best"), &["expected first, longest"]);
    assert!(!bench.path("new").exists());
}

#[test]
fn inside_value_in_another_encoding_equals_the_utf8_value() {
    let bench = Bench::new();
    bench.write("utf-8.csv", "id,text,lang\n1,one text of five words,fran\u{e7}ais\n");
    bench.write("other.csv", b"id,text,lang\n2,one text of five words,fran\xe7ais\n");
    bench.ok("dedup utf-8.csv other.csv -o out --inside lang --encoding windows-1252 -q");
    let kept = ["1", "2"].map(|key| (key.to_owned(), "1".to_owned()));
    assert_eq!(kept_of(&bench, "out"), BTreeMap::from(kept));
}

#[test]
fn lossily_decoded_texts_are_not_copies_with_inside() {
    let bench = Bench::new();
    bench.write("in.csv", b"id,text,lang\n1,\xe7,fr\n2,\xe9,fr\n3,\xe7,fr\n4,\xe7,de\n");
    bench.ok("dedup in.csv -o out --inside lang --invalid-utf8 replace -q");
    let kept = [("1", "1"), ("2", "2"), ("3", "1"), ("4", "4")];
    let kept = kept.map(|(key, kept)| (key.to_owned(), kept.to_owned()));
    assert_eq!(kept_of(&bench, "out"), BTreeMap::from(kept));
}

#[test]
fn stream_with_inside_keeps_the_same_documents_as_dedup() {
    let bench = Bench::new();
    let documents = fielded(75, 240, 3);
    let (old, new) = documents.split_at(120);
    for (name, some) in [("all", &documents[..]), ("old", old), ("new", new)] {
        bench.write(&format!("{name}.jsonl"), jsonl(some));
    }
    let options = "-q --threshold 0.7 --words 3 --inside lang";
    bench.ok(&format!("dedup all.jsonl -o all {options}"));
    let stays: BTreeSet<String> = kept_of(&bench, "all").into_values().collect();
    // Documents are added one at a time, in two runs.
    let mut admitted = String::new();
    for day in ["old", "new"] {
        admitted += &bench.ok(&format!("stream i.twx {day}.jsonl {options} --drop-duplicates"));
    }
    let decided: Vec<Vec<&str>> = admitted.lines().map(|line| line.split('\t').collect()).collect();
    let new_ones: BTreeSet<&str> =
        decided.iter().filter(|columns| columns[1] == "new").map(|columns| columns[0]).collect();
    assert_eq!(new_ones, stays.iter().map(String::as_str).collect());
    let lang: BTreeMap<&str, &str> = documents.iter().map(|one| (one.key.as_str(), one.lang)).collect();
    let duplicates: Vec<_> = decided.iter().filter(|columns| columns[1] == "duplicate").collect();
    assert!(duplicates.len() > 10 && duplicates.iter().all(|columns| lang[columns[0]] == lang[columns[2]]));
    // Without `--inside`, more documents are removed.
    let across = bench.ok("stream across.twx all.jsonl -q --near 0.7 --words 3 --drop-duplicates");
    assert!(across.lines().filter(|line| line.contains("\tduplicate\t")).count() > duplicates.len() + 10);

    // The index of the results has sets and values, so the texts of the history are not needed.
    bench.ok(&format!("dedup old.jsonl -o old --index kept {options}"));
    let shown = bench.json("stats old/index");
    assert!(shown.to_string().contains("\"sets\""), "{shown}");
    bench.write("old/kept.jsonl", "{\"id\":\"x\",\"text\":\"nothing of what was kept\",\"lang\":\"en\"}\n");
    bench.ok(&format!("dedup new.jsonl -o new {options} --against old/index"));
    let mut days = kept_of(&bench, "old");
    days.extend(all_kept_of(&bench, "new"));
    assert_eq!(days, kept_of(&bench, "all"));
    // A query finds a document by its text alone, regardless of its value.
    bench.write("one.txt", &old[0].text);
    assert!(bench.ok("query old/index one.txt --near 0.8").contains(&old[0].key));
}
