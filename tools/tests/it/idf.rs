//! Tests `twindex idf` and the users of its table: the same documents must give the same table in any order, an index
//! must store its table, and unsuitable tables must be refused by name.

use std::fs;

use crate::support::{Bench, corpus, documents, has_fields, jsonl, says};

fn with_table() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(3, 120)));
    bench.ok("idf in.jsonl -o t.idf --words 1 -q");
    bench
}

#[test]
fn idf_table_does_not_depend_on_order_threads_or_memory() {
    let bench = with_table();
    let mut documents = corpus(3, 120);
    documents.reverse();
    bench.write("back.jsonl", jsonl(&documents));
    let table = fs::read(bench.path("t.idf")).unwrap();
    for (i, line) in [
        "in.jsonl --threads 1",
        "in.jsonl --threads 3",
        "back.jsonl",
        "in.jsonl --memory 64K",
        "back.jsonl --memory 64K --threads 2",
    ]
    .iter()
    .enumerate()
    {
        bench.ok(&format!("idf {line} --words 1 -o {i}.idf -q"));
        assert!(fs::read(bench.path(&format!("{i}.idf"))).unwrap() == table, "{line}");
    }
    for other in ["--min-df 3", "--max-entries 50", "--seed 1"] {
        bench.ok(&format!("idf in.jsonl --words 1 {other} -o other.idf -q --force"));
        assert!(fs::read(bench.path("other.idf")).unwrap() != table, "{other}");
    }
}

#[test]
fn idf_reports_counts_of_documents_and_table_entries() {
    let bench = Bench::new();
    let texts = [("a", "one two"), ("b", "two three two"), ("c", "..."), ("d", "two one")];
    bench.write("in.jsonl", jsonl(&documents(texts)));
    let report = bench.json("idf in.jsonl -o t.idf --words 1");
    has_fields(
        &report,
        &[
            ("documents", "count"),
            ("counted_documents", "count"),
            ("entries", "count"),
            ("absent", "count"),
            ("digest", "text"),
            ("bytes", "count"),
            ("seconds", "number"),
        ],
    );
    assert_eq!([&report["documents"], &report["counted_documents"]], [4, 3]);
    assert_eq!([&report["entries"], &report["absent"]], [2, 1], "`three` is in one document alone");
    let text = bench.ok("idf in.jsonl -o all.idf --words 1 --min-df 1");
    says(&text, &["all.idf: 3 shingles of 3 documents, others as if in 0"]);
}

#[test]
fn index_stores_its_idf_table() {
    let bench = with_table();
    bench.ok("build i.twx in.jsonl --method simhash --idf t.idf -q");
    let digest = bench.json("idf in.jsonl -o again.idf --words 1")["digest"].as_str().unwrap().to_owned();
    fs::remove_file(bench.path("t.idf")).unwrap();
    assert!(bench.names("i.twx").contains(&format!("IDF-{digest}")));

    let stats = bench.json("stats i.twx");
    assert_eq!(stats["params"]["simhash"], "idf");
    assert_eq!(stats["params"]["idf"], digest.as_str());
    assert_eq!(stats["params"]["width"], "1", "text is cut as for the table");
    assert_eq!(stats["idf"]["digest"], digest.as_str());
    assert_eq!(stats["bytes"]["idf"], fs::metadata(bench.path("again.idf")).unwrap().len());
    says(&bench.ok("stats i.twx"), &["idf table: "]);
    says(&bench.ok("verify i.twx"), &["sound"]);

    // Later documents and queries are sketched with the stored table.
    bench.ok("build i.twx in.jsonl -q");
    assert_eq!(bench.json("build i.twx in.jsonl --idf again.idf")["documents"], 120);
    bench.write("q.jsonl", jsonl(&corpus(3, 120)[..9]));
    let answers = bench.json("query i.twx q.jsonl --near within:0");
    assert!(answers["hits"].as_u64().unwrap() >= 5, "{answers}");

    // With a damaged table, no sketches can be made, but everything else works.
    let path = bench.path(&format!("i.twx/IDF-{digest}"));
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    says(&bench.refused("query i.twx q.jsonl"), &["damaged: idf at offset 64", &digest]);
    assert!(bench.ok("pairs i.twx --near within:0").lines().count() > 1);
    assert!(bench.json("stats i.twx")["idf"].is_null());
    let mut verify = bench.command("verify i.twx");
    verify.assert().code(1);
}

