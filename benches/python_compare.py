"""The measurements of scripts/python compare; see there."""

import json
import os
import statistics
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import twindex

# The other tools loop over shingles in Python, so they get only a part of the documents.
PEERS_BYTES = 2_000_000
MINIMA = 120


def read(path):
    with pa.CompressedInputStream(pa.OSFile(path), "zstd") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


def cpu(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def command(*line):
    ran = subprocess.run([os.environ["TWINDEX"], *line, "--threads", "1", "--json"], check=True, capture_output=True)
    return json.loads(ran.stdout.splitlines()[-1])["cpu_seconds"]


def shingles(text):
    words = text.lower().split()
    return [" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))]


def main():
    source, work, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    documents = read(source)
    keys, texts = [one["id"] for one in documents], [one["text"] for one in documents]
    total = sum(len(text.encode()) for text in texts)
    file = os.path.join(work, "documents.parquet")
    pq.write_table(pa.table({"id": keys, "text": texts}), file, row_group_size=1000)
    twindex.set_threads(1)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def sketch():
        sketcher = twindex.Sketcher(twindex.Params())
        rows = 0
        for batch in pq.ParquetFile(file).iter_batches(1000, use_threads=False):
            rows += pa.record_batch(sketcher.rows(batch.column("id"), batch.column("text"))).num_rows
        return rows

    def build():
        path = os.path.join(work, f"python-{time.monotonic_ns()}.twx")
        with twindex.Index.create(path) as index:
            for batch in pq.ParquetFile(file).iter_batches(1000, use_threads=False):
                index.put_many(batch.column("id"), batch.column("text"))
        return path

    def opened():
        # For fewer documents than become a segment, this reads the log again.
        return len(twindex.Index.open(build()))

    def dedup():
        table = pq.read_table(file, columns=["text"], use_threads=False)
        return len(twindex.dedup(table["text"], 0.8).kept)

    def out(name):
        return os.path.join(work, f"{name}-{time.monotonic_ns()}")

    pairs = {
        "sketch": (sketch, lambda: command("build", out("sketches"), file, "--as", "sketches")),
        "build": (build, lambda: command("build", out("index"), file)),
        "and open": (opened, lambda: command("build", out("index"), file)),
        "dedup": (dedup, lambda: command("dedup", file, "-o", out("dedup"))),
    }
    print(f"{len(texts)} documents, {total / 1e6:.1f} MB of text, {rounds} rounds in turn, medians, MB a CPU second")
    for name, (module, tool) in pairs.items():
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(cpu(module)[0])
            theirs.append(tool())
        mine, theirs = statistics.median(mine), statistics.median(theirs)
        print(f"{name:8} module {total / mine / 1e6:7.1f}  command {total / theirs / 1e6:7.1f}  ratio {theirs / mine:.2f}")

    some, size = [], 0
    for text in texts:
        if size > PEERS_BYTES:
            break
        some.append(text)
        size += len(text.encode())
    peers(some, size, rounds)


def peers(texts, size, rounds):
    """Computes 120 minima of 5-word shingles. For the other tools, Python makes the shingles, as in their
    documentation."""
    import datasketch
    import rensa

    minhash = twindex.MinHash(20, 6)
    column = pa.array(texts)

    def with_rensa():
        made = []
        for text in texts:
            one = rensa.RMinHash(num_perm=MINIMA, seed=42)
            one.update(shingles(text))
            made.append(one.digest())
        return made

    def with_datasketch():
        made = []
        for text in texts:
            one = datasketch.MinHash(num_perm=MINIMA)
            one.update_batch([shingle.encode() for shingle in shingles(text)])
            made.append(one.digest())
        return made

    ways = {
        "twindex": lambda: minhash.sketch_many(column),
        "rensa": with_rensa,
        "datasketch": with_datasketch,
        "the shingles alone": lambda: [shingles(text) for text in texts],
    }
    print(f"\n{len(texts)} documents, {size / 1e6:.1f} MB: text to {MINIMA} minima, MB a CPU second")
    seconds = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            seconds[name].append(cpu(way)[0])
    for name, all_of_them in seconds.items():
        median = statistics.median(all_of_them)
        print(f"{name:20} {size / median / 1e6:8.2f}   {median / statistics.median(seconds['twindex']):6.1f} x twindex's time")


if __name__ == "__main__":
    main()
