#!/usr/bin/env python3
"""Writes tests/golden/sketches.tsv with a second implementation of the sketches defined in crates/sketch/src.

    pip install xxhash
    python3 tests/second/sketches.py > tests/golden/sketches.tsv

Written from the module documentation, for simplicity and not for speed. Characters are classified by the Unicode tables
of the Python that runs it. The texts below contain no character that is newer than Unicode 14.
"""

import unicodedata

import xxhash

import tables  # only the list of blocks, which is data that both implementations share

M64, M32 = (1 << 64) - 1, (1 << 32) - 1
PI = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
COUNT = 0x9E3779B97F4A7C15


def tokens(text):
    found, parts, single = [], [], False  # parts: the tokens that may still be extended

    def close():
        if parts:
            found.append("".join(parts).encode())
            parts.clear()

    for c in text:
        category = unicodedata.category(c)
        is_mark = category.startswith("M") or c in "\uff9e\uff9f"
        is_letter = not is_mark and (category.startswith("L") or category == "Nl")
        alone = is_letter and any(lo <= ord(c) <= hi for lo, hi, _ in tables.SPACELESS)
        if is_mark:
            if parts:
                parts.append(c.lower())
        elif is_letter or category in ("Nd", "No") or c == "_":
            if single or alone:
                close()
            parts.append(c.lower())
            single = alone
        else:
            close()
    close()
    return found


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def fold(a, b):
    return (a * b & M64) ^ (a * b >> 64)


def rotl(x, n):
    n %= 64
    return (x << n | x >> (64 - n)) & M64


def token_hash(token, seed):
    keys = [mix(seed ^ PI[0]), mix(seed ^ PI[1])]
    state = keys[0]
    pieces = [token[i : i + 16].ljust(16, b"\0") for i in range(0, len(token), 16)]
    for number, piece in enumerate(pieces):
        lo, hi = int.from_bytes(piece[:8], "little"), int.from_bytes(piece[8:], "little")
        if number == len(pieces) - 1:
            hi ^= len(token)
        state = fold(state ^ lo, keys[1] ^ hi)
    return state


def shingles(hashes, width):
    n = min(width, len(hashes))
    found = []
    for start in range(len(hashes) - n + 1 if n else 0):
        joined = n * COUNT & M64
        for i in range(n):
            joined ^= rotl(hashes[start + i], n - 1 - i)
        found.append(mix(joined))
    return found


def simhash(hashes):
    fingerprint = 0
    for bit in range(64):
        votes = sum(1 if x >> bit & 1 else -1 for x in hashes)
        fingerprint |= (votes > 0) << bit
    return fingerprint


def fill(x, j):
    key = mix((PI[2] + j) & M64) & M32
    y = ((x & M32) ^ key) * 0x85EBCA6B & M32
    y ^= y >> 15
    y = (y ^ x >> 32) * 0xC2B2AE35 & M32
    y ^= y >> 16
    return 1 << 31 | y >> 1


def signature(hashes, t):
    found = []
    for j in range(t if hashes else 0):
        mine = [x & 0x7FFFFFFF for x in hashes if (x >> 32) * t >> 32 == j]
        found.append(min(mine) if mine else min(fill(x, j) for x in hashes))
    return found


def features(minima, rows):
    groups = [minima[i : i + rows] for i in range(0, len(minima), rows)]
    return [
        xxhash.xxh3_64_intdigest(b"".join(m.to_bytes(4, "little") for m in group), seed=PI[3] + number)
        for number, group in enumerate(groups)
    ]


ENGLISH = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in "
    "want of a wife. However little known the feelings or views of such a man may be on his first entering a "
    "neighbourhood, this truth is so well fixed in the minds of the surrounding families, that he is "
    "considered as the rightful property of some one or other of their daughters."
)

