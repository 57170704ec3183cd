//! Repeats an experiment that was done with other engines: damages a small index in many ways, opens each copy, and runs
//! all queries. The outcomes are counted: the same answers, an error, different answers without an error, a panic, the
//! end of the process by a signal, or an excessive allocation. Copies that the damage did not change, for example because
//! it wrote zeros over zeros, are counted separately.
//!
//! The number of a case determines its damage, so `TWINDEX_DAMAGED_ONE=417` repeats one case. Child processes run ranges
//! of cases; if a signal ends one of them, the next child continues after the fatal case. `scripts/damage` runs two
//! million cases and prints the counts as a table.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "damages files without the index's knowledge")]

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::allocations::LARGEST;
use crate::damage_maker::{self, Files, KINDS};
use crate::damage_outcomes::{Answer, Counts, Expected, LONGEST, OUTCOMES, Outcome, identity, number};
use crate::support::itself::itself;
use crate::support::memory::MemoryVfs;
use tempfile::TempDir;
use twindex::sys::{Access, Vfs};
use twindex::{Index, Result, Sketch};

/// The environment variable of the child processes: the number of the first case, the number after the last case, and the
/// path of a file to which the identity of each case is written before the case runs.
const CHILD: &str = "TWINDEX_DAMAGED_CHILD";

struct SoundFile {
    files: Files,
    sketches: Vec<Sketch>,
    expected: Expected,
    /// Size in bytes of the largest allocation while the undamaged index is opened and queried.
    allocated: usize,
}

fn made(salt: u64, with_log: bool) -> SoundFile {
    let (mut sketches, mut answers) = (Vec::new(), Vec::new());
    let files = damage_maker::made(salt, with_log, |index| {
        if sketches.is_empty() {
            let sketcher = index.sketcher().unwrap();
            let texts = (0..200).step_by(16).map(|i| damage_maker::text(i, salt));
            sketches.extend(texts.map(|text| sketcher.sketch(&text).unwrap()));
        }
        answers.push(asked(index, &sketches));
    });
    let current = answers.pop().unwrap();
    // The first commit was flushed to a segment, and so was the second one, after which the log begins.
    let earlier = if with_log { answers.split_off(1) } else { Vec::new() };
    let vfs = MemoryVfs::default();
    for (name, bytes) in &files {
        vfs.set(&Path::new("i").join(name), bytes.clone());
    }
    LARGEST.set(0);
    let index = Index::options().open_with(Arc::new(vfs) as Arc<dyn Vfs>, Path::new("i")).unwrap();
    assert_eq!(asked(&index, &sketches), current);
    SoundFile { files, sketches, expected: Expected { current, earlier }, allocated: LARGEST.get() }
}

/// Returns the answers to all queries.
fn asked(index: &Index, sketches: &[Sketch]) -> Vec<Answer> {
    let snapshot = index.snapshot();
    let said = |answer: Result<String>| answer.map_err(|error| error.to_string());
    let mut answers =
        vec![Ok(format!("{} {:?} {:?}", snapshot.documents(), snapshot.now(), snapshot.payload()))];
    let mut keys = Vec::new();
    let walked = snapshot.for_each_key(|key| {
        keys.push(key.to_buf());
        Ok(())
    });
    answers.push(said(walked.map(|()| format!("{keys:?}"))));
    for key in 0..140 {
        answers.push(said(snapshot.get(format!("key {key}").as_str()).map(|found| format!("{found:?}"))));
    }
    for (i, sketch) in sketches.iter().enumerate() {
        answers.push(said(snapshot.near(sketch).run().map(|found| format!("{found:?}"))));
        if let Some(&feature) = sketch.features().get(i % 3) {
            let found = snapshot.same_feature(i % 3, feature).map(|mut keys| {
                keys.sort();
                format!("{keys:?}")
            });
            answers.push(said(found));
        }
    }
    answers.push(said(index.idf().map(|table| format!("{:?}", table.map(|table| table.digest())))));
    answers
}

struct Experiment {
    /// Two undamaged indexes, without and with a log; `others` are two more with different documents.
    sound: [SoundFile; 2],
    others: [SoundFile; 2],
}

fn kind_of(case: u64) -> usize {
    damage_maker::kind_of(case, 2)
}

impl Experiment {
    fn new() -> Self {
        Self { sound: [made(0, false), made(0, true)], others: [made(5, false), made(5, true)] }
    }

