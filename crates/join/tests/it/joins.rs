//! Tests that a join finds the pairs that a query for each document finds, each pair once, for any number of segments.

use std::collections::BTreeSet;

use twindex::params::{FeatureScheme, Preset};
use twindex::params::{Shingling, Tokens};
use twindex::sketch::Scratch;
use twindex::{Fingerprint, Index, Params, Sketch, Sketcher};
use twindex_join::{
    Agreement, JoinResources, band_scores, block_scores, candidates, candidates_agreeing,
    numbered_pairs_within, pairs_within, scored_pairs,
};

#[test]
fn join_finds_the_pairs_of_one_query_per_document() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let mut writer = index.writer().unwrap();
    let mut fingerprint = 1_u64;
    for key in 0..600_u64 {
        if key % 3 != 0 {
            fingerprint = fingerprint.rotate_left(7) ^ 1 << (key % 64); // near the previous fingerprint, or equal to it
        }
        if key % 50 == 0 {
            fingerprint = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        writer.put(key, Fingerprint(fingerprint.rotate_right(7 * (key % 50) as u32))).unwrap();
        if key % 170 == 169 {
            writer.commit().unwrap();
        }
    }
    writer.delete(100).unwrap();
    writer.put(200, Fingerprint(0)).unwrap();
    writer.commit().unwrap();
    let snapshot = index.snapshot();

    for within in [0, 2, 3, 5] {
        let mut expected = BTreeSet::new();
        for key in 0..600_u64 {
            let Some(record) = snapshot.get(key).unwrap() else { continue };
            for hit in snapshot.within(record.fingerprint.unwrap(), within) {
                let hit = hit.unwrap();
                let other = hit.key.as_u64().unwrap();
                if key != other {
                    expected.insert((key.min(other), key.max(other), hit.distance.unwrap()));
                }
            }
        }
        let mut found = Vec::new();
        pairs_within(&snapshot, None, within, JoinResources::in_dir(dir.path()), |a, b, distance| {
            let (a, b) = (a.key()?.as_u64().unwrap(), b.key()?.as_u64().unwrap());
            found.push((a, b, distance));
            Ok::<_, twindex::Error>(())
        })
        .unwrap();
        assert_eq!(found, expected.iter().copied().collect::<Vec<_>>(), "within {within}");
        assert!(within == 0 || !found.is_empty());

        // Three documents share a number; every seventh document has no number.
        let number = |key: u64| (!key.is_multiple_of(7)).then_some(key as u32 / 3);
        let mut expected: Vec<(u32, u32, u32)> = expected
            .iter()
            .filter_map(|&(a, b, distance)| Some((number(a)?, number(b)?, distance)))
            .filter(|(a, b, _)| a != b)
            .map(|(a, b, distance)| (a.min(b), a.max(b), distance))
            .collect();
        expected.sort_unstable();
        expected.dedup_by_key(|&mut (a, b, _)| (a, b));
        for threads in [1, 3] {
            let mut found = Vec::new();
            numbered_pairs_within(
                &snapshot,
                within,
                JoinResources { dir: dir.path(), memory: 0, threads },
                |place| Ok(number(place.key()?.as_u64().unwrap())),
                |a, b, distance| {
                    found.push((a, b, distance));
                    Ok::<_, twindex::Error>(())
                },
            )
            .unwrap();
            assert_eq!(found, expected, "within {within}, {threads} threads");
        }
    }
}

/// Splitmix64 without its second multiplication. The seeds below were chosen for these numbers.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 31)
}

