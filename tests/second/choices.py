#!/usr/bin/env python3
"""Writes tests/golden/choices.tsv: the formulas for features in src/planner, computed with exact fractions.

    python3 tests/second/choices.py > tests/golden/choices.tsv

A second implementation, from the formulas alone: sums of integers, and every scheme is tried. Only the logarithms at the
end are rounded, from 400 digits to 17.
"""

from decimal import Decimal, getcontext
from fractions import Fraction
from math import ceil, floor

getcontext().prec = 400


def log10(fraction):
    if fraction == 0:
        return "-inf"
    value = (Decimal(fraction.numerator) / Decimal(fraction.denominator)).log10()
    return f"{value:.17e}"


def tails(n, p, k):
    """Returns P[X >= k] and P[X < k], where X is the number of n events, each of probability p, that occur."""
    hit, miss = p.numerator, p.denominator - p.numerator
    below, above, term = 0, 0, miss**n  # C(n, i) hit^i miss^(n-i), times denominator^n
    if miss == 0:
        return (Fraction(1), Fraction(0)) if k <= n else (Fraction(0), Fraction(1))
    for i in range(n + 1):
        if i < k:
            below += term
        else:
            above += term
        term = term * (n - i) * hit // ((i + 1) * miss)
    whole = p.denominator**n
    return Fraction(above, whole), Fraction(below, whole)


def row(*columns):
    print(*columns, sep="\t")


def binomials():
    for n, p, k in [
        (1, "0.5", 1), (6, "0.3", 2), (84, "0.9", 76), (84, "0.9", 84), (84, "0.5", 80), (84, "0.95", 40),
        (200, "0.9", 181), (200, "0.999", 3), (1000, "0.001", 1), (1000, "0.001", 300), (4096, "0.5", 2048),
        (4096, "0.5", 2500), (4096, "0.5", 4096), (4096, "0.8", 3277), (4096, "0.8", 3000), (4096, "0.8", 1),
        (4096, "0.05", 4000), (4096, "0.05", 200), (20000, "0.8", 16100), (20000, "0.8", 12000),
    ]:
        above, below = tails(n, Fraction(p), k)
        row("tails", n, p, k, log10(above), log10(below))


def misses(t, j, delta):
    """Returns the exact probabilities of estimates below (1 - delta) j and above (1 + delta) j."""
    below = tails(t, j, ceil((1 - delta) * j * t))[1]
    above = tails(t, j, floor((1 + delta) * j * t) + 1)[0]
    return below, above


def decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def entropy(a, p):
    if a > 1:
        return Decimal("inf")
    part = lambda a, p: Decimal(0) if a == 0 else decimal(a) * (decimal(a) / decimal(p)).ln()
    return part(a, p) + part(1 - a, 1 - p)


def least(failure, exponents):
    """Returns the smallest t for which the sum of exp(-t e) is at most failure, found step by step."""
    t = max(1, int(decimal(failure).ln() / -max(exponents)) - 1)
    while sum((-t * e).exp() for e in exponents) > decimal(failure):
        t += 1
    return t


def samples():
    for j, delta, failure in [
        ("0.8", "0.1", "0.01"), ("0.8", "0.1", "0.001"), ("0.5", "0.1", "0.05"), ("0.9", "0.05", "0.01"),
        ("0.9", "0.1", "0.01"), ("0.95", "0.04", "0.01"), ("0.3", "0.3", "0.01"), ("0.8", "0.3", "0.000001"),
    ]:
        fj, fd, ff = Fraction(j), Fraction(delta), Fraction(failure)
        up = decimal(1 + fd) * decimal(1 + fd).ln() - decimal(fd)
        chernoff = [decimal(fj * fd * fd / 2), decimal(fj) * up]
        sharp = [entropy((1 - fd) * fj, fj), entropy((1 + fd) * fj, fj)]
        exact = {}
        for t in range(1, least(ff, sharp) + 1):
            below, above = misses(t, fj, fd)
            for name, miss in ("under", below), ("over", above), ("either", below + above):
                if miss > ff:
                    exact[name] = t
        for name, which in ("under", [0]), ("over", [1]), ("either", [0, 1]):
            counts = [least(ff, [of[i] for i in which]) for of in (chernoff, sharp)]
            row("samples", j, delta, failure, name, *counts, exact.get(name, 0) + 1)


