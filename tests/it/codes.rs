//! Tests indexes of fingerprints of any width against a comparison of all documents.
#![allow(clippy::disallowed_methods, reason = "changes the files of an index from outside")]

use std::collections::BTreeMap;
use std::path::Path;

use twindex::design::{CodecChoice, DesignChoice};
use twindex::params::{Near, SimhashWeights};
use twindex::sketch::{Buffers, CODE_WIDTHS};
use twindex::{
    Admitted, Answers, Code, Document, Error, Fingerprint, GROUP_QUESTIONS, Index, Params, RealVfs,
    Resources, Sketcher, WriterOptions,
};
use twindex_kernel::splitmix::SplitMix;

/// A document of the model.
#[derive(Clone, Copy, Debug)]
struct Stored {
    code: Code,
    is_marked: bool,
    priority: Option<u64>,
}

type Model = BTreeMap<u64, Stored>;

/// Returns a random code, or one near a code that was returned before, often the same one.
fn code(random: &mut SplitMix, bits: usize, before: &mut Vec<Code>) -> Code {
    let mut words: Vec<u64> = (0..bits / 64).map(|_| random.next()).collect();
    if !random.next().is_multiple_of(4) && !before.is_empty() {
        words = before[random.next() as usize % before.len()].words().to_vec();
        for _ in 0..[0, 0, 1, bits / 10][random.next() as usize % 4] {
            let bit = random.next() as usize % bits;
            words[bit / 64] ^= 1 << (bit % 64);
        }
    }
    let code = Code::of_words(&words).unwrap();
    before.push(code);
    code
}

fn near(model: &Model, to: &Code, within: u32, wants: impl Fn(&Stored) -> bool) -> Vec<(u32, u64)> {
    let found = model.iter().filter(|(_, stored)| wants(stored));
    let found = found.map(|(&key, stored)| (stored.code.distance(to), key));
    let mut found: Vec<(u32, u64)> = found.filter(|&(distance, _)| distance <= within).collect();
    found.sort_unstable();
    found
}

fn check(index: &Index, model: &Model, queries: &[Code]) {
    let snapshot = index.snapshot();
    assert_eq!(snapshot.documents(), model.len() as u64);
    for (key, stored) in model {
        let record = snapshot.get(*key).unwrap().unwrap();
        assert_eq!((record.code, record.fingerprint), (Some(stored.code), None));
        assert_eq!((record.is_duplicate, record.priority), (stored.is_marked, stored.priority));
    }
    let bits = queries[0].bits() as u32;
    for within in [0, 1, bits / 16, bits / 10, bits / 5, bits / 2, bits] {
        let keys = |answers: &Answers| -> Vec<(u32, u64)> {
            answers.hits.iter().map(|hit| (hit.distance.unwrap(), hit.key.as_u64().unwrap())).collect()
        };
        let by_batch = snapshot.codes_within(queries, within, usize::MAX).unwrap();
        let limited = snapshot.codes_within(queries, within, 3).unwrap();
        for (number, query) in queries.iter().enumerate() {
            let expected = near(model, query, within, |_| true);
            assert_eq!(keys(&by_batch[number]), expected, "{within}");
            assert_eq!(keys(&limited[number]), expected[..expected.len().min(3)]);
            assert_eq!(limited[number].has_more, expected.len() > 3);
            if number % 7 > 0 {
                continue; // one by one, queries take longer
            }
            let keys = |query: twindex::Query| keys(&query.run().unwrap());
            assert_eq!(keys(snapshot.within(*query, within)), expected, "{within}");
            let limited = expected.len().min(3);
            assert_eq!(keys(snapshot.within(*query, within).limit(3)), expected[..limited]);
            let unmarked = near(model, query, within, |stored| !stored.is_marked);
            let found = keys(snapshot.within(*query, within).unmarked());
            if unmarked.is_empty() {
                assert!(found.iter().all(|hit| expected.contains(hit))); // orphans
            } else {
                assert_eq!(found, unmarked);
            }
            assert_eq!(snapshot.within(*query, within).count().unwrap(), expected.len() as u64);
            assert_eq!(snapshot.within(*query, within).any().unwrap().is_some(), !expected.is_empty());
        }
    }
}

