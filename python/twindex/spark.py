"""twindex on Apache Spark: near-duplicates of a DataFrame, with more than one machine.

    from twindex import Params, spark as tw

    index = tw.build(documents, "/shared/pages.twx", Params(words=5), key="url", text="text", shards=64)
    pairs = tw.pairs(session, "/shared/pages.twx", within=3).cache()
    clusters = tw.clusters(pairs)
    kept = tw.kept(documents, clusters, key="url")

    decided = tw.dedup(documents, 0.8, key="url")     # by the rule of `twindex dedup`, without an index
    kept = tw.kept(documents, decided, key="url")
    groups = tw.groups(documents, 0.8, key="url")     # key, leader, size: as `twindex groups` lists them
    spans = tw.passages(documents, 50, key="url")     # what is repeated inside of documents, as `twindex passages` lists it

Workers sketch, build segments, and pair segments; the driver writes one manifest. What workers make lies in a folder
that all of them and the driver see. A segment's bytes depend on its documents alone and its name on its bytes, so a
task that is retried, or run twice at once, makes the same file again. Nothing of a job that failed is in any index;
`gc` removes it.

Needs pyspark, and with it pandas and pyarrow, which `twindex` itself does not. See docs/cluster.md.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark import StorageLevel
from pyspark.sql import Window

from . import _twindex
from ._errors import Error, InvalidError
from ._twindex import Forest, IdfTable, Index, Params, ShardBuilder, Sketcher

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "build",
    "clusters",
    "counters",
    "dedup",
    "forest",
    "gc",
    "groups",
    "kept",
    "pairs",
    "passages",
    "query",
    "sketch",
    "write_clusters",
    "write_pairs",
]

# Partitions that one merge of forests takes in.
FAN_IN = 8
# Bytes a task takes for records, pairs or keys, unless said otherwise; more goes to scratch files.
MEMORY = 256 << 20
# Pairs that the driver decides on at once, at the end of `dedup`.
DRIVER_EDGES = 1_000_000
# Shingles are counted in one set of SAMPLED; those counted COMMON times are common; at most COMMON_MAX of them are kept.
SAMPLED, COMMON, COMMON_MAX = 8, 8, 100_000
# Tasks for each core that pairs of segments are divided into.
PARTS_A_CORE = 4
# Queries whose answers are held at once.
QUESTIONS = 256

# Types of columns that are numbers of documents: what else Spark would cast, 2.7 to 2, is refused.
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PARTS = ["features", "signature", "bottom", "modular", "set"]


# --- the driver ---


def sketch(
    documents: DataFrame, params: Params, *, key: str = "id", text: str = "text", shards: int = 1
) -> DataFrame:
    """The sketches of documents: key, shard, fingerprint, features, signature, bottom, modular, set.

    key, text: columns, or paths to fields of structs, as "page.text". Columns of what the parameters do not keep are empty, or
    null. A document without words has no features. A row without a text ends the job and names its key.
    """
    run = _Sketch(params, shards, _version())
    rows = documents.select(_key_column(documents, key, params), _text_column(documents, text, key))
    return rows.mapInArrow(run, _sketch_schema(params))


def build(
    documents: DataFrame,
    path: str | os.PathLike[str],
    params: Params,
    *,
    key: str = "id",
    text: str = "text",
    shards: int | None = None,
    memory: int = MEMORY,
    scratch: str | os.PathLike[str] | None = None,
) -> Index:
    """Makes an index of documents, and opens it. Its directory gets its name when it is complete, or not at all.

    path: a directory that is not there yet, on a file system that the driver and all workers see.
    shards: how many parts the documents are cut into, by a hash of their keys; each becomes a segment, by one task.
        Unless said otherwise, twice as many as Spark has cores.
    scratch: a folder on each worker's own disk where segments are made before they are copied to the shared folder; for
        object stores that are mounted as files. Without it they are made in the shared folder.

    Each key must stand once: Spark has no order in which one of two documents would be the last.
    """
    session = documents.sparkSession
    path = os.path.abspath(path)
    if os.path.lexists(path):
        why = f"{path}: already exists; open it, or choose another place"
        raise _twindex_error("AlreadyExistsError", why, path=path)
    context = session.sparkContext
    shards = shards or 2 * context.defaultParallelism
    folder = _segments_folder(path)
    os.makedirs(folder, exist_ok=True)
    slots = _slots(session, shards)
    counted = counters(context)
    rows = sketch(documents, params, key=key, text=text, shards=shards)
    # By the number of its shard's slot, so that each shard is a partition of its own.
    slot = F.element_at(F.array(*[F.lit(slot).cast("bigint") for slot in slots]), F.col("shard") + 1)
    run = _Build(params, folder, memory, scratch, counted, _version())
    made = rows.withColumn("slot", slot).repartition(shards, "slot").mapInArrow(
        run, "shard int, name string, documents bigint, bytes bigint"
    )
    with _job(context, f"twindex: sketch, and build {shards} shards of {path}"):
        segments = sorted(made.collect(), key=lambda row: row.shard)
    paths = [os.path.join(folder, row.name) for row in segments]
    index = Index.adopt(path, params, paths)
    try:
        gc(path)
    except Error as error:
        warnings.warn(f"{path} is made, but not all beside it could be removed: {error}", stacklevel=2)
    return index


def gc(path: str | os.PathLike[str]) -> list[str]:
    """Removes what builds of an index at this path that failed, or are done, have left beside it; returns the names.

    What a living task is writing stays. Call it when no build of this path is under way.
    """
    folder = _segments_folder(os.path.abspath(path))
    if not os.path.isdir(folder):
        return []
    # An index has its own names of the segments, so theirs here are not needed any more.
    removed = _twindex.clean(folder, set())
    try:
        os.rmdir(folder)
    except OSError:
        pass  # somebody writes to it
    return removed


def query(
    questions: DataFrame,
    path: str | os.PathLike[str],
    *,
    key: str = "id",
    text: str = "text",
    within: int | None = None,
    resembling: float | None = None,
    limit: int | None = None,
    by_segment: bool = False,
) -> DataFrame:
    """The documents of an index near each query: query, key, distance, resemblance.

    Each partition of `questions` queries the whole index, which every worker maps. With `by_segment`, each query goes
    to a task for each segment instead, so that a worker reads only its own: for an index larger than the memory of a
    machine (Manku, Jain, Das Sarma 2007, section 4). Then `limit` holds for each segment.
    """
    session = questions.sparkSession
    opened = _Opened(path)
    params = Params.parse(opened.params)
    asked = questions.select(_key_column(questions, key, params), _text_column(questions, text, key))
    name = _key_type(params)
    schema = f"query {name}, key {name}, distance int, resemblance double"
    if by_segment:
        segments = _segments_alone(path)
        slots = _slots(session, max(segments, 1))
        table = session.createDataFrame([(at, slots[at]) for at in range(segments)], "segment int, slot bigint")
        asked = asked.crossJoin(F.broadcast(table)).repartition(max(segments, 1), "slot")
        asked = asked.select("key", "text", "segment")
    context = session.sparkContext
    run = _Query(opened, within, resembling, limit, counters(context), _version())
    _describe(context, f"twindex: query {path}")
    return asked.mapInArrow(run, schema)


def pairs(
    session: SparkSession,
    path: str | os.PathLike[str],
    *,
    within: int | None = None,
    resembling: float | None = None,
    estimated: bool = False,
    memory: int = MEMORY,
) -> DataFrame:
    """Pairs of an index's documents that are near: a, b, and distance or resemblance; a < b.

    within: their fingerprints differ in at most this number of bits; all of them. Without both, the index's own radius, or its
    threshold where distance makes no documents near.
    resembling: their resemblance is at least this, counted on the sets that the index keeps; no pair is missed.
    estimated: it is estimated from the signatures of documents that share a band, which an index without sets needs.
    Of a band's bucket of more than 10,000 documents in two segments, and of a shingle that is among the rarest of more, only
    enough pairs to hold it together; the counter `capped_buckets` says of how many.

    Each two segments are joined, and each with itself, in a few tasks for each core of Spark's. Cache what comes: each use of it would join again.
    """
    opened = _Opened(path)
    params = Params.parse(opened.params)
    count = _segments_alone(path)
    parts = [(i, j) for i in range(count) for j in range(i, count)]
    by_distance = within is not None or (resembling is None and params.near[1] is not None)
    name = _key_type(params)
    schema = f"a {name}, b {name}, " + ("distance int" if by_distance else "resemblance double")
    context = session.sparkContext
    run = _Pairs(opened, parts, (within, resembling, estimated), memory, counters(context), _version())
    _describe(context, f"twindex: pairs of {path}, {len(parts)} parts")
    # Several parts to a task where there are many: a task costs more than a small part.
    tasks = min(len(parts), PARTS_A_CORE * context.defaultParallelism)
    return session.range(0, len(parts), 1, max(tasks, 1)).mapInArrow(run, schema)


def dedup(
    documents: DataFrame,
    threshold: float = 0.8,
    *,
    key: str = "id",
    text: str = "text",
    keep: str | tuple[str, str] = "smallest-key",
    inside: str | None = None,
    near: Literal["resemblance", "containment"] = "resemblance",
    weights: Literal["distinct", "tf", "idf"] = "distinct",
    words: int = 5,
    seed: int = 0,
    driver_edges: int = DRIVER_EDGES,
    idf: IdfTable | None = None,
    weight_unit: float | None = None,
    features: bool = False,
    without_boilerplate: int | None = None,
    boilerplate_words: int | None = None,
) -> DataFrame:
    """Which documents stay, by the rule of `twindex dedup`: key, kept, score, a row for each document.

    A document goes if and only if a kept document before it resembles it by `threshold` or more, counted exactly. So nothing
    goes that is not near a kept document, and no two kept ones are near each other. kept: the near kept document that comes
    first; the document itself, if it stays. score: the resemblance of the two. `kept` takes the result.

    key, text, and the columns of keep and inside: columns, or paths to fields of structs, as "page.text".
    keep: which documents come first. "smallest-key", "key-hash" (by a hash of the key), "longest" (by words), or
        ("max", column) or ("min", column) of numbers; of equal ones the smallest key. Rows of Spark have no order of their
        own, so that there is no "first".
    inside: a column inside of whose values documents are compared.
    near: "containment" lets a document go if `threshold` of its shingles stand in a kept one that has as many or more; larger
        ones come first. score: the share of it that the kept one contains.
    weights: "tf" counts a shingle as often as it occurs, "idf" that times its inverse document frequency, by the table that `idf`
        gives, rounded to whole units of weight_unit, 1 unless it is named: as `twindex.dedup` counts. Texts are cut as those of
        the table, which goes to each worker. With features, "tf" is the weight that the vector says.
    features: the column of `text` has sets or vectors of features instead of texts: an array of names, a map of weights, or
        texts of JSON, as `--features-field` reads them.
    without_boilerplate: spans that more than this number of documents share do not count: menus, footers, licences. All
        documents are counted before the first is compared. It should be larger than any family of copies. The list of spans
        goes through the driver to each worker, 16 bytes a span. boilerplate_words: words of a span, 10 unless it is named.
    A row without a key, a text, or a value of these columns ends the job, which names the key.

    Near pairs are found by the rarest shingles of each text, and none is missed. It is decided by rounds: documents without
    an undecided near document before them stay, and what is near them goes. Once at most `driver_edges` pairs are left, the
    driver decides the rest. The work is done when this returns, and its result is cached; `unpersist` frees it.
    """
    for name, given, expected in (
        ("near", near, ("resemblance", "containment")),
        ("weights", weights, ("distinct", "tf", "idf")),
    ):
        if given not in expected:
            raise InvalidError(f"{name}: expected {' or '.join(expected)}, found {given!r}", field=name)
    found = _type(documents, _column(documents, key))
    if found != "string":
        raise InvalidError(f"column {key}: expected string, found {found}", field=key, found=found, remedy="cast the column")
    spans = None
    if without_boilerplate is not None:
        spans = _Spans(without_boilerplate, 10 if boilerplate_words is None else boilerplate_words, words, seed, idf)
    elif boilerplate_words is not None:
        raise InvalidError("boilerplate_words: goes with without_boilerplate", field="boilerplate_words")
    if features and spans is not None:
        why = "without_boilerplate: leaves spans out of texts, and features are none: leave it out"
        raise InvalidError(why, field="without_boilerplate")
    session = documents.sparkSession
    context = session.sparkContext
    cut = (words, seed, weights, idf, weight_unit, features)
    _twindex.shingle_sets([], *cut)  # refuses weights that do not go together before a worker does
    with _job(context, "twindex: dedup"):
        call = _Dedup(session, threshold, near, cut, driver_edges, spans)
        return call.decide(documents, key, text, keep, inside)


def groups(documents, threshold=0.8, *, key="id", text="text", keep="key-hash", **options):
    """The group of each document: key, leader, size, a row for each document.

    A document leads if no leader before it resembles it by `threshold` or more, counted exactly; every other one belongs to
    the first leader that it resembles. These are the groups that `twindex groups` lists of an index with sets that has the
    same documents, and `Index.groups` in Python: they depend on the documents and on nothing else.

    keep: which documents come first, as in `dedup`, whose other options can be given too. Of equal numbers of a column the
        smallest key comes first here, and the smallest hash of the key in an index with priorities.

    The result is cached, as that of `dedup`; `unpersist` frees it.
    """
    decided = dedup(documents, threshold, key=key, text=text, keep=keep, **options)
    sizes = decided.groupBy("kept").agg(F.count("key").alias("size"))
    grouped = decided.join(sizes, "kept").select("key", F.col("kept").alias("leader"), "size").persist()
    grouped.count()
    decided.unpersist()
    return grouped


def passages(
    documents: DataFrame,
    min_words: int = 50,
    *,
    key: str = "id",
    text: str = "text",
    keep: str | tuple[str, str] = "smallest-key",
    within: bool = False,
    exact: Literal["tokens", "bytes"] = "tokens",
    seed: int = 0,
) -> DataFrame:
    """Runs of `min_words` words or more that an earlier document has, too: key, start, end, first_key, first_start, words.

    The rows are the lines of spans.tsv that `twindex passages` writes with the same `--keep`, in no order. start and end are
    bytes of the text in UTF-8, end is exclusive.

    keep: which documents come first, as in `dedup`; of equal ones the smallest key. A document's passages are those that
        are in one that comes before it.
    within: passages that are earlier in the same document count, too.
    exact: "bytes" compares all that is between the words, too.

    Selected fingerprints are counted first. Texts with one that recurs are cut again, and their runs of words sorted by hash
    to find the first of each. Each run of words that may recur takes a row. The work is done when this returns, and its
    result is cached; `unpersist` frees it.
    """
    found = _type(documents, _column(documents, key))
    if found != "string":
        raise InvalidError(f"column {key}: expected string, found {found}", field=key, found=found, remedy="cast the column")
    of_key, of_text = _column(documents, key), _column(documents, text)
    rows = documents.select(
        _needed(of_key, key).alias("id"),
        _number(documents, keep, of_key).alias("number"),
        _needed(of_text.cast("string"), text, of_key).alias("text"),
    )
    number = dict(rows.dtypes)["number"]
    context = documents.sparkSession.sparkContext
    with _job(context, "twindex: passages"):
        repeated = rows.groupBy("id").count().where("count > 1").select("id").limit(1).collect()
        if repeated:
            raise InvalidError(f"column {key}: the key {repeated[0].id!r} is there twice; give each document its own", field=key)
        call = (min_words, seed, exact, _version())
        selected = rows.select("id", "text").mapInArrow(_Fingerprints(*call, within), "id string, fingerprint bigint")
        selected = selected.persist()
        recurring = selected.groupBy("fingerprint").count().where("count > 1").select("fingerprint")
        own = selected.join(recurring, "fingerprint").groupBy("id").agg(F.collect_set("fingerprint").alias("wanted"))
        schema = f"id string, number {number}, high bigint, low bigint, position int, start int, end int"
        grams = rows.join(own, "id").mapInArrow(_Grams(*call, keep == "longest"), schema)
        # The first of equal runs of words is the source of the others.
        by_rank = Window.partitionBy("high", "low").orderBy("number", "id", "position")
        first = F.first(F.struct("id", "position", "start")).over(by_rank)
        repeats = grams.select("id", "position", "start", "end", first.alias("first")).where("first.id != id")
        if within:
            repeats = grams.select("id", "position", "start", "end", first.alias("first"))
            repeats = repeats.where("first.id != id or first.position != position")
        # Positions that advance with their sources have the same distance from them.
        repeats = repeats.withColumn("distance", F.col("first.position") - F.col("position"))
        run = ["id", F.col("first.id"), "distance"]
        place = F.row_number().over(Window.partitionBy(*run).orderBy("position"))
        lines = repeats.withColumn("run", F.col("position") - place).groupBy(
            "id", F.col("first.id").alias("first_key"), "distance", "run"
        )
        lines = lines.agg(
            F.min_by("start", "position").alias("start"),
            F.max_by("end", "position").alias("end"),
            F.min_by("first.start", "position").alias("first_start"),
            (F.count("position") + F.lit(min_words - 1)).cast("int").alias("words"),
        )
        lines = lines.select(F.col("id").alias("key"), "start", "end", "first_key", "first_start", "words").persist()
        lines.count()
        selected.unpersist()
        return lines


class _Dedup:
    """One call of `dedup`."""

    def __init__(self, session, threshold, near, cut, driver_edges, spans=None):
        self.session, self.threshold = session, threshold
        self.by, self.cut_by = near, cut
        self.driver_edges, self.spans = driver_edges, spans
        self.held = []

    def hold(self, frame):
        self.held.append(frame.persist())
        return self.held[-1]

    def cut(self, frame):
        """Works a frame out, and forgets how: the plan of each round would have those of all before it. Two copies, so that
        an executor may die."""
        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK_2)

    def decide(self, documents, key, text, keep, inside):
        of_key, of_text = _column(documents, key), _column(documents, text)
        if self.cut_by[-1]:
            of_text = _canonical(documents, of_text, text, of_key)
        else:
            of_text = of_text.cast("string")
        value = F.lit("")
        if inside is not None:
            value = _needed(_column(documents, inside).cast("string"), inside, of_key)
        rows = documents.select(
            _needed(of_key, key).alias("key"),
            _number(documents, keep, of_key).alias("number"),
            value.alias("inside"),
            F.sha2(_needed(of_text, text, of_key).cast("binary"), 256).alias("digest"),
            of_text.alias("text"),
        )
        members = self.hold(rows.select("key", "number", "inside", "digest"))
        repeated = members.groupBy("key").count().where("count > 1").select("key").limit(1).collect()
        if repeated:
            raise InvalidError(f"column {key}: the key {repeated[0].key!r} occurs twice; give each document its own", field=key)
        # The first of equal texts represents them all.
        first, copies = F.min(F.struct("number", "key")).alias("first"), F.count("key").alias("copies")
        groups = members.groupBy("inside", "digest").agg(first, copies)
        groups = self.hold(groups.select("inside", "digest", "first.*", "copies"))
        firsts = groups.select(F.col("key").alias("id"), "number", "inside", "copies")
        texts = firsts.join(rows.select(F.col("key").alias("id"), "text"), "id")
        schema = f"id string, number {dict(firsts.dtypes)['number']}, inside string, size int, set binary"
        left_out = None
        if self.spans is not None:
            left_out = self.session.sparkContext.broadcast(self.spans.list_of(texts, members.count(), self.hold))
        run = _Sets(self.cut_by, left_out, keep == "longest", _version())
        sets = texts.mapInArrow(run, schema)
        if self.by == "containment":
            # Larger ones come first, whatever was chosen.
            sets = sets.withColumn("number", F.struct((-F.col("size")).alias("size"), "number"))
        sets = self.hold(sets)
        edges = self.cut(self.near(sets))
        gone = self.gone(edges)
        covering = (
            edges.join(gone, edges.worse == gone.id, "left_semi")
            .join(gone, edges.better == gone.id, "left_anti")
            .groupBy(F.col("worse").alias("id"))
            .agg(F.min(F.struct("better_number", "better", "both", "either")).alias("by"))
        )
        decided = (
            members.select(F.col("key").alias("member"), "inside", "digest")
            .join(groups.select("inside", "digest", F.col("key").alias("id")), ["inside", "digest"])
            .join(covering, "id", "left")
            .select(
                F.col("member").alias("key"),
                F.coalesce("by.better", "id").alias("kept"),
                F.coalesce(F.col("by.both") / F.col("by.either"), F.lit(1.0)).alias("score"),
            )
            .persist()
        )
        decided.count()
        for frame in self.held:
            frame.unpersist()
        return decided

    def near(self, sets):
        """The pairs of sets that are near each other, the one that comes first as `better`."""
        number = dict(sets.dtypes)["number"]
        # Any order of shingles finds all pairs. One by frequencies, estimated on some of the sets, is fast.
        some = sets.where(F.pmod(F.xxhash64("id"), F.lit(SAMPLED)) == 0).select("set")
        counts = some.mapInArrow(_Elements(), "shingle bigint").groupBy("shingle").count()
        common = counts.where(f"count >= {COMMON}").orderBy(F.desc("count"), "shingle").limit(COMMON_MAX).collect()
        common = b"".join((row.shingle % 2**64).to_bytes(8, "little") for row in reversed(common))
        schema = f"id string, number {number}, inside string, size int, shingle bigint"

        def prefixes(of_kept):
            run = _Prefixes(self.by, self.threshold, of_kept, common, _version())
            return self.hold(sets.mapInArrow(run, schema))

        # By containment a kept set is found by all of its shingles.
        found_by = {"worse": prefixes(False)}
        found_by["better"] = prefixes(True) if self.by == "containment" else found_by["worse"]
        better, worse = (
            found_by[side].select(
                "inside", "shingle", *[F.col(name).alias(f"{side}_{name}") for name in ("id", "number", "size")]
            )
            for side in ("better", "worse")
        )
        sizes = F.lit(True)  # by containment the order says it
        if self.by == "resemblance":
            least, most = F.least("better_size", "worse_size"), F.greatest("better_size", "worse_size")
            sizes = least >= most * (self.threshold - 1e-9)
        is_before = F.struct("better_number", "better_id") < F.struct("worse_number", "worse_id")
        candidates = (
            better.join(worse, ["inside", "shingle"])
            .where(sizes & is_before)
            .select(
                F.col("worse_id").alias("worse"),
                "worse_number",
                F.col("better_id").alias("better"),
                "better_number",
            )
            .distinct()
        )
        for side in ("worse", "better"):
            candidates = candidates.join(
                sets.select(F.col("id").alias(side), F.col("set").alias(f"{side}_set")), side
            )
        names = f"worse string, worse_number {number}, better string, better_number {number}, both bigint, either bigint"
        columns = ["worse", "worse_number", "better", "better_number", "worse_set", "better_set"]
        return candidates.select(*columns).mapInArrow(_Count(self.by, self.threshold, _version()), names)

    def gone(self, edges):
        """The ids of the sets that go."""
        left = edges.select("worse", "worse_number", "better", "better_number")
        gone = self.session.createDataFrame([], "id string")
        while left.count() > self.driver_edges:
            waiting = left.select(F.col("worse").alias("id")).distinct()
            stay = left.select(F.col("better").alias("id")).distinct().join(waiting, "id", "left_anti")
            out = self.cut(
                left.join(stay, left.better == stay.id, "left_semi").select(F.col("worse").alias("id")).distinct()
            )
            gone = gone.unionByName(out)
            left = self.cut(
                left.join(out, left.worse == out.id, "left_anti").join(out, left.better == out.id, "left_anti")
            )
        before = {}
        for row in left.collect():
            before.setdefault((row.worse_number, row.worse), []).append(row.better)
        out = set()
        for (_, worse), near in sorted(before.items()):
            if any(better not in out for better in near):
                out.add(worse)
        return gone.unionByName(self.session.createDataFrame([(one,) for one in sorted(out)], "id string"))


class _Spans:
    """Spans that many documents share, counted before the documents are compared."""

    def __init__(self, more_than, words, shingle_words, seed, idf):
        self.more_than, self.words = more_than, words
        self.shingling = _twindex.shingling_text(shingle_words, seed, idf)
        _twindex.span_list(b"", self.shingling, words, more_than, 0)  # refuses numbers out of range before a worker does

    def list_of(self, texts, documents, hold):
        """The bytes of the list. `texts` has each distinct text with the number of its copies."""
        call = (self.shingling, self.words, _version())
        texts = texts.select("id", "copies", "text")
        # A run of words that many documents share has a fingerprint that as many select.
        selected = hold(texts.mapInArrow(_SpanFingerprints(*call), "id string, copies bigint, fingerprint bigint"))
        often = f"documents > {int(self.more_than)}"
        of_all = F.sum("copies").alias("documents")
        common = selected.groupBy("fingerprint").agg(of_all).where(often).select("fingerprint")
        own = selected.join(common, "fingerprint").groupBy("id").agg(F.collect_set("fingerprint").alias("wanted"))
        runs = texts.join(own, "id").mapInArrow(_SpanRuns(*call), "high bigint, low bigint, copies bigint")
        spans = runs.groupBy("high", "low").agg(of_all).where(often).select("high", "low").collect()
        bytes_of_all = b"".join((half % 2**64).to_bytes(8, "little") for span in spans for half in span)
        return bytes(_twindex.span_list(bytes_of_all, self.shingling, self.words, self.more_than, documents))


def _canonical(documents, column, name, key):
    """The features of a column as bytes that are equal for equal sets and vectors."""
    kind = _type(documents, column)
    if kind.startswith(("map<", "array<")):
        column = F.when(column.isNotNull(), F.to_json(column))
    elif kind != "string":
        expected = "an array of names, a map of weights, or texts of JSON"
        raise InvalidError(f"column {name}: expected {expected}, found {kind}", field=name, found=kind)
    version = _version()

    def canonical(texts: pd.Series) -> pd.Series:
        _begin(version)
        made = pa.record_batch(_twindex.canonical_features(pa.array(texts)))
        return made.column("features").to_pandas()

    return F.pandas_udf(canonical, "binary")(_needed(column, name, key))


def _needed(column, name, key=None):
    """A column that has a value in each row. `key` is the column that names a row which has none."""
    return _refused(column, column.isNull(), f"column {name}: expected a value in each row, found null", key)


def _refused(column, wrong, why, key=None):
    """A column; rows that are wrong end the job."""
    of_key = F.lit("") if key is None else F.concat(F.lit(" in the row of the key "), F.coalesce(key.cast("string"), F.lit("null")))
    message = F.concat(F.lit(why), of_key, F.lit("; fill it in, or leave the row out"))
    return F.when(wrong, F.raise_error(message)).otherwise(column)


def _number(documents, keep, key):
    """The number by which documents come before others, the smaller first."""
    if keep == "smallest-key":
        return F.lit(0)
    if keep == "longest":
        return F.lit(0).cast("bigint")  # known when texts are cut
    if keep == "key-hash":
        version = _version()

        def hashes(keys: pd.Series) -> pd.Series:
            _begin(version)
            return pa.array(_twindex.key_hashes(pa.array(keys))).to_pandas()

        return F.pandas_udf(hashes, "bigint")(_needed(key, "of keys"))
    if not (isinstance(keep, tuple) and len(keep) == 2 and keep[0] in ("max", "min")):
        raise InvalidError(
            'keep: expected "smallest-key", "key-hash", "longest", ("max", column) or ("min", column), '
            f"found {keep!r}; rows of Spark have no order, and so no first"
        )
    end, name = keep
    column = _column(documents, name)
    found = _type(documents, column)
    if found not in (*_INTEGERS, "float", "double") and not found.startswith("decimal"):
        raise InvalidError(f"column {name}: expected numbers, found {found}", field=name, found=found)
    given, column = column, _needed(column, name, key)
    if found in ("float", "double"):
        column = _refused(column, F.isnan(given), f"column {name}: expected numbers, found NaN", key)
    elif found in _INTEGERS:
        column = column.cast("decimal(20,0)")  # the least integer has no negative one of its own type
    return -column if end == "max" else column


def forest(
    edges: DataFrame, *, a: str = "a", b: str = "b", memory: int = MEMORY, fan_in: int = FAN_IN
) -> DataFrame:
    """A spanning forest of pairs: root, key. Each component is a star around its smallest key.

    Every partition is reduced to fewer edges than it has keys, then several of those are merged to one, over and over.
    What comes out does not depend on how the pairs lay.
    """
    if fan_in < 2:
        raise InvalidError(f"fan_in: expected 2 or more, found {fan_in}")
    key_type = dict(edges.dtypes)[a]
    run = _Forest("u64" if key_type == "bigint" else "bytes", key_type, memory)
    schema = f"root {key_type}, key {key_type}"
    # A guess: Spark may plan otherwise when it runs. So the last merge is of all that is left, whatever that is.
    partitions = edges.rdd.getNumPartitions()
    _describe(edges.sparkSession.sparkContext, "twindex: forest")
    found = edges.select(F.col(a).alias("root"), F.col(b).alias("key")).mapInArrow(run, schema)
    while partitions > fan_in:
        partitions = -(-partitions // fan_in)
        found = found.repartition(partitions, "root").mapInArrow(run, schema)
    return found.repartition(1).mapInArrow(run, schema)


def clusters(pairs: DataFrame, *, memory: int = MEMORY, fan_in: int = FAN_IN) -> DataFrame:
    """The clusters that pairs make, a row for each document of a cluster of two or more: key, kept, score.

    kept: the smallest key of the cluster. score: the distance or resemblance of the pair of both; null for the kept one
    itself, and for documents that are near it only by way of others.
    """
    score = [name for name in pairs.columns if name not in ("a", "b")][0]
    stars = forest(pairs, memory=memory, fan_in=fan_in).select("key", F.col("root").alias("kept"))
    scores = pairs.select(F.col("a").alias("kept"), F.col("b").alias("key"), F.col(score).alias("score"))
    members = stars.join(scores, ["kept", "key"], "left").select("key", "kept", "score")
    kind = dict(members.dtypes)["score"]
    none = F.lit(None).cast(kind).alias("score")
    roots = stars.select("kept").distinct().select(F.col("kept").alias("key"), "kept", none)
    return members.unionByName(roots)


def kept(documents: DataFrame, clusters: DataFrame, *, key: str = "id") -> DataFrame:
    """The documents that stay: those of no cluster, and of each cluster the one that is kept."""
    gone = clusters.where("key <> kept").select(F.col("key").alias("_twindex_gone"))
    return documents.join(gone, _column(documents, key) == F.col("_twindex_gone"), "left_anti")


def write_pairs(pairs: DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes pairs as `twindex pairs` prints them, sorted; through the driver, for those that fit one file."""
    score = [name for name in pairs.columns if name not in ("a", "b")][0]
    with open(path, "wb") as out:
        for row in pairs.orderBy("a", "b").toLocalIterator(prefetchPartitions=True):
            out.write(b"%s\t%s\t%s\n" % (_field(row.a), _field(row.b), _score(row[score])))


