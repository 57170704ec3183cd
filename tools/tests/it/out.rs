//! OUT of `dedup` is the only folder that the command deletes. These tests check which folders it accepts as its own,
//! and what it leaves after a failure, by comparing all bytes.

use std::fs;

use crate::support::{Bench, corpus, documents, jsonl, says};

/// Creates a folder with an input and earlier results at `out`.
fn deduplicated() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(9, 30)));
    bench.write("two.jsonl", jsonl(&documents([("a", "one two three four five")])));
    bench.ok("dedup in.jsonl -o out --index kept -q");
    bench
}

/// Runs a command that must fail with `code` and change nothing in the folder. Returns its message.
fn refused_without_a_trace(bench: &Bench, code: i32, line: &str) -> String {
    let before = bench.contents(".");
    let output = bench.command(line).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{line}: {stderr}");
    let after = bench.contents(".");
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{line}: files");
    assert!(before == after, "{line}: bytes changed");
    stderr
}

#[test]
fn force_refuses_a_folder_with_foreign_files_at_any_depth() {
    for (foreign, named) in [
        ("out/index/photos/a.txt", "index/photos"),
        ("out/index/notes.txt", "index/notes.txt"),
        ("out/index/MANIFEST-old", "index/MANIFEST-old"),
        ("out/index/.seg", "index/.seg"),
        ("out/index/7x.seg", "index/7x.seg"),
        ("out/index/000009.seg/a.txt", "index/000009.seg"),
        ("out/index/.twindex-tmp-1/a.txt", "index/.twindex-tmp-1"),
    ] {
        let bench = deduplicated();
        bench.write(foreign, "mine");
        let message = refused_without_a_trace(&bench, 1, "dedup two.jsonl -o out --force");
        says(&message, &["out: ", &format!("`{named}`"), "not made by `twindex dedup`", "another folder"]);
    }
}

#[test]
fn force_refuses_a_folder_that_only_resembles_dedup_results() {
    // Creates a website folder that contains an index page.
    let bench = deduplicated();
    bench.write("site/index/photos/a.txt", "mine");
    let message = refused_without_a_trace(&bench, 1, "dedup two.jsonl -o site --force");
    says(&message, &["site: ", "not made by `twindex dedup`"]);
    // Creates folders with the names of result files, and a file with the name of a result folder.
    for (path, named) in
        [("a/pairs.tsv/x", "pairs.tsv"), ("b/kept.jsonl/x", "kept.jsonl"), ("c/index", "index")]
    {
        let out = &path[..1];
        bench.write(&format!("{out}/clusters.tsv"), "");
        let names = r#"["clusters.tsv","index","kept.jsonl","pairs.tsv","run.json"]"#;
        let written =
            format!("{{\"written\":{{\"names\":{names},\"kept\":0,\"kept_files\":[],\"index\":null}}}}");
        bench.write(&format!("{out}/run.json"), written);
        bench.write(path, "mine");
        let message = refused_without_a_trace(&bench, 1, &format!("dedup two.jsonl -o {out} --force"));
        says(&message, &[&format!("`{named}`"), "not made by `twindex dedup`"]);
    }
}

#[test]
fn force_refuses_an_index_without_dedup_results() {
    let bench = deduplicated();
    fs::create_dir(bench.path("d")).unwrap();
    bench.ok("build d/index in.jsonl -q");
    let message = refused_without_a_trace(&bench, 1, "dedup two.jsonl -o d --force");
    says(&message, &["d: ", "not made by `twindex dedup`", "another folder"]);
}

#[test]
fn force_replaces_results_whose_index_was_changed_later() {
    let bench = deduplicated();
    bench.ok("build out/index two.jsonl -q");
    bench.write("out/index/.twindex-tmp-killed", "from a killed run");
    bench.ok("dedup two.jsonl -o out --force -q");
    assert_eq!(bench.read("out/kept.jsonl"), bench.read("two.jsonl"));
    bench.ok("dedup two.jsonl -o out --force -q --near equal");
    bench.ok("dedup two.jsonl -o out --force -q");
    assert_eq!(bench.names("."), ["in.jsonl", "out", "two.jsonl"]);
}