    fn outcome(&self, number: u64, note: impl FnOnce(u64)) -> (usize, Outcome) {
        let (which, kind) = (number as usize % 2, kind_of(number));
        let sound = &self.sound[which];
        let files = damage_maker::damaged(number, kind, &sound.files, &self.others[which].files);
        note(identity(which, &files));
        let undamaged = files == sound.files;
        let total: usize = files.values().map(Vec::len).sum();
        let access = if number.is_multiple_of(3) { Access::Read } else { Access::Map };
        let options = Index::options().access(access);
        // Every 32nd case uses a directory on disk, the others use memory.
        let mut dir: Option<TempDir> = None;
        let vfs = MemoryVfs::default();
        if number.is_multiple_of(32) {
            damage_maker::write(dir.insert(tempfile::tempdir().unwrap()).path(), &files);
        } else {
            for (name, bytes) in files {
                vfs.set(&Path::new("i").join(name), bytes);
            }
        }
        LARGEST.set(0);
        let begin = Instant::now();
        let answers = catch_unwind(AssertUnwindSafe(|| {
            let opened = match &dir {
                Some(dir) => options.open(dir.path()),
                None => options.open_with(Arc::new(vfs.clone()) as Arc<dyn Vfs>, Path::new("i")),
            };
            opened.map(|index| asked(&index, &sound.sketches)).ok()
        }));
        let (took, largest) = (begin.elapsed(), LARGEST.get());
        let outcome = match &answers {
            Err(_) => Outcome::Panic,
            _ if largest > sound.allocated.max(1 << 20) + 16 * total => Outcome::Overallocation,
            _ if took > LONGEST => Outcome::Slow,
            Ok(answers) => sound.expected.compare(answers.as_deref(), undamaged),
        };
        if let (Outcome::Different, Ok(Some(answers))) = (outcome, &answers) {
            println!(
                "case {number}, {}: for each state, {:?}",
                KINDS[kind],
                sound.expected.differences(answers)
            );
        }
        (kind, outcome)
    }
}

/// Runs these cases in a child process. If the child dies, a new child runs the cases after the fatal one.
fn run_range(range: Range<u64>, counts: &Mutex<Counts>) {
    let mut next = range.start;
    let place = tempfile::NamedTempFile::new().unwrap();
    while next < range.end {
        let mut child = itself();
        child.args([
            "--exact",
            "--nocapture",
            "damage_experiment::damaged_indexes_answer_as_before_or_report_the_damage",
        ]);
        child.env(CHILD, format!("{next} {} {}", range.end, place.path().display()));
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let mut counts = counts.lock().unwrap();
        for line in said.lines() {
            if let Some(fields) = line.strip_prefix("count ") {
                let fields: Vec<u64> = fields.split(' ').map(|field| field.parse().unwrap()).collect();
                let outcome = OUTCOMES[fields[1] as usize].0;
                counts.add(fields[0] as usize, outcome, fields[2]);
            } else if line.starts_with("case ") {
                println!("{line}");
            }
        }
        let identities = std::fs::read(place.path()).unwrap();
        let identities =
            identities.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let begun = identities.len() as u64;
        for (case, identity) in (next..).zip(identities) {
            counts.add_identity(kind_of(case), identity);
        }
        if output.status.success() {
            return;
        }
        // The counts since the child's last report are lost, which the total at the end shows.
        let at = next + begun.checked_sub(1).expect("a child begins with a case");
        println!("case {at} ended the process: signal {:?}", output.status.signal());
        counts.add(kind_of(at), Outcome::Signal, 1);
        next = at + 1;
    }
}

#[test]
fn damaged_indexes_answer_as_before_or_report_the_damage() {
    if let Some(child) = std::env::var_os(CHILD) {
        let child = child.into_string().unwrap();
        let mut fields = child.splitn(3, ' ');
        let (start, end): (u64, u64) =
            (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap());
        let place = PathBuf::from(fields.next().unwrap());
        let experiment = Experiment::new();
        println!(); // with one test thread, the current line begins with the name of the test
        std::panic::set_hook(Box::new(|_| ()));
        let mut counts = BTreeMap::<(usize, Outcome), u64>::new();
        let mut identities = std::fs::File::create(&place).unwrap();
        for case in start..end {
            let note = |identity: u64| identities.write_all(&identity.to_le_bytes()).unwrap();
            let (kind, outcome) = experiment.outcome(case, note);
            *counts.entry((kind, outcome)).or_default() += 1;
            if matches!(outcome, Outcome::Panic | Outcome::Overallocation | Outcome::Slow) {
                println!("case {case}, {}: {outcome:?}", KINDS[kind]);
            }
            if case % 1000 == 999 || case + 1 == end {
                for ((kind, outcome), count) in std::mem::take(&mut counts) {
                    let place = OUTCOMES.iter().position(|(known, _)| *known == outcome).unwrap();
                    println!("count {kind} {place} {count}");
                }
            }
        }
        return;
    }
    if let Some(one) = number("TWINDEX_DAMAGED_ONE") {
        println!("{:?}", Experiment::new().outcome(one, |_| ()));
        return;
    }
    let files = number("TWINDEX_DAMAGED").unwrap_or(6000);
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let counts = Mutex::new(Counts::default());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let range = files * worker / workers..files * (worker + 1) / workers;
            let counts = &counts;
            scope.spawn(move || run_range(range, counts));
        }
    });
    let counts = counts.into_inner().unwrap();
    counts.print(files);
    println!("{:.0} s", begin.elapsed().as_secs_f64());
    counts.check(files);
}
