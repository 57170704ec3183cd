//! Tests that living groups computed by a join equal the groups of `Snapshot::groups`: their listings must be identical.

use std::fmt::Write as _;
use std::path::Path;

use twindex::params::Near;
use twindex::{Code, Document, Fingerprint, Groups, Index, Params, Resources, Snapshot, WriterOptions};
use twindex_join::living_groups;
use twindex_kernel::splitmix::SplitMix;

/// The age at which a document expires, in the unit of its stamp.
const AGE: u64 = 5000;

fn listing(groups: &Groups) -> String {
    let mut text = String::new();
    groups
        .for_each(1, |key, leader, size| {
            writeln!(text, "{} {} {size}", key.to_buf(), leader.to_buf()).unwrap();
            Ok(())
        })
        .unwrap();
    writeln!(text, "{} groups", groups.count()).unwrap();
    text
}

/// Returns a fingerprint that is unrelated to others, or from one of 20 families with few distinct fingerprints.
fn fingerprint(random: &mut SplitMix) -> Fingerprint {
    if random.next().is_multiple_of(4) {
        return Fingerprint(random.next());
    }
    let family = (random.next() % 20 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let flips = random.next() % 5;
    Fingerprint((0..flips).fold(family, |value, _| value ^ 1 << (random.next() % 12 * 5)))
}

/// Creates an index with several segments and a memtable. Some documents have no fingerprint, and some are replaced,
/// deleted or expired.
fn mixed(dir: &Path, seed: u64) -> Index {
    let params = Params::builder().words(1).simhash(3).priorities().expire_after(AGE).build().unwrap();
    let index = Index::create(dir.join(format!("{seed}")), params).unwrap();
    let empty = index.sketcher().unwrap().sketch("").unwrap();
    let mut random = SplitMix(seed);
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    for number in 0..6000_u64 {
        let document = match number % 40 {
            0 => Document::from(&empty),
            _ => Document::from(fingerprint(&mut random)),
        };
        let priority = [None, Some(random.next() % 4), Some(random.next())][number as usize % 3];
        let key = format!("page {}", random.next() % 5000);
        writer.put(key.as_str(), document.with_priority(priority).with_stamp(number)).unwrap();
        if number % 1700 == 1699 {
            writer.commit().unwrap();
            writer.flush().unwrap();
        }
        if number % 9 == 0 {
            writer.delete(format!("page {}", random.next() % 5000).as_str()).unwrap();
        }
    }
    writer.commit().unwrap();
    drop(writer);
    index
}

/// Checks that a join and queries find the same groups. Returns the number of queries that each join needed.
fn compare(snapshot: &Snapshot, scratch: &Path) -> Vec<u64> {
    let expected = listing(&snapshot.groups(&Resources::in_dir(scratch)).unwrap());
    let mut queries = Vec::new();
    for memory in [1 << 20, 1 << 26] {
        for threads in 1..=3 {
            let groups =
                living_groups(snapshot, &Resources { dir: scratch, memory, threads, cancel: None }).unwrap();
            assert!(listing(&groups) == expected, "{memory} bytes, {threads} threads");
            queries.push(groups.questions());
        }
    }
    queries
}

#[test]
fn joined_groups_equal_queried_groups_with_deleted_and_expired_documents() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..6 {
        let index = mixed(dir.path(), seed);
        let snapshot = index.snapshot();
        assert_eq!(snapshot.segments().len(), 4, "three segments and the memtable");
        let deleted: u64 = snapshot.segments().map(|(_, deleted)| deleted.len()).sum();
        assert!(deleted > 1000, "{deleted} deleted");
        assert_eq!(compare(&snapshot, dir.path()), [0; 6], "no queries");
        // Merges the same documents into one segment.
        let apart = listing(&living_groups(&snapshot, &Resources::in_dir(dir.path())).unwrap());
        index.compact().unwrap();
        let snapshot = index.snapshot();
        assert_eq!(snapshot.segments().len(), 1);
        assert_eq!(compare(&snapshot, dir.path()), [0; 6], "no queries");
        assert!(listing(&living_groups(&snapshot, &Resources::in_dir(dir.path())).unwrap()) == apart);
    }
}

#[test]
fn joined_groups_of_codes_equal_queried_groups() {
    let dir = tempfile::tempdir().unwrap();
    for (bits, near) in [(64, 11), (256, 31), (512, 70)] {
        let params = Params::builder().codes(bits, near).priorities().build().unwrap();
        let index = Index::create(dir.path().join(format!("{bits}")), params).unwrap();
        let mut random = SplitMix(bits.into());
        let families: Vec<Vec<u64>> =
            (0..30).map(|_| (0..bits / 64).map(|_| random.next()).collect()).collect();
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        for number in 0..1500_u64 {
            let mut words = families[random.next() as usize % 30].clone();
            for _ in 0..[0, 0, near / 2, near, 2 * near][random.next() as usize % 5] {
                let bit = random.next() as usize % usize::from(bits);
                words[bit / 64] ^= 1 << (bit % 64);
            }
            let document = Document::from(Code::of_words(&words).unwrap());
            let key = format!("page {}", random.next() % 1000);
            writer.put(key.as_str(), document.with_priority(random.next() % 4)).unwrap();
            if number % 450 == 449 {
                writer.commit().unwrap();
                writer.flush().unwrap();
            }
            if number % 9 == 0 {
                writer.delete(format!("page {}", random.next() % 1000).as_str()).unwrap();
            }
        }
        writer.commit().unwrap();
        let snapshot = index.snapshot();
        assert_eq!(snapshot.segments().len(), 4, "three segments and the memtable");
        assert_eq!(compare(&snapshot, dir.path()), [0; 6], "no queries");
    }
}

#[test]
fn families_too_dense_for_a_join_are_grouped_by_queries() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(dir.path().join("x"), params).unwrap();
    let mut writer = index.writer().unwrap();
    // All combinations of 13 bits: each fingerprint is within 3 bits of 377 others.
    for number in 0..1 << 13 {
        let spread = (0..13).fold(0, |value, bit| value | (number >> bit & 1) << (5 * bit));
        writer.put(number, Fingerprint(spread)).unwrap();
    }
    writer.commit().unwrap();
    let queries = compare(&index.snapshot(), dir.path());
    assert!(queries.iter().all(|&queries| queries > 0), "{queries:?}");
}

#[test]
fn groups_of_empty_and_resemblance_indexes_equal_queried_groups() {
    let dir = tempfile::tempdir().unwrap();
    let empty =
        Index::create(dir.path().join("empty"), Params::builder().simhash(3).build().unwrap()).unwrap();
    assert_eq!(compare(&empty.snapshot(), dir.path()), [0; 6]);
    let near = Near::resembling(0.7).unwrap();
    let params = Params::builder().words(1).minhash(4, 3).near(near).sets().build().unwrap();
    let index = Index::create(dir.path().join("sets"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..300 {
        let words: Vec<String> = (number % 30..number % 30 + 20).map(|word| format!("w{word}")).collect();
        writer.put(format!("page {number}").as_str(), &sketcher.sketch(&words.join(" ")).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    let queries = compare(&index.snapshot(), dir.path());
    assert!(queries.iter().all(|&queries| queries > 0), "{queries:?}");
}