#[cfg(unix)]
#[test]
fn output_links_are_refused_and_their_targets_unchanged() {
    use std::os::unix::fs::symlink;
    let bench = deduplicated();
    symlink("out", bench.path("link")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    for out in ["link", "dangling"] {
        for force in ["", "--force"] {
            let message = refused_without_a_trace(&bench, 1, &format!("dedup two.jsonl -o {out} {force}"));
            says(&message, &[&format!("{out}: "), "symbolic link", "name the folder that it points to"]);
            assert!(!message.contains("--force to replace"), "{message}");
        }
    }
    bench.write("mine/pairs.tsv", "");
    symlink("../out/index", bench.path("mine/index")).unwrap();
    symlink("../in.jsonl", bench.path("mine/kept.jsonl")).unwrap();
    says(&refused_without_a_trace(&bench, 1, "dedup two.jsonl -o mine --force"), &["not made by"]);
    // A parent folder of OUT may be a link.
    fs::create_dir(bench.path("elsewhere")).unwrap();
    symlink("elsewhere", bench.path("above")).unwrap();
    bench.ok("dedup two.jsonl -o above/out -q");
    assert_eq!(bench.read("elsewhere/out/kept.jsonl"), bench.read("two.jsonl"));
}

#[test]
fn results_inside_an_input_folder_are_not_read_as_input() {
    let bench = Bench::new();
    bench.write("in/a.txt", "one two three four five");
    bench.write("in/deep/b.txt", "six seven eight nine ten");
    // OUT does not exist yet: the input folder is listed before OUT is created.
    bench.ok("dedup in -o in/out -q");
    assert_eq!(bench.read("in/out/kept.jsonl").lines().count(), 2);
    bench.ok("dedup in/deep -o deep -q");
    for (inputs, out) in [("in", "in/out"), ("in/.", "./in/deep/../out/"), ("deep in", "in/out")] {
        for force in ["", "--force"] {
            let line = format!("dedup {inputs} -o {out} {force}");
            let message = refused_without_a_trace(&bench, 2, &line);
            let input = inputs.rsplit(' ').next().unwrap();
            says(&message, &[out, &format!("inside the input {input}"), "choose another folder"]);
        }
    }
    let message = refused_without_a_trace(&bench, 2, "dedup deep -o deep --force");
    says(&message, &["deep: the run reads deep, which is the same", "choose another folder"]);
    // A folder next to an input, or a folder whose name starts with the name of the input, is not inside the input.
    bench.ok("dedup in/deep -o in/out --force -q");
    bench.ok("dedup in/deep -o in/deeper -q");
    bench.ok("dedup in/deep -o in/deeper --force -q");
}

#[test]
fn out_without_a_file_name_is_refused_before_any_work() {
    let bench = deduplicated();
    for out in [".", "./", "..", "/", "out/.."] {
        // The missing input is not reported, so it has not been opened.
        let message = refused_without_a_trace(&bench, 2, &format!("dedup none.jsonl -o {out} --force"));
        says(&message, &[&format!("--out {out}: "), "name of a folder"]);
    }
    bench.ok("dedup two.jsonl -o new/. -q");
    bench.ok("dedup two.jsonl -o out/. --force -q");
    for out in ["new", "out"] {
        assert_eq!(bench.read(&format!("{out}/kept.jsonl")), bench.read("two.jsonl"));
    }
}

#[test]
fn failed_run_removes_only_the_parent_folders_it_created() {
    let bench = Bench::new();
    bench.write("bad.jsonl", "{\"id\":1,\"text\":\"one\"}\n{}\n");
    fs::create_dir_all(bench.path("there/already")).unwrap();
    for out in ["p/q/out", "there/already/out", "there/already/p/q/out", "p/../q/out"] {
        refused_without_a_trace(&bench, 1, &format!("dedup bad.jsonl -o {out}"));
    }
    bench.write("good.jsonl", "{\"id\":1,\"text\":\"one\"}\n");
    bench.ok("dedup good.jsonl -o p/q/out -q");
    assert_eq!(bench.names("p/q"), ["out"]);
}

#[test]
fn help_describes_the_files_a_killed_run_leaves() {
    let bench = Bench::new();
    let help = bench.ok("dedup --help").split_whitespace().collect::<Vec<_>>().join(" ");
    says(&help, &[".twindex-run-XXXX", "beside OUT", "the next run there removes"]);
}

#[test]
fn threshold_below_the_minimum_for_bands_is_refused() {
    let bench = deduplicated();
    let message = refused_without_a_trace(&bench, 2, "dedup two.jsonl -o low --threshold 0.049");
    says(&message, &["--near", "0.05"]);
    bench.ok("dedup two.jsonl -o low --threshold 0.05 -q");
}

/// A test can only check durability across power failures by the order of system calls.
#[cfg(target_os = "linux")]
#[test]
fn new_results_are_durable_before_old_ones_are_removed() {
    let bench = deduplicated();
    for (out, above) in [("p/out", "p"), ("p/out --force", "p"), ("p/q/out", "p/q")] {
        let mut traced = std::process::Command::new("strace");
        traced
            .args(["-f", "-y", "-o", "trace", "-e", "trace=rename,renameat,renameat2,fsync,unlinkat"])
            .arg(crate::support::TWINDEX)
            .args(format!("dedup two.jsonl -q -o {out}").split(' '))
            .current_dir(bench.root());
        if crate::support::strace(&mut traced).is_none() {
            return;
        }
        let trace = bench.read("trace");
        let lines: Vec<&str> = trace.lines().collect();
        let name = format!("{}\")", out.split(' ').next().unwrap());
        let renamed = lines.iter().position(|line| line.contains("rename") && line.contains(&name)).unwrap();
        let (before, after) = lines.split_at(renamed);
        let synced = |lines: &[&str], folder: &str| {
            let path = fs::canonicalize(bench.path(folder)).unwrap().display().to_string();
            lines.iter().position(|line| line.contains("fsync(") && line.contains(&format!("<{path}>)")))
        };
        // Another thread writes the report at the same time, so the line may end after the file name.
        let written = before.iter().position(|line| line.contains("fsync(") && line.contains("kept.jsonl>"));
        let written = written.unwrap_or_else(|| panic!("{out}: the documents to keep: {trace}"));
        let whole = before[written..].iter().any(|line| {
            let folder = line.split_once("/.twindex-run-").and_then(|(_, rest)| rest.split_once(">)"));
            line.contains("fsync(") && folder.is_some_and(|(folder, _)| !folder.contains('/'))
        });
        assert!(whole, "{out}: the folder of the results: {trace}");
        let named = synced(after, above).unwrap_or_else(|| panic!("{out}: the name of the results: {trace}"));
        if let Some(gone) = after.iter().position(|line| line.contains("kept.jsonl")) {
            assert!(named < gone && out.ends_with("--force"), "{out}: {trace}");
        } else {
            assert!(synced(after, if above == "p" { "." } else { "p" }).is_some(), "{out}: folders above");
        }
    }
}
