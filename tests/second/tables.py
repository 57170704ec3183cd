#!/usr/bin/env python3
"""Makes the tables of crates/sketch/src/tables again, from other sources than the crate has, and compares each byte.

    .ci/run tables                           compares all but `stems`, with the packages below
    tests/second/tables.py [--write] NAME... compares these, or writes them

    token       the tokenizer's character classes and lower case: Unicode 14.0.0, as in the standard library of Python 3.11
    breaks      words and sentences of UAX #29: Unicode 17.0.0, as in regex 2026.5.9
    normal      NFKC, and which characters are marks: Unicode 18.0.0, as in unicodedata2 18.0.0
    stems       words that reveal a changed stemmer, with STEMMERS=OLD:NEW, the folders of snowballstemmer 2.0.0 with
                xxhash, and of snowballstemmer 3.1.1 (`pip install --target`)

Stored fingerprints depend on these tables, so they never change: another version of Unicode would be another value of a
parameter, with tables of its own. Exits with 3 if a package or a version is missing.

A file of tables is a sequence of arrays, each one the number of its elements, their width in bytes, and the elements,
all little-endian, numbers in 4 bytes. A property of characters has two arrays: the number of the block of each 2^bits
characters, without the end of equal numbers, and the values, block after block.
"""

import importlib
import importlib.metadata
import os
import random
import struct
import sys
import unicodedata
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "crates/sketch/src/tables"
CHARACTERS = 0x110000
SCALARS = [c for c in range(CHARACTERS) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)
FORMATS = {1: "B", 2: "H", 4: "I"}


class Missing(Exception):
    """A package, or the version of Unicode that a table has, is not here."""


def array(width, values):
    return struct.pack(f"<II{len(values)}{FORMATS[width]}", len(values), width, *values)


def blocks(bits, width, value_of):
    """Returns the two arrays of a property, cut into blocks of 2^bits characters."""
    found, numbers = {}, []
    for start in range(0, CHARACTERS, 1 << bits):
        block = tuple(value_of[start : start + (1 << bits)])
        numbers.append(found.setdefault(block, len(found)))
    while numbers[-1] == numbers[-2]:
        numbers.pop()
    values = [value for block in found for value in block]
    return array(1, numbers) + array(width, values)


OTHER, WORD_KIND, SINGLE, MARK = range(4)

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
        return SINGLE if any(lo <= c <= hi for lo, hi, _ in SPACELESS) else WORD_KIND
    if category in ("Nd", "No") or c == ord("_"):
        return WORD_KIND
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


def token():
    if unicodedata.unidata_version != "14.0.0":
        raise Missing(f"this Python has Unicode {unicodedata.unidata_version}, not 14.0.0")
    traits, trait_of = {(OTHER, 0): 0}, []
    for c in range(CHARACTERS):
        surrogate = 0xD800 <= c <= 0xDFFF
        trait_of.append(traits.setdefault((OTHER, 0) if surrogate else (kind(c), shift(c)), len(traits)))
    return array(4, [(shift << 2 | kind) & 0xFFFF_FFFF for kind, shift in traits]) + blocks(7, 1, trait_of)


WORD = ["Other", "CR", "LF", "Newline", "Extend", "ZWJ", "Format", "Regional_Indicator", "Katakana", "Hebrew_Letter",
        "ALetter", "Single_Quote", "Double_Quote", "MidNumLet", "MidLetter", "MidNum", "Numeric", "ExtendNumLet",
        "WSegSpace"]
SENTENCE = ["Other", "CR", "LF", "Sep", "Extend", "Format", "Sp", "Lower", "Upper", "OLetter", "Numeric", "ATerm",
            "STerm", "Close", "SContinue"]


PICTOGRAPH = {"Other": "Pictograph", "ALetter": "PictographLetter"}


