//! The commands in the documentation must work as they are written.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use twindex_corpus::settings::{Kind, Setting, Settings, spelled};
use twindex_corpus::{Fingerprints, Reading, Resources, Results, Rule, Scope, TextOptions};

use crate::support::{Bench, TWINDEX, corpus, jsonl};

/// Returns the lines of the `sh` blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => commands.push(line.to_owned()),
            _ => {}
        }
    }
    assert!(!inside, "a block that is not ended");
    commands
}

/// Reads a page of this project. `name` is its path from the repository root.
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a command in a shell, with `twindex` on the path as for a user who has installed it.
#[cfg(unix)]
fn run(bench: &Bench, command: &str) -> std::process::Output {
    let tool = Path::new(TWINDEX).parent().unwrap();
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-ec", command]).current_dir(bench.root()).env("PATH", &path);
    // The README uses a folder of source files as its corpus.
    shell.env("CARGO_HOME", bench.path("cargo")).output().unwrap()
}

/// Creates the input files that the guide uses.
#[cfg(unix)]
fn prepared() -> Bench {
    let bench = Bench::new();
    let documents = corpus(1, 120);
    // The guide keeps the document with the highest score in each language.
    let fields = ",\"score\":0.5,\"language\":\"en\"}\n";
    bench.write("pages.jsonl", jsonl(&documents[..100]).replace("}\n", fields));
    let renamed: Vec<_> =
        documents[80..].iter().map(|(key, text)| (format!("more-{key}"), text.clone())).collect();
    bench.write("more.jsonl", jsonl(&renamed));
    bench.write("queries.jsonl", jsonl(&documents[5..10]));
    for (name, text) in &documents {
        bench.write(&format!("cargo/registry/src/{name}.txt"), text);
    }
    bench
}

#[cfg(unix)]
#[test]
fn every_command_of_the_guide_runs_in_order() {
    let commands = commands(&page("docs/guide.md"));
    assert!(commands.len() > 15, "{commands:?}");
    let bench = prepared();
    for command in commands {
        let output = run(&bench, &command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        assert!(
            !output.stdout.is_empty() || command.contains('>') || command.contains(" query "),
            "{command}"
        );
    }
    assert_eq!(bench.read("admitted.tsv").lines().count(), 100);
}

/// Runs the commands of the other pages that call `twindex`. Commands that build and test the project are not run,
/// because they run this test.
#[cfg(unix)]
#[test]
fn every_command_in_the_docs_runs_or_is_a_known_exception() {
    let bench = prepared();
    let mut ran = 0;
    for name in pages() {
        for command in commands(&page(&name)) {
            let typed = command.split('#').next().unwrap().trim();
            let typed = typed.replace("cargo run --release --", "twindex");
            if name == "docs/guide.md"
                || ["cargo test", "cargo test --workspace", ".ci/run", ""].contains(&&*typed)
            {
                continue;
            }
            assert!(typed.starts_with("twindex "), "{name}: say here how `{typed}` is tested");
            let output = run(&bench, &typed);
            assert!(output.status.success(), "{name}: {typed}: {}", String::from_utf8_lossy(&output.stderr));
            ran += 1;
        }
    }
    assert!(ran > 0 && bench.path("target/dedup/report.html").exists(), "the README's first command");
}

/// Returns all documentation pages, as paths from the repository root.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = Vec::new();
    for folder in ["docs", "docs/format"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap());
        let names = entries.map(|entry| format!("{folder}/{}", entry.file_name().into_string().unwrap()));
        pages.extend(names.filter(|name| Path::new(name).extension().is_some_and(|of| of == "md")));
    }
    pages.extend(
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benches/RESULTS.md", "fuzz/README.md"]
            .map(str::to_owned),
    );
    assert!(pages.len() > 8, "{pages:?}");
    pages
}

/// Checks the `twindex` verbs and options, and the files of this project, that pages mention in running text.
#[test]
fn files_mentioned_in_the_docs_exist() {
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut help = std::collections::BTreeMap::new();
    let (mut files, mut options) = (0, 0);
    for name in pages() {
        let page = page(&name);
        for code in page.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n')) {
            let words: Vec<&str> = code.split_whitespace().collect();
            let is_of_project = |word: &&&str| {
                ["scripts/", "docs/", "examples/", "benches/", "src/", "tools/"]
                    .iter()
                    .any(|of| word.starts_with(of))
            };
            if let Some(file) = words
                .first()
                .filter(is_of_project)
                .filter(|_| name.starts_with("docs/") || name == "README.md")
            {
                // `src/format/log::name` names a test in that file.
                let file = file.trim_end_matches(',').split("::").next().unwrap();
                if file.contains("...") {
                    continue;
                }
                let is_there = root.join(file).exists() || root.join(format!("{file}.rs")).exists();
                assert!(is_there, "{name}: `{code}`: there is no {file}");
                files += 1;
            }
            let (Some(&"twindex"), Some(verb)) = (words.first(), words.get(1)) else { continue };
            if !verb.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            let help = help.entry((*verb).to_owned()).or_insert_with(|| bench.ok(&format!("{verb} --help")));
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap().trim_end_matches(',');
                assert!(help.contains(option), "{name}: `{code}`: {verb} has no {option}");
                options += 1;
            }
        }
    }
    assert!(files > 20 && options > 20, "{files} files and {options} options: a test of something");
}

