"""Settings come from the table of the library, and documentation and types are written from it.

To write them again after a change of the table, with the module installed:

    python python/tests/test_settings.py
"""

import inspect
import pathlib
import re
import textwrap

import pytest

import twindex
from twindex import _twindex

PYTHON = pathlib.Path(__file__).parents[1]
STUB = PYTHON / "twindex" / "__init__.pyi"
FIRST, LAST = "# From here on written by python/tests/test_settings.py.\n", "# The end of what it writes.\n"
DOCUMENTED = {"dedup": "dedup_settings.txt", "passages": "passages_settings.txt"}
TYPES = {"IdfTable.of": "_TextSettings", "passages": "_PassagesSettings", "dedup": "_DedupSettings"}
SAME = "one two three four five six seven eight"


def documentation(function):
    """Returns a line for each setting: its name, what it is, its words and its default."""
    lines = []
    for name, _, default, help_text in _twindex._settings(function):
        line = f"{name}: {help_text}." + (f" Default: {default}." if default else "")
        lines += textwrap.wrap(line, 118, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines) + "\n"


def types():
    """Returns the class of the keywords of each function, for the stub."""
    classes = []
    for function, name in TYPES.items():
        fields = []
        for setting, choices, _, _ in _twindex._settings(function):
            words = ", ".join(f'"{choice}"' for choice in choices)
            fields.append(f"    {setting}: " + (f"Literal[{words}] | None" if words else "_Setting"))
            if setting == "near":
                fields[-1] = "    threshold: float | str | None"  # `near` is a parameter of its own
        classes.append("\n".join([f"class {name}(TypedDict, total=False):", *fields]) + "\n")
    return "\n".join(classes)


def with_types(stub):
    start, end = stub.index(FIRST) + len(FIRST), stub.index(LAST)
    return stub[:start] + "\n" + types() + "\n" + stub[end:]


def with_documentation(stub, function):
    """Replaces the list of settings in the docstring of a function."""
    start = stub.index(f"\ndef {function}(")
    first = re.compile(r"^(    - .*\n(      .*\n)*)+", re.MULTILINE).search(stub, start)
    text = textwrap.indent(documentation(function), "    ")
    return stub[: first.start()] + text + stub[first.end() :]


def test_documentation_and_types_equal_the_table():
    for function, name in DOCUMENTED.items():
        assert (PYTHON / "src" / name).read_text() == documentation(function), name
        assert documentation(function).strip() in inspect.cleandoc(getattr(twindex, function).__doc__)
    stub = STUB.read_text()
    wanted = with_types(stub)
    for function in DOCUMENTED:
        wanted = with_documentation(wanted, function)
    assert stub == wanted


def test_every_setting_is_taken_with_its_default_and_none():
    for function, call in [("dedup", twindex.dedup), ("passages", twindex.passages), ("IdfTable.of", twindex.IdfTable.of)]:
        rows = _twindex._settings(function)
        assert len(rows) > 6
        for name, choices, default, _ in rows:
            call([SAME], **{name: None})
            for value in choices:
                if (name, value) != ("weights", "idf"):
                    call([SAME], **{name: value})
            if default.isdecimal() and name != "weight_unit":  # other weights than idf are whole
                call([SAME], **{name: int(default)})


def test_values_are_numbers_or_the_text_forms_of_the_command():
    numpy = pytest.importorskip("numpy")
    given = [SAME, SAME + " nine", "other words altogether"]
    wanted = twindex.dedup(given, 0.5, words=2)
    assert wanted.kept == [0, 2]
    for near in ("0.5", "resemblance:0.5", numpy.float64(0.5), numpy.float32(0.5)):
        assert twindex.dedup(given, near, words="2").kept == [0, 2]
        assert twindex.dedup(given, threshold=near, words=numpy.int64(2)).kept == [0, 2]
    assert twindex.dedup(given, near="equal").kept == [0, 1, 2]
    contained = twindex.dedup(given, near="containment:1", words=2)
    assert contained.kept == [1, 2] and contained.scores == [1.0, 1.0, 1.0]
    union = twindex.dedup(given, 0.5, words="1+2")
    assert union.kept == [0, 2] and union.scores[1] == pytest.approx(15 / 17)
    for memory in (1 << 20, "1M", "1048576"):
        assert twindex.dedup(given, 0.5, words=2, memory=memory).kept == [0, 2]
        assert twindex.passages([SAME, SAME], 3, memory=memory) == [(1, 0, len(SAME), 0, 0, 8)]
    assert twindex.dedup(["the cats ran", "a cat runs"], 1, stop_words="english", stemming="english", words=1).kept == [0, 1]
    assert twindex.dedup(["the cats", "a cat"], 1, stop_words="english", stemming="english").kept == [0]
    assert twindex.passages(["caf\u00e9 au lait", "CAFE au lait"], 3, fold="marks")[0][:3] == (1, 0, 12)


def test_equal_texts_are_compared_normalised():
    given = ["caf\u00e9", "cafe\u0301", "cafe", "\u0301", "", b"\xff"]
    assert twindex.dedup(given, near="equal").kept == [0, 1, 2, 3, 4, 5]
    assert twindex.dedup(given, near="equal", normal_form="nfkc").kept == [0, 2, 3, 4, 5]
    # Nothing remains of the accent, and it is not equal to an empty text.
    assert twindex.dedup(given, near="equal", normal_form="nfkc", fold="marks").kept == [0, 3, 4, 5]
    with pytest.raises(twindex.InvalidError, match="^words says how text is cut into shingles, and near equal compares"):
        twindex.dedup(given, near="equal", words=2)


