//! `dedup --without-boilerplate` must decide as if shared spans did not exist: for every input format, in one run and in
//! daily runs. `stream`, `build` and `query` must use the same words or refuse.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::support::{Bench, Document, Random, jsonl, says};

const PAIRS: &str = "document\tkept\tresemblance\tintersection\tunion";
const WORDS: usize = 4;

/// Returns pages of sites. Each page has a text, which may be a near copy of another, between the site's menu and
/// footer; some pages have no text.
fn pages(random: &mut Random, prefix: &str, count: usize) -> Vec<Document> {
    let run = |salt: usize, words: usize| -> String {
        let word = |number: usize| format!("x{}", (salt * 31 + number * number) % 911);
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    };
    (0..count)
        .map(|number| {
            let site = random.below(3);
            let family = random.below(count / 2);
            let mut body: Vec<String> = run(1000 + family, 20).split(' ').map(str::to_owned).collect();
            if random.below(2) == 0 {
                body[7] = format!("y{number}");
            }
            let body = if random.below(12) == 0 { String::new() } else { body.join(" ") };
            let text = format!("{}. {body}; {}", run(site, 12), run(site + 50, 15));
            (format!("{prefix}{number:03}"), text)
        })
        .collect()
}

/// Returns the texts without the spans that more than `more_than` documents share, computed with sets of t-grams. A text
/// without remaining words becomes a text without words that is equal only to its copies.
fn without(texts: &[Document], counted: &[Document], more_than: usize) -> (Vec<Document>, [u64; 3]) {
    let grams = |text: &str| -> Vec<Vec<String>> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        words.windows(WORDS).map(<[String]>::to_vec).collect()
    };
    let mut documents: HashMap<Vec<String>, usize> = HashMap::new();
    for (_, text) in counted {
        for gram in grams(text).into_iter().collect::<HashSet<_>>() {
            *documents.entry(gram).or_default() += 1;
        }
    }
    let mut counts = [0; 3];
    let rest = texts.iter().enumerate().map(|(number, (key, text))| {
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mut is_out = vec![false; words.len()];
        for (first, gram) in grams(text).iter().enumerate() {
            if documents.get(gram).is_some_and(|&documents| documents > more_than) {
                is_out[first..first + WORDS].fill(true);
            }
        }
        let rest: Vec<&str> =
            words.iter().zip(&is_out).filter(|(_, out)| !**out).map(|(word, _)| *word).collect();
        counts[0] += (words.len() - rest.len()) as u64;
        counts[1] += u64::from(rest.len() < words.len());
        counts[2] += u64::from(rest.is_empty());
        // Copies of a text without remaining words stay equal.
        let first = texts.iter().position(|(_, other)| other == text).unwrap_or(number);
        (key.clone(), if rest.is_empty() { ".".repeat(first + 1) } else { rest.join(" ") })
    });
    (rest.collect(), counts)
}

fn kept(bench: &Bench, folders: &[&str]) -> BTreeSet<String> {
    let read = |folder: &&str| bench.read(&format!("{folder}/clusters.tsv"));
    let is_kept = |line: &&str| {
        let fields: Vec<&str> = line.split('\t').collect();
        fields[0] == fields[2]
    };
    let keys = |table: String| -> Vec<String> {
        table
            .lines()
            .skip(1)
            .filter(is_kept)
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect()
    };
    folders.iter().flat_map(|folder| keys(read(folder))).collect()
}

