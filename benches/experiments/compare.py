#!/usr/bin/env python3
"""Compares twindex with similar tools, which run alternately in one process, and prints ratios of CPU time.

  scripts/experiment compare search [N...]           fingerprints within 3: mih-rs, the textbook's tables; bytes, opening [1000000 10000000]
  scripts/experiment compare join [N...]             all pairs within 3: all-pairs-hamming, two chunks of 32 [1000000 10000000]
  scripts/experiment compare cold [N...]             queries of a file not in memory: MADV_RANDOM without read-ahead [10000000]
  scripts/experiment compare sketch FILE.jsonl...    text to simhash, minima and features: gaoya, and each level of instructions

`scripts/experiment compare_all` compares more tools, each in a process of its own. Fields of the JSONL files: id and text; .zst and
.gz files are first decompressed to a temporary folder. The other tools come in pinned versions from cargo's package
registry, and are built for this processor. Nothing else should run at the same time.
"""

import os
import platform
import subprocess
import sys
import tempfile
from datetime import date

from measuring import PEERS, build_peers, commit, plain

ROUNDS = 5


def peer(name, *arguments):
    build_peers()
    subprocess.run([str(PEERS / "release" / name), *map(str, arguments)], check=True)


def search(counts):
    for count in counts or ["1000000", "10000000"]:
        peer("search", count, ROUNDS)


def join(counts):
    for count in counts or ["1000000", "10000000"]:
        peer("join", count, ROUNDS)


def cold(counts):
    for count in counts or ["10000000"]:
        peer("cold", count, 3)


def sketch(files):
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            peer("twindex-peers", plain(file, folder), ROUNDS)


def main():
    verbs = {"search": search, "join": join, "cold": cold, "sketch": sketch}
    if len(sys.argv) < 2 or sys.argv[1] not in verbs or (sys.argv[1] == "sketch" and len(sys.argv) < 3):
        sys.exit(__doc__.strip())
    print(f"{date.today()}, commit {commit()}, {os.cpu_count()} cores, {platform.machine()}", flush=True)
    verbs[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
