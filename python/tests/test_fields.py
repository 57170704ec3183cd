"""Names of fields in tables: paths into structs, pointers and lists, as the command takes them, and missing values."""

import json
import os
import shutil
import subprocess

import pytest

import twindex

SAME = "one two three four five six seven eight"
OTHER = "nothing in common with any of the others here"
PAGES = [
    {"text": SAME, "title": "a", "n": 1, "lang": "en", "id": "k3"},
    {"text": OTHER, "title": "b", "n": 5, "lang": "en", "id": "k2"},
    {"text": SAME, "title": "c", "n": 7, "lang": "de", "id": "k1"},
]
# Names of the same field.
NAMES = ["meta.page.{}", "/meta/page/{}"]


def tables(rows, column="meta"):
    """Returns a table of each library with these values in a column, and the row numbers in another."""
    columns = {column: rows, "row": list(range(len(rows)))}
    made = {"dict": columns}
    for name in ("pyarrow", "pandas", "polars", "datasets", "duckdb"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        if name == "pyarrow":
            made["pyarrow"] = module.table(columns)
            made["batch"] = made["pyarrow"].to_batches()[0]
            made["chunks"] = module.concat_tables([made["pyarrow"].slice(0, 1), made["pyarrow"].slice(1)])
            made["dict of arrays"] = {name: made["pyarrow"][name] for name in columns}
        elif name == "pandas":
            made["pandas"] = module.DataFrame(columns)
            if "pyarrow" in made:
                made["pandas of Arrow"] = made["pyarrow"].to_pandas(types_mapper=module.ArrowDtype)
        elif name == "polars":
            made["polars"] = module.DataFrame(columns)
        elif name == "datasets":
            made["datasets"] = module.Dataset.from_dict(columns)
        elif "pyarrow" in made:
            made["duckdb"] = module.from_arrow(made["pyarrow"])
    return made


PAGES_IN = tables([{"page": page} for page in PAGES])


@pytest.mark.parametrize("kind", PAGES_IN)
@pytest.mark.parametrize("name", NAMES)
def test_every_argument_takes_paths(kind, name):
    table, of = PAGES_IN[kind], name.format
    text = of("text")
    assert twindex.dedup(table, text_field=text).kept == [0, 1]
    assert twindex.dedup(table, text_field=text, keep="max:" + of("n")).kept == [1, 2]
    assert twindex.dedup(table, text_field=text, inside=of("lang")).kept == [0, 1, 2]
    assert twindex.dedup(table, text_field=text, inside="field:" + of("lang")).kept == [0, 1, 2]
    assert twindex.dedup(table, text_field=text, id_field=of("id"), keep="smallest-key").kept == [1, 2]
    right = twindex.dedup([page["text"] for page in PAGES], keep=("key-hash", [page["id"] for page in PAGES]))
    assert twindex.dedup(table, text_field=text, id_field=of("id"), keep="key-hash").kept == right.kept
    assert twindex.passages(table, 5, text_field=text) == [(2, 0, len(SAME), 0, 0, 8)]
    assert twindex.passages(table, 5, text_field=text, keep="max:" + of("n")) == [(0, 0, len(SAME), 2, 0, 8)]
    assert twindex.passages(table, 5, text_field=text, keep="smallest-key", id_field=of("id"))[0][:4] == (0, 0, len(SAME), 2)
    assert twindex.IdfTable.of(table, text_field=text, words=1, min_df=1).documents == 3
    with pytest.raises(twindex.InvalidError, match="text_field: no column meta.page.body in texts.*there are meta, row"):
        twindex.dedup(table, text_field="meta.page.body")
    with pytest.raises(twindex.InvalidError, match="text_field: no column row.text in texts"):
        twindex.dedup(table, text_field="row.text")
    for argument in ({"id_field": of("key")}, {"inside": of("key")}, {"keep": "max:" + of("key")}):
        (option,) = argument
        with pytest.raises(twindex.InvalidError, match=f"^{option}: no column .*key in texts"):
            twindex.dedup(table, text_field=text, **argument)


@pytest.mark.parametrize("kind", PAGES_IN)
def test_lists_of_fields_are_joined(kind):
    table = PAGES_IN[kind]
    joined = [page["title"] + "\n" + page["text"] for page in PAGES]
    for near in ("equal", "0.5"):
        right = twindex.dedup(joined, near)
        for names in ("meta.page.title,meta.page.text", "/meta/page/title,/meta/page/text"):
            found = twindex.dedup(table, near, text_field=names)
            assert found.kept == right.kept and found.scores == right.scores
    # The number of the row is the first part of the key.
    found = twindex.dedup(table, text_field="meta.page.text", id_field="row,meta.page.id", keep="smallest-key")
    assert found.kept == [0, 1]
    with pytest.raises(twindex.InvalidError, match="text_field: no column meta.nope in texts"):
        twindex.dedup(table, text_field="meta.page.text,meta.nope")
    with pytest.raises(twindex.InvalidError, match='text_field "meta.page.text,": a name in the list is empty'):
        twindex.dedup(table, text_field="meta.page.text,")


def test_exact_name_takes_precedence():
    pa = pytest.importorskip("pyarrow")
    columns = {"a.b": [SAME, SAME], "a": [{"b": SAME}, {"b": OTHER}], "a.b,c": [OTHER, SAME], "c": ["x", "y"]}
    for table in (columns, pa.table(columns)):
        assert twindex.dedup(table, text_field="a.b").kept == [0]
        assert twindex.dedup(table, text_field="/a/b").kept == [0, 1]
        assert twindex.dedup(table, text_field="a.b,c").kept == [0, 1]
        assert twindex.dedup(table, text_field="c,a.b").scores == twindex.dedup(["x\n" + SAME, "y\n" + SAME]).scores
    odd = {"a/b": [SAME, OTHER], "m": [{"x/y": SAME, "~": "s"}, {"x/y": SAME, "~": "t"}]}
    for table in (odd, pa.table(odd)):
        assert twindex.dedup(table, text_field="/a~1b").kept == [0, 1]
        assert twindex.dedup(table, text_field="/m/x~1y").kept == [0]
        assert twindex.dedup(table, text_field="/m/x~1y", inside="/m/~0").kept == [0, 1]


MISSING = [
    {"title": "t", "text": SAME, "n": 1},
    {"title": None, "text": SAME, "n": 2},
    None,
    {"title": "t", "text": None, "n": None},
]


@pytest.mark.parametrize("kind", tables(MISSING))
def test_missing_values_are_refused_by_row_or_empty(kind):
    table = tables(MISSING)[kind]
    with pytest.raises(twindex.InvalidError, match="record 2: texts: expected a text, found null") as refused:
        twindex.dedup(table, text_field="meta.text")
    assert refused.value.record == 2
    assert twindex.dedup(table, text_field="meta.text", nulls="keep").kept == [0, 2, 3]
    assert twindex.dedup(table, text_field="meta.text", nulls="drop").kept == [0]
    # A row without any of the texts has none; a text that only some rows lack is empty there.
    with pytest.raises(twindex.InvalidError, match="record 2: texts: expected a text, found null"):
        twindex.dedup(table, text_field="meta.title,meta.text")
    found = twindex.dedup(table, "equal", text_field="meta.title,meta.text", nulls="keep")
    assert found.kept == [0, 1, 2, 3]
    right = twindex.dedup(["t\n" + SAME, "\n" + SAME, "t\n"], words=1)
    assert twindex.dedup(table, text_field="meta.title,meta.text", nulls="drop", words=1).pairs == right.pairs
    for argument in ({"keep": "max:meta.n"}, {"inside": "meta.title"}):
        with pytest.raises(twindex.InvalidError, match="record [123]: "):
            twindex.dedup(table, text_field="meta.text", nulls="drop", **argument)
    with pytest.raises(twindex.InvalidError, match="record 1: id_field: expected a key"):
        twindex.dedup(table, text_field="meta.text", nulls="drop", keep="key-hash", id_field="meta.title")


def test_field_that_no_row_has_is_an_error():
    none = [{"text": SAME, "title": None}, {"text": SAME, "title": None}]
    for table in tables(none).values():
        with pytest.raises(twindex.InvalidError, match="text_field: no column meta.title in texts: no row has a value"):
            twindex.dedup(table, text_field="meta.text,meta.title")
        # Texts of a history may be older than a field.
        some = {"meta": [{"text": SAME, "title": "x"}]}
        assert len(twindex.dedup(some, text_field="meta.text,meta.title", against=table).mask) == 1


def test_history_has_the_same_fields():
    for kind, table in PAGES_IN.items():
        found = twindex.dedup(table, text_field="meta.page.text", against=table)
        assert found.kept == [] and found.history == [0, 1, 0], kind
        found = twindex.dedup(table, text_field="meta.page.text", against=table, inside="meta.page.lang")
        assert found.history == [0, 1, 2], kind
        values = ["en", "en", "fr"]
        found = twindex.dedup(
            table, text_field="meta.page.text", against=table, inside="meta.page.lang", against_inside=values
        )
        assert found.history == [0, 1, None] and found.kept == [2], kind


def test_names_of_columns_need_a_table():
    for argument, said in [
        ({"text_field": "text"}, "text_field: texts is a list and no table, so that there is no column text; leave it out"),
        ({"inside": "lang"}, "inside: texts is a list and no table.*give a value for each text instead"),
        ({"id_field": "id"}, "id_field: texts is a list and no table"),
        ({"id_field": "FILE:ROW"}, "id_field: FILE:ROW is not taken here: texts in memory are in no file"),
        ({"inside": "host"}, "inside: host is a part of a URL.*or field:host for a column"),
    ]:
        with pytest.raises(twindex.InvalidError, match=said):
            twindex.dedup([SAME, OTHER], **argument)
    assert twindex.dedup([SAME, SAME], inside=["a", "b"]).kept == [0, 1]


def test_features_in_a_column_of_lists():
    rows = [["a", "b"], ["a", "b"], ["c"]]
    for kind, table in tables(rows, "set").items():
        if kind != "duckdb":
            assert twindex.dedup(table, text_field="set", tokens="features").kept == [0, 2], kind


def test_fields_decide_as_by_the_command(tmp_path):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command twindex")
    rows = [{"id": f"k{(number * 7) % 9}", "meta": {"page": page}} for number, page in enumerate(PAGES * 3)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    for options in [
        {"text_field": "meta.page.text", "keep": "max:/meta/page/n"},
        {"text_field": "meta.page.title,meta.page.text", "near": "0.5", "keep": "smallest-key"},
        {"text_field": "/meta/page/text", "inside": "meta.page.lang", "keep": "key-hash"},
    ]:
        out = tmp_path / "out"
        given = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
        subprocess.run([command, "dedup", "in.jsonl", "-q", "--force", "-o", "out", *given], cwd=tmp_path, check=True)
        kept = {json.loads(line)["id"] for line in (out / "kept.jsonl").read_text().splitlines()}
        found = twindex.dedup(table, id_field="id", **options)
        assert {rows[at]["id"] for at in found.kept} == kept, options
