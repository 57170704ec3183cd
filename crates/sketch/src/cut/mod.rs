//! Text to units: the words, characters or sentences that shingles are runs of.
//!
//! ```text
//! text --normal form, folding--> text --tokens--> words, lower-cased --stop words--> fewer --stemming--> stems --> units
//! ```
//!
//! What a unit is, [`Tokens`] says:
//!
//! - **Words** are the tokens of [`tokens`], which has its definition and does all that is needed
//!   where no other choice is made. *Word character* means here what it means there.
//! - **Unicode words** are the segments between word boundaries of UAX #29 (no tailoring, rules WB1 to WB999) that
//!   hold a word character other than a mark. A segment is kept whole, with the apostrophe in `don't`, the point in
//!   `3.14` and a soft hyphen; each of its characters is lower-cased as [`tokens`] does. Han, Hiragana, Thai, Lao,
//!   Khmer and Myanmar letters are words by themselves with the marks that follow, Katakana forms runs.
//! - **Word characters** are the code points of the words of [`tokens`], one after the other.
//! - **Characters** are the same, and one space wherever the text has anything between two words; none at the ends,
//!   and none between neighbours such as two Han characters, which are two words with nothing between them.
//! - **Sentences** are the stretches between sentence boundaries of UAX #29 (SB1 to SB998) that have a word left; such
//!   a unit is its words, as [`tokens`] finds them, with a space between two. See below for a limit.
//! - **Words and symbols** are the words of [`tokens`], and each character between them that is no white space, with the
//!   marks that follow it. So `C++` is `c`, `+`, `+`, and no character of a text is lost but white space. A run of
//!   symbols is cut, because `();` and `( ) ;` mean the same, and because rules of 60 and of 80 hyphens should.
//! - **Raw** characters are those of the whole text, in their case. A run of white space is one space; at the ends of the
//!   text it is nothing, so that a file with a line feed at its end is one without.
//!
//! *White space* is what has the property `White_Space` of Unicode: 25 characters, the same since version 6.3.
//!
//! A *character* is a code point. Marks are characters, so that `é` is one character where it is composed and two
//! where it is not, unless NFKC makes it one; this is what slicing a string means in most languages, and what the
//! character grams of other programs are.
//!
//! The union of widths ([`Widths`](crate::params::Widths)) covers what is called phrase detection: with `1+2`, words
//! and pairs of words are features of a document, without a list of phrases to be made and kept.
//!
//! **Normal form.** NFKC comes first, over the whole text, and case is lost afterwards. A handful of capitals have no
//! composed form where their small letters have one (H with a line below, T with a diaeresis, W and Y with a ring, J
//! with a caron): they stay in two code points when lower-cased.
//!
//! **Folding** ([`Folding`]) drops characters. *Invisible* ones go before all else, as if they
//! were not in the text: U+00AD (soft hyphen), U+200B to U+200D, U+2060 and U+FEFF. *Marks* go after the normal
//! form: the text is decomposed (NFD), characters of the general category Mn are left out, and the rest is composed (NFC),
//! so that canonically equivalent texts stay equal. Accents go so, harakat and niqqud, and also the dots of `ё` and `й`,
//! the hamza above alef, the sound marks of kana (`が` is `か`), and signs of vowels in Indic scripts and Thai, where words
//! then run together that differ. A stroke is no mark: `ø`, `ł` and `đ` stay.
//!
//! **Stop words** are compared with lower-cased words and leave no trace: the words around one are neighbours. A
//! document of stop words alone has no units.
//!
//! **Stems** are those of the Snowball stemmers of the crate `rust-stemmers` 1.2.0. A word that a stemmer would reduce
//! to nothing, and a word of more than [`STEM_MAX`] bytes, are their own stems. A newer version of the crate is accepted
//! for each language whose stemmer still makes the same stems of some hundred chosen words; for another language
//! [`Cutter::new`] fails.
//!
//! **Long gaps.** Rule SB8 looks ahead without bound from each character after a full stop, which takes quadratic time
//! where a line has thousands of spaces after one. So, of a gap between two words of a line (by [`tokens`]; before the
//! first and after the last too) only the first [`GAP_MAX`] characters count for where sentences end. A line ends with
//! LF, CR, U+0085, U+2028 or U+2029, as sentences do.

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

