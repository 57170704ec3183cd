"""Weights of shingles: term frequency, and inverse document frequency."""

import collections
import json
import math
import os
import pickle
import random
import shutil
import subprocess

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
    """Returns the sums of the smaller and of the larger numbers of units."""
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


def by_the_rule(pairs, count):
    """Returns each removed text with the first kept text that it is near, and their score."""
    near, kept, removed = {(a, b): score for a, b, score in pairs}, [], []
    for text in range(count):
        first = next((other for other in kept if (other, text) in near), None)
        if first is None:
            kept.append(text)
        else:
            removed.append((text, first, near[first, text]))
    return removed


@pytest.mark.parametrize("unit", [None, 1, 0.25, 2])
def test_idf_weighted_dedup_in_units_equals_brute_force(unit):
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
    whole = twindex.dedup(given, 0.75, weights="idf", idf=table, weight_unit=unit)
    assert list(whole.pairs) == by_the_rule(wanted, len(given)) and len(whole.pairs) > 20
    assert wanted != pairs_of(given, 0.75, lambda _, count: count)
    # A history gives the same result as one run, and so does an index that admits text by text.
    history = [given[at] for at in twindex.dedup(given[:40], 0.75, weights="idf", idf=table, weight_unit=unit).kept]
    second = twindex.dedup(given[40:], 0.75, weights="idf", idf=table, weight_unit=unit, against=history)
    assert history + [given[40 + at] for at in second.kept] == [given[at] for at in whole.kept]


def test_index_with_idf_weights_decides_as_dedup(tmp_path):
    given = texts(seed=8)
    table = twindex.IdfTable.of(given, words=1, min_df=1)
    params = twindex.Params(minhash_weights="idf", idf=table, weight_unit=0.5, sets=True, simhash=None, threshold=0.75)
    assert params.fields["minhash-idf"] == table.digest and params.fields["width"] == "1"
    assert params.fields["minhash-unit"] == str(1 << 15)
    with twindex.Index.create(tmp_path / "a.twx", params) as index:
        new = [at for at, text in enumerate(given) if index.admit(str(at), text, drop_duplicates=True).outcome == "new"]
    assert new == list(twindex.dedup(given, 0.75, weights="idf", idf=table, weight_unit=0.5).kept) and len(new) < 60
    assert index.verify() == [] and index.params == params
    # Shards do not have the table themselves.
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


def test_frequency_weights_apply_to_minima_and_sets(tmp_path):
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


def vectors(count=90, seed=6):
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        vector = dict(chance.choice(made)) if made and chance.random() < 0.6 else {}
        vector |= {f"f{chance.randrange(25)}": chance.randrange(2, 60) / 16 for _ in range(chance.randrange(1, 4))}
        made.append(vector)
    return made


def near_vectors(given, threshold, weight):
    """Returns the near pairs of vectors: the sum of the smaller numbers of units divided by the sum of the larger
    ones."""
    found = []
    for b in range(len(given)):
        for a in range(b):
            names = given[a].keys() | given[b].keys()
            both = [[weight(name, given[at].get(name, 0)) for at in (a, b)] for name in names]
            least, most = sum(map(min, both)), sum(map(max, both))
            if least >= threshold * most:
                found.append((a, b, least / most))
    return sorted(found)


@pytest.mark.parametrize("unit", [None, 1, 0.125])
@pytest.mark.parametrize("weights", ["distinct", "tf", "idf"])
def test_dedup_of_vectors_in_units_equals_brute_force(weights, unit):
    if weights == "distinct" and unit:
        pytest.skip("distinct features have no units")
    given = [{name: weight + 1 for name, weight in vector.items()} for vector in vectors()] + [{}, {"only": 1}]
    table = twindex.IdfTable.of(given, tokens="features", min_df=1)
    frequencies = collections.Counter(name for vector in given for name in vector)

    def idf(name):
        # The vector without features is not counted.
        return math.floor(256 * (1 + math.log2(len(given) / (frequencies[name] + 1))) + 1e-9) / 256

    def units(name, weight):
        if weights == "distinct":
            return weight > 0
        return math.floor(weight * (idf(name) if weights == "idf" else 1) / (unit or 1) + 0.5)

    assert table.documents == len(given) - 1 and all(table.weight(name) == idf(name) for name in frequencies)
    options = {"weights": weights} | ({"idf": table} if weights == "idf" else {"tokens": "features"})
    options |= {"weight_unit": unit} if unit else {}
    found = twindex.dedup(given, 0.7, **options)
    wanted = by_the_rule(near_vectors(given, 0.7, units), len(given))
    assert list(found.pairs) == wanted and len(wanted) > 10
    # Lists of pairs of name and weight give the same result, in any order.
    pairs = [[[name, weight] for name, weight in reversed(vector.items())] for vector in given]
    assert twindex.dedup(pairs, 0.7, **options).kept == twindex.dedup(given, 0.7, **options).kept


