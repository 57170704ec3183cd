//! Splits text into units: words, characters or sentences. A shingle is a sequence of consecutive units.
//!
//! ```text
//! text --normal form, folding--> text --tokens--> words, lower-cased --stop words--> fewer --stemming--> stems --> units
//! ```
//!
//! The kind of [`Tokens`] defines the units:
//!
//! - **Words** are the tokens of [`tokens`]. If no other parameter is set, [`tokens`] alone splits the text. It also
//!   defines *word character*.
//! - **Unicode words** are the segments between word boundaries of UAX #29 (rules WB1 to WB999, no tailoring) that contain a
//!   word character other than a mark. A segment includes the apostrophe in `don't`, the point in `3.14` and soft hyphens.
//!   Each character is lower-cased as by [`tokens`]. Each Han, Hiragana, Thai, Lao, Khmer and Myanmar letter, with the marks
//!   after it, is a word. Katakana letters form runs.
//! - **Word characters** are the code points of the words of [`tokens`], in order.
//! - **Characters** are the word characters, and one space wherever other characters separate two words in the text. There
//!   is no space at the ends of the text, nor between two words with nothing between them, such as two Han characters.
//! - **Sentences** are the segments between sentence boundaries of UAX #29 (SB1 to SB998) that still contain a word after
//!   stop words are removed. The unit consists of the words of the sentence, as found by [`tokens`], separated by spaces.
//!   See **Long gaps** for a limit.
//! - **Words and symbols** are the words of [`tokens`], and each character between them that is not white space, with the
//!   marks after it. So `C++` is `c`, `+`, `+`, and only white space is lost. Each symbol of a run is a separate unit,
//!   because `();` and `( ) ;` mean the same, and because a line of 60 hyphens should be similar to a line of 80.
//! - **Raw** characters are all characters of the text, with their case. A run of white space becomes one space. White space
//!   at the ends of the text is removed, so that a final line feed makes no difference.
//!
//! *White space* is every character with the Unicode property `White_Space`: 25 characters, the same since version 6.3.
//!
//! A *character* is a code point. A mark is a character, so `é` is one character if it is composed and two if it is
//! decomposed, unless NFKC composes it. Most languages slice strings by code points, and other programs use them for
//! character n-grams.
//!
//! A union of widths ([`Widths`](crate::params::Widths)) replaces phrase detection: with `1+2`, words and pairs of words are
//! features of a document, and no list of phrases has to be maintained.
//!
//! **Normal form.** NFKC is applied first, to the whole text, and lower-casing afterwards. For a few letters (H with a line
//! below, T with a diaeresis, W and Y with a ring, J with a caron), Unicode has a composed form of the small letter but none
//! of the capital. Such a capital remains two code points when it is lower-cased.
//!
//! **Folding** ([`Folding`]) removes characters. *Invisible* characters are removed before all other steps: U+00AD (soft
//! hyphen), U+200B to U+200D, U+2060 and U+FEFF. *Marks* are removed after the normal form: the text is decomposed (NFD),
//! characters of the general category Mn are removed, and the result is composed (NFC), so that canonically equivalent texts
//! stay equal. This removes accents, harakat and niqqud. It also removes the dots of `ё` and `й`, the hamza above alef, the
//! sound marks of kana (`が` becomes `か`), and vowel signs in Indic scripts and Thai, so that different words may become
//! equal. A stroke is not a mark: `ø`, `ł` and `đ` are kept.
//!
//! **Stop words** are compared with lower-cased words and removed, so that the words before and after a stop word become
//! neighbours. A document that consists of stop words has no units.
//!
//! **Stems** are computed by the Snowball stemmers of the crate `rust-stemmers` 1.2.0. A word is its own stem if the stemmer
//! would reduce it to the empty string or if it has more than [`STEM_MAX`] bytes. A newer version of the crate is accepted
//! for each language in which it gives the same stems for some hundred test words. For other languages, [`Cutter::new`]
//! fails.
//!
//! **Long gaps.** Rule SB8 looks ahead without limit from each character after a full stop. This takes quadratic time
//! if a line has thousands of spaces after a full stop. So the search for the ends of sentences reads only the first
//! [`GAP_MAX`] characters of a gap between two words of a line. Words are the tokens of [`tokens`]. The same limit
//! applies to the gap before the first word of a line and to the gap after its last word. A line ends with LF, CR,
//! U+0085, U+2028 or U+2029, where a sentence ends as well.

