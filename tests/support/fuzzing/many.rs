//! The body of the target `many`: segments of many fingerprints. Large groups of fingerprints agree in some bits, so that
//! there are hot buckets, directories have many bits, and sorting partitions its input, both in memory and in scratch
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use roaring::RoaringBitmap;
use twindex::design::DesignName;
use twindex::format::table::Probe;
use twindex::segment::merge::{MergeInput, merge};
use twindex::segment::records::Kept;
use twindex::segment::rows::Rows;
use twindex::segment::sorted::{sort, sort_tail_in_order};
use twindex::segment::spilled::SpillBudget;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment};
use twindex::sys::Vfs;
use twindex::{Key, Params};

use super::super::memory::MemoryVfs;
use super::super::near::{self, CODECS, DESIGNS, FARTHEST, NearOrdinals};
use super::super::{Random, Seals, bytes_of, place};
use super::Choices;

/// Maximum number of fingerprints: enough for a bucket of more than 4,096, and few enough for some hundred runs per
/// second.
const MANY: usize = 14_000;

/// Returns groups of random fingerprints. All or some fingerprints of a group agree in a range of bits.
fn crowds(choices: &mut Choices<'_>) -> Vec<u64> {
    let mut random = Random(u64::from(choices.word()));
    let mut all = Vec::new();
    for _ in 0..=(choices.byte() % 6) {
        let (count, width, start) = (choices.short() % 8192, u32::from(choices.byte()) % 65, choices.byte());
        let agree = u64::MAX.checked_shl(64 - width).unwrap_or(0).rotate_right(u32::from(start));
        let (value, astray) = (random.next(), choices.byte());
        for _ in 0..usize::from(count).min(MANY - all.len()) {
            let other = random.next();
            let stays = (random.next() & 0xFF) as u8 >= astray;
            all.push(if stays { other & !agree | value & agree } else { other });
        }
    }
    all
}

/// Returns queries: stored fingerprints, fingerprints near them, and some unrelated ones.
fn queries(choices: &mut Choices<'_>, stored: &[u64], max: usize) -> Vec<u64> {
    let mut queries = Vec::new();
    while !choices.0.is_empty() && queries.len() < max {
        let (how, at) = (choices.byte(), usize::from(choices.short()));
        let near = stored.get(at % stored.len().max(1)).copied().unwrap_or(0);
        let flips = (0..how % 8).fold(0, |mask: u64, _| mask | 1 << (choices.byte() % 64));
        queries.push(if how >= 240 {
            u64::from(choices.word()).rotate_left(how.into())
        } else {
            near ^ flips
        });
    }
    queries
}

/// Returns the answers to these queries, and the number of buckets that were skipped because of the limit on visits.
fn ask(
    segment: &Segment,
    queries: &[u64],
    ask: SearchOptions,
    scratch: &mut SearchScratch,
) -> twindex::Result<(Vec<NearOrdinals>, u64)> {
    let mut found = vec![NearOrdinals::new(); queries.len()];
    segment.search_documents(queries, ask, scratch, |query: usize, ordinal, distance| {
        found[query].push((ordinal, distance));
        Ok(ControlFlow::Continue(()))
    })?;
    for found in &mut found {
        found.sort_unstable();
    }
    Ok((found, scratch.left_out()))
}

