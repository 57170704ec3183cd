//! The parameters of shingling, which turns text into a set of shingles: their names, values and ranges. Other modules
//! of this crate implement the shingling.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Maximum width of a shingle, in tokens.
pub const SHINGLE_WIDTH_MAX: u8 = 16;

/// Checks that a value is in `lo..=hi`.
///
/// # Errors
/// [`Error::Invalid`] names the parameter and its range.
pub fn in_range(name: &str, value: u64, lo: u64, hi: u64) -> Result<()> {
    if (lo..=hi).contains(&value) {
        Ok(())
    } else {
        Err(Error::Invalid(format!("parameters: {name} is {value}, allowed are {lo} to {hi}")))
    }
}

/// A version of Unicode: major, minor and update number. The rules for splitting and folding text use its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnicodeVersion(pub u8, pub u8, pub u8);

impl UnicodeVersion {
    /// The version whose tables of word characters and lower case are used.
    pub const OWN: Self = Self(14, 0, 0);

    /// The version whose tables of word and sentence boundaries are used.
    #[cfg(feature = "languages")]
    pub(crate) const BREAKS: Self = Self(17, 0, 0);

    /// The version whose tables of normal forms are used.
    #[cfg(feature = "languages")]
    pub(crate) const NORMAL: Self = Self(18, 0, 0);
}

impl fmt::Display for UnicodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for UnicodeVersion {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let mut numbers = text.split('.').map(|number| number.parse::<u8>().map_err(|_| ()));
        let mut next = || numbers.next().unwrap_or(Err(()));
        let version = Self(next()?, next()?, next()?);
        if version.to_string() == text { Ok(version) } else { Err(()) }
    }
}

/// Defines an enum whose values have fixed names.
macro_rules! named {
    ($(#[$of:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name that is used in files and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the value with this name, or `None` if no value has it.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// The kind of tokens.
    Tokens {
        /// Runs of word characters, lower-cased. In scripts without spaces, each letter is a token.
        Words = "words",
        /// Words by the word boundaries of UAX #29, lower-cased: `don't` and `3.14` are one token each. Slow.
        UnicodeWords = "unicode-words",
        /// Each character of each word. Characters between words are ignored.
        WordCharacters = "word-characters",
        /// Each character of each word, and one space between words.
        Characters = "characters",
        /// Sentences by the sentence boundaries of UAX #29; a token is the sequence of a sentence's words. Slow.
        Sentences = "sentences",
        /// Words, and each other character that is not white space, such as `+`, `=` or an emoji, as a separate token.
        WordsSymbols = "words-symbols",
        /// Each character of the text, unchanged and with its case. A run of white space becomes one space.
        Raw = "raw",
        /// Features, which are not computed from text: callers supply their own sets or weighted vectors.
        Features = "features",
    }
}

impl Tokens {
    /// Returns the version of Unicode with which this build computes this kind of tokens; `None` if the build does not
    /// support it.
    #[must_use]
    pub fn unicode(self) -> Option<UnicodeVersion> {
        match self {
            Self::Words
            | Self::WordCharacters
            | Self::Characters
            | Self::Features
            | Self::WordsSymbols
            | Self::Raw => Some(UnicodeVersion::OWN),
            #[cfg(feature = "languages")]
            Self::UnicodeWords | Self::Sentences => Some(UnicodeVersion::BREAKS),
            #[cfg(not(feature = "languages"))]
            Self::UnicodeWords | Self::Sentences => None,
        }
    }
}

impl Tokens {
    /// Returns true if these tokens contain words. Stop words and stemming require words.
    #[must_use]
    pub fn have_words(self) -> bool {
        match self {
            Self::Words | Self::UnicodeWords | Self::Sentences | Self::WordsSymbols => true,
            Self::WordCharacters | Self::Characters | Self::Features | Self::Raw => false,
        }
    }

    /// Returns a phrase that names the characters that these tokens ignore; `None` if tokens are not computed from
    /// text.
    #[must_use]
    pub fn dropped(self) -> Option<&'static str> {
        Some(match self {
            Self::Words | Self::Characters => "case, punctuation, symbols and how much white space there is",
            Self::UnicodeWords => "case, white space, and punctuation and symbols that are not inside a word",
            Self::WordCharacters => "case, punctuation, symbols and white space",
            Self::Sentences => "case, white space, symbols, and punctuation but for where it ends a sentence",
            Self::WordsSymbols => "case and white space",
            Self::Raw => "how much white space there is",
            Self::Features => return None,
        })
    }
}

/// The normal form to which text is converted before any other step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NormalForm {
    /// No conversion.
    None,
    /// NFKC, with the tables of this version of Unicode: texts that are equivalent by compatibility become equal.
    Nfkc(UnicodeVersion),
}

