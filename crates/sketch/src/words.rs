//! The fast path for plain words: computes the hashes of the tokens of a text in one pass.
//!
//! [`token`](super::token) defines tokens; this module finds the same tokens 64 bytes at a time. From each chunk of
//! ASCII, it computes the bytes in lower case and a bit mask of the bytes that belong to words. Non-ASCII characters
//! are classified one by one, and their bytes and bits are appended to the same buffers. A token begins or ends where
//! two neighbouring bits differ, and around a letter that is a token by itself. Tokens are hashed from the lower-cased
//! copy, one block of the text at a time, so that the copy stays in the first-level cache.

use twindex_kernel::{Kernel, Level, Simd};

use super::hash::Fast;
use super::token::{GROWN, GROWS, Kind, classify};

/// Number of bytes of lower-cased text that are collected before their tokens are hashed.
const BLOCK: usize = 1 << 13;

/// Number of bytes of `lower` after the limit of a block. They are needed because a chunk of 64 bytes may be written
/// across the limit, and tokens are loaded in pieces of 16 bytes.
const SLACK: usize = 64 + 64;

/// Scratch memory: the lower-cased text of the block, preceded by the part of a token that began before the block, and the
/// starts and ends of the tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    lower: Vec<u8>,
    starts: Vec<u32>,
    ends: Vec<u32>,
}

/// [`tokens`](super::token::tokens) splits texts of at least this number of bytes, because their token offsets might
/// not fit in 32 bits: lower-casing can lengthen a text by half.
const TEXT_MAX: usize = 1 << 31;

/// Maximum number of bytes of [`Words::lower`] that are kept for the next text. More are needed only for longer tokens.
const KEPT_MAX: usize = 16 * BLOCK;

impl Words {
    /// Appends to `hashes` the hash of each token of `text`, in order.
    pub(super) fn hash(&mut self, level: Level, text: &str, fast: Fast, hashes: &mut Vec<u64>) {
        self.hash_below(TEXT_MAX, level, text, fast, hashes);
    }

    /// Like [`hash`](Self::hash), with `max` instead of [`TEXT_MAX`].
    fn hash_below(&mut self, max: usize, level: Level, text: &str, fast: Fast, hashes: &mut Vec<u64>) {
        if text.len() >= max {
            super::token::tokens(text, &mut Vec::new(), |token| hashes.push(fast.token(token)));
            return;
        }
        if self.lower.len() < BLOCK + SLACK {
            self.lower.resize(BLOCK + SLACK, 0);
            // A block has at most one token start for every second byte, and positions are written 64 at a time.
            self.starts.resize(BLOCK + SLACK, 0);
            self.ends.resize(BLOCK + SLACK, 0);
        }
        level.dispatch(HashTokens { words: self, text, fast, hashes });
        if self.lower.len() > KEPT_MAX {
            self.lower.truncate(BLOCK + SLACK);
            self.lower.shrink_to_fit();
        }
    }
}

struct HashTokens<'a> {
    words: &'a mut Words,
    text: &'a str,
    fast: Fast,
    hashes: &'a mut Vec<u64>,
}

impl Kernel for HashTokens<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { words, text, fast, hashes } = self;
        let mut cut = CutState { limit: BLOCK, ..CutState::default() };
        let bytes = text.as_bytes();
        let mut last = [0; 64];
        let mut at = 0;
        while at < bytes.len() {
            if cut.filled >= cut.limit {
                cut.hash(words, fast, hashes);
                cut.drop_front(words);
            }
            let out = words.lower[cut.filled..].first_chunk_mut().expect("slack after the bytes in use");
            let rest = &bytes[at..];
            let (chunk, length) = if let Some(chunk) = rest.first_chunk() {
                (chunk, 64)
            } else {
                last[..rest.len()].copy_from_slice(rest);
                (&last, rest.len())
            };
            let classes = simd.classes(chunk, out);
            let ascii = (classes.beyond.trailing_zeros() as usize).min(length);
            cut.ascii(simd, words, classes.word, ascii);
            at += ascii;
            if ascii < length {
                at += cut.beyond_ascii(simd, words, &text[at..]);
            }
        }
        cut.push(simd, words, 0, 0, 1);
        cut.mask_places(simd, words);
        cut.hash(words, fast, hashes);
    }
}

/// The kind of token to which the last character belonged.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LastCharacter {
    #[default]
    Nothing,
    Word,
    Single,
}

