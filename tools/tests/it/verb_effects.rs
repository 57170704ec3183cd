//! Each option of the verbs over an index over a list of jobs: it changes a result, or the run is refused. The exceptions
//! are listed. `effects` does the same for the settings of `dedup`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::effects::write_inputs;
use crate::support::{Bench, raw};

/// The jobs of each verb. `{}` is a path of each run; the option is added to the last command.
const JOBS: [(&str, &[&str]); 7] = [
    (
        "build",
        &[
            "build {} texts.jsonl",
            "build {} texts.csv --method simhash",
            "build {} sets.jsonl --features-field feats --method minhash",
            "build {} prints.jsonl --fingerprint-field print",
            "build {} --fingerprints raw.u64",
            "build {} made.sketches",
            "build {} before.jsonl -q && build {} folder",
        ],
    ),
    (
        "stream",
        &[
            "stream {} texts.jsonl",
            "build {} before.jsonl -q && stream {} texts.csv",
            "stream {} texts.jsonl --near containment:0.8",
            "stream {} prints.jsonl --fingerprint-field print",
        ],
    ),
    (
        "query",
        &[
            "query i.twx texts.jsonl",
            "query i.twx texts.csv --near within:6",
            "query i.twx texts.jsonl --near 0.3 --verify signature",
            "query i.twx texts.jsonl --near containment:0.5",
            "query none.twx texts.jsonl --near 0.3 --texts folder",
            "query h.twx --fingerprints raw.u64",
            "query --against-fingerprints raw.u64 --fingerprints raw.u64 --near within:3",
        ],
    ),
    (
        "pairs",
        &[
            "pairs i.twx",
            "pairs i.twx --near within:6",
            "pairs none.twx --near 0.3 --texts folder",
            "pairs i.twx --samples",
            "pairs --fingerprints raw.u64 --near within:3",
            "pairs --fingerprints prints.jsonl --fingerprint-field print --near within:3 --id-field url",
        ],
    ),
    (
        "groups",
        &[
            "groups i.twx",
            "groups i.twx --as clusters",
            "groups i.twx --as clusters --near within:6",
            "groups all.pairs",
            "groups i.twx --as clusters --near 0.3 --keep longest --texts texts.jsonl folder",
        ],
    ),
    ("stats", &["stats i.twx", "stats i.twx --groups", "stats i.twx --html -"]),
    (
        "passages",
        &[
            "passages texts.jsonl -o {} --min-words 4",
            "passages texts.csv -o {} --min-words 4 --cut",
            "passages folder -o {} --min-words 4 --mark",
        ],
    ),
];

/// A value for each option, or for the option of a verb; `true` for a flag.
const VALUES: [(&str, &str); 99] = [
    ("access", "read"),
    ("against", "earlier.psg"),
    ("against-fingerprints", "raw.u64"),
    ("all", "true"),
    ("build as", "folder"),
    ("groups as", "forest"),
    ("annotation-prefix", "x_"),
    ("bands", "10"),
    ("boilerplate", "list"),
    ("bottom", "16"),
    ("by", "scan"),
    ("codec", "plain"),
    ("commit-bytes", "64K"),
    ("commit-ms", "0"),
    ("compress", "gzip"),
    ("containment", "true"),
    ("count", "true"),
    ("cut", "true"),
    ("design", "blocks-4"),
    ("dialect", "delimiter=|"),
    ("drop-duplicates", "true"),
    ("encoding", "windows-1251"),
    ("exact", "bytes"),
    ("expire-after", "60"),
    ("family", "linear"),
    ("feature-bits", "8"),
    ("features-field", "feats"),
    ("fingerprint-field", "print"),
    ("fingerprints", "raw.u64"),
    ("first", "true"),
    ("fold", "marks"),
    ("force", "true"),
    ("format", "text"),
    ("gather", "true"),
    ("glob", "!one*"),
    ("groups", "true"),
    ("html", "{}.html"),
    ("id-field", "FILE:ROW"),
    ("idf", "table.idf"),
    ("ids", "raw.u64"),
    ("index", "{}.psg"),
    ("inside", "lang"),
    ("into", "{}.into"),
    ("invalid-utf8", "replace"),
    ("json", "true"),
    ("keep", "key-hash"),
    ("limit", "1"),
    ("mark", "true"),
    ("max-bucket", "2"),
    ("max-spans", "0"),
    ("max-cluster", "2"),
    ("max-jump", "60"),
    ("memory", "64M"),
    ("method", "minhash"),
    ("min-size", "9"),
    ("min-words", "9"),
    ("modulus", "4"),
    ("near", "0.9"),
    ("normal-form", "nfkc"),
    ("of", "alone"),
    ("only-against", "true"),
    ("out", "{}.out"),
    ("preset", "broder-84"),
    ("priority-field", "max:points"),
    ("probe", "binary"),
    ("quiet", "true"),
    ("repeated-keys", "first"),
    ("resume", "true"),
    ("rows", "5"),
    ("samples", "true"),
    ("scores", "all.pairs"),
    ("seed", "7"),
    ("sets", "none"),
    ("shard", "1/2"),
    ("sharing", "20"),
    ("shingle-hash", "rabin"),
    ("signature-bits", "4"),
    ("simhash-bits", "256"),
    ("simhash-weights", "distinct"),
    ("skip-bad", "5"),
    ("stamp-field", "points"),
    ("stemming", "english"),
    ("stop-words", "english"),
    ("text-field", "title"),
    ("text-form", "html"),
    ("texts", "texts.jsonl"),
    ("threads", "1"),
    ("tokens", "characters"),
    ("unit", "sentence"),
    ("value-field", "title"),
    ("verbose", "true"),
    ("verify", "signature"),
    ("visits", "1"),
    ("weight-unit", "0.5"),
    ("weights", "tf"),
    ("with", "other.twx"),
    ("with-texts", "texts.jsonl"),
    ("within", "true"),
    ("words", "3"),
];