def write_clusters(clusters: DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes clusters as `twindex clusters` does, sorted; through the driver, for those that fit one file."""
    number, last = 0, None
    with open(path, "wb") as out:
        out.write(b"key\tcluster\tkept\tscore\n")
        for row in clusters.orderBy("kept", "key").toLocalIterator(prefetchPartitions=True):
            if row.kept != last:
                number, last = number + 1, row.kept
            score = b"=" if row.key == row.kept else b"-" if row.score is None else _score(row.score)
            out.write(b"%s\t%d\t%s\t%s\n" % (_field(row.key), number, _field(row.kept), score))


def counters(context: SparkContext) -> dict[str, Accumulator[int]]:
    """Accumulators of the work of this session, by name; a task that is run again counts again."""
    known = _COUNTERS.get(context.applicationId)
    if known is None:
        names = ("documents", "segments", "bytes", "questions", "hits", "pairs", "capped_buckets")
        known = {name: context.accumulator(0) for name in names}
        _COUNTERS[context.applicationId] = known
    return known


_COUNTERS = {}
_DESCRIPTION = "spark.job.description"


class _job:
    """Names the jobs of a block in Spark's UI."""

    def __init__(self, context, description):
        self.context, self.description = context, description

    def __enter__(self):
        self.former = self.context.getLocalProperty(_DESCRIPTION)
        self.context.setJobDescription(self.description)

    def __exit__(self, *_):
        self.context.setJobDescription(self.former)


def _describe(context, description):
    """Names jobs that run later, when rows are asked for, unless the caller has named them."""
    if (context.getLocalProperty(_DESCRIPTION) or "twindex:").startswith("twindex:"):
        context.setJobDescription(description)


def _segments_folder(path):
    return path.rstrip("/") + ".segments"


def _column(frame, name):
    """The column of this name, or the field of structs at this path."""
    if name in frame.columns:
        return F.col("`" + name.replace("`", "``") + "`")
    kind = frame.schema
    for part in name.split("."):
        fields = {field.name: field.dataType for field in getattr(kind, "fields", ())}
        if part not in fields:
            there = ", ".join(fields) or "no fields"
            raise InvalidError(f"no column {name}; there are {', '.join(frame.columns)}, and at {part}: {there}", field=name)
        kind = fields[part]
    return F.col(".".join("`" + part.replace("`", "``") + "`" for part in name.split(".")))


def _type(frame, column):
    return frame.select(column.alias("one")).dtypes[0][1]


def _text_column(frame, name, key):
    return _needed(_column(frame, name), name, _column(frame, key)).alias("text")


def _key_type(params):
    return "bigint" if params.keys == "u64" else "string"


def _key_column(frame, key, params):
    column = _column(frame, key)
    found = _type(frame, column)
    if params.keys == "u64" and found not in _INTEGERS:
        expected = f"{', '.join(_INTEGERS[:-1])} or {_INTEGERS[-1]}"
        raise InvalidError(
            f"column {key}: expected {expected}, as the index's keys are numbers; found {found}",
            field=key,
            expected=expected,
            found=found,
            remedy="cast the column, where no two keys become one",
        )
    return _needed(column.cast(_key_type(params)), key).alias("key")


def _segments_alone(path):
    """How many segments an index has, all of whose documents are in one: a worker opens these by their places."""
    index = Index.open(path)
    if index.logged:
        raise InvalidError(
            f"{path}: {index.logged} documents are in the index's log and in none of its segments",
            path=os.path.abspath(path),
            remedy="compact it first: Index.open(path).compact()",
        )
    return len(index.segments)


def _sketch_schema(params):
    parts = ", ".join(f"{part} binary" for part in _PARTS)
    return f"key {_key_type(params)}, shard int, fingerprint bigint, {parts}"


def _slots(session, count):
    """A number for each of `count` partitions that Spark's own hash puts there."""
    found = {}
    start = 0
    while len(found) < count:
        table = session.range(start, start + 16 * count).select("id", F.pmod(F.hash("id"), F.lit(count)).alias("at"))
        for row in table.groupBy("at").agg(F.min("id").alias("id")).collect():
            found.setdefault(row["at"], row["id"])
        start += 16 * count
    return [found[at] for at in range(count)]


def _twindex_error(name, message, **details):
    from . import _errors

    return getattr(_errors, name)(message, **details)


def _version():
    return _twindex.__version__


def _field(key):
    """A key as tables of the command have it."""
    if isinstance(key, int):
        return b"%d" % key
    text = key.encode() if isinstance(key, str) else key
    return text.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"\r", b"\\r")