#[test]
fn index_of_each_width_answers_as_a_comparison_of_all_documents() {
    for (seed, bits) in (0..).zip(CODE_WIDTHS) {
        let mut random = SplitMix(seed);
        let dir = tempfile::tempdir().unwrap();
        let params = Params::builder().u64_keys().codes(bits as u16, bits as u16 / 16).marks().priorities();
        let index = Index::create(dir.path().join("x"), params.build().unwrap()).unwrap();
        let options = || WriterOptions::default().background_merges(false);
        let mut writer = index.writer_with(options()).unwrap();
        let (mut model, mut before) = (Model::new(), Vec::new());
        for step in 0..900_u64 {
            let key = random.next() % 400;
            if random.next().is_multiple_of(5) {
                writer.delete(key).unwrap();
                model.remove(&key);
            } else {
                let code = code(&mut random, bits, &mut before);
                let is_marked = random.next().is_multiple_of(3);
                let priority = random.next().is_multiple_of(2).then_some(step);
                let document = Document::from(code).with_priority(priority);
                writer.put(key, if is_marked { document.as_duplicate() } else { document }).unwrap();
                model.insert(key, Stored { code, is_marked, priority });
            }
            if step % 90 == 89 {
                writer.commit().unwrap();
            }
            if step % 270 == 269 {
                writer.flush().unwrap();
            }
        }
        writer.commit().unwrap();
        let queries: Vec<Code> = (0..70).map(|_| code(&mut random, bits, &mut before)).collect();
        check(&index, &model, &queries);
        writer.compact().unwrap();
        check(&index, &model, &queries);
        drop(writer);
        let index = Index::open(dir.path().join("x")).unwrap();
        check(&index, &model, &queries);
        assert_eq!(twindex::verify(&RealVfs, &dir.path().join("x"), |_| ()).problems.len(), 0);
        let mut writer = index.writer_with(options()).unwrap();
        let copy = Index::create(dir.path().join("copy"), index.snapshot().params().clone()).unwrap();
        let segments =
            index.snapshot().segments().map(|(segment, _)| segment.path().to_owned()).collect::<Vec<_>>();
        let mut into = copy.writer_with(options()).unwrap();
        into.ingest(&segments).unwrap();
        into.commit().unwrap();
        drop(into);
        drop(copy);
        check(&Index::open(dir.path().join("copy")).unwrap(), &model, &queries);
        writer.delete(*model.keys().next().unwrap()).unwrap();
    }
}

#[test]
fn admit_of_codes_finds_the_nearest_unmarked_document() {
    let mut random = SplitMix(7);
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().codes(256, 31).build().unwrap();
    let index = Index::create(dir.path().join("x"), params).unwrap();
    let mut writer = index.writer().unwrap();
    let (mut model, mut before, mut duplicates) = (Model::new(), Vec::new(), 0);
    for key in 0..600 {
        let code = code(&mut random, 256, &mut before);
        let expected = near(&model, &code, 31, |_| true).first().copied();
        match (writer.admit(key, code).unwrap(), expected) {
            (Admitted::New, None) => {
                model.insert(key, Stored { code, is_marked: false, priority: None });
            }
            (Admitted::Duplicate(hit), Some((distance, of))) => {
                assert_eq!((hit.distance, hit.key.as_u64()), (Some(distance), Some(of)));
                duplicates += 1;
                model.insert(key, Stored { code, is_marked: true, priority: None });
            }
            other => panic!("{other:?}"),
        }
        if key % 100 == 99 {
            writer.commit().unwrap();
            writer.flush().unwrap();
        }
    }
    assert!(duplicates > 100, "{duplicates}");
}