#[cfg(feature = "languages")]
mod breaks;
#[cfg(feature = "languages")]
mod normal;
mod pieces;
mod placed;
#[cfg(feature = "languages")]
mod segments;
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
pub use segments::{GAP_MAX, sentence_places};
use stems::{Stemmer, Stems, WITHOUT_LANGUAGES};
use units::CutScratch;
pub use units::Units;

/// Maximum length in bytes of words that are reduced to their stems, because stemmers take quadratic time for long words.
pub const STEM_MAX: usize = 255;

/// Splits texts into units by the rules of a [`Shingling`].
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

impl Cutter {
    /// Creates a cutter for `shingling`, whose widths, hash and seed are not used here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field that this build does not support: the build has tables of another version of
    /// Unicode, has a stemmer that gives other stems, or lacks the feature `languages`. The error is also returned for
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

    /// Returns true if the units are exactly the tokens of [`tokens`], which are faster to compute.
    pub(super) fn is_plain(&self) -> bool {
        self.tokens == Tokens::Words
            && !self.normalises()
            && self.stop_words.is_empty()
            && self.stemmer.is_none()
    }

    /// Returns true if texts are converted to a normal form, or folded, before they are split into units.
    #[must_use]
    pub fn normalises(&self) -> bool {
        self.normal_form != NormalForm::None || !self.folding.is_empty()
    }

    /// Returns the text in its normal form and folded, as it will be split into units. `units` is scratch memory; its units
    /// are removed.
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

    /// Replaces `units` with the units of a text. [`Tokens::Features`] are not computed from text and give no units.
    ///
    /// Takes linear time for any text. Once `units` has grown to the longest document, only two steps allocate memory:
    /// the stemmers, for words that are not in the cache of stems, and NFKC, to sort runs of more than a few marks.
    pub fn cut(&self, text: &str, units: &mut Units) {
        units.clear(match self.tokens {
            Tokens::Words | Tokens::UnicodeWords | Tokens::WordsSymbols => Some(b' '),
            // A sentence contains spaces, so its separator is a line feed.
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
            // `Features` are not computed from text. The other kinds need the feature `languages`; `new` refuses them
            // in a build that lacks it.
            _ => {}
        }
    }

    /// Returns `token`, or `None` if it is a stop word. Used for symbols, which are not stemmed.
    fn kept<'a>(&self, token: &'a [u8]) -> Option<&'a [u8]> {
        if self.stop_words.is_empty() {
            return Some(token);
        }
        (!self.stop_words.contains(text_of(token))).then_some(token)
    }

    /// Returns the stem of a lower-cased word, or `None` if the word is a stop word.
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

/// Returns an error if `wanted` is not the version of Unicode of this build, whose tables would give other units.
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

fn text_of(token: &[u8]) -> &str {
    std::str::from_utf8(token).expect("tokens are cut from text at characters")
}

/// Returns the text without soft hyphens and zero-width characters: `text` itself if it has none, otherwise the copy in
/// `visible`. If `pieces` is given, records for each part of the copy from which part of `text` it came.
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

/// Returns true if a character has the property `White_Space`. Does not use [`char::is_whitespace`], because the
/// Unicode version of the standard library may change.
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

/// Appends all characters of the text. A run of white space becomes one space; at the ends of the text it is removed.
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

/// Calls `each` for every word of [`tokens`] and every symbol (any other character except white space, with its marks),
/// in order. Passes the byte range, whether the token is a word, and its lower-cased bytes.
fn words_and_symbols(text: &str, scratch: &mut Vec<u8>, mut each: impl FnMut(Range<usize>, bool, &[u8])) {
    let bytes = text.as_bytes();
    // `open` is the kind of the current token (`Other` for a symbol); its characters are in `scratch`.
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
            // A mark that follows no token is a symbol.
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

/// Appends the code points of all words. If `spaces`, also appends one space wherever other characters separate two words.
fn characters(text: &str, spaces: bool, units: &mut Units) {
    // Initially true, so that marks at the start of the text, which continue no word, are skipped.
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
