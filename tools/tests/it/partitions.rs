//! Folders named like `date=2026-01-01/` provide fields of their records: parts of keys, values for `--inside`, and
//! numbers for `--keep`, in every format.

use crate::support::{Bench, says};

const TEXT: &str = "one two three four five six seven";

fn bench() -> Bench {
    let bench = Bench::new();
    for (day, lang, form) in [(1, "de", "jsonl"), (2, "de", "csv"), (3, "en", "jsonl")] {
        let rows = match form {
            "csv" => format!("row,text\n1,{TEXT}\n2,other words of day {day} that are long enough\n"),
            _ => format!(
                "{{\"row\":1,\"text\":\"{TEXT}\"}}\n{{\"row\":2,\"text\":\"other words of day {day} that are long enough\"}}\n"
            ),
        };
        bench.write(&format!("data/day={day}/lang={lang}/part-0.{form}"), rows);
    }
    bench
}

fn inputs() -> &'static str {
    "data/day=1/lang=de/part-0.jsonl data/day=2/lang=de/part-0.csv data/day=3/lang=en/part-0.jsonl"
}

#[test]
fn partition_folders_provide_keys_values_and_numbers_of_records() {
    let bench = bench();
    let report = bench.json(&format!("dedup {} --id-field day,row -o out --keep max:day", inputs()));
    assert_eq!((&report["documents"], &report["kept"]), (&6.into(), &4.into()));
    let kept = |name: &str| -> Vec<String> {
        let rows = bench.rows(&format!("{name}/clusters.tsv"), "key\tcluster\tkept\tscore");
        rows.iter().map(|row| row.split('\t').take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    // The record of the last day is kept.
    let all = kept("out");
    for (key, by) in [("1,1", "3,1"), ("2,1", "3,1"), ("3,1", "3,1"), ("1,2", "1,2")] {
        assert!(
            all.iter().any(|row| row.starts_with(&format!("{key} ")) && row.ends_with(&format!(" {by}"))),
            "{all:?}"
        );
    }
    says(
        &bench.ok("why out 1,1"),
        &["goes for 3,1", "day (keep max): 1 in 1,1, 3 in 3,1", "as in the table"],
    );
    // Kept documents are unchanged, and their keys are stored in a file next to them.
    assert!(bench.read("out/kept.jsonl").lines().all(|line| line.starts_with("{\"row\":")));
    assert_eq!(bench.read("out/kept.csv.keys"), "number\tkey\n2\t2,2\n");
    bench.ok(&format!("build i.twx {} --id-field day,row -q", inputs()));
    assert_eq!(bench.json_lines("get i.twx 2,1 3,2").last().unwrap()["documents"], 2);
    // The kept documents are read again with the same keys.
    let again = bench.json("dedup out/kept.jsonl out/kept.csv --id-field day,row -o again");
    assert_eq!(again["documents"], 4);
    assert!(kept("again").iter().any(|row| row.starts_with("2,2 ")));
    // Compares only documents of the same language. Naming a folder is the same as naming its files.
    let inside = bench.json("dedup data --format jsonl --id-field lang,day,row --inside lang -o inside");
    assert_eq!(
        (&inside["documents"], &inside["kept"], &inside["inside_values"]),
        (&4.into(), &4.into(), &2.into())
    );
    assert_eq!(bench.json("dedup data --format jsonl --id-field lang,day,row -o outside")["kept"], 3);
}

#[test]
fn partition_values_are_decoded_and_null_means_no_value() {
    let bench = Bench::new();
    let line = |text: &str| format!("{{\"id\":1,\"text\":\"{text}\",\"src\":\"own\"}}\n");
    bench.write("in/src=a%2Fb%3D1/x.jsonl", line(TEXT));
    bench.write("in/src=__HIVE_DEFAULT_PARTITION__/x.jsonl", line("other words that are long enough"));
    bench.ok("build i.twx in/src=a%2Fb%3D1/x.jsonl --value-field src -q");
    // As in Spark, the value from the folder takes precedence over the field.
    assert_eq!(bench.json_lines("get i.twx 1")[0]["value"], "a/b=1");
    bench.ok("build n.twx in/src=__HIVE_DEFAULT_PARTITION__/x.jsonl --value-field src -q");
    // Format 1.0 does not distinguish "no value" from the empty value.
    assert_eq!(bench.json_lines("get n.twx 1")[0]["value"], "");
    let none = "dedup in/src=__HIVE_DEFAULT_PARTITION__/x.jsonl -o no";
    says(&bench.refused(&format!("{none} --id-field src")), &["x.jsonl:1: by its folders, the key is empty"]);
    says(&bench.refused(&format!("{none} --inside src")), &["field \"src\" for --inside is empty"]);
    says(
        &bench.refused("dedup in/src=a%2Fb%3D1/x.jsonl --keep min:src -o no"),
        &["field \"src\": expected a number"],
    );
}
