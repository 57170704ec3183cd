//! Requirements for every verb, including future ones: help with an example, and errors for an unknown option and for a
//! missing index.

use crate::support::{Bench, TWINDEX, says};

/// Returns the verbs that `--help` lists.
pub(crate) fn verbs(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help");
    let listed = help.lines().filter(|line| line.starts_with("  "));
    listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns command lines of the verb with an index or file that does not exist; none if the verb reads nothing.
fn with_missing(verb: &str) -> &'static [&'static str] {
    match verb {
        "dedup" => &["dedup missing.twx -o out"],
        "why" => &["why missing.twx key"],
        "passages" => &["passages missing.twx -o out"],
        "build" => &["build index.twx missing.twx", "build out missing.twx --as sketches"],
        "stream" => &["stream index.twx missing.twx"],
        "query" => &["query missing.twx given.jsonl"],
        "idf" => &["idf missing.twx -o out"],
        "pairs" => &["pairs missing.twx"],
        "merge" => &[
            "merge missing.twx",
            "merge missing.twx --gc",
            "merge missing.twx -o out",
            "merge missing.twx --snapshot out",
        ],
        "delete" => &["delete missing.twx key"],
        "groups" => {
            &["groups missing.twx", "groups missing.twx --as leaders", "groups missing.twx --as forest"]
        }
        "get" => &["get missing.twx", "get missing.twx key"],
        "stats" => &["stats missing.twx", "stats missing.twx --html out"],
        "verify" => &["verify missing.twx --salvage out", "verify missing.twx"],
        "study" => &[
            "study missing.twx --method simhash",
            "study missing.twx --truth given.tsv",
            "study missing.twx --urls",
        ],
        "plan" => &[],
        other => panic!("`{other}` is new: say here how it is asked to work on what is not there"),
    }
}

#[test]
fn help_lists_all_verbs_in_groups_on_one_screen() {
    let bench = Bench::new();
    let help = bench.ok("--help");
    assert!(help.lines().count() <= 24, "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    says(&help, &["A corpus:\n  dedup ", "An index:\n  build ", "Study:\n  idf "]);
    assert_eq!(verbs(&bench).len(), 16, "{help}");
}

#[test]
fn help_of_every_verb_has_an_example_of_the_verb() {
    let bench = Bench::new();
    for verb in verbs(&bench) {
        let help = bench.ok(&format!("{verb} --help"));
        says(&help, &["Usage: ", "Options:"]);
        let examples =
            help.split("Example").nth(1).unwrap_or_else(|| panic!("{verb}: no examples in {help}"));
        assert!(examples.contains(&format!("twindex {verb}")), "{verb}: {examples}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{verb}: a line of more than 100 characters"
        );
    }
}

#[test]
fn every_verb_refuses_unknown_options_as_usage_errors() {
    let bench = Bench::new();
    for verb in verbs(&bench) {
        let output = bench.command(&format!("{verb} --no-such-option")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{verb}: {said}");
        says(&said, &["--no-such-option", "--help"]);
    }
}

#[test]
fn every_verb_reports_a_missing_index_or_file_and_creates_nothing() {
    let bench = Bench::new();
    bench.write("given.jsonl", "{\"id\": \"a\", \"text\": \"one two three four five six\"}\n");
    bench.write("given.tsv", "a\tb\nx\ty\n");
    for line in verbs(&bench).iter().flat_map(|verb| with_missing(verb)) {
        let output = bench.command(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{TWINDEX} {line}: {said}");
        assert_eq!(output.stdout, b"", "{line}");
        says(&said, &["twindex: ", "missing.twx"]);
        assert_eq!(bench.names("."), ["given.jsonl", "given.tsv"], "{line}");
    }
}

/// Verbs that do several things refuse the options of one with another.
#[test]
fn options_that_do_not_go_together_are_usage_errors() {
    let bench = Bench::new();
    bench.write("in.jsonl", "{\"id\": \"a\", \"text\": \"one two three four five six\"}\n");
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("pairs i.twx -o all.pairs -q");
    for (line, why) in [
        ("merge i.twx i.twx", "-o NEW"),
        ("merge i.twx -o new --on-conflict first", "goes with several indexes"),
        ("merge i.twx -o new --gc", "cannot be used with"),
        ("merge i.twx --snapshot new --memory 1G", "cannot be used with"),
        ("merge i.twx --generation 1", "--snapshot"),
        ("get i.twx a --count", "cannot be used with"),
        ("get i.twx --escaped", "<KEY>"),
        ("verify i.twx --salvage new --access read", "cannot be used with"),
        ("stats i.twx --near 0.9", "--html"),
        ("stats i.twx --html - --json", "leave out --json"),
        ("groups i.twx --near 0.9", "--near goes with --as clusters"),
        ("groups i.twx --as clusters --of a", "--of goes with --as leaders"),
        ("groups i.twx --as forest", "goes with files of pairs"),
        ("groups all.pairs --as forest --min-size 2", "--min-size goes with"),
        ("build new in.jsonl --as sketches --resume", "--resume goes with an index"),
        ("build new in.jsonl --as sketches --max-jump 1", "--max-jump goes with an index"),
        ("build new in.jsonl --as folder --repeated-keys last", "needs all keys in one file"),
        ("build - in.jsonl --as sketches", "only --as table"),
        ("build new in.jsonl --force", "--force goes with"),
        ("study in.jsonl", "--truth"),
        ("study all.pairs --truth all.pairs --words 3", "--words goes with --method"),
        ("study all.pairs --truth all.pairs -o new", "without --truth"),
        ("study all.pairs all.pairs --truth all.pairs", "one INPUT"),
        ("study in.jsonl --apply rules", "name no INPUT"),
        ("study in.jsonl --method simhash --near within:3", "goes with --urls"),
    ] {
        let output = bench.command(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        says(&said, &[why]);
    }
    assert_eq!(bench.names("."), ["all.pairs", "i.twx", "in.jsonl"]);
}
