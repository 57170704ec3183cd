#!/usr/bin/env python3
"""Prints a table of the documents that `twindex dedup` keeps and compares for records from one template, and of the
cost.

  scripts/experiment crowds [--records 15000,150000] [--of 105,107,120] [--checked 300]

Each record has 95 words of a template of 105, 107 or 120 words, and 5 distinct words. With 105 words nearly all records
are near each other at 0.8, with 107 fewer, and with 120 nearly none, although all of them share most of their words.
Prints for each number of records and each template: kept records, comparisons with kept records and exact counts of sets
per record, and CPU seconds. A random sample of records is checked against the rule by exact counts: a kept record is
near no earlier kept record, and a removed record is near the kept record listed for it. TWINDEX names a binary to use
instead of that of `cargo build --release`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMON, OWN = 95, 5


def records(count, template):
    """Returns the template words of each record, as bits."""
    drawn = random.Random(4)
    for _ in range(count):
        yield sum(1 << word for word in drawn.sample(range(template), COMMON))


def is_near(one, other):
    both = (one & other).bit_count()
    return 10 * both >= 8 * (2 * (COMMON + OWN) - both)


def check(rows, kept, covered, checked):
    """Checks records against the rule."""
    in_order = sorted(kept)
    for at in random.Random(5).sample(range(len(rows)), min(checked, len(rows))):
        if at in kept:
            near = [other for other in in_order if other < at and is_near(rows[at], rows[other])]
            if near:
                sys.exit(f"record {at} stays, and is near record {near[0]}, which stays")
        else:
            by = covered[at]
            if by not in kept or by >= at or not is_near(rows[at], rows[by]):
                sys.exit(f"record {at} goes for record {by}, which is not kept before it or not near it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default="15000,150000")
    parser.add_argument("--of", default="105,107,120")
    parser.add_argument("--checked", type=int, default=300)
    given = parser.parse_args()
    binary = os.environ.get("TWINDEX")
    if binary is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "--bin", "twindex"], cwd=ROOT, check=True)
        binary = ROOT / "target/release/twindex"
    print("records  words      kept  comparisons a record  counted a record    CPU s  clock s")
    for count in map(int, given.records.split(",")):
        for template in map(int, given.of.split(",")):
            with tempfile.TemporaryDirectory(prefix="twindex-crowds-") as folder:
                source, out = Path(folder) / "in.jsonl", Path(folder) / "out"
                rows = list(records(count, template))
                with open(source, "w") as lines:
                    for at, row in enumerate(rows):
                        words = [f"b{word}" for word in range(template) if row >> word & 1]
                        words += [f"u{at}x{own}" for own in range(OWN)]
                        print(json.dumps({"id": str(at), "text": " ".join(words)}), file=lines)
                command = [binary, "dedup", source, "-o", out, "--words", "1", "--json", "--quiet"]
                printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                report = json.loads(printed.splitlines()[-1])
                covered = dict(
                    tuple(map(int, line.split("\t")[:2])) for line in (out / "pairs.tsv").read_text().splitlines()[1:]
                )
                kept = {json.loads(line)["id"] for line in open(out / "kept.jsonl")}
                check(rows, set(map(int, kept)), covered, given.checked)
                print(
                    f"{count:7} {COMMON:3}/{template:3} {len(kept):8} {report['candidates'] / count:21.1f} "
                    f"{report['counted'] / count:17.1f} {report['cpu_seconds']:8.1f} {report['seconds']:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