def _score(value):
    return b"%d" % value if isinstance(value, int) else b"%.6f" % value


# --- the workers ---


class _Opened:
    """An index as the driver saw it, which every worker must see too."""

    def __init__(self, path):
        index = Index.open(path)
        self.path, self.params = os.path.abspath(path), index.params.text
        self.uuid, self.generation = index.uuid, index.generation

    def open(self):
        index = Index.open(self.path)
        Params.parse(self.params).check(index.params)
        for field, expected, found, remedy in (
            ("uuid", self.uuid, index.uuid, "see that all workers and the driver have the same folder at this path"),
            (
                "generation",
                str(self.generation),
                str(index.generation),
                "run again when nobody writes to the index, or on a snapshot of it",
            ),
        ):
            if expected != found:
                why = f"{self.path}: {field}: expected {expected} as on the driver, found {found}"
                raise Error(why, path=self.path, field=field, expected=expected, found=found, remedy=remedy)
        return index


def _begin(version):
    """What every task does first."""
    if version != _version():
        raise Error(
            f"twindex: expected version {version} as on the driver, found {_version()}",
            field="version",
            expected=version,
            found=_version(),
            remedy="ship the driver's wheel with spark.archives",
        )
    threads = os.environ.get("TWINDEX_THREADS", "1")  # tasks are what is parallel
    if not threads.isdecimal() or int(threads) < 1:
        raise InvalidError(
            f"TWINDEX_THREADS: expected 1 or more, found {threads!r}", remedy="set spark.executorEnv.TWINDEX_THREADS"
        )
    try:
        _twindex.set_threads(int(threads))
    except ValueError:
        pass  # an earlier task of this process has set it


