//! Tests indexes with weighted minima and sets. The weight of an element is the number of its occurrences, its weight in
//! an IDF table, or its component of a vector.

#![allow(clippy::disallowed_methods, reason = "reads headers of an index's files")]

use std::collections::BTreeMap;

use twindex::format::header::{FEATURE_WEIGHTS, HEADER_BYTES};
use twindex::params::{Family, MinhashWeights, Near, ParamsBuilder, Shingling, Tokens, WeightUnit};
use twindex::sketch::darts::{WEIGHT_ONE, weighted_jaccard};
use twindex::sketch::{Resemblance, Scratch, Sketch, Sketcher};
use twindex::{Admitted, Error, IdfBuilder, IdfTable, Index, Params};

use crate::support::Random;

/// Returns a text with a small vocabulary, so that words occur repeatedly.
fn text(random: &mut Random) -> String {
    let words = 4 + random.below(24);
    (0..words).map(|_| format!("w{}", random.below(7))).collect::<Vec<_>>().join(" ")
}

fn frequencies(text: &str) -> Vec<(u64, u64)> {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for word in text.split(' ') {
        *found.entry(word[1..].parse().unwrap()).or_default() += 1;
    }
    found.into_iter().collect()
}

fn by_frequencies(builder: ParamsBuilder) -> Params {
    let near = Near::resembling(0.7).unwrap();
    builder.words(1).minhash(4, 3).minhash_weights(MinhashWeights::Frequencies).near(near).build().unwrap()
}

