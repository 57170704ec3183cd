//! Fingerprints read from records, in every notation and file format, are compared by distance only, with the records'
//! keys. Options that need texts must be refused by name.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::support::{Bench, says};

/// Four fingerprints. The second differs from the first in two bits, and the last has the highest bit set.
const PRINTS: [(&str, u64); 4] = [
    ("a.png", 0x0123_4567_89ab_cdef),
    ("b.png", 0x0123_4567_89ab_cdec),
    ("c.png", 0x7fff_0000_ffff_0000),
    ("d.png", 0xf0f0_f0f0_f0f0_f0f0),
];

/// Returns a CSV table of the fingerprints in the notation of `write`.
fn csv(write: impl Fn(u64) -> String) -> String {
    let rows: Vec<String> = PRINTS.iter().map(|(key, print)| format!("{key},{}\n", write(*print))).collect();
    format!("id,phash\n{}", rows.concat())
}

fn jsonl(write: impl Fn(u64) -> String) -> String {
    let row = |(key, print): &(&str, u64)| format!("{{\"id\":\"{key}\",\"phash\":{}}}\n", write(*print));
    PRINTS.iter().map(row).collect::<Vec<_>>().concat()
}

/// Writes columns `id` and `phash`, where `phash` is a signed or unsigned 64-bit integer.
fn parquet(bench: &Bench, name: &str, is_signed: bool) {
    let column = |name: &str, of: Physical, kind: ConvertedType| {
        let column = Type::primitive_type_builder(name, of).with_repetition(Repetition::REQUIRED);
        Arc::new(column.with_converted_type(kind).build().unwrap())
    };
    let number = if is_signed { ConvertedType::INT_64 } else { ConvertedType::UINT_64 };
    let columns = vec![
        column("id", Physical::BYTE_ARRAY, ConvertedType::UTF8),
        column("phash", Physical::INT64, number),
    ];
    let root = Arc::new(Type::group_type_builder("root").with_fields(columns).build().unwrap());
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, root, Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    let keys: Vec<ByteArray> = PRINTS.iter().map(|(key, _)| ByteArray::from(*key)).collect();
    next.typed::<ByteArrayType>().write_batch(&keys, None, None).unwrap();
    next.close().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    let prints: Vec<i64> = PRINTS.iter().map(|(_, print)| print.cast_signed()).collect();
    next.typed::<Int64Type>().write_batch(&prints, None, None).unwrap();
    next.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn fingerprints_in_every_notation_and_format_give_equal_results() {
    let bench = Bench::new();
    let hex = |print: u64| format!("{print:016x}");
    let signed = |print: u64| print.cast_signed().to_string();
    bench.write("hex.csv", csv(hex));
    bench.write("upper.csv", csv(|print| format!("0x{print:X}")));
    bench.write("decimal.csv", csv(|print| print.to_string()));
    bench.write("signed.csv", csv(signed));
    bench.write("bits.csv", csv(|print| format!("{print:064b}")));
    bench.write("hex.tsv", csv(hex).replace(',', "\t"));
    bench.write("numbers.jsonl", jsonl(|print| print.to_string()));
    bench.write("signed.jsonl", jsonl(signed));
    bench.write("strings.jsonl", jsonl(|print| format!("\"{print:016x}\"")));
    bench.write("nested.jsonl", jsonl(|print| format!("{{\"x\":\"{print:#x}\"}}")));
    parquet(&bench, "signed.parquet", true);
    parquet(&bench, "unsigned.parquet", false);
    let pairs = "a.png\tb.png\t2\n";
    for (file, form) in [
        ("hex.csv", "hex"),
        ("upper.csv", "hex"),
        ("decimal.csv", "decimal"),
        ("signed.csv", "signed"),
        ("bits.csv", "bits"),
        ("hex.tsv", "auto"),
        ("numbers.jsonl", "decimal"),
        ("signed.jsonl", "signed"),
        ("strings.jsonl", "hex"),
        ("nested.jsonl", "auto"),
        ("signed.parquet", "signed"),
        ("unsigned.parquet", "decimal"),
    ] {
        let field = if file == "nested.jsonl" { "phash.x" } else { "phash" };
        let say = format!("--fingerprint-field {form}:{field}");
        let found = bench.ok(&format!("pairs --fingerprints {file} {say} --near within:3"));
        assert_eq!(found, pairs, "{file}");
        let by_itself =
            bench.ok(&format!("pairs --fingerprints {file} --fingerprint-field {field} --near within:3"));
        assert_eq!(by_itself, pairs, "{file}, auto");
    }
    let say = "--fingerprint-field phash";
    // An index stores the fingerprints unchanged.
    for file in ["hex.csv", "signed.jsonl", "unsigned.parquet"] {
        let index = format!("{file}.twx");
        bench.ok(&format!("build {index} {file} {say} --near within:3 -q"));
        let got = bench.json_lines(&format!("get {index} d.png a.png"));
        assert_eq!(
            (&got[0]["fingerprint"], &got[1]["fingerprint"]),
            (&"f0f0f0f0f0f0f0f0".into(), &"0123456789abcdef".into())
        );
        let hits = bench.ok(&format!("query {index} signed.csv {say}"));
        assert_eq!(hits.lines().count(), 6, "{hits}");
        assert!(hits.contains("a.png\tb.png\t2\t-\n") && hits.contains("d.png\td.png\t0\t-\n"), "{hits}");
    }
    bench.write("other.csv", "id,phash\nx,0123456789abcdee\n");
    let across = bench.ok(&format!("pairs --fingerprints hex.csv --with other.csv {say} --near within:1"));
    assert_eq!(across, "a.png\tx\t1\nb.png\tx\t1\n");
    // A stream adds one document at a time.
    let lines = bench.ok(&format!("stream s.twx strings.jsonl {say} -q"));
    assert_eq!(
        lines,
        "a.png\tnew\t-\t-\t-\nb.png\tduplicate\ta.png\t2\t-\nc.png\tnew\t-\t-\t-\nd.png\tnew\t-\t-\t-\n"
    );
    // The index can also be queried with raw fingerprints.
    let raw: Vec<u8> = PRINTS.iter().flat_map(|(_, print)| print.to_le_bytes()).collect();
    bench.write("raw.u64", raw);
    bench.ok("build raw.twx --fingerprints raw.u64 -q");
    assert!(bench.ok(&format!("query raw.twx hex.csv {say}")).contains("b.png\t0\t2\t-\n"));
}

#[test]
fn fingerprint_dedup_keeps_rows_verbatim_and_why_recomputes_distances() {
    let bench = Bench::new();
    let more = "e.png,f0f0f0f0f0f0f0f0\nf.png,0x0123456789abcd00\n";
    bench.write("in.csv", csv(|print| format!("{print:016x}")) + more);
    let report = bench.json("dedup in.csv --fingerprint-field phash -o out");
    assert_eq!(
        (&report["documents"], &report["kept"], &report["identical"]),
        (&6.into(), &4.into(), &1.into())
    );
    assert_eq!(
        bench.read("out/kept.csv"),
        "id,phash\na.png,0123456789abcdef\nc.png,7fff0000ffff0000\nd.png,f0f0f0f0f0f0f0f0\nf.png,0x0123456789abcd00\n"
    );
    assert_eq!(bench.read("out/pairs.tsv"), "document\tkept\tdistance\nb.png\ta.png\t2\ne.png\td.png\t0\n");
    says(&bench.ok("why out b.png"), &["goes for a.png", "differ in 2 bits, at most 3", "as in the table"]);
    says(&bench.ok("why out e.png"), &["goes for d.png", "differ in 0 bits", "as in the table"]);
    says(
        &bench.ok("dedup in.csv --fingerprint-field phash -o summary"),
        &["6 fingerprints", "with the fingerprint of the kept one"],
    );
    // In a later run, the fields of a row choose the kept document.
    bench.write(
        "day.jsonl",
        "{\"id\":\"g\",\"phash\":\"7fff0000ffff0001\"}\n{\"id\":\"h\",\"phash\":\"00000000ffffffff\"}\n",
    );
    let day = bench.json("dedup day.jsonl --fingerprint-field phash --against out -o day");
    assert_eq!((&day["dropped"], &day["kept"]), (&1.into(), &1.into()));
    assert_eq!(
        bench.json("dedup in.csv --fingerprint-field phash --near within:8 --keep smallest-key -o wide")["kept"],
        3
    );
    // The order of the input and the number of threads do not matter.
    let once = bench.contents("out");
    bench.ok("dedup in.csv --fingerprint-field phash -o one --threads 1 --memory 64K -q");
    let again = bench.contents("one");
    for name in ["kept.csv", "pairs.tsv", "clusters.tsv"] {
        assert_eq!(once.get(std::path::Path::new(name)), again.get(std::path::Path::new(name)), "{name}");
    }
}

#[test]
fn invalid_fingerprints_and_options_for_texts_are_refused_and_named() {
    let bench = Bench::new();
    bench.write("in.csv", csv(|print| format!("{print:016x}")));
    for (rest, parts) in [
        ("1000000000000000", "can be hexadecimal and decimal"),
        ("fff", "expected 16, 32, 48, 64, 96 or 128 hexadecimal digits"),
        ("18446744073709551616", "expected 16, 32, 48, 64, 96 or 128 hexadecimal digits"),
    ] {
        bench.write("bad.csv", format!("id,phash\nx,{rest}\n"));
        says(
            &bench.refused("dedup bad.csv --fingerprint-field phash -o bad"),
            &["bad.csv:2: field \"phash\": ", parts],
        );
    }
    bench.write("bad.csv", "id,phash\nx,1000000000000000\n");
    for (form, print) in [("hex", "1000000000000000"), ("decimal", "00038d7ea4c68000")] {
        let say = format!("--fingerprint-field {form}:phash");
        bench.ok(&format!("build {form}.twx bad.csv {say} -q"));
        assert_eq!(bench.json_lines(&format!("get {form}.twx x"))[0]["fingerprint"], print);
    }
    for (value, parts) in [
        ("1.5", "with a fraction"),
        ("18446744073709551616", "beyond 64 bits"),
        ("[1]", "is an array"),
        ("true", "is a boolean"),
    ] {
        bench.write("bad.jsonl", format!("{{\"id\":1,\"phash\":{value}}}\n"));
        says(
            &bench.refused("dedup bad.jsonl --fingerprint-field phash -o bad"),
            &["bad.jsonl:1: field \"phash\" ", parts],
        );
        bench.ok(&format!(
            "dedup bad.jsonl --fingerprint-field phash -o skipped-{} --skip-bad 1 -q",
            parts.len()
        ));
    }
    // A name that is in no record is a mistake, so its rows are not taken for rows without a fingerprint.
    bench.write("bad.jsonl", "{\"id\":1,\"p\":1}\n");
    says(
        &bench.refused("dedup bad.jsonl --fingerprint-field phash -o bad"),
        &[
            "no record has a field \"phash\" (see --fingerprint-field); the first is bad.jsonl:1: fields here: \"id\", \"p\"",
        ],
    );
    bench.write("page.warc", "WARC/1.0\r\nContent-Length: 0\r\n\r\n");
    says(
        &bench.refused("dedup page.warc --fingerprint-field phash -o bad"),
        &["page.warc: no JSONL, CSV, TSV, Parquet or Arrow"],
    );
    let usage = |line: &str, parts: &[&str]| {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), parts);
    };
    let dedup = "dedup in.csv --fingerprint-field phash -o no";
    usage(&format!("{dedup} --keep longest"), &["--keep longest", "needs texts"]);
    for option in ["--threshold 0.9", "--near containment:0.9", "--near equal"] {
        usage(
            &format!("{dedup} {option}"),
            &["--fingerprint-field brings fingerprints without texts", "give --near within:K"],
        );
    }
    usage(&format!("{dedup} --weights tf"), &["--weights"]);
    usage(&format!("{dedup} --max-work 9"), &["--max-work"]);
    usage(&format!("{dedup} --words 3"), &["--words says how text is cut", "--fingerprint-field"]);
    usage(&format!("{dedup} --seed 3"), &["--seed"]);
    usage(&format!("{dedup} --text-field text"), &["--text-field and --fingerprint-field"]);
    usage(
        "dedup in.csv --fingerprint-field hex: -o no",
        &["--fingerprint-field", "expected FIELD or FORM:FIELD"],
    );
    usage(
        "build i.twx in.csv --fingerprint-field phash --simhash-weights distinct",
        &["--simhash-weights is for shingles"],
    );
    usage("pairs i.twx --fingerprint-field phash", &["--fingerprints"]);
    // Texts and fingerprints cannot be in the same index.
    bench.ok("build prints.twx in.csv --fingerprint-field phash -q");
    bench.write(
        "texts.jsonl",
        "{\"id\":1,\"text\":\"one two three four five six\",\"phash\":\"0123456789abcdef\"}\n",
    );
    bench.ok("build texts.twx texts.jsonl -q");
    bench.ok("build simhash.twx texts.jsonl --method simhash -q");
    for verb in ["build", "query", "stream"] {
        says(
            &bench.refused(&format!("{verb} prints.twx texts.jsonl")),
            &["prints.twx: made of features or of fingerprints"],
        );
        for index in ["texts.twx", "simhash.twx"] {
            let line = format!("{verb} {index} texts.jsonl --fingerprint-field phash");
            says(&bench.refused(&line), &[index, "made of texts"]);
        }
    }
    bench.write("raw.u64", 7_u64.to_le_bytes());
    bench.ok("build raw.twx --fingerprints raw.u64 -q");
    says(
        &bench.refused("build raw.twx in.csv --fingerprint-field phash"),
        &["raw.twx: its keys are numbers"],
    );
    // A pair is printed as two keys, so a repeated key would be ambiguous and is an error.
    bench.write("twice.csv", "id,phash\nx,0123456789abcdee\nx,0123456789abcdef\n");
    let twice = bench.refused("pairs --fingerprints twice.csv --fingerprint-field phash --near within:1");
    says(&twice, &["twice.csv:3: the key `x` came before"]);
}

