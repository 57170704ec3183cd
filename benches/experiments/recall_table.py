#!/usr/bin/env python3
"""Compares the number of near pairs that `twindex pairs` finds, by threshold, with the predicted number.

    scripts/experiment recall_table TWINDEX NAME=CORPUS.jsonl,TRUTH.tsv ... [--bits 8] [--seeds 16] [--thresholds .5,.55,..]

TRUTH.tsv has all pairs of CORPUS.jsonl with a resemblance of at least .5: two keys, intersection and union, with a
header. For each threshold this prints a row: the known pairs; recall and precision of an index with sets; recall of an
index without sets with exact verification (`--texts`), and the prediction of `plan`'s S-curve for the resemblances of
the known pairs; recall and precision of `--verify signature` with the same bands, and its predicted recall. Exits with
1 if a number differs from its prediction by more than .02, or if the index with sets misses a known pair (one pair in
100,000 is permitted, because tokens are defined slightly differently in the truth and in twindex).

For signatures, the numbers are means over `--seeds` families of hash functions (`--seed 0` and on), with their standard
deviation, because the prediction is a mean. If a few groups of documents make most pairs of a corpus, these pairs are
found or missed together, and a single family may deviate by several hundredths.

The prediction for signatures: a pair of resemblance J agrees in each of b x r minima with probability J, and in the c
bits that are kept of each minimum with probability p = J + (1 - J) / 2^c. The pair is found if all r minima of a band
agree and the estimate from all kept bits reaches the threshold, that is, if at least m agree:

    P = P(at least m agree) - P(at least m agree, and no band does)

The second probability comes from the polynomial ((q + p x)^r - J^r x^r)^b, whose coefficients count agreements if no
band agrees completely.
"""
import argparse
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import tempfile


def times(a, b):
    product = [0.0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def power(base, exponent):
    result = [1.0]
    while exponent:
        if exponent & 1:
            result = times(result, base)
        base, exponent = times(base, base), exponent >> 1
    return result


def found_by_signature(resemblance, threshold, bands, rows, bits):
    """Returns the probability that a pair is found: it shares a band, and its estimate reaches the threshold."""
    chance = 2.0**-bits
    p = resemblance + (1 - resemblance) * chance
    row = [math.comb(rows, i) * p**i * (1 - p) ** (rows - i) for i in range(rows + 1)]
    row_apart = row[:-1] + [row[-1] - resemblance**rows]
    minima = bands * rows
    # As in the tool, chance agreement is subtracted, and an estimate equal to the threshold is near.
    least = next(
        (m for m in range(minima + 1) if (m / minima - chance) / (1 - chance) >= threshold - 1e-9), minima + 1
    )
    return sum(power(row, bands)[least:]) - sum(power(row_apart, bands)[least:])


def found_by_bands(resemblance, bands, rows):
    return 1 - (1 - resemblance**rows) ** bands


def mean_over(pairs, probability):
    """Returns the mean of a probability over resemblances, which are rounded to steps of .002."""
    steps = {}
    for resemblance in pairs:
        step = round(resemblance * 500)
        steps[step] = steps.get(step, 0) + 1
    return sum(count * probability(step / 500) for step, count in steps.items()) / len(pairs)


def run(*command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("twindex")
    arguments.add_argument("corpora", nargs="+", metavar="NAME=CORPUS,TRUTH")
    arguments.add_argument("--bits", type=int, default=8)
    arguments.add_argument("--seeds", type=int, default=16)
    arguments.add_argument("--thresholds", default=",".join(f"{x / 100:.2f}" for x in range(50, 100, 5)))
    given = arguments.parse_args()
    thresholds = [float(threshold) for threshold in given.thresholds.split(",")]
    far = []
    print(
        "corpus\tthreshold\tpairs\texact recall\texact precision\tbands x rows\tbands recall\tpredicted"
        "\tsignature recall\tdeviation\tpredicted\tsignature precision"
    )
    for corpus in given.corpora:
        name, _, files = corpus.partition("=")
        documents, _, truth = files.partition(",")
        with open(truth, encoding="utf-8") as lines:
            known = [line.rstrip("\n").split("\t") for line in lines][1:]
        known = [int(row[2]) / int(row[3]) for row in known]
        with tempfile.TemporaryDirectory(dir=pathlib.Path(documents).parent) as folder:

            def evaluated(threshold, of_index, of_pairs):
                index, out = f"{folder}/index", f"{folder}/found.pairs"
                shutil.rmtree(index, ignore_errors=True)
                new = ("--method", "minhash", "--near", f"{threshold}", "--json", "-q")
                run(given.twindex, "build", index, documents, *new, *of_index)
                found = ("--near", f"{threshold}", "-o", out, "--force", "--json", "-q")
                run(given.twindex, "pairs", index, *found, *of_pairs)
                # Evaluates only at this threshold, because pairs of lower resemblance were not requested.
                rows = run(given.twindex, "study", out, "--truth", truth, "--thresholds", f"{threshold}", "--json")
                return rows["rows"][0]["recall"], rows["rows"][0]["precision"]

            def planned(threshold):
                """Returns the bands that build chooses for a threshold."""
                plan = run(given.twindex, "plan", "--threshold", f"{threshold}", "--json")
                return plan["bands"]["bands"], plan["bands"]["rows"]

            for threshold in thresholds:
                pairs = [resemblance for resemblance in known if resemblance >= threshold - 1e-9]
                bands, rows = planned(threshold)
                exact = evaluated(threshold, (), ())
                without_sets = ("--sets", "none", "--signature-bits", str(given.bits))
                by_bands = evaluated(threshold, without_sets, ("--texts", documents))
                estimated = ("--verify", "signature")
                of_seeds = [
                    evaluated(threshold, (*without_sets, "--seed", str(n)), estimated) for n in range(given.seeds)
                ]
                recalls, precisions = zip(*of_seeds)
                signature = statistics.mean(recalls), statistics.mean(precisions)
                deviation = statistics.stdev(recalls) if len(recalls) > 1 else math.nan
                of_bands = mean_over(pairs, lambda j: found_by_bands(j, bands, rows))
                of_signature = mean_over(
                    pairs, lambda j: found_by_signature(j, threshold, bands, rows, given.bits)
                )
                print(
                    f"{name}\t{threshold}\t{len(pairs)}\t{exact[0]:.5f}\t{exact[1]:.5f}\t{bands} x {rows}"
                    f"\t{by_bands[0]:.4f}\t{of_bands:.4f}\t{signature[0]:.4f}"
                    f"\t{deviation:.4f}\t{of_signature:.4f}\t{signature[1]:.4f}",
                    flush=True,
                )
                if exact[0] < 1 - 1e-5:
                    far.append(f"{name} at {threshold}: exact recall {exact[0]}")
                for what, measured, predicted in [
                    ("bands", by_bands[0], of_bands),
                    ("signature", signature[0], of_signature),
                ]:
                    if abs(measured - predicted) > 0.02:
                        far.append(f"{name} at {threshold}: {what} {measured:.4f}, predicted {predicted:.4f}")
    for line in far:
        print(f"# farther than .02: {line}")
    raise SystemExit(1 if far else 0)


main()
