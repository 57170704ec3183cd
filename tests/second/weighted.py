#!/usr/bin/env python3
"""Writes tests/golden/weighted-minima.tsv: minima of weighted sets, with a second implementation.

    python3 tests/second/weighted.py > tests/golden/weighted-minima.tsv

Written from "Minima of weighted sets" in format-spec.md, for simplicity and not for speed. Needs only the standard
library. Ranks are fractions here, and all cells up to a rank are searched at once.
"""

from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
M64 = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x &= M64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def poisson():
    """Returns the probabilities of at most n darts, times 2^64, as long as they are below 2^64 - 1."""
    chance = sum_ = 1 / Decimal(1).exp()
    n, found = 0, []
    while int(sum_ * 2**64) < M64:
        found.append(int(sum_ * 2**64))
        n += 1
        chance /= n
        sum_ += chance
    return found


POISSON = poisson()


def darts(element, weight, level, cell):
    """Returns rank and hash of each dart in a cell below the weight."""
    h = mix(element ^ mix(level << 56 | cell + 1))
    for d in range(sum(limit <= h for limit in POISSON)):
        a, b = mix(h + (2 * d + 1) * G), mix(h + (2 * d + 2) * G)
        c = mix(a ^ (b << 32 & M64 | b >> 32))
        if ((2**level - 1) << 16) + (a >> 64 - 16 - level) < weight:
            yield Fraction(cell, 2**level) + Fraction(b >> 24, 2 ** (40 + level)), c


def minima(elements, t):
    most = 1
    while True:
        least = {}
        for element, weight in elements:
            level = 0
            while (2**level - 1) << 16 < weight:
                for cell in range(most * 2**level):
                    for rank, c in darts(element, weight, level, cell):
                        place, dart = c * t >> 64, (rank, c % 2**32)
                        least[place] = min(dart, least.get(place, dart))
                level += 1
        if len(least) == t and all(rank < most for rank, _ in least.values()):
            return [least[place][1] for place in range(t)]
        most *= 2


def main():
    print("minima\telements\tsignature")
    draw = 1
    for case in range(24):
        t = [1, 2, 5, 16, 40, 84][case % 6]
        elements = []
        for i in range([1, 2, 3, 7, 30][case % 5]):
            draw += 1
            weight = [4096, 65536, 65537, 131072, 200000, 3 * 65536, 999999, 1 << 22][(case + 3 * i) % 8]
            elements.append((mix(draw * G), weight))
        written = " ".join(f"{element:x}:{weight}" for element, weight in elements)
        print(t, written, " ".join(f"{value:x}" for value in minima(elements, t)), sep="\t")


if __name__ == "__main__":
    main()
