//! Tests properties that all kinds of tokens share, and the differences between the kinds.

use proptest::prelude::*;

use super::*;

fn with(change: impl FnOnce(&mut Shingling)) -> Shingling {
    let mut shingling = Shingling::words(1, 0);
    change(&mut shingling);
    shingling
}

/// Returns a shingling of single units with this kind of tokens, in the Unicode version of this build.
fn of(tokens: Tokens) -> Shingling {
    Shingling::words(1, 0).with_tokens(tokens).unwrap()
}

fn strings(units: &Units) -> Vec<String> {
    units.iter().map(|unit| String::from_utf8(unit.to_vec()).expect("a unit is UTF-8")).collect()
}

fn cut(shingling: &Shingling, text: &str) -> Vec<String> {
    let mut units = Units::default();
    Cutter::new(shingling).unwrap().cut(text, &mut units);
    strings(&units)
}

fn plain(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    tokens(text, &mut Vec::new(), |token| found.push(String::from_utf8(token.to_vec()).unwrap()));
    found
}

fn refused(shingling: &Shingling) -> String {
    Cutter::new(shingling).unwrap_err().to_string()
}

const CHARACTERS: [Tokens; 2] = [Tokens::Characters, Tokens::WordCharacters];

#[test]
fn only_characters_have_a_space_between_words() {
    for text in
        ["lorem ipsum dolor", "  Lorem,\n\nipsum -- DOLOR! ", "lorem\u{2003}😀 ipsum\u{301} ?\u{301}dolor"]
    {
        let text = &text.replace("ipsum\u{301}", "ipsum");
        assert_eq!(cut(&of(Tokens::Characters), text).concat(), "lorem ipsum dolor", "{text:?}");
        assert_eq!(cut(&of(Tokens::WordCharacters), text).concat(), "loremipsumdolor", "{text:?}");
    }
}

#[test]
fn adjacent_single_letter_words_have_no_space_between_them() {
    assert_eq!(cut(&of(Tokens::Characters), "東京タワー、2号").concat(), "東京タワー 2号");
    assert_eq!(cut(&of(Tokens::Characters), "abc漢字Def").concat(), "abc漢字def");
}

#[test]
fn a_character_is_a_code_point_and_marks_are_characters() {
    for tokens in CHARACTERS {
        assert_eq!(cut(&of(tokens), "É"), ["é"]);
        assert_eq!(cut(&of(tokens), "E\u{301}"), ["e", "\u{301}"]);
        assert_eq!(cut(&of(tokens), "ที่"), ["ท", "\u{e35}", "\u{e48}"]);
        assert_eq!(cut(&of(tokens), "İ"), ["i", "\u{307}"], "its lower case is two");
        assert!(cut(&of(tokens), "\u{301} - \u{fe0f}").is_empty(), "marks that continue nothing");
    }
}

#[test]
fn text_without_words_has_no_units() {
    for &tokens in Tokens::ALL {
        let Ok(shingling) = Shingling::words(1, 0).with_tokens(tokens) else { continue };
        let keeps_symbols = matches!(tokens, Tokens::WordsSymbols | Tokens::Raw);
        for text in ["", " \n\t\u{3000}", "--- ... !? \u{301}", "😀 ❤\u{fe0f} 👩\u{200d}👩\u{200d}👧"]
        {
            let has_symbols = !text.trim().is_empty();
            assert_eq!(
                cut(&shingling, text).is_empty(),
                !(keeps_symbols && has_symbols),
                "{tokens}: {text:?}"
            );
        }
    }
    assert!(cut(&of(Tokens::Features), "Features come from no text.").is_empty());
}

