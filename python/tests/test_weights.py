"""Weights of shingles: by frequency, and by inverse document frequency."""

import collections
import math
import pickle
import random

import pytest

import twindex


def texts(count=80, seed=5):
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        family = chance.randrange(10)
        words = [f"w{(at * (family + 2) + family) % 9}" for at in range(20)]
        made.append(" ".join(f"w{chance.randrange(12)}" if chance.random() < 0.1 else word for word in words))
    return made


def resembling(a, b, weight):
    """The sums of the lesser and of the greater of the numbers of units."""
    counts = [collections.Counter(text.split()) for text in (a, b)]
    both = [(weight(word, counts[0][word]), weight(word, counts[1][word])) for word in counts[0] | counts[1]]
    return sum(map(min, both)), sum(map(max, both))


def pairs_of(given, threshold, weight):
    found = []
    for b in range(len(given)):
        for a in range(b):
            least, most = resembling(given[a], given[b], weight)
            if least >= threshold * most:
                found.append((a, b, least / most))
    return sorted(found)


@pytest.mark.parametrize("unit", [None, 1, 0.25, 2])
def test_dedup_by_document_frequencies_is_that_of_brute_force_in_units(unit):
    given = texts()
    table = twindex.IdfTable.of(given, words=1, min_df=1)
    frequencies = collections.Counter(word for text in given for word in set(text.split()))

    def idf(word):
        return math.floor(256 * (1 + math.log2((len(given) + 1) / (frequencies[word] + 1))) + 1e-9) / 256

    def weight(word, count):
        return math.floor(count * idf(word) / (unit or 1) + 0.5)

    assert table.documents == len(given) and len(table) == len(frequencies)
    assert all(table.weight(word) == idf(word) for word in frequencies)
    wanted = pairs_of(given, 0.75, weight)
    found = twindex.dedup(given, 0.75, weights="idf", idf=table, weight_unit=unit, pairs="all")
    assert list(found.pairs) == wanted and len(wanted) > 30
    assert wanted != pairs_of(given, 0.75, lambda _, count: count)
    # The history first is the same as all together; so does an index decide, text by text.
    history = [given[at] for at in twindex.dedup(given[:40], 0.75, weights="idf", idf=table, weight_unit=unit).kept]
    second = twindex.dedup(given[40:], 0.75, weights="idf", idf=table, weight_unit=unit, against=history)
    whole = twindex.dedup(given, 0.75, weights="idf", idf=table, weight_unit=unit)
    assert history + [given[40 + at] for at in second.kept] == [given[at] for at in whole.kept]


def test_index_weighted_by_a_table_decides_as_dedup(tmp_path):
    given = texts(seed=8)
    table = twindex.IdfTable.of(given, words=1, min_df=1)
    params = twindex.Params(minhash_weights="idf", idf=table, weight_unit=0.5, sets=True, simhash=None, threshold=0.75)
    assert params.fields["minhash-idf"] == table.digest and params.fields["width"] == "1"
    assert params.fields["minhash-unit"] == str(1 << 15)
    with twindex.Index.create(tmp_path / "a.twx", params) as index:
        new = [at for at, text in enumerate(given) if index.admit(str(at), text, drop_duplicates=True).outcome == "new"]
    assert new == list(twindex.dedup(given, 0.75, weights="idf", idf=table, weight_unit=0.5).kept) and len(new) < 60
    assert index.verify() == [] and index.params == params
    # By shards, which have no table themselves.
    pyarrow = pytest.importorskip("pyarrow")
    rows = twindex.Sketcher(params).rows([str(at) for at in new], [given[at] for at in new])
    key, _, fingerprint, *parts = pyarrow.record_batch(rows).columns
    builder = twindex.ShardBuilder(tmp_path / "shards", params)
    builder.add(key, fingerprint.view(pyarrow.uint64()), *parts)
    name, count, _ = builder.finish()
    made = twindex.Index.adopt(tmp_path / "b.twx", params, [tmp_path / "shards" / name])
    assert count == len(made) == len(new) and made.verify() == []
    assert made.pairs(resembling=0.75) == index.pairs(resembling=0.75)
    assert [hit.key for hit in made.near(given[new[0]])] == [hit.key for hit in index.near(given[new[0]])]


