//! The names of fields in options: paths, missing fields, and the types of values, in every format.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow_schema::Field;
use parquet::arrow::arrow_writer::ArrowWriter;

use crate::support::{Bench, says};

const TEXT: &str = "a ferry crosses the strait twice a day when the wind allows it and the pilot is awake";
/// 2026-01-03 and 2026-02-04 in days, the dates of the documents `old` and `new`.
const DAYS: [i32; 2] = [20_456, 20_488];

/// Writes a Parquet file with the columns `id` and `text`, where all texts are equal, and these columns.
fn write_parquet(bench: &Bench, name: &str, ids: &[&str], columns: Vec<(&str, ArrayRef)>) {
    let strings = |of: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(of)) };
    let own = [("id", strings(ids.to_vec())), ("text", strings(vec![TEXT; ids.len()]))];
    let batch = RecordBatch::try_from_iter(own.into_iter().chain(columns)).unwrap();
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Writes JSON lines of documents with the same text and these other fields.
fn write_lines(bench: &Bench, name: &str, documents: &[(&str, &str)]) {
    let line = |(id, rest): &(&str, &str)| format!("{{\"id\":\"{id}\",\"text\":\"{TEXT}\",{rest}}}\n");
    bench.write(name, documents.iter().map(line).collect::<String>());
}

/// Runs `dedup` and returns the sorted keys of the kept documents.
fn kept(bench: &Bench, options: &str) -> Vec<String> {
    let _ = std::fs::remove_dir_all(bench.path("out"));
    bench.ok(&format!("dedup {options} -o out -q"));
    let clusters = bench.read("out/clusters.tsv");
    let rows = clusters.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    let mut keys: Vec<_> = rows.filter(|row| row[0] == row[2]).map(|row| row[0].to_owned()).collect();
    keys.sort();
    keys
}

fn struct_column(names_and_columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let field = |name: &str, column: &ArrayRef| Arc::new(Field::new(name, column.data_type().clone(), true));
    let fields = names_and_columns.into_iter().map(|(name, column)| (field(name, &column), column));
    Arc::new(StructArray::from(fields.collect::<Vec<_>>()))
}

#[test]
fn html_in_fields_is_compared_by_what_is_visible_on_request() {
    let bench = Bench::new();
    let mail = |words: &str| {
        format!(
            "<html><head><style>p {{margin:0cm}}</style></head><body lang='en'><p class='x'>{words}</p></body></html>"
        )
    };
    let other = "nobody in the village knew when the well was dug or who had paid for it in those days";
    let texts =
        [TEXT.to_owned(), mail(TEXT), format!("<div dir='ltr'>{TEXT}</div>"), mail(other), mail("<img>")];
    let ids = ["1", "2", "3", "4", "5"];
    let lines = |quote: &dyn Fn(&str) -> String| -> String {
        let rows = ids.iter().zip(&texts).map(|(id, text)| quote(&format!("{id}\u{1}{text}")) + "\n");
        rows.collect()
    };
    let json = |row: &str| {
        let (id, text) = row.split_once('\u{1}').unwrap();
        format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}")
    };
    bench.write("in.jsonl", lines(&json));
    bench.write("in.tsv", format!("id\ttext\n{}", lines(&|row| row.replace('\u{1}', "\t"))));
    let column = |of: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(of)) };
    let batch = RecordBatch::try_from_iter([
        ("id", column(ids.to_vec())),
        ("text", column(texts.iter().map(String::as_str).collect())),
    ]);
    let batch = batch.unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(bench.path("in.parquet")).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for input in ["in.jsonl", "in.tsv", "in.parquet"] {
        assert_eq!(kept(&bench, input).len(), 5, "{input}");
        says(
            &bench.ok(&format!("dedup {input} -o out --force")),
            &["4 texts compared with tags of HTML; --text-form html"],
        );
        assert_eq!(kept(&bench, &format!("{input} --text-form html")), ["1", "4", "5"], "{input}");
        assert_eq!(
            bench.json(&format!("dedup {input} -o next --against out --force --text-form html"))["kept"],
            0
        );
        let report = bench.json(&format!("dedup {input} -o next --force --text-form html"));
        assert_eq!((&report["unseen_pages"], report.get("marked_up")), (&1.into(), None), "{input}");
    }
    assert_eq!(bench.read("in.jsonl").lines().count(), 5);
    says(&bench.misused("passages in.jsonl -o p --cut --text-form html"), &["leave out --text-form html"]);
    bench.write("in.txt", TEXT);
    says(&bench.misused("dedup in.txt -o no --text-form html"), &["--text-form has no effect in this run"]);
}

