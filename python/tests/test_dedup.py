"""Compares `dedup` with brute force over all pairs, and with the command."""

import collections
import datetime
import json
import os
import pickle
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


def test_rule_equals_brute_force():
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
    assert found.kept == sorted(set(found.representatives))
    assert [(text, other) for text, other, _ in found.pairs] == [(text, other) for text, other, _ in covering]
    assert [score for *_, score in found.pairs] == pytest.approx([score for *_, score in covering])
    assert all(found.representatives[text] == other for text, other, _ in covering)


def test_keep_longest_keeps_the_longest_text():
    given = ["one two three four five six seven eight", "one two three four five six seven eight nine"]
    assert twindex.dedup(given, 0.5, words=2).kept == [0]
    assert twindex.dedup(given, 0.5, words=2, keep="longest").kept == [1]
    with pytest.raises(twindex.InvalidError, match="keep: expected \"first\".*found best"):
        twindex.dedup(given, keep="best")
    with pytest.raises(twindex.InvalidError, match="near: expected 0.05 to 1, .*found \"2\""):
        twindex.dedup(given, 2)
    with pytest.raises(twindex.InvalidError, match="memory: expected at least 64K"):
        twindex.dedup(given, memory=1)


def test_keep_uses_numbers_and_inside_keeps_one_text_per_value():
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
    # Of a list of rules, the first that distinguishes two texts decides.
    urls = ["http://a.b/1", "https://a.b/long", "https://a.b/2", "https://a.b/3", "http://a.b/"]
    days = ["2026-01-03", "2026-01-02", "2026-01-02T00:00:00Z", "2026-01-02 01:00:00+01:00", "2026-01-04"]
    times = [datetime.datetime.fromisoformat(f"2026-01-0{day[9]}T00:00:00+00:00") for day in days]
    table = pa.table({"text": given, "url": urls, "day": days, "at": times, "lang": inside})
    for keep, kept in [
        ([("max", [1, 2, 2, 2, 1]), "longest"], 2),
        ([("min", [1, 1, 2, 2, 1]), ("max", [1, 2, 3, 4, 2]), "first"], 1),
        ([("earliest", days), ("max", [0, 1, 2, 3, 4])], 3),
        (["https", "shortest-url", "smallest-key"], 2),
        (["earliest:day", "rank:lang=de,en"], 1),
        (["earliest:at", "rank:lang=en"], 2),
        (["rank:lang=fr", "shortest-url"], 4),
    ]:
        assert twindex.dedup(table, 0.5, words=2, text_field="text", id_field="url", keep=keep).kept == [kept], keep
    # Values may also be an Arrow array, and texts with equal numbers are ordered by position.
    found = twindex.dedup(given, 0.5, words=2, keep=("min", [7] * 5), inside=pa.array(inside))
    assert found.representatives == [0, 1, 0, 0, 1]
    for keep, why in [
        (("best", [1] * 5), r"keep: expected .first.*found best"),
        (("max", [1, 2]), "keep: numbers: expected 5, one a text, found 2"),
        (("key-hash", ["a"]), "keep: keys: expected 5, one a text, found 1"),
        ("key-hash", "keep: key-hash needs a key for each text"),
        (["longest", "https"], "keep: https needs a URL for each text: id_field"),
        (["first", "longest"], "keep: longest after first"),
        ("canonical", "keep: canonical compares HTML pages, and texts have no"),
        (("max", [1, 2, 3, float("nan"), 5]), "expected an int.* or a finite float, found nan"),
        (("max", [1, 2, 3, True, 5]), "found True"),
        (("max", [1, 2, 3, "4", 5]), "found 4"),
        (("max", [1, 2, 3, 2**116, 5]), "at most 116 bits"),
        (("max", pa.array([1, 2, 3, None, 5])), "found none"),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            twindex.dedup(given, keep=keep)
    with pytest.raises(TypeError, match="expected integers, times or floats, found Binary"):
        twindex.dedup(given, keep=("max", pa.array([b"1"] * 5)))
    with pytest.raises(twindex.InvalidError, match="a time or a finite float, found neither"):
        twindex.dedup(given, keep=("max", pa.array(["1"] * 5)))
    with pytest.raises(twindex.InvalidError, match="inside: expected 5, one a text, found 1"):
        twindex.dedup(given, inside=["en"])
    with pytest.raises(twindex.InvalidError, match="record 1: texts: inside: the value is empty or missing"):
        twindex.dedup(given, inside=["en", None, "de", "en", "en"])


def pages(count=120, seed=4):
    """Returns texts of three sites with groups of near copies. Each site has a menu and a footer; some texts have
    nothing else."""
    chance = random.Random(seed)

    def run(salt, length):
        return [f"x{(salt * 31 + at * at) % 911}" for at in range(length)]

    made = []
    for number in range(count):
        site, body = chance.randrange(3), run(1000 + chance.randrange(count // 2), 20)
        if chance.random() < 0.5:
            body[7] = f"y{number}"
        body = [] if chance.random() < 0.08 else body
        made.append(" ".join([*run(site, 12), *body, *run(site + 50, 15)]))
    return made


def without(given, more_than, width):
    """Returns the texts without the runs of words that more than `more_than` texts share. Copies stay equal if no words
    are left."""
    grams = [[tuple(words[at : at + width]) for at in range(len(words) - width + 1)] for words in map(str.split, given)]
    counts = collections.Counter(gram for own in grams for gram in set(own))
    rest = []
    for text, own in zip(given, grams):
        words = text.split()
        out = {place for at, gram in enumerate(own) if counts[gram] > more_than for place in range(at, at + width)}
        left = [word for at, word in enumerate(words) if at not in out]
        rest.append(" ".join(left) or "." * (given.index(text) + 1))
    return rest, sum(count > more_than for count in counts.values())


def test_documents_without_features_are_near_nothing():
    for near in (0.8, "equal", "containment:0.9"):
        found = twindex.dedup([["a"], [], {}, ["a"], []], near, tokens="features")
        assert found.kept == [0, 1, 2, 4], near
        assert twindex.dedup([[], ["a"]], near, tokens="features", against=[[], ["a"]]).kept == [0], near


def test_boilerplate_spans_are_ignored():
    given = pages()
    rest, spans = without(given, 8, 4)
    found = twindex.dedup(given, 0.7, without_boilerplate="8:4")
    wanted = twindex.dedup(rest, 0.7)
    assert found.representatives == wanted.representatives and found.scores == wanted.scores
    assert found.boilerplate_spans == spans > 50 and wanted.boilerplate_spans is None
    assert found.kept != twindex.dedup(given, 0.7).kept and len(found.kept) > 40
    assert pickle.loads(pickle.dumps(found)).boilerplate_spans == spans
    # The same result with little memory, with bytes, with weights, and with a history, whose texts are counted as well.
    assert twindex.dedup(given, 0.7, without_boilerplate="8:4", memory=1 << 16).kept == found.kept
    encoded = [text.encode() for text in given] + [b"\xff is no text"]
    assert twindex.dedup(encoded, 0.7, without_boilerplate="8:4").kept == [*found.kept, len(given)]
    table = twindex.IdfTable.of(given, min_df=1)
    for options in ({"weights": "tf"}, {"weights": "idf", "idf": table}, {"near": "containment:0.7"}):
        options = {"near": 0.7} | options
        one = twindex.dedup(given, without_boilerplate="8:4", **options)
        other = twindex.dedup(rest, **options)
        assert one.representatives == other.representatives and one.scores == other.scores, options
    history = [given[at] for at in found.kept if at < 60]
    all_of_them = history + given[60:]
    later = twindex.dedup(given[60:], 0.7, without_boilerplate="8:4", against=history)
    whole = twindex.dedup(all_of_them, 0.7, without_boilerplate="8:4")
    assert [at + len(history) for at in later.kept] == [at for at in whole.kept if at >= len(history)]
    # A span has 10 words by default.
    named = twindex.dedup(given, without_boilerplate="8:10")
    assert twindex.dedup(given, without_boilerplate=8).boilerplate_spans == named.boilerplate_spans != spans
    for options, why in [
        ({"without_boilerplate": 0}, "without_boilerplate: expected a number of documents, 1 or more"),
        ({"without_boilerplate": "3:0"}, 'without_boilerplate: expected .* with 1 to 65535 words.* found "3:0"'),
        ({"without_boilerplate": 3, "tokens": "features"}, "features are none"),
    ]:
        with pytest.raises(twindex.InvalidError, match=why):
            twindex.dedup([["a"]] if "tokens" in options else given, **options)


def test_boilerplate_results_equal_the_command(tmp_path):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command to compare with: name it in TWINDEX")
    given = pages(seed=9)
    with open(tmp_path / "in.jsonl", "w") as out:
        for number, text in enumerate(given):
            out.write(json.dumps({"id": f"{number:04}", "text": text}) + "\n")
    table = twindex.IdfTable.of(given, words=2, min_df=1)
    table.save(tmp_path / "words.idf")
    for name, line, options in [
        ("distinct", [], {"words": 2}),
        ("idf", ["--weights", "idf", "--idf", tmp_path / "words.idf"], {"weights": "idf", "idf": table}),
    ]:
        line = ["dedup", tmp_path / "in.jsonl", "-o", tmp_path / name, "--threshold", "0.7", "--words", "2", *line]
        line += ["--without-boilerplate", "8:5", "--json", "-q"]
        printed = subprocess.run([command, *line], check=True, capture_output=True).stdout
        found = twindex.dedup(given, 0.7, without_boilerplate="8:5", **options)
        clusters = [row.split("\t") for row in (tmp_path / name / "clusters.tsv").read_text().splitlines()[1:]]
        assert [int(kept) for _, _, kept, _ in clusters] == found.representatives, name
        assert [score for *_, score in clusters] == [f"{score:.6f}" for score in found.scores], name
        assert json.loads(printed)["boilerplate"]["spans"] == found.boilerplate_spans > 20


def test_clusters_and_pairs_equal_the_command(tmp_path):
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