/// Compares the answers at each radius with the expected ones: with every probe strategy, for single queries, and with a
/// limit on visits.
fn compare(segment: &Segment, (design, fingerprints): (&str, &[u64]), queries: &[u64], visits: u64) {
    let all: Vec<NearOrdinals> = queries.iter().map(|&query| near::scan(fingerprints, query)).collect();
    let mut scratch = SearchScratch::default();
    for within in 0..=design.parse::<DesignName>().unwrap().within_max().min(FARTHEST) {
        let expected: Vec<NearOrdinals> = queries
            .iter()
            .zip(&all)
            .map(|(&query, all)| near::expected(design, fingerprints, query, all, within))
            .collect();
        let probes = [None, Some(Probe::Directory), Some(Probe::Interpolation), Some(Probe::Binary)];
        for probe in probes {
            let asked = SearchOptions { probe, ..SearchOptions::within(within) };
            match ask(segment, queries, asked, &mut scratch) {
                Ok((found, left_out)) => {
                    assert_eq!(
                        (found, left_out),
                        (expected.clone(), 0),
                        "{design} within {within}, {probe:?}"
                    );
                }
                Err(error) => {
                    // A codec may not support this strategy.
                    assert!(probe.is_some() && matches!(error, twindex::Error::Invalid(_)), "{error}");
                }
            }
        }
        let alone =
            queries.chunks(1).map(|query| ask(segment, query, SearchOptions::within(within), &mut scratch));
        for (found, expected) in alone.zip(&expected) {
            assert_eq!(&found.unwrap().0[0], expected, "{design} within {within}, alone");
        }
        let asked = SearchOptions { visits: Some(visits), ..SearchOptions::within(within) };
        let (found, left_out) = ask(segment, queries, asked, &mut scratch).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.iter().all(|hit| expected.binary_search(hit).is_ok()), "{design} within {within}");
        }
        assert!(left_out > 0 || found == expected, "{design} within {within}: {visits} visits");
    }
}

/// Checks that the specialized sorts give the same result as a standard sort.
fn sorts(values: &[u64], lead: u32) {
    let mut expected = values.to_vec();
    expected.sort_unstable();
    let (mut items, mut scratch) = (values.to_vec(), vec![1, 2]);
    sort(&mut items, &mut scratch);
    assert_eq!(items, expected);
    // Tests values that are sorted except for their first bits, and unsorted values.
    for mut items in [expected.iter().map(|value| value.rotate_left(lead)).collect(), values.to_vec()] {
        sort_tail_in_order(&mut items, &mut scratch, lead);
        assert!(items.is_sorted(), "lead {lead}");
    }
}

/// Builds a segment of these rows within a limit of `memory` bytes; `None` is a delete. Returns the segment's bytes and
/// the keys of hidden documents.
fn of_rows(params: &Params, batches: &[Records], memory: usize) -> (Vec<u8>, Vec<u64>) {
    let vfs = MemoryVfs::default();
    let dir = std::env::temp_dir();
    let budget = SpillBudget::new(memory, &dir);
    let mut rows = Rows::new(budget).unwrap();
    for records in batches {
        rows.append(records, budget).unwrap();
    }
    let mut hidden = Vec::new();
    let built = rows.build(params, &vfs, Path::new(""), budget, |key| {
        hidden.push(key);
        Ok(())
    });
    built.unwrap().publish(place()).unwrap();
    assert!(vfs.exists(place()).unwrap());
    (vfs.get(place()), hidden)
}

/// Builds a segment of each batch and merges them within a limit of `memory` bytes, without the documents that later
/// batches delete.
fn merged(batches: &[Records], deletes: &[BTreeSet<u64>], memory: usize) -> Vec<u8> {
    let parts: Vec<Segment> =
        batches.iter().map(|records| Segment::from_bytes(bytes_of(records), place()).unwrap()).collect();
    let deleted: Vec<RoaringBitmap> = (1..)
        .zip(&parts)
        .map(|(later, part)| {
            let keys = deletes[later..].iter().flatten();
            keys.filter_map(|&key| part.find(Key::U64(key)).unwrap()).collect()
        })
        .collect();
    let inputs: Vec<MergeInput<'_>> =
        parts.iter().zip(&deleted).map(|(segment, deleted)| MergeInput { segment, deleted }).collect();
    let (vfs, dir) = (MemoryVfs::default(), std::env::temp_dir());
    let budget = SpillBudget::new(memory, &dir);
    merge(&inputs, &vfs, Path::new(""), budget).unwrap().publish(place()).unwrap();
    vfs.get(place())
}