#[test]
fn near_documents_with_frequency_weights_equal_brute_force() {
    let mut random = Random(11);
    let texts: Vec<String> = (0..300).map(|_| text(&mut random)).collect();
    let dir = tempfile::tempdir().unwrap();
    let params = by_frequencies(Params::builder().sets().marks());
    let index = Index::create(dir.path().join("index"), params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let is_near = |a: &str, b: &str| {
        let (min, max) = weighted_jaccard(&frequencies(a), &frequencies(b));
        (10 * min >= 7 * max).then_some((min, max))
    };
    let mut kept: Vec<usize> = Vec::new();
    let mut dropped = 0;
    for (number, text) in texts.iter().enumerate() {
        let wanted = kept.iter().any(|&other| is_near(text, &texts[other]).is_some());
        let admitted = writer.admit(&number.to_string(), &sketcher.sketch(text).unwrap()).unwrap();
        assert_eq!(matches!(admitted, Admitted::Duplicate { .. }), wanted, "{text}: {admitted:?}");
        if wanted {
            dropped += 1;
        } else {
            kept.push(number);
        }
        if number % 70 == 69 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    drop((writer, index));
    assert!(dropped > 30 && kept.len() > 30, "{dropped}");

    let index = Index::open(dir.path().join("index")).unwrap();
    let snapshot = index.snapshot();
    for text in texts.iter().step_by(7) {
        let hits = snapshot.near(&sketcher.sketch(text).unwrap()).unmarked().run().unwrap().hits;
        let found: BTreeMap<String, (u64, u64)> = hits
            .iter()
            .map(|hit| {
                let Some(Resemblance::Exact { intersection, union }) = hit.resemblance else {
                    panic!("an estimate: {hit:?}")
                };
                (hit.key.to_string(), (intersection as u64, union as u64))
            })
            .collect();
        let wanted = kept.iter().filter_map(|&other| {
            let (min, max) = is_near(text, &texts[other])?;
            Some((other.to_string(), (min as u64, max as u64)))
        });
        assert_eq!(found, wanted.collect(), "{text}");
    }
    for entry in std::fs::read_dir(dir.path().join("index")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() >= HEADER_BYTES && name != "CURRENT" && name != "LOCK" {
            let features = u32::from_le_bytes(bytes[12..16].try_into().unwrap());
            assert_eq!(features & FEATURE_WEIGHTS, FEATURE_WEIGHTS, "{name}");
        }
    }
}

#[test]
fn sketches_with_other_weights_are_refused_naming_the_parameter() {
    let weighted = by_frequencies(Params::builder());
    let plain = by_frequencies(Params::builder()).sketch();
    let mut plain = plain;
    plain.minhash.as_mut().unwrap().weights = MinhashWeights::Distinct;
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create(dir.path().join("index"), weighted.clone()).unwrap();
    let sketch = Sketcher::new(plain).unwrap().sketch("w1 w1").unwrap();
    let mut writer = index.writer().unwrap();
    let error = writer.put("a", &sketch).map(drop).unwrap_err();
    assert!(matches!(error, Error::ParamsMismatch { .. }), "{error}");
    assert!(
        error.to_string().contains("minhash-weights is frequencies in the index and absent here"),
        "{error}"
    );
    // The weights of minima do not affect fingerprints.
    let both = |builder: ParamsBuilder| builder.words(1).simhash(3).minhash(4, 3).build().unwrap();
    let (weighted, plain) =
        (both(Params::builder().minhash_weights(MinhashWeights::Frequencies)), both(Params::builder()));
    weighted.check_same_fingerprints(&plain).unwrap();
    assert!(weighted.check_same_bands(&plain).is_err() && weighted.check_same_shingles(&plain).is_err());
    assert_eq!(Params::decode(&weighted.encode()).unwrap(), weighted);
}

#[test]
fn vectors_match_by_their_own_weights_and_by_idf_weights() {
    let shingling = Shingling::words(1, 0).with_tokens(Tokens::Features).unwrap();
    let mut random = Random(3);
    let mut vector = || -> Vec<(u64, i64)> {
        let hash = |number: u64| number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..6)
            .map(|number| {
                (hash(number), (4096 << random.below(9)) + i64::try_from(random.below(1000)).unwrap())
            })
            .collect()
    };
    let vectors: Vec<Vec<(u64, i64)>> = (0..80).map(|_| vector()).collect();
    let mut counted = IdfBuilder::new(&shingling).min_df(1);
    for vector in &vectors {
        let mut set: Vec<u64> = vector.iter().map(|one| one.0).take(1 + vector.len() / 2).collect();
        set.sort_unstable();
        counted.add(&set).unwrap();
    }
    let table = counted.finish().unwrap();
    for weights in [MinhashWeights::Frequencies, MinhashWeights::Idf { table: table.digest() }] {
        let by_table = weights != MinhashWeights::Frequencies;
        let dir = tempfile::tempdir().unwrap();
        let builder = Params::builder().shingling(shingling.clone()).minhash(240, 1).family(Family::Darts);
        let params = builder.minhash_weights(weights).signature_bits(32).build().unwrap();
        let path = dir.path().join("index");
        let index = if by_table {
            Index::create_with_idf(&path, params, &table).unwrap()
        } else {
            Index::create(&path, params).unwrap()
        };
        let sketcher = index.sketcher().unwrap();
        let sketch = |vector: &[(u64, i64)]| {
            let mut sketch = Sketch::default();
            sketcher.sketch_weighted(vector, &mut Scratch::default(), &mut sketch).unwrap();
            sketch
        };
        let mut writer = index.writer().unwrap();
        for (number, vector) in vectors.iter().enumerate() {
            writer.put(&number.to_string(), &sketch(vector)).unwrap();
        }
        writer.commit().unwrap();
        writer.flush().unwrap();
        drop((writer, index));
        let index = Index::open(&path).unwrap();
        let weighted = |vector: &[(u64, i64)]| {
            let weight = |hash, weight: i64| {
                let weight = weight.unsigned_abs();
                if by_table { weight * u64::from(table.weight(hash)) / 256 } else { weight }
            };
            let mut all: Vec<(u64, u64)> =
                vector.iter().map(|&(hash, units)| (hash, weight(hash, units))).collect();
            all.sort_unstable();
            all
        };
        let mut squares = 0.0;
        let mut pairs = 0;
        for a in vectors.iter().take(20) {
            let hits = index.snapshot().resembling(&sketch(a), 0.5).estimated().run().unwrap().hits;
            assert!(!hits.is_empty());
            for hit in hits {
                let b = &vectors[hit.key.to_string().parse::<usize>().unwrap()];
                let (min, max) = weighted_jaccard(&weighted(a), &weighted(b));
                let (exact, estimate) = (min as f64 / max as f64, hit.resemblance.unwrap().value());
                assert!((exact - estimate).abs() < 5.0 * (0.25_f64 / 240.0).sqrt(), "{exact} {estimate}");
                squares += (exact - estimate).powi(2);
                pairs += 1;
            }
        }
        assert!(pairs > 40 && squares / f64::from(pairs) < 0.25 / 240.0, "{pairs}");
        const { assert!(WEIGHT_ONE == 1 << 16) };
    }
}

/// Compares with `tests/golden/occurrences.tsv`, written by `tests/second/occurrences.py`. These minima and sets are
/// stored in files, so they must never change.
#[test]
fn weighted_elements_and_minima_match_the_second_implementation() {
    let mut lines = include_str!("../golden/occurrences.tsv").lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("name\ttext\twidth\tseed\telements\tset\tfilled\tdarts"));
    let mut checked = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, text, width, seed, count, digest, filled, darts] = columns[..] else { panic!("{line}") };
        let of = |family, minima| {
            let builder = Params::builder().words(width.parse().unwrap()).seed(seed.parse().unwrap());
            let builder =
                builder.minhash(minima, 1).family(family).minhash_weights(MinhashWeights::Frequencies);
            Sketcher::new(&builder.sets().build().unwrap()).unwrap().sketch(text).unwrap()
        };
        let [of_filled, of_darts] = [of(Family::OnePermutationFilled, 16), of(Family::Darts, 12)];
        let bytes: Vec<u8> = of_filled.set().iter().flat_map(|element| element.to_le_bytes()).collect();
        let found = (of_filled.set().len(), format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)));
        assert_eq!(found, (count.parse().unwrap(), digest.to_owned()), "{name}");
        assert_eq!(of_darts.set(), of_filled.set(), "{name}");
        for (sketch, wanted) in [(of_filled, filled), (of_darts, darts)] {
            let shown: Vec<String> = sketch.signature().iter().map(|value| format!("{value:x}")).collect();
            assert_eq!(shown.join(" "), wanted, "{name}");
        }
        checked += 1;
    }
    assert_eq!(checked, 12);
}

