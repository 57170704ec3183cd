#!/usr/bin/env python3
"""Compares the cost of listing all groups with `pairs` and clusters of them: seconds, CPU seconds and memory.

  scripts/experiment groups_listing [DOCUMENTS] [--near 1,30,90] [--threads 2] [--memory 1G] [--rounds 3] [--folder DIR]

Generates DOCUMENTS (default one million) random fingerprints, NEAR per cent of them in groups of ten within a few bits,
builds an index (`build --fingerprints`), and runs these commands in turn, ROUNDS times:

  groups    twindex groups INDEX                    leaders: each member is near the leader of its group
  pairs     twindex pairs INDEX -o FILE             all near pairs
  clusters  twindex groups FILE                     connected components of the pairs

Prints the median seconds and CPU seconds of each, the peak resident memory (including the mapped index), and the numbers
of groups and of clusters with at least two documents. The load of the machine is printed first. TWINDEX names a binary
to use instead of that of `cargo build --release`.
"""

import argparse
import array
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import run

ROOT = Path(__file__).resolve().parents[2]
FAMILY = 10


def write_fingerprints(path, documents, near, seed=38):
    """Returns groups of ten, whose members differ from their centre in up to two bits, and random fingerprints."""
    draw = random.Random(seed)
    with open(path, "wb") as out:
        for start in range(0, documents, FAMILY):
            count = min(FAMILY, documents - start)
            if draw.random() * 100 < near:
                centre = draw.getrandbits(64)
                some = [centre ^ 1 << draw.randrange(64) ^ 1 << draw.randrange(64) for _ in range(count)]
            else:
                some = [draw.getrandbits(64) for _ in range(count)]
            column = array.array("Q", some)
            if sys.byteorder == "big":
                column.byteswap()
            column.tofile(out)


def pairs_of(path):
    """Returns the number of rows in a file of pairs, without its header."""
    with open(path, "rb") as table:
        return sum(not line.startswith(b"#") for line in table) - 1


def led(path):
    """Returns the number of groups with at least two documents in a listing, and the number of their documents."""
    leaders = documents = 0
    with open(path, "rb") as table:
        next(table)
        for line in table:
            key, leader, _ = line.rstrip(b"\n").split(b"\t")
            documents += 1
            leaders += key == leader
    return leaders, documents


def clusters_of(path):
    found = documents = 0
    with open(path, "rb") as table:
        for line in table:
            columns = line.split(b"\t")
            if columns[1].isdigit():
                found, documents = max(found, int(columns[1])), documents + 1
    return found, documents


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--near", default="1,30,90")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    args = parser.parse_args()
    binary = os.environ.get("TWINDEX")
    if not binary:
        subprocess.run(["cargo", "build", "--release", "--locked", "--bin", "twindex"], cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        binary = target / "release" / "twindex"
    work = ["--threads", args.threads, "--memory", args.memory, "--quiet"]
    print(f"{args.documents} documents, {args.threads} threads, --memory {args.memory}; load", *os.getloadavg())
    print("near %\twhat\tseconds\tCPU seconds\tMiB\tgroups of two and more\tdocuments in them")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = Path(folder)
        raw, index, pairs = folder / "hashes.u64", folder / "index.twx", folder / "all.pairs"
        for near in args.near.split(","):
            write_fingerprints(raw, args.documents, float(near))
            subprocess.run(["rm", "-rf", index], check=True)
            subprocess.run([binary, "build", index, "--fingerprints", raw, *work], check=True, stdout=subprocess.DEVNULL)
            steps = {
                "groups": [binary, "groups", index, "--min-size", "2", *work],
                "pairs": [binary, "pairs", index, "-o", pairs, *work],
                "clusters": [binary, "groups", pairs, *work],
            }
            costs = {name: [] for name in steps}
            for _ in range(args.rounds):
                pairs.unlink(missing_ok=True)
                for name, command in steps.items():
                    with open(folder / name, "wb") as out:
                        _, *used = run(*command, out=out)
                    costs[name].append(used)
            found = {"groups": led(folder / "groups"), "pairs": (pairs_of(pairs), ""), "clusters": clusters_of(folder / "clusters")}
            for name, rounds in costs.items():
                seconds, cpu, memory = zip(*rounds)
                count, documents = found[name]
                print(
                    f"{near}\t{name}\t{statistics.median(seconds):.2f}\t{statistics.median(cpu):.2f}\t"
                    f"{max(memory) / (1 << 20):.0f}\t{count}\t{documents}",
                    flush=True,
                )


main()