#[test]
fn every_option_takes_paths_in_json_and_parquet() {
    let bench = Bench::new();
    write_lines(
        &bench,
        "in.jsonl",
        &[
            ("a", r#""m":{"n":7,"lang":"en","url":"https://a.example/1","at":"2026-01-03","v":"one"}"#),
            ("b", r#""m":{"n":9,"lang":"de","url":"https://b.example/1","at":"2026-02-04","v":"two"}"#),
        ],
    );
    let strings = |of: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(of.to_vec())) };
    let inner = struct_column(vec![
        ("n", Arc::new(Int64Array::from(vec![7, 9]))),
        ("lang", strings(["en", "de"])),
        ("url", strings(["https://a.example/1", "https://b.example/1"])),
        ("at", Arc::new(Date32Array::from(DAYS.to_vec()))),
        ("v", strings(["one", "two"])),
    ]);
    write_parquet(&bench, "in.parquet", &["a", "b"], vec![("m", inner)]);
    for input in ["in.jsonl", "in.parquet"] {
        for of in ["m.", "/m/"] {
            let of = |name: &str| format!("{of}{name}");
            assert_eq!(kept(&bench, input), ["a"]);
            assert_eq!(kept(&bench, &format!("{input} --keep max:{}", of("n"))), ["b"], "{input}");
            assert_eq!(kept(&bench, &format!("{input} --keep max:{}", of("at"))), ["b"], "{input}");
            assert_eq!(kept(&bench, &format!("{input} --inside {}", of("lang"))), ["a", "b"], "{input}");
            assert_eq!(
                kept(&bench, &format!("{input} --inside field:{}", of("lang"))),
                ["a", "b"],
                "{input}"
            );
            let by_host = format!("{input} --url-field {} --inside host", of("url"));
            assert_eq!(kept(&bench, &by_host), ["a", "b"], "{input}");
            kept(&bench, &format!("{input} --url-field {}", of("url")));
            says(&bench.read("out/hosts.tsv"), &["a.example", "b.example"]);
            let _ = std::fs::remove_dir_all(bench.path("i.twx"));
            bench.ok(&format!(
                "build i.twx {input} -q --value-field {} --stamp-field {} --expire-after 900d --priority-field max:{}",
                of("v"),
                of("at"),
                of("n")
            ));
            let got = bench.json_lines("get i.twx a");
            assert_eq!(
                (got[0]["value"].as_str(), got[0]["stamp"].as_u64()),
                (Some("one"), Some(1_767_398_400)),
                "{input}"
            );
        }
    }
    // A field with exactly this name takes precedence.
    write_lines(&bench, "exact.jsonl", &[("a", r#""m":{"n":7},"m.n":9"#), ("b", r#""m":{"n":8},"m.n":1"#)]);
    assert_eq!(kept(&bench, "exact.jsonl --keep max:m.n"), ["a"]);
    assert_eq!(kept(&bench, "exact.jsonl --keep max:/m/n"), ["b"]);
    bench.write("in.csv", format!("id,text,m.n\na,{TEXT},1\nb,{TEXT},2\n"));
    assert_eq!(kept(&bench, "in.csv --keep max:m.n"), ["b"]);
    assert_eq!(kept(&bench, "in.csv --keep max:/m.n --text-field /text --id-field /id"), ["b"]);
    says(
        &bench.refused("dedup in.csv -o no --keep max:m.k"),
        &["no column \"m.k\"", "\"m.n\"", "see --keep"],
    );
    let message = bench.refused("dedup in.parquet -o no --keep max:m.k");
    says(&message, &["no column \"m.k\"", "\"m\"", "see --keep"]);
}

#[test]
fn text_field_that_no_record_has_is_an_error_in_every_verb() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        "{\"id\":1,\"title\":\"the same title here\",\"body\":\"one body of a text\"}\n\
         {\"id\":2,\"title\":\"the same title here\",\"body\":\"and another body that differs\"}\n",
    );
    for fields in ["title,boddy", "title,body.text", "boddy,title"] {
        let absent = fields.split(',').find(|name| *name != "title").unwrap();
        for line in [
            "dedup in.jsonl -o no",
            "build no in.jsonl --near 0.8",
            "stream no.twx in.jsonl --near 0.8",
            "passages in.jsonl -o no --min-words 3",
            "build no in.jsonl --as sketches",
            "idf in.jsonl -o no",
            "build . in.jsonl --as folder",
            "build resumed.twx in.jsonl --resume",
        ] {
            let output = bench.command(&format!("{line} --text-field {fields}")).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{line}: {message}");
            says(
                &message,
                &[&format!("no record has a field {absent:?}"), "--text-field", "in.jsonl:1", "\"body\""],
            );
            assert!(!bench.path("no").join("kept.jsonl").exists(), "{line}");
        }
    }
    bench.ok("build have.twx in.jsonl --text-field title,body -q");
    let message = bench.failed("query have.twx in.jsonl --text-field title,boddy");
    says(&message, &["no record has a field \"boddy\""]);
    // All names, and all records in spite of --skip-bad.
    let message = bench.refused("dedup in.jsonl -o no --text-field title,x,y");
    says(&message, &["no record has a field \"x\", nor \"y\""]);
    for options in ["--text-field boddy", "--id-field key", "--keep max:n", "--inside lang"] {
        let options = if options.contains("text") {
            options.to_owned()
        } else {
            format!("{options} --text-field title")
        };
        let message = bench.refused(&format!("dedup in.jsonl -o no --skip-bad 9 {options}"));
        says(&message, &["no record has the named fields", "in.jsonl:1", "\"body\""]);
    }
    for name in ["title,", ",title", "title,,body", ","] {
        for option in ["--text-field", "--id-field"] {
            let output = bench.command(&format!("dedup in.jsonl -o no {option} {name}")).output().unwrap();
            says(&String::from_utf8(output.stderr).unwrap(), &[option, "is empty"]);
            assert!(!output.status.success());
        }
    }
}

#[test]
fn optional_field_that_no_record_has_is_an_error_and_one_that_some_have_is_not() {
    let bench = Bench::new();
    write_lines(&bench, "in.jsonl", &[("a", r#""k":1"#), ("b", r#""u":"https://b.example/","v":2"#)]);
    let message = bench.refused("dedup in.jsonl -o no --url-field m.u");
    says(&message, &["no record has a field \"m.u\"", "--url-field", "in.jsonl:1", "\"k\""]);
    let message = bench.refused("build no.twx in.jsonl --value-field w");
    says(&message, &["no record has a field \"w\"", "--value-field", "\"text\""]);
    assert!(!bench.path("no.twx").exists());
    kept(&bench, "in.jsonl --url-field u");
    bench.ok("build yes.twx in.jsonl --value-field v -q");
    // The field may be in another input, also if inputs are read one at a time.
    write_lines(&bench, "more.jsonl", &[("c", r#""w":1"#)]);
    bench.ok("build more.twx in.jsonl more.jsonl --value-field w -q");
    bench.ok("build resumed.twx in.jsonl more.jsonl --value-field w -q --resume");
    bench.ok("build shard.twx in.jsonl --value-field v -q --shard 1/2");
    bench.write("empty.jsonl", "");
    bench.ok("build empty.twx empty.jsonl --value-field w -q");
}

#[test]
fn records_without_some_text_fields_are_counted() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        "{\"id\":1,\"title\":\"one two three\",\"body\":\"four five six\"}\n{\"id\":2,\"title\":\"seven eight\"}\n\
         {\"id\":3,\"title\":\"nine ten eleven\",\"body\":null}\n{\"id\":4,\"body\":\"twelve\"}\n{\"id\":5}\n",
    );
    let message = bench.refused("dedup in.jsonl -o no --text-field title,body");
    says(&message, &["in.jsonl:5", "no field \"title,body\""]);
    let report = bench.json("dedup in.jsonl -o out --text-field title,body --skip-bad 1");
    assert_eq!(
        (report["documents"].as_u64(), report["partial_texts"].as_u64()),
        (Some(4), Some(2)),
        "{report}"
    );
    let said = bench.ok("dedup in.jsonl -o again --text-field title,body --skip-bad 1");
    says(&said, &["2 documents lack some of the text fields, the first: in.jsonl:2"]);
}

#[test]
fn times_and_numbers_have_the_same_types_in_every_option() {
    let bench = Bench::new();
    let of = |iso: &str, n: u32| {
        format!(
            r#""iso":"{iso}T00:00:00Z","date":"{iso}","sql":"{iso} 00:00:00","off":"{iso}T00:00:00+00:00",
               "ms":"{iso}T00:00:00.000Z","mongo":{{"$date":"{iso}T00:00:00Z"}},"n":{{"$numberLong":"{n}"}},"s":"{n}""#
        )
        .replace('\n', " ")
    };
    let (old, new) = (of("2026-01-03", 9), of("2026-02-04", 10));
    write_lines(&bench, "in.jsonl", &[("old", &old), ("new", &new)]);
    let all: [ArrayRef; 5] = [
        Arc::new(Date32Array::from(DAYS.to_vec())),
        Arc::new(
            TimestampMillisecondArray::from_iter_values(DAYS.map(|day| i64::from(day) * 86_400_000))
                .with_timezone("UTC"),
        ),
        Arc::new(TimestampMicrosecondArray::from_iter_values(
            DAYS.map(|day| i64::from(day) * 86_400_000_000),
        )),
        Arc::new(TimestampNanosecondArray::from_iter_values(
            DAYS.map(|day| i64::from(day) * 86_400_000_000_000),
        )),
        Arc::new(StringArray::from(vec!["2026-01-03", "2026-02-04"])),
    ];
    let names = ["d", "ms", "us", "ns", "iso"];
    write_parquet(&bench, "in.parquet", &["old", "new"], names.into_iter().zip(all).collect());
    let csv = format!(
        "id,text,date,sql\nold,{TEXT},2026-01-03,2026-01-03 00:00:00\nnew,{TEXT},2026-02-04,2026-02-04 00:00:00\n"
    );
    bench.write("in.csv", csv);
    let fields = [
        ("in.jsonl", &["iso", "date", "sql", "off", "ms", "mongo"][..]),
        ("in.parquet", &names[..]),
        ("in.csv", &["date", "sql"][..]),
    ];
    for (input, names) in fields {
        for name in names {
            assert_eq!(kept(&bench, &format!("{input} --keep max:{name}")), ["new"], "{input} {name}");
            assert_eq!(kept(&bench, &format!("{input} --keep min:{name}")), ["old"], "{input} {name}");
            assert_eq!(kept(&bench, &format!("{input} --inside {name}")), ["new", "old"], "{input} {name}");
            let _ = std::fs::remove_dir_all(bench.path("i.twx"));
            let options = format!("--stamp-field {name} --expire-after 90d --priority-field max:{name}");
            bench.ok(&format!("build i.twx {input} {options} -q"));
            assert_eq!(
                bench.json_lines("get i.twx old")[0]["stamp"].as_u64(),
                Some(1_767_398_400),
                "{input} {name}"
            );
        }
    }
    for name in ["n", "s", "n.$numberLong"] {
        assert_eq!(kept(&bench, &format!("in.jsonl --keep max:{name}")), ["new"], "{name}");
    }
}

#[test]
fn mixture_of_numbers_and_times_is_an_error_that_names_both() {
    let bench = Bench::new();
    write_lines(
        &bench,
        "in.jsonl",
        &[("a", r#""n":1"#), ("b", r#""n":2"#), ("c", r#""n":"2026-01-03""#), ("d", r#""n":"x""#)],
    );
    for line in [
        "dedup in.jsonl -o no --keep max:n --skip-bad 1",
        "build no in.jsonl --priority-field min:n --skip-bad 1",
    ] {
        let message = bench.refused(line);
        says(&message, &["field \"n\"", "a number at in.jsonl:1", "a time at in.jsonl:3"]);
    }
    let message = bench.refused("dedup in.jsonl -o no --keep max:n");
    says(&message, &["in.jsonl:"]);
}

#[test]
fn empty_value_is_a_value() {
    let bench = Bench::new();
    write_lines(&bench, "in.jsonl", &[("a", r#""v":"""#), ("b", r#""v":"w""#)]);
    bench.ok("build values.twx in.jsonl --value-field v -q");
    bench.ok("build none.twx in.jsonl -q");
    let values = |index: &str| {
        let all = bench.json_lines(&format!("get {index} a b"));
        [all[0]["value"].clone(), all[1]["value"].clone()]
    };
    assert_eq!(values("values.twx"), ["", "w"]);
    assert_eq!(values("none.twx"), [serde_json::Value::Null, serde_json::Value::Null]);
}
