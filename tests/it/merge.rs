//! Tests that a merged segment is byte for byte equal to a segment built from the live records, for any replacements,
//! deletes, parameters and memory limits: a segment depends on its content and not on its history. Also tests that
//! compaction of an index is as atomic as a commit.

#![allow(clippy::disallowed_methods, reason = "reads and damages the files of an index directly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::faults::{Faults, FaultyVfs, ways};
use crate::support::memory::MemoryVfs;
use crate::support::random::Random;
use roaring::RoaringBitmap;
use tempfile::TempDir;
use twindex::params::KeyKind;
use twindex::segment::merge::{MergeInput, merge};
use twindex::segment::records::Kept;
use twindex::segment::rows::Rows;
use twindex::segment::spilled::SpillBudget;
use twindex::segment::{Records, Segment, build};
use twindex::{Error, Fingerprint, Index, Key, KeyBuf, Params, Snapshot, Writer, WriterOptions};

/// A record as a caller passes it. The parameters decide which of its parts are stored.
#[derive(Clone, Debug)]
struct Document {
    fingerprint: u64,
    features: Vec<u64>,
    signature: Vec<u8>,
    bottom: Vec<u64>,
    modular: Vec<u64>,
}

/// An operation on a key: `Some(Some(_))` puts a document, `Some(None)` puts one without a sketch, and `None` deletes.
type Operation = Option<Option<Document>>;

impl Document {
    fn random(random: &mut Random, params: &Params) -> Self {
        let (bands, bytes) = params.minhash.map_or((0, 0), |m| (usize::from(m.bands), m.signature_bytes()));
        let spare = params.minhash.map_or(0, |m| bytes * 8 - m.minima() * usize::from(m.signature_bits));
        // Some fingerprints and features are frequent, and some fingerprints differ in only one bit.
        let fingerprint = match random.below(4) {
            0 => random.below(5) as u64 * 0x0101_0101_0101_0101,
            1 => 0xABCD_0000_0000_0000 | 1 << random.below(48),
            _ => random.next(),
        };
        let features = (0..bands)
            .map(|_| {
                if random.below(3) == 0 {
                    random.below(4) as u64 * 0x4111_1111_1111_1111
                } else {
                    random.next()
                }
            })
            .collect();
        let mut signature: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
        if let Some(byte) = signature.last_mut() {
            *byte &= 0xFF >> spare;
        }
        let mut hashes = |count: usize, modulus: u64| {
            let mut hashes: Vec<u64> =
                (0..count).map(|_| (random.next() >> 16) / modulus * modulus).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let bottom = if params.bottom > 0 { hashes(usize::from(params.bottom), 1) } else { Vec::new() };
        let modular =
            if params.modulus > 0 { hashes(bottom.len() % 3, params.modulus.into()) } else { Vec::new() };
        Self { fingerprint, features, signature, bottom, modular }
    }

    fn kept(&self) -> Kept<'_> {
        Kept {
            fingerprint: self.fingerprint,
            features: &self.features,
            signature: &self.signature,
            bottom: &self.bottom,
            modular: &self.modular,
        }
    }
}

fn key(params: &Params, number: u64) -> KeyBuf {
    match params.key {
        KeyKind::U64 => KeyBuf::U64(number),
        // Neighbouring keys share long prefixes, and some keys are prefixes of other keys.
        KeyKind::Bytes => KeyBuf::Bytes(format!("https://example.org/{number:b}").into_bytes().into()),
    }
}

fn records<'a>(params: &Params, words: impl Iterator<Item = (&'a u64, &'a Operation)>) -> Records {
    let mut records = Records::new(params);
    for (&number, word) in words {
        let key = key(params, number);
        match word {
            Some(document) => records.push(key.as_key(), document.as_ref().map(Document::kept)).unwrap(),
            None => records.delete(key.as_key()).unwrap(),
        }
    }
    records
}

fn bytes_of(records: &Records) -> Vec<u8> {
    bytes_on_threads(records, 1)
}

fn bytes_on_threads(records: &Records, threads: usize) -> Vec<u8> {
    let vfs = MemoryVfs::default();
    let built = build::build_on_threads(records, &vfs, Path::new(""), threads, 1 << 30).unwrap();
    built.publish(Path::new("built.seg")).unwrap();
    vfs.get(Path::new("built.seg"))
}

