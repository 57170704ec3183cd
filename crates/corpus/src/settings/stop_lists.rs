//! Lists of stop words by language, from the crate `stop-words`. `build.rs` generates the file with the lists.
//!
//! Stop words are part of the parameters of an index, so a changed list would give an incompatible index. Therefore
//! this file has a digest of each list, and a language whose list differs from its digest is refused.

use xxhash_rust::xxh3::xxh3_64;

/// The list of each language: the code of the language in the crate `stop-words`, and the words, separated by newlines.
const LISTS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/stop_words.rs"));

/// A language with a list of stop words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Language {
    /// English name of the language, in lower case.
    pub(crate) name: &'static str,
    /// The crate's code for the language.
    code: &'static str,
    /// The [`digest`] of the language's list.
    digest: u64,
}

impl Language {
    /// Returns the stop words, in no particular order.
    ///
    /// # Errors
    ///
    /// The list differs from its digest in this file.
    pub(crate) fn words(self) -> Result<Vec<&'static str>, String> {
        let words = list(self.code);
        // guard: a list of stop words that changed is refused
        // without it: digest(&words) != self.digest -> false
        if digest(&words) != self.digest {
            return Err(format!(
                "the list of {} is not that of stop-words 0.10.1; build twindex with that version of the crate \
                 (`cargo install --locked`), or name your own list as @FILE",
                self.name
            ));
        }
        Ok(words)
    }
}

/// Returns the words of the language with this code; an empty list if the code is unknown.
fn list(code: &str) -> Vec<&'static str> {
    let list = LISTS.iter().find(|(other, _)| *other == code);
    list.map(|(_, words)| words.split('\n').collect()).unwrap_or_default()
}

/// Returns the XXH3 hash of the distinct words in ascending byte order, with a newline after each.
fn digest(words: &[&str]) -> u64 {
    let mut words = words.to_vec();
    words.sort_unstable();
    words.dedup();
    xxh3_64(words.iter().flat_map(|word| [*word, "\n"]).collect::<String>().as_bytes())
}

