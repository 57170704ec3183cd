//! Options for splitting texts into shingles. They set the parameters of a new index, and must agree with the parameters of
//! an existing one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use twindex::Params;
use twindex::params::{Folding, NormalForm, ShingleHash, Shingling, Stemming, StopWords, Tokens, Widths};
use twindex::sketch::{Cutter, Units};

use crate::error::InvalidOptions;

/// Options for splitting texts into shingles. An option that is not set has its default value in a new index, and the value
/// of the index in an existing one.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// The tokenizer. Default: words. [`Tokens::Features`] is not allowed, since features do not come from texts.
    pub tokens: Option<Tokens>,
    /// The number of tokens in a shingle. Default: 5 words, 9 characters or 1 sentence.
    pub words: Option<Widths>,
    /// The Unicode normal form to which texts are converted. Default: none.
    pub normal_form: Option<TextForm>,
    /// The characters that are removed from texts. Default: none.
    pub fold: Option<TextFold>,
    /// The stop words that are removed from texts. Default: none.
    pub stop_words: Option<StopList>,
    /// The language of the Snowball stemmer that reduces words to their stems. Default: none.
    pub stemming: Option<Stemming>,
    /// The function that hashes a shingle to 64 bits. Default: the fast hash.
    pub shingle_hash: Option<ShingleHash>,
    /// The seed of all hash functions. Default: 0.
    pub seed: Option<u64>,
}

/// Unicode normal forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// Texts are not converted.
    None,
    /// NFKC: makes composed and decomposed characters equal, and fullwidth and plain characters.
    Nfkc,
}

/// The characters that are removed from texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFold {
    /// Combining marks of the general category Mn: accents, vowel points, harakat.
    pub marks: bool,
    /// Soft hyphens and zero-width characters.
    pub invisible: bool,
}

/// The source of stop words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopList {
    /// No stop words.
    None,
    /// A built-in list. Entries that are not a single token are ignored.
    Words {
        /// The name of the list in messages.
        name: &'static str,
        /// The entries of the list.
        words: Vec<&'static str>,
    },
    /// A UTF-8 file of stop words, one per line.
    File(PathBuf),
}

impl TextOptions {
    /// Returns the file that has the list of stop words; `None` if no file is named.
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

    /// Returns a copy of `like` in which the options that are set replace its values.
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

    /// Returns the name of an option that is set and affects tokenization, other than normal form and removed
    /// characters; `None` if there is none.
    pub(crate) fn cutting(&self) -> Option<&'static str> {
        let given = [
            ("tokens", self.tokens.is_some()),
            ("words", self.words.is_some()),
            ("stop-words", self.stop_words.is_some()),
            ("stemming", self.stemming.is_some()),
            ("shingle-hash", self.shingle_hash.is_some()),
            ("seed", self.seed.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns the name of the first option that is set and affects tokenization or comparison, except for the seed;
    /// `None` if there is none.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("tokens", self.tokens.is_some()),
            ("words", self.words.is_some()),
            ("normal-form", self.normal_form.is_some()),
            ("fold", self.fold.is_some()),
            ("stop-words", self.stop_words.is_some()),
            ("stemming", self.stemming.is_some()),
            ("shingle-hash", self.shingle_hash.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns an error if an option for tokenizing texts is set and documents are fingerprints, which have no text.
    pub fn check_fingerprints(&self, fingerprints: bool) -> anyhow::Result<()> {
        let option = self.given().or(self.seed.map(|_| "seed"));
        match option.filter(|_| fingerprints) {
            Some(option) => Err(InvalidOptions::new(format!(
                "--{option} says how text is cut, and --fingerprint-field takes fingerprints as they are: leave it out"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Returns an error if an option for tokenizing texts is set and documents are features, which are not tokenized.
    pub fn check_features(&self, features: bool) -> anyhow::Result<()> {
        match self.given().filter(|_| features) {
            Some(option) => Err(InvalidOptions::new(format!(
                "--{option} says how text is cut, and --features-field takes documents as sets, which are \
                 not cut"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Returns an error if an option contradicts an existing index or file.
    pub fn check(&self, made: &ExistingParams<'_>) -> anyhow::Result<()> {
        let fold = |fold: TextFold| match (fold.invisible, fold.marks) {
            (false, false) => "none",
            (true, false) => "invisible",
            (false, true) => "marks",
            (true, true) => "invisible+marks",
        };
        let form = |form: TextForm| if form == TextForm::Nfkc { "nfkc" } else { "none" };
        for (option, field, given) in [
            ("tokens", "tokens", self.tokens.map(|tokens| tokens.to_string())),
            ("words", "width", self.words.map(|widths| widths.to_string())),
            ("normal-form", "normal-form", self.normal_form.map(|given| form(given).to_owned())),
            ("fold", "fold", self.fold.map(|given| fold(given).to_owned())),
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

/// Returns an error if an option contradicts a parameter of an existing index or file. Ignores a version suffix in the
/// value of the parameter, since users cannot choose it.
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
/// Five words distinguish texts, and most shingles remain equal if a word changes. Leskovec, Rajaraman and Ullman
/// (*Mining of Massive Datasets*, section 3.2.2) recommend nine characters for longer documents, which share five
/// characters by chance. In Chinese, where a word has less than two characters on average, nine characters are again
/// about five words. A sentence is long enough by itself.
fn default_width(tokens: Tokens) -> u8 {
    match tokens {
        Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => 9,
        Tokens::Sentences => 1,
        _ => 5,
    }
}

impl StopList {
    /// Returns the stop words, normalized like the tokens of `shingling`, with which they are compared.
    ///
    /// # Errors
    ///
    /// A file cannot be read, is not UTF-8, or has a line that is not a single token; the list is too long.
    pub fn words(&self, shingling: &Shingling) -> anyhow::Result<StopWords> {
        let mut plain = shingling.clone();
        plain.stop_words = StopWords::default();
        plain.stemming = Stemming::None;
        if plain.tokens == Tokens::Sentences {
            // Sentences consist of plain words.
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
                // `don't` is one token for some tokenizers, and two tokens for others, which ignore the entry.
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
