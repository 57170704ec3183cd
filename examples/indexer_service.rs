//! Measures how long callers of an indexing service wait.
//!
//! One process admits documents, a thousand per commit, while two of its threads query for near documents. Another
//! process follows the commits. The writing process is killed repeatedly while it works, and the index is opened again
//! each time; once, it is stopped without a kill. After each opening, the example checks that no acknowledged document
//! is lost.
//!
//! ```sh
//! cargo run --release --example indexer_service -- --documents 1000000 --json
//! ```
//!
//! The last line of the output is JSON. It contains the documents per second, percentiles and maxima of `admit` and
//! `near`, and the maxima of commits, openings and single syncs. It also contains the longest oversleep of the canary,
//! a thread that only sleeps: it shows how long the machine itself delays threads.
//!
//! Options: `--documents N`, `--kills N`, `--seed N`, `--near-pause US` (the pause between two queries of a thread, in
//! microseconds), `--dir FOLDER` (the folder of the index; default: a temporary folder), `--memtable ROWS` (the size of
//! the memtable), `--sets` (store sets), `--json` (print only the JSON line).
//!
//! `--against PROGRAM` compares this program with a build of it from another commit. Both run in turn, `--rounds N`
//! times (default 3), in alternating order. The last line then contains the median documents per second of each
//! program, and the ratio of the medians.

#![allow(clippy::cast_sign_loss, reason = "logarithms of times, which are at least a nanosecond")]
#![allow(
    clippy::disallowed_methods,
    reason = "starts itself as other processes, and makes the folder of the index"
)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use twindex::sys::vfs::{AppendFile, HeldLock, LockFailure, ReadFile, TemporaryFile};
use twindex::{Error, Index, Params, RealVfs, Vfs};

/// Number of documents per commit.
const BATCH: u64 = 1000;
/// Number of words of a document.
const WORDS: usize = 50;
/// On average, one in `COPIES` documents is a copy of an earlier one with a word appended.
const COPIES: u64 = 10;
const QUERY_THREADS: u64 = 2;
type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    match options.role.as_str() {
        "write" => write(&options),
        "follow" => follow(&options),
        _ if options.against.is_some() => compare(&options),
        _ => run(&options),
    }
}

#[derive(Clone, Debug)]
struct Options {
    role: String,
    documents: u64,
    kills: u64,
    seed: u64,
    near_pause: u64,
    memtable: u64,
    dir: Option<PathBuf>,
    against: Option<PathBuf>,
    rounds: u64,
    sets: bool,
    json: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            role: String::new(),
            documents: 100_000,
            kills: 5,
            seed: 1,
            near_pause: 1000,
            memtable: 0,
            dir: None,
            against: None,
            rounds: 3,
            sets: false,
            json: false,
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--json" => options.json = true,
                "--sets" => options.sets = true,
                _ => {}
            }
            if matches!(name.as_str(), "--json" | "--sets") {
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} takes a value"))?;
            match name.as_str() {
                "--role" => options.role = value,
                "--documents" => options.documents = value.parse()?,
                "--kills" => options.kills = value.parse()?,
                "--seed" => options.seed = value.parse()?,
                "--near-pause" => options.near_pause = value.parse()?,
                "--memtable" => options.memtable = value.parse()?,
                "--dir" => options.dir = Some(value.into()),
                "--against" => options.against = Some(value.into()),
                "--rounds" => options.rounds = value.parse()?,
                _ => return Err(format!("no option {name}").into()),
            }
        }
        Ok(options)
    }

    fn start(&self, role: &str, dir: &Path) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", role, "--dir"]).arg(dir);
        for (name, value) in [
            ("--documents", self.documents),
            ("--seed", self.seed),
            ("--near-pause", self.near_pause),
            ("--memtable", self.memtable),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    }
}

/// A random number generator (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Returns the text of a document.
fn text(seed: u64, number: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x1234_5677).wrapping_add(number));
    if number > 0 && random.below(COPIES) == 0 {
        let mut text = text(seed, random.below(number));
        text.push_str(" again");
        return text;
    }
    let mut text = String::new();
    for _ in 0..WORDS {
        let _ = write!(text, "w{:x} ", random.below(50_000)); // writing to a string cannot fail
    }
    text
}

