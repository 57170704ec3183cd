//! Kept documents must be unchanged: the bytes and line endings of rows, and the types and metadata of columns. A file
//! in the input format must be written even if no document is kept, and annotations must not change documents.

use std::fs::File;
use std::sync::Arc;

use crate::support::{Bench, corpus, gzip, jsonl, says};
use parquet::basic::ConvertedType;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int96, Int96Type,
};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Three texts without common words.
const TEXTS: [&str; 3] =
    ["one two three four five six", "red green blue brown pink grey", "cat dog cow hen pig ape"];

#[test]
fn compressed_kept_documents_are_read_by_every_verb() {
    let bench = Bench::new();
    let [a, b, c] = TEXTS;
    let lines = |documents: &[(&str, &str)]| {
        jsonl(&documents.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect::<Vec<_>>())
    };
    bench.write("in.jsonl", lines(&[("x", a), ("y", a), ("z", b)]));
    bench.ok("dedup in.jsonl -o plain -q");
    for (how, suffix) in [("zstd", "zst"), ("gzip", "gz")] {
        let report = bench.json(&format!("dedup in.jsonl -o {how} --compress {how} --also annotated"));
        let names = serde_json::json!([format!("kept.jsonl.{suffix}")]);
        assert_eq!((&report["kept_files"], &report["kept"]), (&names, &2.into()));
        assert!(bench.path(&format!("{how}/annotated.jsonl.{suffix}")).exists());
        bench.ok(&format!("dedup {how}/kept.jsonl.{suffix} -o {how}-again -q"));
        assert_eq!(bench.read(&format!("{how}-again/kept.jsonl")), bench.read("plain/kept.jsonl"));
        bench.write("next.jsonl", lines(&[("w", c), ("v", b)]));
        let next = bench.json(&format!("dedup next.jsonl --against {how} -o {how}-next --max-work 9"));
        assert_eq!((&next["kept"], &next["dropped"]), (&1.into(), &1.into()));
        assert!(bench.ok(&format!("why {how} y")).contains('x'));
    }
    bench.ok("passages in.jsonl -o cut --cut --min-words 3 --compress zstd -q");
    assert!(bench.path("cut/kept.jsonl.zst").exists());
}

#[test]
fn kept_lines_and_rows_are_identical_byte_for_byte() {
    let bench = Bench::new();
    let [a, b, c] = TEXTS;
    let mark = "\u{feff}";
    let lines =
        |end: &str| format!("{{ \"text\":\"{a}\", \"id\" : 1 }}{end}{{\"id\":2,\"text\":\"{b}\"}} {end}");
    for (name, content) in [
        ("crlf.jsonl", mark.to_owned() + &lines("\r\n")),
        ("open.jsonl", lines("\n") + &format!("{{\"id\":3,\"text\":\"{c}\"}}")),
        ("mixed.jsonl", lines("\n") + &format!("{{\"id\":3,\"text\":\"{c}\"}}\r\n")),
        ("crlf.csv", format!("{mark}id,text\r\n1,\"{a}\r\nmore\"\r\n2,{b}\r\n")),
        ("open.csv", format!("sep=;\r\nid;text\n1;{a}\n\"2\";{b}")),
        ("open.tsv", format!("id\ttext\r\n1\t{a}\r\n2\t\"{b}")),
    ] {
        let form = name.split('.').next_back().unwrap();
        bench.write(name, &content);
        bench.ok(&format!("dedup {name} -o out-{name} -q"));
        assert_eq!(bench.read(&format!("out-{name}/kept.{form}")), content, "{name}");
        bench.write(&format!("packed-{name}.gz"), gzip(content.as_bytes()));
        bench.ok(&format!("dedup packed-{name}.gz -o packed-{name} -q"));
        assert_eq!(bench.read(&format!("packed-{name}/kept.{form}")), content, "{name}, packed");
    }
    // If the last line of an input has no line ending, one is added in the kept file. None is added to the last line of the
    // kept file.
    let more = format!("{{\"id\":4,\"text\":\"{a} other words that make it another text\"}}");
    bench.write("more.jsonl", &more);
    bench.ok("dedup open.jsonl more.jsonl -o two -q");
    assert_eq!(bench.read("two/kept.jsonl"), bench.read("open.jsonl") + "\n" + &more);
    // The file of keys next to the kept file counts lines in the same way.
    bench.write("third.jsonl", format!("{{\"id\":3,\"text\":\"{c} once more but longer than it was\"}}\r\n"));
    bench.ok("dedup open.jsonl third.jsonl -o keys -q");
    assert_eq!(bench.read("keys/kept.jsonl.keys"), "number\tkey\n4\t3#2\n");
    bench.write("third.csv", format!("sep=;\r\nid;text\r\n2;{c}\r\n"));
    bench.ok("dedup open.csv third.csv -o rows -q");
    assert_eq!(bench.read("rows/kept.csv"), format!("sep=;\r\nid;text\n1;{a}\n\"2\";{b}\n2;{c}\r\n"));
}

