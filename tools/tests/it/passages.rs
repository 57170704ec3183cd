//! `twindex passages`: spans must match the definition for any number of threads, memory budget and input format.
//! `--cut` must remove exactly these spans.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Bench, Document, Random, gzip, says};

pub(crate) const SPANS: &str = "key\tstart\tend\tfirst_key\tfirst_start\twords";

/// Returns the byte range of each word of an ASCII text.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_ascii_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(begin)) => {
                found.push((begin, at));
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Computes the spans from their definition, with a map from t-grams to their first occurrences.
pub(crate) fn spans(documents: &[Document], t: usize, within: bool) -> Vec<String> {
    let mut first: HashMap<Vec<String>, (usize, usize)> = HashMap::new();
    let places: Vec<_> = documents.iter().map(|(_, text)| tokens(text)).collect();
    let mut lines = Vec::new();
    for (number, (key, text)) in documents.iter().enumerate() {
        let words: Vec<String> =
            places[number].iter().map(|&(start, end)| text[start..end].to_lowercase()).collect();
        // Position, source, and number of consecutive matching positions.
        let mut runs: Vec<(usize, (usize, usize), usize)> = Vec::new();
        for (position, gram) in words.windows(t).enumerate() {
            let source = *first.entry(gram.to_vec()).or_insert((number, position));
            if source == (number, position) || (!within && source.0 == number) {
                continue;
            }
            match runs.last_mut() {
                Some((begin, from, count))
                    if *begin + *count == position && (from.0, from.1 + *count) == source =>
                {
                    *count += 1;
                }
                _ => runs.push((position, source, 1)),
            }
        }
        for (position, (source, from), count) in runs {
            let last = position + count + t - 2;
            let (start, end) = (places[number][position].0, places[number][last].1);
            let (first_key, first_start) = (&documents[source].0, places[source][from].0);
            lines.push(format!("{key}\t{start}\t{end}\t{first_key}\t{first_start}\t{}", count + t - 1));
        }
    }
    lines
}

/// Returns texts that are assembled from pieces of a few other texts, with an occasional changed word.
pub(crate) fn pieced(seed: u64, count: usize) -> Vec<Document> {
    let mut random = Random(seed);
    let source = |number: usize, at: usize| format!("Word{}", (number * 31 + at * at * 7) % 911);
    (0..count)
        .map(|number| {
            let mut text = String::new();
            for _ in 0..=random.below(4) {
                let (from, start) = (random.below(9), random.below(300));
                for at in start..start + 5 + random.below(60) {
                    let word = source(from, at);
                    let is_altered = random.below(25) == 0;
                    let end = if random.below(9) == 0 { ".\n" } else { " " };
                    write!(text, "{}{end}", if is_altered { word.to_uppercase() + "x" } else { word })
                        .unwrap();
                }
            }
            (format!("doc-{number}"), text)
        })
        .collect()
}

pub(crate) fn lines(documents: &[Document]) -> String {
    documents
        .iter()
        .map(|(key, text)| json!({ "n": 7, "text": text, "id": key }).to_string() + "\n")
        .collect()
}

/// Returns a text without the bytes of its spans.
pub(crate) fn cut(key: &str, text: &str, spans: &[String]) -> String {
    let mut is_cut = vec![false; text.len()];
    for span in spans {
        let columns: Vec<&str> = span.split('\t').collect();
        if columns[0] == key {
            let (start, end): (usize, usize) = (columns[1].parse().unwrap(), columns[2].parse().unwrap());
            is_cut[start..end].fill(true);
        }
    }
    text.char_indices().filter(|&(at, _)| !is_cut[at]).map(|(_, c)| c).collect()
}

#[test]
fn passages_equal_the_definition_for_any_threads_and_memory() {
    let bench = Bench::new();
    let documents = pieced(3, 400);
    bench.write("all.jsonl", lines(&documents));
    for (t, within) in [(5, false), (12, true), (30, false)] {
        let expected = spans(&documents, t, within);
        assert!(expected.len() > 50, "{t}: {}", expected.len());
        for (number, work) in
            ["", "--threads 1 --memory 64K", "--threads 3 --memory 2M"].into_iter().enumerate()
        {
            let out = format!("out-{t}-{number}");
            let within = if within { "--within" } else { "" };
            let report =
                bench.json(&format!("passages all.jsonl -o {out} --min-words {t} {within} {work} -q"));
            assert_eq!(bench.rows(&format!("{out}/spans.tsv"), SPANS), expected, "{out}");
            assert_eq!(report["spans"], expected.len());
        }
    }
}

