//! Tests joins and batches of queries against comparing all pairs, for each radius and many distributions of fingerprints.
//! Results must not depend on threads, memory, segments or the strategy.

use std::collections::BTreeMap;

use twindex::{Code, Error, Fingerprint, Index, Params};
use twindex_join::{
    BatchStrategy, JoinResources, NearFingerprints, RawValues, answers_within, choose,
    near_fingerprints_within, pairs_within, raw_answers_within, raw_near_fingerprints_within,
    sorted_answers_within,
};
use twindex_kernel::splitmix::SplitMix;

fn flipped(random: &mut SplitMix, value: u64, bits: u64) -> u64 {
    (0..bits).fold(value, |value, _| value ^ 1 << (random.next() % 64))
}

/// Returns named sets of fingerprints: some that tables handle well, and some that they handle badly.
fn sets(seed: u64) -> BTreeMap<&'static str, Vec<u64>> {
    let mut random = SplitMix(seed);
    let mut sets = BTreeMap::new();
    sets.insert("uniform", (0..5000).map(|_| random.next()).collect());
    let mut clustered: Vec<u64> = Vec::new();
    for at in 0..6000_usize {
        let copied = clustered.get(random.next() as usize % (2 * at + 1)).copied();
        let flips = random.next() % 12;
        let value = copied.map(|value| flipped(&mut random, value, flips));
        clustered.push(value.unwrap_or_else(|| random.next()));
    }
    sets.insert("clustered", clustered);
    // One block is equal in all fingerprints, and another block in most of them.
    let hot = |random: &mut SplitMix| {
        let value = random.next();
        if value.is_multiple_of(8) { value >> 16 } else { value >> 16 & !(0xffff << 20) }
    };
    sets.insert("a hot block", (0..5000).map(|_| hot(&mut random)).collect());
    // Fingerprints differ only in a few scattered bits.
    let scattered = 0x8421_9bd7_0f3c_5a69;
    sets.insert("few bits", (0..5000).map(|_| random.next() & scattered).collect());
    sets.insert("hardly any bits", (0..1500).map(|_| random.next() & 0x8001_0840_2100_0c11).collect());
    let centre = random.next();
    sets.insert("a ball", (0..1500).map(|at| flipped(&mut random, centre, at % 7)).collect());
    // One bits are rare, so no block is selective.
    sets.insert("sparse", (0..5000).map(|_| random.next() & random.next() & random.next()).collect());
    sets.insert("hardly any", vec![7, 7, 8, u64::MAX]);
    sets.insert("one", vec![0]);
    sets.insert("none", Vec::new());
    // Some fingerprints are identical, or near to identical ones.
    let pool: Vec<u64> = (0..40).map(|_| random.next()).collect();
    sets.insert(
        "identical",
        (0..5000).map(|at| if at % 9 == 0 { pool[at % 40] } else { random.next() }).collect(),
    );
    sets
}

type Pairs = Vec<(u32, u32, u32)>;

/// Returns all pairs within 10 bits, inside one set or between two sets, by brute force.
fn defined(left: &[u64], right: Option<&[u64]>) -> Pairs {
    let mut pairs = Vec::new();
    for (a, x) in (0_u32..).zip(left) {
        let from = right.map_or(a as usize + 1, |_| 0);
        for (b, y) in (from as u32..).zip(&right.unwrap_or(left)[from..]) {
            let distance = (x ^ y).count_ones();
            if distance <= 10 {
                pairs.push((a, b, distance));
            }
        }
    }
    pairs
}

fn resources(dir: &tempfile::TempDir, threads: usize, memory: usize) -> JoinResources<'_> {
    JoinResources { dir: dir.path(), memory, threads }
}

fn within(all: &Pairs, radius: u32) -> Pairs {
    all.iter().copied().filter(|pair| pair.2 <= radius).collect()
}

