//! Compares boundaries with the boundaries of the crate `unicode-segmentation`, in the version with which the first
//! indexes were built.

use std::collections::BTreeSet;

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::classes::{Sentence, Word};
use super::traits::{TRAITS, traits};
use super::*;
use crate::params::UnicodeVersion;

fn check(text: &str) {
    assert!(words(text).eq(text.split_word_bounds()), "words of {}", text.escape_unicode());
    assert!(sentences(text).eq(text.split_sentence_bounds()), "sentences of {}", text.escape_unicode());
}

/// Returns the first character for each distinct value of `of`.
fn representatives<T: Ord>(of: impl Fn((Word, Sentence)) -> T) -> Vec<char> {
    let mut seen = BTreeSet::new();
    ('\0'..=char::MAX).filter(|&c| seen.insert(of(traits(c)))).collect()
}

#[test]
fn tables_have_the_unicode_version_of_unicode_segmentation() {
    let UnicodeVersion(major, minor, update) = UnicodeVersion::BREAKS;
    let (ours, compared) =
        ((major.into(), minor.into(), update.into()), unicode_segmentation::UNICODE_VERSION);
    assert_eq!(ours, compared, "compare with a version of unicode-segmentation that has our Unicode");
}

#[test]
fn boundaries_around_every_character_match_unicode_segmentation() {
    for c in '\0'..=char::MAX {
        check(&format!(
            "a{c}a 1{c}1 \u{5d0}{c}\u{5d0} _{c}_ \u{30a2}{c}\u{30a2} {c}{c} \u{200d}{c} \u{1f1e6}{c}\u{1f1e6} a.{c}b."
        ));
        check(&format!("a. {c} b"));
        check(&format!("a.{c}A{c}.A.{c}. A.){c}) {c} a!{c}a"));
    }
}

#[test]
fn boundaries_of_every_property_triple_match_unicode_segmentation() {
    let all = representatives(|(word, sentence)| (word as u8, sentence as u8));
    assert_eq!(all.len(), TRAITS.len());
    for &a in &all {
        for &b in &all {
            for &c in &all {
                check(&String::from_iter([a, b, c]));
            }
        }
    }
}

#[test]
fn word_boundaries_in_four_characters_match_unicode_segmentation() {
    let all = representatives(|(word, _)| word as u8);
    assert_eq!(all.len(), Word::PictographLetter as usize + 1);
    for_each_sequence::<4>(&all, |text| {
        assert!(words(text).eq(text.split_word_bounds()), "{}", text.escape_unicode());
    });
}

#[test]
fn sentence_boundaries_in_five_characters_match_unicode_segmentation() {
    let all = representatives(|(_, sentence)| sentence as u8);
    assert_eq!(all.len(), Sentence::SContinue as usize + 1);
    for_each_sequence::<5>(&all, |text| {
        assert!(sentences(text).eq(text.split_sentence_bounds()), "{}", text.escape_unicode());
    });
}

/// Calls `each` with every sequence of `N` of the given characters.
fn for_each_sequence<const N: usize>(characters: &[char], mut each: impl FnMut(&str)) {
    let mut text = String::new();
    for number in 0..characters.len().pow(N as u32) {
        text.clear();
        let mut rest = number;
        for _ in 0..N {
            text.push(characters[rest % characters.len()]);
            rest /= characters.len();
        }
        each(&text);
    }
}

proptest! {
    #[test]
    fn boundaries_in_random_text_match_unicode_segmentation(
        text in prop::collection::vec(
            prop::sample::select(representatives(|(word, sentence)| (word as u8, sentence as u8))),
            0..24,
        ),
    ) {
        check(&text.into_iter().collect::<String>());
    }

    #[test]
    fn boundaries_in_words_and_punctuation_match_unicode_segmentation(
        text in "([ab] |[AB]|[.!?]|\\(|\\)|\"|'|’|,|:|;|1|_|-| |  |\u{5d0}|\u{301}|\u{200d}|\u{ad}|\u{1f468}|\u{1f1e9}|\n|\r){0,40}",
    ) {
        check(&text);
    }

    #[test]
    fn boundaries_in_any_string_match_unicode_segmentation(text in any::<String>()) {
        check(&text);
    }
}
