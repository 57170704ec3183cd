#!/usr/bin/env python3
"""Writes crates/sketch/src/cut/stem_probes.rs: words that reveal a changed stemmer.

    pip install --target OLD snowballstemmer==2.0.0 xxhash==4.1.0
    pip install --target NEW snowballstemmer==3.1.1
    python3 scripts/stem-probes.py OLD NEW > crates/sketch/src/cut/stem_probes.rs

OLD is a second implementation of the stemmers with which indexes are made; NEW has Snowball's later changes. Words are
made from random letters and the prefixes and suffixes that either version knows. A word is kept if OLD uses a table
entry for it that no earlier word used, if it removes a suffix that none before had, or if OLD and NEW differ in a new
way. The digest is that of the stems of OLD. Made once, then kept.
"""

import importlib
import random
import sys
import unicodedata

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


def main(old_folder, new_folder):
    sys.path.append(old_folder)
    import xxhash

    old, new = load(old_folder), load(new_folder)
    print("//! Words by which a stemmer that changed is found. Written by `scripts/stem-probes.py`; do not edit.")
    print("\nuse crate::params::Stemming;")
    print("\n/// For each language words with one space between two, and the digest of their stems: XXH3 of all stems, a line")
    print("/// feed after each.")
    print("#[rustfmt::skip]")
    print(f"pub(super) static PROBES: [(Stemming, &str, u64); {len(LANGUAGES)}] = [")
    for language in LANGUAGES:
        words, stems = probe(old[language], new[language])
        digest = xxhash.xxh3_64_intdigest("".join(stem + "\n" for stem in stems).encode())
        print(f'    (Stemming::{language.capitalize()}, "\\')
        line = "       "
        for word in words:
            item = f" {word}"
            if len(line) + len(item) > 106:
                print(f"{line} \\")
                line = "       "
            line += item
        digits = f"{digest:016x}"
        grouped = "_".join(digits[i : i + 4] for i in range(0, 16, 4))
        print(f'{line}", 0x{grouped}),')
    print("];")


if __name__ == "__main__":
    main(*sys.argv[1:])
