//! `study --urls` learns rules from the results of `dedup`, and normalizes URLs with them.

use crate::support::{Bench, jsonl, says};

/// Returns the pages of a shop: each has three URLs with different session ids; other pages are identified by the last
/// part of their URL.
fn shop() -> Vec<(String, String)> {
    let mut documents = Vec::new();
    let text = |what: &str, page: u32| {
        let words = (0..60).map(|word| format!("{what}{}", (word * (page + 3) + page * page) % 997));
        words.collect::<Vec<_>>().join(" ")
    };
    for page in 0..12 {
        for session in ["fXyiE5bZS43a", "LcNLKgc7bMgq", "0aBcDeFgHi9x"] {
            documents.push((format!("https://shop.example/S-{session}/item{page}"), text("item", page)));
        }
        documents.push((format!("https://shop.example/S-{page:012}/docs/about"), text("about", page)));
        documents.push((format!("page-{page}"), text("other", page)));
    }
    documents
}

const SAID: &str = "https://shop.example/S-Zz91kkQ2mmP0/item77\n\
                    https://shop.example/S-Zz91kkQ2mmP0/docs/about\nno URL\nhttp://OTHER.example:80\n";
const NORMAL: &str = "https://shop.example/S-*/item77\n\
                      https://shop.example/S-Zz91kkQ2mmP0/docs/about\nno URL\nhttp://other.example/\n";

fn applied(bench: &Bench, rules: &str) -> String {
    let mut command = bench.command(&format!("study --apply {rules}"));
    let output = command.write_stdin(SAID).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rules_learned_from_dedup_results_remove_only_session_ids() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&shop()));
    bench.ok("dedup pages.jsonl -o out -q");
    let report = bench.json("study out --urls -o rules.tsv -q");
    assert_eq!((report["rules"].as_u64(), report["pages"].as_u64()), (Some(1), Some(48)), "{report}");
    assert_eq!(report["other_keys"].as_u64(), Some(12));
    let rule = bench.read("rules.tsv").lines().nth(1).unwrap().to_owned();
    assert!(
        rule.starts_with("shop.example\thttps://shop.example/S-*/{}\tsession id: 12 base-62\t"),
        "{rule}"
    );
    assert!(rule.contains("\t36\t12\t12\t0.666667\t"), "{rule}");
    assert_eq!(applied(&bench, "rules.tsv"), NORMAL);

    // The same rules are learned from an index of all pages, with little memory, and from a table of clusters.
    bench.ok("build pages.twx pages.jsonl -q");
    says(
        &bench.refused("study pages.twx --urls -o none.tsv --memory 64K -q"),
        &["shop.example", "--memory 128K"],
    );
    bench.ok("study pages.twx --urls -o again.tsv --memory 256K -q");
    assert_eq!(bench.read("again.tsv"), bench.read("rules.tsv"));
    bench.ok("groups --as clusters pages.twx --min-size 1 --near 0.8 -o table.tsv -q");
    assert_eq!(bench.ok("study table.tsv --urls -q"), bench.read("rules.tsv"));
    // `--min-forms` is the minimum support of a rule for all pages, `--min-urls` the minimum support of a rule for one page.
    let rules = |options: &str| {
        bench.json(&format!("study out --urls -o few.tsv --force -q {options}"))["rules"].as_u64()
    };
    assert_eq!(rules("--min-forms 12"), Some(1));
    assert_eq!(rules("--min-forms 13"), Some(12));
    assert_eq!(rules("--min-forms 13 --min-urls 4"), Some(0));
}