#[test]
fn groups_of_codes_are_the_same_before_and_after_a_flush() {
    let mut random = SplitMix(3);
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().codes(128, 9).marks().priorities().build().unwrap();
    let index = Index::create(dir.path().join("x"), params).unwrap();
    let mut writer = index.writer().unwrap();
    let mut before = Vec::new();
    let mut codes = Vec::new();
    for key in 0..300_u64 {
        let code = code(&mut random, 128, &mut before);
        writer.put(key, Document::from(code).with_priority(random.next() % 9)).unwrap();
        codes.push(code);
    }
    writer.commit().unwrap();
    let leaders = |index: &Index| -> Vec<u64> {
        let snapshot = index.snapshot();
        let leader = |key: u64| snapshot.leader(key, GROUP_QUESTIONS).unwrap().unwrap().decided().unwrap();
        (0..300).map(|key| leader(key).key.as_u64().unwrap()).collect()
    };
    let one_by_one = leaders(&index);
    writer.flush().unwrap();
    assert_eq!(leaders(&index), one_by_one);
    let groups = index.snapshot().groups(&Resources::in_dir(dir.path())).unwrap();
    let mut all = vec![0; 300];
    groups
        .for_each(1, |key, leader, _| {
            all[key.to_buf().as_u64().unwrap() as usize] = leader.to_buf().as_u64().unwrap();
            Ok(())
        })
        .unwrap();
    assert_eq!(all, one_by_one);
    // Every document is near its leader, and no two leaders are near each other.
    for (key, &leader) in one_by_one.iter().enumerate() {
        assert!(codes[key].distance(&codes[leader as usize]) <= 9);
    }
    let is_leader = |key: &usize| one_by_one[*key] == *key as u64;
    for (a, b) in (0..300).filter(is_leader).flat_map(|a| (0..a).filter(is_leader).map(move |b| (a, b))) {
        assert!(codes[a].distance(&codes[b]) > 9, "{a} {b}");
    }
}

#[test]
fn codes_of_another_width_and_contents_without_a_code_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let index =
        Index::create(dir.path().join("x"), Params::builder().codes(256, 31).build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    let sketch = Params::builder().simhash(3).build().unwrap();
    let sketch = twindex::Sketcher::new(&sketch).unwrap().sketch("a rose").unwrap();
    let wide = Code::of_words(&[7; 8]).unwrap();
    let refused = [
        writer.put("a", Fingerprint(1)).unwrap_err(),
        writer.put("a", wide).unwrap_err(),
        writer.put("a", &sketch).unwrap_err(),
        index.snapshot().within(wide, 3).run().unwrap_err(),
        index.snapshot().within(Code::of_words(&[7; 4]).unwrap(), 257).run().unwrap_err(),
        index.snapshot().codes_within(&[wide], 3, 1).unwrap_err(),
        Params::builder().codes(100, 3).build().unwrap_err(),
        Params::builder().codes(128, 129).build().unwrap_err(),
        Params::builder().codes(128, 3).simhash(3).build().unwrap_err(),
        Params::builder().codes(128, 3).minhash(2, 2).build().unwrap_err(),
        index.snapshot().near(&index.sketcher().unwrap().sketch("a").unwrap()).run().unwrap_err(),
    ];
    for error in refused {
        println!("{error}");
        assert!(matches!(error, Error::Invalid(_) | Error::ParamsMismatch { .. }), "{error:?}");
    }
    let tables = Index::create(dir.path().join("y"), Params::builder().simhash(3).build().unwrap()).unwrap();
    assert!(matches!(tables.writer().unwrap().put("a", wide), Err(Error::Invalid(_))));
    assert!(matches!(tables.snapshot().within(wide, 3).run(), Err(Error::Invalid(_))));
    tables.writer().unwrap().put("a", Code::from(5)).unwrap();
}

/// Returns the documents with their codes, or an error.
fn documents(index: &Index) -> twindex::Result<Vec<(u64, u32)>> {
    let hits = index.snapshot().within(Code::from(0), 64).run()?.hits;
    Ok(hits.iter().map(|hit| (hit.key.as_u64().unwrap(), hit.distance.unwrap())).collect())
}

fn small(path: &Path, flush: bool) -> Vec<(u64, u32)> {
    let index = Index::create(path, Params::builder().u64_keys().codes(64, 3).build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    for key in 0..40 {
        writer.put(key, Fingerprint(u64::MAX >> key)).unwrap();
        if key % 8 == 7 {
            writer.commit().unwrap();
        }
    }
    if flush {
        writer.flush().unwrap();
    }
    drop(writer);
    documents(&index).unwrap()
}

#[test]
fn changed_byte_of_a_segment_is_an_error_or_changes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let expected = small(&path, true);
    let segment = path.join("000001.seg");
    let bytes = std::fs::read(&segment).unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&segment, &changed).unwrap();
        match Index::open(&path).and_then(|index| documents(&index)) {
            Ok(found) => assert_eq!(found, expected, "{at}"),
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { .. } | Error::Unsupported { .. }), "{at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused * 10 > 9 * bytes.len(), "{refused} of {}", bytes.len());
    std::fs::write(&segment, &bytes[..bytes.len() - 1]).unwrap();
    assert!(Index::open(&path).is_err());
}

