//! Tests an index that stores fewer than 32 bits of each feature. In all states (log, segments, merged), it must
//! answer like an index with 32 bits that is queried with the same number of bits. The measured acceptance must match the
//! formula.

#![allow(clippy::disallowed_methods, reason = "puts a log in the place of an index's own")]

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use twindex::format::attached::Attached;
use twindex::format::log::{LogBatch, encode_head, record_salt};
use twindex::format::manifest::Manifest;
use twindex::format::sketches::Row;
use twindex::params::{Family, ParamsBuilder, Shingling, Tokens};
use twindex::params::{FeatureScheme, Preset};
use twindex::sketch::Scratch;
use twindex::store::OnConflict;
use twindex::store::salvage::salvage;
use twindex::store::snapshot::Place;
use twindex::store::verify::verify;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Index, Params, Sketch, Sketcher, Snapshot, WriterOptions};
use twindex_join::{Agreement, candidates, candidates_across, candidates_agreeing};
use twindex_kernel::splitmix::SplitMix;

fn of_sets(params: ParamsBuilder) -> Params {
    let shingling = Shingling::words(1, 0).with_tokens(Tokens::Features).unwrap();
    params.u64_keys().shingling(shingling).build().unwrap()
}

/// Returns sketches of two sets of `size` elements with `both` common elements.
fn pair_of(sketcher: &Sketcher, (size, both): (usize, usize), random: &mut SplitMix) -> [Sketch; 2] {
    let common: Vec<u64> = (0..both).map(|_| random.next()).collect();
    [(); 2].map(|()| {
        let own = (both..size).map(|_| random.next());
        let set: Vec<u64> =
            common.iter().copied().chain(own).map(|element| sketcher.feature_number(element)).collect();
        let mut sketch = Sketch::default();
        sketcher.sketch_features(&set, &mut Scratch::default(), &mut sketch).unwrap();
        sketch
    })
}

/// Returns parameters of Broder's one-byte features, with `bits` bits stored per feature.
fn bytes_of(bits: u8) -> Params {
    of_sets(Params::builder().preset(Preset::SMALL_8).feature_bits(bits).signature_bits(0))
}

fn sketches(pairs: usize, random: &mut SplitMix) -> Vec<Sketch> {
    let sketcher = Sketcher::new(&bytes_of(8)).unwrap();
    let commons = [(100, 90), (100, 95), (100, 97)];
    (0..pairs).flat_map(|pair| pair_of(&sketcher, commons[pair % 3], random)).collect()
}

fn put(index: &Index, sketches: &[Sketch], from: usize) {
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for (key, sketch) in (from as u64..).zip(&sketches[from..]) {
        writer.put(key, sketch).unwrap();
    }
    writer.commit().unwrap();
}

/// Returns the keys of documents that agree with a document in at least `features` features, comparing `bits` bits.
fn hits(snapshot: &Snapshot, sketch: &Sketch, features: usize, bits: Option<u32>) -> Vec<u64> {
    let query = snapshot.resembling(sketch, 0.0).sharing(features);
    let query = bits.into_iter().fold(query, twindex::Query::feature_bits);
    let mut keys: Vec<u64> = query.run().unwrap().hits.iter().map(|hit| hit.key.as_u64().unwrap()).collect();
    keys.sort_unstable();
    keys
}

/// Checks that queries with all stored bits, and with fewer, return the same documents as comparing all pairs.
fn check(index: &Index, sketches: &[Sketch], what: &str) {
    let snapshot = index.snapshot();
    assert_eq!(snapshot.documents(), sketches.len() as u64, "{what}");
    for (features, bits) in [(1, 8), (3, 8), (7, 8), (2, 5), (8, 1)] {
        for asked in sketches.iter().step_by(29) {
            let agree = |other: &Sketch| {
                let both = asked.features().iter().zip(other.features());
                both.filter(|(a, b)| (*a ^ *b) >> (64 - bits) == 0).count() >= features
            };
            let expected = (0..).zip(sketches).filter(|(_, other)| agree(other)).map(|(key, _)| key);
            let expected: Vec<u64> = expected.collect();
            assert_eq!(hits(&snapshot, asked, features, Some(bits)), expected, "{what}: {features}, {bits}");
            if bits == 8 {
                assert_eq!(
                    hits(&snapshot, asked, features, None),
                    expected,
                    "{what}: all bits that are kept"
                );
            }
        }
    }
    let problems = verify(&RealVfs, index.path(), |_| ()).problems;
    assert!(problems.is_empty(), "{what}: {problems:?}");
}

fn index_of(dir: &TempDir, name: &str, bits: u8) -> Index {
    Index::create(dir.path().join(name), bytes_of(bits)).unwrap()
}

