"""Runs other tools from Python, each as its documentation shows. `scripts/experiment compare_all` calls it.

    tools.py pairs datasketch|rensa|lance IN.jsonl OUT.tsv WORK      writes pairs whose resemblance is estimated at 0.8 or more
    tools.py removed datatrove|text-dedup IN.jsonl OUT.tsv WORK      writes the numbers of the documents that the tool removes
    tools.py sketch datasketch|rensa|rensa-rho IN.jsonl PAIRS.tsv ROUNDS     times signatures without an index
    tools.py search SYSTEM DATA QUERIES LIMIT [BITS WITHIN]
                                                    times LIMIT queries, within 3 of 64 bits; SYSTEM is faiss-flat,
                                                    faiss-multihash, faiss-ivf, usearch, hammingbird
                                                    or threatexchange
    tools.py near faiss-multihash|hammingbird DATA  times all pairs of fingerprints within 3 bits
    tools.py latency lance DIR TEXTS SECONDS        creates a dataset of texts, then adds texts while a thread queries it

Documents have the fields id and text, and are numbered from 0. Words are separated by white space, shingles have 5 words, and
signatures have 128 minima in 16 bands of 8 (datasketch chooses the bands itself). Fingerprints are little-endian 64-bit
numbers. Each measurement is a line of JSON. THREADS in the environment is the number of threads.
"""
import json
import os
import resource
import sys
import threading
import time

WIDTH, MINIMA, BANDS, THRESHOLD, WITHIN, BITS = 5, 128, 16, 0.8, 3, 64
THREADS = int(os.environ.get("THREADS", "1"))


def shingles(text):
    words = text.split()
    return list({" ".join(words[at : at + WIDTH]) for at in range(max(1, len(words) - WIDTH + 1))})


def texts_of(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


class Watch:
    """Measures wall time, and the CPU time of this process and its ended children, in seconds."""

    def __init__(self):
        self.start = time.perf_counter(), self.cpu()

    def cpu(self):
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(use.ru_utime + use.ru_stime for use in (own, children))

    def read(self):
        return {"wall": time.perf_counter() - self.start[0], "cpu": self.cpu() - self.start[1]}


def memory(name):
    """Returns a value of /proc/self/status in bytes: VmRSS, the resident memory, or VmHWM, its peak."""
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) * 1024


def write_pairs(out, pairs):
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in sorted({(min(pair), max(pair)) for pair in pairs}))


def datasketch_pairs(path, work):
    import datasketch

    index = datasketch.MinHashLSH(threshold=THRESHOLD, num_perm=MINIMA)
    encoded = ([shingle.encode() for shingle in shingles(text)] for text in texts_of(path))
    sketches = datasketch.MinHash.bulk(encoded, num_perm=MINIMA)
    with index.insertion_session() as session:
        for number, sketch in enumerate(sketches):
            session.insert(number, sketch)
    for number, sketch in enumerate(sketches):
        for other in index.query(sketch):
            if other > number and sketch.jaccard(sketches[other]) >= THRESHOLD:
                yield number, other


def rensa_pairs(path, work):
    import rensa

    index = rensa.RMinHashLSH(threshold=THRESHOLD, num_perm=MINIMA, num_bands=BANDS)
    sketches = rensa.RMinHash.from_token_sets((shingles(text) for text in texts_of(path)), MINIMA, 42)
    index.insert_many(sketches)
    for number, found in enumerate(index.query_all(sketches)):
        for other in found:
            if other > number and sketches[number].jaccard(sketches[other]) >= THRESHOLD:
                yield number, other


def lance_dataset(path, texts, first=0):
    import lance
    import pyarrow

    numbers = pyarrow.array(range(first, first + len(texts)), pyarrow.int64())
    table = pyarrow.table({"number": numbers, "text": pyarrow.array(texts, pyarrow.string())})
    return lance.write_dataset(table, path, mode="append" if first else "create")


