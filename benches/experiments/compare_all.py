#!/usr/bin/env python3
"""Compares twindex with other tools, job by job, each run in a process of its own, and writes tables and charts.

  scripts/experiment compare_all [--only JOB,JOB] [--quick] [--json FILE] [--markdown FILE] [--charts FOLDER] [FILE.jsonl...]
  scripts/experiment compare_all --prepare       only installs and builds the other tools, and makes the corpora
  scripts/experiment compare_all --render FILE   only writes tables and charts again, from the results of an earlier run

Jobs: search (queries of fingerprints), codes (the same of 256 bits), near (all pairs of fingerprints), texts (JSONL to near-duplicates), sketch
(signatures alone), add (durable additions to an index), latency (additions and queries at the same time). --quick runs
small sizes, to check that each driver works; its figures mean nothing. Each FILE.jsonl has the fields id and text, and is
measured after the corpora.

The other tools are installed from the registries of cargo and pip in the versions below, and Rust tools are built for this
processor. The corpora are texts of pinned packages of pip and generated documents. Only ASCII letters and digits are kept,
in lower case, so that all tools see the same words. The digests of the corpora are printed. A run on one thread is bound
to one core. The systems of a job run one after the other. The jobs near, texts and add run each system up to three times,
until a run takes more than 5 seconds (near runs once for the largest size), and report medians. A run that takes more than
--limit seconds (default 120; for latency always 300) is stopped, and its row has no figures. Answers for fingerprints are
compared, by a checksum, with the answers of the textbook method; those for texts are compared with an exact join that
shares no code with twindex, and is itself compared with brute force. The load of the machine before each run is printed.
Needs Linux and 10 GB of disk. TWINDEX names a binary to use in place of the one that `cargo build --release` makes.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import re
import shlex
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from datetime import date
from pathlib import Path

from measuring import PEERS, ROOT, build_peers, commit, folder_bytes, native, plain, tool

# Versions from pip, by environment. Those of cargo are in benches/peers/Cargo.toml.
ENVIRONMENTS = {
    "peers": ["datasketch==2.0.0", "rensa==0.5.0", "pylance==14.0.2", "faiss-cpu==1.15.1", "usearch==2.26.6",
              "hammingbird==0.5.0", "threatexchange==1.2.17"],
    "peers-datatrove": ["datatrove[io,processing]==0.10.1", "spacy==3.8.18"],
    "peers-text-dedup": ["text-dedup==0.4.0"],
}
INCREDEDUP = "0.3.1"
# Several packages in two versions, whose files are natural near-duplicates.
PACKAGES = ["Django==5.0.9", "Django==5.1.4", "networkx==3.3", "networkx==3.4.2", "Sphinx==8.1.3", "docutils==0.21.2",
            "setuptools==74.1.3", "setuptools==75.1.0", "pip==24.0", "pip==24.2"]
SUFFIXES = {".py", ".rst", ".txt", ".md", ".html", ".js", ".css", ""}
CORPORA = ROOT / "target" / "peers" / "corpora"
TOOLS = ROOT / "benches" / "peers" / "tools.py"
THRESHOLD = 0.8

# The jobs, with the headings of their tables.
JOBS = {
    "search": "Fingerprints within 3 bits",
    "codes": "Fingerprints of 256 bits",
    "near": "All pairs within 3 bits",
    "texts": "JSONL to near-duplicates at 0.8",
    "sketch": "Signatures alone",
    "add": "Durable additions to an index",
    "latency": "Latency while documents are added",
}


# A small program that starts the measured process. The kernel reports a peak of memory for a process that is at least that of
# the process that started it, and this script uses more memory than some tools. Writes its figures to a file as JSON.
LAUNCHER = """
import json, os, sys, time
begun = time.monotonic()
if (child := os.fork()) == 0:
    os.sched_setaffinity(0, json.loads(sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
_, status, used = os.wait4(child, 0)
figures = {"wall": time.monotonic() - begun, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024,
           "code": os.waitstatus_to_exitcode(status)}
open(sys.argv[1], "w").write(json.dumps(figures))
"""


class Session:
    """The measurements of one run of this script."""

    def __init__(self, given):
        self.given, self.rows, self.facts = given, [], {}
        self.work = Path(tempfile.mkdtemp(prefix="twindex-compare-", dir=given.folder))
        self.twindex = None

    def run(self, command, threads=2, environment=None, limit=None, quiet=False):
        """Runs a process and its children. Returns a dictionary with the wall time and CPU time in seconds, the peak memory
        in bytes, the lines of JSON that it prints, and the load before; or, if it failed, with the load and the reason."""
        command = [str(part) for part in command]
        load = os.getloadavg()[0]
        limit = limit or self.given.limit
        settings = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), THREADS=str(threads),
                        LANCE_LOG="error", LANCE_CPU_THREADS=str(threads), HF_HUB_OFFLINE="1", PYTHONWARNINGS="ignore", RUST_BACKTRACE="0")
        settings.update(environment or {})
        cores = sorted(os.sched_getaffinity(0))[-threads:]
        figures = self.work / "figures.json"
        figures.unlink(missing_ok=True)
        launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, figures, json.dumps(cores), *command]
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complaints:
            child = subprocess.Popen(launcher, stdout=said, stderr=complaints, env=settings, start_new_session=True, cwd=self.work)
            try:
                child.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            said.seek(0)
            complaints.seek(0)
            lines, complaint = said.read().decode(errors="replace"), complaints.read().decode(errors="replace")
        taken = json.loads(figures.read_text()) if figures.exists() else {"wall": limit, "cpu": 0, "code": None}
        name = " ".join(Path(part).name if "/" in part else part for part in command)[:110]
        if not quiet:
            print(f"  load {load:5.2f}  {taken['wall']:8.2f} s  {taken['cpu']:8.2f} CPU s  {threads} x  {name}", flush=True)
        result = {"load": load, "threads": threads}
        if taken["code"] is None:
            return {**result, "reason": f"not finished after {limit:.0f} s"}
        if taken["code"]:
            last = (complaint.strip() or lines.strip() or f"ended with {taken['code']}").splitlines()[-1]
            return {**result, "reason": f"failed: {last[:200]}"}
        found = []
        for line in lines.splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return {**result, **taken, "lines": found}

    def add(self, job, case, system, **row):
        self.rows.append({"job": job, "case": case, "system": system, **row})


def peer(name):
    return PEERS / "release" / name


def python(environment):
    return ROOT / "target" / "python" / environment / "bin" / "python"


def prepare(given):
    build_peers()
    for name, packages in ENVIRONMENTS.items():
        subprocess.run([ROOT / "scripts/python", "env", name, *packages], check=True, stdout=subprocess.DEVNULL)
    home = PEERS / "incrededup"
    if not (home / "bin/incrededup").exists():
        install = ["cargo", "install", "incrededup", "--version", INCREDEDUP, "--locked", "--quiet", "--root", str(home)]
        subprocess.run(install, env=native(), check=True)
    return corpora(given)


def documents_of(wheel):
    """Returns the names and the texts of the files in a wheel, in the order of their names."""
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            if Path(name).suffix in SUFFIXES and not name.endswith(("/", "RECORD")):
                yield f"{Path(wheel).name}/{name}", files.read(name).decode("utf-8", "replace")


def words_of(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def write_corpus(path, texts):
    """Writes texts as JSONL with consecutive numbers as keys. Omits texts of fewer than five words."""
    with open(path, "w", encoding="utf-8") as out:
        count = 0
        for words in texts:
            if len(words) >= 5:
                out.write(json.dumps({"id": str(count), "text": " ".join(words)}) + "\n")
                count += 1


def corpora(given):
    """Makes the corpora, unless they exist. Returns their files by name."""
    CORPORA.mkdir(parents=True, exist_ok=True)
    wheels = CORPORA / "wheels"
    packages, paragraphs, generated = (CORPORA / f"{name}.jsonl" for name in ("packages", "paragraphs", "generated"))
    if not packages.exists() or not paragraphs.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        for package in PACKAGES:
            subprocess.run([*pip, "--only-binary=:all:", "-d", str(wheels), package], check=True)
        texts = [text for wheel in sorted(wheels.iterdir()) for _, text in documents_of(wheel)]
        write_corpus(packages, (words for text in texts if len(words := words_of(text)) <= 20_000))
        blocks = (words_of(block) for text in texts for block in re.split(r"\n\s*\n", text))
        some = (words for words in blocks if 20 <= len(words) <= 150)
        write_corpus(paragraphs, (words for number, words in enumerate(some) if number % 4 == 0))
    if not generated.exists():
        with open(generated.with_suffix(".part"), "wb") as out:
            subprocess.run([peer("planted"), "5000", "300", "0.15"], stdout=out, check=True)
        with open(generated.with_suffix(".part"), encoding="utf-8") as lines:
            write_corpus(generated, (json.loads(line)["text"].split() for line in lines))
        generated.with_suffix(".part").unlink()
    files = {"packages": packages, "paragraphs": paragraphs, "generated": generated}
    for number, file in enumerate(given.files):
        copy = CORPORA / f"given-{number}.jsonl"
        with tempfile.TemporaryDirectory() as folder, open(plain(file, folder), encoding="utf-8") as lines:
            write_corpus(copy, (words_of(json.loads(line)["text"]) for line in lines))
        files[Path(file).name.split(".")[0]] = copy
    if given.quick:
        for name, file in files.items():
            files[name] = CORPORA / f"quick-{file.name}"
            with open(file, "rb") as lines, open(files[name], "wb") as out:
                out.writelines(line for _, line in zip(range(1500), lines))
    return files


def describe(session, name, file):
    """Prints and records the size and the digest of a corpus."""
    with open(file, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    with open(file, "rb") as lines:
        documents = sum(1 for _ in lines)
    fact = {"documents": documents, "bytes": file.stat().st_size, "sha256": digest}
    print(f"{name}: {documents} documents, {fact['bytes'] / 1e6:.1f} MB, sha256 {digest[:16]}", flush=True)
    session.facts.setdefault("corpora", {})[name] = fact


# -- fingerprints --------------------------------------------------------------------------------------------------------

RUST = {"mih-rs": "mih-rs 0.3.1", "textbook": "textbook, 4 sorted tables", "gaoya": "gaoya 0.2.2",
        "all-pairs-hamming": "all-pairs-hamming 0.1.0, 2x32"}
PYTHON = {"faiss-flat": "FAISS 1.15.1 BinaryFlat", "faiss-multihash": "FAISS 1.15.1 BinaryMultiHash 4x16",
          "faiss-ivf": "FAISS 1.15.1 BinaryIVF", "usearch": "usearch 2.26.6, HNSW, 10 nearest",
          "hammingbird": "hammingbird 0.5.0", "threatexchange": "threatexchange 1.2.17, PDQMultiHashIndex"}


def size_name(count):
    return f"{count // 1_000_000} M" if count >= 1_000_000 else f"{count // 1000} k"


def make_fingerprints(session, count):
    """Returns the paths of the files of fingerprints and queries and of the index. They are made once for search and near."""
    folder = session.work / f"fingerprints-{count}"
    data, queries, index = folder / "data.u64", folder / "queries.u64", folder / "index.twx"
    if not folder.exists():
        folder.mkdir()
        session.run([peer("fingerprints"), "make", count, data, queries, min(count, 1_000_000)], quiet=True)
        made = session.run([peer("fingerprints"), "index", data, index], 1)
        session.facts.setdefault("index", {})[str(count)] = made["lines"][0]
    return data, queries, index


def search(session):
    quick = session.given.quick
    for count in (20_000, 50_000) if quick else (200_000, 1_000_000, 10_000_000):
        data, queries, index = make_fingerprints(session, count)
        case = size_name(count)
        truths, runs = {}, []
        systems = ["twindex", "twindex-front", "mih-rs", "textbook"]
        if count <= 1_000_000:
            systems += ["gaoya", "faiss-flat", "faiss-ivf", "hammingbird"]
        systems += ["faiss-multihash"]
        systems += ["usearch"] if count <= (20_000 if quick else 200_000) else []
        for system in systems:
            if system in PYTHON:
                some = {"faiss-flat": 20_000 if count <= 200_000 else 1_000, "usearch": 20_000}.get(system, 100_000)
                ran = session.run([python("peers"), TOOLS, "search", system, data, queries, min(some, count)])
            else:
                ran = session.run([peer("fingerprints"), "search", system, data, queries, index])
            runs.append((system, ran))
            for line in ran.get("lines", []):
                if "first" in line:
                    truths[line["first"]] = line
                elif system == "textbook" and "way" in line:
                    truths[line["queries"]] = line
        add_searches(session, "search", case, count, runs, truths, session.facts["index"][str(count)])


def add_searches(session, job, case, count, runs, truths, made):
    """Adds a row for each system. `truths` has the answers for each number of queries, and `made` describes how the index was
    built."""
    for system, ran in runs:
        row = {"load": ran["load"], "kind": "approximate" if system in ("faiss-ivf", "usearch") else "exact"}
        if "reason" in ran:
            session.add(job, case, system, **row, reason=ran["reason"])
            continue
        last = ran["lines"][-1]
        row.update(resident=last["resident"], peak=last["peak"], disk=last["disk"], built=last["built"], count=count)
        if system.startswith("twindex"):
            row.update(built=made["built"], built_peak=made["peak"], opened=last["built"])
        for line in ran["lines"]:
            if "way" not in line:
                continue
            each = 1e6 / line["queries"]
            row[f"{line['way']}, {line['threads']}"] = {"wall": line["wall"] * each, "cpu": line["cpu"] * each}
            truth = truths.get(line["queries"])
            if truth and truth["answers"]:
                row["recall"] = line["answers"] / truth["answers"]
                if row["kind"] == "exact" and (line["answers"], line["sum"]) != (truth["answers"], truth["sum"]):
                    row["kind"] = "misses some"
        session.add(job, case, system, **row)


def codes(session):
    """Queries of fingerprints of 256 bits, such as PDQ hashes of images."""
    for count in (20_000,) if session.given.quick else (1_000_000, 10_000_000):
        folder = session.work / f"codes-{count}"
        folder.mkdir()
        data, queries, index = folder / "data.u256", folder / "queries.u256", folder / "index.twx"
        session.run([peer("codes"), "make", count, data, queries, 1_000], quiet=True)
        made = session.run([peer("codes"), "index", data, index], 1)["lines"][0]
        for within in (15, 31, 52):
            runs = [("twindex-front", session.run([peer("codes"), "search", index, queries, within]))]
            truths = {line["first"]: line for line in runs[0][1].get("lines", []) if "first" in line}
            for system in ("faiss-flat", "faiss-multihash", "threatexchange", "hammingbird"):
                some = 1_000 if count <= 1_000_000 and system == "faiss-multihash" else 100
                tool_of = [python("peers"), TOOLS, "search", system, data, queries, some, 256, within]
                runs.append((system, session.run(tool_of)))
            add_searches(session, "codes", f"{size_name(count)} within {within}", count, runs, truths, made)
        shutil.rmtree(folder)


def near(session):
    quick = session.given.quick
    for count in (20_000, 50_000) if quick else (1_000_000, 10_000_000):
        data, _, index = make_fingerprints(session, count)
        case, truth = size_name(count), None
        systems = ["textbook", "twindex", "twindex-index", "all-pairs-hamming", "mih-rs"]
        systems += ["hammingbird", "faiss-multihash"] if count <= 1_000_000 else []
        for system in systems:
            row = {"kind": "exact", "count": count}
            for threads in (1,) if system in ("all-pairs-hamming", "hammingbird") else (1, 2):
                # mih-rs takes a minute at the largest size, and is run once.
                if system == "mih-rs" and count > 1_000_000 and threads == 2:
                    continue
                taken = []
                for _ in range(1 if count > 1_000_000 else 3):
                    if system in PYTHON:
                        ran = session.run([python("peers"), TOOLS, "near", system, data], threads)
                    else:
                        ran = session.run([peer("fingerprints"), "pairs", system, data, threads, index], threads)
                    taken.append(ran)
                    if "reason" in ran or ran["wall"] > 5:
                        break
                row["load"] = max(row.get("load", 0), *(ran["load"] for ran in taken))
                if "reason" in taken[-1]:
                    row["reason"] = taken[-1]["reason"]
                    break
                lines = [ran["lines"][0] for ran in taken]
                row[str(threads)] = {name: statistics.median(line[name] for line in lines) for name in ("wall", "cpu")}
                row["peak"] = max(line["peak"] for line in lines)
                truth = truth or lines[0]
                row["recall"] = lines[0]["answers"] / truth["answers"]
                row["answers"] = lines[0]["answers"]
                if any((line["answers"], line["sum"]) != (truth["answers"], truth["sum"]) for line in lines):
                    row["kind"] = "misses some"
            session.add("near", case, system, **row)


# -- texts ---------------------------------------------------------------------------------------------------------------


def pairs_of(path, first=0):
    """Returns the pairs of numbers in the first two columns of a file, smaller number first. Skips a header."""
    found = set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = line.split("\t", 2)
            if fields[0].isdigit():
                a, b = int(fields[0]), int(fields[1])
                found.add((min(a, b), max(a, b)))
    return found


def later_of_clusters(pairs):
    """Returns all documents of connected components except the first of each."""
    parents = {}

    def root(one):
        while parents.setdefault(one, one) != one:
            parents[one] = parents[parents[one]]
            one = parents[one]
        return one

    for a, b in pairs:
        a, b = root(a), root(b)
        parents[max(a, b)] = min(a, b)
    return {one for one in list(parents) if root(one) != one}


def removed_by_rule(pairs):
    """Returns the documents that are near an earlier kept document: the documents that `twindex dedup` removes."""
    earlier = {}
    for a, b in pairs:
        earlier.setdefault(b, []).append(a)
    removed = set()
    for document in sorted(earlier):
        if any(one not in removed for one in earlier[document]):
            removed.add(document)
    return removed


def quality(found, expected):
    """Returns recall and precision of a set of answers."""
    both = len(found & expected)
    return {"recall": both / len(expected) if expected else 1.0, "precision": both / len(found) if found else 1.0}


def documents_table(path, texts, first):
    """Adds texts, numbered from `first`, to the database that incrededup reads. Their ids are UUIDs made from the numbers."""
    table = sqlite3.connect(path)
    if first == 0:
        table.execute(
            "CREATE TABLE documents (id TEXT PRIMARY KEY, content TEXT NOT NULL, content_len INTEGER NOT NULL,"
            " filename TEXT, is_parent INTEGER)"
        )
        table.execute(
            "CREATE TABLE dupes (child_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL, jaccard_similarity REAL NOT NULL,"
            " size_difference INTEGER NOT NULL, size_difference_pct REAL NOT NULL)"
        )
    rows = ((identity(number), text, len(text.encode())) for number, text in enumerate(texts, first))
    table.executemany("INSERT INTO documents VALUES (?, ?, ?, NULL, NULL)", rows)
    table.commit()
    table.close()


def identity(number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def incrededup(place, threads):
    options = ["--min-content-len", "1", "--size-diff", "1.0", "-t", str(THRESHOLD), "-w", str(threads)]
    return [PEERS / "incrededup/bin/incrededup", "--sqlite", place / "db.sqlite", "--data-dir", place / "ix", *options]


def incrededup_duplicates(place, documents):
    numbers = {identity(number): number for number in range(documents)}
    table = sqlite3.connect(place / "db.sqlite")
    found = {numbers[child] for (child,) in table.execute("SELECT child_id FROM dupes")}
    table.close()
    return found


def text_systems(session, file, documents):
    """Returns the systems as tuples: the name, the kind of answers, a function from folder and threads to the command, a
    function from the folder to the answers, and the name of the output whose size is reported, if any."""
    out, removed = "pairs.tsv", "removed.tsv"
    tools = [TOOLS, "pairs"]

    def twindex(*options):
        return lambda place, threads: [session.twindex, "dedup", file, "-o", place / "out", "--threads", threads, "--quiet",
                                       *options]

    def listed(of_index, of_pairs):
        """Returns a function from folder and threads to the command that builds an index and lists its pairs."""
        build = shlex.join(["--method", "minhash", "--near", str(THRESHOLD), *of_index])
        pairs = shlex.join(["--near", str(THRESHOLD), *map(str, of_pairs)])
        shell = (f'"$0" build "$1/index" "$2" --threads "$3" --quiet {build} && '
                 f'"$0" pairs "$1/index" --threads "$3" --quiet {pairs} > "$1/{out}"')
        return lambda place, threads: ["sh", "-ec", shell, session.twindex, place, file, threads]

    def of_rule(place):
        kept = {int(json.loads(line)["id"]) for line in open(place / "out/kept.jsonl", encoding="utf-8")}
        return {"by_rule": set(range(documents)) - kept}

    def of_pairs(place):
        return {"pairs": pairs_of(place / out)}

    def of_removed(place):
        return {"removed": {int(line) for line in open(place / removed, encoding="utf-8")}}

    def rust(name):
        return lambda place, threads: [peer("texts"), name, file, place / out]

    def of_python(verb, environment, name):
        result = out if verb == "pairs" else removed
        return lambda place, threads: [python(environment), TOOLS, verb, name, file, place / result, place]

    def of_incrededup(place, threads):
        texts = (json.loads(line)["text"] for line in open(file, encoding="utf-8"))
        documents_table(place / "db.sqlite", texts, 0)
        return incrededup(place, threads)

    return [
        ("twindex dedup", "exact", twindex(), of_rule, "out"),
        ("twindex dedup --index kept", "exact", twindex("--index", "kept"), of_rule, "out"),
        ("twindex build, pairs", "exact", listed([], []), of_pairs, "index"),
        ("twindex build --sets none, pairs --texts", "exact counts, of candidates",
         listed(["--sets", "none"], ["--texts", file]), of_pairs, "index"),
        ("twindex build --sets none, pairs --verify signature", "estimate",
         listed(["--sets", "none"], ["--verify", "signature"]), of_pairs, "index"),
        ("gaoya 0.2.2, 16x8", "estimate", rust("gaoya"), of_pairs, None),
        ("find-simdoc 0.1.1, 1,280 bits", "estimate", rust("find-simdoc"), of_pairs, None),
        ("rensa 0.5.0, 16x8", "estimate", of_python("pairs", "peers", "rensa"), of_pairs, None),
        ("datasketch 2.0.0", "estimate", of_python("pairs", "peers", "datasketch"), of_pairs, None),
        ("Lance 14.0.2, MINHASHLSH 16x8", "estimate", of_python("pairs", "peers", "lance"), of_pairs, "documents.lance"),
        ("incrededup 0.3.1", "exact, shingles of 3 words", of_incrededup,
         lambda place: {"removed": incrededup_duplicates(place, documents)}, "ix"),
        ("text-dedup 0.4.0, 16x8", "candidates", of_python("removed", "peers-text-dedup", "text-dedup"), of_removed, "out"),
        ("datatrove 0.10.1, 16x8", "candidates", of_python("removed", "peers-datatrove", "datatrove"), of_removed, "kept"),
    ]


def truth_of(session, name, file, least=THRESHOLD):
    """Returns the file of all near pairs of a corpus. The first 2,000 documents are also compared by brute force."""
    path = session.work / f"truth-{name}-{least}.tsv"
    if not path.exists():
        ran = session.run([peer("texts"), "truth", file, path, least, 2_000], quiet=True)
        if "reason" in ran:
            sys.exit(f"the exact join of {name} {ran['reason']}")
        session.facts.setdefault("truth", {})[path.stem] = ran["lines"][0]
    return path


def texts(session, files):
    for name, file in files.items():
        if name == "generated":
            continue  # the order of the tools is that of the other corpora
        truth = pairs_of(truth_of(session, name, file))
        expected = {"pairs": truth, "removed": later_of_clusters(truth), "by_rule": removed_by_rule(truth)}
        documents = session.facts["corpora"][name]["documents"]
        for system, kind, command, found, leaves in text_systems(session, file, documents):
            row = {"kind": kind}
            for threads in (1, 2):
                taken = []
                for _ in range(3):
                    place = session.work / "place"
                    shutil.rmtree(place, ignore_errors=True)
                    place.mkdir()
                    ran = session.run(command(place, threads), threads)
                    taken.append(ran)
                    if "reason" in ran or ran["wall"] > 5:
                        break
                row["load"] = max(row.get("load", 0), *(ran["load"] for ran in taken))
                if "reason" in taken[-1]:
                    row["reason"] = taken[-1]["reason"]
                    break
                row[str(threads)] = {key: statistics.median(ran[key] for ran in taken) for key in ("wall", "cpu")}
                row["peak"] = max(row.get("peak", 0), *(ran["peak"] for ran in taken))
                row["disk"] = folder_bytes(place / leaves) if leaves else 0
                answers = found(place)
                for of, these in answers.items():
                    row[of] = quality(these, expected[of])
                if "pairs" in answers:
                    row["removed"] = quality(later_of_clusters(answers["pairs"]), expected["removed"])
            session.add("texts", name, system, **row)


def sketch(session, files):
    # Nearly all of the time is proportional to the number of shingles, so a part of the corpus is enough.
    for name in [name for name in ("packages", "paragraphs") if name in files]:
        part = session.work / f"part-{name}.jsonl"
        size, most = 0, 500_000 if session.given.quick else 6_000_000
        with open(files[name], "rb") as lines, open(part, "wb") as out:
            for line in lines:
                size += len(line)
                if size > most:
                    break
                out.write(line)
        known = session.work / f"known-{name}.tsv"
        with open(truth_of(session, f"part-{name}", part, 0.5), encoding="utf-8") as lines, open(known, "w") as out:
            unequal = [line for line in lines if float(line.rsplit("\t", 1)[1]) < 1]
            out.writelines(unequal[:: max(1, len(unequal) // 20_000)])
        rounds = 1 if session.given.quick else 3
        for system in ("twindex", "twindex-multiply-shift", "rensa", "rensa-rho", "datasketch", "gaoya"):
            if system.startswith("twindex") or system == "gaoya":
                ran = session.run([peer("texts"), "sketch", system, part, known, rounds], 1)
            else:
                ran = session.run([python("peers"), TOOLS, "sketch", system, part, known, rounds], 1)
            row = {"load": ran["load"], "bytes": part.stat().st_size}
            session.add("sketch", name, system, **row, **(ran["lines"][0] if "lines" in ran else {"reason": ran["reason"]}))


def add(session, files):
    """Adds the last documents of a corpus to an index of the others. Each round uses a new copy of the index."""
    for name, file in files.items():
        lines = file.read_bytes().splitlines(keepends=True)
        before = len(lines) - min(2000, len(lines) // 5)
        first, last = session.work / "first.jsonl", session.work / "last.jsonl"
        first.write_bytes(b"".join(lines[:before]))
        last.write_bytes(b"".join(lines[before:]))
        texts = [json.loads(line)["text"] for line in lines]
        near, expected = {}, set()
        for a, b in pairs_of(truth_of(session, name, file)):
            near.setdefault(b, []).append(a)
        for document in range(before, len(lines)):
            if any(one < before or one not in expected for one in near.get(document, [])):
                expected.add(document)
        stream = [session.twindex, "stream", "ix.twx", last, "--quiet", "--json", "--drop-duplicates"]
        systems = {
            "twindex stream": lambda place, threads: [*stream, "--threads", threads],
            "twindex stream --verify signature": lambda place, threads: [*stream, "--threads", threads, "--verify", "signature"],
            "redb 4.6.0, bands": lambda place, threads: [peer("durable"), "add", "redb", place, last, 1000],
            "LMDB 0.9.24, bands": lambda place, threads: [peer("durable"), "add", "lmdb", place, last, 1000],
            "incrededup 0.3.1": lambda place, threads: incrededup(place, threads),
        }
        for system, command in systems.items():
            there, now = session.work / "there", session.work / "now"
            shutil.rmtree(there, ignore_errors=True)
            there.mkdir()
            if system.startswith("twindex"):
                build = [session.twindex, "build", there / "ix.twx", first, "--method", "minhash", "--quiet"]
                made = session.run(build + (["--sets", "none"] if "signature" in system else []), quiet=True)
            elif system.startswith("incrededup"):
                documents_table(there / "db.sqlite", texts[:before], 0)
                made = session.run(incrededup(there, 2))
                documents_table(there / "db.sqlite", texts[before:], before)
            else:
                made = session.run([peer("durable"), "load", command(there, 1)[2], there, first], quiet=True)
            if "reason" in made:
                session.add("add", name, system, load=made["load"], reason=made["reason"])
                continue
            row = {"kind": "exact" if system == "twindex stream" else "estimate"}
            if system.startswith("incrededup"):
                row["kind"] = "exact, shingles of 3 words"
            for threads in (1, 2):
                taken = []
                for _ in range(3):
                    shutil.rmtree(now, ignore_errors=True)
                    shutil.copytree(there, now)
                    arguments = [now / part if part == "ix.twx" else part for part in command(now, threads)]
                    os.sync()
                    taken.append(session.run(arguments, threads))
                    if "reason" in taken[-1] or taken[-1]["wall"] > 5:
                        break
                row["load"] = max(row.get("load", 0), *(ran["load"] for ran in taken))
                if "reason" in taken[-1]:
                    row["reason"] = taken[-1]["reason"]
                    break
                row[str(threads)] = {key: statistics.median(ran[key] for ran in taken) for key in ("wall", "cpu")}
                row["peak"] = max(row.get("peak", 0), *(ran["peak"] for ran in taken))
                if system.startswith("twindex"):
                    row["refused"] = taken[-1]["lines"][-1]["duplicates"]
                elif system.startswith("incrededup"):
                    row["refused"] = len([one for one in incrededup_duplicates(now, len(lines)) if one >= before])
                else:
                    row["refused"] = len(lines) - before - taken[-1]["lines"][-1]["added"]
                row["disk"] = folder_bytes(now) - (folder_bytes(now / "db.sqlite") if system.startswith("incr") else 0)
            row.update(added=len(lines) - before, expected=len(expected), stored=before)
            session.add("add", name, system, **row)


def latency(session):
    documents, seconds = (20_000, 3) if session.given.quick else (1_000_000, 15)
    case = size_name(documents)
    for system, kind in (("twindex", "exact"), ("twindex-estimates", "estimate"), ("redb", "estimate"), ("lmdb", "estimate"),
                         ("fjall", "estimate"), ("lance", "estimate")):
        place = session.work / "store"
        if system == "lance":
            lines = session.work / "texts.txt"
            # The first documents fill the dataset, and the others, up to 200,000, are added.
            with open(lines, "wb") as out:
                more = min(documents, 200_000)
                subprocess.run([peer("durable"), "texts", str(documents + more), "0"], stdout=out, check=True)
            ran = session.run([python("peers"), TOOLS, "latency", system, place, lines, seconds], limit=300)
            lines.unlink()
        else:
            ran = session.run([peer("durable"), "latency", system, place, documents, seconds], limit=300)
        row = {"load": ran["load"], "kind": kind, **(ran["lines"][0] if "lines" in ran else {"reason": ran["reason"]})}
        session.add("latency", case, system, **row, disk=folder_bytes(place) if place.exists() else 0)
        shutil.rmtree(place, ignore_errors=True)


# -- tables --------------------------------------------------------------------------------------------------------------

NAMES = {**RUST, **PYTHON, "twindex": "twindex, mapped file", "twindex-front": "twindex, `Snapshot::within`, with keys"}
NEAR_NAMES = {**NAMES, "twindex": "twindex, from fingerprints", "twindex-index": "twindex, from an index"}
SKETCH_NAMES = {"twindex": "twindex, one permutation (default)", "twindex-multiply-shift": "twindex, 128 multiply-shift",
                "rensa": "rensa 0.5.0, RMinHash", "rensa-rho": "rensa 0.5.0, Rho", "datasketch": "datasketch 2.0.0",
                "gaoya": "gaoya 0.2.2"}
STORE_NAMES = {"twindex": "twindex, sets", "twindex-estimates": "twindex, bands", "redb": "redb 4.6.0, bands",
               "lmdb": "LMDB 0.9.24, bands", "fjall": "fjall 3.1.13, bands", "lance": "Lance 14.0.2, MINHASHLSH"}


def number(value):
    """Returns a number with three significant digits, or as an integer if it is 1,000 or more."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def share(value):
    return "" if value is None else ("1" if value == 1 else f"{value:.4f}" if value > 0.999 else f"{value:.3f}")


def mega(value):
    return number(value / 1e6) if value else "-"


def taken(value):
    return f"{number(value['wall'])} / {number(value['cpu'])}" if value else "-"


def both(value):
    return f"{share(value['recall'])} / {share(value['precision'])}" if value else "-"


def table(columns, rows):
    """Returns a Markdown table. Rows that are too short get empty cells."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(str(cell) for cell in row + [""] * (len(columns) - len(row))) + " |")
    return "\n".join(lines) + "\n"


def tables(results):
    """Returns the tables of all jobs as Markdown."""
    facts, rows = results["facts"], results["rows"]
    out = []

    def of(job):
        cases = {}
        for row in rows:
            if row["job"] == job:
                cases.setdefault(row["case"], []).append(row)
        return cases

    def load(row):
        return f"{row['load']:.1f}"

    if of("search"):
        out.append(f"## {JOBS['search']}\n\nMicroseconds by the clock / of CPU time for each query; two threads share the queries. "
                   "Half of the queries are within 3 bits of a stored fingerprint, and three in ten fingerprints are copies of "
                   "others with up to six bits flipped. FAISS, usearch, hammingbird and threatexchange are called from Python, also one at a time, "
                   "which costs some of their time there. Seconds to build are by the clock / of CPU time. The index of twindex "
                   "has keys of 8 bytes and is committed durably; the others have positions, in memory, and disk is the size that "
                   "they serialize to.\n")
    cases = [("search", f"{case} fingerprints", systems) for case, systems in of("search").items()]
    cases += [("codes", case, systems) for case, systems in of("codes").items()]
    for at, (job, case, systems) in enumerate(cases):
        if job == "codes" and (at == 0 or cases[at - 1][0] != job):
            out.append(f"## {JOBS[job]}\n\nAs fingerprints within 3 bits. Three in ten fingerprints are copies of others with up to 60 "
                       "bits flipped, and half of the queries are stored fingerprints with up to 60 bits flipped. FAISS flips as "
                       "many bits of its keys of 16 bits as the radius needs.\n")
        out.append(f"### {case}\n")
        columns = ["system", "answers", "one at a time", "the same, 2 threads", "together", "the same, 2 threads", "build, s",
                   "resident, MB", "peak of the build, MB", "disk, bytes each", "recall", "load"]
        lines = []
        for row in systems:
            name = NAMES[row["system"]].replace("4x16", "16x16" if job == "codes" else "4x16")
            if "reason" in row:
                lines.append([name, row["reason"]])
                continue
            ways = [taken(row.get(way)) for way in ("one at a time, 1", "one at a time, 2", "together, 1", "together, 2")]
            lines.append([name, row["kind"], *ways, taken(row["built"]), mega(row["resident"]),
                          mega(row.get("built_peak", row["peak"])), number(row["disk"] / row["count"]) if row["disk"] else "-",
                          share(row.get("recall")), load(row)])
        out.append(table(columns, lines))
    if of("near"):
        out.append(f"## {JOBS['near']}\n\nSeconds by the clock / CPU seconds. The time includes tables that a tool makes, but not "
                   "the reading of the fingerprints; an index of twindex is there before. Pairs are counted and added up.\n")
    for case, systems in of("near").items():
        out.append(f"### {case} fingerprints\n")
        lines = []
        for row in systems:
            name = NEAR_NAMES[row["system"]]
            if "reason" in row and "1" not in row:
                lines.append([name, row["reason"]])
                continue
            lines.append([name, row["kind"], taken(row.get("1")), taken(row.get("2")), mega(row["peak"]), f"{row['answers']:,}",
                          share(row["recall"]), load(row)])
        columns = ["system", "answers", "one thread", "two threads", "memory, MB", "pairs", "recall", "load"]
        out.append(table(columns, lines))
    if of("texts"):
        out.append(f"## {JOBS['texts']}\n\nWhole processes, from a JSONL file to what the tool writes: pairs for libraries, kept "
                   "documents for commands; `twindex dedup` also writes clusters and a report and, with `--index kept`, an "
                   "index. gaoya and most others leave no index. Seconds by the clock / "
                   "CPU seconds. Quality is recall / precision against all pairs of resemblance 0.8 or more (shingles of five "
                   "words). Documents: those that are not the first of a cluster of such pairs; for `twindex dedup`, "
                   "those that its rule removes, near an earlier kept one, as computed from the exact pairs. "
                   "*exact* tools count shingles, *estimate* tools compare signatures, *candidates* share a band. Disk is "
                   "what the tool leaves, in MB.\n")
    for case, systems in of("texts").items():
        fact = facts["corpora"][case]
        pairs = facts["truth"][f"truth-{case}-{THRESHOLD}"]["pairs"]
        out.append(f"### {case}: {fact['documents']:,} documents, {fact['bytes'] / 1e6:.1f} MB, {pairs:,} pairs\n")
        lines = []
        for row in systems:
            if "reason" in row and "1" not in row:
                lines.append([row["system"], row["kind"], row["reason"]])
                continue
            removed = row.get("by_rule") or row.get("removed")
            two = row.get("2")
            busy = f"{two['cpu'] / two['wall']:.1f}" if two else "-"
            lines.append([row["system"], row["kind"], taken(row.get("1")), row.get("reason") or taken(two), busy,
                          mega(row["peak"]), mega(row["disk"]), both(row.get("pairs")), both(removed), load(row)])
        columns = ["system", "answers", "one thread", "two threads", "cores busy", "memory, MB", "disk", "pairs", "documents", "load"]
        out.append(table(columns, lines))
    if of("sketch"):
        out.append(f"## {JOBS['sketch']}\n\nSignatures of 128 minima, one thread, no index. Millions of shingles of five words a CPU "
                   "second: from texts, and from shingles that are prepared as strings. The error is the root mean square of "
                   "estimate minus resemblance over pairs of 0.5 to 1; 128 independent minima have about 0.03 to 0.04. Rensa's Rho "
                   "and twindex's default make 128 values from one hash of each shingle; the others compute 128.\n")
    for case, systems in of("sketch").items():
        lines = []
        for row in systems:
            name = SKETCH_NAMES[row["system"]]
            if "reason" in row:
                lines.append([name, row["reason"]])
                continue
            # Some tools count distinct shingles only, so all rates use the count of the first tool, which has all shingles.
            rates = [systems[0]["shingles"] / row[way] / 1e6 for way in ("from_text", "from_shingles")]
            lines.append([name, number(rates[0]), number(rates[1]), number(row["bytes"] / 1e6 / row["from_text"]),
                          f"{row['error']:.4f}", f"{row['compared']:,}", mega(row["peak"]), load(row)])
        columns = ["system", "from texts", "from shingles", "from texts, MB a second", "error", "pairs", "memory, MB", "load"]
        out.append(f"### {case}, {systems[0]['bytes'] / 1e6:.1f} MB\n")
        out.append(table(columns, lines))
    if of("add"):
        out.append(f"## {JOBS['add']}\n\nThe last documents of a corpus are looked up in an index of the others, and those without a "
                   "near one are added, durably. Whole processes, opening included. The baselines in redb and LMDB use the sketcher "
                   "and the bands of twindex, and commits of 1,000 documents. Seconds by the clock / CPU seconds.\n")
    for case, systems in of("add").items():
        lines = []
        for row in systems:
            if "reason" in row and "1" not in row:
                lines.append([row["system"], row.get("kind", ""), row["reason"]])
                continue
            lines.append([row["system"], row["kind"], taken(row.get("1")), taken(row.get("2")), mega(row["peak"]),
                          mega(row["disk"]), f"{row['refused']} ({row['expected']})", load(row)])
        known = next((row for row in systems if "stored" in row), None)
        if known:
            out.append(f"### {case}: {known['added']:,} documents to {known['stored']:,}\n")
        columns = ["system", "answers", "one thread", "two threads", "memory, MB", "disk, MB", "duplicates found (exact)", "load"]
        out.append(table(columns, lines))
    if of("latency"):
        out.append(f"## {JOBS['latency']}\n\nA writer admits generated documents of 60 words, one in twenty near an earlier one, in "
                   "commits of 1,000; another thread queries at the same time. Microseconds; milliseconds for commits. Texts are "
                   "sketched within the measured time. Lance syncs no file itself, so the driver does at each commit; it cannot see "
                   "documents of the same commit. An opening ends with the answer to a query.\n")
    for case, systems in of("latency").items():
        out.append(f"### {case} documents\n")
        lines = []

        def spread(value, unit=1.0):
            return " / ".join(number(value[name] / unit) for name in ("p50", "p99", "max"))

        for row in systems:
            name = STORE_NAMES[row["system"]]
            if "reason" in row:
                lines.append([name, row["reason"]])
                continue
            lines.append([name, row["kind"], spread(row["admit"]), spread(row["near"]), spread(row["commit"], 1000),
                          number(row["commits_a_second"]), f"{row['refused']} of {row['batches'] * 1000:,}", number(row["filled"]),
                          number(row["reopened"] * 1000), mega(row["peak"]), mega(row["disk"]), load(row)])
        columns = ["system", "answers", "admit: p50 / p99 / max", "near: p50 / p99 / max", "commit, ms: p50 / p99 / max",
                   "commits a second", "refused", "to fill, s", "to open again, ms", "memory, MB", "disk, MB", "load"]
        out.append(table(columns, lines))
    if lost := losses(results):
        out.append("## Where another tool is better\n\nFor each table, the measures in which another tool is better than the best "
                   "row of twindex by 3 % or more. Less is better in each of them. Quality differs; see the tables.\n\n"
                   "| job | case | measure | twindex | better |\n|---|---|---|---|---|\n" + "\n".join(lost) + "\n")
    meta = results["meta"]
    kinds = "\n".join(f"- *{name}*: {fact['documents']:,} documents, {fact['bytes']:,} bytes, sha256 `{fact['sha256']}`"
                      for name, fact in facts.get("corpora", {}).items())
    head = (f"# Comparison: tables\n\nWritten by `{meta['command']}`; do not edit. {meta['date']}, commit {meta['commit']}, "
            f"{meta['processor']}, {meta['cores']} cores, {meta['memory']} of memory, {meta['kernel']}; {meta['compiler']}, other Rust "
            f"tools built with `{meta['flags']}`. The load is the average of a minute before each run, the highest of a row; a run on "
            "two threads itself adds up to 2 to the load before the next one. [docs/comparison.md](../docs/comparison.md) says which "
            "tool to take.\n")
    if meta["quick"]:
        head += "\n**A rehearsal with --quick: sizes are too small for the figures to mean anything.**\n"
    corpora_words = ("## Corpora\n\nTexts of pinned packages of pip: files (*packages*), a quarter of the paragraphs of 20 to 150 words "
                     "(*paragraphs*), and documents that `tools/examples/planted.rs` generates (*generated*). Only ASCII letters and "
                     f"digits are kept, in lower case.\n\n{kinds}\n\nPackages: {', '.join(PACKAGES)}.\n") if kinds else ""
    checked = [f"{name}: {fact['checked_pairs']:,} pairs among the first {fact['checked']:,} documents"
               for name, fact in facts.get("truth", {}).items()]
    if checked:
        corpora_words += "\nThe exact join agrees with brute force: " + "; ".join(checked) + ".\n"
    return head + "\n" + "\n".join(out) + "\n" + corpora_words


def faults(rows):
    """Describes the rows of twindex with wrong answers, and all rows whose run failed."""
    wrong = []
    for row in rows:
        misses = row.get("kind") == "misses some"
        qualities = [row.get(of) for of in ("pairs", "by_rule") if row["job"] == "texts" and row["kind"] == "exact"]
        misses |= any(one and (one["recall"], one["precision"]) != (1, 1) for one in qualities)
        misses |= row["job"] == "add" and row.get("kind") == "exact" and row.get("refused") != row.get("expected")
        if row["system"].startswith("twindex") and misses or row.get("reason", "").startswith("failed"):
            wrong.append(f"{row['job']}, {row['case']}, {row['system']}: {row.get('reason', 'wrong answers')}")
    return wrong


def get(row, *path):
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row


# The measures of each job: the name, and a function from a row to the value. Less is better.
MEASURES = {
    "search": [("CPU us, one at a time", lambda row: get(row, "one at a time, 1", "cpu")),
               ("CPU us, together", lambda row: get(row, "together, 1", "cpu")),
               ("CPU s to build", lambda row: get(row, "built", "cpu")), ("MB resident", lambda row: row.get("resident", 0) / 1e6),
               ("bytes each on disk", lambda row: get(row, "disk") / row["count"])],
    "near": [("CPU s, one thread", lambda row: get(row, "1", "cpu")), ("s by the clock, two threads", lambda row: get(row, "2", "wall")),
             ("MB of memory", lambda row: row["peak"] / 1e6)],
    "texts": [("CPU s, one thread", lambda row: get(row, "1", "cpu")), ("s by the clock, two threads", lambda row: get(row, "2", "wall")),
              ("MB of memory", lambda row: row["peak"] / 1e6), ("MB on disk", lambda row: row["disk"] / 1e6)],
    "sketch": [("CPU s from texts", lambda row: row["from_text"]), ("CPU s from shingles", lambda row: row["from_shingles"]),
               ("error", lambda row: row["error"]), ("MB of memory", lambda row: row["peak"] / 1e6)],
    "add": [("CPU s, one thread", lambda row: get(row, "1", "cpu")), ("s by the clock, one thread", lambda row: get(row, "1", "wall")),
            ("s by the clock, two threads", lambda row: get(row, "2", "wall")),
            ("MB of memory", lambda row: row["peak"] / 1e6), ("MB on disk", lambda row: row["disk"] / 1e6)],
    "latency": [*((f"us, {verb} {of}", lambda row, verb=verb, of=of: get(row, verb, of))
                  for verb in ("admit", "near", "commit") for of in ("p50", "p99", "max")),
                ("s for a commit with its admits", lambda row: 1 / row["commits_a_second"]),
                ("s to fill", lambda row: row["filled"]), ("ms to open again", lambda row: row["reopened"] * 1000),
                ("MB of memory", lambda row: row["peak"] / 1e6), ("MB on disk", lambda row: row["disk"] / 1e6)],
}
MEASURES["codes"] = MEASURES["search"]


def losses(results):
    """Returns rows of a Markdown table: the measures in which another tool is more than 3 % better than the best row of
    twindex, with both values."""
    found = []
    for job, measures in MEASURES.items():
        names = {"search": NAMES, "codes": NAMES, "near": NEAR_NAMES, "sketch": SKETCH_NAMES, "latency": STORE_NAMES}.get(job, {})
        cases = dict.fromkeys(row["case"] for row in results["rows"] if row["job"] == job)
        for case in cases:
            rows = [row for row in results["rows"] if row["job"] == job and row["case"] == case and "reason" not in row]
            for measure, value in measures:
                # Values of 0 are omitted: for example, the tool stores nothing on disk.
                values = {row["system"]: value(row) for row in rows if value(row)}
                own = {system: one for system, one in values.items() if system.startswith("twindex")}
                if not own:
                    continue
                best = min(own.values())
                better = {system: one for system, one in values.items() if system not in own and one < best * 0.97}
                if better:
                    others = ", ".join(f"{names.get(system, system)} {number(one)}" for system, one in
                                       sorted(better.items(), key=lambda item: item[1]))
                    found.append(f"| {JOBS[job]} | {case} | {measure} | {number(best)} | {others} |")
    return found


# -- charts --------------------------------------------------------------------------------------------------------------


def chart(title, axis, lines, path):
    """Writes an SVG file with lines on logarithmic axes. A line is a tuple of its name and its points (size, value). Writes
    nothing if no line has two points."""
    lines = [(name, points) for name, points in lines if len(points) > 1]
    if not lines:
        return
    width, height, left, right, top, bottom = 640, 360, 60, 190, 36, 40
    sizes = [size for _, points in lines for size, _ in points]
    values = [value for _, points in lines for _, value in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(min(sizes)), math.log10(max(sizes))

    def x(size):
        return left + (math.log10(size) - first) / (last - first) * (width - left - right)

    def y(value):
        return height - bottom - (math.log10(value) - low) / (high - low) * (height - top - bottom)

    colours = ["#d62728", "#ff9896", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#7f7f7f", "#bcbd22"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>', f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for power in range(low, high + 1):
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for size in sorted(set(sizes)):
        parts.append(f'<text x="{x(size):.1f}" y="{height - bottom + 18}" text-anchor="middle">{size_name(size)}</text>')
    parts.append(f'<text x="{left}" y="{height - 6}">{axis}</text>')
    ends = []
    for colour, (name, points) in zip(colours, sorted(lines, key=lambda line: -line[1][-1][1])):
        places = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = max(y(points[-1][1]) + 4, ends[-1] + 14 if ends else top)
        ends.append(at)
        parts.append(f'<text x="{width - right + 8}" y="{at:.1f}" fill="{colour}">{name}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def charts(results, folder):
    def series(job, value):
        lines = {}
        for row in results["rows"]:
            if row["job"] == job and "reason" not in row:
                for name, amount in value(row):
                    lines.setdefault(name, []).append((row["count"], amount))
        return [(name, sorted(points)) for name, points in lines.items()]

    def of_search(row):
        if row["system"] == "twindex":
            yield "twindex, one at a time", row["one at a time, 1"]["cpu"]
            yield "twindex, together", row["together, 1"]["cpu"]
        elif row["system"] in ("mih-rs", "textbook", "faiss-multihash"):
            way = "together, 1" if "together, 1" in row else "one at a time, 1"
            yield {"faiss-multihash": "FAISS MultiHash"}.get(row["system"], row["system"]), row[way]["cpu"]

    def of_near(row):
        if "1" in row:
            yield NEAR_NAMES[row["system"]].split(" 0.")[0].split(", 4")[0], row["1"]["cpu"]

    chart("CPU microseconds for a query within 3 bits", "fingerprints; one thread, logarithmic axes",
          series("search", of_search), folder / "search.svg")
    chart("CPU seconds for all pairs within 3 bits", "fingerprints; one thread, logarithmic axes",
          series("near", of_near), folder / "pairs.svg")


def write(results, given):
    if given.markdown:
        given.markdown.write_text(tables(results), encoding="utf-8")
    if given.charts:
        charts(results, given.charts)


def about(given):
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split(" (")[0].strip()
    words = ["scripts/experiment compare_all"] + [word for word in ("--quick",) if given.quick]
    words += [f"--only {given.only}"] if given.only else []
    words += [Path(file).name for file in given.files]
    return {"command": " ".join(words), "date": str(date.today()), "commit": commit(), "cores": os.cpu_count(),
            "processor": processor, "memory": f"{memory / 2**20:.0f} GiB", "kernel": f"Linux {platform.release()}",
            "compiler": compiler, "flags": native()["RUSTFLAGS"], "quick": given.quick}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.jsonl")
    parser.add_argument("--only", help="jobs, separated by commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--render", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    jobs = given.only.split(",") if given.only else list(JOBS)
    if unknown := [job for job in jobs if job not in JOBS]:
        sys.exit(f"unknown jobs {', '.join(unknown)}: expected some of {', '.join(JOBS)}")
    if given.render:
        write(json.loads(given.render.read_text()), given)
        return
    files = prepare(given)
    if given.prepare:
        return
    results = {"meta": about(given)}
    print(json.dumps(results["meta"]), flush=True)
    session = Session(given)
    try:
        for name, file in files.items():
            describe(session, name, file)
        session.twindex = tool()
        work = {"search": lambda: search(session), "near": lambda: near(session), "texts": lambda: texts(session, files),
                "codes": lambda: codes(session), "sketch": lambda: sketch(session, files), "add": lambda: add(session, files), "latency": lambda: latency(session)}
        for job in jobs:
            begun = time.monotonic()
            print(f"{job}: {JOBS[job]}", flush=True)
            work[job]()
            print(f"  {job} took {time.monotonic() - begun:.0f} s", flush=True)
            results.update(facts=session.facts, rows=session.rows)
            if given.json:
                given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(session.work, ignore_errors=True)
    write(results, given)
    if wrong := faults(session.rows):
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