#[test]
fn cut_removes_exactly_the_spans_in_every_input_format() {
    let bench = Bench::new();
    let documents = pieced(5, 120);
    let expected = spans(&documents, 8, false);
    let left: Vec<Document> =
        documents.iter().map(|(key, text)| (key.clone(), cut(key, text, &expected))).collect();
    assert!(left.iter().zip(&documents).filter(|(left, all)| left.1 != all.1).count() > 60);
    let quoted = |documents: &[Document]| -> String {
        let row = |(key, text): &Document| {
            // A field is quoted if necessary.
            let field = if text.contains(['\n', '"', ',']) { format!("\"{text}\"") } else { text.clone() };
            format!("{key},{field},\"say \"\"so\"\"\"\n")
        };
        "id,text,n\n".to_owned() + &documents.iter().map(row).collect::<String>()
    };
    let wet = |documents: &[Document]| -> String {
        let record = |(key, text): &Document| {
            format!(
                "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {key}\r\nContent-Type: text/plain\r\n\
                 Content-Length: {}\r\n\r\n{text}\r\n\r\n",
                text.len()
            )
        };
        documents.iter().map(record).collect()
    };
    bench.write("in.jsonl", lines(&documents));
    bench.write("in.csv", quoted(&documents));
    bench.write("in.wet", wet(&documents));
    bench.write("in2.jsonl.gz", gzip(lines(&documents).as_bytes()));
    for (input, kept, all) in [
        ("in.jsonl", "kept.jsonl", lines(&left)),
        ("in.csv", "kept.csv", quoted(&left)),
        ("in.wet", "kept.wet", wet(&left)),
        ("in2.jsonl.gz", "kept.jsonl", lines(&left)),
    ] {
        let report = bench.json(&format!("passages {input} -o out-{input} --min-words 8 --cut -q"));
        assert_eq!(report["kept_files"], json!([kept]));
        assert_eq!(bench.rows(&format!("out-{input}/spans.tsv"), SPANS), expected, "{input}");
        let found = bench.read(&format!("out-{input}/{kept}"));
        if input.ends_with("csv") {
            // Unchanged fields may be written differently, but parse to the same values.
            let keys = found.lines().filter(|line| line.starts_with("doc-")).count();
            assert_eq!(keys, documents.len());
            bench.ok(&format!("passages out-{input}/{kept} {input} -o again-{input} --min-words 8 -q"));
        } else {
            assert_eq!(found, all, "{input}");
        }
        // What remains of a document repeats nothing of an earlier input document.
        let bytes: u64 = report["repeated_bytes"].as_u64().unwrap();
        let sizes = |documents: &[Document]| documents.iter().map(|(_, text)| text.len() as u64).sum::<u64>();
        assert_eq!(bytes, sizes(&documents) - sizes(&left));
    }
    let files: Vec<String> = documents.iter().map(|(key, _)| format!("texts/{key}.txt")).collect();
    let files = files.join(" ");
    for (key, text) in &documents {
        bench.write(&format!("texts/{key}.txt"), text);
    }
    bench.ok(&format!("passages {files} -o folder --min-words 8 --cut -q"));
    let found = bench.read("folder/kept.jsonl");
    for (line, (_, text)) in found.lines().zip(&left) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["text"], json!(text));
    }
}

#[test]
fn span_offsets_are_bytes_of_the_original_text() {
    let bench = Bench::new();
    let first = "Der Straßenbahnfahrer fuhr übers Café am Platz.";
    let second = "»ＤＥＲ  straßenbahn\u{ad}fahrer, fuhr U\u{308}BERS cafe\u{301}« sagte er";
    bench.write("a.jsonl", lines(&[("a".into(), first.into()), ("b".into(), second.into())]));
    bench.ok("passages a.jsonl -o out --min-words 4 --normal-form nfkc --fold invisible --cut -q");
    let (start, end) = (second.find('Ｄ').unwrap(), second.find('«').unwrap());
    let expected = format!("b\t{start}\t{end}\ta\t0\t5");
    assert_eq!(bench.rows("out/spans.tsv", SPANS), [expected]);
    let kept = bench.read("out/kept.jsonl");
    let kept: Value = serde_json::from_str(kept.lines().nth(1).unwrap()).unwrap();
    assert_eq!(kept["text"], "»« sagte er");
    bench.ok("passages a.jsonl -o plain --min-words 4 -q");
    assert!(bench.rows("plain/spans.tsv", SPANS).is_empty());
}

