#!/usr/bin/env python3
"""Writes tests/golden/occurrences.tsv: sketches of texts whose shingles are weighted by their number of occurrences,
with a second implementation of crates/sketch/src/occurrences.rs and of the family `darts` for texts.

    pip install xxhash
    python3 tests/second/occurrences.py > tests/golden/occurrences.tsv

Written from "Weights in minima, samples and sets" and "Minima of weighted sets" in format-spec.md, for simplicity and
not for speed. Tokens and shingles are those of sketches.py, darts those of weighted.py.
"""

import collections

import xxhash

import sketches
import weighted


def elements(shingles):
    for x, n in collections.Counter(shingles).items():
        yield x
        for k in range(1, n):
            yield xxhash.xxh3_64_intdigest(x.to_bytes(8, "little"), seed=k)


TEXTS = [
    ("once each", "one two three four"),
    ("one word, often", "word " * 40),
    ("a rose", "a rose is a rose is a rose"),
    ("two texts of one", "to be or not to be, that is the question: to be"),
    ("numbers, each often", " ".join(str(n * n % 17) for n in range(300))),
    ("squares", " ".join(str(n * n % 101) for n in range(150))),
]


def main():
    print("# By tests/second/occurrences.py, which says how to write this file again. The set is xxh3-64 of the elements,")
    print("# ascending, 8 little-endian bytes each; minima are those of the families one-permutation-filled and darts.")
    print("name\ttext\twidth\tseed\telements\tset\tfilled\tdarts")
    for name, text in TEXTS:
        for width, seed in ((1, 0), (2, 7)):
            tokens = [sketches.token_hash(token, seed) for token in sketches.tokens(text)]
            shingles = list(sketches.shingles(tokens, width))
            found = sorted(set(elements(shingles)))
            digest = xxhash.xxh3_64_intdigest(b"".join(x.to_bytes(8, "little") for x in found))
            filled = sketches.signature(found, 16)
            weights = [(x, n << 16) for x, n in sorted(collections.Counter(shingles).items())]
            darts = weighted.minima(weights, 12)
            shown = [" ".join(f"{value:x}" for value in values) for values in (filled, darts)]
            print(name, text, width, seed, len(found), f"{digest:016x}", *shown, sep="\t")


if __name__ == "__main__":
    main()
