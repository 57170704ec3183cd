//! Tests that a run that is killed and resumed has the same results as a run that is not stopped.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flate2::Compression;
use flate2::write::GzEncoder;
use twindex_corpus::{
    Also, Dedup, IndexOf, InvalidUtf8, Keep, Near, Observer, Progress, RepeatedKeys, Report, Weights,
};

use crate::arrow;
use crate::corpora::Random;

/// Stops a run at a chosen moment as a kill would, and records its messages.
#[derive(Default)]
struct Killer {
    /// The number, from 0, of the durable part after which the run stops.
    after: Option<usize>,
    /// The number of progress reports after which the run stops.
    reports: Option<usize>,
    seen: AtomicUsize,
    parts: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
}

impl Observer for Killer {
    fn begin(&self, _: &str, _: Option<u64>) -> Box<dyn Progress + '_> {
        Box::new(self)
    }

    fn note(&self, note: &str) {
        self.notes.lock().unwrap().push(note.to_owned());
    }

    fn sealed(&self, part: &str) {
        let count = {
            let mut parts = self.parts.lock().unwrap();
            parts.push(part.to_owned());
            parts.len()
        };
        if self.after.is_some_and(|after| count > after) {
            std::panic::resume_unwind(Box::new("killed"));
        }
    }

    fn half_done(&self, _: &Path) -> Box<dyn Any> {
        Box::new(())
    }
}

impl Progress for &Killer {
    fn set(&self, _: u64) {
        if self.reports.is_some_and(|reports| self.seen.fetch_add(1, Relaxed) >= reports) {
            std::panic::resume_unwind(Box::new("killed"));
        }
    }
}

/// Runs the job on `threads` threads. Returns `None` if `killer` stopped it.
fn run(job: &Dedup, killer: &Killer, threads: usize) -> Option<anyhow::Result<Report>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| catch_unwind(AssertUnwindSafe(|| job.run_watched(killer)))).ok()
}

/// Returns all files in a folder with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().unwrap() != "LOCK" {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// Writes documents to files: JSON Lines, one of them compressed, and a table. Some documents are near others, have no
/// words, or have the key of an earlier document. Some records are bad.
fn inputs(folder: &Path, documents: usize) -> Vec<PathBuf> {
    let mut random = Random(11);
    let mut texts: Vec<String> = Vec::new();
    let mut lines = String::new();
    let mut table = "id,text,n,url\n".to_owned();
    for number in 0..documents {
        let mut text = match random.below(8) {
            0 if !texts.is_empty() => texts[random.below(texts.len())].clone(),
            1 => "…".to_owned(),
            2 if !texts.is_empty() => {
                format!("{} äöü x{}", texts[random.below(texts.len())], random.below(99))
            }
            _ => (0..60 + random.below(200)).fold(String::new(), |mut text, _| {
                let _ = write!(text, "w{} ", random.below(9000));
                text
            }),
        };
        if random.below(9) == 0 {
            text.truncate(text.char_indices().nth(40).map_or(text.len(), |(at, _)| at));
        }
        let key = if random.below(20) == 0 { 0 } else { number };
        let (n, host) = (random.below(50), random.below(5));
        if number % 4 == 3 {
            let _ = writeln!(table, "{key},{text},{n},http://h{host}.example/{number}");
        } else {
            let _ = writeln!(
                lines,
                "{{\"id\":\"{key}\",\"text\":\"{text}\",\"n\":{n},\"url\":\"http://h{host}.example/{number}\"}}"
            );
        }
        if number % 500 == 77 {
            lines.push_str("{no record\n");
        }
        texts.push(text);
    }
    let third = lines[..lines.len() / 3].rfind('\n').unwrap() + 1;
    let paths = ["a.jsonl", "b.jsonl.gz", "c.csv"].map(|name| folder.join(name));
    fs::write(&paths[0], &lines[..third]).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&lines.as_bytes()[third..]).unwrap();
    fs::write(&paths[1], packed.finish().unwrap()).unwrap();
    fs::write(&paths[2], table).unwrap();
    paths.to_vec()
}