#[test]
fn exact_bytes_option_compares_bytes_and_unit_option_whole_units() {
    let bench = Bench::new();
    let texts = [
        ("a", "Menu | Home\nOne two three. Four five.\n\nLast words here"),
        ("b", "menu home\nOne two three.  Four five.\n\n\nlast Words here\nmore"),
        ("c", "Menu | Home\nMenu | Home\nFour five. One two three."),
    ]
    .map(|(key, text)| (key.to_owned(), text.to_owned()));
    bench.write("a.jsonl", lines(&texts));
    let rows = |options: &str| {
        let out = format!("out{}", options.replace(' ', "_"));
        bench.ok(&format!("passages a.jsonl -o {out} -q {options}"));
        bench.rows(&format!("{out}/spans.tsv"), SPANS)
    };
    assert_eq!(rows("--min-words 5 --exact bytes"), Vec::<String>::new());
    assert_eq!(rows("--min-words 3 --exact bytes"), ["b\t10\t23\ta\t12\t3", "c\t35\t48\ta\t12\t3"]);
    let lines = ["b\t0\t55\ta\t0\t10", "c\t0\t12\ta\t0\t2", "c\t12\t24\ta\t0\t2"];
    assert_eq!(rows("--unit line"), lines);
    assert_eq!(rows("--unit line --min-words 3"), ["b\t10\t55\ta\t12\t8"]);
    assert_eq!(rows("--unit line --exact bytes"), ["c\t0\t12\ta\t0\t2", "c\t12\t24\ta\t0\t2"]);
    assert_eq!(rows("--unit paragraph"), ["b\t0\t39\ta\t0\t7"]);
    let sentences = rows("--unit sentence --min-words 2");
    assert!(sentences.contains(&"c\t24\t35\ta\t27\t2".to_owned()), "{sentences:?}");
    assert!(sentences.contains(&"c\t35\t49\ta\t12\t3".to_owned()), "{sentences:?}");
}

#[test]
fn invalid_passage_options_are_refused_with_advice() {
    let bench = Bench::new();
    bench.write("a.jsonl", lines(&pieced(1, 3)));
    let usage = |line: &str| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    says(&usage("passages - -o out"), &["standard input", "write it to a file"]);
    says(&usage("passages a.jsonl -o out --words 3"), &["--words", "--min-words"]);
    says(&usage("passages a.jsonl -o out --tokens characters"), &["characters", "unicode-words"]);
    bench.ok("passages a.jsonl -o out -q");
    says(&bench.refused("passages a.jsonl -o out -q"), &["out", "--force"]);
    bench.ok("passages a.jsonl -o out --force -q");
    bench.write("out/mine.txt", "mine");
    says(&bench.refused("passages a.jsonl -o out --force -q"), &["mine.txt", "not made by"]);
    assert_eq!(bench.read("out/mine.txt"), "mine");
    bench.write("twice.jsonl", lines(&pieced(1, 1)) + &lines(&pieced(1, 1)));
    bench.ok("passages twice.jsonl -o numbered --min-words 5 -q");
    assert!(bench.read("numbered/spans.tsv").contains("\ndoc-0#2\t0\t"));
    says(
        &bench.refused("passages twice.jsonl -o error --repeated-keys error -q"),
        &["twice.jsonl", "doc-0", "--repeated-keys"],
    );
    for how in ["first", "last"] {
        let report = bench.json(&format!("passages twice.jsonl -o {how} --repeated-keys {how} -q"));
        assert_eq!((&report["documents"], &report["spans"]), (&json!(1), &json!(0)), "{how}");
    }
    assert!(bench.names("").iter().all(|name| !name.starts_with('.')), "nothing half done is left");
}