#[test]
fn feature_bytes_are_found_in_every_state_of_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let index = index_of(&dir, "index", 8);
    let all = sketches(300, &mut SplitMix(7));
    put(&index, &all[..200], 0);
    check(&index, &all[..200], "a log, read by its writer");
    let again = Index::open(index.path()).unwrap();
    assert_eq!(again.snapshot().logged_documents(), 200);
    check(&again, &all[..200], "a log, read again");
    index.writer().unwrap().flush().unwrap();
    assert_eq!(index.snapshot().entries().len(), 1);
    check(&index, &all[..200], "a segment");
    put(&index, &all[..450], 200);
    index.writer().unwrap().flush().unwrap();
    put(&index, &all, 450);
    let reopened = Index::open(index.path()).unwrap();
    let snapshot = reopened.snapshot();
    assert_eq!((snapshot.entries().len(), snapshot.logged_documents()), (2, 150));
    check(&reopened, &all, "two segments and a log");

    let out = dir.path().join("salvaged");
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    assert!(salvage(&vfs, index.path(), &out).unwrap().is_whole());
    check(&Index::open(&out).unwrap(), &all, "salvaged");

    let copy = dir.path().join("copy");
    reopened.copy_to(&copy).unwrap();
    let copy = Index::open(&copy).unwrap();
    check(&copy, &all, "a copy");
    let joined = dir.path().join("joined");
    Index::merge(&joined, &[copy], OnConflict::Refuse, 1 << 20).unwrap();
    check(&Index::open(&joined).unwrap(), &all, "shards joined");

    index.compact().unwrap();
    check(&index, &all, "merged");
    // The merged index must equal an index that was built in one step.
    let at_once = index_of(&dir, "at once", 8);
    put(&at_once, &all, 0);
    at_once.compact().unwrap();
    let digest =
        |index: &Index| index.snapshot().segments().map(|(segment, _)| segment.digest()).collect::<Vec<_>>();
    assert_eq!(digest(&index), digest(&at_once));
}

#[test]
fn log_with_unstored_band_key_bits_is_reported_as_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let all = sketches(1, &mut SplitMix(9));
    let index = index_of(&dir, "index", 8);
    put(&index, &all, 0);
    drop(index);
    let path = dir.path().join("index");
    let names = RealVfs.list(&path).unwrap();
    let newest = names.iter().filter(|name| name.to_str().unwrap().starts_with("MANIFEST-")).max().unwrap();
    let manifest = Manifest::decode(&std::fs::read(path.join(newest)).unwrap()).unwrap();
    let logged = manifest.logged.unwrap().logs[0];
    let log = |params: &Params| {
        let row = Row { features: all[0].features(), ..Row::default() };
        let mut batch = LogBatch::default();
        // Writes more records than the manifest reports as durable.
        (0..5_u64).for_each(|key| batch.put(params, key.into(), Some(row), Attached::default()));
        let mut bytes = encode_head(manifest.uuid, &bytes_of(8), logged.number, logged.first);
        let salt = record_salt(manifest.uuid, logged.number);
        batch.encode(&mut bytes, salt, 88, logged.first, 88, None);
        std::fs::write(path.join(format!("LOG-{:06}", logged.number)), bytes).unwrap();
        Index::open(&path)
    };
    let index = log(&bytes_of(8)).unwrap();
    assert_eq!(hits(&index.snapshot(), &all[0], 8, None), [0, 1, 2, 3, 4]);
    let refused = log(&bytes_of(32)).unwrap_err();
    assert!(refused.is_corruption(), "{refused}");
    for part in ["LOG-", "a band key of 8 bits above zeros"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
}

#[test]
fn short_features_give_the_answers_of_truncated_long_features() {
    let dir = tempfile::tempdir().unwrap();
    let all = sketches(400, &mut SplitMix(5));
    let (narrow, wide) = (index_of(&dir, "narrow", 8), index_of(&dir, "wide", 32));
    for index in [&narrow, &wide] {
        put(index, &all[..500], 0);
        index.writer().unwrap().flush().unwrap();
        put(index, &all, 500);
        index.compact().unwrap();
    }
    let (narrow, wide) = (narrow.snapshot(), wide.snapshot());
    let budget = (dir.path(), 1 << 20);
    let number = |place: Place<'_>| Ok(place.key()?.as_u64().map(|key| key as u32));
    let pairs = |found: twindex::Result<twindex_join::Candidates>| {
        let mut pairs = Vec::new();
        let each = |batch: &[(u32, u32)]| {
            pairs.extend_from_slice(batch);
            Ok::<_, twindex::Error>(())
        };
        found.unwrap().for_each_batch(each).unwrap();
        pairs
    };
    for features in [1, 3, 7] {
        let agreement = Agreement { features, bits: 8 };
        let asked = |snapshot| pairs(candidates_agreeing(snapshot, agreement, 10_000, budget, number));
        assert_eq!(asked(&narrow), asked(&wide), "{features}");
        for sketch in all.iter().step_by(17) {
            let features = features.into();
            assert_eq!(hits(&narrow, sketch, features, None), hits(&wide, sketch, features, Some(8)));
        }
    }
    assert_eq!(Agreement::in_one(narrow.params()), Agreement { features: 1, bits: 8 });
    let by_one = pairs(candidates(&narrow, 10_000, budget, number));
    let agreement = Agreement { features: 1, bits: 8 };
    assert_eq!(by_one, pairs(candidates_agreeing(&wide, agreement, 10_000, budget, number)));

    // Two indexes are compared by the bits that both store, whichever is on the left. Each pair within one index has a
    // counterpart across the two indexes.
    let right = |place: Place<'_>| Ok(place.key()?.as_u64().map(|key| 800 + key as u32));
    let across = [(&narrow, &wide), (&wide, &narrow), (&narrow, &narrow)]
        .map(|both| pairs(candidates_across(both, 800, 10_000, budget, number, right)));
    assert!(across[0] == across[2] && across[1] == across[2]);
    let of_two = across[0].iter().filter(|(a, b)| a + 800 < *b).map(|&(a, b)| (a, b - 800));
    assert!(of_two.eq(by_one.iter().copied()));
}

