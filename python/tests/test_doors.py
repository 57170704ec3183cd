"""Inputs, decisions and results of `dedup`: all kinds of columns and tables, all rules of the command, and result
columns."""

import collections.abc
import json
import os
import pickle
import random
import shutil
import subprocess

import pytest

import twindex

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SAME = "one two three four five six seven eight"
TEXTS = [SAME, "something else altogether", SAME + " nine", SAME]


def decided(texts, **options):
    return twindex.dedup(texts, **{"near": 0.5, "words": 2, **options}).representatives.tolist()


EXPECTED = [0, 1, 0, 0]


def test_columns_and_tables_of_all_arrow_libraries_are_accepted():
    assert decided(TEXTS) == decided(iter(TEXTS)) == decided([text.encode() for text in TEXTS]) == EXPECTED
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": [1, 2, 3, 4], "text": TEXTS})
    columns = [
        table["text"],
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[2:]).dictionary_encode()]),
        pa.array(TEXTS, pa.string_view()),
        table,
        table.select(["text"]),
        table.to_batches()[0],
    ]
    for column in columns:
        assert decided(column) == EXPECTED, type(column)
    assert decided(table, text_field="text") == EXPECTED
    two = table.append_column("title", pa.array(["a", "b", "c", "d"]))
    assert decided(two, text_field="text") == EXPECTED and decided(two, text_field="title") == [0, 1, 2, 3]
    with pytest.raises(twindex.InvalidError, match="which of the columns id, text, title.*text_field"):
        decided(two)
    with pytest.raises(twindex.InvalidError, match="text_field: no column body in texts; there are id, text, title"):
        decided(two, text_field="body")
    with pytest.raises(twindex.InvalidError, match="text_field: texts is a column and no table"):
        decided(table["text"], text_field="text")
    with pytest.raises(TypeError, match="expected a string or bytes, found an integer"):
        decided(table, text_field="id")