fn job(folder: &Path, documents: usize) -> Dedup {
    let mut job = Dedup::new(inputs(folder, documents), folder.join("out"));
    job.reading.skip_bad = 100;
    job.results.index = IndexOf::Kept;
    job.resources.memory = 1 << 20;
    job
}

fn resuming(job: &Dedup, resume: bool) -> Dedup {
    let mut job = job.clone();
    job.results.resume = resume;
    job
}

fn forced(job: &Dedup) -> Dedup {
    let mut job = job.clone();
    job.results.force = true;
    job
}

fn journal(job: &Dedup) -> PathBuf {
    job.results.out.with_file_name(".out.twindex-resume")
}

/// Runs the job without stopping it. Returns its result files, which are then removed, and its report.
fn expected(job: &Dedup) -> (BTreeMap<PathBuf, Vec<u8>>, Report) {
    let job = resuming(job, false);
    let report = run(&job, &Killer::default(), 2).unwrap().unwrap();
    let results = files(&job.results.out);
    fs::remove_dir_all(&job.results.out).unwrap();
    (results, report)
}

/// Checks that the files have the same names and contents. The manifests of the index contain random numbers, which
/// differ from run to run.
fn check_same(found: &BTreeMap<PathBuf, Vec<u8>>, expected: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    let is_random = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name == "CURRENT" || name.starts_with("MANIFEST-")
    };
    for (path, bytes) in expected.iter().filter(|(path, _)| !is_random(path)) {
        assert!(found[path] == *bytes, "{what}: {} differs", path.display());
    }
}

/// Kills the job at each durable part and resumes it each time. Checks that the results equal the results of a run that
/// was not stopped. Returns the names of the durable parts.
fn kill_at_each_part(job: &Dedup, what: &str) -> Vec<String> {
    let job = resuming(job, true);
    let (results, report) = expected(&job);
    let mut parts = Vec::new();
    for round in 0.. {
        assert!(round < 60, "{what}: no end in sight");
        // Also stops between two parts.
        let reports = (round % 3 == 1).then_some(2 + round);
        let between = Killer { reports, ..Killer::default() };
        if reports.is_some() && run(&job, &between, 2).is_some() {
            parts.append(&mut between.parts.lock().unwrap());
            break;
        }
        parts.append(&mut between.parts.lock().unwrap());
        let killer = Killer { after: Some(0), ..Killer::default() };
        let ended = run(&job, &killer, 1 + round % 3);
        parts.append(&mut killer.parts.lock().unwrap());
        if let Some(ended) = ended {
            let again = ended.unwrap_or_else(|error| panic!("{what}: {error:#}"));
            assert_eq!(again.input, report.input, "{what}");
            assert_eq!(
                (again.kept, again.pairs, again.candidates),
                (report.kept, report.pairs, report.candidates),
                "{what}"
            );
            break;
        }
        assert!(!job.results.out.exists() && journal(&job).exists(), "{what}");
    }
    check_same(&files(&job.results.out), &results, what);
    assert!(!journal(&job).exists(), "{what}");
    fs::remove_dir_all(&job.results.out).unwrap();
    parts
}

#[test]
fn results_after_kills_equal_the_results_of_an_uninterrupted_run() {
    let folder = tempfile::tempdir().unwrap();
    let parts = kill_at_each_part(&job(folder.path(), 1200), "the default job");
    let readings = parts.iter().filter(|part| part.starts_with("reading-")).count();
    assert!(readings >= 3, "{parts:?}");
    for part in ["decided", "index", "kept", "published"] {
        assert!(parts.iter().any(|one| one == part), "{part} of {parts:?}");
    }
}