def _out(batch, key_type="string"):
    """A batch of twindex as Spark wants it: keys as strings or binary, numbers signed."""
    batch = pa.record_batch(batch)
    columns = []
    for name, column in zip(batch.schema.names, batch.columns):
        if pa.types.is_uint64(column.type):
            signed = column.view(pa.int64())
            # Of a fingerprint the bits count; of a key the number.
            if name != "fingerprint" and len(signed) and (pc.min(signed).as_py() or 0) < 0:
                found = pc.max(column).as_py()
                raise InvalidError(
                    f"{name}: expected keys up to 2^63 - 1, found {found}: Spark's bigint holds no more",
                    field=name,
                    expected="at most 9223372036854775807",
                    found=str(found),
                    remedy="ask the index by twindex.Index or the command, or give its documents smaller keys",
                )
            column = signed
        elif pa.types.is_large_binary(column.type):
            column = column.cast(pa.binary() if name in _PARTS or key_type == "binary" else pa.string())
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


class _Sketch:
    def __init__(self, params, shards, version):
        self.params, self.shards, self.version = params, shards, version

    def __call__(self, batches):
        _begin(self.version)
        sketcher = Sketcher(self.params)
        for batch in batches:
            yield _out(sketcher.rows(batch.column(0), batch.column(1), self.shards))


