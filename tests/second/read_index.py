#!/usr/bin/env python3
"""A second reader of whole indexes, IDF tables and files of sketches, written from format-spec.md alone.

    python3 tests/second/read_index.py DIRECTORY     an index: what is live at its newest commit, as text
    python3 tests/second/read_index.py FILE...       an IDF table or a file of sketches, as text

Needs only the standard library; segments are read by read_segment.py in the same folder. Checks everything that the
specification says about CURRENT, manifests, logs, IDF tables and files of sketches; the first violation ends it with
status 1. tests/it/second_reader.rs compares its output with the library's.
"""

import os
import struct
import sys

sys.dont_write_bytecode = True
import read_segment as rs

need, checksum, xxh3_128, Damaged = rs.need, rs.checksum, rs.xxh3_128, rs.Damaged

SEGMENT, MANIFEST, CURRENT, LOG, IDF, SKETCHES = range(1, 7)
FEATURES_LOG, FEATURES_VALUES, FEATURES_STAMPS, FEATURES_GROWN = 1, 2, 4, 8
FEATURES_NARROW, FEATURES_TEXT, FEATURES_NEAR, FEATURES_FIELDS, FEATURES_PRIORITIES = 32, 64, 128, 256, 512
FEATURES_WEIGHTS = 1024
FEATURES_BOILERPLATE, FEATURES_SUFFIXES, FEATURES_CODES, FEATURES_SIMHASHES = 2048, 4096, 8192, 32768


def of_text(params):
    """Returns the feature bits for tokenization options that were added after version 3."""
    text = FEATURES_TEXT * (params["tokens"].split("/")[0] in ("words-symbols", "raw") or "fold" in params)
    return text | FEATURES_BOILERPLATE * ("boilerplate" in params)


