#!/usr/bin/env python3
"""A second reader of segment files, written from format-spec.md and sharing nothing with the first.

    python3 scripts/read-segment.py FILE...          all that a segment holds, as text
    python3 scripts/read-segment.py --dump FILE      every byte with its meaning, as in the specification's last part

Standard library only. It reads files whole and is in no hurry. Everything the specification says of a segment is
checked on the way, the order of entries, the zeros in gaps and the identity included; the first disagreement ends
it with status 1. tests/golden_files.rs compares what it prints with what the library reads.
"""

import struct
import sys
import zlib

M32, M64, M128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1

HEADER_MAGIC, FOOTER_MAGIC = b"\x89TWX\r\n\x1a\n", b"\x8aTWX\r\n\x1a\n"
PAGE, ALIGNMENT, GROUP = 4096, 64, 16
NO_RANK, LIST = 0xFFFFFFFF, 1 << 31
KINDS = {1: "params", 2: "keys", 3: "ranks", 6: "table", 7: "filter table", 8: "postings", 9: "band",
         10: "signatures", 11: "bottom", 12: "modular", 255: "checksums"}


class Damaged(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Damaged(what)


def align(offset):
    return -(-offset // ALIGNMENT) * ALIGNMENT


def checksum(salt, offset, data):
    return zlib.crc32(data, zlib.crc32(salt.to_bytes(16, "little") + offset.to_bytes(8, "little")))


# XXH3 with 128 bits, seed 0, from the algorithm's public description. Inputs here have at least 6 bytes, so the case
# of 0 to 3 is left out.

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
    """A segment file. `notes` collects (offset, length, meaning) of what was read, for the dump."""

    def __init__(self, data):
        self.data, self.notes = data, []
        self.read_ends()
        self.read_contents()
        self.read_pages()
        self.read_params()
        self.read_sections()
        self.check_identity()

    def take(self, offset, layout, *names):
        """Unpacks numbers that follow one another, and notes what each is; a name with a colon asks for hexadecimal."""
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
        need((version, role, bits) == (2, 1, 64), "version 2, role 1, 64 bits")
        need((incompatible, read_only) == (0, 0), "no features that are not known")
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
        need(align(end) == self.contents, "the table of contents behind the last section")
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
        if self.params["simhash"] != "none":
            self.read_table()
            self.read_postings()
            for index in (2, 3, 4):
                self.check_filter_table(index)
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
                    need(at == base + starts[ordinal // GROUP], "groups one behind the other")
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

    def directory(self, offset, rows, name):
        """The buckets at the start of a section: bits, starts, end of the directory in the section."""
        bits = min(max(rows.bit_length() - 1 - 3, 0), 16)
        starts = self.take(offset, "I" * ((1 << bits) + 1),
                           *[f"{name}: bucket {b:#x} from row" for b in range(1 << bits)], f"{name}: rows in all")
        need(starts[0] == 0 and starts[-1] == rows, "a directory of all rows")
        need(all(a <= b for a, b in zip(starts, starts[1:])), "a directory that ascends")
        return bits, starts, 4 * len(starts)

    def plane(self, offset, at, rows, layout, meaning):
        start = align(at)
        self.zeros(offset + at, offset + start)
        if rows:
            self.take(offset + start, layout * rows, *[meaning(row) for row in range(rows)])
        size = struct.calcsize("<" + layout)
        return struct.unpack_from("<" + layout * rows, self.data, offset + start), start + size * rows

    def read_table(self):
        _, offset, length, rows = self.section("ranks", 0, [1], self.documents)
        need(length == 4 * rows, "4 bytes a rank")
        self.ranks = self.take(offset, "I" * rows, *[f"ranks: of document {o}" for o in range(rows)])
        _, offset, length, rows = self.section("table", 1, [1], self.distinct)
        bits, starts, at = self.directory(offset, rows, "table")
        prefixes = [prefix for prefix in range(1 << bits) for _ in range(starts[prefix], starts[prefix + 1])]
        first = prefixes
        if bits < 16:
            first, at = self.plane(offset, at, rows, "H", lambda row: f"table: block 1 of rank {row}:")
            need([block >> (16 - bits) for block in first] == prefixes, "block 1 in the bucket of its prefix")
        middle, at = self.plane(offset, at, rows, "I", lambda row: f"table: blocks 2 and 3 of rank {row}:")
        last, at = self.plane(offset, at, rows, "H", lambda row: f"table: block 4 of rank {row}:")
        need(at == length, "the length of table 1")
        self.fingerprints = [a << 48 | b << 16 | c for a, b, c in zip(first, middle, last)]
        need(all(a < b for a, b in zip(self.fingerprints, self.fingerprints[1:])), "fingerprints that ascend")

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

    def check_filter_table(self, index):
        codec, offset, length, rows = self.section("filter table", index, [1, 2, 3], self.distinct)
        width = codec + 1
        need(width == (2 if rows <= 0x200000 else 3 if rows <= 0x3000000 else 4), "the width that the rows ask for")
        name = f"filter table {index}"
        bits, starts, at = self.directory(offset, rows, name)
        pointers, at = self.plane(offset, at, rows, "H", lambda row: f"{name}: block 1 of row {row}:")
        filters = [0] * rows
        if width > 2:
            filters, at = self.plane(offset, at, rows, {3: "B", 4: "H"}[width], lambda row: f"{name}: filter {row}:")
        need(at == length, f"the length of {name}")
        block = lambda f, b: f >> (64 - 16 * b) & 0xFFFF
        follower = {2: 3, 3: 4, 4: 2}[index]
        expected = sorted((block(f, index) >> (16 - bits), block(f, 1),
                           0 if width == 2 else block(f, follower) >> (8 * (4 - width))) for f in self.fingerprints)
        prefixes = [prefix for prefix in range(1 << bits) for _ in range(starts[prefix], starts[prefix + 1])]
        need(list(zip(prefixes, pointers, filters)) == expected, f"{name} as table 1 asks for")

    def read_band(self, index):
        _, offset, length, rows = self.section("band", index, [1])
        need(rows <= self.documents, "no more rows than documents")
        bits, starts, at = self.directory(offset, rows, f"band {index}")
        self.zeros(offset + at, offset + align(at))
        at = align(at)
        ordinal_bits = max(max(self.documents - 1, 0).bit_length(), 1)
        size = -(-(32 - bits + ordinal_bits) // 8)
        need(length == at + rows * size, f"the length of band {index}")
        entries = []
        for prefix in range(1 << bits):
            for row in range(starts[prefix], starts[prefix + 1]):
                place = offset + at + row * size
                value = int.from_bytes(self.data[place : place + size], "little")
                tag, ordinal = value >> ordinal_bits, value & ((1 << ordinal_bits) - 1)
                need(tag >> (32 - bits) == 0 and ordinal < self.documents, "an entry of a document")
                key = prefix << (32 - bits) | tag
                entries.append((key, ordinal))
                self.note(place, size, f"band {index}: key {key:#010x}, document {ordinal}")
        need(all(a < b for a, b in zip(entries, entries[1:])), "entries that ascend")
        documents = sorted(ordinal for _, ordinal in entries)
        need(len(set(documents)) == len(documents), "each document once")
        need(not self.bands or documents == sorted(o for _, o in self.bands[0]), "the documents of the first band")
        self.bands.append(entries)

    def read_signatures(self, width, bits):
        _, offset, length, rows = self.section("signatures", 0, [1], self.documents)
        need(length == rows * width, "a signature for each document")
        self.signatures = []
        sketched = {ordinal for _, ordinal in self.bands[0]}
        for row in range(rows):
            signature = self.data[offset + row * width : offset + (row + 1) * width]
            need(int.from_bytes(signature, "little") >> bits == 0, "zeros behind a signature")
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
        for ordinal, key in enumerate(self.keys):
            key = key if isinstance(key, int) else key.hex()
            rank = "-" if self.ranks is None or self.ranks[ordinal] == NO_RANK else self.ranks[ordinal]
            signature = self.signatures[ordinal].hex() if self.signatures is not None else "-"
            yield f"document {ordinal} key {key} rank {rank} signature {signature}"
            for name, sample in self.samples.items():
                if sample[ordinal]:
                    yield f"{name} {ordinal}: {' '.join(f'{value:012x}' for value in sample[ordinal])}"
        for rank, fingerprint in enumerate(self.fingerprints or []):
            yield f"fingerprint {rank} {fingerprint:016x} documents {' '.join(map(str, self.lists[rank]))}"
        for band, entries in enumerate(self.bands, 1):
            for key, ordinal in entries:
                yield f"band {band} key {key:08x} document {ordinal}"

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
