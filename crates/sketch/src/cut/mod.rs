//! Cuts text into units: the words, characters or sentences that shingles are runs of.
//!
//! ```text
//! text --normal form, folding--> text --tokens--> words, lower-cased --stop words--> fewer --stemming--> stems --> units
//! ```
//!
//! The kind of [`Tokens`] defines the units:
//!
//! - **Words** are the tokens of [`tokens`], which defines them and does all the work if no other parameter is set.
//!   *Word character* is defined there, too.
//! - **Unicode words** are the segments between word boundaries of UAX #29 (no tailoring, rules WB1 to WB999) that
//!   contain a word character other than a mark. A segment is kept whole, with the apostrophe in `don't`, the point in
//!   `3.14` and a soft hyphen; each of its characters is lower-cased as [`tokens`] does. Han, Hiragana, Thai, Lao,
//!   Khmer and Myanmar letters are words by themselves with the marks that follow; Katakana forms runs.
//! - **Word characters** are the code points of the words of [`tokens`], in order.
//! - **Characters** are the same, plus one space wherever the text has any other characters between two words. There
//!   is no space at the ends, nor between neighbours such as two Han characters, which are two words with nothing
//!   between them.
//! - **Sentences** are the stretches between sentence boundaries of UAX #29 (SB1 to SB998) that contain at least one
//!   word after stop words are removed. The unit consists of its words, as found by [`tokens`], separated by spaces.
//!   See **Long gaps** for a limit.
//! - **Words and symbols** are the words of [`tokens`], and each character between them that is not white space, with the
//!   marks that follow it. So `C++` is `c`, `+`, `+`, and only white space is lost. Each symbol of a run is a unit of its
//!   own, because `();` and `( ) ;` mean the same, and because rules of 60 and of 80 hyphens should be similar.
//! - **Raw** characters are those of the whole text, in their case. A run of white space becomes one space; at the
//!   ends of the text it is removed, so that a final line feed makes no difference.
//!
//! *White space* is every character with the property `White_Space` of Unicode: 25 characters, unchanged since version
//! 6.3.
//!
//! A *character* is a code point. Marks are characters, so that `é` is one character if it is composed and two
//! if it is not, unless NFKC composes it. This is also the unit of string slicing in most languages, and of the
//! character n-grams of other programs.
//!
//! The union of widths ([`Widths`](crate::params::Widths)) replaces phrase detection: with `1+2`, words
//! and pairs of words are features of a document, and no list of phrases has to be maintained.
//!
//! **Normal form.** NFKC is applied first, to the whole text, and lower-casing afterwards. A few capitals have no
//! composed form although their small letters have one (H with a line below, T with a diaeresis, W and Y with a ring, J
//! with a caron): they remain two code points when lower-cased.
//!
//! **Folding** ([`Folding`]) removes characters. *Invisible* characters are removed before all other steps: U+00AD
//! (soft hyphen), U+200B to U+200D, U+2060 and U+FEFF. *Marks* are removed after the normal form: the text is
//! decomposed (NFD), characters of the general category Mn are removed, and the rest is composed (NFC), so that
//! canonically equivalent texts stay equal. This removes accents, harakat and niqqud, but also the dots of `ё` and
//! `й`, the hamza above alef, the sound marks of kana (`が` becomes `か`), and vowel signs in Indic scripts and Thai,
//! where different words may then become equal. A stroke is not a mark: `ø`, `ł` and `đ` are kept.
//!
//! **Stop words** are compared with lower-cased words and removed: the words around a stop word become neighbours. A
//! document that consists of stop words has no units.
//!
//! **Stems** are those of the Snowball stemmers of the crate `rust-stemmers` 1.2.0. If a stemmer would reduce a word
//! to the empty string, or if a word has more than [`STEM_MAX`] bytes, the word is its own stem. A newer version of the
//! crate is accepted for each language whose stemmer still gives the same stems for some hundred test words; for other
//! languages [`Cutter::new`] fails.
//!
//! **Long gaps.** Rule SB8 looks ahead without limit from each character after a full stop, which takes quadratic time
//! if a line has thousands of spaces after one. So only the first [`GAP_MAX`] characters of a gap between two words of
//! a line are used to find the ends of sentences. Words are those of [`tokens`]; the gaps before the first word and
//! after the last are limited, too. A line ends with LF, CR, U+0085, U+2028 or U+2029, as sentences do.

#[cfg(feature = "languages")]
mod breaks;
#[cfg(feature = "languages")]
mod normal;
mod pieces;
mod placed;
#[cfg(feature = "languages")]
mod segments;
#[cfg(feature = "languages")]
mod stem_probes;
mod stems;
mod units;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::params::{Folding, NormalForm, Shingling, StopWords, Tokens, UnicodeVersion};

