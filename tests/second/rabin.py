#!/usr/bin/env python3
"""Writes tests/golden/rabin.tsv: Rabin fingerprints, rolling hashes and the shingle hashes made from them, with a second
implementation of the definitions in crates/sketch/src/classic/{rabin,rabin_karp}.rs and shingle.rs.

    python3 tests/second/rabin.py > tests/golden/rabin.tsv

Written from the module documentation, for simplicity and not for speed: polynomials and numbers are Python's long
integers. Irreducibility is decided by Rabin's test, not by Ben-Or's. Tokens and texts are those of sketches.py.
"""

import sys
import types

# sketches.py imports it for functions that are not used here.
sys.modules.setdefault("xxhash", types.ModuleType("xxhash"))

import sketches

M64 = (1 << 64) - 1
COUNT = 0x9E3779B97F4A7C15
POLYNOMIALS, BASES = 0x452821E638D01377, 0xBE5466CF34E90C6C
Q = (1 << 61) - 1


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def remainder(a, p):
    while a.bit_length() >= p.bit_length():
        a ^= p << (a.bit_length() - p.bit_length())
    return a


def squared(a, p):
    # Over GF(2), the square of a sum is the sum of the squares, so a zero is inserted between neighbouring bits.
    return remainder(int("0".join(bin(a)[2:]), 2), p)


def irreducible(p):
    """Returns the result of Rabin's test for degree 64, whose only prime divisor is 2."""
    power, half = 2, None
    for i in range(64):
        power = squared(power, p)
        if i == 31:
            half = power
    if power != 2:
        return False
    a, b = p, half ^ 2
    while b:
        a, b = b, remainder(a, b)
    return a == 1


def polynomial(seed):
    key, i = mix(seed ^ POLYNOMIALS), 0
    while True:
        i += 1
        p = 1 << 64 | mix(key + i * COUNT & M64) | 1
        if irreducible(p):
            return p


def base(seed):
    key, i = mix(seed ^ BASES), 0
    while True:
        i += 1
        d = mix(key + i * COUNT & M64) % 2**61
        if 1 < d < Q:
            return d


def rabin(p, string):
    return remainder(int.from_bytes(string, "big"), p)


def rabin_karp(d, q, string):
    return sum(s * pow(d, len(string) - 1 - i, q) for i, s in enumerate(string)) % q


def shingles(words, widths, fingerprint):
    found = []
    fitting = [w for w in widths if w <= len(words)]
    if words and not fitting:
        fitting = [len(words)]
    for w in fitting:
        for start in range(len(words) - w + 1):
            found.append(mix(fingerprint(b"\x01" + b" ".join(words[start : start + w]))))
    return found


STRINGS = [
    b"",
    b"\0",
    b"\0\0a",
    b"a",
    b"fingers!",
    b"nine byte",
    b"a rose is a rose is a rose",
    bytes(range(256)),
    b"\xff" * 127,
    b"\xff" * 128,
    b"\x80" + b"\0" * 300,
    bytes(i * i * 7 % 256 for i in range(700)),
]

SEEDS = [0, 1, 42, M64]
WIDTHS = [[1], [5], [16], [1, 2]]


def main():
    print("# By tests/second/rabin.py, which says how to write this file again. Numbers are hexadecimal; strings are")
    print("# bytes in hexadecimal, the text is named as in sketches.tsv. A digest of hashes h is x = mix(x ^ h) from 0.")
    for seed in SEEDS + list(range(100, 120)):
        print(f"polynomial\t{seed}\t{polynomial(seed):x}")
        print(f"base\t{seed}\t{base(seed):x}")
    for seed in SEEDS:
        p, d = polynomial(seed), base(seed)
        for string in STRINGS:
            led = b"\x01" + string
            print(f"rabin\t{seed}\t{string.hex()}\t{rabin(p, string):x}\t{rabin(p, led):x}")
            print(f"rabin-karp\t{seed}\t{string.hex()}\t{rabin_karp(d, Q, string):x}\t{rabin_karp(d, Q, led):x}")
    for d, q in [(2, 3), (256, 257), (256, 1_000_003), (2**32, 2**64 - 59), (2**64 - 60, 2**64 - 59)]:
        for string in STRINGS:
            print(f"modulo\t{d}/{q}\t{string.hex()}\t{rabin_karp(d, q, string):x}")
    for name, text in sketches.TEXTS:
        words = sketches.tokens(text)
        for seed, widths in zip(SEEDS, WIDTHS):
            p, d = polynomial(seed), base(seed)
            for hash, fingerprint in [
                ("rabin", lambda string: rabin(p, string)),
                ("rabin-karp", lambda string: rabin_karp(d, Q, string)),
            ]:
                every, digest = shingles(words, widths, fingerprint), 0
                for h in every:
                    digest = mix(digest ^ h)
                ends = f"{every[0]:x}\t{every[-1]:x}" if every else "-\t-"
                print(f"shingles\t{seed}\t{hash}\t{'+'.join(map(str, widths))}\t{sketches.escape(text)}"
                      f"\t{len(every)}\t{ends}\t{digest:x}")


if __name__ == "__main__":
    main()
