//! Tests that every way to apply the rule keeps the same documents: one run, one run per day, and one document at a
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use twindex::params::{Near as NearInIndex, Widths};
use twindex::{Admitted, Document, Index, Params, WriterOptions};
use twindex_corpus::{Dedup, DedupTexts, Keep, Near};
use xxhash_rust::xxh3::xxh3_64;

use crate::corpora::{Random, TextFields, by_definition, cases, texts};

/// Writes documents whose keys are their indices in `texts`.
fn write(path: &Path, texts: &[String], places: Range<usize>) {
    let line = |at: usize| format!("{{\"id\":\"{at:03}\",\"text\":\"{}\"}}\n", texts[at]);
    fs::write(path, places.map(line).collect::<String>()).unwrap();
}

/// Returns the indices of the documents that a run kept.
fn kept(out: &Path) -> Vec<usize> {
    let lines = fs::read_to_string(out.join("kept.jsonl")).unwrap();
    lines.lines().map(|line| line.split('"').nth(3).unwrap().parse().unwrap()).collect()
}

/// Returns the indices of the documents that are new when documents are admitted one at a time. Some are committed to a
/// segment, and some are only in memory.
fn admitted(dir: &Path, texts: &[String], params: &Params, drops: bool, random: &mut Random) -> Vec<usize> {
    let index = Index::create(dir, params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut new = Vec::new();
    let mut writer = index.writer_with(WriterOptions::default().drop_duplicates(drops)).unwrap();
    for (place, text) in texts.iter().enumerate() {
        let sketch = sketcher.sketch(text).unwrap();
        if writer.admit(format!("{place:03}").as_str(), Document::from(&sketch)).unwrap() == Admitted::New {
            new.push(place);
        }
        match random.below(8) {
            0 => _ = writer.commit().unwrap(),
            1 => {
                writer.commit().unwrap();
                writer.compact().unwrap();
            }
            _ => {}
        }
    }
    new
}

#[test]
fn one_run_daily_runs_and_single_documents_keep_the_same_documents() {
    let (mut removed, mut all) = (0, 0);
    for seed in 0..cases() / 6 {
        let dir = tempfile::tempdir().unwrap();
        let texts = texts(seed ^ 0x0070_a715);
        let mut random = Random(seed ^ 0xda15);
        let (width, percent) = (1 + (seed % 3) as usize, [50, 80, 90, 100][(seed / 3 % 4) as usize]);
        let threshold = percent as f64 / 100.0;
        let beside = vec![TextFields::default(); texts.len()];
        let removed_for = by_definition(&texts, &beside, &DedupTexts::default(), width, percent);
        let wanted: Vec<usize> =
            (0..texts.len()).filter(|&place| removed_for[place] as usize == place).collect();

        let run = |input: &str, out: &str, against: &[String], by_index: bool| {
            let mut dedup = Dedup::new([dir.path().join(input)], dir.path().join(out));
            dedup.rule.near = Some(Near::Resemblance(threshold));
            dedup.text.words = Some(Widths::one(width as u8).unwrap());
            // A limit of the work needs the texts, since the sets of an index are not counted.
            dedup.rule.max_work = (!by_index).then_some(u64::MAX);
            dedup.resources.memory = [1 << 16, 1 << 24][(seed % 2) as usize];
            dedup.scope.against = against.iter().map(|name| dir.path().join(name)).collect();
            dedup.run().unwrap();
            kept(&dir.path().join(out))
        };
        write(&dir.path().join("all.jsonl"), &texts, 0..texts.len());
        assert_eq!(run("all.jsonl", "all", &[], true), wanted, "{seed}: {texts:?}");
        for by_index in [true, false] {
            let mut ends = [random.below(texts.len() + 1), random.below(texts.len() + 1), texts.len()];
            ends.sort_unstable();
            let (mut start, mut days, mut found) = (0, Vec::new(), Vec::new());
            for end in ends {
                let (input, out) = (format!("{end}.jsonl"), format!("{by_index}-{}", days.len()));
                write(&dir.path().join(&input), &texts, start..end);
                found.extend(run(&input, &out, &days, by_index));
                days.push(out);
                start = end;
            }
            assert_eq!(found, wanted, "{seed} by days, by the index {by_index}: {texts:?}");
        }
        let near = NearInIndex::resembling(threshold).unwrap();
        let builder = Params::builder().words(width as u8).minhash(20, 6).sets().marks().near(near);
        let params = builder.build().unwrap();
        for drops in [true, false] {
            let path = dir.path().join(format!("{drops}.twx"));
            let found = admitted(&path, &texts, &params, drops, &mut random);
            assert_eq!(found, wanted, "{seed} one by one, {drops}: {texts:?}");
        }
        removed += texts.len() - wanted.len();
        all += texts.len();
    }
    assert!(removed * 5 > all && removed * 5 < all * 4, "a test of something: {removed} of {all}");
}

#[test]
fn rule_by_hamming_distance_holds_in_every_input_order() {
    let (mut removed, mut copies, mut all) = (0, 0, 0);
    for seed in 0..cases() / 6 {
        let dir = tempfile::tempdir().unwrap();
        let texts = texts(seed ^ 0x0051_3a54);
        let within = [0, 1, 3, 6, 10][(seed % 5) as usize];
        let params = Params::builder().words(1).simhash(within).build().unwrap();
        let sketcher = twindex::Sketcher::new(&params).unwrap();
        let fingerprints: Vec<_> =
            texts.iter().map(|text| sketcher.sketch(text).unwrap().fingerprint()).collect();
        let is_near = |a: usize, b: usize| {
            let distance = fingerprints[a].zip(fingerprints[b]).map(|(a, b)| a.distance(b));
            texts[a] == texts[b] || distance.is_some_and(|distance| distance <= within.into())
        };
        write(&dir.path().join("in.jsonl"), &texts, 0..texts.len());
        for keep in [Keep::First, Keep::Longest, Keep::KeyHash] {
            let out = dir.path().join(format!("{keep:?}"));
            let mut dedup = Dedup::new([dir.path().join("in.jsonl")], &out);
            dedup.rule.near = Some(Near::Within(within.into()));
            dedup.text.words = Some(Widths::one(1).unwrap());
            dedup.rule.keep = keep.clone().into();
            dedup.resources.memory = [1 << 16, 1 << 24][(seed % 2) as usize];
            dedup.run().unwrap();
            let mut order: Vec<usize> = (0..texts.len()).collect();
            match keep {
                Keep::Longest => {
                    order.sort_by_key(|&text| std::cmp::Reverse(crate::corpora::words(&texts[text]).len()));
                }
                Keep::KeyHash => order.sort_by_key(|&text| xxh3_64(format!("{text:03}").as_bytes())),
                _ => {}
            }
            let (mut removed_for, mut stays) = (BTreeMap::new(), Vec::new());
            for text in order {
                match stays.iter().find(|&&other| is_near(text, other)) {
                    Some(&other) => _ = removed_for.insert(format!("{text:03}"), format!("{other:03}")),
                    None => stays.push(text),
                }
            }
            let found: BTreeSet<usize> = kept(&out).into_iter().collect();
            assert_eq!(found, stays.iter().copied().collect(), "{seed} {keep:?} {within}: {texts:?}");
            let pairs = fs::read_to_string(out.join("pairs.tsv")).unwrap();
            let pairs: BTreeMap<String, String> = pairs
                .lines()
                .skip(1)
                .map(|row| row.split('\t').collect::<Vec<_>>())
                .map(|row| (row[0].to_owned(), row[1].to_owned()))
                .collect();
            assert_eq!(pairs, removed_for, "{seed} {keep:?} {within}: {texts:?}");
            removed += removed_for.len();
            copies += texts.len() - texts.iter().collect::<BTreeSet<_>>().len();
            all += texts.len();
        }
    }
    assert!(
        removed * 5 > all && removed > copies,
        "a test of something: {removed} of {all}, {copies} copies"
    );
}
