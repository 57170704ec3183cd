#!/usr/bin/env python3
"""Writes crates/sketch/src/token_tables.rs: the properties of characters for the tokenizer.

    python3 scripts/token-tables.py > crates/sketch/src/token_tables.rs

Needs only the standard library. The tables use the Unicode version of the Python that runs this script. They define
tokens, and so every stored fingerprint. They are made once and then kept, whatever Unicode version later compilers
support.
"""

import sys
import unicodedata

OTHER, WORD, SINGLE, MARK = range(4)

# Blocks of scripts that do not put spaces between words, so that each letter is a token. Bounds are inclusive.
SPACELESS = [
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x1000, 0x109F, "Myanmar"),
    (0x1780, 0x17FF, "Khmer"),
    (0x1950, 0x197F, "Tai Le"),
    (0x1980, 0x19DF, "New Tai Lue"),
    (0x1A20, 0x1AAF, "Tai Tham"),
    (0x1B00, 0x1B7F, "Balinese"),
    (0x3000, 0x303F, "CJK Symbols and Punctuation: iteration marks, the ideographic zero"),
    (0x3040, 0x309F, "Hiragana"),
    (0x30A0, 0x30FF, "Katakana"),
    (0x3100, 0x312F, "Bopomofo"),
    (0x31A0, 0x31BF, "Bopomofo Extended"),
    (0x31F0, 0x31FF, "Katakana Phonetic Extensions"),
    (0x3400, 0x4DBF, "CJK Unified Ideographs Extension A"),
    (0x4E00, 0x9FFF, "CJK Unified Ideographs"),
    (0xA000, 0xA4CF, "Yi Syllables, Yi Radicals"),
    (0xA980, 0xA9DF, "Javanese"),
    (0xA9E0, 0xA9FF, "Myanmar Extended-B"),
    (0xAA60, 0xAA7F, "Myanmar Extended-A"),
    (0xAA80, 0xAADF, "Tai Viet"),
    (0xF900, 0xFAFF, "CJK Compatibility Ideographs"),
    (0xFF66, 0xFF9F, "Halfwidth Katakana"),
    (0x11700, 0x1174F, "Ahom"),
    (0x16FE0, 0x16FFF, "Ideographic Symbols and Punctuation"),
    (0x17000, 0x18AFF, "Tangut, Tangut Components"),
    (0x18B00, 0x18CFF, "Khitan Small Script"),
    (0x18D00, 0x18D7F, "Tangut Supplement"),
    (0x1AFF0, 0x1AFFF, "Kana Extended-B"),
    (0x1B000, 0x1B16F, "Kana Supplement, Kana Extended-A, Small Kana Extension"),
    (0x1B170, 0x1B2FF, "Nushu"),
    (0x20000, 0x3FFFF, "the ideographic planes"),
]

# Characters in a letter category that act as marks: the halfwidth voiced and semi-voiced sound marks.
MARKS_BY_USE = {0xFF9E, 0xFF9F}

# The only character whose lower case has more than one character; token.rs handles it.
TWO_CHARACTERS = 0x130


def kind(c):
    category = unicodedata.category(chr(c))
    if c in MARKS_BY_USE or category[0] == "M":
        return MARK
    if category[0] == "L" or category == "Nl":
        return SINGLE if any(lo <= c <= hi for lo, hi, _ in SPACELESS) else WORD
    if category in ("Nd", "No") or c == ord("_"):
        return WORD
    return OTHER


def shift(c):
    """Returns the difference between a character and its lower case; 0 for characters that are not part of tokens."""
    if kind(c) == OTHER:
        return 0
    lower = chr(c).lower()
    if len(lower) != 1:
        assert c == TWO_CHARACTERS and lower == "i\u0307", hex(c)
        return 0
    return ord(lower) - c


def emit(name, comment, element, values):
    print(f"\n/// {comment}")
    print("#[rustfmt::skip]")
    print(f"pub(super) static {name}: [{element}; {len(values)}] = [")
    line = "   "
    for value in values:
        item = f" {value:_},"
        if len(line) + len(item) > 108:
            print(line)
            line = "   "
        line += item
    print(line)
    print("];")


def main():
    traits, trait_of = {(OTHER, 0): 0}, []
    for c in range(0x110000):
        surrogate = 0xD800 <= c <= 0xDFFF
        trait = (OTHER, 0) if surrogate else (kind(c), shift(c))
        trait_of.append(traits.setdefault(trait, len(traits)))
    assert len(traits) <= 256, "a trait is to fit a byte"

    def split(bits):
        blocks, numbers = {}, []
        for start in range(0, 0x110000, 1 << bits):
            block = tuple(trait_of[start : start + (1 << bits)])
            numbers.append(blocks.setdefault(block, len(blocks)))
        return numbers, [trait for block in blocks for trait in block]

    def size(bits):
        numbers, traits_in_blocks = split(bits)
        return len(numbers) + len(traits_in_blocks) if max(numbers) < 256 else sys.maxsize

    bits = min(range(5, 10), key=size)
    numbers, traits_in_blocks = split(bits)
    # All blocks after the last one that differs from its successor are equal, so their numbers need not be stored.
    while numbers[-1] == numbers[-2]:
        numbers.pop()

    print("//! What the tokeniser knows of each character. Written by `scripts/token-tables.py`; do not edit.")
    print("//!")
    print("//! `TRAITS[BLOCKS[BLOCK_OF[c >> BLOCK_BITS]][c & mask]]`, flattened; characters past the end of")
    print("//! `BLOCK_OF` are as its last. A trait holds the kind in its low two bits (0 no part of a token, 1 of a")
    print("//! word, 2 a token by itself, 3 a mark) and, above them, what to add to get the lower case.")
    print()
    print("/// The version of Unicode by which characters are classified and lower-cased, for ever.")
    print(f'pub const UNICODE_VERSION: &str = "{unicodedata.unidata_version}";')
    print(f"\n/// A block has `1 << BLOCK_BITS` characters.\npub(super) const BLOCK_BITS: u32 = {bits};")
    emit("TRAITS", "Kind and shift to lower case, each combination once.", "i32",
         [shift << 2 | kind for kind, shift in traits])
    emit("BLOCK_OF", "The number of the block of a character, by its upper bits.", "u8", numbers)
    emit("BLOCKS", "The traits of the characters of each block, block after block.", "u8", traits_in_blocks)


if __name__ == "__main__":
    main()
