//! Repeats the experiment of `damage_experiment` through the interfaces of C and Python. `TWINDEX_DOOR` is the shell command
//! of a program, here called a door, that opens damaged indexes and answers queries through one interface:
//! `crates/capi/tests/damage.c` or `python/tests/damage_door.py`. In addition to the indexes of that experiment, copies of
//! each golden index are damaged.
//!
//! Each line that the door reads from standard input is a request: the path of an index, a tab, and the path of a file of
//! queries. Each line of that file is a query: `key` and hexadecimal bytes, `number` and a numeric key, `text` and a text,
//! or `fingerprint` and a number. The door opens the index, prints lines that begin as follows, and then prints a line `.`:
//!
//! - `+`: an answer. The first answers are about the whole index; then each query has a fixed number of answers.
//! - `-`: the code of an error, in place of an answer. If the index does not open, this is the only answer.
//! - `v`: the number of problems that verification found, or `v -` and the code of an error.
//! - `w`: the code of an error while the door writes to the index, after all answers.
//! - `!`: a violation of the rules for interfaces, such as a panic that crosses the interface or an error without a message.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "damages files without the index's knowledge")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Lines, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::damage_maker::{self, Files, KINDS, kind_of};
use crate::damage_outcomes::{Answer, Counts, Expected, LONGEST, Outcome, identity, number};
use crate::support::memory::MemoryVfs;
use twindex::sys::Vfs;
use twindex::{Index, KeyBuf};

/// Texts of documents in golden indexes, and texts near them.
const TEXTS: [&str; 6] = [
    "text number 3",
    "text number 8",
    "the of and to in a is that it was for on w0of0 w1of0 w2of0 w3of0 w4of0 w5of0",
    "w0of0 w1of0 w2of0 w3of0 w4of0 w5of0 w6of0 w7of0 w8of0 x0",
    "The quick brown fox jumps over the lazy dog while the farmer sleeps in the warm barn",
    "--",
];

/// An undamaged index.
struct Original {
    name: String,
    files: Files,
    /// The files of another index, from which some kinds of damage copy parts.
    foreign: Files,
    /// The files of the index at each earlier commit that a truncated log can restore.
    earlier: Vec<Files>,
    /// The content of the file of queries.
    queries: String,
}

fn open(files: &Files) -> twindex::Result<Index> {
    let vfs = MemoryVfs::default();
    for (name, bytes) in files {
        vfs.set(&Path::new("i").join(name), bytes.clone());
    }
    Index::options().open_with(Arc::new(vfs) as Arc<dyn Vfs>, Path::new("i"))
}

/// Returns the files of the index at each earlier commit that a truncation of its last log restores.
fn earlier(files: &Files) -> Vec<Files> {
    let is_log = |name: &&PathBuf| name.to_str().unwrap().starts_with("LOG");
    let Some(log) = files.keys().rfind(is_log) else { return Vec::new() };
    let current = open(files).unwrap().snapshot().generation();
    let mut states = BTreeMap::new();
    // The lengths of batches are multiples of 8.
    for length in (0..files[log].len()).step_by(8) {
        let mut files = files.clone();
        files.get_mut(log).unwrap().truncate(length);
        if let Ok(index) = open(&files) {
            states.insert(index.snapshot().generation(), files);
        }
    }
    states.remove(&current);
    states.into_values().collect()
}

/// Returns the content of the file of queries for an index: all of its keys, some texts, and fingerprints near some of its
/// own.
fn queries(files: &Files) -> String {
    let index = open(files).unwrap();
    let snapshot = index.snapshot();
    let (mut lines, mut fingerprints) = (String::new(), String::new());
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf());
            Ok(())
        })
        .unwrap();
    for (i, key) in keys.iter().enumerate() {
        match key {
            KeyBuf::U64(key) => writeln!(lines, "number {key}").unwrap(),
            KeyBuf::Bytes(key) => {
                lines += "key ";
                for byte in key {
                    write!(lines, "{byte:02x}").unwrap();
                }
                lines.push('\n');
            }
        }
        let record = snapshot.get(key.as_key()).unwrap().unwrap();
        if let Some(fingerprint) = record.fingerprint.filter(|_| i.is_multiple_of(5)) {
            writeln!(fingerprints, "fingerprint {}", fingerprint.0 ^ 1 << (i % 64)).unwrap();
        }
    }
    for text in (0..200).step_by(16).map(|i| damage_maker::text(i, 0)).chain(TEXTS.map(str::to_owned)) {
        writeln!(lines, "text {text}").unwrap();
    }
    lines + &fingerprints
}

