//! Compares normal forms with the results of the crate `unicode-normalization`, in the version with which the first
//! indexes were built.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use super::*;
use crate::params::UnicodeVersion;

/// Characters of all kinds: ASCII, marks, characters that compose and decompose, Hangul, compatibility characters,
/// characters assigned late, and unassigned characters.
const LETTERS: [char; 40] = [
    'a',
    'e',
    ' ',
    '\n',
    'é',
    '\u{301}',
    '\u{323}',
    '\u{308}',
    '\u{345}',
    'ﬁ',
    'Ａ',
    '２',
    'ｶ',
    '\u{ff9e}',
    '\u{1100}',
    '\u{1161}',
    '\u{11a8}',
    '가',
    '\u{212b}',
    '…',
    '東',
    '\u{a0}',
    '\u{1e9b}',
    '😀',
    '각',
    '\u{11a7}',
    '\u{344}',
    '\u{f73}',
    '\u{f71}',
    '\u{f72}',
    '\u{16d63}',
    '\u{16d67}',
    '\u{16d68}',
    '\u{16d69}',
    '\u{113c2}',
    '\u{113c5}',
    '\u{338}',
    '=',
    '\u{e0fff}',
    '\u{2f800}',
];

fn check(text: &str, work: &mut CutScratch) {
    let expected: String = text.nfkc().collect();
    assert_eq!(nfkc(text, work, None), expected, "{}", text.escape_unicode());
}

#[test]
fn tables_have_the_unicode_version_of_unicode_normalization() {
    let UnicodeVersion(major, minor, update) = UnicodeVersion::NORMAL;
    let compared = unicode_normalization::UNICODE_VERSION;
    let ours = (major, minor, update);
    assert_eq!(ours, compared, "compare with a version of unicode-normalization that has our Unicode");
}

/// Compares `without_marks` with its definition: decompose, remove marks, compose.
fn check_unmarked(text: &str, work: &mut CutScratch) {
    let kept: String = text.nfd().filter(|&c| flags_of(c) & MARK == 0).collect();
    let expected: String = kept.nfc().collect();
    assert_eq!(without_marks(text, work, None), expected, "{}", text.escape_unicode());
}

#[test]
fn marks_and_combining_classes_match_unicode_normalization() {
    let marks = |wanted: bool| {
        ('\0'..=char::MAX)
            .filter(move |&c| is_combining_mark(c) && (flags_of(c) & MARK != 0) == wanted)
            .count()
    };
    // The category Mn is a part of the category M, and contains most of its characters.
    assert!(marks(true) > 2000 && marks(false) < 600, "{} and {}", marks(true), marks(false));
    assert!(('\0'..=char::MAX).all(|c| flags_of(c) & MARK == 0 || is_combining_mark(c)));
    for (c, is_mark) in [
        ('\u{301}', true),
        ('\u{5b0}', true),
        ('\u{64e}', true),
        ('\u{93c}', true),
        ('\u{3099}', true),
        ('\u{fe0f}', true),
        ('\u{93e}', false),  // Mc
        ('\u{20dd}', false), // Me
        ('\u{ff9e}', false), // Lm
    ] {
        assert_eq!(flags_of(c) & MARK != 0, is_mark, "{c:?}");
    }
    for c in '\0'..=char::MAX {
        assert_eq!(flags_of(c) & SHIFTS != 0, canonical_combining_class(c) > 0, "{c:?}");
    }
}

#[test]
fn removing_marks_around_every_character_equals_the_definition() {
    let mut work = CutScratch::default();
    for c in '\0'..=char::MAX {
        check_unmarked(&format!("{c}"), &mut work);
        check_unmarked(&format!("e{c}\u{301}"), &mut work);
        check_unmarked(&format!("\u{1100}\u{302e}\u{16ff0}{c}\u{323}\u{1161}\u{11a8}"), &mut work);
    }
}

#[test]
fn removing_marks_from_every_three_letters_equals_the_definition() {
    let mut work = CutScratch::default();
    for a in LETTERS {
        for b in LETTERS {
            for c in LETTERS {
                check_unmarked(&String::from_iter([a, b, c]), &mut work);
            }
        }
    }
}

