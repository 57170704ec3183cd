//! Splits text into units and reports the byte range of each unit in the text.

use std::ops::Range;

use super::super::token::placed_tokens;
use super::stems::Stems;
use super::{Cutter, Pieces, without_invisible, words_and_symbols};
use crate::error::{Error, Result};
#[cfg(feature = "languages")]
use crate::params::NormalForm;
use crate::params::Tokens;

#[cfg(feature = "languages")]
use super::{normal, segments};

/// Scratch memory of [`Cutter::for_each_placed`], reused for each text.
#[derive(Clone, Debug, Default)]
pub struct PlacedUnits {
    lower: Vec<u8>,
    stems: Stems,
    visible: String,
    #[cfg(feature = "languages")]
    normal: normal::CutScratch,
    #[cfg(feature = "languages")]
    unmarked: normal::CutScratch,
    /// The pieces that the three steps record: removing invisible characters, the normal form, and removing marks.
    pieces: [Pieces; 3],
}

/// A step that rewrote a text: the length in bytes of the text before the step, and the pieces of the new text. `None`
/// if the step changed nothing.
type Step<'p> = Option<(usize, &'p Pieces)>;

impl Cutter {
    /// Checks that [`for_each_placed`](Self::for_each_placed) supports the kind of tokens.
    ///
    /// # Errors
    /// [`Error::Invalid`] for tokens other than words, Unicode words, and words and symbols.
    pub fn check_placed(&self) -> Result<()> {
        match self.tokens {
            Tokens::Words | Tokens::UnicodeWords | Tokens::WordsSymbols => Ok(()),
            other => Err(Error::Invalid(format!(
                "tokens: places in the text are known of words, unicode-words and words-symbols, not of {other}"
            ))),
        }
    }

    /// Calls `each` for each unit of [`cut`](Self::cut), in order, with the byte range of `text` that the unit came from.
    ///
    /// Ranges begin and end at character boundaries and are ascending. They do not overlap, with one exception: several
    /// units have the same range if the normal form makes them from one character (`½`), or from a conjoining Hangul
    /// jamo and the text before it. A removed mark belongs to the range of the character before it. Takes linear time,
    /// plus, for each unit, time logarithmic in the number of characters that the normal form changes. There are no
    /// units for kinds of tokens that [`check_placed`](Self::check_placed) refuses.
    ///
    /// ```
    /// use twindex_sketch::cut::PlacedUnits;
    /// use twindex_sketch::params::Shingling;
    /// use twindex_sketch::Cutter;
    ///
    /// let mut shingling = Shingling::words(5, 0);
    /// shingling.folding.invisible = true;
    /// let (text, mut found) = ("Two co\u{ad}ops.", Vec::new());
    /// Cutter::new(&shingling)?.for_each_placed(text, &mut PlacedUnits::default(), |place, unit| {
    ///     found.push((&text[place], unit.to_vec()));
    /// });
    /// assert_eq!(found, [("Two", b"two".to_vec()), ("co\u{ad}ops", b"coops".to_vec())]);
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    pub fn for_each_placed(
        &self,
        text: &str,
        work: &mut PlacedUnits,
        mut each: impl FnMut(Range<usize>, &[u8]),
    ) {
        let PlacedUnits { lower, stems, visible, pieces, .. } = work;
        let [visible_pieces, normal_pieces, unmarked_pieces] = pieces;
        if !self.normalises() {
            return self.place_units(text, lower, stems, each);
        }
        let shown = if self.folding.invisible {
            without_invisible(text, visible, Some(visible_pieces))
        } else {
            text
        };
        let first = step(text, shown, visible_pieces);
        #[cfg(feature = "languages")]
        let (shown, second, third) = {
            let normal = match self.normal_form {
                NormalForm::None => shown,
                NormalForm::Nfkc(_) => normal::nfkc(shown, &mut work.normal, Some(normal_pieces)),
            };
            let second = step(shown, normal, normal_pieces);
            let unmarked = if self.folding.marks.is_some() {
                normal::without_marks(normal, &mut work.unmarked, Some(unmarked_pieces))
            } else {
                normal
            };
            (unmarked, second, step(normal, unmarked, unmarked_pieces))
        };
        #[cfg(not(feature = "languages"))]
        let (second, third): (Step<'_>, Step<'_>) = {
            let _ = (normal_pieces, unmarked_pieces);
            (None, None)
        };
        self.place_units(shown, lower, stems, |place, unit| {
            let back = |place: Range<usize>, step: Step<'_>| match step {
                Some((length, pieces)) => pieces.old(place, length),
                None => place,
            };
            each(back(back(back(place, third), second), first), unit);
        });
    }

    /// Calls `each` for the units of a text that is already normalised.
    fn place_units(
        &self,
        text: &str,
        lower: &mut Vec<u8>,
        stems: &mut Stems,
        mut each: impl FnMut(Range<usize>, &[u8]),
    ) {
        match self.tokens {
            Tokens::Words => placed_tokens(text, lower, |place, word| {
                if let Some(word) = self.reduced(word, stems) {
                    each(place, word);
                }
            }),
            Tokens::WordsSymbols => words_and_symbols(text, lower, |place, is_word, token| {
                if let Some(token) = if is_word { self.reduced(token, stems) } else { self.kept(token) } {
                    each(place, token);
                }
            }),
            #[cfg(feature = "languages")]
            Tokens::UnicodeWords => segments::words(text, lower, |place, word| {
                if let Some(word) = self.reduced(word, stems) {
                    each(place, word);
                }
            }),
            _ => {}
        }
    }
}

