"""Finds near-duplicates on Ray: tasks sketch documents, build shards, find pairs, and merge the forests of pairs two at
a time.

    python with_ray.py FOLDER [DOCUMENTS]

All machines must be able to access FOLDER. A task that is run again writes the same segment under the same name.
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.compute as pc
import ray

import twindex

PARAMS = twindex.Params(words=3, simhash=3).text
SHARDS = 3
PARTS = ["key", "fingerprint", "features", "signature", "bottom", "modular"]


def documents(count):
    for number in range(count):
        about = number - number % 2  # every second document repeats the previous one in upper case
        words = " ".join(f"w{about}x{word}" for word in range(60))
        yield f"page-{number:05}", words.upper() + "!" if number % 2 else words


@ray.remote
def sketch(part):
    keys, texts = zip(*part)
    return pa.record_batch(twindex.Sketcher(twindex.Params.parse(PARAMS)).rows(list(keys), list(texts), SHARDS))


@ray.remote
def build(folder, shard, *sketches):
    builder = twindex.ShardBuilder(folder, twindex.Params.parse(PARAMS))
    for rows in sketches:
        rows = rows.filter(pc.equal(rows.column("shard"), shard))
        builder.add(*[rows.column(part) for part in PARTS])
    return builder.finish()[0]


@ray.remote
def forest_of_pairs(index, left, right):
    forest = twindex.Forest()
    for pairs in map(pa.record_batch, twindex.Index.open(index).pairs_batches(3, None, left, right)):
        forest.add(pairs.column("a"), pairs.column("b"))
    return [pa.record_batch(edges) for edges in forest.finish()]


@ray.remote
def merge(*forests):
    merged = twindex.Forest()
    for edges in (batch for forest in forests for batch in forest):
        merged.add(edges.column("root"), edges.column("key"))
    return [pa.record_batch(edges) for edges in merged.finish()]


def main(folder, count=600):
    all_documents = list(documents(count))
    sketches = [sketch.remote(all_documents[at : at + 100]) for at in range(0, count, 100)]
    names = ray.get([build.remote(folder / "segments", shard, *sketches) for shard in range(SHARDS)])
    index = folder / "pages.twx"
    twindex.Index.adopt(index, twindex.Params.parse(PARAMS), [folder / "segments" / name for name in names])
    forests = [forest_of_pairs.remote(index, i, j) for i in range(SHARDS) for j in range(i, SHARDS)]
    while len(forests) > 1:
        forests = [merge.remote(*forests[at : at + 2]) for at in range(0, len(forests), 2)]
    edges = sum(batch.num_rows for batch in ray.get(forests[0]))
    print(f"{count} documents, {edges} of them near one of a smaller key")
    assert edges == count // 2


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    main(pathlib.Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
