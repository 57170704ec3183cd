//! Options of reading that have no effect on the inputs of a command are refused with exit code 2, before anything is
//! written. An option that has an effect on one of the inputs is accepted.

use crate::formats::write_parquet;
use crate::support::{Bench, says};

const TEXT: &str = "seven small ships sail south in the spring";

/// Creates an input of each kind.
fn inputs() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", format!("{{\"id\":\"k\",\"text\":\"{TEXT}\",\"body\":\"{TEXT}\"}}\n"));
    bench.write("in.csv", format!("id,text\nk,{TEXT}\n"));
    bench.write("in.tsv", format!("id\ttext\nk\t{TEXT}\n"));
    write_parquet(&bench, "in.parquet", &[("k".to_owned(), TEXT.to_owned())]);
    let record = |kind: &str, of_type: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: k\r\nContent-Type: {of_type}\r\nContent-Length: {}\r\n\r\n\
             {TEXT}\r\n\r\n",
            TEXT.len()
        )
    };
    bench.write("in.wet", record("conversion", "text/plain"));
    bench.write("in.warc", record("resource", "text/html"));
    bench.write("in.txt", TEXT);
    bench.write("in.html", format!("<p>{TEXT}</p>"));
    bench.write("texts/a.txt", TEXT);
    bench.write("shards/a.jsonl", format!("{{\"id\":\"k\",\"text\":\"{TEXT}\"}}\n"));
    bench
}

/// Runs a command that must be refused with exit code 2 and change nothing in the folder. Returns its message.
fn usage(bench: &Bench, line: &str) -> String {
    let before = bench.contents(".");
    let output = bench.command(line).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert!(bench.contents(".") == before, "{line}: something was written");
    message
}

const ALL: [&str; 10] = [
    "in.jsonl",
    "in.csv",
    "in.tsv",
    "in.parquet",
    "in.wet",
    "in.warc",
    "in.txt",
    "in.html",
    "texts",
    "shards",
];

#[test]
fn reading_option_is_refused_for_exactly_the_kinds_on_which_it_has_no_effect() {
    let bench = inputs();
    let tables = &["in.csv", "in.tsv"][..];
    let fields = &["in.jsonl", "in.csv", "in.tsv", "in.parquet", "shards"][..];
    let records = &["in.jsonl", "in.csv", "in.tsv", "in.parquet", "in.wet", "in.warc", "shards"][..];
    let folders = &["texts", "shards"][..];
    let warc = &["in.warc"][..];
    let lines = &["in.jsonl", "in.csv", "in.tsv", "in.txt", "in.html", "texts", "shards"][..];
    let but_parquet: Vec<&str> = ALL.into_iter().filter(|input| *input != "in.parquet").collect();
    for (options, name, effective) in [
        ("--dialect delimiter=;", "--dialect", tables),
        ("--dialect quote='", "--dialect", tables),
        ("--dialect quote=none", "--dialect", tables),
        ("--dialect escape=\\", "--dialect", tables),
        ("--dialect escape=\\,quote=none", "--dialect", tables),
        ("--dialect escape=\\,quote='", "--dialect", tables),
        ("--dialect no-header", "--dialect", tables),
        ("--glob *", "--glob", folders),
        ("--glob !none", "--glob", folders),
        ("--text-field body", "--text-field", fields),
        ("--id-field key", "--id-field", records),
        ("--id-field FILE:ROW", "--id-field", records),
        ("--id-field id", "--id-field", records),
        ("--encoding windows-1252", "--encoding", &but_parquet),
        ("--invalid-utf8 replace", "--invalid-utf8", &ALL),
        ("--skip-bad 3", "--skip-bad", &ALL),
        ("--also revisits", "--also revisits", warc),
        ("--compress gzip", "--compress", lines),
        // The default, given explicitly.
        ("--text-field text --format auto --skip-bad 0", "", &ALL),
    ] {
        for input in ALL {
            let line = format!("dedup {input} -o out --force -q {options}");
            if effective.contains(&input) {
                let output = bench.command(&line).output().unwrap();
                let message = String::from_utf8(output.stderr).unwrap();
                // A column or a key may be missing, but the option is accepted.
                assert_ne!(output.status.code(), Some(2), "{line}: {message}");
            } else {
                let message = usage(&bench, &line);
                says(&message, &[name, " has no effect in this run: ", "leave it out"]);
            }
        }
    }
    says(
        &usage(&bench, "dedup in.jsonl in.parquet in.txt -o new --dialect no-header"),
        &[
            "--dialect has no effect in this run: it applies to CSV and TSV files, and the inputs are JSONL, Parquet and \
             text files; leave it out, or name the format of the inputs with --format",
        ],
    );
    let said = usage(&bench, "dedup in.txt -o new --format jsonl --dialect delimiter=;");
    assert!(said.ends_with("the inputs are JSONL files; leave it out\n"), "{said}");
    says(&usage(&bench, "dedup in.jsonl -o new --glob !*.jsonl"), &["no input is a folder"]);
}