#[test]
fn words_and_symbols_lose_only_case_and_white_space() {
    let symbols = of(Tokens::WordsSymbols);
    assert_eq!(cut(&symbols, "C, C++ and C#"), ["c", ",", "c", "+", "+", "and", "c", "#"]);
    assert_eq!(cut(&symbols, "If(a!=b)"), ["if", "(", "a", "!", "=", "b", ")"]);
    assert_eq!(cut(&symbols, " if ( A\t!= b )\n"), cut(&symbols, "if(a!=b)"));
    assert_ne!(cut(&symbols, "a==b"), cut(&symbols, "a!=b"));
    assert_eq!(cut(&symbols, "-5 % of 1,000.5_x"), ["-", "5", "%", "of", "1", ",", "000", ".", "5_x"]);
    assert_eq!(cut(&symbols, "東京タワー、2号"), ["東", "京", "タ", "ワ", "ー", "、", "2", "号"]);
    assert_eq!(cut(&symbols, "İstanbul ẞ Ⱥ"), ["i\u{307}stanbul", "ß", "ⱥ"]);
    // White space is removed, and all other characters are kept.
    assert_eq!(
        cut(&symbols, "a\u{a0}\u{2003}\u{3000}\u{85}\u{2028}b\u{200b}\0"),
        ["a", "b", "\u{200b}", "\0"]
    );
}

#[test]
fn mark_joins_the_symbol_before_it_or_becomes_a_symbol() {
    let symbols = of(Tokens::WordsSymbols);
    assert_eq!(
        cut(&symbols, "Cafe\u{301}❤\u{fe0f}❤ =\u{338}="),
        ["cafe\u{301}", "❤\u{fe0f}", "❤", "=\u{338}", "="]
    );
    assert_eq!(cut(&symbols, "\u{301}\u{302}a \u{301}b"), ["\u{301}\u{302}", "a", "\u{301}", "b"]);
    assert_eq!(cut(&symbols, "👩\u{200d}👧😡😡"), ["👩", "\u{200d}", "👧", "😡", "😡"]);
    assert_eq!(cut(&symbols, "か\u{3099}。\u{3099}"), ["か\u{3099}", "。\u{3099}"]);
}

#[test]
fn symbols_can_be_stop_words_and_words_are_stemmed() {
    let mut some = of(Tokens::WordsSymbols);
    some.stop_words = StopWords::new([",", "the", "."]).unwrap();
    assert_eq!(cut(&some, "The dogs, THE cats."), ["dogs", "cats"]);
    #[cfg(feature = "languages")]
    {
        some.stemming = crate::params::Stemming::English;
        assert_eq!(cut(&some, "The dogs', running!"), ["dog", "'", "run", "!"]);
    }
}

#[test]
fn raw_characters_equal_the_text_except_runs_of_white_space() {
    let raw = of(Tokens::Raw);
    assert_eq!(cut(&raw, "\n If  (a\r\n!= B)\u{3000}\t").concat(), "If (a != B)");
    assert_eq!(cut(&raw, "\u{301}e\u{301}\u{ad}\u{200b}\0İ").concat(), "\u{301}e\u{301}\u{ad}\u{200b}\0İ");
    assert_eq!(cut(&raw, "👩\u{200d}👧 ❤\u{fe0f}"), ["👩", "\u{200d}", "👧", " ", "❤", "\u{fe0f}"]);
    assert_ne!(cut(&raw, "ab"), cut(&raw, "a b"));
    assert_ne!(cut(&raw, "a"), cut(&raw, "A"));
}

#[test]
fn invisible_characters_are_removed_first() {
    let visible = |tokens| Shingling { folding: Folding { invisible: true, marks: None }, ..of(tokens) };
    let text = "\u{feff}co\u{ad}operate x\u{200b}y\u{200c}z\u{200d}\u{2060}!";
    assert_eq!(cut(&visible(Tokens::Words), text), ["cooperate", "xyz"]);
    assert_eq!(cut(&visible(Tokens::Raw), text).concat(), "cooperate xyz!");
    assert_eq!(cut(&visible(Tokens::WordsSymbols), text), ["cooperate", "xyz", "!"]);
    assert_ne!(plain(text), ["cooperate", "xyz"]);
    // Keeps the characters next to the ranges of invisible characters, and characters that are invisible but outside
    // the ranges.
    let kept = "\u{ac}\u{ae}\u{200a}\u{200e}\u{200f}\u{205f}\u{2061}\u{180e}\u{fefe}\u{ff00}";
    assert_eq!(Cutter::new(&visible(Tokens::Words)).unwrap().normalised(kept, &mut Units::default()), kept);
    // A mark composes with the letter before it after the invisible character between them is removed.
    #[cfg(feature = "languages")]
    {
        let composed = Shingling { normal_form: NormalForm::nfkc().unwrap(), ..visible(Tokens::Words) };
        assert_eq!(cut(&composed, "e\u{200d}\u{301}"), ["é"]);
    }
}

