"""Sketches must equal those of Rust in tests/golden."""

import pathlib
import re

import pytest

import twindex

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/sketches.tsv"


def rows():
    lines = [line for line in GOLDEN.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines[1:]]


def fingerprint(value):
    return None if value == "-" else int(value, 16)


def text_of(row):
    """Decodes the text of a golden row, with the escapes of tests/support/golden.rs."""

    def plain(text):
        return re.sub(r"\\u\{([0-9a-f]+)\}", lambda escape: chr(int(escape.group(1), 16)), text)

    repeated = re.fullmatch(r"\\repeat\{(\d+)\}(.*)", row["text"])
    return plain(repeated[2]) * int(repeated[1]) if repeated else plain(row["text"])


def params_of(row, **options):
    return twindex.Params(
        words=int(row["width"]), seed=int(row["seed"]), minhash=(int(row["bands"]), int(row["rows"])), **options
    )


def test_fingerprints_equal_the_golden_file():
    compared = 0
    for row in rows():
        for column, weights in (("occurrences_fingerprint", "occurrences"), ("distinct_fingerprint", "distinct")):
            sketch = twindex.Sketcher(params_of(row, weights=weights)).sketch(text_of(row))
            assert sketch.fingerprint == fingerprint(row[column]), row["name"]
            compared += 1
    assert compared > 20


def test_minima_and_features_equal_the_golden_file():
    compared = 0
    for row in rows():
        sketch = twindex.Sketcher(params_of(row)).sketch(text_of(row))
        signature = b"".join(minimum.to_bytes(4, "little") for minimum in sketch.signature)
        features = b"".join(feature.to_bytes(8, "little") for feature in sketch.features)
        assert f"{twindex._twindex.xxh3_64(signature):016x}" == row["signature_hash"], row["name"]
        assert f"{twindex._twindex.xxh3_64(features):016x}" == row["features_hash"], row["name"]
        compared += len(sketch.signature)
    assert compared > 1000


def test_single_texts_lists_and_columns_give_equal_sketches():
    texts = [text_of(row) for row in rows()]
    sketcher = twindex.Sketcher(twindex.Params(words=2))
    one = [sketcher.sketch(text) for text in texts]
    many = sketcher.sketch_many(texts)
    as_bytes = sketcher.sketch_many([text.encode() for text in texts])
    for a, b, c in zip(one, many, as_bytes, strict=True):
        assert a.fingerprint == b.fingerprint == c.fingerprint
        assert a.signature == b.signature == c.signature
        assert a.features == b.features == c.features


def test_arrow_string_arrays_give_the_same_sketches_as_lists():
    pa = pytest.importorskip("pyarrow")
    texts = ["a rose is a rose is a rose", "", "another page about nothing much", "ünïcödé and 漢字 too"]
    sketcher = twindex.Sketcher(twindex.Params(words=2))
    expected = [sketch.fingerprint for sketch in sketcher.sketch_many(texts)]
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
    for kind in kinds:
        array = pa.array([text.encode() if "binary" in str(kind) else text for text in texts], kind)
        for given in (array, pa.chunked_array([array[:1], array[1:]]), pa.concat_arrays([array, array])[4:]):
            assert [sketch.fingerprint for sketch in sketcher.sketch_many(given)] == expected, kind
    with pytest.raises(twindex.InvalidError, match="record 0: texts: expected a text, found none"):
        sketcher.sketch_many(pa.nulls(2))
    rows = pa.record_batch(sketcher.rows(["a", "b", "c", "d"], pa.array(texts), 4))
    assert rows.schema.names == ["key", "shard", "fingerprint", "features", "signature", "bottom", "modular", "set"]
    assert rows.column("fingerprint").to_pylist() == expected
    assert rows.column("features").null_count == 1, "of the text without words"


def test_minhash_and_simhash_work_as_separate_sketchers():
    minhash, simhash = twindex.MinHash(20, 6, words=2), twindex.Simhash(words=2)
    assert len(minhash.sketch("a rose is a rose").signature) == 120
    assert minhash.sketch("a rose is a rose").fingerprint is None
    assert minhash.resemblance("a rose is a rose is", "a rose is a rose was") < 1.0
    assert simhash.fingerprint("") is None
    assert simhash.distance("a rose is a rose", "A rose is a rose!") == 0
    assert simhash.fingerprints(["a b c", "d e f"]) == [simhash.fingerprint("a b c"), simhash.fingerprint("d e f")]


def test_values_that_are_not_texts_are_refused_with_their_position():
    sketcher = twindex.Sketcher(twindex.Params())
    with pytest.raises(TypeError, match=r"texts\[1\]: expected str, bytes or an int"):
        sketcher.sketch_many(["a", 1.5])
    with pytest.raises(twindex.InvalidError, match="record 1: texts: expected a text, found none") as refused:
        sketcher.sketch_many(["a", None])
    assert refused.value.record == 1
    with pytest.raises(twindex.InvalidError, match="record 1: texts: .*found a lone surrogate"):
        sketcher.sketch_many(["a", "\ud800"])
    with pytest.raises(twindex.InvalidError, match="the first of both texts has no words, and so no resemblance"):
        twindex.MinHash(words=2).resemblance("", "a rose is a rose")
    with pytest.raises(TypeError, match="put a text in a list"):
        sketcher.sketch_many("a text")
