//! The options for tokenizing texts. Each must change the resemblance of texts as documented, be refused if it is
//! mistyped or contradicts an index, and be stored in the index's parameters.

use std::collections::BTreeSet;

use crate::support::{Bench, documents, jsonl, says};

/// Returns the columns after the keys in the line of `pairs.tsv` for two texts; `None` if they are no pair at a
/// threshold of 0.5.
fn pair(options: &str, a: &str, b: &str) -> Option<String> {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", a), ("b", b)])));
    bench.write("list.txt", "THE\r\nof\nété\n");
    bench.ok(&format!("dedup in.jsonl -o out -q --threshold .5 {options}"));
    let rows = bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion");
    assert!(rows.len() <= 1);
    rows.first().map(|row| row.strip_prefix("b\ta\t").unwrap().to_owned())
}

/// Returns the message about options without effect.
fn misused(bench: &Bench, line: &str) -> String {
    let output = bench.command(line).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// Checks that two texts are equal with the options and different without them.
fn are_made_the_same_by(options: &str, a: &str, b: &str) {
    let with = pair(options, a, b).unwrap_or_else(|| panic!("{options}: {a} and {b} are no pair"));
    assert!(with.starts_with("1.000000\t"), "{options}: {a} and {b}: {with}");
    let without = pair("", a, b);
    assert!(!without.is_some_and(|line| line.starts_with('1')), "{a} and {b} without {options}");
}

#[test]
fn each_text_option_makes_the_described_texts_equal() {
    are_made_the_same_by(
        "--normal-form nfkc",
        "cafe\u{301} ﬁnds １０ friends again",
        "café finds 10 friends again",
    );
    are_made_the_same_by("--stop-words english", "the cat and the dog", "a cat, a dog");
    are_made_the_same_by("--stop-words @list.txt", "The cat of été", "cat");
    are_made_the_same_by("--stemming english", "connected dogs running", "connecting dog runs");
    are_made_the_same_by(
        "--stemming german",
        "die Häuser aufeinanderfolgend",
        "die Haus aufeinanderfolgende",
    );
    are_made_the_same_by("--tokens word-characters", "A note book, keeper's.", "Anotebook keepers");
    are_made_the_same_by("--tokens sentences", "One is here. Two is there!", "Two is there? One IS here.");
    are_made_the_same_by(
        "--tokens sentences --stop-words english --stemming english",
        "The cats ran.",
        "A cat ran",
    );
    are_made_the_same_by("--words 1", "the dog chased the cat", "the cat chased the dog");
}

#[test]
fn words_by_uax_29_distinguish_texts_that_plain_words_do_not() {
    let (a, b) = ("we don't pay 3.14 here", "we don t pay 3 14 here");
    assert!(pair("", a, b).unwrap().starts_with("1.000000\t"));
    assert_eq!(pair("--tokens unicode-words", a, b), None);
}

/// Pairs of texts that differ only in symbols.
const SYMBOLS: [(&str, &str); 6] = [
    ("we hire a C engineer for compilers", "we hire a C++ engineer for compilers"),
    ("we hire a C++ engineer for compilers", "we hire a C# engineer for compilers"),
    ("while (head != tail) { sum += head * 2; }", "while (head == tail) { sum -= head / 2; }"),
    ("call the doctor if pulse > 120 or oxygen < 90", "call the doctor if pulse < 120 or oxygen > 90"),
    ("never buying shoes there again 😀", "never buying shoes there again 😭"),
    ("temperature at noon: -3,5 degrees", "temperature at noon: 3.5 degrees"),
];

#[test]
fn texts_differing_only_in_symbols_are_equal_without_symbol_tokens() {
    for (a, b) in SYMBOLS {
        for tokens in ["words", "characters", "word-characters"] {
            let same = pair(&format!("--tokens {tokens}"), a, b).unwrap_or_else(|| panic!("{tokens}: {a}"));
            assert!(same.starts_with("1.000000\t"), "{tokens}: {a}: {same}");
        }
        for options in ["words-symbols", "raw", "words-symbols --words 2", "raw --words 3"] {
            let found = pair(&format!("--tokens {options}"), a, b);
            assert!(found.is_none_or(|line| !line.starts_with('1')), "{options}: {a}");
        }
    }
}

#[test]
fn threshold_1_keeps_texts_that_differ_in_a_symbol() {
    let bench = Bench::new();
    let texts: BTreeSet<&str> = SYMBOLS.iter().flat_map(|&(a, b)| [a, b]).collect();
    let all: Vec<_> = texts.iter().map(|&text| (text.replace(' ', "-"), text.to_owned())).collect();
    bench.write("in.jsonl", jsonl(&all));
    for (tokens, removed) in [("words", 6), ("words-symbols", 0), ("raw", 0)] {
        let report = bench.json(&format!("dedup in.jsonl -o {tokens} --threshold 1 --tokens {tokens}"));
        assert_eq!(report["removed"], removed, "{tokens}");
    }
}

#[test]
fn symbols_are_kept_with_every_other_text_option() {
    let same =
        |options: &str, a: &str, b: &str| pair(options, a, b).is_some_and(|line| line.starts_with('1'));
    assert!(same("--tokens words-symbols --words 1", "if(a!=B) {}", "If ( A != b ) { }"));
    assert!(same("--tokens raw --words 2", "a +\n\n b \t", "a + b"));
    assert!(!same("--tokens raw --words 2", "a + b", "a +b"));
    assert_eq!(pair("--tokens raw --words 1", "ab", "AB"), None);
    assert_eq!(pair("--tokens words-symbols --words 1", "C++", "c +").unwrap(), "1.000000\t2\t2");
    assert_eq!(pair("--tokens words-symbols --words 2", "C++", "c +").unwrap(), "0.500000\t1\t2");
}

#[test]
fn each_folding_option_makes_the_described_texts_equal() {
    are_made_the_same_by("--fold marks", "Crème brûlée at the café", "creme brulee at the cafe\u{301}");
    are_made_the_same_by("--fold marks", "السَّلامُ عَلَيكُم", "السلام عليكم");
    are_made_the_same_by("--fold marks", "שָׁלוֹם עֲלֵיכֶם", "שלום עליכם");
    are_made_the_same_by(
        "--fold invisible",
        "co\u{ad}operation of zero\u{200b}width",
        "cooperation of zerowidth",
    );
    let (a, b) = ("\u{feff}na\u{ad}ïve déjà-vu", "naive deja vu");
    are_made_the_same_by("--fold marks+invisible", a, b);
    are_made_the_same_by("--fold invisible+marks --tokens characters", a, b);
    assert_eq!(pair("--fold marks --words 1", "na\u{ad}ïve", "naive"), None);
    assert_eq!(pair("--fold invisible --words 1", "na\u{ad}ïve", "naive"), None);
}

#[test]
fn index_stores_folding_options_and_refuses_other_ones() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "un déjà vu de l'été")])));
    bench.write("more.jsonl", jsonl(&documents([("b", "UN DEJA VU de l'ete")])));
    bench.ok("build i.twx in.jsonl -q --fold marks+invisible");
    assert_eq!(bench.json("stats i.twx")["params"]["fold"], "invisible+marks/18.0.0");
    // Options that are not given have the values of the index; given options must agree with it.
    bench.ok("build i.twx more.jsonl -q");
    bench.ok("build i.twx more.jsonl -q --fold invisible+marks");
    assert_eq!(bench.ok("pairs i.twx --near within:0 -q").lines().count(), 1);
    let refused = bench.refused("build i.twx more.jsonl -q --fold marks");
    says(&refused, &["fold is invisible+marks in this index", "--fold marks was given"]);
    says(
        &bench.refused("build i.twx more.jsonl -q --fold none"),
        &["fold is invisible+marks", "--fold none"],
    );
    bench.ok("build plain.twx in.jsonl -q");
    assert!(bench.json("stats plain.twx")["params"].get("fold").is_none());
    says(&bench.refused("build plain.twx more.jsonl -q --fold marks"), &["fold is none in this index"]);
    says(
        &misused(&bench, "build other.twx more.jsonl -q --fold none+marks"),
        &["--fold", "none+marks", "both of these joined by +"],
    );
    says(&bench.refused("pairs i.twx --with plain.twx --near within:3"), &["fold"]);
    says(&bench.refused("pairs plain.twx --with i.twx --near within:3"), &["fold"]);
}