#[test]
fn all_25_white_space_characters_are_white_space_in_std() {
    let found: Vec<char> = ('\0'..=char::MAX).filter(|&c| is_white_space(c)).collect();
    assert_eq!(found.len(), 25);
    assert!(found.iter().all(|c| c.is_whitespace()));
}

#[test]
fn shingle_bytes_run_from_its_first_unit_to_its_last() {
    let mut units = Units::default();
    Cutter::new(&of(Tokens::Words)).unwrap().cut("A rose IS a rose", &mut units);
    assert_eq!((units.shingle(0, 1), units.shingle(4, 1)), (&b"a"[..], &b"rose"[..]));
    assert_eq!((units.shingle(0, 5), units.shingle(2, 2)), (&b"a rose is a rose"[..], &b"is a"[..]));
    Cutter::new(&of(Tokens::Characters)).unwrap().cut("Łó dź", &mut units);
    assert_eq!(units.shingle(1, 3), "ó d".as_bytes());
}

#[test]
fn stop_words_are_compared_in_lower_case_and_removed() {
    let stopped = |words: &[&str]| with(|shingling| shingling.stop_words = StopWords::new(words).unwrap());
    assert_eq!(cut(&stopped(&["the", "ß"]), "THE cat, the ẞ Thé dog"), ["cat", "thé", "dog"]);
    let mut units = Units::default();
    Cutter::new(&stopped(&["of"])).unwrap().cut("piece of of cake of", &mut units);
    assert_eq!(units.shingle(0, 2), b"piece cake");
    assert!(cut(&stopped(&["a", "b"]), "A b B a").is_empty());
    assert_eq!(cut(&stopped(&["The"]), "The the"), ["the", "the"], "a list in another form matches nothing");
}