impl NormalForm {
    /// Returns NFKC with the tables of this build; `None` if the build has no such tables.
    #[must_use]
    pub fn nfkc() -> Option<Self> {
        #[cfg(feature = "languages")]
        {
            Some(Self::Nfkc(UnicodeVersion::NORMAL))
        }
        #[cfg(not(feature = "languages"))]
        None
    }
}

/// The characters that are removed before a text is split into tokens (line `fold` of the parameters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Folding {
    /// Soft hyphens and zero-width characters: U+00AD, U+200B to U+200D, U+2060 and U+FEFF.
    pub invisible: bool,
    /// The version of Unicode that defines the removed marks (general category Mn): accents, vowel points, harakat.
    /// With `None`, marks are kept.
    pub marks: Option<UnicodeVersion>,
}

impl Folding {
    /// Returns the version of this build's tables of marks; `None` if the build has no such tables.
    #[must_use]
    pub fn marks_here() -> Option<UnicodeVersion> {
        #[cfg(feature = "languages")]
        {
            Some(UnicodeVersion::NORMAL)
        }
        #[cfg(not(feature = "languages"))]
        None
    }

    /// Returns true if no characters are removed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Parses the output of [`fmt::Display`]. Returns `None` if the text is empty or invalid.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut folding = Self::default();
        for one in text.split('+') {
            match one.split_once('/') {
                None if one == "invisible" => folding.invisible = true,
                Some(("marks", version)) => folding.marks = Some(version.parse().ok()?),
                _ => return None,
            }
        }
        Some(folding)
    }
}

impl fmt::Display for Folding {
    /// Formats the folding as `invisible`, `marks/18.0.0`, or both with `+` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.invisible {
            f.write_str("invisible")?;
        }
        if let Some(version) = self.marks {
            write!(f, "{}marks/{version}", if self.invisible { "+" } else { "" })?;
        }
        Ok(())
    }
}

named! {
    /// The Snowball stemmer that reduces words to stems.
    Stemming {
        /// Words are not reduced.
        None = "none",
        /// Arabic.
        Arabic = "arabic",
        /// Danish.
        Danish = "danish",
        /// Dutch.
        Dutch = "dutch",
        /// English (Porter 2).
        English = "english",
        /// Finnish.
        Finnish = "finnish",
        /// French.
        French = "french",
        /// German.
        German = "german",
        /// Greek.
        Greek = "greek",
        /// Hungarian.
        Hungarian = "hungarian",
        /// Italian.
        Italian = "italian",
        /// Norwegian.
        Norwegian = "norwegian",
        /// Portuguese.
        Portuguese = "portuguese",
        /// Romanian.
        Romanian = "romanian",
        /// Russian.
        Russian = "russian",
        /// Spanish.
        Spanish = "spanish",
        /// Swedish.
        Swedish = "swedish",
        /// Tamil.
        Tamil = "tamil",
        /// Turkish.
        Turkish = "turkish",
    }
}

named! {
    /// The hash function that maps the bytes of a shingle to 64 bits.
    ShingleHash {
        /// Folded multiplications, one for every 16 bytes of a token. A cyclic polynomial combines the hashes of the
        /// tokens.
        Fast = "fast",
        /// Rabin's fingerprint, a remainder of polynomials over GF(2).
        Rabin = "rabin",
        /// The rolling hash of Rabin and Karp, a remainder of integers.
        RabinKarp = "rabin-karp",
    }
}

/// Words that are removed from a text before shingles are computed. Empty by default.
///
/// Stop words are compared with lower-cased tokens, before stemming.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StopWords(Arc<BTreeSet<String>>);