class _Build:
    def __init__(self, params, folder, memory, scratch, counted, version):
        self.params, self.folder, self.memory, self.scratch = params, folder, memory, scratch
        self.counted, self.version = counted, version

    def __call__(self, batches):
        _begin(self.version)
        params = self.params
        keeps_sets = "sets" in params.fields
        builder, shard = None, None
        try:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                here = batch.column("shard")[0].as_py()
                if builder is None:
                    builder, shard = ShardBuilder(self.folder, params, self.memory, self.scratch), here
                others = pc.not_equal(batch.column("shard"), shard)
                if pc.any(others).as_py():
                    raise Error(f"a partition has documents of shard {shard} and of others; do not coalesce partitions")
                fingerprint = batch.column("fingerprint").view(pa.uint64())
                parts = [batch.column(part) for part in _PARTS if part != "set" or keeps_sets]
                builder.add(batch.column("key"), fingerprint, *parts)
            if builder is not None:
                name, documents, size = builder.finish()
                for counter, value in (("documents", documents), ("segments", 1), ("bytes", size)):
                    self.counted[counter].add(value)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([shard], pa.int32()), pa.array([name]), pa.array([documents]), pa.array([size])],
                    names=["shard", "name", "documents", "bytes"],
                )
        finally:
            if builder is not None:
                builder.abandon()