/// Returns parameters that together use every section, and several designs and codecs.
fn all_params() -> Vec<Params> {
    let numbers = || Params::builder().u64_keys().simhash(3);
    let mut all = vec![
        numbers().build().unwrap(),
        Params::builder().words(2).simhash(3).minhash(2, 2).signature_bits(8).build().unwrap(),
        Params::builder().u64_keys().minhash(2, 3).signature_bits(1).build().unwrap(),
        Params::builder().minhash(1, 1).signature_bits(0).build().unwrap(),
        numbers().bottom(3).modulus(3).build().unwrap(),
        Params::builder().minhash(1, 2).signature_bits(0).bottom(30).build().unwrap(),
        Params::builder().simhash(3).minhash(3, 1).signature_bits(4).modulus(2).build().unwrap(),
        Params::builder().u64_keys().minhash(3, 1).signature_bits(0).feature_bits(8).build().unwrap(),
        Params::builder().simhash(3).minhash(2, 1).signature_bits(1).feature_bits(3).build().unwrap(),
    ];
    for (design, codec) in [
        ("blocks-4", "planes+3"),
        ("blocks-4", "planes+4"),
        ("blocks-2", "compact"),
        ("blocks-4", "manku"),
        ("choose-5-2", "plain"),
        ("nested-4-4", "compact+2"),
        ("random-3-20-7", "planes"),
        ("expansion", "plain"),
    ] {
        all.push(
            numbers()
                .tables(
                    design.parse().unwrap(),
                    codec.parse().map(twindex::design::CodecChoice::Named).unwrap(),
                )
                .build()
                .unwrap(),
        );
    }
    all
}

struct Batches {
    /// The batches of operations, in order. Each batch becomes a segment; its operations are in key order.
    words: Vec<BTreeMap<u64, Operation>>,
    live: BTreeMap<u64, Operation>,
}

impl Batches {
    fn random(random: &mut Random, params: &Params, batches: usize, max: usize, keys: usize) -> Self {
        let (mut words, mut live) = (Vec::new(), BTreeMap::new());
        for _ in 0..batches {
            let mut batch = BTreeMap::new();
            for _ in 0..random.below(max + 1) {
                let word = match random.below(10) {
                    0 | 1 => None,
                    2 => Some(None),
                    _ => Some(Some(Document::random(random, params))),
                };
                batch.insert(random.below(keys) as u64 * 3 % 1000 + 5, word);
            }
            live.extend(batch.iter().map(|(&key, word)| (key, word.clone())));
            words.push(batch);
        }
        live.retain(|_, word| word.is_some());
        Self { words, live }
    }

    /// Returns the segments, each with the ordinals of documents that later batches replaced or deleted. If `resolved` is
    /// false, the ordinals are only those of deleted documents, so that the merge must select the newest record of a key.
    fn segments(&self, params: &Params, resolved: bool) -> Vec<(Segment, RoaringBitmap)> {
        let open = |batch: &BTreeMap<u64, Operation>| {
            let bytes = bytes_of(&records(params, batch.iter()));
            Segment::from_bytes(bytes, Path::new("000001.seg")).unwrap()
        };
        let mut segments: Vec<(Segment, RoaringBitmap)> = Vec::new();
        for batch in &self.words {
            for (&number, word) in batch {
                for (segment, deleted) in &mut segments {
                    if let (Some(ordinal), true) =
                        (segment.find(key(params, number).as_key()).unwrap(), resolved || word.is_none())
                    {
                        deleted.insert(ordinal);
                    }
                }
            }
            // A batch without documents creates no segment.
            if batch.values().any(Option::is_some) {
                segments.push((open(batch), RoaringBitmap::new()));
            }
        }
        segments
    }
}

fn merged(segments: &[(Segment, RoaringBitmap)], budget: SpillBudget<'_>) -> Vec<u8> {
    let inputs: Vec<MergeInput<'_>> =
        segments.iter().map(|(segment, deleted)| MergeInput { segment, deleted }).collect();
    let vfs = MemoryVfs::default();
    merge(&inputs, &vfs, Path::new(""), budget).unwrap().publish(Path::new("merged.seg")).unwrap();
    vfs.get(Path::new("merged.seg"))
}

