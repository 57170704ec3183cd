//! Tests, against a brute-force search, that exactly the spans that enough documents share are removed from texts, and that
//! a damaged list is refused.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use twindex::Error;
use twindex::params::Shingling;
use twindex::sketch::{LeavesOut, LeftOut};
use twindex_corpus::passages::boilerplate::{Boilerplate, Builder, SharedGrams};
use twindex_corpus::passages::{Exact, FinderScratch, Hashed, Hasher, Shape};

use super::damage::for_each_damage;

const SEED: u64 = 5;

/// Returns the words of a text, and their byte ranges.
fn words(text: &str) -> Vec<(Vec<u8>, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
        found.push((token.to_vec(), place));
    });
    found
}

/// Creates a list of the spans of `t` words that more than `more_than` texts share, with a filter of `memory` bytes.
fn list(folder: &Path, texts: &[String], (t, more_than): (usize, u32), memory: usize) -> Boilerplate {
    let hasher = Hasher::new(SEED);
    let mut work = FinderScratch::new(Shape::words(t), hasher);
    let all: Vec<Hashed> = texts
        .iter()
        .map(|text| {
            let mut hashed = Hashed::default();
            hashed.clear(Exact::Tokens);
            twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
                hashed.push_token(&hasher, text, place, token);
            });
            hashed
        })
        .collect();
    let shared = SharedGrams::new(memory, more_than).unwrap();
    for text in &all {
        work.count_shared(text, &shared);
    }
    let mut builder = Builder::new(folder, 0);
    for text in &all {
        let mut grams = Vec::new();
        work.append_shared(text, &shared, &mut grams);
        builder.push(&grams).unwrap();
    }
    let path = folder.join("boilerplate");
    let _ = fs::remove_file(&path);
    builder.finish(&path, (t as u32, more_than), &Shingling::words(1, SEED)).unwrap();
    Boilerplate::open(&path).unwrap()
}

/// Computes, with sets of t-grams, the expected number of spans, the remaining text of each document, and the number of
/// words removed from it.
fn expected(texts: &[String], t: usize, more_than: u32) -> (usize, Vec<(LeftOut, String)>) {
    let split: Vec<_> = texts.iter().map(|text| words(text)).collect();
    let gram = |window: &[(Vec<u8>, std::ops::Range<usize>)]| -> Vec<Vec<u8>> {
        window.iter().map(|(word, _)| word.clone()).collect()
    };
    let mut documents: HashMap<Vec<Vec<u8>>, u32> = HashMap::new();
    for words in &split {
        for gram in words.windows(t).map(gram).collect::<HashSet<_>>() {
            *documents.entry(gram).or_default() += 1;
        }
    }
    let spans = documents.values().filter(|&&documents| documents > more_than).count();
    let rest = texts.iter().zip(&split).map(|(text, words)| {
        let mut is_out = vec![false; words.len()];
        for (first, window) in words.windows(t).enumerate() {
            if documents[&gram(window)] > more_than {
                is_out[first..first + t].fill(true);
            }
        }
        let out = is_out.iter().filter(|&&out| out).count();
        let is_all = out > 0 && out == words.len();
        let (mut pieces, mut end) = (Vec::new(), 0);
        let mut first = 0;
        while first < words.len() {
            if is_out[first] {
                let last = first + is_out[first..].iter().take_while(|&&out| out).count() - 1;
                pieces.push(&text[end..words[first].1.start]);
                end = words[last].1.end;
                first = last;
            }
            first += 1;
        }
        pieces.push(&text[end..]);
        pieces.retain(|piece| !piece.is_empty());
        let rest = if is_all || out == 0 { String::new() } else { pieces.join("\n") };
        (LeftOut { words: out as u64, is_all }, rest)
    });
    let rest = rest.collect();
    (spans, rest)
}

fn check(texts: &[String], (t, more_than): (usize, u32), memory: usize) -> Boilerplate {
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), texts, (t, more_than), memory);
    let (spans, expected) = expected(texts, t, more_than);
    assert_eq!(list.len(), spans, "{texts:?}");
    let counted = list.counted();
    assert_eq!(
        (counted.words as usize, counted.more_than, counted.documents as usize),
        (t, more_than, texts.len())
    );
    for (text, (left_out, rest)) in texts.iter().zip(expected) {
        let mut found = "what was there before".to_owned();
        assert_eq!(list.leave_out(text, &mut found).unwrap(), left_out, "{text:?} of {texts:?}");
        if left_out.words > 0 {
            assert_eq!(found, rest, "{text:?} of {texts:?}");
        }
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Words have one or two letters in upper or lower case, so that most t-grams recur within and between texts.
    #[test]
    fn frequent_spans_are_removed_and_rare_spans_are_kept(
        texts in proptest::collection::vec("([aB]|A|b|é|É|東|京|[ .]| \n){0,40}", 0..8),
        (t, more_than, memory) in (1..7_usize, 1..5_u32, 0..4096_usize),
    ) {
        check(&texts, (t, more_than), memory);
    }

    /// Texts consist of long pieces. The list must not depend on the number of false positives of the filter.
    #[test]
    fn list_of_spans_does_not_depend_on_filter_size(
        pieces in proptest::collection::vec((0..3_usize, 0..40_usize, 1..30_usize, any::<bool>()), 1..40),
        (t, more_than) in (1..12_usize, 1..4_u32),
    ) {
        let mut texts = vec![String::new()];
        for (source, start, length, ends) in pieces {
            let text = texts.last_mut().unwrap();
            for number in start..start + length {
                write!(text, "w{} ", (source * 7 + number * number) % 97).unwrap();
            }
            if ends {
                texts.push(String::new());
            }
        }
        let (small, large) = (check(&texts, (t, more_than), 0), check(&texts, (t, more_than), 1 << 16));
        prop_assert_eq!(small.bytes(), large.bytes());
    }
}

#[test]
fn each_flipped_bit_and_each_truncation_of_a_list_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["home about us a rose", "home about us the sun", "home about us: rain"].map(str::to_owned);
    let made = list(folder.path(), &texts, (3, 2), 1 << 12);
    assert_eq!(made.len(), 1);
    let (path, bytes) = (made.path().to_owned(), made.bytes().to_vec());
    drop(made);
    let refused = |damaged: &[u8], what: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(&path, damaged).unwrap();
        let error = Boilerplate::open(&path).expect_err(what);
        assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
    };
    for_each_damage(&bytes, refused);
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    assert_eq!(Boilerplate::open(&path).unwrap().bytes(), bytes);
}