/// A histogram of durations, with eight buckets per power of two, and the longest duration.
#[derive(Clone, Debug)]
struct Times {
    counts: Vec<u64>,
    longest: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { counts: vec![0; 512], longest: Duration::ZERO }
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        let nanos = (time.as_nanos() as f64).max(1.0);
        self.counts[(nanos.log2() * 8.0) as usize] += 1;
        self.longest = self.longest.max(time);
    }

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the duration in microseconds that a fraction `share` (0 to 1) of all durations does not exceed. It is
    /// rounded to the middle of its bucket; 0 if the histogram is empty.
    fn percentile(&self, share: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let (wanted, mut seen) = ((total as f64 * share).ceil() as u64, 0);
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return ((place as f64 + 0.5) / 8.0).exp2() / 1000.0;
            }
        }
        0.0
    }

    fn millis(&self) -> f64 {
        self.longest.as_secs_f64() * 1000.0
    }

    fn encode(&self) -> String {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let counts: Vec<String> = counts.map(|(place, count)| format!("{place}:{count}")).collect();
        format!("{} {}", self.longest.as_nanos(), counts.join(","))
    }

    fn decode(longest: &str, counts: &str) -> Option<Self> {
        let mut times = Self { longest: Duration::from_nanos(longest.parse().ok()?), ..Self::default() };
        for pair in counts.split(',').filter(|pair| !pair.is_empty()) {
            let (place, count) = pair.split_once(':')?;
            *times.counts.get_mut(place.parse::<usize>().ok()?)? = count.parse().ok()?;
        }
        Some(times)
    }
}

/// The names of the measured operations. The constants below are indices into this array.
const KINDS: [&str; 9] =
    ["admit", "near", "commit", "reopen", "close", "fsync", "canary", "refresh", "reopen_cpu"];
const ADMIT: usize = 0;
const NEAR: usize = 1;
const COMMIT: usize = 2;
const REOPEN: usize = 3;
const CLOSE: usize = 4;
const FSYNC: usize = 5;
const CANARY: usize = 6;
const REFRESH: usize = 7;
const REOPEN_CPU: usize = 8;

type Measured = Arc<[Mutex<Times>; KINDS.len()]>;

fn measure<T>(measured: &Measured, kind: usize, step: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = step();
    let time = start.elapsed();
    measured[kind].lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(time);
    done
}

/// Returns the CPU time of this thread; zero if the system does not report it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Writes the durations that were measured since the previous call.
fn report(measured: &Measured, out: &mut impl Write) -> io::Result<()> {
    for (kind, times) in KINDS.iter().zip(&**measured) {
        let times = std::mem::take(&mut *times.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        if times.longest > Duration::ZERO {
            writeln!(out, "times {kind} {}", times.encode())?;
        }
    }
    out.flush()
}

/// Starts a thread that only sleeps, and records how much longer it sleeps than requested.
fn canary(measured: &Measured) {
    let measured = Arc::clone(measured);
    thread::spawn(move || {
        let nap = Duration::from_millis(1);
        loop {
            let start = Instant::now();
            thread::sleep(nap);
            let late = start.elapsed().saturating_sub(nap);
            measured[CANARY].lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(late);
        }
    });
}

/// A file system that measures the duration of syncs.
#[derive(Clone, Debug)]
struct Timed {
    vfs: RealVfs,
    measured: Measured,
}

impl Vfs for Timed {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.vfs.create_dir(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.vfs.exists(path)
    }
    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let file = self.vfs.create_temporary(dir)?;
        Ok(Box::new(TimedFile { file, measured: Arc::clone(&self.measured) }))
    }
    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = self.vfs.create_append(path)?;
        Ok(Box::new(TimedFile { file, measured: Arc::clone(&self.measured) }))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.vfs.open(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        measure(&self.measured, FSYNC, || self.vfs.sync_dir(dir))
    }
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.rename_dir(from, to)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.vfs.remove_dir(path)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.vfs.unlink(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.vfs.list(dir)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.hard_link(from, to)
    }
    fn free_space(&self, dir: &Path) -> io::Result<Option<u64>> {
        self.vfs.free_space(dir)
    }
    fn scratch(&self, dir: &Path) -> PathBuf {
        self.vfs.scratch(dir)
    }
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.vfs.absolute(path)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        self.vfs.lock(path)
    }
}

#[derive(Debug)]
struct TimedFile<F: ?Sized> {
    measured: Measured,
    file: Box<F>,
}

impl TemporaryFile for TimedFile<dyn TemporaryFile> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        measure(&self.measured, FSYNC, || self.file.sync())
    }
    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        self.file.publish(path, replace)
    }
}

