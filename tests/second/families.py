#!/usr/bin/env python3
"""Writes tests/golden/families.tsv: minima of the classic hash families, with a second implementation.

    python3 tests/second/families.py > tests/golden/families.tsv

Written from "Minima" in format-spec.md, for simplicity and not for speed. Needs only the standard library.
"""

import zlib

M64 = (1 << 64) - 1
P = (1 << 61) - 1
LINEAR, MULTIPLY_SHIFT, MATRIX = 0x452821E638D01377, 0xBE5466CF34E90C6C, 0xC0AC29B7C97C50DD


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def drawn(start, i):
    return mix((start + i) & M64)


def linear(hashes, t):
    for j in range(t):
        a, b = 1 + drawn(LINEAR, 2 * j) % (P - 1), drawn(LINEAR, 2 * j + 1) % P
        yield min((a * (x % P) + b) % P for x in hashes) % 2**32


def multiply_shift(hashes, t):
    for j in range(t):
        a, b = drawn(MULTIPLY_SHIFT, 2 * j) | 1, drawn(MULTIPLY_SHIFT, 2 * j + 1)
        yield min((a * x + b) % 2**64 // 2**32 for x in hashes)


def matrix(hashes, t):
    for j in range(t):
        words = [drawn(MATRIX, 33 * j + i) for i in range(33)]
        columns = [words[c // 2] >> 32 if c % 2 else words[c // 2] % 2**32 for c in range(64)]

        def transformed(x):
            value = words[32] % 2**32
            for c in range(64):
                if x >> c & 1:
                    value ^= columns[c]
            return value

        yield min(map(transformed, hashes))


def splitmix(seed, n):
    return [mix((seed + i * 0x9E3779B97F4A7C15) & M64) for i in range(1, n + 1)]


EDGES = sorted(
    {k * P + d & M64 for k in range(9) for d in (-1, 0, 1)}
    | {(1 << k) + d & M64 for k in (29, 31, 32, 60, 61, 62, 63) for d in (-1, 0, 1)}
)
# Columns: name, hashes, numbers of minima.
SETS = [
    ("one hash", [0x0123456789ABCDEF], (1, 84, 4096)),
    ("zero", [0], (84,)),
    ("all ones", [M64], (84,)),
    ("edges", EDGES, (33, 257)),
    ("counting", list(range(20)), (7, 513)),
    ("splitmix 1 5", splitmix(1, 5), (1, 2, 84, 200)),
    ("splitmix 2 100", splitmix(2, 100), (84, 128, 200)),
    ("splitmix 3 1000", splitmix(3, 1000), (84,)),
]


def main():
    print("# Minima by tests/second/families.py, which says how to write this file again. The CRC-32 is that of all")
    print("# minima, 4 little-endian bytes each.")
    print("set\thashes\tfamily\tminima\tfirst\tlast\tcrc32")
    for name, hashes, counts in SETS:
        listed = "-" if name.startswith("splitmix") else ",".join(f"{x:x}" for x in hashes)
        for t in counts:
            for family in linear, multiply_shift, matrix:
                minima = list(family(hashes, t))
                crc = zlib.crc32(b"".join(m.to_bytes(4, "little") for m in minima))
                label = family.__name__.replace("_", "-")
                print(f"{name}\t{listed}\t{label}\t{t}\t{minima[0]:08x}\t{minima[-1]:08x}\t{crc:08x}")


if __name__ == "__main__":
    main()