#[test]
fn output_without_documents_has_the_format_of_the_input() {
    let bench = Bench::new();
    let [a, b, _] = TEXTS;
    bench.write("in.csv", format!("\u{feff}id,text\r\n1,{a}\r\n2,{b}\r\n"));
    bench.write("in.tsv", "id\ttext\n");
    bench.write("in.jsonl", format!("{{\"id\":1,\"text\":\"{a}\"}}\n"));
    bench.write("bare.csv", format!("1,{a}\n"));
    let content = b.len();
    bench.write(
        "in.wet",
        format!("WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: b\r\nContent-Length: {content}\r\n\r\n{b}\r\n\r\n"),
    );
    write_kinds(&bench, "in.parquet", &[&[0, 1]]);
    let options =
        |form: &str| if form == "bare.csv" { "--dialect no-header --id-field 1 --text-field 2" } else { "" };
    for (input, kept) in [
        ("in.csv", "kept.csv"),
        ("in.jsonl", "kept.jsonl"),
        ("in.wet", "kept.wet"),
        ("in.parquet", "kept.parquet"),
        ("bare.csv", "kept.csv"),
    ] {
        let options = options(input);
        bench.ok(&format!("dedup {input} -o first-{input} -q {options}"));
        let report = bench.json(&format!("dedup {input} {options} --against first-{input} -o next-{input}"));
        assert_eq!(
            (&report["kept"], &report["kept_files"]),
            (&0.into(), &serde_json::json!([kept])),
            "{input}"
        );
        // The next run can read the file, as input and as a history.
        let again = bench.json(&format!("dedup {input} {options} --against next-{input} -o again-{input}"));
        assert_eq!(again["kept"], again["documents"], "{input}");
        bench.ok(&format!("dedup next-{input}/{kept} {options} -o empty-{input} -q"));
    }
    assert_eq!(bench.read("next-in.csv/kept.csv"), "\u{feff}id,text\r\n");
    assert_eq!(bench.read("next-in.wet/kept.wet") + &bench.read("next-in.jsonl/kept.jsonl"), "");
    let (whole, empty) = (columns(&bench, "in.parquet"), columns(&bench, "next-in.parquet/kept.parquet"));
    assert_eq!(empty.metadata().file_metadata().num_rows(), 0);
    assert_eq!(
        whole.metadata().file_metadata().schema_descr().root_schema(),
        empty.metadata().file_metadata().schema_descr().root_schema()
    );
    bench.ok("dedup in.tsv -o header -q");
    assert_eq!(bench.read("header/kept.tsv"), "id\ttext\n");
}