def test_frequencies_are_weights_of_minima_and_of_sets(tmp_path):
    often, once = "a a a a b", "a b b b b"
    plain = twindex.Params(words=1, sets=True, threshold=0.25)
    assert plain.fields.get("minhash-weights") is None
    params = twindex.Params(words=1, sets=True, threshold=0.25, minhash_weights="frequencies")
    with twindex.Index.create(tmp_path / "a.twx", params) as index:
        index.put("often", often)
    assert [(hit.key, hit.resemblance) for hit in index.near(once)] == [("often", 0.25)]
    estimate = twindex.MinHash(40, 20, words=1, minhash_weights="frequencies").resemblance(often, once)
    assert abs(estimate - 0.25) < 0.1
    assert twindex.MinHash(words=1).resemblance(often, once) == 1.0


def test_tables_are_saved_pickled_and_compared(tmp_path):
    given = texts()
    table = twindex.IdfTable.of(given, words=1)
    table.save(tmp_path / "words.idf")
    with pytest.raises(twindex.IoError):
        table.save(tmp_path / "words.idf")
    table.save(tmp_path / "words.idf", replace=True)
    again = twindex.IdfTable.open(tmp_path / "words.idf")
    assert again == table == pickle.loads(pickle.dumps(table)) and hash(again) == hash(table)
    assert table != twindex.IdfTable.of(given, words=2)
    params = twindex.Params(minhash_weights="idf", idf=table, family="darts")
    taken = pickle.loads(pickle.dumps(params))
    assert taken == params and taken.idf == table
    assert twindex.Sketcher(taken).sketch(given[0]) == twindex.Sketcher(params).sketch(given[0])
    assert twindex.Params.parse(params.text).idf is None
    assert twindex.Params.parse(params.text, table).idf == table
    by_fingerprint = twindex.Params(weights="idf", idf=table, minhash=None)
    assert twindex.Sketcher(by_fingerprint).sketch(given[0]).fingerprint is not None


def test_what_weights_need_is_refused_by_name():
    table = twindex.IdfTable.of(texts(), words=1)
    given = ["a b"]
    for why, call in [
        ("minhash_weights: expected distinct, frequencies or idf, found tf", lambda: twindex.Params(minhash_weights="tf")),
        ('minhash_weights: "idf" needs the table', lambda: twindex.Params(minhash_weights="idf")),
        ('weights: "idf" needs the table', lambda: twindex.Params(weights="idf")),
        ("minhash=darts", lambda: twindex.Params(minhash_weights="idf", idf=table)),
        ("fractions", lambda: twindex.Params(minhash_weights="idf", idf=table, family="darts", sets=True)),
        ("family: expected one of", lambda: twindex.Params(family="poisson")),
        ("no use for it", lambda: twindex.Params(idf=table)),
        ("width=1", lambda: twindex.Params(minhash_weights="idf", idf=table, weight_unit=1, words=2)),
        ("1/256 to 2", lambda: twindex.Params(minhash_weights="frequencies", weight_unit=3)),
        ("minhash-unit without", lambda: twindex.Params(weight_unit=1)),
        ("need the idf table", lambda: twindex.Sketcher(twindex.Params.parse(
            twindex.Params(minhash_weights="idf", idf=table, weight_unit=1).text))),
        ("weights: .* need an idf table", lambda: twindex.dedup(given, weights="idf")),
        ("idf: a table goes with", lambda: twindex.dedup(given, weights="tf", idf=table)),
        ("weight_unit: goes with", lambda: twindex.dedup(given, weights="tf", weight_unit=1)),
        ("multiple of 1/65536", lambda: twindex.dedup(given, weights="idf", idf=table, weight_unit=0.3)),
        ("width=1", lambda: twindex.dedup(given, weights="idf", idf=table, words=3)),
        ("one shingle, found 2", lambda: table.weight("a b")),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            call()
