//! How text is cut into shingles: options, and what they stand for in a new index or must agree with in one that is there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use twindex::Params;
use twindex::params::{Folding, NormalForm, ShingleHash, Shingling, Stemming, StopWords, Tokens, Widths};
use twindex::sketch::{Cutter, Units};

use crate::error::InvalidOptions;

/// How text is cut into shingles, as far as it is said. What is not said has its default in a new index, and the value of
/// the index in one that is there.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// The kind of the tokens; words by default. Not [`Tokens::Features`], which come from no text.
    pub tokens: Option<Tokens>,
    /// Tokens in a shingle: 5 words, 9 characters or 1 sentence by default.
    pub words: Option<Widths>,
    /// Normal form of the text; none by default.
    pub normal_form: Option<TextForm>,
    /// The characters that are dropped from the text; none by default.
    pub fold: Option<TextFold>,
    /// Words to leave out; none by default.
    pub stop_words: Option<StopList>,
    /// Language whose Snowball stemmer reduces words to stems; none by default.
    pub stemming: Option<Stemming>,
    /// How a shingle becomes 64 bits; the fast hash by default.
    pub shingle_hash: Option<ShingleHash>,
    /// The family of hash functions; 0 by default.
    pub seed: Option<u64>,
}

/// Normal forms of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// The text as it is.
    None,
    /// Composed and decomposed, fullwidth and plain characters are the same.
    Nfkc,
}

/// The characters of a text that may be dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFold {
    /// Marks of the general category Mn: accents, vowel points, harakat.
    pub marks: bool,
    /// Soft hyphens and characters of no width.
    pub invisible: bool,
}

/// The source of stop words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopList {
    /// There are none.
    None,
    /// The stop words of the list of this name. An entry that is not one token is left out.
    Words {
        /// The name of the list in messages.
        name: &'static str,
        /// Its entries.
        words: &'static [&'static str],
    },
    /// The stop words of a file of UTF-8, one a line.
    File(PathBuf),
}

impl TextOptions {
    /// Whether texts are compared in another form than they have.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form == Some(TextForm::Nfkc) || self.fold.is_some_and(|fold| fold.marks || fold.invisible)
    }

    /// How the text of a new index is cut. Reads the file of stop words, if one was named.
    pub fn shingling(&self) -> anyhow::Result<Shingling> {
        let mut plain = Shingling::words(5, 0);
        plain.widths = Widths::one(default_width(self.tokens.unwrap_or(Tokens::Words)))?;
        self.shingling_like(&plain)
    }

    /// `like`, with what the options say instead where they say anything.
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

    /// An option that was given and says how text is cut, beyond its normal form and what is dropped of it.
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

    /// The first option that was given of how text is cut and compared, but for the seed.
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

    /// Refuses options of how text is cut where documents are fingerprints, which come without one.
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

    /// Refuses options of how text is cut where documents are features, which are not cut.
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

    /// Refuses options that contradict what is there.
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

/// An existing index or file, with whose parameters the options must agree.
pub struct ExistingParams<'m> {
    /// Its path.
    pub path: &'m Path,
    /// With which it was made.
    pub params: &'m Params,
    /// Its name in messages.
    pub noun: &'static str,
}

impl<'m> ExistingParams<'m> {
    /// An index.
    #[must_use]
    pub fn index(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "index" }
    }

    /// A file of sketches.
    #[must_use]
    pub fn sketches(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "file of sketches" }
    }
}

/// Refuses an option that contradicts the field of what is there; a version that follows the field's
/// value is not the user's to choose.
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

/// Tokens in a shingle where nothing is said.
///
/// Five words distinguish texts and survive a changed word nearby. Nine characters are what Leskovec, Rajaraman and
/// Ullman (*Mining of Massive Datasets*, section 3.2.2) advise for documents of some length, as five are shared by
/// chance; of Chinese, where a word has less than two characters, nine are five words again. A sentence is long enough
/// by itself.
fn default_width(tokens: Tokens) -> u8 {
    match tokens {
        Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => 9,
        Tokens::Sentences => 1,
        _ => 5,
    }
}

impl StopList {
    /// The list, in the form of the tokens of `shingling`, with which a list is compared.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is not UTF-8, or has a line that is not one token; a list that is too long.
    pub fn words(&self, shingling: &Shingling) -> anyhow::Result<StopWords> {
        let mut plain = shingling.clone();
        plain.stop_words = StopWords::default();
        plain.stemming = Stemming::None;
        if plain.tokens == Tokens::Sentences {
            // Their words are plain words.
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
                // `don't` is a token of some kinds of tokens and two of others; of those it is left out.
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