#[test]
fn other_unicode_version_is_refused_with_both_versions_and_advice() {
    let message = refused(&with(|shingling| shingling.unicode = UnicodeVersion(15, 1, 0)));
    for part in ["tokens", "words/15.1.0", "words/14.0.0"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    #[cfg(feature = "languages")]
    {
        let words = Shingling { unicode: UnicodeVersion(15, 1, 0), ..of(Tokens::UnicodeWords) };
        let message = refused(&words);
        for part in ["unicode-words/15.1.0", "use a build with Unicode 15.1.0", "make the index again"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let message =
        refused(&with(|shingling| shingling.normal_form = NormalForm::Nfkc(UnicodeVersion(1, 2, 3))));
    for part in ["normal-form", "nfkc/1.2.3"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(UnicodeVersion::OWN.to_string(), super::super::UNICODE_VERSION);
}

#[test]
fn meaningless_combinations_of_options_are_refused() {
    for tokens in CHARACTERS {
        let mut shingling = of(tokens);
        shingling.stop_words = StopWords::new(["the"]).unwrap();
        assert!(refused(&shingling).contains("stop-words"));
    }
}

#[cfg(not(feature = "languages"))]
#[test]
fn options_not_compiled_in_are_refused_with_field_and_advice() {
    let version = UnicodeVersion(16, 0, 0);
    for (field, shingling) in [
        ("tokens is unicode-words/16.0.0", with(|s| (s.tokens, s.unicode) = (Tokens::UnicodeWords, version))),
        ("tokens is sentences/16.0.0", with(|s| (s.tokens, s.unicode) = (Tokens::Sentences, version))),
        ("normal-form is nfkc/16.0.0", with(|s| s.normal_form = NormalForm::Nfkc(version))),
        ("stemming is english", with(|s| s.stemming = crate::params::Stemming::English)),
    ] {
        let message = refused(&shingling);
        assert!(message.contains(field) && message.contains("the feature `languages`"), "{message}");
    }
}

#[cfg(feature = "languages")]
mod with_languages {
    use super::super::stems::{probe, probe_of};
    use super::*;
    use crate::params::Stemming;

    fn nfkc() -> Shingling {
        with(|shingling| shingling.normal_form = NormalForm::nfkc().unwrap())
    }

    fn stemmed(stemming: Stemming) -> Shingling {
        with(|shingling| shingling.stemming = stemming)
    }

    #[test]
    fn composed_and_decomposed_marks_are_removed() {
        let unmarked = |text| {
            let folding = Folding { invisible: false, marks: Folding::marks_here() };
            cut(&Shingling { folding, ..of(Tokens::Words) }, text)
        };
        assert_eq!(unmarked("Crème BRÛLÉE, cre\u{300}me"), ["creme", "brulee", "creme"]);
        assert_eq!(unmarked("ёж Ελλάδα Việt"), ["еж", "ελλαδα", "viet"]);
        assert_eq!(unmarked("مُحَمَّد أحمد شَلوُم"), ["محمد", "احمد", "شلوم"]);
        assert_eq!(unmarked("שָׁלוֹם"), ["שלום"]);
        assert_eq!(unmarked("が か\u{3099} 한국어"), ["か", "か", "한국어"]);
        // Characters without a decomposition, and spacing marks, are kept.
        assert_eq!(unmarked("øłđ ßæ"), ["øłđ", "ßæ"]);
        assert_eq!(unmarked("\u{915}\u{93e}\u{941}"), ["\u{915}\u{93e}"]);
        assert_eq!(unmarked("❤\u{fe0f} \u{301}"), [""; 0]);
    }

    #[test]
    fn unicode_words_include_decimal_numbers_and_contractions() {
        let unicode = of(Tokens::UnicodeWords);
        assert_eq!(cut(&unicode, "Don't pay 3.14, U.S.A."), ["don't", "pay", "3.14", "u.s.a"]);
        assert_eq!(plain("don't 3.14"), ["don", "t", "3", "14"]);
        assert_eq!(cut(&unicode, "ÉCOLE_2 co\u{ad}op it’s"), ["école_2", "co\u{ad}op", "it’s"]);
        assert_eq!(
            cut(&unicode, "東京タワー2号 ที่นี่ 한국어"),
            ["東", "京", "タワー", "2", "号", "ที่", "นี่", "한국어"]
        );
        assert_eq!(cut(&unicode, "İSTANBUL"), ["i\u{307}stanbul"]);
        // A circled letter can be part of a word, but circled letters alone are not a word.
        assert_eq!(cut(&unicode, "Ⓐ aⒶ"), ["aⒶ"]);
    }

    #[test]
    fn sentence_consists_of_its_words_and_is_omitted_without_words() {
        let sentences = of(Tokens::Sentences);
        let text = "Mr. Fox isn't IN. He paid 3.14!  ... (Really?) “Yes.”\nA line. ";
        assert_eq!(
            cut(&sentences, text),
            ["mr", "fox isn t in", "he paid 3 14", "really", "yes", "a line"],
            "as UAX #29 has it, which does not know Mr. Fox"
        );
        let mut some = sentences.clone();
        some.stop_words = StopWords::new(["in", "yes"]).unwrap();
        some.stemming = crate::params::Stemming::English;
        assert_eq!(cut(&some, text), ["mr", "fox isn t", "he paid 3 14", "realli", "a line"]);
        // The bytes of a shingle include the line feed between two sentences.
        let mut units = Units::default();
        let cutter = Cutter::new(&sentences).unwrap();
        cutter.cut("One two. Three.", &mut units);
        assert_eq!(units.shingle(0, 2), b"one two\nthree");
        cutter.cut("一。二三。", &mut units);
        assert_eq!(strings(&units), ["一", "二 三"]);
    }

    #[test]
    fn nfkc_unifies_compatibility_characters() {
        let nfkc = nfkc();
        for (a, b) in [
            ("Ａ１ｂ", "a1b"),
            ("ﬁne ofﬁce", "fine office"),
            ("e\u{301}te\u{301}", "été"),
            ("x²", "X2"),
            ("ｶﾞ", "ガ"),
            ("가", "가"),
            ("K\u{212a}", "kk"),
            ("a\u{323}\u{302}", "ậ"),
            ("a\u{302}\u{323}", "ậ"),
        ] {
            assert_eq!(cut(&nfkc, a), cut(&nfkc, b), "{a} and {b}");
        }
        assert_ne!(plain("e\u{301}te\u{301}"), plain("été"));
        assert_eq!(cut(&nfkc, "1½ …"), ["11", "2"], "a fraction slash separates");
        let mut characters = of(Tokens::Characters);
        characters.normal_form = NormalForm::nfkc().unwrap();
        assert_eq!(cut(&characters, "E\u{301}\u{a0}ﬃ"), ["é", " ", "f", "f", "i"]);
    }

    #[test]
    fn stop_words_are_removed_before_stemming() {
        let mut shingling = stemmed(Stemming::English);
        assert_eq!(cut(&shingling, "Cats CHASED running dogs"), ["cat", "chase", "run", "dog"]);
        shingling.stop_words = StopWords::new(["dog"]).unwrap();
        assert_eq!(cut(&shingling, "dog dogs"), ["dog"], "the list holds words, not stems");
        assert_eq!(
            cut(&stemmed(Stemming::German), "Häuser aufeinanderfolgenden"),
            ["haus", "aufeinanderfolg"]
        );
        assert_eq!(cut(&stemmed(Stemming::Russian), "Свободными правами"), ["свободн", "прав"]);
    }

    #[test]
    fn words_with_empty_stem_or_excessive_length_are_not_stemmed() {
        assert_eq!(cut(&stemmed(Stemming::Turkish), "leri"), ["leri"]);
        let long = "ab".repeat((STEM_MAX - 3) / 2);
        let english = stemmed(Stemming::English);
        assert_eq!(cut(&english, &format!("{long}ing")), [long.as_str()]);
        assert_eq!(cut(&english, &format!("{long}yings")), [format!("{long}yings")]);
    }

    #[test]
    fn stemmer_of_each_language_matches_its_probe() {
        for &stemming in Stemming::ALL {
            Cutter::new(&stemmed(stemming)).unwrap();
        }
    }

    #[test]
    fn stemmer_with_one_different_stem_is_refused_with_advice() {
        use rust_stemmers::{Algorithm, Stemmer};

        let english = Stemmer::create(Algorithm::English);
        let of_english = probe_of(Stemming::English);
        assert_eq!(probe(of_english, |word| english.stem(word)), Ok(()));
        let last = of_english.1.split(' ').next_back().unwrap();
        let changed = |word| if word == last { "another".into() } else { english.stem(word) };
        let Err(Error::Invalid(message)) = probe(of_english, changed) else { panic!("accepted") };
        for part in ["stemming is english", "rust-stemmers", "--precise 1.2.0"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    #[test]
    fn stems_do_not_depend_on_earlier_words() {
        use rust_stemmers::{Algorithm, Stemmer};

        // The text has more words than the cache has slots. Many words have the same length, each word occurs twice,
        // and the two languages alternate.
        let endings = ["ing", "ungen", "edly", "heit", "s"];
        let words: Vec<String> =
            (0..20_000).map(|n| format!("w{}o{}", n % 9_000, endings[n % endings.len()])).collect();
        let text = words.join(" ");
        let mut units = Units::default();
        for (stemming, algorithm) in
            [(Stemming::English, Algorithm::English), (Stemming::German, Algorithm::German)].repeat(2)
        {
            Cutter::new(&stemmed(stemming)).unwrap().cut(&text, &mut units);
            let stemmer = Stemmer::create(algorithm);
            assert!(units.iter().eq(words.iter().map(|word| stemmer.stem(word).into_owned().into_bytes())));
        }
    }

    #[test]
    fn hostile_text_takes_linear_time() {
        // With quadratic time, this test would take hours.
        let million = 1_000_000;
        let marks = "\u{301}\u{323}".repeat(million);
        for (text, units) in [
            (format!("a.{}1", " ".repeat(2 * million)), 1),
            (format!("a.{}b. C", "\u{2003} ".repeat(million)), 1),
            (format!("a{marks}.{marks} B"), 2),
        ] {
            assert!(cut(&of(Tokens::Sentences), &text).len() <= units + 1);
        }
        let mut stems = stemmed(Stemming::English);
        assert_eq!(cut(&stems, &"ay".repeat(million)).len(), 1);
        stems.stemming = Stemming::Turkish;
        assert_eq!(cut(&stems, &"lerinin".repeat(million)).len(), 1);
        assert_eq!(cut(&nfkc(), &format!("a{marks}")).len(), 1);
        for text in ["a:\u{301}".repeat(million), "\u{200d}".repeat(million), "1,".repeat(million)] {
            cut(&of(Tokens::UnicodeWords), &text);
        }
    }

    proptest! {
        #[test]
        fn any_options_split_any_text_into_utf8_units(text in text(), dirt in text(), choice in 0..64_usize) {
            let shingling = choices(choice);
            let cutter = Cutter::new(&shingling).unwrap();
            let mut units = Units::default();
            Cutter::new(&choices(choice * 7 + 3)).unwrap().cut(&dirt, &mut units);
            cutter.cut(&text, &mut units);
            let found = strings(&units);
            prop_assert!(found.iter().all(|unit| !unit.is_empty()));
            prop_assert_eq!(found, cut(&shingling, &text), "buffers of another text");
        }
    }

    /// Returns a shingling. One or two bits of `bits` select each of its options.
    fn choices(bits: usize) -> Shingling {
        let tokens = [Tokens::Words, Tokens::UnicodeWords, Tokens::Sentences, Tokens::Characters][bits & 3];
        let mut shingling = of(tokens);
        if bits & 4 > 0 {
            shingling.normal_form = NormalForm::nfkc().unwrap();
        }
        if tokens != Tokens::Characters {
            if bits & 8 > 0 {
                shingling.stop_words = StopWords::new(["a", "the", "é", "東"]).unwrap();
            }
            let languages = [Stemming::None, Stemming::English, Stemming::Arabic, Stemming::Greek];
            shingling.stemming = languages[bits >> 4 & 3];
        }
        shingling
    }
}

/// Strings that at least one option treats in a special way.
const PIECES: [&str; 32] = [
    "a",
    "The",
    " ",
    "  ",
    ".",
    ". ",
    "'",
    "é",
    "E\u{301}",
    "東",
    "京",
    "タ",
    "ที่",
    "İ",
    "ẞ",
    "\n",
    "\r\n",
    "_",
    "3.14",
    "-",
    "😀",
    "\u{200d}",
    "ﬁ",
    "ｶﾞ",
    "?",
    ")",
    "\u{2029}",
    "\u{a0}",
    "ﷺ",
    "عربي",
    "ούσ",
    "running",
];

/// Generates concatenations of [`PIECES`] and arbitrary texts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn words_and_symbols_contain_all_words_and_visible_characters(
        pieces in prop::collection::vec("[a-zA-ZéÉ京_0-9]|\u{301}|[ \t+=!.,-]|😀|\u{200d}|İ", 0..60),
    ) {
        let text = pieces.concat();
        let found = cut(&of(Tokens::WordsSymbols), &text);
        let words: Vec<String> =
            found.iter().filter(|unit| !plain(unit).is_empty()).cloned().collect();
        // Plain words exclude symbols, and marks that belong to a symbol.
        prop_assert_eq!(words, plain(&text));
        let lower = |text: &str| -> String {
            let lower = |c: char| if c == GROWS { GROWN.to_owned() } else { classify(c).1.to_string() };
            text.chars().filter(|&c| !is_white_space(c)).map(lower).collect()
        };
        prop_assert_eq!(found.concat(), lower(&text));
    }

    #[test]
    fn word_units_of_the_cutter_equal_the_tokens(text in text()) {
        prop_assert_eq!(cut(&of(Tokens::Words), &text), plain(&text));
    }

    #[test]
    fn character_units_equal_the_tokens_with_single_spaces(text in text()) {
        let words = plain(&text).concat();
        let inside = cut(&of(Tokens::WordCharacters), &text);
        prop_assert!(inside.iter().all(|unit| unit.chars().count() == 1));
        prop_assert_eq!(inside.concat(), words.clone());
        let with_spaces = cut(&of(Tokens::Characters), &text).concat();
        prop_assert_eq!(with_spaces.replace(' ', ""), words);
        prop_assert!(!with_spaces.contains("  ") && with_spaces.trim() == with_spaces);
    }
}
