//! The pages of `pairs --html` and `groups --html` must show the numbers of the output and pairs of it, change nothing in
//! the output, and depend neither on threads nor on memory.

use std::collections::BTreeSet;

use crate::run_page::check_markup;
use crate::support::{Bench, corpus, jsonl, raw, rows, says};

/// Returns the texts between `start` and `end`.
fn all_between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    text.split(start).skip(1).map(|rest| rest.split_once(end).unwrap().0).collect()
}

fn bench() -> Bench {
    let bench = Bench::new();
    let mut documents = corpus(41, 300);
    let words = |other: usize| {
        (0..60).map(|word| format!("{}{word}", if word == other { "<i>" } else { "w" })).collect::<Vec<_>>()
    };
    for (number, key) in ["<b>", "c&d", "e"].into_iter().enumerate() {
        documents.push((key.to_owned(), words(30 + number).join(" ")));
    }
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("other.jsonl", jsonl(&documents[100..]));
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("build none.twx in.jsonl -q --sets none");
    bench.ok("build other.twx other.jsonl -q --bottom 16");
    bench.ok("build sampled.twx in.jsonl -q --bottom 16");
    bench.write("raw.u64", raw(&(0..90).map(|number| 0xabc_def0 + number / 3).collect::<Vec<u64>>()));
    bench
}

#[test]
fn found_pages_show_the_numbers_and_drawn_pairs_of_an_unchanged_output() {
    let bench = bench();
    for (job, texts, head) in [
        ("pairs i.twx", "--texts in.jsonl", None),
        ("pairs i.twx --near within:6", "--texts in.jsonl", None),
        ("pairs i.twx --near 0.8 --verify signature", "--texts in.jsonl", None),
        ("pairs i.twx --near 0.8 --shard 1/2", "", None),
        ("pairs i.twx --with other.twx", "--texts in.jsonl --with-texts other.jsonl", None),
        ("pairs none.twx --near 0.8 --texts in.jsonl", "", None),
        ("pairs sampled.twx --samples --near 0.5", "--texts in.jsonl", None),
        ("pairs --fingerprints raw.u64 --near within:3", "", None),
        ("groups i.twx", "--texts in.jsonl", Some("key\tleader\tsize")),
        ("groups i.twx --as clusters", "--texts in.jsonl", Some("key\tcluster\tkept\tscore")),
        ("groups i.twx --as clusters --min-size 3 --near within:6", "", Some("key\tcluster\tkept\tscore")),
    ] {
        let out = bench.ok(&format!("{job} -q"));
        assert_eq!(bench.ok(&format!("{job} -q --html page.html {texts}")), out, "{job}");
        let page = bench.read("page.html");
        let json = |line: &str| {
            let lines = bench.ok(&format!("{line} -q --json"));
            lines.lines().filter(|line| !line.contains("\"seconds\":")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(json(&format!("{job} --html page.html {texts}")), json(job), "{job}");
        assert_eq!(bench.read("page.html"), page, "{job}");
        bench.ok(&format!("{job} -q --html page.html {texts} --threads 1 --memory 64M"));
        assert_eq!(bench.read("page.html"), page, "{job}");
        check_markup(&page, job);

        let rows = head.map_or_else(|| out.lines().map(str::to_owned).collect(), |head| rows(&out, head));
        let of = |row: &str, column: usize| row.split('\t').nth(column).unwrap().to_owned();
        let title = match head {
            None => format!("<h1>{} pairs in ", rows.len()),
            Some(head) => {
                let groups: BTreeSet<String> = rows.iter().map(|row| of(row, 1)).collect();
                let noun = if head.contains("leader") { "group" } else { "cluster" };
                format!("<h1>{} documents in {} {noun}s", rows.len(), groups.len())
            }
        };
        says(&page.replace(',', ""), &[&title, &format!("<pre>twindex {job}")]);

        let shown = all_between(&page, "<bdi>", "</bdi>");
        let unescaped = |key: &&str| key.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let shown: Vec<String> = shown.iter().map(unescaped).collect();
        assert!((2..=24).contains(&shown.len()), "{job}: {}", shown.len());
        let columns = match head {
            None => [0, 1],
            Some(head) if head.contains("leader") => [1, 0],
            Some(_) => [2, 0],
        };
        let pairs: BTreeSet<[String; 2]> =
            rows.iter().map(|row| columns.map(|column| of(row, column))).collect();
        for pair in shown.chunks(2) {
            assert!(pairs.contains(&[pair[0].clone(), pair[1].clone()]), "{job}: {pair:?}");
        }
        let has_texts = !texts.is_empty() || job.contains("--texts");
        assert_eq!(page.contains("cannot be shown"), !has_texts, "{job}");
        assert_eq!(page.contains("<ins>"), has_texts, "{job}");
        assert_eq!(page.contains("With --texts INPUT, the page shows them"), !has_texts, "{job}");
        if head.is_some() {
            let sizes = all_between(&page, "</small></td><td>", "</td>");
            assert!(sizes.len() == 10 || job.contains("--min-size"), "{job}: {sizes:?}");
            let sizes: Vec<u64> = sizes.iter().map(|size| size.parse().unwrap()).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.iter().all(|size| *size > 1), "{sizes:?}");
        }
    }
    bench.ok("pairs i.twx --near 0.8 --html page.html --texts other.jsonl");
    says(&bench.read("page.html"), &["Its text cannot be shown: it is not in the inputs of --texts."]);
}

#[test]
fn pages_of_the_results_of_dedup_have_the_commands_that_explain_each_pair() {
    let bench = bench();
    bench.ok("dedup in.jsonl -o out -q --index all");
    for job in ["groups out/pairs.tsv", "pairs out/index"] {
        bench.ok(&format!("{job} -q --html page.html"));
        let page = bench.read("page.html");
        let commands = all_between(&page, "<pre>twindex why ", "</pre>");
        assert!(!commands.is_empty() && commands.iter().all(|command| command.starts_with("out ")), "{job}");
        for command in commands.iter().filter(|command| !command.contains(['\'', '&'])) {
            says(&bench.ok(&format!("why {command}")), &[command.split(' ').nth(1).unwrap()]);
        }
    }
}

#[test]
fn found_pages_replace_no_inputs_and_no_outputs() {
    let bench = bench();
    let before = bench.read("in.jsonl");
    for line in [
        "pairs i.twx --html in.jsonl --texts in.jsonl",
        "pairs i.twx --html out -o out",
        "pairs i.twx --html i.twx/page.html",
        "groups i.twx --html in.jsonl --texts in.jsonl",
        "groups i.twx --html out -o out",
        "groups i.twx --as clusters --html out -o out",
        "pairs i.twx --html page.html --count",
        "groups i.twx --as forest --html page.html",
        "groups i.twx --texts in.jsonl",
        "groups i.twx --html page.html --text-field text",
    ] {
        assert!(!bench.command(line).output().unwrap().status.success(), "{line}");
    }
    bench.write("mine.html", "mine");
    says(&bench.refused("pairs i.twx --html mine.html"), &["mine.html: is not a page of twindex"]);
    assert_eq!((bench.read("in.jsonl"), bench.read("mine.html")), (before, "mine".to_owned()));
    assert!(!bench.path("out").exists() && !bench.path("page.html").exists());
}
