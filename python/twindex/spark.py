"""twindex on Apache Spark: finds near-duplicates in a DataFrame on several machines.

    from twindex import Params, spark as tw

    index = tw.build(documents, "/shared/pages.twx", Params(words=5), key="url", text="text", shards=64)
    pairs = tw.pairs(session, "/shared/pages.twx", within=3).cache()
    clusters = tw.clusters(pairs)
    kept = tw.kept(documents, clusters, key="url")

    decided = tw.dedup(documents, 0.8, key="url")     # by the rule of `twindex dedup`, without an index
    kept = tw.kept(documents, decided, key="url")
    groups = tw.groups(documents, 0.8, key="url")     # key, leader, size: as `twindex groups` lists them
    spans = tw.passages(documents, 50, key="url")     # repeated passages of documents, as `twindex passages` lists them

Workers compute sketches, build segments and find the pairs of segments; the driver writes one manifest. Workers write
their files to a folder that all workers and the driver can access. The bytes of a segment depend only on its documents,
and its name only on its bytes, so a task that is retried or run twice at the same time writes the same file. A failed
job leaves nothing in any index; `gc` removes its files.

Needs pyspark with pandas and pyarrow, which `twindex` itself does not need. See docs/cluster.md.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Literal

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

# The value of a setting; None is its default.
Setting = str | int | float | None

# Number of partitions that are combined in one step of `forest`.
FAN_IN = 8
# Default memory budget in bytes of a task for records, pairs or keys; more data goes to scratch files.
MEMORY = 256 << 20
# Maximum number of undecided pairs that are left to the driver at the end of `dedup`.
DRIVER_EDGES = 1_000_000
# Frequencies of shingles are estimated from about one in SAMPLED sets. Shingles that are in at least COMMON of these sets
# are common; the COMMON_MAX most frequent of them are used.
SAMPLED, COMMON, COMMON_MAX = 8, 8, 100_000
# Number of tasks per core for the pairs of segments.
PARTS_A_CORE = 4
# Maximum number of queries whose answers are in memory at a time. By containment more queries are answered together,
# because each time the sets of all documents are read.
QUESTIONS, QUESTIONS_BY_CONTAINMENT = 256, 16_384

# Column types that are accepted for integer keys. Other types, which Spark would cast (2.7 to 2), are refused.
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PARTS = ["features", "signature", "bottom", "modular", "set"]


# --- the driver ---


def sketch(
    documents: DataFrame, params: Params, *, key: str = "id", text: str = "text", shards: int = 1
) -> DataFrame:
    """Returns the sketches of documents: key, shard, fingerprint, features, signature, bottom, modular, set.

    key, text: columns, or paths to fields of structs, "page.text" or "/page/text", or lists of these, "title,page.text",
    whose values are joined as the command joins them. Columns of data that the parameters do not keep are empty or null. A document without words has no features. A row without a text ends the job with an error
    that names its key.
    """
    if "codes" in params.fields:
        bits = params.fields["codes"]
        why = f"codes: the parameters keep fingerprints of {bits} bits, and no other sketches; give the column to `build`"
        raise InvalidError(why, field="codes")
    return _shard_rows(documents, params, key, text, shards)


def _shard_rows(documents, params, key, text, shards):
    """Returns the rows that are added to a `ShardBuilder`, with the shard of each."""
    rows = documents.select(_key_column(documents, key, params), _content_column(documents, text, key, params))
    if "codes" not in params.fields:
        return rows.mapInArrow(_Sketch(params, shards, _version()), _sketch_schema(params))
    schema = f"key {_key_type(params)}, shard int, code binary"
    return rows.mapInArrow(_Codes(params, shards, _version()), schema)


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
    """Builds an index of documents and opens it. The index's directory appears only when the index is complete.

    path: a directory that does not exist yet, on a file system that the driver and all workers can access.
    text: the texts, as in `sketch`. With Params(codes=256, near_within=31) it is a binary column of fingerprints of 32
        bytes, such as hashes of images.
    shards: number of parts into which the documents are divided by a hash of their keys. One task builds the segment of
        each part. By default, twice the number of Spark's cores.
    scratch: a folder on each worker's own disk where segments are built before they are copied to the shared folder; for
        object stores that are mounted as files. By default, segments are built in the shared folder.

    Keys must be unique: rows have no order in Spark, so there is no last document with a key.
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
    rows = _shard_rows(documents, params, key, text, shards)
    # Partitions by the shard's slot number, so that each shard gets its own partition.
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
    """Removes the files that failed or finished builds of an index at this path left next to it. Returns their names.

    Files that a running task is writing are not removed. Call it when no build for this path is running.
    """
    folder = _segments_folder(os.path.abspath(path))
    if not os.path.isdir(folder):
        return []
    # The index links its segments under its own names, so the names in this folder are no longer needed.
    removed = _twindex.clean(folder, set())
    try:
        os.rmdir(folder)
    except OSError:
        pass  # a task is writing to it
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
    containment: float | None = None,
    estimated: bool = False,
) -> DataFrame:
    """Returns the documents of an index near each query: query, key, distance, resemblance.

    text: the texts, or for an index with codes the fingerprints, as in `build`.

    containment: returns instead the documents that contain at least this share of the query and are at least as large,
    and the documents that are contained in it by at least this share, with the columns of `Index.query`. This needs an
    index with sets.

    estimated: estimates the resemblance from signatures instead of counting it with the sets of the index.

    Each partition of `questions` queries the whole index, which every worker maps. With `by_segment`, each query is sent
    to one task per segment instead, so that a worker reads only its own segments: for an index larger than the memory of
    a machine (Manku, Jain, Das Sarma 2007, section 4). In this case, `limit` applies to each segment.
    """
    session = questions.sparkSession
    opened = _Opened(path)
    params = Params.parse(opened.params)
    asked = questions.select(_key_column(questions, key, params), _content_column(questions, text, key, params))
    name = _key_type(params)
    schema = f"query {name}, key {name}, distance int, resemblance double"
    near = {"within": within, "resembling": resembling, "containment": containment, "estimated": estimated}
    # Refuses unsuitable options before a worker does.
    opened.open().query([], [], **near)
    if containment is not None:
        schema += ", intersection bigint, union bigint, query_in_hit double, hit_in_query double"
    if by_segment:
        segments = _segments_alone(path)
        slots = _slots(session, max(segments, 1))
        table = session.createDataFrame([(at, slots[at]) for at in range(segments)], "segment int, slot bigint")
        asked = asked.crossJoin(F.broadcast(table)).repartition(max(segments, 1), "slot")
        asked = asked.select("key", "text", "segment")
    context = session.sparkContext
    run = _Query(opened, near, limit, counters(context), _version())
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
    """Returns the pairs of near documents in an index: a, b, and distance or resemblance; a < b.

    within: finds all pairs whose fingerprints differ in at most this number of bits. Without `within` and `resembling`,
        the index's own radius is used, or its threshold if its documents are not near by distance.
    resembling: finds all pairs with at least this resemblance, counted with the sets of the index.
    estimated: estimates resemblance from the signatures of documents that share a band; required for an index without
        sets.

    For a bucket of a band with more than 10,000 documents in two segments, and for a shingle that is among the rarest of
    more than 10,000 documents, only enough pairs to connect these documents are returned. The counter `capped_buckets`
    has their number.

    Each segment is joined with itself and with each other segment, by a few tasks per core. Cache the result, because
    each use of it would run the joins again.
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
    # If there are many parts, a task processes several of them, because a task costs more than a small part.
    tasks = min(len(parts), PARTS_A_CORE * context.defaultParallelism)
    return session.range(0, len(parts), 1, max(tasks, 1)).mapInArrow(run, schema)


def dedup(
    documents: DataFrame,
    near: float | str | None = None,
    *,
    key: str = "id",
    text: str = "text",
    keep: str | tuple[str, str] | list[str | tuple[str, str]] = "smallest-key",
    inside: str | None = None,
    driver_edges: int = DRIVER_EDGES,
    idf: IdfTable | None = None,
    features: bool = False,
    **settings: Setting,
) -> DataFrame:
    """Decides which documents to keep, by the rule of `twindex dedup`: key, kept, score, with a row for each document.

    A document is removed if and only if it is near an earlier kept document, by default with a resemblance of at least
    0.8, which is counted exactly. So every removed document is near a kept one, and no two kept documents are near each
    other. kept: the first near kept document; the document itself, if it is kept. score: the resemblance of the two. The
    function `kept` accepts the result.

    near: the setting `near`; `threshold` is its second name. With "containment:J", larger documents come first, and the
        score is the share of the document that the kept one contains.
    key, text, and the columns of keep and inside: columns, or paths to fields of structs such as "page.text"; key and text
        may be lists of these, as in `sketch`.
    keep: the order in which documents are considered: a rule, or a list of rules, where the first rule that distinguishes
        two documents decides. "smallest-key"; "key-hash" (by a hash of the key); "longest" (by number of words);
        "max:COLUMN", "min:COLUMN" or "earliest:COLUMN", or ("max", column), for numbers and timestamps;
        "rank:COLUMN=A,B", the values in this order; "https" or "shortest-url", for keys that are URLs. Where no rule
        decides, the smallest key does. Rows of Spark have no order and texts no page, so there is no "first" and no
        "canonical".
    inside: a column; only documents with the same value in it are compared.
    idf: the table of weights="idf", which is sent to each worker. Texts are tokenized as those of the table.
    features: the column `text` has sets or vectors of features instead of texts: an array of names, a map of weights, or
        JSON texts as read by `--features-field`. With weights="tf", the weight is that in the vector.

    All other keywords are settings as in `twindex.dedup`, with the same names, values and defaults, except for
    near="within:K" and near="equal", without_boilerplate="@FILE", max_work, memory and threads. For without_boilerplate,
    all documents are counted before any are compared, and the list of spans is sent through the driver to each worker,
    16 bytes per span. A file of stop words is read by the driver.

    A row without a key, a text, or a value in one of these columns ends the job with an error that names the key.

    Near pairs are found by the rarest shingles of each text; none is missed. Decisions are made in rounds: documents
    without an undecided near document before them are kept, and documents near them are removed. When at most
    `driver_edges` pairs are left, the driver decides the rest. The work is done when this function returns, and its
    result is cached; `unpersist` frees it.

    Fingerprints, such as hashes of images, have no shingles: `build`, `pairs` and `clusters` find the near ones.
    """
    _twindex.spark_key("dedup", key)
    found = _type(documents, _key(documents, key))
    if found != "string":
        raise InvalidError(f"column {key}: expected string, found {found}", field=key, found=found, remedy="cast the column")
    rule = _rule(near, settings, idf, features)
    session = documents.sparkSession
    context = session.sparkContext
    cut = (rule["shingling"], rule["weights"], idf, rule["weight_unit"])
    _twindex.shingle_sets([], *cut)  # refuses unsuitable weights before a worker does
    spans = None
    if rule["without_boilerplate"] is not None:
        spans = _Spans(*rule["without_boilerplate"], rule["shingling"])
    with _job(context, "twindex: dedup"):
        call = _Dedup(session, rule["threshold"], rule["near"], cut, driver_edges, spans, features)
        return call.decide(documents, key, text, keep, inside)


def _rule(near, settings, idf, features):
    """Checks the settings of the rule, and returns them for its steps."""
    if near is not None:
        if "threshold" in settings:
            raise InvalidError("threshold: a second name of near; give one of the two", field="threshold")
        settings = {"near": near, **settings}
    try:
        return _twindex.spark_rule(settings, idf, features)
    except InvalidError as error:
        # Features are documents of another kind here, and no tokens of texts.
        raise InvalidError(str(error).replace('tokens="features"', "features=True")) from None


def groups(
    documents: DataFrame,
    near: float | str | None = None,
    *,
    key: str = "id",
    text: str = "text",
    keep: str | tuple[str, str] | list[str | tuple[str, str]] = "key-hash",
    **options: Any,
) -> DataFrame:
    """Returns the group of each document: key, leader, size, with a row for each document.

    A document is a leader if no earlier leader is near it, by the setting `near` of `dedup`, counted exactly. Every other
    document belongs to the first leader that it is near. These are the groups that `twindex groups`, and `Index.groups`
    in Python, list for an index with sets of the same documents. They depend only on the documents.

    keep: the order in which documents are considered, as in `dedup`, whose other options can be given too. For equal
        numbers, documents are ordered by key here, but by the hash of the key in an index with priorities.

    The result is cached, as that of `dedup`; `unpersist` frees it.
    """
    decided = dedup(documents, near, key=key, text=text, keep=keep, **options)
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
    keep: str | tuple[str, str] | list[str | tuple[str, str]] = "smallest-key",
    within: bool = False,
    exact: Literal["tokens", "bytes"] = "tokens",
    **settings: Setting,
) -> DataFrame:
    """Returns runs of at least `min_words` words that occur in an earlier document: key, start, end, first_key,
    first_start, words.

    The rows cover the bytes that the spans of `twindex passages` with the same `--keep` cover, in no particular order. But a
    row ends where the first occurrences do not advance by one, so periodic text has many rows.
    start and end are byte offsets in the UTF-8 text; end is exclusive.

    keep: the order in which documents are considered, as in `dedup`; for equal numbers, by key. The passages of a
        document are those that occur in an earlier one.
    within: also find passages that occur earlier in the same document.
    exact: "bytes" also compares the bytes between the words.

    All other keywords say how texts are split into words, as in `twindex.passages`; stop words are those of a language.

    Selected fingerprints are counted first. Texts with a repeated fingerprint are tokenized again, and their runs of
    words are sorted by hash to find the first occurrence of each. Each run of words that may be repeated takes a row.
    The work is done when this function returns, and its result is cached; `unpersist` frees it.
    """
    _twindex.spark_key("passages", key)
    found = _type(documents, _key(documents, key))
    if found != "string":
        raise InvalidError(f"column {key}: expected string, found {found}", field=key, found=found, remedy="cast the column")
    of_key, of_text = _key(documents, key), _text(documents, text)
    rows = documents.select(
        _needed(of_key, key).alias("id"),
        _number(documents, keep, of_key).alias("number"),
        _needed(of_text.cast("string"), text, of_key).alias("text"),
    )
    number = dict(rows.dtypes)["number"]
    # Refuses unsuitable settings before a worker does.
    _twindex.passage_fingerprints([], min_words, exact, settings, within)
    context = documents.sparkSession.sparkContext
    with _job(context, "twindex: passages"):
        repeated = rows.groupBy("id").count().where("count > 1").select("id").limit(1).collect()
        if repeated:
            raise InvalidError(f"column {key}: the key {repeated[0].id!r} is there twice; give each document its own", field=key)
        call = (min_words, exact, settings, _version())
        selected = rows.select("id", "text").mapInArrow(_Fingerprints(*call, within), "id string, fingerprint bigint")
        selected = selected.persist()
        recurring = selected.groupBy("fingerprint").count().where("count > 1").select("fingerprint")
        own = selected.join(recurring, "fingerprint").groupBy("id").agg(F.collect_set("fingerprint").alias("wanted"))
        schema = f"id string, number {number}, high bigint, low bigint, position int, start int, end int"
        grams = rows.join(own, "id").mapInArrow(_Grams(*call, _longest(keep)), schema)
        # The first of several equal runs of words is the source of the others.
        by_rank = Window.partitionBy("high", "low").orderBy("number", "id", "position")
        first = F.first(F.struct("id", "position", "start")).over(by_rank)
        repeats = grams.select("id", "position", "start", "end", first.alias("first")).where("first.id != id")
        if within:
            repeats = grams.select("id", "position", "start", "end", first.alias("first"))
            repeats = repeats.where("first.id != id or first.position != position")
        # The distance between position and source is constant within a passage.
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
    """The state of one call of `dedup`."""

    def __init__(self, session, threshold, near, cut, driver_edges, spans=None, features=False):
        self.session, self.threshold, self.features = session, threshold, features
        self.by, self.cut_by = near, cut
        self.driver_edges, self.spans = driver_edges, spans
        self.held = []

    def hold(self, frame):
        self.held.append(frame.persist())
        return self.held[-1]

    def cut(self, frame):
        """Computes a frame and truncates its lineage; otherwise the plan of each round would contain the plans of all
        earlier rounds. Stores two replicas, so that one executor may fail."""
        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK_2)

    def decide(self, documents, key, text, keep, inside):
        of_key = _key(documents, key)
        if self.features:
            of_text = _canonical(documents, _column(documents, text), text, of_key)
        else:
            of_text = _text(documents, text).cast("string")
        of_content = _needed(of_text, text, of_key).cast("binary")
        if self.features:
            # A document without features equals no other one. Its canonical bytes are 0, and 2 begins no others.
            of_row = F.concat(F.lit(bytearray(b"\2")), of_key.cast("binary"))
            of_content = F.when(of_content == F.lit(bytearray(b"\0")), of_row).otherwise(of_content)
        value = F.lit("")
        if inside is not None:
            value = _needed(_column(documents, inside).cast("string"), inside, of_key)
        rows = documents.select(
            _needed(of_key, key).alias("key"),
            _number(documents, keep, of_key).alias("number"),
            value.alias("inside"),
            F.sha2(of_content, 256).alias("digest"),
            of_text.alias("text"),
        )
        members = self.hold(rows.select("key", "number", "inside", "digest"))
        repeated = members.groupBy("key").count().where("count > 1").select("key").limit(1).collect()
        if repeated:
            raise InvalidError(f"column {key}: the key {repeated[0].key!r} occurs twice; give each document its own", field=key)
        # The first of several equal texts represents all of them.
        first, copies = F.min(F.struct("number", "key")).alias("first"), F.count("key").alias("copies")
        groups = members.groupBy("inside", "digest").agg(first, copies)
        groups = self.hold(groups.select("inside", "digest", "first.*", "copies"))
        firsts = groups.select(F.col("key").alias("id"), "number", "inside", "copies")
        texts = firsts.join(rows.select(F.col("key").alias("id"), "text"), "id")
        schema = f"id string, number {dict(firsts.dtypes)['number']}, inside string, size int, set binary"
        left_out = None
        if self.spans is not None:
            left_out = self.session.sparkContext.broadcast(self.spans.list_of(texts, members.count(), self.hold))
        run = _Sets(self.cut_by, left_out, _longest(keep), _version())
        sets = texts.mapInArrow(run, schema)
        if self.by == "containment":
            # Larger documents come first; `keep` decides between documents of the same size.
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
        """Returns the pairs of near sets; `better` is the one that is considered first."""
        number = dict(sets.dtypes)["number"]
        # Any order of shingles finds all pairs. Rarest first is fast; frequencies are estimated from a sample of the
        # sets.
        some = sets.where(F.pmod(F.xxhash64("id"), F.lit(SAMPLED)) == 0).select("set")
        counts = some.mapInArrow(_Elements(), "shingle bigint").groupBy("shingle").count()
        common = counts.where(f"count >= {COMMON}").orderBy(F.desc("count"), "shingle").limit(COMMON_MAX).collect()
        common = b"".join((row.shingle % 2**64).to_bytes(8, "little") for row in reversed(common))
        schema = f"id string, number {number}, inside string, size int, shingle bigint"

        def prefixes(of_kept):
            run = _Prefixes(self.by, self.threshold, of_kept, common, _version())
            return self.hold(sets.mapInArrow(run, schema))

        # For containment, a kept set must be found by each of its shingles.
        found_by = {"worse": prefixes(False)}
        found_by["better"] = prefixes(True) if self.by == "containment" else found_by["worse"]
        better, worse = (
            found_by[side].select(
                "inside", "shingle", *[F.col(name).alias(f"{side}_{name}") for name in ("id", "number", "size")]
            )
            for side in ("better", "worse")
        )
        sizes = F.lit(True)  # for containment, the order ensures this
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
        """Returns the ids of the sets that are removed."""
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
    """Finds the spans that many documents share, before the documents are compared."""

    def __init__(self, more_than, words, shingling):
        self.more_than, self.words, self.shingling = more_than, words, shingling
        _twindex.span_list(b"", self.shingling, words, more_than, 0)  # refuses numbers out of range before a worker does

    def list_of(self, texts, documents, hold):
        """Returns the encoded list of spans. `texts` has each distinct text with its number of copies."""
        call = (self.shingling, self.words, _version())
        texts = texts.select("id", "copies", "text")
        # If many documents share a run of words, at least as many select its fingerprint.
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
    """Returns the features of a column as bytes that are equal for equal sets and vectors."""
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
    """Returns the column; a null ends the job. The error names the value of `key` in the row."""
    return _refused(column, column.isNull(), f"column {name}: expected a value in each row, found null", key)


def _refused(column, wrong, why, key=None):
    """Returns the column; a row for which `wrong` is true ends the job with the error `why`."""
    of_key = F.lit("") if key is None else F.concat(F.lit(" in the row of the key "), F.coalesce(key.cast("string"), F.lit("null")))
    message = F.concat(F.lit(why), of_key, F.lit("; fill it in, or leave the row out"))
    return F.when(wrong, F.raise_error(message)).otherwise(column)


def _number(documents, keep, key):
    """Returns the number by which documents are ordered, the smallest first: of several rules, a struct."""
    numbers = [_number_of(documents, *rule, key) for rule in _rules(keep)]
    return numbers[0] if len(numbers) == 1 else F.struct(*[number.alias(f"n{at}") for at, number in enumerate(numbers)])


def _rules(keep):
    """Returns the rules of `keep`, each with its name, its column and the values that it ranks."""
    texts = [":".join(rule) if isinstance(rule, tuple) else rule for rule in (keep if isinstance(keep, list) else [keep])]
    rules = _twindex.keep_rules(texts)
    if any(name in ("first", "canonical") for name, *_ in rules):
        raise InvalidError(
            'keep: expected "smallest-key", "key-hash", "longest", "https", "shortest-url", "max:COLUMN", "min:COLUMN", '
            f'"earliest:COLUMN" or "rank:COLUMN=A,B", found {keep!r}; rows of Spark have no order, and so no first, and texts '
            "have no page, and so no canonical link"
        )
    return rules


def _longest(keep):
    """Returns the place of "longest" among the rules of `keep`; None if it is not there."""
    names = [name for name, *_ in _rules(keep)]
    return names.index("longest") if "longest" in names else None


def _with_tokens(numbers, at, tokens):
    """Sets the number of "longest", which is rule `at`, in a column that `_number` made."""
    if at is None:
        return numbers
    tokens = pc.negate(tokens.cast(pa.int64()))
    if not pa.types.is_struct(numbers.type):
        return tokens
    fields = numbers.flatten()
    fields[at] = tokens
    return pa.StructArray.from_arrays(fields, names=[field.name for field in numbers.type])


def _number_of(documents, rule, name, values, key):
    """Returns the number that one rule compares."""
    if rule == "smallest-key":
        return F.lit(0)
    if rule == "longest":
        return F.lit(0).cast("bigint")  # set when texts are tokenized
    if rule == "key-hash":
        version = _version()

        def hashes(keys: pd.Series) -> pd.Series:
            _begin(version)
            return pa.array(_twindex.key_hashes(pa.array(keys))).to_pandas()

        return F.pandas_udf(hashes, "bigint")(_needed(key, "of keys"))
    if rule in ("https", "shortest-url"):
        url = F.trim(_needed(key, "of keys"))
        why = f'keep: expected a URL, http://host/..., as key for "{rule}"'
        url = _refused(url, ~url.rlike("^[A-Za-z][A-Za-z0-9+.-]*://[^/]"), why, key)
        return F.when(url.rlike("^(?i)https:"), 0).otherwise(1) if rule == "https" else F.octet_length(url)
    column = _column(documents, name)
    given, column = column, _needed(column, name, key)
    if rule == "rank":
        place = F.lit(len(values))
        for at, value in reversed(list(enumerate(values))):
            place = F.when(column.cast("string") == value, at).otherwise(place)
        return place
    found = _type(documents, given)
    if found in ("timestamp", "timestamp_ntz", "date"):
        column = column.cast("timestamp").cast("double")
    elif found not in (*_INTEGERS, "float", "double") and not found.startswith("decimal"):
        raise InvalidError(f"column {name}: expected numbers or timestamps, found {found}", field=name, found=found)
    if found in ("float", "double"):
        column = _refused(column, F.isnan(given), f"column {name}: expected numbers, found NaN", key)
    elif found in _INTEGERS:
        column = column.cast("decimal(20,0)")  # the smallest integer of a type cannot be negated within the type
    return -column if rule == "max" else column


def forest(
    edges: DataFrame, *, a: str = "a", b: str = "b", memory: int = MEMORY, fan_in: int = FAN_IN
) -> DataFrame:
    """Returns a spanning forest of pairs: root, key. Each component is a star around its smallest key.

    Every partition is reduced to fewer edges than it has keys; then several partitions are merged into one, repeatedly.
    The result does not depend on the partitioning of the pairs.
    """
    if fan_in < 2:
        raise InvalidError(f"fan_in: expected 2 or more, found {fan_in}")
    key_type = dict(edges.dtypes)[a]
    run = _Forest("u64" if key_type == "bigint" else "bytes", key_type, memory)
    schema = f"root {key_type}, key {key_type}"
    # This number is a guess: Spark may use other partitions at run time. So the last step merges all remaining
    # partitions.
    partitions = edges.rdd.getNumPartitions()
    _describe(edges.sparkSession.sparkContext, "twindex: forest")
    found = edges.select(F.col(a).alias("root"), F.col(b).alias("key")).mapInArrow(run, schema)
    while partitions > fan_in:
        partitions = -(-partitions // fan_in)
        found = found.repartition(partitions, "root").mapInArrow(run, schema)
    return found.repartition(1).mapInArrow(run, schema)


def clusters(pairs: DataFrame, *, memory: int = MEMORY, fan_in: int = FAN_IN) -> DataFrame:
    """Returns the clusters of pairs: key, kept, score, with a row for each document in a cluster of two or more.

    kept: the smallest key of the cluster. score: the distance or resemblance of the document and the kept one; null for
    the kept document itself, and for documents that are connected to it only through others.
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
    """Returns the documents to keep: those in no cluster, and the kept document of each cluster."""
    gone = clusters.where("key <> kept").select(F.col("key").alias("_twindex_gone"))
    return documents.join(gone, _key(documents, key) == F.col("_twindex_gone"), "left_anti")