/// Returns the keys of the documents that `--near equal` keeps.
fn kept_exactly(options: &str, texts: &[(&str, &str)]) -> Vec<String> {
    let bench = Bench::new();
    let all: Vec<_> = texts.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
    bench.write("in.jsonl", jsonl(&all));
    bench.ok(&format!("dedup in.jsonl -o out -q --near equal {options}"));
    let kept = bench.read("out/kept.jsonl");
    let key = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned()
    };
    kept.lines().map(key).collect()
}

#[test]
fn exact_copies_are_equal_after_the_normal_form_and_folding() {
    let texts = [
        ("nfc", "Le café, ﬁn"),
        ("nfd", "Le cafe\u{301}, fin"),
        ("plain", "Le cafe, fin"),
        ("hyphen", "Le ca\u{ad}fe, fin"),
        ("case", "LE CAFE, fin"),
        ("point", "Le cafe. fin"),
    ];
    assert_eq!(kept_exactly("", &texts), ["nfc", "nfd", "plain", "hyphen", "case", "point"]);
    assert_eq!(kept_exactly("--normal-form nfkc", &texts), ["nfc", "plain", "hyphen", "case", "point"]);
    assert_eq!(kept_exactly("--fold invisible", &texts), ["nfc", "nfd", "plain", "case", "point"]);
    assert_eq!(kept_exactly("--fold marks", &texts), ["nfc", "nfd", "hyphen", "case", "point"]);
    let all = "--normal-form nfkc --fold marks+invisible";
    assert_eq!(kept_exactly(all, &texts), ["nfc", "case", "point"]);
    // Kept documents are unchanged.
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "ﬁn"), ("b", "fin")])));
    let output = bench.command(&format!("dedup in.jsonl -o out --near equal {all}")).output().unwrap();
    says(&String::from_utf8(output.stderr).unwrap(), &["equal after --normal-form and --fold"]);
    assert_eq!(bench.read("out/kept.jsonl"), jsonl(&documents([("a", "ﬁn")])));
    assert_eq!(bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion").len(), 1);
}

