//! Output of `twindex passages` other than spans: order by priority, marks, Parquet files, and HTML pages.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use twindex::Key;

use crate::passages::{SPANS, cut, lines, pieced, spans};
use crate::support::{Bench, Document, says};

/// Returns the number of a document, used as its priority.
fn number(at: usize) -> i64 {
    i64::try_from(at * 37 % 50).unwrap() - 20
}

fn numbered(documents: &[Document]) -> String {
    let line = |(at, (key, text)): (usize, &Document)| {
        json!({ "id": key, "text": text, "n": number(at) }).to_string() + "\n"
    };
    documents.iter().enumerate().map(line).collect()
}

/// Computes the spans from their definition if documents are processed in this order; the lines are in input order.
fn spans_in_order(documents: &[Document], order: &[usize], t: usize) -> Vec<String> {
    let reordered: Vec<Document> = order.iter().map(|&at| documents[at].clone()).collect();
    let place: BTreeMap<&str, usize> =
        documents.iter().zip(0..).map(|((key, _), at)| (&key[..], at)).collect();
    let mut lines = spans(&reordered, t, false);
    lines.sort_by_key(|line| place[line.split('\t').next().unwrap()]);
    lines
}

/// Returns the repeated spans of each document, as `--mark` writes them.
fn marks(documents: &[Document], spans: &[String]) -> Vec<String> {
    let of = |(key, _): &Document| {
        let mut united: Vec<[usize; 2]> = Vec::new();
        for columns in spans.iter().map(|line| line.split('\t').collect::<Vec<_>>()) {
            if columns[0] == key {
                let (start, end): (usize, usize) = (columns[1].parse().unwrap(), columns[2].parse().unwrap());
                match united.last_mut() {
                    Some(last) if start <= last[1] => last[1] = last[1].max(end),
                    _ => united.push([start, end]),
                }
            }
        }
        serde_json::to_string(&united).unwrap()
    };
    documents.iter().map(of).collect()
}

#[test]
fn passage_source_is_first_in_priority_order_for_any_memory() {
    let bench = Bench::new();
    let documents = pieced(21, 200);
    bench.write("all.jsonl", numbered(&documents));
    let words = |at: usize| documents[at].1.split_whitespace().count();
    let key = |at: usize| &documents[at].0;
    let hash = |at: usize| Key::Bytes(documents[at].0.as_bytes()).priority_hash();
    let mut plain = Vec::new();
    for which in ["first", "longest", "smallest-key", "key-hash", "max:n", "min:n"] {
        let mut order: Vec<usize> = (0..documents.len()).collect();
        match which {
            "longest" => order.sort_by_key(|&at| std::cmp::Reverse(words(at))),
            "smallest-key" => order.sort_by_key(|&at| key(at)),
            "key-hash" => order.sort_by_key(|&at| (hash(at), key(at))),
            "max:n" => order.sort_by_key(|&at| (-number(at), key(at))),
            "min:n" => order.sort_by_key(|&at| (number(at), key(at))),
            _ => {}
        }
        let expected = spans_in_order(&documents, &order, 8);
        assert!(expected.len() > 50, "{which}: {}", expected.len());
        for work in ["", "--threads 1 --memory 64K"] {
            let out = format!("out-{}-{}", which.replace(':', "-"), work.len());
            bench.ok(&format!("passages all.jsonl -o {out} --min-words 8 --keep {which} -q {work}"));
            assert_eq!(bench.rows(&format!("{out}/spans.tsv"), SPANS), expected, "{which} {work}");
        }
        if which == "first" {
            plain = expected;
        } else {
            assert_ne!(expected, plain, "{which}");
        }
    }
    let settings: Value = serde_json::from_str(&bench.read("out-max-n-0/passages.json")).unwrap();
    assert_eq!(settings["keep"], "max:n");
    // Documents of an index come before all others.
    bench.write("day1.jsonl", numbered(&documents[..100]));
    bench.write("day2.jsonl", numbered(&documents));
    bench.ok("passages day1.jsonl -o day1 --min-words 8 --index all.psg -q");
    bench.write("rest.jsonl", lines(&documents[100..]));
    bench.ok("passages rest.jsonl -o rest --min-words 8 --against all.psg --keep smallest-key -q");
    let mut order: Vec<usize> = (100..documents.len()).collect();
    order.sort_by_key(|&at| key(at));
    let order: Vec<usize> = (0..100).chain(order).collect();
    let mut expected = spans_in_order(&documents, &order, 8);
    expected.retain(|line| documents[100..].iter().any(|(key, _)| line.starts_with(&format!("{key}\t"))));
    assert_eq!(bench.rows("rest/spans.tsv", SPANS), expected);
}

