#!/usr/bin/env python3
"""Prints a table of the cost of `twindex dedup` by input size and memory.

  scripts/experiment dedup_sizes [--gigabytes 1.5,3,6,12] [--memory 256M,1G,4G] [--words 300] [--options '--index kept'] [--folder DIR]

Generates documents with planted near-duplicates (tools/examples/planted.rs: 15 % are copies in which up to one word in
25 is replaced), and runs the default job on prefixes of them. Prints for each size and memory: CPU seconds, CPU seconds
per GB by stage, wall-clock seconds, the peak anonymous memory relative to the limit, temporary and final bytes on disk
relative to the input, and the number of planted pairs with a resemblance of at least 0.8 whose documents were both
kept, which must be 0. The load of the machine is printed before each run. Needs Linux, and disk space of 4 times the
largest size. TWINDEX names a binary to use instead of that of `cargo build --release`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import size_of, used, watched

ROOT = Path(__file__).resolve().parents[2]


def run(binary, source, out, memory, options):
    shutil.rmtree(out, ignore_errors=True)
    before = used(out.parent)
    command = [binary, "dedup", str(source), "-o", str(out), "--memory", memory, "--json", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed, peaks = watched(process, out.parent, before)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: ended with {process.returncode}")
    return json.loads(printed.splitlines()[-1]), peaks


def both_kept(out, truth, documents):
    kept = set()
    with open(out / "kept.jsonl") as lines:
        for line in lines:
            kept.add(line[7 : line.index('"', 7)])
    pairs = missed = 0
    with open(truth) as rows:
        next(rows)
        for row in rows:
            copy, original, both, either = row.split()
            if int(copy.rsplit("/", 1)[1]) >= documents or 10 * int(both) < 8 * int(either):
                continue
            pairs += 1
            missed += copy in kept and original in kept
    return pairs, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", default="1.5,3,6,12")
    parser.add_argument("--memory", default="256M,1G,4G")
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--options", default="")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    target = ROOT / "target/release"
    binary = os.environ.get("TWINDEX", str(target / "twindex"))
    build = ["cargo", "build", "--release", "--locked", "-p", "twindex-tools", "--example", "planted"]
    subprocess.run(build + ([] if "TWINDEX" in os.environ else ["--bin", "twindex"]), cwd=ROOT, check=True)
    folder = Path(tempfile.mkdtemp(prefix="twindex-sizes-", dir=given.folder))
    sizes = sorted(float(size) for size in given.gigabytes.split(","))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    print(f"{time.strftime('%F')}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, options: {given.options or 'none'}")
    head = "GB memory  CPU s  s/GB  clock  peak/bound  disk/input  pairs missed  stages, CPU s a GB"
    print(head)
    try:
        documents = int(sizes[-1] * 1e9 / (given.words * 9.8)) + 1
        everything = folder / "documents.jsonl"
        with open(everything, "wb") as out:
            planted = [target / "examples/planted", str(documents), str(given.words), "0.15", folder / "truth.tsv"]
            subprocess.run(planted, stdout=out, check=True)
        for size in sizes:
            # The largest size is read in place, because a copy would need the same disk space again.
            source = folder / "part.jsonl" if size < sizes[-1] else everything
            with open(everything, "rb") as lines, open(source if size < sizes[-1] else os.devnull, "wb") as out:
                count = written = 0
                for line in lines:
                    if written >= size * 1e9 and size < sizes[-1]:
                        break
                    out.write(line)
                    count, written = count + 1, written + len(line)
            for memory in given.memory.split(","):
                load = os.getloadavg()[0]
                report, peaks = run(binary, source, folder / "out", memory, given.options.split())
                pairs, missed = both_kept(folder / "out", folder / "truth.tsv", count)
                gigabytes = written / 1e9
                stages = report["stages"]
                shown = ("read", "candidates", "verify", "cluster", "index", "report", "write")
                split = ", ".join(f"{name} {stages[name] / gigabytes:.2f}" for name in shown if name in stages)
                cpu = report["cpu_seconds"]
                print(
                    f"{gigabytes:.2f} {memory:>5} {cpu:7.1f} {cpu / gigabytes:5.2f} {report['seconds']:6.1f} "
                    f"{peaks['memory'] / size_of(memory):8.2f} {peaks['disk'] / written:9.2f} {pairs:9} {missed:5}  "
                    f"{split}; load {load:.1f} before",
                    flush=True,
                )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
