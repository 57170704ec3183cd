//! Tests that queries of an index that is not in memory request what they read together. Counts the reads of a simulated
//! device that depend on each other, so that the result does not depend on time.

use std::path::Path;
use std::sync::Arc;

use crate::support::Random;
use crate::support::faults::{Device, Faults, FaultyVfs};
use twindex::sys::Access;
use twindex::{Admitted, Fingerprint, Index, Params, Sketch, WriterOptions};

/// Opens an index on a device that has read none of its pages, and returns the result of `ask`, the number of pages that it
/// read, and the largest number of reads that depend on each other.
fn cold<T>(path: &Path, ask: impl FnOnce(&Index) -> T) -> (T, u64, u64) {
    let faults = Arc::new(Faults::default());
    let vfs = Arc::new(FaultyVfs(Arc::clone(&faults)));
    let index = Index::options().access(Access::Read).open_with(vfs, path).unwrap();
    *faults.device.lock().unwrap() = Device::default();
    let answer = ask(&index);
    let device = faults.device.lock().unwrap();
    (answer, device.reads, device.depth)
}

#[test]
fn cold_fingerprint_queries_read_in_few_steps() {
    const COUNT: u64 = 500_000;
    let dir = tempfile::tempdir().unwrap();
    for (tables, keys, most) in [
        ("blocks-4 planes+3", "numbers", 4),
        ("blocks-4 planes+2", "scattered", 5),
        ("blocks-2 planes+3", "bytes", 6),
    ] {
        let (design, codecs) = tables.split_once(' ').unwrap();
        let params = Params::builder().simhash(3).tables(design.parse().unwrap(), codecs.parse().unwrap());
        let params = if keys == "bytes" { params } else { params.u64_keys() };
        let path = dir.path().join(tables);
        let index = Index::create(&path, params.build().unwrap()).unwrap();
        let mut random = Random(5);
        let mut stored: Vec<u64> = (0..COUNT).map(|_| random.next()).collect();
        for copy in 0..COUNT as usize / 10 {
            stored[10 * copy + 1] = stored[10 * copy] ^ 1 << random.below(64); // pairs that are found together
        }
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for (number, &fingerprint) in (0_u64..).zip(&stored) {
            match keys {
                "bytes" => writer.put(format!("{number:016x}").as_str(), Fingerprint(fingerprint)).unwrap(),
                "numbers" => writer.put(number, Fingerprint(fingerprint)).unwrap(),
                _ => writer.put(number * number, Fingerprint(fingerprint)).unwrap(),
            }
        }
        writer.commit().unwrap();
        drop(writer);
        let (warm, queries): (_, Vec<Fingerprint>) = (
            index.snapshot(),
            (0..20).map(|query| Fingerprint(stored[query * 1010] ^ 1 << query ^ 8)).collect(),
        );
        for &query in &queries {
            let (found, reads, depth) =
                cold(&path, |index| index.snapshot().within(query, 3).run().unwrap().hits);
            assert_eq!(found, warm.within(query, 3).run().unwrap().hits, "{tables}");
            assert!(
                found.len() > 1 && reads > depth && depth <= most,
                "{tables}: {reads} reads, depth {depth}"
            );
        }
        let together = |index: &Index| {
            let mut found = Vec::new();
            index
                .snapshot()
                .for_each_within_any(&queries, 3, |query, place, distance| {
                    found.push((query, place.ordinal, distance));
                    Ok(())
                })
                .unwrap();
            found.sort_unstable();
            found
        };
        let (found, reads, depth) = cold(&path, together);
        assert_eq!(found, together(&index), "{tables}");
        // 20 queries by 66 prefixes are more than pass the stages together.
        let most = if tables.starts_with("blocks-2") { 8 } else { 4 };
        assert!(reads > 200 && depth <= most, "{tables}: {reads} reads together, depth {depth}");
    }
}

/// Returns a text of 60 words. Those with numbers from 10 n to 10 n + 9 differ in a word.
fn text(number: usize) -> String {
    let mut random = Random(number as u64 / 10 + 1);
    let mut words: Vec<String> = (0..60).map(|_| format!("w{}", random.below(50_000))).collect();
    words[number % 10] = format!("v{number}");
    words.join(" ")
}

#[test]
fn cold_texts_are_compared_in_few_steps() {
    const COUNT: usize = 6000;
    let dir = tempfile::tempdir().unwrap();
    let builder = || Params::builder().words(2).minhash(20, 4);
    for (name, params, most) in [
        ("signatures", builder().u64_keys(), 4),
        ("signatures, byte keys", builder(), 5),
        ("sets", builder().sets().u64_keys(), 5),
        ("sets and marks", builder().sets().marks(), 5),
        ("fingerprints", builder().simhash(3).u64_keys(), 5),
    ] {
        let path = dir.path().join(name);
        let params = params.build().unwrap();
        let is_numbered = params.key == twindex::params::KeyKind::U64;
        let index = Index::create(&path, params).unwrap();
        let sketcher = index.sketcher().unwrap();
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for number in 0..COUNT {
            let sketch = sketcher.sketch(&text(number)).unwrap();
            if is_numbered {
                writer.put((number * number) as u64, &sketch).unwrap();
            } else {
                writer.put(format!("{:08x}", number * 7919).as_str(), &sketch).unwrap();
            }
        }
        writer.commit().unwrap();
        drop(writer);
        let warm = index.snapshot();
        let queries: Vec<Sketch> =
            (0..20).map(|query| sketcher.sketch(&text(query * 290 + 3)).unwrap()).collect();
        for query in &queries {
            let (found, reads, depth) = cold(&path, |index| index.snapshot().near(query).run().unwrap().hits);
            assert_eq!(found, warm.near(query).run().unwrap().hits, "{name}");
            assert!(
                found.len() > 5 && reads > 2 * depth && depth <= most,
                "{name}: {reads} reads, depth {depth}"
            );
        }
        let admit = |index: &Index| {
            let mut writer = index.writer().unwrap();
            let admitted = if is_numbered {
                writer.admit(u64::MAX, &queries[0]).unwrap()
            } else {
                writer.admit("none", &queries[0]).unwrap()
            };
            matches!(admitted, Admitted::Duplicate(_))
        };
        let (is_duplicate, reads, depth) = cold(&path, admit);
        assert!(is_duplicate && depth <= most + 2, "{name}: admit, {reads} reads, depth {depth}");
    }
}
