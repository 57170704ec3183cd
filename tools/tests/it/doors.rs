//! The random jobs of `jobs` through Python and Spark: `python/tests/random_jobs.py` runs them, and this file compares
//! their results with those of the command. `scripts/python test` and `scripts/spark-test` call it.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use twindex_corpus::settings::{self, Door, Kind, Settings};
use twindex_corpus::{Dedup, Resources, Rule, TextOptions};

use crate::jobs::{Drawn, One, Outcome, say_the_same};
use crate::support::Bench;
use crate::support::skip::{Missing, skip};

/// The door, the variable that names a Python with twindex, and the variable that says to run every n-th of the jobs
/// that decide.
const DOORS: [(Door, &str, usize); 2] =
    [(Door::PythonDedup, "TWINDEX_PYTHON", 1), (Door::SparkDedup, "TWINDEX_SPARK_PYTHON", 15)];

/// A job, and how it ended by the command.
pub(crate) struct Job {
    pub(crate) seed: u64,
    pub(crate) drawn: Drawn,
    pub(crate) command: Outcome,
}

impl Job {
    fn value(&self, name: &str) -> Option<&'static str> {
        self.drawn.iter().find(|(own, ..)| *own == name).map(|(.., value)| *value)
    }
}

/// Runs the jobs through Python and Spark, each if a variable names a Python with twindex.
pub(crate) fn compare(bench: &Bench, corpus: &[One], jobs: &[Job]) {
    for (door, variable, every) in DOORS {
        match std::env::var_os(variable) {
            Some(python) => compare_door(bench, corpus, jobs, (door, &python, every)),
            None => skip(Missing::Elsewhere(&format!("{variable} names no Python with twindex"))),
        }
    }
}

fn compare_door(bench: &Bench, corpus: &[One], jobs: &[Job], (door, python, every): (Door, &OsStr, usize)) {
    let mut calls: Vec<(&Job, Expected)> = Vec::new();
    let mut decided = 0;
    for job in jobs {
        let Some(expected) = expected(door, job) else { continue };
        if matches!(expected, Expected::Kept(_)) {
            decided += 1;
            if decided % every != 0 {
                continue;
            }
        }
        calls.push((job, expected));
    }
    let documents = corpus.iter().map(|one| serde_json::from_str::<Value>(&one.line).unwrap());
    let first = json!({ "documents": documents.collect::<Vec<_>>() });
    let lines = calls.iter().map(|(job, _)| json!({ "job": job.seed, "call": call(door, job) }));
    let lines = std::iter::once(first).chain(lines).map(|line| line.to_string() + "\n");
    let input = format!("jobs-{door:?}.jsonl");
    bench.write(&input, lines.collect::<String>());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/tests/random_jobs.py");
    let output = Command::new(python)
        .arg(program)
        .arg(if door == Door::PythonDedup { "python" } else { "spark" })
        .current_dir(bench.root())
        .stdin(File::open(bench.path(&input)).unwrap())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{door:?}: {}", output.status);
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), calls.len(), "{door:?}: an answer to each job");
    let (mut counts, mut wrong) = ([0; 3], Vec::new());
    for ((job, expected), answer) in calls.iter().zip(&answers) {
        assert_eq!(answer["job"], job.seed);
        match expected.check(answer) {
            Ok(()) => counts[expected.kind()] += 1,
            Err(why) => wrong.push(format!("job {}: {:?}\n{why}", job.seed, job.drawn)),
        }
    }
    let [kept, refused, not_taken] = counts;
    println!(
        "{door:?}: {} of {} jobs: {kept} with the same documents, {refused} with the same refusal, {not_taken} refused \
         because of a setting that it does not take; {} wrong",
        calls.len(),
        jobs.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{door:?}: {} wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
    let least = jobs.len() as u64 / 40;
    assert!(kept * every as u64 >= least && not_taken >= least, "each kind of end is tested: {counts:?}");
}

/// How a job must end.
enum Expected {
    /// These documents stay, by `id`, sorted.
    Kept(Vec<String>),
    /// It is refused, with the message of the command or with a message that has all of some parts.
    Refused { messages: Vec<String>, parts: Vec<Vec<String>>, is_not_taken: bool },
}

impl Expected {
    fn kind(&self) -> usize {
        match self {
            Self::Kept(_) => 0,
            Self::Refused { is_not_taken, .. } => 1 + usize::from(*is_not_taken),
        }
    }

    fn check(&self, answer: &Value) -> Result<(), String> {
        let said = answer["refused"].as_str();
        match self {
            Self::Kept(ids) if answer["kept"] == json!(ids) => Ok(()),
            Self::Kept(ids) => Err(format!("expected {ids:?}\nfound    {answer}")),
            Self::Refused { messages, parts, .. } => {
                let is_one = said.is_some_and(|said| {
                    // A door may add advice to the message.
                    let adds = |message: &str| said.contains(message.trim().trim_start_matches("twindex: "));
                    let is_said = |message: &str| adds(message) || say_the_same(message, said);
                    messages.iter().any(|message| is_said(message))
                        || parts.iter().any(|parts| parts.iter().all(|part| said.contains(part)))
                });
                let wanted = || format!("expected one of {messages:#?} {parts:?}\nfound {answer}");
                if is_one { Ok(()) } else { Err(wanted()) }
            }
        }
    }
}

