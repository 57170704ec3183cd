//! The rule that `dedup` follows, held against its definition on many small corpora.

use std::collections::{BTreeMap, BTreeSet};

use twindex::params::Shingling;
use twindex_corpus::{Clustering, DedupTexts, Keep, ListedPairs, NearBy};

/// The number of random corpora compared with the definition; `TWINDEX_CASES` changes it.
fn cases() -> u64 {
    std::env::var("TWINDEX_CASES").map_or(600, |cases| cases.parse().expect("a number of cases"))
}

/// Numbers that are drawn.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) as usize % below
    }
}

/// Texts of families, chains and copies, with words that few have, or many; some have none.
fn texts(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let (count, vocabulary, most) = (random.below(60), [12, 60, 2000][random.below(3)], 2 + random.below(25));
    let mut texts: Vec<Vec<String>> = Vec::new();
    for _ in 0..count {
        let drawn = |random: &mut Random| format!("w{}", random.below(vocabulary));
        let mut text = match random.below(5) {
            0 => Vec::new(),
            1 => texts.last().cloned().unwrap_or_default(),
            _ if texts.is_empty() => Vec::new(),
            2 => texts[random.below(texts.len())].clone(),
            3 => texts[random.below(texts.len())].iter().take(most / 2).cloned().collect(),
            _ => (0..random.below(most)).map(|_| drawn(&mut random)).collect(),
        };
        for _ in 0..random.below(3) {
            let at = random.below(text.len() + 1);
            let end = (at + random.below(2)).min(text.len());
            let words: Vec<String> = (0..random.below(3)).map(|_| drawn(&mut random)).collect();
            text.splice(at..end, words);
        }
        texts.push(text);
    }
    let marks = ["", "!", " .", "?"];
    texts.iter().map(|text| text.join(" ") + marks[random.below(marks.len())]).collect()
}

/// The shingles of a text by their definition: runs of `width` words, or all words of a shorter text.
fn shingles(text: &str, width: usize) -> BTreeSet<Vec<&str>> {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.len() < width {
        return if words.is_empty() { BTreeSet::new() } else { BTreeSet::from([words]) };
    }
    words.windows(width).map(<[&str]>::to_vec).collect()
}

/// Of each text the one that it goes for.
fn by_definition(texts: &[String], job: &DedupTexts, width: usize, percent: usize) -> Vec<u32> {
    let sets: Vec<_> = texts.iter().map(|text| shingles(text, width)).collect();
    let is_near = |text: usize, kept: usize| {
        if texts[text] == texts[kept] {
            return true;
        }
        let (size, other) = (sets[text].len(), sets[kept].len());
        let both = sets[text].intersection(&sets[kept]).count();
        match job.near {
            NearBy::Resemblance => both > 0 && 100 * both >= percent * (size + other - both),
            NearBy::Containment => both > 0 && other >= size && 100 * both >= percent * size,
        }
    };
    let mut order: Vec<usize> = (0..texts.len()).collect();
    if job.keep == Keep::Longest {
        order.sort_by_key(|&text| (usize::MAX - texts[text].len(), text));
    }
    if job.near == NearBy::Containment {
        order.sort_by_key(|&text| usize::MAX - sets[text].len()); // which leaves the order of equal ones
    }
    let (mut goes_for, mut kept): (BTreeMap<usize, usize>, Vec<usize>) = Default::default();
    for text in order {
        match kept.iter().find(|&&kept| is_near(text, kept)) {
            Some(&other) => _ = goes_for.insert(text, other),
            None => kept.push(text),
        }
    }
    (0..texts.len()).map(|text| goes_for.get(&text).copied().unwrap_or(text) as u32).collect()
}

#[test]
fn what_goes_is_what_the_rule_says_in_every_order_and_by_every_count() {
    let (mut removed, mut all) = (0, 0);
    for seed in 0..cases() {
        let texts = texts(seed);
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let width = 1 + (seed % 3) as usize;
        let percent = [5, 50, 80, 90, 100][(seed / 3 % 5) as usize];
        let threshold: f64 = format!("{}.{:02}", percent / 100, percent % 100).parse().unwrap();
        for keep in [Keep::First, Keep::Longest] {
            for near in [NearBy::Resemblance, NearBy::Containment] {
                let shingling = Shingling::words(width as u8, 0);
                let memory = if seed % 2 == 0 { 1 << 16 } else { 1 << 24 };
                let job = DedupTexts { threshold, near, shingling, keep, memory, ..DedupTexts::default() };
                let found = job.run(&bytes).unwrap();
                let wanted = by_definition(&texts, &job, width, percent);
                assert_eq!(found.kept_of, wanted, "{seed} {keep:?} {near:?} {percent} of {width}: {texts:?}");
                let goes = (0..).zip(&wanted).filter(|&(text, &kept)| text != kept);
                let pairs: Vec<(u32, u32)> = goes.map(|(text, &kept)| (text, kept)).collect();
                assert_eq!(found.pairs.iter().map(|pair| (pair.0, pair.1)).collect::<Vec<_>>(), pairs);
                assert!(found.pairs.iter().all(|&(.., score)| score >= threshold), "{seed}");
                removed += pairs.len();
                all += texts.len();
            }
        }
    }
    assert!(removed * 5 > all && removed * 5 < all * 4, "a test of something: {removed} of {all}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let contained = DedupTexts { near: NearBy::Containment, ..DedupTexts::default() };
    for (job, part) in [
        (DedupTexts { clusters: Clustering::Components, ..contained.clone() }, "--clusters leaders"),
        (DedupTexts { pairs: ListedPairs::All, ..contained.clone() }, "--pairs covering"),
        (DedupTexts { max_cluster: Some(9), ..contained.clone() }, "--clusters components"),
        (DedupTexts { keep: Keep::KeyHash, ..contained }, "no keys"),
    ] {
        let error = job.run(&[b"a", b"b"]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