#[test]
fn dedup_weights_shingles_by_an_idf_table() {
    let bench = Bench::new();
    // Without the table, the resemblance of the two letters depends on the length of their headers.
    let header = "from to subject date received by mail server version encoding plain text ".repeat(3);
    let mut all: Vec<(String, String)> =
        (0..40).map(|i| (format!("k{i}"), format!("{header} x{i} y{i} z{i}"))).collect();
    all.push(("letter".into(), format!("{header} dear alice the parcel arrived")));
    all.push(("copy".into(), format!("{header} dear alice the parcel arrived!")));
    bench.write("in.jsonl", jsonl(&all));
    bench.ok("idf in.jsonl -o t.idf --words 1 --min-df 1 -q");
    let plain = bench.json("dedup in.jsonl -o plain --near within:3 --words 1");
    let weighted = bench.json("dedup in.jsonl -o weighted --near within:3 --idf t.idf --index kept");
    assert!(plain["pairs"].as_u64().unwrap() > weighted["pairs"].as_u64().unwrap(), "{plain} {weighted}");
    let pairs = bench.read("weighted/pairs.tsv");
    assert!(pairs.lines().any(|line| line.starts_with("copy\tletter\t")), "{pairs}");
    says(&bench.ok("verify weighted/index"), &["sound"]);
    assert_eq!(bench.json("stats weighted/index")["params"]["simhash"], "idf");
    let usage = bench.command("dedup in.jsonl -o no --idf t.idf").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn sketches_made_with_an_idf_table_require_it_in_build() {
    let bench = with_table();
    bench.ok("idf in.jsonl -o other.idf --words 1 --min-df 1 -q");
    bench.ok("build s.sk in.jsonl --method simhash --idf t.idf -q --as sketches");
    bench.ok("build plain.sk in.jsonl -q --as sketches");
    let before = bench.contents(".");
    for (line, parts) in [
        ("build n.twx s.sk", &["s.sk: made with an idf table; name it with --idf FILE"][..]),
        ("build n.twx s.sk --idf other.idf", &["other.idf: not the idf table that s.sk was made with"]),
        ("build n.twx plain.sk --idf t.idf", &["plain.sk: made without an idf table", "--idf t.idf"]),
        ("build n.twx t.idf", &["t.idf: an idf table, not documents; name it with --idf"]),
        ("dedup t.idf -o out", &["t.idf: an idf table, not documents"]),
    ] {
        says(&bench.refused(line), parts);
        assert!(bench.contents(".") == before, "{line}: files changed");
    }
    bench.ok("build n.twx s.sk --idf t.idf -q");
    // An existing index has the table already.
    bench.ok("build n.twx s.sk -q");
    bench.ok("build n.twx s.sk --idf t.idf -q");
}

#[test]
fn mismatched_idf_tables_are_refused_and_leave_no_files() {
    let bench = with_table();
    bench.ok("idf in.jsonl -o other.idf --words 1 --min-df 1 -q");
    bench.ok("build i.twx in.jsonl --method simhash --idf t.idf -q");
    bench.ok("build plain.twx in.jsonl -q");
    let mut damaged = fs::read(bench.path("t.idf")).unwrap();
    damaged[100] ^= 1;
    bench.write("damaged.idf", &damaged);
    bench.write("cut.idf", &damaged[..damaged.len() / 2]);
    let before = bench.contents(".");
    for (line, parts) in [
        (
            "build n.twx in.jsonl --method simhash --idf t.idf --words 2",
            &["t.idf: ", "width=1", "width=2"][..],
        ),
        ("build n.twx in.jsonl --method simhash --idf t.idf --seed 2", &["seed=0", "seed=2"]),
        ("dedup in.jsonl -o out --near within:3 --idf t.idf --words 2", &["t.idf: ", "width=1", "width=2"]),
        ("build n.twx in.jsonl --idf in.jsonl", &["in.jsonl: not an idf table", "twindex idf"]),
        ("build n.twx in.jsonl --idf i.twx/CURRENT", &["CURRENT: not an idf table"]),
        ("build n.twx in.jsonl --idf damaged.idf", &["damaged.idf: damaged", "digest"]),
        ("build n.twx in.jsonl --idf cut.idf", &["cut.idf: damaged"]),
        ("build n.twx in.jsonl --idf absent.idf", &["absent.idf"]),
        ("build i.twx in.jsonl --idf other.idf", &["i.twx", "not the table of this index"]),
        ("build plain.twx in.jsonl --idf t.idf", &["plain.twx", "not the table of this index"]),
        ("idf in.jsonl -o t.idf", &["t.idf: already exists", "--force"]),
        ("idf in.jsonl -o i.twx --force", &["i.twx: not a regular file"]),
        ("idf absent.jsonl -o n.idf", &["absent.jsonl"]),
    ] {
        let message = bench.refused(line);
        says(&message, parts);
        assert!(bench.contents(".") == before, "{line}: files changed");
    }
    bench.ok("idf in.jsonl -o damaged.idf --words 1 --force -q");
    assert!(fs::read(bench.path("damaged.idf")).unwrap() == fs::read(bench.path("t.idf")).unwrap());
}