#[test]
fn merged_segment_equals_a_build_of_the_live_records_on_any_number_of_threads() {
    let scratch = tempfile::tempdir().unwrap();
    let mut random = Random(4);
    let (mut cases, mut empty) = (0, 0);
    for params in all_params() {
        for round in 0..30 {
            let batches = 1 + random.below(8);
            // Draws from 300 keys, so that few repeat, or from 12 keys, so that nearly all repeat.
            let keys = if round % 2 == 0 { 300 } else { 12 };
            let max = [2, 3, 20, 60][round % 4];
            let mut batches = Batches::random(&mut random, &params, batches, max, keys);
            if round % 10 == 9 {
                // Adds a batch that deletes all documents.
                batches.words.push(batches.live.keys().map(|&key| (key, None)).collect());
                batches.live.clear();
            }
            if !batches.words.iter().any(|batch| batch.values().any(Option::is_some)) {
                continue;
            }
            let live = records(&params, batches.live.iter());
            let expected = bytes_of(&live);
            for (resolved, memory, threads) in [
                (true, usize::MAX, 1),
                (true, 1, 3),
                (false, 5000, 1),
                (false, 1 << 30, 2),
                (true, 1 << 30, 16),
            ] {
                let segments = batches.segments(&params, resolved);
                let found = merged(&segments, SpillBudget::new(memory, scratch.path()).on_threads(threads));
                let case = format!("round {round}, {memory} bytes, {threads} threads: {}", params.encode());
                assert!(found == expected, "merged, {case}");
                assert!(bytes_on_threads(&live, threads) == expected, "built, {case}");
            }
            cases += 1;
            empty += usize::from(batches.live.is_empty());
        }
    }
    println!("{cases} cases, {empty} of them without a live document");
    assert!(cases > 400 && empty > 10, "{cases} {empty}");
}

#[test]
fn segments_larger_than_the_memory_are_merged_in_stripes() {
    let scratch = tempfile::tempdir().unwrap();
    let mut random = Random(9);
    for params in [
        Params::builder().u64_keys().simhash(3).build().unwrap(),
        Params::builder().simhash(3).minhash(2, 1).signature_bits(4).bottom(2).build().unwrap(),
    ] {
        let mut words = Vec::new();
        for batch in 0..8_u64 {
            let documents = 0..if batch == 0 { 6000 } else { 700 };
            let words_of = documents.map(|_| {
                let number = random.next() % 100_000;
                (number, (random.below(20) > 0).then(|| Some(Document::random(&mut random, &params))))
            });
            words.push(words_of.collect::<BTreeMap<u64, Operation>>());
        }
        let mut live: BTreeMap<u64, Operation> =
            words.iter().flatten().map(|(&k, w)| (k, w.clone())).collect();
        live.retain(|_, word| word.is_some());
        let batches = Batches { words, live };
        let expected = bytes_of(&records(&params, batches.live.iter()));
        let segments = batches.segments(&params, true);
        for (memory, threads) in [(1 << 30, 1), (1 << 18, 2), (1 << 14, 3), (1 << 30, 16)] {
            let found = merged(&segments, SpillBudget::new(memory, scratch.path()).on_threads(threads));
            assert!(found == expected, "{memory} bytes, {threads} threads: {}", params.encode());
        }
    }
}

