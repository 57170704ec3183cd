//! Random small corpora, and a direct implementation of the definition of `dedup`'s rule.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use twindex_corpus::{DedupTexts, Keep, Near};

/// The number of random corpora that are compared with the definition. The environment variable `TWINDEX_CASES` changes
/// it.
pub(crate) fn cases() -> u64 {
    std::env::var("TWINDEX_CASES").map_or(600, |cases| cases.parse().expect("a number of cases"))
}

/// A generator of pseudo-random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) as usize % below
    }
}

/// Returns random texts: families of near-duplicates, chains in which each text is near the next one only, and exact
/// copies. Words are frequent or rare; some texts have no words.
pub(crate) fn texts(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let (count, vocabulary, max) = (random.below(60), [12, 60, 2000][random.below(3)], 2 + random.below(25));
    let mut texts: Vec<Vec<String>> = Vec::new();
    for _ in 0..count {
        let drawn = |random: &mut Random| format!("w{}", random.below(vocabulary));
        let mut text = match random.below(5) {
            0 => Vec::new(),
            1 => texts.last().cloned().unwrap_or_default(),
            _ if texts.is_empty() => Vec::new(),
            2 => texts[random.below(texts.len())].clone(),
            3 => texts[random.below(texts.len())].iter().take(max / 2).cloned().collect(),
            _ => (0..random.below(max)).map(|_| drawn(&mut random)).collect(),
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

pub(crate) fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns the shingles of a text by their definition: all runs of `width` words, or all words of a shorter text.
pub(crate) fn shingles(text: &str, width: usize) -> BTreeSet<Vec<&str>> {
    let words = words(text);
    if words.len() < width {
        return if words.is_empty() { BTreeSet::new() } else { BTreeSet::from([words]) };
    }
    words.windows(width).map(<[&str]>::to_vec).collect()
}

/// The fields of a text: its value, and its number in units of one half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextFields {
    pub(crate) value: usize,
    pub(crate) halves: i32,
}

/// Returns the kept text of each removed text, by the definition of the rule. Texts are only compared with texts of the
/// same value.
pub(crate) fn by_definition(
    texts: &[String],
    beside: &[TextFields],
    job: &DedupTexts,
    width: usize,
    percent: usize,
) -> Vec<u32> {
    let sets: Vec<_> = texts.iter().map(|text| shingles(text, width)).collect();
    let near = job.rule.near.unwrap_or_default();
    let is_near = |text: usize, kept: usize| {
        if beside[text].value != beside[kept].value {
            return false;
        }
        if texts[text] == texts[kept] {
            return true;
        }
        let (size, other) = (sets[text].len(), sets[kept].len());
        let both = sets[text].intersection(&sets[kept]).count();
        match near {
            Near::Resemblance(_) => both > 0 && 100 * both >= percent * (size + other - both),
            Near::Containment(_) => both > 0 && other >= size && 100 * both >= percent * size,
            Near::Within(_) | Near::Equal => panic!("{near} is not by percent"),
        }
    };
    let mut order: Vec<usize> = (0..texts.len()).collect();
    match job.rule.keep.rules()[0] {
        Keep::Longest => order.sort_by_key(|&text| Reverse(words(&texts[text]).len())),
        Keep::Max(_) => order.sort_by_key(|&text| Reverse(beside[text].halves)),
        Keep::Min(_) => order.sort_by_key(|&text| beside[text].halves),
        _ => {}
    }
    if matches!(near, Near::Containment(_)) {
        order.sort_by_key(|&text| usize::MAX - sets[text].len()); // a stable sort
    }
    let (mut removed_for, mut kept): (BTreeMap<usize, usize>, Vec<usize>) = Default::default();
    for text in order {
        match kept.iter().find(|&&kept| is_near(text, kept)) {
            Some(&other) => _ = removed_for.insert(text, other),
            None => kept.push(text),
        }
    }
    (0..texts.len()).map(|text| removed_for.get(&text).copied().unwrap_or(text) as u32).collect()
}
