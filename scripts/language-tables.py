#!/usr/bin/env python3
"""Writes the tables for UAX #29 text boundaries and for NFKC normalization.

    pip install regex==2026.5.9 unicodedata2==18.0.0
    python3 scripts/language-tables.py breaks > crates/sketch/src/cut/breaks/tables.rs
    python3 scripts/language-tables.py normal > crates/sketch/src/cut/normal/tables.rs
    python3 scripts/language-tables.py canonical > crates/sketch/src/cut/normal/canonical.rs

The properties of words and sentences are those of Unicode 17.0.0, as in `regex`; decompositions, compositions, combining
classes and marks are those of Unicode 18.0.0, as in `unicodedata2`. The parameters of indexes name these versions. The
tables are made once and then kept, even if later packages know newer versions of Unicode: another version would be
another value of a parameter, in addition to these.
"""

import sys
from importlib import metadata

BREAKS_VERSION, NORMAL_VERSION = (17, 0, 0), (18, 0, 0)

CHARACTERS = 0x110000
SCALARS = [c for c in range(CHARACTERS) if not 0xD800 <= c <= 0xDFFF]

WORD = ["Other", "CR", "LF", "Newline", "Extend", "ZWJ", "Format", "Regional_Indicator", "Katakana", "Hebrew_Letter",
        "ALetter", "Single_Quote", "Double_Quote", "MidNumLet", "MidLetter", "MidNum", "Numeric", "ExtendNumLet",
        "WSegSpace"]
SENTENCE = ["Other", "CR", "LF", "Sep", "Extend", "Format", "Sp", "Lower", "Upper", "OLetter", "Numeric", "ATerm",
            "STerm", "Close", "SContinue"]


def emit(name, comment, element, values):
    print(f"\n/// {comment}")
    print("#[rustfmt::skip]")
    print(f"pub(super) static {name}: [{element}; {len(values)}] = [")
    line = "   "
    for value in values:
        item = f" {value:_}," if isinstance(value, int) else f" {value},"
        if len(line) + len(item) > 108:
            print(line)
            line = "   "
        line += item
    print(line)
    print("];")


def emit_blocks(prefix, what, element, value_of):
    """Returns a table of two levels, in which equal blocks of characters are stored once."""
    width = {"u8": 1, "u16": 2}[element]

    def split(bits):
        blocks, numbers = {}, []
        for start in range(0, CHARACTERS, 1 << bits):
            block = tuple(value_of[start : start + (1 << bits)])
            numbers.append(blocks.setdefault(block, len(blocks)))
        while numbers[-1] == numbers[-2]:
            numbers.pop()
        return numbers, [value for block in blocks for value in block]

    def size(bits):
        numbers, values = split(bits)
        return len(numbers) + width * len(values) if max(numbers) < 256 else sys.maxsize

    bits = min(range(5, 10), key=size)
    numbers, values = split(bits)
    print(f"\n/// A block of `{prefix}_BLOCKS` has `1 << {prefix}_BITS` characters.")
    print(f"pub(super) const {prefix}_BITS: u32 = {bits};")
    emit(f"{prefix}_BLOCK_OF", "The number of the block of a character, by its upper bits; later characters are as the "
         "last.", "u8", numbers)
    emit(f"{prefix}_BLOCKS", f"{what}, block after block.", element, values)


def version(comment, numbers):
    print(f"\n/// {comment}")
    print("#[cfg(test)]")
    print(f"pub(super) const VERSION: (u8, u8, u8) = {numbers};")


def breaks():
    import regex

    named = "supports Unicode " + ".".join(map(str, BREAKS_VERSION))
    assert named in metadata.metadata("regex").get_payload(), f"this version of the package `regex` is not one that {named}"
    everything = "".join(map(chr, SCALARS))

    def members(pattern):
        return [ord(c) for c in regex.findall(pattern, everything, regex.V1)]

    def classes(prop, names):
        value_of = [None] * CHARACTERS
        for name in names:
            for c in members(rf"\p{{{prop}={name}}}"):
                assert value_of[c] is None, hex(c)
                value_of[c] = {"ZWJ": "Zwj"}.get(name, name.replace("_", ""))
        assert all(value_of[c] for c in SCALARS), f"a value of {prop} is missing from the list"
        return value_of

    word = classes("Word_Break", WORD)
    for c in members(r"\p{Extended_Pictographic}"):
        word[c] = {"Other": "Pictograph", "ALetter": "PictographLetter"}[word[c]]

    print("//! Properties of characters that decide where words and sentences end. Written by")
    print("//! `scripts/language-tables.py`; do not edit.")
    print("\nuse super::sentences::Sentence::{self, self as S};\nuse super::words::Word::{self, self as W};")
    version("The version of Unicode by which words and sentences are cut, for ever.", BREAKS_VERSION)
    sentence = classes("Sentence_Break", SENTENCE)
    traits, trait_of = {("Other", "Other"): 0}, [0] * CHARACTERS
    for c in SCALARS:
        trait_of[c] = traits.setdefault((word[c], sentence[c]), len(traits))
    emit("TRAITS", "`Word_Break` and `Sentence_Break`, each combination once.", "(Word, Sentence)",
         [f"(W::{word}, S::{sentence})" for word, sentence in traits])
    emit_blocks("TRAIT", "The trait of the characters", "u8", trait_of)