#[test]
fn log_cut_at_any_byte_has_the_batches_before_the_cut_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut expected = small(&path, false);
    expected.sort_unstable();
    let log = path.join("LOG-000001");
    let bytes = std::fs::read(&log).unwrap();
    let mut counts = std::collections::BTreeSet::new();
    for length in (0..=bytes.len()).rev() {
        std::fs::write(&log, &bytes[..length]).unwrap();
        match Index::open(&path).and_then(|index| documents(&index)) {
            Ok(mut found) => {
                found.sort_unstable();
                assert_eq!(found, expected[..found.len()], "{length}");
                counts.insert(found.len());
            }
            Err(error) => assert!(error.is_corruption(), "{length}: {error}"),
        }
    }
    assert!(counts.iter().all(|count| count % 8 == 0) && counts.contains(&40), "{counts:?}");
}

/// Returns a text of a few of many words, often one that differs little from an earlier one, at times without words.
fn text(random: &mut SplitMix, before: &mut Vec<String>) -> String {
    let word = |random: &mut SplitMix| format!("w{}", random.next() % 500);
    let mut words: Vec<String> = (0..5 + random.next() % 60).map(|_| word(random)).collect();
    match random.next() % 8 {
        0 => words = Vec::new(),
        1..=5 if !before.is_empty() => {
            let other = &before[random.next() as usize % before.len()];
            words = other.split_whitespace().map(str::to_owned).collect();
            for _ in 0..random.next() % 4 {
                let at = random.next() as usize % words.len().max(1);
                words.splice(at..(at + 1).min(words.len()), [word(random)]);
            }
        }
        _ => {}
    }
    before.push(words.join(" "));
    before[before.len() - 1].clone()
}