class _Query:
    def __init__(self, opened, within, resembling, limit, counted, version):
        self.opened, self.within, self.resembling, self.limit = opened, within, resembling, limit
        self.counted, self.version = counted, version

    def __call__(self, batches):
        _begin(self.version)
        index = self.opened.open()
        for batch in batches:
            segments = [None]
            if "segment" in batch.schema.names:
                segments = pc.unique(batch.column("segment")).to_pylist()
            for segment in segments:
                asked = batch if segment is None else batch.filter(pc.equal(batch.column("segment"), segment))
                for start in range(0, asked.num_rows, QUESTIONS):
                    some = asked.slice(start, QUESTIONS)
                    found = index.query(
                        some.column(0),
                        some.column(1),
                        within=self.within,
                        resembling=self.resembling,
                        limit=self.limit,
                        segment=segment,
                    )
                    found = _out(found)
                    self.counted["questions"].add(some.num_rows)
                    self.counted["hits"].add(found.num_rows)
                    yield found


class _Pairs:
    def __init__(self, opened, parts, near, memory, counted, version):
        self.opened, self.parts, self.near = opened, parts, near
        self.memory, self.counted, self.version = memory, counted, version

    def __call__(self, batches):
        _begin(self.version)
        index = self.opened.open()
        for batch in batches:
            for part in batch.column(0).to_pylist():
                left, right = self.parts[part]
                batches_found = index._pairs_of_parts(self.near, (left, right), self.memory)
                for found in batches_found:
                    found = _out(found)
                    self.counted["pairs"].add(found.num_rows)
                    yield found
                self.counted["capped_buckets"].add(batches_found.capped_buckets)