#[test]
fn mark_adds_only_the_span_offsets_to_documents() {
    let bench = Bench::new();
    let documents = pieced(22, 80);
    let marks = marks(&documents, &spans(&documents, 8, false));
    assert!(marks.iter().filter(|mark| *mark != "[]").count() > 40);
    bench.write("in.jsonl", lines(&documents));
    let report = bench.json("passages in.jsonl -o out --min-words 8 --mark --cut -q");
    assert_eq!(
        (&report["kept_files"], &report["marked_files"]),
        (&json!(["kept.jsonl"]), &json!(["marked.jsonl"]))
    );
    let with = |line: &str, mark: &str| format!("{},\"repeated_spans\":{mark}}}", &line[..line.len() - 1]);
    let all = lines(&documents);
    let expected: Vec<String> = all.lines().zip(&marks).map(|(line, mark)| with(line, mark)).collect();
    assert_eq!(bench.read("out/marked.jsonl").lines().collect::<Vec<_>>(), expected);
    // A file that already has the field of `--mark` is refused, unless a prefix gives the new field another name.
    let refused = bench.refused("passages out/marked.jsonl -o twice --min-words 8 --mark -q");
    says(&refused, &["repeated_spans", "--annotation-prefix"]);
    bench.ok("passages out/marked.jsonl -o twice --min-words 8 --mark --annotation-prefix my_ -q");
    says(&bench.read("twice/marked.jsonl"), &["\"my_repeated_spans\":[["]);
    bench.ok("passages in.jsonl -o out --min-words 8 --mark --force -q");
    assert_eq!(bench.names("out"), ["classes.tsv", "marked.jsonl", "passages.json", "spans.tsv"]);

    let row = |(key, text): &Document| format!("{key},\"{text}\"");
    let rows: Vec<String> = documents.iter().map(row).collect();
    bench.write("in.csv", "id,text\n".to_owned() + &rows.join("\n") + "\n");
    bench.ok("passages in.csv -o csv --min-words 8 --mark -q");
    let quoted = |mark: &str| if mark.contains(',') { format!("\"{mark}\"") } else { mark.to_owned() };
    let expected: Vec<String> =
        rows.iter().zip(&marks).map(|(row, mark)| format!("{row},{}\n", quoted(mark))).collect();
    assert_eq!(bench.read("csv/marked.csv"), "id,text,repeated_spans\n".to_owned() + &expected.concat());

    let record = |(key, text): &Document, mark: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {key}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{mark}\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    bench.write("in.wet", documents.iter().map(|document| record(document, "")).collect::<String>());
    bench.ok("passages in.wet -o wet --min-words 8 --mark -q");
    let head = |mark: &String| format!("repeated_spans: {mark}\r\n");
    let expected: String =
        documents.iter().zip(&marks).map(|(document, mark)| record(document, &head(mark))).collect();
    assert_eq!(bench.read("wet/marked.wet"), expected);
}

/// Writes a Parquet file with row groups of 50 rows: id, a number, a title in a struct, text. Its metadata declares the
/// rows as sorted by number and text.
fn write_parquet(bench: &Bench, name: &str, rows: &[(String, Option<String>, Option<String>)]) {
    let strings = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let titles = Fields::from(vec![Field::new("title", DataType::Utf8, true)]);
    let sorting = |column_idx| SortingColumn { column_idx, descending: false, nulls_first: false };
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![KeyValue::new("owner".to_owned(), "somebody".to_owned())]))
        .set_sorting_columns(Some(vec![sorting(1), sorting(3)]));
    let mut writer: Option<ArrowWriter<File>> = None;
    for (group, rows) in rows.chunks(50).enumerate() {
        let title = strings(rows.iter().map(|row| row.2.as_deref()).collect());
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("id", strings(rows.iter().map(|row| Some(&row.0[..])).collect()), false),
            (
                "n",
                Arc::new(Int64Array::from_iter_values(
                    (0..).take(rows.len()).map(|at| at + i64::try_from(group).unwrap()),
                )) as ArrayRef,
                false,
            ),
            ("page", Arc::new(StructArray::new(titles.clone(), vec![title], None)) as ArrayRef, true),
            ("text", strings(rows.iter().map(|row| row.1.as_deref()).collect()), true),
        ]);
        let batch = batch.unwrap();
        let writer = writer.get_or_insert_with(|| {
            let file = File::create(bench.path(name)).unwrap();
            ArrowWriter::try_new(file, batch.schema(), Some(properties.clone().build())).unwrap()
        });
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    writer.unwrap().close().unwrap();
}

