//! Tests groups after crashes: they must equal the groups that a batch run finds over the surviving documents. The disk
//! stores no data about groups that could be inconsistent with the documents.
//!
//! `TWINDEX_CRASHES=10` tests ten times as many crash states.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::support::leaders::{Documents, listing_by_definition};
use crate::support::model::{Disk, ModelVfs, Variant, thoroughness};
use twindex::{Document, Error, Fingerprint, Index, Params, Resources, Snapshot, Writer, WriterOptions};

fn place() -> &'static Path {
    Path::new("/index")
}

fn created(vfs: &ModelVfs) -> Index {
    let params = Params::builder().u64_keys().simhash(3).priorities().build().unwrap();
    Index::create_with(Arc::new(vfs.clone()), place(), params).unwrap()
}

/// Returns the fingerprint and the priority of a document. The fingerprints are of two families, connected by chains.
fn document(number: u64) -> (u64, Option<u64>) {
    let chain = (0..number % 9).fold(0, |value, link| value | 3 << (2 * link));
    let family = if number % 4 == 3 { 0xFFFF_FFFF_0000_0000 } else { 0 };
    (family ^ chain, (!number.is_multiple_of(3)).then_some(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

fn put(writer: &mut Writer, key: u64, number: u64) {
    let (fingerprint, priority) = document(number);
    writer.put(key, Document::from(Fingerprint(fingerprint)).with_priority(priority)).unwrap();
}

/// Makes commits that put, replace and delete documents through two writers with logs, and flushes, merges and compacts
/// between them.
fn work(vfs: &ModelVfs) {
    let index = created(vfs);
    for session in 0..2 {
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        for batch in 0..4 {
            for i in 0..5 {
                put(&mut writer, (7 * batch + 3 * i + session) % 17, 100 * session + 10 * batch + i);
            }
            writer.delete((5 * batch + session) % 17).unwrap();
            writer.commit().unwrap();
            if batch % 2 == 1 {
                writer.flush().unwrap();
            }
        }
        while writer.merge_step().unwrap() {}
    }
    index.compact().unwrap();
}

fn survivors(snapshot: &Snapshot) -> Documents {
    let mut found = Documents::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?.unwrap();
            found.insert(
                key.to_buf().as_u64().unwrap(),
                (record.fingerprint.map(|fingerprint| fingerprint.0), record.priority),
            );
            Ok(())
        })
        .unwrap();
    found
}

/// Lists each key with its leader and group size; checks that single queries return the same leaders.
fn listed(snapshot: &Snapshot, scratch: &Path) -> String {
    let groups = snapshot.groups(&Resources { threads: 1, ..Resources::in_dir(scratch) }).unwrap();
    let mut text = String::new();
    groups
        .for_each(1, |key, leader, size| {
            let single = snapshot.leader(key, u64::MAX)?.unwrap().decided().unwrap();
            assert_eq!(single.key.as_key(), leader, "{key:?}");
            writeln!(text, "{} {} {size}", key.to_buf(), leader.to_buf()).unwrap();
            Ok(())
        })
        .unwrap();
    text
}

/// Returns the listing of groups of a new index of these documents, put in one batch.
fn batch(documents: &Documents, scratch: &Path) -> String {
    let index = created(&ModelVfs::default());
    let mut writer = index.writer().unwrap();
    for (&key, &(fingerprint, priority)) in documents {
        let fingerprint = Fingerprint(fingerprint.expect("each document has one"));
        writer.put(key, Document::from(fingerprint).with_priority(priority)).unwrap();
    }
    writer.commit().unwrap();
    listed(&index.snapshot(), scratch)
}

#[test]
fn groups_after_a_crash_match_the_surviving_documents() {
    let scratch = tempfile::tempdir().unwrap();
    let start = Disk::default();
    let vfs = ModelVfs::of(start.clone());
    work(&vfs);
    let mut batches: BTreeMap<Documents, String> = BTreeMap::new();
    let (mut states, mut number, mut led) = (0, 0_usize, 0);
    let one_in = (40 / thoroughness()).max(1);
    for variant in [Variant::Ordered, Variant::Weak] {
        vfs.crashes(&start, variant, |_, point, disk| {
            number += 1;
            if !number.is_multiple_of(one_in) {
                return true;
            }
            let index = match Index::open_with(Arc::new(ModelVfs::of(disk)), place()) {
                Ok(index) => index,
                Err(Error::NotAnIndex { .. }) => return true,
                Err(error) => panic!("{variant:?}, after event {point}: {error}"),
            };
            let snapshot = index.snapshot();
            let documents = survivors(&snapshot);
            let expected = batches.entry(documents).or_insert_with_key(|documents| {
                let batch = batch(documents, scratch.path());
                assert_eq!(batch, listing_by_definition(documents), "{documents:?}");
                batch
            });
            assert_eq!(listed(&snapshot, scratch.path()), *expected, "{variant:?}, after event {point}");
            led += expected.lines().filter(|line| line.split(' ').next() != line.split(' ').nth(1)).count();
            states += 1;
            true
        });
    }
    println!("{states} of {number} states after a crash, {} sets of survivors, {led} led", batches.len());
    assert!(states > 30 && batches.len() > 5 && led > 100, "{states} states, {} sets, {led}", batches.len());
}