class _SpanFingerprints:
    def __init__(self, shingling, words, version):
        self.options, self.version = (shingling, words), version

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            made = pa.record_batch(_twindex.span_fingerprints(batch.column("text"), *self.options))
            columns = [batch.column(name).take(made.column("row")) for name in ("id", "copies")]
            columns.append(made.column("fingerprint").view(pa.int64()))
            yield pa.RecordBatch.from_arrays(columns, names=["id", "copies", "fingerprint"])


class _SpanRuns:
    def __init__(self, shingling, words, version):
        self.options, self.version = (shingling, words), version

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            wanted = _bytes_of(batch.column("wanted"))
            made = pa.record_batch(_twindex.span_runs(batch.column("text"), wanted, *self.options))
            columns = [made.column(name).view(pa.int64()) for name in ("high", "low")]
            columns.append(batch.column("copies").take(made.column("row")))
            yield pa.RecordBatch.from_arrays(columns, names=["high", "low", "copies"])


def _bytes_of(column):
    """Lists of numbers as bytes, 8 each, low ones first."""
    numbers = [b"".join((one % 2**64).to_bytes(8, "little") for one in all) for all in column.to_pylist()]
    return pa.array(numbers, pa.binary())


class _Sets:
    def __init__(self, cut, left_out, longest, version):
        self.cut, self.left_out, self.longest, self.version = cut, left_out, longest, version

    def __call__(self, batches):
        _begin(self.version)
        left_out = None if self.left_out is None else self.left_out.value
        for batch in batches:
            made = pa.record_batch(_twindex.shingle_sets(batch.column("text"), *self.cut, left_out))
            sets = made.column("set")
            sizes = pc.divide(pc.binary_length(sets), 8).cast(pa.int32())
            columns = [batch.column(name) for name in ("id", "number", "inside")]
            if self.longest:
                columns[1] = pc.negate(made.column("tokens"))
            names = ["id", "number", "inside", "size", "set"]
            yield pa.RecordBatch.from_arrays([*columns, sizes, sets.cast(pa.binary())], names=names)