/// Marks the tables of the options of `dedup` in the page of commands.
const TABLES: [&str; 2] = [
    "<!-- options of dedup: TWINDEX_WRITE_DOCS=1 cargo test -p twindex-tools tables_of_options -->\n",
    "<!-- end of the options of dedup -->\n",
];

/// Returns the tables of the options of `dedup`, one for each heading.
fn tables_of_options() -> String {
    let mut tables = String::new();
    add_table::<Results>(&mut tables);
    add_table::<Reading>(&mut tables);
    add_table::<Fingerprints>(&mut tables);
    add_table::<Rule>(&mut tables);
    add_table::<Scope>(&mut tables);
    add_table::<TextOptions>(&mut tables);
    add_table::<Resources>(&mut tables);
    tables
}

/// Adds the settings of `S` to the last table, if the table has their heading, or else as a new table.
fn add_table<S: Settings>(tables: &mut String) {
    let heading = format!("\n### {}\n", S::HEADING);
    if !tables.contains(&heading) {
        write!(tables, "{heading}\n| option | default | what it does |\n|---|---|---|\n").unwrap();
    }
    for setting in S::TABLE {
        let (about, default) = about_and_default(setting);
        writeln!(tables, "| {} | {} | {about} |", option_names(setting), default.unwrap_or_default())
            .unwrap();
    }
}

/// Returns the names of an option, each with the form of its value.
fn option_names<S>(setting: &Setting<S>) -> String {
    if setting.name == "inputs" {
        return format!("`{}...`", setting.form);
    }
    let names = [
        setting.short.map(|short| format!("-{short}")),
        Some(spelled(setting.name)),
        setting.alias.map(spelled),
    ];
    let several = if matches!(setting.kind, Kind::Many | Kind::OneOrMore) { "..." } else { "" };
    let name = |name: String| match setting.form {
        "" => format!("`{name}`"),
        form => format!("`{name} {form}`{several}"),
    };
    names.into_iter().flatten().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the help of an option as one cell of a table, and its default value.
fn about_and_default<S: Settings>(setting: &Setting<S>) -> (String, Option<String>) {
    let mut about = String::new();
    for paragraph in setting.long_help().lines() {
        let stop = if paragraph.ends_with(['.', ']']) { "" } else { "." };
        write!(about, "{}{paragraph}{stop}", if about.is_empty() { "" } else { " " }).unwrap();
    }
    let mut default = setting.default().map(|default| format!("`{default}`"));
    if let Some((before, after)) = about.clone().split_once("[default: ") {
        let (named, after) = after.split_once(']').unwrap();
        default = Some(escaped(named));
        about = format!("{}{after}", before.trim_end());
    }
    (escaped(&about), default)
}

/// Escapes the characters outside of code that Markdown would read as marks.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(i, part)| {
        let part = part.replace('|', "\\|");
        if i % 2 == 0 { part.replace('*', "\\*").replace('_', "\\_") } else { part }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Compares the tables of the page with the settings. With `TWINDEX_WRITE_DOCS=1` it writes them.
#[test]
fn tables_of_options_are_those_of_the_settings() {
    const PAGE: &str = "docs/commands.md";
    let page = page(PAGE);
    let [start, end] = TABLES;
    let (before, rest) = page.split_once(start).expect("the mark before the tables");
    let (written, after) = rest.split_once(end).expect("the mark after the tables");
    let tables = format!("{}\n", tables_of_options());
    if std::env::var_os("TWINDEX_WRITE_DOCS").is_some_and(|value| value == "1") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
        std::fs::write(path, format!("{before}{start}{tables}{end}{after}")).unwrap();
        return;
    }
    for (number, (written, expected)) in written.lines().zip(tables.lines()).enumerate() {
        assert_eq!(written, expected, "line {number} of the tables: TWINDEX_WRITE_DOCS=1 writes them");
    }
    assert_eq!(written, tables, "TWINDEX_WRITE_DOCS=1 writes the tables");
}
