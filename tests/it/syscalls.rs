//! Tests a writing process with strace: the process is killed at each of its system calls, or gets an error from each.
//! Afterwards its acknowledged commits must exist, and all others must be complete or absent.
//!
//! The tests are skipped with a notice if strace cannot trace. By default they interrupt some of the calls;
//! `.ci/run syscalls` interrupts all of them (`TWINDEX_SYSCALLS=all`).
//!
//! Short writes are caused by a limit on the file size, because strace cannot cause them: it can make `write` return 7,
//! but then no byte was written, and a program that continues after these 7 bytes leaves a hole.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "looks at processes and files from outside")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};

use twindex::store::verify::verify;
use twindex::sys::RealVfs;
use twindex::sys::vfs::TEMPORARY_PREFIX;
use twindex::{Error, Fingerprint, Index, Params, Result, Snapshot, WriterOptions};

use crate::support::skip::{Missing, skip};

/// The environment variable with the path of the index, set for the child processes of these tests.
const CHILD: &str = "TWINDEX_TEST_CHILD";

type Documents = BTreeMap<u64, u64>;

/// Number of steps of the child process. It acknowledges each step.
const STEPS: u64 = 9;

/// Performs a step, and updates `documents` to the expected state after it.
fn step(index: &Index, number: u64, documents: &mut Documents) -> Result<()> {
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false))?;
    match number {
        // Steps that commit to the log. The first creates a log; the others append to it.
        0 | 1 | 2 | 4 | 6 => {
            for session in 0..2 {
                for i in 0..3 {
                    let key = number * 3 + i;
                    writer.put(key, Fingerprint(number * 100 + session * 10 + i))?;
                }
                if session == 0 {
                    writer.delete(number)?;
                    writer.commit()?;
                }
            }
            for i in 0..3 {
                documents.insert(number * 3 + i, number * 100 + 10 + i);
            }
            if !(number * 3..number * 3 + 3).contains(&number) {
                documents.remove(&number);
            }
            writer.commit()?;
        }
        3 | 5 => writer.flush()?,
        7 => {
            writer.compact()?;
        }
        _ => {
            writer.set_options(writer.options().logged(false)).unwrap();
            writer.put(99_u64, Fingerprint(99))?;
            documents.insert(99, 99);
            writer.commit()?;
            writer.gc()?;
        }
    }
    Ok(())
}

/// Acknowledges a step by a single system call, so that no acknowledgement is lost in a buffer when the process is
/// killed.
fn acknowledge(number: u64) {
    let line = format!("acknowledged {number}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn documents(snapshot: &Snapshot) -> Documents {
    let mut all = Documents::new();
    let each = |key: twindex::Key<'_>| {
        let record = snapshot.get(key)?.expect("its key is there");
        all.insert(key.to_buf().as_u64().unwrap(), record.fingerprint.unwrap().0);
        Ok(())
    };
    snapshot.for_each_key(each).unwrap();
    all
}

fn child(path: &Path) {
    let index = Index::open(path).unwrap();
    let mut documents = Documents::new();
    for number in 0..STEPS {
        if let Err(error) = step(&index, number, &mut documents) {
            eprintln!("refused {number}: {error}");
            assert!(
                matches!(error, Error::Io { .. } | Error::Locked { .. } | Error::AfterCommit { .. }),
                "{error:?}"
            );
            std::process::exit(7);
        }
        acknowledge(number);
    }
    std::process::exit(0);
}

/// Returns the states that are allowed after each number of acknowledged steps: before, within and after the next step.
fn states() -> Vec<Vec<Documents>> {
    let (mut all, mut now) = (Vec::new(), Documents::new());
    for number in 0..=STEPS {
        let before = now.clone();
        let mut allowed = vec![before.clone()];
        if number < STEPS {
            let dir = tempfile::tempdir().unwrap();
            let params = Params::builder().u64_keys().simhash(3).build().unwrap();
            let index = Index::create(dir.path().join("i"), params).unwrap();
            step(&index, number, &mut now).unwrap();
            if matches!(number, 0 | 1 | 2 | 4 | 6) {
                // The state after the first of the two commits of this step.
                let mut half = before;
                half.remove(&number);
                for i in 0..3 {
                    half.insert(number * 3 + i, number * 100 + i);
                }
                if (number * 3..number * 3 + 3).contains(&number) {
                    half.remove(&number);
                }
                allowed.push(half);
            }
            allowed.push(now.clone());
        }
        all.push(allowed);
    }
    all
}

/// Runs the child under strace with an injection. Returns its output, and whether the injection happened.
fn traced(name: &str, path: &Path, injection: &str) -> Option<(Output, bool)> {
    let mut command = Command::new("strace");
    let trace = path.with_extension("trace");
    command.args(["-f", "-o"]).arg(&trace).args(["-e", "trace=all", "-e"]).arg(format!("inject={injection}"));
    if OF_FILES.iter().any(|call| injection.starts_with(&format!("{call}:"))) {
        command.args(only_files(path));
    }
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture", "--test-threads=1", name]);
    let Ok(output) = command.env(CHILD, path).output() else {
        skip(Missing::Program("strace"));
        return None;
    };
    let calls = std::fs::read(&trace).unwrap_or_default();
    Some((output, calls.windows(9).any(|bytes| bytes == b"(INJECTED")))
}

