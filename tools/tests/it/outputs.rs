//! A written file or folder replaces nothing that the run reads, nothing of another origin, and nothing inside an index.

use std::fs;

use crate::support::{Bench, documents, jsonl, says};

const LONG: &str =
    "the quick brown fox jumps over the lazy dog and sleeps in the sun until the evening comes";
const OTHER: &str =
    "forty two boats left the old harbour at dawn with nets of hemp and came back without any fish";
const NEW: &str = "a wide field of barley grows beside the mill where the road turns north towards the hills";

/// Creates the documents of two days, and the results of the first in `out`.
fn two_days(options: &str) -> Bench {
    let bench = Bench::new();
    bench.write("day1.jsonl", jsonl(&documents([("a", LONG), ("b", OTHER)])));
    bench.write("day2.jsonl", jsonl(&documents([("c", LONG), ("d", NEW)])));
    bench.ok(&format!("dedup day1.jsonl -o out --index kept -q {options}"));
    bench
}

/// Runs a command that must fail and change no file. Returns its message.
fn refused_unchanged(bench: &Bench, line: &str) -> String {
    let before = bench.contents(".");
    let output = bench.command(line).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{line}: succeeded");
    assert!(before == bench.contents("."), "{line}: files changed: {stderr}");
    stderr
}

#[test]
fn dedup_reading_inside_out_is_refused() {
    let bench = two_days("--without-boilerplate 1");
    fs::create_dir(bench.path("deep")).unwrap();
    bench.ok("build have.twx day1.jsonl -q");
    for reads in [
        "day2.jsonl --against out",
        "day2.jsonl --against out/index",
        "day2.jsonl --against out/kept.jsonl",
        "day2.jsonl --against deep/../out",
        "day2.jsonl --against have.twx --texts out/kept.jsonl --near containment:0.8",
        "day2.jsonl --without-boilerplate @out/boilerplate",
        "day2.jsonl --near within:3 --idf out/clusters.tsv",
        "day2.jsonl --stop-words @out/pairs.tsv",
        "out/kept.jsonl",
        "day2.jsonl out/../out/kept.jsonl",
        "out",
    ] {
        for force in ["--force", "--force --resume", ""] {
            let message = refused_unchanged(&bench, &format!("dedup {reads} -o out {force}"));
            says(&message, &["out: the run reads", "choose another folder"]);
        }
    }
    bench.ok("dedup day2.jsonl --against out -o next -q");
    bench.ok("dedup day2.jsonl --against out -o next -q --force");
}

#[cfg(unix)]
#[test]
fn dedup_reading_out_through_a_link_is_refused() {
    use std::os::unix::fs::symlink;
    let bench = two_days("");
    symlink("out", bench.path("yesterday")).unwrap();
    symlink("out/kept.jsonl", bench.path("kept-link.jsonl")).unwrap();
    fs::hard_link(bench.path("out/kept.jsonl"), bench.path("hard.jsonl")).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    symlink("../out/kept.jsonl", bench.path("folder/a.jsonl")).unwrap();
    for reads in [
        "day2.jsonl --against yesterday",
        "day2.jsonl --against yesterday/index",
        "kept-link.jsonl",
        "hard.jsonl",
        "folder --format jsonl",
    ] {
        let message = refused_unchanged(&bench, &format!("dedup {reads} -o out --force"));
        says(&message, &["out: the run reads"]);
    }
    bench.ok("dedup day1.jsonl -o deep/out --index kept -q");
    symlink("deep", bench.path("alias")).unwrap();
    for (read, out) in [("alias/out", "deep/out"), ("deep/out/index", "alias/out")] {
        let message =
            refused_unchanged(&bench, &format!("dedup day2.jsonl --against {read} -o {out} --force"));
        says(&message, &[out, "the run reads"]);
    }
}

#[test]
fn dedup_inside_its_history_or_an_index_is_refused() {
    let bench = two_days("");
    for (out, says_what) in
        [("out/new", "inside the history out"), ("out/index/new", "inside the history out")]
    {
        let message = refused_unchanged(&bench, &format!("dedup day2.jsonl --against out -o {out}"));
        says(&message, &[out, says_what]);
    }
    let message = refused_unchanged(&bench, "dedup day2.jsonl -o out/index/new");
    says(&message, &["out/index/new: is inside the index", "choose another folder"]);
}

#[test]
fn force_refuses_a_folder_whose_files_no_run_recorded() {
    let bench = two_days("");
    for (file, bytes) in [("pairs.tsv", "a"), ("clusters.tsv", "a"), ("kept.jsonl", "my-work\n")] {
        bench.write(&format!("mine/{file}"), bytes);
    }
    let message = refused_unchanged(&bench, "dedup day2.jsonl -o mine --force");
    says(&message, &["mine: not made by `twindex dedup`", "run.json"]);
    // An earlier version did not list the files.
    bench.write("mine/run.json", "{\"twindex\": \"0.0.1\"}");
    let message = refused_unchanged(&bench, "dedup day2.jsonl -o mine --force");
    says(&message, &["of an earlier version", "remove the folder yourself"]);
    bench.write("mine/run.json", "not json");
    says(
        &refused_unchanged(&bench, "dedup day2.jsonl -o mine --force"),
        &["run.json: not as `dedup` writes it"],
    );
    // A file with a name that `dedup` uses, which this run did not write.
    for name in ["kept-2.jsonl", "annotated.jsonl", "revisits.warc", "kept.jsonl.keys", "notes.txt"] {
        bench.write(&format!("out/{name}"), "mine");
        let message = refused_unchanged(&bench, "dedup day2.jsonl -o out --force");
        says(&message, &[&format!("`{name}` in it was not made by `twindex dedup`")]);
        fs::remove_file(bench.path(&format!("out/{name}"))).unwrap();
    }
    bench.ok("dedup day2.jsonl -o out --force -q");
    fs::create_dir(bench.path("empty")).unwrap();
    bench.ok("dedup day2.jsonl -o empty --force -q");
}