/// Compares with `tests/golden/whole-weights.tsv`, written by `tests/second/whole.py`. Elements in whole units are
/// stored in files, too.
#[test]
fn whole_unit_elements_and_minima_match_the_second_implementation() {
    let mut lines = include_str!("../golden/whole-weights.tsv").lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("unit\ttable\tvector\telements\tset\tfilled\tdarts"));
    let shingling = Shingling::words(1, 0).with_tokens(Tokens::Features).unwrap();
    let mut checked = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [unit, by_table, vector, count, digest, filled, darts] = columns[..] else { panic!("{line}") };
        let vector: Vec<(u64, i64, u32)> = vector
            .split(' ')
            .map(|one| {
                let fields: Vec<&str> = one.split(':').collect();
                let hash = u64::from_str_radix(fields[0], 16).unwrap();
                (hash, fields[1].parse().unwrap(), fields[2].parse().unwrap())
            })
            .collect();
        let (hashes, frequencies) = vector.iter().map(|one| (one.0, one.2)).unzip();
        let table = IdfTable::new(7, 999, 0, shingling.clone(), hashes, frequencies).unwrap();
        let weights =
            if by_table == "1" { MinhashWeights::Idf { table: 7 } } else { MinhashWeights::Frequencies };
        let of = |family, minima| {
            let builder = Params::builder().shingling(shingling.clone()).minhash(minima, 1).family(family);
            let builder = builder.minhash_weights(weights).sets();
            let params =
                builder.weight_unit(WeightUnit::new(unit.parse().unwrap()).unwrap()).build().unwrap();
            let sketcher = match weights {
                MinhashWeights::Idf { .. } => Sketcher::with_idf(&params, table.clone().into()).unwrap(),
                _ => Sketcher::new(&params).unwrap(),
            };
            let vector: Vec<(u64, i64)> = vector.iter().map(|&(hash, units, _)| (hash, units)).collect();
            let mut sketch = Sketch::default();
            sketcher.sketch_weighted(&vector, &mut Scratch::default(), &mut sketch).unwrap();
            sketch
        };
        let [of_filled, of_darts] = [of(Family::OnePermutationFilled, 16), of(Family::Darts, 12)];
        let bytes: Vec<u8> = of_filled.set().iter().flat_map(|element| element.to_le_bytes()).collect();
        let found = (of_filled.set().len(), format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)));
        assert_eq!(found, (count.parse().unwrap(), digest.to_owned()), "{line}");
        assert_eq!(of_darts.set(), of_filled.set());
        for (sketch, wanted) in [(of_filled, filled), (of_darts, darts)] {
            let shown: Vec<String> = sketch.signature().iter().map(|value| format!("{value:x}")).collect();
            assert_eq!(shown.join(" "), wanted, "{line}");
        }
        checked += 1;
    }
    assert_eq!(checked, 33);
}