#[test]
fn query_with_more_bits_than_stored_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let all = sketches(3, &mut SplitMix(3));
    let index = index_of(&dir, "index", 8);
    put(&index, &all, 0);
    index.compact().unwrap();
    let snapshot = index.snapshot();
    let budget: (&Path, usize) = (dir.path(), 0);
    for bits in [0, 9, 32, 33] {
        let query = snapshot.resembling(&all[0], 0.0).feature_bits(bits);
        let refused = query.run().unwrap_err().to_string();
        let expected = format!("{bits} bits of a feature: the index keeps 8 of each; ask for 1 to 8");
        assert!(refused.contains(&expected), "{refused}");
        let agreement = Agreement { features: 1, bits };
        let number = |_: Place<'_>| Ok(Some(0));
        let refused = candidates_agreeing(&snapshot, agreement, 10, budget, number).unwrap_err().to_string();
        assert!(refused.contains(&expected), "{refused}");
    }
    for bits in [0, 33] {
        let refused = Params::builder().minhash(2, 2).feature_bits(bits).build().unwrap_err().to_string();
        assert!(refused.contains("feature-bits is") && refused.contains("1 to 32"), "{refused}");
    }
}

#[test]
fn index_with_fewer_feature_bits_accepts_wider_sketches() {
    let dir = tempfile::tempdir().unwrap();
    let index = index_of(&dir, "index", 8);
    let wide = Sketcher::new(&bytes_of(32)).unwrap();
    let [one, other] = pair_of(&wide, (100, 97), &mut SplitMix(1));
    let mut writer = index.writer().unwrap();
    writer.put(1, &one).unwrap();
    writer.commit().unwrap();
    assert_eq!(hits(&index.snapshot(), &one, 8, None), [1]);
    assert_eq!(hits(&index.snapshot(), &other, 1, None), [1]);
}

#[test]
fn index_of_feature_bytes_accepts_pairs_as_often_as_the_formula() {
    let pairs = 1500;
    let mut random = SplitMix(11);
    // The formula assumes independent features, which the family `linear` provides.
    let params = Params::builder().preset(Preset::SMALL_8).family(Family::Linear).signature_bits(0);
    let params = of_sets(params);
    for threshold in [Preset::common_bytes(pairs), Preset::common_bytes(50_000)] {
        let scheme = FeatureScheme { threshold, ..Preset::SMALL_8.scheme };
        // The sets have 320, 360 and 380 common elements of 400 in the union.
        for (size, both) in [(360, 320), (380, 360), (390, 380)] {
            let dir = tempfile::tempdir().unwrap();
            let index = Index::create(dir.path().join("index"), params.clone()).unwrap();
            let sketcher = index.sketcher().unwrap();
            let made: Vec<[Sketch; 2]> =
                (0..pairs).map(|_| pair_of(&sketcher, (size, both), &mut random)).collect();
            let mut writer = index.writer().unwrap();
            for (key, [stored, _]) in (0_u64..).zip(&made) {
                writer.put(key, stored).unwrap();
            }
            writer.commit().unwrap();
            drop(writer);
            index.compact().unwrap();
            let snapshot = index.snapshot();
            assert_eq!((snapshot.entries().len(), snapshot.logged_documents()), (1, 0));
            let accepted = (0_u64..)
                .zip(&made)
                .filter(|(key, [_, asked])| hits(&snapshot, asked, threshold.into(), None).contains(key))
                .count();
            let resemblance = both as f64 / (2 * size - both) as f64;
            let (measured, wanted) = (accepted as f64 / pairs as f64, scheme.fungible(resemblance));
            let error = (wanted * (1.0 - wanted) / pairs as f64).sqrt();
            let off = (measured - wanted) / error;
            println!(
                "{threshold} of 8 bytes at {resemblance}: {measured:.4}, by the formula {wanted:.4}: {off:+.1} s.e."
            );
            assert!(off.abs() < 4.0, "{threshold} of 8 bytes at {resemblance}: {measured}, {wanted}");
        }
    }
}