#[test]
fn option_without_effect_is_refused_by_every_verb_that_reads_documents() {
    let bench = inputs();
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("build plain.twx in.jsonl -q --sets none");
    bench.ok("dedup in.jsonl -o out -q");
    bench.ok("passages in.jsonl -o spans --index p.twp --min-words 4 -q");
    bench.write("more/in.jsonl", bench.read("in.jsonl"));
    for line in [
        "dedup in.jsonl -o new",
        "dedup in.jsonl -o new --resume",
        "dedup in.jsonl -o new --against out",
        "build new.twx in.jsonl",
        "build i.twx in.jsonl",
        "build new.twx in.jsonl more/in.jsonl --resume",
        "stream i.twx in.jsonl",
        "stream new.twx in.jsonl",
        "query i.twx in.jsonl",
        "query i.twx in.jsonl --near containment:0.8",
        "query plain.twx in.jsonl --near 0.8 --texts more/in.jsonl",
        "build new in.jsonl --as sketches",
        "build more in.jsonl --as folder",
        "idf in.jsonl -o new.idf",
        "passages in.jsonl -o new",
        "passages query p.twp in.jsonl --documents more/in.jsonl --html new.html",
        "study in.jsonl --method minhash",
        "why out k in.jsonl",
    ] {
        says(
            &usage(&bench, &format!("{line} --dialect delimiter=;")),
            &["--dialect has no effect", "CSV and TSV files"],
        );
    }
    bench.write("pairs", "a\tb\t0\n");
    says(
        &usage(&bench, "pairs plain.twx --near 0.8 --texts in.wet --text-field body"),
        &["--text-field has no effect", "the inputs are WET files"],
    );
    says(
        &usage(
            &bench,
            "groups --as clusters plain.twx --near 0.8 --keep longest --texts in.wet --text-field body",
        ),
        &["--text-field has no effect"],
    );
    let mut piped = bench.command("build - - --dialect delimiter=; --as table");
    let output = piped.write_stdin(bench.read("in.jsonl")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["--dialect has no effect", "the inputs are JSONL files"],
    );
}

#[test]
fn option_with_an_effect_on_one_input_is_accepted_for_all() {
    let bench = inputs();
    bench.write("semi.csv", format!("key;body\nc;{TEXT} again\n"));
    bench.write("body.jsonl", format!("{{\"key\":\"j\",\"body\":\"{TEXT}\"}}\n"));
    let options = "--dialect delimiter=; --id-field key --text-field body -q";
    for line in [
        "dedup semi.csv body.jsonl texts -o out",
        "build i.twx semi.csv body.jsonl in.txt --sets none",
        // One input at a time is opened.
        "build r.twx semi.csv body.jsonl in.txt --resume",
        "passages semi.csv body.jsonl in.txt -o spans --index p.twp --min-words 4",
        // The history is read with the same options.
        "dedup body.jsonl -o next --against out",
        "passages query p.twp in.txt --documents semi.csv --html page.html",
        "query i.twx in.txt --near 0.8 --texts semi.csv body.jsonl in.txt",
        "pairs i.twx --near 0.8 --texts semi.csv body.jsonl in.txt",
        "groups --as clusters i.twx --near 0.5 --verify signature --keep longest --texts semi.csv body.jsonl in.txt",
    ] {
        bench.ok(&format!("{line} {options}"));
    }
    std::fs::create_dir(bench.path("parts")).unwrap();
    bench.ok(
        "build parts semi.csv body.jsonl --dialect delimiter=; --id-field key --text-field body --as folder",
    );
    bench.ok("dedup in.warc in.jsonl -o revisits --also revisits --compress gzip -q");
}
