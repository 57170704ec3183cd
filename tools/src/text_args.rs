//! How text is cut into shingles: the options of every verb that sketches, and what they stand for.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use twindex::Params;
use twindex::params::{NormalForm, ShingleHash, Shingling, Stemming, StopWords, Tokens, Widths};
use twindex::sketch::{Cutter, Units};

use crate::options::Usage;

/// Options of verbs that turn text into shingles. Those that are not given have the value of the help for a new
/// index, and that of the index for one that is there.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TextArgs {
    /// What a shingle is a run of: `words`; `unicode-words`, by UAX #29, which keep `don't` together; `characters`
    /// of words and of one space between two words; `word-characters`, without that space; `sentences` [default:
    /// words]
    #[arg(long, value_name = "KIND", value_parser = tokens_parser())]
    tokens: Option<Tokens>,
    /// Tokens in a shingle, 1 to 16; several joined by + for the union of their shingles, as in 1+2 [default: 5 words,
    /// 9 characters, 1 sentence]
    #[arg(long, value_name = "W", value_parser = parse_widths)]
    words: Option<Widths>,
    /// Normal form of the text: nfkc makes composed and decomposed, fullwidth and plain characters the same
    /// [default: none]
    #[arg(long, value_enum, value_name = "FORM")]
    normal_form: Option<Form>,
    /// Words to leave out: those of a language, for example english, or those of a file, one a line, as @FILE
    /// [default: none]
    #[arg(long, value_name = "LANGUAGE|@FILE", value_parser = parse_stop_words)]
    stop_words: Option<StopList>,
    /// Language whose Snowball stemmer reduces words to stems [default: none]
    #[arg(long, value_name = "LANGUAGE", value_parser = stemming_parser())]
    stemming: Option<Stemming>,
    /// How a shingle becomes 64 bits [default: fast]
    #[arg(long, value_name = "HASH", value_parser = hash_parser())]
    shingle_hash: Option<ShingleHash>,
    /// Another family of hash functions [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    None,
    Nfkc,
}

/// Where stop words come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StopList {
    None,
    Language { name: &'static str, code: &'static str },
    File(PathBuf),
}

fn tokens_parser() -> impl TypedValueParser<Value = Tokens> {
    // Features come from no text.
    let names = Tokens::ALL.iter().filter(|&&tokens| tokens != Tokens::Features).map(|tokens| tokens.name());
    PossibleValuesParser::new(names).map(|name| Tokens::named(&name).expect("a name from the list"))
}

fn stemming_parser() -> impl TypedValueParser<Value = Stemming> {
    PossibleValuesParser::new(Stemming::ALL.iter().map(|stemming| stemming.name()))
        .map(|name| Stemming::named(&name).expect("a name from the list"))
}

fn hash_parser() -> impl TypedValueParser<Value = ShingleHash> {
    PossibleValuesParser::new(ShingleHash::ALL.iter().map(|hash| hash.name()))
        .map(|name| ShingleHash::named(&name).expect("a name from the list"))
}

fn parse_widths(text: &str) -> Result<Widths, String> {
    text.parse().map_err(|_| {
        "expected 1 to 16 tokens, or several numbers of them joined by +, for example 1+2".to_owned()
    })
}

/// A name is that of a language; a file has an @ before it, so that neither is ever taken for the other.
fn parse_stop_words(text: &str) -> Result<StopList, String> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(StopList::File(path.into()));
    }
    if text == "none" {
        return Ok(StopList::None);
    }
    if let Some(&(name, code)) = LANGUAGES.iter().find(|(name, _)| *name == text) {
        return Ok(StopList::Language { name, code });
    }
    let names: Vec<_> = LANGUAGES.iter().map(|(name, _)| *name).collect();
    Err(format!("there is no list of this language; expected @FILE, none, or one of {}", names.join(", ")))
}

impl TextArgs {
    /// How the text of a new index is cut. Reads the file of stop words, if one was named.
    pub(crate) fn shingling(&self) -> anyhow::Result<Shingling> {
        let mut plain = Shingling::words(5, 0);
        plain.widths = Widths::one(default_width(self.tokens.unwrap_or(Tokens::Words)))?;
        self.shingling_like(&plain)
    }

