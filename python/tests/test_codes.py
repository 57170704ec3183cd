"""Fingerprints of 64 to 512 bits, given as bytes, are found as by a comparison of all of them."""

import pathlib
import pickle
import random

import pytest

import twindex

WIDTHS = [64, 128, 192, 256, 384, 512]


def distance(a, b):
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).bit_count()


def flipped(chance, code, bits):
    number = int.from_bytes(code, "big")
    for _ in range(bits):
        number ^= 1 << chance.randrange(8 * len(code))
    return number.to_bytes(len(code), "big")


def made(width, count, seed=0):
    """Random fingerprints, near copies of earlier ones, and some that are equal."""
    chance = random.Random(width + seed)
    codes = []
    for _ in range(count):
        if codes and chance.randrange(3):
            codes.append(flipped(chance, chance.choice(codes), chance.choice([0, 0, 1, width // 16, width // 8])))
        else:
            codes.append(chance.randbytes(width // 8))
    return codes


def near(codes, query, within):
    found = ((distance(code, query), key) for key, code in enumerate(codes))
    return sorted(hit for hit in found if hit[0] <= within)


def pairs(codes, within):
    return [
        (a, b, distance(x, y))
        for a, x in enumerate(codes)
        for b, y in enumerate(codes)
        if a < b and distance(x, y) <= within
    ]


def found(hits):
    return [(hit.distance, hit.key) for hit in hits]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "images.twx"


def create(path, bits, within=None, **options):
    return twindex.Index.create(path, codes=bits, near_within=bits // 12 if within is None else within, **options)


@pytest.mark.parametrize("width", WIDTHS)
def test_queries_and_pairs_equal_a_comparison_of_all(path, width):
    codes, queries, usual = made(width, 240), made(width, 40, 1), width // 12
    queries += made(width, 240)[::7]
    index = create(path, width, keys="u64")
    for key, code in enumerate(codes[:30]):
        index.put(key, code)
    index.commit()
    assert index.put_many(range(30, 240), codes[30:]) == 210
    index.put_many([5, 1000], [codes[5]] * 2)
    index.delete(1000)
    index.commit()
    assert index.verify() == []
    for index in [index, twindex.Index.open(path)]:
        assert [index.get(key)["fingerprint"] for key in range(240)] == codes
        for within in [None, 0, 1, 11, width // 3, width]:
            radius = usual if within is None else within
            expected = [near(codes, query, radius) for query in queries]
            assert [found(hits) for hits in index.near_many(queries, within=within)] == expected
            assert [found(hits) for hits in index.near_many(queries, within=within, limit=3)] == [hits[:3] for hits in expected]
            for query, hits in list(zip(queries, expected))[::9]:
                assert found(index.near(query, within=within)) == hits
                assert found(index.near(bytearray(query), within=within, limit=2)) == hits[:2]
            if within != width:
                assert index.pairs(within=within) == pairs(codes, radius)
    assert len(index.segments) == 1
    index.compact()
    assert index.pairs() == pairs(codes, usual)


def test_columns_batches_and_segments_equal_a_comparison_of_all(path):
    pyarrow = pytest.importorskip("pyarrow")
    codes = made(256, 300)
    names = [f"{key:03}.png" for key in range(300)]
    segments = []
    for at, (some, column) in enumerate(
        [
            (slice(0, 200), pyarrow.array(codes[:200], pyarrow.binary(32))),
            (slice(200, 300), pyarrow.chunked_array([codes[200:250], codes[250:]], pyarrow.large_binary())),
        ]
    ):
        with create(path.with_name(f"{at}.twx"), 256, 31) as index:
            index.put_many(names[some], column)
        index = twindex.Index.open(index.path)
        index.compact()
        segments += pathlib.Path(index.path).glob("*.seg")
    index = twindex.Index.adopt(path, index.params, segments)
    assert index.segments == [200, 100]
    rows = pyarrow.record_batch(index.query(names[::9], pyarrow.array(codes[::9]))).to_pylist()
    expected = [
        {"query": names[at].encode(), "key": names[key].encode(), "distance": far, "resemblance": None}
        for at in range(0, 300, 9)
        for far, key in near(codes, codes[at], 31)
    ]
    assert rows == expected
    rows = pyarrow.record_batch(index.query(names[::9], codes[::9], segment=1, limit=1)).to_pylist()
    assert len(rows) > 0 and all(row["key"] >= names[200].encode() for row in rows)
    for left, right, first, second in [(None, None, 0, 0), (0, 0, 0, 0), (0, 1, 0, 200), (1, None, 200, 200)]:
        batches = index.pairs_batches(within=40, left=left, right=right, memory=1 << 16)
        table = pyarrow.Table.from_batches([pyarrow.record_batch(batch) for batch in batches]).to_pylist()
        some = sorted((row["a"], row["b"], row["distance"]) for row in table)
        is_first = (lambda at: at < 200) if left == 0 else (lambda at: at >= first)
        is_second = (lambda at: at < 200) if right == 0 else (lambda at: at >= second)
        if left is None:
            is_second = is_first
        if right is None:
            is_second = is_first
        everything = pairs(codes, 40)
        assert some == [(names[a].encode(), names[b].encode(), far) for a, b, far in everything if is_first(a) and is_second(b)]


def texts_near_each_other(count):
    chance, texts = random.Random(3), []
    for _ in range(count):
        words = [f"w{chance.randrange(400)}" for _ in range(chance.randrange(8, 50))]
        if texts and chance.randrange(3):
            words = chance.choice(texts).split() or words
            for _ in range(chance.randrange(4)):
                words[chance.randrange(len(words))] = f"w{chance.randrange(400)}"
        texts.append(" ".join(words) if chance.randrange(9) else "")
    return texts


@pytest.mark.parametrize("width", [128, 512])
def test_long_simhashes_of_texts_equal_a_comparison_of_all(path, width):
    texts, asked = texts_near_each_other(150), texts_near_each_other(190)[100:]
    options = {"words": 2, "simhash_bits": width, "near_within": width // 6, "keys": "u64"}
    sketcher = twindex.Sketcher(twindex.Params(**options))
    short = twindex.Sketcher(twindex.Params(words=2, minhash=None))

    def code(text):
        code = sketcher.sketch(text).fingerprint
        if code is None:
            return None
        assert code >> width - 64 == short.sketch(text).fingerprint
        return code.to_bytes(width // 8, "big")

    codes = {key: code(text) for key, text in enumerate(texts) if text}
    a, b = sketcher.sketch(texts[0]), sketcher.sketch(texts[1])
    assert a.distance(b) == (a.fingerprint ^ b.fingerprint).bit_count()
    simhash = twindex.Simhash(words=2, simhash_bits=width, near_within=0)
    assert simhash.fingerprints(texts[:2]) == [a.fingerprint, b.fingerprint]
    assert pickle.loads(pickle.dumps(a)) == a
    index = twindex.Index.create(path, **options)
    for key, text in enumerate(texts[:20]):
        index.put(key, text)
    index.put(20, sketcher.sketch(texts[20]))
    index.commit()
    index.put_many(range(21, 150), texts[21:])
    index.commit()
    assert index.verify() == []
    assert [index.get(key)["fingerprint"] for key in range(150)] == [codes.get(key) for key in range(150)]
    for within in [None, 0, width // 4, width]:
        radius = width // 6 if within is None else within
        expected = [
            sorted((distance(code(text), other), key) for key, other in codes.items() if distance(code(text), other) <= radius)
            if text
            else []
            for text in asked
        ]
        assert [found(hits) for hits in index.near_many(asked, within=within)] == expected
        assert [found(index.near(text, within=within)) for text in asked] == expected
    radius = width // 6
    expected = [(a, b, distance(codes[a], codes[b])) for a in codes for b in codes if a < b]
    expected = [pair for pair in expected if pair[2] <= radius]
    assert len(expected) > 9 and index.pairs() == expected
    for refused in [
        {"simhash_bits": 100, "near_within": 3},
        {"simhash_bits": 256},
        {"simhash_bits": 256, "near_within": 3, "minhash": (4, 4)},
        {"simhash_bits": 256, "near_within": 3, "simhash": None},
        {"simhash_bits": 256, "near_within": 3, "codes": 256},
        {"simhash_bits": 256, "near_within": 3, "sets": True},
    ]:
        with pytest.raises(twindex.InvalidError):
            twindex.Params(**refused)
    with pytest.raises(twindex.InvalidError):
        index.near("some words", resembling=0.8)
    with pytest.raises(twindex.InvalidError):
        sketcher.rows([1], ["some words"])


def test_segments_of_shard_builders_equal_that_of_one_index(path, tmp_path):
    pyarrow, numpy = pytest.importorskip("pyarrow"), pytest.importorskip("numpy")
    codes, names = made(192, 90), [f"{key:02}.png" for key in range(90)]
    with create(path, 192, 16) as alone:
        alone.put_many(names, codes)
    twindex.Index.open(path).compact()

    def built(rows, *columns):
        builder = twindex.ShardBuilder(tmp_path / "shards", alone.params)
        for some, column in zip([rows[:20], rows[20:]], columns):
            builder.add_codes([names[row] for row in some], column)
        return tmp_path / "shards" / builder.finish()[0]

    matrix = numpy.frombuffer(b"".join(codes), numpy.uint8).reshape(90, 24)
    segments = [built(range(40), codes[:20], pyarrow.array(codes[20:40])), built(range(40, 90), matrix[40:60], matrix[60:])]
    index = twindex.Index.adopt(tmp_path / "joined.twx", alone.params, segments)
    assert index.segments == [40, 50] and index.verify() == []
    assert index.pairs() == [(names[a], names[b], far) for a, b, far in pairs(codes, 16)]
    index.compact()
    (one,), (joined,) = ([file.read_bytes() for file in folder.glob("*.seg")] for folder in (path, tmp_path / "joined.twx"))
    assert one == joined
    builder = twindex.ShardBuilder(tmp_path / "shards", alone.params)
    with pytest.raises(twindex.InvalidError, match="record 1: code: expected a fingerprint of 192 bits, 24 bytes, found 16"):
        builder.add_codes(["a", "b"], [codes[0], codes[1][:16]])
    with pytest.raises(twindex.InvalidError, match="key has 1 values and code has 2"):
        builder.add_codes(["a"], codes[:2])
    builder.add_codes(["a"], codes[:1])
    with pytest.raises(twindex.InvalidError, match="2 records have 1 keys: `a` is the key of two of them"):
        builder.finish()
    with pytest.raises(twindex.InvalidError, match="the builder has ended"):
        builder.add_codes(["a"], codes[:1])
    with pytest.raises(twindex.InvalidError, match="the parameters keep sketches of texts"):
        twindex.ShardBuilder(tmp_path / "shards", twindex.Params()).add_codes(["a"], codes[:1])


def test_matrices_of_uint8_are_rows_of_bytes(path):
    numpy = pytest.importorskip("numpy")
    codes = made(256, 200)
    matrix = numpy.frombuffer(b"".join(codes), numpy.uint8).reshape(200, 32)
    with create(path, 256, 31, keys="u64") as index:
        index.put_many(numpy.arange(100, dtype=numpy.uint64), matrix[:100])
        # A view whose rows are not beside each other.
        index.put_many(range(100, 200), numpy.concatenate([matrix, matrix], axis=1)[100:, 32:])
        index.put(7, matrix[7])
    assert [found(hits) for hits in index.near_many(matrix[::3])] == [near(codes, code, 31) for code in codes[::3]]
    assert found(index.near(matrix[9])) == near(codes, codes[9], 31)
    bits = numpy.unpackbits(matrix, axis=1)
    assert index.near_many(numpy.packbits(bits, axis=1)) == index.near_many(codes)
    with pytest.raises(TypeError, match="texts: expected a matrix of uint8, found the format ?; numpy.packbits".replace("?", "\\?")):
        index.near_many(bits.astype(bool))
    with pytest.raises(twindex.InvalidError, match="record 0: texts: expected a fingerprint of 256 bits, 32 bytes, found 16 bytes"):
        index.near_many(matrix[:, :16])


def test_thousands_of_equal_fingerprints_are_one_group(path):
    codes = made(128, 40)
    all_codes = codes + [codes[3]] * 3000 + [codes[8]] * 2000
    with create(path, 128, 9, keys="u64") as index:
        index.put_many(range(len(all_codes)), all_codes)
    equal = [near(all_codes, code, 0) for code in (codes[3], codes[8])]
    assert [found(hits) for hits in index.near_many([codes[3], codes[8]], within=0)] == equal
    assert len(equal[0]) > 3000 and len(index.near(codes[3], limit=10)) == 10
    count = sum(len(batch) for batch in map(_table, index.pairs_batches(within=0)))
    sizes = {code: all_codes.count(code) for code in all_codes}
    assert count == sum(size * (size - 1) // 2 for size in sizes.values())
    leaders = {key: leader for key, leader, _ in index.groups()}
    assert len({leaders[key] for _, key in equal[0]}) == 1
    assert [leaders[key] for key in range(60)] == [index.leader(key) for key in range(60)]


def _table(batch):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.record_batch(batch)


def test_groups_have_leaders_that_are_near_and_apart(path):
    chance, codes = random.Random(5), made(192, 300)
    with create(path, 192, 17, keys="u64", priorities=True) as index:
        for key, code in enumerate(codes):
            index.put(key, code, priority=chance.randrange(9))
    rows = index.groups()
    leaders = {key: leader for key, leader, _ in rows}
    for key, leader, size in rows:
        assert distance(codes[key], codes[leader]) <= 17 and leaders[leader] == leader
        assert size == sum(other == leader for other in leaders.values())
    heads = sorted(set(leaders.values()))
    assert all(distance(codes[a], codes[b]) > 17 for a in heads for b in heads if a < b)
    assert all(index.leader(key) == leaders[key] for key in range(300))
    group = index.group(heads[0])
    assert group == sorted(key for key in leaders if leaders[key] == heads[0])


def test_admit_finds_the_nearest_unmarked_fingerprint(path):
    codes, kept, duplicates = made(256, 300), {}, 0
    with create(path, 256, 31, keys="u64", marks=True) as index:
        for key, code in enumerate(codes):
            hits = sorted((distance(code, other), at) for at, other in kept.items())
            admitted = index.admit(key, code)
            if hits and hits[0][0] <= 31:
                assert (admitted.outcome, (admitted.near.distance, admitted.near.key)) == ("duplicate", hits[0])
                duplicates += 1
            else:
                assert admitted.outcome == "new"
                kept[key] = code
        assert duplicates > 50
        assert index.admit(1000, flipped(random.Random(0), codes[0], 40), within=100).outcome == "duplicate"
        with pytest.raises(twindex.InvalidError, match="resemblance"):
            index.admit(1001, codes[0], resembling=0.5)
        for options in [{"containment": 0.5}, {"inside": "a"}]:
            with pytest.raises(twindex.InvalidError, match="keeps fingerprints of 256 bits, and no sketches"):
                index.admit(1001, codes[0], **options)


def test_other_widths_values_and_options_are_refused_and_named(path):
    code = bytes(32)
    index = create(path, 256, 31)
    index.put("a", code)
    wide = "expected a fingerprint of 256 bits, 32 bytes, found"
    for call in [index.near, lambda code: index.put("b", code), lambda code: index.admit("b", code)]:
        with pytest.raises(twindex.InvalidError, match=f"{wide} 16 bytes"):
            call(bytes(16))
        with pytest.raises(twindex.InvalidError, match=f"{wide} none"):
            call(None)
        with pytest.raises(TypeError, match="expected bytes, found a text; bytes.fromhex reads hexadecimal digits"):
            call("00" * 32)
        with pytest.raises(TypeError, match="expected str or bytes, found an int"):
            call(7)
    with pytest.raises(twindex.InvalidError, match=f"record 1: texts: {wide} 31 bytes"):
        index.put_many(["b", "c"], [code, code[1:]])
    with pytest.raises(TypeError, match="found a text"):
        index.near_many([code, "0" * 32])
    for options in [{"resembling": 0.5}, {"containment": 0.5}, {"unverified": True}, {"estimated": True}]:
        for call in [lambda **how: index.near(code, **how), lambda **how: index.near_many([code], **how)]:
            with pytest.raises(twindex.InvalidError, match="near by distance alone"):
                call(**options)
    for call in [index.near, lambda code, within: index.near_many([code], within=within)]:
        with pytest.raises(twindex.InvalidError, match="at most 256 bits apart"):
            call(code, within=257)
    with pytest.raises(twindex.InvalidError, match="at most 256 bits apart"):
        index.pairs(within=257)
    for estimated in [False, True]:
        with pytest.raises(twindex.InvalidError, match="near by distance alone"):
            index.pairs(resembling=0.8, estimated=estimated)
    for call in [lambda: index.sketch("a"), lambda: index.same_features("a")]:
        with pytest.raises(twindex.InvalidError, match="keeps fingerprints of 256 bits, and no sketches"):
            call()
    for how, why in [
        ({"codes": 256}, "codes: give near_within"),
        ({"codes": 100, "near_within": 3}, "codes is 100"),
        ({"codes": 256, "near_within": 257}, "near-within"),
        ({"codes": 256, "near_within": 31, "simhash": 4}, "keep one of them"),
        ({"codes": 256, "near_within": 31, "minhash": (10, 2)}, "keep one of them"),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            twindex.Params(**how)
    params = twindex.Params(codes=256, near_within=31)
    assert params == twindex.Params(codes=256, near_within=31, simhash=None, minhash=None) == index.params
    assert (params.fields["codes"], params.near) == ("256", (None, 31))
    assert twindex.Params.parse(params.text) == params
    with pytest.raises(twindex.InvalidError, match="keeps fingerprints of 256 bits, and no sketches"):
        twindex.Sketcher(params)
    index.close(discard=True)
