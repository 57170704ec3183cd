//! Tests the examples of tokenization in `../shared/seeds`, which come from well-known slides and lecture notes.

use twindex::params::{Shingling, Tokens, Widths};
use twindex::sketch::{Buffers, Cutter, Shingler, Units, jaccard};

fn shingles(shingling: &Shingling, width: usize, text: &str) -> Vec<String> {
    let mut units = Units::default();
    Cutter::new(shingling).unwrap().cut(text, &mut units);
    let shingle = |first| String::from_utf8(units.shingle(first, width).to_vec()).unwrap();
    (0..=units.len() - width).map(shingle).collect()
}

/// Returns the number of common shingles of two texts, and the number of shingles in their union.
fn resemblance(widths: &str, a: &str, b: &str) -> (usize, usize) {
    let mut shingling = Shingling::words(1, 0);
    shingling.widths = widths.parse::<Widths>().unwrap();
    let shingler = Shingler::new(&shingling).unwrap();
    let (mut buffers, mut of_a, mut of_b) = (Buffers::default(), Vec::new(), Vec::new());
    shingler.distinct(a, &mut buffers, &mut of_a);
    shingler.distinct(b, &mut buffers, &mut of_b);
    jaccard(&of_a, &of_b)
}

#[test]
fn lorem_ipsum_has_the_word_tokens_given_in_the_slide() {
    let text = "lorem ipsum dolor sit amet";
    let words = Shingling::words(1, 0);
    assert_eq!(shingles(&words, 1, text), ["lorem", "ipsum", "dolor", "sit", "amet"]);
    assert_eq!(shingles(&words, 2, text), ["lorem ipsum", "ipsum dolor", "dolor sit", "sit amet"]);
}

#[test]
fn lorem_ipsum_has_the_character_trigrams_given_in_the_slide() {
    let characters = Shingling::words(3, 0).with_tokens(Tokens::Characters).unwrap();
    let found = shingles(&characters, 3, "lorem ipsum dolor sit amet");
    assert_eq!(found[..5], ["lor", "ore", "rem", "em ", "m i"]);
    assert_eq!(found.len(), "lorem ipsum dolor sit amet".len() - 2);
    let characters = characters.with_tokens(Tokens::WordCharacters).unwrap();
    let found = shingles(&characters, 3, "lorem ipsum dolor");
    assert_eq!(found[..6], ["lor", "ore", "rem", "emi", "mip", "ips"]);
}

#[test]
fn black_cat_and_black_dog_share_three_of_eight_words() {
    let (cat, dog) = ("the black cat ate a mouse", "the black dog chased the cat");
    assert_eq!(resemblance("1", cat, dog), (3, 8));
}

#[test]
fn bigrams_distinguish_texts_with_the_same_words() {
    let (dog, cat) = ("The dog chased the cat", "The cat chased the dog");
    assert_eq!(resemblance("1", dog, cat), (4, 4));
    assert_eq!(resemblance("2", dog, cat), (3, 5));
    // "Including all bigrams" besides the words, as the lecture says: 4 of 4 words and 3 of 5 bigrams are shared.
    assert_eq!(resemblance("1+2", dog, cat), (7, 9));
}
