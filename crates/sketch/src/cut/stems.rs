//! Reduces words to stems.

#[cfg(feature = "languages")]
pub(super) use with_languages::{Stemmer, Stems};
#[cfg(all(feature = "languages", test))]
pub(super) use with_languages::{probe, probe_of};
#[cfg(not(feature = "languages"))]
pub(super) use without::{Stemmer, Stems};

/// The end of error messages in a build without the feature `languages`.
pub(super) const WITHOUT_LANGUAGES: &str =
    "for which this build of twindex was not made: build it with the feature `languages`";

#[cfg(feature = "languages")]
mod with_languages {
    use std::borrow::Cow;
    use std::sync::OnceLock;

    use rust_stemmers::Algorithm;
    use xxhash_rust::xxh3::xxh3_64;

    use crate::error::{Error, Result};
    use crate::params::Stemming;
    use crate::tables::STEMS;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Stemmer(Algorithm);

    impl Stemmer {
        /// Returns the stemmer of a language, or `None` for [`Stemming::None`].
        ///
        /// # Errors
        /// [`Error::Invalid`] if the stemmer computes other stems than the version with which existing indexes were
        /// built. Each language is tested once per process, in less than a millisecond.
        pub(crate) fn new(stemming: Stemming) -> Result<Option<Self>> {
            static PROBED: [OnceLock<Result<()>>; Stemming::ALL.len()] =
                [const { OnceLock::new() }; Stemming::ALL.len()];
            let Some(algorithm) = algorithm(stemming) else { return Ok(None) };
            PROBED[stemming as usize]
                .get_or_init(|| {
                    let stemmer = rust_stemmers::Stemmer::create(algorithm);
                    probe(probe_of(stemming), |word| stemmer.stem(word))
                })
                .clone()?;
            Ok(Some(Self(algorithm)))
        }
    }

    const fn algorithm(stemming: Stemming) -> Option<Algorithm> {
        Some(match stemming {
            Stemming::None => return None,
            Stemming::Arabic => Algorithm::Arabic,
            Stemming::Danish => Algorithm::Danish,
            Stemming::Dutch => Algorithm::Dutch,
            Stemming::English => Algorithm::English,
            Stemming::Finnish => Algorithm::Finnish,
            Stemming::French => Algorithm::French,
            Stemming::German => Algorithm::German,
            Stemming::Greek => Algorithm::Greek,
            Stemming::Hungarian => Algorithm::Hungarian,
            Stemming::Italian => Algorithm::Italian,
            Stemming::Norwegian => Algorithm::Norwegian,
            Stemming::Portuguese => Algorithm::Portuguese,
            Stemming::Romanian => Algorithm::Romanian,
            Stemming::Russian => Algorithm::Russian,
            Stemming::Spanish => Algorithm::Spanish,
            Stemming::Swedish => Algorithm::Swedish,
            Stemming::Tamil => Algorithm::Tamil,
            Stemming::Turkish => Algorithm::Turkish,
        })
    }

    /// Returns the language, its test words and the digest of their stems.
    pub(in crate::cut) fn probe_of(stemming: Stemming) -> (Stemming, &'static str, u64) {
        let name = stemming.to_string();
        let of_language = |line: &'static str| line.strip_prefix(&name)?.strip_prefix('\t')?.split_once('\t');
        let (digest, words) = STEMS.lines().find_map(of_language).expect("each language has a line");
        (stemming, words, u64::from_str_radix(digest, 16).expect("a digest is a number in hex"))
    }

    /// Returns an error if the stems of the test words do not have the expected digest.
    pub(in crate::cut) fn probe<'a>(
        (stemming, words, digest): (Stemming, &'a str, u64),
        stem: impl Fn(&'a str) -> Cow<'a, str>,
    ) -> Result<()> {
        let mut stems = String::with_capacity(words.len());
        for word in words.split(' ') {
            stems.push_str(&stem(word));
            stems.push('\n');
        }
        if xxh3_64(stems.as_bytes()) == digest {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "parameters: stemming is {stemming}, and the {stemming} stemmer of the crate rust-stemmers in this build of \
             twindex makes other stems than that of version 1.2.0, hence other shingles of the same text; build twindex \
             with that version: `cargo update -p rust-stemmers --precise 1.2.0`"
        )))
    }

    const SLOTS: usize = 1 << 12;

    /// A cache of the stems of recent words. A stemmer takes a microsecond and allocates memory, and most words of a
    /// text are repeated. The hash of a word selects its slot; a new word overwrites the word in the slot.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Stems {
        of: Option<Stemmer>,
        slots: Vec<Slot>,
    }

    #[derive(Clone, Debug, Default)]
    struct Slot {
        /// The word, followed by its stem.
        bytes: Vec<u8>,
        word: usize,
    }

    impl Stems {
        /// Returns the stem of a word, or the word itself if its stem is empty.
        pub(crate) fn of(&mut self, stemmer: Stemmer, word: &str) -> &[u8] {
            if self.of != Some(stemmer) {
                self.of = Some(stemmer);
                self.slots.clear();
                self.slots.resize_with(SLOTS, Slot::default);
            }
            let slot = &mut self.slots[xxh3_64(word.as_bytes()) as usize % SLOTS];
            if &slot.bytes[..slot.word] != word.as_bytes() {
                let stem = rust_stemmers::Stemmer::create(stemmer.0).stem(word);
                let stem = if stem.is_empty() { word } else { &stem };
                slot.bytes.clear();
                slot.bytes.extend_from_slice(word.as_bytes());
                slot.bytes.extend_from_slice(stem.as_bytes());
                slot.word = word.len();
            }
            &slot.bytes[slot.word..]
        }
    }
}

#[cfg(not(feature = "languages"))]
mod without {
    use super::WITHOUT_LANGUAGES;
    use crate::error::{Error, Result};
    use crate::params::Stemming;

    /// A type without values: this build has no stemmers.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Stemmer {}

    impl Stemmer {
        pub(crate) fn new(stemming: Stemming) -> Result<Option<Self>> {
            if stemming == Stemming::None {
                return Ok(None);
            }
            Err(Error::Invalid(format!("parameters: stemming is {stemming}, {WITHOUT_LANGUAGES}")))
        }
    }

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Stems;

    impl Stems {
        #[expect(clippy::unused_self, reason = "as the other")]
        pub(crate) fn of(&mut self, stemmer: Stemmer, _: &str) -> &[u8] {
            match stemmer {}
        }
    }
}