/// Returns all undamaged indexes.
fn originals() -> Vec<Original> {
    let made = |salt, with_log| damage_maker::made(salt, with_log, |_| ());
    let mut all = vec![
        ("without a log".to_owned(), made(0, false), made(5, false)),
        ("with a log".to_owned(), made(0, true), made(5, true)),
    ];
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folders = |path: &Path| {
        let paths = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        paths.sort();
        paths
    };
    let mut groups = folders(&golden);
    groups.retain(|path| !path.ends_with("format-1.0")); // the queries find nothing in these indexes
    let mut golden: Vec<PathBuf> = groups.iter().flat_map(|path| folders(path)).collect();
    // The doors of this test ask for no codes.
    let of_codes = ["codes", "parts", "simhashes"].map(|name| format!("index-v3-fields/{name}"));
    golden.retain(|path| !of_codes.iter().any(|name| path.ends_with(name)));
    for (i, path) in golden.iter().enumerate() {
        let foreign = &golden[(i + 1) % golden.len()];
        all.push((path.display().to_string(), damage_maker::read(path), damage_maker::read(foreign)));
    }
    let original = |(name, files, foreign): (String, Files, Files)| Original {
        name,
        earlier: earlier(&files),
        queries: queries(&files),
        files,
        foreign,
    };
    all.into_iter().map(original).collect()
}

/// The lines that a door prints for one request.
#[derive(Default)]
struct Replies {
    answers: Vec<Answer>,
    violations: Vec<String>,
    /// Number of problems that verification found, if it was completed.
    problems: Option<u64>,
}

/// A running door.
struct Door {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Door {
    fn start(command: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {command}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output }
    }

    /// Sends a request. Returns the replies, or `None` if the door ended before it completed them.
    fn ask(&mut self, index: &Path, queries: &Path) -> Option<Replies> {
        writeln!(self.input, "{}\t{}", index.display(), queries.display()).ok()?;
        let mut replies = Replies::default();
        loop {
            let line = self.output.next()?.ok()?;
            match (line.get(..1), line.get(2..).unwrap_or_default()) {
                (Some("+"), answer) => replies.answers.push(Ok(answer.to_owned())),
                (Some("-"), code) => replies.answers.push(Err(code.to_owned())),
                (Some("v"), problems) => replies.problems = problems.parse().ok(),
                (Some("w"), _) => {}
                (Some("."), _) => return Some(replies),
                _ => replies.violations.push(line),
            }
        }
    }

    /// Waits until the door ends. Returns the signal or the exit code; an empty text if the exit code is 0.
    fn end(mut self) -> String {
        drop(self.input);
        let status = self.child.wait().unwrap();
        match (status.signal(), status.code()) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Some(0)) => String::new(),
            (None, code) => format!("exit code {code:?}"),
        }
    }
}

#[derive(Default)]
struct Totals {
    counts: Counts,
    /// Number of copies by the code of their first unexpected error.
    codes: BTreeMap<String, u64>,
    /// Number of copies that opened, but for which a query returned an error.
    opened: u64,
    /// Number of copies counted in `opened` in which verification found no problem.
    unverified: u64,
}

/// Returns the code of the first error in place of an expected answer. Panics if there is none.
fn first_error<'a>(answers: &'a [Answer], expected: &[Answer]) -> &'a str {
    let errors = answers.iter().enumerate().filter_map(|(i, answer)| Some((i, answer.as_ref().err()?)));
    let mut unexpected = errors.filter(|&(i, _)| expected.get(i).is_none_or(Result::is_ok));
    unexpected.next().expect("an error").1
}