def normal():
    import unicodedata2 as ucd

    assert ucd.unidata_version == ".".join(map(str, NORMAL_VERSION)), ucd.unidata_version
    hangul = range(0xAC00, 0xD7A4)
    compositions, seconds = [], set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in SCALARS:
        parts = ucd.decomposition(chr(c)).split()
        # A composition that NFC applies: not of a single character, and not excluded.
        if len(parts) == 2 and parts[0][0] != "<" and ucd.normalize("NFC", chr(c)) == chr(c):
            first, second = (int(part, 16) for part in parts)
            compositions.append((first, second, c))
            seconds.add(second)

    def composes(decomposed):
        return ord(decomposed[0]) in seconds or ucd.combining(decomposed[0])

    traits, trait_of = {(0, ""): 0}, [0] * CHARACTERS
    texts, number_of = {"": 0}, [0] * CHARACTERS
    for c in SCALARS:
        decomposed = ucd.normalize("NFKD", chr(c))
        if decomposed != chr(c) and c not in hangul:
            number_of[c] = texts.setdefault(decomposed, len(texts))
        check = ""
        if ucd.normalize("NFKC", chr(c)) != chr(c):
            check = "CHANGES"
        elif c in seconds or not ucd.combining(chr(c)) and composes(decomposed):
            check = "COMPOSES"
        trait_of[c] = traits.setdefault((ucd.combining(chr(c)), check), len(traits))
    ends, text = [], ""
    for decomposed in texts:
        text += decomposed
        ends.append(len(text))

    print("//! Properties of characters that decide their normal form NFKC. Written by `scripts/language-tables.py`; do")
    print("//! not edit.")
    version("The version of Unicode by which text is normalised, for ever.", NORMAL_VERSION)
    print("\n/// Added to the combining class of a character that never stays as it is.")
    print("pub(super) const CHANGES: u16 = 1 << 8;")
    print("\n/// Added to the combining class of a character that may compose with one before it.")
    print("pub(super) const COMPOSES: u16 = 1 << 9;")
    emit("TRAITS", "The combining class and one of the flags above, each combination once.", "u16",
         [" + ".join([str(ccc)] * (ccc > 0 or not flag) + [flag] * bool(flag)) for ccc, flag in traits])
    emit_blocks("TRAIT", "The trait of the characters", "u8", trait_of)
    emit_blocks("DECOMPOSED", "The number of the full compatibility decomposition of the characters, 0 for none or that of "
                "Hangul", "u16", number_of)
    emit("ENDS", "Where each decomposition ends in `CHARACTERS`.", "u16", ends)
    emit("CHARACTERS", "The characters of all decompositions.", "u32", [ord(c) for c in text])
    compositions.sort()
    emit("COMPOSITIONS", "What two characters compose to, ascending; Hangul left out.", "(u32, u32, u32)",
         [f"({a}, {b}, {c})" for a, b, c in compositions])


def canonical():
    import unicodedata2 as ucd

    assert ucd.unidata_version == ".".join(map(str, NORMAL_VERSION)), ucd.unidata_version
    hangul = range(0xAC00, 0xD7A4)
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in SCALARS:
        parts = ucd.decomposition(chr(c)).split()
        if len(parts) == 2 and parts[0][0] != "<" and ucd.normalize("NFC", chr(c)) == chr(c):
            seconds.add(int(parts[1], 16))
    flags = {"CHANGES": "a character that is not in NFC", "COMPOSES": "a character that may compose with one before it",
             "MARK": "a character of category Mn", "MARKED": "a character whose canonical decomposition has one of category Mn",
             "SPLITS": "a character whose canonical decomposition is another one",
             "SHIFTS": "a character whose combining class is not 0"}
    bit = {name: 1 << number for number, name in enumerate(flags)}
    flags_of, others = [0] * CHARACTERS, []
    for c in SCALARS:
        text = chr(c)
        apart = ucd.normalize("NFD", text)
        first_joins = ord(apart[0]) in seconds or ucd.combining(apart[0]) > 0
        flags_of[c] = (
            bit["CHANGES"] * (ucd.normalize("NFC", text) != text)
            | bit["COMPOSES"] * (c in seconds or ucd.combining(text) == 0 and first_joins)
            | bit["MARK"] * (ucd.category(text) == "Mn")
            | bit["MARKED"] * any(ucd.category(part) == "Mn" for part in apart)
            | bit["SPLITS"] * (apart != text and c not in hangul)
            | bit["SHIFTS"] * (ucd.combining(text) > 0))
        if apart not in (text, ucd.normalize("NFKD", text)):
            others.append((c, apart))
    print("//! Properties of characters that decide what is left of them without marks. Written by")
    print("//! `scripts/language-tables.py`; do not edit.")
    version("The version of Unicode by which marks are dropped, for ever.", NORMAL_VERSION)
    for name, what in flags.items():
        print(f"\n/// Of {what}.")
        print(f"pub(super) const {name}: u8 = {bit[name]};")
    emit_blocks("FLAG", "The flags of the characters", "u8", flags_of)
    print("\n/// The canonical decompositions that are not those of compatibility, ascending.")
    print("#[rustfmt::skip]")
    print(f"pub(super) static CANONICAL: [(u32, &[u32]); {len(others)}] = [")
    for c, apart in others:
        print(f"    ({c:_}, &[{', '.join(f'{ord(part):_}' for part in apart)}]),")
    print("];")


if __name__ == "__main__":
    {"breaks": breaks, "normal": normal, "canonical": canonical}[sys.argv[1]]()
