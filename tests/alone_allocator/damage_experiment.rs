//! Repeats an experiment that was done with other engines: damages a small index in many ways, opens each copy, and runs
//! all queries. The outcomes are counted: the same answers, an error, different answers without an error, a panic, the
//! end of the process by a signal, or an excessive allocation. Copies that the damage did not change, for example because
//! it wrote zeros over zeros, are counted separately.
//!
//! The number of a case determines its damage, so `TWINDEX_DAMAGED_ONE=417` repeats one case. Child processes run ranges
//! of cases; if a signal ends one of them, the next child continues after the fatal case. `scripts/damage` runs a million
//! cases and prints the counts as a table.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "damages files without the index's knowledge")]

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::allocations::LARGEST;
use crate::support::itself::itself;
use crate::support::memory::MemoryVfs;
use crate::support::random::Random;
use tempfile::TempDir;
use twindex::IdfBuilder;
use twindex::params::Shingling;
use twindex::sketch::Buffers;
use twindex::sys::{Access, Vfs};
use twindex::{Document, Index, Params, Result, Sketch, Sketcher, Writer};

/// The environment variable of the child processes: the number of the first case, the number after the last case, and the
/// path of a file to which the identity of each case is written before the case runs.
const CHILD: &str = "TWINDEX_DAMAGED_CHILD";
const PAGE: usize = 4096;
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The damage changed no byte, for example because it wrote zeros over zeros or copied an equal piece.
    Undamaged,
    Same,
    Error,
    /// The answers of an earlier commit, as after a crash. Only for indexes with a log, because no other file records
    /// where the log ends.
    EarlierCommit,
    Different,
    Panic,
    Signal,
    Overallocation,
    Slow,
}

const OUTCOMES: [(Outcome, &str); 9] = [
    (Outcome::Undamaged, "undamaged"),
    (Outcome::Same, "same answers"),
    (Outcome::Error, "clean error"),
    (Outcome::EarlierCommit, "an earlier commit"),
    (Outcome::Different, "silently different"),
    (Outcome::Panic, "panic"),
    (Outcome::Signal, "signal or abort"),
    (Outcome::Overallocation, "over-allocation"),
    (Outcome::Slow, "over 10 s"),
];

const KINDS: [&str; 11] = [
    "cut",
    "bits flipped",
    "range zeroed",
    "range copied within",
    "bytes appended",
    "file deleted",
    "piece of another file",
    "piece of another index",
    "pieces swapped",
    "file of another index",
    "random bytes",
];

/// The answer to one query.
type Answer = std::result::Result<String, String>;

struct SoundFile {
    files: BTreeMap<PathBuf, Vec<u8>>,
    sketches: Vec<Sketch>,
    /// The answers after each commit; the last entry is the current state.
    answers: Vec<Vec<Answer>>,
    /// Size in bytes of the largest allocation while the undamaged index is opened and queried.
    allocated: usize,
}

/// Creates an index that uses every feature: an IDF table, fingerprints, bands, signatures, samples, values, stamps,
/// sets, marks, and segments with deletes. If `with_log`, it also has a log.
fn made(salt: u64, with_log: bool) -> SoundFile {
    let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
    let text = |i: u64| format!("page {} of {} by {}", i % 23, i % 7, (i + salt) % 41);
    for i in 0..40 {
        let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
        plain.shingler().distinct(&text(i), &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    let table = builder.finish().unwrap();
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).minhash(3, 2).bottom(2);
    let params = params.values().expire_after(150).sets().marks().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("i");
    let index = Index::create_with_idf(&path, params, &table).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    writer.set_background_merges(false);
    let sketches: Vec<Sketch> = (0..200).step_by(16).map(|i| sketcher.sketch(&text(i)).unwrap()).collect();
    let mut answers = Vec::new();
    let mut add = |writer: &mut Writer, range: Range<u64>| {
        for i in range {
            let value = vec![i as u8; i as usize % 9];
            let text = if i % 17 == 3 { String::new() } else { text(i) };
            let sketch = sketcher.sketch(&text).unwrap();
            let document = Document::from(&sketch).with_value(&value).with_stamp(i);
            let document = if i % 9 == 4 { document.as_duplicate() } else { document };
            writer.put(format!("key {}", i % 140).as_str(), document).unwrap();
            if i % 13 == 5 {
                writer.delete(format!("key {}", (i * 7) % 140).as_str()).unwrap();
            }
        }
        writer.commit_with(format!("up to {salt}").as_bytes()).unwrap();
        answers.push(asked(&index, &sketches));
    };
    add(&mut writer, 0..90);
    writer.flush().unwrap();
    add(&mut writer, 90..160);
    writer.flush().unwrap();
    if with_log {
        add(&mut writer, 160..180);
        add(&mut writer, 180..190);
        add(&mut writer, 190..200);
    }
    writer.gc().unwrap();
    drop(writer);
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| !path.ends_with("LOCK"));
    let files = files.map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap())).collect();
    LARGEST.set(0);
    assert_eq!(asked(&Index::open(&path).unwrap(), &sketches), answers[answers.len() - 1]);
    SoundFile { files, sketches, answers, allocated: LARGEST.get() }
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