/// Checks the posting lists and the rows of all tables of a segment.
fn go_through(segment: &Segment, by_ordinal: &[u64]) {
    let mut shared = 0;
    let ranks = 0..segment.distinct_fingerprints();
    let postings = segment.held_postings().unwrap();
    postings
        .for_each_shared(ranks, |_, ordinals| {
            let of = |ordinal: &u32| by_ordinal[*ordinal as usize];
            assert!(ordinals.len() > 1 && ordinals.is_sorted());
            assert!(ordinals.iter().all(|ordinal| of(ordinal) == of(&ordinals[0])));
            shared += ordinals.len() as u64 - 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(shared + segment.distinct_fingerprints(), segment.documents());
    for table in 1..=segment.scheme().map_or(0, |scheme| scheme.design.tables()) as usize {
        let (mut rows, mut last) = (0, None);
        segment
            .for_each_table_row(table, |row, value| {
                assert!(row == rows && last.is_none_or(|last| last <= value), "table {table}");
                (rows, last) = (rows + 1, Some(value));
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, segment.distinct_fingerprints(), "table {table}");
    }
}

/// A segment whose tables exceed every cache, so that a batch of queries is sorted first. Built once.
static LARGE: LazyLock<(Segment, Vec<u64>)> = LazyLock::new(|| {
    let mut random = Random(5);
    let fingerprints: Vec<u64> = (0..140_000).map(|_| random.next()).collect();
    let mut records = Records::new(&near::params("blocks-8", "plain"));
    for (key, &fingerprint) in (0..).zip(&fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
    }
    (Segment::from_bytes(bytes_of(&records), place()).unwrap(), fingerprints)
});

/// Runs over a thousand queries on the large segment, each near one of its fingerprints.
fn large(choices: &mut Choices<'_>) {
    let (segment, fingerprints) = &*LARGE;
    let (within, step) = (u32::from(choices.byte()) % 8, usize::from(choices.short()) | 1);
    let flips = choices.word();
    let queries: Vec<u64> = (0..1024 + usize::from(choices.byte()))
        .map(|i| fingerprints[i * step % fingerprints.len()] ^ u64::from(flips & flips >> (i % 32)))
        .collect();
    let (found, _) =
        ask(segment, &queries, SearchOptions::within(within), &mut SearchScratch::default()).unwrap();
    for place in (0..queries.len()).step_by(queries.len() / 6) {
        let mut expected = near::scan(fingerprints, queries[place]);
        expected.retain(|&(_, distance)| distance <= within);
        assert_eq!(found[place], expected, "{:x} within {within}", queries[place]);
    }
}

/// Builds segments of groups of fingerprints, with any design and codecs: in memory, with scratch files, and by merging
/// parts. All must have the same bytes, and their answers must equal the answers of a brute-force search. After patches with
/// updated checksums, queries must return answers or errors.
pub fn many(data: &[u8]) {
    let mut choices = Choices(data);
    let how = choices.byte();
    if how >= 252 {
        return large(&mut choices);
    }
    let (design, codecs) = (*choices.of(&DESIGNS), *choices.of(&CODECS));
    let (memory, visits) = (256_usize << (choices.byte() % 12), u64::from(choices.short()));
    let patches = usize::from(choices.byte()) % 16 * 5;
    let (patches, rest) = choices.0.split_at(patches.min(choices.0.len()));
    choices.0 = rest;
    let fingerprints = crowds(&mut choices);
    let queries = queries(&mut choices, &fingerprints, 6);
    sorts(&fingerprints, u32::from(how) % 65);

    // Keys ascend or are in random order. Some are repeated, some deleted, and some have no fingerprint.
    let params = near::params(design, codecs);
    let mut random = Random(how.into());
    let (mut batches, mut deletes) = (vec![Records::new(&params)], vec![BTreeSet::new()]);
    let mut all = Records::new(&params);
    let mut expected: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for (place, &fingerprint) in (0..).zip(&fingerprints) {
        let key = if how & 1 == 0 { place } else { random.next() >> ((64 - how / 4) % 64) };
        if place % 5000 == 4999 {
            batches.push(Records::new(&params));
            deletes.push(BTreeSet::new());
        }
        let kept = Some(Kept { fingerprint, ..Kept::default() });
        for records in [&mut all, batches.last_mut().unwrap()] {
            match (how & 2, place % 64) {
                (2, 62) => records.delete(Key::U64(key)).unwrap(),
                (2, 63) => records.push(Key::U64(key), None).unwrap(),
                _ => records.push(Key::U64(key), kept).unwrap(),
            }
        }
        let last = deletes.len() - 1;
        if (how & 2, place % 64) == (2, 62) {
            expected.remove(&key);
            deletes[last].insert(key);
        } else {
            expected.insert(key, ((how & 2, place % 64) != (2, 63)).then_some(fingerprint));
            deletes[last].remove(&key);
        }
    }
    let sound = bytes_of(&all);
    let (rows, hidden) = of_rows(&params, &batches, memory);
    assert!(rows == sound, "{design} {codecs}: {memory} bytes of memory make another segment");
    assert!(hidden.is_sorted() && expected.keys().all(|key| hidden.binary_search(key).is_ok()));

    assert!(merged(&batches, &deletes, memory) == sound, "{design} {codecs}: merged in {memory} bytes");
    let segment = Segment::from_bytes(sound.clone(), place()).unwrap();
    assert_eq!(segment.documents(), expected.len() as u64);
    assert!(segment.verify(|_| ()).is_empty(), "{design} {codecs}");
    if expected.values().all(Option::is_some) {
        let by_ordinal: Vec<u64> = expected.values().flatten().copied().collect();
        go_through(&segment, &by_ordinal);
        compare(&segment, (design, &by_ordinal), &queries, visits);
    }
    if patches.is_empty() {
        return;
    }
    let mut file = sound;
    let seals = Seals::of(&file);
    for patch in patches.chunks_exact(5) {
        let at = u32::from_le_bytes([patch[0], patch[1], patch[2], 0]) as usize % file.len();
        match patch[3] & 1 {
            0 => file[at] = patch[4],
            _ => file[at] ^= 1 << (patch[4] % 8),
        }
    }
    seals.reseal(&mut file, true);
    if let Ok(segment) = Segment::from_bytes(file, place()) {
        let mut scratch = SearchScratch::default();
        for within in [0, 2, 3] {
            let _ = ask(&segment, &queries, SearchOptions::within(within), &mut scratch);
        }
        segment.verify(|_| ());
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random(21);
    let mut seed = |how: u8, design: usize, codec: usize, memory: u8, patches: u8, width: u8, start: u8| {
        let mut seed = vec![how, design as u8, codec as u8, memory, 200, 0, patches];
        seed.extend((0..usize::from(patches % 16) * 5).map(|_| random.next() as u8));
        seed.extend((0..4).map(|_| random.next() as u8));
        // Two groups: one of fingerprints that agree in some bits, one of random fingerprints.
        seed.push(1);
        seed.extend(8000_u16.to_le_bytes());
        seed.extend([width, start, 8]);
        seed.extend(3000_u16.to_le_bytes());
        seed.extend([0, 0, 0]);
        for flips in [0, 1, 2, 3, 5, 245] {
            seed.push(flips);
            seed.extend((0..12).map(|_| random.next() as u8));
        }
        seed
    };
    let mut seeds = vec![seed(253, 0, 0, 0, 0, 0, 0)];
    for design in 0..DESIGNS.len() {
        for (turn, (width, start)) in [(16, 0), (24, 40), (0, 0), (40, 20), (64, 0)].into_iter().enumerate() {
            let number = design * 5 + turn;
            let codec = number % CODECS.len();
            seeds.push(seed(number as u8 * 3, design, codec, number as u8, number as u8 % 3, width, start));
        }
    }
    seeds
}