#[test]
#[allow(clippy::too_many_lines, reason = "one file, and what becomes of it")]
fn cut_changes_only_the_spans_of_parquet_rows() {
    let bench = Bench::new();
    let whole = pieced(23, 170);
    // The text consists of two columns, one of them in a struct. Some titles and some texts are null.
    let rows: Vec<(String, Option<String>, Option<String>)> = (0..)
        .zip(&whole)
        .map(|(at, (key, text)): (usize, _)| {
            let middle = text.find('\n').filter(|_| at % 7 != 0);
            let title = middle.map(|middle| text[middle + 1..].to_owned());
            let text = text[..middle.unwrap_or(text.len())].to_owned();
            (key.clone(), (at % 31 != 30).then_some(text), title)
        })
        .collect();
    assert!(rows.iter().filter(|row| row.2.is_some()).count() > 50);
    write_parquet(&bench, "in.parquet", &rows);
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let documents: Vec<Document> =
        rows.iter().map(|(key, text, title)| (key.clone(), part(text) + "\n" + &part(title))).collect();
    let expected = spans(&documents, 8, false);
    let report =
        bench.json("passages in.parquet -o out --min-words 8 --cut --mark --text-field text,page.title -q");
    assert_eq!(report["kept_files"], json!(["kept.parquet"]));
    assert_eq!(bench.rows("out/spans.tsv", SPANS), expected);
    // Returns each part of the text without the removed bytes of the whole text.
    let parts_left = |(key, text, title): &(String, Option<String>, Option<String>)| {
        let (first, second) = (part(text), part(title));
        let joined = format!("{first}\n{second}");
        let spans: Vec<Range<usize>> = expected
            .iter()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .filter(|columns| columns[0] == key)
            .map(|columns| columns[1].parse().unwrap()..columns[2].parse().unwrap())
            .collect();
        let stays = |at: &usize| !spans.iter().any(|span| span.contains(at));
        let left = |from: usize, to: usize| {
            (from..to).filter(stays).map(|at| char::from(joined.as_bytes()[at])).collect::<String>()
        };
        let (end, begin) = (first.len(), first.len() + 1);
        (text.as_ref().map(|_| left(0, end)), title.as_ref().map(|_| left(begin, joined.len())))
    };
    let read = |name: &str| -> (Vec<RecordBatch>, Vec<Option<String>>) {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(File::open(bench.path(name)).unwrap()).unwrap();
        let metadata = builder.metadata();
        let said = metadata.file_metadata().key_value_metadata().unwrap();
        assert!(said.iter().any(|said| said.key == "owner" && said.value.as_deref() == Some("somebody")));
        let order: Vec<String> = metadata
            .row_groups()
            .iter()
            .map(|group| {
                format!(
                    "{:?}",
                    group
                        .sorting_columns()
                        .map(|all| all.iter().map(|one| one.column_idx).collect::<Vec<_>>())
                )
            })
            .collect();
        let sizes: Vec<i64> =
            metadata.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
        assert_eq!(sizes, [50, 50, 50, 20], "{name}");
        assert_eq!(order[0], if name == "out/kept.parquet" { "Some([1])" } else { "Some([1, 3])" }, "{name}");
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
        let column = |name: &str| -> Vec<Option<String>> {
            let of = |batch: &RecordBatch| -> Vec<Option<String>> {
                let Some(column) = batch.column_by_name(name) else { return Vec::new() };
                column.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()
            };
            batches.iter().flat_map(of).collect()
        };
        let marks = column("repeated_spans");
        (batches, marks)
    };
    let (before, _) = read("in.parquet");
    let (after, _) = read("out/kept.parquet");
    let (marked, marks_found) = read("out/marked.parquet");
    let all = |batches: &[RecordBatch], name: &str| -> Vec<Value> {
        let of = |batch: &RecordBatch| -> Vec<Value> {
            let column = batch.column_by_name(name).unwrap();
            match column.data_type() {
                DataType::Int64 => column
                    .as_primitive::<arrow_array::types::Int64Type>()
                    .iter()
                    .map(|value| json!(value))
                    .collect(),
                DataType::Struct(_) => {
                    column.as_struct().column(0).as_string::<i32>().iter().map(|value| json!(value)).collect()
                }
                _ => column.as_string::<i32>().iter().map(|value| json!(value)).collect(),
            }
        };
        batches.iter().flat_map(of).collect()
    };
    assert_eq!(before[0].schema().fields(), after[0].schema().fields());
    for name in ["id", "n"] {
        assert_eq!(all(&before, name), all(&after, name), "{name}");
    }
    for name in ["id", "n", "page", "text"] {
        assert_eq!(all(&before, name), all(&marked, name), "{name}");
    }
    let left: Vec<_> = rows.iter().map(parts_left).collect();
    assert_eq!(all(&after, "text"), left.iter().map(|left| json!(left.0)).collect::<Vec<_>>());
    assert_eq!(all(&after, "page"), left.iter().map(|left| json!(left.1)).collect::<Vec<_>>());
    assert!(left.iter().zip(&rows).filter(|(left, row)| left.1 != row.2).count() > 20);
    let marks_found: Vec<String> = marks_found.into_iter().map(Option::unwrap).collect();
    assert_eq!(marks_found, marks(&documents, &expected));
    // Here the text is in one column, as in most files.
    bench.ok("passages in.parquet -o one --min-words 8 --cut -q");
    let texts: Vec<Document> = rows.iter().map(|row| (row.0.clone(), part(&row.1))).collect();
    let expected = spans(&texts, 8, false);
    let left: Vec<Value> = texts
        .iter()
        .zip(&rows)
        .map(|((key, text), row)| json!(row.1.as_ref().map(|_| cut(key, text, &expected))))
        .collect();
    let file = File::open(bench.path("one/kept.parquet")).unwrap();
    let one: Vec<RecordBatch> = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(all(&one, "text"), left);
}

