#!/usr/bin/env python3
"""Writes tests/golden/samples.tsv: bottom and modular samples, with a second implementation of
crates/sketch/src/samples.rs.

    pip install xxhash
    python3 tests/second/samples.py > tests/golden/samples.tsv

Written from "Samples" in format-spec.md and the module documentation, for simplicity and not for speed. Tokens and
shingles are those of sketches.py.
"""

import xxhash

import sketches

SAMPLES = 0xBE5466CF34E90C6C
MODULAR_MAX = 65535


def sampled(shingle):
    return sketches.mix(shingle ^ SAMPLES) >> 16


def bottom(shingles, t):
    return sorted({sampled(x) for x in shingles})[:t]


def modular(shingles, m):
    return sorted({sampled(x) for x in shingles if sampled(x) % m == 0})[:MODULAR_MAX]


def compare(a, b, known):
    """Of the hashes of the union that both samples determine, counts those in both sets, in the first set, and in either
    set."""
    union = known(sorted(set(a) | set(b)))
    return (sum(x in a and x in b for x in union), sum(x in a for x in union), len(union))


def compare_bottom(a, b, t):
    whole = len(a) < t and len(b) < t
    return compare(a, b, lambda union: union if whole else union[:t])


def compare_modular(a, b):
    ends = [x[-1] for x in (a, b) if len(x) == MODULAR_MAX]
    return compare(a, b, lambda union: [x for x in union if not ends or x <= min(ends)])


TEXTS = sketches.TEXTS + [
    ("a hundred numbers", " ".join(str(n) for n in range(100))),
    ("a thousand numbers", " ".join(str(n) for n in range(1000))),
    ("some of them and others", " ".join(str(n) for n in range(300, 2300))),
    ("numbers backwards", " ".join(str(n) for n in reversed(range(1000)))),
    ("numbers, each often", " ".join(str(n * n % 97) for n in range(5000))),
]

# Columns: words in a shingle, seed, size of the bottom sample, modulus.
CHOICES = [(5, 0, 100, 10), (1, 7, 64, 3), (2, 2**64 - 1, 1, 1), (3, 42, 4096, 1000)]


def main():
    print("# Samples by tests/second/samples.py, which says how to write this file again. Hashes are xxh3-64 of the")
    print("# values, 8 bytes each, little-endian. What is compared is the document and the one in the row before it with")
    print("# the same choices: common hashes, those of this document and those of the union among the hashes known.")
    print("name\ttext\twidth\tseed\tt\tm\tbottom\tleast\tbottom_hash\tmodular\tmodular_hash\tby_bottom\tby_modular")
    for width, seed, t, m in CHOICES:
        before = ([], [])
        for name, text in TEXTS:
            hashes = [sketches.token_hash(token, seed) for token in sketches.tokens(text)]
            shingles = sketches.shingles(hashes, width)
            least, multiples = bottom(shingles, t), modular(shingles, m)
            digest = lambda values: f"{xxhash.xxh3_64_intdigest(b''.join(v.to_bytes(8, 'little') for v in values)):016x}"
            columns = [
                name, sketches.escape(text), width, seed, t, m,
                len(least), f"{least[0]:012x}" if least else "-", digest(least), len(multiples), digest(multiples),
                "/".join(map(str, compare_bottom(least, before[0], t))),
                "/".join(map(str, compare_modular(multiples, before[1]))),
            ]
            print("\t".join(map(str, columns)))
            before = least, multiples


if __name__ == "__main__":
    main()