def write_pairs(pairs: DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes pairs to a file as `twindex pairs` does, sorted. All pairs pass through the driver."""
    score = [name for name in pairs.columns if name not in ("a", "b")][0]
    with open(path, "wb") as out:
        for row in pairs.orderBy("a", "b").toLocalIterator(prefetchPartitions=True):
            out.write(b"%s\t%s\t%s\n" % (_field(row.a), _field(row.b), _score(row[score])))


def write_clusters(clusters: DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes clusters to a file as `twindex groups` does, sorted. All clusters pass through the driver."""
    number, last = 0, None
    with open(path, "wb") as out:
        out.write(b"key\tcluster\tkept\tscore\n")
        for row in clusters.orderBy("kept", "key").toLocalIterator(prefetchPartitions=True):
            if row.kept != last:
                number, last = number + 1, row.kept
            score = b"=" if row.key == row.kept else b"-" if row.score is None else _score(row.score)
            out.write(b"%s\t%d\t%s\t%s\n" % (_field(row.key), number, _field(row.kept), score))


def counters(context: SparkContext) -> dict[str, Accumulator[int]]:
    """Returns the session's accumulators by name. Work of tasks that are run again is counted again."""
    known = _COUNTERS.get(context.applicationId)
    if known is None:
        names = ("documents", "segments", "bytes", "questions", "hits", "pairs", "capped_buckets")
        known = {name: context.accumulator(0) for name in names}
        _COUNTERS[context.applicationId] = known
    return known


_COUNTERS = {}
_DESCRIPTION = "spark.job.description"


class _job:
    """A context manager that sets the description of jobs in Spark's UI."""

    def __init__(self, context, description):
        self.context, self.description = context, description

    def __enter__(self):
        self.former = self.context.getLocalProperty(_DESCRIPTION)
        self.context.setJobDescription(self.description)

    def __exit__(self, *_):
        self.context.setJobDescription(self.former)


def _describe(context, description):
    """Sets the description of jobs that run later, when rows are requested, unless the caller has set one."""
    if (context.getLocalProperty(_DESCRIPTION) or "twindex:").startswith("twindex:"):
        context.setJobDescription(description)


def _segments_folder(path):
    return path.rstrip("/") + ".segments"


def _quoted(*names):
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _column(frame, name):
    """Returns the column with this name, or the struct field at this path, "page.text", or pointer, "/page/text"."""
    if name in frame.columns:
        return F.col(_quoted(name))
    if name.startswith("/"):
        path = [part.replace("~1", "/").replace("~0", "~") for part in name[1:].split("/")]
    else:
        path = name.split(".")
    kind = frame.schema
    for part in path:
        fields = {field.name: field.dataType for field in getattr(kind, "fields", ())}
        if part not in fields:
            there = ", ".join(fields) or "no fields"
            raise InvalidError(f"no column {name}; there are {', '.join(frame.columns)}, and at {part}: {there}", field=name)
        kind = fields[part]
    return F.col(_quoted(*path))


def _columns(frame, names):
    """Returns the column with this name, or those of a list of names, which commas separate."""
    if names in frame.columns:
        return [_column(frame, names)]
    return [_column(frame, name) for name in names.split(",")]


def _text(frame, names):
    """Returns the text in a column, or in several, whose values are joined by line feeds: null if all are null."""
    parts = _columns(frame, names)
    if len(parts) == 1:
        return parts[0]
    joined = F.concat_ws("\n", *[F.coalesce(part.cast("string"), F.lit("")) for part in parts])
    return F.when(F.coalesce(*[part.cast("string") for part in parts]).isNotNull(), joined)


def _key(frame, names):
    """Returns the key in a column, or in several, whose values are joined by commas, as the command joins them."""
    parts = _columns(frame, names)
    if len(parts) == 1:
        return parts[0]
    # A null in one of them makes the key null.
    escaped = [F.regexp_replace(part.cast("string"), r"([,\\])", r"\\$1") for part in parts]
    return F.concat(escaped[0], *[one for part in escaped[1:] for one in (F.lit(","), part)])


def _type(frame, column):
    return frame.select(column.alias("one")).dtypes[0][1]


def _code_bits(params):
    """Returns the number of bits of the fingerprints that documents are; None if documents are texts."""
    fields = params.fields
    return int(fields["codes"]) if "codes" in fields and "codes-simhash" not in fields else None


def _content_column(frame, name, key, params):
    """Returns the column "text" of an index with these parameters: of texts, or of fingerprints."""
    of_key, bits = _key(frame, key), _code_bits(params)
    if bits is None:
        return _needed(_text(frame, name), name, of_key).alias("text")
    column = _column(frame, name)
    found = _type(frame, column)
    if found != "binary":
        raise InvalidError(
            f"column {name}: expected binary, as documents are fingerprints of {bits} bits; found {found}",
            field=name,
            expected="binary",
            found=found,
            remedy="unhex reads hexadecimal digits, and unbase64 reads Base64",
        )
    length = F.octet_length(column)
    of_bits = F.lit(f"column {name}: expected fingerprints of {bits} bits, {bits // 8} bytes, found ")
    why = F.concat(of_bits, length.cast("string"), F.lit(" bytes"))
    return _refused(_needed(column, name, of_key), length != bits // 8, why, of_key).alias("text")


def _key_type(params):
    return "bigint" if params.keys == "u64" else "string"


def _key_column(frame, key, params):
    column = _key(frame, key)
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
    """Returns the number of segments. Refuses an index with documents in its log, because workers open segments by
    number."""
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
    """Returns `count` numbers that Spark's hash maps to different partitions, if there are `count` partitions."""
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
    """Returns a key as the command writes it in tables."""
    if isinstance(key, int):
        return b"%d" % key
    text = key.encode() if isinstance(key, str) else key
    return text.replace(b"\\", b"\\\\").replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"\r", b"\\r")


def _score(value):
    return b"%d" % value if isinstance(value, int) else b"%.6f" % value


# --- the workers ---


class _Opened:
    """An index as the driver opened it. Workers check that they open the same index."""

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
    """Runs at the start of every task: checks the version, and sets the number of threads."""
    if version != _version():
        raise Error(
            f"twindex: expected version {version} as on the driver, found {_version()}",
            field="version",
            expected=version,
            found=_version(),
            remedy="ship the driver's wheel with spark.archives",
        )
    threads = os.environ.get("TWINDEX_THREADS", "1")  # Spark runs tasks in parallel
    if not threads.isdecimal() or int(threads) < 1:
        raise InvalidError(
            f"TWINDEX_THREADS: expected 1 or more, found {threads!r}", remedy="set spark.executorEnv.TWINDEX_THREADS"
        )
    try:
        _twindex.set_threads(int(threads))
    except ValueError:
        pass  # an earlier task in this process has set it


def _out(batch, key_type="string"):
    """Converts a batch of twindex for Spark: keys become strings or binary, and numbers become signed."""
    batch = pa.record_batch(batch)
    columns = []
    for name, column in zip(batch.schema.names, batch.columns):
        if pa.types.is_uint64(column.type):
            signed = column.view(pa.int64())
            # A fingerprint may become negative, because only its bits are used. A key must keep its value.
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


class _Codes:
    """Finds the shard of each fingerprint. Computes the fingerprints of texts."""

    def __init__(self, params, shards, version):
        self.params, self.shards, self.version = params, shards, version

    def __call__(self, batches):
        _begin(self.version)
        sketcher = Sketcher(self.params) if _code_bits(self.params) is None else None
        for batch in batches:
            key, code = batch.columns
            if sketcher is not None:
                code = pa.array([self._simhash(sketcher, text) for text in code.to_pylist()], pa.binary())
            shard = pa.array(_twindex.shards_of(key, self.shards, self.params.keys))
            yield pa.RecordBatch.from_arrays([key, shard, code], names=["key", "shard", "code"])

    def _simhash(self, sketcher, text):
        simhash = sketcher.sketch(text).fingerprint
        # Zeros stand for a text without words.
        return (simhash or 0).to_bytes(int(self.params.fields["codes"]) // 8, "big")


class _Build:
    def __init__(self, params, folder, memory, scratch, counted, version):
        self.params, self.folder, self.memory, self.scratch = params, folder, memory, scratch
        self.counted, self.version = counted, version

    def __call__(self, batches):
        _begin(self.version)
        params = self.params
        has_codes, keeps_sets = "codes" in params.fields, "sets" in params.fields
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
                if has_codes:
                    builder.add_codes(batch.column("key"), batch.column("code"))
                    continue
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
    def __init__(self, opened, near, limit, counted, version):
        self.opened, self.near, self.limit = opened, near, limit
        self.counted, self.version = counted, version

    def __call__(self, batches):
        _begin(self.version)
        index = self.opened.open()
        together = QUESTIONS if self.near["containment"] is None else QUESTIONS_BY_CONTAINMENT
        for batch in batches:
            segments = [None]
            if "segment" in batch.schema.names:
                segments = pc.unique(batch.column("segment")).to_pylist()
            for segment in segments:
                asked = batch if segment is None else batch.filter(pc.equal(batch.column("segment"), segment))
                for start in range(0, asked.num_rows, together):
                    some = asked.slice(start, together)
                    found = index.query(some.column(0), some.column(1), limit=self.limit, segment=segment, **self.near)
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
    """Encodes lists of numbers as bytes, 8 for each number, little-endian."""
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
            columns[1] = _with_tokens(columns[1], self.longest, made.column("tokens"))
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
    def __init__(self, min_words, exact, settings, version, within):
        self.options, self.version, self.within = (min_words, exact, settings), version, within

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            made = pa.record_batch(_twindex.passage_fingerprints(batch.column("text"), *self.options, self.within))
            columns = [batch.column("id").take(made.column("row")), made.column("fingerprint").view(pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, names=["id", "fingerprint"])


class _Grams:
    def __init__(self, min_words, exact, settings, version, longest):
        self.options, self.version, self.longest = (min_words, exact, settings), version, longest

    def __call__(self, batches):
        _begin(self.version)
        for batch in batches:
            wanted = _bytes_of(batch.column("wanted"))
            made = pa.record_batch(_twindex.passage_grams(batch.column("text"), wanted, *self.options))
            columns = [batch.column(name).take(made.column("row")) for name in ("id", "number")]
            columns[1] = _with_tokens(columns[1], self.longest, made.column("words"))
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