def test_keep_takes_a_column_of_the_table():
    pa = pytest.importorskip("pyarrow")
    columns = {"text": [SAME, SAME, SAME], "score": [1, 3, 2], "name": ["a", "b", "c"]}
    tables = [columns, pa.table(columns)]
    for library in ("pandas", "polars"):
        try:
            tables.append(__import__(library).DataFrame(columns))
        except ImportError:
            pass
    for table in tables:
        assert twindex.dedup(table, text_field="text", keep="max:score").kept == [1], type(table)
        assert twindex.dedup(table, text_field="text", keep="min:score").kept == [0], type(table)
        found = twindex.passages(table, 3, text_field="text", keep="max:score")
        assert [(text, first) for text, _, _, first, _, _ in found] == [(0, 1), (2, 1)]
        with pytest.raises(twindex.InvalidError, match="keep: no column stars"):
            twindex.dedup(table, text_field="text", keep="max:stars")
    with pytest.raises(twindex.InvalidError, match="a time or a finite float, found neither"):
        twindex.dedup(tables[1], text_field="text", keep="max:name")
    with pytest.raises(twindex.InvalidError, match="keep: texts is a list and no table, so that there is no column score; give numbers instead"):
        twindex.dedup([SAME], keep="max:score")


@pytest.mark.parametrize(
    "why, call",
    [
        (r'there is no setting "wordz"; did you mean "words"\?', lambda: twindex.dedup([SAME], wordz=2)),
        (r'there is no setting "textfield"; did you mean "text_field"\?', lambda: twindex.dedup([SAME], textfield="a")),
        (r'there is no setting "clusters"$', lambda: twindex.dedup([SAME], clusters="components")),
        (r'there is no setting "max_bucket"$', lambda: twindex.dedup([SAME], max_bucket=10)),
        (r'there is no setting "weights"', lambda: twindex.passages([SAME], weights="tf")),
        (r'there is no setting "memory"', lambda: twindex.IdfTable.of([SAME], memory="1M")),
        ("near: within:3 is not taken here: texts in memory", lambda: twindex.dedup([SAME], near="within:3")),
        ("threshold: within:3 is not taken here", lambda: twindex.dedup([SAME], threshold="within:3")),
        ("without_boilerplate: @list is not taken here", lambda: twindex.dedup([SAME], without_boilerplate="@list")),
        ("threads: not a setting here: .*set_threads", lambda: twindex.dedup([SAME], threads=2)),
        ("words: not a setting here: .*min_words", lambda: twindex.passages([SAME], words=2)),
        ("threshold: a second name of near", lambda: twindex.dedup([SAME], 0.5, threshold=0.5)),
        ("keep: expected .first.*found best", lambda: twindex.passages([SAME], keep="best")),
        ('tokens: expected one of words,.* found "features"', lambda: twindex.passages([SAME], tokens="features")),
        ("weights goes with a resemblance or containment in near", lambda: twindex.dedup([SAME], "equal", weights="tf")),
        # The first of several mistakes is the one that the command names.
        ("^weights goes with a resemblance", lambda: twindex.dedup([SAME], "equal", weights="tf", tokens="sentences")),
        ("^weights idf needs a table", lambda: twindex.dedup([SAME], "equal", weights="idf", words=2)),
        ("max_work: expected a number from 0", lambda: twindex.dedup([SAME], max_work=1.5)),
    ],
)
def test_settings_that_are_not_taken_are_refused_with_the_reason(why, call):
    with pytest.raises(twindex.InvalidError, match=why) as refusal:
        call()
    assert "--" not in str(refusal.value)


def test_spark_resolves_the_same_settings_and_defaults():
    rule = _twindex.spark_rule({})
    assert (rule["near"], rule["threshold"], rule["weights"]) == ("resemblance", 0.8, "distinct")
    assert rule["weight_unit"] is None and rule["without_boilerplate"] is None
    given = {"threshold": "containment:0.9", "without_boilerplate": 50, "weights": "tf", "words": "1+2", "stop_words": "english"}
    rule = _twindex.spark_rule(given)
    assert (rule["near"], rule["threshold"], rule["weights"]) == ("containment", 0.9, "tf")
    assert rule["without_boilerplate"] == (50, 10) and "the" in rule["shingling"]
    for settings, why in [
        ({"near": "within:3"}, "near: within:3 is not taken here: .*`pairs`"),
        ({"near": "equal"}, "near: equal is not taken here: .*dropDuplicates"),
        ({"memory": "1G"}, "memory: not a setting here: .*spark.executor.memory"),
        ({"max_work": 5}, "max_work: not a setting here"),
        ({"wordz": 5}, 'there is no setting "wordz"; did you mean "words"'),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            _twindex.spark_rule(settings)
    for function in ("dedup", "passages"):
        _twindex.spark_key(function, "id")
        with pytest.raises(twindex.InvalidError, match="^key: FILE:ROW is not taken here: rows of a DataFrame"):
            _twindex.spark_key(function, "FILE:ROW")
    with pytest.raises(twindex.InvalidError, match="stop_words: @list is not taken here: workers"):
        _twindex.passage_fingerprints([], 5, "tokens", {"stop_words": "@list"}, False)


def test_a_value_of_another_type_is_a_type_error():
    with pytest.raises(TypeError, match="words: expected a text or a number, found dict"):
        twindex.dedup([SAME], words={})


if __name__ == "__main__":
    changed = with_types(STUB.read_text())
    for a_function, file in DOCUMENTED.items():
        (PYTHON / "src" / file).write_text(documentation(a_function))
        changed = with_documentation(changed, a_function)
    STUB.write_text(changed)