class Bytes:
    """Reads consecutive numbers from bytes that must exist."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        need(0 <= count <= len(self.data) - self.at, f"{count} bytes at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def is_over(self):
        return self.at == len(self.data)


def header(data, role, incompatible):
    """Reads the salt and the digest of the parameters from the header of a file with this role and some of these
    features."""
    need(len(data) >= 64, "a header")
    magic, version, found, bits, features, read_only, _, salt, digest, reserved, crc = struct.unpack_from(
        "<8sHBBIII16s16sII", data)
    salt, digest = int.from_bytes(salt, "little"), int.from_bytes(digest, "little")
    need(magic == rs.HEADER_MAGIC, "the magic of a header")
    need(crc == checksum(salt, 0, data[:60]), "the checksum of the header")
    need((version, found, bits, reserved, read_only) == (3, role, 64, 0, 0), f"version 3, role {role}, 64 bits")
    need(features in incompatible, f"features of {sorted(incompatible)}, not {features}")
    return salt, digest, features


class Params:
    """Parses the `name=value` lines of the parameters, which determine the parts of a record."""

    def __init__(self, text):
        need(not text or text.endswith(b"\n"), "parameters whose last line is ended")
        self.text = text
        lines = [line.split("=", 1) for line in text.decode("utf-8").split("\n")[:-1]]
        need(all(len(line) == 2 for line in lines), "lines of the form name=value")
        self.all = dict(lines)
        need(len(self.all) == len(lines), "each parameter once")
        self.digest = xxh3_128(text)
        self.numbered = self.all.get("key") == "u64"
        self.simhash = self.all.get("simhash", "none") != "none"
        minhash = self.all.get("minhash", "none") != "none"
        self.bands = int(self.all["bands"]) if minhash else 0
        bits = int(self.all["signature-bits"]) if minhash else 0
        self.bits = bits * self.bands * int(self.all["rows"]) if minhash else 0
        self.bottom, self.modulus = (int(self.all.get(name, 0)) for name in ("bottom", "modulus"))
        self.values, self.age = "values" in self.all, self.all.get("expire-after")
        self.feature_bits = int(self.all.get("feature-bits", 32))
        need("feature-bits" not in self.all or minhash and 1 <= self.feature_bits <= 31, "1 to 31 bits of a feature")
        self.cut = of_text(self.all)
        self.sets, self.marks, self.priorities = (name in self.all for name in ("sets", "marks", "priorities"))
        suffixes = "suffixes" in self.all
        for name in ("sets", "suffixes", "marks", "priorities", "values"):
            need(self.all.get(name, "kept") == "kept", f"{name} that are kept, or no such line")
        need(self.sets or not suffixes, "suffixes only with sets")
        need(not self.sets or minhash and self.all.get("threshold") != "none", "sets only where resemblance decides")
        threshold, radius = self.all.get("threshold", "none"), self.all.get("near-within", "none")
        need(threshold == "none" or minhash and 0 < float(threshold) <= 1, "a threshold above 0 and up to 1, or none")
        self.code_bits = rs.code_bits_of(self.all)
        need(radius == "none" or self.code_bits or self.simhash and 0 <= int(radius) <= 10, "a radius of 0 to 10, or none")
        near = "threshold" in self.all or "near-within" in self.all
        narrow = FEATURES_NARROW * ("feature-bits" in self.all)
        weights = FEATURES_WEIGHTS * rs.weighs(self.all)
        self.of_sketches = narrow | self.cut | FEATURES_NEAR * near | FEATURES_FIELDS * self.sets | weights
        attached = FEATURES_VALUES * self.values | FEATURES_STAMPS * (self.age is not None)
        self.has_fields = self.sets or self.marks or self.priorities or self.code_bits > 0
        fields = FEATURES_FIELDS * self.has_fields | FEATURES_PRIORITIES * self.priorities
        fields |= FEATURES_CODES * (self.code_bits > 0) | FEATURES_SIMHASHES * ("codes-simhash" in self.all)
        fields |= FEATURES_SUFFIXES * suffixes
        self.features = attached | fields | self.of_sketches

    def key(self, source):
        if self.numbered:
            return source.number(8)
        length = source.number(2)
        need(length > 0, "a key of a byte or more")
        return source.take(length)

    def sketch(self, source, feature_bytes):
        parts = {}
        if self.simhash:
            parts["fingerprint"] = source.number(8)
        parts["features"] = [source.number(feature_bytes) for _ in range(self.bands)]
        unkept = 32 - self.feature_bits if feature_bytes == 4 else 0
        need(not any(one & ((1 << unkept) - 1) for one in parts["features"]), "zeros after the bits of a band key")
        parts["signature"] = source.take(-(-self.bits // 8))
        need(self.bits % 8 == 0 or parts["signature"][-1] >> self.bits % 8 == 0, "zeros after the last minimum")
        for name, wanted, most in (("bottom", self.bottom, self.bottom), ("modular", self.modulus, 65535)):
            hashes = [source.number(6) for _ in range(source.number(2))] if wanted else []
            need(len(hashes) <= most or not wanted, f"at most {most} hashes of {name}")
            need(all(a < b for a, b in zip(hashes, hashes[1:])), f"hashes of {name} that ascend")
            need(name == "bottom" or not wanted or not any(one % self.modulus for one in hashes), "multiples")
            parts[name] = hashes
        return parts


def roaring(data):
    """Returns the numbers in a bitmap in the portable format of RoaringFormatSpec."""
    if not data:
        return set()
    source, found = Bytes(data), set()
    cookie = source.number(4)
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        flags = source.take(-(-count // 8))
        runs = [flags[i // 8] >> i % 8 & 1 for i in range(count)]
        offsets = count >= 4
    else:
        need(cookie == 12346, "a cookie of a bitmap")
        count, offsets = source.number(4), True
        runs = [0] * count
    heads = [(source.number(2), source.number(2) + 1) for _ in range(count)]
    need(all(a[0] < b[0] for a, b in zip(heads, heads[1:])), "keys of a bitmap that ascend")
    if offsets:
        source.take(4 * count)
    for (high, cardinality), run in zip(heads, runs):
        if run:
            low = []
            for _ in range(source.number(2)):
                start, more = source.number(2), source.number(2)
                low += range(start, start + more + 1)
        elif cardinality <= 4096:
            low = [source.number(2) for _ in range(cardinality)]
        else:
            bits = source.take(8192)
            low = [i for i in range(65536) if bits[i // 8] >> i % 8 & 1]
        need(len(low) == cardinality and all(a < b for a, b in zip(low, low[1:])), "numbers of a bitmap that ascend")
        found.update(high << 16 | one for one in low)
    need(source.is_over(), "nothing after a bitmap")
    return found


def read_manifest(data):
    flags = {log | rest | narrow | text | near | fields | weights | left for log in (0, FEATURES_LOG, FEATURES_LOG | FEATURES_GROWN)
             for rest in (0, 2, 4, 6) for narrow in (0, FEATURES_NARROW) for text in (0, FEATURES_TEXT)
             for near in (0, FEATURES_NEAR) for fields in (0, FEATURES_FIELDS, FEATURES_FIELDS | FEATURES_PRIORITIES)
             for weights in (0, FEATURES_WEIGHTS)
             for left in (0, FEATURES_BOILERPLATE, FEATURES_SUFFIXES, FEATURES_BOILERPLATE | FEATURES_SUFFIXES,
                          FEATURES_CODES, FEATURES_CODES | FEATURES_SIMHASHES,
                          FEATURES_CODES | FEATURES_SIMHASHES | FEATURES_BOILERPLATE)}
    uuid, digest, features = header(data, MANIFEST, flags)
    need(len(data) >= 92, "a manifest")
    need(int.from_bytes(data[-4:], "little") == checksum(uuid, 0, data[:-4]), "the checksum of the manifest")
    source = Bytes(data[:-4], 64)
    manifest = {"uuid": uuid, "generation": source.number(8), "next_segment": source.number(8), "segments": []}
    text_length, entries = source.number(4), source.number(4)
    need(text_length <= 65536 and entries <= 65536, "lengths within their limits")
    manifest["params"] = params = Params(source.take(text_length))
    need(params.digest == digest, "the digest of the parameters")
    need(features & ~(FEATURES_LOG | FEATURES_GROWN) == params.features and (features & 9 != 8), "features as the parameters say")
    for _ in range(entries):
        entry = {name: source.number(size) for name, size in (
            ("number", 8), ("length", 8), ("digest", 16), ("salt", 16), ("documents", 8), ("deletes_length", 4))}
        entry["deleted"] = roaring(source.take(entry["deletes_length"]))
        need(all(one < entry["documents"] for one in entry["deleted"]), "deletes of documents that are there")
        last = manifest["segments"][-1]["number"] if manifest["segments"] else 0
        need(last < entry["number"] < manifest["next_segment"], "numbers of segments that ascend")
        manifest["segments"].append(entry)
    manifest.update(logs=[], payload=None, now=None)
    if features & FEATURES_LOG:
        next_log, logs, payload = source.number(8), source.number(4), source.number(4)
        if payload != 0xFFFFFFFF:
            need(payload <= 65536, "a payload within its limit")
            manifest["payload"] = source.take(payload)
        need(logs <= 64, "at most 64 logs")
        for place in range(logs):
            number, first, length = source.number(8), source.number(8), source.number(8)
            before = manifest["logs"][-1] if manifest["logs"] else (0, 0)
            need(before[0] < number < next_log and first >= before[1], "logs that ascend")
            last, grown = place + 1 == logs, features & FEATURES_GROWN
            grows = last and (length >> 63 == 1 if grown else length == 0)
            length &= (1 << 63) - 1 if grows else rs.M64
            need(88 <= length < 1 << 63 or grows and not grown, "a length of a log")
            need(grows or not (last and grown), "a log that grows")
            manifest["logs"].append((number, first, length, grows))
    if params.age is not None:
        any_yet, now = source.number(4), source.number(8)
        need(any_yet <= 1 and (any_yet or not now), "a time, or none")
        manifest["now"] = now if any_yet else None
    need(source.is_over(), "nothing after a manifest's parts")
    return manifest


def records(data, salt, start):
    """Returns the valid records from `start` on: offset, commit, payload, kind, end."""
    at = start
    while True:
        record = sound(data, salt, at)
        if record is None:
            return
        yield record
        at = record[4]


def sound(data, salt, at):
    if at + 24 > len(data):
        return None
    crc, length, kind = struct.unpack_from("<IIB", data, at)
    end = at + -(-(24 + length) // 8) * 8
    bad = kind not in (1, 2) or length > 1 << 28 or any(data[at + 9 : at + 16]) or end > len(data)
    if bad or crc != checksum(salt, at, data[at + 4 : end]) or any(data[at + 24 + length : end]):
        return None
    commit = int.from_bytes(data[at + 16 : at + 24], "little")
    return at, commit, data[at + 24 : at + 24 + length], kind, end


def read_log(data, manifest, number, first, length, grows, each):
    uuid, digest, _ = header(data, LOG, {manifest["params"].features})
    need((uuid, digest) == (manifest["uuid"], manifest["params"].digest), "a log of this index")
    source = Bytes(data, 64)
    head = source.number(8), source.number(8), source.number(4), source.number(4)
    need(head[:3] == (number, first, 0), "the head of this log")
    need(head[3] == checksum(uuid, 0, data[:84]), "the checksum of a log's head")
    need(len(data) >= max(length, 88), "a log that is as long as the manifest says")
    data = data if grows else data[:length]
    salt, at, synced, last, ends = uuid + number & rs.M128, 88, max(length, 88), first - 1, {0, 88}
    for at_record, commit, payload, kind, end in records(data, salt, 88):
        source, at = Bytes(payload), end
        said = source.number(8)
        need(said in ends, "a place up to which it is synced where a record ends")
        synced = max(synced, said)
        if kind == 1:
            need(commit > last, "commits that ascend")
            last = commit
            each(commit, source)
        else:
            need(source.is_over(), "nothing after a mark")
        ends.add(end)
    for later in range(at, len(data), 8):
        record = sound(data, salt, later)
        if record is not None and record[1] >= last:
            synced = max(synced, int.from_bytes(record[2][:8], "little"))
    need(at >= min(synced, len(data)), f"sound records up to {synced}")
    need(at >= length if grows else at == length, "sound records up to the length in the manifest")
    need(length > 0 or last >= first, "a batch in a growing log whose length is unknown")
    return last


def read_index(path):
    def file(name):
        with open(os.path.join(path, name), "rb") as opened:
            return opened.read()

    data = file("CURRENT")
    need(len(data) == 96, "96 bytes of CURRENT")
    uuid, digest, _ = header(data, CURRENT, {0})
    source = Bytes(data, 64)
    generation, manifest_digest = source.number(8), source.number(16)
    need(source.number(4) == 0 and source.number(4) == checksum(uuid, 0, data[:92]), "the checksum of CURRENT")
    data = file(f"MANIFEST-{generation:06}")
    need(xxh3_128(data) == manifest_digest, "the digest of the manifest that CURRENT has")
    manifest = read_manifest(data)
    params = manifest["params"]
    need((manifest["uuid"], manifest["generation"], params.digest) == (uuid, generation, digest), "one index")
    for name in {params.all[line] for line in ("idf", "codes-idf", "minhash-idf") if line in params.all}:
        table = read_idf(file(f"IDF-{name}"))
        need(f"{table['digest']:032x}" == name, "the IDF table that the parameters name")
        # A table that counted all words can be used with any list of spans.
        left_out = set() if b"\nboilerplate=" in table["text"] else {b"boilerplate"}
        cut = [line for line in params.text.split(b"\n") if line.split(b"=")[0] in set(CUT) - left_out]
        need(table["text"] == b"".join(line + b"\n" for line in cut), "the text of the IDF table")

    documents = {}
    for entry in manifest["segments"]:
        segment = rs.Segment(file(f"{entry['number']:06}.seg"))
        found = len(segment.data), segment.digest, segment.salt, segment.documents
        need(found == tuple(entry[name] for name in ("length", "digest", "salt", "documents")), "the segment named")
        need(segment.params_digest == params.digest, "a segment of these parameters")
        for ordinal, key in enumerate(segment.keys):
            if ordinal in entry["deleted"]:
                continue
            need(key not in documents, f"the key {key} once")
            rank = segment.ranks[ordinal] if segment.ranks is not None else rs.NO_RANK
            documents[key] = {
                "fingerprint": segment.fingerprints[rank] if rank != rs.NO_RANK else None,
                "signature": segment.signatures[ordinal] if segment.signatures is not None else b"",
                "value": segment.values[ordinal] if segment.values is not None else b"",
                "stamp": segment.stamps[ordinal] if segment.stamps is not None else None,
                "mark": segment.marked[ordinal] if segment.fields is not None else False,
                "set": segment.sets[ordinal] if segment.fields is not None else None,
                "priority": segment.priorities[ordinal] if segment.fields is not None else None,
                "code": segment.codes[ordinal] if segment.fields is not None else None,
                **{name: sample[ordinal] for name, sample in segment.samples.items()},
            }
    newest, payload, commit = manifest["now"], manifest["payload"], generation

    def batch(number, source):
        nonlocal newest, payload, commit
        operations, length = source.number(4), source.number(4)
        if length != 0xFFFFFFFF:
            need(length <= 65536, "a payload within its limit")
            given = source.take(length)
            payload = given if number > generation else payload
        for _ in range(operations):
            kind = source.number(1)
            need(kind in (1, 2, 3), "an operation of a known kind")
            key = params.key(source)
            documents.pop(key, None)
            if kind == 3:
                continue
            parts = params.sketch(source, 4) if kind == 1 else {}
            if params.values:
                length = source.number(4)
                need(length <= 65536, "a value within its limit")
                parts["value"] = source.take(length)
            if params.age is not None:
                parts["stamp"] = source.number(8)
                newest = max(newest or 0, parts["stamp"])
            if params.has_fields:
                kept = params.sets, params.marks, params.priorities, params.code_bits
                fields = rs.read_fields(source.take(source.number(4)), *kept)
                parts["mark"], parts["set"], parts["priority"], parts["code"] = fields
            documents[key] = parts
        need(source.is_over(), "nothing after the last operation")
        commit = max(commit, number)

    for number, first, length, grows in manifest["logs"]:
        read_log(file(f"LOG-{number:06}"), manifest, number, first, length, grows, batch)
    if params.age is not None and newest is not None:
        age = int(params.age)
        documents = {key: parts for key, parts in documents.items() if newest - parts["stamp"] < age}
    yield f"commit {commit}"
    yield f"now {newest if newest is not None else '-'}"
    yield f"payload {payload.hex() if payload is not None else '-'}"
    for key in sorted(documents):
        parts = documents[key]
        # A document without a sketch has a signature of zeros in a segment, and none in a log.
        fingerprint, signature = parts.get("fingerprint"), parts.get("signature", b"")
        shown = [
            f"key {key if isinstance(key, int) else key.hex()}",
            f"fingerprint {f'{fingerprint:016x}' if fingerprint is not None else '-'}",
            f"signature {signature.hex() or '-' if fingerprint is not None or any(signature) else '-'}",
            *(f"{name} {' '.join(f'{one:012x}' for one in parts.get(name) or []) or '-'}" for name in ("bottom", "modular")),
            f"value {parts.get('value', b'').hex() or '-'}",
            f"stamp {parts['stamp'] if parts.get('stamp') is not None else '-'}",
        ]
        if params.marks:
            shown.append(f"mark {int(parts['mark'])}")
        if params.priorities:
            shown.append(f"priority {parts['priority'] if parts['priority'] is not None else '-'}")
        if params.code_bits and ("codes-simhash" not in params.all or any(parts["code"])):
            shown.append(f"code {parts['code'].hex()}")
        if params.sets:
            shown.append(shown_set(parts["set"]))
        yield ", ".join(shown)


def shown_set(hashes):
    return f"set {' '.join(f'{one:016x}' for one in hashes) or '-'}"


CUT = (b"tokens", b"normal-form", b"fold", b"boilerplate", b"stop-words", b"stemming", b"width", b"shingle-hash", b"seed")


def read_idf(data):
    digest, text_digest, features = header(
        data, IDF, {a | b for a in (0, FEATURES_TEXT) for b in (0, FEATURES_BOILERPLATE)})
    need(xxh3_128(data[64:]) == digest, "the digest of the IDF table")
    source = Bytes(data, 64)
    documents, entries, absent, length = (source.number(size) for size in (8, 8, 4, 4))
    need(documents < 1 << 32 and entries <= 1 << 27 and absent <= documents and length <= 65536, "numbers within limits")
    text = source.take(length)
    need(xxh3_128(text) == text_digest, "the digest of the text")
    of = dict(line.split("=", 1) for line in text.decode("utf-8").split("\n")[:-1])
    need(features == of_text(of), "features as the text says")
    hashes = [source.number(8) for _ in range(entries)]
    counts = [source.number(4) for _ in range(entries)]
    need(source.is_over(), "nothing after the frequencies")
    need(all(a < b for a, b in zip(hashes, hashes[1:])), "hashes that ascend")
    need(all(max(absent, 1) <= count <= documents for count in counts), "frequencies within their limits")
    return {"digest": digest, "text": text, "documents": documents, "absent": absent, "all": list(zip(hashes, counts))}


def read_sketches(data):
    flags = {a | b | c | d | e for a in (0, FEATURES_NARROW) for b in (0, FEATURES_TEXT) for c in (0, FEATURES_NEAR)
             for d in (0, FEATURES_FIELDS, FEATURES_WEIGHTS, FEATURES_FIELDS | FEATURES_WEIGHTS)
             for e in (0, FEATURES_BOILERPLATE)}
    salt, digest, features = header(data, SKETCHES, flags)
    source = Bytes(data, 64)
    params = Params(source.take(source.number(4)))
    need(features == params.of_sketches, "features as the parameters say")
    need(salt == digest == params.digest, "the digest of the parameters")
    need(source.number(4) == checksum(salt, 64, data[64 : source.at - 4]), "the checksum of the parameters")
    yield f"params-digest {digest:032x}"
    blocks, documents, sketched, sums = 0, 0, 0, b""
    while data[source.at : source.at + 8] != rs.FOOTER_MAGIC:
        start = source.at
        count, length = source.number(4), source.number(4)
        need(count > 0, "a block of records")
        block = Bytes(source.take(length))
        for place in range(count):
            need(block.at < 65536, "a block that ends with the record that fills it")
            key = params.key(block)
            has = block.number(1)
            need(has <= 1, "a document with a sketch or without one")
            parts = params.sketch(block, 8) if has else {}
            sketched += has
            if params.sets:
                parts["set"] = rs.read_fields(block.take(block.number(4)), True, False, False)[1]
            fingerprint = parts.get("fingerprint")
            yield ", ".join([
                f"key {key if isinstance(key, int) else key.hex()}",
                f"fingerprint {f'{fingerprint:016x}' if fingerprint is not None else '-'}",
                f"features {' '.join(f'{one:016x}' for one in parts.get('features', [])) or '-'}",
                f"signature {parts.get('signature', b'').hex() or '-'}",
                *(f"{name} {' '.join(f'{one:012x}' for one in parts.get(name, [])) or '-'}"
                  for name in ("bottom", "modular")),
                *([shown_set(parts["set"])] if params.sets else []),
            ])
        need(block.is_over(), "nothing after the last record of a block")
        crc = source.take(4)
        need(int.from_bytes(crc, "little") == checksum(salt, start, data[start : source.at - 4]), "a block's checksum")
        need(length >= 65536 or data[source.at : source.at + 8] == rs.FOOTER_MAGIC, "a full block, or the last")
        blocks, documents, sums = blocks + 1, documents + count, sums + crc
    at = source.at
    source.take(8)
    end = tuple(source.number(8) for _ in range(4))
    need(end == (len(data), blocks, documents, sketched), "an end that counts what is there")
    # The XXH3 hash of empty input, which is the digest of a file without blocks.
    need(source.number(16) == (xxh3_128(sums) if sums else 0x99AA06D3014798D86001C324468D497F), "the digest of the end")
    need(source.number(4) == 0 and source.number(4) == checksum(salt, at, data[at : at + 60]), "the end's checksum")
    need(source.is_over(), "nothing after the end")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    for path in sys.argv[1:]:
        try:
            if os.path.isdir(path):
                print("\n".join(read_index(path)))
                continue
            with open(path, "rb") as file:
                data = file.read()
            need(len(data) >= 64, "a header")
            if data[10] == IDF:
                table = read_idf(data)
                print(f"digest {table['digest']:032x}\ndocuments {table['documents']}\nabsent {table['absent']}")
                for one, count in table["all"]:
                    print(f"{one:016x} {count}")
            else:
                print("\n".join(read_sketches(data)))
        except (Damaged, struct.error, IndexError, ValueError, KeyError, OSError) as error:
            sys.exit(f"{path}: damaged: expected {error}")


if __name__ == "__main__":
    main()
