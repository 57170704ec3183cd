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
    Annotations, Clustering, Dedup, IndexOf, Join, Keep, ListedPairs, Method, NearMeasure, Observer,
    Progress, RepeatedKeys, Report, Verify,
};

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
    job.input.skip_bad = 100;
    job.memory = 1 << 20;
    job
}

fn journal(job: &Dedup) -> PathBuf {
    job.out.with_file_name(".out.twindex-resume")
}

/// Runs the job without stopping it. Returns its result files, which are then removed, and its report.
fn expected(job: &Dedup) -> (BTreeMap<PathBuf, Vec<u8>>, Report) {
    let job = Dedup { resume: false, ..job.clone() };
    let report = run(&job, &Killer::default(), 2).unwrap().unwrap();
    let results = files(&job.out);
    fs::remove_dir_all(&job.out).unwrap();
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
    let job = Dedup { resume: true, ..job.clone() };
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
        assert!(!job.out.exists() && journal(&job).exists(), "{what}");
    }
    check_same(&files(&job.out), &results, what);
    assert!(!journal(&job).exists(), "{what}");
    fs::remove_dir_all(&job.out).unwrap();
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
    let mut history = Dedup::new([&plain.inputs[0]], folder.path().join("before"));
    history.input.skip_bad = 100;
    history.run().unwrap();
    let with = |change: &dyn Fn(&mut Dedup)| {
        let mut job = plain.clone();
        change(&mut job);
        job
    };
    let jobs = [
        (
            "containment, longest",
            with(&|job| (job.near, job.keep) = (NearMeasure::Containment, Keep::Longest)),
        ),
        ("simhash", with(&|job| job.method = Method::Simhash)),
        (
            "exact, annotated",
            with(&|job| {
                (job.method, job.annotations) =
                    (Method::Exact, Annotations { all: true, ..Annotations::default() });
            }),
        ),
        (
            "sketches, components",
            with(&|job| {
                (job.method, job.clusters) = (Method::Shingles, Clustering::Components);
            }),
        ),
        (
            "bands, estimated",
            with(&|job| (job.join, job.verify) = (Some(Join::Bands), Some(Verify::Signature))),
        ),
        ("all pairs, in little memory", with(&|job| (job.pairs, job.memory) = (ListedPairs::All, 1 << 16))),
        (
            "inside hosts, by a number, the last of a key",
            with(&|job| {
                (job.inside, job.url_field) = (Some("host".into()), Some("url".into()));
                (job.keep, job.keep_field, job.repeated_keys) =
                    (Keep::Max, Some("n".into()), RepeatedKeys::Last);
            }),
        ),
        ("against an index", with(&|job| job.against = vec![history.out.clone()])),
        (
            "against texts",
            with(&|job| (job.against, job.max_work) = (vec![history.out.clone()], Some(u64::MAX))),
        ),
        ("without an index", with(&|job| job.index = IndexOf::None)),
        (
            "simhash, without an index",
            with(&|job| (job.method, job.index) = (Method::Simhash, IndexOf::None)),
        ),
    ];
    for (what, job) in jobs {
        let parts = kill_at_each_part(&job, what);
        assert!(parts.len() > 2, "{what}: {parts:?}");
        let reads_history = parts.iter().any(|part| part.starts_with("history-"));
        assert_eq!(reads_history, what == "against texts", "{what}: {parts:?}");
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
    let job = Dedup { resume: true, ..job(folder.path(), 400) };
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
        (with(&|job| job.threshold = Some(0.7)), "--threshold was 0.8"),
        (with(&|job| job.memory = 2 << 20), "--memory was 1048576"),
        (with(&|job| job.keep = Keep::Longest), "--keep was First"),
        (with(&|job| job.index = IndexOf::None), "--index was Kept"),
        (with(&|job| job.text.seed = Some(5)), "the parameters of the index was"),
        (with(&|job| job.input.skip_bad = 7), "the reading of inputs was"),
        (with(&|job| _ = job.inputs.pop()), "c.csv: was among the inputs"),
        (with(&|job| job.inputs.swap(0, 1)), "a.jsonl, found"),
        (with(&|job| job.inputs.push(more.clone())), "d.jsonl: was not among the inputs"),
        (with(&|job| job.inputs.push("-".into())), "--resume reads the inputs again"),
    ] {
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
    // A run without a journal neither continues a stopped run, nor removes its journal unless the user asks for it.
    let plain = Dedup { resume: false, ..job.clone() };
    assert!(refusal(&plain).contains("--resume continues it, --force removes it"));
    let lock = fs::File::open(journal(&job).join("LOCK")).unwrap();
    lock.lock().unwrap();
    assert!(refusal(&job).contains("works on it"));
    drop(lock);

    let path = &job.inputs[1];
    let (bytes, changed) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    fs::write(path, &bytes).unwrap();
    assert!(refusal(&job).contains("b.jsonl.gz: changed since the stopped run began"));
    // A file with the same length and time is recognized as changed by its content, in the part that was read.
    let path = &job.inputs[0];
    let (first, first_changed) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    let set = |path: &Path, bytes: &[u8], time| {
        fs::write(path, bytes).unwrap();
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set(&job.inputs[1], &bytes, changed);
    let mut other = first.clone();
    let at = other.iter().position(|&byte| byte == b'w').unwrap();
    other[at] = b'v';
    set(path, &other, first_changed);
    assert!(refusal(&job).contains("the input changed since the stopped run read it"));

    set(path, &first, first_changed);
    run(&job, &Killer::default(), 2).unwrap().unwrap();
    check_same(&files(&job.out), &results, "after all of it");
    assert!(refusal(&job).contains("already exists"));
    // With --force, the journal of the stopped run is removed.
    fs::remove_dir_all(&job.out).unwrap();
    killed_after(&job, "reading-000001");
    run(&Dedup { force: true, ..plain }, &Killer::default(), 2).unwrap().unwrap();
    assert!(!journal(&job).exists());
    check_same(&files(&job.out), &results, "begun again");
}

#[test]
fn damaged_journal_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let job = Dedup { resume: true, ..job(folder.path(), 400) };
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
    fs::rename(kept.join("results"), &job.out).unwrap();
    run(&job, &Killer::default(), 2).unwrap().unwrap();
    check_same(&files(&job.out), &results, "in place");
    assert!(!kept.exists());
    // If a run was killed while it removed the journal, the next run removes the rest.
    let ended = kept.with_file_name(".out.twindex-resume-ended");
    for resume in [true, false] {
        fs::create_dir_all(ended.join("results")).unwrap();
        fs::write(ended.join("reading-000002"), "rest").unwrap();
        let again = Dedup { resume, ..job.clone() };
        assert!(refusal(&again).contains("already exists"));
        run(&Dedup { force: true, ..again }, &Killer::default(), 2).unwrap().unwrap();
        assert!(!ended.exists() && !kept.exists(), "{resume}");
        check_same(&files(&job.out), &results, "with the rest of an ended journal");
    }
    fs::create_dir_all(&ended).unwrap();
    fs::write(ended.join("notes.txt"), "mine").unwrap();
    assert!(refusal(&Dedup { force: true, ..job.clone() }).contains("`notes.txt`"));
}