#[test]
fn text_without_marks_is_not_copied() {
    for text in ["", "plain ASCII", "øłđ 東京 — 한국어 “Москва”"] {
        let mut work = CutScratch::default();
        assert_eq!(without_marks(text, &mut work, None).as_ptr(), text.as_ptr(), "{text}");
    }
}

#[test]
fn nfkc_around_every_character_matches_unicode_normalization() {
    let mut work = CutScratch::default();
    for c in '\0'..=char::MAX {
        check(&format!("{c}"), &mut work);
        check(&format!("e{c}\u{301}"), &mut work);
        check(&format!("\u{323}\u{345}{c}\u{323}\u{1161}\u{11a8}"), &mut work);
    }
}

#[test]
fn nfkc_of_composing_pairs_matches_unicode_normalization() {
    let mut work = CutScratch::default();
    for &composition in COMPOSITIONS.as_chunks::<3>().0 {
        let [a, b, composed] = composition.map(|code| char::from_u32(code).unwrap());
        for text in [
            format!("{a}{b}"),
            format!("{a}{a}{b}{b}"),
            format!("{a}\u{334}{b}"),
            format!("{a}\u{345}{b}"),
            format!("{a}{b}\u{301}"),
            format!("{composed}\u{334}{b}"),
            format!("x{composed}"),
        ] {
            check(&text, &mut work);
        }
    }
    for a in '\u{1100}'..='\u{1113}' {
        for b in '\u{1160}'..='\u{1176}' {
            for c in ['\u{11a7}', '\u{11a8}', '\u{11c2}', '\u{11c3}', 'a'] {
                check(&format!("{a}{b}{c}{c}"), &mut work);
            }
        }
    }
}

#[test]
fn nfkc_of_every_three_letters_matches_unicode_normalization() {
    let mut work = CutScratch::default();
    for a in LETTERS {
        for b in LETTERS {
            for c in LETTERS {
                check(&String::from_iter([a, b, c]), &mut work);
            }
        }
    }
}

#[test]
fn text_already_in_nfkc_is_not_copied() {
    for text in ["", "plain ASCII", "Élève «déjà» 東京 — naïve 가나", "ẹ\u{35b}x\u{e0fff}"] {
        let mut work = CutScratch::default();
        assert_eq!(nfkc(text, &mut work, None).as_ptr(), text.as_ptr(), "{text}");
        assert_eq!((work.text.capacity(), work.stretch.capacity()), (0, 0));
    }
}

#[test]
fn composed_and_decomposed_letters_are_detected() {
    let of = |text| {
        let Letters { composed, decomposed } = letters(text);
        (composed, decomposed)
    };
    for text in ["", "plain", "Москва 東京 øł — “x” 😀", "e\u{20dd} q\u{301} ที่นี่ हिन्दी"]
    {
        assert_eq!(of(text), (false, false), "{text}");
    }
    for text in ["café", "ёлка", "が", "한국어", "été q\u{301}", "ậ\u{301}"] {
        assert_eq!(of(text), (true, false), "{text}");
    }
    for text in
        ["cafe\u{301}", "и\u{306}", "か\u{3099}", "\u{1112}\u{1161}\u{11ab}", "a\u{301}\u{323}", "\u{212b}"]
    {
        assert!(of(text).1, "{text}");
    }
    assert_eq!(of("é e\u{301}"), (true, true));
}

proptest! {
    #[test]
    fn letters_are_decomposed_if_nfc_changes_the_text(
        letters_of in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..16),
    ) {
        let text: String = letters_of.into_iter().collect();
        let nfc: String = text.nfc().collect();
        prop_assert_eq!(letters(&text).decomposed, nfc != text, "{}", text.escape_unicode());
    }

    #[test]
    fn nfkc_of_random_letters_matches_unicode_normalization(
        letters in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..24),
    ) {
        let text: String = letters.into_iter().collect();
        let mut work = CutScratch { text: "left over".into(), stretch: vec![(1, 'x')] };
        check(&text, &mut work);
    }

    #[test]
    fn removing_marks_from_random_letters_equals_the_definition(
        letters in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..24),
    ) {
        let text: String = letters.into_iter().collect();
        check_unmarked(&text, &mut CutScratch { text: "left over".into(), stretch: vec![(1, 'x')] });
    }

    #[test]
    fn nfkc_of_any_text_matches_unicode_normalization(text in any::<String>()) {
        check(&text, &mut CutScratch::default());
    }
}