#[test]
fn near_equal_refuses_tokenization_options() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "a text")])));
    for option in
        ["tokens raw", "words 3", "stop-words english", "stemming english", "shingle-hash rabin", "seed 1"]
    {
        let name = option.split(' ').next().unwrap();
        let refused = misused(&bench, &format!("dedup in.jsonl -o out --near equal --{option}"));
        says(&refused, &[&format!("--{name}"), "--near equal compares whole texts"]);
    }
}

#[test]
fn documents_without_tokens_are_copies_only_if_bytes_are_equal() {
    let empty = [
        ("e1", ""),
        ("e2", "?!"),
        ("e3", "?! "),
        ("e4", "?!"),
        ("e5", "…"),
        ("e6", "\u{ad}"),
        ("e7", "\u{200b}"),
        ("e8", ""),
        ("e9", "\u{301}"),
    ];
    let kept = ["e1", "e2", "e3", "e5", "e6", "e7", "e9"];
    for options in ["", "--normal-form nfkc", "--fold marks+invisible"] {
        assert_eq!(kept_exactly(options, &empty), kept, "exact {options}");
        let bench = Bench::new();
        bench.write("in.jsonl", jsonl(&documents(empty)));
        for near in ["0.8", "containment:0.8", "within:3"] {
            let report = bench.json(&format!("dedup in.jsonl -o {near} --near {near} {options}"));
            assert_eq!((&report["kept"], &report["removed"]), (&7.into(), &2.into()), "{near} {options}");
        }
        // By distance, no document is near them.
        bench.ok(&format!("build i.twx in.jsonl -q {options}"));
        assert_eq!(bench.ok("query i.twx in.jsonl --near within:3 -q"), "");
        let hits = bench.ok("query i.twx in.jsonl --near 0.8 -q");
        assert_eq!(hits.lines().count(), 9 + 2 * 2, "each itself, and the copies: {hits}");
        assert_eq!(bench.ok("pairs i.twx --near within:10 -q"), "");
        let report = bench.json(&format!("stream s.twx in.jsonl --drop-duplicates {options}"));
        assert_eq!((&report["documents"], &report["duplicates"]), (&7.into(), &2.into()), "{report}");
    }
}