#[test]
fn joins_find_all_pairs_once_at_every_radius() {
    let dir = tempfile::tempdir().unwrap();
    for (name, set) in sets(1) {
        let (left, right) = set.split_at(set.len() / 2);
        let (inside, across) = (defined(&set, None), defined(left, Some(right)));
        for radius in 0..=10 {
            let ways = [(1, 1 << 30), (3, 20_000)];
            for &(threads, memory) in if radius == 3 { &ways[..] } else { &ways[radius as usize % 2..][..1] }
            {
                let resources = resources(&dir, threads, memory);
                for (values, other, all) in
                    [(&set[..], None, &inside), (left, Some(RawValues::Held(right)), &across)]
                {
                    let states = raw_near_fingerprints_within(
                        RawValues::Held(values),
                        other,
                        radius,
                        resources,
                        Vec::new,
                        |found: &mut Pairs, meeting| {
                            meeting.for_each(|a, b| {
                                let ordered = all.as_ptr() == across.as_ptr() || a < b;
                                let (a, b) = if ordered { (a, b) } else { (b, a) };
                                found.push((a, b, meeting.distance));
                                Ok(())
                            })
                        },
                    );
                    let mut found = states.unwrap().concat();
                    found.sort_unstable();
                    assert!(found == within(all, radius), "{name}, {radius}, {threads} threads");
                }
                for way in [BatchStrategy::Merge, BatchStrategy::Scan] {
                    let states = raw_answers_within(
                        &RawValues::Held(right),
                        left,
                        radius,
                        way,
                        resources,
                        Vec::new,
                        |found: &mut Pairs, a, b, distance| {
                            found.push((a, b, distance));
                            Ok(())
                        },
                    );
                    let mut found = states.unwrap().concat();
                    found.sort_unstable();
                    assert!(found == within(&across, radius), "{name}, {radius}, {way}");
                }
            }
        }
    }
}

/// 16 bits cannot store all positions in a part of more than 2^16 fingerprints.
#[test]
fn part_of_more_than_65536_fingerprints_is_joined_correctly() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = SplitMix(4);
    let mut set: Vec<u64> = Vec::new();
    for at in 0..80_000_usize {
        // The first bits of all blocks are equal, so all fingerprints of a table are in one part. The other bits form
        // buckets.
        let new = random.next() & 0x0fff_0fff_0fff_0fff;
        let earlier = set.get(random.next() as usize % (at + 1)).copied();
        let flips = random.next() % 5;
        let value =
            earlier.filter(|_| at % 3 == 2).map_or(new, |earlier| flipped(&mut random, earlier, flips));
        set.push(value);
    }
    let (max, few) = set.split_at(77_000);
    let near = |left: &[u64], right: &[u64], from: fn(usize) -> usize| -> Pairs {
        let mut pairs = Vec::new();
        for (a, x) in left.iter().enumerate() {
            let from = from(a);
            for (b, y) in right.iter().enumerate().skip(from) {
                let distance = (x ^ y).count_ones();
                if distance <= 3 {
                    pairs.push((a as u32, b as u32, distance));
                }
            }
        }
        pairs
    };
    for (left, right, expected) in [
        (&set[..], None, near(&set, &set, |a| a + 1)),
        (max, Some(RawValues::Held(few)), near(max, few, |_| 0)),
        (few, Some(RawValues::Held(max)), near(few, max, |_| 0)),
    ] {
        let states = raw_near_fingerprints_within(
            RawValues::Held(left),
            right,
            3,
            resources(&dir, 1, 1 << 30),
            Vec::new,
            |found: &mut Pairs, meeting| {
                meeting.for_each(|a, b| {
                    found.push((a, b, meeting.distance));
                    Ok(())
                })
            },
        );
        let mut found = states.unwrap().concat();
        found.sort_unstable();
        assert!(expected.len() > 500, "{}", expected.len());
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }
}

/// Creates an index with several segments and a memtable. Some documents are deleted or replaced. Returns the index and its
/// live documents.
fn index(dir: &tempfile::TempDir, name: &str, set: &[u64], commits: usize) -> (Index, BTreeMap<u64, u64>) {
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(dir.path().join(name), params).unwrap();
    let mut writer = index.writer().unwrap();
    let mut live = BTreeMap::new();
    for (at, part) in set.chunks(set.len().div_ceil(commits)).enumerate() {
        for (i, &value) in part.iter().enumerate() {
            // Each segment has keys between the keys of the other segments.
            let key = (i * commits + at) as u64;
            writer.put(key, Fingerprint(value)).unwrap();
            live.insert(key, value);
        }
        for key in (0..set.len() as u64).step_by(17 + at) {
            if live.remove(&key).is_some() {
                writer.delete(key).unwrap();
            }
        }
        writer.commit().unwrap();
        if at % 2 == 0 {
            writer.flush().unwrap();
        }
    }
    (index, live)
}