class _Elements:
    def __call__(self, batches):
        for batch in batches:
            column = batch.column("set").cast(pa.large_binary())
            bytes_of_all = b"".join(column.to_pylist())
            shingles = pa.Array.from_buffers(pa.int64(), len(bytes_of_all) // 8, [None, pa.py_buffer(bytes_of_all)])
            yield pa.RecordBatch.from_arrays([shingles], names=["shingle"])


class _Prefixes:
    def __init__(self, near, threshold, of_kept, common, version):
        self.near, self.threshold, self.of_kept = near, threshold, of_kept
        self.common, self.version = common, version

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            sets = batch.column("set")
            found = pa.record_batch(
                _twindex.set_prefixes(sets, self.near, self.threshold, self.of_kept, self.common)
            )
            columns = [batch.column(name).take(found.column("row")) for name in ("id", "number", "inside", "size")]
            names = ["id", "number", "inside", "size", "shingle"]
            yield pa.RecordBatch.from_arrays([*columns, found.column("shingle").view(pa.int64())], names=names)


class _Count:
    def __init__(self, near, threshold, version):
        self.near, self.threshold, self.version = near, threshold, version

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            sets = (batch.column("worse_set"), batch.column("better_set"))
            counts = pa.record_batch(_twindex.count_shared(*sets, self.near, self.threshold))
            names = ["worse", "worse_number", "better", "better_number"]
            columns = [batch.column(name) for name in names] + [column.view(pa.int64()) for column in counts.columns]
            counted = pa.RecordBatch.from_arrays(columns, names=[*names, "both", "either"])
            yield counted.filter(pc.is_valid(counts.column("both")))


class _Fingerprints:
    def __init__(self, min_words, seed, exact, version, within):
        self.options, self.version, self.within = (min_words, seed, exact), version, within

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            made = pa.record_batch(_twindex.passage_fingerprints(batch.column("text"), *self.options, self.within))
            columns = [batch.column("id").take(made.column("row")), made.column("fingerprint").view(pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, names=["id", "fingerprint"])


class _Grams:
    def __init__(self, min_words, seed, exact, version, longest):
        self.options, self.version, self.longest = (min_words, seed, exact), version, longest

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            wanted = _bytes_of(batch.column("wanted"))
            made = pa.record_batch(_twindex.passage_grams(batch.column("text"), wanted, *self.options))
            columns = [batch.column(name).take(made.column("row")) for name in ("id", "number")]
            if self.longest:
                columns[1] = pc.negate(made.column("words").cast(pa.int64()))
            columns += [made.column(name).view(pa.int64()) for name in ("high", "low")]
            columns += [made.column(name) for name in ("position", "start", "end")]
            names = ["id", "number", "high", "low", "position", "start", "end"]
            yield pa.RecordBatch.from_arrays(columns, names=names)


class _Forest:
    def __init__(self, keys, key_type, memory):
        self.keys, self.key_type, self.memory = keys, key_type, memory

    def __call__(self, batches):
        forest = Forest(self.keys, self.memory)
        for batch in batches:
            forest.add(batch.column(0), batch.column(1))
        for found in forest.finish():
            yield _out(found, self.key_type)