def test_feature_sets_and_vectors_can_be_sketched_indexed_and_admitted(tmp_path):
    given = [vector for vector in vectors(seed=3) if vector]
    params = twindex.Params(tokens="features", minhash_weights="frequencies", weight_unit=0.0625, sets=True, threshold=0.7)
    assert params.fields["tokens"].startswith("features")
    with twindex.Index.create(tmp_path / "a.twx", params) as index:
        outcomes = [index.admit(str(at), vector, drop_duplicates=True).outcome for at, vector in enumerate(given)]
    new = [at for at, outcome in enumerate(outcomes) if outcome == "new"]
    assert new == list(twindex.dedup(given, 0.7, weights="tf", weight_unit=0.0625, tokens="features").kept)
    assert 10 < len(new) < len(given)
    with twindex.Index.create(tmp_path / "b.twx", params) as other:
        other.put_many([str(at) for at in new], [given[at] for at in new])
    assert other.pairs(resembling=0.5) == index.pairs(resembling=0.5)
    assert [hit.key for hit in other.near(given[new[0]])] == [hit.key for hit in index.near(given[new[0]])]
    sketcher = twindex.Sketcher(params)
    one = {"a": 1, "b": 0.5}
    assert sketcher.sketch(one) == sketcher.sketch([("b", 0.5), ("a", 1)]) == sketcher.sketch_many([one])[0]
    assert sketcher.sketch({7: 1}) == sketcher.sketch({"7": 1.0}) != sketcher.sketch({7: 2})
    names = twindex.MinHash(tokens="features")
    assert names.resemblance(["a", "b"], ["b", "a", "a"]) == 1.0 and names.sketch([]).is_empty
    assert twindex.Simhash(tokens="features").fingerprint(["a"]) is not None
    pyarrow = pytest.importorskip("pyarrow")
    maps = pyarrow.array([list(one.items())], pyarrow.map_(pyarrow.string(), pyarrow.float64()))
    assert sketcher.sketch_many(maps) == sketcher.sketch_many([one])
    assert names.sketch_many(pyarrow.array([["a", "b"]])) == names.sketch_many([["a", "b"]])


def test_invalid_features_are_refused_with_their_position():
    texts_alone = twindex.Sketcher(twindex.Params())
    vectors_alone = twindex.Sketcher(twindex.Params(tokens="features", minhash_weights="frequencies", weight_unit=1))
    for why, call in [
        ("expected str or bytes, found features", lambda: texts_alone.sketch(["a"])),
        ("expected features.* found a text", lambda: vectors_alone.sketch("a")),
        (r"texts\[1\]: expected features.* found a text", lambda: twindex.dedup([["a"], "a"], tokens="features")),
        (r"texts\[1\]: expected str or bytes, found features", lambda: twindex.dedup(["a", ["a"]])),
        ("has a string as the weight of \"a\"", lambda: vectors_alone.sketch({"a": "b"})),
        ("with and without weights", lambda: vectors_alone.sketch(["a", ["b", 1]])),
        ("JSON cannot write", lambda: vectors_alone.sketch({"a": float("nan")})),
        ("JSON cannot write", lambda: vectors_alone.sketch([b"a"])),
        ("two weights of \"7\"", lambda: vectors_alone.sketch({7: 1, "7": 2})),
        ("features are not cut", lambda: twindex.Params(tokens="features", words=2)),
        ("fold says how text is cut, and tokens=.features. takes", lambda: twindex.dedup([["a"]], tokens="features", fold="marks")),
        ("weight_unit goes with weights", lambda: twindex.dedup([["a"]], tokens="features", weight_unit=1)),
        ("weights idf needs a table", lambda: twindex.dedup([["a"]], tokens="features", weights="idf")),
        ("found features|features", lambda: twindex.IdfTable.of([["a"]])),
    ]:
        with pytest.raises((twindex.InvalidError, TypeError), match=why):
            call()
    # A weight below half a unit would have a larger error than the bound.
    with pytest.raises(twindex.InvalidError, match="record 1"):
        twindex.dedup([{"a": 1}, {"a": 0.25}], tokens="features", weights="tf")


def test_dedup_of_vectors_equals_the_command(tmp_path):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command to compare with: name it in TWINDEX")
    given = [{name: weight + 1 for name, weight in vector.items()} for vector in vectors(seed=12)]
    with open(tmp_path / "in.jsonl", "w") as out:
        for number, vector in enumerate(given):
            out.write(json.dumps({"id": f"{number:04}", "f": vector}) + "\n")
    table = twindex.IdfTable.of(given, tokens="features", min_df=1)
    table.save(tmp_path / "f.idf")
    for name, line, options in [
        ("tf", ["--weights", "tf"], {"weights": "tf", "tokens": "features"}),
        ("idf", ["--weights", "idf", "--idf", tmp_path / "f.idf", "--weight-unit", "0.25"],
         {"weights": "idf", "idf": table, "weight_unit": 0.25}),
        ("distinct", [], {"tokens": "features"}),
    ]:
        line = [command, "dedup", tmp_path / "in.jsonl", "--features-field", "f", "-o", tmp_path / name, *line]
        subprocess.run([*line, "--threshold", "0.7", "-q"], check=True)
        found = twindex.dedup(given, 0.7, **options)
        clusters = [row.split("\t") for row in (tmp_path / name / "clusters.tsv").read_text().splitlines()[1:]]
        assert [int(kept) for _, _, kept, _ in clusters] == found.representatives, name
        assert [score for *_, score in clusters] == [f"{score:.6f}" for score in found.scores], name
        assert 10 < len(found.kept) < len(given)


def test_idf_tables_can_be_saved_pickled_and_compared(tmp_path):
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


def test_missing_requirements_of_weights_are_refused_by_name():
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
        ("weights idf needs a table", lambda: twindex.dedup(given, weights="idf")),
        ("idf goes with weights idf", lambda: twindex.dedup(given, weights="tf", idf=table)),
        ("weight_unit goes with", lambda: twindex.dedup(given, weights="tf", weight_unit=1)),
        ("multiple of 1/65536", lambda: twindex.dedup(given, weights="idf", idf=table, weight_unit=0.3)),
        ("width=1", lambda: twindex.dedup(given, weights="idf", idf=table, words=3)),
        ("one shingle, found 2", lambda: table.weight("a b")),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            call()
