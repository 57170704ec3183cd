//! Tests of an index next to other processes and at the limits of the system: stopped and killed writers, a snapshot held
//! during ten thousand commits, few file descriptors, a long log, and a segment over 4 GiB.
//!
//! These tests are a separate program, because they count the open files of the process, and other tests open and close
//! files.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "looks at processes and files from outside")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use twindex::format::attached::Attached;
use twindex::format::log::{self, LogBatch};
use twindex::{Document, Durability, Error, Fingerprint, Index, Key, Params, WriterOptions};

/// The environment variable with the path of the index, set for the child processes of these tests.
const CHILD: &str = "TWINDEX_TEST_CHILD";

fn created() -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, Params::builder().u64_keys().simhash(3).build().unwrap()).unwrap();
    (dir, path, index)
}

fn child(test: &str, path: &Path, limit: Option<u32>) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(limit) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]).arg(program);
            shell
        }
    };
    command.args(["--exact", "--nocapture", test]).env(CHILD, path);
    command
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Reads the output of a child up to a line that contains `word`.
fn wait_for(child: &mut Child, word: &str) {
    let out = child.stdout.take().unwrap();
    let found = BufReader::new(out).lines().map_while(Result::ok).any(|line| line.contains(word));
    assert!(found, "the child says {word}");
}

#[test]
fn stopped_or_killed_writer_blocks_no_reader_and_loses_no_commit() {
    if let Some(path) = std::env::var_os(CHILD) {
        let index = Index::open(path).unwrap();
        let mut writer = index.writer().unwrap();
        for key in 0..50_u64 {
            writer.put(key, Fingerprint(key)).unwrap();
            writer.commit().unwrap();
        }
        // The child is stopped in the middle of this batch.
        writer.put(1000_u64, Fingerprint(1000)).unwrap();
        println!("child: acknowledged");
        loop {
            std::thread::park();
        }
    }
    let (_dir, path, index) = created();
    let name = "stopped_or_killed_writer_blocks_no_reader_and_loses_no_commit";
    let mut child = child(name, &path, None).stdout(Stdio::piped()).spawn().unwrap();
    wait_for(&mut child, "child: acknowledged");
    signal(&child, "STOP");
    let check = |index: &Index| {
        assert_eq!(index.snapshot().documents(), 50);
        assert_eq!(index.snapshot().within(Fingerprint(7), 0).run().unwrap().hits.len(), 1);
        assert!(!index.snapshot().contains(1000).unwrap());
    };
    assert!(index.refresh().unwrap());
    check(&index);
    check(&Index::open(&path).unwrap());
    match index.writer() {
        Err(Error::Locked { holder, .. }) => assert!(holder.contains(&child.id().to_string()), "{holder}"),
        other => panic!("{other:?}"),
    }
    signal(&child, "KILL");
    child.wait().unwrap();
    let mut writer = index.writer().expect("the lock went with the process");
    check(&index);
    writer.put(50_u64, Fingerprint(50)).unwrap();
    writer.commit().unwrap();
    assert_eq!(Index::open(&path).unwrap().snapshot().documents(), 51);
}

fn descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Returns the total size in bytes and the number of the files in a directory.
fn space(path: &Path) -> (u64, usize) {
    let lengths = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    lengths.fold((0, 0), |(bytes, files), length| (bytes + length, files + 1))
}

/// Every thousandth commit is followed by a flush, so that files are created and removed while the snapshot is held.
#[test]
fn snapshot_held_for_many_commits_is_unchanged_at_bounded_cost() {
    let (_dir, path, index) = created();
    let reader = Index::open(&path).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().durability(Durability::Batch)).unwrap();
    for key in 0..100_u64 {
        writer.put(key, Fingerprint(key)).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    reader.refresh().unwrap();
    let held = reader.snapshot();
    let mut max = (0, (0, 0));
    for commit in 0..10_000_u64 {
        writer.put(commit % 500, Fingerprint(commit)).unwrap();
        writer.commit().unwrap();
        if commit % 1000 == 999 {
            writer.flush().unwrap();
            reader.refresh().unwrap();
            assert_eq!(held.documents(), 100);
            for key in (0..100).step_by(9) {
                assert_eq!(held.get(key).unwrap().unwrap().fingerprint, Some(Fingerprint(key)));
            }
            let now = (descriptors().unwrap_or(0), space(&path));
            if commit == 1999 {
                max = now;
            }
            assert!(commit < 1999 || now.0 <= max.0 + 16, "{now:?} after {commit}, {max:?} at first");
            assert!(commit < 1999 || now.1.0 <= 8 * max.1.0, "{now:?} after {commit}, {max:?} at first");
            // A background merge may have created files that are not published yet.
            assert!(commit < 1999 || now.1.1 <= max.1.1 + 6, "{now:?} after {commit}, {max:?} at first");
        }
    }
    assert_eq!(reader.snapshot().documents(), 500);
}

