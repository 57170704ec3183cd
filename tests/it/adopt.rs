//! Tests that an index of adopted segments, which were built separately, gives the same results as an index built in one
//! commit, and that incompatible segments are refused.

#![allow(clippy::disallowed_methods, reason = "the test reads the files of an index directly")]

use std::path::{Path, PathBuf};

use twindex::{Error, Index, Params, WriterOptions};

const DOCUMENTS: u32 = 240;

fn params() -> Params {
    Params::builder().words(2).simhash(3).minhash(20, 6).build().unwrap()
}

fn text(number: u32) -> String {
    // Every third text is nearly equal to the previous one.
    let base = number - u32::from(number % 3 == 2);
    let words: Vec<String> =
        (0..60).map(|word| format!("w{}", (base * 97 + word * word * 13) % 4001)).collect();
    let last = if base == number { "" } else { " more" };
    words.join(" ") + last
}

/// Creates an index of these documents in one commit; returns the path of its only segment.
fn built(dir: &Path, name: &str, params: &Params, numbers: impl Iterator<Item = u32>) -> PathBuf {
    let index = Index::create(dir.join(name), params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for number in numbers {
        writer.put(&format!("page-{number:04}"), &sketcher.sketch(&text(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    assert_eq!(snapshot.segments().len(), 1);
    snapshot.segments().next().unwrap().0.path().to_owned()
}

fn hits(index: &Index) -> Vec<Vec<(String, Option<u32>)>> {
    let (sketcher, snapshot) = (index.sketcher().unwrap(), index.snapshot());
    (0..DOCUMENTS)
        .map(|number| {
            let hits = snapshot.near(&sketcher.sketch(&text(number)).unwrap()).run().unwrap().hits;
            hits.into_iter().map(|hit| (hit.key.to_string(), hit.distance)).collect()
        })
        .collect()
}

#[test]
fn adopted_segments_answer_like_an_index_built_in_one_commit() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let one = built(dir, "one", &params(), 0..DOCUMENTS);
    let segments: Vec<PathBuf> = (0..3)
        .map(|shard| {
            built(dir, &format!("shard-{shard}"), &params(), (0..DOCUMENTS).filter(|n| n % 3 == shard))
        })
        .collect();
    let path = dir.join("all");
    assert_eq!(Index::adopt(&path, params(), &segments).unwrap(), u64::from(DOCUMENTS));
    let all = Index::open(&path).unwrap();
    assert_eq!(all.snapshot().segments().len(), 3);
    let expected = hits(&Index::open(dir.join("one")).unwrap());
    assert!(expected.iter().any(|hits| hits.len() > 1), "some are near others");
    assert_eq!(hits(&all), expected);

    all.compact().unwrap();
    let snapshot = all.snapshot();
    let compacted = snapshot.segments().next().unwrap().0.path().to_owned();
    assert_eq!(std::fs::read(compacted).unwrap(), std::fs::read(one).unwrap());
    assert!(segments.iter().all(|segment| segment.exists()), "the segments stay where they are");
}

#[test]
fn snapshot_of_a_segment_has_exactly_its_live_documents() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let segments = [built(dir, "a", &params(), 0..10), built(dir, "b", &params(), 10..30)];
    Index::adopt(dir.join("all"), params(), &segments).unwrap();
    let index = Index::open(dir.join("all")).unwrap();
    let mut writer = index.writer().unwrap();
    writer.delete("page-0012").unwrap();
    writer.put("new", &index.sketcher().unwrap().sketch("in no segment yet").unwrap()).unwrap();
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    assert_eq!(snapshot.documents(), 30);
    let (first, second) = (snapshot.of_segment(0).unwrap(), snapshot.of_segment(1).unwrap());
    assert_eq!((first.documents(), second.documents()), (10, 19));
    assert!(first.contains("page-0003").unwrap() && !first.contains("page-0013").unwrap());
    assert!(second.contains("page-0013").unwrap() && !second.contains("page-0012").unwrap());
    let refusal = snapshot.of_segment(2).unwrap_err().to_string();
    assert!(refusal.contains("segment 2: this index has 2"), "{refusal}");
}

#[test]
fn adopt_refuses_other_parameters_duplicate_keys_and_existing_paths() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let a = built(dir, "a", &params(), 0..10);
    let twice = built(dir, "twice", &params(), 9..12);
    let wider = Params::builder().words(3).simhash(3).minhash(20, 6).build().unwrap();
    let other = built(dir, "other", &wider, 20..22);
    let path = dir.join("all");
    match Index::adopt(&path, params(), &[&a, &other]).unwrap_err() {
        Error::ParamsMismatch { field, index, given } => {
            assert!(field.starts_with("width") && field.contains("other"), "{field}");
            assert_eq!((index.as_str(), given.as_str()), ("2", "3"));
        }
        error => panic!("{error}"),
    }
    let refusal = Index::adopt(&path, params(), &[&a, &twice]).unwrap_err().to_string();
    assert!(refusal.contains("`page-0009`") && refusal.contains("twice"), "{refusal}");
    assert!(!path.exists());
    assert!(matches!(Index::adopt(dir.join("a"), params(), &[&a]), Err(Error::AlreadyExists { .. })));
    assert_eq!(Index::adopt(&path, params(), &[] as &[PathBuf]).unwrap(), 0);
    assert_eq!(Index::open(&path).unwrap().snapshot().documents(), 0);
}