/// Returns the step that rewrote `old` to `new`, or `None` if they are the same text.
fn step<'p>(old: &str, new: &str, pieces: &'p Pieces) -> Step<'p> {
    (!std::ptr::eq(old, new)).then_some((old.len(), pieces))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cut::Units;
    use crate::params::Shingling;

    fn placed<'t>(shingling: &Shingling, text: &'t str) -> Vec<(&'t str, String)> {
        let mut found = Vec::new();
        Cutter::new(shingling).unwrap().for_each_placed(text, &mut PlacedUnits::default(), |place, unit| {
            found.push((&text[place], String::from_utf8(unit.to_vec()).unwrap()));
        });
        found
    }

    fn invisible() -> Shingling {
        let mut shingling = Shingling::words(5, 0);
        shingling.folding.invisible = true;
        shingling
    }

    #[test]
    fn words_have_byte_ranges_in_the_original_text() {
        let words = Shingling::words(5, 0);
        let found = placed(&words, "  Ein Ärger,İx 東京…\u{301}e\u{301}t");
        let places: Vec<_> = found.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, ["Ein", "Ärger", "İx", "東", "京", "e\u{301}t"]);
        assert_eq!(found[2].1, "i\u{307}x");
        let symbols = words.with_tokens(Tokens::WordsSymbols).unwrap();
        let places: Vec<_> = placed(&symbols, "C++ = é!").into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["C", "+", "+", "=", "é", "!"]);
    }

    #[test]
    fn byte_ranges_of_words_include_invisible_characters() {
        let found = placed(&invisible(), "\u{feff}co\u{ad}op\u{200b}\u{200b}s a\u{2060} b");
        let places: Vec<_> = found.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, ["co\u{ad}op\u{200b}\u{200b}s", "a", "b"]);
    }

    #[cfg(feature = "languages")]
    #[test]
    fn byte_ranges_of_normalised_words_cover_the_original_characters() {
        use crate::params::Folding;
        let mut shingling = invisible();
        shingling.normal_form = NormalForm::nfkc().unwrap();
        let found =
            placed(&shingling, "Ｆｕｌｌ　ｗｉｄｔｈ: ﬁne ½, cafe\u{301} \u{1112}\u{1161}\u{11ab}글 ㍿x");
        let places: Vec<_> = found.iter().map(|(place, _)| *place).collect();
        let units: Vec<_> = found.iter().map(|(_, unit)| unit.as_str()).collect();
        assert_eq!(units[..5], ["full", "width", "fine", "1", "2"]);
        assert_eq!(places[..5], ["Ｆｕｌｌ", "ｗｉｄｔｈ", "ﬁne", "½", "½"]);
        assert_eq!((places[5], units[5]), ("cafe\u{301}", "café"));
        assert_eq!((places[6], units[6]), ("\u{1112}\u{1161}\u{11ab}글", "한글"));
        assert_eq!((places[7], units[7], places[11]), ("㍿", "株", "x"));
        shingling.folding.marks = Folding::marks_here();
        let found = placed(&shingling, "Vie\u{302}\u{323}t Nam, й ё\u{301}ж");
        let units: Vec<_> = found.iter().map(|(_, unit)| unit.as_str()).collect();
        let places: Vec<_> = found.iter().map(|(place, _)| *place).collect();
        assert_eq!(units, ["viet", "nam", "и", "еж"]);
        assert_eq!(places, ["Vie\u{302}\u{323}t", "Nam", "й", "ё\u{301}ж"]);
    }

    proptest! {
        #[test]
        fn placed_units_equal_the_units_and_have_ascending_ranges(
            text in "([a-zA-Z]|İ|é|e\u{301}|ｗ|　|ﬁ|½|\u{ad}|\u{200b}|한|\u{1112}\u{1161}|\u{1112}\u{1161}\u{11ab}|京|か\u{3099}|ｶﾞ|\u{301}|\u{323}|ё|ำ|\u{fdfa}|[ .,\n]|😀){0,40}",
            (nfkc, marks, invisible) in any::<(bool, bool, bool)>(),
            kind in 0..3_usize,
        ) {
            let mut shingling = Shingling::words(5, 0);
            let kinds: &[Tokens] = if cfg!(feature = "languages") {
                &[Tokens::Words, Tokens::WordsSymbols, Tokens::UnicodeWords]
            } else {
                &[Tokens::Words, Tokens::WordsSymbols, Tokens::Words]
            };
            shingling = shingling.with_tokens(kinds[kind]).unwrap();
            shingling.folding.invisible = invisible;
            #[cfg(feature = "languages")]
            {
                if nfkc {
                    shingling.normal_form = NormalForm::nfkc().unwrap();
                }
                shingling.folding.marks = crate::params::Folding::marks_here().filter(|_| marks);
            }
            let _ = (nfkc, marks);
            let cutter = Cutter::new(&shingling).unwrap();
            let mut units = Units::default();
            cutter.cut(&text, &mut units);
            let (mut found, mut places): (Vec<Vec<u8>>, Vec<Range<usize>>) = Default::default();
            cutter.for_each_placed(&text, &mut PlacedUnits::default(), |place, unit| {
                found.push(unit.to_vec());
                places.push(place);
            });
            prop_assert!(units.iter().eq(found.iter().map(Vec::as_slice)));
            for pair in places.windows(2) {
                prop_assert!(pair[0].start <= pair[1].start && pair[0].end <= pair[1].end);
                prop_assert!(pair[0].end <= pair[1].start || pair[0] == pair[1] || nfkc, "{places:?}");
            }
            for (place, unit) in places.iter().zip(&found) {
                // Splitting only the text of this range gives the unit, and possibly other units of the same character.
                let mut alone = Units::default();
                cutter.cut(&text[place.clone()], &mut alone);
                let is_there = alone.iter().any(|other| other == unit.as_slice());
                prop_assert!(is_there || kind == 2 || nfkc, "{:?} {:?}", &text[place.clone()], unit);
            }
        }
    }
}