/// The system calls that change the disk.
const WRITING: [&str; 9] =
    ["write", "fdatasync", "fsync", "renameat", "linkat", "unlink", "ftruncate", "flock", "renameat2"];

/// The errors to inject into each call, except EINTR.
const FAILURES: [(&str, &[&str]); 13] = [
    ("write", &["EIO", "ENOSPC", "EDQUOT", "EFBIG"]),
    ("fdatasync", &["EIO", "ENOSPC", "EDQUOT"]),
    ("fsync", &["EIO", "ENOSPC", "EDQUOT"]),
    ("renameat", &["EIO", "ENOSPC", "EDQUOT", "EACCES"]),
    ("renameat2", &["EIO", "ENOSPC", "EDQUOT", "EINVAL"]),
    ("unlink", &["EIO", "EROFS", "EPERM"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("flock", &["ENOLCK", "EAGAIN"]),
    ("openat", &["EIO", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "EACCES"]),
    ("getdents64", &["EIO", "ENOMEM"]),
    // Only for files of the index: memory is also allocated with `mmap`, and a process that cannot allocate memory
    // aborts.
    ("mmap", &["ENOMEM", "EAGAIN", "ENODEV"]),
    ("statx", &["EIO", "EACCES"]),
    ("pread64", &["EIO"]),
];
/// The calls that must be repeated after EINTR.
const INTERRUPTED: [&str; 7] = ["write", "fdatasync", "fsync", "ftruncate", "flock", "openat", "pread64"];
/// The calls into which errors are injected only for files of the index.
const OF_FILES: [&str; 3] = ["mmap", "statx", "pread64"];

/// Returns the options by which strace traces only calls on the files of the index.
fn only_files(path: &Path) -> Vec<OsString> {
    let numbered = |make: fn(u32) -> String| (1..20).map(make);
    let names = numbered(|n| format!("{n:06}.seg"))
        .chain(numbered(|n| format!("LOG-{n:06}")))
        .chain(numbered(|n| format!("MANIFEST-{n:06}")))
        .chain(["CURRENT".to_owned(), "LOCK".to_owned()]);
    names.flat_map(|name| ["-P".into(), path.join(name).into_os_string()]).collect()
}

/// Runs the child repeatedly, with an injection at the n-th of each of these calls, for every n or for a sample. A sample
/// begins with one of the first three calls; for EINTR it begins with the first call. Calls `check` with each outcome,
/// and returns the number of injections of each kind. `None` if strace cannot trace.
fn at_each_call(
    name: &str,
    calls: &[(&str, &str)],
    check: &dyn Fn(&Path, &Output, &str),
) -> Option<BTreeMap<String, usize>> {
    let all = std::env::var_os("TWINDEX_SYSCALLS").is_some();
    let mut done = BTreeMap::new();
    for (place, (call, what)) in calls.iter().enumerate() {
        let is_survived = what.ends_with("EINTR");
        let mut number = if all || is_survived { 1 } else { 1 + place % 3 };
        loop {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("i");
            let params = Params::builder().u64_keys().simhash(3).build().unwrap();
            drop(Index::create(&path, params).unwrap());
            let injection = format!("{call}:{what}:when={number}");
            let (output, is_injected) = traced(name, &path, &injection)?;
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("strace:") && !said.contains("acknowledged") && !output.status.success() {
                let said = said.lines().next().unwrap_or("");
                skip(Missing::Elsewhere(&format!("strace cannot trace here: {said}")));
                return None;
            }
            check(&path, &output, &injection);
            let is_whole = said.contains(&format!("acknowledged {}", STEPS - 1));
            let count = done.entry(format!("{call}:{what}")).or_default();
            *count += usize::from(is_injected || !is_whole);
            if is_whole && *count == 0 && number > 1 {
                number = 1; // the child makes fewer calls than `number`
                continue;
            }
            // Usually, a child that completed all steps made fewer calls than `number`, so there are no later calls to test.
            // A child can also complete all steps because it survived the injection; then later calls are tested.
            if is_whole && !(is_survived && is_injected && (all || number < 3)) {
                break;
            }
            number += if all { 1 } else { 1 + number / 2 };
        }
    }
    Some(done)
}

fn acknowledged(output: &Output) -> usize {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.starts_with("acknowledged ")).count()
}

fn check_state(path: &Path, output: &Output, case: &str, states: &[Vec<Documents>]) {
    let at = acknowledged(output);
    let index = Index::open(path).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = documents(&index.snapshot());
    assert!(states[at].contains(&found), "{case}: after {at} steps {found:?}, not one of {:?}", states[at]);
    let problems = verify(&RealVfs, path, |_| ()).problems;
    assert!(problems.is_empty(), "{case}: {problems:?}");
    // The lock was released when the process died, so the next writer continues and removes garbage.
    let mut writer = index.writer().unwrap_or_else(|error| panic!("{case}: {error}"));
    writer.put(1000_u64, Fingerprint(1000)).unwrap();
    writer.commit().unwrap();
    writer.gc().unwrap();
    drop(writer);
    let mut expected = found;
    expected.insert(1000, 1000);
    assert_eq!(documents(&Index::open(path).unwrap().snapshot()), expected, "{case}");
    for entry in std::fs::read_dir(path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(TEMPORARY_PREFIX), "{case}: {name}");
    }
}

