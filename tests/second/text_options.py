#!/usr/bin/env python3
"""Writes tests/golden/text-options.tsv: tokens and shingles for each way of tokenizing texts, with a second
implementation. With `symbols`, writes those of tokens that keep symbols and of folded texts, which were added later.

    pip install xxhash==4.1.0 uniseg==0.10.1 snowballstemmer==2.0.0
    python3 tests/second/text_options.py > tests/golden/text-options.tsv
    python3 tests/second/text_options.py symbols > tests/golden/text-symbols.tsv

Written from format-spec.md, "Tokens" and "Shingles", and UAX #29. The header of the file lists the versions that made
it. They differ from the library's, so no text below contains a character or needs a rule that changed between them: NFKC
of an assigned character never changes, all characters are in Unicode 14 or older, and the boundaries that occur are the
same in Unicode 16 (uniseg) and 17.

Snowball stemmers change over time, too: the library uses those of about 2018, as does snowballstemmer 2.0.0.
"""

import importlib.metadata
import sys
import unicodedata

import snowballstemmer
import uniseg
import xxhash
from uniseg.sentencebreak import sentences
from uniseg.wordbreak import words

import sketches as golden

STEM_MAX, GAP_MAX = 255, 32


def kind(c):
    """Returns mark, word (a letter that is joined with others, a digit, _), alone (a letter that is a token), or
    None."""
    category = unicodedata.category(c)
    if category[0] == "M" or c in "\uff9e\uff9f":
        return "mark"
    if category[0] == "L" or category == "Nl":
        return "alone" if any(lo <= ord(c) <= hi for lo, hi, _ in golden.tables.SPACELESS) else "word"
    return "word" if category in ("Nd", "No") or c == "_" else None


def lower(text):
    return "".join(c.lower() if kind(c) else c for c in text)


def in_tokens(text):
    """Returns for each character whether it is part of a token."""
    found = []
    for c in text:
        k = kind(c)
        found.append(k in ("word", "alone") or k == "mark" and bool(found) and found[-1])
    return found


def plain_words(text):
    return [token.decode() for token in golden.tokens(text)]


def unicode_words(text):
    return [lower(word) for word in words(text) if any(kind(c) in ("word", "alone") for c in word)]


def characters(text, spaces):
    found = []
    between = False
    for c, inside in zip(text, in_tokens(text)):
        if not inside:
            between = True
            continue
        if between and spaces and found:
            found.append(" ")
        between = False
        found.extend(c.lower())
    return found


def shortened(line):
    kept, gap = [], 0
    for c, inside in zip(line, in_tokens(line)):
        gap = 0 if inside else gap + 1
        if gap <= GAP_MAX:
            kept.append(c)
    return "".join(kept)


def lines(text):
    found = [""]
    for c in text:
        found[-1] += c
        if c in "\n\r\u0085\u2028\u2029":
            found.append("")
    return found


WHITE_SPACE = set("\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") | set(map(chr, range(0x2000, 0x200B)))
INVISIBLE = set("\u00ad\u200b\u200c\u200d\u2060\ufeff")


def words_symbols(text):
    """Returns pairs of a flag, whether it is a word, and the token."""
    found, last = [], None
    for c in text:
        k = kind(c)
        if last is not None and (k == "mark" or k == last == "word"):
            found[-1][1] += c
            continue
        last = None if c in WHITE_SPACE else k if k in ("word", "alone") else "symbol"
        if last is not None:
            found.append([last != "symbol", c])
    return [(is_word, lower(token)) for is_word, token in found]


def raw(text):
    spaced = "".join(" " if c in WHITE_SPACE else c for c in text)
    return list(" ".join(part for part in spaced.split(" ") if part))


def folded(text, fold):
    if "marks" in fold:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = unicodedata.normalize("NFC", text)
    return text