impl AppendFile for TimedFile<dyn AppendFile> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.cut(length)
    }
    fn sync(&mut self) -> io::Result<()> {
        measure(&self.measured, FSYNC, || self.file.sync())
    }
}

fn create(dir: &Path, sets: bool) -> twindex::Result<Index> {
    let params = Params::builder().words(5).simhash(3).minhash(20, 6);
    let params = if sets { params.sets().build()? } else { params.build()? };
    match Index::create(dir, params) {
        Err(Error::AlreadyExists { .. }) => Index::open(dir),
        other => other,
    }
}

/// Returns the number of documents recorded in the payload of the last commit.
fn done(index: &Index) -> u64 {
    let snapshot = index.snapshot();
    snapshot.payload().and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Runs the writing process and its querying threads until a line arrives on standard input or it is closed.
fn write(options: &Options) -> Result<(), Failure> {
    let dir = options.dir.as_deref().ok_or("no folder")?;
    let measured: Measured = Arc::default();
    canary(&measured);
    let vfs = Arc::new(Timed { vfs: RealVfs, measured: Arc::clone(&measured) });
    let before = processor_time();
    let (index, mut writer) = measure(&measured, REOPEN, || {
        let index = Index::open_with(vfs, dir)?;
        let mut writer = index.writer()?;
        if options.memtable > 0 {
            writer.set_options(writer.options().memtable(options.memtable as u32, 64 << 20))?;
        }
        twindex::Result::Ok((index, writer))
    })?;
    let processor = processor_time().saturating_sub(before);
    measured[REOPEN_CPU].lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(processor);
    let start = done(&index);
    let mut out = io::stdout().lock();
    writeln!(out, "open {start} {}", index.snapshot().documents())?;
    report(&measured, &mut out)?;
    let known = Arc::new(AtomicU64::new(start));
    let ends = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..QUERY_THREADS)
        .map(|number| {
            let (index, measured) = (index.clone(), Arc::clone(&measured));
            let (known, ends, options) = (Arc::clone(&known), Arc::clone(&ends), options.clone());
            thread::spawn(move || ask(&index, &measured, &known, &ends, &options, number))
        })
        .collect();
    {
        let ends = Arc::clone(&ends);
        thread::spawn(move || {
            let _ = io::stdin().read_line(&mut String::new()); // a line or the end of input ends the process
            ends.store(true, Ordering::Relaxed);
        });
    }
    let sketcher = index.sketcher()?;
    let mut number = start;
    while number < options.documents && !ends.load(Ordering::Relaxed) {
        for _ in 0..BATCH.min(options.documents - number) {
            let sketch = sketcher.sketch(&text(options.seed, number))?;
            measure(&measured, ADMIT, || writer.admit(format!("page/{number:09}").as_str(), &sketch))?;
            number += 1;
        }
        measure(&measured, COMMIT, || writer.commit_with(&number.to_le_bytes()))?;
        known.store(number, Ordering::Relaxed);
        writeln!(out, "commit {number}")?;
        report(&measured, &mut out)?;
    }
    measure(&measured, CLOSE, || drop(writer));
    ends.store(true, Ordering::Relaxed);
    for thread in threads {
        if let Some(why) = thread.join().map_err(|_| "a thread that asks has panicked")? {
            return Err(why.into());
        }
    }
    report(&measured, &mut out)?;
    Ok(())
}

/// Queries for documents near stored ones until it is instructed to stop. Returns an error if a query fails.
fn ask(
    index: &Index,
    measured: &Measured,
    known: &AtomicU64,
    ends: &AtomicBool,
    options: &Options,
    number: u64,
) -> Option<String> {
    let mut random = Random(options.seed ^ number << 32);
    let sketcher = index.sketcher().ok()?;
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_micros(options.near_pause));
        let known = known.load(Ordering::Relaxed);
        if known == 0 {
            continue;
        }
        let asked = random.below(known);
        let Ok(sketch) = sketcher.sketch(&text(options.seed, asked)) else { continue };
        match measure(measured, NEAR, || index.snapshot().near(&sketch).limit(10).run()) {
            Ok(answers) if answers.hits.is_empty() => return Some(format!("page {asked} is not found")),
            Ok(_) => {}
            Err(error) => return Some(error.to_string()),
        }
    }
    None
}