/// The state of tokenisation within a block.
#[derive(Default)]
struct CutState {
    /// Number of used bytes of `lower`.
    filled: usize,
    /// When `filled` reaches this number, the tokens are hashed. `lower` has [`SLACK`] more bytes.
    limit: usize,
    /// Number of bytes of `lower` whose token starts and ends are already in [`Words`]. Bit i of `word` and `begins`
    /// describes byte `placed + i` of `lower`.
    placed: usize,
    /// Bits of `lower`: 1 for each byte that belongs to a token.
    word: u64,
    /// Bits of `lower`: 1 for each byte that begins a token directly after the byte of another token.
    begins: u64,
    /// Number of bits in `word` and in `begins`, at most 63 between calls.
    waiting: usize,
    /// The bit of the last byte before `placed`: 1 if the byte belongs to a token.
    carry: u64,
    starts: usize,
    ends: usize,
    open: LastCharacter,
}

impl CutState {
    /// Adds the first `count` bytes of a chunk that was already written to `lower` in lower case.
    #[inline(always)]
    fn ascii<S: Simd>(&mut self, simd: S, words: &mut Words, word: u64, count: usize) {
        if count == 0 {
            return;
        }
        let word = if count < 64 { word & ((1 << count) - 1) } else { word };
        let begins = u64::from(self.open == LastCharacter::Single);
        self.open = if word >> (count - 1) == 1 { LastCharacter::Word } else { LastCharacter::Nothing };
        self.filled += count;
        self.push(simd, words, word, begins, count);
    }

    /// Adds the non-ASCII characters at the start of `text`, until the block is full. Returns their length in bytes.
    #[inline(always)]
    fn beyond_ascii<S: Simd>(&mut self, simd: S, words: &mut Words, text: &str) -> usize {
        let mut taken = 0;
        for c in text.chars() {
            if c.is_ascii() || self.filled >= self.limit {
                break;
            }
            taken += c.len_utf8();
            let (kind, lower) = classify(c);
            let (open, begins) = match kind {
                Kind::Word => (LastCharacter::Word, self.open == LastCharacter::Single),
                Kind::Single => (LastCharacter::Single, true),
                Kind::Mark => (self.open, false),
                Kind::Other => (LastCharacter::Nothing, false),
            };
            self.open = open;
            if open == LastCharacter::Nothing {
                // A byte that is not part of a word separates tokens; the value of the byte does not matter.
                self.filled += 1;
                self.push(simd, words, 0, 0, 1);
                continue;
            }
            let out: &mut [u8; 4] =
                words.lower[self.filled..].first_chunk_mut().expect("slack after the limit");
            let length = if c == GROWS {
                out[..GROWN.len()].copy_from_slice(GROWN.as_bytes());
                GROWN.len()
            } else {
                lower.encode_utf8(out).len()
            };
            self.filled += length;
            self.push(simd, words, (1 << length) - 1, u64::from(begins), length);
        }
        taken
    }

    /// Adds the bits of the next `count` bytes, 1 to 64.
    #[inline(always)]
    fn push<S: Simd>(&mut self, simd: S, words: &mut Words, word: u64, begins: u64, count: usize) {
        self.word |= word << self.waiting;
        self.begins |= begins << self.waiting;
        let waiting = self.waiting + count;
        if waiting >= 64 {
            self.mask_places(simd, words);
            // Keeps the bits that did not fit in 64 bits. If all fitted, the shift is by 64, and no bit is kept.
            let fitted = 64 - self.waiting as u32;
            self.word = word.checked_shr(fitted).unwrap_or(0);
            self.begins = begins.checked_shr(fitted).unwrap_or(0);
            self.placed += 64;
            self.waiting = waiting - 64;
        } else {
            self.waiting = waiting;
        }
    }

    /// Converts the waiting bits to the starts and ends of tokens.
    #[inline(always)]
    fn mask_places<S: Simd>(&mut self, simd: S, words: &mut Words) {
        let before = self.word << 1 | self.carry;
        let starts = self.word & (!before | self.begins);
        let ends = before & (!self.word | self.begins);
        self.carry = self.word >> 63;
        let base = self.placed as u32; // less than 1.5 * TEXT_MAX
        let reserve = |places: &mut Vec<u32>, at: usize, mask| {
            simd.places(mask, base, places[at..].first_chunk_mut().expect("slack after the places in use"))
        };
        self.starts += reserve(&mut words.starts, self.starts, starts);
        self.ends += reserve(&mut words.ends, self.ends, ends);
    }

    /// Hashes the tokens whose ends are known.
    #[inline(always)]
    fn hash(&mut self, words: &Words, fast: Fast, hashes: &mut Vec<u64>) {
        let tokens = words.starts[..self.ends].iter().zip(&words.ends[..self.ends]);
        hashes.extend(
            tokens.map(|(&start, &end)| fast.token_within(&words.lower, start as usize, end as usize)),
        );
    }