#[test]
fn boilerplate_is_ignored_for_any_input_format_threads_and_memory() {
    let bench = Bench::new();
    let all = pages(&mut Random(3), "d", 90);
    bench.write("docs.jsonl", jsonl(&all));
    let (rest, [words, documents, empty]) = without(&all, &all, 8);
    bench.write("rest.jsonl", jsonl(&rest));
    let options = "--threshold 0.7 -q";
    let report = bench.json(&format!("dedup docs.jsonl -o out --without-boilerplate 8:4 {options}"));
    let found = &report["boilerplate"];
    assert_eq!(found["words_left_out"].as_u64(), Some(words), "{found}");
    assert_eq!(found["documents"].as_u64(), Some(documents), "{found}");
    assert_eq!(found["documents_without_words"].as_u64(), Some(empty), "{found}");
    assert!(empty > 2 && words > 1000 && found["spans"].as_u64() > Some(20), "{found}");
    bench.ok(&format!("dedup rest.jsonl -o rest {options}"));
    assert_eq!(bench.rows("out/pairs.tsv", PAIRS), bench.rows("rest/pairs.tsv", PAIRS));
    assert_eq!(bench.read("out/clusters.tsv"), bench.read("rest/clusters.tsv"));
    assert!(bench.rows("out/pairs.tsv", PAIRS).len() > 10);
    // If all words are compared, menus and footers make different pages near.
    bench.ok(&format!("dedup docs.jsonl -o plain {options}"));
    assert_ne!(bench.read("plain/clusters.tsv"), bench.read("out/clusters.tsv"));

    // The results are the same with little memory, on one and on three threads, and for other input formats.
    let csv: Vec<String> = all.iter().map(|(key, text)| format!("{key},\"{text}\"\n")).collect();
    bench.write("docs.csv", format!("id,text\n{}", csv.concat()));
    let more: Vec<String> = all
        .iter()
        .map(|(key, text)| format!("{}\n", serde_json::json!({"id": key, "text": text, "more": 1})))
        .collect();
    bench.write("more.jsonl", more.concat());
    for (input, more) in [
        ("docs.jsonl", "--memory 64K --threads 1"),
        ("docs.jsonl", "--threads 3"),
        ("docs.csv", ""),
        ("more.jsonl", "--resume"),
    ] {
        let line = format!("dedup {input} -o again --force --without-boilerplate 8:4 {options} {more}");
        bench.ok(&line);
        for name in ["pairs.tsv", "clusters.tsv", "boilerplate"] {
            let read = |folder: &str| std::fs::read(bench.path(&format!("{folder}/{name}"))).unwrap();
            assert!(read("again") == read("out"), "{name} of {line}");
        }
    }
    // `why` computes its counts from the same words: all except boilerplate.
    for row in bench.rows("out/pairs.tsv", PAIRS).iter().take(4) {
        let why = bench.json(&format!("why out {}", row.split('\t').next().unwrap()));
        assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
        assert!(why["notes"].to_string().contains("do not count"), "{why}");
    }
    // Other methods and measures exclude the same words (boilerplate) from their comparisons.
    for way in ["--near within:6", "--near containment:0.8", "--weights tf"] {
        bench.ok(&format!("dedup rest.jsonl -o a --force {way} -q"));
        bench.ok(&format!("dedup docs.jsonl -o b --force --without-boilerplate @out/boilerplate {way} -q"));
        assert_eq!(kept(&bench, &["a"]).len(), kept(&bench, &["b"]).len(), "{way}");
    }
}

