//! `twindex passages`: spans must match the definition for any number of threads, memory budget and input format.
//! `--cut` must remove exactly these spans.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Bench, Document, Random, gzip, says};

pub(crate) const SPANS: &str = "key\tstart\tend\tfirst_key\tfirst_start\twords";
const CLASSES: &str = "class\twords\tkey\tstart";

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

/// Returns the words of an ASCII text.
fn words(text: &str) -> Vec<String> {
    tokens(text).into_iter().map(|(start, end)| text[start..end].to_lowercase()).collect()
}

/// Computes the spans from their definition, with a map from t-grams to their first occurrences.
pub(crate) fn spans(documents: &[Document], t: usize, within: bool) -> Vec<String> {
    let mut first: HashMap<Vec<String>, (usize, usize)> = HashMap::new();
    let places: Vec<_> = documents.iter().map(|(_, text)| tokens(text)).collect();
    let words: Vec<Vec<String>> = documents.iter().map(|(_, text)| words(text)).collect();
    let mut lines = Vec::new();
    for (number, (key, _)) in documents.iter().enumerate() {
        // Position, source, and number of consecutive matching positions.
        let mut runs: Vec<(usize, (usize, usize), usize)> = Vec::new();
        for (position, gram) in words[number].windows(t).enumerate() {
            let source = *first.entry(gram.to_vec()).or_insert((number, position));
            if source == (number, position) || (!within && source.0 == number) {
                continue;
            }
            // A run goes on while the words after the source are the same.
            let beside =
                |from: (usize, usize), count: usize| words[from.0].get(from.1 + count..from.1 + count + t);
            match runs.last_mut() {
                Some((begin, from, count))
                    if *begin + *count == position && beside(*from, *count) == Some(gram) =>
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
fn run_in_periodic_text_is_one_span() {
    let bench = Bench::new();
    let block: String = (0..60).map(|number| format!("w{number} ")).collect::<Vec<_>>().concat();
    for (name, text, count) in [
        ("zeros", "0,0,0,0,".repeat(500), 2000),
        ("three", "n a x ".repeat(1000), 3000),
        ("table", "0x00, 0x00, 0x01, 0x00, ".repeat(500), 2000),
    ] {
        let documents: Vec<Document> =
            ["a", "b", "c"].map(|key| (key.to_owned(), format!("{text}{key}"))).into();
        bench.write("in.jsonl", lines(&documents));
        let report = bench.json(&format!("passages in.jsonl -o {name} -q"));
        let span =
            |key: &str| format!("{key}\t0\t{}\ta\t0\t{count}", text.trim_end_matches([' ', ',']).len());
        assert_eq!(bench.rows(&format!("{name}/spans.tsv"), SPANS), [span("b"), span("c")]);
        // Three copies are one class, and all but the last word of each is duplicated.
        let class = ["a", "b", "c"].map(|key| format!("1\t{count}\t{key}\t0"));
        assert_eq!(bench.rows(&format!("{name}/classes.tsv"), CLASSES), class);
        assert_eq!((&report["duplicated"], &report["units"]), (&json!(3 * count), &json!(3 * count + 3)));
    }
    bench.write("self.jsonl", lines(&[("a".into(), block.repeat(20))]));
    bench.ok("passages self.jsonl -o self --within -q");
    let length = block.len();
    let expected = format!("a\t{length}\t{}\ta\t0\t1140", 20 * length - 1);
    assert_eq!(bench.rows("self/spans.tsv", SPANS), [expected]);
}

#[test]
fn classes_have_all_places_of_equal_spans() {
    let bench = Bench::new();
    for (seed, within) in [(3, false), (4, true)] {
        let mut documents = pieced(seed, 150);
        documents.extend(pieced(seed, 20).into_iter().map(|(key, text)| (key + "-again", text)));
        bench.write("all.jsonl", lines(&documents));
        let expected = spans(&documents, 6, within);
        let text_of: HashMap<&str, &str> =
            documents.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        // Spans are grouped by their words. The place of the source comes first.
        let mut groups: HashMap<Vec<String>, Vec<String>> = HashMap::new();
        let mut covered: HashMap<String, Vec<bool>> = HashMap::new();
        for line in &expected {
            let [key, start, end, first_key, first_start, count] =
                line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let (begin, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
            let class = groups.entry(words(&text_of[key][begin..end])).or_default();
            if class.is_empty() {
                class.push(format!("{first_key}\t{first_start}"));
            }
            class.push(format!("{key}\t{start}"));
            for (key, start) in [(key, begin), (first_key, first_start.parse().unwrap())] {
                let own = tokens(text_of[key]);
                let first = own.iter().position(|place| place.0 == start).unwrap();
                let flags = covered.entry(key.to_owned()).or_insert_with(|| vec![false; own.len()]);
                flags[first..first + count.parse::<usize>().unwrap()].fill(true);
            }
        }
        for memory in ["64K", "1G"] {
            let within = if within { "--within" } else { "" };
            let report = bench.json(&format!(
                "passages all.jsonl -o out --force --min-words 6 {within} --memory {memory} -q"
            ));
            let mut found: Vec<(String, usize, Vec<String>)> = Vec::new();
            for row in bench.rows("out/classes.tsv", CLASSES) {
                let [class, count, place] = row.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
                if found.last().is_none_or(|(last, ..)| last != class) {
                    found.push((class.to_owned(), count.parse().unwrap(), Vec::new()));
                }
                found.last_mut().unwrap().2.push(place.to_owned());
            }
            let repeated: Vec<usize> =
                found.iter().map(|(_, count, places)| count * (places.len() - 1)).collect();
            assert!(repeated.is_sorted_by(|one, next| one >= next) && found.len() > 50);
            let mut places: Vec<&Vec<String>> = found.iter().map(|(_, _, places)| places).collect();
            let mut wanted: Vec<&Vec<String>> = groups.values().collect();
            places.sort();
            wanted.sort();
            assert_eq!(places, wanted);
            assert_eq!(report["classes"], json!(groups.len()));
            let duplicated = covered.values().flatten().filter(|&&is_covered| is_covered).count();
            assert_eq!(report["duplicated"], json!(duplicated));
        }
    }
    // Two equal documents are duplicated as a whole.
    let text = "one two three four five six seven eight";
    bench.write("two.jsonl", lines(&[("a".into(), text.into()), ("b".into(), text.into())]));
    says(
        &bench.ok("passages two.jsonl -o two --min-words 4"),
        &["1  of equal passages", "duplicated          16  of 16 words, 100.0 %"],
    );
}

#[test]
fn only_against_cuts_what_the_index_has_and_counts_the_rest() {
    let bench = Bench::new();
    let (eval, mut train) = (pieced(31, 12), pieced(32, 150));
    train.extend(pieced(31, 40).into_iter().map(|(key, text)| (key + "-copy", text)));
    bench.write("eval.jsonl", lines(&eval));
    bench.write("train.jsonl", lines(&train));
    bench.ok("passages eval.jsonl -o eval --min-words 7 --index eval.psg -q");
    let known: std::collections::HashSet<Vec<String>> = eval
        .iter()
        .flat_map(|(_, text)| words(text).windows(7).map(<[String]>::to_vec).collect::<Vec<_>>())
        .collect();
    let without: Vec<Document> = train
        .iter()
        .map(|(key, text)| {
            let (places, mut is_cut) = (tokens(text), vec![false; text.len()]);
            for (at, gram) in words(text).windows(7).enumerate() {
                if known.contains(gram) {
                    is_cut[places[at].0..places[at + 6].1].fill(true);
                }
            }
            (key.clone(), text.char_indices().filter(|&(at, _)| !is_cut[at]).map(|(_, c)| c).collect())
        })
        .collect();
    assert!(without.iter().zip(&train).filter(|(left, all)| left.1 != all.1).count() > 20);
    let job = "passages train.jsonl --min-words 7 --against eval.psg --cut";
    let only = bench.json(&format!("{job} -o only --only-against"));
    assert_eq!(bench.read("only/kept.jsonl"), lines(&without));
    let of_eval = |rows: Vec<String>| {
        let keys: Vec<&str> = eval.iter().map(|(key, _)| key.as_str()).collect();
        rows.iter().filter(|row| keys.contains(&row.split('\t').nth(3).unwrap())).count()
    };
    assert_eq!(json!(of_eval(bench.rows("only/spans.tsv", SPANS))), only["spans"]);
    assert_eq!(only["spans_of_history"], only["spans"]);
    assert!(only["spans_left"].as_u64().unwrap() > 50);
    let all = bench.json(&format!("{job} -o all"));
    assert!(all["spans"].as_u64() > only["spans"].as_u64() && all["spans_left"].is_null());
    says(&bench.ok(&format!("{job} -o said --only-against")), &["have their source in eval.psg", "left"]);
    says(&bench.ok(&format!("{job} -o said --force")), &["have their source in eval.psg", "listed, too"]);
    says(
        &bench.misused("passages train.jsonl -o none --only-against"),
        &["--only-against goes with --against"],
    );
    // A run with more spans than the limit has its results, and exits with status 1.
    let spans = only["spans"].as_u64().unwrap();
    for (max, status) in [(spans, 0), (spans - 1, 1)] {
        let mut command = bench.command(&format!("{job} -o max --force -q --only-against --max-spans {max}"));
        assert_eq!(command.output().unwrap().status.code(), Some(status), "{max}");
        assert_eq!(bench.rows("max/spans.tsv", SPANS).len() as u64, spans);
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
