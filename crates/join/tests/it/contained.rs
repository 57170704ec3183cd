//! Tests containment queries (all documents that contain a text or are contained in it) against comparing all pairs of
//! sets.

use std::collections::{BTreeMap, BTreeSet};

use twindex::sketch::Nearness;
use twindex::{
    Document, Durability, Error, Index, KeyBuf, Params, Sketch, Sketcher, Snapshot, WriterOptions,
};
use twindex_join::{ContainmentAnswers, ContainmentHit, ContainmentQueries, SharedProgress};
use twindex_kernel::splitmix::SplitMix;

use crate::nested_sets::sets;

/// Creates an index of these sets with several segments and a log. Every seventh document is replaced by a second version,
/// every eleventh is deleted, and every third is marked as a duplicate.
fn index(
    path: &std::path::Path,
    sets: &[Vec<u64>],
    has_suffixes: bool,
) -> (Index, BTreeMap<String, Vec<u64>>) {
    let builder = Params::builder().minhash(4, 3).sets().marks();
    let params = if has_suffixes { builder.suffixes() } else { builder }.build().unwrap();
    let empty: Sketch = Sketcher::new(&params).unwrap().sketch("").unwrap();
    let index = Index::create(path, params).unwrap();
    // Merges would leave fewer segments than tests expect, if they end soon.
    let options = WriterOptions::default().durability(Durability::None).background_merges(false);
    let mut writer = index.writer_with(options).unwrap();
    let mut there = BTreeMap::new();
    for (at, set) in sets.iter().enumerate() {
        let key = format!("d{at:03}");
        if at % 7 == 3 {
            writer.put(key.as_str(), Document::from(&empty).with_set(&[1, 2, 3])).unwrap();
        }
        let document = Document::from(&empty).with_set(set);
        let document = if at % 3 == 0 { document.as_duplicate() } else { document };
        writer.put(key.as_str(), document).unwrap();
        there.insert(key, set.clone());
        if at % 11 == 5 {
            let gone = format!("d{:03}", at - 4);
            writer.delete(gone.as_str()).unwrap();
            there.remove(&gone);
        }
        if at % 40 == 39 {
            writer.set_options(writer.options().logged(at % 80 != 39)).unwrap();
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    (index, there)
}

#[test]
fn containment_queries_find_the_pairs_of_brute_force() {
    let (mut over, mut under, mut batches) = (0, 0, 0);
    for (seed, has_suffixes) in (0..6).map(|seed| (seed, seed % 2 == 1)) {
        let mut random = SplitMix(seed);
        let all = sets(&mut random, 260);
        let (of_documents, texts) = all.split_at(190);
        let dir = tempfile::tempdir().unwrap();
        let (index, there) = index(&dir.path().join("x"), of_documents, has_suffixes);
        let snapshot = index.snapshot();
        for (threshold, memory) in [(0.8, 1 << 24), (0.5, 60_000), (1.0, 0), (0.05, 1 << 20)] {
            let near = Nearness::Containment(threshold);
            let mut expected: Vec<(u32, String, u32)> = Vec::new();
            for (text, set) in (0..).zip(texts) {
                for (key, other) in &there {
                    let contained = near.shared(set, other);
                    let contains = near.shared(other, set);
                    over += usize::from(contained.is_some());
                    under += usize::from(contains.is_some());
                    if let Some(shared) = contained.or(contains) {
                        expected.push((text, key.clone(), shared as u32));
                    }
                }
            }
            for threads in [1, 3] {
                let watched = SharedProgress::default();
                let mut queries = ContainmentQueries::new(snapshot.params(), threshold, memory).unwrap();
                let (mut found, mut first, mut next) = (Vec::new(), 0, 0);
                while next < texts.len() {
                    while next < texts.len() && queries.push(&texts[next]).unwrap().is_some() {
                        next += 1;
                    }
                    let all = answers(&queries, &snapshot, threads, usize::MAX);
                    for hit in all.iter().flat_map(|all| &all.hits) {
                        let text = &texts[first + hit.text as usize];
                        assert_eq!(hit.of_text as usize, text.len());
                        assert_eq!(hit.of_document as usize, there[&hit.key.to_string()].len());
                        found.push((first as u32 + hit.text, hit.key.to_string(), hit.shared));
                    }
                    let mut some = Vec::new();
                    let is_wanted = |key: &KeyBuf| key.to_string().as_str() > "d1";
                    let take = |found| {
                        some.push(found);
                        Ok::<_, Error>(())
                    };
                    queries.for_each_answer(&snapshot, threads, 2, is_wanted, &watched, take).unwrap();
                    for (all, some) in all.iter().zip(&some) {
                        let later: Vec<&ContainmentHit> =
                            all.hits.iter().filter(|hit| hit.key.to_string().as_str() > "d1").collect();
                        assert!(all.hits.is_sorted_by_key(|hit| (-hit.share(), &hit.key)), "{all:?}");
                        assert_eq!(some.hits.iter().collect::<Vec<_>>(), later[..later.len().min(2)]);
                        assert_eq!(some.left_out as usize + some.hits.len(), later.len());
                    }
                    queries.clear();
                    first = next;
                    batches += 1;
                }
                found.sort();
                assert_eq!(found, expected, "{seed} {threshold} {threads}");
            }
        }
    }
    assert!(over > 1000 && under > 1000 && batches > 500, "a test of something: {over} {under} {batches}");
}

/// Returns the documents found for each text.
fn answers(
    queries: &ContainmentQueries,
    snapshot: &Snapshot,
    threads: usize,
    limit: usize,
) -> Vec<ContainmentAnswers> {
    let (mut all, watched) = (Vec::new(), SharedProgress::default());
    let take = |found| {
        all.push(found);
        Ok::<_, Error>(())
    };
    queries.for_each_answer(snapshot, threads, limit, |_| true, &watched, take).unwrap();
    all
}

#[test]
fn batches_whose_answers_exceed_memory_are_split_and_one_text_is_refused() {
    // Each of the texts is contained in each of the documents, and each answer takes over 100 bytes.
    for (has_suffixes, gathers) in [(false, false), (true, false), (false, true), (true, true)] {
        let documents = |count| (0..count).map(|at| vec![1, 2, 3, 1000 + at]).collect::<Vec<_>>();
        let dir = tempfile::tempdir().unwrap();
        let (few, there) = index(&dir.path().join("x"), &documents(2_000), has_suffixes);
        let snapshot = few.snapshot();
        let of_memory = |memory, texts| {
            let mut queries = ContainmentQueries::new(snapshot.params(), 0.5, memory).unwrap();
            for text in 0..texts {
                assert_eq!(queries.push(&[1, 2, 3]).unwrap(), Some(text));
            }
            if gathers { queries.gather() } else { queries }
        };
        let all = answers(&of_memory(1 << 28, 40), &snapshot, 2, usize::MAX);
        assert_eq!((all.len(), all[39].hits.len()), (40, if gathers { 1 } else { there.len() }));
        for threads in [1, 3] {
            assert_eq!(answers(&of_memory(1 << 20, 40), &snapshot, threads, usize::MAX), all);
        }
        if !has_suffixes {
            continue; // these indexes take seconds to make
        }
        let (many, _) = index(&dir.path().join("y"), &documents(16_000), has_suffixes);
        let (one, watched) = (of_memory(1 << 20, 1), SharedProgress::default());
        let find = |limit| {
            one.for_each_answer(&many.snapshot(), 2, limit, |_| true, &watched, |_| Ok::<_, Error>(()))
        };
        let error = find(usize::MAX).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("use a limit"), "{error}");
        assert_eq!(find(10).is_ok(), !gathers, "without a cover, a limit bounds what is held");
    }
}

#[test]
fn ten_thousand_looked_up_texts_find_what_reading_all_sets_finds() {
    let all = sets(&mut SplitMix(7), 10_800);
    let (of_documents, texts) = all.split_at(800);
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = index(&dir.path().join("x"), of_documents, true);
    let snapshot = index.snapshot();
    let entries: u64 = snapshot.segments().filter_map(|(segment, _)| segment.containment_entries()).sum();
    let looked_up = texts.iter().filter(|text| 64 * text.len() as u64 <= entries).count();
    assert!(looked_up > 9_900 && snapshot.segments().len() > 3, "a test of something: {looked_up}");
    let (mut found, mut empty) = (0, 0);
    for (texts, threshold) in texts.chunks(2_000).zip([0.5, 0.75, 0.8, 0.9, 1.0]) {
        let mut scan = ContainmentQueries::new(snapshot.params(), threshold, 1 << 26).unwrap();
        for (number, text) in (0..).zip(texts) {
            assert_eq!(scan.push(text).unwrap(), Some(number), "one batch reads all sets");
        }
        let expected = answers(&scan, &snapshot, 1, usize::MAX);
        for (text, expected) in texts.iter().zip(expected) {
            let mut one = ContainmentQueries::new(snapshot.params(), threshold, 1 << 26).unwrap();
            one.push(text).unwrap();
            let hits = answers(&one, &snapshot, 1, usize::MAX)
                .remove(0)
                .hits
                .into_iter()
                .map(|hit| ContainmentHit { text: 0, ..hit });
            let expected = expected.hits.into_iter().map(|hit| ContainmentHit { text: 0, ..hit });
            let (hits, expected) = (hits.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            assert_eq!(hits, expected, "{threshold} {text:?}");
            found += hits.len();
            empty += usize::from(text.is_empty());
        }
    }
    assert!(found > 100_000 && empty > 50, "a test of something: {found} {empty}");
}

/// Returns the greedy cover of a text by definition: keys, and the numbers of shared and of unique elements.
fn cover_by_definition(
    text: &[u64],
    documents: &BTreeMap<String, Vec<u64>>,
    threshold: f64,
) -> Vec<(String, u32, u32)> {
    let mut rest: BTreeSet<u64> = text.iter().copied().collect();
    let mut cover: Vec<(String, u32, u32)> = Vec::new();
    loop {
        let unique = |set: &[u64]| set.iter().filter(|element| rest.contains(element)).count();
        // Of equal counts, `max_by_key` returns the last one, which has the smallest key.
        let best = documents.iter().rev().max_by_key(|(_, set)| unique(set));
        let Some((key, set)) = best.filter(|(_, set)| unique(set) > 0) else { return cover };
        let count = unique(set);
        if (count as f64) / (text.len() as f64) < threshold {
            return cover;
        }
        let shared = set.iter().filter(|element| text.binary_search(element).is_ok()).count();
        cover.push((key.clone(), shared as u32, count as u32));
        rest.retain(|element| set.binary_search(element).is_err());
    }
}

#[test]
fn gathered_covers_equal_the_greedy_covers_of_brute_force() {
    let (mut texts_with_several, mut hits, mut ties) = (0, 0, 0);
    for (seed, has_suffixes) in (10..18).map(|seed| (seed, seed % 2 == 1)) {
        let mut random = SplitMix(seed);
        let all = sets(&mut random, 550);
        let (of_documents, texts) = all.split_at(150);
        let dir = tempfile::tempdir().unwrap();
        let (index, there) = index(&dir.path().join("x"), of_documents, has_suffixes);
        let snapshot = index.snapshot();
        assert!(snapshot.segments().len() > 2, "a test of something");
        for (texts, threshold) in texts.chunks(100).zip([0.01, 0.125, 0.25, 0.5]) {
            // A batch of few texts looks them up if the index has suffixes; another batch reads all sets.
            for texts in texts.chunks(if seed % 4 < 2 { 100 } else { 1 }) {
                let new = || ContainmentQueries::new(snapshot.params(), threshold, 1 << 24).unwrap();
                let mut queries = new().gather();
                for text in texts {
                    assert!(queries.push(text).unwrap().is_some());
                }
                let found = answers(&queries, &snapshot, 2, usize::MAX);
                assert_eq!(found, answers(&queries, &snapshot, 1, usize::MAX));
                let two = answers(&queries, &snapshot, 2, 2);
                assert_eq!(found.len(), texts.len());
                for ((text, found), two) in texts.iter().zip(&found).zip(&two) {
                    let cover = found.hits.iter().map(|hit| (hit.key.to_string(), hit.shared, hit.unique));
                    let cover: Vec<_> = cover.collect();
                    assert_eq!(
                        cover,
                        cover_by_definition(text, &there, threshold),
                        "{seed} {threshold} {text:?}"
                    );
                    assert_eq!(two.hits, found.hits[..cover.len().min(2)]);
                    assert_eq!(two.left_out as usize, cover.len() - two.hits.len());
                    texts_with_several += usize::from(cover.len() > 1);
                    ties += cover.windows(2).filter(|two| two[0].2 == two[1].2).count();
                    hits += cover.len();
                }
            }
        }
    }
    assert!(
        texts_with_several > 400 && hits > 2_000 && ties > 200,
        "a test of something: {texts_with_several} {hits} {ties}"
    );
}

#[test]
fn containment_queries_refuse_invalid_index_set_and_share() {
    let with = Params::builder().minhash(4, 3).sets().build().unwrap();
    let without = Params::builder().simhash(3).minhash(4, 3).build().unwrap();
    let error = ContainmentQueries::new(&without, 0.8, 1 << 20).unwrap_err();
    assert!(error.to_string().contains("make another index with sets"), "{error}");
    for share in [0.0, -0.5, 1.01, f64::NAN] {
        assert!(matches!(ContainmentQueries::new(&with, share, 1 << 20), Err(Error::Invalid(_))), "{share}");
    }
    let mut queries = ContainmentQueries::new(&with, 0.8, 1 << 20).unwrap();
    for set in [&[2, 1][..], &[1, 1]] {
        assert!(matches!(queries.push(set), Err(Error::Invalid(_))));
    }
    assert!(queries.is_empty());
}

#[test]
fn stopped_containment_query_returns_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = index(&dir.path().join("x"), &sets(&mut SplitMix(1), 20), false);
    let snapshot = index.snapshot();
    let mut queries = ContainmentQueries::new(snapshot.params(), 0.8, 1 << 20).unwrap();
    // No document has this element, so no pair is found.
    queries.push(&[u64::MAX]).unwrap();
    let watched = SharedProgress::default();
    for threads in [1, 3] {
        assert!(answers(&queries, &snapshot, threads, 9)[0].hits.is_empty());
    }
    watched.stop();
    for threads in [1, 3] {
        let error = queries
            .for_each_answer(&snapshot, threads, 9, |_| true, &watched, |_| Ok::<_, Error>(()))
            .unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
    }
}