#[test]
fn boilerplate_list_of_day_1_is_used_by_later_runs() {
    let bench = Bench::new();
    let mut random = Random(8);
    let (old, new) = (pages(&mut random, "a", 70), pages(&mut random, "b", 70));
    bench.write("old.jsonl", jsonl(&old));
    bench.write("new.jsonl", jsonl(&new));
    bench.write("all-rest.jsonl", jsonl(&without(&[old.clone(), new.clone()].concat(), &old, 6).0));
    let options = "--threshold 0.7 -q";
    bench.ok(&format!("dedup old.jsonl -o day1 --index kept --without-boilerplate 6:4 {options}"));
    bench.ok(&format!("dedup new.jsonl -o day2 --against day1 {options}"));
    bench.ok(&format!("dedup all-rest.jsonl -o all {options}"));
    assert_eq!(kept(&bench, &["day1", "day2"]), kept(&bench, &["all"]));
    let list = |folder: &str| std::fs::read(bench.path(&format!("{folder}/boilerplate"))).unwrap();
    assert_eq!(list("day1"), list("day2"));
    bench.ok(&format!("dedup new.jsonl -o day3 --against day1/index {options}"));
    assert_eq!(bench.read("day3/clusters.tsv"), bench.read("day2/clusters.tsv"));
    // Compares the new documents with the texts of a history.
    bench.ok(&format!("dedup new.jsonl -o day4 --against day1 --max-work 1000000000 {options}"));
    assert_eq!(list("day4"), list("day1"));

    // Another N, another list, and a history that was compared with all words are refused.
    let refused = |line: &str, parts: &[&str]| {
        let output = bench.command(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{line}");
        says(&said, parts);
    };
    refused(
        "dedup new.jsonl -o x --against day1 --without-boilerplate 7",
        &["--without-boilerplate 7", "made with 6"],
    );
    refused("dedup new.jsonl -o x --against day1 --without-boilerplate 6:5", &["made with 4"]);
    bench.ok(&format!("dedup old.jsonl -o plain --index kept {options}"));
    refused(
        "dedup new.jsonl -o x --against plain --without-boilerplate 6",
        &["plain has no list", "--without-boilerplate @FILE"],
    );
    refused("dedup new.jsonl -o x --against day1 --against plain", &["plain", "is not that of day1"]);
    refused("dedup new.jsonl -o x --without-boilerplate 6 --near equal", &["--without-boilerplate"]);
    refused("dedup new.jsonl -o x --without-boilerplate :5", &["N:T with 1 to 65535 words", "\":5\""]);
    refused("dedup new.jsonl -o x --without-boilerplate 6:0", &["N:T with 1 to 65535 words", "\"6:0\""]);
    refused("dedup new.jsonl -o x --without-boilerplate @new.jsonl", &["new.jsonl", "TWXSPAN1"]);
    let mut piped = bench.command("dedup - -o x --without-boilerplate 6");
    let said = String::from_utf8(piped.write_stdin("{}\n").output().unwrap().stderr).unwrap();
    says(&said, &["--without-boilerplate reads its inputs three times"]);
    assert!(!bench.path("x").exists());

    // `stream` uses the list next to the index, and refuses to run without it.
    let streamed = bench.json("stream day1/index new.jsonl --drop-duplicates -q");
    let fresh: BTreeSet<String> = kept(&bench, &["day2"]);
    assert_eq!(streamed["new"].as_u64(), Some(fresh.len() as u64), "{streamed}");
    std::fs::rename(bench.path("day1/boilerplate"), bench.path("list")).unwrap();
    refused("stream day1/index new.jsonl -q", &["day1/index", "--boilerplate FILE"]);
    refused("query day1/index new.jsonl", &["day1/index", "--boilerplate FILE"]);
    refused("query day1/index new.jsonl --boilerplate new.jsonl", &["new.jsonl"]);
    refused("query plain/index new.jsonl --boilerplate list", &["plain/index", "made of all words"]);
    let found = bench.ok("query day1/index new.jsonl --boilerplate list");
    assert!(found.lines().count() >= fresh.len(), "{found}");

    // An index built with a list keeps it, and finds the same pairs as `dedup`.
    bench.ok("build built.twx old.jsonl --boilerplate list --method minhash --near 0.7 -q");
    let stats: Value = bench.json("stats built.twx");
    assert!(stats.to_string().contains("boilerplate"), "{stats}");
    bench.ok("verify built.twx");
    let hits = bench.ok("query built.twx new.jsonl");
    assert!(hits.lines().count() > 20, "{hits}");
    bench.ok("stream streamed.twx old.jsonl --boilerplate list --method minhash --near 0.7 -q");
    assert_eq!(bench.ok("query streamed.twx new.jsonl"), hits);
    refused("build raw.twx --fingerprints list --boilerplate list", &["--boilerplate"]);
}

#[test]
fn idf_weights_apply_to_shingles_outside_boilerplate() {
    let bench = Bench::new();
    let mut random = Random(5);
    let (old, new) = (pages(&mut random, "a", 80), pages(&mut random, "b", 40));
    let all = [old.clone(), new.clone()].concat();
    bench.write("old.jsonl", jsonl(&old));
    bench.write("new.jsonl", jsonl(&new));
    bench.write("rest.jsonl", jsonl(&without(&old, &old, 8).0));
    bench.write("all-rest.jsonl", jsonl(&without(&all, &old, 8).0));
    // A table that counted all words can be used with any list.
    bench.ok("idf old.jsonl -o words.idf --words 2 --min-df 1 -q");
    let spans = "--without-boilerplate 8:4";
    let options = "--weights idf --idf words.idf --weight-unit 0.25 --threshold 0.6 -q";
    bench.ok(&format!("dedup old.jsonl -o day1 --index kept {spans} {options}"));
    bench.ok(&format!("dedup rest.jsonl -o rest {options}"));
    for name in ["pairs.tsv", "clusters.tsv"] {
        assert_eq!(bench.read(&format!("day1/{name}")), bench.read(&format!("rest/{name}")), "{name}");
    }
    bench.ok(&format!("dedup old.jsonl -o tf {spans} --words 2 --weights tf --threshold 0.6 -q"));
    assert_ne!(bench.read("day1/pairs.tsv"), bench.read("tf/pairs.tsv"), "the table decides");
    bench.ok(&format!("dedup old.jsonl -o plain {options}"));
    assert_ne!(bench.read("day1/clusters.tsv"), bench.read("plain/clusters.tsv"), "the list decides");
    bench.ok("verify day1/index");
    for row in bench.rows("day1/pairs.tsv", PAIRS).iter().take(4) {
        let why = bench.json(&format!("why day1 {}", row.split('\t').next().unwrap()));
        assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
    }
    // Later runs, streams and queries of the index use its table together with the list next to it.
    bench.ok(&format!("dedup new.jsonl -o day2 --against day1 {options}"));
    bench.ok(&format!("dedup all-rest.jsonl -o all {options}"));
    assert_eq!(kept(&bench, &["day1", "day2"]), kept(&bench, &["all"]));
    let hits = bench.ok("query day1/index new.jsonl");
    assert!(hits.lines().count() > 8, "{hits}");
    let streamed = bench.json("stream day1/index new.jsonl --drop-duplicates -q");
    assert_eq!(streamed["new"].as_u64(), Some(kept(&bench, &["day2"]).len() as u64), "{streamed}");
    let build = "--method minhash --weights idf --weight-unit 0.25 --idf words.idf --sets kept --near 0.6";
    bench.ok(&format!("build built.twx old.jsonl --boilerplate day1/boilerplate {build} -q"));
    bench.ok("verify built.twx");
    // Simhash fingerprints use the same `--idf` weights of words.
    bench.ok(&format!("dedup old.jsonl -o near1 {spans} --near within:8 --idf words.idf -q"));
    bench.ok("dedup rest.jsonl -o near2 --near within:8 --idf words.idf -q");
    assert_eq!(kept(&bench, &["near1"]).len(), kept(&bench, &["near2"]).len());

    // A table that counted texts without the spans of a list can be used only with that list.
    bench.ok("idf old.jsonl -o left.idf --words 2 --min-df 1 --boilerplate day1/boilerplate -q");
    bench.ok("idf rest.jsonl -o rest.idf --words 2 --min-df 1 -q");
    let by = |table: &str| format!("--weights idf --idf {table} --weight-unit 0.25 --threshold 0.6 -q");
    bench.ok(&format!("dedup old.jsonl -o left --without-boilerplate @day1/boilerplate {}", by("left.idf")));
    bench.ok(&format!("dedup rest.jsonl -o left-rest {}", by("rest.idf")));
    assert_eq!(bench.read("left/pairs.tsv"), bench.read("left-rest/pairs.tsv"));
    let bytes = |table: &str| std::fs::metadata(bench.path(table)).unwrap().len();
    assert!(bytes("left.idf") < bytes("words.idf"), "the spans have no entries");
    for (line, parts) in [
        (format!("dedup old.jsonl -o x {}", by("left.idf")), ["--without-boilerplate", "list"]),
        (
            format!("dedup old.jsonl -o x --without-boilerplate 9:4 {}", by("left.idf")),
            ["made with boilerplate=", "cannot be used with boilerplate="],
        ),
        (
            "idf old.jsonl -o x.idf --features-field f --boilerplate day1/boilerplate".to_owned(),
            ["--boilerplate leaves spans out", "features are none"],
        ),
        ("idf old.jsonl -o x.idf --boilerplate old.jsonl".to_owned(), ["old.jsonl", "TWXSPAN1"]),
    ] {
        let output = bench.command(&line).output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), &parts);
    }
    assert!(!bench.path("x").exists() && !bench.path("x.idf").exists());
}
