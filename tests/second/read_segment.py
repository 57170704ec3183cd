#!/usr/bin/env python3
"""A second reader of segment files, written from format-spec.md and sharing no code with the first.

    python3 tests/second/read_segment.py FILE...          all that a segment holds, as text
    python3 tests/second/read_segment.py --dump FILE      every byte with its meaning, as in the specification's last part

Needs only the standard library. Reads whole files and is slow. Checks everything that the specification says about a
segment, including the order of entries, the zeros in gaps and the identity; the first violation ends it with status 1.
tests/it/golden_files.rs compares its output with the library's.
"""

import itertools
import struct
import sys
import zlib

M32, M64, M128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1

HEADER_MAGIC, FOOTER_MAGIC = b"\x89TWX\r\n\x1a\n", b"\x8aTWX\r\n\x1a\n"
PAGE, ALIGNMENT, GROUP = 4096, 64, 16
NO_RANK, LIST = 0xFFFFFFFF, 1 << 31
KINDS = {1: "params", 2: "keys", 3: "ranks", 4: "design", 5: "hot", 6: "table", 7: "filter table", 8: "postings",
         9: "band", 10: "signatures", 11: "bottom", 12: "modular", 13: "values", 14: "stamps", 15: "fields", 16: "common",
         17: "prefixes", 18: "suffixes", 19: "part", 255: "checksums"}
CODECS = {1: "planes", 2: "compact", 3: "manku", 4: "plain"}
NESTED, HOT_ROWS, HOT_TIMES = 4, 4096, 8
MARK, SET, PRIORITY, CODE, FIELDS_MOST = 1, 2, 3, 4, 1 << 27
WIDTHS = 64, 128, 192, 256, 384, 512
CLASSES, COMMON, COMMON_MOST, SPREAD = 256, 32, 1 << 17, 0x9E3779B1