#[test]
fn index_with_more_segments_than_descriptors_opens_or_reports_an_error() {
    const SEGMENTS: u64 = 90;
    if let Some(path) = std::env::var_os(CHILD) {
        match Index::open(path) {
            Ok(index) => {
                let snapshot = index.snapshot();
                assert_eq!(snapshot.documents(), SEGMENTS);
                for key in 0..SEGMENTS {
                    assert_eq!(snapshot.get(key).unwrap().unwrap().fingerprint, Some(Fingerprint(key)));
                }
                println!("child: opened");
            }
            Err(Error::Io { path, source, .. }) => println!("child: refused {} {source}", path.display()),
            Err(other) => panic!("{other:?}"),
        }
        return;
    }
    let (_dir, path, index) = created();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for key in 0..SEGMENTS {
        writer.put(key, Fingerprint(key)).unwrap();
        writer.commit().unwrap();
    }
    drop((writer, index));
    let name = "index_with_more_segments_than_descriptors_opens_or_reports_an_error";
    for limit in [64, 12] {
        let output = child(name, &path, Some(limit)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}");
        let fine = said.contains("child: opened") || said.contains("child: refused");
        assert!(fine, "{said}");
        println!("{limit} descriptors: {}", said.lines().find(|line| line.contains("child:")).unwrap_or(""));
    }
}

/// Returns the peak memory of this process in bytes; `None` if the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// The log is longer than any log of a writer; the test appends records in the specified format. With
/// `TWINDEX_LONG_LOG=1` the log is 1 GiB long.
#[test]
fn long_log_is_read_in_linear_time_and_bounded_memory() {
    let name = "long_log_is_read_in_linear_time_and_bounded_memory";
    if let Some(path) = std::env::var_os(CHILD) {
        let (start, before) = (std::time::Instant::now(), peak_memory());
        let snapshot = Index::open(path).unwrap().snapshot();
        let took = before.zip(peak_memory()).map(|(before, now)| now - before);
        println!("child: {} documents, {took:?} bytes, {:?}", snapshot.documents(), start.elapsed());
        println!("child: memory {}", took.unwrap_or(0));
        return;
    }
    let long = std::env::var_os("TWINDEX_LONG_LOG").is_some();
    let length = if long { 1_u64 << 30 } else { 48 << 20 };
    // An open index keeps the rows of its log in memory, so the test limits the memory per row. It does not keep payloads:
    // each one is dropped when the next one is read.
    for (what, value, rows_share) in [("payloads", 0, 0), ("values", 1024, 7)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
        let index = Index::create(&path, params.clone()).unwrap();
        let mut writer = index.writer().unwrap();
        let first = writer.commit_with(b"begins the log").unwrap();
        drop((writer, index));
        let file = path.join("LOG-000001");
        let mut out = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
        let uuid = Index::open(&path).unwrap().snapshot().uuid();
        let salt = log::record_salt(uuid, 1);
        let (mut offset, mut commit, mut rows) = (out.metadata().unwrap().len(), first, 0_u64);
        while offset < length {
            let (mut batch, mut bytes) = (LogBatch::default(), Vec::new());
            for _ in 0..if offset < length / 8 * rows_share { 64 } else { 0 } {
                let value = vec![rows as u8; value];
                let kept = twindex::segment::records::Kept { fingerprint: rows, ..Default::default() };
                let attached = Attached { value: &value, ..Attached::default() };
                batch.put(&params, Key::U64(rows), Some(kept), attached);
                rows += 1;
            }
            commit += 1;
            batch.encode(&mut bytes, salt, offset, commit, 0, Some(&vec![commit as u8; 1 << 16]));
            out.write_all(&bytes).unwrap();
            offset += bytes.len() as u64;
        }
        let output = child(name, &path, None).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
        println!("{offset} bytes of {what}: {}", said.lines().find(|line| line.contains("child:")).unwrap());
        let memory = said.lines().find_map(|line| line.strip_prefix("child: memory ")).unwrap();
        let memory: u64 = memory.parse().unwrap();
        let max = (16 << 20) + rows * (value as u64 + 200) * 2;
        assert!(memory <= max, "{what}: {memory} bytes for {rows} rows, more than {max}");
    }
}