#[test]
fn daily_runs_against_an_index_find_the_passages_of_one_run() {
    let bench = Bench::new();
    let documents = pieced(11, 300);
    let expected = spans(&documents, 9, false);
    let mut found = Vec::new();
    for (day, documents) in documents.chunks(100).enumerate() {
        bench.write(&format!("{day}.jsonl"), lines(documents));
        let against = if day > 0 { "--against days.psg" } else { "" };
        bench.ok(&format!(
            "passages {day}.jsonl -o out-{day} --min-words 9 --index days.psg -q --memory 1M {against}"
        ));
        found.extend(bench.rows(&format!("out-{day}/spans.tsv"), SPANS));
    }
    assert_eq!(found, expected);
    says(&bench.ok("passages verify days.psg"), &["sound", "300 documents in 3 parts"]);

    let other = bench.refused("passages 0.jsonl -o other --min-words 8 --against days.psg -q");
    says(&other, &["days.psg", "min-words", "9", "8"]);
    let other = bench.refused("passages 0.jsonl -o other --min-words 9 --fold invisible --index days.psg -q");
    says(&other, &["days.psg", "invisible"]);
    says(&bench.refused("passages 0.jsonl -o other --against missing -q"), &["missing", "PASSAGES"]);
    let mut part = std::fs::read(bench.path("days.psg/passages-000002.part")).unwrap();
    let middle = part.len() / 2;
    part[middle] ^= 4;
    std::fs::remove_file(bench.path("days.psg/passages-000002.part")).unwrap();
    bench.write("days.psg/passages-000002.part", part);
    says(&bench.refused("passages verify days.psg"), &["passages-000002.part", "damaged", "checksum"]);
}

#[test]
fn runs_that_add_parts_merge_parts_of_similar_size() {
    let bench = Bench::new();
    let days = pieced(8, 54);
    for (day, documents) in days.chunks(3).enumerate() {
        let name = format!("{day}.jsonl");
        bench.write(&name, lines(documents));
        let job = format!("passages {name} -o out{day} --min-words 12 --against days.psg --index days.psg");
        let job = if day == 0 { job.replace(" --against days.psg", "") } else { job };
        let report = bench.json(&job);
        // The first eight parts stay separate. The ninth run merges all of them into one part.
        let (parts, merged) = if day == 8 || day == 16 { (1, json!(9)) } else { (day % 8 + 1, Value::Null) };
        assert_eq!((&report["index_parts"], &report["merged_parts"]), (&json!(parts), &merged), "{day}");
    }
    says(&bench.ok("passages verify days.psg"), &["sound: 54 documents in 2 parts"]);
    // The spans of all days equal the spans of one run over all documents.
    let found: Vec<String> =
        (0..18).flat_map(|day| bench.rows(&format!("out{day}/spans.tsv"), SPANS)).collect();
    assert_eq!(found, spans(&days, 12, false));
    let said = bench.ok("passages 0.jsonl -o again --min-words 12 --index other.psg");
    says(&said, &["index", "1  parts of other.psg"]);
}

#[test]
fn passage_query_finds_documents_sharing_passages_with_a_text() {
    let bench = Bench::new();
    let sentence = |number: usize| -> String {
        (0..20).map(|at| format!("term{number}x{at} ")).collect::<Vec<_>>().concat()
    };
    let documents: Vec<Document> = (0..40)
        .map(|number| (format!("doc-{number}"), (0..5).map(|at| sentence(number * 5 + at)).collect()))
        .collect();
    bench.write("all.jsonl", lines(&documents));
    bench.ok("passages all.jsonl -o out --min-words 12 --index all.psg -q");
    let (first, second) = (sentence(7), sentence(123));
    let question = format!("is this known: {first} or {second}and not term1 term2 term3");
    bench.write(
        "questions.jsonl",
        lines(&[("q".into(), question.clone()), ("none".into(), "nothing".into())]),
    );
    let rows = rows_of(&bench.ok("passages query all.psg questions.jsonl -q"));
    let begin = question.find(first.trim()).unwrap();
    let there = documents[1].1.find(first.trim()).unwrap();
    let length = first.trim().len();
    assert_eq!(rows[0], format!("q\tdoc-1\t{begin}\t{}\t{there}\t{}\t20", begin + length, there + length));
    assert_eq!(rows.len(), 2);
    assert!(rows[1].starts_with("q\tdoc-24\t"), "{}", rows[1]);
    let out = bench.ok("passages query all.psg questions.jsonl -q --json --limit 1");
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = &answers[0];
    assert_eq!((&answer["key"], &answer["words_found"]), (&json!("q"), &json!(40)));
    assert_eq!((answer["documents"].as_array().unwrap().len(), &answer["documents_found"]), (1, &json!(2)));
    assert_eq!((&answers[1]["words"], &answers[1]["words_found"]), (&json!(1), &json!(0)));
}