def units(text, tokens, form, stop_words, stemming, fold=()):
    if "invisible" in fold:
        text = "".join(c for c in text if c not in INVISIBLE)
    if form == "nfkc":
        text = unicodedata.normalize("NFKC", text)
    text = folded(text, fold)
    stemmer = None if stemming == "none" else snowballstemmer.stemmer(stemming)

    def reduced(found):
        kept = [word for word in found if word not in stop_words]
        if not stemmer:
            return kept
        return [word if len(word.encode()) > STEM_MAX else stemmer.stemWord(word) or word for word in kept]

    if tokens == "words":
        return reduced(plain_words(text))
    if tokens == "unicode-words":
        return reduced(unicode_words(text))
    if tokens == "raw":
        return raw(text)
    if tokens == "words-symbols":
        kept = [(is_word, token) for is_word, token in words_symbols(text) if token not in stop_words]
        return [reduced([token])[0] if is_word else token for is_word, token in kept]
    if tokens in ("characters", "word-characters"):
        return characters(text, tokens == "characters")
    assert tokens == "sentences"
    whole = [reduced(plain_words(s)) for line in lines(text) for s in sentences(shortened(line))]
    return [" ".join(sentence) for sentence in whole if sentence]


def shingles(found, widths, seed):
    hashes = [golden.token_hash(unit.encode(), seed) for unit in found]
    fitting = [width for width in widths if width <= len(hashes)]
    if not fitting:
        return golden.shingles(hashes, len(hashes)) if hashes else []
    return [shingle for width in fitting for shingle in golden.shingles(hashes, width)]


NO = ("none", [], "none")

# Columns: tokens, normal form, stop words, stemming, widths, seed.
CHOICES = [
    ("words", *NO, [1, 2], 0),
    ("words", *NO, [2, 5, 16], 9),
    ("words", "nfkc", [], "none", [3], 0),
    ("words", "none", ["a", "de", "der", "in", "is", "of", "the", "и", "και", "は", "的"], "none", [2], 0),
    ("words", "nfkc", ["of", "the"], "english", [1, 2], 7),
    ("characters", *NO, [3], 0),
    ("characters", "nfkc", [], "none", [5, 9], 3),
    ("word-characters", *NO, [4], 0),
    ("word-characters", "nfkc", [], "none", [1, 16], 0),
    ("unicode-words", *NO, [2], 0),
    ("unicode-words", "nfkc", ["don't", "in"], "english", [1, 3], 1),
    ("sentences", *NO, [1], 0),
    ("sentences", "nfkc", ["a", "of", "the"], "english", [1, 2], 0),
]

# The same columns, and the folded characters.
SYMBOLS = [
    ("words-symbols", *NO, [1], 0, []),
    ("words-symbols", *NO, [2, 5], 3, []),
    ("words-symbols", "nfkc", [",", "the", "+"], "english", [3], 0, []),
    ("raw", *NO, [1, 9], 0, []),
    ("raw", "nfkc", [], "none", [5], 7, []),
    ("words", *NO, [2], 0, ["marks"]),
    ("words", *NO, [1], 0, ["invisible"]),
    ("words", "nfkc", ["cafe", "the"], "english", [1, 2], 1, ["invisible", "marks"]),
    ("characters", *NO, [3], 0, ["marks"]),
    ("words-symbols", *NO, [2], 0, ["invisible", "marks"]),
    ("raw", "nfkc", [], "none", [4], 0, ["invisible", "marks"]),
]

PROSE = (
    "Mr. Fox isn't IN. He paid 3.14 for it!  ... (Really?) “Yes, he did.” And U.S. law, e.g. this one, is o.k. "
    "Dr. Who came.\nA line without an end\r\nanother line. THEN connected dogs were running; nationalities differ? "
    "¿Qué? ¡Sí! 一。二三。“四？”"
)

TEXTS = golden.TEXTS + [
    ("sentences", PROSE),
    ("sentences, twice", PROSE + "\u2029" + PROSE),
    ("long gaps", "One" + " " * 31 + ". two" + "." * 40 + " Three" + " -" * 30 + ". four.\nFive" + "\u2003" * 33 + ". six"),
    ("long gaps of marks", "A." + "\u0301" * 40 + " B. e" + "\u0301" * 40 + ". C" + "-" * 32 + "!\u0301 D"),
    ("compatibility", "ﬁne ofﬁce Ａ１ｂ ｶﾞｷﾞ x² ½ № ™ ㎏ ﷺ 가각 ậ ậ \u212b … ẛ̣"),
    ("apostrophes and points", "don't it’s can't 3.14 1,000.5 a.b.c x:y co\u00adop rock'n'roll 'quoted' O'Neill's _id_"),
    ("kana", "ﾊﾝｶｸ カタカナ ひらがな 東京タワー2号 ｶﾅ-カナ"),
    ("no space for long", "ab" * 200 + "ing " + "ab" * 126 + "ing " + "é" * 126 + "ing"),
]