#[test]
fn summary_reports_mixed_normal_forms() {
    let summary = |options: &str, texts: &[(&str, &str)]| {
        let bench = Bench::new();
        let all: Vec<_> = texts.iter().map(|&(key, text)| (key.to_owned(), text.to_owned())).collect();
        bench.write("in.jsonl", jsonl(&all));
        bench.ok(&format!("dedup in.jsonl -o out {options}"))
    };
    let mixed = [("a", "un café noir"), ("b", "le cafe\u{301} creme"), ("c", "of English"), ("d", "des été")];
    let found = summary("", &mixed);
    says(&found, &["2 texts have composed letters and 1 decomposed ones", "--normal-form nfkc"]);
    for options in ["--normal-form nfkc", "--fold marks"] {
        assert!(!summary(options, &mixed).contains("decomposed"), "{options}");
    }
    assert!(
        !summary("", &mixed[..1]).contains("decomposed") && !summary("", &mixed[1..3]).contains("decomposed")
    );
}

#[test]
fn unknown_token_kind_is_refused_listing_valid_kinds() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "a text"), ("b", "another")])));
    let stderr = misused(&bench, "dedup in.jsonl -o out --tokens chars");
    for name in ["characters", "word-characters", "words-symbols", "raw"] {
        assert!(stderr.contains(name), "{stderr}");
    }
}

#[test]
fn shingles_of_several_widths_form_one_set() {
    let (a, b) = ("The dog chased the cat", "The cat chased the dog");
    assert_eq!(pair("--words 1", a, b).unwrap(), "1.000000\t4\t4");
    assert_eq!(pair("--words 2", a, b).unwrap(), "0.600000\t3\t5");
    assert_eq!(pair("--words 1+2", a, b).unwrap(), "0.777778\t7\t9");
    assert_eq!(pair("--words 2+1", a, b).unwrap(), "0.777778\t7\t9");
}

#[test]
fn character_shingles_measure_texts_without_spaces() {
    // 36 characters; the texts differ in the last one, which is part of only one 9-character shingle.
    let one = "人人生而自由在尊严和权利上一律平等他们赋有理性和良心并应以兄弟关系的精神";
    let other = one.replace('神', "髓");
    let n = one.chars().count();
    assert_eq!(n, 36);
    let expected = |w: usize| {
        let (both, all) = (n - w, n - w + 2);
        format!("{:.6}\t{both}\t{all}", both as f64 / all as f64)
    };
    for tokens in ["characters", "word-characters"] {
        assert_eq!(pair(&format!("--tokens {tokens}"), one, &other).unwrap(), expected(9));
        assert_eq!(pair(&format!("--tokens {tokens} --words 3"), one, &other).unwrap(), expected(3));
    }
    // A space is a character only between words.
    assert_eq!(pair("--tokens characters --words 1", "ab cd", "abcd").unwrap(), "0.800000\t4\t5");
    assert_eq!(pair("--tokens word-characters --words 1", "ab cd", "abcd").unwrap(), "1.000000\t4\t4");
    assert_eq!(pair("--tokens characters --words 1", "東京", "東 京").unwrap(), "0.666667\t2\t3");
}

