//! No document may be lost if records have no key, a repeated key, or a key in nested fields.

use std::fs::File;
use std::sync::Arc;

use crate::support::{Bench, documents, jsonl, refused, rows, says, succeeded};
use arrow_array::{
    ArrayRef, Decimal128Array, FixedSizeBinaryArray, Float64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const ONE: &str = "one two three four five six seven eight";
const TWO: &str = "the quick brown fox jumps over a lazy dog";
const CLUSTERS: &str = "key\tcluster\tkept\tscore";

fn record(uri: &str, content: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {uri}\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

/// Returns the pairs of key and kept key in `clusters.tsv`.
fn clusters(bench: &Bench, out: &str) -> Vec<[String; 2]> {
    let table = bench.read(&format!("{out}/clusters.tsv"));
    let fields = |row: String| {
        let fields: Vec<&str> = row.split('\t').collect();
        [fields[0].to_owned(), fields[2].to_owned()]
    };
    rows(&table, CLUSTERS).into_iter().map(fields).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<[String; 2]> {
    pairs.map(|(key, kept)| [key.to_owned(), kept.to_owned()]).to_vec()
}

#[test]
fn url_captured_twice_gets_a_numbered_key() {
    let bench = Bench::new();
    let archive = [
        record("http://a/", ONE),
        record("http://a/", TWO),
        record("http://b/", TWO),
        record("http://a/", ONE),
    ];
    bench.write("in.wet", archive.concat());
    let said = bench.ok("dedup in.wet -o out --index kept");
    says(
        &said,
        &[
            "4 documents",
            "2 documents with a key that came before",
            "in.wet, record 2: `http://a/` is `http://a/#2`",
        ],
    );
    assert_eq!(
        clusters(&bench, "out"),
        pairs([
            ("http://a/", "http://a/"),
            ("http://a/#2", "http://a/#2"),
            ("http://a/#3", "http://a/"),
            ("http://b/", "http://a/#2")
        ])
    );
    assert_eq!(bench.read("out/kept.wet"), [record("http://a/", ONE), record("http://a/", TWO)].concat());
    assert_eq!(bench.read("out/kept.wet.keys"), "number\tkey\n2\thttp://a/#2\n");
    assert_eq!(bench.ok("get out/index"), "http://a/\nhttp://a/#2\n");
    let report = bench.json("dedup in.wet -o out --index kept --force");
    assert_eq!((&report["numbered_keys"], &report["kept"]), (&2.into(), &2.into()));

    // The next run uses the same keys for these documents, and adds numbers that follow those of all of them, also of the
    // removed one.
    bench.write(
        "next.wet",
        [record("http://c/", TWO), record("http://a/", "something else altogether")].concat(),
    );
    bench.ok("dedup next.wet --against out -o next -q");
    says(&bench.read("next/against.tsv"), &["http://c/\thttp://a/#2\t"]);
    assert_eq!(clusters(&bench, "next"), pairs([("http://a/#4", "http://a/#4")]));
    // `why` and exact counts on texts use the same keys as well.
    says(
        &bench.ok("why out http://b/"),
        &["goes for http://a/#2", "in.wet, record 3", "out/kept.wet, record 2"],
    );
    says(&bench.ok("why out http://a/#3"), &["goes for http://a/, which", "in.wet, record 4"]);
    says(&bench.ok("why next http://c/"), &["goes for http://a/#2"]);
    bench.ok("pairs out/index --near 0.5 --verify exact --texts out/kept.wet");
}

#[test]
fn repeated_keys_option_takes_first_or_last_or_refuses() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        jsonl(&documents([("a", ONE), ("b", TWO), ("a", "three"), ("a", "four words are here")])),
    );
    for (how, kept, passed_over) in [
        ("number", vec![ONE, TWO, "three", "four words are here"], None),
        ("first", vec![ONE, TWO], Some(2)),
        ("last", vec![TWO, "four words are here"], Some(2)),
    ] {
        let report = bench.json(&format!("dedup in.jsonl -o {how} --repeated-keys {how}"));
        assert_eq!(report["repeated_keys"].as_u64(), passed_over, "{how}");
        assert_eq!(report["documents"], kept.len(), "{how}");
        let texts: Vec<String> = bench
            .read(&format!("{how}/kept.jsonl"))
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(texts, kept, "{how}");
    }
    says(&bench.ok("why number a#3"), &["a#3 stays"]);
    let said = bench.ok("dedup in.jsonl -o last --force --repeated-keys last");
    says(&said, &["2 documents passed over for a key that others have too, the first: in.jsonl:1: `a`"]);
    let message = bench.refused("dedup in.jsonl -o error --repeated-keys error");
    says(
        &message,
        &["in.jsonl:3: the key `a` is already at in.jsonl:1; give each document a key of its own"],
    );
    let lines = bench.read("in.jsonl");
    let message =
        refused("a pipe", bench.command("dedup - -o pipe --repeated-keys last").write_stdin(lines.clone()));
    says(&message, &["<stdin>: can be read only once"]);
    succeeded("a pipe", bench.command("dedup - -o pipe -q").write_stdin(lines));

    // By default, an index keeps the last document with a key.
    for (how, keys, replaced) in [
        ("", "a\nb\n", 2),
        ("--repeated-keys first", "a\nb\n", 0),
        ("--repeated-keys number", "a\na#2\na#3\nb\n", 0),
    ] {
        let index = how.replace([' ', '-'], "_");
        let report = bench.json(&format!("build {index}.twx in.jsonl {how}"));
        assert_eq!(report["replaced"], replaced, "{how}");
        assert_eq!(bench.ok(&format!("get {index}.twx")), keys, "{how}");
    }
    says(
        &bench.refused("build e.twx in.jsonl --repeated-keys error"),
        &["in.jsonl:3: the key `a` came before"],
    );
}

#[test]
fn numbered_keys_do_not_collide_with_existing_keys() {
    let bench = Bench::new();
    let keys = ["a", "a#2", "a", "a#2", "a"];
    let texts: Vec<String> =
        (0..5).map(|i| format!("text number {i} has words of its own like w{i}")).collect();
    let all: Vec<_> = keys.iter().zip(&texts).map(|(key, text)| ((*key).to_owned(), text.clone())).collect();
    bench.write("in.jsonl", jsonl(&all));
    bench.ok("dedup in.jsonl -o out -q");
    let found: Vec<String> = clusters(&bench, "out").into_iter().map(|[key, _]| key).collect();
    assert_eq!(found, ["a", "a#2", "a#2#2", "a#3", "a#4"]);
    assert_eq!(bench.read("out/kept.jsonl.keys"), "number\tkey\n3\ta#3\n4\ta#2#2\n5\ta#4\n");
    assert_eq!(bench.read("out/kept.jsonl"), bench.read("in.jsonl"), "the documents are as they were");
}

#[test]
fn records_without_keys_are_keyed_by_line() {
    let bench = Bench::new();
    let line = |text: &str| format!("{{\"title\":\"q\",\"text\":\"{text}\"}}\n");
    bench.write("in.jsonl", [line(ONE), line(TWO), line(ONE)].concat());
    bench.write("more.csv", format!("text,n\n\"{TWO}\",1\n\"of two\nlines\",2\n"));
    let said = bench.ok("dedup in.jsonl more.csv -o out");
    says(&said, &["5 documents with the key FILE:ROW"]);
    assert_eq!(
        clusters(&bench, "out"),
        pairs([
            ("in.jsonl:1", "in.jsonl:1"),
            ("in.jsonl:2", "in.jsonl:2"),
            ("in.jsonl:3", "in.jsonl:1"),
            ("more.csv:2", "in.jsonl:2"),
            ("more.csv:3", "more.csv:3"),
        ])
    );
    assert_eq!(bench.read("out/kept.jsonl"), [line(ONE), line(TWO)].concat());
    assert_eq!(bench.read("out/kept.csv"), "text,n\n\"of two\nlines\",2\n");
    assert_eq!(bench.read("out/kept.csv.keys"), "number\tkey\n2\tmore.csv:3\n");
    says(&bench.ok("why out in.jsonl:3"), &["goes for in.jsonl:1, which", "in.jsonl:3"]);
    // In the next run, the documents have the same keys.
    bench.write("next.jsonl", line(TWO));
    bench.ok("dedup next.jsonl --against out -o next -q");
    says(&bench.read("next/against.tsv"), &["next.jsonl:1\tin.jsonl:2\t"]);
    assert_eq!(bench.read("next/kept.jsonl"), "");

    // A field that is named must exist. An index accepts `FILE:ROW` keys as well.
    says(&bench.refused("dedup in.jsonl -o no --id-field id"), &["in.jsonl:1: no field \"id\""]);
    bench.ok("build i.twx in.jsonl -q");
    assert_eq!(bench.ok("get i.twx"), "in.jsonl:1\nin.jsonl:2\nin.jsonl:3\n");
    bench.write("keyed.jsonl", jsonl(&documents([("a", ONE), ("a", ONE)])));
    bench.ok("build k.twx keyed.jsonl --id-field FILE:ROW -q");
    assert_eq!(bench.ok("get k.twx"), "keyed.jsonl:1\nkeyed.jsonl:2\n");
    assert_eq!(bench.ok("query k.twx in.jsonl --id-field FILE:ROW --first -q").lines().count(), 2);
}

#[test]
fn keys_repeated_in_several_shards_are_numbered() {
    let bench = Bench::new();
    for shard in ["shards/a.jsonl", "shards/b.jsonl"] {
        let texts = [0, 1].map(|i| (i.to_string(), format!("text {i} of {shard} and some words of its own")));
        bench.write(shard, jsonl(&texts));
    }
    bench.ok("dedup shards --format jsonl -o out -q");
    let found: Vec<String> = clusters(&bench, "out").into_iter().map(|[key, _]| key).collect();
    assert_eq!(found, ["0", "0#2", "1", "1#2"]);
}

#[test]
fn keys_and_texts_may_be_nested_or_joined_fields() {
    let bench = Bench::new();
    let line = |url: &str, title: &str, body: &str| {
        format!("{{\"meta\":{{\"url\":\"{url}\",\"n\":1.50}},\"title\":{title},\"body\":\"{body}\"}}\n")
    };
    bench.write(
        "in.jsonl",
        [line("u", "\"T\"", ONE), line("v", "null", ONE), line("w", "\"T\"", ONE)].concat(),
    );
    bench.ok("dedup in.jsonl -o out --id-field meta.url --text-field /body -q");
    assert_eq!(clusters(&bench, "out"), pairs([("u", "u"), ("v", "u"), ("w", "u")]));
    bench.ok("dedup in.jsonl -o two --id-field meta.n,meta.url --text-field title,body --near equal -q");
    assert_eq!(
        clusters(&bench, "two"),
        pairs([("1.50,u", "1.50,u"), ("1.50,v", "1.50,v"), ("1.50,w", "1.50,u")])
    );
    bench.ok("dedup in.jsonl --against two --id-field meta.n,meta.url --text-field title,body --near equal -o three -q");
    assert_eq!(bench.read("three/against.tsv").lines().count(), 4);
}

/// Writes a Parquet file with one row whose UUID column has the type that UUID-aware writers use.
fn write_uuids(path: &std::path::Path) {
    let schema = "message m { required fixed_len_byte_array(16) id (UUID); required binary text (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let id: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<FixedLenByteArrayType>().write_batch(&[ByteArray::from(id).into()], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(ONE)], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_keys_may_be_decimals_uuids_times_or_nested() {
    let bench = Bench::new();
    let texts = || -> ArrayRef { Arc::new(StringArray::from(vec![Some(ONE), None, Some(TWO)])) };
    let write = |name: &str, columns: Vec<(Field, ArrayRef)>| {
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let file = File::create(bench.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let field = |name: &str, column: &ArrayRef| Field::new(name, column.data_type().clone(), true);
    let decimals: ArrayRef = Arc::new(
        Decimal128Array::from(vec![12345, 18_446_744_073_709_551_616, -7])
            .with_precision_and_scale(20, 2)
            .unwrap(),
    );
    let times: ArrayRef = Arc::new(
        TimestampMicrosecondArray::from(vec![0, 1_500_000, 1_700_000_000_000_000]).with_timezone("UTC"),
    );
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.5, -0.25, 1e9]));
    let uuids: ArrayRef = Arc::new(
        FixedSizeBinaryArray::try_from_iter([[0x11_u8; 16], [0x22; 16], [0xab; 16]].into_iter()).unwrap(),
    );
    for (name, id, column, keys) in [
        (
            "decimal",
            field("id", &decimals),
            Arc::clone(&decimals),
            ["123.45", "184467440737095516.16", "-0.07"],
        ),
        (
            "time",
            field("id", &times),
            Arc::clone(&times),
            ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500Z", "2023-11-14T22:13:20Z"],
        ),
        ("float", field("id", &floats), Arc::clone(&floats), ["1.5", "-0.25", "1000000000"]),
        (
            "bytes",
            field("id", &uuids),
            Arc::clone(&uuids),
            [
                "11111111111111111111111111111111",
                "22222222222222222222222222222222",
                "abababababababababababababababab",
            ],
        ),
    ] {
        let file = format!("{name}.parquet");
        write(&file, vec![(id, column), (field("text", &texts()), texts())]);
        bench.ok(&format!("dedup {file} -o {name} -q"));
        let mut keys = keys.map(|key| [key.to_owned(), key.to_owned()]);
        keys.sort();
        assert_eq!(clusters(&bench, name), keys, "{name}");
    }

    write_uuids(&bench.path("uuid.parquet"));
    bench.ok("dedup uuid.parquet -o uuid --index kept -q");
    assert_eq!(bench.ok("get uuid/index"), "00112233-4455-6677-8899-aabbccddeeff\n");

    let meta = StructArray::try_new(
        vec![Field::new("url", DataType::Utf8, true), Field::new("text", DataType::Utf8, true)].into(),
        vec![Arc::new(StringArray::from(vec!["u", "v", "w"])), texts()],
        Some(vec![true, true, false].into()),
    );
    let meta: ArrayRef = Arc::new(meta.unwrap());
    write("nested.parquet", vec![(field("meta", &meta), Arc::clone(&meta)), (field("n", &floats), floats)]);
    let message = bench.refused("dedup nested.parquet -o no --id-field meta.url --text-field meta.text");
    says(&message, &["nested.parquet, row 3: its key is null"]);
    bench.ok("dedup nested.parquet -o nested --id-field meta.url --text-field meta.text --skip-bad 1 -q");
    assert_eq!(clusters(&bench, "nested"), pairs([("u", "u"), ("v", "v")]));
    bench.ok(
        "dedup nested.parquet -o both --id-field n,meta.url --text-field meta.text,meta.url --skip-bad 1 -q",
    );
    assert_eq!(clusters(&bench, "both"), pairs([("-0.25,v", "-0.25,v"), ("1.5,u", "1.5,u")]));
    bench.ok("dedup nested.parquet -o rows --text-field meta.text -q");
    let found: Vec<String> = clusters(&bench, "rows").into_iter().map(|[key, _]| key).collect();
    assert_eq!(found, ["nested.parquet:1", "nested.parquet:2", "nested.parquet:3"]);
    assert_eq!(bench.read("rows/kept.parquet.keys").lines().count(), 1 + 2);
    says(
        &bench.refused("dedup nested.parquet -o no --id-field meta.none --text-field meta.text"),
        &["no column \"meta.none\" among \"meta\", \"n\""],
    );
}
