//! Tests the worked examples of the papers and lectures on which twindex is based, with every shingle hash. The results
//! must equal the numbers that the authors computed by hand.

use twindex::params::{ShingleHash, Shingling, Widths};
use twindex::sketch::{Buffers, Rabin, RabinKarp, Shingler, jaccard, tokens};

fn shingling(width: u8, hash: ShingleHash) -> Shingling {
    let mut shingling = Shingling::words(width, 0);
    shingling.hash = hash;
    shingling
}

fn occurrences(shingling: &Shingling, text: &str) -> Vec<u64> {
    let mut shingles = Vec::new();
    Shingler::new(shingling).unwrap().occurrences(text, &mut Buffers::default(), &mut shingles);
    shingles
}

fn distinct(shingling: &Shingling, text: &str) -> Vec<u64> {
    let mut shingles = Vec::new();
    Shingler::new(shingling).unwrap().distinct(text, &mut Buffers::default(), &mut shingles);
    shingles
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    tokens(text, &mut Vec::new(), |token| words.push(String::from_utf8(token.to_vec()).unwrap()));
    words
}

/// Broder, *Algorithms for duplicate documents*: the four-word shingles of "a rose is a rose is a rose is a rose".
#[test]
fn rose_example_has_five_shingles_three_of_them_distinct() {
    for &hash in ShingleHash::ALL {
        let shingling = shingling(4, hash);
        let rose = occurrences(&shingling, "a rose is a rose is a rose");
        let each: Vec<u64> =
            ["a rose is a", "rose is a rose", "is a rose is", "a rose is a", "rose is a rose"]
                .iter()
                .flat_map(|shingle| occurrences(&shingling, shingle))
                .collect();
        assert_eq!(rose, each, "{hash}");
        let mut set = each[..3].to_vec();
        set.sort_unstable();
        assert_eq!(distinct(&shingling, "a rose is a rose is a rose"), set, "{hash}");
    }
}

/// Broder, ibid.: A = 10011 is the polynomial x^4 + x + 1.
#[test]
fn bit_string_is_read_as_a_polynomial() {
    let rabin = Rabin::new(0);
    let (x, one) = (rabin.fingerprint(&[0b10]), rabin.fingerprint(&[1]));
    let x4 = rabin.fingerprint(&[0b10000]);
    assert_eq!(rabin.fingerprint(&[0b10011]), x4 ^ x ^ one);
}

/// Broder, ibid.: f(a.b) = f(f(a).b).
#[test]
fn fingerprint_of_a_concatenation_follows_from_the_prefix_fingerprint() {
    let rabin = Rabin::new(0);
    let (a, b) = (&b"a rose is a rose"[..], &b" is a rose"[..]);
    let f_of_a = rabin.fingerprint(a).to_be_bytes();
    assert_eq!(rabin.fingerprint(&[a, b].concat()), rabin.fingerprint(&[&f_of_a, b].concat()));
}

/// Vladimir, *Detection of near-duplicate documents*: rolls the hash from "lore" to "orem", with k = 4 and d = 32.
#[test]
fn rolling_hash_of_lore_updates_to_that_of_orem() {
    let (l, o, r, e, m) = (108, 111, 114, 101, 109);
    let x_0 = l * 32_u64.pow(3) + o * 32_u64.pow(2) + r * 32 + e;
    let x_1 = (x_0 - l * 32_u64.pow(3)) * 32 + m;
    assert_eq!((x_0, x_1), (3_656_357, 3_757_325));
    // Checks the hashes modulo a prime above both values, and modulo a prime below them.
    for q in [(1 << 61) - 1, 10_007] {
        let hash = RabinKarp::new(32, q).unwrap();
        assert_eq!(hash.hash(b"lore"), x_0 % q);
        assert_eq!(hash.roller(4).roll(x_0 % q, l, m), x_1 % q);
        assert_eq!(hash.hash(b"orem"), x_1 % q);
        let rolled: Vec<u64> = hash.windows(b"lorem ipsum", 4).collect();
        assert_eq!(rolled[..2], [x_0 % q, x_1 % q]);
        assert_eq!(rolled.len(), 8);
        // Windows over characters have the same hashes as windows over bytes.
        let characters: Vec<char> = "lorem ipsum".chars().collect();
        assert_eq!(hash.windows(&characters, 4).collect::<Vec<_>>(), rolled);
    }
}

/// Vladimir, ibid.: word tokens and pairs of adjacent words.
#[test]
fn lorem_ipsum_has_five_words_and_four_word_pairs() {
    let text = "lorem ipsum dolor sit amet";
    assert_eq!(words(text), ["lorem", "ipsum", "dolor", "sit", "amet"]);
    for &hash in ShingleHash::ALL {
        let pairs = ["lorem ipsum", "ipsum dolor", "dolor sit", "sit amet"];
        let each: Vec<u64> = pairs.iter().flat_map(|pair| occurrences(&shingling(2, hash), pair)).collect();
        assert_eq!(occurrences(&shingling(2, hash), text), each, "{hash}");
    }
}

/// The lecture on duplicate detection: three of eight words are shared.
#[test]
fn black_cat_and_black_dog_have_resemblance_three_eighths() {
    for &hash in ShingleHash::ALL {
        let a = distinct(&shingling(1, hash), "the black cat ate a mouse");
        let b = distinct(&shingling(1, hash), "the black dog chased the cat");
        assert_eq!(jaccard(&a, &b), (3, 8), "{hash}");
    }
}

/// The same lecture: both sentences have the same words, and share 3 of 5 bigrams. Words and bigrams together give 7 of
/// 9.
#[test]
fn dog_and_cat_sentences_share_three_of_five_bigrams() {
    for &hash in ShingleHash::ALL {
        let both = |shingling: &Shingling| {
            let a = distinct(shingling, "The dog chased the cat");
            let b = distinct(shingling, "The cat chased the dog");
            jaccard(&a, &b)
        };
        assert_eq!(both(&shingling(1, hash)), (4, 4), "{hash}");
        assert_eq!(both(&shingling(2, hash)), (3, 5), "{hash}");
        let mut union = shingling(1, hash);
        union.widths = Widths::union(&[1, 2]).unwrap();
        assert_eq!(both(&union), (7, 9), "{hash}");
    }
}