def breaks():
    regex = package("regex", "2026.5.9")
    everything = "".join(map(chr, SCALARS))

    def members(pattern):
        return [ord(c) for c in regex.findall(pattern, everything, regex.V1)]

    def classes(prop, names):
        value_of = [None] * CHARACTERS
        for name in names:
            for c in members(rf"\p{{{prop}={name}}}"):
                assert value_of[c] is None, hex(c)
                value_of[c] = name
        assert all(value_of[c] for c in SCALARS), f"a value of {prop} is missing from the list"
        return value_of

    word, sentence = classes("Word_Break", WORD), classes("Sentence_Break", SENTENCE)
    for c in members(r"\p{Extended_Pictographic}"):
        word[c] = PICTOGRAPH[word[c]]
    traits, trait_of = {("Other", "Other"): 0}, [0] * CHARACTERS
    for c in SCALARS:
        trait_of[c] = traits.setdefault((word[c], sentence[c]), len(traits))
    words = WORD + list(PICTOGRAPH.values())
    numbers = [number for w, s in traits for number in (words.index(w), SENTENCE.index(s))]
    return array(1, numbers) + blocks(7, 1, trait_of)


# Flags of a trait of NFKC, added to the combining class.
NFKC_CHANGES, NFKC_COMPOSES = 1 << 8, 1 << 9
# Flags of a character, for NFC and marks.
CHANGES, COMPOSES, IS_MARK, MARKED, SPLITS, SHIFTS = (1 << bit for bit in range(6))


def normal():
    ucd = package("unicodedata2", "18.0.0")
    compositions, seconds = [], set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in SCALARS:
        parts = ucd.decomposition(chr(c)).split()
        # A composition that NFC applies: not of a single character, and not excluded.
        if len(parts) == 2 and parts[0][0] != "<" and ucd.normalize("NFC", chr(c)) == chr(c):
            first, second = (int(part, 16) for part in parts)
            compositions.append((first, second, c))
            seconds.add(second)

    traits, trait_of = {0: 0}, [0] * CHARACTERS
    texts, number_of = {"": 0}, [0] * CHARACTERS
    flags_of = [0] * CHARACTERS
    for c in SCALARS:
        text, combining = chr(c), ucd.combining(chr(c))
        canonical, decomposed = ucd.normalize("NFD", text), ucd.normalize("NFKD", text)

        def joins(apart):
            return c in seconds or combining == 0 and (ord(apart[0]) in seconds or ucd.combining(apart[0]) > 0)

        if decomposed != text and c not in HANGUL:
            number_of[c] = texts.setdefault(decomposed, len(texts))
        check = NFKC_COMPOSES * joins(decomposed)
        if ucd.normalize("NFKC", text) != text:
            check = NFKC_CHANGES
        trait_of[c] = traits.setdefault(combining + check, len(traits))
        flags_of[c] = (
            CHANGES * (ucd.normalize("NFC", text) != text)
            | COMPOSES * joins(canonical)
            | IS_MARK * (ucd.category(text) == "Mn")
            | MARKED * any(ucd.category(part) == "Mn" for part in canonical)
            | SPLITS * (canonical != text and c not in HANGUL)
            | SHIFTS * (combining > 0))
    ends, text = [], ""
    for decomposed in texts:
        text += decomposed
        ends.append(len(text))
    compositions.sort()
    return (array(2, list(traits)) + blocks(6, 1, trait_of) + blocks(6, 2, number_of) + array(2, ends)
            + array(4, [ord(c) for c in text]) + array(4, [c for three in compositions for c in three])
            + blocks(7, 1, flags_of))


LANGUAGES = ["arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian",
             "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish"]
CHANGES_MAX = 100

# Here the crate differs from OLD: it counts the first three bytes of a word where Snowball counts characters.
BYTES = {"ëòë": "eò"}