/// The longest word that is reduced to its stem, in bytes. Stemmers take quadratic time for long words.
pub const STEM_MAX: usize = 255;

/// The characters of a gap between two words that are checked for the end of a sentence.
pub const GAP_MAX: usize = 32;

/// Cuts texts into units as a [`Shingling`] says.
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
    /// A word in lower case.
    lower: Vec<u8>,
    /// The text in its normal form, where it is not so already.
    #[cfg(feature = "languages")]
    normal: normal::CutScratch,
    /// The text without marks, where it has some.
    #[cfg(feature = "languages")]
    unmarked: normal::CutScratch,
    /// The text without invisible characters, where it has some.
    visible: String,
    /// A line with its long gaps cut short.
    #[cfg(feature = "languages")]
    line: String,
    stems: Stems,
}

impl Cutter {
    /// A cutter for `shingling`, whose widths, hash and seed do not matter here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field if this build has tables of another version of Unicode than the parameters
    /// ask for, a stemmer that makes other stems, or was made without the feature `languages` that the field needs; and
    /// for combinations that mean nothing, such as stop words with characters.
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

    /// True if the units are the tokens of [`tokens`], which are cheaper to come by.
    pub(super) fn is_plain(&self) -> bool {
        self.tokens == Tokens::Words
            && !self.normalises()
            && self.stop_words.is_empty()
            && self.stemmer.is_none()
    }

    /// Whether texts are brought into a normal form, or folded, before they are cut.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form != NormalForm::None || !self.folding.is_empty()
    }

    /// The text as it is cut: in its normal form, and folded. `units` is working memory, and loses what it holds.
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

    /// Replaces `units` by those of a text; for [`Tokens::Features`], which come from no text, by none.
    ///
    /// Linear time, whatever the text holds. Once `units` has grown to the longest document no memory is allocated,
    /// but for the stems of words that the table does not have, which the stemmers allocate, and for runs of more than a
    /// few marks that NFKC sorts.
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
            // Of no text; and without the feature no cutter is made for the others.
            _ => {}
        }
    }

    /// The token, or none if it is a stop word: for tokens without stems.
    fn kept<'a>(&self, token: &'a [u8]) -> Option<&'a [u8]> {
        if self.stop_words.is_empty() {
            return Some(token);
        }
        (!self.stop_words.contains(text_of(token))).then_some(token)
    }

    /// The stem of a lower-cased word; none for a stop word.
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

/// Advice for a build without the tables and stemmers.
const WITHOUT_LANGUAGES: &str =
    "for which this build of twindex was not made: build it with the feature `languages`";

/// Refuses a version of Unicode other than this build's: the text would be cut, but not into the same units.
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

/// The characters of a token.
fn text_of(token: &[u8]) -> &str {
    std::str::from_utf8(token).expect("tokens are cut from text at characters")
}

/// The text without soft hyphens and characters of no width: itself where it has none, otherwise written to `visible`.
/// Its pieces, if they are wanted.
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

/// The characters of the property `White_Space`, in a list of our own: the standard library's may grow with the compiler.
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

/// All characters, a run of white space as one space and none at the ends.
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

/// Calls `each` with every word of [`tokens`], and with every other character that is no white space, and the marks
/// after it, in order; with its place in the text, and whether it is a word.
fn words_and_symbols(text: &str, scratch: &mut Vec<u8>, mut each: impl FnMut(Range<usize>, bool, &[u8])) {
    let bytes = text.as_bytes();
    // The token under way: its kind (that of a symbol is `Other`), and its characters in `scratch`.
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
            // A mark after nothing is a symbol, too.
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

/// The code points of all words; with `spaces`, and one space where there is something between two.
fn characters(text: &str, spaces: bool, units: &mut Units) {
    // A mark continues the word before it, and there is none yet.
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
