//! Options for splitting texts into shingles, of every verb that sketches documents.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use twindex::params::{ShingleHash, Stemming, Tokens, Widths};
use twindex_corpus::text::{StopList, TextFold, TextForm, TextOptions};

use crate::stop_lists::LANGUAGES;

/// Options for splitting texts into shingles. For a new index, a missing option has the default value in the help. For
/// an existing index, it has the value of the index.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TextArgs {
    /// Tokens that shingles are made of: `words`; `unicode-words`, by UAX #29, which keeps `don't` as one word;
    /// `characters` of words and of one space between two words; `word-characters`, the same without spaces;
    /// `sentences`; `words-symbols`, words and every other character except white space, so that C, C++ and C# differ;
    /// `raw`, every character with its case, with one space for any white space. All kinds except the last two ignore
    /// characters other than letters, marks, digits and _ [default: words]
    #[arg(long, value_name = "KIND", value_parser = tokens_parser())]
    tokens: Option<Tokens>,
    /// Number of tokens in a shingle, 1 to 16; several numbers joined by +, as in 1+2, give the union of their shingles
    /// [default: 5 words, 9 characters, 1 sentence]
    #[arg(long, value_name = "W", value_parser = parse_widths)]
    words: Option<Widths>,
    /// Unicode normal form of the text; with nfkc, composed and decomposed characters are equal, and fullwidth and plain
    /// ones [default: none]
    #[arg(long, value_enum, value_name = "FORM")]
    normal_form: Option<FormArg>,
    /// Characters of the text to ignore: marks, which are accents, harakat, vowel points and all other characters of the
    /// category Mn (`é` becomes `e`, `й` becomes `и`, `が` becomes `か`); invisible, which are soft hyphens and zero-width
    /// characters; or both, joined by + [default: none]
    #[arg(long, value_name = "WHAT", value_parser = parse_fold)]
    fold: Option<TextFold>,
    /// Words to ignore: those of a language, for example english, or those of a file, one per line, as @FILE [default:
    /// none]
    #[arg(long, value_name = "LANGUAGE|@FILE", value_parser = parse_stop_words)]
    stop_words: Option<StopList>,
    /// Language of the Snowball stemmer that reduces words to their stems [default: none]
    #[arg(long, value_name = "LANGUAGE", value_parser = stemming_parser())]
    stemming: Option<Stemming>,
    /// Hash function that maps a shingle to 64 bits [default: fast]
    #[arg(long, value_name = "HASH", value_parser = hash_parser())]
    shingle_hash: Option<ShingleHash>,
    /// Seed that selects another family of hash functions [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormArg {
    None,
    Nfkc,
}

fn tokens_parser() -> impl TypedValueParser<Value = Tokens> {
    // Features are not tokens of a text.
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

fn parse_fold(text: &str) -> Result<TextFold, String> {
    let mut fold = TextFold::default();
    if text == "none" {
        return Ok(fold);
    }
    for one in text.split('+') {
        match one {
            "marks" => fold.marks = true,
            "invisible" => fold.invisible = true,
            _ => return Err("expected none, marks, invisible, or both of these joined by +".to_owned()),
        }
    }
    Ok(fold)
}

/// Parses the name of a language, or `@` and the path of a file. The prefix avoids confusing a file with a language.
fn parse_stop_words(text: &str) -> Result<StopList, String> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(StopList::File(path.into()));
    }
    if text == "none" {
        return Ok(StopList::None);
    }
    if let Some(language) = LANGUAGES.iter().find(|language| language.name == text) {
        return Ok(StopList::Words { name: language.name, words: language.words()? });
    }
    let names: Vec<_> = LANGUAGES.iter().map(|language| language.name).collect();
    Err(format!("there is no list of this language; expected @FILE, none, or one of {}", names.join(", ")))
}

impl TextArgs {
    /// Returns the options that were given.
    pub(crate) fn options(&self) -> TextOptions {
        TextOptions {
            tokens: self.tokens,
            words: self.words,
            normal_form: self.normal_form.map(|form| match form {
                FormArg::None => TextForm::None,
                FormArg::Nfkc => TextForm::Nfkc,
            }),
            fold: self.fold,
            stop_words: self.stop_words.clone(),
            stemming: self.stemming,
            shingle_hash: self.shingle_hash,
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_list_fits_in_the_parameters() {
        for language in LANGUAGES {
            let list = parse_stop_words(language.name).unwrap();
            for tokens in [Tokens::Words, Tokens::UnicodeWords, Tokens::Sentences] {
                let options = TextOptions { tokens: Some(tokens), ..TextOptions::default() };
                let words = list.words(&options.shingling().unwrap());
                assert!(!words.unwrap().is_empty(), "{}, {tokens}", language.name);
            }
        }
    }

    #[test]
    fn stop_word_is_used_only_if_it_is_one_token() {
        let words = |tokens| {
            let options = TextOptions { tokens: Some(tokens), ..TextOptions::default() };
            parse_stop_words("english").unwrap().words(&options.shingling().unwrap()).unwrap()
        };
        assert!(words(Tokens::UnicodeWords).contains("don't"));
        assert!(!words(Tokens::Words).contains("don't") && words(Tokens::Words).contains("the"));
        assert_eq!(words(Tokens::Sentences), words(Tokens::Words));
    }
}
