//! A run with `--against` has one history: the index and the kept documents of a folder give the same answers, and
//! count for the keys of the run.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Bench, documents, jsonl, says};

const FIRST: &str =
    "the quick brown fox jumps over the lazy dog and sleeps in the sun until the evening comes";
const SECOND: &str =
    "forty two boats left the old harbour at dawn with nets of hemp and came back without any fish";
const THIRD: &str =
    "a wide field of barley grows beside the mill where the road turns north towards the hills";
const FOURTH: &str =
    "seven clerks copied the letters of the year by hand and sealed each copy with red wax at noon";

/// Option sets. Some query the index, and some read the texts.
const WAYS: [&str; 7] = [
    "",
    "--threshold 0.9",
    "--threshold 0.5",
    "--words 3",
    "--near containment:0.8",
    "--near equal",
    "--near within:3",
];

fn two_days() -> Bench {
    let bench = Bench::new();
    bench.write("day1.jsonl", jsonl(&documents([("a", FIRST), ("b", SECOND)])));
    bench.write("day2.jsonl", jsonl(&documents([("c", FIRST), ("d", THIRD)])));
    bench.ok("dedup day1.jsonl -o out --index kept -q");
    bench
}

fn ids(bench: &Bench, file: &str) -> Vec<String> {
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    bench.read(file).lines().map(id).collect()
}

#[test]
fn folder_whose_index_and_texts_have_parted_is_refused_with_any_options() {
    for (change, why) in [
        ("stream", "its index was changed"),
        ("delete", "its index was changed"),
        ("edit", "kept.jsonl has other bytes"),
        ("shorten", "kept.jsonl has"),
        ("remove texts", "kept.jsonl is gone"),
        ("remove index", "its index is gone"),
        ("add", "kept-2.jsonl was added"),
        ("edit pairs", "pairs.tsv has"),
    ] {
        let bench = two_days();
        let kept = bench.read("out/kept.jsonl");
        // The time of the change differs from the time of the run even on file systems with coarse times.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        match change {
            "stream" => {
                bench.write("more.jsonl", jsonl(&documents([("e", THIRD)])));
                bench.ok("stream out/index more.jsonl -q");
            }
            "delete" => drop(bench.ok("delete out/index a -q")),
            "edit" => {
                bench.write("out/kept.jsonl", kept.replace("quick", "quiet"));
                fs::File::options()
                    .append(true)
                    .open(bench.path("out/kept.jsonl"))
                    .unwrap()
                    .set_modified(later)
                    .unwrap();
            }
            "shorten" => bench.write("out/kept.jsonl", kept.lines().next().unwrap()),
            "edit pairs" => {
                bench.write("out/pairs.tsv", bench.read("out/pairs.tsv") + "x\ta\t1.000000\t1\t1\n");
            }
            "remove texts" => fs::remove_file(bench.path("out/kept.jsonl")).unwrap(),
            "remove index" => fs::remove_dir_all(bench.path("out/index")).unwrap(),
            _ => bench.write("out/kept-2.jsonl", &kept),
        }
        for way in WAYS {
            let line = format!("dedup day2.jsonl -o new --against out {way}");
            let advice =
                if change == "remove texts" { "--against out/index" } else { "--against out/kept.jsonl" };
            says(&bench.misused(&line), &["--against out: ", why, "no longer one history", advice]);
        }
        assert!(!bench.path("new").exists());
    }
}

#[test]
fn history_named_by_its_index_or_kept_file_decides_alone() {
    let bench = two_days();
    bench.ok("delete out/index a -q");
    // The index has only `b`, the texts have both.
    bench.ok("dedup day2.jsonl -o by-index --against out/index -q");
    assert_eq!(ids(&bench, "by-index/kept.jsonl"), ["c", "d"]);
    for way in WAYS {
        let report =
            bench.json(&format!("dedup day2.jsonl -o by-texts --against out/kept.jsonl --force {way}"));
        assert_eq!(ids(&bench, "by-texts/kept.jsonl"), ["d"], "{way}");
        assert_eq!(report["histories"], json!([{"path": "out/kept.jsonl", "kind": "texts"}]), "{way}");
    }
    says(&bench.ok("why by-texts c"), &["goes for a"]);
}