impl Experiment {
    fn new() -> Self {
        Self { sound: [made(0, false), made(0, true)], others: [made(5, false), made(5, true)] }
    }

    /// Returns which index the case damages, the files after the damage, and the kind of damage.
    fn damaged(&self, number: u64) -> (usize, BTreeMap<PathBuf, Vec<u8>>, usize) {
        let mut random = Random(number * 0x9E37_79B9 + 1);
        let which = number as usize % 2;
        let kind = kind_of(number);
        let mut files = self.sound[which].files.clone();
        let names: Vec<PathBuf> = files.keys().cloned().collect();
        let name = &names[random.below(names.len())];
        let other = &names[random.below(names.len())];
        // The file of the same kind in the other index. Numbers in the names are ignored.
        let ending = |path: &Path| {
            let name = path.to_str().unwrap();
            name.chars().filter(|c| c.is_ascii_uppercase() || *c == 's').collect::<String>()
        };
        let foreign = self.others[which].files.iter().find(|(path, _)| ending(path) == ending(name));
        let foreign = foreign.expect("the same files are there").1.clone();
        let another = files[other].clone();
        let bytes = files.get_mut(name).unwrap();
        let length = bytes.len();
        let range = |random: &mut Random, length: usize| {
            let start = random.below(length);
            let max = 1 << (1 + random.below(12));
            start..(start + 1 + random.below(max)).min(length)
        };
        match kind {
            0 => bytes.truncate(random.below(length)),
            1 => {
                for _ in 0..=random.below(4) {
                    bytes[random.below(length)] ^= 1 << random.below(8);
                }
            }
            2 => {
                let range = range(&mut random, length);
                bytes[range].fill(0);
            }
            3 => {
                let from = range(&mut random, length);
                let to = random.below(length - from.len() + 1);
                bytes.copy_within(from, to);
            }
            4 => {
                for _ in 0..=random.below(300) {
                    bytes.push(if number.is_multiple_of(4) { 0 } else { random.next() as u8 });
                }
            }
            5 => {
                files.remove(name);
            }
            6 | 7 => {
                let from = if kind == 6 { another } else { foreign };
                // Copies either a whole page to the same offset, or a smaller piece from any offset to any other.
                let size = PAGE >> random.below(7);
                let to = random.below(length.div_ceil(size)) * size;
                let start = if size == PAGE { to } else { random.below(from.len().div_ceil(size)) * size };
                let size = size.min(length - to).min(from.len().saturating_sub(start));
                if size > 0 {
                    bytes[to..to + size].copy_from_slice(&from[start..start + size]);
                }
            }
            8 => {
                let size = PAGE >> random.below(7);
                let pieces = length / size;
                if pieces > 1 {
                    let (one, two) = (random.below(pieces) * size, random.below(pieces) * size);
                    for i in 0..size {
                        bytes.swap(one + i, two + i);
                    }
                } else {
                    let half = length / 2;
                    let (one, two) = bytes.split_at_mut(half);
                    one.swap_with_slice(&mut two[..half]);
                }
            }
            9 => *bytes = foreign,
            _ => {
                for byte in range(&mut random, length) {
                    bytes[byte] = random.next() as u8;
                }
            }
        }
        (which, files, kind)
    }