def load(folder):
    for name in [name for name in sys.modules if name.split(".")[0] == "snowballstemmer"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    classes = {}
    for language in LANGUAGES:
        module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
        classes[language] = getattr(module, f"{language.capitalize()}Stemmer")
    sys.path.pop(0)
    return classes


def tables(cls):
    return [value for name, value in sorted(vars(cls).items()) if name.startswith("a_") and isinstance(value, list)]


def watched(cls):
    """Returns a function from a word to its stem and the table entries that were used."""
    number = {id(table): i for i, table in enumerate(tables(cls))}
    found = set()

    class Watched(cls):
        def find_among(self, table, *rest):
            start, result = self.cursor, super().find_among(table, *rest)
            if result:
                found.add((number[id(table)], self.current[start:self.cursor]))
            return result

        def find_among_b(self, table, *rest):
            end, result = self.cursor, super().find_among_b(table, *rest)
            if result:
                found.add((number[id(table)], self.current[self.cursor:end]))
            return result

    stemmer = Watched()

    def stem(word):
        found.clear()
        return stemmer.stemWord(word), frozenset(found)

    return stem


def edit(word, stem):
    """Returns the suffix that was removed and its replacement."""
    common = 0
    while common < min(len(word), len(stem)) and word[common] == stem[common]:
        common += 1
    return word[common:], stem[common:]


def candidates(entries, rng):
    letters = sorted({c for entry in entries for c in entry if c.isalpha()})
    for entry in entries:
        yield entry
        for length in (1, 2, 3, 4, 5, 6, 8):
            base = "".join(rng.choices(letters, k=length))
            yield base + entry
            yield entry + base
            yield base + rng.choice(entries) + entry
            yield f"{base}'{entry}"
            yield rng.choice(entries) + base + entry
        for _ in range(4):
            # Approximately the rest of a word of the language.
            yield rng.choice(entries) + rng.choice(entries) + entry


def is_word(word):
    return (0 < len(word.encode()) <= 60 and word.lower() == word and unicodedata.is_normalized("NFC", word)
            and all(c.isalpha() or unicodedata.category(c)[0] == "M" or c == "'" for c in word)
            and unicodedata.category(word[0])[0] == "L")


def probe(old, new):
    rng = random.Random(1)
    entries = sorted({entry.s for cls in (old, new) for table in tables(cls) for entry in table if entry.s})
    words = sorted({word for word in candidates(entries, rng) if is_word(word)}, key=lambda word: (len(word), word))
    stem, later = watched(old), new()
    seen, kept, changes = set(), [], 0
    for word in words:
        before, found = stem(word)
        what = set(found)
        removed = edit(word, before)
        if len(found) <= 1:
            what.add(removed)
        after = later.stemWord(word)
        if after != before and changes < CHANGES_MAX and (removed, edit(word, after)) not in seen:
            what.add((removed, edit(word, after)))
            changes += 1
        if what - seen:
            seen |= what
            kept.append(word)
    # Entries that are used only after a suffix that this loop has to guess.
    every = {(i, entry.s) for i, table in enumerate(tables(old)) for entry in table if entry.s and entry.result}
    for entry in sorted(every - seen):
        for word in (base + entry[1] + ending for base in ("", rng.choice(entries)) for ending in entries):
            if entry not in seen and is_word(word) and entry in stem(word)[1]:
                seen |= stem(word)[1]
                kept.append(word)
    print(f"{old.__name__}: {len(kept)} words, {changes} changes, {len(every & seen)} of {len(every)} entries",
          file=sys.stderr)
    return kept, [BYTES.get(word, stem(word)[0]) for word in kept]


def stems():
    if "STEMMERS" not in os.environ:
        raise Missing("STEMMERS is not set")
    old_folder, new_folder = os.environ["STEMMERS"].split(":")
    sys.path.append(old_folder)
    import xxhash

    old, new = load(old_folder), load(new_folder)
    lines = []
    for language in LANGUAGES:
        words, stems = probe(old[language], new[language])
        digest = xxhash.xxh3_64_intdigest("".join(stem + "\n" for stem in stems).encode())
        lines.append(f"{language}\t{digest:016x}\t{' '.join(words)}\n")
    return "".join(lines).encode()


def package(name, version):
    try:
        module = importlib.import_module(name)
        found = importlib.metadata.version(name)
    except ImportError as error:
        raise Missing(error) from None
    if found != version:
        raise Missing(f"{name} is {found} here, not {version}")
    return module


TABLES = {"token": (token, "token.bin"), "breaks": (breaks, "breaks.bin"), "normal": (normal, "normal.bin"),
          "stems": (stems, "stems.tsv")}


def main(arguments):
    writes = arguments[:1] == ["--write"]
    ended = 0
    for name in arguments[writes:]:
        make, file = TABLES[name]
        try:
            made = make()
        except Missing as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
            ended = ended or 3
            continue
        if writes:
            (FOLDER / file).write_bytes(made)
        elif made != (FOLDER / file).read_bytes():
            print(f"{FOLDER / file} differs from what this script makes", file=sys.stderr)
            ended = 1
        else:
            print(f"{file}: {len(made)} bytes, equal")
    sys.exit(ended)


if __name__ == "__main__":
    main(sys.argv[1:])
