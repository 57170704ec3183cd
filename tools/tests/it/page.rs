//! The page of `stats --html` must show the numbers of the index, and must not depend on other files.

use crate::support::{Bench, Document, corpus, jsonl, says};

fn index(bench: &Bench, options: &str, documents: &[Document]) {
    bench.write("in.jsonl", jsonl(documents));
    bench.ok(&format!("build i.twx in.jsonl -q {options}"));
}

#[test]
fn report_page_is_self_contained_and_shows_the_figures() {
    let bench = Bench::new();
    let mut documents = corpus(1, 300);
    let long = (0..80).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
    for key in ["<script>alert(1)</script>", "b&c", "d"] {
        documents.push((key.to_owned(), long.clone()));
    }
    index(&bench, "", &documents);
    let figures = bench.json("stats i.twx --html figures.html");
    assert_eq!(figures["documents"], 303);
    let bands = &figures["bands"];
    // Equal documents share every band and every block.
    let pairs = |of: &serde_json::Value| -> Vec<u64> {
        let all = of["pairs"].as_array().unwrap();
        all.iter().map(|counts| counts.as_array().unwrap().last().unwrap().as_u64().unwrap()).collect()
    };
    let of_blocks = pairs(&figures["blocks"]);
    assert_eq!(of_blocks.len(), 4);
    assert!(of_blocks.iter().all(|pairs| Some(*pairs) == figures["blocks"]["identical_pairs"].as_u64()));
    assert!(of_blocks[0] >= 3, "three are the same");
    assert_eq!(bands["meetings"]["pairs"].as_array().unwrap().len(), 20);
    // The cluster sizes add up to the number of documents with words.
    let sizes = figures["clusters"]["sizes"].as_object().unwrap();
    let in_clusters: u64 =
        sizes.iter().map(|(size, clusters)| size.parse::<u64>().unwrap() * clusters.as_u64().unwrap()).sum();
    assert_eq!(in_clusters, 303);

    let said = bench.ok("stats i.twx --html page.html");
    assert_eq!(said, "page.html: the page about i.twx\n");
    let page = bench.read("page.html");
    assert_eq!(bench.ok("stats i.twx --html -"), page, "on standard output, the same");
    for wanted in [
        "<!doctype html>",
        "name=\"viewport\"",
        "prefers-color-scheme",
        "<html lang=\"en\">",
        "role=\"img\"",
        "aria-label=\"Bytes by section\"",
        ">303<",
        "&lt;script&gt;",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    for refused in ["<script", "http://", "https://", "src=", "NaN", "inf,"] {
        assert!(!page.contains(refused), "{refused}");
    }
    for tag in ["table", "figure", "svg", "div", "p", "tr", "td", "dl"] {
        let (opened, closed) = (
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count(),
            page.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(opened, closed, "{tag}");
    }
}

#[test]
fn report_page_works_without_signatures_fingerprints_or_documents() {
    for options in ["--method simhash", "--method minhash", "--signature-bits 0"] {
        let bench = Bench::new();
        index(&bench, options, &corpus(2, 50));
        let figures = bench.json("stats i.twx --html page.html --force");
        assert_eq!(figures["blocks"].is_null(), options.contains("minhash"), "{options}");
        assert_eq!(figures["bands"].is_null(), !options.contains("minhash"), "{options}");
        assert!(bench.ok("stats i.twx --html -").ends_with("</html>\n"), "{options}");
        index(&Bench::new(), options, &[]);
    }
    let bench = Bench::new();
    index(&bench, "", &[]);
    assert!(bench.ok("stats i.twx --html -").contains("<dd>0</dd>"));
}

#[test]
fn report_replaces_files_only_with_force_and_lists_uncompared_buckets() {
    let bench = Bench::new();
    let documents: Vec<Document> = (0..40)
        .map(|key| (format!("k{key}"), format!("one two three four five six seven eight n{key}")))
        .collect();
    index(&bench, "--words 1", &documents);
    bench.write("page.html", "mine");
    says(&bench.refused("stats i.twx --html page.html"), &["page.html: already exists", "--force"]);
    says(&bench.refused("stats i.twx --html page.html --force"), &["page.html: is not a page of twindex"]);
    assert_eq!(bench.read("page.html"), "mine");
    bench.ok("stats i.twx --html own.html -q");
    bench.ok("stats i.twx --html own.html --force --max-bucket 5 -q");
    assert!(bench.read("own.html").contains("only neighbours were compared"));
    says(&bench.refused("stats i.twx --html no/page.html"), &["no/page.html", "make it first"]);
    says(&bench.refused("stats missing.twx --html -"), &["missing.twx"]);
}