/// Runs the process that follows the commits of the writer.
fn follow(options: &Options) -> Result<(), Failure> {
    let dir = options.dir.as_deref().ok_or("no folder")?;
    let measured: Measured = Arc::default();
    let ends = Arc::new(AtomicBool::new(false));
    {
        let ends = Arc::clone(&ends);
        thread::spawn(move || {
            let _ = io::stdin().read_line(&mut String::new()); // a line or the end of input ends the process
            ends.store(true, Ordering::Relaxed);
        });
    }
    let index = Index::open(dir)?;
    let sketcher = index.sketcher()?;
    let (mut random, mut last) = (Random(options.seed), 0);
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        measure(&measured, REFRESH, || index.refresh())?;
        let known = done(&index);
        if known < last {
            return Err(format!("{known} documents after {last}").into());
        }
        last = known;
        if known > 0 {
            let asked = random.below(known);
            let sketch = sketcher.sketch(&text(options.seed, asked))?;
            if index.snapshot().near(&sketch).limit(10).run()?.hits.is_empty() {
                return Err(format!("page {asked} of {known} is not found by another process").into());
            }
        }
    }
    report(&measured, &mut io::stdout().lock())?;
    Ok(())
}

/// Measurements that the parent process collects from the output of its child processes.
#[derive(Default)]
struct Seen {
    times: Vec<Times>,
    acknowledged: u64,
    lost: u64,
    openings: u64,
}

impl Seen {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["times", kind, longest, counts] => {
                let kind = KINDS.iter().position(|known| *known == kind);
                if let (Some(kind), Some(times)) = (kind, Times::decode(longest, counts)) {
                    self.times.resize(KINDS.len(), Times::default());
                    self.times[kind].merge(&times);
                }
            }
            ["commit", number] => self.acknowledged = number.parse().unwrap_or(self.acknowledged),
            ["open", done, documents] => {
                let (done, documents) = (done.parse().unwrap_or(0), documents.parse().unwrap_or(0));
                self.lost += self.acknowledged.saturating_sub(done) + u64::abs_diff(done, documents);
                self.openings += 1;
            }
            _ => {}
        }
    }
}

/// Returns two times in milliseconds: the median of a scan of 2,000 keys, and the time to delete the 100,000 keys with
/// a prefix and commit. `None` if the index is too small.
fn measure_prefixes(path: &Path, documents: u64) -> Result<Option<(f64, f64)>, Failure> {
    if documents < 200_000 {
        return Ok(None);
    }
    let index = Index::open(path)?;
    let snapshot = index.snapshot();
    let mut scans = Vec::new();
    for part in 0..documents / 1000 / 2 {
        let (from, to) = (format!("page/{:09}", 2000 * part), format!("page/{:09}", 2000 * (part + 1)));
        let start = Instant::now();
        let keys = snapshot.range(from.as_str()..to.as_str())?.collect::<twindex::Result<Vec<_>>>()?;
        scans.push(start.elapsed());
        if keys.len() != 2000 {
            return Err(format!("{} keys from {from} to {to}", keys.len()).into());
        }
    }
    scans.sort_unstable();
    let scan = scans[scans.len() / 2];
    let mut writer = index.writer()?;
    let start = Instant::now();
    let removed = writer.delete_prefix("page/0000")?;
    writer.commit()?;
    let took = start.elapsed();
    if removed != 100_000 || index.snapshot().documents() != documents - removed {
        return Err(format!("{removed} documents were removed by their prefix").into());
    }
    Ok(Some((scan.as_secs_f64() * 1000.0, took.as_secs_f64() * 1000.0)))
}

/// Runs a program and returns its documents per second, as reported in the last line of its output.
fn documents_per_second(program: &Path, options: &Options) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    for (name, value) in [
        ("--documents", options.documents),
        ("--kills", options.kills),
        ("--seed", options.seed),
        ("--near-pause", options.near_pause),
        ("--memtable", options.memtable),
    ] {
        command.arg(name).arg(value.to_string());
    }
    if options.sets {
        command.arg("--sets");
    }
    let output = command.arg("--json").stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", program.display(), output.status).into());
    }
    let printed = String::from_utf8(output.stdout)?;
    let line = printed.lines().last().unwrap_or_default();
    println!("{}: {line}", program.display());
    let rate = line.split("\"documents_per_s\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    Ok(rate.ok_or("a line without documents_per_s")?.parse()?)
}