#[test]
fn built_segment_does_not_depend_on_row_order_memory_or_threads() {
    let scratch = tempfile::tempdir().unwrap();
    let mut random = Random(17);
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    for count in [0, 1, 5, 300, 20_000] {
        // The kinds of keys: row positions; ascending keys; keys in random order, many of them repeated and some deleted.
        for kind in 0..3 {
            let mut all = Records::new(&params);
            let mut parts = Vec::new();
            for number in 0..count {
                if number % 1000 == 0 {
                    parts.push(Records::new(&params));
                }
                let number = match kind {
                    0 => number,
                    1 => number * number,
                    _ => random.next() % (count * 2 / 3 + 1),
                };
                let document = Document::random(&mut random, &params);
                for records in [Some(&mut all), parts.last_mut()].into_iter().flatten() {
                    match (kind, document.fingerprint % 9) {
                        (2, 0) => records.delete(Key::U64(number)),
                        (2, 1) => records.push(Key::U64(number), None),
                        _ => records.push(Key::U64(number), Some(document.kept())),
                    }
                    .unwrap();
                }
            }
            let expected = bytes_of(&all);
            for (memory, threads) in [(1 << 30, 1), (1 << 18, 2), (1 << 12, 3), (1 << 30, 16)] {
                let budget = SpillBudget::new(memory, scratch.path()).on_threads(threads);
                let mut rows = Rows::new(budget).unwrap();
                parts.iter().try_for_each(|records| rows.append(records, budget)).unwrap();
                let vfs = MemoryVfs::default();
                let mut hidden = Vec::new();
                let built = rows.build(&params, &vfs, Path::new(""), budget, |key| {
                    hidden.push(KeyBuf::U64(key));
                    Ok(())
                });
                built.unwrap().publish(Path::new("rows.seg")).unwrap();
                assert!(
                    vfs.get(Path::new("rows.seg")) == expected,
                    "{count} rows, kind {kind}, {memory} bytes, {threads} threads"
                );
                assert!(hidden.iter().map(KeyBuf::as_key).eq(all.keys()), "{count} rows, kind {kind}");
            }
        }
    }
}