#[test]
fn document_pairs_are_sorted_by_key_for_any_segments_and_memory() {
    let dir = tempfile::tempdir().unwrap();
    for (name, set) in sets(2) {
        if set.len() < 1000 || name == "hardly any bits" || name == "a ball" {
            continue;
        }
        for commits in [1, 4] {
            let (one, mine) = index(&dir, &format!("{name} {commits} left"), &set[..set.len() / 2], commits);
            let (two, theirs) = index(&dir, &format!("{name} {commits} right"), &set[set.len() / 2..], 3);
            let (one, two) = (one.snapshot(), two.snapshot());
            let [mine, theirs] = [mine, theirs].map(|of| of.into_iter().unzip::<_, _, Vec<u64>, Vec<u64>>());
            let (inside, across) = (defined(&mine.1, None), defined(&mine.1, Some(&theirs.1)));
            for radius in [0, 1, 3, 6, 10] {
                for (threads, memory) in [(1, 1 << 30), (2, 1 << 16)] {
                    for (right, all, others) in [(None, &inside, &mine.0), (Some(&two), &across, &theirs.0)] {
                        let wanted: Vec<_> = within(all, radius)
                            .into_iter()
                            .map(|(a, b, distance)| (mine.0[a as usize], others[b as usize], distance))
                            .collect();
                        let mut found = Vec::new();
                        let resources = resources(&dir, threads, memory);
                        pairs_within(&one, right, radius, resources, |a, b, distance| {
                            found.push((a.key()?.as_u64().unwrap(), b.key()?.as_u64().unwrap(), distance));
                            Ok::<_, Error>(())
                        })
                        .unwrap();
                        assert!(found == wanted, "{name}, {commits} commits, {radius}");
                        let counts = near_fingerprints_within(
                            &one,
                            right,
                            radius,
                            resources,
                            || 0,
                            |count, meeting| {
                                *count += meeting.pairs();
                                Ok(())
                            },
                        );
                        assert_eq!(counts.unwrap().into_iter().sum::<u64>(), wanted.len() as u64);
                    }
                }
            }
        }
    }
}

#[test]
fn document_pairs_of_codes_are_sorted_by_key_for_any_width_segments_and_memory() {
    let dir = tempfile::tempdir().unwrap();
    for (bits, radius) in [(64, 20), (128, 9), (192, 40), (256, 31), (384, 0), (512, 512)] {
        let mut random = SplitMix(bits.into());
        let width = usize::from(bits) / 64;
        let mut all: Vec<Code> = Vec::new();
        for at in 0..400 {
            let mut words: Vec<u64> = (0..width).map(|_| random.next()).collect();
            if at > 0 && random.below(3) > 0 {
                words = all[random.below(at) as usize].words().to_vec();
                for _ in 0..[0, 0, bits / 12][random.below(3) as usize] {
                    let bit = random.below(bits.into()) as usize;
                    words[bit / 64] ^= 1 << (bit % 64);
                }
            }
            all.push(Code::of_words(&words).unwrap());
        }
        let make = |name: &str, codes: &[Code], first: u64| {
            let params = Params::builder().u64_keys().codes(bits, 3).build().unwrap();
            let index = Index::create(dir.path().join(format!("{bits} {name}")), params).unwrap();
            let mut writer =
                index.writer_with(twindex::WriterOptions::default().background_merges(false)).unwrap();
            let mut live = BTreeMap::new();
            for (at, &code) in codes.iter().enumerate() {
                // Each segment has keys between the keys of the others.
                let key = first + at as u64 * 7 % codes.len() as u64;
                writer.put(key, code).unwrap();
                live.insert(key, code);
                if at % 80 == 79 {
                    writer.delete(key).unwrap();
                    live.remove(&key);
                    writer.commit().unwrap();
                    writer.flush().unwrap();
                }
            }
            writer.commit().unwrap();
            (index, live)
        };
        let ((one, mine), (two, theirs)) = (make("left", &all[..250], 0), make("right", &all[200..], 100));
        let (one, two) = (one.snapshot(), two.snapshot());
        assert!(one.segments().len() > 2);
        for (threads, memory) in [(1, 1 << 30), (2, 1 << 12)] {
            for (right, others) in [(None, &mine), (Some(&two), &theirs)] {
                let mut wanted = Vec::new();
                for (a, x) in &mine {
                    let from = others.iter().filter(|&(b, _)| right.is_some() || a < b);
                    wanted.extend(from.map(|(b, y)| (*a, *b, x.distance(y))).filter(|pair| pair.2 <= radius));
                }
                let mut found = Vec::new();
                let resources = resources(&dir, threads, memory);
                pairs_within(&one, right, radius, resources, |a, b, distance| {
                    found.push((a.key()?.as_u64().unwrap(), b.key()?.as_u64().unwrap(), distance));
                    Ok::<_, Error>(())
                })
                .unwrap();
                assert!(found == wanted, "{bits} bits, {threads} threads");
                assert!(!wanted.is_empty());
            }
        }
        let beyond = u32::from(bits) + 1;
        let refused =
            pairs_within(&one, None, beyond, resources(&dir, 1, 1 << 20), |_, _, _| Ok::<_, Error>(()));
        assert!(matches!(refused, Err(Error::Invalid(_))));
        let other = Params::builder().u64_keys().codes(if bits == 64 { 128 } else { 64 }, 3);
        let other = Index::create(dir.path().join(format!("{bits} other")), other.build().unwrap()).unwrap();
        let refused =
            pairs_within(&one, Some(&other.snapshot()), 1, resources(&dir, 1, 1 << 20), |_, _, _| {
                Ok::<_, Error>(())
            });
        assert!(matches!(refused, Err(Error::ParamsMismatch { .. })));
    }
}

