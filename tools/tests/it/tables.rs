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
        &[
            "in.csv:3: a field that begins with a quote is not ended by one",
            "98 lines of it",
            "only this one",
        ],
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
