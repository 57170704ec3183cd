//! Text tables in every dialect: rows must be neither merged nor lost, and kept rows must be unchanged.

use std::fmt::Write as _;

use crate::support::{Bench, says};

const ONE: &str = "one two three four five six seven eight";
const TWO: &str = "the quick brown fox jumps over a lazy dog";

/// Returns the keys of the kept documents, and the kept file.
fn kept(bench: &Bench, command: &str, file: &str) -> (Vec<String>, String) {
    bench.ok(&format!("dedup {command} -o out --index kept --force -q"));
    (bench.ok("get out/index").lines().map(str::to_owned).collect(), bench.read(&format!("out/{file}")))
}

#[test]
fn quote_in_tsv_is_an_ordinary_character() {
    let bench = Bench::new();
    let table = format!(
        "id\ttext\n1\t\"{ONE}\n2\t{TWO}\n3\tof 5\" and more\n4\t\"all of it\" and {ONE} more\n5\t\"\"\n"
    );
    bench.write("in.tsv", &table);
    let (keys, file) = kept(&bench, "in.tsv", "kept.tsv");
    assert_eq!(keys, ["1", "2", "3", "4", "5"]);
    assert_eq!(file, table);
    // Options can enable quotes in TSV and disable them in CSV.
    bench.write("quoted.tsv", format!("id\ttext\n1\t\"{ONE}\n{TWO}\"\n2\t\"a\tb\"\n"));
    assert_eq!(kept(&bench, "quoted.tsv --dialect quote=\"", "kept.tsv").0, ["1", "2"]);
    says(&bench.refused("dedup quoted.tsv -o no"), &["quoted.tsv:3: 1 fields, where the first row names 2"]);
    bench.write("plain.csv", format!("id,text\n1,\"{ONE}\n2,{TWO}\n"));
    assert_eq!(kept(&bench, "plain.csv --dialect quote=none", "kept.csv").0, ["1", "2"]);
}

#[test]
fn unclosed_quote_invalidates_only_its_own_line() {
    let bench = Bench::new();
    let mut table = "id,text\n1,sound one\n2,\"not closed\n".to_owned();
    for id in 3..100 {
        writeln!(table, "{id},row {id} of many others").unwrap();
    }
    bench.write("in.csv", &table);
    let message = bench.refused("dedup in.csv -o no");
    says(
        &message,
        &["in.csv:3: a quote that opens a field is not closed", "98 lines of it", "only this one"],
    );
    let report = bench.json("dedup in.csv -o out --skip-bad 1 --threshold 1");
    assert_eq!((&report["documents"], &report["skipped_bad"]), (&98.into(), &1.into()));
    // If the next quote closed this one, rows would be merged.
    let table = format!("id,text\n1,\"{ONE}\n2,{TWO}\n3,\"a, quoted one\"\n4,last\n");
    bench.write("merged.csv", &table);
    let report = bench.json("dedup merged.csv -o out --skip-bad 1 --force");
    assert_eq!((&report["documents"], &report["skipped_bad"]), (&3.into(), &1.into()), "{report}");
    says(report["first_bad"][0].as_str().unwrap(), &["merged.csv:2: ", "lines of it"]);
    assert_eq!(bench.read("out/kept.csv"), format!("id,text\n2,{TWO}\n3,\"a, quoted one\"\n4,last\n"));
    // A valid row may span several lines.
    bench.write("sound.csv", "id,text\n1,\"one\ntwo\"\n2,x\n");
    assert_eq!(kept(&bench, "sound.csv", "kept.csv").0, ["1", "2"]);
}

#[test]
fn delimiter_is_taken_from_option_or_sep_line_or_suggested() {
    let bench = Bench::new();
    bench.write("semi.csv", format!("id;text\n1;{ONE}, and more\n2;\"{TWO}; \"\"x\"\"\"\n"));
    bench.write("pipe.csv", format!("id|text\r\n1|{ONE}\r\n2|{TWO}\r\n"));
    let excel = format!("sep=;\r\nid;text\r\n1;{ONE}\r\n2;{TWO}\r\n");
    bench.write("sep.csv", format!("\u{feff}{excel}"));
    says(
        &bench.refused("dedup semi.csv -o no"),
        &[
            "no column \"text\" in its first row, which names \"id;text\", with ',' between them (--dialect 'delimiter=;' finds it)",
        ],
    );
    for command in ["semi.csv --dialect delimiter=;", "pipe.csv --dialect delimiter=|", "sep.csv"] {
        assert_eq!(kept(&bench, command, "kept.csv").0, ["1", "2"], "{command}");
    }
    // The kept file can be read in the same way as the input.
    assert!(bench.read("out/kept.csv").starts_with("\u{feff}sep=;\r\nid;text"));
    assert_eq!(bench.json("dedup sep.csv --against out -o next")["kept"], 0);
    bench.write("tabs.csv", format!("id\ttext\n1\t{ONE}\n"));
    assert_eq!(kept(&bench, "tabs.csv --dialect delimiter=tab", "kept.csv").0, ["1"]);
    bench.write("escaped.csv", format!("id,text\n1,\"a \\\" b, {ONE}\"\n2,\"{TWO}\"\n"));
    assert_eq!(kept(&bench, "escaped.csv --dialect escape=\\", "kept.csv").0, ["1", "2"]);
}