/// Writes a Parquet file with column types that are easily lost. `groups` lists the rows of each row group.
fn write_kinds(bench: &Bench, name: &str, groups: &[&[usize]]) {
    let column = |name: &str, of_type, repetition, logical, length| {
        let column = Type::primitive_type_builder(name, of_type).with_repetition(repetition);
        Arc::new(column.with_logical_type(logical).with_length(length).build().unwrap())
    };
    let (once, perhaps) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let fields = vec![
        column("id", Physical::BYTE_ARRAY, once, Some(LogicalType::String), -1),
        column("text", Physical::BYTE_ARRAY, perhaps, Some(LogicalType::String), -1),
        column("uuid", Physical::FIXED_LEN_BYTE_ARRAY, once, Some(LogicalType::Uuid), 16),
        column("json", Physical::BYTE_ARRAY, perhaps, Some(LogicalType::Json), -1),
        column("when", Physical::INT96, perhaps, None, -1),
    ];
    let root = Arc::new(Type::group_type_builder("spark_schema").with_fields(fields).build().unwrap());
    let about = ["owner", "huggingface"].map(|key| KeyValue::new(key.to_owned(), format!("{key} says")));
    let sorting = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::default()))
        .set_column_compression("json".into(), Compression::SNAPPY)
        .set_key_value_metadata(Some(about.into()))
        .set_sorting_columns(Some(vec![sorting]));
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, root, Arc::new(properties.build())).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let bytes = |of: &dyn Fn(usize) -> String| -> Vec<ByteArray> {
            rows.iter().map(|&row| ByteArray::from(of(row).as_str())).collect()
        };
        let all = vec![1; rows.len()];
        let ids = bytes(&|row| format!("{row:05}"));
        let texts = bytes(&|row| if row == 3 { TEXTS[0].to_owned() } else { text(row) });
        let some: Vec<i16> = rows.iter().map(|row| i16::from(row % 2 == 0)).collect();
        let objects: Vec<ByteArray> =
            bytes(&|row| format!("{{\"n\":{row}}}")).into_iter().step_by(2).collect();
        assert!(
            rows.iter().enumerate().all(|(at, row)| at % 2 == row % 2),
            "a group begins with an even row"
        );
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<ByteArrayType>().write_batch(&ids, None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<ByteArrayType>().write_batch(&texts, Some(&all), None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        let uuids: Vec<FixedLenByteArray> =
            rows.iter().map(|&row| FixedLenByteArray::from(ByteArray::from(vec![row as u8; 16]))).collect();
        next.typed::<FixedLenByteArrayType>().write_batch(&uuids, None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<ByteArrayType>().write_batch(&objects, Some(&some), None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        let times: Vec<Int96> = rows.iter().map(|&row| when(row)).collect();
        next.typed::<Int96Type>().write_batch(&times, Some(&all), None).unwrap();
        next.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Returns a text that shares no word with any other.
fn text(row: usize) -> String {
    if row < 3 {
        return TEXTS[row].to_owned();
    }
    (0..8).map(|word| format!("w{row}x{word}")).collect::<Vec<_>>().join(" ")
}

/// Times outside the range of 64-bit nanoseconds, among them the last day of the year 9999.
fn when(row: usize) -> Int96 {
    let mut time = Int96::new();
    time.set_data(row as u32 + 1, 7, [5_373_484, 1_721_426, 2_440_588][row % 3]);
    time
}

fn columns(bench: &Bench, name: &str) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(bench.path(name)).unwrap()).unwrap()
}

#[test]
fn kept_parquet_rows_keep_types_metadata_codecs_and_int96_times() {
    let bench = Bench::new();
    // Row 3 has the same text as row 0. A row group that consists of row 3 alone keeps no row.
    write_kinds(&bench, "in.parquet", &[&[0, 1, 2], &[], &[4, 5]]);
    write_kinds(&bench, "more.parquet", &[&[6, 3, 8], &[10]]);
    let report = bench.json("dedup in.parquet more.parquet -o out");
    assert_eq!((&report["kept"], &report["kept_files"]), (&8.into(), &serde_json::json!(["kept.parquet"])));
    let (before, after) = (columns(&bench, "in.parquet"), columns(&bench, "out/kept.parquet"));
    let (before, metadata) = (before.metadata(), after.metadata());
    let root = |of: &parquet::file::metadata::ParquetMetaData| {
        of.file_metadata().schema_descr().root_schema().clone()
    };
    assert_eq!(root(before), root(metadata));
    let said =
        |of: &parquet::file::metadata::ParquetMetaData| of.file_metadata().key_value_metadata().cloned();
    assert_eq!(said(before), said(metadata));
    let rows: Vec<i64> =
        metadata.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
    assert_eq!(rows, [3, 2, 2, 1], "groups stay apart");
    for group in metadata.row_groups() {
        assert_eq!(group.sorting_columns(), before.row_group(0).sorting_columns());
        for (column, other) in group.columns().iter().zip(before.row_group(0).columns()) {
            assert_eq!(column.compression(), other.compression(), "{}", column.column_path());
        }
    }
    let mut found = Vec::new();
    for group in 0..after.num_row_groups() {
        let reader = after.get_row_group(group).unwrap();
        let (mut times, mut uuids, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        let (mut all, mut some, mut none) = (Vec::new(), Vec::new(), Vec::new());
        let ColumnReader::Int96ColumnReader(mut column) = reader.get_column_reader(4).unwrap() else {
            panic!()
        };
        column.read_records(10, Some(&mut all), None, &mut times).unwrap();
        let ColumnReader::FixedLenByteArrayColumnReader(mut column) = reader.get_column_reader(2).unwrap()
        else {
            panic!()
        };
        column.read_records(10, Some(&mut none), None, &mut uuids).unwrap();
        let ColumnReader::ByteArrayColumnReader(mut column) = reader.get_column_reader(3).unwrap() else {
            panic!()
        };
        column.read_records(10, Some(&mut some), None, &mut objects).unwrap();
        let mut objects = objects.into_iter();
        for ((time, uuid), is_there) in times.into_iter().zip(uuids).zip(some) {
            let object = (is_there == 1).then(|| objects.next().unwrap().as_utf8().unwrap().to_owned());
            found.push((time, uuid.data()[0] as usize, object));
        }
    }
    let wanted: Vec<_> = [0, 1, 2, 4, 5, 6, 8, 10]
        .map(|row| (when(row), row, (row % 2 == 0).then(|| format!("{{\"n\":{row}}}"))))
        .into();
    assert_eq!(found, wanted);
}

#[test]
fn annotation_only_adds_fields_to_documents() {
    let bench = Bench::new();
    let [a, b, _] = TEXTS;
    bench.write("in.jsonl", format!("{{\"id\":\"x\",\"text\":\"{a}\"}}\r\n{{\"id\":\"y\",\"text\":\"{a}\"}}\r\n{{\"id\":\"z\",\"text\":\"{b}\"}}"));
    bench.ok("dedup in.jsonl -o out -q --also annotated --also sizes");
    assert_eq!(
        bench.read("out/annotated.jsonl"),
        format!(
            "{{\"id\":\"x\",\"text\":\"{a}\",\"cluster_id\":1,\"cluster_size\":2,\"kept\":true,\"score\":1.000000,\"near_key\":null}}\r\n\
             {{\"id\":\"y\",\"text\":\"{a}\",\"cluster_id\":1,\"cluster_size\":2,\"kept\":false,\"score\":1.000000,\"near_key\":\"x\"}}\r\n\
             {{\"id\":\"z\",\"text\":\"{b}\",\"cluster_id\":2,\"cluster_size\":1,\"kept\":true,\"score\":1.000000,\"near_key\":null}}"
        )
    );
    assert_eq!(
        bench.read("out/kept.jsonl"),
        format!(
            "{{\"id\":\"x\",\"text\":\"{a}\",\"cluster_size\":2}}\r\n{{\"id\":\"z\",\"text\":\"{b}\",\"cluster_size\":1}}"
        )
    );
    // Kept files can be used as a history. They are read in the format of their records, not the format of their current
    // names.
    let report = bench.json("dedup in.jsonl --against out --also annotated -o next");
    assert_eq!(
        (&report["kept"], &report["annotated_files"]),
        (&0.into(), &serde_json::json!(["annotated.jsonl"]))
    );
    assert!(
        bench
            .read("next/annotated.jsonl")
            .contains("\"cluster_id\":null,\"cluster_size\":null,\"kept\":false")
    );
    says(
        &bench.refused("dedup out/annotated.jsonl --also annotated -o twice"),
        &["\"cluster_id\" is there already", "--annotation-prefix"],
    );
    bench.ok("dedup out/annotated.jsonl --also annotated --annotation-prefix again_ -o twice -q");
    assert!(bench.read("twice/annotated.jsonl").contains("\"again_near_key\":\"x\""));
    bench.ok("dedup twice/annotated.jsonl -o out --force -q");
    assert!(!bench.path("out/annotated.jsonl").exists(), "earlier results went as a whole");

    bench.write("in.csv", format!("id,text\nx,{a}\n\"y,\",{a}\n"));
    bench.write("more.csv", format!("id,text\nz,{b}\n"));
    bench.ok("dedup in.csv more.csv --keep smallest-key -o rows -q --also annotated");
    assert_eq!(
        bench.read("rows/annotated.csv"),
        format!(
            "id,text,cluster_id,cluster_size,kept,score,near_key\nx,{a},1,2,true,1.000000,\n\"y,\",{a},1,2,false,1.000000,x\nz,{b},2,1,true,1.000000,\n"
        )
    );
    says(
        &bench.refused("dedup rows/annotated.csv --also sizes -o no"),
        &["\"cluster_size\" is there already"],
    );

    write_kinds(&bench, "in.parquet", &[&[0, 1, 2], &[4, 3, 6]]);
    bench.ok("dedup in.parquet -o columns -q --also annotated");
    let annotated = columns(&bench, "columns/annotated.parquet");
    let names: Vec<String> = annotated
        .metadata()
        .file_metadata()
        .schema_descr()
        .root_schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    assert_eq!(names[5..], ["cluster_id", "cluster_size", "kept", "score", "near_key"]);
    let rows: Vec<String> =
        annotated.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert_eq!(rows.len(), 6);
    assert!(rows[0].contains("cluster_size: 2") && rows[0].contains("near_key: null"), "{}", rows[0]);
    assert!(rows[4].contains("near_key: \"00000\"") && rows[4].contains("kept: false"), "{}", rows[4]);

    let record = |uri: &str, text: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {uri}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    bench.write("in.wet", record("u", a) + &record("v", a));
    bench.ok("dedup in.wet -o archive -q --also annotated");
    assert!(bench.read("archive/annotated.wet").contains("near_key: u\r\n\r\n"));
    assert_eq!(bench.json("dedup archive/annotated.wet -o of-archive")["documents"], 2);
}

/// Earlier, `--json` printed only counts, and the hits, pairs and decisions could not be obtained.
#[test]
fn json_prints_every_hit_decision_pair_and_key() {
    let bench = Bench::new();
    let text = "the crow flew over the river and sat down on the roof of the mill until the rain was over";
    bench.write("first.jsonl", jsonl(&[("a".to_owned(), text.to_owned())]));
    bench.write("second.jsonl", jsonl(&[("b".to_owned(), text.to_owned())]));
    bench.ok("build i.twx first.jsonl -q");
    let one = |line: &str, counted: &str| {
        let lines = bench.json_lines(line);
        let [result, report] = &lines[..] else { panic!("{line}: {lines:?}") };
        assert_eq!(report[counted], 1, "{line}: {report}");
        result.clone()
    };
    let hit = one("query i.twx second.jsonl", "hits");
    assert_eq!((&hit["query"], &hit["key"], &hit["distance"]), (&"b".into(), &"a".into(), &0.into()));
    assert_eq!(hit["resemblance"], 1.0);
    let decisions = bench.json_lines("stream j.twx first.jsonl second.jsonl");
    let decided: Vec<_> =
        decisions[..2].iter().map(|line| (&line["key"], &line["decision"], &line["near_key"])).collect();
    let none = serde_json::Value::Null;
    assert_eq!(
        decided,
        [(&"a".into(), &"new".into(), &none), (&"b".into(), &"duplicate".into(), &"a".into())]
    );
    assert_eq!((decisions.len(), &decisions[2]["duplicates"]), (3, &1.into()));
    let pair = one("pairs j.twx", "pairs");
    assert_eq!((&pair["a"], &pair["b"]), (&"a".into(), &"b".into()));
    let keys = bench.json_lines("get j.twx");
    assert_eq!((&keys[0]["key"], &keys[1]["key"], &keys[2]["keys"]), (&"a".into(), &"b".into(), &2.into()));
}

#[test]
fn json_prints_one_line_per_result_and_statistics_last() {
    let bench = Bench::new();
    let documents = corpus(5, 40);
    bench.write("in.jsonl", jsonl(&documents));
    let lines = |line: &str| -> Vec<serde_json::Value> {
        bench.ok(line).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    bench.ok("build i.twx in.jsonl -q");
    let keys = lines("get i.twx --json");
    assert_eq!((keys.len(), &keys[40]), (41, &serde_json::json!({"keys": 40})));
    for (line, counted, columns) in [
        ("query i.twx in.jsonl", "hits", &["query", "key", "distance", "resemblance"][..]),
        ("pairs i.twx --near 0.5", "pairs", &["a", "b", "resemblance", "intersection", "union"]),
        ("pairs i.twx --near within:5", "pairs", &["a", "b", "distance"]),
        ("stream j.twx in.jsonl", "admitted", &["key", "decision", "near_key", "distance", "resemblance"]),
        ("build - in.jsonl --as table", "documents", &["key", "fingerprint", "features"]),
    ] {
        let all = lines(&format!("{line} --json"));
        let (report, results) = all.split_last().unwrap();
        assert_eq!(report[counted], results.len(), "{line}");
        assert!(results.len() > 3, "{line}: a test of something");
        for result in results {
            assert!(columns.iter().all(|column| result.get(column).is_some()), "{line}: {result}");
        }
        // The JSON lines have the same content as the table.
        let plain = bench.ok(&(line.replace("j.twx", "k.twx") + " -q"));
        let plain: Vec<&str> = plain.lines().filter(|line| !line.starts_with("key\tfinger")).collect();
        assert_eq!(plain.len(), results.len(), "{line}");
        for (row, result) in plain.iter().zip(results) {
            let field = row.split('\t').next().unwrap();
            let first = &result[columns[0]];
            assert_eq!(first.as_str().map_or_else(|| first.to_string(), str::to_owned), field, "{line}");
        }
    }
    let counted = lines("query i.twx in.jsonl --json --count");
    assert_eq!(counted.len(), 1, "--count prints no results");
    bench.ok("pairs i.twx --near 0.5 -o a.pairs -q");
    let forest = lines("groups --as forest a.pairs --json");
    assert_eq!(forest.last().unwrap()["edges"], forest.len() - 1);
    let groups = lines("groups i.twx --json");
    assert_eq!(groups.last().unwrap()["documents"], groups.len() - 1);
    let clusters = lines("groups --as clusters a.pairs --json");
    assert_eq!(clusters.last().unwrap()["documents"], clusters.len() - 1);
    assert!(clusters.len() > 1 && clusters[0]["kept"].is_string(), "{clusters:?}");
}

#[test]
fn every_verb_numbers_or_skips_repeated_keys_on_request() {
    let bench = Bench::new();
    let [a, b, c] = TEXTS;
    bench.write("in.jsonl", [a, b, c].map(|text| format!("{{\"id\":\"k\",\"text\":\"{text}\"}}\n")).concat());
    let keys = |lines: &str| -> Vec<String> {
        let keys = lines.lines().filter(|line| !line.starts_with("key\t"));
        keys.map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    bench.ok("build i.twx in.jsonl --repeated-keys number -q");
    for (how, wanted) in [("number", &["k", "k#2", "k#3"][..]), ("first", &["k"]), ("last", &["k"])] {
        let how = format!("--repeated-keys {how} -q");
        assert_eq!(keys(&bench.ok(&format!("build - in.jsonl {how} --as table"))), wanted, "sketch {how}");
        assert_eq!(keys(&bench.ok(&format!("stream s.twx in.jsonl {how}"))), wanted, "stream {how}");
        assert_eq!(keys(&bench.ok("get s.twx")), wanted, "stream {how}");
        assert_eq!(keys(&bench.ok(&format!("query i.twx in.jsonl {how}"))), wanted, "query {how}");
        std::fs::remove_dir_all(bench.path("s.twx")).unwrap();
        bench.ok(&format!("build s.sketches in.jsonl --force {how} --as sketches"));
        bench.ok("build s.twx s.sketches -q");
        assert_eq!(keys(&bench.ok("get s.twx")), wanted, "build {how} --as sketches");
        std::fs::remove_dir_all(bench.path("s.twx")).unwrap();
    }
    for verb in ["build - in.jsonl --as table", "stream s.twx in.jsonl", "query i.twx in.jsonl"] {
        says(
            &bench.failed(&format!("{verb} --repeated-keys error")),
            &["in.jsonl:2", "the key `k` came before"],
        );
    }
    // By default, all documents are used, and an index keeps the last one with a key.
    let _ = std::fs::remove_dir_all(bench.path("s.twx"));
    let said = bench.ok("stream s.twx in.jsonl -q");
    assert_eq!(said.lines().filter(|line| line.contains("\tknown\t")).count(), 2);
    // The same holds for a pipe.
    let mut piped = bench.command("stream p.twx - --repeated-keys number -q");
    let out = piped.write_stdin(bench.read("in.jsonl")).output().unwrap();
    assert_eq!(keys(&String::from_utf8(out.stdout).unwrap()), ["k", "k#2", "k#3"]);
}

#[test]
fn kept_parquet_files_have_bloom_filters_of_the_kept_rows() {
    let bench = Bench::new();
    let column = |name: &str| {
        let column =
            Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(Repetition::REQUIRED);
        Arc::new(column.with_converted_type(ConvertedType::UTF8).build().unwrap())
    };
    let root =
        Type::group_type_builder("root").with_fields(vec![column("id"), column("text")]).build().unwrap();
    let properties = WriterProperties::builder().set_column_bloom_filter_enabled("id".into(), true).build();
    let file = File::create(bench.path("in.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(root), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    // Row 3 has the same text as row 0.
    for of in [|row: usize| format!("key-{row}"), |row: usize| if row == 3 { text(0) } else { text(row) }] {
        let values: Vec<ByteArray> = (0..40).map(|row| ByteArray::from(of(row).as_str())).collect();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        next.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    assert_eq!(bench.json("dedup in.parquet -o out")["kept"], 39);
    let read = parquet::file::serialized_reader::ReadOptionsBuilder::new()
        .with_reader_properties(
            parquet::file::properties::ReaderProperties::builder().set_read_bloom_filter(true).build(),
        )
        .build();
    let kept =
        SerializedFileReader::new_with_options(File::open(bench.path("out/kept.parquet")).unwrap(), read)
            .unwrap();
    let group = kept.get_row_group(0).unwrap();
    let filter = group.get_column_bloom_filter(0).expect("the filter of `id`");
    assert!(group.get_column_bloom_filter(1).is_none());
    let has = |row: usize| filter.check(format!("key-{row}").as_str());
    assert!((0..40).filter(|&row| row != 3).all(has), "no value that stays is missing");
    let others = (1000..3000).filter(|&row| has(row)).count();
    assert!(others < 400, "{others} of 2,000 others seem to be there");
}

#[test]
fn nested_int96_keys_are_exact_beyond_the_nanosecond_range() {
    let bench = Bench::new();
    let once = Repetition::REQUIRED;
    let time = Type::primitive_type_builder("at", Physical::INT96).with_repetition(once).build().unwrap();
    let meta = Type::group_type_builder("meta")
        .with_repetition(once)
        .with_fields(vec![Arc::new(time)])
        .build()
        .unwrap();
    let words = Type::primitive_type_builder("text", Physical::BYTE_ARRAY).with_repetition(once);
    let words = words.with_converted_type(ConvertedType::UTF8).build().unwrap();
    let root =
        Type::group_type_builder("root").with_fields(vec![Arc::new(meta), Arc::new(words)]).build().unwrap();
    let file = File::create(bench.path("in.parquet")).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(root), Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    next.typed::<Int96Type>().write_batch(&[when(0), when(1), when(2)], None, None).unwrap();
    next.close().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    let texts: Vec<ByteArray> = (0..3).map(|row| ByteArray::from(text(row).as_str())).collect();
    next.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
    next.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bench.ok("dedup in.parquet --id-field meta.at -o out -q");
    let keys: Vec<String> = bench
        .rows("out/clusters.tsv", "key\tcluster\tkept\tscore")
        .iter()
        .map(|row| row.split('\t').next().unwrap().split('T').next().unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["0001-01-01", "1970-01-01", "9999-12-31"]);
}