def lance_index(dataset):
    """Creates the MinHash index. Its tokenizer gives the same shingles as for the other tools: words are separated by white
    space, without stemming and stop words."""
    from lance.indices import IndexConfig

    plain = dict(base_tokenizer="whitespace", stem=False, remove_stop_words=False, ascii_folding=False, lower_case=False)
    tokenizer = dict(plain, language="English", max_token_length=None)
    # Lance ignores these parameters if they are arguments of create_scalar_index.
    parameters = dict(num_hashes=MINIMA, num_bands=BANDS, shingle_size=WIDTH, tokenizer=tokenizer)
    dataset.create_scalar_index("text", IndexConfig("minhashlsh", parameters))


def lance_near(dataset, text, limit=10):
    """Returns the numbers of the rows near a text, and their distances: 1 minus the estimated resemblance."""
    from lance.query import MinHashQuery

    found = dataset.to_table(nearest=MinHashQuery(text, "text"), columns=["number", "_distance"], limit=limit)
    return zip(found["number"].to_pylist(), found["_distance"].to_pylist())


def lance_pairs(path, work):
    """Yields near pairs. Lance finds the nearest rows of one text, so each document is a query. A query
    returns at most 1,000 rows."""
    texts = texts_of(path)
    dataset = lance_dataset(os.path.join(work, "documents.lance"), texts)
    lance_index(dataset)
    for number, text in enumerate(texts):
        for other, distance in lance_near(dataset, text, 1000):
            if other > number and distance <= 1 - THRESHOLD + 1e-6:
                yield number, other


def datatrove_removed(path, work):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter)
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.text import TextNormConfig

    parts = os.path.join(work, "in")
    os.makedirs(parts)
    with open(path, "rb") as lines:
        lines = lines.readlines()
    size = -(-len(lines) // THREADS)
    for part in range(THREADS):
        with open(os.path.join(parts, f"{part}.jsonl"), "wb") as out:
            out.writelines(lines[part * size : (part + 1) * size])
    # Texts are not normalized, as with the other tools.
    plain = TextNormConfig(lowercase=False, norm_whitespace=False, remove_punctuation=False,
                           norm_unicode_diacritics=False, norm_numbers=False, norm_weekdays=False, norm_monthnames=False)
    config = MinhashConfig(num_buckets=BANDS, hashes_per_bucket=MINIMA // BANDS, norm_config=plain,
                           hash_config=HashConfig(precision=64))

    def at(name):
        return os.path.join(work, name)

    def run(name, pipeline, tasks, workers):
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=workers, logging_dir=at(f"log-{name}"),
                              start_method="fork").run()

    run("signatures", [JsonlReader(parts), MinhashDedupSignature(at("signatures"), config)], THREADS, THREADS)
    run("buckets", [MinhashDedupBuckets(at("signatures"), at("buckets"), config=config)], BANDS, THREADS)
    run("clusters", [MinhashDedupCluster(at("buckets"), at("remove"), config)], 1, 1)
    removed = JsonlWriter(at("removed"), compression=None)
    run("filter", [JsonlReader(parts), MinhashDedupFilter(at("remove"), removed), JsonlWriter(at("kept"), compression=None)],
        THREADS, THREADS)
    numbers = {json.loads(line)["id"]: number for number, line in enumerate(lines)}
    for name in os.listdir(at("removed")):
        with open(os.path.join(at("removed"), name), encoding="utf-8") as lines:
            yield from (numbers[json.loads(line)["id"]] for line in lines)


