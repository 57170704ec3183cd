//! Joins say in one pass what a question for each document would: each pair once, whatever the segments.

use std::collections::BTreeSet;

use twindex::join::{Effort, band_scores, block_scores, numbered_pairs_within, pairs_within};
use twindex::{Fingerprint, Index, Params};

#[test]
fn pairs_are_those_of_a_question_for_each_document_and_numbers_join_what_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(dir.path().join("index"), params).unwrap();
    let mut writer = index.writer().unwrap();
    let mut fingerprint = 1_u64;
    for key in 0..600_u64 {
        if key % 3 != 0 {
            fingerprint = fingerprint.rotate_left(7) ^ 1 << (key % 64); // near the one before, or equal to it
        }
        if key % 50 == 0 {
            fingerprint = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        writer.put_fingerprint(key, Fingerprint(fingerprint.rotate_right(7 * (key % 50) as u32))).unwrap();
        if key % 170 == 169 {
            writer.commit().unwrap();
        }
    }
    writer.delete(100).unwrap();
    writer.put_fingerprint(200, Fingerprint(0)).unwrap();
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
        pairs_within(&snapshot, None, within, Effort::in_dir(dir.path()), |a, b, distance| {
            let (a, b) = (a.key()?.as_u64().unwrap(), b.key()?.as_u64().unwrap());
            found.push((a, b, distance));
            Ok::<_, twindex::Error>(())
        })
        .unwrap();
        assert_eq!(found, expected.iter().copied().collect::<Vec<_>>(), "within {within}");
        assert!(within == 0 || !found.is_empty());

        // Three documents to a number; every seventh has none.
        let number = |key: u64| (!key.is_multiple_of(7)).then_some(key as u32 / 3);
        let mut expected: Vec<(u32, u32, u32)> = expected
            .iter()
            .filter_map(|&(a, b, distance)| Some((number(a)?, number(b)?, distance)))
            .filter(|(a, b, _)| a != b)
            .map(|(a, b, distance)| (a.min(b), a.max(b), distance))
            .collect();
        expected.sort_unstable();
        expected.dedup_by_key(|&mut (a, b, _)| (a, b));
        let mut found = Vec::new();
        numbered_pairs_within(
            &snapshot,
            within,
            (dir.path(), 0),
            |place| Ok(number(place.key()?.as_u64().unwrap())),
            |a, b, distance| {
                found.push((a, b, distance));
                Ok::<_, twindex::Error>(())
            },
        )
        .unwrap();
        assert_eq!(found, expected, "within {within}");
    }
}

/// Splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 31)
}

#[test]
fn scores_by_block_are_those_of_all_pairs_that_share_it() {
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
        writer.put_fingerprint(key, Fingerprint(fingerprint)).unwrap();
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
    let found = block_scores(&index.snapshot(), usize::MAX).unwrap();
    assert_eq!(found.pairs, expected);
    assert_eq!(found.capped_buckets, 0);
    assert!(expected[0][64] > 50 && expected.iter().all(|counts| counts[64] == expected[0][64]));
    let capped = block_scores(&index.snapshot(), 3).unwrap();
    assert!(capped.capped_buckets > 0 && capped.largest_bucket == found.largest_bucket);
    assert_eq!(capped.pairs[0][64], expected[0][64], "equal ones need no comparison");
}

#[test]
fn scores_by_band_are_those_of_all_pairs_that_share_it_and_say_how_many_are_accepted() {
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
    let found = band_scores(&snapshot, usize::MAX, (dir.path(), 1 << 20), |a, b, score| {
        assert!(a < b && score < minima as u32);
        distinct += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(found.scores.pairs, expected);
    assert_eq!(found.alike.iter().map(|alike| u64::from(alike.documents)).sum::<u64>(), 1000);
    assert_eq!(found.shared.iter().map(|shared| shared.0).sum::<u64>(), distinct);
    assert!(expected.iter().all(|counts| counts[minima] == expected[0][minima] && counts[minima] >= 200));
    // Of pairs with most minima equal nearly all share a band, of those with few, few.
    let accepted = |score| found.accepted(score, 24).unwrap();
    assert!(accepted(65) > 0.99, "{}", accepted(65));
    let banding = twindex::bands::Banding { bands: 24, rows: 3 };
    let mut checked = 0;
    for score in (20..60).filter(|&score| found.shared[score].0 > 30) {
        checked += 1;
        let wanted = banding.recall(score as f64 / minima as f64);
        assert!((accepted(score) - wanted).abs() < 0.15, "{score}: {} {wanted}", accepted(score));
    }
    assert!(checked > 3);
}
