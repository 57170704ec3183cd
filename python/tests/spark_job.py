"""One job of scripts/spark-test; see there.

Steps: generate or read documents and compute the expected results with the command; then, for each master, compute the
same with Spark; finally compare. The results of a run are files in a folder named after it, so that runs can be compared
byte by byte.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import twindex

PARAMS = dict(words=5, simhash=3, minhash=(20, 6))
SHARDS = 3
QUESTIONS = 500
NEAR = {"within": 3, "resembling": 0.8}
# Options of the rule: for the command, and for the module. The second set is decided by rounds alone.
RULES = {
    "first": (["--keep", "smallest-key"], {}),
    "hash": (["--keep", "key-hash"], {"keep": "key-hash"}),
    "rounds": (
        ["--threshold", "0.5", "--words", "3", "--keep", "max:score", "--inside", "lang"],
        {"threshold": 0.5, "words": 3, "keep": ("max", "score"), "inside": "lang", "driver_edges": 0},
    ),
    "list": (
        ["--keep", "rank:lang=de", "--keep", "longest", "--keep", "max:score"],
        {"keep": ["rank:lang=de", "longest", ("max", "score")]},
    ),
}
# Options for passages: for the command, and for the module.
PASSAGES = {
    "passages": (["--keep", "smallest-key", "--min-words", "12"], {"min_words": 12}),
    "within": (
        ["--keep", "max:score", "--min-words", "3", "--within", "--exact", "bytes"],
        {"min_words": 3, "keep": ("max", "score"), "within": True, "exact": "bytes"},
    ),
}
# Segments built by Spark have no sets, so both estimate resemblance. FIELDS is the number of columns of an answer that
# are compared: query, key, distance, and the resemblance if it was requested.
ESTIMATED = ["--sets", "none"]
FIELDS = {"within": 3, "resembling": 4}


def covered(spans):
    """Returns a line for each range of bytes that spans cover. Where the source changes, spans of Spark and of the command
    begin elsewhere."""
    merged = []
    for key, start, end in sorted(spans):
        if merged and merged[-1][0] == key and start <= merged[-1][2]:
            merged[-1][2] = max(end, merged[-1][2])
        else:
            merged.append([key, start, end])
    return b"".join(b"%s\t%d\t%d\n" % tuple(one) for one in merged)


def say(text):
    print(text, flush=True)


def digest(path):
    return hashlib.blake2b(pathlib.Path(path).read_bytes(), digest_size=8).hexdigest()


# --- the expected results ---


def make(count):
    """Returns documents. Half of them are near or equal to others."""
    chance = random.Random(20)
    texts = []
    for _ in range(count):
        if texts and chance.random() < 0.5:
            words = chance.choice(texts).split()
            for _ in range(chance.choice([0, 0, 1, 2, 5])):
                words[chance.randrange(len(words))] = f"w{chance.randrange(5000)}"
        else:
            words = [f"w{int(chance.paretovariate(0.6)) % 5000}" for _ in range(chance.randrange(20, 300))]
        texts.append(" ".join(words))
    return ((f"page\t{number:05}" if number % 100 == 0 else f"page-{number:05}", text) for number, text in enumerate(texts))


def take(paths):
    import pyarrow as pa

    for path in paths:
        corpus = pathlib.Path(path).name.split(".")[0]
        with pa.CompressedInputStream(pa.OSFile(path), "zstd") as stream:
            for line in stream.read().splitlines():
                document = json.loads(line)
                yield f"{corpus}/{document['id']}", document["text"]


def written(documents, work):
    with open(work / "documents.jsonl", "w", encoding="utf-8") as out:
        for number, (key, text) in enumerate(documents):
            beside = {"score": number % 7 - 3, "lang": ["en", "de"][number % 2]}
            out.write(json.dumps({"id": key, "text": text, **beside}) + "\n")


def expected(documents, work):
    documents = list(documents)
    written(documents, work)
    with open(work / "questions.jsonl", "w", encoding="utf-8") as out:
        for key, text in documents[:: max(1, len(documents) // QUESTIONS)]:
            out.write(json.dumps({"id": key, "text": text + " and a little more"}) + "\n")
    command, index, right = os.environ["TWINDEX"], work / "one.twx", work / "right"
    right.mkdir()
    began = time.monotonic()
    subprocess.run([command, "build", index, work / "documents.jsonl", *ESTIMATED, "-q"], check=True)
    shards = []
    for shard in range(1, SHARDS + 1):
        alone = work / f"shard-{shard}.twx"
        subprocess.run([command, "build", alone, work / "documents.jsonl", "--shard", f"{shard}/{SHARDS}", *ESTIMATED, "-q"],
                       check=True)
        shards += [digest(path) for path in alone.glob("*.seg")]
    assert len(shards) == SHARDS, f"a segment for each shard, found {len(shards)}"
    (work / "right.segments").write_text("\n".join(sorted(shards)) + "\n")
    for name, value in NEAR.items():
        near = ["--near", f"within:{value}"] if name == "within" else ["--near", str(value), "--verify", "signature"]
        near.append("-q")
        lines = subprocess.run([command, "pairs", index, *near], check=True, capture_output=True).stdout.splitlines(True)
        (right / f"{name}.pairs.tsv").write_bytes(b"".join(first_fields(line, 3) for line in lines))
        subprocess.run([command, "groups", index, "--as", "clusters", *near, "-o", right / f"{name}.clusters.tsv"], check=True)
        asked = [command, "query", index, work / "questions.jsonl", *near]
        lines = subprocess.run(asked, check=True, capture_output=True).stdout.splitlines(True)
        (right / f"{name}.answers.tsv").write_bytes(b"".join(sorted(first_fields(line, FIELDS[name]) for line in lines)))
    for name, (options, _) in RULES.items():
        subprocess.run([command, "dedup", work / "documents.jsonl", "-o", work / name, *options, "-q"], check=True)
        rows = [line.split(b"\t") for line in (work / name / "clusters.tsv").read_bytes().splitlines()[1:]]
        lines = [b"\t".join([key, kept, score]) + b"\n" for key, _, kept, score in rows]
        (right / f"{name}.decided.tsv").write_bytes(b"".join(sorted(lines)))
    for name, (options, _) in PASSAGES.items():
        subprocess.run([command, "passages", work / "documents.jsonl", "-o", work / name, *options, "-q"], check=True)
        rows = [line.split(b"\t")[:3] for line in (work / name / "spans.tsv").read_bytes().splitlines()[1:]]
        assert len(rows) > 100, f"{name}: {len(rows)} spans"
        (right / f"{name}.spans.tsv").write_bytes(covered((key, int(start), int(end)) for key, start, end in rows))
    counting = work / "counting.twx"
    subprocess.run([command, "build", counting, work / "documents.jsonl", "--method", "minhash", "-q"], check=True)
    lines = subprocess.run([command, "groups", counting, "-q"], check=True, capture_output=True).stdout.splitlines(True)
    (right / "groups.tsv").write_bytes(b"".join(sorted(lines[1:])))
    say(f"{len(documents)} documents, {(work / 'documents.jsonl').stat().st_size / 1e6:.1f} MB; "
        f"the command alone: {time.monotonic() - began:.1f} s")
    for path in sorted(right.iterdir()):
        say(f"  {path.name:26} {digest(path)}  {len(path.read_bytes().splitlines())} lines")


def first_fields(line, count):
    return b"\t".join(line.rstrip(b"\n").split(b"\t")[:count]) + b"\n"


# --- the same with Spark ---


class Killer(threading.Thread):
    """Kills processes of the job with kill -9 in the middle of a task: builders that hold the lock of a shard, Python
    workers that run a task, and one executor."""

    def __init__(self, work, folder):
        super().__init__(daemon=True)
        self.work, self.folder = work, folder
        self.killed = {"builders": 0, "workers": 0, "executors": 0}
        self.limits = {"builders": 1, "workers": 0, "executors": 0}
        self.done = threading.Event()

    def run(self):
        while not self.done.is_set():
            for kind, limit in self.limits.items():
                if self.killed[kind] < limit:
                    for process in getattr(self, kind)():
                        try:
                            os.kill(process, signal.SIGKILL)
                        except ProcessLookupError:
                            continue
                        self.killed[kind] += 1
                        break
            time.sleep(0.001)

    def builders(self):
        # Finds the process that holds the lock of its index.
        for lock in self.folder.glob(".twindex-shard-*/index/LOCK"):
            holder = lock_holder(lock)
            if holder and is_ours(holder, "pyspark"):
                yield holder

    def workers(self):
        # Workers are forked by the daemon, whose parent is an executor; a worker that uses CPU time is running a task.
        for process in processes("pyspark"):
            if parent(process) in set(processes("pyspark")) and is_running(process):
                yield process

    def executors(self):
        yield from processes("CoarseGrainedExecutorBackend")


def lock_holder(lock):
    """Returns the process that holds a file's lock, from /proc/locks."""
    try:
        inode = lock.stat().st_ino
        for line in pathlib.Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[5].rsplit(":", 1)[1] == str(inode):
                return int(fields[4])
    except (OSError, IndexError):
        pass
    return None