impl StopWords {
    /// Maximum number of words in a list.
    pub const WORDS_MAX: usize = 4096;
    /// Maximum number of bytes of all words in a list, where each word counts one byte more for a separator.
    pub const BYTES_MAX: usize = 1 << 15;

    /// Creates a list of these words, in any order. Duplicates are removed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty word, for a word with white space or control characters, and for a list of more
    /// than [`WORDS_MAX`](Self::WORDS_MAX) words or [`BYTES_MAX`](Self::BYTES_MAX) bytes.
    pub fn new<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut list = BTreeSet::new();
        let mut bytes = 0;
        for word in words {
            let word = word.as_ref();
            if word.is_empty() || word.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(Error::Invalid(format!(
                    "parameters: stop-words has `{}`, which is no word: empty, or with white space in it",
                    word.escape_debug()
                )));
            }
            if list.insert(word.to_owned()) {
                bytes += word.len() + 1;
            }
            if list.len() > Self::WORDS_MAX || bytes > Self::BYTES_MAX {
                return Err(Error::Invalid(format!(
                    "parameters: stop-words is a list of more than {} words or {} bytes",
                    Self::WORDS_MAX,
                    Self::BYTES_MAX
                )));
            }
        }
        Ok(Self(Arc::new(list)))
    }

    /// Returns true if the list has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the list contains `token`, that is, if the token is a stop word.
    #[must_use]
    pub fn contains(&self, token: &str) -> bool {
        self.0.contains(token)
    }

    /// Returns the words, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Parses the output of [`fmt::Display`].
    pub(crate) fn decode(text: &str) -> Result<Self> {
        if text.is_empty() { Ok(Self::default()) } else { Self::new(text.split(' ')) }
    }
}

impl fmt::Display for StopWords {
    /// Formats the words, ascending and separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(word)?;
        }
        Ok(())
    }
}

/// The numbers of tokens in a shingle: usually one width, or several widths, whose shingles are combined in one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths(u16);

impl Widths {
    /// Creates a set with one width, 1 to [`SHINGLE_WIDTH_MAX`] tokens.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a width out of range.
    pub fn one(width: u8) -> Result<Self> {
        in_range("width", width.into(), 1, SHINGLE_WIDTH_MAX.into())?;
        Ok(Self(1 << (width - 1)))
    }

    /// Creates a set of several widths: `[1, 2]` gives single words and pairs of words.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a width out of range, and for an empty slice.
    pub fn union(widths: &[u8]) -> Result<Self> {
        let mut all = 0;
        for &width in widths {
            all |= Self::one(width)?.0;
        }
        if all == 0 {
            return Err(Error::Invalid("parameters: width names no width; one at least is needed".into()));
        }
        Ok(Self(all))
    }

    /// Returns the widths, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..usize::from(SHINGLE_WIDTH_MAX)).filter(move |bit| self.0 >> bit & 1 == 1).map(|bit| bit + 1)
    }

    /// Returns the widths of the shingles of a document of `units` tokens: all widths up to `units`, or `units` itself
    /// if all widths are greater. The iterator is empty if `units` is 0.
    pub(crate) fn of_document(self, units: usize) -> impl Iterator<Item = usize> {
        let all = (units > 0 && units < self.narrowest()).then_some(units);
        self.iter().filter(move |&width| width <= units).chain(all)
    }

    /// Returns the least width.
    #[must_use]
    pub fn narrowest(self) -> usize {
        self.0.trailing_zeros() as usize + 1
    }

    /// Returns the greatest width.
    #[must_use]
    pub fn widest(self) -> usize {
        self.0.ilog2() as usize + 1
    }

    /// Returns the width if there is only one; `None` for a union.
    #[must_use]
    pub fn single(self) -> Option<usize> {
        self.0.is_power_of_two().then(|| self.widest())
    }
}

impl fmt::Display for Widths {
    /// Formats one width as `5`, and a union as `1+2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, width) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            write!(f, "{width}")?;
        }
        Ok(())
    }
}

