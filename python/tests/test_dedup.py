"""`dedup` finds what counting all pairs finds, and what the command finds."""

import json
import os
import random
import shutil
import subprocess

import pytest

import twindex


def texts():
    chance = random.Random(1)
    words = [f"w{n}" for n in range(400)]
    all_texts = []
    for number in range(300):
        if number % 4 and all_texts:
            text = chance.choice(all_texts).split()
            for _ in range(chance.choice([0, 1, 2, 8])):
                text[chance.randrange(len(text))] = chance.choice(words)
        else:
            text = [chance.choice(words) for _ in range(chance.randrange(30, 120))]
        all_texts.append(" ".join(text))
    return all_texts + ["", "", "short"]


def shingles(text, width=3):
    words = text.split()
    if not words:
        return frozenset()
    return frozenset(tuple(words[at : at + width]) for at in range(max(1, len(words) - width + 1)))


def test_pairs_are_those_that_counting_finds():
    given = texts()
    sets = [shingles(text) for text in given]
    expected = []
    for a in range(len(given)):
        for b in range(a + 1, len(given)):
            union = len(sets[a] | sets[b])
            resemblance = len(sets[a] & sets[b]) / union if union else float(given[a] == given[b])
            if resemblance >= 0.7:
                expected.append((a, b, resemblance))
    assert len(expected) > 100
    for clusters in ("components", "leaders"):
        found = twindex.dedup(given, 0.7, words=3, clusters=clusters, pairs="all")
        assert [(a, b) for a, b, _ in found.pairs] == [(a, b) for a, b, _ in expected]
        assert [score for *_, score in found.pairs] == pytest.approx([score for *_, score in expected])
        assert found.kept == sorted(set(found.representatives)) and all(found.representatives[one] == one for one in found.kept)
        if clusters == "components":
            for a, b, _ in expected:
                assert found.representatives[a] == found.representatives[b]
    # The rule by its definition.
    near = {(a, b): score for a, b, score in expected}
    kept, covering = [], []
    for text in range(len(given)):
        first = next((other for other in kept if (other, text) in near), None)
        if first is None:
            kept.append(text)
        else:
            covering.append((text, first, near[first, text]))
    found = twindex.dedup(given, 0.7, words=3)
    assert found.kept == kept and len(covering) > 50
    assert [(text, other) for text, other, _ in found.pairs] == [(text, other) for text, other, _ in covering]
    assert [score for *_, score in found.pairs] == pytest.approx([score for *_, score in covering])
    assert all(found.representatives[text] == other for text, other, _ in covering)


def test_crowded_shingles_are_said():
    same = "one two three four five six seven eight nine ten"
    given = [f"{same} w{number}" for number in range(60)]
    with pytest.warns(UserWarning, match="prefixes of more than 10 texts"):
        found = twindex.dedup(given, 0.5, words=2, max_bucket=10, pairs="all")
    assert found.capped_shingles > 0 and found.cap == 10 and found.kept == [0]
    everything = twindex.dedup(given, 0.5, words=2, pairs="all")
    assert everything.capped_shingles == 0 and len(everything.pairs) == 60 * 59 // 2 > len(found.pairs)


def test_the_longest_is_kept_where_asked_for():
    given = ["one two three four five six seven eight", "one two three four five six seven eight nine"]
    assert twindex.dedup(given, 0.5, words=2).kept == [0]
    assert twindex.dedup(given, 0.5, words=2, keep="longest").kept == [1]
    with pytest.raises(twindex.InvalidError, match="keep: expected \"first\".*found best"):
        twindex.dedup(given, keep="best")
    with pytest.raises(twindex.InvalidError, match="threshold: expected 0.05 to 1, found 2"):
        twindex.dedup(given, 2)
    with pytest.raises(twindex.InvalidError, match="max_bucket: expected 2 to 4294967295, found 1"):
        twindex.dedup(given, max_bucket=1)
    with pytest.raises(twindex.InvalidError, match="memory: expected 65536 to"):
        twindex.dedup(given, memory=1)


def test_numbers_decide_and_each_value_keeps_its_survivor():
    pa = pytest.importorskip("pyarrow")
    same = "one two three four five six seven eight"
    given = [same, same, same + " nine", same, same + " nine"]
    inside = ["en", "de", "en", "en", "de"]
    large = 2**53
    for numbers in (
        [large, 1, large + 1, 2.5, -1],
        pa.array([large, 1, large + 1, 3, -1]),
        pa.chunked_array([[1.0, 0.5], [2.0, 0.25, -1.0]]),
    ):
        found = twindex.dedup(given, 0.5, words=2, keep=("max", numbers), inside=inside)
        assert found.representatives == [2, 1, 2, 2, 1]
        assert twindex.dedup(given, 0.5, words=2, keep=("max", numbers)).kept == [2]
        assert twindex.dedup(given, 0.5, words=2, keep=("min", numbers)).kept == [4]
    # Values may be an Arrow array, too, and equal numbers go by place.
    found = twindex.dedup(given, 0.5, words=2, keep=("min", [7] * 5), inside=pa.array(inside))
    assert found.representatives == [0, 1, 0, 0, 1]
    for keep, why in [
        (("best", [1] * 5), r"keep: expected .first.*found best"),
        (("max", [1, 2]), "keep: numbers: expected 5, one a text, found 2"),
        (("key-hash", ["a"]), "keep: keys: expected 5, one a text, found 1"),
        ("key-hash", "keep: key-hash needs a key for each text"),
        (("max", [1, 2, 3, float("nan"), 5]), "expected an int.* or a finite float, found nan"),
        (("max", [1, 2, 3, True, 5]), "found True"),
        (("max", [1, 2, 3, "4", 5]), "found 4"),
        (("max", [1, 2, 3, 2**116, 5]), "at most 116 bits"),
        (("max", pa.array([1, 2, 3, None, 5])), "found none"),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            twindex.dedup(given, keep=keep)
    with pytest.raises(TypeError, match="expected integers or floats, found Utf8"):
        twindex.dedup(given, keep=("max", pa.array(["1"] * 5)))
    with pytest.raises(twindex.InvalidError, match="inside: expected 5, one a text, found 1"):
        twindex.dedup(given, inside=["en"])
    with pytest.raises(twindex.InvalidError, match="record 1: texts: inside: the value is empty or missing"):
        twindex.dedup(given, inside=["en", None, "de", "en", "en"])


def test_clusters_and_pairs_are_the_commands(tmp_path):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command to compare with: name it in TWINDEX")
    given = [text for text in texts() if text]
    with open(tmp_path / "in.jsonl", "w") as out:
        for number, text in enumerate(given):
            out.write(json.dumps({"id": f"{number:04}", "text": text}) + "\n")
    for keep in ("first", "longest"):
        out = tmp_path / keep
        line = [command, "dedup", tmp_path / "in.jsonl", "-o", out, "--threshold", "0.7", "--keep", keep]
        subprocess.run([*line, "--words", "3", "-q"], check=True)
        found = twindex.dedup(given, 0.7, words=3, keep=keep)
        clusters = [line.split("\t") for line in (out / "clusters.tsv").read_text().splitlines()[1:]]
        assert [int(kept) for _, _, kept, _ in clusters] == found.representatives
        assert [score for *_, score in clusters] == [f"{score:.6f}" for score in found.scores]
        pairs = [line.split("\t") for line in (out / "pairs.tsv").read_text().splitlines()[1:]]
        assert [(int(a), int(b), score) for a, b, score, *_ in pairs] == [
            (a, b, f"{score:.6f}") for a, b, score in found.pairs
        ]