SYMBOL_TEXTS = [(name, text) for name, text in TEXTS if len(text) < 100_000] + [
    ("code", "if (a!=b) { x+=*p++; } // C++ & C#\r\n\treturn\v-1;\f\u0085"),
    ("emoji", "👍\ufe0f👍🏽 👩\u200d👩\u200d👧 ❤ ❤\ufe0f😡😡 1\ufe0f\u20e3 \u0301\u0302a \u0301"),
    ("white space", "\u3000\u2028a\u00a0\u1680\u2000b\u200a\u202f\u205f\u2029 \u180e\u200b c\x1c\x00 "),
    ("invisible", "\ufeffco\u00adop x\u200by\u200cz\u200d\u2060! e\u200d\u0301 \u00ac\u200e\u2061"),
    ("accents", "Crème BRÛLÉE cre\u0300me ёлка й Ελλάδα Việt e\u0323\u0302 ǭ o\u0304\u0328 ø ł İ ı ﬁancé \u212b \u1e9b\u0323 =\u0338"),
    ("points", "مُحَمَّد أحمد آن شَلوم שָׁלוֹם بِسْمِ \u0654 \u034f"),
    ("Indic and kana", "हिन्दी क़ \u0958 கோ கொ বাংলো ที่นี่ が か\u3099 ﾊﾞ 한국어 \u1112\u1161\u11ab\u302e"),
]

# Columns: language, words.
STEMS = [
    ("arabic", "الكتاب والمدرسة يكتبون المعلمون كتابها"),
    ("danish", "Undersøgelserne hestene løber venskaber"),
    ("dutch", "lichamelijkheid opglimpende boeken gelukkige"),
    ("english", "generously nationality flies dying skies ponies hopping organization y's falling controlled"),
    ("finnish", "taloissamme kirjoitettiin edellisten kaunistus"),
    ("french", "continuellement majestueusement chevaux nationalité finissons"),
    ("german", "Aufeinanderfolgenden Häuser kategorischen Straßen jährlich"),
    ("hungarian", "babakocsijáért házakban embereknek"),
    ("italian", "abbandonata propagazione pronunciamento gatti"),
    ("norwegian", "havnedistriktene opning venner husene"),
    ("portuguese", "quilométricas felicidade meninos correndo"),
    ("romanian", "abruptei copiilor frumoaselor oamenii"),
    ("russian", "Важнейшими свободными правами взволнованный"),
    ("spanish", "cheques torneado canciones rápidamente"),
    ("swedish", "jaktkarlens klostergården vänskapen hästarna"),
    ("turkish", "kitaplarımız evlerinizden arkadaşlarıyla"),
]


def main():
    digest = lambda raw: f"{xxhash.xxh3_64_intdigest(raw):016x}"
    version = importlib.metadata.version
    print("# Units and shingles by tests/second/text_options.py, which says how to write this file again. Digests are")
    print("# xxh3-64, of units with a newline behind each and of shingle hashes in order, 8 little-endian bytes each.")
    print(f"# Made with Python {sys.version.split()[0]} (Unicode {unicodedata.unidata_version}), uniseg {version('uniseg')}"
          f" (Unicode {uniseg.unidata_version}), snowballstemmer {version('snowballstemmer')}.")
    symbols = sys.argv[1:] == ["symbols"]
    print("tokens\tnormal-form\tstop-words\tstemming\twidth\tseed\t" + "fold\t" * symbols +
          "name\ttext\tunits\tunits_digest\tshingles\tshingles_digest")
    stems = [("stems, " + language, text, [("words", "none", [], language, [1], 0)]) for language, text in STEMS]
    every = [(name, text, CHOICES) for name, text in TEXTS] + stems
    if symbols:
        every = [(name, text, SYMBOLS) for name, text in SYMBOL_TEXTS]
    for name, text, choices in every:
        for tokens, form, stop_words, stemming, widths, seed, *fold in choices:
            found = units(text, tokens, form, set(stop_words), stemming, *fold)
            hashes = shingles(found, widths, seed)
            columns = [
                tokens, form, " ".join(sorted(stop_words)), stemming, "+".join(map(str, widths)), seed,
                *("+".join(one) or "none" for one in fold), name, golden.escape(text),
                len(found), digest("".join(unit + "\n" for unit in found).encode()),
                len(hashes), digest(b"".join(h.to_bytes(8, "little") for h in hashes)),
            ]
            print("\t".join(map(str, columns)))


if __name__ == "__main__":
    main()