#[test]
fn matching_folder_gives_the_same_answer_by_index_and_by_texts() {
    let bench = two_days();
    for (way, index) in WAYS.into_iter().zip([true, true, false, false, false, false, false]) {
        let report = bench.json(&format!("dedup day2.jsonl -o new --against out --force {way}"));
        assert_eq!(ids(&bench, "new/kept.jsonl"), ["d"], "{way}");
        let (path, kind) = if index { ("out/index", "index") } else { ("out/kept.jsonl", "texts") };
        assert_eq!(report["histories"], json!([{"path": path, "kind": kind}]), "{way}");
        says(
            &bench.ok(&format!("dedup day2.jsonl -o new --against out --force {way}")),
            &["near one of", path],
        );
    }
    // Without a record of what was written, the folder is used, and a note says that it was not checked.
    let mut run: Value = serde_json::from_str(&bench.read("out/run.json")).unwrap();
    run.as_object_mut().unwrap().remove("written");
    bench.write("out/run.json", run.to_string());
    let output = bench.command("dedup day2.jsonl -o new --against out --force").output().unwrap();
    assert!(output.status.success());
    says(&String::from_utf8(output.stderr).unwrap(), &["did not record what it wrote"]);
}

#[test]
fn kept_file_is_read_with_the_fields_of_its_run() {
    let bench = Bench::new();
    bench.write("day1.csv", format!("url;body\nhttp://a/;{FIRST}\nhttp://b/;{SECOND}\n"));
    bench.write("day2.jsonl", jsonl(&documents([("c", FIRST), ("http://b/", THIRD)])));
    bench.ok("dedup day1.csv --id-field url --text-field body --dialect delimiter=; -o out --index kept -q");
    for history in ["out", "out/kept.csv", "./out/index/../kept.csv"] {
        bench.ok(&format!("dedup day2.jsonl -o new --against {history} --near equal -q --force"));
        assert_eq!(ids(&bench, "new/kept.jsonl"), ["http://b/"], "{history}");
        assert!(bench.read("new/against.tsv").contains("c\thttp://a/\t"), "{history}");
        assert_eq!(bench.read("new/kept.jsonl.keys"), "number\tkey\n1\thttp://b/#2\n", "{history}");
    }
    // Without run.json beside it, the options of this run hold.
    fs::copy(bench.path("out/kept.csv"), bench.path("alone.csv")).unwrap();
    let message = bench.refused("dedup day2.jsonl -o no --against alone.csv --near equal");
    says(&message, &["alone.csv"]);
}

#[test]
fn annotate_with_an_index_writes_the_documents_that_it_removes() {
    let bench = two_days();
    bench.ok("build have.twx day1.jsonl -q --method minhash");
    for (against, kind) in
        [("have.twx", "index"), ("out", "index"), ("out/index", "index"), ("out/kept.jsonl", "texts")]
    {
        bench.ok(&format!("dedup day2.jsonl -o plain --against {against} -q --force"));
        let report =
            bench.json(&format!("dedup day2.jsonl -o noted --against {against} --also annotated --force"));
        assert_eq!(report["histories"][0]["kind"], kind, "{against}");
        assert_eq!(bench.read("plain/kept.jsonl"), bench.read("noted/kept.jsonl"), "{against}");
        assert_eq!(bench.read("plain/against.tsv"), bench.read("noted/against.tsv"), "{against}");
        let noted: Vec<Value> = bench
            .read("noted/annotated.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let fields = |one: &Value| {
            ["id", "kept", "near_key", "cluster_id", "cluster_size"].map(|name| one[name].clone())
        };
        assert_eq!(noted.len(), 2, "{against}");
        assert_eq!(fields(&noted[0]), [json!("c"), json!(false), json!("a"), Value::Null, Value::Null]);
        assert_eq!(noted[0]["score"].as_f64(), Some(1.0), "{against}: {}", noted[0]);
        assert_eq!(fields(&noted[1])[..2], [json!("d"), json!(true)], "{against}");
    }
}