#[test]
fn unusable_inputs_are_refused_with_a_reason() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&[("a".to_owned(), "a text of some words".to_owned())]));
    bench.ok("dedup pages.jsonl -o out -q");
    bench.write("empty.tsv", "");
    bench.write("table.tsv", "key\tcluster\tkept\tscore\nhttp://a.example/\tx\n");
    bench.write("rules.tsv", "host\ttemplate\n");
    for (line, wanted) in [
        ("study out --urls -q", "no key is a URL"),
        ("study missing --urls -q", "missing: cannot be opened"),
        ("study . --urls -q", "expected a folder of results of `dedup`"),
        ("study empty.tsv --urls -q", "empty.tsv: is empty"),
        ("study table.tsv --urls -q", "table.tsv:2: expected the number of a cluster, found \"x\""),
        ("study --apply rules.tsv", "rules.tsv: line 1: expected the columns host, template"),
        ("study --apply none.tsv", "none.tsv: cannot be read"),
    ] {
        let said = bench.refused(line);
        assert!(said.contains(wanted), "{line}: {said}");
    }
}

/// Returns a crawl with known mirrors, as WET and as JSON lines with a URL field.
fn mirrored() -> Vec<(String, String)> {
    let text = |what: &str, page: u32| {
        let words = (0..50).map(|word| format!("{what}{}", (word * (page + 5) + page * page) % 991));
        words.collect::<Vec<_>>().join(" ")
    };
    let mut documents = Vec::new();
    for page in 0..10 {
        documents.push((format!("http://a.example.com/{page}"), text("a", page)));
        if page < 5 {
            documents.push((format!("http://www.mirror.co.uk/{page}"), text("a", page)));
        }
        if page < 3 {
            documents.push((format!("http://a.example.com/copy/{page}"), text("a", page)));
            documents.push((format!("http://b.example.com/{page}"), text("a", page)));
        }
        documents.push((format!("http://c.example.org/{page}"), text("c", page)));
    }
    documents
}

const HOSTS: &str = "host\tdomain\tpages\tnear\tnear_inside\tnear_outside\trate";
const MIRRORS: &str = "host\tother\tpages\tpages_of_other\tnear\tnear_of_other\tshare\tshare_of_other";

#[test]
fn hosts_and_mirrors_are_counted_by_key_or_url_field() {
    let bench = Bench::new();
    let documents = mirrored();
    bench.write("pages.jsonl", jsonl(&documents));
    let report = bench.json("dedup pages.jsonl -o out -q");
    let hosts = &report["hosts"];
    let number = |name: &str| hosts[name].as_u64().unwrap();
    assert_eq!((number("pages"), number("hosts"), number("domains")), (31, 4, 3), "{hosts}");
    assert_eq!(number("duplicates"), 11);
    assert_eq!(number("duplicates_within_hosts"), 3);
    assert_eq!(number("duplicates_within_domains"), 3);
    assert_eq!(number("duplicates_across_domains"), 5);
    assert_eq!(
        bench.rows("out/hosts.tsv", HOSTS),
        [
            "a.example.com\texample.com\t13\t8\t6\t8\t0.615385",
            "b.example.com\texample.com\t3\t3\t0\t3\t1.000000",
            "c.example.org\texample.org\t10\t0\t0\t0\t0.000000",
            "www.mirror.co.uk\tmirror.co.uk\t5\t5\t0\t5\t1.000000",
        ]
    );
    assert_eq!(
        bench.rows("out/mirrors.tsv", MIRRORS),
        [
            "a.example.com\tb.example.com\t13\t3\t6\t3\t0.461538\t1.000000",
            "a.example.com\twww.mirror.co.uk\t13\t5\t8\t5\t0.615385\t1.000000",
            "b.example.com\twww.mirror.co.uk\t3\t5\t3\t3\t1.000000\t0.600000",
        ]
    );
    let page = bench.read("out/report.html");
    assert!(page.contains("Where duplicates come from") && page.contains("www.mirror.co.uk"));

    // The results are the same if the URL is in a field of JSON lines or of a table. Keys that are not URLs are ignored.
    let lines = documents.iter().enumerate().map(|(number, (url, text))| {
        format!("{{\"id\":\"k{number:02}\",\"text\":\"{text}\",\"url\":\"{url}\"}}\n")
    });
    bench.write("fields.jsonl", lines.collect::<String>());
    let rows =
        documents.iter().enumerate().map(|(number, (url, text))| format!("k{number:02},{url},{text}\n"));
    bench.write("fields.csv", format!("id,url,text\n{}", rows.collect::<String>()));
    for input in ["fields.jsonl", "fields.csv"] {
        bench.ok(&format!("dedup {input} --url-field url -o of-field --force -q"));
        for table in ["hosts.tsv", "mirrors.tsv"] {
            assert_eq!(
                bench.read(&format!("of-field/{table}")),
                bench.read(&format!("out/{table}")),
                "{input}"
            );
        }
        assert_eq!(bench.rows("of-field/urls.tsv", "key\turl").len(), 31);
        let report = bench.json("study of-field --urls -o rules.tsv --force -q");
        assert_eq!((report["pages"].as_u64(), report["hosts"].as_u64()), (Some(31), Some(4)));
        let without = bench.json(&format!("dedup {input} -o without --force -q"));
        assert!(without["hosts"].is_null() && !bench.path("without/hosts.tsv").exists());
    }
}