use super::token::{GROWN, GROWS, Kind, classify, tokens};
#[cfg(feature = "languages")]
pub use normal::{Letters, letters};
use pieces::Pieces;
pub use placed::PlacedUnits;
#[cfg(feature = "languages")]
pub use segments::sentence_places;
use stems::{Stemmer, Stems};
pub use units::Units;

/// Maximum length in bytes of words that are reduced to their stems. Stemmers take quadratic time for long words.
pub const STEM_MAX: usize = 255;

/// Maximum number of characters of a gap between two words that are used to find the end of a sentence.
pub const GAP_MAX: usize = 32;

/// Cuts texts into units by the rules of a [`Shingling`].
///
/// ```
/// use twindex_sketch::params::{Shingling, Stemming, StopWords, Tokens};
/// use twindex_sketch::{Cutter, Units};
///
/// let mut shingling = Shingling::words(2, 0);
/// shingling.stop_words = StopWords::new(["the", "a"])?;
/// let mut units = Units::default();
/// Cutter::new(&shingling)?.cut("The dog chased a CAT.", &mut units);
/// assert!(units.iter().eq(["dog", "chased", "cat"].map(str::as_bytes)));
///
/// let shingling = Shingling::words(3, 0).with_tokens(Tokens::Characters)?;
/// Cutter::new(&shingling)?.cut("Lorem, ipsum!", &mut units);
/// assert_eq!(units.len(), "lorem ipsum".len());
/// assert_eq!(units.shingle(4, 3), b"m i");
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cutter {
    tokens: Tokens,
    normal_form: NormalForm,
    folding: Folding,
    stop_words: StopWords,
    stemmer: Option<Stemmer>,
}

/// Working memory of a [`Cutter`], kept in [`Units`].
#[derive(Clone, Debug, Default)]
struct CutScratch {
    /// The lower case of a word.
    lower: Vec<u8>,
    /// The text in its normal form, if that differs.
    #[cfg(feature = "languages")]
    normal: normal::CutScratch,
    /// The text without marks, if it has some.
    #[cfg(feature = "languages")]
    unmarked: normal::CutScratch,
    /// The text without invisible characters, if it has some.
    visible: String,
    /// A line with its long gaps shortened.
    #[cfg(feature = "languages")]
    line: String,
    stems: Stems,
}

impl Cutter {
    /// Creates a cutter for `shingling`, whose widths, hash and seed are not used here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field if this build cannot support it: its tables are for another version of Unicode,
    /// its stemmer gives other stems, or it was built without the required feature `languages`. Also for
    /// meaningless combinations, such as stop words with characters.
    pub fn new(shingling: &Shingling) -> Result<Self> {
        shingling.check()?;
        let tokens = shingling.tokens;
        check_version("tokens", tokens.name(), shingling.unicode, tokens.unicode())?;
        if let NormalForm::Nfkc(wanted) = shingling.normal_form {
            let here = match NormalForm::nfkc() {
                Some(NormalForm::Nfkc(here)) => Some(here),
                Some(NormalForm::None) | None => None,
            };
            check_version("normal-form", "nfkc", wanted, here)?;
        }
        if let Some(wanted) = shingling.folding.marks {
            check_version("fold", "marks", wanted, Folding::marks_here())?;
        }
        let stemmer = Stemmer::new(shingling.stemming)?;
        Ok(Self {
            tokens,
            normal_form: shingling.normal_form,
            folding: shingling.folding,
            stop_words: shingling.stop_words.clone(),
            stemmer,
        })
    }

    /// True if the units are exactly the tokens of [`tokens`], which are faster to compute.
    pub(super) fn is_plain(&self) -> bool {
        self.tokens == Tokens::Words
            && !self.normalises()
            && self.stop_words.is_empty()
            && self.stemmer.is_none()
    }

