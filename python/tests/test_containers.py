"""Containers of each library go in, and come out of `filter` without the removed rows."""

import multiprocessing
import pickle
import random
import re
import subprocess
import sys

import pytest

import twindex

SAME = "one two three four five six seven eight"
TEXTS = [SAME, "something else altogether", SAME, "more of other words"]
ROWS = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
COLUMNS = {"id": list(range(4)), "text": TEXTS}
KEPT = [True, True, False, True]


def dataset_file(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pytest.importorskip("pyarrow").table(COLUMNS), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def arrow(tmp_path):
    return pytest.importorskip("pyarrow").table(COLUMNS)


def arrow_dataset(tmp_path):
    return pytest.importorskip("pyarrow.dataset").dataset(dataset_file(tmp_path))


def hugging_face(tmp_path):
    return pytest.importorskip("datasets").Dataset.from_dict(COLUMNS)


def duckdb_relation(tmp_path):
    duckdb, table = pytest.importorskip("duckdb"), arrow(tmp_path)
    return duckdb.from_arrow(table)


# How each container is made, how its ids are read after `filter`, and the class that `filter` returns: None for the same.
CONTAINERS = {
    "list of str": (lambda _: list(TEXTS), None, None),
    "list of dicts": (lambda _: [dict(row) for row in ROWS], lambda rows: [row["id"] for row in rows], None),
    "iterator of dicts": (lambda _: iter(ROWS), None, None),
    "dict of lists": (lambda _: dict(COLUMNS), lambda data: data["id"], None),
    "numpy": (lambda _: pytest.importorskip("numpy").array(TEXTS, object), None, None),
    "pandas": (lambda _: pytest.importorskip("pandas").DataFrame(COLUMNS), lambda data: data["id"].tolist(), None),
    "pandas column": (lambda _: pytest.importorskip("pandas").DataFrame(COLUMNS)["text"], None, None),
    "polars": (lambda _: pytest.importorskip("polars").DataFrame(COLUMNS), lambda data: data["id"].to_list(), None),
    "polars LazyFrame": (
        lambda _: pytest.importorskip("polars").LazyFrame(COLUMNS),
        lambda data: data.collect()["id"].to_list(),
        None,
    ),
    "pyarrow Table": (arrow, lambda data: data["id"].to_pylist(), None),
    "list of record batches": (
        lambda path: arrow(path).to_batches(max_chunksize=3),
        lambda data: [number for batch in data for number in batch.column(0).to_pylist()],
        None,
    ),
    "pyarrow dataset": (arrow_dataset, lambda data: data.to_table()["id"].to_pylist(), "InMemoryDataset"),
    "pyarrow scanner": (lambda path: arrow_dataset(path).scanner(), lambda data: data["id"].to_pylist(), "Table"),
    "ParquetFile": (
        lambda path: pytest.importorskip("pyarrow.parquet").ParquetFile(dataset_file(path)),
        lambda data: data["id"].to_pylist(),
        "Table",
    ),
    "datasets Dataset": (hugging_face, lambda data: data["id"][:], None),
    "datasets DatasetDict": (
        lambda path: pytest.importorskip("datasets").DatasetDict({"train": hugging_face(path)}),
        lambda data: data["train"]["id"][:],
        None,
    ),
    "datasets IterableDataset": (lambda path: hugging_face(path).to_iterable_dataset(), None, "list"),
    "DuckDB relation": (duckdb_relation, lambda data: [number for number, _ in data.fetchall()], None),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_container_goes_in_and_comes_out_filtered(kind, tmp_path):
    make, ids, of_class = CONTAINERS[kind]
    data = make(tmp_path)
    # A table with one column of text needs no name, except a dict, whose values may be anything.
    found = twindex.dedup(data, **({"text_field": "text"} if kind == "dict of lists" else {}))
    assert found.mask == KEPT
    if ids is not None or "column" in kind or kind in ("list of str", "numpy"):
        rest = found.filter(data)
        assert type(rest).__name__ == (of_class or type(data).__name__)
        assert (ids or (lambda data: [TEXTS.index(text) for text in data]))(rest) == [0, 1, 3]
    if ids is not None:
        again = make(tmp_path)
        assert twindex.dedup(again, text_field="text", id_field="id", keep="smallest-key").mask == KEPT
        assert twindex.passages(make(tmp_path), 5, text_field="text") == [(2, 0, len(SAME), 0, 0, 8)]
        assert twindex.dedup([SAME], against=make(tmp_path), against_text_field="text").history == [0]
        assert twindex.dedup(make(tmp_path), against=TEXTS[1:2], text_field="text").history == [None, 0, None, None]


def test_wrong_number_of_rows_is_refused_by_filter(tmp_path):
    found = twindex.dedup(TEXTS)
    for kind, (make, ids, _) in CONTAINERS.items():
        if ids is not None:
            try:
                data = make(tmp_path)
            except pytest.skip.Exception:
                continue
            with pytest.raises(twindex.InvalidError, match="data: expected 3 rows, one for each text, found 4"):
                twindex.dedup(TEXTS[:3]).filter(data)
    assert found.filter(iter(TEXTS)) == found.filter(TEXTS) and found.filter(tuple(TEXTS)) == tuple(found.filter(TEXTS))


def test_mask_selects_rows_in_each_library(tmp_path):
    mask = twindex.dedup(TEXTS).mask
    assert mask == KEPT and ~mask == [False, False, True, False] and mask.tolist() == KEPT
    assert repr(twindex.dedup(["a"] * 30).mask).endswith(", False, ...] (30 values)")
    seen = 0
    for name in ("pandas", "polars", "numpy", "pyarrow"):
        try:
            library = __import__(name)
        except ImportError:
            continue
        seen += 1
        if name == "pandas":
            frame = library.DataFrame(COLUMNS)
            for rest in (frame[mask], frame.loc[mask], frame["text"][mask].to_frame()):
                assert rest.index.tolist() == [0, 1, 3]
            assert frame[~mask]["id"].tolist() == [2]
        elif name == "polars":
            frame = library.DataFrame(COLUMNS)
            assert frame.filter(mask)["id"].to_list() == frame["id"].filter(library.Series(mask)).to_list() == [0, 1, 3]
            assert frame.filter(~mask)["id"].to_list() == [2]
        elif name == "numpy":
            assert library.array([0, 1, 2, 3])[mask].tolist() == [0, 1, 3]
            assert library.asarray(mask).dtype == bool
        else:
            assert library.table(COLUMNS).filter(mask)["id"].to_pylist() == [0, 1, 3]
            assert library.array([0, 1, 2, 3]).filter(mask).to_pylist() == [0, 1, 3]
    if not seen:
        pytest.skip("none of pandas, polars, numpy and pyarrow is here")


def test_several_splits_are_named_in_the_error():
    datasets = pytest.importorskip("datasets")
    data = datasets.DatasetDict({"train": hugging_face(None), "test": hugging_face(None)})
    with pytest.raises(twindex.InvalidError, match=r'which split of train, test\? name it, texts\["train"\].*\["test"\]'):
        twindex.dedup(data)
    assert twindex.dedup(data["test"], against=data["train"]).kept == []


def test_table_with_several_texts_is_refused_with_its_columns():
    rows = [{"title": "a", "text": SAME}]
    with pytest.raises(twindex.InvalidError, match='texts: which of the columns title, text. name it by text_field="..."'):
        twindex.dedup(rows)
    assert twindex.dedup(rows, text_field="title,text").kept == [0]


def test_arguments_of_wrong_types_raise_type_errors_that_name_them(tmp_path):
    path = tmp_path / "pages.jsonl"
    for name, call in [
        ("texts", lambda: twindex.dedup(5)),
        ("texts", lambda: twindex.dedup(None)),
        ("texts", lambda: twindex.dedup([1])),
        ("texts", lambda: twindex.dedup([SAME, 2.5])),
        ("texts", lambda: twindex.dedup(["a", ["b"]])),
        ("texts", lambda: twindex.passages([1])),
        ("texts", lambda: twindex.Sketcher(twindex.Params()).sketch_many(5)),
        ("against", lambda: twindex.dedup([SAME], against=5)),
        ("inside", lambda: twindex.dedup([SAME], inside=5)),
        ("keep", lambda: twindex.dedup([SAME], keep=5)),
        ("text_field", lambda: twindex.dedup([SAME], text_field=5)),
        ("against_text_field", lambda: twindex.dedup([SAME], against=[], against_text_field=5)),
        ("nulls", lambda: twindex.dedup([SAME], nulls=5)),
        ("idf", lambda: twindex.dedup([SAME], idf="words.idf")),
        ("progress", lambda: twindex.dedup([SAME], progress=5)),
        ("words", lambda: twindex.dedup([SAME], words={})),
    ]:
        with pytest.raises(TypeError, match=rf"\b{name}\b"):
            call()
    for given in (path, str(path), b"a text"):
        with pytest.raises(TypeError, match="texts: expected texts, found a single .*: twindex dedup FILE -o OUT"):
            twindex.dedup(given)
    with pytest.raises(twindex.InvalidError, match="against_text_field: goes with against"):
        twindex.dedup([SAME], against_text_field="text")
    with pytest.raises(twindex.InvalidError, match="text_form: not a setting here: texts are compared as they are"):
        twindex.dedup([SAME], text_form="html")


def test_integer_keys_are_ordered_as_numbers():
    texts = [SAME] * 4
    for keys in ([10, 9, -1, 2**63], ["10", "9", "b", "a"]):
        numbers = all(isinstance(key, int) for key in keys)
        assert twindex.dedup(texts, keep=("smallest-key", keys)).kept == [2 if numbers else 0]
    # The command orders keys of files by their digits.
    assert twindex.dedup([{"id": 10, "text": SAME}, {"id": 9, "text": SAME}], id_field="id", keep="smallest-key").kept == [0]
    assert twindex.dedup(texts, inside=[1, -1, "1", 1]).representatives == [0, 1, 0, 0]


def test_pairs_are_drawn_with_the_words_that_differ():
    words = [f"w{number}" for number in range(200)]
    other = [*words[:100], "<b>", *words[101:]]
    found = twindex.dedup([" ".join(words), " ".join(other), "alone", " ".join(words)], against=["alone & old", "alone"])
    shown = found.show()
    assert [(pair.text, pair.other) for pair in shown] == [(1, "0"), (2, "against 1"), (3, "0")]
    html = shown._repr_html_()
    assert "<mark>&lt;b&gt; </mark>" in html and "<mark>w100 </mark>" in html and "<b>" not in html
    assert "w88 " in html and "w87 " not in html and "kept: against 1" in html and len(html) < 4000
    assert "http" not in html and "<script" not in html
    assert re.search(r"removed 1, kept 0, resemblance 0\.9\d+\n  - ….* w99 \[<b>\] w101 ", repr(shown))
    assert pickle.loads(pickle.dumps(found)).show() == shown
    assert twindex.dedup(["a"]).show() == [] and "features" in repr(twindex.dedup([["a"]] * 2, tokens="features").show())
    chance = random.Random(3)
    many = [" ".join(chance.choices(words, k=300)) for _ in range(5)]
    many = [f"{text} v{number}" for number in range(40) for text in many]
    scores = [pair.score for pair in twindex.dedup(many).show()]
    assert len(scores) == 12 and scores == sorted(scores)


# A separate program, because the test process has threads of other libraries, which a fork would not have.
POOLS = """
import multiprocessing, sys
import twindex

TEXTS = ["one two three four five six", "another text", "one two three four five six"]


def sketched(sketcher):
    return sketcher.sketch_many(TEXTS), twindex.dedup(TEXTS).mask


def sketch(text):
    return twindex.Sketcher(twindex.Params(words=2, sets=True)).sketch(text)


if __name__ == "__main__":
    sketcher = twindex.Sketcher(twindex.Params(words=2, sets=True))
    here = sketched(sketcher)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(sketched, [sketcher] * 4) == [here] * 4
        assert pool.map(sketch, TEXTS) == here[0]
    print("equal")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes_work_after_a_batch(tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    (tmp_path / "program.py").write_text(POOLS)
    line = [sys.executable, tmp_path / "program.py", method]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, "equal\n"), ended.stderr


def test_sketches_are_pickled_with_what_compares_them(tmp_path):
    table = twindex.IdfTable.of(TEXTS, words=2, min_df=1)
    weighted = twindex.Params(weights="idf", idf=table)
    with twindex.Index.create(tmp_path / "x.twx", weighted) as index:
        sketches = [index.sketch(SAME), *twindex.MinHash(words=2, seed=7).sketch_many([SAME, SAME + " nine", "..."])]
    again = pickle.loads(pickle.dumps(sketches))
    assert again == sketches and again[1].resemblance(again[2]) == sketches[1].resemblance(sketches[2]) < 1
    assert again[3].is_empty and again[0].fingerprint == sketches[0].fingerprint
    many = twindex.MinHash(words=2).sketch_many(TEXTS * 10)
    # The parameters are written once.
    assert len(pickle.dumps(many)) < 30 * len(pickle.dumps(many[0]))
    with pytest.raises(twindex.Error, match="not the bytes of a sketch"):
        twindex.Sketch._of(twindex.Sketcher(twindex.Params()), b"\x00")