/// Options that may change nothing where they are not refused: the verb, or an empty text for all, and the reason.
const WITHOUT_EFFECT: [(&str, &str, &str); 20] = [
    ("", "memory", "results do not depend on it"),
    ("", "threads", "results do not depend on it"),
    ("", "quiet", "about messages"),
    ("", "verbose", "about messages"),
    ("build", "json", "about the summary"),
    ("passages", "json", "about the summary"),
    ("", "skip-bad", "a bound for records that are bad; there are none"),
    ("", "encoding", "about texts that are not UTF-8, which do not occur here"),
    ("", "invalid-utf8", "about bytes that do not occur here"),
    ("build", "resume", "of a run: results do not depend on it"),
    ("stream", "commit-ms", "about the time of commits"),
    ("query", "access", "answers do not depend on it"),
    ("query", "by", "answers do not depend on it"),
    ("query", "probe", "answers do not depend on it"),
    ("query", "visits", "a bound for rows of tables, which are fewer"),
    ("pairs", "max-bucket", "a bound for documents that share a band, which are fewer"),
    ("query", "feature-bits", "features of so few documents differ in their first bits, too"),
    ("pairs", "feature-bits", "features of so few documents differ in their first bits, too"),
    ("passages", "force", "there are no earlier results"),
    ("groups", "scores", "the scores are those of the pairs"),
];

/// Options that say what holds anyway in one of the jobs.
const HOLDS_ANYWAY: [(&str, &str); 9] = [
    // Fingerprints have no sets.
    ("sets", "build {} texts.csv --method simhash"),
    ("sets", "build {} prints.jsonl --fingerprint-field print"),
    ("sets", "build {} --fingerprints raw.u64"),
    ("sets", "stream {} prints.jsonl --fingerprint-field print"),
    // Names say that the files of the folder are texts, and are not repeated.
    ("format", "build {} before.jsonl -q && build {} folder"),
    ("repeated-keys", "build {} before.jsonl -q && build {} folder"),
    ("format", "pairs none.twx --near 0.3 --texts folder"),
    ("format", "passages folder -o {} --min-words 4 --mark"),
    ("repeated-keys", "passages folder -o {} --min-words 4 --mark"),
];

fn write_all_inputs(bench: &Bench) {
    write_inputs(bench);
    let prints: Vec<u64> = (0..8).map(|number| 0xabc_def0 + number / 3).collect();
    bench.write("raw.u64", raw(&prints));
    bench.write("alone.jsonl", "{\"id\":\"alone\",\"text\":\"words that occur nowhere else\"}\n");
    bench.ok("build i.twx texts.jsonl folder alone.jsonl -q --near 0.3 --words 2 --bottom 16");
    bench.ok("build other.twx before.jsonl -q --near 0.3 --words 2 --bottom 16");
    bench.ok("build none.twx folder -q --near 0.3 --words 2 --sets none");
    bench.ok("build h.twx --fingerprints raw.u64 -q");
    bench.ok("build made.sketches texts.jsonl -q --as sketches");
    bench.ok("pairs i.twx -o all.pairs -q");
    bench.ok("dedup texts.jsonl -o spans --without-boilerplate 1:3 -q");
    fs::rename(bench.path("spans/boilerplate"), bench.path("list")).unwrap();
    bench.ok("passages before.jsonl -o first --min-words 4 --index earlier.psg -q");
}

/// Returns the options of a verb, and whether each takes a value.
fn options(help: &str) -> Vec<(&str, bool)> {
    // Texts are indented further, or not at all.
    let is_option = |line: &&str| {
        let text = line.trim_start();
        (2..=6).contains(&(line.len() - text.len())) && text.starts_with('-')
    };
    let lines = help.lines().filter(is_option);
    let named = lines.filter_map(|line| {
        let name = line.split_whitespace().find_map(|word| word.strip_prefix("--"))?;
        Some((name.trim_end_matches('.'), line.contains('<')))
    });
    named.filter(|(name, _)| !["help", "version"].contains(name)).collect()
}

