//! The bodies of the targets `bands` and `living`: band sections with arbitrary features, and an index with an arbitrary
//! sequence of operations on a failing disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use twindex::format::bands::key as first_bits;
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment};
use twindex::store::verify::verify;
use twindex::sys::Vfs;
use twindex::{
    Document, Error, Index, Key, KeyBuf, Params, Result, Sketch, Sketcher, Snapshot, Writer, WriterOptions,
};

use super::super::faults::{Faults, FaultyVfs};
use super::super::model::ModelVfs;
use super::super::{Seals, SegmentQueries, bytes_of, place};
use super::{Choices, patch};

/// Builds bands of arbitrary features. Each bucket must equal the one found by comparing all documents. After patches
/// with updated checksums, every query must return an answer or an error.
pub fn bands(data: &[u8]) {
    let mut choices = Choices(data);
    let (bands, crowd) = (1 + usize::from(choices.byte()) % 4, usize::from(choices.byte()));
    let patches = usize::from(choices.byte()) % 16 * 4;
    let (patches, rest) = choices.0.split_at(patches.min(choices.0.len()));
    choices.0 = rest;
    let bits = [0, 1, 8][crowd % 3];
    let kept = [32, 8, 1, 17][crowd / 3 % 4];
    let params =
        Params::builder().u64_keys().minhash(bands as u16, 1).signature_bits(bits).feature_bits(kept);
    let (params, kept) = (params.build().unwrap(), u32::from(kept));
    let mut all: Vec<Option<Vec<u64>>> = Vec::new();
    while !choices.0.is_empty() && all.len() < 1500 {
        let how = choices.byte();
        if how == 255 {
            all.push(None);
            continue;
        }
        let features: Vec<u64> = (0..bands)
            .map(|band| {
                let what = u64::from(choices.short());
                match how >> (2 * band) & 3 {
                    0 => what << 48,
                    1 => what.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                    2 => (what & 3) << 32 | what >> 2,
                    _ => u64::MAX << (what % 64),
                }
            })
            .collect();
        // Sometimes adds many documents with the same features, to fill a bucket.
        let times = if how & 0x70 == 0x70 { crowd } else { 1 };
        all.extend(std::iter::repeat_n(Some(features), times));
    }
    let mut records = Records::new(&params);
    let signature = vec![0; params.minhash.map_or(0, |m| m.signature_bytes())];
    for (number, features) in (0..).zip(&all) {
        let kept =
            features.as_ref().map(|features| Kept { features, signature: &signature, ..Kept::default() });
        records.push(Key::U64(number), kept).unwrap();
    }
    let sound = bytes_of(&records);
    let segment = Segment::from_bytes(sound.clone(), place()).unwrap();
    assert!(segment.verify(|_| ()).is_empty());
    for band in 0..bands {
        let mut buckets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (ordinal, features) in (0..).zip(&all) {
            if let Some(features) = features {
                buckets.entry(first_bits(features[band], kept)).or_default().push(ordinal);
            }
        }
        let ask = |feature: u64| {
            let mut found = Vec::new();
            segment.same_feature(band, feature, |ordinal| found.push(ordinal)).unwrap();
            found
        };
        for (&key, ordinals) in buckets.iter().take(200) {
            assert_eq!(ask(u64::from(key) << 32 | 0x4D), *ordinals, "band {band}, key {key:x}");
            for other in [key ^ 1, key.wrapping_add(1 << 16)] {
                let expected =
                    buckets.get(&first_bits(u64::from(other) << 32, kept)).cloned().unwrap_or_default();
                assert_eq!(ask(u64::from(other) << 32), expected, "band {band}, key {other:x}");
            }
        }
        buckets.retain(|_, ordinals| ordinals.len() > 1);
        let mut found = BTreeMap::new();
        segment
            .for_each_bucket(band, |key, ordinals| {
                found.insert(key, ordinals.to_vec());
                Ok(())
            })
            .unwrap();
        assert_eq!(found, buckets, "band {band}");
    }
    if !patches.is_empty() {
        let mut file = sound;
        let seals = Seals::of(&file);
        let questions = SegmentQueries::of(&segment, &[0]);
        patch(&mut file, patches);
        seals.reseal(&mut file, true);
        if let Ok(segment) = Segment::from_bytes(file, place()) {
            questions.ask(&segment);
            segment.verify(|_| ());
        }
    }
}

type Documents = BTreeMap<u8, (u8, u8)>;

const DIR: &str = "/index";

fn text(number: u8) -> String {
    // Some texts are near each other, and some have no words.
    if number % 16 == 15 {
        return String::new();
    }
    let word = |i| format!("w{}", if i < 7 { u32::from(number / 8) * 9 + i } else { u32::from(number) });
    (0..9).map(word).collect::<Vec<_>>().join(" ")
}