#[test]
fn merge_refuses_differing_parameters_and_empty_input() {
    let open = |params: &Params| {
        let mut records = Records::new(params);
        records.push(Key::U64(1), Some(Kept { fingerprint: 9, ..Kept::default() })).unwrap();
        Segment::from_bytes(bytes_of(&records), Path::new("000001.seg")).unwrap()
    };
    let (three, four) = (open(&raw()), open(&Params::builder().u64_keys().simhash(4).build().unwrap()));
    let none = RoaringBitmap::new();
    let budget = SpillBudget::new(1 << 20, Path::new(""));
    let both = [&three, &four].map(|segment| MergeInput { segment, deleted: &none });
    for inputs in [&both[..], &[]] {
        let refused = merge(inputs, &MemoryVfs::default(), Path::new(""), budget);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

#[test]
fn merge_of_damaged_input_never_writes_a_wrong_segment() {
    let mut random = Random(23);
    let mut refused = 0;
    for params in all_params() {
        let mut batches = Batches::random(&mut random, &params, 3, 60, 300);
        while batches.words.iter().any(|batch| batch.len() < 5) {
            batches = Batches::random(&mut random, &params, 3, 60, 300);
        }
        let expected = bytes_of(&records(&params, batches.live.iter()));
        let sound = bytes_of(&records(&params, batches.words[0].iter()));
        let segments = batches.segments(&params, true);
        for _ in 0..40 {
            let mut bytes = sound.clone();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            let Ok(damaged) = Segment::from_bytes(bytes, Path::new("000001.seg")) else {
                refused += 1;
                continue;
            };
            let deleted = [&segments[0].1, &segments[1].1, &segments[2].1];
            let inputs = [&damaged, &segments[1].0, &segments[2].0];
            let inputs: Vec<MergeInput<'_>> = inputs
                .iter()
                .zip(deleted)
                .map(|(segment, deleted)| MergeInput { segment, deleted })
                .collect();
            let vfs = MemoryVfs::default();
            let budget = SpillBudget::new(1 << 30, Path::new("")).on_threads(1 + at % 3);
            match merge(&inputs, &vfs, Path::new(""), budget) {
                Err(error) => {
                    assert!(error.is_corruption(), "{error:?}");
                    refused += 1;
                }
                // The merge may succeed if it does not read the damaged part. It does not read tables, for example, but
                // rebuilds them.
                Ok(built) => {
                    built.publish(Path::new("merged.seg")).unwrap();
                    assert!(vfs.get(Path::new("merged.seg")) == expected, "byte {at}: {}", params.encode());
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn failed_write_on_any_thread_ends_the_build_and_leaves_no_file() {
    let (params, mut random) = (raw(), Random(31));
    let mut all = Records::new(&params);
    for key in 0..400_000 {
        let fingerprint = random.next();
        all.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
    }
    for threads in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        let mut failed = 0;
        for fails_at in 1.. {
            let vfs = FaultyVfs(Arc::new(Faults { fails_at, full: true, ..Faults::default() }));
            match build::build_on_threads(&all, &vfs, dir.path(), threads, 1 << 30) {
                Ok(_) => break,
                Err(Error::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::StorageFull),
                Err(other) => panic!("{other:?}"),
            }
            assert_eq!(files(), 0, "operation {fails_at}, {threads} threads");
            failed += 1;
        }
        assert!(failed > 5, "{failed}");
    }
}

fn raw() -> Params {
    Params::builder().u64_keys().simhash(3).build().unwrap()
}

fn created(params: Params) -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, params).unwrap();
    (dir, path, index)
}

/// Returns the bytes of the only segment of an index; empty if it has no segment.
fn only_segment(path: &Path) -> Option<Vec<u8>> {
    let mut segments = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "seg"));
    let first = segments.next().map(|path| std::fs::read(path).unwrap());
    assert_eq!(segments.next(), None);
    first
}

/// The documents of an index of raw fingerprints, and the results of queries.
type IndexAnswers = (BTreeMap<String, Fingerprint>, Vec<Vec<(String, u32)>>);

fn answers(snapshot: &Snapshot) -> IndexAnswers {
    let mut found = BTreeMap::new();
    for (segment, deleted) in snapshot.segments() {
        assert_eq!(segment.verify(|_| ()).len(), 0);
        for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
            let key = segment.key(ordinal).unwrap();
            let record = snapshot.get(key.as_key()).unwrap().unwrap();
            assert_eq!(found.insert(key.to_string(), record.fingerprint.unwrap()), None);
        }
    }
    let near = found.values().map(|&fingerprint| {
        let hits = snapshot.within(fingerprint, 3).run().unwrap().hits;
        hits.iter().map(|hit| (hit.key.to_string(), hit.distance.unwrap())).collect()
    });
    let near = near.collect();
    (found, near)
}

#[test]
fn compaction_writes_the_segment_of_a_fresh_index() {
    let (_dir, path, index) = created(raw());
    let mut random = Random(31);
    let mut live = BTreeMap::new();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for _ in 0..9 {
        for _ in 0..random.below(200) {
            let key = random.below(400) as u64;
            if random.below(5) == 0 {
                writer.delete(key).unwrap();
                live.remove(&key);
            } else {
                let fingerprint = (random.next() % 7) << random.below(60);
                writer.put(key, Fingerprint(fingerprint)).unwrap();
                live.insert(key, fingerprint);
            }
        }
        writer.commit().unwrap();
    }
    assert!(index.snapshot().segments().len() > 3);
    let before = index.snapshot();
    let expected = answers(&before);
    // Compaction also merges the uncommitted batch.
    writer.put(10_000, Fingerprint(77)).unwrap();
    live.insert(10_000, 77);
    let generation = writer.compact().unwrap();
    assert_eq!(answers(&before), expected, "a snapshot stays as it is");
    assert_eq!((index.snapshot().generation(), index.snapshot().segments().len()), (generation, 1));

    let (_other_dir, other, fresh) = created(raw());
    let mut fresh_writer = fresh.writer_with(WriterOptions::default().logged(false)).unwrap();
    for (&key, &fingerprint) in &live {
        fresh_writer.put(key, Fingerprint(fingerprint)).unwrap();
    }
    fresh_writer.commit().unwrap();
    assert!(only_segment(&path) == only_segment(&other));
    assert_eq!(answers(&index.snapshot()), answers(&fresh.snapshot()));
    assert_eq!(answers(&Index::open(&path).unwrap().snapshot()), answers(&fresh.snapshot()));
    assert_eq!(writer.compact().unwrap(), generation, "there is nothing more to do");
    drop(writer);
    assert_eq!(index.compact().unwrap(), generation);
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    live.keys().try_for_each(|&key| writer.delete(key)).unwrap();
    writer.compact().unwrap();
    assert_eq!((index.snapshot().segments().len(), only_segment(&path)), (0, None));
}

#[test]
fn batch_larger_than_memory_becomes_one_segment_on_request() {
    for (params, raw) in
        [(raw(), true), (Params::builder().words(1).simhash(3).minhash(4, 2).build().unwrap(), false)]
    {
        let fill = |writer: &mut Writer, index: &Index| {
            let sketcher = index.sketcher().unwrap();
            for i in 0..300_u64 {
                let key = i * 7 % 90;
                match (raw, i % 11) {
                    (true, 5) => writer.delete(key).unwrap(),
                    (true, _) => writer.put(key, Fingerprint(i)).unwrap(),
                    (false, 5) => writer.delete(key.to_string().as_str()).unwrap(),
                    (false, _) => writer
                        .put(
                            key.to_string().as_str(),
                            &sketcher.sketch(&format!("one two {i} four {key}")).unwrap(),
                        )
                        .unwrap(),
                }
            }
        };
        let (_dir, path, index) = created(params.clone());
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        fill(&mut writer, &index);
        writer.commit().unwrap();
        let expected = only_segment(&path);
        for memory in [300, 3000] {
            let (_dir, path, index) = created(params.clone());
            let mut writer = index
                .writer_with(WriterOptions::default().logged(false).memory(memory).one_segment(true))
                .unwrap();
            fill(&mut writer, &index);
            assert_eq!(writer.commit().unwrap(), 2);
            assert!(only_segment(&path) == expected, "{memory} bytes");
            // A second batch replaces documents of the first, and becomes another segment.
            fill(&mut writer, &index);
            writer.commit().unwrap();
            assert!(only_segment(&path) == expected, "{memory} bytes, again");
            let live = index.snapshot().documents();
            drop(writer);
            assert_eq!(Index::open(&path).unwrap().snapshot().documents(), live);
        }
    }
}

fn map<const N: usize>(documents: [(u64, u64); N]) -> BTreeMap<String, Fingerprint> {
    documents.map(|(key, fingerprint)| (key.to_string(), Fingerprint(fingerprint))).into()
}

/// Creates an index with three committed segments, in which some documents were replaced or deleted.
fn before() -> (TempDir, PathBuf, BTreeMap<String, Fingerprint>) {
    let (dir, path, index) = created(raw());
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for (key, fingerprint) in [(1, 1), (2, 2), (3, 3)] {
        writer.put(key, Fingerprint(fingerprint)).unwrap();
    }
    writer.commit().unwrap();
    writer.put(3, Fingerprint(33)).unwrap();
    writer.put(4, Fingerprint(4)).unwrap();
    writer.commit().unwrap();
    writer.delete(1).unwrap();
    writer.put(5, Fingerprint(4)).unwrap();
    writer.commit().unwrap();
    drop(writer);
    (dir, path, map([(2, 2), (3, 33), (4, 4), (5, 4)]))
}

#[test]
fn compaction_with_a_failing_operation_is_atomic() {
    let compacted = {
        let (_dir, path, _) = before();
        Index::open(&path).unwrap().compact().unwrap();
        only_segment(&path)
    };
    let (mut points, mut new) = (0, 0);
    for way in 0..ways().count() {
        for fails_at in 1.. {
            let (_dir, path, documents) = before();
            let faults = Arc::new(Faults { fails_at, ..ways().nth(way).unwrap() });
            let vfs = Arc::new(FaultyVfs(Arc::clone(&faults)));
            let mut opened = None;
            let done = Index::open_with(vfs, &path).and_then(|index| opened.insert(index).compact());
            let Some(failed) = faults.failed.lock().unwrap().clone() else {
                done.unwrap();
                break; // compaction performs fewer operations than this number
            };
            points += 1;
            let case = format!("{failed}, way {way}: {done:?}");
            let snapshot = Index::open(&path).unwrap().snapshot();
            assert_eq!(answers(&snapshot).0, documents, "{case}");
            let is_new = done.is_ok() || faults.current_replaced.load(Ordering::Relaxed);
            assert_eq!(snapshot.segments().len(), if is_new { 1 } else { 3 }, "{case}");
            new += usize::from(is_new);
            if let Some(index) = opened {
                assert_eq!(answers(&index.snapshot()).0, documents, "{case}: readers go on");
            }
            // The next writer removes garbage, and its compaction gives the same result.
            let index = Index::open(&path).unwrap();
            index.compact().unwrap();
            assert_eq!(answers(&index.snapshot()).0, documents, "{case}: again");
            assert!(only_segment(&path) == compacted, "{case}: again");
            assert!(std::fs::read_dir(&path).unwrap().count() <= 5, "{case}: no files are left over");
        }
    }
    println!("{points} fault points; the new state was kept after {new}");
    assert!(points > 100 && new > 0, "{points} {new}");
}
