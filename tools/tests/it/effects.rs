//! Each setting of `dedup` over a list of jobs: it changes a result, or the run is refused. The exceptions are listed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use rayon::prelude::*;
use twindex_corpus::Dedup;
use twindex_corpus::settings::{self, AnySettings, Kind};

use crate::support::Bench;

/// The jobs: options that read something else, or compare otherwise.
const JOBS: [&str; 9] = [
    "texts.jsonl",
    "texts.csv",
    "sets.jsonl --features-field feats",
    "prints.jsonl --fingerprint-field print",
    "texts.jsonl --near within:3",
    "texts.jsonl --near equal",
    "texts.jsonl --near containment:0.8",
    "texts.jsonl --against earlier",
    "folder",
];

/// A value for each setting, and why it may change nothing where it is not refused.
const VALUES: [(&str, &str, Option<&str>); 41] = [
    ("out", "", Some("given in each run")),
    ("force", "true", Some("of a run, not of a job: there are no earlier results")),
    ("resume", "true", Some("of a run: results do not depend on it")),
    ("index", "all", None),
    ("also", "sizes", None),
    ("annotation_prefix", "x_", None),
    ("compress", "gzip", None),
    ("inputs", "", Some("given in each run")),
    ("text_field", "title", None),
    ("text_form", "html", None),
    ("id_field", "FILE:ROW", None),
    ("format", "text", None),
    ("glob", "!one*", None),
    ("skip_bad", "5", Some("a bound for records that are bad; there are none")),
    ("encoding", "windows-1251", Some("about texts that are not UTF-8, which do not occur here")),
    ("invalid_utf8", "replace", Some("about bytes that do not occur here")),
    ("features_field", "feats", None),
    ("dialect", "delimiter=|", None),
    ("fingerprint_field", "print", None),
    ("near", "0.3", None),
    ("keep", "max:points", None),
    ("simhash_bits", "256", None),
    ("weights", "tf", None),
    ("weight_unit", "0.5", None),
    ("without_boilerplate", "1:3", None),
    ("max_work", "1000000", Some("a bound for comparisons, which are fewer")),
    ("against", "earlier", None),
    ("texts", "texts.jsonl", None),
    ("inside", "lang", None),
    ("url_field", "url", None),
    ("repeated_keys", "first", None),
    ("idf", "table.idf", None),
    ("tokens", "characters", None),
    ("words", "2", None),
    ("normal_form", "nfkc", None),
    ("fold", "marks", None),
    ("stop_words", "english", None),
    ("stemming", "english", None),
    ("shingle_hash", "rabin", None),
    ("seed", "7", None),
    ("memory", "64M", Some("results do not depend on it")),
];

/// Settings that say what holds anyway in one of the jobs.
const HOLDS_ANYWAY: [(&str, &str); 2] = [
    ("format", "folder"),        // names say that its files are texts
    ("repeated_keys", "folder"), // names of files are not repeated
];

/// Settings of the same kind as `memory`.
const THREADS: (&str, &str) = ("threads", "1");