#[test]
fn process_killed_at_any_system_call_loses_no_acknowledged_commit() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(Path::new(&path));
    }
    let states = states();
    let name = "syscalls::process_killed_at_any_system_call_loses_no_acknowledged_commit";
    let calls: Vec<_> = WRITING.into_iter().chain(["openat"]).map(|call| (call, "signal=KILL")).collect();
    let killed = at_each_call(name, &calls, &|path, output, case| {
        let killed = output.status.signal() == Some(9);
        let fine = killed || acknowledged(output) as u64 == STEPS;
        assert!(fine, "{case}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        check_state(path, output, case, &states);
    });
    if let Some(killed) = killed {
        let sum: usize = killed.values().sum();
        println!("{sum} kills: {killed:?}");
        assert!(sum > 30, "{killed:?}");
    }
}

#[test]
fn failing_system_calls_are_reported_and_lose_no_acknowledged_commit() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(Path::new(&path));
    }
    let states = states();
    let name = "syscalls::failing_system_calls_are_reported_and_lose_no_acknowledged_commit";
    let named: Vec<(&str, String)> = FAILURES
        .iter()
        .flat_map(|(call, errors)| errors.iter().map(move |error| (*call, format!("error={error}"))))
        .chain(INTERRUPTED.iter().map(|call| (*call, "error=EINTR".to_owned())))
        .collect();
    let calls: Vec<(&str, &str)> = named.iter().map(|(call, error)| (*call, error.as_str())).collect();
    let failed = at_each_call(name, &calls, &|path, output, case| {
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        // An error before `main` comes from the Rust runtime. A failed acknowledgement is a panic of the test itself.
        let ours = said.contains("refused") || said.contains("panicked at");
        let fine = matches!(code, Some(0 | 7)) || !ours || said.contains("panicked at tests/it/syscalls.rs");
        assert!(fine, "{case}: {:?} {said}", output.status);
        assert!(!case.contains("EINTR") || !said.contains("refused"), "{case}: {said}");
        assert!(output.status.signal().is_none(), "{case}: {:?} {said}", output.status);
        check_state(path, output, case, &states);
    });
    let Some(failed) = failed else { return };
    println!("{} failures: {failed:?}", failed.values().sum::<usize>());
    for (call, error) in calls {
        // If the library starts to use another call instead, the table must be updated.
        assert!(failed[&format!("{call}:{error}")] > 0, "{call}: {error} was never injected");
    }
}

/// The file size limit is reached in the middle of a write: the call writes only the bytes that fit and returns their
/// number, and the next call fails.
#[test]
fn short_writes_are_reported_and_lose_no_acknowledged_commit() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(Path::new(&path));
    }
    let states = states();
    let name = "syscalls::short_writes_are_reported_and_lose_no_acknowledged_commit";
    let (mut refused, mut steps) = (0, BTreeSet::new());
    for limit in (0..).map(|i| 100 + 53 * i) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        let params = Params::builder().u64_keys().simhash(3).build().unwrap();
        drop(Index::create(&path, params).unwrap());
        let mut command = Command::new("sh");
        // Ignores the signal that is sent at the limit, because it would end the process.
        command.args(["-c", &format!("trap '' XFSZ; exec prlimit --fsize={limit} \"$0\" \"$@\"")]);
        command.arg(std::env::current_exe().unwrap()).args([
            "--exact",
            "--nocapture",
            "--test-threads=1",
            name,
        ]);
        let output = command.env(CHILD, &path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("prlimit") && !said.contains("acknowledged") {
            return skip(Missing::Program("prlimit"));
        }
        assert!(matches!(output.status.code(), Some(0 | 7)), "{limit}: {:?} {said}", output.status);
        assert!(output.status.success() || said.contains("File too large"), "{limit}: {said}");
        check_state(&path, &output, &format!("files of {limit} bytes"), &states);
        if output.status.success() {
            break;
        }
        refused += 1;
        steps.insert(acknowledged(&output));
    }
    println!("{refused} limits, after {steps:?} steps");
    assert!(refused > 10 && steps.len() > 2, "{refused} {steps:?}");
}
