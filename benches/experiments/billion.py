#!/usr/bin/env python3
"""Builds, queries and joins an index of very many fingerprints, and prints what each step took beside the plan.

  scripts/experiment billion [--fingerprints 1000000000] [--memory 8G] [--queries 1000000] [--folder DIR]

Makes fingerprints (examples/many_fingerprints.rs; 2 % are near another one), builds an index with
`twindex build`, asks for documents within 3 bits, and joins the index with itself by `twindex pairs`. Queries run warm,
from a cold page cache, many together and one at a time, from a map of the files and from memory. Half of the queries
must find a stored fingerprint; the join must find each near one with its original. The load of the machine is printed
before each step. A billion fingerprints need 30 GB of disk and, for `--access load`, 12 GB of memory. Needs Linux.
TWINDEX names another binary than `cargo build --release` makes.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from measuring import run

ROOT = Path(__file__).resolve().parents[2]


def forget(folder):
    """Drops the pages of a folder's files from the page cache."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def show(step, clock, cpu, memory, more=""):
    load = os.getloadavg()[0]
    print(f"{step:28} {clock:8.1f} s by the clock {cpu:8.1f} CPU s {memory >> 20:7} MiB resident  load {load:.1f}  {more}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fingerprints", type=int, default=1_000_000_000)
    parser.add_argument("--memory", default="8G")
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--tables", default="auto")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-load", action="store_true", help="leave out the queries of an index in memory")
    parser.add_argument("--no-join", action="store_true", help="leave out the join")
    given = parser.parse_args()
    target = ROOT / "target/release"
    subprocess.run(["cargo", "build", "--release", "--locked", "--example", "many_fingerprints"], cwd=ROOT, check=True)
    if "TWINDEX" not in os.environ:
        subprocess.run(["cargo", "build", "--release", "--locked", "-p", "twindex-tools"], cwd=ROOT, check=True)
    binary = os.environ.get("TWINDEX", str(target / "twindex"))
    example = target / "examples/many_fingerprints"
    count = str(given.fingerprints)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    print(f"{time.strftime('%F')}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, {count} fingerprints", flush=True)
    planned, *_ = run(binary, "plan", "--documents", count, "--within", "3", "--design", given.tables, "--json")
    print(f"plan: {' '.join(planned.split())[:1000]}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="twindex-billion-", dir=given.folder))
    try:
        raw, index, pairs = folder / "raw", folder / "index", folder / "pairs.tsv"
        _, *used = run(example, "make", raw, count)
        show("make", *used)
        forget(raw.parent)
        tables = [] if given.tables == "auto" else ["--tables", given.tables]
        _, *used = run(binary, "build", index, "--fingerprints", raw, "--near", "within:3", "--memory", given.memory, "-q", *tables)
        size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
        show("build", *used, f"{size / given.fingerprints:.2f} bytes each")
        raw.unlink()
        ways = [("queries, cold page cache", []), ("queries, warm page cache", [])]
        ways += [] if given.no_load else [("queries, index in memory", ["load"])]
        for step, access in ways:
            if step.endswith("cold page cache"):
                forget(index)
            said, *used = run(example, "ask", index, count, given.queries, *access)
            show(step, *used, said.strip())
        if not given.no_join:
            with open(pairs, "w") as out:
                _, *used = run(binary, "pairs", index, "--near", "within:3", "--memory", given.memory, "-q", out=out)
            with open(pairs, "rb") as lines:
                found = sum(1 for _ in lines) - 1
            show("pairs within 3", *used, f"{found} pairs, {pairs.stat().st_size / 1e9:.2f} GB")
    finally:
        shutil.rmtree(folder)


main()