#[test]
fn passage_pages_show_both_texts_and_escape_markup() {
    let bench = Bench::new();
    let shared = "The <b>quick</b> brown fox & a \"lazy\" dog saw each other again";
    let documents = crate::support::documents([
        ("a<i>", &format!("Something before. {shared} and so on")),
        ("b", &format!("Other words here: {shared}! The end")),
        ("c", "nothing that is elsewhere"),
    ]);
    bench.write("all.jsonl", lines(&documents));
    bench.ok("passages all.jsonl -o out --min-words 8 --index all.psg --html page.html -q");
    let escaped = "The &lt;b&gt;quick&lt;/b&gt; brown fox &amp; a &quot;lazy&quot; dog saw each other again";
    let page = bench.read("page.html");
    says(
        &page,
        &[
            &format!("Other words here: <mark><sup>1</sup>{escaped}</mark>! The end"),
            &format!("Something before. <mark><sup>1</sup>{escaped}</mark> and so on"),
            "<bdi>a&lt;i&gt;</bdi>",
            "1 passage, 13 words",
        ],
    );
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("http"), "{page}");
    // Texts in an index are not available. The page shows the words of the new document instead.
    bench.write("next.jsonl", lines(&crate::support::documents([("d", &format!("Once more: {shared}"))])));
    bench.ok("passages next.jsonl -o next --min-words 8 --against all.psg --html next.html -q");
    let page = bench.read("next.html");
    says(
        &page,
        &["First occurrence, in an index", &format!("Once more: <mark><sup>1</sup>{escaped}</mark>")],
    );
    assert_eq!(page.matches(escaped).count(), 2);

    bench.ok("passages query all.psg next.jsonl --html query.html -q");
    let page = bench.read("query.html");
    says(&page, &["Document, its passages alone", &format!("Once more: <mark><sup>1</sup>{escaped}</mark>")]);
    assert!(!page.contains("Other words here"), "{page}");
    let answers = bench.ok("passages query all.psg next.jsonl --html query.html --documents all.jsonl -q");
    assert_eq!(answers.lines().count(), 3);
    says(
        &bench.read("query.html"),
        &[&format!("Other words here: <mark><sup>1</sup>{escaped}</mark>! The end"), "Something before."],
    );
    for (line, read) in [
        ("passages all.jsonl -o no --html all.jsonl -q", "all.jsonl"),
        ("passages query all.psg next.jsonl --html next.jsonl -q", "next.jsonl"),
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), &[read, "the run reads"]);
    }
    says(
        &bench.refused("passages all.jsonl -o no --html nowhere/page.html -q"),
        &["nowhere", "make it first"],
    );
    assert!(!bench.path("no").exists());
}

#[test]
fn passage_results_are_refused_as_history_with_advice() {
    let bench = Bench::new();
    bench.write("a.jsonl", lines(&pieced(1, 3)));
    bench.ok("dedup a.jsonl -o deduped -q");
    bench.ok("passages a.jsonl -o cut --cut -q");
    let usage = |line: &str| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = usage("passages a.jsonl -o out --against deduped");
    says(
        &said,
        &["deduped", "results of `twindex dedup`", "twindex passages deduped/kept.jsonl", "--index INDEX"],
    );
    says(
        &usage("passages a.jsonl -o out --against cut"),
        &["cut", "results of `twindex passages`", "--index INDEX"],
    );
    says(&usage("passages a.jsonl -o out --annotation-prefix my_"), &["--annotation-prefix", "--mark"]);
    says(&usage("passages a.jsonl -o out --keep max"), &["--keep", "max:FIELD"]);
    bench.write("b.jsonl", "{\"id\":\"x\",\"text\":\"a b c\",\"n\":\"no\"}\n");
    says(&bench.refused("passages b.jsonl -o out --keep max:n -q"), &["b.jsonl:1", "number", "\"no\""]);
}