/// Runs the cases in `range` with one door at a time. If a door crashes, starts a new one for the next case.
fn run_range(command: &str, originals: &[Original], range: Range<u64>, totals: &Mutex<Totals>) {
    // Copies are on an in-memory file system if possible, because doors write to them and sync them.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let mut door = Door::start(command);
    let mut expected = Vec::new();
    for (i, original) in originals.iter().enumerate() {
        let queries = dir.path().join(format!("queries-{i}"));
        std::fs::write(&queries, &original.queries).unwrap();
        let mut states = Vec::new();
        for files in std::iter::once(&original.files).chain(&original.earlier) {
            let path = dir.path().join("sound");
            damage_maker::write(&path, files);
            let replies = door.ask(&path, &queries).expect("the door reads an undamaged index");
            std::fs::remove_dir_all(&path).unwrap();
            assert_eq!((replies.violations, replies.problems), (Vec::new(), Some(0)), "{}", original.name);
            states.push(replies.answers);
        }
        let current = states.remove(0);
        let found = |answer: &Answer| answer.as_ref().is_ok_and(|answer| answer.starts_with("hits 1 "));
        assert!(current.iter().any(found), "{}: no query finds anything", original.name);
        assert!(!states.contains(&current), "{}: an earlier commit has the same answers", original.name);
        expected.push((Expected { current, earlier: states }, queries));
    }
    for case in range {
        let which = case as usize % originals.len();
        let (original, (expected, queries)) = (&originals[which], &expected[which]);
        let kind = kind_of(case, originals.len());
        let files = damage_maker::damaged(case, kind, &original.files, &original.foreign);
        let path = dir.path().join(case.to_string());
        damage_maker::write(&path, &files);
        let begin = Instant::now();
        let replies = door.ask(&path, queries);
        let took = begin.elapsed();
        let mut totals = totals.lock().unwrap();
        totals.counts.add_identity(kind, identity(which, &files));
        let opened = |replies: &Replies| replies.answers.len() > 1;
        let outcome = match &replies {
            None => Outcome::Signal,
            Some(replies) if !replies.violations.is_empty() => Outcome::Panic,
            Some(_) if took > LONGEST => Outcome::Slow,
            Some(replies) => {
                let answers = opened(replies).then_some(&replies.answers[..]);
                expected.compare(answers, files == original.files)
            }
        };
        totals.counts.add(kind, outcome, 1);
        let place = format!("case {case}, {}, {}", original.name, KINDS[kind]);
        if let Some(replies) = &replies {
            for violation in &replies.violations {
                println!("{place}: {violation}");
            }
            if outcome == Outcome::Different {
                println!("{place}: for each state, {:?}", expected.differences(&replies.answers));
            }
            if outcome == Outcome::Error {
                let sound = opened(replies).then_some(&expected.current);
                let code = first_error(&replies.answers, sound.map_or(&[], Vec::as_slice));
                *totals.codes.entry(code.to_owned()).or_default() += 1;
                totals.opened += u64::from(opened(replies));
                if opened(replies) && replies.problems == Some(0) {
                    totals.unverified += 1;
                    println!("{place}: a query returned {code}, but verification found no problem");
                }
            }
        } else {
            let ended = std::mem::replace(&mut door, Door::start(command)).end();
            println!("{place}: the door ended: {ended}");
        }
        drop(totals);
        std::fs::remove_dir_all(&path).unwrap();
    }
    // A sanitizer that found a leak makes the door fail here.
    assert_eq!(door.end(), "", "the end of the door after all copies");
}

#[test]
#[ignore = "needs a program for another interface: scripts/damage --door"]
fn damaged_indexes_give_same_answers_or_errors_through_other_interfaces() {
    let command = std::env::var("TWINDEX_DOOR").expect("TWINDEX_DOOR must name the command of a door");
    let originals = originals();
    if let Some(one) = number("TWINDEX_DAMAGED_ONE") {
        let totals = Mutex::new(Totals::default());
        run_range(&command, &originals, one..one + 1, &totals);
        totals.into_inner().unwrap().counts.print(1);
        return;
    }
    // Each kind of damage twice for each index.
    let copies = number("TWINDEX_DAMAGED").unwrap_or((2 * originals.len() * KINDS.len()) as u64);
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let totals = Mutex::new(Totals::default());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let range = copies * worker / workers..copies * (worker + 1) / workers;
            let (command, originals, totals) = (&command, &originals, &totals);
            scope.spawn(move || run_range(command, originals, range, totals));
        }
    });
    let totals = totals.into_inner().unwrap();
    println!();
    totals.counts.print(copies);
    println!("errors by code: {:?}; of queries after the index opened: {}", totals.codes, totals.opened);
    println!("{} indexes, {:.0} s", originals.len(), begin.elapsed().as_secs_f64());
    totals.counts.check(copies);
    assert_eq!(totals.unverified, 0, "verification misses damage that a query reports");
}