#[test]
fn dumps_of_databases_are_read_cut_and_annotated_by_their_escapes() {
    let bench = Bench::new();
    let long = "it is a truth universally acknowledged that a single man in possession of a good fortune";
    let table = format!(
        "id\ttext\tnote\n1\tof\\nthe ballad {ONE}\ta\\tb\n2\tof the ballad {ONE}\t\\N\n3\t\\N\tn\n4\t\\N\t\n5\tN\t\n\
         6\tC:\\\\new\\ttable {long} end\t\\N\n7\tthe \\\nsecond {long}, {TWO}\tx\\\\\n"
    );
    bench.write("in.tsv", &table);
    let (keys, file) = kept(&bench, "in.tsv --dialect escape=\\", "kept.tsv");
    assert_eq!(keys, ["1", "3", "5", "6", "7"], "2 is a copy of 1; null is no word and a copy of null");
    let lines: Vec<&str> = table.split_inclusive('\n').collect();
    assert_eq!(file, [&lines[..2], &lines[3..4], &lines[5..]].concat().concat());
    // Cut rows keep the bytes of their other fields.
    bench.ok("passages in.tsv -o cut --cut --min-words 10 --dialect escape=\\ -q");
    let cut = bench.read("cut/kept.tsv");
    assert!(cut.contains("7\tthe \\nsecond , ") && cut.contains("\tx\\\\\n"), "{cut}");
    assert!(cut.contains("3\t\\N\tn\n4\t\\N\t\n"), "{cut}");
    bench.write("first.jsonl", "{\"id\":\"a\\tb\\n\\\\\",\"text\":\"N\"}\n");
    bench.ok("dedup first.jsonl in.tsv -o out --also annotated --dialect escape=\\ -q --force");
    let annotated = bench.read("out/annotated.tsv");
    assert!(annotated.contains("5\tN\t\t3\t2\tfalse\t1.000000\ta\\tb\\n\\\\\n"), "{annotated}");
}

/// In a dump, a carriage return is part of a line end only before a newline and without an escape.
#[test]
fn line_ends_of_dumps_from_windows_are_preserved() {
    let bench = Bench::new();
    let table =
        "\u{feff}id\ttext\r\n\r\na\tone\\\r\nb\ttwo\rthree\r\n\r\nc\tfour\r\r\nd\tfive\\\nsix\r\ne\tseven\n";
    bench.write("in.tsv", table);
    let (keys, file) = kept(&bench, "in.tsv --dialect escape=\\", "kept.tsv");
    assert_eq!(keys, ["a", "b", "c", "d", "e"]);
    assert_eq!(file, table.replace("\r\n\r\n", "\r\n"), "all but blank lines");
    bench.write("again.tsv", &file);
    let (keys, again) = kept(&bench, "again.tsv --dialect escape=\\", "kept.tsv");
    assert_eq!((keys.len(), again), (5, file));
}

#[test]
fn cut_rows_are_written_in_the_dialect_and_encoding_that_was_read() {
    let bench = Bench::new();
    let long = "it is a truth universally acknowledged that a single man in possession of a good fortune";
    bench.write(
        "in.csv",
        format!(
            "id,text\n1,\"{long} for ever\"\n2,\"dir C:\\\\temp\\\\ {long} ends in \\\\\"\n\
             3,\"a \\\"quoted\\\" word, {long} then\"\n4,\"an \\\"unchanged\\\" row\"\n"
        ),
    );
    bench.ok("passages in.csv -o out --cut --min-words 10 --dialect escape=\\ -q");
    assert_eq!(
        bench.read("out/kept.csv"),
        format!(
            "id,text\n1,\"{long} for ever\"\n2,\"dir C:\\\\temp\\\\  ends in \\\\\"\n3,\"a \\\"quoted\\\" word,  then\"\n\
             4,\"an \\\"unchanged\\\" row\"\n"
        )
    );
    let latin = |text: &str| text.chars().map(|character| character as u8).collect::<Vec<u8>>();
    bench.write("latin.csv", latin(&format!("id,text\n1,{long} f\u{fc}r\n2,\"gr\u{fc}n, {long}\"\n")));
    bench.ok("passages latin.csv -o latin --cut --min-words 10 --encoding latin1 -q");
    let written = std::fs::read(bench.path("latin/kept.csv")).unwrap();
    assert_eq!(written, latin(&format!("id,text\n1,{long} f\u{fc}r\n2,\"gr\u{fc}n, \"\n")));
    // What a table cannot hold is refused.
    bench.write("first.jsonl", format!("{{\"id\":\"a,b\",\"text\":\"{ONE}\"}}\n"));
    bench.write("bare.csv", format!("id,text\n1,{ONE}\n"));
    let refused = bench.refused("dedup first.jsonl bare.csv -o no --also annotated --dialect quote=none");
    says(&refused, &["without quotes cannot hold the field \"a,b\"", "--dialect quote"]);
}

#[test]
fn columns_of_a_table_without_header_are_numbered() {
    let bench = Bench::new();
    let table = format!("1,{ONE},x\n2,{TWO},y\n3,{ONE},z\n");
    bench.write("in.csv", &table);
    says(
        &bench.refused("dedup in.csv -o no --dialect no-header"),
        &["no column \"text\"; without a header they are 1 to 3", "--text-field"],
    );
    let (keys, file) = kept(&bench, "in.csv --dialect no-header --id-field 1 --text-field 2", "kept.csv");
    assert_eq!((keys, file), (vec!["1".to_owned(), "2".to_owned()], format!("1,{ONE},x\n2,{TWO},y\n")));
    says(&bench.ok("why out 3"), &["goes for 1, which is kept", "in.csv:3"]);
    let report =
        bench.json("dedup in.csv --dialect no-header --id-field 1 --text-field 2 --against out -o next");
    assert_eq!(report["kept"], 0);
    assert_eq!(
        kept(&bench, "in.csv --dialect no-header --text-field 2", "kept.csv.keys").1,
        "number\tkey\n1\tin.csv:1\n2\tin.csv:2\n"
    );
}