#[test]
fn inside_host_and_inside_domain_restrict_comparisons() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&mirrored()));
    for (inside, removed, values) in [("host", 3, 4), ("domain", 6, 3)] {
        let report = bench.json(&format!("dedup pages.jsonl --inside {inside} -o {inside} -q"));
        assert_eq!(
            (report["removed"].as_u64(), report["inside_values"].as_u64()),
            (Some(removed), Some(values))
        );
        let why = bench.json(&format!("why {inside} http://a.example.com/copy/1"));
        assert_eq!(why["agrees"].as_bool(), Some(true), "{why}");
        assert_eq!(why["fields"][0]["name"].as_str(), Some(inside), "{why}");
    }
    bench.write("other.jsonl", "{\"id\":\"7\",\"text\":\"a b c\",\"host\":\"h\"}\n");
    assert!(bench.refused("dedup other.jsonl --inside host -o x").contains("the key: expected a URL"));
    bench.ok("dedup other.jsonl --inside field:host -o x -q");
}

#[test]
fn report_page_lists_the_hosts_of_url_keys() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&mirrored()));
    bench.ok("build pages.twx pages.jsonl -q");
    let report = bench.json("stats pages.twx --html page.html --force");
    let hosts = &report["hosts"];
    assert_eq!((hosts["hosts"].as_u64(), hosts["duplicates"].as_u64()), (Some(4), Some(11)), "{hosts}");
    assert_eq!(hosts["duplicates_within_hosts"].as_u64(), Some(3));
    assert!(bench.ok("stats pages.twx --html -").contains("Where duplicates come from"));
    bench.write("plain.jsonl", jsonl(&[("a".to_owned(), "some words of a text".to_owned())]));
    bench.ok("build plain.twx plain.jsonl -q");
    assert!(bench.json("stats plain.twx --html page.html --force")["hosts"].is_null());
}

#[test]
fn urls_json_prints_one_object_per_line_and_statistics_last() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&shop()));
    bench.ok("dedup pages.jsonl -o out -q");
    let figures = bench.json("study out --urls -o rules.tsv -q");
    let lines = bench.json_lines("study out --urls -q");
    let (last, rules) = lines.split_last().unwrap();
    assert_eq!((rules.len() as u64, &last["pages"]), (figures["rules"].as_u64().unwrap(), &figures["pages"]));
    let table = bench.read("rules.tsv");
    for (rule, line) in rules.iter().zip(table.lines().skip(1)) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!((&rule["host"], &rule["template"]), (&fields[0].into(), &fields[1].into()), "{line}");
        assert!(rule["pages"].is_u64() && rule["confidence"].is_number(), "{rule}");
    }
    let plain = applied(&bench, "rules.tsv");
    let output = bench.command("study --apply rules.tsv --json").write_stdin(SAID).output().unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, urls) = lines.split_last().unwrap();
    let normal: Vec<&str> = urls.iter().map(|one| one["normal"].as_str().unwrap()).collect();
    assert_eq!(normal, plain.lines().collect::<Vec<_>>());
    let changed = urls.iter().filter(|one| one["url"] != one["normal"]).count();
    assert_eq!((&last["urls"], &last["changed"]), (&urls.len().into(), &changed.into()));
}