fn name(numbers: bool, key: u8) -> KeyBuf {
    if numbers {
        KeyBuf::U64(u64::from(key) << (key % 50))
    } else {
        KeyBuf::Bytes(format!("{}{key}", "prefix".repeat(usize::from(key % 3))).into_bytes().into())
    }
}

fn check(snapshot: &Snapshot, numbers: bool, expected: &Documents, sketches: &[Sketch]) -> Result<()> {
    assert_eq!(snapshot.documents(), expected.len() as u64);
    let values = snapshot.params().values;
    let mut near = 0;
    for key in 0..32 {
        let record = snapshot.get(name(numbers, key).as_key())?;
        assert_eq!(record.is_some(), expected.contains_key(&key), "key {key}");
        let Some((record, &(number, value))) = record.zip(expected.get(&key)) else { continue };
        let sketch = &sketches[usize::from(number)];
        if snapshot.params().simhash.is_some() && number % 16 != 15 {
            assert_eq!(record.fingerprint, sketch.fingerprint(), "key {key}");
        }
        assert_eq!(record.value, values.then(|| vec![value; usize::from(value % 5)]), "key {key}");
        if near < 4 && number % 16 != 15 {
            near += 1;
            let found = snapshot.near(sketch).unverified().run()?;
            assert!(found.hits.iter().any(|hit| hit.key == name(numbers, key)), "{key} is not near itself");
        }
    }
    Ok(())
}

/// The error that ended a run, and the states of the documents that the index may have after it.
struct FailedRun {
    allowed: Vec<Documents>,
    error: Error,
}

fn work(
    writer: &mut Writer,
    choices: &mut Choices<'_>,
    (numbers, keeps): (bool, bool),
    sketches: &[Sketch],
    committed: &mut Documents,
) -> std::result::Result<(), FailedRun> {
    let mut now = committed.clone();
    for _ in 0..60 {
        if choices.0.is_empty() {
            break;
        }
        let how = choices.byte();
        let (done, commits) = match how % 16 {
            0..=6 => {
                let (key, number, value) = (how / 8, choices.byte() % 64, choices.byte());
                let bytes = vec![value; if keeps { usize::from(value % 5) } else { 0 }];
                now.insert(key, (number, value));
                let document = Document::from(&sketches[usize::from(number)]).with_value(&bytes);
                (writer.put(name(numbers, key).as_key(), document), false)
            }
            7 | 8 => {
                let key = how / 8;
                now.remove(&key);
                (writer.delete(name(numbers, key).as_key()), false)
            }
            9 | 10 => (writer.commit().map(drop), true),
            11 => {
                writer
                    .set_options(
                        writer.options().memory(if how < 128 { 300 } else { 1 << 20 }).logged(how & 64 == 0),
                    )
                    .unwrap();
                (Ok(()), false)
            }
            12 if now == *committed => (writer.flush(), false),
            13 if now == *committed => (writer.merge_step().map(drop), false),
            14 => (writer.compact().map(drop), true),
            15 if now == *committed => (writer.gc().map(drop), false),
            _ => (Ok(()), false),
        };
        match done {
            Ok(()) if commits => committed.clone_from(&now),
            // A batch is not empty even if its only document was deleted again; other operations refuse to run then.
            Ok(()) | Err(Error::Invalid(_)) => {}
            Err(error) => {
                let mut allowed = vec![committed.clone()];
                if matches!(error, Error::AfterCommit { .. }) {
                    // The error occurred after the commit, which remains valid.
                    committed.clone_from(&now);
                    allowed = vec![now];
                } else if commits {
                    allowed.push(now);
                }
                return Err(FailedRun { allowed, error });
            }
        }
    }
    Ok(())
}

