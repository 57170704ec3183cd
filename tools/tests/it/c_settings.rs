//! Compares the settings that a C program sets by name (`crates/capi/src/settings.rs`, which this file includes) with
//! the declarations from which the command and Python take them: the same names, the same values, and the same
//! parameters.

use std::ffi::OsStr;

use twindex::Params;
use twindex_corpus::settings::{AnySettings, Near, Setting, Settings, Value};
use twindex_corpus::{Rule, TextOptions};

#[path = "../../../crates/capi/src/settings.rs"]
#[allow(dead_code, unreachable_pub, reason = "the C interface uses the rest")]
mod settings;

use settings::{PARAMS, ParamSettings};

/// Values of each setting of texts, valid and not.
const VALUES: &[(&str, &[&str])] = &[
    (
        "tokens",
        &[
            "words",
            "unicode-words",
            "characters",
            "word-characters",
            "sentences",
            "words-symbols",
            "raw",
            "features",
            "bytes",
            "",
        ],
    ),
    ("words", &["1", "5", "16", "1+2", "2+1", "0", "17", "1+", "x", ""]),
    ("normal_form", &["none", "nfkc", "nfc", ""]),
    ("fold", &["none", "marks", "invisible", "marks+invisible", "invisible+marks", "marks+none", ""]),
    ("stemming", &["none", "english", "german", "klingon", ""]),
    ("shingle_hash", &["fast", "rabin", "rabin-karp", "md5", ""]),
    ("seed", &["0", "7", "18446744073709551615", "18446744073709551616", "-1", ""]),
];

/// Returns the parameters that a C program gets by one setting; `None` if the value is refused.
fn in_c(name: &str, value: &str) -> Option<Params> {
    let mut settings = ParamSettings::default();
    let builder = settings.set(Params::builder(), name, value).ok()?;
    settings.apply(builder).ok()?.simhash(3).build().ok()
}

/// Returns the same by the declarations of the command.
fn in_command(name: &str, value: &str) -> Option<Params> {
    let mut options = TextOptions::default();
    options.set(name, &[OsStr::new(value)])?.ok()?;
    Params::builder().shingling(options.shingling().ok()?).simhash(3).build().ok()
}

#[test]
fn settings_of_texts_have_the_names_and_values_of_the_command() {
    for setting in TextOptions::TABLE {
        let Setting { name, .. } = setting;
        assert!(PARAMS.iter().any(|(own, _)| own == name), "C has no setting {name}");
        if *name != "stop_words" {
            assert!(VALUES.iter().any(|(own, _)| own == name), "no values of {name}");
        }
    }
    let mut counts = [0; 2];
    for (name, values) in VALUES {
        for value in *values {
            let (c, command) = (in_c(name, value), in_command(name, value));
            assert_eq!(c, command, "{name} {value:?}");
            counts[usize::from(c.is_some())] += 1;
        }
    }
    assert!(counts[0] > 10 && counts[1] > 20, "{counts:?}");
}

/// C has no lists of stop words by language, which are data of `twindex-corpus`.
#[test]
fn stop_words_of_a_file_are_those_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("words");
    std::fs::write(&file, "The\nand\nCafé\n").unwrap();
    let value = format!("@{}", file.display());
    for (name, other) in
        [("tokens", "words"), ("tokens", "sentences"), ("normal_form", "nfkc"), ("stemming", "english")]
    {
        let mut settings = ParamSettings::default();
        let builder = settings.set(Params::builder(), name, other).unwrap();
        let builder = settings.set(builder, "stop_words", &value).unwrap();
        let c = settings.apply(builder).unwrap().simhash(3).build().unwrap();
        let mut options = TextOptions::default();
        options.set(name, &[OsStr::new(other)]).unwrap().unwrap();
        options.set("stop_words", &[OsStr::new(&value)]).unwrap().unwrap();
        assert_eq!(c.shingling, options.shingling().unwrap(), "{name} {other}");
        assert_eq!(c.shingling.stop_words.iter().count(), 3);
    }
    assert!(
        in_c("stop_words", "english").is_none()
            && in_c("stop_words", "none") == in_command("stop_words", "none")
    );
}

#[test]
fn near_has_the_values_of_the_command_that_an_index_can_store() {
    assert!(Rule::TABLE.iter().any(|setting| setting.name == "near"));
    for value in [
        "0.8",
        "0.05",
        "1",
        "resemblance:0.9",
        "within:0",
        "within:10",
        "within:11",
        "0.04",
        "1.1",
        "within:x",
        "",
        "near",
    ] {
        let near = Near::parse(OsStr::new(value)).ok();
        let near = near.filter(|near| near.within().is_none_or(|within| within <= 10));
        let c = in_c("near", value);
        assert_eq!(c.is_some(), near.is_some(), "{value:?}");
        if let (Some(c), Some(near)) = (c, near) {
            assert_eq!(
                c.near().threshold.map(twindex::params::Threshold::value),
                near.threshold(),
                "{value:?}"
            );
            assert_eq!(c.near().within, near.within(), "{value:?}");
        }
    }
    for value in ["containment:0.9", "equal"] {
        assert!(Near::parse(OsStr::new(value)).is_ok() && in_c("near", value).is_none(), "{value:?}");
    }
    let both = in_c("near", "0.9,within:3").unwrap();
    assert_eq!(both.near().to_string(), "a resemblance of 0.9 or more, or fingerprints at most 3 bits apart");
}

#[test]
fn every_setting_of_c_has_an_effect() {
    let plain = in_c("seed", "0").unwrap();
    for (name, value) in [
        ("keys", "u64"),
        ("near", "0.9"),
        ("bands", "10"),
        ("preset", "broder-84"),
        ("simhash", "4"),
        ("bottom", "16"),
        ("modulus", "8"),
        ("values", "kept"),
        ("priorities", "kept"),
        ("marks", "kept"),
        ("expire_after", "60"),
    ] {
        let set = in_c(name, value).unwrap_or_else(|| panic!("{name} {value}"));
        assert!(set != plain || name == "simhash", "{name} {value}");
        assert!(in_c(name, "no such value").is_none(), "{name}");
    }
    for (name, value) in [
        ("rows", "4"),
        ("signature_bits", "4"),
        ("feature_bits", "16"),
        ("family", "darts"),
        ("weights", "tf"),
        ("sets", "kept"),
    ] {
        let with = |set: bool| {
            let mut settings = ParamSettings::default();
            let mut builder = settings.set(Params::builder(), "near", "0.8").unwrap();
            if set {
                builder = settings.set(builder, name, value).unwrap();
            }
            settings.apply(builder).unwrap().build().unwrap()
        };
        assert!(with(true) != with(false), "{name} {value}");
    }
    assert!(in_c("simhash_weights", "distinct").is_none(), "weights of no fingerprint are refused");
    for (name, value) in
        [("simhash_weights", "distinct"), ("simhash_bits", "256"), ("design", "small"), ("codec", "plain")]
    {
        let with = |set: bool| {
            let mut settings = ParamSettings::default();
            let mut builder = settings.set(Params::builder(), "near", "within:3").unwrap();
            if set {
                builder = settings.set(builder, name, value).unwrap();
            }
            settings.apply(builder).unwrap().build().unwrap()
        };
        assert!(with(true) != with(false), "{name} {value}");
    }
}