#[test]
fn index_beyond_memory_is_read_in_pieces_for_every_codec() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = SplitMix(5);
    let mut set: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
    set.extend((0..500).map(|at| set[at * 31] ^ 1 << (at % 64)).collect::<Vec<_>>());
    let queries: Vec<Fingerprint> = set.iter().skip(7).step_by(40).map(|&value| Fingerprint(value)).collect();
    for codec in ["planes", "compact", "manku", "plain"] {
        let tables = ("auto".parse().unwrap(), codec.parse().unwrap());
        let params = Params::builder().u64_keys().simhash(3).tables(tables.0, tables.1).build().unwrap();
        let index = Index::create(dir.path().join(codec), params).unwrap();
        let mut writer = index.writer().unwrap();
        for (key, &value) in (0..).zip(&set) {
            writer.put(key, Fingerprint(value)).unwrap();
        }
        writer.commit().unwrap();
        writer.flush().unwrap();
        let snapshot = index.snapshot();
        for (threads, memory) in [(1, 1 << 30), (1, 1 << 16), (3, 1 << 16)] {
            let resources = resources(&dir, threads, memory);
            let add = |pairs: &mut u64, meeting: &NearFingerprints<'_>| {
                *pairs += meeting.pairs();
                Ok(())
            };
            let pairs = near_fingerprints_within(&snapshot, None, 3, resources, || 0, add).unwrap();
            assert_eq!(pairs.into_iter().sum::<u64>(), 500, "{codec} {threads} {memory}");
            for way in [BatchStrategy::Merge, BatchStrategy::Scan] {
                let mut found = Vec::new();
                sorted_answers_within(&snapshot, &queries, 3, way, resources, |number, place, distance| {
                    found.push((number, place.key()?.as_u64().unwrap(), distance));
                    Ok::<_, Error>(())
                })
                .unwrap();
                let own = found.iter().filter(|(number, key, distance)| {
                    *distance == 0 && set[*key as usize] == queries[*number].0
                });
                assert_eq!(own.count(), queries.len(), "{codec} {way} {threads} {memory}");
            }
        }
    }
}