/// Performs arbitrary operations on an index while one disk operation fails, or all operations from one on. Afterwards
/// the index must contain exactly the acknowledged documents, and accept further operations.
pub fn living(data: &[u8]) {
    let mut choices = Choices(data);
    let (kind, how, fails_at) = (choices.byte(), choices.byte(), usize::from(choices.short()) % 512);
    let numbers = kind & 1 == 1;
    let mut builder = Params::builder().words(1);
    if numbers {
        builder = builder.u64_keys();
    }
    if kind & 6 != 6 {
        builder = builder.simhash(3);
    }
    if kind & 6 != 0 {
        builder = builder.minhash(2, 2).signature_bits(if kind & 64 == 0 { 8 } else { 0 });
        builder = builder.feature_bits(if kind & 128 == 0 { 32 } else { 8 });
        if how & 8 != 0 {
            builder = builder.sets().marks().priorities();
        }
    }
    if kind & 8 != 0 {
        builder = builder.values();
    }
    if kind & 16 != 0 {
        builder = builder.bottom(3).modulus(if kind & 32 == 0 { 0 } else { 2 });
    }
    let params = builder.build().unwrap();
    let sketcher = Sketcher::new(&params).unwrap();
    let sketches: Vec<Sketch> = (0..64).map(|number| sketcher.sketch(&text(number)).unwrap()).collect();
    let disk = ModelVfs::default();
    let faults = Faults {
        fails_at,
        for_ever: how & 1 == 1,
        done_anyway: how & 2 == 2,
        full: how & 4 == 4,
        over: Some(Arc::new(disk.clone())),
        ..Faults::default()
    };
    let dir = Path::new(DIR);
    let faulty: Arc<dyn Vfs> = Arc::new(FaultyVfs(Arc::new(faults)));
    let mut committed = Documents::new();
    let ended = match Index::create_with(faulty, dir, params.clone()) {
        Err(_) => {
            match Index::open_with(Arc::new(disk.clone()), dir) {
                Ok(index) => assert_eq!(index.snapshot().documents(), 0),
                Err(error) => assert!(matches!(error, Error::NotAnIndex { .. }), "{error}"),
            }
            return;
        }
        Ok(index) => match index.writer() {
            Err(error) => Err(FailedRun { allowed: vec![committed.clone()], error }),
            Ok(mut writer) => {
                writer.set_options(writer.options().background_merges(false)).unwrap();
                let ended =
                    work(&mut writer, &mut choices, (numbers, params.values), &sketches, &mut committed);
                // Snapshots show the committed documents whatever fails; only reading them may fail.
                let _ = check(&index.snapshot(), numbers, &committed, &sketches);
                ended
            }
        },
    };
    let index = Index::open_with(Arc::new(disk.clone()), dir).unwrap();
    if let Err(FailedRun { allowed, .. }) = ended {
        let count = index.snapshot().documents();
        let has = |documents: &Documents| {
            let snapshot = index.snapshot();
            count == documents.len() as u64
                && (0..32).all(|key| {
                    let record = snapshot.get(name(numbers, key).as_key()).unwrap();
                    let expected = documents.get(&key);
                    match (record, expected) {
                        (None, None) => true,
                        (Some(record), Some(&(number, value))) => {
                            // Two allowed states may differ only in the sketch of one document.
                            let near =
                                snapshot.near(&sketches[usize::from(number)]).unverified().run().unwrap();
                            let is = name(numbers, key);
                            (number % 16 == 15 || near.hits.iter().any(|hit| hit.key == is))
                                && (!params.values
                                    || record.value == Some(vec![value; usize::from(value % 5)]))
                        }
                        _ => false,
                    }
                })
        };
        let found = allowed.into_iter().find(|documents| has(documents));
        committed = found.unwrap_or_else(|| panic!("{count} documents, and not what was committed"));
    }
    check(&index.snapshot(), numbers, &committed, &sketches).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let rest = work(&mut writer, &mut choices, (numbers, params.values), &sketches, &mut committed);
    assert!(rest.is_ok(), "a disk that is sound again: {}", rest.unwrap_err().error);
    drop(writer);
    let snapshot = Index::open_with(Arc::new(disk.clone()), dir).unwrap().snapshot();
    check(&snapshot, numbers, &committed, &sketches).unwrap();
    let findings = verify(&disk, dir, |_| ());
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
}

pub(super) fn bands_seeds() -> Vec<Vec<u8>> {
    let mut random = super::super::Random(8);
    let mut seed = |bands: u8, crowd: u8, patches: u8, size: usize| {
        let mut seed = vec![bands, crowd, patches];
        seed.extend((0..size).map(|_| random.next() as u8));
        seed
    };
    vec![seed(0, 0, 0, 0), seed(0, 3, 0, 30), seed(1, 200, 2, 300), seed(3, 250, 5, 900), seed(2, 1, 9, 4000)]
}

pub(super) fn living_seeds() -> Vec<Vec<u8>> {
    let mut random = super::super::Random(9);
    let mut seeds = Vec::new();
    for (place, kind) in [0, 1, 2, 6, 8 + 2, 16 + 4, 32 + 16 + 8 + 3, 64 + 7, 255].into_iter().enumerate() {
        // Each kind of index gets a third of the failures, so that three kinds together get all of them.
        let ways = [(0, 0), (1, 20), (2, 40), (4, 61), (7, 90), (3, 150)];
        for (how, fails_at) in ways.into_iter().skip(place % 3).step_by(3) {
            // Every other kind of index stores sets and marks, if it has minima.
            let mut seed = vec![kind, how | if place % 2 == 1 { 8 } else { 0 }, fails_at, 0];
            // Adds puts and deletes, with commits and all other operations between them.
            for i in 0..60_u8 {
                seed.extend([
                    (random.next() as u8 & 0xF0) | (i % 7),
                    random.next() as u8,
                    random.next() as u8,
                ]);
                if i % 4 == 3 {
                    seed.extend([9, [12, 13, 14, 15, 11, 139][usize::from(i / 4 % 6)]]);
                }
            }
            seeds.push(seed);
        }
    }
    seeds
}
