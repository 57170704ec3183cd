//! Requirements for every verb, including future ones: help with an example, and errors for an unknown option and for a
//! missing index.

use crate::support::{Bench, TWINDEX, says};

/// Returns the verbs that `--help` lists, except for clap's own.
fn verbs(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help");
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != "help").collect()
}

/// Returns a command line of the verb with an index or file that does not exist; `None` if the verb reads nothing.
fn with_missing(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "dedup" => "dedup missing.twx -o out",
        "why" => "why missing.twx key",
        "passages" => "passages missing.twx -o out",
        "sketch" => "sketch missing.twx -o out",
        "build" => "build index.twx missing.twx",
        "stream" => "stream index.twx missing.twx",
        "query" => "query missing.twx given.jsonl",
        "idf" => "idf missing.twx -o out",
        "pairs" => "pairs missing.twx",
        "forest" => "forest missing.twx",
        "clusters" => "clusters missing.twx",
        "eval" => "eval missing.twx --truth given.tsv",
        "compact" => "compact missing.twx",
        "merge" => "merge out missing.twx",
        "snapshot" => "snapshot missing.twx out",
        "delete" => "delete missing.twx key",
        "gc" => "gc missing.twx",
        "groups" => "groups missing.twx",
        "keys" => "keys missing.twx",
        "get" => "get missing.twx key",
        "stats" => "stats missing.twx",
        "report" => "report missing.twx -o out",
        "salvage" => "salvage missing.twx out",
        "verify" => "verify missing.twx",
        "study" => "study missing.twx --method simhash",
        "urls" => "urls missing.twx",
        // These verbs read no files.
        "plan" | "completions" | "man" => return None,
        other => panic!("`{other}` is new: say here how it is asked to work on what is not there"),
    })
}

#[test]
fn help_of_every_verb_has_an_example_of_the_verb() {
    let bench = Bench::new();
    let verbs = verbs(&bench);
    assert!(verbs.len() >= 25, "{verbs:?}");
    for verb in verbs {
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
    let mut asked = 0;
    for verb in verbs(&bench) {
        let Some(line) = with_missing(&verb) else { continue };
        asked += 1;
        let output = bench.command(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{TWINDEX} {line}: {said}");
        if verb == "verify" {
            // `verify` prints the problems it finds to standard output.
            says(&String::from_utf8(output.stdout).unwrap(), &["missing.twx: not a twindex index"]);
        } else {
            assert_eq!(output.stdout, b"", "{line}");
            says(&said, &["twindex: ", "missing.twx"]);
        }
        assert_eq!(bench.names("."), ["given.jsonl", "given.tsv"], "{line}");
    }
    assert!(asked >= 22, "{asked}");
}