    fn outcome(&self, number: u64, note: impl FnOnce(u64)) -> (usize, Outcome) {
        let (which, files, kind) = self.damaged(number);
        note(identity(which, &files));
        let sound = &self.sound[which];
        let undamaged = files == sound.files;
        let total: usize = files.values().map(Vec::len).sum();
        let access = if number.is_multiple_of(3) { Access::Read } else { Access::Map };
        let options = Index::options().access(access);
        // Every 32nd case uses a directory on disk, the others use memory.
        let mut dir: Option<TempDir> = None;
        let vfs = MemoryVfs::default();
        if number.is_multiple_of(32) {
            let dir = dir.insert(tempfile::tempdir().unwrap());
            for (name, bytes) in &files {
                std::fs::write(dir.path().join(name), bytes).unwrap();
            }
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
        let last = sound.answers.len() - 1;
        let agrees = |answers: &[Answer], with: usize| {
            let both = answers.iter().zip(&sound.answers[with]);
            both.clone().all(|(found, sound)| found.is_err() || found == sound)
        };
        let outcome = match answers {
            Err(_) => Outcome::Panic,
            _ if largest > sound.allocated.max(1 << 20) + 16 * total => Outcome::Overallocation,
            _ if took > LONGEST => Outcome::Slow,
            // A copy that the damage did not change must give the same answers.
            Ok(Some(answers)) if undamaged && answers == sound.answers[last] => Outcome::Undamaged,
            _ if undamaged => Outcome::Different,
            Ok(None) => Outcome::Error,
            Ok(Some(answers)) if answers == sound.answers[last] => Outcome::Same,
            Ok(Some(answers)) if agrees(&answers, last) => Outcome::Error,
            Ok(Some(answers))
                if (2..last).any(|earlier| answers == sound.answers[earlier]) || {
                    // The state before the first commit to the log.
                    which == 1 && answers == sound.answers[1]
                } =>
            {
                Outcome::EarlierCommit
            }
            Ok(Some(answers)) => {
                let differs = |(found, sound): (&Answer, &Answer)| {
                    (found.is_ok() && found != sound).then(|| format!("{found:?} for {sound:?}"))
                };
                let first = answers.iter().zip(&sound.answers[last]).find_map(differs);
                let before: Vec<_> = sound
                    .answers
                    .iter()
                    .map(|earlier| answers.iter().zip(earlier).find_map(differs))
                    .collect();
                println!(
                    "case {number}, {}: {first:.300?}, and of the commit before {before:.300?}",
                    KINDS[kind]
                );
                Outcome::Different
            }
        };
        (kind, outcome)
    }
}

#[derive(Default)]
struct Counts {
    outcomes: BTreeMap<(usize, Outcome), u64>,
    /// The distinct damaged indexes of each kind. Different cases can be equal; for example, there are few files to
    /// delete.
    distinct: BTreeSet<(usize, u64)>,
}

fn kind_of(case: u64) -> usize {
    case as usize / 2 % KINDS.len()
}

/// Returns a hash that identifies a damaged index.
fn identity(which: usize, files: &BTreeMap<PathBuf, Vec<u8>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (which, files).hash(&mut hasher);
    hasher.finish()
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
                *counts.outcomes.entry((fields[0] as usize, outcome)).or_default() += fields[2];
            } else if line.starts_with("case ") {
                println!("{line}");
            }
        }
        let identities = std::fs::read(place.path()).unwrap();
        let identities =
            identities.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let begun = identities.len() as u64;
        counts.distinct.extend((next..).zip(identities).map(|(case, identity)| (kind_of(case), identity)));
        if output.status.success() {
            return;
        }
        // The counts since the child's last report are lost, which the total at the end shows.
        let at = next + begun.checked_sub(1).expect("a child begins with a case");
        println!("case {at} ended the process: signal {:?}", output.status.signal());
        *counts.outcomes.entry((kind_of(at), Outcome::Signal)).or_default() += 1;
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
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
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
    println!(
        "| {files} damaged copies | distinct |{}",
        OUTCOMES.map(|(_, name)| format!(" {name} |")).concat()
    );
    println!("|---|---|{}", "---|".repeat(OUTCOMES.len()));
    let row = |name: &str, distinct: usize, of: &dyn Fn(Outcome) -> u64| {
        println!(
            "| {name} | {distinct} |{}",
            OUTCOMES.map(|(outcome, _)| format!(" {} |", of(outcome))).concat()
        );
    };
    let all = |outcome: Outcome| -> u64 {
        counts.outcomes.iter().filter(|((_, found), _)| *found == outcome).map(|(_, count)| count).sum()
    };
    for (kind, name) in KINDS.iter().enumerate() {
        let distinct = counts.distinct.range((kind, 0)..=(kind, u64::MAX)).count();
        row(name, distinct, &|outcome| counts.outcomes.get(&(kind, outcome)).copied().unwrap_or(0));
    }
    row("all", counts.distinct.len(), &all);
    println!("{:.0} s", begin.elapsed().as_secs_f64());
    let sum: u64 = counts.outcomes.values().sum();
    assert_eq!(sum, files, "each copy is in one column");
    for bad in [Outcome::Different, Outcome::Panic, Outcome::Signal, Outcome::Overallocation, Outcome::Slow] {
        assert_eq!(all(bad), 0, "{bad:?}");
    }
    assert!(all(Outcome::Error) > files / 3, "most damage is noticed");
}