#[test]
fn block_scores_equal_scores_of_all_pairs_sharing_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let mut writer = index.writer().unwrap();
    let (mut state, mut all) = (1, Vec::<u64>::new());
    for key in 0..700_u64 {
        let near = all.get(random(&mut state) as usize % (all.len() + 20)).copied();
        let fingerprint = match near {
            None => random(&mut state),
            Some(near) if key % 5 == 0 => near,
            Some(near) => near ^ (1 << (random(&mut state) % 64)) ^ (1 << (random(&mut state) % 64)),
        };
        all.push(fingerprint);
        writer.put(key, Fingerprint(fingerprint)).unwrap();
        if key % 300 == 299 {
            writer.commit().unwrap();
        }
    }
    for key in (0..700).step_by(13) {
        writer.delete(key).unwrap();
    }
    writer.commit().unwrap();
    let live: Vec<u64> = (0..700).filter(|key| key % 13 != 0).map(|key| all[key]).collect();
    let mut expected = vec![vec![0_u64; 65]; 4];
    for (place, a) in live.iter().enumerate() {
        for b in &live[place + 1..] {
            for (block, counts) in expected.iter_mut().enumerate() {
                if (a ^ b).rotate_left(16 * block as u32) >> 48 == 0 {
                    counts[64 - (a ^ b).count_ones() as usize] += 1;
                }
            }
        }
    }
    let resources = JoinResources { memory: 0, ..JoinResources::in_dir(dir.path()) };
    let found = block_scores(&index.snapshot(), usize::MAX, resources).unwrap();
    assert_eq!(found.pairs, expected);
    assert_eq!(found.capped_buckets, 0);
    assert!(expected[0][64] > 50 && expected.iter().all(|counts| counts[64] == expected[0][64]));
    let capped = block_scores(&index.snapshot(), 3, resources).unwrap();
    assert!(capped.capped_buckets > 0 && capped.largest_bucket == found.largest_bucket);
    assert_eq!(capped.pairs[0][64], expected[0][64], "equal ones need no comparison");
}

#[test]
fn band_scores_are_equal_with_both_algorithms() {
    // With few bits, documents may have equal signatures but different bands.
    for bits in [1, 2, 32] {
        let dir = tempfile::tempdir().unwrap();
        let params =
            Params::builder().u64_keys().words(1).minhash(6, 3).signature_bits(bits).build().unwrap();
        let index = Index::create(dir.path().join("index"), params).unwrap();
        let sketcher = index.sketcher().unwrap();
        let mut writer = index.writer().unwrap();
        let mut state = 7;
        for key in 0..600_u64 {
            let word = |word| (key / 40, word, if random(&mut state).is_multiple_of(40) { key } else { 0 });
            let words: Vec<String> =
                (0..30).map(word).map(|word| format!("{word:?}").replace(", ", "x")).collect();
            writer.put(key, &sketcher.sketch(&words.join(" ")).unwrap()).unwrap();
        }
        writer.commit().unwrap();
        let of = |max_bucket, memory| {
            let mut pairs = BTreeSet::new();
            let resources =
                JoinResources { memory, threads: bits as usize % 3 + 1, ..JoinResources::in_dir(dir.path()) };
            let found = scored_pairs(&index.snapshot(), max_bucket, resources, |a, b, score| {
                assert!(pairs.insert((a, b, score)), "each pair once");
                Ok(())
            })
            .unwrap();
            let scores = found.scores;
            (pairs, scores.pairs, scores.buckets, scores.largest_bucket, scores.capped_buckets, found.shared)
        };
        let (whole, sorted) = (of(10_000, 1 << 20), of(10_000, 0));
        assert!(whole.0.len() > 500 && whole.3 > 8, "{bits}: {} {}", whole.0.len(), whole.3);
        assert!(whole == sorted, "{bits}");
        assert!(of(6, 1 << 20) == of(6, 0) && of(6, 0).4 > 0, "{bits}");
    }
}

