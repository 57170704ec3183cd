"""User code for mypy and pyright: see test_types.py. It is type-checked, not run."""

from collections.abc import Iterator
from typing import Any

import twindex
from twindex import Index, MinHash, Params, Simhash, dedup


def texts() -> Iterator[str]:
    yield "a rose"


def use(column: Any, frame: Any) -> None:
    found = dedup(["a", "b", None], 0.8, keep=("max", [1, 2.5, 3]), nulls="drop", progress=True)
    kept: list[int] = found.kept.tolist()
    first: int = found.kept[0]
    some: list[int] = found.kept[:2]
    mask: list[bool] = list(found.mask)
    score: float | None = found.scores[0]
    groups: int | None = found.groups[-1]
    a, b, resemblance = found.pairs[0]
    number: int = a + b + len(found) + first + len(some) + len(mask)
    dedup(texts(), against=[b"x"], near="containment:0.8", weights="tf", keep=("key-hash", ["k"]))
    dedup({"text": ["a"], "n": [1]}, threshold=0.9, text_field="text", inside=[1], keep="max:n")
    table = twindex.IdfTable.of(texts(), words=1)
    dedup(texts(), weights="idf", idf=table, weight_unit=0.5)
    weighted = Params(minhash_weights="idf", idf=table, weight_unit=1, sets=True)
    print(weighted.idf == table, table.weight("rose") + len(table))
    vectors: list[dict[str, float]] = [{"a": 1, "b": 0.5}]
    dedup(vectors, tokens="features", weights="tf", weight_unit=0.5)
    dedup([["a", "b"], [("a", 0.5)]], tokens="features")
    spans: int | None = dedup(texts(), without_boilerplate="3:5", memory="64M", words=3).boilerplate_spans
    dedup(column)
    dedup(frame, text_field="text", against=[{"body": "a"}], against_text_field="body")
    removed: list[bool] = ~found.mask
    print(found.filter(frame), found.show(), removed)
    print(kept, score, groups, resemblance, number, spans)

    images = Index.create("images.twx", codes=256, near_within=31)
    images.put("a", bytearray(32))
    images.put_many(["b"], memoryview(bytes(32)))
    print(images.near(bytes(32)), images.near_many([bytes(32)], within=100))

    params = Params(words=3, tokens="characters", sets=True)
    with Index.create("pages.twx", params) as index:
        index.put("a", "a rose", priority=1)
        count: int = index.put_many(texts(), column, progress=print)
        admitted = index.admit("b", "a rose")
        if admitted.near is not None:
            near: float | None = admitted.near.resemblance
            print(near, admitted.outcome == "known")
    keys: list[str | bytes | int] = index.keys()
    hits: list[twindex.Hit] = index.near("a rose", limit=3)
    number_of_bytes: int = index.gc()
    index.close(discard=True)
    print(keys, hits, number_of_bytes, count)
    for text, start, end, source, source_start, words in twindex.passages(["a"], 3):
        print(text + start + end + source + source_start + words)
    estimated: float = MinHash(words=2).resemblance("a", "b")
    fingerprint: int | None = Simhash().fingerprint("a")
    print(estimated, fingerprint)
    try:
        Index.open("none")
    except twindex.NotAnIndexError as error:
        where: str | None = error.path
        print(where, error.remedy)


def wrong(index: Index) -> None:
    dedup(["a"], weights="best")  # type: ignore[arg-type]
    index.put(1.5, "a")  # type: ignore[arg-type]
    twindex.Unknown  # type: ignore[attr-defined]