/// Runs this program and the program given by `--against` in turn, and compares their documents per second.
fn compare(options: &Options) -> Result<(), Failure> {
    let older = options.against.as_deref().ok_or("no program to compare with")?;
    let this = std::env::current_exe()?;
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..options.rounds.max(1) {
        let turns = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for turn in turns {
            rates[turn].push(documents_per_second([&this, older][turn], options)?);
        }
    }
    let [now, before] = rates.map(|mut rates| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!(
        "{{\"documents\":{},\"rounds\":{},\"documents_per_s\":{now:.0},\"documents_per_s_against\":{before:.0},\"times\":{:.3}}}",
        options.documents,
        options.rounds.max(1),
        now / before
    );
    Ok(())
}

fn run(options: &Options) -> Result<(), Failure> {
    let temporary = std::env::temp_dir().join(format!("indexer_service-{}", std::process::id()));
    let dir = options.dir.clone().unwrap_or(temporary.clone());
    std::fs::create_dir_all(&dir)?;
    let index = dir.join("pages.twx");
    drop(create(&index, options.sets)?);
    let mut seen = Seen::default();
    let mut reader = options.start("follow", &index)?;
    let mut random = Random(options.seed);
    let (start, mut writing) = (Instant::now(), Duration::ZERO);
    // Stop the writer at evenly spaced numbers of documents: kill it after a random delay or, in one of the runs, close
    // its standard input. The last run adds the remaining documents.
    for life in 0..options.kills + 2 {
        let least = options.documents * (life + 1) / (options.kills + 2);
        let graceful = life == options.kills / 2;
        let until = if life > options.kills { u64::MAX } else { least };
        let late = Duration::from_micros(random.below(200_000));
        let begun = Instant::now();
        let mut child = options.start("write", &index)?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let mut killed = false;
        for line in lines {
            seen.line(&line?);
            if seen.acknowledged >= until && !killed {
                killed = true;
                if graceful {
                    drop(child.stdin.take());
                } else {
                    thread::sleep(late);
                    child.kill()?;
                }
            }
        }
        let ended = child.wait()?;
        writing += begun.elapsed();
        if !ended.success() && (!killed || graceful) {
            return Err(format!("the writer ended with {ended}").into());
        }
        if !options.json {
            let what = if graceful || !killed { "ended" } else { "killed" };
            println!("{what} after {} documents, {:.1} s", seen.acknowledged, start.elapsed().as_secs_f64());
        }
    }
    drop(reader.stdin.take());
    for line in BufReader::new(reader.stdout.take().ok_or("no output")?).lines() {
        seen.line(&line?);
    }
    if !reader.wait()?.success() {
        return Err("the process that reads has failed".into());
    }
    seen.times.resize(KINDS.len(), Times::default());
    let times = &seen.times;
    let prefixes = measure_prefixes(&index, options.documents)?;
    let number = |number: Option<f64>| number.map_or("null".to_owned(), |number| format!("{number:.2}"));
    let (scan, removal) = (number(prefixes.map(|times| times.0)), number(prefixes.map(|times| times.1)));
    let rate = options.documents as f64 / writing.as_secs_f64();
    println!(
        "{{\"documents\":{},\"documents_per_s\":{rate:.0},\"admit_p50_us\":{:.1},\"admit_p99_us\":{:.1},\
         \"admit_max_ms\":{:.2},\"near_p50_us\":{:.1},\"near_p99_us\":{:.1},\"near_max_ms\":{:.2},\
         \"commit_p50_ms\":{:.2},\"commit_p99_ms\":{:.2},\"commit_max_ms\":{:.2},\"reopen_max_ms\":{:.2},\"reopen_cpu_max_ms\":{:.2},\
         \"close_max_ms\":{:.2},\"refresh_max_ms\":{:.2},\"fsync_max_ms\":{:.2},\"canary_max_ms\":{:.2},\
         \"range_2000_p50_ms\":{scan},\"delete_prefix_100000_ms\":{removal},\"openings\":{},\"lost\":{}}}",
        options.documents,
        times[ADMIT].percentile(0.5),
        times[ADMIT].percentile(0.99),
        times[ADMIT].millis(),
        times[NEAR].percentile(0.5),
        times[NEAR].percentile(0.99),
        times[NEAR].millis(),
        times[COMMIT].percentile(0.5) / 1000.0,
        times[COMMIT].percentile(0.99) / 1000.0,
        times[COMMIT].millis(),
        times[REOPEN].millis(),
        times[REOPEN_CPU].millis(),
        times[CLOSE].millis(),
        times[REFRESH].millis(),
        times[FSYNC].millis(),
        times[CANARY].millis(),
        seen.openings,
        seen.lost,
    );
    if options.dir.is_none() {
        std::fs::remove_dir_all(&temporary)?;
    }
    if seen.lost > 0 { Err("acknowledged documents were lost".into()) } else { Ok(()) }
}