#[test]
fn annotated_files_of_every_format_have_removed_documents_in_input_order() {
    let bench = two_days();
    bench.write("new.csv", format!("id,text\nx,{THIRD}\ny,{FIRST}\nx,{SECOND}\nz,{FOURTH}\n"));
    fs::write(bench.path("new.csv.gz"), crate::support::gzip(bench.read("new.csv").as_bytes())).unwrap();
    for input in ["new.csv", "new.csv.gz"] {
        bench.ok(&format!("dedup {input} -o noted --against out --also annotated -q --force"));
        let table = bench.read("noted/annotated.csv");
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0][..2], ["id", "text"], "{input}");
        let kept = rows[0].iter().position(|name| *name == "kept").unwrap();
        let found: Vec<_> = rows[1..].iter().map(|row| (row[0], row[kept])).collect();
        assert_eq!(found, [("x", "true"), ("y", "false"), ("x", "false"), ("z", "true")], "{input}: {table}");
        // The key of the second `x` has a number, which is not in its row.
        assert_eq!(bench.read("noted/annotated.csv.keys"), "number\tkey\n4\tx#2\n", "{input}");
        assert!(bench.read("noted/against.tsv").contains("x#2\tb\t"), "{input}");
    }
}

#[test]
fn history_with_another_inside_field_is_refused() {
    let bench = Bench::new();
    let line = |id: &str, text: &str| {
        format!("{{\"id\":\"{id}\",\"text\":\"{text}\",\"lang\":\"en\",\"site\":\"s\"}}\n")
    };
    bench.write("day1.jsonl", line("a", FIRST));
    bench.write("day2.jsonl", line("b", FIRST));
    bench.ok("dedup day1.jsonl -o plain --index kept -q");
    bench.ok("dedup day1.jsonl -o by-lang --index kept -q --inside lang");
    bench.ok("build plain.twx day1.jsonl -q --method minhash");
    for (history, inside, why) in [
        ("plain", "--inside lang", "its documents were all compared, and this run compares inside of lang"),
        ("by-lang", "", "its documents were compared inside of lang, and this run compares all documents"),
        (
            "by-lang",
            "--inside site",
            "its documents were compared inside of lang, and this run compares inside of site",
        ),
    ] {
        for part in ["", "/index", "/kept.jsonl", "/index/../index"] {
            for way in ["", "--near equal", "--near containment:0.8"] {
                if way == "--near equal" && part.contains("index") {
                    continue;
                }
                let line = format!("dedup day2.jsonl -o new --against {history}{part} {inside} {way}");
                says(&bench.misused(&line), &[&format!("--against {history}{part}: "), why]);
            }
        }
    }
    let message = bench.misused("dedup day2.jsonl -o new --against plain.twx --inside lang");
    says(&message, &["plain.twx: does not store the values of lang"]);
    fs::create_dir(bench.path("moved")).unwrap();
    fs::rename(bench.path("by-lang/index"), bench.path("moved/index")).unwrap();
    let against_moved = "dedup day2.jsonl -o new --against moved/index";
    says(&bench.misused(against_moved), &["its documents were compared inside of lang"]);
    // As an earlier version made it.
    fs::remove_file(bench.path("moved/index/inside")).unwrap();
    says(&bench.misused(against_moved), &["stores the value of a field"]);
    assert!(!bench.path("new").exists());
    bench.ok("dedup day2.jsonl -o new --against plain -q");
    assert_eq!(bench.read("new/kept.jsonl"), "");
}