/// Writes the inputs of the jobs.
pub(crate) fn write_inputs(bench: &Bench) {
    let (mut texts, mut csv, mut sets, mut prints) =
        (String::new(), String::new(), String::new(), String::new());
    writeln!(csv, "id,text,title,lang,url,points").unwrap();
    let lines = [
        ("a", "The fence of the ﬁeld walks along one long river and ends at the old stone mill by night"),
        ("b", "The fence of the field walks along one long river and ends at the old stone mill by night"),
        ("c", "The fence of the ﬁeld walks along one long river and ends at the old stone mill by nights"),
        (
            "c",
            "A café with a lamp, and a lamp and a lamp and a lamp, sits where nobody walked since five years",
        ),
        (
            "e",
            "A cafe with a lamp, and a lamp and a lamp and a lamp, sits where nobody walked since five years",
        ),
        ("f", "nothing of all this has anything in common with the others, as far as one can see from here"),
        ("g", "nothing of all this has anything in common with the others, as far as one can see from here"),
        ("g", "one long river and ends at the old stone mill by night is a part of a text that comes above"),
        (
            "h",
            "<p>nothing of all this has anything in common with the others, as far as one can see from here",
        ),
    ];
    for (number, (id, text)) in lines.iter().enumerate() {
        let (lang, url) = (["en", "de"][number % 2], format!("https://example.org/{number}"));
        let title = format!("title {} of three words", number / 3);
        let line = serde_json::json!({ "id": id, "text": text, "title": title, "lang": lang, "url": url, "points": number });
        writeln!(texts, "{line}").unwrap();
        writeln!(csv, "{id},\"{text}\",{title},{lang},{url},{number}").unwrap();
        let feats = serde_json::json!([["x", 1.5], ["y", 2], [format!("z{}", number / 3), 0.75]]);
        writeln!(sets, "{}", serde_json::json!({ "id": id, "feats": feats, "lang": lang, "url": url }))
            .unwrap();
        let print = format!("{:016x}", 0xabc_def0_u64 + number as u64 / 3);
        writeln!(prints, "{}", serde_json::json!({ "id": id, "print": print, "lang": lang, "url": url }))
            .unwrap();
        bench.write(&format!("folder/{}{number}.txt", if number < 4 { "one" } else { "two" }), text);
    }
    bench.write("texts.jsonl", texts);
    bench.write("texts.csv", csv);
    bench.write("sets.jsonl", sets);
    bench.write("prints.jsonl", prints);
    bench.write(
        "before.jsonl",
        "{\"id\":\"old\",\"text\":\"nothing of all this has anything in common with the others, as far as one can see\"}\n",
    );
    bench.ok("dedup before.jsonl -o earlier -q");
    bench.ok("idf texts.jsonl -o table.idf -q");
}

/// Returns the files of a folder of results that a setting may change.
fn results(bench: &Bench, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = bench.path(out);
    let files = bench.contents(out).into_iter();
    let mut files: BTreeMap<PathBuf, Vec<u8>> =
        files.map(|(path, bytes)| (path.strip_prefix(&folder).unwrap().to_owned(), bytes)).collect();
    // They have the settings, times, and the random id of the index. Segments have neither.
    files.retain(|path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !["run.json", "report.html", "CURRENT", "LOCK"].contains(&name.as_str())
            && !name.starts_with("MANIFEST")
    });
    files
}

/// Some settings change only the index, so each job writes one if it can.
fn index_of(job: &str) -> &'static str {
    if job.contains("equal") { "" } else { "--index kept" }
}

#[test]
fn each_setting_changes_a_result_or_is_refused() {
    let bench = Bench::new();
    write_inputs(&bench);
    let job = Dedup::default();
    let all: Vec<_> = job.settings().into_iter().flat_map(AnySettings::texts).collect();
    for (name, ..) in &all {
        let is_here = VALUES.iter().any(|(one, ..)| one == name) || *name == THREADS.0;
        assert!(is_here, "the setting {name} has no value in this test");
    }
    let plain: Vec<_> = JOBS
        .par_iter()
        .enumerate()
        .map(|(number, job)| {
            bench.ok(&format!("dedup {job} -o plain{number} {} -q", index_of(job)));
            results(&bench, &format!("plain{number}"))
        })
        .collect();
    let without: Vec<String> = all
        .par_iter()
        .flat_map_iter(|(name, kind, _)| {
            let (value, why) = VALUES
                .iter()
                .find(|(one, ..)| one == name)
                .map_or((THREADS.1, Some("results do not depend on it")), |(_, value, why)| (*value, *why));
            let mut silent = Vec::new();
            for (number, job) in JOBS.iter().enumerate() {
                let option = settings::spelled(name);
                if value.is_empty() || job.contains(&option) || HOLDS_ANYWAY.contains(&(name, job)) {
                    continue;
                }
                let out = format!("out-{name}-{number}");
                let index = if *name == "index" { "" } else { index_of(job) };
                let mut command = bench.command(&format!("dedup {job} -q --out {out} {index} {option}"));
                if *kind != Kind::Flag {
                    command.arg(value);
                }
                let output = command.output().unwrap();
                match output.status.code() {
                    Some(0) if results(&bench, &out) == plain[number] && why.is_none() => {
                        silent.push(format!("dedup {job} {option} {value}"));
                    }
                    Some(0..=2) => {}
                    code => panic!("dedup {job} {option} {value}: {code:?}"),
                }
            }
            silent
        })
        .collect();
    assert!(without.is_empty(), "taken, and nothing differs:\n{}", without.join("\n"));
}
