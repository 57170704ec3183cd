//! Options for splitting texts into shingles. They set the parameters of a new index. For an existing index, they must
//! agree with its parameters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, bail, ensure};
use twindex::Params;
use twindex::params::{Folding, NormalForm, ShingleHash, Shingling, Stemming, StopWords, Tokens, Widths};
use twindex::sketch::{Cutter, Units};

use crate::error::InvalidOptions;
use crate::settings::declared::{AnySettings, settings, spelled};
use crate::settings::near::Near;
use crate::settings::stop_lists::LANGUAGES;
use crate::settings::value::{Value, choices};

settings! {
    /// Options for splitting texts into shingles. An option that is not set has its default value in a new index, and
    /// the value of the index in an existing one.
    TextOptions, "How texts are cut" {
        /// Tokens of a shingle: words, characters and others
        ///
        /// `words`: words of letters, marks, digits and _. `unicode-words`: words by UAX #29, which keeps `don't` as
        /// one word. `characters`: the characters of words, with one space between two words. `word-characters`: the
        /// same without spaces. `sentences`: the words of a sentence. `words-symbols`: words, and every other character
        /// except white space, so that C, C++ and C# differ. `raw`: every character with its case; a run of white space
        /// counts as one space. [default: words]
        tokens: Option<Tokens> = None, "KIND";
        /// Number of tokens in a shingle, 1 to 16
        ///
        /// `1+2` uses the shingles of one token and the shingles of two tokens. [default: 5 words, 9 characters, 1
        /// sentence]
        words: Option<Widths> = None, "W";
        /// Unicode normal form of the text: none or nfkc
        ///
        /// `nfkc` makes composed characters equal to decomposed ones, and fullwidth characters equal to plain ones.
        normal_form: Option<TextForm> = None, "FORM";
        /// Characters to ignore: marks, invisible, or marks+invisible
        ///
        /// `marks` are accents, harakat, vowel points and all other characters of the Unicode category Mn (`é` becomes
        /// `e`, `й` becomes `и`, `が` becomes `か`). `invisible` are soft hyphens and zero-width characters.
        fold: Option<TextFold> = None, "WHAT";
        /// Words to ignore: the stop words of a language, such as english, or @FILE
        ///
        /// FILE has one word on each line.
        stop_words: Option<StopList> = None, "LIST";
        /// Language of the stemmer, such as english
        ///
        /// Snowball stemmers reduce words to their stems.
        stemming: Option<Stemming> = None, "LANGUAGE";
        /// 64-bit hash function of shingles: fast, rabin or rabin-karp
        ///
        /// [default: fast]
        shingle_hash: Option<ShingleHash> = None, "HASH", rare true;
        /// Seed of the hash functions
        ///
        /// [default: 0]
        seed: Option<u64> = None, "N", rare true;
    }
}

/// Unicode normal forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// Texts are not converted.
    None,
    /// NFKC: composed and decomposed characters become equal, and so do fullwidth and plain characters.
    Nfkc,
}

/// The characters that are removed from texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFold {
    /// Whether combining marks (category Mn) are removed: accents, vowel points, harakat.
    pub marks: bool,
    /// Whether soft hyphens and zero-width characters are removed.
    pub invisible: bool,
}

/// The source of stop words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopList {
    /// No stop words.
    None,
    /// A built-in list. Entries that the tokenizer does not return as a single token are ignored.
    Words {
        /// The name of the list in messages.
        name: &'static str,
        /// The stop words, one token each.
        words: Vec<&'static str>,
    },
    /// A UTF-8 file of stop words, one per line.
    File(PathBuf),
}

/// Implements [`Value`] for types of the engine by their names.
macro_rules! by_name {
    ($($type:ty, $text:ident => $parsed:expr, $expected:expr;)+) => {$(
        impl Value for $type {
            fn parse(text: &OsStr) -> Result<Self, String> {
                let $text = text.to_str().unwrap_or_default();
                $parsed.ok_or_else(|| format!("expected {}, found {:?}", $expected, text.display().to_string()))
            }

            fn write(&self) -> Vec<String> {
                vec![self.to_string()]
            }
        }
    )+};
}