impl FromStr for Widths {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let widths: Option<Vec<u8>> = text.split('+').map(|width| width.parse().ok()).collect();
        match widths {
            Some(widths) => Self::union(&widths),
            None => Err(Error::Invalid(format!(
                "parameters: width is `{}`; expected a number of tokens, or several joined by +, for example 1+2",
                text.escape_debug()
            ))),
        }
    }
}

/// The rules by which a text is converted to a set of shingles (w-shingling, Broder 1997).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shingling {
    /// The kind of the tokens.
    pub tokens: Tokens,
    /// The version of the Unicode tables with which tokens are computed.
    pub unicode: UnicodeVersion,
    /// The normal form to which the text is converted.
    pub normal_form: NormalForm,
    /// The characters that are removed from the text.
    pub folding: Folding,
    /// The digest of the list of spans that are removed from a text before it is split into tokens
    /// ([`LeavesOut`](crate::LeavesOut)). With `None`, nothing is removed.
    pub boilerplate: Option<u128>,
    /// The tokens that are removed before shingles are computed.
    pub stop_words: StopWords,
    /// The stemmer that reduces words to stems.
    pub stemming: Stemming,
    /// The numbers of tokens in a shingle.
    pub widths: Widths,
    /// The hash function that maps a shingle to 64 bits.
    pub hash: ShingleHash,
    /// The seed of the hash functions of tokens and shingles.
    pub seed: u64,
}

impl Shingling {
    /// Returns parameters for shingles of `width` words, clamped to 1 to [`SHINGLE_WIDTH_MAX`], hashed with `seed`.
    #[must_use]
    pub fn words(width: u8, seed: u64) -> Self {
        Self {
            tokens: Tokens::Words,
            unicode: UnicodeVersion::OWN,
            normal_form: NormalForm::None,
            folding: Folding::default(),
            boilerplate: None,
            stop_words: StopWords::default(),
            stemming: Stemming::None,
            widths: Widths(1 << (width.clamp(1, SHINGLE_WIDTH_MAX) - 1)),
            hash: ShingleHash::Fast,
            seed,
        }
    }

    /// Replaces the kind of tokens: sets [`tokens`](Self::tokens), and sets [`unicode`](Self::unicode) to the version of
    /// this build's tables for them.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, Tokens};
    ///
    /// let characters = Shingling::words(3, 0).with_tokens(Tokens::Characters)?;
    /// assert_eq!(characters.tokens, Tokens::Characters);
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for tokens that this build cannot compute because it lacks the feature `languages`.
    pub fn with_tokens(self, tokens: Tokens) -> Result<Self> {
        let unicode = tokens.unicode().ok_or_else(|| {
            Error::Invalid(format!(
                "parameters: tokens is {tokens}, for which twindex must be built with the feature `languages`"
            ))
        })?;
        Ok(Self { tokens, unicode, ..self })
    }

    /// Returns true if texts are converted to a normal form, or folded, before they are split into tokens.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form != NormalForm::None || !self.folding.is_empty()
    }

    /// Checks that the parameters can be combined.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a meaningless combination.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: &str| Err(Error::Invalid(format!("parameters: {why}")));
        let own = !matches!(self.tokens, Tokens::UnicodeWords | Tokens::Sentences);
        if own && self.unicode != UnicodeVersion::OWN {
            let (tokens, found, only) = (self.tokens, self.unicode, UnicodeVersion::OWN);
            return refuse(&format!("tokens is {tokens}/{found}, and there is {tokens}/{only} only"));
        }
        let words = self.tokens.have_words();
        if !words && !self.stop_words.is_empty() {
            return refuse(&format!(
                "stop-words go with words, sentences and words-symbols, not with tokens={}",
                self.tokens
            ));
        }
        if !words && self.stemming != Stemming::None {
            return refuse(&format!(
                "stemming goes with words, sentences and words-symbols, not with tokens={}",
                self.tokens
            ));
        }
        if self.tokens == Tokens::Features {
            let plain = Self { tokens: Tokens::Features, ..Self::words(1, self.seed) };
            if *self != plain {
                return refuse(
                    "tokens=features leaves no choice of normal form, folding, width and shingle hash",
                );
            }
        }
        Ok(())
    }
}