def fungible(k, s, r, bits, j):
    equal = j**s
    q = equal + (1 - equal) * Fraction(1, 2**bits)
    return tails(k, q, r)


def schemes():
    named = [(6, 14, 2), (8, 25, 1), (20, 6, 1), (16, 8, 1), (5, 25, 1), (25, 10, 1), (14, 8, 1), (20, 13, 1)]
    wholes = [(*scheme, 64) for scheme in named] + [(6, 14, 3, 64), (8, 25, 2, 64), (20, 6, 3, 32)]
    for k, s, r, bits in wholes + [(8, 12, 3, 8), (8, 12, 7, 8), (64, 8, 5, 4)]:
        for j in "0", "0.3", "0.5", "0.7", "0.8", "0.85", "0.9", "0.95", "0.999", "1":
            above, below = fungible(k, s, r, bits, Fraction(j))
            row("scheme", k, s, r, bits, j, log10(above), log10(below))


def accidents():
    for r in range(1, 9):
        for n in 1000, 50000, 85000000:
            pairs = fungible(8, 12, r, 8, Fraction(0))[0] * n * (n - 1) / 2
            row("accidents", 8, 12, r, 8, n, log10(pairs))


def chosen():
    for j, recall, strange, at_most, minima, thresholds, bits in [
        ("0.8", "0.99", "0.3", "1", 120, 1, 64), ("0.8", "0.99", "0.3", "0.05", 120, 1, 64),
        ("0.8", "0.995", "0.3", "0.015", 120, 1, 64), ("0.9", "0.9", "0.6", "0.001", 120, 1, 64),
        ("0.9", "0.9", "0.6", "0.001", 120, 4, 64), ("0.9", "0.4", "0.5", "0.0001", 120, 3, 64),
        ("0.9", "0.4", "0", "0.0000000008", 100, 8, 8), ("0.9", "0.4", "0", "0.0001", 100, 8, 8),
        ("0.5", "0.9999", "0.1", "1", 12, 1, 64), ("0.8", "0.9", "0.7", "0.01", 120, 4, 64),
    ]:
        numbers = [Fraction(x) for x in (j, recall, strange, at_most)]
        seen = []
        for k in range(1, minima + 1):
            for s in range(1, minima // k + 1):
                for r in range(1, min(thresholds, k) + 1):
                    found = fungible(k, s, r, bits, numbers[0])[0] if k * s < 400 else 0
                    seen.append((k * s, k, r, s, found, fungible(k, s, r, bits, numbers[2])[0]))
        keep = [one for one in seen if one[4] >= numbers[1]]
        fits = [one for one in keep if one[5] <= numbers[3]]
        if fits:
            _, k, r, s, _, _ = min(fits)
            answer = f"{k} {s} {r}"
        elif keep:
            _, k, r, s, _, _ = min(keep, key=lambda one: (one[5], one))
            answer = f"strangers {k} {s} {r}"
        else:
            answer = "recall"
        row("choose", j, recall, strange, at_most, minima, thresholds, bits, answer)


print("# Written by tests/second/choices.py; see there. Columns differ by the kind of row:")
print("# tails n p k log10_at_least log10_below")
print("# samples resemblance delta failure miss by_chernoff by_relative_entropy exact")
print("# scheme groups group_size threshold bits resemblance log10_accepted log10_rejected")
print("# accidents groups group_size threshold bits documents log10_pairs")
print("# choose resemblance recall strange at_most minima thresholds bits answer")
binomials()
samples()
schemes()
accidents()
chosen()