#[test]
fn every_kind_of_job_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let plain = job(folder.path(), 350);
    let mut history = Dedup::new([&plain.reading.inputs[0]], folder.path().join("before"));
    history.reading.skip_bad = 100;
    history.results.index = IndexOf::Kept;
    history.run().unwrap();
    let with = |change: &dyn Fn(&mut Dedup)| {
        let mut job = plain.clone();
        change(&mut job);
        job
    };
    let containment = Some(Near::Containment(0.8));
    let jobs = [
        (
            "containment, longest",
            with(&|job| (job.rule.near, job.rule.keep) = (containment, Keep::Longest.into())),
        ),
        ("simhash", with(&|job| job.rule.near = Some(Near::Within(3)))),
        (
            "rows of Arrow files, annotated",
            with(&|job| {
                job.reading.inputs = ["a.arrow", "b.feather"].map(|name| folder.path().join(name)).to_vec();
                job.reading.inputs.iter().for_each(|path| arrow::write_rows(path, 300));
                job.results.also = vec![Also::Annotated];
            }),
        ),
        (
            "equal, annotated",
            with(&|job| {
                (job.rule.near, job.results.index) = (Some(Near::Equal), IndexOf::None);
                job.results.also = vec![Also::Annotated];
            }),
        ),
        (
            "weights, in little memory",
            with(&|job| (job.rule.weights, job.resources.memory) = (Weights::Frequencies, 1 << 16)),
        ),
        (
            "inside hosts, by a number, the last of a key",
            with(&|job| {
                (job.scope.inside, job.scope.url_field) = (Some("host".into()), Some("url".into()));
                (job.rule.keep, job.scope.repeated_keys) = (Keep::Max("n".into()).into(), RepeatedKeys::Last);
            }),
        ),
        ("against an index", with(&|job| job.scope.against = vec![history.results.out.clone()])),
        (
            "against texts",
            with(&|job| {
                (job.scope.against, job.rule.max_work) = (vec![history.results.out.clone()], Some(u64::MAX));
            }),
        ),
        (
            "simhash, against texts",
            with(&|job| {
                (job.scope.against, job.rule.near) =
                    (vec![history.results.out.clone()], Some(Near::Within(3)));
            }),
        ),
        ("without an index", with(&|job| job.results.index = IndexOf::None)),
        (
            "simhash, without an index",
            with(&|job| (job.rule.near, job.results.index) = (Some(Near::Within(3)), IndexOf::None)),
        ),
    ];
    for (what, job) in jobs {
        let parts = kill_at_each_part(&job, what);
        assert!(parts.len() > 2, "{what}: {parts:?}");
        let reads_history = parts.iter().any(|part| part.starts_with("history-"));
        assert_eq!(reads_history, what.ends_with("against texts"), "{what}: {parts:?}");
        let stores_index = parts.iter().any(|part| part == "index");
        assert_eq!(stores_index, job.writes_index(), "{what}: {parts:?}");
    }
}

/// Runs the job and kills it after this part.
fn killed_after(job: &Dedup, part: &str) {
    let mut after = 0;
    loop {
        let killer = Killer { after: Some(after), ..Killer::default() };
        assert!(run(job, &killer, 1).is_none(), "{part} does not come");
        if killer.parts.lock().unwrap().iter().any(|one| one == part) {
            return;
        }
        after = 0; // each run resumes the previous one
    }
}

fn refusal(job: &Dedup) -> String {
    format!("{:#}", run(job, &Killer::default(), 2).unwrap().expect_err("refused"))
}