def processes(name):
    """Returns this user's Spark processes with this name in their command line that descend from this session."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and is_ours(int(entry.name), name):
            yield int(entry.name)


def is_ours(process, name):
    try:
        line = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
        environment = pathlib.Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
    mark = f"SPARK_LOCAL_DIRS={os.environ['SPARK_LOCAL_DIRS']}".encode()
    return process != os.getpid() and name.encode() in line and mark in environment and b"spark_job" not in line


def parent(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
    except OSError:
        return False


def begin(arguments, mine, **more):
    """Creates a session that loads the module from the archive, and checks that it does."""
    from pyspark.sql import SparkSession

    mine.mkdir()
    builder = (
        SparkSession.builder.master(arguments.master)
        .appName(f"twindex {arguments.name}")
        .config("spark.archives", f"{arguments.archive}#twindex_wheel")
        .config("spark.executorEnv.PYTHONPATH", "twindex_wheel")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.task.maxFailures", "8")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(mine / "warehouse"))
    )
    for name, value in more.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    places = session.range(0, 2, 1, 2).mapInArrow(where, "place string").distinct().collect()
    assert all("twindex_wheel" in row.place for row in places), f"not from the archive: {places}"
    return session


def run(arguments, work):
    from twindex import spark as tw

    mine = work / arguments.name
    index = mine / "pages.twx"
    folder = mine / "pages.twx.segments"
    session = begin(arguments, mine)

    read = session.read.schema("id string, text string, score bigint, lang string")
    fielded = read.json(str(work / "documents.jsonl"))
    documents = fielded.select("id", "text")
    questions = session.read.schema("id string, text string").json(str(work / "questions.jsonl"))
    killer = Killer(work, folder) if arguments.kill else None
    if killer:
        killer.start()
    times = {}

    def timed(name, work_of_it):
        began = time.monotonic()
        result = work_of_it()
        times[name] = time.monotonic() - began
        return result

    params = twindex.Params(**PARAMS)
    assert params == twindex.Index.open(work / "one.twx").params, "the command's own parameters"
    made = timed("build", lambda: build(tw, documents, index, params))
    attempts = 1
    while killer and not killer.killed["builders"] and attempts < 5:
        # All shards were built before the killer noticed one in progress.
        shutil.rmtree(index)
        made = build(tw, documents, index, params)
        attempts += 1
    assert made.verify() == []
    segments = sorted(digest(path) for path in index.glob("*.seg"))
    (mine / "segments").write_text("\n".join(segments) + "\n")
    assert not folder.exists(), "nothing is left beside the index"

    if killer:
        killer.limits.update(workers=2, executors=1)
    for name, value in NEAR.items():
        def both():
            pairs = tw.pairs(session, index, **{name: value}, estimated=name == "resembling").cache()
            tw.write_pairs(pairs, mine / f"{name}.pairs.tsv")
            tw.write_clusters(tw.clusters(pairs, fan_in=3), mine / f"{name}.clusters.tsv")
            pairs.unpersist()

        timed(f"pairs and clusters, {name}", both)
        by_segment = name == "within"
        answers = tw.query(questions, index, **{name: value}, by_segment=by_segment)

        def ask():
            lines = []
            for row in answers.collect():
                fields = [tw._field(row["query"]), tw._field(row["key"])]
                fields += [tw._score(row["distance"]), b"%.4f" % (row["resemblance"] or 0.0)]
                lines.append(b"\t".join(fields[: FIELDS[name]]) + b"\n")
            (mine / f"{name}.answers.tsv").write_bytes(b"".join(sorted(lines)))

        timed(f"query, {name}", ask)

    for name, (_, options) in RULES.items():
        def decide():
            decided = tw.dedup(fielded, **options)
            lines = [[tw._field(row.key), tw._field(row.kept), tw._score(row.score)] for row in decided.collect()]
            (mine / f"{name}.decided.tsv").write_bytes(b"".join(sorted(b"\t".join(line) + b"\n" for line in lines)))
            stay = sum(line[0] == line[1] for line in lines)
            assert tw.kept(fielded, decided).count() == stay, "what stays is what was kept"
            decided.unpersist()

        timed(f"dedup, {name}", decide)

    for name, (_, options) in PASSAGES.items():
        def spans():
            found = tw.passages(fielded, **options)
            rows = found.collect()
            assert all(row.words >= options["min_words"] for row in rows)
            assert options.get("within") or all(row.first_key != row.key for row in rows)
            places = ((tw._field(row.key), row.start, row.end) for row in rows)
            (mine / f"{name}.spans.tsv").write_bytes(covered(places))
            found.unpersist()

        timed(f"passages, {name}", spans)

    timed("choices", lambda: choices(session, tw, mine))
    timed("codes", lambda: codes(session, tw, mine))
    def group():
        rows = tw.groups(fielded).collect()
        lines = [b"\t".join([tw._field(row.key), tw._field(row.leader), b"%d" % row.size]) + b"\n" for row in rows]
        (mine / "groups.tsv").write_bytes(b"".join(sorted(lines)))

    timed("groups", group)
    kept = timed("kept", lambda: tw.kept(documents, tw.clusters(tw.pairs(session, index, within=3))).count())
    refuse_others(session, tw, documents, index, mine)
    counted = {name: counter.value for name, counter in tw.counters(session.sparkContext).items()}
    assert counted["documents"] >= len(made) and counted["segments"] >= SHARDS, counted
    if killer:
        killer.done.set()
        killer.join()
        assert all(killer.killed.values()), f"nothing of a kind was killed: {killer.killed}"
        say(f"{arguments.name}: killed by kill -9: {killer.killed}")
    shown = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items())
    say(f"{arguments.name} ({arguments.master.split('://')[0]}): {shown}; {kept} kept; counted {counted}")
    session.stop()


def choices(session, tw, mine):
    """Checks that rule, weights and order give the results of the in-memory functions, that columns are found by their
    paths, that indexes keep sets, and that queries by containment count with them."""
    import pyarrow as pa

    chance = random.Random(7)
    texts = []
    for _ in range(300):
        text = chance.choice(texts).split() if texts and chance.random() < 0.6 else []
        text += [f"w{chance.randrange(12)}" for _ in range(chance.randrange(1, 9))]
        texts.append(" ".join(text[chance.randrange(2) :]))
    keys = [f"k{number:03}" for number in range(len(texts))]
    rows = [((key, 0), (text,)) for key, text in zip(keys, texts)]
    frame = session.createDataFrame(rows, "meta struct<`the id`:string, n:int>, page struct<text:string>")
    table = twindex.IdfTable.of(texts, words=2, min_df=1)
    by_table = {"weights": "idf", "idf": table, "weight_unit": 0.5}
    left_out = {"without_boilerplate": "12:3"}
    assert twindex.dedup(texts, 0.6, words=2, **left_out).boilerplate_spans > 3
    assert twindex.dedup(texts, 0.6, words=2, **left_out).kept != twindex.dedup(texts, 0.6, words=2).kept
    for options, given in [
        (left_out, left_out),
        (left_out | by_table, left_out | by_table),
        (by_table, by_table),
        ({"keep": "longest", "weights": "tf"}, {"keep": "longest", "weights": "tf"}),
        ({"keep": "key-hash", "near": "containment:0.6"}, {"keep": ("key-hash", keys), "near": "containment:0.6"}),
        ({"near": "containment:0.6", "weights": "tf", "driver_edges": 0}, {"near": "containment:0.6", "weights": "tf"}),
        ({"words": "1+2", "stemming": "english"}, {"words": "1+2", "stemming": "english"}),
    ]:
        usual = {"near": 0.6, "words": 2}
        decided = tw.dedup(frame, key="meta.the id", text="page.text", **{**usual, **options})
        found = sorted((row.key, row.kept, row.score) for row in decided.collect())
        right = twindex.dedup(texts, **{**usual, **given})
        wanted = [(keys[at], keys[right.representatives[at]], right.scores[at]) for at in range(len(keys))]
        assert found == wanted and 20 < len(right.kept) < 280, f"{options}: {len(right.kept)} kept"
        assert tw.kept(frame, decided, key="meta.the id").count() == len(right.kept)
    # Pointers and lists; a value of a list may be null, but not all.
    given = [(row[0], row[1], None if number % 3 == 0 else f"title {number % 5}") for number, row in enumerate(rows)]
    schema = "meta struct<`the id`:string, n:int>, page struct<text:string>, title string"
    titled = session.createDataFrame(given, schema)
    decided = tw.dedup(titled, 0.6, words=2, key="/meta/the id,meta.n", text="title,/page/text")
    found = sorted((row.key, row.kept, row.score) for row in decided.collect())
    right = twindex.dedup([f"{title or ''}\n{text}" for (_, (text,), title) in given], 0.6, words=2)
    wanted = [(f"{keys[at]},0", f"{keys[right.representatives[at]]},0", right.scores[at]) for at in range(len(keys))]
    assert found == wanted and 20 < len(right.kept) < 280, len(right.kept)
    assert tw.kept(titled, decided, key="/meta/the id,meta.n").count() == len(right.kept)
    vectors = []
    for _ in range(200):
        vector = dict(chance.choice(vectors)) if vectors and chance.random() < 0.6 else {}
        vectors.append(vector | {f"f{chance.randrange(30)}": chance.randrange(8, 40) / 8 for _ in range(chance.randrange(1, 4))})
    vectors += [{}, {}]  # near nothing
    of_vectors = twindex.IdfTable.of(vectors, tokens="features", min_df=1)
    named = list(zip(keys, vectors, map(list, vectors), map(json.dumps, vectors)))
    schema = "id string, weights map<string,double>, names array<string>, json string"
    features = session.createDataFrame(named, schema)
    for column, options in [
        ("weights", {"weights": "tf"}),
        ("json", {"weights": "tf", "weight_unit": 0.125}),
        ("weights", {"weights": "idf", "idf": of_vectors, "weight_unit": 0.125}),
        ("names", {}),
    ]:
        decided = tw.dedup(features, 0.6, text=column, features=True, **options)
        found = sorted((row.key, row.kept, row.score) for row in decided.collect())
        given = list(map(list, vectors)) if column == "names" else vectors
        right = twindex.dedup(given, 0.6, tokens="features", **options)
        wanted = [(keys[at], keys[right.representatives[at]], right.scores[at]) for at in range(len(vectors))]
        assert found == sorted(wanted) and 20 < len(right.kept) < 190, f"{column}: {len(right.kept)} kept"
    for name, weights in [
        ("sets", {}),
        ("counted", {"minhash_weights": "frequencies"}),
        ("weighted", {"minhash_weights": "idf", "idf": table, "weight_unit": 0.5}),
    ]:
        params = twindex.Params(words=2, sets=True, **weights)
        made = tw.build(frame, mine / f"{name}.twx", params, key="meta.the id", text="page.text", shards=2)
        with twindex.Index.create(mine / f"{name}-alone.twx", params) as alone:
            alone.put_many(keys, texts)
        found = sorted(tuple(row) for row in tw.pairs(session, mine / f"{name}.twx", resembling=0.8).collect())
        assert made.verify() == [] and found == alone.pairs(resembling=0.8) and len(found) > 20, name
    asked = session.createDataFrame(list(zip(keys[:90], texts[90:180])), "id string, text string")
    right = pa.record_batch(alone.query(keys[:90], texts[90:180], containment=0.8))
    right_rows = [
        tuple(value.decode() if isinstance(value, bytes) else value for value in row.values()) for row in right.to_pylist()
    ]
    assert len(right_rows) > 50
    for by_segment in (False, True):
        answers = tw.query(asked, mine / "weighted.twx", containment=0.8, by_segment=by_segment)
        assert answers.columns == right.schema.names
        found = sorted((tuple(row) for row in answers.collect()), key=lambda row: row[:2])
        assert found == sorted(right_rows, key=lambda row: row[:2]), by_segment
    found = {}
    for estimated in (False, True):
        near = {"resembling": 0.8, "estimated": estimated}
        right = pa.record_batch(alone.query(keys[:90], texts[90:180], **near)).to_pylist()
        wanted = sorted((row["query"].decode(), row["key"].decode(), row["resemblance"]) for row in right)
        answers = tw.query(asked, mine / "weighted.twx", **near).collect()
        found[estimated] = sorted((row["query"], row["key"], row["resemblance"]) for row in answers)
        assert found[estimated] == wanted and len(wanted) > 50, estimated
    assert found[False] != found[True]
    try:
        tw.query(asked, mine / "weighted.twx", containment=0.8, resembling=0.8)
        raise AssertionError("options that do not go together were accepted")
    except twindex.InvalidError as error:
        assert "resembling does not go with containment" in str(error)


def codes(session, tw, mine):
    """Compares indexes of fingerprints in one and in three shards with a comparison of all, and with one that Python made."""
    import pyarrow as pa
    import pyarrow.parquet
    from pyspark.sql import functions

    chance = random.Random(256)
    made = []
    for _ in range(240):
        code = int.from_bytes(chance.choice(made), "big") if made and chance.random() < 0.6 else chance.getrandbits(256)
        for _ in range(chance.choice([0, 1, 12, 30])):
            code ^= 1 << chance.randrange(256)
        made.append(code.to_bytes(32, "big"))

    def near(one, within, limit=None):
        distances = ((int.from_bytes(one, "big") ^ int.from_bytes(code, "big")).bit_count() for code in made)
        return sorted((far, at) for at, far in enumerate(distances) if far <= within)[:limit]

    def answered(answers):
        return sorted((row.query, row.distance, row.key, row.resemblance) for row in answers.collect())

    params = twindex.Params(codes=256, near_within=31, keys="u64")
    table = pa.table({"id": range(240), "image": [{"pdq": code} for code in made]})
    pa.parquet.write_table(table, mine / "codes.parquet")
    frame = session.read.parquet(str(mine / "codes.parquet"))
    with twindex.Index.create(mine / "codes-alone.twx", params) as alone:
        alone.put_many(range(240), made)
    alone.compact()
    right = {}
    for within in (31, 60):
        right[within] = sorted((at, key, far) for at, code in enumerate(made) for far, key in near(code, within) if at < key)
    assert alone.pairs() == right[31] and 50 < len(right[31]) < len(right[60])
    leader = list(range(240))
    for a, b, _ in right[31]:
        old, new = leader[b], leader[a]
        leader = [min(old, new) if one in (old, new) else one for one in leader]
    clusters = [(at, one) for at, one in enumerate(leader) if leader.count(one) > 1]
    for count in (1, 3):
        path = mine / f"codes-{count}.twx"
        index = tw.build(frame.repartition(4), path, params, text="image.pdq", shards=count)
        assert len(index.segments) == count and index.verify() == []
        assert [index.get(at)["fingerprint"] for at in range(240)] == made
        for within in (None, 60):
            found = tw.pairs(session, path, within=within).cache()
            assert sorted(tuple(row) for row in found.collect()) == right[within or 31], (count, within)
            if within is None:
                assert sorted((row.key, row.kept) for row in tw.clusters(found).collect()) == clusters
            found.unpersist()
        asked = frame.where("id % 4 = 0")
        for within, limit, by_segment in ((None, 3, False), (60, None, True)):
            answers = tw.query(asked, path, text="/image/pdq", within=within, limit=limit, by_segment=by_segment)
            wanted = [(at, far, key, None) for at in range(0, 240, 4) for far, key in near(made[at], within or 31, limit)]
            assert answered(answers) == wanted, (count, within, by_segment)
        index.compact()
        assert [digest(file) for file in path.glob("*.seg")] == [digest(file) for file in (mine / "codes-alone.twx").glob("*.seg")]
    asked = {"path": mine / "codes-3.twx", "text": "image.pdq"}
    refused("near by distance alone", lambda: tw.query(frame, **asked, resembling=0.8))
    refused("at most 256 bits apart", lambda: tw.query(frame, **asked, within=257).collect())
    refused("at most 256 bits apart", lambda: tw.pairs(session, asked["path"], within=257).collect())
    for column, why in [
        (functions.hex("image.pdq"), "column code: expected binary, as documents are fingerprints of 256 bits; found string"),
        (
            functions.expr("if(id = 7, null, image.pdq)"),
            "column code: expected a value in each row, found null in the row of the key 7",
        ),
        (
            functions.expr("if(id = 7, substring(image.pdq, 1, 16), image.pdq)"),
            "column code: expected fingerprints of 256 bits, 32 bytes, found 16 bytes in the row of the key 7",
        ),
    ]:
        wrong = frame.select("id", column.alias("code"))
        refused(why, lambda: tw.build(wrong, mine / "wrong.twx", params, text="code"))
        tw.gc(mine / "wrong.twx")
    refused(why, lambda: tw.query(wrong, asked["path"], text="code").collect())
    refused("and no other sketches; give the column to `build`", lambda: tw.sketch(frame, params, text="image.pdq"))
    twice = frame.selectExpr("0 id", "image")
    refused("`0` is the key of two of them", lambda: tw.build(twice, mine / "wrong.twx", params, text="image.pdq"))
    # Simhashes of texts, some without words.
    params = twindex.Params(words=1, simhash_bits=128, near_within=45, keys="u64")
    texts = [" ".join(f"w{chance.randrange(30)}" for _ in range(12)) if at % 9 else "" for at in range(60)]
    pa.parquet.write_table(pa.table({"id": range(60), "text": texts}), mine / "simhashes.parquet")
    frame, path, other = session.read.parquet(str(mine / "simhashes.parquet")), mine / "simhashes.twx", mine / "simhashes-alone.twx"
    with twindex.Index.create(other, params) as alone:
        alone.put_many(range(60), texts)
    alone.compact()
    index = tw.build(frame, path, params, shards=2)
    assert len(index.segments) == 2 and index.pairs() == alone.pairs() and len(alone.pairs()) > 20
    wanted = [(at, hit.distance, hit.key, None) for at, hits in enumerate(alone.near_many(texts)) for hit in hits]
    assert answered(tw.query(frame, path)) == sorted(wanted)
    index.compact()
    assert [digest(file) for file in path.glob("*.seg")] == [digest(file) for file in other.glob("*.seg")]
    refused("keep fingerprints of 128 bits, and no other sketches", lambda: tw.sketch(frame, params))


def shards(arguments, work):
    """Checks that an index in eight shards takes at most three times the time of one shard, including its pairs."""
    from twindex import spark as tw

    mine = work / arguments.name
    session = begin(arguments, mine)
    documents = session.read.schema("id string, text string").json(str(work / "documents.jsonl")).repartition(8).cache()
    rows = documents.count()

    def took(count):
        index = mine / f"{count}-{time.monotonic_ns()}.twx"
        began = time.monotonic()
        tw.build(documents, index, twindex.Params(**PARAMS), shards=count)
        built = time.monotonic()
        found = tw.pairs(session, index, within=3).count()
        return time.monotonic() - began, built - began, found

    took(1)  # starts the workers
    times = {count: min(took(count) for _ in range(3)) for count in (1, 8)}
    ratio = times[8][0] / times[1][0]
    for count, (both, build, found) in times.items():
        say(f"{rows} rows, {count} shards: {both:.1f} s, build alone {build:.1f} s; {found} pairs")
    say(f"{ratio:.2f} times the time of one shard")
    assert ratio <= 3 and times[8][2] == times[1][2]
    session.stop()


def scratch(arguments, work):
    """Checks that segments built in scratch folders on another file system equal all others."""
    from twindex import spark as tw

    mine = work / arguments.name
    session = begin(arguments, mine)
    documents = session.read.schema("id string, text string").json(str(work / "documents.jsonl")).repartition(8)
    index = mine / "pages.twx"
    # The memory file system differs from the disk's, so segments are copied and not renamed.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        other = os.stat(folder).st_dev != os.stat(mine).st_dev
        made = tw.build(documents, index, twindex.Params(**PARAMS), shards=SHARDS, scratch=folder)
        assert os.listdir(folder) == [], "scratch folders go with their tasks"
    assert made.verify() == []
    segments = sorted(digest(path) for path in index.glob("*.seg"))
    assert segments == (work / "right.segments").read_text().split(), "other segments"
    assert not index.with_name("pages.twx.segments").exists(), "left beside"
    say(f"{arguments.name}: segments by scratch folders{' on another file system' if other else ''} are the command's")
    run_documented(mine, documents)
    read_by_the_command(mine, documents.limit(200).cache())
    session.stop()


def run_documented(mine, documents):
    """Runs the first example of docs/cluster.md, with a folder of its own for `/shared`."""
    shared = mine / "shared"
    documents.limit(200).withColumnRenamed("id", "url").write.json(str(shared / "pages.jsonl"))
    page = (pathlib.Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1].replace("/shared", str(shared))
    done = {}
    exec(program, done)
    assert done["index"].verify() == [] and len(done["index"]) == 200
    assert done["answers"].select("query").distinct().count() == 10, "each page is near itself"
    kept = done["session"].read.parquet(str(shared / "kept")).count()
    assert 0 < kept <= 200, kept


def read_by_the_command(mine, documents):
    """Compares the documents of folders that Spark wrote with those that Spark reads from them."""
    from pyspark.sql import functions

    rows = documents.withColumn("lang", functions.expr("if(length(text) % 2 = 0, 'en', 'd/e')"))
    reader = rows.sparkSession.read
    for name, write, read, inside in (
        ("json", lambda to: rows.write.json(to, compression="gzip"), reader.json, []),
        ("csv", lambda to: rows.write.csv(to, header=True, escape='"'), lambda at: reader.csv(at, header=True), []),
        ("parquet", rows.write.partitionBy("lang").parquet, reader.parquet, ["lang"]),
    ):
        folder = mine / f"written-{name}"
        write(str(folder))
        assert (folder / "_SUCCESS").exists()
        line = [os.environ["TWINDEX"], "dedup", folder, "-o", mine / f"{name}-out", "--near", "equal", "--json"]
        line += [part for field in inside for part in ("--inside", field)]
        said = subprocess.run(list(map(str, line)), check=True, capture_output=True, text=True).stdout
        counts = json.loads(said.splitlines()[-1])
        found = read(str(folder))
        assert counts["documents"] == found.count() == 200, name
        assert counts["kept"] == found.dropDuplicates(["text", *inside]).count(), name
    say(f"{mine.name}: folders that Spark wrote are read as Spark reads them")


class Slow:
    """A task whose first attempt at partition 0 stops after its last row until a marker file exists, long enough for
    Spark to start a second copy. The results of the copy can be held back until another marker exists."""

    def __init__(self, work_of_it, marks, until, hold=None):
        self.work_of_it, self.marks, self.until, self.hold = work_of_it, marks, until, hold

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = context.attemptNumber()
        if context.partitionId() != 0:
            yield from self.work_of_it(batches)
            return
        self.mark(f"{attempt}-began")
        for made in self.work_of_it(self.slowly(batches) if attempt == 0 else batches):
            self.mark(f"{attempt}-made")
            if attempt > 0 and self.hold:
                self.wait(self.hold)
            yield made
        self.mark(f"{attempt}-ended")

    def slowly(self, batches):
        yield from batches
        self.wait(self.until)

    def mark(self, name):
        (self.marks / name).touch()

    def wait(self, name):
        began = time.monotonic()
        while not (self.marks / name).exists():
            if time.monotonic() - began > 300:
                raise AssertionError(f"{self.marks.name}: {name} did not come within 300 seconds")
            time.sleep(0.01)


def speculate(arguments, work):
    """Tests speculative execution: two copies of a task run at the same time, both to their end, or the first one
    continues long after its job is done. Segments, pairs and clusters must be the same."""
    from twindex import spark as tw

    mine = work / arguments.name
    # A failed task ends its job here, so a second attempt can only be a speculative copy of the first.
    session = begin(arguments, mine, **{
        "spark.task.maxFailures": "1",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.efficiency.enabled": "false",
    })
    documents = session.read.schema("id string, text string").json(str(work / "documents.jsonl")).repartition(8)
    right = (work / "right.segments").read_text().split()
    plain = {"_Build": tw._Build, "_Pairs": tw._Pairs}

    def slow(what, name, *waits):
        """Makes the tasks of a kind slow. Returns the folder with their results."""
        marks = mine / name
        marks.mkdir()
        setattr(tw, what, lambda *given: Slow(plain[what](*given), marks, *waits))
        return marks

    def came_to(marks):
        found = sorted(path.name for path in marks.iterdir())
        assert {"0-began", "1-began"} <= set(found), f"{marks.name}: no second copy of the task began: {found}"
        return found

    def free_of_others(index):
        # A copy that is no longer needed may continue for a while.
        folder, began = index.with_name(f"{index.name}.segments"), time.monotonic()
        while folder.exists() and time.monotonic() - began < 60:
            tw.gc(index)
            time.sleep(0.1)
        assert not folder.exists(), f"left beside {index.name}: {sorted(path.name for path in folder.iterdir())}"
        assert twindex.Index.open(index).verify() == []
        assert sorted(digest(path) for path in index.glob("*.seg")) == right, "other segments"

    # Two builders of a shard run at the same time, and one finishes after the other; both write the segment under the
    # same name.
    marks, index = slow("_Build", "both", "1-made", "0-made"), mine / "pages.twx"
    tw.build(documents, index, twindex.Params(**PARAMS), shards=SHARDS)
    both = came_to(marks)
    assert {"0-made", "1-made"} <= set(both), f"both copies made the segment: {both}"
    free_of_others(index)

    # A builder that is overtaken continues after the index is committed and all files next to it are removed.
    marks, late = slow("_Build", "late", "over"), mine / "late.twx"
    tw.build(documents, late, twindex.Params(**PARAMS), shards=SHARDS)
    assert "0-made" not in came_to(marks), "the first copy was not overtaken"
    (marks / "over").touch()
    free_of_others(late)
    began = time.monotonic()
    while "0-made" not in came_to(marks) and time.monotonic() - began < 5:
        time.sleep(0.1)
    went_on = "0-made" in came_to(marks)
    free_of_others(late)
    tw._Build = plain["_Build"]

    # A join has already sent its results when its copy starts.
    marks = slow("_Pairs", "pairs", "1-began")
    pairs = tw.pairs(session, index, within=NEAR["within"]).cache()
    tw.write_pairs(pairs, mine / "within.pairs.tsv")
    tw.write_clusters(tw.clusters(pairs, fan_in=3), mine / "within.clusters.tsv")
    joined = came_to(marks)
    assert "0-made" in joined, f"the first copy had found pairs: {joined}"
    for name in ("within.pairs.tsv", "within.clusters.tsv"):
        assert digest(mine / name) == digest(work / "right" / name), f"other than the command's: {name}"
    tw._Pairs = plain["_Pairs"]

    # The number of copies according to Spark.
    store = session.sparkContext._jsc.sc().statusStore()
    summaries = [store.speculationSummary(stage, 0) for stage in range(200)]
    copies = sum(summary.get().numTasks() for summary in summaries if summary.isDefined())
    assert copies >= 3, f"Spark counts {copies} speculative tasks"
    say(f"{arguments.name}: {copies} speculative copies of tasks, by Spark's count; of a shard, both made its segment; one "
        f"that was overtaken {'made its own after the commit' if went_on else 'was ended by Spark'}; segments, pairs and "
        "clusters are the command's")
    session.stop()


def build(tw, documents, index, params):
    # Files of an earlier job are no obstacle and are removed.
    index.with_name("pages.twx.segments").mkdir()
    (index.with_name("pages.twx.segments") / ("0" * 32 + ".seg")).write_bytes(b"of a job that failed")
    return tw.build(documents.repartition(8), index, params, shards=SHARDS)


def refuse_others(session, tw, documents, index, mine):
    """Checks that a worker that sees another index, and a repeated key, end the job with an error that names them."""
    opened = tw._Opened(str(index))
    opened.params = twindex.Params(**{**PARAMS, "words": 4}).text
    asked = tw._Query(opened, {"within": 3, "containment": None}, None, {}, twindex.__version__)
    try:
        documents.limit(1).mapInArrow(asked, "query string, key string, distance int, resemblance double").collect()
    except Exception as error:
        assert "parameters differ: width is 4" in str(error), error
    else:
        raise AssertionError("other parameters were taken")
    opened = tw._Opened(str(index))
    opened.uuid = "0" * 32
    asked = tw._Query(opened, {"within": 3, "containment": None}, None, {}, twindex.__version__)
    refused("uuid: expected", lambda: documents.limit(1).mapInArrow(
        asked, "query string, key string, distance int, resemblance double").collect())
    # Integer keys: Spark would cast other types, and treat the largest keys as negative.
    numbers = twindex.Params(**PARAMS, keys="u64")
    for kind in ("double", "decimal(20,0)", "string"):
        some = session.createDataFrame([(1, "a text")], "id int, text string").selectExpr(f"cast(id as {kind}) id", "text")
        refused("column id: expected tinyint, smallint, int or bigint", lambda: tw.build(some, mine / "kind.twx", numbers))
    with twindex.Index.create(mine / "large.twx", numbers) as large:
        large.put_many([1, 2**63], ["a rose is a rose is a rose"] * 2)
    refused("2 documents are in the index's log", lambda: tw.pairs(session, mine / "large.twx", within=3))
    large.compact()
    large.close()
    refused(f"b: expected keys up to 2^63 - 1, found {2**63}", lambda: tw.pairs(session, mine / "large.twx", within=3).collect())
    # Sorts the rows, because a limit without an order takes arbitrary rows.
    first = documents.orderBy("id").limit(25)
    twice = first.unionByName(first.orderBy("id").limit(1))
    try:
        tw.build(twice, mine / "twice.twx", twindex.Params(**PARAMS), shards=2)
    except Exception as error:
        assert "is the key of two of them" in str(error), error
    else:
        raise AssertionError("a key that comes twice was taken")
    refused("the key", lambda: tw.dedup(twice))
    nothing = session.createDataFrame([("a", None)], "id string, text string")
    why = "column text: expected a value in each row, found null in the row of the key a; fill it in"
    refused(why, lambda: tw.dedup(nothing))
    refused(why, lambda: tw.build(nothing, mine / "nothing.twx", twindex.Params(**PARAMS)))
    refused("no column page.body; there are id, text", lambda: tw.dedup(nothing, text="page.body"))
    refused('near: expected 0.05 to 1, containment:J', lambda: tw.dedup(first, near="far"))
    refused("near: within:3 is not taken here", lambda: tw.dedup(first, near="within:3"))
    refused("memory: not a setting here", lambda: tw.dedup(first, memory="1G"))
    refused("words: not a setting here", lambda: tw.passages(first, words=2))
    refused('there is no setting "wordz"; did you mean "words"', lambda: tw.dedup(first, wordz=2))
    refused('weights: expected one of distinct, tf, idf, found "bm25"', lambda: tw.dedup(first, weights="bm25"))
    refused("weights idf needs a table", lambda: tw.dedup(first, weights="idf"))
    refused("without_boilerplate: expected a number of documents, 1 or more", lambda: tw.dedup(first, without_boilerplate=0))
    refused("features are none", lambda: tw.dedup(first, features=True, without_boilerplate=3))
    refused("a value that is no JSON", lambda: tw.dedup(first, features=True).collect())
    not_features = session.createDataFrame([("a", 7)], "id string, text int")
    refused("expected an array of names, a map of weights", lambda: tw.dedup(not_features, features=True))
    refused("rows of Spark have no order, and so no first", lambda: tw.dedup(first, keep="first"))
    not_numbers = session.createDataFrame([("a", "b", float("nan"))], "id string, text string, n double")
    refused("column n: expected numbers, found NaN", lambda: tw.dedup(not_numbers, keep=("max", "n")))
    refused("column text: expected numbers or timestamps, found string", lambda: tw.dedup(first, keep=("max", "text")))
    refused("or equal, found \"0.01\"", lambda: tw.dedup(first, 0.01))
    assert not (mine / "twice.twx").exists()
    tw.gc(mine / "twice.twx")
    assert not (mine / "twice.twx.segments").exists(), "gc removes what a failed job left"


def refused(why, work_of_it):
    try:
        work_of_it()
    except Exception as error:
        assert why in str(error), f"expected {why!r}, found: {error}"
    else:
        raise AssertionError(f"taken, where a refusal was expected: {why}")


def where(batches):
    import pyarrow as pa

    import twindex

    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([twindex.__file__])], names=["place"])


# --- comparison ---


def compare(work):
    right = work / "right"
    runs = sorted(path.parent for path in work.glob("*/segments"))
    wrong = 0
    if not runs:
        say("WRONG: no run to compare")
        return False
    segments = {run.name: digest(run / "segments") for run in runs}
    # Segments must equal those of the command's `build --shard`, for any worker and any number of attempts.
    of_the_command = digest(work / "right.segments")
    for run in runs:
        same = segments[run.name] == of_the_command
        wrong += not same
        say(f"{'same ' if same else 'WRONG'} {run.name:14} {'segments':26} {segments[run.name]}")
        for path in sorted(right.iterdir()):
            same = digest(path) == digest(run / path.name)
            wrong += not same
            say(f"{'same ' if same else 'WRONG'} {run.name:14} {path.name:26} {digest(run / path.name)}")
    # One process with all documents must give the same segment as all shards joined.
    joined = twindex.Index.open(runs[0] / "pages.twx")
    joined.compact()
    joined.close()
    (one,), (all_of_them,) = ([digest(path) for path in folder.glob("*.seg")] for folder in (work / "one.twx", joined_path(runs)))
    wrong += one != all_of_them
    say(f"segments of {len(runs)} runs, compacted, are the command's own: {one == all_of_them}")
    total = len(runs) * (len(list(right.iterdir())) + 1) + 1
    say(f"{total - wrong} passed, {wrong} failed")
    return wrong == 0


def joined_path(runs):
    return runs[0] / "pages.twx"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--archive", type=pathlib.Path)
    parser.add_argument("--make", type=int)
    parser.add_argument("--take", nargs="+")
    parser.add_argument("--master")
    parser.add_argument("--name")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--scratch", action="store_true")
    parser.add_argument("--shards", action="store_true")
    parser.add_argument("--speculate", action="store_true")
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    if arguments.make and arguments.shards:
        written(make(arguments.make), arguments.work)
    elif arguments.make or arguments.take:
        expected(make(arguments.make) if arguments.make else take(arguments.take), arguments.work)
    elif arguments.compare:
        sys.exit(not compare(arguments.work))
    elif arguments.scratch:
        scratch(arguments, arguments.work)
    elif arguments.shards:
        shards(arguments, arguments.work)
    elif arguments.speculate:
        speculate(arguments, arguments.work)
    else:
        run(arguments, arguments.work)


if __name__ == "__main__":
    main()