#[test]
fn deleted_documents_are_neither_sources_nor_answers() {
    let bench = Bench::new();
    let text = |number: usize| (0..20).map(|at| format!("term{number}x{at} ")).collect::<Vec<_>>().concat();
    let document = |key: &str, number: usize| (key.to_owned(), text(number));
    bench.write("1.jsonl", lines(&[document("a", 1), document("b", 2)]));
    bench.write("2.jsonl", lines(&[document("c", 3), document("d", 1)]));
    bench.write("3.jsonl", lines(&[document("e", 1), document("f", 2)]));
    for day in [1, 2] {
        bench.ok(&format!("passages {day}.jsonl -o out{day} --min-words 12 --index days.psg -q"));
    }
    let found = |more: &str| rows_of(&bench.ok(&format!("passages query days.psg 3.jsonl -q {more}")));
    let documents = |rows: &[String]| -> Vec<String> {
        rows.iter().map(|row| row.split('\t').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(documents(&found("")), ["a", "d", "b"]);
    // If `--max-places` limits the search, the answer may lack documents, which a note reports.
    let bounded = bench.command("passages query days.psg 3.jsonl --max-places 1").output().unwrap();
    says(&String::from_utf8(bounded.stderr).unwrap(), &["documents may be missing", "--max-places"]);

    let deleted = bench.json("passages delete days.psg a nobody");
    assert_eq!(deleted, json!({"documents": 3, "deleted": 1, "absent": 1}));
    for merged in [false, true] {
        if merged {
            let done = bench.json("passages compact days.psg --memory 1M");
            assert_eq!(
                (&done["parts_before"], &done["parts"], &done["dropped"]),
                (&json!(2), &json!(1), &json!(1))
            );
            says(&bench.ok("passages compact days.psg"), &["one part, nothing to merge", "3 documents"]);
        }
        says(&bench.ok("passages verify days.psg"), &["sound: 3 documents in"]);
        assert_eq!(documents(&found("")), ["d", "b"]);
        // The first source of the text of `a` is now `d`.
        bench.ok("passages 3.jsonl -o out3 --force --min-words 12 --against days.psg -q");
        let length = text(1).trim().len();
        let expected = [format!("e\t0\t{length}\td\t0\t20"), format!("f\t0\t{length}\tb\t0\t20")];
        assert_eq!(bench.rows("out3/spans.tsv", SPANS), expected);
    }
    says(&bench.refused("passages delete nothing a"), &["nothing", "PASSAGES"]);
    says(&bench.refused("passages compact nothing"), &["nothing", "PASSAGES"]);
}

/// Returns the lines of an answer after its header.
fn rows_of(table: &str) -> Vec<String> {
    crate::support::rows(table, "key\tdocument\tstart\tend\tdocument_start\tdocument_end\twords")
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

/// Reads the files of `tests/golden/format-1.0` that only the command can read.
#[test]
fn golden_index_of_passages_and_list_of_spans_are_read() {
    let bench = Bench::new();
    let passages = golden("format-1.0/passages");
    bench.ok(&format!("passages verify {}", passages.display()));
    bench.write(
        "query.jsonl",
        "{\"id\": \"q\", \"text\": \"the shop at the old mill: opening hours are from nine to five\"}\n",
    );
    let found = bench.ok(&format!("passages query {} query.jsonl", passages.display()));
    assert!(found.contains("\tpage 2\t") && !found.contains("\tpage 3\t"), "{found}");

    // The query is sketched with the list of spans, so that the boilerplate that all pages share is ignored.
    let weighted = golden("format-1.0/weighted");
    let list = weighted.join("boilerplate");
    bench.write(
        "pages.jsonl",
        "{\"id\": \"q\", \"text\": \"Home | About us | Contact the shop at the old mill: \
        opening hours are from nine to five. text number 12 of page 5, words 144 \u{2192} \u{a9}12 even\"}\n",
    );
    let query = format!("query {} pages.jsonl --boilerplate {}", weighted.display(), list.display());
    let found = bench.ok(&format!("{query} --verify signature --near 0.9"));
    assert!(found.contains("page 24"), "{found}");
}
