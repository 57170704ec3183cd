#!/usr/bin/env python3
"""Writes tests/golden/idf.tsv: document frequency tables, their weights, and fingerprints with these weights, with a
second implementation of the definitions in format-spec.md ("Fingerprint" and "IDF table") and crates/sketch/src/idf.rs.

    pip install xxhash
    python3 tests/second/idf.py > tests/golden/idf.tsv
"""

import json
import zlib

import xxhash

import sketches  # tokens and shingles

VERSION, ROLE = 3, 5


def weight(documents, frequency):
    a, b = documents + 1, frequency + 1
    e = 0
    while b << e + 1 <= a:
        e += 1
    x = (a << 63) // (b << e)
    f = 0
    for _ in range(8):
        y = x * x >> 63
        if y >= 1 << 64:
            f, x = 2 * f + 1, y // 2
        else:
            f, x = 2 * f, y
    return 256 + 256 * e + f


def hashes(text, width, seed):
    found = sketches.tokens(text)
    return sketches.shingles([sketches.token_hash(token, seed) for token in found], width)


def little(number, length):
    return number.to_bytes(length, "little")


class Table:
    def __init__(self, texts, width, seed, min_df, entries_max):
        self.width, self.seed = width, seed
        counts, self.documents = {}, 0
        for text in texts:
            distinct = set(hashes(text, width, seed))
            self.documents += bool(distinct)
            for x in distinct:
                counts[x] = counts.get(x, 0) + 1
        ranked = sorted(counts, key=lambda x: (-counts[x], x))
        kept = [x for x in ranked[:entries_max] if counts[x] >= min_df]
        self.entries = {x: counts[x] for x in sorted(kept)}
        self.absent = min((counts[x] for x in counts if x not in self.entries), default=0)

    def file(self):
        text = (
            "tokens=words/14.0.0\nnormal-form=none\nstop-words=\nstemming=none\n"
            f"width={self.width}\nshingle-hash=fast\nseed={self.seed}\n"
        ).encode()
        body = little(self.documents, 8) + little(len(self.entries), 8)
        body += little(self.absent, 4) + little(len(text), 4) + text
        body += b"".join(little(x, 8) for x in self.entries)
        body += b"".join(little(df, 4) for df in self.entries.values())
        self.digest = xxhash.xxh3_128_intdigest(body)
        header = bytes.fromhex("895457580d0a1a0a") + little(VERSION, 2) + bytes([ROLE, 64]) + bytes(12)
        header += little(self.digest, 16) + little(xxhash.xxh3_128_intdigest(text), 16) + bytes(4)
        checksum = zlib.crc32(little(self.digest, 16) + bytes(8) + header)
        return header + little(checksum, 4) + body

    def fingerprint(self, text):
        every = hashes(text, self.width, self.seed)
        if not every:
            return "-"
        fingerprint = 0
        for bit in range(64):
            votes = 0
            for x in every:
                w = weight(self.documents, self.entries.get(x, self.absent))
                votes += w if x >> bit & 1 else -w
            fingerprint |= (votes > 0) << bit
        return f"{fingerprint:016x}"


COLLECTION = [
    "the rose is red and the violet is blue",
    "The violet is blue; the rose is red.",
    "a rose is a rose is a rose",
    "the tulip is neither red nor blue",
    "",
    "nothing here is red",
    "... !",
    "the the the",
]

# Texts whose shingles are all, partly, or not at all in the collection.
TEXTS = COLLECTION + [
    "a tulip is a tulip",
    "red red red blue rose",
    "Все люди рождаются свободными",
    " ".join(str(n % 37) for n in range(700)),
]

# Columns: width, seed, min_df, entries_max.
CHOICES = [(1, 0, 2, 1_000_000), (1, 0, 1, 1_000_000), (2, 7, 1, 6), (5, 2**64 - 1, 2, 1_000_000), (1, 3, 2, 3)]

DOCUMENTS = [0, 1, 2, 3, 9, 99, 1000, 1023, 65_535, 1_000_000, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def main():
    print("# By tests/second/idf.py, which says how to write this file again.")
    print("# weight: documents, frequency, weight. table: width, seed, min_df, entries_max, texts, the file's bytes.")
    print("# fingerprint: by the table above, text, fingerprint.")
    for n in DOCUMENTS:
        for df in sorted({df for df in (0, 1, 2, 3, 7, 50, 511, 4096, 10**6, 2**31, n // 3, n // 2, n - 1, n) if 0 <= df <= n}):
            print("weight", n, df, weight(n, df), sep="\t")
    for width, seed, min_df, entries_max in CHOICES:
        table = Table(COLLECTION, width, seed, min_df, entries_max)
        texts = json.dumps(COLLECTION)
        print("table", width, seed, min_df, entries_max, texts, table.file().hex(), sep="\t")
        for text in TEXTS:
            print("fingerprint", text, table.fingerprint(text), sep="\t")


if __name__ == "__main__":
    main()