    /// `like`, with what the options say instead where they say anything.
    pub(crate) fn shingling_like(&self, like: &Shingling) -> anyhow::Result<Shingling> {
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
            Some(Form::None) => shingling.normal_form = NormalForm::None,
            Some(Form::Nfkc) => {
                shingling.normal_form = NormalForm::nfkc()
                    .context("--normal-form nfkc: this twindex was built without the feature `languages`")?;
            }
        }
        if let Some(hash) = self.shingle_hash {
            shingling.hash = hash;
        }
        let tokens = shingling.tokens;
        let stemming = self.stemming.unwrap_or(shingling.stemming);
        if matches!(tokens, Tokens::Characters | Tokens::WordCharacters) {
            for (option, given) in [
                ("stemming", stemming != Stemming::None),
                ("stop-words", !matches!(self.stop_words, None | Some(StopList::None))),
            ] {
                if given {
                    return Err(Usage::new(format!(
                        "--{option} goes with words and sentences, not with --tokens {tokens}"
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

    /// Refuses options of how text is cut where documents are features, which are not cut.
    pub(crate) fn check_features(&self, features: bool) -> anyhow::Result<()> {
        let given = [
            ("tokens", self.tokens.is_some()),
            ("words", self.words.is_some()),
            ("normal-form", self.normal_form.is_some()),
            ("stop-words", self.stop_words.is_some()),
            ("stemming", self.stemming.is_some()),
            ("shingle-hash", self.shingle_hash.is_some()),
        ];
        match given.iter().find(|(_, given)| features && *given) {
            Some((option, _)) => Err(Usage::new(format!(
                "--{option} says how text is cut, and --features-field takes documents as sets, of which no text \
                 is cut"
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Refuses options that contradict what is there.
    pub(crate) fn check(&self, made: &Made<'_>) -> anyhow::Result<()> {
        let form = |form: Form| if form == Form::Nfkc { "nfkc" } else { "none" };
        for (option, field, given) in [
            ("tokens", "tokens", self.tokens.map(|tokens| tokens.to_string())),
            ("words", "width", self.words.map(|widths| widths.to_string())),
            ("normal-form", "normal-form", self.normal_form.map(|given| form(given).to_owned())),
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

/// What was made before, with which options must agree.
pub(crate) struct Made<'m> {
    pub(crate) path: &'m Path,
    pub(crate) params: &'m Params,
    /// What messages call it.
    pub(crate) noun: &'static str,
}

impl<'m> Made<'m> {
    pub(crate) fn index(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "index" }
    }

    pub(crate) fn sketches(path: &'m Path, params: &'m Params) -> Self {
        Self { path, params, noun: "file of sketches" }
    }
}

/// Refuses an option that contradicts the field of what is there; a version that stands behind the field's
/// value is not the user's to choose.
pub(crate) fn check_option(
    made: &Made<'_>,
    option: &str,
    field: &str,
    given: Option<&str>,
) -> anyhow::Result<()> {
    let Some(given) = given else { return Ok(()) };
    let Made { path, params, noun } = made;
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
/// Five words tell texts apart and survive a changed word nearby. Nine characters are what Leskovec, Rajaraman and
/// Ullman (*Mining of Massive Datasets*, section 3.2.2) advise for documents of some length, as five are shared by
/// chance; of Chinese, where a word has less than two characters, nine are five words again. A sentence is long enough
/// by itself.
fn default_width(tokens: Tokens) -> u8 {
    match tokens {
        Tokens::Characters | Tokens::WordCharacters => 9,
        Tokens::Sentences => 1,
        _ => 5,
    }
}

impl StopList {
    /// The list, in the form of the tokens of `shingling`, with which a list is compared.
    fn words(&self, shingling: &Shingling) -> anyhow::Result<StopWords> {
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
            Self::Language { name, code } => {
                // `don't` is a token of some kinds of tokens and two of others; of those it is left out.
                let list = stop_words::lookup(code).unwrap_or_default();
                let words =
                    list.iter().filter_map(|entry| <[String; 1]>::try_from(tokens_of(entry)).ok()).flatten();
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

/// Languages with a list of stop words, and the code of the list.
#[rustfmt::skip]
const LANGUAGES: [(&str, &str); 66] = [
    ("afrikaans", "af"), ("albanian", "sq"), ("arabic", "ar"), ("armenian", "hy"), ("azerbaijani", "az"),
    ("basque", "eu"), ("belarusian", "be"), ("bengali", "bn"), ("breton", "br"), ("bulgarian", "bg"),
    ("catalan", "ca"), ("chinese", "zh"), ("croatian", "hr"), ("czech", "cs"), ("danish", "da"), ("dutch", "nl"),
    ("english", "en"), ("esperanto", "eo"), ("estonian", "et"), ("finnish", "fi"), ("french", "fr"),
    ("galician", "gl"), ("german", "de"), ("greek", "el"), ("gujarati", "gu"), ("hausa", "ha"), ("hebrew", "he"),
    ("hindi", "hi"), ("hungarian", "hu"), ("indonesian", "id"), ("irish", "ga"), ("italian", "it"),
    ("japanese", "ja"), ("kazakh", "kk"), ("korean", "ko"), ("kurdish", "ku"), ("latin", "la"), ("latvian", "lv"),
    ("lithuanian", "lt"), ("malay", "ms"), ("marathi", "mr"), ("nepali", "ne"), ("norwegian", "no"),
    ("persian", "fa"), ("polish", "pl"), ("portuguese", "pt"), ("romanian", "ro"), ("russian", "ru"),
    ("slovak", "sk"), ("slovenian", "sl"), ("somali", "so"), ("sotho", "st"), ("spanish", "es"), ("swahili", "sw"),
    ("swedish", "sv"), ("tagalog", "tl"), ("tajik", "tg"), ("tamil", "ta"), ("thai", "th"), ("turkish", "tr"),
    ("ukrainian", "uk"), ("urdu", "ur"), ("uzbek", "uz"), ("vietnamese", "vi"), ("yoruba", "yo"), ("zulu", "zu"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_its_name_and_can_be_stored() {
        let mut codes: Vec<&str> = LANGUAGES.iter().map(|(_, code)| *code).collect();
        codes.push("hinglish"); // Hindi in Latin letters: no name of a language
        codes.sort_unstable();
        assert_eq!(codes, stop_words::available_languages());
        for (name, _) in LANGUAGES {
            let list = parse_stop_words(name).unwrap();
            for tokens in [Tokens::Words, Tokens::UnicodeWords, Tokens::Sentences] {
                let args = TextArgs { tokens: Some(tokens), ..TextArgs::default() };
                let words = list.words(&args.shingling().unwrap());
                assert!(!words.unwrap().is_empty(), "{name}, {tokens}");
            }
        }
    }

    #[test]
    fn an_entry_counts_where_it_is_one_token() {
        let words = |tokens| {
            let args = TextArgs { tokens: Some(tokens), ..TextArgs::default() };
            parse_stop_words("english").unwrap().words(&args.shingling().unwrap()).unwrap()
        };
        assert!(words(Tokens::UnicodeWords).contains("don't"));
        assert!(!words(Tokens::Words).contains("don't") && words(Tokens::Words).contains("the"));
        assert_eq!(words(Tokens::Sentences), words(Tokens::Words));
    }
}
