//! The page about a run of `dedup` must show the numbers of the summary and of the tables, for every option that changes
//! them, must not depend on threads or memory, and must escape the keys and texts that it shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::{Bench, Document, corpus, jsonl, says};

/// Documents with a language and a score. Some differ from others in symbols only, and three of these in code.
fn documents() -> Vec<Document> {
    let mut documents = corpus(41, 400);
    for (number, key) in (0..8).zip(["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]) {
        let code = number < 3;
        let other = (0..40).map(|word| format!("u{number}x{word}")).collect::<Vec<_>>().join(" ");
        let text = if code { format!("{other}\n`a/b`") } else { format!("{other} (a b)") };
        let copy = if code { text.replace("a/b", "a % b") } else { text.replace("(a b)", "a, b!") };
        documents.push((format!("{key}/kept"), text));
        documents.push((format!("{key}/copy"), copy.to_uppercase().replace("A % B", "a % b")));
    }
    documents
}

fn lines(documents: &[Document]) -> String {
    let mut lines = String::new();
    for (number, (id, text)) in documents.iter().enumerate() {
        let lang = ["en", "de"][number % 3 % 2];
        let line = json!({"id": id, "text": text, "lang": lang, "score": number * 7 % 10});
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

/// Returns the numbers of the legend of the bar by their names.
fn legend(page: &str) -> Vec<(String, u64)> {
    let (_, parts) = page.split_once("<ul class=\"parts\">").unwrap();
    let (parts, _) = parts.split_once("</ul>").unwrap();
    let part = |line: &str| {
        let (name, number) = line.split_once("</i> ")?.1.split_once(" <b>")?;
        let number = number.strip_suffix("</b></li>")?.replace(',', "");
        Some((name.to_owned(), number.parse().unwrap()))
    };
    parts.lines().filter_map(part).collect()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    text.split_once(start).unwrap().1.split_once(end).unwrap().0
}

/// Checks that tags are closed, and that nothing is loaded.
pub(crate) fn check_markup(page: &str, what: &str) {
    for tag in [
        "table", "figure", "svg", "div", "p", "tr", "td", "ul", "li", "section", "details", "pre", "del",
        "ins",
    ] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{what}: {tag}");
    }
    for refused in ["<script", "<img", "<link", "<iframe", "<a ", "url(", "@import", "NaN", "inf,"] {
        assert!(!page.contains(refused), "{what}: {refused}");
    }
    assert!(page.len() <= 300_000, "{what}: {} bytes", page.len());
}

#[test]
fn run_page_shows_the_numbers_of_the_summary_and_of_the_tables_for_every_rule() {
    let bench = Bench::new();
    let documents = documents();
    let texts: BTreeMap<&str, &str> =
        documents.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    bench.write("in.jsonl", lines(&documents));
    bench.write(
        "old.jsonl",
        lines(&documents[..150].iter().map(|(k, t)| (format!("old{k}"), t.clone())).collect::<Vec<_>>()),
    );
    bench.ok("dedup old.jsonl -o old -q --index kept");
    bench.ok("dedup old.jsonl -o bare -q");
    bench.ok("dedup old.jsonl -o inside -q --inside lang");
    bench.ok("idf in.jsonl -o table.idf -q");
    for options in [
        "",
        "--near 0.5",
        "--near 0.95",
        "--near 1",
        "--near containment:0.8",
        "--near within:4",
        "--near equal",
        "--near equal --normal-form nfkc",
        "--keep longest",
        "--keep smallest-key",
        "--keep key-hash",
        "--keep max:score",
        "--keep min:score",
        "--inside lang",
        "--against old",
        "--against bare",
        "--against bare --near containment:0.8 --keep longest",
        "--against inside --inside lang",
        "--weights tf",
        "--weights idf --idf table.idf",
        "--without-boilerplate 30:4",
        "--tokens words-symbols",
        "--tokens raw",
        "--words 1",
    ] {
        let line = format!("dedup in.jsonl -o out --force {options}");
        let report = bench.json(&format!("{line} -q"));
        let page = bench.read("out/report.html");
        let summary = String::from_utf8(bench.command(&line).output().unwrap().stdout).unwrap();
        assert_eq!(bench.read("out/report.html"), page, "{options}: the page of a second run");
        check_markup(&page, options);
        assert_eq!(page.contains(" units of weight "), options.contains("--weights"), "{options}");

        let number = |name: &str| report[name].as_u64().unwrap();
        let kinds = |name: &str| report["removed_kinds"][name].as_u64().unwrap();
        let (all, kept, removed) = (number("documents"), number("kept"), number("removed"));
        let run: Value = serde_json::from_str(&bench.read("out/run.json")).unwrap();
        assert_eq!(run["written"]["kept"], kept, "{options}");
        assert_eq!(bench.read("out/kept.jsonl").lines().count() as u64, kept, "{options}");
        let result =
            format!("{removed} of {all} documents removed ({:.1} %)", removed as f64 * 100.0 / all as f64);
        assert!(page.contains(&format!("<h1>{result}</h1>")), "{options}: {result}");
        let first = summary.lines().next().unwrap();
        assert!(
            first.starts_with(&format!("{result}, ")) && first.contains(&format!("; {kept} kept")),
            "{options}: {first}"
        );
        let bytes = between(first, "%), ", " of text");
        assert!(page.contains(&format!(" {bytes} of text were removed.")), "{options}: {bytes}");
        says(&summary, &["\nopen out/report.html\ntwindex why out KEY\n"]);

        let legend = legend(&page);
        let part = |name: &str| {
            legend.iter().filter(|(of, _)| of.starts_with(name)).map(|(_, number)| number).sum::<u64>()
        };
        assert_eq!(legend.iter().map(|(_, number)| number).sum::<u64>(), all, "{options}: {legend:?}");
        assert_eq!(part("unique") + part("kept, with copies"), kept, "{options}: {legend:?}");
        assert_eq!(part("kept, with copies"), number("clusters"), "{options}: {legend:?}");
        let dropped = report["dropped"].as_u64().unwrap_or(0);
        assert_eq!(part("near a document of an earlier run"), dropped, "{options}: {legend:?}");
        assert_eq!(dropped > 0, options.contains("--against"), "{options}");

        // The tables have the removed documents. The texts say which of them are copies.
        let pairs = bench.read("out/pairs.tsv");
        let pairs: Vec<Vec<&str>> = pairs.lines().skip(1).map(|row| row.split('\t').collect()).collect();
        let identical = pairs.iter().filter(|pair| texts[pair[0]] == texts[pair[1]]).count() as u64;
        assert_eq!((part("identical"), kinds("identical")), (identical, identical), "{options}");
        assert_eq!(
            kinds("identical") + kinds("same_words") + kinds("near") + dropped,
            removed,
            "{options}: {report}"
        );
        assert_eq!(pairs.len() as u64 + dropped, removed, "{options}");
        assert_eq!(part("differ only in"), kinds("same_words"), "{options}: {legend:?}");
        let gone = bench.read("out/kept.jsonl");
        let kept_bytes: usize = gone
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().len())
            .sum();
        assert_eq!(number("removed_text_bytes"), number("text_bytes") - kept_bytes as u64, "{options}");
        for (label, kind) in [("identical", "identical"), ("symbols", "same_words"), ("near", "near")] {
            let shown = summary.lines().find(|line| line.starts_with(&format!("  {label} ")));
            let shown = shown.map(|line| line.split_whitespace().nth(1).unwrap().replace(',', ""));
            let is_shown = shown.as_ref().is_none_or(|shown| *shown == kinds(kind).to_string());
            assert!(
                is_shown && (shown.is_some() || kinds(kind) == 0),
                "{options}: {label}: {shown:?} {report}"
            );
        }
    }
}

#[test]
fn symbols_are_reported_with_the_lines_of_code_that_they_change() {
    let bench = Bench::new();
    bench.write("in.jsonl", lines(&documents()[400..]));
    let summary = bench.ok("dedup in.jsonl -o out");
    let line = summary.lines().find(|line| line.starts_with("  symbols ")).unwrap();
    says(line, &[" 8  that differ only in case or symbols, 3 in a line of code; --tokens words-symbols"]);
    let page = bench.read("out/report.html");
    says(&page, &["Of these 8 documents, 3 differ in a line of code"]);
    let summary = bench.ok("dedup in.jsonl -o out --force --tokens words-symbols");
    assert!(!summary.contains("in a line of code"), "{summary}");
    assert!(!summary.contains("no difference is made"), "{summary}");
}

#[test]
fn run_page_shows_texts_of_each_band_with_the_commands_that_explain_them() {
    let bench = Bench::new();
    bench.write("in.jsonl", lines(&documents()));
    bench.ok("dedup in.jsonl -o out -q");
    let page = bench.read("out/report.html");
    let cards: Vec<&str> = page.split("<section class=\"card\">").skip(1).collect();
    let (judged, missed) = cards.split_at(12);
    assert!(!missed.is_empty() && missed.iter().all(|card| card.contains("also kept: ")), "{}", cards.len());
    for card in judged {
        let score = between(card, "<b>resemblance ", ":");
        let command = between(card, "<pre>twindex ", "</pre>");
        let why = bench.json(&format!("{command} --all"));
        assert_eq!((&why["fate"], &why["agrees"]), (&"removed".into(), &true.into()), "{why}");
        let listed = why["listed"]["columns"][0][1].as_str().unwrap();
        let [listed, score] = [listed, score].map(|score| score.parse::<f64>().unwrap());
        assert!((listed - score).abs() <= 0.0005, "{why}");
        let key = why["key"].as_str().unwrap();
        says(
            card,
            &[
                &format!("removed: <bdi>{key}</bdi>"),
                &format!("kept: <bdi>{}</bdi>", why["kept"].as_str().unwrap()),
            ],
        );
    }
    // The commands below the threshold work, and find only kept documents.
    let (_, commands) = page.split_once("These commands list").unwrap();
    let commands = between(commands, "<pre>", "</pre>");
    let mut found = String::new();
    for command in commands.lines() {
        found = bench.ok(command.strip_prefix("twindex ").unwrap());
    }
    let kept = bench.read("out/kept.jsonl");
    for row in found.lines() {
        let row: Vec<&str> = row.split('\t').collect();
        assert!(row[2].parse::<f64>().unwrap() < 0.8, "{row:?}");
        assert!(row[..2].iter().all(|key| kept.contains(&format!("\"{key}\""))), "{row:?}");
    }
    let few: u64 =
        between(&page, "<p>", " pairs with a resemblance").rsplit("<p>").next().unwrap().parse().unwrap();
    assert!(few > 0 && few <= found.lines().count() as u64, "{few} of {found}");
}

#[test]
fn documents_that_a_history_removes_are_shown_beside_its_texts() {
    let bench = Bench::new();
    let (old, new) = (corpus(41, 200), corpus(41, 300));
    bench.write("old.jsonl", lines(&old));
    let changed = |text: &str| format!("{text} and more");
    let new: Vec<_> = new.iter().map(|(key, text)| (format!("new/{key}"), changed(text))).collect();
    bench.write("new.jsonl", lines(&new));
    bench.ok("dedup old.jsonl -o old -q --index kept");
    bench.ok("dedup old.jsonl -o bare -q");
    let shown = |history: &str| {
        bench.ok(&format!("dedup new.jsonl -o out --force -q --against {history}"));
        let page = bench.read("out/report.html");
        check_markup(&page, history);
        between(&page, "Near a document of an earlier run</h3>", "<h2").to_owned()
    };
    let by_texts = shown("bare");
    assert_eq!(by_texts.matches("<ins>and more</ins>").count(), 4, "{by_texts}");
    // Without its texts, the history has the same documents and scores.
    let unread = shown("old/index");
    assert_eq!(unread.matches("cannot be shown: --against names an index").count(), 4, "{unread}");
    // The cost of a run depends on its own documents only, so a longer history is not read for the page.
    let long = ("long".to_owned(), "word ".repeat(250_000));
    bench.write("long.jsonl", lines(&[old, vec![long]].concat()));
    bench.ok("dedup long.jsonl -o long -q --index kept");
    assert_eq!(shown("long").matches("more than this run read").count(), 4);
    let by_index = shown("old");
    assert_eq!(by_index, by_texts);
    for (card, unread) in by_index.split("<section").zip(unread.split("<section")).skip(1) {
        let key = between(card, "removed: <bdi>", "</bdi>");
        says(unread, &[key, between(card, "<b>", "</b>"), between(card, "kept: <bdi>", "</bdi>")]);
        let why = bench.json(between(card, "<pre>twindex ", "</pre>"));
        assert_eq!((&why["fate"], &why["agrees"]), (&"dropped".into(), &true.into()), "{why}");
        let columns = &why["listed"]["columns"];
        let score =
            format!(": {} of {} shingles", columns[1][1].as_str().unwrap(), columns[2][1].as_str().unwrap());
        says(card, &[&score, &format!("kept: <bdi>{}</bdi>", why["kept"].as_str().unwrap())]);
    }
}

#[test]
fn run_page_does_not_depend_on_threads_memory_or_the_form_of_the_input() {
    let bench = Bench::new();
    bench.write("in.jsonl", lines(&documents()));
    let compress =
        std::process::Command::new("gzip").args(["-k", "in.jsonl"]).current_dir(bench.root()).status();
    for options in ["", "--near within:4", "--keep key-hash --inside lang"] {
        bench.ok(&format!("dedup in.jsonl -o out --force -q {options} --threads 1"));
        let page = bench.read("out/report.html");
        for resources in ["--threads 3", "--memory 1M --threads 2", "--index all", "--resume"] {
            bench.ok(&format!("dedup in.jsonl -o out --force -q {options} {resources}"));
            assert_eq!(bench.read("out/report.html"), page, "{options} {resources}");
        }
        if compress.as_ref().is_ok_and(std::process::ExitStatus::success) {
            bench.ok(&format!("dedup in.jsonl.gz -o out --force -q {options} --memory 1M"));
            assert_eq!(bench.read("out/report.html").replace("in.jsonl.gz", "in.jsonl"), page, "{options}");
        }
    }
}

#[test]
fn keys_and_texts_cannot_change_the_markup_of_a_page() {
    const EVIL: &str = "</p></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;";
    let bench = Bench::new();
    let words =
        |from: usize| (from..from + 60).map(|word| format!("w{word}{EVIL}")).collect::<Vec<_>>().join(" ");
    let mut lines = String::new();
    for number in 0..40 {
        let text = words(number / 4 * 100);
        let text = match number % 4 {
            0 | 1 => text,
            2 => text.replace("'>", "',"),
            _ => format!("{EVIL} {number} {text}"),
        };
        let line =
            json!({"id": format!("{EVIL}/{}\u{1b}[31m\n{number}", number % 3), "text": text, "lang": EVIL});
        writeln!(lines, "{line}").unwrap();
    }
    let many: String = (0..3).map(|_| "\"'&".repeat(400_000)).collect::<Vec<_>>().join(" ");
    for key in ["l", "m"] {
        writeln!(lines, "{}", json!({"id": key.repeat(60_000), "text": format!("{many} {key}"), "lang": ""}))
            .unwrap();
    }
    bench.write("<b>in.jsonl", lines);
    for options in ["", "--inside lang", "--near containment:0.7"] {
        let mut command = bench.command(&format!("dedup <b>in.jsonl -q --force --skip-bad 2 {options}"));
        assert!(command.args(["-o", "o'<u>&"]).output().unwrap().status.success(), "{options}");
        let page = bench.read("o'<u>&/report.html");
        check_markup(&page, options);
        for refused in ["onerror=alert(1)>", "<u>", "<b>in", "\u{1b}", "</style><"] {
            assert!(!page.contains(refused), "{options}: {refused}");
        }
        assert_eq!(page.matches("</style>").count(), 1, "{options}");
        says(&page, &["&lt;script&gt;alert(1)", "&lt;b&gt;in.jsonl"]);
    }
}

#[test]
fn removed_chain_is_described_by_leaders_and_counted_among_the_documents_of_the_run() {
    let bench = Bench::new();
    let text =
        |from: usize| (from..from + 40).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
    let chain = [("b", 3), ("a", 0), ("c", 6), ("d", 9)].map(|(key, from)| (key.to_owned(), text(from)));
    bench.write("chain.jsonl", jsonl(&chain));
    let ten: Vec<Document> =
        (0..10).map(|key| (format!("k{key}"), "one two three four five six".to_owned())).collect();
    bench.write("ten.jsonl", jsonl(&ten));
    bench.ok("dedup ten.jsonl -o ten -q");
    says(
        &bench.read("ten/report.html"),
        &["9 of 10 documents removed (90.0 %)", "Largest clusters of texts of fewer than ten words"],
    );
    bench.ok("dedup chain.jsonl -o chain --words 1 -q");
    let page = bench.read("chain/report.html");
    says(&page, &["2 of 4 documents removed (50.0 %)", "removed because they are near it"]);
    assert!(!page.contains("hangs together"), "{page}");
}

#[test]
fn sources_are_folders_files_or_values_of_the_field() {
    let bench = Bench::new();
    let long = |start: &str| (0..40).map(|word| format!("{start}{word}")).collect::<Vec<_>>().join(" ");
    for (name, text) in
        [("a/x.txt", "p"), ("a/y.txt", "q"), ("b/x.txt", "p"), ("b/z.txt", "r"), ("c/x.txt", "p")]
    {
        bench.write(&format!("in/{name}"), long(text));
    }
    bench.ok("dedup in -o out -q");
    let rows = |page: &str| -> Vec<String> {
        let table = between(page, "<h2 id=\"sources\">", "<details").replace("<td class=\"left\">", "<td>");
        let row = |row: &str| {
            row.replace("</td><td>", " ")
                .split("<td>")
                .nth(1)
                .map(|row| row.split("</td>").next().unwrap().to_owned())
        };
        table.split("<tr>").filter_map(row).collect()
    };
    let page = bench.read("out/report.html");
    assert_eq!(rows(&page), ["b 2 1 50.0 %", "c 1 1 100.0 %", "a 2 0 0.0 %", "b → a 1", "c → a 1"]);
    for (name, keys) in [("one.jsonl", ["k1", "k2"]), ("two.jsonl", ["k3", "k4"])] {
        let documents = keys.map(|key| (key.to_owned(), long(if key == "k4" { "q" } else { "p" })));
        bench.write(name, jsonl(&documents));
    }
    bench.ok("dedup one.jsonl two.jsonl -o files -q");
    let page = bench.read("files/report.html");
    assert_eq!(rows(&page)[..2], ["one.jsonl 2 1 50.0 %", "two.jsonl 2 1 50.0 %"]);
    let line =
        |key: &str, of: &str, text: &str| json!({"id": key, "of": of, "text": text}).to_string() + "\n";
    let [text, other] = ["p", "q"].map(long);
    bench.write(
        "of.jsonl",
        line("a", "x", &text) + &line("b", "x", &text) + &line("c", "y", &text) + &line("d", "y", &other),
    );
    bench.ok("dedup of.jsonl -o of --inside of -q");
    assert_eq!(rows(&bench.read("of/report.html")), ["x 2 1 50.0 %", "y 2 0 0.0 %", "x → x 1"]);
    bench.ok("dedup one.jsonl -o single -q");
    assert!(!bench.read("single/report.html").contains("id=\"sources\""), "one source");
}

#[test]
fn why_writes_its_comparison_as_a_page() {
    let bench = Bench::new();
    let text = (0..60).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
    let all = [("a", text.clone()), ("b", text.replace("w30 ", "<i>x</i> "))]
        .map(|(key, text)| (key.to_owned(), text));
    bench.write("in.jsonl", jsonl(&all));
    bench.ok("dedup in.jsonl -o out -q");
    assert_eq!(bench.ok("why out b --html b.html"), "b.html: the page about b\n");
    let page = bench.read("b.html");
    check_markup(&page, "why");
    says(
        &page,
        &[
            "<h1>b goes for a, which is kept</h1>",
            "<del>w30</del>",
            "<ins>&lt;i&gt;x&lt;/i&gt;</ins>",
            "resemblance 5",
        ],
    );
    bench.write("mine.html", "mine");
    says(&bench.refused("why out b --html mine.html"), &["is not a page of twindex"]);
    bench.ok("why out a --html b.html -q");
    says(&bench.read("b.html"), &["<h1>a stays (out/clusters.tsv:2)</h1>"]);
}
