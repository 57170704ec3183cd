#!/usr/bin/env python3
"""Writes tests/golden/whole-weights.tsv: sketches of vectors whose weights are rounded to integer multiples of a unit,
with a second implementation of crates/sketch/src/whole.rs.

    pip install xxhash
    python3 tests/second/whole.py > tests/golden/whole-weights.tsv

Written from "Weights in minima, samples and sets" in format-spec.md, with fractions. Minima are those of
sketches.py and weighted.py, inverse document frequencies those of idf.py.
"""

import fractions

import xxhash

import idf
import sketches
import weighted
DOCUMENTS = 999


def count(weight, unit, times):
    """Returns the number of units (in 2^-16) of a weight times a table weight (in 2^-8), rounded to nearest, halves
    up."""
    units = fractions.Fraction(weight, 1 << 16) * fractions.Fraction(times, 256) / fractions.Fraction(unit, 1 << 16)
    return (2 * units.numerator + units.denominator) // (2 * units.denominator)


def elements(counts):
    for x, n in counts:
        yield x
        for k in range(1, n):
            yield xxhash.xxh3_64_intdigest(x.to_bytes(8, "little"), seed=k)


def vectors():
    state = 1
    for size in (1, 2, 5, 12, 30):
        vector = []
        for place in range(size):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            x = xxhash.xxh3_64_intdigest(bytes([size, place]))
            vector.append((x, 65_536 + (state >> 44), (state >> 20) % (DOCUMENTS + 1)))
        yield sorted(vector)


def main():
    print("# By tests/second/whole.py, which says how to write this file again. A vector has feature:weight:frequency, of")
    print("# 999 documents; without a table frequencies do not count. The set is xxh3-64 of the elements, ascending, 8")
    print("# little-endian bytes each; minima are those of the families one-permutation-filled and darts.")
    print("unit\ttable\tvector\telements\tset\tfilled\tdarts")
    for vector in vectors():
        for unit, table in ((65_536, 0), (131_072, 0), (8_192, 0), (21_845, 0), (65_536, 1), (32_768, 1), (256, 1)):
            if unit == 256 and len(vector) > 5:
                continue
            times = [idf.weight(DOCUMENTS, frequency) if table else 256 for _, _, frequency in vector]
            counts = [(x, count(weight, unit, by)) for (x, weight, _), by in zip(vector, times)]
            found = sorted(set(elements(counts)))
            digest = xxhash.xxh3_64_intdigest(b"".join(x.to_bytes(8, "little") for x in found))
            filled = sketches.signature(found, 16)
            darts = weighted.minima([(x, n << 16) for x, n in counts], 12)
            shown = [" ".join(f"{value:x}" for value in values) for values in (filled, darts)]
            written = " ".join(f"{x:x}:{weight}:{frequency}" for x, weight, frequency in vector)
            print(unit, table, written, len(found), f"{digest:016x}", *shown, sep="\t")


if __name__ == "__main__":
    main()