#[test]
fn run_file_lists_all_files_of_every_kind_of_run() {
    let bench = Bench::new();
    bench.write("in.csv", format!("id,text,n\n1,{LONG},2\n1,{OTHER},3\n"));
    for options in ["", "--index kept", "--also annotated", "--near equal", "--compress zstd", "--resume"] {
        bench.ok(&format!("dedup in.csv -o out -q --force {options}"));
        let run: serde_json::Value = serde_json::from_str(&bench.read("out/run.json")).unwrap();
        assert_eq!(run["written"]["names"], serde_json::json!(bench.names("out")), "{options}");
        assert_eq!(run["written"]["kept"], 2, "{options}");
    }
}

/// Every verb that writes a file: the file must not be one that the verb reads, nor be inside an index.
#[test]
fn output_file_that_is_read_or_inside_an_index_is_refused() {
    let bench = two_days("");
    bench.ok("build day1.twx day1.jsonl -q --method minhash");
    bench.ok("build simhash.twx day1.jsonl -q");
    bench.ok("pairs simhash.twx --near within:10 -o a.pairs -q");
    bench.ok("groups --as clusters a.pairs -o a.clusters -q");
    bench.ok("idf day1.jsonl -o table.idf -q");
    bench.ok("build a.sketches day1.jsonl -q --as sketches");
    bench.write("queries.jsonl", bench.read("day2.jsonl"));
    for (line, read) in [
        ("pairs simhash.twx --near within:3", "simhash.twx/CURRENT"),
        ("pairs day1.twx --near 0.9 --texts day1.jsonl", "day1.jsonl"),
        ("groups --as clusters a.pairs", "a.pairs"),
        ("groups --as forest a.pairs", "a.pairs"),
        ("build OUT day1.jsonl --as sketches", "day1.jsonl"),
        ("build OUT day1.jsonl --as table", "day1.jsonl"),
        ("idf day1.jsonl", "day1.jsonl"),
        ("query simhash.twx queries.jsonl", "queries.jsonl"),
        ("study simhash.twx --urls", "simhash.twx/CURRENT"),
        ("stats simhash.twx --html OUT", "simhash.twx/CURRENT"),
        ("study day1.jsonl --method simhash", "day1.jsonl"),
    ] {
        for out in [read, "simhash.twx/new", "out/index/CURRENT", "./day1.twx/../day1.twx/new"] {
            let line =
                if line.contains("OUT") { line.replace("OUT", out) } else { format!("{line} -o {out}") };
            let message = refused_unchanged(&bench, &format!("{line} --force"));
            let why =
                if out == read && !out.contains(".twx/") { "the run reads" } else { "is inside the index" };
            says(&message, &[out, why, "choose another name"]);
        }
    }
}

#[test]
fn report_force_replaces_only_reports() {
    let bench = two_days("");
    bench.write("mine.html", "<!doctype html>\n<html lang=\"en\">\n<p>mine");
    says(
        &refused_unchanged(&bench, "stats out/index --html mine.html --force"),
        &["mine.html: is not a page of twindex", "another name"],
    );
    says(
        &refused_unchanged(&bench, "stats out/index --html day1.jsonl --force"),
        &["is not a page of twindex"],
    );
    bench.ok("stats out/index --html new.html -q");
    says(&refused_unchanged(&bench, "stats out/index --html new.html"), &["--force to replace it"]);
    bench.ok("stats out/index --html new.html -q --force");
    bench.ok("stats out/index --html out/report.html -q --force");
}

#[test]
fn passages_outputs_replace_nothing_that_is_read() {
    let bench = two_days("");
    bench.ok("passages day1.jsonl -o spans --cut --index days.psg -q --min-words 5");
    for reads in [
        "spans/kept.jsonl",
        "day2.jsonl spans/../spans/kept.jsonl",
        "day2.jsonl --stop-words @spans/spans.tsv",
    ] {
        let message = refused_unchanged(&bench, &format!("passages {reads} -o spans --force --min-words 5"));
        says(&message, &["spans: the run reads inside it", "choose another folder"]);
    }
    let message = refused_unchanged(&bench, "passages day2.jsonl -o days.psg/new --min-words 5");
    says(&message, &["is inside the index"]);
    let message = refused_unchanged(&bench, "passages day2.jsonl -o p --html day1.jsonl --min-words 5");
    says(&message, &["day1.jsonl: is not a page of twindex"]);
    let message = refused_unchanged(&bench, "passages day2.jsonl -o p --html day2.jsonl --min-words 5");
    says(&message, &["the run reads"]);
    let message = refused_unchanged(&bench, "passages query days.psg day2.jsonl --html days.psg/page.html");
    says(&message, &["is inside the index"]);
}