    /// Frees space in `lower`: removes the hashed tokens, and moves an incomplete token to the front.
    #[inline(never)]
    fn drop_front(&mut self, words: &mut Words) {
        let is_open = self.starts > self.ends;
        let kept = if is_open { words.starts[self.ends] as usize } else { self.placed };
        if kept > 0 {
            words.lower.copy_within(kept..self.filled, 0);
        }
        self.filled -= kept;
        self.placed -= kept;
        self.starts = usize::from(is_open);
        self.ends = 0;
        words.starts[0] = 0;
        // The next block begins after the incomplete token, however long that token is. So `starts` and `ends`, whose
        // size is that of one block, never overflow.
        self.limit = self.filled + BLOCK;
        if words.lower.len() < self.limit + SLACK {
            words.lower.resize(self.limit + SLACK, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::token::tokens;
    use super::*;

    /// Computes the hashes one token at a time, with the reference tokenizer.
    fn one_by_one(text: &str) -> Vec<u64> {
        let mut hashes = Vec::new();
        tokens(text, &mut Vec::new(), |token| hashes.push(Fast::new(3).token(token)));
        hashes
    }

    fn check(words: &mut Words, text: &str) {
        let expected = one_by_one(text);
        for level in Level::tested() {
            let mut hashes = Vec::new();
            words.hash(level, text, Fast::new(3), &mut hashes);
            assert!(
                hashes == expected,
                "{level}: {} tokens for {} of {text:.300?}",
                hashes.len(),
                expected.len()
            );
        }
    }

    /// One string for each case that [`CutState`] distinguishes.
    const PIECES: [&str; 24] = [
        " ",
        "a",
        "Z",
        "_9",
        "é",
        "É",
        "\u{301}",
        "東",
        "京",
        "ที่",
        "\u{fe0f}",
        "😀",
        "“",
        "İ",
        "Ⱥ",
        "Ꮿ",
        "ß",
        "don't",
        "The quick brown fox",
        "\u{ff9e}",
        "한국어",
        "0",
        "-",
        "𐐀",
    ];

    #[test]
    fn tokens_at_every_chunk_offset_equal_the_definition() {
        let mut words = Words::default();
        for first in PIECES {
            for second in PIECES {
                for before in [0, 1, 31, 58, 59, 60, 61, 62, 63, 64, 65, 127] {
                    for filler in ["x", " ", "ж"] {
                        let text = filler.repeat(before) + first + second + "b";
                        check(&mut words, &text);
                    }
                }
            }
        }
    }

    #[test]
    fn tokens_longer_than_a_block_are_not_split() {
        let mut words = Words::default();
        for length in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7] {
            for token in ["x", "É", "東\u{301}", "Ⱥ"] {
                let text = format!("first {} last", token.repeat(length));
                check(&mut words, &text);
                check(&mut words, &text.replace("東", "東\u{301}\u{302}"));
            }
        }
        check(&mut words, &"marks\u{301}".repeat(BLOCK));
        check(&mut words, &"a b ".repeat(3 * BLOCK));
        check(&mut words, &"東京".repeat(3 * BLOCK));
    }

    #[test]
    fn memory_of_long_tokens_is_freed_after_the_text() {
        let mut words = Words::default();
        let text = format!("a {} b c d {}", "Long".repeat(20 * BLOCK), "e f ".repeat(BLOCK));
        check(&mut words, &text);
        assert!(words.lower.capacity() <= KEPT_MAX, "{}", words.lower.capacity());
        assert_eq!((words.starts.len(), words.ends.len()), (BLOCK + SLACK, BLOCK + SLACK));
    }

    #[test]
    fn texts_over_the_maximum_are_tokenised_by_the_slow_path() {
        let mut words = Words::default();
        for text in ["HELLO world", "Hello", "a b"] {
            for max in [6, usize::MAX, 0] {
                let mut hashes = Vec::new();
                words.hash_below(max, Level::chosen(), text, Fast::new(3), &mut hashes);
                assert_eq!(hashes, one_by_one(text), "{text}, {max}");
            }
        }
    }

    proptest! {
        #[test]
        fn tokens_of_random_pieces_equal_the_definition(
            order in proptest::collection::vec(0..PIECES.len(), 0..400),
            times in 1_usize..60,
        ) {
            let text: String = order.iter().map(|&piece| PIECES[piece]).collect();
            check(&mut Words::default(), &text);
            // Checks a text that is longer than a block.
            check(&mut Words::default(), &text.repeat(times));
        }

        #[test]
        fn tokens_of_any_text_equal_the_definition(text: String) {
            check(&mut Words::default(), &text);
        }
    }
}