/// All languages, sorted by name.
#[rustfmt::skip]
pub(crate) const LANGUAGES: [Language; 66] = [
    Language { name: "afrikaans", code: "af", digest: 0x349d_3533_1b7e_ed04 },
    Language { name: "albanian", code: "sq", digest: 0x9a95_5641_e0dc_ddac },
    Language { name: "arabic", code: "ar", digest: 0xe386_8ad5_b579_14e3 },
    Language { name: "armenian", code: "hy", digest: 0xc8c8_2d01_adbd_4c86 },
    Language { name: "azerbaijani", code: "az", digest: 0xd56a_e847_7b47_8a5d },
    Language { name: "basque", code: "eu", digest: 0x1e93_cd5a_d30a_8ae8 },
    Language { name: "belarusian", code: "be", digest: 0x5525_3408_b2ba_2581 },
    Language { name: "bengali", code: "bn", digest: 0x6a64_b31a_8e3e_1a2c },
    Language { name: "breton", code: "br", digest: 0xfb77_ad5d_8046_2d93 },
    Language { name: "bulgarian", code: "bg", digest: 0xc6f4_1f11_b95f_4289 },
    Language { name: "catalan", code: "ca", digest: 0x1b8d_f1ed_4c9f_700c },
    Language { name: "chinese", code: "zh", digest: 0x8cdb_6df6_648e_7b12 },
    Language { name: "croatian", code: "hr", digest: 0x08f8_6947_466c_d128 },
    Language { name: "czech", code: "cs", digest: 0x2ee1_add7_fbfa_cf91 },
    Language { name: "danish", code: "da", digest: 0xc40c_0778_7ddb_ba3e },
    Language { name: "dutch", code: "nl", digest: 0x2358_86ad_99e3_2441 },
    Language { name: "english", code: "en", digest: 0xa32f_ddf2_1cf2_1970 },
    Language { name: "esperanto", code: "eo", digest: 0x1737_6e19_dca5_b36b },
    Language { name: "estonian", code: "et", digest: 0xad5a_570c_8c76_968a },
    Language { name: "finnish", code: "fi", digest: 0x071b_3469_860d_678d },
    Language { name: "french", code: "fr", digest: 0xfe02_7216_c556_61b5 },
    Language { name: "galician", code: "gl", digest: 0x5735_3677_a054_c3c0 },
    Language { name: "german", code: "de", digest: 0x6342_05bc_fb50_9f0b },
    Language { name: "greek", code: "el", digest: 0xba9d_b29a_12d3_71ce },
    Language { name: "gujarati", code: "gu", digest: 0x26d4_ff11_d614_03b0 },
    Language { name: "hausa", code: "ha", digest: 0xec9a_af0a_209b_ac90 },
    Language { name: "hebrew", code: "he", digest: 0xd2bf_144a_8d6a_c096 },
    Language { name: "hindi", code: "hi", digest: 0x7746_2d33_97ae_5aa4 },
    Language { name: "hungarian", code: "hu", digest: 0x0530_13c4_0f3d_bc40 },
    Language { name: "indonesian", code: "id", digest: 0x4b84_c002_775e_cdf5 },
    Language { name: "irish", code: "ga", digest: 0x095f_6104_550b_05a9 },
    Language { name: "italian", code: "it", digest: 0xfd50_a57a_11dd_f865 },
    Language { name: "japanese", code: "ja", digest: 0x92f6_1e98_676f_1fc5 },
    Language { name: "kazakh", code: "kk", digest: 0xa40c_2c89_bd85_a66c },
    Language { name: "korean", code: "ko", digest: 0xc0f0_f1ee_514a_7d76 },
    Language { name: "kurdish", code: "ku", digest: 0xe25b_6fac_0b15_8375 },
    Language { name: "latin", code: "la", digest: 0x0161_baa1_0353_2864 },
    Language { name: "latvian", code: "lv", digest: 0x125e_c2c2_71c7_6e5b },
    Language { name: "lithuanian", code: "lt", digest: 0xcf60_34af_f86e_fdbd },
    Language { name: "malay", code: "ms", digest: 0xae5a_38ed_a0d3_85f7 },
    Language { name: "marathi", code: "mr", digest: 0x035c_b589_e780_8348 },
    Language { name: "nepali", code: "ne", digest: 0x810e_a71f_8ed3_4da7 },
    Language { name: "norwegian", code: "no", digest: 0x6875_3bec_2bbe_f805 },
    Language { name: "persian", code: "fa", digest: 0xbf56_20b6_536b_898f },
    Language { name: "polish", code: "pl", digest: 0xfd08_27a6_30f0_9f5d },
    Language { name: "portuguese", code: "pt", digest: 0x234d_c32d_c525_2ae9 },
    Language { name: "romanian", code: "ro", digest: 0xa099_d3dd_d39f_7468 },
    Language { name: "russian", code: "ru", digest: 0x8ff7_7f7c_5a02_83f8 },
    Language { name: "slovak", code: "sk", digest: 0x01c8_21d0_032d_b307 },
    Language { name: "slovenian", code: "sl", digest: 0xf729_edc4_908b_f058 },
    Language { name: "somali", code: "so", digest: 0xb432_4ef7_bb94_e468 },
    Language { name: "sotho", code: "st", digest: 0xfe54_f40c_e1a6_301e },
    Language { name: "spanish", code: "es", digest: 0x636b_3370_11a6_75e2 },
    Language { name: "swahili", code: "sw", digest: 0x11dd_38e9_1870_e448 },
    Language { name: "swedish", code: "sv", digest: 0xdbdc_1471_5a30_bb9a },
    Language { name: "tagalog", code: "tl", digest: 0xec8f_916e_3754_4c9c },
    Language { name: "tajik", code: "tg", digest: 0x50fb_a24c_58d5_a73b },
    Language { name: "tamil", code: "ta", digest: 0xcc06_51eb_f2c1_5521 },
    Language { name: "thai", code: "th", digest: 0x5a82_bcce_f0e9_2e57 },
    Language { name: "turkish", code: "tr", digest: 0x396b_1786_3297_955b },
    Language { name: "ukrainian", code: "uk", digest: 0x524d_84d2_f4b7_58b5 },
    Language { name: "urdu", code: "ur", digest: 0xb6fb_2bce_2b69_4f3c },
    Language { name: "uzbek", code: "uz", digest: 0x1e85_d4ef_515f_1e03 },
    Language { name: "vietnamese", code: "vi", digest: 0x4b93_6710_7616_7820 },
    Language { name: "yoruba", code: "yo", digest: 0x3e75_3363_e0fc_9593 },
    Language { name: "zulu", code: "zu", digest: 0x0fe2_c35f_febe_1b3a },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_list_of_the_crate_has_a_name_and_digest() {
        let mut codes: Vec<&str> = LANGUAGES.iter().map(|language| language.code).collect();
        codes.push("hinglish"); // Hindi in Latin letters; the crate has no language of this name
        codes.sort_unstable();
        assert_eq!(codes, LISTS.iter().map(|(code, _)| *code).collect::<Vec<_>>());
        let found: Vec<(&str, u64)> =
            LANGUAGES.iter().map(|language| (language.code, digest(&list(language.code)))).collect();
        let expected: Vec<(&str, u64)> =
            LANGUAGES.iter().map(|language| (language.code, language.digest)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn stop_list_digest_does_not_depend_on_word_order() {
        assert_eq!(digest(&["b", "a", "b"]), xxh3_64(b"a\nb\n"));
        assert_ne!(digest(&["ab"]), digest(&["a", "b"]));
        assert_ne!(digest(&[]), digest(&[""]));
    }

    #[test]
    fn changed_stop_list_is_refused() {
        let english = LANGUAGES.iter().find(|language| language.name == "english").unwrap();
        assert!(english.words().unwrap().contains(&"the"));
        let why = Language { digest: !english.digest, ..*english }.words().unwrap_err();
        assert!(
            why.starts_with("the list of english is not that of stop-words 0.10.1") && why.contains("@FILE"),
            "{why}"
        );
        assert!(Language { code: "no such code", ..*english }.words().is_err());
    }
}
