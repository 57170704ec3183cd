//! Tests that segments added to a live index replace documents as `put` does, atomically with the rest of the batch.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twindex::{Admitted, Error, Fingerprint, Index, MemoryVfs, Params, Snapshot, Vfs, Writer, WriterOptions};

use crate::support::Random;

type Documents = BTreeMap<u64, u64>;

fn params() -> Params {
    Params::builder().u64_keys().simhash(3).build().unwrap()
}

/// Builds an index of these documents in one batch, and returns the path of its segment.
fn built(vfs: &MemoryVfs, name: &str, params: Params, documents: &Documents) -> PathBuf {
    let index = Index::create_with(Arc::new(vfs.clone()), &Path::new("/").join(name), params).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for (&key, &fingerprint) in documents {
        writer.put(key, Fingerprint(fingerprint)).unwrap();
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    snapshot.segments().next().unwrap().0.path().to_owned()
}

fn names(vfs: &MemoryVfs) -> Vec<OsString> {
    let mut names = vfs.list(Path::new("/index")).unwrap();
    names.sort_unstable();
    names
}

fn contents(snapshot: &Snapshot) -> Documents {
    let document = |document: twindex::Result<(twindex::KeyBuf, twindex::Record)>| {
        let (key, record) = document.unwrap();
        (key.as_u64().unwrap(), record.fingerprint.unwrap().0)
    };
    let documents = snapshot.keys().unwrap().records().map(document).collect::<Documents>();
    assert_eq!(snapshot.documents(), documents.len() as u64, "each key is live once");
    documents
}

fn near(documents: &Documents, fingerprint: u64) -> Vec<u64> {
    let is_near = |other: u64| (other ^ fingerprint).count_ones() <= 3;
    documents.iter().filter(|&(_, &other)| is_near(other)).map(|(&key, _)| key).collect()
}

fn found(snapshot: &Snapshot, fingerprint: u64) -> Vec<u64> {
    let hits = snapshot.within(Fingerprint(fingerprint), 3).run().unwrap().hits;
    let mut keys: Vec<u64> = hits.iter().map(|hit| hit.key.as_u64().unwrap()).collect();
    keys.sort_unstable();
    keys
}

/// Returns one of a few fingerprints. Some of them are near each other.
fn fingerprint(random: &mut Random) -> u64 {
    (random.next() % 5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1 << (random.next() % 64)
}

#[test]
fn ingested_segments_agree_with_a_map_after_any_operations() {
    let mut random = Random(12);
    for case in 0..60_u64 {
        let vfs = MemoryVfs::default();
        let segments: Vec<(PathBuf, Documents)> = (0..4)
            .map(|part| {
                let documents: Documents = (0..=random.next() % 30)
                    .map(|_| (random.next() % 60, fingerprint(&mut random)))
                    .collect();
                (built(&vfs, &format!("part-{part}"), params(), &documents), documents)
            })
            .collect();
        let path = Path::new("/index");
        let mut index = Index::create_with(Arc::new(vfs.clone()), path, params()).unwrap();
        let options = WriterOptions::default()
            .memtable(if case.is_multiple_of(2) { 10 } else { 1000 }, 1 << 20)
            .background_merges(case.is_multiple_of(3));
        let mut writer: Writer = index.writer_with(options).unwrap();
        let (mut committed, mut now) = (Documents::new(), Documents::new());
        for _ in 0..60 {
            let key = random.next() % 60;
            match random.next() % 20 {
                0..6 => {
                    let fingerprint = fingerprint(&mut random);
                    writer.put(key, Fingerprint(fingerprint)).unwrap();
                    now.insert(key, fingerprint);
                }
                6..9 => {
                    writer.delete(key).unwrap();
                    now.remove(&key);
                }
                9..13 => {
                    let (first, more) = (random.below(4), random.below(2));
                    let chosen: Vec<_> = segments[first..].iter().take(1 + more).collect();
                    let paths: Vec<_> = chosen.iter().map(|(path, _)| path).collect();
                    let count: usize = chosen.iter().map(|(_, documents)| documents.len()).sum();
                    assert_eq!(writer.ingest(&paths).unwrap(), count as u64);
                    now.extend(chosen.iter().flat_map(|(_, documents)| documents));
                }
                13 => {
                    writer.rollback().unwrap();
                    now.clone_from(&committed);
                }
                14 => {
                    let fingerprint = fingerprint(&mut random);
                    let expected = near(&now, fingerprint).into_iter().any(|other| other != key);
                    let admitted = writer.admit(key, Fingerprint(fingerprint)).unwrap();
                    let is_near = matches!(admitted, Admitted::Duplicate(_) | Admitted::Known { .. });
                    assert_eq!(is_near, expected, "{admitted:?}");
                    now.insert(key, fingerprint);
                }
                15 => {
                    let logged = random.next().is_multiple_of(2);
                    writer.set_options(writer.options().logged(logged)).unwrap();
                }
                16 => {
                    drop(writer);
                    index = Index::open_with(Arc::new(vfs.clone()), path).unwrap();
                    writer = index.writer_with(options).unwrap();
                    now.clone_from(&committed);
                }
                17 if now == committed => drop(writer.merge_step()),
                _ => {
                    writer.commit().unwrap();
                    committed.clone_from(&now);
                }
            }
            let asked = fingerprint(&mut random);
            for snapshot in
                [index.snapshot(), Index::open_with(Arc::new(vfs.clone()), path).unwrap().snapshot()]
            {
                assert_eq!(contents(&snapshot), committed, "case {case}");
                assert_eq!(found(&snapshot, asked), near(&committed, asked), "case {case}");
            }
        }
        writer.compact().unwrap();
        assert_eq!(contents(&index.snapshot()), now);
        assert!(twindex::verify(&vfs, path, |_| ()).problems.is_empty());
        for (path, documents) in &segments {
            let part = Index::open_with(Arc::new(vfs.clone()), path.parent().unwrap()).unwrap();
            assert_eq!(contents(&part.snapshot()), *documents, "the originals are kept");
        }
    }
}

#[test]
fn unsuitable_segments_are_refused_and_nothing_is_added() {
    let vfs = MemoryVfs::default();
    let documents: Documents =
        (0..5000_u64).map(|key| (key, key.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let good = built(&vfs, "good", params(), &documents);
    let other = built(&vfs, "other", Params::builder().u64_keys().simhash(4).build().unwrap(), &documents);
    let expiring = Params::builder().u64_keys().simhash(3).expire_after(9).build().unwrap();
    // Changes a byte in the middle of the file, which is not in the keys.
    let damaged = Path::new("/damaged");
    let file = vfs.open(&good).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    vfs.create_append(damaged).unwrap().append(&bytes).unwrap();

    let index = Index::create_with(Arc::new(vfs.clone()), Path::new("/index"), params()).unwrap();
    let mut writer = index.writer().unwrap();
    writer.put(1, Fingerprint(1)).unwrap();
    let before = names(&vfs);
    match writer.ingest(&[&good, &other]).unwrap_err() {
        Error::ParamsMismatch { field, .. } => assert!(field.contains("other"), "{field}"),
        error => panic!("{error}"),
    }
    let refused = writer.ingest(&[good.as_path(), damaged]);
    assert!(matches!(&refused, Err(Error::Corrupt { path, .. }) if path == damaged), "{refused:?}");
    assert!(matches!(writer.ingest(&["/none"]), Err(Error::Io { .. })));
    assert_eq!(writer.ingest(&[] as &[&str]).unwrap(), 0);
    assert_eq!(names(&vfs), before);
    writer.commit().unwrap();
    assert_eq!(contents(&index.snapshot()), Documents::from([(1, 1)]));

    let of_time = Index::create_with(Arc::new(vfs.clone()), Path::new("/time"), expiring).unwrap();
    let mut writer = of_time.writer_with(WriterOptions::default().logged(false)).unwrap();
    writer.put(1, twindex::Document::from(Fingerprint(1)).with_stamp(1)).unwrap();
    writer.commit().unwrap();
    let snapshot = of_time.snapshot();
    let own = snapshot.segments().next().unwrap().0.path();
    assert!(matches!(writer.ingest(&[own]), Err(Error::Invalid(_))));
}
