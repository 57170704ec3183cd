//! Tests that a rolled back batch leaves nothing: no file, no memory, no change of later commits. That a writer
//! after a rollback gives the answers of the last commit, for random operations, is tested in `living_model.rs`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use twindex::{Document, Fingerprint, Index, MemoryVfs, Params, Snapshot, Vfs, Writer, WriterOptions};

fn created() -> (MemoryVfs, Index) {
    let vfs = MemoryVfs::default();
    let params = Params::builder().u64_keys().simhash(3).values().build().unwrap();
    let index = Index::create_with(Arc::new(vfs.clone()), Path::new("/index"), params).unwrap();
    (vfs, index)
}

fn names(vfs: &MemoryVfs) -> Vec<OsString> {
    let mut names = vfs.list(Path::new("/index")).unwrap();
    names.sort_unstable();
    names
}

fn keys(snapshot: &Snapshot) -> Vec<u64> {
    snapshot.keys().unwrap().map(|key| key.unwrap().as_u64().unwrap()).collect()
}

/// Puts, deletes and admits documents of 3000 keys above `from`.
fn large_batch(writer: &mut Writer, from: u64) {
    for key in from..from + 3000 {
        writer.put(key, Fingerprint(key.wrapping_mul(0x9E37_79B9_7F4A_7C15))).unwrap();
    }
    writer.delete(from).unwrap();
    writer.delete(1).unwrap();
    writer.admit(2, Fingerprint(u64::MAX)).unwrap();
}

#[test]
fn rolled_back_batch_leaves_no_files_and_the_log_continues() {
    let defaults = WriterOptions::default;
    let all = [
        ("in the memtable", defaults(), true),
        ("frozen in the middle of the batch", defaults().memtable(400, 1 << 20), false),
        (
            "flushed in the middle of the batch",
            defaults().memtable(400, 1 << 20).background_merges(false),
            false,
        ),
        ("as segments", defaults().logged(false).memory(10_000), false),
        ("as one segment", defaults().logged(false).memory(10_000).one_segment(true), false),
    ];
    for (name, options, is_small) in all {
        let (vfs, index) = created();
        let mut writer = index.writer_with(options.logged(true).one_segment(false)).unwrap();
        for key in 0..10 {
            writer.put(key, Fingerprint(key)).unwrap();
        }
        writer.commit().unwrap();
        let (before, generation) = (names(&vfs), index.snapshot().generation());
        for round in 0..3 {
            writer.set_options(options).unwrap();
            large_batch(&mut writer, 1000 * round);
            assert!(writer.contains(2999).unwrap() && !writer.contains(1).unwrap(), "{name}");
            assert!(
                is_small || round > 0 || names(&vfs).len() > before.len(),
                "{name}: no segment was written"
            );
            writer.rollback().unwrap();
            assert_eq!(names(&vfs), before, "{name}");
            writer.set_options(WriterOptions::default()).unwrap();
            assert_eq!(writer.commit().unwrap(), generation, "{name}: nothing is to be committed");
            for snapshot in [
                index.snapshot(),
                Index::open_with(Arc::new(vfs.clone()), Path::new("/index")).unwrap().snapshot(),
            ] {
                assert_eq!(keys(&snapshot), (0..10).collect::<Vec<_>>(), "{name}");
            }
        }
        writer.put(77, Fingerprint(77)).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&vfs), before, "{name}: the batch is in the log of the last commit");
        drop(writer);
        let reopened = Index::open_with(Arc::new(vfs), Path::new("/index")).unwrap();
        assert_eq!(keys(&reopened.snapshot()), (0..10).chain([77]).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn rollback_frees_the_memory_of_the_batch() {
    let (_vfs, index) = created();
    let mut writer = index.writer().unwrap();
    writer.put(1, Fingerprint(1)).unwrap();
    writer.commit().unwrap();
    let before = index.metrics().memtable_bytes;
    for key in 10..3000 {
        writer.put(key, Document::from(Fingerprint(key)).with_value(&[7; 1000])).unwrap();
    }
    assert!(index.metrics().memtable_bytes > before + 3_000_000);
    writer.rollback().unwrap();
    // Buckets of hash tables stay for later batches: of fingerprints (1 MiB), and less than 200 bytes per document.
    let after = index.metrics().memtable_bytes;
    assert!(after <= before + (1 << 20) + 3000 * 200, "{before} {after}");
}

#[test]
fn flush_of_an_earlier_commit_continues_over_a_rollback() {
    let (vfs, index) = created();
    let mut writer = index.writer_with(WriterOptions::default().memtable(100, 1 << 20)).unwrap();
    for key in 0..150 {
        writer.put(key, Fingerprint(key)).unwrap();
    }
    writer.commit().unwrap(); // a thread writes these rows to a segment
    writer.delete(0).unwrap();
    writer.rollback().unwrap();
    writer.put(200, Fingerprint(200)).unwrap();
    writer.delete(1).unwrap();
    writer.commit().unwrap();
    writer.wait_for_merge().unwrap();
    assert_eq!(index.snapshot().entries().len(), 1);
    for snapshot in
        [index.snapshot(), Index::open_with(Arc::new(vfs), Path::new("/index")).unwrap().snapshot()]
    {
        assert_eq!(keys(&snapshot), [0].into_iter().chain(2..150).chain([200]).collect::<Vec<_>>());
    }
}