class Damaged(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Damaged(what)


def align(offset):
    return -(-offset // ALIGNMENT) * ALIGNMENT


def checksum(salt, offset, data):
    return zlib.crc32(data, zlib.crc32(salt.to_bytes(16, "little") + offset.to_bytes(8, "little")))


# Designs and permutations of bits. Bit 0 is the highest bit of a fingerprint.

BITS = list(range(64))


def cut(bits, count):
    """Returns the lengths of the blocks that partition `bits`, the longer ones first."""
    length, longer = divmod(len(bits), count)
    ends = [block * length + min(block, longer) for block in range(count + 1)]
    return [bits[start:end] for start, end in zip(ends, ends[1:])]


def led(first):
    return first + [bit for bit in BITS if bit not in first], len(first), 0


def shuffled(state):
    bits = list(BITS)
    for last in range(63, 0, -1):
        state = state + 0x9E3779B97F4A7C15 & M64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
        place = (z ^ z >> 31) * (last + 1) >> 64
        bits[last], bits[place] = bits[place], bits[last]
    return bits, state


def design(name):
    """Returns the tables of a design: the order of bits, the number of leading bits, and the minimal number probed."""
    kind, *numbers = name.split("-")
    numbers = [int(number) for number in numbers]
    need("-".join([kind, *map(str, numbers)]) == name, "a design spelled as it should be")
    tables = []
    if kind == "blocks" and len(numbers) == 1 and 1 <= numbers[0] <= 16:
        tables = [led(block) for block in cut(BITS, numbers[0])]
    elif kind == "choose" and len(numbers) == 2 and 2 <= numbers[1] < numbers[0] <= 16:
        tables = [led(sum(chosen, [])) for chosen in itertools.combinations(cut(BITS, numbers[0]), numbers[1])]
    elif kind == "nested" and len(numbers) == 2 and all(2 <= number <= 8 for number in numbers):
        for first in cut(BITS, numbers[0]):
            rest = [bit for bit in BITS if bit not in first]
            tables += [led(first + second) for second in cut(rest, numbers[1])]
    elif kind == "expansion" and not numbers:
        tables = [(BITS, 64, 64)]
    elif kind == "prefix" and len(numbers) == 1 and 1 <= numbers[0] <= 64:
        tables = [(BITS, numbers[0], numbers[0])]
    elif kind == "reversed" and len(numbers) == 1 and 1 <= numbers[0] <= 64:
        tables = [(order, numbers[0], numbers[0]) for order in (BITS, BITS[::-1])]
    elif kind == "random" and len(numbers) == 3 and 1 <= numbers[0] <= 64 and 1 <= numbers[1] <= 64:
        state, tables = numbers[2], [(BITS, numbers[1], numbers[1])]
        need(state <= M64, "a seed of 64 bits")
        for _ in range(1, numbers[0]):
            order, state = shuffled(state)
            tables.append((order, numbers[1], numbers[1]))
    need(1 <= len(tables) <= 64, "the name of a design")
    return tables


def permuted(fingerprint, order):
    """Returns the key of a fingerprint in a table with this order of bits."""
    digits = f"{fingerprint:064b}"
    return int("".join([digits[bit] for bit in order]), 2)


def entry_order(order, lead):
    leads = order[:lead]
    return BITS[:16] + [bit for bit in BITS[16:] if bit not in leads] + [bit for bit in BITS[16:] if bit in leads]


def prefix_bits(rows, most):
    return min(max(rows.bit_length() - 1 - 3, 0), most)


def code_lengths(counts):
    """Returns code lengths of at most 15 bits for positions with these frequencies, by package-merge."""
    symbols = sorted((count, position) for position, count in enumerate(counts) if count)
    lengths = [0] * 64
    if len(symbols) == 1:
        lengths[symbols[0][1]] = 1
        return lengths
    single = [(count, [int(position == one) for one in range(64)]) for count, position in symbols]
    items = single
    for _ in range(14):
        pairs = [(a[0] + b[0], [x + y for x, y in zip(a[1], b[1])]) for a, b in zip(items[::2], items[1::2])]
        items = sorted(single + pairs, key=lambda item: item[0])
    for _, inside in items[: max(2 * len(symbols) - 2, 0)]:
        lengths = [length + times for length, times in zip(lengths, inside)]
    return lengths


def codes(lengths):
    """Returns the canonical code as a map from length and code number to position."""
    code, number = {}, 0
    for length in range(1, 16):
        number *= 2
        for position in range(64):
            if lengths[position] == length:
                code[length, number] = position
                number += 1
    return code


# Fields, and the sections that find documents by their sets.


def set_bytes(count, high):
    """Returns the bytes of `count` hashes whose `high` highest bytes are stored in a bit map."""
    return count * (8 - high) + (-(-(count + (1 << 8 * high)) // 8) if high else 0)


def read_set(data):
    """Returns the hashes of a set."""
    need(len(data) >= 4, "the count of a set")
    count = int.from_bytes(data[:4], "little")
    high = min(range(3), key=lambda high: set_bytes(count, high))
    need(len(data) == 4 + set_bytes(count, high), f"the bytes of {count} hashes")
    low = 8 - high
    hashes = [int.from_bytes(data[at : at + low], "little") for at in range(4, 4 + count * low, low)]
    if high:
        bits = f"{int.from_bytes(data[4 + count * low :], 'little'):b}"[::-1]
        highs = [place - row for row, place in enumerate(place for place, bit in enumerate(bits) if bit == "1")]
        need(len(highs) == count and all(one < 1 << 8 * high for one in highs), "the high bytes of each hash")
        hashes = [one << 8 * low | rest for one, rest in zip(highs, hashes)]
    need(all(a < b for a, b in zip(hashes, hashes[1:])), "hashes of a set that ascend")
    return hashes


def weighs(params):
    """Returns whether shingles are weighted, in minima or as weighted sets ("Weights in minima, samples and sets")."""
    weights, table, unit = params.get("minhash-weights"), params.get("minhash-idf"), params.get("minhash-unit")
    need(weights in (None, "frequencies", "idf") and (weights == "idf") == (table is not None), "weights of minima")
    need(unit is None or weights and str(int(unit)) == unit and 256 <= int(unit) <= 131072, "a unit of weights")
    if weights == "idf" and unit is None:
        need(params["minhash"] == "darts" and "sets" not in params, "darts and no sets with weights by a table")
        need(params["bottom"] == params["modulus"] == "0", "no samples with weights by a table")
    if weights == "idf":
        need(params.get("idf", table) == table, "one table for votes and minima")
    need(weights is None or params["minhash"] != "none", "weights only of minima")
    return weights is not None or params["minhash"] == "darts"


def read_fields(data, sets, marks, priorities, code_bits=0):
    """Reads a document's fields in an index that keeps any of them: its mark, its set, its priority, and its code."""
    need(len(data) <= FIELDS_MOST, "fields within their limit")
    at, last, is_marked, hashes, priority, code = 0, 0, False, None, None, None
    while at < len(data):
        need(at + 5 <= len(data), "the head of a field")
        tag, length = struct.unpack_from("<BI", data, at)
        content = data[at + 5 : at + 5 + length]
        need(len(content) == length and tag > last, "consecutive fields with ascending tags")
        kept = {MARK: marks and not length, SET: sets, PRIORITY: priorities and length == 8,
                CODE: code_bits == 8 * length > 0}
        need(kept.get(tag, False), "a field that the parameters keep")
        if tag == MARK:
            is_marked = True
        elif tag == PRIORITY:
            priority = int.from_bytes(content, "little")
        elif tag == CODE:
            code = content
        else:
            hashes = read_set(content)
        at, last = at + 5 + length, tag
    need(sets == (hashes is not None), "a set of each document, if sets are kept")
    need((code_bits > 0) == (code is not None), "a code of each document, if codes are kept")
    return is_marked, hashes, priority, code


def code_bits_of(params):
    """Returns the number of bits of codes; 0 if none are kept."""
    if "codes" not in params:
        return 0
    bits, kept = int(params["codes"]), (params["simhash"], params["minhash"], params["bottom"], params["modulus"])
    need(bits in WIDTHS and kept == ("none", "none", "0", "0") and "sets" not in params, "codes without sketches")
    need(0 <= int(params["near-within"]) <= bits, "a radius of 0 to the number of bits")
    simhash = params.get("codes-simhash")
    need(simhash in (None, "occurrences", "distinct", "idf") and (bits > 64 or simhash is None), "weights of votes")
    need((simhash == "idf") == ("codes-idf" in params), "a table of the weights")
    return bits


def common_tags(sets):
    """Returns the tags that a writer lists as common, each with its class."""
    elements, classes = sum(map(len, sets)), {}
    if len(sets) < COMMON:
        return classes
    bits = min(max((max(elements, 1) - 1).bit_length(), 1), 18)
    counts = [0] * (1 << bits), [0] * (1 << bits)
    places = lambda tag: (tag >> (32 - bits), (tag * SPREAD & M32) >> (32 - bits))
    tags = [one >> 32 for hashes in sets for one in hashes]
    for tag in tags:
        for table, place in zip(counts, places(tag)):
            table[place] = min(table[place] + 1, M32)
    for tag in tags:
        count = min(table[place] for table, place in zip(counts, places(tag)))
        if count >= max(COMMON, elements >> 16) and len(classes) < COMMON_MOST:
            classes[tag] = count.bit_length()
    return classes


def prefix_tags(hashes, classes, threshold):
    """Returns the distinct tags of the elements by which a set is found."""
    least = max(int(threshold * len(hashes)) - 2, 0)
    while hashes and least / len(hashes) < threshold:
        least += 1
    length = len(hashes) + 1 - least if hashes else 0
    ordered = sorted(hashes, key=lambda one: (classes.get(one >> 32, 0), one))
    return sorted({one >> 32 for one in ordered[:length]})


# 128-bit XXH3 with seed 0, from the public description of the algorithm. Inputs have at least 6 bytes here, so the case
# of 0 to 3 bytes is omitted.

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P32 = [0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D]
P64 = [0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5]


def u64(data, at):
    return int.from_bytes(data[at : at + 8], "little")


def swap(x):
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def fold(a, b):
    return (a * b & M64) ^ (a * b >> 64)


def avalanche(x):
    x = (x ^ x >> 37) * 0x165667919E3779F9 & M64
    return x ^ x >> 32


def xxh3_128(data):
    n = len(data)
    need(n >= 4, "XXH3 of fewer than 4 bytes")
    if n <= 8:
        keyed = (u64(data[:4], 0) | u64(data[-4:], 0) << 32) ^ u64(SECRET, 16) ^ u64(SECRET, 24)
        product = keyed * (P64[0] + (n << 2) & M64)
        lo, hi = product & M64, product >> 64
        hi = hi + (lo << 1) & M64
        lo ^= hi >> 3
        lo = (lo ^ lo >> 35) * 0x9FB21C651E98DF25 & M64
        lo ^= lo >> 28
        return avalanche(hi) << 64 | lo
    if n <= 16:
        lo, hi = u64(data, 0), u64(data, n - 8)
        product = (lo ^ hi ^ u64(SECRET, 32) ^ u64(SECRET, 40)) * P64[0]
        low, high = product & M64, product >> 64
        low = low + (n - 1 << 54) & M64
        hi ^= u64(SECRET, 48) ^ u64(SECRET, 56)
        high = high + hi + (hi & M32) * (P32[1] - 1) & M64
        low ^= swap(high)
        product = low * P64[1]
        return avalanche((product >> 64) + high * P64[1] & M64) << 64 | avalanche(product & M64)
    if n <= 240:
        def mix16(at, secret):
            return fold(u64(data, at) ^ u64(SECRET, secret), u64(data, at + 8) ^ u64(SECRET, secret + 8))

        def mix32(lo, hi, one, two, secret):
            lo = lo + mix16(one, secret) & M64 ^ (u64(data, two) + u64(data, two + 8) & M64)
            hi = hi + mix16(two, secret + 16) & M64 ^ (u64(data, one) + u64(data, one + 8) & M64)
            return lo, hi

        lo, hi = n * P64[0] & M64, 0
        if n <= 128:
            for i in reversed(range((n - 1) // 32 + 1)):
                lo, hi = mix32(lo, hi, 16 * i, n - 16 * (i + 1), 32 * i)
        else:
            for i in range(n // 32):
                if i == 4:
                    lo, hi = avalanche(lo), avalanche(hi)
                lo, hi = mix32(lo, hi, 32 * i, 32 * i + 16, 32 * i if i < 4 else 3 + 32 * (i - 4))
            if n < 160:
                lo, hi = avalanche(lo), avalanche(hi)
            lo, hi = mix32(lo, hi, n - 16, n - 32, 136 - 17 - 16)
        high = -avalanche(lo * P64[0] + hi * P64[3] + n * P64[1] & M64) & M64
        return high << 64 | avalanche(lo + hi & M64)

    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]

    def accumulate(at, secret):
        for i in range(8):
            value = u64(data, at + 8 * i)
            key = value ^ u64(SECRET, secret + 8 * i)
            acc[i ^ 1] = acc[i ^ 1] + value & M64
            acc[i] = acc[i] + (key & M32) * (key >> 32) & M64

    for stripe in range((n - 1) // 64):
        if stripe and stripe % 16 == 0:
            acc[:] = [(a ^ a >> 47 ^ u64(SECRET, 128 + 8 * i)) * P32[0] & M64 for i, a in enumerate(acc)]
        accumulate(64 * stripe, 8 * (stripe % 16))
    if (n - 1) // 64 % 16 == 0:
        acc[:] = [(a ^ a >> 47 ^ u64(SECRET, 128 + 8 * i)) * P32[0] & M64 for i, a in enumerate(acc)]
    accumulate(n - 64, 192 - 64 - 7)

    def merge(secret, start):
        pairs = (fold(acc[2 * i] ^ u64(SECRET, secret + 16 * i), acc[2 * i + 1] ^ u64(SECRET, secret + 16 * i + 8))
                 for i in range(4))
        return avalanche(start + sum(pairs) & M64)

    return merge(192 - 64 - 11, ~(n * P64[1]) & M64) << 64 | merge(11, n * P64[0] & M64)


class Segment:
    """A segment file. `notes` collects the (offset, length, meaning) of all bytes read, for the dump."""

    def __init__(self, data):
        self.data, self.notes = data, []
        self.read_ends()
        self.read_contents()
        self.read_pages()
        self.read_params()
        self.read_sections()
        self.check_identity()

    def take(self, offset, layout, *names):
        """Unpacks consecutive numbers, and notes the meaning of each; a name with a colon requests hexadecimal
        output."""
        values, at = struct.unpack_from("<" + layout, self.data, offset), offset
        for kind, name, value in zip(layout.replace("16s", "S").replace("8s", "M").replace("7s", "Z"), names, values):
            size = {"S": 16, "M": 8, "Z": 7}.get(kind) or struct.calcsize("<" + kind)
            shown = f"{value:#0{2 * size + 2}x}" if name.endswith(":") and size < 7 else value
            self.note(at, size, name if isinstance(value, bytes) else f"{name} {shown}")
            at += size
        return values

    def note(self, offset, length, meaning):
        if length:
            self.notes.append((offset, length, meaning))

    def zeros(self, start, end):
        need(not any(self.data[start:end]), f"zeros from {start} to {end}")
        self.note(start, end - start, "padding")

    def read_ends(self):
        data = self.data
        need(len(data) >= 128, "a header and a footer")
        magic, version, role, bits, incompatible, read_only, compatible, salt, params_digest, reserved, crc = self.take(
            0, "8sHBBIII16s16sII", "header: magic", "version", "role", "bits of a fingerprint",
            "incompatible features", "read-only-compatible features", "compatible features", "salt",
            "digest of the parameters", "reserved", "checksum of 0..60:")
        need(magic == HEADER_MAGIC, "the magic of a header")
        self.salt, self.params_digest = int.from_bytes(salt, "little"), int.from_bytes(params_digest, "little")
        need(crc == checksum(self.salt, 0, data[:60]), "the checksum of the header")
        need((version, role, bits) == (3, 1, 64), "version 3, role 1, 64 bits")
        need(incompatible & ~65526 == 0 and read_only == 0, "no features that are not known")
        self.features = incompatible
        need(reserved == 0, "a reserved field of zero")
        del compatible

        self.footer = at = len(data) - 64
        (magic, length, self.contents, self.entries, contents_crc, self.sums_crc, reserved, self.documents,
         self.distinct, reserved_too, crc) = self.take(
            at, "8sQQIIIIQQII", "footer: magic", "length of the file", "offset of the table of contents",
            "entries in it", "its checksum:", "checksum of the checksums:", "reserved", "documents",
            "distinct fingerprints", "reserved", "checksum of the footer's first 60 bytes:")
        need(magic == FOOTER_MAGIC, "the magic of a footer")
        need(crc == checksum(self.salt, at, data[at : at + 60]), "the checksum of the footer")
        need(length == len(data), "the length of the file")
        need((reserved, reserved_too) == (0, 0), "reserved fields of zero")
        need(self.contents + 32 * self.entries == at, "a table of contents up to the footer")
        need(contents_crc == checksum(self.salt, self.contents, data[self.contents : at]), "its checksum")
        need(self.distinct <= self.documents <= 1 << 30, "as many documents as fit a segment")

    def read_contents(self):
        self.sections, end, last = {}, 64, (0, 0)
        for row in range(self.entries):
            at = self.contents + 32 * row
            kind, index, codec, reserved, offset, length, rows = struct.unpack_from("<HHHHQQQ", self.data, at)
            name = KINDS.get(kind)
            self.note(at, 8, f"contents: {name} {index}, codec {codec}")
            for place, what in enumerate([f"its offset {offset}", f"length {length}", f"rows {rows}"]):
                self.note(at + 8 + 8 * place, 8, what)
            need(name is not None, f"a known kind, not {kind}")
            need(reserved == 0, "a reserved field of zero")
            need((kind, index) > last, "sections in ascending order")
            need(offset == align(end) and offset + length <= self.contents, "sections that tile the file")
            self.zeros(end, offset)
            self.sections[name, index] = (codec, offset, length, rows)
            last, end = (kind, index), offset + length
        need(last == (255, 0), "the checksums as last section")
        need(align(end) == self.contents, "the table of contents after the last section")
        self.zeros(end, self.contents)

    def section(self, name, index, codecs, rows=None):
        need((name, index) in self.sections, f"a section {name} {index}")
        codec, offset, length, found = self.sections[name, index]
        need(codec in codecs, f"a known codec of {name}")
        need(rows is None or rows == found, f"{rows} rows of {name} {index}")
        self.seen.add((name, index))
        return codec, offset, length, found

    def read_pages(self):
        self.seen = set()
        _, offset, length, rows = self.section("checksums", 0, [1])
        need(length == 4 * rows and rows == -(-offset // PAGE), "a checksum for each page")
        need(self.sums_crc == checksum(self.salt, offset, self.data[offset : offset + length]), "their checksum")
        for page in range(rows):
            start, end = page * PAGE, min(offset, page * PAGE + PAGE)
            (crc,) = self.take(offset + 4 * page, "I", f"checksum of {start}..{end}:")
            need(crc == checksum(self.salt, start, self.data[start:end]), f"the checksum of page {page}")

    def read_params(self):
        _, offset, length, _ = self.section("params", 0, [1])
        text = self.data[offset : offset + length]
        need(xxh3_128(text) == self.params_digest, "the digest of the parameters")
        self.params, at = {}, offset
        need(text.endswith(b"\n"), "lines, each ended by a line feed")
        for line in text.split(b"\n")[:-1]:
            self.note(at, len(line) + 1, f"params: {line.decode()}")
            name, equals, value = line.decode().partition("=")
            need(equals and name not in self.params, "a line name=value for each parameter")
            self.params[name] = value
            at += len(line) + 1

    def read_sections(self):
        self.read_keys()
        self.ranks = self.fingerprints = None
        self.lists, self.bands, self.signatures = [], [], None
        self.feature_bits = int(self.params.get("feature-bits", 32))
        if self.params["simhash"] != "none":
            self.read_tables()
            self.read_postings()
        else:
            need(self.distinct == 0, "no fingerprints")
        if self.params["minhash"] != "none":
            for index in range(1, int(self.params["bands"]) + 1):
                self.read_band(index)
            bits = int(self.params["signature-bits"])
            minima = int(self.params["bands"]) * int(self.params["rows"])
            if bits:
                self.read_signatures(-(-minima * bits // 8), minima * bits)
        self.samples = {}
        for name, kept, most in ("bottom", "bottom", int(self.params["bottom"])), ("modular", "modulus", 65535):
            if self.params[kept] != "0":
                self.samples[name] = self.read_samples(name, most)
        self.values = self.read_values() if "values" in self.params else None
        self.stamps = self.read_stamps() if "expire-after" in self.params else None
        self.fields = self.common = self.prefixes = self.suffixes = None
        has_sets, has_marks, has_priorities = (name in self.params for name in ("sets", "marks", "priorities"))
        code_bits = code_bits_of(self.params)
        if has_sets or has_marks or has_priorities or code_bits:
            self.read_fields(has_sets, has_marks, has_priorities, code_bits)
        if has_sets:
            self.read_prefixes()
        self.parts = self.read_parts(code_bits) if self.features & 16384 else []
        threshold, radius = self.params.get("threshold", "0.8"), self.params.get("near-within")
        need(threshold == "none" or 0 < float(threshold) <= 1, "a threshold above 0 and up to 1, or none")
        need(radius in (None, "none") or 0 <= int(radius) <= (code_bits or 10), "a radius of 0 to 10, or none")
        need("suffixes" not in self.params or has_sets, "suffixes only with sets")
        for name in ("sets", "suffixes", "marks", "priorities", "values"):
            need(self.params.get(name) in (None, "kept"), f"{name} that are kept, or no such line")
        fields = 256 * (has_sets or has_marks or has_priorities or code_bits > 0) + 512 * has_priorities
        fields |= 8192 * (code_bits > 0) + 32768 * ("codes-simhash" in self.params)
        fields |= 4096 * ("suffixes" in self.params)
        attached = 2 * (self.values is not None) + 4 * (self.stamps is not None)
        narrow = 32 * ("feature-bits" in self.params)
        text = 64 * (self.params["tokens"].split("/")[0] in ("words-symbols", "raw") or "fold" in self.params)
        text |= 2048 * ("boilerplate" in self.params)
        near = 128 * ("threshold" in self.params or "near-within" in self.params)
        weights = 1024 * weighs(self.params)
        need(self.features & ~(16 | 16384 * (code_bits > 0)) == attached + narrow + text + near + fields + weights, "the features of the parameters")
        need(1 <= self.feature_bits <= (31 if narrow else 32), "1 to 31 bits of a feature, or no such line")
        need(self.features & 16 == 0 or self.params["minhash"] != "none", "packed bands only where there are some")
        need(self.seen == set(self.sections), "no other sections")

    def read_keys(self):
        if self.params["key"] == "u64":
            _, offset, length, rows = self.section("keys", 0, [1], self.documents)
            base, width, reserved = self.take(offset, "QB7s", "keys: smallest", "bytes of a difference", "reserved")
            need(width <= 8 and not any(reserved) and length == 16 + rows * width, "a frame of keys")
            self.keys = []
            for row in range(rows):
                at = offset + 16 + row * width
                self.keys.append(base + (int.from_bytes(self.data[at : at + width], "little") if width else row))
                self.note(at, width, f"keys: {self.keys[-1]}")
            need(not self.keys or (self.keys[0] == base and self.keys[-1] <= M64), "keys of 64 bits")
            span = self.keys[-1] - base if rows else 0
            least = 0 if span == max(rows, 1) - 1 else (span.bit_length() + 7) // 8
            need(width == least, "the least width")
        else:
            _, offset, length, rows = self.section("keys", 0, [2], self.documents)
            groups = -(-rows // GROUP)
            starts = self.take(offset, f"{'Q' * (groups + 1)}", *[f"keys: group {g} at" for g in range(groups)],
                               "keys: bytes of groups")
            base = offset + 8 * (groups + 1)
            need(starts[0] == 0 and base + starts[-1] == offset + length, "groups that fill the section")
            self.keys, at = [], base
            for ordinal in range(rows):
                start = at
                if ordinal % GROUP == 0:
                    need(at == base + starts[ordinal // GROUP], "consecutive groups")
                    shared, previous = 0, b""
                else:
                    shared, at = self.varint(at)
                    previous = self.keys[-1]
                more, at = self.varint(at)
                need(shared <= len(previous), "a shared part no longer than the key before")
                key = previous[:shared] + self.data[at : at + more]
                at += more
                need(1 <= len(key) <= 65535, "a key of 1 to 65535 bytes")
                need(ordinal % GROUP == 0 or shared == common(previous, key), "as much shared as there is")
                self.keys.append(key)
                self.note(start, at - start, f"keys: {shared} shared, {more} more: {key.decode(errors='replace')}")
            need(at == offset + length, "the end of the keys")
        need(all(a < b for a, b in zip(self.keys, self.keys[1:])), "keys in ascending order")

    def varint(self, at):
        value = 0
        for shift in (0, 7, 14):
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                need(value <= 0xFFFF and (byte or not shift), "a short length")
                return value, at
        raise Damaged("a length of three bytes")

    def directory(self, offset, rows, bits, name):
        """Returns the buckets at the start of a section: first row and number of rows of each, and the directory's
        end."""
        starts = self.take(offset, "I" * ((1 << bits) + 1),
                           *[f"{name}: bucket {b:#x} from row" for b in range(1 << bits)], f"{name}: rows in all")
        need(starts[0] == 0 and starts[-1] == rows, "a directory of all rows")
        need(all(a <= b for a, b in zip(starts, starts[1:])), "a directory that ascends")
        return starts, 4 * len(starts)

    def place(self, offset, at, size):
        """Returns the start of a part of `size` bytes after one that ends at `at`; an empty part takes no space."""
        start = align(at) if size else at
        self.zeros(offset + at, offset + start)
        return start

    def plane(self, offset, at, rows, layout, meaning):
        start = self.place(offset, at, rows)
        if rows:
            self.take(offset + start, layout * rows, *[meaning(row) for row in range(rows)])
        size = struct.calcsize("<" + layout)
        return struct.unpack_from("<" + layout * rows, self.data, offset + start), start + size * rows

    def read_tables(self):
        _, offset, length, rows = self.section("ranks", 0, [1], self.documents)
        need(length == 4 * rows, "4 bytes a rank")
        self.ranks = self.take(offset, "I" * rows, *[f"ranks: of document {o}" for o in range(rows)])
        _, offset, length, rows = self.section("design", 0, [1])
        need(length == rows <= 64, "the name of a design")
        name = self.data[offset : offset + length].decode("ascii")
        self.note(offset, length, f"design: {name}")
        need(self.params["tables"] in ("auto", "small", "fast", name), "the design that the parameters name")
        self.design, codecs = name, []
        for index, (order, lead, least) in enumerate(design(name), 1):
            kind = "table" if index == 1 or ("table", index) in self.sections else "filter table"
            codec, offset, length, rows = self.section(kind, index, [1, 2, 3, 4] if kind == "table" else [1, 2, 3],
                                                       self.distinct)
            codecs.append(CODECS[codec] if kind == "table" else str(codec + 1))
            if kind == "table":
                read = getattr(self, f"read_{CODECS[codec]}")
                keys, end = read(offset, rows, lead, f"table {index}")
                need(all(a < b for a, b in zip(keys, keys[1:])), f"keys of table {index} that ascend")
                if index == 1:
                    self.fingerprints = keys
                need(keys == sorted(permuted(f, order) for f in self.fingerprints), "the fingerprints of table 1")
            else:
                end = self.read_partial(offset, rows, order, lead, codec + 1, f"filter table {index}")
            need(end == length, f"the length of {kind} {index}")
            self.check_hot(index, order, max(prefix_bits(rows, lead), least))
        need(len(set(codecs[1:])) <= 1 and (len(codecs) == 1 or codecs[1].isdigit() or codecs[1] == codecs[0]),
             "one codec of all tables but the first: its own, or a partial one")
        asked = self.params["codec"].split("+")
        need(asked == ["auto"] or codecs == [asked[0], *asked[-1:] * (len(codecs) - 1)],
             "the codec that the parameters name")

    def read_planes(self, offset, rows, lead, name):
        bits = prefix_bits(rows, lead)
        starts, at = self.directory(offset, rows, bits, name)
        prefixes = [prefix for prefix in range(1 << bits) for _ in range(starts[prefix], starts[prefix + 1])]
        if bits < 16:
            first, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: bits 1 to 16 of row {row}:")
            need([bits16 >> (16 - bits) for bits16 in first] == prefixes, "keys in the bucket of their prefix")
        else:
            first = [prefix >> (bits - 16) for prefix in prefixes]
        second, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: bits 17 to 32 of row {row}:")
        rest, at = self.plane(offset, at, rows, "I", lambda row: f"{name}: bits 33 to 64 of row {row}:")
        keys = [a << 48 | b << 32 | c for a, b, c in zip(first, second, rest)]
        need([key >> (64 - bits) for key in keys] == prefixes, "keys in the bucket of their prefix")
        return keys, at

    def read_plain(self, offset, rows, _, name):
        bits = prefix_bits(rows, 16)
        starts, at = self.directory(offset, rows, bits, name)
        keys, at = self.plane(offset, at, rows, "Q", lambda row: f"{name}: row {row}")
        prefixes = [prefix for prefix in range(1 << bits) for _ in range(starts[prefix], starts[prefix + 1])]
        need([key >> (64 - bits) for key in keys] == prefixes, "keys in the bucket of their prefix")
        return list(keys), at

    def packed(self, offset, at, size, meaning):
        """Returns a part of complete words as one number, whose lowest bit is bit 0 of byte 0."""
        start = self.place(offset, at, size)
        self.note(offset + start, size, meaning)
        return int.from_bytes(self.data[offset + start : offset + start + size], "little"), start + size

    def read_compact(self, offset, rows, _, name):
        h = max(rows.bit_length() - 1, 0)
        prefix, width = max(h - 6, 0), 32 - h
        starts, at = self.directory(offset, rows, prefix, name)
        total = rows + (1 << h)
        stream, at = self.packed(offset, at, -(-total // 64) * 8, f"{name}: stream")
        first, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: first of row {row}:")
        second, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: second of row {row}:")
        rest, at = self.packed(offset, at, (-(-rows * width // 64) + 1) * 8, f"{name}: rest")
        need(rest >> (rows * width) == 0, "zeros after the last row")
        samples, at = self.plane(offset, at, (total - 1) // 4096, "I", lambda s: f"{name}: rows before bit {4096 * s + 4096}")
        # Each one bit of the stream is a row: the bit at p with i ones before it is row i, whose high part is p - i.
        ones = [place for place, bit in enumerate(f"{stream:b}"[::-1]) if bit == "1"]
        need(len(ones) == rows and stream >> total == 0, "a one for each row")
        highs = [place - row for row, place in enumerate(ones)]
        need(not highs or highs[-1] < 1 << h, "a zero after the rows of the last high")
        need(list(samples) == [sum(one < bit for one in ones) for bit in range(4096, total, 4096)], "samples")
        prefixes = [high >> (h - prefix) for high in highs]
        need(all(starts[p] <= row < starts[p + 1] for row, p in enumerate(prefixes)), "the directory of the highs")
        rests = [rest >> (row * width) & ((1 << width) - 1) for row in range(rows)]
        return [((high << 16 | a) << 16 | b) << width | c for high, a, b, c in zip(highs, first, second, rests)], at

    def read_manku(self, offset, rows, _, name):
        (count,) = self.take(offset, "Q", f"{name}: blocks")
        nibbles = self.data[offset + 8 : offset + 40]
        self.note(offset + 8, 32, f"{name}: lengths of the codes of positions 0 to 63")
        self.zeros(offset + 40, offset + 64)
        lengths = [nibbles[position // 2] >> position % 2 * 4 & 15 for position in range(64)]
        code = codes(lengths)
        need(count <= rows and (count == 0) == (rows == 0), "blocks that have rows")
        lasts, at = self.plane(offset, 64, count, "Q", lambda block: f"{name}: last value of block {block}")
        firsts, at = self.plane(offset, at, count + 1, "I", lambda block: f"{name}: first row of block {block}")
        need(firsts[0] == 0 and firsts[-1] == rows and all(a < b for a, b in zip(firsts, firsts[1:])), "blocks of rows")
        at = self.place(offset, at, 1024 * count)
        keys, counts, room = [], [0] * 64, 0
        for block in range(count):
            start = offset + at + 1024 * block
            self.note(start, 1024, f"{name}: block {block}")
            whole = int.from_bytes(self.data[start : start + 1024], "big")
            take = lambda bit, length: whole >> (8192 - bit - length) & ((1 << length) - 1)
            bit = 64
            first = take(0, 64)
            if keys:
                position = (keys[-1] ^ first).bit_length() - 1
                need(position >= 0 and lengths[position], "a difference that has a code")
                need(lengths[position] + position > room, "a value that does not fit into the block before")
                counts[position] += 1
            keys.append(first)
            for _ in range(firsts[block] + 1, firsts[block + 1]):
                length = next((n for n in range(1, 16) if (n, take(bit, n)) in code), None)
                need(length is not None, "a code")
                position = code[length, take(bit, length)]
                need(keys[-1] >> position & 1 == 0, "a difference in a bit that was 0")
                bit += length
                keys.append((keys[-1] >> position | 1) << position | take(bit, position))
                bit += position
                counts[position] += 1
                need(bit <= 8192, "values within the block")
            room = 8192 - bit
            need(whole & ((1 << room) - 1) == 0, "zeros after the last value of a block")
            need(keys[-1] == lasts[block], "the last value of a block")
        need(lengths == code_lengths(counts), "the code that these differences ask for")
        return keys, at + 1024 * count

    def read_partial(self, offset, rows, order, lead, width, name):
        bits = prefix_bits(rows, lead)
        starts, at = self.directory(offset, rows, bits, name)
        pointers, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: pointer of row {row}:")
        filters = [0] * rows
        if width > 2:
            filters, at = self.plane(offset, at, rows, {3: "B", 4: "H"}[width], lambda row: f"{name}: filter of row {row}:")
        entry = entry_order(order, lead)
        expected = sorted((permuted(f, order) >> (64 - bits), permuted(f, entry) >> (64 - 8 * width))
                          for f in self.fingerprints)
        prefixes = [prefix for prefix in range(1 << bits) for _ in range(starts[prefix], starts[prefix + 1])]
        entries = [a << (8 * width - 16) | b for a, b in zip(pointers, filters)]
        need(list(zip(prefixes, entries)) == expected, f"{name} as table 1 asks for")
        return at

    def check_hot(self, index, order, bits):
        """Checks that the hot buckets of a table equal, byte by byte, those that table 1 requires."""
        rows, buckets = self.distinct, {}
        if rows > HOT_ROWS and bits <= prefix_bits(rows, 64):
            for rank, fingerprint in enumerate(self.fingerprints):
                key = permuted(fingerprint, order)
                buckets.setdefault(key >> (64 - bits), []).append((key & ((1 << (64 - bits)) - 1), rank))
            buckets = {prefix: members for prefix, members in sorted(buckets.items())
                       if len(members) > HOT_ROWS and len(members) > HOT_TIMES * (rows >> bits)}
        if not buckets:
            need(("hot", index) not in self.sections, f"no hot buckets of table {index}")
            return
        _, offset, length, _ = self.section("hot", index, [1], sum(map(len, buckets.values())))
        width, parts, before = 64 - bits, [b"", b"", b"", b""], 0
        for prefix, members in buckets.items():
            parts[0] += struct.pack("<QQQ", prefix, before, len(members))
            before += len(members)
            for block in cut(BITS[:width], NESTED):
                lead = prefix_bits(len(members), len(block))
                turned = lambda rest: (rest << block[0] | rest >> (width - block[0])) & ((1 << width) - 1)
                entries = sorted((turned(rest) << bits, rank) for rest, rank in members)
                entries = sorted((key >> (64 - lead), (key << lead & M64) >> 48, rank) for key, rank in entries)
                starts = [sum(entry[0] < leads for entry in entries) for leads in range((1 << lead) + 1)]
                parts[1] += struct.pack(f"<{len(starts)}I", *starts)
                parts[2] += struct.pack(f"<{len(entries)}H", *[entry[1] for entry in entries])
                parts[3] += struct.pack(f"<{len(entries)}I", *[entry[2] for entry in entries])
        expected = b""
        for part, name in zip(parts, ("buckets", "directories", "filters", "ranks")):
            start = self.place(offset, len(expected), len(part))
            expected += bytes(start - len(expected)) + part
            self.note(offset + start, len(part), f"hot {index}: {name}")
        need(self.data[offset : offset + length] == expected, f"the hot buckets of table {index}")

    def read_postings(self):
        _, offset, length, rows = self.section("postings", 0, [1], self.distinct)
        entries = self.take(offset, "I" * rows, *[f"postings: of rank {rank}:" for rank in range(rows)])
        place, found = 0, [NO_RANK] * self.documents
        for rank, entry in enumerate(entries):
            ordinals = [entry]
            if entry & LIST:
                need(entry == LIST | place, "lists in the order of ranks, without gaps")
                at = offset + 4 * rows + 4 * place
                (count,) = self.take(at, "I", f"postings: count of the list of rank {rank}:")
                need(2 <= count <= self.documents and at + 4 + 4 * count <= offset + length, "a list of documents")
                ordinals = list(self.take(at + 4, "I" * count, *["postings: document"] * count))
                need(all(a < b for a, b in zip(ordinals, ordinals[1:])), "ordinals that ascend")
                place += 1 + count
            self.lists.append(ordinals)
            for ordinal in ordinals:
                need(ordinal < self.documents and found[ordinal] == NO_RANK, "each document in one list")
                found[ordinal] = rank
        need(length == 4 * (rows + place), "the length of the postings")
        need(tuple(found) == self.ranks, "ranks that are those of the postings")

    def read_band(self, index):
        is_packed = self.features & 16 != 0
        entries = self.read_entries("band", index, is_packed, self.feature_bits, self.documents, "document")
        documents = sorted(ordinal for _, ordinal in entries)
        need(len(set(documents)) == len(documents), "each document once")
        need(not self.bands or documents == sorted(o for _, o in self.bands[0]), "the documents of the first band")
        self.bands.append(entries)

    def read_parts(self, bits):
        count = sum(1 for kind, _ in self.sections if kind == "part")
        need(0 < count <= bits and -(-bits // count) <= 32, "parts of 1 to 32 bits")
        parts = []
        for part in range(count):
            places = range(part, bits, count)
            entries = self.read_entries("part", part + 1, True, len(places), self.documents, "document", len(places))
            key = lambda code: int("".join(code[place] for place in places).ljust(32, "0"), 2)
            expected = sorted((key(f"{int.from_bytes(code, 'big'):0{bits}b}"), o) for o, code in enumerate(self.codes))
            need(entries == expected, "the bits of all codes")
            parts.append(entries)
        return parts

    def read_entries(self, kind, index, is_packed, key_bits, below, what, most=16):
        """Reads a section of entries, each a key of `key_bits` bits and a number below `below`, encoded as in a band."""
        name = f"{kind} {index}" if index else kind
        _, offset, length, rows = self.section(kind, index, [2 if is_packed else 1])
        need(rows <= (self.documents if index else M32), f"no more rows of {name} than there can be")
        bits = prefix_bits(rows, min(most, key_bits))
        starts, at = self.directory(offset, rows, bits, name)
        self.zeros(offset + at, offset + align(at))
        at = align(at)
        number_bits = max(max(below - 1, 0).bit_length(), 1)
        used = key_bits - bits + number_bits
        width = used if is_packed else -(-used // 8) * 8
        need(length == at + -(-rows * width // 8), f"the length of {name}")
        whole = int.from_bytes(self.data[offset + at : offset + length], "little")
        need(whole >> (rows * width) == 0, "zeros after the last entry")
        entries, noted = [], 0
        for prefix in range(1 << bits):
            for row in range(starts[prefix], starts[prefix + 1]):
                value = whole >> (row * width) & ((1 << width) - 1)
                tag, number = value >> number_bits, value & ((1 << number_bits) - 1)
                need(tag >> (key_bits - bits) == 0 and number < below, f"an entry of a {what}")
                key = prefix << (32 - bits) | tag << (32 - key_bits)
                entries.append((key, number))
                # A byte shared by two entries is shown with the first of them.
                end = -(-(row + 1) * width // 8)
                self.note(offset + at + noted, end - noted, f"{name}: key {key:#010x}, {what} {number}")
                noted = end
        need(all(a < b for a, b in zip(entries, entries[1:])), "entries that ascend")
        return entries

    def read_signatures(self, width, bits):
        _, offset, length, rows = self.section("signatures", 0, [1], self.documents)
        need(length == rows * width, "a signature for each document")
        self.signatures = []
        sketched = {ordinal for _, ordinal in self.bands[0]}
        for row in range(rows):
            signature = self.data[offset + row * width : offset + (row + 1) * width]
            need(int.from_bytes(signature, "little") >> bits == 0, "zeros after a signature")
            need(row in sketched or not any(signature), "zeros for a document without a sketch")
            self.note(offset + row * width, width, f"signatures: of document {row}")
            self.signatures.append(signature)

    def read_samples(self, name, most):
        _, offset, length, rows = self.section(name, 0, [1])
        size = max(-(-rows.bit_length() // 8), 1)
        base = offset + (self.documents + 1) * size
        need(offset + length == base + 6 * rows, f"the length of {name}")
        starts = []
        for place in range(self.documents + 1):
            at = offset + place * size
            starts.append(int.from_bytes(self.data[at : at + size], "little"))
            whose = f"document {place} from" if place < self.documents else "hashes in all"
            self.note(at, size, f"{name}: {whose} {starts[-1]}")
        need(starts[0] == 0 and starts[-1] == rows, f"offsets of all hashes of {name}")
        sketched = set() if not self.bands else {ordinal for _, ordinal in self.bands[0]}
        sketched |= {ordinal for ordinals in self.lists for ordinal in ordinals}
        samples = []
        for ordinal, (start, end) in enumerate(zip(starts, starts[1:])):
            need(0 <= end - start <= most, f"at most {most} hashes of a document in {name}")
            hashes = []
            for at in range(base + 6 * start, base + 6 * end, 6):
                hashes.append(int.from_bytes(self.data[at : at + 6], "little"))
                self.note(at, 6, f"{name}: of document {ordinal}: {hashes[-1]:#014x}")
            need(all(a < b for a, b in zip(hashes, hashes[1:])), f"hashes of {name} that ascend")
            need(name == "bottom" or not any(h % int(self.params["modulus"]) for h in hashes), "multiples of the modulus")
            need(ordinal in sketched or not hashes, f"no {name} of a document without a sketch")
            need(ordinal not in sketched or hashes or name == "modular", "a least hash of a document with a sketch")
            samples.append(hashes)
        return samples

    def read_values(self):
        return self.read_bytes("values", 65536)

    def read_bytes(self, name, most):
        """Reads a section with up to `most` bytes for each document."""
        _, offset, length, rows = self.section(name, 0, [1])
        size = max(-(-rows.bit_length() // 8), 1)
        base = offset + (self.documents + 1) * size
        need(offset + length == base + rows, f"the length of {name}")
        starts = []
        for place in range(self.documents + 1):
            at = offset + place * size
            starts.append(int.from_bytes(self.data[at : at + size], "little"))
            whose = f"document {place} from" if place < self.documents else "bytes in all"
            self.note(at, size, f"{name}: {whose} {starts[-1]}")
        need(starts[0] == 0 and starts[-1] == rows, f"offsets of all {name}")
        values = []
        for ordinal, (start, end) in enumerate(zip(starts, starts[1:])):
            need(0 <= end - start <= most, f"at most {most} bytes of a document in {name}")
            values.append(self.data[base + start : base + end])
            if end > start:
                shown = f": {values[-1]!r}" if name == "values" else ""
                self.note(base + start, end - start, f"{name}: of document {ordinal}{shown}")
        return values

    def read_fields(self, sets, marks, priorities, code_bits):
        self.fields = self.read_bytes("fields", FIELDS_MOST)
        read = [read_fields(fields, sets, marks, priorities, code_bits) for fields in self.fields]
        self.marked, self.sets, self.priorities, self.codes = ([fields[part] for fields in read] for part in range(4))

    def read_prefixes(self):
        threshold = self.params.get("threshold", "0.8")
        need(self.params["minhash"] != "none" and threshold != "none", "sets only where resemblance makes documents near")
        classes = common_tags(self.sets)
        self.common = self.read_entries("common", 0, True, 32, CLASSES, "class")
        need(self.common == sorted(classes.items()), "the common tags of the sets, each with its class")
        self.prefixes = self.read_entries("prefixes", 0, True, 32, self.documents, "document")
        expected = [(tag ^ M32 * is_marked, ordinal)
                    for ordinal, (is_marked, hashes) in enumerate(zip(self.marked, self.sets))
                    for tag in prefix_tags(hashes, classes, float(threshold))]
        need(self.prefixes == sorted(expected), "the tags of the prefixes of the sets")
        if "suffixes" in self.params:
            self.suffixes = self.read_entries("suffixes", 0, True, 32, self.documents, "document")
            expected = [(tag, ordinal) for ordinal, hashes in enumerate(self.sets)
                        for tag in {one >> 32 for one in hashes} - set(prefix_tags(hashes, classes, float(threshold)))]
            need(self.suffixes == sorted(expected), "the other tags of the sets")

    def read_stamps(self):
        _, offset, length, _ = self.section("stamps", 0, [1], self.documents)
        need(length >= 16, "the head of stamps")
        base, width = struct.unpack("<QB", self.data[offset : offset + 9])
        self.note(offset, 8, f"stamps: base {base}")
        self.note(offset + 8, 1, f"width {width}")
        self.note(offset + 9, 7, "reserved")
        need(width <= 8 and not any(self.data[offset + 9 : offset + 16]), "a width of 0 to 8, and zeros")
        order = offset + 16 + self.documents * width
        need(offset + length == order + 4 * self.documents, "the length of stamps")
        stamps, ordinals = [], []
        for ordinal in range(self.documents):
            at = offset + 16 + ordinal * width
            stamps.append(base + int.from_bytes(self.data[at : at + width], "little"))
            if width:
                self.note(at, width, f"stamps: document {ordinal}: {stamps[-1]}")
        for at in range(order, order + 4 * self.documents, 4):
            ordinals.append(int.from_bytes(self.data[at : at + 4], "little"))
            self.note(at, 4, f"stamps: in order: document {ordinals[-1]}")
        need(ordinals == sorted(range(self.documents), key=lambda ordinal: (stamps[ordinal], ordinal)), "the order of stamps")
        least, most = min(stamps, default=0), max(stamps, default=0)
        need((base, width) == (least, -(-(most - least).bit_length() // 8)), "the least base and width")
        need(most <= M64, "stamps of 64 bits")
        return stamps

    def check_identity(self):
        keys_of = [dict((ordinal, key) for key, ordinal in entries) for entries in self.bands]
        salt = self.params_digest
        for ordinal, key in enumerate(self.keys):
            key = key.to_bytes(8, "little") if isinstance(key, int) else key
            record = len(key).to_bytes(4, "little") + key
            in_table = self.ranks is not None and self.ranks[ordinal] != NO_RANK
            in_bands = bool(keys_of) and ordinal in keys_of[0]
            need(self.ranks is None or not keys_of or in_table == in_bands, "a sketch in all sections or in none")
            record += bytes([in_table or in_bands])
            if in_table:
                record += self.fingerprints[self.ranks[ordinal]].to_bytes(8, "little")
            if in_bands:
                record += b"".join(keys[ordinal].to_bytes(4, "little") for keys in keys_of)
                record += self.signatures[ordinal] if self.signatures is not None else b""
            for sample in self.samples.values() if in_table or in_bands else []:
                record += len(sample[ordinal]).to_bytes(4, "little")
                record += b"".join(value.to_bytes(6, "little") for value in sample[ordinal])
            if self.values is not None:
                record += len(self.values[ordinal]).to_bytes(4, "little") + self.values[ordinal]
            if self.stamps is not None:
                record += self.stamps[ordinal].to_bytes(8, "little")
            if self.fields is not None:
                record += len(self.fields[ordinal]).to_bytes(4, "little") + self.fields[ordinal]
            salt = salt + xxh3_128(record) & M128
        need(salt == self.salt, "the salt of the records")
        _, offset, length, _ = self.sections["checksums", 0]
        data = self.data
        self.digest = xxh3_128(data[:64] + data[offset : offset + length] + data[self.contents :])

    def text(self):
        yield f"length {len(self.data)}"
        yield f"salt {self.salt:032x}"
        yield f"params-digest {self.params_digest:032x}"
        yield f"digest {self.digest:032x}"
        yield f"documents {self.documents}"
        yield f"distinct {self.distinct}"
        for name, value in self.params.items():
            yield f"param {name}={value}"
        for (name, index), (codec, offset, length, rows) in self.sections.items():
            yield f"section {name} {index} codec {codec} offset {offset} length {length} rows {rows}"
        if self.ranks is not None:
            yield f"design {self.design}"
        for ordinal, key in enumerate(self.keys):
            key = key if isinstance(key, int) else key.hex()
            rank = "-" if self.ranks is None or self.ranks[ordinal] == NO_RANK else self.ranks[ordinal]
            signature = self.signatures[ordinal].hex() if self.signatures is not None else "-"
            yield f"document {ordinal} key {key} rank {rank} signature {signature}"
            for name, sample in self.samples.items():
                if sample[ordinal]:
                    yield f"{name} {ordinal}: {' '.join(f'{value:012x}' for value in sample[ordinal])}"
            if self.values is not None and self.values[ordinal]:
                yield f"value {ordinal}: {self.values[ordinal].hex()}"
            if self.stamps is not None:
                yield f"stamp {ordinal}: {self.stamps[ordinal]}"
            if self.fields is not None and self.marked[ordinal]:
                yield f"mark {ordinal}"
            if self.fields is not None and self.priorities[ordinal] is not None:
                yield f"priority {ordinal}: {self.priorities[ordinal]}"
            if self.fields is not None and self.codes[ordinal] is not None:
                yield f"code {ordinal}: {self.codes[ordinal].hex()}"
            if self.common is not None:
                yield f"set {ordinal}:{''.join(f' {one:016x}' for one in self.sets[ordinal])}"
        for rank, fingerprint in enumerate(self.fingerprints or []):
            yield f"fingerprint {rank} {fingerprint:016x} documents {' '.join(map(str, self.lists[rank]))}"
        for band, entries in enumerate(self.bands, 1):
            for key, ordinal in entries:
                yield f"band {band} key {key:08x} document {ordinal}"
        for tag, number in self.common or []:
            yield f"common {tag:08x} class {number}"
        for key, ordinal in self.prefixes or []:
            yield f"prefix {key:08x} document {ordinal}"
        for tag, ordinal in self.suffixes or []:
            yield f"suffix {tag:08x} document {ordinal}"
        for part, entries in enumerate(self.parts, 1):
            for key, ordinal in entries:
                yield f"part {part} key {key:08x} document {ordinal}"

    def dump(self):
        end = 0
        for offset, length, meaning in sorted(self.notes):
            need(offset == end, f"a meaning for byte {end}")
            end = offset + length
            data = self.data[offset:end]
            if length > 8 and not any(data):
                yield f"{offset:5}  {f'00 x {length}':<47}  {meaning}"
                continue
            for start in range(0, length, 16):
                yield f"{offset + start:5}  {data[start : start + 16].hex(' '):<47}  {meaning if not start else '...'}"
        need(end == len(self.data), f"a meaning for byte {end}")


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def main():
    dump = sys.argv[1:2] == ["--dump"]
    paths = sys.argv[1 + dump :]
    if not paths:
        sys.exit(__doc__.strip())
    for path in paths:
        try:
            with open(path, "rb") as file:
                segment = Segment(file.read())
            print("\n".join(segment.dump() if dump else segment.text()))
        except (Damaged, struct.error, IndexError, ValueError) as error:
            sys.exit(f"{path}: damaged: expected {error}")


if __name__ == "__main__":
    main()
