//! Joins say in one pass what a question for each document would: each pair once, whatever the segments.

use std::collections::BTreeSet;

use twindex::join::{numbered_pairs_within, pairs_within};
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
        pairs_within(&snapshot, within, |a, b, distance| {
            let (a, b) = (a.key()?.as_u64().unwrap(), b.key()?.as_u64().unwrap());
            found.push((a.min(b), a.max(b), distance));
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
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