#[test]
fn text_options_apply_to_simhash_and_indexes() {
    let bench = Bench::new();
    let (a, b) = ("cafe\u{301} connected dogs running", "the café connecting dogs run");
    bench.write("in.jsonl", jsonl(&documents([("a", a), ("b", b)])));
    let options = "--normal-form nfkc --stop-words english --stemming english --words 1+2";
    bench.ok(&format!("dedup in.jsonl -o out -q --near within:0 {options}"));
    assert_eq!(bench.rows("out/pairs.tsv", "document\tkept\tdistance"), ["b\ta\t0"]);
    bench.ok(&format!("build i.twx in.jsonl -q {options}"));
    assert_eq!(bench.ok("pairs i.twx --near within:0 -q").lines().count(), 1);
    // The options are stored in the parameters, and apply to later documents and queries.
    let params = &bench.json("stats i.twx")["params"];
    let starts =
        |field: &str, value: &str| assert!(params[field].as_str().unwrap().starts_with(value), "{params}");
    starts("tokens", "words/14.0.0");
    starts("normal-form", "nfkc/");
    starts("stemming", "english");
    starts("width", "1+2");
    assert!(params["stop-words"].as_str().unwrap().split(' ').any(|word| word == "the"));
    bench.write("more.jsonl", jsonl(&documents([("c", "a CAFÉ connects dogs; runs")])));
    bench.ok(&format!("build i.twx more.jsonl -q {options}"));
    assert_eq!(bench.ok("pairs i.twx --near within:0 -q").lines().count(), 3);
}

#[test]
fn default_width_depends_on_the_tokens() {
    for (tokens, width) in [
        ("words", "5"),
        ("unicode-words", "5"),
        ("characters", "9"),
        ("word-characters", "9"),
        ("sentences", "1"),
        ("words-symbols", "5"),
        ("raw", "9"),
    ] {
        let bench = Bench::new();
        bench.write("in.jsonl", jsonl(&documents([("a", "One two three.")])));
        bench.ok(&format!("build i.twx in.jsonl -q --tokens {tokens}"));
        assert_eq!(bench.json("stats i.twx")["params"]["width"], width, "{tokens}");
    }
}

#[test]
fn shingle_hash_and_seed_do_not_change_near_pairs() {
    let bench = Bench::new();
    let (a, b) = ("one two three four five six seven eight", "one two three four five six seven nine");
    bench.write("in.jsonl", jsonl(&documents([("a", a), ("b", b)])));
    let mut dumps = Vec::new();
    for options in ["", "--seed 1", "--shingle-hash rabin", "--shingle-hash rabin-karp"] {
        bench.ok(&format!("dedup in.jsonl -o out --index kept --force -q --threshold .5 {options}"));
        let rows = bench.rows("out/pairs.tsv", "document\tkept\tresemblance\tintersection\tunion");
        assert_eq!(rows, ["b\ta\t0.600000\t3\t5"], "{options}");
        dumps.push(bench.contents("out/index"));
    }
    for (i, dump) in dumps.iter().enumerate() {
        assert!(!dumps[..i].contains(dump), "the hashes of choice {i} are those of another");
    }
}

