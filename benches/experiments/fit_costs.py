#!/usr/bin/env python3
"""Fits the costs in the cost model of permutation tables (src/planner/cost.rs) to measurements.

    for n in 100000 1000000 10000000 50000000; do
        cargo run --release --example table_costs -- $n 3 blocks-4/planes+2 blocks-4/planes+3 blocks-2/planes+3 ...
    done > measured.tsv
    cargo build && scripts/experiment fit_costs target/debug/twindex measured.tsv

Each line of measured.tsv has, separated by tabs: number of fingerprints, radius, design and codecs, nanoseconds per
query, and any other columns. `twindex plan --json` gives the number of operations for each line. The fit minimizes the
sum of the squares of log(predicted / measured), so that half and twice the measured time are equal errors, over costs
from a tenth to ten times the current ones. Costs are pulled slightly towards their current values, so that a cost
without effect on the measurements does not change. Optimizes one cost after the other, until none changes.
"""

import json
import math
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src/planner/cost.rs"
PULL = 0.001  # penalty for changing a cost by a factor of e, in squared logarithms


def work(twindex: str, rows: str, within: str, scheme: str) -> dict[str, float]:
    design, codecs = scheme.split()
    command = [twindex, "plan", "--documents", rows, "--within", within, "--design", design, "--codec", codecs, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["designs"][0]["work"]


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    source = SOURCE.read_text()
    names = re.findall(r'"([^"]+)"', re.search(r"KIND_NAMES[^=]*= \[(.*?)\];", source, re.S)[1])
    listed = re.search(r"PRICES: [^=]*=\s*\[(.*?)\];", source, re.S)[1]
    present = [float(price) for price in re.sub(r"//.*", "", listed).split(",") if price.strip()]
    points = []
    for path in sys.argv[2:]:
        for line in pathlib.Path(path).read_text().splitlines():
            rows, within, scheme, measured, *_ = line.split("\t")
            counts = work(sys.argv[1], rows, within, scheme)
            points.append((f"{rows} {within} {scheme}", float(measured), [counts[name] for name in names]))

    def predicted(prices: list[float], counts: list[float]) -> float:
        return sum(price * count for price, count in zip(prices, counts))

    def wrong(prices: list[float]) -> float:
        errors = (math.log(predicted(prices, counts) / measured) for _, measured, counts in points)
        pull = sum(math.log(price / before) ** 2 for price, before in zip(prices, present))
        return sum(error * error for error in errors) / len(points) + PULL * pull

    prices, step = list(present), 1.5
    while step > 1.005:
        before = wrong(prices)
        for kind in range(len(prices)):
            for factor in (step, 1 / step):
                tried = list(prices)
                tried[kind] = min(max(prices[kind] * factor, present[kind] / 10), present[kind] * 10)
                if wrong(tried) < wrong(prices):
                    prices = tried
        if before - wrong(prices) < 1e-9:
            step = math.sqrt(step)
    for name, before, price in zip(names, present, prices):
        print(f"{name:<28} {before:>9.2f} -> {price:>9.2f}")
    for point, measured, counts in points:
        now = predicted(prices, counts)
        print(f"{point:<40} measured {measured:>10.1f} predicted {now:>10.1f}  {now / measured:.2f}")


if __name__ == "__main__":
    main()
