//! Tests logs with invalid records whose checksums are valid.

#![allow(clippy::disallowed_methods, reason = "the tests change files below the engine")]

use std::fs;
use std::path::{Path, PathBuf};

use twindex::format::checksum::checksum;
use twindex::format::current::Current;
use twindex::format::log::{LOG_HEAD_BYTES, encode_head, encode_mark, record_salt};
use twindex::format::manifest::Manifest;
use twindex::sys::RealVfs;
use twindex::{Error, Fingerprint, Index, Params};
use zerocopy::IntoBytes;

/// Creates an index with three commits in one log; returns the path of the log, the parameters and the manifest.
fn logged(dir: &Path) -> (PathBuf, Params, Manifest) {
    let path = dir.join("x");
    let params = Params::builder().simhash(3).build().unwrap();
    let index = Index::create(&path, params.clone()).unwrap();
    let mut writer = index.writer().unwrap();
    for key in ["a", "bc", "def"] {
        writer.put(key, Fingerprint(7)).unwrap();
        writer.commit().unwrap();
    }
    let manifest = index.snapshot().manifest().clone();
    std::mem::forget(writer); // no mark at the end, as if the process had been killed
    let log = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_string_lossy().contains("LOG-")).unwrap();
    (log, params, manifest)
}

/// Returns the error of opening the index; checks that `verify` reports the same error.
fn refused(log: &Path) -> String {
    let dir = log.parent().unwrap();
    let error = Index::open(dir).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let problems = twindex::store::verify::verify(&RealVfs, dir, |_| ()).problems;
    assert!(problems.iter().any(|problem| problem.to_string() == error.to_string()), "{problems:?}");
    error.to_string()
}

/// Returns the offset of each record.
fn records(bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut starts) = (LOG_HEAD_BYTES as usize, Vec::new());
    while at < bytes.len() {
        starts.push(at);
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        at += (24 + length).next_multiple_of(8);
    }
    starts
}

#[test]
fn marks_without_a_matching_record_are_reported_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, manifest) = logged(dir.path());
    let sound = fs::read(&log).unwrap();
    let number = manifest.logged.as_ref().unwrap().logs[0].number;
    let salt = record_salt(manifest.uuid, number);
    let starts = records(&sound);
    let last = u64::from_le_bytes(sound[starts[2] + 16..starts[2] + 24].try_into().unwrap());
    let end = sound.len() as u64;
    let with_mark = |commit: u64, synced: u64| {
        let mut bytes = sound.clone();
        encode_mark(&mut bytes, salt, end, commit, synced);
        fs::write(&log, bytes).unwrap();
    };
    for synced in [0, LOG_HEAD_BYTES, starts[1] as u64, end] {
        with_mark(last, synced);
        assert_eq!(Index::open(log.parent().unwrap()).unwrap().snapshot().documents(), 3);
    }
    for synced in [8, LOG_HEAD_BYTES - 8, starts[1] as u64 + 8, end - 8, end - 1] {
        with_mark(last, synced);
        let error = refused(&log);
        assert!(error.contains("a place where a record ends"), "{error}");
    }
    for commit in [last - 1, last + 1, 0] {
        with_mark(commit, end);
        let error = refused(&log);
        assert!(error.contains("the batch before the mark"), "{error}");
    }
}

#[test]
fn nonzero_padding_in_a_record_is_reported_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, manifest) = logged(dir.path());
    let mut bytes = fs::read(&log).unwrap();
    let starts = records(&bytes);
    let salt = record_salt(manifest.uuid, manifest.logged.as_ref().unwrap().logs[0].number);
    // Finds the first record that has padding.
    let (start, end) = starts
        .iter()
        .zip(starts[1..].iter().copied().chain([bytes.len()]))
        .map(|(&start, end)| (start, end))
        .find(|&(start, _)| u32::from_le_bytes(bytes[start + 4..start + 8].try_into().unwrap()) % 8 != 0)
        .unwrap();
    bytes[end - 1] = 1;
    let sum = checksum(salt, start as u64, &bytes[start + 4..end]);
    bytes[start..start + 4].copy_from_slice(&sum.to_le_bytes());
    fs::write(&log, bytes).unwrap();
    let error = refused(&log);
    assert!(error.contains("zeros up to the next record"), "{error}");
}

#[test]
fn log_that_starts_before_its_recorded_first_commit_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (log, params, mut manifest) = logged(dir.path());
    let entry = &mut manifest.logged.as_mut().unwrap().logs[0];
    entry.first += 1;
    let head = encode_head(manifest.uuid, &params, entry.number, entry.first);
    let mut bytes = fs::read(&log).unwrap();
    bytes[..head.len()].copy_from_slice(&head);
    fs::write(&log, bytes).unwrap();
    let path = log.with_file_name(format!("MANIFEST-{:06}", manifest.generation));
    let encoded = manifest.encode();
    let digest = Manifest::digest(&encoded);
    let current = Current::new(manifest.uuid, params.digest(), manifest.generation, digest);
    for (path, bytes) in [(path, &encoded[..]), (log.with_file_name("CURRENT"), current.as_bytes())] {
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let error = refused(&log);
    assert!(error.contains("a commit above"), "{error}");
}
