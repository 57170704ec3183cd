//! Tests that a reader that waits for a commit sees the next one, however it reaches the files, and that the wait ends.

#![allow(clippy::disallowed_methods, reason = "moves the directory of an index from outside")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twindex::{Durability, Error, Fingerprint, Index, MemoryVfs, Params, RealVfs, Vfs, WriterOptions};

const LONG: Duration = Duration::from_secs(120);

fn params() -> Params {
    Params::builder().u64_keys().simhash(3).build().unwrap()
}

/// Commits documents one after the other, each when `reader` has seen the one before.
fn check(writing: &Index, reader: &Index, options: WriterOptions) {
    let seen = reader.snapshot().generation();
    assert!(!reader.wait(seen, Duration::from_millis(20)).unwrap(), "nothing was committed");
    std::thread::scope(|scope| {
        let (asked, turns) = std::sync::mpsc::channel();
        scope.spawn(move || {
            let mut writer = writing.writer_with(options).unwrap();
            for key in turns {
                std::thread::sleep(Duration::from_millis(10)); // the reader waits already, most of the time
                writer.put(key, Fingerprint(key)).unwrap();
                writer.commit().unwrap();
            }
        });
        for key in 0..20_u64 {
            let seen = reader.snapshot().generation();
            asked.send(key).unwrap();
            assert!(reader.wait(seen, LONG).unwrap());
            assert!(reader.snapshot().contains(key).unwrap(), "key {key}");
            assert!(reader.wait(seen, Duration::ZERO).unwrap(), "it has come already");
        }
    });
}

#[test]
fn wait_ends_at_a_commit_of_another_process_or_thread() {
    let dir = tempfile::tempdir().unwrap();
    let vfs: [(Arc<dyn Vfs>, &Path); 2] =
        [(Arc::new(RealVfs), dir.path()), (Arc::new(MemoryVfs::default()), Path::new("/"))];
    for (vfs, dir) in vfs {
        // A batch becomes a record of the log, or a segment and a manifest.
        for logged in [true, false] {
            let path = dir.join(if logged { "logged" } else { "segments" });
            let index = Index::create_with(Arc::clone(&vfs), &path, params()).unwrap();
            // An index that was opened on its own learns of commits from the files, as in another process.
            let reader = Index::open_with(Arc::clone(&vfs), &path).unwrap();
            let options = WriterOptions::default().logged(logged).background_merges(false);
            check(&index, &reader, options);
        }
        let index = Index::create_with(Arc::clone(&vfs), &dir.join("thread"), params()).unwrap();
        check(&index, &index.clone(), WriterOptions::default().durability(Durability::None));
    }
}

/// Names the index to which this program commits when it is started by the test below.
const COMMITS_TO: &str = "TWINDEX_TEST_COMMITS_TO";

#[test]
fn wait_ends_at_a_commit_of_a_child_process() {
    if let Some(path) = std::env::var_os(COMMITS_TO) {
        let mut writer = Index::open(path).unwrap().writer().unwrap();
        writer.put(7, Fingerprint(7)).unwrap();
        writer.commit().unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params()).unwrap();
    let seen = index.snapshot().generation();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "waiting::wait_ends_at_a_commit_of_a_child_process"])
        .env(COMMITS_TO, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(index.wait(seen, LONG).unwrap());
    assert!(index.snapshot().contains(7).unwrap());
    assert!(child.wait().unwrap().success());
}

#[test]
fn wait_ends_after_its_time_and_without_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params()).unwrap();
    let (seen, start) = (index.snapshot().generation(), Instant::now());
    assert!(!index.wait(seen, Duration::from_millis(1200)).unwrap());
    assert!(start.elapsed() >= Duration::from_millis(1200));
    assert!(index.wait(seen + 1, LONG).unwrap(), "the commit is another one");
    let pinned = Index::options().at_generation(seen).open(&path).unwrap();
    assert!(matches!(pinned.wait(seen, LONG), Err(Error::Invalid(_))));
    std::fs::rename(&path, dir.path().join("moved")).unwrap();
    assert!(matches!(index.wait(seen, LONG), Err(Error::NotAnIndex { .. })));
}