/// Runs a job with an option. Returns what was printed and written, without times and random ids; `None` if the run was
/// refused.
fn results(bench: &Bench, job: &str, out: &str, option: &[&str]) -> Option<BTreeMap<PathBuf, Vec<u8>>> {
    let mut commands = job.split(" && ").peekable();
    let mut printed = Vec::new();
    while let Some(line) = commands.next() {
        let mut command = bench.command(&line.replace("{}", out));
        if commands.peek().is_none() {
            command.args(option.iter().map(|word| word.replace("{}", out)));
        }
        let output = command.output().unwrap();
        match output.status.code() {
            Some(0) => printed = output.stdout,
            Some(1 | 2) => return None,
            code => panic!("{line} {option:?}: {code:?}: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }
    let is_index = job.starts_with("build") || job.starts_with("stream");
    let mut all = BTreeMap::new();
    // The files of `stream` depend on the time of its commits.
    if bench.path(out).is_dir() && !job.contains("stream") {
        let folder = bench.path(out);
        all.extend(
            bench
                .contents(out)
                .into_iter()
                .map(|(path, bytes)| (path.strip_prefix(&folder).unwrap().to_owned(), bytes)),
        );
    }
    for written in ["html", "psg", "out", "into"] {
        let name = format!("{out}.{written}");
        if bench.path(&name).exists() {
            all.insert(written.into(), Vec::new());
        }
    }
    // They have the random id of the index, or times.
    all.retain(|path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !["run.json", "CURRENT"].contains(&name.as_str()) && !name.starts_with("MANIFEST")
    });
    if is_index && bench.path(out).join("CURRENT").exists() {
        let stats = bench.json(&format!("stats {out}"));
        let mut text = String::new();
        write!(text, "{} {} {}", stats["params"], stats["near"], stats["documents"]).unwrap();
        all.insert("stats".into(), text.into_bytes());
    }
    // The others print a summary, with times.
    if ["stream", "query", "pairs", "groups", "stats"].iter().any(|verb| last(job).starts_with(verb)) {
        all.insert("printed".into(), without_times(&printed));
    }
    Some(all)
}

/// Returns the last command of a job.
fn last(job: &str) -> &str {
    job.rsplit(" && ").next().unwrap_or(job)
}

/// Removes the lines of statistics, which have times.
fn without_times(printed: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(printed);
    let lines = text.lines().filter(|line| !line.contains("\"seconds\":"));
    lines.flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

#[test]
fn each_option_of_a_verb_changes_a_result_or_is_refused() {
    let bench = Bench::new();
    write_all_inputs(&bench);
    let help: Vec<String> = JOBS.iter().map(|(verb, _)| bench.ok(&format!("{verb} --help"))).collect();
    let mut runs = Vec::new();
    for ((verb, jobs), help) in JOBS.iter().zip(&help) {
        for (option, takes_value) in options(help) {
            let of_verb = format!("{verb} {option}");
            let value = VALUES.iter().find(|(name, _)| [option, &of_verb].contains(name));
            let (_, value) = value.unwrap_or_else(|| panic!("the option --{option} of {verb} has no value"));
            assert_eq!(takes_value, *value != "true", "--{option} of {verb}");
            for (number, job) in jobs.iter().enumerate() {
                runs.push((*verb, number, *job, option, *value));
            }
        }
    }
    let jobs: Vec<(&str, usize, &str)> =
        JOBS.iter().flat_map(|(verb, jobs)| (0..).zip(*jobs).map(move |(n, job)| (*verb, n, *job))).collect();
    let plain: BTreeMap<&str, _> = jobs
        .par_iter()
        .map(|&(verb, number, job)| {
            let [one, other] = ["one", "other"].map(|of| format!("{of}-{verb}-{number}"));
            let found = results(&bench, job, &one, &[]).unwrap_or_else(|| panic!("{job}: refused"));
            assert!(results(&bench, job, &other, &[]).as_ref() == Some(&found), "{job}: two runs differ");
            (job, found)
        })
        .collect();
    let silent: Vec<String> = runs
        .par_iter()
        .filter_map(|&(verb, number, job, option, value)| {
            let name = format!("--{option}");
            let is_given = |name: &str| last(job).split_whitespace().any(|word| word == name);
            if is_given(&name) || option == "out" && is_given("-o") {
                return None;
            }
            let words: &[&str] = if value == "true" { &[&name] } else { &[&name, value] };
            let found = results(&bench, job, &format!("out-{verb}-{number}-{option}"), words)?;
            let is_excepted =
                WITHOUT_EFFECT.iter().any(|(of, name, _)| *name == option && ["", verb].contains(of));
            let is_silent = found == plain[job] && !is_excepted && !HOLDS_ANYWAY.contains(&(option, job));
            is_silent.then(|| format!("{job} {}", words.join(" ")))
        })
        .collect();
    assert!(silent.is_empty(), "taken, and nothing differs:\n{}", silent.join("\n"));
}