#[test]
fn resuming_with_other_options_or_inputs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let job = resuming(&job(folder.path(), 400), true);
    let (results, _) = expected(&job);
    killed_after(&job, "reading-000001");
    let more = folder.path().join("d.jsonl");
    fs::write(&more, "{\"id\":\"d\",\"text\":\"more\"}\n").unwrap();
    let with = |change: &dyn Fn(&mut Dedup)| {
        let mut job = job.clone();
        change(&mut job);
        refusal(&job)
    };
    for (message, wanted) in [
        (
            with(&|job| job.rule.near = Some(Near::Containment(0.7))),
            "--near was not given in the stopped run, and is containment:0.7",
        ),
        (
            with(&|job| job.rule.keep = Keep::Longest.into()),
            "--keep was first in the stopped run, and is longest",
        ),
        (with(&|job| job.results.index = IndexOf::None), "--index was kept in the stopped run, and is none"),
        (with(&|job| job.text.seed = Some(5)), "--seed was not given in the stopped run, and is 5"),
        (
            with(&|job| job.reading.invalid_utf8 = InvalidUtf8::Skip),
            "--invalid-utf8 was not given in the stopped run, and is skip",
        ),
        (
            with(&|job| job.reading.text_field = Some("url".into())),
            "--text-field was not given in the stopped run, and is url",
        ),
        (with(&|job| _ = job.reading.inputs.pop()), "c.csv: was among the inputs"),
        (with(&|job| job.reading.inputs.swap(0, 1)), "a.jsonl, found"),
        (with(&|job| job.reading.inputs.push(more.clone())), "d.jsonl: was not among the inputs"),
        (with(&|job| job.reading.inputs.push("-".into())), "--resume reads the inputs again"),
    ] {
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
    // A run without a journal neither continues a stopped run, nor removes its journal unless the user asks for it.
    let plain = resuming(&job, false);
    assert!(refusal(&plain).contains("--resume continues it, --force removes it"));
    let lock = fs::File::open(journal(&job).join("LOCK")).unwrap();
    lock.lock().unwrap();
    assert!(refusal(&job).contains("works on it"));
    drop(lock);

    let path = &job.reading.inputs[1];
    let (bytes, changed) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    fs::write(path, &bytes).unwrap();
    assert!(refusal(&job).contains("b.jsonl.gz: changed since the stopped run began"));
    // A file with the same length and time is recognized as changed by its content, in the part that was read.
    let path = &job.reading.inputs[0];
    let (first, first_changed) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    let set = |path: &Path, bytes: &[u8], time| {
        fs::write(path, bytes).unwrap();
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set(&job.reading.inputs[1], &bytes, changed);
    let mut other = first.clone();
    let at = other.iter().position(|&byte| byte == b'w').unwrap();
    other[at] = b'v';
    set(path, &other, first_changed);
    assert!(refusal(&job).contains("the input changed since the stopped run read it"));

    set(path, &first, first_changed);
    run(&job, &Killer::default(), 2).unwrap().unwrap();
    check_same(&files(&job.results.out), &results, "after all of it");
    assert!(refusal(&job).contains("already exists"));
    // With --force, the journal of the stopped run is removed.
    fs::remove_dir_all(&job.results.out).unwrap();
    killed_after(&job, "reading-000001");
    run(&forced(&plain), &Killer::default(), 2).unwrap().unwrap();
    assert!(!journal(&job).exists());
    check_same(&files(&job.results.out), &results, "begun again");
}

#[test]
fn damaged_journal_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let job = resuming(&job(folder.path(), 400), true);
    let (results, _) = expected(&job);
    killed_after(&job, "published");
    let kept = journal(&job);
    let mut random = Random(5);
    let whole = files(&kept);
    assert!(whole.len() > 12, "{:?}", whole.keys());
    let restore = || whole.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    let decides =
        |name: &str| !["published", "pairs.tsv", "clusters.tsv", "report.html", "run.json"].contains(&name);
    for (path, bytes) in &whole {
        let name = path.strip_prefix(&kept).unwrap().to_str().unwrap();
        let last = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("results/") && !decides(last) || last == "hosts.tsv" || last == "mirrors.tsv" {
            continue; // the resumed run writes it again
        }
        let mut damaged = Vec::new();
        for _ in 0..3 {
            let mut flipped = bytes.clone();
            if !bytes.is_empty() {
                flipped[random.below(bytes.len())] ^= 1 << random.below(8);
                damaged.push(flipped);
            }
        }
        damaged.extend((!bytes.is_empty()).then(|| bytes[..random.below(bytes.len())].to_vec()));
        if name == "sets" {
            assert!(bytes.len() > 10_000, "most sets exceed the memory");
        } else {
            // After the sets that the parts refer to, a stopped run may have written others.
            damaged.push([&bytes[..], b"x"].concat());
        }
        for damaged in damaged.iter().filter(|_| last != "published") {
            fs::write(path, damaged).unwrap();
            let message = refusal(&job);
            assert!(message.contains(last) && message.contains("--force"), "{name}: {message}");
            restore();
        }
    }
    // A file is missing although later files exist.
    for name in ["reading-000001", "inputs", "manifest", "sets"] {
        fs::remove_file(kept.join(name)).unwrap();
        let message = refusal(&job);
        assert!(message.contains(&format!("{name}: is missing")), "{message}");
        restore();
    }
    // The folder contains a file that does not belong to a journal.
    let foreign = kept.join("notes.txt");
    fs::write(&foreign, "mine").unwrap();
    assert!(refusal(&job).contains("`notes.txt`"));
    fs::remove_file(foreign).unwrap();
    // If a run was killed right after it renamed the results, the resumed run produces them again.
    fs::rename(kept.join("results"), &job.results.out).unwrap();
    run(&job, &Killer::default(), 2).unwrap().unwrap();
    check_same(&files(&job.results.out), &results, "in place");
    assert!(!kept.exists());
    // If a run was killed while it removed the journal, the next run removes the rest.
    let ended = kept.with_file_name(".out.twindex-resume-ended");
    for resume in [true, false] {
        fs::create_dir_all(ended.join("results")).unwrap();
        fs::write(ended.join("reading-000002"), "rest").unwrap();
        let again = resuming(&job, resume);
        assert!(refusal(&again).contains("already exists"));
        run(&forced(&again), &Killer::default(), 2).unwrap().unwrap();
        assert!(!ended.exists() && !kept.exists(), "{resume}");
        check_same(&files(&job.results.out), &results, "with the rest of an ended journal");
    }
    fs::create_dir_all(&ended).unwrap();
    fs::write(ended.join("notes.txt"), "mine").unwrap();
    assert!(refusal(&forced(&job)).contains("`notes.txt`"));
}