    /// Whether texts are converted to a normal form, or folded, before they are cut.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form != NormalForm::None || !self.folding.is_empty()
    }

    /// Returns the text in its normal form and folded, as it will be cut. `units` is working memory; its units are
    /// removed.
    ///
    /// ```
    /// use twindex_sketch::params::{Folding, Shingling};
    /// use twindex_sketch::{Cutter, Units};
    ///
    /// let mut shingling = Shingling::words(5, 0);
    /// shingling.folding.invisible = true;
    /// let cutter = Cutter::new(&shingling)?;
    /// assert_eq!(cutter.normalised("co\u{ad}op", &mut Units::default()), "coop");
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    pub fn normalised<'a>(&self, text: &'a str, units: &'a mut Units) -> &'a str {
        units.clear(None);
        let CutScratch {
            visible,
            #[cfg(feature = "languages")]
            normal,
            #[cfg(feature = "languages")]
            unmarked,
            ..
        } = &mut units.work;
        self.normalise(
            text,
            visible,
            #[cfg(feature = "languages")]
            (normal, unmarked),
        )
    }

    fn normalise<'a>(
        &self,
        text: &'a str,
        visible: &'a mut String,
        #[cfg(feature = "languages")] (normal, unmarked): (
            &'a mut normal::CutScratch,
            &'a mut normal::CutScratch,
        ),
    ) -> &'a str {
        let text = if self.folding.invisible { without_invisible(text, visible, None) } else { text };
        #[cfg(feature = "languages")]
        let text = match self.normal_form {
            NormalForm::None => text,
            NormalForm::Nfkc(_) => normal::nfkc(text, normal, None),
        };
        #[cfg(feature = "languages")]
        let text =
            if self.folding.marks.is_some() { normal::without_marks(text, unmarked, None) } else { text };
        text
    }

    /// Replaces `units` with the units of a text. [`Tokens::Features`] do not come from text and give no units.
    ///
    /// Linear time for any text. No memory is allocated once `units` has grown to the longest document, except by the
    /// stemmers, for words that are not in the cache of stems, and by NFKC, to sort runs of more than a few marks.
    pub fn cut(&self, text: &str, units: &mut Units) {
        units.clear(match self.tokens {
            Tokens::Words | Tokens::UnicodeWords | Tokens::WordsSymbols => Some(b' '),
            // Sentences contain spaces.
            Tokens::Sentences => Some(b'\n'),
            Tokens::WordCharacters | Tokens::Characters | Tokens::Features | Tokens::Raw => None,
        });
        let mut work = std::mem::take(&mut units.work);
        self.cut_with(text, units, &mut work);
        units.work = work;
    }

    fn cut_with(&self, text: &str, units: &mut Units, work: &mut CutScratch) {
        let CutScratch {
            lower,
            stems,
            visible,
            #[cfg(feature = "languages")]
            normal,
            #[cfg(feature = "languages")]
            unmarked,
            #[cfg(feature = "languages")]
            line,
        } = work;
        let text = self.normalise(
            text,
            visible,
            #[cfg(feature = "languages")]
            (normal, unmarked),
        );
        match self.tokens {
            Tokens::Words => tokens(text, lower, |word| {
                if let Some(word) = self.reduced(word, stems) {
                    units.push(word);
                }
            }),
            Tokens::Characters => characters(text, true, units),
            Tokens::WordCharacters => characters(text, false, units),
            Tokens::Raw => raw(text, units),
            Tokens::WordsSymbols => words_and_symbols(text, lower, |_, is_word, token| {
                if let Some(token) = if is_word { self.reduced(token, stems) } else { self.kept(token) } {
                    units.push(token);
                }
            }),
            #[cfg(feature = "languages")]
            Tokens::UnicodeWords => segments::words(text, lower, |_, word| {
                if let Some(word) = self.reduced(word, stems) {
                    units.push(word);
                }
            }),
            #[cfg(feature = "languages")]
            Tokens::Sentences => segments::sentences(text, line, |sentence| {
                let mut sentence_of = units.sentence();
                tokens(sentence, lower, |word| {
                    if let Some(word) = self.reduced(word, stems) {
                        sentence_of.push(word);
                    }
                });
                sentence_of.finish();
            }),
            // Features have no text, and without the feature `languages` no cutter exists for the others.
            _ => {}
        }
    }

    /// Returns the token, or `None` if it is a stop word: for tokens that are not stemmed.
    fn kept<'a>(&self, token: &'a [u8]) -> Option<&'a [u8]> {
        if self.stop_words.is_empty() {
            return Some(token);
        }
        (!self.stop_words.contains(text_of(token))).then_some(token)
    }

    /// Returns the stem of a lower-cased word; `None` for a stop word.
    fn reduced<'a>(&self, word: &'a [u8], stems: &'a mut Stems) -> Option<&'a [u8]> {
        if self.stop_words.is_empty() && self.stemmer.is_none() {
            return Some(word);
        }
        let text = text_of(word);
        if self.stop_words.contains(text) {
            return None;
        }
        Some(match self.stemmer {
            Some(stemmer) if text.len() <= STEM_MAX => stems.of(stemmer, text),
            Some(_) | None => word,
        })
    }
}