/// Returns how messages of a door name a setting.
fn spelled(door: Door, name: &str) -> String {
    match (door, name) {
        (Door::SparkDedup, "features_field") => "features=True".to_owned(),
        (Door::SparkDedup, "id_field") => "key".to_owned(),
        (Door::SparkDedup, "text_field") => "text".to_owned(),
        (_, "features_field") => "tokens=\"features\"".to_owned(),
        _ => name.to_owned(),
    }
}

/// The names of the settings in a struct of settings.
fn names<S: Settings>() -> impl Iterator<Item = &'static str> {
    S::TABLE.iter().map(|setting| setting.name)
}

/// Returns the options that a door names fields by, as the option of the command, its own name, and its value.
fn field_options(door: Door, job: &Job) -> Vec<(&'static str, &'static str, &'static str)> {
    let own = if door == Door::SparkDedup {
        ["text", "key", "inside"]
    } else {
        ["text_field", "id_field", "inside"]
    };
    let options = ["text_field", "id_field", "inside"].into_iter().zip(own);
    let mut found: Vec<_> =
        options.filter_map(|(name, own)| job.value(name).map(|value| (name, own, value))).collect();
    found.extend(job.value("features_field").map(|value| ("features_field", own[0], value)));
    found
}

/// Returns how a job must end; `None` if a door cannot express it.
fn expected(door: Door, job: &Job) -> Option<Expected> {
    // A door says by the kind of tokens, or by another argument, that documents are features.
    if job.value("features_field").is_some()
        && ["tokens", "text_field"].iter().any(|name| job.value(name).is_some())
    {
        return None;
    }
    // The command numbers keys that are repeated, and Python does not.
    let is_repeated = job.value("id_field").is_some_and(|name| name == "meta.rank");
    if door == Door::PythonDedup && job.command.is_ok() && is_repeated {
        return None;
    }
    let in_words = |message: &str| settings::in_words_of(message, |name| spelled(door, name));
    let known: Vec<&str> =
        names::<Rule>().chain(names::<TextOptions>()).chain(names::<Resources>()).collect();
    let fields = field_options(door, job);
    let (mut not_taken, mut parts, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (name, _, value) in &job.drawn {
        if let Err(why) = door.check(name, value) {
            not_taken.push(in_words(&why.to_string()));
        } else if !known.contains(name) && fields.iter().all(|(own, ..)| own != name) {
            parts.push(vec![format!("there is no setting {name:?}")]);
        }
        let mut alone = Dedup::default();
        if let Err(why) = settings::set(&mut alone.settings_mut(), name, &[value]) {
            wrong.push(in_words(&why.to_string()));
        }
    }
    let is_not_taken = !not_taken.is_empty() || !parts.is_empty();
    if job.command.is_err() {
        wrong.extend(job.command.as_ref().err().map(|why| in_words(why)));
        // The command reads the whole input first, and names the record.
        let keep = job.value("keep").and_then(|keep| keep.split_once(':')).map(|(_, field)| ("keep", field));
        let named = fields.iter().map(|&(_, own, field)| (own, field)).chain(keep);
        for (own, field) in named.filter(|(_, field)| field.contains("nope")) {
            let own = if door == Door::SparkDedup { String::new() } else { format!("{own}: ") };
            parts.push(vec![
                own,
                "no column".to_owned(),
                field.rsplit(',').next().unwrap_or_default().to_owned(),
            ]);
        }
    }
    if door == Door::SparkDedup {
        // Keys are strings there.
        let other = job.value("id_field").filter(|name| *name != "id");
        parts.extend(other.map(|name| vec![format!("column {name}: expected string")]));
    }
    match &job.command {
        Ok((kept, _)) if !is_not_taken && (door == Door::PythonDedup || parts.is_empty()) => {
            Some(Expected::Kept(kept.clone()))
        }
        _ => {
            not_taken.extend(wrong);
            Some(Expected::Refused { messages: not_taken, parts, is_not_taken })
        }
    }
}

/// Returns the keyword arguments of a job.
fn call(door: Door, job: &Job) -> Map<String, Value> {
    let is_spark = door == Door::SparkDedup;
    let mut call = Map::new();
    let (text, key) = if is_spark { ("text", "key") } else { ("text_field", "id_field") };
    call.insert(text.to_owned(), "text".into());
    // Rows of Spark have no order, so their places are keys where the command goes by order.
    let is_by_place = is_spark && matches!(job.value("keep"), None | Some("longest"));
    call.insert(key.to_owned(), if is_by_place { "place" } else { "id" }.into());
    if is_spark {
        call.insert("keep".to_owned(), "smallest-key".into());
    }
    for (name, kind, value) in &job.drawn {
        let value = if *kind == Kind::Flag { json!(true) } else { json!(value) };
        match *name {
            "text_field" => call.insert(text.to_owned(), value),
            "id_field" => call.insert(key.to_owned(), value),
            "features_field" => {
                call.insert(text.to_owned(), value);
                let (name, value) =
                    if is_spark { ("features", json!(true)) } else { ("tokens", json!("features")) };
                call.insert(name.to_owned(), value)
            }
            name => call.insert(name.to_owned(), value),
        };
    }
    call
}