def text_dedup_removed(path, work):
    """Yields the documents that are removed from clusters. text-dedup keeps an arbitrary document of each cluster; here the
    first one counts as kept."""
    from text_dedup import minhash

    options = ["--path", "json", "--data_files", path, "--split", "train", "--cache_dir", os.path.join(work, "cache")]
    options += ["--output", os.path.join(work, "out"), "--column", "text", "--num_perm", str(MINIMA), "--ngram", str(WIDTH)]
    options += ["--threshold", str(THRESHOLD), "--b", str(BANDS), "--r", str(MINIMA // BANDS), "--min_length", "1"]
    options += ["--hash_func", "xxh3", "--num_proc", str(THREADS), "--batch_size", "10000"]
    minhash.main(options, standalone_mode=False)
    clusters = {}
    for number in list(minhash.uf.parent):
        clusters.setdefault(minhash.uf.find(number), []).append(number)
    for numbers in clusters.values():
        yield from sorted(numbers)[1:]


def sketch(system, path, pairs, rounds):
    """Times the computation of signatures from texts, and from shingles in the form that the tool takes."""
    texts = texts_of(path)
    prepared = [shingles(text) for text in texts]
    if system == "datasketch":
        import datasketch

        def encoded(sets):
            return ([shingle.encode() for shingle in each] for each in sets)

        prepared = list(encoded(prepared))

        def from_shingles():
            return datasketch.MinHash.bulk(prepared, num_perm=MINIMA)

        def from_texts():
            return datasketch.MinHash.bulk(encoded(map(shingles, texts)), num_perm=MINIMA)

        def estimate(rows, a, b):
            return rows[a].jaccard(rows[b])
    else:
        import rensa

        matrix = rensa.RMinHash.digest_matrix_from_token_sets
        if system == "rensa-rho":
            matrix = rensa.RMinHash.digest_matrix_from_token_sets_rho

        def from_shingles():
            return matrix(prepared, MINIMA, 42)

        def from_texts():
            return matrix((shingles(text) for text in texts), MINIMA, 42)

        def estimate(rows, a, b):
            return sum(x == y for x, y in zip(rows[a], rows[b])) / MINIMA

    seconds = {"from_text": [], "from_shingles": []}
    for _ in range(rounds):
        for name, work in (("from_text", from_texts), ("from_shingles", from_shingles)):
            watch = Watch()
            rows = work()
            seconds[name].append(watch.read()["cpu"])
    rows = rows if system == "datasketch" else rows.to_rows()
    squares = compared = 0
    with open(pairs, encoding="utf-8") as lines:
        for line in lines:
            a, b, exact = line.split("\t")
            squares += (estimate(rows, int(a), int(b)) - float(exact)) ** 2
            compared += 1
    print(json.dumps({"shingles": sum(map(len, prepared)), "compared": compared, "peak": memory("VmHWM"),
                      "error": (squares / max(1, compared)) ** 0.5,
                      **{name: sorted(values)[len(values) // 2] for name, values in seconds.items()}}))


class Answers:
    """Counts pairs, and computes the same checksum as Answers in src/measure.rs."""

    def __init__(self):
        self.count, self.sum = 0, 0

    def add(self, a, b):
        import numpy

        if not len(a):
            return
        a, b = numpy.asarray(a, numpy.uint64), numpy.asarray(b, numpy.uint64)
        with numpy.errstate(over="ignore"):
            z = (numpy.minimum(a, b) << numpy.uint64(32) | numpy.maximum(a, b)) + numpy.uint64(0x9E3779B97F4A7C15)
            z = (z ^ z >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ z >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
            self.sum = (self.sum + int((z ^ z >> numpy.uint64(31)).sum())) % (1 << 64)
        self.count += len(a)

    def read(self):
        return {"answers": self.count, "sum": f"{self.sum:016x}"}


def fingerprints_of(path):
    import numpy

    return numpy.fromfile(path, numpy.uint8).reshape(-1, BITS // 8)


def faiss_index(system, data):
    import faiss

    faiss.omp_set_num_threads(1)
    if system == "faiss-flat":
        index = faiss.IndexBinaryFlat(BITS)
    elif system == "faiss-multihash":
        # Tables of 16 bits. It is exact if one of the tables must differ in `nflip` bits at most.
        index = faiss.IndexBinaryMultiHash(BITS, BITS // 16, 16)
        index.nflip = WITHIN // (BITS // 16)
    else:
        # A list for every 1,000 fingerprints; a query reads 16 of them.
        lists = max(16, len(data) // 1000)
        index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(64), 64, lists)
        index.cp.niter, index.cp.max_points_per_centroid = 4, 64
        index.nprobe = 16
        index.train(data)
    index.add(data)
    return index


def search(system, path, queries, limit):
    """Times queries as a batch and one at a time. Runs only the first `limit` queries, because some tools are slow."""
    import numpy

    data, queries = fingerprints_of(path), fingerprints_of(queries)[:limit]
    watch = Watch()
    if system.startswith("faiss"):
        import faiss

        index = faiss_index(system, data)

        def together(threads):
            faiss.omp_set_num_threads(threads)
            limits, _, found = index.range_search(queries, WITHIN + 1)  # FAISS finds distances below the given one
            return numpy.repeat(numpy.arange(len(queries)), numpy.diff(limits).astype(numpy.int64)), found

        def one(query):
            return index.range_search(query, WITHIN + 1)[2]
    elif system == "usearch":
        from usearch.index import Index, MetricKind, ScalarKind

        index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
        index.add(numpy.arange(len(data), dtype=numpy.uint64), data, threads=2)

        def within(found):
            return found.keys[found.distances <= WITHIN]

        def together(threads):
            found = index.search(queries, 10, threads=threads)
            near = found.distances <= WITHIN
            near &= numpy.arange(found.keys.shape[1]) < found.counts[:, None]
            return numpy.nonzero(near)[0], found.keys[near]

        def one(query):
            return within(index.search(query[0], 10, threads=1))
    elif system == "threatexchange":
        from threatexchange.signal_type.pdq.pdq_faiss_matcher import PDQMultiHashIndex

        import faiss

        faiss.omp_set_num_threads(1)
        index = PDQMultiHashIndex()  # the index of its PDQIndex, which always searches within 31
        index.add([code.tobytes().hex() for code in data], range(len(data)))
        texts = [query.tobytes().hex() for query in queries]

        def together(threads):
            faiss.omp_set_num_threads(threads)
            found = index.search(texts, WITHIN, return_as_ids=True)
            counts = [len(each) for each in found]
            return numpy.repeat(numpy.arange(len(queries)), counts), [position for each in found for position in each]

        def one(query):
            return index.search([query.tobytes().hex()], WITHIN, return_as_ids=True)[0]
    else:
        from hammingbird import Index

        index = Index(BITS // 8, WITHIN)
        index.add_batch(data)

        def together(threads):
            found = index.query_batch(queries)
            counts = [len(each) for each in found]
            return numpy.repeat(numpy.arange(len(queries)), counts), [position for each in found for position, _ in each]

        def one(query):
            return [position for position, _ in index.query(query[0])]
    built = watch.read()

    def show(watch, way, threads, answers, count):
        print(json.dumps({**watch.read(), **answers.read(), "way": way, "threads": threads, "queries": count}), flush=True)

    # The checksum is computed after the time is taken. Fewer queries run one at a time, because each is a call from Python.
    for threads in (1,) if system == "hammingbird" else (1, 2):
        watch, answers = Watch(), Answers()
        numbers, found = together(threads)
        taken = watch.read()
        answers.add(numbers, numpy.asarray(found, numpy.uint64) + numpy.uint64(1 << 31))
        print(json.dumps({**taken, **answers.read(), "way": "together", "threads": threads, "queries": len(queries)}), flush=True)
    if system.startswith("faiss") or system == "threatexchange":
        faiss.omp_set_num_threads(1)
    few = queries[: min(len(queries), 20_000)]
    watch, answers = Watch(), Answers()
    each = [one(few[at : at + 1]) for at in range(len(few))]
    taken = watch.read()
    for number, found in enumerate(each):
        answers.add([number] * len(found), numpy.asarray(found, numpy.uint64) + numpy.uint64(1 << 31))
    print(json.dumps({**taken, **answers.read(), "way": "one at a time", "threads": 1, "queries": len(few)}), flush=True)
    resident, disk = memory("VmRSS"), 0
    if system.startswith("faiss"):
        disk = len(faiss.serialize_index_binary(index))
    elif system == "usearch":
        disk = index.serialized_length
    print(json.dumps({"built": built, "disk": disk, "resident": resident, "peak": memory("VmHWM")}))


def near(system, path):
    import numpy

    data = fingerprints_of(path)
    watch, answers = Watch(), Answers()
    if system == "hammingbird":
        from hammingbird import find_pairs_self_bit

        found = find_pairs_self_bit(data, WITHIN)
        a, b = [pair[0] for pair in found], [pair[1] for pair in found]
    else:
        import faiss

        index = faiss_index(system, data)
        faiss.omp_set_num_threads(THREADS)
        limits, _, found = index.range_search(data, WITHIN + 1)
        a, b = numpy.repeat(numpy.arange(len(data)), numpy.diff(limits).astype(numpy.int64)), found
        a, b = a[a < b], b[a < b]
    taken = watch.read()
    answers.add(a, b)
    print(json.dumps({**taken, **answers.read(), "threads": THREADS, "peak": memory("VmHWM")}))


def percentiles(seconds):
    seconds = sorted(seconds)

    def at(share):
        return seconds[min(int(len(seconds) * share), len(seconds) - 1)] * 1e6 if seconds else None

    return {"count": len(seconds), "p50": at(0.5), "p99": at(0.99), "max": at(1.0)}


def sync_new(folder, synced):
    """Syncs the files that are new since the last call, and their folders, because Lance itself never syncs files."""
    for base, _, names in os.walk(folder):
        new = [base] + [os.path.join(base, name) for name in names if os.path.join(base, name) not in synced]
        for path in reversed(new) if len(new) > 1 else ():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.close(file)
        synced.update(new[1:])


def latency(folder, path, limit):
    """Fills a dataset with all but the last 200,000 texts, which are then added in commits of 1,000. If there are not more
    texts than that, the first half fills the dataset."""
    import random

    import lance

    with open(path, encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line in lines]
    documents = len(texts) - 200_000
    if documents <= 0:
        documents = len(texts) // 2
    began = time.perf_counter()
    dataset = lance_dataset(folder, texts[:documents])
    lance_index(dataset)
    synced = set()
    sync_new(folder, synced)
    filled = time.perf_counter() - began
    done, queries, answers = threading.Event(), [], [0]

    def read():
        chosen = random.Random(3)
        while not done.is_set():
            text = texts[chosen.randrange(len(texts))]
            start = time.perf_counter()
            found = [distance for _, distance in lance_near(lance.dataset(folder), text) if distance <= 1 - THRESHOLD]
            queries.append(time.perf_counter() - start)
            answers[0] += len(found)

    reader = threading.Thread(target=read)
    reader.start()
    admits, commits, added, at, began = [], [], 0, documents, time.perf_counter()
    try:
        while time.perf_counter() - began < limit and at < len(texts):
            new = []
            for text in texts[at : at + 1000]:
                start = time.perf_counter()
                if not any(distance <= 1 - THRESHOLD for _, distance in lance_near(dataset, text)):
                    new.append(text)
                admits.append(time.perf_counter() - start)
            start = time.perf_counter()
            dataset = lance_dataset(folder, new, at)
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
            sync_new(folder, synced)
            commits.append(time.perf_counter() - start)
            added += len(new)
            at += 1000
    finally:
        done.set()
        reader.join()
    work = sum(admits) + sum(commits)
    del dataset
    began = time.perf_counter()
    lance_near(lance.dataset(folder), texts[0])
    reopened = time.perf_counter() - began
    print(json.dumps({"filled": filled, "reopened": reopened, "documents": documents, "batches": len(commits), "added": added,
                      "refused": len(admits) - added, "answers": answers[0], "queries": len(queries),
                      "commits_a_second": len(commits) / work, "admit": percentiles(admits),
                      "commit": percentiles(commits), "near": percentiles(queries), "peak": memory("VmHWM")}))


def main():
    verb, system, *rest = sys.argv[1:]
    if verb == "pairs":
        path, out, work = rest
        write_pairs(out, {"datasketch": datasketch_pairs, "rensa": rensa_pairs, "lance": lance_pairs}[system](path, work))
    elif verb == "removed":
        path, out, work = rest
        removed = {"datatrove": datatrove_removed, "text-dedup": text_dedup_removed}[system](path, work)
        with open(out, "w", encoding="utf-8") as file:
            file.writelines(f"{number}\n" for number in sorted(set(removed)))
    elif verb == "sketch":
        sketch(system, rest[0], rest[1], int(rest[2]))
    elif verb == "search":
        global BITS, WITHIN
        BITS, WITHIN = map(int, rest[3:] or (BITS, WITHIN))
        search(system, rest[0], rest[1], int(rest[2]))
    elif verb == "near":
        near(system, rest[0])
    elif verb == "latency":
        latency(rest[0], rest[1], float(rest[2]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