/// Rows, four of them without a fingerprint; the two others have equal ones.
const LACKING: [(&str, Option<&str>); 6] = [
    ("a", Some("0123456789abcdef")),
    ("b", None),
    ("c", Some("")),
    ("d", None),
    ("e", Some("")),
    ("f", Some("0123456789abcdef")),
];

/// Writes columns `id` and `phash` of strings, some of them null.
fn parquet_with_nulls(bench: &Bench, name: &str) {
    let column = |name: &str, repetition| {
        let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(repetition);
        Arc::new(column.with_converted_type(ConvertedType::UTF8).build().unwrap())
    };
    let columns = vec![column("id", Repetition::REQUIRED), column("phash", Repetition::OPTIONAL)];
    let root = Arc::new(Type::group_type_builder("root").with_fields(columns).build().unwrap());
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, root, Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let prints: Vec<ByteArray> = LACKING.iter().filter_map(|row| row.1).map(ByteArray::from).collect();
    let levels: Vec<i16> = LACKING.iter().map(|row| row.1.is_some().into()).collect();
    let mut next = group.next_column().unwrap().unwrap();
    let keys = LACKING.map(|row| ByteArray::from(row.0));
    next.typed::<ByteArrayType>().write_batch(&keys, None, None).unwrap();
    next.close().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    next.typed::<ByteArrayType>().write_batch(&prints, Some(&levels), None).unwrap();
    next.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn rows_without_a_fingerprint_are_kept_counted_and_named() {
    let bench = Bench::new();
    let rows =
        |write: fn(&str, Option<&str>) -> String| LACKING.map(|(key, print)| write(key, print)).concat();
    bench.write(
        "null.jsonl",
        rows(|key, print| format!("{}\n", serde_json::json!({"id": key, "phash": print}))),
    );
    let missing = rows(|key, print| match print {
        Some(print) => format!("{}\n", serde_json::json!({"id": key, "meta": {"phash": print}})),
        None => format!("{}\n", serde_json::json!({"id": key, "meta": {}})),
    });
    bench.write("missing.jsonl", missing);
    let csv = rows(|key, print| {
        format!("{key},{}\n", print.map_or("", |print| if print.is_empty() { "\"\"" } else { print }))
    });
    bench.write("rows.csv", format!("id,phash\n{csv}"));
    let dump = rows(|key, print| format!("{key}\t{}\n", print.unwrap_or("\\N")));
    bench.write("dump.tsv", format!("id\tphash\n{dump}"));
    parquet_with_nulls(&bench, "rows.parquet");
    for (file, options, first) in [
        ("null.jsonl", "--fingerprint-field phash", "null.jsonl:2"),
        ("missing.jsonl", "--fingerprint-field meta.phash", "missing.jsonl:2"),
        ("rows.csv", "--fingerprint-field hex:phash", "rows.csv:3"),
        ("dump.tsv", "--fingerprint-field phash --dialect escape=\\", "dump.tsv:3"),
        ("rows.parquet", "--fingerprint-field phash", "rows.parquet, row 2"),
    ] {
        for (keys, out) in [("", "out"), ("--id-field FILE:ROW", "by-row")] {
            let out = format!("{file}-{out}");
            let report = bench.json(&format!("dedup {file} {options} {keys} -o {out} --index kept"));
            let counts = ["documents", "kept", "identical", "empty", "contentless"]
                .map(|name| report[name].as_u64().unwrap());
            assert_eq!(counts, [6, 5, 1, 4, 4], "{file} {keys}: {report}");
            assert_eq!(report["first_contentless"], first, "{file}");
            assert!(report.get("partial_texts").is_none(), "{report}");
            // The same rows are known, by the texts and by the index.
            let again =
                bench.json(&format!("dedup {file} {options} {keys} -o again --force --against {out}"));
            assert_eq!(again["kept"], 0, "{file} {keys}: {again}");
            let index = format!("{out}/index");
            let again =
                bench.json(&format!("dedup {file} {options} {keys} -o again --force --against {index}"));
            assert_eq!(again["kept"], 0, "{file} {keys}: {again}");
        }
        says(
            &bench.ok(&format!("dedup {file} {options} -o {file}-said")),
            &[&format!(
                "4 documents without a fingerprint or features, near nothing but one with the same key, the first: {first}"
            )],
        );
        // An index keeps them, and finds them by their keys alone.
        let index = format!("{file}.twx");
        assert_eq!(bench.json(&format!("build {index} {file} {options}"))["empty"], 4);
        let hits = bench.ok(&format!("query {index} {file} {options} -q"));
        assert_eq!(hits, "a\ta\t0\t-\na\tf\t0\t-\nf\ta\t0\t-\nf\tf\t0\t-\n", "{file}");
        assert_eq!(bench.json_lines(&format!("get {index} b"))[0]["fingerprint"], serde_json::Value::Null);
        let fates = bench.ok(&format!("stream {file}-s.twx {file} {options} -q"));
        let expected = "a\tnew\t-\t-\t-\nb\tnew\t-\t-\t-\nc\tnew\t-\t-\t-\nd\tnew\t-\t-\t-\ne\tnew\t-\t-\t-\n\
                        f\tduplicate\ta\t0\t-\n";
        assert_eq!(fates, expected, "{file}");
        let pairs = bench.ok(&format!("pairs --fingerprints {file} {options} --near within:3 -q"));
        assert_eq!(pairs, "a\tf\t0\n", "{file}");
    }
}

/// Two rows with the same key and without a fingerprint are one document, as far as anybody can know.
#[test]
fn rows_without_a_fingerprint_and_with_the_same_key_are_copies() {
    let bench = Bench::new();
    bench.write("in.csv", "id,phash\nx,\nx,\ny,\nz,0123456789abcdef\n");
    let report = bench.json("dedup in.csv --fingerprint-field phash --repeated-keys number -o out");
    assert_eq!((&report["kept"], &report["identical"]), (&3.into(), &1.into()));
    assert_eq!(bench.read("out/kept.csv"), "id,phash\nx,\ny,\nz,0123456789abcdef\n");
    says(&bench.ok("why out x#2"), &["goes for x"]);
}