#[test]
fn band_scores_equal_brute_force_and_estimate_acceptance() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().words(1).minhash(24, 3).signature_bits(32).build().unwrap();
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let mut state = 1;
    let mut sketches = Vec::new();
    for family in 0..200_u64 {
        for member in 0..5_u64 {
            let words: Vec<String> = (0..40)
                .map(|word| {
                    let own = member > 1 && random(&mut state) % 12 < member;
                    format!("w{family}x{word}x{}", if own { member } else { 0 })
                })
                .collect();
            let sketch = sketcher.sketch(&words.join(" ")).unwrap();
            writer.put(family * 5 + member, &sketch).unwrap();
            sketches.push(sketch);
        }
        if family == 140 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    let (bands, minima) = (24, 72);
    let mut expected = vec![vec![0_u64; minima + 1]; bands];
    for (place, a) in sketches.iter().enumerate() {
        for b in &sketches[place + 1..] {
            let (a, b) = (a.signature(), b.signature());
            let score = a.iter().zip(b).filter(|(a, b)| a == b).count();
            for (band, counts) in expected.iter_mut().enumerate() {
                counts[score] += u64::from(a[3 * band..3 * band + 3] == b[3 * band..3 * band + 3]);
            }
        }
    }
    let mut distinct = 0;
    let resources = |memory, threads| JoinResources { dir: dir.path(), memory, threads };
    let found = scored_pairs(&snapshot, usize::MAX, resources(1 << 20, 1), |a, b, score| {
        assert!(a < b && score < minima as u32);
        distinct += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(found.scores.pairs, expected);
    // Also computes the counts with the other algorithm, which is used if keys do not fit in memory.
    let sorted = band_scores(&snapshot, usize::MAX, resources(0, 1)).unwrap();
    assert_eq!((&sorted.scores.pairs, &sorted.shared), (&found.scores.pairs, &found.shared));
    assert_eq!((&sorted.scores.buckets, &sorted.alike[..]), (&found.scores.buckets, &found.alike[..]));
    let threads = band_scores(&snapshot, usize::MAX, resources(1 << 20, 3)).unwrap();
    assert_eq!((&threads.scores.pairs, &threads.shared), (&found.scores.pairs, &found.shared));
    assert_eq!((&threads.scores.buckets, &threads.alike[..]), (&found.scores.buckets, &found.alike[..]));
    assert_eq!(found.alike.iter().map(|alike| u64::from(alike.documents)).sum::<u64>(), 1000);
    assert_eq!(found.shared.iter().map(|shared| shared.0).sum::<u64>(), distinct);
    assert!(expected.iter().all(|counts| counts[minima] == expected[0][minima] && counts[minima] >= 200));
    // Nearly all pairs with most minima equal share a band, but few pairs with few equal minima.
    let accepted = |score| found.accepted(score, 24).unwrap();
    assert!(accepted(65) > 0.99, "{}", accepted(65));
    let banding = twindex::planner::Banding { bands: 24, rows: 3 };
    let mut checked = 0;
    for score in (20..60).filter(|&score| found.shared[score].0 > 30) {
        checked += 1;
        let wanted = banding.recall(score as f64 / minima as f64);
        assert!((accepted(score) - wanted).abs() < 0.15, "{score}: {} {wanted}", accepted(score));
    }
    assert!(checked > 3);
}

/// Returns sketches of two sets of 1,000 elements with a resemblance as close as possible to `hundredths` / 100.
fn pair_of(sketcher: &Sketcher, hundredths: usize, state: &mut u64) -> [Sketch; 2] {
    let size = 1000;
    let both = (2 * size * hundredths).div_ceil(100 + hundredths);
    let common: Vec<u64> = (0..both).map(|_| random(state)).collect();
    [(); 2].map(|()| {
        let own: Vec<u64> = (both..size).map(|_| random(state)).collect();
        let mut sketch = Sketch::default();
        let set: Vec<u64> =
            common.iter().chain(&own).map(|&element| sketcher.feature_number(element)).collect();
        sketcher.sketch_features(&set, &mut Scratch::default(), &mut sketch).unwrap();
        sketch
    })
}

fn of_sets(params: twindex::params::ParamsBuilder) -> Params {
    let shingling = Shingling::words(1, 0).with_tokens(Tokens::Features).unwrap();
    params.u64_keys().shingling(shingling).build().unwrap()
}

#[test]
fn stored_index_accepts_pairs_as_often_as_the_formula() {
    let mut state = 3;
    let bytes = |threshold| Preset {
        scheme: FeatureScheme { threshold, ..Preset::SMALL_8.scheme },
        ..Preset::SMALL_8
    };
    let small = [false, true].map(|many| bytes(Preset::common_bytes(if many { 50_000 } else { 1500 })));
    assert_eq!(small.map(|preset| preset.scheme.threshold), [3, 7]);
    for preset in [Preset::BRODER_84, Preset::BRODER_200, Preset::LSH_16X8, small[0], small[1]] {
        for hundredths in [80, 90, 95] {
            let dir = tempfile::tempdir().unwrap();
            let index =
                Index::create(dir.path().join("index"), of_sets(Params::builder().preset(preset))).unwrap();
            let sketcher = index.sketcher().unwrap();
            let mut writer = index.writer().unwrap();
            let pairs: Vec<[Sketch; 2]> =
                (0..1500).map(|_| pair_of(&sketcher, hundredths, &mut state)).collect();
            for (key, [stored, _]) in (0_u64..).zip(&pairs) {
                writer.put(key, stored).unwrap();
            }
            writer.commit().unwrap();
            let snapshot = index.snapshot();
            let (mut accepted, mut by_one) = (0, 0);
            for (key, [_, asked]) in (0_u64..).zip(&pairs) {
                let hits = |sharing| {
                    let query = snapshot.resembling(asked, 0.0).sharing(sharing);
                    let query = query.feature_bits(u32::from(preset.scheme.feature_bits).min(32));
                    query.run().unwrap().hits.iter().filter(|hit| hit.key.as_u64() == Some(key)).count()
                };
                accepted += hits(preset.scheme.threshold.into());
                by_one += hits(1);
            }
            assert!(accepted <= by_one);
            let resemblance = hundredths as f64 / 100.0;
            let (measured, wanted) = (accepted as f64 / 1500.0, preset.scheme.fungible(resemblance));
            let FeatureScheme { threshold, feature_bits, .. } = preset.scheme;
            println!(
                "{}, {threshold} of {feature_bits} bits, {resemblance}: {measured:.4}, {wanted:.4}",
                preset.name
            );
            // Allows four standard deviations. In this family, the rows of a band are equal together slightly less often
            // than independent rows. This is visible for features of 14 and 25 rows (tests/it/sketch_accuracy.rs).
            let spread = 4.0 * (wanted * (1.0 - wanted) / 1500.0).sqrt();
            assert!(
                measured < wanted + spread + 0.002,
                "{}, {resemblance}: {measured}, {wanted}",
                preset.name
            );
            assert!(measured > 0.9 * wanted - spread, "{}, {resemblance}: {measured}, {wanted}", preset.name);
        }
    }
}

#[test]
fn bands_of_one_row_find_matching_summary_vectors() {
    // For each coordinate, sorts all vectors by it and compares adjacent vectors with equal values.
    let dir = tempfile::tempdir().unwrap();
    let coordinates = 24;
    let params = of_sets(Params::builder().minhash(coordinates, 1).signature_bits(32));
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let mut state = 11;
    let vectors: Vec<Sketch> =
        (0..150).flat_map(|pair| pair_of(&sketcher, [1, 10, 40, 90][pair % 4], &mut state)).collect();
    for (key, vector) in (0_u64..).zip(&vectors) {
        writer.put(key, vector).unwrap();
        if key == 100 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    let mut matching = BTreeSet::new();
    for coordinate in 0..usize::from(coordinates) {
        let of = |number: usize| vectors[number].signature()[coordinate];
        let mut sorted: Vec<usize> = (0..vectors.len()).collect();
        sorted.sort_by_key(|&number| of(number));
        for same in sorted.chunk_by(|&a, &b| of(a) == of(b)) {
            for (place, &a) in same.iter().enumerate() {
                matching.extend(same[place + 1..].iter().map(|&b| (a.min(b) as u32, a.max(b) as u32)));
            }
        }
    }
    let number = |place: twindex::store::snapshot::Place<'_>| Ok(place.key()?.as_u64().map(|key| key as u32));
    let found = candidates(&index.snapshot(), 10_000, (dir.path(), 1 << 20), number).unwrap();
    let mut pairs = Vec::new();
    found
        .for_each_batch(|batch| {
            pairs.extend_from_slice(batch);
            Ok::<_, twindex::Error>(())
        })
        .unwrap();
    // Different minima may collide in the 32 bits of a key; here none do.
    assert_eq!(pairs, matching.iter().copied().collect::<Vec<_>>());
    assert!((80..150 * 149).contains(&matching.len()), "{}", matching.len());
    // At resemblance J, a fraction of (1 - J)^24 of the pairs is missed.
    let found = |kind: u32| {
        let matches = |&pair: &u32| pair % 4 == kind && matching.contains(&(2 * pair, 2 * pair + 1));
        (0..150).filter(matches).count()
    };
    assert_eq!((found(2), found(3)), (37, 37));
    assert!((25..=38).contains(&found(1)) && found(0) < 20, "{} {}", found(1), found(0));
}

#[test]
fn joins_and_queries_find_the_same_agreeing_documents() {
    let dir = tempfile::tempdir().unwrap();
    let params = of_sets(Params::builder().preset(Preset::SMALL_8).feature_bits(32).signature_bits(0));
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let mut state = 5;
    let sketches: Vec<Sketch> =
        (0..300).flat_map(|pair| pair_of(&sketcher, [80, 90, 95][pair % 3], &mut state)).collect();
    for (key, sketch) in (0_u64..).zip(&sketches) {
        writer.put(key, sketch).unwrap();
        if key == 200 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    writer.compact().unwrap();
    let snapshot = index.snapshot();
    for (features, bits) in [(1, 32), (2, 32), (1, 8), (2, 8), (3, 8), (7, 8), (2, 5), (8, 1)] {
        let first = |feature: &u64| feature >> (64 - bits);
        let mut wanted = Vec::new();
        for a in 0..sketches.len() {
            for b in a + 1..sketches.len() {
                let both = sketches[a].features().iter().zip(sketches[b].features());
                if both.filter(|(x, y)| first(x) == first(y)).count() >= usize::from(features) {
                    wanted.push((a as u32, b as u32));
                }
            }
        }
        let agreement = Agreement { features, bits };
        let number =
            |place: twindex::store::snapshot::Place<'_>| Ok(place.key()?.as_u64().map(|key| key as u32));
        let budget = (dir.path(), 1 << 20);
        let mut pairs = Vec::new();
        let found = candidates_agreeing(&snapshot, agreement, 10_000, budget, number).unwrap();
        let each = |batch: &[(u32, u32)]| {
            pairs.extend_from_slice(batch);
            Ok::<_, twindex::Error>(())
        };
        found.for_each_batch(each).unwrap();
        assert!(pairs == wanted && !wanted.is_empty(), "{agreement:?}: {} {}", pairs.len(), wanted.len());
        for (asked, sketch) in sketches.iter().enumerate().step_by(37) {
            let query = snapshot.resembling(sketch, 0.0);
            let hits = query.sharing(features.into()).feature_bits(bits).run().unwrap().hits;
            let mut hits: Vec<usize> = hits.iter().map(|hit| hit.key.as_u64().unwrap() as usize).collect();
            hits.sort_unstable();
            let near = |other: &usize| {
                let pair = (asked.min(*other) as u32, asked.max(*other) as u32);
                *other == asked || wanted.binary_search(&pair).is_ok()
            };
            assert_eq!(hits, (0..sketches.len()).filter(near).collect::<Vec<_>>(), "{agreement:?} {asked}");
        }
    }
    let number = |_: twindex::store::snapshot::Place<'_>| Ok(Some(0));
    for bits in [0, 33] {
        let agreement = Agreement { features: 1, bits };
        assert!(candidates_agreeing(&snapshot, agreement, 10, (dir.path(), 0), number).is_err());
        assert!(snapshot.resembling(&sketches[0], 0.0).feature_bits(bits).run().is_err());
    }
}