by_name! {
    // Excludes `Tokens::Features`, because features are not tokens of a text.
    Tokens, text => Tokens::named(text).filter(|tokens| *tokens != Tokens::Features), names(
        Tokens::ALL.iter().filter(|tokens| **tokens != Tokens::Features)
    );
    Widths, text => text.parse().ok(), "1 to 16 tokens, or several numbers of them joined by +, for example 1+2";
    Stemming, text => Stemming::named(text), names(Stemming::ALL.iter());
    ShingleHash, text => ShingleHash::named(text), names(ShingleHash::ALL.iter());
    TextFold, text => TextFold::named(text), "none, marks, invisible, or both of these joined by +";
    StopList, text => StopList::named(text)?, names_of_lists();
}

fn names(all: impl Iterator<Item = impl ToString>) -> String {
    format!("one of {}", all.map(|one| one.to_string()).collect::<Vec<_>>().join(", "))
}

fn names_of_lists() -> String {
    let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
    format!("@FILE, none, or one of {}", names.join(", "))
}

choices! {
    TextForm {
        TextForm::None => "none",
        TextForm::Nfkc => "nfkc",
    }
}

impl TextFold {
    /// Parses a text form: `none`, or names of characters joined by `+`.
    fn named(text: &str) -> Option<Self> {
        let mut fold = Self::default();
        for one in text.split('+').filter(|_| text != "none") {
            match one {
                "marks" => fold.marks = true,
                "invisible" => fold.invisible = true,
                _ => return None,
            }
        }
        Some(fold)
    }
}

impl fmt::Display for TextFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.invisible, self.marks) {
            (false, false) => "none",
            (true, false) => "invisible",
            (false, true) => "marks",
            (true, true) => "invisible+marks",
        })
    }
}

impl fmt::Display for StopList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Words { name, .. } => f.write_str(name),
            Self::File(path) => write!(f, "@{}", path.display()),
        }
    }
}

impl TextOptions {
    /// Returns the path of the stop-word file; `None` if the stop words are not from a file.
    #[must_use]
    pub fn file(&self) -> Option<std::path::PathBuf> {
        if let Some(StopList::File(path)) = &self.stop_words { Some(path.clone()) } else { None }
    }