/// The advice in errors of a build without the tables and stemmers.
const WITHOUT_LANGUAGES: &str =
    "for which this build of twindex was not made: build it with the feature `languages`";

/// Refuses a version of Unicode other than this build's, which would cut the text into other units.
fn check_version(
    field: &str,
    name: &str,
    wanted: UnicodeVersion,
    here: Option<UnicodeVersion>,
) -> Result<()> {
    match here {
        Some(here) if here == wanted => Ok(()),
        Some(here) => Err(Error::Invalid(format!(
            "parameters: {field} is {name}/{wanted}, this build of twindex has {name}/{here} and would make other \
             shingles of the same text; use a build with Unicode {wanted}, or make the index again from the texts"
        ))),
        None => Err(Error::Invalid(format!("parameters: {field} is {name}/{wanted}, {WITHOUT_LANGUAGES}"))),
    }
}

/// The token as a string.
fn text_of(token: &[u8]) -> &str {
    std::str::from_utf8(token).expect("tokens are cut from text at characters")
}

/// Returns the text without soft hyphens and zero-width characters: `text` itself if it has none, otherwise the copy in
/// `visible`. Fills `pieces` if it is given.
fn without_invisible<'a>(text: &'a str, visible: &'a mut String, mut pieces: Option<&mut Pieces>) -> &'a str {
    let is_invisible = |c| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    if let Some(pieces) = &mut pieces {
        pieces.clear();
    }
    if !text.contains(is_invisible) {
        return text;
    }
    visible.clear();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_invisible).unwrap_or(rest.len());
        if let Some(pieces) = &mut pieces {
            pieces.push(visible.len(), text.len() - rest.len(), true);
        }
        visible.push_str(&rest[..end]);
        rest = &rest[end..];
        rest = rest.strip_prefix(is_invisible).unwrap_or(rest);
    }
    visible
}

/// Whether a character has the property `White_Space`. The list is fixed here: the standard library's may change.
fn is_white_space(c: char) -> bool {
    matches!(
        c,
        '\t'..='\r'
            | ' '
            | '\u{85}'
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
    )
}

/// Appends all characters; a run of white space becomes one space, or none at the ends of the text.
fn raw(text: &str, units: &mut Units) {
    let mut between = false;
    for c in text.chars() {
        if is_white_space(c) {
            between = !units.is_empty();
            continue;
        }
        if std::mem::take(&mut between) {
            units.push_character(' ');
        }
        units.push_character(c);
    }
}

/// Calls `each`, in order, for every word of [`tokens`], and for every other character that is not white space,
/// including the marks after it. Passes the byte range in the text, and whether it is a word.
fn words_and_symbols(text: &str, scratch: &mut Vec<u8>, mut each: impl FnMut(Range<usize>, bool, &[u8])) {
    let bytes = text.as_bytes();
    // The current token: its kind (`Other` for a symbol), and its characters in `scratch`.
    let (mut open, mut start) = (None, 0);
    scratch.clear();
    for (at, c) in text.char_indices() {
        let (kind, lower) = classify(c);
        let continues = match kind {
            Kind::Word => open == Some(Kind::Word),
            Kind::Mark => open.is_some(),
            Kind::Other | Kind::Single => false,
        };
        if !continues {
            if let Some(kind) = open.take() {
                each(start..at, kind != Kind::Other, scratch);
                scratch.clear();
            }
            if is_white_space(c) {
                continue;
            }
            start = at;
            // A mark that follows no token is a symbol, too.
            open = Some(if kind == Kind::Mark { Kind::Other } else { kind });
        }
        if c == GROWS {
            scratch.extend_from_slice(GROWN.as_bytes());
        } else if c == lower {
            scratch.extend_from_slice(&bytes[at..at + c.len_utf8()]);
        } else {
            scratch.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    if let Some(kind) = open {
        each(start..text.len(), kind != Kind::Other, scratch);
    }
}

/// Appends the code points of all words; with `spaces`, also one space between two words that other characters separate.
fn characters(text: &str, spaces: bool, units: &mut Units) {
    // A mark continues the word before it; at the start of the text there is none.
    let mut between = true;
    for c in text.chars() {
        let (kind, lower) = classify(c);
        match kind {
            Kind::Other => {
                between = true;
                continue;
            }
            Kind::Mark if between => continue,
            Kind::Word | Kind::Single | Kind::Mark => {}
        }
        if between && spaces && !units.is_empty() {
            units.push_character(' ');
        }
        between = false;
        if c == GROWS {
            GROWN.chars().for_each(|small| units.push_character(small));
        } else {
            units.push_character(lower);
        }
    }
}

#[cfg(test)]
mod tests;