#[test]
fn mistyped_names_are_usage_errors_listing_valid_names() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one")])));
    for (option, listed) in [
        ("--tokens letters", "unicode-words"),
        ("--tokens features", "unicode-words"),
        ("--words 0", "1 to 16"),
        ("--words 17", "1 to 16"),
        ("--words 1+17", "1 to 16"),
        ("--words 1+", "1+2"),
        ("--normal-form nfd", "nfkc"),
        ("--stop-words englsh", "english, esperanto"),
        ("--stop-words list.txt", "@FILE"),
        ("--stemming klingon", "english"),
        ("--shingle-hash md5", "rabin-karp"),
        ("--seed many", "--seed"),
        ("--tokens characters --stop-words english", "--stop-words goes with words"),
        ("--tokens word-characters --stemming english", "--stemming goes with words"),
    ] {
        for verb in ["build i.twx in.jsonl", "dedup in.jsonl -o out"] {
            let output = bench.command(&format!("{verb} {option}")).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb} {option}: {stderr}");
            says(&stderr, &[listed]);
            assert!(output.stdout.is_empty());
        }
    }
    assert_eq!(bench.names("."), ["in.jsonl"]);
}

#[test]
fn text_options_contradicting_an_index_are_refused_and_named() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one two three")])));
    bench.write("list.txt", "two\n");
    bench.ok("build i.twx in.jsonl -q --stop-words @list.txt");
    for (option, parts) in [
        ("--tokens characters", ["tokens", "words", "characters"]),
        ("--words 1+2", ["words", "5", "1+2"]),
        ("--normal-form nfkc", ["normal-form", "none", "nfkc"]),
        ("--stemming english", ["stemming", "none", "english"]),
        ("--shingle-hash rabin", ["shingle-hash", "fast", "rabin"]),
        ("--seed 7", ["seed", "0", "7"]),
        ("--stop-words english", ["stop-words", "1 word", "words"]),
        ("--stop-words none", ["stop-words", "1 word", "none"]),
    ] {
        let before = bench.contents(".");
        let message = bench.refused(&format!("build i.twx in.jsonl {option}"));
        says(&message, &["i.twx: ", "in this index", "leave it out, or make another index"]);
        says(&message, &parts);
        assert!(bench.contents(".") == before, "{option}");
    }
    bench.write("list.txt", "TWO");
    bench.ok(
        "build i.twx in.jsonl -q --tokens words --words 5 --normal-form none --stemming none --shingle-hash fast \
         --seed 0 --stop-words @list.txt",
    );
    bench.write("other.txt", "three");
    says(
        &bench.refused("build i.twx in.jsonl --stop-words @other.txt"),
        &["stop-words are 1 word", "others: 1 word"],
    );
}

#[test]
fn bad_line_of_a_stop_list_is_refused_with_its_number() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one two three")])));
    let many: String = (0..4097).flat_map(|n| ["w".to_owned(), n.to_string(), "\n".to_owned()]).collect();
    for (list, parts) in [
        (&b"the\ndon't\n"[..], &["list.txt: line 2", "\"don't\" is 2 tokens", "--tokens words"][..]),
        (b"the\n\nof\n", &["list.txt: line 2", "no token"]),
        (b"a\r\nb\r\n--\r\n", &["list.txt: line 3", "\"--\" is no token"]),
        (b"a\n\xff\n", &["list.txt: not UTF-8 at byte 2"]),
        (many.as_bytes(), &["list.txt: ", "more than 4096 words"]),
    ] {
        bench.write("list.txt", list);
        for verb in ["build i.twx in.jsonl", "dedup in.jsonl -o out"] {
            says(&bench.refused(&format!("{verb} --stop-words @list.txt")), parts);
        }
        assert_eq!(bench.names("."), ["in.jsonl", "list.txt"]);
    }
    says(&bench.refused("build i.twx in.jsonl --stop-words @none.txt"), &["none.txt: cannot read"]);
    // This is one word by UAX #29, but two plain words.
    bench.write("list.txt", "don't\n");
    bench.ok("build i.twx in.jsonl -q --tokens unicode-words --stop-words @list.txt");
    assert_eq!(bench.json("stats i.twx")["params"]["stop-words"], "don't");
}