/// Returns the value of a document. It begins with the key, and no two values are equal.
fn large_value(key: u64) -> Vec<u8> {
    let mut value: Vec<u8> = (0..60_000_u64).map(|i| (i.wrapping_mul(key | 1) >> 7) as u8).collect();
    value[..8].copy_from_slice(&key.to_le_bytes());
    value
}

/// Tests offsets in the file, and offsets of values in their section, on both sides of 2^31 and 2^32.
#[test]
#[ignore = "takes 9 GiB of disk and some minutes: cargo test -p twindex --test alone_limits -- --ignored --nocapture"]
fn segment_over_4_gib_works_and_its_damage_is_detected() {
    const DOCUMENTS: u64 = 76_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let mut writer = index
        .writer_with(WriterOptions::default().background_merges(false).logged(false).memory(256 << 20))
        .unwrap();
    let fingerprint = |key: u64| Fingerprint(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let start = std::time::Instant::now();
    for key in 0..DOCUMENTS {
        let value = large_value(key);
        writer.put(key, Document::from(fingerprint(key)).with_value(&value)).unwrap();
    }
    writer.commit().unwrap();
    println!("{} segments, {:?}", index.snapshot().segments().len(), start.elapsed());
    writer.compact().unwrap();
    drop(writer);
    println!("merged, {:?}", start.elapsed());
    let check = |index: &Index, keys: &mut dyn Iterator<Item = u64>| {
        let snapshot = index.snapshot();
        for key in keys {
            let found = snapshot.get(key).unwrap().unwrap();
            assert!(found.value == Some(large_value(key)), "the value of {key}");
            let hits = snapshot.within(fingerprint(key), 0).run().unwrap().hits;
            assert_eq!(hits.iter().map(|hit| hit.key.as_u64()).collect::<Vec<_>>(), [Some(key)]);
        }
    };
    let opening = std::time::Instant::now();
    let index = Index::open(&path).unwrap();
    println!("opened in {:?}", opening.elapsed());
    let snapshot = index.snapshot();
    let segment = snapshot.segments().next().unwrap().0;
    assert_eq!((snapshot.segments().len(), snapshot.documents()), (1, DOCUMENTS));
    assert!(segment.length() > (1 << 32) + (100 << 20), "{} bytes", segment.length());
    // Checks the values around both boundaries, the first and the last value, and some in between.
    let around = |boundary: u64| boundary / 60_000 - 200..(boundary / 60_000 + 20).min(DOCUMENTS);
    check(&index, &mut around(1 << 31).chain(around(1 << 32)).step_by(3));
    check(&index, &mut (0..DOCUMENTS).step_by(997).chain([DOCUMENTS - 1]));
    let mut keys = 0;
    let count = |_: twindex::Key<'_>| {
        keys += 1;
        Ok(())
    };
    snapshot.for_each_key(count).unwrap();
    assert_eq!(keys, DOCUMENTS);
    println!("{} bytes asked, {:?}", segment.length(), start.elapsed());
    let verify = || twindex::store::verify::verify(&twindex::sys::RealVfs, &path, |_| ());
    assert!(verify().problems.is_empty());
    println!("verified, {:?}", start.elapsed());
    // Flips a bit beyond 4 GiB, in the last value.
    let section = segment.sections().iter().find(|section| section.kind.name() == "values").unwrap();
    let at = section.end() - 1000;
    assert!(at > 1 << 32, "{at}");
    let file = segment.path().to_owned();
    let mut permissions = file.metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    std::fs::set_permissions(&file, permissions).unwrap();
    let out = std::fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(&out, &mut byte, at).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&out, &[byte[0] ^ 1], at).unwrap();
    drop((snapshot, index));
    let index = Index::open(&path).unwrap();
    match index.snapshot().get(DOCUMENTS - 1) {
        Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, at / 4096 * 4096),
        other => panic!("{:?}", other.map(|found| found.map(|found| found.value.map(|value| value.len())))),
    }
    check(&index, &mut (0..DOCUMENTS - 2).step_by(9973));
    assert_eq!(verify().problems.len(), 1);
    println!("damage seen, {:?}", start.elapsed());
}