/// Computes the simhash of a text from the definition; `None` without words.
fn simhash_of(sketcher: &Sketcher, text: &str, bits: usize, distinct: bool) -> Option<Code> {
    let mut hashes = Vec::new();
    if distinct {
        sketcher.shingler().distinct(text, &mut Buffers::default(), &mut hashes);
    } else {
        sketcher.shingler().occurrences(text, &mut Buffers::default(), &mut hashes);
    }
    let mut words = vec![0_u64; bits / 64];
    for (bit, word) in (0..64).flat_map(|bit| (0..bits / 64).map(move |word| (bit, word))) {
        let vote = |&&hash: &&u64| {
            let state = hash.wrapping_add((word as u64).wrapping_sub(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let hash = if word == 0 { hash } else { SplitMix(state).next() };
            hash >> bit & 1 == 1
        };
        let ones = hashes.iter().filter(vote).count();
        words[word] |= u64::from(2 * ones > hashes.len()) << bit;
    }
    (!hashes.is_empty()).then(|| Code::of_words(&words).unwrap())
}

/// Checks that each document of a group is near its leader, and what `admit` says about more texts.
fn check_groups_and_admits(
    index: &Index,
    model: &BTreeMap<u64, String>,
    asked: &[String],
    of: &dyn Fn(&str) -> Option<Code>,
    within: u16,
) {
    let (sketcher, scratch) = (index.sketcher().unwrap(), tempfile::tempdir().unwrap());
    let groups = index.snapshot().groups(&Resources::in_dir(scratch.path())).unwrap();
    groups
        .for_each(1, |key, leader, _| {
            let [key, leader] = [key, leader].map(|key| key.to_buf().as_u64().unwrap());
            match (of(&model[&key]), of(&model[&leader])) {
                (Some(a), Some(b)) => assert!(a.distance(&b) <= within.into()),
                _ => assert_eq!(key, leader),
            }
            Ok(())
        })
        .unwrap();
    let mut writer = index.writer().unwrap();
    let (mut new, mut duplicates) = (model.clone(), 0);
    for (key, text) in (1000..).zip(asked) {
        let expected = of(text).and_then(|code| {
            let near = new.iter().filter_map(|(&key, other)| Some((code.distance(&of(other)?), key)));
            near.min().filter(|&(distance, _)| distance <= within.into())
        });
        match (writer.admit(key, &sketcher.sketch(text).unwrap()).unwrap(), expected) {
            (Admitted::New, None) => _ = new.insert(key, text.clone()),
            (Admitted::Duplicate(hit), Some((distance, of))) => {
                assert_eq!((hit.distance, hit.key.as_u64()), (Some(distance), Some(of)));
                duplicates += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(duplicates > 9, "{duplicates}");
}

#[test]
fn index_of_long_simhashes_answers_as_a_comparison_of_all_texts() {
    for (seed, (bits, distinct)) in (0..).zip([(128, false), (256, true), (512, false)]) {
        let mut random = SplitMix(seed);
        let weights = if distinct { SimhashWeights::Distinct } else { SimhashWeights::Occurrences };
        let within = bits as u16 / 6;
        let params = Params::builder().u64_keys().words(2).simhash_weighted(0, weights).marks().priorities();
        let params = params.simhash_bits(bits as u16).near(Near::within(within)).build().unwrap();
        assert_eq!((params.near(), params.sketch().simhash), (Near::within(within), Some(weights)));
        let dir = tempfile::tempdir().unwrap();
        let index = Index::create(dir.path().join("x"), params).unwrap();
        let sketcher = index.sketcher().unwrap();
        let of = |text: &str| simhash_of(&sketcher, text, bits, distinct);
        let options = || WriterOptions::default().background_merges(false);
        let mut writer = index.writer_with(options()).unwrap();
        let (mut model, mut before) = (BTreeMap::new(), Vec::new());
        for step in 0..500_u64 {
            let (key, text) = (random.next() % 300, text(&mut random, &mut before));
            let sketch = sketcher.sketch(&text).unwrap();
            let raw = sketch.code().filter(|_| step.is_multiple_of(5));
            if random.next().is_multiple_of(5) {
                writer.delete(key).unwrap();
                model.remove(&key);
            } else {
                writer.put(key, raw.map_or(Document::from(&sketch), Document::from)).unwrap();
                model.insert(key, text);
            }
            if step % 90 == 89 {
                writer.commit().unwrap();
            }
            if step % 180 == 179 {
                writer.flush().unwrap();
            }
        }
        writer.commit().unwrap();
        let asked: Vec<String> = (0..60).map(|_| text(&mut random, &mut before)).collect();
        let check = |index: &Index| {
            let snapshot = index.snapshot();
            assert_eq!(snapshot.documents(), model.len() as u64);
            let (mut wordless, mut hits) = (0, 0);
            for (key, text) in &model {
                assert_eq!(snapshot.get(*key).unwrap().unwrap().code, of(text), "{key} {text}");
                wordless += u64::from(of(text).is_none());
            }
            for text in &asked {
                let sketch = sketcher.sketch(text).unwrap();
                assert_eq!(sketch.code(), of(text));
                for within in [0, within, 2 * within, bits as u16] {
                    let near = |other: &String| {
                        let distance = of(text)?.distance(&of(other)?);
                        (distance <= within.into()).then_some(distance)
                    };
                    let mut expected: Vec<(u32, u64)> =
                        model.iter().filter_map(|(&key, other)| Some((near(other)?, key))).collect();
                    expected.sort_unstable();
                    let keys = |answers: Answers| -> Vec<(u32, u64)> {
                        let hit = |hit: &twindex::Hit| (hit.distance.unwrap(), hit.key.as_u64().unwrap());
                        answers.hits.iter().map(hit).collect()
                    };
                    let ask = || snapshot.near_by(&sketch, Near::within(within));
                    assert_eq!(keys(ask().run().unwrap()), expected, "{within} {text}");
                    assert_eq!(ask().count().unwrap(), expected.len() as u64);
                    assert_eq!(ask().any().unwrap().is_some(), !expected.is_empty());
                    if let Some(code) = of(text) {
                        let many = snapshot.codes_within(&[code; 9], within.into(), usize::MAX).unwrap();
                        assert!(many.into_iter().all(|answers| keys(answers) == expected), "{within}");
                    }
                    hits += expected.len();
                }
            }
            assert!(wordless > 9 && hits > 100, "{wordless} {hits}");
            let zeros = Code::of_words(&vec![0; bits / 64]).unwrap();
            let all = snapshot.within(zeros, bits as u32).run().unwrap().hits.len() as u64;
            assert_eq!(all, snapshot.documents() - wordless);
        };
        check(&index);
        writer.flush().unwrap();
        check(&index);
        writer.compact().unwrap();
        drop(writer);
        let index = Index::open(dir.path().join("x")).unwrap();
        check(&index);
        assert_eq!(twindex::verify(&RealVfs, &dir.path().join("x"), |_| ()).problems.len(), 0);
        check_groups_and_admits(&index, &model, &asked, &of, within);
    }
}

#[test]
fn parameters_of_long_simhashes_are_stored_and_what_does_not_fit_is_refused() {
    let builder = || Params::builder().words(2).simhash(20);
    let params = builder().simhash_bits(256).build().unwrap();
    let text = params.encode();
    assert!(text.contains("\nsimhash=none\n"), "{text}");
    assert!(text.ends_with("\nmodulus=0\ncodes=256\ncodes-simhash=occurrences\nnear-within=20\n"), "{text}");
    assert_eq!(Params::decode(&text).unwrap(), params);
    let of_64 = |builder: twindex::params::ParamsBuilder| builder.simhash_bits(64).build().unwrap();
    assert_eq!(of_64(Params::builder().simhash(3)), Params::builder().simhash(3).build().unwrap());
    let with_table = Params::builder().simhash_weighted(0, SimhashWeights::Idf { table: 7 });
    let with_table = with_table.simhash_bits(128).near(Near::within(128)).build().unwrap();
    assert!(with_table.encode().contains("codes-simhash=idf\ncodes-idf=00000000000000000000000000000007\n"));
    assert_eq!(Params::decode(&with_table.encode()).unwrap(), with_table);
    for (from, to) in [
        ("codes=256", "codes=64"),
        ("codes=256", "codes=100"),
        ("codes-simhash=occurrences", "codes-simhash=none"),
        ("codes-simhash=occurrences", "codes-simhash=idf"),
        ("codes-simhash=occurrences", "codes-simhash=some"),
        ("near-within=20", "near-within=257"),
        ("near-within=20\n", ""),
        ("simhash=none", "simhash=occurrences"),
        ("codes=256\n", ""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert!(changed != text && Params::decode(&changed).is_err(), "{from} {to}");
    }
    for (refused, why) in [
        (builder().simhash_bits(256).minhash(2, 2), "minhash with a simhash of 256 bits"),
        (builder().simhash_bits(256).bottom(2), "bottom with"),
        (builder().simhash_bits(256).codes(256, 3), "simhash-bits with codes"),
        (builder().simhash_bits(100), "codes is 100, allowed are"),
        (
            builder().simhash_bits(256).tables(DesignChoice::default(), CodecChoice::default()),
            "tables with a simhash",
        ),
        (builder().simhash_bits(128).near(Near::within(129)), "near-within is 129"),
        (builder().simhash_bits(128).near(Near::resembling(0.8).unwrap()), "no MinHash"),
        (Params::builder().simhash_bits(128), "simhash-bits without simhash"),
    ] {
        let error = refused.build().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create(dir.path().join("x"), params.clone()).unwrap();
    let mut writer = index.writer().unwrap();
    let sketch = |params: &Params| Sketcher::new(params).unwrap().sketch("a rose is a rose").unwrap();
    for (other, why) in [
        (builder().simhash_bits(128).build().unwrap(), "simhash-bits is 256 in the index and 128 here"),
        (
            Params::builder().words(2).simhash(3).build().unwrap(),
            "simhash-bits is 256 in the index and absent",
        ),
        (Params::builder().words(3).simhash(20).simhash_bits(256).build().unwrap(), "width is 2"),
    ] {
        for error in [
            writer.put("a", &sketch(&other)).unwrap_err(),
            index.snapshot().near(&sketch(&other)).run().unwrap_err(),
        ] {
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(params.check_same_fingerprints(&other).is_err());
    }
    assert!(writer.put("a", Fingerprint(1)).is_err());
    let given = Params::builder().words(2).codes(256, 20).build().unwrap();
    let error = params.check_same_fingerprints(&given).unwrap_err().to_string();
    assert!(error.contains("codes-simhash is occurrences in the index and absent here"), "{error}");
}