#[test]
fn run_stopped_by_a_bad_record_goes_on_when_it_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let job = resuming(&job(folder.path(), 1200), true);
    let (results, report) = expected(&job);
    assert_eq!(report.input.skipped_bad, 3);
    let mut strict = job.clone();
    strict.reading.skip_bad = 2;
    let stopped = Killer::default();
    let message = format!("{:#}", run(&strict, &stopped, 2).unwrap().unwrap_err());
    assert!(message.contains("b.jsonl.gz") && message.contains("--skip-bad"), "{message}");
    assert!(stopped.parts.lock().unwrap().iter().any(|part| part == "reading-000001"));
    assert!(journal(&job).exists() && !job.results.out.exists());

    let resumed = Killer::default();
    let again = run(&job, &resumed, 2).unwrap().unwrap();
    assert_eq!(again.input, report.input);
    check_same(&files(&job.results.out), &results, "with --skip-bad");
    let parts = resumed.parts.lock().unwrap();
    assert!(parts.iter().all(|part| part != "reading-000001"), "nothing is read twice: {parts:?}");
}

#[test]
fn resuming_with_other_memory_and_threads_gives_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let job = resuming(&job(folder.path(), 600), true);
    for (part, memory, threads) in
        [("reading-000001", 1 << 16, 3), ("reading-000001", 1 << 26, 1), ("decided", 1 << 16, 2)]
    {
        let mut other = job.clone();
        (other.resources.memory, other.resources.threads) = (memory, Some(threads));
        let (results, _) = expected(&other);
        killed_after(&job, part);
        run(&other, &Killer::default(), threads.into()).unwrap().unwrap();
        check_same(&files(&job.results.out), &results, &format!("{memory} after {part}"));
        fs::remove_dir_all(&job.results.out).unwrap();
    }
}