def test_pandas_numpy_polars_duckdb_and_datasets_are_accepted():
    seen = 0
    for name in ("numpy", "pandas", "polars", "duckdb", "datasets"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        seen += 1
        if name == "numpy":
            assert decided(module.array(TEXTS)) == decided(module.array(TEXTS, object)) == EXPECTED
        elif name == "pandas":
            frame = module.DataFrame({"id": [1, 2, 3, 4], "text": TEXTS})
            assert decided(frame["text"]) == decided(frame, text_field="text") == EXPECTED
            assert decided(frame["text"].astype("category")) == EXPECTED
            missing = frame["text"].where(frame["id"] != 2)
            assert decided(missing, nulls="keep") == EXPECTED and decided(missing, nulls="drop") == [0, None, 0, 0]
            shuffled = frame.iloc[[3, 1, 2, 0]]
            assert decided(shuffled["text"]) == decided(shuffled, text_field="text") == EXPECTED
        elif name == "polars":
            frame = module.DataFrame({"id": [1, 2, 3, 4], "text": TEXTS})
            assert decided(frame["text"]) == decided(frame) == decided(frame, text_field="text") == EXPECTED
            assert decided(frame["text"].cast(module.Categorical)) == EXPECTED
        elif name == "duckdb":
            relation = module.sql("select unnest($texts) as text", params={"texts": TEXTS})
            assert decided(relation) == decided(relation, text_field="text") == EXPECTED
        else:
            dataset = module.Dataset.from_dict({"id": [1, 2, 3, 4], "text": TEXTS})
            assert decided(dataset, text_field="text") == decided(dataset["text"]) == EXPECTED
            assert decided(dataset.select_columns(["text"])) == EXPECTED
            # The selected rows are used, not those of the file.
            assert decided(dataset.select([2, 1, 0]), text_field="text") == [0, 1, 0]
            assert decided(dataset) == EXPECTED
    if not seen:
        pytest.skip("none of numpy, pandas, polars, duckdb and datasets is here")


def test_table_is_not_read_as_its_column_names():
    with pytest.raises(TypeError, match="expected a column, found a table .dict.; name one by text_field"):
        decided({"text": TEXTS})
    assert decided({"text": TEXTS}, text_field="text") == EXPECTED


def test_nulls_option_refuses_keeps_or_drops_nulls():
    given = [SAME, None, SAME, None, float("nan")]
    with pytest.raises(twindex.InvalidError, match="record 1: texts: expected a text, found null.*nulls=") as refused:
        decided(given)
    assert refused.value.record == 1
    kept = twindex.dedup(given, nulls="keep")
    assert kept.representatives == [0, 1, 0, 3, 4] and kept.kept == [0, 1, 3, 4] and kept.groups == [0, 1, 0, 2, 3]
    dropped = twindex.dedup(given, nulls="drop")
    assert dropped.representatives == [0, None, 0, None, None] and dropped.kept == [0]
    assert dropped.mask == [True, False, False, False, False] and dropped.groups == [0, None, 0, None, None]
    assert dropped.scores == [1.0, None, 1.0, None, None] and dropped.pairs == [(2, 0, 1.0)]
    # Values stay aligned with the texts.
    found = twindex.dedup([None, SAME, SAME], nulls="drop", keep=("max", [9, 1, 2]), inside=[None, "a", "a"])
    assert found.representatives == [None, 2, 2]
    with pytest.raises(twindex.InvalidError, match="nulls: expected raise or keep or drop, found ignore"):
        decided(given, nulls="ignore")


def test_result_columns_behave_as_sequences():
    found = twindex.dedup([*TEXTS, SAME + " nine"], 0.5, words=2, keep="longest")
    assert len(found) == 5 and found.kept == [1, 2] and found.mask == [False, True, True, False, False]
    assert found.representatives == [2, 1, 2, 2, 2] and found.groups == [0, 1, 0, 0, 0]
    scores = found.scores
    assert scores[0] == 7 / 8 and scores[-1] == scores[2] == 1.0 and scores[1:3] == [1.0, 1.0]
    assert [pair[:2] for pair in found.pairs] == [(0, 2), (3, 2), (4, 2)] and found.pairs[0] == (0, 2, 7 / 8)
    assert isinstance(found.kept[0], int) and list(found.kept) == found.kept.tolist() == [1, 2]
    assert found.kept is found.kept and found.kept != [1] and found.kept == found.kept and repr(found.kept) == "[1, 2]"
    with pytest.raises(IndexError, match="below 2, found 2"):
        found.kept[2]
    many = twindex.dedup([f"text {n} w{n} x{n} y{n} z{n}" for n in range(1000)])
    assert repr(many.kept).endswith("19, ...] (1000 values)") and many.kept[::-1][0] == 999
    again = pickle.loads(pickle.dumps(found))
    assert again.pairs == found.pairs and again.mask == found.mask and again.groups == found.groups
    dropped = twindex.dedup([SAME, None], nulls="drop")
    assert pickle.loads(pickle.dumps(dropped)).representatives == [0, None]
    assert isinstance(found.kept, collections.abc.Iterable)


def test_results_convert_to_arrow_and_numpy():
    pa = pytest.importorskip("pyarrow")
    found = twindex.dedup(TEXTS, 0.5, words=2)
    table = pa.table(found)
    assert table.column_names == ["mask", "group", "representative", "score"] and table.num_rows == 4
    assert table.filter(table["mask"]).num_rows == len(found.kept) == 2
    assert pa.array(found.pairs).to_pylist() == [
        {"text": 2, "other": 0, "score": 7 / 8},
        {"text": 3, "other": 0, "score": 1.0},
    ]
    assert pa.array(twindex.dedup([None, SAME], nulls="drop").groups).to_pylist() == [None, 0]
    numpy = pytest.importorskip("numpy")
    mask = numpy.asarray(found.mask)
    assert mask.dtype == bool and numpy.array(TEXTS)[mask].tolist() == TEXTS[:2]
    assert numpy.asarray(found.representatives, dtype="int64").tolist() == EXPECTED
    assert numpy.isnan(numpy.asarray(twindex.dedup([None, SAME], nulls="drop").scores)).tolist() == [True, False]


def test_texts_near_a_history_are_removed():
    old = [SAME, "of yesterday alone and nothing else"]
    found = twindex.dedup([SAME + " nine", "a new text", "a new text", SAME], 0.5, words=2, against=old)
    assert found.history == [0, None, None, 0] and found.representatives == [None, 1, 1, None]
    assert found.kept == [1] and found.groups == [0, 1, 1, 0] and found.scores[0] == 7 / 8
    assert found.pairs == [(2, 1, 1.0)]
    # Daily runs give the same result as one run.
    chance = random.Random(3)
    texts = [" ".join(chance.choice("abcdefgh") for _ in range(12)) for _ in range(300)]
    whole = twindex.dedup(texts, 0.5, words=1)
    first = twindex.dedup(texts[:150], 0.5, words=1)
    kept = [texts[at] for at in first.kept]
    second = twindex.dedup(texts[150:], 0.5, words=1, against=kept)
    assert whole.kept == [*first.kept, *(150 + at for at in second.kept)] and len(second.kept) < 140
    # A larger text is kept, and the text that it contains is reported.
    larger = twindex.dedup([SAME + " nine ten", "eight"], "containment:1", words=1, against=[SAME])
    assert larger.kept == [0] and larger.history == [None, 0] and larger.contained == [(0, 0, 1.0)]


@pytest.mark.parametrize("near", ["resemblance", "containment"])
def test_values_of_texts_and_history_are_compared_inside(near):
    chance = random.Random(5)
    values = ["en", "de", 7]
    texts = [[chance.choice(LETTERS) for _ in range(chance.randrange(2, 12))] for _ in range(240)]
    # Equal texts with equal and with different values.
    texts[150:180] = texts[20:50]
    texts[200:220] = texts[180:200]
    inside = [values[chance.randrange(3)] for _ in texts]
    inside[150:165] = inside[20:35]
    inside[200:215] = inside[180:195]
    old, new = slice(0, 90), slice(90, None)
    joined = [" ".join(words) for words in texts]
    given = dict(words=1, near=f"{near}:0.7", inside=inside[new], against=joined[old], against_inside=inside[old])
    found = twindex.dedup(joined[new], **given)
    # Brute force: each text is compared with the history and the kept texts before it that have its value.
    sets = [set(words) for words in texts]

    def is_near(one, two):
        if near == "resemblance":
            return len(one & two) / len(one | two) >= 0.7
        return len(one) <= len(two) and len(one & two) / len(one) >= 0.7

    order = sorted(range(90, 240), key=lambda at: (-len(sets[at]), at)) if near == "containment" else range(90, 240)
    kept = list(range(90))
    for at in order:
        if not any(inside[at] == inside[other] and is_near(sets[at], sets[other]) for other in kept):
            kept.append(at)
    assert found.kept == sorted(at - 90 for at in kept[90:]) and 20 < len(found.kept) < 140
    removed = [(at + 90, found.history[at], found.representatives[at]) for at in range(150) if not found.mask[at]]
    assert all(inside[at] == inside[old if old is not None else of + 90] for at, old, of in removed)
    assert sum(old is not None for _, old, _ in removed) > 10 < sum(old is None for _, old, _ in removed)
    contained = {
        old: other
        for old in range(90)
        for other in kept[:89:-1]
        if near == "containment" and inside[old] == inside[other] and is_near(sets[old], sets[other])
    }
    assert {old for old, _, _ in found.contained} == set(contained)
    # Every text of another value is kept.
    alone = twindex.dedup(joined[new], **{**given, "against_inside": ["other"] * 90})
    assert alone.history == [None] * 150 and len(alone.kept) > len(found.kept) and alone.contained == []


def test_daily_dedup_inside_a_value_equals_the_command(tmp_path):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command to compare with: name it in TWINDEX")
    chance = random.Random(6)
    texts = [" ".join(chance.choice(LETTERS) for _ in range(12)) for _ in range(300)]
    languages = [chance.choice(["en", "de"]) for _ in texts]
    days, out = [range(150), range(150, 300)], [tmp_path / "one", tmp_path / "two"]
    for number, day in enumerate(days):
        with open(tmp_path / f"{number}.jsonl", "w") as lines:
            for at in day:
                lines.write(json.dumps({"id": f"{at:03}", "text": texts[at], "lang": languages[at]}) + "\n")
        line = [command, "dedup", tmp_path / f"{number}.jsonl", "-o", out[number], "--threshold", "0.4", "--words", "1"]
        line += ["--inside", "lang", "-q", *(["--against", out[0]] if number else [])]
        subprocess.run(line, check=True)
    kept = [[int(json.loads(line)["id"]) for line in (folder / "kept.jsonl").read_text().splitlines()] for folder in out]
    found = twindex.dedup(
        [texts[at] for at in days[1]],
        0.4,
        words=1,
        inside=[languages[at] for at in days[1]],
        against=[texts[at] for at in kept[0]],
        against_inside=[languages[at] for at in kept[0]],
    )
    assert [at + 150 for at in found.kept] == kept[1] and 10 < len(kept[1]) < 140


def test_values_of_the_history_are_checked():
    given = dict(against=["b", None, "c"], inside=["x"], nulls="drop")
    for options, why in [
        ({}, "^against_inside: expected a value for each text of against, because inside is given; found none"),
        ({"against_inside": ["x"]}, "^against_inside: expected 3, one a text of against, found 1"),
        ({"against_inside": ["x", "x", None]}, "^record 2: against: against_inside: the value is empty or missing"),
        ({"against_inside": ["x", "x", ""]}, "^record 2: against: against_inside: the value is empty or missing"),
        ({"against_inside": ["x"] * 3, "inside": None}, "^against_inside: goes with against and inside"),
        ({"against_inside": ["x"] * 3, "against": None}, "^against_inside: goes with against and inside"),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            twindex.dedup(["a"], **{**given, **options})
    # A text of the history that is null needs no value, and the others keep their places.
    found = twindex.dedup(["c"], **given, against_inside=["y", None, "x"])
    assert found.history == [2] and twindex.dedup(["c"], **given, against_inside=["x", None, "y"]).kept == [0]


def test_near_keep_and_weights_work_as_in_the_command():
    part = "one two three four"
    assert decided([part, SAME], near="containment:0.5") == [1, 1] and decided([part, SAME]) == [0, 1]
    often = ["a a a a b", "a b b b b"]
    assert twindex.dedup(often, 1.0, words=1).kept == [0]
    assert twindex.dedup(often, 0.25, words=1, weights="tf").scores == [1.0, 0.25]
    assert twindex.dedup(often, 0.26, words=1, weights="tf").kept == [0, 1]
    assert decided(TEXTS, keep=("smallest-key", ["d", "c", "b", "a"])) == [3, 1, 3, 3]
    assert decided(TEXTS, keep=("smallest-key", [9, 8, 10, 7])) == [3, 1, 3, 3]
    hashed = decided(TEXTS, keep=("key-hash", ["d", "c", "b", "a"]))
    assert len({hashed[0], hashed[2], hashed[3]}) == 1 and hashed[1] == 1
    backwards = decided(TEXTS[::-1], keep=("key-hash", ["a", "b", "c", "d"]))
    assert "abcd"[backwards[3]] == "dcba"[hashed[0]], "whatever the order of the texts"
    for name, value in (("near", "far"), ("weights", "bm25"), ("normal_form", "nfd"), ("fold", "case")):
        with pytest.raises(twindex.InvalidError, match=f'{name}: expected .*, found "{value}"'):
            decided(TEXTS, **{name: value})


def test_dedup_accepts_tokenization_options():
    assert twindex.dedup(["a==b c d", "a!=b c d"], 1.0).kept == [0]
    assert twindex.dedup(["a==b c d", "a!=b c d"], 1.0, tokens="raw").kept == [0, 1]
    assert twindex.dedup(["caf\u00e9", "cafe\u0301"], 1.0).kept == [0, 1]
    assert twindex.dedup(["caf\u00e9", "cafe\u0301"], 1.0, normal_form="nfkc").kept == [0]
    assert twindex.dedup(["caf\u00e9", "cafe"], 1.0, fold="marks").kept == [0]
    with pytest.raises(twindex.InvalidError, match="tokens: expected one of words, .*raw, .*found \"chars\""):
        twindex.dedup(["a"], tokens="chars")
