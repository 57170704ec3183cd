//! Lists of rules that choose which document is kept, through the verbs that have `--keep`, and as priorities.

use serde_json::json;

use crate::support::{Bench, says};

const TEXT: &str = "one two three four five six seven eight nine ten eleven twelve";

/// Returns a WARC response record with an HTML page.
fn response(url: &str, date: &str, link: &str, text: &str) -> String {
    let page = format!("<html><head><title>t</title>{link}</head><body>{text}</body></html>");
    let content = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{page}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

#[test]
fn archives_keep_the_original_page_and_name_the_rule_that_decided() {
    let bench = Bench::new();
    let own = "<link rel=\"canonical\" href=\"/\">";
    let other = "<link rel=\"canonical\" href=\"https://a.example/\">";
    let pages = [
        response(
            "http://mirror.example/a?ref=1",
            "2026-01-01T00:00:00Z",
            other,
            &format!("{TEXT} and much more"),
        ),
        response("https://b.example/long", "2026-01-01T00:00:00Z", "", TEXT),
        response("https://a.example/", "2026-01-03T00:00:00Z", own, TEXT),
        response(
            "http://c.example/unrelated",
            "2026-01-03T00:00:00Z",
            "",
            "a page about another subject, alone",
        ),
    ];
    bench.write("pages.warc", pages.concat());
    let kept = |rules: &str| {
        bench.ok(&format!("dedup pages.warc -o out --force -q --near 0.5 {rules}"));
        let rows = bench.read("out/pairs.tsv");
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[1].to_owned(), fields.get(5).map_or(String::new(), |rule| (*rule).to_owned()))
        };
        rows.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    let two = |key: &str, rules: [&str; 2]| rules.map(|rule| (key.to_owned(), rule.to_owned()));
    let (a, b) = ("https://a.example/", "https://b.example/long");
    assert_eq!(kept("--keep canonical --keep first"), two(a, ["canonical"; 2]));
    assert_eq!(kept("--keep https --keep shortest-url"), two(a, ["https", "shortest-url"]));
    assert_eq!(kept("--keep earliest:WARC-Date --keep https"), two(b, ["https", "earliest:WARC-Date"]));
    assert_eq!(kept("--keep canonical"), two(a, [""; 2]));
    assert_eq!(kept("--keep https --keep longest"), two(b, ["https", "first"]));

    kept("--keep https --keep earliest:WARC-Date --keep canonical");
    let why = bench.ok("why out https://a.example/");
    says(&why, &["decided earliest:WARC-Date: as in the table", "https (keep): https in https://a.example/"]);
    says(&why, &["canonical (keep): its own URL in https://a.example/, no link in https://b.example/long"]);
    let why = bench.ok("why out http://mirror.example/a?ref=1 --json");
    let why: serde_json::Value = serde_json::from_str(&why).unwrap();
    assert_eq!((&why["listed"]["columns"][3], &why["agrees"]), (&json!(["decided", "https"]), &json!(true)));
    // A table that names another rule is reported.
    let table = bench.read("out/pairs.tsv").replace("\thttps\n", "\tcanonical\n");
    bench.write("out/pairs.tsv", table);
    let output = bench.command("why out http://mirror.example/a?ref=1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    says(&String::from_utf8_lossy(&output.stdout), &["decided https: NOT as in the table"]);
    // The settings of the run have all rules, which another run reads.
    let run: serde_json::Value = serde_json::from_str(&bench.read("out/run.json")).unwrap();
    assert_eq!(run["settings"]["keep"], json!(["https", "earliest:WARC-Date", "canonical"]));
    bench.ok("dedup --job out/run.json -o again -q");
    assert_eq!(bench.read("again/kept.warc"), bench.read("out/kept.warc"));
}

#[test]
fn groups_and_dedup_keep_the_same_document_by_a_list_of_rules() {
    let bench = Bench::new();
    let row = |id: &str, source: &str, day: u32, more: &str| {
        json!({"id": id, "source": source, "day": format!("2026-01-{day:02}"), "text": format!("{TEXT}{more}")}).to_string() + "\n"
    };
    let rows = [
        row("http://x.example/aa", "forum", 1, " and a longer end"),
        row("https://x.example/b", "wiki", 3, ""),
        row("https://x.example/cc", "wiki", 2, ""),
        row("http://x.example/d", "wiki", 2, " more"),
    ];
    bench.write("all.jsonl", rows.concat());
    bench.ok("build i.twx all.jsonl -q --near 0.3");
    for (rules, kept) in [
        ("--keep rank:source=wiki,forum --keep earliest:day --keep https", "https://x.example/cc"),
        ("--keep rank:source=wiki --keep earliest:day --keep shortest-url", "http://x.example/d"),
        ("--keep rank:source=forum", "http://x.example/aa"),
        ("--keep https --keep max:day", "https://x.example/b"),
        ("--keep longest --keep https", "http://x.example/aa"),
        ("--keep max:day", "https://x.example/b"),
    ] {
        bench.ok(&format!("dedup all.jsonl -o out --force -q --near 0.3 {rules}"));
        let clusters =
            bench.ok(&format!("groups i.twx --as clusters --near 0.3 --texts all.jsonl -q {rules}"));
        for table in [clusters, bench.read("out/clusters.tsv")] {
            assert!(
                table.lines().skip(1).all(|line| line.split('\t').nth(2) == Some(kept)),
                "{rules}: {table}"
            );
        }
        // A table with the column `decided` is a table of pairs.
        assert_eq!(bench.ok("groups out/pairs.tsv --as clusters -q").lines().count(), 5);
    }
    bench.ok("passages all.jsonl -o passages --min-words 8 -q --keep rank:source=wiki --keep https --keep earliest:day");
    let spans = bench.read("passages/spans.tsv");
    assert!(spans.lines().skip(1).all(|line| line.contains("https://x.example/cc")), "{spans}");
    says(
        &bench.misused("groups i.twx --as clusters --keep https"),
        &["--keep https goes by the documents", "--texts"],
    );
}

#[test]
fn rules_that_cannot_decide_are_refused() {
    let bench = Bench::new();
    bench.write(
        "a.jsonl",
        json!({"id": "https://x.example/", "n": 1, "lang": "en", "text": TEXT}).to_string() + "\n",
    );
    bench.write("b.jsonl", json!({"id": "b", "text": TEXT}).to_string() + "\n");
    bench.write("texts/a.txt", TEXT);
    for (line, parts) in [
        ("dedup a.jsonl -o no --keep first --keep longest", &["longest after first", "leave it out"][..]),
        ("dedup a.jsonl -o no --keep https,first", &["--keep", "give --keep again"]),
        ("dedup a.jsonl -o no --keep canonical", &["a.jsonl:1", "--keep canonical compares HTML pages"]),
        ("dedup b.jsonl -o no --keep https", &["b.jsonl:1", "the key: expected a URL", "for --keep https"]),
        ("dedup b.jsonl -o no --keep rank:lang=en", &["b.jsonl:1", "no field \"lang\" for --keep"]),
        ("dedup texts -o no --keep shortest-url", &["text files have no fields, which --keep asks for"]),
        (
            "build i.twx a.jsonl --priority-field longest",
            &["one number, stored when a document is added", "longest"],
        ),
        ("build i.twx b.jsonl --priority-field https", &["for --priority-field https"]),
    ] {
        let output = bench.command(line).output().unwrap();
        assert!(!output.status.success(), "{line}");
        says(&String::from_utf8_lossy(&output.stderr), parts);
    }
    for which in ["rank:lang=de,en", "earliest:n", "https", "shortest-url"] {
        bench.ok(&format!(
            "build {}.twx a.jsonl --priority-field {which} -q",
            which.replace([':', '=', ','], "-")
        ));
    }
}