    /// Returns whether texts are normalized or folded before they are compared.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form == Some(TextForm::Nfkc) || self.fold.is_some_and(|fold| fold.marks || fold.invisible)
    }

    /// Returns the shingling of a new index. Reads the file of stop words if there is one.
    pub fn shingling(&self) -> anyhow::Result<Shingling> {
        let mut plain = Shingling::words(5, 0);
        plain.widths = Widths::one(default_width(self.tokens.unwrap_or(Tokens::Words)))?;
        self.shingling_like(&plain)
    }

    /// Returns a copy of `like` with the values of all options that are set.
    pub fn shingling_like(&self, like: &Shingling) -> anyhow::Result<Shingling> {
        let mut shingling = like.clone();
        if let Some(tokens) = self.tokens {
            shingling = shingling.with_tokens(tokens).with_context(|| {
                format!("--tokens {tokens}: this twindex was built without the feature `languages`")
            })?;
        }
        shingling.widths = self.words.unwrap_or(shingling.widths);
        shingling.seed = self.seed.unwrap_or(shingling.seed);
        match self.normal_form {
            None => {}
            Some(TextForm::None) => shingling.normal_form = NormalForm::None,
            Some(TextForm::Nfkc) => {
                shingling.normal_form = NormalForm::nfkc()
                    .context("--normal-form nfkc: this twindex was built without the feature `languages`")?;
            }
        }
        if let Some(fold) = self.fold {
            shingling.folding = Folding::default();
            shingling.folding.invisible = fold.invisible;
            if fold.marks {
                let marks = Folding::marks_here()
                    .context("--fold marks: this twindex was built without the feature `languages`")?;
                shingling.folding.marks = Some(marks);
            }
        }
        if let Some(hash) = self.shingle_hash {
            shingling.hash = hash;
        }
        let tokens = shingling.tokens;
        let stemming = self.stemming.unwrap_or(shingling.stemming);
        if !tokens.have_words() {
            for (option, given) in [
                ("stemming", stemming != Stemming::None),
                ("stop-words", !matches!(self.stop_words, None | Some(StopList::None))),
            ] {
                if given {
                    return Err(InvalidOptions::new(format!(
                        "--{option} goes with words, sentences and words-symbols, not with --tokens {tokens}"
                    ))
                    .into());
                }
            }
        }
        if let Some(list) = &self.stop_words {
            shingling.stop_words = list.words(&shingling)?;
        }
        shingling.stemming = stemming;
        Ok(shingling)
    }

    /// Returns the first option that is set and is not in `except`; `None` if there is none.
    pub(crate) fn given_except(&self, except: &[&str]) -> Option<String> {
        let mut given =
            self.texts().into_iter().filter(|(name, _, texts)| !texts.is_empty() && !except.contains(name));
        given.next().map(|(name, ..)| spelled(name))
    }

    /// Returns an error if an option for tokenizing texts is set although `near` compares whole texts for equality.
    pub fn check_near(&self, near: Near) -> anyhow::Result<()> {
        match self.given_except(&["normal_form", "fold"]).filter(|_| near == Near::Equal) {
            Some(option) => Err(InvalidOptions::new(format!(
                "{option} says how text is cut into shingles, and --near equal compares whole texts; --normal-form and \
                 --fold go with it"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Returns an error if an option for tokenizing texts is set although documents are fingerprints and have no text.
    pub fn check_fingerprints(&self, fingerprints: bool) -> anyhow::Result<()> {
        match self.given_except(&[]).filter(|_| fingerprints) {
            Some(option) => Err(InvalidOptions::new(format!(
                "{option} says how text is cut, and --fingerprint-field takes fingerprints as they are: leave it out"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Returns an error if an option for tokenizing texts is set although documents are features and are not tokenized.
    pub fn check_features(&self, features: bool) -> anyhow::Result<()> {
        match self.given_except(&["seed"]).filter(|_| features) {
            Some(option) => Err(InvalidOptions::new(format!(
                "{option} says how text is cut, and --features-field takes documents as sets, which are \
                 not cut"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Returns an error if an option contradicts an existing index or file.
    pub fn check(&self, made: &ExistingParams<'_>) -> anyhow::Result<()> {
        let form = |form: TextForm| if form == TextForm::Nfkc { "nfkc" } else { "none" };
        for (option, field, given) in [
            ("tokens", "tokens", self.tokens.map(|tokens| tokens.to_string())),
            ("words", "width", self.words.map(|widths| widths.to_string())),
            ("normal-form", "normal-form", self.normal_form.map(|given| form(given).to_owned())),
            ("fold", "fold", self.fold.map(|given| given.to_string())),
            ("stemming", "stemming", self.stemming.map(|stemming| stemming.to_string())),
            ("shingle-hash", "shingle-hash", self.shingle_hash.map(|hash| hash.to_string())),
            ("seed", "seed", self.seed.map(|seed| seed.to_string())),
        ] {
            check_option(made, option, field, given.as_deref())?;
        }
        if let Some(list) = &self.stop_words {
            let (kept, given) = (&made.params.shingling.stop_words, list.words(&made.params.shingling)?);
            ensure!(
                *kept == given,
                "{}: stop-words are {} in this {}, and --stop-words has {}{}; leave it out, or make another {2}",
                made.path.display(),
                number_of(kept),
                made.noun,
                if kept.iter().count() == given.iter().count() { "others: " } else { "" },
                number_of(&given)
            );
        }
        Ok(())
    }
}

/// An existing index or file, with whose parameters options must agree.
pub struct ExistingParams<'m> {
    /// The path of the index or file.
    pub path: &'m Path,
    /// The parameters of the index or file.
    pub params: &'m Params,
    /// The noun for the index or file in messages.
    pub noun: &'static str,
}

impl<'m> ExistingParams<'m> {
    /// Describes an existing index.
    #[must_use]
    pub fn index(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "index" }
    }

    /// Describes an existing file of sketches.
    #[must_use]
    pub fn sketches(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "file of sketches" }
    }
}

/// Returns an error if an option contradicts a parameter of an existing index or file. A version suffix of the
/// parameter's value is ignored, because users cannot choose it.
pub fn check_option(
    made: &ExistingParams<'_>,
    option: &str,
    field: &str,
    given: Option<&str>,
) -> anyhow::Result<()> {
    let Some(given) = given else { return Ok(()) };
    let ExistingParams { path, params, noun } = made;
    let fields = params.fields();
    let kept = fields.iter().find(|(name, _)| *name == field).map_or("none", |(_, kept)| kept);
    let kept = kept.split('/').next().unwrap_or(kept);
    ensure!(
        kept == given,
        "{}: {option} is {kept} in this {noun}, --{option} {given} was given; leave it out, or make another {noun}",
        path.display()
    );
    Ok(())
}

fn number_of(words: &StopWords) -> String {
    match words.iter().count() {
        0 => "none".to_owned(),
        1 => "1 word".to_owned(),
        count => format!("{count} words"),
    }
}

/// Returns the default number of tokens in a shingle.
///
/// Five words distinguish texts, and most shingles remain equal if a word changes. For characters, Leskovec, Rajaraman
/// and Ullman (*Mining of Massive Datasets*, section 3.2.2) recommend nine for longer documents, which share five by
/// chance. In Chinese, where a word has less than two characters on average, nine characters are also about five words.
/// A single sentence is long enough.
fn default_width(tokens: Tokens) -> u8 {
    match tokens {
        Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => 9,
        Tokens::Sentences => 1,
        _ => 5,
    }
}

impl StopList {
    /// Parses the name of a language, or `@` and the path of a file. Returns `None` if no language has this name.
    fn named(text: &str) -> Result<Option<Self>, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Some(Self::File(path.into())));
        }
        if text == "none" {
            return Ok(Some(Self::None));
        }
        let language = LANGUAGES.iter().find(|language| language.name == text);
        language.map(|language| Ok(Self::Words { name: language.name, words: language.words()? })).transpose()
    }

    /// Returns the stop words, normalized like the tokens of `shingling`, so that they can be compared with them.
    ///
    /// # Errors
    ///
    /// A file cannot be read, is not UTF-8, or has a line that is not a single token; the list is too long.
    pub fn words(&self, shingling: &Shingling) -> anyhow::Result<StopWords> {
        let mut plain = shingling.clone();
        plain.stop_words = StopWords::default();
        plain.stemming = Stemming::None;
        if plain.tokens == Tokens::Sentences {
            // Stop words of sentences are single words.
            plain = plain.with_tokens(Tokens::Words)?;
        }
        let cutter = Cutter::new(&plain)?;
        let mut units = Units::default();
        let mut tokens_of = |text: &str| -> Vec<String> {
            cutter.cut(text, &mut units);
            units.iter().map(|token| String::from_utf8_lossy(token).into_owned()).collect()
        };
        match self {
            Self::None => Ok(StopWords::default()),
            Self::Words { name, words } => {
                // An entry such as `don't` is one token for some tokenizers. Other tokenizers split it; then the entry
                // is ignored.
                let words =
                    words.iter().filter_map(|entry| <[String; 1]>::try_from(tokens_of(entry)).ok()).flatten();
                StopWords::new(words).with_context(|| format!("--stop-words {name}"))
            }
            Self::File(path) => {
                let bytes = fs::read(path).with_context(|| format!("{}: cannot read", path.display()))?;
                let text = String::from_utf8(bytes).map_err(|error| {
                    let valid = error.utf8_error().valid_up_to();
                    anyhow::anyhow!("{}: not UTF-8 at byte {valid}", path.display())
                })?;
                let mut words = Vec::new();
                for (number, line) in (1..).zip(text.lines()) {
                    match <[String; 1]>::try_from(tokens_of(line)) {
                        Ok([word]) => words.push(word),
                        Err(tokens) => bail!(
                            "{}: line {number}: {line:?} is {} with --tokens {}; expected one",
                            path.display(),
                            match tokens.len() {
                                0 => "no token".to_owned(),
                                count => format!("{count} tokens"),
                            },
                            shingling.tokens
                        ),
                    }
                }
                StopWords::new(words).with_context(|| format!("{}", path.display()))
            }
        }
    }
}