#[test]
fn probes_merge_and_scan_give_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    for (name, set) in sets(3).into_iter().filter(|(name, _)| ["clustered", "a hot block"].contains(name)) {
        let (one, live) = index(&dir, name, &set, 3);
        let snapshot = one.snapshot();
        let mut random = SplitMix(9);
        let queries: Vec<Fingerprint> = (0..3000)
            .map(|at| {
                Fingerprint(if at % 3 == 0 {
                    random.next()
                } else {
                    flipped(&mut random, set[at], at as u64 % 5)
                })
            })
            .collect();
        for radius in [0, 3, 5, 10] {
            let mut wanted = Vec::new();
            for (number, question) in queries.iter().enumerate() {
                for (&key, value) in &live {
                    let distance = (question.0 ^ value).count_ones();
                    if distance <= radius {
                        wanted.push((number, distance, key));
                    }
                }
            }
            wanted.sort_unstable();
            assert!(radius < 3 || wanted.len() > 500, "a test of something");
            for way in [BatchStrategy::Probes, BatchStrategy::Merge, BatchStrategy::Scan] {
                for (threads, memory) in [(1, 1 << 30), (3, 1 << 16)] {
                    let resources = resources(&dir, threads, memory);
                    let mut found = Vec::new();
                    sorted_answers_within(
                        &snapshot,
                        &queries,
                        radius,
                        way,
                        resources,
                        |number, place, distance| {
                            found.push((number, distance, place.key()?.as_u64().unwrap()));
                            Ok::<_, Error>(())
                        },
                    )
                    .unwrap();
                    assert!(found == wanted, "{name} {radius} {way} {threads}");
                    let states = answers_within(
                        &snapshot,
                        &queries,
                        radius,
                        way,
                        resources,
                        Vec::new,
                        |found: &mut Vec<_>, number, _, place, distance| {
                            found.push((number, distance, place.key()?.as_u64().unwrap()));
                            Ok(())
                        },
                    );
                    let mut found = states.unwrap().concat();
                    found.sort_unstable();
                    assert!(found == wanted, "{name} {radius} {way} {threads}");
                }
            }
        }
        assert_eq!(choose(&snapshot, 1, 3).unwrap(), BatchStrategy::Probes);
        assert_eq!(choose(&snapshot, 100_000_000, 3).unwrap(), BatchStrategy::Merge);
    }
}

#[test]
fn near_pairs_of_many_fingerprints_do_not_depend_on_threads_or_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = SplitMix(5);
    let mut set: Vec<u64> = Vec::new();
    for at in 0..150_000_usize {
        let copied = set.get(random.next() as usize % (3 * at + 1)).copied();
        let flips = random.next() % 5;
        let value = copied.map(|value| flipped(&mut random, value, flips));
        set.push(value.unwrap_or_else(|| random.next()));
    }
    let (left, right) = set.split_at(90_000);
    let mut first: Option<[Pairs; 3]> = None;
    let (of_all, _) = index(&dir, "all", &set, 1);
    let all = of_all.snapshot();
    for (threads, memory) in
        [(1, 1 << 30), (2, 1 << 30), (3, 1 << 30), (1, 1 << 20), (5, 1 << 20), (2, 3 << 20)]
    {
        let resources = resources(&dir, threads, memory);
        let raw = |values: &[u64], other: Option<&[u64]>| {
            let states = raw_near_fingerprints_within(
                RawValues::Held(values),
                other.map(RawValues::Held),
                3,
                resources,
                Vec::new,
                |found: &mut Pairs, meeting| {
                    meeting.for_each(|a, b| {
                        found.push((a, b, meeting.distance));
                        Ok(())
                    })
                },
            );
            states.unwrap().concat()
        };
        let indexed =
            near_fingerprints_within(&all, None, 3, resources, Vec::new, |found: &mut Pairs, meeting| {
                meeting.for_each(|a, b| {
                    found.push((a.ordinal.min(b.ordinal), a.ordinal.max(b.ordinal), meeting.distance));
                    Ok(())
                })
            });
        let mut found = [raw(&set, None), raw(left, Some(right)), indexed.unwrap().concat()];
        for pairs in &mut found {
            pairs.sort_unstable();
        }
        assert!(found.iter().all(|pairs| pairs.len() > 10_000), "{:?}", found.each_ref().map(Vec::len));
        let first = first.get_or_insert_with(|| found.clone());
        assert!(found == *first, "{threads} threads, {memory} bytes");
    }
}

#[test]
fn first_error_ends_a_join_and_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    let set = &sets(4)["clustered"];
    for threads in [1, 4] {
        let ended = raw_near_fingerprints_within(
            RawValues::Held(set),
            None,
            3,
            resources(&dir, threads, 1 << 20),
            || (),
            |(), _| Err(Error::Invalid("enough".into())),
        );
        assert!(matches!(ended, Err(Error::Invalid(why)) if why == "enough"));
        let refused = raw_near_fingerprints_within(
            RawValues::Held(set),
            None,
            11,
            resources(&dir, threads, 1 << 20),
            || (),
            |(), _| Ok(()),
        );
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
}