TEXTS = [
    ("empty", ""),
    ("no tokens", " --- ... !? \n\t"),
    ("one token", "word"),
    ("one letter", "A"),
    ("one digit", "7"),
    ("rose", "a rose is a rose is a rose"),
    ("two tokens", "Hello, World!"),
    ("exactly five", "one two three four five"),
    ("case and punctuation", "The QUICK brown-fox; jumps_over 13 lazy dogs. Don't! 3.14"),
    ("token lengths", " ".join("abcdefghijklmnopqrstuvwxyz0123456789"[:n] for n in range(1, 37))),
    ("long token", "x" * 1000),
    ("english", ENGLISH),
    ("english, one word changed", ENGLISH.replace("wife", "spouse")),
    ("english, capitals", ENGLISH.upper()),
    ("numbers", " ".join(str(n) for n in range(1000))),
    ("repeated", "buffalo " * 64),
    ("german", "Die Straße führt über den Fluß; ÄÖÜ äöü ẞ"),
    ("turkish", "İstanbul'da IŞIK ışık İİ"),
    ("french, composed", "Élève à l'École déjà vu, cœur Ÿ"),
    ("french, decomposed", unicodedata.normalize("NFD", "Élève à l'École déjà vu, cœur Ÿ")),
    ("vietnamese", "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi."),
    ("greek", "Ὅλοι οἱ ἄνθρωποι ΓΕΝΝΙΟΥΝΤΑΙ ελεύθεροι και ίσοι στην αξιοπρέπεια· ΟΔΟΣ"),
    ("cyrillic", "Все люди рождаются свободными и равными в своём достоинстве и ПРАВАХ. Їжак Ѣ"),
    ("armenian and georgian", "Բոլոր մարդիկ ծնվում են ազատ ԵՒ ՀԱՎԱՍԱՐ; ყველა ადამიანი იბადება Ⴀ"),
    ("hebrew", "כָּל בְּנֵי אָדָם נוֹלְדוּ בְּנֵי חוֹרִין"),
    ("arabic", "يُولَدُ جميع الناس أحرارًا متساوين في الكرامة والحقوق، ١٢٣ و۴۵۶"),
    ("hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता १२३"),
    ("tamil", "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்"),
    ("thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน ๑๒๓ abc"),
    ("lao, khmer, myanmar", "ມະນຸດທຸກຄົນ មនុស្សទាំងអស់ လူတိုင်းသည်"),
    ("chinese", "人人生而自由，在尊严和权利上一律平等。Unicode 14 版 𠀀𠀁"),
    ("japanese", "すべての人間は、生まれながらにして自由であり、ｶﾞｷﾞ カ\u3099 タワー ２号"),
    ("korean", "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."),
    ("yi and bopomofo", "ꆈꌠꁱꂷ ㄅㄆㄇ ㆠ"),
    ("emoji", "I ❤\ufe0f 👩\u200d👩\u200d👧 and 1\ufe0f\u20e3 🇩🇪 👍🏽 ok"),
    ("combining marks", "e\u0301 \u0301e a\u0323\u0302b \u20dd x\u20dd "
     "Z\u0351\u036b\u0343a\u0363\u0368l\u034dg\u0321o\u0317"),
    ("spaces of every kind", "a\u00a0b\u2003c\u3000d\u200be\u2028f\u0085g\ufeffh"),
    ("letters that shrink or grow", "\u212aelvin \u2126 \u212b ȺȾ ⱾⱿ Ɐ"),
    ("beyond the basic plane", "𐐀𐐁 𞤀𞤁 𝐀𝟏 𓀀 𑀅"),
]

# Only here: the other scripts would take minutes for it.
LONG = ("ten megabytes without a space", "Ab9_é" * 1_666_667)

# Columns: words in a shingle, seed, bands, rows.
CHOICES = [(5, 0, 20, 6), (1, 0, 6, 14), (4, 2**64 - 1, 7, 3), (16, 42, 1, 1)]


def escape(text):
    """Escapes characters that are not visible, and the escape itself, as \\u{hex}. A long text is `\\repeat{n}part`."""
    if len(text) > 100_000:
        period = next(n for n in range(1, 100) if text == text[:n] * (len(text) // n))
        return f"\\repeat{{{len(text) // period}}}{escape(text[:period])}"
    plain = lambda c: c == " " or c != "\\" and unicodedata.category(c)[0] not in "CZM"
    return "".join(c if plain(c) else f"\\u{{{ord(c):x}}}" for c in text)


def main():
    print("# Sketches by tests/second/sketches.py, which says how to write this file again. Hashes are xxh3-64")
    print("# of the little-endian bytes; the document's tokens are hashed with a newline behind each.")
    print("name\ttext\twidth\tseed\tbands\trows\ttokens\ttokens_hash\tshingles\tdistinct"
          "\toccurrences_fingerprint\tdistinct_fingerprint\tsignature_hash\tfeatures_hash")
    for name, text in [*TEXTS[:-1], LONG, TEXTS[-1]]:
        found = tokens(text)
        for width, seed, bands, rows in CHOICES:
            every = shingles([token_hash(token, seed) for token in found], width)
            minima = signature(set(every), bands * rows)
            fingerprint = lambda hashes: f"{simhash(hashes):016x}" if hashes else "-"
            digest = lambda raw: f"{xxhash.xxh3_64_intdigest(raw):016x}"
            columns = [
                name, escape(text), width, seed, bands, rows,
                len(found), digest(b"".join(token + b"\n" for token in found)), len(every), len(set(every)),
                fingerprint(every), fingerprint(set(every)),
                digest(b"".join(m.to_bytes(4, "little") for m in minima)),
                digest(b"".join(f.to_bytes(8, "little") for f in features(minima, rows))),
            ]
            print("\t".join(map(str, columns)))


if __name__ == "__main__":
    main()
