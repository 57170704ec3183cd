//! Tests that cancelled work ends early and leaves the index as it was. The work is cancelled by deadlines that come later
//! and later, until the work is complete before its deadline.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twindex::{
    Access, Cancel, Document, Error, Fingerprint, Index, MemoryVfs, Params, Resources, Result, Vfs, Writer,
    WriterOptions, verify_until,
};

use crate::support::Random;

const DOCUMENTS: u64 = 200_000;

fn path() -> &'static Path {
    Path::new("/index")
}

fn names(vfs: &MemoryVfs) -> Vec<OsString> {
    let mut names = vfs.list(path()).unwrap();
    names.sort_unstable();
    names
}

/// Creates an index of several segments and some rows in the log.
fn filled() -> (MemoryVfs, Index) {
    let vfs = MemoryVfs::default();
    let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
    let index = Index::create_with(Arc::new(vfs.clone()), path(), params).unwrap();
    let options = WriterOptions::default().background_merges(false);
    let (mut writer, mut random) = (index.writer_with(options).unwrap(), Random(4));
    for key in 0..DOCUMENTS {
        // A tenth of the documents have the same fingerprint.
        let fingerprint = if key % 10 == 0 { 7 } else { random.next() };
        let document = Document::from(Fingerprint(fingerprint)).with_value(b"a value of some bytes");
        writer.put(key % (DOCUMENTS - 1000), document).unwrap();
        if key % (DOCUMENTS / 5) == DOCUMENTS / 5 - 1 {
            writer.commit().unwrap();
            writer.flush().unwrap();
        }
    }
    for key in 0..100 {
        writer.delete(key * 3).unwrap();
    }
    writer.commit().unwrap();
    drop(writer);
    (vfs, index)
}

fn documents(index: &Index) -> Vec<u64> {
    index.snapshot().keys().unwrap().map(|key| key.unwrap().as_u64().unwrap()).collect()
}

/// Calls `work` with later and later deadlines until it is complete, and `check` after each time that it was cancelled.
/// Returns its result, and the number of times that it was cancelled.
fn until_complete<T>(
    step: Duration,
    mut work: impl FnMut(&Cancel) -> Result<T>,
    mut check: impl FnMut(),
) -> (T, u32) {
    for cancelled in 0.. {
        let start = Instant::now();
        match work(&Cancel::at(start + step * cancelled)) {
            Ok(result) => return (result, cancelled),
            Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
        }
        check();
    }
    unreachable!()
}

/// Cancels work of a writer at many moments, and checks each time that nothing has changed.
fn check_writer_work(work: impl Fn(&mut Writer, &Cancel) -> Result<bool>) {
    let (vfs, index) = filled();
    let (before, expected, generation) = (names(&vfs), documents(&index), index.snapshot().generation());
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let check = || {
        assert_eq!(names(&vfs), before);
        let reopened = Index::open_with(Arc::new(vfs.clone()), path()).unwrap();
        for snapshot in [reopened.snapshot(), index.snapshot()] {
            assert_eq!((snapshot.documents(), snapshot.generation()), (expected.len() as u64, generation));
        }
    };
    let (is_done, cancelled) =
        until_complete(Duration::from_millis(4), |cancel| work(&mut writer, cancel), check);
    assert!(is_done && cancelled > 2, "cancelled {cancelled} times");
    assert!(index.snapshot().entries().len() < 5);
    writer.put(DOCUMENTS, Fingerprint(9)).unwrap();
    assert!(matches!(work(&mut writer, &Cancel::new()), Err(Error::Invalid(_))), "in the middle of a batch");
    writer.commit().unwrap();
    drop(writer);
    let reopened = Index::open_with(Arc::new(vfs), path()).unwrap();
    let expected: Vec<u64> = expected.into_iter().chain([DOCUMENTS]).collect();
    assert!(documents(&index) == expected && documents(&reopened) == expected);
}

#[test]
fn cancelled_compaction_leaves_the_index_as_it_was() {
    check_writer_work(|writer, cancel| writer.compact_until(cancel).map(|_| true));
}

#[test]
fn cancelled_merge_leaves_the_index_as_it_was() {
    check_writer_work(Writer::merge_step_until);
}

#[test]
fn queries_groups_and_verify_end_at_a_deadline() {
    let (vfs, index) = filled();
    let snapshot = index.snapshot();
    let query = |cancel: &Cancel| Ok(snapshot.within(Fingerprint(7), 3).until(cancel).run()?.hits.len());
    let (hits, cancelled) = until_complete(Duration::from_micros(500), query, || ());
    assert!(hits > 15_000 && cancelled > 2, "cancelled {cancelled} times");
    let of_documents = |cancel: &Cancel| snapshot.within(Fingerprint(7), 3).until(cancel).count();
    let (hits, cancelled) = until_complete(Duration::from_micros(100), of_documents, || ());
    assert!(hits > 15_000 && cancelled > 2, "cancelled {cancelled} times");
    assert!(snapshot.within(Fingerprint(7), 3).any().unwrap().is_some());
    let any = snapshot.within(Fingerprint(7), 3).until(&Cancel::at(Instant::now())).any();
    assert!(matches!(any, Err(Error::Cancelled)), "{any:?}");

    let scratch = tempfile::tempdir().unwrap();
    let groups = |cancel: &Cancel| {
        snapshot.groups(&Resources { threads: 2, cancel: Some(cancel), ..Resources::in_dir(scratch.path()) })
    };
    let (groups, cancelled) = until_complete(Duration::from_millis(20), groups, || ());
    assert!(groups.questions() > 0 && cancelled > 2, "cancelled {cancelled} times");

    let verify = |cancel: &Cancel| verify_until(&vfs, path(), Access::Map, cancel, |_| ());
    let (findings, cancelled) = until_complete(Duration::from_millis(5), verify, || ());
    assert!(
        findings.problems.is_empty() && findings.bytes > 0 && cancelled > 2,
        "cancelled {cancelled} times"
    );
}
