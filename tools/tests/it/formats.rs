//! The same documents must give the same pairs in every input format, and kept documents must be written in their input
//! format.

use std::fmt::Write as _;
use std::fs::File;
use std::sync::Arc;

use crate::support::{Bench, Document, corpus, gzip, jsonl, refused, says, succeeded};
use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array, UInt64Array,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriter;

fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

fn table(documents: &[Document], delimiter: &str) -> String {
    let mut table = ["text", "id", "n"].join(delimiter) + "\n";
    for (at, document) in documents.iter().enumerate() {
        table += &[quoted(&document.1), document.0.clone(), at.to_string()].join(delimiter);
        table += "\n";
    }
    table
}

fn record(kind: &str, uri: &str, of_type: &str, content: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {of_type}\r\n\
         Content-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

fn wet(documents: &[Document]) -> String {
    let info = "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n".to_owned();
    let texts = documents.iter().map(|one| record("conversion", &one.0, "text/plain", &one.1));
    info + &texts.collect::<String>()
}

pub(crate) fn write_parquet(bench: &Bench, name: &str, documents: &[Document]) {
    let column = |of: &dyn Fn(&Document) -> &str| -> ArrayRef {
        Arc::new(documents.iter().map(|one| Some(of(one))).collect::<StringArray>())
    };
    let numbers: ArrayRef = Arc::new((0..documents.len() as u32).collect::<UInt32Array>());
    let columns = [("n", numbers), ("text", column(&|one| &one.1)), ("id", column(&|one| &one.0))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(bench.path(name)).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_input_format_gives_the_same_pairs_and_clusters() {
    let bench = Bench::new();
    let documents = corpus(3, 150);
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("in.csv", table(&documents, ","));
    bench.write("in.tsv", table(&documents, "\t"));
    bench.write("packed.csv.gz", gzip(table(&documents, ",").as_bytes()));
    bench.write("in.wet", wet(&documents));
    // Each archive record is compressed separately.
    let members = documents.chunks(1).map(|one| gzip(wet(one).as_bytes())).collect::<Vec<_>>().concat();
    bench.write("packed.wet.gz", members);
    write_parquet(&bench, "in.parquet", &documents);
    bench.ok("dedup in.jsonl -o lines -q");
    for (input, kept) in [
        ("in.csv", "kept.csv"),
        ("in.tsv", "kept.tsv"),
        ("packed.csv.gz", "kept.csv"),
        ("in.wet", "kept.wet"),
        ("packed.wet.gz", "kept.wet"),
        ("in.parquet", "kept.parquet"),
    ] {
        bench.ok(&format!("dedup {input} -o out-{input} -q"));
        for file in ["pairs.tsv", "clusters.tsv"] {
            let wanted = bench.read(&format!("lines/{file}"));
            assert!(wanted.lines().count() > 20, "a test of something");
            assert!(bench.read(&format!("out-{input}/{file}")) == wanted, "{input}: {file}");
        }
        assert!(bench.path(&format!("out-{input}/{kept}")).exists(), "{input}: {kept}");
        assert!(!bench.path(&format!("out-{input}/kept.jsonl")).exists(), "{input}");
    }
    // For standard input, the format must be given.
    let mut piped = bench.command("dedup - --format csv -o piped -q");
    succeeded("stdin", piped.write_stdin(table(&documents, ",")));
    assert_eq!(bench.read("piped/kept.csv"), bench.read("out-in.csv/kept.csv"));

    // A second run over the kept documents keeps all of them.
    for kept in ["csv", "tsv", "wet", "parquet"] {
        let report = bench.json(&format!("dedup out-in.{kept}/kept.{kept} -o again-{kept}"));
        assert_eq!(report["documents"], bench.read("lines/kept.jsonl").lines().count(), "{kept}");
        assert_eq!(report["kept_files"][0], format!("kept.{kept}"));
    }
    let kept = ParquetRecordBatchReaderBuilder::try_new(
        File::open(bench.path("out-in.parquet/kept.parquet")).unwrap(),
    )
    .unwrap();
    assert_eq!(kept.schema().fields().len(), 3, "columns that are no matter here are kept, too");
}

#[test]
fn kept_documents_keep_the_format_of_their_input() {
    let bench = Bench::new();
    let documents = corpus(4, 60);
    let (a, rest) = documents.split_at(20);
    let (b, c) = rest.split_at(20);
    bench.write("a.jsonl", jsonl(a));
    bench.write("b.csv", table(b, ","));
    bench.write("c.csv", table(c, ",").replacen("n\n", "other\n", 1));
    let report = bench.json("dedup a.jsonl b.csv c.csv -o out --near equal");
    assert_eq!(report["kept_files"], serde_json::json!(["kept.jsonl", "kept.csv", "kept-2.csv"]));
    let lines = |name: &str| bench.read(&format!("out/{name}")).lines().count();
    assert!(lines("kept.jsonl") > 0 && lines("kept-2.csv") > 1);
    assert!(bench.read("out/kept-2.csv").starts_with("text,id,other\n"));
    bench.ok("dedup a.jsonl -o out --force -q");
    assert!(!bench.path("out/kept.csv").exists(), "the earlier results went as a whole");
}

#[test]
fn folder_is_read_in_the_format_given_by_the_option() {
    let bench = Bench::new();
    let documents = corpus(5, 40);
    bench.write("in/a.csv", table(&documents[..20], ","));
    bench.write("in/deep/b.csv", table(&documents[20..], ","));
    bench.write("in/readme.txt", "no document here");
    let report = bench.json("dedup in --format csv -o out");
    assert_eq!((report["documents"].as_u64(), report["ignored"].as_u64()), (Some(40), Some(1)));
    let message = bench.refused("dedup in --format parquet -o out2");
    says(&message, &["in: no file named .parquet or .pq below it"]);
}

#[test]
#[cfg(feature = "html")]
fn records_with_wrong_lengths_are_reported_and_the_others_are_read() {
    let bench = Bench::new();
    let page = "<html><body><p>one two three four five six</body></html>";
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
    let bad = record("conversion", "http://b/", "text/plain", "short").replace("Length: 5", "Length: 4000");
    let archive = [
        record("response", "http://a/", "application/http; msgtype=response", &answer),
        record("request", "http://a/", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n"),
        bad,
        record("conversion", "http://c/", "text/plain", "one two three four five six"),
    ]
    .concat();
    bench.write("in.warc", archive);
    let message = bench.refused("dedup in.warc -o out");
    says(
        &message,
        &[
            "in.warc, record 3: its Content-Length is 4000, but the next record begins after 9 bytes",
            "--skip-bad",
        ],
    );
    assert!(!bench.path("out").exists());
    let report = bench.json("dedup in.warc -o out --skip-bad 1");
    assert_eq!(report["documents"], 2);
    assert_eq!(report["skipped_bad"], 1);
    assert_eq!(report["no_documents"], 1);
    assert_eq!(report["pairs"], 1, "the page is what it shows");
    assert!(bench.read("out/kept.warc").contains(page), "and is kept as it was");
}

#[test]
#[cfg(feature = "html")]
fn pages_are_compared_by_visible_text_and_kept_unchanged() {
    let bench = Bench::new();
    bench.write("in/a.html", "<h1>One two</h1><p>three four five six<script>var x;</script>");
    bench.write("in/b.htm", "<p>One two three<i> four</i> five six");
    bench.write("in/c.txt", "<p>One two three<i> four</i> five six");
    let report = bench.json("dedup in -o out");
    assert_eq!((report["documents"].as_u64(), report["pairs"].as_u64()), (Some(3), Some(1)));
    assert!(bench.read("out/kept.jsonl").contains("<h1>One two</h1>"));
}

#[test]
#[cfg(not(feature = "html"))]
fn html_pages_are_refused_naming_the_missing_feature() {
    let bench = Bench::new();
    bench.write("in/a.html", "<h1>One two</h1><p>three four five six");
    bench.write("in/c.txt", "one two three four five six");
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one two";
    bench.write("in.warc", record("response", "http://a/", "application/http; msgtype=response", answer));
    says(&bench.refused("dedup in -o out"), &["in/a.html", "cargo feature `html`", "--skip-bad"]);
    says(&bench.refused("dedup in.warc -o out"), &["in.warc, record 1", "cargo feature `html`"]);
    let report = bench.json("dedup in -o out --skip-bad 1");
    assert_eq!((report["documents"].as_u64(), report["skipped_bad"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn unclosed_quote_in_the_last_row_is_refused_with_its_line() {
    let bench = Bench::new();
    for (name, delimiter, quote) in [("in.csv", ',', ""), ("in.tsv", '\t', "--dialect quote=\"")] {
        bench.write(
            name,
            "id,text\na,one two three\nb,\"four\nfive\nsix,\n".replace(',', &delimiter.to_string()),
        );
        let message = bench.refused(&format!("dedup {name} {quote} -o out"));
        says(&message, &[&format!("{name}:3"), "a quote that opens a field is not closed", "--skip-bad"]);
        assert!(!bench.path("out").exists());
        // After the error, each line is read as a record of its own.
        let report = bench.json(&format!("dedup {name} {quote} -o out --force --skip-bad 2"));
        assert_eq!(
            (report["documents"].as_u64(), report["skipped_bad"].as_u64()),
            (Some(2), Some(2)),
            "{name}"
        );
        std::fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

#[test]
fn run_keeping_no_document_writes_an_empty_file_of_input_format() {
    let bench = Bench::new();
    let all = corpus(3, 20);
    bench.write("in.csv", table(&all, ","));
    bench.write("in.tsv", "id\ttext\n");
    bench.write("in.jsonl", jsonl(&all));
    bench.write("in.wet", wet(&all));
    write_parquet(&bench, "in.parquet", &all);
    for form in ["csv", "jsonl", "wet", "parquet"] {
        bench.ok(&format!("dedup in.{form} -o {form} -q"));
        let report = bench.json(&format!("dedup in.{form} --against {form} -o next-{form}"));
        let files = serde_json::json!([format!("kept.{form}")]);
        assert_eq!((&report["kept"], &report["kept_files"]), (&0.into(), &files), "{form}");
    }
    assert_eq!(bench.read("next-csv/kept.csv"), "text,id,n\n");
    assert_eq!(bench.read("next-wet/kept.wet") + &bench.read("next-jsonl/kept.jsonl"), "");
    let file = File::open(bench.path("next-parquet/kept.parquet")).unwrap();
    let empty = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let names: Vec<&str> = empty.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!((names, empty.metadata().file_metadata().num_rows()), (vec!["n", "text", "id"], 0));
    bench.ok("dedup in.tsv -o header -q");
    assert_eq!(bench.read("header/kept.tsv"), "id\ttext\n");
    // The next run can read the file.
    assert_eq!(bench.json("dedup next-parquet/kept.parquet in.csv -o again --force")["documents"], 20);
}

#[test]
fn parquet_shards_with_different_writer_metadata_are_kept_in_one_file() {
    let bench = Bench::new();
    for (shard, rows) in [(0, 5), (1, 3), (2, 7)] {
        let ids: ArrayRef =
            Arc::new((0..rows).map(|row| Some(format!("{shard}/{row}"))).collect::<StringArray>());
        let texts: ArrayRef = Arc::new(
            (0..rows)
                .map(|row| Some(format!("w{shard} x{row} y{shard}{row} z q{row}{shard} r")))
                .collect::<StringArray>(),
        );
        let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
        let about = format!("{{\"index_columns\": [{{\"stop\": {rows}}}]}}");
        let about = std::collections::HashMap::from([("pandas".to_owned(), about)]);
        let schema = Arc::new(batch.schema().as_ref().clone().with_metadata(about));
        let file = File::create(bench.path(&format!("p{shard}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), None).unwrap();
        writer.write(&batch.with_schema(schema).unwrap()).unwrap();
        writer.close().unwrap();
    }
    let report = bench.json("dedup p0.parquet p1.parquet p2.parquet -o out");
    assert_eq!((&report["kept"], &report["kept_files"]), (&15.into(), &serde_json::json!(["kept.parquet"])));
    assert_eq!(bench.json("dedup out/kept.parquet -o again")["documents"], 15);
}

#[test]
fn common_input_mistakes_are_refused_with_advice() {
    let bench = Bench::new();
    bench.write("in.csv", "url,body\na,b\n");
    says(
        &bench.refused("dedup in.csv -o out"),
        &["in.csv: no column \"text\" in its first row, which names \"url\", \"body\"", "--text-field"],
    );
    says(
        &bench.refused("dedup in.csv -o out --text-field body --id-field key"),
        &["in.csv: no column \"key\" in its first row, which names \"url\", \"body\"", "--id-field"],
    );
    write_parquet(&bench, "in.parquet", &corpus(1, 5));
    says(
        &bench.refused("dedup in.parquet --text-field n -o out"),
        &["in.parquet: cannot read Parquet: the column \"n\" holds UInt32, where strings are expected"],
    );
    says(
        &bench.refused("dedup in.parquet --text-field body -o out"),
        &["no column \"body\" among \"n\", \"text\", \"id\""],
    );
    bench.write("lies.parquet", "{}\n");
    says(&bench.refused("dedup lies.parquet -o out"), &["lies.parquet: cannot read Parquet"]);
    let piped = refused("stdin", bench.command("dedup - --format parquet -o out").write_stdin("PAR1"));
    says(&piped, &["<stdin>: Parquet is read in parts; name a regular file"]);
    assert!(!bench.path("out").exists());
}

/// Returns the value and the stamp of each document, as printed by `get`.
fn attached(bench: &Bench, index: &str, keys: &str) -> Vec<(String, u64)> {
    let mut got = bench.json_lines(&format!("get {index} {keys}"));
    assert_eq!(got.pop().unwrap()["documents"], got.len());
    let records = got.iter();
    let pair = |record: &serde_json::Value| {
        (record["value"].as_str().unwrap_or_default().to_owned(), record["stamp"].as_u64().unwrap())
    };
    records.map(pair).collect()
}

#[test]
fn values_and_stamps_are_read_from_every_format_with_fields() {
    let bench = Bench::new();
    let texts =
        ["one two three four five six", "seven eight nine ten eleven twelve", "a rose is a rose is a rose"];
    // `first` is 2026-11-22T18:30:00Z, and `day` is the length of a day; both are in seconds.
    let (first, day) = (1_795_372_200_u64, 86_400);
    let stamps = [first, first + 1, first + day - 1];
    let wanted: Vec<(String, u64)> =
        ["first, value", "", "3"].into_iter().map(str::to_owned).zip(stamps).collect();
    let said = ["2026-11-22T18:30:00Z", "2026-11-22T19:30:01+01:00", &stamps[2].to_string()];

    let mut rows = "when,id,note,text\n".to_owned();
    let mut archive = String::new();
    for (at, text) in texts.iter().enumerate() {
        let (time, value) = (said[at], &wanted[at].0);
        // A date in an archive is never a plain number.
        let date = if at == 2 { "2026-11-23T18:29:59Z" } else { time };
        writeln!(rows, "{time},k{at},\"{value}\",{text}").unwrap();
        let head = format!(
            "WARC-Target-URI: k{at}\r\nwarc-date: {date}\r\nX-Note: {value}\r\nContent-Type: text/plain\r\n"
        );
        let length = text.len();
        write!(
            archive,
            "WARC/1.0\r\nWARC-Type: conversion\r\n{head}Content-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
        .unwrap();
    }
    bench.write("in.csv", &rows);
    bench.write("in.wet", &archive);
    let millis = stamps.iter().map(|&stamp| i64::try_from(stamp * 1000 + 999).unwrap());
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(millis.collect::<Vec<i64>>()));
    let numbers: ArrayRef = Arc::new(stamps.iter().copied().collect::<UInt64Array>());
    let notes: ArrayRef = Arc::new(StringArray::from(vec![Some("first, value"), None, Some("3")]));
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["k0", "k1", "k2"]));
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    for (name, when) in [("times.parquet", times), ("numbers.parquet", numbers)] {
        let columns = [
            ("note", Arc::clone(&notes), true),
            ("text", Arc::clone(&texts), false),
            ("id", Arc::clone(&ids), false),
            ("when", when, false),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let file = File::create(bench.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    for (input, fields) in [
        ("in.csv", "--stamp-field when --value-field note"),
        ("in.wet", "--stamp-field WARC-Date --value-field X-Note"),
        ("times.parquet", "--stamp-field when --value-field note"),
        ("numbers.parquet", "--stamp-field when --value-field note"),
    ] {
        for verb in ["build", "stream"] {
            bench.ok(&format!("{verb} {verb}-{input}.twx {input} {fields} --expire-after 1d -q"));
            assert_eq!(
                attached(&bench, &format!("{verb}-{input}.twx"), "k0 k1 k2"),
                wanted,
                "{verb} {input}"
            );
        }
    }

    // Unknown names are refused with a list of the table's columns, before an index is created.
    for input in ["in.csv", "times.parquet"] {
        let line = format!("build new.twx {input} --expire-after 1d --stamp-field");
        says(&bench.refused(&format!("{line} date")), &[input, "\"date\"", "\"when\"", "--stamp-field"]);
        let line = format!("{line} when --value-field remark");
        says(&bench.refused(&line), &[input, "\"remark\"", "\"note\"", "--value-field"]);
    }
    says(
        &bench.refused("build new.twx in.wet --expire-after 1d --stamp-field when"),
        &["in.wet, record 1", "\"when\"", "--stamp-field"],
    );
    // Text files have no fields.
    bench.write("folder/a.txt", "a rose is a rose");
    for input in ["folder", "folder/a.txt"] {
        says(
            &bench.refused(&format!("build new.twx {input} --value-field v")),
            &["folder", "--value-field", "JSONL"],
        );
    }
    assert!(!bench.path("new.twx").exists());
}

#[test]
fn column_of_an_unsuitable_type_is_refused_as_stamp_or_value() {
    let bench = Bench::new();
    write_parquet(&bench, "in.parquet", &corpus(1, 20));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let one: ArrayRef = Arc::new(StringArray::from(vec!["a rose is a rose"]));
    let columns = [("f", floats), ("text", Arc::clone(&one)), ("id", one)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(bench.path("f.parquet")).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for (option, expected) in
        [("--value-field f", "strings or whole numbers"), ("--stamp-field f --expire-after 9", "times")]
    {
        says(&bench.refused(&format!("build i.twx f.parquet {option}")), &["\"f\" holds Float64", expected]);
    }
    bench.write("f.parquet.gz", gzip(b"PAR1"));
    says(&bench.refused("build i.twx f.parquet.gz"), &["f.parquet.gz", "unpack it"]);
    bench.write("no.parquet", "PAR1 and no more of it");
    says(&bench.refused("build i.twx no.parquet"), &["no.parquet", "is it a whole Parquet file?"]);
    // A column of numbers can be used as stamps. A null would be a bad record, but there is none.
    bench.ok("build i.twx in.parquet --stamp-field n --expire-after 100 --value-field text -q");
    assert_eq!(bench.ok("get i.twx --count"), "20\n");
    let printed = bench.ok("build few.twx in.parquet --stamp-field n --expire-after 5");
    says(&printed, &["5 documents, 15 replaced or expired"]);
    let stamps: ArrayRef = Arc::new(UInt64Array::from(vec![Some(7), None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a rose is a rose", "one two three"]));
    let columns = [("t", stamps, true), ("text", Arc::clone(&texts), false), ("id", texts, false)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = File::create(bench.path("null.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let said = bench.refused("build null.twx null.parquet --stamp-field t --expire-after 5");
    says(&said, &["null.parquet, row 2: its stamp is null"]);
}