#[test]
fn keys_of_the_history_count_as_keys_that_came_before() {
    let bench = Bench::new();
    bench.write("day1.jsonl", jsonl(&documents([("u", FIRST), ("u", SECOND)])));
    bench.write(
        "day2.jsonl",
        jsonl(&documents([("u", THIRD), ("v", "five short words of text"), ("u", FOURTH)])),
    );
    bench.write("both.jsonl", [bench.read("day1.jsonl"), bench.read("day2.jsonl")].concat());
    bench.ok("dedup both.jsonl -o both --index kept -q");
    bench.ok("dedup day1.jsonl -o day1 --index kept -q");
    bench.ok("build copy.twx day1/kept.jsonl -q --method minhash");
    for (history, way) in [
        ("day1", ""),
        ("day1/index", ""),
        ("day1/kept.jsonl", ""),
        ("copy.twx", ""),
        ("copy.twx", "--texts day1.jsonl --near containment:0.8"),
        ("day1", "--threshold 0.5"),
        ("day1", "--near equal"),
        ("day1", "--memory 65536"),
        ("day1/kept.jsonl", "--memory 65536"),
        ("day1", "--resume"),
    ] {
        let index = if way.contains("equal") { "" } else { "--index kept" };
        bench.ok(&format!("dedup day2.jsonl -o day2 {index} --against {history} {way} -q --force"));
        assert_eq!(bench.read("day2/kept.jsonl.keys"), "number\tkey\n1\tu#3\n3\tu#4\n", "{history} {way}");
        if !way.contains("equal") && !way.contains("threshold") {
            bench.ok("merge day1/index day2/index -o all.twx");
            assert_eq!(bench.ok("get all.twx"), bench.ok("get both/index"), "{history} {way}");
            fs::remove_dir_all(bench.path("all.twx")).unwrap();
        }
        says(&bench.ok("why day2 u#4"), &["u#4 stays"]);

        let report = bench.json(&format!(
            "dedup day2.jsonl -o day2 --against {history} {way} -q --force --repeated-keys first"
        ));
        assert_eq!(
            (&report["documents"], &report["repeated_keys"]),
            (&json!(1), &json!(2)),
            "{history} {way}"
        );
        assert_eq!(ids(&bench, "day2/kept.jsonl"), ["v"], "{history} {way}");
        let message = bench
            .refused(&format!("dedup day2.jsonl -o no --against {history} {way} --repeated-keys error -q"));
        says(&message, &["day2.jsonl:1: the key `u` is already in ", history, "--repeated-keys"]);
        let output = bench
            .command(&format!("dedup day2.jsonl -o no --against {history} {way} --repeated-keys last"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        says(
            &String::from_utf8(output.stderr).unwrap(),
            &["--repeated-keys last does not go with --against"],
        );
        let _ = fs::remove_dir_all(bench.path(".no.twindex-resume"));
    }
    // A single document with a key of the history.
    bench.write("one.jsonl", jsonl(&documents([("u", THIRD)])));
    bench.ok("dedup one.jsonl -o one --index kept --against day1 -q");
    assert_eq!(bench.ok("get one/index"), "u#3\n");
    // A key without a history is not affected.
    bench.ok("dedup one.jsonl -o alone -q --repeated-keys error");
}

#[test]
fn removed_document_with_a_key_of_the_history_gets_a_number() {
    let bench = Bench::new();
    bench.write("day1.jsonl", jsonl(&documents([("u", FIRST)])));
    bench.write("day2.jsonl", jsonl(&documents([("u", FIRST), ("u", SECOND)])));
    bench.ok("dedup day1.jsonl -o day1 --index kept -q");
    for way in ["", "--threshold 0.5"] {
        bench.ok(&format!("dedup day2.jsonl -o day2 --index kept --against day1 -q --force {way}"));
        assert!(bench.read("day2/against.tsv").contains("u#2\tu\t"), "{way}");
        assert_eq!(bench.ok("get day2/index"), "u#3\n", "{way}");
        says(&bench.ok("why day2 u#2"), &["goes for u"]);
    }
    // Keys that consist of a file name and a row are the same on both days, too.
    bench.ok("dedup day1.jsonl -o by-row --index kept -q --id-field FILE:ROW");
    bench.write("day1.jsonl", jsonl(&documents([("u", THIRD)])));
    bench.ok("dedup day1.jsonl -o next --index kept --id-field FILE:ROW --against by-row -q");
    assert_eq!(bench.ok("get next/index"), "day1.jsonl:1#2\n");
}

#[test]
fn keys_of_removed_documents_count_if_the_history_is_a_folder() {
    let bench = Bench::new();
    bench.write("day1.jsonl", jsonl(&documents([("u", FIRST), ("u", FIRST)])));
    bench.write("day2.jsonl", jsonl(&documents([("u", FIRST), ("v", SECOND)])));
    bench.ok("dedup day1.jsonl -o day1 --index kept -q");
    for (history, key) in
        [("day1", "u#3"), ("./day1/", "u#3"), ("day1/index", "u#2"), ("day1/kept.jsonl", "u#2")]
    {
        for way in ["", "--threshold 0.5"] {
            if way.is_empty() || !history.ends_with("index") {
                bench.ok(&format!("dedup day2.jsonl -o day2 --against {history} -q --force {way}"));
                assert!(bench.read("day2/against.tsv").contains(&format!("{key}\tu\t")), "{history} {way}");
                let explained = bench.ok(&format!("why day2 {key}"));
                says(&explained, &["goes for u"]);
                assert!(!explained.contains("not in the inputs any more"), "{history} {way}: {explained}");
            }
        }
    }
    // The table is checked as the other files of a history are.
    let pairs = bench.read("day1/pairs.tsv");
    bench.write("day1/pairs.tsv", pairs.replace("u#2", "u"));
    says(
        &bench.misused("dedup day2.jsonl -o no --against day1"),
        &["pairs.tsv has", "no longer one history"],
    );
}

#[test]
fn marked_document_of_an_index_is_near_once_its_leader_is_gone() {
    for inside in ["", " --inside lang"] {
        let bench = Bench::new();
        let line = |id: &str, text: &str, lang: &str| {
            json!({"id": id, "text": text, "lang": lang}).to_string() + "\n"
        };
        bench.write(
            "old.jsonl",
            line("a", FIRST, "en") + &line("b", FIRST, "en") + &line("other", FIRST, "de"),
        );
        bench.write("new.jsonl", line("c", FIRST, "en") + &line("d", SECOND, "en"));
        bench.ok(&format!("stream old.twx old.jsonl -q{inside}"));
        if inside.is_empty() {
            bench.ok("delete old.twx other -q");
        }
        for (step, near) in
            [("", Some("a")), ("delete old.twx a -q", Some("b")), ("delete old.twx b -q", None)]
        {
            if !step.is_empty() {
                bench.ok(step);
            }
            bench.ok(&format!("dedup new.jsonl -o out --force -q --against old.twx{inside}"));
            let rows = bench.rows("out/against.tsv", "key\tother\tresemblance\tintersection\tunion");
            let others: Vec<&str> = rows.iter().map(|row| row.split('\t').nth(1).unwrap()).collect();
            assert_eq!(others, near.into_iter().collect::<Vec<_>>(), "{step}{inside}");
            assert_eq!(ids(&bench, "out/kept.jsonl").len(), 2 - others.len(), "{step}{inside}");
        }
    }
}

#[test]
fn index_with_documents_removed_by_containment_is_not_queried_by_resemblance() {
    let bench = Bench::new();
    let text = |words: usize| (0..words).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
    bench.write("old.jsonl", jsonl(&[("long".into(), text(30)), ("part".into(), text(10))]));
    bench.write("new.jsonl", jsonl(&[("again".into(), text(10))]));
    bench.ok("dedup old.jsonl -o old --near containment:0.8 --words 1 --index all -q");
    bench.ok("dedup new.jsonl -o new --words 1 --against old -q");
    assert_eq!(ids(&bench, "new/kept.jsonl"), ["again"]);
    let refused = bench.misused("dedup new.jsonl -o no --words 1 --against old/index");
    says(&refused, &["its run removed by containment"]);
}
